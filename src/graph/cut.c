/* Finds the part of each node of a cut graph, and the edges of the cut. See cut.h. */
#include "graph/cut.h"

#include <stdlib.h>
#include <string.h>

#include "graph/ops/ops.h"

enum { NEED_VALUES = 2, UNPLACED = -1 };

void (plait_cut_init)(plait_cut *cut) {
    if (cut != NULL) *cut = (plait_cut){ .size = sizeof *cut, .parts = 1 };
}

void plait_cut_init_sized(plait_cut *cut, size_t size) {
    plait_cut all;
    (plait_cut_init)(&all);
    pli_sized_give(cut, size, &all, sizeof all);
}

/* Where the cut has no places, those of the graph count (plait_graph_place), a rank as the part of this number. */
static int32_t place_of(const plait_graph *g, const plait_cut *cut, int64_t k) {
    if (cut->n_places == 0) return g->node[k].rank;
    return k < cut->n_places ? cut->place[k] : UNPLACED;
}

plait_status pli_cut_check(const plait_graph *graph, const plait_cut *cut, plait_error *err) {
    if (cut->parts < 1 || cut->own < 0 || cut->own >= cut->parts)
        return pli_fail(err, PLAIT_EINVAL, "a cut in %d parts has no part %d", cut->parts, cut->own);
    if (cut->n_places < 0 || (cut->n_places > 0 && cut->place == NULL))
        return pli_fail(err, PLAIT_EINVAL, "a cut with places of %lld nodes: place is NULL", (long long)cut->n_places);
    const plait_channel *c = cut->channel;
    if (cut->parts > 1 && (c == NULL || c->send == NULL || c->receive == NULL || c->release == NULL || c->wait == NULL))
        return pli_fail(err, PLAIT_EINVAL, "a cut in %d parts needs a channel with send, receive, release and wait",
                        cut->parts);
    for (int64_t k = 0; k < graph->n_nodes; k++) {
        const int32_t place = place_of(graph, cut, k);
        if (place < cut->parts && place >= UNPLACED) continue;
        char name[80];
        pli_value_text(graph, graph->node[k].value, name);
        return pli_fail(err, PLAIT_EINVAL, "%s is placed in part %d of %d", name, place, cut->parts);
    }
    return PLAIT_OK;
}

/* --- the part of each node ------------------------------------------------------------------------------------- */

static bool is_variable(const pli_node *node) { return node->op == &pli_op_variable; }
static bool is_of_store(const pli_node *node) { return (node->op->flags & PLAIT_OP_STORE) != 0; }
static bool reads(const pli_node *node, int32_t i) { return i >= 32 || (node->op->shape_only >> i & 1) == 0; }

/* Is it as cheap to compute the node anew as to receive what it makes? Constants, and nodes that read only shapes. */
static bool is_anywhere(const pli_node *node) {
    if (is_variable(node) || node->op == &pli_op_placeholder || (node->op->flags & PLAIT_OP_STATEFUL) != 0)
        return false;
    for (int32_t i = 0; i < node->n_inputs; i++)
        if (reads(node, i)) return false;
    return true;
}

/* The last part that the node reads from; UNPLACED: none is known yet. */
static int32_t last_input(const plait_graph *g, const int32_t *part, const pli_node *node) {
    int32_t last = UNPLACED;
    for (int32_t i = 0; i < node->n_inputs; i++) {
        const int32_t from = part[g->value[g->input[node->input + i]].node];
        if (reads(node, i) && from > last) last = from;
    }
    return last;
}

/* The part of a node without a place; UNPLACED: not known yet. */
static int32_t part_of(const plait_graph *g, const int32_t *part, const pli_node *node) {
    if (is_variable(node)) return UNPLACED;
    if (node->op == &pli_op_placeholder) return 0;
    if (is_of_store(node)) return part[g->value[g->input[node->input]].node];
    if (node->forward >= 0 && part[node->forward] != PLI_PART_ANY) return part[node->forward];
    return last_input(g, part, node);
}

static void place_nodes(const plait_graph *g, int32_t *part) {
    for (int64_t k = 0; k < g->n_nodes; k++)
        if (part[k] == UNPLACED) part[k] = part_of(g, part, &g->node[k]);
}

