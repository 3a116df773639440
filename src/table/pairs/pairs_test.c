/* Every setting is tried beside every other, under every pair. A refusal says what, why and what to take instead, in
 * words of the run. What is refused stays refused whatever is set besides. Learners are asked what they need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table/pairs/facts.h"

static const char *const topologies[] = { "local", "ps", "allreduce", "hybrid", "gossip:ring" };
static const char *const policies[] = { "bsp",     "bounded-delay:0", "bounded-delay:2", "ssp:2",        "essp:2",
                                        "asp:2:4", "sequential",      "vap:0.1",         "downpour:2:2", "local-sgd:2",
                                        "async" };
enum { TOPOLOGIES = sizeof topologies / sizeof *topologies, POLICIES = sizeof policies / sizeof *policies };

static const pli_demand lbfgs = { .who = "lbfgs",
                                  .needs = PLAIT_WHOLE_CLOCKS | PLAIT_ONE_COPY,
                                  .why = "it compares",
                                  .traits = PLAIT_ALL_ROWS | PLAIT_OWN_STEPS | PLAIT_OWN_END |
                                            PLAIT_COMPARES | PLAIT_SMOOTH };

static plait_status check(const char *topology, const char *consistency, bool threads, const pli_setting *a,
                          const pli_setting *b, const pli_demand *demand, plait_error *err) {
    pli_above above = { .model = "logistic", .instead = "adagrad" };
    pli_pair  pair = { .topology = topology, .consistency = consistency, .table = "w", .one_process = threads,
                       .rule = "adagrad", .servers = 2, .above = &above };
    if (demand != NULL) above.demand[1] = *demand;
    if (a != NULL) a->turn_on(&pair, &above);
    if (b != NULL) b->turn_on(&pair, &above);
    return pli_pair_check(&pair, err);
}

/* "WHAT is refused: WHY; REMEDY", with no word left in braces. */
static void assert_well_said(const plait_error *err) {
    const char *refused = strstr(err->text, " refused");
    if (err->code != PLAIT_EREFUSED || refused == NULL || strstr(refused, ": ") == NULL ||
        strstr(refused, "; ") == NULL || strpbrk(err->text, "{}") != NULL || strstr(err->text, "  ") != NULL ||
        strstr(err->text, " ,") != NULL)
        fail_msg("%s", err->text);
}

static void test_refusals_are_well_said(void **state) {
    (void)state;
    for (const pli_setting *a = pli_settings(); a->name != NULL; a++)
        for (const pli_setting *b = pli_settings(); b->name != NULL; b++)
            for (int i = 0; i < TOPOLOGIES * POLICIES * 4; i++) {
                plait_error err = { .code = PLAIT_OK };
                const char *topology = topologies[i / 4 % TOPOLOGIES], *policy = policies[i / 4 / TOPOLOGIES];
                if (check(topology, policy, (i & 1) != 0, a, b, (i & 2) != 0 ? &lbfgs : NULL, &err) < 0)
                    assert_well_said(&err);
            }
}

static void test_more_settings_allow_no_more(void **state) {
    (void)state;
    for (const pli_setting *a = pli_settings(); a->name != NULL; a++)
        for (const pli_setting *b = pli_settings(); b->name != NULL; b++)
            for (int i = 0; i < TOPOLOGIES * POLICIES; i++) {
                const char *topology = topologies[i % TOPOLOGIES], *policy = policies[i / TOPOLOGIES];
                const bool  implied = strstr(b->name, "net") != NULL || strstr(b->name, "kernels") != NULL ||
                                     strstr(b->name, "filter") != NULL || strstr(b->name, "values") != NULL;
                if (!implied && check(topology, policy, true, a, NULL, NULL, NULL) < 0 &&
                    check(topology, policy, true, a, b, NULL, NULL) >= 0)
                    fail_msg("%s x %s: %s goes with %s, and not without", topology, policy, a->name, b->name);
            }
}

static void refused(const char *topology, const char *policy, const pli_demand *demand, const char *part) {
    plait_error err = { .code = PLAIT_OK };
    assert_int_equal(check(topology, policy, true, NULL, NULL, demand, &err), PLAIT_EREFUSED);
    if (strstr(err.text, part) == NULL) fail_msg("'%s' does not say '%s'", err.text, part);
}

static void test_learners_are_asked_for_what_they_need(void **state) {
    (void)state;
    const pli_demand whole = { .who = "model", .name = "kmeans", .needs = PLAIT_WHOLE_CLOCKS };
    const pli_demand one = { .who = "model", .name = "bayes", .needs = PLAIT_ONE_COPY };
    assert_int_equal(check("ps", "bsp", true, NULL, NULL, &whole, NULL), PLAIT_OK);
    assert_int_equal(check("ps", "bounded-delay:0", true, NULL, NULL, &whole, NULL), PLAIT_OK);
    assert_int_equal(check("ps", "async", true, NULL, NULL, &one, NULL), PLAIT_OK);
    refused("ps", "ssp:2", &whole, "model kmeans with consistency ssp:2 is refused: it needs reads that hold all");
    refused("ps", "ssp:2", &whole, "; the nearest is bsp");
    refused("gossip:ring", "bsp", &whole, "model kmeans with topology gossip:ring is refused");
    refused("ps", "local-sgd:2", &one, "the nearest is bsp");
    refused("gossip:ring", "async", &one, "the nearest is ps");
    refused("ps", "ssp:2", &lbfgs, "lbfgs with consistency ssp:2 is refused: it compares; the nearest is bsp");
}

static void test_a_table_is_told_apart(void **state) {
    (void)state;
    plait_error     err;
    const pli_above above = { .model = "logistic", .checkpoint = true, .standard_input = true };
    pli_pair pair = { .topology = "allreduce", .consistency = "ssp:2", .table = "w", .rule = "sgd", .apart = true };
    assert_int_equal(pli_pair_check(&pair, &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "table w: topology allreduce x ssp:2 is refused"));
    pair.above = &above;
    assert_int_equal(pli_pair_check(&pair, &err), PLAIT_EREFUSED); /* of the run, whatever the table */
    assert_ptr_equal(strstr(err.text, "a checkpoint with data from standard input is refused"), err.text);
    pair = (pli_pair){ .above = &above, .logged = true };
    assert_int_equal(pli_job_check(&pair, &err), PLAIT_EREFUSED);
    const pli_above resumed = { .resume = true, .standard_input = true };
    pair.above = &resumed;
    assert_int_equal(pli_job_check(&pair, &err), PLAIT_EREFUSED);
    assert_ptr_equal(strstr(err.text, "a resumed run with data from standard input is refused"), err.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals_are_well_said),
        cmocka_unit_test(test_more_settings_allow_no_more),
        cmocka_unit_test(test_learners_are_asked_for_what_they_need),
        cmocka_unit_test(test_a_table_is_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
