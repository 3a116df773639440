/* ONNX ops that change shapes, and reductions over axes. In ONNX a run could compute inputs such as shapes, axes and
 * bounds; here they must be known at import. */
#include <string.h>

#include "graph/form/import.h"
#include <plait/nn.h>

enum { MOST = PLAIT_RANK_MAX };

/* Reads the axes of an op, which are an attribute in older opsets and an input in newer ones. *n_out -1: not given. */
static plait_status axes_of(pli_import *im, int32_t input, int64_t axes[MOST], int32_t *n_out) {
    *n_out = pli_import_list(im, "axes", MOST, axes);
    if (pli_import_has(im, input) && *n_out != -1)
        return pli_import_fail(im, PLAIT_EREFUSED,
                               "axes as an attribute and as an input are refused: which are meant?");
    if (pli_import_has(im, input)) return pli_import_ints(im, input, MOST, axes, n_out);
    return *n_out == -2 ? pli_import_fail(im, PLAIT_ESHAPE, "more than %d axes", MOST) : PLAIT_OK;
}

/* --- reductions ----------------------------------------------------------------------------------------------- */

/* A reduction over no axes, which reduces each element by itself: log(e^x) is x, the root of x^2 is |x|. */
static plait_value element_of(pli_import *im, char form, plait_value x) {
    if (form == '2') return plait_op_square(im->g, x);
    if (form == 'r' || form == '1') return plait_op_abs(im->g, x);
    return form == 'l' ? plait_op_log(im->g, x) : x;
}

/* The number to subtract before exponentials are summed, so that none overflows: the largest element, or 0 if that is
 * infinite or NaN, because infinity minus infinity is NaN. */
static plait_value finite_largest(pli_import *im, plait_value x, int32_t n, const int64_t *axes) {
    plait_graph      *g = im->g;
    const plait_value top = plait_op_stop_gradient(g, plait_op_max(g, x, n, axes, 1)),
                      zero = pli_import_scalar(im, top, 0);
    return plait_op_where(g, plait_op_equal(g, plait_op_sub(g, top, top), zero), top, zero);
}

/* how: Plait's op after a letter: "2sum" is the sum of squares, "rsum" its root, "1sum" the sum of absolute values,
 * "lsum" the logarithm of the sum, "esum" the logarithm of the sum of exponentials. */
static plait_status reduce(pli_import *im) {
    const char *how = im->op->how;
    const char  form = how[0] == '.' ? ' ' : how[0];
    int64_t     axes[MOST];
    int32_t     n;
    PLI_TRY(axes_of(im, 1, axes, &n));
    plait_graph *g = im->g;
    plait_value  x = pli_import_in(im, 0), y, top = PLAIT_NONE;
    const int    keep = pli_import_int(im, "keepdims", 1) != 0;
    if (n <= 0 && pli_import_int(im, "noop_with_empty_axes", 0) != 0) {
        pli_import_out(im, 0, element_of(im, form, x));
        return PLAIT_OK;
    }
    if (n < 0) n = 0;
    if (form == '2' || form == 'r') x = plait_op_square(g, x);
    if (form == '1') x = plait_op_abs(g, x);
    if (form == 'e') {
        top = finite_largest(im, x, n, axes);
        x = plait_op_exp(g, plait_op_sub(g, x, top));
    }
    y = plait_op_reduce(g, how + 1, x, n, axes, keep);
    if (form == 'r') y = plait_op_sqrt(g, y);
    if (form == 'l') y = plait_op_log(g, y);
    if (form == 'e') y = plait_op_add(g, plait_op_log(g, y), keep ? top : plait_op_sum(g, top, n, axes, 0));
    pli_import_out(im, 0, y);
    return PLAIT_OK;
}

/* --- shapes --------------------------------------------------------------------------------------------------- */

