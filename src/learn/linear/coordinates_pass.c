/* Passes over the working set. See coordinates.h. */
#include <math.h>

#include "learn/linear/coordinates.h"

/* Single passes between two joint steps; a bound that only rounding comes to. */
enum { PASSES = 5, ROUNDS_MOST = 10000 };

double pli_coordinates_best(const pli_coordinates *c, int64_t j, double g) {
    const double z = c->h[j] * c->w[j] + g, size = fabs(z) - c->l1;
    return size <= 0 ? 0 : (z > 0 ? size : -size) / (c->h[j] + c->l2);
}

/* Keeps the slopes of all columns up to date. */
static void add_products(pli_coordinates *c, int64_t j, double change) {
    const double *row = c->gram + j * c->columns.features;
    double       *g = c->g;
    for (int64_t k = 0; k < c->columns.features; k++) g[k] -= change * row[k];
}

static void add_column(pli_coordinates *c, int64_t j, double change) {
    const double even = c->omega == NULL ? c->columns.v[0] : 1;
    pli_column_add(&c->columns, j, -change * even, c->omega, c->q);
    if (c->intercept) c->lag -= change * c->first[j] / c->mass;
}

double pli_coordinates_slope(const pli_coordinates *c, int64_t j) {
    return c->gram != NULL ? c->g[j] : pli_column_dot(&c->columns, j, c->q) - c->lag * c->first[j];
}

void pli_coordinates_move(pli_coordinates *c, int64_t j, double change) {
    if (change == 0) return;
    if (c->gram != NULL) add_products(c, j, change);
    else add_column(c, j, change);
    c->w[j] += change;
    c->updates++;
}

/* Moves one weight to its best value. Returns by how much the objective falls, at least. */
static double move(pli_coordinates *c, int64_t j) {
    if (!(c->h[j] > 0)) return 0;
    const double to = pli_coordinates_best(c, j, pli_coordinates_slope(c, j)), change = to - c->w[j];
    pli_coordinates_move(c, j, change);
    c->w[j] = to;
    return (c->h[j] + c->l2) / 2 * change * change;
}

/* Passes over the weights that are not 0, which are few; then they move jointly. Returns by how much the objective fell
 * by that. */
static double move_those(pli_coordinates *c, double target) {
    int64_t n = 0;
    for (int64_t i = 0; i < c->n_working; i++)
        if (c->w[c->working[i]] != 0) c->moving[n++] = c->working[i];
    for (int pass = 0; pass < PASSES; pass++) {
        double fall = 0;
        for (int64_t i = 0; i < n; i++) fall += move(c, c->moving[i]);
        if (!(fall > target)) return 0;
    }
    int64_t left = 0;
    for (int64_t i = 0; i < n; i++)
        if (c->w[c->moving[i]] != 0) c->moving[left++] = c->moving[i];
    return pli_coordinates_joint(c, left, c->moving, target);
}

void pli_coordinates_pass(pli_coordinates *c, double target) {
    double jointly = INFINITY;
    for (int i = 0; i < ROUNDS_MOST; i++) {
        double fall = 0;
        for (int64_t k = 0; k < c->n_working; k++) fall += move(c, c->working[k]);
        if (!(fall > target) && !(jointly > target)) return;
        jointly = move_those(c, target / 2);
    }
}
