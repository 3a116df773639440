/* Writes Plait's ops as ONNX, with one function for each form. If ONNX's op differs (a required scale, another count of
 * axes), more nodes around it make up the difference. */
#include <math.h>
#include <string.h>

#include "graph/form/export_node.h"

/* --- element by element ----------------------------------------------------------------------------------------- */

static void same(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const char *inputs[65] = { NULL };
    for (int32_t k = 0; k < node->n_inputs && k < 64; k++) inputs[k] = pli_export_in(to, node, k);
    if (node->n_inputs > 64) pli_export_fail(to, PLAIT_EREFUSED, "%s of %d inputs", node->op->name, node->n_inputs);
    pli_export_set(to, node, pli_export_node(to, op->how, inputs, NULL, 0));
}

static void square(pli_export *to, const pli_export_op *op, const pli_node *node) {
    (void)op;
    pli_export_set(to, node, pli_export_2(to, "Mul", pli_export_in(to, node, 0), pli_export_in(to, node, 0)));
}

static void not_equal(pli_export *to, const pli_export_op *op, const pli_node *node) {
    (void)op;
    pli_export_set(
        to, node,
        pli_export_1(to, "Not", pli_export_2(to, "Equal", pli_export_in(to, node, 0), pli_export_in(to, node, 1))));
}

/* x/2 (1 + erf(x / sqrt 2)), because Gelu itself came with opset 20. */
static void gelu(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const plait_tensor t = pli_export_type_in(to, node, 0);
    const char        *x = pli_export_in(to, node, 0);
    (void)op;
    const char *e =
        pli_export_1(to, "Erf", pli_export_2(to, "Mul", x, pli_export_like(to, &t, 0.70710678118654752440)));
    const char *half = pli_export_2(to, "Mul", x, pli_export_like(to, &t, 0.5));
    pli_export_set(to, node, pli_export_2(to, "Mul", half, pli_export_2(to, "Add", e, pli_export_like(to, &t, 1))));
}

static void clip(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const plait_tensor t = pli_export_type_in(to, node, 0);
    const double       low = pli_export_float_of(to, node, "low"), high = pli_export_float_of(to, node, "high");
    const char *const  inputs[] = { pli_export_in(to, node, 0), isinf(low) ? "" : pli_export_like(to, &t, low),
                                   isinf(high) ? "" : pli_export_like(to, &t, high), NULL };
    (void)op;
    pli_export_set(to, node, pli_export_node(to, "Clip", inputs, NULL, 0));
}

/* LeakyRelu, Elu: their only attribute is ONNX's alpha. */
static void sloped(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const pli_onnx_attr a = pli_export_float("alpha", to->graph->attr[node->attr].u.f);
    pli_export_set(to, node, pli_export_with(to, op->how, pli_export_in(to, node, 0), &a, 1));
}

static void cast(pli_export *to, const pli_export_op *op, const pli_node *node) {
    (void)op;
    pli_export_set(to, node,
                   pli_export_cast(to, pli_export_in(to, node, 0), (plait_type)pli_export_int_of(to, node, "type")));
}

/* --- over axes -------------------------------------------------------------------------------------------------- */

static void reduce(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const plait_attr *axes = pli_export_attr(to, node, "axes");
    pli_export_set(to, node,
                   pli_export_reduced(to, op->how, pli_export_in(to, node, 0), axes->n, axes->u.ints,
                                      pli_export_int_of(to, node, "keep") != 0));
}

static void argmax(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const pli_onnx_attr attrs[] = { pli_export_int("axis", pli_export_int_of(to, node, "axis")),
                                    pli_export_int("keepdims", pli_export_int_of(to, node, "keep") != 0) };
    (void)op;
    pli_export_set(to, node, pli_export_with(to, "ArgMax", pli_export_in(to, node, 0), attrs, 2));
}

static void top_k(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const int64_t     k = pli_export_int_of(to, node, "k");
    const char *const inputs[] = { pli_export_in(to, node, 0), pli_export_ints(to, 1, &k), NULL };
    (void)op;
    pli_export_nodes(to, "TopK", inputs, NULL, 0, 2, &to->value[node->value]);
}

