/* Using a model: scores of rows, and how good they are. */
#include "graph/session.h"
#include "learn/model/model.h"

#include <math.h>
#include <string.h>

#include "tensor/tensor.h"

/* --- one block --------------------------------------------------------------------------------------- */

/* Row numbers of a block's entries in the solution, UINT32_MAX where it has none. */
static plait_status find_rows(const pli_solution *solution, const pli_keymap *map, const pli_block *block,
                              uint32_t **local_out, plait_error *err) {
    uint32_t *local = pli_array((size_t)block->entries, sizeof *local);
    if (local == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory to look up %lld entries", (long long)block->entries);
    for (int64_t e = 0; e < block->entries; e++) {
        uint64_t key = block->col != NULL      ? block->col[e]
                       : block->packed != NULL ? pli_packed_at(block->packed, e)
                                               : block->key[e];
        int64_t  row = map != NULL ? pli_keymap_find(map, key) : key < (uint64_t)solution->rows ? (int64_t)key : -1;
        local[e] = row >= 0 ? (uint32_t)row : UINT32_MAX;
    }
    *local_out = local;
    return PLAIT_OK;
}

/* Called for each row, of a text's windows for each of their labels; false ends the pass. */
typedef bool row_fn(void *user, const pli_block *block, int64_t row, double label, const double *score,
                    double *scratch);

/* What a pass over blocks scores by. */
typedef struct scorer {
    const pli_linear   *linear;
    const pli_solution *solution;
    pli_keymap          map;     /* of the solution's keys    */
    plait_session      *session; /* of a net                  */
} scorer;

typedef struct net_pass {
    const pli_block *block;
    row_fn          *fn;
    void            *user;
    double          *scratch;
} net_pass;

static bool net_row(void *user, int64_t row, double label, const double *score) {
    const net_pass *pass = user;
    return pass->fn(pass->user, pass->block, row, label, score, pass->scratch);
}

static plait_status score_by_net(const scorer *s, const pli_block *block, row_fn *fn, void *user, plait_error *err) {
    net_pass pass = {
        .block = block, .fn = fn, .user = user, .scratch = pli_array((size_t)s->linear->columns, 2 * sizeof(double))
    };
    if (pass.scratch == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for scores");
    plait_status status = pli_net_score(s->linear->net, s->session, s->solution->net, block, net_row, &pass, err);
    pli_free(pass.scratch);
    return status;
}

static plait_status score_block(const scorer *s, const pli_block *block, row_fn *fn, void *user, plait_error *err) {
    const pli_linear   *linear = s->linear;
    const pli_solution *solution = s->solution;
    const pli_keymap   *map = solution->key != NULL ? &s->map : NULL;
    if (linear->net != NULL) return score_by_net(s, block, fn, user, err);
    pli_weights  weights = { .f64 = solution->weight, .bias = solution->bias };
    double      *score = pli_array((size_t)linear->columns, 3 * sizeof *score);
    uint32_t    *local = NULL;
    plait_status status = score != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for scores");
    if (status == PLAIT_OK && (map != NULL || block->col == NULL)) /* of a block at a time, where columns are packed */
        status = find_rows(solution, map, block, &local, err);
    const uint32_t *index = local != NULL ? local : block->col;
    for (int64_t r = 0; status == PLAIT_OK && r < block->rows; r++) {
        int64_t at = block->row_start[r], n = block->row_start[r + 1] - at;
        pli_linear_score(linear, &weights, solution->rows, n, index + at,
                         block->value != NULL ? block->value + at : NULL, score);
        if (!fn(user, block, r, block->label[r], score, score + linear->columns)) break;
    }
    pli_free(score);
    pli_free(local);
    return status;
}

static void scorer_close(scorer *s) {
    pli_keymap_destroy(&s->map);
    plait_session_destroy(&s->session);
}

static plait_status scorer_open(scorer *s, const pli_linear *linear, const pli_solution *solution, plait_error *err) {
    *s = (scorer){ .linear = linear, .solution = solution };
    pli_keymap_init(&s->map);
    if (linear->net != NULL)
        return pli_session_create(linear->net->calm != NULL ? linear->net->calm : linear->net->graph, NULL, NULL,
                                  &s->session, err);
    if (solution->key == NULL) return PLAIT_OK;
    bool ok = pli_keymap_reserve(&s->map, solution->rows);
    for (int64_t j = 0; ok && j < solution->rows; j++) ok = pli_keymap_add(&s->map, solution->key[j]) >= 0;
    if (ok) return PLAIT_OK;
    pli_keymap_destroy(&s->map);
    return pli_fail(err, PLAIT_ENOMEM, "no memory to look up %lld keys", (long long)solution->rows);
}

/* --- judging ----------------------------------------------------------------------------------------- */

typedef struct judge {
    const pli_linear  *linear;
    const scorer      *scorer;
    const pli_dataset *data;
    const pli_block  **block; /* [own blocks] */
    int32_t            blocks;
    bool (*want)(void *user, int64_t row);
    void        *user;
    pli_sums    *sums;  /* [own blocks]                                       */
    plait_error *error; /* [own blocks]                                       */
    double      *score; /* [own rows], NaN where not wanted; NULL: not needed */
    int64_t     *first; /* [own blocks] of score: first row                   */
} judge;

typedef struct judge_block {
    const judge *judge;
    double      *score; /* of the block's rows, or NULL */
    pli_sums     sums;
    double       unknown; /* a label that the model does not know, NaN: none given */
    int64_t      row;     /* of it */
    bool         failed;
} judge_block;

static bool judge_row(void *user, const pli_block *block, int64_t row, double label, const double *score,
                      double *scratch) {
    judge_block *b = user;
    const judge *j = b->judge;
    if (b->score != NULL) b->score[row] = NAN;
    if (j->want != NULL && !j->want(j->user, block->first_row + row)) return true;
    double weight = block->weight != NULL ? (double)block->weight[row] : 1.0;
    if (!pli_linear_judge(j->linear, score, label, weight, scratch, &b->sums)) {
        b->unknown = label;
        b->row = row;
        b->failed = true;
        return false;
    }
    if (b->score != NULL) b->score[row] = score[0];
    return true;
}

static void tell_unknown(const judge *j, int64_t row, double label, plait_error *err) {
    if (pli_schema_symbols(pli_dataset_schema(j->data)) > 0)
        pli_fail(err, PLAIT_EFORMAT, PLI_UNKNOWN_CHARACTER, (long long)row);
    else if (isnan(label)) pli_fail(err, PLAIT_EFORMAT, PLI_UNKNOWN_LABEL, (long long)row);
    else pli_fail(err, PLAIT_EFORMAT, "row %lld: the label %g is not among the model's labels", (long long)row, label);
}

static void judge_one(void *user, int64_t own, int32_t thread) {
    judge           *j = user;
    const pli_block *block = j->block[own];
    judge_block      b = { .judge = j, .score = j->score != NULL ? j->score + j->first[own] : NULL };
    (void)thread;
    if (score_block(j->scorer, block, judge_row, &b, &j->error[own]) == PLAIT_OK && b.failed)
        tell_unknown(j, block->first_row + b.row + 1, b.unknown, &j->error[own]);
    j->sums[own] = b.sums;
}

static plait_status rank_rows(const judge *j, pli_ranking *ranking, plait_error *err) {
    for (int32_t own = 0; own < j->blocks; own++) {
        const pli_block *block = j->block[own];
        for (int64_t r = 0; r < block->rows; r++) {
            double y, ignored, score = j->score[j->first[own] + r];
            if (isnan(score)) continue;
            pli_linear_target(j->linear, block->label[r], &y, &ignored);
            PLI_TRY(
                pli_ranking_add(ranking, score, y > 0, block->weight != NULL ? (double)block->weight[r] : 1.0, err));
        }
    }
    return PLAIT_OK;
}

plait_status pli_model_judge_blocks(const pli_linear *linear, const pli_solution *solution, const pli_dataset *data,
                                    int32_t blocks, const pli_block **block, pli_pool *pool,
                                    bool (*want)(void *user, int64_t row), void *user, pli_total *total_out,
                                    pli_ranking *ranking, plait_error *err) {
    scorer  by;
    bool    one_label = linear->net == NULL || linear->net->row_labels == 1;
    bool    rank = ranking != NULL && linear->loss->target == PLI_TWO_CLASSES && one_label;
    int64_t rows = 0;
    judge   j = { .linear = linear, .scorer = &by, .data = data, .block = block, .blocks = blocks, .want = want,
                  .user = user };
    for (int32_t b = 0; b < blocks; b++) rows += block[b]->rows;
    PLI_TRY(scorer_open(&by, linear, solution, err));
    plait_status status = PLAIT_ENOMEM;
    j.sums = pli_calloc((size_t)blocks, sizeof *j.sums);
    j.error = pli_calloc((size_t)blocks, sizeof *j.error);
    j.first = pli_calloc((size_t)blocks, sizeof *j.first);
    j.score = rank ? pli_array((size_t)rows, sizeof *j.score) : NULL;
    if (j.sums == NULL || j.error == NULL || j.first == NULL || (rank && j.score == NULL)) {
        pli_fail(err, status, "no memory to judge %lld rows", (long long)rows);
        goto out;
    }
    for (int32_t b = 1; b < blocks; b++) j.first[b] = j.first[b - 1] + block[b - 1]->rows;
    pli_pool_for(pool, blocks, judge_one, &j);
    status = PLAIT_OK;
    *total_out = (pli_total){ 0 };
    for (int32_t b = 0; status == PLAIT_OK && b < blocks; b++) {
        pli_total_add(total_out, &j.sums[b]);
        status = j.error[b].code;
        if (status < 0 && err != NULL) *err = j.error[b];
    }
    if (status == PLAIT_OK && rank) status = rank_rows(&j, ranking, err);
out:
    scorer_close(&by);
    pli_free(j.sums);
    pli_free(j.error);
    pli_free(j.first);
    pli_free(j.score);
    return status;
}

plait_status pli_model_judge(const pli_linear *linear, const pli_solution *solution, const pli_dataset *data,
                             pli_pool *pool, bool (*want)(void *user, int64_t row), void *user, pli_total *total_out,
                             pli_ranking *ranking, plait_error *err) {
    const int32_t     own = pli_dataset_own_blocks(data);
    const pli_block **block = pli_array((size_t)own, sizeof *block);
    if (block == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a list of blocks");
    for (int32_t b = 0; b < own; b++) block[b] = pli_dataset_block(data, b);
    plait_status status =
        pli_model_judge_blocks(linear, solution, data, own, block, pool, want, user, total_out, ranking, err);
    pli_free(block);
    return status;
}

/* --- public ------------------------------------------------------------------------------------------ */

typedef struct predict {
    const plait_model *model;
    bool               proba;
    double            *scores; /* the next row's: blocks come in their order */
    int64_t            width;
} predict;

static bool predict_row(void *user, const pli_block *block, int64_t row, double label, const double *score,
                        double *scratch) {
    predict *p = user;
    double  *out = p->scores;
    (void)block;
    (void)row;
    (void)label;
    (void)scratch;
    p->scores += p->width;
    if (p->proba && p->model->linear.classes > 0)
        p->model->linear.loss->probability(p->model->linear.columns, score, out);
    else if (p->model->linear.classes > 0) out[0] = (double)pli_linear_class(&p->model->linear, score);
    else out[0] = score[0];
    return true;
}

plait_status plait_model_predict(const plait_model *model, const plait_data *data, int proba, double *scores,
                                 plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, model));
    PLI_TRY(PLI_GIVEN(error_out, data));
    PLI_TRY(PLI_GIVEN(error_out, scores));
    int64_t classes = model->linear.classes;
    if (proba && classes > 0 && model->linear.loss->probability == NULL)
        return pli_fail(error_out, PLAIT_EREFUSED, "%s has no probabilities; a logistic model has", model->name);
    pli_dataset *set = NULL;
    scorer       by;
    PLI_TRY(pli_dataset_of_memory(data, 0, 1, &set, error_out));
    plait_status status = scorer_open(&by, &model->linear, &model->solution, error_out);
    predict      p = { model, proba != 0, scores, proba && classes > 0 ? classes : 1 };
    for (int32_t b = 0; status == PLAIT_OK && b < pli_dataset_own_blocks(set); b++)
        status = score_block(&by, pli_dataset_block(set, b), predict_row, &p, error_out);
    scorer_close(&by);
    pli_dataset_destroy(&set);
    return status;
}

void pli_report_init(plait_report *report) {
    *report = (plait_report){ .objective = NAN, .train_loss = NAN, .progressive_loss = NAN, .test_loss = NAN,
                              .test_accuracy = NAN, .test_auc = NAN, .test_rmse = NAN, .test_mae = NAN,
                              .load_seconds = NAN, .train_seconds = NAN, .cpu_seconds = NAN,
                              .clocks_per_second = NAN, .idle_share = NAN, .compute_seconds = NAN, .wait_seconds = NAN,
                              .network_seconds = NAN, .validation_loss = NAN,
                              .updates_dropped = -1, .clocks_skipped = -1, .checkpoint = -1, .best_epoch = -1,
                              .stopped_early = -1, .converged = -1 };
}

void pli_report_test(plait_report *report, const pli_linear *linear, const pli_sums *sums, double auc) {
    if (sums->rows == 0) return;
    report->test_loss = pli_sums_loss(sums);
    if (linear->classes > 0) {
        report->test_accuracy = sums->right / sums->weight;
        report->test_auc = auc;
    } else {
        report->test_rmse = sqrt(sums->square / sums->weight);
        report->test_mae = sums->absolute / sums->weight;
    }
}

plait_status plait_model_eval(const plait_model *model, const plait_data *data, plait_report *report_out,
                              plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, model));
    PLI_TRY(PLI_GIVEN(error_out, data));
    PLI_TRY(PLI_GIVEN(error_out, report_out));
    pli_dataset *set = NULL;
    pli_total    total = { 0 };
    pli_ranking  ranking = { 0 };
    double       auc = NAN;
    PLI_TRY(pli_dataset_of_memory(data, 0, 1, &set, error_out));
    plait_status status = pli_label_need(pli_dataset_schema(set), model->name, error_out);
    if (status == PLAIT_OK)
        status = pli_model_judge(&model->linear, &model->solution, set, NULL, NULL, NULL, &total, &ranking, error_out);
    pli_sums sums = pli_total_sums(&total);
    if (status == PLAIT_OK) status = pli_sums_check(&sums, "the data", error_out);
    if (status == PLAIT_OK && ranking.n > 0) status = pli_ranking_auc(&ranking, NULL, &auc, error_out);
    if (status == PLAIT_OK) {
        pli_report_init(report_out);
        pli_report_test(report_out, &model->linear, &sums, auc);
        memcpy(report_out->model, model->name, sizeof report_out->model);
        report_out->rows = (int64_t)sums.rows;
        report_out->features = model->linear.features;
        report_out->classes = model->linear.classes;
        status = pli_label_describe(set, model->linear.classes, report_out->label, error_out);
    }
    pli_ranking_free(&ranking);
    pli_dataset_destroy(&set);
    return status;
}

plait_status plait_model_read(const plait_model *model, const plait_data_opts *opts, plait_data **data_out,
                              plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, model));
    PLI_TRY(PLI_GIVEN(error_out, opts));
    PLI_TRY(PLI_GIVEN(error_out, data_out));
    return pli_data_read(opts, model->schema, data_out, error_out);
}
