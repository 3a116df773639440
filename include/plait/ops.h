/* plait/ops.h - a short function for each op that a program builds graphs with.
 *
 * Each adds one node and returns its output 0 (plait_graph_output returns the others). On failure it returns
 * PLAIT_NONE, and plait_graph_check says why. Ops broadcast as NumPy does, and need inputs of one type. Negative axes
 * count from the end. Where a list of axes may be empty, an empty list means all axes.
 *
 *     plait_value h = plait_op_relu(g, plait_op_add(g, plait_op_matmul(g, x, w), b));
 *     plait_value loss = plait_op_mean(g, plait_op_square(g, plait_op_sub(g, y, target)), 0, NULL, 0);
 *
 * plait/nn.h has the ops of networks. Threads: as plait/graph.h.
 */
#ifndef PLAIT_OPS_H
#define PLAIT_OPS_H

#include <plait/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- attributes, and nodes by name -------------------------------------------------------------------- */

static inline plait_attr plait_attr_int(const char *name, int64_t i) {
    plait_attr a;
    a.name = name;
    a.kind = PLAIT_ATTR_INT;
    a.n = 0;
    a.u.i = i;
    return a;
}
static inline plait_attr plait_attr_float(const char *name, double f) {
    plait_attr a = plait_attr_int(name, 0);
    a.kind = PLAIT_ATTR_FLOAT;
    a.u.f = f;
    return a;
}
static inline plait_attr plait_attr_type(const char *name, plait_type type) {
    plait_attr a = plait_attr_int(name, (int64_t)type);
    a.kind = PLAIT_ATTR_TYPE;
    return a;
}
static inline plait_attr plait_attr_text(const char *name, const char *text) {
    plait_attr a = plait_attr_int(name, 0);
    a.kind = PLAIT_ATTR_TEXT;
    a.u.text = text;
    return a;
}
/** ints [n] must stay valid until the node is added. */
static inline plait_attr plait_attr_ints(const char *name, int32_t n, const int64_t *ints) {
    plait_attr a = plait_attr_int(name, 0);
    a.kind = PLAIT_ATTR_INTS;
    a.n = n;
    a.u.ints = ints;
    return a;
}
/** Ops without attributes that have one, two or three inputs. */
static inline plait_value plait_op_1(plait_graph *g, const char *op, plait_value x) {
    return plait_graph_op(g, op, &x, 1, NULL, 0);
}
static inline plait_value plait_op_2(plait_graph *g, const char *op, plait_value a, plait_value b) {
    const plait_value in[2] = { a, b };
    return plait_graph_op(g, op, in, 2, NULL, 0);
}
static inline plait_value plait_op_3(plait_graph *g, const char *op, plait_value a, plait_value b, plait_value c) {
    const plait_value in[3] = { a, b, c };
    return plait_graph_op(g, op, in, 3, NULL, 0);
}

/* --- element by element ------------------------------------------------------------------------------- */

