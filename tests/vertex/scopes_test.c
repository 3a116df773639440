/* The audit of scopes against the engine: runs of the asynchronous engine, drawn by a seed, in two thirds of which
 * ranks die (stories.h), are proven from their event logs alone: under their own scope, and so under every weaker
 * one. What a stronger scope promises they are refuted for, with the vertex and the workers.
 *
 * PLAIT_JUDGE=audit: runs until the audit refutes one, and ends with 4 (tests/audit/mutants.sh, which plants
 * mistakes). A failing seed is replayed by PLAIT_SEED=seed; PLAIT_SCHEDULES=n runs n of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "stories.h"
#include "watch/audit/scopes.h"

static const char *const scopes[] = { "vertex", "edge", "full" };

static int number_of(const char *scope) {
    int k = 0;
    while (strcmp(scopes[k], scope) != 0) k++;
    return k;
}

/* Where the log of this process lies. */
static const char *path(void) {
    static char text[64];
    if (text[0] == '\0') snprintf(text, sizeof text, "vertex_scopes.%d.events", (int)getpid());
    return text;
}

/* A run of the asynchronous engine, with its log. A run that fails leaves a log, too. */
static story *run_seed(uint64_t seed, plait_status *status_out, plait_error *err) {
    pli_eventlog *log = NULL;
    story        *s = calloc(1, sizeof *s);
    pli_random    r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 8, 0);
    assert_non_null(s);
    s->seed = seed;
    s->asynchronous = true;
    draw(s);
    s->at = pli_random_below(&r, 3) == 0 ? 0 : 1 + (int64_t)pli_random_below(&r, 3 * N);
    s->delay = pli_random_below(&r, 2) == 0 ? 0 : (int64_t)pli_random_below(&r, 1 << pli_random_below(&r, 16));
    assert_int_equal(pli_eventlog_open(path(), s->workers + s->servers, "0123456789abcdef", NULL, NULL, &log, err),
                     PLAIT_OK);
    s->events = pli_eventlog_sink(log);
    *status_out = live(s, err);
    assert_int_equal(pli_eventlog_close(&log, err), PLAIT_OK);
    return s;
}

static void audit(const char *as, pli_scopes_proof *proof) {
    const char  *one = path();
    pli_logfile *file = NULL;
    plait_error  err;
    if (pli_logfile_open(&one, 1, &file, &err) < 0 || pli_scopes_prove(file, as, proof, &err) < 0)
        fail_msg("%s", err.text);
    pli_logfile_close(&file);
}

static void test_runs_are_proven(void **state) {
    const int64_t runs = runs_of(60, 1000);
    int64_t       deaths = 0, stronger = 0;
    (void)state;
    for (int64_t i = 0; i < runs; i++) {
        pli_scopes_proof proof;
        plait_error      err;
        plait_status     status;
        story           *s = run_seed(seed_of(i), &status, &err);
        if (status < 0) fail_msg("PLAIT_SEED=%llu: %s", (unsigned long long)s->seed, err.text);
        for (int k = 2; k >= 0; k--) {
            const bool promised = k <= number_of(s->scope);
            audit(scopes[k], &proof);
            if (promised && proof.verdict != PLI_AUDIT_PROVEN)
                fail_msg("%s under %s, judged as %s: verdict %d (%s): %s\nPLAIT_SEED=%llu test_vertex_scopes",
                         s->program, s->scope, scopes[k], (int)proof.verdict, proof.first.rule, proof.first.text,
                         (unsigned long long)s->seed);
            if (promised) continue;
            assert_int_equal(proof.verdict, PLI_AUDIT_REFUTED);
            assert_string_equal(proof.first.rule, "lock");
            assert_true(proof.first.rank >= 0 && proof.other >= 0);
            stronger++;
        }
        assert_true(proof.updates > 0 && proof.workers >= 2);
        deaths += proof.deaths > 0;
        free_story(s);
    }
    unlink(path());
    if (runs > 1) assert_true(deaths > runs / 4 && stronger > runs / 4);
}

/* As mutants.sh has it. */
static int find_mistake(void) {
    const int64_t runs = runs_of(60, 1000);
    int           code = 0;
    for (int64_t i = 0; i < runs && code == 0; i++) {
        pli_scopes_proof proof;
        plait_error      err;
        plait_status     status;
        story           *s = run_seed(seed_of(i), &status, &err);
        audit(NULL, &proof);
        if (proof.verdict == PLI_AUDIT_REFUTED) {
            printf("refuted (%s): %s; PLAIT_SEED=%llu test_vertex_scopes\n", proof.first.rule, proof.first.text,
                   (unsigned long long)s->seed);
            code = 4;
        }
        free_story(s);
    }
    unlink(path());
    return code;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_runs_are_proven) };
    if (getenv("PLAIT_JUDGE") != NULL && strcmp(getenv("PLAIT_JUDGE"), "audit") == 0) return find_mistake();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
