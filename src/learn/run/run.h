/* learn/run.h - one training run as one rank sees it, while plait_train lasts.
 *
 *     options.c  names, ranges, pairs; equal on every rank
 *     tables.c   how each table of the model travels
 *     open.c     data opened and read
 *     judged.c   test and validation: opened, their labels looked at
 *     sample.c   the first rows of a stream's blocks
 *     labels.c   what the labels are: classes or numbers, of which column; counted and weighed
 *     prepare.c  schema agreed, scales, defaults that follow from the data
 *     sgd.c      batch by batch, for every update rule, topology and consistency
 *     balance.c  whose blocks a worker computes, where they may change hands
 *     inherit.c  whose blocks a worker computes, where others have died
 *     blocks.c   block by block: --reduce exact
 *     net_train.c  by a net
 *     hogwild.c  row by row, straight on the table: async over local
 *     lbfgs.c    full-batch L-BFGS, whose vectors are tables; lbfgs_pass.h
 *     curve.c    what the weights were worth on the way
 *     tell.c     what the caller hears of the weights
 *     pace.c     did the workers of a policy without a bound run together?
 *     keep.h     checkpoints: keep.c takes them, writer.c writes them beside the training, resume.c goes on from one
 *     train.c    the order of it all, the report
 */
#ifndef PLI_LEARN_RUN_H
#define PLI_LEARN_RUN_H

#include "comm/comm.h"
#include "optim/optim.h"
#include "learn/model/model.h"
#include "learn/supervised/scale.h"
#include "table/consistency/consistency.h"

/* A single pass takes a row's last index for its highest. */
#define PLI_INDEX_TOO_HIGH "row %lld of a streamed pass has indices out of order: give --hash-bits, or --epochs 2"

/* How the weights lie in their table. The intercepts are the last row, or with PLI_SPARSE a table of their own. */
typedef enum pli_form {
    PLI_DENSE, /* whole gradients are pushed                                */
    PLI_KEYED, /* dense, but a batch pushes the few rows that it touched    */
    PLI_SPARSE, /* rows grow by key                                         */
    PLI_NET    /* a table a layer's weights, one its biases: dense; lbfgs: one of all */
} pli_form;

/* The weights at some moments of a run, kept to be measured when it is over (curve.c). */
typedef struct pli_curve {
    int64_t        points, next; /* asked for; passed so far                          */
    int64_t        values;       /* of one copy                                       */
    plait_type     type;
    int64_t       *mark, *clock; /* [points] clock from which it is due; its own      */
    double        *seconds, *bytes; /* [points], [points + 1]: the last at the end */
    unsigned char *weights;      /* [points, values], on the reporting worker         */
    bool          *taken;        /* [points]                                          */
    bool           due;          /* the weights of point next - 1 are still to be kept */
} pli_curve;

