/* Squared loss: (s - y)^2 / 2, so that its slope is the residual. */
#include "learn/loss/loss.h"

#include <math.h>

static double squared_at(double parameter, int64_t k, const double *score, double y, double *slope) {
    (void)parameter, (void)k;
    double residual = score[0] - y;
    slope[0] = residual;
    return residual * residual / 2;
}

static void squared_second(double parameter, int64_t k, const double *score, double y, double *h) {
    (void)parameter, (void)k, (void)score, (void)y;
    h[0] = 1;
}

static double squared_conjugate(double parameter, int64_t k, double y, double *slope) {
    (void)parameter, (void)k;
    return slope[0] * (slope[0] / 2 + y);
}

static double squared_invariant(double parameter, double score, double y, double step) {
    (void)parameter;
    return (score - y) * expm1(-step);
}

const pli_loss pli_loss_squared = {
    .model = "squared", .target = PLI_NUMBER, .smooth = true, .curvature = 1, .at = squared_at,
    .second = squared_second, .conjugate = squared_conjugate, .invariant = squared_invariant
};
