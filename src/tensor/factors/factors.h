/* tensor/factors/factors.h - inner loops of matrix factorisation: steps on one rating after another, and sums of outer
 * products for systems of normal equations.
 *
 * A row of factors has `width` floats, a multiple of PLI_FACTOR_LANES; those beyond the rank are zeros and stay zeros.
 * Beside it lie a bias and the mean square of the row's past gradients, by whose root its steps are divided: the row
 * has a step size of its own (Chin, Zhuang, Juan and Lin, "A Learning-Rate Schedule for Stochastic Gradient Methods to
 * Matrix Factorization", PAKDD 2015).
 *
 * A product is 16 partial sums, each over every sixteenth element, added in pairs 8, 4, 2 and 1 apart; nothing is
 * fused. So the bits do not depend on the processor. */
#ifndef PLI_TENSOR_FACTORS_H
#define PLI_TENSOR_FACTORS_H

#include <stdint.h>

enum { PLI_FACTOR_LANES = 16, PLI_OUTER_LANES = 8 };

typedef struct pli_rating {
    uint32_t user, item; /* rows of the two sides */
    float    value, weight;
} pli_rating;

/* One side: users or items. */
typedef struct pli_factor_side {
    float *row;  /* [n, width]                          */
    float *side; /* [n, 2]: bias, mean square of slopes */
} pli_factor_side;

typedef struct pli_factor_step {
    pli_factor_side user, item;
    int64_t         width;
    int32_t         rank;
    float           mean, rate, l2;
} pli_factor_step;

typedef struct pli_factor_kernels {
    const char *name; /* "ref", "avx2", "avx512" */
    /** A step downhill on w ((r - mean - bias - bias - p.q)^2 + l2 (|p|^2 + |q|^2 + biases^2)) / 2 for one rating after
     *  another. Returns the sum of w times the squared error, each before its step. */
    double (*squared)(const pli_factor_step *step, int64_t n, const pli_rating *rating);
    /** The same on w log(1 + exp(-(score of the item - score of other[i]))), with the penalty on the three rows (Rendle
     *  et
     *  al., "BPR: Bayesian Personalized Ranking from Implicit Feedback", UAI 2009). Returns the sum of these losses. */
    double (*ranked)(const pli_factor_step *step, int64_t n, const pli_rating *rating, const uint32_t *other);
    /** a [d, d] += sum of weight[i] x_i t(x_i), on and right of the diagonal (and some of what is left of it), and b
     *  [d]
     *  += sum of value[i] x_i. d is a multiple of PLI_OUTER_LANES. x [n, d]. */
    void (*outer)(int64_t d, int64_t n, const double *x, const double *weight, const double *value, double *a,
                  double *b);
    /** The product of two rows. */
    float (*dot)(int64_t width, const float *p, const float *q);
} pli_factor_kernels;

/** The first factors [rank] of a row of side 0, users, or 1, items: small numbers around 0, such that products of two
 *  rows are small beside ratings. They depend on the arguments alone. */
void pli_factor_draw(uint64_t seed, uint64_t side, uint64_t row, int64_t rank, float *factor);

/** The best kernels for this processor, and each set by name (those of x86 only on x86). Static; any thread. */
const pli_factor_kernels *pli_factor_kernels_get(void);
const pli_factor_kernels *pli_factor_kernels_ref(void);
const pli_factor_kernels *pli_factor_kernels_avx2(void);
const pli_factor_kernels *pli_factor_kernels_avx512(void);

#endif
