/* graph/form/export.h - an ONNX model in the making (opset 17, IR 8), and values of a graph as its nodes.
 *
 * Everything that is made lies in the writer's arena until it is destroyed. A call that cannot be answers "" and keeps
 * the first failure, which pli_export_save tells. Names of values are unique: one that is taken gets a number, as
 * those of outputs are from the beginning. */
#ifndef PLI_GRAPH_FORM_EXPORT_H
#define PLI_GRAPH_FORM_EXPORT_H

#include "graph/form/onnx.h"
#include "graph/graph.h"

enum { PLI_EXPORT_OPSET = 17, PLI_EXPORT_IR = 8, PLI_EXPORT_ENDS = 8 };

typedef struct pli_export {
    pli_arena        arena;
    pli_keymap       names;
    pli_onnx_node   *node;
    pli_onnx_tensor *tensor;
    pli_onnx_value   in[PLI_EXPORT_ENDS], out[PLI_EXPORT_ENDS];
    const char      *note[16];
    int64_t          n_nodes, node_capacity, n_tensors, tensor_capacity;
    int32_t          n_in, n_out, n_notes;
    int64_t          made;  /* names that had to be told apart */
    plait_error      error; /* code OK: none yet */

    /* of pli_export_begin */
    const plait_graph  *graph;
    const char        **value;    /* [n_values] names; NULL: not written yet */
    const plait_tensor *variable; /* [n_variables] borrowed                  */
} pli_export;

void pli_export_init(pli_export *to);
void pli_export_destroy(pli_export *to);
/** Keeps the first failure; answers "". */
const char *pli_export_fail(pli_export *to, plait_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The model's input, and one of its outputs: value, under this name, which stays the caller's: probabilities, label,
 *  scores or prediction. axis: what a first length of PLAIT_ANY is called. */
const char *pli_export_input(pli_export *to, const char *name, plait_type type, plait_shape shape, const char *axis);
void        pli_export_output(pli_export *to, const char *value, const char *name, plait_type type, bool is_text,
                              plait_shape shape, const char *axis);
void        pli_export_note(pli_export *to, const char *key, const char *text);

/** An initialiser; data is borrowed until the end where lent, else copied. */
const char *pli_export_array(pli_export *to, const char *name, const plait_tensor *tensor, bool lent);
const char *pli_export_ints(pli_export *to, int32_t n, const int64_t *ints);
const char *pli_export_number(pli_export *to, plait_type type, double x); /* rank 0 */
const char *pli_export_texts(pli_export *to, int64_t n, const char *const *texts);

/** A node of one output. in ends with NULL; attrs [n_attrs] are copied, what they point to too. */
const char *pli_export_node(pli_export *to, const char *op, const char *const *in, const pli_onnx_attr *attrs,
                            int32_t n_attrs);
/** The same of n_out outputs, to names_out. */
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

/** A graph whose values will be asked for; variable [n_variables] has its variables' values. Both are borrowed. */
void pli_export_begin(pli_export *to, const plait_graph *graph, const plait_tensor *variable);
/** Value is called so already: an input. */
void pli_export_bind(pli_export *to, plait_value value, const char *name);
/** Writes what value needs and is not written yet; answers its name. Errors: EREFUSED an op that ONNX has not, named.
 *  */
const char *pli_export_value(pli_export *to, plait_value value);

/* export_ops.c, export_layers.c: one op. Sets to->value of its outputs. */
typedef struct pli_export_op pli_export_op;
struct pli_export_op {
    const char *name; /* Plait's */
    void (*fn)(pli_export *to, const pli_export_op *op, const pli_node *node);
    const char *how; /* ONNX's, where fn serves several */
};
extern const pli_export_op pli_export_ops[], pli_export_layers[]; /* NULL-ended */

/** Fails: of a node that is written this output is not. */
const char *pli_export_unwritten(pli_export *to, plait_value value);

/** Writes the file: temporary name, sync, rename. */
plait_status pli_export_save(pli_export *to, const char *path, const char *name, plait_error *err);

#endif
