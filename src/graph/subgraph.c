/* Subgraphs: named sets of nodes. A session leaves some out, or trains some alone. A variable belongs to a subgraph
 * that names it, and to one that has all its readers. What helps to compute the gradient of a node that is left out is
 * left out too, and so are the incs of variables that are left out or not trained. */
#include "graph/subgraph.h"

#include <string.h>

#include "graph/ops/ops.h"

/* --- declaring ---------------------------------------------------------------------------------------------------- */

static int64_t find(const plait_graph *g, const char *name, size_t length) {
    for (int64_t i = 0; i < g->n_subgraphs; i++)
        if (strlen(g->subgraph[i].name) == length && memcmp(g->subgraph[i].name, name, length) == 0) return i;
    return -1;
}

static plait_status check(const plait_graph *g, const char *name, const plait_value *values, int32_t n,
                          plait_error *err) {
    if (name[0] == '\0' || strchr(name, ',') != NULL)
        return pli_fail(err, PLAIT_EINVAL, "subgraph '%.60s': a name is not empty, and has no comma", name);
    if (find(g, name, strlen(name)) >= 0)
        return pli_fail(err, PLAIT_EINVAL, "there are two subgraphs named '%.60s'", name);
    if (n < 1) return pli_fail(err, PLAIT_EINVAL, "subgraph '%.60s' is empty", name);
    for (int32_t i = 0; i < n; i++)
        if (values[i] < 0 || values[i] >= g->n_values)
            return pli_fail(err, PLAIT_EINVAL, "subgraph '%.60s': value %d is none of this graph", name, i);
    return PLAIT_OK;
}

plait_status plait_graph_subgraph(plait_graph *graph, const char *name, const plait_value *values, int32_t n,
                                  plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, graph));
    PLI_TRY(PLI_GIVEN(error_out, name));
    PLI_TRY(PLI_GIVEN_OF(error_out, n, values));
    PLI_TRY(check(graph, name, values, n, error_out));
    const size_t bytes = strlen(name) + 1;
    int32_t     *node = pli_array((size_t)n, sizeof *node);
    char        *kept = pli_arena_take(&graph->arena, bytes);
    if (node == NULL || kept == NULL ||
        !pli_grow((void **)&graph->subgraph, &graph->subgraph_capacity, graph->n_subgraphs + 1,
                  sizeof *graph->subgraph)) {
        pli_free(node);
        return pli_fail(error_out, PLAIT_ENOMEM, "no memory for a subgraph");
    }
    memcpy(kept, name, bytes);
    for (int32_t i = 0; i < n; i++) node[i] = graph->value[values[i]].node;
    graph->subgraph[graph->n_subgraphs++] = (struct pli_subgraph){ .name = kept, .node = node, .n = n };
    return PLAIT_OK;
}

int32_t plait_graph_subgraphs(const plait_graph *graph) { return graph != NULL ? (int32_t)graph->n_subgraphs : 0; }

const char *plait_graph_subgraph_name(const plait_graph *graph, int32_t k) {
    return graph != NULL && k >= 0 && k < graph->n_subgraphs ? graph->subgraph[k].name : NULL;
}

/* --- choosing ----------------------------------------------------------------------------------------------------- */

static plait_status unknown(const plait_graph *g, const char *name, size_t length, plait_error *err) {
    char *word = pli_format("%.*s", (int)length, name);
    if (g->n_subgraphs == 0) {
        pli_free(word);
        return pli_fail(err, PLAIT_ENAME, "subgraph '%.*s': the graph has no subgraphs", (int)length, name);
    }
    const char **names = pli_array((size_t)g->n_subgraphs, sizeof *names);
    for (int64_t i = 0; names != NULL && i < g->n_subgraphs; i++) names[i] = g->subgraph[i].name;
    const plait_status status = names != NULL && word != NULL
                                    ? pli_fail_unknown(err, "subgraph", word, names, (size_t)g->n_subgraphs)
                                    : pli_fail(err, PLAIT_ENOMEM, "no memory for names");
    pli_free(names);
    pli_free(word);
    return status;
}

