/* plait/train.h - fits a model (plait/model.h) to data: options, reports during the run, and the run's record.
 *
 * The objective is (1/n) sum weight_i loss_i + l2/2 ||w||^2 + l1 ||w||_1. The intercept is never penalised. w is in the
 * data's own units (scaling inside the learner is undone). Every *_loss is a weighted mean without penalty.
 * Threads: plait/fit.h says on which thread each callback of plait_train_opts comes.
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
    int64_t epoch, epochs, clock, clocks; /* epochs, clocks: of the whole run; clocks 0: not known (stream) */
    double  loss;                         /* mean over the rows that this rank saw lately    */
    double  validation_loss;              /* NaN: none                                       */
    double  rows_per_second, seconds, seconds_left;
    int     epoch_ended;
    double  validation_accuracy;          /* NaN: none, or labels are not classes            */
    double  learning_rate;                /* the update rule's rate in this clock; NaN: there is none (lbfgs) */
    double  bytes;                        /* how many this rank has sent since training began */
    const char *topology, *consistency, *optimizer; /* as given or chosen; borrowed for the call */
} plait_progress;

/* What a table of the model holds at the end of an epoch, in the data's own units. */
typedef struct plait_weights {
    const char *table;        /* "w", "b"; in a net "w1", "b1", ...; as 'plait help MODEL' lists them */
    int64_t     epoch, clock; /* how many have ended                                                 */
    plait_type  type;         /* PLAIT_F32 or PLAIT_F64                                              */
    int64_t     n;
    const void *values;       /* [n]; borrowed for the call                                          */
} plait_weights;

/* How --balance dynamic has divided an epoch, or how long the stages of a cut net have worked in it. */
typedef struct plait_shares {
    int64_t        epoch; /* from 1 */
    int32_t        workers;
    const int64_t *rows;  /* [workers]: how many each has computed in the epoch; borrowed      */
    int32_t        stages; /* of a cut net, told apart from the rows; else 0                    */
    const double  *seconds; /* [stages]: how long each has worked, its slowest replica; borrowed */
} plait_shares;

/* A moment of a run: the objective of the weights that the reporting worker read at that moment. */
typedef struct plait_point {
    int64_t clock;     /* the last clock that it had ended                                                    */
    double  seconds;   /* since training began                                                                */
    double  bytes;     /* sent since training began by all workers' ranks, each until it ended that clock     */
    double  objective; /* over all training rows                                                              */
    double  train_loss;
} plait_point;

/* A complete checkpoint of a run (plait/checkpoint.h). */
typedef struct plait_checkpointed {
    const char *dir, *folder;   /* it lies in dir/folder; borrowed for the call                  */
    int64_t     clock;          /* the last clock that had ended                                 */
    int64_t     bytes;          /* of its files                                                 */
    double      seconds;        /* from its begin until a run could resume from it               */
    double      stall_seconds;  /* the longest pause of training at the calling rank             */
} plait_checkpointed;

/* Settings of one table of a model that differ from the run's. */
typedef struct plait_table_setting {
    const char *name;                           /* as 'plait help MODEL' lists the tables                        */
    const char *topology, *consistency, *filter; /* NULL: the run's                                              */
} plait_table_setting;

/* A value for one of the learner's own options: "clusters", "8". */
typedef struct plait_learner_setting {
    const char *name, *value;
} plait_learner_setting;

/* A penalty of a path, when its model is found. */
typedef struct plait_penalty {
    int64_t number, of; /* from 1                                                   */
    double  l1;
    int64_t nonzeros;   /* weights that are not 0, without the intercept            */
    double  objective;  /* at this l1                                               */
    double  gap;        /* how far above its least value it is, as a share of it, at most */
    double  validation_loss; /* NaN: there are no validation rows                   */
} plait_penalty;

