/* The audit as a whole: its passes, the verdict, and the text about it. */
#include "watch/audit/audit.h"

#include <stdarg.h>
#include <string.h>

#include "watch/audit/model.h"
#include "watch/eventcode.h"

plait_status audit_no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory to audit an event log of this size");
}

double audit_seconds(const pli_audit *audit, uint64_t time_ns) { return (double)(time_ns - audit->begun_ns) * 1e-9; }

void audit_violation(pli_audit *audit, audit_table *table, const pli_audit_violation *violation, const char *fmt, ...) {
    if (table != NULL) table->figures.violations++;
    bool is_first = audit->violations++ == 0 || violation->time_ns < audit->first.time_ns ||
                    (violation->time_ns == audit->first.time_ns && violation->rank < audit->first.rank);
    if (!is_first) return;
    va_list arguments;
    audit->first = *violation;
    audit->first.rank = audit_rank(audit, violation->rank);
    snprintf(audit->first.table, sizeof audit->first.table, "%s", table != NULL ? table->name : "");
    va_start(arguments, fmt);
    vsnprintf(audit->first.text, sizeof audit->first.text, fmt, arguments);
    va_end(arguments);
}

plait_status audit_stream(pli_audit *audit, int32_t stream, audit_step *step, void *state, plait_error *err) {
    pli_log_cursor  *cursor = NULL;
    const pli_event *event;
    pli_event        own;
    plait_error      why = { 0 };
    plait_status     status = pli_log_cursor_open(audit->file, stream, &cursor, err);
    if (status < 0) return status;
    while (status >= 0 && (event = pli_log_cursor_next(cursor, &why)) != NULL)
        if ((event = audit_number(audit, event, &own)) != NULL) status = step(audit, state, event, err);
    if (status >= 0 && why.code < 0) {
        if (err != NULL) *err = why;
        status = why.code;
    }
    pli_log_cursor_close(&cursor);
    return status;
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

/* Did anything happen? */
static bool is_empty(const pli_audit *audit) {
    int64_t happened = 0;
    for (int32_t w = 0; w < audit->job.workers; w++) happened += audit->worker[w].clocks - audit->first_clock;
    for (int64_t t = 0; t < audit->tables; t++) happened += audit->table[t].figures.incs + audit->table[t].figures.gets;
    return happened == 0;
}

static void judge(pli_audit *audit) {
    audit->verdict = audit->violations > 0 ? PLI_AUDIT_REFUTED : PLI_AUDIT_PROVEN;
    if (audit->verdict == PLI_AUDIT_PROVEN && is_empty(audit)) {
        audit->verdict = PLI_AUDIT_EMPTY;
        snprintf(audit->why, sizeof audit->why, "the event log is empty: no rank has read, updated or ended a clock");
    }
    for (int64_t t = 0; audit->as != NULL && audit->verdict == PLI_AUDIT_PROVEN && t < audit->tables; t++) {
        if (!audit->table[t].known || audit->table[t].way != PLI_WAY_SHARED) continue;
        audit->verdict = PLI_AUDIT_EMPTY;
        audit->unlogged = true;
        snprintf(
            audit->why, sizeof audit->why,
            "table %s cannot be judged by %s: workers write its shared values in place (Hogwild), and it is not logged",
            audit->table[t].name, audit->as);
    }
    for (int32_t w = 0; audit->verdict == PLI_AUDIT_PROVEN && w < audit->job.workers; w++) {
        const audit_worker *worker = &audit->worker[w];
        if (worker->done || worker->dead) continue;
        audit->verdict = PLI_AUDIT_CUT;
        snprintf(audit->why, sizeof audit->why,
                 "the run broke off: rank %d did not come to its end (last seen in clock %lld, at %.6f s); "
                 "up to there nothing is refuted",
                 audit_rank(audit, w), (long long)worker->clocks, audit_seconds(audit, worker->ended_ns));
    }
}

/* A file without its end may lack anything, so nothing is concluded from it, except with replicas when the ranks whose
 * logs are cut have died (dead.c). */
static void tell_cut(pli_audit *audit) {
    audit->verdict = PLI_AUDIT_CUT;
    int64_t least = INT64_MAX;
    for (int32_t w = 0; w < audit->job.workers; w++)
        if (audit->worker[w].clocks < least) least = audit->worker[w].clocks;
    if (least == INT64_MAX) least = 0;
    snprintf(audit->why, sizeof audit->why,
             "%s: the event log is cut: %lld event%s and no end; all workers had ended %lld clock%s",
             pli_logfile_cut(audit->file), (long long)audit->events, pli_plural(audit->events), (long long)least,
             pli_plural(least));
}

static plait_status run(pli_audit *audit, plait_error *err) {
    PLI_TRY(audit_find_lives(audit, err));
    PLI_TRY(audit_load(audit, err));
    PLI_TRY(audit_places(audit, &audit->whole, err));
    audit_deaths(audit, &audit->whole);
    if (!audit->whole) {
        tell_cut(audit);
        return PLAIT_OK;
    }
    PLI_TRY(audit_open_holders(audit, err));
    PLI_TRY(audit_histories(audit, err));
    PLI_TRY(audit_reads(audit, err));
    PLI_TRY(audit_averages(audit, err));
    judge(audit);
    return PLAIT_OK;
}

static void free_table(const pli_audit *audit, audit_table *table) {
    for (int32_t s = 0; table->shard != NULL && s < table->shards; s++) {
        for (int32_t i = 0; i < table->shard[s].replicas; i++) audit_free_holder(audit, &table->shard[s].replica[i]);
        pli_free(table->shard[s].replica);
    }
    for (int32_t w = 0; w < audit->job.workers; w++) {
        if (table->pusher != NULL) {
            pli_free(table->pusher[w].push);
            pli_free(table->pusher[w].inc);
            pli_free(table->pusher[w].barrier);
            pli_free(table->pusher[w].zero);
            pli_free(table->pusher[w].call);
        }
        if (table->mirror != NULL && table->way == PLI_WAY_SUMMED) pli_free(table->mirror[w].sum);
    }
    pli_free(table->shard);
    pli_free(table->pusher);
    for (int32_t w = 0; table->copies != NULL && table->way == PLI_WAY_AVERAGED && w < audit->job.workers; w++) {
        pli_free(table->copies[w].give);
        pli_free(table->copies[w].mix);
    }
    pli_free(table->mirror);
    pli_free(table->copies);
}

void pli_audit_free(pli_audit **audit_ptr) {
    pli_audit *audit = *audit_ptr;
    *audit_ptr = NULL;
    if (audit == NULL) return;
    for (int64_t i = 0; i < audit->parts; i++) pli_audit_free(&audit->part[i]);
    pli_free(audit->part);
    pli_free(audit->rank);
    pli_free(audit->life);
    for (int64_t t = 0; t < audit->tables; t++) free_table(audit, &audit->table[t]);
    audit_free_places(audit);
    for (int32_t w = 0; audit->worker != NULL && w < audit->job.workers; w++) {
        pli_free(audit->worker[w].view);
        pli_free(audit->worker[w].fellow);
        pli_free(audit->worker[w].call);
        pli_free(audit->worker[w].ran);
        pli_free(audit->worker[w].called);
    }
    pli_free(audit->table);
    pli_free(audit->worker);
    pli_free(audit);
}

/* --- all jobs of a log -------------------------------------------------------------------------------------------- */

static plait_status audit_group(pli_audit *whole, uint32_t group, plait_error *err) {
    pli_audit *part = pli_calloc(1, sizeof *part);
    if (part == NULL) return audit_no_memory(err);
    *part = (pli_audit){ .file = whole->file, .as = whole->as, .group = group, .begun_ns = whole->begun_ns };
    whole->part[whole->parts++] = part;
    return run(part, err);
}

/* In the order of the groups' numbers. */
static plait_status audit_groups(pli_audit *whole, plait_error *err) {
    uint32_t last = 0;
    int64_t  capacity = 0;
    for (;;) {
        uint32_t next = PLI_LOG_GROUPS_MAX;
        for (int32_t i = 0; i < pli_logfile_streams(whole->file); i++) {
            const uint32_t group = pli_logfile_group(whole->file, i);
            if (group > last && group < next) next = group;
        }
        if (next == PLI_LOG_GROUPS_MAX) return PLAIT_OK;
        if (!pli_grow((void **)&whole->part, &capacity, whole->parts + 1, sizeof(void *))) return audit_no_memory(err);
        PLI_TRY(audit_group(whole, last = next, err));
    }
}

plait_status pli_audit_run(const pli_logfile *file, const char *as, pli_audit **audit_out, plait_error *err) {
    pli_promise promise;
    if (as != NULL) PLI_TRY(pli_promise_read(as, &promise, err));
    if (as != NULL && !promise.known) return pli_promise_unknown(as, err);
    pli_audit *audit = pli_calloc(1, sizeof *audit);
    if (audit == NULL) return audit_no_memory(err);
    audit->file = file;
    audit->as = as;
    plait_status status = run(audit, err);
    if (status >= 0) status = audit_groups(audit, err);
    if (status >= 0) audit_check_fellows(audit);
    if (status < 0) pli_audit_free(&audit);
    *audit_out = audit;
    return status;
}

/* How much a job's verdict says about the log: a violation most, then a log that is cut, then values that no log tells
 * of. A job in which nothing happened says nothing where something happened in another. */
static int weight_of(const pli_audit *audit) {
    switch (audit->verdict) {
    case PLI_AUDIT_REFUTED: return 4;
    case PLI_AUDIT_CUT: return 3;
    case PLI_AUDIT_EMPTY: return audit->unlogged ? 2 : 0;
    default: return 1;
    }
}

const pli_audit *audit_decisive(const pli_audit *audit) {
    const pli_audit *most = audit;
    for (int64_t i = 0; i < audit->parts; i++)
        if (weight_of(audit->part[i]) > weight_of(most)) most = audit->part[i];
    return most;
}

pli_audit_verdict pli_audit_result(const pli_audit *audit) { return audit_decisive(audit)->verdict; }

const pli_audit_violation *pli_audit_first(const pli_audit *audit) {
    const pli_audit *first = audit->violations > 0 ? audit : NULL;
    for (int64_t i = 0; i < audit->parts; i++) {
        const pli_audit *part = audit->part[i];
        if (part->violations > 0 && (first == NULL || part->first.time_ns < first->first.time_ns)) first = part;
    }
    return first == NULL ? NULL : &first->first;
}

const pli_audit_figures *pli_audit_table_figures(const pli_audit *audit, int32_t table) {
    const audit_table *of = audit_table_of(audit, table);
    return of == NULL ? NULL : &of->figures;
}
