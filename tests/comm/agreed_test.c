/* The machine that agrees on steps, among bare ranks: all interleavings of small worlds, and drawn ones of larger
 * worlds, in which ranks die and are cut off (agreed_world.h says what must hold). PLAIT_SEED=seed replays a drawn one;
 * PLAIT_SCHEDULES=n draws n of them, and nothing else is tested. */
#include "agreed_world.h"

enum { SCHEDULES = 20000, SCHEDULES_FULL = 200000 };

/* The states that were seen. */
typedef struct seen {
    uint64_t *hash;
    size_t    n, room;
} seen;

static bool is_new(seen *s, uint64_t hash) {
    if (2 * (s->n + 1) > s->room) {
        seen more = { .room = s->room > 0 ? 2 * s->room : 1 << 16 };
        more.hash = calloc(more.room, sizeof *more.hash);
        assert_non_null(more.hash);
        for (size_t i = 0; i < s->room; i++)
            if (s->hash[i] != 0) (void)is_new(&more, s->hash[i]);
        free(s->hash);
        *s = more;
    }
    hash |= hash == 0;
    size_t at = (size_t)hash & (s->room - 1);
    while (s->hash[at] != 0 && s->hash[at] != hash) at = (at + 1) & (s->room - 1);
    if (s->hash[at] == hash) return false;
    s->hash[at] = hash;
    s->n++;
    return true;
}

static void search(const world *w, seen *s) {
    event     all[EVENTS];
    const int n = list(w, all), losses = list_losses(w, all + n);
    if (n == 0) check_end(w);
    if (wrong != NULL || !is_new(s, hash_of(w))) return;
    world *next = calloc(1, sizeof *next);
    assert_non_null(next);
    make(next, w->ranks, w->steps, 0, 0);
    for (int i = 0; i < n + losses && wrong == NULL; i++) {
        copy(next, w);
        happen(next, &all[i]);
        search(next, s);
    }
    end(next);
    free(next);
}

static void all_of(int32_t ranks, int32_t steps, int32_t kills, int32_t cuts) {
    seen   s = { 0 };
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    make(w, ranks, steps, kills, cuts);
    wrong = NULL;
    search(w, &s);
    print_message("%d ranks, %d steps, %d deaths, %d cut off: %zu states\n", ranks, steps, kills, cuts, s.n);
    if (wrong != NULL) fail_msg("%s", wrong);
    end(w);
    free(w);
    free(s.hash);
}

static void test_all_of_two_ranks(void **state) {
    (void)state;
    all_of(2, 3, 1, 0);
    all_of(2, 3, 0, 1);
}

static void test_all_of_three_ranks(void **state) {
    (void)state;
    all_of(3, 1, 2, 0);
    all_of(3, 2, 1, 0);
    all_of(3, 3, 2, 0);
    all_of(3, 2, 0, 1);
    all_of(3, 2, 1, 1);
}

static void test_all_of_four_ranks(void **state) {
    (void)state;
    all_of(4, 1, 1, 0);
    all_of(4, 1, 0, 1);
}

static int32_t draw(uint64_t *seed, int n) {
    *seed = pli_hash_u64(*seed + 1);
    return (int32_t)(*seed % (uint64_t)n);
}

static void drawn(uint64_t schedule) {
    uint64_t seed = pli_hash_u64(schedule);
    world   *w = calloc(1, sizeof *w);
    event    all[EVENTS];
    assert_non_null(w);
    const int32_t ranks = 3 + draw(&seed, RANKS - 2), pace = 1 + draw(&seed, 40), lost = 1 + draw(&seed, ranks - 1);
    const int32_t cuts = draw(&seed, 2) == 0 ? 0 : draw(&seed, lost + 1);
    make(w, ranks, STEPS, lost - cuts, cuts);
    wrong = NULL;
    for (int n; wrong == NULL;) {
        n = list(w, all);
        if (n == 0) check_end(w);
        const int losses = n > 0 && draw(&seed, pace) == 0 ? list_losses(w, all + n) : 0;
        if (n == 0) break;
        happen(w, losses > 0 ? &all[n + draw(&seed, losses)] : &all[draw(&seed, n)]);
    }
    if (wrong != NULL)
        fail_msg("%d ranks: %s\nreplay: PLAIT_SEED=%llu %s", ranks, wrong, (unsigned long long)schedule,
                 program_invocation_name);
    end(w);
    free(w);
}

static void test_drawn_schedules(void **state) {
    (void)state;
    const char   *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_SCHEDULES");
    const int64_t n = count != NULL ? atoll(count) : getenv("PLAIT_TEST_FULL") != NULL ? SCHEDULES_FULL : SCHEDULES;
    if (seed != NULL) {
        drawn(strtoull(seed, NULL, 10));
        return;
    }
    for (int64_t i = 0; i < n; i++) drawn((uint64_t)i);
    print_message("%lld drawn schedules\n", (long long)n);
}

/* Of two ranks one dies: the other goes on alone, whether it has the sum or not. */
static void test_last_rank_goes_on(void **state) {
    (void)state;
    for (int summed = 0; summed < 2; summed++) {
        pli_agreed a;
        pli_out    out;
        pli_out_init(&out);
        assert_true(pli_agreed_init(&a, 1, 2));
        if (summed) pli_agreed_summed(&a, &out);
        assert_int_equal(a.step, 0);
        pli_agreed_died(&a, 0, &out);
        assert_int_equal(a.step, summed);
        assert_int_equal(*a.of, 0);
        assert_int_equal(*a.attempt, 1);
        pli_agreed_summed(&a, &out);
        assert_int_equal(a.step, summed + 1);
        assert_int_equal(*a.of, 1);
        pli_out_drop(&out);
        pli_agreed_destroy(&a);
    }
}

/* Bytes from a wire are untrusted: the clock of a round may be any (under sanitizers, nothing overflows). */
static void test_round_of_any_step(void **state) {
    (void)state;
    const int64_t clocks[] = { INT64_MIN, -1, 0, 3, INT64_MAX };
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        pli_agreed a;
        pli_out    out;
        pli_msg   *msg = pli_msg_new(0);
        pli_out_init(&out);
        assert_non_null(msg);
        assert_true(pli_agreed_init(&a, 0, 2));
        a.step = 1;
        msg->head.kind = PLI_AGREED_SUMMED;
        msg->head.src = 1;
        msg->head.clock = clocks[i];
        pli_agreed_take(&a, msg, &out);
        assert_int_equal(a.come[0] + a.come[1], 0);
        pli_msg_free(&msg);
        pli_agreed_destroy(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_rank_goes_on),
        cmocka_unit_test(test_round_of_any_step),
        cmocka_unit_test(test_all_of_two_ranks),
        cmocka_unit_test(test_all_of_three_ranks),
        cmocka_unit_test(test_all_of_four_ranks),
        cmocka_unit_test(test_drawn_schedules),
    };
    const struct CMUnitTest alone[] = { cmocka_unit_test(test_drawn_schedules) };
    if (getenv("PLAIT_SCHEDULES") != NULL || getenv("PLAIT_SEED") != NULL)
        return cmocka_run_group_tests(alone, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
