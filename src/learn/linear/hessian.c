/* The Hessian of a linear model's losses, one block for each score: block c is the sum over rows of bend_c xt x, where
 * bend_c is the second derivative of the row's loss by score c. What softmax has between two scores is left out
 * (Böhning, "Multinomial logistic regression algorithm", 1992, bounds the whole instead).
 *
 * Rows with few entries add their pairs of entries; others go through the Gram kernels of tensor/. Columns are seen as
 * training sees them (supervised/scale.h), so nothing cancels where a column's mean is far larger than its spread. */
#include "learn/linear/hessian.h"

#include <string.h>

#include "tensor/spectral/gram.h"

enum { CHUNK = 512, PARTS_A_GROUP = 16 };

/* A group's sums for one block: gram [d, d] on and right of the diagonal, sum [d], mass. */
typedef struct group {
    double   *sums;           /* [blocks, d d + d + 1] */
    double   *score, *second; /* [CHUNK, K], [K, K] */
    float    *weight;         /* [blocks, rows of a block of data] */
    void     *scratch;
    uint32_t *order; /* [CHUNK] */
} group;

typedef struct hessian_run {
    const pli_hessian *to;
    const pli_weights *weights;
    const pli_batch   *batch;
    group              group[PLI_HESSIAN_GROUPS];
    int64_t            groups, rows_max, size;
    bool               by_pairs;
} hessian_run;

/* --- rows ------------------------------------------------------------------------------------------------------- */

/* Computes what the rows weigh in each block; a single block takes the mean over the scores. */
static void weigh(const hessian_run *run, const group *at, const pli_csr *x, const pli_block *block, pli_rows rows) {
    const pli_linear *linear = run->to->linear;
    const pli_loss   *loss = linear->goal.loss;
    const int64_t     k = linear->goal.columns, blocks = run->to->blocks;
    pli_kernels_get()->csr_dot_f64(x, rows, k, run->weights->f64, at->score);
    for (int64_t i = 0; i < rows.n; i++) {
        const uint32_t r = rows.order[rows.first + i];
        double        *score = at->score + i * k, y, weight, all = 0;
        for (int64_t b = 0; b < blocks; b++) at->weight[b * run->rows_max + r] = 0;
        if (!pli_linear_weigh(linear, block, r, &y, &weight)) continue;
        for (int64_t c = 0; c < k; c++) score[c] += run->weights->bias[c];
        loss->second(linear->goal.parameter, k, score, y, at->second);
        for (int64_t c = 0; c < k; c++) {
            const double bend = at->second[c * k + c];
            all += bend;
            if (blocks > 1) at->weight[c * run->rows_max + r] = (float)(weight * bend);
        }
        if (blocks == 1) at->weight[r] = (float)(weight * all / (double)k);
    }
}

static bool is_increasing(int64_t n, const uint32_t *col) {
    bool is = true;
    for (int64_t e = 1; e < n; e++) is = is && col[e - 1] < col[e];
    return is;
}

/* Adds w x xt of a row whose columns increase: all pairs lie on or right of the diagonal. */
static void add_sorted_pairs(int64_t n, const uint32_t *col, const float *value, double w, int64_t d, double *sums) {
    for (int64_t e = 0; e < n; e++) {
        const double v = value != NULL ? w * (double)value[e] : w;
        double      *to = sums + col[e] * d;
        sums[d * d + col[e]] += v;
        if (value == NULL)
            for (int64_t o = e; o < n; o++) to[col[o]] += v;
        else
            for (int64_t o = e; o < n; o++) to[col[o]] += v * (double)value[o];
    }
}

static void add_any_pairs(int64_t n, const uint32_t *col, const float *value, double w, int64_t d, double *sums) {
    for (int64_t e = 0; e < n; e++) {
        const double v = value != NULL ? w * (double)value[e] : w;
        sums[d * d + col[e]] += v;
        for (int64_t o = e; o < n; o++) {
            const int64_t low = col[e] < col[o] ? col[e] : col[o], high = col[e] < col[o] ? col[o] : col[e];
            sums[low * d + high] += value != NULL ? v * (double)value[o] : v;
        }
    }
}

static void add_pairs(const pli_csr *x, pli_rows rows, int64_t d, const float *weight, double *sums) {
    for (int64_t i = 0; i < rows.n; i++) {
        const uint32_t r = rows.order[rows.first + i];
        const int64_t  at = x->row_start[r], n = x->row_start[r + 1] - at;
        const float   *value = x->value != NULL ? x->value + at : NULL;
        const double   w = (double)weight[r];
        if (w == 0) continue;
        sums[d * d + d] += w;
        (is_increasing(n, x->col + at) ? add_sorted_pairs : add_any_pairs)(n, x->col + at, value, w, d, sums);
    }
}

static void add_rows(const hessian_run *run, const group *at, const pli_block *block, pli_rows rows) {
    const pli_hessian *to = run->to;
    const int64_t      d = to->linear->features;
    const pli_csr      x = { block->rows, block->row_start, block->col, block->value, block->packed };
    weigh(run, at, &x, block, rows);
    for (int64_t b = 0; b < to->blocks; b++) {
        double      *sums = at->sums + b * run->size;
        const float *weight = at->weight + b * run->rows_max;
        if (run->by_pairs) {
            add_pairs(&x, rows, d, weight, sums);
            continue;
        }
        pli_gram gram = { .d = d,
                          .shift = to->scale->centre,
                          .gram = sums,
                          .sum = sums + d * d,
                          .scratch = at->scratch };
        pli_gram_csr(NULL, &gram, &x, rows, weight);
        sums[d * d + d] += gram.mass;
    }
}

