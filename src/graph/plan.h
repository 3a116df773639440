/* graph/plan.h - a plan: how a run computes some fetches from some feeds, with all shapes known.
 *
 * A plan is a copy of the needed part of the graph: nodes in an order in which they can run, their values numbered
 * anew, a place for each value, and the *tasks* that threads take. The graph itself does not change. A plan is made
 * once for a set of feeds, shapes and fetches (the key), and then only read. A run writes to an *instance*; there are
 * as many instances as runs at the same time.
 *
 *     plan.c       the key; the order in which a plan is made
 *     copy.c       the needed part of the graph
 *     cut.c        the part of it that lies here, if the graph is cut
 *     passes/      make a plan smaller or faster, with the same values
 *     order.c      the order of the nodes, and of the store's calls among them
 *     weigh.c      operations and bytes of the nodes
 *     tasks.c      the tasks that threads take
 *     instance.c   the memory of a run
 *     run.c        a run: node after node
 *     crew.c       a run by several threads, which take tasks
 *     batches.c    runs of a cut graph, several at a time */
#ifndef PLI_GRAPH_PLAN_H
#define PLI_GRAPH_PLAN_H

#include <plait/session.h>

#include "graph/graph.h"
#include "graph/kernel_set.h"
#include "graph/map.h"

typedef enum pli_place {
    PLI_PLACE_NONE,     /* not computed: only its shape is needed     */
    PLI_PLACE_MEMORY,   /* in an instance's block, at offset          */
    PLI_PLACE_FEED,     /* the caller's: feed `number`                */
    PLI_PLACE_CONSTANT, /* t.data                                     */
    PLI_PLACE_VARIABLE, /* borrowed from the store: variable `number` */
    PLI_PLACE_VIEW,     /* in the place of the plan's value `number`  */
    PLI_PLACE_RECEIVED  /* lent by the channel                        */
} pli_place;

typedef struct pli_plan_value {
    plait_tensor t;      /* type and shape; data if it is a constant              */
    plait_value  origin; /* in the graph                                         */
    pli_place    place;
    int32_t      number;
    int32_t      node; /* the plan's node that makes it; -1: none              */
    size_t       offset;
    int32_t      patch, n_patches; /* for a feed or variable: in plan->patch     */
} pli_plan_value;

typedef enum pli_work { /* how a node is done */
                        PLI_WORK_KERNEL,
                        PLI_WORK_MAP,
                        PLI_WORK_NONE, /* a view */
                        PLI_WORK_GET,
                        PLI_WORK_GET_ROWS,
                        PLI_WORK_INC,
                        PLI_WORK_INC_ROWS,
                        PLI_WORK_SEND, /* of a cut graph (cut.h) */
                        PLI_WORK_RECV
} pli_work;

/* How much work a node is. Operations take very different times: products and loops over elements fill a core's
 * vectors, convolutions also arrange their windows, pooling and scattering go to and fro in memory. */
typedef struct pli_weight {
    double taps;  /* operations of convolutions             */
    double steps; /* operations of pooling and of scattering */
    double flops; /* operations of all other ops            */
    double moved; /* bytes read and written                 */
} pli_weight;

typedef struct pli_plan_node {
    const plait_op     *op;
    const plait_attr   *attr;
    const plait_kernel *kernel;
    pli_region_fn      *region; /* of the kernel; NULL: it has none                 */
    pli_map            *map;    /* PLI_WORK_MAP; with PLI_WORK_KERNEL: its epilogue */
    int64_t             items;
    plait_value         origin;        /* output 0 in the graph                            */
    int32_t             input, n_in;   /* the first in plan->input                         */
    int32_t             output, n_out; /* the first in plan->value, the rest behind it     */
    int32_t             variable;      /* for a node that the store does                   */
    int32_t             peer;          /* of a send or receive: the other part             */
    pli_work            work;
    int32_t             kernel_in, raw; /* epilogue: inputs of the kernel, and the output that it fills first */
    const plait_op    **member;         /* [n_members] the ops of a fused node              */
    int32_t             n_members;
    double              cost_ns; /* estimated                                        */
    pli_weight          weight;  /* what a simulation charges */
} pli_plan_node;

/* A task for a thread: nodes [first, end), one after the other, or one node whose items several threads share. */
typedef struct pli_task {
    int32_t first, end;
    int32_t next, n_next; /* tasks that wait for this one: in plan->next_task */
    int32_t waits;        /* number of tasks that it waits for                */
    bool    caller;       /* for the caller alone: nodes that the store does  */
    bool    shared;
} pli_task;

/* `node` runs after `before` although it does not read its outputs: it writes where `before` reads, or changes the
 * variable that `before` gets. */
typedef struct pli_after {
    int32_t node, before;
} pli_after;

/* The key by which a plan is found. */
typedef struct pli_plan_key {
    const plait_feed  *feeds;
    const plait_fetch *fetches;
    const plait_value *exclude;
    int32_t            n_feeds, n_fetches, n_exclude;
} pli_plan_key;

/* The memory of one run. */
typedef struct pli_instance {
    struct pli_instance *next; /* in the list of free instances                 */
    unsigned char       *block;
    plait_tensor        *value;   /* [n_values]                                    */
    plait_tensor        *in;      /* [n_inputs]                                    */
    const void         **lane;    /* [n_inputs] the data of in                     */
    void               **state;   /* [n_nodes] states of kernels                   */
    unsigned char       *scratch; /* scratch_bytes for each thread                 */
    struct pli_crew     *crew;    /* what threads share during a run (run.c)       */
    int64_t              run;     /* number of the run in the session, from 1      */
    int64_t              at;      /* of a cut graph: the node that comes next      */
} pli_instance;

