/* L-BFGS (Nocedal and Wright, "Numerical Optimization", 2006, algorithms 7.4 and 7.5) and, with L1, OWL-QN (Andrew and
 * Gao, ICML 2007), with full-batch gradients. The vectors are tables; the two loops run as server functions on their
 * shards, so that no vector travels but the weights to the workers and their gradients back (Sandblaster L-BFGS: Dean
 * et al., "Large Scale Distributed Deep Networks", NIPS 2012). Every worker takes the same decisions from the same
 * sums.
 *
 * A linear model's initial metric is the diagonal of a bound of the Hessian: curvature/n sum weight x_j^2 + l2, so that
 * rare and frequent features move at their own pace. One iteration: direction, step, a pass over the data, gradient.
 *
 * The objective of a net is not convex: a step is accepted if the objective falls enough, and a pair without positive
 * curvature is left out (Li and Fukushima, "On the global convergence of the BFGS method for nonconvex
 * unconstrained optimization problems", SIAM J. Optim. 2001), so that each direction goes downhill. */
#include "learn/solve/lbfgs_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/exact_cells.h"

enum { TRIES_MAX = 30, GROWTH_MAX = 100 };
enum { SOFT_LOOKS = 40 }; /* the smoothed losses' curvature has directions that pairs learn late */

/* Calls a server function, whose answer is an array of doubles; under --reduce exact an array of cells, rounded here.
 */
static plait_status call(pli_lbfgs *l, const char *name, void *answer, size_t bytes) {
    uint64_t cell[sizeof(pli_lbfgs_dots) / sizeof(double)][PLI_CELL_BYTES_F64 / 8];
    size_t   n = bytes / sizeof(double);
    if (!l->run->exact) return plait_table_call(l->table, l->tables, name, &l->args, sizeof l->args, answer, bytes);
    PLI_TRY(plait_table_call(l->table, l->tables, name, &l->args, sizeof l->args, cell, n * sizeof *cell));
    pli_cells_round(true, (int64_t)n, cell, answer);
    return PLAIT_OK;
}

/* --- tables ---------------------------------------------------------------------------------------------- */

static plait_status create_table(pli_lbfgs *l, const char *name, int32_t number, const void *initial,
                                 plait_table **table_out) {
    plait_table_opts t;
    char             numbered[16];
    plait_table_opts_init(&t);
    snprintf(numbered, sizeof numbered, number >= 0 ? "%s%d" : "%s", name, (int)number);
    t.name = numbered;
    t.type = l->type;
    t.rows = l->rows;
    t.cols = l->columns;
    t.initial = initial;
    PLI_TRY(plait_table_create(l->run->job, &t, table_out));
    l->table[l->tables++] = *table_out;
    return pli_run_add_table(l->run, *table_out);
}

static plait_status create_tables(pli_lbfgs *l) {
    pli_run     *run = l->run;
    void        *initial = NULL, *penalty = NULL;
    plait_table *other;
    plait_status status = l->pass->initial(l, &initial);
    if (status == PLAIT_OK && (run->l1 > 0 || run->l2 > 0)) status = l->pass->penalty(l, &penalty);
    const bool scaled = penalty != NULL;
    if (status == PLAIT_OK) status = create_table(l, "w", -1, initial, &l->w);
    if (status == PLAIT_OK) status = create_table(l, "g", -1, NULL, &l->g);
    if (status == PLAIT_OK && scaled) status = create_table(l, "penalty", -1, penalty, &other);
    pli_free(initial);
    pli_free(penalty);
    if (status == PLAIT_OK) status = create_table(l, "h", -1, NULL, &l->h);
    if (status == PLAIT_OK) status = create_table(l, "o", -1, NULL, &other);
    if (status == PLAIT_OK && run->l1 > 0) status = create_table(l, "x", -1, NULL, &other);
    for (int32_t j = 0; status == PLAIT_OK && j < l->args.memory; j++) status = create_table(l, "s", j, NULL, &other);
    for (int32_t j = 0; status == PLAIT_OK && !l->args.packed && j < l->args.memory; j++)
        status = create_table(l, "y", j, NULL, &other);
    l->args.has_penalty = scaled;
    l->args.has_old = run->l1 > 0;
    return status;
}

