/* Third pass: every get against what its worker had done by then and what its table's consistency promises. */
#include <string.h>

#include "watch/audit/model.h"

/* What a worker was last given of one shard, or of its replica. */
typedef struct last_seen {
    int64_t  own;           /* audit_contained's hint                                    */
    int64_t  first, rows;   /* the last read by range; rows 0: none                      */
    uint64_t version;       /* of that                                                   */
    bool     in_map, mixed; /* range and map know the same; rows were read by key since  */
    int64_t  needs, needs_of; /* after that many barriers: the version that must be there */
} last_seen;

typedef struct table_reads { /* of one table, by the worker */
    uint64_t     incs, left_incs; /* so far; of which never pushed, since it left */
    int64_t      pushes, oldest;  /* clock of the oldest inc not yet pushed       */
    last_seen   *shard;           /* [shards], or 1: the replica                  */
    pli_keymap   rows;            /* the sampled rows, and ... */
    uint64_t    *version;         /* [rows.n] ... the version in which each was read last */
    int64_t      capacity;
    audit_unseen unseen;
} table_reads;

typedef struct reader {
    int32_t rank;
    int64_t clock;
    bool    left;
    int64_t barriers;
    bool    after_barrier; /* and no clock since */
    table_reads *table;         /* [tables] */
} reader;

/* One piece of a get, as the checks look at it. */
typedef struct view {
    audit_table           *table;
    table_reads                 *reads;
    last_seen                  *seen;
    const pli_event       *event;
    const pli_event_piece *piece;
    int64_t                version;
    int64_t                missing, newest; /* turns of the others', see audit_state */
    int64_t                own;             /* pushes of the reader in the values    */
} view;

/* --- telling ------------------------------------------------------------------------------------------------------- */

static pli_audit_violation violation_of(const reader *r, const view *v, const char *rule) {
    return (pli_audit_violation){ .rule = rule, .rank = r->rank, .clock = r->clock, .has_row = true, .time_ns = v->event->time_ns,
                                  .row = v->piece->first >= 0 ? (uint64_t)v->piece->first : v->piece->keys[0] };
}

/* "rank 2 in clock 7 got row 17 of table w, at 0.5 s, from version 12 of shard 1" */
static void name_get(const pli_audit *audit, const reader *r, const view *v, uint64_t row, char text[256]) {
    int n = snprintf(text, 256, "rank %d in clock %lld got row %llu of table %s, at %.6f s, from version %llu of ", r->rank,
                     (long long)r->clock, (unsigned long long)row, v->table->name, audit_seconds(audit, v->event->time_ns),
                     (unsigned long long)v->piece->version);
    if (v->piece->shard < 0) snprintf(text + n, 256 - (size_t)n, "its replica");
    else snprintf(text + n, 256 - (size_t)n, "shard %d", v->piece->shard);
}

/* Which push a turn stands for: "push 4 of rank 0 (clock 3, sent at 0.1 s, applied at 0.6 s)". */
static void name_turn(const pli_audit *audit, const view *v, int64_t turn, bool newest, char text[256]) {
    int32_t             worker = (int32_t)(turn % audit->job.workers);
    int64_t             clock = turn / audit->job.workers, i = 0;
    const audit_pusher *pusher = &v->table->pusher[worker];
    while (i < pusher->n && pusher->push[i].clock < clock) i++;
    snprintf(text, 256, "the updates of clock %lld of rank %d", (long long)clock, worker);
    if (i == pusher->n || v->piece->shard < 0) return;
    const audit_holder *shard = &v->table->shard[v->piece->shard];
    const audit_sender *sender = shard->sender[worker];
    int64_t             p = 0; /* the first of the clock that is missing, or contained */
    if (sender == NULL) return;
    while (p < sender->n && (sender->part[p].push < i || (!newest && sender->part[p].at != PART_LOST && sender->part[p].at <= v->version))) p++;
    if (p == sender->n) return;
    const audit_part *part = &sender->part[p];
    int n = snprintf(text, 256, "push %lld of rank %d (clock %lld, sent at %.6f s, ", (long long)part->push + 1, worker,
                     (long long)clock, audit_seconds(audit, pusher->push[part->push].time_ns));
    if (part->at > 0)
        snprintf(text + n, 256 - (size_t)n, "applied at %.6f s as update %lld)",
                 audit_seconds(audit, shard->apply[part->at - 1].time_ns), (long long)part->at);
    else snprintf(text + n, 256 - (size_t)n, "never applied)");
}

