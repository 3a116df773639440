/* How far a trained linear model lies above the optimum of its objective: a bound from below, by a few passes.
 *
 * At the optimum no step lowers the objective. From the weights that training found, conjugate gradients take some
 * steps towards the least point of the quadratic model there (a truncated Newton step: Dembo and Steihaug,
 * "Truncated-Newton algorithms for large-scale unconstrained optimization", Math. Programming 26, 1983; Nocedal and
 * Wright, "Numerical Optimization", 2006, algorithm 7.1). A product with the Hessian is a difference of two gradients.
 * The objective at the end of the step is then measured on all rows, so what it lies lower is certain, however bad the
 * quadratic model was. It is bad far from the optimum: where a logistic loss is flat, the full step overshoots. So
 * shorter steps are tried as well, and where the objective fell by much less than the model foretold, another step
 * follows from there, as in Newton's method with a line search. */
#include <math.h>
#include <string.h>

#include "learn/linear/fit.h"

/* More weights than VALUES_MAX would take too much memory. A run of fewer epochs than EPOCHS_MIN is shorter than the
 * passes here, which are as many as half its epochs, within bounds. As a rule FIXED of them are not products with the
 * Hessian. Where the quadratic model is bad, up to ROUNDS steps are made; each may be cut short TRIES - 1 times. */
enum { VALUES_MAX = 1 << 20, EPOCHS_MIN = 8, PASSES_MIN = 10, PASSES_MAX = 16, FIXED = 4, TRIES = 5, ROUNDS = 4 };
enum { VECTORS = 7 };

/* A step that gains less than this share of what the model foretold shows that the model is bad. */
static const double GOOD_SHARE = 0.25;

typedef struct gap {
    pli_run           *run;
    const pli_linear  *linear;
    pli_gradient       gradient;
    pli_batches       *batches;
    pli_batch          batch;
    int64_t            features, k, n; /* n = (features + 1) k: the weights, then the intercepts */
    int32_t            products;       /* with the Hessian, for one step */
    double            *memory;
    double            *at, *g, *step, *residual, *direction, *product, *metric; /* [n] each */
} gap;

static double dot(int64_t n, const double *x, const double *y) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* Objective and gradient at x; one pass. Collective. */
static plait_status evaluate(gap *p, const double *x, double *objective_out, double *g) {
    const pli_run *run = p->run;
    const int64_t  w = p->features * p->k;
    pli_total      total = { 0 };
    pli_sums       sums;
    pli_comm_work(run->comm, PLI_WORK_ENTRIES, (uint64_t)(run->own_entries * p->k));
    PLI_TRY(pli_gradient_run(&p->gradient, &(pli_weights){ .f64 = x, .bias = x + w }, p->features, &p->batch, NULL,
                             NULL, run->err));
    pli_total_add(&total, &p->gradient.sums[0]);
    PLI_TRY(pli_total_agree(run->comm, &total, &sums));
    if (w > 0) memcpy(g, p->gradient.sum, (size_t)w * sizeof *g);
    memcpy(g + w, p->gradient.bias, (size_t)p->k * sizeof *g);
    PLI_TRY(plait_comm_allreduce(run->comm, g, p->n, PLAIT_F64, PLAIT_SUM));
    for (int64_t i = 0; i < p->n; i++) g[i] /= (double)run->train_rows;
    for (int64_t i = 0; i < w; i++) g[i] += run->l2 * x[i];
    if (!p->linear->intercept) memset(g + w, 0, (size_t)p->k * sizeof *g);
    *objective_out = sums.loss / (double)run->train_rows + run->l2 / 2 * dot(w, x, x);
    return PLAIT_OK;
}

/* The diagonal of a bound of the Hessian, never 0; one pass. Collective. */
static plait_status measure_metric(gap *p) {
    const pli_run *run = p->run;
    const int64_t  w = p->features * p->k;
    const double   curvature = p->linear->goal.loss->curvature;
    double         most = 0;
    pli_comm_work(run->comm, PLI_WORK_ENTRIES, (uint64_t)run->own_entries);
    PLI_TRY(pli_gradient_squares(&p->gradient, p->features, &p->batch, run->err));
    if (w > 0) memcpy(p->metric, p->gradient.sum, (size_t)w * sizeof *p->metric);
    for (int64_t c = 0; c < p->k; c++) p->metric[w + c] = p->gradient.bias[0];
    PLI_TRY(plait_comm_allreduce(run->comm, p->metric, p->n, PLAIT_F64, PLAIT_SUM));
    for (int64_t i = 0; i < p->n; i++) {
        p->metric[i] *= (curvature > 0 && isfinite(curvature) ? curvature : 1) / (double)run->train_rows;
        if (i < w) p->metric[i] += run->l2;
        if (p->metric[i] > most) most = p->metric[i];
    }
    for (int64_t i = 0; i < p->n; i++)
        if (!(p->metric[i] > 1e-12 * most)) p->metric[i] = 1e-12 * most + 1e-300;
    return PLAIT_OK;
}

/* product := M^-1 residual; returns their dot product. */
static double precondition(gap *p) {
    for (int64_t i = 0; i < p->n; i++) p->product[i] = p->residual[i] / p->metric[i];
    return dot(p->n, p->residual, p->product);
}

