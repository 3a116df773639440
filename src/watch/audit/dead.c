/* Runs with two replicas of each shard (table/copies/replicas.h), in which a rank may have died.
 *
 * Each replica's log tells what it has applied. The one that serves at the end *counts* (places.c). There every update
 * must be, once; in the others none may be twice, and what a replica applied until it served itself must be what its
 * source had, part by part, since it has it from that one's log.
 *
 * A dead one's log ends where it died, and its file without an end. All that was acknowledged to it (CLOCK) must be in
 * the replicas that count; of the rest each message was applied or not. Where updates are applied clock by clock (bsp)
 * a replica's log says of each clock up to which message each worker counts in it (TICK). A worker that does not count
 * in a clock in which others do has died, and each of those must have said by then (VIEW) that it stands in for it. A
 * push in its stead that comes after the pusher's own last message that counts was needless: then the worker it was
 * for must count itself.
 *
 * Paper: Wing, Gong, "Testing and verifying concurrent objects", JPDC 1993 (histories, and what may be concluded of an
 * operation whose answer nobody has heard). */
#include <string.h>

#include "watch/audit/model.h"

/* --- who died ----------------------------------------------------------------------------------------------------- */

/* Notes whom a replica knew to be dead when it had begun to make fewer than so many others. */
static void bury(const pli_audit *audit, const audit_server *replica, int64_t hands) {
    for (int64_t i = 0; i < replica->n_gone && replica->gone[i].hands < hands; i++) {
        audit_worker *worker = &audit->worker[replica->gone[i].worker];
        worker->dead = worker->dead || !worker->done;
    }
}

/* Notes whom the replica that counts knows to be dead, and those that it learned of with its state. (A replica that the
 * others took for dead may be wrong about the others.) */
static void bury_by(const pli_audit *audit, const audit_home *home, const audit_server *replica) {
    bury(audit, replica, INT64_MAX);
    while (replica->copied > 0) {
        const int32_t from = replica->source, to = replica->place;
        int64_t       hands = 0;
        for (int64_t i = 0; i < home->hands; i++)
            if (home->hand[i].from == from && home->hand[i].to == to) hands = home->hand[i].hands;
        for (replica = home->replica; replica->place != from;) replica++;
        bury(audit, replica, hands);
    }
}

/* A log that counts may lack nothing; another may lack only what a death has cut off. */
static bool is_whole(const pli_audit *audit) {
    for (int32_t w = 0; w < audit->job.workers; w++)
        if ((audit->worker[w].stream < 0 || audit->worker[w].cut) && !audit_is_dead(audit, w)) return false;
    for (int32_t h = 0; h < audit->job.servers; h++)
        for (int64_t i = 0; i < audit->home[h].n; i++) {
            const audit_server *replica = &audit->home[h].replica[i];
            if (replica->cut && (replica->counts || !audit_is_dead(audit, replica->rank))) return false;
        }
    return true;
}

void audit_deaths(pli_audit *audit, bool *whole_out) {
    if (audit->places < 2) {
        *whole_out = pli_logfile_cut(audit->file) == NULL;
        return;
    }
    for (int32_t w = 0; w < audit->job.workers; w++)
        audit->worker[w].cut =
            audit->worker[w].stream >= 0 && pli_logfile_stream_is_cut(audit->file, audit->worker[w].stream);
    for (int32_t h = 0; *whole_out && h < audit->job.servers; h++)
        for (int64_t i = 0; i < audit->home[h].n; i++)
            if (audit->home[h].replica[i].counts) bury_by(audit, &audit->home[h], &audit->home[h].replica[i]);
    *whole_out = *whole_out && is_whole(audit);
    for (int32_t w = 0; w < audit->job.workers; w++) audit->ended = audit->ended || audit->worker[w].done;
    for (int32_t w = 0; audit->ended && w < audit->job.workers; w++) /* nobody was left to tell of the last death */
        audit->worker[w].dead = audit->worker[w].dead || !audit->worker[w].done;
}

/* --- what a replica has not applied ------------------------------------------------------------------------------- */

static void unapplied(pli_audit *audit, audit_table *table, const audit_holder *shard, int32_t worker,
                      const audit_part *part, const char *what) {
    const audit_push *push = &table->pusher[worker].push[part->push];
    char              replica[48];
    audit_violation(audit, table,
                    &(pli_audit_violation){
                        .rule = "exactly once", .rank = worker, .clock = push->clock, .time_ns = push->time_ns },
                    "push %lld (of clock %lld, sent at %.6f s) of rank %d to shard %d of table %s was never applied by "
                    "the replica of %s, %s",
                    (long long)part->push + 1, (long long)push->clock, audit_seconds(audit, push->time_ns),
                    audit_rank(audit, worker), shard->shard, table->name, audit_name_replica(audit, shard->of, replica),
                    what);
}

