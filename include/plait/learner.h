/* plait/learner.h - a learner is one table of functions.
 *
 * plait_train knows what it fits by this table alone, whether the learner is Plait's own ('plait help models') or a
 * program's (plait_train_opts.learners). The learner says what it needs and computes; the run does the rest: it opens
 * and cuts the data, makes the job, hands out batches, ends clocks, writes checkpoints, goes on when a rank dies, and
 * saves the model. So one learner trains under every topology, consistency and transport that its needs allow.
 *
 *     check      options, before anything is read
 *     prepare    the data are there, and all ranks agree on what they mean: sizes, defaults, what does not fit
 *     begin      tables are created (plait_training_table), memory is made
 *     step       a worker's clock: get, compute over the batch's rows, inc; the run ends the clock
 *     epoch      after each epoch, past a barrier: is it enough?
 *     finish     what the tables hold becomes the model's values (plait_model_put)
 *     end        gives back what begin made; called once, also after an error
 *
 *     open       a model's values are there, of a run or of a file: are they a model?
 *     predict    what the model says of rows
 *     measure    what it is worth on them, as sums; figures names what is made of the sums
 *
 * Each function runs on every worker. One that calls a collective is called by all workers in the same order. What a
 * worker has computed is lost when its rank dies; what it has put into tables is not: state that a run must not lose
 * lies in tables, and a step computes it from them. docs/learners.md shows one from begin to end.
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
typedef struct plait_rows     plait_rows;     /* some rows of a data set that a model is used on        */
struct pli_export;

/* --- what a learner needs, and what it is given --------------------------------------------------------------- */

/* What labels are to it. Where it needs none, those of the data are read as any label and not looked at. */
typedef enum plait_label_need {
    PLAIT_LABELS_NONE,    /* rows have none, or they are ignored                                               */
    PLAIT_LABELS_CLASSES, /* names: plait_training_class numbers them                                               */
    PLAIT_LABELS_NUMBERS, /* a value to come near                                                              */
    PLAIT_LABELS_EITHER   /* the learner decides in prepare                                                    */
} plait_label_need;

/* How it goes over the rows: flags, added up. */
enum {
    PLAIT_LEARNER_PASSES = 1,    /* a clock is a whole pass: the batch is all rows of the worker, in their order */
    PLAIT_LEARNER_ONE_EPOCH = 2, /* one pass over the rows, in batches, is all; --epochs above 1 is refused      */
    PLAIT_LEARNER_STREAMS = 4,   /* its batches may come from a stream, whose rows are seen once                 */
    PLAIT_LEARNER_STARTS = 8,    /* it may begin from one of its models (--init-model), also without update rule */
    PLAIT_LEARNER_VALIDATES = 16 /* rows held back tell what it is worth (--validation), also without update rule */
};

/* An option of the learner's own: `--name value`, PLAIT_NAME, a line of a config file, a key of the record. */
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
    const char       *preset;  /* its value where it is not given, "8"; NULL: it must be given           */
    const char       *help;    /* "how many clusters"                                                    */
    double            low, high; /* of COUNT and NUMBER, both included; high 0: none                     */
    const char       *names;   /* of NAME: "one two three"                                               */
} plait_learner_option;

/* A table of the model, for who says how it travels (--table NAME:...). */
typedef struct plait_learner_table {
    const char *name, *what;
    int         small; /* 1: a row or two: filters and sharded states do not touch it */
} plait_learner_table;

/* What a step tells of its rows: the run shows the mean loss while it goes. */
typedef struct plait_step_sums {
    double loss, weight, rows; /* sums over the batch's rows: losses times weights, weights, how many */
} plait_step_sums;

enum { PLAIT_MEASURES = 16, PLAIT_MODEL_VALUES = 128, PLAIT_ROW_COLS = 65536 };

