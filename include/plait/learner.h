/* plait/learner.h - a learner is one table of functions.
 *
 * plait_train knows its learner by this table alone, whether the learner is Plait's own ('plait help models') or a
 * program's (plait_train_opts.learners). The learner says what it needs and computes; the run does the rest: it opens
 * and cuts the data, makes the job, hands out batches, ends clocks, writes checkpoints, goes on when a rank dies, and
 * saves the model. So one learner trains under every topology, consistency and transport that its needs allow.
 *
 *     check      checks options, before anything is read
 *     prepare    the data are read, and all ranks agree on what they mean: settles sizes and defaults, or refuses
 *     begin      creates tables (plait_training_table) and memory
 *     step       a worker's part of a clock: get, compute over the batch's rows, inc; the run ends the clock
 *     epoch      after each epoch, past a barrier: was it the last?
 *     finish     puts what the tables hold into the model (plait_model_put)
 *     end        gives back what begin made; called once, also after an error
 *
 *     open       the values of a model are there, from a run or from a file: checks that they are a model
 *     predict    answers for rows
 *     measure    adds up sums over rows; figures makes named figures of the sums
 *
 * Each function runs on every worker. One that calls a collective is called by all workers in the same order. When a
 * rank dies, the memory of its worker is lost, but what it has put into tables is not. So keep state that a run must
 * not lose in tables, and let the step compute from them. docs/learners.md shows a learner from begin to end.
 */
#ifndef PLAIT_LEARNER_H
#define PLAIT_LEARNER_H

#include <plait/data.h>
#include <plait/model.h>
#include <plait/property.h>
#include <plait/status.h>
#include <plait/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_training plait_training; /* one run as one worker sees it, while plait_train lasts */
typedef struct plait_batch    plait_batch;    /* a worker's rows of one clock                           */
typedef struct plait_rows     plait_rows;     /* rows of a data set that a model is used on             */
struct pli_export;

/* --- what a learner needs, and what it is given --------------------------------------------------------------- */

/* Which labels the learner needs. If it needs none, the data may have labels: they are read, and ignored. */
typedef enum plait_label_need {
    PLAIT_LABELS_NONE,    /* rows have none, or they are ignored          */
    PLAIT_LABELS_CLASSES, /* names: plait_training_class numbers them     */
    PLAIT_LABELS_NUMBERS, /* a value to predict                           */
    PLAIT_LABELS_EITHER   /* the learner decides in prepare               */
} plait_label_need;

/* How the learner goes over the rows: flags, added up. */
enum {
    PLAIT_LEARNER_PASSES = 1,    /* a clock is a whole pass: the batch is all rows of the worker, in their order */
    PLAIT_LEARNER_ONE_EPOCH = 2, /* it takes one pass over the rows, in batches; --epochs above 1 is refused     */
    PLAIT_LEARNER_STREAMS = 4,   /* its batches may come from a stream, whose rows are seen once                 */
    PLAIT_LEARNER_STARTS = 8,    /* it has no update rule, and yet may begin from a model (--init-model)         */
    PLAIT_LEARNER_VALIDATES = 16, /* it has no update rule, and yet judges rows held back (--validation)         */
    PLAIT_LEARNER_STEPS = 32     /* it has no update rule, and yet takes --learning-rate, --l1, --l2 and --loss  */
};

/* An option of the learner's own: `--name value`, PLAIT_NAME, a line of a config file, and a key of the record. */
typedef enum plait_option_kind {
    PLAIT_OPTION_COUNT, /* an integer                       */
    PLAIT_OPTION_NUMBER,
    PLAIT_OPTION_NAME,  /* one of names                     */
    PLAIT_OPTION_FLAG,  /* 0 or 1                           */
    PLAIT_OPTION_TEXT,  /* any text                         */
    PLAIT_OPTION_FILE   /* a file that is read: the model does not keep its name */
} plait_option_kind;
typedef struct plait_learner_option {
    const char       *name;    /* "clusters"                                                             */
    plait_option_kind kind;
    const char       *preset;  /* its value if the user gives none, "8"; NULL: the user must give one    */
    const char       *help;    /* "how many clusters"                                                    */
    double            low, high; /* of COUNT and NUMBER, both included; high 0: none                     */
    const char       *names;   /* of NAME: "one two three"                                               */
} plait_learner_option;

