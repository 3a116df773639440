/* lstm: a layer of long short-term memory over whole sequences.
 *
 *     z [steps, batch, 4 units]: the inputs of gates i, f, g, o: one product x W + b over all steps, by matmul and add
 *     r [units, 4 units], h0 and c0 [batch, units]
 *     i, f, o = sigmoid, g = tanh of z[t] + h[t-1] r;  c[t] = f c[t-1] + i g;  h[t] = o tanh c[t]
 *
 * Outputs: h and c [steps, batch, units], and the gates [steps, batch, 4 units], which the gradient needs. With dh
 * and dc: dz, dh0, dc0 = lstm_gradient, dr = recurrent_product(h0, h, dz). Paper: Hochreiter and Schmidhuber,
 * "Long Short-Term Memory", 1997; with the forget gate of Gers et al., 2000. */
#include <math.h>

#include "graph/cells.h"
#include "graph/recurrent.h"

enum { Z, R, H0, C0 };

static plait_status infer(const plait_call *call) {
    const plait_shape *z = &call->in[Z].shape, *r = &call->in[R].shape;
    for (int i = 0; i < 4; i++)
        if (call->in[i].type != call->in[0].type || !pli_type_is_float(call->in[i].type))
            return plait_call_fail(call, PLAIT_ESHAPE, "needs floats of one type");
    if (z->rank != 3 || r->rank != 2)
        return plait_call_fail(call, PLAIT_ESHAPE, "needs z [steps, batch, 4 units] and r [units, 4 units]");
    const int64_t     units = r->dim[0];
    const plait_shape state = plait_shape_2(z->dim[1], units);
    if (units < 0 || (z->dim[2] != 4 * units && z->dim[2] != PLAIT_ANY) ||
        (r->dim[1] != 4 * units && r->dim[1] != PLAIT_ANY))
        return plait_call_fail(call, PLAIT_ESHAPE, "z and r need four columns a unit, of %lld units", (long long)units);
    if (!pli_shapes_agree(&state, &call->in[H0].shape) || !pli_shapes_agree(&state, &call->in[C0].shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "h0 and c0 are to be [batch, units]");
    for (int i = 0; i < 3; i++) {
        call->out[i] = (plait_tensor){ .type = call->in[0].type, .shape = *z };
        call->out[i].shape.dim[2] = i < 2 ? units : 4 * units;
    }
    return PLAIT_OK;
}

/* --- reference: an item is one sequence of the batch ------------------------------------------------------------ */

static int64_t ref_items(const plait_call *call) { return call->in[Z].shape.dim[1]; }

static double before(const plait_call *call, const plait_tensor *out, const plait_tensor *first, int64_t t, int64_t b,
                     int64_t j) {
    const int64_t batch = call->in[Z].shape.dim[1], units = call->in[R].shape.dim[0];
    return t == 0 ? pli_element(first, b * units + j) : pli_element(out, ((t - 1) * batch + b) * units + j);
}

static plait_status ref_run(const plait_call *call, int64_t b) {
    const int64_t steps = call->in[Z].shape.dim[0], batch = call->in[Z].shape.dim[1], units = call->in[R].shape.dim[0];
    for (int64_t t = 0; t < steps; t++) {
        const int64_t at = (t * batch + b) * units;
        for (int64_t j = 0; j < 4 * units; j++) {
            double sum = pli_element(&call->in[Z], 4 * at + j);
            for (int64_t k = 0; k < units; k++)
                sum +=
                    before(call, &call->out[0], &call->in[H0], t, b, k) * pli_element(&call->in[R], k * 4 * units + j);
            pli_element_set(&call->out[2], 4 * at + j, j / units == 2 ? tanh(sum) : 1 / (1 + exp(-sum)));
        }
        for (int64_t j = 0; j < units; j++) {
            double gate[4];
            for (int64_t k = 0; k < 4; k++) gate[k] = pli_element(&call->out[2], 4 * at + k * units + j);
            const double c = gate[1] * before(call, &call->out[1], &call->in[C0], t, b, j) + gate[0] * gate[2];
            pli_element_set(&call->out[1], at + j, c);
            pli_element_set(&call->out[0], at + j, gate[3] * tanh(c));
        }
    }
    return PLAIT_OK;
}

/* --- cells: an item is some sequences of the batch -------------------------------------------------------------- */

static int cells_suits(const plait_call *call) {
    return call->in[Z].type == PLAIT_F32 && pli_gemm_fits(pli_sequences_each(call->in[Z].shape.dim[1]),
                                                          call->in[R].shape.dim[1], call->in[R].shape.dim[0]);
}

static plait_status cells_open(const plait_call *call, void **state_out) {
    (void)call;
    (void)state_out;
    pli_gemm_open();
    return PLAIT_OK;
}

static int64_t cells_items(const plait_call *call) { return pli_sequences_items(call->in[Z].shape.dim[1]); }
static size_t  cells_scratch(const plait_call *call) {
     const plait_shape *r = &call->in[R].shape;
     return pli_sequences_scratch(call->in[Z].shape.dim[1], r->dim[1], r->dim[0], r->dim[1]);
}

static plait_status cells_run(const plait_call *call, int64_t item) {
    const pli_sequences s = pli_sequences_of(&call->out[0].shape, item);
    const pli_cells    *cells = pli_cells_get();
    const int64_t       n = s.units;
    const float        *z = call->in[Z].data, *r = call->in[R].data;
    float *h = call->out[0].data, *c = call->out[1].data, *gates = call->out[2].data, *packed = call->scratch,
          *sum = packed + pli_gemm_packed_floats(4 * n, n);
    pli_gemm_pack(false, 4 * n, n, r, 4 * n, packed);
    for (int64_t t = 0; t < s.steps; t++) {
        const int64_t at = (t * s.batch + s.first) * n;
        const float  *h0 = t > 0 ? h + at - s.batch * n : (const float *)call->in[H0].data + s.first * n;
        const float  *c0 = t > 0 ? c + at - s.batch * n : (const float *)call->in[C0].data + s.first * n;
        pli_gemm_packed(s.rows, 4 * n, n, h0, n, packed, false, sum, 4 * n);
        for (int64_t b = 0; b < s.rows; b++)
            cells->lstm(n, z + 4 * (at + b * n), sum + 4 * b * n, c0 + b * n, gates + 4 * (at + b * n), c + at + b * n,
                        h + at + b * n);
    }
    return PLAIT_OK;
}

/* --- the op ----------------------------------------------------------------------------------------------------- */

static void gradient(const plait_gradient *at) {
    plait_graph *g = at->graph;
    if (at->d_out[2] >= 0) pli_gradient_refuse(at, "lstm's gates");
    const plait_value dh = at->d_out[0] >= 0 ? at->d_out[0] : pli_op1(g, &pli_op_zeros_like, at->out[0]);
    const plait_value in[] = { at->in[R], at->in[C0], at->out[1], at->out[2], dh, at->d_out[1] };
    const plait_value dz = pli_graph_node(g, &pli_op_lstm_gradient, in, at->d_out[1] >= 0 ? 6 : 5, NULL);
    const plait_value product[] = { at->in[H0], at->out[0], dz };
    at->d_in[Z] = dz;
    at->d_in[R] = pli_graph_node(g, &pli_op_recurrent_product, product, 3, NULL);
    at->d_in[H0] = plait_graph_output(g, dz, 1);
    at->d_in[C0] = plait_graph_output(g, dz, 2);
}

static double flops(const plait_call *call) {
    return (2.0 * (double)call->in[R].shape.dim[0] + 20.0) * (double)plait_shape_elements(&call->in[Z].shape);
}

static const plait_kernel        fast = { .name = "cells f32",
                                          .suits = cells_suits,
                                          .open = cells_open,
                                          .scratch = cells_scratch,
                                          .items = cells_items,
                                          .run = cells_run };
static const plait_kernel        ref = { .name = "ref", .items = ref_items, .run = ref_run };
static const plait_kernel *const kernels[] = { &fast, &ref, NULL };

const plait_op pli_op_lstm = {
    .size = sizeof(plait_op),
    .name = "lstm",
    .summary = "a layer of long short-term memory over whole sequences",
    .min_inputs = 4,
    .max_inputs = 4,
    .outputs = 3,
    .infer = infer,
    .gradient = gradient,
    .flops = flops,
    .kernels = kernels,
};
