/* LIBSVM text, loaded: values, bases, labels, order, refusals; the same rows for any number of workers. */
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

#include "data/dataset/dataset.h"
#include "data/file_case.h"

static char file_name[] = "/tmp/plait_libsvm_XXXXXX";

static void write_file(const char *text, size_t bytes) {
    FILE *file = fopen(file_name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    fclose(file);
}

static plait_status open_text(const char *text, const char *base, int32_t worker, int32_t workers, pli_dataset **out,
                              plait_error *err) {
    const char     *paths[] = { file_name };
    plait_data_opts opts;
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 1;
    opts.index_base = base;
    opts.format = "libsvm";
    if (text != NULL) write_file(text, strlen(text));
    return pli_dataset_open(&opts, NULL, worker, workers, out, err);
}

static pli_dataset *load(const char *text, const char *base) {
    plait_error  err;
    pli_dataset *d = NULL;
    plait_status status = open_text(text, base, 0, 1, &d, &err);
    if (status == PLAIT_OK) status = pli_dataset_load(d, NULL, &err);
    if (status < 0) fail_msg("%s", err.text);
    return d;
}

/* The rows of a data set as text, "label k:v k:v|" with values by %.9g. */
static char *rows_text(const pli_dataset *d, char *text, size_t size) {
    size_t at = 0;
    text[0] = '\0';
    for (int32_t b = 0; b < pli_dataset_own_blocks(d); b++) {
        const pli_block *block = pli_dataset_block(d, b);
        for (int64_t row = 0; row < block->rows; row++) {
            at += (size_t)snprintf(text + at, size - at, "%g", block->label[row]);
            for (int64_t i = block->row_start[row]; i < block->row_start[row + 1]; i++)
                at += (size_t)snprintf(text + at, size - at, " %llu:%.9g", (unsigned long long)pli_block_key(block, i),
                                       (double)(block->value != NULL ? block->value[i] : 1.0f));
            at += (size_t)snprintf(text + at, size - at, "|");
        }
    }
    return text;
}

static void expect_rows(const char *text, const char *base, const char *expected) {
    char         got[4096];
    pli_dataset *d = load(text, base);
    assert_string_equal(rows_text(d, got, sizeof got), expected);
    pli_dataset_destroy(&d);
}

static void test_rows(void **state) {
    (void)state;
    expect_rows("+1 1:1 3:1\n-1 2:1\n", "auto", "1 0:1 2:1|-1 1:1|");
    expect_rows("1 0:1 3:1\n-1 2:1\n", "auto", "1 0:1 3:1|-1 2:1|");
}

/* Entries as they mostly are take a short way; those behind a tab take the long one. Both read the same. */
static void test_plain_entries_are_read_as_all_others(void **state) {
    enum { LINES = 400, BYTES = 200000 };
    char      *text = malloc(BYTES), *plain = malloc(BYTES), *other = malloc(BYTES);
    pli_random r = pli_random_at(5, PLI_RANDOM_DATA, 0, 0);
    (void)state;
    for (int way = 0; way < 4; way++) { /* all 1; digits; all 1 and some decimals; out of order */
        size_t at = 0;
        for (int line = 0; line < LINES; line++) {
            const int     n = (int)(pli_random_u64(&r) % 24);
            unsigned long index = 0;
            at += (size_t)snprintf(text + at, BYTES - at, "%d", line % 3);
            for (int e = 0; e < n; e++) {
                index += 1 + pli_random_u64(&r) % (e % 5 == 4 ? 30000000UL : 50);
                const char *const value[] = { "1", e % 2 ? "7" : "0", e % 5 == 3 ? "-2.5e1" : "1", "1" };
                const unsigned long back = way == 3 && e == 9 && index > 29000000 ? 28000000 : 0;
                at += (size_t)snprintf(text + at, BYTES - at, " %lu:%s", index - back, value[way]);
            }
            at += (size_t)snprintf(text + at, BYTES - at, line % 7 == 0 ? " \r\n" : "\n");
        }
        for (int base = 0; base < 2; base++) {
            pli_dataset *d = load(text, base == 0 ? "0" : "1");
            rows_text(d, plain, BYTES);
            pli_dataset_destroy(&d);
            for (size_t i = 0; i < at; i++)
                if (text[i] == ' ') text[i] = '\t';
            d = load(text, base == 0 ? "0" : "1");
            rows_text(d, other, BYTES);
            pli_dataset_destroy(&d);
            assert_string_equal(plain, other);
            for (size_t i = 0; i < at; i++)
                if (text[i] == '\t') text[i] = ' ';
        }
    }
    free(text);
    free(plain);
    free(other);
}

/* What ends a run of plain entries. */
static void test_ends_of_plain_entries(void **state) {
    (void)state;
    expect_rows("1 1:1 2:1 3:2 4:1\n", "1", "1 0:1 1:1 2:2 3:1|");
    expect_rows("1 1:1 2:1# 3:2\n", "1", "1 0:1 1:1|");
    expect_rows("1 1:1 2:1 #3:2\n2 1:1\n", "1", "1 0:1 1:1|2 0:1|");
    expect_rows("1 1:1  2:1 \n", "1", "1 0:1 1:1|");
    expect_rows("1 12345678:1 123456789:1 1234567890:1\n", "1", "1 12345677:1 123456788:1 1234567889:1|");
    expect_rows("1 1:1 qid:7 2:1 3:12 4:1\n", "1", "1 0:1 1:1 2:12 3:1|");
    expect_rows("1 5:1 3:1 4:1\n", "1", "1 2:1 3:1 4:1|");
    expect_rows("1 1:1 2:1", "1", "1 0:1 1:1|");
}

/* Queries are kept, a row without one has 0, and 64 blocks are cut between queries, also longer ones than a block. */
static void test_queries(void **state) {
    static char  text[30000];
    size_t       n = 0;
    pli_dataset *d = NULL;
    uint64_t     last = 0;
    int64_t      rows = 0, changes = 0;
    (void)state;
    for (int i = 0; i < 900; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%d qid:%u 1:%d\n", i % 3,
                              i < 300 ? 7 : 4294967295u - (uint32_t)i / 40, i % 7);
        if (i % 40 == 13) n += (size_t)snprintf(text + n, sizeof text - n, "# between\n\n");
    }
    d = load(text, "auto");
    for (int32_t b = 0; b < pli_dataset_own_blocks(d); b++) {
        const pli_block *block = pli_dataset_block(d, b);
        assert_true(block->rows == 0 || block->query[0] != last); /* no query lies in two */
        for (int64_t r = 0; r < block->rows; r++, rows++) {
            const uint64_t want = rows < 300 ? 7 : 4294967295u - (uint64_t)rows / 40;
            assert_true(pli_query_id(block->query[r]) == want);
            changes += block->query[r] != last;
            last = block->query[r];
        }
    }
    assert_true(rows == 900 && changes == 1 + 16);
    pli_dataset_destroy(&d);
}

