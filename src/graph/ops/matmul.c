/* matmul: c = a b over the last two axes, where a and b may be transposed (ta, tb); the axes before them are a batch,
 * and broadcast. [m, k] [k, n] -> [m, n]. With G = dc: da = G bT, db = aT G; the transposed cases are similar. */
#include "tensor/gemm/gemm.h"
#include "graph/kernel.h"
#include "graph/ops/ops.h"
#include "graph/region.h"

enum { TA, TB };

static const plait_attr_spec attrs[] = {
    [TA] = { .preset = { .name = "ta", .kind = PLAIT_ATTR_INT } },
    [TB] = { .preset = { .name = "tb", .kind = PLAIT_ATTR_INT } },
};

static plait_status infer(const plait_call *call) {
    const plait_shape *a = &call->in[0].shape, *b = &call->in[1].shape;
    if (call->in[0].type != call->in[1].type || !pli_type_is_float(call->in[0].type))
        return plait_call_fail(call, PLAIT_ESHAPE, "multiplies floats of one type; cast one of them");
    if (a->rank < 2 || b->rank < 2) return plait_call_fail(call, PLAIT_ESHAPE, "needs matrices: two axes or more");
    const int     ta = call->attr[TA].u.i != 0, tb = call->attr[TB].u.i != 0;
    const int64_t m = a->dim[a->rank - (ta ? 1 : 2)], k = a->dim[a->rank - (ta ? 2 : 1)];
    const int64_t k2 = b->dim[b->rank - (tb ? 1 : 2)], n = b->dim[b->rank - (tb ? 2 : 1)];
    if (k != k2 && k != PLAIT_ANY && k2 != PLAIT_ANY)
        return plait_call_fail(call, PLAIT_ESHAPE, "inner lengths %lld and %lld differ", (long long)k, (long long)k2);
    plait_shape batch_a = *a, batch_b = *b, out;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    if (!pli_broadcast(&batch_a, &batch_b, &out))
        return plait_call_fail(call, PLAIT_ESHAPE, "batches do not go together");
    out.dim[out.rank++] = m;
    out.dim[out.rank++] = n;
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = out };
    return PLAIT_OK;
}

/* Batches of matrices. Matrix i of the batch takes the i-th matrix of a, or the one that broadcasting assigns; b
 * likewise. If all take the same b, and the rows of a are contiguous, the batch is one tall matrix. */
typedef struct view {
    bool        ta, tb;
    int64_t     m, n, k, count;
    plait_shape batch;
    int64_t     own[PLAIT_RANK_MAX], stride_a[PLAIT_RANK_MAX], stride_b[PLAIT_RANK_MAX]; /* in matrices */
} view;

static view view_of(const plait_call *call) {
    plait_shape a = call->in[0].shape, b = call->in[1].shape, c = call->out[0].shape;
    view        v = { .ta = call->attr[TA].u.i != 0, .tb = call->attr[TB].u.i != 0 };
    v.m = c.dim[c.rank - 2];
    v.n = c.dim[c.rank - 1];
    v.k = a.dim[a.rank - (v.ta ? 2 : 1)];
    a.rank -= 2;
    b.rank -= 2;
    c.rank -= 2;
    v.count = plait_shape_elements(&c);
    v.batch = c;
    if (!v.ta && plait_shape_elements(&b) == 1 && plait_shape_elements(&a) == v.count) {
        v.m *= v.count;
        v.count = 1;
        v.batch.rank = 0;
        return v;
    }
    pli_strides(&c, v.own);
    pli_broadcast_strides(&a, &c, v.stride_a);
    pli_broadcast_strides(&b, &c, v.stride_b);
    return v;
}

/* The matrices of a and b whose product is matrix i of c. */
static void operands(const view *v, int64_t i, int64_t *a_out, int64_t *b_out) {
    *a_out = *b_out = 0;
    for (int32_t d = 0; d < v->batch.rank; d++) {
        *a_out += i / v->own[d] % v->batch.dim[d] * v->stride_a[d];
        *b_out += i / v->own[d] % v->batch.dim[d] * v->stride_b[d];
    }
}

/* --- reference: an item is a row of c --------------------------------------------------------------------------- */

static int64_t ref_items(const plait_call *call) {
    const view v = view_of(call);
    return v.n > 0 ? v.count * v.m : 0;
}

