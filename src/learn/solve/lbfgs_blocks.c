/* A quasi-Newton method for models with few weights and a Hessian that is cheap beside a pass over the data.
 *
 * The metric of L-BFGS (lbfgs.c) is here the Hessian itself, one block for each score, instead of its diagonal; the
 * pairs of L-BFGS correct what the blocks leave out, and what has changed since they were taken (Byrd, Chin, Neveitt
 * and Nocedal, "On the use of stochastic Hessian information in optimization methods for machine learning", SIAM J.
 * Optim. 2011, put curvature of rows into such a metric, too). Blocks are taken anew after 4, 12, 28, 60, ...
 * iterations, so they cost less than the passes. Badly scaled, correlated and separable data, which cost L-BFGS
 * hundreds of passes, take ten to fifty.
 *
 * Each worker computes gradient and metric of its rows, and the tables add them up. Then every worker holds all vectors
 * and takes the same step by the same arithmetic, so no step is sent. Tables are never cleared: a gradient is what has
 * come on top of the one before. */
#include "learn/solve/lbfgs_blocks.h"

#include <math.h>
#include <string.h>

#include "tensor/spectral/cholesky.h"
#include "tensor/tensor.h"

enum { MEMORY = PLI_LBFGS_BLOCKS_MEMORY, TRIES_MAX = 30, FIRST_RENEWAL = 4, MANY = 24 };

#define SAFETY 4.0 /* measured: docs/models.md */

typedef pli_lbfgs_blocks blocks_run;

/* --- memory and tables ------------------------------------------------------------------------------------------ */

static plait_status take_memory(blocks_run *o) {
    const size_t vectors = 8 + 2 * MEMORY, n = (size_t)o->n, square = (size_t)(o->k * o->m * o->m);
    double      *at = o->values = pli_array(vectors * n + 2 * square, sizeof *at);
    if (at == NULL) return pli_fail(o->l->run->err, PLAIT_ENOMEM, "no memory for %lld weights", (long long)o->n);
    memset(at, 0, (vectors * n + 2 * square) * sizeof *at);
    double **vector[] = {
        &o->w, &o->slope, &o->next, &o->next_slope, &o->direction, &o->scratch, &o->penalty, &o->seen
    };
    for (size_t i = 0; i < sizeof vector / sizeof *vector; i++, at += n) *vector[i] = at;
    for (int32_t j = 0; j < MEMORY; j++, at += 2 * n) {
        o->s[j] = at;
        o->y[j] = at + n;
    }
    o->metric = at;
    o->metric_seen = at + square;
    return PLAIT_OK;
}

static plait_status make_table(blocks_run *o, const char *name, int64_t rows, int64_t cols, plait_table **table_out) {
    plait_table_opts t;
    plait_table_opts_init(&t);
    t.name = name;
    t.type = PLAIT_F64;
    t.rows = rows;
    t.cols = cols;
    PLI_TRY(plait_table_create(o->l->run->job, &t, table_out));
    return pli_run_add_table(o->l->run, *table_out);
}

static plait_status begin(blocks_run *o) {
    pli_lbfgs   *l = o->l;
    void        *initial = NULL, *factor = NULL;
    plait_status status = take_memory(o);
    if (status == PLAIT_OK) status = make_table(o, "g", l->rows, l->columns, &o->g);
    if (status == PLAIT_OK) status = make_table(o, "h", o->k * o->m, o->m, &o->h);
    l->g = o->g;
    l->h = o->h;
    if (status == PLAIT_OK) status = l->pass->initial(l, &initial);
    if (status == PLAIT_OK) status = l->pass->penalty(l, &factor);
    if (status == PLAIT_OK && initial != NULL) memcpy(o->w, initial, (size_t)o->n * sizeof *o->w);
    for (int64_t i = 0; status == PLAIT_OK && i < o->n; i++) {
        const bool is_free = i / o->k == l->args.free_row;
        o->penalty[i] = is_free ? 0 : l->run->l2 * (factor != NULL ? ((const double *)factor)[i] : 1);
    }
    pli_free(initial);
    pli_free(factor);
    return status;
}

/* --- a pass ----------------------------------------------------------------------------------------------------- */

/* Reads what has come to a table since it was last read. */
static plait_status read_new(plait_table *table, int64_t rows, int64_t n, double *seen, double *new_out) {
    const void *values;
    PLI_TRY(plait_table_read(table, 0, rows, &values));
    for (int64_t i = 0; i < n; i++) {
        const double now = ((const double *)values)[i];
        new_out[i] = now - seen[i];
        seen[i] = now;
    }
    return PLAIT_OK;
}

