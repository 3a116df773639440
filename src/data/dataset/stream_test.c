/* A stream gives the same rows as loading, in order, for any number of workers and threads; with weights and gzip. */
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

enum { ROWS = 5000, BATCH = 64 };

static char folder[] = "/tmp/plait_stream_XXXXXX";

/* Writes two files of rows of different lengths, with notes, blank lines and weights; the second is packed. */
static void write_files(void) {
    char path[2][64], weights[80];
    snprintf(path[0], sizeof path[0], "%s/a", folder);
    snprintf(path[1], sizeof path[1], "%s/b.gz", folder);
    snprintf(weights, sizeof weights, "%s.weight", path[0]);
    FILE  *a = fopen(path[0], "wb"), *w = fopen(weights, "wb");
    gzFile b = gzopen(path[1], "wb");
    for (int i = 0; i < ROWS; i++) {
        char line[256];
        int  n = snprintf(line, sizeof line, "%d", i % 3);
        for (int k = 0; k < i % 9; k++)
            n += snprintf(line + n, sizeof line - (size_t)n, " %d:%g", 1 + k * 7 + i % 5, 0.5 * (i % 4 + 1));
        snprintf(line + n, sizeof line - (size_t)n, i % 17 == 3 ? " # note\n\n#\n" : "\n");
        if (i < ROWS / 2)
            fputs(line, a), fprintf(w, "%d\n", i % 10);
        else
            gzputs(b, line);
    }
    fclose(a);
    fclose(w);
    gzclose(b);
}

static bool dealt; /* blocks are dealt over the files */

static pli_dataset *open_folder(int32_t worker, int32_t workers) {
    const char     *paths[] = { folder };
    plait_data_opts opts;
    pli_dataset    *d = NULL;
    plait_error     err;
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 1;
    plait_status status = dealt ? pli_dataset_open_dealt(&opts, NULL, worker, workers, &d, &err)
                                : pli_dataset_open(&opts, NULL, worker, workers, &d, &err);
    if (status != PLAIT_OK) fail_msg("%s", err.text);
    return d;
}

/* A number that stands for a row and its place. */
static uint64_t row_print(const pli_block *b, int64_t row) {
    uint64_t print = pli_hash_u64((uint64_t)(b->first_row + row));
    int64_t  from = b->row_start[row], n = b->row_start[row + 1] - from;
    float    weight = b->weight != NULL ? b->weight[row] : 1.0f;
    print = pli_hash_bytes(&b->label[row], sizeof *b->label, print);
    print = pli_hash_bytes(&weight, sizeof weight, print);
    print = pli_hash_bytes(b->col + from, (size_t)n * sizeof *b->col, print);
    for (int64_t i = from; i < from + n; i++) {
        float value = b->value != NULL ? b->value[i] : 1.0f;
        print = pli_hash_bytes(&value, sizeof value, print);
    }
    return print;
}

static void agree_all(pli_dataset **d, int32_t workers, bool load, bool features, pli_pool *pool) {
    const pli_schema *part[8];
    pli_schema       *joined = NULL;
    plait_error       err;
    for (int32_t w = 0; w < workers; w++) {
        d[w] = w == 0 ? open_folder(w, workers) : NULL;
        if (w > 0) {
            plait_data_opts opts;
            plait_data_opts_init(&opts);
            assert_int_equal(pli_dataset_open_beside(d[0], &opts, NULL, w, workers, &d[w], &err), PLAIT_OK);
        }
        plait_status status = load ? pli_dataset_load(d[w], pool, &err) : pli_dataset_scan(d[w], features, pool, &err);
        if (status != PLAIT_OK) fail_msg("%s", err.text);
        part[w] = pli_dataset_schema(d[w]);
    }
    assert_int_equal(pli_schema_merge(part, workers, &joined, &err), PLAIT_OK);
    assert_int_equal(pli_schema_rows(joined), ROWS);
    assert_int_equal(pli_schema_labels(joined), 3);
    if (features || load) assert_int_equal(pli_schema_features(joined), 54);
    for (int32_t w = 0; w < workers; w++)
        if (pli_dataset_agree(d[w], joined, &err) != PLAIT_OK) fail_msg("%s", err.text);
    pli_schema_destroy(&joined);
}

