/* plait/place.h - which rank computes which node of a graph.
 *
 * A *placement* gives each node of a graph a rank. Nodes that belong together are placed as one *unit*: a forward node
 * with the nodes of its gradient, a variable with the nodes that get and inc it and with its first reader, a view with
 * what it shows. A placement is judged by simulated time: each rank computes one node at a time, at its speed, of those
 * that are ready the one with the longest way to the end; a value that another rank reads is sent there once. A rank's
 * memory is that of its variables, their optimiser state and the values that are alive at the same time, those kept for
 * the backward pass included; it is an upper bound, since values are not computed in place.
 * With a schedule, ranks follow the order of that pipeline instead, as plait_session_run_batches does.
 *
 *     plait_graph_place(g, scores, "rank:1/cpu:0");         // by hand; "auto" places the others
 *     plait_placement_create(g, &opts, &placement, &err);
 *     const int32_t *rank = plait_placement_parts(placement);
 *
 * Papers: Mirhoseini et al., "Device Placement Optimization with Reinforcement Learning", ICML 2017 (the problem);
 * Topcuoglu et al., "Performance-Effective and Low-Complexity Task Scheduling", TPDS 2002 (HEFT's choice of a rank);
 * Fiduccia and Mattheyses, DAC 1982 (moves of single units); Jia et al., "Beyond Data and Model Parallelism",
 * MLSys 2019 (FlexFlow: simulation as the judge).
 * Threads: as plait/graph.h; a placement itself never changes, so any thread may read it. Not collective. */
#ifndef PLAIT_PLACE_H
#define PLAIT_PLACE_H

#include <plait/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Places a value's node, and its unit, by hand: where is "rank:1/cpu:0", or "rank:1" for short. Returns value. The
 *  graph fails (plait_graph_check) with EINVAL if `where` has another form, and with ENAME if it names a device other
 *  than cpu:0, the only one that there is. plait_placement_create reads it, and a plait_cut without places of its own.
 */
PLAIT_API plait_value plait_graph_place(plait_graph *graph, plait_value value, const char *where);
/** The rank that plait_graph_place gave a value's node; -1: none. */
PLAIT_API int32_t plait_graph_placed(const plait_graph *graph, plait_value value);

typedef enum plait_place_rule_kind {
    PLAIT_PLACE_TOGETHER, /* the nodes of a and b on one rank      */
    PLAIT_PLACE_NEVER,    /* the node of a never on rank `rank`    */
    PLAIT_PLACE_APART     /* the nodes of a and b on two ranks     */
} plait_place_rule_kind;

typedef struct plait_place_rule {
    plait_place_rule_kind kind;
    plait_value           a, b;
    int32_t               rank;
} plait_place_rule;

/** Keeps a rule with the graph: plait_placement_create obeys it beside those of its options, and plait_graph_save
 *  writes it. A rule for a rank that a placement does not have says nothing. Errors: EINVAL the rule names no value of
 *  the graph, or a rank below 0; ENOMEM. */
PLAIT_API plait_status plait_graph_place_rule(plait_graph *graph, const plait_place_rule *rule, plait_error *error_out);
/** Keeps with the graph how many bytes a rank may use, for placements whose options have no memory_bytes. 0: no bound.
 *  Errors: EINVAL rank is not in [0, 4096); ENOMEM. */
PLAIT_API plait_status plait_graph_place_memory(plait_graph *graph, int32_t rank, uint64_t bytes,
                                                plait_error *error_out);
/** Reads places and rules from the file at path into the graph: the object that graph files have under "place"
 *  (docs/placement.md), alone or in a graph's file. Nodes that the file does not name keep their place.
 *  Errors: EIO; EFORMAT; ENAME a node that the graph does not have (the nearest is named), or a device other than
 *  cpu:0; ENOMEM. After an error the graph is as it was. */
PLAIT_API plait_status plait_graph_place_file(plait_graph *graph, const char *path, plait_error *error_out);

