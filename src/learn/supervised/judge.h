/* learn/supervised/judge.h - judges a solution on rows: scores each row, and compares the scores with its label. */
#ifndef PLI_LEARN_JUDGE_H
#define PLI_LEARN_JUDGE_H

#include <plait/model.h>

#include "data/data.h"
#include "learn/supervised/goal.h"
#include "learn/supervised/solution.h"

/* Errors for a row that cannot be judged; the argument is its number. */
#define PLI_UNKNOWN_LABEL "row %lld has no label, or a label that the model does not know"
#define PLI_UNKNOWN_CHARACTER                                                                                          \
    "row %lld has a character that the model does not know: it cannot be predicted; leave such out, or train on text " \
    "that has it"

/* Called for each row, and for each label of a text's window; false ends the pass. */
typedef bool pli_score_fn(void *user, const pli_block *block, int64_t row, double label, const double *score,
                          double *scratch);

/* How a model scores rows by a solution: the model's part of judging. */
typedef struct pli_scoring_ops {
    /** Makes memory for a pass; *scorer_out may stay NULL. */
    plait_status (*open)(const void *form, const pli_solution *solution, void **scorer_out, plait_error *err);
    void (*close)(void *scorer);
    /** Calls `each` for the block's rows in their order, with scores [K] and scratch [2K]. Any thread, several at
     *  once. */
    plait_status (*block)(const void *form, const pli_solution *solution, void *scorer, const pli_block *block,
                          pli_score_fn *each, void *user, plait_error *err);
    bool one_by_one; /* blocks are scored one after the other, since other ranks help with each */
} pli_scoring_ops;

typedef struct pli_scoring {
    const pli_scoring_ops *ops;
    const void            *form;   /* the model's own */
    const pli_solution    *solution;
    int64_t                labels; /* so many labels of a row have scores */
} pli_scoring;

/** Adds up losses and hits over blocks [blocks] of data. want: says which rows to take; NULL: all. ranking: receives
 *  the scores of two classes; may be NULL. Errors: EFORMAT for a label that the model does not know. */
plait_status pli_judge_blocks(const pli_goal *goal, const pli_scoring *scoring, const pli_dataset *data, int32_t blocks,
                              const pli_block **block, pli_pool *pool, bool (*want)(void *user, int64_t row),
                              void *user, pli_total *total_out, pli_ranking *ranking, plait_error *err);
/** The same over the own blocks of data. */
plait_status pli_judge(const pli_goal *goal, const pli_scoring *scoring, const pli_dataset *data, pli_pool *pool,
                       bool (*want)(void *user, int64_t row), void *user, pli_total *total_out, pli_ranking *ranking,
                       plait_error *err);

/** Fills the test figures of a report from sums over all rows. */
void pli_judge_report(plait_report *report, const pli_goal *goal, const pli_sums *sums, double auc);

#endif