static void test_bases(void **state) {
    (void)state;
    expect_rows("1 1:1\n", "0", "1 1:1|");
    expect_rows("1 2:1\n-1 5:1 0:2 3:1\n", "auto", "1 2:1|-1 0:2 3:1 5:1|"); /* not sorted, and an index 0 comes late */
    expect_rows("1 4294967299:1 7:2\n1 1:1", "auto", "1 6:2 4294967298:1|1 0:1|");
    expect_rows("1 3:1 0:2\n1 4294967299:1\n", "auto", "1 0:2 3:1|1 4294967299:1|"); /* zero first, then a wide index */
    expect_rows("1 4294967295:1\n", "auto", "1 4294967294:1|");
    expect_rows("1 9223372036854775807:3\n", "0", "1 9223372036854775807:3|");
}

static void test_values(void **state) {
    (void)state;
    expect_rows("0.5 1:0.25 2:-3 3:1e-3 4:12345678901234567890 5:.5 6:7. 7:+2 8:1e2", "auto",
                "0.5 0:0.25 1:-3 2:0.00100000005 3:1.23456794e+19 4:0.5 5:7 6:2 7:100|");
    expect_rows("3 1:0.1234567890123456789 2:1e-45 3:3.4028234e38\r\n", "auto",
                "3 0:0.123456791 1:1.40129846e-45 2:3.40282347e+38|");
}

