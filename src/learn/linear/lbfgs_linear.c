/* A linear model's passes for L-BFGS. The gradient is a sum over rows and entries; the metric's diagonal, a bound of
 * the Hessian's, is one more such sum. Large vectors are kept in float32, and their memory is freed between passes. */
#include <math.h>
#include <string.h>

#include "learn/linear/fit.h"
#include "learn/linear/hessian.h"
#include "learn/solve/lbfgs_run.h"

/* In float32, sums over more rows than this would lose what is added. */
enum { NARROW_ROWS_MAX = 1 << 22 };

/* A pass's memory. */
typedef struct linear_pass {
    pli_linear_fit *fit;
    pli_gradient    gradient;
    double         *raw, *bias;
    bool            is_large; /* memory counts more than time */
} linear_pass;

/* --- a pass over the data -------------------------------------------------------------------------------- */

/* A pass leaves sums in the gradient's slots: the sum of all rows in the first slot; or, under --reduce exact, the sum
 * of one block in each. This pushes a slot's sum [rows, K] times scale, and narrows it in place. */
static plait_status push(pli_lbfgs *l, plait_table *table, int64_t slot, double scale) {
    linear_pass *p = l->own;
    pli_gradient  *gradient = &p->gradient;
    unsigned char *bytes = gradient->is_narrow ? NULL : (unsigned char *)(gradient->sum + slot * l->values);
    float         *narrow = gradient->is_narrow ? gradient->narrow + slot * l->values : NULL;
    for (int64_t i = 0; narrow != NULL && i < l->values; i++) narrow[i] = (float)((double)narrow[i] * scale);
    for (int64_t i = 0; bytes != NULL && i < l->values; i++) {
        double x;
        memcpy(&x, bytes + i * 8, 8);
        x *= scale;
        if (l->type == PLAIT_F32) memcpy(bytes + i * 4, &(float){ (float)x }, 4);
        else memcpy(bytes + i * 8, &x, 8);
    }
    return plait_table_inc_range(table, 0, l->rows, narrow != NULL ? (void *)narrow : bytes, 0);
}

static void raw_weights(pli_lbfgs *l, const void *values, pli_weights *weights) {
    linear_pass *p = l->own;
    int64_t        k = p->fit->linear.goal.columns, d = p->fit->linear.features;
    const float   *f32 = l->type == PLAIT_F32 ? values : NULL;
    const double  *f64 = l->type == PLAIT_F32 ? NULL : values;
    for (int64_t c = 0; c < k; c++)
        p->bias[c] = !p->fit->linear.intercept ? 0 : f32 != NULL ? (double)f32[d * k + c] : f64[d * k + c];
    *weights = (pli_weights){ .f32 = f32, .f64 = f64, .bias = p->bias };
    if (p->fit->fit.scale.factor == NULL) return;
    for (int64_t j = 0; j < d; j++)
        for (int64_t c = 0; c < k; c++) {
            double raw = (f32 != NULL ? (double)f32[j * k + c] : f64[j * k + c]) * p->fit->fit.scale.factor[j];
            p->raw[j * k + c] = raw;
            if (p->fit->fit.scale.centre != NULL) p->bias[c] -= p->fit->fit.scale.centre[j] * raw;
        }
    weights->f32 = NULL;
    weights->f64 = p->raw;
}

static plait_status push_gradient(pli_lbfgs *l, int64_t slot) {
    linear_pass *p = l->own;
    if (l->looks) return PLAIT_OK;
    const pli_run *run = l->run;
    pli_gradient  *gradient = &p->gradient;
    int64_t        k = p->fit->linear.goal.columns, d = p->fit->linear.features;
    double        *bias = gradient->bias + slot * gradient->stride;
    if (!gradient->is_narrow) pli_scale_gradient(&p->fit->fit.scale, k, gradient->sum + slot * l->values, bias);
    for (int64_t c = 0; c < k && p->fit->linear.intercept; c++)
        pli_gradient_put(gradient, slot * l->values + d * k + c, bias[c]);
    return push(l, l->g, slot, 1 / (double)run->train_rows);
}

static plait_status compute(pli_lbfgs *l, const void *values, pli_total *total) {
    linear_pass *p = l->own;
    pli_run      *run = l->run;
    pli_gradient *gradient = &p->gradient;
    pli_weights   weights;
    raw_weights(l, values, &weights);
    pli_run_charge(run, &l->batch, p->fit->linear.goal.columns, l->values);
    if (!run->exact) {
        PLI_TRY(pli_gradient_run(gradient, &weights, l->rows, &l->batch, NULL, NULL, run->err));
        pli_total_add(total, &gradient->sums[0]);
        PLI_TRY(push_gradient(l, 0));
    }
    for (int32_t first = 0, n; run->exact && first < l->batch.parts; first += n) {
        n = pli_gradient_apart(gradient, &l->batch, first);
        PLI_TRY(pli_gradient_run_apart(gradient, &weights, l->rows, &l->batch, first, n, NULL, NULL, run->err));
        for (int32_t i = 0; i < n; i++) {
            pli_total_add(total, &gradient->sums[i]);
            PLI_TRY(push_gradient(l, i));
        }
    }
    if (p->is_large) pli_gradient_rest(gradient); /* before the push begins */
    return PLAIT_OK;
}

