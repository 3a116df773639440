/* ONNX ops that work element by element, choices, casts and random numbers. */
#include <math.h>
#include <string.h>

#include "graph/form/import.h"
#include <plait/nn.h>

static plait_status one(pli_import *im) {
    pli_import_out(im, 0, plait_op_1(im->g, im->op->how, pli_import_in(im, 0)));
    return PLAIT_OK;
}

static plait_status two(pli_import *im) {
    pli_import_out(im, 0, plait_op_2(im->g, im->op->how, pli_import_in(im, 0), pli_import_in(im, 1)));
    return PLAIT_OK;
}

/* Pow: the exponent may have another type. */
static plait_status power(pli_import *im) {
    const plait_value x = pli_import_in(im, 0);
    plait_value       y = pli_import_in(im, 1);
    const plait_type  type = plait_graph_describe(im->g, x).type;
    if (y >= 0 && plait_graph_describe(im->g, y).type != type) y = plait_op_cast(im->g, y, type);
    pli_import_out(im, 0, plait_op_pow(im->g, x, y));
    return PLAIT_OK;
}

/* Ops with any number of inputs; how: Plait's op with two inputs, or "mean". */
static plait_status many(pli_import *im) {
    const bool  mean = strcmp(im->op->how, "mean") == 0;
    plait_value y = pli_import_in(im, 0);
    for (int32_t k = 1; k < im->node->n_in; k++)
        y = plait_op_2(im->g, mean ? "add" : im->op->how, y, pli_import_in(im, k));
    if (mean && y >= 0) y = plait_op_mul(im->g, y, pli_import_scalar(im, y, 1.0 / im->node->n_in));
    pli_import_out(im, 0, y);
    return PLAIT_OK;
}

static plait_status clip(pli_import *im) {
    plait_value y = pli_import_in(im, 0);
    if (pli_import_has(im, 1)) y = plait_op_maximum(im->g, y, pli_import_in(im, 1));
    if (pli_import_has(im, 2)) y = plait_op_minimum(im->g, y, pli_import_in(im, 2));
    pli_import_out(im, 0, y);
    return PLAIT_OK;
}

static plait_status leaky_relu(pli_import *im) {
    pli_import_out(im, 0,
                   plait_op_leaky_relu(im->g, pli_import_in(im, 0), pli_import_float(im, "alpha", (double)0.01f)));
    return PLAIT_OK;
}

static plait_status elu(pli_import *im) {
    pli_import_out(im, 0, plait_op_elu(im->g, pli_import_in(im, 0), pli_import_float(im, "alpha", 1)));
    return PLAIT_OK;
}

static plait_value times(pli_import *im, plait_value x, double by) {
    return plait_op_mul(im->g, x, pli_import_scalar(im, x, by));
}

static plait_status selu(pli_import *im) {
    const double alpha = pli_import_float(im, "alpha", 1.6732632423543772848170429916717),
                 gamma = pli_import_float(im, "gamma", 1.0507009873554804934193349852946);
    pli_import_out(im, 0, times(im, plait_op_elu(im->g, pli_import_in(im, 0), alpha), gamma));
    return PLAIT_OK;
}

static plait_value hard_sigmoid_of(pli_import *im, plait_value x, double alpha, double beta) {
    return plait_op_clip(im->g, plait_op_add(im->g, times(im, x, alpha), pli_import_scalar(im, x, beta)), 0, 1);
}

static plait_status hard_sigmoid(pli_import *im) {
    pli_import_out(im, 0,
                   hard_sigmoid_of(im, pli_import_in(im, 0), pli_import_float(im, "alpha", 0.2),
                                   pli_import_float(im, "beta", 0.5)));
    return PLAIT_OK;
}

static plait_status hard_swish(pli_import *im) {
    const plait_value x = pli_import_in(im, 0);
    pli_import_out(im, 0, plait_op_mul(im->g, x, hard_sigmoid_of(im, x, 1.0 / 6, 0.5)));
    return PLAIT_OK;
}

static plait_status prelu(pli_import *im) {
    const plait_value x = pli_import_in(im, 0), low = plait_op_neg(im->g, plait_op_relu(im->g, plait_op_neg(im->g, x)));
    pli_import_out(im, 0, plait_op_add(im->g, plait_op_relu(im->g, x), plait_op_mul(im->g, low, pli_import_in(im, 1))));
    return PLAIT_OK;
}

