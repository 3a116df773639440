/* data/dataset/rows.h - a block while it is being filled: rows in CSR form that grow at the end.
 *
 * Memory is reserved generously and touched late, so that memory reserved in vain costs nothing; values are stored
 * only from the first that is not 1 on. */
#ifndef PLI_DATA_ROWS_H
#define PLI_DATA_ROWS_H

#include "data/data.h"

typedef struct pli_rows {
    pli_block b;
    int64_t   row_capacity, entry_capacity, value_capacity;
    int64_t  *missing; /* entries whose value is to become the mean of its column */
    int64_t   missings, missing_capacity;
    float    *spare; /* [value_capacity] kept by clear: the next rows that need values take it */
} pli_rows;

void pli_rows_clear(pli_rows *rows); /* keeps the memory */
void pli_rows_free(pli_rows *rows);
/* All return false when out of memory, rows unchanged. */
bool pli_rows_reserve(pli_rows *rows, int64_t more_entries);
bool pli_rows_reserve_rows(pli_rows *rows, int64_t more_rows);
bool pli_rows_widen(pli_rows *rows);        /* from col to key                            */
bool pli_rows_need_values(pli_rows *rows);  /* makes value, with ones for the entries so far */
bool pli_rows_need_weights(pli_rows *rows); /* makes weight, with ones for the rows so far */
bool pli_rows_need_queries(pli_rows *rows); /* makes query, with none for the rows so far */
bool pli_rows_note_missing(pli_rows *rows, int64_t entry); /* adds an entry whose number is missing */
void pli_rows_shrink(pli_rows *rows);       /* frees memory that was reserved in vain */
void pli_rows_pack(pli_rows *rows);         /* from col to packed; all columns must be below 2^24 */

/** Sorts the entries [from, b.entries) by (key + bias) modulo the key's width. repeats: adds up the values of equal
 *  keys; otherwise *repeat_out is set to an entry whose key appears twice, or -1. false: out of memory. */
bool pli_rows_sort_tail(pli_rows *rows, int64_t from, uint64_t bias, bool repeats, int64_t *repeat_out);

static inline uint64_t pli_block_key(const pli_block *block, int64_t entry) {
    return block->col != NULL ? block->col[entry] : block->key[entry];
}

#endif