/* Takes loss and gradient at w, in one clock: the mean gradient arrives in g, and all agree on loss and stop. */
static plait_status evaluate(pli_lbfgs *l) {
    const void *values;
    pli_sums    own;
    if (pli_curve_due(l->run)) {
        PLI_TRY(plait_table_read(l->w, 0, l->rows, &values));
        pli_curve_keep(l->run, values);
    }
    PLI_TRY(pli_lbfgs_evaluate(l, NULL, &own));
    pli_meter_tell(&l->meter, &own, l->run->epochs_done, 0, false);
    return PLAIT_OK;
}

/* --- the two loops, on dot products ---------------------------------------------------------------------- */

/* Computes the coefficients of the direction -(gamma H (v + sum a_j y_j) + sum b_j s_j). */
static void two_loops(pli_lbfgs *l) {
    double  alpha[PLI_LBFGS_MEMORY_MAX], *a = l->args.a, *b = l->args.b;
    int32_t newest = l->pairs > 0 ? l->age[l->pairs - 1] : 0;
    memset(l->args.a, 0, sizeof l->args.a);
    memset(l->args.b, 0, sizeof l->args.b);
    l->args.gamma = l->pairs > 0 ? l->sy[newest][newest] / l->yhy[newest][newest] : l->stretch;
    for (int32_t i = l->pairs - 1; i >= 0; i--) {
        int32_t j = l->age[i];
        double  sq = l->dots.sv[j];
        for (int32_t o = 0; o < l->pairs; o++) sq += a[l->age[o]] * l->sy[j][l->age[o]];
        alpha[j] = sq / l->sy[j][j];
        a[j] -= alpha[j];
    }
    for (int32_t i = 0; i < l->pairs; i++) {
        int32_t j = l->age[i];
        double  yr = l->args.gamma * l->dots.yhv[j];
        for (int32_t o = 0; o < l->pairs; o++)
            yr += l->args.gamma * a[l->age[o]] * l->yhy[j][l->age[o]] + b[l->age[o]] * l->sy[l->age[o]][j];
        b[j] += alpha[j] - yr / l->sy[j][j];
    }
}

/* After an accepted step: the pair in slot joins, unless it has no curvature. Then the slot is free again, and the next
 * step is longer, since Huber's loss is straight where residuals are large. */
static void take_pair(pli_lbfgs *l) {
    int32_t slot = l->args.slot;
    double  sy = l->dots.sy[slot], yhy = l->dots.yhy[slot];
    double  noise = l->type == PLAIT_F64 && !l->single ? 1e-12 : 1e-6; /* relative error of a difference of gradients */
    if (!(sy > 1e-12 * yhy) || !(yhy > noise * noise * l->dots.vhv)) {
        l->args.used[slot] = 0;
        l->stretch *= 4;
        return;
    }
    l->stretch = l->first_stretch;
    for (int32_t j = 0; j < l->args.memory; j++) {
        l->sy[slot][j] = l->dots.sy[j];
        l->sy[j][slot] = l->dots.ys[j];
        l->yhy[slot][j] = l->yhy[j][slot] = l->dots.yhy[j];
    }
    l->age[l->pairs++] = slot;
}

/* Picks the slot for the next pair: a free one, else the oldest pair's. */
static void free_slot(pli_lbfgs *l) {
    for (int32_t j = 0; j < l->args.memory; j++)
        if (!l->args.used[j]) {
            l->args.slot = j;
            return;
        }
    l->args.slot = l->age[0];
}

/* Drops the oldest pair if the direction has taken its slot. */
static void drop_pair(pli_lbfgs *l) {
    if (l->pairs == 0 || l->age[0] != l->args.slot) return;
    memmove(l->age, l->age + 1, (size_t)--l->pairs * sizeof *l->age);
}

/* --- iterations ------------------------------------------------------------------------------------------ */

static double penalised(const pli_lbfgs *l) {
    return l->loss + l->run->l2 / 2 * l->moved.square + l->run->l1 * l->moved.absolute;
}

