/* Labels and scores. See goal.h. */
#include "learn/supervised/goal.h"

#include <math.h>

static int64_t class_of(const pli_goal *goal, double label) {
    int64_t low = 0, high = goal->classes - 1;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (goal->label[middle] < label) low = middle + 1;
        else high = middle;
    }
    return goal->label[low] == label ? low : -1;
}

bool pli_goal_target(const pli_goal *goal, double label, double *y_out, double *class_weight_out) {
    *class_weight_out = 1;
    *y_out = label;
    if (goal->loss->query != NULL) return label >= 0 && label <= PLI_QUERY_LABEL_MOST && label == floor(label);
    if (goal->classes == 0) return isfinite(label) && !(goal->loss->log_mean && label < 0);
    int64_t k = class_of(goal, label);
    if (k < 0) return false;
    *y_out = goal->loss->target == PLI_CLASSES ? (double)k : k == 1 ? 1.0 : -1.0;
    if (goal->class_weight != NULL) *class_weight_out = goal->class_weight[k];
    return true;
}

double pli_goal_unit(const pli_goal *goal, double spread) {
    if (goal->loss == &pli_loss_quantile) return spread;
    return spread * (goal->loss == &pli_loss_huber ? fmin(goal->parameter, spread) : spread);
}

double pli_goal_number(const pli_goal *goal, double score) { return goal->loss->log_mean ? exp(score) : score; }

int64_t pli_goal_class(const pli_goal *goal, const double *score) {
    if (goal->columns == 1) return score[0] > 0;
    int64_t best = 0;
    for (int64_t c = 1; c < goal->columns; c++)
        if (score[c] > score[best]) best = c;
    return best;
}

void pli_goal_judge_query(const pli_goal *goal, int64_t n, const double *score, const double *y, pli_sums *sums) {
    double ndcg = 0;
    sums->loss += goal->loss->query(n, score, y, NULL, NULL, &ndcg);
    sums->right += ndcg;
    sums->weight++;
    sums->rows += (double)n;
}

bool pli_goal_judge(const pli_goal *goal, const double *score, double label, double weight, double *slope,
                      pli_sums *sums) {
    double y, class_weight;
    if (!pli_goal_target(goal, label, &y, &class_weight)) return false;
    weight *= class_weight;
    sums->loss += weight * goal->loss->at(goal->parameter, goal->columns, score, y, slope);
    sums->weight += weight;
    sums->rows++;
    if (goal->classes == 0) {
        const double error = pli_goal_number(goal, score[0]) - y;
        sums->square += weight * error * error;
        sums->absolute += weight * fabs(error);
    } else {
        double hit = (double)pli_goal_class(goal, score);
        sums->right += hit == (goal->loss->target == PLI_CLASSES ? y : y > 0) ? weight : 0;
    }
    return true;
}
