/* Multinomial logistic loss: log sum_k exp(s_k) - s_y. */
#include "learn/loss/loss.h"

#include <math.h>

/* Writes exp(score - top) to p [k]; returns their sum. */
static double exponentials(int64_t k, const double *score, double *top_out, double *p) {
    double top = score[0], sum = 0;
    for (int64_t c = 1; c < k; c++)
        if (score[c] > top) top = score[c];
    for (int64_t c = 0; c < k; c++) sum += p[c] = exp(score[c] - top);
    *top_out = top;
    return sum;
}

static double softmax_at(double parameter, int64_t k, const double *score, double y, double *slope) {
    (void)parameter;
    int64_t label = (int64_t)y;
    double  top, sum = exponentials(k, score, &top, slope);
    for (int64_t c = 0; c < k; c++) slope[c] /= sum;
    slope[label] -= 1.0;
    return log(sum) + top - score[label];
}

/* diag(p) - p p'. The first row holds p until it is written, last of all. */
static void softmax_second(double parameter, int64_t k, const double *score, double y, double *h) {
    double top, *p = h, sum = exponentials(k, score, &top, p);
    (void)parameter, (void)y;
    for (int64_t c = 0; c < k; c++) p[c] /= sum;
    for (int64_t c = k - 1; c >= 0; c--)
        for (int64_t d = k - 1; d >= 0; d--) h[c * k + d] = c == d ? p[c] * (1 - p[c]) : -p[c] * p[d];
}

/* Slopes and 1 for the label are shares: none is below 0, and their sum is 1. */
static double softmax_conjugate(double parameter, int64_t k, double y, double *slope) {
    double sum = 0, value = 0;
    (void)parameter;
    slope[(int64_t)y] += 1.0;
    for (int64_t c = 0; c < k; c++) sum += slope[c] = fmax(0, slope[c]);
    for (int64_t c = 0; c < k; c++) value += pli_x_log_x(slope[c] /= sum);
    slope[(int64_t)y] -= 1.0;
    return value;
}

static void softmax_probability(int64_t k, const double *score, double *p) {
    double top, sum = exponentials(k, score, &top, p);
    for (int64_t c = 0; c < k; c++) p[c] /= sum;
}

const pli_loss pli_loss_softmax = { .model = "logistic",
                                    .target = PLI_CLASSES,
                                    .smooth = true,
                                    .curvature = 0.25,
                                    .at = softmax_at,
                                    .second = softmax_second,
                                    .conjugate = softmax_conjugate,
                                    .reach = 3,
                                    .probability = softmax_probability };
