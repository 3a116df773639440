/* How far a point t is above the least objective, for certain: a duality gap.
 *
 * Let the objective be sum_i c_i f_i(s_i) + R(t), with a row's score s_i = x_i t. For any slope u of a score, the
 * conjugate f*(u) says how far the line of that slope lies below the loss: f(s) >= u s - f*(u). So slopes u_i of all
 * rows, z = -sum c_i u_i x_i, bound the least objective from below, and t is above it by at most
 *
 *     sum_i c_i (f_i(s_i) + f_i*(u_i) - u_i s_i)  +  R(t) + R*(z) - z t
 *
 * (Fenchel's duality: Rockafellar, "Convex Analysis", 1970, section 31). No term is below 0. With the slopes of the
 * losses at t the first sum is 0, and the rest is |slope of the objective|^2 / (2 l2): far too much. Here u_i is the
 * slope that the row's own parabola has at t,
 *
 *     u_i = f_i'(v_i) + f_i''(v_i) (s_i - v_i),
 *
 * where v_i was the row's score when its worker made its model. If t is the least point of the sum of all models, these
 * slopes and the penalty's are in balance, whatever points the models were made at, and the rest is 0. What a row adds
 * is of the fourth order in the way from v_i to s_i; of a smoothed hinge loss it is the duality gap of the hinge loss
 * itself. All is computed from the rows, so a table that holds something else can only make the bound worse.
 *
 * - A slope that the parabola takes too far, where the conjugate is infinite, is moved back.
 * - The intercept has no penalty, so its z must be 0, or R* is infinite. Slopes may shrink, since a slope of 0 has a
 *   finite conjugate by every loss: with one score, those below 0 or those above; with one score a class, those of the
 *   rows of some classes (dual_bound.c).
 * - A weight without a penalty in l2 has no bound, unless its column is empty. */
#include <math.h>
#include <string.h>

#include "learn/linear/dual.h"
#include "learn/linear/newton_rows.h"

enum { BELOW, ABOVE, SIDES }; /* the slopes of one score: below 0, above 0 */

typedef struct bound {
    pli_newton_rows *rows;
    int64_t          k, flows; /* numbers of a flow */
    double          *flow;     /* [groups, flows]: [SIDES] what the slopes add up to; or [k, k], less what those of the
                                * class c are in rows of class y */
    double          *factor;   /* [SIDES] or [k]: what slopes shrink by */
    double          *slope;    /* [groups, k] */
    double          *second;   /* [groups, k, k] */
    bool             sums;     /* this pass is the second */
} bound;

/* Writes the slope of row r's parabola at the point. Returns the row's weight, 0: it does not count. */
static double slope_of(bound *b, int64_t i, const pli_block *block, int64_t r, int64_t number, double *y_out,
                       double *conjugate_out) {
    const pli_goal *goal = &b->rows->linear.goal;
    const int64_t   k = b->k;
    const double   *from = b->rows->score + number * k, *to = b->rows->to + number * k;
    double         *u = b->slope + i * k, *h = b->second + i * k * k, weight;
    if (!pli_goal_target(goal, block->label[r], y_out, &weight)) return 0;
    if (block->weight != NULL) weight *= (double)block->weight[r];
    goal->loss->at(goal->parameter, k, from, *y_out, u);
    goal->loss->second(goal->parameter, k, from, *y_out, h);
    for (int64_t c = 0; c < k; c++)
        for (int64_t d = 0; d < k; d++) u[c] += h[c * k + d] * (to[d] - from[d]);
    *conjugate_out = goal->loss->conjugate(goal->parameter, k, *y_out, u);
    return weight;
}

static void add_flow(bound *b, int64_t i, double weight, double y) {
    const double *u = b->slope + i * b->k;
    double       *flow = b->flow + i * b->flows;
    if (b->k == 1) flow[u[0] > 0 ? ABOVE : BELOW] += weight * u[0];
    for (int64_t c = 0; c < b->k && b->k > 1; c++) flow[c * b->k + (int64_t)y] -= weight * u[c];
}

/* Adds what the row with its slope, shrunk, is in all sums. */
static void add_sums(bound *b, int64_t i, const pli_block *block, int64_t r, int64_t number, double weight, double y) {
    const pli_goal   *goal = &b->rows->linear.goal;
    const pli_loss   *loss = goal->loss->kinked != NULL ? goal->loss->kinked : goal->loss;
    pli_newton_group *g = &b->rows->group[i];
    const double     *to = b->rows->to + number * b->k;
    double           *u = b->slope + i * b->k;
    const double      factor = b->factor[b->k > 1 ? (int64_t)y : u[0] > 0 ? ABOVE : BELOW];
    for (int64_t c = 0; c < b->k; c++) u[c] *= factor;
    double apart = goal->loss->conjugate(goal->parameter, b->k, y, u);
    for (int64_t c = 0; c < b->k; c++) apart -= u[c] * to[c];
    const double value = loss->at(goal->parameter, b->k, to, y, g->slope);
    g->sums.loss += weight * value;
    g->sums.absolute += weight * fmax(0, value + apart);
    for (int64_t c = 0; c < b->k; c++) u[c] *= weight;
    pli_newton_add_slope(g, block, r, b->k, u);
}

