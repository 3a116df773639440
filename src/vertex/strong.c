/* Strongly connected components: two vertices are in one if each can be reached from the other. The label is the
 * component's least number.
 *
 * Round after round, among the vertices that have no label yet:
 *
 *     trim      a vertex to which no edge of another one comes is a component by itself (where a worker has the whole
 *               rows of its vertices). So chains and trees go at once
 *     forward   each vertex takes as color the least number that can reach it
 *     back      a vertex that is its own color gets its number for a label; so does each of that color that reaches it
 *
 * Colors and labels only fall, and both are tables that combine by min. So that nobody must raise the colors between
 * two rounds, those of a later round are lower by the number of vertices. A worker spreads colors and labels over its
 * whole part before it ends a clock: the number of supersteps depends on how often ways change the part, and not on how
 * long they are. A vertex without a label after a round has a component of another color before it, so rounds are as
 * many as components that follow one another at most.
 *
 * Papers: Orzan, "On Distributed Verification and Verified Distribution", 2004 (coloring); McLendon, Hendrickson,
 * Plimpton and Rauchwerger, "Finding strongly connected components in distributed graphs", JPDC 2005 (trimming). */
#include <stdio.h>

#include "vertex/direct.h"

typedef struct finding {
    pli_direct  *d;
    plait_table *color_table;
    int64_t     *color, *label; /* [n of part] label INT64_MAX: none yet */
    int64_t     *before;        /* [n of part] of an own vertex: others without a label that have an edge to it */
    uint32_t    *queue;         /* [n of part], each vertex at most once at a time */
    uint64_t    *queued, *changed; /* bitmaps of the part */
    int64_t      waiting, base; /* base: what is added to colors of this round */
} finding;

static bool make_room(finding *f) {
    const size_t n = (size_t)f->d->part.n, words = pli_bit_words(f->d->part.n);
    f->color = pli_array(n, sizeof *f->color);
    f->label = pli_array(n, sizeof *f->label);
    f->before = pli_calloc(n, sizeof *f->before);
    f->queue = pli_array(n, sizeof *f->queue);
    f->queued = pli_calloc(words, sizeof *f->queued);
    f->changed = pli_calloc(words, sizeof *f->changed);
    return f->color != NULL && f->label != NULL && f->before != NULL && f->queue != NULL && f->queued != NULL &&
           f->changed != NULL;
}

/* The queue is a ring: it holds each vertex once at most. */
static void put(finding *f, int64_t *head, uint32_t v) {
    if (pli_bit_is(f->queued, v)) return;
    pli_bit_set(f->queued, v);
    f->queue[(*head + f->waiting++) % f->d->part.n] = v;
}

static uint32_t take(finding *f, int64_t *head) {
    const uint32_t v = f->queue[*head];
    *head = (*head + 1) % f->d->part.n;
    f->waiting--;
    f->queued[v / 64] &= ~(UINT64_C(1) << (v % 64));
    return v;
}

static plait_status read_table(finding *f, plait_table *table, const int64_t **values) {
    pli_direct *d = f->d;
    const void *read = d->read;
    if (d->part.key == NULL) PLI_TRY(plait_table_read(table, 0, d->part.n, &read));
    else PLI_TRY(plait_table_get(table, d->part.n, d->part.key, d->read));
    *values = read;
    return PLAIT_OK;
}

/* Pushes what has changed of `from`, plus base, ends the clock, and says how much all workers had to push. */
static plait_status push(finding *f, plait_table *table, const int64_t *from, int64_t base, int64_t *news) {
    pli_direct *d = f->d;
    d->hits = 0;
    for (size_t w = 0; w < pli_bit_words(d->part.n); w++) {
        for (uint64_t bits = f->changed[w]; bits != 0; bits &= bits - 1) {
            const size_t v = w * 64 + (size_t)__builtin_ctzll(bits);
            d->better[d->hits] = from[v] + base;
            d->hit[d->hits++] = (uint64_t)pli_part_vertex(&d->part, (int64_t)v);
        }
        f->changed[w] = 0;
    }
    if (d->hits > 0) PLI_TRY(plait_table_inc(table, d->hits, d->hit, d->better, 0));
    *news = d->hits;
    d->hits = 0;
    PLI_TRY(pli_direct_clock(d));
    return pli_direct_sum(d, news);
}

