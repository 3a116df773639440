/* graph/form/form.h - graphs in files: what the readers and writers of all forms share.
 *
 *     file.c        finds out the form of a file; the public calls
 *     json_read.c   Plait's own form -> graph        json_write.c  graph -> Plait's own form
 *     literal.c     arrays in JSON, and first values by rule
 *     place.c       places of nodes, and rules for them
 *     subgraph.c    named sets of nodes
 *     order.c       orders nodes so that each comes after its inputs, or finds the cycle
 *     onnx.h        ONNX as plain structs; the module plait-onnx converts them from bytes and to bytes
 *     import.c      ONNX -> graph; import_*.c: its ops (import_attrs.c: which attributes they have)
 *     export.c      graph -> ONNX */
#ifndef PLI_GRAPH_FORM_FORM_H
#define PLI_GRAPH_FORM_FORM_H

#include <plait/graph_file.h>

#include "base/json.h"
#include "graph/graph.h"

/* --- the two readers ------------------------------------------------------------------------------------------ */

plait_status pli_form_of_json(const char *name, const char *text, size_t bytes, const plait_graph_file_opts *opts,
                              plait_graph **graph_out, plait_error *err);
plait_status pli_form_of_onnx(const char *name, const void *bytes, size_t n, const plait_graph_file_opts *opts,
                              plait_graph **graph_out, plait_error *err);

/** Writes the graph as JSON, one node a line. values: with the variables' first values. Errors: ENOMEM; what
 *  plait_graph_check says. */
plait_status pli_form_to_json(const plait_graph *graph, bool values, pli_text *text, plait_error *err);

/** The value with this name (of an output, or of a node's output 0). Errors: EFORMAT name is NULL; ENAME, the nearest
 *  is named. */
plait_status pli_form_value(const plait_graph *graph, const char *name, plait_value *value_out, plait_error *err);
/** subgraph.c. Reads the object "subgraphs" into the graph. Errors: EFORMAT, ENAME, EINVAL, ENOMEM. */
plait_status pli_form_subgraphs(plait_graph *graph, const json_t *subgraphs, plait_error *err);
/** place.c. Reads the object "place" into the graph. Errors: EFORMAT, ENAME, EINVAL: the graph is as it was; ENOMEM. */
plait_status pli_form_place(plait_graph *graph, const json_t *place, plait_error *err);
/** The same for a text: the object alone, or a graph that has it. Error texts begin with name. */
#define PLI_FORM_PLACE_NOTE "plait.place" /* the key in an ONNX model's metadata */
plait_status pli_form_place_text(plait_graph *graph, const char *name, const char *text, size_t bytes,
                                 plait_error *err);

/* --- order ---------------------------------------------------------------------------------------------------- */

/** Orders n nodes. Node i needs from[first[i]] .. from[first[i + 1] - 1]. order [n]: each node after those that it
 *  needs, otherwise in their old order. Returns 0; or, if there is a cycle, its number of nodes: then order begins with
 *  them, where each needs the next, and the last needs the first. scratch [2 n]. */
int64_t pli_form_order(int64_t n, const int64_t *first, const int64_t *from, int64_t *order, int64_t *scratch);

/* --- arrays in JSON ------------------------------------------------------------------------------------------- */

/* The bytes that a file may still take for values. */
typedef struct pli_budget {
    size_t left;
} pli_budget;

/** Takes the bytes of a tensor's elements off the budget. Errors: ESHAPE; ENOMEM they are more than is left. */
plait_status pli_budget_count(pli_budget *budget, const plait_tensor *tensor, plait_error *err);
/** Allocates the elements of a tensor whose type and shape are set; false, with err: too large, or no memory. */
plait_status pli_budget_take(pli_budget *budget, plait_tensor *tensor, plait_error *err);

/** Reads "f32" ..., a type that graphs compute with; ENAME names the nearest. */
plait_status pli_form_type(const json_t *value, plait_type *type_out, plait_error *err);
/** Reads [2, null, 3]; null is PLAIT_ANY, which `any` allows. Errors: EFORMAT, ESHAPE. */
plait_status pli_form_shape(const json_t *value, bool any, plait_shape *shape_out, plait_error *err);
/** Reads a number, or "nan", "inf", "-inf". */
bool pli_form_f64(const json_t *value, double *out);
/** Reads all elements of a tensor whose type and shape are set, in row-major order. The caller frees its data. */
plait_status pli_form_values(const json_t *values, plait_tensor *tensor, pli_budget *budget, plait_error *err);
/** Reads first values, or a rule: "zeros" (data stays NULL), "he", "glorot", {"fill": x}, {"uniform": x}, {"normal":
 *  x}. Random values depend on seed and number, the variable's number. */
plait_status pli_form_initial(const json_t *initial, plait_tensor *tensor, uint64_t seed, int64_t number,
                              pli_budget *budget, plait_error *err);

/** The same written. A number that is none is "nan", "inf" or "-inf", which JSON itself does not have. */
void pli_form_add_f64(pli_text *text, const char *key, double value);
void pli_form_add_shape(pli_text *text, const char *key, const plait_shape *shape);
void pli_form_add_values(pli_text *text, const char *key, const plait_tensor *tensor);

#endif