/* equal .. greater_equal return bools; logical ops take bools. */
static inline plait_value plait_op_add(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "add", a, b);
}
static inline plait_value plait_op_sub(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "sub", a, b);
}
static inline plait_value plait_op_mul(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "mul", a, b);
}
static inline plait_value plait_op_div(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "div", a, b);
}
static inline plait_value plait_op_pow(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "pow", a, b);
}
static inline plait_value plait_op_maximum(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "maximum", a, b);
}
static inline plait_value plait_op_minimum(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "minimum", a, b);
}
static inline plait_value plait_op_equal(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "equal", a, b);
}
static inline plait_value plait_op_not_equal(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "not_equal", a, b);
}
static inline plait_value plait_op_less(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "less", a, b);
}
static inline plait_value plait_op_less_equal(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "less_equal", a, b);
}
static inline plait_value plait_op_greater(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "greater", a, b);
}
static inline plait_value plait_op_greater_equal(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "greater_equal", a, b);
}
static inline plait_value plait_op_logical_and(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "logical_and", a, b);
}
static inline plait_value plait_op_logical_or(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "logical_or", a, b);
}
static inline plait_value plait_op_neg(plait_graph *g, plait_value x) { return plait_op_1(g, "neg", x); }
static inline plait_value plait_op_reciprocal(plait_graph *g, plait_value x) { return plait_op_1(g, "reciprocal", x); }
static inline plait_value plait_op_abs(plait_graph *g, plait_value x) { return plait_op_1(g, "abs", x); }
static inline plait_value plait_op_sign(plait_graph *g, plait_value x) { return plait_op_1(g, "sign", x); }
static inline plait_value plait_op_square(plait_graph *g, plait_value x) { return plait_op_1(g, "square", x); }
static inline plait_value plait_op_sqrt(plait_graph *g, plait_value x) { return plait_op_1(g, "sqrt", x); }
static inline plait_value plait_op_exp(plait_graph *g, plait_value x) { return plait_op_1(g, "exp", x); }
static inline plait_value plait_op_log(plait_graph *g, plait_value x) { return plait_op_1(g, "log", x); }
static inline plait_value plait_op_erf(plait_graph *g, plait_value x) { return plait_op_1(g, "erf", x); }
static inline plait_value plait_op_sigmoid(plait_graph *g, plait_value x) { return plait_op_1(g, "sigmoid", x); }
static inline plait_value plait_op_tanh(plait_graph *g, plait_value x) { return plait_op_1(g, "tanh", x); }
static inline plait_value plait_op_relu(plait_graph *g, plait_value x) { return plait_op_1(g, "relu", x); }
static inline plait_value plait_op_softplus(plait_graph *g, plait_value x) { return plait_op_1(g, "softplus", x); }
static inline plait_value plait_op_gelu(plait_graph *g, plait_value x) { return plait_op_1(g, "gelu", x); }
static inline plait_value plait_op_logical_not(plait_graph *g, plait_value x) {
    return plait_op_1(g, "logical_not", x);
}
static inline plait_value plait_op_identity(plait_graph *g, plait_value x) { return plait_op_1(g, "identity", x); }
static inline plait_value plait_op_stop_gradient(plait_graph *g, plait_value x) {
    return plait_op_1(g, "stop_gradient", x);
}
/** x where x > 0, else slope x */
static inline plait_value plait_op_leaky_relu(plait_graph *g, plait_value x, double slope) {
    const plait_attr a = plait_attr_float("slope", slope);
    return plait_graph_op(g, "leaky_relu", &x, 1, &a, 1);
}
/** x where x > 0, else alpha (e^x - 1) */
static inline plait_value plait_op_elu(plait_graph *g, plait_value x, double alpha) {
    const plait_attr a = plait_attr_float("alpha", alpha);
    return plait_graph_op(g, "elu", &x, 1, &a, 1);
}
/** x, but not below low nor above high */
static inline plait_value plait_op_clip(plait_graph *g, plait_value x, double low, double high) {
    const plait_attr a[2] = { plait_attr_float("low", low), plait_attr_float("high", high) };
    return plait_graph_op(g, "clip", &x, 1, a, 2);
}
/** a where condition (bool) holds, else b */
static inline plait_value plait_op_where(plait_graph *g, plait_value condition, plait_value a, plait_value b) {
    return plait_op_3(g, "where", condition, a, b);
}
/** The same elements in another type. Floats are rounded to nearest; integers drop the fraction and are clipped. */
static inline plait_value plait_op_cast(plait_graph *g, plait_value x, plait_type type) {
    const plait_attr a = plait_attr_type("type", type);
    return plait_graph_op(g, "cast", &x, 1, &a, 1);
}

/* --- over axes ---------------------------------------------------------------------------------------- */