static bool has_label(const finding *f, int64_t v) { return f->label[v] != INT64_MAX; }

/* --- trimming ----------------------------------------------------------------------------------------------------- */

static bool is_own(const pli_part *part, int64_t v) { return v >= part->own && v < part->own + part->owned; }

static void count_before(finding *f) {
    const pli_part      *part = &f->d->part;
    const pli_neighbors *rows = &part->rows;
    for (int64_t v = part->own; part->whole && v < part->own + part->owned; v++)
        for (int64_t k = rows->start[v]; k < rows->start[v + 1]; k++) f->before[v] += (int64_t)rows->near[k] != v;
}

/* v has got a label: those behind it have one less before them. */
static void settle(finding *f, uint32_t v, int64_t *head) {
    const pli_part      *part = &f->d->part;
    const pli_neighbors *back = &part->back;
    if (!part->whole) return;
    for (int64_t k = back->start[v]; k < back->start[v + 1]; k++) {
        const uint32_t w = back->near[k];
        if (w == v || !is_own(part, w)) continue;
        if (--f->before[w] == 0 && !has_label(f, w)) put(f, head, w);
    }
}

static void trim(finding *f, int64_t *head) {
    while (f->waiting > 0) {
        const uint32_t v = take(f, head);
        if (has_label(f, v)) continue;
        f->label[v] = pli_part_vertex(&f->d->part, v);
        pli_bit_set(f->changed, v);
        settle(f, v, head);
    }
}

/* Labels that others have pushed. */
static plait_status hear_labels(finding *f, int64_t *head, bool spread_on) {
    const int64_t *values;
    PLI_TRY(read_table(f, f->d->value, &values));
    for (int64_t v = 0; v < f->d->part.n; v++) {
        if (values[v] == f->label[v]) continue;
        f->label[v] = values[v];
        if (spread_on) put(f, head, (uint32_t)v);
        else settle(f, (uint32_t)v, head);
    }
    return PLAIT_OK;
}