/* A table of the model; --table NAME:... says how it travels. */
typedef struct plait_learner_table {
    const char *name, *what;
    int         small; /* 1: a row or two, too small for filters and sharded state */
} plait_learner_table;

/* What a step reports of its rows; the run shows their mean loss as progress. */
typedef struct plait_step_sums {
    double loss, weight, rows; /* sums over the batch's rows: of weight times loss, of weights; their number */
} plait_step_sums;

enum { PLAIT_MEASURES = 16, PLAIT_MODEL_VALUES = 128, PLAIT_ROW_COLS = 65536 };

typedef struct plait_learner {
    size_t                      size;    /* sizeof(plait_learner)                                         */
    const char                 *name;    /* of --model                                                    */
    const char                 *summary; /* one line: what it fits                                        */
    const char                 *help;    /* more lines, for 'plait help NAME'; may be NULL                */
    plait_label_need            labels;
    uint32_t                    ways;    /* PLAIT_LEARNER_...                                             */
    plait_properties            needs;   /* what a pair of topology and consistency must promise; 0: nothing */
    const char                 *optimizer; /* the update rule of its tables by default, "adagrad"; NULL: they add */
    const plait_learner_option *options; /* its own, ended by a name of NULL; NULL: none                  */
    const plait_learner_table  *tables;  /* ended by a name of NULL; NULL: not known before prepare       */
    size_t                      state_bytes; /* of plait_training_state: zeroed                           */
    plait_type                  row_type; /* of the values it keeps for each row, plait_training_row_values */
    int64_t                     row_cols; /* values a row; 0: it keeps none                               */
    size_t                      model_bytes; /* of plait_model_state: zeroed                              */

    /* --- a run; each but step and finish (or train) may be NULL */
    plait_status (*check)(plait_training *run);
    plait_status (*prepare)(plait_training *run);
    /** Test and validation data are open, too: measures over rows what it must know before the first clock. */
    plait_status (*measured)(plait_training *run);
    plait_status (*begin)(plait_training *run);
    /** Gets first, then incs. A batch may have no rows: then the step reads, to keep in step with the others, or does
     *  nothing. It may be called again in the same clock, with the rows of a worker that has died. */
    plait_status (*step)(plait_training *run, const plait_batch *batch, plait_step_sums *step_out);
    /** *done_out 1: this epoch was the last. All workers must say the same, so decide by what the tables hold. */
    plait_status (*epoch)(plait_training *run, int64_t epoch, int *done_out);
    plait_status (*finish)(plait_training *run, plait_model *model);
    void (*end)(plait_training *run);
    /** Replaces begin, step and epoch: a loop of the learner's own over plait_training_job. */
    plait_status (*train)(plait_training *run);
    /** Its server functions [n_functions], for plait_table_call and plait_table_call_range. A learner with functions
     *  needs PLAIT_FUNCTIONS of a pair. If one updates, it needs PLAIT_WHOLE_CLOCKS too, and replicas are refused.
     *  Call one that updates from epoch or finish, which all workers run between the same two clocks. */
    const plait_function *functions;
    int32_t               n_functions;

    /* --- a model */
    /** Checks the values of the model: EFORMAT, with the reason, if they are not a model of this learner. */
    plait_status (*open)(plait_model *model, plait_error *err);
    void (*close)(plait_model *model);
    /** Columns of an answer; 0: the learner has none of this kind. */
    int64_t (*width)(const plait_model *model, plait_answer answer);
    /** out [rows, width]. Any thread, several at once. */
    plait_status (*predict)(const plait_model *model, plait_answer answer, const plait_rows *rows, double *out,
                            plait_error *err);
    /** How many sums measure adds to. NULL: PLAIT_MEASURES. */
    int64_t (*measures)(const plait_model *model);
    /** Adds to sums [measures] what figures needs from these rows. Any thread. NULL: nothing is measured. */
    plait_status (*measure)(const plait_model *model, const plait_rows *rows, double *sums, plait_error *err);
    /** Makes named figures of the sums over all rows; returns how many, at most PLAIT_FIGURES. Every report has keys
     *  for "loss", "accuracy", "auc", "rmse" and "mae": a figure of such a name goes there. */
    int32_t (*figures)(const plait_model *model, const double *sums, plait_figure *figures);
    /** Writes the model as ONNX. NULL: export refuses the model by name. Only for Plait's own learners. */
    plait_status (*export_onnx)(const plait_model *model, struct pli_export *to, plait_error *err);
    const struct pli_learner_more *more; /* Plait's own learners say more (learn/learner.h); NULL */
} plait_learner;

