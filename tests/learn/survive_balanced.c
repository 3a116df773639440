/* Tests that a run with two replicas of each shard whose blocks change hands (--balance dynamic) goes on when a rank
 * dies: under bsp with exact sums the model has the bits of the run in which nobody died and no block moved. Ranks
 * pretend to be of different speed, so that blocks do move, and so that a rank dies while others hold its blocks, or it
 * holds theirs. */
#include "learn/solve/balance.h"
#include "learn/survive.h"

enum { DEATHS = 60, DEATHS_FULL = 2000 };

STAND_BEFORE(plait_comm_allgather, (plait_comm * comm, const void *mine, size_t bytes, void *all),
             (comm, mine, bytes, all), comm)

static atomic_llong worked[RANKS_MAX]; /* rows that a rank has gone over; a counter alone */

/* A rank says that each row has taken it a second, or three, or five. */
void __real_pli_balance_end_work(pli_balance *balance, uint64_t within_ns);
void __wrap_pli_balance_end_work(pli_balance *balance, uint64_t within_ns);
void __wrap_pli_balance_end_work(pli_balance *balance, uint64_t within_ns) {
    atomic_fetch_add_explicit(&worked[plait_comm_rank(balance->run->comm)], balance->batch_rows, memory_order_relaxed);
    const uint64_t seconds = 1 + 2 * (uint64_t)(plait_comm_rank(balance->run->comm) % HOLDERS);
    __real_pli_balance_end_work(balance, within_ns + (uint64_t)balance->batch_rows * seconds * 1000000000);
}

static const kind balanced[] = {
    { "dense", "logistic", "bsp", "adagrad", NULL, true, false, false, NULL, NULL },
    { "dense, validated", "logistic", "bsp", "adam", "0.2", true, false, false, NULL, NULL },
    { "keyed", "logistic", "bsp", "ftrl", NULL, true, true, false, NULL, NULL },
    { "net", "mlp", "bsp", "adam", "0.2", true, false, false, NULL, NULL },
    { "sums not exact", "logistic", "bsp", "sgd", NULL, false, false, false, NULL, NULL },
    { "trees", "gbdt", "bsp", NULL, NULL, true, false, true, &few_leaves, NULL },
    { "trees of classes, validated", "gbdt", "bsp", NULL, "0.2", true, false, true, &three_classes, NULL },
    { "trees by levels, of samples", "gbdt", "bsp", NULL, NULL, true, false, true, &levels, NULL },
    { "trees by voting for all features", "gbdt", "bsp", NULL, NULL, true, false, true, &voting_for_all, NULL },
    { "forest of classes, validated", "forest", "bsp", NULL, "0.2", true, false, true, &three_classes, NULL },
    { "topics", "lda", "bsp", NULL, NULL, true, false, true, NULL, NULL },
    { "topics by mini-batches", "lda", "bsp", NULL, NULL, true, false, false, NULL, NULL },
    { "net in stages", "mlp", "bsp", "adam", NULL, true, false, false, NULL, NULL },
};
enum { BALANCED = sizeof balanced / sizeof balanced[0], STAGED = BALANCED - 1, CUT = 2 };

/* Blocks change hands between epochs alone. */
static bool settles(size_t k) { return balanced[k].passes || strcmp(balanced[k].model, "lda") == 0; }

static int64_t moved; /* rows that the fastest worker has computed in the last epoch, over those of its own blocks */

static void on_shares(void *user, const plait_shares *shares) {
    (void)user;
    if (shares->workers > 1) moved = 100 * shares->rows[0] * shares->workers / ROWS;
}

static story story_balanced(size_t k, plait_data *const data[SETS], const int *stop, const char *topology) {
    story s = story_of(&balanced[k], data, stop);
    s.opts.topology = topology;
    s.opts.epochs = settles(k) ? 5 : 3;
    s.opts.batch = balanced[k].passes ? 0 : 50;
    s.opts.curve = 0;
    s.opts.shares = on_shares;
    if (k != STAGED) return s;
    s.opts.layers = "8,6";
    s.opts.cut = s.opts.micro_batches = CUT;
    s.workers *= CUT;
    return s;
}

