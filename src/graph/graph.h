/* graph - what the files of the room share: a graph is five growing arrays.
 *
 *     node    an op, and its parts of `input`, `value` and `attr`; the list is in topological order, because inputs
 *     come
 *             before the node
 *     input   the values that go into nodes, one after the other: an *edge* of the graph is a place in this array
 *     value   the outputs of nodes: type, and a shape in `dim`
 *     dim     lengths of axes; values of equal shape may share them
 *     attr    a node's attributes, in the order of its op's specs
 *
 * Nothing is ever changed or removed, so a number stays valid for the graph's life, and what was derived from the first
 * n nodes stays true. Names, constants and the data of attributes lie in one arena. */
#ifndef PLI_GRAPH_GRAPH_H
#define PLI_GRAPH_GRAPH_H

#include <plait/place.h>

#include "base/base.h"

enum { PLI_OUTPUTS_MAX = 64 }; /* of a node */

typedef struct pli_node {
    const plait_op *op;
    int32_t         input, n_inputs;
    int32_t         value, n_values;
    int32_t         attr; /* the first of op->n_attrs in graph->attr */
    int32_t         forward; /* the node whose gradient it helps to compute; -1: it belongs to no gradient */
    int32_t         rank; /* placed by hand (plait/place.h); -1: not */
} pli_node;

typedef struct pli_value {
    int32_t node;
    int32_t dim; /* the first in graph->dim */
    int16_t rank;
    int16_t type;
} pli_value;

typedef struct pli_variable {
    const char  *name;
    plait_value  value;
    plait_tensor initial; /* data NULL: zeros */
} pli_variable;

typedef struct pli_paths pli_paths; /* paths.h */
struct pli_subgraph;                /* subgraph.h */

struct plait_graph {
    pli_node        *node;
    plait_value     *input;
    pli_value       *value;
    int64_t         *dim;
    plait_attr      *attr;
    pli_variable    *variable;
    int64_t          n_nodes, n_inputs, n_values, n_dims, n_attrs, n_variables;
    int64_t          node_capacity, input_capacity, value_capacity, dim_capacity, attr_capacity, variable_capacity;
    int32_t          forward; /* of the nodes that are added now: 1 + the number of the node that is differentiated;
                                 0: none is */
    pli_arena        arena;
    pli_keymap       by_op;   /* hash of an op's name -> its place in op                             */
    const plait_op **op;      /* Plait's own, then the program's; the list is owned, the ops are borrowed */
    pli_keymap       by_name; /* hash of a name -> its place in named                                */
    struct pli_named {
        const char *name;
        plait_value value;
    } * named;
    int64_t      n_named, named_capacity;
    struct pli_subgraph *subgraph;
    int64_t           n_subgraphs, subgraph_capacity;
    plait_place_rule *place_rule;   /* for placements (plait/place.h)                           */
    uint64_t         *place_memory; /* [n_place_memory] bytes that a rank may use; 0: no bound  */
    int64_t           n_place_rules, place_rule_capacity, n_place_memory, place_memory_capacity;
    pli_paths  **paths; /* one for each y of plait_graph_gradients */
    int64_t      n_paths, paths_capacity;
    plait_status status; /* OK, or the first failure ... */
    plait_error  error;  /* ... and its text             */
};

/** Plait's own ops; NULL ends the list (ops.c). */
const plait_op *const *pli_ops(void);
/** The op with this name; NULL: there is none. */
const plait_op *pli_op_find(const plait_graph *graph, const char *name);
/** Checks that the op's table is complete. */
plait_status pli_op_check(const plait_op *op, plait_error *err);

/** Adds a node as plait_graph_op does, for gradients and passes, which have the op itself, and its attributes
 *  [op->n_attrs] in order. */
plait_value pli_graph_node(plait_graph *graph, const plait_op *op, const plait_value *inputs, int32_t n_inputs,
                           const plait_attr *attrs);
/** Keeps the failure if it is the first; returns PLAIT_NONE. */
plait_value pli_graph_failed(plait_graph *graph, plait_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The name given to a value, or NULL. It searches all names, so use it for texts only. */
const char *pli_value_name(const plait_graph *graph, plait_value value);
/** The names of all values, [n_values], NULL for a value without one. pli_free frees the array, but not the names.
 *  NULL: no memory. */
const char **pli_value_names(const plait_graph *graph);
/** The text for a value in errors and pictures: "matmul 'h1'" or "matmul#12". */
void pli_value_text(const plait_graph *graph, plait_value value, char text[80]);
/** The same for a value whose name the caller knows; NULL: it has none. */
void pli_value_text_as(const plait_graph *graph, plait_value value, const char *name, char text[80]);
/** The name in files and pictures of a node that has none: "add_3", followed by "_" if a value has that name
 *  already. */
void pli_node_name(const plait_graph *graph, int64_t node, char text[80]);
/** "f32[?, 784]" */
void pli_shape_text(const plait_tensor *t, char text[128]);

static inline plait_tensor pli_value_tensor(const plait_graph *g, plait_value v) {
    const pli_value *value = &g->value[v];
    plait_tensor     t = { .type = (plait_type)value->type, .shape = { .rank = value->rank } };
    for (int32_t i = 0; i < value->rank; i++) t.shape.dim[i] = g->dim[value->dim + i];
    return t;
}

static inline const pli_node *pli_value_node(const plait_graph *g, plait_value v) { return &g->node[g->value[v].node]; }

static inline bool pli_type_is_float(int type) { return type == PLAIT_F32 || type == PLAIT_F64 || type == PLAIT_BF16; }

/* --- for infer ----------------------------------------------------------------------------------------- */

/** The shape that a and b broadcast to (NumPy's rule: axes from the last on, lengths equal or 1). A known length wins
 *  over an unknown one; two unknown lengths stay unknown. false: the shapes do not broadcast. */
bool pli_broadcast(const plait_shape *a, const plait_shape *b, plait_shape *out);
/** infer of an op with `map`: inputs have one type and are broadcast; the output is BOOL if the op's flags say so. */
plait_status pli_infer_map(const plait_op *op, const plait_call *call);

#endif