typedef struct plait_place_opts {
    size_t          size;                  /* set by plait_place_opts_init                                   */
    int32_t         ranks;                 /* >= 1                                                           */
    const double   *speed;                 /* [ranks] relative to the costs below; NULL: 1                   */
    const uint64_t *memory_bytes;          /* [ranks] that a rank may use; NULL: the graph's, or no bound    */
    const double   *latency_s;             /* [ranks * ranks] from row to column; NULL: 20 us                */
    const double   *bandwidth;             /* [ranks * ranks] bytes a second; NULL: 1.25e9                   */
    double          flop_ns, tap_ns, step_ns, moved_ns, node_ns; /* costs, as docs/simulation.md has them    */
    double          message_ns;            /* paid by each side of a message                                 */
    const plait_feed *feeds;               /* [n_feeds] shapes of one micro-batch; data is not read          */
    int32_t           n_feeds;
    const plait_value *fetches;            /* [n_fetches] what a step computes                               */
    int32_t            n_fetches;
    int32_t micro_batches;                 /* of a step, one after the other; 1                              */
    int32_t state_values;                  /* values of optimiser state for each value of a variable (adam: 2) */
    const plait_place_rule *rules;         /* [n_rules] */
    int32_t                 n_rules;
    const char    *method;                 /* "auto": the best of the others, refined; "chain": contiguous runs of units
                                              by dynamic programming; "heft"; "metis": as auto, and from METIS'
                                              cuts too; "given": `given` as it is, whatever places
                                              and rules the graph keeps                      */
    const int32_t *given;                  /* [nodes of the graph] a part each, for "given"; "auto" and "metis"
                                              begin with it too, and end with nothing slower                 */
    uint64_t       seed;                   /* of the order of moves                                          */
    /* in which order micro-batches go through the parts */
    const char *schedule;                  /* "gpipe", "1f1b", "interleaved", as plait_session_run_batches runs them:
                                              rows come in on part 0, and each rank follows its own list; parts that
                                              are no chain are judged as under gpipe, which alone can run them. NULL: a
                                              rank takes what is ready                                       */
    int32_t chunks;                        /* parts of a rank, for interleaved; 1. There are ranks * chunks parts, and
                                              part p lies on rank p % ranks                                  */
    int32_t chain;                         /* 1: parts must be a chain: none reads in the forward pass what a later
                                              one makes                                                      */
    double  byte_ns;                       /* paid by each side for each byte of a message, with a schedule  */
} plait_place_opts;

/** One rank, the costs of docs/simulation.md, "auto". opts NULL: nothing is done. */
PLAIT_API void plait_place_opts_init(plait_place_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_place_opts_init_sized(plait_place_opts *opts, size_t size);
#define plait_place_opts_init(opts) plait_place_opts_init_sized(opts, sizeof(plait_place_opts))

typedef struct plait_placement plait_placement;

/** Places a graph. The same graph, options and seed give the same placement.
 *  Errors: EINVAL an option is out of range, or nodes of one unit are placed on two ranks by hand (both are named);
 *  EMODULE metis is not installed; ENAME unknown method (the nearest is named); EREFUSED no placement was found that
 *  keeps what is to be apart on two ranks, or none that the ranks' memory holds: the text has the bytes needed by rank,
 *  of the best one found; ESHAPE, ENOMEM; what a plan of the fetches fails with.
 *  Nothing of the graph is computed or allocated. */
PLAIT_API plait_status plait_placement_create(const plait_graph *graph, const plait_place_opts *opts,
                                              plait_placement **placement_out, plait_error *error_out);
PLAIT_API void         plait_placement_destroy(plait_placement **placement); /* *placement may be NULL */

/** The rank of each node of the graph (its part, with several a rank), by its number [plait_graph_nodes when it was
 *  placed]; valid as long as the placement. Nodes that no fetch needs are placed like others, at no cost. NULL:
 *  NULL. */
PLAIT_API const int32_t *plait_placement_parts(const plait_placement *placement);
/** Simulated seconds of a step; NULL: 0. */
PLAIT_API double plait_placement_seconds(const plait_placement *placement);

/* What a rank has to do in a step. */
typedef struct plait_place_share {
    int32_t nodes;
    double  operations;       /* flops, taps and steps together                                   */
    double  variable_bytes;   /* of variables and their optimiser state                           */
    double  activation_bytes; /* of values alive at the same time, at most                        */
    double  sent_bytes;       /* to other ranks                                                   */
    double  busy_s, idle_s;   /* idle: bubbles, from the step's beginning to its end              */
} plait_place_share;
/** Errors: EINVAL there is no such rank. */
PLAIT_API plait_status plait_placement_share(const plait_placement *placement, int32_t rank,
                                             plait_place_share *share_out, plait_error *error_out);

#ifdef __cplusplus
}
#endif
#endif
