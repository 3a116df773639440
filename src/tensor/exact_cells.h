/* tensor/exact_cells.h - the sums of exact.h as *cells*: one record for each element, so that sums can lie in rows, be
 * cut anywhere, and be sent. Zeroed memory holds empty sums.
 *
 *     floats   16 bytes   highest bin << 8 | top - least top        lower bin
 *     doubles  32 bytes   highest bin, middle, lowest               top - least top
 *
 * A float's highest bin has 56 bits, which is enough for 2^34 terms. A special element has its counts in its second
 * word. Any bits are a valid cell: wrong bytes from a wire may give a wrong sum, and nothing worse. */
#ifndef PLI_TENSOR_EXACT_CELLS_H
#define PLI_TENSOR_EXACT_CELLS_H

#include <stdbool.h>
#include <stdint.h>

enum { PLI_CELL_BYTES_F32 = 16, PLI_CELL_BYTES_F64 = 32 };

/* Bytes of a cell; cells are aligned to 8. */
static inline int64_t pli_cell_bytes(bool wide) { return wide ? PLI_CELL_BYTES_F64 : PLI_CELL_BYTES_F32; }

/** Adds x [n], floats or (wide) doubles, to cells [n]. */
void pli_cells_add(bool wide, int64_t n, const void *x, void *cells);
/** Adds all of x [n] to one cell of doubles. */
void pli_cell_add_all(int64_t n, const double *x, void *cell);
/** into [n] = a [n] + b [n]; into may be a or b. */
void pli_cells_merge(bool wide, int64_t n, const void *a, const void *b, void *into);
/** The sums, floats or doubles, rounded as exact.h does. out may be cells. */
void pli_cells_round(bool wide, int64_t n, const void *cells, void *out);

#endif