/* A variable lies with the first node that reads its values. */
static void place_variables(const plait_graph *g, int32_t *part) {
    for (int64_t k = 0; k < g->n_nodes; k++) {
        const pli_node *node = &g->node[k];
        for (int32_t i = 0; part[k] >= 0 && i < node->n_inputs; i++) {
            const int32_t from = g->value[g->input[node->input + i]].node;
            if (is_variable(&g->node[from]) && part[from] == UNPLACED) part[from] = part[k];
        }
    }
}

static plait_status check_stores(const plait_graph *g, const int32_t *part, plait_error *err) {
    for (int64_t k = 0; k < g->n_nodes; k++) {
        if (!is_of_store(&g->node[k])) continue;
        const int32_t from = part[g->value[g->input[g->node[k].input]].node];
        char          name[80], variable[80];
        if (part[k] == from) continue;
        pli_value_text(g, g->node[k].value, name);
        pli_value_text(g, g->input[g->node[k].input], variable);
        return pli_fail(err, PLAIT_EINVAL,
                        "%s is placed in part %d, and its variable, %s, in part %d: place them "
                        "together",
                        name, part[k], variable, from);
    }
    return PLAIT_OK;
}

static plait_status find_part(const pli_plan *p, int32_t *part, plait_error *err) {
    const plait_graph *g = p->graph;
    PLI_TRY(pli_cut_check(g, p->cut, err));
    for (int64_t k = 0; k < g->n_nodes; k++)
        part[k] = is_anywhere(&g->node[k]) ? PLI_PART_ANY : place_of(g, p->cut, k);
    place_nodes(g, part);
    place_variables(g, part);
    place_nodes(g, part); /* those that lie with a variable, and what reads them */
    place_variables(g, part);
    for (int64_t k = 0; k < g->n_nodes; k++)
        if (part[k] == UNPLACED) part[k] = 0;
    return check_stores(g, part, err);
}

/* A node is late if it belongs to a gradient, or was added behind one: all parts agree on that, whatever they compute.
 * If such a node counted as the forward pass's, its receive might come behind others of the backward pass, and the
 * parts of a pipeline would wait for each other. */
static void find_late(const plait_graph *g, uint8_t *late) {
    bool behind = false;
    for (int64_t k = 0; k < g->n_nodes; k++) late[k] = behind = behind || g->node[k].forward >= 0;
}

/* --- the edges ------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const pli_cut_edge *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* Is the node computed in the run, for its values? */
static bool is_computed(const pli_node *node, const uint8_t *need, const int32_t *feed) {
    bool computed = false;
    for (plait_value v = node->value; v < node->value + node->n_values; v++)
        computed = computed || (feed[v] < 0 && need[v] == NEED_VALUES);
    return computed;
}

static bool add_edges(const plait_graph *g, const pli_node *node, int32_t to, pli_parts *x) {
    for (int32_t i = 0; i < node->n_inputs; i++) {
        const plait_value v = g->input[node->input + i];
        const int32_t     from = x->part[g->value[v].node];
        if (!reads(node, i) || from == to || from == PLI_PART_ANY) continue;
        if (to == x->own) x->received[v] = true;
        if (from != x->own) continue;
        if (!pli_grow((void **)&x->sent, &x->sent_capacity, x->n_sent + 1, sizeof *x->sent)) return false;
        x->sent[x->n_sent++] = (pli_cut_edge){ v, to };
    }
    return true;
}

