/* What a plan shows: a line for each setting, the shortest job first, and why others would not run. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/plan.h"
#include "table/pairs/pairs.h"
#include "watch/compare/compare.h"

static bool ran(const pli_plan_setting *s) { return s->done && s->typical.status >= 0; }

static double memory_of(const pli_plan *plan, const pli_plan_setting *s) {
    return s->typical.rank_bytes + plan->row_bytes / s->workers;
}

static int by_time(const void *left, const void *right) {
    const pli_plan_setting *a = *(const pli_plan_setting *const *)left, *b = *(const pli_plan_setting *const *)right;
    const double            x = ran(a) ? a->seconds : INFINITY, y = ran(b) ? b->seconds : INFINITY;
    return x != y ? (x > y) - (x < y) : (a > b) - (a < b);
}

static int32_t sorted(const pli_plan *plan, const pli_plan_setting *order[PLI_PLAN_SETTINGS]) {
    int32_t n = 0;
    for (int32_t i = 0; i < plan->n; i++)
        if (plan->setting[i].done) order[n++] = &plan->setting[i];
    qsort(order, (size_t)n, sizeof *order, by_time);
    return n;
}

/* "ps x bsp, 4", "ps x bsp, 4 workers + 2 servers, key-cache": what the search has chosen stands behind. */
static void name_of(const pli_plan_setting *s, const char *workers, char name[200]) {
    int n = snprintf(name, 200, "%s x %s, %" PRId32 "%s", s->pair.topology, s->pair.consistency, s->workers, workers);
    if (s->searched && s->servers > 0)
        n += snprintf(name + n, 200 - (size_t)n, " + %" PRId32 " server%s", s->servers, s->servers > 1 ? "s" : "");
    snprintf(name + n, 200 - (size_t)n, "%s%s%s%s", s->filter[0] != '\0' ? ", " : "", s->filter,
             s->collective[0] != '\0' ? ", " : "", s->collective);
}

static bool shows_cost(const pli_plan *plan) { return plan->set.price > 0; }

/* Columns beside the setting and the time of the job. Those that come first stay in a narrow window. */
enum { COST, OBJECTIVE, CLOCK, OPTIMIZER, SENT, IDLE, MEMORY, BETWEEN, COLUMNS, JOB_WIDTH = 9 };
static const int column_width[COLUMNS] = { 10, 11, 9, 9, 9, 6, 9, 18 };

/* Which columns the table has. */
typedef struct columns {
    int  name; /* its width */
    bool has[COLUMNS];
} columns;

/* Leaves out the columns that the window has no room for. */
static void fit_columns(columns *c, int width) {
    int room = width - c->name - JOB_WIDTH;
    for (int i = 0; i < COLUMNS; i++) {
        c->has[i] = c->has[i] && column_width[i] <= room;
        if (c->has[i]) room -= column_width[i];
    }
}

static columns columns_of(const pli_plan *plan, const pli_plan_setting *const *order, int32_t n) {
    columns c = { .name = 16 };
    char    name[200];
    for (int i = 0; i < COLUMNS; i++) c.has[i] = true;
    c.has[COST] = shows_cost(plan);
    c.has[OBJECTIVE] = plan->set.clocks == 0;
    c.has[OPTIMIZER] = false;
    for (int32_t i = 0; i < n && ran(order[i]); i++) {
        name_of(order[i], "", name);
        if ((int)strlen(name) > c.name) c.name = (int)strlen(name);
        c.has[OPTIMIZER] |= !pli_is(order[i]->typical.optimizer, order[0]->typical.optimizer);
    }
    fit_columns(&c, pli_cli_width());
    return c;
}

/* "1.2 to 3.4 ms": the unit once, if both have the same. */
static void range_of(double low, double high, char text[56]) {
    char a[24], b[24];
    pli_compare_seconds(low, a);
    pli_compare_seconds(high, b);
    const char *unit_a = strchr(a, ' '), *unit_b = strchr(b, ' ');
    const bool  same = unit_a != NULL && unit_b != NULL && strcmp(unit_a, unit_b) == 0;
    snprintf(text, 56, "%.*s to %s", same ? (int)(unit_a - a) : (int)strlen(a), a, b);
}

