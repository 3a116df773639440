/* PageRank: a vertex tells its rank over its number of edges out, and takes the sum of what it is told, damped.
 * Paper: Brin and Page, "The Anatomy of a Large-Scale Hypertextual Web Search Engine", 1998. A vertex without edges out
 * keeps what it has to itself: ranks then add up to less than 1 (the caller may divide by their sum).
 *
 * A vertex's value is its *share*: what it tells along each of its edges, its rank over their number. So what others
 * gather lies in the table as it is, and no worker computes it anew for all vertices that it reads; workers that read
 * one and the same slab have one array in their processor's cache, and not one each. The end makes ranks of shares.
 *
 * A loop over many vertices needs no more than that, 20 bytes a vertex; a call for each of them moves 44. */
#include "vertex/pagerank.h"

#include <math.h>

/* The rank of a vertex over its share. */
static inline double parts_of(int64_t out) { return out > 0 ? (double)out : 1; }

/* The rank that comes to a vertex from nowhere. */
static inline double rank_back(const pli_vertex_choice *c, double n, int64_t v) {
    return c->source < 0 ? 1.0 / n : v == c->source;
}

static inline double share_new(const pli_vertex_choice *c, double back, double gathered, double parts) {
    return ((1 - c->damping) * back + c->damping * gathered) / parts;
}

/* --- for a vertex ------------------------------------------------------------------------------------------------- */

static void share_init(void *user, const plait_vertex *v, void *value) {
    const pli_vertex_choice *c = user;
    *(double *)value = rank_back(c, (double)c->edges->n, v->index) / parts_of(v->out);
}

/* Returns by how much the rank changes. */
static double share_apply(void *user, const plait_vertex *v, const void *gathered, void *value) {
    const pli_vertex_choice *c = user;
    const double             back = rank_back(c, (double)c->edges->n, v->index), parts = parts_of(v->out),
                 old = *(double *)value, new = share_new(c, back, *(const double *)gathered, parts);
    *(double *)value = new;
    return fabs(new - old) * parts;
}

/* --- for many ----------------------------------------------------------------------------------------------------- */

static double apply_shares(const void *user, const plait_edges *edges, int64_t first, int64_t last, const double *value,
                           double *sum) {
    const pli_vertex_choice *c = user;
    const double             n = (double)edges->n;
    double                   most = 0;
    for (int64_t v = first; v < last; v++) {
        const double parts = parts_of(edges->out[v]),
                     change = share_new(c, rank_back(c, n, v), sum[v], parts) - value[v], by = fabs(change) * parts;
        sum[v] = change;
        if (!(by <= most)) most = isnan(by) ? (double)INFINITY : by;
    }
    return most;
}

static const pli_vertex_loops share_loops = { .apply = apply_shares };

const pli_vertex_loops *pli_vertex_loops_of(const plait_vertex_program *program) {
    return program->tell == NULL && program->apply == share_apply ? &share_loops : NULL;
}

void pli_pagerank_finish(const pli_vertex_choice *choice, int64_t *value) {
    for (int64_t v = 0; v < choice->edges->n; v++) {
        double share;
        memcpy(&share, &value[v], sizeof share);
        share *= parts_of(choice->edges->out[v]);
        memcpy(&value[v], &share, sizeof share);
    }
}

plait_status pli_pagerank_make(const pli_vertex_choice *c, plait_vertex_program *p, plait_error *err) {
    (void)err;
    p->init = share_init;
    p->apply = share_apply;
    p->tolerance = c->tolerance;
    return PLAIT_OK;
}
