/* safetensors files: written, read back, and refused when cut, altered or wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/data.h"

static char path[] = "/tmp/plait_tensors_XXXXXX";

static const float      weights[3][2] = { { 1, 2 }, { 3, 4 }, { 5, 6.5f } };
static const double     offsets[1] = { 0.25 };
static const pli_tensor two[] = {
    { .name = "w", .type = "F32", .dims = 2, .shape = { 3, 2 }, .data = weights, .bytes = sizeof weights },
    { .name = "b", .type = "F64", .dims = 1, .shape = { 1 }, .data = offsets, .bytes = sizeof offsets },
};
static const char *const metadata[] = { "model", "logistic", "note", "\"quoted\" \xc3\xa9", NULL };

static void write_two(void) {
    plait_error err;
    if (pli_safetensors_write(path, two, 2, metadata, &err) != PLAIT_OK) fail_msg("%s", err.text);
}

static void test_round_trip(void **state) {
    pli_safetensors *file = NULL;
    plait_error      err;
    char             hex[65], again[65];
    (void)state;
    write_two();
    if (pli_safetensors_open(path, &file, &err) != PLAIT_OK) fail_msg("%s", err.text);
    const pli_tensor *w = pli_safetensors_find(file, "w"), *b = pli_safetensors_find(file, "b");
    assert_non_null(w);
    assert_non_null(b);
    assert_null(pli_safetensors_find(file, "x"));
    assert_int_equal(w->dims, 2);
    assert_int_equal(w->shape[0], 3);
    assert_memory_equal(w->data, weights, sizeof weights);
    assert_memory_equal(b->data, offsets, sizeof offsets);
    assert_string_equal(pli_safetensors_metadata(file, "note"), metadata[3]);
    pli_tensor swapped[] = { two[1], two[0] };
    pli_tensors_hash(two, 2, hex);
    pli_tensors_hash(swapped, 2, again);
    assert_string_equal(hex, again);
    pli_safetensors_close(&file);
    assert_null(file);
}

/* Every byte changed, and every length cut, is noticed. */
static void test_damage(void **state) {
    pli_text         text = { 0 };
    plait_error      err;
    pli_safetensors *file = NULL;
    (void)state;
    write_two();
    assert_int_equal(pli_read_whole(path, 1 << 20, &text, &err), PLAIT_OK);
    for (size_t i = 0; i < text.length; i++) {
        char before = text.data[i];
        text.data[i] = (char)(before ^ 4);
        plait_status status = pli_safetensors_parse(text.data, text.length, &file, &err);
        if (status >= 0 && pli_safetensors_metadata(file, "plait.checksum") == NULL) status = PLAIT_ECHECKSUM;
        pli_safetensors_close(&file);
        if (status >= 0) fail_msg("byte %zu altered and not noticed", i);
        text.data[i] = before;
        char *cut = malloc(i + 1);
        memcpy(cut, text.data, i);
        assert_true(pli_safetensors_parse(cut, i, &file, &err) < 0);
        if (i > 16) assert_true(err.code == PLAIT_ECHECKSUM || err.code == PLAIT_EFORMAT);
        free(cut);
    }
    assert_int_equal(pli_safetensors_parse(text.data, text.length, &file, &err), PLAIT_OK);
    pli_safetensors_close(&file);
    pli_text_free(&text);
}

static void refuse(const char *header, size_t data_bytes, const char *message) {
    unsigned char    bytes[1024] = { 0 };
    size_t           n = strlen(header);
    pli_safetensors *file = NULL;
    plait_error      err;
    bytes[0] = (unsigned char)n;
    bytes[1] = (unsigned char)(n >> 8);
    memcpy(bytes + 8, header, n);
    assert_true(pli_safetensors_parse(bytes, 8 + n + data_bytes, &file, &err) < 0);
    if (strstr(err.text, message) == NULL) fail_msg("expected \"%s\" in \"%s\"", message, err.text);
}

static void test_refusals(void **state) {
    (void)state;
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[2],"
           "\"data_offsets\":[4,12]}}",
           12, "overlaps");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, "leave the file");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 12, "after the last tensor");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,16],\"data_offsets\":[0,8]}}", 8,
           "whole numbers that fits");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "do not agree");
    refuse("{\"a\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "known dtype");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "whole numbers");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "leave the file");
    refuse("{\"a\":1}", 0, "known dtype");
    refuse("{\"__metadata__\":{\"a\":1}}", 0, "expected a text");
    refuse("{\"a\":", 0, "no JSON object");
    refuse("hello", 0, "expected a safetensors file");
}

static void test_former_file_stays(void **state) {
    plait_error      err;
    pli_tensor       wrong = two[0];
    pli_safetensors *file = NULL;
    (void)state;
    write_two();
    wrong.bytes = 4;
    assert_int_equal(pli_safetensors_write(path, &wrong, 1, NULL, &err), PLAIT_EINVAL);
    assert_int_equal(pli_safetensors_open(path, &file, &err), PLAIT_OK);
    pli_safetensors_close(&file);
}

static void test_every_failed_allocation(void **state) {
    plait_error err;
    int64_t     before = pli_alloc_live();
    (void)state;
    for (int64_t k = 0;; k++) {
        pli_safetensors *file = NULL;
        pli_alloc_fail_after(k);
        plait_status status = pli_safetensors_write(path, two, 2, metadata, &err);
        if (status == PLAIT_OK) status = pli_safetensors_open(path, &file, &err);
        pli_alloc_fail_after(-1);
        pli_safetensors_close(&file);
        assert_int_equal(pli_alloc_live(), before);
        if (status == PLAIT_OK) break;
        assert_int_equal(status, PLAIT_ENOMEM);
    }
}

static int make_file(void **state) {
    (void)state;
    int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    return fd >= 0 ? 0 : -1;
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_former_file_stays),
        cmocka_unit_test(test_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
