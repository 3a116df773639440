/* Hinge loss. Two classes: max(0, 1 - y s). More: max(0, 1 + max over c != y of s_c - s_y) (Crammer and
 * Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines", JMLR 2001). */
#include "learn/loss/loss.h"

static double hinge_at(double parameter, int64_t k, const double *score, double y, double *slope) {
    (void)parameter, (void)k;
    double gap = 1.0 - y * score[0];
    slope[0] = gap > 0 ? -y : 0.0;
    return gap > 0 ? gap : 0.0;
}

/* The slope is -1 up to the margin, and 0 behind it. */
static double hinge_invariant(double parameter, double score, double y, double step) {
    (void)parameter;
    const double gap = 1.0 - y * score;
    return gap <= 0 ? 0 : y * (step < gap ? step : gap);
}

static double hinge_classes_at(double parameter, int64_t k, const double *score, double y, double *slope) {
    (void)parameter;
    int64_t label = (int64_t)y, rival = label == 0 ? 1 : 0;
    for (int64_t c = 0; c < k; c++) {
        slope[c] = 0;
        if (c != label && score[c] > score[rival]) rival = c;
    }
    double gap = 1.0 + score[rival] - score[label];
    if (gap <= 0) return 0;
    slope[rival] = 1.0;
    slope[label] = -1.0;
    return gap;
}

const pli_loss pli_loss_hinge = { .model = "hinge",
                                  .target = PLI_TWO_CLASSES,
                                  .curvature = 1,
                                  .at = hinge_at,
                                  .smoothed = &pli_loss_hinge_smooth,
                                  .invariant = hinge_invariant };
const pli_loss pli_loss_hinge_classes = { .model = "hinge",
                                          .target = PLI_CLASSES,
                                          .curvature = 1,
                                          .at = hinge_classes_at,
                                          .smoothed = &pli_loss_hinge_classes_smooth };
