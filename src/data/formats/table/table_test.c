/* csv and tsv: headers, labels, texts, missing cells, models' schemas, refusals; the same rows for any workers. */
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

#include "data/file_case.h"
#include "data/formats/table/table.h"

static char file_name[] = "/tmp/plait_table_XXXXXX";

static void write_file(const char *text) {
    FILE *file = fopen(file_name, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static plait_data_opts table_opts(const char *label) {
    static const char *paths[] = { file_name };
    plait_data_opts    opts = opts_of_file(paths);
    opts.label = label;
    return opts;
}

static pli_dataset *load(const plait_data_opts *opts, const pli_schema *fixed) {
    plait_error  err;
    pli_dataset *d = NULL;
    plait_status status = pli_dataset_open(opts, fixed, 0, 1, &d, &err);
    if (status == PLAIT_OK) status = pli_dataset_load(d, NULL, &err);
    if (status < 0) fail_msg("%s", err.text);
    return d;
}

/* Adds all rows as "label name:value name:value|". */
static void add_rows(const pli_dataset *d, pli_text *text) {
    for (int32_t b = 0; b < pli_dataset_own_blocks(d); b++) {
        const pli_block *block = pli_dataset_block(d, b);
        for (int64_t row = 0; row < block->rows; row++) {
            pli_text_add(text, "%g", block->label[row]);
            if (block->weight != NULL) pli_text_add(text, "*%g", (double)block->weight[row]);
            for (int64_t i = block->row_start[row]; i < block->row_start[row + 1]; i++) {
                pli_text_add(text, " ");
                pli_schema_feature_name(d->schema, block->col[i], text);
                pli_text_add(text, ":%g", (double)(block->value != NULL ? block->value[i] : 1.0f));
            }
            pli_text_add(text, "|");
        }
    }
}

static void expect(const char *csv, const plait_data_opts *opts, const pli_schema *fixed, const char *expected) {
    pli_text text = { 0 };
    if (csv != NULL) write_file(csv);
    pli_dataset *d = load(opts, fixed);
    add_rows(d, &text);
    assert_string_equal(text.data, expected);
    pli_text_free(&text);
    pli_dataset_destroy(&d);
}

static void test_headers_and_labels(void **state) {
    plait_data_opts opts = table_opts(NULL);
    (void)state;
    expect("1,2,3\n0,5,6\n", &opts, NULL, "1 c2:2 c3:3|0 c2:5 c3:6|");
    expect("a,b,y\n1,2,3\n4,0,6\n", &opts, NULL, "3 a:1 b:2|6 a:4|");
    expect("a\tb\n1\t2\n\n4\t5\r\n", &opts, NULL, "1 b:2|4 b:5|");
    expect("1;2;3\n4;5;6", &opts, NULL, "1 c2:2 c3:3|4 c2:5 c3:6|");
    expect("1  2 3\n 4 5  6 \n", &opts, NULL, "1 c2:2 c3:3|4 c2:5 c3:6|");
    expect("\xef\xbb\xbf"
           "b, a\n1,2\n4,5\n",
           &opts, NULL, "1 a:2|4 a:5|");
    expect("3,2,setosa,virginica\n1,2,0\n3,4,1\n5,6,1\n", &opts, NULL, "0 c1:1 c2:2|1 c1:3 c2:4|1 c1:5 c2:6|");
    opts = table_opts("-1");
    expect("1,2,3\n4,5,6\n", &opts, NULL, "3 c1:1 c2:2|6 c1:4 c2:5|");
    opts = table_opts("b");
    opts.weight_column = "3";
    expect("a,b,c\n1,2,3\n4,5,6\n", &opts, NULL, "2*3 a:1|5*6 a:4|");
    opts = table_opts(NULL);
    opts.header = "no";
    expect("yes,1\nno,2\n", &opts, NULL, "1 c2:1|0 c2:2|");
    opts.header = "yes";
    expect("7,8\n1,2\n", &opts, NULL, "1 8:2|");
}

static void test_texts_and_missing(void **state) {
    plait_data_opts opts = table_opts("y");
    (void)state;
    expect("city,age,y\nRome,4,b\n\"Par\"\"is, F\",,a\n?,0,a\nM\xfcnchen,NA,b\n", &opts, NULL,
           "1 city=Rome:1 age:4|0 city=Par\"is, F:1 age:2|0|1 city=M\xc3\xbcnchen:1 age:2|");
    opts.hash_bits = 4;
    write_file("city,age,y\nRome,4,1\nRome,2,0\n");
    pli_dataset *d = load(&opts, NULL);
    assert_int_equal(pli_schema_features(pli_dataset_schema(d)), 16);
    int64_t entries = 0;
    for (int32_t b = 0; b < pli_dataset_own_blocks(d); b++) entries += pli_dataset_block(d, b)->entries;
    assert_true(entries > 1 && entries <= 4);
    pli_dataset_destroy(&d);
}

/* Writes a long file with all kinds of columns. */
static void write_many(void) {
    pli_text text = { 0 };
    pli_text_add(&text, "id,city,x,y\n");
    for (int i = 0; i < 2000; i++) {
        pli_text_add(&text, "%d,town%d,", i % 5, i * i % 97);
        if (i % 7 == 0)
            pli_text_add(&text, "NA");
        else
            pli_text_add(&text, "%g", i % 10 / 8.0);
        pli_text_add(&text, ",%s\n", i > 1990 ? "rare" : i % 2 ? "odd" : "even");
    }
    write_file(text.data);
    pli_text_free(&text);
}

static void rows_of_workers(int32_t workers, int32_t spares, pli_text *text, pli_text *schema) {
    const int32_t     all = workers + spares; /* the last workers own no block */
    pli_dataset      *d[8] = { NULL };
    const pli_schema *part[8];
    pli_schema       *joined = NULL;
    plait_error       err;
    plait_data_opts   opts = table_opts("y");
    for (int32_t w = 0; w < all; w++) {
        plait_status status = w == 0 ? pli_dataset_open(&opts, NULL, w, workers, &d[w], &err)
                                     : pli_dataset_open_beside(d[0], &opts, NULL, w, workers, &d[w], &err);
        if (status == PLAIT_OK) status = pli_dataset_load(d[w], NULL, &err);
        if (status < 0) fail_msg("%s", err.text);
        pli_text    json = { 0 };
        pli_schema *copy = NULL;
        assert_int_equal(pli_schema_write(pli_dataset_schema(d[w]), &json, &err), PLAIT_OK); /* the schema goes
                                                                                              * through JSON, as over
                                                                                              * a network */
        if (pli_schema_read(json.data, json.length, &copy, &err) != PLAIT_OK) fail_msg("%s in %s", err.text, json.data);
        part[w] = copy;
        pli_text_free(&json);
    }
    assert_int_equal(pli_schema_merge(part, all, &joined, &err), PLAIT_OK);
    assert_int_equal(pli_schema_write_model(joined, schema, &err), PLAIT_OK);
    for (int32_t w = 0; w < all; w++) {
        if (pli_dataset_agree(d[w], joined, &err) != PLAIT_OK) fail_msg("%s", err.text);
        add_rows(d[w], text);
        pli_schema *copy = (pli_schema *)(uintptr_t)part[w];
        pli_schema_destroy(&copy);
    }
    for (int32_t w = 0; w < all; w++) pli_dataset_destroy(&d[w]);
    pli_schema_destroy(&joined);
}

static void test_workers_see_the_same_rows(void **state) {
    static const int32_t counts[] = { 1, 2, 3, 7 };
    pli_text             one = { 0 }, schema = { 0 };
    (void)state;
    write_many();
    rows_of_workers(1, 0, &one, &schema);
    assert_non_null(strstr(schema.data, "\"texts\":[\"even\",\"odd\",\"rare\"]"));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        pli_text many = { 0 }, same = { 0 };
        rows_of_workers(counts[i], i % 2 == 0, &many, &same);
        assert_string_equal(one.data, many.data);
        assert_string_equal(schema.data, same.data);
        pli_text_free(&many);
        pli_text_free(&same);
    }
    pli_text_free(&one);
    pli_text_free(&schema);
}

static void test_streamed(void **state) {
    plait_data_opts opts = table_opts("y");
    plait_error     err;
    pli_dataset    *loaded, *d = NULL;
    pli_batches    *s = NULL;
    pli_schema     *joined = NULL;
    pli_batch       batch;
    int64_t         rows = 0;
    (void)state;
    write_many();
    loaded = load(&opts, NULL);
    assert_int_equal(pli_dataset_open(&opts, NULL, 0, 1, &d, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_scan(d, false, NULL, &err), PLAIT_OK);
    const pli_schema *part = pli_dataset_schema(d);
    assert_int_equal(pli_schema_merge(&part, 1, &joined, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_agree(d, joined, &err), PLAIT_OK);
    assert_int_equal(pli_batches_stream(d, 100, NULL, &s, &err), PLAIT_OK);
    for (int64_t clock = 0; pli_batches_get(s, 0, clock, &batch, &err) == PLAIT_OK; clock++) {
        for (int32_t i = 0; i < batch.parts; i++) {
            const pli_block *got = batch.part[i].block, *want = pli_dataset_block(loaded, i);
            for (int64_t row = batch.part[i].first; row < batch.part[i].first + batch.part[i].rows; row++, rows++) {
                int64_t at = got->first_row + row - want->first_row, n = got->row_start[row + 1] - got->row_start[row];
                assert_int_equal(n, want->row_start[at + 1] - want->row_start[at]);
                assert_memory_equal(got->col + got->row_start[row], want->col + want->row_start[at], (size_t)n * 4);
                assert_memory_equal(got->value + got->row_start[row], want->value + want->row_start[at], (size_t)n * 4);
                assert_true(got->label[row] == want->label[at]);
            }
        }
    }
    assert_int_equal(rows, 2000);
    pli_batches_destroy(&s);
    pli_schema_destroy(&joined);
    pli_dataset_destroy(&d);
    pli_dataset_destroy(&loaded);
}

static void refuse(const char *csv, const plait_data_opts *opts, const pli_schema *fixed, plait_status code,
                   const char *message) {
    plait_error  err = { 0 };
    pli_dataset *d = NULL;
    if (csv != NULL) write_file(csv);
    plait_status status = pli_dataset_open(opts, fixed, 0, 1, &d, &err);
    if (status == PLAIT_OK) status = pli_dataset_load(d, NULL, &err);
    if (status != code || strstr(err.text, message) == NULL)
        fail_msg("expected \"%s\" (%d), found \"%s\" (%d)", message, code, err.text, status);
    pli_dataset_destroy(&d);
}

/* The schema of a table with this text; freed by the caller. */
static pli_schema *schema_of(const char *text, const plait_data_opts *opts) {
    write_file(text);
    pli_dataset *d = load(opts, NULL);
    pli_schema  *schema = pli_schema_copy(pli_dataset_schema(d));
    pli_dataset_destroy(&d);
    return schema;
}

/* Predicting with a model's columns: by name, in another order, without the label, with unknown columns. */
static void test_model_schema(void **state) {
    plait_data_opts opts = table_opts("y");
    (void)state;
    pli_schema *fixed = schema_of("city,age,y\nRome,4,b\nOslo,2,a\nRome,,a\n", &opts);
    opts = table_opts(NULL);
    expect("age,city\n5,Rome\n,Oslo\n", &opts, fixed, "nan city=Rome:1 age:5|nan city=Oslo:1 age:3|");
    expect("age,extra,y,city\n5,x,b,Rome\n1,x,zzz,Bonn\n", &opts, fixed, "1 city=Rome:1 age:5|nan age:1|");
    expect("Rome,7\nOslo,8\n", &opts, fixed, "nan city=Rome:1 age:7|nan city=Oslo:1 age:8|");
    refuse("agee,city\n5,Rome\n1,Oslo\n", &opts, fixed, PLAIT_ENAME,
           "no column \"age\" for a feature of the model; did you mean \"agee\"?");
    refuse("1,2,3,4\n1,2,3,4\n", &opts, fixed, PLAIT_ESHAPE, "expected 3 columns");
    pli_schema_destroy(&fixed);
}

static void test_refusals(void **state) {
    plait_data_opts opts = table_opts(NULL);
    (void)state;
    refuse("1,2,3\n4,5\n", &opts, NULL, PLAIT_EFORMAT, ":2: expected 3 cells, found 2");
    refuse("1,2,3\n4,5,6,7\n", &opts, NULL, PLAIT_EFORMAT, ":2: expected 3 cells, found more than 3");
    refuse("1,2\n4,inf\n", &opts, NULL, PLAIT_EFORMAT, ":2: column \"c2\": expected a finite number, found \"inf\"");
    refuse("1,2\n,3\n", &opts, NULL, PLAIT_EFORMAT, ":2: column \"c1\": expected a label");
    refuse("1,2\n4,\"3\n", &opts, NULL, PLAIT_EFORMAT, ":2: column \"c2\": expected a quote that ends on its line");
    refuse("1,\"2\n4,3\n", &opts, NULL, PLAIT_EFORMAT, ":1: expected quotes that end on their line");
    refuse("1,2\n4,\"3\"x\n", &opts, NULL, PLAIT_EFORMAT, "closing quote");
    refuse("a,a\n1,2\n", &opts, NULL, PLAIT_EFORMAT, "two columns are named \"a\"");
    opts = table_opts("lable");
    refuse("label,b\n1,2\n", &opts, NULL, PLAIT_ENAME, "did you mean \"label\"?");
    opts = table_opts("3");
    refuse("1,2\n1,2\n", &opts, NULL, PLAIT_ENAME, "no column 3");
    opts = table_opts(NULL);
    opts.header = "maybe";
    refuse("1,2\n1,2\n", &opts, NULL, PLAIT_EINVAL, "expected auto, yes or no");
    opts = table_opts(NULL);
    opts.format = "cvs";
    refuse("1,2\n1,2\n", &opts, NULL, PLAIT_ENAME, "did you mean csv?");
}

/* An error among numbers is reported at its place; a column that is half texts, or is named, is a text column. */
static void test_slips_among_numbers(void **state) {
    plait_data_opts opts = table_opts("y");
    (void)state;
    refuse(
        "age,y\n1,0\n2,1\nold,1\n", &opts, NULL, PLAIT_EFORMAT,
        ":4: column \"age\": expected a finite number, found \"old\"; correct the cell or leave it empty, or read "
        "the whole column as texts: --text-columns age");
    refuse("age,y\nold,1\n2,1\n3,0\n", &opts, NULL, PLAIT_EFORMAT, ":2: column \"age\": expected a finite number");
    refuse("age,y\n1,0\n2,1\n3,x\n", &opts, NULL, PLAIT_EFORMAT,
           ":4: column \"y\": expected a label (a finite number), found \"x\"; correct");
    expect("age,y\n1,0\nold,1\nnew,1\n", &opts, NULL, "0 age=1:1|1 age=old:1|1 age=new:1|");
    opts.text_columns = "age";
    expect("age,y\n1,0\n2,1\nold,1\n", &opts, NULL, "0 age=1:1|1 age=2:1|1 age=old:1|");
    opts.text_columns = "1,y";
    expect("age,y\n1,4\n2,3\n", &opts, NULL, "1 age=1:1|0 age=2:1|");
    opts.text_columns = "agee";
    refuse("age,y\n1,4\n", &opts, NULL, PLAIT_ENAME, "no column \"agee\" for texts; did you mean \"age\"?");
    opts = table_opts("y");
    opts.text_columns = "age";
    pli_schema *fixed = schema_of("age,y\n7,4\n8,3\n", &opts);
    opts = table_opts(NULL);
    expect("age,y\n8,4\n7,4\n", &opts, fixed, "4 age=8:1|4 age=7:1|");
    pli_schema_destroy(&fixed);
}

/* One text in ten, exactly, does not yet make a text column. */
static void test_a_tenth_of_texts(void **state) {
    plait_data_opts opts = table_opts("y");
    (void)state;
    for (int texts = 2; texts <= 3; texts++) {
        pli_text csv = { 0 };
        pli_text_add(&csv, "x,y\n");
        for (int i = 0; i < 20; i++) pli_text_add(&csv, i < texts ? "t,%d\n" : "5,%d\n", i);
        if (texts == 2) {
            refuse(csv.data, &opts, NULL, PLAIT_EFORMAT, ":2: column \"x\"");
        } else {
            write_file(csv.data);
            pli_dataset *d = load(&opts, NULL);
            assert_int_equal(pli_schema_features(pli_dataset_schema(d)), 2);
            pli_dataset_destroy(&d);
        }
        pli_text_free(&csv);
    }
}

/* Loads csv and expects notes that contain `wanted` and not `unwanted`; NULL: not checked. */
static void expect_note(const char *csv, const char *wanted, const char *unwanted) {
    plait_data_opts opts = table_opts(NULL);
    write_file(csv);
    pli_dataset *d = load(&opts, NULL);
    if (wanted != NULL && strstr(pli_dataset_notes(d), wanted) == NULL)
        fail_msg("no \"%s\" in \"%s\"", wanted, pli_dataset_notes(d));
    if (unwanted != NULL && strstr(pli_dataset_notes(d), unwanted) != NULL)
        fail_msg("\"%s\" in \"%s\"", unwanted, pli_dataset_notes(d));
    pli_dataset_destroy(&d);
}

static void test_delimiters(void **state) {
    plait_data_opts opts = table_opts("y");
    (void)state;
    expect("y;a;b\n1,5;2;3\n2,5;3;1\n", &opts, NULL, "1.5 a:2 b:3|2.5 a:3 b:1|");
    expect("y\tname\n1\tSmith, J\n2\tDoe\n3\tRoe, K\n", &opts, NULL,
           "1 name=Smith, J:1|2 name=Doe:1|3 name=Roe, K:1|");
    expect("y|a\n1|2\n2|3\n", &opts, NULL, "1 a:2|2 a:3|");
    opts.delimiter = "#";
    expect("y#a#b\n1#2#3\n4#5#6\n", &opts, NULL, "1 a:2 b:3|4 a:5 b:6|");
    pli_schema *fixed = schema_of("y#a#b\n1#2#3\n4#5#6\n", &opts);
    opts = table_opts(NULL); /* the model knows the delimiter; other data have their own */
    expect("b#a\n7#8\n9#0\n", &opts, fixed, "nan a:8 b:7|nan b:9|");
    expect("b,a\n7,8\n9,0\n", &opts, fixed, "nan a:8 b:7|nan b:9|");
    pli_schema_destroy(&fixed);
    expect_note("1,2;3\n4,5;6\n", "delimiters ';' and , both give every line the same number of cells, 2 and 2; ';' is",
                NULL);
    opts.delimiter = ",";
    expect("1,2;3\n4,5;6\n", &opts, NULL, "1 c2=2;3:1|4 c2=5;6:1|");
    opts.delimiter = "ab";
    refuse("1,2\n", &opts, NULL, PLAIT_EINVAL, "delimiter \"ab\": expected tab, space");
    opts.delimiter = ";";
    opts.format = "tsv";
    refuse("1,2\n", &opts, NULL, PLAIT_EINVAL, "which has the tab");
    opts.format = "libsvm";
    refuse("1 1:2\n", &opts, NULL, PLAIT_EINVAL, "--delimiter has no meaning for libsvm");
}

/* Commas are decimal if they do not separate cells and cannot separate thousands. */
static void test_decimal_commas(void **state) {
    plait_data_opts opts = table_opts("y");
    (void)state;
    expect("y;a\n1,5;-0,25\n2;1,5e1\n3.5;\n", &opts, NULL, "1.5 a:-0.25|2 a:15|3.5 a:7.375|");
    expect("y;a\n1,234;0\n2,345;1\n", &opts, NULL, "1.234|2.345 a:1|");
    expect("y\ta\n1\t1,234\n2\t0,5\n", &opts, NULL, "1 a:1.234|2 a:0.5|");
    expect("y\ta\n1\t1,234\n2\t5,678\n", &opts, NULL, "1 a=1,234:1|2 a=5,678:1|"); /* it may mean 1234 */
    expect("y,a\n1,\"1,5\"\n2,\"2,5\"\n", &opts, NULL, "1 a=1,5:1|2 a=2,5:1|");
    opts.weight_column = "w";
    expect("y;w\n1;0,5\n2;1,5\n", &opts, NULL, "1*0.5|2*1.5|");
    opts.weight_column = NULL;
    opts.text_columns = "a";
    expect("y;a\n1,5;2,5\n2;3,5\n", &opts, NULL, "1.5 a=2,5:1|2 a=3,5:1|");
    opts.text_columns = NULL;
    pli_schema *fixed = schema_of("y\ta\n1\t1,234\n2\t0,5\n", &opts);
    opts = table_opts(NULL); /* the decision made for the training data holds for these few rows */
    expect("y\ta\n1\t5,678\n2\t1,234\n", &opts, fixed, "1 a:5.678|2 a:1.234|");
    expect("y,a\n1,0.5\n2,4\n", &opts, fixed, "1 a:0.5|2 a:4|");
    pli_schema_destroy(&fixed);
    expect_note("y;a\n1,5;2\n2;3\n", "numbers have decimal commas, as 1,5 in column \"y\"", "read as texts");
    expect_note("y,a\n1,\"1,5\"\n2,\"2,5\"\n", "column \"a\" is read as texts: cells such as 1,5 look like",
                "decimal");
    expect_note("y\ta\n1\t1.234,5\n2\t2,345,678\n3\t1.2.3\n", "cells such as 1.234,5 look like numbers", NULL);
    expect_note("y,a\n1,5 %\n2,$3\n", "cells such as 5 % look like numbers", NULL);
    expect_note("y,a\n1,2024-01-02\n2,10:30\n3,1.2.3\n", NULL, "look like");
}

static void test_no_rows(void **state) {
    plait_data_opts opts = table_opts(NULL);
    (void)state;
    refuse("# a\n# b\n", &opts, NULL, PLAIT_EFORMAT, "no rows: all of its lines begin with #");
    refuse("a,b,y\n", &opts, NULL, PLAIT_EFORMAT, "no rows: its only line is read as names of columns");
    refuse("price", &opts, NULL, PLAIT_EFORMAT, "no rows: its only line");
    expect("#a,y\n1,2\n", &opts, NULL, "2 #a:1|"); /* some files mark their header so */
    opts.header = "yes";
    refuse("a,b,y\n", &opts, NULL, PLAIT_EFORMAT, "no rows");
    opts.header = "no";
    expect("a,b,y\n", &opts, NULL, "0 c2=b:1 c3=y:1|");
}

static void test_every_failed_allocation(void **state) {
    plait_data_opts opts = table_opts("y");
    plait_error     err;
    int64_t         before = pli_alloc_live();
    (void)state;
    opts.text_columns = "city";
    write_file("city,age,y\nRome,4,b\n\"Os\"\"lo\",2,a\nRome,,a\n");
    for (int64_t k = 0;; k++) {
        pli_dataset *d = NULL;
        pli_alloc_fail_after(k);
        plait_status status = pli_dataset_open(&opts, NULL, 0, 1, &d, &err);
        if (status == PLAIT_OK) status = pli_dataset_load(d, NULL, &err);
        pli_alloc_fail_after(-1);
        pli_dataset_destroy(&d);
        assert_int_equal(pli_alloc_live(), before);
        if (status == PLAIT_OK) break;
        if (status != PLAIT_ENOMEM) fail_msg("allocation %d: %s", (int)k, err.text);
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
        cmocka_unit_test(test_headers_and_labels),
        cmocka_unit_test(test_texts_and_missing),
        cmocka_unit_test(test_slips_among_numbers),
        cmocka_unit_test(test_a_tenth_of_texts),
        cmocka_unit_test(test_workers_see_the_same_rows),
        cmocka_unit_test(test_streamed),
        cmocka_unit_test(test_model_schema),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_delimiters),
        cmocka_unit_test(test_decimal_commas),
        cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
