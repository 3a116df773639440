/* Uses a model: its answers for rows, and how good it is on them. */
#include "learn/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/exact_cells.h"

/* --- rows, as a learner sees them ------------------------------------------------------------------------------- */

int64_t plait_rows_count(const plait_rows *rows) { return rows == NULL ? 0 : ((const pli_block *)rows)->rows; }

plait_status plait_rows_row(const plait_rows *rows, int64_t i, plait_row *row_out) {
    const pli_block *block = (const pli_block *)rows;
    if (block == NULL || row_out == NULL || i < 0 || i >= block->rows) return PLAIT_EINVAL;
    pli_block_row(block, i, row_out);
    return PLAIT_OK;
}

int64_t plait_batch_rows(const plait_batch *batch) { return batch == NULL ? 0 : ((const pli_batch *)batch)->rows; }

plait_status plait_batch_row(const plait_batch *batch, int64_t i, plait_row *row_out) {
    const pli_batch *b = (const pli_batch *)batch;
    if (b == NULL || row_out == NULL || i < 0 || i >= b->rows) return PLAIT_EINVAL;
    int32_t p = 0;
    while (i >= b->part[p].rows) i -= b->part[p++].rows;
    const pli_part *part = &b->part[p];
    pli_block_row(part->block, part->order != NULL ? (int64_t)part->order[i] : part->first + i, row_out);
    return PLAIT_OK;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

int64_t plait_model_width(const plait_model *model, plait_answer answer) {
    if (model == NULL) return 0;
    const pli_model_ops *ops = pli_model_ops_of(model);
    if (answer == PLAIT_ANSWER_CONTRIBUTIONS)
        return ops != NULL && ops->contributions != NULL ? ops->contributions_width(model) : 0;
    if (ops == NULL)
        return model->learner->width != NULL ? model->learner->width(model, answer) : 0;
    if (answer == PLAIT_ANSWER_LABEL) return 1;
    return answer == PLAIT_ANSWER_PROBABILITIES ? model->classes : 0;
}

/* The rows must have been read less the numbers that the model's columns were (data/schema/origins.h). */
static plait_status open_rows(const plait_model *model, const plait_data *data, pli_dataset **set_out,
                              plait_error *err) {
    PLI_TRY(pli_dataset_of_memory(data, 0, 1, set_out, err));
    if (pli_schema_same_origins(model->schema, pli_dataset_schema(*set_out))) return PLAIT_OK;
    pli_dataset_destroy(set_out);
    return pli_fail(err, PLAIT_EMISMATCH, "some columns of the model's data, or of these, are read less a constant, "
                                          "since they lie far from 0: read the rows with plait_model_read");
}

static plait_status answer_all(const plait_model *model, plait_answer answer, const pli_dataset *data, double *out,
                               plait_error *err) {
    const int64_t width = plait_model_width(model, answer);
    static const char *const what[] = { "labels", "probabilities", "transformed rows" };
    if (width == 0 || model->learner->predict == NULL)
        return pli_fail(err, PLAIT_EREFUSED, "model %s has no %s", model->name, what[answer]);
    for (int32_t b = 0; b < pli_dataset_own_blocks(data); b++) {
        const pli_block *block = pli_dataset_block(data, b);
        PLI_TRY(model->learner->predict(model, answer, (const plait_rows *)block, out, err));
        out += block->rows * width;
    }
    return PLAIT_OK;
}

plait_status plait_model_predict(const plait_model *model, const plait_data *data, int proba, double *scores,
                                 plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, model));
    PLI_TRY(PLI_GIVEN(error_out, data));
    PLI_TRY(PLI_GIVEN(error_out, scores));
    const pli_model_ops *ops = pli_model_ops_of(model);
    pli_dataset         *set = NULL;
    PLI_TRY(open_rows(model, data, &set, error_out));
    plait_status status = ops != NULL ? ops->predict(model, set, proba != 0, scores, error_out)
                                      : answer_all(model, proba != 0 ? PLAIT_ANSWER_PROBABILITIES : PLAIT_ANSWER_LABEL,
                                                   set, scores, error_out);
    pli_dataset_destroy(&set);
    return status;
}