static void test_odd_lines(void **state) {
    (void)state;
    expect_rows("\n# all comment\n 1 1:1 # 2:1\r\n\r\n\t\n2\n3 qid:17 4:1 \n4\t5:1\t6:2", "auto",
                "1 0:1|2|3 3:1|4 4:1 5:2|");
}

static void refuse(const char *text, const char *base, plait_status code, const char *message) {
    plait_error  err = { 0 };
    pli_dataset *d = NULL;
    plait_status status = open_text(text, base, 0, 1, &d, &err);
    if (status == PLAIT_OK) status = pli_dataset_load(d, NULL, &err);
    assert_int_equal(status, code);
    if (strstr(err.text, message) == NULL) fail_msg("expected \"%s\" in \"%s\"", message, err.text);
    pli_dataset_destroy(&d);
}

static void test_refusals(void **state) {
    (void)state;
    refuse("1 1:1\n1 2:x\n", "auto", PLAIT_EFORMAT, ":2: expected a finite value after index:, found \"x\"");
    refuse("1 1:1\n\n1 2:nan\n", "auto", PLAIT_EFORMAT, ":3: expected a finite value");
    refuse("1 2:1e39\n", "auto", PLAIT_EFORMAT, ":1: expected a finite value");
    refuse("inf 2:1\n", "auto", PLAIT_EFORMAT, ":1: expected a label");
    refuse("1 -2:1\n", "auto", PLAIT_EFORMAT, ":1: expected index:value");
    refuse("1 9223372036854775808:1\n", "auto", PLAIT_EFORMAT, ":1: expected an index below 9223372036854775808");
    refuse("1 3:1 3:2\n", "auto", PLAIT_EFORMAT, ":1: expected each index once, found 3 twice");
    refuse("1 3:\n", "auto", PLAIT_EFORMAT, "found the end of the line");
    refuse("1 0:1\n", "1", PLAIT_EFORMAT, "expected indices from 1");
    refuse("2:1 3:1\n", "auto", PLAIT_EFORMAT, "expected a label before");
    refuse("", "auto", PLAIT_EFORMAT, "empty");
    refuse("\n# nothing\n", "auto", PLAIT_EFORMAT, "no rows");
    refuse("1 1:1\n", "2", PLAIT_EINVAL, "expected auto, 0 or 1");
}

/* Writes a file of many lines, with every difference that lines can have. */
static void write_many(int rows) {
    char  *text = malloc((size_t)rows * 96);
    size_t at = 0;
    assert_non_null(text);
    for (int i = 0; i < rows; i++) {
        at += (size_t)sprintf(text + at, "%d", i % 7 - 3);
        for (int k = 0; k < i % 5; k++)
            at += (size_t)sprintf(text + at, " %d:%d", 1 + k * 1000 + i % 13, 1 + (i % 3 == 0) * k);
        at += (size_t)sprintf(text + at, i % 11 == 0 ? " # note\n\n" : "\n");
    }
    write_file(text, at);
    free(text);
}

enum { MANY = 3000 };

