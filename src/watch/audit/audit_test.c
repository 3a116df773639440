/* The audit as a whole: runs in step keep every promise; a log may be judged by another promise; the first violation is
 * named. The tests beside this one show what each pass refutes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/log_by_hand.h"

static void test_lockstep_keeps_every_promise(void **state) {
    static const char *const all[] = { "bsp",     "ssp:0",       "ssp:3",           "essp:2",
                                       "asp:2:3", "async",       "bounded-delay:0", "bounded-delay:2",
                                       "vap:100", "vap:50:weak", "downpour:1:1",    "my-own:4" };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int ruled = 0; ruled < 2; ruled++) {
            maker m;
            begin(&m, all[i], ruled, false);
            in_step(&m, 6);
            proven(&m);
        }
}

static void test_bounded_delay_0_sees_no_more_than_bsp(void **state) {
    (void)state;
    for (int delay = 0; delay < 2; delay++) {
        maker m;
        begin(&m, delay ? "bounded-delay:1" : "bounded-delay:0", true, false);
        for (int32_t w = 0; w < WORKERS; w++) whole_clock(&m, w, 0);
        whole_clock(&m, 1, 1);
        get(&m, 0, 1, WORKERS + 1, 0);
        if (delay) proven(&m);
        else refuted(&m, "future", NULL);
    }
}

static void test_shared_memory_is_judged_by_no_promise(void **state) {
    const pli_event_table table = { .name = "w", .topology = "local", .consistency = "async", .rows = 100, .cols = 2,
                                    .way = PLI_WAY_SHARED };
    (void)state;
    for (int as = 0; as < 2; as++) {
        maker m;
        begin_table(&m, &table, 0);
        for (int32_t w = 0; w < WORKERS; w++) end_clock(&m, w, 0);
        end(&m);
        judge(&m, as ? "bsp" : NULL, as ? PLI_AUDIT_EMPTY : PLI_AUDIT_PROVEN, NULL, NULL);
    }
}

static void test_another_promise(void **state) {
    (void)state;
    maker m;
    begin(&m, "async", false, false);
    whole_clock(&m, 0, 0);
    get(&m, 0, 1, 1, 0);
    whole_clock(&m, 1, 0);
    whole_clock(&m, 2, 0);
    end(&m);
    judge(&m, "bsp", PLI_AUDIT_REFUTED, "staleness", "bsp promises it");

    begin(&m, "async", false, false);
    end(&m);
    judge(&m, NULL, PLI_AUDIT_EMPTY, NULL, NULL);

    begin(&m, "async", false, false);
    whole_clock(&m, 0, 0);
    judge(&m, NULL, PLI_AUDIT_CUT, NULL, NULL); /* a run that broke off */

    plait_error err = { 0 };
    pli_audit  *audit = NULL;
    assert_int_equal(pli_audit_run(NULL, "ssp", &audit, &err), PLAIT_EINVAL);
    assert_int_equal(pli_audit_run(NULL, "nonsense", &audit, &err), PLAIT_ENAME);
}

static void test_the_first_violation_is_named(void **state) {
    (void)state;
    maker m;
    begin(&m, "bsp", false, false);
    whole_clock(&m, 0, 0);
    get(&m, 1, 0, 1, 0); /* the second rank breaks it first */
    get(&m, 0, 1, 1, 0);
    whole_clock(&m, 1, 0);
    whole_clock(&m, 2, 0);
    refuted(&m, "future", "rank 1 in clock 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lockstep_keeps_every_promise),
        cmocka_unit_test(test_bounded_delay_0_sees_no_more_than_bsp),
        cmocka_unit_test(test_shared_memory_is_judged_by_no_promise),
        cmocka_unit_test(test_another_promise),
        cmocka_unit_test(test_the_first_violation_is_named),
    };
    return cmocka_run_group_tests_name("watch.audit.audit", tests, NULL, NULL);
}
