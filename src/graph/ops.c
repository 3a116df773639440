/* The registry of ops, the check that an op's table is complete, and inference that many ops share. */
#include "graph/ops/ops.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PLI_OP_ADDRESS(name) &pli_op_##name,
static const plait_op *const ops[] = { PLI_OPS(PLI_OP_ADDRESS) NULL };
#undef PLI_OP_ADDRESS

const plait_op *const *pli_ops(void) { return ops; }

plait_status plait_call_fail(const plait_call *call, plait_status code, const char *format, ...) {
    char text[400] = "";
    if (format != NULL) {
        va_list list;
        va_start(list, format);
        vsnprintf(text, sizeof text, format, list);
        va_end(list);
    }
    return pli_fail(call == NULL ? NULL : call->error, code, "%s", format != NULL ? text : plait_status_text(code));
}

/* --- is a table complete? ----------------------------------------------------------------------------------------- */

static bool is_name(const char *name) {
    if (name == NULL || name[0] == '\0' || strlen(name) > 40) return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") == strlen(name);
}

static bool has_map(const plait_op *op) {
    for (int32_t t = 0; t < PLAIT_TYPES; t++)
        if (op->map[t] != NULL) return true;
    return false;
}

plait_status pli_op_check(const plait_op *op, plait_error *err) {
    enum { ATTRS_MAX = 16 };
    if (op == NULL || op->size != sizeof *op || !is_name(op->name))
        return pli_fail(err, PLAIT_EINVAL, "an op needs its size and a name of letters, digits, '_' and '.'");
    if (op->summary == NULL || op->min_inputs < 0 || op->max_inputs < op->min_inputs || op->outputs < 0 ||
        op->outputs > PLI_OUTPUTS_MAX)
        return pli_fail(err, PLAIT_EINVAL, "op %s needs a summary, and counts of inputs and outputs", op->name);
    if (op->n_attrs < 0 || op->n_attrs > ATTRS_MAX || (op->n_attrs > 0 && op->attrs == NULL))
        return pli_fail(err, PLAIT_EINVAL, "op %s has %d attributes; 0 to %d, as a list", op->name, op->n_attrs,
                        ATTRS_MAX);
    if (op->outputs == 0 && (op->n_attrs == 0 || op->attrs[0].preset.kind != PLAIT_ATTR_INT))
        return pli_fail(err, PLAIT_EINVAL, "op %s of a variable number of outputs needs it as attribute 0, an int",
                        op->name);
    if (op->infer == NULL && !has_map(op))
        return pli_fail(err, PLAIT_EINVAL, "op %s needs infer: which shapes go in and come out", op->name);
    for (int32_t i = 0; op->kernels != NULL && op->kernels[i] != NULL; i++)
        if (op->kernels[i]->run == NULL || op->kernels[i]->name == NULL)
            return pli_fail(err, PLAIT_EINVAL, "kernel %d of op %s needs a name and run", i, op->name);
    return PLAIT_OK;
}

/* --- broadcasting ---------------------------------------------------------------------------------------------- */

/* The length of one axis; -2: the lengths do not broadcast. */
static int64_t broadcast_axis(int64_t a, int64_t b) {
    if (a == b || b == 1) return a;
    if (a == 1) return b;
    if (a == PLAIT_ANY || b == PLAIT_ANY) return a == PLAIT_ANY ? b : a;
    return -2;
}

bool pli_broadcast(const plait_shape *a, const plait_shape *b, plait_shape *out) {
    const int32_t rank = a->rank > b->rank ? a->rank : b->rank;
    plait_shape   shape = { .rank = rank };
    for (int32_t i = 0; i < rank; i++) {
        const int32_t ia = i - (rank - a->rank), ib = i - (rank - b->rank);
        shape.dim[i] = broadcast_axis(ia < 0 ? 1 : a->dim[ia], ib < 0 ? 1 : b->dim[ib]);
        if (shape.dim[i] == -2) return false;
    }
    *out = shape;
    return true;
}

