/* cli/graph_run.h - `plait graph run`: a vertex program over a file of edges.
 *
 *     graph.c          the command and its options
 *     graph_run.c      the run: reads the graph, cuts it, runs the program on every worker
 *     graph_effects.c  notes options without effect
 *     graph_stop.c     signals and checkpoints; who has died
 *     graph_put.c      what is written: TSV or a NumPy array, and the summary */
#ifndef PLI_CLI_GRAPH_RUN_H
#define PLI_CLI_GRAPH_RUN_H

#include "cli/cli.h"
#include "vertex/vertex.h"

typedef struct pli_graph_run {
    int          argc; /* the words behind `plait graph` */
    char *const *argv;
    const pli_opts *opts; /* which options were given */
    const char   *program; /* the word behind `run` */
    pli_text_list files; /* --data: one */
    const char *data, *format, *partition, *transport, *topology, *consistency, *reduce, *engine, *scope, *order,
        *source, *events, *features, *split, *priors, *messages, *checkpoint, *resume;
    int64_t  checkpoint_every; /* supersteps; 0: only when interrupted */
    bool     undirected, drop_loops, drop_doubles, quiet;
    int64_t  workers, threads, supersteps, replicas, components;
    double   damping, tolerance, smoothing, l2;
    uint64_t timeout_ns;
    /* as with `graph place` */
    const char *cluster, *out;
    int64_t     seed;
    bool        json;
} pli_graph_run;

/* What came out, on the process of the lowest worker. */
typedef struct pli_graph_result {
    const pli_graph_run    *set;
    const pli_vertex_named *named;
    plait_type              type;
    const plait_edges      *edges;
    const pli_vertex_choice *choice;
    const plait_vertex_cut *cut;
    int32_t                 values, shown; /* numbers of a vertex; those that are the result, the first ones */
    int64_t                *value; /* [vertices, values] of any type, by their bits */
    plait_vertex_report     report;
    int32_t                 workers;
    const char             *transport, *topology, *consistency;
    double                  load_s, run_s, virtual_s; /* virtual_s below 0: not simulated */
    double                  idle; /* the share of the workers' time in the run spent waiting for others */
    uint64_t                bytes_sent;
    plait_simulated         simulated; /* if it was */
    const struct pli_lost  *lost; /* the ranks without which it has gone on */
} pli_graph_result;

/** Runs it, and returns the exit code. */
int pli_graph_run_program(const pli_graph_run *set);
/** Writes values to --out or standard output, and the summary. */
plait_status pli_graph_put(const pli_graph_result *r, plait_error *err);

#endif
