/* JSON: it is written as the contract wants it, to the byte, and jansson reads it back; other text is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/json.h"

static void assert_text(pli_text *text, const char *expected) {
    assert_false(text->failed);
    assert_string_equal(text->data, expected);
    json_t *read = pli_json_read(text->data, text->length, NULL);
    assert_non_null(read);
    json_decref(read);
    pli_text_free(text);
}

static void test_objects_and_lists(void **state) {
    pli_text text = { 0 };
    (void)state;
    pli_json_begin(&text);
    pli_json_i64(&text, "version", 1);
    pli_json_list(&text, "ranks");
    pli_json_i64(&text, NULL, 3);
    pli_json_object(&text, NULL);
    pli_json_text(&text, "name", "w");
    pli_json_list(&text, "none");
    pli_json_list_end(&text);
    pli_json_end(&text);
    pli_json_list_end(&text);
    pli_json_object(&text, "empty");
    pli_json_end(&text);
    pli_json_u64(&text, "seed", UINT64_MAX >> 1);
    pli_json_end(&text);
    assert_text(&text, "{\"version\": 1, \"ranks\": [3, {\"name\": \"w\", \"none\": []}], \"empty\": {}, "
                       "\"seed\": 9223372036854775807}");
}

static void test_values(void **state) {
    pli_text text = { 0 };
    (void)state;
    pli_json_begin(&text);
    pli_json_f64(&text, "one", 1);
    pli_json_f64(&text, "tenth", 0.1);
    pli_json_f64(&text, "small", 1e-07);
    pli_json_short(&text, "short", 0.1);
    pli_json_short(&text, "inf", INFINITY);
    pli_json_f64(&text, "none", NAN);
    pli_json_text(&text, "end", "[{");
    pli_json_text(&text, "no", NULL);
    pli_json_bool(&text, "yes", true);
    pli_json_null(&text, "nothing");
    pli_json_raw(&text, "raw", "[1]");
    pli_json_raw(&text, "missing", NULL);
    pli_json_hex(&text, "hex", "\x01\xff", 2);
    pli_json_end(&text);
    assert_text(&text, "{\"one\": 1, \"tenth\": 0.10000000000000001, \"small\": 9.9999999999999995e-08, "
                       "\"short\": 0.1, \"inf\": null, \"none\": null, "
                       "\"end\": \"[{\", \"no\": null, \"yes\": true, \"nothing\": null, \"raw\": [1], "
                       "\"missing\": null, \"hex\": \"01ff\"}");
}

static void test_reading(void **state) {
    static const char text[] = "{\"a\": {\"b\": 2.5, \"c\": \"\\u00e9\"}}";
    pli_json_where    where;
    pli_text          out = { 0 };
    (void)state;
    json_t       *root = pli_json_read(text, sizeof text - 1, &where);
    const json_t *a = json_object_get(root, "a");
    assert_true(pli_json_number_of(a, "b", 0) == 2.5);
    assert_true(pli_json_number_of(a, "c", 7) == 7);
    assert_string_equal(pli_json_text_of(a, "c"), "\xc3\xa9");
    assert_null(pli_json_text_of(a, "b"));
    pli_json_begin(&out);
    pli_json_value(&out, "as it is", a);
    pli_json_value_ascii(&out, "ascii", a);
    pli_json_end(&out);
    assert_text(&out, "{\"as it is\": {\"b\":2.5,\"c\":\"\xc3\xa9\"}, \"ascii\": {\"b\":2.5,\"c\":\"\\u00E9\"}}");
    json_decref(root);
    static const char twice[] = "{\"a\": 1,\n \"a\": 2}", cut[] = "{\"a\": 1";
    assert_null(pli_json_read(twice, sizeof twice - 1, &where));
    assert_int_equal(where.line, 2);
    assert_null(pli_json_read(cut, sizeof cut - 1, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_objects_and_lists), cmocka_unit_test(test_values),
                                        cmocka_unit_test(test_reading) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
