/* gru: a layer of gated recurrent units over whole sequences.
 *
 *     z [steps, batch, 3 units]: the inputs of gates r, u, g: one product x W + b over all steps, by matmul and add
 *     w [units, 3 units], b [units], h0 [batch, units]; s = h[t-1] w
 *     r, u = sigmoid of z[t] + s;  g = tanh(z_g + r m), m = s_g + b;  h[t] = (1 - u) g + u h[t-1]
 *
 * Gate r scales the product, as in cuDNN and in ONNX with linear_before_reset. Outputs: h [steps, batch, units], and
 * the gates r, u, g, m [steps, batch, 4 units], which the gradient needs. With dh: dz, ds, db, dh0 = gru_gradient, dw =
 * recurrent_product(h0, h, ds). Paper: Cho et al., "Learning Phrase Representations using RNN
 * Encoder-Decoder", EMNLP 2014. */
#include <math.h>

#include "graph/cells.h"
#include "graph/recurrent.h"

enum { Z, W, B, H0 };

static plait_status infer(const plait_call *call) {
    const plait_shape *z = &call->in[Z].shape, *w = &call->in[W].shape;
    for (int i = 0; i < 4; i++)
        if (call->in[i].type != call->in[0].type || !pli_type_is_float(call->in[i].type))
            return plait_call_fail(call, PLAIT_ESHAPE, "needs floats of one type");
    if (z->rank != 3 || w->rank != 2)
        return plait_call_fail(call, PLAIT_ESHAPE, "needs z [steps, batch, 3 units] and w [units, 3 units]");
    const int64_t     units = w->dim[0];
    const plait_shape state = plait_shape_2(z->dim[1], units), bias = plait_shape_1(units);
    if (units < 0 || (z->dim[2] != 3 * units && z->dim[2] != PLAIT_ANY) ||
        (w->dim[1] != 3 * units && w->dim[1] != PLAIT_ANY))
        return plait_call_fail(call, PLAIT_ESHAPE, "z and w need three columns a unit, of %lld units",
                               (long long)units);
    if (!pli_shapes_agree(&state, &call->in[H0].shape) || !pli_shapes_agree(&bias, &call->in[B].shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "h0 is to be [batch, units], and b [units]");
    for (int i = 0; i < 2; i++) {
        call->out[i] = (plait_tensor){ .type = call->in[0].type, .shape = *z };
        call->out[i].shape.dim[2] = i == 0 ? units : 4 * units;
    }
    return PLAIT_OK;
}

/* --- reference: an item is one sequence of the batch ------------------------------------------------------------ */

static int64_t ref_items(const plait_call *call) { return call->in[Z].shape.dim[1]; }

static double before(const plait_call *call, int64_t t, int64_t b, int64_t j) {
    const int64_t batch = call->in[Z].shape.dim[1], units = call->in[W].shape.dim[0];
    return t == 0 ? pli_element(&call->in[H0], b * units + j)
                  : pli_element(&call->out[0], ((t - 1) * batch + b) * units + j);
}

static double product(const plait_call *call, int64_t t, int64_t b, int64_t j) {
    const int64_t units = call->in[W].shape.dim[0];
    double        sum = 0;
    for (int64_t k = 0; k < units; k++) sum += before(call, t, b, k) * pli_element(&call->in[W], k * 3 * units + j);
    return sum;
}

static plait_status ref_run(const plait_call *call, int64_t b) {
    const int64_t steps = call->in[Z].shape.dim[0], batch = call->in[Z].shape.dim[1], n = call->in[W].shape.dim[0];
    for (int64_t t = 0; t < steps; t++) {
        const int64_t at = (t * batch + b) * n;
        for (int64_t j = 0; j < n; j++) {
            const double r = 1 / (1 + exp(-pli_element(&call->in[Z], 3 * at + j) - product(call, t, b, j)));
            const double u = 1 / (1 + exp(-pli_element(&call->in[Z], 3 * at + n + j) - product(call, t, b, n + j)));
            const double m = product(call, t, b, 2 * n + j) + pli_element(&call->in[B], j);
            const double g = tanh(pli_element(&call->in[Z], 3 * at + 2 * n + j) + r * m), gate[] = { r, u, g, m };
            for (int k = 0; k < 4; k++) pli_element_set(&call->out[1], 4 * at + k * n + j, gate[k]);
            pli_element_set(&call->out[0], at + j, (1 - u) * g + u * before(call, t, b, j));
        }
    }
    return PLAIT_OK;
}

/* --- cells: an item is some sequences of the batch -------------------------------------------------------------- */

static int cells_suits(const plait_call *call) {
    return call->in[Z].type == PLAIT_F32 && pli_gemm_fits(pli_sequences_each(call->in[Z].shape.dim[1]),
                                                          call->in[W].shape.dim[1], call->in[W].shape.dim[0]);
}

static plait_status cells_open(const plait_call *call, void **state_out) {
    (void)call;
    (void)state_out;
    pli_gemm_open();
    return PLAIT_OK;
}

static int64_t cells_items(const plait_call *call) { return pli_sequences_items(call->in[Z].shape.dim[1]); }

static size_t cells_scratch(const plait_call *call) {
    const plait_shape *r = &call->in[W].shape;
    return pli_sequences_scratch(call->in[Z].shape.dim[1], r->dim[1], r->dim[0], r->dim[1]);
}

static plait_status cells_run(const plait_call *call, int64_t item) {
    const pli_sequences s = pli_sequences_of(&call->out[0].shape, item);
    const pli_cells    *cells = pli_cells_get();
    const int64_t       n = s.units;
    const float        *z = call->in[Z].data, *w = call->in[W].data, *bias = call->in[B].data;
    float              *h = call->out[0].data, *gates = call->out[1].data, *packed = call->scratch,
          *sum = packed + pli_gemm_packed_floats(3 * n, n);
    pli_gemm_pack(false, 3 * n, n, w, 3 * n, packed);
    for (int64_t t = 0; t < s.steps; t++) {
        const int64_t at = (t * s.batch + s.first) * n;
        const float  *h0 = t > 0 ? h + at - s.batch * n : (const float *)call->in[H0].data + s.first * n;
        pli_gemm_packed(s.rows, 3 * n, n, h0, n, packed, false, sum, 3 * n);
        for (int64_t b = 0; b < s.rows; b++)
            cells->gru(n, z + 3 * (at + b * n), sum + 3 * b * n, bias, h0 + b * n, gates + 4 * (at + b * n),
                       h + at + b * n);
    }
    return PLAIT_OK;
}

/* --- the op ----------------------------------------------------------------------------------------------------- */

static void gradient(const plait_gradient *at) {
    if (at->d_out[1] >= 0) pli_gradient_refuse(at, "gru's gates");
    const plait_value in[] = { at->in[W], at->in[H0], at->out[0], at->out[1], at->d_out[0] };
    const plait_value dz = pli_graph_node(at->graph, &pli_op_gru_gradient, in, 5, NULL);
    const plait_value product_of[] = { at->in[H0], at->out[0], plait_graph_output(at->graph, dz, 1) };
    at->d_in[Z] = dz;
    at->d_in[W] = pli_graph_node(at->graph, &pli_op_recurrent_product, product_of, 3, NULL);
    at->d_in[B] = pli_op2(at->graph, &pli_op_sum_like, plait_graph_output(at->graph, dz, 2), at->in[B]);
    at->d_in[H0] = plait_graph_output(at->graph, dz, 3);
}

static double flops(const plait_call *call) {
    return (2.0 * (double)call->in[W].shape.dim[0] + 20.0) * (double)plait_shape_elements(&call->in[Z].shape);
}

static const plait_kernel        fast = { .name = "cells f32",
                                          .suits = cells_suits,
                                          .open = cells_open,
                                          .scratch = cells_scratch,
                                          .items = cells_items,
                                          .run = cells_run };
static const plait_kernel        ref = { .name = "ref", .items = ref_items, .run = ref_run };
static const plait_kernel *const kernels[] = { &fast, &ref, NULL };

const plait_op pli_op_gru = {
    .size = sizeof(plait_op),
    .name = "gru",
    .summary = "a layer of gated recurrent units over whole sequences",
    .min_inputs = 4,
    .max_inputs = 4,
    .outputs = 2,
    .infer = infer,
    .gradient = gradient,
    .flops = flops,
    .kernels = kernels,
};
