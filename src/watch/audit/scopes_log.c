/* Reads what a log tells of locks, and sorts it. See scopes_log.h. */
#include "watch/audit/scopes_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static plait_status no_memory(plait_error *err) { return pli_fail(err, PLAIT_ENOMEM, "no memory to judge the locks"); }

/* --- reading ------------------------------------------------------------------------------------------------------ */

static plait_status begin_era(scope_log *log, int32_t era, const pli_event *event, plait_error *err) {
    const pli_event_scopes *scopes = event->info.scopes;
    if (!pli_grow((void **)&log->era, &log->eras_capacity, era + 1, sizeof *log->era)) return no_memory(err);
    scope_era *of = &log->era[era];
    if (era == log->eras) {
        *of = (scope_era){ .round = scopes->round, .scope = scopes->scope };
        snprintf(of->program, sizeof of->program, "%s", scopes->program);
        log->eras++;
    } else if (of->round != scopes->round || of->scope != scopes->scope ||
               strncmp(of->program, scopes->program, sizeof of->program - 1) != 0) {
        return pli_fail(err, PLAIT_EFORMAT,
                        "the event log contradicts itself: rank %d gives locks of %s, others those of %s", event->rank,
                        scopes->program, of->program);
    }
    of->ranks++;
    return PLAIT_OK;
}

static bool add_lock(scope_log *log, int32_t era, int64_t order, const pli_event *event) {
    const pli_event_lock *of = event->info.lock;
    if (!pli_grow((void **)&log->lock, &log->locks_capacity, log->locks + 1, sizeof *log->lock)) return false;
    log->lock[log->locks++] = (scope_lock){ .vertex = of->vertex, .version = of->version, .time_ns = event->time_ns,
                                            .order = order, .pair = -1, .number = of->number, .at = of->at,
                                            .era = era, .owner = event->rank, .origin = of->origin,
                                            .mode = (uint8_t)of->mode, .wrote = of->wrote,
                                            .back = event->kind == PLI_EVENT_UNLOCK };
    return true;
}

static bool add_reads(scope_log *log, int32_t era, int64_t order, const pli_event *event) {
    if (!pli_grow((void **)&log->read, &log->reads_capacity, log->reads + event->n, sizeof *log->read)) return false;
    for (int64_t i = 0; i < event->n; i++) {
        const pli_event_use *use = &event->info.use[i];
        log->read[log->reads++] = (scope_read){ .vertex = use->vertex, .id = use->id, .version = use->version,
                                                .center = event->row, .time_ns = event->time_ns, .order = order,
                                                .number = (uint32_t)event->seq, .digest = use->digest,
                                                .fresh = use->fresh, .era = era, .rank = event->rank,
                                                .wrote = use->wrote };
    }
    log->updates++;
    return true;
}

static bool add_rest(scope_log *log, int32_t era, int64_t order, const pli_event *event) {
    if (!pli_grow((void **)&log->rest, &log->rests_capacity, log->rests + 1, sizeof *log->rest)) return false;
    log->rest[log->rests++] = (scope_rest){ .order = order, .round = (int64_t)event->seq, .era = era,
                                            .rank = event->rank };
    return true;
}

static plait_status read_event(scope_log *log, int32_t *era, int64_t order, const pli_event *event, plait_error *err) {
    bool kept = true;
    if (event->kind == PLI_EVENT_SCOPES) return begin_era(log, ++*era, event, err);
    if (*era < 0)
        return pli_fail(err, PLAIT_EFORMAT, "the event log contradicts itself: rank %d gave locks before it began to",
                        event->rank);
    if (event->kind == PLI_EVENT_USE) kept = add_reads(log, *era, order, event);
    else if (event->kind == PLI_EVENT_REST) kept = add_rest(log, *era, order, event);
    else kept = add_lock(log, *era, order, event);
    return kept ? PLAIT_OK : no_memory(err);
}

static plait_status read_stream(scope_log *log, const pli_logfile *file, int32_t stream, plait_error *err) {
    pli_log_cursor  *cursor = NULL;
    const pli_event *event;
    plait_status     status = PLAIT_OK;
    plait_error      why = { 0 };
    int32_t          era = -1;
    PLI_TRY(pli_log_cursor_open(file, stream, &cursor, err));
    for (int64_t order = 0; status == PLAIT_OK && (event = pli_log_cursor_next(cursor, &why)) != NULL; order++) {
        if (log->begun_ns == 0 || event->time_ns < log->begun_ns) log->begun_ns = event->time_ns;
        status = read_event(log, &era, order, event, err);
    }
    pli_log_cursor_close(&cursor);
    log->workers++;
    return status == PLAIT_OK && why.code < 0 ? pli_fail(err, why.code, "%s", why.text) : status;
}

