/* base/pool.c - fork and join in microseconds.
 *
 * A mini-batch is ten microseconds of work for each thread, so handing it out must cost only two or three. The caller
 * puts the loop into one of a few slots and starts on it at once; threads that notice come in and claim items one by
 * one from a shared counter (self-scheduling: Tang and Yew, "Processor Self-Scheduling for Multiple-Nested Parallel
 * Loops", ICPP 1986), so uneven work evens out. No thread has to come: the caller alone can finish its loop, so several
 * callers can share the threads and none waits for another. A thread that finds no work looks around for SPIN_NS and
 * then sleeps on a futex (Franke, Russell, Kirkwood, "Fuss, Futexes and Furwocks", 2002).
 *
 * A slot lives in one word, `state`:
 *     0        free
 *     CLAIMED  a caller owns the slot; it alone may write fn, user, n, next while nobody is inside
 *     OPEN     others may come in; a thread that finds no item left clears it
 *     ASLEEP   the caller sleeps until the last thread inside has left
 *     low bits how many threads are inside, the caller not counted
 * Invariants: 1. a thread reads the loop only between entering (a compare-and-swap that saw OPEN) and leaving; 2.
 * the caller gives the slot up only when it is not OPEN and nobody is inside. So no thread sees a loop that has
 * ended. */
#include "base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/os.h"

#define SPIN_NS UINT64_C(5000)
enum { SLOTS = 16 }; /* loops at once; a further caller runs its loop serially */

#define CLAIMED (UINT32_C(1) << 31)
#define OPEN    (UINT32_C(1) << 30)
#define ASLEEP  (UINT32_C(1) << 29)
#define INSIDE  (ASLEEP - 1)

struct slot {
    _Alignas(64) _Atomic uint32_t state; /* written by all; see above */
    pli_task_fn *fn;                     /* written by the caller, before OPEN */
    void        *user;                   /* written by the caller, before OPEN */
    int64_t      n;                      /* written by the caller, before OPEN */
    _Alignas(64) _Atomic int64_t next;   /* written by all who are inside: the next item */
};

struct member {
    pli_pool *pool;
    pthread_t thread;
    int32_t   index; /* 1 .. threads - 1; the caller of a loop is 0 */
};

struct pli_pool {
    _Alignas(64) _Atomic uint32_t calls;    /* written by callers: counts the loops opened; threads sleep on it */
    _Alignas(64) _Atomic uint32_t sleepers; /* written by threads: how many sleep, or are about to */
    _Atomic bool   stop;                    /* written by destroy */
    int32_t        threads;                 /* written by create, then read-only */
    struct member *member;                  /* written by create, then read-only; [threads - 1] */
    struct slot    slot[SLOTS];
};

/* The pool whose item this thread is running and the thread's index there, so that a nested call can tell. Set only
 * while an item runs. */
static _Thread_local struct {
    const pli_pool *pool;
    int32_t         index;
} running;

/* --- items --------------------------------------------------------------------------------------------- */

/* Runs items of an entered loop until none is left, then closes the loop to others. */
static void run_items(const pli_pool *pool, struct slot *slot, int32_t index) {
    running.pool = pool;
    running.index = index;
    for (;;) {
        /* Relaxed, no pair: the counter only deals out numbers; the loop itself came with state. */
        int64_t i = atomic_fetch_add_explicit(&slot->next, 1, memory_order_relaxed);
        if (i >= slot->n) break;
        slot->fn(slot->user, i, index);
    }
    running.pool = NULL;
    /* Relaxed: the bit only tells others not to come in. */
    atomic_fetch_and_explicit(&slot->state, ~OPEN, memory_order_relaxed);
}