static void add_head(const columns *c, pli_text *text) {
    pli_text_add(text, "%-*s", c->name, "setting, workers");
    if (c->has[OPTIMIZER]) pli_text_add(text, " %-8s", "by");
    if (c->has[CLOCK]) pli_text_add(text, " %8s", "a clock");
    if (c->has[BETWEEN]) pli_text_add(text, "  %-16s", "between");
    pli_text_add(text, " %8s", "the job");
    if (c->has[SENT]) pli_text_add(text, " %8s", "sent");
    if (c->has[IDLE]) pli_text_add(text, " %5s", "idle");
    if (c->has[MEMORY]) pli_text_add(text, " %8s", "a rank");
    if (c->has[COST]) pli_text_add(text, " %9s", "cost");
    if (c->has[OBJECTIVE]) pli_text_add(text, " %10s", "objective");
    pli_text_add(text, "\n");
}

static void add_line(const pli_plan *plan, const columns *c, const pli_plan_setting *s, pli_text *text) {
    char name[200], clock[24], whole[24], bytes[24], memory[24], range[56];
    name_of(s, "", name);
    range_of(s->low, s->high, range);
    pli_compare_seconds(s->clock_seconds, clock);
    pli_compare_seconds(s->seconds, whole);
    pli_compare_bytes(s->bytes, bytes);
    pli_compare_bytes(memory_of(plan, s), memory);
    pli_text_add(text, "%-*s", c->name, name);
    if (c->has[OPTIMIZER]) pli_text_add(text, " %-8s", s->typical.optimizer);
    if (c->has[CLOCK]) pli_text_add(text, " %8s", clock);
    if (c->has[BETWEEN]) pli_text_add(text, "  %-16s", range);
    pli_text_add(text, " %8s", whole);
    if (c->has[SENT]) pli_text_add(text, " %8s", bytes);
    if (c->has[IDLE]) pli_text_add(text, " %3.0f %%", 100 * s->typical.idle_share);
    if (c->has[MEMORY]) pli_text_add(text, " %8s", memory);
    if (c->has[COST]) pli_text_add(text, " %9.3g", s->cost);
    if (c->has[OBJECTIVE]) pli_text_add(text, " %10.6g", s->typical.objective);
    pli_text_add(text, "\n");
}

/* Adds a sentence, on as many lines as it needs. */
static void add_wrapped(pli_text *line, pli_text *text) {
    pli_cli_wrap(text, line->data != NULL ? line->data : "", 0, pli_cli_width());
    text->failed = text->failed || line->failed;
    pli_text_free(line);
}

/* Is the pair one that never trains, and that nobody has named? Then its reason interests nobody. */
static bool is_usual_refusal(const pli_plan *plan, const pli_plan_setting *s) {
    const pli_pair pair = { .topology = s->pair.topology, .consistency = s->pair.consistency };
    return plan->usual && pli_pair_check(&pair, NULL) < 0;
}

/* Has a setting that was listed the same reason as another? */
static bool fails_alike(const pli_plan_setting *a, const pli_plan_setting *b) {
    return !ran(a) && !a->searched && strcmp(a->typical.why, b->typical.why) == 0;
}

/* Each reason once, with the first setting that has it. */
static void add_reasons(const pli_plan *plan, const pli_plan_setting *const *order, int32_t n, pli_text *text) {
    char       name[200];
    const bool some = n > 0 && ran(order[0]);
    for (int32_t i = 0; i < n; i++) {
        int32_t before = 0, alike = 0;
        if (ran(order[i]) || order[i]->searched || (some && is_usual_refusal(plan, order[i]))) continue;
        while (before < i && !fails_alike(order[before], order[i])) before++;
        for (int32_t k = i; k < n; k++) alike += fails_alike(order[k], order[i]);
        if (before < i) continue;
        name_of(order[i], " workers", name);
        pli_text line = { 0 };
        pli_text_add(&line, "not simulated: %s", name);
        if (alike > 1) pli_text_add(&line, ", and %d more", alike - 1);
        pli_text_add(&line, ": %s", order[i]->typical.why);
        add_wrapped(&line, text);
    }
}

/* Has every job converged, or done all its clocks, while it was simulated? */
static bool all_ended(const pli_plan_setting *const *order, int32_t n) {
    for (int32_t i = 0; i < n && ran(order[i]); i++)
        if (!order[i]->typical.ended) return false;
    return true;
}

/* Where there is a price, the shortest need not be the one to take. */
static void add_cheapest(const pli_plan *plan, const pli_plan_setting *const *order, int32_t n, pli_text *text) {
    const pli_plan_setting *least = order[0];
    char                    name[200], time[24];
    for (int32_t i = 1; i < n && ran(order[i]); i++)
        if (order[i]->cost < least->cost) least = order[i];
    if (!shows_cost(plan) || least == order[0]) return;
    name_of(least, " workers", name);
    pli_compare_seconds(least->seconds, time);
    pli_text line = { 0 };
    pli_text_add(&line, "cheapest: %s: %.3g in %s, of %.3g for the shortest", name, least->cost, time, order[0]->cost);
    add_wrapped(&line, text);
}

