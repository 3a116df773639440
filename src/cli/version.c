/* version - prints the version, and the modules that are found. */
#include <stdio.h>

#include "base/module.h"
#include "cli/cli.h"
#include "watch/watch.h"

typedef struct version_settings {
    bool json;
} version_settings;

static const pli_opt rows[] = {
    { "json", PLI_OPT_FLAG, offsetof(version_settings, json), NULL, NULL, "print one JSON object", 0, 0, "output" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

static bool found(const pli_module *module, plait_error *err) {
    void *handle = NULL, *symbol = NULL;
    if (pli_module_open(module->name, module->symbol, &handle, &symbol, err) < 0) return false;
    pli_module_close(&handle);
    return true;
}

#if defined(__clang__)
static const char compiler[] = "clang " __clang_version__;
#else
static const char compiler[] = "gcc " __VERSION__;
#endif

static void as_json(pli_text *text) {
    pli_json_begin(text);
    pli_json_text(text, "version", plait_version());
    pli_json_text(text, "compiler", compiler);
    pli_json_text(text, "blas", PLI_BLAS);
    pli_json_object(text, "modules");
    for (const pli_module *module = pli_modules(); module->name != NULL; module++) {
        plait_error err = { 0 };
        const bool  here = found(module, &err);
        pli_json_object(text, module->name);
        pli_json_bool(text, "found", here);
        pli_json_text(text, "gives", module->gives);
        pli_json_text(text, "install", here ? NULL : module->install);
        pli_json_text(text, "error", here ? NULL : err.text);
        pli_json_end(text);
    }
    pli_json_end(text);
    pli_json_end(text);
    pli_text_add(text, "\n");
}

static void as_text(pli_text *text) {
    pli_text_add(text, "plait       %s\ncompiler    %s\nBLAS        %s\n", plait_version(), compiler, PLI_BLAS);
    for (const pli_module *module = pli_modules(); module->name != NULL; module++) {
        plait_error err = { 0 };
        if (found(module, &err)) {
            pli_text_add(text, "%-11s found: %s\n", module->name, module->gives);
        } else {
            pli_text_add(text, "%-11s missing (%s); to install: %s\n", module->name, module->gives, module->install);
        }
    }
}

static int version(int argc, char *const *argv) {
    version_settings set = { 0 };
    pli_opts        *opts = NULL;
    pli_text         text = { 0 };
    int              code = PLI_EXIT_USAGE;
    if (!pli_cli_read(&pli_command_version, argc, argv, &set, NULL, &opts, &code)) return code;
    if (set.json) {
        as_json(&text);
    } else {
        as_text(&text);
    }
    pli_opts_free(&opts);
    return pli_cli_print(&text) ? pli_cli_end(PLI_EXIT_DONE) : PLI_EXIT_FAILED;
}

const pli_command pli_command_version = {
    .name = "version",
    .usage = "version [--json]",
    .summary = "show this version, the modules found, and how to install the missing ones",
    .rows = rows,
    .run = version,
};
