/* Vowpal Wabbit text, loaded and streamed: the grammar, hashed names, n-grams and products, refusals, names behind
 * hashes; what is taken for such text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/file_case.h"
#include "data/formats/vw/vw.h"

static char file_name[] = "/tmp/plait_vw_XXXXXX";

static void write_file(const char *text, size_t bytes) {
    FILE *file = fopen(file_name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    fclose(file);
}

static const char *paths[] = { file_name };

static plait_data_opts opts_of(const char *interactions, const char *ngram) {
    plait_data_opts opts;
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 1;
    opts.format = "vw";
    opts.interactions = interactions;
    opts.ngram = ngram;
    return opts;
}

static plait_status try_load(const char *text, const plait_data_opts *opts, const pli_schema *fixed, pli_dataset **out,
                             plait_error *err) {
    if (text != NULL) write_file(text, strlen(text));
    plait_status status = pli_dataset_open(opts, fixed, 0, 1, out, err);
    return status == PLAIT_OK ? pli_dataset_load(*out, NULL, err) : status;
}

static size_t add_row(const pli_block *block, int64_t row, char *text, size_t size) {
    size_t at = (size_t)snprintf(text, size, "%g", block->label[row]);
    if (block->weight != NULL && block->weight[row] != 1)
        at += (size_t)snprintf(text + at, size - at, "*%g", (double)block->weight[row]);
    for (int64_t i = block->row_start[row]; i < block->row_start[row + 1]; i++)
        at += (size_t)snprintf(text + at, size - at, " %llu:%.9g", (unsigned long long)pli_block_key(block, i),
                               (double)(block->value != NULL ? block->value[i] : 1.0f));
    return at + (size_t)snprintf(text + at, size - at, "|");
}

/* The rows as text, "label*weight key:value key:value|". */
static char *rows_of(const char *vw, const char *interactions, const char *ngram, char *text, size_t size) {
    const plait_data_opts opts = opts_of(interactions, ngram);
    plait_error           err;
    pli_dataset          *d = NULL;
    size_t                at = 0;
    if (try_load(vw, &opts, NULL, &d, &err) < 0) fail_msg("%s", err.text);
    for (int32_t b = 0; b < pli_dataset_own_blocks(d); b++)
        for (int64_t r = 0; r < pli_dataset_block(d, b)->rows; r++)
            at += add_row(pli_dataset_block(d, b), r, text + at, size - at);
    pli_dataset_destroy(&d);
    return text;
}

static void expect(const char *vw, const char *rows) {
    char got[4096];
    assert_string_equal(rows_of(vw, NULL, NULL, got, sizeof got), rows);
}

/* Do both texts give the same rows? */
static void expect_same(const char *one, const char *other, const char *interactions, const char *ngram) {
    char a[8192], b[8192];
    assert_string_equal(rows_of(one, interactions, ngram, a, sizeof a),
                        rows_of(other, interactions, ngram, b, sizeof b));
}

static int64_t entries_of(const char *vw, const char *interactions, const char *ngram) {
    char   *text = malloc(1 << 15);
    int64_t n = 0;
    assert_non_null(text);
    for (const char *c = rows_of(vw, interactions, ngram, text, 1 << 15); *c != '\0'; c++) n += *c == ':';
    free(text);
    return n;
}

/* Numbers of the default namespace are their own keys. */
static void test_lines(void **state) {
    (void)state;
    expect("1 | 7 3:0.5\n-1 | 262143:-2e-1\n", "1 3:0.5 7:1|-1 262143:-0.200000003|");
    expect("+1 2.5 | 1\n0 0 'tag | 1:2\n3 1 0 tag| 1\n", "1*2.5 1:1|0*0 1:2|3 1:1|");
    expect("\n1 |\r\n \n2 | 4 :0.5 :2\n", "1|2 0:0.5 1:2 4:1|"); /* a feature without a name is numbered */
    expect("1 | 5 5 5:2\n1 | 6:0 7\n", "1 5:4|1 7:1|");            /* values add up; zeros are absent */
    expect("1 | 00012 |\t13\n2 'a'b'c | 1|", "1 12:1 13:1|2 1:1|");
}