/* --- shapes ----------------------------------------------------------------------------------------------------- */

/* Ops whose lengths or axes are a second input in ONNX; how: ONNX's op. */
static void second_input(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const plait_attr   *a = &to->graph->attr[node->attr];
    const pli_onnx_attr literal = pli_export_int("allowzero", 1);
    bool                zero = false;
    for (int32_t i = 0; i < a->n; i++) zero = zero || a->u.ints[i] == 0;
    const char *const inputs[] = { pli_export_in(to, node, 0), pli_export_ints(to, a->n, a->u.ints), NULL };
    pli_export_set(to, node,
                   pli_export_node(to, op->how, inputs, &literal, zero && strcmp(op->how, "Reshape") == 0 ? 1 : 0));
}

static void transpose(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const pli_onnx_attr perm = pli_export_list_of(to, node, "perm", "perm");
    (void)op;
    pli_export_set(to, node, pli_export_with(to, "Transpose", pli_export_in(to, node, 0), &perm, perm.n > 0 ? 1 : 0));
}

static void concat(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const pli_onnx_attr axis = pli_export_int("axis", pli_export_int_of(to, node, "axis"));
    const char        **inputs = pli_array((size_t)node->n_inputs + 1, sizeof *inputs);
    (void)op;
    if (inputs == NULL) {
        pli_export_fail(to, PLAIT_ENOMEM, "no memory for an ONNX model");
        return;
    }
    for (int32_t k = 0; k < node->n_inputs; k++) inputs[k] = pli_export_in(to, node, k);
    inputs[node->n_inputs] = NULL;
    pli_export_set(to, node, pli_export_node(to, "Concat", inputs, &axis, 1));
    pli_free(inputs);
}

static void split(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const pli_onnx_attr axis = pli_export_int("axis", pli_export_int_of(to, node, "axis"));
    const char *const   inputs[] = { pli_export_in(to, node, 0),
                                   pli_export_attr(to, node, "lengths")->n > 0 ? pli_export_ints_of(to, node, "lengths")
                                                                                 : NULL,
                                     NULL };
    (void)op;
    pli_export_nodes(to, "Split", inputs, &axis, 1, node->n_values, &to->value[node->value]);
}

static void slice(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const int32_t n = pli_export_attr(to, node, "starts")->n;
    int64_t       first[PLAIT_RANK_MAX], ones[PLAIT_RANK_MAX];
    (void)op;
    for (int32_t i = 0; i < n && i < PLAIT_RANK_MAX; i++) {
        first[i] = i;
        ones[i] = 1;
    }
    const char *axes =
        pli_export_attr(to, node, "axes")->n > 0 ? pli_export_ints_of(to, node, "axes") : pli_export_ints(to, n, first);
    const char       *steps = pli_export_attr(to, node, "steps")->n > 0 ? pli_export_ints_of(to, node, "steps")
                                                                        : pli_export_ints(to, n, ones);
    const char *const inputs[] = { pli_export_in(to, node, 0),
                                   pli_export_ints_of(to, node, "starts"),
                                   pli_export_ints_of(to, node, "ends"),
                                   axes,
                                   steps,
                                   NULL };
    pli_export_set(to, node, pli_export_node(to, "Slice", inputs, NULL, 0));
}

static void pad(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const plait_tensor t = pli_export_type_in(to, node, 0);
    const plait_attr  *before = pli_export_attr(to, node, "before"), *after = pli_export_attr(to, node, "after");
    int64_t            pads[2 * PLAIT_RANK_MAX];
    (void)op;
    for (int32_t i = 0; i < t.shape.rank; i++) {
        pads[i] = before->u.ints[i];
        pads[t.shape.rank + i] = after->u.ints[i];
    }
    const char *const inputs[] = { pli_export_in(to, node, 0), pli_export_ints(to, 2 * t.shape.rank, pads),
                                   pli_export_like(to, &t, pli_export_float_of(to, node, "value")), NULL };
    pli_export_set(to, node, pli_export_node(to, "Pad", inputs, NULL, 0));
}

