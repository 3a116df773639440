/* Weakly connected components by trees: a worker joins the vertices of its part, and labels travel between parts.
 *
 * Each vertex has a parent with a lower number or itself. An edge joins its ends' trees by hanging the root with the
 * higher number under the other one; then paths are cut short. So a part's components are known after one pass over its
 * edges, whatever the diameter, and the root is the least number. Edges are read in the direction in which they are
 * stored: for weak components that is enough. The first two edges of each row are joined first. That makes most of the
 * graph one tree of small depth, so that for nearly all other edges a look at both parents suffices (Sutton, Ben-Nun
 * and Barak, "Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling", IPDPS 2018: Afforest).
 *
 * A vertex's value, its label, is a vertex of the same component, and the table keeps the least of all workers' pushes.
 * Labels only fall, so the result is the same under every consistency. How they travel:
 *
 *     each worker reads all      the labels are a forest themselves. Superstep 1 joins the first two edges of each row,
 *                                and a worker pushes the roots of its own vertices. Superstep 2 begins with the forest
 *                                of what all have pushed, in which most vertices are one tree already, and joins all
 *                                edges; from then on a worker joins what others push. It pushes the root of an own
 *                                vertex whose label that is not, and of another's if the labels do not lead there.
 *                                They are few. When nobody has anything to push, labels are roots in each forest
 *     a worker reads a part      a label may be of a vertex that it does not know. Each tree takes the least label
 *                                among its vertices, and pushes it to those that have a larger one
 *
 * So over parts that read all, a label is pushed about once, and not by each worker that has an edge of the vertex. One
 * worker needs one superstep.
 *
 * Limit: a pass over the edges, 4 bytes each, and a random read of 4 bytes for each. */
#include <stdatomic.h>

#include "vertex/direct.h"

enum { PIECE = 4096, SAMPLED = 2, LOOK = 8 }; /* LOOK: supersteps between two looks at all, where reads may be old */

typedef struct joining {
    pli_direct       *d;
    bool              by_all; /* each worker reads all labels */
    _Atomic uint32_t *parent; /* [n of part]; relaxed: a parent only falls, and an old one is an ancestor as well */
    int64_t          *least;  /* [n of part] of a root: the least label in its tree; NULL: by_all */
    int64_t          *found;  /* [shares] by_all: how many vertices were found in a share */
    int64_t           shares; /* of the part's vertices, one for a thread */
    int64_t           first, last; /* of the rows that have edges */
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
    const int64_t        first = j->first + i * PIECE, last = first + PIECE < j->last ? first + PIECE : j->last;
    (void)thread;
    for (int64_t v = first; v < last; v++) {
        const int64_t begin = rows->start[v] + j->from, all = rows->start[v + 1],
                      end = j->to > 0 && rows->start[v] + j->to < all ? rows->start[v] + j->to : all;
        for (int64_t k = begin; k < end; k++)
            if (parent_of(j, rows->near[k]) != parent_of(j, (uint32_t)v)) join(j, rows->near[k], (uint32_t)v);
    }
}

static uint32_t root_of(const joining *j, uint32_t v) {
    uint32_t above = parent_of(j, v), top = parent_of(j, above);
    for (; top != above; top = parent_of(j, above)) above = top;
    return above;
}

static void shorten(void *user, int64_t i, int32_t thread) {
    const joining *j = user;
    const int64_t  last = (i + 1) * PIECE < j->d->part.n ? (i + 1) * PIECE : j->d->part.n;
    (void)thread;
    for (int64_t v = i * PIECE; v < last; v++)
        atomic_store_explicit(&j->parent[v], root_of(j, (uint32_t)v), memory_order_relaxed);
}

static void stand_alone(void *user, int64_t i, int32_t thread) {
    const joining *j = user;
    const int64_t  last = (i + 1) * PIECE < j->d->part.n ? (i + 1) * PIECE : j->d->part.n;
    (void)thread;
    for (int64_t v = i * PIECE; v < last; v++) atomic_store_explicit(&j->parent[v], (uint32_t)v, memory_order_relaxed);
}

/* Calls fn for pieces of the part's vertices. */
static void each_piece(joining *j, void (*fn)(void *user, int64_t i, int32_t thread)) {
    pli_pool_for(j->d->pool, (j->d->part.n + PIECE - 1) / PIECE, fn, j);
}

