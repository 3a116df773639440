/* Computes scores, losses and gradients of rows, and the gradient of a batch by groups of blocks. */
#include "learn/linear/linear.h"

#include <math.h>
#include <string.h>

#include "tensor/tensor.h"

/* --- one row ----------------------------------------------------------------------------------------- */

/* Keeps two sums, so that one addition need not wait for the other; their order is fixed. */
static double dot_f32(int64_t n, const uint32_t *index, const float *value, const float *w) {
    double  a = 0, b = 0;
    int64_t e = 0;
    if (value == NULL) {
        for (; e + 1 < n; e += 2) {
            a += (double)w[index[e]];
            b += (double)w[index[e + 1]];
        }
        return e < n ? a + b + (double)w[index[e]] : a + b;
    }
    for (; e + 1 < n; e += 2) {
        a += (double)value[e] * (double)w[index[e]];
        b += (double)value[e + 1] * (double)w[index[e + 1]];
    }
    return e < n ? a + b + (double)value[e] * (double)w[index[e]] : a + b;
}

static double dot_f64(int64_t n, const uint32_t *index, const float *value, const double *w) {
    double sum = 0;
    if (value == NULL)
        for (int64_t e = 0; e < n; e++) sum += w[index[e]];
    else
        for (int64_t e = 0; e < n; e++) sum += (double)value[e] * w[index[e]];
    return sum;
}

static void scores_f32(int64_t n, const uint32_t *index, const float *value, const float *w, int64_t k, double *score) {
    for (int64_t e = 0; e < n; e++) {
        double       x = value != NULL ? (double)value[e] : 1.0;
        const float *row = w + (int64_t)index[e] * k;
        for (int64_t c = 0; c < k; c++) score[c] += x * (double)row[c];
    }
}

static void scores_f64(int64_t n, const uint32_t *index, const float *value, const double *w, int64_t k,
                       double *score) {
    for (int64_t e = 0; e < n; e++) {
        double        x = value != NULL ? (double)value[e] : 1.0;
        const double *row = w + (int64_t)index[e] * k;
        for (int64_t c = 0; c < k; c++) score[c] += x * row[c];
    }
}

static void score_row(int64_t k, const pli_weights *weights, int64_t n, const uint32_t *index, const float *value,
                      double *score) {
    for (int64_t c = 0; c < k; c++) score[c] = weights->bias[c];
    if (k == 1)
        score[0] +=
            weights->f32 != NULL ? dot_f32(n, index, value, weights->f32) : dot_f64(n, index, value, weights->f64);
    else if (weights->f32 != NULL) scores_f32(n, index, value, weights->f32, k, score);
    else scores_f64(n, index, value, weights->f64, k, score);
}

void pli_linear_score(const pli_linear *linear, const pli_weights *weights, int64_t limit, int64_t n,
                      const uint32_t *index, const float *value, double *score) {
    int64_t known = 0;
    while (known < n && (int64_t)index[known] < limit) known++;
    score_row(linear->goal.columns, weights, known, index, value, score);
    for (int64_t e = known + 1; e < n; e++) { /* columns may be in no order */
        if ((int64_t)index[e] >= limit) continue;
        double x = value != NULL ? (double)value[e] : 1.0;
        for (int64_t c = 0; c < linear->goal.columns; c++) {
            int64_t at = (int64_t)index[e] * linear->goal.columns + c;
            score[c] += x * (weights->f32 != NULL ? (double)weights->f32[at] : weights->f64[at]);
        }
    }
}

/* g[index] += slope * x, for each entry. */
static void scatter(int64_t n, const uint32_t *index, const float *value, int64_t k, const double *slope, double *g) {
    if (k == 1) {
        double s = slope[0];
        if (value == NULL)
            for (int64_t e = 0; e < n; e++) g[index[e]] += s;
        else
            for (int64_t e = 0; e < n; e++) g[index[e]] += s * (double)value[e];
        return;
    }
    for (int64_t e = 0; e < n; e++) {
        double  x = value != NULL ? (double)value[e] : 1.0;
        double *row = g + (int64_t)index[e] * k;
        for (int64_t c = 0; c < k; c++) row[c] += x * slope[c];
    }
}

