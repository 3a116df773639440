/* The cache: the rows it gives are those of the text; stale and damaged ones are built anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/cache.h"

static char file_name[] = "/tmp/plait_cache_XXXXXX", cache_name[64];

static void write_rows(int rows, bool table) {
    FILE *file = fopen(file_name, "wb");
    assert_non_null(file);
    if (table) fputs("city,x,y\n", file);
    for (int i = 0; i < rows; i++) {
        if (table)
            fprintf(file, i % 6 == 0 ? "t%d,,%d\n" : "t%d,%d,0\n", i % 11, i % 7);
        else
            fprintf(file, "%d %d:1 %d:%d\n", i % 2, 1 + i % 9, 20 + i % 5, 1 + (i % 3 == 0));
    }
    fclose(file);
}

static plait_status open_one(bool cache, int32_t worker, int32_t workers, pli_dataset **d, plait_error *err) {
    const char     *paths[] = { file_name };
    plait_data_opts opts;
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 1;
    opts.cache = cache;
    opts.label = NULL;
    return pli_dataset_open(&opts, NULL, worker, workers, d, err);
}

/* A number for all rows, over `workers` that agree; *cached_out: how many lived on the cache. */
static uint64_t print_of(bool cache, int32_t workers, int32_t *cached_out, bool *noted_out) {
    pli_dataset      *d[4] = { NULL };
    const pli_schema *part[4] = { NULL };
    pli_schema       *joined = NULL;
    plait_error       err;
    uint64_t          print = 0;
    *cached_out = 0;
    *noted_out = false;
    for (int32_t w = 0; w < workers; w++)
        if (open_one(cache, w, workers, &d[w], &err) != PLAIT_OK) fail_msg("%s", err.text);
    for (int32_t w = 0; w < workers; w++) {
        if (pli_dataset_load(d[w], NULL, &err) != PLAIT_OK) fail_msg("%s", err.text);
        part[w] = pli_dataset_schema(d[w]);
        *cached_out += d[w]->cached != NULL;
        *noted_out |= pli_dataset_notes(d[w])[0] != '\0';
        assert_int_equal(pli_dataset_fingerprint(d[w]), pli_dataset_fingerprint(d[0]));
    }
    assert_int_equal(pli_schema_merge(part, workers, &joined, &err), PLAIT_OK);
    pli_text json = { 0 };
    assert_int_equal(pli_schema_write_model(joined, &json, &err), PLAIT_OK);
    print = pli_hash_bytes(json.data, json.length, print);
    pli_text_free(&json);
    for (int32_t w = 0; w < workers; w++) {
        if (pli_dataset_agree(d[w], joined, &err) != PLAIT_OK) fail_msg("%s", err.text);
        for (int32_t i = 0; i < pli_dataset_own_blocks(d[w]); i++) {
            const pli_block *b = pli_dataset_block(d[w], i);
            print = pli_hash_bytes(&b->first_row, sizeof b->first_row, print ^ (uint64_t)b->number);
            print = pli_hash_bytes(b->label, (size_t)b->rows * sizeof *b->label, print);
            print = pli_hash_bytes(b->row_start, (size_t)(b->rows + 1) * sizeof *b->row_start, print);
            print = pli_hash_bytes(b->col, (size_t)b->entries * sizeof *b->col, print);
            for (int64_t k = 0; k < b->entries; k++) {
                float value = b->value != NULL ? b->value[k] : 1.0f;
                print = pli_hash_bytes(&value, sizeof value, print);
            }
        }
        pli_dataset_destroy(&d[w]);
    }
    pli_schema_destroy(&joined);
    return print;
}

static void same_rows(bool table) {
    int32_t cached;
    bool    noted;
    write_rows(3000, table);
    unlink(cache_name);
    uint64_t text = print_of(false, 1, &cached, &noted);
    assert_int_equal(cached, 0);
    assert_int_equal(print_of(true, 1, &cached, &noted), text); /* built */
    assert_int_equal(cached, 1);
    assert_int_equal(print_of(true, 1, &cached, &noted), text); /* read */
    assert_int_equal(cached, 1);
    assert_int_equal(print_of(true, 4, &cached, &noted), text); /* read by four */
    assert_int_equal(cached, 4);
    assert_false(noted);
    unlink(cache_name);
    assert_int_equal(print_of(true, 4, &cached, &noted), text); /* built by one of four */
    assert_int_equal(cached, 1);
    assert_int_equal(print_of(true, 3, &cached, &noted), text);
    assert_int_equal(cached, 3);
}

