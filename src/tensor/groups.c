/* Adds up rows by group. Full rows go by the dense kernels; sparse ones fetch ahead, as their groups' sums may lie
 * far apart. */
#include "tensor/groups.h"

#include "tensor/entries.h"

static void add_dense(int64_t d, const float *x, double weight, int64_t group, const pli_group_sums *out) {
    if (out->sum != NULL) pli_kernels_get()->axpy_f32_f64(d, weight, x, out->sum + group * d);
    for (int64_t l = 0; out->square != NULL && l < d; l++)
        out->square[group * d + l] += weight * ((double)x[l] * (double)x[l]);
    if (out->mass != NULL) out->mass[group] += weight;
}

static void add_sparse(pli_entries x, int64_t d, double weight, int64_t group, const pli_group_sums *out) {
    double *sum = out->sum != NULL ? out->sum + group * d : NULL;
    double *square = out->square != NULL ? out->square + group * d : NULL;
    for (int64_t e = 0; e < x.n; e++) {
        const double   v = pli_entries_value(x, e);
        const uint32_t column = pli_entries_column(x, e);
        if (sum != NULL) sum[column] += weight * v;
        if (square != NULL) square[column] += weight * (v * v);
    }
    if (out->mass != NULL) out->mass[group] += weight;
}

void pli_group_sums_csr(const pli_csr *x, pli_rows rows, int64_t d, const int32_t *group, const float *weight,
                        const pli_group_sums *out) {
    for (int64_t i = 0; i < rows.n; i++) {
        const pli_entries row = pli_entries_of(x, rows, i);
        const double      w = weight != NULL ? (double)weight[pli_row_at(rows, i)] : 1;
        if (group[i] < 0) continue;
        if (row.n == d && row.value != NULL) add_dense(d, row.value, w, group[i], out);
        else add_sparse(row, d, w, group[i], out);
    }
}

void pli_group_sums_dense(int64_t n, int64_t d, const float *x, int64_t stride, const int32_t *group,
                          const float *weight, const pli_group_sums *out) {
    for (int64_t i = 0; i < n; i++)
        if (group[i] >= 0) add_dense(d, x + i * stride, weight != NULL ? (double)weight[i] : 1, group[i], out);
}

/* --- counts ----------------------------------------------------------------------------------------------------- */

/* There are no branches: a value that fits no integer is replaced by one half, which is no count. */
static bool all_counts(pli_entries x) {
    int32_t bad = 0;
    for (int64_t e = 0; x.value != NULL && e < x.n; e++) {
        const float v = x.value[e], safe = v >= 0 && v < PLI_COUNT_LIMIT ? v : 0.5F;
        bad |= (float)(int32_t)safe != v;
    }
    return bad == 0;
}

static void fetch(pli_entries x, const int64_t *count, const bool packed) {
    for (int64_t e = 0, fetched = pli_entries_fetched(x); e < fetched; e++)
        __builtin_prefetch(&count[pli_entries_at(x, e + PLI_PREFETCH_ENTRIES, packed)], 1);
}

static void add_ones(pli_entries x, int64_t *count, const bool packed) {
    for (int64_t e = 0; e < x.n; e++) count[pli_entries_at(x, e, packed)]++;
}

static void add_values(pli_entries x, int64_t *count, const bool packed) {
    for (int64_t e = 0; e < x.n; e++) count[pli_entries_at(x, e, packed)] += (int32_t)x.value[e];
}

static void add_counts(pli_entries x, int64_t *count, const bool packed) {
    fetch(x, count, packed);
    if (x.value == NULL) add_ones(x, count, packed);
    else add_values(x, count, packed);
}

int64_t pli_group_counts(const pli_csr *x, pli_rows rows, int64_t d, const int32_t *group, int64_t *count) {
    for (int64_t i = 0; i < rows.n; i++) {
        const pli_entries row = pli_entries_of(x, rows, i);
        if (group[i] < 0) continue;
        if (!all_counts(row)) return i;
        if (row.packed != NULL) add_counts(row, count + group[i] * d, true);
        else add_counts(row, count + group[i] * d, false);
    }
    return rows.n;
}

void pli_group_presences(const pli_csr *x, pli_rows rows, int64_t d, const int32_t *group, int64_t *count) {
    for (int64_t i = 0; i < rows.n; i++) {
        if (group[i] < 0) continue;
        const pli_entries row = pli_entries_of(x, rows, i);
        int64_t          *to = count + group[i] * d;
        if (row.packed != NULL) fetch(row, to, true);
        else fetch(row, to, false);
        for (int64_t e = 0; e < row.n; e++)
            to[pli_entries_column(row, e)] += row.value == NULL || row.value[e] != 0;
    }
}
