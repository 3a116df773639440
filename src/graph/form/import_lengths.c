/* ONNX ops on the lengths of arrays: Shape, and ops that make an array of given lengths.
 *
 * If all lengths are known, Shape is an array that is known at import, and can serve as shape or axes. If a run decides
 * a length, the shape is computed, and the import remembers whose shape it is. An op that gets it as its shape becomes
 * an op of Plait's that takes the shape of another value. */
#include <string.h>

#include "graph/form/import.h"
#include "graph/kernel.h"
#include <plait/nn.h>

enum { MOST = PLAIT_RANK_MAX };

plait_value pli_import_length(pli_import *im, plait_value x, int32_t axis) {
    const int64_t     length = pli_import_shape(im, x).dim[axis], at[] = { axis };
    const plait_attr  axes = plait_attr_ints("axes", 1, at);
    const plait_value whole = length < 0 ? plait_op_cast(im->g, x, PLAIT_I64) : PLAIT_NONE;
    return length < 0 ? plait_graph_op(im->g, "count", &whole, 1, &axes, 1)
                      : plait_graph_scalar(im->g, PLAIT_I64, (double)length);
}

static int64_t held(int64_t i, int32_t rank) {
    if (i < 0) i += rank;
    return i < 0 ? 0 : i > rank ? rank : i;
}

/* The lengths of axes start .. end - 1. */
static plait_status shape(pli_import *im) {
    const plait_value x = pli_import_in(im, 0);
    const plait_shape all = pli_import_shape(im, x);
    const int64_t     start = held(pli_import_int(im, "start", 0), all.rank),
                  end = held(pli_import_int(im, "end", all.rank), all.rank), first[] = { 0 };
    const int32_t      n = end > start ? (int32_t)(end - start) : 0;
    const plait_tensor lengths = plait_tensor_of(PLAIT_I64, plait_shape_1(n), all.dim + start);
    plait_value        part[MOST];
    bool               known = true;
    PLI_TRY(plait_graph_check(im->g, im->err));
    for (int32_t i = 0; i < n; i++) known = known && all.dim[start + i] >= 0;
    if (known) return pli_import_out_known(im, 0, &lengths);
    for (int32_t i = 0; i < n; i++)
        part[i] = plait_op_expand_dims(im->g, pli_import_length(im, x, (int32_t)start + i), 1, first);
    pli_import_out(im, 0, plait_op_concat(im->g, n, part, 0));
    if (n == all.rank) pli_import_out_shape_of(im, 0, x);
    return PLAIT_OK;
}

/* Makes an array of ones with this type and the shape that input k gives. */
static plait_status ones_of(pli_import *im, int32_t k, plait_type type, plait_value *ones_out) {
    plait_graph      *g = im->g;
    const plait_value like = pli_import_shape_of(im, k);
    plait_shape       shape;
    if (like >= 0) {
        *ones_out = plait_op_1(g, "ones_like", plait_op_cast(g, like, type));
        return PLAIT_OK;
    }
    PLI_TRY(pli_import_ints(im, k, MOST, shape.dim, &shape.rank));
    if (shape.rank < 0) return pli_import_fail(im, PLAIT_EFORMAT, "it needs a shape");
    plait_tensor ones = { .type = type, .shape = shape };
    for (int32_t i = 0; i < shape.rank; i++)
        if (shape.dim[i] < 0) return pli_import_fail(im, PLAIT_ESHAPE, "a length of %lld", (long long)shape.dim[i]);
    if (plait_shape_elements(&shape) < 0) return pli_import_fail(im, PLAIT_ESHAPE, "larger than any array can be");
    PLI_TRY(pli_budget_count(&im->budget, &ones, im->err));
    const int64_t n = plait_shape_elements(&shape);
    ones.data = pli_calloc((size_t)n + 1, plait_type_bytes(type));
    if (ones.data == NULL) return pli_import_fail(im, PLAIT_ENOMEM, "no memory for a constant");
    for (int64_t i = 0; i < n; i++) pli_element_set(&ones, i, 1);
    *ones_out = plait_graph_constant(g, ones);
    pli_free(ones.data);
    return PLAIT_OK;
}

/* x and an array of ones, broadcast together. */
static plait_status expand(pli_import *im) {
    const plait_value x = pli_import_in(im, 0);
    const plait_type  type = plait_graph_describe(im->g, x).type;
    plait_value       ones;
    PLI_TRY(plait_graph_check(im->g, im->err));
    PLI_TRY(ones_of(im, 1, type, &ones));
    pli_import_out(im, 0, type == PLAIT_BOOL ? plait_op_logical_and(im->g, x, ones) : plait_op_mul(im->g, x, ones));
    return PLAIT_OK;
}

/* An array of this shape that has one value everywhere; by default the float 0. */
static plait_status constant_of_shape(pli_import *im) {
    const pli_onnx_attr *given = pli_import_attr(im, "value", PLI_ONNX_TENSOR);
    const float          zero = 0;
    const plait_tensor   preset = plait_tensor_of(PLAIT_F32, plait_shape_1(1), &zero);
    plait_tensor         value = given != NULL ? given->tensor->tensor : preset;
    plait_value          ones;
    if (plait_shape_elements(&value.shape) != 1)
        return pli_import_fail(im, PLAIT_ESHAPE, "its value is to be one element");
    value.shape.rank = 0;
    PLI_TRY(ones_of(im, 0, value.type, &ones));
    const plait_value one = plait_graph_constant(im->g, value);
    pli_import_out(im, 0,
                   value.type == PLAIT_BOOL ? plait_op_logical_and(im->g, ones, one) : plait_op_mul(im->g, ones, one));
    return PLAIT_OK;
}

const pli_import_op pli_import_lengths[] = {
    { "Shape", shape, NULL, "start int, end int" },
    { "Expand", expand, NULL, NULL },
    { "ConstantOfShape", constant_of_shape, NULL, "value tensor" },
    { NULL, NULL, NULL, NULL },
};