plait_status plait_model_transform(const plait_model *model, const plait_data *data, double *out,
                                   plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, model));
    PLI_TRY(PLI_GIVEN(error_out, data));
    PLI_TRY(PLI_GIVEN(error_out, out));
    pli_dataset *set = NULL;
    PLI_TRY(open_rows(model, data, &set, error_out));
    plait_status status = answer_all(model, PLAIT_ANSWER_TRANSFORM, set, out, error_out);
    pli_dataset_destroy(&set);
    return status;
}

plait_status plait_model_contributions(const plait_model *model, const plait_data *data, double *out,
                                       plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, model));
    PLI_TRY(PLI_GIVEN(error_out, data));
    PLI_TRY(PLI_GIVEN(error_out, out));
    const pli_model_ops *ops = pli_model_ops_of(model);
    pli_dataset         *set = NULL;
    if (ops == NULL || ops->contributions == NULL)
        return pli_fail(error_out, PLAIT_EREFUSED, "model %s has no contributions of features", model->name);
    PLI_TRY(open_rows(model, data, &set, error_out));
    plait_status status = ops->contributions(model, set, out, error_out);
    pli_dataset_destroy(&set);
    return status;
}

/* --- how good it is ----------------------------------------------------------------------------------------------- */

plait_status pli_measured_begin(const plait_model *model, pli_measured *sums, plait_error *err) {
    const plait_learner *learner = model->learner;
    const int64_t        n = learner->measures != NULL ? learner->measures(model) : PLAIT_MEASURES;
    *sums = (pli_measured){ .n = n };
    sums->cell = pli_calloc((size_t)n + 1, sizeof *sums->cell);
    sums->sum = pli_calloc((size_t)n + 1, sizeof *sums->sum);
    if (sums->cell != NULL && sums->sum != NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld sums over rows", (long long)n);
}

void pli_measured_end(pli_measured *sums) {
    pli_free(sums->cell);
    pli_free(sums->sum);
    *sums = (pli_measured){ 0 };
}

void pli_measured_round(pli_measured *sums) { pli_cells_round(true, sums->n, sums->cell, sums->sum); }

typedef struct measuring {
    const plait_model      *model;
    const pli_block *const *block;
    int64_t                 n;
    double                 *sums;  /* [blocks, n] */
    plait_error            *error; /* [blocks]    */
} measuring;

static void measure_block(void *user, int64_t i, int32_t thread) {
    measuring *m = user;
    (void)thread;
    (void)m->model->learner->measure(m->model, (const plait_rows *)m->block[i], m->sums + i * m->n, &m->error[i]);
}

plait_status pli_model_measure(const plait_model *model, int32_t blocks, const pli_block *const *block, pli_pool *pool,
                               pli_measured *sums, plait_error *err) {
    measuring m = { .model = model, .block = block, .n = sums->n };
    m.sums = pli_calloc(((size_t)blocks + 1) * (size_t)(m.n + 1), sizeof *m.sums);
    m.error = pli_calloc((size_t)blocks + 1, sizeof *m.error);
    plait_status status = m.sums != NULL && m.error != NULL
                              ? PLAIT_OK
                              : pli_fail(err, PLAIT_ENOMEM, "no memory to measure %d blocks", (int)blocks);
    if (status == PLAIT_OK) pli_pool_for(pool, blocks, measure_block, &m);
    for (int32_t b = 0; status == PLAIT_OK && b < blocks; b++) {
        pli_cells_add(true, m.n, m.sums + b * m.n, sums->cell);
        status = m.error[b].code;
        if (status < 0 && err != NULL) *err = m.error[b];
    }
    pli_free(m.sums);
    pli_free(m.error);
    return status;
}

void pli_report_init(plait_report *report) {
    *report = (plait_report){ .objective = NAN, .train_loss = NAN, .progressive_loss = NAN, .test_loss = NAN,
                              .test_accuracy = NAN, .test_auc = NAN, .test_rmse = NAN, .test_mae = NAN,
                              .load_seconds = NAN, .train_seconds = NAN, .cpu_seconds = NAN,
                              .clocks_per_second = NAN, .idle_share = NAN, .compute_seconds = NAN, .wait_seconds = NAN,
                              .network_seconds = NAN, .validation_loss = NAN,
                              .updates_dropped = -1, .clocks_skipped = -1, .shards_moved = -1, .moved_bytes = -1,
                              .checkpoint = -1, .best_epoch = -1, .stopped_early = -1, .converged = -1, .gap = NAN };
}

/* Learners that report a "loss" by measure have no penalty, so their objective is that loss. */
bool pli_report_take(plait_report *report, const plait_figure *figure, bool test) {
    const struct {
        const char *name;
        double     *trained, *tested;
    } own[] = {
        { "loss", &report->train_loss, &report->test_loss }, { "accuracy", NULL, &report->test_accuracy },
        { "auc", NULL, &report->test_auc },                  { "rmse", NULL, &report->test_rmse },
        { "mae", NULL, &report->test_mae },                  { "objective", &report->objective, NULL },
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strcmp(figure->name, own[i].name) != 0) continue;
        double *to = test ? own[i].tested : own[i].trained;
        if (to != NULL) *to = figure->value;
        if (to == &report->train_loss) report->objective = figure->value;
        return true;
    }
    return false;
}