void pli_plan_text(const pli_plan *plan, pli_text *text) {
    const pli_plan_setting *order[PLI_PLAN_SETTINGS];
    const int32_t           n = sorted(plan, order);
    char                    name[200], time[24];
    if (plan->interrupted) pli_text_add(text, "interrupted: %" PRId32 " of %" PRId32 " settings\n", n, plan->n);
    const columns c = columns_of(plan, order, n);
    if (n > 0 && ran(order[0])) add_head(&c, text);
    for (int32_t i = 0; i < n && ran(order[i]); i++) add_line(plan, &c, order[i], text);
    add_reasons(plan, order, n, text);
    if (n == 0 || !ran(order[0])) return;
    name_of(order[0], " workers", name);
    pli_compare_seconds(order[0]->seconds, time);
    pli_text line = { 0 };
    pli_text_add(&line, "shortest: %s: %s for %s%" PRId64 " clocks%s", name, time,
                 order[0]->typical.ended ? "" : "at most ",
                 order[0]->typical.ended ? order[0]->typical.clocks : order[0]->typical.all_clocks,
                 all_ended(order, n) ? "" : "; clocks of other settings may learn more: plait compare --transport sim");
    add_wrapped(&line, text);
    add_cheapest(plan, order, n, text);
}

static void add_setting(const pli_plan *plan, const pli_plan_setting *s, pli_text *text) {
    const pli_foretold *run = &s->typical;
    pli_json_object(text, NULL);
    pli_json_text(text, "topology", s->pair.topology);
    pli_json_text(text, "consistency", s->pair.consistency);
    pli_json_i64(text, "workers", s->workers);
    pli_json_i64(text, "servers", s->servers);
    pli_json_text(text, "filter", s->filter[0] != '\0' ? s->filter : plan->plan.train.filter);
    pli_json_text(text, "collective", s->collective[0] != '\0' ? s->collective : plan->plan.comm.collective);
    pli_json_bool(text, "searched", s->searched);
    pli_json_text(text, "reason", run->status >= 0 ? NULL : run->why);
    if (run->status >= 0) {
        pli_json_text(text, "optimizer", run->optimizer);
        pli_json_i64(text, "clocks_simulated", run->clocks);
        pli_json_i64(text, "clocks", run->ended ? run->clocks : run->all_clocks);
        pli_json_bool(text, "ended", run->ended);
        pli_json_f64(text, "clock_seconds", s->clock_seconds);
        pli_json_f64(text, "clock_seconds_low", s->low);
        pli_json_f64(text, "clock_seconds_high", s->high);
        pli_json_f64(text, "seconds", s->seconds);
        pli_json_f64(text, "bytes", s->bytes);
        pli_json_f64(text, "idle_share", run->idle_share);
        pli_json_f64(text, "rank_memory_bytes", memory_of(plan, s));
        pli_json_f64(text, "cost", shows_cost(plan) ? s->cost : (double)NAN);
        pli_json_f64(text, "objective", run->objective);
    }
    pli_json_end(text);
}

void pli_plan_json(const pli_plan *plan, pli_text *text) {
    const pli_plan_setting *order[PLI_PLAN_SETTINGS];
    const int32_t           n = sorted(plan, order);
    pli_json_begin(text);
    pli_json_text(text, "model", plan->plan.train.model);
    pli_json_i64(text, "rows", plait_data_rows(plan->data));
    pli_json_i64(text, "settings", plan->n);
    pli_json_bool(text, "interrupted", plan->interrupted);
    pli_json_i64(text, "runs", plan->misses.n);
    pli_json_f64(text, "real_over_simulated_least", plan->misses.least);
    pli_json_f64(text, "real_over_simulated", plan->misses.middle);
    pli_json_f64(text, "real_over_simulated_most", plan->misses.most);
    pli_json_list(text, "plan");
    for (int32_t i = 0; i < n; i++)
        if (!(n > 0 && ran(order[0]) && (is_usual_refusal(plan, order[i]) || (order[i]->searched && !ran(order[i])))))
            add_setting(plan, order[i], text);
    pli_json_list_end(text);
    pli_json_end(text);
    pli_text_add(text, "\n");
}
