/* learn/learner.h - the seam between a run and its learner: what each knows of the other.
 *
 * A learner is a plait_learner (plait/learner.h), listed once in learners.c. The run (run/) and the checkpoints (keep/)
 * call the functions of that table and nothing else of a learner; a learner sees the run through this header. A learner
 * calls the loops that it shares with others (solve/). The loops know no model: they call back through tables of
 * functions of their own (solve/loop.h, solve/lbfgs_run.h). Includes go down only:
 *
 *     run/                          the order of a run: options, data, training, report
 *     learners.c                    the list
 *     linear/  net/  kmeans/ ...    the learners; none includes another
 *     supervised/                   what learners of labelled rows share: labels, losses, scales, judging
 *     loss/                         losses of scores, and the figures made of them
 *     solve/                        loops: batch by batch, L-BFGS
 *     keep/                         checkpoints
 *     model/                        the model as an object, its file
 *     learner.h                     this
 */
#ifndef PLI_LEARN_LEARNER_H
#define PLI_LEARN_LEARNER_H

#include <math.h>

#include <plait/learner.h>
#include <plait/model.h>

#include "base/base.h"
#include "base/json.h"
#include "comm/comm.h"
#include "data/data.h"
#include "learn/loss/metrics.h"
#include "optim/optim.h"
#include "table/pairs/pairs.h"

/* A single pass takes the last index of a row to be its highest. */
#define PLI_INDEX_TOO_HIGH "row %lld of a streamed pass has indices out of order: give --hash-bits, or --epochs 2"

typedef struct plait_training  pli_run;
typedef struct pli_loop   pli_loop;   /* solve/loop.h  */
typedef struct pli_keep   pli_keep;   /* keep/keep.h   */
typedef struct pli_resume pli_resume; /* keep/keep.h   */
typedef struct pli_curve  pli_curve;  /* solve/curve.c */
typedef struct pli_row_values pli_row_values; /* keep/row_values.h */
typedef struct pli_solver pli_solver; /* solve/solver.h */
typedef struct pli_settled pli_settled; /* solve/settled.h */

enum { PLI_LABEL_TEXT = 160, PLI_TABLES = PLAIT_REPORT_TABLES };

/* An array that a checkpoint holds beside the tables. It is the same on every worker, unless it is a solver's own. Its
 * shape is [rows, cols], or [rows] if cols is 0. */
typedef struct pli_kept {
    const char *name, *type; /* "F32", "F64", "U64" */
    int64_t     rows, cols;
    const void *data;
} pli_kept;
enum { PLI_KEPT = 5, PLI_LEARNER_FUNCTIONS = 8 };

/* What a solver keeps in a checkpoint beside its tables, in place of what the learner says (pli_learner_more.kept and
 * restore, which these are like). */
typedef struct pli_solver_keeps {
    void *state;
    /** kept: arrays that are the same on every worker; own (may be NULL): arrays of which each worker has one. Both are
     *  called while a checkpoint is cut. An array's data NULL: there was no memory. */
    int32_t (*kept)(void *state, pli_kept kept_out[PLI_KEPT]);
    int32_t (*own)(void *state, pli_kept kept_out[PLI_KEPT]);
    plait_status (*restore)(void *state);
    /** A worker that comes takes what `kept` of another one has (solve/turnover.h), by pli_resume_array. NULL: nothing
     *  of that is of use to it. */
    plait_status (*take)(void *state);
} pli_solver_keeps;

/* Hears of one item for a user, the best first. A status below 0 ends the call. */
typedef plait_status pli_recommended(void *to, const char *user, const char *item, double score);

