/* learn/trees/trees.h - decision trees. Gradient-boosted ones (`--model gbdt`) are a sum of small trees, each fitted to
 * the gradients that the sum before it leaves. A forest (`--model forest`) is a mean of large trees, each fitted to the
 * labels of other rows, drawn by chance.
 *
 *     fields.c       what trees split by: numbers, and columns of texts
 *     model.c        what a tree is; scores of rows
 *     bins.c         values become bins: cuts at quantiles
 *     sample.c       the rows that cuts are found by, of all workers
 *     rows.c         a worker's rows, as bins
 *     histogram.c    sums of gradients by bin
 *     split.c        the best split of a histogram
 *     monotone.c     features along which scores may only rise, or fall
 *     queries.c      the queries of a worker's rows
 *     gradients.c    gradients of a round, as whole numbers
 *     grow.c         a tree, step by step
 *     cut_rows.c     a step where each worker has some of the rows
 *     cut_features.c a step where each worker has some of the features, of all rows
 *     cut_voting.c   a step where workers vote for the features whose sums are worth sending
 *     columns.c      workers exchange bins, so that each has its features of all rows
 *     columns_read.c the same without the others, where one of them may die
 *     part.c         rows of a leaf go to its children
 *     bag.c          which rows a tree of a forest sees, and how often; what trees say of rows that they have not seen
 *     scores.c       what trees add to the scores of rows
 *     heirs.c        rows of workers that have died, or have left (features: cut_features.c)
 *     boost.c        the rounds: gradients, trees, validation, checkpoints
 *     gbdt_learner.c the learner gbdt: options, what follows from the data
 *     forest_learner.c  the learner forest, which shares all but its options and its rounds
 *     gbdt_model.c   the fitted model: its file, its importances
 *     shap.c         what each feature adds to a row's score
 *     export_*.c     the model as ONNX, and as XGBoost has it
 *
 * A tree. A node either splits rows by one feature (x <= cut goes left, and each split knows where a missing value
 * goes), or is a leaf with a value. A feature may be a column of texts: its values are categories. Rows with some of
 * them go left; all others, and rows without one, go right. A row's score is the base plus the values of the leaves
 * that it reaches; for K > 2 classes there are K scores, and each round makes K trees.
 *
 * Bins. Each feature's values are cut into at most `--bins` bins of about equal weight, once, before the training. The
 * cuts come from all rows, or from a sample of them that a hash of the row's number picks; so they are the same on each
 * worker and for each number of workers. A row is then a byte a feature, laid out twice (dense), or a list of its bins
 * that are not the feature's commonest (sparse).
 *
 * The histogram. For each bin, the sums over a node's rows of gradient g and curvature h, and the number of rows. They
 * are whole numbers: g and h of a round are scaled by powers of two that follow from the largest |g| and h of all
 * rows, and rounded. Sums of whole numbers do not depend on their order. So each worker reads the same sums, whatever
 * the topology, the transport or the number of workers, and all workers find the same splits: the trees are the same
 * bit for bit, under `--reduce plain` as well. A bin takes two cells:
 *
 *     cell 0    sum of g
 *     cell 1    sum of h, times 2^count_bits, plus the number of rows
 *
 * One more bin after the last holds the node's own sums. Of sparse rows the commonest bin is what is left of these.
 *
 * Workers may have rows or features, or vote (--trees-by): cut_*.c. By rows:
 *
 * A step is one clock. Each worker adds up the histograms of some nodes over its own rows, and incs them into the
 * table `histogram`. The table only grows: a step's sums are what has come since the step before, so nothing is zeroed
 * (integers wrap around, and differences stay exact). Then all workers search these histograms, and split:
 *
 *     leaf-wise     the leaf with the largest gain is split; the step's histogram is that of its smaller child
 *     depth-wise    all leaves of a level are split; the step has the smaller child of each
 *     newest first  some of the newest leaves are split (a forest): few histograms wait, however large the tree
 *
 * The larger child's histogram is its parent's less its sibling's, without a pass over rows.
 *
 * Papers: Friedman, "Greedy Function Approximation: A Gradient Boosting Machine", Annals of Statistics 2001; Chen and
 * Guestrin, "XGBoost: A Scalable Tree Boosting System", KDD 2016 (gains, missing values); Ke et al., "LightGBM: A
 * Highly Efficient Gradient Boosting Decision Tree", NIPS 2017 (histograms by leaves). bag.c has those of forests. */
#ifndef PLI_LEARN_TREES_H
#define PLI_LEARN_TREES_H

#include "learn/solve/doors.h"
#include "learn/trees/grow.h"

/* --- the run ------------------------------------------------------------------------------------------------------ */

