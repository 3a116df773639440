/* Poisson loss of counts: the score s is the logarithm of the mean, and the loss half the deviance,
 *
 *     exp(s) - y - y (s - ln y)  =  exp(s) - y s + y ln y - y,
 *
 * which is 0 where exp(s) = y (McCullagh and Nelder, "Generalized Linear Models", 1989, section 6.2). Its second
 * derivative, exp(s), has no bound; `curvature` is that of a mean of 1. */
#include "learn/loss/loss.h"

#include <math.h>

static double poisson_at(double parameter, int64_t k, const double *score, double y, double *slope) {
    const double mean = exp(score[0]);
    (void)parameter, (void)k;
    slope[0] = mean - y;
    const double loss = y > 0 ? mean - y - y * (score[0] - log(y)) : mean;
    return loss > 0 ? loss : 0; /* not below 0 by rounding */
}

static void poisson_second(double parameter, int64_t k, const double *score, double y, double *h) {
    (void)parameter, (void)k, (void)y;
    h[0] = exp(score[0]);
}

/* With the slope z - y: z ln z - z and what is the loss's own constant. */
static double poisson_conjugate(double parameter, int64_t k, double y, double *slope) {
    const double mean = fmax(0, slope[0] + y);
    (void)parameter, (void)k;
    slope[0] = mean - y;
    return pli_x_log_x(mean) - mean + y - pli_x_log_x(y);
}

/* The mean z = exp(s) grows logistically, dz/dt = z (y - z): z(0) / z = exp(-y t) + z(0) (1 - exp(-y t)) / y. */
static double poisson_invariant(double parameter, double score, double y, double step) {
    const double less = expm1(-y * step);
    (void)parameter;
    return -log1p(less + exp(score) * (y > 0 ? -less / y : step));
}

const pli_loss pli_loss_poisson = {
    .model = "poisson", .target = PLI_NUMBER, .log_mean = true, .smooth = true, .curvature = 1, .at = poisson_at,
    .second = poisson_second, .conjugate = poisson_conjugate, .reach = 1,
    .invariant = poisson_invariant
};
