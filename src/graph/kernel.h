/* graph/kernel.h - what reference kernels share: items of a fixed size, elements of any type, indices of any shape. */
#ifndef PLI_GRAPH_KERNEL_H
#define PLI_GRAPH_KERNEL_H

#include "graph/graph.h"

/* Shapes alone decide how work is divided into items, so that the number of threads never changes a bit. */
enum { PLI_ITEM_ELEMENTS = 16384 };

static inline int64_t pli_items_of(int64_t elements) { return (elements + PLI_ITEM_ELEMENTS - 1) / PLI_ITEM_ELEMENTS; }

/** `items` of a kernel that computes output 0 in pieces of PLI_ITEM_ELEMENTS. */
int64_t pli_items_by_output(const plait_call *call);
/** The elements of an item: sets the first, returns how many. */
static inline int64_t pli_item_piece(int64_t elements, int64_t item, int64_t *first_out) {
    *first_out = item * PLI_ITEM_ELEMENTS;
    return elements - *first_out < PLI_ITEM_ELEMENTS ? elements - *first_out : PLI_ITEM_ELEMENTS;
}

/** Reads element i as a double (a BOOL: 0 or 1), and writes one, rounded to the type: for reference kernels, where
 *  clarity beats speed. I64 beyond 2^53 lose their last bits. An integer drops the fraction and is clipped to its
 *  range; NaN becomes 0. */
double pli_element(const plait_tensor *t, int64_t i);
void   pli_element_set(const plait_tensor *t, int64_t i, double value);
/** The same for types that are not floats, with all bits; set drops bits that do not fit into the type. */
int64_t pli_element_int(const plait_tensor *t, int64_t i);
void    pli_element_set_int(const plait_tensor *t, int64_t i, int64_t value);

float    pli_bf16_to_f32(uint16_t x);
uint16_t pli_bf16_of_f32(float x); /* rounds to nearest even; NaN stays NaN */

/** Do the shapes have the same rank and, where both are known, the same lengths? */
static inline bool pli_shapes_agree(const plait_shape *a, const plait_shape *b) {
    if (a->rank != b->rank) return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i] && a->dim[i] != PLAIT_ANY && b->dim[i] != PLAIT_ANY) return false;
    return true;
}

/** Elements between neighbours along each axis of a shape without unknown lengths; 1 for the last axis. */
void pli_strides(const plait_shape *shape, int64_t strides[PLAIT_RANK_MAX]);
/** Strides for reading an array of shape `from` at the places of shape `to`, to which it broadcasts; 0 for axes along
 *  which it repeats. */
void pli_broadcast_strides(const plait_shape *from, const plait_shape *to, int64_t strides[PLAIT_RANK_MAX]);

/* A walk over the places of shape `to`, in runs along its last axis, which reads up to three arrays by strides. Axes
 * that can be walked as one axis are joined. */
enum { PLI_WALK_ARRAYS = 3 };
typedef struct pli_walk {
    int32_t rank, arrays;
    int64_t dim[PLAIT_RANK_MAX], at[PLAIT_RANK_MAX], left;
    int64_t stride[PLI_WALK_ARRAYS][PLAIT_RANK_MAX];
    int64_t base[PLI_WALK_ARRAYS]; /* offset added to each place; begin sets 0             */
    int64_t from[PLI_WALK_ARRAYS]; /* the first element of this run in each array ...      */
    int64_t step[PLI_WALK_ARRAYS]; /* ... and the step from one element to the next        */
} pli_walk;
/** Begins a walk over n elements of `to` from `first` on. */
void pli_walk_begin(pli_walk *walk, const plait_shape *to, int32_t arrays, const int64_t (*strides)[PLAIT_RANK_MAX],
                    int64_t first, int64_t n);
/** Moves to the next run and returns its length; 0: there is none. */
int64_t pli_walk_next(pli_walk *walk);

/** The run function of an op whose output has elements of `from` in another order: reads piece `item` of the output
 *  (pli_items_by_output) from element `base` on, with a stride for each axis of the output. */
void pli_read_strided(const plait_call *call, const plait_tensor *from, int64_t base,
                      const int64_t strides[PLAIT_RANK_MAX], int64_t item);
/** Writes all of `from` into `to`, from element `base` on, with a stride for each axis of `from`. */
void pli_write_strided(const plait_tensor *from, const plait_tensor *to, int64_t base,
                       const int64_t strides[PLAIT_RANK_MAX]);

/** Adds n elements of from to n of to, which is not BOOL: floats are added as double and rounded to the type; integers
 *  wrap. */
void pli_add_row(const plait_tensor *to, int64_t to_first, const plait_tensor *from, int64_t from_first, int64_t n);

#endif
