/* learn/linear/online.h - learning row by row, in one pass: each row is judged by the weights that the rows before it
 * have made, and then learnt from. The sum of the judgements is the progressive loss.
 *
 * The rule has three parts.
 *
 *   Invariant. The scores of the row follow its loss downhill for a time, ds/dt = -slope, instead of one step along the
 *   slope at the start. So no step overshoots, and a row of weight 2 moves them as the row twice.
 *   Adaptive. Each weight has a rate of its own, from the squared slopes that it has met.
 *   Scale-free. Each feature is divided by its root mean square so far, and all by how many features a row has. So
 *   neither the units of the features nor their number matter. Dense features alone are centred before, by a sample
 *   (supervised/scale.h).
 *
 * A feature j has a row of 2K + 2 values in a table, K the number of scores, and each only ever grows by a sum:
 *
 *     v_k   the weight of the scaled feature; w_k = v_k / s with s = sqrt(q / c)
 *     n_k   sum of weight_i slope_ik^2 (x_ij / s)^2
 *     q, c  sum of weight_i x_ij^2, of weight_i, over the rows that have the feature
 *
 * A last row of the table holds totals over all rows. Since all values are sums, workers add what they have learnt from
 * their rows in any order and under any policy. A worker that has read the sums of few rows, while others learn at the
 * same time, shortens its steps (pli_online_row.share) by the root of the share of all rows that it has read of. The
 * share itself would be right if all rows had the same features; the root was better on nearly every set of
 * bench/online, with 4 workers and with 16.
 *
 *     rate_k(n) = rate / (sqrt(n + N0) + C n)
 *
 * That is for scores and slopes of unit spread. With scores of spread U and slopes of spread S, n / S^2 stands for n,
 * and U / S for the rate. The squared loss has S = U, the labels' spread; a quantile loss has S <= 1 in every unit of
 * the labels; counts with mean m and spread D have S = D, and U = D / m, since scores are logarithms.
 *
 * n estimates the curvature of the loss, too (it is Fisher's information); so the term C n takes over on long streams,
 * where a rate of 1 / n is the better one.
 *
 * Papers: Karampatziakis and Langford, "Online Importance Weight Aware Updates", UAI 2011; Ross, Mineiro and Langford,
 * "Normalized Online Learning", UAI 2013 (its sNAG); Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online
 * Learning and Stochastic Optimization", JMLR 2011.
 *
 *     online_rule.c   the update of a row
 *     online.c        the tables, batches, the solution
 *     online_place.c  rows learnt in the table's own memory: one worker, or async over local
 *     online_side.c   unbounded workers move through the files side by side
 *     online_live.c   the rows of a pipe, as they come
 *     online_review.c a sample of the rows, learnt once more if the first ones were forgotten
 */
#ifndef PLI_LEARN_LINEAR_ONLINE_H
#define PLI_LEARN_LINEAR_ONLINE_H

#include "learn/linear/fit.h"

/* --- online_rule.c ------------------------------------------------------------------------------------------------ */

/* What the rule knows of the run. */
typedef struct pli_online_rule {
    const pli_goal *goal;
    int64_t         columns; /* K                                                    */
    double          rate;    /* of scores of unit spread                             */
    double          unit;    /* the spread of the scores; 1 for classes              */
    double          slope;   /* of the loss by the score, at a spread; 1 for classes */
    bool            raw;     /* features are taken as they are: --normalize none     */
    bool            shared;  /* other threads change the values at the same time     */
    bool            judges;  /* rows are judged, and nothing is learnt from them     */
} pli_online_rule;

static inline int64_t pli_online_cols(int64_t columns) { return 2 * columns + 2; }

/* Totals of rows: of their weights, of their features' squared scaled values, and how many they are. */
typedef struct pli_online_totals {
    double weight, norm, rows;
} pli_online_totals;