typedef struct plait_learner {
    size_t                      size;    /* sizeof(plait_learner)                                         */
    const char                 *name;    /* of --model                                                    */
    const char                 *summary; /* one line: what it fits                                        */
    const char                 *help;    /* more lines, for 'plait help NAME'; may be NULL                */
    plait_label_need            labels;
    uint32_t                    ways;    /* PLAIT_LEARNER_...                                             */
    plait_properties            needs;   /* of each pair of topology and consistency; 0: it trains under all  */
    const char                 *optimizer; /* the update rule of its tables by default, "adagrad"; NULL: they add */
    const plait_learner_option *options; /* its own, to a name of NULL; NULL: none                        */
    const plait_learner_table  *tables;  /* to a name of NULL; NULL: known when the run has begun         */
    size_t                      state_bytes; /* of plait_training_state: zeroed                           */
    plait_type                  row_type; /* of what it keeps for each row, plait_training_row_values     */
    int64_t                     row_cols; /* values a row; 0: it keeps none                               */
    size_t                      model_bytes; /* of plait_model_state: zeroed                              */

    /* --- a run; each but step and finish (or train) may be NULL */
    plait_status (*check)(plait_training *run);
    plait_status (*prepare)(plait_training *run);
    /** Data that are judged besides are open, too: what is measured over rows before the first clock. */
    plait_status (*measured)(plait_training *run);
    plait_status (*begin)(plait_training *run);
    /** rows of the batch may be 0 (then it reads, so as to keep in step, or does nothing). Gets before it incs. It may
     *  be called again in the same clock, with rows of a worker that has died. */
    plait_status (*step)(plait_training *run, const plait_batch *batch, plait_step_sums *step_out);
    /** *done_out: this epoch is the last. All workers must say the same: decide from what tables hold. */
    plait_status (*epoch)(plait_training *run, int64_t epoch, int *done_out);
    plait_status (*finish)(plait_training *run, plait_model *model);
    void (*end)(plait_training *run);
    /** Instead of begin to epoch: a loop of its own over plait_training_job. */
    plait_status (*train)(plait_training *run);
    const plait_function *functions; /* server functions of its tables [n_functions]; user: plait_training's pool */
    int32_t               n_functions;

    /* --- a model */
    /** Values are there: EFORMAT, saying what, if they are none of this learner. */
    plait_status (*open)(plait_model *model, plait_error *err);
    void (*close)(plait_model *model);
    /** Columns of an answer; 0: the learner has none of this kind. */
    int64_t (*width)(const plait_model *model, plait_answer answer);
    /** out [rows, width]. Any thread, several at once. */
    plait_status (*predict)(const plait_model *model, plait_answer answer, const plait_rows *rows, double *out,
                            plait_error *err);
    /** How many sums measure adds up. NULL: PLAIT_MEASURES. */
    int64_t (*measures)(const plait_model *model);
    /** Adds to sums [measures] what figures needs of these rows. Any thread. NULL: nothing is measured. */
    plait_status (*measure)(const plait_model *model, const plait_rows *rows, double *sums, plait_error *err);
    /** Names and values out of the sums over all rows; answers how many, at most PLAIT_FIGURES. "loss", "accuracy",
     *  "auc", "rmse" and "mae" are keys that every report has: they stand there, and not among the figures. */
    int32_t (*figures)(const plait_model *model, const double *sums, plait_figure *figures);
    /** The model for other runtimes. NULL: refused by name. For learners of Plait's own. */
    plait_status (*export_onnx)(const plait_model *model, struct pli_export *to, plait_error *err);
    const struct pli_learner_more *more; /* what learners of Plait's own say besides (learn/learner.h); NULL */
} plait_learner;

/* --- a run, for the learner ------------------------------------------------------------------------------------- */

/** The learner's own memory, learner->state_bytes of it. */
PLAIT_API void *plait_training_state(plait_training *run);
PLAIT_API plait_comm *plait_training_comm(const plait_training *run);
/** From begin on. */
PLAIT_API plait_job *plait_training_job(const plait_training *run);
/** Where an error's text goes; for plait_training_fail. */
PLAIT_API plait_error *plait_training_error(const plait_training *run);
/** Puts status and text there; answers status. */
PLAIT_API plait_status plait_training_fail(plait_training *run, plait_status status, const char *text);

/** The value of an own option: as given, else its preset. name must be one of learner->options. */
PLAIT_API double      plait_training_number(const plait_training *run, const char *name);
PLAIT_API int64_t     plait_training_count(const plait_training *run, const char *name);
PLAIT_API const char *plait_training_name(const plait_training *run, const char *name);

/** From prepare on: of the whole data set, the same on all workers. features: 1 + the highest column, 0 where features
 *  grow by key. rows: those trained on. classes: 0 unless the learner's labels are classes. */
PLAIT_API int64_t  plait_training_rows(const plait_training *run);
PLAIT_API int64_t  plait_training_features(const plait_training *run);
PLAIT_API int64_t  plait_training_classes(const plait_training *run);
PLAIT_API uint64_t plait_training_seed(const plait_training *run);
/** The number of a row's class, 0 .. classes - 1; -1: none that is known. */
PLAIT_API int64_t plait_training_class(const plait_training *run, double label);
/** How many epochs this run may take; the clocks of an epoch. */
PLAIT_API int64_t plait_training_epochs(const plait_training *run);
PLAIT_API int64_t plait_training_clocks(const plait_training *run);

/** In begin: a table of the model, created with the run's settings for a table of this name. It is in checkpoints, has
 *  replicas, and is dropped with the run. Collective over the workers. */
PLAIT_API plait_status plait_training_table(plait_training *run, const plait_table_opts *opts, plait_table **table_out);

/** The rows of a batch, 0 .. n - 1. The row's arrays are borrowed until the step returns. */
PLAIT_API int64_t      plait_batch_rows(const plait_batch *batch);
PLAIT_API plait_status plait_batch_row(const plait_batch *batch, int64_t i, plait_row *row_out);
/** In step: the values that the learner keeps for row i of the batch, learner->row_cols of learner->row_type. They are
 *  zeros at first. The step reads and writes them; the next step that is given the row finds what this one left, and a
 *  checkpoint has them, so that a run resumed by other numbers of workers does too. They are this worker's alone. When
 *  a worker dies (replicas 2) its rows begin with zeros again at whoever takes them over: the learner must then make
 *  them anew from the row and the tables. NULL: the learner keeps none, or there is no such row. */
PLAIT_API void *plait_training_row_values(plait_training *run, const plait_batch *batch, int64_t i);

/* --- a model, for the learner ----------------------------------------------------------------------------------- */

/** In finish: a named array of the model, copied; it is saved as a tensor of this name. rank <= 4. type F32, F64 or
 *  I64. */
PLAIT_API plait_status plait_model_put(plait_model *model, const char *name, plait_type type, int32_t rank,
                                       const int64_t *shape, const void *data, plait_error *error_out);
/** An own option that the model was made with, as plait_training_number has them. */
PLAIT_API double plait_model_number(const plait_model *model, const char *name);
PLAIT_API void  *plait_model_state(const plait_model *model);

PLAIT_API int64_t      plait_rows_count(const plait_rows *rows);
PLAIT_API plait_status plait_rows_row(const plait_rows *rows, int64_t i, plait_row *row_out);

#ifdef __cplusplus
}
#endif
#endif