/* x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), or by the error function. */
static plait_status gelu(pli_import *im) {
    const char       *how = pli_import_text(im, "approximate", "none");
    const plait_value x = pli_import_in(im, 0);
    plait_graph      *g = im->g;
    if (strcmp(how, "none") == 0) {
        pli_import_out(im, 0, plait_op_gelu(g, x));
        return PLAIT_OK;
    }
    if (strcmp(how, "tanh") != 0)
        return pli_import_fail(im, PLAIT_ENAME, "approximate '%.20s'; known are none and tanh", how);
    const plait_value cube = plait_op_mul(g, x, plait_op_square(g, x));
    const plait_value t =
        plait_op_tanh(g, times(im, plait_op_add(g, x, times(im, cube, 0.044715)), 0.79788456080286535588));
    pli_import_out(im, 0, times(im, plait_op_mul(g, x, plait_op_add(g, t, pli_import_scalar(im, x, 1))), 0.5));
    return PLAIT_OK;
}

static plait_status where(pli_import *im) {
    pli_import_out(im, 0, plait_op_where(im->g, pli_import_in(im, 0), pli_import_in(im, 1), pli_import_in(im, 2)));
    return PLAIT_OK;
}

/* The type in an attribute that numbers it as ONNX does. */
static plait_status type_of(pli_import *im, const char *name, int64_t absent, plait_type *out) {
    const int64_t number = pli_import_int(im, name, absent);
    const int32_t type = number >= 0 && number <= INT32_MAX ? pli_onnx_type_of((int32_t)number) : -1;
    if (type < 0)
        return pli_import_fail(im, PLAIT_EREFUSED, "to ONNX's type %lld; known are " PLI_ONNX_TYPES, (long long)number);
    *out = (plait_type)type;
    return PLAIT_OK;
}

static plait_status cast(pli_import *im) {
    plait_type type;
    PLI_TRY(type_of(im, "to", -1, &type));
    pli_import_out(im, 0, plait_op_cast(im->g, pli_import_in(im, 0), type));
    return PLAIT_OK;
}

/* Refuses a seed: it asks for ONNX's own random numbers, which Plait cannot reproduce. */
static plait_status no_seed(const pli_import *im) {
    for (int32_t i = 0; i < im->node->n_attrs; i++)
        if (strcmp(im->node->attr[i].name, "seed") == 0)
            return pli_import_fail(
                im, PLAIT_EREFUSED,
                "attribute 'seed' is refused: numbers are drawn by the session's seed; leave it out");
    return PLAIT_OK;
}

static plait_status dropout(pli_import *im) {
    double rate, trains;
    PLI_TRY(pli_import_number(im, 1, 0.5, &rate));
    PLI_TRY(pli_import_number(im, 2, 0, &trains));
    if (trains != 0) PLI_TRY(no_seed(im));
    const plait_value x = pli_import_in(im, 0);
    pli_import_out(im, 0, trains != 0 ? plait_op_dropout(im->g, x, rate) : x);
    if (trains == 0 && pli_import_wants(im, 1)) /* the mask is all true */
        pli_import_out(im, 1, plait_op_1(im->g, "ones_like", plait_op_cast(im->g, x, PLAIT_BOOL)));
    return PLAIT_OK;
}

/* how: Plait's op. Its seed is the session's. */
static plait_status random_numbers(pli_import *im) {
    const bool   uniform = strcmp(im->op->how, "random_uniform") == 0, like = im->node->n_in > 0;
    const double a = uniform ? pli_import_float(im, "low", 0) : pli_import_float(im, "mean", 0),
                 b = uniform ? pli_import_float(im, "high", 1) : pli_import_float(im, "scale", 1);
    const plait_value x = pli_import_in(im, 0);
    plait_shape       shape = { .rank = 0 };
    plait_type        type;
    PLI_TRY(no_seed(im));
    PLI_TRY(type_of(im, "dtype", like ? pli_onnx_type(plait_graph_describe(im->g, x).type) : 1, &type));
    if (!like) shape.rank = pli_import_list(im, "shape", PLAIT_RANK_MAX, shape.dim);
    if (shape.rank < 0) return pli_import_fail(im, PLAIT_ESHAPE, "it needs a shape of at most %d axes", PLAIT_RANK_MAX);
    const plait_attr attrs[] = { plait_attr_type("type", type), plait_attr_float(uniform ? "low" : "mean", a),
                                 plait_attr_float(uniform ? "high" : "deviation", b),
                                 plait_attr_ints("shape", shape.rank, shape.dim) };
    pli_import_out(im, 0, plait_graph_op(im->g, im->op->how, &x, like ? 1 : 0, attrs, like ? 3 : 4));
    return PLAIT_OK;
}

