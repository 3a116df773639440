/* Value bounds: which updates count as unseen, and from when on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/log_by_hand.h"

static void test_values(void **state) {
    (void)state;
    for (int weak = 0; weak < 2; weak++) { /* two workers with 3 each: 6 in all */
        maker m;
        begin(&m, weak ? "vap:4:weak" : "vap:4", true, false);
        inc_norm(&m, 1, 3);
        inc_norm(&m, 2, 3);
        for (int32_t w = 1; w < WORKERS; w++) get(&m, w, 0, 0, 0); /* so their incs have returned */
        get_full(&m, 0, 0, (pli_event_piece){ .shard = 0, .rows = 4 }, 0, m.now_ns + 1);
        push(&m, 1, 0);
        push(&m, 2, 0);
        apply_all(&m, 1, 0);
        apply_all(&m, 2, 0);
        if (weak) proven(&m);
        else refuted(&m, "values", "misses updates of norm 6");
    }
    maker m;
    begin(&m, "vap:4", true, false);
    get_full(&m, 0, 0, (pli_event_piece){ .shard = 0, .rows = 4 }, 0, 1);
    inc_norm(&m, 1, 3);
    push(&m, 1, 0);
    apply_all(&m, 1, 0);
    inc_norm(&m, 2, 3);
    get_full(&m, 0, 0, (pli_event_piece){ .shard = 0, .version = 1, .rows = 4 }, 0, 0); /* 3 is in it, 3 are not */
    push(&m, 2, 0);
    apply_all(&m, 2, 0);
    proven(&m);
}

/* What is accepted within a worker's share of the bound counts from then on, though its worker does nothing else for
 * long. */
static void test_incs_return_at_once(void **state) {
    (void)state;
    for (int small = 0; small < 2; small++) {
        maker m;
        begin(&m, "vap:4", true, false);
        for (int32_t w = 1; w < WORKERS; w++)
            for (int i = 0; i <= small; i++) inc_norm(&m, w, small ? 1.5 : 3); /* one of 3 may wait until it is
                                                                                  applied */
        get_full(&m, 0, 0, (pli_event_piece){ .shard = 0, .rows = 4 }, 0, m.now_ns + 1);
        for (int32_t w = 1; w < WORKERS; w++) push(&m, w, 0), apply_all(&m, w, 0);
        if (small) refuted(&m, "values", "misses updates of norm 6");
        else proven(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_incs_return_at_once),
    };
    return cmocka_run_group_tests_name("watch.audit.values", tests, NULL, NULL);
}