/* Pad, which in opset 17 has the modes reflect and edge only. */
static void extend(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const plait_tensor  t = pli_export_type_in(to, node, 0);
    const char         *mode = pli_export_attr(to, node, "mode")->u.text;
    const int64_t       given = pli_export_int_of(to, node, "axis"), axis = given < 0 ? given + t.shape.rank : given;
    const pli_onnx_attr how = pli_export_text("mode", mode);
    int64_t             pads[2 * PLAIT_RANK_MAX] = { 0 };
    (void)op;
    if (strcmp(mode, "wrap") == 0) pli_export_fail(to, PLAIT_EREFUSED, "extend by wrap is refused: it is of opset 19");
    pads[axis] = pli_export_int_of(to, node, "before");
    pads[t.shape.rank + axis] = pli_export_int_of(to, node, "after");
    const char *const inputs[] = { pli_export_in(to, node, 0), pli_export_ints(to, 2 * t.shape.rank, pads), NULL };
    pli_export_set(to, node, pli_export_node(to, "Pad", inputs, &how, 1));
}

/* The lengths of x, with this length for this axis. */
static const char *lengths_with(pli_export *to, const char *x, int32_t rank, int64_t axis, int64_t length) {
    const pli_onnx_attr      along = pli_export_int("axis", 0);
    const int64_t            none = 0, next = axis + 1, end = rank;
    const char              *shape = pli_export_1(to, "Shape", x);
    const char *const        before[] = { shape, pli_export_ints(to, 1, &none), pli_export_ints(to, 1, &axis), NULL },
                      *const after[] = { shape, pli_export_ints(to, 1, &next), pli_export_ints(to, 1, &end), NULL };
    const char *const        parts[] = { pli_export_node(to, "Slice", before, NULL, 0), pli_export_ints(to, 1, &length),
                                         pli_export_node(to, "Slice", after, NULL, 0), NULL };
    return pli_export_node(to, "Concat", parts, &along, 1);
}

/* Resize, by scales or to sizes. */
static void resize(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const plait_tensor t = pli_export_type_in(to, node, 0);
    const int64_t      given = pli_export_int_of(to, node, "axis"), axis = given < 0 ? given + t.shape.rank : given,
                  length = pli_export_int_of(to, node, "length");
    const double      scale = pli_export_float_of(to, node, "scale");
    const char       *places = pli_export_attr(to, node, "places")->u.text, *x = pli_export_in(to, node, 0);
    const char *const modes = pli_export_attr(to, node, "mode")->u.text;
    float             scales[PLAIT_RANK_MAX];
    (void)op;
    if (strcmp(places, "half_pixel_symmetric") == 0 || (scale > 0 && length >= 0))
        pli_export_fail(to, PLAIT_EREFUSED, "resize with %s is refused: opset 17 has none",
                        scale > 0 && length >= 0 ? "a scale and a length" : places);
    for (int32_t i = 0; i < t.shape.rank; i++) scales[i] = i == axis ? (float)scale : 1;
    const plait_tensor  by = plait_tensor_of(PLAIT_F32, plait_shape_1(t.shape.rank), scales);
    const bool          sized = length >= 0;
    const pli_onnx_attr attrs[] = {
        pli_export_text("mode", modes), pli_export_text("coordinate_transformation_mode", places),
        pli_export_text("nearest_mode", pli_export_attr(to, node, "rounds")->u.text),
        pli_export_float("cubic_coeff_a", pli_export_float_of(to, node, "cubic")),
        pli_export_int("exclude_outside", pli_export_int_of(to, node, "exclude") != 0 && strcmp(modes, "cubic") == 0)
    };
    const char *const inputs[] = { x, "", sized ? "" : pli_export_array(to, "scales", &by, false),
                                   sized ? lengths_with(to, x, t.shape.rank, axis, length) : NULL, NULL };
    pli_export_set(to, node, pli_export_node(to, "Resize", inputs, attrs, 5));
}

