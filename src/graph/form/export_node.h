/* graph/form/export_node.h - for ops of an export: inputs and attributes of the current node. */
#ifndef PLI_GRAPH_FORM_EXPORT_NODE_H
#define PLI_GRAPH_FORM_EXPORT_NODE_H

#include "graph/form/export.h"

/** The name of input k; its type and shape. */
const char  *pli_export_in(pli_export *to, const pli_node *node, int32_t k);
plait_tensor pli_export_type_in(const pli_export *to, const pli_node *node, int32_t k);
/** Sets the name of output 0. */
void pli_export_set(pli_export *to, const pli_node *node, const char *name);

/** The attribute of this name; an attribute of ints as an initialiser, and as an ONNX attribute under its ONNX name. */
const plait_attr *pli_export_attr(const pli_export *to, const pli_node *node, const char *name);
int64_t           pli_export_int_of(const pli_export *to, const pli_node *node, const char *name);
double            pli_export_float_of(const pli_export *to, const pli_node *node, const char *name);
const char       *pli_export_ints_of(pli_export *to, const pli_node *node, const char *name);
pli_onnx_attr     pli_export_list_of(pli_export *to, const pli_node *node, const char *ours, const char *theirs);

/** Adds a node with one input. */
const char *pli_export_with(pli_export *to, const char *op, const char *a, const pli_onnx_attr *attrs, int32_t n);
/** Adds a number of like's type. */
const char *pli_export_like(pli_export *to, const plait_tensor *like, double x);
/** Adds ReduceSum or another reduction of x; no axes: all. */
const char *pli_export_reduced(pli_export *to, const char *how, const char *x, int32_t n, const int64_t *axes,
                               bool keep);

#endif