static void no_more(audit_table *table, const audit_holder *shard, audit_part *part) {
    part->at = PART_DIED;
    table->figures.lost += shard->counts;
}

/* Does the worker count in the clock, or take it no more? */
static bool is_in_order(const pli_audit *audit, const audit_server *server, int32_t worker, int64_t clock) {
    const audit_worker *w = &audit->worker[worker];
    return audit_tick(server, worker, clock) > 0 || (w->left && clock >= w->clocks);
}

/* Did all workers in whose stead the message was sent count themselves? -1: it does not say whose. */
static int count_themselves(const pli_audit *audit, const audit_holder *shard, int32_t worker, int64_t clock,
                            uint64_t seq) {
    const audit_worker *w = &audit->worker[worker];
    const audit_server *server = shard->of;
    int64_t             i = 0;
    while (i < w->views && (w->view[i].server != server->home || w->view[i].seq < seq)) i++;
    if (i == w->views) return -1;
    for (const uint64_t said = w->view[i].seq; i < w->views; i++)
        if (w->view[i].server == server->home && w->view[i].seq == said &&
            !is_in_order(audit, server, w->view[i].whom, clock))
            return 0;
    return 1;
}

/* Has the replica's log passed the clock, as far as it tells of this worker (-1: of any)? It tells of one clock after
 * the other. */
static bool is_over(const pli_audit *audit, const audit_server *server, int32_t worker, int64_t clock) {
    for (int32_t v = 0; v < audit->job.workers; v++)
        if (server->ticks[v].n > clock + (audit_rank(audit, v) <= audit_rank(audit, worker))) return true;
    return false;
}

/* Or for a later life, whose empty clocks may seem to be those of the one before (lives.c). */
static bool has_said_so(const pli_audit *audit, const audit_worker *w, int32_t server, int32_t whom, uint64_t by) {
    const int32_t rank = audit_rank(audit, whom);
    for (int64_t i = 0; i < w->views; i++)
        if (w->view[i].server == server && w->view[i].whom >= whom && audit_rank(audit, w->view[i].whom) == rank &&
            w->view[i].seq <= by)
            return true;
    return w->cut && w->dead; /* perhaps in what its log lacks */
}

/* Has everybody who counts in the clock said that it stands in for a worker that does not? */
static bool all_stood_in(const pli_audit *audit, const audit_server *server, int64_t clock, int32_t whom) {
    for (int32_t w = 0; w < audit->job.workers; w++) {
        const uint64_t by = audit_tick(server, w, clock);
        if (by > 0 && !has_said_so(audit, &audit->worker[w], server->home, whom, by)) return false;
    }
    return true;
}

/* With backup workers a clock does without the slowest, of which no more than so many may have died since. (Others that
 * came too late are told of when they came.) */
static bool may_do_without(const pli_audit *audit, const audit_server *server, int64_t clock) {
    int32_t without = 0;
    if (audit->job.backup == 0) return false;
    for (int32_t w = 0; w < audit->job.workers; w++)
        without += audit->worker[w].dead && server->ticks[w].n <= clock && !all_stood_in(audit, server, clock, w);
    return without <= audit->job.backup;
}

/* A clock's updates are applied together, when a message of a later clock comes. So the last clock of a run that broke
 * off may be acknowledged and not yet applied. */
static void unsummed(pli_audit *audit, audit_table *table, audit_holder *shard, int32_t worker, audit_part *part) {
    const audit_push   *push = &table->pusher[worker].push[part->push];
    const audit_worker *w = &audit->worker[worker];
    const uint64_t      tick = audit_tick(shard->of, worker, push->clock);
    const int           counted = push->stands ? count_themselves(audit, shard, worker, push->clock, part->seq) : 0;
    if (tick > 0 && part->seq <= tick) {
        unapplied(audit, table, shard, worker, part, "though it counts in its clock");
    } else if (tick > 0 && push->stands && (counted > 0 || may_do_without(audit, shard->of, push->clock))) {
        part->at = PART_DROPPED;
        table->figures.needless += shard->counts;
    } else if (tick == 0 && push->clock < w->clocks) {
        if (audit->ended || is_over(audit, shard->of, -1, push->clock)) /* else both replicas have it prepared */
            unapplied(audit, table, shard, worker, part, "though its clock was acknowledged");
    } else if (w->dead) {
        no_more(table, shard, part);
    } else if (w->done) {
        unapplied(audit, table, shard, worker, part,
                  tick > 0 && push->stands ? "nor that of whom it was made for" : "and nobody stood in for it");
    }
}

