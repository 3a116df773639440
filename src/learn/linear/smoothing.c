/* Losses with a kink, for solvers that need a smooth one: continuation over a smoothing.
 *
 * The loss is replaced by a smooth one of some width (loss/hinge_smooth.c; Nesterov, "Smooth minimization of non-smooth
 * functions", 2005; Beck and Teboulle, "Smoothing and first order methods: a unified framework", SIAM J. Optim. 2012).
 * A solver goes to the least point of the wide one, which few steps reach. From there it goes on with a quarter of the
 * width, and so forth: where it starts is always close (Chapelle, "Training a support vector machine in the primal",
 * Neural Computation 2007, takes Newton's steps on such a loss). It ends by a gap of the true objective, which has two
 * parts: how far the solver is from the least value of the smoothed objective, and the excess, the duality gap that
 * the smoothing leaves. Once the solver's own part is small beside the excess, the width shrinks. */
#include "learn/linear/fit.h"

#define FIRST 0.5 /* the first width; a margin is 1 */
#define SHARPER 0.25
#define LEAST 1e-9 /* float32 features tell margins no better */

void pli_linear_soften(pli_linear *linear) {
    if (linear->goal.loss->smoothed == NULL) return;
    linear->goal.loss = linear->goal.loss->smoothed;
    linear->goal.parameter = FIRST;
}

void pli_linear_blunt(pli_linear *linear) {
    if (pli_linear_is_soft(linear)) linear->goal.parameter = FIRST;
}

double pli_linear_sharpen(pli_linear *linear) {
    if (!pli_linear_is_soft(linear) || linear->goal.parameter < LEAST) return 1;
    linear->goal.parameter *= SHARPER;
    return SHARPER;
}
