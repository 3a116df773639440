#include "cli/looks.h"

#include <math.h>

void pli_looks_begin(pli_looks *looks) {
    looks->n = 1;
    looks->at[0] = (pli_look){ 0 };
}

static void halve(pli_looks *looks) {
    int32_t n = 0;
    for (int32_t i = 0; i < looks->n; i += 2) looks->at[n++] = looks->at[i];
    looks->n = n;
}

void pli_looks_add(pli_looks *looks, int64_t clock, double seconds, double loss) {
    const pli_look *before = &looks->at[looks->n - 1];
    const double    since = (double)clock - before->clock;
    if (isnan(loss) || since <= 0) return;
    const pli_look look = { (double)clock, seconds, before->sum + loss * since };
    if (looks->n == PLI_LOOKS) halve(looks);
    looks->at[looks->n++] = look;
}

static double between(double x, double x0, double x1, double y0, double y1) {
    return x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y1;
}

/* The state of things at a clock, between two looks. */
static pli_look at_clock(const pli_looks *looks, double clock) {
    int32_t i = 1;
    while (i < looks->n - 1 && looks->at[i].clock < clock) i++;
    const pli_look *a = &looks->at[i - 1], *b = &looks->at[i];
    return (pli_look){ clock, between(clock, a->clock, b->clock, a->seconds, b->seconds),
                       between(clock, a->clock, b->clock, a->sum, b->sum) };
}

/* The window that ends at look i. */
static bool window_at(const pli_looks *looks, int32_t i, double window, double *seconds_out, double *loss_out) {
    const pli_look *end = &looks->at[i];
    if (i < 1 || end->clock < window || !(window > 0)) return false;
    *seconds_out = at_clock(looks, end->clock - window / 2).seconds;
    *loss_out = (end->sum - at_clock(looks, end->clock - window).sum) / window;
    return true;
}

bool pli_looks_last(const pli_looks *looks, double window, double *seconds_out, double *loss_out) {
    return window_at(looks, looks->n - 1, window, seconds_out, loss_out);
}

double pli_looks_least(const pli_looks *looks, double window) {
    double least = INFINITY, seconds, loss;
    for (int32_t i = 1; i < looks->n; i++)
        if (window_at(looks, i, window, &seconds, &loss) && loss < least) least = loss;
    return least;
}

double pli_looks_until(const pli_looks *looks, double window, double loss) {
    double s0 = 0, l0 = INFINITY, s1, l1;
    for (int32_t i = 1; i < looks->n; i++) {
        if (!window_at(looks, i, window, &s1, &l1)) continue;
        if (l1 <= loss) return isinf(l0) || l0 <= l1 ? s1 : between(loss, l1, l0, s1, s0);
        s0 = s1;
        l0 = l1;
    }
    return INFINITY;
}
