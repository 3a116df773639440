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
 * With two replicas others take over a dead worker's part (inherit.h). All that a part keeps in memory follows from the
 * two tables, and a clock's spreading ends in the same labels and colors whichever vertices it begins with, as long as
 * those are among them that have changed. So an heir takes labels and colors from the tables, spreads all of them, and
 * pushes what the dead worker would have pushed. How much was pushed, and how many vertices have no label, goes with
 * the clock.
 *
 * Papers: Orzan, "On Distributed Verification and Verified Distribution", 2004 (coloring); McLendon, Hendrickson,
 * Plimpton and Rauchwerger, "Finding strongly connected components in distributed graphs", JPDC 2005 (trimming). */
#include "vertex/direct.h"
#include "vertex/inherit.h"

typedef enum phase { TRIM, PAINT, MARK } phase;

/* Figures of a part's clock: how much it has pushed; in MARK, how many vertices have no label. */
enum { NEWS, LEFT, FIGURES };

/* Where the run is: the same on all workers. */
typedef struct stage {
    phase   now;
    bool    first; /* clock of the phase            */
    int64_t base;  /* added to colors of this round */
} stage;

/* A part, with what is found in it. */
typedef struct finding {
    pli_direct  *d; /* whose part and room are this part's */
    plait_table *color_table;
    const stage *at;
    int64_t     *color, *label; /* [n of part] label INT64_MAX: none yet */
    int64_t     *before;        /* [n of part] of an own vertex: others without a label that have an edge to it */
    uint32_t    *queue;         /* [n of part], each vertex at most once at a time */
    uint64_t    *queued, *changed, *open; /* bitmaps of the part; open: without a label when marking began */
    int64_t      waiting, head;
    bool         stale;  /* memory is not what the tables have */
    bool         recalled; /* it was taken from them in this clock: what has changed is not known */
} finding;

static bool make_room(finding *f) {
    const size_t n = (size_t)f->d->part.n, words = pli_bit_words(f->d->part.n);
    f->color = pli_array(n, sizeof *f->color);
    f->label = pli_array(n, sizeof *f->label);
    f->before = pli_calloc(n, sizeof *f->before);
    f->queue = pli_array(n, sizeof *f->queue);
    f->queued = pli_calloc(words, sizeof *f->queued);
    f->changed = pli_calloc(words, sizeof *f->changed);
    f->open = pli_calloc(words, sizeof *f->open);
    return f->color != NULL && f->label != NULL && f->before != NULL && f->queue != NULL && f->queued != NULL &&
           f->changed != NULL && f->open != NULL;
}

/* The queue is a ring: it holds each vertex once at most. */
static void put(finding *f, uint32_t v) {
    if (pli_bit_is(f->queued, v)) return;
    pli_bit_set(f->queued, v);
    f->queue[(f->head + f->waiting++) % f->d->part.n] = v;
}

