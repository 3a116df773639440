/* Fills a path table (paths.h), and walks the paths.
 *
 * The sweep goes over the nodes before the target, the last first. When it comes to a node, it has seen all uses of its
 * outputs, so their gradients are complete: each is the sum of the partials of the edges that leave the output. From
 * these gradients the op's rule makes the partials of the edges that enter the node. Nodes without a gradient are
 * skipped. */
#include "graph/paths.h"

#include <string.h>

#include "graph/ops/ops.h"

void pli_paths_destroy(pli_paths **paths) {
    pli_paths *p = *paths;
    if (p == NULL) return;
    pli_free(p->grad);
    pli_free(p->partial);
    pli_free(p->head);
    pli_free(p->next);
    pli_free(p->user);
    pli_free(p);
    *paths = NULL;
}

static pli_paths *create(const plait_graph *g, plait_value target) {
    const pli_node *last = pli_value_node(g, target);
    pli_paths      *p = pli_calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    *p = (pli_paths){ .target = target,
                      .n_values = last->value + last->n_values,
                      .n_edges = last->input + last->n_inputs };
    p->grad = pli_array((size_t)p->n_values, sizeof *p->grad);
    p->head = pli_array((size_t)p->n_values, sizeof *p->head);
    p->partial = pli_array((size_t)p->n_edges, sizeof *p->partial);
    p->next = pli_array((size_t)p->n_edges, sizeof *p->next);
    p->user = pli_array((size_t)p->n_edges, sizeof *p->user);
    if (p->grad == NULL || p->head == NULL || p->partial == NULL || p->next == NULL || p->user == NULL)
        pli_paths_destroy(&p);
    if (p == NULL) return NULL;
    for (int32_t v = 0; v < p->n_values; v++) p->grad[v] = p->head[v] = -1;
    for (int32_t e = 0; e < p->n_edges; e++) p->partial[e] = p->next[e] = -1;
    return p;
}

/* --- the sweep ------------------------------------------------------------------------------------------------- */

enum { FEW = 8, ATTRS_MAX = 16 };

/* dy/dv of an output v: the sum of the partials of the edges that leave it. */
static plait_value sum_of_partials(plait_graph *g, const pli_paths *p, plait_value v) {
    plait_value few[FEW], *terms = few, sum = PLAIT_NONE;
    int32_t     n = 0, at = 0;
    for (int32_t e = p->head[v]; e >= 0; e = p->next[e]) n += p->partial[e] >= 0;
    if (n > FEW && (terms = pli_array((size_t)n, sizeof *terms)) == NULL)
        return pli_graph_failed(g, PLAIT_ENOMEM, "no memory to differentiate");
    for (int32_t e = p->head[v]; e >= 0; e = p->next[e])
        if (p->partial[e] >= 0) terms[at++] = p->partial[e];
    if (n == 1) sum = terms[0];
    else if (n == 2) sum = pli_op2(g, &pli_op_add, terms[0], terms[1]);
    else if (n > 2) sum = pli_graph_node(g, &pli_op_add_n, terms, n, NULL);
    if (terms != few) pli_free(terms);
    return sum;
}

/* Calls the op's rule with copies of those arrays that may move while it adds nodes. */
static void differentiate(plait_graph *g, pli_paths *p, int32_t k, const plait_value *d_out) {
    const pli_node node = g->node[k];
    plait_value    few_in[FEW], few_out[FEW], few_d[FEW], *in = few_in, *out = few_out, *d_in = few_d;
    plait_attr     attrs[ATTRS_MAX];
    if (node.n_inputs > FEW) {
        in = pli_array((size_t)node.n_inputs, sizeof *in);
        d_in = pli_array((size_t)node.n_inputs, sizeof *d_in);
    }
    if (node.n_values > FEW) out = pli_array((size_t)node.n_values, sizeof *out);
    if (in == NULL || d_in == NULL || out == NULL) {
        pli_graph_failed(g, PLAIT_ENOMEM, "no memory to differentiate");
        goto done;
    }
    for (int32_t i = 0; i < node.n_inputs; i++) {
        in[i] = g->input[node.input + i];
        d_in[i] = PLAIT_NONE;
    }
    for (int32_t i = 0; i < node.n_values; i++) out[i] = node.value + i;
    for (int32_t i = 0; i < node.op->n_attrs; i++) attrs[i] = g->attr[node.attr + i];
    const plait_gradient at = { .graph = g, .in = in, .out = out, .d_out = d_out, .d_in = d_in, .n_in = node.n_inputs,
                                .n_out = node.n_values, .attr = attrs, .user = node.op->user };
    node.op->gradient(&at);
    for (int32_t i = 0; i < node.n_inputs; i++) {
        if (d_in[i] < 0 || !pli_type_is_float(g->value[in[i]].type)) continue;
        const int32_t e = node.input + i;
        p->partial[e] = d_in[i];
        p->user[e] = k;
    }
done:
    if (in != few_in) pli_free(in);
    if (d_in != few_d) pli_free(d_in);
    if (out != few_out) pli_free(out);
}

