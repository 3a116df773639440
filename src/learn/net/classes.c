/* A softmax whose classes lie over ranks (--columns N): the last layer of an mlp, cut by classes.
 *
 *     rank k:   z_k = h W[:, classes of k] + b[classes of k]
 *               stats_k = max z_k, sum exp(z_k - max), the label's z if it is among them, the best class
 *     rank 0:   logs = log sum exp(z)   of all ranks' stats; the loss is logs - z[label]
 *     rank k:   slopes_k = exp(z_k - logs), less 1 at the label
 *
 * Only h, four numbers for each row and rank, and logs travel; no rank has a row's scores of all classes. (Shoeybi et
 * al., "Megatron-LM", 2019, section 3: the parallel cross entropy.) Sums go in double, as in loss/softmax.c.
 *
 * Three ops: class_part makes the stats, class_loss joins them, class_slopes makes the slopes. The loss that is
 * differentiated is the sum of the ranks' own shares, output 1 of class_slopes: a row's loss counts where its label
 * lies. The derivative of the whole loss by z_k is slopes_k, whatever the other ranks have. */
#include <math.h>
#include <string.h>

#include <plait/nn.h>

#include "graph/graph.h"
#include "learn/net/classes.h"
#include "learn/net/net.h"

enum { TOP, SUM, TARGET, BEST, STATS };

static const plait_attr_spec first_of[] = {
    { .preset = { .name = "first", .kind = PLAIT_ATTR_INT } }, /* the first class of the part */
};

/* The class of a row's label, less the part's first one, and the row's weight; false: unknown label. */
static bool target_of(const plait_call *call, double label, int64_t first, int64_t *at_out, double *weight) {
    const pli_net_units *units = call->user;
    double               y, class_weight;
    if (!pli_goal_target(units->goal, label, &y, &class_weight)) return false;
    *at_out = (int64_t)y - first;
    *weight *= class_weight;
    return true;
}

static plait_status unknown(const plait_call *call, double label) {
    return plait_call_fail(call, PLAIT_EFORMAT, "the label %g is not among the model's labels", label);
}

/* --- class_part: scores [n, K of the part], label [n], weight [n] -> stats [n, STATS] ---------------------- */

static plait_status part_infer(const plait_call *call) {
    const plait_shape *scores = &call->in[0].shape;
    if (call->in[0].type != PLAIT_F32 || call->in[1].type != PLAIT_F64 || scores->rank != 2)
        return plait_call_fail(call, PLAIT_ESHAPE, "takes scores [n, K] f32 and labels [n] f64");
    call->out[0] = (plait_tensor){ .type = PLAIT_F64, .shape = plait_shape_2(scores->dim[0], STATS) };
    return PLAIT_OK;
}

static void judge_part(const float *z, int64_t k, int64_t first, int64_t at, double stats[STATS]) {
    int64_t best = 0;
    double  sum = 0;
    for (int64_t c = 1; c < k; c++)
        if (z[c] > z[best]) best = c;
    const double top = (double)z[best];
    for (int64_t c = 0; c < k; c++) sum += exp((double)z[c] - top);
    stats[TOP] = top;
    stats[SUM] = sum;
    stats[TARGET] = at >= 0 && at < k ? (double)z[at] : -(double)INFINITY;
    stats[BEST] = (double)(first + best);
}

static plait_status part_run(const plait_call *call, int64_t item) {
    const int64_t n = call->in[0].shape.dim[0], k = call->in[0].shape.dim[1], first = call->attr[0].u.i;
    const float  *z = call->in[0].data;
    const double *label = call->in[1].data;
    double       *stats = call->out[0].data;
    (void)item;
    for (int64_t r = 0; r < n; r++) {
        double  weight = 1;
        int64_t at;
        if (!target_of(call, label[r], first, &at, &weight)) at = -1; /* class_loss says so, if the row counts */
        judge_part(z + r * k, k, first, at, stats + r * STATS);
    }
    return PLAIT_OK;
}

/* --- class_loss: label, weight, stats of each part -> logs [n], sums [PLI_SUMS] ---------------------- */

