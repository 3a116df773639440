/* A worker's own quadratic model: slopes and curvature of the losses of its rows. Two passes for each point: one finds
 * how far each score would move, one adds up x slope and x x' curvature. Dense rows are taken some at a time, so that
 * the curvature is a matrix product; sparse ones entry by entry. Rows are added in fixed groups of blocks, so the
 * number of threads never changes a result. */
#include <math.h>
#include <string.h>

#include "learn/linear/newton_rows.h"
#include "tensor/gemm/gemm.h"

static bool is_dense(const pli_newton_rows *n) { return pli_fit_of(n->run)->scale.centre != NULL; }

/* --- memory ------------------------------------------------------------------------------------------------------- */

static bool make_group(pli_newton_group *g, int64_t rows, int64_t k, bool curved) {
    g->model = (pli_quadratic){ .rows = rows, .columns = k };
    g->slope = pli_calloc((size_t)k, sizeof(double));
    g->model.r = pli_calloc((size_t)(rows * k), sizeof(double));
    g->bias = pli_calloc((size_t)k, sizeof(double));
    if (g->slope == NULL || g->model.r == NULL || g->bias == NULL) return false;
    if (!curved) return true;
    g->model.h = pli_calloc((size_t)pli_quadratic_values(&g->model), sizeof(double));
    g->x = pli_calloc((size_t)(PLI_NEWTON_CHUNK * rows), sizeof(double));
    g->y = pli_calloc((size_t)(PLI_NEWTON_CHUNK * rows), sizeof(double));
    g->curve = pli_calloc((size_t)(PLI_NEWTON_CHUNK * k * k), sizeof(double));
    return g->model.h != NULL && g->x != NULL && g->y != NULL && g->curve != NULL;
}

plait_status pli_newton_rows_make(pli_run *run, const pli_batch *batch, bool curved, pli_newton_rows **rows_out) {
    const pli_linear *linear = &pli_linear_fit_of(run)->linear;
    const int64_t     k = linear->goal.columns, d = linear->features, rows = d + linear->intercept;
    pli_newton_rows  *n = pli_calloc(1, sizeof *n);
    *rows_out = n;
    if (n == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for rows");
    n->run = run;
    n->linear = *linear;
    n->curved = curved;
    n->begin = pli_array((size_t)batch->parts + 1, sizeof *n->begin);
    for (int32_t p = 0; n->begin != NULL && p < batch->parts; p++) {
        n->begin[p] = n->rows;
        n->rows += batch->part[p].rows;
    }
    n->score = pli_calloc((size_t)(n->rows * k) + 1, sizeof *n->score);
    n->to = pli_calloc((size_t)(n->rows * k) + 1, sizeof *n->to);
    n->raw = pli_calloc((size_t)(d * k) + 1, sizeof *n->raw);
    n->bias = pli_calloc((size_t)k, sizeof *n->bias);
    bool ok = n->begin != NULL && n->score != NULL && n->to != NULL && n->raw != NULL && n->bias != NULL;
    for (int g = 0; ok && g < PLI_NEWTON_GROUPS; g++) ok = make_group(&n->group[g], rows, k, curved);
    return ok ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for the curvature of %lld weights",
                                    (long long)(rows * k));
}

void pli_newton_rows_free(pli_newton_rows **rows) {
    pli_newton_rows *n = *rows;
    *rows = NULL;
    if (n == NULL) return;
    for (int g = 0; g < PLI_NEWTON_GROUPS; g++) {
        pli_free(n->group[g].model.h);
        pli_free(n->group[g].model.r);
        pli_free(n->group[g].bias);
        pli_free(n->group[g].slope);
        pli_free(n->group[g].x);
        pli_free(n->group[g].y);
        pli_free(n->group[g].curve);
    }
    pli_free(n->begin);
    pli_free(n->score);
    pli_free(n->to);
    pli_free(n->raw);
    pli_free(n->bias);
    pli_free(n);
}

double *pli_newton_scores(pli_newton_rows *n, int64_t *rows_out) {
    *rows_out = n->rows;
    return n->score;
}

/* --- a move ------------------------------------------------------------------------------------------------------- */