/* What one of Plait's own learners says beyond plait_learner; each field may be NULL. */
typedef struct pli_learner_more {
    /** The solvers that it can train with, NULL-ended, those that auto prefers first; NULL: none. by_name_only: auto
     *  takes none of them. */
    const pli_solver *const *solvers;
    bool                     by_name_only;
    bool                     adds; /* its tables have no update rule, though it takes --optimizer */
    bool        settles;     /* with --balance dynamic rows change hands where all workers meet (solve/settled.h) */
    bool        each_update; /* what its workers add stands for their rows: none may be dropped (--backup) */
    bool        two_passes;  /* one pass over the rows is not enough */
    const char *intercept;   /* why --no-intercept does not go: "a mean and biases are part of it"; NULL: it goes */
    /** The server functions of its tables, on any rank; returns how many, at most PLI_LEARNER_FUNCTIONS. */
    int32_t (*functions)(plait_comm *comm, const plait_train_opts *opts, plait_function *functions_out);
    /** Reads a file of the learner's own before the data are read; all ranks agree on it. Collective. */
    plait_status (*open_files)(pli_run *run);
    /** Can it learn from the rows of a pipe as they come, knowing only its front? Asked before the data are read. NULL:
     *  it cannot. */
    bool (*live)(const pli_run *run);
    /** May a model of this learner have classes that no row has (plait_train_opts.classes)? NULL: no. */
    bool (*declares)(const plait_learner *learner);
    /** May its softmax draw classes (plait_train_opts.sampled)? NULL: no. */
    bool (*samples)(const plait_learner *learner);
    /** Changes how the data are read. */
    void (*reads)(const pli_run *run, plait_data_opts *files);
    /** Can every row of a test or validation set be judged? Asked before training. name: of the set. Errors:
     *  EFORMAT, EINVAL. */
    plait_status (*check_judged)(pli_run *run, const pli_dataset *data, const char *name);
    /** Is the result finite? Asked before a model is made of it. */
    plait_status (*finite)(pli_run *run);
    /** Does `measure` of this model heed model->stop, since it may take long? */
    bool (*judges_long)(const pli_run *run);
    /** Judges the trained model: fills losses and figures of the report. Collective. */
    plait_status (*judge)(pli_run *run, const plait_model *model, plait_report *report);
    /** Options that the result depends on, beyond those of every run, as "--option value" lines. */
    void (*options)(const pli_run *run, pli_text *text);
    /** Writes the learner's part of the model's description, as pli_json_text(json, "layers", "8") (base/json.h). */
    void (*describe)(const pli_run *run, pli_text *json);
    /** kept: the arrays that a checkpoint holds beside the tables; returns how many. restore: reads them back, by
     *  pli_resume_array. */
    int32_t (*kept)(const pli_run *run, pli_kept kept_out[PLI_KEPT]);
    plait_status (*restore)(pli_run *run);
    /** Puts a table back that the checkpoint does not have as such, before restore; *done_out: false, it is to be put
     *  back as it was kept. Each worker puts its share, and perhaps once more (pli_kept_put). Collective. */
    plait_status (*put_back)(pli_run *run, const plait_table *table, bool *done_out);
    /** Judges values [run->weights] that were read during training: the sums of losses and of weights over all rows,
     *  and the penalty. Collective. */
    plait_status (*worth)(pli_run *run, plait_type type, const void *values, double *loss, double *weight,
                          double *penalty);
    /** How many times row_cols values it keeps for a row, if rows have different numbers (as a document's tokens). */
    int64_t (*row_values)(const pli_block *block, int64_t row);
    /** Adds lines about a model for `plait inspect`, before its features. Errors: ENOMEM. */
    plait_status (*inspect)(const plait_model *model, pli_text *text, plait_error *err);
    /** The graph, for the caller to look at (plait_train_opts.graph). */
    const plait_graph *(*graph)(const pli_run *run);
    /** Fills other fields of the report, such as converged. */
    void (*report)(const pli_run *run, plait_report *report);
    /** As pli_model_recommend (model/model.h); NULL: the model knows no users and items. */
    plait_status (*recommend)(const plait_model *model, const plait_data *users, int64_t top, pli_pool *pool,
                              pli_recommended *tell, void *to, plait_error *err);
    /** How its models are used and saved if they are more than named values (model/model.h). */
    const struct pli_model_ops *model;
} pli_learner_more;

/* --- the run ------------------------------------------------------------------------------------------------------ */

