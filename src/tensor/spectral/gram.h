/* tensor/spectral/gram.h - the Gram matrix of the columns of many rows: what a covariance is made of.
 *
 *     gram [d, d] += sum of weight (x - shift)t (x - shift)        sum [d] += sum of weight (x - shift)
 *
 * in double, of rows of floats. With a shift near the columns' means nothing cancels when the means are taken off at
 * the end (pli_gram_centre); any shift gives the same covariance but for rounding. Rows are taken a chunk at a time:
 * shifted and packed as panels of columns, then multiplied by the panels before them and by themselves, since a half of
 * a symmetric matrix is enough (Goto and van de Geijn, "High-Performance Implementation of the Level-3 BLAS", ACM TOMS
 * 2008).
 *
 * Each element is one chain of fused multiply-adds over the rows in their order. With `narrow` shifted rows are rounded
 * to floats, the chain is one of floats over 512 rows, counted from the first of the call, and such chains are added in
 * double: twice as fast, and precise to about 1e-7 of the largest variances, as the data are. Without it the sums are
 * precise to 1e-15, which variances a million times smaller than others need. Either way bits depend neither on the
 * processor, nor on how many threads share the panels. */
#ifndef PLI_TENSOR_GRAM_H
#define PLI_TENSOR_GRAM_H

#include "base/pool.h"
#include "tensor/gemm/sgemm.h"
#include "tensor/tensor.h"

enum { PLI_GRAM_PANEL = 16 }; /* columns of a panel of doubles */

/* What each processor does its own way, to the same bits. */
typedef struct pli_gram_kernels {
    const char *name; /* "ref", "avx2", "avx512" */
    /* g [PANEL, PANEL], rows ld apart, += at b over n rows of the packed panels a and b [n, PANEL]. */
    void (*block)(int64_t n, const double *a, const double *b, double *g, int64_t ld);
} pli_gram_kernels;

/** The best kernels for this processor, and each set by itself (those of x86 only there). Static; any thread. */
const pli_gram_kernels *pli_gram_kernels_get(void);
const pli_gram_kernels *pli_gram_kernels_ref(void);
const pli_gram_kernels *pli_gram_kernels_avx2(void);
const pli_gram_kernels *pli_gram_kernels_avx512(void);

/* Where rows are added up; all are += and none is cleared. */
typedef struct pli_gram {
    int64_t                 d;
    bool                    narrow;  /* products of floats: see above                                        */
    const double           *shift;   /* [d]; NULL: 0                                                        */
    double                 *gram;    /* [d, d] on and right of the diagonal; left of it nothing is promised  */
    double                 *sum;     /* [d]                                                                 */
    double                  mass;    /* the sum of weights                                                  */
    void                   *scratch; /* pli_gram_scratch_bytes, of this call alone                          */
    const pli_gram_kernels *kernels; /* for doubles; NULL: the best                                         */
    const pli_tiles        *tiles;   /* for floats; NULL: the best                                          */
} pli_gram;

size_t pli_gram_scratch_bytes(int64_t d);

/** Adds the chosen rows of a block, whose columns are below d. weight: of row r of the block at [r], not negative;
 *  NULL: all 1. pool: its threads share the panels of each chunk, which pays from some hundred columns on; NULL:
 *  serial. */
void pli_gram_csr(pli_pool *pool, pli_gram *to, const pli_csr *x, pli_rows rows, const float *weight);
/** n rows of a dense matrix [n, d], elements from row to row: stride. weight [n] or NULL. */
void pli_gram_dense(pli_pool *pool, pli_gram *to, int64_t n, const float *x, int64_t stride, const float *weight);

/** gram less sum sumt / mass: (mass - 1) times the covariance, whole (both triangles). The mean is shift + sum / mass.
 *  mass > 0. */
void pli_gram_centre(int64_t d, double mass, const double *sum, double *gram);

#endif
