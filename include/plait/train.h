/* plait/train.h - fits a model (plait/model.h) to data: options, what a run tells, its record.
 *
 * The objective is (1/n) sum weight_i loss_i + l2/2 ||w||^2 + l1 ||w||_1, the intercept never penalised, w in
 * the data's own units (scaling inside the learner is undone). Every *_loss is a weighted mean without penalty.
 */
#ifndef PLAIT_TRAIN_H
#define PLAIT_TRAIN_H

#include <plait/comm.h>
#include <plait/data.h>
#include <plait/op.h>
#include <plait/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_model plait_model;

/* What a run reports while it goes; called on one rank only (the lowest living one). */
typedef struct plait_progress {
    int64_t epoch, epochs, clock, clocks; /* clocks: of the whole run, 0: not known (stream) */
    double  loss;                         /* mean over the rows seen lately                  */
    double  validation_loss;              /* NaN: none                                       */
    double  rows_per_second, seconds, seconds_left;
    int     epoch_ended;
    double  validation_accuracy;          /* of classes; NaN: none                           */
    double  learning_rate;                /* of the clock, as the update rule takes it; NaN: there is none (lbfgs) */
    double  bytes;                        /* that this rank has sent since training began    */
} plait_progress;

/* What a table of the model holds at the end of an epoch, in the data's own units. */
typedef struct plait_weights {
    const char *table;        /* "w", "b"; of a net "w1", "b1", ...; as 'plait help MODEL' lists them */
    int64_t     epoch, clock; /* so many have ended                                                  */
    plait_type  type;         /* PLAIT_F32 or PLAIT_F64                                              */
    int64_t     n;
    const void *values;       /* [n]; borrowed for the call                                          */
} plait_weights;

/* What --balance dynamic came to. */
typedef struct plait_shares {
    int64_t        epoch; /* from 1 */
    int32_t        workers;
    const int64_t *rows;  /* [workers] that each has computed in the epoch; borrowed */
} plait_shares;

/* A moment of a run: what the weights were worth that the reporting worker read then. */
typedef struct plait_point {
    int64_t clock;     /* that it had ended                                                                   */
    double  seconds;   /* since training began                                                                */
    double  bytes;     /* sent since then by all workers' ranks, each up to its own end of that clock         */
    double  objective; /* on all rows trained on                                                              */
    double  train_loss;
} plait_point;

/* A checkpoint of a run that is complete (plait/checkpoint.h). */
typedef struct plait_checkpointed {
    const char *dir, *folder;   /* it lies in dir/folder; borrowed for the call                  */
    int64_t     clock;          /* that had ended                                                */
    int64_t     bytes;          /* that the calling rank has written                             */
    double      seconds;        /* from its begin until it could be resumed from                 */
    double      stall_seconds;  /* the longest that the calling rank stood still for it at once  */
} plait_checkpointed;

/* How one table of a model travels, where not as the others. */
typedef struct plait_table_setting {
    const char *name;                           /* as 'plait help MODEL' lists them                              */
    const char *topology, *consistency, *filter; /* NULL: the run's                                              */
} plait_table_setting;

/* The value of an own option of a learner: "clusters", "8". */
typedef struct plait_learner_setting {
    const char *name, *value;
} plait_learner_setting;