bool pli_linear_weigh(const pli_linear *linear, const pli_block *block, int64_t r, double *y_out, double *weight_out) {
    if (!pli_goal_target(&linear->goal, block->label[r], y_out, weight_out)) return false;
    if (block->weight != NULL) *weight_out *= (double)block->weight[r];
    return true;
}

static int64_t row_at(const pli_part *part, int64_t i) {
    return part->order != NULL ? (int64_t)part->order[i] : part->first + i;
}

/* The size of a chunk of rows: its entries, and their weights, stay in the cache between score and gradient. */
enum { CHUNK_ROWS = 128, CHUNK_ENTRIES = 1 << 14 };

/* Scores from which on the kernels for several columns pay. */
enum { WIDE = 8 };

/* The end of the chunk that begins with row i of the part. */
static int64_t chunk_end(const pli_part *part, int64_t i) {
    const int64_t *start = part->block->row_start;
    int64_t        entries = 0, end = i;
    while (end < part->rows && end - i < CHUNK_ROWS) {
        int64_t r = row_at(part, end++);
        entries += start[r + 1] - start[r];
        if (entries >= CHUNK_ENTRIES) break;
    }
    return end;
}

/* A chunk's rows, one score each. */
typedef struct chunk {
    double score[CHUNK_ROWS], y[CHUNK_ROWS], weight[CHUNK_ROWS], loss[CHUNK_ROWS], slope[CHUNK_ROWS];
    bool   counts[CHUNK_ROWS]; /* the row has a target */
} chunk;

/* Finds the targets of rows i .. i + n - 1 of the part, and their losses and slopes. */
static void judge_chunk(const pli_linear *linear, const pli_part *part, int64_t i, int64_t n, double bias, chunk *c) {
    const pli_loss *loss = linear->goal.loss;
    for (int64_t j = 0; j < n; j++) {
        c->counts[j] = pli_linear_weigh(linear, part->block, row_at(part, i + j), &c->y[j], &c->weight[j]);
        if (!c->counts[j]) c->y[j] = 1;
        c->score[j] = c->counts[j] ? c->score[j] + bias : 0;
    }
    if (loss->many != NULL) {
        loss->many(n, c->score, c->y, c->loss, c->slope);
        return;
    }
    for (int64_t j = 0; j < n; j++)
        if (c->counts[j]) c->loss[j] = loss->at(linear->goal.parameter, 1, &c->score[j], c->y[j], &c->slope[j]);
}

/* For one score a row, and columns as in the block. */
static void gradient_by_chunks(const pli_linear *linear, const pli_weights *weights, const pli_part *part,
                               const pli_slopes *g, pli_sums *own) {
    const pli_block   *block = part->block;
    const pli_kernels *kernels = pli_kernels_get();
    pli_csr            x = { block->rows, block->row_start, block->col, block->value, block->packed };
    const pli_goal    *goal = &linear->goal;
    chunk              c;
    float              narrow[CHUNK_ROWS];
    for (int64_t i = 0, end; i < part->rows; i = end) {
        end = chunk_end(part, i);
        pli_rows rows = { part->order, part->order != NULL ? i : part->first + i, end - i };
        if (weights->f32 != NULL) kernels->csr_dot_f32(&x, rows, 1, weights->f32, c.score);
        else kernels->csr_dot_f64(&x, rows, 1, weights->f64, c.score);
        judge_chunk(linear, part, i, rows.n, weights->bias[0], &c);
        for (int64_t n = 0; n < rows.n; n++) {
            if (!c.counts[n]) {
                c.slope[n] = 0;
                continue;
            }
            own->loss += c.weight[n] * c.loss[n];
            if (goal->loss->excess != NULL)
                own->absolute += c.weight[n] * goal->loss->excess(goal->parameter, 1, &c.score[n], c.y[n]);
            g->bias[0] += c.slope[n] *= c.weight[n];
            own->weight += c.weight[n];
            own->rows++;
        }
        for (int64_t n = 0; g->f32 != NULL && n < rows.n; n++) narrow[n] = (float)c.slope[n];
        if (g->f32 != NULL) kernels->csr_t_axpy_f32(&x, rows, 1, narrow, g->f32);
        else kernels->csr_t_axpy_f64(&x, rows, 1, c.slope, g->f64);
    }
}

