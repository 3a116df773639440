/* A softmax whose classes lie over ranks (--columns N), or of which a step scores some (--sampled K).
 *
 *     rank k:   z_k = h W[:, classes of k] + b[classes of k]
 *               stats_k = max z_k, sum exp(z_k - max), the label's z if it is among them, the best class
 *     rank 0:   logs = log sum exp(z)   of all ranks' stats; the loss is logs - z[label]
 *     rank k:   slopes_k = exp(z_k - logs), less 1 at the label
 *
 * Only h, four numbers for each row and rank, and logs travel; no rank has a row's scores of all classes. (Shoeybi et
 * al., "Megatron-LM", 2019, section 3: the parallel cross entropy.) Sums go in double, as in loss/softmax.c.
 *
 * A sampled softmax (draws.h) has its last layer by class: W and b have a row for each class, of which a step reads and
 * pushes those of its candidates. Rank k takes the candidates among its own classes:
 *
 *     rank k:   z_k = h W[candidates of k]' + b[candidates of k] + bonus     its own class has no bonus
 *
 * and all else is as above, with candidates for classes. So a step costs what its candidates cost, however many classes
 * there are. Rows are judged by all classes.
 *
 * Three ops: class_part makes the stats, class_loss joins them, class_slopes makes the slopes. The loss that is
 * differentiated is the sum of the ranks' own shares, output 1 of class_slopes: a row's loss counts where its label
 * lies. The derivative of the whole loss by z_k is slopes_k, whatever the other ranks have. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <plait/nn.h>

#include "graph/graph.h"
#include "learn/net/classes.h"
#include "learn/net/net.h"

enum { TOP, SUM, TARGET, BEST, STATS };

/* The columns of a part's scores. row NULL: they are all of its classes, from the first on. */
typedef struct part_classes {
    int64_t        k, first;
    const int64_t *row;   /* [k] candidates */
    const double  *bonus; /* [k] */
} part_classes;

/* The classes of a node whose candidates and bonus, if it has them, are inputs `in` and the next. */
static part_classes classes_of(const plait_call *call, int32_t in) {
    const bool some = call->n_in > in;
    return (part_classes){ .k = call->in[0].shape.dim[1],
                           .first = call->attr[0].u.i,
                           .row = some ? call->in[in].data : NULL,
                           .bonus = some ? call->in[in + 1].data : NULL };
}

/* Where the part's scores have its class number `row`; -1: nowhere. */
static int64_t place_of(const part_classes *p, int64_t row) {
    int64_t low = 0, high = p->k;
    if (p->row == NULL) return row >= 0 && row < p->k ? row : -1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (p->row[middle] < row) low = middle + 1;
        else high = middle;
    }
    return low < p->k && p->row[low] == row ? low : -1;
}

/* Score c of a row whose own class is at `at`. */
static inline double score_of(const part_classes *p, const float *z, int64_t c, int64_t at) {
    return (double)z[c] + (p->bonus != NULL && c != at ? p->bonus[c] : 0);
}

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

/* --- class_part: scores [n, K of the part], label [n]; candidates, bonus [K] -> stats [n, STATS] ---------------- */

static plait_status part_infer(const plait_call *call) {
    const plait_shape *scores = &call->in[0].shape;
    if (call->in[0].type != PLAIT_F32 || call->in[1].type != PLAIT_F64 || scores->rank != 2)
        return plait_call_fail(call, PLAIT_ESHAPE, "takes scores [n, K] f32 and labels [n] f64");
    call->out[0] = (plait_tensor){ .type = PLAIT_F64, .shape = plait_shape_2(scores->dim[0], STATS) };
    return PLAIT_OK;
}

static void judge_part(const part_classes *p, const float *z, int64_t at, double stats[STATS]) {
    int64_t best = 0;
    double  sum = 0, top = -(double)INFINITY;
    for (int64_t c = 0; c < p->k; c++) {
        const double score = score_of(p, z, c, at);
        if (score > top) {
            top = score;
            best = c;
        }
    }
    for (int64_t c = 0; c < p->k; c++) sum += exp(score_of(p, z, c, at) - top);
    stats[TOP] = top; /* -infinity where a part has no class that counts for the row: then sum is not looked at */
    stats[SUM] = sum;
    stats[TARGET] = at >= 0 ? (double)z[at] : -(double)INFINITY;
    stats[BEST] = (double)(p->first + (p->row != NULL && p->k > 0 ? p->row[best] : best));
}

