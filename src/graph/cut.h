/* graph/cut.h - the part of a graph that a session computes, if the graph is cut over several (plait_cut).
 *
 * Each session makes its plan from the whole graph: it infers the shapes of all values, but copies only its own nodes.
 * An edge of the cut is a pair of a value and a part that reads it. The value's part gets one send for it, right after
 * the node that makes the value; the other part gets one receive. Both sides find the same edges, because both look at
 * the same graph, feeds and fetches, before any pass; and passes never drop a send or a receive.
 *
 * No cut can wait for itself: a part does its nodes in the graph's order, in which a value is made before it is used.
 * So of all nodes that are not yet done, the first in the graph's order can always go on. */
#ifndef PLI_GRAPH_CUT_H
#define PLI_GRAPH_CUT_H

#include "graph/plan.h"

/* A value and a part that reads it. */
typedef struct pli_cut_edge {
    plait_value value;
    int32_t     to;
} pli_cut_edge;

typedef struct pli_parts {
    int32_t       own;
    int32_t      *part;     /* [n_nodes] of the graph; PLI_PART_ANY: computed wherever it is needed */
    bool         *received; /* [n_values] own nodes read it, and it is made elsewhere */
    pli_cut_edge *sent;     /* [n_sent] made here and read elsewhere, by value and part */
    int64_t       n_sent, next, sent_capacity;
} pli_parts;

enum { PLI_PART_ANY = -2 };

plait_status pli_cut_check(const plait_graph *graph, const plait_cut *cut, plait_error *err);
/** Finds the part of each node (and plan->late, whether it belongs to the backward pass), and the edges. need and
 *  feed [n_values] are those of copy.c. The arrays lie in plan->work. */
plait_status pli_cut_find_parts(pli_plan *plan, const uint8_t *need, const int32_t *feed, pli_parts *parts_out,
                                plait_error *err);
/** Is the node computed in this part? */
static inline bool pli_cut_is_here(const pli_parts *parts, int64_t node) {
    return parts->part[node] == parts->own || parts->part[node] == PLI_PART_ANY;
}
/** Adds a node that receives value v, whose shape is that of the plan's value *number; *number is then its output. */
plait_status pli_cut_receive(pli_plan *plan, const pli_parts *parts, plait_value v, int32_t *number, plait_error *err);
/** Adds nodes that send value v, the plan's value `number`, to the parts that read it. Values come in their order. */
plait_status pli_cut_send(pli_plan *plan, pli_parts *parts, plait_value v, int32_t number, plait_error *err);
/** Sets plan->turn, when the nodes have their order. */
void pli_cut_find_turn(pli_plan *plan);

#endif
