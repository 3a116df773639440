/* Second pass: what each shard has applied. Every part that was sent must be applied there once, in the order of its
 * sender, or be dropped by a backup rule. Then each version of the shard gets its state. */
#include <string.h>

#include "watch/audit/model.h"

/* --- parts and their applications --------------------------------------------------------------------------------- */

/* The index of the part that the message carried, or -1. Most come in order. */
static int64_t find_part(audit_sender *sender, uint64_t seq) {
    if (sender == NULL) return -1;
    if (sender->next < sender->n && sender->part[sender->next].seq == seq) return sender->next++;
    int64_t low = 0, high = sender->n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (sender->part[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == sender->n || sender->part[low].seq != seq) return -1;
    sender->next = low + 1;
    return low;
}

static const audit_push *push_of(const audit_table *table, int32_t worker, const audit_part *part) {
    return &table->pusher[worker].push[part->push];
}

/* The words for a push and where it went: "push 7 (of clock 3, sent at 0.1 s) of rank 1 to shard 0 of table w". */
static void name_push(const pli_audit *audit, const audit_table *table, int32_t worker, const audit_holder *shard,
                      const audit_part *part, char text[256]) {
    const audit_push *push = push_of(table, worker, part);
    char              replica[48];
    int n = snprintf(text, 256, "push %lld (of clock %lld, sent at %.6f s) of rank %d to shard %d of table %s",
                     (long long)part->push + 1, (long long)push->clock, audit_seconds(audit, push->time_ns),
                     audit_rank(audit, worker), shard->shard, table->name);
    if (shard->of != NULL && shard->of->place > 0)
        snprintf(text + n, 256 - (size_t)n, ", in the replica of %s,", audit_name_replica(audit, shard->of, replica));
}

static pli_audit_violation violation_of(const audit_table *table, int32_t worker, const audit_part *part,
                                        uint64_t time_ns) {
    return (pli_audit_violation){
        .rule = "exactly once", .rank = worker, .clock = push_of(table, worker, part)->clock, .time_ns = time_ns
    };
}

static void applied_again(pli_audit *audit, audit_table *table, const audit_holder *shard, const pli_event *event,
                          const audit_part *part) {
    char                name[256];
    pli_audit_violation v = violation_of(table, event->peer, part, event->time_ns);
    table->figures.again += table->repeats && part->at > 0;
    if (table->repeats && part->at > 0) return;
    name_push(audit, table, event->peer, shard, part, name);
    if (part->at == PART_DROPPED)
        audit_violation(audit, table, &v, "%s was dropped and yet applied at %.6f s", name,
                        audit_seconds(audit, event->time_ns));
    else
        audit_violation(audit, table, &v,
                        "%s was applied twice: at %.6f s as its update %lld, and at %.6f s as its update %lld", name,
                        audit_seconds(audit, shard->apply[part->at - 1].time_ns), (long long)part->at,
                        audit_seconds(audit, event->time_ns), (long long)shard->n);
}

/* The number by which a push has its turn in its clock: the worker's; of what it made in dead ones' stead the highest
 * of theirs. */
static int32_t number_of(const pli_audit *audit, const audit_table *table, const audit_holder *shard, int32_t worker,
                         const audit_part *part) {
    const audit_worker *w = &audit->worker[worker];
    int32_t             highest = -1;
    int64_t             i = 0;
    if (!push_of(table, worker, part)->stands || shard->of == NULL) return audit_rank(audit, worker);
    while (i < w->views && (w->view[i].server != shard->of->home || w->view[i].seq < part->seq)) i++;
    for (const int64_t first = i; i < w->views; i++) {
        const struct audit_view *view = &w->view[i];
        if (view->server == shard->of->home && view->seq == w->view[first].seq &&
            audit_rank(audit, view->whom) > highest)
            highest = audit_rank(audit, view->whom);
    }
    return highest < 0 ? audit_rank(audit, worker) : highest;
}

/* If rows are replaced and whole clocks are applied, the pushes of a clock must come in the order of workers. Several
 * may have been made in one's stead. */
static void check_turn(pli_audit *audit, audit_table *table, const audit_holder *shard, const pli_event *event,
                       const audit_part *part) {
    if (!table->replaces || !table->promise.exact || shard->n < 2) return;
    const audit_apply *before = &shard->apply[shard->n - 2];
    if (before->part < 0) return;
    const audit_part *last = &shard->sender[before->worker]->part[before->part];
    const int64_t     clock = push_of(table, event->peer, part)->clock;
    const int64_t     other = push_of(table, before->worker, last)->clock;
    const int32_t     number = number_of(audit, table, shard, event->peer, part);
    const int32_t     below = number_of(audit, table, shard, before->worker, last);
    if (other < clock || (other == clock && (below < number || (below == number && before->worker != event->peer))))
        return;
    char                name[256];
    pli_audit_violation v = violation_of(table, event->peer, part, event->time_ns);
    v.rule = "the last counts";
    name_push(audit, table, event->peer, shard, part, name);
    audit_violation(audit, table, &v,
                    "%s was applied at %.6f s behind a push of rank %d of clock %lld, whose rows it replaces", name,
                    audit_seconds(audit, event->time_ns), audit_rank(audit, before->worker), (long long)other);
}

static void apply_part(pli_audit *audit, audit_table *table, audit_holder *shard, const pli_event *event, int64_t i) {
    audit_part *part = &shard->sender[event->peer]->part[i];
    if (part->at != PART_LOST) {
        applied_again(audit, table, shard, event, part);
        return;
    }
    part->at = shard->n;
    check_turn(audit, table, shard, event, part);
    if (event->clock == push_of(table, event->peer, part)->clock) return;
    char                name[256];
    pli_audit_violation v = violation_of(table, event->peer, part, event->time_ns);
    v.rule = "clocks";
    name_push(audit, table, event->peer, shard, part, name);
    audit_violation(audit, table, &v, "%s was applied at %.6f s as one of clock %lld", name,
                    audit_seconds(audit, event->time_ns), (long long)event->clock);
}

/* A worker whose log is cut (with replicas) may have sent a message that the log lacks. Such messages come once, and in
 * order. */
static bool may_have_sent(const pli_audit *audit, audit_holder *shard, const pli_event *event) {
    audit_sender  *sender = shard->sender[event->peer];
    const uint64_t known = sender == NULL ? 0 : sender->n == 0 ? sender->unknown : sender->part[sender->n - 1].seq;
    if (!audit->worker[event->peer].cut || event->seq <= known) return false;
    if (sender == NULL) return true;
    bool next = event->seq > sender->unknown;
    sender->unknown = event->seq;
    return next;
}

static plait_status on_apply(pli_audit *audit, audit_table *table, const pli_event *event, plait_error *err) {
    audit_holder *shard = audit_holder_of(audit, table, event->shard, event->place);
    int64_t       i = find_part(shard->sender[event->peer], event->seq);
    char          replica[48];
    if (!pli_grow((void **)&shard->apply, &shard->capacity, shard->n + 1, sizeof *shard->apply))
        return audit_no_memory(err);
    shard->apply[shard->n++] = (audit_apply){ .worker = event->peer, .part = i, .time_ns = event->time_ns };
    shard->of->used = true;
    if (i >= 0)
        apply_part(audit, table, shard, event, i);
    else if (!may_have_sent(audit, shard, event))
        audit_violation(
            audit, table,
            &(pli_audit_violation){
                .rule = "exactly once", .rank = event->peer, .clock = event->clock, .time_ns = event->time_ns },
            "shard %d of table %s, at %s, applied at %.6f s, in message %llu of rank %d, an update that was never sent",
            event->shard, table->name, audit_name_replica(audit, shard->of, replica),
            audit_seconds(audit, event->time_ns), (unsigned long long)event->seq, audit_rank(audit, event->peer));
    return PLAIT_OK;
}

/* By a backup rule the server drops a push that comes when the clock is complete without it: all other workers but
 * `backup`, or all that are still there, have ended it. (So no more than `backup` workers can be too late for a clock.)
 * Whether one that left was still there the log of the server does not say; one that had ended the clock counts as
 * there and as having ended it. */
static bool is_late(const pli_audit *audit, const audit_server *server, const pli_event *event) {
    int64_t there = 0, ended = 0, needed = audit->ranked - audit->job.backup;
    for (int32_t w = 0; w < audit->job.workers; w++) {
        const audit_worker *worker = &audit->worker[w];
        bool                has_ended = server->ticks[w].n > event->clock;
        there += has_ended || !(worker->dead || (worker->left && worker->clocks <= event->clock));
        ended += has_ended && w != event->peer;
    }
    return ended >= (there < needed ? there : needed);
}

static void on_drop(pli_audit *audit, audit_table *table, const audit_server *server, const pli_event *event) {
    audit_holder *shard = audit_holder_of(audit, table, event->shard, event->place);
    int64_t       i = find_part(shard->sender[event->peer], event->seq);
    table->figures.dropped++;
    if (i < 0) return; /* dropping what was never sent does no harm */
    audit_part         *part = &shard->sender[event->peer]->part[i];
    double              at = audit_seconds(audit, event->time_ns);
    char                name[256];
    pli_audit_violation v = violation_of(table, event->peer, part, event->time_ns);
    name_push(audit, table, event->peer, shard, part, name);
    if (audit->job.backup == 0 && table->promise.known)
        audit_violation(audit, table, &v, "%s was dropped at %.6f s, which no rule of this job allows", name, at);
    else if (table->promise.known && !is_late(audit, server, event))
        audit_violation(audit, table, &v, "%s was dropped at %.6f s, when the clock was not complete without it", name,
                        at);
    if (part->at > 0)
        audit_violation(audit, table, &v, "%s was applied and yet reported as dropped at %.6f s", name, at);
    else
        part->at = PART_DROPPED;
}

static plait_status on_tick(pli_audit *audit, audit_server *server, const pli_event *event, plait_error *err) {
    const int32_t worker = audit_who_was_away(audit, server, event);
    audit_ticks  *ticks = &server->ticks[worker < 0 ? 0 : worker];
    char          replica[48];
    if (event->clock < audit->first_clock || worker < 0) return PLAIT_OK; /* a server enters all clocks before that */
    const bool    begins = worker >= audit->ranked && ticks->n == audit->first_clock; /* a later life */
    const int64_t empty = begins ? event->clock : audit->first_clock; /* nothing is told of clocks before */
    const int64_t due = begins ? event->clock : ticks->n;
    if (begins) ticks->from = event->clock;
    server->used = true;
    if (event->clock != due)
        audit_violation(audit, NULL,
                        &(pli_audit_violation){
                            .rule = "clocks", .rank = worker, .clock = event->clock, .time_ns = event->time_ns },
                        "the server of %s took the end of clock %lld of rank %d at %.6f s, when clock %lld was due",
                        audit_name_replica(audit, server, replica), (long long)event->clock,
                        audit_rank(audit, worker), audit_seconds(audit, event->time_ns), (long long)due);
    ticks->n = event->clock + 1;
    if (audit->places < 2) return PLAIT_OK;
    if (ticks->told < empty) {
        if (!pli_grow((void **)&ticks->seq, &ticks->capacity, empty, sizeof *ticks->seq)) return audit_no_memory(err);
        memset(ticks->seq + ticks->told, 0, (size_t)(empty - ticks->told) * sizeof *ticks->seq);
        ticks->told = empty;
    }
    if (event->clock != ticks->told) return PLAIT_OK;
    if (!pli_grow((void **)&ticks->seq, &ticks->capacity, ticks->told + 1, sizeof *ticks->seq))
        return audit_no_memory(err);
    ticks->seq[ticks->told++] = event->seq;
    return PLAIT_OK;
}

/* From here on the replica continues by itself. */
static void on_serve(pli_audit *audit, const audit_server *replica) {
    for (int64_t t = 0; t < audit->tables; t++)
        for (int32_t s = 0; audit->table[t].known && s < audit->table[t].shards; s++) {
            if (audit->table[t].shard[s].home != replica->home) continue;
            audit_holder *shard = audit_holder_of(audit, &audit->table[t], s, replica->place);
            if (shard->led == AUDIT_NEVER) shard->led = shard->n;
        }
}

/* Forgets what a replica did before it was made for the last time: that is not in its history. */
static plait_status on_copy(const pli_audit *audit, audit_server *replica, plait_error *err) {
    if (--replica->due > 0 || replica->begun) return PLAIT_OK;
    return pli_fail(
        err, PLAIT_EFORMAT,
        "the event log contradicts itself: the replica of server %d's shards at place %d, rank %d, was made "
        "of one that was made after it",
        replica->home, replica->place, audit_rank_at(audit, replica->rank));
}

/* state: the place of the replicas that this pass looks at. */
static plait_status on_event(pli_audit *audit, void *state, const pli_event *event, plait_error *err) {
    if (event->place != *(const int32_t *)state) return PLAIT_OK;
    audit_table  *table = audit_table_of(audit, event->table);
    audit_server *replica = event->rank < 0 ? NULL : audit_replica_at(audit, event->home, event->place);
    if (replica == NULL) return PLAIT_OK; /* it was never whole */
    if (replica->due > 0) return event->kind == PLI_EVENT_REPLICA ? on_copy(audit, replica, err) : PLAIT_OK;
    if (event->kind != PLI_EVENT_HAND && event->peer >= audit->job.workers)
        return pli_fail(err, PLAIT_EFORMAT, "the event log contradicts itself: rank %d heard of a worker that is none",
                        audit_rank_at(audit, event->rank));
    switch (event->kind) {
    case PLI_EVENT_APPLY: return on_apply(audit, table, event, err);
    case PLI_EVENT_DROP: on_drop(audit, table, replica, event); return PLAIT_OK;
    case PLI_EVENT_TICK: return on_tick(audit, replica, event, err);
    case PLI_EVENT_SERVE: on_serve(audit, replica); return PLAIT_OK;
    case PLI_EVENT_HAND: return audit_hand_over(audit, replica, event, err);
    case PLI_EVENT_ZERO: return audit_zero_shard(audit, table, event, err);
    case PLI_EVENT_CALL: return audit_run_call(audit, event, err);
    case PLI_EVENT_GONE:
        if (audit->places < 2) audit->worker[event->peer].dead |= !audit->worker[event->peer].done;
        return PLAIT_OK;
    default: return PLAIT_OK;
    }
}

/* --- what never came, and what came in another order -------------------------------------------------------------- */

/* later: a part that its worker sent later was applied, so this one had come, whatever became of its worker. */
static void never_applied(pli_audit *audit, audit_table *table, audit_holder *shard, int32_t worker, audit_part *part,
                          bool later) {
    if (audit_unapplied(audit, table, shard, worker, part)) return;
    bool broke_off = !audit->worker[worker].done; /* else a backup rule might have dropped what had not come yet */
    if ((audit->worker[worker].dead && !later) || (broke_off && audit->job.backup > 0)) {
        part->at = PART_DIED;
        table->figures.lost++;
        return;
    }
    if (broke_off && !later) return;
    char                name[256];
    pli_audit_violation v = violation_of(table, worker, part, push_of(table, worker, part)->time_ns);
    name_push(audit, table, worker, shard, part, name);
    audit_violation(audit, table, &v, "%s was never applied", name);
}

/* A push goes to every shard, one part each. Only the last push of a worker that broke off may be on its way to
 * some. */
static void check_parts(pli_audit *audit, audit_table *table, const audit_holder *shard, int32_t worker) {
    const audit_sender *sender = shard->sender[worker];
    const audit_pusher *pusher = &table->pusher[worker];
    int64_t             n = sender == NULL ? 0 : sender->n, i = 0;
    if (!shard->counts) return;
    while (i < n && sender->part[i].push == i) i++;
    if (i == pusher->n || (i == pusher->n - 1 && !audit->worker[worker].done)) return;
    audit_violation(audit, table,
                    &(pli_audit_violation){ .rule = "exactly once",
                                            .rank = worker,
                                            .clock = pusher->push[i].clock,
                                            .time_ns = pusher->push[i].time_ns },
                    "push %lld of rank %d to table %s (clock %lld, at %.6f s) was not sent to shard %d once",
                    (long long)i + 1, audit_rank(audit, worker), table->name, (long long)pusher->push[i].clock,
                    audit_seconds(audit, pusher->push[i].time_ns), shard->shard);
}

/* May the part be applied before one that was sent earlier? In a dead one's stead it has that one's turn. */
static bool may_overtake(const audit_table *table, int32_t worker, const audit_part *part, const audit_part *earlier) {
    const audit_push *push = push_of(table, worker, part);
    return table->repeats ||
           (table->replaces && push->stands && push->clock == push_of(table, worker, earlier)->clock);
}

static void check_sender(pli_audit *audit, audit_table *table, audit_holder *shard, int32_t worker) {
    audit_sender     *sender = shard->sender[worker];
    const audit_part *last = NULL;
    int64_t           applied = sender == NULL ? 0 : sender->n; /* the first push behind the last part that was
                                                                 * applied */
    check_parts(audit, table, shard, worker);
    while (applied > 0 && sender->part[applied - 1].at <= 0) applied--;
    for (int64_t i = 0; sender != NULL && i < sender->n; i++) {
        audit_part *part = &sender->part[i];
        if (part->at == PART_LOST) never_applied(audit, table, shard, worker, part, i < applied);
        if (part->at <= 0) continue;
        audit_check_counted(audit, table, shard, worker, part);
        if (last != NULL && part->at < last->at && !may_overtake(table, worker, part, last)) {
            char                name[256];
            uint64_t            time_ns = shard->apply[part->at - 1].time_ns;
            pli_audit_violation v = violation_of(table, worker, part, time_ns);
            name_push(audit, table, worker, shard, part, name);
            audit_violation(audit, table, &v, "%s was applied at %.6f s, before its earlier push %lld at %.6f s", name,
                            audit_seconds(audit, time_ns), (long long)last->push + 1,
                            audit_seconds(audit, shard->apply[last->at - 1].time_ns));
        }
        last = part;
    }
}

/* The replica that counts must know all clocks that were acknowledged to a dead worker, and perhaps one more. If the
 * run broke off, its last clock may have been about to be applied. */
static bool knows_clocks(const pli_audit *audit, const audit_server *server, int32_t w) {
    const audit_worker *worker = &audit->worker[w];
    if (w >= audit->ranked && server->ticks[w].n == audit->first_clock) return true; /* they were empty here */
    if (audit->places > 1 && worker->dead) return server->ticks[w].n + !audit->ended >= worker->clocks;
    return !worker->done || worker->dead || server->ticks[w].n == worker->clocks;
}

static void check_ticks(pli_audit *audit, const audit_server *server) {
    char replica[48];
    for (int32_t w = 0; server->used && server->counts && w < audit->job.workers; w++) {
        const audit_worker *worker = &audit->worker[w];
        if (knows_clocks(audit, server, w)) continue;
        audit_violation(audit, NULL,
                        &(pli_audit_violation){
                            .rule = "clocks", .rank = w, .clock = server->ticks[w].n, .time_ns = worker->ended_ns },
                        "rank %d ended %lld clocks, of which the server of %s knows %lld", audit_rank(audit, w),
                        (long long)(worker->clocks - audit->first_clock), audit_name_replica(audit, server, replica),
                        (long long)(server->ticks[w].n - audit->first_clock));
    }
}

/* --- states ------------------------------------------------------------------------------------------------------- */

/* A tournament of the workers: each enters the turn of its first push that is not contained; the least wins. */
typedef struct tournament {
    int64_t *tree; /* [2 * leaves], root at 1 */
    int64_t  leaves;
} tournament;

static void play(tournament *t, int64_t leaf, int64_t turn) {
    int64_t at = t->leaves + leaf;
    t->tree[at] = turn;
    for (at /= 2; at > 0; at /= 2)
        t->tree[at] = t->tree[2 * at] < t->tree[2 * at + 1] ? t->tree[2 * at] : t->tree[2 * at + 1];
}

/* The least of all leaves but that one. */
static int64_t runner_up(const tournament *t, int64_t leaf) {
    int64_t least = AUDIT_NEVER;
    for (int64_t at = t->leaves + leaf; at > 1; at /= 2)
        if (t->tree[at ^ 1] < least) least = t->tree[at ^ 1];
    return least;
}

/* The turn of the first push of the worker that version `at` does not contain. */
static int64_t missing_of(const pli_audit *audit, const audit_table *table, audit_sender *sender, int32_t worker,
                          int64_t at) {
    if (sender == NULL) return AUDIT_NEVER;
    while (sender->next < sender->n) {
        const audit_part *part = &sender->part[sender->next];
        if (part->at > at || part->at == PART_LOST)
            return push_of(table, worker, part)->clock * audit->job.workers + worker;
        sender->next++;
    }
    return AUDIT_NEVER;
}

static void note_missing(const tournament *t, int32_t workers, audit_state *state) {
    state->missing = t->tree[1];
    state->missing_other = state->missing == AUDIT_NEVER ? AUDIT_NEVER : runner_up(t, state->missing % workers);
}

static void note_newest(audit_state *state, int32_t workers, int64_t turn) {
    if (state->newest < 0 || turn % workers == state->newest % workers) {
        state->newest = turn > state->newest ? turn : state->newest;
    } else if (turn > state->newest) {
        state->newest_other = state->newest;
        state->newest = turn;
    } else if (turn > state->newest_other) {
        state->newest_other = turn;
    }
}

static plait_status make_states(pli_audit *audit, audit_table *table, audit_holder *shard, void *of, plait_error *err) {
    tournament *t = of;
    int32_t     workers = audit->job.workers;
    shard->state = pli_array((size_t)shard->n + 1, sizeof *shard->state);
    if (shard->state == NULL) return audit_no_memory(err);
    for (int64_t i = 0; i < 2 * t->leaves; i++) t->tree[i] = AUDIT_NEVER;
    audit_state state = { .newest = -1, .newest_other = -1 };
    for (int32_t w = 0; w < workers; w++) {
        if (shard->sender[w] != NULL) shard->sender[w]->next = 0;
        play(t, w, missing_of(audit, table, shard->sender[w], w, 0));
    }
    note_missing(t, workers, &state);
    shard->state[0] = state;
    for (int64_t i = 0; i < shard->n; i++) {
        const audit_apply *apply = &shard->apply[i];
        if (apply->part >= 0) {
            audit_sender *sender = shard->sender[apply->worker];
            note_newest(&state, workers,
                        push_of(table, apply->worker, &sender->part[apply->part])->clock * workers + apply->worker);
            play(t, apply->worker, missing_of(audit, table, sender, apply->worker, i + 1));
            note_missing(t, workers, &state);
        }
        shard->state[i + 1] = state;
    }
    return PLAIT_OK;
}

/* Does something to each holder of a table, until it fails. */
typedef plait_status holder_step(pli_audit *audit, audit_table *table, audit_holder *shard, void *state,
                                 plait_error *err);
static plait_status each_holder(pli_audit *audit, holder_step *step, void *state, plait_error *err) {
    for (int64_t t = 0; t < audit->tables; t++)
        for (int32_t s = 0; audit->table[t].known && s < audit->table[t].shards; s++)
            for (int32_t i = 0; i < audit->table[t].shard[s].replicas; i++)
                PLI_TRY(step(audit, &audit->table[t], &audit->table[t].shard[s].replica[i], state, err));
    return PLAIT_OK;
}

static plait_status make_all_states(pli_audit *audit, plait_error *err) {
    tournament t = { .leaves = 1 };
    while (t.leaves < audit->job.workers) t.leaves *= 2;
    t.tree = pli_array(2 * (size_t)t.leaves, sizeof *t.tree);
    if (t.tree == NULL) return audit_no_memory(err);
    plait_status status = each_holder(audit, make_states, &t, err);
    pli_free(t.tree);
    return status;
}

static plait_status check_holder(pli_audit *audit, audit_table *table, audit_holder *shard, void *state,
                                 plait_error *err) {
    (void)state, (void)err;
    if (shard->counts) table->figures.applied += shard->n - shard->calls;
    for (int32_t w = 0; w < audit->job.workers; w++) check_sender(audit, table, shard, w);
    return PLAIT_OK;
}

/* A source lies before the replicas that are made of it, so all replicas of one place are gone through before those of
 * the next. A stream tells of several replicas: it is read once for each place that it tells of. */
static plait_status read_place(pli_audit *audit, int32_t place, int32_t *read, plait_error *err) {
    for (int32_t h = 0; h < audit->job.servers; h++) {
        const audit_server *replica = audit_replica_at(audit, h, place);
        if (replica == NULL || read[replica->stream] == place + 1) continue;
        read[replica->stream] = place + 1;
        PLI_TRY(audit_stream(audit, replica->stream, on_event, &place, err));
    }
    return PLAIT_OK;
}

/* The lowest place above that one at which any server had a replica; -1: none. */
static int32_t next_place(const pli_audit *audit, int32_t above) {
    int32_t next = -1;
    for (int32_t h = 0; h < audit->job.servers; h++)
        for (int64_t i = 0; i < audit->home[h].n; i++) {
            const int32_t place = audit->home[h].replica[i].place;
            if (place > above && (next < 0 || place < next)) next = place;
        }
    return next;
}

static plait_status read_servers(pli_audit *audit, plait_error *err) {
    int32_t     *read = pli_calloc((size_t)pli_logfile_streams(audit->file), sizeof *read);
    plait_status status = read == NULL ? audit_no_memory(err) : PLAIT_OK;
    for (int32_t place = next_place(audit, -1); status >= 0 && place >= 0; place = next_place(audit, place))
        status = read_place(audit, place, read, err);
    pli_free(read);
    return status;
}

plait_status audit_histories(pli_audit *audit, plait_error *err) {
    PLI_TRY(read_servers(audit, err));
    PLI_TRY(each_holder(audit, check_holder, NULL, err));
    for (int32_t h = 0; h < audit->job.servers; h++)
        for (int64_t i = 0; i < audit->home[h].n; i++) check_ticks(audit, &audit->home[h].replica[i]);
    audit_check_copies(audit);
    audit_check_zeros(audit);
    PLI_TRY(make_all_states(audit, err));
    return audit_check_calls(audit, err);
}

/* A part that was dropped, or died on the way, counts as contained from when it was made. */
static bool is_in(const audit_part *part, int64_t version, int64_t made) {
    return part->at < 0 ? part->push < made : part->at != PART_LOST && part->at <= version;
}

int64_t audit_contained(const audit_holder *shard, int32_t worker, int64_t version, int64_t made, int64_t *hint) {
    const audit_sender *sender = shard->sender[worker];
    int64_t             i = *hint;
    if (sender == NULL || sender->n == 0) return 0;
    while (i < sender->n && is_in(&sender->part[i], version, made)) i++;
    while (i > 0 && !is_in(&sender->part[i - 1], version, made)) i--;
    *hint = i;
    return i < sender->n ? sender->part[i].push : sender->part[sender->n - 1].push + 1;
}
