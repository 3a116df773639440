/* Loads a module of kernels by name, and chooses the kernel for a call: first the module's, then those of the op in
 * order. */
#include "graph/kernel_set.h"

#include <string.h>

#include "base/module.h"

static const char *const names[] = { "onednn" };
enum { NAMES = sizeof names / sizeof *names };

plait_status pli_kernel_set_open(const char *name, void **handle_out, const pli_kernel_set **kernels_out,
                                 plait_error *err) {
    const void *given = NULL;
    int         known = 0;
    while (known < NAMES && strcmp(names[known], name) != 0) known++;
    if (known == NAMES) return pli_fail_unknown(err, "kernels", name, names, NAMES);
    PLI_TRY(pli_module_load(name, PLI_KERNEL_SET_ABI, handle_out, &given, err));
    *kernels_out = given;
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
