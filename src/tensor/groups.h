/* tensor/groups.h - sums and counts of rows by group: classes of naive Bayes, clusters whose rows are known.
 *
 * Row i of a call is row order[first + i] (or first + i) of its block, and belongs to group[i]; below 0 it belongs to
 * none and adds nothing. Rows are added in their order, so the bits follow from the rows alone; a caller with several
 * blocks keeps results of its own for each, or adds them up in a fixed order. Serial; nothing is allocated or kept. */
#ifndef PLI_TENSOR_GROUPS_H
#define PLI_TENSOR_GROUPS_H

#include "tensor/tensor.h"

/* Where rows are added up; all are += and none is cleared. d: features of a row. */
typedef struct pli_group_sums {
    double *sum;    /* [groups, d] weight x; NULL: not wanted     */
    double *square; /* [groups, d] weight x^2; NULL: not wanted   */
    double *mass;   /* [groups] weight; NULL: not wanted          */
} pli_group_sums;

/** Rows of a block, columns below d. weight: of row r of the block at [r]; NULL: all 1. */
void pli_group_sums_csr(const pli_csr *x, pli_rows rows, int64_t d, const int32_t *group, const float *weight,
                        const pli_group_sums *out);
/** n rows of a dense matrix [n, d], elements from row to row: stride. weight [n] or NULL. */
void pli_group_sums_dense(int64_t n, int64_t d, const float *x, int64_t stride, const int32_t *group,
                          const float *weight, const pli_group_sums *out);

/** count [groups, d] += the values, which must be whole numbers from 0 below 2^31 (PLI_COUNT_LIMIT); exact whatever
 *  their sum, unlike sums of floats. Returns how many rows were counted: n, or the place of the first with a value that
 *  is no count; of that row and those behind it nothing was added. */
int64_t pli_group_counts(const pli_csr *x, pli_rows rows, int64_t d, const int32_t *group, int64_t *count);
#define PLI_COUNT_LIMIT 0x1p31F
/** count [groups, d] += 1 wherever a row has an entry that is not 0. */
void pli_group_presences(const pli_csr *x, pli_rows rows, int64_t d, const int32_t *group, int64_t *count);

#endif
