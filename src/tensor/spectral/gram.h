/* tensor/spectral/gram.h - the Gram matrix of the columns of many rows, from which a covariance is computed.
 *
 *     gram [d, d] += sum of weight (x - shift)t (x - shift)        sum [d] += sum of weight (x - shift)
 *
 * Rows are floats, sums are doubles. With a shift near the columns' means nothing cancels when the means are subtracted
 * at the end (pli_gram_centre); except for rounding, any shift gives the same covariance. Rows are taken a chunk at a
 * time: they are shifted and packed as panels of columns, and each panel is multiplied by the panels before it and by
 * itself, since half of a symmetric matrix is enough (Goto and van de Geijn, "High-Performance Implementation of the
 * Level-3 BLAS", ACM TOMS 2008).
 *
 * Each element is one chain of fused multiply-adds over the rows in their order. With `narrow`, shifted rows are
 * rounded to floats, a chain of floats runs over 512 rows, counted from the first of the call, and such chains are
 * added in double. That is twice as fast, and precise to about 1e-7 of the largest variances, like the data. Without
 * it the sums are precise to 1e-15, which is needed for variances a million times smaller than others. In both cases
 * the bits depend neither on the processor nor on how many threads share the panels. */
#ifndef PLI_TENSOR_GRAM_H
#define PLI_TENSOR_GRAM_H

#include "base/pool.h"
#include "tensor/gemm/sgemm.h"
#include "tensor/tensor.h"

enum { PLI_GRAM_PANEL = 16 }; /* columns of a panel of doubles */

/* The kernels that differ between processors; all give the same bits. */
typedef struct pli_gram_kernels {
    const char *name; /* "ref", "avx2", "avx512" */
    /* g [PANEL, PANEL], rows ld apart, += at b over n rows of the packed panels a and b [n, PANEL]. */
    void (*block)(int64_t n, const double *a, const double *b, double *g, int64_t ld);
    /* to [n] = (x - shift) root, computed in double; x NULL: zeros, shift NULL: 0. */
    void (*shift_f32)(int64_t n, const float *x, const double *shift, double root, float *to);
    void (*shift_f64)(int64_t n, const float *x, const double *shift, double root, double *to);
} pli_gram_kernels;

/** The best kernels for this processor, and each set by name (those of x86 only on x86). Static; any thread. */
const pli_gram_kernels *pli_gram_kernels_get(void);
const pli_gram_kernels *pli_gram_kernels_ref(void);
const pli_gram_kernels *pli_gram_kernels_avx2(void);
const pli_gram_kernels *pli_gram_kernels_avx512(void);

/* Where rows are added: gram, sum and mass are increased, none is cleared. */
typedef struct pli_gram {
    int64_t                 d;
    bool                    narrow;  /* products in float: see above */
    const double           *shift;   /* [d]; NULL: 0                                                        */
    double                 *gram;    /* [d, d] on and right of the diagonal; the part left of it is undefined */
    double                 *sum;     /* [d]                                                                 */
    double                  mass;    /* the sum of weights                                                  */
    void                   *scratch; /* pli_gram_scratch_bytes, used by this call alone */
    const pli_gram_kernels *kernels; /* for doubles; NULL: the best                                         */
    const pli_tiles        *tiles;   /* for floats; NULL: the best                                          */
} pli_gram;

size_t pli_gram_scratch_bytes(int64_t d);

/** Adds the chosen rows of a block whose columns are below d. weight[r] is that of row r of the block, not negative;
 *  NULL: all 1. The threads of pool share the panels of each chunk, which pays from some hundred columns on; NULL:
 *  serial. */
void pli_gram_csr(pli_pool *pool, pli_gram *to, const pli_csr *x, pli_rows rows, const float *weight);
/** Adds n rows of a dense matrix [n, d], stride elements from one row to the next. weight [n] or NULL. */
void pli_gram_dense(pli_pool *pool, pli_gram *to, int64_t n, const float *x, int64_t stride, const float *weight);

/** Turns gram into gram less sum sumt / mass, which is (mass - 1) times the covariance, with both triangles. The
 *  mean is shift + sum / mass. mass > 0. */
void pli_gram_centre(int64_t d, double mass, const double *sum, double *gram);

#endif
