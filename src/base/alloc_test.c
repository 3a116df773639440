/* Memory: checked sizes, the failure of the n-th allocation, growth, arenas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"

/* Does this build count live blocks and let allocations fail (PLI_TESTING)? */
static bool counted(void) {
    int64_t before = pli_alloc_live();
    void   *memory = pli_malloc(1);
    bool    grew = pli_alloc_live() == before + 1;
    pli_free(memory);
    return grew;
}

static void test_impossible_sizes_are_refused(void **state) {
    (void)state;
    void *memory = pli_malloc(16);
    assert_null(pli_array(SIZE_MAX / 8 + 1, 8));
    assert_null(pli_calloc(SIZE_MAX / 8 + 1, 8));
    assert_null(pli_realloc(memory, SIZE_MAX / 8 + 1, 8));
    assert_null(pli_aligned(SIZE_MAX - 8));
    pli_free(memory);
}

static void test_zero_bytes_are_a_valid_pointer(void **state) {
    (void)state;
    void *a = pli_malloc(0), *b = pli_calloc(0, 8), *c = pli_aligned(0), *d = pli_realloc(NULL, 0, 4);
    assert_true(a != NULL && b != NULL && c != NULL && d != NULL);
    pli_free(a);
    pli_free(b);
    pli_free(c);
    pli_free(d);
    pli_free(NULL);
}

static void test_aligned_and_zeroed(void **state) {
    (void)state;
    for (size_t bytes = 1; bytes < (size_t)20 << 20; bytes = bytes * 7 + 1) {
        unsigned char *a = pli_aligned(bytes), *z = pli_calloc(bytes, 1);
        assert_non_null(a);
        assert_non_null(z);
        assert_int_equal((uintptr_t)a % 64, 0);
        a[bytes - 1] = 1;
        assert_true(z[0] == 0 && z[bytes / 2] == 0 && z[bytes - 1] == 0);
        pli_free(a);
        pli_free(z);
    }
}

static void test_nth_allocation_fails_once(void **state) {
    (void)state;
    if (!counted()) skip();
    int64_t before = pli_alloc_live();
    pli_alloc_fail_after(2);
    void *a = pli_malloc(1), *b = pli_calloc(1, 1), *c = pli_aligned(1), *d = pli_strdup("d");
    assert_true(a != NULL && b != NULL && c == NULL && d != NULL);
    assert_int_equal(pli_alloc_live(), before + 3);
    void *moved = pli_realloc(a, 100, 100);
    assert_int_equal(pli_alloc_live(), before + 3);
    pli_free(moved);
    pli_free(b);
    pli_free(d);
    assert_int_equal(pli_alloc_live(), before);
}

static void test_format_and_strdup(void **state) {
    (void)state;
    char *text = pli_format("%s-%d", "part", 7), *copy = pli_strdup(text);
    assert_string_equal(text, "part-7");
    assert_string_equal(copy, text);
    pli_free(text);
    pli_free(copy);
}

static void test_grow_doubles_and_keeps(void **state) {
    (void)state;
    int32_t *array = NULL;
    int64_t  capacity = 0, growths = 0;
    for (int64_t n = 0; n < 10000; n++) {
        int64_t before = capacity;
        assert_true(pli_grow((void **)&array, &capacity, n + 1, sizeof *array));
        growths += capacity != before;
        array[n] = (int32_t)n;
    }
    for (int32_t i = 0; i < 10000; i++) assert_int_equal(array[i], i);
    assert_in_range(growths, 2, 14);
    if (counted()) {
        int32_t *same = array;
        int64_t  held = capacity;
        pli_alloc_fail_after(0);
        assert_false(pli_grow((void **)&array, &capacity, 2 * held, sizeof *array));
        assert_true(array == same && capacity == held);
    }
    assert_false(pli_grow((void **)&array, &capacity, INT64_MAX, sizeof *array));
    pli_free(array);
}

static void test_arena(void **state) {
    (void)state;
    int64_t   before = pli_alloc_live();
    pli_arena arena;
    pli_arena_init(&arena, 1000);
    unsigned char *last = NULL;
    for (size_t i = 1; i < 500; i++) {
        unsigned char *at = pli_arena_take(&arena, i * 7 % 3000);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % 64, 0);
        assert_true(at != last);
        memset(at, (int)i, i * 7 % 3000); /* the sanitizer sees an overlap with the end of a chunk */
        last = at;
    }
    assert_null(pli_arena_take(&arena, SIZE_MAX / 2));
    assert_non_null(pli_arena_take(&arena, 10));
    pli_arena_destroy(&arena);
    pli_arena_destroy(&arena);
    assert_int_equal(pli_alloc_live(), before);
}

static void test_arena_without_memory(void **state) {
    (void)state;
    if (!counted()) skip();
    pli_arena arena;
    pli_arena_init(&arena, 64);
    void *first = pli_arena_take(&arena, 64);
    pli_alloc_fail_after(0);
    assert_null(pli_arena_take(&arena, 64));
    assert_non_null(pli_arena_take(&arena, 64));
    memset(first, 1, 64); /* what was taken before is still valid */
    pli_arena_destroy(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_impossible_sizes_are_refused),
        cmocka_unit_test(test_zero_bytes_are_a_valid_pointer),
        cmocka_unit_test(test_aligned_and_zeroed),
        cmocka_unit_test(test_nth_allocation_fails_once),
        cmocka_unit_test(test_format_and_strdup),
        cmocka_unit_test(test_grow_doubles_and_keeps),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_arena_without_memory),
    };
    return cmocka_run_group_tests_name("base.alloc", tests, NULL, NULL);
}
