/* IDX images and their labels: every type of element, cuts at rows, where labels are found, refusals; the rows are
 * the same streamed, and for any number of workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/formats/array_case.h"
#include "data/formats/idx.h"

static void put(unsigned char *at, uint64_t x, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) at[i] = (unsigned char)(x >> 8 * (bytes - 1 - i));
}

/* Writes a file of this type and shape, whose element i is value(i). */
static void write_idx(const char *name, int type, int axes, const uint32_t *length, double (*value)(int64_t i)) {
    unsigned char data[1 << 16] = { 0, 0, (unsigned char)type, (unsigned char)axes };
    static const size_t bytes_of[] = { [8] = 1, [9] = 1, [11] = 2, [12] = 4, [13] = 4, [14] = 8 };
    const size_t  bytes = bytes_of[type];
    size_t        at = 4;
    int64_t       n = 1;
    for (int i = 0; i < axes; i++, at += 4) {
        put(data + at, length[i], 4);
        n *= length[i];
    }
    for (int64_t i = 0; i < n; i++, at += bytes) {
        const double x = value(i);
        const float  narrow = (float)x;
        uint64_t     bits = 0;
        uint32_t     low;
        memcpy(&bits, &x, sizeof bits);
        memcpy(&low, &narrow, sizeof low);
        put(data + at, type == 14 ? bits : type == 13 ? low : (uint64_t)(int64_t)x, bytes);
    }
    FILE *file = fopen(in_directory(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, at, file), at);
    fclose(file);
}

static double pixel(int64_t i) { return (double)(i % 7 == 0 ? 0 : i % 100); }
static double signed_pixel(int64_t i) { return pixel(i) - 50; }
static double digit(int64_t i) { return (double)(i * 3 % 10); }

static plait_status open_idx(const char *name, const char *label, int32_t worker, int32_t workers, pli_dataset **out,
                             plait_error *err) {
    const char     *paths[] = { in_directory(name) };
    plait_data_opts opts;
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 1;
    opts.label = label;
    return pli_dataset_open(&opts, NULL, worker, workers, out, err);
}

static pli_dataset *load(const char *name, const char *label, int32_t worker, int32_t workers) {
    plait_error  err;
    pli_dataset *d = NULL;
    plait_status status = open_idx(name, label, worker, workers, &d, &err);
    if (status == PLAIT_OK) status = pli_dataset_load(d, NULL, &err);
    if (status < 0) fail_msg("%s", err.text);
    return d;
}

/* Checks the label and pixels of row `row` of the whole file. */
static void assert_row(const pli_block *b, int64_t at, int64_t row, int64_t features, double (*value)(int64_t i)) {
    assert_true(b->label[at] == digit(row));
    int64_t e = b->row_start[at];
    for (int64_t j = 0; j < features; j++) {
        const double want = value(row * features + j);
        if (want == 0) continue;
        assert_true(e < b->row_start[at + 1]);
        assert_int_equal(b->col[e], j);
        assert_true((double)b->value[e] == want);
        e++;
    }
    assert_int_equal(e, b->row_start[at + 1]);
}

static void test_rows_of_every_type(void **state) {
    (void)state;
    static const int types[] = { 8, 9, 11, 12, 13, 14 };
    const uint32_t   shape[] = { 150, 3, 5 }, n[] = { 150 };
    write_idx("t-labels-idx1-ubyte", 8, 1, n, digit);
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        double (*value)(int64_t) = types[k] == 8 ? pixel : signed_pixel;
        write_idx("t-images-idx3-ubyte", types[k], 3, shape, value);
        pli_dataset *d = load("t-images-idx3-ubyte", NULL, 0, 1);
        assert_int_equal(pli_schema_features(pli_dataset_schema(d)), 15);
        assert_int_equal(pli_schema_labels(pli_dataset_schema(d)), 10);
        assert_int_equal(pli_dataset_rows(d), 150);
        int64_t row = 0;
        for (int32_t b = 0; b < pli_dataset_own_blocks(d); b++)
            for (int64_t i = 0; i < pli_dataset_block(d, b)->rows; i++)
                assert_row(pli_dataset_block(d, b), i, row++, 15, value);
        assert_int_equal(row, 150);
        pli_dataset_destroy(&d);
    }
}

static void test_features_are_named_by_their_place(void **state) {
    (void)state;
    const uint32_t shape[] = { 10, 3, 5 }, n[] = { 10 };
    write_idx("n-labels-idx1-ubyte", 8, 1, n, digit);
    write_idx("n-images-idx3-ubyte", 8, 3, shape, pixel);
    pli_dataset *d = load("n-images-idx3-ubyte", NULL, 0, 1);
    pli_text     name = { 0 }, json = { 0 };
    plait_error  err;
    pli_schema  *again = NULL;
    pli_schema_feature_name(pli_dataset_schema(d), 13, &name);
    assert_string_equal(name.data, "2,3");
    assert_int_equal(pli_schema_write_model(pli_dataset_schema(d), &json, &err), PLAIT_OK);
    assert_int_equal(pli_schema_read(json.data, json.length, &again, &err), PLAIT_OK);
    assert_int_equal(pli_schema_features(again), 15);
    pli_schema_destroy(&again);
    pli_text_free(&json);
    pli_text_free(&name);
    pli_dataset_destroy(&d);
}

