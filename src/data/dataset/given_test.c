/* Data sets of the caller's arrays (plait/memory.h): every layout gives the same rows, lent ones lie where they lay,
 * and what is not right is refused with its place. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <plait/memory.h>

#include "data/dataset/dataset.h"

enum { ROWS = 150, FEATURES = 7 };

/* Row r has features r % 3 and 3 + r % 4; feature 3 + r % 4 of the value r + 0.5. */
typedef struct arrays {
    int32_t start4[ROWS + 1], column4[2 * ROWS];
    int64_t start8[ROWS + 1], column8[2 * ROWS];
    float   value4[2 * ROWS], rows4[ROWS * FEATURES], columns4[FEATURES * ROWS];
    double  value8[2 * ROWS], rows8[ROWS * (FEATURES + 2)], columns8[FEATURES * ROWS], label[ROWS], weight[ROWS];
} arrays;

static arrays a;

static void put(int r, int k, int column, float value) {
    a.column4[2 * r + k] = column;
    a.column8[2 * r + k] = column;
    a.value4[2 * r + k] = value;
    a.value8[2 * r + k] = (double)value;
    a.rows4[r * FEATURES + column] = a.columns4[column * ROWS + r] = value;
    a.rows8[r * (FEATURES + 2) + column] = a.columns8[column * ROWS + r] = (double)value;
}

static int setup(void **state) {
    (void)state;
    memset(&a, 0, sizeof a);
    for (int r = 0; r < ROWS; r++) {
        a.start4[r + 1] = 2 * (r + 1);
        a.start8[r + 1] = 2 * (r + 1);
        put(r, 0, r % 3, 1);
        put(r, 1, 3 + r % 4, (float)r + 0.5f);
        a.label[r] = r % 5;
        a.weight[r] = 1 + r % 2;
    }
    return 0;
}

static plait_memory_opts sparse(int start_bytes, int column_bytes, plait_type type) {
    plait_memory_opts o;
    plait_memory_opts_init(&o);
    o.rows = ROWS, o.features = FEATURES;
    o.row_start = start_bytes == 4 ? (const void *)a.start4 : a.start8;
    o.column = column_bytes == 4 ? (const void *)a.column4 : a.column8;
    o.values = type == PLAIT_F32 ? (const void *)a.value4 : a.value8;
    o.row_start_bytes = start_bytes, o.column_bytes = column_bytes, o.type = type;
    o.label = a.label, o.weight = a.weight;
    return o;
}

static plait_memory_opts dense(plait_layout layout, plait_type type) {
    plait_memory_opts o = sparse(8, 4, type);
    const bool        by_rows = layout == PLAIT_DENSE_ROWS;
    o.layout = layout;
    if (type == PLAIT_F32) o.values = by_rows ? a.rows4 : a.columns4;
    else o.values = by_rows ? a.rows8 : a.columns8;
    if (by_rows && type == PLAIT_F64) o.stride = FEATURES + 2;
    return o;
}

/* All rows, in order, through plait_data_row. */
static void check_rows(const plait_data *data) {
    plait_row row;
    int       r = 0;
    for (int32_t b = 0; b < plait_data_blocks(data); b++)
        for (int64_t i = 0; i < plait_data_block_rows(data, b); i++, r++) {
            assert_int_equal(plait_data_row(data, b, i, &row, NULL), PLAIT_OK);
            assert_int_equal(row.n, 2);
            for (int k = 0; k < 2; k++) {
                assert_int_equal(row.column[k], a.column4[2 * r + k]);
                assert_true((row.value != NULL ? row.value[k] : 1) == a.value4[2 * r + k]);
            }
            assert_true(row.label == a.label[r] && row.weight == a.weight[r]);
        }
    assert_int_equal(r, ROWS);
}

static void check(plait_memory_opts o) {
    for (int lend = 0; lend < 2; lend++) {
        plait_data *data = NULL;
        plait_error err;
        o.lend = lend;
        if (plait_data_from_memory(&o, &data, &err) < 0) fail_msg("%s", err.text);
        const int lendable = o.layout == PLAIT_CSR && o.type == PLAIT_F32 && o.column_bytes == 4;
        assert_int_equal(plait_data_is_lent(data), lend && lendable);
        check_rows(data);
        plait_data_destroy(&data);
    }
}

