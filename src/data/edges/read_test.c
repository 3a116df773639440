/* Graphs' files: what each format reads, and that each mistake is told with file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/edges/edges.h"

static void expect(const char *format, const char *text, const char *edges) {
    pli_edge_list list;
    plait_error   err;
    pli_text      got = { 0 };
    if (pli_edge_list_parse("g", text, strlen(text), format, &list, &err) < 0) fail_msg("%s: %s", text, err.text);
    for (int64_t k = 0; k < list.n; k++) {
        pli_text_add(&got, "%llu>%llu", (unsigned long long)list.from[k], (unsigned long long)list.to[k]);
        if (list.weight != NULL) pli_text_add(&got, ":%g", (double)list.weight[k]);
        pli_text_add(&got, " ");
    }
    assert_string_equal(got.data != NULL ? got.data : "", edges);
    pli_text_free(&got);
    pli_edge_list_free(&list);
}

static void test_every_format_is_read(void **state) {
    (void)state;
    expect("auto", "# a comment\n1\t2\n\n 3 , 4 \r\n18446744073709551615 0", "1>2 3>4 18446744073709551615>0 ");
    expect("auto", "% c\n1 2 0.5\n2 3 -1e2\n", "1>2:0.5 2>3:-100 ");
    expect("auto", "%%MatrixMarket matrix coordinate pattern general\n% c\n3 3 2\n1 2\n3 3\n", "1>2 3>3 ");
    expect("auto", "%%MatrixMarket matrix coordinate real symmetric\n3 3 1\n2 1 7\n", "2>1:7 ");
    expect("metis", "3 2\n2\n1 3\n2\n", "1>2 2>1 2>3 3>2 ");
    expect("metis", "% c\n2 1 011 2\n4 4 2 9\n4 4 1 9", "1>2:9 2>1:9 ");
    expect("metis", "3 1\n2\n1\n\n", "1>2 2>1 "); /* the last vertex has no neighbor */
    expect("adjacency", "1 2 5 6\n5 0\n6 1 1\n", "1>5 1>6 6>1 ");
}

static void refuses(const char *format, const char *text, const char *why) {
    pli_edge_list list;
    plait_error   err;
    if (pli_edge_list_parse("g", text, strlen(text), format, &list, &err) >= 0) fail_msg("%s was taken", text);
    if (strstr(err.text, why) == NULL) fail_msg("'%s' instead of '%s'", err.text, why);
    assert_null(list.from);
}

static void test_every_mistake_has_its_line(void **state) {
    (void)state;
    refuses("auto", "1 2\n3 x\n", "g:2: expected a whole number, 0 or more: 'x'");
    refuses("auto", "1 2\n\n3\n", "g:3: expected a whole number, 0 or more: the line ends");
    refuses("auto", "1 -2\n", "g:1: expected a whole number, 0 or more: '-2'");
    refuses("auto", "18446744073709551616 1\n", "g:1: an id is below 2^64");
    refuses("auto", "1 2 0.5\n3 4\n", "g:2: expected a weight, as before");
    refuses("auto", "1 2\n3 4 1\n", "g:2: a weight, but the lines before have none");
    refuses("auto", "1 2 inf\n", "g:1: expected a finite weight: 'inf'");
    refuses("auto", "1 2 1 1\n", "g:1: expected the end of the line");
    refuses("auto", "# nothing\n", "it has no edge");
    refuses("auto", "%%MatrixMarket matrix array real general\n", "g:1: a graph is a matrix in coordinate form");
    refuses("auto", "%%MatrixMarket matrix coordinate real general\n3 2 0\n",
            "g:2: a graph's matrix has as many rows as columns, and this one has 3 and 2");
    refuses("auto", "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n4 1\n", "g:3: entry 4 1 lies outside");
    refuses("auto", "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 1\n", "2 entries, and it has 1");
    refuses("metis", "3 2\n2\n1 3\n", "promises 3 vertices");
    refuses("metis", "1 9223372036854775808\n\n", "and 9223372036854775808 edges");
    refuses("metis", "2 1\n2\n\n", "2 lines with 1 neighbors");
    refuses("metis", "2 1\n3\n1\n", "g:2: a neighbor is a number from 1 to 2, not 3");
    refuses("metis", "1 0\n\n7\n", "g:3: expected the end of the file");
    refuses("adjacency", "1 2 5\n", "g:1: the line has fewer neighbors");
    refuses("adjacency", "1 1 5 6\n", "g:1: the line has more neighbors");
    refuses("snip", "1 2\n", "did you mean 'snap'?");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_format_is_read),
                                        cmocka_unit_test(test_every_mistake_has_its_line) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
