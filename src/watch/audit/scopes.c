/* Judges what updates have read under their locks. See scopes.h. */
#include "watch/audit/scopes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/audit/schedule_dead.h"
#include "watch/audit/scopes_log.h"

/* A lock that was given, by whose it was. */
typedef struct given {
    uint64_t vertex;
    int64_t  lock; /* in log.lock */
    uint32_t number;
    int32_t  era, origin;
    bool     used; /* an update has read the vertex */
} given;

typedef struct judge {
    pli_scopes_proof *proof;
    plait_error      *err;
    scope_log         log;
    given            *given; /* by era, origin, number, vertex */
    int64_t           n_given;
    int64_t          *held;  /* of the vertex at hand: who has its lock, in log.lock */
    int64_t           n_held, held_capacity;
    int32_t           scope;
    bool              begun; /* of the rest at hand: */
    int32_t           rest_era, rest_rank;
    int64_t           rest;
} judge;

/* What is wrong, with whom: rank, and with another or -1. */
typedef struct fault {
    const char *rule;
    int32_t     rank, other, era;
    uint64_t    vertex, time_ns;
} fault;

static uint64_t id_of(const judge *j, int32_t era, uint64_t vertex) {
    const int64_t i = scope_find_read(&j->log, era, vertex);
    return i < j->log.reads ? j->log.read[i].id : vertex;
}