/* raw and bias := the point, in the data's units. */
static void to_data_units(pli_newton_rows *n, const double *point) {
    const int64_t    k = n->linear.goal.columns, d = n->linear.features;
    const pli_scale *scale = &pli_fit_of(n->run)->scale;
    memcpy(n->raw, point, (size_t)(d * k) * sizeof *n->raw);
    for (int64_t c = 0; c < k; c++) n->bias[c] = n->linear.intercept ? point[d * k + c] : 0;
    pli_scale_weights(scale, k, n->raw, n->bias);
}

static void score_group(void *user, int64_t i, int32_t thread) {
    pli_newton_rows  *n = user;
    const pli_weights weights = { .f64 = n->raw, .bias = n->bias };
    const int64_t     k = n->linear.goal.columns;
    (void)thread;
    n->group[i].farthest = 0;
    for (int32_t p = pli_newton_first(n, i); p < pli_newton_first(n, i + 1); p++) {
        const pli_part  *part = &n->batch->part[p];
        const pli_block *block = part->block;
        for (int64_t j = 0; j < part->rows; j++) {
            const int64_t r = pli_newton_row(part, j), at = block->row_start[r], own = (n->begin[p] + j) * k;
            pli_linear_score(&n->linear, &weights, n->linear.features, block->row_start[r + 1] - at, block->col + at,
                             block->value != NULL ? block->value + at : NULL, n->to + own);
            for (int64_t c = 0; c < k; c++)
                n->group[i].farthest = fmax(n->group[i].farthest, fabs(n->to[own + c] - n->score[own + c]));
        }
    }
}

void pli_newton_score(pli_newton_rows *n, const pli_batch *batch, const double *point) {
    n->batch = batch;
    to_data_units(n, point);
    pli_pool_for(n->run->pool, PLI_NEWTON_GROUPS, score_group, n);
}

