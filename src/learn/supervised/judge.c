/* Judges rows, block by block. See judge.h. */
#include "learn/supervised/judge.h"

#include <math.h>
#include <string.h>

typedef struct judge {
    const pli_goal    *goal;
    const pli_scoring *scoring;
    void              *scorer;
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
    double       unknown; /* a label that the model does not know; NaN: the row has none */
    int64_t      row;     /* the row that has it */
    bool         failed;
} judge_block;

static bool judge_row(void *user, const pli_block *block, int64_t row, double label, const double *score,
                      double *scratch) {
    judge_block *b = user;
    const judge *j = b->judge;
    if (b->score != NULL) b->score[row] = NAN;
    if (j->want != NULL && !j->want(j->user, block->first_row + row)) return true;
    double weight = block->weight != NULL ? (double)block->weight[row] : 1.0;
    if (!pli_goal_judge(j->goal, score, label, weight, scratch, &b->sums)) {
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

/* Rankings: the sums are those of the block's queries, which are whole. */
static plait_status judge_queries(const judge *j, const pli_block *block, const double *score, pli_sums *sums,
                                  plait_error *err) {
    *sums = (pli_sums){ 0 };
    for (int64_t r = 0; r < block->rows; r++)
        if (block->query == NULL || block->query[r] == 0)
            return pli_fail(err, PLAIT_EFORMAT, "row %lld names no query (qid:N behind the label), so it cannot be "
                            "judged by loss %s", (long long)(block->first_row + r + 1), j->goal->loss->model);
    for (int64_t from = 0, end; from < block->rows; from = end) {
        for (end = from + 1; end < block->rows && block->query[end] == block->query[from];) end++;
        pli_goal_judge_query(j->goal, end - from, score + from, block->label + from, sums);
    }
    return PLAIT_OK;
}

static void judge_one(void *user, int64_t own, int32_t thread) {
    judge           *j = user;
    const pli_block *block = j->block[own];
    judge_block      b = { .judge = j, .score = j->score != NULL ? j->score + j->first[own] : NULL };
    (void)thread;
    const pli_scoring *s = j->scoring;
    if (s->ops->block(s->form, s->solution, j->scorer, block, judge_row, &b, &j->error[own]) == PLAIT_OK && b.failed)
        tell_unknown(j, block->first_row + b.row + 1, b.unknown, &j->error[own]);
    else if (!b.failed && j->goal->loss->query != NULL && j->error[own].code >= 0)
        (void)judge_queries(j, block, b.score, &b.sums, &j->error[own]);
    j->sums[own] = b.sums;
}

static plait_status rank_rows(const judge *j, pli_ranking *ranking, plait_error *err) {
    for (int32_t own = 0; own < j->blocks; own++) {
        const pli_block *block = j->block[own];
        for (int64_t r = 0; r < block->rows; r++) {
            double y, ignored, score = j->score[j->first[own] + r];
            if (isnan(score)) continue;
            pli_goal_target(j->goal, block->label[r], &y, &ignored);
            PLI_TRY(
                pli_ranking_add(ranking, score, y > 0, block->weight != NULL ? (double)block->weight[r] : 1.0, err));
        }
    }
    return PLAIT_OK;
}

plait_status pli_judge_blocks(const pli_goal *goal, const pli_scoring *scoring, const pli_dataset *data, int32_t blocks,
                              const pli_block **block, pli_pool *pool, bool (*want)(void *user, int64_t row),
                              void *user, pli_total *total_out, pli_ranking *ranking, plait_error *err) {
    const bool rank = ranking != NULL && goal->loss->target == PLI_TWO_CLASSES && scoring->labels == 1;
    int64_t    rows = 0;
    judge      j = { .goal = goal, .scoring = scoring, .data = data, .block = block, .blocks = blocks, .want = want,
                     .user = user };
    for (int32_t b = 0; b < blocks; b++) rows += block[b]->rows;
    PLI_TRY(scoring->ops->open(scoring->form, scoring->solution, &j.scorer, err));
    plait_status status = PLAIT_ENOMEM;
    j.sums = pli_calloc((size_t)blocks, sizeof *j.sums);
    j.error = pli_calloc((size_t)blocks, sizeof *j.error);
    j.first = pli_calloc((size_t)blocks, sizeof *j.first);
    const bool keep = rank || goal->loss->query != NULL;
    j.score = keep ? pli_array((size_t)rows, sizeof *j.score) : NULL;
    if (j.sums == NULL || j.error == NULL || j.first == NULL || (keep && j.score == NULL)) {
        pli_fail(err, status, "no memory to judge %lld rows", (long long)rows);
        goto out;
    }
    for (int32_t b = 1; b < blocks; b++) j.first[b] = j.first[b - 1] + block[b - 1]->rows;
    pli_pool_for(scoring->ops->one_by_one ? NULL : pool, blocks, judge_one, &j);
    status = PLAIT_OK;
    *total_out = (pli_total){ 0 };
    for (int32_t b = 0; status == PLAIT_OK && b < blocks; b++) {
        pli_total_add(total_out, &j.sums[b]);
        status = j.error[b].code;
        if (status < 0 && err != NULL) *err = j.error[b];
    }
    if (status == PLAIT_OK && rank) status = rank_rows(&j, ranking, err);
out:
    scoring->ops->close(j.scorer);
    pli_free(j.sums);
    pli_free(j.error);
    pli_free(j.first);
    pli_free(j.score);
    return status;
}

plait_status pli_judge(const pli_goal *goal, const pli_scoring *scoring, const pli_dataset *data, pli_pool *pool,
                       bool (*want)(void *user, int64_t row), void *user, pli_total *total_out, pli_ranking *ranking,
                       plait_error *err) {
    const int32_t     own = pli_dataset_own_blocks(data);
    const pli_block **block = pli_array((size_t)own, sizeof *block);
    if (block == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a list of blocks");
    for (int32_t b = 0; b < own; b++) block[b] = pli_dataset_block(data, b);
    plait_status status = pli_judge_blocks(goal, scoring, data, own, block, pool, want, user, total_out, ranking, err);
    pli_free(block);
    return status;
}

void pli_judge_report(plait_report *report, const pli_goal *goal, const pli_sums *sums, double auc) {
    if (sums->rows == 0) return;
    report->test_loss = pli_sums_loss(sums);
    if (goal->classes > 0) {
        report->test_accuracy = sums->right / sums->weight;
        report->test_auc = auc;
    } else if (goal->loss->query != NULL) {
        report->figures[report->n_figures++] = (plait_figure){ "test_ndcg10", sums->right / sums->weight };
    } else {
        report->test_rmse = sqrt(sums->square / sums->weight);
        report->test_mae = sums->absolute / sums->weight;
    }
}