static void test_same_rows(void **state) {
    (void)state;
    same_rows(false);
    same_rows(true);
}

static void test_stale(void **state) {
    int32_t cached;
    bool    noted;
    (void)state;
    write_rows(1000, false);
    unlink(cache_name);
    print_of(true, 1, &cached, &noted);
    write_rows(1001, false);
    uint64_t text = print_of(false, 1, &cached, &noted);
    assert_int_equal(print_of(true, 1, &cached, &noted), text);
    assert_true(noted);
    assert_int_equal(print_of(true, 1, &cached, &noted), text);
    assert_false(noted);
}

/* Any byte altered that matters, and any length cut, is noticed, and the rows are right all the same. */
static void test_damaged(void **state) {
    pli_text    whole = { 0 };
    plait_error err;
    int32_t     cached;
    bool        noted;
    (void)state;
    write_rows(200, false);
    unlink(cache_name);
    uint64_t text = print_of(true, 1, &cached, &noted);
    assert_int_equal(pli_read_whole(cache_name, 1 << 24, &whole, &err), PLAIT_OK);
    for (size_t i = 64; i < whole.length; i += 97) {
        FILE *file = fopen(cache_name, "wb");
        whole.data[i] ^= 16;
        fwrite(whole.data, 1, i % 5 == 0 ? i : whole.length, file);
        fclose(file);
        whole.data[i] ^= 16;
        assert_int_equal(print_of(true, 1, &cached, &noted), text);
        assert_int_equal(cached, 1);
    }
    pli_text_free(&whole);
}

static void test_streamed_from_cache(void **state) {
    plait_error  err;
    int32_t      cached;
    bool         noted;
    pli_dataset *d = NULL;
    pli_batches *s = NULL;
    pli_schema  *joined = NULL;
    pli_part     part;
    int64_t      rows = 0;
    (void)state;
    write_rows(1000, true);
    print_of(true, 1, &cached, &noted);
    assert_int_equal(open_one(true, 0, 1, &d, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_scan(d, true, NULL, &err), PLAIT_OK);
    const pli_schema *found = pli_dataset_schema(d);
    assert_int_equal(pli_schema_merge(&found, 1, &joined, &err), PLAIT_OK);
    assert_int_equal(pli_dataset_agree(d, joined, &err), PLAIT_OK);
    assert_int_equal(pli_batches_stream(d, 10, NULL, &s, &err), PLAIT_OK);
    for (int64_t clock = 0; clock < 100; clock++)
        for (int32_t i = 0; i < 64; i++, rows += part.rows)
            assert_int_equal(pli_stream_part(s, clock, i, 0, &part, &err), PLAIT_OK);
    assert_int_equal(rows, 1000);
    pli_batches_destroy(&s);
    pli_schema_destroy(&joined);
    pli_dataset_destroy(&d);
}

static void test_every_failed_allocation(void **state) {
    plait_error err;
    int64_t     before = pli_alloc_live();
    (void)state;
    write_rows(20, true);
    for (int64_t k = 0;; k++) {
        pli_dataset *d = NULL;
        unlink(cache_name);
        pli_alloc_fail_after(k);
        plait_status status = open_one(true, 0, 1, &d, &err);
        if (status == PLAIT_OK) status = pli_dataset_load(d, NULL, &err);
        pli_alloc_fail_after(-1);
        bool on_cache = d != NULL && d->cached != NULL;
        pli_dataset_destroy(&d);
        assert_int_equal(pli_alloc_live(), before);
        if (status == PLAIT_OK && on_cache) break;
        if (status != PLAIT_OK && status != PLAIT_ENOMEM) fail_msg("allocation %d: %s", (int)k, err.text);
    }
}

static int make_file(void **state) {
    (void)state;
    int fd = mkstemp(file_name);
    if (fd >= 0) close(fd);
    snprintf(cache_name, sizeof cache_name, "%s.plait-cache", file_name);
    return fd >= 0 ? 0 : -1;
}

static int remove_file(void **state) {
    (void)state;
    unlink(cache_name);
    return unlink(file_name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_rows),
        cmocka_unit_test(test_stale),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_streamed_from_cache),
        cmocka_unit_test(test_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
