/* Writes the comparison as a table for a terminal, even a narrow one: one row a pair, the fastest first. The reasons
 * why pairs did not run are below the table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "watch/compare/compare.h"

static const char *const outcome_names[PLI_OUTCOMES] = { "ran", "refused", "failed", "stopped" };

/* Orders pairs by time; pairs that missed the target come after them, and pairs that did not run come last. */
static double place(const pli_compared_pair *p) {
    if (p->runs == 0) return 2e300;
    return isfinite(p->seconds) ? p->seconds : 1e300;
}

static int32_t *order(const pli_comparison *c) {
    int32_t *at = pli_array((size_t)c->pairs + 1, sizeof *at);
    for (int32_t i = 0; at != NULL && i < c->pairs; i++) {
        int32_t k = i;
        for (; k > 0 && place(&c->pair[at[k - 1]]) > place(&c->pair[i]); k--) at[k] = at[k - 1];
        at[k] = i;
    }
    return at;
}

/* Breaks text between words, so that no line is wider than width, and indents all lines but the first. */
static void wrap(const char *words, int width, int indent, pli_text *text) {
    int used = 0;
    for (const char *at = words; *at != '\0';) {
        size_t length = strcspn(at, " ");
        if (used > 0 && used + 1 + (int)length > width) {
            pli_text_add(text, "\n%*s", indent, "");
            used = indent;
        } else if (used > 0) {
            pli_text_add(text, " ");
            used++;
        }
        pli_text_add(text, "%.*s", (int)length, at);
        used += (int)length;
        at += length;
        at += strspn(at, " ");
    }
    pli_text_add(text, "\n");
}

/* Adds "ps x bsp failed: why". A refusal's reason begins with the pair, which is not repeated. */
static void why_not(const pli_compared_pair *p, const char *names, pli_text *text) {
    static const char refused[] = " is refused";
    const char       *at = p->reason != NULL ? strstr(p->reason, refused) : NULL;
    if (p->outcome == PLI_RAN) {
        pli_text_add(text, "%s not run", names);
    } else if (at != NULL) {
        pli_text_add(text, "%s refused%s", names, at + sizeof refused - 1);
    } else {
        pli_text_add(text, "%s %s: %s", names, outcome_names[p->outcome], p->reason != NULL ? p->reason : "");
    }
}

/* Did both fail to run for the same reason? */
static bool are_alike(const pli_compared_pair *a, const pli_compared_pair *b) {
    const bool alike = a->reason == NULL ? b->reason == NULL : b->reason != NULL && strcmp(a->reason, b->reason) == 0;
    return a->runs == 0 && b->runs == 0 && a->outcome == b->outcome && alike;
}

/* Lists the pairs that did not run for the reason of at[first]: "ps x bsp, ps x async", or "all 6 settings". */
static void add_alike(const pli_comparison *c, const int32_t *at, int32_t first, pli_text *text) {
    char    name[104];
    int32_t n = 0;
    for (int32_t i = first; i < c->pairs; i++) {
        if (!are_alike(&c->pair[at[first]], &c->pair[at[i]])) continue;
        pli_compare_name(&c->pair[at[i]], name);
        pli_text_add(text, "%s%s", n++ > 0 ? ", " : "", name);
    }
    if (n < c->pairs || n == 1) return;
    pli_text_free(text);
    pli_text_add(text, "all %d settings", n);
}

/* Adds each reason once, with the pairs that did not run for it. */
static void add_reasons(const pli_comparison *c, const int32_t *at, int width, pli_text *text) {
    for (int32_t i = 0; i < c->pairs; i++) {
        pli_text names = { 0 }, line = { 0 };
        int32_t  before = 0;
        if (c->pair[at[i]].runs > 0) continue;
        while (before < i && !are_alike(&c->pair[at[before]], &c->pair[at[i]])) before++;
        if (before < i) continue;
        add_alike(c, at, i, &names);
        why_not(&c->pair[at[i]], names.data != NULL ? names.data : "", &line);
        pli_text_add(text, "  ");
        if (line.data != NULL) wrap(line.data, width - 2, 4, text);
        text->failed = text->failed || line.failed || names.failed;
        pli_text_free(&names);
        pli_text_free(&line);
    }
}

/* The width of the column with the learner's own figure; the columns after it get less room. */
static int figure_width(const pli_comparison *c) {
    const int length = c->figure_name != NULL ? (int)strlen(c->figure_name) : 0;
    return length > 8 ? length : 8;
}
static int figure_room(const pli_comparison *c) { return c->figure_name != NULL ? figure_width(c) + 2 : 0; }