/* --- order -------------------------------------------------------------------------------------------------------- */

static int by(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int by_vertex(const void *x, const void *y) {
    const scope_lock *a = x, *b = y;
    int               order = a->era - b->era;
    if (order == 0) order = by(a->vertex, b->vertex);
    if (order == 0) order = a->owner - b->owner;
    return order != 0 ? order : by((uint64_t)a->order, (uint64_t)b->order);
}

static int by_version(const void *x, const void *y) {
    const scope_read *a = x, *b = y;
    int               order = a->era - b->era;
    if (order == 0) order = by(a->vertex, b->vertex);
    if (order == 0) order = by(a->version, b->version);
    if (order == 0) order = a->wrote - b->wrote;
    if (order == 0) order = a->rank - b->rank;
    return order != 0 ? order : by((uint64_t)a->order, (uint64_t)b->order);
}

plait_status scope_log_read(scope_log *log, const pli_logfile *file, plait_error *err) {
    for (int32_t i = 0; i < pli_logfile_streams(file); i++)
        if (pli_logfile_is_locks(file, i)) PLI_TRY(read_stream(log, file, i, err));
    if (log->locks > 0) qsort(log->lock, (size_t)log->locks, sizeof *log->lock, by_vertex);
    if (log->reads > 0) qsort(log->read, (size_t)log->reads, sizeof *log->read, by_version);
    return PLAIT_OK;
}

void scope_log_free(scope_log *log) {
    pli_free(log->lock);
    pli_free(log->read);
    pli_free(log->rest);
    pli_free(log->era);
}

int64_t scope_rest_of(const scope_log *log, int32_t era, int32_t rank, int64_t round) {
    int64_t found = -1;
    for (int64_t i = 0; i < log->rests; i++) {
        const scope_rest *rest = &log->rest[i];
        if (rest->era == era && rest->rank == rank && (round < 0 || rest->round == round) && rest->order > found)
            found = rest->order;
    }
    return found;
}

int64_t scope_find_lock(const scope_log *log, int32_t era, uint64_t vertex) {
    int64_t low = 0, high = log->locks;
    while (low < high) {
        const int64_t     middle = low + (high - low) / 2;
        const scope_lock *at = &log->lock[middle];
        if (at->era < era || (at->era == era && at->vertex < vertex)) low = middle + 1;
        else high = middle;
    }
    return low < log->locks && log->lock[low].era == era && log->lock[low].vertex == vertex ? low : log->locks;
}

int64_t scope_find_read(const scope_log *log, int32_t era, uint64_t vertex) {
    int64_t low = 0, high = log->reads;
    while (low < high) {
        const int64_t     middle = low + (high - low) / 2;
        const scope_read *at = &log->read[middle];
        if (at->era < era || (at->era == era && at->vertex < vertex)) low = middle + 1;
        else high = middle;
    }
    return low < log->reads && log->read[low].era == era && log->read[low].vertex == vertex ? low : log->reads;
}

/* --- what it says of a vertex ------------------------------------------------------------------------------------- */

const scope_read *scope_maker_of(const scope_log *log, int32_t era, uint64_t vertex, uint64_t version) {
    for (int64_t i = scope_find_read(log, era, vertex); i < log->reads; i++) {
        const scope_read *r = &log->read[i];
        if (r->era != era || r->vertex != vertex || r->version >= version) break;
        if (r->wrote && r->version + 1 == version) return r;
    }
    return NULL;
}

int32_t scope_era_before(const scope_log *log, int32_t era) {
    const int64_t round = log->era[era].round;
    for (int32_t from = era - 1; from >= 0 && round > 0; from--)
        for (int64_t i = 0; i < log->rests; i++)
            if (log->rest[i].era == from && log->rest[i].round == round) return from;
    return -1;
}

uint64_t scope_version_at(const scope_log *log, int32_t era, uint64_t vertex, int64_t round) {
    const int64_t first = scope_find_lock(log, era, vertex),
                  rest = first < log->locks ? scope_rest_of(log, era, log->lock[first].owner, round) : -1;
    uint64_t      version = 0;
    for (int64_t i = first; i < log->locks && log->lock[i].era == era && log->lock[i].vertex == vertex; i++)
        version += log->lock[i].back && log->lock[i].wrote && (rest < 0 || log->lock[i].order < rest);
    return version;
}