static plait_status ref_run(const plait_call *call, int64_t item) {
    const view    v = view_of(call);
    const int64_t which = item / v.m, i = item % v.m;
    int64_t       at_a, at_b;
    operands(&v, which, &at_a, &at_b);
    at_a *= v.m * v.k;
    at_b *= v.k * v.n;
    for (int64_t j = 0; j < v.n; j++) {
        double sum = 0;
        for (int64_t l = 0; l < v.k; l++)
            sum += pli_element(&call->in[0], at_a + (v.ta ? l * v.m + i : i * v.k + l)) *
                   pli_element(&call->in[1], at_b + (v.tb ? j * v.k + l : l * v.n + j));
        pli_element_set(&call->out[0], item * v.n + j, sum);
    }
    return PLAIT_OK;
}

/* --- BLAS: an item is a tile of c ------------------------------------------------------------------------------- */

typedef struct tile {
    int64_t row, col, rows, cols;
    int64_t a, b, c; /* first elements: of the rows of op(a), of the columns of op(b), of c */
    int64_t lda, ldb;
} tile;

static tile tile_of(const view *v, int64_t item) {
    const pli_gemm_cut cut = pli_gemm_cut_of(v->m, v->n, v->k);
    const int64_t      which = item / (cut.row_tiles * cut.col_tiles), at = item % (cut.row_tiles * cut.col_tiles);
    tile               t = { .row = at / cut.col_tiles * cut.rows, .col = at % cut.col_tiles * cut.cols };
    t.rows = v->m - t.row < cut.rows ? v->m - t.row : cut.rows;
    t.cols = v->n - t.col < cut.cols ? v->n - t.col : cut.cols;
    t.lda = v->ta ? v->m : v->k;
    t.ldb = v->tb ? v->k : v->n;
    operands(v, which, &t.a, &t.b);
    t.a = t.a * v->m * v->k + (v->ta ? t.row : t.row * v->k);
    t.b = t.b * v->k * v->n + (v->tb ? t.col * v->k : t.col);
    t.c = (which * v->m + t.row) * v->n + t.col;
    return t;
}

static int64_t blas_items(const plait_call *call) {
    const view         v = view_of(call);
    const pli_gemm_cut cut = pli_gemm_cut_of(v.m, v.n, v.k);
    return v.count * cut.row_tiles * cut.col_tiles;
}

static int blas_suits(const plait_call *call) {
    const view v = view_of(call);
    return pli_gemm_fits(v.m, v.n, v.k);
}

static plait_status blas_open(const plait_call *call, void **state_out) {
    (void)call;
    (void)state_out;
    pli_gemm_open();
    return PLAIT_OK;
}

static int f32_suits(const plait_call *call) { return call->out[0].type == PLAIT_F32 && blas_suits(call); }
static int f64_suits(const plait_call *call) { return call->out[0].type == PLAIT_F64 && blas_suits(call); }
static int bf16_suits(const plait_call *call) { return call->out[0].type == PLAIT_BF16 && blas_suits(call); }

static plait_status f32_run(const plait_call *call, int64_t item) {
    const view   v = view_of(call);
    const tile   t = tile_of(&v, item);
    const float *a = call->in[0].data, *b = call->in[1].data;
    pli_gemm_f32(v.ta, v.tb, t.rows, t.cols, v.k, a + t.a, t.lda, b + t.b, t.ldb, 0, (float *)call->out[0].data + t.c,
                 v.n);
    return PLAIT_OK;
}

static plait_status f64_run(const plait_call *call, int64_t item) {
    const view    v = view_of(call);
    const tile    t = tile_of(&v, item);
    const double *a = call->in[0].data, *b = call->in[1].data;
    pli_gemm_f64(v.ta, v.tb, t.rows, t.cols, v.k, a + t.a, t.lda, b + t.b, t.ldb, 0, (double *)call->out[0].data + t.c,
                 v.n);
    return PLAIT_OK;
}

/* Both operands of a tile are converted to F32 in scratch. The sum is F32, too, and rounded once. */
static size_t bf16_scratch(const plait_call *call) {
    const view         v = view_of(call);
    const pli_gemm_cut cut = pli_gemm_cut_of(v.m, v.n, v.k);
    return sizeof(float) * (size_t)(cut.rows * v.k + v.k * cut.cols + cut.rows * cut.cols);
}

static void widen(int64_t rows, int64_t cols, const uint16_t *from, int64_t ld, float *to) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) to[i * cols + j] = pli_bf16_to_f32(from[i * ld + j]);
}

