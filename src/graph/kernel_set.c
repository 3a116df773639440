#include "graph/kernel_set.h"

#include <string.h>

static const char *const names[] = { "onednn" };
enum { NAMES = sizeof names / sizeof *names };

plait_status pli_kernel_set_open(const char *name, void **handle_out, const pli_kernel_set **kernels_out,
                                 plait_error *err) {
    void       *handle = NULL, *symbol = NULL;
    plait_error why = { 0 };
    int         known = 0;
    while (known < NAMES && strcmp(names[known], name) != 0) known++;
    if (known == NAMES) return pli_fail_unknown(err, "kernels", name, names, NAMES);
    plait_status status = pli_module_open(name, PLI_KERNEL_SET_SYMBOL, &handle, &symbol, &why);
    if (status == PLAIT_EMODULE)
        return pli_fail(
            err, status,
            "kernels of oneDNN need a module: install what it is made of with apt-get install libdnnl-dev (or "
            "script/bootstrap --all) and build anew (%.240s)",
            why.text);
    if (status < 0) return pli_fail(err, status, "%s", why.text);
    pli_kernel_set_fn *entry;
    memcpy(&entry, &symbol, sizeof entry);
    const pli_kernel_set *kernels = entry();
    if (kernels->abi != PLI_KERNEL_SET_ABI) {
        status = pli_fail(err, PLAIT_EMODULE,
                          "the module plait-%s.so is of another version (%u, expected %u); build it anew", name,
                          kernels->abi, PLI_KERNEL_SET_ABI);
        pli_module_close(&handle);
        return status;
    }
    *handle_out = handle;
    *kernels_out = kernels;
    return PLAIT_OK;
}

static bool suits(const plait_kernel *kernel, const plait_call *call) {
    return kernel->device == PLAIT_CPU && (kernel->suits == NULL || kernel->suits(call) != 0);
}

const plait_kernel *pli_kernel_choose(const pli_kernel_set *kernels, const plait_op *op, const plait_call *call,
                                      pli_region_fn **region_out) {
    for (int32_t i = 0; kernels != NULL && i < kernels->n; i++) {
        if (strcmp(kernels->kernel[i].op, op->name) != 0 || !suits(kernels->kernel[i].kernel, call)) continue;
        *region_out = kernels->kernel[i].region;
        return kernels->kernel[i].kernel;
    }
    for (const plait_kernel *const *at = op->kernels; *at != NULL; at++) {
        if (!suits(*at, call)) continue;
        *region_out = pli_region_of(*at);
        return *at;
    }
    return NULL;
}
