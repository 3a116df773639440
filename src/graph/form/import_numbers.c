/* ONNX ops that take or return indices: gathering, scattering, ordering. Plait's ops work along the first or the last
 * axis, so the op's axis is moved there and back. Indices are i64; negative ones count from the end. */
#include <string.h>

#include "graph/form/import.h"
#include "graph/kernel.h"
#include <plait/nn.h>

enum { MOST = PLAIT_RANK_MAX };

/* Is input k known at import, without negative indices? */
static bool all_from_zero(const pli_import *im, int32_t k) {
    const plait_tensor *t = pli_import_known(im, k);
    bool                all = t != NULL && !pli_type_is_float(t->type);
    for (int64_t i = 0; all && i < plait_shape_elements(&t->shape); i++) all = pli_element_int(t, i) >= 0;
    return all;
}

/* Input k, which has indices, as i64. */
static plait_value raw_numbers(pli_import *im, int32_t k) {
    const plait_value raw = pli_import_in(im, k);
    return raw < 0 || plait_graph_describe(im->g, raw).type == PLAIT_I64 ? raw : plait_op_cast(im->g, raw, PLAIT_I64);
}

/* Adds length to negative indices, which count from the end. */
static plait_value from_zero(pli_import *im, plait_value n, plait_value length) {
    plait_graph      *g = im->g;
    const plait_value zero = plait_graph_scalar(g, PLAIT_I64, 0);
    return plait_op_where(g, plait_op_less(g, n, zero), plait_op_add(g, n, length), n);
}

/* Input k, which has indices along an axis of x, with negative ones resolved. */
static plait_value numbers_of(pli_import *im, int32_t k, plait_value x, int32_t axis) {
    const plait_value n = raw_numbers(im, k);
    if (n < 0 || x < 0 || axis < 0) return PLAIT_NONE;
    return all_from_zero(im, k) ? n : from_zero(im, n, pli_import_length(im, x, axis));
}

/* Swaps `axis` with the last axis; a second call undoes it. */
static plait_value swap_last(pli_import *im, plait_value x, int32_t axis) {
    const int32_t rank = pli_import_shape(im, x).rank;
    int64_t       perm[MOST];
    if (x < 0 || axis < 0 || axis == rank - 1) return x;
    for (int32_t i = 0; i < rank; i++) perm[i] = i;
    perm[axis] = rank - 1;
    perm[rank - 1] = axis;
    return plait_op_transpose(im->g, x, rank, perm);
}

/* y [before, indices.., after] = x [before, axis, after] at the indices: the axis is moved to the front, gathered, and
 * the axes of the indices are moved to its place. */