/* Adds the edges that enter node k to the lists of the vertices that they leave; uses by later nodes come first. */
static void link_edges(const plait_graph *g, pli_paths *p, int32_t k) {
    const pli_node *node = &g->node[k];
    for (int32_t e = node->input + node->n_inputs - 1; e >= node->input; e--) {
        if (p->partial[e] < 0) continue;
        p->next[e] = p->head[g->input[e]];
        p->head[g->input[e]] = e;
    }
}

static void sweep(plait_graph *g, pli_paths *p) {
    plait_value d_out[64]; /* no node has more outputs */
    for (int32_t k = g->value[p->target].node; k >= 0 && g->status == PLAIT_OK; k--) {
        const pli_node node = g->node[k];
        bool           flows = false;
        g->forward = k + 1;
        for (int32_t i = 0; i < node.n_values; i++) {
            const plait_value v = node.value + i;
            if (v != p->target) p->grad[v] = p->head[v] < 0 ? PLAIT_NONE : sum_of_partials(g, p, v);
            d_out[i] = p->grad[v];
            flows = flows || d_out[i] >= 0;
        }
        if (!flows || node.op->gradient == NULL) continue;
        differentiate(g, p, k, d_out);
        link_edges(g, p, k);
    }
    g->forward = 0;
}

static pli_paths *find(const plait_graph *g, plait_value target) {
    for (int64_t i = 0; i < g->n_paths; i++)
        if (g->paths[i]->target == target) return g->paths[i];
    return NULL;
}

pli_paths *pli_paths_of(plait_graph *g, plait_value target) {
    pli_paths *p = find(g, target);
    if (p != NULL || g->status != PLAIT_OK) return p;
    if (!pli_type_is_float(g->value[target].type)) {
        char text[80];
        pli_value_text(g, target, text);
        pli_graph_failed(g, PLAIT_EINVAL, "gradients: %s is of type %s, which has none; cast it to f32 before", text,
                         plait_type_name((plait_type)g->value[target].type));
        return NULL;
    }
    p = create(g, target);
    if (p == NULL || !pli_grow((void **)&g->paths, &g->paths_capacity, g->n_paths + 1, sizeof(pli_paths *))) {
        pli_paths_destroy(&p);
        pli_graph_failed(g, PLAIT_ENOMEM, "no memory to differentiate");
        return NULL;
    }
    g->forward = g->value[target].node + 1;
    p->grad[target] = pli_op1(g, &pli_op_ones_like, target);
    sweep(g, p);
    g->paths[g->n_paths++] = p;
    return g->status == PLAIT_OK ? p : NULL;
}

/* --- looking up
 * ---------------------------------------------------------------------------------------------------- */