/* product := H direction, by the difference of gradients. aside [n] is overwritten. */
static plait_status multiply(gap *p, double *aside) {
    const double length = sqrt(dot(p->n, p->direction, p->direction)), size = sqrt(dot(p->n, p->at, p->at));
    const double e = 1e-5 * (1 + size) / length;
    double       objective;
    for (int64_t i = 0; i < p->n; i++) aside[i] = p->at[i] + e * p->direction[i];
    PLI_TRY(evaluate(p, aside, &objective, p->product));
    for (int64_t i = 0; i < p->n; i++) p->product[i] = (p->product[i] - p->g[i]) / e;
    return PLAIT_OK;
}

/* step := about -H^-1 g, by conjugate gradients. They end when a step adds little, or there are enough products.
 * *foretold: by how much the quadratic model falls. */
static plait_status find_step(gap *p, double *aside, double *foretold) {
    double gained = 0;
    for (int64_t i = 0; i < p->n; i++) p->residual[i] = -p->g[i];
    double rz = precondition(p);
    memset(p->step, 0, (size_t)p->n * sizeof *p->step);
    memcpy(p->direction, p->product, (size_t)p->n * sizeof *p->direction);
    for (int32_t made = 0; made < p->products && rz > 0 && isfinite(rz); made++) {
        PLI_TRY(multiply(p, aside));
        const double bend = dot(p->n, p->direction, p->product), alpha = rz / bend;
        if (!(bend > 0) || !isfinite(alpha)) break;
        for (int64_t i = 0; i < p->n; i++) p->step[i] += alpha * p->direction[i];
        for (int64_t i = 0; i < p->n; i++) p->residual[i] -= alpha * p->product[i];
        gained += alpha * rz;
        if (alpha * rz < 0.03 * gained) break;
        const double before = rz;
        rz = precondition(p);
        for (int64_t i = 0; i < p->n; i++) p->direction[i] = p->product[i] + rz / before * p->direction[i];
    }
    *foretold = gained / 2;
    return PLAIT_OK;
}

/* Moves to the end of the step, or of a shorter one, if the objective is less there; else at stays as it is. */
static plait_status take_step(gap *p, double *aside, double *objective) {
    double share = 1;
    for (int32_t i = 0; i < TRIES; i++, share /= 4) {
        double now;
        for (int64_t j = 0; j < p->n; j++) aside[j] = p->at[j] + share * p->step[j];
        PLI_TRY(evaluate(p, aside, &now, p->product));
        if (!isfinite(now) || now >= *objective) continue;
        *objective = now;
        memcpy(p->at, aside, (size_t)p->n * sizeof *p->at);
        memcpy(p->g, p->product, (size_t)p->n * sizeof *p->g);
        break;
    }
    return PLAIT_OK;
}

static plait_status begin(gap *p, const pli_solution *solution) {
    pli_run *run = p->run;
    p->memory = pli_calloc((size_t)p->n, (VECTORS + 1) * sizeof *p->memory);
    if (p->memory == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to judge %lld weights", (long long)p->n);
    double **vector[VECTORS] = { &p->at, &p->g, &p->step, &p->residual, &p->direction, &p->product, &p->metric };
    for (int i = 0; i < VECTORS; i++) *vector[i] = p->memory + i * p->n;
    memcpy(p->at, solution->weight, (size_t)(p->features * p->k) * sizeof *p->at);
    if (p->linear->intercept) memcpy(p->at + p->features * p->k, solution->bias, (size_t)p->k * sizeof *p->at);
    PLI_TRY(pli_gradient_init(&p->gradient, p->linear, run->pool, run->data, false, 8, run->err));
    PLI_TRY(pli_batches_create(run->data, run->opts->seed, 1, false, run->fraction > 0 ? pli_run_holds_back : NULL, run,
                               &p->batches, run->err));
    return pli_batches_get(p->batches, 0, 0, &p->batch, run->err);
}

static plait_status measure(gap *p, double *gap_out) {
    double *aside = p->memory + VECTORS * p->n, objective, least, foretold = 0;
    PLI_TRY(evaluate(p, p->at, &objective, p->g));
    least = objective;
    PLI_TRY(measure_metric(p));
    for (int32_t round = 0; round < ROUNDS; round++) {
        const double before = least;
        PLI_TRY(find_step(p, aside, &foretold));
        if (!(foretold > 0)) break;
        PLI_TRY(take_step(p, aside, &least));
        if (least == before || before - least >= GOOD_SHARE * foretold) break;
    }
    *gap_out = (objective - least) / fabs(least);
    return PLAIT_OK;
}

plait_status pli_linear_gap(pli_run *run, const pli_solution *solution, double *gap_out) {
    const pli_linear *linear = &pli_linear_fit_of(run)->linear;
    double            epochs = run->interrupted ? 0 : (double)run->epochs_done;
    gap p = { .run = run, .linear = linear, .features = solution->rows, .k = linear->goal.columns };
    *gap_out = NAN;
    if (solution->key != NULL || run->l1 > 0 || p.features > VALUES_MAX / p.k - 1) return PLAIT_OK;
    PLI_TRY(plait_comm_allreduce(run->comm, &epochs, 1, PLAIT_F64, PLAIT_MIN));
    if (epochs < EPOCHS_MIN) return PLAIT_OK;
    p.products = (int32_t)fmax(PASSES_MIN, fmin(epochs / 2, PASSES_MAX)) - FIXED;
    p.n = (p.features + 1) * p.k;
    plait_status status = begin(&p, solution);
    if (status == PLAIT_OK) status = measure(&p, gap_out);
    pli_batches_destroy(&p.batches);
    pli_gradient_destroy(&p.gradient);
    pli_free(p.memory);
    return status;
}
