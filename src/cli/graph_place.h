/* cli/graph_place.h - what `plait graph place` is made of.
 *
 *     graph.c        the command: options, output
 *     graph_step.c   the step that is placed: feeds, fetches, gradients; the ranks of a cluster file
 *     graph_out.c    the placed graph as a file */
#ifndef PLI_CLI_GRAPH_PLACE_H
#define PLI_CLI_GRAPH_PLACE_H

#include <plait/graph_file.h>
#include <plait/place.h>

#include "base/base.h"
#include "base/opts.h"

typedef struct pli_place_settings {
    const char   *place, *cluster, *out, *optimizer;
    int64_t       ranks, batch, length, micro_batches, memory, seed;
    bool          forward, json;
    pli_text_list fetch, together, apart, forbid;
    const char   *file; /* the graph */
} pli_place_settings;

/** Loads the graph and what belongs to its placement over `ranks` ranks: the file of --place, rules, memory. */
plait_status pli_place_graph(const pli_place_settings *set, int32_t ranks, plait_graph **graph_out, plait_error *err);
/** The method that --place names; NULL: it names a file. */
const char *pli_place_method(const pli_place_settings *set);

/* A step of the graph over ranks, as plait_placement_create takes it. */
typedef struct pli_place_step {
    plait_graph     *graph;
    plait_place_opts opts;
    plait_feed      *feed;
    plait_value     *fetch;
    double          *speed, *latency, *bandwidth;
    int64_t          own_nodes; /* the graph's; what follows computes gradients */
} pli_place_step;

/** Reads the cluster, loads the graph and adds the backward pass. The caller frees the step, also after an error. */
plait_status pli_place_step_make(const pli_place_settings *set, pli_place_step *step, plait_error *err);
void         pli_place_step_free(pli_place_step *step);

/** Writes the graph of --out: the file's, with the rank of every node that has one. rank [nodes of the graph]. */
plait_status pli_place_write(const pli_place_settings *set, int32_t ranks, const int32_t *rank, plait_error *err);

#endif
