/* Where data comes from: real files, directories, patterns, gzip and zstd, whole and broken; rows from memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "data/dataset/dataset.h"

static char folder[] = "/tmp/plait_source_XXXXXX";

static plait_status read_path(const char *path, const char *label, plait_data **data, plait_error *err) {
    plait_data_opts opts;
    plait_data_opts_init(&opts);
    opts.paths = &path;
    opts.n_paths = 1;
    opts.label = label;
    opts.threads = 2;
    return plait_data_read(&opts, data, err);
}

static void expect_file(const char *name, const char *label, int64_t rows, int64_t features, int64_t labels,
                        double label_sum, double value_sum, double weight_sum) {
    char         path[1024];
    const char  *source = getenv("PLAIT_SOURCE_DIR");
    plait_data  *data = NULL;
    plait_error  err;
    pli_dataset *d = NULL;
    double       sums[3] = { 0 };
    snprintf(path, sizeof path, "%s/tests/data/small/%s", source != NULL ? source : "../../..", name);
    if (read_path(path, label, &data, &err) != PLAIT_OK) fail_msg("%s", err.text);
    assert_int_equal(plait_data_rows(data), rows);
    assert_int_equal(plait_data_features(data), features);
    assert_int_equal(pli_dataset_of_memory(data, 0, 1, &d, &err), PLAIT_OK);
    assert_int_equal(pli_schema_labels(pli_dataset_schema(d)), labels);
    for (int32_t i = 0; i < pli_dataset_own_blocks(d); i++) {
        const pli_block *b = pli_dataset_block(d, i);
        for (int64_t row = 0; row < b->rows; row++) {
            sums[0] += b->label[row];
            sums[2] += b->weight != NULL ? (double)b->weight[row] : 1.0;
        }
        for (int64_t k = 0; k < b->entries; k++) sums[1] += b->value != NULL ? (double)b->value[k] : 1.0;
    }
    assert_true(fabs(sums[0] - label_sum) < 1e-9);
    assert_true(fabs(sums[1] - value_sum) < 1e-6 * fabs(value_sum));
    assert_true(fabs(sums[2] - weight_sum) < 1e-6 * weight_sum);
    pli_dataset_destroy(&d);
    plait_data_destroy(&data);
}

static void test_real_files(void **state) {
    (void)state;
    expect_file("iris.csv", NULL, 150, 4, 3, 150, 2078.7, 150);
    expect_file("breast_cancer.csv.gz", "-1", 569, 30, 2, 357, 1056474.459636, 569);
    expect_file("covtype.libsvm", NULL, 50, 53, 4, 91, 148.762, 50);
    expect_file("higgs.tsv.gz", NULL, 500, 28, 2, 272, 8672.191000, 500.3);
}

static void path_of(const char *name, char path[256]) { snprintf(path, 256, "%s/%s", folder, name); }

static void write_bytes(const char *name, const void *bytes, size_t n) {
    char path[256];
    path_of(name, path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static void expect_rows(const char *name, int64_t rows) {
    char        path[256];
    plait_data *data = NULL;
    plait_error err;
    path_of(name, path);
    if (read_path(path, NULL, &data, &err) != PLAIT_OK) fail_msg("%s", err.text);
    assert_int_equal(plait_data_rows(data), rows);
    plait_data_destroy(&data);
}

static void refuse(const char *name, plait_status code, const char *message) {
    char        path[256];
    plait_data *data = NULL;
    plait_error err = { 0 };
    path_of(name, path);
    plait_status status = read_path(path, NULL, &data, &err);
    if (status != code || strstr(err.text, message) == NULL || strstr(err.text, name) == NULL)
        fail_msg("%s: expected \"%s\", found \"%s\" (%d)", name, message, err.text, status);
    assert_null(data);
}

static void test_directories_and_patterns(void **state) {
    char path[256];
    (void)state;
    path_of("many", path);
    assert_int_equal(mkdir(path, 0700), 0);
    path_of("none", path);
    assert_int_equal(mkdir(path, 0700), 0);
    write_bytes("many/part-1", "1 1:1\n0 2:1\n", 12);
    write_bytes("many/part-0", "1 3:1", 5);
    write_bytes("many/.hidden", "x\n", 2);
    write_bytes("many/_SUCCESS", "", 0);
    expect_rows("many", 3);
    expect_rows("many/part-*", 3);
    expect_rows("many/part-[1-9]", 2);
    refuse("many/nothing-*", PLAIT_EIO, "no file matches");
    refuse("none", PLAIT_EIO, "no data files");
    refuse("many/part-7", PLAIT_EIO, "No such file");
    refuse("many/_SUCCESS", PLAIT_EFORMAT, "empty");
    write_bytes("many/part-2", "1 1:1\n1 x:2\n", 12);
    refuse("many/part-2", PLAIT_EFORMAT, "part-2:2: expected index:value");
}

enum { LINES = 5000 };

static void test_packed(void **state) {
    char  *text = malloc(LINES * 32), *packed = malloc(LINES * 64);
    size_t n = 0;
    (void)state;
    for (int i = 0; i < LINES; i++)
        n += (size_t)sprintf(text + n, "%d %d:1 %d:%d\n", i % 2, 1 + i % 50, 60 + i % 70, i % 9);
    char path[256];
    path_of("two.gz", path);
    gzFile gz = gzopen(path, "wb");
    gzwrite(gz, text, (unsigned)n);
    gzclose(gz);
    gz = gzopen(path, "ab"); /* a second member */
    gzputs(gz, "1 1:1\n");
    gzclose(gz);
    expect_rows("two.gz", LINES + 1);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    size_t m = ZSTD_compress2(context, packed, LINES * 64, text, n);
    ZSTD_freeCCtx(context);
    assert_false(ZSTD_isError(m));
    write_bytes("one.zst", packed, m);
    expect_rows("one.zst", LINES);
    write_bytes("cut.zst", packed, m - 5);
    refuse("cut.zst", PLAIT_EFORMAT, "expected a whole zstd stream");
    packed[m / 2] ^= 0x55;
    write_bytes("bad.zst", packed, m);
    char bad[256];
    path_of("bad.zst", bad);
    plait_data *data = NULL;
    plait_error err;
    assert_true(read_path(bad, NULL, &data, &err) == PLAIT_EFORMAT);
    pli_text whole = { 0 };
    assert_int_equal(pli_read_whole(path, 1 << 24, &whole, &err), PLAIT_OK);
    write_bytes("cut.gz", whole.data, whole.length / 2);
    refuse("cut.gz", PLAIT_EFORMAT, "expected a whole gzip stream: it is cut short");
    whole.data[whole.length / 3] ^= 0x55;
    write_bytes("bad.gz", whole.data, whole.length);
    refuse("bad.gz", PLAIT_EFORMAT, "expected a whole gzip stream");
    pli_text_free(&whole);
    free(text);
    free(packed);
}

