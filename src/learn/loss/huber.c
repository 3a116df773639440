/* Huber's loss: r^2 / 2 up to |r| = delta, beyond it delta (|r| - delta / 2); r = s - y. */
#include "learn/loss/loss.h"

#include <math.h>

static double huber_at(double delta, int64_t k, const double *score, double y, double *slope) {
    (void)k;
    double residual = score[0] - y, size = fabs(residual);
    if (size <= delta) {
        slope[0] = residual;
        return residual * residual / 2;
    }
    slope[0] = residual > 0 ? delta : -delta;
    return delta * (size - delta / 2);
}

/* Beyond delta the parabola through both branches: delta / |r| (Huber, "Robust Statistics", 1981, section 7.8). */
static void huber_second(double delta, int64_t k, const double *score, double y, double *h) {
    const double size = fabs(score[0] - y);
    (void)k;
    h[0] = size <= delta ? 1 : delta / size;
}

/* That of the squared loss; no slope is beyond delta. */
static double huber_conjugate(double delta, int64_t k, double y, double *slope) {
    (void)k;
    slope[0] = fmax(-delta, fmin(slope[0], delta));
    return slope[0] * (slope[0] / 2 + y);
}

/* The residual shrinks evenly down to delta, then as that of the squared loss. */
static double huber_invariant(double delta, double score, double y, double step) {
    const double residual = y - score, size = fabs(residual), sign = residual > 0 ? 1 : -1;
    const double straight = size > delta ? (size - delta) / delta : 0; /* the time that it takes down to delta */
    if (step <= straight) return sign * delta * step;
    const double near = size > delta ? delta : size;
    return sign * (size - near - near * expm1(straight - step));
}

const pli_loss pli_loss_huber = {
    .model = "huber", .target = PLI_NUMBER, .smooth = true, .curvature = 1, .at = huber_at,
    .second = huber_second, .conjugate = huber_conjugate, .invariant = huber_invariant
};
