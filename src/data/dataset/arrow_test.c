/* Data sets of Arrow streams (plait/arrow.h): values, missing ones, texts, dictionaries, views, several batches; a
 * model's columns; and what is refused, with all batches given back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arrow_table.h"

static arrow_table t;

static int setup(void **state) {
    (void)state;
    arrow_table_make(&t);
    return 0;
}

static plait_arrow_opts keeping(void) {
    plait_arrow_opts o;
    plait_arrow_opts_init(&o);
    o.keep_missing = 1;
    return o;
}

/* Reads the table; all that it has handed out must have been given back. */
static plait_data *read_with(const plait_arrow_opts *o) {
    plait_error err = { .code = PLAIT_OK };
    plait_data *data = NULL;
    const plait_status status = plait_data_from_arrow(&t.stream, o, &data, &err);
    if (status < 0) print_error("%s\n", err.text);
    assert_int_equal(status, PLAIT_OK);
    assert_int_equal(t.released, ARROW_BATCHES);
    assert_null(t.stream.release);
    return data;
}

static void refuse_with(const plait_arrow_opts *o, plait_status wanted, const char *text) {
    plait_error err = { .code = PLAIT_OK };
    plait_data *data = NULL;
    assert_int_equal(plait_data_from_arrow(&t.stream, o, &data, &err), wanted);
    if (strstr(err.text, text) == NULL) fail_msg("expected \"%s\" in: %s", text, err.text);
    assert_null(data);
    assert_null(t.stream.release);
    assert_int_equal(t.released, t.given - (t.given > ARROW_BATCHES || (t.fail_at > 0 && t.given == t.fail_at)));
}

static void refuse(plait_status wanted, const char *text) {
    const plait_arrow_opts o = keeping();
    refuse_with(&o, wanted, text);
    setup(NULL);
}

enum { FEATURES = 6 }; /* a, n, city=Rome, city=Tokyo, kind=x, kind=yy; the empty text of row 1 comes before Rome */

static void expect_rows(const plait_data *data, int features, const float want[][FEATURES + 1]) {
    float got[2 * ARROW_ROWS * (FEATURES + 1)];
    assert_int_equal(plait_data_features(data), features);
    assert_int_equal(plait_data_rows(data), 2 * ARROW_ROWS);
    assert_int_equal(plait_data_dense(data, got, NULL), PLAIT_OK);
    for (int r = 0; r < 2 * ARROW_ROWS; r++)
        for (int j = 0; j < features; j++) {
            const float value = got[r * features + j], wanted = want[r % ARROW_ROWS][j];
            assert_true(value == wanted || (isnan(value) && isnan(wanted)));
        }
}

static void test_a_table(void **state) {
    (void)state;
    static const float want[ARROW_ROWS][FEATURES + 1] = { { 0.5f, 1, 0, 1, 0, 0, 1 },
                                                          { 0, NAN, 1, 0, 0, 1, 0 },
                                                          { -2, 3, 0, 0, 1, 0, 1 } };
    const plait_arrow_opts o = keeping();
    plait_data            *data = read_with(&o);
    plait_memory_column    c;
    expect_rows(data, FEATURES + 1, want);
    assert_int_equal(plait_data_column(data, 2, &c, NULL), PLAIT_OK);
    assert_string_equal(c.name, "city");
    assert_int_equal(c.n_texts, 3);
    assert_string_equal(c.texts[2], "Tokyo");
    assert_int_equal(plait_data_column(data, 0, &c, NULL), PLAIT_OK);
    assert_true(c.texts == NULL);
    assert_int_equal(plait_data_column(data, 4, &c, NULL), PLAIT_END);
    assert_false(plait_data_is_lent(data));
    plait_data_destroy(&data);
}

/* Views: a short text lies in the view, a long one in a buffer. An offset moves all that a batch has. */
static void test_views_and_offsets(void **state) {
    (void)state;
    static const char    far[] = "..a text of more than twelve bytes";
    static const int64_t sizes[] = { sizeof far - 1 };
    struct { int32_t length; char start[4]; int32_t buffer, at; } view[4] = { { 3, "abc", 0, 0 }, { 2, "Ro", 0, 0 },
                                                                              { 32, "a te", 0, 2 }, { 0, "", 0, 0 } };
    const void *buffers[] = { NULL, view, far, sizes };
    t.column[2].format = "vu";
    t.cells[2].buffers = buffers, t.cells[2].n_buffers = 4, t.cells[2].offset = 1;
    const plait_arrow_opts o = keeping();
    plait_data            *data = read_with(&o);
    plait_memory_column    c;
    assert_int_equal(plait_data_column(data, 2, &c, NULL), PLAIT_OK);
    assert_int_equal(c.n_texts, 3);
    assert_string_equal(c.texts[1], "Ro");
    assert_string_equal(c.texts[2], far + 2);
    plait_data_destroy(&data);
    setup(NULL);
    t.column[2].format = "vu", t.cells[2].buffers = buffers, t.cells[2].n_buffers = 4;
    view[2].at = 3;
    refuse(PLAIT_EINVAL, "\"city\": the Arrow array is wrong: a text lies outside of its buffer");
}

