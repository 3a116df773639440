/* The op "row_loss" (plait/op.h): the loss of the rows' scores, by loss/loss.h.
 *
 * The loss is judged in the data's units, so Huber's delta and all that a run reports are in these. The slope is by the
 * score in training's units (pli_net_units), divided by unit: slope spread / unit.
 *
 * Output 0 is the weighted slope of each score. Output 1 is the sum of the losses; the graph differentiates it, and its
 * derivative by the scores is output 0. Output 2 is what a run reports (pli_sums). Rows are judged in order, in double.
 */
#include <string.h>

#include <plait/ops.h>

#include "learn/net/net.h"

static plait_status infer(const plait_call *call) {
    const plait_shape *scores = &call->in[0].shape;
    if (call->in[0].type != PLAIT_F32 || call->in[1].type != PLAIT_F64 || call->in[2].type != PLAIT_F64 ||
        scores->rank != 2)
        return plait_call_fail(call, PLAIT_ESHAPE, "takes scores [n, K] f32, labels [n] f64 and weights [n] f64");
    call->out[0] = (plait_tensor){ .type = PLAIT_F32, .shape = *scores };
    call->out[1] = (plait_tensor){ .type = PLAIT_F32, .shape = { .rank = 0 } };
    call->out[2] = (plait_tensor){ .type = PLAIT_F64, .shape = plait_shape_1(PLI_SUMS) };
    return PLAIT_OK;
}

static size_t scratch(const plait_call *call) { return 2 * (size_t)call->in[0].shape.dim[1] * sizeof(double); }

static plait_status run(const plait_call *call, int64_t item) {
    const pli_net_units *units = call->user;
    const pli_goal  *goal = units->goal;
    const double     by = units->spread / units->unit;
    const int64_t     n = call->in[0].shape.dim[0], k = call->in[0].shape.dim[1];
    const float      *scores = call->in[0].data;
    const double     *label = call->in[1].data, *weight = call->in[2].data;
    float            *slopes = call->out[0].data;
    double           *score = call->scratch, *slope = score + k;
    pli_sums          sums = { 0 };
    (void)item;
    for (int64_t r = 0; r < n; r++) {
        double y, class_weight;
        if (weight[r] == 0) {
            memset(slopes + r * k, 0, (size_t)k * sizeof *slopes);
            continue;
        }
        for (int64_t c = 0; c < k; c++) score[c] = units->mean + units->spread * (double)scores[r * k + c];
        if (!pli_goal_target(goal, label[r], &y, &class_weight) ||
            !pli_goal_judge(goal, score, label[r], weight[r], slope, &sums))
            return plait_call_fail(call, PLAIT_EFORMAT, "the label %g is not among the model's labels", label[r]);
        for (int64_t c = 0; c < k; c++) slopes[r * k + c] = (float)(weight[r] * class_weight * by * slope[c]);
    }
    *(float *)call->out[1].data = (float)(sums.loss / units->unit);
    memcpy(call->out[2].data, &sums, sizeof sums);
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    if (at->d_out[1] >= 0) at->d_in[0] = plait_op_mul(at->graph, at->out[0], at->d_out[1]);
}

static const plait_kernel        kernel = { .name = "losses", .scratch = scratch, .run = run };
static const plait_kernel *const kernels[] = { &kernel, NULL };

plait_op pli_net_loss_op(const pli_net_units *units) {
    _Static_assert(sizeof(pli_sums) == PLI_SUMS * sizeof(double), "sums are an array of doubles");
    return (plait_op){ .size = sizeof(plait_op),
                       .name = "row_loss",
                       .summary = "the loss of the rows' scores, by one of Plait's losses",
                       .min_inputs = 3,
                       .max_inputs = 3,
                       .outputs = 3,
                       .infer = infer,
                       .gradient = gradient,
                       .kernels = kernels,
                       .user = (void *)(uintptr_t)units };
}
