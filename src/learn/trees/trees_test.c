/* Tests trees as arrays: what is no tree is refused, and a tree survives the way to arrays and back. Tests the best
 * split and the value of a leaf beside the formulas, histograms beside sums one by one, and that contributions to deep
 * trees are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "learn/trees/trees.h"

enum { NODES = 5 };

/* x0 <= 1 ? (x1 <= 2 ? 10 : 20) : 30; a missing x0 goes left */
static const int64_t whole[NODES][PLI_TREES_WHOLE] = {
    { 0, 1, 2, 1, 9 }, { 1, 3, 4, 0, 5 }, { -1, 0, 0, 0, 4 }, { -1, 0, 0, 0, 3 }, { -1, 0, 0, 0, 2 },
};
static const double real[NODES][PLI_TREES_REAL] = {
    { 1, 0, 7, 9 }, { 2, 0, 3, 5 }, { 0, 30, 0, 4 }, { 0, 10, 0, 3 }, { 0, 20, 0, 2 },
};
static const int64_t start[2] = { 0, NODES };

static plait_status take(const int64_t w[NODES][PLI_TREES_WHOLE], const double r[NODES][PLI_TREES_REAL],
                         const int64_t *from, int64_t n) {
    pli_trees    trees;
    plait_error  err;
    assert_int_equal(pli_trees_make(&trees, NULL, 2, 1, &err), PLAIT_OK);
    const plait_status status = pli_trees_take(&trees, &(pli_trees_arrays){ .n = n, .nodes = NODES, .start = from,
                                                                    .whole = &w[0][0], .real = &r[0][0] }, &err);
    if (status == PLAIT_OK) {
        int64_t back[NODES][PLI_TREES_WHOLE];
        double  values[NODES][PLI_TREES_REAL];
        pli_trees_lay_out(&trees, &back[0][0], &values[0][0]);
        assert_memory_equal(back, w, sizeof back);
        assert_memory_equal(values, r, sizeof values);
    }
    pli_trees_free(&trees);
    return status;
}

static void trees_become_arrays_and_back(void **state) {
    (void)state;
    assert_int_equal(take(whole, real, start, 1), PLAIT_OK);
}

/* Each change of one number makes it no tree. */
static void what_is_no_tree_is_refused(void **state) {
    static const struct {
        int     node, at;
        int64_t value;
    } bad[] = { { 0, 0, 2 },          { 0, 0, -2 }, { 0, 1, 0 },  { 0, 1, NODES }, { 0, 1, 2 }, { 1, 1, 2 },
                { 1, 2, INT64_MAX }, { 1, 0, -1 }, { 2, 0, 1 }, { 0, 2, 3 } };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t changed[NODES][PLI_TREES_WHOLE];
        memcpy(changed, whole, sizeof changed);
        changed[bad[i].node][bad[i].at] = bad[i].value;
        assert_int_equal(take((const int64_t(*)[PLI_TREES_WHOLE])changed, real, start, 1), PLAIT_EFORMAT);
    }
    double values[NODES][PLI_TREES_REAL];
    memcpy(values, real, sizeof values);
    values[3][1] = NAN;
    assert_int_equal(take(whole, (const double(*)[PLI_TREES_REAL])values, start, 1), PLAIT_EFORMAT);
    assert_int_equal(take(whole, real, (const int64_t[]){ 0, 4 }, 1), PLAIT_EFORMAT);
    assert_int_equal(take(whole, real, (const int64_t[]){ 0, 6, 5 }, 2), PLAIT_EFORMAT);
    assert_int_equal(take(whole, real, (const int64_t[]){ 0, 5, 5 }, 2), PLAIT_EFORMAT);
}