/* A row to learn from. */
typedef struct pli_online_row {
    int64_t n, capacity;
    float **at;     /* [n] the values of its features, which are changed in place by relaxed atomics */
    float  *x;      /* [n] */
    bool    intercept; /* the last entry is it */
    bool    ones;   /* all x are 1 */
    double  y, weight;
    double  share;  /* by which the step is shortened, since others learn unseen: in (0, 1] */
    bool    known;  /* is its label known? */
} pli_online_row;

/* Scratch memory of the rule. */
typedef struct pli_online_scratch {
    double *score;    /* [6K] */
    float  *rate;     /* [capacity] two values an entry and score */
    int64_t capacity;
} pli_online_scratch;

bool pli_online_scratch_make(pli_online_scratch *scratch, int64_t columns);
void pli_online_scratch_free(pli_online_scratch *scratch);

/** Judges the row, adding its loss to sums, and learns from it; adds it to totals, which hold those of the rows before.
 *  Any thread. Errors: ENOMEM, without a text. */
plait_status pli_online_learn(const pli_online_rule *rule, pli_online_row *row, pli_online_totals *totals,
                              pli_sums *sums, pli_online_scratch *scratch);

/** How far the scores [k] move if they follow the loss downhill for the time `step`, score c at the speed pace[c]:
 *  ds_c/dt = -pace_c slope_c. move [k]; scratch [3k]. */
void pli_online_flow(const pli_goal *goal, int64_t k, const double *score, double y, const double *pace, double step,
                     double *move, double *scratch);

/** The weight w_k of a feature with these values. */
double pli_online_weight(const pli_online_rule *rule, const float *values, int64_t k);

/* --- online.c, online_place.c ------------------------------------------------------------------------------------- */

/* Some of the rows that a thread has learnt from (online_review.c). */
typedef struct pli_online_sample {
    pli_block block;
    uint64_t *number; /* [rows] of the row in the data set */
    uint32_t *order;  /* [rows] of the review */
    int32_t   level;  /* a row is kept with the chance 2^-level */
    int64_t   rows_capacity, start_capacity, label_capacity, weight_capacity;
    int64_t   col_capacity, key_capacity, value_capacity;
} pli_online_sample;

/* With fewer clocks than these a set is small for its workers: they see little of each other in much of the pass, and
 * what they learn then is worth less. The review makes up for it, and has more of the clocks. */
enum { PLI_ONLINE_FEW = 1000 };

/* A review under way: the samples of the worker's threads. */
typedef struct pli_online_reviewed {
    pli_part *part; /* [parts]; NULL: it has not begun */
    int32_t   parts;
    bool      learns; /* the model has forgotten rows, or workers saw little of each other */
} pli_online_reviewed;

/* A worker's thread. */
typedef struct pli_online_thread {
    pli_online_row     row[2]; /* the row at hand, and the next one, whose values are prefetched */
    pli_online_scratch scratch;
    pli_online_totals  totals;
    pli_sums           sums;
    float             *grown; /* [cols] what the totals have grown by */
    pli_online_sample  sample;
    plait_error        error;
    char               apart[64]; /* keeps the next thread's on another cache line */
} pli_online_thread;

/* Where the workers of a process are in the pass, if nothing bounds them (online_side.c); place NULL: not known. */
typedef struct pli_online_side {
    struct pli_online_place *place; /* [workers] */
    uint64_t begun_ns, vain_ns; /* vain_ns: it has napped for workers that did not come */
} pli_online_side;

