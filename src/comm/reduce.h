/* comm/reduce.h - how a reduction combines its elements: a reducer for each pair of type and operation.
 *
 * Beside the public types (plait/comm.h) there may be internal ones, numbered after them, whose elements are no
 * plain numbers: then n counts those elements, and only reducers know what is in them. */
#ifndef PLI_COMM_REDUCE_H
#define PLI_COMM_REDUCE_H

#include <stdbool.h>

#include <plait/comm.h>

/* Further element types: the cells of exact sums (tensor/exact_cells.h), which PLAIT_SUM_EXACT sends. They take
 * PLAIT_SUM only. */
#define PLI_CELLS_F32 ((plait_type)PLAIT_TYPES)
#define PLI_CELLS_F64 ((plait_type)(PLAIT_TYPES + 1))

static inline bool pli_is_cells(plait_type type) { return type == PLI_CELLS_F32 || type == PLI_CELLS_F64; }
/** The type of cells that sum floats or doubles. */
static inline plait_type pli_cells_of(plait_type type) { return type == PLAIT_F64 ? PLI_CELLS_F64 : PLI_CELLS_F32; }

/* into [n] = a [n] op b [n]; into may be a or b. */
typedef void pli_merge_fn(void *into, const void *a, const void *b, int64_t n);

typedef struct pli_reducer {
    plait_type    type;
    plait_reduce  op;
    pli_merge_fn *merge;
} pli_reducer;

/** NULL: there is none. */
const pli_reducer *pli_reducer_find(plait_type type, plait_reduce op);

/** Bytes of an element. */
size_t pli_type_bytes(plait_type type);

/** "f32", "sum", for texts, also for numbers that a message claims. Cells have the name of the type that they sum,
 *  and the op is exact. */
const char *pli_type_name(plait_type type);
const char *pli_op_name(plait_type type, plait_reduce op);

/** The reducer's merge; there must be one. */
void pli_reduce(void *into, const void *a, const void *b, int64_t n, plait_type type, plait_reduce op);

#endif
