/* concat_part: input 0 has the shape of inputs 1, 2, ... joined along an axis; the output is the part of input 0 at the
 * place of input number `part`. It is concat's gradient if lengths are not known before a run. Only the shapes of
 * inputs 1, 2, ... are needed. Its own gradient is padded with zeros. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

enum { AXIS, PART };

static const plait_attr_spec attrs[] = {
    [AXIS] = { .preset = { .name = "axis", .kind = PLAIT_ATTR_INT } },
    [PART] = { .preset = { .name = "part", .kind = PLAIT_ATTR_INT } },
};

static plait_status infer(const plait_call *call) {
    int32_t       axis;
    const int64_t part = call->attr[PART].u.i;
    if (part < 0 || part + 1 >= call->n_in || call->in[part + 1].shape.rank != call->in[0].shape.rank)
        return plait_call_fail(call, PLAIT_ESHAPE, "part %lld of %d, or of another rank", (long long)part,
                               call->n_in - 1);
    PLI_TRY(pli_axis_find(call, call->attr[AXIS].u.i, call->in[0].shape.rank, &axis));
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = call->in[part + 1].shape };
    return PLAIT_OK;
}

static plait_status run(const plait_call *call, int64_t item) {
    const plait_tensor *x = &call->in[0];
    int32_t             axis;
    int64_t             strides[PLAIT_RANK_MAX], before = 0;
    PLI_TRY(pli_axis_find(call, call->attr[AXIS].u.i, x->shape.rank, &axis));
    pli_strides(&x->shape, strides);
    for (int64_t k = 0; k < call->attr[PART].u.i; k++) before += call->in[k + 1].shape.dim[axis];
    pli_read_strided(call, x, before * strides[axis], strides, item);
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    plait_graph *g = at->graph;
    plait_value *in = pli_array((size_t)at->n_in, sizeof *in);
    if (in == NULL) {
        pli_graph_failed(g, PLAIT_ENOMEM, "no memory to differentiate");
        return;
    }
    for (int32_t k = 0; k + 1 < at->n_in; k++)
        in[k] = k == at->attr[PART].u.i ? at->d_out[0] : pli_op1(g, &pli_op_zeros_like, at->in[k + 1]);
    at->d_in[0] = pli_graph_node(g, &pli_op_concat, in, at->n_in - 1, &at->attr[AXIS]);
    pli_free(in);
}

static const plait_kernel        ref = { .name = "ref", .items = pli_items_by_output, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_concat_part = {
    .size = sizeof(plait_op),
    .name = "concat_part",
    .summary = "one of the parts of a concatenation",
    .min_inputs = 2,
    .max_inputs = INT32_MAX,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 2,
    .shape_only = ~1u,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
    .kernels = kernels,
};
