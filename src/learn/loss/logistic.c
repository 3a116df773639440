/* Logistic loss of two classes: log(1 + exp(-y s)), y = -1 or +1. */
#include "learn/loss/loss.h"

#include <math.h>

#include "tensor/tensor.h"

static double logistic_at(double parameter, int64_t k, const double *score, double y, double *slope) {
    (void)parameter, (void)k;
    double margin = y * score[0];
    double e = exp(-fabs(margin)); /* never overflows */
    double p = 1.0 / (1.0 + e);    /* of the likelier side */
    slope[0] = margin >= 0 ? -y * e * p : -y * p;
    return (margin >= 0 ? 0.0 : -margin) + log1p(e);
}

/* The kernels compute several rows at once. With x = -y s the loss is log(1 + exp(x)), and its slope by s is -y times
 * that function's slope. */
static void logistic_many(int64_t n, const double *score, const double *y, double *loss, double *slope) {
    const pli_kernels *kernels = pli_kernels_get();
    for (int64_t i = 0; i < n; i++) slope[i] = -y[i] * score[i];
    kernels->softplus_f64(n, slope, loss);
    kernels->sigmoid_f64(n, slope, slope);
    for (int64_t i = 0; i < n; i++) slope[i] *= -y[i];
}

static void logistic_second(double parameter, int64_t k, const double *score, double y, double *h) {
    const double e = exp(-fabs(score[0]));
    (void)parameter, (void)k, (void)y;
    h[0] = e / ((1 + e) * (1 + e));
}

static double logistic_conjugate(double parameter, int64_t k, double y, double *slope) {
    const double share = fmax(0, fmin(-y * slope[0], 1));
    (void)parameter, (void)k;
    slope[0] = -y * share;
    return pli_x_log_x(share) + pli_x_log_x(1 - share);
}

/* exp(d) - 1 for d >= 0, to 1e-9 of it. */
static double grown_by(double d) {
    if (d > 0.5) return expm1(d);
    const double low = 1 + d * (1.0 / 2 + d * (1.0 / 6 + d * (1.0 / 24)));
    const double high = 1.0 / 120 + d * (1.0 / 720 + d * (1.0 / 5040 + d * (1.0 / 40320 + d * (1.0 / 362880))));
    return d * (low + d * d * (d * d) * high);
}

/* The margin m grows by d, where d + exp(m) (exp(d) - 1) = step. Two bounds from above: with exp(d) - 1 >= d + d^2 / 2,
 * and without the first term. From there Newton's steps go down to d, since the left side is convex; the error of the
 * last one is its square. */
static double logistic_invariant(double parameter, double score, double y, double step) {
    const double margin = y * score, e = exp(margin < 700 ? margin : 700);
    (void)parameter;
    double d = 2 * step / (1 + e + sqrt((1 + e) * (1 + e) + 2 * e * step));
    if (d > 1) d = fmin(d, fmin(step, log1p(step / e)));
    for (int i = 0; i < 50; i++) {
        const double grown = e * grown_by(d), too_far = (d + grown - step) / (1 + e + grown);
        d -= too_far;
        if (!(too_far > 3e-4 * d)) break;
    }
    return y * d;
}

static void logistic_probability(int64_t k, const double *score, double *p) {
    (void)k;
    double e = exp(-fabs(score[0])), high = 1.0 / (1.0 + e), low = e / (1.0 + e);
    p[1] = score[0] >= 0 ? high : low;
    p[0] = score[0] >= 0 ? low : high;
}

const pli_loss pli_loss_logistic = { .model = "logistic",
                                     .target = PLI_TWO_CLASSES,
                                     .smooth = true,
                                     .curvature = 0.25,
                                     .at = logistic_at,
                                     .many = logistic_many,
                                     .second = logistic_second,
                                     .conjugate = logistic_conjugate,
                                     .reach = 3,
                                     .invariant = logistic_invariant,
                                     .probability = logistic_probability };
