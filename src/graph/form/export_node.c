/* Gives the ops of an export the inputs of the current node by name, and its attributes as ONNX's. */
#include "graph/form/export_node.h"

#include <string.h>

const char *pli_export_in(pli_export *to, const pli_node *node, int32_t k) {
    const plait_value v = to->graph->input[node->input + k];
    return to->value[v] != NULL ? to->value[v] : pli_export_unwritten(to, v);
}

plait_tensor pli_export_type_in(const pli_export *to, const pli_node *node, int32_t k) {
    return pli_value_tensor(to->graph, to->graph->input[node->input + k]);
}

void pli_export_set(pli_export *to, const pli_node *node, const char *name) { to->value[node->value] = name; }

const plait_attr *pli_export_attr(const pli_export *to, const pli_node *node, const char *name) {
    for (int32_t i = 0; i < node->op->n_attrs; i++)
        if (strcmp(node->op->attrs[i].preset.name, name) == 0) return &to->graph->attr[node->attr + i];
    return NULL;
}

int64_t pli_export_int_of(const pli_export *to, const pli_node *node, const char *name) {
    return pli_export_attr(to, node, name)->u.i;
}

double pli_export_float_of(const pli_export *to, const pli_node *node, const char *name) {
    return pli_export_attr(to, node, name)->u.f;
}

const char *pli_export_ints_of(pli_export *to, const pli_node *node, const char *name) {
    const plait_attr *a = pli_export_attr(to, node, name);
    return pli_export_ints(to, a->n, a->u.ints);
}

pli_onnx_attr pli_export_list_of(pli_export *to, const pli_node *node, const char *ours, const char *theirs) {
    const plait_attr *a = pli_export_attr(to, node, ours);
    return pli_export_list(theirs, a->n, a->u.ints);
}

const char *pli_export_with(pli_export *to, const char *op, const char *a, const pli_onnx_attr *attrs, int32_t n) {
    const char *const inputs[] = { a, NULL };
    return pli_export_node(to, op, inputs, attrs, n);
}

const char *pli_export_like(pli_export *to, const plait_tensor *like, double x) {
    return pli_export_number(to, like->type, x);
}

/* In opset 17 the axes of a sum are an input, those of other reductions an attribute; no axes: all. */
const char *pli_export_reduced(pli_export *to, const char *how, const char *x, int32_t n, const int64_t *axes,
                               bool keep) {
    const pli_onnx_attr attrs[] = { pli_export_int("keepdims", keep), pli_export_list("axes", n, axes) };
    if (strcmp(how, "ReduceSum") != 0) return pli_export_with(to, how, x, attrs, n > 0 ? 2 : 1);
    const char *const inputs[] = { x, n > 0 ? pli_export_ints(to, n, axes) : NULL, NULL };
    return pli_export_node(to, how, inputs, attrs, 1);
}