static void test_workers_share_the_rows(void **state) {
    (void)state;
    const uint32_t shape[] = { 130, 2, 2 }, n[] = { 130 };
    write_idx("w-labels-idx1-ubyte", 8, 1, n, digit);
    write_idx("w-images-idx3-ubyte", 8, 3, shape, pixel);
    int64_t row = 0;
    for (int32_t w = 0; w < 3; w++) {
        pli_dataset *d = load("w-images-idx3-ubyte", NULL, w, 3);
        for (int32_t b = 0; b < pli_dataset_own_blocks(d); b++)
            for (int64_t i = 0; i < pli_dataset_block(d, b)->rows; i++)
                assert_row(pli_dataset_block(d, b), i, row++, 4, pixel);
        pli_dataset_destroy(&d);
    }
    assert_int_equal(row, 130);
}

static void test_a_stream_has_the_same_rows(void **state) {
    (void)state;
    const uint32_t shape[] = { 130, 2, 2 }, n[] = { 130 };
    write_idx("s-labels-idx1-ubyte", 8, 1, n, digit);
    write_idx("s-images-idx3-ubyte", 8, 3, shape, pixel);
    plait_error  err;
    pli_dataset *d = NULL;
    pli_batches *s = NULL;
    assert_int_equal(open_idx("s-images-idx3-ubyte", NULL, 0, 1, &d, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_scan(d, false, NULL, &err), PLAIT_OK);
    pli_schema       *joined = NULL;
    const pli_schema *part = pli_dataset_schema(d);
    assert_int_equal(pli_schema_merge(&part, 1, &joined, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_agree(d, joined, &err), PLAIT_OK);
    assert_int_equal(pli_batches_stream(d, 20, NULL, &s, &err), PLAIT_OK);
    int64_t rows = 0;
    for (int64_t clock = 0; clock < pli_batches_clocks(s); clock++) {
        pli_batch batch;
        assert_int_equal(pli_batches_get(s, 0, clock, &batch, &err), PLAIT_OK);
        for (int32_t p = 0; p < batch.parts; p++)
            for (int64_t i = batch.part[p].first; i < batch.part[p].first + batch.part[p].rows; i++, rows++) {
                const pli_block *b = batch.part[p].block;
                assert_int_equal(b->row_start[i + 1] - b->row_start[i] <= 4, 1);
                assert_true(b->label[i] >= 0 && b->label[i] < 10);
            }
    }
    assert_int_equal(rows, 130);
    pli_batches_destroy(&s);
    pli_schema_destroy(&joined);
    pli_dataset_destroy(&d);
}

static void assert_refused(const char *name, const char *label, plait_status code, const char *part) {
    plait_error  err = { .code = PLAIT_OK };
    pli_dataset *d = NULL;
    plait_status status = open_idx(name, label, 0, 1, &d, &err);
    if (status == PLAIT_OK) status = pli_dataset_load(d, NULL, &err);
    pli_dataset_destroy(&d);
    assert_int_equal(status, code);
    if (strstr(err.text, part) == NULL) fail_msg("'%s' does not say '%s'", err.text, part);
}

static double not_finite(int64_t i) { return i == 5 ? (double)NAN : 1; }

static void test_refusals(void **state) {
    (void)state;
    const uint32_t shape[] = { 20, 2, 2 }, n[] = { 20 }, few[] = { 19 }, square[] = { 4, 5 };
    write_idx("alone", 8, 3, shape, pixel);
    write_idx("labels", 8, 1, n, digit);
    write_idx("few", 8, 1, few, digit);
    write_idx("square", 8, 2, square, digit);
    write_idx("nan", 13, 3, shape, not_finite);
    assert_refused("alone", NULL, PLAIT_EINVAL, "--label FILE");
    assert_refused("alone", in_directory("few"), PLAIT_EMISMATCH, "19 labels");
    assert_refused("alone", in_directory("square"), PLAIT_EFORMAT, "one axis");
    assert_refused("alone", "3", PLAIT_EIO, "the labels of idx images are in a file");
    assert_refused("nan", in_directory("labels"), PLAIT_EFORMAT, "row 1 has a number that is not finite");
    pli_dataset *d = load("alone", in_directory("labels"), 0, 1);
    assert_int_equal(pli_dataset_rows(d), 20);
    pli_dataset_destroy(&d);
    assert_int_equal(truncate(in_directory("alone"), 40), 0);
    assert_refused("alone", in_directory("labels"), PLAIT_EFORMAT, "cut short or altered");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_every_type),     cmocka_unit_test(test_features_are_named_by_their_place),
        cmocka_unit_test(test_workers_share_the_rows), cmocka_unit_test(test_a_stream_has_the_same_rows),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_directory, drop_directory);
}