/* A second member or frame gives all rows, or an error that names the byte; never only the rows of the first. */
static void test_what_follows(void **state) {
    char        path[256];
    pli_text    whole = { 0 };
    plait_error err;
    size_t      second = 0;
    (void)state;
    path_of("two.gz", path);
    for (int i = 0; i < 2; i++) {
        gzFile gz = gzopen(path, i == 0 ? "wb" : "ab");
        gzputs(gz, "1 1:1\n0 2:1\n");
        gzclose(gz);
        if (i == 0) second = (size_t)pli_file_bytes(path);
    }
    expect_rows("two.gz", 4);
    assert_int_equal(pli_read_whole(path, 1 << 24, &whole, &err), PLAIT_OK);
    char at[64];
    snprintf(at, sizeof at, "neither another member nor zeros, at byte %zu", second);
    for (int bit = 0; bit < 8; bit++) { /* of the second member's first byte, and of the next one */
        for (size_t byte = 0; byte < 2; byte++) {
            whole.data[second + byte] ^= (char)(1 << bit);
            write_bytes("bad.gz", whole.data, whole.length);
            refuse("bad.gz", PLAIT_EFORMAT, at);
            whole.data[second + byte] ^= (char)(1 << bit);
        }
    }
    pli_text_add_bytes(&whole, "\0\0\0", 3);
    write_bytes("bad.gz", whole.data, whole.length);
    expect_rows("bad.gz", 4); /* padded */
    pli_text_add_bytes(&whole, "\x1f", 1);
    write_bytes("bad.gz", whole.data, whole.length);
    refuse("bad.gz", PLAIT_EFORMAT, "the zeros that end a stream are followed by other bytes");
    pli_text_free(&whole);

    char   frame[128];
    size_t n = ZSTD_compress(frame, sizeof frame, "1 1:1\n0 2:1\n", 12, 3);
    assert_false(ZSTD_isError(n));
    pli_text_add_bytes(&whole, frame, n);
    pli_text_add_bytes(&whole, "\x50\x2a\x4d\x18\3\0\0\0abc", 11); /* a skippable frame */
    pli_text_add_bytes(&whole, frame, n);
    write_bytes("two.zst", whole.data, whole.length);
    expect_rows("two.zst", 4);
    for (size_t byte = 0; byte < 4; byte++) {
        whole.data[n + 11 + byte] ^= 1;
        write_bytes("bad.zst", whole.data, whole.length);
        refuse("bad.zst", PLAIT_EFORMAT, "of the file");
        whole.data[n + 11 + byte] ^= 1;
    }
    pli_text_add_bytes(&whole, "\0", 1);
    write_bytes("bad.zst", whole.data, whole.length);
    refuse("bad.zst", PLAIT_EFORMAT, "expected a whole zstd stream");
    pli_text_free(&whole);
}