/* Joins edges from .. to - 1 of each row. */
static void join_edges(joining *j, int64_t from, int64_t to) {
    j->from = from;
    j->to = to;
    pli_pool_for(j->d->pool, (j->last - j->first + PIECE - 1) / PIECE, join_rows, j);
}

/* --- labels, where each worker reads all -------------------------------------------------------------------------- */

static void label_own(void *user, int64_t i, int32_t thread) {
    const joining  *j = user;
    const pli_part *part = &j->d->part;
    const int64_t   last = (i + 1) * PIECE < part->owned ? (i + 1) * PIECE : part->owned;
    (void)thread;
    for (int64_t k = i * PIECE; k < last; k++) j->d->better[k] = root_of(j, (uint32_t)(part->own + k));
}

/* Pushes the roots of own vertices. */
static plait_status push_own(joining *j) {
    pli_direct *d = j->d;
    pli_pool_for(d->pool, (d->part.owned + PIECE - 1) / PIECE, label_own, j);
    d->hits = 0;
    return pli_direct_push_own(d);
}

/* Where labels lead from a vertex. A label that was not there yet when it was read is none. */
static int64_t end_of_labels(const int64_t *label, int64_t v) {
    while (label[v] < v) v = label[v];
    return v;
}

/* Begins with the forest that the labels are, all paths cut short. */
static void hang_under_labels(void *user, int64_t i, int32_t thread) {
    const joining *j = user;
    const int64_t *label = j->d->values, last = (i + 1) * PIECE < j->d->part.n ? (i + 1) * PIECE : j->d->part.n;
    (void)thread;
    for (int64_t v = i * PIECE; v < last; v++)
        atomic_store_explicit(&j->parent[v], (uint32_t)end_of_labels(label, v), memory_order_relaxed);
}

static int64_t share_begin(const joining *j, int64_t i) { return j->d->part.n * i / j->shares; }

/* Where a label is not the root that the worker knows of, it joins the two, and counts how often that was. */
static void join_labels(void *user, int64_t i, int32_t thread) {
    const joining *j = user;
    const int64_t *label = j->d->values, last = share_begin(j, i + 1);
    int64_t        n = 0;
    (void)thread;
    for (int64_t v = share_begin(j, i); v < last; v++) {
        if (label[v] == parent_of(j, (uint32_t)v)) continue;
        n++;
        if (label[v] < v) join(j, (uint32_t)label[v], (uint32_t)v);
    }
    j->found[i] = n;
}

/* Cuts paths short, and lists the vertices whose roots are to be pushed, from the share's place in hit on. */
static void find_news(void *user, int64_t i, int32_t thread) {
    const joining *j = user;
    pli_direct    *d = j->d;
    const int64_t  own = d->part.own, end = own + d->part.owned, first = share_begin(j, i),
                  last = share_begin(j, i + 1);
    int64_t n = first;
    (void)thread;
    for (int64_t v = first; v < last; v++) {
        const uint32_t root = root_of(j, (uint32_t)v);
        atomic_store_explicit(&j->parent[v], root, memory_order_relaxed);
        if (d->values[v] == root || ((v < own || v >= end) && end_of_labels(d->values, v) == root)) continue;
        d->hit[n] = (uint64_t)v;
        d->better[n++] = root;
    }
    j->found[i] = n - first;
}

/* Makes hits of what the shares have listed. */
static void list_news(joining *j) {
    pli_direct *d = j->d;
    pli_pool_for(d->pool, j->shares, find_news, j);
    d->hits = j->found[0];
    for (int64_t i = 1; i < j->shares; i++) {
        const int64_t from = share_begin(j, i);
        memmove(d->hit + d->hits, d->hit + from, (size_t)j->found[i] * sizeof *d->hit);
        memmove(d->better + d->hits, d->better + from, (size_t)j->found[i] * sizeof *d->better);
        d->hits += j->found[i];
    }
}

/* Joins all edges of the part to the forest of what all have pushed. */
static void join_part(joining *j) {
    each_piece(j, hang_under_labels);
    join_edges(j, 0, 0);
    list_news(j);
}

/* Joins what others have pushed since. */
static void join_news(joining *j) {
    int64_t differ = 0;
    pli_pool_for(j->d->pool, j->shares, join_labels, j);
    for (int64_t i = 0; i < j->shares; i++) differ += j->found[i];
    j->d->hits = 0;
    if (differ > 0) list_news(j);
}

/* --- labels, where a worker reads a part -------------------------------------------------------------------------- */

