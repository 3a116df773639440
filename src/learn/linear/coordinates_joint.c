/* Joint steps: all weights that are not 0 move at once, by conjugate gradients. See coordinates.h.
 *
 * Where columns are much alike, coordinates crawl along a valley. While no weight changes its sign, the objective is a
 * parabola in the weights that are not 0, and conjugate gradients come to its least point in about the square root of
 * the number of passes that coordinates need (preconditioned by the curvature of each; Golub and Van Loan, "Matrix
 * Computations", 11.5). A product with the matrix costs what a pass costs. A weight that would change its sign stops at
 * 0; if the step then does not go downhill, half of it is tried. */
#include <math.h>
#include <string.h>

#include "learn/linear/coordinates.h"

enum { STEPS_MOST = 60, HALVINGS = 6 };

typedef struct joint {
    pli_coordinates *c;
    int64_t          n;
    const int64_t   *column;   /* [n] those with a weight   */
    double          *residual; /* [n] minus the gradient    */
    double          *start;    /* [n] the same at the start */
    double          *direction, *product, *step, *clipped; /* [n] */
} joint;

static double dot(int64_t n, const double *x, const double *y) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* Rows' part of a product: c->step := omega (X p less its mean). */
static void multiply_rows(pli_coordinates *c, int64_t n, const int64_t *column, const double *p) {
    double mean = 0;
    memset(c->step, 0, (size_t)c->columns.rows * sizeof *c->step);
    for (int64_t i = 0; i < n; i++) {
        if (p[i] == 0) continue;
        pli_column_add(&c->columns, column[i], p[i], NULL, c->step);
        if (c->intercept) mean += p[i] * c->first[column[i]];
    }
    mean /= c->mass;
    for (int64_t i = 0; i < c->columns.rows; i++)
        c->step[i] = (c->step[i] - mean) * (c->omega != NULL ? c->omega[i] : c->columns.v[i]);
}

/* product := H p. */
static void multiply(joint *t, const double *p) {
    pli_coordinates *c = t->c;
    if (c->gram == NULL) multiply_rows(c, t->n, t->column, p);
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t j = t->column[i];
        double        sum = 0;
        if (c->gram == NULL) sum = pli_column_dot(&c->columns, j, c->step);
        else
            for (int64_t k = 0; k < t->n; k++) sum += c->gram[j * c->columns.features + t->column[k]] * p[k];
        t->product[i] = sum + c->l2 * p[i];
    }
}

/* clipped := residual less what the curvature of each alone says; returns their product. */
static double precondition(joint *t) {
    const pli_coordinates *c = t->c;
    for (int64_t i = 0; i < t->n; i++) t->clipped[i] = t->residual[i] / (c->h[t->column[i]] + c->l2);
    return dot(t->n, t->residual, t->clipped);
}

/* step := about the way to the least point of the parabola. */
static void find_step(joint *t, double target) {
    double gained = 0, rz = precondition(t);
    memcpy(t->direction, t->clipped, (size_t)t->n * sizeof *t->direction);
    for (int i = 0; i < STEPS_MOST && rz > 0; i++) {
        multiply(t, t->direction);
        const double bend = dot(t->n, t->direction, t->product), alpha = rz / bend;
        if (!(bend > 0) || !isfinite(alpha)) return;
        for (int64_t k = 0; k < t->n; k++) t->step[k] += alpha * t->direction[k];
        for (int64_t k = 0; k < t->n; k++) t->residual[k] -= alpha * t->product[k];
        gained += alpha * rz;
        if (alpha * rz < 0.01 * gained || alpha * rz < target / 16) return;
        const double before = rz;
        rz = precondition(t);
        for (int64_t k = 0; k < t->n; k++) t->direction[k] = t->clipped[k] + rz / before * t->direction[k];
    }
}

/* clipped := the share of the step, each weight going to 0 at most. */
static void clip(joint *t, double share) {
    const pli_coordinates *c = t->c;
    for (int64_t i = 0; i < t->n; i++) {
        const double w = c->w[t->column[i]], to = w + share * t->step[i];
        t->clipped[i] = to * w > 0 ? to - w : -w;
    }
}

static double take(joint *t) {
    for (double share = 1; share > 1.0 / (1 << HALVINGS); share /= 2) {
        clip(t, share);
        multiply(t, t->clipped);
        const double fall = dot(t->n, t->start, t->clipped) - dot(t->n, t->clipped, t->product) / 2;
        if (!(fall > 0)) continue;
        for (int64_t i = 0; i < t->n; i++) pli_coordinates_move(t->c, t->column[i], t->clipped[i]);
        return fall;
    }
    return 0;
}

double pli_coordinates_joint(pli_coordinates *c, int64_t n, const int64_t *column, double target) {
    joint t = { .c = c, .n = n, .column = column };
    t.residual = pli_calloc((size_t)n + 1, 6 * sizeof *t.residual);
    if (t.residual == NULL || n < 2) {
        pli_free(t.residual);
        return 0; /* single steps do without */
    }
    double **const each[] = { &t.start, &t.direction, &t.product, &t.step, &t.clipped };
    for (int i = 0; i < 5; i++) *each[i] = t.residual + (i + 1) * n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t j = column[i];
        t.start[i] = t.residual[i] = pli_coordinates_slope(c, j) - c->l2 * c->w[j] - copysign(c->l1, c->w[j]);
    }
    find_step(&t, target);
    const double fall = take(&t);
    pli_free(t.residual);
    return fall;
}
