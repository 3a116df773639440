/* Writes the comparison as one JSON object. Each column of a curve is an array; null means not measured or never
 * reached. */
#include <math.h>
#include <string.h>

#include "watch/compare/compare.h"
#include "watch/watch.h"

static const char *const outcome_names[PLI_OUTCOMES] = { "ran", "refused", "failed", "stopped" };

static void add_column(pli_text *to, const char *key, const pli_curve_point *point, int64_t n, size_t offset) {
    pli_json_list(to, key);
    for (int64_t i = 0; i < n; i++)
        pli_json_f64(to, NULL, *(const double *)((const char *)&point[i] + offset));
    pli_json_list_end(to);
}

static void add_points(pli_text *to, const pli_compared_run *run) {
    pli_json_object(to, "points");
    add_column(to, "clock", run->point, run->points, offsetof(pli_curve_point, clock));
    add_column(to, "seconds", run->point, run->points, offsetof(pli_curve_point, seconds));
    add_column(to, "bytes", run->point, run->points, offsetof(pli_curve_point, bytes));
    add_column(to, "loss", run->point, run->points, offsetof(pli_curve_point, loss));
    pli_json_end(to);
}

static void add_ranks(pli_text *to, const pli_compared_run *run) {
    pli_json_list(to, "ranks");
    for (int64_t i = 0; i < run->ranks; i++) {
        pli_json_object(to, NULL);
        pli_json_i64(to, "rank", run->rank[i].rank);
        pli_json_f64(to, "compute_seconds", run->rank[i].compute);
        pli_json_f64(to, "wait_seconds", run->rank[i].wait);
        pli_json_f64(to, "network_seconds", run->rank[i].network);
        pli_json_end(to);
    }
    pli_json_list_end(to);
}

/* Adds the record's keys, the text between its braces, beside the other keys. */
static void add_record(pli_text *to, const char *record) {
    const char *open = record != NULL ? strchr(record, '{') : NULL,
               *close = record != NULL ? strrchr(record, '}') : NULL;
    if (open != NULL && close > open + 1) pli_text_add(to, ", %.*s", (int)(close - open - 1), open + 1);
}

static void add_run(pli_text *to, const pli_comparison *c, const pli_compared_run *run) {
    const pli_compared_pair *pair = &c->pair[run->pair];
    pli_json_object(to, NULL);
    pli_json_i64(to, "pair", run->pair);
    pli_json_i64(to, "repeat", run->repeat);
    pli_json_text(to, "outcome", outcome_names[run->outcome]);
    pli_json_i64(to, "exit_code", run->exit_code);
    pli_json_text(to, "reason", run->reason);
    if (run->record == NULL) {
        pli_json_text(to, "topology", pair->topology);
        pli_json_text(to, "consistency", pair->consistency);
    }
    pli_json_f64(to, "seconds_to_target", run->to_seconds);
    pli_json_f64(to, "clocks_to_target", run->to_clocks);
    pli_json_f64(to, "bytes_to_target", run->to_bytes);
    add_points(to, run);
    add_ranks(to, run);
    add_record(to, run->record);
    pli_json_end(to);
}

static void add_stale(pli_text *to, const pli_compared_pair *p) {
    int last = PLI_AUDIT_BINS - 1;
    while (last >= 0 && p->stale[last] == 0) last--;
    if (p->gets == 0) {
        pli_json_null(to, "staleness");
        return;
    }
    pli_json_list(to, "staleness");
    for (int i = 0; i <= last; i++) pli_json_i64(to, NULL, p->stale[i]);
    pli_json_list_end(to);
}