/* A length of 0 means the input's length at that axis; if a run decides that length, it follows from the others. */
static plait_status reshape(pli_import *im) {
    plait_shape shape;
    if (pli_import_shape_of(im, 1) >= 0) {
        pli_import_out(im, 0, plait_op_2(im->g, "reshape_like", pli_import_in(im, 0), pli_import_shape_of(im, 1)));
        return PLAIT_OK;
    }
    PLI_TRY(pli_import_ints(im, 1, MOST, shape.dim, &shape.rank));
    const plait_value x = pli_import_in(im, 0);
    const plait_shape from = pli_import_shape(im, x);
    const bool        literal = pli_import_int(im, "allowzero", 0) != 0;
    int32_t           open = -1;
    if (shape.rank < 0) return pli_import_fail(im, PLAIT_EFORMAT, "it needs a shape");
    for (int32_t i = 0; i < shape.rank; i++) /* -2 is used as a mark below */
        if (shape.dim[i] < -1)
            return pli_import_fail(im, PLAIT_ESHAPE, "a length of %lld; lengths are from 0, or -1: what is left",
                                   (long long)shape.dim[i]);
    for (int32_t i = 0; i < shape.rank; i++)
        if (shape.dim[i] == 0 && !literal && i < from.rank) shape.dim[i] = from.dim[i] >= 0 ? from.dim[i] : -2;
    for (int32_t i = 0; i < shape.rank; i++)
        if (shape.dim[i] == -1) open = i;
    for (int32_t i = 0; i < shape.rank; i++) {
        if (shape.dim[i] != -2) continue;
        if (open >= 0) { /* both are open: the second follows from the lengths that are known */
            int64_t have = 1, want = 1;
            for (int32_t k = 0; k < from.rank; k++)
                if (k != i && (from.dim[k] < 0 || __builtin_mul_overflow(have, from.dim[k], &have))) want = 0;
            for (int32_t k = 0; k < shape.rank; k++)
                if (k != i && k != open && (shape.dim[k] < 0 || __builtin_mul_overflow(want, shape.dim[k], &want)))
                    want = 0;
            if (want <= 0 || have % want != 0)
                return pli_import_fail(im, PLAIT_ESHAPE,
                                       "two lengths of the new shape are open, and do not follow from the old one");
            shape.dim[open] = have / want;
        }
        shape.dim[i] = -1;
        open = i;
    }
    pli_import_out(im, 0, plait_op_reshape(im->g, x, shape));
    return PLAIT_OK;
}

static plait_status flatten(pli_import *im) {
    const plait_value x = pli_import_in(im, 0);
    const plait_shape from = pli_import_shape(im, x);
    int64_t           axis = pli_import_int(im, "axis", 1), part[2] = { 1, 1 };
    if (axis < 0) axis += from.rank;
    if (axis < 0 || axis > from.rank)
        return pli_import_fail(im, PLAIT_ESHAPE, "axis %lld of %d", (long long)axis, from.rank);
    for (int32_t i = 0; i < from.rank; i++)
        if (from.dim[i] < 0 || part[i >= axis] < 0 ||
            __builtin_mul_overflow(part[i >= axis], from.dim[i], &part[i >= axis]))
            part[i >= axis] = -1;
    if (part[0] < 0 && part[1] < 0)
        return pli_import_fail(im, PLAIT_ESHAPE, "lengths on both sides of axis %lld are open", (long long)axis);
    pli_import_out(im, 0, plait_op_reshape(im->g, x, plait_shape_2(part[0], part[1])));
    return PLAIT_OK;
}

/* Without axes, all axes of length 1 are removed. A length that a run decides is refused, because the number of axes of
 * the result would depend on the run. */
static plait_status squeeze(pli_import *im) {
    int64_t axes[MOST];
    int32_t n;
    PLI_TRY(axes_of(im, 1, axes, &n));
    const plait_value x = pli_import_in(im, 0);
    const plait_shape from = pli_import_shape(im, x);
    if (n < 0) {
        n = 0;
        for (int32_t i = 0; i < from.rank; i++) {
            if (from.dim[i] < 0)
                return pli_import_fail(im, PLAIT_EREFUSED,
                                       "no axes are given and a run decides the length of axis %d, which is refused; "
                                       "give it axes",
                                       i);
            if (from.dim[i] == 1) axes[n++] = i;
        }
    }
    pli_import_out(im, 0, n > 0 ? plait_op_squeeze(im->g, x, n, axes) : x);
    return PLAIT_OK;
}

static plait_status unsqueeze(pli_import *im) {
    int64_t axes[MOST];
    int32_t n;
    PLI_TRY(axes_of(im, 1, axes, &n));
    if (n < 0) return pli_import_fail(im, PLAIT_EFORMAT, "it needs axes");
    const plait_value x = pli_import_in(im, 0);
    pli_import_out(im, 0, n > 0 ? plait_op_expand_dims(im->g, x, n, axes) : x);
    return PLAIT_OK;
}

static plait_status transpose(pli_import *im) {
    int64_t       perm[MOST];
    const int32_t n = pli_import_list(im, "perm", MOST, perm);
    if (n == -2) return pli_import_fail(im, PLAIT_ESHAPE, "more than %d axes", MOST);
    pli_import_out(im, 0, plait_op_transpose(im->g, pli_import_in(im, 0), n < 0 ? 0 : n, perm));
    return PLAIT_OK;
}

