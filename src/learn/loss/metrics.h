/* learn/loss/metrics.h - how good scores are. Sums are taken over the rows of a block; blocks are added exactly, so a
 * figure does not depend on who had which. The area under the ROC curve needs all scores in one place. */
#ifndef PLI_LEARN_METRICS_H
#define PLI_LEARN_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include <plait/comm.h>

/* What a pass over rows adds up. Each field but rows is weighted by the row's weight. It is a plain array of doubles,
 * so that it can be summed over workers at once. */
typedef struct pli_sums {
    double loss, weight, right, square, absolute; /* right: rows whose class was right; square, absolute: errors. In
                                                            training with a smoothed loss, absolute: its excess */
    double rows;
} pli_sums;

void pli_sums_add(pli_sums *sums, const pli_sums *other);

/* Exact sums of many parts (blocks, workers): they depend neither on the order of the parts nor on who had which. All
 * zeros: sums of nothing. */
enum { PLI_SUMS = 6 };
typedef struct pli_total {
    uint64_t cell[PLI_SUMS][4]; /* tensor/exact_cells.h */
} pli_total;
void pli_total_add(pli_total *total, const pli_sums *part);
void pli_total_merge(pli_total *total, const pli_total *other);
pli_sums pli_total_sums(const pli_total *total);

/** Adds the totals of all workers, and rounds; every worker gets the sums. Collective over the workers. */
plait_status pli_total_agree(plait_comm *comm, const pli_total *total, pli_sums *sums_out);

/** Adds the sums of all workers; every worker gets the total. Collective over the workers. */
plait_status pli_sums_agree(plait_comm *comm, pli_sums *sums);

/** The weighted mean of the losses; NaN if nothing has weight. */
double pli_sums_loss(const pli_sums *sums);
/** EFORMAT if there are rows, but none with a weight above 0. what: "the test set". */
plait_status pli_sums_check(const pli_sums *sums, const char *what, plait_error *err);

/** The area under the ROC curve, exactly, by sorting: the probability that a random positive row scores above a random
 *  negative one; ties count one half (Fawcett, "An introduction to ROC analysis", 2006). positive [n] is 0 or 1, weight
 *  [n] or NULL. *auc_out: NaN if a side is empty. Errors: ENOMEM. */
plait_status pli_auc(int64_t n, const double *score, const uint8_t *positive, const float *weight, double *auc_out,
                     plait_error *err);

/* Scores of two classes, kept for the area under the curve. */
typedef struct pli_ranking {
    double  *score;
    float   *weight;
    uint8_t *positive;
    int64_t  n, score_capacity, weight_capacity, positive_capacity;
} pli_ranking;
plait_status pli_ranking_add(pli_ranking *ranking, double score, bool positive, double weight, plait_error *err);
void         pli_ranking_free(pli_ranking *ranking);

/** pli_auc over the rows of all workers. Collective over the workers; comm NULL: over the rows of this one alone. */
plait_status pli_ranking_auc(const pli_ranking *ranking, plait_comm *comm, double *auc_out, plait_error *err);

#endif
