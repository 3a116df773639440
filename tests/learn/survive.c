/* Tests that a run with two replicas of each shard goes on when a rank dies, whether the others train, judge or end at
 * that moment. Under bsp with exact sums the model and its losses have the bits of the run in which nobody died; else
 * the model is like that one. The same holds with spares, which have no rows until then, whether nobody dies, one rank,
 * or two (that do not hold all copies of a shard). survive_kept.c has checkpoints,
 * survive_stages.c nets in stages. */
#include "learn/survive.h"

enum { RUNS = 120, RUNS_FULL = 400, LATE = 2, LATE_FULL = 30, LEAD = 3 /* clocks, as their ends are noted */ };

/* Draws who dies second, and when. If the first held no shards, the second may die at any moment. */
static void draw_second(story *s, pli_random *r) {
    const bool     apart = s->servers > 0, shards = apart ? s->victim >= s->workers
                                                          : s->victim < s->workers - s->opts.spares;
    const uint64_t ranks = (uint64_t)(s->workers + s->servers);
    if (shards || s->workers < 3) return;
    do s->second = (int32_t)pli_random_below(r, ranks);
    while (s->second == s->victim || s->second == s->killer);
    s->second_at = s->at + 1 + (int64_t)pli_random_below(r, 12);
}

/* Runs a story in which ranks die, as they are drawn; what [200]: names it. */
static void run_with_deaths(story *s, const char *name, const story *whole, uint64_t seed, pli_random *r, char *what) {
    plait_error err = { 0 };
    draw_death(s, r, whole);
    draw_second(s, r);
    snprintf(what, 200, "seed %llu (%s): rank %d of %d (%d spare) + %d at call %lld of rank %d, then rank %d at %lld",
             (unsigned long long)seed, name, (int)s->victim, (int)s->workers, (int)s->opts.spares, (int)s->servers,
             (long long)s->at, (int)s->killer, (int)s->second, (long long)s->second_at);
    if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", what);
    if (run(s, &err) < 0) fail_msg("%s: %s", what, err.text);
}

/* Most deaths come within their run. */
static void judge_told(int64_t died, int64_t runs) {
    if (only_seed() == NULL && died * 2 < runs)
        fail_msg("only %lld of %lld deaths were told", (long long)died, (long long)runs);
}

static bool bounds_no_read(const kind *k) {
    return strcmp(k->consistency, "async") == 0 || strncmp(k->consistency, "downpour", 8) == 0 ||
           strncmp(k->consistency, "vap", 3) == 0;
}

/* If nobody dies, spares change nothing, and keep in step. */
static void stand_ready(const kind *k, plait_data *const data[SETS], const int *stop, const story *whole) {
    for (int32_t holders = 1; holders <= HOLDERS; holders += 2) {
        plait_error err = { 0 };
        char        what[80];
        story       s = story_of(k, data, stop);
        s.workers = holders;
        s.victim = RANKS_MAX;
        take_spares(&s, 2);
        snprintf(what, sizeof what, "%s, %d workers and 2 spares", k->name, (int)holders);
        if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
        check(&s, k, whole, what);
        if (bounds_no_read(k) && atomic_load(&s.lead) > LEAD)
            fail_msg("%s: a spare was %lld clocks ahead", what, (long long)atomic_load(&s.lead));
    }
}

static void test_any_rank_may_die_at_any_moment(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[SETS];
    make_data(data);
    int64_t          runs = runs_of(RUNS, RUNS_FULL), died = 0;
    story           *whole = pli_calloc(KINDS, sizeof *whole);
    plait_error      err = { 0 };
    for (size_t k = 0; k < KINDS; k++) {
        whole[k] = story_of(&kinds[k], data, &stop);
        if (run(&whole[k], &err) < 0) fail_msg("%s: %s", kinds[k].name, err.text);
        if (only_seed() == NULL) stand_ready(&kinds[k], data, &stop, &whole[k]);
    }
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = seed_of(i);
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 7, 0);
        const size_t   k = pli_random_below(&r, KINDS);
        story          s = story_of(&kinds[k], data, &stop);
        char           what[200];
        s.servers = pli_random_below(&r, 3) == 0 ? 2 : 0;
        take_spares(&s, (int32_t)pli_random_below(&r, 3));
        if (s.opts.spares > 0 && pli_random_below(&r, 4) == 0) s.workers -= HOLDERS - 1; /* one holder, and spares */
        run_with_deaths(&s, kinds[k].name, &whole[k], seed, &r, what);
        check(&s, &kinds[k], &whole[k], what);
        died += atomic_load(&s.told) > 0;
    }
    judge_told(died, runs);
    pli_free(whole);
    free_data(data);
}

/* --- three replicas ----------------------------------------------------------------------------------------------- */

enum { OF_THREE = 5, TWO_RUNS = 40, TWO_RUNS_FULL = 600 };

/* Of five workers two die at once, or soon one after the other: every kind, those too whose server functions update
 * tables (lbfgs). */
