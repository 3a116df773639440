/* Threads run the tasks of a plan. A task is ready when all tasks that it waits for are done (ready counts: Dennis and
 * Misunas, "A Preliminary Architecture for a Basic Data-Flow Processor", ISCA 1975). A thread takes the ready task with
 * the lowest number, so the order stays near the one for which memory was planned. The thread that takes a shared task
 * opens it; idle threads join and claim some of its items, and the last to leave ends the task.
 *
 * A thread that finds nothing to do waits for the bell, which is rung when a task becomes ready; since tasks form no
 * cycle, another thread is working then. The waiting thread spins for SPIN_NS, about the time in which a virtual
 * machine puts a thread to sleep and wakes it, and then sleeps. So it never loses more than twice the time of the best
 * choice (Karlin, Li, Manasse and Owicki, "Empirical Studies of Competitive Spinning for a Shared-Memory
 * Multiprocessor", SOSP 1991).
 *
 * The lock guards all fields but the items' counter, which only deals out numbers. */
#include "graph/crew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define SPIN_NS UINT64_C(30000)
enum { OPEN_MAX = 16, TRIES = 100 };

/* Tasks by number, the lowest at the top. */
typedef struct heap {
    int32_t *task;
    int32_t  n;
} heap;

typedef struct loop {
    int32_t         task, inside;
    _Atomic int64_t next; /* the next item to claim; relaxed: the lock has published what an item needs */
} loop;

struct pli_crew {
    const pli_plan  *plan;
    pthread_mutex_t  lock;
    _Atomic uint32_t bell;  /* rung under the lock; a thread reads it under the lock before it sleeps on it */
    int32_t         *waits; /* [n_tasks] */
    heap             ready, ready_for_caller;
    loop             open[OPEN_MAX];
    int32_t          n_done, sleepers;
    pthread_t        caller;
    pli_node_fn     *fn;
    void            *user;
    int32_t          threads;
    plait_status     status;
    plait_error      error;
};

/* Work under the lock takes less time than to sleep and be woken, so a thread that finds the lock taken tries again for
 * a while. */
static void lock(pli_crew *c) {
    for (int32_t i = 0; i < TRIES; i++) {
        if (pthread_mutex_trylock(&c->lock) == 0) return;
        pli_relax();
    }
    pthread_mutex_lock(&c->lock);
}

/* --- the heap -------------------------------------------------------------------------------------------------- */

static void push(heap *h, int32_t task) {
    int32_t at = h->n++;
    for (; at > 0 && h->task[(at - 1) / 2] > task; at = (at - 1) / 2) h->task[at] = h->task[(at - 1) / 2];
    h->task[at] = task;
}

static int32_t pop(heap *h) {
    if (h->n == 0) return -1;
    const int32_t top = h->task[0], last = h->task[--h->n];
    int32_t       at = 0;
    for (int32_t child = 1; child < h->n; child = 2 * at + 1) {
        if (child + 1 < h->n && h->task[child + 1] < h->task[child]) child++;
        if (h->task[child] >= last) break;
        h->task[at] = h->task[child];
        at = child;
    }
    h->task[at] = last;
    return top;
}

/* --- under the lock -------------------------------------------------------------------------------------------- */

static bool is_over(const pli_crew *c) { return c->status != PLAIT_OK || c->n_done == c->plan->n_tasks; }

static void ring(pli_crew *c) {
    atomic_fetch_add_explicit(&c->bell, 1, memory_order_relaxed); /* the lock orders it */
    if (c->sleepers > 0) pli_futex_wake(&c->bell, INT32_MAX);
}

static void become_ready(pli_crew *c, int32_t task) {
    push(c->plan->task[task].caller ? &c->ready_for_caller : &c->ready, task);
}

static void finish(pli_crew *c, int32_t task) {
    const pli_task *t = &c->plan->task[task];
    const int32_t   before = c->ready.n + c->ready_for_caller.n;
    c->n_done++;
    for (int32_t i = t->next; i < t->next + t->n_next; i++)
        if (--c->waits[c->plan->next_task[i]] == 0) become_ready(c, c->plan->next_task[i]);
    const int32_t more = c->ready.n + c->ready_for_caller.n - before;
    if (is_over(c) || more > 1 || c->ready_for_caller.n > 0)
        ring(c); /* the thread that finished takes one of the ready tasks itself */
}

static void fail(pli_crew *c, plait_status status, const plait_error *error) {
    if (c->status == PLAIT_OK) {
        c->status = status;
        c->error = *error;
    }
    ring(c);
}

static loop *enter_open(pli_crew *c) {
    loop *best = NULL;
    for (int32_t i = 0; i < OPEN_MAX; i++) {
        loop *l = &c->open[i];
        if (l->task < 0 ||
            atomic_load_explicit(&l->next, memory_order_relaxed) >= c->plan->node[c->plan->task[l->task].first].items)
            continue;
        if (best == NULL || l->task < best->task) best = l;
    }
    if (best != NULL) best->inside++;
    return best;
}

/* Opens a shared task. NULL: as many are open as can be; then the thread that took the task runs it alone. */
static loop *open_loop(pli_crew *c, int32_t task) {
    for (int32_t i = 0; i < OPEN_MAX; i++) {
        if (c->open[i].task >= 0) continue;
        c->open[i].task = task;
        c->open[i].inside = 1;
        atomic_store_explicit(&c->open[i].next, 0, memory_order_relaxed);
        ring(c);
        return &c->open[i];
    }
    return NULL;
}

