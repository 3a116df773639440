/* The comparison as one JSON object. Columns of curves are arrays of their own; null stands for what was not
 * measured or never reached. */
#include <math.h>
#include <string.h>

#include "watch/compare/compare.h"
#include "watch/watch.h"

static const char *const outcome_names[PLI_OUTCOMES] = { "ran", "refused", "failed", "stopped" };

static void nest(pli_text *to, const char *key, pli_text *inner) {
    pli_json_raw(to, key, inner->data != NULL ? inner->data : "null");
    to->failed = to->failed || inner->failed;
    pli_text_free(inner);
}

static void add_column(pli_text *to, const char *key, const pli_curve_point *point, int64_t n, size_t offset) {
    pli_text column = { 0 };
    pli_text_add(&column, "[");
    for (int64_t i = 0; i < n; i++) {
        char value[32];
        pli_format_json_f64(*(const double *)((const char *)&point[i] + offset), value);
        pli_text_add(&column, "%s%s", i == 0 ? "" : ", ", value);
    }
    pli_text_add(&column, "]");
    nest(to, key, &column);
}

static void add_points(pli_text *to, const pli_compared_run *run) {
    pli_text points = { 0 };
    pli_json_begin(&points);
    add_column(&points, "clock", run->point, run->points, offsetof(pli_curve_point, clock));
    add_column(&points, "seconds", run->point, run->points, offsetof(pli_curve_point, seconds));
    add_column(&points, "bytes", run->point, run->points, offsetof(pli_curve_point, bytes));
    add_column(&points, "loss", run->point, run->points, offsetof(pli_curve_point, loss));
    pli_json_end(&points);
    nest(to, "points", &points);
}

static void add_ranks(pli_text *to, const pli_compared_run *run) {
    pli_text ranks = { 0 };
    pli_text_add(&ranks, "[");
    for (int64_t i = 0; i < run->ranks; i++) {
        pli_text_add(&ranks, "%s", i == 0 ? "" : ", ");
        pli_json_begin(&ranks);
        pli_json_i64(&ranks, "rank", run->rank[i].rank);
        pli_json_f64(&ranks, "compute_seconds", run->rank[i].compute);
        pli_json_f64(&ranks, "wait_seconds", run->rank[i].wait);
        pli_json_f64(&ranks, "network_seconds", run->rank[i].network);
        pli_json_end(&ranks);
    }
    pli_text_add(&ranks, "]");
    nest(to, "ranks", &ranks);
}

/* The record's keys stand beside the others: what is between its braces. */
static void add_record(pli_text *to, const char *record) {
    const char *open = record != NULL ? strchr(record, '{') : NULL,
               *close = record != NULL ? strrchr(record, '}') : NULL;
    if (open != NULL && close > open + 1) pli_text_add(to, ", %.*s", (int)(close - open - 1), open + 1);
}

static void add_run(pli_text *to, const pli_comparison *c, const pli_compared_run *run) {
    const pli_compared_pair *pair = &c->pair[run->pair];
    pli_json_begin(to);
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
    pli_text counts = { 0 };
    int      last = PLI_AUDIT_BINS - 1;
    while (last >= 0 && p->stale[last] == 0) last--;
    pli_text_add(&counts, "[");
    for (int i = 0; i <= last; i++) pli_text_add(&counts, "%s%lld", i == 0 ? "" : ", ", (long long)p->stale[i]);
    pli_text_add(&counts, "]");
    if (p->gets > 0)
        nest(to, "staleness", &counts);
    else
        pli_json_null(to, "staleness");
    pli_text_free(&counts);
}

static void add_pair(pli_text *to, const pli_comparison *c, int32_t number) {
    const pli_compared_pair *p = &c->pair[number];
    pli_json_begin(to);
    pli_json_text(to, "topology", p->topology);
    pli_json_text(to, "consistency", p->consistency);
    pli_json_text(to, "outcome", p->outcome == PLI_RAN && p->runs == 0 ? "not run" : outcome_names[p->outcome]);
    pli_json_text(to, "reason", p->reason);
    pli_json_i64(to, "runs", p->runs);
    pli_json_f64(to, "seconds_to_target", p->seconds);
    pli_json_f64(to, "seconds_to_target_min", p->seconds_min);
    pli_json_f64(to, "seconds_to_target_max", p->seconds_max);
    pli_json_f64(to, "clocks_to_target", p->clocks);
    pli_json_f64(to, "bytes_to_target", p->bytes);
    pli_json_bool(to, "reached", p->runs > 0 && isfinite(p->seconds));
    if (p->runs > 0 && isfinite(p->seconds))
        pli_json_bool(to, "stayed", !p->left);
    else
        pli_json_null(to, "stayed");
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
    pli_text machine = { 0 };
    pli_json_begin(&machine);
    pli_json_text(&machine, "host", m->host);
    pli_json_text(&machine, "cpu", m->cpu);
    pli_json_i64(&machine, "cores", m->cores);
    pli_json_i64(&machine, "memory_bytes", m->memory_bytes);
    pli_json_text(&machine, "kernel", m->kernel);
    pli_json_text(&machine, "plait", m->version);
    pli_json_f64(&machine, "load", m->load);
    pli_json_end(&machine);
    nest(to, "machine", &machine);
}

static void add_name(pli_text *to, const char *key, const pli_comparison *c, int32_t pair) {
    char name[104];
    if (pair >= 0) pli_compare_name(&c->pair[pair], name);
    pli_json_text(to, key, pair >= 0 ? name : NULL);
}

static void add_judgement(pli_text *to, const pli_comparison *c) {
    pli_text j = { 0 };
    pli_json_begin(&j);
    pli_json_text(&j, "criterion",
                  "median time of the repeats until the objective is first at or below the target; apart if a "
                  "Mann-Whitney test gives at most 1 in 20");
    pli_json_f64(&j, "target", c->target);
    pli_json_f64(&j, "lowest", c->lowest);
    pli_json_text(&j, "figure", c->figure_name);
    add_name(&j, "best", c, c->best);
    add_name(&j, "next_beyond_noise", c, c->next);
    add_name(&j, "fewest_bytes", c, c->lightest);
    pli_json_text(&j, "sentence", c->sentence.data);
    pli_json_end(&j);
    nest(to, "judgement", &j);
}

void pli_compare_json(const pli_comparison *c, pli_text *text) {
    pli_text pairs = { 0 }, runs = { 0 };
    pli_json_begin(text);
    pli_json_text(text, "title", c->title);
    pli_json_text(text, "settings", c->settings);
    pli_json_text(text, "transport", c->transport);
    pli_json_i64(text, "repeats", c->repeats);
    pli_json_bool(text, "interrupted", c->interrupted);
    add_machine(text, &c->machine);
    add_judgement(text, c);
    pli_text_add(&pairs, "[");
    for (int32_t i = 0; i < c->pairs; i++) {
        pli_text_add(&pairs, "%s", i == 0 ? "" : ", ");
        add_pair(&pairs, c, i);
    }
    pli_text_add(&pairs, "]");
    nest(text, "pairs", &pairs);
    pli_text_add(&runs, "[");
    for (int64_t i = 0; i < c->runs; i++) {
        pli_text_add(&runs, "%s", i == 0 ? "" : ", ");
        add_run(&runs, c, &c->run[i]);
    }
    pli_text_add(&runs, "]");
    nest(text, "runs", &runs);
    pli_json_end(text);
}
