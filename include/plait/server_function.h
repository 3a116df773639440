/* plait/server_function.h - functions that a program runs where the rows of its tables lie.
 *
 * A job is given them by plait_job_opts.functions, the same on every rank, and plait_table_call (plait/table.h) runs
 * one by name: on each shard, whose answers are merged in order. So an aggregate over all rows travels as one answer a
 * shard, instead of as the rows.
 *
 * Paper: Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014, section 3.3 (server
 * functions).
 */
#ifndef PLAIT_SERVER_FUNCTION_H
#define PLAIT_SERVER_FUNCTION_H

#include <plait/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A shard's part of a range, as a server function sees it. Tables named in one call are cut alike, so
 * element i of one belongs to element i of the other. */
typedef struct plait_slice {
    plait_type      type;
    int64_t         rows, cols; /* rows of the range that this shard owns                              */
    int64_t         first;      /* dense: number of the first one; sparse: -1                          */
    const uint64_t *keys;       /* sparse: key of each row, unordered; dense: NULL                     */
    void           *values;     /* [rows, cols]; writable in an update-type function only              */
} plait_slice;

/** Runs on each shard. slices [n_slices] one a table of the call; args as the caller gave them; answer
 *  [answer_bytes] starts zeroed. Must not call into plait (a call that may wait does nothing but answer EINVAL, and
 *  so does the plait_table_call, whose text names both); must be a function of its arguments alone. */
typedef plait_status plait_server_fn(void *user, const plait_slice *slices, int32_t n_slices, const void *args,
                                     size_t args_bytes, void *answer, size_t answer_bytes);

/** Merges the answer of one more shard into answer; called in the order of the shards. */
typedef void plait_merge_fn(void *user, void *answer, const void *other, size_t answer_bytes);

typedef struct plait_function {
    const char      *name;
    int              updates; /* 0: get-type, called by any one worker; 1: update-type, collective     */
    plait_server_fn *run;
    plait_merge_fn  *merge;   /* NULL: answers are arrays of double and are added                      */
    void            *user;
} plait_function;

#ifdef __cplusplus
}
#endif
#endif
