/* Cuts a net in stages by layers.
 *
 * A *layer* begins where a value that depends on the rows meets a weight. Its number is one more than that of the layer
 * before it; where branches meet, the later one counts. So an edge never leads back to an earlier layer, and runs of
 * layers are stages of a pipeline. A bias, and whatever is computed from variables alone, lies with its first reader.
 *
 * Which runs? Those whose slowest stage takes least time. Each layer's time is that of its nodes, forward and backward,
 * by the costs of simulation; the best runs are found by dynamic programming (the chains of Bokhari, "Partitioning
 * Problems in Parallel, Pipelined, and Distributed Computing", IEEE Transactions on Computers 1988). */
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "learn/net/stages.h"

/* What is known of the forward nodes [n]. */
typedef struct layers {
    const pli_net *net;
    int64_t        n;
    int32_t        layers;
    bool          *fed, *weighs; /* the node depends on a placeholder; on a weight, and on no placeholder */
    int32_t       *layer;        /* from 0 */
} layers;

static void layers_free(layers *l) {
    pli_free(l->fed);
    pli_free(l->weighs);
    pli_free(l->layer);
}

static int64_t forward_nodes(const plait_graph *g) {
    int64_t n = 0;
    while (n < g->n_nodes && g->node[n].forward < 0) n++;
    return n;
}

static const pli_net_param *param_of(const pli_net *net, const pli_node *node) {
    for (int32_t p = 0; p < net->n_params; p++)
        if (net->param[p].value == node->value) return &net->param[p];
    return NULL;
}

static int64_t input_of(const plait_graph *g, const pli_node *node, int32_t i) {
    return g->value[g->input[node->input + i]].node;
}

/* Numbers the layers of nodes that depend on rows, from 1 on; what comes before the first weight has 0. */
static void number_fed(layers *l) {
    const plait_graph *g = l->net->graph;
    for (int64_t k = 0; k < l->n; k++) {
        const pli_node      *node = &g->node[k];
        const pli_net_param *param = param_of(l->net, node);
        bool                 meets = false;
        l->fed[k] = strcmp(node->op->name, "placeholder") == 0;
        for (int32_t i = 0; i < node->n_inputs; i++) {
            const int64_t from = input_of(g, node, i);
            l->fed[k] = l->fed[k] || l->fed[from];
            meets = meets || l->weighs[from];
            if (l->fed[from] && l->layer[from] > l->layer[k]) l->layer[k] = l->layer[from];
        }
        l->weighs[k] = !l->fed[k] && (meets || (param != NULL && param->penalised));
        if (l->fed[k] && meets) l->layer[k]++;
        if (l->layer[k] > l->layers) l->layers = l->layer[k];
    }
}

/* Gives what depends on no row to its first reader. */
static void number_others(layers *l) {
    const plait_graph *g = l->net->graph;
    for (int64_t k = 0; k < l->n; k++)
        if (!l->fed[k]) l->layer[k] = INT32_MAX;
    for (int64_t k = l->n - 1; k >= 0; k--)
        for (int32_t i = 0; i < g->node[k].n_inputs; i++) {
            const int64_t from = input_of(g, &g->node[k], i);
            if (!l->fed[from] && l->layer[k] < l->layer[from]) l->layer[from] = l->layer[k];
        }
    for (int64_t k = 0; k < l->n; k++) {
        if (l->layer[k] == INT32_MAX) l->layer[k] = 0; /* nobody reads it */
        if (l->layer[k] > 0) l->layer[k]--;
    }
    if (l->layers == 0) l->layers = 1;
}