static plait_status bf16_run(const plait_call *call, int64_t item) {
    const view      v = view_of(call);
    const tile      t = tile_of(&v, item);
    float          *a = call->scratch, *b = a + t.rows * v.k, *c = b + v.k * t.cols;
    const uint16_t *from_a = call->in[0].data, *from_b = call->in[1].data;
    uint16_t       *to = (uint16_t *)call->out[0].data + t.c;
    widen(v.ta ? v.k : t.rows, v.ta ? t.rows : v.k, from_a + t.a, t.lda, a);
    widen(v.tb ? t.cols : v.k, v.tb ? v.k : t.cols, from_b + t.b, t.ldb, b);
    pli_gemm_f32(v.ta, v.tb, t.rows, t.cols, v.k, a, v.ta ? t.rows : v.k, b, v.tb ? v.k : t.cols, 0, c, t.cols);
    for (int64_t i = 0; i < t.rows; i++)
        for (int64_t j = 0; j < t.cols; j++) to[i * v.n + j] = pli_bf16_of_f32(c[i * t.cols + j]);
    return PLAIT_OK;
}

pli_region pli_matmul_region(const plait_call *call, int64_t item) {
    const view v = view_of(call);
    const tile t = tile_of(&v, item);
    if (t.cols == v.n) return (pli_region){ t.c, t.rows * t.cols, 0, 1 };
    return (pli_region){ t.c, t.cols, v.n, t.rows };
}

/* --- the op ----------------------------------------------------------------------------------------------------- */

static plait_value product(const plait_gradient *at, plait_value a, int ta, plait_value b, int tb) {
    plait_attr given[] = { attrs[TA].preset, attrs[TB].preset };
    given[TA].u.i = ta;
    given[TB].u.i = tb;
    const plait_value in[] = { a, b };
    return pli_graph_node(at->graph, &pli_op_matmul, in, 2, given);
}

/* Joins all axes but the last. */
static plait_value rows(plait_graph *g, plait_value a) {
    const plait_shape shape = pli_value_tensor(g, a).shape;
    const int64_t     flat[] = { -1, shape.dim[shape.rank - 1] };
    const plait_attr  attr = { .name = "shape", .kind = PLAIT_ATTR_INTS, .n = 2, .u.ints = flat };
    return pli_graph_node(g, &pli_op_reshape, &a, 1, &attr);
}

/* Do all products of the batch have the same b? Then the derivative by b is one product, instead of a sum of many. */
static bool is_tall(const plait_graph *g, const plait_gradient *at, int ta) {
    const plait_shape a = pli_value_tensor(g, at->in[0]).shape, b = pli_value_tensor(g, at->in[1]).shape;
    const int64_t     k = a.dim[a.rank - 1], n = pli_value_tensor(g, at->d_out[0]).shape.dim[a.rank - 1];
    return !ta && b.rank == 2 && a.rank > 2 && k > 0 && n > 0;
}

static void gradient(const plait_gradient *at) {
    const int         ta = at->attr[TA].u.i != 0, tb = at->attr[TB].u.i != 0;
    const plait_value a = at->in[0], b = at->in[1], g = at->d_out[0];
    const bool        tall = is_tall(at->graph, at, ta);
    const plait_value da = ta ? product(at, b, tb, g, 1) : product(at, g, 0, b, !tb);
    at->d_in[0] = pli_unbroadcast(at->graph, da, a);
    const plait_value left = tall ? rows(at->graph, a) : a, right = tall ? rows(at->graph, g) : g;
    const plait_value db = tb ? product(at, right, 1, left, ta) : product(at, left, !ta, right, 0);
    at->d_in[1] = pli_unbroadcast(at->graph, db, b);
}

static double flops(const plait_call *call) {
    const plait_shape *a = &call->in[0].shape;
    return 2.0 * (double)plait_shape_elements(&call->out[0].shape) *
           (double)a->dim[a->rank - (call->attr[TA].u.i != 0 ? 2 : 1)];
}

const plait_kernel pli_matmul_f32 = {
    .name = "blas f32", .suits = f32_suits, .open = blas_open, .items = blas_items, .run = f32_run
};
const plait_kernel pli_matmul_f64 = {
    .name = "blas f64", .suits = f64_suits, .open = blas_open, .items = blas_items, .run = f64_run
};
const plait_kernel               pli_matmul_bf16 = { .name = "blas bf16",
                                                     .suits = bf16_suits,
                                                     .open = blas_open,
                                                     .scratch = bf16_scratch,
                                                     .items = blas_items,
                                                     .run = bf16_run };
static const plait_kernel        ref = { .name = "ref", .items = ref_items, .run = ref_run };
static const plait_kernel *const kernels[] = { &pli_matmul_f32, &pli_matmul_f64, &pli_matmul_bf16, &ref, NULL };

const plait_op pli_op_matmul = {
    .size = sizeof(plait_op),
    .name = "matmul",
    .summary = "the product of matrices",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 2,
    .infer = infer,
    .gradient = gradient,
    .flops = flops,
    .kernels = kernels,
};
