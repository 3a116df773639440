/* The quantile (pinball) loss: q r above the score, (1 - q) |r| below, r = y - s. Its mean is least at the q-quantile
 * of the labels; with q = 1/2 it is half the absolute error (Koenker and Bassett, "Regression Quantiles", Econometrica
 * 1978). At r = 0 it has a kink. */
#include "learn/loss/loss.h"

static double quantile_at(double q, int64_t k, const double *score, double y, double *slope) {
    const double residual = y - score[0];
    (void)k;
    slope[0] = residual > 0 ? -q : residual < 0 ? 1 - q : 0;
    return residual > 0 ? q * residual : (q - 1) * residual;
}

/* The slope stays until the label is reached. */
static double quantile_invariant(double q, double score, double y, double step) {
    const double residual = y - score, most = step * (residual > 0 ? q : 1 - q);
    return residual > 0 ? (most < residual ? most : residual) : most < -residual ? -most : residual;
}

const pli_loss pli_loss_quantile = {
    .model = "quantile", .target = PLI_NUMBER, .parameter = PLI_PARAMETER_QUANTILE, .curvature = 1, .at = quantile_at,
    .invariant = quantile_invariant
};
