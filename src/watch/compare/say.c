/* Writes the judgement in plain sentences, and figures for people to read. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "watch/compare/compare.h"

void pli_compare_name(const pli_compared_pair *pair, char name[104]) {
    snprintf(name, 104, "%s x %s", pair->topology, pair->consistency);
}

void pli_compare_seconds(double seconds, char text[24]) {
    if (isnan(seconds))
        snprintf(text, 24, "-");
    else if (isinf(seconds))
        snprintf(text, 24, "never");
    else if (seconds < 1e-3)
        snprintf(text, 24, "%.3g us", seconds * 1e6);
    else if (seconds < 0.9995)
        snprintf(text, 24, "%.3g ms", seconds * 1e3);
    else if (seconds < 99.95)
        snprintf(text, 24, "%.3g s", seconds);
    else if (seconds < 5940)
        snprintf(text, 24, "%.0f s", seconds);
    else
        snprintf(text, 24, "%.1f h", seconds / 3600);
}

void pli_compare_bytes(double bytes, char text[24]) {
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
    int                      unit = 0;
    if (!isfinite(bytes)) {
        snprintf(text, 24, "-");
        return;
    }
    for (; unit < 4 && bytes >= 999.5; unit++) bytes /= 1000;
    snprintf(text, 24, bytes < 99.95 && unit > 0 ? "%.3g %s" : "%.0f %s", bytes, units[unit]);
}

static void add_range(const pli_compared_pair *p, pli_text *text) {
    char middle[24], low[24], high[24];
    pli_compare_seconds(p->seconds, middle);
    pli_compare_seconds(p->seconds_min, low);
    pli_compare_seconds(p->seconds_max, high);
    pli_text_add(text, "%s", middle);
    if (p->runs > 1) pli_text_add(text, " (%s to %s in %d runs)", low, high, p->runs);
}

/* Adds how many times as long the other takes: by the medians, and over all repeats. */
static void add_factor(const pli_compared_pair *best, const pli_compared_pair *other, pli_text *text) {
    double low = other->seconds_min / best->seconds_max, high = other->seconds_max / best->seconds_min;
    pli_text_add(text, "%.3g times", other->seconds / best->seconds);
    if (best->runs > 1 && isfinite(high)) pli_text_add(text, " (%.3g to %.3g over the repeats)", low, high);
    pli_text_add(text, " as fast as");
}

static const char *loss_name(const pli_comparison *c) {
    for (int64_t i = 0; i < c->runs; i++)
        if (c->run[i].outcome == PLI_RAN) return c->run[i].progressive ? "a progressive loss" : "an objective";
    return "an objective";
}

static void say_target(const pli_comparison *c, pli_text *text) {
    pli_text_add(text, "%s of %.5g", loss_name(c), c->target);
    if (!isfinite(c->target_given)) pli_text_add(text, " (1 %% above the lowest reached, %.5g)", c->lowest);
}

static int32_t count_as_good(const pli_comparison *c) {
    int32_t n = 0;
    for (int32_t i = 0; i < c->pairs; i++) n += c->as_good[i];
    return n;
}

/* Adds "a (1 s), b (1.1 s) and c (1.2 s)", in the order of their times; at most LISTED of them. */
enum { LISTED = 4 };
static void list_as_good(const pli_comparison *c, int32_t n, pli_text *text) {
    double  said = -1;
    int32_t named = n > LISTED + 1 ? LISTED : n;
    for (int32_t k = 0, last = -1; k < named; k++) {
        int32_t found = -1;
        for (int32_t i = 0; i < c->pairs; i++) {
            bool after = c->pair[i].seconds > said || (c->pair[i].seconds == said && i > last);
            if (c->as_good[i] && after && (found < 0 || c->pair[i].seconds < c->pair[found].seconds)) found = i;
        }
        if (found < 0) break;
        char name[104], time[24];
        pli_compare_name(&c->pair[found], name);
        pli_compare_seconds(c->pair[found].seconds, time);
        pli_text_add(text, "%s%s (%s)", k == 0 ? "" : k + 1 < named || named < n ? ", " : " and ", name, time);
        said = c->pair[found].seconds;
        last = found;
    }
    if (named < n) pli_text_add(text, " and %d others", n - named);
}

