/* Tests that a run of one pass over files that are streamed goes on when a rank dies: its heirs read the rest of its
 * blocks from the files, from the clock on in which they fall to them. Under bsp with exact sums the model has the bits
 * of a run in which nobody died, and those of rows that were loaded; else it is like that one. With spares, on servers
 * and as sums, and with one rank dying after the other. */
#include "learn/survive.h"

enum { DEATHS = 80, DEATHS_FULL = 2000, FILES = 2, FEATURES = 4000 };

static char        folder[] = "/tmp/plait-streamed-XXXXXX";
static const char *paths[] = { folder };

static const kind streamed[] = {
    { "dense", "logistic", "bsp", "adagrad", NULL, true, false, false, NULL, NULL },
    { "keyed", "logistic", "bsp", "ftrl", NULL, true, true, false, NULL, NULL },
    { "net", "mlp", "bsp", "adam", NULL, true, false, false, NULL, NULL },
    { "counts", "bayes", "bsp", NULL, NULL, true, false, false, NULL, NULL },
    { "counts by key", "bayes", "bsp", NULL, NULL, true, true, false, NULL, NULL },
    { "sums not exact", "squared", "bsp", "sgd", NULL, false, false, false, NULL, NULL },
    { "ssp", "logistic", "ssp:2", "adagrad", NULL, false, false, false, NULL, NULL },
    { "async", "mlp", "async", "sgd", NULL, false, false, false, NULL, NULL },
};
enum { STREAMED = sizeof streamed / sizeof streamed[0] };

static void name_file(int i, char path[64]) { snprintf(path, 64, "%s/part%d.svm", folder, i); }

/* Some rows are long and some are short, so that blocks have different numbers of them. */
static void write_files(void) {
    char path[64];
    assert_non_null(mkdtemp(folder));
    for (int f = 0; f < FILES; f++) {
        name_file(f, path);
        FILE *file = fopen(path, "w");
        for (int i = f; i < ROWS; i += FILES) {
            pli_random r = pli_random_at(5, PLI_RANDOM_DATA, 0, (uint64_t)i);
            const int  step = i % 7 == 0 ? FEATURES / 40 : FEATURES / 5;
            double     sum = 0;
            char       row[2000];
            int        n = 0;
            for (int j = 1; j <= FEATURES - step; j += step) {
                const double x = pli_random_f64(&r) - 0.5;
                sum += j < FEATURES / 2 ? x : -x;
                n += snprintf(row + n, sizeof row - (size_t)n, " %d:%.3f", j + (int)pli_random_below(&r, 3), x);
            }
            fprintf(file, "%d%s\n", sum > 0, row);
        }
        assert_int_equal(fclose(file), 0);
    }
}

