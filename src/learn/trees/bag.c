/* Bags: which rows a tree of a forest sees, and how often; and what the trees say of rows that they have not seen.
 *
 * A bootstrap sample of n rows has each row a binomial number of times, nearly Poisson of mean 1. So each row draws its
 * own number, by the seed, the round and its place in the data: no worker needs to know the others' rows, and the
 * sample is the same for any number of workers (Oza and Russell, "Online Bagging and Boosting", AISTATS 2001).
 *
 * A tree of a forest is fitted to the labels themselves by squared loss. The label of a class is 1 for its rows and 0
 * for the others. With two classes, the splits are those of Gini's impurity. With K > 2, a round has a tree for each,
 * on the same bag. A leaf's value is the share of the class among its rows, so the mean over trees is a probability
 * (Breiman, "Random Forests", Machine Learning 45, 2001; Malley et al., "Probability Machines", Methods of Information
 * in Medicine 51, 2012). Scores are its logarithms, as losses take them.
 *
 * A row is left out by about a third of the trees. Their mean for it judges the forest without other data
 * (out-of-bag). */
#include <math.h>
#include <string.h>

#include "learn/solve/inherit.h"
#include "learn/trees/trees.h"

int32_t pli_bag_draw(uint64_t seed, int64_t round, int64_t row, double mean) {
    enum { MOST = 64 };
    pli_random random = pli_random_at(seed, PLI_RANDOM_TREES, (uint64_t)round, (uint64_t)row);
    double     left = pli_random_f64(&random), chance = exp(-mean);
    int32_t    times = 0;
    while (left >= chance && times < MOST) { /* by inversion */
        left -= chance;
        chance *= mean / ++times;
    }
    return times;
}

static double between(double share) { return fmin(fmax(share, PLI_LEAST_SHARE), 1 - PLI_LEAST_SHARE); }

void pli_bag_scores(const pli_trees *forest, double trees, double *sum) {
    const int64_t k = forest->columns;
    for (int64_t c = 0; c < k; c++) {
        const double mean = forest->base[c] + (sum[c] - forest->base[c]) / trees, share = between(mean);
        sum[c] = !forest->shares ? mean : k > 1 ? log(share) : log(share / (1 - share));
    }
}

/* --- rows left out ------------------------------------------------------------------------------------------------ */

/* The row's sums in a block, by the block's own rows. room [2 columns] is scratch. */
static void judge_row(const pli_gbdt *t, int64_t r, double *room, pli_sums *sums) {
    const pli_bin_rows *rows = &t->rows;
    const pli_goal     *goal = &t->fit.goal;
    const int64_t       k = goal->columns;
    const double        weight = (double)rows->weight[r], y = rows->target[r];
    if (rows->votes[r] == 0 || (rows->held != NULL && rows->held[r])) return;
    for (int64_t c = 0; c < k; c++) room[c] = rows->score[c * rows->n + r];
    pli_bag_scores(&t->trees, rows->votes[r], room);
    sums->loss += weight * goal->loss->at(goal->parameter, k, room, y, room + k);
    sums->weight += weight;
    sums->rows++;
    if (goal->classes > 0)
        sums->right += (double)pli_goal_class(goal, room) == (k > 1 ? y : (double)(y > 0)) ? weight : 0;
}

static plait_status judge_once(pli_run *run, double *room, pli_sums *out) {
    const pli_gbdt *t = pli_gbdt_of(run);
    pli_total       total = { 0 };
    PLI_TRY(pli_heirs_gather(run));
    for (int32_t p = 0; p < t->rows.parts; p++) {
        const pli_rows_part *part = &t->rows.part[p];
        pli_sums             sums = { 0 };
        if (!pli_living_is_mine(run, run->data, part->block)) continue;
        for (int64_t row = part->first; row < part->first + part->n; row++) judge_row(t, row, room, &sums);
        pli_total_add(&total, &sums);
    }
    return pli_total_agree(run->comm, &total, out);
}

plait_status pli_bag_judge(pli_run *run, pli_sums *out) {
    double      *room = pli_array((size_t)pli_gbdt_of(run)->trees.columns, 2 * sizeof *room);
    int32_t      absent = pli_comm_absent(run->comm);
    plait_status status;
    if (room == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to judge rows");
    do status = judge_once(run, room, out);
    while (status >= 0 && pli_run_again(run, &absent));
    pli_free(room);
    return status;
}