/* In a replica that no longer serves: nobody missed what came too late for the clocks that it applied. */
static void unapplied_before(const pli_audit *audit, audit_table *table, audit_holder *shard, int32_t worker,
                             audit_part *part) {
    const audit_push *push = &table->pusher[worker].push[part->push];
    const bool        over =
        table->sums ? is_over(audit, shard->of, -1, push->clock) : audit->worker[worker].dead;
    /* with backup workers its clock was complete without it, and it had not come yet when the replica died */
    const bool late = audit->job.backup > 0 && table->sums && audit_tick(shard->of, worker, push->clock) < part->seq;
    if (over && (push->stands || late || push->clock >= audit->worker[worker].clocks)) no_more(table, shard, part);
}

bool audit_unapplied(pli_audit *audit, audit_table *table, audit_holder *shard, int32_t worker, audit_part *part) {
    const audit_worker *w = &audit->worker[worker];
    if (audit->places < 2) return false;
    if (!shard->counts) {
        unapplied_before(audit, table, shard, worker, part);
        return true;
    }
    if (table->sums) {
        unsummed(audit, table, shard, worker, part);
        return true;
    }
    if (!w->dead || table->pusher[worker].push[part->push].clock >= w->clocks) return false;
    unapplied(audit, table, shard, worker, part, "though its clock was acknowledged");
    return true;
}

void audit_check_counted(pli_audit *audit, audit_table *table, const audit_holder *shard, int32_t worker,
                         const audit_part *part) {
    const audit_push   *push = &table->pusher[worker].push[part->push];
    const audit_server *server = shard->of;
    char                replica[48];
    if (audit->places < 2 || !table->sums || audit_tick(server, worker, push->clock) >= part->seq) return;
    if (server->cut && !is_over(audit, server, worker, push->clock)) return; /* who counts is in what its log lacks */
    audit_violation(
        audit, table,
        &(pli_audit_violation){ .rule = "exactly once",
                                .rank = worker,
                                .clock = push->clock,
                                .time_ns = shard->apply[part->at - 1].time_ns },
        "push %lld (of clock %lld, sent at %.6f s) of rank %d to shard %d of table %s was applied by the replica of "
        "%s, where it does not count in its clock: others have stood in for it",
        (long long)part->push + 1, (long long)push->clock, audit_seconds(audit, push->time_ns),
        audit_rank(audit, worker), shard->shard, table->name, audit_name_replica(audit, server, replica));
}

/* --- who stands in ------------------------------------------------------------------------------------------------ */

/* Was it away as it died, and returned? Then clocks are told of a later life from where its own end. Of one that was in
 * some clock is told in between by which it is dead: the others stand in then. */
static bool was_away(const pli_audit *audit, const audit_server *server, int32_t whom) {
    for (int32_t v = audit->ranked; v < audit->job.workers; v++)
        if (v > whom && audit_rank(audit, v) == audit_rank(audit, whom) && server->ticks[v].n > audit->first_clock &&
            server->ticks[v].from == server->ticks[whom].n)
            return true;
    return false;
}

/* In the first clock in which `whom` does not count, each worker that counts must have said that it stands in for
 * it. */
static void check_stood_in(pli_audit *audit, const audit_server *server, int32_t whom) {
    const bool    later = whom >= audit->ranked && server->ticks[whom].n == audit->first_clock;
    const int64_t clock = later ? audit->worker[whom].clocks : server->ticks[whom].n; /* the clock that it joined in */
    char          replica[48];
    if (later && clock == audit->first_clock) return; /* it did not join */
    if (was_away(audit, server, whom) || may_do_without(audit, server, clock)) return;
    for (int32_t w = 0; w < audit->job.workers; w++) {
        const uint64_t by = audit_tick(server, w, clock);
        if (by == 0 || has_said_so(audit, &audit->worker[w], server->home, whom, by)) continue;
        audit_violation(
            audit, NULL,
            &(pli_audit_violation){
                .rule = "exactly once", .rank = whom, .clock = clock, .time_ns = audit->worker[whom].ended_ns },
            "rank %d counts in clock %lld at the replica of %s, and rank %d, which died, does not; nor did "
            "rank %d stand in for it",
            audit_rank(audit, w), (long long)clock, audit_name_replica(audit, server, replica),
            audit_rank(audit, whom), audit_rank(audit, w));
        return;
    }
}

