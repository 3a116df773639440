/* Rows become sums by feature and class. See tally.h. */
#include "learn/bayes/tally.h"

#include <math.h>
#include <string.h>

const char *const pli_events_name[PLI_EVENTS + 1] = { "multinomial", "bernoulli", "gaussian", "complement", NULL };

int32_t pli_events_find(const char *name) {
    for (int32_t i = 0; i < PLI_EVENTS; i++)
        if (strcmp(pli_events_name[i], name) == 0) return i;
    return -1;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static int64_t mark_words(const pli_tally_form *form) { return (form->features + 63) / 64; }

_Static_assert(sizeof(int64_t) == sizeof(double), "sums of either kind take the same memory");

plait_status pli_tally_init(const pli_tally_form *form, pli_tally *tally, plait_error *err) {
    *tally = (pli_tally){ .capacity = form->features };
    pli_keymap_init(&tally->map);
    tally->of_class = pli_calloc((size_t)form->goal->classes, sizeof *tally->of_class);
    tally->sum = pli_calloc((size_t)(form->features * form->width), sizeof(double));
    tally->mark = form->marks ? pli_calloc((size_t)mark_words(form), sizeof *tally->mark) : NULL;
    if (tally->of_class != NULL && tally->sum != NULL && (tally->mark != NULL || !form->marks)) return PLAIT_OK;
    pli_tally_destroy(tally);
    return pli_fail(err, PLAIT_ENOMEM, "no memory for the sums of %lld features", (long long)form->features);
}

void pli_tally_destroy(pli_tally *tally) {
    pli_keymap_destroy(&tally->map);
    pli_free(tally->sum);
    pli_free(tally->of_class);
    pli_free(tally->mark);
    pli_free(tally->local);
    pli_free(tally->found);
    *tally = (pli_tally){ 0 };
}

/* --- a row -------------------------------------------------------------------------------------------------------- */

/* A row's entries; index: rows of the tally's sums. */
typedef struct entries {
    int64_t         n;
    const uint32_t *index;
    const float    *value; /* NULL: all 1 */
} entries;

static void add_weights(double *sum, int64_t width, const entries *row, double weight) {
    for (int64_t e = 0; e < row->n; e++) sum[(int64_t)row->index[e] * width] += weight;
}

static void add_values(double *sum, int64_t width, const entries *row, double weight) {
    for (int64_t e = 0; e < row->n; e++) sum[(int64_t)row->index[e] * width] += weight * (double)row->value[e];
}

static void add_occurrences(double *sum, int64_t width, const entries *row, double weight) {
    for (int64_t e = 0; e < row->n; e++) sum[(int64_t)row->index[e] * width] += row->value[e] > 0 ? weight : 0;
}

static void add_real(pli_events events, double *sum, int64_t width, const entries *row, double weight) {
    if (row->value == NULL) add_weights(sum, width, row, weight);
    else if (events == PLI_EVENTS_BERNOULLI) add_occurrences(sum, width, row, weight);
    else add_values(sum, width, row, weight);
}

static void count_weights(int64_t *sum, int64_t width, const entries *row, int64_t weight) {
    for (int64_t e = 0; e < row->n; e++) sum[(int64_t)row->index[e] * width] += weight;
}

static void count_values(int64_t *sum, int64_t width, const entries *row, int64_t weight) {
    for (int64_t e = 0; e < row->n; e++) sum[(int64_t)row->index[e] * width] += weight * (int64_t)row->value[e];
}

static void count_occurrences(int64_t *sum, int64_t width, const entries *row, int64_t weight) {
    for (int64_t e = 0; e < row->n; e++) sum[(int64_t)row->index[e] * width] += row->value[e] > 0 ? weight : 0;
}

static void add_whole(pli_events events, int64_t *sum, int64_t width, const entries *row, int64_t weight) {
    if (row->value == NULL) count_weights(sum, width, row, weight);
    else if (events == PLI_EVENTS_BERNOULLI) count_occurrences(sum, width, row, weight);
    else count_values(sum, width, row, weight);
}

/* Distances from a centre near the mean: their squares do not cancel. */
static void add_moments(double *sum, int64_t classes, const double *centre, const entries *row, double weight) {
    for (int64_t e = 0; e < row->n; e++) {
        const int64_t j = row->index[e];
        double       *s = sum + j * classes * PLI_MOMENTS;
        const double  x = (row->value != NULL ? (double)row->value[e] : 1) - centre[j * classes];
        s[PLI_GIVEN] += weight;
        s[PLI_SUM] += weight * x;
        s[PLI_SQUARE] += weight * x * x;
    }
}

static void add_entries(const pli_tally_form *form, pli_tally *tally, const entries *row, int64_t class,
                        double weight) {
    const int64_t k = form->goal->classes;
    if (form->whole) add_whole(form->events, (int64_t *)tally->sum + class, k, row, (int64_t)weight);
    else if (form->events != PLI_EVENTS_GAUSSIAN) add_real(form->events, (double *)tally->sum + class, k, row, weight);
    else add_moments((double *)tally->sum + class * PLI_MOMENTS, k, form->centre + class, row, weight);
    for (int64_t e = 0; tally->mark != NULL && e < row->n; e++)
        tally->mark[row->index[e] >> 6] |= UINT64_C(1) << (row->index[e] & 63);
}

/* --- features that grow by key ------------------------------------------------------------------------------------ */

static plait_status no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for a batch's features");
}