/* Opens, loads and agrees for all workers, and gives the rows in order; also checks the numbers of blocks and rows. */
static void rows_of_workers(int32_t workers, int32_t spares, char *text, size_t size) {
    const int32_t     all = workers + spares; /* the last workers own no block */
    pli_dataset      *d[128] = { NULL };
    const pli_schema *part[128] = { NULL };
    pli_schema       *joined = NULL;
    plait_error       err;
    int64_t           rows = 0;
    for (int32_t w = 0; w < all; w++) {
        assert_int_equal(open_text(NULL, "auto", w, workers, &d[w], &err), PLAIT_OK);
        assert_int_equal(pli_dataset_load(d[w], NULL, &err), PLAIT_OK);
        part[w] = pli_dataset_schema(d[w]);
    }
    assert_int_equal(pli_schema_merge(part, all, &joined, &err), PLAIT_OK);
    assert_int_equal(pli_schema_rows(joined), MANY);
    assert_int_equal(pli_schema_labels(joined), 7);
    for (int32_t w = 0; w < all; w++) {
        assert_int_equal(pli_dataset_agree(d[w], joined, &err), PLAIT_OK);
        if (w >= workers) assert_int_equal(pli_dataset_own_blocks(d[w]), 0);
        for (int32_t b = 0; b < pli_dataset_blocks(d[w]); b++) assert_true(pli_dataset_home(d[w], b) < workers);
        rows_text(d[w], text + strlen(text), size - strlen(text));
        for (int32_t b = 0; b < pli_dataset_own_blocks(d[w]); b++) {
            assert_int_equal(pli_dataset_block(d[w], b)->first_row, rows);
            assert_int_equal(pli_dataset_block(d[w], b)->number, pli_dataset_first_block(d[w]) + b);
            rows += pli_dataset_block(d[w], b)->rows;
        }
    }
    assert_int_equal(rows, MANY);
    for (int32_t w = 0; w < all; w++) pli_dataset_destroy(&d[w]);
    pli_schema_destroy(&joined);
}

static void test_workers_see_the_same_rows(void **state) {
    enum { SIZE = 1 << 20 };
    static const int32_t counts[] = { 2, 3, 4, 64, 100 };
    char                *one = calloc(1, SIZE), *many = calloc(1, SIZE);
    (void)state;
    write_many(MANY);
    rows_of_workers(1, 0, one, SIZE);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        many[0] = '\0';
        rows_of_workers(counts[i], 0, many, SIZE);
        assert_string_equal(one, many);
        many[0] = '\0';
        rows_of_workers(counts[i] - 1, 2, many, SIZE);
        assert_string_equal(one, many);
    }
    free(one);
    free(many);
}

/* Every row comes once an epoch; 1 and 4 workers have the same batches; another epoch has another order. */
static void test_batches(void **state) {
    enum { CLOCKS = 37 };
    plait_error  err;
    pli_dataset *d = NULL, *quarter[4] = { NULL };
    pli_batches *all = NULL, *part[4] = { NULL };
    int          seen[MANY] = { 0 };
    (void)state;
    write_many(MANY);
    d = load(NULL, "auto");
    assert_int_equal(pli_batches_create(d, 7, CLOCKS, true, NULL, NULL, &all, &err), PLAIT_OK);
    for (int32_t w = 0; w < 4; w++) {
        assert_int_equal(open_text(NULL, "auto", w, 4, &quarter[w], &err), PLAIT_OK);
        assert_int_equal(pli_dataset_load(quarter[w], NULL, &err), PLAIT_OK);
        assert_int_equal(pli_batches_create(quarter[w], 7, CLOCKS, true, NULL, NULL, &part[w], &err), PLAIT_OK);
    }
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        pli_batch whole, piece;
        int64_t   rows = 0;
        assert_int_equal(pli_batches_get(all, 1, clock, &whole, &err), PLAIT_OK);
        for (int32_t w = 0, at = 0; w < 4; w++) {
            assert_int_equal(pli_batches_get(part[w], 1, clock, &piece, &err), PLAIT_OK);
            for (int32_t i = 0; i < piece.parts; i++, at++) {
                assert_int_equal(piece.part[i].rows, whole.part[at].rows);
                for (int64_t k = 0; k < piece.part[i].rows; k++) {
                    assert_int_equal(piece.part[i].order[k], whole.part[at].order[k]);
                    seen[whole.part[at].block->first_row + whole.part[at].order[k]]++;
                }
            }
            rows += piece.rows;
        }
        assert_int_equal(rows, whole.rows);
    }
    for (int i = 0; i < MANY; i++) assert_int_equal(seen[i], 1);
    for (int32_t w = 0; w < 4; w++) {
        pli_batches_destroy(&part[w]);
        pli_dataset_destroy(&quarter[w]);
    }
    pli_batches_destroy(&all);
    pli_dataset_destroy(&d);
}

