/* The table of commands, and what all commands share: reading options, errors, the end of stdout. */
#include "cli/cli.h"
#include "cli/verdict.h"
#include "cli/words.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "vertex/vertex.h"

static const pli_command *const commands[] = {
    &pli_command_train,   &pli_command_predict,   &pli_command_transform, &pli_command_recommend, &pli_command_eval,
    &pli_command_inspect,
    &pli_command_export,  &pli_command_launch,    &pli_command_audit,     &pli_command_compare, &pli_command_cv,
    &pli_command_tune, &pli_command_plan,
    &pli_command_doctor,
    &pli_command_serve,
    &pli_command_sample,
    &pli_command_checkpoint, &pli_command_graph,     &pli_command_calibrate, &pli_command_config, &pli_command_version,
    &pli_command_help,       NULL,
};

/* Variables that are not options: those that the program and its modules read, those of scripts and tests, and those
 * that Kubernetes sets for a service named plait. */
static const char *const variables[] = {
    "PLAIT_MPIRUN",    "PLAIT_MODULES",    "PLAIT_VERDICTS",  "PLAIT_JOBS", "PLAIT_TEST_FULL", "PLAIT_SCHEDULES",
    "PLAIT_DASHBOARD_LINK",
    "PLAIT_BUILD_DIR", "PLAIT_SOURCE_DIR", "PLAIT_SERVICE_*", "PLAIT_PORT", "PLAIT_PORT_*",
};

const pli_command *const *pli_commands(void) { return commands; }

const pli_command *pli_command_find(const char *name) {
    for (size_t i = 0; commands[i] != NULL; i++) {
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    }
    return NULL;
}

int pli_cli_usage(const char *fmt, ...) {
    va_list  args;
    pli_text text = { 0 };
    char     line[1024];
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    pli_text_add(&text, "plait: ");
    pli_text_add_printable(&text, line, strlen(line), "\n\t");
    pli_text_add(&text, "\n");
    if (text.data == NULL || !pli_verdict_was_said(text.data))
        fputs(text.data != NULL ? text.data : "plait: out of memory\n", stderr);
    pli_text_free(&text);
    return PLI_EXIT_USAGE;
}

int pli_cli_exit_code(plait_status status) {
    switch (status) {
    case PLAIT_OK:
    case PLAIT_PENDING:
    case PLAIT_END: return PLI_EXIT_DONE;
    case PLAIT_EINVAL:
    case PLAIT_ENAME:
    case PLAIT_EREFUSED:
    case PLAIT_EMODULE:
    case PLAIT_EMISMATCH: return PLI_EXIT_USAGE;
    case PLAIT_EPEER:
    case PLAIT_ETIMEOUT:
    case PLAIT_ECOMM: return PLI_EXIT_PEERS;
    case PLAIT_EINTERRUPTED: return PLI_EXIT_INTERRUPTED;
    default: return PLI_EXIT_FAILED;
    }
}

int pli_cli_fail(const plait_error *err) {
    const char *text = err->text[0] != '\0' ? err->text : plait_status_text(err->code);
    pli_cli_usage("%s", text);
    return pli_cli_exit_code(err->code);
}

int pli_cli_unknown(const char *what, const char *given, const char *const *known, size_t n) {
    const char *nearest = pli_nearest(given, known, n);
    if (nearest != NULL) return pli_cli_usage("unknown %s '%s'; did you mean '%s'?", what, given, nearest);
    char   list[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < n && used + 40 < sizeof list; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.30s", i == 0 ? "" : ", ", known[i]);
    }
    return pli_cli_usage("unknown %s '%s'; known are: %s", what, given, list);
}

static bool has_option(const pli_opt *rows, const char *name) {
    while (rows->name != NULL && strcmp(rows->name, name) != 0) rows++;
    return rows->name != NULL;
}

/* What the text of an error in options is about: an unknown option or variable, `name`, or a `value` that is not one of
 * an option's choices. `length`: of the text before the place for a hint. */
typedef struct mistake {
    char   name[64], value[64];
    size_t length;
} mistake;

static bool copy_word(char *to, size_t bytes, const char *from, size_t length) {
    if (length == 0 || length >= bytes) return false;
    snprintf(to, bytes, "%.*s", (int)length, from);
    return true;
}

/* Is it "unknown option --lr; ...", "run.yaml:3: unknown option 'lr'; ..." or "unknown variable PLAIT_LR: ..."? */
static bool is_unknown_name(const char *text, mistake *m) {
    static const char *const befores[] = { "unknown option ", "unknown variable PLAIT_" };
    for (size_t i = 0; i < sizeof befores / sizeof *befores; i++) {
        const char *at = strstr(text, befores[i]);
        if (at == NULL) continue;
        at += strlen(befores[i]);
        at += strspn(at, "-'");
        const size_t length = strcspn(at, "';:=");
        m->length = (size_t)(at - text) + length + (at[length] == '\'');
        return copy_word(m->name, sizeof m->name, at, length);
    }
    return false;
}

