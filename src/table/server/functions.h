/* table/server/functions.h - runs a server function over shards, wherever these live. */
#ifndef PLI_TABLE_FUNCTIONS_H
#define PLI_TABLE_FUNCTIONS_H

#include "table/state/shard.h"

/* One call of a server function. */
typedef struct pli_function_call {
    const plait_function *fn;
    int64_t               first, rows; /* dense: rows [first, first + rows) of the table; sparse: unused, all rows */
    const void           *args;        /* [args_bytes]                                                             */
    size_t                args_bytes, answer_bytes;
    uint32_t             *wrote_out; /* for the event log: where a digest goes of the values that the rows hold
                                      * behind the function; NULL: nowhere */
} pli_function_call;

/** A digest of what is asked for: the function, its range, its arguments. */
uint32_t pli_function_asked(const pli_function_call *call);
/** A digest of an answer; no bytes: 0. */
uint32_t pli_function_answered(const void *answer, size_t bytes);

/** Does the shard own rows of the call's range? Always, if its table is sparse. */
bool pli_function_concerns(const pli_function_call *call, const pli_shard *shard);

/** Runs the function over the range's rows of shards [n] of different tables that are cut alike; it does not run on
 *  shards that own no row of the range. answer [answer_bytes] is zeroed here. Penalties that values owe are applied
 *  first. An update-type function writes the values in place (or in a copy, if somebody still holds them). Errors:
 *  ENOMEM, what the function returned. */
plait_status pli_function_run(const pli_function_call *call, pli_shard *const *shards, int32_t n, void *answer,
                              plait_error *err);

/** Merges one more shard's answer, by fn->merge or by adding doubles. EINVAL: fn->merge has called into Plait. */
plait_status pli_function_merge(const plait_function *fn, void *answer, const void *other, size_t answer_bytes,
                                plait_error *err);

#endif
