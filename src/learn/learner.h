/* learn/learner.h - the seam: what a run knows of a learner, and a learner of its run.
 *
 * A learner is a plait_learner (plait/learner.h), listed once in learners.c. The run (run/) and the checkpoints (keep/)
 * call what stands in that table and nothing else of a learner; a learner sees the run by what stands here. Loops that
 * several learners share (solve/) are called by the learner that wants them, and know no model: they call back by
 * tables of functions of their own (solve/loop.h, solve/lbfgs.h). Includes go down only:
 *
 *     run/                          the order of it all: options, data, report
 *     learners.c                    the list
 *     linear/  net/  kmeans/ ...    the learners; none includes another
 *     supervised/                   what learners of labelled rows share: labels, losses, scales, judging
 *     solve/                        loops: batch by batch, L-BFGS
 *     keep/                         checkpoints
 *     model/                        the model as an object, its file
 *     learner.h                     this
 */
#ifndef PLI_LEARN_LEARNER_H
#define PLI_LEARN_LEARNER_H

#include <plait/learner.h>
#include <plait/model.h>

#include "base/base.h"
#include "base/json.h"
#include "comm/comm.h"
#include "data/data.h"
#include "learn/loss/metrics.h"
#include "optim/optim.h"
#include "table/pairs/pairs.h"

/* A single pass takes a row's last index for its highest. */
#define PLI_INDEX_TOO_HIGH "row %lld of a streamed pass has indices out of order: give --hash-bits, or --epochs 2"

typedef struct plait_training  pli_run;
typedef struct pli_loop   pli_loop;   /* solve/loop.h  */
typedef struct pli_keep   pli_keep;   /* keep/keep.h   */
typedef struct pli_resume pli_resume; /* keep/keep.h   */
typedef struct pli_curve  pli_curve;  /* solve/curve.c */
typedef struct pli_row_values pli_row_values; /* keep/row_values.h */

enum { PLI_LABEL_TEXT = 160, PLI_TABLES = PLAIT_REPORT_TABLES };

/* An array beside the tables that a checkpoint holds, the same on every worker: [rows, cols], cols 0: [rows]. */
typedef struct pli_kept {
    const char *name, *type; /* "F32", "F64", "U64" */
    int64_t     rows, cols;
    const void *data;
} pli_kept;
enum { PLI_KEPT = 4, PLI_LEARNER_FUNCTIONS = 8 };