/* Does the server own a shard of a table that applies at clocks? Where it has none, nobody stands in. */
static bool has_sums(const pli_audit *audit, int32_t home) {
    for (int64_t t = 0; t < audit->tables; t++)
        for (int32_t s = 0; audit->table[t].known && audit->table[t].sums && s < audit->table[t].shards; s++)
            if (audit->table[t].shard[s].home == home) return true;
    return false;
}

/* --- the replicas of a shard -------------------------------------------------------------------------------------- */

static void differ(pli_audit *audit, audit_table *table, const audit_holder *source, const audit_holder *shard,
                   int64_t i) {
    const audit_apply *apply = &shard->apply[i];
    const audit_ran   *ran = audit_ran_as(shard, i + 1);
    char               replica[48], from[48], what[64];
    if (ran != NULL) snprintf(what, sizeof what, "call %llu", (unsigned long long)ran->number);
    else snprintf(what, sizeof what, "one of rank %d", audit_rank(audit, apply->worker));
    audit_violation(
        audit, table,
        &(pli_audit_violation){ .rule = "replicas", .rank = apply->worker, .clock = -1, .time_ns = apply->time_ns },
        "the replica of %s of shard %d of table %s applied at %.6f s, as its update %lld, %s, which the "
        "replica of %s, whose log it takes, has not as that%s",
        audit_name_replica(audit, shard->of, replica), shard->shard, table->name, audit_seconds(audit, apply->time_ns),
        (long long)i + 1, what, audit_name_replica(audit, source->of, from),
        ran == NULL ? "" : ", with that result");
}

/* Has the replica's log that update as its i-th, or may the cut have taken it? */
static bool has_as(const audit_holder *source, int64_t i, const audit_apply *a) {
    if (i >= source->n) return source->of->cut;
    return source->apply[i].worker == a->worker && source->apply[i].part == a->part;
}

/* The replica at the place, or at the next one before it that was there (a group may begin without a member). NULL:
 * none. */
static const audit_holder *source_at(const pli_audit *audit, const audit_table *table, int32_t shard, int32_t place) {
    const audit_holder *source = NULL;
    for (; source == NULL && place >= 0; place--) source = audit_holder_of(audit, table, shard, place);
    return source;
}

/* Of three replicas, one goes on with the log of the one before its source once that has died, or is taken for dead. So
 * one of those before it must have the update. */
static bool is_from_before(const pli_audit *audit, const audit_table *table, const audit_holder *shard,
                           const audit_holder *source, int64_t i) {
    while (source != NULL) {
        if (has_as(source, i, &shard->apply[i])) return true;
        const bool chain = audit->job.replicas > 2 || audit->job.homes > 0;
        source = chain ? source_at(audit, table, shard->shard, source->of->source) : NULL;
    }
    return false;
}

/* While it did not serve, a replica must have applied what its source had applied. */
static void check_same(pli_audit *audit, audit_table *table, const audit_holder *shard) {
    const audit_holder *source = source_at(audit, table, shard->shard, shard->of->source);
    const int64_t       led = shard->led < shard->n ? shard->led : shard->n;
    for (int64_t i = 0; source != NULL && i < led; i++) {
        if (is_from_before(audit, table, shard, source, i)) continue;
        differ(audit, table, source, shard, i);
        return;
    }
}

void audit_check_copies(pli_audit *audit) {
    if (audit->places < 2) return;
    for (int32_t h = 0; h < audit->job.servers; h++)
        for (int64_t i = 0; has_sums(audit, h) && i < audit->home[h].n; i++)
            for (int32_t w = 0; audit->home[h].replica[i].counts && w < audit->job.workers; w++)
                if (audit->worker[w].dead && !audit->worker[w].left)
                    check_stood_in(audit, &audit->home[h].replica[i], w);
    for (int64_t t = 0; t < audit->tables; t++)
        for (int32_t s = 0; audit->table[t].known && s < audit->table[t].shards; s++)
            for (int32_t i = 1; i < audit->table[t].shard[s].replicas; i++)
                check_same(audit, &audit->table[t], &audit->table[t].shard[s].replica[i]);
}
