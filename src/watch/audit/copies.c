/* Fourth pass: copies that are averaged. A copy that a worker gives to another is mixed there once, in order, and
 * nothing else is mixed; so what all copies hold together changes only by the workers' own updates. If rounds are
 * promised, a worker mixes as many copies in a round as it gives, and all are of the same clock.
 *
 * When workers have died, the others meet in some clock: each gives its copy to each, between two rounds, too, or to
 * nobody if it is the last. A dead one's log may lack a copy that others have mixed. */
#include <string.h>

#include "watch/audit/model.h"

static void wrong(pli_audit *audit, audit_table *table, int32_t rank, const audit_copy *copy, const char *rule,
                  const char *what) {
    audit_violation(
        audit, table,
        &(pli_audit_violation){ .rule = rule, .rank = rank, .clock = copy->clock, .time_ns = copy->time_ns },
        "rank %d, at %.6f s in clock %lld, %s of table %s that rank %d gave in clock %lld", audit_rank(audit, rank),
        audit_seconds(audit, copy->time_ns), (long long)copy->clock, what, table->name, audit_rank(audit, copy->peer),
        (long long)copy->given);
}

/* The next copy, from index `from` on, that the giver gave to `to`. */
static int64_t next_for(const audit_copies *giver, int64_t from, int32_t to) {
    while (from < giver->gives && giver->give[from].peer != to) from++;
    return from;
}

/* Compares every copy given to this worker with those that it mixed. next [workers]: each giver's first copy that was
 * not looked at yet. */
static void check_mixes(pli_audit *audit, audit_table *table, int32_t rank, int64_t *next) {
    const audit_copies *own = &table->copies[rank];
    memset(next, 0, (size_t)audit->job.workers * sizeof *next);
    for (int64_t i = 0; i < own->mixes; i++) {
        const audit_copy   *mix = &own->mix[i];
        const audit_copies *giver = &table->copies[mix->peer];
        int64_t             at = next_for(giver, next[mix->peer], rank);
        bool                is_next = at < giver->gives && giver->give[at].given == mix->given;
        bool                lacks = at >= giver->gives && !audit->worker[mix->peer].done;
        if (!is_next && !lacks) wrong(audit, table, rank, mix, "exactly once", "mixed out of turn a copy");
        if (is_next) next[mix->peer] = at + 1;
    }
    if (!audit->worker[rank].done) return;
    for (int32_t w = 0; w < audit->job.workers; w++) {
        int64_t at = next_for(&table->copies[w], next[w], rank);
        if (w == rank || at >= table->copies[w].gives || !audit->worker[w].done) continue;
        audit_copy lost = table->copies[w].give[at];
        lost.peer = w;
        wrong(audit, table, rank, &lost, "exactly once", "never mixed the copy");
    }
}

static bool is_round(const audit_table *table, int64_t clock) { return (clock + 1) % table->promise.rounds == 0; }

/* How many workers have not come to their end? Those that have died, where others go on. */
static int32_t missing(const pli_audit *audit) {
    int32_t n = 0;
    for (int32_t w = 0; w < audit->job.workers; w++) n += !audit->worker[w].done;
    return n;
}

static bool is_good(const pli_audit *audit, const audit_table *table, int64_t clock, int64_t gives, int64_t mixes) {
    const int32_t dead = missing(audit);
    if (gives != mixes) return false;
    if (is_round(table, clock)) return gives > 0 || audit->job.workers - dead <= 1;
    return gives == 0 || dead > 0;
}

/* Checks one clock: as many copies mixed as given, at least one, all of the same clock. */
static void check_round(pli_audit *audit, audit_table *table, int32_t rank, int64_t clock, int64_t gives, int64_t mixes,
                        uint64_t time_ns) {
    if (audit->job.workers == 1 || is_good(audit, table, clock, gives, mixes)) return;
    audit_violation(audit, table,
                    &(pli_audit_violation){ .rule = "rounds", .rank = rank, .clock = clock, .time_ns = time_ns },
                    "rank %d gave %lld copies of table %s in clock %lld and mixed %lld; %s promises %s",
                    audit_rank(audit, rank), (long long)gives, table->name, (long long)clock, (long long)mixes,
                    table->promise.spec, is_round(table, clock) ? "one for one, at least one" : "none in this clock");
}

static void check_rounds(pli_audit *audit, audit_table *table, int32_t rank) {
    const audit_copies *own = &table->copies[rank];
    int64_t             g = 0, m = 0;
    for (int64_t i = 0; i < own->mixes; i++)
        if (own->mix[i].given != own->mix[i].clock) wrong(audit, table, rank, &own->mix[i], "rounds", "mixed a copy");
    for (int64_t clock = audit->first_clock; clock < audit->worker[rank].clocks; clock++) {
        int64_t  gives = 0, mixes = 0;
        uint64_t time_ns = audit->worker[rank].ended_ns;
        for (; g < own->gives && own->give[g].clock <= clock; g++, gives++) time_ns = own->give[g].time_ns;
        for (; m < own->mixes && own->mix[m].clock <= clock; m++, mixes++) time_ns = own->mix[m].time_ns;
        bool under_way = clock + 1 == audit->worker[rank].clocks && !audit->worker[rank].done;
        if (!under_way) check_round(audit, table, rank, clock, gives, mixes, time_ns);
    }
}

plait_status audit_averages(pli_audit *audit, plait_error *err) {
    int64_t *next = pli_array((size_t)audit->job.workers, sizeof *next);
    if (next == NULL) return audit_no_memory(err);
    for (int64_t t = 0; t < audit->tables; t++) {
        audit_table *table = &audit->table[t];
        if (!table->known || table->way != PLI_WAY_AVERAGED) continue;
        for (int32_t w = 0; w < audit->job.workers; w++) {
            check_mixes(audit, table, w, next);
            if (table->promise.rounds > 0) check_rounds(audit, table, w);
        }
    }
    pli_free(next);
    return PLAIT_OK;
}
