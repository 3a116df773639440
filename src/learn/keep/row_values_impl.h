/* learn/keep/row_values_impl.h - where values of rows lie; for row_values*.c. */
#ifndef PLI_LEARN_ROW_VALUES_IMPL_H
#define PLI_LEARN_ROW_VALUES_IMPL_H

#include "learn/learner.h"

struct pli_row_values {
    plait_type      type;
    int64_t         cols, row_bytes;
    int32_t         blocks;
    bool            elsewhere; /* in a table, too */
    int64_t        *rows;   /* [blocks] rows of a block whose values are there */
    int64_t       **start;  /* [blocks] [rows + 1] where each row begins, in values; NULL: rows have equal numbers */
    unsigned char **values; /* [blocks] [rows, row_bytes]; NULL: this worker has had no row of the block */
};

/** How many values a block has that are there. */
static inline int64_t pli_row_values_count(const struct pli_row_values *v, int32_t b) {
    return (v->start[b] != NULL ? v->start[b][v->rows[b]] : v->rows[b]) * v->cols;
}

#endif
