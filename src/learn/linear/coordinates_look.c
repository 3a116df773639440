/* Looks: slopes of all columns, the duality gap; and how far to go along what passes have found. See coordinates.h.
 *
 * With residuals r and v as weights of rows, the dual problem of squares with both penalties is that of l1 alone with
 * more rows: sqrt(l2) w_j = 0 for each column. Its value at s r is s <r, y> - s^2/2 (|r|^2 + l2 |w|^2), if no column's
 * slope s (g_j - l2 w_j) is above l1. For the logistic loss, with u the probability that the row's label is another
 * one, the first terms are the entropy of s u. With l2 > 0 there is a second bound, without the condition: each column
 * costs max(|g_j| - l1, 0)^2 / (2 l2). The larger value counts. The residuals of all rows must sum to 0, which the best
 * intercept sees to. */
#include <math.h>
#include <string.h>

#include "learn/linear/coordinates.h"
#include "learn/solve/settled.h"

enum { INTERCEPT_STEPS = 60, HALVINGS = 40 };

plait_status pli_coordinates_sum(const pli_coordinates *c, double *sums, int64_t n) {
    return plait_comm_allreduce(c->run->comm, sums, n, PLAIT_F64, PLAIT_SUM);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static double logistic(double margin) { return margin > 0 ? log1p(exp(-margin)) : log1p(exp(margin)) - margin; }

/* Residuals and curvature of the logistic loss at the scores. sums: of v loss, q, omega. */
static void bend(pli_coordinates *c, double sums[3]) {
    const pli_columns *x = &c->columns;
    memset(sums, 0, 3 * sizeof *sums);
    for (int64_t i = 0; i < x->rows; i++) {
        const double margin = x->y[i] * c->score[i], e = exp(-fabs(margin));
        const double wrong = margin > 0 ? e / (1 + e) : 1 / (1 + e);
        c->q[i] = x->v[i] * x->y[i] * wrong;
        c->omega[i] = x->v[i] * e / ((1 + e) * (1 + e));
        sums[0] += x->v[i] * (log1p(e) + (margin > 0 ? 0 : -margin));
        sums[1] += c->q[i];
        sums[2] += c->omega[i];
    }
}

static void shift(pli_coordinates *c, double by) {
    c->bias += by;
    for (int64_t i = 0; i < c->columns.rows; i++) c->score[i] += by;
}

/* Newton's steps for the intercept alone, no longer than 4: farther away the loss has hardly any curvature. Collective.
 */
static plait_status bend_rows(pli_coordinates *c) {
    double sums[3] = { 0 };
    for (int i = 0; i < INTERCEPT_STEPS; i++) {
        bend(c, sums);
        PLI_TRY(pli_coordinates_sum(c, sums, 3));
        if (!c->intercept || !(fabs(sums[1]) > 1e-15 * c->all)) break;
        const double by = fmax(-4, fmin(sums[1] / fmax(sums[2], 1e-300), 4));
        if (fabs(by) < 1e-15 * fmax(1, fabs(c->bias))) break;
        shift(c, by);
    }
    c->look.loss = sums[0];
    c->mass = sums[2];
    return PLAIT_OK;
}

/* Residuals of squares. Collective. */
static plait_status subtract_rows(pli_coordinates *c) {
    const pli_columns *x = &c->columns;
    double             sums[2] = { 0 };
    for (int64_t i = 0; i < x->rows; i++) sums[0] += x->v[i] * (x->y[i] - c->score[i]);
    PLI_TRY(pli_coordinates_sum(c, sums, 1));
    if (c->intercept) shift(c, sums[0] / c->all);
    sums[0] = 0;
    for (int64_t i = 0; i < x->rows; i++) {
        const double r = x->y[i] - c->score[i];
        c->q[i] = x->v[i] * r;
        sums[0] += c->q[i] * r;
        sums[1] += c->q[i] * x->y[i];
    }
    PLI_TRY(pli_coordinates_sum(c, sums, 2));
    c->look.square = sums[0];
    c->look.target = sums[1];
    c->look.loss = sums[0] / 2;
    return PLAIT_OK;
}

/* The same from products: no row is needed. */
static void subtract_products(pli_coordinates *c) {
    double square = c->label_square, target = c->label_square;
    for (int64_t j = 0; j < c->columns.features; j++) {
        square -= c->w[j] * (c->label_slope[j] + c->g[j]);
        target -= c->w[j] * c->label_slope[j];
    }
    c->look.square = fmax(square, 0);
    c->look.target = target;
    c->look.loss = c->look.square / 2;
}

static void find_slope(void *user, int64_t j, int32_t thread) {
    pli_coordinates *c = user;
    (void)thread;
    if (!c->out[j]) c->g[j] = pli_column_dot(&c->columns, j, c->q);
}

plait_status pli_coordinates_look(pli_coordinates *c) {
    memcpy(c->before, c->w, (size_t)c->columns.features * sizeof *c->w);
    if (c->gram != NULL) {
        subtract_products(c);
        return PLAIT_OK;
    }
    PLI_TRY(c->logistic ? bend_rows(c) : subtract_rows(c));
    c->lag = 0;
    pli_settled_begin_work(c->run);
    pli_comm_work(c->run->comm, PLI_WORK_ENTRIES, (uint64_t)c->columns.start[c->columns.features]);
    pli_pool_for(c->run->pool, c->columns.features, find_slope, c);
    pli_settled_end_work(c->run, c->columns.rows);
    return pli_coordinates_sum(c, c->g, c->columns.features);
}

/* --- the gap ------------------------------------------------------------------------------------------------------ */

/* x ln x + (1 - x) ln(1 - x): minus the entropy. */
static double order_of(double x) { return x > 0 && x < 1 ? x * log(x) + (1 - x) * log1p(-x) : 0; }

/* The rows' part of the dual value at scale s. Collective if the loss is logistic. */
static plait_status rows_value(const pli_coordinates *c, double s, double *out) {
    const pli_columns *x = &c->columns;
    *out = s * c->look.target - s * s / 2 * c->look.square;
    if (!c->logistic) return PLAIT_OK;
    *out = 0;
    for (int64_t i = 0; i < x->rows; i++)
        if (x->v[i] > 0) *out -= x->v[i] * order_of(s * fabs(c->q[i]) / x->v[i]);
    return pli_coordinates_sum(c, out, 1);
}

/* Sums over columns: |w|, w^2, the largest slope, and what slopes above l1 cost. */
typedef struct columns_part {
    double absolute, square, top, over;
} columns_part;

static columns_part add_columns(const pli_coordinates *c) {
    columns_part p = { 0 };
    for (int64_t j = 0; j < c->columns.features; j++) {
        if (c->out[j]) continue;
        const double over = fabs(c->g[j]) - c->l1;
        p.absolute += fabs(c->w[j]);
        p.square += c->w[j] * c->w[j];
        p.top = fmax(p.top, fabs(c->g[j] - c->l2 * c->w[j]));
        if (over > 0) p.over += over * over;
    }
    return p;
}

static double scale_of(const pli_coordinates *c, const columns_part *p) {
    const double most = p->top > c->l1 ? c->l1 / p->top : 1, least = c->look.square + c->l2 * p->square;
    if (c->logistic) return most;
    const double wanted = least > 0 ? c->look.target / least : 1;
    const double bound = p->top > 0 ? c->l1 / p->top : INFINITY;
    return fmin(wanted, bound);
}

plait_status pli_coordinates_gap(pli_coordinates *c) {
    pli_look          *look = &c->look;
    const columns_part p = add_columns(c);
    double             value, other;
    look->primal = look->loss + c->l2 / 2 * p.square + c->l1 * p.absolute;
    look->scale = scale_of(c, &p);
    PLI_TRY(rows_value(c, look->scale, &value));
    value -= look->scale * look->scale * c->l2 / 2 * p.square;
    look->gap = fmax(look->primal - value, 0);
    look->radius = sqrt(2 * look->gap / (c->logistic ? 4 : 1));
    if (c->l2 > 0) {
        PLI_TRY(rows_value(c, 1, &other));
        look->gap = fmin(look->gap, fmax(look->primal - (other - p.over / (2 * c->l2)), 0));
    }
    return PLAIT_OK;
}

/* --- after passes ------------------------------------------------------------------------------------------------- */

/* The objective if scores and weights go the share t of the way. Collective. */
static plait_status objective_at(const pli_coordinates *c, double t, double *out) {
    const pli_columns *x = &c->columns;
    *out = 0;
    for (int64_t i = 0; i < x->rows; i++) *out += x->v[i] * logistic(x->y[i] * (c->score[i] + t * c->step[i]));
    PLI_TRY(pli_coordinates_sum(c, out, 1));
    for (int64_t i = 0; i < c->n_working; i++) {
        const int64_t j = c->working[i];
        const double  w = c->before[j] + t * (c->w[j] - c->before[j]);
        *out += c->l2 / 2 * w * w + c->l1 * fabs(w);
    }
    return PLAIT_OK;
}

/* What the objective falls by to first order, if all of the step is taken. */
static double promised(const pli_coordinates *c) {
    double sum = 0;
    for (int64_t i = 0; i < c->n_working; i++) {
        const int64_t j = c->working[i];
        sum += (c->g[j] - c->l2 * c->before[j]) * (c->w[j] - c->before[j]) -
               c->l1 * (fabs(c->w[j]) - fabs(c->before[j]));
    }
    return sum;
}

/* The largest share 1, 1/2, 1/4, ... of the step that keeps a part of the promise (Armijo's rule; Lee, Sun and
 * Saunders, "Proximal Newton-type methods", SIAM J. Optim. 24(3), 2014). Collective. */
static plait_status search(pli_coordinates *c, double *share_out) {
    const double slope = promised(c);
    double       now, then;
    *share_out = 1;
    PLI_TRY(objective_at(c, 0, &now));
    for (int i = 0; i < HALVINGS; i++, *share_out /= 2) {
        PLI_TRY(objective_at(c, *share_out, &then));
        if (then <= now - 1e-3 * *share_out * slope + 1e-15 * fabs(now)) return PLAIT_OK;
    }
    *share_out = 0;
    return PLAIT_OK;
}

plait_status pli_coordinates_settle(pli_coordinates *c) {
    double share = 1;
    if (c->gram != NULL) return PLAIT_OK;
    for (int64_t i = 0; i < c->columns.rows; i++) c->step[i] = c->lag;
    for (int64_t i = 0; i < c->n_working; i++) {
        const int64_t j = c->working[i];
        if (c->w[j] != c->before[j]) pli_column_add(&c->columns, j, c->w[j] - c->before[j], NULL, c->step);
    }
    if (c->logistic) PLI_TRY(search(c, &share));
    for (int64_t i = 0; i < c->columns.rows; i++) c->score[i] += share * c->step[i];
    c->bias += share * c->lag;
    c->lag = 0;
    for (int64_t i = 0; i < c->n_working && share != 1; i++) {
        const int64_t j = c->working[i];
        c->w[j] = c->before[j] + share * (c->w[j] - c->before[j]);
    }
    return PLAIT_OK;
}
