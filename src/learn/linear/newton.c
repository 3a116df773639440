/* The clocks of incremental Newton. See newton.h.
 *
 * One table, w, of float64: the blocks of the curvature, then one row of linear terms for each score, then a row that
 * says how many workers have a model in it and what their losses add up to. So one push carries a worker's model. */
#include "learn/linear/newton_state.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "learn/solve/solver.h"
#include "table/table.h"
#include "tensor/gemm/gemm.h"

enum { MODELS = PLI_NEWTON_MODELS, LOSS = PLI_NEWTON_LOSS, RENEWALS = PLI_NEWTON_RENEWALS,
       EXCESS = PLI_NEWTON_EXCESS, NOTES = PLI_NEWTON_NOTES };
enum { CHECK_EVERY = 4 };          /* clocks between two looks whether all have converged */

static pli_newton *newton_of(const pli_run *run) { return pli_linear_fit_of(run)->newton; }

/* --- the table ---------------------------------------------------------------------------------------------------- */

static int64_t linear_row(const pli_newton *n) { return pli_quadratic_blocks(&n->sum) * n->sum.rows; }

/* Lays a model and its notes out as the rows of the table. */
static void lay_out(const pli_newton *n, const pli_quadratic *q, const double *notes, double *to) {
    const int64_t d = q->rows;
    memset(to, 0, (size_t)(n->table_rows * n->columns) * sizeof *to);
    for (int64_t i = 0; i < linear_row(n); i++) memcpy(to + i * n->columns, q->h + i * d, (size_t)d * sizeof *to);
    for (int64_t c = 0; c < q->columns; c++)
        for (int64_t j = 0; j < d; j++) to[(linear_row(n) + c) * n->columns + j] = q->r[j * q->columns + c];
    memcpy(to + (n->table_rows - 1) * n->columns, notes, NOTES * sizeof *to);
}

/* Reads the sum of all models. *complete_out: every worker's is in it. */
static plait_status read_sum(pli_run *run, bool *complete_out) {
    pli_newton    *n = newton_of(run);
    const int64_t  d = n->sum.rows;
    const void    *values;
    PLI_TRY(plait_table_read(n->table, 0, n->table_rows, &values));
    const double *from = values;
    for (int64_t i = 0; i < linear_row(n); i++)
        memcpy(n->sum.h + i * d, from + i * n->columns, (size_t)d * sizeof *from);
    for (int64_t c = 0; c < n->sum.columns; c++)
        for (int64_t j = 0; j < d; j++) n->sum.r[j * n->sum.columns + c] = from[(linear_row(n) + c) * n->columns + j];
    const double *notes = from + (n->table_rows - 1) * n->columns;
    n->loss = notes[LOSS];
    n->excess = notes[EXCESS];
    n->renewals = notes[RENEWALS];
    *complete_out = notes[MODELS] > (double)n->held.holders - 0.5;
    return PLAIT_OK;
}

/* Adds what the own model has become since the last push. */
static plait_status push(pli_run *run) {
    pli_newton   *n = newton_of(run);
    const int64_t h = pli_quadratic_values(&n->own), r = n->own.rows * n->own.columns;
    pli_quadratic change = n->last;
    double        notes[NOTES];
    for (int64_t i = 0; i < h; i++) change.h[i] = n->own.h[i] - n->last.h[i];
    for (int64_t i = 0; i < r; i++) change.r[i] = n->own.r[i] - n->last.r[i];
    for (int i = 0; i < NOTES; i++) notes[i] = n->own_notes[i] - n->last_notes[i];
    lay_out(n, &change, notes, n->delta);
    memcpy(n->last.h, n->own.h, (size_t)h * sizeof *n->own.h);
    memcpy(n->last.r, n->own.r, (size_t)r * sizeof *n->own.r);
    memcpy(n->last_notes, n->own_notes, sizeof n->own_notes);
    return plait_table_inc_range(n->table, 0, n->table_rows, n->delta, 0);
}

/* --- a clock ------------------------------------------------------------------------------------------------------ */

static pli_penalised penalised(const pli_run *run) {
    return (pli_penalised){ .l1 = run->l1, .l2 = run->l2, .factor = newton_of(run)->penalty };
}