struct pli_online {
    pli_online_rule    rule;
    pli_online_thread *thread; /* [threads + 1]; the last one learns where rows are learnt one after another */
    int32_t            threads;
    int64_t            cols;
    uint64_t           total_key; /* the row of totals in w; with PLI_SPARSE it is row 1 of b */
    float             *any;       /* [2, cols] for small reads */
    pli_online_reviewed review;
    bool               reviews;   /* rows are learnt once more: they are not kept */
    pli_online_side    side;
    bool               paced;     /* there are other workers, and none is far ahead */
    int32_t           *order; /* [ordered] the parts of a clock that have rows, in the files' order */
    int64_t            ordered, order_capacity;
    /* by key */
    float  *now, *before; /* [unique + 2, cols] the values of the batch's features, and as they were read */
    int64_t now_capacity, before_capacity;
    float  *weights; /* [features + 1, K] for the curve */
    /* in place */
    bool           in_place, unlocked; /* unlocked: threads learn side by side */
    unsigned char *memory;             /* of the table's values; row j is at memory + j stride */
    int64_t        stride;
    pli_part      *part[2];   /* [pieces] of a stream: of an even clock, of an odd one */
    int32_t        pieces[2];
};

static inline pli_online_thread *pli_online_alone(const pli_online *o) { return &o->thread[o->threads]; }

/** Sets the target, the weight, and the values x of a row of the block, then the intercept; `at` has room. */
plait_status pli_online_take(const pli_run *run, pli_online_thread *thread, const pli_block *block, int64_t number,
                             pli_online_row *row);

/** Sets order and ordered to the parts with rows, in the order of the files. */
plait_status pli_online_find_order(pli_run *run, int32_t parts, const pli_part *part);

/** Judges the rows of a batch, if rule.judges, or learns from them, outside of the pass: `share` of what they teach
 *  goes into the table, or all if it is in place. Sums over the rows to *sums_out. */
plait_status pli_online_again(pli_run *run, const pli_batch *batch, double share, pli_sums *sums_out);

/* --- online_review.c ---------------------------------------------------------------------------------------------- */

/** Adds rows that the thread has learnt from to its sample, by chance. Errors: ENOMEM, in thread->error. */
plait_status pli_online_keep(const pli_run *run, pli_online_thread *thread, const pli_part *part);
/** Adds rows that a run before a checkpoint has learnt from to the sample: it is no part of the checkpoint. */
plait_status pli_online_skipped(pli_run *run, const pli_batch *batch);
void         pli_online_sample_free(pli_online_sample *sample);
/** In a clock behind the last row of a pass in the files' order: learns from a share of the sample once more if the
 *  model has forgotten its first rows, which the first call finds out. Not collective: each worker judges its own
 *  sample. */
plait_status pli_online_review(pli_run *run, int64_t clock);

/* --- online_place.c ----------------------------------------------------------------------------------------------- */

/** Is there one worker, and nobody asks what it reads and writes, or for the values at some moment? */
bool         pli_online_is_alone(const pli_run *run);
/** Can the values of table w be changed in place? Known when the form is. */
bool         pli_online_fits_in_place(const pli_run *run);
/** Creates table w, in place if it can be. */
plait_status pli_online_make_table(pli_run *run, const plait_table_opts *opts, plait_table **table_out);
plait_status pli_online_again_in_place(pli_run *run, const pli_batch *batch, pli_sums *sums_out);
plait_status pli_online_step_in_place(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out);

/* --- online_side.c: unbounded workers, side by side --------------------------------------------------------------- */

plait_status pli_online_side_begin(pli_run *run);
void         pli_online_side_end(pli_run *run);
/** Before a clock: gives way to the other workers of the process, and waits a little for those that are behind. */
void         pli_online_give_way(pli_run *run);

/* --- online_live.c: the rows of a pipe, as they come -------------------------------------------------------------- */

/** pli_learner_more.live. */
bool         pli_online_may_live(const pli_run *run);
/** Between clocks, in place: makes room for the features of the rows that have come. Errors: ENOMEM, EFORMAT too many
 *  features. */
plait_status pli_online_grow(pli_run *run);
/** When no more rows come: the run and its table become those of a file with these rows. */
void         pli_online_settle(pli_run *run);
/** Fails with EFORMAT: the row's label was not among those of the front. */
plait_status pli_online_unknown(const pli_run *run, const pli_block *block, int64_t number, plait_error *err);

#endif
