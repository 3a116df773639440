/* lstm_gradient: computes from lstm's r, c0, c, gates, and the derivatives dh and (if there is one) dc by its outputs:
 * dz [steps, batch, 4 units], dh0 and dc0 [batch, units]. It goes back through the steps, and cannot be differentiated
 * again. */
#include <math.h>
#include <string.h>

#include "graph/cells.h"
#include "graph/recurrent.h"

enum { R, C0, C, GATES, DH, DC };

static plait_status infer(const plait_call *call) {
    const plait_shape *h = &call->in[C].shape, *gates = &call->in[GATES].shape, *r = &call->in[R].shape;
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i].type != call->in[0].type || !pli_type_is_float(call->in[i].type))
            return plait_call_fail(call, PLAIT_ESHAPE, "needs floats of one type");
    if (r->rank != 2 || h->rank != 3 || r->dim[0] < 0)
        return plait_call_fail(call, PLAIT_ESHAPE, "needs r [units, 4 units] and c [steps, batch, units]");
    const int64_t     n = r->dim[0];
    const plait_shape sequence = { 3, { h->dim[0], h->dim[1], n } }, wide = { 3, { h->dim[0], h->dim[1], 4 * n } };
    const plait_shape square = plait_shape_2(n, 4 * n), state = plait_shape_2(h->dim[1], n);
    bool agree = pli_shapes_agree(h, &sequence) && pli_shapes_agree(gates, &wide) && pli_shapes_agree(r, &square);
    agree = agree && pli_shapes_agree(&call->in[C0].shape, &state) && pli_shapes_agree(&call->in[DH].shape, &sequence);
    if (!agree || (call->n_in > DC && !pli_shapes_agree(&call->in[DC].shape, &sequence)))
        return plait_call_fail(call, PLAIT_ESHAPE, "needs what lstm was given and gave, and derivatives of its shapes");
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = wide };
    call->out[1] = call->out[2] = (plait_tensor){ .type = call->in[0].type, .shape = state };
    return PLAIT_OK;
}

/* --- reference: an item is one sequence of the batch; dh0 and dc0 hold what is carried back --------------------- */

static int64_t ref_items(const plait_call *call) { return call->in[C].shape.dim[1]; }

static void ref_unit(const plait_call *call, int64_t t, int64_t b, int64_t j) {
    const plait_shape *c = &call->in[C].shape;
    const int64_t      batch = c->dim[1], n = c->dim[2], at = (t * batch + b) * n, state = b * n + j;
    double             gate[4];
    for (int k = 0; k < 4; k++) gate[k] = pli_element(&call->in[GATES], 4 * at + k * n + j);
    const double before = t > 0 ? pli_element(&call->in[C], at - batch * n + j) : pli_element(&call->in[C0], state);
    const double squashed = tanh(pli_element(&call->in[C], at + j));
    const double dh = pli_element(&call->in[DH], at + j) + pli_element(&call->out[1], state);
    double       dc = pli_element(&call->out[2], state) + dh * gate[3] * (1 - squashed * squashed);
    if (call->n_in > DC) dc += pli_element(&call->in[DC], at + j);
    pli_element_set(&call->out[0], 4 * at + j, dc * gate[2] * gate[0] * (1 - gate[0]));
    pli_element_set(&call->out[0], 4 * at + n + j, dc * before * gate[1] * (1 - gate[1]));
    pli_element_set(&call->out[0], 4 * at + 2 * n + j, dc * gate[0] * (1 - gate[2] * gate[2]));
    pli_element_set(&call->out[0], 4 * at + 3 * n + j, dh * squashed * gate[3] * (1 - gate[3]));
    pli_element_set(&call->out[2], state, dc * gate[1]);
}

static plait_status ref_run(const plait_call *call, int64_t b) {
    const plait_shape *c = &call->in[C].shape;
    const int64_t      n = c->dim[2];
    for (int i = 1; i < 3; i++)
        for (int64_t j = 0; j < n; j++) pli_element_set(&call->out[i], b * n + j, 0);
    for (int64_t t = c->dim[0] - 1; t >= 0; t--) {
        for (int64_t j = 0; j < n; j++) ref_unit(call, t, b, j);
        for (int64_t k = 0; k < n; k++) {
            double sum = 0;
            for (int64_t j = 0; j < 4 * n; j++)
                sum += pli_element(&call->out[0], 4 * (t * c->dim[1] + b) * n + j) *
                       pli_element(&call->in[R], k * 4 * n + j);
            pli_element_set(&call->out[1], b * n + k, sum);
        }
    }
    return PLAIT_OK;
}

