/* Copies the needed part of a graph into a plan: a walk backwards from the fetches finds what is needed, and a walk
 * forwards copies it with its shapes. */
#include <string.h>

#include "graph/cut.h"
#include "graph/ops/ops.h"
#include "graph/plan.h"
#include "graph/subgraph.h"

/* --- what is needed -------------------------------------------------------------------------------------------- */

enum { NEED_SHAPE = 1, NEED_VALUES = 2 };

/* The state while a plan is made; the arrays have an entry for each value of the graph. */
typedef struct maker {
    pli_plan          *plan;
    const plait_graph *g;
    plait_error       *err;
    uint8_t           *need; /* NEED_*                    */
    bool              *excluded;
    int32_t           *feed;   /* the value's feed; -1: none */
    int32_t           *number; /* in the plan; -1: not there */
    pli_parts          parts;  /* of a cut graph */
} maker;

static plait_status check_feed(const maker *m, const plait_feed *feed, int32_t i) {
    const plait_graph *g = m->g;
    if (feed->value < 0 || feed->value >= g->n_values)
        return pli_fail(m->err, PLAIT_EINVAL, "feed %d is no value of this graph", i);
    const plait_tensor want = pli_value_tensor(g, feed->value);
    bool               fits = feed->tensor.type == want.type && feed->tensor.shape.rank == want.shape.rank;
    for (int32_t k = 0; fits && k < want.shape.rank; k++) {
        const int64_t given = feed->tensor.shape.dim[k];
        fits = given >= 0 && (want.shape.dim[k] == PLAIT_ANY || want.shape.dim[k] == given);
    }
    char name[80], is[128], given[128];
    pli_value_text(g, feed->value, name);
    if (!fits) {
        pli_shape_text(&want, is);
        const plait_tensor shown = { .type = feed->tensor.type, .shape = feed->tensor.shape };
        if (shown.shape.rank < 0 || shown.shape.rank > PLAIT_RANK_MAX)
            return pli_fail(m->err, PLAIT_ESHAPE, "feed of %s: %d axes, which no array has", name, shown.shape.rank);
        pli_shape_text(&shown, given);
        return pli_fail(m->err, PLAIT_ESHAPE, "feed of %s: it is %s, and was fed %s", name, is, given);
    }
    if (plait_shape_elements(&feed->tensor.shape) < 0)
        return pli_fail(m->err, PLAIT_ESHAPE, "feed of %s: larger than any array can be", name);
    if (m->feed[feed->value] >= 0) return pli_fail(m->err, PLAIT_EINVAL, "%s is fed twice", name);
    return PLAIT_OK;
}

static plait_status mark_asked(maker *m) {
    const pli_plan_key *key = &m->plan->key;
    for (int32_t i = 0; i < key->n_feeds; i++) {
        PLI_TRY(check_feed(m, &key->feeds[i], i));
        m->feed[key->feeds[i].value] = i;
    }
    for (int32_t i = 0; i < key->n_exclude; i++) {
        if (key->exclude[i] < 0 || key->exclude[i] >= m->g->n_values)
            return pli_fail(m->err, PLAIT_EINVAL, "exclude %d is no value of this graph", i);
        m->excluded[key->exclude[i]] = true;
    }
    if (m->plan->choice != NULL) PLI_TRY(pli_choice_mark(m->plan->choice, m->g, m->excluded, m->err));
    for (int32_t i = 0; i < key->n_fetches; i++) {
        const plait_value v = key->fetches[i].value;
        if (v < 0 || v >= m->g->n_values)
            return pli_fail(m->err, PLAIT_EINVAL, "fetch %d is no value of this graph", i);
        if (!m->excluded[v] || key->fetches[i].tensor.data != NULL) m->need[v] = NEED_VALUES;
    }
    return PLAIT_OK;
}

static plait_status refuse_excluded(const maker *m, plait_value v) {
    char name[80];
    pli_value_text(m->g, v, name);
    return pli_fail(m->err, PLAIT_EINVAL, "%s is needed but excluded; feed it, or exclude less", name);
}

/* Is only the shape needed of a node that is left out, and does the graph know it? Then its inputs are not needed: what
 * is left out needs no feed, even if a gradient reads its shape. */
static bool is_known(const maker *m, const pli_node *node, uint8_t need) {
    if (need != NEED_SHAPE) return false;
    for (plait_value v = node->value; v < node->value + node->n_values; v++) {
        const plait_tensor t = pli_value_tensor(m->g, v);
        if (!m->excluded[v] || plait_shape_elements(&t.shape) < 0) return false;
    }
    return true;
}