struct plait_learner; struct plait_report;
typedef struct plait_train_opts {
    size_t                 size;          /* set by plait_train_opts_init                                   */
    const char            *model;         /* "logistic" (default) | "hinge" | "squared" | "huber" | "quantile" |
                                             "poisson" | "mlp" | "cnn" | "lstm" | "graph"                   */
    const char *layers; /* nets: hidden sizes, input side first, "512,256"; NULL: init_model's, else the default */
    const char            *graph_file;    /* model "graph": the file that holds the graph (plait/graph_file.h) */
    const char *loss; /* nets: the loss of the scores, "logistic" ...; NULL: logistic, or squared if labels are not
                                             classes                                                        */
    const char            *kernels;       /* nets: "own" or NULL | "onednn" (plait_session_opts.kernels); needs its
                                             module. It is used in training only, not to predict              */
    const char *exclude, *train; /* model "graph": lists of the graph's subgraphs, as in plait_session_opts: those left
                        out, and those that alone are trained; NULL: none, all. With an update rule only     */
    int32_t     cut; /* nets: in how many stages the graph is cut by layers. `cut` workers hold a replica together,
                        and workers / cut replicas train; 0 or 1: every worker has all of it (docs/pipelines.md)    */
    int32_t     columns; /* model "mlp": in how many columns the layers are cut: `columns` workers hold a replica
                            together. Sums over columns round otherwise than those of a whole net; 0 or 1: whole. Not
                            with cut                                                                               */
    int64_t     classes; /* labels are 0 .. classes - 1 (at most 2^20), whether rows have all or not; 0: of rows */
    int32_t     micro_batches; /* nets: in how many pieces a worker's (a replica's) rows of a clock go through the
                                  graph; 0: 1. More round a gradient differently                                    */
    const char *place; /* with cut: how nodes get their stage. "layers"; "auto", by simulated time; or a file with
                          places (plait_graph_place_file), to which the search adds those of the other nodes. NULL: the
                          places that the graph keeps, or, where it keeps none, layers (docs/placement.md)         */
    const char *pipeline; /* with cut: in which order they go, "1f1b" (NULL), "gpipe", or "interleaved", where each
                             worker has two stages (plait_session_run_batches)                                      */
    const plait_data_opts *data;          /* what to read; each rank reads its own blocks                    */
    const plait_data      *memory;        /* instead of data: a data set in memory, shared by the process's ranks */
    const plait_data_opts *test;          /* NULL: none                                                     */
    const plait_data      *test_memory;
    const char            *validation;    /* a file, or a fraction "0.1" split off by seed; NULL: none       */
    const char            *topology, *consistency; /* NULL: the job's defaults                              */
    const char            *aggregate;     /* "host" or NULL: plait_job_opts.aggregate                     */
    const char            *filter;        /* filters on messages, "key-cache,fixed8" (plait/job.h); NULL: none */
    const plait_table_setting *tables;    /* [n_tables]: tables with other topology, consistency or filter; may be
                                             NULL                                                           */
    int32_t                n_tables;
    int32_t                backup;        /* plait_job_opts.backup; default 0                                */
    int32_t                replicas;      /* plait_job_opts.replicas, copies of each shard: 1 (default), or 2: once
                                             tables exist any one rank may die, and the run goes on; 3: two */
    int32_t                spares;        /* plait_job_opts.spares, with replicas 2: the last `spares` workers have no
                                             rows, and take the places of workers that die; default 0. The model is that
                                             of a run without them                                          */
    int                    staleness_aware; /* plait_rule_opts.staleness_aware                              */
    int                    exact;         /* 1: the model's bits depend on neither topology, transport nor workers:
                                             gradients are computed block by block, summed exactly (plait/table.h) */
    const struct plait_learner *learners; /* the program's own learners [n_learners], for `model`, beside Plait's
                                             (plait/learner.h); the same on every rank                     */
    int32_t                n_learners;
    const plait_learner_setting *settings; /* [n_settings] of the learner's own options, as 'plait help MODEL' lists
                                              them                                                         */
    int32_t                n_settings;
    const char            *optimizer;     /* "auto" or NULL: chosen by model, data and consistency
                                             (plait_report.optimizer_why); an update rule: "adagrad" ...; a
                                             solver: "lbfgs", "newton"                                      */
    const plait_rule      *rules; /* the program's own update rules [n_rules], for `optimizer` (plait_job_opts.rules) */
    int32_t                n_rules;
    const char            *optimizer_state; /* "whole" or NULL: every worker holds it all; "sharded": each worker holds
                                               that of its part of the dense tables (plait_table_opts) */
    int64_t                epochs;        /* 0: the default                                                 */
    int64_t                batch;         /* 0: the default, from the number of rows                        */
    double                 learning_rate; /* 0: the default                                                 */
    double                 momentum;      /* for the rule momentum; default 0.9                              */
    double                 tolerance;     /* a solver that converges ends when the objective is within this share of its
                                             least value, as far as it can tell; NaN: 1e-4; below 1. Doubles tell no
                                             less than 1e-12, so that is what a smaller one means. kmeans: when a
                                             pass lowers the inertia by no more than this share; NaN: 1e-5    */
    const char            *schedule;      /* "constant" | "invsqrt" | "cosine"; NULL: cosine over more than one epoch */
    double                 l1, l2;        /* l2 NaN: 1/n; less for a net of small numbers (docs/models.md)   */
    int                    no_intercept;
    double                 huber_delta;   /* default 1                                                      */
    double                 quantile;      /* model "quantile": which one, above 0 and below 1; default 0.5  */
    const char            *class_weight;  /* "balanced" | "K:X,..." | NULL                                   */
    const char            *normalize;     /* "auto" | "none"                                                */
    int64_t                patience;      /* epochs without a better validation loss before stopping; 0: off  */
    uint64_t               seed;
    const char            *init_model;    /* file to start from; NULL: zeros                                */
    const char            *checkpoint;    /* directory to write checkpoints to, which all workers see; NULL: none.
                                             They are written while training goes on; *stop writes a last one. EIO,
                                             ENOSPACE before training if the directory cannot be written, or a
                                             checkpoint would not fit. If a later one fails, the run warns and goes
                                             on: plait_report.checkpoint_failed                            */
    double                 checkpoint_seconds; /* from one to the next; default 300                          */
    int64_t                checkpoint_clocks;  /* > 0: one after each so many clocks, instead of by seconds  */
    int32_t                checkpoint_keep;    /* how many complete ones are kept; default 2                 */
    const char            *resume;        /* directory of checkpoints: resume from the newest good one; NULL: begin
                                             anew. The number of workers may differ. Under bsp the model has the bits of
                                             an uninterrupted run, if exact is 1 or the number of workers is the same.
                                             EREFUSED an option on which the result depends has changed (the first is
                                             named); ENAME there is no checkpoint; ECHECKSUM none is good     */
    int                    resume_or_begin; /* 1: begin anew if resume holds no checkpoint at all            */
    int                    dry_run;       /* check options, files and memory on every rank, then stop        */
    const int             *stop;          /* set non-zero by a signal handler: end after this clock; may be NULL */
    void (*loaded)(void *user);           /* called on every worker when all have read their data and none has trained;
                                             from then on *stop is heeded                                   */
    void (*progress)(void *user, const plait_progress *progress);
    void (*checkpointed)(void *user, const plait_checkpointed *checkpointed); /* on one rank */
    void (*trained)(void *user, const struct plait_report *report, const plait_model *model); /* on one rank, before
                                             the job ends: the evaluated model, so that it can be saved even if ranks
                                             die then. If this rank dies, it is called again on another. All ranks set
                                             it, or none                                                    */
    void (*lost)(void *user, int32_t rank, const char *why); /* on one rank: `rank` has died, and the run goes on */
    const char            *balance;       /* "static" (default) | "dynamic": faster workers take over blocks */
    void (*shares)(void *user, const plait_shares *shares); /* dynamic, or cut: of each complete epoch; on one rank */
    void *user;
    int64_t curve; /* at how many moments of the run to measure the objective, after the run; 0: none. Impossible if
                      data streams or rows grow by key. It needs as many copies of the weights, at most 64 MiB */
    void (*point)(void *user, const plait_point *point); /* for each moment, in order, after the run; on one rank */
    void (*weights)(void *user, const plait_weights *weights); /* called for each table, before training (epoch 0) and
                                                                  at each epoch's end (lbfgs: the last's), on one rank.
                                                                  All ranks set it or none: epochs end with a barrier */
    void (*graph)(void *user, const plait_graph *graph);       /* nets: called before training, on one rank */
    int64_t names_bytes; /* hashed features: how much of the data's text is looked through, once training has ended, for
                            the names of those with a weight; 0: none, they stay hashes; default 16 MiB    */
    int64_t path; /* models "squared" and "logistic", optimizer "cd": how many penalties to fit, from the least l1 at
                     which all weights are 0 down to l1, or to a thousandth of it if l1 is 0. The model is that of the
                     last, or with validation rows that of the least validation loss. 0: l1 alone            */
    int64_t together; /* optimizer "cd" of these models: how many weights move together in a step (plait/schedule.h); 0:
                         several workers take 8, and one worker, or any where products of columns pay, takes passes */
    const char *order;  /* of them: "priority" or NULL | "random" | "round-robin"                          */
    double interference; /* the most that weights of a step may interfere, as the sum of |correlation| of their columns;
                            NaN: 0.5. From 1 on they may drive each other up                               */
    void (*penalty)(void *user, const plait_penalty *penalty); /* called for each penalty of a path, on one rank */
    int32_t     slots; /* plait_job_opts.slots: the last `slots` workers come as `scale` says; at the end all are in */
    const char *scale; /* "100:4,200:3": 4 workers from about clock 100 on, 3 from clock 200 on; NULL: as they begin */
    int64_t sampled; /* "mlp", "cnn", "lstm": how many classes of the softmax a clock draws, at most: rows are scored on
                        these and their own, so a clock costs no more with more classes. Test and validation rows are
                        judged by all classes. 0: all classes count (docs/models.md)                        */
    int64_t move_rate; /* plait_job_opts.move_rate: bytes a second; 0: no bound */
} plait_train_opts;

