/* Tests that under bsp the model is the same for every topology, every number of workers and of threads, and every
 * update rule. */
#include <unistd.h>
#include <zlib.h>

#include "learn/train.h"

/* The thread sanitizer slows each access, and races are between clocks, not rows: under it fewer rows are enough, with
 * several clocks of every pair and rule. */
#ifdef __SANITIZE_THREAD__
enum { A9A_ROWS = 2000, POINTS = 1000, FEATURES = 16000, SPREAD = 7 };
#else
enum { A9A_ROWS = 32561, POINTS = 3000, FEATURES = 200000, SPREAD = 9 };
#endif

static const char *const rules[] = { "sgd", "momentum", "adagrad", "adam", "ftrl", "lbfgs" };
static const char *const topologies[] = { "local", "allreduce", "ps" };
static const int32_t     workers[] = { 1, 2, 4 };

static void compare_all(const char *rule, const plait_data *memory, const plait_data_opts *files, const char *model,
                        const char *normalize) {
    training first = { .model = NULL };
    plait_train_opts_init(&first.opts);
    first.opts.optimizer = rule;
    first.opts.memory = memory;
    first.opts.data = files;
    first.opts.model = model;
    first.opts.epochs = strcmp(rule, "lbfgs") == 0 ? 5 : 2;
    first.opts.normalize = normalize;
    first.opts.batch = 200;
    if (strcmp(model, "squared") == 0) first.opts.learning_rate = 0.01;
    assert_int_equal(train(&first, 1, 1), PLAIT_OK);
    for (size_t t = 0; t < 3; t++)
        for (size_t w = 0; w < 3; w++)
            for (int32_t threads = 1; threads <= (workers[w] == 1 ? 2 : 1); threads++) {
                training other = { .opts = first.opts };
                other.opts.topology = topologies[t];
                if (train(&other, workers[w], threads) != PLAIT_OK) fail_msg("%s: %s", topologies[t], other.error.text);
                double off = distance(other.model, first.model);
                if (!(off <= 1e-5))
                    fail_msg("%s x %s x %d workers x %d threads: off by %g", rule, topologies[t], (int)workers[w],
                             (int)threads, off);
                if (t == 0 && w == 0 && strcmp(other.report.model_hash, first.report.model_hash) != 0)
                    fail_msg("%s: threads change the model", rule);
                if (strcmp(rule, "lbfgs") != 0)
                    assert_near(other.report.progressive_loss, first.report.progressive_loss,
                                1e-4 * first.report.progressive_loss);
                plait_model_destroy(&other.model);
            }
    plait_model_destroy(&first.model);
}


/* Writes the first rows of a packed file to a file of their own. */
static void write_part(const char *path, int64_t rows, char name[32]) {
    char line[4096];
    strcpy(name, "same_model_XXXXXX");
    gzFile from = gzopen(path, "rb");
    int    fd = mkstemp(name);
    assert_true(from != NULL && fd >= 0);
    FILE *to = fdopen(fd, "w");
    for (int64_t i = 0; i < rows && gzgets(from, line, sizeof line) != NULL; i++) fputs(line, to);
    fclose(to);
    gzclose(from);
}

static void test_a9a(void **state) {
    (void)state;
    char            path[1024], part[32];
    const char     *paths[] = { part };
    write_part(source_file("tests/data/a9a/a9a.gz", path), A9A_ROWS, part);
    plait_data_opts files;
    plait_data     *memory;
    plait_data_opts_init(&files);
    files.paths = paths;
    files.n_paths = 1;
    assert_int_equal(plait_data_read(&files, &memory, NULL), PLAIT_OK);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) compare_all(rules[i], memory, NULL, "logistic", "auto");
    compare_all("adagrad", NULL, &files, "logistic", "auto"); /* each rank reads its own blocks */
    unlink(part);
    plait_data_destroy(&memory);
}

static void test_dense_and_scaled(void **state) {
    (void)state;
    plait_data *data = points(POINTS, 6, 3, 7);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) compare_all(rules[i], data, NULL, "logistic", "auto");
    plait_data_destroy(&data);
    data = points(POINTS, 6, 0, 8);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) compare_all(rules[i], data, NULL, "squared", "auto");
    plait_data_destroy(&data);
}

/* Many features, few of them in a batch: they are pushed by key. */
static void test_keyed(void **state) {
    (void)state;
    enum { ROWS = 2000, PER_ROW = 12 };
    int64_t  *start = pli_array(ROWS + 1, sizeof *start);
    uint32_t *column = pli_array(ROWS * PER_ROW, sizeof *column);
    double   *label = pli_array(ROWS, sizeof *label);
    for (int64_t i = 0; i < ROWS; i++) {
        pli_random r = pli_random_at(3, PLI_RANDOM_DATA, 0, (uint64_t)i);
        start[i] = i * PER_ROW;
        for (int64_t e = 0; e < PER_ROW; e++) /* one feature of each of PER_ROW ranges, low ones more often */
            column[i * PER_ROW + e] = (uint32_t)(e * (FEATURES / PER_ROW) + (int64_t)exp(pli_random_f64(&r) * SPREAD));
        label[i] = column[i * PER_ROW] % 3 == 0 ? 1 : -1;
    }
    start[ROWS] = ROWS * PER_ROW;
    plait_data *data = NULL;
    assert_int_equal(plait_data_from_csr(ROWS, FEATURES, start, column, NULL, label, NULL, &data, NULL), PLAIT_OK);
    for (size_t i = 0; i + 1 < sizeof rules / sizeof *rules; i++) compare_all(rules[i], data, NULL, "logistic", "auto");
    plait_data_destroy(&data);
    pli_free(start);
    pli_free(column);
    pli_free(label);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_a9a), cmocka_unit_test(test_dense_and_scaled),
                                        cmocka_unit_test(test_keyed) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
