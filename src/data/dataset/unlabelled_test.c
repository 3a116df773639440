/* Rows without labels, in every format: the features are those of the same rows with labels, and each label is NaN.
 * They are loaded by any number of workers, streamed, read from a pipe and from a cache, with and without a model;
 * and the user is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/dataset/dataset.h"

static char directory[] = "/tmp/plait_unlabelled_XXXXXX";

static const char *in_directory(const char *name) {
    static char paths[8][128];
    static int  at;
    char       *path = paths[at++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static const char *write_bytes(const char *name, const void *bytes, size_t n) {
    const char *path = in_directory(name);
    FILE       *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
    return path;
}

static const char *write_text(const char *name, const char *text) { return write_bytes(name, text, strlen(text)); }

/* How a file is read. */
typedef struct way {
    const char       *label;
    int32_t           workers; /* 0 stands for 1 */
    bool              stream, features, cache;
    const pli_schema *fixed;
} way;

/* The result of reading. */
typedef struct outcome {
    uint64_t print; /* of the rows' numbers and features, independent of their order */
    int64_t  rows, features, given;
    bool     has_labels, cached;
    char     notes[1000], label[100];
} outcome;

static void add_row(const pli_block *b, int64_t row, outcome *out) {
    uint64_t print = pli_hash_u64((uint64_t)(b->first_row + row));
    for (int64_t i = b->row_start[row]; i < b->row_start[row + 1]; i++) {
        const float value = b->value != NULL ? b->value[i] : 1.0f;
        print = pli_hash_bytes(&value, sizeof value, print ^ b->col[i]);
    }
    out->print += print;
    out->rows++;
    out->given += !isnan(b->label[row]);
    assert_int_equal(pli_block_labels(b, row), 1);
}

static void take_stream(pli_dataset *d, outcome *out) {
    pli_batches *batches = NULL;
    plait_error  err;
    if (pli_batches_stream(d, 16, NULL, &batches, &err) != PLAIT_OK) fail_msg("%s", err.text);
    for (int64_t clock = 0; clock < pli_batches_clocks(batches); clock++) {
        pli_batch batch;
        assert_int_equal(pli_batches_get(batches, 0, clock, &batch, &err), PLAIT_OK);
        for (int32_t p = 0; p < batch.parts; p++)
            for (int64_t r = 0; r < batch.part[p].rows; r++)
                add_row(batch.part[p].block, batch.part[p].first + r, out);
    }
    pli_batches_destroy(&batches);
}

static void take(pli_dataset *d, const way *w, outcome *out) {
    pli_text where = { 0 };
    if (w->stream) take_stream(d, out);
    for (int32_t i = 0; !w->stream && i < pli_dataset_own_blocks(d); i++)
        for (int64_t r = 0; r < pli_dataset_block(d, i)->rows; r++) add_row(pli_dataset_block(d, i), r, out);
    pli_dataset_label(d, &where);
    snprintf(out->label, sizeof out->label, "%s", where.data);
    snprintf(out->notes, sizeof out->notes, "%s", pli_dataset_notes(d));
    out->cached |= d->cached != NULL;
    pli_text_free(&where);
}

static plait_status open_one(const char *path, const char *format, const way *w, int32_t worker, pli_dataset **d,
                             plait_error *err) {
    plait_data_opts opts;
    plait_data_opts_init(&opts);
    opts.paths = &path;
    opts.n_paths = 1;
    opts.label = w->label;
    opts.format = format;
    opts.cache = w->cache;
    return pli_dataset_open(&opts, w->fixed, worker, w->workers > 0 ? w->workers : 1, d, err);
}

static outcome read_file(const char *path, const char *format, way w, pli_schema **schema_out) {
    pli_dataset      *d[4] = { NULL };
    const pli_schema *part[4] = { NULL };
    pli_schema       *joined = NULL;
    plait_error       err;
    outcome           out = { 0 };
    const int32_t     workers = w.workers > 0 ? w.workers : 1;
    for (int32_t i = 0; i < workers; i++) {
        plait_status status = open_one(path, format, &w, i, &d[i], &err);
        if (status == PLAIT_OK)
            status = w.stream ? pli_dataset_scan(d[i], w.features, NULL, &err) : pli_dataset_load(d[i], NULL, &err);
        if (status != PLAIT_OK) fail_msg("%s", err.text);
        part[i] = pli_dataset_schema(d[i]);
    }
    assert_int_equal(pli_schema_merge(part, workers, &joined, &err), PLAIT_OK);
    for (int32_t i = 0; i < workers; i++) {
        if (pli_dataset_agree(d[i], joined, &err) != PLAIT_OK) fail_msg("%s", err.text);
        take(d[i], &w, &out);
    }
    out.features = pli_schema_features(joined);
    out.has_labels = pli_schema_has_labels(joined);
    for (int32_t i = 0; i < workers; i++) pli_dataset_destroy(&d[i]);
    if (schema_out != NULL) *schema_out = joined;
    else pli_schema_destroy(&joined);
    return out;
}