static void test_names(void **state) {
    (void)state;
    expect_same("1 |a x y\n", "1 |a y |a x:1\n", NULL, NULL);
    expect_same("1 |a long_name|b y\n", "1 |a long_name |b y\n", NULL, NULL);
    expect_same("1 |a:2 x:0.5 y:2\n", "1 |a x y:4\n", NULL, NULL);
    expect_same("1 |a 12345678901 |a 1\n", "1 |a 012345678901 01\n", NULL, NULL);
    expect_same("1 |a 123456789012345678\n", "1 |a 123456789012345678:1\n", NULL, NULL);
    char a[256], b[256];
    assert_string_not_equal(rows_of("1 |a x\n", NULL, NULL, a, 256), rows_of("1 |b x\n", NULL, NULL, b, 256));
    assert_string_not_equal(rows_of("1 |a x\n", NULL, NULL, a, 256), rows_of("1 | x\n", NULL, NULL, b, 256));
    assert_string_not_equal(rows_of("1 |a xx\n", NULL, NULL, a, 256), rows_of("1 |a x\n", NULL, NULL, b, 256));
    assert_int_equal(entries_of("1 |a 1 2 3 4 5 6 7 8 |b 1 2 3\n", NULL, NULL), 11);
}

/* Words of any length at any place; bytes that end none. */
static void test_words(void **state) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz\x01\x7f\xc3\xa9!~.,;";
    (void)state;
    for (int length = 1; length < 40; length++)
        for (int shift = 0; shift < 9; shift++) {
            char one[160], other[160], word[48];
            for (int i = 0; i < length; i++) word[i] = letters[(i + shift) % (int)(sizeof letters - 1)];
            word[length] = '\0';
            snprintf(one, sizeof one, "1 |%.*sx %s zz:3|y %s\n", shift, "nnnnnnnnn", word, word);
            snprintf(other, sizeof other, "1 |y %s:1\t|%.*sx zz:3 %s\r\n", word, shift, "nnnnnnnnn", word);
            expect_same(one, other, NULL, NULL);
            assert_int_equal(entries_of(one, NULL, NULL), 3);
        }
}

/* Features in the order of the line and against it, in rows that are short, long, and have repeats. */
static void test_order(void **state) {
    enum { TEXT = 1 << 15 };
    char *one = malloc(TEXT), *other = malloc(TEXT), *rows = malloc(TEXT), *same = malloc(TEXT);
    (void)state;
    for (int n = 4; n < 700; n += 1 + n / 3) {
        size_t at = (size_t)sprintf(one, "1 |a"), to = (size_t)sprintf(other, "1 |a");
        for (int i = 0; i < n; i++) at += (size_t)sprintf(one + at, " f%d:%d", i % 600, i % 600 % 4 + 1);
        for (int i = n; i-- > 0;) to += (size_t)sprintf(other + to, " f%d:%d", i % 600, i % 600 % 4 + 1);
        sprintf(one + at, "\n");
        sprintf(other + to, "\n");
        assert_string_equal(rows_of(one, NULL, NULL, rows, TEXT), rows_of(other, NULL, NULL, same, TEXT));
        assert_in_range(entries_of(one, NULL, NULL), (n < 600 ? n : 600) - 3, n < 600 ? n : 600);
    }
    free(one);
    free(other);
    free(rows);
    free(same);
}

static void test_grams(void **state) {
    (void)state;
    assert_int_equal(entries_of("1 |a x y z\n", NULL, "2"), 5);
    assert_int_equal(entries_of("1 |a x y z\n", NULL, "3"), 6);
    assert_int_equal(entries_of("1 |a x y z |b x y z\n", NULL, "b2"), 8);
    assert_int_equal(entries_of("1 |a x\n", NULL, "16"), 1);
    assert_int_equal(entries_of("1 |a x x x\n", NULL, "2"), 2); /* equal n-grams add up */
    char a[256], b[256];
    assert_string_not_equal(rows_of("1 |a x y\n", NULL, "2", a, 256), rows_of("1 |a y x\n", NULL, "2", b, 256));
}

static void test_products(void **state) {
    (void)state;
    assert_int_equal(entries_of("1 |a x y |b u v w\n", "ab", NULL), 5 + 6);
    assert_int_equal(entries_of("1 |a x y |b u v w\n", "ab,aa", NULL), 5 + 6 + 1);
    assert_int_equal(entries_of("1 |a x:2 y\n", "aa", NULL), 2 + 2); /* x*x, x*y; y*y is y */
    assert_int_equal(entries_of("1 |a x y |b u v w |c k\n", "abc", NULL), 6 + 6);
    assert_int_equal(entries_of("1 |a x y z |b u\n", "aaa,bba", NULL), 4 + 1);
    assert_int_equal(entries_of("1 |a x y |b u | z\n", "::", NULL), 4 + 6);
    assert_int_equal(entries_of("1 |a x y |b u v\n", "ab", "a2"), 5 + 6); /* n-grams are features of their space */
    assert_int_equal(entries_of("1 |apple x |axe y |b u\n", "ab", NULL), 3 + 2);
    expect_same("1 |a x y |b u\n", "1 |b u |a y x\n", "ab", NULL);
    expect_same("1 |a x |b u\n", "1 |a x |b u\n", "ba", NULL);
    char a[256], b[256];
    assert_string_equal(rows_of("1 |a x |b u\n", "ab", NULL, a, 256), rows_of("1 |a x |b u\n", "ba", NULL, b, 256));
    assert_non_null(strstr(rows_of("1 |a x:2 |b u:1.5\n", "ab", NULL, a, 256), ":3"));
    assert_string_not_equal(rows_of("1 |a x y\n", "aa", NULL, a, 256), rows_of("1 |a x y\n", NULL, "2", b, 256));
}