/* For many scores a row, and columns as in the block: the kernels take a row's scores at once. */
static void gradient_by_scores(const pli_linear *linear, const pli_weights *weights, const pli_part *part,
                               const pli_slopes *g, pli_sums *own, double *scratch) {
    const pli_block   *block = part->block;
    const pli_kernels *kernels = pli_kernels_get();
    const pli_csr      x = { block->rows, block->row_start, block->col, block->value, block->packed };
    const int64_t      k = linear->goal.columns;
    double            *score = scratch, *slope = scratch + k;
    for (int64_t i = 0; i < part->rows; i++) {
        const pli_rows row = { NULL, row_at(part, i), 1 };
        double         y, weight;
        if (!pli_linear_weigh(linear, block, row.first, &y, &weight)) continue;
        if (weights->f32 != NULL) kernels->csr_dot_f32(&x, row, k, weights->f32, score);
        else kernels->csr_dot_f64(&x, row, k, weights->f64, score);
        for (int64_t c = 0; c < k; c++) score[c] += weights->bias[c];
        pli_goal_cost(&linear->goal, k, score, y, weight, slope, own);
        for (int64_t c = 0; c < k; c++) g->bias[c] += slope[c] *= weight;
        kernels->csr_t_axpy_f64(&x, row, k, slope, g->f64);
        own->weight += weight;
        own->rows++;
    }
}

static void gradient_by_rows(const pli_linear *linear, const pli_weights *weights, const pli_visit *rows,
                             const pli_slopes *g, pli_sums *own, double *scratch) {
    const pli_block *block = rows->part.block;
    const uint32_t  *local = rows->local;
    int64_t          k = linear->goal.columns;
    double          *score = scratch, *slope = scratch + k;
    for (int64_t i = 0; i < rows->part.rows; i++) {
        int64_t         r = row_at(&rows->part, i), at = block->row_start[r], n = block->row_start[r + 1] - at;
        const uint32_t *index = local != NULL ? local : block->col + at;
        const float    *value = block->value != NULL ? block->value + at : NULL;
        if (local != NULL) local += n;
        double y, weight;
        if (!pli_linear_weigh(linear, block, r, &y, &weight)) continue;
        score_row(k, weights, n, index, value, score);
        pli_goal_cost(&linear->goal, k, score, y, weight, slope, own);
        for (int64_t c = 0; c < k; c++) g->bias[c] += slope[c] *= weight;
        if (k > 1 || slope[0] != 0) scatter(n, index, value, k, slope, g->f64);
        own->weight += weight;
        own->rows++;
    }
}

void pli_linear_gradient(const pli_linear *linear, const pli_weights *weights, const pli_visit *rows,
                         const pli_slopes *g, pli_sums *sums, double *scratch) {
    pli_sums own = { 0 };
    if (linear->goal.columns == 1 && rows->local == NULL) gradient_by_chunks(linear, weights, &rows->part, g, &own);
    else if (linear->goal.columns >= WIDE && rows->local == NULL)
        gradient_by_scores(linear, weights, &rows->part, g, &own, scratch);
    else gradient_by_rows(linear, weights, rows, g, &own, scratch);
    pli_sums_add(sums, &own);
}

