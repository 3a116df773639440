/* Other views of a graph, made once, when somebody asks, and kept with it: the edges out, and the *simple* graph, in
 * which an edge has no direction and no weight, stands in the rows of both of its ends once, and is no loop. Triangles,
 * cores and colors are of the simple graph. Rows are merged from both directions, which are sorted. */
#include <pthread.h>

#include "base/pool.h"
#include "vertex/direct.h"
#include "vertex/ranked.h"

/* Written once each, by the first caller, under the mutex. */
struct pli_edges_ways {
    pthread_mutex_t  mutex;
    bool             out_made, simple_made;
    pli_neighbors    out, simple;
    pli_ranked_made *ranked; /* written when the graph is made */
};

bool pli_edges_ways_make(plait_edges *edges) {
    edges->ways = pli_calloc(1, sizeof *edges->ways);
    if (edges->ways == NULL) return false;
    pthread_mutex_init(&edges->ways->mutex, NULL);
    edges->ways->ranked = pli_ranked_begin();
    if (edges->ways->ranked == NULL) pli_edges_ways_free(edges);
    return edges->ways != NULL;
}

void pli_edges_ways_free(plait_edges *edges) {
    if (edges->ways == NULL) return;
    pli_neighbors_free(&edges->ways->out);
    pli_neighbors_free(&edges->ways->simple);
    pli_ranked_free(edges->ways->ranked);
    pthread_mutex_destroy(&edges->ways->mutex);
    pli_free(edges->ways);
    edges->ways = NULL;
}

static bool make_out(const plait_edges *edges) {
    struct pli_edges_ways *w = edges->ways;
    if (!w->out_made) w->out_made = pli_neighbors_transpose(&edges->in, edges->n, &w->out);
    return w->out_made;
}

const pli_neighbors *pli_edges_out(const plait_edges *edges) {
    pthread_mutex_lock(&edges->ways->mutex);
    const bool made = make_out(edges);
    pthread_mutex_unlock(&edges->ways->mutex);
    return made ? &edges->ways->out : NULL;
}

/* --- the simple graph --------------------------------------------------------------------------------------------- */

typedef struct merging {
    const pli_neighbors *in, *out;
    pli_neighbors       *to; /* near NULL: rows are counted, to start[v + 1] */
} merging;

enum { PIECE = 2048 };

static void merge_row(const merging *m, int64_t v) {
    const pli_neighbors *a = m->in, *b = m->out;
    int64_t              i = a->start[v], j = b->start[v], n = 0, last = -1;
    uint32_t            *row = m->to->near != NULL ? m->to->near + m->to->start[v] : NULL;
    while (i < a->start[v + 1] || j < b->start[v + 1]) {
        const bool     first = j == b->start[v + 1] || (i < a->start[v + 1] && a->near[i] <= b->near[j]);
        const uint32_t u = first ? a->near[i++] : b->near[j++];
        if ((int64_t)u == last || (int64_t)u == v) continue;
        last = u;
        if (row != NULL) row[n] = u;
        n++;
    }
    if (row == NULL) m->to->start[v + 1] = n;
}

static void merge_piece(void *user, int64_t i, int32_t thread) {
    const merging *m = user;
    const int64_t  last = (i + 1) * PIECE < m->in->n ? (i + 1) * PIECE : m->in->n;
    (void)thread;
    for (int64_t v = i * PIECE; v < last; v++) merge_row(m, v);
}

bool pli_neighbors_simple(const pli_neighbors *in, const pli_neighbors *out, pli_pool *pool, pli_neighbors *to) {
    const merging m = { in, out, to };
    const int64_t pieces = (in->n + PIECE - 1) / PIECE;
    *to = (pli_neighbors){ .n = in->n };
    to->start = pli_calloc((size_t)in->n + 1, sizeof *to->start);
    if (to->start == NULL) return false;
    pli_pool_for(pool, pieces, merge_piece, (void *)(uintptr_t)&m);
    for (int64_t v = 0; v < in->n; v++) to->start[v + 1] += to->start[v];
    to->near = pli_array((size_t)to->start[in->n] + 1, sizeof *to->near);
    if (to->near == NULL) {
        pli_neighbors_free(to);
        return false;
    }
    pli_pool_for(pool, pieces, merge_piece, (void *)(uintptr_t)&m);
    return true;
}

const pli_neighbors *pli_edges_simple(const plait_edges *edges, pli_pool *pool) {
    struct pli_edges_ways *w = edges->ways;
    pthread_mutex_lock(&w->mutex);
    if (!w->simple_made)
        w->simple_made = make_out(edges) && pli_neighbors_simple(&edges->in, &w->out, pool, &w->simple);
    pthread_mutex_unlock(&w->mutex);
    return w->simple_made ? &w->simple : NULL;
}

const pli_ranked *pli_edges_ranked(const plait_edges *edges, pli_pool *pool) {
    const pli_neighbors *simple = pli_edges_simple(edges, pool);
    return simple != NULL ? pli_ranked_of(edges->ways->ranked, simple, pool) : NULL;
}
