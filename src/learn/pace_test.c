/* Whether the workers ran together, from the order in which they told that they were far and at the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "learn/run.h"

enum { F = 1, E = 2 };

static void test_order_tells(void **state) {
    (void)state;
    assert_false(pli_pace_apart((const int32_t[]){ F, F, F, E, E, E }, 6));
    assert_true(pli_pace_apart((const int32_t[]){ F, E, F, E }, 4));
    assert_true(pli_pace_apart((const int32_t[]){ F, F, E, F, E, E }, 6));
    assert_false(pli_pace_apart((const int32_t[]){ F, E }, 2));
    assert_false(pli_pace_apart(NULL, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_order_tells) };
    return cmocka_run_group_tests_name("learn.pace", tests, NULL, NULL);
}
