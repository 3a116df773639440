/* recurrent_product: the sum over steps t of h[t-1]T d[t], from h0 [batch, units], h [steps, batch, units] and d
 * [steps, batch, m]. It is the derivative by recurrent weights [units, m]. All steps but the first are one product. It
 * cannot be differentiated again. */
#include <string.h>

#include "graph/recurrent.h"
#include "graph/region.h"

enum { H0, H, D };

static plait_status infer(const plait_call *call) {
    const plait_shape *h0 = &call->in[H0].shape, *h = &call->in[H].shape, *d = &call->in[D].shape;
    for (int i = 0; i < 3; i++)
        if (call->in[i].type != call->in[0].type || !pli_type_is_float(call->in[i].type))
            return plait_call_fail(call, PLAIT_ESHAPE, "needs floats of one type");
    if (h0->rank != 2 || h->rank != 3 || d->rank != 3)
        return plait_call_fail(call, PLAIT_ESHAPE,
                               "needs h0 [batch, units], h [steps, batch, units], d [steps, batch, m]");
    const plait_shape state = plait_shape_2(h->dim[1], h->dim[2]), like = { 3, { h->dim[0], h->dim[1], d->dim[2] } };
    if (!pli_shapes_agree(h0, &state) || !pli_shapes_agree(d, &like))
        return plait_call_fail(call, PLAIT_ESHAPE, "steps, batch and units do not agree");
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = plait_shape_2(h->dim[2], d->dim[2]) };
    return PLAIT_OK;
}

static int64_t ref_items(const plait_call *call) { return call->out[0].shape.dim[0]; }

static plait_status ref_run(const plait_call *call, int64_t unit) {
    const plait_shape *h = &call->in[H].shape;
    const int64_t      batch = h->dim[1], n = h->dim[2], m = call->in[D].shape.dim[2];
    for (int64_t j = 0; j < m; j++) {
        double sum = 0;
        for (int64_t i = 0; i < h->dim[0] * batch; i++) {
            const double before = i < batch ? pli_element(&call->in[H0], i * n + unit)
                                            : pli_element(&call->in[H], (i - batch) * n + unit);
            sum += before * pli_element(&call->in[D], i * m + j);
        }
        pli_element_set(&call->out[0], unit * m + j, sum);
    }
    return PLAIT_OK;
}

static int blas_suits(const plait_call *call) {
    const plait_shape *h = &call->in[H].shape;
    return call->in[H].type == PLAIT_F32 && pli_gemm_fits(h->dim[2], call->in[D].shape.dim[2], h->dim[0] * h->dim[1]);
}

static plait_status blas_open(const plait_call *call, void **state_out) {
    (void)call;
    (void)state_out;
    pli_gemm_open();
    return PLAIT_OK;
}

static pli_gemm_cut cut_of(const plait_call *call) {
    const plait_shape *h = &call->in[H].shape;
    return pli_gemm_cut_of(h->dim[2], call->in[D].shape.dim[2], h->dim[0] * h->dim[1]);
}

static int64_t blas_items(const plait_call *call) {
    const pli_gemm_cut cut = cut_of(call);
    return cut.row_tiles * cut.col_tiles;
}

pli_region pli_recurrent_product_region(const plait_call *call, int64_t item) {
    const pli_gemm_cut cut = cut_of(call);
    const int64_t      n = call->in[H].shape.dim[2], m = call->in[D].shape.dim[2];
    const int64_t      row = item / cut.col_tiles * cut.rows, col = item % cut.col_tiles * cut.cols;
    return (pli_region){ row * m + col, m - col < cut.cols ? m - col : cut.cols, m,
                         n - row < cut.rows ? n - row : cut.rows };
}

static plait_status blas_run(const plait_call *call, int64_t item) {
    const plait_shape *h = &call->in[H].shape;
    const pli_gemm_cut cut = cut_of(call);
    const int64_t      steps = h->dim[0], batch = h->dim[1], n = h->dim[2], m = call->in[D].shape.dim[2];
    const int64_t      row = item / cut.col_tiles * cut.rows, col = item % cut.col_tiles * cut.cols;
    const int64_t      rows = n - row < cut.rows ? n - row : cut.rows, cols = m - col < cut.cols ? m - col : cut.cols;
    const float       *first = (const float *)call->in[H0].data + row, *later = (const float *)call->in[H].data + row;
    const float       *d = (const float *)call->in[D].data + col;
    float             *out = (float *)call->out[0].data + row * m + col;
    for (int64_t i = 0; steps == 0 && i < rows; i++) memset(out + i * m, 0, (size_t)cols * sizeof *out);
    if (steps > 0) pli_gemm_f32(true, false, rows, cols, batch, first, n, d, m, 0, out, m);
    if (steps > 1) pli_gemm_f32(true, false, rows, cols, (steps - 1) * batch, later, n, d + batch * m, m, 1, out, m);
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) { pli_gradient_refuse(at, "recurrent_product"); }

static double flops(const plait_call *call) {
    return 2.0 * (double)plait_shape_elements(&call->in[D].shape) * (double)call->in[H].shape.dim[2];
}

const plait_kernel pli_recurrent_product_blas = {
    .name = "blas f32", .suits = blas_suits, .open = blas_open, .items = blas_items, .run = blas_run
};
static const plait_kernel        ref = { .name = "ref", .items = ref_items, .run = ref_run };
static const plait_kernel *const kernels[] = { &pli_recurrent_product_blas, &ref, NULL };

const plait_op pli_op_recurrent_product = {
    .size = sizeof(plait_op),
    .name = "recurrent_product",
    .summary = "the derivative by recurrent weights",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = flops,
    .kernels = kernels,
};
