/* Weakly connected components by trees: a worker joins the vertices of its part, and labels travel between parts.
 *
 * Each vertex has a parent with a lower number or itself. An edge joins its ends' trees by hanging the root with the
 * higher number under the other one; then paths are cut short. So a part's components are known after one pass over its
 * edges, whatever the diameter, and the root is the least number. Edges are read in the direction in which they are
 * stored: for weak components that is enough. The first two edges of each row are joined first. That makes most of the
 * graph one tree of small depth, so that for nearly all other edges a look at both parents suffices (Sutton, Ben-Nun
 * and Barak, "Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling", IPDPS 2018: Afforest).
 *
 * A superstep: each tree takes the least value among its vertices, and pushes it to those that have a larger one; the
 * table keeps the least of all workers' pushes. One worker needs one superstep. Labels only fall, so the result is the
 * same under every consistency.
 *
 * Limit: a pass over the edges, 4 bytes each, and a random read of 4 bytes for each. */
#include <stdatomic.h>

#include "vertex/direct.h"

enum { PIECE = 4096, SAMPLED = 2, LOOK = 8 }; /* LOOK: supersteps between two looks at all, where reads may be old */

typedef struct joining {
    pli_direct       *d;
    _Atomic uint32_t *parent; /* [n of part]; relaxed: a parent only falls, and an old one is an ancestor as well */
    int64_t          *least;  /* [n of part] of a root: the least value in its tree */
    int64_t           from, to; /* which edges of each row are joined: from .. to - 1; to 0: to its end */
} joining;

static uint32_t parent_of(const joining *j, uint32_t v) {
    return atomic_load_explicit(&j->parent[v], memory_order_relaxed);
}

static void join(const joining *j, uint32_t u, uint32_t v) {
    uint32_t a = parent_of(j, u), b = parent_of(j, v);
    while (a != b) {
        const uint32_t high = a > b ? a : b, low = a > b ? b : a;
        uint32_t       above = parent_of(j, high);
        if (above == low) return;
        if (above == high && atomic_compare_exchange_strong_explicit(&j->parent[high], &above, low,
                                                                     memory_order_relaxed, memory_order_relaxed))
            return;
        a = parent_of(j, parent_of(j, high));
        b = parent_of(j, low);
    }
}

static void join_rows(void *user, int64_t i, int32_t thread) {
    const joining       *j = user;
    const pli_neighbors *rows = &j->d->part.rows;
    const int64_t        last = (i + 1) * PIECE < rows->n ? (i + 1) * PIECE : rows->n;
    (void)thread;
    for (int64_t v = i * PIECE; v < last; v++) {
        const int64_t begin = rows->start[v] + j->from, all = rows->start[v + 1],
                      end = j->to > 0 && rows->start[v] + j->to < all ? rows->start[v] + j->to : all;
        for (int64_t k = begin; k < end; k++)
            if (parent_of(j, rows->near[k]) != parent_of(j, (uint32_t)v)) join(j, rows->near[k], (uint32_t)v);
    }
}

static void shorten(void *user, int64_t i, int32_t thread) {
    const joining *j = user;
    const int64_t  last = (i + 1) * PIECE < j->d->part.n ? (i + 1) * PIECE : j->d->part.n;
    (void)thread;
    for (int64_t v = i * PIECE; v < last; v++) {
        uint32_t above = parent_of(j, (uint32_t)v), top = parent_of(j, above);
        for (; top != above; top = parent_of(j, above)) above = top;
        atomic_store_explicit(&j->parent[v], above, memory_order_relaxed);
    }
}

static void join_all(joining *j) {
    const int64_t pieces = (j->d->part.n + PIECE - 1) / PIECE;
    for (int64_t v = 0; v < j->d->part.n; v++) j->parent[v] = (uint32_t)v;
    for (j->from = 0, j->to = 1; j->from <= SAMPLED; j->from++, j->to++) {
        if (j->from == SAMPLED) j->to = 0;
        pli_pool_for(j->d->pool, pieces, join_rows, j);
        pli_pool_for(j->d->pool, pieces, shorten, j);
    }
}

/* --- labels ------------------------------------------------------------------------------------------------------- */

/* Makes hits of the vertices whose value is not their tree's least. */
static void label(joining *j) {
    pli_direct *d = j->d;
    for (int64_t v = 0; v < d->part.n; v++) j->least[v] = INT64_MAX;
    for (int64_t v = 0; v < d->part.n; v++) {
        const uint32_t root = j->parent[v];
        if (d->values[v] < j->least[root]) j->least[root] = d->values[v];
    }
    d->hits = 0;
    for (int64_t v = 0; v < d->part.n; v++) {
        if (d->values[v] == j->least[j->parent[v]]) continue;
        d->hit[d->hits] = (uint64_t)v;
        d->better[d->hits++] = j->least[j->parent[v]];
    }
}

/* Have all workers' trees one value each, when all updates have arrived? */
static plait_status is_still(joining *j, int64_t news) {
    pli_direct *d = j->d;
    PLI_TRY(pli_direct_sum(d, &news));
    if (news > 0) return PLAIT_OK;
    PLI_TRY(plait_job_barrier(d->job));
    PLI_TRY(pli_direct_read(d));
    label(j);
    news = d->hits;
    PLI_TRY(pli_direct_sum(d, &news));
    d->report.still = news == 0;
    return PLAIT_OK;
}

static plait_status spread(joining *j) {
    pli_direct *d = j->d;
    join_all(j);
    while (pli_direct_may_go_on(d) && !d->report.still) {
        PLI_TRY(pli_direct_read(d));
        label(j);
        const int64_t news = d->hits;
        PLI_TRY(pli_direct_clock(d));
        if (d->workers == 1) d->report.still = 1;
        else if (d->all_is_read || d->report.supersteps % LOOK == 0) PLI_TRY(is_still(j, news));
    }
    return PLAIT_OK;
}

static int64_t own_number(const pli_direct *d, int64_t vertex) {
    (void)d;
    return vertex;
}

plait_status pli_run_components(plait_job *job, const pli_vertex_choice *choice, const plait_vertex_cut *cut,
                                int64_t supersteps, void *values_out, plait_vertex_report *report_out) {
    const pli_direct_opts opts = { .name = "components", .combine = "min", .type = PLAIT_I64, .first = own_number };
    pli_direct            d;
    joining               j = { .d = &d };
    plait_status          status = pli_direct_begin(&d, job, choice, cut, supersteps, &opts);
    if (status == PLAIT_OK) {
        j.parent = pli_array((size_t)d.part.n, sizeof *j.parent);
        j.least = pli_array((size_t)d.part.n, sizeof *j.least);
        if (j.parent == NULL || j.least == NULL)
            status = pli_fail(d.err, PLAIT_ENOMEM, "components: no memory for trees");
    }
    if (status == PLAIT_OK) status = spread(&j);
    pli_free((void *)j.parent);
    pli_free(j.least);
    return pli_direct_end(&d, status, values_out, report_out);
}

/* How many components there are: each has one vertex that is its own label. */
int32_t pli_figures_components(const pli_vertex_choice *choice, const int64_t *value, pli_figure *figure) {
    const plait_edges *edges = choice->edges;
    int64_t n = 0;
    for (int64_t v = 0; v < edges->n; v++) n += value[v] == v;
    figure[0] = (pli_figure){ .name = "components", .whole = n };
    return 1;
}
