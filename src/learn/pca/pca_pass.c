/* Passes over a worker's rows. See pca.h. */
#include <string.h>

#include "learn/pca/pca.h"
#include "tensor/groups.h"
#include "tensor/spectral/gram.h"
#include "tensor/tensor.h"

enum { NARROW_FROM = 256, CHUNK = 512 };

static pli_csr csr_of(const pli_block *block) {
    return (pli_csr){ block->rows, block->row_start, block->col, block->value, block->packed };
}

static pli_rows rows_of(const pli_part *part, int64_t from, int64_t n) {
    return (pli_rows){ part->order, part->order != NULL ? from : part->first + from, n };
}

static plait_status no_memory(const pli_run *run) {
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a pass over %lld features", (long long)run->features);
}

/* --- moments ------------------------------------------------------------------------------------------------------ */

plait_status pli_pca_add_moments(pli_run *run, const pli_part *part, double *moments) {
    const pli_pca *p = pli_pca_of(run);
    const pli_csr  x = csr_of(part->block);
    int32_t       *group = pli_calloc((size_t)part->rows, sizeof *group);
    if (group == NULL) return no_memory(run);
    const pli_group_sums out = { .sum = moments, .mass = moments + p->d };
    pli_group_sums_csr(&x, rows_of(part, 0, part->rows), p->d, group, part->block->weight, &out);
    pli_free(group);
    for (int64_t i = 0; i < part->rows; i++) {
        const int64_t r = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
        double        square = 0;
        for (int64_t e = part->block->row_start[r]; e < part->block->row_start[r + 1]; e++) {
            const double v = part->block->value != NULL ? (double)part->block->value[e] : 1;
            square += v * v;
        }
        moments[p->d + 1] += (part->block->weight != NULL ? (double)part->block->weight[r] : 1) * square;
    }
    return PLAIT_OK;
}

/* --- exact -------------------------------------------------------------------------------------------------------- */

plait_status pli_pca_add_gram(pli_run *run, const pli_part *part) {
    const pli_pca *p = pli_pca_of(run);
    const pli_csr  x = csr_of(part->block);
    void          *scratch = pli_malloc(pli_gram_scratch_bytes(p->d));
    double        *rest = pli_calloc((size_t)p->d, sizeof *rest); /* sums about the mean: rounding alone */
    pli_gram       to = { .d = p->d, .narrow = p->d >= NARROW_FROM, .shift = p->mean, .gram = p->sum, .sum = rest,
                          .scratch = scratch };
    if (scratch != NULL && rest != NULL)
        pli_gram_csr(run->pool, &to, &x, rows_of(part, 0, part->rows), part->block->weight);
    pli_free(rest);
    pli_free(scratch);
    return scratch != NULL && rest != NULL ? PLAIT_OK : no_memory(run);
}

/* --- randomised --------------------------------------------------------------------------------------------------- */

/* The mean's row times the basis [q]. */
static void mean_times_basis(const pli_pca *p, double *out) {
    memset(out, 0, (size_t)p->q * sizeof *out);
    for (int64_t j = 0; j < p->d; j++)
        for (int64_t c = 0; c < p->q; c++) out[c] += p->mean[j] * p->basis[j * p->q + c];
}

/* y [n, q] = weight (x - m) Q of some rows; the sums of its columns to total [q]. */
static void project(const pli_pca *p, const pli_csr *x, const pli_part *part, int64_t from, int64_t n,
                    const double *offset, double *y, double *total) {
    pli_kernels_get()->csr_dot_f64(x, rows_of(part, from, n), p->q, p->basis, y);
    for (int64_t i = 0; i < n; i++) {
        const int64_t r = part->order != NULL ? (int64_t)part->order[from + i] : part->first + from + i;
        const double  weight = part->block->weight != NULL ? (double)part->block->weight[r] : 1;
        for (int64_t c = 0; c < p->q; c++) {
            y[i * p->q + c] = weight * (y[i * p->q + c] - offset[c]);
            total[c] += y[i * p->q + c];
        }
    }
}

plait_status pli_pca_add_power(pli_run *run, const pli_part *part) {
    const pli_pca *p = pli_pca_of(run);
    const pli_csr  x = csr_of(part->block);
    double *y = pli_array((size_t)(CHUNK * p->q), sizeof *y), *total = pli_calloc((size_t)p->q, 2 * sizeof *total);
    const bool     there = y != NULL && total != NULL;
    if (there) mean_times_basis(p, total + p->q);
    for (int64_t from = 0, n; there && from < part->rows; from += n) {
        n = part->rows - from < CHUNK ? part->rows - from : CHUNK;
        project(p, &x, part, from, n, total + p->q, y, total);
        pli_kernels_get()->csr_t_axpy_f64(&x, rows_of(part, from, n), p->q, y, p->sum);
    }
    for (int64_t j = 0; there && j < p->d; j++)
        for (int64_t c = 0; c < p->q; c++) p->sum[j * p->q + c] -= p->mean[j] * total[c];
    pli_free(y);
    pli_free(total);
    return there ? PLAIT_OK : no_memory(run);
}