static void misses(pli_audit *audit, const reader *r, const view *v, const char *rule) {
    char                got[256], push[256];
    pli_audit_violation what = violation_of(r, v, rule);
    name_get(audit, r, v, what.row, got);
    name_turn(audit, v, v->missing, false, push);
    audit_violation(audit, v->table, &what, "%s, which misses %s; %s promises it", got, push, v->table->promise.spec);
}

static void sees_too_much(pli_audit *audit, const reader *r, const view *v, const char *rule) {
    char                got[256], push[256];
    pli_audit_violation what = violation_of(r, v, rule);
    name_get(audit, r, v, what.row, got);
    name_turn(audit, v, v->newest, true, push);
    audit_violation(audit, v->table, &what, "%s, which holds %s; %s promises that it does not", got, push, v->table->promise.spec);
}

/* --- own updates ----------------------------------------------------------------------------------------------------- */

/* A version that holds what the reader has yet to push is not the one that it was given. */
static bool check_own_future(pli_audit *audit, const reader *r, const view *v) {
    int64_t own = v->piece->to > v->piece->from && v->piece->to > (uint64_t)v->own ? (int64_t)v->piece->to : v->own;
    if (own >= 0 && own <= v->reads->pushes) return true;
    char                got[256];
    pli_audit_violation violation = violation_of(r, v, "versions");
    name_get(audit, r, v, violation.row, got);
    audit_violation(audit, v->table, &violation, "%s, which holds its own push %lld before it was made", got, (long long)own);
    return false;
}

/* Was one of the reader's pushes from there on applied to the version? */
static bool holds_one_of(const reader *r, const view *v, uint64_t from) {
    if (v->piece->shard < 0) return true;
    const audit_sender *sender = v->table->shard[v->piece->shard].sender[r->rank];
    for (int64_t i = v->seen->own - 1; sender != NULL && i >= 0 && (uint64_t)sender->part[i].push >= from; i--)
        if (sender->part[i].at > 0 && sender->part[i].at <= v->version) return true;
    return false;
}

/* The pushes in the values, those laid over the copy, and no gap or overlap between them. */
static void check_own_pushes(pli_audit *audit, const reader *r, const view *v) {
    uint64_t own = (uint64_t)v->own, from = v->piece->from, to = v->piece->to, all = (uint64_t)v->reads->pushes;
    bool     laid = to > from;
    if (laid && own > from && !holds_one_of(r, v, from)) own = from; /* what was dropped is nowhere but in the copy */
    if ((!laid && own == all) || (laid && own == from && to == all)) return;
    char                got[256];
    bool                twice = laid && from < own;
    uint64_t            which = twice ? from : !laid || own < from ? own : to; /* index of the push that is wrong */
    pli_audit_violation violation = violation_of(r, v, "own updates");
    const audit_push *push = &v->table->pusher[r->rank].push[which];
    name_get(audit, r, v, violation.row, got);
    audit_violation(audit, v->table, &violation, "%s, with its own push %llu (clock %lld, sent at %.6f s) %s in it", got,
                    (unsigned long long)which + 1, (long long)push->clock, audit_seconds(audit, push->time_ns), twice ? "twice" : "not");
}

/* Ruled: the own pushes of earlier clocks. */
static void check_own_clocks(pli_audit *audit, const reader *r, const view *v) {
    const audit_pusher *pusher = &v->table->pusher[r->rank];
    int64_t             own = v->own; /* with those that the copy lacks, but that touch none of its rows */
    if (v->piece->from <= (uint64_t)own && v->piece->to > (uint64_t)own) own = (int64_t)v->piece->to;
    if (own >= v->reads->pushes || pusher->push[own].clock >= r->clock) return;
    char                got[256];
    pli_audit_violation violation = violation_of(r, v, "own updates");
    name_get(audit, r, v, violation.row, got);
    audit_violation(audit, v->table, &violation, "%s, without its own push %lld (clock %lld, sent at %.6f s)", got,
                    (long long)own + 1, (long long)pusher->push[own].clock, audit_seconds(audit, pusher->push[own].time_ns));
}

