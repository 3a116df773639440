/* transpose: puts axes in another order: axis i of the output is axis perm[i] of the input; without perm the axes are
 * reversed. The gradient is transposed back. */
#include <string.h>

#include "graph/kernel.h"
#include "graph/ops/ops.h"

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "perm", .kind = PLAIT_ATTR_INTS } },
};

static int32_t from_axis(const plait_attr *perm, int32_t rank, int32_t i) {
    if (perm->n == 0) return rank - 1 - i;
    return (int32_t)(perm->u.ints[i] < 0 ? perm->u.ints[i] + rank : perm->u.ints[i]);
}

static plait_status infer(const plait_call *call) {
    const plait_shape *x = &call->in[0].shape;
    const plait_attr  *perm = &call->attr[0];
    plait_shape        shape = { .rank = x->rank };
    pli_axes           axes;
    if (perm->n != 0 && perm->n != x->rank)
        return plait_call_fail(call, PLAIT_ESHAPE, "perm has %d of %d axes", perm->n, x->rank);
    PLI_TRY(pli_axes_of(call, perm, x->rank, true, &axes));
    for (int32_t i = 0; i < x->rank; i++) shape.dim[i] = x->dim[from_axis(perm, x->rank, i)];
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = shape };
    return PLAIT_OK;
}

static void strides_of(const plait_call *call, int64_t strides[PLAIT_RANK_MAX]) {
    const plait_shape *x = &call->in[0].shape;
    int64_t            own[PLAIT_RANK_MAX];
    pli_strides(x, own);
    for (int32_t i = 0; i < x->rank; i++) strides[i] = own[from_axis(&call->attr[0], x->rank, i)];
}

static plait_status run(const plait_call *call, int64_t item) {
    int64_t strides[PLAIT_RANK_MAX];
    strides_of(call, strides);
    pli_read_strided(call, &call->in[0], 0, strides, item);
    return PLAIT_OK;
}

/* Exchanges the last two axes of 4-byte elements square by square, so that both arrays are used by whole cache
 * lines. */
enum { SQUARE = 16 };

static int swaps_last_two(const plait_call *call) {
    const int32_t rank = call->in[0].shape.rank;
    if (rank < 2 || plait_type_bytes(call->in[0].type) != 4) return 0;
    for (int32_t i = 0; i < rank; i++)
        if (from_axis(&call->attr[0], rank, i) != (i < rank - 2 ? i : 2 * rank - 3 - i)) return 0;
    return 1;
}

static int64_t items_squares(const plait_call *call) {
    const plait_shape *y = &call->out[0].shape;
    const int64_t      all = plait_shape_elements(y), rows = y->dim[y->rank - 2], matrix = rows * y->dim[y->rank - 1];
    return all == 0 ? 0 : all / matrix * ((rows + SQUARE - 1) / SQUARE);
}

/* An item is SQUARE rows of the output. */
static plait_status run_squares(const plait_call *call, int64_t item) {
    const plait_shape *y = &call->out[0].shape;
    const int64_t      rows = y->dim[y->rank - 2], cols = y->dim[y->rank - 1], bands = (rows + SQUARE - 1) / SQUARE;
    const uint32_t    *from = (const uint32_t *)call->in[0].data + item / bands * rows * cols;
    uint32_t          *to = (uint32_t *)call->out[0].data + item / bands * rows * cols;
    const int64_t      first = item % bands * SQUARE, last = first + SQUARE < rows ? first + SQUARE : rows;
    for (int64_t j0 = 0; j0 < cols; j0 += SQUARE)
        for (int64_t i = first; i < last; i++)
            for (int64_t j = j0; j < j0 + SQUARE && j < cols; j++) to[i * cols + j] = from[j * rows + i];
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    const int32_t rank = at->graph->value[at->in[0]].rank;
    int64_t       back[PLAIT_RANK_MAX];
    for (int32_t i = 0; i < rank; i++) back[from_axis(&at->attr[0], rank, i)] = i;
    const plait_attr perm = pli_attr_ints("perm", rank, back);
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_transpose, at->d_out, 1, &perm);
}

static const plait_kernel squares = {
    .name = "squares", .suits = swaps_last_two, .items = items_squares, .run = run_squares
};
static const plait_kernel        ref = { .name = "ref", .items = pli_items_by_output, .run = run };
static const plait_kernel *const kernels[] = { &squares, &ref, NULL };

const plait_op pli_op_transpose = {
    .size = sizeof(plait_op),
    .name = "transpose",
    .summary = "axes in another order",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
    .kernels = kernels,
};