static plait_status direction(pli_lbfgs *l) {
    two_loops(l);
    free_slot(l);
    l->args.step = l->args.step_before = 0; /* the calls of all are alike, also of one that has just come */
    PLI_TRY(call(l, "lbfgs.direction", &l->slope, sizeof l->slope));
    drop_pair(l);
    l->args.used[l->args.slot] = 0;
    return PLAIT_OK;
}

/* The first step to try: the whole direction, unless it is far longer than the last step. If the loss is nearly
 * straight, a pair's curvature is rounding and the direction has no bounds; a step that is far too long could not be
 * taken back. */
static double first_step(const pli_lbfgs *l) {
    double most = GROWTH_MAX * l->length, length = sqrt(l->slope.dd);
    return most > 0 && length > most ? most / length : 1;
}

/* Backtracking to sufficient decrease (Armijo), by quadratic interpolation. *accepted_out false: no step found. */
static plait_status line_search(pli_lbfgs *l, bool *accepted_out) {
    double step = first_step(l);
    *accepted_out = false;
    l->args.step_before = 0;
    for (int32_t i = 0; i < TRIES_MAX; i++) {
        l->args.step = step;
        PLI_TRY(call(l, "lbfgs.step", &l->moved, sizeof l->moved));
        PLI_TRY(evaluate(l));
        double now = penalised(l), slope = l->args.has_old ? l->moved.vmove : step * l->slope.vd;
        if (isfinite(now) && now <= l->objective + 1e-4 * slope) {
            l->objective = now;
            l->length = step * sqrt(l->slope.dd);
            *accepted_out = true;
            return PLAIT_OK;
        }
        if (l->stop) break;
        double best = isfinite(now) ? -l->slope.vd * step * step / (2 * (now - l->objective - l->slope.vd * step)) : 0;
        l->args.step_before = step;
        step = best > 0.1 * step && best < 0.5 * step ? best : best >= 0.5 * step ? 0.5 * step : 0.1 * step;
    }
    l->args.step_before = l->args.step;
    l->args.step = 0; /* go_back returns to where the search began */
    return PLAIT_OK;
}

static plait_status go_back(pli_lbfgs *l) {
    if (!l->args.has_old) return call(l, "lbfgs.step", &l->moved, sizeof l->moved);
    l->args.step = 1e-300; /* x + 0 */
    return call(l, "lbfgs.step", &l->moved, sizeof l->moved);
}

/* Takes loss and gradient at the first weights. */
static plait_status first_gradient(pli_lbfgs *l) {
    l->args.step = l->args.step_before = 0;
    PLI_TRY(call(l, "lbfgs.step", &l->moved, sizeof l->moved));
    PLI_TRY(evaluate(l));
    l->objective = penalised(l);
    PLI_TRY(l->pass->finite(l->run, l->objective, 0));
    l->args.first = 1;
    PLI_TRY(call(l, "lbfgs.gradient", &l->dots, sizeof l->dots));
    l->args.first = 0;
    return PLAIT_OK;
}

/* Forgets the curvature: the next direction is the gradient's. */
static plait_status start_again(pli_lbfgs *l) {
    l->pairs = 0;
    l->stretch = l->first_stretch;
    memset(l->args.used, 0, sizeof l->args.used);
    l->args.step = l->args.step_before = 0;
    PLI_TRY(call(l, "lbfgs.step", &l->moved, sizeof l->moved)); /* g becomes 0 */
    PLI_TRY(evaluate(l));
    l->args.first = 1;
    PLI_TRY(call(l, "lbfgs.gradient", &l->dots, sizeof l->dots));
    l->args.first = 0;
    return PLAIT_OK;
}

/* --- the end --------------------------------------------------------------------------------------------- */

plait_status pli_lbfgs_keep_objective(pli_lbfgs *l) {
    const int64_t n = l->run->epochs_done + 1;
    if (!pli_grow((void **)&l->fallen, &l->fallen_capacity, n, sizeof *l->fallen))
        return pli_fail(l->run->err, PLAIT_ENOMEM, "no memory for the objectives of %lld iterations", (long long)n);
    l->fallen[n - 1] = l->objective;
    return PLAIT_OK;
}

double pli_lbfgs_sharpen(pli_lbfgs *l) {
    l->sharpened++;
    return l->pass->sharpen(l);
}

