/* base/opts.h - options: a struct, and one table row for each field, from which flags, help, man page, completion,
 * PLAIT_* variables, the config file and the run record all follow.
 *
 * Precedence: flags, PLAIT_* variables, --config file (YAML, the same names), defaults. Every value knows its
 * origin. Only opts.c reads the environment. */
#ifndef PLI_BASE_OPTS_H
#define PLI_BASE_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include <plait/status.h>

typedef enum pli_opt_kind {
    PLI_OPT_FLAG,     /* bool; no value                                                           */
    PLI_OPT_I64,      /* int64_t, within [min, max]                                               */
    PLI_OPT_F64,      /* double, within [min, max]                                                */
    PLI_OPT_TEXT,     /* const char *, owned by the pli_opts; not empty if argument is FILE, DIR or D */
    PLI_OPT_CHOICE,   /* const char *, one of `argument` ("a|b|c"); an error names the nearest */
    PLI_OPT_LIST,     /* pli_text_list: may be given several times; a variable has one item a line */
    PLI_OPT_DURATION, /* uint64_t nanoseconds: "30s", "500ms", "2m", plain number = seconds       */
    PLI_OPT_BYTES,    /* int64_t: "500M", "4G"; K, M, G and T are powers of 1024                  */
    PLI_OPT_LATER     /* named in the contract, not available yet: refused by name with `help` */
} pli_opt_kind;

typedef struct pli_text_list {
    const char **item;
    int64_t      n;
} pli_text_list;

/* Rows are static const; a table ends with a row whose name is NULL. */
typedef struct pli_opt {
    const char  *name;     /* "learning-rate": flag --learning-rate, variable PLAIT_LEARNING_RATE   */
    pli_opt_kind kind;
    size_t       offset;   /* of the field in the target struct                                   */
    const char  *preset;   /* default as text; NULL: unset (zeroed field)                         */
    const char  *argument; /* "N", "FILE", "sgd|adam": shown in help; NULL for flags              */
    const char  *help;     /* one line, lower case, no full stop; NULL: an internal option, never shown */
    double       min, max; /* for numbers; both 0: no bound                                       */
    const char  *group;    /* heading in help: "data", "model", "run", ...                        */
} pli_opt;

/** Do help, man page and completion show the option? */
static inline bool pli_opt_is_shown(const pli_opt *row) { return row->kind != PLI_OPT_LATER && row->help != NULL; }

typedef enum pli_origin { PLI_FROM_DEFAULT, PLI_FROM_FILE, PLI_FROM_VARIABLE, PLI_FROM_FLAG } pli_origin;

typedef struct pli_opts pli_opts; /* owns the texts that fields of target point to */

/** Reads argv (without program and command) into target according to rows. Defaults come first, then the file that the
 *  option "config" names (if rows have it and a flag or variable sets it), then variables, then flags.
 *  Options and positional arguments may come in any order; "--" ends the options; "--name=value" and "--name value"
 *  both work (a value that begins with "--" needs the first form). "-h" or "--help" anywhere sets *help_out; then
 *  target holds the defaults and nothing else is read. Words that are no options go to rest (NULL: they are refused).
 *  An empty variable counts as unset. On failure the fields of rows are zeroed.
 *  Errors: ENAME unknown option or config key (the nearest is named), EINVAL a bad value (the text says what was
 *  expected), EREFUSED a PLI_OPT_LATER option, EIO/EFORMAT the config file (file:line). */
plait_status pli_opts_read(const pli_opt *rows, int argc, char *const *argv, void *target, pli_text_list *rest,
                           bool *help_out, pli_opts **opts_out, plait_error *err);
/* A configuration file that another table of options shares. */
typedef struct pli_opts_file {
    const pli_opt *beside; /* the other table: its names may stand in the file, and are passed over; NULL: none */
    const char    *path;   /* the file; NULL: the one that the option "config" names */
} pli_opts_file;
/** The same, of a file that is shared; file NULL: it is not. */
plait_status pli_opts_read_shared(const pli_opt *rows, const pli_opts_file *file, int argc, char *const *argv,
                                  void *target, pli_text_list *rest, bool *help_out, pli_opts **opts_out,
                                  plait_error *err);
void         pli_opts_free(pli_opts **opts);

/** The rows by which opts was read. */
const pli_opt *pli_opts_rows(const pli_opts *opts);
/** Gives opts the ownership of rows that were made for this reading (one block of pli_malloc): they are freed with
 *  it. */
void pli_opts_own_rows(pli_opts *opts, pli_opt *rows);

/** Where the value of row `name` came from; *place_out is that place in words ("flag", "PLAIT_SEED", "run.yaml:3"). */
pli_origin pli_opts_origin(const pli_opts *opts, const char *name, const char **place_out);
/** Was the value given, by a flag, a variable or the configuration file? */
bool       pli_opts_is_given(const pli_opts *opts, const char *name);

/** Reads "30s" or "2m" into nanoseconds, as an option of kind DURATION does. false: text is no duration. */
bool pli_parse_duration(const char *text, uint64_t *out);

/** Adds the value of a row in target as the config file would write it. */
void pli_opts_value(const pli_opt *row, const void *target, pli_text *text);

/** Writes help for rows, wrapped to width columns, grouped. */
void pli_opts_help(const pli_opt *rows, int width, pli_text *text);

/** Looks for a variable PLAIT_* that sets no option of tables [n_tables] and is none of others [n_others] (an entry
 *  of others that ends in * stands for all names that begin with it). An empty variable counts as unset. Errors:
 *  ENAME (the nearest is named), ENOMEM. */
plait_status pli_opts_check_variables(const pli_opt *const *tables, size_t n_tables, const char *const *others,
                                      size_t n_others, plait_error *err);

/** The environment without the variables of these rows, for a child process that gets its options another way. It
 *  ends with NULL and borrows its texts; the caller frees it. NULL: no memory. */
char **pli_env_without(const pli_opt *rows);

/** An environment variable, or NULL. Only for variables that are not options (a launcher's, NO_COLOR, HOME). */
const char *pli_env(const char *name);

#endif