/* One feature of three bins and one for missing values. */
static pli_split best_of(const int64_t g[4], const int64_t n[4], pli_tree_rules *rules) {
    int32_t       count = 3;
    bool          missing = true;
    int64_t       offset[2] = { 0, 4 };
    uint8_t      *of_code = NULL;
    pli_bins      bins = { .used = 1, .to = 1, .count = &count, .missing = &missing, .offset = offset,
                           .of_code = &of_code };
    pli_sum_scale scale = { .count_bits = 8, .g = 1, .h = 1 };
    pli_sum_cell  cell[5] = { { 0 } };
    for (int i = 0; i < 4; i++) {
        cell[i] = (pli_sum_cell){ g[i], (n[i] << 8) + n[i] };
        cell[4].g += cell[i].g;
        cell[4].hn += cell[i].hn;
    }
    return pli_split_find(&bins, rules, &scale, cell, PLI_UNBOUND, NULL, NULL);
}

static void the_best_split_is_found(void **state) {
    (void)state;
    pli_tree_rules    rules = { .l2 = 1, .min_rows = 1 };
    const pli_split   s = best_of((const int64_t[]){ -6, 2, 4, -5 }, (const int64_t[]){ 3, 1, 2, 4 }, &rules);
    /* missing values go left, with the first bin */
    const double      gain = 11.0 * 11 / 8 + 6.0 * 6 / 4 - 5.0 * 5 / 11;
    assert_int_equal(s.bin, 0);
    assert_true(s.missing_left);
    assert_true(fabs(s.gain - gain) < 1e-12);
    rules.min_rows = 4;
    assert_true(best_of((const int64_t[]){ -6, 2, 4, -5 }, (const int64_t[]){ 3, 1, 2, 4 }, &rules).gain < gain);
    rules = (pli_tree_rules){ .l2 = 1, .min_rows = 1, .min_gain = gain };
    assert_true(best_of((const int64_t[]){ -6, 2, 4, -5 }, (const int64_t[]){ 3, 1, 2, 4 }, &rules).gain == 0);
    rules = (pli_tree_rules){ .l1 = 20, .min_rows = 1 };
    assert_true(best_of((const int64_t[]){ -6, 2, 4, -5 }, (const int64_t[]){ 3, 1, 2, 4 }, &rules).gain == 0);
    /* only the missing values differ */
    rules = (pli_tree_rules){ .l2 = 1, .min_rows = 1 };
    const pli_split apart = best_of((const int64_t[]){ 1, 1, 1, -9 }, (const int64_t[]){ 1, 1, 1, 3 }, &rules);
    assert_int_equal(apart.bin, 2);
    assert_false(apart.missing_left);
}

/* Six texts of ten rows each; the last bin is of rows without one. */
static void texts_are_split_by_sorted_gradient(void **state) {
    static const int64_t g[7] = { 9, -8, 7, -9, 1, -7, 2 };
    int32_t              count = 6;
    bool                 missing = true;
    int64_t              offset[2] = { 0, 7 };
    uint8_t              bin_of[6] = { 0, 1, 2, 3, 4, 5 }, *of_code = bin_of;
    pli_bins             bins = { .used = 1, .to = 1, .count = &count, .missing = &missing, .offset = offset,
                                  .of_code = &of_code };
    pli_sum_scale        scale = { .count_bits = 8, .g = 1, .h = 1 };
    pli_sum_cell         cell[8] = { { 0 } };
    pli_tree_rules       rules = { .l2 = 1, .min_rows = 1, .text_most = 32, .text_l2 = 3, .text_smooth = 10 };
    (void)state;
    for (int i = 0; i < 7; i++) {
        cell[i] = (pli_sum_cell){ g[i], (10 << 8) + 10 };
        cell[7].g += cell[i].g;
        cell[7].hn += cell[i].hn;
    }
    const pli_split s = pli_split_find(&bins, &rules, &scale, cell, PLI_UNBOUND, NULL, NULL);
    assert_true(s.by_set && s.set[0] == ((1u << 1) | (1u << 3) | (1u << 5)) && s.set[1] == 0);
    assert_false(s.missing_left);
    assert_true(s.l2 == 3);
    assert_true(fabs(s.gain - (24.0 * 24 / 34 + 19.0 * 19 / 44 - 5.0 * 5 / 71)) < 1e-12);
    rules.text_most = 2; /* no three texts of a side */
    const pli_split two = pli_split_find(&bins, &rules, &scale, cell, PLI_UNBOUND, NULL, NULL);
    assert_int_equal(__builtin_popcountll(two.set[0]), 2);
    rules.text_smooth = 11; /* no text has so many rows */
    assert_true(pli_split_find(&bins, &rules, &scale, cell, PLI_UNBOUND, NULL, NULL).gain == 0);
    rules.text_smooth = 10;
    rules.text_rows = 51; /* nor a side */
    assert_true(pli_split_find(&bins, &rules, &scale, cell, PLI_UNBOUND, NULL, NULL).gain == 0);
    count = 4; /* of so few, each against the others */
    offset[1] = 5;
    const pli_sum_cell few[6] = { cell[0], cell[1], cell[2], cell[3], { 0, 0 }, { -1, (40 << 8) + 40 } };
    const pli_split    one = pli_split_find(&bins, &rules, &scale, few, PLI_UNBOUND, NULL, NULL);
    assert_true(one.by_set && one.l2 == 0 && __builtin_popcountll(one.set[0]) == 1);
}