static void take_figures(const plait_learner *learner, const plait_model *model, const double *sums,
                         plait_report *report) {
    plait_figure  found[PLAIT_FIGURES];
    const int32_t n = learner->figures(model, sums, found);
    for (int32_t i = 0; i < n; i++)
        if (!pli_report_take(report, &found[i], true)) report->figures[report->n_figures++] = found[i];
}

static plait_status eval_values(const plait_model *model, const pli_dataset *data, plait_report *report,
                                plait_error *err) {
    const plait_learner *learner = model->learner;
    const int32_t        own = pli_dataset_own_blocks(data);
    pli_measured         measured = { 0 };
    if (learner->measure == NULL || learner->figures == NULL)
        return pli_fail(err, PLAIT_EREFUSED, "model %s has no figures: it measures nothing on rows", model->name);
    const pli_block **block = pli_array((size_t)own + 1, sizeof *block);
    if (block == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a list of blocks");
    for (int32_t b = 0; b < own; b++) {
        block[b] = pli_dataset_block(data, b);
        report->rows += block[b]->rows;
    }
    plait_status status = pli_measured_begin(model, &measured, err);
    if (status >= 0) status = pli_model_measure(model, own, block, NULL, &measured, err);
    pli_free(block);
    if (status >= 0) {
        pli_measured_round(&measured);
        take_figures(learner, model, measured.sum, report);
    }
    pli_measured_end(&measured);
    return status;
}

plait_status plait_model_eval(const plait_model *model, const plait_data *data, plait_report *report_out,
                              plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, model));
    PLI_TRY(PLI_GIVEN(error_out, data));
    PLI_TRY(PLI_GIVEN(error_out, report_out));
    const pli_model_ops *ops = pli_model_ops_of(model);
    pli_dataset         *set = NULL;
    plait_report         report;
    pli_report_init(&report);
    memcpy(report.model, model->name, sizeof report.model);
    report.features = model->features;
    report.classes = model->classes;
    PLI_TRY(open_rows(model, data, &set, error_out));
    plait_status status = model->learner->labels != PLAIT_LABELS_NONE
                              ? pli_label_need(pli_dataset_schema(set), model->name, error_out)
                              : PLAIT_OK;
    if (status >= 0)
        status = ops != NULL ? ops->eval(model, set, &report, error_out) : eval_values(model, set, &report, error_out);
    pli_dataset_destroy(&set);
    report.n_options = plait_model_options(model, report.options);
    if (status >= 0) *report_out = report;
    return status < 0 ? status : PLAIT_OK;
}

plait_status pli_model_read_bytes(const plait_model *model, const plait_data_opts *opts, const char *name,
                                  const char *text, size_t bytes, plait_data **data_out, plait_error *err) {
    plait_data_opts own;
    PLI_TRY(pli_data_opts_take(opts, &own, err));
    if (model->learner->more != NULL && model->learner->more->recommend != NULL) own.pairs = 1;
    return pli_data_read_bytes(&own, model->schema, name, text, bytes, data_out, err);
}

plait_status plait_model_read(const plait_model *model, const plait_data_opts *opts, plait_data **data_out,
                              plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, model));
    PLI_TRY(PLI_GIVEN(error_out, opts));
    PLI_TRY(PLI_GIVEN(error_out, data_out));
    plait_data_opts own;
    PLI_TRY(pli_data_opts_take(opts, &own, error_out));
    if (model->learner->more != NULL && model->learner->more->recommend != NULL) own.pairs = 1;
    return pli_data_read(&own, model->schema, data_out, error_out);
}
