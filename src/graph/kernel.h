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

/** Element i as a double (a BOOL: 0 or 1), and back, rounded to the type: for references, where clarity beats speed.
 *  I64 beyond 2^53 lose their last bits. Into an integer: without the fraction, held to its range, NaN as 0. */
double pli_element(const plait_tensor *t, int64_t i);
void   pli_element_set(const plait_tensor *t, int64_t i, double value);
/** The same of types that are no floats, with all bits; set drops those that the type has no room for. */
int64_t pli_element_int(const plait_tensor *t, int64_t i);
void    pli_element_set_int(const plait_tensor *t, int64_t i, int64_t value);

float    pli_bf16_to_f32(uint16_t x);
uint16_t pli_bf16_of_f32(float x); /* nearest even; NaN stays NaN */

/** Do the shapes agree, where both are known? */
static inline bool pli_shapes_agree(const plait_shape *a, const plait_shape *b) {
    if (a->rank != b->rank) return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i] && a->dim[i] != PLAIT_ANY && b->dim[i] != PLAIT_ANY) return false;
    return true;
}

/** Of a shape, all lengths known: elements between neighbours along each axis, the last 1. */
void pli_strides(const plait_shape *shape, int64_t strides[PLAIT_RANK_MAX]);
/** Strides by which an array of shape `from` is read at the places of shape `to` that it broadcasts to: 0 where it
 *  repeats. */
void pli_broadcast_strides(const plait_shape *from, const plait_shape *to, int64_t strides[PLAIT_RANK_MAX]);

/* Elements of an array in the order of another shape: a walk over the places of `to`, in runs along its last axis, by
 * strides into up to three arrays. Axes that can be walked as one are. */
enum { PLI_WALK_ARRAYS = 3 };
typedef struct pli_walk {
    int32_t rank, arrays;
    int64_t dim[PLAIT_RANK_MAX], at[PLAIT_RANK_MAX], left;
    int64_t stride[PLI_WALK_ARRAYS][PLAIT_RANK_MAX];
    int64_t base[PLI_WALK_ARRAYS]; /* what is added to each place; begin: 0         */
    int64_t from[PLI_WALK_ARRAYS]; /* of a run: its first element in each array ... */
    int64_t step[PLI_WALK_ARRAYS]; /* ... and from one to the next                  */
} pli_walk;
/** Over n elements of `to` from `first` on. */
void pli_walk_begin(pli_walk *walk, const plait_shape *to, int32_t arrays, const int64_t (*strides)[PLAIT_RANK_MAX],
                    int64_t first, int64_t n);
/** The next run's length; 0: there is none. */
int64_t pli_walk_next(pli_walk *walk);

/** A run kernel of an op whose output is some of `from` in another order: output piece `item` (pli_items_by_output) is
 *  read from element `base` on by strides, one for each axis of the output. */
void pli_read_strided(const plait_call *call, const plait_tensor *from, int64_t base,
                      const int64_t strides[PLAIT_RANK_MAX], int64_t item);
/** All of `from` into `to`, from element `base` on by strides, one for each axis of `from`. */
void pli_write_strided(const plait_tensor *from, const plait_tensor *to, int64_t base,
                       const int64_t strides[PLAIT_RANK_MAX]);

/** n elements of from are added to n of to, which is no bool: floats in double, rounded to the type; integers wrap. */
void pli_add_row(const plait_tensor *to, int64_t to_first, const plait_tensor *from, int64_t from_first, int64_t n);

#endif
