/* Schedules over threads: each order under each topology makes the same plans on every worker, takes only what the
 * conflict function allows, and the audit proves it from the keys; a conflict function that is wrong is refuted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "program.h"

static const program usual = { .transport = "threads", .topology = "ps", .consistency = "bsp", .workers = 3,
                               .variables = 40, .take = 6, .steps = 30 };

static pli_schedule_proof sure(program *p) {
    pli_schedule_proof proof = { 0 };
    plait_error        err = { 0 };
    if (play(p, &proof, &err) < 0)
        fail_msg("%s, %s x %s, %d workers: %s", p->order, p->topology, p->consistency, p->workers, err.text);
    return proof;
}

static void test_every_order_under_every_topology(void **state) {
    static const char *const orders[] = { "round-robin", "random", "priority", "rotate" };
    static const char *const topologies[] = { "local", "ps", "allreduce", "hybrid" };
    (void)state;
    for (size_t o = 0; o < 4; o++)
        for (size_t t = 0; t < 4; t++)
            for (int near = 0; near < 3; near += 2)
                for (int each = 0; each < 2 - (o == 3); each++) {
                    program p = usual;
                    p.order = orders[o];
                    p.topology = topologies[t];
                    p.each = each;
                    p.near = o == 3 ? 0 : near;
                    p.leases = o < 3 && !each && t % 2 == 0; /* with them nothing conflicts either */
                    const pli_schedule_proof proof = sure(&p);
                    if (proof.verdict != PLI_AUDIT_PROVEN)
                        fail_msg("%s over %s, each %d: %s", p.order, p.topology, each, proof.first.text);
                    assert_int_equal(proof.steps, p.steps);
                    assert_int_equal(proof.variables, p.updates * (each ? p.workers : 1));
                    assert_true(p.updates >= p.steps && p.updates <= p.steps * (o == 3 ? 3 : 6));
                    if (each) assert_true(p.hash[0] == p.hash[1] && p.hash[1] == p.hash[2]);
                }
}

/* The plan does not depend on how the bytes travel. */
static void test_plans_are_those_of_the_seed(void **state) {
    static const char *const orders[] = { "round-robin", "random", "priority" };
    (void)state;
    for (size_t o = 0; o < 3; o++) {
        program first = usual, again = usual;
        first.order = again.order = orders[o];
        first.near = again.near = 2;
        again.topology = "allreduce";
        (void)sure(&first);
        (void)sure(&again);
        assert_memory_equal(first.hash, again.hash, sizeof first.hash);
    }
}

static void test_rotation_under_stale_reads(void **state) {
    static const struct {
        const char *consistency;
        int64_t     blocks;
        bool        proven;
    } cases[] = { { "ssp:1", 6, true }, { "ssp:2", 9, true }, { "ssp:2", 6, false }, { "essp:1", 6, true },
                  { "async", 3, true } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program p = usual;
        p.order = "rotate";
        p.consistency = cases[i].consistency;
        p.variables = cases[i].blocks;
        const pli_schedule_proof proof = sure(&p);
        if ((proof.verdict == PLI_AUDIT_PROVEN) != cases[i].proven)
            fail_msg("%s, %lld blocks: %s", p.consistency, (long long)p.variables, proof.first.text);
    }
}

/* Each worker has had each block once in as many steps as there are blocks. */
static void test_the_ring(void **state) {
    (void)state;
    for (int32_t workers = 1; workers <= 7; workers++)
        for (int64_t blocks = workers; blocks <= 20; blocks++) {
            int had[7][20] = { { 0 } };
            for (int64_t step = 0; step < blocks; step++) {
                int owners = 0;
                for (int64_t b = 0; b < blocks; b++) {
                    const int32_t w = plait_schedule_owner(blocks, workers, step + 3 * blocks, b);
                    if (w < 0) continue;
                    had[w][b]++;
                    owners++;
                }
                assert_int_equal(owners, workers);
            }
            for (int32_t w = 0; w < workers; w++)
                for (int64_t b = 0; b < blocks; b++) assert_int_equal(had[w][b], 1);
        }
    assert_int_equal(plait_schedule_owner(3, 4, 0, 0), -1);
    assert_int_equal(plait_schedule_owner(3, 3, 0, 3), -1);
}

/* The conflict function says that neighbours alone conflict, but the next ones do as well. */
static void test_a_wrong_conflict_function_is_refuted(void **state) {
    (void)state;
    for (int each = 0; each < 2; each++) {
        program p = usual;
        p.order = "random";
        p.near = 1;
        p.truly = 2;
        p.each = each;
        const pli_schedule_proof proof = sure(&p);
        assert_int_equal(proof.verdict, PLI_AUDIT_REFUTED);
        assert_string_equal(proof.first.rule, "conflict");
    }
}

