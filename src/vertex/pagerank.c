/* PageRank: a vertex tells its rank over its number of edges out, and takes the sum of what it is told, damped.
 * Paper: Brin and Page, "The Anatomy of a Large-Scale Hypertextual Web Search Engine", 1998. A vertex without edges out
 * keeps what it has to itself: ranks then add up to less than 1 (the caller may divide by their sum).
 *
 * Each worker that reads most vertices computes for all of them what they tell. So this is a loop over no more than it
 * needs, 20 bytes a vertex; a call for each vertex moves 44. */
#include "vertex/pagerank.h"

#include <math.h>

static inline double rank_told(double rank, int64_t out) { return out > 0 ? rank / (double)out : 0; }

/* The rank that comes to a vertex from nowhere. */
static inline double rank_back(const pli_vertex_choice *c, double n, int64_t v) {
    return c->source < 0 ? 1.0 / n : v == c->source;
}

static inline double rank_new(const pli_vertex_choice *c, double back, double gathered) {
    return (1 - c->damping) * back + c->damping * gathered;
}

/* --- for a vertex ------------------------------------------------------------------------------------------------- */

static void rank_init(void *user, const plait_vertex *v, void *value) {
    const pli_vertex_choice *c = user;
    *(double *)value = rank_back(c, (double)c->edges->n, v->index);
}

static void rank_tell(void *user, const plait_vertex *v, const void *value, void *told) {
    (void)user;
    *(double *)told = rank_told(*(const double *)value, v->out);
}

static double rank_apply(void *user, const plait_vertex *v, const void *gathered, void *value) {
    const pli_vertex_choice *c = user;
    const double             old = *(double *)value,
                 new = rank_new(c, rank_back(c, (double)c->edges->n, v->index), *(const double *)gathered);
    *(double *)value = new;
    return fabs(new - old);
}

/* --- for many ----------------------------------------------------------------------------------------------------- */

static void tell_ranks(const void *user, const plait_edges *edges, int64_t first, int64_t last, const double *value,
                       double *told) {
    (void)user;
    for (int64_t v = first; v < last; v++) told[v] = rank_told(value[v], edges->out[v]);
}

static double apply_ranks(const void *user, const plait_edges *edges, int64_t first, int64_t last, const double *value,
                          double *sum) {
    const pli_vertex_choice *c = user;
    const double             n = (double)edges->n;
    double                   most = 0;
    for (int64_t v = first; v < last; v++) {
        const double change = rank_new(c, rank_back(c, n, v), sum[v]) - value[v], by = fabs(change);
        sum[v] = change;
        if (!(by <= most)) most = isnan(by) ? (double)INFINITY : by;
    }
    return most;
}

static const pli_vertex_loops rank_loops = { .tell = tell_ranks, .apply = apply_ranks };

const pli_vertex_loops *pli_vertex_loops_of(const plait_vertex_program *program) {
    return program->tell == rank_tell && program->apply == rank_apply ? &rank_loops : NULL;
}

plait_status pli_pagerank_make(const pli_vertex_choice *c, plait_vertex_program *p, plait_error *err) {
    (void)err;
    p->init = rank_init;
    p->tell = rank_tell;
    p->apply = rank_apply;
    p->tolerance = c->tolerance;
    return PLAIT_OK;
}