struct plait_training {
    plait_comm             *comm;
    const plait_train_opts *opts;
    plait_error            *err;  /* of comm */
    pli_pool               *pool; /* of the rank */
    const plait_learner    *learner;
    void                   *state; /* learner->state_bytes */
    struct {
        char name[24], value[24];
    } took[6]; /* pli_run_took; name empty: free */
    uint32_t                ways;  /* the learner's; its check may change them if they depend on its options */
    plait_properties        needs; /* likewise */

    /* decisions; a 0 in opts is resolved here */
    const char *optimizer, *topology, *consistency, *schedule; /* topology and consistency: of the first table;
                                                                  schedule NULL: constant */
    bool        balanced; /* blocks change hands: --balance dynamic */
    pli_settled *settled; /* ... where all workers meet (solve/settled.h); NULL: they stay, or do so otherwise */
    const int32_t *homes; /* [blocks] settled: whose each block is now; NULL: its bringer's */
    bool        shifts;   /* layers move from stage to stage: the same with --cut */
    bool        exact;    /* --reduce exact: sums block by block; their bits do not depend on who has which block */
    bool        sharded;  /* each rank has a part of the rule's state */
    const pli_solver *solver; /* trains instead of an update rule; NULL: a rule does */
    bool        chooses;  /* --optimizer auto */
    char        optimizer_why[256]; /* why auto took this one; empty: it was named */
    bool        lbfgs;    /* the solver is L-BFGS */
    bool        drops;    /* the learner's graph drops values at random in training */
    int64_t     epochs, batch, clocks; /* clocks: of an epoch. If prepare sets epochs alone, they are a default */
    int64_t     examples; /* how many examples a clock counts as in the tables: usually the batch */
    double      rate, l1, l2;
    plait_rule_numbers rule; /* of the tables, made with the first; ops NULL: none */
    int64_t     weights;     /* values of the model; 0 if rows grow by key */
    int32_t     layout;      /* how the learner lays out its tables, by its own numbers; a resumed run keeps the layout
                                of the run before */

    /* data */
    pli_dataset *data, *validation, *test;
    pli_schema  *schema;
    bool         stream;
    bool         live; /* of a stream: a pipe whose rows are taken as they come; rows and features are those of its
                        * front, and grow */
    pli_reason   awaits; /* while the rank waits for rows of a pipe (pli_run_awaits) */
    bool         in_order; /* the first epoch takes the rows of each block in their own order, as a single pass does */
    int32_t      blocks; /* that the data were asked to be cut into; 0: as many as suit them */
    int32_t      lanes;  /* of a pass in the files' order (pli_batches_in_file_order); 0: each clock takes rows from all
                          * blocks. A resumed run keeps lanes and tail of the run before. */
    int64_t      tail;   /* clocks at the end of such a pass, without rows */
    int64_t      rows, train_rows, entries; /* of all workers */
    int64_t      features, classes;
    int64_t      train_labels;              /* n of the objective: train_rows; for text windows, their labels */
    int64_t      own_entries;
    pli_block   *sample;                    /* [own blocks] of a stream, while the run is prepared */
    int64_t      seen_rows, seen_entries;   /* of all workers: the rows that scales are measured on */
    double       fraction;                  /* of the rows, held back for validation */
    char         label_text[PLI_LABEL_TEXT]; /* which label is learnt and what it is, for the user; empty: none */
    double      *label;                      /* [classes] values, increasing; of a learner that needs classes */
    plait_model *start;                      /* --init-model */
    int32_t      resume_layout;              /* layout of the run that is resumed; -1: none */
    pli_resume  *resume;                     /* the checkpoint that the run is resumed from; NULL: a new run */

    /* tables */
    plait_job   *job;
    bool         leaps;   /* this worker may be told to leave out clocks, since it is slow */
    bool         rotates; /* each worker has its turns with what rotates, also one without rows */
    int32_t      n_made;
    plait_table *made[PLI_TABLES]; /* [n_made] the learner's tables; checkpoints hold them */
    int32_t      n_tables;
    plait_report_table table[PLI_TABLES]; /* [n_tables] how each travels */

