/* gru_gradient: computes from gru's w, h0, h, gates and the derivative dh by its output: dz and ds [steps, batch, 3
 * units], the derivatives by z and by the recurrent product; db [batch, units], one for each sequence of the batch; dh0
 * [batch, units]. It goes back through the steps, and cannot be differentiated again. */
#include <string.h>

#include "graph/cells.h"
#include "graph/recurrent.h"

enum { W, H0, H, GATES, DH };
enum { DZ, DS, DB, DH0 };

static plait_status infer(const plait_call *call) {
    const plait_shape *h = &call->in[H].shape, *w = &call->in[W].shape;
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i].type != call->in[0].type || !pli_type_is_float(call->in[i].type))
            return plait_call_fail(call, PLAIT_ESHAPE, "needs floats of one type");
    if (w->rank != 2 || h->rank != 3 || w->dim[0] < 0)
        return plait_call_fail(call, PLAIT_ESHAPE, "needs w [units, 3 units] and h [steps, batch, units]");
    const int64_t     n = w->dim[0];
    const plait_shape sequence = { 3, { h->dim[0], h->dim[1], n } }, wide = { 3, { h->dim[0], h->dim[1], 4 * n } };
    const plait_shape three = { 3, { h->dim[0], h->dim[1], 3 * n } }, square = plait_shape_2(n, 3 * n);
    const plait_shape state = plait_shape_2(h->dim[1], n);
    if (!pli_shapes_agree(h, &sequence) || !pli_shapes_agree(&call->in[GATES].shape, &wide) ||
        !pli_shapes_agree(w, &square) || !pli_shapes_agree(&call->in[H0].shape, &state) ||
        !pli_shapes_agree(&call->in[DH].shape, &sequence))
        return plait_call_fail(call, PLAIT_ESHAPE, "needs what gru was given and gave, and a derivative of its shape");
    call->out[DZ] = call->out[DS] = (plait_tensor){ .type = call->in[0].type, .shape = three };
    call->out[DB] = call->out[DH0] = (plait_tensor){ .type = call->in[0].type, .shape = state };
    return PLAIT_OK;
}

/* --- reference: an item is one sequence of the batch; dh0 holds what is carried back ---------------------------- */

static int64_t ref_items(const plait_call *call) { return call->in[H].shape.dim[1]; }

static void ref_unit(const plait_call *call, int64_t t, int64_t b, int64_t j) {
    const plait_shape *h = &call->in[H].shape;
    const int64_t      batch = h->dim[1], n = h->dim[2], at = (t * batch + b) * n, state = b * n + j;
    double             gate[4];
    for (int k = 0; k < 4; k++) gate[k] = pli_element(&call->in[GATES], 4 * at + k * n + j);
    const double r = gate[0], u = gate[1], g = gate[2], m = gate[3];
    const double before = t > 0 ? pli_element(&call->in[H], at - batch * n + j) : pli_element(&call->in[H0], state);
    const double dh = pli_element(&call->in[DH], at + j) + pli_element(&call->out[DH0], state);
    const double dg = dh * (1 - u) * (1 - g * g), dr = dg * m * r * (1 - r), du = dh * (before - g) * u * (1 - u);
    const double dz[] = { dr, du, dg }, ds[] = { dr, du, dg * r };
    for (int k = 0; k < 3; k++) {
        pli_element_set(&call->out[DZ], 3 * at + k * n + j, dz[k]);
        pli_element_set(&call->out[DS], 3 * at + k * n + j, ds[k]);
    }
    pli_element_set(&call->out[DB], state, pli_element(&call->out[DB], state) + dg * r);
    pli_element_set(&call->out[DH0], state, dh * u);
}

static plait_status ref_run(const plait_call *call, int64_t b) {
    const plait_shape *h = &call->in[H].shape;
    const int64_t      n = h->dim[2];
    for (int i = DB; i <= DH0; i++)
        for (int64_t j = 0; j < n; j++) pli_element_set(&call->out[i], b * n + j, 0);
    for (int64_t t = h->dim[0] - 1; t >= 0; t--) {
        for (int64_t j = 0; j < n; j++) ref_unit(call, t, b, j);
        for (int64_t k = 0; k < n; k++) {
            double sum = pli_element(&call->out[DH0], b * n + k);
            for (int64_t j = 0; j < 3 * n; j++)
                sum += pli_element(&call->out[DS], 3 * (t * h->dim[1] + b) * n + j) *
                       pli_element(&call->in[W], k * 3 * n + j);
            pli_element_set(&call->out[DH0], b * n + k, sum);
        }
    }
    return PLAIT_OK;
}