plait_status plait_graph_gradients(plait_graph *g, plait_value y, int32_t n, const plait_value *x,
                                   plait_value *dx_out) {
    if (g == NULL) return PLAIT_EINVAL; /* there is nowhere to put the text */
    if (n > 0 && (x == NULL || dx_out == NULL))
        pli_graph_failed(g, PLAIT_EINVAL, "%s: %s is NULL", __func__, x == NULL ? "x" : "dx_out");
    if (g->status != PLAIT_OK) return g->status;
    bool known = y >= 0 && y < g->n_values && n >= 0;
    for (int32_t i = 0; known && i < n; i++) known = x[i] >= 0 && x[i] < g->n_values;
    if (!known) {
        pli_graph_failed(g, PLAIT_EINVAL,
                         "gradients: the target, and what to differentiate by, are to be values of this graph");
        return g->status;
    }
    const pli_paths *p = pli_paths_of(g, y);
    for (int32_t i = 0; p != NULL && i < n; i++) {
        const plait_value dx = x[i] < p->n_values ? p->grad[x[i]] : PLAIT_NONE;
        dx_out[i] = dx >= 0 ? dx : pli_op1(g, &pli_op_zeros_like, x[i]);
    }
    return g->status;
}

/* A walk from y backwards along edges. For each depth it has the vertex, and the next input of its node to try. It
 * enters only vertices from which x can be reached; these are marked once, beforehand. */
typedef struct walk {
    const plait_graph *g;
    const pli_paths   *p;
    bool              *leads;  /* [n_values] x can be reached */
    plait_value       *vertex; /* the path so far        */
    plait_value       *partial;
    int32_t           *edge;   /* the last tried, by depth */
    int64_t            capacity_v, capacity_p, capacity_e;
} walk;

/* Marks forwards from x: a vertex leads to x if one of the edges into its node comes from a vertex that does. */
static void mark(const plait_graph *g, const pli_paths *p, plait_value x, bool *leads) {
    leads[x] = true;
    for (int32_t k = g->value[x].node + 1; k <= g->value[p->target].node; k++) {
        const pli_node *node = &g->node[k];
        bool            any = false;
        for (int32_t e = node->input; e < node->input + node->n_inputs; e++)
            any = any || (p->partial[e] >= 0 && leads[g->input[e]]);
        for (int32_t i = 0; any && i < node->n_values; i++) leads[node->value + i] = true;
    }
}

static bool deeper(walk *w, int32_t depth, plait_value vertex) {
    if (!pli_grow((void **)&w->vertex, &w->capacity_v, depth + 1, sizeof *w->vertex) ||
        !pli_grow((void **)&w->partial, &w->capacity_p, depth + 1, sizeof *w->partial) ||
        !pli_grow((void **)&w->edge, &w->capacity_e, depth + 1, sizeof *w->edge))
        return false;
    w->vertex[depth] = vertex;
    w->edge[depth] = pli_value_node(w->g, vertex)->input - 1;
    return true;
}

int64_t plait_graph_paths(const plait_graph *g, plait_value y, plait_value x,
                          int (*visit)(void *user, const plait_path *path), void *user) {
    const pli_paths *p = g == NULL || visit == NULL ? NULL : find(g, y);
    if (p == NULL || x < 0 || x >= p->n_values) return 0;
    walk    w = { .g = g, .p = p, .leads = pli_calloc((size_t)p->n_values, sizeof *w.leads) };
    int64_t visited = 0;
    int32_t depth = 0;
    if (w.leads != NULL) mark(g, p, x, w.leads);
    bool going = w.leads != NULL && w.leads[y] && deeper(&w, 0, y);
    while (going && depth >= 0) {
        const plait_value v = w.vertex[depth];
        const pli_node   *node = pli_value_node(g, v);
        const int32_t     end = node->input + node->n_inputs;
        if (v == x) { /* values before x are on no path to x */
            const plait_path path = { .n = depth + 1, .values = w.vertex, .partial = w.partial };
            visited++;
            going = visit(user, &path) == 0;
            depth--;
            continue;
        }
        int32_t e = w.edge[depth] + 1;
        while (e < end && (p->partial[e] < 0 || !w.leads[g->input[e]])) e++;
        w.edge[depth] = e;
        if (e == end) {
            depth--;
            continue;
        }
        w.partial[depth] = p->partial[e];
        going = deeper(&w, depth + 1, g->input[e]);
        depth++;
    }
    pli_free(w.leads);
    pli_free(w.vertex);
    pli_free(w.partial);
    pli_free(w.edge);
    return visited;
}
