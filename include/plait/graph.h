/* plait/graph.h - the dataflow graph: build it, differentiate it, run it.
 *
 * A graph is a growing list of *nodes*. A node is an op applied to values of earlier nodes, so the list can be computed
 * in its order, and there is no cycle. *Variables* are the values that outlive a run. They lie in a *store*, which is
 * the session's own memory, or parameter tables of any topology and consistency. A run reads a variable by `get` and
 * changes it by `inc`, as tables do; all gets of a run see the values from before the run.
 *
 * Building never fails in the middle: a call that fails returns PLAIT_NONE, and the graph keeps the text of the first
 * failure. A call with PLAIT_NONE as input returns PLAIT_NONE too, and plait_graph_check reports the failure at the
 * end.
 *
 *     plait_value x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, 784));
 *     plait_value h = plait_op_relu(g, plait_op_add(g, plait_op_matmul(g, x, w), b));
 *
 * Papers: Abadi et al., "TensorFlow: A System for Large-Scale Machine Learning", OSDI 2016 (graphs, partial runs,
 * symbolic gradients); Li et al., OSDI 2014 (variables as tables).
 * Threads: one thread builds; while nobody builds, any number of threads may run sessions of one graph
 * (plait/session.h).
 */
#ifndef PLAIT_GRAPH_H
#define PLAIT_GRAPH_H

#include <plait/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- building ----------------------------------------------------------------------------------------- */

/** Makes an empty graph. ops [n_ops]: the program's own ops, beside Plait's, borrowed for the graph's life; may be
 *  NULL.
 *  Errors: ENOMEM; EINVAL an op lacks a field (the text names it), or its name is taken. */
PLAIT_API plait_status plait_graph_create(const plait_op *const *ops, int32_t n_ops, plait_graph **graph_out,
                                          plait_error *error_out);
PLAIT_API void         plait_graph_destroy(plait_graph **graph); /* *graph may be NULL; after its sessions */

/** The first failure while the graph was built: ENAME an unknown op or attribute (the nearest is named), ESHAPE shapes
 *  or types disagree (the text names the op and where its inputs come from), EINVAL, ENOMEM. OK: there was none. */
PLAIT_API plait_status plait_graph_check(const plait_graph *graph, plait_error *error_out);

/** A value that each run is given. Lengths may be PLAIT_ANY. name must be unique in the graph. */
PLAIT_API plait_value plait_graph_placeholder(plait_graph *graph, const char *name, plait_type type, plait_shape shape);
/** A constant, copied from tensor. */
PLAIT_API plait_value plait_graph_constant(plait_graph *graph, plait_tensor tensor);
/** A constant of rank 0, rounded to type. */
PLAIT_API plait_value plait_graph_scalar(plait_graph *graph, plait_type type, double value);
/** A variable, which a store keeps under this name. initial: its first values (copied); data NULL: zeros. No length is
 *  PLAIT_ANY. */
PLAIT_API plait_value plait_graph_variable(plait_graph *graph, const char *name, plait_tensor initial);

/** Adds one node. inputs [n_inputs]; attrs [n_attrs] by name, copied; those that are left out have their presets.
 *  Returns output 0; plait_graph_output returns the others. plait/ops.h has a function for each of Plait's ops. */
PLAIT_API plait_value plait_graph_op(plait_graph *graph, const char *op, const plait_value *inputs, int32_t n_inputs,
                                     const plait_attr *attrs, int32_t n_attrs);
/** Output k of the node that has value among its outputs. */
PLAIT_API plait_value plait_graph_output(const plait_graph *graph, plait_value value, int32_t k);
/** Names a value, for feeds, fetches, errors and pictures. The name must be unique in the graph. Returns value. */
PLAIT_API plait_value plait_graph_name(plait_graph *graph, plait_value value, const char *name);
/** The value with this name; PLAIT_NONE, which is no failure here, if there is none. */
PLAIT_API plait_value plait_graph_find(const plait_graph *graph, const char *name);

/** Type and shape of a value, without data. Lengths that a run decides are PLAIT_ANY. */
PLAIT_API plait_tensor plait_graph_describe(const plait_graph *graph, plait_value value);
PLAIT_API int64_t      plait_graph_nodes(const plait_graph *graph);

/* --- differentiating ---------------------------------------------------------------------------------- */

/** dx_out [n] = d(sum of y) / d x[i], as values of the same graph, which can be differentiated again: zeros if y does
 *  not depend on x[i]. The first call for a y adds the gradients of all values that y depends on, in time linear in
 *  edges; later calls look them up. Nodes that nobody fetches cost nothing in a run. */
PLAIT_API plait_status plait_graph_gradients(plait_graph *graph, plait_value y, int32_t n, const plait_value *x,
                                             plait_value *dx_out);

/* A path by which y depends on x. values [n]: y first, x last. partial [n - 1]: what the edge from values[i] to
 * values[i + 1] contributes to the gradient of values[i + 1]. */
typedef struct plait_path {
    int32_t            n;
    const plait_value *values;
    const plait_value *partial;
} plait_path;

/** Calls visit for each backward path from y to x, after plait_graph_gradients was called for them; path is borrowed
 *  for the call. The walk ends when visit returns non-zero. Returns the number of paths visited, of which there may be
 *  exponentially many. */
PLAIT_API int64_t plait_graph_paths(const plait_graph *graph, plait_value y, plait_value x,
                                    int (*visit)(void *user, const plait_path *path), void *user);

/* --- subgraphs ---------------------------------------------------------------------------------------- */

/** Names a set of nodes, those of values [n]: a part that a session may leave out, or train alone (plait_session_opts
 *  exclude and train). A variable that only these nodes read belongs to it without being named. Nodes may lie in
 *  several subgraphs. Gradients belong to the node that they differentiate, incs to their variable.
 *  Errors: EINVAL the name is empty, has a comma or is taken, or a value is none of this graph; ENOMEM. */
PLAIT_API plait_status plait_graph_subgraph(plait_graph *graph, const char *name, const plait_value *values, int32_t n,
                                            plait_error *error_out);
/** How many there are; the name of number k, borrowed; NULL: there is none. */
PLAIT_API int32_t      plait_graph_subgraphs(const plait_graph *graph);
PLAIT_API const char  *plait_graph_subgraph_name(const plait_graph *graph, int32_t k);

/* --- variables ---------------------------------------------------------------------------------------- */

PLAIT_API int32_t plait_graph_variables(const plait_graph *graph);
/** Name and first values (data NULL: zeros) of variable k, borrowed. */
PLAIT_API const char  *plait_graph_variable_name(const plait_graph *graph, int32_t k);
PLAIT_API plait_tensor plait_graph_variable_initial(const plait_graph *graph, int32_t k);

#ifdef __cplusplus
}
#endif
#endif