/* What a learner of Plait's own says besides; each may be NULL. */
typedef struct pli_learner_more {
    /** The server functions of its tables, on any rank; answers how many, at most PLI_LEARNER_FUNCTIONS. */
    int32_t (*functions)(plait_comm *comm, const plait_train_opts *opts, plait_function *functions_out);
    /** Reads a file of its own before the data; all ranks agree on it. Collective. */
    plait_status (*open_files)(pli_run *run);
    /** Changes what the data are read as. */
    void (*reads)(const pli_run *run, plait_data_opts *files);
    /** May a model to start from be of this run? Looked at when the data are there. EMISMATCH, EREFUSED. */
    plait_status (*check_judged)(pli_run *run, const pli_dataset *data, const char *name);
    /** Is what was learnt finite? Before a model is made of it. */
    plait_status (*finite)(pli_run *run);
    /** Judges the trained model: losses and figures of the report. Collective. */
    plait_status (*judge)(pli_run *run, const plait_model *model, plait_report *report);
    /** What a result depends on besides the options of every run, "--option value" lines. */
    void (*options)(const pli_run *run, pli_text *text);
    /** Its part of the model's description, by base/json.h: pli_json_text(json, "layers", "8"). */
    void (*describe)(const pli_run *run, pli_text *json);
    /** Arrays beside the tables that a checkpoint holds; answers how many. And back, by pli_resume_array. */
    int32_t (*kept)(const pli_run *run, pli_kept kept_out[PLI_KEPT]);
    plait_status (*restore)(pli_run *run);
    /** What values [run->weights] that were read on the way were worth: sums of losses and of weights over all rows,
     *  and the penalty. Collective. */
    plait_status (*worth)(pli_run *run, plait_type type, const void *values, double *loss, double *weight,
                          double *penalty);
    /** The graph that the caller may look at. */
    const plait_graph *(*graph)(const pli_run *run);
    /** What the report says besides: converged, label. */
    void (*report)(const pli_run *run, plait_report *report);
    /** How its models are used and saved, where they are not named values (model/model.h). */
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
    uint32_t                ways;  /* the learner's; its check may say others, where they depend on its options */
    plait_properties        needs; /* as ways */

    /* what was decided; 0 in opts is resolved here */
    const char *optimizer, *topology, *consistency, *schedule; /* the pair: of the first table; schedule NULL:
                                                                  constant */
    bool        balanced; /* blocks change hands: balance dynamic */
    bool        exact;    /* reduce exact: sums block by block, whose bits do not depend on who had which */
    bool        sharded;  /* the rule's state is in parts       */
    bool        lbfgs;    /* the solver: L-BFGS instead of an update rule */
    bool        drops;    /* the learner's graph drops values at random in training */
    int64_t     epochs, batch, clocks; /* clocks: an epoch's. Where only epochs are set by prepare they are a default */
    int64_t     examples; /* that tables count a clock for: as a rule the batch */
    double      rate, l1, l2;
    plait_rule_numbers rule; /* of the tables, made with the first; ops NULL: none */
    int64_t     weights;     /* values of the model; 0 where rows grow by key */
    int32_t     layout;      /* how the learner lays its tables, in its own numbers: a resumed run takes the former
                                one */

    /* data */
    pli_dataset *data, *validation, *test;
    pli_schema  *schema;
    bool         stream;
    int64_t      rows, train_rows, entries; /* of all workers */
    int64_t      features, classes;
    int64_t      train_labels;              /* n of the objective: train_rows, of text windows their labels */
    int64_t      own_entries;
    pli_block   *sample;                    /* [own blocks] of a stream, while it is prepared */
    int64_t      seen_rows, seen_entries;   /* of all workers: those that figures are measured on */
    double       fraction;                  /* of the rows that are held back for validation */
    char         label_text[PLI_LABEL_TEXT]; /* which label, and what it is, for the user; empty: none */
    double      *label;                      /* [classes] values, increasing: of a learner that needs classes */
    plait_model *start;                      /* --init-model */
    int32_t      resume_layout;              /* of the run that it goes on from; -1: none */
    pli_resume  *resume;                     /* the checkpoint that the run goes on from; NULL: it begins */

    /* tables */
    plait_job   *job;
    int32_t      n_made;
    plait_table *made[PLI_TABLES]; /* [n_made] by the learner: kept in checkpoints */
    int32_t      n_tables;
    plait_report_table table[PLI_TABLES]; /* [n_tables] as they travel */

    /* training */
    pli_loop *loop; /* while a batch loop runs */
    pli_keep *keep; /* of a run that writes checkpoints */
    pli_row_values *row_values; /* of a learner that keeps values for each row */
    int64_t   best_epoch; /* of validation, from 0 */
    double    best_loss;

    /* outcome */
    pli_total    progressive;
    pli_sums     first; /* losses of the first clock, own rows: where the run began */
    double       validation_loss, validation_accuracy, load_seconds, train_seconds,
        idle_seconds /* of train_seconds, waiting */;
    int32_t      deaths;     /* told so far */
    int64_t      best;       /* epoch, from 1, whose weights are the model's; 0: none was chosen */
    bool         stopped_early, converged;
    int64_t      kept; /* clock of the last checkpoint; -1: none */
    plait_error  unkept; /* why the last one that was due is not there; code 0: it is */
    int64_t      epochs_done, clocks_done, clocks_skipped; /* skipped: complete without this worker */
    bool         interrupted, paced;
    uint64_t     pace_ns; /* of pace.c: from when on it counts */
    double       far_seconds, end_seconds;
    uint64_t     begun_ns, cpu_ns, training_ns /* when training began */, training_bytes;
    pli_comm_times times; /* of training */
    pli_curve   *curve;   /* NULL: none is asked for */
};

/** The workers that have rows of their own: the first of all. Behind them are the spares. */
static inline int32_t pli_run_holders(const pli_run *run) {
    return plait_comm_workers(run->comm) - run->opts->spares;
}
static inline bool pli_run_is_spare(const pli_run *run) { return plait_comm_rank(run->comm) >= pli_run_holders(run); }

/** Has the caller asked to stop? */
static inline bool pli_run_stopped(const pli_run *run) {
    return run->opts->stop != NULL && __atomic_load_n(run->opts->stop, __ATOMIC_RELAXED) != 0;
}

/** Shall the run end at an epoch's end because of that? One that writes checkpoints ends with a clock and a checkpoint
 *  of it, by pli_keep_clock. */
static inline bool pli_run_stops_here(const pli_run *run) { return run->keep == NULL && pli_run_stopped(run); }

/** Is what the workers have added up since *absent (of pli_comm_absent) short of somebody? Then all do it again. */
static inline bool pli_run_again(const pli_run *run, int32_t *absent) {
    const int32_t before = *absent;
    *absent = pli_comm_absent(run->comm);
    return *absent != before;
}

/* --- learners ----------------------------------------------------------------------------------------------------- */

/** All of Plait's own, NULL-ended (learners.c). */
const plait_learner *const *pli_learners(void);
/** The one of this name, the program's own first; NULL: none. And the error that says so. */
const plait_learner *pli_learner_find(const char *name, const plait_learner *own, int32_t n_own);
plait_status pli_learner_unknown(const char *name, const plait_learner *own, int32_t n_own, plait_error *err);

/** What the learner, and L-BFGS where it is the solver, ask of the settings, and what kind of model it is. ways and
 *  needs: the learner's, or what it has made of them for a run. */
