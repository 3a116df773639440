/* tensor/entries.h - one row of a compressed matrix, as kernels run over it. */
#ifndef PLI_TENSOR_ENTRIES_H
#define PLI_TENSOR_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>

#include "tensor/kernels.h"

/* The entries of one row, and how many entries from its first on may be looked at ahead. */
typedef struct pli_entries {
    const uint32_t      *col;
    const unsigned char *packed; /* replaces col; or NULL */
    const float         *value;  /* NULL: ones              */
    int64_t              n, ahead;
} pli_entries;

static inline pli_entries pli_entries_of(const pli_csr *x, pli_rows rows, int64_t i) {
    const int64_t row = pli_row_at(rows, i), first = x->row_start[row], end = x->row_start[row + 1];
    const int64_t last = rows.order == NULL ? x->row_start[rows.first + rows.n] : end;
    return (pli_entries){ .col = x->packed == NULL ? x->col + first : NULL,
                       .packed = x->packed == NULL ? NULL : x->packed + 3 * first,
                       .value = x->value == NULL ? NULL : x->value + first,
                       .n = end - first,
                       .ahead = last - first };
}

/* The number of entries for which the entry PLI_PREFETCH_ENTRIES later exists. */
static inline int64_t pli_entries_fetched(pli_entries s) {
    const int64_t there = s.ahead - PLI_PREFETCH_ENTRIES;
    return there < s.n ? there : s.n;
}

static inline double pli_entries_value(pli_entries s, int64_t k) { return s.value == NULL ? 1.0 : (double)s.value[k]; }

/* For loops that are written once and compiled for each form of columns: packed is a constant. */
static inline uint32_t pli_entries_at(pli_entries s, int64_t k, const bool packed) {
    return packed ? pli_packed_at(s.packed, k) : s.col[k];
}

static inline uint32_t pli_entries_column(pli_entries s, int64_t k) { return pli_entries_at(s, k, s.packed != NULL); }

#endif