static void pass_group(void *user, int64_t i, int32_t thread) {
    bound            *b = user;
    pli_newton_rows  *n = b->rows;
    pli_newton_group *g = &n->group[i];
    double            y = 0, conjugate;
    (void)thread;
    memset(g->model.r, 0, (size_t)(g->model.rows * b->k) * sizeof(double));
    memset(g->bias, 0, (size_t)b->k * sizeof(double));
    g->sums = (pli_sums){ 0 };
    for (int32_t p = pli_newton_first(n, i); p < pli_newton_first(n, i + 1); p++)
        for (int64_t j = 0; j < n->batch->part[p].rows; j++) {
            const pli_part *part = &n->batch->part[p];
            const int64_t   r = pli_newton_row(part, j), number = n->begin[p] + j;
            const double    weight = slope_of(b, i, part->block, r, number, &y, &conjugate);
            if (!(weight > 0)) continue;
            if (b->sums) add_sums(b, i, part->block, r, number, weight, y);
            else add_flow(b, i, weight, y);
        }
}

/* Finds the factors under which the intercepts' z is 0. *found_out: there are some. Collective. */
static plait_status balance(pli_run *run, bound *b, bool *found_out) {
    double *flow = b->flow, *factor = b->factor;
    *found_out = true;
    if (b->rows != NULL) pli_pool_for(run->pool, PLI_NEWTON_GROUPS, pass_group, b);
    for (int64_t i = b->flows; i < b->flows * PLI_NEWTON_GROUPS; i++) flow[i % b->flows] += flow[i];
    PLI_TRY(plait_comm_allreduce(run->comm, flow, b->flows, PLAIT_F64, PLAIT_SUM));
    if (b->k > 1) {
        *found_out = pli_dual_balance(b->k, flow, factor);
        return PLAIT_OK;
    }
    const double below = -flow[BELOW], above = flow[ABOVE], less = fmin(below, above);
    factor[BELOW] = below > 0 ? less / below : 1;
    factor[ABOVE] = above > 0 ? less / above : 1;
    return PLAIT_OK;
}

/* R(t) + R*(z) - z t. slope [values] is -z. penalty_out: R(t). */
static double penalty_apart(const pli_linear *linear, const pli_penalised *p, const double *t, const double *slope,
                            double *penalty_out) {
    double apart = 0;
    *penalty_out = 0;
    for (int64_t i = 0; i < linear->features * linear->goal.columns; i++) {
        const double factor = p->factor != NULL ? p->factor[i] : 1, l1 = factor * p->l1, l2 = factor * p->l2;
        const double beyond = fmax(0, fabs(slope[i]) - l1), own = l2 / 2 * t[i] * t[i] + l1 * fabs(t[i]);
        *penalty_out += own;
        if (!(l2 > 0) && (slope[i] != 0 || p->l1 > 0)) return INFINITY;
        apart += own + (l2 > 0 ? beyond * beyond / (2 * l2) : 0) + slope[i] * t[i];
    }
    return fmax(0, apart);
}

static plait_status measure(pli_run *run, bound *b, const pli_batch *batch, const pli_penalised *penalty,
                            const double *at, double *sums, double *gap_out) {
    const pli_linear *linear = &pli_linear_fit_of(run)->linear;
    const int64_t     values = (linear->features + linear->intercept) * b->k;
    pli_sums          own = { 0 };
    bool              found = true;
    double            all;
    if (b->rows != NULL) pli_newton_score(b->rows, batch, at);
    for (int64_t c = 0; c < b->k || c < SIDES; c++) b->factor[c] = 1;
    if (linear->intercept) PLI_TRY(balance(run, b, &found));
    b->sums = true;
    if (b->rows != NULL) {
        pli_pool_for(run->pool, PLI_NEWTON_GROUPS, pass_group, b);
        pli_newton_add_groups(b->rows, NULL, sums, &own);
        pli_run_charge(run, batch, 2 * b->k, values);
    }
    sums[values] = own.loss / (double)run->train_rows;
    sums[values + 1] = own.absolute / (double)run->train_rows;
    PLI_TRY(plait_comm_allreduce(run->comm, sums, values + 2, PLAIT_F64, PLAIT_SUM));
    const double apart = sums[values + 1] + penalty_apart(linear, penalty, at, sums, &all);
    all += sums[values];
    *gap_out = !found || !isfinite(apart) || !(all > 0) ? (double)INFINITY : apart / all;
    return PLAIT_OK;
}

plait_status pli_newton_bound(pli_run *run, pli_newton_rows *rows, const pli_batch *batch, const pli_penalised *penalty,
                              const double *at, double *gap_out) {
    const pli_linear *linear = &pli_linear_fit_of(run)->linear;
    const int64_t     k = linear->goal.columns, flows = k > 1 ? k * k : SIDES;
    const int64_t     values = (linear->features + linear->intercept) * k;
    *gap_out = INFINITY;
    if (linear->goal.loss->conjugate == NULL || !(penalty->l2 > 0)) return PLAIT_OK;
    double *memory = pli_calloc((size_t)(PLI_NEWTON_GROUPS * (flows + k + k * k) + k + SIDES + values + 2),
                                sizeof *memory);
    if (memory == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a bound of %lld weights",
                                        (long long)values);
    bound b = { .rows = rows, .k = k, .flows = flows, .flow = memory };
    b.slope = b.flow + PLI_NEWTON_GROUPS * flows;
    b.second = b.slope + PLI_NEWTON_GROUPS * k;
    b.factor = b.second + PLI_NEWTON_GROUPS * k * k;
    const plait_status status = measure(run, &b, batch, penalty, at, b.factor + k + SIDES, gap_out);
    pli_free(memory);
    return status;
}