/* What the tables hold has come before the checkpoint, or before this worker. */
static plait_status take_up(blocks_run *o) {
    memset(o->seen, 0, (size_t)o->n * sizeof *o->seen);
    PLI_TRY(read_new(o->g, o->l->rows, o->n, o->seen, o->scratch));
    const int64_t rows = o->k * o->m;
    double       *aside = pli_array((size_t)(rows * o->m), sizeof *aside);
    if (aside == NULL) return pli_fail(o->l->run->err, PLAIT_ENOMEM, "no memory for a metric");
    const plait_status status = read_new(o->h, rows, rows * o->m, o->metric_seen, aside);
    pli_free(aside);
    return status;
}

/* Takes objective and gradient at `next`. */
static plait_status evaluate(blocks_run *o, double *objective_out) {
    pli_lbfgs *l = o->l;
    pli_sums   own;
    double     square = 0;
    if (pli_curve_due(l->run)) pli_curve_keep(l->run, o->next);
    PLI_TRY(pli_lbfgs_evaluate(l, o->next, &own));
    PLI_TRY(read_new(o->g, l->rows, o->n, o->seen, o->next_slope));
    for (int64_t i = 0; i < o->n; i++) {
        o->next_slope[i] += o->penalty[i] * o->next[i];
        square += o->penalty[i] * o->next[i] * o->next[i];
    }
    *objective_out = l->loss + square / 2;
    pli_meter_tell(&l->meter, &own, l->run->epochs_done, 0, false);
    return PLAIT_OK;
}

static void swap(double **a, double **b) {
    double *kept = *a;
    *a = *b;
    *b = kept;
}

/* --- the metric ------------------------------------------------------------------------------------------------- */

/* Adds the penalty to block b and factors it. If a single block serves all scores, its penalty is that of the first. */
static plait_status factor_block(blocks_run *o, int64_t b, double *block) {
    for (int64_t i = 0; i < o->m; i++) block[i * o->m + i] += o->penalty[i * o->k + b];
    return pli_lbfgs_factor(o->m, block, o->l->run->err);
}

static plait_status add_blocks(pli_lbfgs *l, void *arg) {
    const blocks_run *o = arg;
    return l->pass->blocks(l, o->w, o->blocks);
}

/* Takes the metric at w. The first one has a single block, since all scores are still alike. */
static plait_status renew_metric(blocks_run *o, int64_t blocks) {
    o->blocks = blocks;
    PLI_TRY(pli_lbfgs_clock(o->l, add_blocks, o));
    PLI_TRY(read_new(o->h, blocks * o->m, blocks * o->m * o->m, o->metric_seen, o->metric));
    for (int64_t b = 0; b < blocks; b++) PLI_TRY(factor_block(o, b, o->metric + b * o->m * o->m));
    o->fresh = true;
    return PLAIT_OK;
}

/* v = H^-1 v, by the blocks. A loss that sees no more of a row's scores than their differences does not change if all
 * of them move alike. The blocks do not know that, so such moves are taken out. */
static void apply_metric(blocks_run *o, double *v) {
    for (int64_t c = 0; c < o->k; c++) {
        const double *u = o->metric + (o->blocks > 1 ? c : 0) * o->m * o->m;
        if (o->k == 1) {
            pli_cholesky_solve(o->m, u, v);
            continue;
        }
        for (int64_t i = 0; i < o->m; i++) o->scratch[i] = v[i * o->k + c];
        pli_cholesky_solve(o->m, u, o->scratch);
        for (int64_t i = 0; i < o->m; i++) v[i * o->k + c] = o->scratch[i];
    }
    for (int64_t i = 0; i < o->m && o->l->differences; i++) {
        double mean = 0;
        for (int64_t c = 0; c < o->k; c++) mean += v[i * o->k + c] / (double)o->k;
        for (int64_t c = 0; c < o->k; c++) v[i * o->k + c] -= mean;
    }
}

/* --- directions ------------------------------------------------------------------------------------------------- */

static double dot(const blocks_run *o, const double *x, const double *y) {
    return pli_kernels_get()->dot_f64(o->n, x, y);
}

static void add(const blocks_run *o, double a, const double *x, double *y) {
    pli_kernels_get()->axpy_f64(o->n, a, x, y);
}

/* The slot of the pair that is `age` pairs older than the newest. */
static int64_t slot_of(const blocks_run *o, int64_t age) { return (o->newest - age + MEMORY) % MEMORY; }

