/* The clocks of coordinate ascent in the dual problem. See dual.h.
 *
 * One table, w, of float64: u [features, columns], then t [columns] of the constant feature, then inner [columns], u
 * times the rows' mean. A turn gets what its rows touch, by key, or the whole table. Every few passes all look
 * at the same point, past a barrier. They add up the true objective there and the dual value: the difference is how
 * far the point is above the least value, up to what the intercept's constraint is off by. Where that is small enough,
 * shares that keep the constraint give a bound that is certain (dual_bound.c). */
#include "learn/keep/row_values.h"
#include "learn/linear/dual_state.h"

#include <math.h>
#include <string.h>

#include "learn/linear/newton.h"
#include "learn/solve/solver.h"
#include "table/table.h"

enum { LOOK_EVERY = 4 }; /* passes */

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

static plait_status begin(pli_run *run) {
    const pli_linear *linear = &pli_linear_fit_of(run)->linear;
    const int64_t     k = linear->goal.columns;
    pli_dual         *n = pli_calloc(1, sizeof *n);
    plait_table_opts  t;
    pli_linear_fit_of(run)->dual = n;
    if (n == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for training");
    n->point = (pli_dual_point){ .features = linear->features, .columns = k };
    n->values = (linear->features + 2) * k;
    n->most = linear->features / 2;
    n->shuffled = -1;
    n->least = INFINITY;
    n->bound = -INFINITY;
    n->point.u = pli_calloc((size_t)n->values, sizeof(double));
    n->point.t = n->point.u != NULL ? n->point.u + linear->features * k : NULL;
    n->point.inner = n->point.t != NULL ? n->point.t + k : NULL;
    n->point.base = pli_calloc((size_t)k, sizeof(double));
    n->before = pli_calloc((size_t)n->values, sizeof(double));
    n->best = pli_calloc((size_t)n->values, sizeof(double));
    n->keys = pli_calloc((size_t)n->most + 2, sizeof *n->keys);
    n->mark = pli_calloc((size_t)linear->features + 1, 1);
    n->flow = pli_calloc((size_t)(classes_of(n) * classes_of(n)), sizeof(double));
    n->factor = pli_calloc((size_t)classes_of(n), sizeof(double));
    if (n->point.u == NULL || n->point.base == NULL || n->before == NULL || n->best == NULL || n->flow == NULL ||
        n->factor == NULL || n->keys == NULL || n->mark == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for vectors of %lld weights", (long long)n->values);
    n->frame.per_row = 1 / (run->l2 * (double)run->train_rows);
    if (linear->intercept) PLI_TRY(find_frame(run));
    pli_newton_begin(run);
    PLI_TRY(pli_dual_turns_make(run, &n->turns));
    run->turns = n->turns.turns;
    run->epochs *= run->turns;
    plait_table_opts_init(&t);
    t.name = "w";
    t.type = PLAIT_F64;
    t.rows = linear->features + 2;
    t.cols = k;
    PLI_TRY(pli_dual_keeps(run));
    return pli_run_make_table(run, &t, &n->table);
}

static void end(pli_run *run) {
    pli_dual *n = dual_of(run);
    if (n == NULL) return;
    pli_row_values_end(run);
    pli_dual_rows_free(&n->rows);
    pli_dual_turns_free(&n->turns);
    pli_own_rows_free(&n->held);
    void *const all[] = { n->frame.mean, n->point.u, n->point.base, n->before, n->best, n->flow, n->factor,
                          n->keys, n->mark };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pli_free(all[i]);
    pli_free(n);
    pli_linear_fit_of(run)->dual = NULL;
}

/* --- a clock ------------------------------------------------------------------------------------------------------ */

static plait_status read_point(pli_run *run) {
    pli_dual   *n = dual_of(run);
    const void *values;
    PLI_TRY(plait_table_read(n->table, 0, n->point.features + 2, &values));
    memcpy(n->point.u, values, (size_t)n->values * sizeof *n->point.u);
    return PLAIT_OK;
}

/* Makes the rows of this worker, with what it knows of them: it had them, or a checkpoint has them, or nobody knows. */
static plait_status make_rows(pli_run *run) {
    pli_dual *n = dual_of(run);
    pli_dual_rows_free(&n->rows);
    n->shuffled = -1;
    PLI_TRY(pli_row_values_hold(run, &n->held.batch));
    if (pli_settled_before(run) != NULL) PLI_TRY(pli_row_values_carry(run, pli_settled_before(run), run->homes));
    pli_row_values_keep(run, &n->held.batch);
    if (n->held.batch.rows == 0) return PLAIT_OK;
    PLI_TRY(pli_dual_rows_make(run, &n->frame, &n->held.batch, &n->rows));
    if (run->row_values != NULL) pli_dual_rows_load(n->rows, &n->held.batch);
    return PLAIT_OK;
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

static plait_status keep_curve(pli_run *run) {
    const pli_dual *n = dual_of(run);
    float          *values = (float *)(void *)n->before;
    if (!pli_curve_waits(run)) return PLAIT_OK;
    PLI_TRY(read_point(run));
    write_weights(run, n->before);
    for (int64_t i = 0; i < n->values; i++) values[i] = (float)n->before[i];
    pli_curve_keep(run, values);
    return PLAIT_OK;
}

/* Gets what a turn's rows touch: n_keys rows of the table; -1: all of it. */
static plait_status get(pli_run *run, int64_t n_keys) {
    pli_dual     *n = dual_of(run);
    const int64_t k = n->point.columns;
    if (n_keys < 0) {
        PLI_TRY(read_point(run));
        memcpy(n->before, n->point.u, (size_t)n->values * sizeof *n->before);
        return PLAIT_OK;
    }
    PLI_TRY(plait_table_get(n->table, n_keys, n->keys, n->before));
    for (int64_t i = 0; i < n_keys; i++)
        memcpy(n->point.u + (int64_t)n->keys[i] * k, n->before + i * k, (size_t)k * sizeof *n->before);
    return PLAIT_OK;
}

/* Adds by how much the point has moved since. */
static plait_status inc(pli_run *run, int64_t n_keys) {
    pli_dual     *n = dual_of(run);
    const int64_t k = n->point.columns;
    if (n_keys < 0) {
        for (int64_t i = 0; i < n->values; i++) n->before[i] = n->point.u[i] - n->before[i];
        return plait_table_inc_range(n->table, 0, n->point.features + 2, n->before, 0);
    }
    for (int64_t i = 0; i < n_keys; i++)
        for (int64_t c = 0; c < k; c++)
            n->before[i * k + c] = n->point.u[(int64_t)n->keys[i] * k + c] - n->before[i * k + c];
    return plait_table_inc(n->table, n_keys, n->keys, n->before, 0);
}

/* The keys of what the rows touch, those of t and inner included; -1: take the whole table. */
static int64_t find_keys(pli_dual *n, int64_t first, int64_t end) {
    int64_t n_keys = -1;
    if (n->turns.shares > 1)
        n_keys = pli_dual_touched(n->rows, &n->held.batch, first, end, n->most, n->mark, n->keys);
    for (int64_t i = 0; n_keys >= 0 && i < 2; i++) n->keys[n_keys++] = (uint64_t)(n->point.features + i);
    return n_keys;
}

static plait_status take_turn(pli_run *run, int64_t pass, int32_t share, pli_sums *sums_out) {
    pli_dual     *n = dual_of(run);
    const int64_t rows = pli_dual_rows_count(n->rows), shares = n->turns.shares;
    const int64_t first = rows * share / shares, end = rows * (share + 1) / shares;
    uint64_t      at = pli_comm_span_begin(run->comm);
    if (pass != n->shuffled) pli_dual_shuffle(n->rows, &n->held.batch, (uint64_t)pass);
    n->shuffled = pass;
    const int64_t n_keys = find_keys(n, first, end);
    PLI_TRY(get(run, n_keys));
    pli_run_step(run, "get", &at);
    pli_dual_ascend(n->rows, &n->held.batch, first, end, &n->point, sums_out);
    pli_settled_end_work(run, end - first);
    pli_run_step(run, "compute", &at);
    return inc(run, n_keys);
}

/* Adds what all shares of own rows come to. */
static plait_status inc_rows_anew(pli_run *run) {
    pli_dual *n = dual_of(run);
    memset(n->point.u, 0, (size_t)n->values * sizeof *n->point.u);
    if (n->rows == NULL) return PLAIT_OK;
    pli_dual_rows_sum(n->rows, &n->held.batch, &n->point);
    return plait_table_inc_range(n->table, 0, n->point.features + 2, n->point.u, 0);
}

static plait_status step(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out) {
    pli_dual *n = dual_of(run);
    (void)clock;
    if (!pli_own_rows_steps(run, &n->held)) return PLAIT_OK;
    if (n->anew == run->clocks_done + 1) return inc_rows_anew(run);
    PLI_TRY(keep_curve(run));
    const int32_t share = pli_dual_turns_share(&n->turns, run->epochs_done);
    if (share < 0) return PLAIT_OK;
    pli_settled_begin_work(run);
    if (share == 0) pli_run_charge(run, batch, 2 * n->point.columns, n->values); /* of the pass */
    return take_turn(run, run->epochs_done / n->turns.turns, share, sums_out);
}

/* --- deaths ------------------------------------------------------------------------------------------------------- */

static bool is_over(const pli_run *run) { return run->clocks_done > 0 && run->epochs_done + 1 >= run->epochs; }

/* All add in a clock of its own. Where workers come and go, they do so by clocks, each of which is a turn: then all add
 * in the next turn's, and nobody has that turn. */
static plait_status add_rows_anew(pli_run *run) {
    pli_dual    *n = dual_of(run);
    plait_status status;
    if (run->opts->slots > 0 && !is_over(run)) {
        n->anew = run->clocks_done + 1;
        return PLAIT_OK;
    }
    PLI_TRY(inc_rows_anew(run));
    while ((status = plait_job_clock(run->job)) == PLAIT_STAND_IN) {} /* the next look finds that one more has died */
    PLI_TRY(status);
    run->clocks_done++;
    return n->turns.lags ? plait_job_barrier(run->job) : PLAIT_OK;
}

/* What the table holds is no longer the sum of the rows' shares: those of a dead worker are lost. Its heirs begin with
 * shares of 0, and all add up anew: the sum is a point of the dual problem as good as any. A row that changes hands
 * takes its share along. Collective. */
static plait_status revive(pli_run *run) {
    pli_dual *n = dual_of(run);
    pli_run_tell_lost(run);
    if (n->rows != NULL && run->row_values != NULL) pli_dual_rows_save(n->rows, &n->held.batch);
    PLI_TRY(pli_own_rows_gather(run, &n->held));
    PLI_TRY(make_rows(run));
    PLI_TRY(pli_dual_turns_share_out(run, &n->turns, n->rows != NULL));
    n->torn = false;
    PLI_TRY(plait_table_zero(n->table));
    return add_rows_anew(run);
}

/* Workers have come or gone. Those who have come to have rows begin with shares of 0, or with those that they had when
 * they left. Behind the last clock nobody adds: rows stay with those who have them. Collective. */
static plait_status turned(pli_run *run, bool came) {
    if (!is_over(run)) return revive(run);
    if (came) pli_row_values_keep(run, &dual_of(run)->held.batch); /* none */
    return PLAIT_OK;
}

static void left(pli_run *run) {
    pli_dual *n = dual_of(run);
    if (n->rows != NULL && run->row_values != NULL) pli_dual_rows_save(n->rows, &n->held.batch);
    pli_dual_rows_free(&n->rows);
    pli_own_rows_leave(&n->held);
}

/* All are there, and a checkpoint is read. Collective. */
static plait_status told(pli_run *run) {
    pli_dual *n = dual_of(run);
    PLI_TRY(pli_own_rows_gather(run, &n->held));
    PLI_TRY(make_rows(run));
    n->torn = n->torn || (run->resume != NULL && n->held.taken > 0);
    return pli_dual_turns_share_out(run, &n->turns, n->rows != NULL);
}

/* --- looks -------------------------------------------------------------------------------------------------------- */

/* Half of l2 times the square of weights [features + intercept, columns]. */
static double penalty_of(const pli_run *run, const double *weights) {
    const pli_dual *n = dual_of(run);
    double          square = 0;
    for (int64_t i = 0; i < n->point.features * n->point.columns; i++) square += weights[i] * weights[i];
    return run->l2 / 2 * square;
}

/* The dual value at the point at hand, with the intercepts taken for the best ones. */
static double value_of_point(const pli_run *run, double penalty) {
    const pli_dual *n = dual_of(run);
    double          value = n->gain - penalty;
    for (int64_t c = 0; c < n->point.columns; c++)
        value -= (n->point.base[c] + n->frame.constant * n->point.t[c]) * run->l2 * n->point.t[c];
    return value;
}

/* A bound from below that is certain, by shares that keep the constraint. Collective. */
static plait_status bound(pli_run *run, double penalty) {
    pli_dual     *n = dual_of(run);
    const int64_t values = n->point.features * n->point.columns;
    double        square = 0, *u = n->before;
    if (n->frame.mean == NULL) { /* no intercept, no constraint */
        n->bound = fmax(n->bound, n->gain - penalty);
        return PLAIT_OK;
    }
    if (!pli_dual_balance(classes_of(n), n->flow, n->factor)) return PLAIT_OK;
    memset(u, 0, (size_t)n->values * sizeof *u);
    if (n->rows != NULL) pli_dual_scaled(n->rows, &n->held.batch, n->factor, u, u + values);
    PLI_TRY(plait_comm_allreduce(run->comm, u, values + 1, PLAIT_F64, PLAIT_SUM));
    if (pli_own_rows_died(run, &n->held)) return PLAIT_OK; /* its part may be missing */
    for (int64_t i = 0; i < values; i++) square += u[i] * u[i];
    n->bound = fmax(n->bound, u[values] / (double)run->train_rows - run->l2 / 2 * square);
    return PLAIT_OK;
}

static double above(const pli_dual *n, double from) { return n->least > 0 ? fmax(n->least - from, 0) / n->least : 0; }

/* The intercepts' centres follow them. */
static void move_on(pli_dual *n) {
    for (int64_t c = 0; c < n->point.columns; c++) n->point.base[c] += n->frame.constant * n->point.t[c];
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
    if (n->rows != NULL) pli_dual_judge(n->rows, &n->held.batch, &n->point, &own, n->flow);
    double all[] = { own.loss, own.gain };
    PLI_TRY(plait_comm_allreduce(run->comm, all, 2, PLAIT_F64, PLAIT_SUM));
    PLI_TRY(plait_comm_allreduce(run->comm, n->flow, cells, PLAIT_F64, PLAIT_SUM));
    *sums_out = (pli_dual_sums){ .loss = all[0] / rows, .gain = all[1] / rows };
    return PLAIT_OK;
}

/* last: no clock follows, so the bound is wanted in any case. Collective. */
static plait_status look(pli_run *run, bool last) {
    pli_dual     *n = dual_of(run);
    double        own;
    pli_dual_sums sums;
    PLI_TRY(add_up(run, &sums));
    while (pli_own_rows_died(run, &n->held)) { /* its part is missing */
        PLI_TRY(revive(run));
        if (n->anew > run->clocks_done) return PLAIT_OK;
        PLI_TRY(add_up(run, &sums));
    }
    write_weights(run, n->before);
    const double penalty = penalty_of(run, n->before);
    n->gain = sums.gain;
    if (sums.loss + penalty < n->least) {
        n->least = sums.loss + penalty;
        memcpy(n->best, n->before, (size_t)n->values * sizeof *n->best);
    }
    own = value_of_point(run, penalty);
    run->gap = above(n, fmax(own, n->bound));
    if (run->gap <= pli_run_tolerance(run) || last || run->interrupted) {
        PLI_TRY(bound(run, penalty));
        run->gap = above(n, n->bound);
    }
    n->converged = run->gap <= pli_run_tolerance(run);
    move_on(n);
    return n->converged || last || run->interrupted ? PLAIT_OK : pli_own_rows_move(run, revive);
}

/* Says what holds a run up whose user has named this optimizer. */
static void tell_slow(const pli_run *run) {
    if (run->converged || run->interrupted || run->chooses || !(run->gap > 0.01) || !pli_comm_leads(run->comm)) return;
    pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "learn",
            "optimizer cd is still far from the least objective after %lld passes: it is slow on features in units of "
            "very different size; --optimizer auto does not mind them", (long long)run->epochs_done);
}

/* An epoch of the loop is one turn. */
static plait_status epoch(pli_run *run, int64_t number, bool *end_out) {
    pli_dual  *n = dual_of(run);
    const bool last = number + 1 == run->epochs;
    double     stopped = pli_run_stops_here(run);
    PLI_TRY(plait_comm_allreduce(run->comm, &stopped, 1, PLAIT_F64, PLAIT_MAX));
    run->interrupted = run->interrupted || stopped > 0;
    if (n->torn || pli_own_rows_died(run, &n->held)) PLI_TRY(revive(run));
    const bool due = (number + 1) % (LOOK_EVERY * n->turns.turns) == 0 || last || run->interrupted;
    if (!due || n->anew > run->clocks_done)
        return n->turns.lags ? plait_job_barrier(run->job) : PLAIT_OK;
    PLI_TRY(look(run, last));
    *end_out = *end_out || n->converged || run->interrupted;
    return PLAIT_OK;
}

static plait_status finish(pli_run *run) {
    const pli_dual *n = dual_of(run);
    run->converged = n->converged;
    run->epochs_done = (run->epochs_done + n->turns.turns - 1) / n->turns.turns; /* passes */
    tell_slow(run);
    return pli_fit_solved_at(run, PLAIT_F64, n->best);
}

const pli_steps pli_dual_steps = {
    .asks = true, .reads = true, .begin = begin, .end = end, .step = step, .finite = pli_fit_finite, .told = told,
    .turned = turned, .left = left, .epoch = epoch, .finish = finish
};