/* Additive: what was not pushed yet is laid over the values, all of it, once. */
static void check_own_incs(pli_audit *audit, const reader *r, const view *v) {
    const audit_pusher *pusher = &v->table->pusher[r->rank];
    uint64_t            pushed = v->reads->pushes == 0 ? 0 : pusher->push[v->reads->pushes - 1].incs;
    if (pushed < v->reads->left_incs) pushed = v->reads->left_incs;
    uint64_t pending = v->reads->incs - pushed;
    if (v->event->incs == pending) return;
    char                got[256];
    pli_audit_violation violation = violation_of(r, v, "own updates");
    name_get(audit, r, v, violation.row, got);
    audit_violation(audit, v->table, &violation, "%s, with %llu of its own %llu updates not yet pushed laid over it", got,
                    (unsigned long long)v->event->incs, (unsigned long long)pending);
}

/* --- a row never goes back ---------------------------------------------------------------------------------------------- */

static void went_back(pli_audit *audit, const reader *r, const view *v, uint64_t row, uint64_t before) {
    char                got[256];
    pli_audit_violation violation = violation_of(r, v, "monotone reads");
    violation.row = row;
    name_get(audit, r, v, row, got);
    audit_violation(audit, v->table, &violation, "%s, after it had got the row from version %llu", got, (unsigned long long)before);
}

static bool note_row(pli_audit *audit, const reader *r, const view *v, uint64_t row, uint64_t version, bool check) {
    table_reads  *reads = v->reads;
    int64_t known = reads->rows.n, at = pli_keymap_add(&reads->rows, row);
    if (at < 0 || !pli_grow((void **)&reads->version, &reads->capacity, reads->rows.n, sizeof *reads->version)) return false;
    if (check && at < known && version < reads->version[at]) went_back(audit, r, v, row, reads->version[at]);
    reads->version[at] = version;
    return true;
}

/* The sampled rows of a range: its first, and multiples of a power of two. */
static bool note_range(pli_audit *audit, const reader *r, const view *v, int64_t first, int64_t rows, uint64_t version, bool check) {
    uint64_t from = (uint64_t)first, end = from + (uint64_t)rows, step = UINT64_C(1) << pli_eventlog_sample_bits(rows);
    if (!note_row(audit, r, v, from, version, check)) return false;
    for (uint64_t at = (from / step + 1) * step; at < end; at += step)
        if (!note_row(audit, r, v, at, version, check)) return false;
    return true;
}

/* What the last range has seen is entered into the map before rows are looked up there. */
static bool settle(pli_audit *audit, const reader *r, const view *v) {
    last_seen *seen = v->seen;
    if (seen->rows == 0 || seen->in_map) return true;
    seen->in_map = true;
    return note_range(audit, r, v, seen->first, seen->rows, seen->version, false);
}

static bool check_range(pli_audit *audit, const reader *r, const view *v) {
    const pli_event_piece *piece = v->piece;
    last_seen                  *seen = v->seen;
    bool                   same = seen->rows == piece->rows && seen->first == piece->first;
    if (piece->rows == 0) return true;
    if (same && piece->version < seen->version) went_back(audit, r, v, (uint64_t)piece->first, seen->version);
    if (!same || seen->mixed) {
        if (!settle(audit, r, v) || !note_range(audit, r, v, piece->first, piece->rows, piece->version, true)) return false;
        seen->mixed = false;
    }
    seen->in_map = !same;
    seen->first = piece->first;
    seen->rows = piece->rows;
    seen->version = piece->version;
    return true;
}

static bool check_rows(pli_audit *audit, const reader *r, const view *v) {
    if (v->piece->first >= 0) return check_range(audit, r, v);
    if (!settle(audit, r, v)) return false;
    v->seen->mixed = true;
    for (int64_t i = 0; i < v->piece->n_keys; i++)
        if (!note_row(audit, r, v, v->piece->keys[i], v->piece->version, true)) return false;
    return true;
}

/* --- what is promised of the others ---------------------------------------------------------------------------------------- */

static int64_t clock_of(const pli_audit *audit, int64_t turn) { return turn == AUDIT_NEVER ? AUDIT_NEVER : turn / audit->job.workers; }

/* A worker whose clock was complete without it (backup workers) reads what the others have gone on to; what it pushes in
 * that clock, if anything, was dropped. */
static bool is_late(const pli_audit *audit, const reader *r, const view *v) {
    const audit_pusher *pusher = &v->table->pusher[r->rank];
    if (audit->job.backup == 0 || v->piece->shard < 0) return false;
    const audit_sender *sender = v->table->shard[v->piece->shard].sender[r->rank];
    for (int64_t i = v->seen->own; sender != NULL && i < sender->n; i++) {
        const audit_push *push = &pusher->push[sender->part[i].push];
        if (push->clock > r->clock) break;
        if (push->clock == r->clock && sender->part[i].at > 0) return false;
    }
    return true;
}

