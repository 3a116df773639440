/* A fitted net: scores rows, writes and reads tensors, exports to ONNX. */
#include <math.h>
#include <string.h>

#include "graph/form/export.h"
#include "graph/session.h"
#include "learn/net/fit.h"

/* --- scores ------------------------------------------------------------------------------------------------------- */

static plait_status open(const void *form, const pli_solution *solution, void **scorer_out, plait_error *err) {
    const pli_net *net = form;
    plait_session *session = NULL;
    (void)solution;
    plait_status status = pli_session_create(net->calm != NULL ? net->calm : net->graph, NULL, NULL, &session, err);
    *scorer_out = session;
    return status;
}

static void close(void *scorer) {
    plait_session *session = scorer;
    plait_session_destroy(&session);
}

static plait_status score_block(const void *form, const pli_solution *solution, void *scorer, const pli_block *block,
                                pli_score_fn *each, void *user, plait_error *err) {
    const pli_net *net = form;
    pli_net_pass   pass = { .block = block, .each = each, .user = user };
    PLI_TRY(pli_net_pass_begin(net, &pass, err));
    const plait_status status = pli_net_score(net, scorer, solution->flat, block, pli_net_pass_row, &pass, err);
    pli_net_pass_end(&pass);
    return status;
}

const pli_scoring_ops pli_net_scoring = { .open = open, .close = close, .block = score_block };

/* --- its file ----------------------------------------------------------------------------------------------------- */

/* One tensor for each variable, in its shape. */
static plait_status tensors(const plait_model *model, pli_model_tensors *out, plait_error *err) {
    const pli_net   *net = pli_net_of(model);
    const pli_spool *spool = pli_fitted_solution(model)->spool;
    (void)err;
    for (int32_t p = 0; p < net->n_params; p++) {
        const plait_shape shape = plait_graph_variable_initial(net->graph, p).shape;
        pli_tensor       *t = &out->tensor[out->n++];
        *t = (pli_tensor){ .name = net->param[p].name,
                           .type = "F32",
                           .dims = shape.rank,
                           .data = pli_fitted_solution(model)->flat + net->param[p].at,
                           .bytes = (size_t)plait_shape_elements(&shape) * sizeof(float),
                           .mapped = spool != NULL && pli_spool_is_file(spool) };
        for (int32_t i = 0; i < shape.rank; i++) t->shape[i] = shape.dim[i];
    }
    return PLAIT_OK;
}

static void metadata(const plait_model *model, pli_model_meta *meta) {
    const pli_net *net = pli_net_of(model);
    pli_fitted_metadata(model, meta);
    pli_model_meta_add(meta, "plait.loss", pli_fitted_of(model)->goal.loss->model);
    pli_model_meta_add(meta, net->text != NULL ? "plait.graph" : "plait.layers", pli_net_form(net));
}

plait_status pli_net_open_model(plait_model *model, const char *form, plait_error *err) {
    pli_net_model *own = model->own;
    PLI_TRY(pli_net_create(pli_net_kind_find(model->name), form, model->schema, &own->fitted.goal, model->features, 1,
                           NULL, &own->net, err));
    own->fitted.scoring = &pli_net_scoring;
    own->fitted.form = own->net;
    own->fitted.row_labels = own->net->row_labels;
    return PLAIT_OK;
}

void pli_net_close_model(plait_model *model) {
    pli_net_model *own = model->own;
    pli_net_destroy(&own->net);
    pli_fitted_close(model);
}

/* Reads the net's values from the tensors with the names of its variables. */
static plait_status load(const pli_safetensors *file, const char *path, plait_model *model, plait_error *err) {
    const char *loss = pli_safetensors_metadata(file, "plait.loss"),
               *form = pli_safetensors_metadata(file, "plait.layers");
    if (form == NULL) form = pli_safetensors_metadata(file, "plait.graph");
    if (loss == NULL || form == NULL || model->features != pli_schema_features(model->schema))
        return pli_not_a_model(path, "its layers do not match its features", err);
    PLI_TRY(pli_fitted_read(file, path, model, loss, err));
    PLI_TRY(pli_net_open_model(model, form, err));
    const pli_net *net = pli_net_of(model);
    pli_solution  *s = &pli_fitted_of(model)->solution;
    if (!model->bare) PLI_TRY(pli_solution_make_flat(net->values, s, err));
    for (int32_t p = 0; p < net->n_params; p++) {
        const pli_tensor *t = pli_safetensors_find(file, net->param[p].name);
        const size_t      bytes = (size_t)(net->param[p].rows * net->param[p].cols) * sizeof(float);
        if (t == NULL || strcmp(t->type, "F32") != 0 || t->bytes != bytes)
            return pli_not_a_model(path, "a layer is missing, or does not have the form that it declares", err);
        if (!model->bare) memcpy(s->flat + net->param[p].at, t->data, bytes);
    }
    return PLAIT_OK;
}

/* --- its values --------------------------------------------------------------------------------------------------- */

static int64_t  rows(const plait_model *model) { return pli_fitted_solution(model)->rows; }
static uint64_t key(const plait_model *model, int64_t row) { return (void)model, (uint64_t)row; }

static int64_t columns(const plait_model *model) {
    (void)model;
    return 1;
}

static double weight(const plait_model *model, int64_t row, int64_t column) {
    (void)column;
    return (double)pli_fitted_solution(model)->flat[row];
}

static double intercept(const plait_model *model, int64_t column) {
    (void)model;
    (void)column;
    return NAN;
}

static void feature(const plait_model *model, int64_t row, pli_text *text) {
    pli_net_value_name(pli_net_of(model), row, text);
}

/* --- export ------------------------------------------------------------------------------------------------------- */

static const char *net_scores(const plait_model *model, pli_export *to) {
    const pli_net     *net = pli_net_of(model);
    const plait_tensor x = plait_graph_describe(net->graph, net->x);
    plait_tensor       variable[PLI_NET_PARAMS];
    const plait_type   type = net->symbols > 0 ? PLAIT_I64 : PLAIT_F32;
    int64_t            lengths[PLAIT_RANK_MAX] = { -1 };
    const char        *name = type == PLAIT_F32
                                  ? pli_fitted_export_rows(model, to, net->row_values)
                                  : pli_export_input(to, "x", type, plait_shape_2(PLAIT_ANY, net->row_values), "rows");
    for (int32_t p = 0; p < net->n_params; p++) {
        variable[p] = plait_graph_variable_initial(net->graph, p);
        variable[p].data = pli_fitted_solution(model)->flat + net->param[p].at;
    }
    for (int32_t i = 1; i < x.shape.rank; i++) lengths[i] = x.shape.dim[i];
    if (x.shape.rank > 2) name = pli_export_2(to, "Reshape", name, pli_export_ints(to, x.shape.rank, lengths));
    pli_export_begin(to, net->graph, variable);
    pli_export_bind(to, net->x, name);
    const char *scores = pli_export_value(to, net->scores);
    to->variable = NULL; /* the arrays are the model's: the export must not keep them */
    return scores;
}

plait_status pli_net_export(const plait_model *model, pli_export *to, plait_error *err) {
    (void)err;
    pli_fitted_export(model, to, PLAIT_F32, net_scores(model, to));
    return PLAIT_OK;
}

const pli_model_ops pli_net_model_ops = {
    .tensors = tensors, .metadata = metadata, .load = load, .predict = pli_fitted_predict, .eval = pli_fitted_eval,
    .rows = rows, .columns = columns, .key = key, .weight = weight, .intercept = intercept, .feature = feature
};