typedef struct pli_run {
    plait_comm             *comm;
    const plait_train_opts *opts;
    plait_error            *err;  /* of comm */
    pli_pool               *pool; /* of the rank */

    /* what was decided; 0 in opts is resolved here */
    const char *optimizer, *topology, *consistency, *schedule; /* the pair: of table w; schedule NULL: constant */
    bool        balanced; /* blocks change hands: balance dynamic */
    bool        exact; /* reduce exact: gradients block by block, sums whose bits do not depend on who had which */
    bool        sharded;  /* the rule's state is in parts       */
    bool        lbfgs, rowwise; /* rowwise: each row is a push of its own (Hogwild) */
    int64_t     epochs, batch, clocks; /* clocks: an epoch's                          */
    double      rate, l1, l2;
    plait_rule_numbers rule; /* of the weights, made with their table; of lbfgs none */

    /* data */
    pli_dataset *data, *validation, *test;
    pli_schema  *schema;
    bool         stream;
    int64_t      rows, train_rows, entries; /* of all workers */
    int64_t      train_labels;              /* n of the objective: train_rows, of text windows their labels */
    int64_t      own_entries;
    pli_block   *sample;                    /* [own blocks] of a stream, while it is prepared */
    int64_t      seen_rows, seen_entries;   /* of all workers: those that figures are measured on */
    double       fraction;                  /* of the rows that are held back for validation */
    pli_linear   linear;
    pli_net     *net;   /* linear.net, owned */
    pli_net_file file;  /* that net was made of; text NULL: none */
    const char  *loss;  /* by name */
    double      *label, *class_weight;
    char         label_text[PLI_LABEL_TEXT]; /* which label, and what it is, for the user */
    double       label_mean, label_spread;  /* of numbers, mean 0 without intercept; else 0 and 1 */
    pli_scale    scale;
    plait_model *start; /* --init-model */
    struct pli_resume *resume; /* the checkpoint that the run goes on from; NULL: it begins */

    /* tables */
    plait_job   *job;
    pli_form     form;
    plait_table *net_table[PLI_NET_PARAMS]; /* of a net; w is the first */
    plait_table *w, *b; /* b: PLI_SPARSE with intercept only */
    int32_t      n_tables;
    plait_report_table table[PLAIT_REPORT_TABLES]; /* [n_tables] as they travel */

    /* outcome */
    pli_solution solution; /* in the data's units */
    pli_total    progressive;
    pli_sums     first; /* losses of the first clock, own rows: where the run began */
    double       validation_loss, validation_accuracy, load_seconds, train_seconds,
        idle_seconds /* of train_seconds, waiting */;
    int32_t      deaths; /* told so far */
    int64_t      best_epoch; /* from 1; 0: none */
    bool         stopped_early, converged;
    int64_t      kept; /* clock of the last checkpoint; -1: none */
    plait_error  unkept; /* why the last one that was due is not there; code 0: it is */
    int64_t      epochs_done, clocks_done, clocks_skipped; /* skipped: complete without this worker */
    bool         interrupted, paced;
    uint64_t     pace_ns; /* of pace.c: from when on it counts */
    double       far_seconds, end_seconds;
    uint64_t     begun_ns, cpu_ns, training_ns /* when training began */, training_bytes;
    pli_comm_times times; /* of training */
    pli_curve    curve;
} pli_run;

/** The workers that have rows of their own: the first of all. Behind them are the spares. */
static inline int32_t pli_run_holders(const pli_run *run) {
    return plait_comm_workers(run->comm) - run->opts->spares;
}
static inline bool pli_run_is_spare(const pli_run *run) { return plait_comm_rank(run->comm) >= pli_run_holders(run); }

/* How a table travels: borrowed from the run's options. filter "": none. */
typedef struct pli_travel {
    const char *topology, *consistency, *filter;
} pli_travel;
static inline pli_rule_scope pli_run_rules(const pli_run *run) {
    return (pli_rule_scope){ .own = run->opts->rules, .n_own = run->opts->n_rules };
}
pli_travel pli_run_travel(const pli_run *run, const char *table);
/** Of a module, that a net's sessions are to ask for; NULL: Plait's own. */
const char *pli_run_kernels(const pli_run *run);

/** Do the pairs of all tables train, as far as it can be told before it is known how the tables lie; and then: notes
 *  each in run->table. Errors: EREFUSED, ENAME, EINVAL. */
plait_status pli_tables_check(const pli_run *run);
plait_status pli_tables_settle(pli_run *run);

/** Checks names and ranges. Errors: ENAME, EINVAL, EREFUSED. */
plait_status pli_options_check(pli_run *run);

/** Is the text (nearly certainly, by its hash) the same on all workers? Collective: every worker hears the same. */
plait_status pli_agree_is_same(plait_comm *comm, const char *text, bool *same_out);

/** Fails with EMISMATCH on every worker if text ("name value" lines) differs between workers, naming rank and line. */
plait_status pli_agree_text(plait_comm *comm, const char *what, const char *text, plait_error *err);