/* How batches are ordered: lanes 0: not by the files. */
typedef struct file_order {
    int32_t lanes;
    int64_t tail;
} file_order;

/* How a stream is read. */
enum way { BY_CLOCK, BY_PART, BY_PIECE, BY_HEIR };
enum { MOST = 5 }; /* pieces of a clock, beside one a block */

static int by_number(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The worker that reads a block in a clock: blocks fall to another worker now and then, some to a third, and in the end
 * all of them are their owners' again. */
static int32_t reader_of(int32_t block, int32_t owner, int64_t clock, int32_t workers) {
    const int64_t moved = clock < 12 || clock >= 70 ? 0 : clock / 12 - (block % 3 == 0);
    return (int32_t)((owner + moved) % workers);
}

/* The prints of a clock's rows, by whoever reads each block. */
static int64_t clock_by_heirs(int32_t workers, pli_dataset *const *d, pli_batches *const *s, int64_t clock,
                              uint64_t *print) {
    int64_t n = 0;
    for (int32_t b = 0; b < pli_dataset_blocks(d[0]); b++) {
        pli_part    part;
        plait_error err;
        const int32_t reader = reader_of(b, pli_dataset_home(d[0], b), clock, workers);
        for (int again = 0; again < 2; again++)
            if (pli_batches_part(s[reader], b, 0, clock, &part, &err) < 0) fail_msg("%s", err.text);
        for (int64_t k = 0; k < part.rows; k++) print[n++] = row_print(part.block, part.first + k);
    }
    return n;
}

/* The prints of all rows in order of clock, block and row; in the files' order their numbers, sorted in each clock. */
static void prints(int32_t workers, int32_t threads, bool load, enum way way, file_order order, uint64_t *print) {
    pli_dataset *d[8] = { NULL };
    pli_batches *s[8] = { NULL };
    pli_pool    *pool = NULL;
    plait_error  err;
    int64_t      n = 0, clocks = (ROWS + BATCH - 1) / BATCH;
    assert_int_equal(pli_pool_create(threads, &pool, &err), PLAIT_OK);
    agree_all(d, workers, load, workers == 2, pool);
    for (int32_t w = 0; w < workers; w++) {
        plait_status status = load ? pli_batches_create(d[w], 1, clocks, false, NULL, NULL, &s[w], &err)
                                   : pli_batches_stream(d[w], BATCH, pool, &s[w], &err);
        if (status != PLAIT_OK) fail_msg("%s", err.text);
        assert_int_equal(pli_batches_clocks(s[w]), clocks);
        if (way == BY_PIECE)
            assert_int_equal(pli_stream_slots(s[w], pli_dataset_own_blocks(d[w]) + MOST, &err), PLAIT_OK);
        if (order.lanes == 0) continue;
        assert_int_equal(pli_batches_in_file_order(s[w], order.lanes, clocks, &err), PLAIT_EINVAL);
        assert_int_equal(pli_batches_in_file_order(s[w], order.lanes, order.tail, &err), PLAIT_OK);
    }
    for (int64_t clock = 0; clock < clocks; clock++) {
        const int64_t begin = n;
        if (way == BY_HEIR) n += clock_by_heirs(workers, d, s, clock, print + n);
        for (int32_t w = 0; way != BY_HEIR && w < workers; w++) {
            pli_batch batch = { NULL, pli_dataset_own_blocks(d[w]), 0 };
            if (way == BY_CLOCK) assert_int_equal(pli_batches_get(s[w], 0, clock, &batch, &err), PLAIT_OK);
            if (way == BY_PIECE) {
                const int32_t blocks = batch.parts;
                assert_int_equal(pli_stream_cut(s[w], clock, MOST, &batch.parts, &err), PLAIT_OK);
                assert_true(batch.parts <= blocks + MOST);
                assert_true(order.lanes != 1 || load || batch.parts <= MOST + 2); /* of one block, or of two */
            }
            for (int32_t i = 0; i < batch.parts; i++) {
                pli_part part;
                if (way == BY_PIECE) {
                    assert_int_equal(pli_stream_piece(s[w], clock, i, i, &part, &err), PLAIT_OK);
                    assert_true(load || part.rows <= (BATCH + MOST - 1) / MOST + 1);
                } else if (way == BY_PART)
                    assert_int_equal(pli_stream_part(s[w], clock, i, i % threads, &part, &err), PLAIT_OK);
                else
                    part = batch.part[i];
                assert_true(part.rows == 0 || clock < clocks - order.tail);
                for (int64_t k = 0; k < part.rows; k++, n++)
                    print[n] = order.lanes > 0 ? (uint64_t)(part.block->first_row + part.first + k)
                                               : row_print(part.block, part.first + k);
            }
        }
        if (order.lanes > 0) qsort(print + begin, (size_t)(n - begin), sizeof *print, by_number);
    }
    assert_int_equal(n, ROWS);
    pli_batch over;
    if (!load && way != BY_HEIR) assert_int_equal(pli_batches_get(s[0], 0, clocks, &over, &err), PLAIT_END);
    for (int32_t w = 0; w < workers; w++) {
        pli_batches_destroy(&s[w]);
        pli_dataset_destroy(&d[w]);
    }
    pli_pool_destroy(&pool);
}

static void test_stream_is_what_loading_gives(void **state) {
    static const struct {
        int32_t workers, threads;
        enum way way;
    } ways[] = { { 1, 1, BY_CLOCK }, { 1, 3, BY_CLOCK }, { 1, 2, BY_PART }, { 2, 1, BY_CLOCK },
                 { 4, 2, BY_PART },  { 1, 2, BY_PIECE }, { 4, 2, BY_PIECE }, { 4, 2, BY_HEIR }, { 3, 1, BY_HEIR } };
    uint64_t *loaded = calloc(ROWS, sizeof *loaded), *streamed = calloc(ROWS, sizeof *streamed);
    (void)state;
    prints(1, 1, true, BY_CLOCK, (file_order){ 0, 0 }, loaded);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        prints(ways[i].workers, ways[i].threads, false, ways[i].way, (file_order){ 0, 0 }, streamed);
        assert_memory_equal(loaded, streamed, ROWS * sizeof *loaded);
    }
    free(loaded);
    free(streamed);
}