void pli_learner_note(const plait_learner *learner, uint32_t ways, plait_properties needs, bool by_lbfgs,
                      pli_above *above);

/* --- options ------------------------------------------------------------------------------------------------------ */

static inline pli_rule_scope pli_run_rules(const pli_run *run) {
    return (pli_rule_scope){ .own = run->opts->rules, .n_own = run->opts->n_rules };
}
/** Fails with EMISMATCH on every worker if text ("name value" lines) differs between workers, naming rank and line. */
plait_status pli_agree_text(plait_comm *comm, const char *what, const char *text, plait_error *err);
/** Is the text (nearly certainly, by its hash) the same on all workers? Collective: every worker hears the same. */
plait_status pli_agree_is_same(plait_comm *comm, const char *text, bool *same_out);

/* How a table travels: borrowed from the run's options. filter "": none. */
typedef struct pli_travel {
    const char *topology, *consistency, *filter;
} pli_travel;
pli_travel pli_run_travel(const pli_run *run, const char *table);

/* A table that the learner will create, as far as its pair of settings depends on it. */
typedef struct pli_planned {
    const char *name;
    bool        sparse; /* rows grow by key, or travel by key: those topologies that part the two take it for sparse */
    bool        grows;  /* rows are there from the first update of their key on */
    bool        hinted; /* its refusal names --table, since what was said of the run was meant for another */
    const char *absent; /* why it is not in this run; NULL: it is */
} pli_planned;
/** Options of a table of values as the run's update rule, and what was said of its sharding, have it; name, rows and
 *  columns are the caller's. Makes run->rule. */
plait_status pli_run_table_opts(pli_run *run, plait_table_opts *opts_out);
/** Creates it with the settings for a table of its name, and notes it in run->made. Collective. */
plait_status pli_run_make_table(pli_run *run, const plait_table_opts *opts, plait_table **table_out);
/** Do the pairs of all tables train? Notes each in run->table. Errors: EREFUSED, ENAME, EINVAL. */
plait_status pli_tables_settle(pli_run *run, const pli_planned *planned, int32_t n);

/** The learner's own options as they are in the end, "--clusters 8" lines. */
void pli_run_add_settings(const pli_run *run, pli_text *text);
/** Notes, if the option of the learner's own was given, that it has no effect in this run. why: "on ..., which ..." */
void pli_run_note_unused(const pli_run *run, const char *option, const char *why);

/* --- data --------------------------------------------------------------------------------------------------------- */

/** An own block to look at before training: of a stream its sample. */
static inline const pli_block *pli_run_block(const pli_run *run, int32_t own) {
    return run->stream ? &run->sample[own] : pli_dataset_block(run->data, own);
}
/** The first rows of each own block of a stream. Not collective. */
plait_status pli_sample_take(pli_run *run);

/** Counts rows and entries, and numbers the classes; tells what the labels are. The run does it for a learner without
 *  `more`; another calls it in its prepare, or counts by itself. Collective. */
plait_status pli_rows_settle(pli_run *run);
/** Which label a data set has and what it is, for the user: "price (first column), numbers" (classes 0). */
plait_status pli_label_describe(const pli_dataset *data, int64_t classes, char text[PLI_LABEL_TEXT], plait_error *err);

/** Is this row of the data set held back for validation? user: the run. */
bool pli_run_holds_back(void *user, int64_t row);
bool pli_run_trains(void *user, int64_t row);

/** Rows without labels (--label none) are refused by a model that learns from them. name: of the model. EINVAL. */
plait_status pli_label_need(const pli_schema *schema, const char *name, plait_error *err);

/** Of a model to start from. */
const pli_schema *pli_model_schema(const plait_model *model);

/* --- time --------------------------------------------------------------------------------------------------------- */

/** Charges simulated time for a pass over the batch that costs `columns` products an entry, and adds up `values`. */
void pli_run_charge(const pli_run *run, const pli_batch *batch, int64_t columns, int64_t values);
/** The same of a batch that was parsed for its clock. */
void pli_run_charge_parsed(const pli_run *run, const pli_batch *batch);
/** How many values its rows have. */
int64_t pli_part_entries(const pli_part *part);

/** Tells the trace of a step (or phase) that began at *at_ns, by pli_comm_span_begin, and ends now, where the next one
 *  begins. */
static inline void pli_run_step(const pli_run *run, const char *name, uint64_t *at_ns) {
    *at_ns = pli_comm_span_end(run->comm, PLI_SPAN_STEP, name, run->clocks_done, *at_ns);
}
static inline void pli_run_phase(const pli_run *run, const char *name, int64_t number, uint64_t *at_ns) {
    *at_ns = pli_comm_span_end(run->comm, PLI_SPAN_PHASE, name, number, *at_ns);
}

/** Tells the caller of ranks that have died. On one rank. */
void pli_run_tell_lost(pli_run *run);

#endif
