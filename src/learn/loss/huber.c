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

const pli_loss pli_loss_huber = {
    .model = "huber", .target = PLI_NUMBER, .smooth = true, .curvature = 1, .at = huber_at,
    .second = huber_second
};
