/* A worker's rows by columns. See coordinates.h. */
#include <math.h>
#include <string.h>

#include "learn/linear/coordinates.h"
#include "tensor/spectral/gram.h"

/* --- the copy ----------------------------------------------------------------------------------------------------- */

static bool is_trained(const pli_run *run, const pli_block *block, int64_t r) {
    return !(run->fraction > 0 && pli_run_holds_back((void *)(uintptr_t)run, block->first_row + r));
}

/* Counts the rows that are trained on, and in c->start[j + 1] the entries of each column. ones_out: all values are 1.
 */
static void count(const pli_run *run, pli_columns *c, bool *ones_out) {
    *ones_out = true;
    for (int32_t b = 0; b < c->held.n; b++) {
        const pli_block *block = c->held.block[b];
        for (int64_t r = 0; r < block->rows; r++) {
            if (!is_trained(run, block, r)) continue;
            c->rows++;
            for (int64_t e = block->row_start[r]; e < block->row_start[r + 1]; e++) {
                c->start[block->col[e] + 1]++;
                *ones_out = *ones_out && (block->value == NULL || block->value[e] == 1.0F);
            }
        }
    }
    for (int64_t j = 0; j < c->features; j++) c->start[j + 1] += c->start[j];
}

/* Rows whose label the model does not know have weight 0. */
static void take_row(const pli_run *run, pli_columns *c, const pli_block *block, int64_t r, int64_t row,
                     int64_t *place) {
    double y = 0, weight = 0;
    if (!pli_linear_weigh(&pli_linear_fit_of(run)->linear, block, r, &y, &weight)) weight = 0;
    c->y[row] = y;
    c->v[row] = weight / (double)run->train_rows;
    c->even = c->even && c->v[row] == c->v[0];
    for (int64_t e = block->row_start[r]; e < block->row_start[r + 1]; e++) {
        const int64_t at = place[block->col[e]]++;
        c->row[at] = (uint32_t)row;
        if (c->value != NULL) c->value[at] = block->value != NULL ? block->value[e] : 1.0F;
    }
}