static double penalty_at(const pli_run *run, const double *point) {
    const pli_newton   *n = newton_of(run);
    const pli_penalised p = penalised(run);
    double              sum = 0;
    for (int64_t i = 0; i < n->sum.rows * n->sum.columns; i++) {
        const double factor = p.factor != NULL ? p.factor[i] : 1;
        sum += factor * (p.l2 / 2 * point[i] * point[i] + p.l1 * fabs(point[i]));
    }
    return sum;
}

/* Finds the least point of the sum, and how far the own point is above it. */
static plait_status aim(pli_run *run) {
    pli_newton         *n = newton_of(run);
    const pli_penalised p = penalised(run);
    PLI_TRY(pli_quadratic_least(&n->sum, &p, n->at, n->scratch, n->least, run->err));
    const double above = pli_quadratic_at(&n->sum, &p, n->at) - pli_quadratic_at(&n->sum, &p, n->least);
    const double objective = n->loss + penalty_at(run, n->at);
    n->gap = objective > 0 ? above / objective : above > 0 ? INFINITY : 0;
    n->gap = isnan(n->gap) ? (double)INFINITY : fmax(n->gap, 0);
    return PLAIT_OK;
}

static plait_status renew_model(pli_run *run) {
    pli_newton      *n = newton_of(run);
    const pli_batch *batch = &n->held.batch;
    const pli_goal *goal = &pli_linear_fit_of(run)->linear.goal;
    const double    reach = n->has_model ? pli_loss_reach(goal->loss, goal->parameter) : 0;
    pli_settled_begin_work(run);
    PLI_TRY(pli_newton_move(n->rows, batch, reach, n->has_model ? n->least : n->at, n->at, &n->whole));
    PLI_TRY(pli_newton_model(n->rows, batch, n->at, &n->own, &n->sums));
    pli_run_charge(run, batch, n->sum.columns * 2, pli_quadratic_values(&n->sum));
    pli_settled_end_work(run, batch->rows);
    n->own_notes[MODELS] = 1;
    n->own_notes[RENEWALS]++;
    n->own_notes[LOSS] = n->sums.loss / (double)run->train_rows;
    n->own_notes[EXCESS] = goal->loss->excess != NULL ? n->sums.absolute / (double)run->train_rows : 0;
    n->sharper = false;
    n->has_model = true;
    return push(run);
}

static void keep_curve(pli_run *run) {
    const pli_newton *n = newton_of(run);
    float            *values = (float *)(void *)n->delta; /* free until the next push */
    if (!pli_curve_waits(run)) return;
    for (int64_t i = 0; i < n->sum.rows * n->sum.columns; i++) values[i] = (float)n->at[i];
    pli_curve_keep(run, values);
}