/* An array with the shape of another that has one number everywhere. */
static const char *filled_like(pli_export *to, const char *like, plait_type type, double x) {
    uint64_t              room = 0;
    const pli_onnx_tensor value = { .name = "", .tensor = { .type = type, .shape = plait_shape_1(1), .data = &room } };
    const pli_onnx_attr   a = { .name = "value", .kind = PLI_ONNX_TENSOR, .tensor = &value };
    const double          f64 = x;
    const float           f32 = (float)x;
    const int64_t         i64 = (int64_t)x;
    memcpy(&room,
           type == PLAIT_F64   ? (const void *)&f64
           : type == PLAIT_F32 ? (const void *)&f32
                               : (const void *)&i64,
           plait_type_bytes(type));
    return pli_export_with(to, "ConstantOfShape", pli_export_1(to, "Shape", like), &a, 1);
}

/* how: "0", "1" */
static void fill(pli_export *to, const pli_export_op *op, const pli_node *node) {
    pli_export_set(
        to, node, filled_like(to, pli_export_in(to, node, 0), pli_export_type_in(to, node, 0).type, op->how[0] == '1'));
}

static void broadcast_like(pli_export *to, const pli_export_op *op, const pli_node *node) {
    (void)op;
    pli_export_set(
        to, node,
        pli_export_2(to, "Expand", pli_export_in(to, node, 0), pli_export_1(to, "Shape", pli_export_in(to, node, 1))));
}

static void reshape_like(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const char *const   inputs[] = { pli_export_in(to, node, 0), pli_export_1(to, "Shape", pli_export_in(to, node, 1)),
                                     NULL };
    const pli_onnx_attr literal = pli_export_int("allowzero", 1);
    (void)op;
    pli_export_set(to, node, pli_export_node(to, "Reshape", inputs, &literal, 1));
}

/* The product of the lengths of some axes; none: of all. */
static void count(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const plait_attr   *axes = pli_export_attr(to, node, "axes");
    const char         *shape = pli_export_1(to, "Shape", pli_export_in(to, node, 0));
    const pli_onnx_attr keep = pli_export_int("keepdims", 0);
    (void)op;
    if (axes->n > 0) {
        int64_t at[PLAIT_RANK_MAX];
        for (int32_t i = 0; i < axes->n; i++)
            at[i] =
                axes->u.ints[i] < 0 ? axes->u.ints[i] + pli_export_type_in(to, node, 0).shape.rank : axes->u.ints[i];
        shape = pli_export_2(to, "Gather", shape, pli_export_ints(to, axes->n, at));
    }
    pli_export_set(to, node,
                   pli_export_cast(to, pli_export_with(to, "ReduceProd", shape, &keep, 1),
                                   pli_value_tensor(to->graph, node->value).type));
}

/* --- indexed by numbers
 * -------------------------------------------------------------------------------------------------- */

static void gather_last(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const pli_onnx_attr axis = pli_export_int("axis", -1);
    const char *const   inputs[] = { pli_export_in(to, node, 0), pli_export_in(to, node, 1), NULL };
    (void)op;
    pli_export_set(to, node, pli_export_node(to, "GatherElements", inputs, &axis, 1));
}

static void scatter_last(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const pli_onnx_attr attrs[] = { pli_export_int("axis", -1), pli_export_text("reduction", "add") };
    const char *const inputs[] = { filled_like(to, pli_export_in(to, node, 0), pli_export_type_in(to, node, 0).type, 0),
                                   pli_export_in(to, node, 1), pli_export_in(to, node, 2), NULL };
    (void)op;
    pli_export_set(to, node, pli_export_node(to, "ScatterElements", inputs, attrs, 2));
}

static void scatter_add(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const pli_onnx_attr adds = pli_export_text("reduction", "add");
    const int64_t       last = -1;
    const char *const   inputs[] = { pli_export_in(to, node, 0),
                                     pli_export_2(to, "Unsqueeze", pli_export_in(to, node, 1),
                                                  pli_export_ints(to, 1, &last)),
                                     pli_export_in(to, node, 2), NULL };
    (void)op;
    pli_export_set(to, node, pli_export_node(to, "ScatterND", inputs, &adds, 1));
}

/* Plait makes rows of zeros of negative numbers, but ONNX counts them from the end: so they are replaced by a number
 * beyond the end. */