/* --- cells: an item is some sequences of the batch -------------------------------------------------------------- */

static int cells_suits(const plait_call *call) {
    return call->in[W].type == PLAIT_F32 && pli_gemm_fits(pli_sequences_each(call->in[H].shape.dim[1]),
                                                          call->in[W].shape.dim[0], call->in[W].shape.dim[1]);
}

static plait_status cells_open(const plait_call *call, void **state_out) {
    (void)call;
    (void)state_out;
    pli_gemm_open();
    return PLAIT_OK;
}

static int64_t cells_items(const plait_call *call) { return pli_sequences_items(call->in[H].shape.dim[1]); }

static size_t cells_scratch(const plait_call *call) {
    const plait_shape *r = &call->in[W].shape;
    return pli_sequences_scratch(call->in[H].shape.dim[1], r->dim[0], r->dim[1], 0);
}

static void add(int64_t n, const float *x, float *y) {
    for (int64_t j = 0; j < n; j++) y[j] += x[j];
}

/* dh0 holds the derivative by h while the loop goes back. */
static plait_status cells_run(const plait_call *call, int64_t item) {
    const pli_sequences s = pli_sequences_of(&call->in[H].shape, item);
    const pli_cells    *cells = pli_cells_get();
    const int64_t       n = s.units;
    const float        *w = call->in[W].data, *h = call->in[H].data, *gates = call->in[GATES].data;
    float *dz = call->out[DZ].data, *ds = call->out[DS].data, *db = (float *)call->out[DB].data + s.first * n;
    float *back = (float *)call->out[DH0].data + s.first * n;
    float *packed = call->scratch;
    pli_gemm_pack(true, n, 3 * n, w, 3 * n, packed);
    memset(back, 0, (size_t)(s.rows * n) * sizeof *back);
    memset(db, 0, (size_t)(s.rows * n) * sizeof *db);
    for (int64_t t = s.steps - 1; t >= 0; t--) {
        const int64_t at = (t * s.batch + s.first) * n;
        const float  *h0 = t > 0 ? h + at - s.batch * n : (const float *)call->in[H0].data + s.first * n;
        add(s.rows * n, (const float *)call->in[DH].data + at, back);
        for (int64_t b = 0; b < s.rows; b++) {
            const int64_t row = 3 * (at + b * n);
            cells->gru_back(n, gates + 4 * (at + b * n), h0 + b * n, back + b * n, dz + row, ds + row);
            add(n, ds + row + 2 * n, db + b * n);
        }
        pli_gemm_packed(s.rows, n, 3 * n, ds + 3 * at, 3 * n, packed, true, back, n);
    }
    return PLAIT_OK;
}

/* --- the op ----------------------------------------------------------------------------------------------------- */

static void gradient(const plait_gradient *at) { pli_gradient_refuse(at, "gru_gradient"); }

static double flops(const plait_call *call) {
    return (2.0 * (double)call->in[W].shape.dim[0] + 10.0) * (double)plait_shape_elements(&call->out[DZ].shape);
}

static const plait_kernel        fast = { .name = "cells f32",
                                          .suits = cells_suits,
                                          .open = cells_open,
                                          .scratch = cells_scratch,
                                          .items = cells_items,
                                          .run = cells_run };
static const plait_kernel        ref = { .name = "ref", .items = ref_items, .run = ref_run };
static const plait_kernel *const kernels[] = { &fast, &ref, NULL };

const plait_op pli_op_gru_gradient = {
    .size = sizeof(plait_op),
    .name = "gru_gradient",
    .summary = "gru's derivatives by what comes in, by its product, bias and first state",
    .min_inputs = 5,
    .max_inputs = 5,
    .outputs = 4,
    .infer = infer,
    .gradient = gradient,
    .flops = flops,
    .kernels = kernels,
};