/* Rows of the sums for keys [n], to tally->local. */
static plait_status find_rows(const pli_tally_form *form, pli_tally *tally, int64_t n, const uint64_t *keys,
                              plait_error *err) {
    const int64_t before = tally->capacity;
    if (!pli_grow((void **)&tally->found, &tally->found_capacity, n, sizeof *tally->found) ||
        !pli_grow((void **)&tally->local, &tally->local_capacity, n, sizeof *tally->local) ||
        !pli_keymap_add_all(&tally->map, n, keys, tally->found) || tally->map.n > UINT32_MAX ||
        !pli_grow(&tally->sum, &tally->capacity, tally->map.n, (size_t)form->width * sizeof(double)))
        return no_memory(err);
    memset((double *)tally->sum + before * form->width, 0,
           (size_t)((tally->capacity - before) * form->width) * sizeof(double));
    for (int64_t i = 0; i < n; i++) tally->local[i] = (uint32_t)tally->found[i];
    return PLAIT_OK;
}

/* Of a block whose columns are narrow the keys are made first. */
static plait_status find_entries(const pli_tally_form *form, pli_tally *tally, const pli_block *block, int64_t at,
                                 int64_t n, plait_error *err) {
    enum { SOME = 256 };
    uint64_t wide[SOME];
    if (block->col == NULL) return find_rows(form, tally, n, block->key + at, err);
    if (n <= SOME) {
        for (int64_t e = 0; e < n; e++) wide[e] = block->col[at + e];
        return find_rows(form, tally, n, wide, err);
    }
    uint64_t    *keys = pli_array((size_t)n, sizeof *keys);
    plait_status status = keys != NULL ? PLAIT_OK : no_memory(err);
    for (int64_t e = 0; keys != NULL && e < n; e++) keys[e] = block->col[at + e];
    if (status >= 0) status = find_rows(form, tally, n, keys, err);
    pli_free(keys);
    return status;
}

/* --- what cannot be counted --------------------------------------------------------------------------------------- */

static plait_status check_weight(const pli_tally_form *form, double weight, int64_t number, plait_error *err) {
    if (!form->whole || pli_tally_is_whole(weight)) return PLAIT_OK;
    return pli_fail(
        err, PLAIT_EFORMAT,
        "row %lld has the weight %g, but the first rows of the data had whole weights, so rows are counted in whole "
        "numbers: take --counts real",
        (long long)number, weight);
}

static plait_status check_value(const pli_tally_form *form, double value, double weight, int64_t number,
                                plait_error *err) {
    if (value < 0)
        return pli_fail(
            err, PLAIT_EFORMAT,
            "row %lld has the value %g, but a count cannot be below 0: take --events-model gaussian, or bernoulli, "
            "which asks whether a value is above 0",
            (long long)number, value);
    if (!form->whole || pli_tally_is_whole(value * weight)) return PLAIT_OK;
    return pli_fail(
        err, PLAIT_EFORMAT,
        "row %lld has the value %g, but the first rows of the data had whole values, so features are counted in whole "
        "numbers: take --counts real",
        (long long)number, value);
}

