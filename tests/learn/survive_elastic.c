/* Tests that workers come and go while a run trains (--workers MIN:MAX --scale), whatever it trains: by plans that a
 * seed draws, in half of the runs with a rank that dies at any moment, whether it is in, away, or about to come or go.
 * Where sums are exact, the model and its losses have the bits of a run with a fixed number of workers; solvers that go
 * on until the objective is near its least value end as near. */
#include "learn/solve/balance.h"
#include "learn/survive.h"

enum { RUNS = 3, RUNS_FULL = 40, LEAST = 2, MOST = 4, CHANGES = 4, SCALE = 120 };

/* Do workers come and go with it? They do wherever all updates of a clock apply together. */
static bool is_elastic(const kind *k) {
    return strcmp(k->consistency, "bsp") == 0 || strcmp(k->consistency, "bounded-delay:0") == 0;
}

static plait_status refused_or_not(const kind *k, plait_data *const data[SETS], const int *stop, plait_error *err) {
    story s = story_of(k, data, stop);
    s.workers = MOST;
    s.opts.slots = MOST - LEAST;
    s.opts.dry_run = 1;
    s.opts.trained = NULL;
    return run(&s, err);
}

/* Between the first clock and the last one; twice so often at the beginning, where most runs are. */
static void draw_plan(pli_random *r, int64_t clocks, char *text) {
    const int n = 1 + (int)pli_random_below(r, CHANGES);
    int64_t   at = 0;
    text[0] = '\0';
    for (int i = 0; i < n; i++) {
        const int64_t room = (clocks - at) / (n - i);
        if (room < 1) break;
        at += 1 + (int64_t)pli_random_below(r, (uint64_t)room);
        const size_t used = strlen(text);
        snprintf(text + used, SCALE - used, "%s%lld:%d", i > 0 ? "," : "", (long long)at,
                 LEAST + (int)pli_random_below(r, MOST - LEAST + 1));
    }
}

/* A rank says that each row has taken it a second, or three, or five: with --balance dynamic blocks then move. */
void __real_pli_balance_end_work(pli_balance *balance, uint64_t within_ns);
void __wrap_pli_balance_end_work(pli_balance *balance, uint64_t within_ns);
void __wrap_pli_balance_end_work(pli_balance *balance, uint64_t within_ns) {
    const uint64_t seconds = 1 + 2 * (uint64_t)(plait_comm_rank(balance->run->comm) % HOLDERS);
    __real_pli_balance_end_work(balance, within_ns + (uint64_t)balance->batch_rows * seconds * 1000000000);
}

static story story_with(const kind *k, const char *balance, plait_data *const data[SETS], const int *stop) {
    story s = story_of(k, data, stop);
    if (balance == NULL) return s;
    s.opts.balance = balance;
    s.opts.epochs = k->passes ? 6 : 3;
    s.opts.batch = k->passes ? 0 : 50;
    s.opts.curve = 0;
    return s;
}

static void come_and_go(const kind *k, const char *balance, plait_data *const data[SETS], const int *stop,
                        const story *whole, uint64_t seed, bool dies, int64_t *died) {
    pli_random  r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 31, (uint64_t)(k - kinds));
    story       s = story_with(k, balance, data, stop);
    plait_error err = { 0 };
    char        scale[SCALE], what[300];
    int32_t     all;
    draw_plan(&r, report_of(whole, &all)->clocks, scale);
    s.opts.slots = MOST - LEAST;
    s.opts.scale = scale;
    s.workers = MOST;
    s.servers = pli_random_below(&r, 3) == 0 ? 2 : 0;
    if (dies) draw_death(&s, &r, whole);
    else s.victim = RANKS_MAX;
    snprintf(what, sizeof what, "PLAIT_SEED=%llu (%s%s): --scale %s, rank %d of %d + %d at call %lld of rank %d",
             (unsigned long long)seed, k->name, balance != NULL ? ", balanced" : "",
             scale, (int)s.victim, (int)s.workers, (int)s.servers, (long long)s.at,
             (int)s.killer);
    if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", what);
    if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
    check(&s, k, whole, what);
    *died += atomic_load(&s.told) > 0;
}

