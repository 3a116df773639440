/* learn/supervised/goal.h - the goal that scores of labelled rows are judged by: a loss, and how a label becomes the
 * target of the loss. Each model computes scores in its own way. */
#ifndef PLI_LEARN_GOAL_H
#define PLI_LEARN_GOAL_H

#include "learn/loss/loss.h"
#include "learn/loss/metrics.h"

/* The arrays are borrowed. */
typedef struct pli_goal {
    const pli_loss *loss;
    double          parameter;    /* of the loss                            */
    int64_t         columns;      /* K: scores of one label                 */
    int64_t         classes;      /* 0: regression                          */
    const double   *label;        /* [classes] label values, increasing     */
    const double   *class_weight; /* [classes], or NULL: all 1              */
} pli_goal;

/** The target of a label, and its class's weight. false: the model knows no such label, or it is below 0 and the loss
 *  is of counts. */
bool pli_goal_target(const pli_goal *goal, double label, double *y_out, double *class_weight_out);

/** Adds loss, hits and errors of a row with these scores to sums. slope [K] is scratch. false: unknown label. */
bool pli_goal_judge(const pli_goal *goal, const double *score, double label, double weight, double *slope,
                    pli_sums *sums);

/** A loss of rankings: adds a query's loss, and as `right` its NDCG@10. y [n]: targets. */
void pli_goal_judge_query(const pli_goal *goal, int64_t n, const double *score, const double *y, pli_sums *sums);

/** Adds a row's loss to sums, and of a smoothed loss its excess (sums->absolute). Writes the slope [K]; it and the
 *  sums' other fields are the caller's to weight. */
static inline void pli_goal_cost(const pli_goal *goal, int64_t k, const double *score, double y, double weight,
                                 double *slope, pli_sums *sums) {
    sums->loss += weight * goal->loss->at(goal->parameter, k, score, y, slope);
    if (goal->loss->excess != NULL) sums->absolute += weight * goal->loss->excess(goal->parameter, k, score, y);
}

/** The cost of an error of one spread of the labels, up to a factor of 2: the square of the spread by squared loss;
 *  delta times the spread by Huber's, beyond delta; the spread by quantiles. */
double pli_goal_unit(const pli_goal *goal, double spread);

/** The number that a score means. */
double pli_goal_number(const pli_goal *goal, double score);

/** The class that the scores mean. */
int64_t pli_goal_class(const pli_goal *goal, const double *score);

#endif