static void test_any_two_may_die_of_three_replicas(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[SETS];
    int64_t          runs = runs_of(TWO_RUNS, TWO_RUNS_FULL), died = 0;
    story           *whole = pli_calloc(KINDS, sizeof *whole);
    plait_error      err = { 0 };
    make_data(data);
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = seed_of(i);
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 41, 0);
        const size_t   k = i % 3 == 0 ? KINDS - 8 + pli_random_below(&r, 8) : pli_random_below(&r, KINDS);
        story          s = story_of(&kinds[k], data, &stop);
        char           what[160];
        s.opts.replicas = 3;
        s.workers = OF_THREE;
        if (whole[k].workers == 0) {
            whole[k] = s;
            if (run(&whole[k], &err) < 0) fail_msg("%s: %s", kinds[k].name, err.text);
        }
        draw_death(&s, &r, &whole[k]);
        do s.second = (int32_t)pli_random_below(&r, OF_THREE);
        while (s.second == s.victim || s.second == s.killer);
        s.second_at = s.at + 1 + (int64_t)pli_random_below(&r, 4);
        snprintf(what, sizeof what, "seed %llu (%s): ranks %d and %d of %d at calls %lld and %lld of rank %d",
                 (unsigned long long)seed, kinds[k].name, (int)s.victim, (int)s.second, OF_THREE, (long long)s.at,
                 (long long)s.second_at, (int)s.killer);
        if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", what);
        if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
        check(&s, &kinds[k], &whole[k], what);
        died += atomic_load(&s.told) > 1;
    }
    judge_told(died, runs);
    pli_free(whole);
    free_data(data);
}

/* --- sums that go on ---------------------------------------------------------------------------------------------- */

static story story_of_sums(const kind *k, plait_data *const data[SETS], const int *stop) {
    story s = story_of(k, data, stop);
    s.opts.topology = "allreduce";
    return s;
}

static void test_any_worker_may_die_where_sums_go_on(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[SETS];
    int64_t          runs = runs_of(RUNS, RUNS_FULL), died = 0;
    story           *whole = pli_calloc(KINDS, sizeof *whole);
    plait_error      err = { 0 };
    make_data(data);
    for (size_t k = 0; k < KINDS; k++) {
        if (!is_summed(&kinds[k])) continue;
        whole[k] = story_of_sums(&kinds[k], data, &stop);
        if (run(&whole[k], &err) < 0) fail_msg("%s: %s", kinds[k].name, err.text);
    }
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = seed_of(i);
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 24, 0);
        size_t         k;
        char           what[200];
        do k = pli_random_below(&r, KINDS);
        while (!is_summed(&kinds[k]));
        story s = story_of_sums(&kinds[k], data, &stop);
        take_spares(&s, (int32_t)pli_random_below(&r, 3));
        run_with_deaths(&s, kinds[k].name, &whole[k], seed, &r, what);
        check(&s, &kinds[k], &whole[k], what);
        died += atomic_load(&s.told) > 0;
    }
    judge_told(died, runs);
    pli_free(whole);
    free_data(data);
}

/* --- blocks that rotate ------------------------------------------------------------------------------------------- */

static const kind rotated[] = {
    { "factors by steps", "mf", "bsp", "sgd", NULL, false, false, true, &few_factors, NULL },
    { "topics", "lda", "bsp", NULL, NULL, false, false, true, &rotating_words, NULL },
    { "factors by pairs", "mf", "bsp", "sgd", NULL, false, false, true, &few_factors, NULL },
};
enum { ROTATED = sizeof rotated / sizeof rotated[0], ROTATED_RUNS = 24, ROTATED_RUNS_FULL = 1000 };

static story story_of_rotation(size_t k, plait_data *const data[SETS], const int *stop) {
    story s = story_of(&rotated[k], data, stop);
    s.opts.loss = k == 2 ? "bpr" : NULL;
    s.opts.epochs = 3;
    return s;
}

/* A rank dies while blocks rotate. Its heir reads the factors of the dead rank's users from the table, so the model has
 * the bits of a run of two replicas in which nobody died. (With one replica users are pushed once an epoch, and rounded
 * there.) */
static void test_any_rank_may_die_while_blocks_rotate(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[SETS];
    int64_t runs = runs_of(ROTATED_RUNS, ROTATED_RUNS_FULL), died = 0;
    story  *whole = pli_calloc(ROTATED, sizeof *whole);
    plait_error err = { 0 };
    make_data(data);
    for (size_t k = 0; k < ROTATED; k++) {
        whole[k] = story_of_rotation(k, data, &stop);
        if (run(&whole[k], &err) < 0) fail_msg("%s: %s", rotated[k].name, err.text);
    }
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = seed_of(i);
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 12, 0);
        const size_t   k = pli_random_below(&r, ROTATED);
        story          s = story_of_rotation(k, data, &stop);
        int32_t        ended, all;
        char           what[200];
        s.servers = pli_random_below(&r, 3) == 0 ? 2 : 0;
        take_spares(&s, (int32_t)pli_random_below(&r, 3));
        run_with_deaths(&s, rotated[k].name, &whole[k], seed, &r, what);
        const plait_report *report = report_of(&s, &ended), *want = report_of(&whole[k], &all);
        if (report == NULL || strcmp(report->model_hash, want->model_hash) != 0) fail_msg("%s: another model", what);
        died += atomic_load(&s.told) > 0;
    }
    judge_told(died, runs);
    pli_free(whole);
    free_data(data);
}