/* Pushes a slot's part of the metric's diagonal to h: curvature/n sum weight x_j^2 + l2 p_j, which is never 0. share:
 * the slot's share of the terms that do not come from rows. */
static plait_status push_metric(pli_lbfgs *l, int64_t slot, double share) {
    linear_pass *p = l->own;
    const pli_run   *run = l->run;
    const pli_scale *scale = &p->fit->fit.scale;
    int64_t          k = p->fit->linear.goal.columns, d = p->fit->linear.features, at = slot * l->values;
    const pli_goal  *goal = &p->fit->linear.goal;
    double           curvature = pli_loss_curvature(goal->loss, goal->parameter) / (double)run->train_rows;
    double           weight = p->gradient.bias[slot * p->gradient.stride]; /* sum over the slot's rows */
    for (int64_t j = 0; j < l->rows; j++) {
        double own = 1e-3 * curvature * share;
        if (j < d) own += run->l2 * pli_scale_penalty(scale, j, run->l1, run->l2) * share;
        for (int64_t c = 0; c < k; c++) {
            double square = j == d ? weight : pli_gradient_at(&p->gradient, at + j * k + c);
            if (j < d && scale->centre != NULL) square = scale->factor[j] > 0 ? weight : 0; /* unit variance */
            else if (j < d && scale->factor != NULL) square *= scale->factor[j] * scale->factor[j];
            pli_gradient_put(&p->gradient, at + j * k + c, own + curvature * square);
        }
    }
    return push(l, l->h, slot, 1);
}

static plait_status metric(pli_lbfgs *l) {
    linear_pass *p = l->own;
    pli_run *run = l->run;
    pli_run_charge(run, &l->batch, p->fit->linear.goal.columns, l->values);
    if (!run->exact) {
        PLI_TRY(pli_gradient_squares(&p->gradient, l->rows, &l->batch, run->err));
        PLI_TRY(push_metric(l, 0, (double)l->batch.parts / pli_dataset_blocks(run->data)));
    }
    for (int32_t first = 0, n; run->exact && first < l->batch.parts; first += n) {
        n = pli_gradient_apart(&p->gradient, &l->batch, first);
        PLI_TRY(pli_gradient_squares_apart(&p->gradient, l->rows, &l->batch, first, n, run->err));
        for (int32_t i = 0; i < n; i++) PLI_TRY(push_metric(l, i, 1.0 / pli_dataset_blocks(run->data)));
    }
    if (p->is_large) pli_gradient_rest(&p->gradient);
    return PLAIT_OK;
}

/* --- blocks of the Hessian --------------------------------------------------------------------------------- */

enum { BLOCK_ROWS_MAX = 1024, BLOCKS_VALUES_MAX = 1 << 23, EXACT_VALUES_MAX = 1 << 16 };
#define BLOCKS_WORK_MAX 3e11 /* products of all blocks: seconds. Hundreds of passes by a diagonal cost as much */

/* The products that all blocks take. */
static double blocks_work(const pli_lbfgs *l) {
    const double d = (double)l->rows, rows = (double)l->run->train_rows;
    return rows * (double)l->columns * d * d / 2;
}

/* With L1 the orthants want a diagonal metric. Under --reduce exact the blocks are summed block by block of the data,
 * which costs more than it saves, save for few weights of a smoothed loss: its kinks are steep, and pairs alone learn
 * that late. */
static bool has_blocks(const pli_lbfgs *l) {
    const linear_pass *p = l->own;
    const int64_t      values = l->rows * l->values;
    return p->fit->linear.goal.loss->second != NULL && l->run->l1 == 0 && l->type == PLAIT_F64 &&
           l->rows <= BLOCK_ROWS_MAX && blocks_work(l) <= BLOCKS_WORK_MAX &&
           (l->run->exact ? l->is_soft && values <= EXACT_VALUES_MAX : values <= BLOCKS_VALUES_MAX);
}