static plait_status trim_all(finding *f) {
    pli_direct *d = f->d;
    int64_t     head = 0, news = 1;
    for (int64_t v = d->part.own; d->part.whole && v < d->part.own + d->part.owned; v++)
        if (f->before[v] == 0 && !has_label(f, v)) put(f, &head, (uint32_t)v);
    while (news > 0) {
        trim(f, &head);
        PLI_TRY(push(f, d->value, f->label, 0, &news));
        PLI_TRY(hear_labels(f, &head, false));
    }
    return PLAIT_OK;
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static void paint_from(finding *f, int64_t *head) {
    const pli_neighbors *back = &f->d->part.back;
    while (f->waiting > 0) {
        const uint32_t u = take(f, head);
        for (int64_t k = back->start[u]; k < back->start[u + 1]; k++) {
            const uint32_t w = back->near[k];
            if (has_label(f, w) || f->color[w] <= f->color[u]) continue;
            f->color[w] = f->color[u];
            pli_bit_set(f->changed, w);
            put(f, head, w);
        }
    }
}

static plait_status paint(finding *f) {
    pli_direct *d = f->d;
    int64_t     head = 0, news = 1;
    /* In increasing order: most vertices get their least color at once. */
    for (int64_t v = 0; v < d->part.n; v++) f->color[v] = pli_part_vertex(&d->part, v);
    for (int64_t v = 0; v < d->part.n; v++)
        if (!has_label(f, v) && f->color[v] == pli_part_vertex(&d->part, v)) {
            put(f, &head, (uint32_t)v);
            paint_from(f, &head);
        }
    for (;;) {
        const int64_t *values;
        PLI_TRY(push(f, f->color_table, f->color, f->base, &news));
        if (news == 0) return PLAIT_OK;
        PLI_TRY(read_table(f, f->color_table, &values));
        for (int64_t v = 0; v < d->part.n; v++) {
            if (has_label(f, v) || values[v] == INT64_MAX || values[v] - f->base >= f->color[v]) continue;
            f->color[v] = values[v] - f->base;
            put(f, &head, (uint32_t)v);
        }
        paint_from(f, &head);
    }
}

/* --- back --------------------------------------------------------------------------------------------------------- */

static void mark_from(finding *f, int64_t *head) {
    const pli_neighbors *rows = &f->d->part.rows;
    while (f->waiting > 0) {
        const uint32_t v = take(f, head);
        for (int64_t k = rows->start[v]; k < rows->start[v + 1]; k++) {
            const uint32_t u = rows->near[k];
            if (has_label(f, u) || f->color[u] != f->label[v] || f->color[v] != f->label[v]) continue;
            f->label[u] = f->label[v];
            pli_bit_set(f->changed, u);
            put(f, head, u);
        }
    }
}

static plait_status mark(finding *f, int64_t *found) {
    pli_direct *d = f->d;
    int64_t     head = 0, news = 1;
    uint64_t   *fresh = pli_calloc(pli_bit_words(d->part.n), sizeof *fresh); /* labels of before: none of these */
    if (fresh == NULL) return pli_fail(d->err, PLAIT_ENOMEM, "strong: no memory for labels");
    for (int64_t v = 0; v < d->part.n; v++)
        if (!has_label(f, v)) pli_bit_set(fresh, (size_t)v);
    for (int64_t v = 0; v < d->part.n; v++)
        if (!has_label(f, v) && f->color[v] == pli_part_vertex(&d->part, v)) {
            f->label[v] = f->color[v];
            pli_bit_set(f->changed, (size_t)v);
            put(f, &head, (uint32_t)v);
        }
    plait_status status = PLAIT_OK;
    while (status == PLAIT_OK && news > 0) {
        mark_from(f, &head);
        status = push(f, d->value, f->label, 0, &news);
        if (status == PLAIT_OK) status = hear_labels(f, &head, true);
    }
    *found = 0;
    for (int64_t v = 0; status == PLAIT_OK && v < d->part.n; v++) {
        if (!has_label(f, v)) ++*found;
        else if (pli_bit_is(fresh, (size_t)v)) settle(f, (uint32_t)v, &head);
    }
    while (f->waiting > 0) take(f, &head); /* trimming finds them again */
    pli_free(fresh);
    return status;
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

static plait_status find_all(finding *f) {
    pli_direct *d = f->d;
    int64_t     left = 1;
    for (int64_t v = 0; v < d->part.n; v++) f->label[v] = INT64_MAX;
    count_before(f);
    f->base = 0;
    while (left > 0 && pli_direct_may_go_on(d)) {
        PLI_TRY(trim_all(f));
        PLI_TRY(paint(f));
        PLI_TRY(mark(f, &left));
        PLI_TRY(pli_direct_sum(d, &left));
        f->base -= d->edges->n;
    }
    d->report.still = left == 0;
    return PLAIT_OK;
}

static plait_status make_colors(finding *f) {
    plait_table_opts t;
    plait_table_opts_init(&t);
    t.name = "strong.color";
    t.type = PLAIT_I64;
    t.combine = "min";
    t.rows = f->d->edges->n;
    t.keyed = f->d->workers > 1;
    return plait_table_create(f->d->job, &t, &f->color_table);
}

plait_status pli_run_strong(plait_job *job, const pli_vertex_choice *choice, const plait_vertex_cut *cut,
                            int64_t supersteps, void *values_out, plait_vertex_report *report_out) {
    const pli_direct_opts opts = { .name = "strong", .combine = "min", .type = PLAIT_I64, .back = true, .whole = true };
    pli_direct            d;
    finding               f = { .d = &d };
    plait_status          status = pli_direct_begin(&d, job, choice, cut, supersteps, &opts);
    if (status == PLAIT_OK) status = make_colors(&f);
    if (status == PLAIT_OK && !make_room(&f)) status = pli_fail(d.err, PLAIT_ENOMEM, "strong: no memory for colors");
    if (status == PLAIT_OK) status = find_all(&f);
    if (status == PLAIT_OK) status = plait_table_drop(&f.color_table);
    void *const memory[] = { f.color, f.label, f.before, f.queue, f.queued, f.changed };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) pli_free(memory[i]);
    return pli_direct_end(&d, status, values_out, report_out);
}