/* --- a batch ----------------------------------------------------------------------------------------- */

static plait_status reserve_groups(pli_gradient *gradient, plait_error *err) {
    const pli_linear *linear = gradient->linear;
    size_t            n = (size_t)gradient->own_groups;
    gradient->stride = (linear->goal.columns + 7) / 8 * 8; /* so no two threads write to one cache line */
    gradient->bias = pli_calloc(n * (size_t)gradient->stride, sizeof(double));
    gradient->scratch = pli_calloc(n * (size_t)gradient->stride, 2 * sizeof(double));
    gradient->sums = pli_calloc(n, sizeof *gradient->sums);
    if (gradient->bias != NULL && gradient->scratch != NULL && gradient->sums != NULL) return PLAIT_OK;
    pli_gradient_destroy(gradient);
    return pli_fail(err, PLAIT_ENOMEM, "no memory for gradients of %lld columns", (long long)linear->goal.columns);
}

plait_status pli_gradient_init(pli_gradient *gradient, const pli_linear *linear, pli_pool *pool,
                               const pli_dataset *data, bool any, int32_t groups, plait_error *err) {
    int32_t blocks = pli_dataset_blocks(data), first = any ? 0 : pli_dataset_first_block(data);
    int32_t own = any ? blocks : pli_dataset_own_blocks(data), last = own > 0 ? first + own - 1 : first;
    *gradient = (pli_gradient){ .linear = linear, .pool = pool, .blocks = blocks, .groups = groups };
    gradient->first_group = (int32_t)((int64_t)first * groups / blocks);
    if (gradient->first_group >= groups) gradient->first_group = groups - 1;
    gradient->own_groups = own > 0 ? (int32_t)((int64_t)last * groups / blocks) - gradient->first_group + 1 : 1;
    return reserve_groups(gradient, err);
}

plait_status pli_gradient_init_apart(pli_gradient *gradient, const pli_linear *linear, pli_pool *pool,
                                     plait_error *err) {
    *gradient = (pli_gradient){ .linear = linear, .pool = pool, .own_groups = pli_pool_threads(pool) };
    return reserve_groups(gradient, err);
}

void pli_gradient_destroy(pli_gradient *gradient) {
    pli_free(gradient->sum);
    pli_free(gradient->narrow);
    pli_free(gradient->bias);
    pli_free(gradient->scratch);
    pli_free(gradient->sums);
    *gradient = (pli_gradient){ 0 };
}

void pli_gradient_narrow(pli_gradient *gradient) { gradient->is_narrow = true; }

void pli_gradient_rest(pli_gradient *gradient) {
    pli_free(gradient->sum);
    pli_free(gradient->narrow);
    gradient->sum = NULL;
    gradient->narrow = NULL;
    gradient->capacity = 0;
}

/* The total is in the first group's sums: frees the other groups' memory for the push that follows. */
static void keep_total(pli_gradient *gradient) {
    float *narrow = pli_realloc(gradient->narrow, (size_t)gradient->size, sizeof *narrow);
    if (narrow == NULL) return;
    gradient->narrow = narrow;
    gradient->capacity = gradient->size;
}

typedef struct batch_run {
    pli_gradient      *gradient;
    const pli_weights *weights;
    const pli_batch   *batch;
    const uint32_t    *local;
    const int64_t     *local_start;
} batch_run;

/* The group of a part's block among the worker's own. */
static int64_t group_of(const pli_gradient *gradient, const pli_part *part) {
    return part->block->number * gradient->groups / gradient->blocks - gradient->first_group;
}

