/* base/opts.c - where the values of options come from.
 *
 * One table says what can be set; four places can set it, each overruling those before: the default in the table,
 * the configuration file, the variable PLAIT_NAME, the flag --name. Values are applied in that order, and each
 * remembers its place (git's `config --show-origin` is the model). argv is walked twice: first to see whether it
 * asks for help or a configuration file and whether all flags are known, then to apply its values last. Values are
 * read in opts_value.c, the file in opts_yaml.c; help is written in opts_help.c. */
#include "base/opts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/opts_impl.h"
#include "base/os.h"

enum { CONFIG_MAX_BYTES = 1 << 20, VARIABLE_BYTES = 128 };

const char *pli_env(const char *name) { return getenv(name); }

/* --- rows and names ------------------------------------------------------------------------------------ */

const pli_opt *pli_opts_row(const pli_opts *opts, const char *name, size_t length) {
    for (int64_t i = 0; i < opts->n; i++) {
        const char *known = opts->rows[i].name;
        if (strncmp(known, name, length) == 0 && known[length] == '\0') return &opts->rows[i];
    }
    return NULL;
}

plait_status pli_opts_unknown(const pli_opts *opts, const char *who, const char *name, const char *prefix,
                              plait_error *err) {
    size_t n = 0, more = 0;
    while (opts->beside != NULL && opts->beside[more].name != NULL) more++;
    const char **names = pli_array((size_t)opts->n + more, sizeof *names);
    if (names == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for options");
    for (size_t i = 0; i < more; i++)
        if (pli_opt_is_shown(&opts->beside[i])) names[n++] = opts->beside[i].name;
    for (int64_t i = 0; i < opts->n; i++) {
        if (pli_opt_is_shown(&opts->rows[i])) names[n++] = opts->rows[i].name;
    }
    const char *nearest = pli_nearest(name, names, n);
    pli_free(names);
    if (nearest == NULL) return pli_fail(err, PLAIT_ENAME, "%s", who);
    return pli_fail(err, PLAIT_ENAME, "%s; did you mean %s%s?", who, prefix, nearest);
}

/* PLAIT_LEARNING_RATE for learning-rate. */
static void variable_name(const char *name, char variable[VARIABLE_BYTES]) {
    size_t at = 6;
    memcpy(variable, "PLAIT_", at);
    for (; *name != '\0' && at < VARIABLE_BYTES - 1; name++)
        variable[at++] = (char)(*name == '-' ? '_' : toupper((unsigned char)*name));
    variable[at] = '\0';
}

/* --- argv ---------------------------------------------------------------------------------------------- */

struct walk {
    int          argc;
    char *const *argv;
    int          at;       /* index of the next word */
    bool         no_flags; /* after "--" */
};

struct word {
    const pli_opt *row;   /* NULL: not an option */
    const char    *value; /* the option's value, or the word itself */
};

static plait_status flag_value(struct walk *walk, const char *equals, struct word *word, plait_error *err) {
    const pli_opt *row = word->row;
    if (equals != NULL)
        word->value = equals + 1;
    else if (row->kind == PLI_OPT_FLAG || row->kind == PLI_OPT_LATER)
        word->value = "true";
    else if (walk->at < walk->argc && strncmp(walk->argv[walk->at], "--", 2) != 0)
        word->value = walk->argv[walk->at++];
    else
        return pli_fail(err, PLAIT_EINVAL, "--%s wants a value: --%s %s", row->name, row->name,
                        row->argument != NULL ? row->argument : "VALUE");
    return PLAIT_OK;
}

static plait_status next_word(const pli_opts *opts, struct walk *walk, struct word *word, plait_error *err) {
    if (!walk->no_flags && walk->at < walk->argc && strcmp(walk->argv[walk->at], "--") == 0) {
        walk->no_flags = true;
        walk->at++;
    }
    if (walk->at >= walk->argc) return PLAIT_END;
    const char *text = walk->argv[walk->at++];
    *word = (struct word){ .value = text };
    if (walk->no_flags || text[0] != '-' || text[1] == '\0') return PLAIT_OK;
    const char *name = text + (text[1] == '-' ? 2 : 1), *equals = strchr(name, '=');
    size_t      length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    word->row = text[1] == '-' ? pli_opts_row(opts, name, length) : NULL;
    if (word->row != NULL) return flag_value(walk, equals, word, err);

    pli_text who = { .data = NULL }, bare = { .data = NULL };
    pli_text_add(&who, "unknown option %.*s", (int)(length + (size_t)(name - text)), text);
    pli_text_add(&bare, "%.*s", (int)length, name);
    plait_status status = who.failed || bare.failed ? pli_fail(err, PLAIT_ENOMEM, "no memory for options")
                                                    : pli_opts_unknown(opts, who.data, bare.data, "--", err);
    pli_text_free(&who);
    pli_text_free(&bare);
    return status;
}

static bool wants_help(int argc, char *const *argv) {
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) return true;
    }
    return false;
}

