/* Workers of several groups whose clocks end together (FELLOWS), as those of the stages of one replica do
 * (learn/net/outlive.h). Each group is judged by itself, so its audit cannot see that another stage of a replica has
 * ended a clock more, or holds another replica for dead. Here they are compared:
 *
 *   clocks   Fellows have ended as many clocks, as long as they end them together. If one of them has died, the others
 *            die with it: none is more than the clock ahead in which it died. The same holds if the run broke off.
 *   the dead A worker that stands in for a dead one has fellows that stand in, in the same clock, for the dead one's
 *            fellows. Member i of one group belongs together with member i of the others, so these have its number. */
#include <string.h>

#include "watch/audit/model.h"

plait_status audit_add_fellows(audit_worker *worker, const pli_event *event, plait_error *err) {
    if (event->n == 0) {
        if (worker->fellow != NULL && worker->parted == AUDIT_NEVER) worker->parted = event->clock;
        return PLAIT_OK;
    }
    pli_free(worker->fellow);
    worker->fellow = pli_array((size_t)event->n, sizeof *worker->fellow);
    if (worker->fellow == NULL) return audit_no_memory(err);
    memcpy(worker->fellow, event->info.fellow, (size_t)event->n * sizeof *worker->fellow);
    worker->fellows = (int32_t)event->n;
    worker->parted = AUDIT_NEVER;
    return PLAIT_OK;
}

/* A worker of a group. */
typedef struct member {
    pli_audit    *audit;
    int32_t       number, rank; /* rank: of the run */
    audit_worker *worker;
} member;

static member member_of(pli_audit *part, int32_t number) {
    return (member){ part, number, audit_rank(part, number), &part->worker[number] };
}

static bool has_fellow(const audit_worker *worker, int32_t rank) {
    for (int32_t i = 0; i < worker->fellows; i++)
        if (worker->fellow[i] == rank) return true;
    return false;
}

/* The clocks that a worker has ended together with its fellows. */
static int64_t together(const audit_worker *worker) {
    return worker->parted < worker->clocks ? worker->parted : worker->clocks;
}

static pli_audit_violation at_end_of(const member *m) {
    return (pli_audit_violation){
        .rule = "fellows", .rank = m->number, .clock = together(m->worker), .time_ns = m->worker->ended_ns
    };
}

static bool ends_well(const audit_worker *worker) { return worker->done && !worker->dead; }

static void check_clocks(const member *a, const member *b) {
    const int64_t most = ends_well(a->worker) && ends_well(b->worker) ? 0 : 1;
    const member *ahead = together(a->worker) > together(b->worker) ? a : b, *behind = ahead == a ? b : a;
    if (together(ahead->worker) - together(behind->worker) <= most) return;
    const pli_audit_violation v = at_end_of(ahead);
    audit_violation(ahead->audit, NULL, &v,
                    "rank %d (group %s) ended %lld clocks together with rank %d (group %s), which %s%lld", ahead->rank,
                    ahead->audit->group_name, (long long)together(ahead->worker), behind->rank,
                    behind->audit->group_name, behind->worker->dead ? "died after " : "ended ",
                    (long long)together(behind->worker));
}

/* The clock in which the worker has first told a server that it stands in for that one; AUDIT_NEVER: in none. */
static int64_t stood_in(const audit_worker *worker, int32_t whom) {
    int64_t first = AUDIT_NEVER;
    for (int64_t i = 0; i < worker->views; i++)
        if (worker->view[i].whom == whom && worker->view[i].clock < first) first = worker->view[i].clock;
    return first;
}

/* a stands in for its group's member `whom` in a clock that both have ended; b does not, or in another. */
static void tell_apart(const member *a, const member *b, int32_t whom, int64_t own, int64_t other) {
    char                      text[64];
    const pli_audit_violation v = { .rule = "fellows", .rank = a->number, .clock = own,
                                    .time_ns = a->worker->ended_ns };
    if (other == AUDIT_NEVER) snprintf(text, sizeof text, "never did for rank %d", audit_rank(b->audit, whom));
    else snprintf(text, sizeof text, "did for rank %d in clock %lld", audit_rank(b->audit, whom), (long long)other);
    audit_violation(a->audit, NULL, &v,
                    "rank %d (group %s) stood in for rank %d, which died, in clock %lld; rank %d (group %s), whose "
                    "clocks end with its own, %s", a->rank, a->audit->group_name, audit_rank(a->audit, whom),
                    (long long)own, b->rank, b->audit->group_name, text);
}

static void check_dead(const member *a, const member *b) {
    const int64_t ended = together(a->worker) < together(b->worker) ? together(a->worker) : together(b->worker);
    for (int32_t w = 0; w < a->audit->job.workers && w < b->audit->job.workers; w++) {
        const int64_t own = stood_in(a->worker, w), other = stood_in(b->worker, w);
        if (own < ended && own < other) tell_apart(a, b, w, own, other);
        else if (other < ended && other < own) tell_apart(b, a, w, other, own);
    }
}

/* Compares the worker with those of its fellows that have higher ranks, so that each pair is compared once. */
static void check_worker(const pli_audit *whole, const member *a) {
    for (int64_t i = 0; i < whole->parts; i++)
        for (int32_t w = 0; w < whole->part[i]->job.workers; w++) {
            const member b = member_of(whole->part[i], w);
            if (b.rank <= a->rank || !has_fellow(a->worker, b.rank) || !has_fellow(b.worker, a->rank) ||
                !b.audit->whole)
                continue;
            check_clocks(a, &b);
            check_dead(a, &b);
        }
}

void audit_check_fellows(pli_audit *whole) {
    for (int64_t i = 0; i < whole->parts; i++)
        for (int32_t w = 0; whole->part[i]->whole && w < whole->part[i]->job.workers; w++) {
            const member a = member_of(whole->part[i], w);
            if (a.worker->fellows > 0) check_worker(whole, &a);
        }
    for (int64_t i = 0; i < whole->parts; i++)
        if (whole->part[i]->whole && whole->part[i]->violations > 0) whole->part[i]->verdict = PLI_AUDIT_REFUTED;
}