/* Sets a group's sums to 0. */
static pli_slopes clear_group(pli_gradient *gradient, int64_t own) {
    pli_slopes g = { .bias = gradient->bias + own * gradient->stride };
    if (gradient->is_narrow) g.f32 = gradient->narrow + own * gradient->size;
    else g.f64 = gradient->sum + own * gradient->size;
    if (g.f32 != NULL) memset(g.f32, 0, (size_t)gradient->size * sizeof *g.f32);
    if (g.f64 != NULL) memset(g.f64, 0, (size_t)gradient->size * sizeof *g.f64); /* neither: there are no features */
    memset(g.bias, 0, (size_t)gradient->linear->goal.columns * sizeof *g.bias);
    return g;
}

static void run_group(void *user, int64_t own, int32_t thread) {
    const batch_run *run = user;
    pli_gradient    *gradient = run->gradient;
    pli_slopes       g = clear_group(gradient, own);
    (void)thread;
    gradient->sums[own] = (pli_sums){ 0 };
    for (int32_t p = 0; p < run->batch->parts; p++) {
        const pli_part *part = &run->batch->part[p];
        if (part->rows == 0 || group_of(gradient, part) != own) continue;
        pli_visit rows = { *part, run->local != NULL ? run->local + run->local_start[p] : NULL };
        pli_linear_gradient(gradient->linear, run->weights, &rows, &g, &gradient->sums[own],
                            gradient->scratch + 2 * own * gradient->stride);
    }
}

enum { SLICE = 4096 };

static void add_slice(void *user, int64_t slice, int32_t thread) {
    pli_gradient *gradient = user;
    int64_t       first = slice * SLICE, last = first + SLICE < gradient->size ? first + SLICE : gradient->size;
    (void)thread;
    for (int32_t group = 1; group < gradient->own_groups; group++) {
        if (gradient->is_narrow) {
            const float *other = gradient->narrow + group * gradient->size;
            for (int64_t j = first; j < last; j++) gradient->narrow[j] += other[j];
        } else {
            const double *other = gradient->sum + group * gradient->size;
            for (int64_t j = first; j < last; j++) gradient->sum[j] += other[j];
        }
    }
}

static void squares_of_part(const pli_linear *linear, const pli_part *part, const pli_slopes *g) {
    const pli_block *block = part->block;
    int64_t          k = linear->goal.columns;
    for (int64_t i = 0; i < part->rows; i++) {
        int64_t r = row_at(part, i);
        double  y, weight;
        if (!pli_linear_weigh(linear, block, r, &y, &weight)) continue;
        g->bias[0] += weight;
        for (int64_t e = block->row_start[r]; e < block->row_start[r + 1]; e++) {
            double   x = block->value != NULL ? (double)block->value[e] : 1.0;
            uint32_t j = block->packed != NULL ? pli_packed_at(block->packed, e) : block->col[e];
            if (g->f32 != NULL) g->f32[j] += (float)(weight * x * x);
            for (int64_t c = 0; g->f64 != NULL && c < k; c++) g->f64[j * k + c] += weight * x * x;
        }
    }
}

static void squares_group(void *user, int64_t own, int32_t thread) {
    const batch_run *run = user;
    pli_gradient    *gradient = run->gradient;
    pli_slopes       g = clear_group(gradient, own);
    (void)thread;
    for (int32_t p = 0; p < run->batch->parts; p++)
        if (run->batch->part[p].rows > 0 && group_of(gradient, &run->batch->part[p]) == own)
            squares_of_part(gradient->linear, &run->batch->part[p], &g);
}

static plait_status reserve(pli_gradient *gradient, int64_t rows, plait_error *err) {
    gradient->size = rows * gradient->linear->goal.columns;
    void **sum = gradient->is_narrow ? (void **)&gradient->narrow : (void **)&gradient->sum;
    size_t bytes = gradient->is_narrow ? sizeof(float) : sizeof(double);
    if (pli_grow(sum, &gradient->capacity, gradient->size * gradient->own_groups, bytes)) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "no memory for a gradient of %lld values in %d groups",
                    (long long)gradient->size, (int)gradient->own_groups);
}

