/* version - what this is, and which modules it finds. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "watch/board/codec.h"
#include "watch/watch.h"

typedef struct version_settings {
    bool json;
} version_settings;

static const pli_opt rows[] = {
    { "json", PLI_OPT_FLAG, offsetof(version_settings, json), NULL, NULL, "print one JSON object", 0, 0, "output" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* What is optional: found as a module, or installed by a command. */
static const struct module {
    const char *name, *symbol, *gives, *install;
} modules[] = {
    { "mpi", "plait_transport_module", "ranks as processes, on one machine or many",
      "script/bootstrap --all, then build again" },
    { "sim", "plait_transport_module", "ranks as actors of a simulated cluster",
      "apt-get install libsimgrid-dev (or script/bootstrap --all), then build again" },
    { "tensorboard", PLI_BOARD_SYMBOL, "event files for TensorBoard",
      "apt-get install libprotobuf-c-dev protobuf-c-compiler (or script/bootstrap --all), then build again" },
    { "onednn", "plait_kernels_module", "convolutions of graphs by oneDNN",
      "apt-get install libdnnl-dev (or script/bootstrap --all), then build again" },
    { "onnx", "plait_onnx_module", "models and graphs from and to ONNX files",
      "apt-get install libprotobuf-c-dev protobuf-c-compiler (or script/bootstrap --all), then build again" },
};
enum { MODULES = sizeof modules / sizeof modules[0] };

static bool found(const struct module *module, plait_error *err) {
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
    pli_text list = { 0 };
    pli_json_begin(&list);
    for (int i = 0; i < MODULES; i++) {
        pli_text    one = { 0 };
        plait_error err = { 0 };
        bool        here = found(&modules[i], &err);
        pli_json_begin(&one);
        pli_json_bool(&one, "found", here);
        pli_json_text(&one, "gives", modules[i].gives);
        pli_json_text(&one, "install", here ? NULL : modules[i].install);
        pli_json_text(&one, "error", here ? NULL : err.text);
        pli_json_end(&one);
        pli_json_raw(&list, modules[i].name, one.data != NULL ? one.data : "null");
        list.failed = list.failed || one.failed;
        pli_text_free(&one);
    }
    pli_json_end(&list);
    pli_json_begin(text);
    pli_json_text(text, "version", plait_version());
    pli_json_text(text, "compiler", compiler);
    pli_json_text(text, "blas", PLI_BLAS);
    pli_json_raw(text, "modules", list.data != NULL ? list.data : "null");
    pli_json_end(text);
    pli_text_add(text, "\n");
    text->failed = text->failed || list.failed;
    pli_text_free(&list);
}

static void as_text(pli_text *text) {
    pli_text_add(text, "plait     %s\ncompiler  %s\nBLAS      %s\n", plait_version(), compiler, PLI_BLAS);
    for (int i = 0; i < MODULES; i++) {
        plait_error err = { 0 };
        if (found(&modules[i], &err)) {
            pli_text_add(text, "%-9s found: %s\n", modules[i].name, modules[i].gives);
        } else {
            pli_text_add(text, "%-9s missing (%s); to install: %s\n", modules[i].name, modules[i].gives,
                         modules[i].install);
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
    .summary = "this program, the modules found, and what installs the missing",
    .rows = rows,
    .run = version,
};
