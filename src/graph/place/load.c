/* Makes of a graph what is placed: a plan without passes gives the needed nodes with their shapes; nodes that belong
 * together become units (union-find, Tarjan 1975). */
#include <string.h>

#include "graph/ops/ops.h"
#include "graph/place/place.h"

static int32_t find(int32_t *up, int32_t k) {
    while (up[k] != k) k = up[k] = up[up[k]];
    return k;
}

/* The smaller number is the root, so that units are in the order of their first nodes. */
static void join(int32_t *up, int32_t a, int32_t b) {
    a = find(up, a);
    b = find(up, b);
    up[a > b ? a : b] = a < b ? a : b;
}

static plait_status group_nodes(const plait_graph *g, const plait_place_opts *o, int32_t *up, plait_error *err) {
    bool *read = pli_calloc((size_t)g->n_nodes, sizeof *read); /* has the variable a first reader? */
    if (read == NULL) return pli_plan_no_memory(err);
    for (int32_t k = 0; k < g->n_nodes; k++) up[k] = k;
    for (int32_t k = 0; k < g->n_nodes; k++) {
        const pli_node *node = &g->node[k];
        if (node->forward >= 0) join(up, k, node->forward);
        if (node->n_inputs > 0 && (node->op->flags & (PLAIT_OP_ALIAS | PLAIT_OP_STORE)) != 0)
            join(up, k, g->value[g->input[node->input]].node);
        for (int32_t i = 0; i < node->n_inputs; i++) {
            const int32_t from = g->value[g->input[node->input + i]].node;
            if (g->node[from].op != &pli_op_variable || node->forward >= 0 || read[from]) continue;
            read[from] = true;
            join(up, k, from);
        }
    }
    for (int32_t i = 0; i < o->n_rules; i++)
        if (o->rules[i].kind == PLAIT_PLACE_TOGETHER)
            join(up, g->value[o->rules[i].a].node, g->value[o->rules[i].b].node);
    pli_free(read);
    return PLAIT_OK;
}

/* --- nodes and values --------------------------------------------------------------------------------------------- */

static double time_of(const plait_place_opts *o, const pli_plan_node *n) {
    if (n->work == PLI_WORK_NONE) return 0;
    if (pli_plan_adds_up(n) && o->micro_batches == 1) return o->node_ns;
    return o->node_ns + n->weight.flops * o->flop_ns + n->weight.taps * o->tap_ns + n->weight.steps * o->step_ns +
           n->weight.moved * o->moved_ns;
}

/* As a cut has it (graph/cut.c): nodes of a gradient, and those that were added behind one. */
static int64_t first_gradient(const plait_graph *g) {
    int64_t k = 0;
    while (k < g->n_nodes && g->node[k].forward < 0) k++;
    return k;
}

static void read_nodes(pli_placing *l, const pli_plan *p, const int32_t *unit_of) {
    const int64_t first_late = first_gradient(p->graph);
    for (int32_t k = 0; k < l->nodes; k++) {
        const pli_plan_node *n = &p->node[k];
        l->ns[k] = time_of(l->opts, n);
        l->operations[k] = n->weight.flops + n->weight.taps + n->weight.steps;
        l->unit[k] = unit_of[p->graph->value[n->origin].node];
        l->load_ns[l->unit[k]] += l->ns[k];
        l->late[k] = p->graph->value[n->origin].node >= first_late;
        l->out[k] = n->output;
        l->outs[k] = n->n_out;
        l->inputs[k] = 0;
    }
    for (int32_t v = 0; v < l->values; v++) {
        const pli_place place = p->value[v].place;
        const bool      made = p->value[v].node >= 0 && place != PLI_PLACE_NONE;
        const bool      fed = place == PLI_PLACE_FEED && l->opts->schedule != NULL;
        l->bytes[v] = made || fed ? (double)pli_tensor_bytes(&p->value[v].t) : 0;
        if (fed) l->fed[l->n_fed++] = v;
    }
    for (int32_t i = 0; i < p->key.n_fetches; i++)
        if (p->fetch[i] >= 0) l->kept[p->fetch[i]] = true;
}