/* A model's columns: by name, and in their order; texts that it does not know are none. */
static void test_columns_of_a_model(void **state) {
    (void)state;
    static const char *const         cities[] = { "Paris", "Rome" };
    static const plait_memory_column model[] = { { "city", cities, 2 }, { "a", NULL, 0 } },
                                     other[] = { { "b", NULL, 0 } }, turned[] = { { "a", cities, 2 } };
    static const float want[ARROW_ROWS][FEATURES + 1] = { { 0, 1, 0.5f }, { 0, 0, 0 }, { 0, 0, -2 } };
    plait_arrow_opts   o = keeping();
    o.columns = model, o.n_columns = 2;
    plait_data *data = read_with(&o);
    expect_rows(data, 3, want);
    plait_data_destroy(&data);
    setup(NULL);
    o.columns = other, o.n_columns = 1;
    refuse_with(&o, PLAIT_ENAME, "no column \"b\"");
    setup(NULL);
    o.columns = turned;
    refuse_with(&o, PLAIT_EINVAL, "\"a\" has numbers here, but had texts");
}

static void test_columns_that_are_none(void **state) {
    (void)state;
    static const char *const         falling[] = { "Rome", "Paris" }, *const lacking[] = { "Paris", NULL };
    static const plait_memory_column nameless[] = { { NULL, NULL, 0 } }, few[] = { { "city", falling, -1 } },
                                     order[] = { { "city", falling, 2 } }, hole[] = { { "city", lacking, 2 } };
    const plait_memory_column *const bad[] = { nameless, few, order, hole };
    static const char *const         text[] = { "it has no name", "-1 texts", "texts that increase",
                                                "texts that increase" };
    plait_arrow_opts                 o = keeping();
    o.n_columns = 1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        o.columns = bad[i];
        refuse_with(&o, PLAIT_EINVAL, text[i]);
        setup(NULL);
    }
    o.n_columns = -1;
    refuse_with(&o, PLAIT_EINVAL, "n_columns is -1");
}

static void test_refusals(void **state) {
    (void)state;
    const double     label[4] = { 0, 1, 0, 1 };
    plait_arrow_opts o;
    plait_arrow_opts_init(&o);
    refuse_with(&o, PLAIT_EINVAL, "row 1, column \"n\": a missing number");
    setup(NULL);
    o = keeping();
    o.label = label, o.rows = 4;
    refuse_with(&o, PLAIT_EINVAL, "4 labels or weights, but the table has 6 rows");
    setup(NULL);
    t.fail_at = 2;
    refuse(PLAIT_EIO, "the disk is gone");
    t.column[0].format = "tdD";
    refuse(PLAIT_EINVAL, "column \"a\" has Arrow's type \"tdD\"");
}

static void test_hostile_arrays(void **state) {
    (void)state;
    static const int32_t falling[] = { 0, 4, 2, 9 };
    static const int8_t  beyond[] = { 1, 2, 0 };
    t.children_said = 3;
    refuse(PLAIT_EINVAL, "batch 1 of the Arrow stream does not match");
    t.cells[0].length = 2;
    refuse(PLAIT_EINVAL, "\"a\": the Arrow array is wrong: its length or offset");
    t.cells[0].offset = INT64_MAX - 1;
    refuse(PLAIT_EINVAL, "its length or offset");
    t.cells[1].n_buffers = 1;
    refuse(PLAIT_EINVAL, "\"n\": the Arrow array is wrong: it has another number of buffers");
    t.buffers[1][1] = NULL;
    refuse(PLAIT_EINVAL, "a buffer is NULL");
    t.children[1] = NULL;
    refuse(PLAIT_EINVAL, "it is NULL");
    t.buffers[2][1] = falling;
    refuse(PLAIT_EINVAL, "\"city\": the Arrow array is wrong: a text lies outside");
    t.buffers[3][1] = beyond;
    refuse(PLAIT_EINVAL, "\"kind\": the Arrow array is wrong: an index is outside");
    t.cells[3].dictionary = NULL;
    refuse(PLAIT_EINVAL, "it has no dictionary");
    t.buffers[2][2] = "Ro\0eTokyo";
    refuse(PLAIT_EINVAL, "a text has a byte 0");
    t.stream.get_next = NULL;
    refuse(PLAIT_EINVAL, "has no functions");
    t.stream.release = NULL;
    refuse(PLAIT_EINVAL, "was released before");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_table, setup),        cmocka_unit_test_setup(test_views_and_offsets, setup),
        cmocka_unit_test_setup(test_columns_of_a_model, setup), cmocka_unit_test_setup(test_refusals, setup),
        cmocka_unit_test_setup(test_columns_that_are_none, setup), cmocka_unit_test_setup(test_hostile_arrays, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