static void test_every_layout(void **state) {
    (void)state;
    for (int start = 4; start <= 8; start += 4)
        for (int column = 4; column <= 8; column += 4) {
            check(sparse(start, column, PLAIT_F32));
            check(sparse(start, column, PLAIT_F64));
        }
    for (int layout = PLAIT_DENSE_ROWS; layout <= PLAIT_DENSE_COLUMNS; layout++) {
        check(dense((plait_layout)layout, PLAIT_F32));
        check(dense((plait_layout)layout, PLAIT_F64));
    }
}

/* Lent arrays are the caller's own memory. */
static void test_lent_memory_is_not_copied(void **state) {
    (void)state;
    plait_memory_opts o = sparse(4, 4, PLAIT_F32);
    plait_data       *data = NULL;
    plait_row         row;
    int32_t           block = 0;
    o.lend = 1;
    assert_int_equal(plait_data_from_memory(&o, &data, NULL), PLAIT_OK);
    while (plait_data_block_rows(data, block) == 0) block++;
    assert_int_equal(plait_data_row(data, block, 0, &row, NULL), PLAIT_OK);
    assert_ptr_equal(row.value, a.value4);
    assert_ptr_equal(row.column, a.column4);
    plait_data_destroy(&data);
}

static void test_missing_values(void **state) {
    (void)state;
    plait_data *data = NULL;
    plait_error err = { 0 };
    plait_memory_opts of[] = { sparse(8, 4, PLAIT_F32), dense(PLAIT_DENSE_COLUMNS, PLAIT_F64) };
    a.value4[2 * 20] = NAN;
    a.columns8[(20 % 3) * ROWS + 20] = (double)NAN;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(plait_data_from_memory(&of[i], &data, &err), PLAIT_EINVAL);
        assert_non_null(strstr(err.text, "row 20, column 2"));
        assert_non_null(strstr(err.text, "keep_missing"));
        of[i].keep_missing = 1;
        assert_int_equal(plait_data_from_memory(&of[i], &data, &err), PLAIT_OK);
        plait_data_destroy(&data);
    }
}

static void refuse(plait_memory_opts o, const char *text) {
    for (int lend = 0; lend < 2; lend++) {
        plait_data *data = NULL;
        plait_error err = { 0 };
        o.lend = lend;
        assert_int_equal(plait_data_from_memory(&o, &data, &err), PLAIT_EINVAL);
        if (strstr(err.text, text) == NULL) fail_msg("%s; expected %s", err.text, text);
        assert_null(data);
    }
}

static void test_hostile_arrays(void **state) {
    (void)state;
    a.start4[70] = 1;
    refuse(sparse(4, 4, PLAIT_F32), "row_start decreases at row 69");
    a.start8[0] = 2;
    refuse(sparse(8, 4, PLAIT_F32), "row_start[0]");
    setup(state);
    a.start8[ROWS] = INT64_MAX;
    refuse(sparse(8, 4, PLAIT_F32), "too large");
    a.column4[2 * 99 + 1] = FEATURES;
    refuse(sparse(4, 4, PLAIT_F32), "row 99: expected columns below 7 that increase, found 7");
    a.column4[2 * 40] = -3;
    refuse(sparse(4, 4, PLAIT_F32), "row 40: expected columns below 7 that increase, found -3");
    a.column8[2 * 40] = -3;
    refuse(sparse(4, 8, PLAIT_F64), "row 40: expected columns below 7 that increase, found -3");
    setup(state);
    a.column4[2 * 5 + 1] = a.column4[2 * 5];
    refuse(sparse(4, 4, PLAIT_F32), "row 5: expected columns");
    a.value8[3] = 1e300;
    refuse(sparse(4, 8, PLAIT_F64), "row 1, column 4: expected a finite number");
    a.rows4[FEATURES * 3 + 2] = -INFINITY;
    refuse(dense(PLAIT_DENSE_ROWS, PLAIT_F32), "row 3, column 2");
    a.label[9] = (double)NAN;
    refuse(sparse(8, 8, PLAIT_F32), "label of row 9");
    setup(state);
    a.weight[9] = -1;
    refuse(sparse(8, 8, PLAIT_F32), "weight of row 9");
}