bool pli_lbfgs_may_sharpen(const pli_lbfgs *l, double own) {
    const double excess = pli_lbfgs_excess(l);
    return l->is_soft && excess > pli_run_tolerance(l->run) / 2 && own <= 0.2 * excess;
}

double pli_lbfgs_fell(const pli_lbfgs *l, int64_t n) {
    const int64_t last = l->run->epochs_done;
    return last - l->stage < n ? (double)INFINITY : l->fallen[last - n] - l->fallen[last];
}

/* How much the objective will still fall, by how it fell. It can nearly rest, and then fall again, if features are
 * correlated. Still, twice what it fell in the last third of all iterations was more than what was left, on all data
 * that docs/models.md names. */
static double left_by_fall(const pli_lbfgs *l) {
    const int64_t done = pli_lbfgs_done(l), least = l->is_soft ? SOFT_LOOKS : 5;
    return 2 * pli_lbfgs_fell(l, done / 3 > least ? done / 3 : least);
}

/* How far the objective is above its least value, as a share of it. Half the Newton decrement vt H^-1 v tells it where
 * the pairs know the curvature. Along directions that they do not know yet it may be a thousandth of what there is, but
 * then the objective still falls. */
static double gap(const pli_lbfgs *l, bool may_fall) {
    const double decrement = -l->slope.vd / 2;
    const double above = fmax(4 * fmax(decrement, 0), may_fall ? left_by_fall(l) : 0);
    return l->objective > 0 ? above / l->objective : above > 0 ? (double)INFINITY : 0;
}

/* Has the objective come to rest, but for rounding? */
static bool rests(const pli_lbfgs *l) {
    const double close = l->type == PLAIT_F64 && !l->single ? 1e-14 : 1e-7; /* nets compute in float32 */
    return pli_lbfgs_fell(l, 4) <= 4 * close * fabs(l->objective);
}

/* Goes on from here with a sharper loss. *end_out: there is none. The metric is that of the first loss. */
static plait_status next_stage(pli_lbfgs *l, bool *end_out) {
    const double narrower = pli_lbfgs_sharpen(l);
    *end_out = !(narrower < 1);
    if (*end_out) return PLAIT_OK;
    l->first_stretch *= narrower;
    PLI_TRY(start_again(l));
    l->objective = penalised(l);
    l->stage = l->run->epochs_done;
    PLI_TRY(pli_lbfgs_keep_objective(l));
    return direction(l);
}

/* Takes the next direction, or says that it is the end. A stage may end by a bolder guess than the run. */
static plait_status next_direction(pli_lbfgs *l, bool *end_out) {
    pli_run *run = l->run;
    PLI_TRY(direction(l));
    run->gap = gap(l, true) + pli_lbfgs_excess(l);
    *end_out = run->gap <= pli_run_tolerance(run);
    if (!*end_out) {
        const double fell = 2 * pli_lbfgs_fell(l, 5) / l->objective;
        *end_out = rests(l);
        if (pli_lbfgs_may_sharpen(l, *end_out ? 0 : fmax(fell, gap(l, false)))) PLI_TRY(next_stage(l, end_out));
    }
    const bool fresh = l->pairs == 0 && l->stretch == l->first_stretch;
    if (*end_out || l->slope.vd < 0) return PLAIT_OK;
    /* Not downhill, by rounding: it is the optimum, or the pairs are bad. */
    if (fresh) run->gap = gap(l, false) + pli_lbfgs_excess(l);
    *end_out = fresh;
    return fresh ? PLAIT_OK : start_again(l);
}

static plait_status add_metric(pli_lbfgs *l, void *unused) {
    (void)unused;
    return l->pass->metric(l);
}

/* Takes the metric; loss, gradient and what follows from them at the first weights. */
static plait_status start(pli_lbfgs *l) {
    PLI_TRY(pli_lbfgs_clock(l, add_metric, NULL));
    PLI_TRY(first_gradient(l));
    PLI_TRY(pli_lbfgs_keep_objective(l));
    l->run->gap = l->dots.vhv > 0 ? (double)INFINITY : 0;
    return PLAIT_OK;
}