static plait_status loss_infer(const plait_call *call) {
    if (call->in[0].type != PLAIT_F64 || call->in[1].type != PLAIT_F64 || call->in[2].type != PLAIT_F64)
        return plait_call_fail(call, PLAIT_ESHAPE, "takes labels [n], weights [n] and parts [n, 4] f64");
    call->out[0] = (plait_tensor){ .type = PLAIT_F64, .shape = call->in[0].shape };
    call->out[1] = (plait_tensor){ .type = PLAIT_F64, .shape = plait_shape_1(PLI_SUMS) };
    return PLAIT_OK;
}

/* Joins the parts' stats of row r. */
static void join_row(const plait_call *call, int64_t r, double all[STATS]) {
    for (int32_t p = 2; p < call->n_in; p++) {
        const double *stats = (const double *)call->in[p].data + r * STATS;
        if (p == 2 || stats[TOP] > all[TOP]) {
            all[TOP] = stats[TOP]; /* of equal scores the first class counts */
            all[BEST] = stats[BEST];
        }
        if (p == 2 || stats[TARGET] > all[TARGET]) all[TARGET] = stats[TARGET];
    }
    all[SUM] = 0;
    for (int32_t p = 2; p < call->n_in; p++) {
        const double *stats = (const double *)call->in[p].data + r * STATS;
        all[SUM] += stats[SUM] * exp(stats[TOP] - all[TOP]);
    }
}

static plait_status loss_run(const plait_call *call, int64_t item) {
    const int64_t n = call->in[0].shape.dim[0];
    const double *label = call->in[0].data, *given = call->in[1].data;
    double       *logs = call->out[0].data;
    pli_sums      sums = { 0 };
    (void)item;
    for (int64_t r = 0; r < n; r++) {
        double  weight = given[r], all[STATS];
        int64_t at;
        join_row(call, r, all);
        logs[r] = all[TOP] + log(all[SUM]);
        if (weight == 0) continue;
        if (!target_of(call, label[r], 0, &at, &weight)) return unknown(call, label[r]);
        sums.loss += weight * (logs[r] - all[TARGET]);
        sums.weight += weight;
        sums.rows++;
        sums.right += (int64_t)all[BEST] == at ? weight : 0;
    }
    memcpy(call->out[1].data, &sums, sizeof sums);
    return PLAIT_OK;
}

/* --- class_slopes: scores [n, K of the part], logs, label, weight -> slopes [n, K of the part], share [] ---------- */

static plait_status slopes_infer(const plait_call *call) {
    if (call->in[0].type != PLAIT_F32 || call->in[0].shape.rank != 2 || call->in[1].type != PLAIT_F64)
        return plait_call_fail(call, PLAIT_ESHAPE, "takes scores [n, K] f32, and logs, labels and weights [n] f64");
    call->out[0] = (plait_tensor){ .type = PLAIT_F32, .shape = call->in[0].shape };
    call->out[1] = (plait_tensor){ .type = PLAIT_F32, .shape = { .rank = 0 } };
    return PLAIT_OK;
}

static plait_status slopes_run(const plait_call *call, int64_t item) {
    const int64_t n = call->in[0].shape.dim[0], k = call->in[0].shape.dim[1], first = call->attr[0].u.i;
    const float  *z = call->in[0].data;
    const double *logs = call->in[1].data, *label = call->in[2].data, *given = call->in[3].data;
    float        *slopes = call->out[0].data;
    double        share = 0;
    (void)item;
    for (int64_t r = 0; r < n; r++, z += k, slopes += k) {
        double  weight = given[r];
        int64_t at = -1;
        if (weight == 0) {
            memset(slopes, 0, (size_t)k * sizeof *slopes);
            continue;
        }
        if (!target_of(call, label[r], first, &at, &weight)) return unknown(call, label[r]);
        for (int64_t c = 0; c < k; c++)
            slopes[c] = (float)(weight * (exp((double)z[c] - logs[r]) - (c == at ? 1 : 0)));
        if (at >= 0 && at < k) share += weight * (logs[r] - (double)z[at]);
    }
    *(float *)call->out[1].data = (float)share;
    return PLAIT_OK;
}

