/* Which delimiter is found in the first lines, which rival is reported, and the names that --delimiter takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "data/formats/table/delimiter.h"

static pli_delimiters find(const char *text, char known, int64_t known_cells) {
    static pli_lines lines;
    pli_source       source = { .data = (const unsigned char *)text, .bytes = strlen(text) };
    pli_delimiters   found;
    pli_lines_first(&source, &lines);
    pli_delimiter_find(&lines, known, known_cells, &found);
    return found;
}

/* rival '\0': none is reported. */
static void expect(const char *text, char delimiter, int64_t cells, char rival) {
    pli_delimiters found = find(text, '\0', 0);
    if (found.delimiter != delimiter || found.cells != cells || found.rival != rival)
        fail_msg("\"%s\": '%c' %d cells, rival '%c'", text, found.delimiter, (int)found.cells, found.rival);
}

static void test_what_cuts_all_lines_alike(void **state) {
    (void)state;
    expect("1,2,3\n4,5,6\n", ',', 3, '\0');
    expect("1\t2\t3\n4\t5\t6\n", '\t', 3, '\0');
    expect("1|2|3\n4|5|6\n", '|', 3, '\0');
    expect("1 2 3\n4  5 6\n", ' ', 3, '\0');
    expect("one\ntwo\n", ',', 0, '\0');
    expect("", ',', 0, '\0');
    /* the comma is in most lines, and in as many places */
    expect("preis;a;b\n1,5;2;x\n2,5;3;y\n3,5;1;z\n", ';', 3, '\0');
    expect("y\tname\n1\tSmith, J\n2\tDoe\n3\tRoe, K\n", '\t', 2, '\0');
    /* a wrong line is reported when it is read */
    expect("1;2;3\n1;2;3\n1;2\n1;2;3\n1;2;3\n", ';', 3, '\0');
    /* a title with another number of cells */
    expect("3,2,a,b,c\n1,2,0\n3,4,1\n5,6,1\n", ',', 3, '\0');
    /* quoted delimiters are text */
    expect("1,\"a;b\"\n2,\"c;d\"\n", ',', 2, '\0');
    expect("1;\"a,b\"\n2;\"c,d\"\n", ';', 2, '\0');
}

static void test_ties(void **state) {
    (void)state;
    expect("1,5;2;3\n2,5;3;4\n", ';', 3, ',');
    expect("1,2;3\n4,5;6\n", ';', 2, ',');
    expect("7,a;b,9\n8,c;d,5\n", ',', 3, ';');
    expect("Smith, J\t4\nDoe, K\t5\n", '\t', 2, ',');
    expect("New York,NY\nLos Angeles,CA\n", ',', 2, '\0'); /* blanks are in every text */
    expect("1, 2, 3\n4, 5, 6\n", ',', 3, '\0');
    expect("1,5 2,5 3,0\n4,5 5,5 6,0\n", ' ', 3, '\0');
}

/* More lines than are kept, and longer ones than are looked at. */
static void test_bounds(void **state) {
    (void)state;
    pli_text text = { 0 };
    for (int i = 0; i < 300; i++) pli_text_add(&text, "%d;a,b\n", i);
    expect(text.data, ';', 2, ',');
    text.length = 0;
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 30000; k++) pli_text_add(&text, "%d;", k % 10);
        pli_text_add(&text, "1\n");
    }
    expect(text.data, ';', 30001, '\0');
    pli_text_free(&text);
}

/* The model's delimiter is taken if it fits the model's columns. */
static void test_known(void **state) {
    (void)state;
    assert_int_equal(find("1#2,5#3\n4#5,5#6\n", '#', 3).delimiter, '#');
    assert_int_equal(find("2,5#3\n5,5#6\n", '#', 3).delimiter, '#'); /* the label is missing */
    assert_int_equal(find("1,2,3\n4,5,6\n", '#', 3).delimiter, ',');
    assert_int_equal(find("1,5;2;3\n2,5;3;4\n", ',', 2).delimiter, ',');
    assert_int_equal(find("1,5;2;3\n2,5;3;4\n", ',', 7).delimiter, ';');
}

static void test_names(void **state) {
    (void)state;
    static const struct {
        const char *text;
        char        delimiter;
    } good[] = { { "tab", '\t' },      { "\t", '\t' },  { "\\t", '\t' }, { "space", ' ' },     { " ", ' ' },
                 { "comma", ',' },     { ",", ',' },    { ";", ';' },    { "semicolon", ';' }, { "pipe", '|' },
                 { "|", '|' },         { "#", '#' },    { ":", ':' } };
    static const char *const bad[] = {
        "", ";;", "x", "7", "\"", ".", "-", "+", "\n", "tabs", "\x01", "\xc3\xa9", "\xff"
    };
    plait_error              err;
    char                     delimiter = '\0', name[PLI_DELIMITER_NAME];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(pli_delimiter_read(good[i].text, &delimiter, &err), PLAIT_OK);
        assert_int_equal(delimiter, good[i].delimiter);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(pli_delimiter_read(bad[i], &delimiter, &err), PLAIT_EINVAL);
    assert_string_equal(pli_delimiter_name('\t', name), "tab");
    assert_string_equal(pli_delimiter_name(';', name), "';'");
    assert_string_equal(pli_delimiter_name(',', name), ",");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_cuts_all_lines_alike), cmocka_unit_test(test_ties),
                                        cmocka_unit_test(test_bounds), cmocka_unit_test(test_known),
                                        cmocka_unit_test(test_names) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