/* Of all rows of all epochs, as on_shares has it of the last. */
static int64_t share_of_fastest(const story *s) {
    int64_t all = 0;
    for (int32_t w = 0; w < s->workers; w++) all += atomic_load_explicit(&worked[w], memory_order_relaxed);
    return all > 0 ? 100 * atomic_load_explicit(&worked[0], memory_order_relaxed) * s->workers / all : 0;
}

/* The run in which no block moves, and then one in which some do and nobody dies. */
static void begin(size_t k, plait_data *const data[SETS], const int *stop, const char *topology, story *whole) {
    plait_error err = { 0 };
    char        what[120];
    *whole = story_balanced(k, data, stop, topology);
    if (run(whole, &err) < 0) fail_msg("%s: %s", balanced[k].name, err.text);
    story moves = story_balanced(k, data, stop, topology);
    moves.opts.balance = "dynamic";
    moved = 0;
    for (int32_t w = 0; w < RANKS_MAX; w++) atomic_store_explicit(&worked[w], 0, memory_order_relaxed);
    snprintf(what, sizeof what, "%s, %s, nobody dies; PLAIT_SEED=1", balanced[k].name, topology);
    if (run(&moves, &err) < 0) fail_msg("%s: %s", what, err.text);
    check(&moves, &balanced[k], whole, what);
    if (settles(k)) moved = share_of_fastest(&moves);
    if (moved < 130)
        fail_msg("the fastest worker has %lld %% of its blocks: %s", (long long)moved, what);
    for (int32_t w = 0; w < whole->workers; w++) whole->calls[w] = moves.calls[w];
}

static bool goes(size_t k, const char *topology) { return k != STAGED || strcmp(topology, "ps") == 0; }

static void die(const char *topology, uint64_t label) {
    static const int stop = 0;
    plait_data      *data[SETS];
    int64_t          runs = runs_of(DEATHS, DEATHS_FULL), died = 0;
    story           *whole = pli_calloc(BALANCED, sizeof *whole);
    make_data(data);
    for (size_t k = 0; k < BALANCED; k++)
        if (goes(k, topology)) begin(k, data, &stop, topology, &whole[k]);
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = seed_of(i);
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, label, 0);
        plait_error    err = { 0 };
        size_t         k;
        char           what[160];
        do k = pli_random_below(&r, BALANCED);
        while (!goes(k, topology));
        story s = story_balanced(k, data, &stop, topology);
        s.opts.balance = "dynamic";
        if (k != STAGED) take_spares(&s, (int32_t)pli_random_below(&r, 2));
        draw_death(&s, &r, &whole[k]);
        snprintf(what, sizeof what, "%s, %s: rank %d of %d dies at call %lld of rank %d; PLAIT_SEED=%llu",
                 balanced[k].name, topology, (int)s.victim, (int)s.workers, (long long)s.at, (int)s.killer,
                 (unsigned long long)seed);
        if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", what);
        if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
        check(&s, &balanced[k], &whole[k], what);
        died += atomic_load(&s.told) > 0;
    }
    if (only_seed() == NULL && died * 2 < runs)
        fail_msg("only %lld of %lld deaths were told", (long long)died, (long long)runs);
    pli_free(whole);
    free_data(data);
}

static void test_any_rank_may_die_while_blocks_move(void **unused) {
    (void)unused;
    die("ps", 31);
}

static void test_any_worker_may_die_where_sums_go_on(void **unused) {
    (void)unused;
    die("allreduce", 32);
}

static void test_other_policies_are_refused(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[SETS];
    plait_error      err = { 0 };
    make_data(data);
    story s = story_balanced(4, data, &stop, "ps");
    s.opts.balance = "dynamic";
    s.opts.consistency = "ssp:2";
    assert_int_equal(run(&s, &err), PLAIT_EREFUSED);
    if (strstr(err.text, "2 replicas with balance dynamic and consistency ssp:2 are refused") == NULL)
        fail_msg("%s", err.text);
    free_data(data);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_any_rank_may_die_while_blocks_move),
                                        cmocka_unit_test(test_any_worker_may_die_where_sums_go_on),
                                        cmocka_unit_test(test_other_policies_are_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0; /* 1 is what audit.mutants asks for */
}