/* --- cells: an item is some sequences of the batch -------------------------------------------------------------- */

static int cells_suits(const plait_call *call) {
    return call->in[R].type == PLAIT_F32 && pli_gemm_fits(pli_sequences_each(call->in[C].shape.dim[1]),
                                                          call->in[R].shape.dim[0], call->in[R].shape.dim[1]);
}

static plait_status cells_open(const plait_call *call, void **state_out) {
    (void)call;
    (void)state_out;
    pli_gemm_open();
    return PLAIT_OK;
}

static int64_t cells_items(const plait_call *call) { return pli_sequences_items(call->in[C].shape.dim[1]); }

static size_t cells_scratch(const plait_call *call) {
    const plait_shape *r = &call->in[R].shape;
    return pli_sequences_scratch(call->in[C].shape.dim[1], r->dim[0], r->dim[1], 0);
}

static void add(int64_t n, const float *x, float *y) {
    for (int64_t j = 0; j < n; j++) y[j] += x[j];
}

/* dh0 and dc0 hold the derivatives by h and c while the loop goes back. */
static plait_status cells_run(const plait_call *call, int64_t item) {
    const pli_sequences s = pli_sequences_of(&call->in[C].shape, item);
    const pli_cells    *cells = pli_cells_get();
    const int64_t       n = s.units;
    const float *r = call->in[R].data, *c = call->in[C].data, *gates = call->in[GATES].data, *dh = call->in[DH].data;
    float       *dz = call->out[0].data, *h_back = (float *)call->out[1].data + s.first * n,
          *c_back = (float *)call->out[2].data + s.first * n;
    float *packed = call->scratch;
    pli_gemm_pack(true, n, 4 * n, r, 4 * n, packed);
    memset(h_back, 0, (size_t)(s.rows * n) * sizeof *h_back);
    memset(c_back, 0, (size_t)(s.rows * n) * sizeof *c_back);
    for (int64_t t = s.steps - 1; t >= 0; t--) {
        const int64_t at = (t * s.batch + s.first) * n;
        const float  *c0 = t > 0 ? c + at - s.batch * n : (const float *)call->in[C0].data + s.first * n;
        add(s.rows * n, dh + at, h_back);
        if (call->n_in > DC) add(s.rows * n, (const float *)call->in[DC].data + at, c_back);
        for (int64_t b = 0; b < s.rows; b++)
            cells->lstm_back(n, gates + 4 * (at + b * n), c0 + b * n, c + at + b * n, h_back + b * n, c_back + b * n,
                             dz + 4 * (at + b * n));
        pli_gemm_packed(s.rows, n, 4 * n, dz + 4 * at, 4 * n, packed, false, h_back, n);
    }
    return PLAIT_OK;
}

/* --- the op ----------------------------------------------------------------------------------------------------- */

static void gradient(const plait_gradient *at) { pli_gradient_refuse(at, "lstm_gradient"); }

static double flops(const plait_call *call) {
    return (2.0 * (double)call->in[R].shape.dim[0] + 10.0) * (double)plait_shape_elements(&call->in[GATES].shape);
}

static const plait_kernel        fast = { .name = "cells f32",
                                          .suits = cells_suits,
                                          .open = cells_open,
                                          .scratch = cells_scratch,
                                          .items = cells_items,
                                          .run = cells_run };
static const plait_kernel        ref = { .name = "ref", .items = ref_items, .run = ref_run };
static const plait_kernel *const kernels[] = { &fast, &ref, NULL };

const plait_op pli_op_lstm_gradient = {
    .size = sizeof(plait_op),
    .name = "lstm_gradient",
    .summary = "lstm's derivatives by what comes in and by its first state",
    .min_inputs = 5,
    .max_inputs = 6,
    .outputs = 3,
    .infer = infer,
    .gradient = gradient,
    .flops = flops,
    .kernels = kernels,
};
