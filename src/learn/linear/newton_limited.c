/* newton for more weights than a curvature of all pairs can be kept of: the same sums of the workers' latest models
 * (newton.h), with a limited memory of the curvature.
 *
 * A worker's model at its point v_i is its slope g_i, and a fixed diagonal B_i that bounds its curvature. The table
 * holds G = sum g_i and C = sum B_i v_i. Whoever reads it knows B = sum B_i, and takes x = C / B, a mean of the points,
 * for the point where the whole loss has slope G: for equal points that is exact, and for others it is so to the first
 * order if the workers' rows are alike. So the moves of x and G from one read to the next are pairs for L-BFGS (Nocedal
 * and Wright, "Numerical Optimization", 2006, algorithm 7.4), whoever made them and however late they came. The next
 * point of the worker is x plus the direction. A worker that is ahead finds x where it was, and rests at its point,
 * until the others have moved.
 *
 * There is no line search, since nobody knows the loss at one point. A step is cut at the loss's reach, and becomes
 * shorter while the sum of the losses grows.
 *
 * If the workers' rows are not alike, or one is far ahead of the others, the pairs are wrong, and the gap stops
 * shrinking. Then, and at the latest after LOOSE looks, the workers go in step for the rest: between two clocks they
 * agree on one point for all, so that slope and loss are those of one point, pairs are exact, and a step that lowers
 * the loss too little is taken back by half (Armijo).
 *
 * If workers average mirrors (gossip, local-sgd), a mirror between two averages is no sum of all models, and its C / B
 * is far off. The average of all mirrors is their sum, however updates travelled (push-sum keeps it), and a barrier
 * shows it. So the workers are in step from the first look on. */
#include <math.h>
#include <string.h>

#include "learn/linear/newton_state.h"
#include "learn/solve/solver.h"
#include "table/table.h"

enum { SLOPE, MASS };                          /* parts of the table */
enum { MODELS, LOSS, RENEWALS, NOTES };        /* its last values */
enum { PAIRS_MAX = PLI_LIMITED_PAIRS, CHECK_EVERY = 4 };      /* clocks between two looks */
enum { PATIENCE = 4, LOOSE = 12, LOOKS = 6 };  /* looks: without a smaller gap, before going in step, before an end */
enum { FARTHER = 8 }; /* times a loss's reach: pairs know what happens on the way, and steps shorten if all grows */
#define RESTS 1e-10 /* of the objective: a fall like this is rounding */
#define GROWTH 0.01 /* of the objective, beyond what points that are apart explain */
enum { SAFETY = 4 }; /* the pairs know some of the curvature only, so the gap is larger than they tell: measured */

static pli_limited *limited_of(const pli_run *run) { return pli_linear_fit_of(run)->limited; }

static double penalty_of(const pli_run *run, int64_t i) {
    const pli_limited *n = limited_of(run);
    return run->l2 * (n->penalty != NULL ? n->penalty[i] : 1);
}

static double dot(int64_t n, const double *a, const double *b) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* Reads the sum of the diagonals, once, past a barrier: at any other moment a part of somebody's may be missing, in a
 * place that was read before it came. */
static plait_status read_diagonal(pli_run *run) {
    pli_limited *n = limited_of(run);
    const void  *values;
    PLI_TRY(plait_table_read(n->diagonal_table, 0, n->values + 1, &values));
    const double *from = values;
    n->has_diagonal = from[n->values] > (double)n->held.holders - 0.5;
    if (n->has_diagonal) memcpy(n->diagonal, from, (size_t)n->values * sizeof *from);
    return PLAIT_OK;
}

