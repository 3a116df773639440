/* graph/edge.h - what all channels ask of the edges of a cut, and of what travels along them (plait_channel). */
#ifndef PLI_GRAPH_EDGE_H
#define PLI_GRAPH_EDGE_H

#include <plait/session.h>

#include <stdbool.h>
#include <string.h>

/** Is it the same edge of the graph? The micro-batch does not count. */
static inline bool pli_edge_is(const plait_edge *a, const plait_edge *b) {
    return a->value == b->value && a->from == b->from && a->to == b->to && a->replica == b->replica;
}

/** Has a tensor that was sent the type and shape that its reader expects? */
static inline bool pli_edge_fits(const plait_tensor *sent, const plait_tensor *like) {
    return sent->type == like->type && sent->shape.rank == like->shape.rank &&
           memcmp(sent->shape.dim, like->shape.dim, (size_t)like->shape.rank * sizeof *like->shape.dim) == 0;
}

#endif
