/* The factor of a block of the Hessian that is a metric (lbfgs_blocks.c). A Hessian may be singular: a little of its
 * diagonal is added. */
#include <math.h>
#include <string.h>

#include "learn/solve/lbfgs_blocks.h"
#include "tensor/spectral/cholesky.h"

enum { TRIES = 12 };

/* Shares of the diagonal that are added: usually, and where columns depend on others. */
#define LEAST_SHARE 1e-10
#define DEPENDENT_SHARE 1e-7

/* A block [m, m] as it is, and its largest diagonal element. */
typedef struct whole {
    int64_t m;
    double *block, most;
} whole;

static double least_of(const whole *of) { return of->most > 0 ? 1e-9 * of->most : 1; }

/* Factors the block with this share of its diagonal added. false: that is not positive. */
static bool factor_with(const whole *of, double share, double *factor) {
    memcpy(factor, of->block, (size_t)(of->m * of->m) * sizeof *factor);
    for (int64_t i = 0; i < of->m; i++) factor[i * of->m + i] += share * fmax(factor[i * of->m + i], least_of(of));
    return pli_cholesky(of->m, factor);
}

/* Do columns depend on others, so that of some pivot little more than the added share is left? */
static bool is_dependent(const whole *of, double share, const double *factor) {
    bool is = false;
    for (int64_t i = 0; i < of->m; i++)
        is = is || factor[i * of->m + i] * factor[i * of->m + i] < 100 * share * of->block[i * of->m + i];
    return is;
}

/* Leaves the diagonal alone: a metric, if a poor one, of what is rounding beside the rest. false: it is not finite. */
static bool factor_diagonal(const whole *of, double *factor) {
    for (int64_t i = 0; i < of->m; i++) {
        const double here = fmax(of->block[i * of->m + i], least_of(of));
        if (!isfinite(here)) return false;
        memset(factor + i * of->m, 0, (size_t)of->m * sizeof *factor);
        factor[i * of->m + i] = sqrt(here);
    }
    return true;
}

/* Adds more until the sum is positive. Along weights that change no score, the rounding of the gradient is divided by
 * what was added: more is added there, too, so that those weights stay where they are. */
static bool factor_any(const whole *of, double *factor) {
    double share = LEAST_SHARE;
    bool   good = factor_with(of, share, factor);
    for (int32_t tries = 1; !good && tries < TRIES; tries++) {
        share *= 10;
        good = factor_with(of, share, factor);
    }
    if (good && share < DEPENDENT_SHARE && is_dependent(of, share, factor))
        good = factor_with(of, DEPENDENT_SHARE, factor);
    /* Without a penalty the curvature of rows that are told apart falls to nothing. */
    return good || factor_diagonal(of, factor);
}

plait_status pli_lbfgs_factor(int64_t m, double *block, plait_error *err) {
    whole of = { .m = m, .block = pli_array((size_t)(m * m), sizeof *block) };
    if (of.block == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a metric");
    memcpy(of.block, block, (size_t)(m * m) * sizeof *block);
    for (int64_t i = 0; i < m; i++) of.most = fmax(of.most, block[i * m + i]);
    const bool good = factor_any(&of, block);
    pli_free(of.block);
    return good ? PLAIT_OK : pli_fail(err, PLAIT_EDIVERGED, "the Hessian is not finite");
}
