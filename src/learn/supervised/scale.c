/* Measures columns; moves weights and gradients between the data's units and those of training. */
#include "learn/supervised/scale.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOMENT_VALUES_MAX = 1 << 24 }; /* of the per-block sums of all blocks: 128 MiB */

/* The moments of a column: how many values are given, their sum and their sum of squares, each value less a pivot, so
 * that the variance of large numbers stays exact. A row of weight 2 counts as two rows. Moments are taken for each
 * block, then added in the order of blocks, so they do not depend on who has which block. Behind those of all columns
 * stands the number of rows. */
enum { GIVEN, SUM, SQUARE, MOMENTS };

static double weight_of(const pli_block *block, int64_t row) {
    return block->weight != NULL ? (double)block->weight[row] : 1;
}

static void block_moments(const pli_block *block, const double *pivot, bool (*skip)(void *user, int64_t row),
                          void *user, double *moment, double *rows) {
    for (int64_t r = 0; r < block->rows; r++) {
        const double weight = weight_of(block, r);
        if (skip != NULL && skip(user, block->first_row + r)) continue;
        *rows += weight;
        for (int64_t e = block->row_start[r]; e < block->row_start[r + 1]; e++) {
            double  x = (block->value != NULL ? (double)block->value[e] : 1.0) - pivot[block->col[e]];
            double *m = moment + (int64_t)block->col[e] * MOMENTS;
            m[GIVEN] += weight;
            m[SUM] += weight * x;
            m[SQUARE] += weight * x * x;
        }
    }
}

/* Computes moment [d, MOMENTS], and the number of rows behind them, of all rows of all workers. */
static plait_status moments(plait_comm *comm, const pli_scale_rows *rows, int64_t d, const double *pivot,
                            double *moment, plait_error *err) {
    int64_t blocks = rows->blocks, n = d * MOMENTS + 1;
    double *part = pli_calloc((size_t)(blocks * n), sizeof *part);
    if (part == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the moments of %lld columns", (long long)d);
    for (int32_t b = 0; b < rows->own; b++) {
        double *own = part + rows->block[b]->number * n;
        block_moments(rows->block[b], pivot, rows->skip, rows->user, own, own + n - 1);
    }
    /* Only one worker's term is not 0, so the order of the sum does not matter. */
    plait_status status = plait_comm_allreduce(comm, part, blocks * n, PLAIT_F64, PLAIT_SUM);
    memset(moment, 0, (size_t)n * sizeof *moment);
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t j = 0; j < n; j++) moment[j] += part[b * n + j];
    pli_free(part);
    return status;
}

/* Finds the largest value (or |x|) of each column, top [d], in rows with a weight; it is the same in any order of
 * rows. */
static plait_status largest(plait_comm *comm, const pli_scale_rows *rows, int64_t d, bool absolute, double *top) {
    for (int64_t j = 0; j < d; j++) top[j] = absolute ? 0 : -DBL_MAX;
    for (int32_t b = 0; b < rows->own; b++) {
        const pli_block *block = rows->block[b];
        for (int64_t r = 0; r < block->rows; r++)
            for (int64_t e = block->row_start[r]; weight_of(block, r) > 0 && e < block->row_start[r + 1]; e++) {
                double x = block->value != NULL ? (double)block->value[e] : 1.0;
                if (absolute) x = fabs(x);
                if (x > top[block->col[e]]) top[block->col[e]] = x;
            }
    }
    return plait_comm_allreduce(comm, top, d, PLAIT_F64, PLAIT_MAX);
}

static plait_status scale_dense(plait_comm *comm, int64_t d, bool intercept, const pli_scale_rows *rows,
                                pli_scale *scale, plait_error *err) {
    double *pivot = pli_array((size_t)d, sizeof *pivot), *moment = pli_array((size_t)d * MOMENTS + 1, sizeof *moment);
    scale->centre = pli_calloc((size_t)d, sizeof *scale->centre);
    plait_status status = PLAIT_ENOMEM;
    if (pivot == NULL || moment == NULL || scale->centre == NULL) goto out;
    status = largest(comm, rows, d, false, pivot);
    for (int64_t j = 0; j < d; j++)
        if (!intercept || pivot[j] == -DBL_MAX) pivot[j] = 0;
    if (status == PLAIT_OK) status = moments(comm, rows, d, pivot, moment, err);
    if (status < 0) goto out;
    const double n = fmax(moment[d * MOMENTS], DBL_MIN); /* a sample's rows may all weigh 0 */
    for (int64_t j = 0; j < d; j++) {
        const double *m = moment + j * MOMENTS;
        double        off = (m[SUM] - (n - m[GIVEN]) * pivot[j]) / n; /* mean, less the pivot */
        double        spread = (m[SQUARE] + (n - m[GIVEN]) * pivot[j] * pivot[j]) / n - off * off;
        if (!intercept) spread = m[SQUARE] / n;
        bool constant = !(spread > 1e-14 * pivot[j] * pivot[j] && spread > 0);
        scale->centre[j] = pivot[j] + off;
        scale->factor[j] = !constant ? 1 / sqrt(spread) : intercept && scale->centre[j] != 0 ? 0 : 1;
        if (constant && rows->sampled) scale->factor[j] = 1 / fmax(1, fabs(scale->centre[j]));
    }
    if (!intercept) {
        pli_free(scale->centre);
        scale->centre = NULL;
    }
out:
    pli_free(pivot);
    pli_free(moment);
    return status < 0 && status == PLAIT_ENOMEM
               ? pli_fail(err, status, "no memory for the scales of %lld columns", (long long)d)
               : status;
}