/** op is "sum", "mean", "max" or "min"; axes [n]; keep 1: reduced axes stay, with length 1. */
static inline plait_value plait_op_reduce(plait_graph *g, const char *op, plait_value x, int32_t n, const int64_t *axes,
                                          int keep) {
    const plait_attr a[2] = { plait_attr_ints("axes", n, axes), plait_attr_int("keep", keep) };
    return plait_graph_op(g, op, &x, 1, a, 2);
}
static inline plait_value plait_op_sum(plait_graph *g, plait_value x, int32_t n, const int64_t *axes, int keep) {
    return plait_op_reduce(g, "sum", x, n, axes, keep);
}
static inline plait_value plait_op_mean(plait_graph *g, plait_value x, int32_t n, const int64_t *axes, int keep) {
    return plait_op_reduce(g, "mean", x, n, axes, keep);
}
static inline plait_value plait_op_max(plait_graph *g, plait_value x, int32_t n, const int64_t *axes, int keep) {
    return plait_op_reduce(g, "max", x, n, axes, keep);
}
static inline plait_value plait_op_min(plait_graph *g, plait_value x, int32_t n, const int64_t *axes, int keep) {
    return plait_op_reduce(g, "min", x, n, axes, keep);
}
/** The position (i64) of the largest element along an axis, the first of equal ones. The axis is removed. */
static inline plait_value plait_op_argmax(plait_graph *g, plait_value x, int64_t axis) {
    const plait_attr a = plait_attr_int("axis", axis);
    return plait_graph_op(g, "argmax", &x, 1, &a, 1);
}
/** The k largest elements along the last axis, the largest first; output 1: their positions (i64). */
static inline plait_value plait_op_top_k(plait_graph *g, plait_value x, int64_t k) {
    const plait_attr a = plait_attr_int("k", k);
    return plait_graph_op(g, "top_k", &x, 1, &a, 1);
}

/* --- shapes ------------------------------------------------------------------------------------------- */

/** The same elements in another shape; one length may be -1: it follows from the others. */
static inline plait_value plait_op_reshape(plait_graph *g, plait_value x, plait_shape shape) {
    const plait_attr a = plait_attr_ints("shape", shape.rank, shape.dim);
    return plait_graph_op(g, "reshape", &x, 1, &a, 1);
}
/** Removes axes [n], which have length 1. */
static inline plait_value plait_op_squeeze(plait_graph *g, plait_value x, int32_t n, const int64_t *axes) {
    const plait_attr a = plait_attr_ints("axes", n, axes);
    return plait_graph_op(g, "squeeze", &x, 1, &a, 1);
}
/** Adds axes [n] of length 1, counted in the result. */
static inline plait_value plait_op_expand_dims(plait_graph *g, plait_value x, int32_t n, const int64_t *axes) {
    const plait_attr a = plait_attr_ints("axes", n, axes);
    return plait_graph_op(g, "expand_dims", &x, 1, &a, 1);
}
/** Axis i of the result is axis perm[i] of x; n 0: the axes are reversed. */
static inline plait_value plait_op_transpose(plait_graph *g, plait_value x, int32_t n, const int64_t *perm) {
    const plait_attr a = plait_attr_ints("perm", n, perm);
    return plait_graph_op(g, "transpose", &x, 1, &a, 1);
}
/** Joins x [n] one after the other along an axis. */
static inline plait_value plait_op_concat(plait_graph *g, int32_t n, const plait_value *x, int64_t axis) {
    const plait_attr a = plait_attr_int("axis", axis);
    return plait_graph_op(g, "concat", x, n, &a, 1);
}
/** Splits an axis into at most 64 parts, of equal length, or of lengths [parts]; outputs 0 .. parts - 1. */
static inline plait_value plait_op_split(plait_graph *g, plait_value x, int64_t axis, int32_t parts,
                                         const int64_t *lengths) {
    const plait_attr a[3] = { plait_attr_int("axis", axis), plait_attr_int("parts", parts),
                              plait_attr_ints("lengths", lengths == NULL ? 0 : parts, lengths) };
    return plait_graph_op(g, "split", &x, 1, a, 3);
}
/** x[starts:ends:steps] along the first n axes, as in Python. steps NULL: 1. */
static inline plait_value plait_op_slice(plait_graph *g, plait_value x, int32_t n, const int64_t *starts,
                                         const int64_t *ends, const int64_t *steps) {
    const plait_attr a[3] = { plait_attr_ints("starts", n, starts), plait_attr_ints("ends", n, ends),
                              plait_attr_ints("steps", steps == NULL ? 0 : n, steps) };
    return plait_graph_op(g, "slice", &x, 1, a, 3);
}
/** Adds before[i] and after[i] elements of this value at the ends of axis i, for n axes. */
static inline plait_value plait_op_pad(plait_graph *g, plait_value x, int32_t n, const int64_t *before,
                                       const int64_t *after, double value) {
    const plait_attr a[3] = { plait_attr_ints("before", n, before), plait_attr_ints("after", n, after),
                              plait_attr_float("value", value) };
    return plait_graph_op(g, "pad", &x, 1, a, 3);
}