/* Is it "--model wants one of a|b, not 'svm'; ...", "run.yaml:3: model wants ..." or "PLAIT_MODEL wants ..."? */
static bool is_no_choice(const char *text, mistake *m) {
    const char *wants = strstr(text, " wants one of "), *value = wants != NULL ? strstr(wants, ", not '") : NULL;
    if (value == NULL) return false;
    const char *name = wants;
    while (name > text && name[-1] != ' ') name--;
    name += strspn(name, "-");
    if (strncmp(name, "PLAIT_", 6) == 0) name += 6;
    value += strlen(", not '");
    m->length = (size_t)(wants - text);
    return copy_word(m->name, sizeof m->name, name, (size_t)(wants - name)) &&
           copy_word(m->value, sizeof m->value, value, strcspn(value, "'"));
}

enum { COMMANDS = sizeof commands / sizeof commands[0] - 1 };

static void free_all_rows(pli_opt *tables[COMMANDS]) {
    for (size_t i = 0; i < COMMANDS; i++) pli_free(tables[i]);
}

/* Makes the rows of each command. false: no memory. */
static bool make_all_rows(pli_opt *tables[COMMANDS]) {
    bool made = true;
    for (size_t i = 0; i < COMMANDS; i++) made = (tables[i] = pli_command_rows(commands[i])) != NULL && made;
    if (!made) free_all_rows(tables);
    return made;
}

/* Our word for another tool's option: from the command's own rows first, then from all, since a variable may be meant
 * for another command. */
static const char *word_for(const pli_opt *rows, const char *name) {
    pli_opt    *tables[COMMANDS];
    const char *say = pli_words_option(rows, name);
    if (say != NULL || !make_all_rows(tables)) return say;
    for (size_t i = 0; say == NULL && i < COMMANDS; i++) say = pli_words_option(tables[i], name);
    free_all_rows(tables);
    return say;
}

/* If an option or a value is another tool's word, the error names ours instead of the nearest spelling: alike for a
 * flag, a variable and a line of the configuration. */
static void hint(const pli_opt *rows, plait_error *err) {
    mistake     m = { .length = 0 };
    plait_error before = *err;
    const bool  variable = strncmp(err->text, "unknown variable ", 17) == 0;
    if (is_unknown_name(before.text, &m)) {
        const char *say = variable ? word_for(rows, m.name) : pli_words_option(rows, m.name);
        if (say != NULL) pli_fail(err, err->code, "%.*s; %s", (int)m.length, before.text, say);
    } else if (is_no_choice(before.text, &m)) {
        const bool  of_data = strcasecmp(m.name, "format") != 0 || has_option(rows, "data"); /* export writes a model */
        const char *say = of_data ? pli_words_value(m.name, m.value) : NULL;
        if (say != NULL) pli_fail(err, err->code, "%.*s '%s': %s", (int)m.length, before.text, m.value, say);
    }
}

/* launch is given an option that only train has: it stands on the wrong side of --. */
static void hint_behind(plait_error *err) {
    mistake     m = { .length = 0 };
    plait_error before = *err;
    if (!is_unknown_name(before.text, &m) || before.text[m.length] != '\0') return;
    pli_opt *rows = pli_command_rows(&pli_command_train);
    if (rows != NULL && has_option(rows, m.name))
        pli_fail(err, err->code, "%s; it is train's: write it behind '-- plait train'", before.text);
    pli_free(rows);
}

/* Refuses variables that are no command's option, as typos. Variables for other commands are allowed. */
static plait_status check_variables(plait_error *err) {
    pli_opt *tables[COMMANDS];
    if (!make_all_rows(tables)) return pli_fail(err, PLAIT_ENOMEM, "no memory for options");
    plait_status status = pli_opts_check_variables((const pli_opt *const *)tables, COMMANDS, variables,
                                                   sizeof variables / sizeof variables[0], err);
    free_all_rows(tables);
    return status;
}