/* *top_out: the largest |x| of all columns together, which is fast. */
static plait_status largest_of_all(plait_comm *comm, const pli_scale_rows *rows, double *top_out) {
    *top_out = 0;
    for (int32_t b = 0; b < rows->own; b++) {
        const pli_block *block = rows->block[b];
        if (block->value == NULL && block->entries > 0) *top_out = fmax(*top_out, 1);
        for (int64_t r = 0; block->value != NULL && r < block->rows; r++)
            for (int64_t e = block->row_start[r]; weight_of(block, r) > 0 && e < block->row_start[r + 1]; e++)
                *top_out = fmax(*top_out, fabs((double)block->value[e]));
    }
    return plait_comm_allreduce(comm, top_out, 1, PLAIT_F64, PLAIT_MAX);
}

static plait_status scale_sparse(plait_comm *comm, const pli_scale_rows *rows, pli_scale *scale) {
    double *factor = scale->factor;
    PLI_TRY(largest(comm, rows, scale->features, true, factor));
    for (int64_t j = 0; j < scale->features; j++) factor[j] = factor[j] > (rows->sampled ? 1 : 0) ? 1 / factor[j] : 1;
    return PLAIT_OK;
}

plait_status pli_scale_measure(plait_comm *comm, int64_t d, bool intercept, const pli_scale_rows *rows,
                               pli_scale *scale_out, plait_error *err) {
    double  top;
    *scale_out = (pli_scale){ .features = d };
    if (d == 0 || rows->rows == 0) return PLAIT_OK;
    bool dense = (double)rows->entries > 0.5 * (double)d * (double)rows->rows &&
                 d <= MOMENT_VALUES_MAX / MOMENTS / rows->blocks;
    if (!dense) PLI_TRY(largest_of_all(comm, rows, &top));
    if (!dense && !(top > (rows->sampled ? 10 : 1))) return PLAIT_OK;
    scale_out->factor = pli_array((size_t)d, sizeof(double));
    if (scale_out->factor == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for the scales of %lld columns", (long long)d);
    plait_status status =
        dense ? scale_dense(comm, d, intercept, rows, scale_out, err) : scale_sparse(comm, rows, scale_out);
    if (status < 0) pli_scale_destroy(scale_out);
    return status;
}

void pli_scale_destroy(pli_scale *scale) {
    pli_free(scale->factor);
    pli_free(scale->centre);
    scale->factor = scale->centre = NULL;
}

void pli_scale_weights(const pli_scale *scale, int64_t k, double *w, double *bias) {
    if (scale->factor == NULL) return;
    for (int64_t j = 0; j < scale->features; j++)
        for (int64_t c = 0; c < k; c++) {
            w[j * k + c] *= scale->factor[j];
            if (scale->centre != NULL) bias[c] -= scale->centre[j] * w[j * k + c];
        }
}

void pli_scale_back(const pli_scale *scale, int64_t k, const double *w, const double *bias, double *scaled,
                    double *scaled_bias) {
    for (int64_t c = 0; c < k; c++) scaled_bias[c] = bias[c];
    for (int64_t j = 0; j < scale->features; j++)
        for (int64_t c = 0; c < k; c++) {
            double factor = scale->factor != NULL ? scale->factor[j] : 1;
            scaled[j * k + c] = factor != 0 ? w[j * k + c] / factor : 0;
            if (scale->centre != NULL) scaled_bias[c] += scale->centre[j] * w[j * k + c];
        }
}

void pli_scale_gradient(const pli_scale *scale, int64_t k, double *g, const double *r) {
    if (scale->factor == NULL) return;
    for (int64_t j = 0; j < scale->features; j++)
        for (int64_t c = 0; c < k; c++) {
            double centre = scale->centre != NULL ? scale->centre[j] * r[c] : 0;
            g[j * k + c] = scale->factor[j] * (g[j * k + c] - centre);
        }
}

double pli_scale_penalty(const pli_scale *scale, int64_t j, double l1, double l2) {
    if (scale->factor == NULL || (l1 > 0) == (l2 > 0)) return 1;
    return l1 > 0 ? scale->factor[j] : scale->factor[j] * scale->factor[j];
}