/** Charges for a gradient pass over the batch, whose result has `values` values. */
void pli_run_charge(const pli_run *run, const pli_batch *batch, int64_t values);
/** The same of a batch that was parsed for its clock. */
void pli_run_charge_parsed(const pli_run *run, const pli_batch *batch);

/** Everything up to the tables. */
plait_status pli_prepare(pli_run *run);

/** A single pass streams what is not small. */
bool pli_run_streams(const pli_run *run);
/** One data set of the run, opened and loaded (or scanned, for a stream); its notes are told. fixed: the schema it must
 *  follow. Errors: EREFUSED a pipe where ranks are processes. Collective over the workers. */
plait_status pli_run_open(pli_run *run, const plait_data_opts *files, const plait_data *memory, const pli_schema *fixed,
                          bool stream, pli_dataset **data_out);

/** What all workers found in a data set, joined, and the set numbered by it; whole: it is in memory. Collective over
 *  the workers. */
plait_status pli_run_agree_schema(const pli_run *run, pli_dataset *data, bool whole, pli_schema **schema_out);

/** run->test and run->validation, by the run's schema. Errors: as pli_run_open, EFORMAT a row without a label that the
 *  model knows. Collective over the workers. */
plait_status pli_run_open_judged(pli_run *run);

/** Settles what the labels are, whether classes or numbers, and counts them, over the rows or a stream's sample: loss,
 *  classes and their weights, rows. Tells it. Errors: EFORMAT labels that the model cannot learn, all weights 0.
 *  Collective over the workers. */
plait_status pli_labels_settle(pli_run *run);
/** An own block to look at before training: of a stream its sample. */
static inline const pli_block *pli_run_block(const pli_run *run, int32_t own) {
    return run->stream ? &run->sample[own] : pli_dataset_block(run->data, own);
}

/** The first rows of each own block of a stream. Not collective. */
plait_status pli_sample_take(pli_run *run);
void         pli_sample_free(pli_run *run);

/** Is this row of the data set held back for validation? user: the run. */
bool pli_run_holds_back(void *user, int64_t row);
bool pli_run_trains(void *user, int64_t row);

/** First values for the table in training's units, [features + intercept, K] of F32 or F64; *initial_out NULL: zeros.
 *  Without a model to start from: zeros, and the mean label for intercept. */
plait_status pli_run_initial(const pli_run *run, plait_type type, void **initial_out);
/** Penalty factors likewise; NULL: all 1. */
plait_status pli_run_penalty(const pli_run *run, plait_type type, void **penalty_out);
/** The solution from values [features + intercept, K] in training's units. */
plait_status pli_run_solution(const pli_run *run, plait_type type, const void *values, pli_solution *solution_out);

/** Of a net, net_train.c: first values [net->values] and the penalty's factors of one parameter [rows, cols], in
 *  training's units; the rows from .. from + n - 1 of a part onto `to` from row `at` on, which answers how many labels
 *  they have; the feeds of the first n rows: x, label, weight. */
void    pli_net_first_values(const pli_run *run, float *values);
void    pli_net_penalty_factors(const pli_run *run, int32_t p, float *factor);
int64_t pli_net_take_rows(const pli_run *run, const pli_part *part, int64_t from, int64_t n, pli_net_rows *to,
                          int64_t at);
int32_t pli_net_feed_rows(const pli_net *net, pli_net_rows *from, int64_t n, plait_feed feeds[PLI_NET_FEEDS + 2]);

/** The same of a net's values. */
plait_status pli_net_solution(const pli_run *run, const float *values, pli_solution *solution_out);

/** Loss and (of classes) accuracy of a solution on what is held back, of all workers; NaN without any. Collective. */
plait_status pli_run_validate(const pli_run *run, const pli_solution *solution, double *loss_out, double *accuracy_out);

/** Tells the caller's weights() what each table holds; nothing without one. */
void pli_run_tell_weights(const pli_run *run, const pli_solution *solution);

