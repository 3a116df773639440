/* The audit reads promises by itself, and trusts no table of policies; but it must know each policy that comes with
 * Plait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "table/consistency/consistency.h"
#include "watch/audit/promise.h"

static void every_policy_is_a_promise(void **state) {
    (void)state;
    for (size_t i = 0; pli_consistencies()[i] != NULL; i++) {
        const plait_consistency *policy = pli_consistencies()[i];
        char                     spec[PLI_CONSISTENCY_TEXT];
        pli_promise              promise;
        pli_policy               made;
        snprintf(spec, sizeof spec, "%s", policy->name);
        for (const char *c = policy->parameters; *c != '\0'; c++)
            if (*c == ':') strcat(spec, ":2");
        assert_int_equal(pli_policy_make(spec, NULL, &made, NULL), PLAIT_OK);
        pli_policy_destroy(&made);
        assert_int_equal(pli_promise_read(spec, &promise, NULL), PLAIT_OK);
        if (!promise.known) fail_msg("the auditor does not know %s", spec);
    }
}

static void what_is_no_promise_is_told(void **state) {
    pli_promise promise;
    plait_error err = { 0 };
    (void)state;
    assert_int_equal(pli_promise_read("a-programs-own:3", &promise, &err), PLAIT_OK);
    assert_false(promise.known);
    assert_int_equal(pli_promise_read("ssp", &promise, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "ssp:S"));
    assert_int_equal(pli_promise_unknown("spp:2", &err), PLAIT_ENAME);
    assert_non_null(strstr(err.text, "ssp"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_is_a_promise),
        cmocka_unit_test(what_is_no_promise_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
