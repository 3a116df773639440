/* A coloring of the simple graph: neighbors differ, and the colors are those that the greedy algorithm gives to
 * vertices in the order of falling degrees (Welsh and Powell, 1967), equal ones by their numbers.
 *
 * A vertex takes the least color that no neighbor before it in that order has, as soon as all of those have theirs. So
 * the result does not depend on who colors what when: a worker goes through its own vertices in that order and colors
 * all that it can, pushes their colors, and reads those of the others. That ends after as many supersteps as the
 * longest chain of vertices of falling order changes the worker; one worker needs one. A row must be whole: a cut of
 * vertices is refused. Paper: Jones and Plassmann, "A Parallel Graph Coloring Heuristic", SIAM J. Sci. Comput. 1993. */
#include "vertex/direct.h"

enum { NONE = -1 }; /* no color yet: what a vertex's value is in the beginning */

typedef struct coloring {
    pli_direct *d;
    int64_t    *color;    /* [n of part] */
    uint32_t   *todo;     /* [todos] own vertices in order, those without a color */
    int64_t     todos;
    int64_t    *taken;    /* [most neighbors + 1] by color: the vertex that saw it last, + 1 */
} coloring;

static int64_t degree(const pli_direct *d, int64_t local) {
    const int64_t v = pli_part_vertex(&d->part, local);
    return pli_cut_degree(d->cut, v);
}

static bool is_before(const pli_direct *d, int64_t a, int64_t b) {
    const int64_t x = degree(d, a), y = degree(d, b);
    return x != y ? x > y : a < b; /* local numbers have the order of the graph's */
}

/* Own vertices by falling degrees: a count for each degree. */
static bool make_order(coloring *c) {
    pli_direct     *d = c->d;
    const pli_part *part = &d->part;
    int64_t         most = 0;
    for (int64_t v = part->own; v < part->own + part->owned; v++) most = degree(d, v) > most ? degree(d, v) : most;
    int64_t *at = pli_calloc((size_t)most + 2, sizeof *at);
    c->color = pli_array((size_t)part->n, sizeof *c->color);
    c->todo = pli_array((size_t)part->owned, sizeof *c->todo);
    c->taken = pli_calloc((size_t)most + 2, sizeof *c->taken);
    const bool has = at != NULL && c->color != NULL && c->todo != NULL && c->taken != NULL;
    for (int64_t v = part->own; has && v < part->own + part->owned; v++) at[most - degree(d, v) + 1]++;
    for (int64_t i = 0; has && i < most; i++) at[i + 1] += at[i];
    for (int64_t v = part->own; has && v < part->own + part->owned; v++)
        c->todo[at[most - degree(d, v)]++] = (uint32_t)v;
    c->todos = part->owned;
    pli_free(at);
    return has;
}

/* The color that v may take; NONE: it must wait for a neighbor. */
static int64_t color_of(coloring *c, uint32_t v) {
    const pli_neighbors *rows = &c->d->part.rows;
    for (int64_t k = rows->start[v]; k < rows->start[v + 1]; k++) {
        const uint32_t u = rows->near[k];
        if (!is_before(c->d, u, v)) continue;
        if (c->color[u] == NONE) return NONE;
        const int64_t degrees = rows->start[v + 1] - rows->start[v];
        if (c->color[u] <= degrees) c->taken[c->color[u]] = (int64_t)v + 1;
    }
    int64_t color = 0;
    while (c->taken[color] == (int64_t)v + 1) color++;
    return color;
}

/* Colors what can be, and makes hits of it. */
static void color_own(coloring *c) {
    pli_direct *d = c->d;
    int64_t     kept = 0;
    uint64_t   *bits = (uint64_t *)d->better; /* not yet in use */
    memset(bits, 0, pli_bit_words(d->part.n) * sizeof *bits);
    for (int64_t i = 0; i < c->todos; i++) {
        const uint32_t v = c->todo[i];
        if ((c->color[v] = color_of(c, v)) == NONE) c->todo[kept++] = v;
        else pli_bit_set(bits, v);
    }
    c->todos = kept;
    d->hits = 0;
    for (size_t w = 0; w < pli_bit_words(d->part.n); w++)
        for (uint64_t b = bits[w]; b != 0; b &= b - 1) d->hit[d->hits++] = w * 64 + (uint64_t)__builtin_ctzll(b);
    for (int64_t i = 0; i < d->hits; i++) d->better[i] = c->color[d->hit[i]] - NONE;
}

static plait_status color_all(coloring *c) {
    pli_direct *d = c->d;
    int64_t     left = 1;
    while (left > 0 && pli_direct_may_go_on(d)) {
        PLI_TRY(pli_direct_read(d));
        memcpy(c->color, d->values, (size_t)d->part.n * sizeof *c->color);
        color_own(c);
        PLI_TRY(pli_direct_clock(d));
        left = c->todos;
        PLI_TRY(pli_direct_sum(d, &left));
    }
    d->report.still = left == 0;
    return PLAIT_OK;
}

static int64_t first_color(const pli_direct *d, int64_t vertex) {
    (void)d;
    (void)vertex;
    return NONE;
}

plait_status pli_run_coloring(plait_job *job, const pli_vertex_choice *choice, const plait_vertex_cut *cut,
                              int64_t supersteps, void *values_out, plait_vertex_report *report_out) {
    const pli_direct_opts opts = { .name = "coloring", .combine = "add", .type = PLAIT_I64, .whole = true, .rows = true,
                                   .first = first_color };
    pli_direct            d;
    coloring              c = { .d = &d };
    plait_status          status = pli_direct_begin(&d, job, choice, cut, supersteps, &opts);
    if (status == PLAIT_OK && !make_order(&c)) status = pli_fail(d.err, PLAIT_ENOMEM, "coloring: no memory for colors");
    if (status == PLAIT_OK) status = color_all(&c);
    pli_free(c.color);
    pli_free(c.todo);
    pli_free(c.taken);
    return pli_direct_end(&d, status, values_out, report_out);
}

int32_t pli_figures_coloring(const pli_vertex_choice *choice, const int64_t *value, pli_figure *figure) {
    const plait_edges *edges = choice->edges;
    int64_t most = -1;
    for (int64_t v = 0; v < edges->n; v++) most = value[v] > most ? value[v] : most;
    figure[0] = (pli_figure){ .name = "colors", .whole = most + 1 };
    return 1;
}
