/* The cache gives the same rows as the text; stale and damaged caches are built anew. */
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

#include "data/cache/cache.h"

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

/* A number that stands for all rows, read by `workers` that agree; *cached_out: how many of them lived on the cache. */
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

/* If a byte that matters is altered, or the file is cut at any length, it is noticed, and the rows are right all the
 * same. */
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

/* --- crafted caches: their checksums fit, and yet they are wrong -------------------------------------------------- */

enum {
    TRAILER = 64,
    RECORD = 88,
    NUMBER = 0,
    FIRST_ROW = 8,
    ROWS = 16,
    ARRAYS_AT = 32,
    COL_AT = 40,
    LABEL_AT = 64,
    HASH = 80
};

static uint64_t word(const pli_text *whole, size_t at) {
    uint64_t value;
    memcpy(&value, whole->data + at, sizeof value);
    return value;
}

static void set_word(pli_text *whole, size_t at, uint64_t value) { memcpy(whole->data + at, &value, sizeof value); }

/* The place of a block's record; the records are the last thing before the trailer. */
static size_t record_of(const pli_text *whole, size_t block) {
    return whole->length - TRAILER - (size_t)(64 - block) * RECORD;
}

/* Writes the file with checksums of index and trailer that fit. */
static void write_crafted(pli_text *whole) {
    const size_t trailer = whole->length - TRAILER, hash = trailer + 48;
    set_word(whole, hash, 0);
    uint64_t seed = pli_hash_bytes(whole->data + trailer, TRAILER, 0);
    set_word(whole, hash, pli_hash_bytes(whole->data + word(whole, trailer + 32), word(whole, trailer + 40), seed));
    FILE *file = fopen(cache_name, "wb");
    fwrite(whole->data, 1, whole->length, file);
    fclose(file);
}

/* Computes the checksum of a block's arrays anew. */
static void rehash(pli_text *whole, size_t block) {
    static const size_t bytes[] = { 8, 4, 8, 4, 8, 4 };
    const size_t        r = record_of(whole, block), rows = word(whole, r + ROWS), entries = word(whole, r + ROWS + 8);
    uint64_t            hash = 0;
    for (size_t k = 0; k < 6; k++) {
        const size_t at = word(whole, r + ARRAYS_AT + 8 * k), n = k == 0 ? rows + 1 : k >= 4 ? rows : entries;
        if (at != 0) hash = pli_hash_bytes(whole->data + at, n * bytes[k], hash);
    }
    set_word(whole, r + HASH, hash);
}

/* Opens the file and expects that it is refused with `why`. NULL: it is accepted. */
static void expect_crafted(pli_text *whole, const char *why) {
    pli_dataset *d = NULL;
    plait_error  err;
    write_crafted(whole);
    assert_int_equal(open_one(true, 0, 1, &d, &err), PLAIT_OK);
    if (why == NULL && d->cached == NULL) fail_msg("refused: %s", pli_dataset_notes(d));
    if (why != NULL && (d->cached != NULL || strstr(pli_dataset_notes(d), why) == NULL))
        fail_msg("expected \"%s\", found \"%s\"", why, pli_dataset_notes(d));
    pli_dataset_destroy(&d);
}

/* Swaps two words, expects the file to be refused, and swaps them back. */
static void swap_and_refuse(pli_text *whole, size_t a, size_t b, const char *why) {
    for (int turn = 0; turn < 2; turn++) {
        const uint64_t kept = word(whole, a);
        set_word(whole, a, word(whole, b));
        set_word(whole, b, kept);
        expect_crafted(whole, turn == 0 ? why : NULL);
    }
}

static void test_crafted(void **state) {
    pli_text    whole = { 0 };
    plait_error err;
    int32_t     cached;
    bool        noted;
    (void)state;
    write_rows(640, false);
    unlink(cache_name);
    uint64_t text = print_of(true, 1, &cached, &noted);
    assert_int_equal(pli_read_whole(cache_name, 1 << 24, &whole, &err), PLAIT_OK);
    const size_t three = record_of(&whole, 3), five = record_of(&whole, 5);
    expect_crafted(&whole, NULL);
    swap_and_refuse(&whole, three + NUMBER, five + NUMBER, "in the place of block 3 stands block 5");
    swap_and_refuse(&whole, three + FIRST_ROW, five + FIRST_ROW, "block 3 has rows");
    swap_and_refuse(&whole, three + LABEL_AT, five + LABEL_AT, "the arrays of another");
    const uint64_t kept = word(&whole, three + ROWS);
    set_word(&whole, three + ROWS, kept - 1);
    expect_crafted(&whole, "block 3 has rows");
    set_word(&whole, three + ROWS, kept);
    set_word(&whole, whole.length - 8, 63);
    expect_crafted(&whole, "impossible sizes");
    set_word(&whole, whole.length - 8, 64);
    /* An infinite label and a key that appears twice, each with a checksum of the block that fits. */
    const size_t zero = record_of(&whole, 0), label = word(&whole, zero + LABEL_AT), col = word(&whole, zero + COL_AT);
    const double infinity = INFINITY;
    uint64_t     bits;
    memcpy(&bits, &infinity, sizeof bits);
    const uint64_t labels = word(&whole, label), keys = word(&whole, col);
    set_word(&whole, label, bits);
    expect_crafted(&whole, "the checksum of a block does not fit");
    rehash(&whole, 0);
    expect_crafted(&whole, "a block is not consistent");
    set_word(&whole, label, labels);
    set_word(&whole, col, (keys & UINT32_MAX) << 32 | (keys & UINT32_MAX));
    rehash(&whole, 0);
    expect_crafted(&whole, "a block is not consistent");
    set_word(&whole, col, keys);
    rehash(&whole, 0);
    expect_crafted(&whole, NULL);
    set_word(&whole, whole.length - TRAILER + 24, 7); /* the fingerprint: only the checksum notices */
    FILE *file = fopen(cache_name, "wb");
    fwrite(whole.data, 1, whole.length, file);
    fclose(file);
    assert_int_equal(print_of(true, 1, &cached, &noted), text);
    assert_true(noted);
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
        cmocka_unit_test(test_crafted),
        cmocka_unit_test(test_streamed_from_cache),
        cmocka_unit_test(test_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
