/* Turns axes into the places that an output element sums: a walk, or blocks. There are three kernels: any type by the
 * walk, floats by blocks, floats by runs. */
#include "graph/reduce.h"

#include <string.h>

enum { AXES, KEEP, COLUMNS = 256, LANES = 16 };

const plait_attr_spec pli_reduction_attrs[2] = {
    [AXES] = { .preset = { .name = "axes", .kind = PLAIT_ATTR_INTS } },
    [KEEP] = { .preset = { .name = "keep", .kind = PLAIT_ATTR_INT } },
};

plait_status pli_infer_reduction(const plait_call *call) {
    const plait_tensor *x = &call->in[0];
    pli_axes            axes;
    PLI_TRY(pli_axes_of(call, &call->attr[AXES], x->shape.rank, true, &axes));
    plait_shape shape = { .rank = 0 };
    for (int32_t i = 0; i < x->shape.rank; i++)
        if (!axes.in[i])
            shape.dim[shape.rank++] = x->shape.dim[i];
        else if (call->attr[KEEP].u.i != 0)
            shape.dim[shape.rank++] = 1;
    call->out[0] = (plait_tensor){ .type = x->type, .shape = shape };
    return PLAIT_OK;
}

plait_value pli_restore_axes(const plait_gradient *at, plait_value value) {
    if (at->attr[KEEP].u.i != 0 || at->attr[AXES].n == 0) return value; /* a scalar broadcasts as it is */
    const int32_t rank = at->graph->value[at->in[0]].rank;
    int64_t       axes[PLAIT_RANK_MAX]; /* large enough, since no axis is listed twice */
    for (int32_t k = 0; k < at->attr[AXES].n; k++)
        axes[k] = at->attr[AXES].u.ints[k] + (at->attr[AXES].u.ints[k] < 0 ? rank : 0);
    const plait_attr attr = pli_attr_ints("axes", at->attr[AXES].n, axes);
    return pli_graph_node(at->graph, &pli_op_expand_dims, &value, 1, &attr);
}

/* --- the places of an output element --------------------------------------------------------------------------- */

pli_reduction pli_reduction_of(const plait_shape *from, const bool summed[PLAIT_RANK_MAX]) {
    pli_reduction r = { .kept = { .rank = 0 } };
    int64_t       stride[PLAIT_RANK_MAX];
    pli_strides(from, stride);
    for (int32_t i = 0; i < from->rank; i++) {
        plait_shape *to = summed[i] ? &r.summed : &r.kept;
        (summed[i] ? r.summed_stride : r.kept_stride)[to->rank] = stride[i];
        to->dim[to->rank++] = from->dim[i];
    }
    return r;
}

void pli_reduction_begin(pli_walk *walk, const pli_reduction *r, int64_t output) {
    int64_t base = 0, table[1][PLAIT_RANK_MAX];
    for (int32_t i = r->kept.rank - 1; i >= 0; i--) {
        base += output % r->kept.dim[i] * r->kept_stride[i];
        output /= r->kept.dim[i];
    }
    memcpy(table[0], r->summed_stride, sizeof table[0]);
    pli_walk_begin(walk, &r->summed, 1, (const int64_t(*)[PLAIT_RANK_MAX])table, 0, plait_shape_elements(&r->summed));
    walk->base[0] = base;
}

static pli_axes axes_of(const plait_call *call) {
    pli_axes axes;
    (void)pli_axes_of(call, &call->attr[AXES], call->in[0].shape.rank, true, &axes); /* infer has checked them */
    return axes;
}

pli_reduction pli_reduction_of_call(const plait_call *call) {
    const pli_axes axes = axes_of(call);
    return pli_reduction_of(&call->in[0].shape, axes.in);
}

void pli_reduction_sum(const plait_call *call, const pli_reduction *r, int64_t output, double divisor) {
    const plait_tensor *x = &call->in[0];
    const bool          floats = pli_type_is_float(x->type);
    pli_walk            walk;
    double              sum = 0;
    uint64_t            whole = 0;
    pli_reduction_begin(&walk, r, output);
    for (int64_t n; (n = pli_walk_next(&walk)) > 0;)
        for (int64_t i = 0; i < n; i++)
            if (floats)
                sum += pli_element(x, walk.from[0] + i * walk.step[0]);
            else
                whole += (uint64_t)pli_element_int(x, walk.from[0] + i * walk.step[0]);
    if (floats)
        pli_element_set(&call->out[0], output, sum / divisor);
    else
        pli_element_set_int(&call->out[0], output, (int64_t)whole);
}

/* --- fast sums ------------------------------------------------------------------------------------------------- */

bool pli_block_sum_of(const plait_shape *from, const bool summed[PLAIT_RANK_MAX], pli_block_sum *out) {
    pli_block_sum b = { 1, 1, 1 };
    for (int32_t i = 0; i < from->rank; i++) {
        if (from->dim[i] == 1) continue;
        if (summed[i] && b.inner > 1) return false;
        if (summed[i])
            b.n *= from->dim[i];
        else if (b.n == 1)
            b.outer *= from->dim[i];
        else
            b.inner *= from->dim[i];
    }
    *out = b;
    return b.outer > 0 && b.n > 0 && b.inner > 0; /* empty sums are left to the reference */
}

/* An item has several narrow blocks, or COLUMNS columns of one wide block. */
static int64_t outer_at_once(const pli_block_sum *b) {
    const int64_t one = b->n * b->inner;
    return one < PLI_ITEM_ELEMENTS ? PLI_ITEM_ELEMENTS / one : 1;
}