/* Reads the sums: x, the slope of the objective there, the losses. *complete_out: every worker's model is in them. */
static plait_status read_sums(pli_run *run, bool *complete_out) {
    pli_limited *n = limited_of(run);
    const void  *values;
    *complete_out = false;
    PLI_TRY(plait_table_read(n->table, 0, n->table_values, &values));
    const double *from = values, *notes = from + 2 * n->values;
    if (!n->has_diagonal || !(notes[MODELS] > (double)n->held.holders - 0.5)) return PLAIT_OK;
    n->loss = notes[LOSS];
    n->renewals = notes[RENEWALS];
    n->objective = n->loss;
    for (int64_t i = 0; i < n->values; i++) {
        n->x[i] = from[MASS * n->values + i] / n->diagonal[i];
        n->slope[i] = from[SLOPE * n->values + i] + penalty_of(run, i) * n->x[i];
        n->objective += penalty_of(run, i) / 2 * n->x[i] * n->x[i];
    }
    *complete_out = true;
    return PLAIT_OK;
}

/* Adds what the own model has become since the last push: delta holds it. */
static plait_status push(pli_run *run) {
    pli_limited *n = limited_of(run);
    for (int64_t i = 0; i < n->table_values; i++) {
        const double now = n->delta[i];
        n->delta[i] -= n->last[i];
        n->last[i] = now;
    }
    return plait_table_inc_range(n->table, 0, n->table_values, n->delta, 0);
}

/* Makes the rows of this worker, and their diagonal. */
static plait_status make_rows(pli_run *run) {
    pli_limited *n = limited_of(run);
    pli_newton_rows_free(&n->rows);
    if (n->held.batch.rows == 0) return PLAIT_OK;
    PLI_TRY(pli_newton_rows_make(run, &n->held.batch, false, &n->rows));
    pli_newton_diagonal(n->rows, &n->held.batch, n->own_diagonal);
    return PLAIT_OK;
}

static plait_status push_diagonal(pli_run *run) {
    pli_limited *n = limited_of(run);
    memcpy(n->delta, n->own_diagonal, (size_t)n->values * sizeof *n->delta);
    n->delta[n->values] = 1;
    n->pushed_diagonal = true;
    return plait_table_inc_range(n->diagonal_table, 0, n->values + 1, n->delta, 0);
}

/* --- the direction ------------------------------------------------------------------------------------------------ */

/* Takes the move since the last pair as a pair, if the slope has grown along it. It waits until about every worker has
 * moved: then the means over workers fit each other best, and the memory is of whole rounds. */
static void take_pair(pli_limited *n) {
    if (n->has_before && !n->in_step && n->renewals < n->renewals_paired + (double)n->held.holders - 0.5) return;
    n->renewals_paired = n->renewals;
    if (n->has_before) {
        const int32_t slot = (n->newest + 1) % n->memory;
        double       *s = n->s + slot * n->values, *y = n->y + slot * n->values, yhy = 0;
        for (int64_t i = 0; i < n->values; i++) {
            s[i] = n->x[i] - n->x_before[i];
            y[i] = n->slope[i] - n->slope_before[i];
            yhy += y[i] * y[i] / n->diagonal[i];
        }
        const double sy = dot(n->values, s, y);
        if (sy > 1e-10 * yhy && yhy > 0) {
            n->newest = slot;
            n->sy[slot] = sy;
            if (n->pairs < n->memory) n->pairs++;
        }
    }
    memcpy(n->x_before, n->x, (size_t)n->values * sizeof *n->x);
    memcpy(n->slope_before, n->slope, (size_t)n->values * sizeof *n->slope);
    n->has_before = true;
}

/* to := -H slope, by the two loops; the diagonal is their first metric. */
static void two_loops(const pli_run *run, pli_limited *n) {
    double alpha[PAIRS_MAX], *d = n->to, scale = 1;
    for (int64_t i = 0; i < n->values; i++) d[i] = -n->slope[i];
    for (int32_t p = 0; p < n->pairs; p++) {
        const int32_t slot = (n->newest - p + n->memory) % n->memory;
        const double *s = n->s + slot * n->values, *y = n->y + slot * n->values;
        alpha[slot] = dot(n->values, s, d) / n->sy[slot];
        for (int64_t i = 0; i < n->values; i++) d[i] -= alpha[slot] * y[i];
    }
    if (n->pairs > 0) {
        const double *y = n->y + n->newest * n->values;
        double        yhy = 0;
        for (int64_t i = 0; i < n->values; i++) yhy += y[i] * y[i] / (n->diagonal[i] + penalty_of(run, i));
        scale = n->sy[n->newest] / yhy;
    }
    for (int64_t i = 0; i < n->values; i++) d[i] *= scale / (n->diagonal[i] + penalty_of(run, i));
    for (int32_t p = n->pairs - 1; p >= 0; p--) {
        const int32_t slot = (n->newest - p + n->memory) % n->memory;
        const double *s = n->s + slot * n->values, *y = n->y + slot * n->values;
        const double  beta = dot(n->values, y, d) / n->sy[slot];
        for (int64_t i = 0; i < n->values; i++) d[i] += (alpha[slot] - beta) * s[i];
    }
}

