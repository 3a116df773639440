/* A row set against a plain list: as an array, as increasing keys, as a map, and from one to the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table/state/rowset.h"

enum { KEYS = 600, BATCH = 40 };

static int64_t find_in(const uint64_t *list, int64_t n, uint64_t key) {
    for (int64_t i = 0; i < n; i++)
        if (list[i] == key) return i;
    return -1;
}

static void one_round(pli_random *r, pli_rowset *set, uint64_t first, uint64_t range, bool increasing) {
    uint64_t list[KEYS], keys[BATCH], from = first;
    int64_t  at[BATCH], n = 0;
    while (n < KEYS - BATCH) {
        int64_t m = (int64_t)pli_random_below(r, BATCH + 1);
        if (increasing && from + 4 * BATCH >= first + range) break;
        for (int64_t i = 0; i < m; i++) {
            if (increasing) keys[i] = from += 1 + pli_random_below(r, 3);
            else keys[i] = first + pli_random_below(r, range);
        }
        if (pli_random_below(r, 8) == 0) increasing = false;
        assert_true(pli_rowset_add(set, m, keys, at));
        for (int64_t i = 0; i < m; i++) {
            int64_t want = find_in(list, n, keys[i]);
            if (want < 0) list[want = n++] = keys[i];
            assert_int_equal(at[i], want);
        }
        assert_int_equal(set->n, n);
        assert_memory_equal(set->keys, list, (size_t)n * 8);
        for (int64_t i = 0; i < BATCH; i++) keys[i] = first + pli_random_below(r, range);
        pli_rowset_find(set, BATCH, keys, at);
        for (int64_t i = 0; i < BATCH; i++) assert_int_equal(at[i], find_in(list, n, keys[i]));
    }
    pli_rowset_clear(set);
    assert_int_equal(set->n, 0);
    pli_rowset_find(set, 1, list, at);
    assert_int_equal(at[0], -1);
}

static void test_like_a_list(void **state) {
    (void)state;
    static const struct { uint64_t first, range; } spans[] = { { 0, 0 }, { 100, 2000 }, { 5, UINT64_C(1) << 40 } };
    pli_random r = pli_random_at(5, PLI_RANDOM_SCHEDULE, 0, 0);
    int64_t    live = pli_alloc_live();
    for (int s = 0; s < 3; s++) {
        pli_rowset set;
        pli_rowset_init(&set, spans[s].first, spans[s].range);
        uint64_t range = spans[s].range == 0 ? 3000 : spans[s].range;
        for (int i = 0; i < 40; i++) one_round(&r, &set, spans[s].first, range, i % 2 == 0);
        pli_rowset_destroy(&set);
    }
    assert_int_equal(pli_alloc_live(), live);
}

static void test_out_of_memory(void **state) {
    (void)state;
    uint64_t keys[3] = { 9, 4, 7 };
    int64_t  at[3], live = pli_alloc_live();
    for (int s = 0; s < 2; s++)
        for (int64_t k = 0; k < 6; k++) {
            pli_rowset set;
            pli_rowset_init(&set, 0, s == 0 ? 0 : 10);
            pli_alloc_fail_after(k);
            bool added = pli_rowset_add(&set, 3, keys, at);
            pli_alloc_fail_after(-1);
            assert_true(added == (set.n == 3) || set.n < 3);
            pli_rowset_destroy(&set);
            assert_int_equal(pli_alloc_live(), live);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_like_a_list), cmocka_unit_test(test_out_of_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