static plait_status read_list(const plait_graph *g, const char *list, bool **chosen_out, plait_error *err) {
    if (list == NULL) return PLAIT_OK;
    *chosen_out = pli_calloc((size_t)g->n_subgraphs + 1, sizeof **chosen_out);
    if (*chosen_out == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for subgraphs");
    for (const char *at = list;; at++) {
        const size_t  length = strcspn(at, ",");
        const int64_t k = find(g, at, length);
        if (k < 0) return unknown(g, at, length, err);
        (*chosen_out)[k] = true;
        at += length;
        if (*at == '\0') return PLAIT_OK;
    }
}

static bool is_inc(const pli_node *node) { return node->op == &pli_op_inc || node->op == &pli_op_inc_rows; }

/* The nodes of the chosen subgraphs, and the variables that only they read. NULL: no memory; pli_free frees them. */
static bool *members(const plait_graph *g, const bool *chosen, int64_t n) {
    bool *in = pli_calloc((size_t)g->n_nodes + 1, sizeof *in), *read = pli_calloc((size_t)g->n_nodes + 1, sizeof *read);
    bool *elsewhere = pli_calloc((size_t)g->n_nodes + 1, sizeof *elsewhere);
    const bool room = in != NULL && read != NULL && elsewhere != NULL;
    for (int64_t s = 0; room && s < n; s++)
        for (int64_t i = 0; chosen[s] && i < g->subgraph[s].n; i++) in[g->subgraph[s].node[i]] = true;
    for (int64_t k = 0; room && k < g->n_nodes; k++) {
        const pli_node *node = &g->node[k];
        if (node->forward >= 0 || is_inc(node)) continue;
        for (int32_t i = 0; i < node->n_inputs; i++) {
            const int32_t from = g->value[g->input[node->input + i]].node;
            if (i < 32 && (node->op->shape_only >> i & 1) != 0) continue; /* as zeros for a gradient do */
            read[from] = true;
            elsewhere[from] = elsewhere[from] || !in[k];
        }
    }
    for (int64_t v = 0; room && v < g->n_variables; v++) {
        const int32_t k = g->value[g->variable[v].value].node;
        in[k] = in[k] || (read[k] && !elsewhere[k]);
    }
    pli_free(read);
    pli_free(elsewhere);
    if (room) return in;
    pli_free(in);
    return NULL;
}

static plait_status check_trained(const plait_graph *g, const pli_choice *c, const char *list, plait_error *err) {
    if (c->train == NULL) return PLAIT_OK;
    for (int64_t i = 0; c->exclude != NULL && i < c->n; i++)
        if (c->exclude[i] && c->train[i])
            return pli_fail(err, PLAIT_EINVAL, "subgraph '%.60s' is to be trained and to be excluded",
                            g->subgraph[i].name);
    bool *in = members(g, c->train, c->n), any = false;
    if (in == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for subgraphs");
    for (int64_t v = 0; v < g->n_variables; v++) any = any || in[g->value[g->variable[v].value].node];
    pli_free(in);
    return any ? PLAIT_OK
               : pli_fail(err, PLAIT_EINVAL, "train %.80s: no variable lies there, so there is nothing to train", list);
}

plait_status pli_choice_read(const plait_graph *graph, const char *exclude, const char *train, pli_choice *choice_out,
                             plait_error *err) {
    pli_choice   c = { .n = graph->n_subgraphs };
    plait_status status = read_list(graph, exclude, &c.exclude, err);
    if (status == PLAIT_OK) status = read_list(graph, train, &c.train, err);
    if (status == PLAIT_OK) status = check_trained(graph, &c, train, err);
    if (status == PLAIT_OK)
        *choice_out = c;
    else
        pli_choice_free(&c);
    return status;
}

void pli_choice_free(pli_choice *choice) {
    pli_free(choice->exclude);
    pli_free(choice->train);
    *choice = (pli_choice){ .n = 0 };
}

plait_status pli_choice_mark(const pli_choice *c, const plait_graph *g, bool *excluded, plait_error *err) {
    bool      *off = c->exclude != NULL ? members(g, c->exclude, c->n) : NULL;
    bool      *trained = c->train != NULL ? members(g, c->train, c->n) : NULL;
    const bool room = (off != NULL) == (c->exclude != NULL) && (trained != NULL) == (c->train != NULL);
    for (int64_t k = 0; room && k < g->n_nodes; k++) {
        const pli_node *node = &g->node[k];
        const int32_t   variable = is_inc(node) ? g->value[g->input[node->input]].node : -1;
        bool            leave = off != NULL && (off[k] || (node->forward >= 0 && off[node->forward]));
        if (off != NULL) off[k] = leave; /* gradients of gradients come later */
        if (variable >= 0) leave = leave || (off != NULL && off[variable]) || (trained != NULL && !trained[variable]);
        for (int32_t i = 0; leave && i < node->n_values; i++) excluded[node->value + i] = true;
    }
    pli_free(off);
    pli_free(trained);
    return room ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for subgraphs");
}