/* Adds all groups to the first, in order. */
static void combine(pli_gradient *gradient, pli_pool *pool) {
    pli_pool_for(pool, (gradient->size + SLICE - 1) / SLICE, add_slice, gradient);
    for (int32_t group = 1; group < gradient->own_groups; group++)
        for (int64_t c = 0; c < gradient->linear->goal.columns; c++)
            gradient->bias[c] += gradient->bias[group * gradient->stride + c];
    if (gradient->is_narrow && gradient->own_groups > 1) keep_total(gradient);
}

typedef struct parts_run {
    batch_run run;
    int32_t   first;
} parts_run;

static void run_part(void *user, int64_t i, int32_t thread) {
    const parts_run *parts = user;
    const batch_run *run = &parts->run;
    pli_gradient    *gradient = run->gradient;
    pli_slopes       g = clear_group(gradient, i);
    int64_t          p = parts->first + i;
    const pli_visit  rows = { run->batch->part[p], run->local != NULL ? run->local + run->local_start[p] : NULL };
    (void)thread;
    gradient->sums[i] = (pli_sums){ 0 };
    if (rows.part.rows > 0)
        pli_linear_gradient(gradient->linear, run->weights, &rows, &g, &gradient->sums[i],
                            gradient->scratch + 2 * i * gradient->stride);
}

plait_status pli_gradient_run_apart(pli_gradient *gradient, const pli_weights *weights, int64_t rows,
                                    const pli_batch *batch, int32_t first, int32_t n, const uint32_t *local,
                                    const int64_t *local_start, plait_error *err) {
    PLI_TRY(reserve(gradient, rows, err));
    parts_run parts = { { gradient, weights, batch, local, local_start }, first };
    pli_pool_for(n > 1 ? gradient->pool : NULL, n, run_part, &parts);
    return PLAIT_OK;
}

plait_status pli_gradient_squares(pli_gradient *gradient, int64_t rows, const pli_batch *batch, plait_error *err) {
    PLI_TRY(reserve(gradient, rows, err));
    batch_run run = { .gradient = gradient, .batch = batch };
    pli_pool_for(gradient->pool, gradient->own_groups, squares_group, &run);
    combine(gradient, gradient->pool);
    return PLAIT_OK;
}

static void squares_of_one(void *user, int64_t i, int32_t thread) {
    const parts_run *parts = user;
    pli_gradient    *gradient = parts->run.gradient;
    pli_slopes       g = clear_group(gradient, i);
    (void)thread;
    squares_of_part(gradient->linear, &parts->run.batch->part[parts->first + i], &g);
}

plait_status pli_gradient_squares_apart(pli_gradient *gradient, int64_t rows, const pli_batch *batch, int32_t first,
                                        int32_t n, plait_error *err) {
    PLI_TRY(reserve(gradient, rows, err));
    parts_run parts = { { .gradient = gradient, .batch = batch }, first };
    pli_pool_for(n > 1 ? gradient->pool : NULL, n, squares_of_one, &parts);
    return PLAIT_OK;
}

plait_status pli_gradient_run(pli_gradient *gradient, const pli_weights *weights, int64_t rows, const pli_batch *batch,
                              const uint32_t *local, const int64_t *local_start, plait_error *err) {
    PLI_TRY(reserve(gradient, rows, err));
    batch_run run = { gradient, weights, batch, local, local_start };
    /* A small batch is not worth waking threads for. */
    int64_t   work = batch->rows * gradient->linear->goal.columns * 16 + gradient->size * gradient->own_groups;
    pli_pool *pool = work > 40000 ? gradient->pool : NULL;
    pli_pool_for(pool, gradient->own_groups, run_group, &run);
    combine(gradient, pool);
    for (int32_t group = 1; group < gradient->own_groups; group++)
        pli_sums_add(&gradient->sums[0], &gradient->sums[group]);
    return PLAIT_OK;
}