plait_status pli_infer_map(const plait_op *op, const plait_call *call) {
    const plait_type type = call->in[0].type;
    if (op->map[type] == NULL && !(type == PLAIT_BF16 && op->map[PLAIT_F32] != NULL))
        return plait_call_fail(call, PLAIT_ESHAPE, "not for elements of type %s", plait_type_name(type));
    plait_shape shape = call->in[0].shape;
    for (int32_t i = 1; i < call->n_in; i++) {
        if (call->in[i].type != type)
            return plait_call_fail(call, PLAIT_ESHAPE, "inputs of types %s and %s; cast one of them",
                                   plait_type_name(type), plait_type_name(call->in[i].type));
        if (!pli_broadcast(&shape, &call->in[i].shape, &shape))
            return plait_call_fail(call, PLAIT_ESHAPE, "shapes do not go together");
    }
    call->out[0] = (plait_tensor){ .type = (op->flags & PLAIT_OP_BOOL) != 0 ? PLAIT_BOOL : type, .shape = shape };
    return PLAIT_OK;
}

plait_status pli_infer_as_input(const plait_call *call) {
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = call->in[0].shape };
    return PLAIT_OK;
}

plait_status pli_infer_done(const plait_call *call) {
    call->out[0] = (plait_tensor){ .type = PLAIT_BOOL, .shape = { .rank = 0 } };
    return PLAIT_OK;
}

/* --- axes ------------------------------------------------------------------------------------------------------ */

plait_status pli_axis_find(const plait_call *call, int64_t attr, int32_t rank, int32_t *axis_out) {
    if (attr < -rank || attr >= rank)
        return plait_call_fail(call, PLAIT_ESHAPE, "axis %lld of an array of %d axes", (long long)attr, rank);
    *axis_out = (int32_t)(attr < 0 ? attr + rank : attr);
    return PLAIT_OK;
}

plait_status pli_axes_of(const plait_call *call, const plait_attr *attr, int32_t rank, bool none_is_all,
                         pli_axes *axes_out) {
    const bool all = none_is_all && attr->n == 0;
    *axes_out = (pli_axes){ .n = all ? rank : attr->n };
    for (int32_t i = 0; all && i < rank; i++) axes_out->in[i] = true;
    for (int32_t k = 0; k < attr->n; k++) {
        int32_t axis;
        PLI_TRY(pli_axis_find(call, attr->u.ints[k], rank, &axis));
        if (axes_out->in[axis]) return plait_call_fail(call, PLAIT_ESHAPE, "axis %d twice", axis);
        axes_out->in[axis] = true;
    }
    return PLAIT_OK;
}

/* --- for gradients --------------------------------------------------------------------------------------------- */

plait_value pli_unbroadcast(plait_graph *g, plait_value value, plait_value like) {
    if (value < 0 || like < 0) return PLAIT_NONE;
    const pli_value *one = &g->value[value], *other = &g->value[like];
    if (one->rank == other->rank && one->dim == other->dim) return value; /* the same array of lengths, known or not */
    const plait_tensor a = pli_value_tensor(g, value), b = pli_value_tensor(g, like);
    bool               equal = a.shape.rank == b.shape.rank;
    for (int32_t i = 0; equal && i < a.shape.rank; i++) equal = a.shape.dim[i] == b.shape.dim[i] && a.shape.dim[i] >= 0;
    if (equal) return value;
    return pli_op2(g, &pli_op_sum_like, value, like);
}

void pli_gradient_reshape(const plait_gradient *at) {
    at->d_in[0] = pli_op2(at->graph, &pli_op_reshape_like, at->d_out[0], at->in[0]);
}

void pli_gradient_refuse(const plait_gradient *at, const char *what) {
    pli_graph_failed(at->graph, PLAIT_EINVAL,
                     "gradients: there is no rule to differentiate %s; stop_gradient before it leaves it out", what);
}

plait_value pli_scalar_like(plait_graph *g, plait_value like, double value) {
    return like < 0 ? PLAIT_NONE : plait_graph_scalar(g, (plait_type)g->value[like].type, value);
}
