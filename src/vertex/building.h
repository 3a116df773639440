/* vertex/building.h - how a graph is built in two passes over its edges: by edges.c as a whole, by ingress.c the part
 * of it that a process has.
 *
 *     first pass     which ids there are; how many edges come to each and leave it
 *     numbers        each id gets a number; so each row of edges has its place
 *     second pass    edges go to their rows
 *
 * So nothing is there but the graph itself and its vertices' ids, and text may be longer than memory. */
#ifndef PLI_VERTEX_BUILDING_H
#define PLI_VERTEX_BUILDING_H

#include "base/hash.h"
#include "data/edges/edges.h"
#include "vertex/vertex.h"

typedef struct pli_building {
    plait_edges            *edges;
    const plait_edges_opts *opts;
    int32_t                 parts; /* of which one is built; 1: all of it */
    bool                    begun, both, weighted; /* both: edges go both ways */
    int64_t                 m;   /* edges of the pass */
    int64_t                 listed, promised, vertices; /* edges in the file; as in pli_edge_list */
    uint64_t                sum; /* of all edges' hashes */
} pli_building;

/** Begins an empty graph. ids: as a table by ids that are smaller would be no waste. Errors: ENOMEM. */
plait_status pli_building_begin(pli_building *b, uint64_t ids, const plait_edges_opts *opts, int32_t parts,
                                plait_error *err);
/** Takes edges of the first pass; user is the building. Errors: ENOMEM, ESHAPE. */
pli_edges_take_fn pli_building_count;
/** Are b->m edges no more than a graph has? Errors: ESHAPE. */
plait_status pli_building_is_few(const pli_building *b, plait_error *err);
/** Behind the first pass: n, m, and does that fit? The ids are still to be numbered. Errors: ENOMEM, ESHAPE. */
plait_status pli_building_number(pli_building *b, plait_error *err);
/** Is there memory for a graph of so many vertices and b->m edges? A file may promise more. Errors: ENOMEM. */
plait_status pli_building_fits(const pli_building *b, int64_t vertices, plait_error *err);
plait_status pli_building_no_memory(int64_t edges, plait_error *err);

/* Takes an edge, by numbers. false: there is no place for it. */
typedef bool pli_edge_fn(void *user, int64_t from, int64_t to, const float *weight);
/** Calls fn for each edge of a later pass, in each way that it goes. Errors: EFORMAT the file has changed. */
plait_status pli_building_each(pli_building *b, const pli_edge_list *l, pli_edge_fn *fn, void *user, plait_error *err);
/** Puts an entry to the end of what its row has. false: there is no place, since the file has changed. */
bool pli_building_place(pli_neighbors *rows, int64_t row, int64_t near, const float *weight);
/** Behind the second pass: were these the edges of the first one? Fills the graph's hash. Errors: EFORMAT. */
plait_status pli_building_filled(pli_building *b, plait_error *err);
plait_status pli_edges_take_opts(const plait_edges_opts *opts, plait_edges_opts *all, plait_error *err);

/* The sum does not depend on the order of edges: it is the same for a whole graph and for those who keep parts. */
static inline void pli_building_sum(pli_building *b, int64_t from, int64_t to, const float *weight) {
    uint32_t bits = 0;
    if (weight != NULL) memcpy(&bits, weight, sizeof bits);
    b->sum += pli_hash_u64((uint64_t)from << 32 | (uint64_t)to) ^ pli_hash_u64(bits);
}

#endif
