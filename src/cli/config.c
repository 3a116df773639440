/* config - prints the options that train would run with, and where each value comes from. */
#include <stdio.h>
#include <string.h>

#include "cli/settings.h"

typedef struct config_settings {
    bool show_origin;
} config_settings;

static const pli_opt rows[] = {
    { "show-origin", PLI_OPT_FLAG, offsetof(config_settings, show_origin), NULL, NULL, "say where each value came from",
      0, 0, "output" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* Has the option no value, so that train chooses one? */
static bool unset(const pli_opt *row, const pli_opts *opts) {
    return row->preset == NULL && (row->kind != PLI_OPT_FLAG || pli_row_is_own(row)) &&
           !pli_opts_is_given(opts, row->name);
}

static void list(const pli_train_settings *set, const pli_opts *opts, bool origin, pli_text *text) {
    for (const pli_opt *row = pli_opts_rows(opts); row->name != NULL; row++) {
        const char *place = NULL;
        if (row->kind == PLI_OPT_LATER || strcmp(row->name, "config") == 0) continue;
        pli_opts_origin(opts, row->name, &place);
        size_t begin = text->length;
        pli_text_add(text, unset(row, opts) ? "# %s:" : "%s: ", row->name);
        if (!unset(row, opts)) pli_opts_value(row, set, text);
        if (origin) {
            int column = (int)(text->length - begin);
            pli_text_add(text, "%*s# %s", column < 34 ? 34 - column : 1, "", place);
        }
        pli_text_add(text, "\n");
    }
}

static int config(int argc, char *const *argv) {
    pli_train_settings set = { 0 };
    pli_opts          *opts = NULL;
    pli_text           text = { 0 };
    bool               origin = false, help = false;
    int                code = PLI_EXIT_USAGE, n = 0;
    for (int i = 0; i < argc; i++) help = help || strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0;
    if (help) {
        pli_cli_help(&pli_command_config, pli_terminal_columns(1), &text);
        return pli_cli_print(&text) ? pli_cli_end(PLI_EXIT_DONE) : PLI_EXIT_FAILED;
    }
    /* One option is config's own; the others are train's. */
    char **words = pli_array((size_t)argc + 1, sizeof *words);
    if (words == NULL) return pli_cli_usage("out of memory"), PLI_EXIT_FAILED;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--show-origin") == 0) {
            origin = true;
        } else {
            words[n++] = argv[i];
        }
    }
    words[n] = NULL;
    pli_command as_train = pli_command_train;
    as_train.name = "config";
    if (pli_train_settings_read(&as_train, n, words, &set, &opts, &code)) {
        list(&set, opts, origin, &text);
        code = pli_cli_print(&text) ? pli_cli_end(PLI_EXIT_DONE) : PLI_EXIT_FAILED;
    }
    pli_opts_free(&opts);
    pli_free(words);
    return code;
}

const pli_command pli_command_config = {
    .name = "config",
    .usage = "config [--show-origin] [options of train]",
    .summary = "show the options that train would run with",
    .details =
        "Prints a file that --config reads. A value comes from the flag, else from the variable PLAIT_NAME, else from "
        "the --config file, else from the default. train itself chooses the values that are commented out.",
    .rows = rows,
    .run = config,
};
