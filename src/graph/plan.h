/* graph/plan.h - a plan: what a run of some fetches from some feeds has to do, with all shapes known.
 *
 * It is a copy of the needed part of the graph: nodes in an order in which they can run, their values numbered anew, a
 * place for each value, and the *tasks* that threads take. The graph is never changed by it. A plan is made once for a
 * set of feeds, shapes and fetches (the key) and then only read; what a run writes is in an *instance*, of which there
 * are as many as runs at once.
 *
 *     plan.c       the key; the order in which a plan is made
 *     copy.c       the needed part of the graph
 *     passes/      what makes it smaller or faster, and the same values
 *     order.c      the order of the nodes, and of the store's calls among them
 *     tasks.c      what threads take
 *     instance.c   the memory of a run
 *     run.c        a run: node after node
 *     crew.c       a run by several threads, which take tasks */
#ifndef PLI_GRAPH_PLAN_H
#define PLI_GRAPH_PLAN_H

#include <plait/session.h>

#include "graph/graph.h"
#include "graph/kernel_set.h"
#include "graph/map.h"

typedef enum pli_place {
    PLI_PLACE_NONE,     /* not computed: its shape alone is needed    */
    PLI_PLACE_MEMORY,   /* in an instance's block, at offset          */
    PLI_PLACE_FEED,     /* the caller's: feed `number`                */
    PLI_PLACE_CONSTANT, /* t.data                                     */
    PLI_PLACE_VARIABLE, /* borrowed from the store: variable `number` */
    PLI_PLACE_VIEW      /* where the value `number` of the plan lies  */
} pli_place;

typedef struct pli_plan_value {
    plait_tensor t;      /* type, shape; data: of a constant                     */
    plait_value  origin; /* in the graph                                         */
    pli_place    place;
    int32_t      number;
    int32_t      node; /* of the plan, that makes it; -1: none                 */
    size_t       offset;
    int32_t      patch, n_patches; /* of a feed or variable: in plan->patch      */
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
    pli_region_fn      *region; /* the kernel's; NULL: it does not say              */
    pli_map            *map;    /* PLI_WORK_MAP; with PLI_WORK_KERNEL: its epilogue */
    int64_t             items;
    plait_value         origin;        /* output 0 in the graph                            */
    int32_t             input, n_in;   /* the first in plan->input                         */
    int32_t             output, n_out; /* the first in plan->value, the rest behind it     */
    int32_t             variable;      /* of a node of the store                           */
    pli_work            work;
    int32_t             kernel_in, raw; /* epilogue: inputs of the kernel, and the output that it fills first */
    const plait_op    **member;         /* of a fused node: [n_members] what it is made of  */
    int32_t             n_members;
    double              cost_ns; /* a guess                                          */
} pli_plan_node;

/* What threads take: nodes [first, end), one after the other; or one node whose items several threads share. */
typedef struct pli_task {
    int32_t first, end;
    int32_t next, n_next; /* tasks that wait for it: in plan->next_task */
    int32_t waits;        /* for how many                               */
    bool    caller;       /* nodes of the store                         */
    bool    shared;
} pli_task;

/* `node` runs after `before` has, though it reads nothing of it: it writes where `before` read, or incs what it
 * gets. */
typedef struct pli_after {
    int32_t node, before;
} pli_after;

/* What a plan is found by. */
typedef struct pli_plan_key {
    const plait_feed  *feeds;
    const plait_fetch *fetches;
    const plait_value *exclude;
    int32_t            n_feeds, n_fetches, n_exclude;
} pli_plan_key;

/* The memory of one run. */
typedef struct pli_instance {
    struct pli_instance *next; /* of those that are free                        */
    unsigned char       *block;
    plait_tensor        *value;   /* [n_values]                                    */
    plait_tensor        *in;      /* [n_inputs]                                    */
    const void         **lane;    /* [n_inputs] the data of in                     */
    void               **state;   /* [n_nodes], of kernels                         */
    unsigned char       *scratch; /* scratch_bytes a thread                      */
    struct pli_crew     *crew;    /* what threads share during a run (run.c)       */
    int64_t              run;     /* its number in the session, from 1 on          */
} pli_instance;