/* The column of optimizers, if they differ: 0 or its width. */
static int optimizer_room(const pli_comparison *c) { return pli_compare_optimizers_differ(c) ? 11 : 0; }

static void add_row(const pli_comparison *c, int32_t pair, int widest, int width, pli_text *text) {
    const pli_compared_pair *p = &c->pair[pair];
    char                     name[104], time[24], low[24], high[24], bytes[24];
    pli_compare_name(p, name);
    pli_compare_seconds(p->seconds, time);
    pli_compare_seconds(p->seconds_min, low);
    pli_compare_seconds(p->seconds_max, high);
    pli_compare_bytes(p->bytes, bytes);
    bool marked = c->as_good != NULL && c->as_good[pair];
    pli_text_add(text, "%c%c%-*s ", marked ? '*' : ' ', p->left > 0 ? '!' : ' ', widest, name);
    if (optimizer_room(c) > 0) pli_text_add(text, "%-10s ", pli_compare_optimizer(c, pair));
    pli_text_add(text, "%9s", time);
    widest += optimizer_room(c); /* of what follows there is room for less */
    if (width >= widest + 12 + 20 + 11) pli_text_add(text, "  %8.6g", p->loss);
    if (c->figure_name != NULL && width >= widest + 12 + 20 + 11 + figure_width(c))
        pli_text_add(text, "  %*.6g", figure_width(c), p->figure);
    if (width >= widest + 12 + 10 + 20 + 11 + figure_room(c)) pli_text_add(text, "  %8s", bytes);
    if (width >= widest + 12 + 20 + 20 + 12 + figure_room(c) && p->runs > 1 && isfinite(p->seconds_max))
        pli_text_add(text, "  %s to %s", low, high);
    pli_text_add(text, "\n");
}

static void add_head(const pli_comparison *c, int widest, int width, pli_text *text) {
    pli_text_add(text, "  %-*s ", widest, "setting");
    if (optimizer_room(c) > 0) pli_text_add(text, "%-10s ", "optimizer");
    pli_text_add(text, "%9s", "time");
    widest += optimizer_room(c);
    if (width >= widest + 12 + 20 + 11) pli_text_add(text, "  %8s", "loss");
    if (c->figure_name != NULL && width >= widest + 12 + 20 + 11 + figure_width(c))
        pli_text_add(text, "  %*s", figure_width(c), c->figure_name);
    if (width >= widest + 12 + 10 + 20 + 11 + figure_room(c)) pli_text_add(text, "  %8s", "bytes");
    if (width >= widest + 12 + 20 + 20 + 12 + figure_room(c)) pli_text_add(text, "  over the repeats");
    pli_text_add(text, "\n");
}

/* Explains the table's marks, and says for which settings servers worked as workers. */
static void add_notes(const pli_comparison *c, int width, pli_text *text) {
    bool left = false;
    if (c->best >= 0) wrap("*: no difference from the fastest beyond the noise", width, 0, text);
    for (int32_t i = 0; i < c->pairs; i++) left = left || c->pair[i].left > 0;
    if (left) wrap("!: it reached the target and did not stay there: its loss at the end is above", width, 0, text);
    for (int32_t i = 0; i < c->pairs; i++) {
        const pli_compared_pair *p = &c->pair[i];
        pli_text                 line = { 0 };
        char                     name[104];
        if (p->servers_work == 0 || p->runs == 0) continue;
        pli_compare_name(p, name);
        pli_text_add(&line, "%s has no servers: the %d host%s of the others' servers worked too, %d workers", name,
                     p->servers_work, pli_plural(p->servers_work), p->workers);
        if (line.data != NULL) wrap(line.data, width, 0, text);
        text->failed = text->failed || line.failed;
        pli_text_free(&line);
    }
}

void pli_compare_table(const pli_comparison *c, int width, pli_text *text) {
    int32_t *at = order(c);
    int      widest = 7;
    char     name[104];
    for (int32_t i = 0; i < c->pairs; i++) {
        pli_compare_name(&c->pair[i], name);
        if ((int)strlen(name) > widest) widest = (int)strlen(name);
    }
    if (width < 40) width = 40;
    if (at != NULL && c->pairs > 0 && c->pair[at[0]].runs > 0) add_head(c, widest, width, text); /* those that ran
                                                                                                    first */
    for (int32_t i = 0; at != NULL && i < c->pairs; i++)
        if (c->pair[at[i]].runs > 0) add_row(c, at[i], widest, width, text);
    if (at != NULL) add_reasons(c, at, width, text);
    pli_text_add(text, "\n");
    add_notes(c, width, text);
    if (c->sentence.data != NULL) wrap(c->sentence.data, width, 0, text);
    if (at == NULL) text->failed = true;
    pli_free(at);
}
