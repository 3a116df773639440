/* graph: a net of the user's own, out of a file (plait/graph_file.h). It computes scores [any, K] from a placeholder x
 * [any, ...], whose other lengths multiply to a row's features. Its variables, of f32, are the tables, by their names;
 * those of two axes and more are penalised.
 *
 * A model keeps the graph in JSON, without first values, since the model has its own. If the graph drops values, a
 * second graph, whose values have the same numbers, scores rows without dropping any. */
#include <stdio.h>
#include <string.h>

#include <plait/graph_file.h>
#include <plait/nn.h>

#include "graph/form/form.h"
#include "graph/subgraph.h"
#include "learn/net/net.h"

/* --- from a file -------------------------------------------------------------------------------------------------- */

static plait_status first_values(const plait_graph *g, pli_net_file *file, plait_error *err) {
    int64_t n = 0, at = 0;
    for (int32_t k = 0; k < plait_graph_variables(g); k++) {
        const plait_tensor t = plait_graph_variable_initial(g, k);
        const int64_t      more = plait_shape_elements(&t.shape);
        if (t.type != PLAIT_F32)
            return pli_fail(err, PLAIT_EREFUSED,
                            "variable '%.60s' of type %s is refused: a net's tables hold f32",
                            plait_graph_variable_name(g, k), plait_type_name(t.type));
        if (more < 0 || n > (INT64_C(1) << 40) - more)
            return pli_fail(err, PLAIT_ESHAPE, "variable '%.60s' is too large", plait_graph_variable_name(g, k));
        n += more;
    }
    file->first = pli_calloc((size_t)n, sizeof *file->first);
    if (file->first == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld values", (long long)n);
    for (int32_t k = 0; k < plait_graph_variables(g); k++) {
        const plait_tensor t = plait_graph_variable_initial(g, k);
        const int64_t      more = plait_shape_elements(&t.shape);
        if (t.data != NULL) memcpy(file->first + at, t.data, (size_t)more * sizeof *file->first);
        at += more;
    }
    file->values = n;
    return PLAIT_OK;
}

/* Are there the subgraphs that the run names? */
static plait_status check_names(const plait_graph *g, const char *exclude, const char *train, plait_error *err) {
    pli_choice choice = { .n = 0 };
    if (exclude == NULL && train == NULL) return PLAIT_OK;
    const plait_status status = pli_choice_read(g, exclude, train, &choice, err);
    pli_choice_free(&choice);
    return status;
}

plait_status pli_net_file_read(const char *path, uint64_t seed, const char *exclude, const char *train,
                               pli_net_file *file_out, plait_error *err) {
    plait_graph_file_opts opts;
    plait_graph          *g = NULL;
    pli_text              text = { 0 };
    pli_net_file          file = { .text = NULL };
    plait_graph_file_opts_init(&opts);
    opts.seed = seed;
    PLI_TRY(plait_graph_load(path, &opts, &g, err));
    plait_status status = check_names(g, exclude, train, err);
    if (status == PLAIT_OK) status = first_values(g, &file, err);
    if (status < 0) pli_fail_at(err, "%s", path);
    for (int64_t i = 0; i < g->n_nodes; i++) file.drops = file.drops || strcmp(g->node[i].op->name, "dropout") == 0;
    if (status == PLAIT_OK) status = pli_form_to_json(g, false, &text, err);
    plait_graph_destroy(&g);
    file.text = text.data;
    if (status == PLAIT_OK)
        *file_out = file;
    else
        pli_net_file_free(&file);
    return status;
}

void pli_net_file_free(pli_net_file *file) {
    pli_text text = { .data = file->text };
    pli_text_free(&text);
    pli_free(file->first);
    *file = (pli_net_file){ .text = NULL };
}

/* --- what a net needs of it --------------------------------------------------------------------------------------- */

static plait_status wrong(const plait_graph *g, const char *name, plait_value v, const char *why, plait_error *err) {
    const plait_tensor t = plait_graph_describe(g, v);
    char               shape[128];
    pli_shape_text(&t, shape);
    return pli_fail(err, PLAIT_ESHAPE, "the graph's %s is %s: %s", name, shape, why);
}

static plait_status find_x(pli_net *net, plait_error *err) {
    const plait_graph *g = net->graph;
    char               why[200];
    int64_t            width = 1;
    net->x = plait_graph_find(g, "x");
    if (net->x < 0 || strcmp(pli_value_node(g, net->x)->op->name, "placeholder") != 0)
        return pli_fail(err, PLAIT_ENAME, "the graph has no placeholder named x to feed the rows to");
    const plait_tensor x = plait_graph_describe(g, net->x);
    for (int32_t i = 1; i < x.shape.rank && width >= 0; i++)
        if (x.shape.dim[i] < 0 || __builtin_mul_overflow(width, x.shape.dim[i], &width)) width = -1;
    snprintf(why, sizeof why,
             "rows of the data have %lld features, so it must be f32[?, %lld], or the same number in more axes",
             (long long)net->row_values, (long long)net->row_values);
    if (x.type != PLAIT_F32 || x.shape.rank < 2 || x.shape.dim[0] >= 0 || width != net->row_values)
        return wrong(g, "x", net->x, why, err);
    return PLAIT_OK;
}

/* Refuses placeholders that scores depend on, but for x. Others are never fed, as nothing that is run needs them. */
static plait_status check_fed(const pli_net *net, plait_error *err) {
    const plait_graph *g = net->graph;
    plait_status       status = PLAIT_OK;
    bool              *needed = pli_calloc((size_t)g->n_nodes, sizeof *needed);
    if (needed == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a graph");
    needed[g->value[net->scores].node] = true;
    for (int64_t i = g->n_nodes - 1; i >= 0 && status == PLAIT_OK; i--) {
        const pli_node *node = &g->node[i];
        if (!needed[i]) continue;
        for (int32_t k = 0; k < node->n_inputs; k++) needed[g->value[g->input[node->input + k]].node] = true;
        if (node->value == net->x || strcmp(node->op->name, "placeholder") != 0) continue;
        char text[80];
        pli_value_text(g, node->value, text);
        status = pli_fail(err, PLAIT_EREFUSED, "the graph's %s is refused: rows are fed only to x", text);
    }
    pli_free(needed);
    return status;
}

/* Finds scores [any, K]. A vector becomes a column; two scores of two classes become their difference. */
static plait_status find_scores(pli_net *net, plait_error *err) {
    plait_graph  *g = net->graph;
    const int64_t k = net->goal->columns, classes = net->goal->classes, first[] = { 0, 0 }, second[] = { 0, 1 };
    const int64_t first_end[] = { INT64_MAX, 1 }, second_end[] = { INT64_MAX, 2 };
    char          why[200];
    net->scores = plait_graph_find(g, "scores");
    if (net->scores < 0) return pli_fail(err, PLAIT_ENAME, "the graph has no value named scores");
    const plait_tensor s = plait_graph_describe(g, net->scores);
    snprintf(why, sizeof why, "each row must have %lld score%s (f32[?, %lld]), since the labels are %s", (long long)k,
             pli_plural(k), (long long)k,
             classes == 0   ? "numbers"
             : classes == 2 ? "two classes"
                            : "so many classes");
    const bool rows = s.type == PLAIT_F32 && s.shape.rank >= 1 && s.shape.dim[0] < 0;
    if (rows && s.shape.rank == 1 && k == 1) {
        net->scores = plait_op_reshape(g, net->scores, plait_shape_2(-1, 1));
    } else if (rows && s.shape.rank == 2 && s.shape.dim[1] == 2 && classes == 2) {
        net->scores = plait_op_sub(g, plait_op_slice(g, net->scores, 2, second, second_end, NULL),
                                   plait_op_slice(g, net->scores, 2, first, first_end, NULL));
    } else if (!rows || s.shape.rank != 2 || s.shape.dim[1] != k) {
        return wrong(g, "scores", net->scores, why, err);
    }
    return plait_graph_check(g, err);
}

static plait_status take_variables(pli_net *net, plait_error *err) {
    const plait_graph *g = net->graph;
    const int32_t      n = plait_graph_variables(g);
    if (n < 1 || n > PLI_NET_PARAMS)
        return pli_fail(err, PLAIT_EREFUSED, "a graph of %d variables is refused: a net has 1 to %d", n,
                        PLI_NET_PARAMS);
    for (int32_t k = 0; k < n; k++) {
        const char        *name = plait_graph_variable_name(g, k);
        const plait_tensor t = plait_graph_variable_initial(g, k);
        const int64_t      all = plait_shape_elements(&t.shape), rows = t.shape.rank > 1 ? t.shape.dim[0] : 1;
        pli_net_param     *p = &net->param[net->n_params++];
        if (strlen(name) >= sizeof p->name || t.type != PLAIT_F32 || all < 1)
            return pli_fail(err, PLAIT_EREFUSED,
                            "variable '%.60s' is refused: a table has a name of at most %zu bytes, and f32 values",
                            name, sizeof p->name - 1);
        *p = (pli_net_param){
            .rows = rows, .cols = all / rows, .at = net->values, .penalised = t.shape.rank > 1, .of = k
        };
        memcpy(p->name, name, strlen(name) + 1);
        p->value = plait_graph_find(g, name);
        net->values += all;
    }
    return PLAIT_OK;
}

/* Refuses ops whose values are no function of the row. */
static plait_status check_ops(const plait_graph *g, bool *drops_out, plait_error *err) {
    *drops_out = false;
    for (int64_t i = 0; i < g->n_nodes; i++) {
        const char *op = g->node[i].op->name;
        *drops_out = *drops_out || strcmp(op, "dropout") == 0;
        if (strcmp(op, "random_uniform") == 0 || strcmp(op, "random_normal") == 0)
            return pli_fail(err, PLAIT_EREFUSED,
                            "%s in a net is refused: a row's score would change from run to run; take dropout", op);
        if (strcmp(op, "batch_norm") == 0)
            return pli_fail(err, PLAIT_EREFUSED,
                            "batch_norm in a net is refused: a row's score would depend on the rows "
                            "beside it; take layer_norm, or running statistics as ONNX's BatchNormalization has them");
    }
    return PLAIT_OK;
}

static plait_status parse(const pli_net *net, const plait_op *const *own, plait_graph **graph_out, plait_error *err) {
    plait_graph_file_opts opts;
    plait_graph_file_opts_init(&opts);
    opts.ops = own;
    opts.n_ops = 1;
    return plait_graph_parse("graph", net->text, strlen(net->text), &opts, graph_out, err);
}

/* Makes net->calm: the same graph with rates of 0, whose values have the same numbers. */
static plait_status without_dropout(pli_net *net, const plait_op *const *own, plait_error *err) {
    PLI_TRY(parse(net, own, &net->calm, err));
    for (int64_t i = 0; i < net->calm->n_nodes; i++) {
        const pli_node *node = &net->calm->node[i];
        if (strcmp(node->op->name, "dropout") == 0) net->calm->attr[node->attr].u.f = 0;
    }
    pli_net both = *net; /* find_scores adds to this graph what it has added to the other */
    both.graph = net->calm;
    return find_scores(&both, err);
}

static plait_status open_graph(pli_net *net, plait_error *err) {
    const plait_op *own[] = { &net->loss_op };
    bool            drops;
    PLI_TRY(parse(net, own, &net->graph, err));
    PLI_TRY(check_ops(net->graph, &drops, err));
    PLI_TRY(find_x(net, err));
    PLI_TRY(find_scores(net, err));
    PLI_TRY(check_fed(net, err));
    PLI_TRY(take_variables(net, err));
    return drops ? without_dropout(net, own, err) : PLAIT_OK;
}

const pli_net_kind pli_net_graph = {
    .name = "graph",
    .summary = "a graph of your own, from a file",
    .batch = 128,
    .open = open_graph,
};