static void refute(judge *j, const fault *f, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void refute(judge *j, const fault *f, const char *fmt, ...) {
    pli_scopes_proof *p = j->proof;
    va_list           ap;
    if (p->violations++ > 0 && p->first.time_ns <= f->time_ns) return;
    p->verdict = PLI_AUDIT_REFUTED;
    p->other = f->other;
    p->first = (pli_audit_violation){ .rule = f->rule, .rank = f->rank, .clock = -1, .has_row = true,
                                      .row = id_of(j, f->era, f->vertex), .time_ns = f->time_ns };
    snprintf(p->first.table, sizeof p->first.table, "%s", j->log.era[f->era].program);
    va_start(ap, fmt);
    vsnprintf(p->first.text, sizeof p->first.text, fmt, ap);
    va_end(ap);
}

static const char *mode_of(int mode) { return mode == MODE_WRITE ? "write" : mode == MODE_READ ? "read" : "no"; }

/* --- the locks of a vertex, in the order of its owner's log ------------------------------------------------------- */

static int64_t last_rest(judge *j, int32_t era, int32_t rank) {
    if (!j->begun || j->rest_era != era || j->rest_rank != rank) j->rest = scope_rest_of(&j->log, era, rank, -1);
    j->begun = true;
    j->rest_era = era;
    j->rest_rank = rank;
    return j->rest;
}

static plait_status take(judge *j, int64_t i, uint64_t version) {
    const scope_lock *l = &j->log.lock[i];
    for (int64_t k = 0; k < j->n_held && l->mode != MODE_NONE; k++) {
        const scope_lock *h = &j->log.lock[j->held[k]];
        if (l->mode == MODE_READ && h->mode == MODE_READ) continue;
        const fault beside = { "beside", l->origin, h->origin, l->era, l->vertex, l->time_ns };
        refute(j, &beside, "rank %d got the lock of vertex %" PRIu64 " to %s, while rank %d had it to %s", l->origin,
               id_of(j, l->era, l->vertex), mode_of(l->mode), h->origin, mode_of(h->mode));
    }
    const fault       f = { "version", l->owner, l->origin, l->era, l->vertex, l->time_ns };
    if (l->version != version)
        refute(j, &f, "rank %d gave rank %d version %" PRIu64 " of vertex %" PRIu64 ", though %" PRIu64 " updates had "
               "written it before by the order of its locks", l->owner, l->origin, l->version,
               id_of(j, l->era, l->vertex), version);
    if (l->mode == MODE_NONE) return PLAIT_OK;
    if (!pli_grow((void **)&j->held, &j->held_capacity, j->n_held + 1, sizeof *j->held))
        return pli_fail(j->err, PLAIT_ENOMEM, "no memory to judge the locks");
    j->held[j->n_held++] = i;
    return PLAIT_OK;
}

/* Takes back a lock; returns the version that the vertex has now. */
static uint64_t take_back(judge *j, int64_t i, uint64_t version) {
    scope_lock *l = &j->log.lock[i];
    int64_t     k = 0;
    while (k < j->n_held &&
           (j->log.lock[j->held[k]].origin != l->origin || j->log.lock[j->held[k]].number != l->number))
        k++;
    fault          f = { "back", l->origin, l->owner, l->era, l->vertex, l->time_ns };
    const uint64_t id = id_of(j, l->era, l->vertex);
    if (k == j->n_held) {
        refute(j, &f, "rank %d gave the lock of vertex %" PRIu64 " back to rank %d, but did not have it", l->origin, id,
               l->owner);
    } else {
        scope_lock *h = &j->log.lock[j->held[k]];
        h->pair = i;
        j->held[k] = j->held[--j->n_held];
        f.rule = "lock";
        if (l->wrote && h->mode != MODE_WRITE)
            refute(j, &f, "rank %d wrote vertex %" PRIu64 ", whose lock it had from rank %d to %s alone", l->origin, id,
                   l->owner, mode_of(h->mode));
    }
    f.rule = "version";
    if (l->version != version + l->wrote)
        refute(j, &f, "vertex %" PRIu64 " came back from rank %d to rank %d %s, and went from version %" PRIu64
               " to %" PRIu64, id, l->origin, l->owner, l->wrote ? "with a new value" : "as it was", version,
               l->version);
    return l->version;
}

/* The locks i .. end - 1 of a vertex in an era. */
static plait_status judge_vertex(judge *j, int64_t i, int64_t end) {
    const scope_lock *first = &j->log.lock[i];
    uint64_t          version = 0;
    j->n_held = 0;
    for (; i < end; i++) {
        const scope_lock *l = &j->log.lock[i];
        const fault       f = { "lock", l->owner, first->owner, l->era, l->vertex, l->time_ns };
        if (l->owner != first->owner) {
            refute(j, &f, "ranks %d and %d both gave the lock of vertex %" PRIu64, first->owner, l->owner,
                   id_of(j, l->era, l->vertex));
            return PLAIT_OK;
        }
        if (l->back) version = take_back(j, i, version);
        else PLI_TRY(take(j, i, version));
    }
    const int64_t rest = last_rest(j, first->era, first->owner);
    for (int64_t k = 0; k < j->n_held; k++) {
        const scope_lock *h = &j->log.lock[j->held[k]];
        const fault       f = { "back", h->origin, h->owner, h->era, h->vertex, h->time_ns };
        if (h->order < rest)
            refute(j, &f, "rank %d has never given the lock of vertex %" PRIu64 " back to rank %d, though all were at "
                   "rest", h->origin, id_of(j, h->era, h->vertex), h->owner);
    }
    return PLAIT_OK;
}

static plait_status judge_locks(judge *j) {
    const scope_log *log = &j->log;
    for (int64_t i = 0, end; i < log->locks; i = end) {
        for (end = i + 1; end < log->locks && log->lock[end].era == log->lock[i].era &&
                          log->lock[end].vertex == log->lock[i].vertex;)
            end++;
        PLI_TRY(judge_vertex(j, i, end));
    }
    return PLAIT_OK;
}

/* --- scopes ------------------------------------------------------------------------------------------------------- */

static int by_scope(const void *x, const void *y) {
    const given *a = x, *b = y;
    if (a->era != b->era) return a->era < b->era ? -1 : 1;
    if (a->origin != b->origin) return a->origin < b->origin ? -1 : 1;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return (a->vertex > b->vertex) - (a->vertex < b->vertex);
}

/* All locks that were given, scope by scope; those of a scope were given in the order of their vertices. */
static plait_status order_scopes(judge *j) {
    const scope_log *log = &j->log;
    j->given = pli_array((size_t)log->locks + 1, sizeof *j->given);
    if (j->given == NULL) return pli_fail(j->err, PLAIT_ENOMEM, "no memory to judge the locks");
    for (int64_t i = 0; i < log->locks; i++) {
        const scope_lock *l = &log->lock[i];
        if (l->back) continue;
        j->given[j->n_given++] = (given){ .vertex = l->vertex, .lock = i, .number = l->number, .era = l->era,
                                          .origin = l->origin };
    }
    if (j->n_given > 0) qsort(j->given, (size_t)j->n_given, sizeof *j->given, by_scope);
    for (int64_t i = 1; i < j->n_given; i++) {
        const given      *a = &j->given[i - 1], *b = &j->given[i];
        const scope_lock *la = &log->lock[a->lock], *lb = &log->lock[b->lock];
        if (a->era != b->era || a->origin != b->origin || a->number != b->number || la->at < lb->at) continue;
        const fault f = { "order", b->origin, lb->owner, b->era, b->vertex, lb->time_ns };
        refute(j, &f, "rank %d got the lock of vertex %" PRIu64 " from rank %d before that of vertex %" PRIu64 ", "
               "which has the lower number: requests may wait in a circle", b->origin, id_of(j, b->era, b->vertex),
               lb->owner, id_of(j, a->era, a->vertex));
    }
    return PLAIT_OK;
}

static int need_of(const judge *j, const scope_read *r) {
    if (r->vertex == r->center || j->scope == SCOPE_FULL) return MODE_WRITE;
    return j->scope == SCOPE_EDGE ? MODE_READ : MODE_NONE;
}

/* The other worker of a read that nothing guards: the next that changes the vertex, or its owner. */
static int32_t other_of(const judge *j, const scope_read *r, const char **does_out) {
    const scope_read *next = scope_maker_of(&j->log, r->era, r->vertex, r->version + 1);
    const int64_t     lock = scope_find_lock(&j->log, r->era, r->vertex);
    *does_out = next != NULL ? "changes it next" : "owns it";
    if (next != NULL) return next->rank;
    return lock < j->log.locks ? j->log.lock[lock].owner : -1;
}

static void judge_lock_of(judge *j, const scope_read *r, const scope_lock *l) {
    const uint64_t    id = r->id, center = id_of(j, r->era, r->center);
    fault             f = { "stale", r->rank, l->owner, r->era, r->vertex, r->time_ns };
    const scope_lock *back = l->pair >= 0 ? &j->log.lock[l->pair] : NULL;
    if (r->version != l->version) {
        const scope_read *maker = scope_maker_of(&j->log, r->era, r->vertex, l->version);
        f.other = maker != NULL ? maker->rank : l->owner;
        refute(j, &f, "rank %d updated vertex %" PRIu64 " with version %" PRIu64 " of vertex %" PRIu64 ", but had got "
               "version %" PRIu64 " with its lock, after an update by rank %d", r->rank, center, r->version, id,
               l->version, f.other);
    }
    f.rule = "early";
    f.other = l->owner;
    if (l->owner == r->rank && (l->order > r->order || (back != NULL && back->order < r->order))) {
        const char *does;
        f.other = other_of(j, r, &does);
        refute(j, &f, "rank %d updated vertex %" PRIu64 " and read vertex %" PRIu64 " when it had given its lock back: "
               "rank %d %s", r->rank, center, id, f.other, does);
    }
    f.rule = "lost";
    if (back != NULL && back->wrote != r->wrote)
        refute(j, &f, "rank %d updated vertex %" PRIu64 " and %s vertex %" PRIu64 ", but to its owner, rank %d, it "
               "came back %s", r->rank, center, r->wrote ? "wrote" : "did not write", id, l->owner,
               back->wrote ? "with a new value" : "as it was");
}

/* Does each read have its lock? */
static void judge_reads(judge *j) {
    for (int64_t i = 0; i < j->log.reads; i++) {
        const scope_read *r = &j->log.read[i];
        const given       key = { .vertex = r->vertex, .number = r->number, .era = r->era, .origin = r->rank };
        given            *g = j->n_given > 0 ? bsearch(&key, j->given, (size_t)j->n_given, sizeof key, by_scope) : NULL;
        const int         need = need_of(j, r), mode = g != NULL ? j->log.lock[g->lock].mode : MODE_NONE;
        if (g == NULL || mode < need) {
            const char *does;
            const fault f = { "lock", r->rank, other_of(j, r, &does), r->era, r->vertex, r->time_ns };
            refute(j, &f, "rank %d updated vertex %" PRIu64 " and read vertex %" PRIu64 " with %s lock, where a %s "
                   "lock is promised: rank %d %s", r->rank, id_of(j, r->era, r->center), r->id,
                   g == NULL || mode == MODE_NONE ? "no" : "a read", mode_of(need), f.other, does);
        }
        if (g == NULL) continue;
        g->used = true;
        judge_lock_of(j, r, &j->log.lock[g->lock]);
    }
    for (int64_t i = 0; i < j->n_given; i++) {
        const scope_lock *l = &j->log.lock[j->given[i].lock];
        if (j->given[i].used || l->pair < 0 || !j->log.lock[l->pair].wrote) continue;
        const fault f = { "lost", l->origin, l->owner, l->era, l->vertex, l->time_ns };
        refute(j, &f, "rank %d gave rank %d a new value of vertex %" PRIu64 " that no update has made", l->origin,
               l->owner, id_of(j, l->era, l->vertex));
    }
}

/* --- values ------------------------------------------------------------------------------------------------------- */

/* The digest with which a vertex begins an era after a death: what the last good round has left. false: not known. */
static bool starts_with(const judge *j, int32_t era, uint64_t vertex, uint32_t *digest_out) {
    const scope_log *log = &j->log;
    for (int32_t from = scope_era_before(log, era); from >= 0; from = scope_era_before(log, from)) {
        const uint64_t version = scope_version_at(log, from, vertex, log->era[era].round);
        if (version > 0) {
            const scope_read *maker = scope_maker_of(log, from, vertex, version);
            if (maker != NULL) *digest_out = maker->fresh;
            return maker != NULL;
        }
        const int64_t read = scope_find_read(log, from, vertex);
        if (read < log->reads && log->read[read].version == 0) {
            *digest_out = log->read[read].digest;
            return true;
        }
        era = from; /* nobody had to do with it */
    }
    return false;
}

/* The reads i .. end - 1 of a vertex in an era, by version: each of what the update has written that made it. */
static void judge_values(judge *j, int64_t i, int64_t end) {
    const scope_read *read = j->log.read, *maker = NULL, *first = &read[i];
    for (int64_t k = i; k < end && read[k].version == 0; k++)
        if (read[k].time_ns < first->time_ns) first = &read[k];
    uint32_t          digest = first->digest;
    const bool        carried = starts_with(j, read[i].era, read[i].vertex, &digest);
    bool              known = read[i].version == 0;
    uint64_t          version = 0;
    for (; i < end; i++) {
        const scope_read *r = &read[i];
        fault             f = { "value", r->rank, maker != NULL ? maker->rank : -1, r->era, r->vertex, r->time_ns };
        if (r->version != version) {
            known = maker != NULL && maker->version + 1 == r->version;
            if (known) digest = maker->fresh;
            version = r->version;
            f.other = known ? maker->rank : -1;
            if (!known)
                refute(j, &f, "rank %d read vertex %" PRIu64 " in version %" PRIu64 ", which no update has made",
                       r->rank, r->id, r->version);
        }
        if (version == 0 && !carried) f.other = first->rank;
        if (known && r->digest != digest && version == 0)
            refute(j, &f, "rank %d read vertex %" PRIu64 " before any update, but not the value that %s", r->rank,
                   r->id, carried ? "the last good round had left" : "others read");
        else if (known && r->digest != digest)
            refute(j, &f, "rank %d read vertex %" PRIu64 " in version %" PRIu64 ", but not the value that rank %d had "
                   "written", r->rank, r->id, r->version, f.other);
        if (!r->wrote) continue;
        f.rule = "version";
        f.other = maker != NULL ? maker->rank : -1;
        if (maker != NULL && maker->version == r->version)
            refute(j, &f, "ranks %d and %d both wrote vertex %" PRIu64 " after they had read its version %" PRIu64,
                   maker->rank, r->rank, r->id, r->version);
        maker = r;
    }
}

static void judge_all_values(judge *j) {
    const scope_log *log = &j->log;
    for (int64_t i = 0, end; i < log->reads; i = end) {
        for (end = i + 1; end < log->reads && log->read[end].era == log->read[i].era &&
                          log->read[end].vertex == log->read[i].vertex;)
            end++;
        judge_values(j, i, end);
    }
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

/* Have all that took part in the last era come to rest, and done nothing since? */
static bool is_whole(judge *j) {
    const scope_log *log = &j->log;
    const int32_t    last = (int32_t)log->eras - 1;
    int32_t          rested = 0;
    for (int64_t i = 0; i < log->rests; i++) {
        const scope_rest *rest = &log->rest[i];
        rested += rest->era == last && scope_rest_of(log, last, rest->rank, -1) == rest->order;
    }
    if (rested < log->era[last].ranks) return false;
    for (int64_t i = 0; i < log->locks; i++)
        if (log->lock[i].era == last && log->lock[i].order > last_rest(j, last, log->lock[i].owner)) return false;
    return true;
}

/* Does the log lack what a rank had not written yet when it was killed? Where others go on without the rank, it has
 * written all that they have heard of. */
static plait_status does_lack(const pli_logfile *file, bool *lacks_out, plait_error *err) {
    pli_schedule_dead  dead = { 0 };
    const plait_status status = pli_schedule_dead_read(&dead, file, err);
    *lacks_out = status == PLAIT_OK && pli_schedule_lacks(&dead, file);
    pli_schedule_dead_free(&dead);
    return status;
}

static plait_status prove(judge *j, const pli_logfile *file, const char *as) {
    static const char *const scopes[] = { "vertex", "edge", "full" };
    pli_scopes_proof        *p = j->proof;
    PLI_TRY(scope_log_read(&j->log, file, j->err));
    const scope_log *log = &j->log;
    if (log->eras > 0) j->scope = log->era[0].scope;
    for (int i = 0; as != NULL && i <= SCOPE_FULL; i++)
        if (strcmp(as, scopes[i]) == 0) j->scope = i;
    if (as != NULL && strcmp(as, scopes[j->scope]) != 0)
        return pli_fail(j->err, PLAIT_ENAME, "--as %s: with --scopes it is vertex, edge or full", as);
    p->verdict = log->reads > 0 ? PLI_AUDIT_PROVEN : PLI_AUDIT_EMPTY;
    p->scope = j->scope;
    p->other = -1;
    p->workers = log->workers;
    p->updates = log->updates;
    p->reads = log->reads;
    p->locks = log->locks;
    for (int64_t i = 0; i < log->reads; i++) p->writes += log->read[i].wrote;
    for (int64_t i = 0; i < log->rests; i++)
        if (log->rest[i].round > p->rounds) p->rounds = log->rest[i].round;
    for (int64_t i = 1; i < log->eras; i++) p->deaths++;
    if (log->eras == 0) return PLAIT_OK;
    snprintf(p->program, sizeof p->program, "%s", log->era[0].program);
    PLI_TRY(does_lack(file, &p->lacks, j->err));
    if (p->lacks) p->verdict = PLI_AUDIT_CUT;
    if (p->lacks) return PLAIT_OK;
    PLI_TRY(judge_locks(j));
    PLI_TRY(order_scopes(j));
    judge_reads(j);
    judge_all_values(j);
    if (p->verdict != PLI_AUDIT_REFUTED && !is_whole(j)) p->verdict = PLI_AUDIT_CUT;
    return PLAIT_OK;
}

plait_status pli_scopes_prove(const pli_logfile *file, const char *as, pli_scopes_proof *proof_out, plait_error *err) {
    pli_scopes_proof   proof = { .verdict = PLI_AUDIT_EMPTY };
    judge              j = { .proof = &proof, .err = err };
    const plait_status status = prove(&j, file, as);
    pli_free(j.given);
    pli_free(j.held);
    scope_log_free(&j.log);
    if (status == PLAIT_OK) *proof_out = proof;
    return status;
}
