/* Tests of pipelines in simulated time: ranks follow their schedules, and a piece begins when its rank is free and its
 * input has come. A backward piece takes twice as long as a forward one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "graph/pipeline.h"

#include <cmocka.h>

enum { RANKS = 8, PARTS = 32, BATCHES = 64 };

typedef struct simulated {
    double  makespan, share; /* share of all ranks' time in which they worked */
    int32_t peak[RANKS];
    int32_t backward_in_order; /* 1: each part did its backward pieces in the order of the micro-batches */
} simulated;

static simulated simulate(const char *schedule, int32_t ranks, int32_t chunks, int32_t batches) {
    static double forward[PARTS][BATCHES], backward[PARTS][BATCHES]; /* when a piece ended; < 0: not yet */
    pli_pipeline  p[RANKS];
    double        free_at[RANKS] = { 0 }, worked = 0;
    int32_t       parts = ranks * chunks, next[PARTS] = { 0 }, under_way[RANKS] = { 0 };
    simulated     s = { .backward_in_order = 1 };
    for (int32_t r = 0; r < ranks; r++)
        assert_int_equal(pli_pipeline_init(&p[r], schedule, ranks, chunks, batches, r, NULL), PLAIT_OK);
    for (int32_t k = 0; k < parts; k++)
        for (int32_t m = 0; m < batches; m++) forward[k][m] = backward[k][m] = -1;
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t r = 0; r < ranks; r++) {
            pli_pipeline_work w;
            if (!pli_pipeline_next(&p[r], &w)) continue;
            assert_int_equal(w.part % ranks, r);
            const int32_t last = w.part == parts - 1;
            double        ready = 0;
            if (!w.backward && w.part > 0) ready = forward[w.part - 1][w.micro_batch];
            if (w.backward) ready = last ? forward[w.part][w.micro_batch] : backward[w.part + 1][w.micro_batch];
            if (ready < 0) continue;
            double *done = w.backward ? &backward[w.part][w.micro_batch] : &forward[w.part][w.micro_batch];
            assert_true(*done < 0); /* each piece once */
            if (w.backward) assert_true(forward[w.part][w.micro_batch] >= 0);
            if (w.backward && next[w.part]++ != w.micro_batch) s.backward_in_order = 0;
            const double length = (w.backward ? 2.0 : 1.0) / chunks;
            *done = free_at[r] = (free_at[r] > ready ? free_at[r] : ready) + length;
            worked += length;
            under_way[r] += w.backward ? -1 : 1;
            if (under_way[r] > s.peak[r]) s.peak[r] = under_way[r];
            pli_pipeline_done(&p[r]);
            moved = true;
        }
    }
    for (int32_t r = 0; r < ranks; r++) {
        pli_pipeline_work w;
        assert_false(pli_pipeline_next(&p[r], &w)); /* or the schedule waits for itself */
        assert_int_equal(under_way[r], 0);
        if (free_at[r] > s.makespan) s.makespan = free_at[r];
    }
    for (int32_t k = 0; k < parts; k++)
        for (int32_t m = 0; m < batches; m++) assert_true(backward[k][m] > 0);
    s.share = worked / (ranks * s.makespan);
    return s;
}

/* 4 equal stages reach at least 0.95 of m / (m + p - 1). */
static void test_four_stages(void **state) {
    (void)state;
    for (int32_t m = 4; m <= BATCHES; m += 4) {
        const double    ideal = m / (m + 3.0);
        const simulated gpipe = simulate("gpipe", 4, 1, m), turns = simulate("1f1b", 4, 1, m);
        assert_true(gpipe.share >= 0.95 * ideal && gpipe.share <= ideal + 1e-9);
        assert_true(turns.share >= 0.95 * ideal && turns.share <= ideal + 1e-9);
        for (int32_t r = 0; r < 4; r++) {
            assert_int_equal(gpipe.peak[r], m);
            assert_int_equal(turns.peak[r], 4 - r);
        }
        assert_true(gpipe.backward_in_order && turns.backward_in_order);
    }
}

/* With v parts a rank the bubble is that of m v / (m v + p - 1). */
static void test_interleaved(void **state) {
    (void)state;
    for (int32_t chunks = 1; chunks <= 4; chunks++)
        for (int32_t m = 4; m <= 32; m += 4) {
            const simulated s = simulate("interleaved", 4, chunks, m);
            const double    ideal = (double)m * chunks / (m * chunks + 3.0);
            assert_true(s.share >= 0.95 * ideal && s.share <= ideal + 1e-9);
            assert_true(s.backward_in_order);
        }
}

/* No schedule waits for itself, whatever the counts. */
static void test_all_counts(void **state) {
    (void)state;
    for (int32_t ranks = 1; ranks <= RANKS; ranks++)
        for (int32_t m = 1; m <= 20; m++) {
            assert_int_equal(simulate("gpipe", ranks, 1, m).peak[0], m);
            assert_int_equal(simulate("1f1b", ranks, 1, m).peak[0], m < ranks ? m : ranks);
            for (int32_t chunks = 1; chunks <= 4 && m % ranks == 0; chunks++) simulate("interleaved", ranks, chunks, m);
        }
}

static void test_what_is_refused(void **state) {
    (void)state;
    pli_pipeline p;
    plait_error  err;
    assert_int_equal(pli_pipeline_init(&p, "gpip", 2, 1, 2, 0, &err), PLAIT_ENAME);
    assert_non_null(strstr(err.text, "gpipe"));
    assert_int_equal(pli_pipeline_init(&p, "1f1b", 2, 2, 2, 0, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "take interleaved"));
    assert_int_equal(pli_pipeline_init(&p, "interleaved", 2, 2, 3, 0, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "a multiple of 2"));
    assert_int_equal(pli_pipeline_init(&p, "gpipe", 2, 1, 0, 0, &err), PLAIT_EINVAL);
    assert_int_equal(pli_pipeline_init(&p, "gpipe", 2, 1, 1, 2, &err), PLAIT_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_four_stages), cmocka_unit_test(test_interleaved),
                                        cmocka_unit_test(test_all_counts), cmocka_unit_test(test_what_is_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