/* More bytes than may stay in memory go to a file without a name; all bytes come back. */
static void test_spool(void **state) {
    pli_spool           *spool = NULL;
    plait_error          err;
    const unsigned char *data;
    size_t               bytes;
    uint32_t             numbers[1000];
    (void)state;
    assert_int_equal(pli_spool_create(10000, NULL, &spool, &err), PLAIT_OK);
    for (uint32_t i = 0; i < 30; i++) {
        for (uint32_t k = 0; k < 1000; k++) numbers[k] = i * 1000 + k;
        assert_int_equal(pli_spool_add(spool, numbers, sizeof numbers, &err), PLAIT_OK);
    }
    assert_int_equal(pli_spool_end(spool, &data, &bytes, &err), PLAIT_OK);
    assert_true(pli_spool_is_file(spool));
    assert_int_equal(bytes, 30 * sizeof numbers);
    for (uint32_t i = 0; i < 30000; i++) assert_int_equal(((const uint32_t *)(const void *)data)[i], i);
    pli_spool_destroy(&spool);
}

/* Temporary files together have a limit, and give back what they took. */
static void test_spill(void **state) {
    pli_spill            spill = { .limit_bytes = 25000 };
    pli_spool           *one = NULL, *two = NULL;
    plait_error          err;
    const unsigned char *data;
    size_t               bytes;
    static const char    block[10000];
    (void)state;
    assert_int_equal(pli_spool_create(100, &spill, &one, &err), PLAIT_OK);
    assert_int_equal(pli_spool_add(one, block, sizeof block, &err), PLAIT_OK);
    assert_int_equal(pli_spool_add(one, block, sizeof block, &err), PLAIT_OK);
    assert_int_equal(pli_spool_end(one, &data, &bytes, &err), PLAIT_OK);
    assert_int_equal(bytes, 20000);
    assert_int_equal(spill.used_bytes, 20000);
    assert_int_equal(pli_spool_create(100, &spill, &two, &err), PLAIT_OK);
    assert_int_equal(pli_spool_add(two, block, sizeof block, &err), PLAIT_OK);
    assert_int_equal(pli_spool_add(two, block, sizeof block, &err), PLAIT_ENOSPACE);
    assert_non_null(strstr(err.text, "more than 25000 bytes of temporary files"));
    pli_spool_destroy(&one);
    pli_spool_destroy(&two);
    assert_int_equal(spill.used_bytes, 0);
}

