/* Rows of a plait_data, read by block and row: from memory, from files, and from a cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <plait/data.h>

#include "base/base.h"

enum { ROWS = 200 };

/* Row r has features 0 and 1 + r % 5; label and weight follow from r. */
typedef struct sample {
    int64_t  start[ROWS + 1];
    uint32_t column[2 * ROWS];
    float    value[2 * ROWS], dense[ROWS * 6];
    double   label[ROWS], weight[ROWS];
} sample;

static sample make_sample(void) {
    sample s = { 0 };
    for (int r = 0; r < ROWS; r++) {
        uint32_t second = (uint32_t)(1 + r % 5);
        s.start[r + 1] = 2 * (r + 1);
        s.column[2 * r + 1] = second;
        s.value[2 * r] = 1;
        s.value[2 * r + 1] = (float)r + 0.5f;
        s.dense[r * 6] = 1;
        s.dense[(uint32_t)r * 6 + second] = (float)r + 0.5f;
        s.label[r] = r % 3;
        s.weight[r] = r % 2 + 1;
    }
    return s;
}

static void check_rows(const plait_data *data, const sample *s, bool weights) {
    plait_row   row;
    plait_error err;
    int64_t     r = 0;
    assert_true(plait_data_blocks(data) >= 64);
    for (int32_t b = 0; b < plait_data_blocks(data); b++)
        for (int64_t i = 0; i < plait_data_block_rows(data, b); i++, r++) {
            assert_int_equal(plait_data_row(data, b, i, &row, &err), PLAIT_OK);
            assert_int_equal(row.n, 2);
            for (int64_t k = 0; k < row.n; k++) {
                uint64_t key = row.column != NULL ? row.column[k] : row.key[k];
                assert_true((row.column == NULL) != (row.key == NULL));
                assert_true(key == s->column[2 * r + k]);
                assert_true((row.value == NULL ? 1 : row.value[k]) == s->value[2 * r + k]);
            }
            assert_true(row.label == s->label[r]);
            assert_true(row.weight == (weights ? s->weight[r] : 1));
        }
    assert_int_equal(r, ROWS);
    assert_int_equal(plait_data_rows(data), ROWS);
}

static void test_rows_of_memory(void **state) {
    (void)state;
    sample      s = make_sample();
    plait_error err;
    plait_data *data = NULL;
    assert_int_equal(plait_data_from_csr(ROWS, 6, s.start, s.column, s.value, s.label, s.weight, &data, &err),
                     PLAIT_OK);
    check_rows(data, &s, true);
    plait_data_destroy(&data);
    assert_int_equal(plait_data_from_dense(ROWS, 6, s.dense, s.label, NULL, &data, &err), PLAIT_OK);
    check_rows(data, &s, false);
    plait_data_destroy(&data);
}

static void test_rows_of_files(void **state) {
    (void)state;
    sample          s = make_sample();
    char           *dir = pli_temporary_directory("plait-rows"), path[512];
    plait_error     err;
    plait_data_opts opts;
    assert_non_null(dir);
    snprintf(path, sizeof path, "%s/rows.svm", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int r = 0; r < ROWS; r++)
        fprintf(file, "%g 0:1 %u:%g\n", s.label[r], s.column[2 * r + 1], (double)s.value[2 * r + 1]);
    fclose(file);
    const char *paths[] = { path };
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 1;
    for (int cached = 0; cached < 3; cached++) { /* 0: no cache, 1: it is written, 2: it is read */
        plait_data *data = NULL;
        opts.cache = cached > 0;
        if (plait_data_read(&opts, &data, &err) < 0) fail_msg("%s", err.text);
        check_rows(data, &s, false);
        plait_data_destroy(&data);
    }
    pli_remove_directory(dir);
    pli_free(dir);
}

/* Feature numbers beyond 32 bits. */
static void test_wide_features(void **state) {
    (void)state;
    char           *dir = pli_temporary_directory("plait-rows"), path[512];
    plait_error     err;
    plait_row       row;
    plait_data     *data = NULL;
    plait_data_opts opts;
    snprintf(path, sizeof path, "%s/wide.svm", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("1 0:1 5000000000:2\n", file);
    fclose(file);
    const char *paths[] = { path };
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 1;
    if (plait_data_read(&opts, &data, &err) < 0) fail_msg("%s", err.text);
    int32_t b = 0;
    while (plait_data_block_rows(data, b) == 0) b++;
    assert_int_equal(plait_data_row(data, b, 0, &row, &err), PLAIT_OK);
    assert_null(row.column);
    assert_true(row.n == 2 && row.key[0] == 0 && row.key[1] == UINT64_C(5000000000) && row.value[1] == 2);
    plait_data_destroy(&data);
    pli_remove_directory(dir);
    pli_free(dir);
}

static void test_rows_that_are_not_there(void **state) {
    (void)state;
    sample      s = make_sample();
    plait_error err;
    plait_row   row = { .n = -7 };
    plait_data *data = NULL;
    assert_int_equal(plait_data_from_dense(ROWS, 6, s.dense, s.label, NULL, &data, &err), PLAIT_OK);
    const int32_t blocks = plait_data_blocks(data);
    const struct {
        int32_t block;
        int64_t row;
    } none[] = { { -1, 0 }, { blocks, 0 }, { INT32_MAX, 0 }, { 0, -1 }, { 0, plait_data_block_rows(data, 0) },
                 { 0, INT64_MAX } };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(plait_data_row(data, none[i].block, none[i].row, &row, &err), PLAIT_EINVAL);
        assert_non_null(strstr(err.text, "there are"));
        assert_int_equal(row.n, -7);
    }
    assert_int_equal(plait_data_block_rows(data, -1), 0);
    assert_int_equal(plait_data_block_rows(data, blocks), 0);
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_memory),
        cmocka_unit_test(test_rows_of_files),
        cmocka_unit_test(test_wide_features),
        cmocka_unit_test(test_rows_that_are_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
