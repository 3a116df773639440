/* Workers of one process move through the files side by side where nothing bounds them.
 *
 * Under async a worker may be anywhere ahead of the others. Where it learns from neighbouring rows of a sorted file
 * that costs losses: on a busy machine a worker that the system has put aside for some milliseconds is a label behind
 * when it comes back. So a worker that is ahead naps until the slowest one has come, ENOUGH_NS at most. This is no
 * bound: naps in vain take at most half of its time, so a worker that does not come holds nobody up.
 *
 * Workers that learn in the table's own memory see each other's steps at once. A few clocks between them cost nothing
 * there, and a nap costs time; so they may be an n-th of the pass apart (NEAR), which is far less than a label. */
#include "learn/linear/online.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { AHEAD = 1, NEAR = 256, NAP_NS = 50000, ENOUGH_NS = 20000000 };

/* How far a worker has come: its clocks, on a cache line of its own. */
struct pli_online_place {
    _Alignas(64) _Atomic int64_t clocks;
};

static void note(const pli_run *run, int64_t clocks) {
    const pli_online *o = pli_linear_fit_of(run)->online;
    atomic_store_explicit(&o->side.place[plait_comm_rank(run->comm)].clocks, clocks, memory_order_relaxed);
}

plait_status pli_online_side_begin(pli_run *run) {
    pli_online   *o = pli_linear_fit_of(run)->online;
    const int32_t workers = pli_run_holders(run);
    if (workers < 2 || o->paced || plait_comm_rank(run->comm) >= workers) return PLAIT_OK;
    if (!pli_comm_shares_process(run->comm) || pli_comm_charges(run->comm)) return PLAIT_OK; /* simulated time stands */
    o->side.place = pli_comm_shared(run->comm, "online: how far", (size_t)workers * sizeof *o->side.place);
    o->side.begun_ns = pli_now_ns();
    return o->side.place != NULL ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for the workers' places");
}

void pli_online_side_end(pli_run *run) {
    pli_online *o = pli_linear_fit_of(run)->online;
    if (o->side.place == NULL) return;
    note(run, INT64_MAX);
    pli_comm_shared_release(run->comm, o->side.place);
    o->side.place = NULL;
}

static bool is_ahead(const pli_run *run) {
    const pli_online *o = pli_linear_fit_of(run)->online;
    const int64_t     apart = o->in_place && run->clocks > AHEAD * NEAR ? run->clocks / NEAR : AHEAD;
    int64_t           slowest = INT64_MAX;
    for (int32_t w = 0; w < pli_run_holders(run); w++) {
        const int64_t clocks = atomic_load_explicit(&o->side.place[w].clocks, memory_order_relaxed);
        if (clocks < slowest) slowest = clocks;
    }
    return slowest < run->clocks_done - apart;
}

void pli_online_give_way(pli_run *run) {
    pli_online *o = pli_linear_fit_of(run)->online;
    sched_yield();
    if (o->side.place == NULL) return;
    note(run, run->clocks_done);
    const uint64_t since_ns = pli_now_ns();
    uint64_t       now_ns = since_ns;
    bool           ahead = is_ahead(run) && 2 * o->side.vain_ns <= since_ns - o->side.begun_ns;
    for (; ahead && now_ns - since_ns < ENOUGH_NS; now_ns = pli_now_ns()) {
        nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
        ahead = is_ahead(run);
    }
    if (ahead) o->side.vain_ns += now_ns - since_ns;
}
