/* The path of penalties, and the working set at each of them. See coordinates.h.
 *
 * A path goes from the least l1 at which all weights are 0 down to --l1, or to a thousandth of it, by equal factors.
 * Each penalty begins at the weights of the one before. Without a path there is one penalty. A look is an epoch of the
 * run, and a clock. */
#include "learn/linear/coordinates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/keep/keep.h"
#include "learn/solve/settled.h"
#include "learn/solve/progress.h"
#include "table/table.h"

enum { GROWTH_LEAST = 64, TIGHTER_MOST = 32 };
#define PATH_RATIO 1e-3

static pli_coordinates *coordinates_of(const pli_run *run) { return pli_linear_fit_of(run)->coordinates; }

/* --- memory ------------------------------------------------------------------------------------------------------- */

static plait_status take_memory(pli_run *run, pli_coordinates *c) {
    const size_t   d = (size_t)run->features + 1;
    double **const of_columns[] = { &c->w, &c->g, &c->h, &c->first, &c->spread, &c->mean, &c->before };
    bool           ok = true;
    for (size_t i = 0; i < sizeof of_columns / sizeof *of_columns; i++)
        ok = (*of_columns[i] = pli_calloc(d, sizeof(double))) != NULL && ok;
    c->out = pli_calloc(d, sizeof *c->out);
    c->in = pli_calloc(d, sizeof *c->in);
    c->working = pli_calloc(d, sizeof *c->working);
    c->moving = pli_calloc(d, sizeof *c->moving);
    c->gone = pli_calloc((size_t)plait_comm_workers(run->comm), sizeof *c->gone);
    ok = ok && c->out != NULL && c->in != NULL && c->working != NULL && c->moving != NULL && c->gone != NULL;
    return ok ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for %zu columns", d - 1);
}

static void free_all(pli_run *run) {
    pli_coordinates *c = coordinates_of(run);
    if (c == NULL) return;
    void *const all[] = { c->w, c->g, c->h, c->first, c->spread, c->mean, c->before, c->out, c->in, c->working,
                          c->moving, c->gone, c->gram, c->label_slope };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pli_free(all[i]);
    pli_coordinates_steps_free(c);
    pli_coordinates_kept_free(c);
    pli_coordinates_rows_free(c);
    pli_linear_fit_of(run)->updates = c->updates;
    pli_free(c);
    pli_linear_fit_of(run)->coordinates = NULL;
}

/* --- what follows from the data ----------------------------------------------------------------------------------- */

/* Products of columns cost features for a weight that moves, residuals the entries of its column; and all products must
 * be computed once. The numbers are those of all workers' rows, so all decide alike. */
static bool takes_products(const pli_coordinates *c) {
    const double d = (double)c->columns.features, entries = (double)c->run->entries;
    return c->run->opts->together == 0 && !c->logistic && entries > d * d && d <= 4096;
}

