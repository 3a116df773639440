/* Third pass: compares every get with what its worker had done by then, and with what its table's consistency
 * promises. */
#include <string.h>

#include "watch/audit/reads.h"

/* --- gets --------------------------------------------------------------------------------------------------------- */

/* A version counts what its holder has applied. */
static bool take_version(pli_audit *audit, const reader *r, view *v, int64_t applied, const char *what) {
    v->version = (int64_t)v->piece->version;
    if (v->piece->version <= (uint64_t)applied) return true;
    audit_wrong(audit, r, v, "versions", "which has applied %lld %s in all", (long long)applied, what);
    return false;
}

/* Does it take the log of the replica at the place, from that one or from others in between? */
static bool takes_log_of(const pli_audit *audit, const audit_server *replica, int32_t place) {
    while (replica != NULL && replica->source > place)
        replica = audit_replica_at(audit, replica->home, replica->source);
    return replica != NULL && replica->source == place;
}

/* The holder whose log tells of a version. Until another replica took over, both logs tell what was applied, and the
 * first may be cut. NULL: none tells. */
static const audit_holder *teller_of(const pli_audit *audit, const view *v, const audit_holder *own) {
    const audit_shard *all = &v->table->shard[v->piece->shard];
    if (own == NULL || v->piece->version <= (uint64_t)own->n || own->of == NULL || !own->of->cut) return own;
    for (int32_t i = 0; i < all->replicas; i++) {
        const audit_holder *other = &all->replica[i];
        const int64_t       same = other->led < other->n ? other->led : other->n;
        if (takes_log_of(audit, other->of, own->of->place) && v->piece->version <= (uint64_t)same) return other;
    }
    return NULL;
}

/* The replica that answered must exist; or it is one of which a cut log does not tell. */
static bool has_answered(const pli_audit *audit, const view *v, const audit_holder *own) {
    const int32_t home = v->table->shard[v->piece->shard].home;
    return own != NULL || audit_is_dead(audit, audit_rank_of(audit, home, v->piece->place));
}

static bool look_at_shard(pli_audit *audit, const reader *r, view *v) {
    const audit_holder *own = audit_holder_of(audit, v->table, v->piece->shard, v->piece->place);
    if (!has_answered(audit, v, own)) {
        audit_wrong(audit, r, v, "versions", "where there was no whole replica");
        return false;
    }
    const audit_holder *shard = v->shard = teller_of(audit, v, own);
    if (shard == NULL) {
        v->unjudged = true;
        return false;
    }
    if (!take_version(audit, r, v, shard->n, "updates")) return false;
    const audit_state *state = &shard->state[v->version];
    bool               first = state->missing != AUDIT_NEVER && state->missing % audit->job.workers == r->rank;
    bool               last = state->newest >= 0 && state->newest % audit->job.workers == r->rank;
    v->missing = first ? state->missing_other : state->missing;
    v->newest = last ? state->newest_other : state->newest;
    v->own = audit_contained(shard, r->rank, v->version, v->reads->pushes, &v->seen->own);
    return true;
}

/* A mirror's version counts sums, each of a clock of all workers. */
static bool look_at_mirror(pli_audit *audit, const reader *r, view *v) {
    const audit_mirror *mirror = &v->table->mirror[r->rank];
    const audit_pusher  *pusher = &v->table->pusher[r->rank];
    if (!take_version(audit, r, v, mirror->n, "sums")) return false;
    int64_t clock = v->version == 0 ? -1 : mirror->sum[v->version - 1].clock;
    int32_t other = r->rank == 0 ? 1 : 0;
    bool    alone = audit->job.workers == 1;
    v->missing =
        alone || v->version == mirror->n ? AUDIT_NEVER : mirror->sum[v->version].clock * audit->job.workers + other;
    v->newest = alone || clock < 0 ? -1 : clock * audit->job.workers + other;
    int64_t *own = &v->seen->own;
    while (*own < pusher->n && pusher->push[*own].clock <= clock) (*own)++;
    while (*own > 0 && pusher->push[*own - 1].clock > clock) (*own)--;
    v->own = *own;
    return true;
}