/* No step was found. *end_out: the pairs are not to blame. */
static plait_status give_up_step(pli_lbfgs *l, bool fresh, bool *end_out) {
    PLI_TRY(go_back(l));
    if (fresh) l->run->gap = gap(l, false) + pli_lbfgs_excess(l);
    *end_out = fresh || l->stop;
    return *end_out ? PLAIT_OK : start_again(l);
}

/* One iteration. *end_out: there is nothing more to do. */
static plait_status iterate_once(pli_lbfgs *l, bool *end_out) {
    pli_run *run = l->run;
    bool     accepted;
    uint64_t at = pli_comm_span_begin(run->comm);
    PLI_TRY(next_direction(l, end_out));
    if (*end_out || !(l->slope.vd < 0)) return PLAIT_OK;
    const bool fresh = l->pairs == 0 && l->stretch == l->first_stretch;
    PLI_TRY(line_search(l, &accepted));
    if (!accepted) return give_up_step(l, fresh, end_out);
    l->args.used[l->args.slot] = 1;
    PLI_TRY(call(l, "lbfgs.gradient", &l->dots, sizeof l->dots));
    take_pair(l);
    run->epochs_done++;
    pli_run_phase(run, "iteration", l->iteration, &at);
    pli_meter_tell(&l->meter, &(pli_sums){ 0 }, l->iteration, 0, true);
    return pli_lbfgs_keep_objective(l);
}

static plait_status iterate(pli_lbfgs *l) {
    pli_run *run = l->run;
    bool     end = false, came;
    plait_status status = PLAIT_OK;
    while (status == PLAIT_OK && l->iteration < run->epochs && !l->stop && l->dots.vhv > 0) {
        PLI_TRY(iterate_once(l, &end));
        if (end) break;
        l->iteration++;
        PLI_TRY(pli_lbfgs_keep(l));
        PLI_TRY(status = pli_lbfgs_door(l, &came));
    }
    if (status != PLAIT_OK) return status;
    run->interrupted = l->stop;
    run->converged = !l->stop && run->gap <= pli_run_tolerance(run);
    return PLAIT_OK;
}

static plait_status begin(pli_lbfgs *l, bool *resumed_out) {
    pli_run               *run = l->run;
    const pli_solver_keeps keeps = pli_lbfgs_keeps(l);
    PLI_TRY(l->pass->begin(l));
    PLI_TRY(pli_lbfgs_rows_begin(l));
    l->by_blocks = l->pass->has_blocks != NULL && l->pass->has_blocks(l);
    if (l->by_blocks) return PLAIT_OK;
    l->args.exact = run->exact;
    l->args.l1 = run->l1;
    l->args.l2 = run->l2;
    PLI_TRY(create_tables(l));
    return pli_lbfgs_keep_begin(l, &keeps, resumed_out);
}

static plait_status train(pli_lbfgs *l) {
    pli_run *run = l->run;
    bool     resumed = false, came = false;
    PLI_TRY(begin(l, &resumed));
    if (l->by_blocks) return pli_lbfgs_run_by_blocks(l);
    PLI_TRY(pli_curve_begin(run, l->values, l->type, run->epochs));
    pli_meter_start(&l->meter, run);
    const plait_status status = pli_lbfgs_doors_begin(l, &came);
    if (status != PLAIT_OK) return status;
    if (!resumed && !came) PLI_TRY(start(l));
    return iterate(l);
}

static plait_status solved(pli_lbfgs *l) {
    const void *values;
    PLI_TRY(plait_job_barrier(l->run->job));
    PLI_TRY(plait_table_read(l->w, 0, l->rows, &values));
    return l->pass->solved(l->run, l->type, values);
}

plait_status pli_lbfgs_run(pli_run *run, const pli_lbfgs_pass *pass) {
    pli_lbfgs    l = { .run = run, .pass = pass, .stretch = 1, .first_stretch = 1 };
    plait_status status = pli_lbfgs_keep_end(&l, train(&l));
    pli_lbfgs_rows_end(&l);
    pli_free(l.fallen);
    pass->end(&l);
    return status == PLAIT_OK && !l.by_blocks ? solved(&l) : status;
}