/* --- a run, for the learner ------------------------------------------------------------------------------------- */

/** The learner's own memory, learner->state_bytes of it. */
PLAIT_API void *plait_training_state(plait_training *run);
PLAIT_API plait_comm *plait_training_comm(const plait_training *run);
/** The job, from begin on. */
PLAIT_API plait_job *plait_training_job(const plait_training *run);
/** Where the text of an error goes. */
PLAIT_API plait_error *plait_training_error(const plait_training *run);
/** Sets that error to status and text; returns status. */
PLAIT_API plait_status plait_training_fail(plait_training *run, plait_status status, const char *text);

/** The value of one of learner->options: as given, else its preset. */
PLAIT_API double      plait_training_number(const plait_training *run, const char *name);
PLAIT_API int64_t     plait_training_count(const plait_training *run, const char *name);
PLAIT_API const char *plait_training_name(const plait_training *run, const char *name);

/** From prepare on: figures of the whole data set, the same on all workers. rows: those trained on. features: 1 + the
 *  highest column, 0 if features grow by key. classes: 0 unless the learner's labels are classes. */
PLAIT_API int64_t  plait_training_rows(const plait_training *run);
PLAIT_API int64_t  plait_training_features(const plait_training *run);
PLAIT_API int64_t  plait_training_classes(const plait_training *run);
PLAIT_API uint64_t plait_training_seed(const plait_training *run);
/** The number of a label's class, 0 .. classes - 1; -1: an unknown label. */
PLAIT_API int64_t plait_training_class(const plait_training *run, double label);
/** How many epochs this run may take, and how many clocks an epoch has. */
PLAIT_API int64_t plait_training_epochs(const plait_training *run);
PLAIT_API int64_t plait_training_clocks(const plait_training *run);

/** In begin: creates a table of the model, with the run's settings for a table of this name. Checkpoints hold it, it
 *  has replicas, and it goes when the run ends. Collective over the workers. */
PLAIT_API plait_status plait_training_table(plait_training *run, const plait_table_opts *opts, plait_table **table_out);

/** The rows of a batch, 0 .. n - 1. The row's arrays are borrowed until the step returns. */
PLAIT_API int64_t      plait_batch_rows(const plait_batch *batch);
PLAIT_API plait_status plait_batch_row(const plait_batch *batch, int64_t i, plait_row *row_out);
/** In step: the values that the learner keeps for row i of the batch, learner->row_cols of learner->row_type. They are
 *  zeros at first. The step reads and writes them; the next step that gets the row finds what this one left.
 *  Checkpoints hold them, so a run resumed with another number of workers finds them, too. No other worker sees them;
 *  with balance dynamic they go with the row, between two epochs.
 *  When a worker dies (replicas 2), the worker that takes over its rows begins with zeros, and the learner must make
 *  the values anew from the row and the tables. NULL: the learner keeps none, or there is no such row. */
PLAIT_API void *plait_training_row_values(plait_training *run, const plait_batch *batch, int64_t i);

/* --- a model, for the learner ----------------------------------------------------------------------------------- */

/** In finish: adds a named array to the model, copied; it is saved as a tensor of this name. rank <= 4. type F32, F64
 *  or I64. */
PLAIT_API plait_status plait_model_put(plait_model *model, const char *name, plait_type type, int32_t rank,
                                       const int64_t *shape, const void *data, plait_error *error_out);
/** An option of the learner's own with which the model was trained, as plait_training_number returns it. */
PLAIT_API double plait_model_number(const plait_model *model, const char *name);
PLAIT_API void  *plait_model_state(const plait_model *model);

PLAIT_API int64_t      plait_rows_count(const plait_rows *rows);
PLAIT_API plait_status plait_rows_row(const plait_rows *rows, int64_t i, plait_row *row_out);

#ifdef __cplusplus
}
#endif
#endif