/* Makes the command's rows and reads its options; *opts_out owns the rows. */
static plait_status read_rows(const pli_command *command, int argc, char *const *argv, void *target,
                              pli_text_list *words, bool *help, pli_opts **opts_out, plait_error *err) {
    pli_opt *rows = pli_command_rows(command);
    if (rows == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for options");
    plait_status status =
        pli_opts_read_shared(rows, &command->file, argc, argv, target, words, help, opts_out, err);
    if (status >= 0) {
        pli_opts_own_rows(*opts_out, rows);
        return status;
    }
    hint(rows, err);
    if (command == &pli_command_launch) hint_behind(err);
    pli_free(rows);
    return status;
}

bool pli_cli_read(const pli_command *command, int argc, char *const *argv, void *target, pli_text_list *rest,
                  pli_opts **opts_out, int *code_out) {
    plait_error   err = { 0 };
    pli_text_list words = { 0 };
    bool          help = false;
    *opts_out = NULL;
    plait_status status = read_rows(command, argc, argv, target, &words, &help, opts_out, &err);
    if (status >= 0 && !help && (status = check_variables(&err)) < 0) hint(pli_opts_rows(*opts_out), &err);
    if (help) {
        pli_text text = { 0 };
        pli_cli_help(command, pli_terminal_columns(1), &text);
        *code_out = pli_cli_print(&text) ? pli_cli_end(PLI_EXIT_DONE) : PLI_EXIT_FAILED;
    } else if (status < 0) {
        pli_fail_at(&err, "%s", command->name);
        *code_out = pli_cli_fail(&err);
        if (status == PLAIT_EFORMAT) *code_out = PLI_EXIT_USAGE; /* a line of the configuration, not of data */
    } else if (rest == NULL && words.n > 0) {
        const char *word = words.item[0];
        bool        is_data = pli_file_exists(word) && has_option(command->rows, "data");
        *code_out =
            is_data
                ? pli_cli_usage("%s: '%s' is not an option; for data write --data before each name",
                                command->name, word)
                : pli_cli_usage("%s: '%s' is not an option; see 'plait help %s'", command->name, word, command->name);
    } else {
        if (rest != NULL) *rest = words;
        return true;
    }
    pli_opts_free(opts_out);
    return false;
}

bool pli_cli_print(pli_text *text) {
    bool failed = text->failed;
    if (failed) {
        pli_cli_usage("out of memory");
    } else if (text->length > 0) {
        pli_text shown = { 0 };
        pli_text_add_printable(&shown, text->data, text->length, "\n\t");
        failed = shown.failed;
        if (failed) pli_cli_usage("out of memory");
        else fwrite(shown.data, 1, shown.length, stdout);
        pli_text_free(&shown);
    }
    pli_text_free(text);
    return !failed;
}

void pli_cli_put(const char *word) {
    pli_text shown = { 0 };
    pli_text_add_printable(&shown, word, strlen(word), "");
    fputs(shown.data != NULL ? shown.data : "", stdout);
    pli_text_free(&shown);
}

int pli_cli_end(int code) {
    errno = 0;
    bool failed = ferror(stdout) != 0;
    if (failed) fputc('\n', stdout); /* an earlier write failed: write again to learn why */
    if (fflush(stdout) == 0 && !failed) return code;
    if (errno == EPIPE) return PLI_EXIT_SIGNAL + SIGPIPE;
    pli_cli_usage("standard output: %s", errno != 0 ? strerror(errno) : "could not be written");
    return PLI_EXIT_FAILED;
}

static void short_usage(FILE *file) {
    pli_text text = { 0 };
    pli_text_add(&text, "usage: plait COMMAND [options]\n\n");
    pli_cli_list(&text);
    pli_text_add(&text, "\nA first run:\n"
                        "  plait train --model logistic --data train.svm --test test.svm --out model\n"
                        "  plait predict --model-file model --data test.svm\n\n"
                        "'plait help COMMAND' tells more; so does -h after any command.\n");
    fputs(text.data != NULL ? text.data : "", file);
    pli_text_free(&text);
}

static int unknown_command(const char *name) {
    const char *say = pli_words_command(name);
    if (say != NULL) return pli_cli_usage("unknown command '%s'; %s", name, say);
    if (pli_vertex_find(name, NULL) != NULL)
        return pli_cli_usage("unknown command '%s'; it is a vertex program: 'plait graph run %s --data EDGES'", name,
                             name);
    const char *names[COMMANDS];
    size_t      n = 0;
    while (commands[n] != NULL) {
        names[n] = commands[n]->name;
        n++;
    }
    return pli_cli_unknown("command", name, names, n);
}

int pli_cli_main(int argc, char *const *argv) {
    /* Let write() report a closed pipe or a file-size limit, instead of a signal that would lose the model. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2) {
        short_usage(stderr);
        return PLI_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) name = "version";
    if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0) {
        if (argc == 2) {
            short_usage(stdout);
            return pli_cli_end(PLI_EXIT_DONE);
        }
        name = "help";
    }
    const pli_command *command = pli_command_find(name);
    if (command == NULL) {
        if (name[0] == '-') return pli_cli_usage("'%s' before the command; say 'plait COMMAND %s ...'", name, name);
        return unknown_command(name);
    }
    int code = command->run(argc - 2, argv + 2);
    if ((code & PLI_EXIT_AT_ONCE) == 0) pli_verdict_give(code);
    return code;
}
