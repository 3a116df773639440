/* Properties of pairs: what the policies and topologies that come with Plait keep to, by name as contract.md has it;
 * that bounded-delay:0 has all that bsp has; and that a program's own policy has what it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table/topology/topology.h"

static plait_properties of(const char *topology, const char *consistency) {
    return pli_pair_properties(pli_topology_find(topology), consistency, NULL);
}

static bool has(const char *topology, const char *consistency, plait_properties wanted) {
    return (of(topology, consistency) & wanted) == wanted;
}

static const char *const every_policy[] = { "bsp",   "bounded-delay:0", "bounded-delay:2", "ssp:2",       "essp:2",
                                            "asp:2:4", "sequential",      "vap:0.1",         "downpour:2:2", "async",
                                            "local-sgd:2", NULL };
static const char *const every_topology[] = { "local", "ps", "allreduce", "gossip:ring", "hybrid", NULL };

static bool is_one_of(const char *name, const char *const *names) {
    for (; *names != NULL; names++)
        if (strcmp(name, *names) == 0) return true;
    return false;
}

/* Under ps exactly these policies have the property, and under gossip none has it. */
static void only(plait_properties property, const char *const *policies) {
    for (int i = 0; every_policy[i] != NULL; i++) {
        if (has("ps", every_policy[i], property) != is_one_of(every_policy[i], policies))
            fail_msg("property %#x of ps x %s", property, every_policy[i]);
        assert_false(has("gossip:ring", every_policy[i], property));
    }
}

static void test_policies_keep_what_they_promise(void **state) {
    (void)state;
    only(PLAIT_WHOLE_CLOCKS, (const char *const[]){ "bsp", "bounded-delay:0", NULL });
    only(PLAIT_SKIPS_LATE, (const char *const[]){ "bsp", "bounded-delay:0", NULL });
    only(PLAIT_BY_SUMS, (const char *const[]){ "bsp", "bounded-delay:0", "bounded-delay:2", "local-sgd:2", NULL });
    only(PLAIT_VALUES, (const char *const[]){ "sequential", "vap:0.1", NULL });
    only(PLAIT_REPLAYABLE, every_policy);
    only(PLAIT_BOUNDED_READS, (const char *const[]){ "bsp", "bounded-delay:0", "bounded-delay:2", "ssp:2", "essp:2",
                                                     "asp:2:4", "sequential", "local-sgd:2", NULL });
    only(PLAIT_HOST_SUMS, (const char *const[]){ "bsp", "bounded-delay:0", "local-sgd:2", NULL });
}

static void test_bounded_delay_0_is_bsp(void **state) {
    (void)state;
    for (int t = 0; every_topology[t] != NULL; t++)
        assert_int_equal(of(every_topology[t], "bounded-delay:0"), of(every_topology[t], "bsp"));
}

static void test_topologies_give_what_they_have(void **state) {
    (void)state;
    for (int i = 0; every_policy[i] != NULL; i++) {
        const char *policy = every_policy[i];
        const bool  averages = strncmp(policy, "local-sgd", 9) == 0;
        assert_int_equal(has("ps", policy, PLAIT_ONE_COPY), !averages);
        assert_int_equal(has("allreduce", policy, PLAIT_MOMENTS), !averages);
        assert_int_equal(has("local", policy, PLAIT_MOMENTS), !averages && strcmp(policy, "async") != 0);
        assert_false(has("gossip:exp", policy, PLAIT_ONE_COPY));
        assert_false(has("allreduce", policy, PLAIT_OWNERS));
        assert_false(has("allreduce", policy, PLAIT_LEAVING));
        assert_false(has("local", policy, PLAIT_MESSAGES));
        assert_false(has("local", policy, PLAIT_REPLAYABLE));
        assert_true(has("allreduce", policy, PLAIT_HOST_SUMS));
        assert_int_equal(of("hybrid", policy), of("ps", policy) & of("allreduce", policy));
    }
    assert_int_equal(of("ps", "ssp:-1"), 0);
    assert_int_equal(of("ps", "none"), 0);
}

static plait_status own_parse(void *state, const char *parameters, const plait_setting *setting, plait_error *err) {
    return (void)state, (void)parameters, (void)setting, (void)err, PLAIT_OK;
}
static plait_properties own_promises(const void *state) { return (void)state, PLAIT_BOUNDED_READS | PLAIT_REPLAYABLE; }

static void test_own_policies_have_what_they_say(void **state) {
    (void)state;
    plait_consistency own[] = { { .name = "mine", .parse = own_parse, .promises = own_promises },
                                { .name = "mute", .parse = own_parse } };
    const pli_scope   scope = { .own = own, .n_own = 2 };
    const plait_properties of_ps = of("ps", "async") & ~(plait_properties)(PLAIT_REPLAYABLE | PLAIT_ANY_READ);
    assert_int_equal(pli_pair_properties(pli_topology_find("ps"), "mute", &scope), of_ps);
    assert_int_equal(pli_pair_properties(pli_topology_find("ps"), "mine", &scope),
                     of_ps | PLAIT_BOUNDED_READS | PLAIT_REPLAYABLE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policies_keep_what_they_promise),
        cmocka_unit_test(test_bounded_delay_0_is_bsp),
        cmocka_unit_test(test_topologies_give_what_they_have),
        cmocka_unit_test(test_own_policies_have_what_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