plait_status pli_columns_make(pli_run *run, pli_columns *c) {
    bool ones;
    *c = (pli_columns){ .features = run->features, .even = true };
    c->start = pli_calloc((size_t)c->features + 1, sizeof *c->start);
    if (c->start == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %lld columns", (long long)c->features);
    PLI_TRY(pli_living_blocks(run, run->data, &c->held));
    count(run, c, &ones);
    const size_t entries = (size_t)c->start[c->features], rows = (size_t)c->rows;
    int64_t     *place = pli_array((size_t)c->features + 1, sizeof *place);
    c->row = pli_array(entries + 1, sizeof *c->row);
    c->value = ones ? NULL : pli_array(entries + 1, sizeof *c->value);
    c->y = pli_calloc(rows + 1, sizeof *c->y);
    c->v = pli_calloc(rows + 1, sizeof *c->v);
    bool ok = place != NULL && c->row != NULL && (ones || c->value != NULL) && c->y != NULL && c->v != NULL;
    ok = ok && c->rows <= (int64_t)UINT32_MAX;
    if (ok) memcpy(place, c->start, ((size_t)c->features + 1) * sizeof *place);
    int64_t row = 0;
    for (int32_t b = 0; ok && b < c->held.n; b++) {
        const pli_block *block = c->held.block[b];
        for (int64_t r = 0; r < block->rows; r++)
            if (is_trained(run, block, r)) take_row(run, c, block, r, row++, place);
    }
    pli_free(place);
    return ok ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for the columns of %zu entries", entries);
}

void pli_columns_free(pli_columns *c) {
    void *const all[] = { c->start, c->row, c->value, c->y, c->v };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pli_free(all[i]);
    pli_living_blocks_free(&c->held);
    *c = (pli_columns){ 0 };
}

/* --- one column --------------------------------------------------------------------------------------------------- */

/* Four sums at once: one would wait for each addition. */
static double dot_ones(int64_t n, const uint32_t *row, const double *q) {
    double  sum[4] = { 0 };
    int64_t e = 0;
    for (; e + 4 <= n; e += 4)
        for (int i = 0; i < 4; i++) sum[i] += q[row[e + i]];
    for (; e < n; e++) sum[0] += q[row[e]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double pli_column_dot(const pli_columns *c, int64_t j, const double *q) {
    const int64_t   n = c->start[j + 1] - c->start[j];
    const uint32_t *row = c->row + c->start[j];
    if (c->value == NULL) return dot_ones(n, row, q);
    const float *value = c->value + c->start[j];
    double       sum[4] = { 0 };
    int64_t      e = 0;
    for (; e + 4 <= n; e += 4)
        for (int i = 0; i < 4; i++) sum[i] += (double)value[e + i] * q[row[e + i]];
    for (; e < n; e++) sum[0] += (double)value[e] * q[row[e]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

void pli_column_add(const pli_columns *c, int64_t j, double factor, const double *omega, double *to) {
    for (int64_t e = c->start[j]; e < c->start[j + 1]; e++) {
        const double x = c->value != NULL ? factor * (double)c->value[e] : factor;
        to[c->row[e]] += omega != NULL ? x * omega[c->row[e]] : x;
    }
}

void pli_column_sums(const pli_columns *c, int64_t j, const double *omega, double *first, double *second) {
    double one = 0, two = 0;
    for (int64_t e = c->start[j]; e < c->start[j + 1]; e++) {
        const double x = c->value != NULL ? (double)c->value[e] : 1, wx = omega[c->row[e]] * x;
        one += wx;
        two += wx * x;
    }
    *first = one;
    *second = two;
}

/* --- products ----------------------------------------------------------------------------------------------------- */

/* Adds v x xt of a row's pairs of entries, on and right of the diagonal. */
static void add_pairs(const pli_block *block, int64_t r, double v, int64_t d, double *gram) {
    const int64_t end = block->row_start[r + 1];
    for (int64_t e = block->row_start[r]; e < end; e++) {
        const int64_t j = block->col[e];
        const double  x = block->value != NULL ? v * (double)block->value[e] : v;
        for (int64_t o = e; o < end; o++) {
            const int64_t k = block->col[o], at = j < k ? j * d + k : k * d + j;
            gram[at] += block->value != NULL ? x * (double)block->value[o] : x;
        }
    }
}

/* Turns sums of v x xt into those of v (x - mean)(x - mean)t, and fills the other triangle. */
static void centre(const pli_columns *c, const double *mean, const double *first, double mass, double *gram) {
    const int64_t d = c->features;
    for (int64_t j = 0; j < d; j++)
        for (int64_t k = j; k < d; k++) {
            double *at = &gram[j * d + k];
            if (mean != NULL) *at -= mean[j] * first[k] + first[j] * mean[k] - mass * mean[j] * mean[k];
            gram[k * d + j] = *at;
        }
}

static plait_status by_pairs(pli_run *run, const pli_columns *c, const double *mean, double *gram) {
    int64_t row = 0;
    double  mass = 0, second, *first = pli_calloc((size_t)c->features + 1, sizeof *first);
    if (first == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for products of columns");
    for (int32_t b = 0; b < c->held.n; b++) {
        const pli_block *block = c->held.block[b];
        for (int64_t r = 0; r < block->rows; r++)
            if (is_trained(run, block, r)) add_pairs(block, r, c->v[row++], c->features, gram);
    }
    for (int64_t i = 0; i < c->rows; i++) mass += c->v[i];
    for (int64_t j = 0; j < c->features; j++) pli_column_sums(c, j, c->v, &first[j], &second);
    centre(c, mean, first, mass, gram);
    pli_free(first);
    return PLAIT_OK;
}

/* Rows with most values given go through the Gram kernels of tensor/; all of them have the same weight. */
static plait_status by_kernels(pli_run *run, const pli_columns *c, const double *mean, double *gram) {
    const int64_t d = c->features;
    pli_gram      to = { .d = d, .shift = mean, .gram = gram };
    uint32_t     *order = pli_array((size_t)c->rows + 1, sizeof *order);
    to.scratch = pli_calloc(1, pli_gram_scratch_bytes(d));
    to.sum = pli_calloc((size_t)d + 1, sizeof *to.sum);
    const bool ok = order != NULL && to.scratch != NULL && to.sum != NULL;
    for (int32_t b = 0; ok && b < c->held.n; b++) {
        const pli_block *block = c->held.block[b];
        const pli_csr    x = { block->rows, block->row_start, block->col, block->value, block->packed };
        int64_t          n = 0;
        for (int64_t r = 0; r < block->rows; r++)
            if (is_trained(run, block, r)) order[n++] = (uint32_t)r;
        pli_gram_csr(run->pool, &to, &x, (pli_rows){ order, 0, n }, NULL);
    }
    for (int64_t j = 0; ok && j < d; j++)
        for (int64_t k = j; k < d; k++) gram[k * d + j] = gram[j * d + k] *= c->rows > 0 ? c->v[0] : 0;
    pli_free(order);
    pli_free(to.scratch);
    pli_free(to.sum);
    return ok ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for products of columns");
}

plait_status pli_columns_products(pli_run *run, const pli_columns *c, const double *mean, double *gram) {
    const bool dense = 4 * c->start[c->features] > c->rows * c->features;
    memset(gram, 0, (size_t)(c->features * c->features) * sizeof *gram);
    return dense && c->even ? by_kernels(run, c, mean, gram) : by_pairs(run, c, mean, gram);
}
