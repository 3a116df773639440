/* cli - the program `plait`: commands, options, progress, exit codes. Data goes to stdout, messages to stderr.
 *
 * A command is one file that defines one pli_command, listed once in commands.c; its table of options drives its
 * help, the man page, the completion, PLAIT_* variables and the config file. */
#ifndef PLI_CLI_H
#define PLI_CLI_H

#include <plait/model.h>

#include "base/base.h"
#include "table/consistency/consistency.h"

enum {
    PLI_EXIT_DONE = 0,
    PLI_EXIT_FAILED = 1,
    PLI_EXIT_USAGE = 2, /* wrong usage, or a refused pair */
    PLI_EXIT_PEERS = 3, /* a peer is lost                 */
    PLI_EXIT_NO = 4,    /* it ran, and the answer is no   */
    PLI_EXIT_INTERRUPTED = 75,
    PLI_EXIT_SIGNAL = 128,
    PLI_EXIT_AT_ONCE = 0x100 /* added by a command that has given its verdict: main ends at once, as after lost peers */
};

typedef struct pli_command {
    const char    *name;
    const char    *usage;                    /* "train --data D [options]"                            */
    const char    *summary;                  /* one line, lower case, no full stop                    */
    const char    *details;                  /* paragraphs for help and man page; NULL: none          */
    const pli_opt *rows;                     /* its own options; pli_command_rows has all of them     */
    bool           trains;                   /* it also takes the options of learners                 */
    pli_opts_file  file;                     /* the configuration file that it shares with train      */
    const char *const *words;                /* its first word is one of these; NULL ends them; NULL: no such word */
    const char *before_names;                /* behind this one of its words stands one of the names; NULL: none */
    const char *const *(*names)(void);       /* these: NULL ends them                                  */
    const char *const *(*more)(const char *word); /* what may follow a first word; NULL, also as answer: not known */
    bool (*takes)(const char *word, const pli_opt *row); /* may it stand behind this first word? NULL: yes */
    int (*run)(int argc, char *const *argv); /* gets the words after its name; returns the exit code */
} pli_command;

/* Each command has its own file. */
extern const pli_command pli_command_train, pli_command_predict, pli_command_transform, pli_command_recommend,
    pli_command_eval, pli_command_inspect, pli_command_export, pli_command_launch, pli_command_audit,
    pli_command_compare, pli_command_cv, pli_command_tune, pli_command_plan, pli_command_doctor, pli_command_graph,
    pli_command_calibrate, pli_command_checkpoint, pli_command_serve, pli_command_config, pli_command_version,
    pli_command_help, pli_command_sample;

/** All commands; NULL ends the list. */
const pli_command *const *pli_commands(void);
/** All options of the command, in one block of memory, which pli_free frees. NULL: no memory. */
pli_opt *pli_command_rows(const pli_command *command);
/** The command with this name; NULL: there is none. */
const pli_command *pli_command_find(const char *name);
/** The program: finds the command and runs it. */
int pli_cli_main(int argc, char *const *argv);

/** Reads a command's options. false: the command is done with exit code *code_out (it has printed help or an error).
 *  rest gets the words that are not options; NULL: such words are refused. After true the caller frees *opts_out; rest
 *  is valid until then. */
bool pli_cli_read(const pli_command *command, int argc, char *const *argv, void *target, pli_text_list *rest,
                  pli_opts **opts_out, int *code_out);

/** Prints one line "plait: ..." to stderr, and returns PLI_EXIT_USAGE. */
int pli_cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/** Prints the error in one line, and returns the exit code for its status. */
int pli_cli_fail(const plait_error *err);
int pli_cli_exit_code(plait_status status);
/** Flushes stdout. Returns code; or, if that fails, prints a line and returns PLI_EXIT_FAILED. If the reader has gone
 *  away (head, less), it prints nothing and returns 128 + SIGPIPE. */
int pli_cli_end(int code);
/** Prints that a name is unknown: "what 'given': ...; did you mean ...?". known [n]. Returns PLI_EXIT_USAGE. */
int pli_cli_unknown(const char *what, const char *given, const char *const *known, size_t n);

/** Adds the manual page (roff) of all commands; the completion script of a shell (completion.h). */
void pli_cli_manual(pli_text *text);
void pli_cli_completion(const char *shell, pli_text *text);
/** The topics of 'plait help': commands, models, settings and their values. Returns how many. */
enum { PLI_CLI_TOPICS_MAX = 128 };
size_t pli_cli_topics(const char *names[PLI_CLI_TOPICS_MAX]);
/** Adds text wrapped to width; blank lines stay. All lines but the first are indented; the caller has begun the first
 *  with `indent` characters. */
void pli_cli_wrap(pli_text *text, const char *words, int indent, int width);
/** The width of help: that of standard output, at most 100. */
int pli_cli_width(void);
/** Adds the help for "pairs", "topology", "consistency", or a name of either, such as "ssp" or "gossip:ring". false:
 *  the name is none of these. */
bool pli_cli_help_choice(const char *name, pli_text *text);
/** Adds the help for "pairs": which settings work together. */
void pli_cli_help_pairs(pli_text *text);
/** Adds the help for "filters", or for one filter, such as "topk" or "topk:0.1". false: the name is neither. */
bool pli_cli_help_filter(const char *name, pli_text *text);
/** Adds the help for a vertex program of this name. false: there is none. */
bool pli_cli_help_program(const char *name, pli_text *text);
/** Adds what the option of this name, without dashes, means; false: no command has it. */
bool pli_cli_help_option(const char *name, pli_text *text);
/** Adds the options that take this word as a value, or what a word of other tools is here. false: none does. */
bool pli_cli_help_value(const char *word, pli_text *text);
/* Adds help for an update rule, a solver, or "optimizer": all of them; false: the name is none. */
bool pli_cli_help_optimizer(const char *name, pli_text *text);
/* Writes these names, and returns how many they are. */
size_t pli_cli_optimizers(const char **names);
/** Sets spec to a consistency with example parameters: "ssp:2". */
void pli_cli_example(const plait_consistency *policy, char spec[PLI_CONSISTENCY_TEXT]);
/** Lists the commands, each with a summary. */
void pli_cli_list(pli_text *text);
/** Help of one command, wrapped to width. */
void pli_cli_help(const pli_command *command, int width, pli_text *text);

/** Prints text to stdout and frees it; false: there was no memory, which it has printed. Control characters other than
 *  newline and tab are escaped as by pli_text_add_printable, because names in the text may come from any file. */
bool pli_cli_print(pli_text *text);
/** Prints a name from a file to stdout, as a part of a line. */
void pli_cli_put(const char *word);

#endif
