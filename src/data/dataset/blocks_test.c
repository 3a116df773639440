/* How many blocks there are: as many as suit the data or were asked for, whatever the number of workers, from files,
 * caches and memory. Which rows form a clock follows from that; a worker without blocks has batches without rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <plait/memory.h>

#include "data/dataset/dataset.h"
#include "data/file_case.h"

enum { ROWS = 700, CLOCKS = 9 };

static char folder[] = "/tmp/plait_blocks_XXXXXX", file[80], cache[96];

static int make(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(file, sizeof file, "%s/rows.svm", folder);
    snprintf(cache, sizeof cache, "%s.plait-cache", file);
    FILE *out = fopen(file, "wb");
    for (int i = 0; i < ROWS; i++) fprintf(out, "%d 1:%d 3:1\n", i % 2, i);
    return fclose(out);
}

static int clear(void **state) {
    (void)state;
    unlink(file);
    unlink(cache);
    return rmdir(folder);
}

static plait_data_opts options(const char *const *path, int32_t blocks) {
    plait_data_opts opts = opts_of_file(path);
    opts.blocks = blocks;
    return opts;
}

static void test_blocks_follow_from_bytes(void **state) {
    (void)state;
    const uint64_t most = (uint64_t)PLI_MIN_BLOCKS * PLI_BLOCK_BYTES;
    const struct {
        uint64_t bytes;
        int32_t  blocks;
    } cases[] = { { 0, 64 },         { 1, 64 },           { most, 64 },          { most + 1, 128 },
                  { 2 * most, 128 }, { 2 * most + 1, 256 }, { 64 * most, 4096 }, { UINT64_MAX, 4096 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(pli_blocks_for(cases[i].bytes), cases[i].blocks);
}

/* The clock of each row, over all workers. */
static void look(int32_t workers, int32_t blocks, bool cached, int64_t *clock_of) {
    const char     *path = file;
    plait_data_opts opts = options(&path, blocks);
    plait_error     err = { .text = "" };
    pli_dataset   **d = calloc((size_t)workers, sizeof *d);
    const pli_schema **part = calloc((size_t)workers, sizeof *part);
    pli_schema     *joined = NULL;
    int64_t         rows = 0;
    int32_t         own = 0;
    opts.cache = cached;
    for (int32_t w = 0; w < workers; w++) {
        if (pli_dataset_open_dealt(&opts, NULL, w, workers, &d[w], &err) < 0) fail_msg("%s", err.text);
        assert_int_equal(pli_dataset_load(d[w], NULL, &err), PLAIT_OK);
        assert_int_equal(pli_dataset_blocks(d[w]), blocks > 0 ? blocks : 64);
        part[w] = pli_dataset_schema(d[w]);
        own += pli_dataset_own_blocks(d[w]);
    }
    assert_int_equal(own, blocks > 0 ? blocks : 64);
    assert_int_equal(pli_schema_merge(part, workers, &joined, &err), PLAIT_OK);
    for (int32_t w = 0; w < workers; w++) {
        pli_batches *batches = NULL;
        pli_batch    batch;
        assert_int_equal(pli_dataset_agree(d[w], joined, &err), PLAIT_OK);
        assert_int_equal(pli_batches_create(d[w], 5, CLOCKS, true, NULL, NULL, &batches, &err), PLAIT_OK);
        for (int64_t clock = 0; clock < CLOCKS; clock++) {
            assert_int_equal(pli_batches_get(batches, 2, clock, &batch, &err), PLAIT_OK);
            for (int32_t p = 0; p < batch.parts; p++)
                for (int64_t i = 0; i < batch.part[p].rows; i++, rows++)
                    clock_of[batch.part[p].block->first_row + batch.part[p].order[i]] = clock;
        }
        pli_batches_destroy(&batches);
    }
    assert_int_equal(rows, ROWS);
    for (int32_t w = 0; w < workers; w++) pli_dataset_destroy(&d[w]);
    pli_schema_destroy(&joined);
    free(part);
    free(d);
}