static void refuse_with(const char *vw, const plait_data_opts *opts, plait_status code, const char *said) {
    plait_error        err = { 0 };
    pli_dataset       *d = NULL;
    const plait_status status = try_load(vw, opts, NULL, &d, &err);
    if (status != code || strstr(err.text, said) == NULL) fail_msg("expected \"%s\" in \"%s\"", said, err.text);
    pli_dataset_destroy(&d);
}

static void refuse(const char *vw, const char *said) {
    const plait_data_opts opts = opts_of(NULL, NULL);
    refuse_with(vw, &opts, PLAIT_EFORMAT, said);
}

static void test_refusals(void **state) {
    (void)state;
    refuse("1 | a\n1 | a:x\n", ":2: expected a finite value after name:, found \"x\"");
    refuse("1 | a:1:2\n", ":1: expected a finite value");
    refuse("1 |:3 a\n", "expected a blank or the name of a namespace behind |");
    refuse("1 | a:\n", "found the end of the line");
    refuse("1 |a:2e38 b:10\n", "also times its namespace's");
    refuse("nan | a\n", ":1: expected a label");
    refuse("| a\n", ":1: expected a label in front of |");
    refuse("1\n", ":1: expected | behind the label");
    refuse("1 2\n", ":1: expected | behind the label");
    refuse("1 2 \n", ":1: expected | in front of the features");
    refuse("1|a b\n", "expected a blank between the label and |");
    refuse("1 -1 | a\n", "expected an importance of 0 or more");
    refuse("1 1e39 | a\n", "expected an importance");
    refuse("1 1 0.5 | a\n", "only 0 is read");
    refuse("1 1 0 4 | a\n", "at most a label, an importance and a base");
    refuse("1:0.5 2:1 | a\n", "labels with costs (class:cost) are not read");
    refuse("1 'tag x | a\n", "expected | behind the tag");
    refuse("1 | a\rb\n", "behind a carriage return");
    refuse("\n\n", "no rows");
}

static void test_refused_options(void **state) {
    static const struct {
        const char *interactions, *ngram, *said;
        plait_status code;
    } bad[] = {
        { "a", NULL, "expected two or three letters", PLAIT_EINVAL },
        { "abcd", NULL, "expected two or three letters", PLAIT_EINVAL },
        { "ab,", NULL, "expected two or three letters", PLAIT_EINVAL },
        { "ab,ba", NULL, "\"ba\" stands there twice", PLAIT_EINVAL },
        { "a:", NULL, "only by itself", PLAIT_EINVAL },
        { NULL, "1", "expected a length from 2 to 16", PLAIT_EINVAL },
        { NULL, "17", "expected a length from 2 to 16", PLAIT_EINVAL },
        { NULL, "a", "expected a length from 2 to 16", PLAIT_EINVAL },
        { NULL, "2,3", "expected a length from 2 to 16", PLAIT_EINVAL },
        { NULL, "a2x", "expected a length from 2 to 16", PLAIT_EINVAL },
        { "ax", NULL, "interactions: no namespace begins with \"x\", but with \"a\", \"b\"", PLAIT_ENAME },
        { NULL, "a2,x2", "ngram: no namespace begins with \"x\"", PLAIT_ENAME },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const plait_data_opts opts = opts_of(bad[i].interactions, bad[i].ngram);
        refuse_with("1 |a x |b y\n", &opts, bad[i].code, bad[i].said);
    }
    plait_data_opts csv = opts_of("ab", NULL);
    csv.format = "csv";
    refuse_with("1,2\n0,3\n", &csv, PLAIT_EINVAL, "--interactions has no meaning for csv");
    csv.interactions = NULL;
    csv.ngram = "2";
    refuse_with("1,2\n0,3\n", &csv, PLAIT_EINVAL, "--ngram has no meaning for csv");
}

