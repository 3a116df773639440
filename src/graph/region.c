/* The list of kernels that say which elements an item makes, each with the function that says it. */
#include "graph/region.h"

static const struct {
    const plait_kernel *kernel;
    pli_region_fn      *region;
} regions[] = {
    { &pli_matmul_f32, pli_matmul_region },
    { &pli_matmul_f64, pli_matmul_region },
    { &pli_matmul_bf16, pli_matmul_region },
    { &pli_conv2d_columns, pli_conv2d_region },
    { &pli_conv2d_input_columns, pli_conv2d_input_region },
    { &pli_conv2d_filter_columns, pli_conv2d_filter_region },
    { &pli_recurrent_product_blas, pli_recurrent_product_region },
};

pli_region_fn *pli_region_of(const plait_kernel *kernel) {
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++)
        if (regions[i].kernel == kernel) return regions[i].region;
    return NULL;
}