/* Checks all flags of argv, and sets *config_out to the last value of --config, if there is one. */
static plait_status check_flags(const pli_opts *opts, int argc, char *const *argv, const char **config_out,
                                plait_error *err) {
    struct walk  walk = { .argc = argc, .argv = argv };
    struct word  word;
    plait_status status;
    while ((status = next_word(opts, &walk, &word, err)) == PLAIT_OK) {
        if (word.row != NULL && strcmp(word.row->name, "config") == 0) *config_out = word.value;
    }
    return status == PLAIT_END ? PLAIT_OK : status;
}

static plait_status read_flags(pli_opts *opts, int argc, char *const *argv, void *target, pli_text_list *rest,
                               plait_error *err) {
    struct walk  walk = { .argc = argc, .argv = argv };
    struct word  word;
    char         who[VARIABLE_BYTES];
    plait_status status;
    while ((status = next_word(opts, &walk, &word, err)) == PLAIT_OK) {
        if (word.row == NULL) {
            if (rest == NULL) return pli_fail(err, PLAIT_EINVAL, "'%s' is not wanted here", word.value);
            if (!pli_opts_append(opts, rest, word.value)) return pli_fail(err, PLAIT_ENOMEM, "no memory for options");
            continue;
        }
        snprintf(who, sizeof who, "--%s", word.row->name);
        PLI_TRY(pli_opts_assign(opts, word.row, target, word.value, PLI_FROM_FLAG, "flag", who, err));
    }
    return status == PLAIT_END ? PLAIT_OK : status;
}

/* --- the other places ---------------------------------------------------------------------------------- */

static plait_status read_defaults(pli_opts *opts, void *target, plait_error *err) {
    for (int64_t i = 0; i < opts->n; i++) {
        const pli_opt *row = &opts->rows[i];
        if (row->kind == PLI_OPT_LATER || row->preset == NULL) continue;
        PLI_TRY(pli_opts_assign(opts, row, target, row->preset, PLI_FROM_DEFAULT, "default", row->name, err));
    }
    return PLAIT_OK;
}