static void slopes_gradient(const plait_gradient *at) {
    if (at->d_out[1] >= 0) at->d_in[0] = plait_op_mul(at->graph, at->out[0], at->d_out[1]);
}

/* Each score takes an exponential, which is about 8 operations. */
static double flops(const plait_call *call) {
    return 8.0 * (double)call->in[0].shape.dim[0] * (double)call->in[0].shape.dim[1];
}

/* --- the ops ------------------------------------------------------------------------------------------------------ */

static const plait_kernel        part_kernel = { .name = "stats", .run = part_run };
static const plait_kernel        loss_kernel = { .name = "join", .run = loss_run };
static const plait_kernel        slopes_kernel = { .name = "slopes", .run = slopes_run };
static const plait_kernel *const part_kernels[] = { &part_kernel, NULL };
static const plait_kernel *const loss_kernels[] = { &loss_kernel, NULL };
static const plait_kernel *const slopes_kernels[] = { &slopes_kernel, NULL };

void pli_class_ops(const pli_net_units *units, plait_op op[PLI_CLASS_OPS]) {
    void *user = (void *)(uintptr_t)units;
    op[0] = (plait_op){ .size = sizeof(plait_op), .name = "class_part",
                        .summary = "what a part of the classes says of a softmax", .min_inputs = 2, .max_inputs = 2,
                        .outputs = 1, .attrs = first_of, .n_attrs = 1, .infer = part_infer, .flops = flops,
                        .kernels = part_kernels, .user = user };
    op[1] = (plait_op){ .size = sizeof(plait_op), .name = "class_loss",
                        .summary = "the loss of a softmax whose classes are in parts", .min_inputs = 3,
                        .max_inputs = 2 + PLI_NET_PARAMS, .outputs = 2, .infer = loss_infer,
                        .kernels = loss_kernels, .user = user };
    op[2] = (plait_op){ .size = sizeof(plait_op), .name = "class_slopes",
                        .summary = "the slopes of a part of the classes", .min_inputs = 4, .max_inputs = 4,
                        .outputs = 2, .attrs = first_of, .n_attrs = 1, .infer = slopes_infer, .flops = flops,
                        .gradient = slopes_gradient, .kernels = slopes_kernels, .user = user };
}

/* --- the graph ---------------------------------------------------------------------------------------------------- */

bool pli_classes_suit(const pli_net *net, int64_t width) {
    const pli_goal *goal = net->goal;
    return goal->loss == &pli_loss_softmax && goal->columns >= net->columns && goal->columns > width;
}

static plait_value with_first(plait_graph *g, const char *op, const plait_value *in, int32_t n, int64_t first) {
    const plait_attr attr = { .name = "first", .kind = PLAIT_ATTR_INT, .u.i = first };
    return plait_graph_op(g, op, in, n, &attr, 1);
}

void pli_classes_lose(pli_net *net, const plait_value *scores, pli_place_fn *place) {
    plait_graph  *g = net->graph;
    plait_value   in[2 + PLI_NET_PARAMS] = { net->label, net->weight }, share[PLI_NET_PARAMS];
    const int64_t k = net->goal->columns;
    const int32_t parts = net->columns;
    for (int32_t p = 0; p < parts; p++) {
        const int64_t     first = plait_graph_nodes(g);
        const plait_value of[] = { scores[p], net->label };
        in[2 + p] = with_first(g, "class_part", of, 2, pli_columns_edge(net, k, p));
        place(net, first, p);
    }
    int64_t           first = plait_graph_nodes(g);
    const plait_value joined = plait_graph_op(g, "class_loss", in, 2 + parts, NULL, 0);
    net->sums = plait_graph_output(g, joined, 1);
    place(net, first, 0);
    for (int32_t p = 0; p < parts; p++) {
        const plait_value of[] = { scores[p], joined, net->label, net->weight };
        first = plait_graph_nodes(g);
        share[p] = plait_graph_output(g, with_first(g, "class_slopes", of, 4, pli_columns_edge(net, k, p)), 1);
        place(net, first, p);
    }
    first = plait_graph_nodes(g);
    net->loss = plait_graph_op(g, "add_n", share, parts, NULL, 0);
    place(net, first, 0);
}