static int64_t columns_items(const pli_block_sum *b) { return (b->inner + COLUMNS - 1) / COLUMNS; }

int64_t pli_block_sum_items(const pli_block_sum *b) {
    if (b->inner > COLUMNS) return b->outer * columns_items(b);
    const int64_t at_once = outer_at_once(b);
    return (b->outer + at_once - 1) / at_once;
}

void pli_block_sum_range(const pli_block_sum *b, int64_t item, int64_t o[2], int64_t j[2]) {
    j[0] = 0;
    j[1] = b->inner;
    if (b->inner > COLUMNS) {
        o[0] = item / columns_items(b);
        o[1] = o[0] + 1;
        j[0] = item % columns_items(b) * COLUMNS;
        if (j[1] > j[0] + COLUMNS) j[1] = j[0] + COLUMNS;
        return;
    }
    const int64_t at_once = outer_at_once(b);
    o[0] = item * at_once;
    o[1] = o[0] + at_once < b->outer ? o[0] + at_once : b->outer;
}

static double sum_of_run(int64_t n, const float *x) {
    double  lane[LANES] = { 0 };
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int64_t k = 0; k < LANES; k++) lane[k] += (double)x[i + k];
    for (int64_t k = 0; i + k < n; k++) lane[k] += (double)x[i + k];
    for (int apart = LANES / 2; apart > 0; apart /= 2)
        for (int k = 0; k < apart; k++) lane[k] += lane[k + apart];
    return lane[0];
}

bool pli_reduction_has_runs(const plait_call *call, const pli_reduction *r) {
    if (plait_shape_elements(&r->summed) == 0) return false; /* empty sums are left to the reference */
    for (int32_t i = r->summed.rank - 1; i >= 0; i--)
        if (r->summed.dim[i] != 1) return call->in[0].type == PLAIT_F32 && r->summed_stride[i] == 1;
    return false;
}

void pli_reduction_sum_runs(const plait_call *call, const pli_reduction *r, int64_t output, double divisor) {
    double   sum = 0;
    pli_walk walk;
    pli_reduction_begin(&walk, r, output);
    for (int64_t n; (n = pli_walk_next(&walk)) > 0;)
        sum += sum_of_run(n, (const float *)call->in[0].data + walk.from[0]);
    ((float *)call->out[0].data)[output] = (float)(sum / divisor);
}

int pli_runs_f32(const plait_call *call) {
    const pli_reduction r = pli_reduction_of_call(call);
    return pli_reduction_has_runs(call, &r);
}

static void sum_columns(const pli_block_sum *b, int64_t columns, double divisor, const float *x, float *y) {
    double sum[COLUMNS] = { 0 };
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t j = 0; j < columns; j++) sum[j] += (double)x[i * b->inner + j];
    for (int64_t j = 0; j < columns; j++) y[j] = (float)(sum[j] / divisor);
}

void pli_block_sum_f32(const pli_block_sum *b, int64_t item, double divisor, const float *x, float *y) {
    int64_t o[2], j[2];
    pli_block_sum_range(b, item, o, j);
    for (int64_t at = o[0]; at < o[1]; at++) {
        if (b->inner == 1)
            y[at] = (float)(sum_of_run(b->n, x + at * b->n) / divisor);
        else
            sum_columns(b, j[1] - j[0], divisor, x + at * b->n * b->inner + j[0], y + at * b->inner + j[0]);
    }
}

bool pli_block_sum_of_call(const plait_call *call, pli_block_sum *out) {
    const pli_axes axes = axes_of(call);
    return pli_block_sum_of(&call->in[0].shape, axes.in, out);
}

int64_t pli_block_items_of_call(const plait_call *call) {
    pli_block_sum b;
    return pli_block_sum_of_call(call, &b) ? pli_block_sum_items(&b) : 0;
}

int pli_blocks_f32(const plait_call *call) {
    pli_block_sum b;
    return call->in[0].type == PLAIT_F32 && pli_block_sum_of_call(call, &b);
}

/* --- sum and mean ---------------------------------------------------------------------------------------------- */

static double divisor_of(const plait_call *call, int64_t terms) {
    return ((const pli_sum_kind *)call->user)->mean ? (double)terms : 1;
}

static plait_status run_ref(const plait_call *call, int64_t item) {
    const pli_reduction r = pli_reduction_of_call(call);
    pli_reduction_sum(call, &r, item, divisor_of(call, plait_shape_elements(&r.summed)));
    return PLAIT_OK;
}

static plait_status run_blocks(const plait_call *call, int64_t item) {
    pli_block_sum b;
    if (pli_block_sum_of_call(call, &b))
        pli_block_sum_f32(&b, item, divisor_of(call, b.n), call->in[0].data, call->out[0].data);
    return PLAIT_OK;
}

static plait_status run_runs(const plait_call *call, int64_t item) {
    const pli_reduction r = pli_reduction_of_call(call);
    pli_reduction_sum_runs(call, &r, item, divisor_of(call, plait_shape_elements(&r.summed)));
    return PLAIT_OK;
}

static int64_t outputs(const plait_call *call) { return plait_shape_elements(&call->out[0].shape); }

static const plait_kernel f32 = {
    .name = "f32", .suits = pli_blocks_f32, .items = pli_block_items_of_call, .run = run_blocks
};
static const plait_kernel runs = { .name = "runs", .suits = pli_runs_f32, .items = outputs, .run = run_runs };
static const plait_kernel ref = { .name = "ref", .items = outputs, .run = run_ref };
const plait_kernel *const pli_sum_kernels[] = { &f32, &runs, &ref, NULL };