static void test_wrong_descriptions(void **state) {
    (void)state;
    plait_memory_opts o = sparse(8, 4, PLAIT_F32);
    o.column_bytes = 2;
    refuse(o, "4 or 8");
    o = sparse(8, 4, PLAIT_F32);
    o.type = PLAIT_I64;
    refuse(o, "PLAIT_F32 or PLAIT_F64");
    o = sparse(8, 4, PLAIT_F32);
    o.rows = 0;
    refuse(o, "0 rows");
    o = sparse(8, 4, PLAIT_F32);
    o.column = NULL;
    refuse(o, "column is NULL");
    o.row_start = NULL;
    refuse(o, "row_start is NULL");
    o = dense(PLAIT_DENSE_ROWS, PLAIT_F32);
    o.stride = FEATURES - 1;
    refuse(o, "stride");
    o.stride = INT64_MAX / 4;
    refuse(o, "stride");
    o = dense(PLAIT_DENSE_ROWS, PLAIT_F32);
    o.layout = (plait_layout)9;
    refuse(o, "layout 9");
    o = dense(PLAIT_DENSE_COLUMNS, PLAIT_F32);
    o.values = NULL;
    refuse(o, "values is NULL");
}

/* --- columns ---------------------------------------------------------------------------------------------------- */

static const char *const          cities[] = { "Kyoto", "Oslo", "Rome" }, *const odd[] = { "b", "b" };
static const plait_memory_column three_and_four[] = {
    { "city", cities, 3 }, { "a", NULL, 0 }, { "b", NULL, 0 }, { "c", NULL, 0 }, { "d", NULL, 0 }
};

static plait_memory_opts described(const plait_memory_column *columns, int64_t n) {
    plait_memory_opts o = sparse(8, 4, PLAIT_F32);
    o.columns = columns, o.n_columns = n;
    return o;
}

/* Columns are the model's names of features, and a file with such columns is read by them. */
static void test_columns_name_features(void **state) {
    (void)state;
    const plait_memory_opts o = described(three_and_four, 5);
    plait_error             err = { .code = PLAIT_OK };
    plait_data             *data = NULL;
    pli_text                name = { 0 };
    assert_int_equal(plait_data_from_memory(&o, &data, &err), PLAIT_OK);
    pli_schema_feature_name(data->dataset->schema, 1, &name);
    pli_text_add(&name, " ");
    pli_schema_feature_name(data->dataset->schema, 3, &name);
    assert_string_equal(name.data, "city=Oslo a");
    pli_text_free(&name);
    /* feature 3 has the value r + 0.5 in each fourth row, r = 0, 4, ... 148 */
    assert_true(fabs(data->dataset->schema->column[1].mean - 38 * 74.5 / ROWS) < 1e-5);
    assert_int_equal(plait_data_features(data), FEATURES);
    plait_data_destroy(&data);
}

static void test_wrong_columns(void **state) {
    (void)state;
    const plait_memory_column nameless = { NULL, NULL, 0 }, repeated = { "x", odd, 2 }, none = { "x", NULL, 2 },
                              negative = { "x", cities, -1 };
    refuse(described(three_and_four, 4), "4 columns have 6 features, but the rows have 7");
    refuse(described(&nameless, 1), "columns[0]: it has no name");
    refuse(described(&repeated, 1), "columns[0] \"x\", texts[1]: expected texts that increase");
    refuse(described(&none, 1), "columns[0] \"x\": 2 texts");
    refuse(described(&negative, 1), "columns[0] \"x\": -1 texts");
    const plait_memory_column many[] = { { "x", cities, 3 }, { "y", cities, 3 }, { "z", cities, 3 } };
    refuse(described(many, 3), "3 columns have at least 9 features");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_every_layout, setup),        cmocka_unit_test_setup(test_missing_values, setup),
        cmocka_unit_test_setup(test_hostile_arrays, setup),      cmocka_unit_test_setup(test_wrong_descriptions, setup),
        cmocka_unit_test_setup(test_lent_memory_is_not_copied, setup),
        cmocka_unit_test_setup(test_columns_name_features, setup), cmocka_unit_test_setup(test_wrong_columns, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
