/* The audit as a whole: its passes, the verdict, and the text about it. */
#include "watch/audit/audit.h"

#include <stdarg.h>
#include <string.h>

#include "watch/audit/model.h"
#include "watch/watch.h"

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
    snprintf(audit->first.table, sizeof audit->first.table, "%s", table != NULL ? table->name : "");
    va_start(arguments, fmt);
    vsnprintf(audit->first.text, sizeof audit->first.text, fmt, arguments);
    va_end(arguments);
}

plait_status audit_stream(pli_audit *audit, int32_t stream, audit_step *step, void *state, plait_error *err) {
    pli_log_cursor  *cursor = NULL;
    const pli_event *event;
    plait_error      why = { 0 };
    plait_status     status = pli_log_cursor_open(audit->file, stream, &cursor, err);
    if (status < 0) return status;
    while (status >= 0 && (event = pli_log_cursor_next(cursor, &why)) != NULL) status = step(audit, state, event, err);
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
    for (int32_t w = 0; w < audit->job.workers; w++) happened += audit->worker[w].clocks;
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
                 w, (long long)worker->clocks, audit_seconds(audit, worker->ended_ns));
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
    bool whole;
    PLI_TRY(audit_load(audit, err));
    PLI_TRY(audit_places(audit, &whole, err));
    audit_deaths(audit, &whole);
    if (!whole) {
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

plait_status pli_audit_run(const pli_logfile *file, const char *as, pli_audit **audit_out, plait_error *err) {
    pli_promise promise;
    if (as != NULL) PLI_TRY(pli_promise_read(as, &promise, err));
    if (as != NULL && !promise.known) return pli_promise_unknown(as, err);
    pli_audit *audit = pli_calloc(1, sizeof *audit);
    if (audit == NULL) return audit_no_memory(err);
    audit->file = file;
    audit->as = as;
    plait_status status = run(audit, err);
    if (status < 0) pli_audit_free(&audit);
    *audit_out = audit;
    return status;
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
    for (int64_t t = 0; t < audit->tables; t++) free_table(audit, &audit->table[t]);
    audit_free_places(audit);
    for (int32_t w = 0; audit->worker != NULL && w < audit->job.workers; w++) pli_free(audit->worker[w].view);
    pli_free(audit->table);
    pli_free(audit->worker);
    pli_free(audit);
}

pli_audit_verdict          pli_audit_result(const pli_audit *audit) { return audit->verdict; }
const pli_audit_violation *pli_audit_first(const pli_audit *audit) {
    return audit->violations > 0 ? &audit->first : NULL;
}
const pli_audit_figures *pli_audit_table_figures(const pli_audit *audit, int32_t table) {
    const audit_table *of = audit_table_of(audit, table);
    return of == NULL ? NULL : &of->figures;
}

/* --- for people --------------------------------------------------------------------------------------------------- */

static const char *verdict_name(const pli_audit *audit) {
    static const char *const names[] = { "proven", "refuted", "cut", "empty" };
    return names[audit->verdict];
}

static void add_averages(const audit_table *table, pli_text *text) {
    pli_text_add(text, "  every copy that a worker gave was mixed once; a get holds the own updates");
    if (table->promise.rounds == 1) pli_text_add(text, "; a clock begins with the copies of the clock before");
    if (table->promise.rounds > 1)
        pli_text_add(text, "; every %lld clocks with the copies of the clock before", (long long)table->promise.rounds);
    pli_text_add(text, "\n");
}

static void add_promise(const pli_promise *promise, int32_t backup, pli_text *text) {
    if (!promise->known) pli_text_add(text, "; what %s promises of other workers is not known here", promise->spec);
    if (promise->bound == 0) pli_text_add(text, "; a get misses no update of an earlier clock");
    if (promise->bound > 0)
        pli_text_add(text, "; a get in clock c misses no update of clocks < c - %lld", (long long)promise->bound);
    if (promise->exact && backup == 0) pli_text_add(text, ", and sees none of its own clock or later");
    if (backup > 0) pli_text_add(text, " that was not dropped as late");
    if (promise->turns) pli_text_add(text, "; a get holds the updates of all earlier turns and of no later one");
    if (promise->fetch > 0) pli_text_add(text, "; values are at most %lld clocks old", (long long)promise->fetch - 1);
    if (promise->push > 0) pli_text_add(text, "; an update leaves within %lld clocks", (long long)promise->push);
    if (promise->barrier > 0)
        pli_text_add(text, ", nor of clocks below the last multiple of %lld", (long long)promise->barrier);
    if (promise->value > 0)
        pli_text_add(text, "; a get misses updates of norm below %.9g%s", promise->value,
                     promise->value_each ? " a worker" : "");
}

static void add_staleness(const audit_table *table, pli_text *text) {
    const pli_audit_figures *figures = &table->figures;
    if (figures->gets == 0) return;
    if (table->way == PLI_WAY_AVERAGED) {
        pli_text_add(text, "  staleness is not counted: a get returns the own copy, averaged with neighbours' only\n");
        return;
    }
    pli_text_add(text, "  staleness in clocks: mean %.3g, most %lld\n",
                 (double)figures->staleness_sum / (double)figures->gets, (long long)figures->staleness_max);
    for (int i = 0; i < PLI_AUDIT_BINS; i++) {
        double share = (double)figures->stale[i] / (double)figures->gets;
        if (figures->stale[i] == 0) continue;
        pli_text_add(text, "    %3d%s %10lld gets %6.2f %%  ", i, i == PLI_AUDIT_BINS - 1 ? "+" : " ",
                     (long long)figures->stale[i], 100 * share);
        for (int bar = 0; bar < (int)(40 * share + 0.5); bar++) pli_text_add(text, "#");
        pli_text_add(text, "\n");
    }
}

static void add_table(const pli_audit *audit, const audit_table *table, pli_text *text) {
    const pli_audit_figures *figures = &table->figures;
    pli_text_add(text, "table %s: %s, %s, judged as %s\n", table->name, table->topology,
                 table->ruled                         ? "ruled"
                 : strcmp(table->combine, "add") == 0 ? "additive"
                                                      : table->combine,
                 table->promise.spec);
    if (table->way == PLI_WAY_SHARED) {
        pli_text_add(
            text, "  nothing is promised: workers write the shared values in place (Hogwild), and it is not logged\n");
        return;
    }
    pli_text_add(text, "  %lld gets, %lld incs in %lld pushes, applied %lld times", (long long)figures->gets,
                 (long long)figures->incs, (long long)figures->pushes, (long long)figures->applied);
    if (figures->dropped > 0) pli_text_add(text, ", %lld dropped", (long long)figures->dropped);
    if (figures->lost > 0) pli_text_add(text, ", %lld under way when their worker died", (long long)figures->lost);
    if (figures->again > 0)
        pli_text_add(text, ", %lld of them once more, which changes nothing under %s", (long long)figures->again,
                     table->combine);
    if (figures->needless > 0)
        pli_text_add(text, ", %lld in the stead of a dead one whose own was there after all",
                     (long long)figures->needless);
    if (figures->unjudged > 0)
        pli_text_add(text, "; %lld gets not judged, since the log of the copy that answered is cut before",
                     (long long)figures->unjudged);
    pli_text_add(text, "\n");
    add_staleness(table, text);
    if (figures->violations > 0) {
        pli_text_add(text, "  refuted: %lld violation%s\n", (long long)figures->violations,
                     pli_plural(figures->violations));
        return;
    }
    if (table->way == PLI_WAY_AVERAGED) {
        add_averages(table, text);
        return;
    }
    pli_text_add(text, "  every update applied %s; a get holds the own updates; no row went back",
                 table->repeats ? "at least once" : "once");
    add_promise(&table->promise, audit->job.backup, text);
    pli_text_add(text, "\n");
}

/* Tells who served a server's shards, one after the other, and which replicas were made on the way. */
static void tell_places(const audit_home *home, pli_text *text) {
    const audit_server *serves = home->n > 0 ? &home->replica[0] : NULL;
    for (int64_t i = 1; i < home->n; i++) {
        const audit_server *copy = &home->replica[i];
        if (copy->copied > 0)
            pli_text_add(text, "rank %d got a new replica of the shards of server %d (place %d)\n", copy->rank,
                         copy->home, copy->place);
        if (!copy->served) continue;
        pli_text_add(text, "rank %d, a server, died; rank %d served the shards of server %d from then on\n",
                     serves->rank, copy->rank, copy->home);
        serves = copy;
    }
}

static void tell_dead(const pli_audit *audit, pli_text *text) {
    for (int32_t w = 0; audit->places > 1 && w < audit->job.workers; w++)
        if (audit->worker[w].dead)
            pli_text_add(text, "rank %d, a worker, died; %lld of its clocks were acknowledged\n", w,
                         (long long)audit->worker[w].clocks);
    for (int32_t h = 0; audit->places > 1 && h < audit->job.servers; h++) tell_places(&audit->home[h], text);
}

void pli_audit_text(const pli_audit *audit, pli_text *text) {
    pli_text_add(text, "%lld event%s of %d worker%s and %d server%s%s\n", (long long)audit->events,
                 pli_plural(audit->events), audit->job.workers, pli_plural(audit->job.workers), audit->job.servers,
                 pli_plural(audit->job.servers), audit->places > 1 ? " with two replicas" : "");
    tell_dead(audit, text);
    bool judged = audit->verdict == PLI_AUDIT_PROVEN || audit->verdict == PLI_AUDIT_REFUTED;
    for (int64_t t = 0; judged && t < audit->tables; t++)
        if (audit->table[t].known) add_table(audit, &audit->table[t], text);
    if (!judged)
        pli_text_add(text, "%s\n", audit->why);
    else if (audit->violations == 0)
        pli_text_add(text, "proven\n");
    else
        pli_text_add(text, "refuted: %lld violation%s, the first (%s): %s\n", (long long)audit->violations,
                     pli_plural(audit->violations), audit->first.rule, audit->first.text);
}

const char *pli_audit_why(const pli_audit *audit) {
    const bool judged = audit->verdict == PLI_AUDIT_PROVEN || audit->verdict == PLI_AUDIT_REFUTED;
    return judged ? NULL : audit->why;
}

/* --- for machines ------------------------------------------------------------------------------------------------- */

static void json_first(const pli_audit *audit, pli_text *text) {
    if (audit->violations == 0) {
        pli_json_null(text, "first");
        return;
    }
    pli_json_object(text, "first");
    pli_json_text(text, "rule", audit->first.rule);
    pli_json_text(text, "table", audit->first.table[0] != '\0' ? audit->first.table : NULL);
    pli_json_i64(text, "rank", audit->first.rank);
    pli_json_i64(text, "clock", audit->first.clock);
    if (audit->first.has_row)
        pli_json_i64(text, "row", (int64_t)audit->first.row);
    else
        pli_json_null(text, "row");
    pli_json_text(text, "text", audit->first.text);
    pli_json_end(text);
}

static void json_table(const audit_table *table, pli_text *text) {
    const pli_audit_figures *figures = &table->figures;
    int                      last = PLI_AUDIT_BINS - 1;
    while (last > 0 && figures->stale[last] == 0) last--;
    pli_json_object(text, NULL);
    pli_json_text(text, "name", table->name);
    pli_json_text(text, "topology", table->topology);
    pli_json_text(text, "judged_as", table->promise.spec);
    pli_json_bool(text, "promised", table->way != PLI_WAY_SHARED && table->own);
    pli_json_i64(text, "gets", figures->gets);
    pli_json_i64(text, "incs", figures->incs);
    pli_json_i64(text, "pushes", figures->pushes);
    pli_json_i64(text, "applied", figures->applied);
    pli_json_i64(text, "dropped", figures->dropped);
    pli_json_i64(text, "unjudged", figures->unjudged);
    pli_json_i64(text, "violations", figures->violations);
    if (table->way == PLI_WAY_AVERAGED) {
        pli_json_null(text, "staleness");
        pli_json_null(text, "staleness_max");
        pli_json_null(text, "staleness_mean");
    } else {
        pli_json_list(text, "staleness");
        for (int i = 0; i <= last; i++) pli_json_i64(text, NULL, figures->stale[i]);
        pli_json_list_end(text);
        pli_json_i64(text, "staleness_max", figures->staleness_max);
        pli_json_f64(text, "staleness_mean",
                     figures->gets == 0 ? 0 : (double)figures->staleness_sum / (double)figures->gets);
    }
    pli_json_end(text);
}

void pli_audit_json(const pli_audit *audit, pli_text *text) {
    pli_json_begin(text);
    pli_json_text(text, "verdict", verdict_name(audit));
    pli_json_text(text, "why", audit->why[0] != '\0' ? audit->why : NULL);
    pli_json_i64(text, "events", audit->events);
    pli_json_i64(text, "workers", audit->job.workers);
    pli_json_i64(text, "servers", audit->job.servers);
    pli_json_i64(text, "violations", audit->violations);
    json_first(audit, text);
    pli_json_list(text, "tables");
    for (int64_t t = 0; t < audit->tables; t++)
        if (audit->table[t].known) json_table(&audit->table[t], text);
    pli_json_list_end(text);
    pli_json_end(text);
}
