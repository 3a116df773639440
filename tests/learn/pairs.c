/* Tests that a9a with the defaults comes near the optimum under every pair of topology and consistency.
 *
 * If nobody waits for a slow worker, the machine decides how uneven the workers are: on a busy machine some are done
 * before another has begun, and then the last worker's quarter of the rows has the last word. What this costs at most
 * was measured in simulated time (workers 100, 10^4 and 10^6 times as slow as the first): 1.0 % of the objective under
 * async and vap, 1.4 % under downpour; accuracy stays at 0.8478. So on threads these pairs must only meet SKEWED. They
 * must come near the optimum on simulated hosts that are alike but for their jitter, where a run repeats. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "learn/train.h"

/* The least (1/n) sum log(1 + exp(-y w x)) + ||w||^2 / 2n without intercept: LIBLINEAR's -s 0, C = 1. */
#define OPTIMUM 0.32337958

typedef struct bounds {
    double objective, accuracy; /* objective: at most so many times the optimum; accuracy: at least */
} bounds;
enum { SKIP = 77 };
static const bounds NEAR = { 1.01, 0.848 }, SKEWED = { 1.02, 0.846 }, SOLVED = { 1.0002, 0.848 };

static const struct pair { const char *topology, *consistency;
} pairs[] = {
    { "local", "bsp" },
    { "local", "ssp:2" },
    { "local", "async" },
    { "allreduce", "bsp" },
    { "ps", "bsp" },
    { "ps", "ssp:2" },
    { "ps", "async" },
    { "local", "asp:4:50" },
    { "local", "bounded-delay:0" },
    { "local", "bounded-delay:2" },
    { "local", "sequential" },
    { "local", "vap:0.02" },
    { "ps", "essp:2" },
    { "ps", "asp:4:50" },
    { "ps", "bounded-delay:0" },
    { "ps", "bounded-delay:2" },
    { "ps", "sequential" },
    { "ps", "vap:0.02" },
    { "ps", "vap:0.02:weak" },
    { "ps", "downpour:4:4" },
    { "ps", "downpour:1:4" },
    { "allreduce", "bounded-delay:0" },
    { "allreduce", "bounded-delay:2" },
    { "hybrid", "bsp" },
    { "ps", "local-sgd:8" },
    { "allreduce", "local-sgd:8" },
};

static plait_data *read_file(const char *name, const plait_data_opts *from) {
    char            path[1024];
    const char     *paths[] = { source_file(name, path) };
    plait_data_opts opts = *from;
    plait_data     *data = NULL;
    plait_error     error;
    opts.paths = paths;
    opts.n_paths = 1;
    if (plait_data_read(&opts, &data, &error) != PLAIT_OK) fail_msg("%s", error.text);
    return data;
}

static bool waits_for_nobody(const struct pair *pair) {
    static const char *const names[] = { "async", "vap", "downpour" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(pair->consistency, names[i], strlen(names[i])) == 0) return true;
    return false;
}

static void begin(training *t, const struct pair *pair, const plait_data *a9a, const plait_data *test) {
    *t = (training){ .model = NULL };
    plait_train_opts_init(&t->opts);
    t->opts.memory = a9a;
    t->opts.topology = pair->topology;
    t->opts.consistency = pair->consistency;
    t->opts.no_intercept = 1;
    t->opts.test_memory = test;
}

static bool is_within(const training *t, bounds within) {
    const plait_report *r = &t->report;
    printf("%-9s %-13s objective %.6f, %.3f %% above the optimum; test loss %.5f, accuracy %.4f, %.2f s\n", r->topology,
           r->consistency, r->objective, (r->objective / OPTIMUM - 1) * 100, r->test_loss, r->test_accuracy,
           r->train_seconds);
    fflush(stdout);
    return r->objective > OPTIMUM * 0.99999 && r->objective < OPTIMUM * within.objective &&
           r->test_accuracy >= within.accuracy;
}

static void test_every_pair(void **state) {
    (void)state;
    plait_data_opts from;
    plait_data_opts_init(&from);
    plait_data *a9a = read_file("tests/data/a9a/a9a.gz", &from), *test = read_file("tests/data/a9a/a9a.t.gz", &from);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        for (int by_rule = 0; by_rule <= 1; by_rule++) { /* else as auto chooses */
            training t;
            begin(&t, &pairs[i], a9a, test);
            t.opts.optimizer = by_rule ? "adagrad" : NULL;
            if (train(&t, 4, 1) != PLAIT_OK)
                fail_msg("%s x %s: %s", pairs[i].topology, pairs[i].consistency, t.error.text);
            assert_true(is_within(&t, !by_rule ? SOLVED : waits_for_nobody(&pairs[i]) ? SKEWED : NEAR));
            assert_int_equal(t.report.converged, by_rule ? -1 : 1);
            assert_int_equal(t.report.optimizer_why[0] == '\0', by_rule);
            assert_string_equal(t.report.topology, pairs[i].topology);
            assert_string_equal(t.report.consistency, pairs[i].consistency);
            plait_model_destroy(&t.model);
        }
    }
    plait_data_destroy(&a9a);
    plait_data_destroy(&test);
}

