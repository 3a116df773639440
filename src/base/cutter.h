/* base/cutter.h - what the module plait-metis gives: it cuts a weighted graph in parts.
 *
 * graph/place/multilevel.c knows placements, vertex/metis.c knows graphs of vertices, and neither knows METIS; the
 * module knows METIS alone. */
#ifndef PLI_BASE_CUTTER_H
#define PLI_BASE_CUTTER_H

#include <stdbool.h>
#include <stdint.h>

#define PLI_CUTTER_ABI 1u

/* An undirected graph: vertex i has the neighbours to[first[i]] .. to[first[i + 1] - 1], each edge is listed at both
 * ends, and edge is its weight. weight [n * constraints] of vertices. Each sum of weights is below 2^31. */
typedef struct pli_cut_graph {
    int32_t        n, constraints;
    const int32_t *first, *to, *edge, *weight;
} pli_cut_graph;

typedef struct pli_cutter {
    uint32_t abi; /* PLI_CUTTER_ABI */
    /** Gives each vertex one of `parts` parts, 2 or more. share [parts * constraints]: each part's share of a weight,
     *  which add up to 1 by constraint. The same graph and seed give the same parts. false: no memory. */
    bool (*cut)(const pli_cut_graph *graph, int32_t parts, const float *share, uint32_t seed, int32_t *part);
} pli_cutter;

#endif
