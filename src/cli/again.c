/* Writes the command that repeats or continues a run. The words of the run's command come first, in their order, so
 * that the user recognizes it. Options from variables or from the configuration file follow, because whoever pastes the
 * line may have neither; --config itself is left out. Files that the run has written stay: outputs that the command
 * would overwrite get new names. */
#include "cli/again.h"

#include <inttypes.h>
#include <string.h>

void pli_again_word(pli_text *text, const char *word) {
    if (word[0] != '\0' &&
        strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%") == strlen(word)) {
        pli_text_add(text, " %s", word);
        return;
    }
    pli_text_add(text, " '");
    for (const char *c = word; *c != '\0'; c++) pli_text_add(text, *c == '\'' ? "'\\''" : "%c", *c);
    pli_text_add(text, "'");
}

/* Where the new run begins. */
typedef enum start { SAME, CHECKPOINT, MODEL } start;

/* Does the new command set the option itself? */
static bool is_set_anew(const pli_again *again, const char *name, start from) {
    static const char *const always[] = { "metrics", "events", "trace", "resume" }, *const model[] = { "init-model",
                                                                                                       "epochs" };
    for (size_t i = 0; from != SAME && i < sizeof always / sizeof *always; i++)
        if (strcmp(name, always[i]) == 0) return true;
    for (size_t i = 0; from == MODEL && i < sizeof model / sizeof *model; i++)
        if (strcmp(name, model[i]) == 0) return true;
    return from == MODEL && again->optimizer != NULL && strcmp(name, "optimizer") == 0;
}

static bool is_left_out(const pli_again *again, const char *name, start from) {
    return strcmp(name, "config") == 0 || is_set_anew(again, name, from);
}

/* The option's row that a word of the command names; *with_value: the word is "--name=value". NULL: it names none. */
static const pli_opt *row_of(const pli_again *again, const char *word, bool *with_value) {
    const size_t length = strcspn(word, "=");
    *with_value = word[length] == '=';
    if (strncmp(word, "--", 2) != 0) return NULL;
    for (const pli_opt *row = pli_opts_rows(again->opts); row->name != NULL; row++)
        if (strlen(row->name) == length - 2 && strncmp(row->name, word + 2, length - 2) == 0) return row;
    return NULL;
}

static void add_words(const pli_again *again, start from, pli_text *text) {
    for (int i = 0; i < again->argc; i++) {
        bool           with_value;
        const pli_opt *row = row_of(again, again->argv[i], &with_value);
        const bool     two = row != NULL && !with_value && row->kind != PLI_OPT_FLAG && i + 1 < again->argc;
        if (row == NULL || !is_left_out(again, row->name, from)) {
            pli_again_word(text, again->argv[i]);
            if (two) pli_again_word(text, again->argv[i + 1]);
        }
        i += two;
    }
}

/* Adds " --name value". */
static void add_option(const char *name, const char *value, pli_text *text) {
    if (strncmp(value, "--", 2) != 0) {
        pli_text_add(text, " --%s", name);
        pli_again_word(text, value);
        return;
    }
    char *word = pli_format("--%s=%s", name, value);
    pli_again_word(text, word != NULL ? word : name);
    pli_free(word);
}

static void add_row(const pli_train_settings *settings, const pli_opt *row, pli_text *text) {
    const void          *at = (const char *)settings + row->offset;
    const pli_text_list *list = at;
    pli_text             value = { 0 };
    switch (row->kind) {
    case PLI_OPT_LATER: return;
    case PLI_OPT_FLAG:
        pli_text_add(text, *(const bool *)at ? " --%s" : " --%s=false", row->name);
        return;
    case PLI_OPT_LIST:
        for (int64_t i = 0; i < list->n; i++) add_option(row->name, list->item[i], text);
        return;
    case PLI_OPT_TEXT:
    case PLI_OPT_CHOICE:
        if (*(const char *const *)at != NULL) add_option(row->name, *(const char *const *)at, text);
        return;
    case PLI_OPT_I64:
    case PLI_OPT_F64:
    case PLI_OPT_DURATION:
    case PLI_OPT_BYTES:
        pli_opts_value(row, settings, &value);
        if (value.data != NULL) add_option(row->name, value.data, text);
        text->failed = text->failed || value.failed;
        pli_text_free(&value);
    }
}

/* Adds options that were not given on the command line. */
static void add_others(const pli_again *again, start from, pli_text *text) {
    for (const pli_opt *row = pli_opts_rows(again->opts); row->name != NULL; row++) {
        const pli_origin origin = pli_opts_origin(again->opts, row->name, NULL);
        if (origin != PLI_FROM_FILE && origin != PLI_FROM_VARIABLE) continue;
        if (!is_left_out(again, row->name, from)) add_row(again->settings, row, text);
    }
}

static bool is_taken(const char *path) {
    char *of_rank = pli_format("%s.0", path);
    bool  taken = pli_file_exists(path) || of_rank == NULL || pli_file_exists(of_rank);
    pli_free(of_rank);
    return taken;
}

/* Adds the first free name of m.2, m.3, ...; or m-2, m-3, ..., if m.2 may be the file of rank 2. */
static void add_written(const char *option, const char *path, char sign, pli_text *text) {
    char *name = NULL;
    if (path == NULL) return;
    for (int n = 2; n < 1000; n++) {
        pli_free(name);
        name = pli_format("%s%c%d", path, sign, n);
        if (name == NULL || !is_taken(name)) break;
    }
    add_option(option, name != NULL ? name : path, text);
    pli_free(name);
}

static void add_command(const pli_again *again, start from, pli_text *text) {
    pli_text_add(text, "plait train");
    add_words(again, from, text);
    add_others(again, from, text);
}

void pli_again_same(const pli_again *again, pli_text *text) { add_command(again, SAME, text); }

void pli_again_from_checkpoint(const pli_again *again, pli_text *text) {
    add_command(again, CHECKPOINT, text);
    add_option("resume", again->settings->checkpoint, text);
    add_written("metrics", again->settings->metrics, '.', text);
    add_written("trace", again->settings->trace, again->processes ? '-' : '.', text);
}

void pli_again_from_model(const pli_again *again, int64_t left, pli_text *text) {
    const char sign = again->processes ? '-' : '.';
    add_command(again, MODEL, text);
    if (again->optimizer != NULL) add_option("optimizer", again->optimizer, text);
    if (left > 0) pli_text_add(text, " --epochs %" PRId64, left);
    add_option("init-model", again->settings->out, text);
    add_written("metrics", again->settings->metrics, '.', text);
    add_written("events", again->settings->events, sign, text);
    add_written("trace", again->settings->trace, sign, text);
}
