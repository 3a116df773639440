/* Shards are even: for dense ranges of any size, for small dense integer keys and for skewed ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table/state/placement.h"

static void test_dense_ranges_are_even_and_complete(void **state) {
    (void)state;
    pli_random r = pli_random_at(3, PLI_RANDOM_SCHEDULE, 0, 0);
    for (int i = 0; i < 3000; i++) {
        int64_t       rows = 1 + (int64_t)pli_random_below(&r, i % 2 ? 100000 : 40);
        int64_t       row_bytes = 4 * (1 + (int64_t)pli_random_below(&r, i % 3 ? 8 : 3000));
        int32_t       servers = 1 + (int32_t)pli_random_below(&r, 9), first_rank = (int32_t)pli_random_below(&r, 5);
        pli_placement p = pli_placement_make(rows, row_bytes, i % 7 == 0 ? 1 : 0, servers, first_rank);
        int64_t       next = 0, least = INT64_MAX, most = 0;
        assert_in_range(p.shards, 1, servers);
        for (int32_t shard = 0; shard < p.shards; shard++) {
            int64_t first, n;
            pli_placement_range(&p, shard, &first, &n);
            assert_int_equal(first, next);
            next += n;
            least = n < least ? n : least;
            most = n > most ? n : most;
            assert_int_equal(pli_placement_shard_of(&p, (uint64_t)first), shard);
            assert_int_equal(pli_placement_shard_of(&p, (uint64_t)(first + n - 1)), shard);
            int32_t rank = pli_placement_rank(&p, shard);
            assert_in_range(rank, first_rank, first_rank + servers - 1);
            assert_int_equal(pli_placement_shard_at(&p, rank), shard);
        }
        assert_int_equal(next, rows);
        assert_true(most - least <= 1 && least > 0);
        assert_true(p.shards == 1 || least * row_bytes >= PLI_SHARD_BYTES_MIN);
        const int32_t       bound = 1 + (int32_t)pli_random_below(&r, 9);
        const pli_placement few = pli_placement_make(rows, row_bytes, bound, servers, first_rank);
        if (i % 7 != 0) assert_int_equal(few.shards, bound < p.shards ? bound : p.shards);
    }
    pli_placement p = pli_placement_make(INT64_MAX / 8, 8, 0, 7, 0);
    assert_int_equal(pli_placement_shard_of(&p, INT64_MAX / 8 - 1), 6);
}

static void expect_even(const pli_placement *p, const int64_t *count, int64_t n) {
    for (int32_t s = 0; s < p->shards; s++) {
        double want = (double)n / p->shards;
        assert_true(fabs((double)count[s] - want) < 6 * sqrt(want));
    }
}

static void test_sparse_keys_are_even(void **state) {
    (void)state;
    pli_random r = pli_random_at(4, PLI_RANDOM_DATA, 0, 0);
    for (int32_t servers = 2; servers <= 9; servers++) {
        pli_placement p = pli_placement_make(0, 4, 0, servers, 0);
        int64_t       count[3][9] = { 0 };
        for (uint64_t key = 0; key < 20000; key++) {
            count[0][pli_placement_shard_of(&p, key)]++;                                    /* small integers */
            count[1][pli_placement_shard_of(&p, key << 32)]++;                              /* multiples      */
            count[2][pli_placement_shard_of(&p, (uint64_t)exp(pli_random_f64(&r) * 40) + (key << 5))]++; /* skewed */
        }
        for (int k = 0; k < 3; k++) expect_even(&p, count[k], 20000);
    }
}

static void test_equal_shapes_lie_alike(void **state) {
    (void)state;
    int32_t seen = 0;
    for (int64_t rows = 1; rows < 40; rows++) {
        pli_placement a = pli_placement_make(rows, 8, 0, 4, 0), b = pli_placement_make(rows, 8, 0, 4, 0);
        assert_int_equal(a.first, b.first);
        seen |= 1 << a.first;
    }
    assert_int_equal(seen, 15); /* small tables of different shapes spread */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense_ranges_are_even_and_complete),
        cmocka_unit_test(test_sparse_keys_are_even),
        cmocka_unit_test(test_equal_shapes_lie_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
