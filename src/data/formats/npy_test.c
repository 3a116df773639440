/* NumPy arrays: every type and order gives the rows of the same numbers as CSV, for any number of workers and streamed;
 * labels in columns and files; missing numbers; origins; refusals. */
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
#include "data/formats/npy.h"

/* --- files ------------------------------------------------------------------------------------------------------ */

typedef struct array {
    const char *descr;
    int         version;
    bool        fortran;
    int         axes; /* 0: two */
    int64_t     rows, columns;
    double (*value)(int64_t row, int64_t column);
} array;

static uint64_t bits_of(const char *descr, double x) {
    const float single = (float)x;
    uint64_t    bits = 0;
    uint32_t    low;
    if (descr[1] != 'f') return (uint64_t)(int64_t)x;
    memcpy(&bits, &x, sizeof bits);
    memcpy(&low, &single, sizeof low);
    return descr[2] == '8' ? bits : low;
}

static void put_element(FILE *file, const char *descr, double x) {
    const int      bytes = descr[2] - '0';
    const uint64_t bits = bits_of(descr, x);
    for (int i = 0; i < bytes; i++) fputc((int)(bits >> 8 * (descr[0] == '>' ? bytes - 1 - i : i) & 255), file);
}

static void write_header(FILE *file, const array *a) {
    char text[128], shape[48];
    if (a->axes == 1) snprintf(shape, sizeof shape, "(%lld,)", (long long)a->rows);
    else snprintf(shape, sizeof shape, "(%lld, %lld)", (long long)a->rows, (long long)a->columns);
    const int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", a->descr,
                           a->fortran ? "True" : "False", shape);
    fprintf(file, "\x93NUMPY%c%c", a->version > 0 ? a->version : 1, 0);
    for (int i = 0; i < (a->version > 1 ? 4 : 2); i++) fputc(n >> 8 * i & 255, file);
    fputs(text, file);
}

static void write_npy(const char *name, const array *a) {
    FILE *file = fopen(in_directory(name), "wb");
    assert_non_null(file);
    write_header(file, a);
    for (int64_t i = 0; i < (a->fortran ? a->columns : a->rows); i++)
        for (int64_t k = 0; k < (a->fortran ? a->rows : a->columns); k++)
            put_element(file, a->descr, a->value(a->fortran ? k : i, a->fortran ? i : k));
    fclose(file);
}