/* Nodes come after their inputs, so a single walk backwards meets all uses of a value before the node that makes it. */
static plait_status mark_needed(maker *m) {
    const plait_graph *g = m->g;
    for (int64_t k = g->n_nodes - 1; k >= 0; k--) {
        const pli_node *node = &g->node[k];
        uint8_t         need = 0;
        for (plait_value v = node->value; v < node->value + node->n_values; v++) {
            if (m->need[v] == 0 || m->feed[v] >= 0) continue;
            if (m->excluded[v] && m->need[v] == NEED_VALUES) return refuse_excluded(m, v);
            if (m->need[v] > need) need = m->need[v];
        }
        if (need == 0 || is_known(m, node, need)) continue;
        for (int32_t i = 0; i < node->n_inputs; i++) {
            const bool        shape_only = need == NEED_SHAPE || (i < 32 && (node->op->shape_only >> i & 1) != 0);
            const plait_value v = g->input[node->input + i];
            const uint8_t     one = shape_only ? NEED_SHAPE : NEED_VALUES;
            if (one > m->need[v]) m->need[v] = one;
        }
    }
    return PLAIT_OK;
}

/* --- copying --------------------------------------------------------------------------------------------------- */

int32_t pli_plan_add_value(pli_plan *p, plait_value origin, plait_tensor t, pli_place place, int32_t number) {
    if (p->n_values == INT32_MAX ||
        !pli_grow((void **)&p->value, &p->value_capacity, p->n_values + 1, sizeof *p->value))
        return -1;
    p->value[p->n_values] = (pli_plan_value){ .t = t, .origin = origin, .place = place, .number = number, .node = -1 };
    return (int32_t)p->n_values++;
}

static plait_status at_node(const maker *m, plait_value v, plait_status status) {
    char name[80];
    pli_value_text(m->g, v, name);
    if (m->err != NULL) m->err->code = status;
    (void)pli_fail_at(m->err, "%s", name);
    return status;
}

/* Infers types and shapes of a node's outputs from its inputs, whose lengths are known now. */
static plait_status infer(const maker *m, const pli_node *node, plait_tensor *in, plait_tensor *out) {
    plait_error      own, *err = m->err != NULL ? m->err : &own;
    const plait_call call = { .in = in,
                              .out = out,
                              .n_in = node->n_inputs,
                              .n_out = node->n_values,
                              .attr = m->g->attr + node->attr,
                              .user = node->op->user,
                              .error = err };
    for (int32_t i = 0; i < node->n_inputs; i++) {
        const int32_t number = m->number[m->g->input[node->input + i]];
        in[i] = (plait_tensor){ .type = m->plan->value[number].t.type, .shape = m->plan->value[number].t.shape };
    }
    for (int32_t i = 0; i < node->n_values; i++) out[i] = (plait_tensor){ .type = PLAIT_F32 };
    plait_status status = node->op->infer != NULL ? node->op->infer(&call) : pli_infer_map(node->op, &call);
    if (status != PLAIT_OK) return at_node(m, node->value, status);
    for (int32_t i = 0; i < node->n_values; i++) {
        if (plait_shape_elements(&out[i].shape) >= 0) continue;
        char name[80], shape[128];
        pli_value_text(m->g, node->value, name);
        pli_shape_text(&out[i], shape);
        return pli_fail(m->err, PLAIT_ESHAPE,
                        "%s: its shape is %s, and every length is to be known; feed it, or what it is made of", name,
                        shape);
    }
    return PLAIT_OK;
}

static bool is(const pli_node *node, const plait_op *op) { return node->op == op; }

static bool same_shape(const plait_tensor *a, const plait_tensor *b) {
    return a->shape.rank == b->shape.rank &&
           memcmp(a->shape.dim, b->shape.dim, (size_t)a->shape.rank * sizeof *a->shape.dim) == 0;
}

/* Does output 0 have the values of input 0 (of the plan), perhaps in another shape? A gradient's sum to a shape does,
 * if the shape turns out to be the same. */
static bool is_view(const pli_node *node, const plait_tensor *in, const plait_tensor *out) {
    if ((node->op->flags & PLAIT_OP_ALIAS) != 0) return true;
    return (is(node, &pli_op_sum_like) || is(node, &pli_op_broadcast_like)) && same_shape(in, out);
}