    /* training */
    pli_loop *loop; /* while a batch loop runs */
    pli_keep *keep; /* NULL: the run writes no checkpoints */
    pli_solver_keeps solver_keeps; /* all NULL: checkpoints hold what the learner says */
    const pli_kept *handed;  /* [n_handed] what pli_resume_has and the like find instead of a checkpoint's arrays: those
                              * that others hand to a worker that comes (solve/turnover.h) */
    int32_t         n_handed;
    pli_row_values *row_values; /* NULL: the learner keeps no values for each row */
    int64_t   best_epoch; /* by validation loss, from 0 */
    double    best_loss;

    /* outcome */
    pli_total    progressive;
    pli_sums     first; /* losses of the first clock on own rows: how the run began */
    double       validation_loss, validation_accuracy, load_seconds, train_seconds,
        idle_seconds /* the part of train_seconds spent waiting */;
    int32_t      deaths;     /* the caller has heard of so many */
    int64_t      best;       /* epoch, from 1, whose weights are the model's; 0: none was chosen */
    bool         stopped_early, converged;
    double       gap;        /* of a solver that can tell it (plait_report.gap) */
    int64_t      kept; /* clock of the last checkpoint; -1: none */
    plait_error  unkept; /* why the last checkpoint that was due was not written; code 0: it was */
    int64_t      turns; /* epochs of the loop in which one pass is made, of a solver whose workers take turns; else 0 */
    int64_t      epochs_done, clocks_done, clocks_skipped; /* skipped: completed without this worker */
    bool         interrupted, paced;
    uint64_t     pace_ns; /* pace.c measures from this moment */
    double       far_seconds, end_seconds;
    uint64_t     cpu_ns, training_ns, training_bytes; /* CPU time at the run's begin; time and bytes sent when
                                                         training began */
    pli_comm_times times; /* of training */
    pli_curve   *curve;   /* NULL: the caller wants none */
};

/** In how many stages or columns the model is cut, one a rank (--cut, --columns); 1: it is whole. */
static inline int32_t pli_run_stages(const pli_run *run) {
    return run->opts->cut > 1 ? run->opts->cut : run->opts->columns > 1 ? run->opts->columns : 1;
}
/** In which order micro-batches go through it. Columns need each other's sums, so all go forward first. */
static inline const char *pli_run_pipeline(const pli_run *run) {
    return run->opts->pipeline != NULL ? run->opts->pipeline : run->opts->columns > 1 ? "gpipe" : "1f1b";
}
/** How many workers have rows of their own. They come first; later stages of a cut model follow, or the spares. */
static inline int32_t pli_run_holders(const pli_run *run) {
    return (plait_comm_workers(run->comm) - run->opts->spares) / pli_run_stages(run);
}
/** Says to those who ask (plait doctor) that the rank waits for rows of a pipe, if one of the files is a pipe; NULL: it
 *  goes on. */
void pli_run_awaits(pli_run *run, const plait_data_opts *files);
/** Can the worker come to have rows? Of a cut model only the ranks of stage 0 can, those of spare replicas included
 *  (learn/net/stages.h says which ranks these are). */
static inline bool pli_run_takes_rows(const pli_run *run) {
    const int32_t stages = pli_run_stages(run), rank = plait_comm_rank(run->comm), holders = pli_run_holders(run);
    const int32_t spare = rank - stages * holders; /* its number among the spares; < 0: it is none */
    return rank < holders || (spare >= 0 && spare < run->opts->spares / stages);
}
static inline bool pli_run_is_spare(const pli_run *run) {
    return plait_comm_rank(run->comm) >= plait_comm_workers(run->comm) - run->opts->spares;
}

/** Within which share of its least value the objective is to end, of a solver that converges. Doubles tell no less than
 *  1e-12. */
static inline double pli_run_tolerance(const pli_run *run) {
    return isnan(run->opts->tolerance) ? 1e-4 : fmax(run->opts->tolerance, 1e-12);
}

/** Has the caller asked the run to stop? */
static inline bool pli_run_stopped(const pli_run *run) {
    return run->opts->stop != NULL && __atomic_load_n(run->opts->stop, __ATOMIC_RELAXED) != 0;
}

