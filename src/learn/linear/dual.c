/* The clocks of coordinate ascent in the dual problem. See dual.h.
 *
 * One table, w, of float64: u [features, columns], then t [columns] of the constant feature. Every few clocks all
 * workers look at the same point, past a barrier. They add up the true objective there and the dual value: the
 * difference is how far the point is above the least value, up to what the intercept's constraint is off by. Where
 * that is small enough, shares that keep the constraint give a bound that is certain (dual_bound.c). */
#include "learn/linear/dual.h"

#include <math.h>
#include <string.h>

#include "learn/linear/newton.h"
#include "learn/solve/solver.h"
#include "table/table.h"
#include "table/topology/topology.h"

enum { LOOK_EVERY = 4 }; /* clocks */

struct pli_dual {
    plait_table   *table;
    pli_dual_rows *rows;
    pli_dual_frame frame;
    pli_dual_point point;  /* as read; u and t lie one behind the other */
    pli_batch      batch;  /* all own rows */
    int64_t        values; /* of the table */
    double        *before; /* [values] the point before a pass; else scratch */
    double        *best;   /* [features + 1, columns] weights of the least objective that all have looked at */
    double        *flow, *factor; /* [classes, classes]; [classes] */
    double         least, most; /* the least objective at any look; the largest bound from below that is certain */
    double         caution, value; /* value: the proximal problem's dual value at the last look */
    double         gain;           /* mean of weight a_y over all rows, at the last look */
    bool           converged;
};

static pli_dual *dual_of(const pli_run *run) { return pli_linear_fit_of(run)->dual; }

static int64_t columns_of(const pli_dual *n) { return n->point.columns; }
static int64_t classes_of(const pli_dual *n) { return columns_of(n) > 1 ? columns_of(n) : 2; }

/* --- what all share ----------------------------------------------------------------------------------------------- */

/* Adds up own rows: to sum [features] the values, to sum[features] their squares, behind that the rows. */
static void add_blocks(const pli_run *run, int64_t features, double *sum) {
    for (int32_t b = 0; b < pli_dataset_own_blocks(run->data); b++) {
        const pli_block *block = pli_dataset_block(run->data, b);
        for (int64_t r = 0; r < block->rows; r++) {
            if (run->fraction > 0 && pli_run_holds_back((void *)(uintptr_t)run, block->first_row + r)) continue;
            for (int64_t e = block->row_start[r]; e < block->row_start[r + 1]; e++) {
                const double x = block->value != NULL ? (double)block->value[e] : 1.0;
                sum[block->col[e]] += x;
                sum[features] += x * x;
            }
            sum[features + 1]++;
        }
    }
}

/* The square of the constant feature is a hundredth of what rows are far from their mean. A larger one makes the inner
 * problem ill-conditioned, a smaller one lets its centre need more moves: measured on cora, a9a and agaricus, where a
 * third and three times as much change little. Collective. */
