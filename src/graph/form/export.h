/* graph/form/export.h - builds an ONNX model (opset 17, IR 8), and writes values of a graph as its nodes.
 *
 * Everything that is made lies in the writer's arena until the writer is destroyed. A call that fails returns "" and
 * keeps the first failure, which pli_export_save reports. Names of values are unique: a name that is taken gets a
 * number. The names for outputs count as taken from the beginning. */
#ifndef PLI_GRAPH_FORM_EXPORT_H
#define PLI_GRAPH_FORM_EXPORT_H

#include "graph/form/onnx.h"
#include "graph/graph.h"

enum { PLI_EXPORT_OPSET = 17, PLI_EXPORT_ML = 3, PLI_EXPORT_IR = 8, PLI_EXPORT_ENDS = 8 };

typedef struct pli_export {
    pli_arena        arena;
    pli_keymap       names;
    pli_onnx_node   *node;
    pli_onnx_tensor *tensor;
    pli_onnx_value   in[PLI_EXPORT_ENDS], out[PLI_EXPORT_ENDS];
    const char      *note[16];
    int64_t          n_nodes, node_capacity, n_tensors, tensor_capacity;
    int32_t          n_in, n_out, n_notes;
    int64_t          made;  /* how many names got a number */
    bool             ml;    /* a node is of the domain PLI_ONNX_ML */
    plait_error      error; /* the first failure; code OK: none yet */

    /* set by pli_export_begin */
    const plait_graph  *graph;
    const char        **value;    /* [n_values] names; NULL: not written yet */
    const plait_tensor *variable; /* [n_variables] borrowed                  */
} pli_export;

void pli_export_init(pli_export *to);
void pli_export_destroy(pli_export *to);
/** Keeps the failure if it is the first; returns "". */
const char *pli_export_fail(pli_export *to, plait_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Adds an input, or makes value an output under the name probabilities, label, scores or prediction. The caller keeps
 *  name valid. axis: the name of the first length if it is PLAIT_ANY. */
const char *pli_export_input(pli_export *to, const char *name, plait_type type, plait_shape shape, const char *axis);
void        pli_export_output(pli_export *to, const char *value, const char *name, plait_type type, bool is_text,
                              plait_shape shape, const char *axis);
void        pli_export_note(pli_export *to, const char *key, const char *text);

/** Adds an initialiser. If lent, its data is borrowed until the writer is destroyed; else it is copied. */
const char *pli_export_array(pli_export *to, const char *name, const plait_tensor *tensor, bool lent);
const char *pli_export_ints(pli_export *to, int32_t n, const int64_t *ints);
const char *pli_export_number(pli_export *to, plait_type type, double x); /* rank 0 */
const char *pli_export_texts(pli_export *to, int64_t n, const char *const *texts);

/** Adds a node with one output. in ends with NULL; attrs [n_attrs] are copied with the data that they point to. */
const char *pli_export_node(pli_export *to, const char *op, const char *const *in, const pli_onnx_attr *attrs,
                            int32_t n_attrs);
/** The same for an op of the domain PLI_ONNX_ML. */
const char *pli_export_ml_node(pli_export *to, const char *op, const char *const *in, const pli_onnx_attr *attrs,
                               int32_t n_attrs);
/** The same with n_out outputs, whose names go to names_out. */
void        pli_export_nodes(pli_export *to, const char *op, const char *const *in, const pli_onnx_attr *attrs,
                             int32_t n_attrs, int32_t n_out, const char **names_out);
const char *pli_export_1(pli_export *to, const char *op, const char *a);
const char *pli_export_2(pli_export *to, const char *op, const char *a, const char *b);
const char *pli_export_cast(pli_export *to, const char *a, plait_type type);

static inline pli_onnx_attr pli_export_int(const char *name, int64_t i) {
    return (pli_onnx_attr){ .name = name, .kind = PLI_ONNX_INT, .i = i };
}
static inline pli_onnx_attr pli_export_float(const char *name, double f) {
    return (pli_onnx_attr){ .name = name, .kind = PLI_ONNX_FLOAT, .f = (float)f };
}
static inline pli_onnx_attr pli_export_list(const char *name, int32_t n, const int64_t *ints) {
    return (pli_onnx_attr){ .name = name, .kind = PLI_ONNX_INTS, .n = n, .ints = ints };
}
static inline pli_onnx_attr pli_export_text(const char *name, const char *text) {
    return (pli_onnx_attr){ .name = name, .kind = PLI_ONNX_TEXT, .text = text };
}

/** Sets the graph whose values pli_export_value writes; variable [n_variables] has its variables' values. Both are
 *  borrowed. */
void pli_export_begin(pli_export *to, const plait_graph *graph, const plait_tensor *variable);
/** Says that value has been written already, under this name: it is an input. */
void pli_export_bind(pli_export *to, plait_value value, const char *name);
/** Writes value, and before it all that it needs, unless that is written already; returns its name. Errors: EREFUSED an
 *  op that ONNX lacks (named). */
const char *pli_export_value(pli_export *to, plait_value value);

/* One op of export_ops.c or export_layers.c. Its function sets to->value of the node's outputs. */
typedef struct pli_export_op pli_export_op;
struct pli_export_op {
    const char *name; /* of Plait's op */
    void (*fn)(pli_export *to, const pli_export_op *op, const pli_node *node);
    const char *how; /* ONNX's op, if fn serves several */
};
extern const pli_export_op pli_export_ops[], pli_export_layers[]; /* NULL-ended */

/** Fails because this output of a node that is written cannot be written. */
const char *pli_export_unwritten(pli_export *to, plait_value value);

/** Writes the file: temporary name, sync, rename. */
plait_status pli_export_save(pli_export *to, const char *path, const char *name, plait_error *err);

#endif