/* Nocedal and Wright's algorithm 7.4. Returns gt direction. */
static double take_direction(blocks_run *o) {
    double alpha[MEMORY], *d = o->direction;
    memcpy(d, o->slope, (size_t)o->n * sizeof *d);
    for (int64_t age = 0; age < o->pairs; age++) {
        const int64_t j = slot_of(o, age);
        alpha[j] = dot(o, o->s[j], d) / o->sy[j];
        add(o, -alpha[j], o->y[j], d);
    }
    apply_metric(o, d);
    for (int64_t i = 0; i < o->n; i++) d[i] *= o->gamma;
    for (int64_t age = o->pairs - 1; age >= 0; age--) {
        const int64_t j = slot_of(o, age);
        add(o, alpha[j] - dot(o, o->y[j], d) / o->sy[j], o->s[j], d);
    }
    for (int64_t i = 0; i < o->n; i++) d[i] = -d[i];
    return dot(o, o->slope, d);
}

/* The step from w to next was accepted: takes the pair, unless it has no curvature. */
static void take_pair(blocks_run *o) {
    const int64_t j = (o->newest + 1) % MEMORY;
    double       *s = o->s[j], *y = o->y[j], *hy = o->direction; /* the direction is used up */
    for (int64_t i = 0; i < o->n; i++) {
        s[i] = o->next[i] - o->w[i];
        y[i] = o->next_slope[i] - o->slope[i];
    }
    memcpy(hy, y, (size_t)o->n * sizeof *hy);
    apply_metric(o, hy);
    const double sy = dot(o, s, y), yhy = dot(o, y, hy);
    if (!(sy > 1e-12 * yhy) || !(yhy > 0)) {
        if (o->pairs == MEMORY) o->pairs--; /* its slot held the oldest */
        return;
    }
    o->sy[j] = sy;
    o->gamma = sy / yhy;
    o->newest = j;
    if (o->pairs < MEMORY) o->pairs++;
}

/* --- iterations ------------------------------------------------------------------------------------------------- */

/* Backtracking to sufficient decrease, as lbfgs.c does. */
static plait_status line_search(blocks_run *o, double slope, bool *accepted_out) {
    pli_lbfgs *l = o->l;
    double     step = 1, now;
    *accepted_out = false;
    for (int32_t i = 0; i < TRIES_MAX && !l->stop; i++) {
        for (int64_t j = 0; j < o->n; j++) o->next[j] = o->w[j] + step * o->direction[j];
        PLI_TRY(evaluate(o, &now));
        if (isfinite(now) && now <= l->objective + 1e-4 * step * slope) {
            l->objective = now;
            *accepted_out = true;
            return PLAIT_OK;
        }
        const double best = isfinite(now) ? -slope * step * step / (2 * (now - l->objective - slope * step)) : 0;
        step = fmin(0.5 * step, fmax(0.1 * step, best));
    }
    return PLAIT_OK;
}

/* No step was found: gives up the pairs, and takes the metric of this point. *end_out: that was so already, so the rest
 * is rounding. */
static plait_status start_again(blocks_run *o, bool *end_out) {
    *end_out = o->pairs == 0 && o->fresh;
    o->pairs = 0;
    o->gamma = 1;
    return o->fresh ? PLAIT_OK : renew_metric(o, o->k);
}

/* The step to next was accepted. */
static plait_status take_step(blocks_run *o) {
    take_pair(o);
    swap(&o->w, &o->next);
    swap(&o->slope, &o->next_slope);
    o->fresh = false;
    o->l->run->epochs_done++;
    PLI_TRY(pli_lbfgs_keep_objective(o->l));
    if (pli_lbfgs_done(o->l) < o->renewal) return PLAIT_OK;
    o->renewal = 2 * o->renewal + FIRST_RENEWAL;
    return renew_metric(o, o->k);
}

/* How far the objective is above its least value, as a share of it: half the Newton decrement gt H^-1 g, with a safety
 * for what the metric leaves out. After many iterations, so little does the metric know, it is no less than what the
 * objective fell in the last eighth of them. */
static double gap(const pli_lbfgs *l, double decrement) {
    const int64_t done = pli_lbfgs_done(l);
    const double  above = fmax(SAFETY * decrement, done >= MANY ? pli_lbfgs_fell(l, done / 8) : 0);
    return l->objective > 0 ? above / l->objective : above > 0 ? (double)INFINITY : 0;
}