/* All but bad values take the short way. */
static plait_status check_values(const pli_tally_form *form, const entries *row, double weight, int64_t number,
                                 plait_error *err) {
    bool counts = form->events == PLI_EVENTS_MULTINOMIAL || form->events == PLI_EVENTS_COMPLEMENT;
    if (!counts || row->value == NULL) return PLAIT_OK;
    for (int64_t e = 0; e < row->n; e++) PLI_TRY(check_value(form, (double)row->value[e], weight, number, err));
    return PLAIT_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static plait_status find_index(const pli_tally_form *form, pli_tally *tally, const pli_block *block, int64_t at,
                               entries *row, int64_t number, plait_error *err) {
    if (form->features == 0) {
        PLI_TRY(find_entries(form, tally, block, at, row->n, err));
        row->index = tally->local;
        return PLAIT_OK;
    }
    if (row->n == 0) return PLAIT_OK;
    row->index = block->col != NULL ? block->col + at : NULL;
    if (!form->checks || (row->index != NULL && row->index[row->n - 1] < form->features)) return PLAIT_OK;
    return pli_fail(
        err, PLAIT_EFORMAT,
        "row %lld of a streamed pass has a feature beyond the %lld that were expected, since indices are out of order: "
        "take --hash-bits 20",
        (long long)number, (long long)form->features);
}

static plait_status add_row(const pli_tally_form *form, pli_tally *tally, const pli_block *block, int64_t r,
                            plait_error *err) {
    const int64_t at = block->row_start[r], number = block->first_row + r + 1;
    entries       row = { .n = block->row_start[r + 1] - at, .value = block->value != NULL ? block->value + at : NULL };
    double        y, weight;
    if (!pli_goal_target(form->goal, block->label[r], &y, &weight))
        return pli_fail(err, PLAIT_EFORMAT, "row %lld has no label, or a label that the model does not know (%g)",
                        (long long)number, block->label[r]);
    if (block->weight != NULL) weight *= (double)block->weight[r];
    const int64_t class = form->goal->loss->target == PLI_CLASSES ? (int64_t)y : y > 0;
    PLI_TRY(find_index(form, tally, block, at, &row, number, err));
    if (form->checks) PLI_TRY(check_weight(form, weight, number, err));
    if (form->checks) PLI_TRY(check_values(form, &row, weight, number, err));
    add_entries(form, tally, &row, class, weight);
    tally->of_class[class] += weight;
    tally->weight += weight;
    tally->rows++;
    return PLAIT_OK;
}

plait_status pli_tally_add(const pli_tally_form *form, pli_tally *tally, const pli_part *part, plait_error *err) {
    for (int64_t i = 0; i < part->rows; i++)
        PLI_TRY(
            add_row(form, tally, part->block, part->order != NULL ? (int64_t)part->order[i] : part->first + i, err));
    return PLAIT_OK;
}

/* --- tallies together --------------------------------------------------------------------------------------------- */

/* Sums of n rows, from row `from` of one on to row `to` of the other; zeros are left. */
static void move_sums(const pli_tally_form *form, int64_t n, pli_tally *more, int64_t from, pli_tally *tally,
                      int64_t to) {
    const int64_t values = n * form->width;
    double       *source = (double *)more->sum + from * form->width, *target = (double *)tally->sum + to * form->width;
    if (form->whole) {
        const int64_t *x = (const int64_t *)more->sum + from * form->width;
        int64_t       *y = (int64_t *)tally->sum + to * form->width;
        for (int64_t i = 0; i < values; i++) y[i] += x[i];
    } else {
        for (int64_t i = 0; i < values; i++) target[i] += source[i];
    }
    memset(source, 0, (size_t)values * sizeof *source);
}

static plait_status merge_keys(const pli_tally_form *form, pli_tally *tally, pli_tally *more, plait_error *err) {
    uint64_t *keys = pli_array((size_t)more->map.n, sizeof *keys);
    if (keys == NULL) return no_memory(err);
    pli_keymap_keys(&more->map, keys);
    plait_status status = find_rows(form, tally, more->map.n, keys, err);
    for (int64_t i = 0; status >= 0 && i < more->map.n; i++)
        move_sums(form, 1, more, i, tally, tally->local[i]);
    pli_free(keys);
    return status;
}

static void merge_marked(const pli_tally_form *form, pli_tally *tally, pli_tally *more) {
    for (int64_t w = 0; w < mark_words(form); w++) {
        tally->mark[w] |= more->mark[w];
        for (uint64_t bits = more->mark[w]; bits != 0; bits &= bits - 1) {
            const int64_t j = 64 * w + __builtin_ctzll(bits);
            move_sums(form, 1, more, j, tally, j);
        }
        more->mark[w] = 0;
    }
}

plait_status pli_tally_merge(const pli_tally_form *form, pli_tally *tally, pli_tally *more, plait_error *err) {
    if (form->features == 0) PLI_TRY(merge_keys(form, tally, more, err));
    else if (form->marks) merge_marked(form, tally, more);
    else move_sums(form, form->features, more, 0, tally, 0);
    for (int64_t k = 0; k < form->goal->classes; k++) {
        tally->of_class[k] += more->of_class[k];
        more->of_class[k] = 0;
    }
    tally->weight += more->weight;
    tally->rows += more->rows;
    tally->entries += more->entries;
    more->weight = more->rows = 0;
    more->entries = 0;
    if (form->features > 0) return PLAIT_OK;
    pli_keymap_destroy(&more->map);
    pli_keymap_init(&more->map);
    return PLAIT_OK;
}

static void clear_marked(const pli_tally_form *form, pli_tally *tally) {
    for (int64_t w = 0; w < mark_words(form); w++) {
        for (uint64_t bits = tally->mark[w]; bits != 0; bits &= bits - 1) {
            const int64_t j = 64 * w + __builtin_ctzll(bits);
            memset((double *)tally->sum + j * form->width, 0, (size_t)form->width * sizeof(double));
        }
        tally->mark[w] = 0;
    }
}

void pli_tally_clear(const pli_tally_form *form, pli_tally *tally) {
    if (form->marks) clear_marked(form, tally);
    else
        memset(tally->sum, 0,
               (size_t)((form->features > 0 ? form->features : tally->map.n) * form->width) * sizeof(double));
    memset(tally->of_class, 0, (size_t)form->goal->classes * sizeof *tally->of_class);
    tally->weight = tally->rows = 0;
    tally->entries = 0;
    if (form->features > 0) return;
    pli_keymap_destroy(&tally->map);
    pli_keymap_init(&tally->map);
}