/* Makes hits of the vertices whose label is not their tree's least. */
static void label_trees(joining *j) {
    pli_direct *d = j->d;
    for (int64_t v = 0; v < d->part.n; v++) j->least[v] = INT64_MAX;
    for (int64_t v = 0; v < d->part.n; v++) {
        const uint32_t root = j->parent[v];
        const int64_t  vertex = pli_part_vertex(&d->part, v), label = d->values[v] < vertex ? d->values[v] : vertex;
        if (label < j->least[root]) j->least[root] = label;
    }
    d->hits = 0;
    for (int64_t v = 0; v < d->part.n; v++) {
        if (d->values[v] == j->least[j->parent[v]]) continue;
        d->hit[d->hits] = (uint64_t)v;
        d->better[d->hits++] = j->least[j->parent[v]];
    }
}

/* --- supersteps --------------------------------------------------------------------------------------------------- */

/* Reads labels, and lists those that the worker would change. */
static plait_status look(joining *j) {
    PLI_TRY(pli_direct_read(j->d));
    if (!j->by_all) label_trees(j);
    else if (j->d->report.supersteps == 1) join_part(j);
    else join_news(j);
    return PLAIT_OK;
}

/* Nobody has changed a label. Where reads may be old, all look once more, at all updates. */
static plait_status is_still(joining *j, int64_t news) {
    pli_direct *d = j->d;
    PLI_TRY(pli_direct_sum(d, &news));
    if (news > 0) return PLAIT_OK;
    if (!d->all_is_read) {
        PLI_TRY(plait_job_barrier(d->job));
        PLI_TRY(look(j));
        news = d->hits;
        PLI_TRY(pli_direct_sum(d, &news));
    }
    d->report.still = news == 0;
    return PLAIT_OK;
}

/* The first superstep: of one worker all that there is to do. */
static plait_status begin(joining *j) {
    pli_direct *d = j->d;
    each_piece(j, stand_alone);
    for (int64_t k = 0; k < SAMPLED; k++) join_edges(j, k, k + 1);
    if (!j->by_all || d->workers == 1) {
        each_piece(j, shorten);
        join_edges(j, SAMPLED, 0);
    }
    if (j->by_all) return push_own(j);
    each_piece(j, shorten);
    PLI_TRY(pli_direct_read(d));
    label_trees(j);
    return PLAIT_OK;
}

static plait_status spread(joining *j) {
    pli_direct *d = j->d;
    PLI_TRY(begin(j));
    PLI_TRY(pli_direct_clock(d));
    d->report.still = d->workers == 1;
    while (pli_direct_may_go_on(d) && !d->report.still) {
        PLI_TRY(look(j));
        const int64_t news = d->hits;
        PLI_TRY(pli_direct_clock(d));
        if (d->all_is_read || d->report.supersteps % LOOK == 0) PLI_TRY(is_still(j, news));
    }
    return PLAIT_OK;
}

static plait_status make_room(joining *j) {
    pli_direct *d = j->d;
    PLI_TRY(pli_direct_read_by_all(d, &j->by_all));
    j->shares = pli_pool_threads(d->pool);
    j->first = d->part.whole ? d->part.own : 0;
    j->last = d->part.whole ? d->part.own + d->part.owned : d->part.n;
    j->parent = pli_array((size_t)d->part.n, sizeof *j->parent);
    if (!j->by_all) j->least = pli_array((size_t)d->part.n, sizeof *j->least);
    else j->found = pli_array((size_t)j->shares, sizeof *j->found);
    if (j->parent != NULL && (j->by_all ? j->found != NULL : j->least != NULL)) return PLAIT_OK;
    return pli_fail(d->err, PLAIT_ENOMEM, "components: no memory for trees");
}

plait_status pli_run_components(plait_job *job, const pli_vertex_choice *choice, const plait_vertex_cut *cut,
                                int64_t supersteps, void *values_out, plait_vertex_report *report_out) {
    const pli_direct_opts opts = { .name = "components", .combine = "min", .type = PLAIT_I64, .own = true };
    pli_direct            d;
    joining               j = { .d = &d };
    plait_status          status = pli_direct_begin(&d, job, choice, cut, supersteps, &opts);
    if (status == PLAIT_OK) status = make_room(&j);
    if (status == PLAIT_OK) status = spread(&j);
    pli_free((void *)j.parent);
    pli_free(j.least);
    pli_free(j.found);
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
