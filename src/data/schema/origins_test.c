/* Origins: which ranges need one, what it is, and that a schema keeps it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "data/schema/schema.h"

static double origin_of(double least, double most) {
    return pli_range_origin(&(pli_range){ .n = 2, .least = least, .most = most });
}

static void test_ranges(void **state) {
    (void)state;
    assert_true(origin_of(1e7 - 3.2, 1e7 + 3) == 9999996);
    assert_true(origin_of(-1e7 - 3.2, -1e7 + 3) == -10000004);
    assert_true(origin_of(1764172800, 1764259200) == 1764170000);
    assert_true(fabs(origin_of(5.0003, 5.0071) - 5) < 1e-3);
    assert_true(origin_of(1990, 2024) == 0);           /* 32 bits hold years */
    assert_true(origin_of(-1, 1e7) == 0);              /* 0 lies inside */
    assert_true(origin_of(0, 0.001) == 0);
    assert_true(origin_of(1e7, 1e7) == 0);             /* a constant column has no spread */
    assert_true(origin_of(1e300, 1.0001e300) > 0);     /* no overflow */
    assert_true(origin_of(1e-300, 1.0001e-300) >= 0);  /* and no NaN */
    assert_true(pli_range_origin(&(pli_range){ .n = 0 }) == 0);
}

/* One value in 30 is 0, where a time was not known: the others decide. One in three are no outliers. */
static void test_outliers(void **state) {
    (void)state;
    for (int far = 3; far <= 30; far += 27) {
        pli_range range = { 0 };
        for (int i = 0; i < 300; i++) pli_range_add(&range, i % far == 0 ? 0 : 1764172800 + 60 * (i * 7 % 300));
        assert_true(range.least == 0 && range.n == 300 && range.n_kept == PLI_RANGE_KEPT);
        assert_true(pli_range_origin(&range) == (far == 3 ? 0 : 1764170000));
    }
    /* one in ten, whatever the period: the column may be far all the while */
    for (int period = 10; period <= 40; period++) {
        pli_range range = { 0 };
        for (int i = 0; i < 2000; i++) {
            pli_range_add(&range, i % period == 1 ? 0 : 1764172800 + 60 * (i * 7 % 300));
            if (i >= 7) assert_true(pli_range_may_be_far(&range));
        }
    }
    pli_range near = { 0 };
    for (int i = 0; i < 8; i++) pli_range_add(&near, i < 5 ? 0 : 1764172800 + i);
    assert_false(pli_range_may_be_far(&near));
    pli_range few = { 0 };
    for (int i = 0; i < 9; i++) pli_range_add(&few, i == 4 ? 0 : 1764172800 + i);
    assert_true(pli_range_origin(&few) == 0);
}

static void test_a_schema_keeps_them(void **state) {
    (void)state;
    pli_schema *schema = pli_schema_create(), *read = NULL;
    pli_text    text = { 0 };
    assert_non_null(schema);
    schema->format = PLI_FORMAT_LIBSVM;
    schema->index_base = 1;
    schema->any_index = true;
    schema->max_index = 9;
    assert_true(pli_schema_add_origin(schema, 3, 1e7) && pli_schema_add_origin(schema, 9, -5.25));
    assert_true(pli_schema_write_model(schema, &text, NULL) == PLAIT_OK);
    assert_non_null(strstr(text.data, "\"version\":2"));
    assert_true(pli_schema_read(text.data, text.length, &read, NULL) == PLAIT_OK);
    assert_true(pli_schema_same_origins(schema, read));
    assert_true(pli_schema_origin(read, 2) == 1e7 && pli_schema_origin(read, 8) == -5.25);
    assert_true(pli_schema_origin(read, 3) == 0 && pli_schema_origins(read) == 2);
    assert_int_equal(pli_origin_find(read->origin, read->origins, 9), 1);
    assert_int_equal(pli_origin_find(read->origin, read->origins, 4), -1);
    pli_schema_destroy(&read);
    pli_text_free(&text);
    /* places that decrease, lie below the base, or are no number, are refused */
    static const char *const bad[] = { "[9,1.0,3,1.0]", "[3]", "[3,\"x\"]", "[-1,2.0]", "[0,5.0]", "[3,1.0,3,2.0]" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char json[400];
        snprintf(json, sizeof json, "{\"version\":1,\"format\":\"libsvm\",\"index_base\":1,\"rows\":1,\"hash_bits\":0,"
                                    "\"features\":9,\"labels\":[],\"label_kind\":\"none\",\"origins\":%s}", bad[i]);
        assert_true(pli_schema_read(json, strlen(json), &read, NULL) < 0);
    }
    pli_schema_destroy(&schema);
    /* and so are origins of hashed features */
    static const char hashed[] = "{\"version\":1,\"format\":\"libsvm\",\"index_base\":1,\"rows\":1,\"hash_bits\":2,"
                                 "\"features\":4,\"labels\":[],\"label_kind\":\"none\",\"origins\":[3,1.0]}";
    assert_true(pli_schema_read(hashed, sizeof hashed - 1, &read, NULL) < 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_ranges), cmocka_unit_test(test_outliers),
                                        cmocka_unit_test(test_a_schema_keeps_them) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
