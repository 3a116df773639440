/* tensor/nearest/nearest.h - the nearest of k centres for each row of a block, and the sums that a step of k-means
 * needs.
 *
 * ||x - c||^2 = ||x||^2 - 2 (x.c - ||c||^2 / 2), so the nearest centre has the highest score x.c - ||c||^2 / 2. The
 * scores of a few rows at a time are a small product of matrices, which stays in the cache while the highest score of
 * each row is found, its distance computed and the row added up: memory is read once. All centres are first moved by
 * their mean, which does not change the order of scores and keeps the products small where data lie far from the
 * origin.
 *
 * Scores are floats: a product is one chain of fused multiply-adds in the order of the columns, and zeros add nothing
 * to it. So a row's nearest centre is the same for dense and sparse rows, on every processor, in any chunk, and on any
 * number of threads. Distances and sums are computed in double from the row and the centre themselves.
 *
 * Kernels are serial, keep nothing and allocate nothing; several threads share the prepared centres, each with its
 * own scratch memory. Papers: Lloyd, "Least Squares Quantization in PCM", IEEE Transactions on Information Theory
 * 1982; sgemm.h has those of the product. */
#ifndef PLI_TENSOR_NEAREST_H
#define PLI_TENSOR_NEAREST_H

#include "tensor/gemm/sgemm.h"
#include "tensor/entries.h"
#include "tensor/tensor.h"

/* The kernels that differ between processors; all give the same bits. */
typedef struct pli_nearest_kernels {
    const char *name; /* "ref", "avx2", "avx512" */
    /* dot [k] = x.e for one row x and each of k columns e of across [d, stride]; k is a multiple of PLI_TILE_COLS. A
     * row with neither col nor packed has the columns 0 .. n - 1. */
    void (*chain)(pli_entries x, int64_t k, int64_t stride, const float *across, float *dot);
    /* Finds in each row of dot [rows, k] the highest dot - bias; of equals the first. If it is above best, best and
     * nearest become it and its place + first. k is a multiple of PLI_TILE_COLS; bias [k] is infinite where there is
     * no centre. */
    void (*highest)(int64_t rows, int64_t k, const float *dot, const float *bias, uint32_t first, float *best,
                    uint32_t *nearest);
} pli_nearest_kernels;

/** The best kernels for this processor, and each set by name (those of x86 only on x86). Static; any thread. */
const pli_nearest_kernels *pli_nearest_kernels_get(void);
const pli_nearest_kernels *pli_nearest_kernels_ref(void);
const pli_nearest_kernels *pli_nearest_kernels_avx2(void);
const pli_nearest_kernels *pli_nearest_kernels_avx512(void);

/* Centres prepared for many rows. Read-only once prepared. */
typedef struct pli_centres {
    int64_t                    k, d;    /* centres, features                                              */
    const float               *centre;  /* [k, d] as given: borrowed while the centres are used */
    const pli_nearest_kernels *kernels;
    const pli_kernels         *plain;   /* kernels for full rows */
    const pli_tiles           *tiles;   /* not NULL: dense rows are scored by tiles from `packed` */
    float                     *packed;  /* moved centres in groups, packed for pli_sgemm_packed */
    float                     *across;  /* without tiles: [d, k up to PLI_TILE_COLS], moved */
    float                     *bias;    /* [k up to PLI_TILE_COLS] the score is the product less this */
    double                    *square;  /* [k] squared lengths of the centres as given */
    double                    *mean;    /* [d] the centres are moved by this */
} pli_centres;

/** Bytes for k centres of d features, and for one thread's scratch; aligned as by malloc. Neither needs to be
 *  cleared. */
size_t pli_centres_bytes(int64_t k, int64_t d);
size_t pli_nearest_scratch_bytes(int64_t k, int64_t d);

/** Prepares centres [k, d], k >= 1, d >= 1, in memory of pli_centres_bytes. dense: rows are laid out in full, for
 *  tiles; else scores are computed entry by entry, which is faster if less than PLI_NEAREST_DENSE of a row is not
 *  zero. The choice affects only speed: the results are the same. */
void pli_centres_prepare(pli_centres *centres, int64_t k, int64_t d, const float *centre, bool dense, void *memory);
#define PLI_NEAREST_DENSE 0.4

/* The wanted results for n rows. Row i of the call is row r = order[first + i] (or first + i) of its block. */
typedef struct pli_assigned {
    uint32_t    *nearest;  /* [n] the nearest centre; of equally near ones the lowest */
    double      *distance; /* [n] squared distance to it, >= 0; NULL: not wanted                                 */
    float       *score;    /* [n] that centre's score s; NULL: not wanted. ||x - mean||^2 - 2 s is the distance
                              with an error of about 1e-6 of the first term: a cheap sum between exact ones      */
    const float *weight;   /* of row r at [r]; NULL: all 1                                                       */
    double      *sum;      /* [k, d] += weight x, at the nearest centre; rows in order; NULL: not wanted */
    double      *mass;     /* [k] += weight, at the nearest centre; NULL: not wanted */
} pli_assigned;

/** Takes the chosen rows of a block whose columns are below d. scratch: of pli_nearest_scratch_bytes. */
void pli_nearest_csr(const pli_centres *centres, const pli_csr *x, pli_rows rows, void *scratch,
                     const pli_assigned *out);
/** Takes n rows of a dense matrix x [n, d], stride elements from one row to the next. */
void pli_nearest_dense(const pli_centres *centres, int64_t n, const float *x, int64_t stride, void *scratch,
                       const pli_assigned *out);

/** The squared distances of the chosen rows to all centres: out [rows.n, k], each >= 0. */
void pli_centres_distances(const pli_centres *centres, const pli_csr *x, pli_rows rows, double *out);

#endif
