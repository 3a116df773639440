/* learn/supervised/goal.h - what scores of labelled rows are held against: a loss, and how a label becomes its target.
 * Where the scores come from is a model's own. */
#ifndef PLI_LEARN_GOAL_H
#define PLI_LEARN_GOAL_H

#include "learn/loss/loss.h"
#include "learn/loss/metrics.h"

/* Borrowed arrays. */
typedef struct pli_goal {
    const pli_loss *loss;
    double          parameter;    /* of the loss                            */
    int64_t         columns;      /* K: scores a label                      */
    int64_t         classes;      /* 0: regression                          */
    const double   *label;        /* [classes] label values, increasing     */
    const double   *class_weight; /* [classes], or NULL: all 1              */
} pli_goal;

/** The target of a label, and its class's weight. false: the model knows no such label. */
bool pli_goal_target(const pli_goal *goal, double label, double *y_out, double *class_weight_out);

/** Adds loss, hits and errors of a row with these scores to sums. slope [K] is scratch. false: unknown label. */
bool pli_goal_judge(const pli_goal *goal, const double *score, double label, double weight, double *slope,
                    pli_sums *sums);

/** The class that the scores mean. */
int64_t pli_goal_class(const pli_goal *goal, const double *score);

#endif