static void write_bytes(const char *name, const char *bytes, size_t n) {
    FILE *file = fopen(in_directory(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

/* The label is column 0: 0 to 2. */
static double small(int64_t row, int64_t column) {
    return column == 0 ? (double)(row % 3) : (double)((row * 7 + column * 5) % 11);
}
static double one_is_missing(int64_t row, int64_t column) {
    return row == 4 && column == 2 ? (double)NAN : small(row, column);
}
static double second(int64_t row, int64_t column) {
    return column == 1 ? 1764172800.0 + 60 * (double)row : small(row, column);
}
static double bit(int64_t row, int64_t column) { return fmod(small(row, column), 2); }
static double is_infinite(int64_t row, int64_t column) {
    return row == 17 && column == 3 ? (double)INFINITY : small(row, column);
}
static double only_label(int64_t row, int64_t column) {
    (void)column;
    return small(row, 0);
}
static double no_label(int64_t row, int64_t column) { return small(row, column + 1); }

/* --- reading ---------------------------------------------------------------------------------------------------- */

static plait_data_opts opts_of(const char **paths, int64_t n, const char *label) {
    plait_data_opts opts;
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = n;
    opts.label = label;
    return opts;
}

static pli_dataset *load(const char *name, const char *label, int32_t worker, int32_t workers) {
    const char     *paths[] = { in_directory(name) };
    plait_data_opts opts = opts_of(paths, 1, label);
    plait_error     err;
    pli_dataset    *d = NULL;
    opts.origins = 1;
    plait_status status = pli_dataset_open(&opts, NULL, worker, workers, &d, &err);
    if (status == PLAIT_OK) status = pli_dataset_load(d, NULL, &err);
    if (status < 0) fail_msg("%s", err.text);
    return d;
}

/* Row `row` of a file of `columns` columns, of which the first is the label. */
static void assert_row(const pli_block *b, int64_t at, int64_t row, int64_t columns,
                       double (*value)(int64_t row, int64_t column)) {
    assert_true(b->label[at] == value(row, 0));
    int64_t e = b->row_start[at];
    for (int64_t j = 1; j < columns; j++) {
        if (value(row, j) == 0) continue;
        assert_true(e < b->row_start[at + 1]);
        assert_int_equal(b->col[e], j - 1);
        assert_true((double)b->value[e] == value(row, j));
        e++;
    }
    assert_int_equal(e, b->row_start[at + 1]);
}

static int64_t assert_rows(const pli_dataset *d, int64_t row, int64_t columns,
                           double (*value)(int64_t row, int64_t column)) {
    for (int32_t b = 0; b < pli_dataset_own_blocks(d); b++)
        for (int64_t i = 0; i < pli_dataset_block(d, b)->rows; i++)
            assert_row(pli_dataset_block(d, b), i, row++, columns, value);
    return row;
}

static void test_rows_of_every_type_and_order(void **state) {
    (void)state;
    static const char *const types[] = { "<f4", "<f8", ">f4", ">f8", "|i1", "<i2", ">i2", "<i4", "=i8", ">i8",
                                         "|u1", "<u2", "<u4", ">u4", "<u8", "|b1" };
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        for (int way = 0; way < 4; way++) {
            double (*value)(int64_t, int64_t) = types[k][1] == 'b' ? bit : small;
            write_npy("t.npy", &(array){ .descr = types[k], .version = way % 3 + 1, .fortran = way % 2 == 1,
                                         .rows = 150, .columns = 5, .value = value });
            pli_dataset *d = load("t.npy", "1", 0, 1);
            assert_int_equal(pli_schema_features(pli_dataset_schema(d)), 4);
            assert_int_equal(pli_schema_labels(pli_dataset_schema(d)), types[k][1] == 'b' ? 2 : 3);
            assert_int_equal(assert_rows(d, 0, 5, value), 150);
            pli_dataset_destroy(&d);
        }
}

static void test_half_floats(void **state) {
    (void)state;
    static const unsigned char file[] = { 0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00, 0xff, 0x7b, 0x00, 0x7c, 0x01, 0x7e };
    const pli_npy_array        a = { .kind = 'f', .item = 2 };
    const double               want[] = { 1, -2, 5.9604644775390625e-08, 65504, (double)INFINITY };
    for (int i = 0; i < 5; i++) assert_true(pli_npy_element(&a, file + 2 * i) == want[i]);
    assert_true(isnan(pli_npy_element(&a, file + 10)));
}

static void test_workers_share_the_rows(void **state) {
    (void)state;
    for (int fortran = 0; fortran < 2; fortran++) {
        write_npy("w.npy", &(array){ .descr = "<f8", .fortran = fortran == 1, .rows = 130, .columns = 4,
                                     .value = small });
        int64_t row = 0;
        for (int32_t w = 0; w < 3; w++) {
            pli_dataset *d = load("w.npy", "1", w, 3);
            row = assert_rows(d, row, 4, small);
            pli_dataset_destroy(&d);
        }
        assert_int_equal(row, 130);
    }
}

/* The joined schema of one part. */
static pli_schema *join(pli_dataset *d) {
    pli_schema       *joined = NULL;
    plait_error       err;
    const pli_schema *part = pli_dataset_schema(d);
    if (pli_schema_merge(&part, 1, &joined, &err) < 0 || pli_dataset_agree(d, joined, &err) < 0)
        fail_msg("%s", err.text);
    return joined;
}

static void test_a_stream_has_the_same_rows(void **state) {
    (void)state;
    write_npy("s.npy", &(array){ .descr = "<f4", .fortran = true, .rows = 130, .columns = 4, .value = small });
    const char     *paths[] = { in_directory("s.npy") };
    plait_data_opts opts = opts_of(paths, 1, "c1");
    plait_error     err;
    pli_dataset    *d = NULL;
    pli_batches    *s = NULL;
    pli_pool       *pool = NULL;
    uint8_t         seen[130] = { 0 };
    assert_int_equal(pli_dataset_open(&opts, NULL, 0, 1, &d, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_scan(d, false, NULL, &err), PLAIT_OK);
    pli_schema *joined = join(d);
    assert_int_equal(pli_batches_stream(d, 20, pool, &s, &err), PLAIT_OK);
    for (int64_t clock = 0; clock < pli_batches_clocks(s); clock++) {
        pli_batch batch;
        assert_int_equal(pli_batches_get(s, 0, clock, &batch, &err), PLAIT_OK);
        for (int32_t p = 0; p < batch.parts; p++)
            for (int64_t i = batch.part[p].first; i < batch.part[p].first + batch.part[p].rows; i++) {
                const int64_t row = batch.part[p].block->first_row + i;
                assert_row(batch.part[p].block, i, row, 4, small);
                seen[row]++;
            }
    }
    for (int i = 0; i < 130; i++) assert_int_equal(seen[i], 1);
    pli_batches_destroy(&s);
    pli_schema_destroy(&joined);
    pli_dataset_destroy(&d);
}

static void test_labels_in_a_file(void **state) {
    (void)state;
    write_npy("X_a.npy", &(array){ .descr = "<f4", .rows = 40, .columns = 3, .value = no_label });
    write_npy("other.npy", &(array){ .descr = "|u1", .axes = 1, .rows = 40, .columns = 1, .value = only_label });
    pli_dataset *d = load("X_a.npy", in_directory("other.npy"), 0, 1);
    pli_text     label = { 0 };
    assert_int_equal(assert_rows(d, 0, 4, small), 40);
    pli_dataset_label(d, &label);
    assert_string_equal(label.data, "other.npy");
    pli_text_free(&label);
    pli_dataset_destroy(&d);
    write_npy("y_a.npy", &(array){ .descr = "<i8", .rows = 40, .columns = 1, .value = only_label });
    d = load("X_a.npy", NULL, 0, 1); /* beside it, of two axes */
    assert_int_equal(assert_rows(d, 0, 4, small), 40);
    assert_non_null(strstr(pli_dataset_notes(d), "y_a.npy"));
    pli_dataset_destroy(&d);
    d = load("X_a.npy", "none", 0, 1);
    assert_true(isnan(pli_dataset_block(d, 0)->label[0]));
    assert_false(pli_dataset_has_label_file(d));
    pli_dataset_destroy(&d);
}

static void test_missing_numbers_take_the_mean(void **state) {
    (void)state;
    double sum = 0;
    write_npy("m.npy", &(array){ .descr = "<f8", .rows = 20, .columns = 4, .value = one_is_missing });
    for (int64_t i = 0; i < 20; i++) sum += i == 4 ? 0 : small(i, 2);
    pli_dataset *d = load("m.npy", "1", 0, 1);
    bool         found = false;
    for (int32_t b = 0; b < pli_dataset_own_blocks(d); b++) {
        const pli_block *block = pli_dataset_block(d, b);
        if (block->rows == 0 || block->first_row > 4 || block->first_row + block->rows <= 4) continue;
        for (int64_t e = block->row_start[4 - block->first_row]; e < block->row_start[5 - block->first_row]; e++)
            if (block->col[e] == 1) found = block->value[e] == (float)(sum / 19);
    }
    assert_true(found);
    pli_dataset_destroy(&d);
}

static void test_columns_far_from_zero(void **state) {
    (void)state;
    write_npy("f.npy", &(array){ .descr = "<i8", .rows = 20, .columns = 3, .value = second });
    pli_dataset     *d = load("f.npy", "1", 0, 1);
    const pli_block *b = pli_dataset_block(d, 0);
    const double     origin = pli_schema_origin(pli_dataset_schema(d), 0);
    assert_int_equal(pli_schema_origins(pli_dataset_schema(d)), 1);
    assert_true(origin > 1.7e9);
    for (int32_t i = 0; i < pli_dataset_own_blocks(d); i++) {
        b = pli_dataset_block(d, i);
        for (int64_t r = 0; r < b->rows; r++)
            if (b->row_start[r + 1] > b->row_start[r] && b->col[b->row_start[r]] == 0)
                assert_true((double)b->value[b->row_start[r]] + origin == second(b->first_row + r, 1));
    }
    pli_dataset_destroy(&d);
}

/* --- a model's columns ------------------------------------------------------------------------------------------ */

static plait_status read_with(const pli_schema *schema, const char *name, const char *label, pli_dataset **d_out,
                              plait_error *err) {
    const char     *paths[] = { in_directory(name) };
    plait_data_opts opts = opts_of(paths, 1, label);
    *d_out = NULL;
    plait_status status = pli_dataset_open(&opts, schema, 0, 1, d_out, err);
    return status < 0 ? status : pli_dataset_load(*d_out, NULL, err);
}

static void test_a_models_columns(void **state) {
    (void)state;
    pli_dataset *d = NULL;
    plait_error  err = { .code = PLAIT_OK };
    write_npy("all.npy", &(array){ .descr = "<f4", .rows = 40, .columns = 4, .value = small });
    write_npy("rows.npy", &(array){ .descr = "<f8", .fortran = true, .rows = 40, .columns = 3, .value = no_label });
    write_npy("more.npy", &(array){ .descr = "<f8", .rows = 40, .columns = 7, .value = small });
    pli_dataset *trained = load("all.npy", "1", 0, 1);
    pli_schema  *schema = join(trained);
    assert_int_equal(read_with(schema, "all.npy", NULL, &d, &err), PLAIT_OK);
    assert_int_equal(assert_rows(d, 0, 4, small), 40);
    pli_dataset_destroy(&d);
    assert_int_equal(read_with(schema, "rows.npy", NULL, &d, &err), PLAIT_OK); /* without the label */
    assert_true(isnan(pli_dataset_block(d, 0)->label[0]));
    pli_dataset_destroy(&d);
    assert_int_equal(read_with(schema, "all.npy", "none", &d, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_block(d, 0)->row_start[1], trained->rows[0].b.row_start[1]);
    pli_dataset_destroy(&d);
    assert_int_equal(read_with(schema, "more.npy", NULL, &d, &err), PLAIT_ESHAPE);
    assert_non_null(strstr(err.text, "expected 3 columns of features"));
    pli_dataset_destroy(&d);
    FILE *csv = fopen(in_directory("rows.csv"), "w"); /* and a table is read by the model of an array */
    for (int64_t i = 0; i < 40; i++)
        fprintf(csv, "%g,%g,%g,%g\n", small(i, 0), small(i, 1), small(i, 2), small(i, 3));
    fclose(csv);
    assert_int_equal(read_with(schema, "rows.csv", NULL, &d, &err), PLAIT_OK);
    assert_int_equal(assert_rows(d, 0, 4, small), 40);
    pli_dataset_destroy(&d);
    pli_schema_destroy(&schema);
    pli_dataset_destroy(&trained);
}

/* --- refusals --------------------------------------------------------------------------------------------------- */

static void assert_refused(const char *name, const char *label, plait_status code, const char *part) {
    plait_error        err = { .code = PLAIT_OK };
    pli_dataset       *d = NULL;
    const plait_status status = read_with(NULL, name, label, &d, &err);
    pli_dataset_destroy(&d);
    if (strstr(err.text, part) == NULL) fail_msg("'%s' does not say '%s'", err.text, part);
    assert_int_equal(status, code);
}

static void test_headers_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        const char *part;
    } wrong[] = {
        { "{'descr': '|O', 'fortran_order': False, 'shape': (3, 1), }", "Python objects (|O)" },
        { "{'descr': '<U3', 'fortran_order': False, 'shape': (3, 1), }", "texts (<U3)" },
        { "{'descr': '<c8', 'fortran_order': False, 'shape': (3, 1), }", "complex numbers" },
        { "{'descr': '<f16', 'fortran_order': False, 'shape': (3, 1), }", "records or bytes (<f16)" },
        { "{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, 'shape': (3,), }", "it holds records" },
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (), }", "0 axes (one number)" },
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "array.reshape(-1, 1)" },
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 1, 1), }", "3 axes (3, 1, 1)" },
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (0, 3), }", "axis 0 has a length of 0" },
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 1), }", "cut short: its header promises 4 x 1" },
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1), }", "1 bytes follow the array" },
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807), }",
          "a length below 2^63" },
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (922337203685477580, 922337203685477580), }",
          "cut short" },
        { "{'descr': '|u1', 'fortran_order': 0, 'shape': (3, 1), }", "byte 44: expected True or False" },
        { "{'descr': '|u1', 'fortran_order': False, }", "the keys descr, fortran_order and shape" },
        { "{'descr': '|u1', 'shape': (3, 1", "expected a comma or the end of the shape" },
        { "{'descr", "expected the end of a quoted word" },
        { "['descr']", "byte 10: expected {" },
        { "{'colour': 3}", "one of the keys" },
        { "", "byte 10: expected {" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char         file[256] = "\x93NUMPY\1";
        const size_t n = strlen(wrong[i].bytes);
        file[8] = (char)n;
        memcpy(file + 10, wrong[i].bytes, n);
        memcpy(file + 10 + n, "\1\2\3", 3);
        write_bytes("wrong.npy", file, 10 + n + 3);
        assert_refused("wrong.npy", "1", PLAIT_EFORMAT, wrong[i].part);
    }
    write_bytes("wrong.npy", "\x93NUMPY\7\0\0\0\0\0", 12);
    assert_refused("wrong.npy", "1", PLAIT_EVERSION, "byte 6: npy version 7");
    write_bytes("wrong.npy", "\x93NUMPY\1\0\xff\xff{}", 12);
    assert_refused("wrong.npy", "1", PLAIT_EFORMAT, "a header of 65535 bytes");
    write_bytes("wrong.npy", "\x93NUMPY\2\0\1", 9);
    assert_refused("wrong.npy", "1", PLAIT_EFORMAT, "cut short in its header");
}

