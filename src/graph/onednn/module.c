/* The module's only entry point. */
#include "convs.h"

static const struct pli_set_kernel kernel[] = {
    { "conv2d", &pli_onednn_conv2d, pli_onednn_conv2d_region },
    { "conv2d_input", &pli_onednn_conv2d_input, pli_onednn_conv2d_input_region },
    { "conv2d_filter", &pli_onednn_conv2d_filter, pli_onednn_conv2d_filter_region },
};

static const pli_kernel_set kernels = { .abi = PLI_KERNEL_SET_ABI,
                                        .n = sizeof kernel / sizeof *kernel,
                                        .kernel = kernel };

__attribute__((visibility("default"))) const void *plait_kernels_module(void);
const void                                        *plait_kernels_module(void) { return &kernels; }