/* A table of a run, with the settings that it had. */
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

/* One of the learner's own options as a run had it, given or by default: "clusters", "8". A longer value is cut. */
typedef struct plait_option_value {
    char name[32], value[160];
} plait_option_value;
enum { PLAIT_OPTION_VALUES = 16 };

/* The record of a run; NaN where a value does not apply. */
typedef struct plait_report {
    int64_t rows, features, classes, workers, epochs, clocks;
    int64_t spares; /* how many of the workers were spares */
    char    model[32], transport[32], topology[48], consistency[48], optimizer[32], collective[16];
    double  objective, train_loss, progressive_loss, validation_loss, test_loss, test_accuracy, test_auc, test_rmse,
        test_mae;
    double  load_seconds, train_seconds, cpu_seconds, clocks_per_second;
    double  idle_share; /* fraction of the workers' training time in which they waited for others */
    /* the parts of this worker's train_seconds: it computed; it waited for others; messages were made, sent or received
     * (NaN if ranks are processes: that time then counts as waiting) */
    double  compute_seconds, wait_seconds, network_seconds;
    int64_t bytes_sent, peak_rss_bytes;
    int64_t updates_dropped, clocks_skipped; /* with backup workers: what plait_job_dropped counts, over all workers;
                                                else -1 */
    char    model_hash[65]; /* filled for the first rank of a process only: a thousand would take seconds */
    int     interrupted; /* 1: ended by *stop */
    int64_t checkpoint;  /* clock of the last checkpoint that the run wrote; -1: none */
    double  oob_loss, oob_accuracy; /* of a forest: of each row, by the trees that have not seen it; NaN: none */
    int64_t best_epoch;    /* from 1: the epoch with the least validation_loss, whose weights the model has; -1: none */
    int     stopped_early; /* 1: by patience; 0: no; -1: there were no validation rows */
    int     converged;     /* of a solver: 1: it ended within the tolerance, 0: too few epochs; -1: the optimizer
                              cannot say */
    double  gap;           /* of a solver: how far above its least value the objective ended, as a share of it, as far
                              as the solver can tell; infinity: it cannot yet; without a solver NaN */
    char    optimizer_why[256]; /* why this optimizer was chosen; empty: it was named */
    char    checkpoint_failed[256]; /* why the last checkpoint that was due failed; empty: none failed */
    int32_t n_tables;
    plait_report_table tables[PLAIT_REPORT_TABLES]; /* [n_tables]; with hybrid each has its topology */
    int32_t n_figures;
    plait_figure figures[PLAIT_FIGURES]; /* [n_figures] of the learner: "inertia"; of the test set "test_inertia" */
    int32_t n_options;
    plait_option_value options[PLAIT_OPTION_VALUES]; /* [n_options] of the learner's own options               */
    char    label[160]; /* the label that was learnt, and its kind: "price (first column), numbers" */
    int64_t replicas;   /* copies of each shard: 1, 2 that survive the death of a rank, 3 */
    int64_t columns;    /* in which layers are cut; 1: they are whole */
    char    pair_why[256], columns_why[256]; /* why `plait train` chose the pair; columns; empty: they were named */
    int64_t shards_moved, moved_bytes; /* with slots: plait_job_moved, over all workers; else -1 */
} plait_report;

PLAIT_API void plait_train_opts_init(plait_train_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_train_opts_init_sized(plait_train_opts *opts, size_t size);
#define plait_train_opts_init(opts) plait_train_opts_init_sized(opts, sizeof(plait_train_opts))

/** Fits a model. Every worker gets the whole model; report_out may be NULL. Errors: those of plait_data_read and
 *  plait_table_create; EDIVERGED the loss is not finite (the text has the remedy); EMISMATCH ranks were started with
 *  different options or data. Collective over all ranks (server ranks serve, and get no model). The error's text is in
 *  plait_comm_error. *model_out is NULL after an error in training. After a later error, for example when the model is
 *  evaluated on the test set, *model_out is the trained model nevertheless, which the caller must destroy. A run that
 *  *stop has ended is not evaluated: its losses are NaN, except the progressive loss, and the validation loss if it has
 *  chosen the weights. */
PLAIT_API plait_status plait_train(plait_comm *comm, const plait_train_opts *opts, plait_report *report_out,
                                   plait_model **model_out);

#ifdef __cplusplus
}
#endif
#endif