static void test_refusals(void **state) {
    (void)state;
    write_npy("all.npy", &(array){ .descr = "<f8", .rows = 40, .columns = 4, .value = small });
    write_npy("inf.npy", &(array){ .descr = "<f8", .rows = 40, .columns = 4, .value = is_infinite });
    write_npy("few.npy", &(array){ .descr = "<f8", .axes = 1, .rows = 39, .columns = 1, .value = only_label });
    write_npy("nan.npy", &(array){ .descr = "<f8", .rows = 20, .columns = 4, .value = one_is_missing });
    assert_refused("all.npy", NULL, PLAIT_EINVAL, "say where the label is: --label -1");
    assert_refused("all.npy", "5", PLAIT_ENAME, "expected 1 to 4, or -1");
    assert_refused("all.npy", "0", PLAIT_ENAME, "expected 1 to 4, or -1");
    assert_refused("all.npy", "lable", PLAIT_ENAME, "no column and no file \"lable\"");
    assert_refused("all.npy", in_directory("few.npy"), PLAIT_EMISMATCH, "39 labels");
    assert_refused("all.npy", in_directory("all.npy"), PLAIT_EFORMAT, "labels are an array of one axis");
    assert_refused("inf.npy", "1", PLAIT_EFORMAT, "row 18, column 4");
    assert_refused("nan.npy", "3", PLAIT_EFORMAT, "row 5, column 3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_every_type_and_order), cmocka_unit_test(test_half_floats),
        cmocka_unit_test(test_workers_share_the_rows),       cmocka_unit_test(test_a_stream_has_the_same_rows),
        cmocka_unit_test(test_labels_in_a_file),             cmocka_unit_test(test_missing_numbers_take_the_mean),
        cmocka_unit_test(test_columns_far_from_zero),        cmocka_unit_test(test_a_models_columns),
        cmocka_unit_test(test_headers_that_are_refused),     cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_directory, drop_directory);
}