static pli_work work_of(const pli_node *node, bool view) {
    if (is(node, &pli_op_variable)) return PLI_WORK_GET;
    if (is(node, &pli_op_get_rows)) return PLI_WORK_GET_ROWS;
    if (is(node, &pli_op_inc)) return PLI_WORK_INC;
    if (is(node, &pli_op_inc_rows)) return PLI_WORK_INC_ROWS;
    if (view || is(node, &pli_op_constant)) return PLI_WORK_NONE;
    return node->op->kernels != NULL ? PLI_WORK_KERNEL : PLI_WORK_MAP;
}

static int32_t variable_of(const plait_graph *g, const pli_node *node) {
    if (is(node, &pli_op_variable)) return (int32_t)g->attr[node->attr].u.i;
    if ((node->op->flags & PLAIT_OP_STORE) == 0) return -1;
    return (int32_t)g->attr[pli_value_node(g, g->input[node->input])->attr].u.i;
}

static plait_status append_node(maker *m, const pli_node *node, const plait_tensor *out, bool computed) {
    pli_plan *p = m->plan;
    if (!pli_grow((void **)&p->node, &p->node_capacity, p->n_nodes + 1, sizeof *p->node) ||
        !pli_grow((void **)&p->input, &p->input_capacity, p->n_inputs + node->n_inputs, sizeof *p->input))
        return pli_plan_no_memory(m->err);
    const int32_t from = node->n_inputs > 0 ? m->number[m->g->input[node->input]] : -1;
    const bool    view = from >= 0 && is_view(node, &p->value[from].t, &out[0]);
    if (view && node->n_values == 1 && same_shape(&p->value[from].t, &out[0])) { /* output 0 is input 0: no node */
        m->number[node->value] = from;
        return PLAIT_OK;
    }
    const size_t bytes = (size_t)node->op->n_attrs * sizeof(plait_attr);
    plait_attr  *attr = pli_arena_take(&p->arena, bytes); /* a copy: the graph's may move when it grows */
    if (attr == NULL) return pli_plan_no_memory(m->err);
    if (bytes > 0) memcpy(attr, m->g->attr + node->attr, bytes);
    /* A variable that is fed is a plain array: its rows do not come from the store. */
    const bool     of_feed = is(node, &pli_op_get_rows) && m->feed[m->g->input[node->input]] >= 0;
    pli_plan_node *n = &p->node[p->n_nodes];
    *n = (pli_plan_node){ .op = of_feed ? &pli_op_gather : node->op,
                          .attr = attr,
                          .origin = node->value,
                          .input = (int32_t)p->n_inputs,
                          .n_in = node->n_inputs,
                          .output = (int32_t)p->n_values,
                          .n_out = node->n_values,
                          .work = of_feed ? PLI_WORK_KERNEL : work_of(node, view),
                          .variable = of_feed ? -1 : variable_of(m->g, node) };
    for (int32_t i = 0; i < node->n_inputs; i++) p->input[p->n_inputs + i] = m->number[m->g->input[node->input + i]];
    for (int32_t i = 0; i < node->n_values; i++) {
        pli_place place = computed ? PLI_PLACE_MEMORY : PLI_PLACE_NONE;
        int32_t   number = 0;
        if (computed && is(node, &pli_op_variable)) {
            place = PLI_PLACE_VARIABLE;
            number = n->variable;
        } else if (computed && i == 0 && view) {
            place = PLI_PLACE_VIEW;
            number = p->input[p->n_inputs];
        }
        const int32_t v = pli_plan_add_value(p, node->value + i, out[i], place, number);
        if (v < 0) return pli_plan_no_memory(m->err);
        if (m->feed[node->value + i] < 0) m->number[node->value + i] = v;
        if (computed && is(node, &pli_op_constant)) {
            p->value[v].place = PLI_PLACE_CONSTANT;
            p->value[v].t.data = n->attr[0].u.tensor->data;
        }
    }
    if (!computed || is(node, &pli_op_constant)) return PLAIT_OK; /* these values need no work */
    p->incs = p->incs || n->work == PLI_WORK_INC || n->work == PLI_WORK_INC_ROWS;
    p->n_inputs += node->n_inputs;
    p->n_nodes++;
    return PLAIT_OK;
}

static plait_status copy_node(maker *m, const pli_node *node, uint8_t need) {
    enum { FEW = 8 };
    if (need == NEED_VALUES && is(node, &pli_op_placeholder)) {
        char name[80];
        pli_value_text(m->g, node->value, name);
        return pli_fail(m->err, PLAIT_EINVAL, "%s is needed and was not fed", name);
    }
    plait_tensor few[FEW], out[PLI_OUTPUTS_MAX],
        *in = node->n_inputs <= FEW ? few : pli_array((size_t)node->n_inputs, sizeof *in);
    if (in == NULL) return pli_plan_no_memory(m->err);
    plait_status status = infer(m, node, in, out);
    if (in != few) pli_free(in);
    return status == PLAIT_OK ? append_node(m, node, out, need == NEED_VALUES) : status;
}