/* A file that is written to between two passes, which no signal reports; and a file that is replaced. */
static void test_written_to(void **state) {
    char            path[256], other[256];
    const char     *paths[] = { path };
    plait_data_opts opts;
    plait_error     err;
    (void)state;
    path_of("now", path);
    path_of("other", other);
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 1;
    for (int how = 0; how < 4; how++) {
        pli_dataset *d = NULL;
        write_bytes("now", "1 1:1\n0 2:1\n1 3:1\n", 18);
        assert_int_equal(utimensat(AT_FDCWD, path, (const struct timespec[2]){ { .tv_sec = 1 }, { .tv_sec = 1 } }, 0),
                         0);
        assert_int_equal(pli_dataset_open(&opts, NULL, 0, 1, &d, &err), PLAIT_OK);
        if (how == 1) assert_int_equal(truncate(path, 12), 0);
        if (how == 2) write_bytes("now", "1 1:1\n0 2:1\n1 4:1\n", 18);
        if (how == 3) {
            write_bytes("other", "1 1:1\n", 6);
            assert_int_equal(rename(other, path), 0);
        }
        plait_status status = pli_dataset_load(d, NULL, &err);
        assert_int_equal(status, how == 1 || how == 2 ? PLAIT_EFORMAT : PLAIT_OK);
        if (how == 0 || how == 3) assert_int_equal(pli_dataset_rows(d), 3);
        pli_dataset_destroy(&d);
    }
}

static void test_memory(void **state) {
    static const int64_t  starts[] = { 0, 2, 2, 3 }, backwards[] = { 0, 2, 1, 3 };
    static const uint32_t columns[] = { 0, 3, 1 }, unsorted[] = { 3, 0, 1 };
    static const float    values[] = { 1, 2.5f, 1 }, x[] = { 0, 1, 2, 0, 0, 3 };
    static const double   labels[] = { 1, -1, 1 }, weights[] = { 1, 2, 3 };
    plait_data           *data = NULL;
    plait_error           err;
    (void)state;
    assert_int_equal(plait_data_from_csr(3, 4, starts, columns, values, labels, weights, &data, &err), PLAIT_OK);
    assert_int_equal(plait_data_rows(data), 3);
    assert_int_equal(plait_data_features(data), 4);
    for (int32_t workers = 1; workers <= 3; workers++) {
        int64_t rows = 0, entries = 0;
        for (int32_t w = 0; w < workers + 1; w++) { /* the last worker owns no block */
            pli_dataset *d = NULL;
            assert_int_equal(pli_dataset_of_memory(data, w, workers, &d, &err), PLAIT_OK);
            rows += pli_dataset_rows(d);
            assert_int_equal(pli_schema_rows(pli_dataset_schema(d)), 3);
            for (int32_t i = 0; i < pli_dataset_own_blocks(d); i++) entries += pli_dataset_block(d, i)->entries;
            pli_dataset_destroy(&d);
        }
        assert_int_equal(rows, 3);
        assert_int_equal(entries, 3);
    }
    plait_data_destroy(&data);
    assert_int_equal(plait_data_from_dense(3, 2, x, labels, NULL, &data, &err), PLAIT_OK);
    plait_data_destroy(&data);
    assert_int_equal(plait_data_from_csr(3, 3, starts, columns, values, labels, NULL, &data, &err), PLAIT_EINVAL);
    assert_int_equal(plait_data_from_csr(3, 4, starts, unsorted, values, labels, NULL, &data, &err), PLAIT_EINVAL);
    assert_int_equal(plait_data_from_csr(3, 4, backwards, columns, values, labels, NULL, &data, &err), PLAIT_EINVAL);
    assert_int_equal(plait_data_from_dense(0, 2, x, labels, NULL, &data, &err), PLAIT_EINVAL);
    for (int64_t k = 0, before = pli_alloc_live();; k++) {
        pli_alloc_fail_after(k);
        plait_status status = plait_data_from_csr(3, 4, starts, columns, values, labels, weights, &data, &err);
        pli_alloc_fail_after(-1);
        plait_data_destroy(&data);
        assert_int_equal(pli_alloc_live(), before);
        if (status == PLAIT_OK) break;
        assert_int_equal(status, PLAIT_ENOMEM);
    }
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state) {
    static const char *const names[] = { "many/part-0",   "many/part-1", "many/part-2", "many/.hidden",
                                         "many/_SUCCESS", "now",         "two.gz",      "one.zst",
                                         "two.zst",       "cut.zst",     "bad.zst",     "cut.gz",
                                         "bad.gz",        "many",        "none",        "." };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[256];
        path_of(names[i], path);
        (void)remove(path);
    }
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_files), cmocka_unit_test(test_directories_and_patterns),
        cmocka_unit_test(test_packed),     cmocka_unit_test(test_what_follows),
        cmocka_unit_test(test_spool),      cmocka_unit_test(test_spill),
        cmocka_unit_test(test_written_to), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