static plait_status concat(pli_import *im) {
    const int32_t n = im->node->n_in;
    plait_value  *x = pli_array((size_t)n, sizeof *x);
    if (x == NULL) return pli_import_fail(im, PLAIT_ENOMEM, "no memory for %d inputs", n);
    for (int32_t k = 0; k < n; k++) x[k] = pli_import_in(im, k);
    pli_import_out(im, 0, plait_op_concat(im->g, n, x, pli_import_int(im, "axis", 0)));
    pli_free(x);
    return PLAIT_OK;
}

/* Splits into equal parts; the last may be shorter. */
static plait_status split(pli_import *im) {
    enum { PARTS = 64 };
    const plait_value x = pli_import_in(im, 0);
    const int32_t     axis = pli_import_axis(im, x, pli_import_int(im, "axis", 0)), parts = im->node->n_out;
    int64_t           length[PARTS];
    int32_t           n;
    PLI_TRY(pli_import_ints(im, 1, PARTS, length, &n));
    PLI_TRY(plait_graph_check(im->g, im->err));
    const int64_t said = pli_import_int(im, "num_outputs", parts);
    if (said != parts)
        return pli_import_fail(im, PLAIT_EFORMAT, "num_outputs %lld, and %d outputs", (long long)said, parts);
    if (parts > PARTS || (n >= 0 && n != parts))
        return pli_import_fail(im, PLAIT_ESHAPE, "%d outputs%s; at most %d", parts,
                               n >= 0 && n != parts ? " for other parts" : "", PARTS);
    const int64_t all = pli_import_shape(im, x).dim[axis], each = parts > 0 ? (all + parts - 1) / parts : 0;
    for (int32_t k = 0; n < 0 && all >= 0 && k < parts; k++)
        length[k] = k + 1 < parts ? each : all - each * (parts - 1);
    const plait_value first = plait_op_split(im->g, x, axis, parts, n >= 0 || all >= 0 ? length : NULL);
    for (int32_t k = 0; k < parts; k++) pli_import_out(im, k, plait_graph_output(im->g, first, k));
    return PLAIT_OK;
}

static plait_status slice(pli_import *im) {
    int64_t starts[MOST], ends[MOST], axes[MOST], steps[MOST];
    int32_t n, n_ends, n_axes, n_steps;
    PLI_TRY(pli_import_ints(im, 1, MOST, starts, &n));
    PLI_TRY(pli_import_ints(im, 2, MOST, ends, &n_ends));
    PLI_TRY(pli_import_ints(im, 3, MOST, axes, &n_axes));
    PLI_TRY(pli_import_ints(im, 4, MOST, steps, &n_steps));
    if (n < 0 || n_ends < 0) return pli_import_fail(im, PLAIT_EFORMAT, "it needs starts and ends");
    const plait_value x = pli_import_in(im, 0);
    const plait_attr  attrs[] = { plait_attr_ints("starts", n, starts), plait_attr_ints("ends", n_ends, ends),
                                  plait_attr_ints("axes", n_axes < 0 ? 0 : n_axes, axes),
                                  plait_attr_ints("steps", n_steps < 0 ? 0 : n_steps, steps) };
    pli_import_out(im, 0, plait_graph_op(im->g, "slice", &x, 1, attrs, 4));
    return PLAIT_OK;
}

#define REDUCE "axes ints, keepdims int, noop_with_empty_axes int"

const pli_import_op pli_import_shapes[] = {
    { "ReduceSum", reduce, ".sum", REDUCE },
    { "ReduceMean", reduce, ".mean", REDUCE },
    { "ReduceMax", reduce, ".max", REDUCE },
    { "ReduceMin", reduce, ".min", REDUCE },
    { "ReduceSumSquare", reduce, "2sum", REDUCE },
    { "ReduceL2", reduce, "rsum", REDUCE },
    { "ReduceL1", reduce, "1sum", REDUCE },
    { "ReduceLogSum", reduce, "lsum", REDUCE },
    { "ReduceLogSumExp", reduce, "esum", REDUCE },
    { "Reshape", reshape, NULL, "allowzero int" },
    { "Flatten", flatten, NULL, "axis int" },
    { "Squeeze", squeeze, NULL, "axes ints" },
    { "Unsqueeze", unsqueeze, NULL, "axes ints" },
    { "Transpose", transpose, NULL, "perm ints" },
    { "Concat", concat, NULL, "axis int" },
    { "Split", split, NULL, "axis int, num_outputs int" },
    { "Slice", slice, NULL, NULL },
    { NULL, NULL, NULL, NULL },
};
