/* tensor/groups.h - sums and counts of rows by group: the classes of naive Bayes, or clusters whose rows are known.
 *
 * Row i of a call is row order[first + i] (or first + i) of its block, and belongs to group[i]; a row with a group
 * below 0 belongs to none and adds nothing. Rows are added in their order, so the bits depend on the rows alone; a
 * caller with several blocks keeps separate results for each, or adds the blocks in a fixed order. Serial; nothing
 * is allocated or kept. */
#ifndef PLI_TENSOR_GROUPS_H
#define PLI_TENSOR_GROUPS_H

#include "tensor/tensor.h"

/* Where rows are added: all fields are increased and none is cleared. d: number of features. */
typedef struct pli_group_sums {
    double *sum;    /* [groups, d] weight x; NULL: not wanted     */
    double *square; /* [groups, d] weight x^2; NULL: not wanted   */
    double *mass;   /* [groups] weight; NULL: not wanted          */
} pli_group_sums;

/** Adds rows of a block whose columns are below d. weight[r] is that of row r of the block; NULL: all 1. */
void pli_group_sums_csr(const pli_csr *x, pli_rows rows, int64_t d, const int32_t *group, const float *weight,
                        const pli_group_sums *out);
/** Adds n rows of a dense matrix [n, d], stride elements from one row to the next. weight [n] or NULL. */
void pli_group_sums_dense(int64_t n, int64_t d, const float *x, int64_t stride, const int32_t *group,
                          const float *weight, const pli_group_sums *out);

/** count [groups, d] += the values, which must be whole numbers from 0 below 2^31 (PLI_COUNT_LIMIT). The counts are
 *  exact, however large they grow, unlike sums of floats. Returns how many rows were counted: n, or the place of the
 *  first row with a value that is no count; that row and those behind it add nothing. */
int64_t pli_group_counts(const pli_csr *x, pli_rows rows, int64_t d, const int32_t *group, int64_t *count);
#define PLI_COUNT_LIMIT 0x1p31F
/** count [groups, d] += 1 wherever a row has an entry that is not 0. */
void pli_group_presences(const pli_csr *x, pli_rows rows, int64_t d, const int32_t *group, int64_t *count);

#endif
