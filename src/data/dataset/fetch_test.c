/* A block that is fetched is the same as the one its worker loaded: libsvm with weights and packed files, csv with
 * texts and missing numbers, a cache, rows in memory; and so are the parts of all clocks, whichever worker takes
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "data/dataset/dataset.h"

enum { ROWS = 1500, WORKERS = 3, CLOCKS = 13 };

static char folder[] = "/tmp/plait_fetch_XXXXXX";

static const char *path_of(const char *name) {
    static char path[2][80];
    static int  turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void write_files(void) {
    FILE  *svm = fopen(path_of("a.svm"), "wb"), *weights = fopen(path_of("a.svm.weight"), "wb");
    FILE  *csv = fopen(path_of("t.csv"), "wb");
    gzFile packed = gzopen(path_of("b.svm.gz"), "wb");
    fprintf(csv, "size,city,weight of it,label\n");
    for (int i = 0; i < ROWS; i++) {
        char line[128];
        snprintf(line, sizeof line, "%d %d:%g %d:1%s\n", i % 3, 1 + i % 7, 0.25 * (i % 5), 9 + i % 40,
                 i % 9 == 4 ? " 60:2" : "");
        if (i < ROWS / 2) fputs(line, svm), fprintf(weights, "%d\n", 1 + i % 4);
        else gzputs(packed, line);
        if (i % 10 != 3) fprintf(csv, "%d", i % 23); /* otherwise the number is missing */
        fprintf(csv, ",%s%d,%d,%s\n", i < 900 ? "Ulm" : "Bonn", i / 50, i % 6, i % 2 ? "yes" : "no");
    }
    fclose(svm);
    fclose(weights);
    fclose(csv);
    gzclose(packed);
}

static bool same_bytes(const void *a, const void *b, size_t bytes) {
    return (a == NULL) == (b == NULL) && (a == NULL || memcmp(a, b, bytes) == 0);
}

static void assert_same(const pli_block *a, const pli_block *b) {
    assert_int_equal(a->number, b->number);
    assert_int_equal(a->first_row, b->first_row);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->entries, b->entries);
    assert_true(same_bytes(a->row_start, b->row_start, (size_t)(a->rows + 1) * sizeof *a->row_start));
    assert_true(same_bytes(a->label, b->label, (size_t)a->rows * sizeof *a->label));
    assert_true(same_bytes(a->weight, b->weight, (size_t)a->rows * sizeof *a->weight));
    for (int64_t e = 0; e < a->entries; e++) {
        assert_true(pli_block_key(a, e) == pli_block_key(b, e));
        assert_true((a->value != NULL ? a->value[e] : 1.0f) == (b->value != NULL ? b->value[e] : 1.0f));
    }
}

static bool skip_some(void *user, int64_t row) { return user != NULL && row % 5 == 2; }

/* The parts are the same, whether one worker takes all blocks or each takes its own. */
static void check_parts(pli_dataset *const *d, bool skip) {
    pli_batches *own[WORKERS] = { NULL }, *all = NULL;
    plait_error  err;
    pli_batch    batch;
    pli_part     part;
    for (int32_t w = 0; w < WORKERS; w++)
        assert_int_equal(pli_batches_create(d[w], 4, CLOCKS, true, skip_some, skip ? &err : NULL, &own[w], &err),
                         PLAIT_OK);
    assert_int_equal(pli_batches_create(d[1], 4, CLOCKS, true, skip_some, skip ? &err : NULL, &all, &err), PLAIT_OK);
    for (int64_t clock = 0; clock < 2 * CLOCKS; clock++)
        for (int32_t w = 0; w < WORKERS; w++) {
            assert_int_equal(pli_batches_get(own[w], clock / CLOCKS, clock % CLOCKS, &batch, &err), PLAIT_OK);
            for (int32_t i = 0; i < batch.parts; i++) {
                int32_t block = d[w]->first + i;
                if (pli_batches_part(all, block, clock / CLOCKS, clock % CLOCKS, &part, &err) != PLAIT_OK)
                    fail_msg("%s", err.text);
                assert_int_equal(part.rows, batch.part[i].rows);
                assert_true(same_bytes(part.order, batch.part[i].order, (size_t)part.rows * sizeof *part.order));
                assert_int_equal(part.block->number, block);
                if (clock % 4 == 3) pli_batches_drop(all, block); /* it is fetched again later */
            }
        }
    assert_int_equal(pli_batches_part(all, d[0]->blocks, 0, 0, &part, &err), PLAIT_EINVAL);
    assert_int_equal(pli_batches_part(all, 0, 0, CLOCKS, &part, &err), PLAIT_EINVAL);
    for (int32_t w = 0; w < WORKERS; w++) pli_batches_destroy(&own[w]);
    pli_batches_destroy(&all);
}

static void check_fetched(pli_dataset *const *d, bool parsed) {
    plait_error err;
    for (int32_t w = 0; w < WORKERS; w++)
        for (int32_t other = 0; other < WORKERS; other++)
            for (int32_t i = 0; i < pli_dataset_own_blocks(d[other]); i++) {
                pli_rows rows;
                bool     owned;
                if (pli_dataset_fetch(d[w], d[other]->first + i, &rows, &owned, &err) != PLAIT_OK)
                    fail_msg("%s", err.text);
                assert_int_equal(owned, parsed && other != w);
                assert_same(&rows.b, pli_dataset_block(d[other], i));
                if (owned) pli_rows_free(&rows);
            }
    check_parts(d, false);
    check_parts(d, true);
}

