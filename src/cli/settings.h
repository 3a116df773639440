/* settings.h - the structs into which the commands' options are read, and their conversion to the library's options. */
#ifndef PLI_CLI_SETTINGS_H
#define PLI_CLI_SETTINGS_H

#include <plait/learner.h>

#include "cli/cli.h"

/* What data to read, and how; shared by train, predict and eval. */
typedef struct pli_input {
    pli_text_list data;
    const char   *format, *index_base, *header, *label, *weight_column, *text_columns, *delimiter;
    const char   *interactions, *ngram;
    int64_t       hash_bits, threads, window, spill_limit, blocks;
    bool          cache;
} pli_input;

/* The value of a learner's own option; the kind of its row says which field has it. */
typedef union pli_own_value {
    bool        flag;
    int64_t     count;
    double      number;
    const char *name;
} pli_own_value;
enum { PLI_OWN_VALUES = 64 };

typedef struct pli_train_settings {
    pli_input     in;
    pli_own_value own[PLI_OWN_VALUES]; /* the learners' own options, in the order of their rows */
    pli_text_list table;
    const char   *model, *test, *validation, *transport, *topology, *consistency, *aggregate, *filter, *optimizer,
        *schedule, *class_weight;
    const char *normalize, *init_model, *out, *metrics, *events, *trace, *tensorboard, *config, *reduce, *balance,
        *cluster, *collective, *optimizer_state, *layers, *graph, *exclude, *train, *loss, *kernels, *pipeline, *place,
        *checkpoint, *checkpoint_every, *resume, *order;
    const char *workers_text, *scale; /* MIN:MAX, or the number of workers */
    const char *columns_text;         /* the number of columns, or auto    */
    int64_t     move_rate; /* bytes a second */
    int64_t     least; /* workers that are in from the first; workers: all, with slots */
    int64_t     workers, servers, epochs, batch, patience, seed, replicas, spares, backup, curve, names, cut,
        columns, classes, sampled, micro_batches, path, together, dashboard;
    double      learning_rate, momentum, tolerance, l1, l2, huber_delta, quantile, interference;
    uint64_t    timeout_ns, heartbeat_ns;
    bool        no_intercept, staleness_aware, json, dry_run, quiet;
} pli_train_settings;

/* Options for every model; pli_rows_with_learners adds the learners' own options after the model's group. */
extern const pli_opt pli_train_rows[];

/* What 'plait tune' tries of an option, by model (ranges.c). */
typedef struct pli_opt_range {
    const char *option, *models; /* models: separated by blanks */
    const char *tried;           /* as --try has it: "1e-8..1", "0.5..1:linear", "32|64|128,64" */
} pli_opt_range;
/** The last row's option is NULL. */
extern const pli_opt_range pli_train_ranges[];
bool pli_opt_range_is_of(const pli_opt_range *range, const char *model);

/** Copies rows, adds the learners' own options, each name once, and makes the learners' names the choices of --model.
 *  The result is one block of memory, which pli_free frees. NULL: no memory. */
pli_opt *pli_rows_with_learners(const pli_opt *rows, const plait_learner *const *learners);
/** The learner's own option of this name; NULL: there is none. */
const plait_learner_option *pli_own_option_find(const char *model, const char *name);
/** Is the value a 0 that stands for no bound, or for what the learner chooses? Texts leave it out. */
bool pli_own_option_leaves(const plait_learner_option *option, const char *value);
/** Is the row one of those options? */
bool pli_row_is_own(const pli_opt *row);
/** Checks that all learners' options that were given belong to the model. false: not all do; it has printed which. */
bool pli_own_options_check(const pli_train_settings *settings, const pli_opts *opts);
/** The model to train: --graph FILE alone means graph. */
const char *pli_train_model(const pli_train_settings *settings, const pli_opts *opts);

/** Reads the options of train, as pli_cli_read does (command: the one whose help is printed), and refuses by name
 *  values that come with later versions. */
bool pli_train_settings_read(const pli_command *command, int argc, char *const *argv, pli_train_settings *settings,
                             pli_opts **opts_out, int *code_out);

enum { PLI_PLAN_TABLES = 16 };

/* The library's option structs. They borrow from settings, and point into the plan, which must not be moved. */
typedef struct pli_train_plan {
    plait_comm_opts  comm;
    plait_data_opts  data, test;
    plait_train_opts train;
    plait_table_setting table[PLI_PLAN_TABLES]; /* [train.n_tables] from --table */
    plait_learner_setting own[PLI_OWN_VALUES];  /* [train.n_settings]          */
    char             own_text[PLI_OWN_VALUES][32]; /* texts of numbers, for own */
    char             words[2048];            /* [words_bytes] texts for table   */
    size_t           words_bytes;
} pli_train_plan;

/** Fills plan. false: it has printed an error; the exit code is PLI_EXIT_USAGE. */
bool pli_train_plan_make(const pli_train_settings *settings, const pli_opts *opts, const plait_log *log,
                         pli_train_plan *plan);

/** Fills the plan's settings with the learner's own options. */
void pli_plan_own_options(const pli_train_settings *settings, const pli_opts *opts, pli_train_plan *plan);
/** Fills the plan's tables from the values of --table, each of which may set several things. false: it has printed an
 *  error. */
bool pli_plan_tables(const pli_text_list *given, pli_train_plan *plan);

/** Adds notes, a line each, on options that have no effect together with the others. */
void pli_train_notes(const pli_train_settings *settings, const pli_opts *opts, pli_text *text);
/** Does effects.c know when the option has an effect? It must, for each option of train. */
bool pli_train_effect_is_known(const char *option);

/** The value of --label if it may be a file; NULL: it is none. */
const char *pli_input_label_file(const pli_input *in);
/** Fills the options of an input, paths, seed and log among them. */
void pli_input_opts(const pli_input *in, const plait_log *log, plait_data_opts *opts);

#endif
