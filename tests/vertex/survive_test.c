/* Vertex programs in jobs with two replicas (stories.h): a rank dies at any moment of another's, in half of the runs
 * with many ranks a second one some supersteps later, and the others end with what a run in which nobody died ends
 * with: the same values, bit for bit (over a vertex cut, where a plain sum may be added up in another order, within
 * 1e-12), the same number of supersteps, the same number of updates. A failing seed is replayed by PLAIT_SEED=seed;
 * PLAIT_SCHEDULES=n runs n of them.
 *
 * Under the asynchronous engine there is no one order of updates: monotone programs come to the same values, ranks to
 * the same within 1e-9, and tokens that vertices change with each other are all there, once, each vertex having
 * changed its own as often as it should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stories.h"

static void tell_failure(const story *s, const char *what) {
    fail_msg("%s: %s, %s over %s, %d workers, %d servers, rank %d dies at call %lld of rank %d, rank %d later\n"
             "replay: PLAIT_SEED=%llu test_vertex_survive", what, s->program, s->engine != NULL ? s->engine : "sync",
             s->cut_by, (int)s->workers, (int)s->servers, (int)s->victim, (long long)s->at, (int)s->killer,
             (int)s->second, (unsigned long long)s->seed);
}

/* Is each token there once, and has each vertex changed its own as often as it should? */
static bool are_tokens(const int64_t *value) {
    bool there[N] = { false };
    for (int v = 0; v < N; v++) {
        const int64_t *of = value + 2 * v;
        if (of[0] < 0 || of[0] >= N || there[of[0]] || of[1] != TIMES) return false;
        there[of[0]] = true;
    }
    return true;
}

/* Are these the values of the run in which nobody died? Asynchronous ranks come to them up to the tolerance. */
static bool are_same(const story *s, const int64_t *value, const int64_t *wanted) {
    const bool   shared = !pli_is(s->cut_by, "range") && s->of.apply != NULL;
    const size_t bytes = (s->of.type == PLAIT_F32 ? 4U : 8U) * (size_t)(s->of.values > 0 ? s->of.values : 1);
    const bool   stale = s->engine != NULL && s->of.apply != NULL;
    if (pli_is(s->program, "tokens")) return are_tokens(value);
    if (!shared && !stale) return memcmp(value, wanted, N * bytes) == 0;
    for (int v = 0; v < N; v++)
        if (!(fabs(double_of(value[v]) - double_of(wanted[v])) < (stale ? 1e-9 : 1e-12))) return false;
    return true;
}

/* By which the bits of all weights show. */
static double loss_of(const story *s) { return ((const pli_gcn_data *)s->choice.own)->loss; }

static void judge(const story *s, const story *straight) {
    if (pli_is(s->program, "gcn") && !(fabs(loss_of(s) - loss_of(straight)) < 1e-12)) tell_failure(s, "another loss");
    for (int32_t w = 0; w < s->workers; w++) {
        if (!s->has_ended[w]) continue;
        if (!are_same(s, s->value[w], straight->value[0])) tell_failure(s, "other values");
        if (s->engine != NULL && s->report[w].still) continue;
        if (s->report[w].supersteps != straight->report[0].supersteps ||
            s->report[w].still != straight->report[0].still ||
            s->report[w].stopped != straight->report[0].stopped ||
            s->report[w].updates != straight->report[0].updates)
            tell_failure(s, "another number of supersteps or updates");
    }
}

static void test_any_one_may_die(void **state) {
    const int64_t runs = runs_of(150, 2000);
    int64_t       deaths = 0;
    plait_error   err;
    (void)state;
    for (int64_t i = 0; i < runs; i++) {
        story *straight = calloc(1, sizeof *straight), *s = calloc(1, sizeof *s);
        assert_non_null(straight);
        assert_non_null(s);
        s->seed = straight->seed = seed_of(i);
        draw(straight);
        draw(s);
        if (live(straight, &err) < 0) tell_failure(straight, err.text);
        pli_random r = pli_random_at(s->seed, PLI_RANDOM_SCHEDULE, 7, 0);
        const int64_t calls = atomic_load(&straight->calls);
        s->delay = pli_random_below(&r, 2) == 0 ? 0 : (int64_t)pli_random_below(&r, 1 << pli_random_below(&r, 16));
        s->at = calls > 0 ? 1 + (int64_t)pli_random_below(&r, (uint64_t)calls) : 0;
        if (live(s, &err) < 0) tell_failure(s, err.text);
        const int lost = s->workers - atomic_load(&s->ended);
        if (lost > 2 || (lost > 1 && s->second < 0) || !s->has_ended[s->killer]) tell_failure(s, "too few ended");
        judge(s, straight);
        deaths += lost;
        free_story(straight);
        free_story(s);
    }
    if (runs > 1) assert_true(deaths > runs / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_any_one_may_die) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