/* --- a death that is heard before a clock is safe ----------------------------------------------------------------- */

/* The others count the dead one out a clock apart, and yet must do the same. */
static void die_late(story *s, uint64_t seed, uint64_t k, const story *whole, const char *name) {
    pli_random  r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 13, k);
    plait_error err = { 0 };
    draw_late(s, &r, whole);
    if (getenv("PLAIT_TRACE") != NULL) print_message("%s, seed %llu\n", name, (unsigned long long)seed);
    if (run(s, &err) < 0 || !atomic_load(&s->stood))
        fail_msg("seed %llu (%s): rank %d dies behind clock %lld, for rank %d in it: %s", (unsigned long long)seed,
                 name, (int)s->victim, (long long)s->late_clock, (int)s->late,
                 err.code < 0 ? err.text : "nobody stood in");
}

static void test_a_death_is_heard_before_the_clock_is_safe(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[SETS];
    plait_error      err = { 0 };
    const uint64_t   each = getenv("PLAIT_TEST_FULL") != NULL ? LATE_FULL : LATE;
    make_data(data);
    for (size_t k = 0; k < KINDS + ROTATED; k++) {
        const struct kind *which = k < KINDS ? &kinds[k] : &rotated[k - KINDS];
        const story begun = k < KINDS ? story_of(which, data, &stop) : story_of_rotation(k - KINDS, data, &stop);
        story       whole = begun;
        if (strcmp(which->consistency, "bsp") != 0) continue; /* else nobody stands in */
        if (run(&whole, &err) < 0) fail_msg("%s: %s", which->name, err.text);
        for (uint64_t seed = 1; seed <= each; seed++) {
            story   s = begun;
            int32_t ended, all;
            die_late(&s, seed, k, &whole, which->name);
            if (k < KINDS) check(&s, which, &whole, which->name);
            else if (strcmp(report_of(&s, &ended)->model_hash, report_of(&whole, &all)->model_hash) != 0)
                fail_msg("%s, seed %llu: another model", which->name, (unsigned long long)seed);
        }
    }
    free_data(data);
}

/* --- first centres ------------------------------------------------------------------------------------------------ */

/* Between the making of the job and that of the first table kmeans draws its first centres. At each call there a rank
 * dies; under PLAIT_TEST_FULL each of them in turn. */
static void test_any_rank_may_die_while_first_centres_are_drawn(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[SETS];
    make_data(data);
    for (size_t k = 0; k < KINDS; k++) {
        story       whole = story_of(&kinds[k], data, &stop);
        plait_error err = { 0 };
        if (strcmp(kinds[k].model, "kmeans") != 0) continue;
        if (run(&whole, &err) < 0) fail_msg("%s: %s", kinds[k].name, err.text);
        assert_true(whole.before_tables[0] > 10);
        for (int64_t at = 0; at < whole.before_tables[0] * HOLDERS; at += getenv("PLAIT_TEST_FULL") != NULL ? 1 : 4) {
            story s = story_of(&kinds[k], data, &stop);
            char  what[100];
            s.at = at / HOLDERS;
            s.victim = (int32_t)(at % HOLDERS);
            s.killer = (s.victim + 1) % HOLDERS;
            take_spares(&s, (int32_t)(at % 2));
            snprintf(what, sizeof what, "%s: rank %d at call %lld of rank %d", kinds[k].name, (int)s.victim,
                     (long long)s.at, (int)s.killer);
            if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
            check(&s, &kinds[k], &whole, what);
            assert_true(atomic_load(&s.told) > 0);
        }
    }
    free_data(data);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void refused(plait_train_opts *opts, const char *says) {
    training t = { .opts = *opts };
    assert_true(train(&t, 2, 1) == PLAIT_EREFUSED);
    if (strstr(t.error.text, says) == NULL) fail_msg("%s", t.error.text);
}

static void test_what_cannot_go_on_is_refused_by_name(void **unused) {
    (void)unused;
    plait_data *data = points(ROWS, 6, 2, 5);
    story       s = story_of(&kinds[0], (plait_data *[SETS]){ data }, NULL);
    plait_train_opts o = s.opts;
    o.topology = "local";
    refused(&o, "nearest is ps");
    o = s.opts;
    o.spares = 1;
    o.replicas = 1;
    refused(&o, "nearest are 2 replicas");
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_any_rank_may_die_at_any_moment),
                                        cmocka_unit_test(test_any_two_may_die_of_three_replicas),
                                        cmocka_unit_test(test_a_death_is_heard_before_the_clock_is_safe),
                                        cmocka_unit_test(test_any_worker_may_die_where_sums_go_on),
                                        cmocka_unit_test(test_any_rank_may_die_while_blocks_rotate),
                                        cmocka_unit_test(test_any_rank_may_die_while_first_centres_are_drawn),
                                        cmocka_unit_test(test_what_cannot_go_on_is_refused_by_name) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
