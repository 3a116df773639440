/* optim/prox.h - the proximal step of the elastic penalty, which all rules share.
 *
 *     prox(w) = argmin_x (x - w)^2 / 2 + threshold |x| + shrink x^2 / 2
 *             = sign(w) max(0, |w| - threshold) / (1 + shrink),     threshold = s p l1, shrink = s p l2
 *
 * k equal steps are one affine map of |w|, cut off at zero once: a step maps |w| to a|w| - b with a = 1 / (1 +
 * shrink), b = threshold a. Below zero the line stays below zero, so cutting off at the end gives the same as
 * cutting off at each step. The k-th power of the line is found by squaring, in log2 k steps, without cancellation
 * and without libm, so its bits are the same everywhere. NaN stays NaN. */
#ifndef PLI_OPTIM_PROX_H
#define PLI_OPTIM_PROX_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "optim/optim.h"

static inline float pli_prox_f32(float w, float threshold, float shrink) {
    const float size = fabsf(w) - threshold;
    return copysignf((size < 0.0F ? 0.0F : size) / (1.0F + shrink), w);
}

static inline double pli_prox_f64(double w, double threshold, double shrink) {
    const double size = fabs(w) - threshold;
    return copysign((size < 0.0 ? 0.0 : size) / (1.0 + shrink), w);
}

/* |w| <- max(0, keep |w| - drop) */
typedef struct pli_prox_line {
    double keep, drop;
} pli_prox_line;

/** The line of `clocks` >= 0 equal steps together. */
static inline pli_prox_line pli_prox_power(double threshold, double shrink, int64_t clocks) {
    pli_prox_line all = { 1.0, 0.0 }, step = { 1.0 / (1.0 + shrink), threshold / (1.0 + shrink) };
    for (uint64_t left = (uint64_t)clocks; left != 0; left >>= 1) {
        if (left & 1) all = (pli_prox_line){ all.keep * step.keep, step.keep * all.drop + step.drop };
        step = (pli_prox_line){ step.keep * step.keep, step.keep * step.drop + step.drop };
    }
    return all;
}

static inline double pli_prox_apply(pli_prox_line line, double w) {
    const double size = fabs(w) * line.keep - line.drop;
    return copysign(size < 0.0 ? 0.0 : size, w);
}

static inline bool pli_rule_penalises(const plait_rule_numbers *rule) { return rule->l1 > 0.0 || rule->l2 > 0.0; }

#endif
