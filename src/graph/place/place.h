/* graph/place/place.h - how a placement is found.
 *
 *     hand.c      places and rules by hand
 *     load.c      the graph as nodes with times, values with bytes, and units
 *     simulate.c  a step on the ranks: time by a list scheduler
 *     follow.c    the same in the order of a pipeline's schedule; judge.h is what the two share
 *     memory.c    bytes by rank
 *     start.c     placements to begin with: one rank, chain cut, HEFT
 *     multilevel.c  and by METIS, from the module that cutter.h describes
 *     refine.c    moves of units that shorten the simulated step
 *     place.c     the public calls */
#ifndef PLI_GRAPH_PLACE_PLACE_H
#define PLI_GRAPH_PLACE_PLACE_H

#include <plait/place.h>

#include "graph/plan.h"

enum { PLI_PLACE_RANKS_MAX = 4096 };

/** Reads "rank:1/cpu:0" or "rank:1". Errors: EINVAL another form; ENAME another device. */
plait_status pli_place_parse(const char *where, int32_t *rank_out, plait_error *err);

/* A graph to place: a plan's nodes and values, without what does not matter here. */
typedef struct pli_placing {
    const plait_place_opts *opts;
    pli_arena               arena;
    int32_t                 nodes, values, units;
    int32_t                 parts;      /* ranks, or chunks times as many: part p lies on rank p % ranks           */
    bool                   *late;       /* [nodes] of a gradient, or behind one: a piece of the backward pass      */
    int32_t                *fed;        /* [n_fed] values that are fed; only a schedule has them come from part 0  */
    int32_t                 n_fed;
    double                 *ns;         /* [nodes] at speed 1                                                    */
    double                 *operations; /* [nodes]                                                               */
    double                 *up;         /* [nodes] the longest way to the end, in ns                              */
    int32_t                *unit;       /* [nodes]                                                               */
    int32_t                *inputs;     /* [nodes] values that it waits for                                      */
    int32_t                *out, *outs; /* [nodes] its values: out .. out + outs - 1 (in order of nodes)           */
    double                 *bytes;      /* [values] */
    bool                   *kept;       /* [values] fetched: alive to the end of the step                          */
    int32_t                *reader;     /* readers of value v: reader[first[v]] .. reader[first[v + 1] - 1]          */
    int32_t                *first;      /* [values + 1] */
    double                 *held;       /* [units] bytes of variables with their state */
    double                 *load_ns;    /* [units] */
    int32_t                *pin;        /* [units] the part it must be in; -1: any */
    bool                   *never;      /* [units * ranks] */
    int32_t                *apart;      /* [2 n_apart] pairs of units on two ranks */
    int32_t                 n_apart;
    int32_t                *of_node;    /* [nodes of the graph] its unit; -1: none */
    int64_t                 graph_nodes;
} pli_placing;

plait_status       pli_placing_make(const plait_graph *graph, const plait_place_opts *opts, pli_placing *load_out,
                                    plait_error *err);
static inline void pli_placing_free(pli_placing *load) { pli_arena_destroy(&load->arena); }

/* What a placement comes to. share [ranks] is filled by the simulation and by memory. */
typedef struct pli_judged {
    int32_t broken; /* pairs that are to be apart, and are not; edges that lead back in what is to be a chain */
    double excess; /* bytes beyond the ranks' memory, summed */
    double seconds, sent;
} pli_judged;

typedef struct pli_judge pli_judge; /* scratch memory */
/** Makes scratch memory in load's arena; NULL: no memory. */
pli_judge *pli_judge_make(pli_placing *load);
/** Judges the placement part [units]; share [ranks] may be NULL. */
pli_judged pli_judge_run(pli_judge *judge, const int32_t *part, plait_place_share *share);
/** memory.c. Bytes by part: variables and values [parts]. few: as 1f1b runs a chain. */
typedef struct pli_memory_scratch {
    double *alive, *most, *held; /* [parts] */
    double *ends;                /* [(nodes + 1) * parts] */
} pli_memory_scratch;
void pli_place_memory(const pli_placing *load, const int32_t *part, bool few, pli_memory_scratch *s);

static inline bool pli_judged_better(const pli_judged *a, const pli_judged *b) {
    if (a->broken != b->broken) return a->broken < b->broken;
    if (a->excess != b->excess) return a->excess < b->excess;
    if (a->seconds != b->seconds) return a->seconds < b->seconds;
    return a->sent < b->sent;
}

static inline bool pli_place_allows(const pli_placing *l, int32_t unit, int32_t part) {
    return l->pin[unit] >= 0 ? l->pin[unit] == part : !l->never[unit * l->opts->ranks + part % l->opts->ranks];
}
/** Of ranks, or of the ranks of parts. */
double               pli_place_latency(const plait_place_opts *o, int32_t from, int32_t to);
double               pli_place_bandwidth(const plait_place_opts *o, int32_t from, int32_t to);
static inline double pli_place_speed(const plait_place_opts *o, int32_t rank) {
    return o->speed != NULL ? o->speed[rank % o->ranks] : 1;
}

/** start.c. Fill part [units]; false: no memory. one: all units on a rank, or on one that they are allowed on. */
void pli_start_one(const pli_placing *load, int32_t rank, int32_t *part);
/** Cuts the units, in their order, into runs for the first `stages` of the parts in order [parts]. */
bool pli_start_chain(pli_placing *load, const int32_t *order, int32_t stages, int32_t *part);
bool pli_start_heft(pli_placing *load, int32_t *part);

/** multilevel.c. Cuts the units for the first `parts` (2 or more) of the ranks in order. Errors: EMODULE; ENOMEM. */
plait_status pli_start_metis(const pli_placing *load, const int32_t *order, int32_t parts, int32_t *part,
                             plait_error *err);

/** refine.c. Moves units while that makes the step better. *budget: judgements that are left. */
void pli_refine(const pli_placing *load, pli_judge *judge, uint64_t seed, int64_t *budget, int32_t *part,
                pli_judged *judged);

#endif