static void check_bound(pli_audit *audit, const reader *r, const view *v) {
    const pli_promise *promise = &v->table->promise;
    int32_t            workers = audit->job.workers;
    int64_t            turn = r->clock * workers + r->rank;
    int64_t            missing = clock_of(audit, v->missing);
    if (promise->bound >= 0 && missing < r->clock - promise->bound) misses(audit, r, v, "staleness");
    else if (promise->barrier > 0 && missing < r->clock - r->clock % promise->barrier) misses(audit, r, v, "barriers");
    if (r->left || (v->event->met && r->after_barrier)) return; /* the others go on without it; no turn was waited for */
    if (promise->turns && v->missing < turn) misses(audit, r, v, "turns");
    bool future = v->newest >= 0 && v->newest / workers >= r->clock;
    if (promise->exact && future && !is_late(audit, r, v)) sees_too_much(audit, r, v, "future");
    if (promise->turns && v->newest > turn) sees_too_much(audit, r, v, "turns");
}

static void check_age(pli_audit *audit, const reader *r, const view *v) {
    const pli_promise *promise = &v->table->promise;
    if (promise->fetch == 0 || v->piece->age < promise->fetch) return;
    char                got[256];
    pli_audit_violation violation = violation_of(r, v, "fetches");
    name_get(audit, r, v, violation.row, got);
    audit_violation(audit, v->table, &violation, "%s, asked for %lld clocks before; %s promises less than %lld", got,
                    (long long)v->piece->age, promise->spec, (long long)promise->fetch);
}

static void check_value(pli_audit *audit, const reader *r, const view *v) {
    const pli_promise *promise = &v->table->promise;
    if (!(promise->value > 0) || v->piece->shard < 0) return;
    double norm = audit_unseen_norm(audit, v->table, &v->reads->unseen, v->piece->shard, v->version, r->rank, v->event->asked_ns);
    if (norm < promise->value * (1 + 1e-6)) return;
    char                got[256];
    pli_audit_violation violation = violation_of(r, v, "values");
    name_get(audit, r, v, violation.row, got);
    audit_violation(audit, v->table, &violation, "%s, when it misses updates of norm %.9g%s; %s promises less than %.9g", got, norm,
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
            if (sender->part[middle].push < pushes) low = middle + 1;
            else high = middle;
        }
        for (; low > 0 && sender->part[low - 1].at < 0; low--) {}
        if (low > 0 && sender->part[low - 1].at > need) need = sender->part[low - 1].at;
    }
    return need;
}

static void check_barrier(pli_audit *audit, const reader *r, const view *v) {
    last_seen *seen = v->seen;
    if (!r->after_barrier || v->piece->shard < 0) return;
    const audit_holder *shard = &v->table->shard[v->piece->shard];
    if (seen->needs_of != r->barriers) seen->needs = needed_by(audit, v->table, shard, r->barriers);
    seen->needs_of = r->barriers;
    if (v->version >= seen->needs) return;
    char                got[256];
    const audit_apply  *apply = &shard->apply[seen->needs - 1];
    pli_audit_violation violation = violation_of(r, v, "barriers");
    name_get(audit, r, v, violation.row, got);
    audit_violation(audit, v->table, &violation, "%s, after barrier %lld, before which rank %d had sent what became its update %lld "
                    "at %.6f s", got, (long long)r->barriers, apply->worker, (long long)seen->needs,
                    audit_seconds(audit, apply->time_ns));
}

/* --- gets ------------------------------------------------------------------------------------------------------------------ */

static bool look_at_shard(pli_audit *audit, const reader *r, view *v) {
    const audit_holder *shard = &v->table->shard[v->piece->shard];
    if (v->piece->version > (uint64_t)shard->n) {
        char                got[256];
        pli_audit_violation violation = violation_of(r, v, "versions");
        name_get(audit, r, v, violation.row, got);
        audit_violation(audit, v->table, &violation, "%s, which has applied %lld updates in all", got, (long long)shard->n);
        return false;
    }
    v->version = (int64_t)v->piece->version;
    const audit_state *state = &shard->state[v->version];
    bool               first = state->missing != AUDIT_NEVER && state->missing % audit->job.workers == r->rank;
    bool               last = state->newest >= 0 && state->newest % audit->job.workers == r->rank;
    v->missing = first ? state->missing_other : state->missing;
    v->newest = last ? state->newest_other : state->newest;
    v->own = audit_contained(shard, r->rank, v->version, v->reads->pushes, &v->seen->own);
    return true;
}

