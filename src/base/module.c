/* The table of modules, and loading one. See module.h. */
#include "base/module.h"

#include <string.h>

#include "base/os.h"

#define PROTOBUF "apt-get install libprotobuf-c-dev protobuf-c-compiler (or script/bootstrap --all), then build again"

static const pli_module modules[] = {
    { "mpi", "plait_transport_module", "ranks as processes, on one machine or many",
      "script/bootstrap --all, then build again" },
    { "loopback", "plait_loopback_module", "plait launch listens on loopback alone, on one machine",
      "script/bootstrap --all, then build again" },
    { "sim", "plait_transport_module", "ranks as actors of a simulated cluster",
      "apt-get install libsimgrid-dev (or script/bootstrap --all), then build again" },
    { "tensorboard", "plait_board_module", "event files for TensorBoard", PROTOBUF },
    { "onednn", "plait_kernels_module", "convolutions of graphs by oneDNN",
      "apt-get install libdnnl-dev (or script/bootstrap --all), then build again" },
    { "metis", "plait_cutter_module", "placements and cuts of graphs by METIS",
      "apt-get install libmetis-dev (or script/bootstrap --all), then build again" },
    { "onnx", "plait_onnx_module", "models and graphs from and to ONNX files", PROTOBUF },
    { "http", "plait_http_module", "predictions over HTTP (plait serve), dashboards",
      "apt-get install libmicrohttpd-dev (or script/bootstrap), then build again" },
    { NULL, NULL, NULL, NULL },
};
enum { MODULES = sizeof modules / sizeof *modules - 1 };

const pli_module *pli_modules(void) { return modules; }

static plait_status unknown(const char *name, plait_error *err) {
    const char *names[MODULES];
    for (int i = 0; i < MODULES; i++) names[i] = modules[i].name;
    return pli_fail_unknown(err, "module", name, names, MODULES);
}

plait_status pli_module_load(const char *name, uint32_t abi, void **handle_out, const void **given_out,
                             plait_error *err) {
    const pli_module    *m = modules;
    void                *handle = NULL, *symbol = NULL;
    plait_error          why = { 0 };
    pli_module_entry_fn *entry;
    uint32_t             its;
    while (m->name != NULL && strcmp(m->name, name) != 0) m++;
    if (m->name == NULL) return unknown(name, err);
    const plait_status status = pli_module_open(name, m->symbol, &handle, &symbol, &why);
    if (status == PLAIT_EMODULE)
        return pli_fail(err, status, "%s need the module plait-%s.so; to install it: %s (%.240s)", m->gives, name,
                        m->install, why.text);
    if (status < 0) return pli_fail(err, status, "%s", why.text);
    memcpy(&entry, &symbol, sizeof entry);
    const void *given = entry();
    memcpy(&its, given, sizeof its);
    if (its != abi) {
        pli_module_close(&handle);
        return pli_fail(err, PLAIT_EMODULE,
                        "the module plait-%s.so is of another version (%u, expected %u); build it anew", name, its,
                        abi);
    }
    *handle_out = handle;
    *given_out = given;
    return PLAIT_OK;
}
