/* plait/server_function.h - functions of the program that run at the shards of its tables.
 *
 * plait_job_opts.functions lists them, the same on every rank. plait_table_call (plait/table.h) runs one by name on
 * each shard, and the shards' answers are merged in order. So for an aggregate over all rows each shard sends one
 * answer instead of its rows.
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

/* A shard's part of a range, as a server function sees it. The tables of one call are sharded alike, so element i of
 * one belongs to element i of the other. */
typedef struct plait_slice {
    plait_type      type;
    int64_t         rows, cols; /* rows of the range that this shard owns                              */
    int64_t         first;      /* dense: number of the first one; sparse: -1                          */
    const uint64_t *keys;       /* sparse: key of each row, unordered; dense: NULL                     */
    void           *values;     /* [rows, cols]; writable in an update-type function only              */
} plait_slice;

/** Runs on each shard. slices [n_slices]: one for each table of the call; args: as the caller gave them; answer
 *  [answer_bytes] starts zeroed. The function must not call into plait (a call that may wait returns EINVAL and does
 *  nothing else; then the plait_table_call, too, returns EINVAL with a text that names both). Its answer, and what it
 *  writes, must depend on its arguments alone: where shards have two replicas it runs at both. */
typedef plait_status plait_server_fn(void *user, const plait_slice *slices, int32_t n_slices, const void *args,
                                     size_t args_bytes, void *answer, size_t answer_bytes);

/** Merges the answer of one more shard into answer; called in the order of the shards. */
typedef void plait_merge_fn(void *user, void *answer, const void *other, size_t answer_bytes);

typedef struct plait_function {
    const char      *name;
    int              updates; /* 0: it only reads, one worker calls it; 1: it updates, the call is collective */
    plait_server_fn *run;
    plait_merge_fn  *merge;   /* NULL: answers are arrays of double, which are added                   */
    void            *user;
} plait_function;

#ifdef __cplusplus
}
#endif
#endif
