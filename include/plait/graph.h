/* plait/graph.h - the dataflow graph: build it, differentiate it, run it.
 *
 * A graph is a growing list of *nodes*; a node is an op applied to values that were there before it, so the list is in
 * an order in which it can be computed, and there is no cycle. *Variables* are the values that outlive a run: they lie
 * in a *store*, which is the session's own memory or parameter tables of any topology and consistency. A run reads a
 * variable by `get` and changes it by `inc`, as tables have it: all gets of a run see what was there before it.
 *
 * Building never fails in the middle: a call that cannot be answers PLAIT_NONE, the graph keeps the text of the first
 * failure, what is built on PLAIT_NONE is PLAIT_NONE, and plait_graph_check tells at the end.
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

/** An empty graph. ops [n_ops]: ops of the program's own, beside Plait's, borrowed for the graph's life; may be NULL.
 *  Errors: ENOMEM; EINVAL an op that is not whole, or whose name is taken (the text says what is missing). */
PLAIT_API plait_status plait_graph_create(const plait_op *const *ops, int32_t n_ops, plait_graph **graph_out,
                                          plait_error *error_out);
PLAIT_API void         plait_graph_destroy(plait_graph **graph); /* *graph may be NULL; after its sessions */

/** What was wrong first: ENAME an unknown op or attribute (the nearest is named), ESHAPE shapes or types disagree (the
 *  text names the op and where its inputs come from), EINVAL, ENOMEM. */
PLAIT_API plait_status plait_graph_check(const plait_graph *graph, plait_error *error_out);

/** A value to be fed. Lengths may be PLAIT_ANY. name is unique in the graph. */
PLAIT_API plait_value plait_graph_placeholder(plait_graph *graph, const char *name, plait_type type, plait_shape shape);
/** A copy of tensor. */
PLAIT_API plait_value plait_graph_constant(plait_graph *graph, plait_tensor tensor);
/** A constant of rank 0, rounded to type. */
PLAIT_API plait_value plait_graph_scalar(plait_graph *graph, plait_type type, double value);
/** What a store keeps under this name. initial: all of it at first (copied), or data NULL: zeros; the shape is
 *  known. */
PLAIT_API plait_value plait_graph_variable(plait_graph *graph, const char *name, plait_tensor initial);

/** One node. inputs [n_inputs]; attrs [n_attrs] by name, copied, those that are left out are preset. Answers output 0;
 *  plait_graph_output has the others. plait/ops.h has a function for each of Plait's ops. */
PLAIT_API plait_value plait_graph_op(plait_graph *graph, const char *op, const plait_value *inputs, int32_t n_inputs,
                                     const plait_attr *attrs, int32_t n_attrs);
/** Output k of the node that value is an output of. */
PLAIT_API plait_value plait_graph_output(const plait_graph *graph, plait_value value, int32_t k);
/** Names a value, for feeds, fetches, errors and pictures. Unique in the graph. Answers value. */
PLAIT_API plait_value plait_graph_name(plait_graph *graph, plait_value value, const char *name);
/** The value of that name; PLAIT_NONE (and no failure) where there is none. */
PLAIT_API plait_value plait_graph_find(const plait_graph *graph, const char *name);

/** Of a value: type and shape, without data. Lengths that a run decides are PLAIT_ANY. */
PLAIT_API plait_tensor plait_graph_describe(const plait_graph *graph, plait_value value);
PLAIT_API int64_t      plait_graph_nodes(const plait_graph *graph);

/* --- differentiating ---------------------------------------------------------------------------------- */

/** dx_out [n] = d(sum of y) / d x[i], as values of the same graph (so they can be differentiated again): zeros where y
 *  does not depend on x[i]. The first call for a y adds the gradients of all that y depends on, linear in edges; each
 *  further one looks up. Nodes that nobody fetches cost nothing in a run. */
PLAIT_API plait_status plait_graph_gradients(plait_graph *graph, plait_value y, int32_t n, const plait_value *x,
                                             plait_value *dx_out);

/* One way by which y depends on x: values [n], y first, x last; partial [n - 1]: what the edge from values[i] to
 * values[i + 1] contributes to the latter's gradient. */
typedef struct plait_path {
    int32_t            n;
    const plait_value *values;
    const plait_value *partial;
} plait_path;

/** Calls visit for each backward path from y to x, which gradients was called for; path is borrowed for the call. A
 *  visit that answers non-zero ends the walk. Answers the number visited. There may be exponentially many. */
PLAIT_API int64_t plait_graph_paths(const plait_graph *graph, plait_value y, plait_value x,
                                    int (*visit)(void *user, const plait_path *path), void *user);

/* --- variables ---------------------------------------------------------------------------------------- */

PLAIT_API int32_t plait_graph_variables(const plait_graph *graph);
/** Variable k: its name, and its first values (data NULL: zeros), borrowed. */
PLAIT_API const char  *plait_graph_variable_name(const plait_graph *graph, int32_t k);
PLAIT_API plait_tensor plait_graph_variable_initial(const plait_graph *graph, int32_t k);

#ifdef __cplusplus
}
#endif
#endif