/* A copy's version counts the own pushes that moved it. copies.c checks which copies of others it was mixed with. */
static bool look_at_copy(pli_audit *audit, const reader *r, view *v) {
    if (!take_version(audit, r, v, v->table->pusher[r->rank].n, "own updates")) return false;
    v->own = v->version;
    return true;
}

static bool check_piece(pli_audit *audit, const reader *r, view *v) {
    if (v->table->way == PLI_WAY_AVERAGED) {
        if (look_at_copy(audit, r, v)) (void)audit_check_own(audit, r, v);
        return true;
    }
    if (!(v->piece->shard < 0 ? look_at_mirror(audit, r, v) : look_at_shard(audit, r, v))) return true;
    if (!audit_check_own(audit, r, v)) return true;
    audit_check_others(audit, r, v);
    audit_check_zeroed(audit, r, v);
    audit_check_called(audit, r, v);
    return v->overtaken || audit_check_rows(audit, r, v);
}

/* If two gets are under way at once, the one that was begun later may be newer, in whatever order they are looked
 * at. */
static bool is_overtaken(table_reads *reads, const pli_event *event) {
    if (event->asked_ns < reads->asked_ns || (event->asked_ns == reads->asked_ns && event->asked_ns < reads->given_ns))
        return true;
    reads->asked_ns = event->asked_ns;
    reads->given_ns = event->time_ns;
    return false;
}

static void note_staleness(audit_table *table, int64_t staleness) {
    pli_audit_figures *figures = &table->figures;
    figures->gets++;
    if (table->way == PLI_WAY_AVERAGED) return; /* a copy holds a share of others' updates, so it has no age in
                                                 * clocks */
    figures->stale[staleness < PLI_AUDIT_BINS - 1 ? staleness : PLI_AUDIT_BINS - 1]++;
    figures->staleness_sum += staleness;
    if (staleness > figures->staleness_max) figures->staleness_max = staleness;
}

static plait_status on_get(pli_audit *audit, reader *r, audit_table *table, const pli_event *event, plait_error *err) {
    int64_t stale = 0;
    view    v = { .table = table, .reads = &r->table[event->table], .event = event };
    v.overtaken = is_overtaken(v.reads, event);
    for (int64_t i = 0; i < event->n; i++) {
        v.piece = &event->info.piece[i];
        if ((v.piece->shard < 0) != (table->way != PLI_WAY_SERVED) || v.piece->shard >= table->shards ||
            v.piece->place >= audit->places)
            return pli_fail(err, PLAIT_EFORMAT,
                            "the event log contradicts itself: rank %d read a shard that is not there",
                            audit_rank(audit, r->rank));
        v.seen = &v.reads->shard[v.piece->shard < 0 ? 0 : v.piece->shard];
        v.missing = AUDIT_NEVER;
        if (!check_piece(audit, r, &v)) return audit_no_memory(err);
        int64_t missing = audit_clock_of(audit, v.missing);
        if (missing < r->clock - stale) stale = r->clock - missing;
        if (i == 0 && !table->ruled) audit_check_own_incs(audit, r, &v);
    }
    note_staleness(table, stale);
    table->figures.unjudged += v.unjudged;
    v.reads->got = r->clock;
    return PLAIT_OK;
}

/* --- the worker's other events ------------------------------------------------------------------------------------ */

/* The oldest clock whose updates need not have left when a clock ends. All leave with their own clock; under downpour
 * within P clocks. A mirror's leave just behind the clock's end. */
static int64_t may_stay(const audit_table *table, int64_t clock) {
    const pli_promise *promise = &table->promise;
    if (!promise->known) return INT64_MIN;
    return clock + 1 - (promise->push > 0 ? promise->push - 1 : 0) -
           (table->way == PLI_WAY_SUMMED || table->way == PLI_WAY_AVERAGED);
}