/* Takes objective and gradient at w. */
static plait_status evaluate_here(blocks_run *o) {
    memcpy(o->next, o->w, (size_t)o->n * sizeof *o->w);
    PLI_TRY(evaluate(o, &o->l->objective));
    PLI_TRY(pli_lbfgs_keep_objective(o->l));
    swap(&o->slope, &o->next_slope);
    return PLAIT_OK;
}

/* Goes on from here with a sharper loss. *end_out: there is none. */
static plait_status next_stage(blocks_run *o, bool *end_out) {
    pli_lbfgs *l = o->l;
    *end_out = !(pli_lbfgs_sharpen(l) < 1);
    if (*end_out) return PLAIT_OK;
    o->pairs = 0;
    o->gamma = 1;
    o->renewal = FIRST_RENEWAL;
    l->stage = l->run->epochs_done;
    PLI_TRY(evaluate_here(o));
    return renew_metric(o, o->k);
}

/* Takes objective, gradient and metric at the first weights. */
static plait_status start(blocks_run *o) {
    PLI_TRY(evaluate_here(o));
    PLI_TRY(o->l->pass->finite(o->l->run, o->l->objective, 0));
    return renew_metric(o, 1);
}

/* One iteration. *end_out: there is nothing more to do. */
static plait_status iterate_once(blocks_run *o, bool *end_out) {
    pli_lbfgs   *l = o->l;
    pli_run     *run = l->run;
    bool         accepted = false;
    uint64_t     at = pli_comm_span_begin(run->comm);
    const double slope = take_direction(o), own = gap(l, -slope / 2);
    run->gap = own + pli_lbfgs_excess(l);
    *end_out = run->gap <= pli_run_tolerance(run) || l->iteration >= run->epochs;
    if (*end_out) return PLAIT_OK;
    if (pli_lbfgs_may_sharpen(l, own)) return next_stage(o, end_out);
    if (slope < 0) PLI_TRY(line_search(o, slope, &accepted));
    if (accepted) PLI_TRY(take_step(o));
    else if (!l->stop) PLI_TRY(start_again(o, end_out));
    if (*end_out && l->is_soft) PLI_TRY(next_stage(o, end_out)); /* what is left of this stage is rounding */
    if (!accepted) return PLAIT_OK;
    pli_run_phase(run, "iteration", l->iteration, &at);
    pli_meter_tell(&l->meter, &(pli_sums){ 0 }, l->iteration, 0, true);
    return PLAIT_OK;
}

static plait_status iterate(blocks_run *o) {
    pli_lbfgs *l = o->l;
    pli_run   *run = l->run;
    bool       end = false, came;
    plait_status status = PLAIT_OK;
    while (status == PLAIT_OK && !l->stop) {
        PLI_TRY(iterate_once(o, &end));
        if (end) break;
        l->iteration++;
        PLI_TRY(pli_lbfgs_keep(l));
        PLI_TRY(status = pli_lbfgs_door(l, &came));
        if (came && status == PLAIT_OK) PLI_TRY(take_up(o));
    }
    if (status != PLAIT_OK) return status;
    run->interrupted = l->stop;
    run->converged = !l->stop && run->gap <= pli_run_tolerance(run);
    return PLAIT_OK;
}

static plait_status train(blocks_run *o) {
    pli_lbfgs             *l = o->l;
    const pli_solver_keeps keeps = pli_lbfgs_blocks_keeps(o);
    bool                   resumed = false, came = false;
    PLI_TRY(begin(o));
    PLI_TRY(pli_lbfgs_keep_begin(l, &keeps, &resumed));
    if (resumed) PLI_TRY(take_up(o));
    PLI_TRY(pli_curve_begin(l->run, l->values, l->type, l->run->epochs));
    pli_meter_start(&l->meter, l->run);
    const plait_status status = pli_lbfgs_doors_begin(l, &came);
    if (status != PLAIT_OK) return status;
    if (came) PLI_TRY(take_up(o));
    if (!resumed && !came) PLI_TRY(start(o));
    return iterate(o);
}

plait_status pli_lbfgs_run_by_blocks(pli_lbfgs *l) {
    blocks_run o = {
        .l = l, .n = l->values, .m = l->rows, .k = l->columns, .gamma = 1, .renewal = FIRST_RENEWAL, .newest = -1
    };
    plait_status status = train(&o);
    l->pass->end(l);
    if (status == PLAIT_OK) status = plait_job_barrier(l->run->job);
    if (status == PLAIT_OK) status = l->pass->solved(l->run, l->type, o.w);
    pli_free(o.values);
    pli_free(o.kept_point);
    return status;
}