/* Lists the readers of each value: counts first, then fills. A node that reads a value twice is listed twice. */
static void list_readers(pli_placing *l, const pli_plan *p) {
    memset(l->first, 0, ((size_t)l->values + 1) * sizeof *l->first);
    for (int round = 0; round < 2; round++) {
        for (int32_t k = 0; k < l->nodes; k++)
            for (int32_t i = 0; i < p->node[k].n_in; i++) {
                const int32_t v = p->input[p->node[k].input + i];
                const bool    fed = p->value[v].place == PLI_PLACE_FEED && l->opts->schedule != NULL;
                if ((p->value[v].node < 0 && !fed) || !pli_plan_reads(&p->node[k], i)) continue;
                if (round == 0)
                    l->first[v + 1]++;
                else
                    l->reader[l->first[v]++] = k;
                if (!fed) l->inputs[k] += round;
            }
        if (round == 0)
            for (int32_t v = 0; v < l->values; v++) l->first[v + 1] += l->first[v];
    }
    for (int32_t v = l->values; v > 0; v--) l->first[v] = l->first[v - 1];
    l->first[0] = 0;
}

/* The length of the longest way from each node to the end: HEFT's upward rank, without messages. */
static void measure_ways(pli_placing *l) {
    for (int32_t k = l->nodes - 1; k >= 0; k--) {
        double most = 0;
        for (int32_t v = l->out[k]; v < l->out[k] + l->outs[k]; v++)
            for (int32_t i = l->first[v]; i < l->first[v + 1]; i++)
                if (l->up[l->reader[i]] > most) most = l->up[l->reader[i]];
        l->up[k] = most + l->ns[k];
    }
}

/* --- units -------------------------------------------------------------------------------------------------------- */

static plait_status pin_units(pli_placing *l, const plait_graph *g, plait_error *err) {
    const plait_place_opts *o = l->opts;
    char                    name[80];
    for (int32_t u = 0; u < l->units; u++) l->pin[u] = -1;
    for (int32_t k = 0; k < g->n_nodes; k++) {
        const int32_t u = l->of_node[k], rank = g->node[k].rank;
        if (rank < 0 || strcmp(o->method, "given") == 0) continue;
        pli_value_text(g, g->node[k].value, name);
        if (rank >= o->ranks)
            return pli_fail(err, PLAIT_EINVAL, "%s is placed on rank %d, but there are %d ranks", name, rank, o->ranks);
        if (l->pin[u] >= 0 && l->pin[u] != rank)
            return pli_fail(err, PLAIT_EINVAL, "%s is placed on rank %d, but what belongs to it on rank %d", name, rank,
                            l->pin[u]);
        l->pin[u] = rank;
    }
    for (int32_t i = 0; i < o->n_rules; i++) /* a graph's own rule may name a rank that is not there */
        if (o->rules[i].kind == PLAIT_PLACE_NEVER && o->rules[i].rank < o->ranks)
            l->never[l->of_node[g->value[o->rules[i].a].node] * o->ranks + o->rules[i].rank] = true;
    for (int32_t u = 0; u < l->units; u++) {
        int32_t r = 0;
        while (r < o->ranks && !(l->never[u * o->ranks + r] == false && (l->pin[u] < 0 || l->pin[u] == r))) r++;
        if (r == o->ranks)
            return pli_fail(err, PLAIT_EINVAL, "the rules leave no rank to one of the nodes; drop a rule");
    }
    return PLAIT_OK;
}

/* Lists the pairs of units that are to be apart. */
static plait_status list_apart(pli_placing *l, const plait_graph *g, plait_error *err) {
    const plait_place_opts *o = l->opts;
    char                    a[80], b[80];
    for (int32_t i = 0; i < o->n_rules; i++) {
        const plait_place_rule *r = &o->rules[i];
        if (r->kind != PLAIT_PLACE_APART) continue;
        const int32_t one = l->of_node[g->value[r->a].node], other = l->of_node[g->value[r->b].node];
        pli_value_text(g, r->a, a);
        pli_value_text(g, r->b, b);
        if (one == other)
            return pli_fail(err, PLAIT_EINVAL, "%s and %s are to be apart, but they belong to one unit", a, b);
        if (l->pin[one] >= 0 && l->pin[one] == l->pin[other])
            return pli_fail(err, PLAIT_EINVAL, "%s and %s are to be apart, but both are placed on rank %d", a, b,
                            l->pin[one]);
        l->apart[2 * l->n_apart] = one;
        l->apart[2 * l->n_apart++ + 1] = other;
    }
    return PLAIT_OK;
}