/* from: the oldest clock whose updates may be left. */
static void check_pushed(pli_audit *audit, const reader *r, int32_t t, int64_t from, const pli_event *event) {
    audit_table       *table = &audit->table[t];
    const table_reads *reads = &r->table[t];
    uint64_t           pushed = reads->pushes == 0 ? 0 : table->pusher[r->rank].push[reads->pushes - 1].incs;
    if (table->way == PLI_WAY_SHARED || r->left || reads->incs <= pushed || reads->oldest >= from) return;
    audit_violation(
        audit, table,
        &(pli_audit_violation){ .rule = "pushes", .rank = r->rank, .clock = r->clock, .time_ns = event->time_ns },
        "rank %d %s clock %lld at %.6f s with an update of clock %lld of table %s not yet pushed; %s promises it",
        audit_rank(audit, r->rank),
        event->kind == PLI_EVENT_CLOCK     ? "ended"
        : event->kind == PLI_EVENT_BARRIER ? "passed a barrier in"
                                           : "ended its part in",
        (long long)r->clock, audit_seconds(audit, event->time_ns), (long long)reads->oldest, table->name,
        table->promise.spec);
}

static void on_clock(pli_audit *audit, reader *r, const pli_event *event) {
    for (int32_t t = 0; t < audit->tables; t++)
        if (audit->table[t].known) check_pushed(audit, r, t, may_stay(&audit->table[t], event->clock), event);
    r->clock = event->clock + 1;
    r->after_barrier = r->stands = false;
}

/* At a barrier, and when it leaves, a worker must have sent all updates of clocks that it has ended. */
static void check_all_pushed(pli_audit *audit, const reader *r, const pli_event *event) {
    for (int32_t t = 0; t < audit->tables; t++)
        if (audit->table[t].known) check_pushed(audit, r, t, r->clock, event);
}

static void on_stand(const pli_audit *audit, reader *r) {
    r->stands = true;
    for (int32_t t = 0; t < audit->tables; t++)
        if (audit->table[t].known && audit->table[t].way == PLI_WAY_SUMMED) r->table[t].stood_incs = r->table[t].incs;
}

static void on_inc(reader *r, const audit_table *table, table_reads *reads) {
    uint64_t pushed = reads->pushes == 0 ? 0 : table->pusher[r->rank].push[reads->pushes - 1].incs;
    if (reads->incs++ == pushed) reads->oldest = r->clock;
}

/* In rounds of several clocks a push is the way that a copy has come in its round. It leaves at the end of the round,
 * and starts from the values that the round began with, which the worker must have got in it. */
static void check_way(pli_audit *audit, const reader *r, audit_table *table, const pli_event *event) {
    int64_t clocks = table->promise.rounds, begun = event->clock - clocks + 1;
    bool    ends = clocks <= 1 || (event->clock + 1) % clocks == 0,
         began = clocks <= 1 || r->table[event->table].got >= begun;
    if (table->way == PLI_WAY_AVERAGED || (ends && began)) return;
    audit_violation(
        audit, table,
        &(pli_audit_violation){ .rule = "rounds", .rank = r->rank, .clock = event->clock, .time_ns = event->time_ns },
        "rank %d pushed to table %s at %.6f s in clock %lld, %s; %s promises it", audit_rank(audit, r->rank),
        table->name, audit_seconds(audit, event->time_ns), (long long)event->clock,
        ends ? "but had not got in this round what it began with" : "in the middle of a round", table->promise.spec);
}

static plait_status on_event(pli_audit *audit, void *state, const pli_event *event, plait_error *err) {
    reader      *r = state;
    audit_table *table = audit_table_of(audit, event->table);
    switch (event->kind) {
    case PLI_EVENT_GET: return on_get(audit, r, table, event, err);
    case PLI_EVENT_INC:
        on_inc(r, table, &r->table[event->table]);
        return PLAIT_OK;
    case PLI_EVENT_PUSH:
        check_way(audit, r, table, event);
        r->table[event->table].pushes++;
        return PLAIT_OK;
    case PLI_EVENT_CLOCK: on_clock(audit, r, event); return PLAIT_OK;
    case PLI_EVENT_ZERO: r->table[event->table].zeros += event->shard != PLI_ZERO_DROP; return PLAIT_OK;
    case PLI_EVENT_CALL:
        for (int32_t t = 0; t < event->info.call->tables; t++) r->table[event->info.call->table[t]].calls++;
        return PLAIT_OK;
    case PLI_EVENT_STAND: on_stand(audit, r); return PLAIT_OK;
    case PLI_EVENT_BARRIER:
        check_all_pushed(audit, r, event);
        r->barriers++;
        r->after_barrier = true;
        return PLAIT_OK;
    case PLI_EVENT_DONE: check_all_pushed(audit, r, event); return PLAIT_OK;
    case PLI_EVENT_LEAVE:
        check_all_pushed(audit, r, event);
        r->left = true;
        for (int64_t t = 0; t < audit->tables; t++) r->table[t].left_incs = r->table[t].incs;
        return PLAIT_OK;
    default: return PLAIT_OK;
    }
}