/** Does the run end at the end of this epoch because of that? A run that writes checkpoints ends after a clock instead,
 *  with a checkpoint of it (pli_keep_clock). */
static inline bool pli_run_stops_here(const pli_run *run) { return run->keep == NULL && pli_run_stopped(run); }

/** Has a worker died since *absent workers were missing (pli_comm_absent)? Then a sum over the workers lacks its part,
 *  and all must add up again. Sets *absent to the number now. */
static inline bool pli_run_again(const pli_run *run, int32_t *absent) {
    const int32_t before = *absent;
    *absent = pli_comm_absent(run->comm);
    return *absent != before;
}

/** Was any worker told to stop? Then all hear it. Collective over the workers. */
static inline plait_status pli_run_hear(pli_run *run, bool *stop_out) {
    double stopped = pli_run_stopped(run);
    PLI_TRY(plait_comm_allreduce(run->comm, &stopped, 1, PLAIT_F64, PLAIT_MAX));
    *stop_out = stopped > 0;
    return PLAIT_OK;
}

/* --- learners ----------------------------------------------------------------------------------------------------- */

/** All of Plait's own learners, NULL-ended (learners.c). */
const plait_learner *const *pli_learners(void);
/** The learner of this name, sought among the program's own first; NULL: none. unknown: the error for that case. */
const plait_learner *pli_learner_find(const char *name, const plait_learner *own, int32_t n_own);
plait_status pli_learner_unknown(const char *name, const plait_learner *own, int32_t n_own, plait_error *err);

/** Notes what kind of model it is, and what the learner demands of the settings; solver: NULL, or its demands,
 *  too. ways and needs: the learner's, or those that its check has set for this run. */
void pli_learner_note(const plait_learner *learner, uint32_t ways, plait_properties needs, const pli_solver *solver,
                      pli_above *above);

/* --- options ------------------------------------------------------------------------------------------------------ */

static inline pli_rule_scope pli_run_rules(const pli_run *run) {
    return (pli_rule_scope){ .own = run->opts->rules, .n_own = run->opts->n_rules };
}
/** Fails with EMISMATCH on every worker if text ("name value" lines) differs between workers; the error names rank and
 *  line. Collective. */
plait_status pli_agree_text(plait_comm *comm, const char *what, const char *text, plait_error *err);
/** Is the text the same on all workers, judged by its hash? Collective: every worker gets the same answer. */
plait_status pli_agree_is_same(plait_comm *comm, const char *text, bool *same_out);

/** Auto chose a solver that these data do not suit: the learner's update rule trains instead. Called in prepare, alike
 *  on all workers. why: for the record. */
void pli_run_leave_solver(pli_run *run, const char *why);
/** Auto chose a solver, and these data suit another one better: takes that, if it goes with all settings. Called in
 *  prepare, alike on all workers. why: for the record. */
bool pli_run_try_solver(pli_run *run, const pli_solver *solver, const char *why);
/** The update rule of the run's tables; NULL: they have none. */
const char *pli_run_rule(const pli_run *run);

/* How a table travels. The texts are borrowed from the run's options; filter "": none. */
typedef struct pli_travel {
    const char *topology, *consistency, *filter;
} pli_travel;
pli_travel pli_run_travel(const pli_run *run, const char *table);

/* What the choice of topology and consistency must know of a table that the learner will create. */
typedef struct pli_planned {
    const char *name;
    bool        sparse; /* rows grow by key, or travel by key: hybrid treats the table as sparse */
    bool        grows;  /* a row exists once its key was updated */
    bool        hinted; /* a refusal suggests --table: the run's setting was meant for another table */
    const char *absent; /* why the table is not in this run; NULL: it is */
} pli_planned;
/** Fills the options of a table with the run's update rule and sharding; the caller sets name, rows and columns. Makes
 *  run->rule. */
