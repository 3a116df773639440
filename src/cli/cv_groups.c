/* Folds of whole groups: rows with the same cell in a column stay together. The column is no feature. It is read first,
 * as if it were the label; then the data are read without it. */
#include <stdlib.h>

#include "cli/cv.h"

/* --- which group each row is in ----------------------------------------------------------------------------------- */

/* Numbers the distinct labels from 0. label and sorted [rows]. */
static void number_groups(const double *label, double *sorted, pli_fold_groups *out) {
    for (int64_t i = 0; i < out->rows; i++) sorted[i] = label[i];
    qsort(sorted, (size_t)out->rows, sizeof *sorted, pli_order_f64);
    for (int64_t i = 0; i < out->rows; i++)
        if (out->n == 0 || sorted[out->n - 1] < sorted[i]) sorted[out->n++] = sorted[i];
    for (int64_t i = 0; i < out->rows; i++) {
        const double *at = bsearch(&label[i], sorted, (size_t)out->n, sizeof *sorted, pli_order_f64);
        out->of[i] = at - sorted;
    }
}

static plait_status take_labels(const plait_data *data, pli_fold_groups *out, plait_error *err) {
    pli_dataset *set = NULL;
    int64_t      at = 0;
    PLI_TRY(pli_dataset_of_memory(data, 0, 1, &set, err));
    double *label = pli_array(2 * (size_t)out->rows + 1, sizeof *label);
    for (int32_t b = 0; label != NULL && b < pli_dataset_own_blocks(set); b++) {
        const pli_block *block = pli_dataset_block(set, b);
        for (int64_t i = 0; i < block->rows; i++) label[at++] = block->label[i];
    }
    if (label != NULL) number_groups(label, label + out->rows, out);
    pli_free(label);
    pli_dataset_destroy(&set);
    return label != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for groups of rows");
}

/* Says what is wrong with the column as that of groups, before it is read as a label. Reads no rows. */
static plait_status check_column(const plait_data_opts *files, const char *column, plait_error *err) {
    plait_data_opts opts = *files;
    pli_dataset    *set = NULL;
    opts.group_column = column;
    const plait_status status = pli_dataset_open(&opts, NULL, 0, 1, &set, err);
    pli_dataset_destroy(&set);
    return status;
}

plait_status pli_fold_groups_read(const plait_data_opts *files, const char *column, pli_fold_groups *out,
                                  plait_error *err) {
    plait_data_opts opts = *files;
    plait_data     *data = NULL;
    *out = (pli_fold_groups){ .column = column };
    opts.log = NULL;
    PLI_TRY(check_column(&opts, column, err));
    opts.label = column;
    opts.keep_missing = 1;
    opts.pairs = opts.apart = 0;
    PLI_TRY(plait_data_read(&opts, &data, err));
    out->rows = plait_data_rows(data);
    out->of = pli_array((size_t)out->rows + 1, sizeof *out->of);
    plait_status status = out->of != NULL ? take_labels(data, out, err)
                                          : pli_fail(err, PLAIT_ENOMEM, "no memory for groups of rows");
    plait_data_destroy(&data);
    if (status < 0) pli_fold_groups_free(out);
    return status;
}

void pli_fold_groups_free(pli_fold_groups *groups) {
    pli_free(groups->of);
    *groups = (pli_fold_groups){ .n = 0 };
}

/* --- which fold each group is in ---------------------------------------------------------------------------------- */

typedef struct group {
    int64_t  number, rows;
    uint64_t key;
} group;

/* The largest first; equal ones at random. */
static int by_size(const void *left, const void *right) {
    const group *a = left, *b = right;
    if (a->rows != b->rows) return a->rows > b->rows ? -1 : 1;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int32_t lightest(const int64_t *rows, int32_t n) {
    int32_t least = 0;
    for (int32_t f = 1; f < n; f++)
        if (rows[f] < rows[least]) least = f;
    return least;
}

/* Each group goes to the fold with the fewest rows so far. all [groups], fold_of [groups]; held [folds] zeroed. */
static void deal(const pli_fold_groups *groups, uint64_t seed, group *all, int32_t *fold_of, int64_t *held,
                 pli_folds *folds) {
    for (int64_t g = 0; g < groups->n; g++) all[g] = (group){ .number = g };
    for (int64_t i = groups->rows; i-- > 0;) {
        group *of = &all[groups->of[i]];
        of->rows++;
        of->key = pli_hash_u64(pli_hash_u64(seed) ^ (uint64_t)i); /* of its first row */
    }
    qsort(all, (size_t)groups->n, sizeof *all, by_size);
    for (int64_t g = 0; g < groups->n; g++) {
        const int32_t f = lightest(held, folds->n);
        fold_of[all[g].number] = f;
        held[f] += all[g].rows;
    }
    for (int64_t i = 0; i < groups->rows; i++) folds->of[i] = fold_of[groups->of[i]];
}

plait_status pli_folds_group(const pli_fold_groups *groups, int32_t n, uint64_t seed, pli_folds *out,
                             plait_error *err) {
    if (groups->n < n)
        return pli_fail(err, PLAIT_EINVAL, "--folds %d: column \"%s\" has only %lld groups", n, groups->column,
                        (long long)groups->n);
    *out = (pli_folds){ .n = n, .rows = groups->rows };
    out->of = pli_array((size_t)groups->rows + 1, sizeof *out->of);
    group       *all = pli_array((size_t)groups->n, sizeof *all);
    int32_t     *fold_of = pli_array((size_t)groups->n, sizeof *fold_of);
    int64_t     *held = pli_calloc((size_t)n, sizeof *held);
    plait_status status = PLAIT_OK;
    if (out->of == NULL || all == NULL || fold_of == NULL || held == NULL)
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for folds of %lld rows", (long long)groups->rows);
    else
        deal(groups, seed, all, fold_of, held, out);
    pli_free(all);
    pli_free(fold_of);
    pli_free(held);
    if (status < 0) pli_folds_free(out);
    return status;
}