/** l2/2 ||w||^2 + l1 ||w||_1, in the data's units. */
double pli_run_penalty_of(const pli_run *run, const pli_solution *solution);

/** Has the caller asked to stop? */
static inline bool pli_run_stopped(const pli_run *run) {
    return run->opts->stop != NULL && __atomic_load_n(run->opts->stop, __ATOMIC_RELAXED) != 0;
}

/* --- trace ----------------------------------------------------------------------------------------------- */

/** Tells the trace of a step (or phase) that began at *at_ns, by pli_comm_span_begin, and ends now, where the next one
 *  begins. */
static inline void pli_run_step(const pli_run *run, const char *name, uint64_t *at_ns) {
    *at_ns = pli_comm_span_end(run->comm, PLI_SPAN_STEP, name, run->clocks_done, *at_ns);
}
static inline void pli_run_phase(const pli_run *run, const char *name, int64_t number, uint64_t *at_ns) {
    *at_ns = pli_comm_span_end(run->comm, PLI_SPAN_PHASE, name, number, *at_ns);
}

/* --- progress -------------------------------------------------------------------------------------------- */

typedef struct pli_meter {
    pli_run *run;
    uint64_t begun_ns, told_ns;
    double   rows, told_rows; /* of this worker */
    pli_sums lately;
} pli_meter;
void pli_meter_start(pli_meter *meter, pli_run *run);
/** Tells the caller at most some times a second, and at the end of an epoch. On one rank. */
void pli_meter_tell(pli_meter *meter, const pli_sums *sums, int64_t epoch, int64_t clock, bool epoch_ended);

/** Tells the caller of ranks that have died. On one rank. */
void pli_run_tell_lost(pli_run *run);

/** How many weights a run has; 0 where rows grow by key, of which there may be 2^63. */
int64_t pli_run_weights(const pli_run *run);
/** EDIVERGED with the remedy, unless sums are finite. */
plait_status pli_run_finite(const pli_run *run, double loss, int64_t clock);

/* --- the curve ------------------------------------------------------------------------------------------- */

/** Before the first clock: weights are `values` numbers of this type, clocks about so many. */
plait_status pli_curve_begin(pli_run *run, int64_t values, plait_type type, int64_t clocks);
/** A clock begins. true: the reporting worker shall give the weights that it reads now to pli_curve_keep. */
bool         pli_curve_due(pli_run *run);
void         pli_curve_keep(pli_run *run, const void *weights);
/** Training is over. */
void         pli_curve_end(pli_run *run);
/** Measures what was kept and tells it, and last the solution, whose report is filled. Collective over the workers. */
plait_status pli_curve_measure(pli_run *run, const plait_report *report);
void         pli_curve_free(pli_curve *curve);

/* --- pace ------------------------------------------------------------------------------------------------ */

/** Before the first clock, past a barrier: is there anything to watch? Collective over the workers. */
plait_status pli_pace_begin(pli_run *run);
/** After each clock, and when a worker takes no more. */
void         pli_pace_clock(pli_run *run);
void         pli_pace_end(pli_run *run);
/** When the rows have been judged: warns if one worker ended before another was far and the loss on some worker's rows
 *  is well above that of all. own: sums over the own rows. Collective over the workers. */
plait_status pli_pace_judge(pli_run *run, const pli_sums *own);

/* --- learners -------------------------------------------------------------------------------------------- */

/** Tables, loop, solution. The job is there. */
plait_status pli_sgd_train(pli_run *run);
plait_status pli_lbfgs_train(pli_run *run);

/* The server functions of L-BFGS, for the job's options; user: the pool that they run on, or NULL. */
enum { PLI_LBFGS_FUNCTIONS = 3 };
extern const plait_function pli_lbfgs_functions[PLI_LBFGS_FUNCTIONS];
plait_merge_fn pli_lbfgs_merge_exactly; /* of their answers, where sums are exact */

#endif