/* One lane: the rows as the files have them, all before the tail begins; who reads them does not matter. */
static void test_the_files_order(void **state) {
    uint64_t *number = calloc(ROWS, sizeof *number);
    (void)state;
    dealt = true;
    for (int way = 0; way < 5; way++) {
        prints(1, way % 2 + 1, way == 0, way == 1 ? BY_PART : way == 4 ? BY_PIECE : BY_CLOCK,
               (file_order){ 1, way % 4 * 5 }, number);
        for (uint64_t i = 0; i < ROWS; i++) assert_int_equal(number[i], i);
    }
    dealt = false;
    free(number);
}

/* Each of four lanes goes through the whole of the files, never far from the others. Each row is there once, whoever
 * reads it: four workers, or one. */
static void test_lanes_go_side_by_side(void **state) {
    const int32_t readers[] = { 4, 1, 2 }; /* loaded; by clock, by part, by piece */
    uint64_t     *number = calloc(ROWS, sizeof *number);
    char         *seen = calloc(ROWS, 1);
    (void)state;
    dealt = true;
    for (int r = 0; r < 3; r++) {
        prints(readers[r], 2, r == 1, (enum way)r, (file_order){ 4, 3 }, number);
        memset(seen, 0, ROWS);
        for (int64_t i = 0; i < ROWS; i++) {
            assert_true(number[i] < ROWS && !seen[number[i]]);
            seen[number[i]] = 1;
            assert_true(llabs((long long)number[i] - i) < ROWS / 12); /* 64 blocks: the lanes are 4 of them apart */
        }
    }
    dealt = false;
    free(number);
    free(seen);
}