typedef struct pli_plan {
    struct pli_plan   *next; /* in the session's list of plans */
    const plait_graph *graph;
    uint64_t           hash;
    pli_plan_key       key; /* a copy */
    pli_plan_node     *node;
    int32_t           *input; /* values */
    pli_plan_value    *value;
    int32_t           *fetch; /* [n_fetches] a value; -1: fetched for its effect only */
    pli_task          *task;
    int32_t           *next_task;
    pli_after         *after;
    int32_t           *patch;  /* the number of an input, or ~ the number of a value that is a view */
    int32_t           *fed;    /* values that are feeds */
    int32_t              *expect; /* variables that are got, in the order of their first use ...   */
    int32_t              *push;   /* ... followed in the same array by the variable of each inc    */
    const char       **text;   /* [n_nodes] their names in traces; NULL: there is no trace */
    int64_t               n_nodes, n_inputs, n_values, n_tasks, n_next_tasks, n_after, n_patches, n_expect, n_push;
    int64_t            node_capacity, input_capacity, value_capacity, task_capacity, next_task_capacity, after_capacity;
    size_t             block_bytes, scratch_bytes;
    double             cost_ns, grain_ns;
    int32_t            n_fed;
    bool               incs;
    int32_t            threads; /* number of threads; 1: there are no tasks */
    const pli_kernel_set *kernels; /* of a module; NULL: none */
    const plait_cut   *cut;        /* NULL: the plan is of the whole graph */
    const struct pli_choice *choice; /* as in the options */
    int64_t            turn;       /* of a cut graph: the first node of the backward pass */
    const uint8_t     *late;       /* ... [graph nodes] 1: it belongs to the backward pass; while the plan is made */
    pli_arena          arena;
    pli_arena          work; /* used while the plan is made, then freed */
    pli_instance      *free; /* guarded by the session's lock ...       */
    int32_t            runs; /* ... like the number of present runs     */
} pli_plan;

/* How a session's plans are made. */
typedef struct pli_plan_opts {
    uint32_t           passes; /* bit k: pass k of passes/passes.h */
    int32_t            threads;
    const char        *dump;
    bool               texts;    /* 1: names for traces are made */
    double             grain_ns; /* the least work for which another thread is used */
    const pli_kernel_set *kernels;  /* of a module, tried first; NULL: none */
    const plait_cut   *cut;      /* NULL: plans are of the whole graph */
    const struct pli_choice *choice; /* subgraphs to leave out or to train; NULL: none */
} pli_plan_opts;

uint64_t     pli_plan_hash(const pli_plan_key *key);
bool         pli_plan_is_for(const pli_plan *plan, uint64_t hash, const pli_plan_key *key);
plait_status pli_plan_create(const plait_graph *graph, const pli_plan_key *key, const pli_plan_opts *opts,
                             pli_plan **plan_out, plait_error *err);
void         pli_plan_destroy(pli_plan **plan);

/* --- the parts of making a plan -------------------------------------------------------------------------------- */

plait_status pli_plan_copy(pli_plan *plan, plait_error *err);
/** Orders the nodes: drops those that nothing needs; each comes after its inputs, gets just before their first use,
 *  incs as early as possible. */
plait_status pli_plan_order(pli_plan *plan, plait_error *err);
/** Chooses kernels for nodes that have none. */
plait_status pli_plan_choose(pli_plan *plan, plait_error *err);
plait_status pli_plan_choose_node(pli_plan *plan, pli_plan_node *node, plait_error *err);
plait_status pli_plan_tasks(pli_plan *plan, plait_error *err);
/** Counts the operations and bytes of each node (weigh.c). */
plait_status pli_plan_weigh(pli_plan *plan, plait_error *err);
/** Is the node an inc? Its bytes count where those of several micro-batches are added up (gather.h). */
bool         pli_plan_adds_up(const pli_plan_node *node);
/** Makes `node` run after `before` (pli_after). false: no memory. */
bool    pli_plan_after(pli_plan *plan, int32_t node, int32_t before);
int32_t pli_plan_add_value(pli_plan *plan, plait_value origin, plait_tensor t, pli_place place,
                           int32_t number); /* -1: no memory */
/** true: the node reads the values of input i; false: it needs only the shape. */
static inline bool pli_plan_reads(const pli_plan_node *n, int32_t i) {
    return i >= 32 || (n->op->shape_only >> i & 1) == 0;
}
plait_status pli_plan_no_memory(plait_error *err);

/* --- instances ------------------------------------------------------------------------------------------------- */

plait_status pli_instance_create(const pli_plan *plan, int32_t threads, pli_instance **instance_out, plait_error *err);
void         pli_instance_destroy(const pli_plan *plan, pli_instance **instance);
/** Sets where a feed, or a value borrowed from the store, lies. */
void pli_instance_bind(const pli_plan *plan, pli_instance *instance, int64_t value, void *data);
/** The call for the kernel of node k, with the scratch memory of this thread. */
plait_call pli_plan_call(const pli_plan *plan, const pli_instance *instance, int64_t k, int32_t thread,
                         plait_error *err);
void      *pli_plan_scratch(const pli_plan *plan, const pli_instance *instance, int32_t thread);

static inline size_t pli_tensor_bytes(const plait_tensor *t) {
    return (size_t)plait_shape_elements(&t->shape) * plait_type_bytes(t->type);
}
/** Bytes of a value in an instance's block: whole cache lines. */
static inline size_t pli_place_bytes(const plait_tensor *t) { return (pli_tensor_bytes(t) + 63) & ~(size_t)63; }

#endif