/* A row of more features than memory should hold is refused before they are made. */
static void test_too_many(void **state) {
    enum { N = 6000 };
    const plait_data_opts opts = opts_of("aa", NULL);
    char                 *text = malloc(N * 8 + 16);
    size_t                at = (size_t)sprintf(text, "1 |a");
    (void)state;
    for (int i = 0; i < N; i++) at += (size_t)sprintf(text + at, " x%d", i);
    sprintf(text + at, "\n");
    refuse_with(text, &opts, PLAIT_EFORMAT, ":1: expected at most 16777216 features in a row");
    free(text);
}

/* --- many rows: workers, streams, models -------------------------------------------------------------------------- */

enum { MANY = 3000, SIZE = 1 << 20 };

static void write_many(void) {
    char  *text = malloc((size_t)MANY * 128);
    size_t at = 0;
    for (int i = 0; i < MANY; i++) {
        at += (size_t)sprintf(text + at, "%d%s |f n%d:%d w%d |g", i % 7 - 3, i % 5 == 0 ? " 2 'odd" : "", i % 13, i % 4,
                              i % 29);
        for (int k = 0; k < i % 4; k++) at += (size_t)sprintf(text + at, " k%d:0.5", (i * 7 + k) % 101);
        at += (size_t)sprintf(text + at, i % 11 == 0 ? "\n\n" : "\n");
    }
    write_file(text, at);
    free(text);
}

static void rows_of_workers(int32_t workers, char *text) {
    const plait_data_opts opts = opts_of("fg", "2");
    pli_dataset          *d[64] = { NULL };
    const pli_schema     *part[64];
    pli_schema           *joined = NULL;
    plait_error           err;
    size_t                at = 0;
    for (int32_t w = 0; w < workers; w++) {
        if (pli_dataset_open(&opts, NULL, w, workers, &d[w], &err) < 0) fail_msg("%s", err.text);
        assert_int_equal(pli_dataset_load(d[w], NULL, &err), PLAIT_OK);
        part[w] = pli_dataset_schema(d[w]);
    }
    assert_int_equal(pli_schema_merge(part, workers, &joined, &err), PLAIT_OK);
    assert_int_equal(pli_schema_rows(joined), MANY);
    assert_int_equal(pli_schema_labels(joined), 7);
    assert_int_equal(pli_schema_features(joined), 1 << 18);
    for (int32_t w = 0; w < workers; w++) {
        assert_int_equal(pli_dataset_agree(d[w], joined, &err), PLAIT_OK);
        for (int32_t b = 0; b < pli_dataset_own_blocks(d[w]); b++)
            for (int64_t r = 0; r < pli_dataset_block(d[w], b)->rows; r++)
                at += add_row(pli_dataset_block(d[w], b), r, text + at, SIZE - at);
        pli_dataset_destroy(&d[w]);
    }
    pli_schema_destroy(&joined);
}