static void remove_files(void) {
    char path[64];
    for (int f = 0; f < FILES; f++) {
        name_file(f, path);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
}

static story story_streamed(const kind *k, const char *topology) {
    static const int             stop = 0;
    static plait_data_opts       files;
    static plait_data           *none[SETS];
    story                        s = story_of(k, none, &stop);
    plait_data_opts_init(&files);
    files.paths = paths;
    files.n_paths = 1;
    if (k->keyed) files.hash_bits = 14;
    s.opts.data = s.opts.test = &files;
    s.opts.topology = topology;
    s.opts.epochs = 1;
    s.opts.batch = 30;
    s.opts.curve = 0;
    return s;
}

static void check_streamed(const story *s, const kind *k, const story *whole, const char *what) {
    int32_t             ended, all;
    const plait_report *r = report_of(s, &ended), *want = report_of(whole, &all);
    const bool          second = s->second_at > 0 && s->second < s->workers;
    if (ended < s->workers - (s->victim < s->workers) - second) fail_msg("%s: %d have ended", what, (int)ended);
    if (r->clocks != want->clocks) fail_msg("%s: %lld clocks", what, (long long)r->clocks);
    if (k->exact && strcmp(r->model_hash, want->model_hash) != 0) fail_msg("%s: another model", what);
    if (k->exact && strcmp(s->kept_hash, want->model_hash) != 0) fail_msg("%s: another model was kept", what);
    if (strcmp(k->consistency, "bsp") != 0) assert_true(r->test_accuracy > want->test_accuracy - 0.15);
    else if (differ(r->test_loss, want->test_loss, k->exact ? 0 : 1e-4))
        fail_msg("%s: a test loss of %.17g instead of %.17g", what, r->test_loss, want->test_loss);
}

/* Nobody dies: the stream, with replicas and without, and with spares; and the same rows loaded. */
static void begin(const kind *k, const char *topology, story *whole) {
    plait_error err = { 0 };
    char        what[100];
    *whole = story_streamed(k, topology);
    if (run(whole, &err) < 0) fail_msg("%s: %s", k->name, err.text);
    if (!isnan(report_of(whole, &(int32_t){ 0 })->train_loss)) fail_msg("%s was not streamed", k->name);
    for (int way = 0; way < 2; way++) {
        story same = story_streamed(k, topology);
        if (way == 0) same.opts.replicas = 1;
        else take_spares(&same, 2);
        same.victim = RANKS_MAX;
        snprintf(what, sizeof what, "%s over %s, way %d, nobody dies", k->name, topology, way);
        if (run(&same, &err) < 0) fail_msg("%s: %s", what, err.text);
        check_streamed(&same, k, whole, what);
    }
}

static void draw_second(story *s, pli_random *r) {
    if (s->servers > 0 || s->workers - s->opts.spares < 3 || pli_random_below(r, 2) == 0) return;
    const bool has_shards = strcmp(s->opts.topology, "allreduce") != 0 && s->victim < s->workers - s->opts.spares;
    if (has_shards) return;
    do s->second = (int32_t)pli_random_below(r, (uint64_t)s->workers);
    while (s->second == s->victim || s->second == s->killer);
    s->second_at = s->at + 1 + (int64_t)pli_random_below(r, 12);
}

static void die(const char *topology, uint64_t label) {
    int64_t runs = runs_of(DEATHS, DEATHS_FULL), died = 0;
    story  *whole = pli_calloc(STREAMED, sizeof *whole);
    const bool sums = strcmp(topology, "allreduce") == 0;
    for (size_t k = 0; k < STREAMED; k++)
        if (!sums || is_summed(&streamed[k])) begin(&streamed[k], topology, &whole[k]);
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = seed_of(i);
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, label, 0);
        plait_error    err = { 0 };
        size_t         k;
        char           what[200];
        do k = pli_random_below(&r, STREAMED);
        while (sums && !is_summed(&streamed[k]));
        story s = story_streamed(&streamed[k], topology);
        s.servers = !sums && pli_random_below(&r, 3) == 0 ? 2 : 0;
        take_spares(&s, (int32_t)pli_random_below(&r, 3));
        draw_death(&s, &r, &whole[k]);
        draw_second(&s, &r);
        snprintf(what, sizeof what, "seed %llu (%s, %s): rank %d of %d (%d spare) + %d at call %lld of rank %d, then "
                 "rank %d at %lld", (unsigned long long)seed, streamed[k].name, topology, (int)s.victim, (int)s.workers,
                 (int)s.opts.spares, (int)s.servers, (long long)s.at, (int)s.killer, (int)s.second,
                 (long long)s.second_at);
        if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", what);
        if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
        check_streamed(&s, &streamed[k], &whole[k], what);
        died += atomic_load(&s.told) > 0;
    }
    if (only_seed() == NULL && died * 2 < runs)
        fail_msg("only %lld of %lld deaths were told", (long long)died, (long long)runs);
    pli_free(whole);
}

static void test_any_rank_may_die(void **unused) {
    (void)unused;
    die("ps", 51);
}

static void test_any_worker_may_die_where_sums_go_on(void **unused) {
    (void)unused;
    die("allreduce", 52);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_any_rank_may_die),
                                        cmocka_unit_test(test_any_worker_may_die_where_sums_go_on) };
    write_files();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_files();
    return failed;
}
