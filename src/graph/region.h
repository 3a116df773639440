/* graph/region.h - which elements of its output an item of a kernel makes: what the pass `fuse` must know to let
 * elementwise ops go over them as soon as they are made, while they lie in a cache. */
#ifndef PLI_GRAPH_REGION_H
#define PLI_GRAPH_REGION_H

#include "graph/graph.h"

/* `count` runs of `length` elements, `step` from one to the next. */
typedef struct pli_region {
    int64_t first, length, step, count;
} pli_region;

/* Of the shapes alone; no element belongs to two items. */
typedef pli_region pli_region_fn(const plait_call *call, int64_t item);

/** NULL: the kernel does not say. */
pli_region_fn *pli_region_of(const plait_kernel *kernel);

/* Those of the ops' files. */
extern const plait_kernel pli_matmul_f32, pli_matmul_f64, pli_matmul_bf16, pli_conv2d_columns, pli_conv2d_input_columns,
    pli_conv2d_filter_columns, pli_recurrent_product_blas;
pli_region_fn pli_matmul_region, pli_conv2d_region, pli_conv2d_input_region, pli_conv2d_filter_region,
    pli_recurrent_product_region;

#endif