static void leaves_shrink(void **state) {
    (void)state;
    const pli_tree_rules rules = { .l1 = 1, .l2 = 2 };
    assert_true(pli_leaf_value(&rules, -5, 6, PLI_UNBOUND) == 0.5);
    assert_true(pli_leaf_value(&rules, 5, 6, PLI_UNBOUND) == -0.5);
    assert_true(pli_leaf_value(&rules, 0.5, 6, PLI_UNBOUND) == 0);
    assert_true(pli_leaf_value(&rules, -5, 6, (pli_bounds){ -1, 0.25 }) == 0.25);
    assert_true(pli_leaf_value(&(pli_tree_rules){ .l2 = 0 }, 1, 0, PLI_UNBOUND) == 0);
}

/* Dense rows of `used` features in stretches, whose bins follow from row and feature. */
static uint8_t bin_at(int64_t row, int32_t j, int32_t count) {
    return (uint8_t)((uint64_t)(row * 31 + j * 17 + row * j) % (uint64_t)(count + 1));
}

enum { MOST_USED = 70, MANY_ROWS = 9000 };

static void fill_rows(int32_t used, const int32_t *count, pli_bin_rows *rows) {
    rows->n = MANY_ROWS;
    rows->stretches = (used + PLI_ROWS_WIDTH - 1) / PLI_ROWS_WIDTH;
    rows->first = pli_array((size_t)rows->stretches + 1, sizeof *rows->first);
    rows->dense = pli_calloc((size_t)rows->stretches, sizeof *rows->dense);
    for (int32_t s = 0; s <= rows->stretches; s++) rows->first[s] = used * s / rows->stretches;
    for (int32_t s = 0; s < rows->stretches; s++) {
        const int64_t stride = pli_rows_stride(rows->first[s + 1] - rows->first[s]);
        rows->dense[s] = pli_aligned((size_t)(MANY_ROWS * stride));
        memset(rows->dense[s], 255, (size_t)(MANY_ROWS * stride)); /* what lies behind a row's bins is no bin */
        for (int64_t r = 0; r < MANY_ROWS; r++)
            for (int32_t j = rows->first[s]; j < rows->first[s + 1]; j++)
                rows->dense[s][r * stride + j - rows->first[s]] = bin_at(r, j, count[j]);
    }
}

static void histogram_is(const pli_bins *bins, int64_t n, const uint32_t *order, const pli_sum_cell *cell,
                         const pli_sum_cell *got) {
    static pli_sum_cell want[MOST_USED * (PLI_BINS_MOST + 1) + 1];
    const int64_t       cells = pli_bins_cells(bins);
    memset(want, 0, (size_t)cells * sizeof *want);
    for (int64_t i = 0; i < n; i++) {
        const pli_sum_cell *from = &cell[order[i]];
        for (int32_t j = 0; j <= bins->used; j++) {
            const int64_t at = j < bins->used ? bins->offset[j] + bin_at(order[i], j, bins->count[j]) : cells - 1;
            want[at].g += from->g;
            want[at].hn += from->hn;
        }
    }
    assert_memory_equal(got, want, (size_t)cells * sizeof *want);
}

