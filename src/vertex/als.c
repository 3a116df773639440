/* Alternating least squares over a bipartite graph: with the items held, each user's bias and factors are the solution
 * of a small system of equations, and so on in turn.
 *
 *     (sum over ratings of x tx + n l2 I) value = sum of (r - mean - other's bias) x,     x = (1, other's factors)
 *
 * What it needs of a vertex program: values of several numbers (a bias and factors); `update`, since the equations of a
 * vertex are the sum over all of its edges, and too large to be gathered in a table (rank^2 numbers a vertex); and two
 * sides that take turns. These are scatter's: users *start*, items are signaled by users that have changed, and users
 * by items. So a superstep is one side, as a clock is in `train --model mf --optimizer als`, and two are an epoch.
 * Vertex by vertex (--engine async) there are no turns: a vertex is solved when one on the other end of its ratings has
 * changed.
 *
 * A table of floats, first factors, the order of ratings and the sums of products (tensor/factors) are those of the
 * learner, so both come to the same numbers if users and items stand in the same order.
 *
 * Papers: Zhou, Wilkinson, Schreiber and Pan, "Large-Scale Parallel Collaborative Filtering for the Netflix Prize",
 * AAIM 2008; Low et al., "Distributed GraphLab", VLDB 2012, section 5.1 (as a vertex program). */
#include "vertex/als.h"

#include <math.h>

#include "base/hash.h"
#include "tensor/factors/factors.h"
#include "tensor/spectral/cholesky.h"

enum {
    BATCH = 64, /* ratings added at once */
    WIDE = (PLI_ALS_RANK + 1 + PLI_OUTER_LANES - 1) / PLI_OUTER_LANES * PLI_OUTER_LANES
};

/* The equations of a vertex. */
typedef struct equations {
    int64_t d; /* unknowns, rounded up to a register */
    double  a[WIDE * WIDE], b[WIDE], x[BATCH * WIDE], weight[BATCH], value[BATCH];
} equations;

static bool is_user(const plait_vertex *v) { return v->out > 0; }

static void begin(void *user, const plait_vertex *v, void *value) {
    const pli_als *als = ((const pli_vertex_choice *)user)->own;
    float         *row = value;
    row[0] = 0;
    pli_factor_draw(als->seed, !is_user(v), als->row[v->index], als->rank, row + 1);
}

static int starts(void *user, const plait_vertex *v) {
    (void)user;
    return is_user(v);
}

/* --- one vertex --------------------------------------------------------------------------------------------------- */

static void add_ratings(const pli_als *als, int64_t n, const plait_vertex_edge *edge, equations *e) {
    const pli_factor_kernels *kernels = pli_factor_kernels_get();
    for (int64_t from = 0; from < n; from += BATCH) {
        const int64_t some = n - from < BATCH ? n - from : BATCH;
        for (int64_t i = 0; i < some; i++) {
            const float *other = edge[from + i].told;
            double      *x = e->x + i * e->d;
            x[0] = 1;
            for (int64_t k = 1; k < e->d; k++) x[k] = k <= als->rank ? (double)other[k] : 0;
            e->weight[i] = 1;
            e->value[i] = (double)edge[from + i].weight - als->mean - (double)other[0];
        }
        kernels->outer(e->d, some, e->x, e->weight, e->value, e->a, e->b);
    }
}

static double solve(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *edge, void *value) {
    const pli_als *als = ((const pli_vertex_choice *)user)->own;
    const int64_t  unknowns = 1 + als->rank;
    float         *row = value;
    double         most = 0;
    equations      e;
    (void)v;
    if (n == 0) return 0;
    e.d = (unknowns + PLI_OUTER_LANES - 1) / PLI_OUTER_LANES * PLI_OUTER_LANES;
    memset(e.a, 0, (size_t)(e.d * e.d) * sizeof *e.a);
    memset(e.b, 0, (size_t)e.d * sizeof *e.b);
    add_ratings(als, n, edge, &e);
    for (int64_t k = 0; k < e.d; k++) e.a[k * e.d + k] += k < unknowns ? als->l2 * (double)n : 1;
    if (!pli_cholesky(e.d, e.a)) return (double)NAN; /* with l2 above 0: only if ratings or factors overflow */
    pli_cholesky_solve(e.d, e.a, e.b);
    for (int64_t k = 0; k < unknowns; k++) {
        const double change = fabs((double)(float)e.b[k] - (double)row[k]);
        if (change > most || isnan(change)) most = change;
        row[k] = (float)e.b[k];
    }
    return most;
}

