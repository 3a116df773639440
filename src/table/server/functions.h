/* table/server/functions.h - runs a server function over shards, wherever these live. */
#ifndef PLI_TABLE_FUNCTIONS_H
#define PLI_TABLE_FUNCTIONS_H

#include "table/state/shard.h"

/** Runs fn over shards [n] of different tables that are cut alike. answer [answer_bytes] is zeroed here. Penalties
 *  that values owe are applied first. An update-type function writes the values in place (or in a copy, if somebody
 *  still holds them). Errors: ENOMEM, what fn returned. */
plait_status pli_function_run(const plait_function *fn, pli_shard *const *shards, int32_t n, const void *args,
                              size_t args_bytes, void *answer, size_t answer_bytes, plait_error *err);

/** Merges one more shard's answer, by fn->merge or by adding doubles. EINVAL: fn->merge has called into Plait. */
plait_status pli_function_merge(const plait_function *fn, void *answer, const void *other, size_t answer_bytes,
                                plait_error *err);

#endif
