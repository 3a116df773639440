/* What a plan shows: a line for each setting, the shortest job first, and why others would not run. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/plan.h"
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

static void name_of(const pli_plan_setting *s, char name[120]) {
    snprintf(name, 120, "%s x %s, %" PRId32, s->pair.topology, s->pair.consistency, s->workers);
}

static bool shows_cost(const pli_plan *plan) { return plan->set.price > 0; }

static void add_line(const pli_plan *plan, const pli_plan_setting *s, pli_text *text) {
    char name[120], clock[24], low[24], high[24], whole[24], bytes[24], memory[24], range[64];
    name_of(s, name);
    pli_compare_seconds(s->clock_seconds, clock);
    pli_compare_seconds(s->low, low);
    pli_compare_seconds(s->high, high);
    pli_compare_seconds(s->seconds, whole);
    pli_compare_bytes(s->bytes, bytes);
    pli_compare_bytes(memory_of(plan, s), memory);
    snprintf(range, sizeof range, "%s to %s", low, high);
    pli_text_add(text, "%-32s %-9s %8s  %-20s %8s %8s %4.0f %% %8s", name, s->typical.optimizer, clock, range, whole,
                 bytes, 100 * s->typical.idle_share, memory);
    if (shows_cost(plan)) pli_text_add(text, " %9.3g", s->cost);
    if (plan->set.clocks == 0) pli_text_add(text, " %10.6g", s->typical.objective);
    pli_text_add(text, "\n");
}

/* Each reason once, with the first setting that has it. */
static void add_reasons(const pli_plan_setting *const *order, int32_t n, pli_text *text) {
    char name[120];
    for (int32_t i = 0; i < n; i++) {
        int32_t before = 0, alike = 0;
        if (ran(order[i])) continue;
        while (before < i && (ran(order[before]) || strcmp(order[before]->typical.why, order[i]->typical.why) != 0))
            before++;
        for (int32_t k = i; k < n; k++)
            alike += !ran(order[k]) && strcmp(order[k]->typical.why, order[i]->typical.why) == 0;
        if (before < i) continue;
        name_of(order[i], name);
        pli_text_add(text, "not simulated: %s workers", name);
        if (alike > 1) pli_text_add(text, ", and %d more", alike - 1);
        pli_text_add(text, ": %s\n", order[i]->typical.why);
    }
}

/* Has every job converged, or done all its clocks, while it was simulated? */
static bool all_ended(const pli_plan_setting *const *order, int32_t n) {
    for (int32_t i = 0; i < n && ran(order[i]); i++)
        if (!order[i]->typical.ended) return false;
    return true;
}

void pli_plan_text(const pli_plan *plan, pli_text *text) {
    const pli_plan_setting *order[PLI_PLAN_SETTINGS];
    const int32_t           n = sorted(plan, order);
    char                    name[120], time[24];
    if (plan->interrupted) pli_text_add(text, "interrupted: %" PRId32 " of %" PRId32 " settings\n", n, plan->n);
    if (n > 0 && ran(order[0])) {
        pli_text_add(text, "%-32s %-9s %8s  %-20s %8s %8s %6s %8s", "setting, workers", "optimizer", "a clock",
                     "between", "the job", "sent", "idle", "a rank");
        if (shows_cost(plan)) pli_text_add(text, " %9s", "cost");
        if (plan->set.clocks == 0) pli_text_add(text, " %10s", "objective");
        pli_text_add(text, "\n");
    }
    for (int32_t i = 0; i < n && ran(order[i]); i++) add_line(plan, order[i], text);
    add_reasons(order, n, text);
    if (n == 0 || !ran(order[0])) return;
    name_of(order[0], name);
    pli_compare_seconds(order[0]->seconds, time);
    pli_text_add(text, "shortest: %s workers: %s for %s%" PRId64 " clocks%s\n", name, time,
                 order[0]->typical.ended ? "" : "at most ",
                 order[0]->typical.ended ? order[0]->typical.clocks : order[0]->typical.all_clocks,
                 all_ended(order, n) ? "" : "; clocks of other settings may learn more: plait compare --transport sim");
}

static void add_setting(const pli_plan *plan, const pli_plan_setting *s, pli_text *text) {
    const pli_plan_run *run = &s->typical;
    pli_json_object(text, NULL);
    pli_json_text(text, "topology", s->pair.topology);
    pli_json_text(text, "consistency", s->pair.consistency);
    pli_json_i64(text, "workers", s->workers);
    pli_json_i64(text, "servers", plan->plan.comm.servers);
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
    pli_json_list(text, "plan");
    for (int32_t i = 0; i < n; i++) add_setting(plan, order[i], text);
    pli_json_list_end(text);
    pli_json_end(text);
    pli_text_add(text, "\n");
}