/* Runs in a process of its own, since SimGrid takes one platform a process. 0: within the bounds. */
static int simulate(const struct pair *pair, const plait_data *a9a, const plait_data *test) {
    static const char jitter[] = "version: 1\nhosts: [{count: 4}]\nevents:\n  - jitter: {sigma: 0.5}\n";
    char              path[32];
    training          t;
    plait_comm_opts   c;
    int               fd = memfd_create("cluster", 0);
    if (write(fd, jitter, sizeof jitter - 1) != sizeof jitter - 1) return 1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    begin(&t, pair, a9a, test);
    t.opts.optimizer = "adagrad";
    plait_comm_opts_init(&c);
    c.transport = "sim";
    c.workers = 4;
    c.threads = 1;
    c.cluster = path;
    plait_status status = plait_comm_run(&c, train_body, &t, &t.error);
    if (status == PLAIT_EMODULE) return SKIP;
    if (status < 0) printf("%s x %s: %s\n", pair->topology, pair->consistency, t.error.text);
    return status == PLAIT_OK && is_within(&t, NEAR) ? 0 : 1;
}

static void test_who_waits_for_nobody_among_equals(void **state) {
    (void)state;
    plait_data_opts from;
    plait_data_opts_init(&from);
    plait_data *a9a = read_file("tests/data/a9a/a9a.gz", &from), *test = read_file("tests/data/a9a/a9a.t.gz", &from);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (!waits_for_nobody(&pairs[i]) || strcmp(pairs[i].topology, "ps") != 0) continue;
        int   code = -1;
        pid_t child = fork();
        if (child == 0) _exit(simulate(&pairs[i], a9a, test));
        assert_int_equal(waitpid(child, &code, 0), child);
        if (code != 0 && WIFEXITED(code) && WEXITSTATUS(code) == SKIP)
            print_message("skipped: no SimGrid (script/bootstrap --all)\n");
        else assert_int_equal(code, 0);
    }
    plait_data_destroy(&a9a);
    plait_data_destroy(&test);
}

static void test_defaults(void **state) {
    (void)state;
    plait_data_opts from;
    plait_data_opts_init(&from);
    plait_data *a9a = read_file("tests/data/a9a/a9a.gz", &from), *test = read_file("tests/data/a9a/a9a.t.gz", &from);
    training    t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = a9a;
    t.opts.test_memory = test;
    assert_int_equal(train(&t, 1, 2), PLAIT_OK);
    assert_true(t.report.test_accuracy >= 0.848);
    assert_true(t.report.test_loss <= 0.3245);
    assert_near(t.report.test_auc, 0.9022, 1e-3);
    assert_string_equal(t.report.optimizer, "lbfgs");
    assert_int_equal(t.report.rows, 32561);
    assert_int_equal(t.report.features, 123);
    assert_int_equal(t.report.classes, 2);
    plait_model_destroy(&t.model);
    plait_data_destroy(&a9a);
    plait_data_destroy(&test);
}

/* A refusal names the pair and what to take instead. */
static void test_refused(void **state) {
    (void)state;
    plait_data *data = points(200, 3, 2, 1);
    training    t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.topology = "allreduce";
    t.opts.consistency = "ssp:2";
    assert_int_equal(train(&t, 2, 1), PLAIT_EREFUSED);
    assert_non_null(strstr(t.error.text, "nearest"));
    t.opts.topology = NULL;
    t.opts.optimizer = "lbfgs";
    assert_int_equal(train(&t, 2, 1), PLAIT_EREFUSED);
    assert_non_null(strstr(t.error.text, "bsp"));
    t.opts.consistency = NULL;
    t.opts.model = "quantile";
    assert_int_equal(train(&t, 1, 1), PLAIT_EREFUSED);
    t.opts.model = "logistic";
    t.opts.optimizer = "adagard";
    assert_int_equal(train(&t, 1, 1), PLAIT_ENAME);
    assert_non_null(strstr(t.error.text, "adagrad"));
    t.opts.optimizer = NULL;
    t.opts.patience = 2;
    assert_int_equal(train(&t, 1, 1), PLAIT_EINVAL);
    t.opts.patience = 0;
    t.opts.l1 = -1;
    assert_int_equal(train(&t, 1, 1), PLAIT_EINVAL);
    t.opts.l1 = 0;
    t.opts.class_weight = "7:2";
    assert_int_equal(train(&t, 1, 1), PLAIT_ENAME);
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_who_waits_for_nobody_among_equals),
                                        cmocka_unit_test(test_every_pair), cmocka_unit_test(test_defaults),
                                        cmocka_unit_test(test_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