/* Adds the outputs of a node whose shapes the graph knows. */
static plait_status add_known(maker *m, const pli_node *node) {
    for (plait_value v = node->value; v < node->value + node->n_values; v++) {
        if (m->feed[v] >= 0) continue;
        m->number[v] = pli_plan_add_value(m->plan, v, pli_value_tensor(m->g, v), PLI_PLACE_NONE, 0);
        if (m->number[v] < 0) return pli_plan_no_memory(m->err);
    }
    return PLAIT_OK;
}

/* Adds the receives and sends of node k's outputs. */
static plait_status join_parts(maker *m, int64_t k) {
    const pli_node *node = &m->g->node[k];
    for (plait_value v = node->value; v < node->value + node->n_values; v++) {
        if (m->parts.received[v]) PLI_TRY(pli_cut_receive(m->plan, &m->parts, v, &m->number[v], m->err));
        PLI_TRY(pli_cut_send(m->plan, &m->parts, v, m->number[v], m->err));
    }
    return PLAIT_OK;
}

static plait_status copy_needed(maker *m) {
    const plait_graph *g = m->g;
    for (int64_t k = 0; k < g->n_nodes; k++) {
        const pli_node *node = &g->node[k];
        const bool      here = m->plan->cut == NULL || pli_cut_is_here(&m->parts, k);
        uint8_t         need = 0;
        for (plait_value v = node->value; v < node->value + node->n_values; v++) {
            if (m->need[v] == 0) continue;
            const int32_t feed = m->feed[v];
            if (feed < 0 && m->need[v] > need) need = m->need[v];
            if (feed < 0) continue;
            plait_tensor t = m->plan->key.feeds[feed].tensor;
            t.data = NULL;
            m->number[v] = pli_plan_add_value(m->plan, v, t, here ? PLI_PLACE_FEED : PLI_PLACE_NONE, feed);
            if (m->number[v] < 0) return pli_plan_no_memory(m->err);
        }
        if (is_known(m, node, need))
            PLI_TRY(add_known(m, node));
        else if (need > 0)
            PLI_TRY(copy_node(m, node, here ? need : NEED_SHAPE));
        if (m->plan->cut != NULL) PLI_TRY(join_parts(m, k));
    }
    return PLAIT_OK;
}

static plait_status number_fetches(maker *m) {
    const pli_plan_key *key = &m->plan->key;
    m->plan->fetch = pli_arena_take(&m->plan->arena, (size_t)key->n_fetches * sizeof *m->plan->fetch);
    if (m->plan->fetch == NULL) return pli_plan_no_memory(m->err);
    for (int32_t i = 0; i < key->n_fetches; i++) {
        const plait_value v = key->fetches[i].value;
        const bool        here = m->plan->cut == NULL || pli_cut_is_here(&m->parts, m->g->value[v].node);
        m->plan->fetch[i] = here ? m->number[v] : -1;
    }
    return PLAIT_OK;
}

plait_status pli_plan_copy(pli_plan *plan, plait_error *err) {
    const plait_graph *g = plan->graph;
    const size_t       n = (size_t)g->n_values;
    maker              m = { .plan = plan,
                             .g = g,
                             .err = err,
                             .need = pli_calloc(n, sizeof *m.need),
                             .excluded = pli_calloc(n, sizeof *m.excluded),
                             .feed = pli_array(n, sizeof *m.feed),
                             .number = pli_array(n, sizeof *m.number) };
    plait_status       status = PLAIT_OK;
    if (m.need == NULL || m.excluded == NULL || m.feed == NULL || m.number == NULL) status = pli_plan_no_memory(err);
    for (size_t v = 0; status == PLAIT_OK && v < n; v++) m.feed[v] = m.number[v] = -1;
    if (status == PLAIT_OK) status = mark_asked(&m);
    if (status == PLAIT_OK) status = mark_needed(&m);
    if (status == PLAIT_OK && plan->cut != NULL) status = pli_cut_find_parts(plan, m.need, m.feed, &m.parts, err);
    if (status == PLAIT_OK) status = copy_needed(&m);
    if (status == PLAIT_OK) status = number_fetches(&m);
    pli_free(m.need);
    pli_free(m.excluded);
    pli_free(m.feed);
    pli_free(m.number);
    return status;
}
