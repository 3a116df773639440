/* Shares that keep the intercept's constraint, from shares that nearly do: the rows of each class are scaled down by a
 * factor of their own. Shares stay in their simplex, since 0 is in it. See dual.h. */
#include <math.h>

#include "learn/linear/dual.h"

enum { TURNS = 20000 };

/* f := (f + what flows in / what flows out) / 2, until nothing moves: lazy, so that it does not swing. */
bool pli_dual_balance(int64_t classes, const double *flow, double *factor) {
    double most = 0, total = 0, moved = 1;
    for (int64_t c = 0; c < classes; c++) factor[c] = 1;
    for (int turn = 0; turn < TURNS && moved > 1e-15; turn++) {
        moved = 0;
        for (int64_t c = 0; c < classes; c++) {
            const double out = flow[c * classes + c];
            double       in = 0;
            for (int64_t y = 0; y < classes; y++)
                if (y != c) in -= flow[c * classes + y] * factor[y];
            if (!(out > 0)) continue;
            const double next = (factor[c] + in / out) / 2;
            moved = fmax(moved, fabs(next - factor[c]) / fmax(factor[c], 1e-300));
            factor[c] = next;
        }
    }
    for (int64_t c = 0; c < classes; c++) most = fmax(most, factor[c]);
    if (!(most > 0) || !isfinite(most)) return false;
    for (int64_t c = 0; c < classes; c++) factor[c] /= most;
    for (int64_t c = 0; c < classes; c++) total += flow[c * classes + c];
    for (int64_t c = 0; c < classes; c++) {
        double left = 0;
        for (int64_t y = 0; y < classes; y++) left += flow[c * classes + y] * factor[y];
        if (!(fabs(left) <= 1e-12 * total)) return false;
    }
    return true;
}
