/* graph/kernel.h - what reference kernels share: items of a fixed size, elements of any type, indices of any shape. */
#ifndef PLI_GRAPH_KERNEL_H
#define PLI_GRAPH_KERNEL_H

#include "graph/graph.h"

/* Work is cut into items by shapes alone, so that the number of threads never changes a bit. */
enum { PLI_ITEM_ELEMENTS = 16384 };

static inline int64_t pli_items_of(int64_t elements) { return (elements + PLI_ITEM_ELEMENTS - 1) / PLI_ITEM_ELEMENTS; }

/** items of a kernel that goes over output 0 in pieces of PLI_ITEM_ELEMENTS. */
int64_t pli_items_by_output(const plait_call *call);
/** The piece: its first element, and how many. */
static inline int64_t pli_item_piece(int64_t elements, int64_t item, int64_t *first_out) {
    *first_out = item * PLI_ITEM_ELEMENTS;
    return elements - *first_out < PLI_ITEM_ELEMENTS ? elements - *first_out : PLI_ITEM_ELEMENTS;
}

/** Element i as a double (a BOOL: 0 or 1), and back, rounded to the type: for references, where clarity beats speed. I64 beyond
 *  2^53 lose their last bits. */
double pli_element(const plait_tensor *t, int64_t i);
void   pli_element_set(const plait_tensor *t, int64_t i, double value);

float    pli_bf16_to_f32(uint16_t x);
uint16_t pli_bf16_of_f32(float x); /* nearest even; NaN stays NaN */

/** Of a shape, all lengths known: elements between neighbours along each axis, the last 1. */
void pli_strides(const plait_shape *shape, int64_t strides[PLAIT_RANK_MAX]);
/** Strides by which an array of shape `from` is read at the places of shape `to` that it broadcasts to: 0 where it repeats. */
void pli_broadcast_strides(const plait_shape *from, const plait_shape *to, int64_t strides[PLAIT_RANK_MAX]);

#endif