plait_status pli_run_table_opts(pli_run *run, plait_table_opts *opts_out);
/** Creates a table with the settings for its name, and adds it to run->made. Collective. */
plait_status pli_run_make_table(pli_run *run, const plait_table_opts *opts, plait_table **table_out);
/** Adds a table that the caller has created, with settings of its own, to run->made. */
plait_status pli_run_add_table(pli_run *run, plait_table *table);
/** Drops it, with the terms of plait_table_drop. */
plait_status pli_run_drop_table(pli_run *run, plait_table **table);
/** plait_training_table with what most learners set; the others have their defaults. initial: NULL: zeros. */
plait_status pli_run_table(pli_run *run, const char *name, plait_type type, int64_t rows, int64_t cols,
                           const void *initial, plait_table **table_out);
/** Can each table train with its topology and consistency? Adds each to run->table. Errors: EREFUSED, ENAME,
 *  EINVAL. */
plait_status pli_tables_settle(pli_run *run, const pli_planned *planned, int32_t n);

/** Writes the learner's own options with their final values, as "--clusters 8" lines. */
void pli_run_add_settings(const pli_run *run, pli_text *text);
/** Notes, if the option of the learner's own was given, that it has no effect in this run. why: "on ..., which ..." */
void pli_run_note_unused(const pli_run *run, const char *option, const char *why);
/** Record and model show n as the value of the learner's own option, in place of a 0 that leaves it to the learner. */
void pli_run_took(pli_run *run, const char *option, int64_t n);
/** The value that record and model show for an own option: what was taken, else as given, else its preset. */
const char *pli_run_shown(const pli_run *run, const char *option);

/* --- data --------------------------------------------------------------------------------------------------------- */

/** An own block to look at before training; of a stream, its sample. */
static inline const pli_block *pli_run_block(const pli_run *run, int32_t own) {
    return run->stream ? &run->sample[own] : pli_dataset_block(run->data, own);
}
/** The first rows of each own block of a stream. Not collective. */
plait_status pli_sample_take(pli_run *run);

/** Counts rows and entries, numbers the classes, and tells the user what the labels are. The run calls it for a learner
 *  without `more`; a learner with `more` calls it in its prepare, or counts by itself. Collective. */
plait_status pli_rows_settle(pli_run *run);
/** Describes the label of a data set to the user, as "price (first column), numbers" (classes 0). */
plait_status pli_label_describe(const pli_dataset *data, int64_t classes, char text[PLI_LABEL_TEXT], plait_error *err);

/** Is this row of the data set held back for validation, or trained on? user: the run. */
bool pli_run_holds_back(void *user, int64_t row);
bool pli_run_trains(void *user, int64_t row);

/** EINVAL if the rows have no labels (--label none), which model `name` learns from. */
plait_status pli_label_need(const pli_schema *schema, const char *name, plait_error *err);

/** The schema of a model to start from. */
const pli_schema *pli_model_schema(const plait_model *model);
/** The number of the model's class with this label, as rows have it (plait/data.h); -1: it knows none. */
int64_t pli_model_class(const plait_model *model, double label);

/* --- time --------------------------------------------------------------------------------------------------------- */

/** Charges simulated time for a pass over the batch that costs `columns` products an entry, and a sum of `values`. */
void pli_run_charge(const pli_run *run, const pli_batch *batch, int64_t columns, int64_t values);
/** Charges simulated time for the parsing of a stream's batch. */
void pli_run_charge_parsed(const pli_run *run, const pli_batch *batch);
/** How many entries the rows of a part have. */
int64_t pli_part_entries(const pli_part *part);

/** Adds a step (or phase) to the trace: it began at *at_ns (pli_comm_span_begin) and ends now, when the next one
 *  begins. */
static inline void pli_run_step(const pli_run *run, const char *name, uint64_t *at_ns) {
    *at_ns = pli_comm_span_end(run->comm, PLI_SPAN_STEP, name, run->clocks_done, *at_ns);
}
static inline void pli_run_phase(const pli_run *run, const char *name, int64_t number, uint64_t *at_ns) {
    *at_ns = pli_comm_span_end(run->comm, PLI_SPAN_PHASE, name, number, *at_ns);
}

/** Tells the caller of ranks that have died. Only the leading worker does. */
void pli_run_tell_lost(pli_run *run);

#endif