plait_status pli_cut_find_parts(pli_plan *p, const uint8_t *need, const int32_t *feed, pli_parts *parts_out,
                                plait_error *err) {
    const plait_graph *g = p->graph;
    const size_t       nodes = (size_t)g->n_nodes, values = (size_t)g->n_values;
    pli_parts          x = { .own = p->cut->own,
                             .part = pli_arena_take(&p->work, nodes * sizeof *x.part),
                             .received = pli_arena_take(&p->work, values * sizeof *x.received) };
    uint8_t           *late = pli_arena_take(&p->work, nodes);
    if (x.part == NULL || x.received == NULL || late == NULL) return pli_plan_no_memory(err);
    memset(x.received, 0, values * sizeof *x.received);
    PLI_TRY(find_part(p, x.part, err));
    find_late(g, late);
    bool ok = true;
    for (int64_t k = 0; ok && k < g->n_nodes; k++)
        if (x.part[k] >= 0 && is_computed(&g->node[k], need, feed)) ok = add_edges(g, &g->node[k], x.part[k], &x);
    pli_cut_edge *sent = ok ? pli_arena_take(&p->work, (size_t)x.n_sent * sizeof *sent) : NULL;
    ok = sent != NULL;
    if (ok && x.n_sent > 0) memcpy(sent, x.sent, (size_t)x.n_sent * sizeof *sent);
    pli_free(x.sent);
    if (!ok) return pli_plan_no_memory(err);
    x.sent = sent;
    if (x.n_sent > 1) qsort(x.sent, (size_t)x.n_sent, sizeof *x.sent, by_value);
    p->late = late;
    *parts_out = x;
    return PLAIT_OK;
}

/* --- sends and receives in a plan ------------------------------------------------------------------------------ */

static const plait_op send_op = { .size = sizeof(plait_op),
                                  .name = "send",
                                  .summary = "sends a value to another part of the graph",
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .flags = PLAIT_OP_STATEFUL };
static const plait_op receive_op = { .size = sizeof(plait_op),
                                     .name = "receive",
                                     .summary = "receives a value from another part of the graph",
                                     .outputs = 1,
                                     .flags = PLAIT_OP_STATEFUL };

static bool add_node(pli_plan *p, pli_plan_node node) {
    if (!pli_grow((void **)&p->node, &p->node_capacity, p->n_nodes + 1, sizeof *p->node) ||
        !pli_grow((void **)&p->input, &p->input_capacity, p->n_inputs + 1, sizeof *p->input))
        return false;
    node.variable = -1;
    node.input = (int32_t)p->n_inputs;
    p->node[p->n_nodes++] = node;
    return true;
}

plait_status pli_cut_receive(pli_plan *p, const pli_parts *parts, plait_value v, int32_t *number, plait_error *err) {
    plait_tensor t = p->value[*number].t;
    t.data = NULL;
    const int32_t made = pli_plan_add_value(p, v, t, PLI_PLACE_RECEIVED, 0);
    if (made < 0 || !add_node(p, (pli_plan_node){ .op = &receive_op,
                                                  .origin = v,
                                                  .output = made,
                                                  .n_out = 1,
                                                  .work = PLI_WORK_RECV,
                                                  .peer = parts->part[p->graph->value[v].node] }))
        return pli_plan_no_memory(err);
    *number = made;
    return PLAIT_OK;
}

plait_status pli_cut_send(pli_plan *p, pli_parts *parts, plait_value v, int32_t number, plait_error *err) {
    for (int32_t last = -1; parts->next < parts->n_sent && parts->sent[parts->next].value == v; parts->next++) {
        const int32_t to = parts->sent[parts->next].to;
        if (to == last) continue; /* several nodes of that part read it */
        last = to;
        if (!add_node(p, (pli_plan_node){ .op = &send_op,
                                          .origin = v,
                                          .n_in = 1,
                                          .output = (int32_t)p->n_values,
                                          .work = PLI_WORK_SEND,
                                          .peer = to }))
            return pli_plan_no_memory(err);
        p->input[p->n_inputs++] = number;
    }
    return PLAIT_OK;
}

/* All sends and receives of the forward pass come before the turn. Nodes of the backward pass that read only what is
 * there already, such as its first ones, may stand anywhere. */
void pli_cut_find_turn(pli_plan *p) {
    p->turn = 0;
    for (int64_t k = 0; k < p->n_nodes; k++) {
        const pli_plan_node *n = &p->node[k];
        const bool           late = p->late[p->graph->value[n->origin].node] != 0;
        if (!late && (n->work == PLI_WORK_SEND || n->work == PLI_WORK_RECV || p->turn == k)) p->turn = k + 1;
    }
    p->late = NULL; /* it lies in the memory of making the plan */
}
