/* The hinge losses, smoothed: at the kink the maximum becomes the logarithm of a sum of exponentials of width mu,
 *
 *     two classes   mu ln(1 + exp(g / mu)),  g = 1 - y s
 *     more          mu ln(sum over c of exp(z_c / mu)) - s_y,  z_c = s_c + (c != y)
 *
 * (Nesterov, "Smooth minimization of non-smooth functions", Math. Programming 103, 2005; the prox function is the
 * entropy). The slopes a of the smoothed loss are a point of the hinge loss's dual problem. So what the hinge loss is
 * more than a g, or than sum a_c z_c, is a row's part of the duality gap: the excess. It is certain, however wide the
 * smoothing is, and about mu^2 times the rows' density at the kink. */
#include "learn/loss/loss.h"

#include <math.h>

static double two_at(double mu, int64_t k, const double *score, double y, double *slope) {
    const double gap = 1.0 - y * score[0], e = exp(-fabs(gap) / mu); /* never overflows */
    (void)k;
    slope[0] = -y * (gap >= 0 ? 1.0 : e) / (1.0 + e);
    return (gap > 0 ? gap : 0.0) + mu * log1p(e);
}

static void two_second(double mu, int64_t k, const double *score, double y, double *h) {
    const double e = exp(-fabs(1.0 - y * score[0]) / mu);
    (void)k;
    h[0] = e / ((1.0 + e) * (1.0 + e)) / mu;
}

static double two_excess(double mu, int64_t k, const double *score, double y) {
    const double size = fabs(1.0 - y * score[0]), e = exp(-size / mu);
    (void)k;
    return size * e / (1.0 + e);
}

static double two_conjugate(double mu, int64_t k, double y, double *slope) {
    const double share = fmax(0, fmin(-y * slope[0], 1));
    (void)mu, (void)k;
    slope[0] = -y * share;
    return -share;
}

/* Writes the share of each class to p [k]. *top_out: the largest z; *sum_out: the sum of exp((z - top) / mu). */
static void shares(double mu, int64_t k, const double *score, int64_t label, double *p, double *top_out,
                   double *sum_out) {
    double top = score[label], sum = 0;
    for (int64_t c = 0; c < k; c++)
        if (c != label && score[c] + 1.0 > top) top = score[c] + 1.0;
    for (int64_t c = 0; c < k; c++) sum += p[c] = exp((score[c] + (c != label ? 1.0 : 0.0) - top) / mu);
    for (int64_t c = 0; c < k; c++) p[c] /= sum;
    *top_out = top;
    *sum_out = sum;
}

static double classes_at(double mu, int64_t k, const double *score, double y, double *slope) {
    const int64_t label = (int64_t)y;
    double        top, sum;
    shares(mu, k, score, label, slope, &top, &sum);
    slope[label] -= 1.0;
    return top - score[label] + mu * log(sum);
}

/* (diag(p) - p p') / mu. The first row holds p until it is written, last of all. */
static void classes_second(double mu, int64_t k, const double *score, double y, double *h) {
    double top, sum, *p = h;
    shares(mu, k, score, (int64_t)y, p, &top, &sum);
    for (int64_t c = k - 1; c >= 0; c--)
        for (int64_t d = k - 1; d >= 0; d--) h[c * k + d] = (c == d ? p[c] * (1 - p[c]) : -p[c] * p[d]) / mu;
}

static double classes_excess(double mu, int64_t k, const double *score, double y) {
    const int64_t label = (int64_t)y;
    double        top = score[label], sum = 0, below = 0;
    for (int64_t c = 0; c < k; c++)
        if (c != label && score[c] + 1.0 > top) top = score[c] + 1.0;
    for (int64_t c = 0; c < k; c++) {
        const double z = score[c] + (c != label ? 1.0 : 0.0) - top, e = exp(z / mu);
        sum += e;
        below -= e * z;
    }
    return below / sum;
}

/* As with softmax, slopes and 1 for the label are shares. */
static double classes_conjugate(double mu, int64_t k, double y, double *slope) {
    const int64_t label = (int64_t)y;
    double        sum = 0;
    (void)mu;
    slope[label] += 1.0;
    for (int64_t c = 0; c < k; c++) sum += slope[c] = fmax(0, slope[c]);
    for (int64_t c = 0; c < k; c++) slope[c] /= sum;
    const double own = slope[label];
    slope[label] = own - 1.0;
    return own - 1.0;
}

const pli_loss pli_loss_hinge_smooth = {
    .model = "hinge", .target = PLI_TWO_CLASSES, .smooth = true, .curvature = 0.25, .at = two_at, .second = two_second,
    .reach = 3, .excess = two_excess, .kinked = &pli_loss_hinge, .conjugate = two_conjugate
};
const pli_loss pli_loss_hinge_classes_smooth = {
    .model = "hinge", .target = PLI_CLASSES, .smooth = true, .curvature = 0.25, .at = classes_at,
    .second = classes_second, .reach = 3, .excess = classes_excess, .kinked = &pli_loss_hinge_classes,
    .conjugate = classes_conjugate
};
