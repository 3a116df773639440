/* graph/region.h - which elements of its output an item of a kernel makes. The pass `fuse` must know it to run
 * elementwise ops over these elements at once, while they lie in a cache. */
#ifndef PLI_GRAPH_REGION_H
#define PLI_GRAPH_REGION_H

#include "graph/graph.h"

/* `count` runs of `length` elements, which begin `step` elements from each other. */
typedef struct pli_region {
    int64_t first, length, step, count;
} pli_region;

/* The region of an item. It depends on shapes alone, and no element belongs to two items. */
typedef pli_region pli_region_fn(const plait_call *call, int64_t item);

/** The kernel's function; NULL: it has none. */
pli_region_fn *pli_region_of(const plait_kernel *kernel);

/* The kernels and their functions, defined in the ops' files. */
extern const plait_kernel pli_matmul_f32, pli_matmul_f64, pli_matmul_bf16, pli_conv2d_columns, pli_conv2d_input_columns,
    pli_conv2d_filter_columns, pli_recurrent_product_blas;
pli_region_fn pli_matmul_region, pli_conv2d_region, pli_conv2d_input_region, pli_conv2d_filter_region,
    pli_recurrent_product_region;

#endif