/* Does it matter to those on the other side? */
static int differs(void *user, const plait_vertex_edge *edge) {
    const pli_vertex_choice *c = user;
    const pli_als           *als = c->own;
    const float             *was = edge->was, *told = edge->told;
    for (int64_t k = 0; k <= als->rank; k++)
        if (fabs((double)told[k] - (double)was[k]) > c->tolerance) return 1;
    return 0;
}

plait_status pli_als_make(const pli_vertex_choice *choice, plait_vertex_program *p, plait_error *err) {
    const pli_als *als = choice->own;
    (void)err;
    p->type = PLAIT_F32;
    p->near = PLAIT_NEAR_BOTH;
    p->values = 1 + als->rank;
    p->gathers = 1; /* it gathers nothing */
    p->init = begin;
    p->update = solve;
    p->scatter = differs;
    p->starts = starts;
    p->tolerance = choice->tolerance;
    return PLAIT_OK;
}

/* --- ratings ------------------------------------------------------------------------------------------------------ */

static plait_status take_sides(const plait_edges *edges, pli_als *als, plait_error *err) {
    int64_t items = 0;
    for (int64_t v = 0; v < edges->n; v++) {
        const plait_vertex vertex = pli_vertex_of(edges, v);
        if (vertex.in > 0 && vertex.out > 0)
            return pli_fail(err, PLAIT_EREFUSED, "als: the vertex %llu has edges to others and from others: an edge "
                            "goes from a user to an item, and both need ids of their own (and no --undirected)",
                            (unsigned long long)vertex.id);
        als->row[v] = (uint32_t)(is_user(&vertex) ? als->users++ : items++);
    }
    return PLAIT_OK;
}

static double mean_of(const plait_edges *edges) {
    double sum = 0;
    for (int64_t k = 0; k < edges->m; k++) sum += edges->in.weight != NULL ? (double)edges->in.weight[k] : 1;
    return edges->m > 0 ? sum / (double)edges->m : 0;
}

plait_status pli_als_prepare(const pli_vertex_asked *asked, pli_vertex_choice *choice, plait_error *err) {
    pli_als *als = pli_calloc(1, sizeof *als);
    if (als == NULL) return pli_fail(err, PLAIT_ENOMEM, "als: no memory for users and items");
    choice->own = als;
    als->rank = (int32_t)asked->components;
    als->l2 = asked->l2;
    als->seed = choice->seed;
    als->mean = mean_of(choice->edges);
    als->row = pli_array((size_t)choice->edges->n, sizeof *als->row);
    if (als->row == NULL) return pli_fail(err, PLAIT_ENOMEM, "als: no memory for users and items");
    if (!(als->l2 > 0))
        return pli_fail(err, PLAIT_EINVAL, "als: --l2 must be above 0: without a penalty a vertex with fewer ratings "
                        "than numbers has no solution");
    return take_sides(choice->edges, als, err);
}

void pli_als_release(void **own) {
    pli_als *als = *own;
    if (als == NULL) return;
    pli_free(als->row);
    pli_free(als);
    *own = NULL;
}

uint64_t pli_als_sign(const void *own) {
    const pli_als *als = own;
    const double   numbers[] = { als->rank, als->l2 };
    return pli_hash_bytes(numbers, sizeof numbers, als->seed);
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static double squares(int64_t n, const float *x) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += (double)x[k] * (double)x[k];
    return sum;
}

int32_t pli_figures_als(const pli_vertex_choice *choice, const int64_t *value, pli_figure *figure) {
    const pli_als       *als = choice->own;
    const pli_neighbors *in = &choice->edges->in;
    const int64_t        cols = 1 + als->rank;
    const float         *all = (const float *)(const void *)value;
    double               errors = 0, penalties = 0;
    for (int64_t v = 0; v < in->n; v++)
        for (int64_t k = in->start[v]; k < in->start[v + 1]; k++) {
            const float *item = all + v * cols, *user = all + (int64_t)in->near[k] * cols;
            double       off = (in->weight != NULL ? (double)in->weight[k] : 1) - als->mean - (double)item[0] -
                         (double)user[0];
            for (int64_t j = 1; j < cols; j++) off -= (double)item[j] * (double)user[j];
            errors += off * off;
            penalties += squares(cols, item) + squares(cols, user);
        }
    const double n = (double)choice->edges->m;
    figure[0] = (pli_figure){ .name = "users", .whole = als->users };
    figure[1] = (pli_figure){ .name = "mean", .real = als->mean, .is_real = true };
    figure[2] = (pli_figure){ .name = "train_rmse", .real = sqrt(errors / n), .is_real = true };
    figure[3] = (pli_figure){ .name = "objective", .real = (errors + als->l2 * penalties) / (2 * n), .is_real = true };
    return 4;
}
