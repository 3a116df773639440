/* vertex/forest.h - vertices of a part joined into trees, of which one is expected to be far larger than the others.
 *
 * Each vertex has a parent with a lower number or is a root. An edge joins its ends' trees by hanging the root with the
 * higher number under the other one, so a tree's root is its least vertex, whatever the order of edges and threads.
 *
 * In most graphs one tree ends with nearly all vertices. The tree of a *seed*, which many of the part's edges come
 * from, therefore has a set of vertices that are known to be in it: one bit a vertex, which a processor's cache holds
 * where it would not hold parents. A row whose vertex is in the set need only ask of each other end whether it is there
 * too; nearly all are, and for them no parent is read. One that is not is added, and gets no parent either, unless it
 * has been *linked* in another tree before. (Sutton, Ben-Nun and Barak, "Optimizing Parallel Graph
 * Connectivity Computation via Subgraph Sampling", IPDPS 2018, leave out the rows of the largest tree; that needs edges
 * in both directions.) The set may lack vertices of the tree, and never has others.
 *
 * Limit: one pass over the edges, 4 bytes each, and a random bit for each. */
#ifndef PLI_VERTEX_FOREST_H
#define PLI_VERTEX_FOREST_H

#include <stdatomic.h>

#include "vertex/bits.h"
#include "vertex/vertex.h"

typedef struct pli_forest {
    pli_pool         *pool;
    bool              alone; /* one thread joins: what it writes needs no other's care                       */
    int64_t           n;
    uint32_t          seed;
    size_t            words;
    _Atomic uint32_t *up;     /* [n] how far below a vertex its parent is; 0: a root. Relaxed: an old parent is an
                                 ancestor as well, and a vertex that has one never becomes a root again       */
    _Atomic uint64_t *great;  /* [words] vertices known to be in the seed's tree, with parents or without       */
    _Atomic uint64_t *linked; /* [words] vertices whose parents mean something                                 */
    uint64_t         *small;  /* [words] linked ones of other trees: see pli_forest_split; before, rows for later */
} pli_forest;

/** Each of n vertices a tree of its own. What there is must be destroyed after a failure, too. Errors: ENOMEM. */
plait_status pli_forest_make(pli_forest *f, pli_pool *pool, int64_t n, plait_error *err);
void         pli_forest_destroy(pli_forest *f);
/** Joins the ends of all edges of the rows first .. last - 1. Called once, also where there is none. */
void pli_forest_join_rows(pli_forest *f, const pli_neighbors *rows, int64_t first, int64_t last);
/** Joins two vertices. */
void pli_forest_join(pli_forest *f, uint32_t u, uint32_t v);
/** Completes great, whose first vertex is its root from now on, and finds small. */
void pli_forest_split(pli_forest *f);
/** Makes great's vertices such of any other tree: small has them then. */
void pli_forest_forget_great(pli_forest *f);

static inline uint32_t pli_forest_parent(const pli_forest *f, uint32_t v) {
    return v - atomic_load_explicit(&f->up[v], memory_order_relaxed);
}
static inline uint32_t pli_forest_root(const pli_forest *f, uint32_t v) {
    uint32_t at = pli_forest_parent(f, v), above = pli_forest_parent(f, at);
    for (; above != at; above = pli_forest_parent(f, at)) at = above;
    return at;
}

#endif