static plait_status find_layers(const pli_net *net, layers *l, plait_error *err) {
    *l = (layers){ .net = net, .n = forward_nodes(net->graph) };
    l->fed = pli_calloc((size_t)l->n, sizeof *l->fed);
    l->weighs = pli_calloc((size_t)l->n, sizeof *l->weighs);
    l->layer = pli_calloc((size_t)l->n, sizeof *l->layer);
    if (l->fed == NULL || l->weighs == NULL || l->layer == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory to cut a net");
    number_fed(l);
    number_others(l);
    return PLAIT_OK;
}

/* --- what a layer costs ------------------------------------------------------------------------------------------- */

void pli_net_place_opts(const pli_net *net, int64_t rows, plait_feed feeds[PLI_NET_TRAIN_FEEDS],
                        plait_value fetches[PLI_NET_PARAMS + 1], plait_place_opts *opts) {
    const int64_t      entries = net->sparse ? rows * 16 : 0;
    const pli_net_rows shape = { .entries = entries, .unique = entries };
    for (int32_t p = 0; p < net->n_params; p++) fetches[p] = net->param[p].inc;
    fetches[net->n_params] = net->sums;
    plait_place_opts_init(opts);
    opts->feeds = feeds;
    opts->n_feeds = pli_net_feeds_of(net, &shape, rows, feeds);
    opts->fetches = fetches;
    opts->n_fetches = net->n_params + 1;
}

/* Seconds of each layer [l->layers], by a placement with one rank for each. */
static plait_status measure(const layers *l, int64_t rows, const pli_stage_hosts *hosts, double *seconds,
                            plait_error *err) {
    const pli_net   *net = l->net;
    const int64_t    nodes = net->graph->n_nodes;
    plait_feed       feeds[PLI_NET_TRAIN_FEEDS];
    plait_value      fetches[PLI_NET_PARAMS + 1];
    plait_placement *placement = NULL;
    plait_place_opts opts;
    int32_t         *given = pli_array((size_t)nodes, sizeof *given);
    if (given == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to cut a net");
    for (int64_t k = 0; k < nodes; k++) {
        const int32_t of = net->graph->node[k].forward;
        given[k] = k < l->n ? l->layer[k] : of >= 0 && of < l->n ? l->layer[of] : 0;
    }
    pli_net_place_opts(net, rows, feeds, fetches, &opts);
    if (hosts != NULL) pli_stage_hosts_fill(hosts, &opts);
    opts.speed = opts.latency_s = opts.bandwidth = NULL; /* there are as many ranks as layers here */
    opts.ranks = l->layers;
    opts.method = "given";
    opts.given = given;
    plait_status status = plait_placement_create(net->graph, &opts, &placement, err);
    for (int32_t k = 0; status >= 0 && k < l->layers; k++) {
        plait_place_share share;
        status = plait_placement_share(placement, k, &share, err);
        seconds[k] = share.busy_s;
    }
    plait_placement_destroy(&placement);
    pli_free(given);
    return status;
}

/* --- runs of layers ----------------------------------------------------------------------------------------------- */

/* worst [stages + 1, n + 1] and cut, likewise, are the table of the best runs of the first layers. */
static void fill_runs(const double *seconds, int32_t n, int32_t stages, const double *speed, double *worst,
                      int32_t *cut, int32_t *first) {
    const size_t width = (size_t)n + 1;
    for (int32_t i = 0; i <= n; i++) worst[i] = i == 0 ? 0 : (double)INFINITY;
    for (int32_t s = 1; s <= stages; s++) {
        const double *fewer = worst + (size_t)(s - 1) * width; /* the best of one stage less */
        double       *best = worst + (size_t)s * width;
        for (int32_t i = 0; i <= n; i++) {
            double last = 0; /* of the run of layers j .. i - 1 */
            const double slow = speed != NULL ? 1 / speed[s - 1] : 1;
            best[i] = (double)INFINITY;
            cut[(size_t)s * width + (size_t)i] = i - 1;
            for (int32_t j = i - 1; j >= s - 1; j--) {
                last += seconds[j] * slow;
                const double slowest = last > fewer[j] ? last : fewer[j];
                if (!(slowest < best[i])) continue;
                best[i] = slowest;
                cut[(size_t)s * width + (size_t)i] = j;
            }
        }
    }
    for (int32_t s = stages, i = n; s > 0; s--) i = first[s - 1] = cut[(size_t)s * width + (size_t)i];
}

bool pli_layers_cut(const double *seconds, int32_t n, int32_t stages, const double *speed, int32_t *first) {
    const size_t cells = (size_t)(stages + 1) * (size_t)(n + 1);
    double      *worst = pli_array(cells, sizeof *worst);
    int32_t     *cut = pli_array(cells, sizeof *cut);
    const bool   done = worst != NULL && cut != NULL;
    if (done) fill_runs(seconds, n, stages, speed, worst, cut, first);
    pli_free(worst);
    pli_free(cut);
    return done;
}

static plait_status too_few(const layers *l, int32_t stages, plait_error *err) {
    char    names[160] = "";
    size_t  used = 0;
    int32_t n = 0;
    for (int32_t p = 0; p < l->net->n_params && used < sizeof names - 70; p++)
        if (l->net->param[p].penalised)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%.60s", n++ > 0 ? ", " : "",
                                     l->net->param[p].name);
    return pli_fail(err, PLAIT_EREFUSED,
                    "a net of %d layer%s (%s) in %d stages is refused: each stage needs a layer (interleaved: two "
                    "stages a rank); take a smaller --cut, or more --layers",
                    l->layers, pli_plural(l->layers), names, stages);
}

/* A host has every so-many-th stage. NULL: they are equal; or no memory, which *failed says. */
static double *speeds_of(const pli_stage_hosts *hosts, int32_t stages, bool *failed) {
    *failed = false;
    if (hosts == NULL || hosts->speed == NULL) return NULL;
    double *speed = pli_array((size_t)stages, sizeof *speed);
    *failed = speed == NULL;
    for (int32_t s = 0; speed != NULL && s < stages; s++) speed[s] = hosts->speed[s % hosts->stages];
    return speed;
}

static plait_status place(const layers *l, int32_t stages, int64_t rows, const pli_stage_hosts *hosts,
                          int32_t *place_out, plait_error *err) {
    double      *seconds = pli_array((size_t)l->layers, sizeof *seconds);
    int32_t     *first = pli_array((size_t)stages, sizeof *first);
    plait_status status = PLAIT_OK;
    bool         failed;
    double      *speed = speeds_of(hosts, stages, &failed);
    if (seconds == NULL || first == NULL || failed) status = pli_fail(err, PLAIT_ENOMEM, "no memory to cut a net");
    if (status >= 0) status = measure(l, rows, hosts, seconds, err);
    if (status >= 0 && !pli_layers_cut(seconds, l->layers, stages, speed, first))
        status = pli_fail(err, PLAIT_ENOMEM, "no memory to cut a net");
    if (status >= 0)
        for (int64_t k = 0; k < l->net->graph->n_nodes; k++) {
            int32_t s = stages - 1;
            while (k < l->n && first[s] > l->layer[k]) s--;
            place_out[k] = k < l->n && strcmp(l->net->graph->node[k].op->name, "placeholder") != 0 ? s : -1;
        }
    pli_free(seconds);
    pli_free(first);
    pli_free(speed);
    return status;
}

plait_status pli_layers_place(const pli_net *net, int32_t stages, int64_t rows, const pli_stage_hosts *hosts,
                              int32_t *place_out, plait_error *err) {
    layers       l;
    plait_status status = find_layers(net, &l, err);
    if (status >= 0 && l.layers < stages) status = too_few(&l, stages, err);
    if (status >= 0) status = place(&l, stages, rows, hosts, place_out, err);
    layers_free(&l);
    return status;
}
