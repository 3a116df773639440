/* graph/kernel_set.h - kernels of a module, plait-<name>.so. A session that names the module loads it, tries its
 * kernels before an op's own, and unloads it after its last plan. */
#ifndef PLI_GRAPH_KERNEL_SET_H
#define PLI_GRAPH_KERNEL_SET_H

#include "graph/region.h"

#define PLI_KERNEL_SET_ABI 1u

typedef struct pli_kernel_set {
    uint32_t abi; /* PLI_KERNEL_SET_ABI */
    int32_t  n;
    const struct pli_set_kernel {
        const char         *op;
        const plait_kernel *kernel;
        pli_region_fn      *region; /* NULL: the kernel takes no epilogue */
    } * kernel;
} pli_kernel_set;

/** Loads a module. ENAME: no module has this name; EMODULE: it is missing, or of another version (the text has the
 *  command that installs it). */
plait_status pli_kernel_set_open(const char *name, void **handle_out, const pli_kernel_set **kernels_out,
                                 plait_error *err);
/** The module's kernel for this use of an op, or the op's own; NULL: there is none. */
const plait_kernel *pli_kernel_choose(const pli_kernel_set *kernels, const plait_op *op, const plait_call *call,
                                      pli_region_fn **region_out);

#endif