/* --- sums of mirrors --------------------------------------------------------------------------------------------- */

/* Each mirror applies the sums one after the other, each once: one for each clock, or in rounds of several for the
 * last clock of each. It applies every sum in which it has pushed. */
static void check_sums(pli_audit *audit, audit_table *table, int32_t rank) {
    const audit_mirror *mirror = &table->mirror[rank];
    const audit_worker  *worker = &audit->worker[rank];
    int64_t              every = table->promise.rounds > 1 ? table->promise.rounds : 1;
    const int64_t        first = audit->first_clock / every; /* rounds before the job began */
    for (int64_t i = 0; i < mirror->n; i++) {
        int64_t due = (first + i + 1) * every - 1;
        if (mirror->sum[i].clock == due) continue;
        audit_violation(
            audit, table,
            &(pli_audit_violation){
                .rule = "exactly once", .rank = rank, .clock = due, .time_ns = mirror->sum[i].time_ns },
            "the mirror of table %s at rank %d applied the sum of clock %lld, when that of clock %lld was due",
            table->name, audit_rank(audit, rank), (long long)mirror->sum[i].clock, (long long)due);
        return;
    }
    int64_t next = (first + mirror->n + 1) * every - 1;
    const int64_t dropped = table->pusher[rank].dropped;
    if (!worker->done || next >= worker->clocks || (dropped > 0 && next >= dropped - 1)) return;
    audit_violation(audit, table,
                    &(pli_audit_violation){
                        .rule = "exactly once", .rank = rank, .clock = next, .time_ns = worker->ended_ns },
                    "the mirror of table %s at rank %d never applied the sum of clock %lld", table->name,
                    audit_rank(audit, rank), (long long)next);
}

/* --- all workers -------------------------------------------------------------------------------------------------- */

static bool open_reads(const pli_audit *audit, const audit_table *table, table_reads *reads) {
    if (!table->known) return true;
    pli_keymap_init(&reads->rows);
    reads->shard = pli_calloc(table->way != PLI_WAY_SERVED ? 1 : (size_t)table->shards, sizeof *reads->shard);
    if (reads->shard == NULL) return false;
    return !(table->promise.value > 0) || audit_unseen_open(audit, table, &reads->unseen);
}

static void close_reader(const pli_audit *audit, reader *r) {
    for (int64_t t = 0; r->table != NULL && t < audit->tables; t++) {
        pli_free(r->table[t].shard);
        pli_free(r->table[t].version);
        pli_keymap_destroy(&r->table[t].rows);
        audit_unseen_close(&r->table[t].unseen);
    }
    pli_free(r->table);
}

static plait_status read_worker(pli_audit *audit, int32_t rank, plait_error *err) {
    reader       r = { .rank = rank,
                       .clock = audit->first_clock,
                       .table = pli_calloc((size_t)audit->tables, sizeof *r.table) };
    plait_status status = r.table == NULL ? audit_no_memory(err) : PLAIT_OK;
    for (int64_t t = 0; status >= 0 && t < audit->tables; t++)
        if (!open_reads(audit, &audit->table[t], &r.table[t])) status = audit_no_memory(err);
    if (status >= 0 && audit->worker[rank].stream >= 0)
        status = audit_stream(audit, audit->worker[rank].stream, on_event, &r, err);
    close_reader(audit, &r);
    return status;
}

plait_status audit_reads(pli_audit *audit, plait_error *err) {
    for (int32_t w = 0; w < audit->job.workers; w++) PLI_TRY(read_worker(audit, w, err));
    for (int64_t t = 0; t < audit->tables; t++) {
        audit_table *table = &audit->table[t];
        if (!table->known || table->way != PLI_WAY_SUMMED) continue;
        for (int32_t w = 0; w < audit->job.workers; w++) check_sums(audit, table, w);
    }
    return PLAIT_OK;
}