static void check_bare(const outcome *got, const outcome *want) {
    assert_true(!got->has_labels && got->given == 0);
    assert_string_equal(got->label, "none");
    assert_int_equal(got->rows, want->rows);
    assert_int_equal(got->features, want->features);
    assert_true(got->print == want->print);
}

/* The result is the same by several workers, streamed, and from a cache that is built and then read. */
static void check_ways(const char *path, const char *format, const outcome *want, bool has_cache) {
    const way ways[] = { { .label = "none" },
                         { .label = "none", .workers = 3 },
                         { .label = "none", .stream = true, .features = true },
                         { .label = "none", .stream = true, .features = true, .workers = 2 },
                         { .label = "none", .cache = has_cache },
                         { .label = "none", .cache = has_cache } };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const outcome got = read_file(path, format, ways[i], NULL);
        check_bare(&got, want);
        assert_true(got.cached == ways[i].cache);
    }
}

/* --- libsvm ----------------------------------------------------------------------------------------------------- */

enum { ROWS = 700, LINE = 64 };

/* kind 0: each row has its label; 1: no row; 2: every second row. */
static const char *write_libsvm(const char *name, int kind, int base) {
    char  *text = malloc(ROWS * LINE);
    size_t n = 0;
    assert_non_null(text);
    for (int i = 0; i < ROWS; i++) {
        if (kind == 0 || (kind == 2 && i % 2 == 0)) n += (size_t)snprintf(text + n, LINE, "%d ", i % 2 == 0 ? -1 : 1);
        if (i % 5 == 1) n += (size_t)snprintf(text + n, LINE, "qid:%d ", i);
        n += (size_t)snprintf(text + n, LINE, "%d:1 %d:%g\n", base + i % 3, base + 3 + i % 17, 0.5 * (i % 4 + 1));
    }
    const char *path = write_bytes(name, text, n);
    free(text);
    return path;
}

