/* graph/slice.h - what slice and unslice share: the places that a slice takes. */
#ifndef PLI_GRAPH_SLICE_H
#define PLI_GRAPH_SLICE_H

#include "graph/kernel.h"
#include "graph/ops/ops.h"

extern const plait_attr_spec pli_slice_attrs[4]; /* axes, starts, ends, steps */

typedef struct pli_slice {
    int64_t base;                   /* the first element that is taken           */
    int64_t stride[PLAIT_RANK_MAX]; /* from one taken element to the next, by axis */
} pli_slice;

/** The slice that the attributes take of an array of shape `from`: its shape *to (unknown lengths stay unknown), and
 *  its places. */
plait_status pli_slice_of(const plait_call *call, const plait_shape *from, plait_shape *to, pli_slice *slice_out);

#endif