/* A replica's version counts sums, each of a clock of all workers. */
static bool look_at_replica(pli_audit *audit, const reader *r, view *v) {
    const audit_replica *replica = &v->table->replica[r->rank];
    const audit_pusher  *pusher = &v->table->pusher[r->rank];
    if (v->piece->version > (uint64_t)replica->n) {
        char                got[256];
        pli_audit_violation violation = violation_of(r, v, "versions");
        name_get(audit, r, v, violation.row, got);
        audit_violation(audit, v->table, &violation, "%s, which has applied %lld sums in all", got, (long long)replica->n);
        return false;
    }
    v->version = (int64_t)v->piece->version;
    int64_t clock = v->version == 0 ? -1 : replica->sum[v->version - 1].clock;
    int32_t other = r->rank == 0 ? 1 : 0;
    bool    alone = audit->job.workers == 1;
    v->missing = alone || v->version == replica->n ? AUDIT_NEVER : replica->sum[v->version].clock * audit->job.workers + other;
    v->newest = alone || clock < 0 ? -1 : clock * audit->job.workers + other;
    int64_t *own = &v->seen->own;
    while (*own < pusher->n && pusher->push[*own].clock <= clock) (*own)++;
    while (*own > 0 && pusher->push[*own - 1].clock > clock) (*own)--;
    v->own = *own;
    return true;
}

static bool check_piece(pli_audit *audit, const reader *r, view *v) {
    if (!(v->piece->shard < 0 ? look_at_replica(audit, r, v) : look_at_shard(audit, r, v))) return true;
    if (!check_own_future(audit, r, v)) return true;
    if (v->table->ruled && v->piece->to == v->piece->from) check_own_clocks(audit, r, v); /* else steps of own pushes are laid over */
    else check_own_pushes(audit, r, v);
    check_bound(audit, r, v);
    check_age(audit, r, v);
    check_value(audit, r, v);
    check_barrier(audit, r, v);
    return check_rows(audit, r, v);
}

static void note_staleness(audit_table *table, int64_t staleness) {
    pli_audit_figures *figures = &table->figures;
    figures->gets++;
    figures->stale[staleness < PLI_AUDIT_BINS - 1 ? staleness : PLI_AUDIT_BINS - 1]++;
    figures->staleness_sum += staleness;
    if (staleness > figures->staleness_max) figures->staleness_max = staleness;
}

static plait_status on_get(pli_audit *audit, reader *r, audit_table *table, const pli_event *event, plait_error *err) {
    int64_t stale = 0;
    view    v = { .table = table, .reads = &r->table[event->table], .event = event };
    for (int64_t i = 0; i < event->n; i++) {
        v.piece = &event->info.piece[i];
        if ((v.piece->shard < 0) != (table->shards == 0) || v.piece->shard >= table->shards)
            return pli_fail(err, PLAIT_EFORMAT, "the event log contradicts itself: rank %d read a shard that is not there", r->rank);
        v.seen = &v.reads->shard[v.piece->shard < 0 ? 0 : v.piece->shard];
        v.missing = AUDIT_NEVER;
        if (!check_piece(audit, r, &v)) return audit_no_memory(err);
        int64_t missing = clock_of(audit, v.missing);
        if (missing < r->clock - stale) stale = r->clock - missing;
        if (i == 0 && !table->ruled) check_own_incs(audit, r, &v);
    }
    note_staleness(table, stale);
    return PLAIT_OK;
}

/* --- the worker's other events --------------------------------------------------------------------------------------------- */

/* downpour: an update leaves within P clocks. */
static void check_pushed(pli_audit *audit, const reader *r, audit_table *table, const table_reads *reads, const pli_event *event) {
    uint64_t pushed = reads->pushes == 0 ? 0 : table->pusher[r->rank].push[reads->pushes - 1].incs;
    if (table->promise.push == 0 || reads->incs <= pushed || reads->oldest + table->promise.push - 1 > event->clock) return;
    audit_violation(audit, table, &(pli_audit_violation){ .rule = "pushes", .rank = r->rank, .clock = event->clock,
                                                          .time_ns = event->time_ns },
                    "rank %d ended clock %lld at %.6f s with an update of clock %lld of table %s not yet pushed; %s promises it",
                    r->rank, (long long)event->clock, audit_seconds(audit, event->time_ns), (long long)reads->oldest, table->name,
                    table->promise.spec);
}

