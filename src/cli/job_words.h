/* job_words.h - a command whose words are its own options among train's: compare, cv, tune, plan. */
#ifndef PLI_CLI_JOB_WORDS_H
#define PLI_CLI_JOB_WORDS_H

#include "cli/settings.h"

/** Reads the command's own options into own, and all others, as train reads them, into job. false: the command is done
 *  with exit code *code_out (it has printed help or an error). After true the caller frees both opts. */
bool pli_job_words_read(const pli_command *command, int argc, char *const *argv, void *own, pli_opts **own_opts_out,
                        pli_train_settings *job, pli_opts **job_opts_out, int *code_out);
/** Was an option given by a flag that makes sense for a single run only? Every such command refuses some, and this one
 *  names [NULL ends them]. Then it prints so, and returns true. */
bool pli_job_words_refuse(const pli_command *command, const pli_opts *job_opts, const char *const *names);
/** Copies the item of a list at *at, up to its comma, and moves *at behind it; false: there is none, or it is too long
 *  for item [room]. */
bool pli_job_words_item(const char **at, char *item, size_t room);

typedef struct pli_job_pair {
    char topology[48], consistency[48];
} pli_job_pair;
/** Calls add for each topology of a list with each consistency of another, in their order. false: a name is none, a
 *  pair is named twice, or add was false; an error has been printed. */
bool pli_job_words_pairs(const pli_command *command, const char *topologies, const char *consistencies,
                         bool (*add)(void *user, const pli_job_pair *pair), void *user);
/** Checks that no launcher has started this process as one of several, of which each would do the whole. why: what the
 *  one process does. false: it has printed an error. */
bool pli_job_words_check_alone(const pli_command *command, const pli_train_settings *job, const char *why);
/** Checks what all runs of a job read: there are data, and none that can be read only once. false: it has printed an
 *  error. */
bool pli_job_words_check_data(const pli_command *command, const pli_train_settings *job);

/* The files of a command's own options. NULL: not given. */
typedef struct pli_job_files {
    const char *report, *folds_from, *trials; /* trials: of --trials-file */
    const char *out; /* of --out, if the command saves a model */
} pli_job_files;
/** Checks that the files which the command writes are different, and none that it or the runs read, and that the report
 *  is not "-". --out may be --init-model. false: it has printed an error. */
bool pli_job_words_check_files(const pli_command *command, const pli_train_settings *job, const pli_job_files *own);
/** Adds an object of JSON: the options of the job that were given, by name, without those that change no result. */
void pli_job_words_json(const pli_opts *job_opts, const pli_train_settings *job, const char *key, pli_text *text);

#endif