plait_status pli_newton_move(pli_newton_rows *n, const pli_batch *batch, double reach, const double *to, double *at,
                             bool *whole_out) {
    const int64_t k = n->linear.goal.columns, values = (n->linear.features + n->linear.intercept) * k;
    double        farthest = 0;
    pli_newton_score(n, batch, to);
    for (int g = 0; g < PLI_NEWTON_GROUPS; g++) farthest = fmax(farthest, n->group[g].farthest);
    const double share = reach > 0 && farthest > reach ? reach / farthest : 1;
    for (int64_t i = 0; i < values; i++) at[i] = share == 1 ? to[i] : at[i] + share * (to[i] - at[i]);
    for (int64_t i = 0; i < n->rows * k; i++)
        n->score[i] = share == 1 ? n->to[i] : n->score[i] + share * (n->to[i] - n->score[i]);
    *whole_out = share == 1;
    return PLAIT_OK;
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

/* x := the row as training sees it, with the intercept's 1. */
static void spread(const pli_newton_rows *n, const pli_block *block, int64_t r, double *x) {
    const pli_scale *scale = &pli_fit_of(n->run)->scale;
    const int64_t    d = n->linear.features;
    for (int64_t j = 0; j < d; j++) x[j] = -scale->centre[j] * scale->factor[j];
    for (int64_t e = block->row_start[r]; e < block->row_start[r + 1]; e++)
        x[block->col[e]] += scale->factor[block->col[e]] * (block->value != NULL ? (double)block->value[e] : 1.0);
    if (n->linear.intercept) x[d] = 1;
}

/* Adds x x' curvature of m rows in g->x, with their curvatures in g->curve. */
static void add_chunk(pli_newton_group *g, int64_t m) {
    const int64_t rows = g->model.rows, k = g->model.columns;
    double       *h = g->model.h;
    for (int64_t c = 0; c < k; c++)
        for (int64_t d = c; d < k; d++, h += rows * rows) {
            for (int64_t i = 0; i < m; i++) {
                const double curve = g->curve[(i * k + c) * k + d];
                for (int64_t j = 0; j < rows; j++) g->y[i * rows + j] = curve * g->x[i * rows + j];
            }
            pli_gemm_f64(true, false, rows, rows, m, g->x, rows, g->y, rows, 1, h, rows);
        }
}

/* The same for one sparse row, with its curvature [columns, columns]. */
static void add_sparse(pli_newton_rows *n, pli_newton_group *g, const pli_block *block, int64_t r,
                       const double *curve) {
    const double *factor = pli_fit_of(n->run)->scale.factor;
    const int64_t rows = g->model.rows, k = g->model.columns, first = block->row_start[r];
    const int64_t entries = block->row_start[r + 1] - first, all = entries + n->linear.intercept;
    double       *h = g->model.h;
    for (int64_t c = 0; c < k; c++)
        for (int64_t d = c; d < k; d++, h += rows * rows)
            for (int64_t a = 0; a < all; a++) {
                const int64_t j = a < entries ? (int64_t)block->col[first + a] : n->linear.features;
                double        x = a < entries && block->value != NULL ? (double)block->value[first + a] : 1.0;
                if (a < entries && factor != NULL) x *= factor[j];
                x *= curve[c * k + d];
                for (int64_t b = 0; b < all; b++) {
                    const int64_t l = b < entries ? (int64_t)block->col[first + b] : n->linear.features;
                    double        z = b < entries && block->value != NULL ? (double)block->value[first + b] : 1.0;
                    if (b < entries && factor != NULL) z *= factor[l];
                    h[j * rows + l] += x * z;
                }
            }
}

void pli_newton_add_slope(pli_newton_group *g, const pli_block *block, int64_t r, int64_t k, const double *slope) {
    for (int64_t e = block->row_start[r]; e < block->row_start[r + 1]; e++) {
        const double x = block->value != NULL ? (double)block->value[e] : 1.0;
        for (int64_t c = 0; c < k; c++) g->model.r[(int64_t)block->col[e] * k + c] += x * slope[c];
    }
    for (int64_t c = 0; c < k; c++) g->bias[c] += slope[c];
}

/* One row: adds its loss, its slope, and, if it is one of those, its curvature. Returns the rows that wait in g->x. */
static int64_t add_row(pli_newton_rows *n, pli_newton_group *g, const pli_block *block, int64_t r, int64_t number,
                       int64_t waiting, double *slope) {
    const pli_goal *goal = &n->linear.goal;
    const int64_t   k = goal->columns;
    const double   *score = n->score + number * k;
    double          y, weight, *curve = n->curved ? g->curve + waiting * k * k : NULL;
    if (!pli_goal_target(goal, block->label[r], &y, &weight)) return waiting;
    if (block->weight != NULL) weight *= (double)block->weight[r];
    pli_goal_cost(goal, k, score, y, weight, slope, &g->sums);
    g->sums.weight += weight;
    g->sums.rows++;
    for (int64_t c = 0; c < k; c++) slope[c] *= weight;
    pli_newton_add_slope(g, block, r, k, slope);
    if (!n->curved) return waiting;
    goal->loss->second(goal->parameter, k, score, y, curve);
    for (int64_t i = 0; i < k * k; i++) curve[i] *= weight;
    if (!is_dense(n)) {
        add_sparse(n, g, block, r, curve);
        return waiting;
    }
    spread(n, block, r, g->x + waiting * g->model.rows);
    if (waiting + 1 < PLI_NEWTON_CHUNK) return waiting + 1;
    add_chunk(g, PLI_NEWTON_CHUNK);
    return 0;
}

static void model_group(void *user, int64_t i, int32_t thread) {
    pli_newton_rows *n = user;
    pli_newton_group *g = &n->group[i];
    const int64_t    k = g->model.columns;
    int64_t          waiting = 0;
    (void)thread;
    if (n->curved) memset(g->model.h, 0, (size_t)pli_quadratic_values(&g->model) * sizeof(double));
    memset(g->model.r, 0, (size_t)(g->model.rows * k) * sizeof(double));
    memset(g->bias, 0, (size_t)k * sizeof(double));
    g->sums = (pli_sums){ 0 };
    for (int32_t p = pli_newton_first(n, i); p < pli_newton_first(n, i + 1); p++)
        for (int64_t j = 0; j < n->batch->part[p].rows; j++) {
            const pli_part *part = &n->batch->part[p];
            waiting = add_row(n, g, part->block, pli_newton_row(part, j), n->begin[p] + j, waiting, g->slope);
        }
    if (waiting > 0) add_chunk(g, waiting);
}

/* H times the point, added to r. */
static void add_product(const pli_quadratic *q, const double *at, double *r) {
    const int64_t rows = q->rows, k = q->columns;
    const double *h = q->h;
    for (int64_t c = 0; c < k; c++)
        for (int64_t d = c; d < k; d++, h += rows * rows)
            for (int64_t j = 0; j < rows; j++)
                for (int64_t l = 0; l < rows; l++) {
                    r[j * k + c] += h[j * rows + l] * at[l * k + d];
                    if (c != d) r[l * k + d] += h[j * rows + l] * at[j * k + c];
                }
}

void pli_newton_add_groups(pli_newton_rows *n, double *h, double *slope, pli_sums *sums_out) {
    const pli_quadratic *of = &n->group[0].model;
    const int64_t        k = of->columns, d = n->linear.features;
    const double         share = 1 / (double)n->run->train_rows;
    *sums_out = (pli_sums){ 0 };
    memset(slope, 0, (size_t)(of->rows * k) * sizeof *slope);
    if (h != NULL) memset(h, 0, (size_t)pli_quadratic_values(of) * sizeof *h);
    for (int i = 0; i < PLI_NEWTON_GROUPS; i++) {
        pli_newton_group *g = &n->group[i];
        pli_scale_gradient(&pli_fit_of(n->run)->scale, k, g->model.r, g->bias);
        for (int64_t c = 0; c < k && n->linear.intercept; c++) g->model.r[d * k + c] = g->bias[c];
        for (int64_t j = 0; h != NULL && j < pli_quadratic_values(of); j++) h[j] += share * g->model.h[j];
        for (int64_t j = 0; j < of->rows * k; j++) slope[j] += share * g->model.r[j];
        pli_sums_add(sums_out, &g->sums);
    }
}

plait_status pli_newton_model(pli_newton_rows *n, const pli_batch *batch, const double *at, pli_quadratic *model,
                              pli_sums *sums_out) {
    n->batch = batch;
    n->linear.goal = pli_linear_fit_of(n->run)->linear.goal;
    pli_pool_for(n->run->pool, PLI_NEWTON_GROUPS, model_group, n);
    pli_newton_add_groups(n, model->h, model->r, sums_out);
    for (int64_t i = 0; i < model->rows * model->columns; i++) model->r[i] = -model->r[i];
    add_product(model, at, model->r);
    return PLAIT_OK;
}

void pli_newton_slope(pli_newton_rows *n, const pli_batch *batch, double *slope, pli_sums *sums_out) {
    n->batch = batch;
    pli_pool_for(n->run->pool, PLI_NEWTON_GROUPS, model_group, n);
    pli_newton_add_groups(n, NULL, slope, sums_out);
}

/* --- a diagonal --------------------------------------------------------------------------------------------------- */

void pli_newton_diagonal(const pli_newton_rows *n, const pli_batch *batch, double *diagonal) {
    const pli_linear *linear = &n->linear;
    const pli_scale  *scale = &pli_fit_of(n->run)->scale;
    const int64_t     k = linear->goal.columns, d = linear->features;
    const double      share = linear->goal.loss->curvature / (double)n->run->train_rows;
    double            total = 0, y, weight;
    memset(diagonal, 0, (size_t)((d + linear->intercept) * k) * sizeof *diagonal);
    for (int32_t p = 0; p < batch->parts; p++)
        for (int64_t i = 0; i < batch->part[p].rows; i++) {
            const pli_block *block = batch->part[p].block;
            const int64_t    r = pli_newton_row(&batch->part[p], i);
            if (!pli_goal_target(&linear->goal, block->label[r], &y, &weight)) continue;
            if (block->weight != NULL) weight *= (double)block->weight[r];
            total += weight;
            for (int64_t e = block->row_start[r]; scale->centre == NULL && e < block->row_start[r + 1]; e++) {
                double x = block->value != NULL ? (double)block->value[e] : 1.0;
                if (scale->factor != NULL) x *= scale->factor[block->col[e]];
                diagonal[(int64_t)block->col[e] * k] += share * weight * x * x;
            }
        }
    for (int64_t j = 0; j < d + linear->intercept; j++) { /* a centred column has unit variance */
        const bool whole = j == d || (scale->centre != NULL && scale->factor[j] > 0);
        const double floor = 1e-3 * share * total / (double)n->run->train_rows;
        const double found = (whole ? share * total : diagonal[j * k]) + floor;
        for (int64_t c = 0; c < k; c++) diagonal[j * k + c] = found;
    }
}
