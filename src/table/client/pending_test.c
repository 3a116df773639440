/* What a failed call leaves behind in the pending updates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "table/client/pending.h"

enum { KEYS = 3000 };

/* A call that runs out of memory half-way leaves no values of an earlier clock, which were pushed already. */
static void test_a_failed_add_leaves_no_old_values(void **state) {
    (void)state;
    plait_table_opts opts;
    pli_spec         spec;
    uint64_t         keys[KEYS];
    double           old[KEYS], fives[KEYS], values[KEYS];
    int64_t          live = pli_alloc_live();
    plait_table_opts_init(&opts);
    opts.name = "s";
    opts.type = PLAIT_F64;
    assert_int_equal(pli_spec_make(0, &opts, "ps", "async", 1, NULL, &spec, NULL), PLAIT_OK);
    for (int i = 0; i < KEYS; i++) keys[i] = (uint64_t)(KEYS - i) * 7, old[i] = 7, fives[i] = 5;
    for (int64_t k = 0; k < 12; k++) {
        pli_pending pending;
        pli_pending_init(&pending, &spec, 0);
        pli_alloc_fail_after(k);
        pli_pending_add(&pending, 100, keys, old, 0, NULL);
        pli_alloc_fail_after(-1);
        pli_pending_clear(&pending); /* whether it has failed or not */
        assert_int_equal(pli_pending_add(&pending, 100, keys, old, 0, NULL), PLAIT_OK);
        pli_pending_clear(&pending);
        pli_alloc_fail_after(k);
        plait_status status = pli_pending_add(&pending, KEYS, keys, fives, 0, NULL);
        pli_alloc_fail_after(-1);
        if (status < 0) {
            assert_int_equal(pli_pending_add(&pending, 1, keys, fives, 0, NULL), PLAIT_OK);
            for (int i = 0; i < KEYS; i++) values[i] = 0;
            pli_pending_overlay(&pending, 1, KEYS, keys, values);
            assert_true(values[0] == 5 || values[0] == 10); /* part of the failed call may be there */
            for (int i = 1; i < KEYS; i++) assert_true(values[i] == 0 || values[i] == 5);
        }
        pli_pending_destroy(&pending);
    }
    assert_int_equal(pli_alloc_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_a_failed_add_leaves_no_old_values) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