static void add_group(void *user, int64_t g, int32_t thread) {
    const hessian_run *run = user;
    const group       *at = &run->group[g];
    (void)thread;
    /* Writing first gives each page at once. If a page of calloc's is read first, it becomes the system's page of
     * zeros, and the first write must then take that away from all cores. */
    memset(at->sums, 0, (size_t)(run->to->blocks * run->size) * sizeof *at->sums);
    for (int64_t p = 0; p < run->batch->parts; p++) {
        const pli_part *part = &run->batch->part[p];
        if (p * run->groups / run->batch->parts != g) continue;
        for (int64_t i = 0; i < part->rows;) {
            int64_t n = 0;
            for (; n < CHUNK && i < part->rows; i++, n++)
                at->order[n] = part->order != NULL ? part->order[i] : (uint32_t)(part->first + i);
            add_rows(run, at, part->block, (pli_rows){ at->order, 0, n });
        }
    }
}

/* --- memory ----------------------------------------------------------------------------------------------------- */

static void free_groups(hessian_run *run) {
    for (int64_t g = 0; g < run->groups; g++) {
        pli_free(run->group[g].sums);
        pli_free(run->group[g].score);
        pli_free(run->group[g].second);
        pli_free(run->group[g].weight);
        pli_free(run->group[g].scratch);
        pli_free(run->group[g].order);
    }
}

static bool make_groups(hessian_run *run) {
    const pli_hessian *to = run->to;
    const size_t       k = (size_t)to->linear->goal.columns, blocks = (size_t)to->blocks;
    bool               ok = true;
    for (int64_t g = 0; g < run->groups; g++) {
        group *at = &run->group[g];
        *at = (group){ .sums = pli_array(blocks, (size_t)run->size * sizeof(double)),
                       .score = pli_calloc(k, CHUNK * sizeof(double)),
                       .second = pli_calloc(k, k * sizeof(double)),
                       .weight = pli_calloc(blocks, (size_t)run->rows_max * sizeof(float)),
                       .scratch = pli_calloc(1, pli_gram_scratch_bytes(to->linear->features)),
                       .order = pli_calloc(CHUNK, sizeof(uint32_t)) };
        ok = ok && at->sums != NULL && at->score != NULL && at->second != NULL && at->weight != NULL &&
             at->scratch != NULL && at->order != NULL;
    }
    return ok;
}

/* --- the sum ---------------------------------------------------------------------------------------------------- */

/* Writes block b, in training's units and times `share`, to out [m, m]. */
static void write_block(const hessian_run *run, int64_t b, double *out) {
    const pli_hessian *to = run->to;
    const double      *factor = to->scale->factor;
    const int64_t      d = to->linear->features, m = d + to->linear->intercept;
    memset(out, 0, (size_t)(m * m) * sizeof *out);
    for (int64_t g = 0; g < run->groups; g++) {
        const double *sums = run->group[g].sums + b * run->size;
        for (int64_t i = 0; i < d; i++) {
            const double fi = (factor != NULL ? factor[i] : 1) * to->share;
            for (int64_t j = i; j < d; j++) out[i * m + j] += fi * (factor != NULL ? factor[j] : 1) * sums[i * d + j];
            if (m > d) out[i * m + d] += fi * sums[d * d + i];
        }
        if (m > d) out[d * m + d] += to->share * sums[d * d + d];
    }
}

/* Groups follow from the worker's parts of the data, never from its threads: fewer for large sums, and for a worker
 * that has few parts, since each group costs as much memory and adding as the result. */
static int64_t groups_for(const hessian_run *run) {
    const int64_t most = (double)run->to->blocks * (double)run->size <= 1 << 18 ? PLI_HESSIAN_GROUPS : 2;
    const int64_t by_parts = run->batch->parts / PARTS_A_GROUP > 1 ? run->batch->parts / PARTS_A_GROUP : 1;
    return by_parts < most ? by_parts : most;
}

plait_status pli_hessian_add_up(const pli_hessian *to, const pli_weights *weights, const pli_batch *batch, double *out,
                                plait_error *err) {
    const int64_t d = to->linear->features, m = d + to->linear->intercept;
    hessian_run   run = { .to = to, .weights = weights, .batch = batch, .size = d * d + d + 1, .rows_max = 1 };
    run.by_pairs = to->scale->centre == NULL && 64 * to->entries_per_row * to->entries_per_row < (double)(d * d);
    run.groups = groups_for(&run);
    for (int64_t p = 0; p < batch->parts; p++)
        if (batch->part[p].block->rows > run.rows_max) run.rows_max = batch->part[p].block->rows;
    plait_status status = PLAIT_OK;
    if (!make_groups(&run))
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for the Hessian of %lld weights",
                          (long long)(m * to->linear->goal.columns));
    if (status == PLAIT_OK) {
        pli_pool_for(to->pool, run.groups, add_group, &run);
        for (int64_t b = 0; b < to->blocks; b++) write_block(&run, b, out + b * m * m);
    }
    free_groups(&run);
    return status;
}
