/* graph/onednn/convs.h - the module's kernels. */
#ifndef PLI_GRAPH_ONEDNN_CONVS_H
#define PLI_GRAPH_ONEDNN_CONVS_H

#include "graph/kernel_set.h"

extern const plait_kernel pli_onednn_conv2d, pli_onednn_conv2d_input, pli_onednn_conv2d_filter;
pli_region_fn             pli_onednn_conv2d_region, pli_onednn_conv2d_input_region, pli_onednn_conv2d_filter_region;

#endif