/* Called after the first look. */
static plait_status multiply_columns(pli_run *run, pli_coordinates *c) {
    const pli_columns *x = &c->columns;
    const int64_t      d = x->features;
    c->gram = pli_array((size_t)(d * d) + 1, sizeof *c->gram);
    c->label_slope = pli_calloc((size_t)d + 1, sizeof *c->label_slope);
    if (c->gram == NULL || c->label_slope == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for products of %lld columns", (long long)d);
    PLI_TRY(pli_columns_products(run, x, c->intercept ? c->mean : NULL, c->gram));
    PLI_TRY(pli_coordinates_sum(c, c->gram, d * d));
    for (int64_t j = 0; j < d; j++) c->h[j] = c->spread[j] > 0 ? c->gram[j * d + j] : 0;
    c->label_square = c->look.square;
    for (int64_t j = 0; j < d; j++) {
        c->label_slope[j] = c->g[j];
        for (int64_t k = 0; k < d; k++) c->label_slope[j] += c->gram[j * d + k] * c->w[k];
        c->label_square += c->w[j] * (c->label_slope[j] + c->g[j]);
        c->bias += c->intercept ? c->w[j] * c->mean[j] : 0; /* with products it is that of weights 0 */
    }
    return PLAIT_OK;
}

/* Begins at the weights of a checkpoint, or of --init-model. */
static void take_start(pli_run *run, pli_coordinates *c) {
    if (run->start == NULL && !c->resumed) return;
    const pli_solution *start = c->resumed ? NULL : pli_fitted_solution(run->start);
    const double       *weight = c->resumed ? pli_coordinates_point(c) : start->weight;
    const double        bias = c->resumed ? weight[c->columns.features] : start->bias[0];
    c->bias = c->intercept ? bias : 0;
    for (int64_t j = 0; j < c->columns.features; j++) c->w[j] = c->spread[j] > 0 ? weight[j] : 0;
    pli_coordinates_score(c);
}

/* The table holds sums of slopes that belong to the point where the checkpoint was cut; they are made anew. */
static plait_status resume(pli_run *run, pli_coordinates *c) {
    PLI_TRY(pli_keep_begin(run));
    PLI_TRY(pli_resume_tables(run));
    if (c->resumed) PLI_TRY(plait_table_zero(c->table));
    return plait_job_barrier(run->job);
}

static plait_status begin(pli_run *run, pli_penalties *p) {
    pli_linear_fit  *l = pli_linear_fit_of(run);
    pli_coordinates *c = l->coordinates = pli_calloc(1, sizeof *c);
    plait_table_opts t;
    if (c == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for training");
    c->run = run;
    c->penalties = p;
    c->logistic = l->linear.goal.classes > 0;
    c->intercept = l->linear.intercept;
    c->l2 = run->l2;
    PLI_TRY(take_memory(run, c));
    PLI_TRY(pli_settled_begin(run, NULL));
    PLI_TRY(pli_coordinates_gather(c));
    PLI_TRY(pli_coordinates_kept_make(c));
    p->values = pli_calloc((size_t)c->columns.features + 1, 2 * sizeof *p->values);
    if (p->values == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for weights");
    plait_table_opts_init(&t);
    t.name = "w";
    t.type = PLAIT_F64;
    t.rows = run->features + 1;
    t.cols = 2;
    t.keyed = 1;
    PLI_TRY(pli_run_make_table(run, &t, &c->table));
    PLI_TRY(resume(run, c));
    take_start(run, c);
    pli_job_resume(run->job);
    return PLAIT_OK;
}

/* --- the working set ---------------------------------------------------------------------------------------------- */

/* Leaves out the columns whose weights are 0 at the optimum for certain: the best dual point lies within the radius of
 * the one at hand, so its slope for column j is no further from that one's than radius times the column's length. */
static void leave_out(pli_coordinates *c) {
    for (int64_t j = 0; j < c->columns.features; j++)
        if (!c->out[j] && c->w[j] == 0)
            c->out[j] = c->look.scale * fabs(c->g[j]) + c->look.radius * sqrt(c->spread[j] + c->l2) < c->l1;
}

void pli_coordinates_take_in(pli_coordinates *c, int64_t j) {
    c->in[j] = true;
    c->working[c->n_working++] = j;
}

typedef struct candidate {
    double  slope;
    int64_t column;
} candidate;

static int by_slope(const void *x, const void *y) {
    const candidate *a = x, *b = y;
    if (a->slope != b->slope) return a->slope > b->slope ? -1 : 1;
    return (a->column > b->column) - (a->column < b->column);
}

/* Adds columns whose slopes are too large for weight 0, those with the largest first: the set at most doubles, since
 * many of them will be 0 once the first have moved. expected: also those with slopes above it, all of them. */
static plait_status choose(pli_coordinates *c, double expected) {
    const int64_t d = c->columns.features;
    int64_t       n = 0;
    candidate    *found = pli_array((size_t)d + 1, sizeof *found);
    if (found == NULL) return pli_fail(c->run->err, PLAIT_ENOMEM, "no memory for the working set");
    for (int64_t j = 0; j < d; j++) {
        if (c->in[j] || c->out[j]) continue;
        if (c->w[j] != 0 || fabs(c->g[j]) >= expected) pli_coordinates_take_in(c, j);
        else if (fabs(c->g[j]) > c->l1) found[n++] = (candidate){ fabs(c->g[j]), j };
    }
    qsort(found, (size_t)n, sizeof *found, by_slope);
    const int64_t most = c->n_working > GROWTH_LEAST ? c->n_working : GROWTH_LEAST;
    for (int64_t i = 0; i < n && i < most; i++) pli_coordinates_take_in(c, found[i].column);
    pli_free(found);
    return PLAIT_OK;
}

void pli_coordinates_begin_set(pli_coordinates *c) {
    memset(c->out, 0, (size_t)c->columns.features * sizeof *c->out);
    memset(c->in, 0, (size_t)c->columns.features * sizeof *c->in);
    c->n_working = 0;
}

/* Columns that were left out leave the working set. */
static void clear_set(pli_coordinates *c) {
    int64_t n = 0;
    for (int64_t i = 0; i < c->n_working; i++) {
        const int64_t j = c->working[i];
        if (c->out[j]) c->in[j] = false;
        else c->working[n++] = j;
    }
    c->n_working = n;
}

/* The curvature of a logistic loss changes with the point. Collective. */
static plait_status bend_columns(pli_coordinates *c) {
    double *sums = pli_calloc((size_t)c->n_working + 1, 2 * sizeof *sums);
    if (sums == NULL) return pli_fail(c->run->err, PLAIT_ENOMEM, "no memory for the working set");
    for (int64_t i = 0; i < c->n_working; i++)
        pli_column_sums(&c->columns, c->working[i], c->omega, &sums[2 * i], &sums[2 * i + 1]);
    const plait_status status = pli_coordinates_sum(c, sums, 2 * c->n_working);
    for (int64_t i = 0; i < c->n_working; i++) {
        const int64_t j = c->working[i];
        const double  first = c->intercept ? sums[2 * i] : 0;
        c->first[j] = first;
        c->h[j] = c->spread[j] > 0 ? fmax(sums[2 * i + 1] - (first != 0 ? first * first / c->mass : 0), 0) : 0;
    }
    pli_free(sums);
    return status;
}

/* --- one penalty -------------------------------------------------------------------------------------------------- */

/* Takes a checkpoint if one is due. Steps may have heard that all end: then the checkpoint is of the next clock at
 * which workers ask one another. Collective. */
static plait_status keep_point(pli_coordinates *c) {
    pli_run *run = c->run;
    bool     stop = false;
    PLI_TRY(pli_coordinates_keep(c, &stop));
    while (run->interrupted && !stop && run->keep != NULL) {
        PLI_TRY(pli_coordinates_clock(c));
        PLI_TRY(pli_coordinates_keep(c, &stop));
    }
    run->interrupted = run->interrupted || stop;
    return PLAIT_OK;
}

/* Ends the clock of a look. Was anybody told to stop? Collective. */
static plait_status end_look(pli_coordinates *c, pli_meter *meter) {
    pli_run *run = c->run;
    PLI_TRY(pli_fit_finite(run, c->look.loss, run->clocks_done));
    PLI_TRY(pli_coordinates_clock(c));
    run->epochs_done++;
    pli_sums sums = { .loss = c->look.loss * (double)run->train_rows, .weight = c->all * (double)run->train_rows,
                      .rows = (double)c->columns.rows };
    if (run->first.rows == 0) run->first = sums;
    if (run->epochs_done == 1) pli_total_add(&run->progressive, &sums);
    pli_meter_tell(meter, &sums, run->epochs_done - 1, 0, true);
    return keep_point(c);
}

/* Looks; again if a worker dies, until the look is over all rows. With products no row is needed any more.
 * Collective. */
static plait_status look_at_all(pli_coordinates *c) {
    for (;;) {
        PLI_TRY(pli_coordinates_look(c));
        PLI_TRY(pli_coordinates_gap(c));
        if (c->gram != NULL || !pli_coordinates_died(c)) return PLAIT_OK;
        PLI_TRY(pli_coordinates_revive(c));
    }
}

/* Under --balance dynamic blocks may change hands here. With products no row is needed any more. Collective. */
static plait_status move_rows(pli_coordinates *c, bool *moved_out) {
    *moved_out = false;
    if (c->gram != NULL) return PLAIT_OK;
    PLI_TRY(pli_settled_meet(c->run, moved_out));
    return *moved_out ? pli_coordinates_revive(c) : PLAIT_OK;
}

static double penalty_of(const pli_penalties *p, int64_t i) {
    if (i + 1 == p->n) return p->least;
    return p->most * pow(p->least / p->most, (double)i / (double)(p->n - 1));
}

/* Slopes above it are expected to get a weight at the penalty at hand: the strong rule. */
static double strong_rule(const pli_coordinates *c) {
    return c->penalties->n > 1 ? 2 * c->l1 - c->penalties->before : INFINITY;
}

/* Looks, and passes over the working set, until the gap is small enough: *done_out. If a worker dies, what has moved
 * since the look stays: it is as good a point to go on from as any, once the next look is over all rows. If workers
 * come or go, the penalty is begun again, at the weights at hand. Collective. */
static plait_status solve(pli_coordinates *c, pli_meter *meter, bool *done_out) {
    pli_run *run = c->run;
    double   share = 0.1;
    int      tighter = 0;
    bool     first = true, moved, changed;
    pli_coordinates_begin_set(c);
    for (;; first = changed) {
        PLI_TRY(look_at_all(c));
        PLI_TRY(end_look(c, meter));
        const double allowed = pli_run_tolerance(run) * c->look.primal;
        *done_out = c->look.gap <= allowed;
        const bool over = run->interrupted || run->epochs_done >= run->epochs || tighter >= TIGHTER_MOST;
        if (*done_out || over) return PLAIT_OK;
        const plait_status status = pli_coordinates_turn(c, &changed);
        if (status != PLAIT_OK) return status;
        if (changed) {
            c->l1 = penalty_of(c->penalties, c->penalties->at);
            share = 0.1;
            tighter = 0;
            continue;
        }
        PLI_TRY(move_rows(c, &moved));
        if (moved) PLI_TRY(look_at_all(c));
        const int64_t before = c->n_working;
        leave_out(c);
        clear_set(c);
        PLI_TRY(choose(c, first ? strong_rule(c) : INFINITY));
        if (c->n_working <= before && !first) {
            share /= 4;
            tighter++;
        }
        if (c->logistic) PLI_TRY(bend_columns(c));
        const double target = share * (c->logistic ? fmax(allowed, 0.1 * c->look.gap) : allowed);
        if (c->steps != NULL) PLI_TRY(pli_coordinates_steps_take(c, target));
        else pli_coordinates_pass(c, target);
        PLI_TRY(pli_coordinates_settle(c));
    }
}

/* --- the path ----------------------------------------------------------------------------------------------------- */

/* What rounding may make of a slope that is 0: where all labels, or all values of each column, are equal. */
static double rounding_of(const pli_coordinates *c) {
    double widest = 0;
    for (int64_t j = 0; j < c->columns.features; j++)
        widest = fmax(widest, c->spread[j] + c->all * c->mean[j] * c->mean[j]);
    return 1e-14 * sqrt(widest) * (c->logistic ? 1 : sqrt(c->look.square + c->bias * c->bias));
}

/* Which penalties there are. The largest is the least at which all weights are 0; if slopes are but rounding, there is
 * one, which is large enough to leave all weights at 0. */
static void lay_out(const pli_coordinates *c, pli_penalties *p) {
    const plait_train_opts *o = c->run->opts;
    const double            rounding = rounding_of(c);
    p->most = 0;
    for (int64_t j = 0; j < c->columns.features; j++)
        if (c->spread[j] > 0) p->most = fmax(p->most, fabs(c->g[j]));
    if (p->most <= rounding) p->most = 0;
    p->n = o->path > 0 ? o->path : 1;
    p->least = o->l1 > 0 ? o->l1 : p->most > 0 ? PATH_RATIO * p->most : rounding;
    if (!(p->least < p->most) || !(p->most > 0)) p->n = 1;
}

/* Says why a path is shorter than was asked for. */
static void tell_length(const pli_run *run, const pli_penalties *p) {
    if (run->opts->path < 2 || p->n > 1 || !pli_comm_leads(run->comm)) return;
    if (p->most > 0)
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn",
                "note: the path has one penalty, since all weights are 0 from l1 %.6g on, and --l1 is %.6g; take a "
                "smaller --l1, or leave it out", p->most, run->opts->l1);
    else
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn",
                "note: the path has one penalty, since all weights are 0 under any: all labels, or all values of each "
                "column, are equal");
}

/* Steps of several weights cost a clock each. */
static void tell_steps(const pli_run *run) {
    if (run->opts->together > 0 && pli_run_holders(run) == 1 && pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn",
                "note: --together on one worker takes scheduled steps where passes over the weights are many times "
                "faster; leave it out, or take more workers");
}

double pli_coordinates_intercept(const pli_coordinates *c) {
    double b = c->bias;
    for (int64_t j = 0; c->gram != NULL && c->intercept && j < c->columns.features; j++) b -= c->w[j] * c->mean[j];
    return b;
}

static void keep(const pli_coordinates *c, pli_penalties *p, double loss) {
    memcpy(p->values, c->w, (size_t)c->columns.features * sizeof *c->w);
    p->values[c->columns.features] = pli_coordinates_intercept(c);
    p->loss = loss;
    p->l1 = c->l1;
    p->gap = c->look.primal > 0 ? c->look.gap / c->look.primal : 0;
}

static plait_status validate(pli_coordinates *c, pli_penalties *p, double *loss_out) {
    pli_run     *run = c->run;
    pli_solution now = { 0 };
    double       accuracy, *values = p->values + c->columns.features + 1;
    *loss_out = NAN;
    if (run->validation == NULL && !(run->fraction > 0)) return PLAIT_OK;
    memcpy(values, c->w, (size_t)c->columns.features * sizeof *c->w);
    values[c->columns.features] = pli_coordinates_intercept(c);
    PLI_TRY(pli_linear_fit_ops.solution(run, PLAIT_F64, values, &now));
    const plait_status status = pli_fit_validate(run, &now, loss_out, &accuracy);
    pli_solution_free(&now);
    return status;
}

static plait_status tell(pli_coordinates *c, const pli_penalties *p, int64_t i, double loss) {
    const pli_run *run = c->run;
    plait_penalty  told = { .number = i + 1, .of = p->n, .l1 = c->l1, .objective = c->look.primal,
                            .validation_loss = loss };
    if (!(p->most > 0) && !(run->opts->l1 > 0)) told.l1 = 0; /* all weights are 0 without any penalty, too */
    told.gap = c->look.primal > 0 ? c->look.gap / c->look.primal : 0;
    for (int64_t j = 0; j < c->columns.features; j++) told.nonzeros += c->w[j] != 0;
    if (run->opts->path > 0 && run->opts->penalty != NULL && pli_comm_leads(run->comm))
        run->opts->penalty(run->opts->user, &told);
    return pli_coordinates_note(c, &told);
}

/* The table holds the weights at the end. */
static plait_status push(pli_coordinates *c, const pli_penalties *p) {
    const int64_t d = c->columns.features;
    double       *values = pli_calloc((size_t)d + 1, 2 * sizeof *values);
    if (values == NULL) return pli_fail(c->run->err, PLAIT_ENOMEM, "no memory for %lld weights", (long long)d);
    for (int64_t j = 0; j <= d; j++) values[2 * j] = p->values[j];
    const plait_status status = pli_coordinates_lead_adds(c, values);
    pli_free(values);
    return status;
}

static plait_status walk(pli_coordinates *c, pli_penalties *p, pli_meter *meter) {
    pli_run *run = c->run;
    if (!c->resumed) p->before = p->most;
    for (; p->at < p->n && !run->interrupted && run->epochs_done < run->epochs; p->at++) {
        bool         done;
        double       loss;
        plait_status status;
        c->l1 = penalty_of(p, p->at);
        PLI_TRY(status = solve(c, meter, &done));
        if (status != PLAIT_OK) return status;
        PLI_TRY(validate(c, p, &loss));
        if (run->interrupted && !done && run->keep != NULL) break; /* the checkpoint takes this penalty up again */
        PLI_TRY(tell(c, p, p->at, loss));
        if (p->at == 0 || isnan(loss) || loss < p->loss) keep(c, p, loss);
        p->before = c->l1;
        p->done += done;
    }
    return PLAIT_OK;
}

plait_status pli_coordinates_choose_way(pli_coordinates *c) {
    pli_run     *run = c->run;
    const double bias = c->bias;
    for (;;) {
        PLI_TRY(pli_coordinates_look(c));
        if (takes_products(c)) PLI_TRY(multiply_columns(run, c));
        else if (run->opts->together > 0 || plait_comm_workers(run->comm) > 1) PLI_TRY(pli_coordinates_steps_make(c));
        if (!pli_coordinates_died(c)) return PLAIT_OK;
        pli_coordinates_steps_free(c);
        pli_free(c->gram);
        pli_free(c->label_slope);
        c->gram = c->label_slope = NULL;
        c->bias = bias;
        PLI_TRY(pli_coordinates_revive(c));
    }
}

static plait_status train(pli_run *run, pli_penalties *p) {
    pli_meter        meter;
    bool             came;
    pli_coordinates *c = coordinates_of(run);
    pli_meter_start(&meter, run);
    plait_status status = pli_coordinates_turns_begin(c, &came);
    if (status != PLAIT_OK) return status;
    if (!came) PLI_TRY(pli_coordinates_choose_way(c));
    if (!c->resumed) lay_out(c, p);
    if (!came) pli_coordinates_tell_again(c);
    tell_length(run, p);
    tell_steps(run);
    PLI_TRY(status = walk(c, p, &meter));
    if (status != PLAIT_OK) return status;
    PLI_TRY(pli_keep_settle(run));
    if (!run->interrupted || run->keep == NULL) PLI_TRY(push(c, p)); /* else the last clock is the checkpoint's */
    run->l1 = p->l1;
    run->gap = p->gap;
    run->converged = p->done == p->n;
    PLI_TRY(plait_job_barrier(run->job));
    return pli_fit_solved_at(run, PLAIT_F64, p->values);
}

plait_status pli_coordinates_train(pli_run *run) {
    pli_penalties p = { .loss = INFINITY };
    plait_status status = begin(run, &p);
    if (status == PLAIT_OK) status = train(run, &p);
    run->kept = pli_keep_last(run, &run->unkept);
    pli_keep_end(run);
    if (coordinates_of(run) != NULL) pli_doors_end(&coordinates_of(run)->doors);
    pli_settled_end(run);
    pli_free(p.values);
    free_all(run);
    return status;
}
