/* Texts: growth, numbers there and back under any locale, and typos. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/text.h"

static void test_text_grows(void **state) {
    (void)state;
    pli_text text = { .data = NULL };
    for (int i = 0; i < 1000; i++) pli_text_add(&text, "%d,", i % 10);
    pli_text_add_bytes(&text, "a\0b", 3);
    assert_int_equal(text.length, 2003);
    assert_int_equal(strlen(text.data), 2001);
    assert_false(text.failed);
    pli_text_free(&text);
    assert_null(text.data);
    pli_text_add_bytes(&text, NULL, 0);
    assert_string_equal(text.data, "");
    pli_text_free(&text);
}

static void test_text_without_memory(void **state) {
    (void)state;
    for (int64_t k = 0;; k++) {
        pli_text text = { .data = NULL };
        pli_alloc_fail_after(k);
        for (int i = 0; i < 100; i++) pli_text_add(&text, "%s", "0123456789");
        pli_alloc_fail_after(-1);
        bool failed = text.failed;
        if (failed)
            assert_true(text.length < 1000);
        else
            assert_int_equal(text.length, 1000);
        pli_text_free(&text);
        if (!failed) break;
    }
}

static void test_whole_numbers(void **state) {
    (void)state;
    static const char *const bad[] = { "",
                                       "-",
                                       "+",
                                       " 1",
                                       "1 ",
                                       "1.0",
                                       "0x1",
                                       "--1",
                                       "-+1",
                                       "+-1",
                                       "1e3",
                                       "9223372036854775808",
                                       "-9223372036854775809" };
    int64_t                  i = 77;
    uint64_t                 u = 77;
    assert_true(pli_parse_i64("-9223372036854775808", &i) && i == INT64_MIN);
    assert_true(pli_parse_i64("9223372036854775807", &i) && i == INT64_MAX);
    assert_true(pli_parse_i64("+12", &i) && i == 12);
    assert_true(pli_parse_i64("-0", &i) && i == 0);
    assert_true(pli_parse_u64("18446744073709551615", &u) && u == UINT64_MAX);
    u = 77, i = 77;
    assert_false(pli_parse_u64("18446744073709551616", &u));
    assert_false(pli_parse_u64("-1", &u));
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) assert_false(pli_parse_i64(bad[k], &i));
    assert_true(i == 77 && u == 77);
}

static void test_doubles_read(void **state) {
    (void)state;
    static const char *const bad[] = { "",    ".",   "+",     "e5", "1e", "1e+",  "1,5", "0x1p3",
                                       "inf", "nan", "1e999", " 1", "1 ", "1..2", "--1", "1f" };
    double                   d = 77;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) assert_false(pli_parse_f64(bad[k], &d));
    assert_true(d == 77);
    assert_true(pli_parse_f64("1.5", &d) && d == 1.5);
    assert_true(pli_parse_f64("-.5e1", &d) && d == -5);
    assert_true(pli_parse_f64("5.", &d) && d == 5);
    assert_true(pli_parse_f64("+1E-400", &d) && d == 0); /* a number that is too small is read as 0; one too large is
                                                          * refused */
    assert_true(pli_parse_f64("0.1", &d) && d == 0.1);
}

static void test_doubles_written(void **state) {
    (void)state;
    static const struct {
        double      value;
        const char *text;
    } known[] = { { 0.1, "0.1" },
                  { 1e22, "1e+22" },
                  { 0, "0" },
                  { -0.0, "-0" },
                  { 1.0 / 3, "0.3333333333333333" },
                  { 5e-324, "5e-324" },
                  { 100, "100" },
                  { 0.1 + 0.2, "0.30000000000000004" },
                  { DBL_MAX, "1.7976931348623157e+308" },
                  { INFINITY, "inf" },
                  { -INFINITY, "-inf" },
                  { NAN, "nan" } };
    char text[32];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        pli_format_f64(known[i].value, text);
        assert_string_equal(text, known[i].text);
    }
    pli_format_json_f64(0.1, text);
    assert_string_equal(text, "0.10000000000000001");
    pli_format_json_f64(NAN, text);
    assert_string_equal(text, "null");
    pli_format_json_f64(-INFINITY, text);
    assert_string_equal(text, "null");
}

static void test_quoted(void **state) {
    (void)state;
    pli_text text = { 0 };
    pli_text_add_quoted(&text, "");
    pli_text_add_quoted(&text, "a \"b\" \\ \n\x1f\x7f \xc3\xa9");
    assert_string_equal(text.data, "\"\"\"a \\\"b\\\" \\\\ \\u000a\\u001f\\u007f \xc3\xa9\"");
    pli_text_free(&text);
}

static void test_doubles_there_and_back(void **state) {
    (void)state;
    pli_random r = pli_random_at(1, PLI_RANDOM_DATA, 0, 0);
    char       text[32];
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = pli_random_u64(&r);
        double   value, back;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        pli_format_f64(value, text);
        assert_true(pli_parse_f64(text, &back) && memcmp(&back, &value, sizeof back) == 0);
        pli_format_json_f64(value, text);
        assert_true(pli_parse_f64(text, &back) && memcmp(&back, &value, sizeof back) == 0);
    }
}