typedef struct pli_gbdt {
    pli_fit        fit;
    pli_bins       bins;
    pli_bin_rows   rows, validation;
    pli_gradients  gradients;
    pli_grower     grower;
    pli_trees      trees;
    bool           exhausted; /* no tree of the last round had a split */
    pli_loop       doors;     /* workers come and go between two rounds (solve/doors.h) */
    bool           in_round;  /* the round's gradients are there, and its trees not all */
    bool           moved;     /* a worker has other rows than it began with, since it was slow or fast */
    pli_sums       left_out;  /* of a forest: rows judged by trees that have not seen them */
    /* as checkpoints hold trees */
    int64_t       *kept_whole; /* [nodes, 5] */
    double        *kept_real;  /* [nodes, 4] */
    int64_t       *kept_sets;
} pli_gbdt;

static inline pli_gbdt *pli_gbdt_of(const pli_run *run) { return run->state; }

plait_status pli_gbdt_train(pli_run *run);
/** pli_fit_ops.judged: sums over the rows trained on, by the scores that training has left. Not collective. */
plait_status pli_gbdt_judged(const pli_run *run, const pli_goal *goal, const pli_solution *solution,
                             const pli_dataset *data, bool (*want)(void *user, int64_t row), pli_total *total_out,
                             bool *done_out);

/* An option that gbdt and forest share; usual: its preset. */
#define PLI_TREES_CATEGORIES(usual)                                                                                   \
    { .name = "categories", .kind = PLAIT_OPTION_NAME, .preset = usual, .names = "sets apart",                       \
      .help = "columns of texts: sets: a column is one feature, split by sets of its texts; apart: each text is a "   \
              "feature" }

/* How the work on trees is cut. */
#define PLI_TREES_BY                                                                                                  \
    { .name = "trees-by", .kind = PLAIT_OPTION_NAME, .preset = "rows", .names = "rows features voting",               \
      .help = "what a worker has: rows (all their features), features (of all rows), or voting: rows, and only the "  \
              "features that workers vote for are summed" },                                                          \
    { .name = "elect", .kind = PLAIT_OPTION_COUNT, .preset = "0",                                                    \
      .help = "of --trees-by voting: features whose sums travel at a leaf; 0: a seventh of them, from 2 to 40" }
/* The tables of the cuts. */
#define PLI_TREES_TABLES                                                                                              \
    { .name = "splits", .what = "with --trees-by features: the best split that each worker found for each leaf" },    \
    { .name = "sides", .what = "with --trees-by features: the side of a split that each row goes to, a bit a row" }

/* What gbdt and forest share of a run (gbdt_learner.c), in this order. check: refuses settings. prepare: of the data;
 * the learner then sets the rules. settle: `rounds` is the default of --epochs. bin: the bins. measured: rows, with
 * memory for so many leaves that wait for their split. */
plait_status pli_trees_check(pli_run *run);
void         pli_trees_reads(const pli_run *run, plait_data_opts *files);
plait_status pli_trees_prepare(pli_run *run);
void         pli_trees_settle(pli_run *run, int64_t rounds);
plait_status pli_trees_bin(pli_run *run);
/** Says so if the option, a number of features, is larger than there are features to split by. */
void         pli_trees_note_most(const pli_run *run, const char *option);
plait_status pli_trees_measured(pli_run *run, int64_t slots, double waiting);
plait_status pli_trees_finish(pli_run *run, plait_model *model);
void         pli_trees_end(pli_run *run);
void         pli_trees_options(const pli_run *run, pli_text *text);
int32_t      pli_gbdt_kept(const pli_run *run, pli_kept kept_out[PLI_KEPT]);
plait_status pli_gbdt_restore(pli_run *run);

/* --- bags (bag.c) ------------------------------------------------------------------------------------------------- */

/** How often a tree of the round sees a row of the data: a Poisson number of this mean. */
int32_t pli_bag_draw(uint64_t seed, int64_t round, int64_t row, double mean);
/** The gradients of squared loss at no score: -times y and times, of a label's number or a class's 0 or 1, less `base`
 *  [columns]. out [columns]: g, h. */
static inline void pli_bag_gradient(const pli_goal *goal, double y, double times, const double *base, double *g,
                                    double *h) {
    for (int64_t c = 0; c < goal->columns; c++) {
        const double wanted = goal->classes == 0 ? y : goal->columns > 1 ? (double)((int64_t)y == c) : (double)(y > 0);
        g[c] = -times * (wanted - base[c]);
        h[c] = times;
    }
}
/** Sums of values over trees become scores: sum [columns] is overwritten. trees: how many were added up. */
void pli_bag_scores(const pli_trees *forest, double trees, double *sum);
/** Judges each row trained on by the trees that have not seen it. Collective. */
plait_status pli_bag_judge(pli_run *run, pli_sums *out);

#endif
