/* dropout: each element is set to 0 with probability `rate`, and the others are divided by 1 - rate. Output 1, the
 * mask, is 0 or 1 / (1 - rate), so dx = dy times the mask. The choice for an element takes 32 random bits, a function
 * of the session's seed, the node, the run and the place. Paper: Srivastava et al., "Dropout", JMLR 2014. */
#include "base/random.h"
#include "graph/kernel.h"
#include "graph/ops/ops.h"

static const plait_attr_spec attrs[] = { { .preset = { .name = "rate", .kind = PLAIT_ATTR_FLOAT, .u.f = 0.5 } } };

static plait_status infer(const plait_call *call) {
    if (!pli_type_is_float(call->in[0].type)) return plait_call_fail(call, PLAIT_ESHAPE, "of floats only; cast it");
    if (!(call->attr[0].u.f >= 0 && call->attr[0].u.f < 1))
        return plait_call_fail(call, PLAIT_EINVAL, "a rate of %g; from 0 to less than 1, please", call->attr[0].u.f);
    call->out[0] = call->out[1] = (plait_tensor){ .type = call->in[0].type, .shape = call->in[0].shape };
    return PLAIT_OK;
}

/* An element is dropped if its 32 random bits are below this number. */
static uint32_t bound(const plait_call *call) { return (uint32_t)(call->attr[0].u.f * 4294967296.0); }

static plait_status ref_run(const plait_call *call, int64_t item) {
    int64_t       first;
    const int64_t n = pli_item_piece(plait_shape_elements(&call->out[0].shape), item, &first);
    pli_random    random = pli_random_at(call->seed, PLI_RANDOM_GRAPH, call->step, (uint64_t)item);
    for (int64_t i = first; i < first + n; i++) {
        const double stays = pli_random_u32(&random) < bound(call) ? 0 : 1 / (1 - call->attr[0].u.f);
        pli_element_set(&call->out[1], i, stays);
        pli_element_set(&call->out[0], i, stays * pli_element(&call->in[0], i));
    }
    return PLAIT_OK;
}

static int f32_suits(const plait_call *call) { return call->in[0].type == PLAIT_F32; }

static plait_status f32_run(const plait_call *call, int64_t item) {
    int64_t        first;
    const int64_t  n = pli_item_piece(plait_shape_elements(&call->out[0].shape), item, &first);
    pli_random     random = pli_random_at(call->seed, PLI_RANDOM_GRAPH, call->step, (uint64_t)item);
    const float   *x = call->in[0].data, stays = (float)(1 / (1 - call->attr[0].u.f));
    float         *y = call->out[0].data, *mask = call->out[1].data;
    const uint32_t below = bound(call);
    for (int64_t i = first; i < first + n; i++) mask[i] = pli_random_u32(&random) < below ? 0 : stays;
    for (int64_t i = first; i < first + n; i++) y[i] = mask[i] * x[i];
    return PLAIT_OK;
}

/* The mask does not depend on x. */
static void gradient(const plait_gradient *at) {
    if (at->d_out[0] >= 0) at->d_in[0] = pli_op2(at->graph, &pli_op_mul, at->d_out[0], at->out[1]);
}

static double flops(const plait_call *call) { return 8.0 * (double)plait_shape_elements(&call->out[0].shape); }

static const plait_kernel f32 = { .name = "f32", .suits = f32_suits, .items = pli_items_by_output, .run = f32_run };
static const plait_kernel ref = { .name = "ref", .items = pli_items_by_output, .run = ref_run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_dropout = {
    .size = sizeof(plait_op),
    .name = "dropout",
    .summary = "some elements dropped at random, the others raised as much",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 2,
    .attrs = attrs,
    .n_attrs = 1,
    .flags = PLAIT_OP_STATEFUL,
    .in_place = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = flops,
    .kernels = kernels,
};