static void say_next(const pli_comparison *c, bool alone, pli_text *text) {
    const pli_compared_pair *best = &c->pair[c->best];
    char                     name[104];
    if (c->next < 0) {
        bool others = false; /* another pair ran, and missed the target */
        for (int32_t i = 0; i < c->pairs; i++) others = others || (c->pair[i].runs > 0 && !c->as_good[i]);
        pli_text_add(text, others ? "; no other reaches it." : ".");
        return;
    }
    pli_compare_name(&c->pair[c->next], name);
    if (!alone) {
        pli_compare_name(best, name);
        pli_text_add(text, ". %s is ", name);
        pli_compare_name(&c->pair[c->next], name);
    } else {
        pli_text_add(text, ", ");
    }
    add_factor(best, &c->pair[c->next], text);
    pli_text_add(text, " the next, %s, beyond the noise.", name);
}

/* Says how many runs each pair had: fewer than requested, if the comparison was interrupted. Returns the fewest. */
static int32_t say_runs(const pli_comparison *c, pli_text *text) {
    int32_t least = INT32_MAX, most = 0;
    for (int32_t i = 0; i < c->pairs; i++) {
        if (c->pair[i].runs == 0) continue;
        if (c->pair[i].runs < least) least = c->pair[i].runs;
        if (c->pair[i].runs > most) most = c->pair[i].runs;
    }
    if (least < most) pli_text_add(text, "%d to ", least);
    pli_text_add(text, "%d run%s each", most, pli_plural(most));
    return least;
}

/* Says of the fastest settings which did not stay at the target, since the model at the end is what a user takes. */
static void say_left(const pli_comparison *c, pli_text *text) {
    char    name[104];
    int32_t said = 0;
    for (int32_t i = 0; i < c->pairs; i++) {
        const pli_compared_pair *p = &c->pair[i];
        if (!c->as_good[i] || p->left == 0) continue;
        pli_compare_name(p, name);
        pli_text_add(text, "%s%s", said++ == 0 ? " But " : " and ", name);
        pli_text_add(text, " did not stay there: it ended above in %d of %d run%s", p->left, p->runs,
                     pli_plural(p->runs));
        pli_text_add(text, " (%.5g)", p->loss);
    }
    if (said > 0) pli_text_add(text, ".");
}

static void say_best(const pli_comparison *c, pli_text *text) {
    int32_t n = count_as_good(c);
    char    name[104];
    pli_compare_name(&c->pair[c->best], name);
    if (n == 1 || (c->repeats == 1 && c->next < 0 && c->pairs == 1)) {
        pli_text_add(text, "%s suits this job: it reaches ", name);
        say_target(c, text);
        pli_text_add(text, " in ");
        add_range(&c->pair[c->best], text);
        say_next(c, true, text);
        return;
    }
    pli_text_add(text, "There is no difference beyond the noise of ");
    int32_t runs = say_runs(c, text);
    pli_text_add(text, " between ");
    list_as_good(c, n, text);
    pli_text_add(text, ", which reach ");
    say_target(c, text);
    say_next(c, false, text);
    if (runs < 3)
        pli_text_add(text, " Fewer than 3 repeats cannot tell settings apart: take --repeats 3 or more.");
}

static void say_bytes(const pli_comparison *c, pli_text *text) {
    char name[104], least[24], best[24];
    if (c->lightest < 0 || c->lightest == c->best || !isfinite(c->pair[c->best].bytes)) return;
    if (!(c->pair[c->lightest].bytes < 0.99 * c->pair[c->best].bytes)) return;
    pli_compare_name(&c->pair[c->lightest], name);
    pli_compare_bytes(c->pair[c->lightest].bytes, least);
    pli_compare_bytes(c->pair[c->best].bytes, best);
    pli_text_add(text, " Fewest bytes until then: %s, %s", name, least);
    pli_compare_name(&c->pair[c->best], name);
    pli_text_add(text, " (%s: %s).", name, best);
}

static bool any_ran(const pli_comparison *c) {
    for (int64_t i = 0; i < c->runs; i++)
        if (c->run[i].outcome == PLI_RAN) return true;
    return false;
}

void pli_compare_say(const pli_comparison *c, pli_text *text) {
    if (c->interrupted) pli_text_add(text, "Interrupted; this is of the runs that were done. ");
    if (!isfinite(c->lowest) && any_ran(c)) {
        pli_text_add(text, "The model has no loss by which settings could be told apart.");
    } else if (!isfinite(c->lowest)) {
        pli_text_add(text, "%s.", c->interrupted ? "None tells anything" : "No setting ran");
    } else if (c->best < 0) {
        pli_text_add(text, "%s reached ", c->interrupted ? "None" : "No setting");
        say_target(c, text);
        pli_text_add(text, "; the lowest was %.5g.", c->lowest);
    } else {
        say_best(c, text);
        say_left(c, text);
        say_bytes(c, text);
    }
}