static plait_status step(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out) {
    pli_newton *n = newton_of(run);
    bool        complete = false;
    uint64_t    at = pli_comm_span_begin(run->comm);
    (void)clock;
    (void)batch; /* the rows are those that are held */
    if (!pli_own_rows_steps(run, &n->held)) return PLAIT_OK;
    if (n->rests || (n->confirms && n->aimed)) complete = n->complete;
    else PLI_TRY(read_sum(run, &complete));
    pli_run_step(run, "get", &at);
    keep_curve(run);
    if (n->confirms && complete && n->has_model) {
        if (!n->aimed) PLI_TRY(aim(run));
        PLI_TRY(renew_model(run));
        pli_run_step(run, "compute", &at);
        *sums_out = n->sums;
        return PLAIT_OK;
    }
    if (n->has_model && n->whole && !n->sharper && n->renewals == n->renewals_seen) { /* nobody has moved since */
        *sums_out = n->sums;
        return PLAIT_OK;
    }
    n->renewals_seen = n->renewals;
    n->gap = INFINITY;
    if (complete && n->has_model) PLI_TRY(aim(run));
    /* A point that is as good as the least one keeps its model: others need not wait for the same once more. */
    const bool is_near = n->whole && !n->sharper && n->gap <= 1e-3 * pli_run_tolerance(run);
    if (!n->has_model || (complete && !is_near)) PLI_TRY(renew_model(run));
    pli_run_step(run, "compute", &at);
    *sums_out = n->sums;
    return PLAIT_OK;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* The excess of a smoothed loss, as a share of the objective at the own point. */
static double excess_of(const pli_run *run) {
    const pli_newton *n = newton_of(run);
    const double      objective = n->loss + penalty_at(run, n->at);
    return n->excess > 0 ? (objective > 0 ? n->excess / objective : (double)INFINITY) : 0;
}

void pli_newton_sharpen(pli_run *run) {
    pli_newton *n = newton_of(run);
    n->sharper = pli_linear_sharpen(&pli_linear_fit_of(run)->linear) < 1;
    n->sharpened += n->sharper;
}

/* All workers' points are near the least one of a smoothed loss: they go on with a sharper one, all at this moment. */
static void sharpen(pli_run *run, double own, double excess) {
    if (own > 0.2 * excess || excess <= pli_run_tolerance(run) / 2) return;
    pli_newton_sharpen(run);
}

/* Makes the rows of this worker. */
static plait_status make_rows(pli_run *run) {
    pli_newton *n = newton_of(run);
    pli_newton_rows_free(&n->rows);
    return n->held.batch.rows > 0 ? pli_newton_rows_make(run, &n->held.batch, true, &n->rows) : PLAIT_OK;
}

/* A worker has died: all make their models anew, of a loss as wide as at first: a sharp one has curvature near its kink
 * alone, which the points of different workers miss. Collective. */
static plait_status revive(pli_run *run) {
    pli_newton *n = newton_of(run);
    pli_run_tell_lost(run);
    pli_linear_blunt(&pli_linear_fit_of(run)->linear);
    n->sharpened = 0;
    n->sharper = false;
    PLI_TRY(pli_own_rows_gather(run, &n->held));
    PLI_TRY(make_rows(run));
    memset(n->last.h, 0, (size_t)pli_quadratic_values(&n->last) * sizeof *n->last.h);
    memset(n->last.r, 0, (size_t)(n->last.rows * n->last.columns) * sizeof *n->last.r);
    memset(n->own_notes, 0, sizeof n->own_notes);
    memset(n->last_notes, 0, sizeof n->last_notes);
    n->has_model = n->complete = n->confirms = n->aimed = false;
    n->moved = true;
    n->renewals = n->renewals_seen = 0; /* by new models alone: as many as before would look as if nobody had moved */
    return plait_table_zero(n->table);
}

/* Workers have come or gone. All make their models anew, as after a death; a worker that comes begins at the point of
 * another one. Behind the last clock there is nothing to be made anew. Collective. */
static plait_status turned(pli_run *run, bool came) {
    pli_newton *n = newton_of(run);
    if (run->clocks_done >= run->clocks * run->epochs) return pli_own_rows_learn(run, came, &n->held);
    const bool has_point = !came && (n->has_model || (n->moved && n->held.batch.rows > 0));
    PLI_TRY(pli_newton_same(run, has_point, n->at, n->sum.rows * n->sum.columns));
    return revive(run);
}

static void left(pli_run *run) {
    pli_newton *n = newton_of(run);
    pli_newton_rows_free(&n->rows);
    pli_own_rows_leave(&n->held);
    n->has_model = n->moved = n->whole = n->confirms = n->aimed = false;
    memset(&n->sums, 0, sizeof n->sums);
}

/* All are there, and a checkpoint is read. Collective. */
static plait_status told(pli_run *run) {
    pli_newton *n = newton_of(run);
    PLI_TRY(pli_own_rows_gather(run, &n->held));
    PLI_TRY(make_rows(run));
    if (n->scores == NULL || n->held.taken == 0) return pli_newton_take_up(run);
    return revive(run); /* what the checkpoint holds is of other rows */
}

/* How far this worker is from the end, as far as it knows. A cut move has not come where it aimed. */
static double rest_of(const pli_newton *n) {
    if (n->held.batch.rows == 0) return 0;
    return n->has_model && n->whole ? n->gap : (double)INFINITY;
}

/* A number of the point at which the own model was made, for a comparison. */
static double mark_of(const pli_newton *n) {
    const size_t bytes = (size_t)(n->sum.rows * n->sum.columns) * sizeof *n->at;
    return n->held.batch.rows > 0 ? (double)(pli_hash_bytes(n->at, bytes, 0) >> 12) : (double)-INFINITY;
}

/* The gap by the models is an estimate. Where it is small enough, a bound takes its place. Without a bound the estimate
 * counts only if all models were made at one point (is_one). Collective. */
static plait_status bound(pli_run *run, bool is_one) {
    pli_newton         *n = newton_of(run);
    const pli_penalised p = penalised(run);
    double              certain;
    PLI_TRY(pli_newton_bound(run, n->rows, &n->held.batch, &p, n->least, &certain));
    if (isfinite(certain) || !is_one) n->gap = certain;
    return PLAIT_OK;
}

enum { GAP, STOPS, EXCEEDS, MARK, MINUS_MARK, TOLD };

/* Do all workers' models touch the loss near the least point of their sum? If they seem to, the next clock makes all
 * models at one point, and from there on all go on in step: models of different points may be far from what the loss is
 * between them, if it has a kink, since each holds the curvature at its own point alone. Collective. */
static plait_status look(pli_run *run) {
    pli_newton *n = newton_of(run);
    bool        complete = false;
    double      worst[TOLD];
    PLI_TRY(plait_job_barrier(run->job));
    PLI_TRY(read_sum(run, &complete));
    n->gap = INFINITY;
    n->complete = complete;
    if (complete) PLI_TRY(aim(run));
    worst[GAP] = rest_of(n);
    worst[STOPS] = pli_run_stops_here(run);
    worst[EXCEEDS] = n->has_model ? excess_of(run) : 0;
    worst[MARK] = mark_of(n);
    worst[MINUS_MARK] = worst[MARK] > -INFINITY ? -worst[MARK] : -INFINITY;
    PLI_TRY(plait_comm_allreduce(run->comm, worst, TOLD, PLAIT_F64, PLAIT_MAX));
    run->interrupted = run->interrupted || worst[STOPS] > 0;
    if (pli_own_rows_died(run, &n->held)) return revive(run);
    n->gap = worst[GAP] + worst[EXCEEDS];
    const bool is_near = n->gap <= pli_run_tolerance(run), is_one = worst[MARK] == -worst[MINUS_MARK];
    const bool in_step = is_near || n->confirms;
    if (in_step) PLI_TRY(pli_newton_same(run, n->has_model, n->least, n->sum.rows * n->sum.columns));
    if (is_near) PLI_TRY(bound(run, is_one));
    if (pli_own_rows_died(run, &n->held)) return revive(run);
    n->converged = n->gap <= pli_run_tolerance(run);
    if (n->converged || run->interrupted) return PLAIT_OK;
    n->confirms = n->aimed = in_step;
    if (!is_near) sharpen(run, worst[GAP], worst[EXCEEDS]);
    return pli_own_rows_move(run, revive);
}

static plait_status epoch(pli_run *run, int64_t number, bool *end_out) {
    const int64_t every = newton_of(run)->rests || newton_of(run)->confirms ? 1 : CHECK_EVERY;
    if ((number + 1) % every != 0 && number + 1 < run->epochs) return PLAIT_OK;
    PLI_TRY(look(run));
    *end_out = *end_out || newton_of(run)->converged || run->interrupted;
    return PLAIT_OK;
}

plait_status pli_newton_same(pli_run *run, bool has_model, double *at, int64_t values) {
    int32_t absent = pli_comm_absent(run->comm);
    do {
        int64_t from = has_model ? plait_comm_rank(run->comm) : INT64_MAX;
        PLI_TRY(plait_comm_allreduce(run->comm, &from, 1, PLAIT_I64, PLAIT_MIN));
        if (from == INT64_MAX) return PLAIT_OK; /* nobody has moved: all are at the first point */
        if (pli_run_again(run, &absent)) continue;
        PLI_TRY(plait_comm_broadcast(run->comm, at, (size_t)values * sizeof *at, (int32_t)from));
        if (!pli_run_again(run, &absent)) return PLAIT_OK;
    } while (true);
}

/* The least point is the solution where all models touch the loss near it. A run that ends before that takes a point
 * where somebody was: the least point may be far out of what the parabolas are fair for. */
static plait_status finish(pli_run *run) {
    pli_newton  *n = newton_of(run);
    const double gap = n->gap; /* as all have agreed */
    bool         complete;
    PLI_TRY(plait_job_barrier(run->job));
    PLI_TRY(read_sum(run, &complete));
    if (complete) PLI_TRY(aim(run));
    run->converged = n->converged;
    run->gap = gap;
    double *const solution = n->converged ? n->least : n->at;
    const bool    has_point = n->has_model || (n->moved && n->held.batch.rows > 0);
    PLI_TRY(pli_newton_same(run, has_point, solution, n->sum.rows * n->sum.columns));
    return pli_fit_solved_at(run, PLAIT_F64, solution);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static bool make_model(pli_quadratic *q, int64_t rows, int64_t columns) {
    *q = (pli_quadratic){ .rows = rows, .columns = columns };
    q->h = pli_calloc((size_t)pli_quadratic_values(q), sizeof *q->h);
    q->r = pli_calloc((size_t)(rows * columns), sizeof *q->r);
    return q->h != NULL && q->r != NULL;
}

static plait_status make(pli_run *run, pli_newton *n) {
    const pli_linear *linear = &pli_linear_fit_of(run)->linear;
    const int64_t     rows = linear->features + linear->intercept, k = linear->goal.columns, values = rows * k;
    bool ok = make_model(&n->sum, rows, k) && make_model(&n->own, rows, k) && make_model(&n->last, rows, k);
    n->columns = rows < NOTES ? NOTES : rows;
    n->table_rows = pli_quadratic_blocks(&n->sum) * rows + k + 1;
    n->least = pli_calloc((size_t)values, sizeof *n->least);
    n->scratch = pli_array((size_t)values * (size_t)values, sizeof *n->scratch);
    n->delta = pli_calloc((size_t)(n->table_rows * n->columns), sizeof *n->delta);
    ok = ok && n->least != NULL && n->scratch != NULL && n->delta != NULL;
    if (!ok) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the curvature of %lld weights", (long long)values);
    PLI_TRY(pli_linear_initial(run, PLAIT_F64, (void **)&n->at));
    if (n->at == NULL) n->at = pli_calloc((size_t)values, sizeof *n->at);
    if (n->at == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %lld weights", (long long)values);
    return pli_linear_penalty(run, PLAIT_F64, (void **)&n->penalty);
}

void pli_newton_begin(pli_run *run) {
    pli_gemm_open();
    run->ways |= PLAIT_LEARNER_PASSES; /* rows stay in their order */
}

/* Are mirrors averaged in some clocks alone, as by local-sgd? In the others a mirror holds the sum of what others were
 * some clocks ago, and of what the worker has become since; steps by that do not come to rest. */
static bool averages_seldom(const pli_run *run) {
    const bool each_clock = (pli_promises_of(run->consistency, NULL) & (PLAIT_ROUNDS | PLAIT_ANY_READ)) != 0;
    return !each_clock && pli_pair_averages(pli_topology_find(run->topology), run->consistency, NULL);
}

static plait_status begin(pli_run *run) {
    pli_newton      *n = pli_calloc(1, sizeof *n);
    plait_table_opts t;
    pli_linear_fit_of(run)->newton = n;
    if (n == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for training");
    n->rests = averages_seldom(run);
    PLI_TRY(make(run, n));
    pli_newton_begin(run);
    plait_table_opts_init(&t);
    t.name = "w";
    t.type = PLAIT_F64;
    t.rows = n->table_rows;
    t.cols = n->columns;
    run->solver_keeps = pli_newton_keeps(run);
    return pli_run_make_table(run, &t, &n->table);
}

static void end(pli_run *run) {
    pli_newton    *n = newton_of(run);
    if (n == NULL) return;
    pli_quadratic *model[] = { &n->sum, &n->own, &n->last };
    for (size_t i = 0; i < sizeof model / sizeof *model; i++) {
        pli_free(model[i]->h);
        pli_free(model[i]->r);
    }
    pli_newton_rows_free(&n->rows);
    pli_own_rows_free(&n->held);
    pli_free(n->scores);
    pli_free(n->at);
    pli_free(n->least);
    pli_free(n->scratch);
    pli_free(n->delta);
    pli_free(n->penalty);
    pli_free(n);
    pli_linear_fit_of(run)->newton = NULL;
}

const pli_steps pli_newton_steps = {
    .asks = true, .reads = true, .begin = begin, .end = end, .step = step, .finite = pli_fit_finite, .told = told,
    .turned = turned, .left = left, .epoch = epoch, .finish = finish
};
