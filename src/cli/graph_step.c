/* The step that `plait graph place` judges: one micro-batch's feeds, forward and, unless --forward, backward for all
 * variables; and the ranks that a cluster file describes. The loss is not in the file, so the backward pass begins with
 * gradients of 1 at the fetched values. */
#include <string.h>

#include <plait/ops.h>

#include "cli/graph_place.h"
#include "graph/form/form.h"
#include "comm/cluster.h"
#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "optim/optim.h"

/* --- the graph and its rules -------------------------------------------------------------------------------------- */

const char *pli_place_method(const pli_place_settings *set) {
    static const char *const methods[] = { "auto", "chain", "heft", "metis" };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(set->place, methods[i]) == 0) return methods[i];
    return NULL;
}

/* Is one of the two no node of the graph? Names the nearest. A text with several colons can be read in several ways. */
static plait_status name_unknown(const plait_graph *g, const char *option, const char *text,
                                 const plait_place_rule *rule, plait_error *err) {
    const char *colon = strchr(text, ':');
    plait_value value;
    if (colon == NULL || strchr(colon + 1, ':') != NULL) return PLAIT_OK;
    char *name = pli_format("%.*s", (int)(colon - text), text);
    if (name == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a rule");
    plait_status status = pli_form_value(g, name, &value, err);
    pli_free(name);
    if (status >= 0 && rule->kind != PLAIT_PLACE_NEVER) status = pli_form_value(g, colon + 1, &value, err);
    return status < 0 ? pli_fail_at(err, "--%s '%.80s'", option, text) : status;
}

/* Reads "A:B". Names may have colons, so every colon is tried. */
static plait_status read_pair(plait_graph *g, const char *option, const char *text, plait_place_rule *rule,
                              plait_error *err) {
    for (const char *colon = strchr(text, ':'); colon != NULL; colon = strchr(colon + 1, ':')) {
        char   *name = pli_format("%.*s", (int)(colon - text), text);
        int64_t rank = -1;
        if (name == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a rule");
        rule->a = plait_graph_find(g, name);
        pli_free(name);
        if (rule->a < 0) continue;
        if (rule->kind != PLAIT_PLACE_NEVER && (rule->b = plait_graph_find(g, colon + 1)) >= 0) return PLAIT_OK;
        if (rule->kind == PLAIT_PLACE_NEVER && pli_parse_i64(colon + 1, &rank) && rank >= 0 && rank <= INT32_MAX) {
            rule->rank = (int32_t)rank;
            return PLAIT_OK;
        }
    }
    PLI_TRY(name_unknown(g, option, text, rule, err));
    return pli_fail(err, PLAIT_EINVAL, "--%s '%.80s': expected %s of the graph", option, text,
                    rule->kind == PLAIT_PLACE_NEVER ? "NODE:RANK, with a node" : "A:B, two nodes");
}

static plait_status add_rules(plait_graph *g, const char *option, const pli_text_list *given,
                              plait_place_rule_kind kind, int32_t ranks, plait_error *err) {
    for (int64_t i = 0; i < given->n; i++) {
        plait_place_rule rule = { .kind = kind };
        PLI_TRY(read_pair(g, option, given->item[i], &rule, err));
        if (kind == PLAIT_PLACE_NEVER && rule.rank >= ranks)
            return pli_fail(err, PLAIT_EINVAL, "--%s '%.80s': there is no rank %d of %d", option, given->item[i],
                            rule.rank, ranks);
        PLI_TRY(plait_graph_place_rule(g, &rule, err));
    }
    return PLAIT_OK;
}

static plait_status add_all(const pli_place_settings *set, int32_t ranks, plait_graph *g, plait_error *err) {
    if (pli_place_method(set) == NULL) PLI_TRY(plait_graph_place_file(g, set->place, err));
    PLI_TRY(add_rules(g, "together", &set->together, PLAIT_PLACE_TOGETHER, ranks, err));
    PLI_TRY(add_rules(g, "apart", &set->apart, PLAIT_PLACE_APART, ranks, err));
    PLI_TRY(add_rules(g, "forbid", &set->forbid, PLAIT_PLACE_NEVER, ranks, err));
    for (int32_t r = 0; set->memory > 0 && r < ranks; r++)
        PLI_TRY(plait_graph_place_memory(g, r, (uint64_t)set->memory, err));
    return PLAIT_OK;
}

plait_status pli_place_graph(const pli_place_settings *set, int32_t ranks, plait_graph **graph_out, plait_error *err) {
    plait_graph          *g = NULL;
    plait_graph_file_opts opts;
    plait_graph_file_opts_init(&opts);
    opts.seed = (uint64_t)set->seed;
    PLI_TRY(plait_graph_load(set->file, &opts, &g, err));
    const plait_status status = add_all(set, ranks, g, err);
    if (status == PLAIT_OK)
        *graph_out = g;
    else
        plait_graph_destroy(&g);
    return status;
}

/* --- the ranks ---------------------------------------------------------------------------------------------------- */

static plait_status take_ranks(const pli_cluster *c, pli_place_step *s, plait_error *err) {
    plait_place_opts *o = &s->opts;
    const size_t      n = (size_t)o->ranks;
    s->speed = pli_array(n, sizeof *s->speed);
    s->latency = pli_array(n * n, sizeof *s->latency);
    s->bandwidth = pli_array(n * n, sizeof *s->bandwidth);
    if (s->speed == NULL || s->latency == NULL || s->bandwidth == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for the links of %d ranks", o->ranks);
    for (size_t i = 0; i < n; i++) {
        s->speed[i] = pli_cluster_speed(c, (int32_t)i);
        for (size_t k = 0; k < n; k++)
            pli_cluster_between(c, (int32_t)i, (int32_t)k, &s->latency[i * n + k], &s->bandwidth[i * n + k]);
    }
    o->speed = s->speed;
    o->latency_s = s->latency;
    o->bandwidth = s->bandwidth;
    o->flop_ns = c->cost.work_ns[PLI_WORK_FLOPS];
    o->tap_ns = c->cost.work_ns[PLI_WORK_TAPS];
    o->step_ns = c->cost.work_ns[PLI_WORK_STEPS];
    o->moved_ns = c->cost.work_ns[PLI_WORK_MOVED];
    o->node_ns = c->cost.work_ns[PLI_WORK_NODES];
    o->message_ns = c->cost.message_ns;
    o->byte_ns = c->cost.byte_ns;
    return PLAIT_OK;
}

/* Without --ranks, every core of the cluster is one. */
static plait_status read_ranks(const pli_place_settings *set, pli_place_step *s, plait_error *err) {
    enum { RANKS_MAX = 4096 };
    pli_cluster c = { .path = NULL };
    int64_t     ranks = set->ranks;
    if (set->cluster == NULL && ranks == 0)
        return pli_fail(err, PLAIT_EINVAL, "over how many ranks? say --ranks N or --cluster FILE");
    PLI_TRY(set->cluster != NULL ? pli_cluster_read(set->cluster, &c, err)
                                 : pli_cluster_default((int32_t)ranks, &c, err));
    for (int64_t g = 0; set->ranks == 0 && g < c.groups; g++) ranks += (int64_t)c.group[g].count * c.group[g].cores;
    plait_status status = PLAIT_OK;
    if (ranks > RANKS_MAX)
        status = pli_fail(err, PLAIT_EINVAL, "a placement over %lld ranks; at most %d", (long long)ranks, RANKS_MAX);
    s->opts.ranks = (int32_t)ranks;
    if (status == PLAIT_OK) status = pli_cluster_check(&c, s->opts.ranks, err);
    if (status == PLAIT_OK) status = take_ranks(&c, s, err);
    pli_cluster_free(&c);
    return status;
}

/* --- the step ----------------------------------------------------------------------------------------------------- */

/* Feeds every placeholder: an open first axis has the rows of a micro-batch, other open axes have --length. */
static plait_status add_feeds(const pli_place_settings *set, pli_place_step *s, plait_error *err) {
    const plait_graph *g = s->graph;
    const int64_t      rows = (set->batch + set->micro_batches - 1) / set->micro_batches;
    s->feed = pli_array((size_t)g->n_nodes, sizeof *s->feed);
    if (s->feed == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for feeds");
    for (int64_t k = 0; k < g->n_nodes; k++) {
        if (g->node[k].op != &pli_op_placeholder) continue;
        plait_feed *feed = &s->feed[s->opts.n_feeds++];
        *feed = (plait_feed){ .value = g->node[k].value, .tensor = pli_value_tensor(g, g->node[k].value) };
        for (int32_t i = 0; i < feed->tensor.shape.rank; i++)
            if (feed->tensor.shape.dim[i] == PLAIT_ANY) feed->tensor.shape.dim[i] = i == 0 ? rows : set->length;
    }
    s->opts.feeds = s->feed;
    return PLAIT_OK;
}

/* The values that no node reads, if the graph has none named "scores". */
static plait_status add_ends(pli_place_step *s, plait_error *err) {
    const plait_graph *g = s->graph;
    bool              *read = pli_calloc((size_t)g->n_values, sizeof *read);
    if (read == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for fetches");
    for (int64_t i = 0; i < g->n_inputs; i++) read[g->input[i]] = true;
    for (int64_t k = 0; k < g->n_nodes; k++) {
        const pli_node *node = &g->node[k];
        bool            any = node->n_inputs == 0;
        for (int32_t i = 0; i < node->n_values; i++) any = any || read[node->value + i];
        if (!any) s->fetch[s->opts.n_fetches++] = node->value;
    }
    pli_free(read);
    return s->opts.n_fetches > 0 ? PLAIT_OK : pli_fail(err, PLAIT_EINVAL, "the graph computes nothing");
}

static plait_status add_fetches(const pli_place_settings *set, pli_place_step *s, plait_error *err) {
    const plait_value scores = plait_graph_find(s->graph, "scores");
    if (set->fetch.n > INT32_MAX / 2) return pli_fail(err, PLAIT_EINVAL, "too many --fetch");
    for (int64_t i = 0; i < set->fetch.n; i++) {
        const plait_value v = plait_graph_find(s->graph, set->fetch.item[i]);
        if (v < 0) return pli_fail(err, PLAIT_ENAME, "--fetch: the graph has no node '%.80s'", set->fetch.item[i]);
        s->fetch[s->opts.n_fetches++] = v;
    }
    if (set->fetch.n > 0) return PLAIT_OK;
    if (scores < 0) return add_ends(s, err);
    s->fetch[s->opts.n_fetches++] = scores;
    return PLAIT_OK;
}

/* One value whose gradient is that of all fetched floats. */
static plait_value loss_of(pli_place_step *s) {
    plait_value y = PLAIT_NONE;
    for (int32_t i = 0; i < s->opts.n_fetches; i++) {
        if (!pli_type_is_float(s->graph->value[s->fetch[i]].type)) continue;
        const plait_value sum = plait_op_sum(s->graph, s->fetch[i], 0, NULL, 0);
        y = y < 0 ? sum : plait_op_add(s->graph, y, sum);
    }
    return y;
}

static plait_status add_gradients(pli_place_step *s, plait_error *err) {
    plait_graph  *g = s->graph;
    const int32_t n = (int32_t)g->n_variables;
    plait_value  *x = pli_array(2 * (size_t)n, sizeof *x);
    if (x == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for gradients");
    plait_value  y = loss_of(s);
    plait_status status = y >= 0 ? PLAIT_OK
                                 : pli_fail(err, PLAIT_EINVAL,
                                            "no float is fetched, so there is nothing to differentiate; say --forward");
    int32_t      floats = 0;
    for (int32_t k = 0; k < n; k++)
        if (pli_type_is_float(g->value[g->variable[k].value].type)) x[floats++] = g->variable[k].value;
    if (status == PLAIT_OK && floats > 0) status = plait_graph_gradients(g, y, floats, x, x + n);
    for (int32_t k = 0; status == PLAIT_OK && k < floats; k++)
        s->fetch[s->opts.n_fetches++] = plait_op_inc(g, x[k], x[n + k]);
    if (plait_graph_check(g, err) < 0) status = err->code;
    pli_free(x);
    return status;
}

static plait_status set_method(const pli_place_settings *set, pli_place_step *s, plait_error *err) {
    const char       *rule = strcmp(set->optimizer, "auto") == 0 ? "adagrad" : set->optimizer;
    const plait_rule *known = pli_rule_find(rule, NULL);
    if (known == NULL)
        return pli_fail(err, PLAIT_ENAME,
                        "--optimizer %.40s keeps no state beside variables; take an update rule: sgd, "
                        "momentum, adagrad, adam, ftrl",
                        rule);
    s->opts.state_values = set->forward ? 0 : known->slots;
    s->opts.micro_batches = (int32_t)set->micro_batches;
    s->opts.seed = (uint64_t)set->seed;
    s->opts.method = pli_place_method(set) != NULL ? pli_place_method(set) : "auto";
    return PLAIT_OK;
}

plait_status pli_place_step_make(const pli_place_settings *set, pli_place_step *s, plait_error *err) {
    *s = (pli_place_step){ .graph = NULL };
    plait_place_opts_init(&s->opts);
    PLI_TRY(set_method(set, s, err));
    PLI_TRY(read_ranks(set, s, err));
    PLI_TRY(pli_place_graph(set, s->opts.ranks, &s->graph, err));
    s->own_nodes = s->graph->n_nodes;
    s->fetch =
        pli_array((size_t)s->graph->n_nodes + (size_t)s->graph->n_variables + (size_t)set->fetch.n, sizeof *s->fetch);
    if (s->fetch == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for fetches");
    s->opts.fetches = s->fetch;
    PLI_TRY(add_feeds(set, s, err));
    PLI_TRY(add_fetches(set, s, err));
    return set->forward ? PLAIT_OK : add_gradients(s, err);
}

void pli_place_step_free(pli_place_step *s) {
    plait_graph_destroy(&s->graph);
    pli_free(s->feed);
    pli_free(s->fetch);
    pli_free(s->speed);
    pli_free(s->latency);
    pli_free(s->bandwidth);
}