static void rows_of_stream(char *text) {
    const plait_data_opts opts = opts_of("fg", "2");
    pli_dataset          *d = NULL;
    pli_schema           *joined = NULL;
    pli_batches          *stream = NULL;
    plait_error           err;
    size_t                at = 0;
    assert_int_equal(pli_dataset_open(&opts, NULL, 0, 1, &d, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_scan(d, false, NULL, &err), PLAIT_OK);
    const pli_schema *part = pli_dataset_schema(d);
    assert_int_equal(pli_schema_merge(&part, 1, &joined, &err), PLAIT_OK);
    assert_int_equal(pli_schema_rows(joined), MANY);
    assert_int_equal(pli_schema_labels(joined), 7);
    assert_int_equal(pli_dataset_agree(d, joined, &err), PLAIT_OK);
    assert_int_equal(pli_batches_stream(d, MANY, NULL, &stream, &err), PLAIT_OK);
    for (int32_t p = 0; p < pli_dataset_own_blocks(d); p++) {
        pli_part got;
        assert_int_equal(pli_stream_part(stream, 0, p, 0, &got, &err), PLAIT_OK);
        for (int64_t r = 0; r < got.rows; r++) at += add_row(got.block, r, text + at, SIZE - at);
    }
    pli_batches_destroy(&stream);
    pli_dataset_destroy(&d);
    pli_schema_destroy(&joined);
}

static void test_every_way_gives_the_same_rows(void **state) {
    char *one = calloc(1, SIZE), *other = calloc(1, SIZE);
    (void)state;
    write_many();
    rows_of_workers(1, one);
    rows_of_workers(3, other);
    assert_string_equal(one, other);
    rows_of_stream(other);
    assert_string_equal(one, other);
    free(one);
    free(other);
}

/* A namespace that only the pass before a stream can miss is missed then, too. */
static void test_a_stream_knows_its_namespaces(void **state) {
    const plait_data_opts opts = opts_of("fx", NULL);
    pli_dataset          *d = NULL;
    plait_error           err = { 0 };
    (void)state;
    write_many();
    assert_int_equal(pli_dataset_open(&opts, NULL, 0, 1, &d, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_scan(d, false, NULL, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_agree(d, pli_dataset_schema(d), &err), PLAIT_ENAME);
    pli_dataset_destroy(&d);
}

static void first_row(const pli_dataset *d, char *text, size_t size) {
    int32_t b = 0;
    while (pli_dataset_block(d, b)->rows == 0) b++;
    add_row(pli_dataset_block(d, b), 0, text, size);
}

/* A model's schema reads rows as training did, with labels or without; other options are refused. */
static void test_a_model(void **state) {
    plait_data_opts opts = opts_of("ab", "a2");
    plait_error     err = { 0 };
    pli_dataset    *d = NULL, *again = NULL;
    pli_text        json = { 0 };
    pli_schema     *schema = NULL;
    char            text[256] = "", same[256] = "";
    (void)state;
    assert_int_equal(try_load("1 |a x y |b u\n-1 |a y\n", &opts, NULL, &d, &err), PLAIT_OK);
    assert_int_equal(pli_schema_write_model(pli_dataset_schema(d), &json, &err), PLAIT_OK);
    assert_int_equal(pli_schema_read(json.data, json.length, &schema, &err), PLAIT_OK);
    first_row(d, text, sizeof text);
    opts.interactions = opts.ngram = NULL;
    opts.format = "auto";
    assert_int_equal(try_load("|a x y |b u\n", &opts, schema, &again, &err), PLAIT_OK);
    first_row(again, same, sizeof same);
    assert_string_equal(strchr(text, ' '), strchr(same, ' '));
    pli_dataset_destroy(&again);
    opts.interactions = "aa";
    assert_int_equal(try_load(NULL, &opts, schema, &again, &err), PLAIT_EMISMATCH);
    pli_dataset_destroy(&again);
    pli_dataset_destroy(&d);
    pli_schema_destroy(&schema);
    pli_text_free(&json);
}

static void test_every_failed_allocation(void **state) {
    const plait_data_opts opts = opts_of("ab", "2");
    plait_error           err;
    pli_dataset          *d = NULL;
    const int64_t         before = pli_alloc_live();
    (void)state;
    for (int64_t k = 0;; k++) {
        pli_alloc_fail_after(k);
        plait_status status = try_load("1 |a x y |b u:2\n-1 2 |a y\n", &opts, NULL, &d, &err);
        pli_alloc_fail_after(-1);
        pli_dataset_destroy(&d);
        assert_int_equal(pli_alloc_live(), before);
        if (status == PLAIT_OK) break;
        assert_int_equal(status, PLAIT_ENOMEM);
    }
}

/* --- what it is -------------------------------------------------------------------------------------------------- */

static void test_recognised(void **state) {
    static const struct {
        const char *text;
        bool        is;
    } texts[] = {
        { "1 | price:.23 sqft:.25\n0 | price:.5\n", true },
        { "|f a:1\n\n|f b:2 c\n", true },
        { "-1 2.0 'second|a x:1 |b y z\n", true },
        { "1 1.0 first|a x:1 |b y\n0 |a x\n", true },
        { "1:0.5 2:1 | a b c\n", true },
        { "1 | a b c\n-1 | a d\n", true },
        { "1 |text good film |user u1\n-1 |text bad film |user u2\n", true },
        { "1 |f a\n-1 |f b |g c\n", true },
        { "1 |2 |3\n4 |5 |6\n", false },
        { "1|2|3\n4|5|6\n", false },
        { "1 | 2 | 3\n4 | 5 | 6\n", false },
        { "1 | 10:30 | 3\n2 | 11:30 | 4\n", false },
        { "a|b|y\n1|2|3\n", false },
        { "1 3:1 # a | b:1\n", false },
        { "1 1:2\n0 |f a:1\n", false },
        { "\n\n", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const pli_source source = { .data = (const unsigned char *)texts[i].text, .bytes = strlen(texts[i].text) };
        if (pli_vw_is(&source) != texts[i].is) fail_msg("\"%s\" is%s vw", texts[i].text, texts[i].is ? " not" : "");
    }
}

static int make_file(void **state) {
    (void)state;
    return new_file(file_name);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(file_name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_grams),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_every_way_gives_the_same_rows),
        cmocka_unit_test(test_a_stream_knows_its_namespaces),
        cmocka_unit_test(test_a_model),
        cmocka_unit_test(test_every_failed_allocation),
        cmocka_unit_test(test_recognised),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