static bool make_room(pli_placing *l, size_t readers) {
    const size_t n = (size_t)l->nodes, v = (size_t)l->values, u = (size_t)l->units;
#define TAKE(field, count) (l->field = pli_arena_take(&l->arena, ((count) + 1) * sizeof *l->field))
    if (!(TAKE(ns, n) && TAKE(operations, n) && TAKE(up, n) && TAKE(unit, n) && TAKE(inputs, n) && TAKE(out, n) &&
          TAKE(outs, n) && TAKE(bytes, v) && TAKE(kept, v) && TAKE(fed, v) && TAKE(late, n) &&
          TAKE(first, v + 1) && TAKE(reader, readers) &&
          TAKE(apart, 2 * (size_t)l->opts->n_rules) && TAKE(held, u) && TAKE(load_ns, u) && TAKE(pin, u) &&
          TAKE(never, u * (size_t)l->opts->ranks)))
        return false;
#undef TAKE
    memset(l->kept, 0, (v + 1) * sizeof *l->kept);
    memset(l->held, 0, (u + 1) * sizeof *l->held);
    memset(l->load_ns, 0, (u + 1) * sizeof *l->load_ns);
    memset(l->never, 0, (u * (size_t)l->opts->ranks + 1) * sizeof *l->never);
    return true;
}

/* Units are numbered by their first node that the plan has; nodes of units that it lacks have none. */
static void number_units(pli_placing *l, const plait_graph *g, const pli_plan *p, int32_t *up) {
    for (int64_t k = 0; k < g->n_nodes; k++) l->of_node[k] = -1;
    for (int64_t k = 0; k < p->n_nodes; k++) {
        const int32_t root = find(up, g->value[p->node[k].origin].node);
        if (l->of_node[root] < 0) l->of_node[root] = l->units++;
    }
    for (int32_t k = 0; k < g->n_nodes; k++) { /* roots come first */
        const int32_t root = find(up, k);
        if (l->of_node[root] < 0) l->of_node[root] = l->units++;
        l->of_node[k] = l->of_node[root];
    }
}

static void hold_variables(pli_placing *l, const plait_graph *g, const pli_plan *p) {
    for (int64_t v = 0; v < g->n_variables; v++) {
        bool used = false;
        for (int64_t i = 0; i < p->n_expect + p->n_push; i++) used = used || p->expect[i] == v;
        if (!used) continue;
        l->held[l->of_node[g->value[g->variable[v].value].node]] +=
            (double)pli_tensor_bytes(&g->variable[v].initial) * (1 + l->opts->state_values);
    }
}

static plait_status make(pli_placing *l, const plait_graph *g, const pli_plan *p, plait_error *err) {
    int32_t *up = pli_arena_take(&l->arena, ((size_t)g->n_nodes + 1) * sizeof *up);
    l->of_node = pli_arena_take(&l->arena, ((size_t)g->n_nodes + 1) * sizeof *l->of_node);
    if (up == NULL || l->of_node == NULL) return pli_plan_no_memory(err);
    PLI_TRY(group_nodes(g, l->opts, up, err));
    l->nodes = (int32_t)p->n_nodes;
    l->parts = l->opts->ranks * l->opts->chunks;
    l->values = (int32_t)p->n_values;
    l->graph_nodes = g->n_nodes;
    number_units(l, g, p, up);
    if (!make_room(l, (size_t)p->n_inputs)) return pli_plan_no_memory(err);
    read_nodes(l, p, l->of_node);
    list_readers(l, p);
    measure_ways(l);
    hold_variables(l, g, p);
    PLI_TRY(pin_units(l, g, err));
    return list_apart(l, g, err);
}

plait_status pli_placing_make(const plait_graph *graph, const plait_place_opts *opts, pli_placing *load_out,
                              plait_error *err) {
    const pli_plan_opts how = { .threads = 1, .grain_ns = 20000 };
    plait_fetch        *fetches = pli_calloc((size_t)opts->n_fetches, sizeof *fetches);
    pli_plan           *plan = NULL;
    pli_placing         load = { .opts = opts };
    if (fetches == NULL) return pli_plan_no_memory(err);
    for (int32_t i = 0; i < opts->n_fetches; i++) fetches[i].value = opts->fetches[i];
    const pli_plan_key key = {
        .feeds = opts->feeds, .fetches = fetches, .n_feeds = opts->n_feeds, .n_fetches = opts->n_fetches
    };
    pli_arena_init(&load.arena, 65536);
    plait_status status = pli_plan_create(graph, &key, &how, &plan, err);
    if (status == PLAIT_OK) status = make(&load, graph, plan, err);
    pli_plan_destroy(&plan);
    pli_free(fetches);
    if (status == PLAIT_OK)
        *load_out = load;
    else
        pli_placing_free(&load);
    return status;
}
