/* graph/plan.h - a plan: what a run of some fetches from some feeds has to do, with all shapes known.
 *
 * It is a copy of the needed part of the graph: nodes in an order in which they can run, their values numbered anew, and a
 * place for each value. The graph is never changed by it. A plan is made once for a set of feeds, shapes and fetches (the
 * key) and then only read; what a run writes is in an *instance*, of which there are as many as runs at once. */
#ifndef PLI_GRAPH_PLAN_H
#define PLI_GRAPH_PLAN_H

#include <plait/session.h>

#include "graph/graph.h"
#include "graph/map.h"

typedef enum pli_place {
    PLI_PLACE_NONE,     /* not computed: its shape alone is needed      */
    PLI_PLACE_MEMORY,   /* in an instance's block, at offset            */
    PLI_PLACE_FEED,     /* the caller's: feed `number`                  */
    PLI_PLACE_CONSTANT, /* t.data                                       */
    PLI_PLACE_VARIABLE, /* borrowed from the store: variable `number`   */
    PLI_PLACE_VIEW      /* where the value `number` of the plan lies    */
} pli_place;

typedef struct pli_plan_value {
    plait_tensor t; /* type, shape; data: of a constant              */
    plait_value  origin; /* in the graph                             */
    pli_place    place;
    int32_t      number;
    size_t       offset;
} pli_plan_value;

typedef enum pli_work { /* how a node is done */
    PLI_WORK_KERNEL,
    PLI_WORK_MAP,
    PLI_WORK_NONE, /* a view */
    PLI_WORK_GET,
    PLI_WORK_GET_ROWS,
    PLI_WORK_INC,
    PLI_WORK_INC_ROWS
} pli_work;

typedef struct pli_plan_node {
    const plait_op     *op;
    const plait_attr   *attr;
    const plait_kernel *kernel;
    pli_map            *map;     /* PLI_WORK_MAP                                  */
    int64_t             items;
    plait_value         origin;  /* output 0 in the graph                         */
    int32_t             input, n_in;   /* the first in plan->input                */
    int32_t             output, n_out; /* the first in plan->value, the rest behind it */
    int32_t             variable; /* of a node of the store                       */
    pli_work            work;
} pli_plan_node;

/* What a plan is found by. */
typedef struct pli_plan_key {
    const plait_feed  *feeds;
    const plait_fetch *fetches;
    const plait_value *exclude;
    int32_t            n_feeds, n_fetches, n_exclude;
} pli_plan_key;

/* The memory of one run. */
typedef struct pli_instance {
    struct pli_instance *next;   /* of those that are free       */
    unsigned char       *block;
    plait_tensor        *value;  /* [n_values]                   */
    plait_tensor        *in;     /* [n_inputs]                   */
    void               **state;  /* [n_nodes], of kernels        */
    unsigned char       *scratch;
} pli_instance;

typedef struct pli_plan {
    struct pli_plan   *next; /* of the session's plans */
    const plait_graph *graph;
    uint64_t           hash;
    pli_plan_key       key;  /* a copy */
    pli_plan_node     *node;
    int32_t           *input;
    pli_plan_value    *value;
    int32_t           *fetch; /* [n_fetches] a value; -1: nothing to hand out */
    int64_t            n_nodes, n_inputs, n_values;
    int64_t            node_capacity, input_capacity, value_capacity;
    size_t             block_bytes, scratch_bytes;
    bool               incs;
    pli_arena          arena;
    pli_instance      *free; /* guarded by the session's lock */
} pli_plan;

uint64_t     pli_plan_hash(const pli_plan_key *key);
bool         pli_plan_is_for(const pli_plan *plan, uint64_t hash, const pli_plan_key *key);
plait_status pli_plan_create(const plait_graph *graph, const pli_plan_key *key, pli_plan **plan_out, plait_error *err);
void         pli_plan_destroy(pli_plan **plan);

plait_status pli_instance_create(const pli_plan *plan, pli_instance **instance_out, plait_error *err);
void         pli_instance_destroy(const pli_plan *plan, pli_instance **instance);

/** The call of node k with the memory of an instance. */
plait_call pli_plan_call(const pli_plan *plan, const pli_instance *instance, int64_t k, plait_error *err);

static inline size_t pli_tensor_bytes(const plait_tensor *t) {
    return (size_t)plait_shape_elements(&t->shape) * plait_type_bytes(t->type);
}

#endif