struct plait_learner;
struct plait_report;
typedef struct plait_train_opts {
    size_t                 size;          /* set by plait_train_opts_init                                   */
    const char            *model;         /* "logistic" (default) | "hinge" | "squared" | "huber" | "mlp" |
                                             "cnn" | "lstm" | "graph"                                       */
    const char            *layers;        /* of a net: its hidden widths, "512,256"; NULL: those of init_model,
                                             else the model's own                                          */
    const char            *graph_file;    /* of model "graph": the file that holds it (plait/graph_file.h)   */
    const char *loss; /* of a net: what its scores cost, "logistic" ...; NULL: logistic, or squared where labels
                                             are no classes                                                 */
    const char            *kernels;       /* of a net: "own" or NULL | "onednn", as plait_session_opts has it; needs its
                                             module. How rows are scored afterwards is not changed            */
    const plait_data_opts *data;          /* what to read; each rank reads its own blocks                    */
    const plait_data      *memory;        /* or a data set in memory, the same on all ranks of the process   */
    const plait_data_opts *test;          /* NULL: none                                                     */
    const plait_data      *test_memory;
    const char            *validation;    /* a file, or a fraction "0.1" split off by seed; NULL: none       */
    const char            *topology, *consistency; /* NULL: the job's defaults                              */
    const char            *aggregate;     /* "host" or NULL, as plait_job_opts has it                     */
    const char            *filter;        /* filters on messages, "key-cache,fixed8", as plait_job_opts has it; NULL:
                                             none */
    const plait_table_setting *tables;    /* [n_tables]: of these tables other than by the three above; may be NULL */
    int32_t                n_tables;
    int32_t                backup;        /* as plait_job_opts has it; default 0                             */
    int32_t                replicas;      /* copies of each shard: 1 (default), or 2: any one rank may die once tables
                                             are there, and the run goes on; as plait_job_opts has it       */
    int32_t                spares;        /* with replicas 2: the last `spares` workers have no rows, and take the
                                             place of who dies; as plait_job_opts has it; default 0. The model is
                                             that of a run of the other workers alone                       */
    int                    staleness_aware; /* as plait_rule_opts has it                                    */
    int                    exact;         /* 1: the model's bits depend on neither topology, transport nor (up to 64)
                                             workers: gradients are formed block by block and summed as
                                             plait_table_opts.exact has it */
    const struct plait_learner *learners; /* learners of the program's own [n_learners], for `model`, beside Plait's
                                             (plait/learner.h); the same on every rank                     */
    int32_t                n_learners;
    const plait_learner_setting *settings; /* [n_settings] of the learner's own options, as 'plait help MODEL' lists
                                              them                                                         */
    int32_t                n_settings;
    const char            *optimizer;     /* "adagrad" ... | "lbfgs"; NULL: the default                     */
    const plait_rule      *rules; /* update rules of the program's own [n_rules], for `optimizer`, as plait_job_opts has
                                             them */
    int32_t                n_rules;
    const char            *optimizer_state; /* "whole" on every worker; "sharded": each holds that of its part of the
                                               dense tables, as plait_table_opts has it; NULL: whole */
    int64_t                epochs;        /* 0: the default                                                 */
    int64_t                batch;         /* 0: the default, from the number of rows                        */
    double                 learning_rate; /* 0: the default                                                 */
    double                 momentum;      /* of the rule momentum; default 0.9                               */
    const char            *schedule;      /* "constant" | "invsqrt" | "cosine"; NULL: cosine over more than one epoch */
    double                 l1, l2;        /* l2 NaN: 1/n                                                     */
    int                    no_intercept;
    double                 huber_delta;   /* default 1                                                      */
    const char            *class_weight;  /* "balanced" | "K:X,..." | NULL                                   */
    const char            *normalize;     /* "auto" | "none"                                                */
    int64_t                patience;      /* epochs without a better validation loss before stopping; 0: off  */
    uint64_t               seed;
    const char            *init_model;    /* file to start from; NULL: zeros                                */
    const char            *checkpoint;    /* directory to write checkpoints to, which all workers see; NULL: none.
                                             Written beside the training; *stop writes a last one. EIO, ENOSPACE
                                             before the training if nothing can be written there, or a checkpoint
                                             cannot fit; one that fails later is warned of, and the run goes on:
                                             plait_report.checkpoint_failed                                */
    double                 checkpoint_seconds; /* from one to the next; default 300                          */
    int64_t                checkpoint_clocks;  /* instead, where > 0: after each so many clocks              */
    int32_t                checkpoint_keep;    /* complete ones that are kept; default 2                     */
    const char            *resume;        /* directory of checkpoints: go on from the newest that is good; NULL: begin.
                                             With any number of workers, and with the bits of a run that was never
                                             interrupted where these do not depend on that (bsp and exact, or as many
                                             workers). EREFUSED options on which the result depends are others: the
                                             text names the first; ENAME there is no checkpoint; ECHECKSUM none is
                                             good                                                           */
    int                    resume_or_begin; /* 1: begin where resume holds no checkpoint at all              */
    int                    dry_run;       /* check options, files and memory on every rank, then stop        */
    const int             *stop;          /* set non-zero by a signal handler: end after this clock; may be NULL */
    void (*loaded)(void *user);           /* on every worker: all of them have read their data, and none has trained;
                                             from here on *stop is looked at                                */
    void (*progress)(void *user, const plait_progress *progress);
    void (*checkpointed)(void *user, const plait_checkpointed *checkpointed); /* on one rank */
    void (*trained)(void *user, const struct plait_report *report, const plait_model *model); /* on one rank, and
                                             where that one dies on another once more: what was learnt and judged,
                                             before the job ends, so that it is kept whoever dies then. All ranks
                                             give it, or none                                               */
    void (*lost)(void *user, int32_t rank, const char *why); /* on one rank: this one has died, and the run goes on
                                             (replicas)                                                     */
    const char            *balance;       /* "static" (default): each worker keeps its blocks | "dynamic": they go to
                                             who is fast */
    void (*shares)(void *user, const plait_shares *shares); /* dynamic: each epoch that was done, after the last; on one
                                                               rank */
    void *user;
    int64_t curve; /* measure the objective at so many moments of the run, after it; 0: none. Where data streams, or
                      rows grow by key, none can be. Needs memory for as many copies of the weights, at most 64 MiB
                      of them */
    void (*point)(void *user, const plait_point *point); /* each, in order, after the run; on one rank */
    void (*weights)(void                *user,
                    const plait_weights *weights); /* each table, before training (epoch 0) and at the end of each
                                                                  epoch (lbfgs: of the last), on one rank. Set on all
                                                                  ranks or on none: epochs end with a barrier then */
    void (*graph)(void *user, const plait_graph *graph);       /* of a net, before training; on one rank */
} plait_train_opts;