static void test_batches_do_not_depend_on_workers(void **state) {
    (void)state;
    static const int32_t workers[] = { 4, 130 };
    int64_t              one[ROWS], other[ROWS];
    for (int32_t blocks = 0; blocks <= 140; blocks += 70) {
        look(1, blocks, false, one);
        for (size_t i = 0; i < sizeof workers / sizeof *workers; i++)
            for (int cached = 0; cached <= (blocks < 140); cached++) { /* the first of them builds the cache */
                memset(other, -1, sizeof other);
                look(workers[i], blocks, cached, other);
                assert_memory_equal(one, other, sizeof one);
            }
        look(1, 0, false, other);
        assert_true((memcmp(one, other, sizeof one) == 0) == (blocks == 0));
    }
}

static void refused(const plait_data_opts *opts, plait_status status, const char *text) {
    pli_dataset *d = NULL;
    plait_error  err = { .text = "" };
    assert_int_equal(pli_dataset_open(opts, NULL, 0, 1, &d, &err), status);
    if (strstr(err.text, text) == NULL) fail_msg("%s", err.text);
}

static void test_numbers_out_of_range(void **state) {
    (void)state;
    static const int32_t wrong[] = { -1, 1, 63, 65537, INT32_MAX };
    const char          *path = file;
    float                x[4] = { 1, 2, 3, 4 };
    plait_memory_opts    memory;
    plait_data          *data = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        plait_data_opts opts = options(&path, wrong[i]);
        refused(&opts, PLAIT_EINVAL, "expected 64 to 65536");
        plait_memory_opts_init(&memory);
        memory.layout = PLAIT_DENSE_ROWS;
        memory.rows = memory.features = 2;
        memory.values = x;
        memory.blocks = wrong[i];
        assert_int_equal(plait_data_from_memory(&memory, &data, NULL), PLAIT_EINVAL);
    }
}

static void test_a_pipe_is_one_block(void **state) {
    (void)state;
    char   path[64];
    FILE  *rows = popen("printf '1 1:1\\n0 2:1\\n'", "r");
    assert_non_null(rows);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(rows));
    const char     *name = path;
    plait_data_opts opts = options(&name, 64);
    refused(&opts, PLAIT_EINVAL, "blocks 64 is refused with data from a pipe");
    pclose(rows);
}

/* Rows in memory have as many blocks, and so have rows that are taken from them. */
static void test_memory(void **state) {
    (void)state;
    float             x[200] = { 0 };
    const int64_t     some[] = { 3, 99, 5 };
    plait_memory_opts memory;
    plait_data       *data = NULL, *taken = NULL;
    for (int i = 0; i < 200; i++) x[i] = (float)i;
    for (int32_t blocks = 0; blocks <= 80; blocks += 80) {
        plait_memory_opts_init(&memory);
        memory.layout = PLAIT_DENSE_ROWS;
        memory.rows = 100;
        memory.features = 2;
        memory.values = x;
        memory.blocks = blocks;
        assert_int_equal(plait_data_from_memory(&memory, &data, NULL), PLAIT_OK);
        assert_int_equal(plait_data_blocks(data), blocks > 0 ? 80 : 64);
        assert_int_equal(plait_data_take(data, some, 3, &taken, NULL), PLAIT_OK);
        assert_int_equal(plait_data_blocks(taken), blocks > 0 ? 80 : 64);
        assert_int_equal(plait_data_rows(taken), 3);
        plait_data_destroy(&taken);
        plait_data_destroy(&data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_follow_from_bytes), cmocka_unit_test(test_batches_do_not_depend_on_workers),
        cmocka_unit_test(test_numbers_out_of_range),     cmocka_unit_test(test_a_pipe_is_one_block),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests_name("data.dataset.blocks", tests, make, clear);
}