/* A pair is asked for once, as long as the cache has room. */
static void test_pairs_are_asked_for_once(void **state) {
    (void)state;
    program p = usual;
    p.order = "random";
    p.each = 1;
    p.near = 1;
    p.steps = 300;
    p.cache = 1 << 20;
    (void)sure(&p);
    assert_true(p.asked <= p.variables * (p.variables - 1) / 2);
    const int64_t with = p.asked;
    p.cache = 1;
    (void)sure(&p);
    assert_true(p.asked > 20 * with);
}

static void test_priority_prefers_what_changes(void **state) {
    (void)state;
    for (int each = 0; each < 2; each++) {
        program p = usual, q = usual;
        p.order = "priority";
        p.each = q.each = each;
        p.steps = q.steps = 200;
        p.take = q.take = 3;
        q.order = "random";
        (void)sure(&p);
        (void)sure(&q);
        assert_true(p.updates == q.updates && memcmp(p.hash, q.hash, sizeof p.hash) != 0);
    }
}

static void test_changes_that_differ_are_found(void **state) {
    program            p = usual;
    pli_schedule_proof proof;
    plait_error        err = { 0 };
    (void)state;
    p.order = "priority";
    p.each = 1;
    p.astray = 2;
    assert_int_equal(play(&p, &proof, &err), PLAIT_EMISMATCH);
    assert_non_null(strstr(err.text, "worker 2 has made other plans than worker 0"));
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void refused(program p, plait_status status, const char *text) {
    pli_schedule_proof proof;
    plait_error        err = { 0 };
    const plait_status was = play(&p, &proof, &err);
    if (was != status || strstr(err.text, text) == NULL) fail_msg("%d: %s", (int)was, err.text);
}

static void test_what_does_not_go_together(void **state) {
    program p = usual;
    (void)state;
    p.order = "priorty";
    refused(p, PLAIT_ENAME, "priority");
    p.order = "priority";
    p.consistency = "ssp:1";
    refused(p, PLAIT_EREFUSED, "nearest is bsp");
    p.order = "random";
    p.each = 1;
    refused(p, PLAIT_EREFUSED, "`each` needs the same values");
    p.leases = 1;
    refused(p, PLAIT_EREFUSED, "leases with `each`");
    p.each = 0;
    refused(p, PLAIT_EREFUSED, "a lease by speed needs the same values");
    p.order = "rotate";
    refused(p, PLAIT_EREFUSED, "leases with order rotate");
    p = usual;
    p.order = "rotate";
    p.variables = 2;
    refused(p, PLAIT_EINVAL, "2 blocks cannot rotate over 3 workers");
    p.variables = 9;
    p.each = 1;
    refused(p, PLAIT_EINVAL, "does not go with it");
    p = usual;
    p.variables = 0;
    p.order = "random";
    p.allowed = -1;
    p.variables = 4;
    refused(p, PLAIT_EINVAL, "allowed -1");
    plait_schedule *none = NULL;
    plait_schedule_destroy(&none);
    assert_int_equal(plait_schedule_step(NULL), PLAIT_EINVAL);
    assert_int_equal(plait_schedule_agree(NULL), PLAIT_EINVAL);
    assert_int_equal(plait_schedule_set(NULL, 0, 0), PLAIT_EINVAL);
}

/* Else steps that the schedule takes one after another could miss each other. */
static void test_a_table_may_not_promise_less_than_its_job(void **state) {
    static const struct {
        const char *job, *table;
        bool        good;
    } cases[] = { { "bsp", "ssp:2", false },   { "bsp", "async", false },  { "ssp:1", "ssp:2", false },
                  { "ssp:2", "async", false }, { "ssp:2", "ssp:1", true }, { "ssp:2", "bsp", true },
                  { "async", "ssp:2", true },  { "bsp", "bounded-delay:0", true } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int late = 0; late < 2; late++) {
            program            p = usual;
            pli_schedule_proof proof;
            plait_error        err = { 0 };
            p.order = "rotate";
            p.variables = 12;
            p.consistency = cases[i].job;
            p.own = cases[i].table;
            p.late = late;
            const plait_status was = play(&p, &proof, &err);
            const bool         refused = was == PLAIT_EREFUSED && strstr(err.text, "over table w") != NULL;
            const bool         right = cases[i].good ? was == PLAIT_OK : refused;
            if (!right) fail_msg("%s in %s, late %d: %d %s", p.own, p.consistency, late, (int)was, err.text);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_order_under_every_topology),
        cmocka_unit_test(test_plans_are_those_of_the_seed),
        cmocka_unit_test(test_rotation_under_stale_reads),
        cmocka_unit_test(test_the_ring),
        cmocka_unit_test(test_a_wrong_conflict_function_is_refuted),
        cmocka_unit_test(test_pairs_are_asked_for_once),
        cmocka_unit_test(test_priority_prefers_what_changes),
        cmocka_unit_test(test_changes_that_differ_are_found),
        cmocka_unit_test(test_what_does_not_go_together),
        cmocka_unit_test(test_a_table_may_not_promise_less_than_its_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