/* A table of a run, as it travelled. */
typedef struct plait_report_table {
    char name[64], topology[32], consistency[48], filter[112];
} plait_report_table;

enum { PLAIT_REPORT_TABLES = 64 };

/* A named figure of a report: "inertia", 1234.5. */
typedef struct plait_figure {
    char   name[32];
    double value;
} plait_figure;
enum { PLAIT_FIGURES = 16 };

/* An own option of a learner as a run had it, given or not: "clusters", "8". A longer value is cut. */
typedef struct plait_option_value {
    char name[32], value[160];
} plait_option_value;
enum { PLAIT_OPTION_VALUES = 16 };

/* The record of a run; NaN where a value does not apply. */
typedef struct plait_report {
    int64_t rows, features, classes, workers, epochs, clocks;
    int64_t spares; /* of the workers: stood ready for who dies */
    char    model[32], transport[32], topology[48], consistency[48], optimizer[32], collective[16];
    double  objective, train_loss, progressive_loss, validation_loss, test_loss, test_accuracy, test_auc, test_rmse,
        test_mae;
    double  load_seconds, train_seconds, cpu_seconds, clocks_per_second;
    double  idle_share; /* of the workers' time in training: waited for others */
    /* of train_seconds, this worker's own: it worked; others were late; messages were made, on their way or taken in
     * (NaN where ranks are processes: then it counts as waiting) */
    double  compute_seconds, wait_seconds, network_seconds;
    int64_t bytes_sent, peak_rss_bytes;
    int64_t updates_dropped, clocks_skipped; /* with backup workers: as plait_job_dropped has it; of all workers; else
                                                -1 */
    char    model_hash[65]; /* of ranks of one process only the first's is filled: a thousand would take seconds */
    int     interrupted; /* 1: ended by *stop */
    int64_t checkpoint;  /* clock of the last checkpoint that the run wrote; -1: none */
    int64_t best_epoch;    /* from 1: its weights had the least validation_loss, and are the model's; -1: none was */
    int     stopped_early; /* 1: by patience; 0: not; -1: nothing was held back */
    int     converged;     /* of lbfgs, 1: its loss fell no more; 0: too few epochs; -1: the optimizer cannot tell */
    char    checkpoint_failed[256]; /* why the last one that was due is not there; empty: it is, or none was due */
    int32_t n_tables;
    plait_report_table tables[PLAIT_REPORT_TABLES]; /* [n_tables] of the model: where topology is hybrid, each has its
                                                       own */
    int32_t n_figures;
    plait_figure figures[PLAIT_FIGURES]; /* [n_figures] of the learner's own: "inertia", and of the test set
                                            "test_inertia"                                                 */
    int32_t n_options;
    plait_option_value options[PLAIT_OPTION_VALUES]; /* [n_options] of the learner's own                       */
    char    label[160]; /* which label was learnt, and what it is: "price (first column), numbers" */
} plait_report;

PLAIT_API void plait_train_opts_init(plait_train_opts *opts);

/** Fits a model. Every worker gets it whole; report_out may be NULL. Errors as of plait_data_read and
 *  plait_table_create, and EDIVERGED the loss is not finite (the text has the remedy), EMISMATCH ranks were
 *  started with different options or data. Collective over all ranks (server ranks serve, and get no model).
 *  The error's text is in plait_comm_error. *model_out is NULL after an error in training; after one in what follows,
 *  as in judging the model on the test set, it is the trained model nevertheless, to be destroyed by the caller. A run
 *  that *stop has ended is not judged: its losses but the progressive one are NaN, and but that of --validation where
 *  it has chosen the weights. */
PLAIT_API plait_status plait_train(plait_comm *comm, const plait_train_opts *opts, plait_report *report_out,
                                   plait_model **model_out);

#ifdef __cplusplus
}
#endif
#endif