/* Rows that lie together and rows that lie apart, a few and many, stretches of all widths, one thread and three. */
static void histograms_are_sums_of_rows(void **state) {
    static pli_sum_cell cell[MANY_ROWS], got[MOST_USED * (PLI_BINS_MOST + 1) + 1];
    static uint32_t     order[MANY_ROWS];
    static const int32_t widths[] = { 1, 3, 8, 11, 14, 16, 21, 32, 33, MOST_USED };
    int32_t             count[MOST_USED];
    int64_t             offset[MOST_USED + 1] = { 0 };
    plait_error         err;
    (void)state;
    for (int64_t r = 0; r < MANY_ROWS; r++) cell[r] = (pli_sum_cell){ (r * 7919 % 1000) - 500, (r % 13 << 20) + 1 };
    for (int32_t j = 0; j < MOST_USED; j++) {
        count[j] = 1 + j * 37 % PLI_BINS_MOST;
        offset[j + 1] = offset[j] + count[j] + 1;
    }
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int32_t threads = 1; threads <= 3; threads += 2) {
            const pli_bins bins = { .used = widths[i], .to = widths[i], .count = count, .offset = offset };
            pli_bin_rows   rows = { 0 };
            pli_histograms h;
            pli_pool      *pool = NULL;
            fill_rows(widths[i], count, &rows);
            assert_int_equal(pli_pool_create(threads, &pool, &err), PLAIT_OK);
            assert_int_equal(pli_histograms_make(&h, &bins, &rows, pool, &err), PLAIT_OK);
            for (int64_t apart = 1; apart <= 5; apart += 2) {
                int64_t n = 0;
                for (int64_t r = apart - 1; r < MANY_ROWS; r += r % 64 < 60 ? apart : 1) order[n++] = (uint32_t)r;
                const int64_t take[] = { n, n / 2 + 1, 5, 0 };
                for (size_t k = 0; k < sizeof take / sizeof *take; k++) {
                    pli_histograms_add(&h, take[k], order, cell, got);
                    histogram_is(&bins, take[k], order, cell, got);
                }
            }
            pli_histograms_free(&h);
            pli_pool_destroy(&pool);
            pli_bin_rows_free(&rows);
        }
}

/* A chain: node 2 i splits, its left child is a leaf. */
static void deep_trees_have_no_contributions(void **state) {
    enum { LEVELS = 1001 };
    static pli_tree_node node[2 * LEVELS + 1];
    pli_gbdt_model       own = { 0 };
    plait_model          model = { .own = &own };
    plait_error          err;
    double               out[3];
    (void)state;
    for (int32_t i = 0; i < 2 * LEVELS + 1; i++) {
        node[i] = (pli_tree_node){ .feature = -1 };
        if (i % 2 == 0 && i < 2 * LEVELS) node[i] = (pli_tree_node){ .left = i + 1, .right = i + 2 };
    }
    assert_int_equal(pli_trees_make(&own.trees, NULL, 2, 1, &err), PLAIT_OK);
    assert_int_equal(pli_trees_add(&own.trees, 2 * LEVELS + 1, node, NULL, &err), PLAIT_OK);
    assert_int_equal(pli_gbdt_contributions_width(&model), 3);
    assert_int_equal(pli_gbdt_contributions(&model, NULL, out, &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "1001 levels"));
    pli_trees_free(&own.trees);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(trees_become_arrays_and_back),
                                        cmocka_unit_test(what_is_no_tree_is_refused),
                                        cmocka_unit_test(the_best_split_is_found),
                                        cmocka_unit_test(texts_are_split_by_sorted_gradient),
                                        cmocka_unit_test(leaves_shrink),
                                        cmocka_unit_test(histograms_are_sums_of_rows),
                                        cmocka_unit_test(deep_trees_have_no_contributions) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