/* --- working, the lock let go ---------------------------------------------------------------------------------- */

static void run_loop(pli_crew *c, loop *l, int32_t thread) {
    const int32_t task = l->task, k = c->plan->task[task].first;
    const int64_t items = c->plan->node[k].items,
                  some = items / (8 * (int64_t)c->threads) > 0 ? items / (8 * (int64_t)c->threads) : 1;
    plait_error  error = { .code = PLAIT_OK };
    plait_status status = PLAIT_OK;
    pthread_mutex_unlock(&c->lock);
    while (status == PLAIT_OK) {
        const int64_t first = atomic_fetch_add_explicit(&l->next, some, memory_order_relaxed);
        if (first >= items) break;
        status = c->fn(c->user, k, first, first + some < items ? first + some : items, thread, &error);
    }
    lock(c);
    if (status != PLAIT_OK) fail(c, status, &error);
    if (--l->inside > 0) return;
    if (atomic_load_explicit(&l->next, memory_order_relaxed) < items) return; /* an item failed: not all were run */
    l->task = -1;
    finish(c, task);
}

static void run_task(pli_crew *c, int32_t task, int32_t thread) {
    plait_error  error = { .code = PLAIT_OK };
    plait_status status = PLAIT_OK;
    pthread_mutex_unlock(&c->lock);
    for (int32_t k = c->plan->task[task].first; status == PLAIT_OK && k < c->plan->task[task].end; k++)
        status = c->fn(c->user, k, 0, c->plan->node[k].items, thread, &error);
    lock(c);
    if (status != PLAIT_OK)
        fail(c, status, &error);
    else
        finish(c, task);
}

/* Does one piece of work; false: there is none now. */
static bool work_once(pli_crew *c, bool is_caller, int32_t thread) {
    int32_t task = is_caller ? pop(&c->ready_for_caller) : -1;
    if (task >= 0) {
        run_task(c, task, thread);
        return true;
    }
    loop *l = enter_open(c);
    if (l == NULL && (task = pop(&c->ready)) < 0) return false;
    if (l == NULL && c->plan->task[task].shared) l = open_loop(c, task);
    if (l != NULL)
        run_loop(c, l, thread);
    else
        run_task(c, task, thread);
    return true;
}

/* Spins for SPIN_NS without the lock; true: the bell was rung. */
static bool listen(pli_crew *c, uint32_t seen) {
    const uint64_t until = pli_now_ns() + SPIN_NS;
    bool           rung = false;
    pthread_mutex_unlock(&c->lock);
    while (!rung && pli_now_ns() < until) {
        pli_relax();
        rung = atomic_load_explicit(&c->bell, memory_order_relaxed) != seen;
    }
    lock(c);
    return rung || atomic_load_explicit(&c->bell, memory_order_relaxed) != seen;
}

static void work(void *user, int64_t i, int32_t thread) {
    (void)i;
    pli_crew *c = user;
    lock(c);
    const bool is_caller = pthread_equal(pthread_self(), c->caller) != 0;
    while (!is_over(c)) {
        if (work_once(c, is_caller, thread)) continue;
        const uint32_t seen = atomic_load_explicit(&c->bell, memory_order_relaxed);
        if (listen(c, seen)) continue;
        c->sleepers++;
        pthread_mutex_unlock(&c->lock);
        pli_futex_wait(&c->bell, seen, UINT64_MAX);
        lock(c);
        c->sleepers--;
    }
    pthread_mutex_unlock(&c->lock);
}

plait_status pli_crew_run(pli_crew *c, pli_pool *pool, pli_node_fn *fn, void *user, plait_error *err) {
    c->n_done = c->sleepers = c->ready.n = c->ready_for_caller.n = 0;
    c->status = PLAIT_OK;
    c->caller = pthread_self();
    c->fn = fn;
    c->user = user;
    c->threads = pli_pool_threads(pool);
    for (int32_t i = 0; i < OPEN_MAX; i++) c->open[i].task = -1;
    for (int32_t t = 0; t < c->plan->n_tasks; t++) {
        c->waits[t] = c->plan->task[t].waits;
        if (c->waits[t] == 0) become_ready(c, t);
    }
    pli_pool_for(pool, c->threads, work, c);
    if (c->status != PLAIT_OK && err != NULL) *err = c->error;
    return c->status;
}

/* --- life ------------------------------------------------------------------------------------------------------ */

plait_status pli_crew_create(const pli_plan *plan, pli_crew **crew_out, plait_error *err) {
    pli_crew *c = pli_calloc(1, sizeof *c);
    if (c == NULL) return pli_plan_no_memory(err);
    c->plan = plan;
    pthread_mutex_init(&c->lock, NULL);
    c->waits = pli_array((size_t)plan->n_tasks, sizeof *c->waits);
    c->ready.task = pli_array((size_t)plan->n_tasks, sizeof *c->ready.task);
    c->ready_for_caller.task = pli_array((size_t)plan->n_tasks, sizeof *c->ready.task);
    if (c->waits == NULL || c->ready.task == NULL || c->ready_for_caller.task == NULL) {
        pli_crew_destroy(&c);
        return pli_plan_no_memory(err);
    }
    *crew_out = c;
    return PLAIT_OK;
}

void pli_crew_destroy(pli_crew **crew) {
    pli_crew *c = *crew;
    if (c == NULL) return;
    pthread_mutex_destroy(&c->lock);
    pli_free(c->waits);
    pli_free(c->ready.task);
    pli_free(c->ready_for_caller.task);
    pli_free(c);
    *crew = NULL;
}
