/* op_gradient.h - an op's gradient rule against central differences in double, and the rule of what that is made of
 * likewise.
 *
 * L = the sum over float outputs of <out, r>, r from a seed; its symbolic derivative by each input x is compared
 * with (L(x + h) - L(x - h)) / 2 h at some elements. Then the same for L2 = the sum of <dL/dx, q>, by x and by r.
 * The graph is computed node by node, with each op's first kernel that suits. */
#ifndef PLI_TESTS_OP_GRADIENT_H
#define PLI_TESTS_OP_GRADIENT_H

#include "op_case.h"

typedef struct op_values {
    plait_graph  *graph;
    plait_tensor *value; /* [n_values], data NULL: not computed yet */
    bool         *fed;
    plait_value   by[24]; /* what may be differentiated by */
    int32_t       n_by;
} op_values;

static inline bool op_shapes_equal(const plait_shape *a, const plait_shape *b) {
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

static inline void op_values_map(const plait_op *op, const plait_call *call) {
    int64_t strides[4][PLAIT_RANK_MAX], own[PLAIT_RANK_MAX];
    pli_strides(&call->out[0].shape, own);
    for (int32_t k = 0; k < call->n_in; k++) pli_broadcast_strides(&call->in[k].shape, &call->out[0].shape, strides[k]);
    for (int64_t i = 0; i < plait_shape_elements(&call->out[0].shape); i++) {
        const void *at[4];
        for (int32_t k = 0; k < call->n_in; k++) {
            int64_t from = 0;
            for (int32_t d = 0; d < call->out[0].shape.rank; d++)
                from += i / own[d] % call->out[0].shape.dim[d] * strides[k][d];
            at[k] = (const char *)call->in[k].data + (size_t)from * plait_type_bytes(call->in[k].type);
        }
        op->map[call->in[0].type](1, at, (char *)call->out[0].data + (size_t)i * plait_type_bytes(call->out[0].type),
                                  call->attr);
    }
}

static inline void op_values_node(op_values *e, const pli_node *node) {
    op_case c = { .op = node->op, .n_in = node->n_inputs };
    for (int32_t i = 0; i < node->n_inputs; i++) c.in[i] = e->value[e->graph->input[node->input + i]];
    for (int32_t i = 0; i < node->op->n_attrs; i++) c.attr[i] = e->graph->attr[node->attr + i];
    if (op_case_infer(&c) != PLAIT_OK) fail_msg("%s: %s", c.op->name, c.error.text);
    plait_call call = op_case_call(&c);
    if (strcmp(node->op->name, "constant") == 0) {
        const plait_tensor *t = c.attr[0].u.tensor;
        c.out[0] = *t;
        c.out[0].data = malloc(64 + (size_t)plait_shape_elements(&t->shape) * plait_type_bytes(t->type));
        memcpy(c.out[0].data, t->data, (size_t)plait_shape_elements(&t->shape) * plait_type_bytes(t->type));
    } else if ((node->op->flags & PLAIT_OP_ALIAS) != 0) {
        const size_t bytes = (size_t)plait_shape_elements(&c.out[0].shape) * plait_type_bytes(c.out[0].type);
        c.out[0].data = malloc(bytes + 1);
        memcpy(c.out[0].data, c.in[0].data, bytes);
    } else if (node->op->kernels == NULL) {
        c.out[0].data = calloc((size_t)plait_shape_elements(&c.out[0].shape) + 1, 8);
        op_values_map(node->op, &call);
    } else {
        int32_t k = 0;
        while (node->op->kernels[k]->suits != NULL && !node->op->kernels[k]->suits(&call)) k++;
        if (op_case_run(&c, node->op->kernels[k]) != PLAIT_OK) fail_msg("%s: %s", c.op->name, c.error.text);
    }
    for (int32_t i = 0; i < node->n_values; i++) {
        free(e->value[node->value + i].data);
        e->value[node->value + i] = c.out[i];
    }
}

/* Computes the nodes that targets need, and answers the sum of target 0. */
static inline double op_values_compute(op_values *e, const plait_value *targets, int32_t n) {
    bool *needed = calloc((size_t)e->graph->n_nodes, sizeof *needed);
    for (int32_t i = 0; i < n; i++) needed[e->graph->value[targets[i]].node] = true;
    for (int64_t k = e->graph->n_nodes - 1; k >= 0; k--) {
        const pli_node *node = &e->graph->node[k];
        if (!needed[k] || e->fed[node->value]) continue;
        for (int32_t i = 0; i < node->n_inputs; i++)
            needed[e->graph->value[e->graph->input[node->input + i]].node] = true;
    }
    for (int64_t k = 0; k < e->graph->n_nodes; k++)
        if (needed[k] && !e->fed[e->graph->node[k].value]) op_values_node(e, &e->graph->node[k]);
    free(needed);
    double sum = 0;
    for (int64_t i = 0; i < plait_shape_elements(&e->value[targets[0]].shape); i++)
        sum += pli_element(&e->value[targets[0]], i);
    return sum;
}

static inline plait_value op_values_feed(op_values *e, const char *name, const plait_tensor *t) {
    const plait_value v = plait_graph_placeholder(e->graph, name, t->type, t->shape);
    assert_true(v >= 0 && v < 4096);
    e->value[v] = *t;
    e->fed[v] = true;
    if (t->type == PLAIT_F64) e->by[e->n_by++] = v;
    return v;
}

/* total + the sum of <v, weights from a seed>. */
static inline plait_value op_values_add(op_values *e, plait_value total, plait_value v, int32_t salt) {
    char         name[16];
    op_case      random = { .n_in = salt % 8 };
    plait_tensor shape = pli_value_tensor(e->graph, v), *weights = op_case_input(&random, PLAIT_F64, shape.shape, 0);
    snprintf(name, sizeof name, "r%d", salt);
    const plait_value zero = plait_graph_scalar(e->graph, PLAIT_F64, 0);
    const plait_value weighted = pli_op2(e->graph, &pli_op_mul, v, op_values_feed(e, name, weights));
    const plait_value sum = pli_op2(e->graph, &pli_op_sum_like, weighted, zero);
    return total < 0 ? sum : pli_op2(e->graph, &pli_op_add, total, sum);
}

/* The symbolic derivatives of total by all that was fed, against differences. */
static inline void op_values_check(op_values *e, plait_value total, double tolerance, plait_value *d_out) {
    enum { ELEMENTS = 20 };
    plait_error err;
    if (plait_graph_gradients(e->graph, total, e->n_by, e->by, d_out) != PLAIT_OK) {
        plait_graph_check(e->graph, &err);
        fail_msg("%s", err.text);
    }
    op_values_compute(e, d_out, e->n_by);
    for (int32_t b = 0; b < e->n_by; b++) {
        plait_tensor *x = &e->value[e->by[b]];
        const int64_t n = plait_shape_elements(&x->shape), step = n > ELEMENTS ? n / ELEMENTS : 1;
        assert_true(op_shapes_equal(&x->shape, &e->value[d_out[b]].shape));
        for (int64_t i = 0; i < n; i += step) {
            double      *at = (double *)x->data + i;
            const double was = *at, h = 1e-5 * (1 + fabs(was));
            *at = was + h;
            const double above = op_values_compute(e, &total, 1);
            *at = was - h;
            const double below = op_values_compute(e, &total, 1), want = (above - below) / (2 * h);
            *at = was;
            const double got = pli_element(&e->value[d_out[b]], i);
            if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
                fail_msg("derivative by %s [%lld] is %.9g, not %.9g", pli_value_name(e->graph, e->by[b]), (long long)i,
                         got, want);
        }
    }
}

/* order 1, or 2 for both. Inputs of the case are F64 where they are to be differentiated by; the case ends. */
static inline void op_case_gradients(op_case *c, int order, double tolerance) {
    op_values   e = { .value = calloc(4096, sizeof *e.value), .fed = calloc(4096, sizeof *e.fed) };
    plait_value in[12], total = PLAIT_NONE, d[24] = { 0 }, dd[24];
    char        name[16];
    assert_int_equal(plait_graph_create(NULL, 0, &e.graph, NULL), PLAIT_OK);
    for (int32_t i = 0; i < c->n_in; i++) {
        snprintf(name, sizeof name, "in%d", i);
        in[i] = op_values_feed(&e, name, &c->in[i]);
    }
    const int32_t     n_in = c->n_in;
    const plait_value y = plait_graph_op(e.graph, c->op->name, in, n_in, c->attr, c->op->n_attrs);
    plait_error       err;
    if (plait_graph_check(e.graph, &err) != PLAIT_OK) fail_msg("%s", err.text);
    const int32_t n_out = pli_value_node(e.graph, y)->n_values;
    for (int32_t o = 0; o < n_out; o++)
        if ((c->apart >> o & 1) == 0 && pli_value_tensor(e.graph, y + o).type == PLAIT_F64)
            total = op_values_add(&e, total, y + o, o);
    op_values_check(&e, total, tolerance, d);
    if (order == 2) {
        const int32_t first = e.n_by;
        total = PLAIT_NONE;
        for (int32_t b = 0; b < first; b++) total = op_values_add(&e, total, d[b], 8 + b);
        op_values_check(&e, total, tolerance, dd);
    }
    assert_true(e.graph->n_values < 4096);
    for (int32_t v = 0; v < e.graph->n_values; v++) free(e.value[v].data);
    free(e.value);
    free(e.fed);
    plait_graph_destroy(&e.graph);
    memset(c->in, 0, sizeof c->in);
    c->n_in = 0;
}

#endif
