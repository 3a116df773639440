/* Counts of operations that several ops share. */
#include "graph/flops.h"

#include "graph/pooling.h"

static double elements(const plait_tensor *t) { return (double)plait_shape_elements(&t->shape); }

double pli_flops_none(const plait_call *call) {
    (void)call;
    return 0;
}

double pli_flops_input(const plait_call *call) { return elements(&call->in[0]); }
double pli_flops_dot(const plait_call *call) { return 2 * elements(&call->in[0]); }
double pli_flops_curve(const plait_call *call) { return 20 * elements(&call->out[0]); }
double pli_flops_norm(const plait_call *call) { return 8 * elements(&call->out[0]); }
double pli_flops_lines(const plait_call *call) { return 4 * elements(&call->out[0]); }
double pli_flops_adds(const plait_call *call) { return (double)(call->n_in - 1) * elements(&call->out[0]); }
double pli_flops_added(const plait_call *call) { return elements(&call->in[call->n_in - 1]); }

double pli_flops_window(const plait_call *call) {
    const pli_pooling p = pli_pooling_of(call->attr, &call->in[0].shape);
    return (double)p.planes * (double)p.out[0] * (double)p.out[1] * (double)p.window[0] * (double)p.window[1];
}

double pli_flops_of(const plait_op *op, const plait_call *call) {
    return op->flops != NULL ? op->flops(call) : elements(&call->out[0]);
}
