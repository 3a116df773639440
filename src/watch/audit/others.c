/* What a consistency promises of the updates of others, and what a barrier does. */
#include "watch/audit/reads.h"

int64_t audit_clock_of(const pli_audit *audit, int64_t turn) {
    return turn == AUDIT_NEVER ? AUDIT_NEVER : turn / audit->job.workers;
}

/* With backup workers a clock may be complete without a worker. That worker reads what the others have gone on to;
 * what it pushes in that clock, if anything, was dropped. */
static bool is_late(const pli_audit *audit, const reader *r, const view *v) {
    const audit_pusher *pusher = &v->table->pusher[r->rank];
    if (audit->job.backup == 0 || v->piece->shard < 0) return false;
    const audit_sender *sender = v->shard->sender[r->rank];
    for (int64_t i = v->seen->own; sender != NULL && i < sender->n; i++) {
        const audit_push *push = &pusher->push[sender->part[i].push];
        if (push->clock > r->clock) break;
        if (push->clock == r->clock && sender->part[i].at > 0) return false;
    }
    return true;
}

/* A stand-in may read the clock in which it stands in, in vain: that clock is over, though it has not heard so. Nobody
 * waits for one that has left with it: so that one may read any clock that the others have ended without it. */
static bool is_in_vain(const pli_audit *audit, const reader *r, const view *v) {
    const audit_server *server = v->piece->shard < 0 ? NULL : v->shard->of;
    const int64_t       newest = audit_clock_of(audit, v->newest);
    if (!r->stands || newest <= r->clock) return r->stands;
    if (server == NULL || server->ticks == NULL || audit_tick(server, r->rank, r->clock) == 0) return false;
    for (int64_t clock = r->clock + 1; clock <= newest; clock++)
        if (audit_tick(server, r->rank, clock) > 0) return false;
    return true;
}

static void check_bound(pli_audit *audit, const reader *r, const view *v) {
    const pli_promise *promise = &v->table->promise;
    int32_t            workers = audit->job.workers;
    int64_t            turn = r->clock * workers + r->rank;
    int64_t            missing = audit_clock_of(audit, v->missing);
    if (promise->bound >= 0 && missing < r->clock - promise->bound)
        audit_misses(audit, r, v, "staleness");
    else if (promise->barrier > 0 && missing < r->clock - r->clock % promise->barrier)
        audit_misses(audit, r, v, "barriers");
    if (r->left || (v->event->met && r->after_barrier)) return; /* the others go on without it; no turn was waited
                                                                   for */
    if (promise->turns && v->missing < turn) audit_misses(audit, r, v, "turns");
    const bool future = v->newest >= 0 && v->newest / workers >= r->clock && !is_in_vain(audit, r, v);
    if (promise->exact && future && !is_late(audit, r, v)) audit_sees_too_much(audit, r, v, "future");
    if (promise->turns && !r->stands && v->newest > turn) /* a stand-in has ended its turn */
        audit_sees_too_much(audit, r, v, "turns");
}

static void check_age(pli_audit *audit, const reader *r, const view *v) {
    const pli_promise *promise = &v->table->promise;
    if (promise->fetch == 0 || v->piece->age < promise->fetch) return;
    audit_wrong(audit, r, v, "fetches", "asked for %lld clocks before; %s promises less than %lld",
                (long long)v->piece->age, promise->spec, (long long)promise->fetch);
}

static void check_value(pli_audit *audit, const reader *r, const view *v) {
    const pli_promise *promise = &v->table->promise;
    if (!(promise->value > 0) || v->piece->shard < 0) return;
    double norm =
        audit_unseen_norm(audit, v->table, &v->reads->unseen, v->shard, v->version, r->rank, v->event->asked_ns);
    if (norm < promise->value * (1 + 1e-6)) return;
    audit_wrong(audit, r, v, "values", "when it misses updates of norm %.9g%s; %s promises less than %.9g", norm,
                promise->value_each ? " of one worker" : " of the others", promise->spec, promise->value);
}

/* The first version of the shard that holds all that was sent before everyone's barrier of that number. */
static int64_t needed_by(const pli_audit *audit, const audit_table *table, const audit_holder *shard, int64_t barrier) {
    int64_t need = 0;
    for (int32_t w = 0; w < audit->job.workers; w++) {
        const audit_pusher *pusher = &table->pusher[w];
        const audit_sender *sender = shard->sender[w];
        if (sender == NULL || pusher->barriers < barrier) continue;
        int64_t low = 0, high = sender->n, pushes = pusher->barrier[barrier - 1];
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (sender->part[middle].push < pushes)
                low = middle + 1;
            else
                high = middle;
        }
        for (; low > 0 && sender->part[low - 1].at < 0; low--) {}
        if (low > 0 && sender->part[low - 1].at > need) need = sender->part[low - 1].at;
    }
    return need;
}

static void check_barrier(pli_audit *audit, const reader *r, const view *v) {
    last_seen *seen = v->seen;
    if (!r->after_barrier || v->piece->shard < 0) return;
    const audit_holder *shard = v->shard;
    if (seen->needs_of != r->barriers || seen->needs_place != v->piece->place)
        seen->needs = needed_by(audit, v->table, shard, r->barriers);
    seen->needs_of = r->barriers;
    seen->needs_place = v->piece->place;
    if (v->version >= seen->needs) return;
    const audit_apply *apply = &shard->apply[seen->needs - 1];
    audit_wrong(audit, r, v, "barriers",
                "after barrier %lld, before which rank %d had sent what became its update %lld "
                "at %.6f s",
                (long long)r->barriers, audit_rank(audit, apply->worker), (long long)seen->needs,
                audit_seconds(audit, apply->time_ns));
}

void audit_check_others(pli_audit *audit, const reader *r, const view *v) {
    check_bound(audit, r, v);
    check_age(audit, r, v);
    check_value(audit, r, v);
    check_barrier(audit, r, v);
}
