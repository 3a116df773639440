/* graph/subgraph.h - named sets of a graph's nodes, and which of them a session leaves out or trains. */
#ifndef PLI_GRAPH_SUBGRAPH_H
#define PLI_GRAPH_SUBGRAPH_H

#include "graph/graph.h"

struct pli_subgraph {
    const char *name; /* in the graph's arena */
    int32_t    *node; /* [n] */
    int64_t     n;
};

/* Subgraphs that a session has chosen; the lists have an entry for each that the graph had then. */
typedef struct pli_choice {
    bool   *exclude, *train; /* NULL: none is chosen, so nothing is left out, and all variables are trained */
    int64_t n;
} pli_choice;

/** Reads lists of names, separated by commas; NULL: none. Errors: ENAME an unknown name (the nearest is named); EINVAL
 *  a name stands in both lists, or no variable lies in what is to be trained; ENOMEM. */
plait_status pli_choice_read(const plait_graph *graph, const char *exclude, const char *train, pli_choice *choice_out,
                             plait_error *err);
void         pli_choice_free(pli_choice *choice);
static inline bool pli_choice_any(const pli_choice *choice) { return choice->exclude != NULL || choice->train != NULL; }
/** Sets excluded [values of the graph] for the values that a run must not compute. Errors: ENOMEM. */
plait_status pli_choice_mark(const pli_choice *choice, const plait_graph *graph, bool *excluded, plait_error *err);

#endif
