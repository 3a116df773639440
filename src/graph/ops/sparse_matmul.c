/* sparse_matmul: a sparse matrix times a dense matrix. Entry e of the sparse matrix has the value input 2 [e], in row
 * input 0 [e] and column input 1 [e] (i64, in any order; repeated entries add up). Input 3 is dense [columns, width].
 * The output has as many rows as the first axis of input 4, whose values are not needed:
 *
 *     y[row[e]] += value[e] dense[column[e]]      one entry after the other
 *
 * It serves as the first layer of a net over sparse data, where `dense` has the few rows of a table that a batch
 * touches. The transposed product exchanges rows and columns, so d/d dense = sparse_matmul(column, row, value, G), and
 * d/d value[e] = G[row[e]] . dense[column[e]].
 *
 * Several entries may add to the same row of y, so work is divided along the width: an item goes over all entries, for
 * some columns of y. */
#include <string.h>

#include "graph/kernel.h"
#include "graph/ops/ops.h"

enum { ROW, COLUMN, VALUE, DENSE, LIKE, WIDTH_AN_ITEM = 32 };

static plait_status infer(const plait_call *call) {
    const plait_tensor *value = &call->in[VALUE], *dense = &call->in[DENSE], *like = &call->in[LIKE];
    const plait_shape  *row = &call->in[ROW].shape, *column = &call->in[COLUMN].shape;
    if (call->in[ROW].type != PLAIT_I64 || call->in[COLUMN].type != PLAIT_I64 || row->rank != 1 ||
        !pli_shapes_agree(row, column) || !pli_shapes_agree(row, &value->shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "needs row and column (i64) and value of each entry");
    if (!pli_type_is_float(dense->type) || dense->type != value->type || dense->shape.rank != 2 || like->shape.rank < 1)
        return plait_call_fail(
            call, PLAIT_ESHAPE,
            "needs a dense matrix [columns, width] of the values' type, and something with the result's rows");
    call->out[0] =
        (plait_tensor){ .type = dense->type, .shape = plait_shape_2(like->shape.dim[0], dense->shape.dim[1]) };
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) {
    return (call->out[0].shape.dim[1] + WIDTH_AN_ITEM - 1) / WIDTH_AN_ITEM;
}

/* The columns of y of an item: sets the first, returns how many. */
static int64_t strip(const plait_call *call, int64_t item, int64_t *first_out) {
    const int64_t width = call->out[0].shape.dim[1];
    *first_out = item * WIDTH_AN_ITEM;
    return width - *first_out < WIDTH_AN_ITEM ? width - *first_out : WIDTH_AN_ITEM;
}

static bool within(const plait_call *call, int64_t row, int64_t column) {
    return row >= 0 && row < call->out[0].shape.dim[0] && column >= 0 && column < call->in[DENSE].shape.dim[0];
}

static plait_status outside(const plait_call *call, int64_t entry) {
    return plait_call_fail(
        call, PLAIT_EINVAL, "entry %lld stands in row %lld of %lld, column %lld of %lld", (long long)entry,
        (long long)((const int64_t *)call->in[ROW].data)[entry], (long long)call->out[0].shape.dim[0],
        (long long)((const int64_t *)call->in[COLUMN].data)[entry], (long long)call->in[DENSE].shape.dim[0]);
}

static plait_status ref_run(const plait_call *call, int64_t item) {
    const plait_tensor *value = &call->in[VALUE], *dense = &call->in[DENSE], *y = &call->out[0];
    const int64_t      *row = call->in[ROW].data, *column = call->in[COLUMN].data, width = y->shape.dim[1];
    int64_t             first;
    const int64_t       n = strip(call, item, &first);
    for (int64_t r = 0; r < y->shape.dim[0]; r++)
        for (int64_t k = first; k < first + n; k++) pli_element_set(y, r * width + k, 0);
    for (int64_t e = 0; e < value->shape.dim[0]; e++) {
        if (!within(call, row[e], column[e])) return outside(call, e);
        for (int64_t k = first; k < first + n; k++) {
            const double add = pli_element(value, e) * pli_element(dense, column[e] * width + k);
            pli_element_set(y, row[e] * width + k, pli_element(y, row[e] * width + k) + add);
        }
    }
    return PLAIT_OK;
}

static int is_f32(const plait_call *call) { return call->in[DENSE].type == PLAIT_F32; }

static plait_status f32_run(const plait_call *call, int64_t item) {
    const int64_t *row = call->in[ROW].data, *column = call->in[COLUMN].data, width = call->out[0].shape.dim[1];
    const float   *value = call->in[VALUE].data;
    int64_t        first;
    const int64_t  n = strip(call, item, &first);
    const float   *dense = (const float *)call->in[DENSE].data + first;
    float         *y = (float *)call->out[0].data + first;
    for (int64_t r = 0; r < call->out[0].shape.dim[0]; r++) memset(y + r * width, 0, (size_t)n * sizeof *y);
    for (int64_t e = 0; e < call->in[VALUE].shape.dim[0]; e++) {
        if (!within(call, row[e], column[e])) return outside(call, e);
        float       *to = y + row[e] * width;
        const float *from = dense + column[e] * width, v = value[e];
        for (int64_t k = 0; k < n; k++) to[k] += v * from[k];
    }
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value d = at->d_out[0], *in = at->in;
    const plait_value turned[] = { in[COLUMN], in[ROW], in[VALUE], d, in[DENSE] };
    const plait_value lines[] = { pli_op2(g, &pli_op_gather, d, in[ROW]),
                                  pli_op2(g, &pli_op_gather, in[DENSE], in[COLUMN]) };
    const plait_attr  last = pli_attr_int("axis", -1);
    at->d_in[DENSE] = pli_graph_node(g, &pli_op_sparse_matmul, turned, 5, NULL);
    at->d_in[VALUE] = pli_graph_node(g, &pli_op_row_dot, lines, 2, &last);
}

static double flops(const plait_call *call) {
    return 2.0 * (double)call->in[VALUE].shape.dim[0] * (double)call->in[DENSE].shape.dim[1];
}

static const plait_kernel        f32 = { .name = "f32", .suits = is_f32, .items = items, .run = f32_run };
static const plait_kernel        ref = { .name = "ref", .items = items, .run = ref_run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_sparse_matmul = {
    .size = sizeof(plait_op),
    .name = "sparse_matmul",
    .summary = "a sparse matrix, by its entries, times a dense one",
    .min_inputs = 5,
    .max_inputs = 5,
    .outputs = 1,
    .shape_only = 1u << LIKE,
    .infer = infer,
    .gradient = gradient,
    .flops = flops,
    .kernels = kernels,
};
