/* A graph's ids: small ones and any others are counted, numbered in order, and found again, wherever the border is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sort.h"
#include "vertex/census.h"

enum { IDS = 3000 };

static uint64_t draw(pli_random *r) {
    static const uint64_t far[] = { UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, 1023, 1024, 0 };
    const uint64_t        kind = pli_random_below(r, 8);
    if (kind == 0) return far[pli_random_below(r, 6)];
    return kind < 5 ? pli_random_below(r, 2000) : pli_hash_u64(pli_random_below(r, 900));
}

static void test_ids_have_numbers_in_order(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 20; round++) {
        pli_random r = pli_random_at(round, PLI_RANDOM_DATA, 0, 0);
        pli_census c;
        uint64_t   drawn[IDS], sorted[IDS], id[IDS];
        int64_t    in[IDS];
        uint32_t   out[IDS];
        pli_census_begin(&c, round % 4 == 0 ? 0 : round % 4 == 1 ? UINT64_C(4000) : 1024);
        for (int64_t i = 0; i < IDS; i++) {
            drawn[i] = sorted[i] = draw(&r);
            assert_true(pli_census_add(&c, drawn[i], 1, i % 3 == 0));
        }
        assert_true(pli_sort_u64(IDS, sorted, NULL));
        const int64_t n = pli_unique_u64(IDS, sorted);
        assert_int_equal(pli_census_count(&c), n);
        assert_true(pli_census_number(&c, n, in, out));
        pli_census_ids(&c, id);
        assert_memory_equal(id, sorted, (size_t)n * sizeof *id);
        for (int64_t v = 0; v < n; v++) assert_true(pli_census_id(&c, v) == id[v]);
        for (int64_t i = 0; i < IDS; i++) {
            const int64_t at = pli_census_find(&c, drawn[i]);
            assert_true(at >= 0 && at < n);
            assert_true(id[at] == drawn[i]);
            in[at]--;
            out[at] -= i % 3 == 0;
        }
        for (int64_t v = 0; v < n; v++) assert_true(in[v] == 0 && out[v] == 0);
        assert_int_equal(pli_census_find(&c, 77777777777), -1);
        assert_int_equal(pli_census_find(&c, 3999), -1);
        pli_census_slim(&c);
        for (int64_t v = 0; v < n; v++) assert_int_equal(pli_census_find(&c, id[v]), v);
        assert_int_equal(pli_census_find(&c, 77777777777), -1);
        assert_int_equal(pli_census_find(&c, 3999), -1);
        pli_census_free(&c);
    }
}

static void test_given_ids_are_all_there(void **state) {
    (void)state;
    pli_census c;
    uint64_t   id[3];
    int64_t    in[3];
    uint32_t   out[3];
    pli_census_begin(&c, 0);
    assert_true(pli_census_give(&c, 3));
    assert_true(pli_census_add(&c, 2, 1, 0));
    assert_int_equal(pli_census_count(&c), 3);
    assert_true(pli_census_number(&c, 3, in, out));
    pli_census_ids(&c, id);
    assert_true(id[0] == 1 && id[2] == 3 && in[0] == 0 && in[1] == 1 && pli_census_find(&c, 3) == 2);
    pli_census_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_ids_have_numbers_in_order),
                                        cmocka_unit_test(test_given_ids_are_all_there) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