static bool enter(struct slot *slot) {
    uint32_t seen = atomic_load_explicit(&slot->state, memory_order_relaxed);
    while (seen & OPEN) {
        /* Acquire: pairs with the release in open_slot, so the loop's fields are visible. */
        if (atomic_compare_exchange_weak_explicit(&slot->state, &seen, seen + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

static void leave(struct slot *slot) {
    /* Release: pairs with the acquire in join, so the caller sees what the items wrote. */
    uint32_t before = atomic_fetch_sub_explicit(&slot->state, 1, memory_order_release);
    if ((before & INSIDE) == 1 && (before & ASLEEP)) pli_futex_wake(&slot->state, 1);
}

/* --- threads of the pool ------------------------------------------------------------------------------- */

static bool help(struct member *me) {
    bool helped = false;
    for (int s = 0; s < SLOTS; s++) {
        struct slot *slot = &me->pool->slot[s];
        if (!enter(slot)) continue;
        run_items(me->pool, slot, me->index);
        leave(slot);
        helped = true;
    }
    return helped;
}

/* Waits until a loop was opened after `seen`: spins, then sleeps. */
static void await_call(pli_pool *pool, uint32_t seen) {
    uint64_t until = pli_now_ns() + SPIN_NS;
    while (pli_now_ns() < until) {
        if (atomic_load_explicit(&pool->calls, memory_order_relaxed) != seen) return;
        pli_relax();
    }
    /* Sequentially consistent, both here and in open_slot: either the caller sees this sleeper and wakes it, or the
     * futex sees the new count and does not sleep. */
    atomic_fetch_add(&pool->sleepers, 1);
    if (atomic_load(&pool->calls) == seen) pli_futex_wait(&pool->calls, seen, UINT64_MAX);
    atomic_fetch_sub(&pool->sleepers, 1);
}

static void *serve(void *user) {
    struct member *me = user;
    pli_pool      *pool = me->pool;
    for (;;) {
        /* Acquire: pairs with the sequentially consistent increments of calls, so a loop that is counted is seen
         * open. */
        uint32_t seen = atomic_load_explicit(&pool->calls, memory_order_acquire);
        if (atomic_load_explicit(&pool->stop, memory_order_relaxed)) return NULL;
        if (!help(me)) await_call(pool, seen);
    }
}

/* --- callers ------------------------------------------------------------------------------------------- */

static struct slot *claim_slot(pli_pool *pool) {
    for (int s = 0; s < SLOTS; s++) {
        uint32_t free_state = 0;
        /* Acquire: pairs with the release that freed the slot in join. */
        if (atomic_load_explicit(&pool->slot[s].state, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong_explicit(&pool->slot[s].state, &free_state, CLAIMED, memory_order_acquire,
                                                    memory_order_relaxed))
            return &pool->slot[s];
    }
    return NULL;
}

static void open_slot(pli_pool *pool, struct slot *slot, int64_t n, pli_task_fn *fn, void *user) {
    slot->fn = fn;
    slot->user = user;
    slot->n = n;
    atomic_store_explicit(&slot->next, 0, memory_order_relaxed); /* published by state */
    /* Release: pairs with the acquire in enter. */
    atomic_store_explicit(&slot->state, CLAIMED | OPEN, memory_order_release);
    atomic_fetch_add(&pool->calls, 1); /* sequentially consistent: see await_call */
    uint32_t asleep = atomic_load(&pool->sleepers);
    if (asleep > 0) pli_futex_wake(&pool->calls, n - 1 < (int64_t)asleep ? (int32_t)(n - 1) : (int32_t)asleep);
}

/* Waits until nobody is inside, and frees the slot. */
static void join(struct slot *slot) {
    uint64_t until = pli_now_ns() + SPIN_NS;
    for (;;) {
        /* Acquire: pairs with the release in leave. */
        uint32_t seen = atomic_load_explicit(&slot->state, memory_order_acquire);
        if ((seen & INSIDE) == 0) break;
        if (pli_now_ns() < until) {
            pli_relax();
        } else if ((seen & ASLEEP) ||
                   atomic_compare_exchange_weak_explicit(&slot->state, &seen, seen | ASLEEP, memory_order_relaxed,
                                                         memory_order_relaxed)) {
            pli_futex_wait(&slot->state, seen | ASLEEP, UINT64_MAX);
        }
    }
    /* Release: pairs with the acquire in claim_slot, after our last read of the loop. */
    atomic_store_explicit(&slot->state, 0, memory_order_release);
}

static void run_serially(int64_t n, pli_task_fn *fn, void *user, int32_t index) {
    for (int64_t i = 0; i < n; i++) fn(user, i, index);
}

void pli_pool_for(pli_pool *pool, int64_t n, pli_task_fn *fn, void *user) {
    if (running.pool != NULL) { /* nested: keeps the thread's index, so that scratch memory stays its own */
        run_serially(n, fn, user, running.pool == pool ? running.index : 0);
        return;
    }
    struct slot *slot = pool == NULL || pool->threads == 1 || n <= 1 ? NULL : claim_slot(pool);
    if (slot == NULL) {
        run_serially(n, fn, user, 0);
        return;
    }
    open_slot(pool, slot, n, fn, user);
    run_items(pool, slot, 0);
    join(slot);
}

/* Signals that a thread raises by its own fault. If they were blocked, they would end the process without calling a
 * handler. */
static const int own_fault[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

/* --- life ---------------------------------------------------------------------------------------------- */

int32_t pli_pool_threads(const pli_pool *pool) { return pool == NULL ? 1 : pool->threads; }

/* The pool's threads block all other signals: those are for the threads of the host program. */
static int start_thread(struct member *member) {
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own_fault / sizeof own_fault[0]; i++) sigdelset(&all, own_fault[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int errnum = pthread_create(&member->thread, NULL, serve, member);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return errnum;
}

static void stop_threads(pli_pool *pool, int32_t started) {
    atomic_store_explicit(&pool->stop, true, memory_order_relaxed); /* published by calls */
    atomic_fetch_add(&pool->calls, 1);
    pli_futex_wake(&pool->calls, INT32_MAX);
    for (int32_t i = 0; i < started; i++) pthread_join(pool->member[i].thread, NULL);
}

plait_status pli_pool_create(int32_t threads, pli_pool **pool_out, plait_error *err) {
    if (threads < 1) return pli_fail(err, PLAIT_EINVAL, "a thread pool needs 1 thread at least, not %d", threads);
    int32_t   started = 0;
    int       errnum = 0;
    pli_pool *pool = pli_aligned(sizeof *pool);
    if (pool == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a thread pool");
    *pool = (pli_pool){ .threads = threads, .member = pli_calloc((size_t)threads, sizeof *pool->member) };
    if (pool->member == NULL) goto free_pool;
    for (; started < threads - 1; started++) {
        pool->member[started] = (struct member){ .pool = pool, .index = started + 1 };
        errnum = start_thread(&pool->member[started]);
        if (errnum != 0) goto stop;
    }
    *pool_out = pool;
    return PLAIT_OK;
stop:
    stop_threads(pool, started);
    pli_free(pool->member);
    pli_free(pool);
    return pli_fail_errno(err, errnum, "cannot start thread %d of a pool of %d", started + 1, threads);
free_pool:
    pli_free(pool);
    return pli_fail(err, PLAIT_ENOMEM, "no memory for a thread pool of %d", threads);
}

void pli_pool_destroy(pli_pool **pool) {
    if (*pool == NULL) return;
    stop_threads(*pool, (*pool)->threads - 1);
    pli_free((*pool)->member);
    pli_free(*pool);
    *pool = NULL;
}