/* Steps become shorter while the objective grows: what the pairs tell is then not true where the points have gone. */
static void pace(pli_limited *n) {
    if (!(n->objective > n->best * (1 + GROWTH))) {
        n->stretch = fmin(1, 1.5 * n->stretch);
        n->best = fmin(n->best, n->objective);
        return;
    }
    n->stretch = fmax(1.0 / 64, n->stretch / 2);
    n->best = n->objective; /* the next growth counts from here */
}

/* Aims at the next point, and tells how far above the least value the point of all is. */
static void aim(pli_run *run) {
    pli_limited *n = limited_of(run);
    take_pair(n);
    two_loops(run, n);
    const double fall = -dot(n->values, n->to, n->slope);
    n->gap = n->objective > 0 && fall >= 0 ? fall / 2 / n->objective : (double)INFINITY;
    if (!(fall > 0)) { /* not downhill: the pairs are bad */
        n->pairs = 0;
        n->gap = INFINITY;
        two_loops(run, n);
    }
    for (int64_t i = 0; i < n->values; i++) n->to[i] = n->x[i] + n->stretch * n->to[i];
}

/* --- a clock ------------------------------------------------------------------------------------------------------ */

static plait_status renew_model(pli_run *run) {
    pli_limited     *n = limited_of(run);
    const pli_batch *batch = &n->held.batch;
    double          *slope = n->delta + SLOPE * n->values, *mass = n->delta + MASS * n->values;
    if (!n->has_model) memcpy(n->to, n->at, (size_t)n->values * sizeof *n->at);
    const double reach = n->in_step || !n->has_model ? 0 : FARTHER * pli_linear_fit_of(run)->linear.goal.loss->reach;
    pli_settled_begin_work(run);
    PLI_TRY(pli_newton_move(n->rows, batch, reach, n->to, n->at, &n->whole));
    pli_newton_slope(n->rows, batch, slope, &n->sums);
    for (int64_t i = 0; i < n->values; i++) mass[i] = n->own_diagonal[i] * n->at[i];
    n->delta[2 * n->values + MODELS] = 1;
    n->delta[2 * n->values + RENEWALS] = n->last[2 * n->values + RENEWALS] + 1;
    n->delta[2 * n->values + LOSS] = n->sums.loss / (double)run->train_rows;
    pli_run_charge(run, batch, 2 * pli_linear_fit_of(run)->linear.goal.columns, n->table_values);
    pli_settled_end_work(run, batch->rows);
    n->has_model = true;
    return push(run);
}

static void keep_curve(pli_run *run) {
    const pli_limited *n = limited_of(run);
    float             *values = (float *)(void *)n->delta; /* free until the next push */
    if (!pli_curve_waits(run)) return;
    for (int64_t i = 0; i < n->values; i++) values[i] = (float)n->x[i];
    pli_curve_keep(run, values);
}

