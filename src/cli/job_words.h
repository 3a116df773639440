/* job_words.h - a command whose words are its own options among train's: compare, cv, tune, plan. */
#ifndef PLI_CLI_JOB_WORDS_H
#define PLI_CLI_JOB_WORDS_H

#include "cli/settings.h"

/** Reads the command's own options into own, and all others, as train reads them, into job. false: the command is done
 *  with exit code *code_out (it has printed help or an error). After true the caller frees both opts. */
bool pli_job_words_read(const pli_command *command, int argc, char *const *argv, void *own, pli_opts **own_opts_out,
                        pli_train_settings *job, pli_opts **job_opts_out, int *code_out);
/** Was one of these options of train [NULL ends them] given by a flag? Then it prints that the option is for a single
 *  run, and returns true. */
bool pli_job_words_refuse(const pli_command *command, const pli_opts *job_opts, const char *const *names);
/** Checks that no launcher has started this process as one of several, of which each would do the whole. why: what the
 *  one process does. false: it has printed an error. */
bool pli_job_words_check_alone(const pli_command *command, const pli_train_settings *job, const char *why);
/** Checks what all runs of a job read: there are data, and none that can be read only once. false: it has printed an
 *  error. */
bool pli_job_words_check_data(const pli_command *command, const pli_train_settings *job);

#endif