static uint32_t take(finding *f) {
    const uint32_t v = f->queue[f->head];
    f->head = (f->head + 1) % f->d->part.n;
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

/* Pushes what has changed of `from`, plus base, and tells how much that is. */
static plait_status push(finding *f, plait_table *table, const int64_t *from, int64_t base) {
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
    return d->hits > 0 ? plait_table_inc(table, d->hits, d->hit, d->better, 0) : PLAIT_OK;
}

static bool has_label(const finding *f, int64_t v) { return f->label[v] != INT64_MAX; }

/* --- trimming ----------------------------------------------------------------------------------------------------- */

static bool is_own(const pli_part *part, int64_t v) { return v >= part->own && v < part->own + part->owned; }

static void count_before(finding *f) {
    const pli_part      *part = &f->d->part;
    const pli_neighbors *rows = &part->rows;
    for (int64_t v = part->own; part->whole && v < part->own + part->owned; v++) {
        f->before[v] = 0;
        for (int64_t k = rows->start[v]; k < rows->start[v + 1]; k++)
            f->before[v] += (int64_t)rows->near[k] != v && !has_label(f, rows->near[k]);
    }
}

/* v has got a label: those behind it have one less before them. */
static void settle(finding *f, uint32_t v) {
    const pli_part      *part = &f->d->part;
    const pli_neighbors *back = &part->back;
    if (!part->whole) return;
    for (int64_t k = back->start[v]; k < back->start[v + 1]; k++) {
        const uint32_t w = back->near[k];
        if (w == v || !is_own(part, w)) continue;
        if (--f->before[w] == 0 && !has_label(f, w)) put(f, w);
    }
}

/* Labels that others have pushed. */
static plait_status hear_labels(finding *f) {
    const int64_t *values;
    PLI_TRY(read_table(f, f->d->value, &values));
    for (int64_t v = 0; v < f->d->part.n; v++) {
        if (values[v] == f->label[v]) continue;
        f->label[v] = values[v];
        if (f->at->now == MARK) put(f, (uint32_t)v);
        else settle(f, (uint32_t)v);
    }
    return PLAIT_OK;
}

static plait_status trim(finding *f) {
    const pli_part *part = &f->d->part;
    for (int64_t v = part->own; (f->at->first || f->recalled) && part->whole && v < part->own + part->owned; v++)
        if (f->before[v] == 0 && !has_label(f, v)) put(f, (uint32_t)v);
    while (f->waiting > 0) {
        const uint32_t v = take(f);
        if (has_label(f, v)) continue;
        f->label[v] = pli_part_vertex(part, v);
        pli_bit_set(f->changed, v);
        settle(f, v);
    }
    return push(f, f->d->value, f->label, 0);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static void paint_from(finding *f) {
    const pli_neighbors *back = &f->d->part.back;
    while (f->waiting > 0) {
        const uint32_t u = take(f);
        for (int64_t k = back->start[u]; k < back->start[u + 1]; k++) {
            const uint32_t w = back->near[k];
            if (has_label(f, w) || f->color[w] <= f->color[u]) continue;
            f->color[w] = f->color[u];
            pli_bit_set(f->changed, w);
            put(f, w);
        }
    }
}

/* Colors that others have pushed. */
static plait_status hear_colors(finding *f) {
    const int64_t *values, base = f->at->base;
    PLI_TRY(read_table(f, f->color_table, &values));
    for (int64_t v = 0; v < f->d->part.n; v++) {
        if (has_label(f, v) || values[v] == INT64_MAX || values[v] - base >= f->color[v]) continue;
        f->color[v] = values[v] - base;
        put(f, (uint32_t)v);
    }
    return PLAIT_OK;
}

static plait_status paint(finding *f) {
    const pli_part *part = &f->d->part;
    for (int64_t v = 0; f->at->first && v < part->n; v++) f->color[v] = pli_part_vertex(part, v);
    /* In increasing order: most vertices get their least color at once. */
    for (int64_t v = 0; f->at->first && v < part->n; v++)
        if (!has_label(f, v) && f->color[v] == pli_part_vertex(part, v)) {
            put(f, (uint32_t)v);
            paint_from(f);
        }
    for (int64_t v = 0; !f->at->first && f->recalled && v < part->n; v++)
        if (!has_label(f, v)) put(f, (uint32_t)v);
    paint_from(f);
    return push(f, f->color_table, f->color, f->at->base);
}

/* --- back --------------------------------------------------------------------------------------------------------- */

static void mark_from(finding *f) {
    const pli_neighbors *rows = &f->d->part.rows;
    while (f->waiting > 0) {
        const uint32_t v = take(f);
        for (int64_t k = rows->start[v]; k < rows->start[v + 1]; k++) {
            const uint32_t u = rows->near[k];
            if (has_label(f, u) || f->color[u] != f->label[v] || f->color[v] != f->label[v]) continue;
            f->label[u] = f->label[v];
            pli_bit_set(f->changed, u);
            put(f, u);
        }
    }
}

static void note_open(finding *f) {
    memset(f->open, 0, pli_bit_words(f->d->part.n) * sizeof *f->open);
    for (int64_t v = 0; v < f->d->part.n; v++)
        if (!has_label(f, v)) pli_bit_set(f->open, (size_t)v);
}

static plait_status mark(finding *f) {
    const pli_part *part = &f->d->part;
    if (f->at->first) note_open(f);
    for (int64_t v = 0; f->at->first && v < part->n; v++)
        if (!has_label(f, v) && f->color[v] == pli_part_vertex(part, v)) {
            f->label[v] = f->color[v];
            pli_bit_set(f->changed, (size_t)v);
            put(f, (uint32_t)v);
        }
    for (int64_t v = 0; !f->at->first && f->recalled && v < part->n; v++)
        if (has_label(f, v)) put(f, (uint32_t)v);
    mark_from(f);
    return push(f, f->d->value, f->label, 0);
}

/* The phase has ended: what was labeled in it is before nobody any more. */
static plait_status settle_all(void *user, void *part) {
    finding *f = part;
    (void)user;
    for (int64_t v = 0; !f->stale && v < f->d->part.n; v++)
        if (has_label(f, v) && pli_bit_is(f->open, (size_t)v)) settle(f, (uint32_t)v);
    while (f->waiting > 0) take(f); /* trimming finds them again */
    return PLAIT_OK;
}

/* --- a clock of one part ------------------------------------------------------------------------------------------ */

/* Takes all that the part keeps from the tables. A color of an earlier round is higher than any of this one. */
static plait_status recall(finding *f) {
    const int64_t *values, n = f->d->part.n;
    while (f->waiting > 0) take(f);
    PLI_TRY(read_table(f, f->d->value, &values));
    memcpy(f->label, values, (size_t)n * sizeof *values);
    PLI_TRY(read_table(f, f->color_table, &values));
    for (int64_t v = 0; v < n; v++) {
        const int64_t own = pli_part_vertex(&f->d->part, v);
        f->color[v] = values[v] != INT64_MAX && values[v] - f->at->base < own ? values[v] - f->at->base : own;
    }
    count_before(f);
    note_open(f);
    f->recalled = true;
    f->stale = false;
    return PLAIT_OK;
}

static plait_status look(void *user, void *part) {
    finding *f = part;
    (void)user;
    if (f->stale) return recall(f);
    if (f->at->first) return PLAIT_OK; /* the phase before has heard all */
    return f->at->now == PAINT ? hear_colors(f) : hear_labels(f);
}

static plait_status work(void *user, void *part) {
    finding     *f = part;
    pli_inherit *parts = user;
    int64_t      figure[FIGURES] = { 0 };
    PLI_TRY(f->at->now == TRIM ? trim(f) : f->at->now == PAINT ? paint(f) : mark(f));
    f->recalled = false;
    figure[NEWS] = f->d->hits;
    f->d->hits = 0;
    for (int64_t v = 0; f->at->now == MARK && v < f->d->part.n; v++) figure[LEFT] += !has_label(f, v);
    return pli_inherit_tell(parts, f->d->rank, figure);
}

/* In place of a worker that has died in this clock. What is read may be the next one's, and is not kept. */
static plait_status stand_in(void *user, void *part) {
    PLI_TRY(work(user, part));
    ((finding *)part)->stale = true;
    return PLAIT_OK;
}

static plait_status look_anew(void *user, void *part) {
    (void)user;
    return recall(part);
}

/* --- parts of others ---------------------------------------------------------------------------------------------- */

static void free_room(finding *f) {
    void *const memory[] = { f->color, f->label, f->before, f->queue, f->queued, f->changed, f->open };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) pli_free(memory[i]);
}

static void release(void *part) {
    finding *f = part;
    free_room(f);
    pli_direct_leave(f->d);
    pli_free(f->d);
    pli_free(f);
}

static plait_status make_part(void *own, int32_t home, void **part_out) {
    const finding *mine = own;
    finding       *f = pli_calloc(1, sizeof *f);
    pli_direct    *d = pli_calloc(1, sizeof *d);
    plait_status   status = PLAIT_ENOMEM;
    if (f == NULL || d == NULL) {
        pli_free(f);
        pli_free(d);
        return pli_fail(mine->d->err, status, "strong: no memory for a dead worker's part");
    }
    *f = (finding){ .d = d, .color_table = mine->color_table, .at = mine->at, .stale = true };
    status = pli_direct_inherit(mine->d, home, d);
    if (status == PLAIT_OK && !make_room(f))
        status = pli_fail(mine->d->err, PLAIT_ENOMEM, "strong: no memory for a dead worker's part");
    if (status < 0) release(f);
    else *part_out = f;
    return status;
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

/* A phase: clocks until nobody has found anything. *left: how many vertices have no label after it, if it has marked.
 */
static plait_status go_through(pli_inherit *parts, pli_direct *d, stage *at, phase now, int64_t *left) {
    int64_t sum[FIGURES] = { 0 };
    at->now = now;
    at->first = true;
    do {
        PLI_TRY(pli_inherit_each(parts, look, parts));
        PLI_TRY(pli_inherit_each(parts, work, parts));
        d->report.supersteps++;
        PLI_TRY(pli_inherit_clock(parts, look_anew, stand_in, parts));
        PLI_TRY(pli_inherit_sum(parts, sum));
        at->first = false;
    } while (sum[NEWS] > 0);
    *left = sum[LEFT];
    return PLAIT_OK;
}

static plait_status find_all(finding *f, pli_inherit *parts, stage *at) {
    pli_direct *d = f->d;
    int64_t     left = 1;
    for (int64_t v = 0; v < d->part.n; v++) f->label[v] = INT64_MAX;
    count_before(f);
    while (left > 0 && pli_direct_may_go_on(d)) {
        PLI_TRY(go_through(parts, d, at, TRIM, &left));
        PLI_TRY(go_through(parts, d, at, PAINT, &left));
        PLI_TRY(go_through(parts, d, at, MARK, &left));
        PLI_TRY(pli_inherit_each(parts, settle_all, NULL));
        at->base -= d->edges->n;
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
    t.keyed = f->d->workers > 1 && f->d->job->layout.replicas < 2; /* as the labels' table */
    return plait_table_create(f->d->job, &t, &f->color_table);
}

plait_status pli_run_strong(plait_job *job, const pli_vertex_choice *choice, const plait_vertex_cut *cut,
                            int64_t supersteps, void *values_out, plait_vertex_report *report_out) {
    const pli_direct_opts opts = { .name = "strong", .combine = "min", .type = PLAIT_I64, .back = true, .whole = true,
                                   .survives = true };
    pli_direct            d;
    stage                 at = { 0 };
    finding               f = { .d = &d, .at = &at };
    pli_inherit          *parts = NULL;
    plait_status          status = pli_direct_begin(&d, job, choice, cut, supersteps, &opts);
    const pli_inherit_opts of = { .job = job, .err = d.err, .name = opts.name, .own = &f, .figures = FIGURES,
                                  .make = make_part, .release = release };
    if (status == PLAIT_OK) status = make_colors(&f);
    if (status == PLAIT_OK && !make_room(&f)) status = pli_fail(d.err, PLAIT_ENOMEM, "strong: no memory for colors");
    if (status == PLAIT_OK) status = pli_inherit_create(&of, &parts);
    if (status == PLAIT_OK) status = find_all(&f, parts, &at);
    if (status == PLAIT_OK && job->layout.replicas < 2) status = plait_table_drop(&f.color_table);
    pli_inherit_destroy(&parts);
    free_room(&f);
    return pli_direct_end(&d, status, values_out, report_out);
}
