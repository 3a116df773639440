/* graph/paths.h - the path table of a target: how the target depends on each value before it.
 *
 * For a target y the table has, for every vertex v (a value), the summed gradient dy/dv, and for every edge e (a place
 * in graph->input: one use of v by one node) the partial that this use contributes. grad[v] is the sum of partial[e]
 * over the edges that leave v. A backward path from y to x is a chain of edges whose partials are there. One sweep over
 * the nodes before y, the last first, fills the table, so its cost is linear in edges; afterwards dy/dx is a look-up
 * for any x, and the paths can be listed without differentiating again. A graph only grows, so a table stays true for
 * ever.
 *
 * The sweep is reverse accumulation (Linnainmaa 1970; Griewank and Walther, "Evaluating Derivatives", 2008, chapter 3);
 * it adds the symbolic gradient to the graph as more nodes. */
#ifndef PLI_GRAPH_PATHS_H
#define PLI_GRAPH_PATHS_H

#include "graph/graph.h"

struct pli_paths {
    plait_value  target;
    int32_t      n_values; /* the vertices: values 0 .. target                     */
    int32_t      n_edges;  /* the edges: inputs of nodes up to the target's        */
    plait_value *grad;     /* [n_values]; PLAIT_NONE: zero                         */
    plait_value *partial;  /* [n_edges]; PLAIT_NONE: zero                          */
    int32_t     *head;     /* [n_values] first edge that leaves a vertex, or -1 ... */
    int32_t     *next;     /* [n_edges] ... and the vertex's next edge             */
    int32_t     *user;     /* [n_edges] the node that an edge enters               */
};

/** The table of a target, which is made if there is none yet. NULL: the graph has failed (pli_graph_failed). */
pli_paths *pli_paths_of(plait_graph *graph, plait_value target);
void       pli_paths_destroy(pli_paths **paths);

#endif