static void test_workers_come_and_go_whatever_trains(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[SETS];
    int64_t          runs = runs_of(RUNS, RUNS_FULL), died = 0;
    make_data(data);
    for (size_t k = 0; k < KINDS; k++) {
        plait_error err = { 0 };
        story       whole = story_of(&kinds[k], data, &stop);
        const plait_status status = refused_or_not(&kinds[k], data, &stop, &err);
        if ((status == PLAIT_EREFUSED) == is_elastic(&kinds[k])) fail_msg("%s: %s", kinds[k].name, err.text);
        if (!is_elastic(&kinds[k])) continue;
        if (run(&whole, &err) < 0) fail_msg("%s: %s", kinds[k].name, err.text);
        for (int64_t i = 0; i < runs; i++)
            come_and_go(&kinds[k], NULL, data, &stop, &whole, seed_of(i), seed_of(i) % 2 == 0, &died);
    }
    if (only_seed() == NULL && died == 0) fail_msg("no death was told");
    free_data(data);
}

/* The first kinds, linear models and a net, whose blocks change hands between clocks; and those whose blocks do where
 * all meet. Trees by features have all rows on each worker, so no blocks move. */
static bool is_balanced(const kind *k) {
    if (strcmp(k->model, "lda") == 0) return true;
    if (strcmp(k->model, "gbdt") == 0 || strcmp(k->model, "forest") == 0) return strstr(k->name, "by features") == NULL;
    return k < kinds + 4;
}

/* Blocks change hands, too. */
static void test_workers_come_and_go_while_blocks_move(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[SETS];
    int64_t          died = 0;
    make_data(data);
    for (size_t k = 0; k < KINDS; k++) {
        plait_error err = { 0 };
        if (!is_balanced(&kinds[k])) continue;
        story whole = story_with(&kinds[k], "static", data, &stop);
        if (run(&whole, &err) < 0) fail_msg("%s: %s", kinds[k].name, err.text);
        for (int64_t i = 0; i < 2 * runs_of(RUNS, RUNS_FULL); i++)
            come_and_go(&kinds[k], "dynamic", data, &stop, &whole, seed_of(i), seed_of(i) % 2 == 0, &died);
    }
    free_data(data);
}

/* --- blocks that rotate ------------------------------------------------------------------------------------------- */

static const kind rotated[] = {
    { "factors by steps", "mf", "bsp", "sgd", NULL, false, false, true, &few_factors, NULL },
    { "factors by pairs", "mf", "bsp", "sgd", NULL, false, false, true, &few_factors, NULL },
};
enum { ROTATED = sizeof rotated / sizeof rotated[0] };

static story story_of_rotation(size_t k, plait_data *const data[SETS], const int *stop) {
    story s = story_of(&rotated[k], data, stop);
    s.opts.loss = k == 1 ? "bpr" : NULL;
    s.opts.epochs = 3;
    s.workers = MOST;
    return s;
}

/* Blocks of items rotate over all slots, and a block whose worker is away falls to another. So the model has the bits
 * of a run with as many workers as slots. */
static void test_workers_come_and_go_while_blocks_rotate(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[SETS];
    make_data(data);
    for (size_t k = 0; k < ROTATED; k++) {
        plait_error err = { 0 };
        story       whole = story_of_rotation(k, data, &stop);
        int32_t     ended, all;
        if (run(&whole, &err) < 0) fail_msg("%s: %s", rotated[k].name, err.text);
        for (int64_t i = 0; i < 2 * runs_of(RUNS, RUNS_FULL); i++) {
            pli_random  r = pli_random_at(seed_of(i), PLI_RANDOM_SCHEDULE, 32, k);
            story       s = story_of_rotation(k, data, &stop);
            char        scale[SCALE], what[300];
            const bool  dies = pli_random_below(&r, 2) == 0;
            draw_plan(&r, report_of(&whole, &all)->clocks, scale);
            s.opts.slots = MOST - LEAST;
            s.opts.scale = scale;
            if (dies) draw_death(&s, &r, &whole);
            else s.victim = RANKS_MAX;
            snprintf(what, sizeof what, "PLAIT_SEED=%llu (%s): --scale %s, rank %d at call %lld of rank %d",
                     (unsigned long long)seed_of(i), rotated[k].name, scale, (int)s.victim, (long long)s.at,
                     (int)s.killer);
            if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", what);
            if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
            if (strcmp(report_of(&s, &ended)->model_hash, report_of(&whole, &all)->model_hash) != 0)
                fail_msg("%s: another model", what);
            if (ended < MOST - dies) fail_msg("%s: %d have ended", what, (int)ended);
        }
    }
    free_data(data);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_workers_come_and_go_whatever_trains),
                                        cmocka_unit_test(test_workers_come_and_go_while_blocks_move),
                                        cmocka_unit_test(test_workers_come_and_go_while_blocks_rotate) };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0; /* 1: refuted (tests/audit/mutants.txt) */
}
