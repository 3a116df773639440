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
 * same time, shortens its steps by that share (pli_online_row.share).
 *
 *     rate_k(n) = rate / (sqrt(n + N0) + C n)
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
    double          unit;    /* the spread of the labels; 1 for classes              */
    bool            raw;     /* features are taken as they are: --normalize none     */
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
    double  y, weight;
    double  share;  /* of all rows learnt so far, how many are in the values: in (0, 1] */
    bool    known;  /* is its label known? */
} pli_online_row;

/* Scratch memory of the rule. */
typedef struct pli_online_scratch {
    double *score;    /* [6K] */
    float  *rate;     /* [capacity, K] */
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

/* A worker's thread. */
typedef struct pli_online_thread {
    pli_online_row     row[2]; /* the row at hand, and the next one, whose values are prefetched */
    pli_online_scratch scratch;
    pli_online_totals  totals;
    pli_sums           sums;
    float             *grown; /* [cols] what the totals have grown by */
    plait_error        error;
    char               apart[64]; /* keeps the next thread's on another cache line */
} pli_online_thread;

struct pli_online {
    pli_online_rule    rule;
    pli_online_thread *thread; /* [threads + 1]; the last one learns where rows are learnt one after another */
    int32_t            threads;
    int64_t            cols;
    uint64_t           total_key; /* the row of totals in w; with PLI_SPARSE it is row 1 of b */
    float             *any;       /* [2, cols] for small reads */
    bool               paced;     /* there are other workers, and none is far ahead */
    uint32_t          *order; /* [parts] of a single worker, as they follow each other in the file; NULL: as they are */
    /* by key */
    float  *now, *before; /* [unique + 2, cols] the values of the batch's features, and as they were read */
    int64_t now_capacity, before_capacity;
    float  *weights; /* [features + 1, K] for the curve */
    /* in place */
    bool           in_place, unlocked; /* unlocked: threads learn side by side */
    unsigned char *memory;             /* of the table's values; row j is at memory + j stride */
    int64_t        stride;
    pli_part      *part[2]; /* [own blocks] of a stream: of an even clock, of an odd one */
};

static inline pli_online_thread *pli_online_alone(const pli_online *o) { return &o->thread[o->threads]; }

/** Sets the target, the weight, and the values x of a row of the block, then the intercept; `at` has room. */
plait_status pli_online_take(const pli_run *run, pli_online_thread *thread, const pli_block *block, int64_t number,
                             pli_online_row *row);

/** Sorts the parts of one worker by the place of their blocks in the file, once: a clock of all rows then takes them in
 *  their own order. */
plait_status pli_online_find_order(pli_run *run, int32_t parts, const pli_part *part);

/* --- online_place.c ----------------------------------------------------------------------------------------------- */

/** Can the values of table w be changed in place? Known when the form is. */
bool         pli_online_fits_in_place(const pli_run *run);
/** Creates table w, in place if it can be. */
plait_status pli_online_make_table(pli_run *run, const plait_table_opts *opts, plait_table **table_out);
plait_status pli_online_step_in_place(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out);

#endif
