/* Rows that are taken are those of the whole, whatever block they lie in: of memory, with weights, with keys beyond 32
 * bits, with queries, which no block may part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "data/data.h"

enum { ROWS = 300, TAKEN = 170 };

static plait_data *read_text(const char *text) {
    char           *dir = pli_temporary_directory("plait-take"), path[512];
    const char     *paths[] = { path };
    plait_data     *data = NULL;
    plait_data_opts opts;
    plait_error     err;
    assert_non_null(dir);
    snprintf(path, sizeof path, "%s/rows.svm", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 1;
    if (plait_data_read(&opts, &data, &err) < 0) fail_msg("%s", err.text);
    pli_remove_directory(dir);
    pli_free(dir);
    return data;
}

/* Row i of a data set, counted over its blocks. */
static plait_row row_of(const plait_data *data, int64_t i) {
    plait_row   row;
    plait_error err;
    int32_t     b = 0;
    while (i >= plait_data_block_rows(data, b)) i -= plait_data_block_rows(data, b++);
    assert_int_equal(plait_data_row(data, b, i, &row, &err), PLAIT_OK);
    return row;
}

static uint64_t key_of(const plait_row *row, int64_t e) { return row->key != NULL ? row->key[e] : row->column[e]; }
static float value_of(const plait_row *row, int64_t e) { return row->value != NULL ? row->value[e] : 1.0f; }

static void check_same(const plait_data *whole, const int64_t *rows, int64_t n, const plait_data *taken) {
    assert_int_equal(plait_data_rows(taken), n);
    assert_int_equal(plait_data_features(taken), plait_data_features(whole));
    for (int64_t i = 0; i < n; i++) {
        const plait_row a = row_of(whole, rows[i]), b = row_of(taken, i);
        assert_int_equal(a.n, b.n);
        assert_true(a.label == b.label && a.weight == b.weight);
        for (int64_t e = 0; e < a.n; e++) {
            assert_true(key_of(&a, e) == key_of(&b, e));
            assert_true(value_of(&a, e) == value_of(&b, e));
        }
    }
}

static void take_and_check(const plait_data *whole, const int64_t *rows, int64_t n) {
    plait_data *taken = NULL;
    plait_error err;
    if (plait_data_take(whole, rows, n, &taken, &err) < 0) fail_msg("%s", err.text);
    check_same(whole, rows, n, taken);
    plait_data_destroy(&taken);
}

static void test_of_memory(void **state) {
    (void)state;
    static float  x[ROWS * 3];
    static double label[ROWS], weight[ROWS];
    int64_t       rows[TAKEN];
    plait_data   *whole = NULL;
    plait_error   err;
    for (int i = 0; i < ROWS; i++) {
        x[3 * i] = (float)i;
        x[3 * i + 1] = i % 2 == 0 ? 0.0f : 1.0f;
        x[3 * i + 2] = -1.5f;
        label[i] = i % 5;
        weight[i] = 1 + i % 3;
    }
    assert_int_equal(plait_data_from_dense(ROWS, 3, x, label, weight, &whole, &err), PLAIT_OK);
    for (int i = 0; i < TAKEN; i++) rows[i] = (i * 7 + 3) % ROWS; /* also backwards */
    take_and_check(whole, rows, TAKEN);
    take_and_check(whole, (const int64_t[]){ ROWS - 1 }, 1);
    take_and_check(whole, (const int64_t[]){ 5, 5, 5 }, 3);
    plait_data_destroy(&whole);
}

/* Only some blocks have keys beyond 32 bits, and only some have values. */
static void test_mixed_blocks(void **state) {
    (void)state;
    pli_text text = { 0 };
    int64_t  rows[ROWS];
    for (int i = 0; i < ROWS; i++) {
        rows[i] = ROWS - 1 - i;
        if (i < 100) pli_text_add(&text, "%d %d:1\n", i % 2, i + 1);
        else if (i < 200) pli_text_add(&text, "%d %d:0.5 %d:2\n", i % 2, i, i + 5);
        else pli_text_add(&text, "%d 7:1 %lld:3\n", i % 2, 6000000000LL + i);
    }
    plait_data *whole = read_text(text.data);
    take_and_check(whole, rows, ROWS);
    plait_data_destroy(&whole);
    pli_text_free(&text);
}

static void test_queries_stay_whole(void **state) {
    (void)state;
    pli_text     text = { 0 };
    int64_t      rows[ROWS], n = 0;
    plait_data  *taken = NULL;
    pli_dataset *set = NULL;
    plait_error  err;
    for (int i = 0; i < ROWS; i++) pli_text_add(&text, "%d qid:%d 1:%d\n", i % 3, i / 12, i + 1);
    plait_data *whole = read_text(text.data);
    for (int i = 0; i < ROWS; i++)
        if (i / 12 % 3 != 0) rows[n++] = i;
    assert_int_equal(plait_data_take(whole, rows, n, &taken, &err), PLAIT_OK);
    check_same(whole, rows, n, taken);
    assert_int_equal(pli_dataset_of_memory(taken, 0, 1, &set, &err), PLAIT_OK);
    int64_t  seen = 0;
    uint64_t last = 0;
    for (int32_t b = 0; b < pli_dataset_own_blocks(set); b++) {
        const pli_block *block = pli_dataset_block(set, b);
        assert_int_equal(block->first_row, seen);
        if (block->rows > 0) assert_true(block->query[0] != last); /* it begins with a query of its own */
        if (block->rows > 0) last = block->query[block->rows - 1];
        seen += block->rows;
    }
    assert_int_equal(seen, n);
    pli_dataset_destroy(&set);
    plait_data_destroy(&taken);
    plait_data_destroy(&whole);
    pli_text_free(&text);
}

static void test_rows_that_are_not_there(void **state) {
    (void)state;
    plait_data *whole = read_text("1 1:1\n0 1:2\n"), *taken = NULL;
    plait_error err;
    const int64_t none[] = { -1, 2, INT64_MAX, INT64_MIN };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(plait_data_take(whole, &none[i], 1, &taken, &err), PLAIT_EINVAL);
        assert_non_null(strstr(err.text, "there are 2"));
    }
    assert_int_equal(plait_data_take(whole, none, 0, &taken, &err), PLAIT_EINVAL);
    assert_null(taken);
    plait_data_destroy(&whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_memory),
        cmocka_unit_test(test_mixed_blocks),
        cmocka_unit_test(test_queries_stay_whole),
        cmocka_unit_test(test_rows_that_are_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