static plait_status push_blocks(pli_lbfgs *l, const void *values, int64_t blocks) {
    linear_pass      *p = l->own;
    const pli_run    *run = l->run;
    pli_weights       weights;
    const pli_hessian hessian = { .linear = &p->fit->linear, .scale = &p->fit->fit.scale, .pool = run->pool,
                                  .blocks = blocks, .share = 1 / (double)run->train_rows,
                                  .entries_per_row = (double)run->entries / (double)run->rows };
    double *out = pli_calloc((size_t)(blocks * l->rows), (size_t)l->rows * sizeof *out);
    if (out == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the Hessian");
    raw_weights(l, values, &weights);
    plait_status status = PLAIT_OK;
    for (int32_t first = 0, n; status == PLAIT_OK && first < l->batch.parts; first += n) {
        pli_batch some = l->batch;
        n = run->exact ? 1 : l->batch.parts;
        some.part += first;
        some.parts = n;
        status = pli_hessian_add_up(&hessian, &weights, &some, out, run->err);
        if (status == PLAIT_OK) status = plait_table_inc_range(l->h, 0, blocks * l->rows, out, 0);
    }
    pli_free(out);
    return status;
}

/* --- shape ------------------------------------------------------------------------------------------------- */

/* Picks precision and memory by size: a large model is kept in float32, with a short history and few groups. */
static void pick_shape(pli_lbfgs *l, int32_t *groups_out) {
    linear_pass *p = l->own;
    pli_run *run = l->run;
    double   csr = 8 * (double)run->entries;
    l->rows = p->fit->linear.features + p->fit->linear.intercept;
    l->columns = p->fit->linear.goal.columns;
    l->values = l->rows * l->columns;
    l->type = l->values <= 1 << 17 ? PLAIT_F64 : PLAIT_F32;
    l->is_soft = pli_linear_is_soft(&p->fit->linear);
    p->is_large = l->type == PLAIT_F32 && p->fit->linear.goal.columns == 1;
    l->args.memory = l->values <= 1 << 13 || (l->is_soft && l->type == PLAIT_F64) ? 16 : l->values <= 1 << 17 ? 8 : 4;
    l->args.packed = l->type == PLAIT_F32;
    l->differences = p->fit->linear.goal.loss->target == PLI_CLASSES && run->start == NULL;
    l->args.free_row = p->fit->linear.intercept ? p->fit->linear.features : -1;
    *groups_out = 8 * (double)l->values * 8 <= 0.1 * csr || l->values <= 1 << 14 ? 8 : 2;
}

static plait_status begin(pli_lbfgs *l) {
    linear_pass *p = pli_calloc(1, sizeof *p);
    pli_run *run = l->run;
    int32_t  groups;
    l->own = p;
    if (p == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for passes over the data");
    p->fit = pli_linear_fit_of(run);
    pick_shape(l, &groups);
    if (l->rows == 0)
        return pli_fail(run->err, PLAIT_EINVAL,
                        "the data have no features, and the model has no intercept: there is nothing to learn");
    PLI_TRY(run->exact
                ? pli_gradient_init_apart(&p->gradient, &p->fit->linear, run->pool, run->err)
                : pli_gradient_init(&p->gradient, &p->fit->linear, run->pool, run->data,
                                    run->balanced || run->opts->replicas > 1, groups, run->err));
    if (p->is_large && p->fit->fit.scale.factor == NULL && run->train_rows <= NARROW_ROWS_MAX)
        pli_gradient_narrow(&p->gradient);
    if (p->is_large) pli_dataset_pack(run->data, run->pool);
    p->bias = pli_calloc((size_t)p->fit->linear.goal.columns, sizeof *p->bias);
    if (p->fit->fit.scale.factor != NULL) p->raw = pli_calloc((size_t)l->values, sizeof *p->raw);
    if (p->bias == NULL || (p->fit->fit.scale.factor != NULL && p->raw == NULL))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %lld weights", (long long)l->values);
    return PLAIT_OK;
}

static double sharpen(pli_lbfgs *l) {
    linear_pass *p = l->own;
    return pli_linear_sharpen(&p->fit->linear);
}

static void end(pli_lbfgs *l) {
    linear_pass *p = l->own;
    if (p == NULL) return;
    pli_gradient_destroy(&p->gradient);
    pli_free(p->raw);
    pli_free(p->bias);
    pli_free(p);
    l->own = NULL;
}

static plait_status initial(const pli_lbfgs *l, void **initial_out) {
    return pli_linear_initial(l->run, l->type, initial_out);
}

/* If nothing is scaled, args.free_row alone says what is not penalised. */
static plait_status penalty(const pli_lbfgs *l, void **penalty_out) {
    const linear_pass *p = l->own;
    *penalty_out = NULL;
    return p->fit->fit.scale.factor == NULL ? PLAIT_OK : pli_linear_penalty(l->run, l->type, penalty_out);
}

const pli_lbfgs_pass pli_lbfgs_linear = {
    .begin = begin, .end = end, .initial = initial, .penalty = penalty, .metric = metric, .compute = compute,
    .has_blocks = has_blocks, .blocks = push_blocks, .sharpen = sharpen,
    .finite = pli_fit_finite, .solved = pli_fit_solved_at
};