/* Constant: it is known at import, so shapes and axes may be given by it. */
static plait_status constant(pli_import *im) {
    const pli_onnx_attr *value = pli_import_attr(im, "value", PLI_ONNX_TENSOR),
                        *i = pli_import_attr(im, "value_int", PLI_ONNX_INT),
                        *f = pli_import_attr(im, "value_float", PLI_ONNX_FLOAT),
                        *is = pli_import_attr(im, "value_ints", PLI_ONNX_INTS),
                        *fs = pli_import_attr(im, "value_floats", PLI_ONNX_FLOATS);
    const plait_shape one_axis = plait_shape_1(is != NULL ? is->n : fs != NULL ? fs->n : 0), scalar = { .rank = 0 };
    plait_tensor      t;
    if (im->node->n_attrs > 1) return pli_import_fail(im, PLAIT_EFORMAT, "a constant of more than one value");
    if (value != NULL)
        t = value->tensor->tensor;
    else if (i != NULL)
        t = plait_tensor_of(PLAIT_I64, scalar, &i->i);
    else if (f != NULL)
        t = plait_tensor_of(PLAIT_F32, scalar, &f->f);
    else if (is != NULL)
        t = plait_tensor_of(PLAIT_I64, one_axis, is->ints);
    else if (fs != NULL)
        t = plait_tensor_of(PLAIT_F32, one_axis, fs->floats);
    else
        return pli_import_fail(im, PLAIT_EREFUSED, "a constant that is no array of numbers");
    return pli_import_out_known(im, 0, &t);
}

const pli_import_op pli_import_elements[] = {
    { "Abs", one, "abs", NULL },
    { "Neg", one, "neg", NULL },
    { "Sign", one, "sign", NULL },
    { "Sqrt", one, "sqrt", NULL },
    { "Exp", one, "exp", NULL },
    { "Log", one, "log", NULL },
    { "Reciprocal", one, "reciprocal", NULL },
    { "Erf", one, "erf", NULL },
    { "Sigmoid", one, "sigmoid", NULL },
    { "Tanh", one, "tanh", NULL },
    { "Relu", one, "relu", NULL },
    { "Softplus", one, "softplus", NULL },
    { "Not", one, "logical_not", NULL },
    { "Identity", one, "identity", NULL },
    { "Add", two, "add", NULL },
    { "Sub", two, "sub", NULL },
    { "Mul", two, "mul", NULL },
    { "Div", two, "div", NULL },
    { "Pow", power, NULL, NULL },
    { "Equal", two, "equal", NULL },
    { "Less", two, "less", NULL },
    { "LessOrEqual", two, "less_equal", NULL },
    { "Greater", two, "greater", NULL },
    { "GreaterOrEqual", two, "greater_equal", NULL },
    { "And", two, "logical_and", NULL },
    { "Or", two, "logical_or", NULL },
    { "Max", many, "maximum", NULL },
    { "Min", many, "minimum", NULL },
    { "Sum", many, "add", NULL },
    { "Mean", many, "mean", NULL },
    { "Clip", clip, NULL, NULL },
    { "LeakyRelu", leaky_relu, NULL, "alpha float" },
    { "Elu", elu, NULL, "alpha float" },
    { "Selu", selu, NULL, "alpha float, gamma float" },
    { "HardSigmoid", hard_sigmoid, NULL, "alpha float, beta float" },
    { "HardSwish", hard_swish, NULL, NULL },
    { "PRelu", prelu, NULL, NULL },
    { "Gelu", gelu, NULL, "approximate text" },
    { "Where", where, NULL, NULL },
    { "Cast", cast, NULL, "to int, saturate int" },
    { "Dropout", dropout, NULL, "seed int" },
    { "RandomUniform", random_numbers, "random_uniform", "dtype int, high float, low float, seed float, shape ints" },
    { "RandomNormal", random_numbers, "random_normal", "dtype int, mean float, scale float, seed float, shape ints" },
    { "RandomUniformLike", random_numbers, "random_uniform", "dtype int, high float, low float, seed float" },
    { "RandomNormalLike", random_numbers, "random_normal", "dtype int, mean float, scale float, seed float" },
    { "Constant", constant, NULL,
      "value tensor, value_float float, value_floats floats, value_int int, value_ints ints" },
    { NULL, NULL, NULL, NULL },
};