static plait_status find_frame(pli_run *run) {
    pli_dual     *n = dual_of(run);
    const int64_t d = n->point.features;
    double       *sum = pli_calloc((size_t)d + 2, sizeof *sum);
    n->frame.mean = sum;
    if (sum == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %lld weights", (long long)d);
    add_blocks(run, d, sum);
    PLI_TRY(plait_comm_allreduce(run->comm, sum, d + 2, PLAIT_F64, PLAIT_SUM));
    for (int64_t j = 0; j <= d; j++) sum[j] /= sum[d + 1];
    for (int64_t j = 0; j < d; j++) n->frame.mean_square += sum[j] * sum[j];
    const double spread = sum[d] - n->frame.mean_square;
    n->frame.constant = spread > 1e-9 * sum[d] && spread > 0 ? 0.01 * spread : 1;
    return PLAIT_OK;
}

/* If they do not, a worker's read holds some of what others have changed in the same clock, and less caution is enough
 * at first. */
static bool reads_whole_clocks(const pli_run *run) {
    const pli_topology_kind *topology = pli_topology_find(run->topology);
    return (pli_pair_properties(topology, run->consistency, NULL) & PLAIT_WHOLE_CLOCKS) != 0;
}

static plait_status begin(pli_run *run) {
    const pli_linear *linear = &pli_linear_fit_of(run)->linear;
    const int64_t     k = linear->goal.columns;
    pli_dual         *n = pli_calloc(1, sizeof *n);
    plait_table_opts  t;
    int32_t           holders;
    pli_linear_fit_of(run)->dual = n;
    if (n == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for training");
    n->point = (pli_dual_point){ .features = linear->features, .columns = k };
    n->values = (linear->features + 1) * k;
    n->least = INFINITY;
    n->most = n->value = -INFINITY;
    n->point.u = pli_calloc((size_t)n->values, sizeof(double));
    n->point.t = n->point.u != NULL ? n->point.u + linear->features * k : NULL;
    n->point.base = pli_calloc((size_t)k, sizeof(double));
    n->before = pli_calloc((size_t)n->values, sizeof(double));
    n->best = pli_calloc((size_t)n->values, sizeof(double));
    n->flow = pli_calloc((size_t)(classes_of(n) * classes_of(n)), sizeof(double));
    n->factor = pli_calloc((size_t)classes_of(n), sizeof(double));
    if (n->point.u == NULL || n->point.base == NULL || n->before == NULL || n->best == NULL || n->flow == NULL ||
        n->factor == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for vectors of %lld weights", (long long)n->values);
    n->frame.per_row = 1 / (run->l2 * (double)run->train_rows);
    if (linear->intercept) PLI_TRY(find_frame(run));
    PLI_TRY(pli_newton_begin(run, &holders));
    n->caution = reads_whole_clocks(run) ? holders : fmax(holders / 2, 1);
    plait_table_opts_init(&t);
    t.name = "w";
    t.type = PLAIT_F64;
    t.rows = linear->features + 1;
    t.cols = k;
    return pli_run_make_table(run, &t, &n->table);
}

static void end(pli_run *run) {
    pli_dual *n = dual_of(run);
    if (n == NULL) return;
    pli_dual_rows_free(&n->rows);
    void *const all[] = { n->frame.mean, n->point.u, n->point.base, n->before, n->best, n->flow, n->factor,
                          n->batch.part };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pli_free(all[i]);
    pli_free(n);
    pli_linear_fit_of(run)->dual = NULL;
}

/* --- a clock ------------------------------------------------------------------------------------------------------ */

static plait_status read_point(pli_run *run) {
    pli_dual   *n = dual_of(run);
    const void *values;
    PLI_TRY(plait_table_read(n->table, 0, n->point.features + 1, &values));
    memcpy(n->point.u, values, (size_t)n->values * sizeof *n->point.u);
    return PLAIT_OK;
}

/* The rows stay where they are, so the parts of the first batch are those of all. */
static plait_status keep_batch(pli_run *run, const pli_batch *batch) {
    pli_dual *n = dual_of(run);
    n->batch = *batch;
    n->batch.part = pli_array((size_t)batch->parts + 1, sizeof *n->batch.part);
    if (n->batch.part == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for rows");
    if (batch->parts > 0) memcpy(n->batch.part, batch->part, (size_t)batch->parts * sizeof *n->batch.part);
    return pli_dual_rows_make(run, &n->frame, &n->batch, &n->rows);
}

/* The weights [features, columns] and intercepts [columns] of the point at hand, in the data's units. */
static void write_weights(const pli_run *run, double *to) {
    const pli_dual *n = dual_of(run);
    const int64_t   d = n->point.features, k = n->point.columns;
    const double   *mean = n->frame.mean;
    for (int64_t c = 0; c < k; c++) to[d * k + c] = n->point.base[c] + n->frame.constant * n->point.t[c];
    for (int64_t j = 0; j < d; j++)
        for (int64_t c = 0; c < k; c++) {
            const double w = n->point.u[j * k + c] - (mean != NULL ? n->point.t[c] * mean[j] : 0);
            to[j * k + c] = w;
            if (mean != NULL) to[d * k + c] -= w * mean[j];
        }
}

static void keep_curve(pli_run *run) {
    const pli_dual *n = dual_of(run);
    float          *values = (float *)(void *)n->before;
    if (!pli_curve_waits(run)) return;
    write_weights(run, n->before);
    for (int64_t i = 0; i < n->values; i++) values[i] = (float)n->before[i];
    pli_curve_keep(run, values);
}

static plait_status step(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out) {
    pli_dual *n = dual_of(run);
    uint64_t  at = pli_comm_span_begin(run->comm);
    (void)clock;
    if (n->rows == NULL) PLI_TRY(keep_batch(run, batch));
    PLI_TRY(read_point(run));
    pli_run_step(run, "get", &at);
    keep_curve(run);
    memcpy(n->before, n->point.u, (size_t)n->values * sizeof *n->before);
    pli_dual_pass(n->rows, &n->batch, (uint64_t)run->epochs_done, n->caution, &n->point, sums_out);
    for (int64_t i = 0; i < n->values; i++) n->before[i] = (n->point.u[i] - n->before[i]) / n->caution;
    pli_run_charge(run, batch, 2 * n->point.columns, n->values);
    pli_run_step(run, "compute", &at);
    return plait_table_inc_range(n->table, 0, n->point.features + 1, n->before, 0);
}

/* --- looks -------------------------------------------------------------------------------------------------------- */

/* Half of l2 times the square of weights [features + intercept, columns]. */
static double penalty_of(const pli_run *run, const double *weights) {
    const pli_dual *n = dual_of(run);
    double          square = 0;
    for (int64_t i = 0; i < n->point.features * n->point.columns; i++) square += weights[i] * weights[i];
    return run->l2 / 2 * square;
}

/* The dual values at the point at hand: of the proximal problem, and with the intercepts taken for the best ones. */
static void find_values(const pli_run *run, double penalty, double *proximal_out, double *own_out) {
    const pli_dual *n = dual_of(run);
    const double    rows = n->gain - penalty;
    *proximal_out = *own_out = rows;
    for (int64_t c = 0; c < n->point.columns; c++) {
        const double slope = run->l2 * n->point.t[c], moved = n->frame.constant * n->point.t[c];
        *proximal_out -= (n->point.base[c] + moved / 2) * slope;
        *own_out -= (n->point.base[c] + moved) * slope;
    }
}

/* A bound from below that is certain, by shares that keep the constraint. Collective. */
static plait_status bound(pli_run *run, double penalty) {
    pli_dual     *n = dual_of(run);
    const int64_t values = n->point.features * n->point.columns;
    double        square = 0, *u = n->before;
    if (n->frame.mean == NULL) { /* no intercept, no constraint */
        n->most = fmax(n->most, n->gain - penalty);
        return PLAIT_OK;
    }
    if (!pli_dual_balance(classes_of(n), n->flow, n->factor)) return PLAIT_OK;
    memset(u, 0, (size_t)n->values * sizeof *u);
    if (n->rows != NULL) pli_dual_scaled(n->rows, &n->batch, n->factor, u, u + values);
    PLI_TRY(plait_comm_allreduce(run->comm, u, values + 1, PLAIT_F64, PLAIT_SUM));
    for (int64_t i = 0; i < values; i++) square += u[i] * u[i];
    n->most = fmax(n->most, u[values] / (double)run->train_rows - run->l2 / 2 * square);
    return PLAIT_OK;
}

static double above(const pli_dual *n, double from) { return n->least > 0 ? fmax(n->least - from, 0) / n->least : 0; }

/* The intercepts' centres follow them; and if the dual value fell, reads are staler than workers were ready for. */
static void move_on(const pli_run *run, double penalty) {
    pli_dual *n = dual_of(run);
    double    now, unused;
    find_values(run, penalty, &now, &unused);
    if (now < n->value - 1e-12 * fabs(n->value)) n->caution *= 2;
    for (int64_t c = 0; c < n->point.columns; c++) n->point.base[c] += n->frame.constant * n->point.t[c];
    find_values(run, penalty, &n->value, &unused);
}

/* All workers take the sums over all rows at the point behind a barrier. Collective. */
static plait_status add_up(pli_run *run, pli_dual_sums *sums_out) {
    pli_dual     *n = dual_of(run);
    pli_dual_sums own = { 0 };
    const int64_t cells = classes_of(n) * classes_of(n);
    const double  rows = (double)run->train_rows;
    PLI_TRY(plait_job_barrier(run->job));
    PLI_TRY(read_point(run));
    memset(n->flow, 0, (size_t)cells * sizeof *n->flow);
    if (n->rows != NULL) pli_dual_judge(n->rows, &n->batch, &n->point, &own, n->flow);
    double all[] = { own.loss, own.gain, pli_run_stopped(run) };
    PLI_TRY(plait_comm_allreduce(run->comm, all, 3, PLAIT_F64, PLAIT_SUM));
    PLI_TRY(plait_comm_allreduce(run->comm, n->flow, cells, PLAIT_F64, PLAIT_SUM));
    *sums_out = (pli_dual_sums){ .loss = all[0] / rows, .gain = all[1] / rows };
    run->interrupted = run->interrupted || all[2] > 0;
    return PLAIT_OK;
}

/* last: no clock follows, so the bound is wanted in any case. Collective. */
static plait_status look(pli_run *run, bool last) {
    pli_dual     *n = dual_of(run);
    double        unused, own;
    pli_dual_sums sums;
    PLI_TRY(add_up(run, &sums));
    write_weights(run, n->before);
    const double penalty = penalty_of(run, n->before);
    n->gain = sums.gain;
    if (sums.loss + penalty < n->least) {
        n->least = sums.loss + penalty;
        memcpy(n->best, n->before, (size_t)n->values * sizeof *n->best);
    }
    find_values(run, penalty, &unused, &own);
    run->gap = above(n, fmax(own, n->most));
    if (run->gap <= pli_run_tolerance(run) || last || run->interrupted) {
        PLI_TRY(bound(run, penalty));
        run->gap = above(n, n->most);
    }
    n->converged = run->gap <= pli_run_tolerance(run);
    move_on(run, penalty);
    return PLAIT_OK;
}

static plait_status epoch(pli_run *run, int64_t number, bool *end_out) {
    const bool last = number + 1 == run->epochs;
    if ((number + 1) % LOOK_EVERY != 0 && !last) return PLAIT_OK;
    PLI_TRY(look(run, last));
    *end_out = *end_out || dual_of(run)->converged || run->interrupted;
    return PLAIT_OK;
}

static plait_status finish(pli_run *run) {
    run->converged = dual_of(run)->converged;
    return pli_fit_solved_at(run, PLAIT_F64, dual_of(run)->best);
}

const pli_steps pli_dual_steps = {
    .asks = true, .reads = true, .begin = begin, .end = end, .step = step, .finite = pli_fit_finite, .epoch = epoch,
    .finish = finish
};