/* An empty variable counts as unset. A list variable has one item on each line. */
static plait_status read_variable(pli_opts *opts, const pli_opt *row, void *target, plait_error *err) {
    char variable[VARIABLE_BYTES];
    variable_name(row->name, variable);
    const char *text = pli_env(variable);
    if (text == NULL || *text == '\0') return PLAIT_OK;
    const char *place = pli_opts_keep(opts, variable);
    char       *copy = (char *)(uintptr_t)pli_opts_keep(opts, text), *next = NULL; /* our own copy, so writable */
    if (place == NULL || copy == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for options");
    if (row->kind != PLI_OPT_LIST)
        return pli_opts_assign(opts, row, target, copy, PLI_FROM_VARIABLE, place, place, err);
    for (char *item = strtok_r(copy, "\n", &next); item != NULL; item = strtok_r(NULL, "\n", &next))
        PLI_TRY(pli_opts_assign(opts, row, target, item, PLI_FROM_VARIABLE, place, place, err));
    return PLAIT_OK;
}

static plait_status read_variables(pli_opts *opts, void *target, plait_error *err) {
    for (int64_t i = 0; i < opts->n; i++) PLI_TRY(read_variable(opts, &opts->rows[i], target, err));
    return PLAIT_OK;
}

static plait_status read_config(pli_opts *opts, const char *flag, void *target, plait_error *err) {
    const char *variable = pli_opts_row(opts, "config", 6) != NULL ? pli_env("PLAIT_CONFIG") : NULL;
    const char *path = flag != NULL ? flag : variable;
    pli_text    text = { .data = NULL };
    if (path == NULL || *path == '\0') return PLAIT_OK;
    plait_status status = pli_read_whole(path, CONFIG_MAX_BYTES, &text, err);
    if (status == PLAIT_OK) status = pli_opts_read_yaml(opts, target, path, text.data, text.length, err);
    pli_text_free(&text);
    return status;
}

/* --- variables that nobody knows ----------------------------------------------------------------------- */

enum { PREFIX = 6 }; /* length of "PLAIT_" */

typedef struct variable {
    char name[VARIABLE_BYTES];
} variable;

/* Is name [length] one of others? An entry that ends in * stands for all names that begin with it. */
static bool is_other(const char *name, size_t length, const char *const *others, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t known = strlen(others[i]);
        bool   all = known > 0 && others[i][known - 1] == '*';
        if (all ? length >= known - 1 && strncmp(name, others[i], known - 1) == 0
                : length == known && strncmp(name, others[i], known) == 0)
            return true;
    }
    return false;
}

static bool is_option(const char *name, size_t length, const variable *known, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (strlen(known[i].name) == length && strncmp(name, known[i].name, length) == 0) return true;
    }
    return false;
}