/* --- indexed by numbers (i64) ------------------------------------------------------------------------- */

/** Slices x[numbers] along axis 0. */
static inline plait_value plait_op_gather(plait_graph *g, plait_value x, plait_value numbers) {
    return plait_op_2(g, "gather", x, numbers);
}
/** x with row i of values added to its row numbers[i]; repeats add up. */
static inline plait_value plait_op_scatter_add(plait_graph *g, plait_value x, plait_value numbers, plait_value values) {
    return plait_op_3(g, "scatter_add", x, numbers, values);
}
/** Adds a last axis of length depth: 1 at the position that the number says, else 0. */
static inline plait_value plait_op_one_hot(plait_graph *g, plait_value numbers, int64_t depth, plait_type type) {
    const plait_attr a[2] = { plait_attr_int("depth", depth), plait_attr_type("type", type) };
    return plait_graph_op(g, "one_hot", &numbers, 1, a, 2);
}
/** Rows of a variable: the run asks the store for these rows only, and only they get a gradient. */
static inline plait_value plait_op_get_rows(plait_graph *g, plait_value variable, plait_value rows) {
    return plait_op_2(g, "get_rows", variable, rows);
}
/** Product of the matrices in the last two axes; the axes before them broadcast. */
static inline plait_value plait_op_matmul(plait_graph *g, plait_value a, plait_value b) {
    return plait_op_2(g, "matmul", a, b);
}
/* --- effects ------------------------------------------------------------------------------------------ */

/** Adds delta to a variable, or pushes it as a gradient, as the store says. inc, print, assert act only if fetched. */
static inline plait_value plait_op_inc(plait_graph *g, plait_value variable, plait_value delta) {
    return plait_op_2(g, "inc", variable, delta);
}
/** Writes text and the first elements of x to the session's log. */
static inline plait_value plait_op_print(plait_graph *g, plait_value x, const char *text) {
    const plait_attr a = plait_attr_text("text", text);
    return plait_graph_op(g, "print", &x, 1, &a, 1);
}
/** Ends the run with an error that has text, if an element of x (bool) is false. */
static inline plait_value plait_op_assert(plait_graph *g, plait_value x, const char *text) {
    const plait_attr a = plait_attr_text("text", text);
    return plait_graph_op(g, "assert", &x, 1, &a, 1);
}
/** Random numbers, drawn anew in each run by the session's seed, uniform in [low, high). */
static inline plait_value plait_op_random_uniform(plait_graph *g, plait_type type, plait_shape shape, double low,
                                                  double high) {
    const plait_attr a[4] = { plait_attr_type("type", type), plait_attr_ints("shape", shape.rank, shape.dim),
                              plait_attr_float("low", low), plait_attr_float("high", high) };
    return plait_graph_op(g, "random_uniform", NULL, 0, a, 4);
}
/** Random numbers, drawn anew in each run by the session's seed, normal. */
static inline plait_value plait_op_random_normal(plait_graph *g, plait_type type, plait_shape shape, double mean,
                                                 double deviation) {
    const plait_attr a[4] = { plait_attr_type("type", type), plait_attr_ints("shape", shape.rank, shape.dim),
                              plait_attr_float("mean", mean), plait_attr_float("deviation", deviation) };
    return plait_graph_op(g, "random_normal", NULL, 0, a, 4);
}

#ifdef __cplusplus
}
#endif
#endif