static plait_status step(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out) {
    pli_limited *n = limited_of(run);
    bool         complete = false;
    uint64_t     at = pli_comm_span_begin(run->comm);
    (void)clock;
    (void)batch; /* the rows are those that are held */
    if (!pli_own_rows_steps(run, &n->held)) return PLAIT_OK;
    if (!n->pushed_diagonal) PLI_TRY(push_diagonal(run));
    if (n->in_step) {
        if (n->is_due) PLI_TRY(renew_model(run));
        n->is_due = false;
    } else {
        PLI_TRY(read_sums(run, &complete));
        pli_run_step(run, "get", &at);
        keep_curve(run);
        if (!n->has_model) PLI_TRY(renew_model(run));
        else if (complete && n->renewals != n->renewals_seen) { /* else nobody has moved */
            n->renewals_seen = n->renewals;
            pace(n);
            aim(run);
            PLI_TRY(renew_model(run));
        }
    }
    pli_run_step(run, "compute", &at);
    *sums_out = n->sums;
    return PLAIT_OK;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* Notes the objective, and keeps the best point. All have read the same. */
static plait_status note_look(pli_run *run) {
    pli_limited *n = limited_of(run);
    if (!pli_grow((void **)&n->told, &n->told_capacity, n->looks + 1, sizeof *n->told))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a run's objectives");
    n->told[n->looks++] = n->objective;
    if (n->objective >= n->kept_objective) return PLAIT_OK;
    n->kept_objective = n->objective;
    memcpy(n->kept, n->x, (size_t)n->values * sizeof *n->x);
    return PLAIT_OK;
}

/* The pairs may not know a direction in which the objective still falls. So what is left is not taken for less than
 * twice what it fell in the last third of the looks, and not at all before there are LOOKS. */
static double fall_of(const pli_limited *n) {
    if (n->looks < LOOKS) return INFINITY;
    const double now = n->told[n->looks - 1], then = n->told[n->looks - 1 - n->looks / 3];
    return now > 0 ? 2 * fabs(then - now) / now : 0;
}

/* In step: all workers are at x. The first time they are not yet; then they go to the best point that all have looked
 * at. Every worker computes the same. */
static void agree_point(pli_run *run) {
    pli_limited *n = limited_of(run);
    const bool   begins = n->d[0] != n->d[0]; /* no direction yet */
    n->is_due = n->has_model;
    if (n->has_before && !(n->objective <= n->base + 1e-4 * n->stretch * n->descent) && n->stretch > 1e-9) {
        n->stretch /= 2;
    } else {
        n->renewals_seen = n->renewals;
        if (!begins) take_pair(n);
        two_loops(run, n);
        if (!(dot(n->values, n->to, n->slope) < 0)) { /* not downhill, by rounding or by a bad pair */
            n->pairs = 0;
            two_loops(run, n);
        }
        memcpy(n->d, n->to, (size_t)n->values * sizeof *n->d);
        n->descent = dot(n->values, n->d, n->slope);
        n->base = begins ? (double)INFINITY : n->objective;
        n->gap = begins || !(n->objective > 0) ? (double)INFINITY : -n->descent / 2 / n->objective;
        n->stretch = begins ? 0 : 1;
    }
    for (int64_t i = 0; i < n->values; i++)
        n->to[i] = begins ? n->kept[i] : n->x_before[i] + n->stretch * n->d[i];
}

/* Has the gap not become smaller for some looks, or has it been long, or do mirrors hold no sums? Then workers go in
 * step from now on. */
static void watch(pli_limited *n, double worst) {
    const bool shrinks = worst < 0.8 * n->least_gap;
    if (shrinks) n->least_gap = worst;
    n->idle_looks = shrinks ? 0 : n->idle_looks + 1;
    if (!n->averages && n->idle_looks < PATIENCE && ++n->loose_looks < LOOSE) return;
    n->in_step = true;
    n->pairs = 0;
    n->has_before = false;
    n->d[0] = (double)NAN;
}

/* A worker has died: all make their models anew, and no pair is true of the sums to come. Collective. */
static plait_status revive(pli_run *run) {
    pli_limited *n = limited_of(run);
    pli_run_tell_lost(run);
    PLI_TRY(pli_own_rows_gather(run, &n->held));
    PLI_TRY(make_rows(run));
    memset(n->last, 0, (size_t)n->table_values * sizeof *n->last);
    n->has_model = n->has_diagonal = n->pushed_diagonal = n->has_before = n->in_step = n->is_due = false;
    n->moved = true;
    n->pairs = n->idle_looks = n->loose_looks = 0;
    n->looks = 0;
    n->renewals_seen = n->renewals_paired = 0;
    n->stretch = 1;
    n->best = n->least_gap = INFINITY;
    PLI_TRY(plait_table_zero(n->table));
    return plait_table_zero(n->diagonal_table);
}

/* As in newton.c: workers have come or gone. Collective. */
static plait_status turned(pli_run *run, bool came) {
    pli_limited *n = limited_of(run);
    if (run->clocks_done >= run->clocks * run->epochs) return pli_own_rows_learn(run, came, &n->held);
    const bool has_point = !came && (n->has_model || (n->moved && n->held.batch.rows > 0));
    PLI_TRY(pli_newton_same(run, has_point, n->at, n->values));
    return revive(run);
}

static void left(pli_run *run) {
    pli_limited *n = limited_of(run);
    pli_newton_rows_free(&n->rows);
    pli_own_rows_leave(&n->held);
    n->has_model = n->moved = n->whole = n->in_step = n->is_due = false;
    n->kept_objective = INFINITY;
    memset(&n->sums, 0, sizeof n->sums);
}

/* All are there, and a checkpoint is read. Collective. */
static plait_status told(pli_run *run) {
    pli_limited *n = limited_of(run);
    PLI_TRY(pli_own_rows_gather(run, &n->held));
    PLI_TRY(make_rows(run));
    if (n->scores == NULL) return PLAIT_OK;
    if (n->held.taken > 0) return revive(run); /* what the checkpoint holds is of other rows */
    if (n->rows == NULL) return PLAIT_OK;
    n->pushed_diagonal = true; /* the table has it */
    return pli_newton_scores_give(run, n->rows, pli_linear_fit_of(run)->linear.goal.columns, &n->scores);
}

/* The gap is what the pairs tell of the curvature, and with few of them that is much too little: when workers begin to
 * go in step, it is the fixed diagonal's bound. So it counts from a full memory on, or when nothing moves any more. */
static double told_gap(const pli_limited *n) {
    const bool rests = fall_of(n) <= RESTS;
    return n->pairs == n->memory || rests ? n->gap : (double)INFINITY;
}

/* Is the slope small where all are? The gap is the largest that a worker sees. Nobody adds anything between the barrier
 * and the sum, so all read the same. Collective. */
static plait_status look(pli_run *run) {
    pli_limited *n = limited_of(run);
    bool         complete = false;
    double       worst[2]; /* the gap; was anybody told to stop? */
    PLI_TRY(plait_job_barrier(run->job));
    if (!n->has_diagonal) PLI_TRY(read_diagonal(run));
    PLI_TRY(read_sums(run, &complete));
    if (complete) PLI_TRY(note_look(run));
    if (n->in_step) agree_point(run);
    worst[0] = n->held.batch.rows == 0 && !n->in_step ? 0 : complete ? told_gap(n) : (double)INFINITY;
    worst[1] = pli_run_stops_here(run);
    PLI_TRY(plait_comm_allreduce(run->comm, worst, 2, PLAIT_F64, PLAIT_MAX));
    run->interrupted = run->interrupted || worst[1] > 0;
    if (pli_own_rows_died(run, &n->held)) return revive(run);
    run->gap = fmax(SAFETY * worst[0], fall_of(n));
    n->converged = run->gap <= pli_run_tolerance(run);
    if (n->converged || run->interrupted) return PLAIT_OK;
    if (n->in_step) return PLAIT_OK;
    watch(n, worst[0]);
    return pli_own_rows_move(run, revive);
}

static plait_status epoch(pli_run *run, int64_t number, bool *end_out) {
    const bool loose = limited_of(run)->has_diagonal && !limited_of(run)->in_step;
    if (loose && (number + 1) % CHECK_EVERY != 0 && number + 1 < run->epochs) return PLAIT_OK;
    PLI_TRY(look(run));
    *end_out = *end_out || limited_of(run)->converged || run->interrupted;
    return PLAIT_OK;
}

/* A run that ends early takes the best point that all have looked at. */
static plait_status finish(pli_run *run) {
    pli_limited *n = limited_of(run);
    bool         complete;
    PLI_TRY(plait_job_barrier(run->job));
    PLI_TRY(read_sums(run, &complete));
    run->converged = n->converged;
    const bool    is_best = complete && (n->converged || !(n->kept_objective < n->objective));
    double *const solution = is_best ? n->x : isfinite(n->kept_objective) ? n->kept : n->at;
    const bool    has_point = n->has_model || (n->moved && n->held.batch.rows > 0);
    PLI_TRY(pli_newton_same(run, has_point, solution, n->values));
    return pli_fit_solved_at(run, PLAIT_F64, solution);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* The vectors lie one behind the other, as a checkpoint holds them. */
static plait_status make(pli_run *run, pli_limited *n) {
    const pli_linear *linear = &pli_linear_fit_of(run)->linear;
    double **const    all[] = { &n->own_diagonal, &n->diagonal,     &n->at, &n->to,   &n->x, &n->slope,
                                &n->x_before,     &n->slope_before, &n->d,  &n->kept };
    enum { VECTORS = sizeof all / sizeof *all };
    void *first = NULL;
    n->values = (linear->features + linear->intercept) * linear->goal.columns;
    n->table_values = 2 * n->values + NOTES;
    n->memory = n->values <= 1 << 17 ? PAIRS_MAX : 5;
    n->vectors = pli_calloc((size_t)n->values, (size_t)(VECTORS + 2 * n->memory) * sizeof *n->vectors);
    n->last = pli_calloc((size_t)n->table_values, sizeof *n->last);
    n->delta = pli_calloc((size_t)n->table_values, sizeof *n->delta);
    if (n->vectors == NULL || n->last == NULL || n->delta == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for vectors of %lld weights", (long long)n->values);
    for (int i = 0; i < VECTORS; i++) *all[i] = n->vectors + i * n->values;
    n->s = n->vectors + VECTORS * n->values;
    n->y = n->s + n->memory * n->values;
    PLI_TRY(pli_linear_initial(run, PLAIT_F64, &first));
    if (first != NULL) memcpy(n->at, first, (size_t)n->values * sizeof *n->at);
    pli_free(first);
    return pli_linear_penalty(run, PLAIT_F64, (void **)&n->penalty);
}

int64_t pli_limited_vectors(const pli_limited *n) { return (n->s - n->vectors) / n->values - 1 + 2 * n->memory; }

static plait_status begin(pli_run *run) {
    pli_limited     *n = pli_calloc(1, sizeof *n);
    plait_table_opts t;
    pli_linear_fit_of(run)->limited = n;
    if (n == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for training");
    n->stretch = 1;
    n->best = n->gap = n->least_gap = n->kept_objective = INFINITY;
    n->averages = pli_pair_averages(pli_topology_find(run->topology), run->consistency, NULL);
    PLI_TRY(make(run, n));
    pli_newton_begin(run);
    plait_table_opts_init(&t);
    t.name = "w";
    t.type = PLAIT_F64;
    t.cols = 1;
    t.rows = n->table_values;
    PLI_TRY(pli_run_make_table(run, &t, &n->table));
    const pli_travel as = pli_run_travel(run, "w");
    t.name = "diagonal";
    t.rows = n->values + 1;
    t.topology = as.topology;
    t.consistency = as.consistency;
    t.filter = as.filter;
    run->solver_keeps = pli_limited_keeps(run);
    PLI_TRY(plait_table_create(run->job, &t, &n->diagonal_table));
    return pli_run_add_table(run, n->diagonal_table);
}

static void end(pli_run *run) {
    pli_limited *n = limited_of(run);
    if (n == NULL) return;
    double *const all[] = { n->vectors, n->penalty, n->last, n->delta, n->told, n->scores };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pli_free(all[i]);
    pli_newton_rows_free(&n->rows);
    pli_own_rows_free(&n->held);
    pli_free(n);
    pli_linear_fit_of(run)->limited = NULL;
}

const pli_steps pli_limited_steps = {
    .asks = true, .reads = true, .begin = begin, .end = end, .step = step, .finite = pli_fit_finite, .told = told,
    .turned = turned, .left = left, .epoch = epoch, .finish = finish
};