static void on_clock(pli_audit *audit, reader *r, const pli_event *event) {
    for (int64_t t = 0; t < audit->tables; t++)
        if (audit->table[t].known) check_pushed(audit, r, &audit->table[t], &r->table[t], event);
    r->clock = event->clock + 1;
    r->after_barrier = false;
}

static void on_inc(reader *r, const audit_table *table, table_reads *reads) {
    uint64_t pushed = reads->pushes == 0 ? 0 : table->pusher[r->rank].push[reads->pushes - 1].incs;
    if (reads->incs++ == pushed) reads->oldest = r->clock;
}

static plait_status on_event(pli_audit *audit, void *state, const pli_event *event, plait_error *err) {
    reader      *r = state;
    audit_table *table = audit_table_of(audit, event->table);
    switch (event->kind) {
    case PLI_EVENT_GET: return on_get(audit, r, table, event, err);
    case PLI_EVENT_INC:
        on_inc(r, table, &r->table[event->table]);
        return PLAIT_OK;
    case PLI_EVENT_PUSH: r->table[event->table].pushes++; return PLAIT_OK;
    case PLI_EVENT_CLOCK: on_clock(audit, r, event); return PLAIT_OK;
    case PLI_EVENT_BARRIER:
        r->barriers++;
        r->after_barrier = true;
        return PLAIT_OK;
    case PLI_EVENT_LEAVE:
        r->left = true;
        for (int64_t t = 0; t < audit->tables; t++) r->table[t].left_incs = r->table[t].incs;
        return PLAIT_OK;
    default: return PLAIT_OK;
    }
}

/* --- sums of replicas ------------------------------------------------------------------------------------------------------ */

/* Each replica applies the sums of the clocks one after the other, each once, and of every clock in which it pushed. */
static void check_sums(pli_audit *audit, audit_table *table, int32_t rank) {
    const audit_replica *replica = &table->replica[rank];
    const audit_worker  *worker = &audit->worker[rank];
    for (int64_t i = 0; i < replica->n; i++) {
        if (replica->sum[i].clock == i) continue;
        audit_violation(audit, table, &(pli_audit_violation){ .rule = "exactly once", .rank = rank, .clock = i, .time_ns = replica->sum[i].time_ns },
                        "the replica of table %s at rank %d applied the sum of clock %lld, when that of clock %lld was due",
                        table->name, rank, (long long)replica->sum[i].clock, (long long)i);
        return;
    }
    if (!worker->done || replica->n >= worker->clocks) return;
    audit_violation(audit, table, &(pli_audit_violation){ .rule = "exactly once", .rank = rank, .clock = replica->n, .time_ns = worker->ended_ns },
                    "the replica of table %s at rank %d never applied the sum of clock %lld", table->name, rank,
                    (long long)replica->n);
}

/* --- all workers --------------------------------------------------------------------------------------------------------------- */

static bool open_reads(const pli_audit *audit, const audit_table *table, table_reads *reads) {
    if (!table->known) return true;
    pli_keymap_init(&reads->rows);
    reads->shard = pli_calloc(table->shards == 0 ? 1 : (size_t)table->shards, sizeof *reads->shard);
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
    reader       r = { .rank = rank, .table = pli_calloc((size_t)audit->tables, sizeof *r.table) };
    plait_status status = r.table == NULL ? audit_no_memory(err) : PLAIT_OK;
    for (int64_t t = 0; status >= 0 && t < audit->tables; t++)
        if (!open_reads(audit, &audit->table[t], &r.table[t])) status = audit_no_memory(err);
    if (status >= 0) status = audit_stream(audit, audit->worker[rank].stream, on_event, &r, err);
    close_reader(audit, &r);
    return status;
}

plait_status audit_reads(pli_audit *audit, plait_error *err) {
    for (int32_t w = 0; w < audit->job.workers; w++) PLI_TRY(read_worker(audit, w, err));
    for (int64_t t = 0; t < audit->tables; t++) {
        audit_table *table = &audit->table[t];
        if (!table->known || table->shards != 0 || table->shared) continue;
        for (int32_t w = 0; w < audit->job.workers; w++) check_sums(audit, table, w);
    }
    return PLAIT_OK;
}