typedef struct pli_plan {
    struct pli_plan   *next; /* of the session's plans */
    const plait_graph *graph;
    uint64_t           hash;
    pli_plan_key       key; /* a copy */
    pli_plan_node     *node;
    int32_t           *input; /* values */
    pli_plan_value    *value;
    int32_t           *fetch; /* [n_fetches] a value; -1: nothing to hand out */
    pli_task          *task;
    int32_t           *next_task;
    pli_after         *after;
    int32_t           *patch;  /* an input, or ~ a value that is a view */
    int32_t           *fed;    /* values that are feeds */
    int32_t              *expect; /* variables that are got, in the order of first need ...        */
    int32_t              *push;   /* ... and behind them in the same array of each inc the variable */
    const char       **text;   /* [n_nodes] what a trace calls them; NULL: nobody traces */
    int64_t               n_nodes, n_inputs, n_values, n_tasks, n_next_tasks, n_after, n_patches, n_expect, n_push;
    int64_t            node_capacity, input_capacity, value_capacity, task_capacity, next_task_capacity, after_capacity;
    size_t             block_bytes, scratch_bytes;
    double             cost_ns, grain_ns;
    int32_t            n_fed;
    bool               incs;
    int32_t            threads; /* that run it; 1: there are no tasks */
    const pli_kernel_set *kernels; /* of a module; NULL: there is none */
    pli_arena          arena;
    pli_arena          work; /* for who makes the plan: gone when it is made */
    pli_instance      *free; /* guarded by the session's lock ... */
    int32_t            runs; /* ... and how many run it now       */
} pli_plan;

/* How plans of a session are made. */
typedef struct pli_plan_opts {
    uint32_t           passes; /* bit k: pass k of passes/passes.h */
    int32_t            threads;
    const char        *dump;
    bool               texts;    /* for a trace */
    double             grain_ns; /* work that is worth a thread's while */
    const pli_kernel_set *kernels;  /* of a module, tried first; NULL: none */
} pli_plan_opts;

uint64_t     pli_plan_hash(const pli_plan_key *key);
bool         pli_plan_is_for(const pli_plan *plan, uint64_t hash, const pli_plan_key *key);
plait_status pli_plan_create(const plait_graph *graph, const pli_plan_key *key, const pli_plan_opts *opts,
                             pli_plan **plan_out, plait_error *err);
void         pli_plan_destroy(pli_plan **plan);

/* --- the parts of making a plan -------------------------------------------------------------------------------- */

plait_status pli_plan_copy(pli_plan *plan, plait_error *err);
/** Nodes that nothing needs are gone; each comes after what it needs; gets just before the first need, incs as soon as
 *  may be. */
plait_status pli_plan_order(pli_plan *plan, plait_error *err);
/** Kernels for nodes that have none. */
plait_status pli_plan_choose(pli_plan *plan, plait_error *err);
plait_status pli_plan_choose_node(pli_plan *plan, pli_plan_node *node, plait_error *err);
plait_status pli_plan_tasks(pli_plan *plan, plait_error *err);
/** false: no memory. */
bool    pli_plan_after(pli_plan *plan, int32_t node, int32_t before);
int32_t pli_plan_add_value(pli_plan *plan, plait_value origin, plait_tensor t, pli_place place,
                           int32_t number); /* -1: no memory */
/** Or needs the shape of input i alone. */
static inline bool pli_plan_reads(const pli_plan_node *n, int32_t i) {
    return i >= 32 || (n->op->shape_only >> i & 1) == 0;
}
plait_status pli_plan_no_memory(plait_error *err);

/* --- instances ------------------------------------------------------------------------------------------------- */

plait_status pli_instance_create(const pli_plan *plan, int32_t threads, pli_instance **instance_out, plait_error *err);
void         pli_instance_destroy(const pli_plan *plan, pli_instance **instance);
/** Says where a feed, or what the store lent, lies. */
void pli_instance_bind(const pli_plan *plan, pli_instance *instance, int64_t value, void *data);
/** The call of a kernel, on a thread that has scratch memory of its own. */
plait_call pli_plan_call(const pli_plan *plan, const pli_instance *instance, int64_t k, int32_t thread,
                         plait_error *err);
void      *pli_plan_scratch(const pli_plan *plan, const pli_instance *instance, int32_t thread);

static inline size_t pli_tensor_bytes(const plait_tensor *t) {
    return (size_t)plait_shape_elements(&t->shape) * plait_type_bytes(t->type);
}
/** What a value takes in an instance's block: whole cache lines. */
static inline size_t pli_place_bytes(const plait_tensor *t) { return (pli_tensor_bytes(t) + 63) & ~(size_t)63; }

#endif