static void check_files(const char *const *paths, int64_t n, bool cache, bool parsed) {
    pli_dataset      *d[WORKERS] = { NULL };
    const pli_schema *part[WORKERS];
    pli_schema       *joined = NULL;
    plait_error       err;
    plait_data_opts   opts;
    int64_t           live = pli_alloc_live();
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = n;
    opts.cache = cache;
    if (n == 1) opts.label = "label";
    for (int32_t w = 0; w < WORKERS; w++) {
        if (pli_dataset_open(&opts, NULL, w, WORKERS, &d[w], &err) != PLAIT_OK ||
            pli_dataset_load(d[w], NULL, &err) != PLAIT_OK)
            fail_msg("%s", err.text);
        part[w] = pli_dataset_schema(d[w]);
    }
    assert_int_equal(pli_schema_merge(part, WORKERS, &joined, &err), PLAIT_OK);
    for (int32_t w = 0; w < WORKERS; w++) assert_int_equal(pli_dataset_agree(d[w], joined, &err), PLAIT_OK);
    pli_schema_destroy(&joined);
    check_fetched(d, parsed);
    for (int32_t w = 0; w < WORKERS; w++) pli_dataset_destroy(&d[w]);
    assert_int_equal(pli_alloc_live(), live);
}

static void test_files(void **state) {
    (void)state;
    const char *svm[] = { path_of("a.svm"), path_of("b.svm.gz") };
    check_files(svm, 2, false, true);
    const char *csv[] = { path_of("t.csv") };
    check_files(csv, 1, false, true);
}

static void test_cache(void **state) {
    (void)state;
    const char *svm[] = { path_of("a.svm"), path_of("b.svm.gz") };
    for (int again = 0; again < 2; again++) check_files(svm, 2, true, false); /* worker 0 writes the cache, and all
                                                                               * find it */
}

static void test_memory(void **state) {
    (void)state;
    const char     *paths[] = { path_of("a.svm"), path_of("b.svm.gz") };
    plait_data_opts opts;
    plait_data     *data = NULL;
    pli_dataset    *d[WORKERS] = { NULL };
    plait_error     err;
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 2;
    assert_int_equal(plait_data_read(&opts, &data, &err), PLAIT_OK);
    for (int32_t w = 0; w < WORKERS; w++)
        assert_int_equal(pli_dataset_of_memory(data, w, WORKERS, &d[w], &err), PLAIT_OK);
    check_fetched(d, false);
    for (int32_t w = 0; w < WORKERS; w++) pli_dataset_destroy(&d[w]);
    plait_data_destroy(&data);
}

/* A block that cannot be fetched is refused; out of memory leaves nothing behind. */
static void test_failures(void **state) {
    (void)state;
    const char     *paths[] = { path_of("a.svm"), path_of("b.svm.gz") };
    plait_data_opts opts;
    pli_dataset    *d = NULL;
    pli_schema     *joined = NULL;
    plait_error     err;
    pli_rows        rows;
    bool            owned;
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 2;
    assert_int_equal(pli_dataset_open(&opts, NULL, 0, 2, &d, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_fetch(d, 40, &rows, &owned, &err), PLAIT_EINVAL); /* not loaded */
    assert_int_equal(pli_dataset_load(d, NULL, &err), PLAIT_OK);
    pli_dataset *other = NULL;
    assert_int_equal(pli_dataset_open(&opts, NULL, 1, 2, &other, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_load(other, NULL, &err), PLAIT_OK);
    const pli_schema *part[] = { pli_dataset_schema(d), pli_dataset_schema(other) };
    assert_int_equal(pli_schema_merge(part, 2, &joined, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_agree(d, joined, &err), PLAIT_OK);
    pli_schema_destroy(&joined);
    pli_dataset_destroy(&other);
    int64_t live = pli_alloc_live(), k = 0;
    for (;; k++) {
        pli_alloc_fail_after(k);
        plait_status status = pli_dataset_fetch(d, 40, &rows, &owned, &err);
        pli_alloc_fail_after(-1);
        if (status == PLAIT_OK) break;
        assert_int_equal(status, PLAIT_ENOMEM);
        assert_int_equal(pli_alloc_live(), live);
    }
    assert_true(k > 3);
    pli_rows_free(&rows);
    d->schema->segment_rows[d->piece_segment[40]]++;
    assert_int_equal(pli_dataset_fetch(d, 40, &rows, &owned, &err), PLAIT_EFORMAT);
    assert_non_null(strstr(err.text, "changed"));
    pli_dataset_destroy(&d);
}

static int begin(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL) return -1;
    write_files();
    return 0;
}

static int end(void **state) {
    static const char *const names[] = { "a.svm", "a.svm.weight", "b.svm.gz", "t.csv", "a.svm.plait-cache" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(path_of(names[i]));
    rmdir(folder);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_files), cmocka_unit_test(test_cache),
                                        cmocka_unit_test(test_memory), cmocka_unit_test(test_failures) };
    return cmocka_run_group_tests(tests, begin, end);
}
