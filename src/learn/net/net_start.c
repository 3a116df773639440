/* The first values of a net in stages or columns out of a model (--init-model). The model's values stay in its file,
 * which is mapped, and each rank takes its own pieces, in training's units: no rank needs memory for the whole net. */
#include <string.h>

#include "learn/net/fit.h"

struct pli_net_start {
    const pli_run   *run;
    pli_safetensors *file;
    const float     *value[PLI_NET_PARAMS]; /* of the whole net's parameters */
};

plait_status pli_net_start_open(const pli_run *run, pli_net_start **start_out) {
    const pli_net *net = pli_net_fit_of(run)->net;
    const char    *path = run->opts->init_model;
    pli_net_start *start = pli_calloc(1, sizeof *start);
    if (start == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the first weights");
    start->run = run;
    plait_status status = pli_safetensors_open(path, &start->file, run->err);
    for (int32_t p = 0; status >= 0 && p < net->n_params; p++) {
        const pli_tensor *t = pli_safetensors_find(start->file, net->param[p].name);
        if (t == NULL || strcmp(t->type, "F32") != 0 ||
            t->bytes != (size_t)(net->param[p].rows * net->param[p].cols) * sizeof(float))
            status = pli_not_a_model(path, "it has changed since the run began", run->err);
        else start->value[p] = t->data;
    }
    if (status < 0) pli_net_start_close(&start);
    *start_out = start;
    return status;
}

void pli_net_start_close(pli_net_start **start) {
    if (*start == NULL) return;
    pli_safetensors_close(&(*start)->file);
    pli_free(*start);
    *start = NULL;
}

/* --- in training's units: pli_net_from_data_units of a piece ------------------------------------------------------ */

/* Value i of the whole net's parameter `of`, in training's units of the scores. */
static float scored(const pli_net *net, int32_t of, float value) {
    const pli_net_units *u = &net->units;
    if (u->spread == 1 && u->mean == 0) return value;
    if (of == net->n_params - 2) return (float)(1 / u->spread * (double)value);
    return of == net->n_params - 1 ? (float)(((double)value - u->mean) / u->spread) : value;
}

/* What the centre of feature j adds to the bias of column k. */
static double centred(const pli_net_start *start, const pli_scale *scale, int64_t j, int64_t k) {
    const pli_net *net = pli_net_fit_of(start->run)->net;
    const float    w = scored(net, 0, start->value[0][j * net->param[0].cols + k]);
    return scale->centre != NULL ? scale->centre[j] * (double)w : 0;
}

static void scale_weights(const pli_net *net, const pli_scale *scale, const pli_net_param *part, float *values) {
    for (int64_t i = 0; i < part->rows * part->cols; i++) {
        const double factor = scale->factor[net->even ? 0 : part->row0 + i / part->cols], value = (double)values[i];
        if (net->even) values[i] = (float)(1 / factor * value);
        else values[i] = factor > 0 ? (float)(value / factor) : 0;
    }
}

static void shift_biases(const pli_net_start *start, const pli_scale *scale, const pli_net_param *part,
                         float *values) {
    const pli_net *net = pli_net_fit_of(start->run)->net;
    const bool     each = net->param[1].rows > 1; /* a row for each feature */
    for (int64_t i = 0; i < part->rows * part->cols; i++) {
        const int64_t k = part->col0 + i % part->cols, row = part->row0 + i / part->cols;
        double        shift = 0;
        for (int64_t j = each ? row : 0; j < (each ? row + 1 : net->param[0].rows); j++)
            shift += centred(start, scale, j, k);
        values[i] = (float)((double)values[i] + shift);
    }
}

void pli_net_start_piece(const pli_net_start *start, const pli_net_param *part, float *values) {
    const pli_net_fit *n = pli_net_fit_of(start->run);
    const pli_scale   *scale = &n->fit.scale;
    pli_columns_take(&n->net->param[part->of], part, start->value[part->of], values);
    for (int64_t i = 0; i < part->rows * part->cols; i++) values[i] = scored(n->net, part->of, values[i]);
    if (scale->factor == NULL) return;
    if (part->of == 0) scale_weights(n->net, scale, part, values);
    if (part->of == 1 && !n->net->even) shift_biases(start, scale, part, values);
}