/* A host program may have its own locale; its decimal comma must not appear. */
static void test_locale_of_the_host(void **state) {
    (void)state;
    static const char *const commas[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8", "de_DE" };
    locale_t                 locale = (locale_t)0;
    char                     text[32];
    double                   d;
    for (size_t i = 0; locale == (locale_t)0 && i < sizeof commas / sizeof *commas; i++)
        locale = newlocale(LC_ALL_MASK, commas[i], (locale_t)0);
    if (locale == (locale_t)0) skip(); /* no such locale is installed */
    locale_t before = uselocale(locale);
    pli_format_f64(1.5, text);
    bool read = pli_parse_f64("2.5", &d);
    assert_ptr_equal(uselocale(before), locale); /* it is still the host's locale */
    freelocale(locale);
    assert_string_equal(text, "1.5");
    assert_true(read && d == 2.5);
}

static void test_nearest(void **state) {
    (void)state;
    static const char *const names[] = { "epochs", "learning-rate", "optimizer", "l1", "l2", "seed", "topology" };
    const size_t             n = sizeof names / sizeof *names;
    char                     long_name[200];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_string_equal(pli_nearest("epoch", names, n), "epochs");
    assert_string_equal(pli_nearest("pecohs", names, n), "epochs"); /* two swaps */
    assert_string_equal(pli_nearest("learningrate", names, n), "learning-rate");
    assert_string_equal(pli_nearest("optimiser", names, n), "optimizer");
    assert_string_equal(pli_nearest("l2", names, n), "l2");
    assert_string_equal(pli_nearest("SEED", names, n), "seed");           /* case is no mistake */
    assert_string_equal(pli_nearest("l3", names, n), "l1");               /* the first of two equally near */
    assert_string_equal(pli_nearest("learn", names, n), "learning-rate"); /* a beginning of it */
    assert_null(pli_nearest("bandwidth", names, n));
    assert_null(pli_nearest("xy", names, n)); /* no letter agrees */
    assert_null(pli_nearest("", names, n));
    assert_null(pli_nearest(long_name, names, n));
    assert_null(pli_nearest("epochs", names, 0));
}

/* Bytes from any file, as a message, a line and JSON show them. */
static void test_printable(void **state) {
    static const struct {
        const char *from, *shown, *quoted;
    } cases[] = {
        { "plain \\ text", "plain \\ text", "\"plain \\\\ text\"" },
        { "a\033[2Jb\177", "a\\x1b[2Jb\\x7f", "\"a\\u001b[2Jb\\u007f\"" },
        { "a\tb\nc\r", "a\\tb\\nc\\r", "\"a\\u0009b\\u000ac\\u000d\"" },
        { "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
          "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"" },
        { "\xc2\x9b"
          "2J",
          "\\xc2\\x9b2J", "\"\\u009b2J\"" },                  /* a control character of the upper range */
        { "\xe2\x80\xae", "\\xe2\\x80\\xae", "\"\\u202e\"" }, /* turns the direction */
        { "\xff \xc3( \xc0\xaf", "\\xff \\xc3( \\xc0\\xaf", "\"\\ufffd \\ufffd( \\ufffd\\ufffd\"" },
        { "\xed\xa0\x80", "\\xed\\xa0\\x80", "\"\\ufffd\\ufffd\\ufffd\"" }, /* half of a surrogate pair */
        { "cut \xe2\x82", "cut \\xe2\\x82", "\"cut \\ufffd\\ufffd\"" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pli_text shown = { 0 }, quoted = { 0 }, again = { 0 };
        char     buffer[64];
        pli_text_add_printable(&shown, cases[i].from, strlen(cases[i].from), "");
        assert_string_equal(shown.data, cases[i].shown);
        pli_text_add_printable(&again, shown.data, shown.length, "");
        assert_string_equal(again.data, cases[i].shown);
        pli_text_add_quoted(&quoted, cases[i].from);
        assert_string_equal(quoted.data, cases[i].quoted);
        pli_printable(buffer, sizeof buffer, cases[i].from);
        assert_string_equal(buffer, cases[i].shown);
        pli_text_free(&shown);
        pli_text_free(&again);
        pli_text_free(&quoted);
    }
    char     small[8];
    pli_text lines = { 0 };
    pli_printable(small, sizeof small, "abcde\x01");
    assert_string_equal(small, "abcde"); /* no character is cut in the middle */
    pli_text_add_printable(&lines, "a\tb\n\033", 5, "\n\t");
    assert_string_equal(lines.data, "a\tb\n\\x1b");
    pli_text_free(&lines);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_printable),
        cmocka_unit_test(test_text_grows),
        cmocka_unit_test(test_text_without_memory),
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_doubles_read),
        cmocka_unit_test(test_doubles_written),
        cmocka_unit_test(test_doubles_there_and_back),
        cmocka_unit_test(test_locale_of_the_host),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_quoted),
    };
    return cmocka_run_group_tests_name("base.text", tests, NULL, NULL);
}