static void test_libsvm(void **state) {
    (void)state;
    for (int base = 0; base < 2; base++) {
        const outcome want = read_file(write_libsvm("labelled.svm", 0, base), "libsvm", (way){ 0 }, NULL);
        assert_true(want.has_labels && want.given == ROWS);
        for (int kind = 0; kind < 3; kind++) {
            const char   *path = write_libsvm("rows.svm", kind, base);
            const outcome got = read_file(path, "auto", (way){ .label = "none" }, NULL);
            const char   *note = strstr(got.notes, "labels in the data are ignored (--label none)");
            check_bare(&got, &want);
            assert_true((note != NULL) == (kind != 1));
            assert_true(note == NULL || strstr(note + 1, "labels that") == NULL);
            check_ways(path, "libsvm", &want, true);
        }
    }
    plait_error  err;
    pli_dataset *d = NULL;
    assert_int_equal(open_one(in_directory("rows.svm"), "libsvm", &(way){ 0 }, 0, &d, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_load(d, NULL, &err), PLAIT_EFORMAT); /* without the option, rows to learn from need
                                                                       * a label */
    pli_dataset_destroy(&d);
}

/* A scan that looks only at the beginnings of rows must find an index 0 there, and no labels. */
static void test_quick_scan(void **state) {
    (void)state;
    const outcome want = read_file(write_libsvm("labelled.svm", 0, 0), "libsvm", (way){ 0 }, NULL);
    for (int kind = 0; kind < 3; kind++) {
        const outcome got =
            read_file(write_libsvm("rows.svm", kind, 0), "libsvm", (way){ .label = "none", .stream = true }, NULL);
        check_bare(&got, &want);
    }
}

static void test_pipe(void **state) {
    (void)state;
    const outcome want = read_file(write_libsvm("labelled.svm", 0, 1), "libsvm", (way){ 0 }, NULL);
    const char   *path = in_directory("pipe");
    char          command[300];
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(command, sizeof command, "cat %s > %s &", write_libsvm("rows.svm", 2, 1), path);
    assert_int_equal(system(command), 0);
    const outcome got = read_file(path, "auto", (way){ .label = "none" }, NULL);
    assert_true(!got.has_labels && got.given == 0 && got.rows == want.rows && got.print == want.print);
}

/* --- tables ----------------------------------------------------------------------------------------------------- */

static const char *write_table(const char *name, char delimiter, bool label) {
    char  *text = malloc(ROWS * LINE);
    size_t n = 0;
    assert_non_null(text);
    n += (size_t)snprintf(text, LINE, "%s%cx%ccity\n", label ? "label" : "z", delimiter, delimiter);
    if (!label) n = (size_t)snprintf(text, LINE, "x%ccity\n", delimiter);
    for (int i = 0; i < ROWS; i++) {
        if (label) n += (size_t)snprintf(text + n, LINE, "%s%c", i % 2 == 0 ? "no" : "yes", delimiter);
        n += (size_t)snprintf(text + n, LINE, "%g%ct%d\n", 0.25 * (i % 9), delimiter, i % 11);
    }
    const char *path = write_bytes(name, text, n);
    free(text);
    return path;
}

static void test_tables(void **state) {
    (void)state;
    const outcome want = read_file(write_table("labelled.csv", ',', true), "auto", (way){ 0 }, NULL);
    assert_true(want.has_labels && want.given == ROWS && want.features == 12);
    check_ways(write_table("rows.csv", ',', false), "auto", &want, true);
    check_ways(write_table("rows.tsv", '\t', false), "tsv", &want, true);
}

/* Every column is a feature, also the one that would otherwise be the label, and the user is told. */
static void test_a_column_that_is_a_label_elsewhere(void **state) {
    (void)state;
    const outcome got = read_file(write_table("labelled.csv", ',', true), "auto", (way){ .label = "none" }, NULL);
    assert_true(!got.has_labels && got.features == 14);
    assert_non_null(strstr(got.notes, "column \"label\" is a feature like all others"));
    const outcome one = read_file(write_text("one.csv", "3\n4\n5\n"), "csv", (way){ .label = "none" }, NULL);
    assert_true(one.rows == 3 && one.features == 1 && one.notes[0] == '\0');
    const outcome title = read_file(write_text("title.csv", "4,2,no,yes\n1,2,0\n3,4,1\n5,6,1\n7,8,0\n"), "csv",
                                    (way){ .label = "none" }, NULL);
    assert_true(title.rows == 4 && title.features == 3);
    assert_null(strstr(title.notes, "the label is the last column"));
    assert_non_null(strstr(title.notes, "column \"c3\" is a feature"));
}

/* A model knows its columns: with it the label's column is passed over, with or without a header. */
static void test_tables_with_a_model(void **state) {
    (void)state;
    const char   *labelled = write_table("labelled.csv", ',', true);
    pli_schema   *model = NULL, *bare = NULL;
    const outcome want = read_file(labelled, "auto", (way){ 0 }, &model);
    const way     none = { .label = "none", .fixed = model };
    outcome       got = read_file(labelled, "auto", none, NULL);
    check_bare(&got, &want);
    assert_string_equal(got.notes, "");
    got = read_file(write_table("rows.csv", ',', false), "auto", none, &bare);
    check_bare(&got, &want);
    pli_schema_destroy(&bare);
    pli_schema_destroy(&model);
    const outcome plain = read_file(write_text("plain.csv", "1,2,0\n3,4,1\n"), "csv", (way){ .label = "-1" }, &model);
    const way     by_place = { .label = "none", .fixed = model };
    got = read_file(in_directory("plain.csv"), "csv", by_place, NULL);
    check_bare(&got, &plain);
    got = read_file(write_text("bare.csv", "1,2\n3,4\n"), "csv", by_place, NULL);
    check_bare(&got, &plain);
    pli_schema_destroy(&model);
}

/* A model that was made from unlabelled rows reads all data without labels, needs no option for it, and keeps this
 * in its JSON. */
static void test_a_model_without_labels(void **state) {
    (void)state;
    pli_schema   *bare = NULL, *again = NULL;
    plait_error   err;
    pli_text      json = { 0 };
    const outcome want = read_file(write_table("rows.csv", ',', false), "auto", (way){ .label = "none" }, &bare);
    assert_int_equal(pli_schema_write_model(bare, &json, &err), PLAIT_OK);
    assert_int_equal(pli_schema_read(json.data, json.length, &again, &err), PLAIT_OK);
    outcome got = read_file(write_table("labelled.csv", ',', true), "auto", (way){ .fixed = again }, NULL);
    check_bare(&got, &want);
    assert_non_null(strstr(got.notes, "1 columns that the model does not know are ignored"));
    pli_schema_destroy(&bare);
    pli_schema_destroy(&again);
    pli_text_free(&json);
    const outcome rows = read_file(write_libsvm("rows.svm", 1, 1), "libsvm", (way){ .label = "none" }, &bare);
    got = read_file(write_libsvm("labelled.svm", 0, 1), "libsvm", (way){ .fixed = bare }, NULL);
    check_bare(&got, &rows);
    pli_schema_destroy(&bare);
}

/* --- images, text, memory --------------------------------------------------------------------------------------- */

/* A file of labels beside the images is not read, even if it is damaged. */
static void test_images(void **state) {
    (void)state;
    unsigned char images[16 + 80 * 4] = { 0, 0, 8, 3, 0, 0, 0, 80, 0, 0, 0, 2, 0, 0, 0, 2 };
    unsigned char labels[8 + 80] = { 0, 0, 8, 1, 0, 0, 0, 80 };
    for (int i = 0; i < 80 * 4; i++) images[16 + i] = (unsigned char)(i % 7 * 30);
    for (int i = 0; i < 80; i++) labels[8 + i] = (unsigned char)(i % 10);
    const char *path = write_bytes("a-images-idx3", images, sizeof images);
    write_bytes("a-labels-idx1", labels, sizeof labels);
    const outcome want = read_file(path, "auto", (way){ 0 }, NULL);
    assert_true(want.has_labels && want.given == 80);
    check_ways(path, "auto", &want, false);
    write_text("a-labels-idx1", "no labels");
    check_ways(path, "idx", &want, false);
    check_ways(write_bytes("rows", images, sizeof images), "auto", &want, false);
}

static void test_text(void **state) {
    (void)state;
    char        text[3000];
    const char *path;
    for (size_t i = 0; i < sizeof text; i++) text[i] = i % 40 == 39 ? '\n' : i % 6 == 5 ? ' ' : (char)('a' + i * i % 5);
    path = write_bytes("text", text, sizeof text);
    const outcome want = read_file(path, "text", (way){ 0 }, NULL);
    assert_true(want.has_labels && want.given == sizeof text);
    check_ways(path, "text", &want, false);
}

static void test_rows_of_the_caller(void **state) {
    (void)state;
    const float    x[6] = { 1, 0, 2, 3, 4, 5 };
    const int64_t  start[3] = { 0, 1, 2 };
    const uint32_t column[2] = { 1, 0 };
    const double   label[2] = { 0, 1 };
    plait_data    *data = NULL;
    plait_error    err;
    plait_row      row;
    assert_int_equal(plait_data_from_dense(3, 2, x, NULL, NULL, &data, &err), PLAIT_OK);
    assert_true(plait_data_has_labels(data) == 0 && plait_data_rows(data) == 3 && plait_data_labels(data) == 3);
    for (int32_t b = 0; b < plait_data_blocks(data); b++)
        for (int64_t r = 0; r < plait_data_block_rows(data, b); r++) {
            assert_int_equal(plait_data_row(data, b, r, &row, &err), PLAIT_OK);
            assert_true(isnan(row.label));
        }
    plait_data_destroy(&data);
    assert_int_equal(plait_data_from_csr(2, 2, start, column, NULL, NULL, NULL, &data, &err), PLAIT_OK);
    assert_true(plait_data_has_labels(data) == 0);
    plait_data_destroy(&data);
    assert_int_equal(plait_data_from_csr(2, 2, start, column, NULL, label, NULL, &data, &err), PLAIT_OK);
    assert_true(plait_data_has_labels(data) == 1);
    plait_data_destroy(&data);
}

static int make_directory(void **state) {
    (void)state;
    return mkdtemp(directory) == NULL;
}

static int remove_directory(void **state) {
    char command[100];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command) != 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_libsvm),
        cmocka_unit_test(test_quick_scan),
        cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_a_column_that_is_a_label_elsewhere),
        cmocka_unit_test(test_tables_with_a_model),
        cmocka_unit_test(test_a_model_without_labels),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_rows_of_the_caller),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
