/* Reads the results of a run: its record, the lines of its metrics, its event log. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "watch/compare/compare.h"
#include "base/json.h"

enum { METRICS_BYTES_MAX = 1 << 30 };

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* --- metrics ------------------------------------------------------------------------------------------------ */

static bool add_point(pli_compared_run *run, const json_t *line, const char *loss) {
    if (!pli_grow((void **)&run->point, &run->points_capacity, run->points + 1, sizeof *run->point)) return false;
    pli_curve_point p = { .clock = number(line, "clock"),
                          .seconds = number(line, "seconds"),
                          .bytes = number(line, "bytes"),
                          .loss = number(line, loss) };
    if (isfinite(p.clock) && isfinite(p.seconds) && isfinite(p.loss)) run->point[run->points++] = p;
    return true;
}

static bool add_rank(pli_compared_run *run, const json_t *line) {
    if (!pli_grow((void **)&run->rank, &run->ranks_capacity, run->ranks + 1, sizeof *run->rank)) return false;
    run->rank[run->ranks++] = (pli_rank_times){ .rank = (int32_t)number(line, "rank"),
                                                .compute = number(line, "compute_seconds"),
                                                .wait = number(line, "wait_seconds"),
                                                .network = number(line, "network_seconds") };
    return true;
}

/* Reads the first of the learner's own figures from the line of the run's end. */
static bool take_figure(pli_compared_run *run, json_t *line) {
    json_t *figures = json_object_get(line, "figures");
    void   *first = json_object_iter(figures);
    if (first == NULL) return true;
    snprintf(run->figure_name, sizeof run->figure_name, "%s", json_object_iter_key(first));
    run->figure = number(figures, run->figure_name);
    return true;
}

/* Handles each line of one kind. */
static plait_status each_line(const char *text, const char *event, pli_compared_run *run, plait_error *err) {
    for (const char *at = text; at != NULL && *at != '\0';) {
        size_t  length = strcspn(at, "\n");
        json_t *line = pli_json_read(at, length, NULL);
        if (line == NULL) return pli_fail(err, PLAIT_EFORMAT, "a line of the metrics is no JSON: %.60s", at);
        bool ok = true;
        if (pli_is(json_string_value(json_object_get(line, "event")), event))
            ok = pli_is(event, "rank")  ? add_rank(run, line)
                 : pli_is(event, "end") ? take_figure(run, line)
                                        : add_point(run, line, pli_is(event, "point") ? "objective" : "loss");
        json_decref(line);
        if (!ok) return pli_fail(err, PLAIT_ENOMEM, "no memory for a run's metrics");
        at += length + (at[length] == '\n');
    }
    return PLAIT_OK;
}

static plait_status read_metrics(pli_compared_run *run, const char *path, plait_error *err) {
    pli_text     text = { 0 };
    plait_status status = pli_read_whole(path, METRICS_BYTES_MAX, &text, err);
    if (status >= 0) status = each_line(text.data, "rank", run, err);
    if (status >= 0) status = each_line(text.data, "end", run, err);
    if (status >= 0 && !run->progressive) status = each_line(text.data, "point", run, err);
    if (status >= 0 && run->points == 0) { /* no curve could be measured: take the loss of the rows as they came */
        run->progressive = true;
        status = each_line(text.data, "clock", run, err);
    }
    pli_text_free(&text);
    return status;
}

/* --- the record --------------------------------------------------------------------------------------------- */

static const char *last_line(const char *text) {
    const char *line = text;
    for (const char *c = text; *c != '\0'; c++)
        if (*c == '\n' && c[1] != '\0') line = c + 1;
    return line;
}

plait_status pli_compare_read(pli_compared_run *run, const char *printed, const char *metrics_path, plait_error *err) {
    const char *line = last_line(printed);
    size_t      length = strcspn(line, "\n");
    json_t     *record = pli_json_read(line, length, NULL);
    if (!json_is_object(record)) {
        json_decref(record);
        return pli_fail(err, PLAIT_EFORMAT, "the run ended without a record");
    }
    run->loss = number(record, "objective");
    run->progressive = !isfinite(run->loss);
    if (run->progressive) run->loss = number(record, "progressive_loss");
    run->seconds = number(record, "train_seconds");
    run->clocks = number(record, "clocks");
    run->bytes = number(record, "bytes_sent");
    const char *optimizer = json_string_value(json_object_get(record, "optimizer"));
    snprintf(run->optimizer, sizeof run->optimizer, "%s", optimizer != NULL ? optimizer : "");
    json_decref(record);
    run->record = pli_format("%.*s", (int)length, line);
    if (run->record == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a run's record");
    return read_metrics(run, metrics_path, err);
}

plait_status pli_compare_audit(pli_compared_pair *pair, const char *const *paths, int32_t n, plait_error *err) {
    pli_logfile *file = NULL;
    pli_audit   *audit = NULL;
    plait_status status = pli_logfile_open(paths, n, &file, err);
    if (status >= 0) status = pli_audit_run(file, NULL, &audit, err);
    if (status >= 0) {
        const pli_audit_figures *figures = pli_audit_table_figures(audit, 0);
        pli_audit_verdict        verdict = pli_audit_result(audit);
        if (verdict == PLI_AUDIT_PROVEN || verdict == PLI_AUDIT_REFUTED)
            pair->audit = verdict == PLI_AUDIT_PROVEN ? "proven" : "refuted";
        if (figures != NULL) {
            memcpy(pair->stale, figures->stale, sizeof pair->stale);
            for (int i = 0; i < PLI_AUDIT_BINS; i++) pair->gets += figures->stale[i];
            pair->stale_max = figures->staleness_max;
        }
    }
    pli_audit_free(&audit);
    pli_logfile_close(&file);
    return status;
}

/* --- the comparison ------------------------------------------------------------------------------------------ */

pli_compared_run *pli_compare_add(pli_comparison *c) {
    if (!pli_grow((void **)&c->run, &c->capacity, c->runs + 1, sizeof *c->run)) return NULL;
    pli_compared_run *run = &c->run[c->runs++];
    *run = (pli_compared_run){
        .loss = NAN, .seconds = NAN, .clocks = NAN, .bytes = NAN, .to_seconds = NAN, .to_clocks = NAN, .to_bytes = NAN,
        .figure = NAN
    };
    return run;
}

const char *pli_compare_optimizer(const pli_comparison *c, int32_t pair) {
    for (int64_t i = 0; i < c->runs; i++)
        if (c->run[i].pair == pair && c->run[i].optimizer[0] != '\0') return c->run[i].optimizer;
    return "";
}

bool pli_compare_optimizers_differ(const pli_comparison *c) {
    const char *first = "";
    for (int32_t i = 0; i < c->pairs; i++) {
        const char *own = pli_compare_optimizer(c, i);
        if (own[0] != '\0' && first[0] != '\0' && strcmp(own, first) != 0) return true;
        if (own[0] != '\0') first = own;
    }
    return false;
}

void pli_compare_free(pli_comparison *c) {
    for (int64_t i = 0; i < c->runs; i++) {
        pli_free(c->run[i].reason);
        pli_free(c->run[i].record);
        pli_free(c->run[i].point);
        pli_free(c->run[i].rank);
    }
    pli_free(c->run);
    pli_free(c->pair);
    pli_free(c->as_good);
    pli_text_free(&c->sentence);
    *c = (pli_comparison){ 0 };
}