static plait_status part_run(const plait_call *call, int64_t item) {
    const part_classes p = classes_of(call, 2);
    const int64_t      n = call->in[0].shape.dim[0];
    const float       *z = call->in[0].data;
    const double      *label = call->in[1].data;
    double            *stats = call->out[0].data;
    (void)item;
    for (int64_t r = 0; r < n; r++) {
        double  weight = 1;
        int64_t row;
        if (!target_of(call, label[r], p.first, &row, &weight)) row = -1; /* class_loss says so, if the row counts */
        judge_part(&p, z + r * p.k, place_of(&p, row), stats + r * STATS);
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
        if (stats[TOP] > -(double)INFINITY) all[SUM] += stats[SUM] * exp(stats[TOP] - all[TOP]);
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

/* --- class_slopes: scores [n, K of the part], logs, label, weight [n]; candidates and bonus [K] ----------------------
 *     -> slopes [n, K of the part], share [] */

static plait_status slopes_infer(const plait_call *call) {
    if (call->in[0].type != PLAIT_F32 || call->in[0].shape.rank != 2 || call->in[1].type != PLAIT_F64)
        return plait_call_fail(call, PLAIT_ESHAPE, "takes scores [n, K] f32, and logs, labels and weights [n] f64");
    call->out[0] = (plait_tensor){ .type = PLAIT_F32, .shape = call->in[0].shape };
    call->out[1] = (plait_tensor){ .type = PLAIT_F32, .shape = { .rank = 0 } };
    return PLAIT_OK;
}

/* Of a row that counts; returns its share of the loss. */
static double slope_row(const part_classes *p, const float *z, double log_sum, double weight, int64_t at,
                        float *slopes) {
    for (int64_t c = 0; c < p->k; c++)
        slopes[c] = (float)(weight * (exp(score_of(p, z, c, at) - log_sum) - (c == at ? 1 : 0)));
    return at >= 0 ? weight * (log_sum - (double)z[at]) : 0;
}

static plait_status slopes_run(const plait_call *call, int64_t item) {
    const part_classes p = classes_of(call, 4);
    const int64_t      n = call->in[0].shape.dim[0];
    const float       *z = call->in[0].data;
    const double      *logs = call->in[1].data, *label = call->in[2].data, *given = call->in[3].data;
    float             *slopes = call->out[0].data;
    double             share = 0;
    (void)item;
    for (int64_t r = 0; r < n; r++, z += p.k, slopes += p.k) {
        double  weight = given[r];
        int64_t row;
        if (weight == 0) {
            memset(slopes, 0, (size_t)p.k * sizeof *slopes);
            continue;
        }
        if (!target_of(call, label[r], p.first, &row, &weight)) return unknown(call, label[r]);
        share += slope_row(&p, z, logs[r], weight, place_of(&p, row), slopes);
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
                        .summary = "what a part of the classes says of a softmax", .min_inputs = 2, .max_inputs = 4,
                        .outputs = 1, .attrs = first_of, .n_attrs = 1, .infer = part_infer, .flops = flops,
                        .kernels = part_kernels, .user = user };
    op[1] = (plait_op){ .size = sizeof(plait_op), .name = "class_loss",
                        .summary = "the loss of a softmax whose classes are in parts", .min_inputs = 3,
                        .max_inputs = 2 + PLI_NET_PARAMS, .outputs = 2, .infer = loss_infer,
                        .kernels = loss_kernels, .user = user };
    op[2] = (plait_op){ .size = sizeof(plait_op), .name = "class_slopes",
                        .summary = "the slopes of a part of the classes", .min_inputs = 4, .max_inputs = 6,
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

/* A part's scores, and what is known of its columns. */
typedef struct scored_part {
    plait_value scores, candidates, bonus; /* candidates NONE: all of its classes */
} scored_part;

static void add_candidates(const scored_part *part, plait_value *in, int32_t *n) {
    if (part->candidates < 0) return;
    in[(*n)++] = part->candidates;
    in[(*n)++] = part->bonus;
}

/* The stats of each part, joined. Returns logs, of whose node output 1 is the sums. */
static plait_value join(pli_net *net, const scored_part *part) {
    plait_graph *g = net->graph;
    plait_value  in[2 + PLI_NET_PARAMS] = { net->label, net->weight };
    for (int32_t p = 0; p < net->columns; p++) {
        const int64_t first = plait_graph_nodes(g);
        plait_value   of[4] = { part[p].scores, net->label };
        int32_t       n = 2;
        add_candidates(&part[p], of, &n);
        in[2 + p] = with_first(g, "class_part", of, n, pli_columns_edge(net, net->goal->columns, p));
        pli_columns_place(net, first, p);
    }
    const int64_t     first = plait_graph_nodes(g);
    const plait_value joined = plait_graph_op(g, "class_loss", in, 2 + net->columns, NULL, 0);
    pli_columns_place(net, first, 0);
    return joined;
}

/* Sets the net's loss and its sums. */
static void lose(pli_net *net, const scored_part *part) {
    plait_graph      *g = net->graph;
    plait_value       share[PLI_NET_PARAMS];
    const plait_value joined = join(net, part);
    for (int32_t p = 0; p < net->columns; p++) {
        const int64_t first = plait_graph_nodes(g);
        plait_value   of[6] = { part[p].scores, joined, net->label, net->weight };
        int32_t       n = 4;
        add_candidates(&part[p], of, &n);
        const int64_t     edge = pli_columns_edge(net, net->goal->columns, p);
        const plait_value slopes = with_first(g, "class_slopes", of, n, edge);
        share[p] = plait_graph_output(g, slopes, 1);
        pli_columns_place(net, first, p);
    }
    const int64_t first = plait_graph_nodes(g);
    net->sums = plait_graph_output(g, joined, 1);
    net->loss = plait_graph_op(g, "add_n", share, net->columns, NULL, 0);
    net->scores = PLAIT_NONE;
    pli_columns_place(net, first, 0);
}

void pli_classes_lose(pli_net *net, const plait_value *scores) {
    scored_part part[PLI_NET_PARAMS];
    for (int32_t p = 0; p < net->columns; p++) part[p] = (scored_part){ scores[p], PLAIT_NONE, PLAIT_NONE };
    lose(net, part);
}

/* --- sampled ------------------------------------------------------------------------------------------------------ */

/* h W' + b', W [classes, n], b [classes, 1]. */
static plait_value by_class(plait_graph *g, plait_value h, plait_value w, plait_value b) {
    static const int64_t swap[] = { 1, 0 };
    const plait_attr     turned = { .name = "tb", .kind = PLAIT_ATTR_INT, .u.i = 1 };
    const plait_value    in[] = { h, w };
    return plait_op_add(g, plait_graph_op(g, "matmul", in, 2, &turned, 1), plait_op_transpose(g, b, 2, swap));
}

/* A part of the last layer's weights or biases, n values a class. */
static plait_value part_of(pli_net *net, char letter, int32_t layer, int32_t part, int64_t n) {
    const int64_t from = pli_columns_edge(net, net->goal->columns, part);
    const int64_t classes = pli_columns_edge(net, net->goal->columns, part + 1) - from;
    char          name[80];
    if (net->n_params == PLI_NET_PARAMS)
        return pli_graph_failed(net->graph, PLAIT_EREFUSED,
                                "a net in %d columns has more than %d pieces; take fewer columns or layers",
                                net->columns, (int)PLI_NET_PARAMS);
    pli_net_param p = { .rows = classes, .cols = n, .penalised = letter != 'b', .by_class = true, .row0 = from,
                        .of = net->columns > 1 ? 2 * (layer - 1) + (letter == 'b') : net->n_params };
    snprintf(p.name, sizeof p.name, "%c%d", letter, (int)layer);
    snprintf(name, sizeof name, net->columns > 1 ? "%c%d.%d" : "%c%d", letter, (int)layer, (int)part);
    return pli_net_piece(net, &p, name, plait_shape_2(classes, n));
}

static plait_value placeholder(pli_net *net, const char *what, int32_t part, plait_type type) {
    char name[32];
    snprintf(name, sizeof name, "%s.%d", what, (int)part);
    return plait_graph_placeholder(net->graph, name, type, plait_shape_1(PLAIT_ANY));
}

/* Judged by all classes, where no rank has the whole net. */
static void judge_all(pli_net *net, const plait_value *h, const plait_value *w, const plait_value *b) {
    scored_part part[PLI_NET_PARAMS];
    for (int32_t k = 0; k < net->columns; k++) {
        const int64_t first = plait_graph_nodes(net->graph);
        part[k] = (scored_part){ by_class(net->graph, h[k], w[k], b[k]), PLAIT_NONE, PLAIT_NONE };
        pli_columns_place(net, first, k);
    }
    net->judged = plait_graph_output(net->graph, join(net, part), 1);
}

void pli_classes_sample(pli_net *net, const plait_value *x, int32_t parts, int64_t n, int32_t layer) {
    plait_graph *g = net->graph;
    plait_value  w[PLI_NET_PARAMS], b[PLI_NET_PARAMS], h[PLI_NET_PARAMS];
    scored_part  part[PLI_NET_PARAMS];
    int64_t      first = plait_graph_nodes(g);
    for (int32_t k = 0; k < net->columns; k++) {
        net->candidates[k] = placeholder(net, "candidates", k, PLAIT_I64);
        net->bonus[k] = placeholder(net, "bonus", k, PLAIT_F64);
    }
    pli_columns_place(net, first, 0);
    for (int32_t k = 0; k < net->columns; k++) {
        first = plait_graph_nodes(g);
        w[k] = part_of(net, 'w', layer, k, n);
        b[k] = part_of(net, 'b', layer, k, 1);
        h[k] = parts > 1 ? plait_op_concat(g, parts, x, 1) : x[0];
        const plait_value rows = plait_op_get_rows(g, w[k], net->candidates[k]);
        const plait_value biases = plait_op_get_rows(g, b[k], net->candidates[k]);
        part[k] = (scored_part){ by_class(g, h[k], rows, biases), net->candidates[k], net->bonus[k] };
        pli_columns_place(net, first, k);
    }
    lose(net, part);
    if (net->columns > 1) judge_all(net, h, w, b);
}