static void add_pair(pli_text *to, const pli_comparison *c, int32_t number) {
    const pli_compared_pair *p = &c->pair[number];
    pli_json_object(to, NULL);
    pli_json_text(to, "topology", p->topology);
    pli_json_text(to, "consistency", p->consistency);
    pli_json_text(to, "outcome", p->outcome == PLI_RAN && p->runs == 0 ? "not run" : outcome_names[p->outcome]);
    pli_json_text(to, "reason", p->reason);
    const char *optimizer = pli_compare_optimizer(c, number);
    pli_json_text(to, "optimizer", optimizer[0] != '\0' ? optimizer : NULL);
    pli_json_i64(to, "runs", p->runs);
    pli_json_f64(to, "seconds_to_target", p->seconds);
    pli_json_f64(to, "seconds_to_target_min", p->seconds_min);
    pli_json_f64(to, "seconds_to_target_max", p->seconds_max);
    pli_json_f64(to, "clocks_to_target", p->clocks);
    pli_json_f64(to, "bytes_to_target", p->bytes);
    pli_json_bool(to, "reached", p->runs > 0 && isfinite(p->seconds));
    if (p->runs > 0 && isfinite(p->seconds))
        pli_json_bool(to, "stayed", p->left == 0);
    else
        pli_json_null(to, "stayed");
    pli_json_i64(to, "runs_that_left", p->left);
    pli_json_i64(to, "servers_that_work", p->servers_work);
    pli_json_bool(to, "as_good_as_best", c->as_good != NULL && c->as_good[number]);
    pli_json_f64(to, "loss", p->loss);
    pli_json_f64(to, "figure", p->figure);
    pli_json_f64(to, "compute_seconds", p->compute);
    pli_json_f64(to, "wait_seconds", p->wait);
    pli_json_f64(to, "network_seconds", p->network);
    if (p->typical >= 0)
        pli_json_i64(to, "typical_run", p->typical);
    else
        pli_json_null(to, "typical_run");
    add_stale(to, p);
    if (p->gets > 0)
        pli_json_i64(to, "staleness_max", p->stale_max);
    else
        pli_json_null(to, "staleness_max");
    pli_json_text(to, "audit", p->audit);
    pli_json_end(to);
}

static void add_machine(pli_text *to, const pli_machine *m) {
    pli_json_object(to, "machine");
    pli_json_text(to, "host", m->host);
    pli_json_text(to, "cpu", m->cpu);
    pli_json_i64(to, "cores", m->cores);
    pli_json_i64(to, "memory_bytes", m->memory_bytes);
    pli_json_text(to, "kernel", m->kernel);
    pli_json_text(to, "plait", m->version);
    pli_json_f64(to, "load", m->load);
    pli_json_end(to);
}

static void add_name(pli_text *to, const char *key, const pli_comparison *c, int32_t pair) {
    char name[104];
    if (pair >= 0) pli_compare_name(&c->pair[pair], name);
    pli_json_text(to, key, pair >= 0 ? name : NULL);
}

static void add_judgement(pli_text *to, const pli_comparison *c) {
    pli_json_object(to, "judgement");
    pli_json_text(to, "criterion",
                  "median time of the repeats until the objective is first at or below the target; apart if a "
                  "Mann-Whitney test gives at most 1 in 20");
    pli_json_f64(to, "target", c->target);
    pli_json_f64(to, "lowest", c->lowest);
    pli_json_text(to, "figure", c->figure_name);
    add_name(to, "best", c, c->best);
    add_name(to, "next_beyond_noise", c, c->next);
    add_name(to, "fewest_bytes", c, c->lightest);
    pli_json_text(to, "sentence", c->sentence.data);
    pli_json_end(to);
}

void pli_compare_json(const pli_comparison *c, pli_text *text) {
    pli_json_begin(text);
    pli_json_text(text, "title", c->title);
    pli_json_text(text, "settings", c->settings);
    pli_json_text(text, "transport", c->transport);
    pli_json_i64(text, "repeats", c->repeats);
    pli_json_bool(text, "interrupted", c->interrupted);
    add_machine(text, &c->machine);
    add_judgement(text, c);
    pli_json_list(text, "pairs");
    for (int32_t i = 0; i < c->pairs; i++) add_pair(text, c, i);
    pli_json_list_end(text);
    pli_json_list(text, "runs");
    for (int64_t i = 0; i < c->runs; i++) add_run(text, c, &c->run[i]);
    pli_json_list_end(text);
    pli_json_end(text);
}
