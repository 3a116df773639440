/* base/pool.h - the thread pool, shared by all ranks of a process that ask for the same one.
 *
 * A parallel-for hands out index ranges; the caller takes part. Work items must not wait for each other.
 * Idle threads sleep on a futex after a short spin (<= 5 us). Nested calls run serially in the caller. The threads take
 * no signals. */
#ifndef PLI_BASE_POOL_H
#define PLI_BASE_POOL_H

#include <stdint.h>

#include <plait/status.h>

typedef struct pli_pool pli_pool;

/** threads >= 1 includes the caller, so with 1 no thread is started. */
plait_status pli_pool_create(int32_t threads, pli_pool **pool_out, plait_error *err);
void         pli_pool_destroy(pli_pool **pool);
int32_t      pli_pool_threads(const pli_pool *pool); /* NULL: 1 */

/** Calls fn(user, i, thread) for each i in [0, n), on up to pool's threads. `thread` says which scratch memory an
 *  item may use: no two items that run at the same time have the same number. The caller is 0; a nested call keeps
 *  the number of the thread that it runs on. Items are claimed one by one, in order. Returns when all are done. A
 *  NULL pool runs serially. Any thread may call; concurrent callers share the threads. */
typedef void pli_task_fn(void *user, int64_t i, int32_t thread);
void pli_pool_for(pli_pool *pool, int64_t n, pli_task_fn *fn, void *user);

#endif