static void test_every_failed_allocation(void **state) {
    plait_error  err;
    pli_dataset *d = NULL;
    int64_t      before = pli_alloc_live();
    (void)state;
    write_file("1 3:1 2:2 4294967299:1\n-1 1:0.5\n2\n", 34);
    for (int64_t k = 0;; k++) {
        pli_alloc_fail_after(k);
        plait_status status = open_text(NULL, "auto", 0, 1, &d, &err);
        if (status == PLAIT_OK) status = pli_dataset_load(d, NULL, &err);
        pli_alloc_fail_after(-1);
        pli_dataset_destroy(&d);
        assert_int_equal(pli_alloc_live(), before);
        if (status == PLAIT_OK) break;
        assert_int_equal(status, PLAIT_ENOMEM);
    }
}

/* The rows of a text as they are read for a model whose schema has these fields. */
static void expect_rows_for(const char *fields, const char *text, const char *expected) {
    char         json[400], got[4096];
    const char  *paths[] = { file_name };
    pli_schema  *schema = NULL;
    pli_dataset *d = NULL;
    plait_data_opts opts;
    snprintf(json, sizeof json, "{\"version\":1,\"format\":\"libsvm\",\"index_base\":1,\"rows\":1,\"hash_bits\":0,"
                                "\"features\":9,\"labels\":[0,1],\"label_kind\":\"integer\",%s}", fields);
    assert_int_equal(pli_schema_read(json, strlen(json), &schema, NULL), PLAIT_OK);
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 1;
    opts.format = "libsvm";
    write_file(text, strlen(text));
    assert_int_equal(pli_dataset_open(&opts, schema, 0, 1, &d, NULL), PLAIT_OK);
    assert_int_equal(pli_dataset_load(d, NULL, NULL), PLAIT_OK);
    assert_string_equal(rows_text(d, got, sizeof got), expected);
    pli_dataset_destroy(&d);
    pli_schema_destroy(&schema);
}

/* A row that does not give a feature with an origin has 0 there. The block is wide as soon as the feature asks for it,
 * and a feature below the base is none. */
static void test_features_that_a_row_does_not_give(void **state) {
    (void)state;
    expect_rows_for("\"max_index\":9,\"origins\":[3,1000.0]", "1 2:0.5 4:2\n0 3:1001\n",
                    "1 1:0.5 2:-1000 3:2|0 2:1|");
    expect_rows_for("\"max_index\":5000000000,\"origins\":[5000000000,1000.0]",
                    "0 1:4 2:3\n1 2:0.5\n1 5000000000:1001\n",
                    "0 0:4 1:3 4999999999:-1000|1 1:0.5 4999999999:-1000|1 4999999999:1|");
    expect_rows_for("\"max_index\":4294967296,\"origins\":[4294967296,1000.0]", "1 2:0.5\n",
                    "1 1:0.5 4294967295:-1000|");
    expect_rows_for("\"base_is_sure\":false,\"max_index\":9,\"origins\":[0,1000.0]", "1 2:0.5\n", "1 1:0.5|");
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
        cmocka_unit_test(test_plain_entries_are_read_as_all_others),
        cmocka_unit_test(test_ends_of_plain_entries),
        cmocka_unit_test(test_rows),     cmocka_unit_test(test_queries), cmocka_unit_test(test_bases),
        cmocka_unit_test(test_values),   cmocka_unit_test(test_odd_lines),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_workers_see_the_same_rows),
        cmocka_unit_test(test_features_that_a_row_does_not_give), cmocka_unit_test(test_batches),
        cmocka_unit_test(test_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