static plait_status unknown_variable(const char *name, size_t length, const variable *known, size_t n,
                                     plait_error *err) {
    char         bare[VARIABLE_BYTES], upper[VARIABLE_BYTES];
    const char **names = pli_array(n + 1, sizeof *names);
    if (names == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for options");
    for (size_t i = 0; i < n; i++) names[i] = known[i].name + PREFIX;
    snprintf(bare, sizeof bare, "%.*s", (int)(length - PREFIX), name + PREFIX);
    variable_name(bare, upper);
    const char *nearest = pli_nearest(upper + PREFIX, names, n);
    pli_free(names);
    if (nearest != NULL)
        return pli_fail(err, PLAIT_ENAME, "unknown variable PLAIT_%s; did you mean PLAIT_%s?", bare, nearest);
    return pli_fail(err, PLAIT_ENAME, "unknown variable PLAIT_%s: no option has that name; unset it", bare);
}

plait_status pli_opts_check_variables(const pli_opt *const *tables, size_t n_tables, const char *const *others,
                                      size_t n_others, plait_error *err) {
    size_t       n = 0;
    plait_status status = PLAIT_OK;
    for (size_t t = 0; t < n_tables; t++) {
        for (const pli_opt *row = tables[t]; row->name != NULL; row++) n++;
    }
    variable *known = pli_array(n + 1, sizeof *known);
    if (known == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for options");
    n = 0;
    for (size_t t = 0; t < n_tables; t++) {
        for (const pli_opt *row = tables[t]; row->name != NULL; row++) variable_name(row->name, known[n++].name);
    }
    for (char **at = environ; at != NULL && *at != NULL && status == PLAIT_OK; at++) {
        size_t length = strcspn(*at, "=");
        if (strncmp(*at, "PLAIT_", PREFIX) != 0 || (*at)[length] == '\0' || (*at)[length + 1] == '\0') continue;
        if (!is_option(*at, length, known, n) && !is_other(*at, length, others, n_others))
            status = unknown_variable(*at, length, known, n, err);
    }
    pli_free(known);
    return status;
}

char **pli_env_without(const pli_opt *rows) {
    size_t n = 0, kept = 0;
    char   name[VARIABLE_BYTES];
    while (environ != NULL && environ[n] != NULL) n++;
    char **env = pli_calloc(n + 1, sizeof *env);
    for (size_t i = 0; env != NULL && i < n; i++) {
        size_t         length = strcspn(environ[i], "=");
        const pli_opt *row = rows;
        for (; row->name != NULL; row++) {
            variable_name(row->name, name);
            if (strlen(name) == length && strncmp(environ[i], name, length) == 0) break;
        }
        if (row->name == NULL) env[kept++] = environ[i];
    }
    return env;
}

/* --- life ---------------------------------------------------------------------------------------------- */

static plait_status create(const pli_opt *rows, pli_opts **opts_out, plait_error *err) {
    pli_opts *opts = pli_calloc(1, sizeof *opts);
    if (opts == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for options");
    opts->rows = rows;
    while (rows[opts->n].name != NULL) opts->n++;
    opts->where = pli_calloc((size_t)opts->n, sizeof *opts->where);
    if (opts->where == NULL) {
        pli_free(opts);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for options");
    }
    for (int64_t i = 0; i < opts->n; i++) opts->where[i].place = "default";
    pli_arena_init(&opts->arena, 4096);
    *opts_out = opts;
    return PLAIT_OK;
}

/* The places are read in this order, so that the later overrules the earlier. */
static plait_status read_all(pli_opts *opts, const char *config, int argc, char *const *argv, void *target,
                             pli_text_list *rest, bool help, plait_error *err) {
    PLI_TRY(read_defaults(opts, target, err));
    if (help) return PLAIT_OK; /* a user who asks for help is not told of errors */
    PLI_TRY(check_flags(opts, argc, argv, &config, err));
    PLI_TRY(read_config(opts, config, target, err));
    PLI_TRY(read_variables(opts, target, err));
    return read_flags(opts, argc, argv, target, rest, err);
}

plait_status pli_opts_read(const pli_opt *rows, int argc, char *const *argv, void *target, pli_text_list *rest,
                           bool *help_out, pli_opts **opts_out, plait_error *err) {
    return pli_opts_read_shared(rows, NULL, argc, argv, target, rest, help_out, opts_out, err);
}

plait_status pli_opts_read_shared(const pli_opt *rows, const pli_opts_file *file, int argc, char *const *argv,
                                  void *target, pli_text_list *rest, bool *help_out, pli_opts **opts_out,
                                  plait_error *err) {
    pli_opts *opts = NULL;
    bool      help = wants_help(argc, argv);
    if (rest != NULL) *rest = (pli_text_list){ .item = NULL };
    pli_opts_clear(rows, target);
    PLI_TRY(create(rows, &opts, err));
    opts->beside = file != NULL ? file->beside : NULL;
    plait_status status =
        read_all(opts, file != NULL ? file->path : NULL, argc, argv, target, rest, help, err);
    opts->beside = NULL; /* it is borrowed for the reading alone */
    if (status < 0) goto free_opts;
    if (help_out != NULL) *help_out = help;
    *opts_out = opts;
    return PLAIT_OK;
free_opts:
    pli_opts_clear(rows, target); /* the texts are freed with opts */
    if (rest != NULL) *rest = (pli_text_list){ .item = NULL };
    pli_opts_free(&opts);
    return status;
}

void pli_opts_free(pli_opts **opts) {
    if (*opts == NULL) return;
    pli_arena_destroy(&(*opts)->arena);
    pli_free((*opts)->where);
    pli_free((*opts)->own);
    pli_free(*opts);
    *opts = NULL;
}

const pli_opt *pli_opts_rows(const pli_opts *opts) { return opts->rows; }
void           pli_opts_own_rows(pli_opts *opts, pli_opt *rows) { opts->own = rows; }

pli_origin pli_opts_origin(const pli_opts *opts, const char *name, const char **place_out) {
    const pli_opt *row = pli_opts_row(opts, name, strlen(name));
    if (place_out != NULL) *place_out = row != NULL ? opts->where[row - opts->rows].place : "default";
    return row != NULL ? opts->where[row - opts->rows].origin : PLI_FROM_DEFAULT;
}

bool pli_opts_is_given(const pli_opts *opts, const char *name) {
    return pli_opts_origin(opts, name, NULL) != PLI_FROM_DEFAULT;
}
