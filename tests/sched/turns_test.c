/* Turns of many drawn schedules over threads: rotation under every bound that promises it, and variables with an owner
 * each, by leases or without. The audit proves each from its keys, all workers plan alike, and nothing that was
 * pushed is lost. In rotation a worker has had each block once in as many steps as there are blocks. PLAIT_SEED=N tries
 * one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "program.h"

enum { RUNS = 60, RUNS_FULL = 1000, ROUNDS = 2 };

/* The next worker has a block floor(P / W) steps later, and may not miss what was pushed until then. */
static void draw_rotation(program *p, pli_random *r) {
    static const char *const bounds[] = { "bsp", "ssp:1", "essp:1", "ssp:2" };
    static const int         stale[] = { 0, 1, 1, 2 };
    const int                at = (int)pli_random_below(r, 4);
    p->order = "rotate";
    p->consistency = bounds[at];
    p->topology = at == 0 && pli_random_below(r, 2) == 0 ? "allreduce" : "ps";
    p->variables = p->workers * (stale[at] + 1) + (int64_t)pli_random_below(r, 6);
    p->steps = ROUNDS * p->variables;
}

static void draw_owned(program *p, pli_random *r) {
    static const char *const orders[] = { "round-robin", "random", "priority" };
    p->order = orders[pli_random_below(r, 3)];
    p->consistency = "bsp";
    p->topology = pli_random_below(r, 2) == 0 ? "allreduce" : "ps";
    p->variables = 20 + (int64_t)pli_random_below(r, 40);
    p->take = p->workers + (int64_t)pli_random_below(r, 8);
    p->steps = 30;
    p->near = (int)pli_random_below(r, 3);
    p->leases = pli_random_below(r, 2) == 0;
}

static void draw(program *p, uint64_t seed) {
    pli_random r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 25, 0);
    *p = (program){ .transport = "threads", .workers = 2 + (int32_t)pli_random_below(&r, 4) };
    if (pli_random_below(&r, 2) == 0) draw_rotation(p, &r);
    else draw_owned(p, &r);
}

/* why [200]: what is wrong with the blocks that workers have had, or "". */
static void judge_rotation(const program *p, char *why) {
    for (int32_t w = 0; w < p->workers; w++)
        for (int64_t b = 0; b < p->variables; b++)
            if (p->had[w][b] != ROUNDS)
                snprintf(why, 200, "worker %d has had block %lld %lld times in %d rounds", (int)w, (long long)b,
                         (long long)p->had[w][b], (int)ROUNDS);
}

static void test_every_drawn_schedule(void **state) {
    const char   *given = getenv("PLAIT_SEED");
    const int64_t runs = given != NULL ? 1 : getenv("PLAIT_TEST_FULL") != NULL ? RUNS_FULL : RUNS;
    (void)state;
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t     seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)i + 1;
        program            p;
        pli_schedule_proof proof = { 0 };
        plait_error        err = { 0 };
        char               why[200] = "";
        draw(&p, seed);
        if (play(&p, &proof, &err) < 0) snprintf(why, sizeof why, "%.190s", err.text);
        else if (proof.verdict != PLI_AUDIT_PROVEN) snprintf(why, sizeof why, "%.190s", proof.first.text);
        else if (proof.steps != p.steps || proof.variables != p.updates) snprintf(why, sizeof why, "a step is missing");
        else if (strcmp(p.order, "rotate") == 0) judge_rotation(&p, why);
        if (why[0] != '\0')
            fail_msg("PLAIT_SEED=%llu (%s under %s over %s, %d workers, %lld variables, near %d, leases %d): %s",
                     (unsigned long long)seed, p.order, p.consistency, p.topology, (int)p.workers,
                     (long long)p.variables, p.near, p.leases, why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_drawn_schedule) };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0; /* 1: a mistake is refuted (mutants.sh) */
}
