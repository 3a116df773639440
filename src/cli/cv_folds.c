/* Which row is in which fold. Rows are ordered by a random number that is keyed by the seed and the row, within each
 * class if classes are to be spread evenly, and dealt to the folds in turn. So the folds depend on the data and the
 * seed alone, never on workers. */
#include "cli/cv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STRATA_MAX = 1000 };

/* What is dealt: a row, or the rows of a query. */
typedef struct unit {
    int64_t  first, rows; /* numbers of rows */
    double   label;       /* 0: classes do not matter */
    uint64_t key;
} unit;

typedef struct units {
    unit   *item;
    int64_t n;
} units;

static int by_label_and_key(const void *left, const void *right) {
    const unit *a = left, *b = right;
    if (a->label != b->label) return a->label < b->label ? -1 : 1;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static void add_rows(const pli_block *block, bool strata, uint64_t seed, units *all) {
    for (int64_t r = 0; r < block->rows; r++) {
        const bool goes_on = block->query != NULL && r > 0 && block->query[r] != 0 &&
                             block->query[r] == block->query[r - 1];
        if (goes_on) {
            all->item[all->n - 1].rows++;
            continue;
        }
        const int64_t row = block->first_row + r;
        const double  label = strata && !isnan(block->label[r]) ? block->label[r] : 0;
        all->item[all->n++] = (unit){ row, 1, label, pli_hash_u64(pli_hash_u64(seed) ^ (uint64_t)row) };
    }
}

static void deal(const units *all, pli_folds *folds) {
    for (int64_t i = 0; i < all->n; i++)
        for (int64_t r = 0; r < all->item[i].rows; r++) folds->of[all->item[i].first + r] = (int32_t)(i % folds->n);
}

/* n + 1 runs of units, of which the first is in no fold. */
static void deal_in_order(const units *all, pli_folds *folds) {
    for (int64_t i = 0; i < all->n; i++)
        for (int64_t r = 0; r < all->item[i].rows; r++)
            folds->of[all->item[i].first + r] = (int32_t)(i * (folds->n + 1) / all->n) - 1;
}

const char *pli_folds_way(const plait_data *data, const char *way) {
    if (!pli_is(way, "auto")) return way;
    pli_dataset *set = NULL;
    int64_t      classes = -1;
    if (pli_dataset_of_memory(data, 0, 1, &set, NULL) >= 0) classes = pli_schema_labels(pli_dataset_schema(set));
    pli_dataset_destroy(&set);
    return plait_data_has_labels(data) && classes > 1 && classes <= STRATA_MAX ? "stratified" : "rows";
}

static plait_status fill(const pli_dataset *set, const char *way, uint64_t seed, pli_folds *folds, plait_error *err) {
    units all = { .item = pli_array((size_t)folds->rows + 1, sizeof *all.item) };
    if (all.item == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for folds of %lld rows", (long long)folds->rows);
    for (int32_t b = 0; b < pli_dataset_own_blocks(set); b++)
        add_rows(pli_dataset_block(set, b), pli_is(way, "stratified"), seed, &all);
    const int64_t needed = folds->n + (folds->in_order ? 1 : 0);
    plait_status  status = PLAIT_OK;
    if (all.n < needed)
        status = pli_fail(err, PLAIT_EINVAL, "--folds %d: there are only %lld %s", folds->n, (long long)all.n,
                          all.n == folds->rows ? "rows" : "queries, whose rows stay together");
    if (!folds->in_order) qsort(all.item, (size_t)all.n, sizeof *all.item, by_label_and_key);
    if (status >= 0) (folds->in_order ? deal_in_order : deal)(&all, folds);
    pli_free(all.item);
    return status;
}

static plait_status open(int64_t rows, int32_t n, pli_folds *out, plait_error *err) {
    *out = (pli_folds){ .n = n, .rows = rows, .of = pli_array((size_t)rows + 1, sizeof *out->of) };
    if (out->of != NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "no memory for folds of %lld rows", (long long)rows);
}

plait_status pli_folds_make(const plait_data *data, const char *way, int32_t n, uint64_t seed, pli_folds *out,
                            plait_error *err) {
    pli_dataset *set = NULL;
    PLI_TRY(open(plait_data_rows(data), n, out, err));
    out->in_order = pli_is(way, "ordered");
    plait_status status = pli_dataset_of_memory(data, 0, 1, &set, err);
    if (status >= 0) status = fill(set, pli_folds_way(data, way), seed, out, err);
    pli_dataset_destroy(&set);
    if (status < 0) pli_folds_free(out);
    return status;
}

void pli_folds_free(pli_folds *folds) {
    pli_free(folds->of);
    folds->of = NULL;
}

/* --- from a file -------------------------------------------------------------------------------------------------- */

static int by_number(const void *left, const void *right) {
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

/* Numbers the distinct numbers from 0; returns how many there are, or -1: too many. number and sorted [rows]. */
static int32_t number_folds(const int64_t *number, int64_t *sorted, pli_folds *folds) {
    memcpy(sorted, number, (size_t)folds->rows * sizeof *sorted);
    qsort(sorted, (size_t)folds->rows, sizeof *sorted, by_number);
    int32_t n = 0;
    for (int64_t i = 0; i < folds->rows; i++) {
        if (n > 0 && sorted[n - 1] == sorted[i]) continue;
        if (n == PLI_FOLDS_MAX) return -1;
        sorted[n++] = sorted[i];
    }
    for (int64_t i = 0; i < folds->rows; i++) {
        const int64_t *at = bsearch(&number[i], sorted, (size_t)n, sizeof *sorted, by_number);
        folds->of[i] = (int32_t)(at - sorted);
    }
    return n;
}

static plait_status parse(const char *path, char *text, int64_t rows, int64_t *number, plait_error *err) {
    int64_t n = 0;
    for (char *line = text; *line != '\0'; n++) {
        char *end = line + strcspn(line, "\n"), *next = *end == '\n' ? end + 1 : end;
        if (end > line && end[-1] == '\r') end--;
        *end = '\0';
        if (n == rows) return pli_fail(err, PLAIT_EFORMAT, "%s:%lld: the data have only %lld rows", path,
                                       (long long)n + 1, (long long)rows);
        if (!pli_parse_i64(line, &number[n]))
            return pli_fail(err, PLAIT_EFORMAT, "%s:%lld: expected the number of a fold, found '%.40s'", path,
                            (long long)n + 1, line);
        line = next;
    }
    if (n == rows) return PLAIT_OK;
    return pli_fail(err, PLAIT_EFORMAT, "%s: expected a number for each of the %lld rows, a line each, found %lld",
                    path, (long long)rows, (long long)n);
}

plait_status pli_folds_read(const char *path, int64_t rows, pli_folds *out, plait_error *err) {
    pli_text     text = { 0 };
    int64_t     *number = pli_array(2 * (size_t)rows + 1, sizeof *number);
    plait_status status = open(rows, 0, out, err);
    if (status >= 0 && number == NULL)
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for folds of %lld rows", (long long)rows);
    if (status >= 0) status = pli_read_whole(path, (size_t)rows * 24 + 64, &text, err);
    if (status >= 0) status = parse(path, text.data != NULL ? text.data : (char[]){ 0 }, rows, number, err);
    if (status >= 0) out->n = number_folds(number, number + rows, out);
    if (status >= 0 && out->n < 2)
        status = pli_fail(err, PLAIT_EFORMAT, out->n < 0 ? "%s: more than %d folds" : "%s: less than two folds", path,
                          PLI_FOLDS_MAX);
    pli_free(number);
    pli_text_free(&text);
    if (status < 0) pli_folds_free(out);
    return status;
}

/* --- rows of a fold ----------------------------------------------------------------------------------------------- */

static bool takes(const pli_folds *folds, int64_t row, int32_t f, bool held_out) {
    if (held_out) return folds->of[row] == f;
    return folds->in_order ? folds->of[row] < f : folds->of[row] != f;
}

plait_status pli_folds_take(const pli_folds *folds, const plait_data *data, int32_t f, bool held_out,
                            plait_data **data_out, plait_error *err) {
    int64_t *rows = pli_array((size_t)folds->rows + 1, sizeof *rows), n = 0;
    if (rows == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld rows", (long long)folds->rows);
    for (int64_t row = 0; row < folds->rows; row++)
        if (takes(folds, row, f, held_out)) rows[n++] = row;
    const plait_status status = plait_data_take(data, rows, n, data_out, err);
    pli_free(rows);
    return status;
}

plait_status pli_folds_take_share(const pli_folds *folds, const plait_data *data, int32_t f, double share,
                                  uint64_t seed, plait_data **data_out, plait_error *err) {
    const int64_t all = plait_data_rows(data);
    int64_t      *rows = pli_array((size_t)all + 1, sizeof *rows), n = 0;
    if (rows == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld rows", (long long)all);
    for (int64_t row = 0; row < all; row++) {
        pli_random random = pli_random_at(seed, PLI_RANDOM_SPLIT, UINT64_MAX, (uint64_t)row); /* no block has it */
        if (f >= 0 && !takes(folds, row, f, false)) continue;
        if (share >= 1 || pli_random_f64(&random) < share) rows[n++] = row;
    }
    const plait_status status = plait_data_take(data, rows, n, data_out, err);
    pli_free(rows);
    return status;
}