static void one_hot(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const int64_t     depth = pli_export_int_of(to, node, "depth");
    const plait_type  type = (plait_type)pli_export_int_of(to, node, "type");
    const char       *n = pli_export_in(to, node, 0), *zero = pli_export_number(to, PLAIT_I64, 0);
    const char *const moved[] = { pli_export_2(to, "Less", n, zero), pli_export_number(to, PLAIT_I64, (double)depth), n,
                                  NULL };
    const char       *ends[] = { pli_export_number(to, type, 0), pli_export_number(to, type, 1), NULL };
    const pli_onnx_attr axis = pli_export_int("axis", 0);
    const int64_t       first = 0;
    (void)op;
    for (int k = 0; k < 2; k++) ends[k] = pli_export_2(to, "Unsqueeze", ends[k], pli_export_ints(to, 1, &first));
    const char *const inputs[] = { pli_export_node(to, "Where", moved, NULL, 0),
                                   pli_export_number(to, PLAIT_I64, (double)depth),
                                   pli_export_node(to, "Concat", ends, &axis, 1), NULL };
    pli_export_set(to, node, pli_export_node(to, "OneHot", inputs, NULL, 0));
}

const pli_export_op pli_export_ops[] = {
    { "add", same, "Add" },
    { "sub", same, "Sub" },
    { "mul", same, "Mul" },
    { "div", same, "Div" },
    { "pow", same, "Pow" },
    { "maximum", same, "Max" },
    { "minimum", same, "Min" },
    { "add_n", same, "Sum" },
    { "neg", same, "Neg" },
    { "abs", same, "Abs" },
    { "sign", same, "Sign" },
    { "sqrt", same, "Sqrt" },
    { "exp", same, "Exp" },
    { "log", same, "Log" },
    { "reciprocal", same, "Reciprocal" },
    { "erf", same, "Erf" },
    { "sigmoid", same, "Sigmoid" },
    { "tanh", same, "Tanh" },
    { "relu", same, "Relu" },
    { "softplus", same, "Softplus" },
    { "identity", same, "Identity" },
    { "stop_gradient", same, "Identity" },
    { "dropout", same, "Identity" },
    { "equal", same, "Equal" },
    { "less", same, "Less" },
    { "less_equal", same, "LessOrEqual" },
    { "greater", same, "Greater" },
    { "greater_equal", same, "GreaterOrEqual" },
    { "logical_and", same, "And" },
    { "logical_or", same, "Or" },
    { "logical_not", same, "Not" },
    { "where", same, "Where" },
    { "square", square, NULL },
    { "not_equal", not_equal, NULL },
    { "gelu", gelu, NULL },
    { "clip", clip, NULL },
    { "leaky_relu", sloped, "LeakyRelu" },
    { "elu", sloped, "Elu" },
    { "cast", cast, NULL },
    { "sum", reduce, "ReduceSum" },
    { "mean", reduce, "ReduceMean" },
    { "max", reduce, "ReduceMax" },
    { "min", reduce, "ReduceMin" },
    { "argmax", argmax, NULL },
    { "top_k", top_k, NULL },
    { "reshape", second_input, "Reshape" },
    { "squeeze", second_input, "Squeeze" },
    { "expand_dims", second_input, "Unsqueeze" },
    { "transpose", transpose, NULL },
    { "concat", concat, NULL },
    { "split", split, NULL },
    { "slice", slice, NULL },
    { "pad", pad, NULL },
    { "extend", extend, NULL },
    { "resize", resize, NULL },
    { "zeros_like", fill, "0" },
    { "ones_like", fill, "1" },
    { "broadcast_like", broadcast_like, NULL },
    { "reshape_like", reshape_like, NULL },
    { "count", count, NULL },
    { "gather", same, "Gather" },
    { "get_rows", same, "Gather" },
    { "gather_last", gather_last, NULL },
    { "scatter_last", scatter_last, NULL },
    { "scatter_add", scatter_add, NULL },
    { "one_hot", one_hot, NULL },
    { NULL, NULL, NULL },
};