static plait_status gather(pli_import *im) {
    const plait_value x = pli_import_in(im, 0);
    const plait_shape from = pli_import_shape(im, x);
    const int32_t     axis = pli_import_axis(im, x, pli_import_int(im, "axis", 0));
    PLI_TRY(plait_graph_check(im->g, im->err));
    const plait_value n = numbers_of(im, 1, x, axis);
    const int32_t     wide = pli_import_shape(im, n).rank;
    int64_t           front[MOST], back[2 * MOST];
    if (wide + from.rank - 1 > MOST) return pli_import_fail(im, PLAIT_ESHAPE, "more than %d axes", MOST);
    for (int32_t i = 0; i < from.rank; i++) front[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
    for (int32_t i = 0; i < wide + from.rank - 1; i++) back[i] = i < axis ? wide + i : i < axis + wide ? i - axis : i;
    plait_value y = plait_op_gather(im->g, axis > 0 ? plait_op_transpose(im->g, x, from.rank, front) : x, n);
    if (axis > 0) y = plait_op_transpose(im->g, y, wide + from.rank - 1, back);
    pli_import_out(im, 0, y);
    return PLAIT_OK;
}

static plait_status gather_elements(pli_import *im) {
    const plait_value x = pli_import_in(im, 0);
    const int32_t     axis = pli_import_axis(im, x, pli_import_int(im, "axis", 0));
    PLI_TRY(plait_graph_check(im->g, im->err));
    const plait_value n = numbers_of(im, 1, x, axis);
    const plait_value y = plait_op_2(im->g, "gather_last", swap_last(im, x, axis), swap_last(im, n, axis));
    pli_import_out(im, 0, swap_last(im, y, axis));
    return PLAIT_OK;
}

/* Reads the attribute reduction, none or add. */
static plait_status reduction_of(pli_import *im, bool *adds_out) {
    const char *how = pli_import_text(im, "reduction", "none");
    *adds_out = strcmp(how, "add") == 0;
    if (*adds_out || strcmp(how, "none") == 0) return PLAIT_OK;
    return pli_import_fail(im, PLAIT_EREFUSED, "reduction '%.20s' is refused; known are none and add", how);
}

/* x, replaced by `scattered` where marks are not 0: both were scattered onto zeros, marks from ones. */
static plait_value replaced(pli_import *im, plait_value x, plait_value scattered, plait_value marks) {
    const plait_value none = pli_import_scalar(im, marks, 0);
    return plait_op_where(im->g, plait_op_greater(im->g, marks, none), scattered, x);
}

static plait_status scatter_elements(pli_import *im) {
    plait_graph      *g = im->g;
    bool              adds;
    const plait_value x = pli_import_in(im, 0), values = pli_import_in(im, 2);
    const int32_t     axis = pli_import_axis(im, x, pli_import_int(im, "axis", 0));
    PLI_TRY(reduction_of(im, &adds));
    PLI_TRY(plait_graph_check(g, im->err));
    const plait_value n = swap_last(im, numbers_of(im, 1, x, axis), axis);
    const plait_value to = swap_last(im, x, axis), v = swap_last(im, values, axis);
    const plait_value scattered = plait_op_3(g, "scatter_last", to, n, v);
    const plait_value y =
        adds ? plait_op_add(g, to, scattered)
             : replaced(im, to, scattered, plait_op_3(g, "scatter_last", to, n, plait_op_1(g, "ones_like", v)));
    pli_import_out(im, 0, swap_last(im, y, axis));
    return PLAIT_OK;
}

/* Scatters by row numbers: the last axis of the indices has length 1. */
static plait_status scatter_nd(pli_import *im) {
    plait_graph *g = im->g;
    bool         adds;
    PLI_TRY(reduction_of(im, &adds));
    const plait_value x = pli_import_in(im, 0), values = pli_import_in(im, 2);
    const plait_shape from = pli_import_shape(im, x);
    PLI_TRY(plait_graph_check(g, im->err));
    if (from.rank < 1) return pli_import_fail(im, PLAIT_ESHAPE, "its input is to have an axis");
    plait_value       n = numbers_of(im, 1, x, 0);
    const plait_shape numbers = pli_import_shape(im, n);
    const int64_t     last[] = { -1 };
    if (numbers.rank < 1 || numbers.dim[numbers.rank - 1] != 1)
        return pli_import_fail(im, PLAIT_EREFUSED,
                               "indices of more than one axis are refused: rows are scattered, by [.., 1]");
    n = plait_op_squeeze(g, n, 1, last);
    const plait_value zeros = plait_op_1(g, "zeros_like", x), ones = plait_op_1(g, "ones_like", values);
    pli_import_out(
        im, 0,
        adds ? plait_op_scatter_add(g, x, n, values)
             : replaced(im, x, plait_op_scatter_add(g, zeros, n, values), plait_op_scatter_add(g, zeros, n, ones)));
    return PLAIT_OK;
}

/* one_hot: `on` at the index's place, else `off`. */
static plait_status one_hot(pli_import *im) {
    plait_graph        *g = im->g;
    double              depth;
    const plait_tensor *ends = pli_import_known(im, 2);
    PLI_TRY(pli_import_number(im, 1, -1, &depth));
    if (depth < 0 || depth > (double)(1 << 30) || ends == NULL || plait_shape_elements(&ends->shape) != 2)
        return pli_import_fail(im, PLAIT_EREFUSED, "it needs a depth and two values that are constants");
    const int64_t     axis = pli_import_int(im, "axis", -1), first[] = { 0 }, next[] = { 1 }, end[] = { 2 };
    const plait_value values = pli_import_fixed(im, 2), off = plait_op_slice(g, values, 1, first, next, NULL),
                      on = plait_op_slice(g, values, 1, next, end, NULL);
    const plait_value numbers = from_zero(im, raw_numbers(im, 0), plait_graph_scalar(g, PLAIT_I64, depth));
    const plait_value hot = plait_op_one_hot(g, numbers, (int64_t)depth, ends->type);
    const plait_value y = plait_op_add(g, off, plait_op_mul(g, hot, plait_op_sub(g, on, off)));
    const int32_t     rank = pli_import_shape(im, y).rank, to = pli_import_axis(im, y, axis);
    int64_t           perm[MOST];
    for (int32_t i = 0; i < rank; i++) perm[i] = i < to ? i : i == to ? rank - 1 : i - 1;
    pli_import_out(im, 0, to == rank - 1 ? y : plait_op_transpose(g, y, rank, perm));
    return PLAIT_OK;
}

/* how: "" largest, "-" smallest */
static plait_status arg(pli_import *im) {
    plait_value      x = pli_import_in(im, 0);
    const plait_attr attrs[] = { plait_attr_int("axis", pli_import_int(im, "axis", 0)),
                                 plait_attr_int("keep", pli_import_int(im, "keepdims", 1) != 0) };
    if (pli_import_int(im, "select_last_index", 0) != 0)
        return pli_import_fail(im, PLAIT_EREFUSED, "select_last_index is refused: of equal ones the first is taken");
    if (im->op->how[0] == '-') x = plait_op_neg(im->g, x);
    pli_import_out(im, 0, plait_graph_op(im->g, "argmax", &x, 1, attrs, 2));
    return PLAIT_OK;
}

static plait_status top_k(pli_import *im) {
    plait_graph *g = im->g;
    int64_t      k;
    int32_t      n;
    PLI_TRY(pli_import_ints(im, 1, 1, &k, &n));
    if (n != 1) return pli_import_fail(im, PLAIT_EFORMAT, "it needs k");
    plait_value   x = pli_import_in(im, 0);
    const int32_t axis = pli_import_axis(im, x, pli_import_int(im, "axis", -1));
    const bool    largest = pli_import_int(im, "largest", 1) != 0;
    x = swap_last(im, x, axis);
    const plait_value y = plait_op_top_k(g, largest ? x : plait_op_neg(g, x), k);
    pli_import_out(im, 0, swap_last(im, largest ? y : plait_op_neg(g, y), axis));
    pli_import_out(im, 1, swap_last(im, plait_graph_output(g, y, 1), axis));
    return PLAIT_OK;
}

const pli_import_op pli_import_numbers[] = {
    { "Gather", gather, NULL, "axis int" },
    { "GatherElements", gather_elements, NULL, "axis int" },
    { "ScatterElements", scatter_elements, NULL, "axis int, reduction text" },
    { "ScatterND", scatter_nd, NULL, "reduction text" },
    { "OneHot", one_hot, NULL, "axis int" },
    { "ArgMax", arg, "", "axis int, keepdims int, select_last_index int" },
    { "ArgMin", arg, "-", "axis int, keepdims int, select_last_index int" },
    { "TopK", top_k, NULL, "axis int, largest int, sorted int" },
    { NULL, NULL, NULL, NULL },
};