static void test_order_is_checked(void **state) {
    pli_dataset *d[1] = { NULL };
    pli_batches *s = NULL;
    pli_batch    batch;
    pli_part     part;
    plait_error  err;
    (void)state;
    d[0] = open_folder(0, 1);
    assert_int_equal(pli_batches_stream(d[0], BATCH, NULL, &s, &err), PLAIT_EINVAL);
    pli_dataset_destroy(&d[0]);
    agree_all(d, 1, false, false, NULL);
    assert_int_equal(pli_batches_stream(d[0], BATCH, NULL, &s, &err), PLAIT_OK);
    assert_int_equal(pli_stream_part(s, 3, 0, 0, &part, &err), PLAIT_EINVAL);
    assert_int_equal(pli_batches_part(s, 0, 1, 0, &part, &err), PLAIT_EINVAL);
    assert_int_equal(pli_batches_part(s, 0, 0, 3, &part, &err), PLAIT_OK);
    assert_int_equal(pli_batches_part(s, 0, 0, 2, &part, &err), PLAIT_EINVAL);
    assert_int_equal(pli_batches_get(s, 0, ROWS, &batch, &err), PLAIT_END);
    pli_batches_destroy(&s);
    pli_dataset_destroy(&d[0]);
}

static void test_pack(void **state) {
    (void)state;
    pli_dataset *wide = open_folder(0, 1), *packed = open_folder(0, 1);
    pli_pool    *pool = NULL;
    assert_int_equal(pli_pool_create(2, &pool, NULL), PLAIT_OK);
    assert_int_equal(pli_dataset_load(wide, NULL, NULL), PLAIT_OK);
    assert_int_equal(pli_dataset_load(packed, NULL, NULL), PLAIT_OK);
    pli_dataset_pack(packed, pool);
    for (int32_t b = 0; b < pli_dataset_own_blocks(wide); b++) {
        const pli_block *x = pli_dataset_block(wide, b), *y = pli_dataset_block(packed, b);
        assert_true(y->entries == x->entries && (y->packed != NULL || y->entries == 0));
        for (int64_t e = 0; e < x->entries; e++) {
            const unsigned char *byte = y->packed + 3 * e;
            assert_int_equal(byte[0] | byte[1] << 8 | byte[2] << 16, x->col[e]);
        }
    }
    pli_dataset_destroy(&wide);
    pli_dataset_destroy(&packed);
    pli_pool_destroy(&pool);
}

static void test_weights_that_do_not_fit(void **state) {
    char         path[80];
    pli_dataset *d = NULL;
    plait_error  err;
    (void)state;
    snprintf(path, sizeof path, "%s/a.weight", folder);
    FILE *w = fopen(path, "ab");
    fputs("1\n", w);
    fclose(w);
    d = open_folder(0, 1);
    assert_int_equal(pli_dataset_load(d, NULL, &err), PLAIT_EFORMAT);
    assert_non_null(strstr(err.text, "expected a weight for each of 2500 rows, found 2501"));
    pli_dataset_destroy(&d);
}

static int make_folder(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL) return -1;
    write_files();
    return 0;
}

static int remove_folder(void **state) {
    static const char *const names[] = { "a", "a.weight", "b.gz" };
    char                     path[80];
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_is_what_loading_gives),
        cmocka_unit_test(test_the_files_order),
        cmocka_unit_test(test_lanes_go_side_by_side),
        cmocka_unit_test(test_order_is_checked),
        cmocka_unit_test(test_pack),
        cmocka_unit_test(test_weights_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
