/* Tests clusters: Lloyd's passes match a plain loop from the same first centres, and with exact sums have the same bits
 * under every topology, with any number of workers. Also empty clusters, weights, mini-batches under every policy,
 * answers, files, checkpoints. */
#include "learn/train.h"

#include <unistd.h>

enum { ROWS = 900, COLS = 6, K = 5 };

static float  x[ROWS * COLS];
static double weight[ROWS];

/* Clusters of unequal size, far from zero; a column is zero in some rows. */
static plait_data *make_data(bool weighted) {
    plait_data *data = NULL;
    for (int64_t i = 0; i < ROWS; i++) {
        pli_random    r = pli_random_at(11, PLI_RANDOM_DATA, 0, (uint64_t)i);
        const int64_t heap = (int64_t)(pli_random_f64(&r) * pli_random_f64(&r) * (K + 2));
        for (int64_t j = 0; j < COLS; j++)
            x[i * COLS + j] = (float)(20 + 6 * cos((double)(heap * 7 + j * 3)) + pli_random_normal(&r));
        if (i % 5 == 0) x[i * COLS + 2] = 0;
        weight[i] = weighted ? (double)(i % 4) : 1;
    }
    assert_int_equal(plait_data_from_dense(ROWS, COLS, x, NULL, weighted ? weight : NULL, &data, NULL), PLAIT_OK);
    return data;
}

static training kmeans_of(const plait_data *data, const plait_learner_setting *settings, int32_t n) {
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = t.opts.test_memory = data;
    t.opts.model = "kmeans";
    t.opts.settings = settings;
    t.opts.n_settings = n;
    return t;
}

static double figure(const plait_report *report, const char *name) {
    for (int32_t i = 0; i < report->n_figures; i++)
        if (strcmp(report->figures[i].name, name) == 0) return report->figures[i].value;
    return NAN;
}

static const float *centres_of(const plait_model *model, int64_t k) {
    int64_t      shape[2] = { 0 };
    const float *centres = plait_model_value(model, "centres", PLAIT_F32, 2, shape);
    assert_non_null(centres);
    assert_int_equal(shape[0], k);
    assert_int_equal(shape[1], COLS);
    return centres;
}

/* --- beside a plain loop ------------------------------------------------------------------------------------------ */

static double distance_to(const double *centre, int64_t row) {
    double sum = 0;
    for (int64_t l = 0; l < COLS; l++) sum += pow((double)x[row * COLS + l] - centre[l], 2);
    return sum;
}

/* Lloyd's algorithm as a plain loop; returns the inertia of the last centres. */
static double lloyd(double centre[K][COLS], int passes) {
    double cost = 0;
    for (int pass = 0; pass <= passes; pass++) {
        double sum[K][COLS] = { { 0 } }, mass[K] = { 0 };
        cost = 0;
        for (int64_t i = 0; i < ROWS; i++) {
            int64_t best = 0;
            for (int64_t j = 1; j < K; j++)
                if (distance_to(centre[j], i) < distance_to(centre[best], i)) best = j;
            cost += weight[i] * distance_to(centre[best], i);
            mass[best] += weight[i];
            for (int64_t l = 0; l < COLS; l++) sum[best][l] += weight[i] * (double)x[i * COLS + l];
        }
        for (int64_t j = 0; pass < passes && j < K; j++)
            for (int64_t l = 0; mass[j] > 0 && l < COLS; l++) centre[j][l] = sum[j][l] / mass[j];
    }
    return cost;
}

static char centres_file[40];

/* The first centres, as a file of rows. */
static void write_centres(const double *centre, int64_t k) {
    strcpy(centres_file, "/tmp/plait-kmeans-XXXXXX");
    const int fd = mkstemp(centres_file);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    for (int64_t i = 0; i < k * COLS; i++) fprintf(file, "%.9g%c", centre[i], i % COLS == COLS - 1 ? '\n' : ',');
    assert_int_equal(fclose(file), 0);
}

static void test_passes_are_those_of_a_plain_loop(void **state) {
    (void)state;
    for (int weighted = 0; weighted < 2; weighted++) {
        plait_data *data = make_data(weighted != 0);
        double      first[K][COLS], centre[K][COLS];
        for (int64_t j = 0; j < K; j++)
            for (int64_t l = 0; l < COLS; l++) first[j][l] = (double)x[(j * 100 + 7) * COLS + l];
        write_centres(first[0], K);
        const plait_learner_setting from[] = { { "clusters", "5" }, { "centres", centres_file } };
        for (int64_t passes = 1; passes <= 12; passes += 11)
            for (int32_t workers = 1; workers <= 4; workers += 3) {
                training t = kmeans_of(data, from, 2);
                t.opts.epochs = passes;
                t.opts.tolerance = 0;
                must_train(&t, workers);
                memcpy(centre, first, sizeof first);
                const double cost = lloyd(centre, (int)passes);
                const float *mine = centres_of(t.model, K);
                for (int64_t i = 0; i < K * COLS; i++) assert_near((double)mine[i], centre[i / COLS][i % COLS], 1e-4);
                assert_near(figure(&t.report, "inertia"), cost, 1e-6 * cost);
                assert_near(figure(&t.report, "test_inertia"), cost, 1e-6 * cost);
                assert_near(figure(&t.report, "empty"), 0, 0);
                const double heavy = weighted ? 1.5 : 1;
                assert_near(t.report.objective, cost / (heavy * ROWS), 1e-6 * cost);
                plait_model_destroy(&t.model);
            }
        unlink(centres_file);
        plait_data_destroy(&data);
    }
}

/* --- first centres ------------------------------------------------------------------------------------------------ */

static void hash_of(training *t, int32_t workers, int32_t threads, char hex[65]) {
    if (train(t, workers, threads) != PLAIT_OK) fail_msg("%s", t->error.text);
    plait_model_hash(t->model, hex);
    plait_model_destroy(&t->model);
}

static const plait_learner_setting five[] = { { "clusters", "5" } };

static void test_exact_sums_have_the_same_bits(void **state) {
    static const char *const topologies[] = { "local", "allreduce", "ps", "hybrid" };
    plait_data              *data = make_data(true);
    (void)state;
    for (int64_t batch = 0; batch <= 200; batch += 200) {
        char first[65] = "", hex[65];
        for (size_t i = 0; i < sizeof topologies / sizeof *topologies; i++)
            for (int32_t workers = 1; workers <= 4; workers++) {
                training t = kmeans_of(data, five, 1);
                t.opts.exact = 1;
                t.opts.batch = batch;
                t.opts.topology = topologies[i];
                hash_of(&t, workers, 1 + workers % 2, hex);
                if (first[0] == '\0') memcpy(first, hex, sizeof first);
                assert_string_equal(hex, first);
            }
    }
    plait_data_destroy(&data);
}

/* Sums that are not exact end within rounding, and do not depend on the number of threads. */
static void test_plain_sums_have_the_same_bits_by_any_threads(void **state) {
    plait_data *data = make_data(false);
    char        one[65], three[65];
    double      inertia = 0;
    (void)state;
    for (int32_t workers = 1; workers <= 3; workers++) {
        training t = kmeans_of(data, five, 1);
        hash_of(&t, workers, 1, one);
        hash_of(&t, workers, 3, three);
        assert_string_equal(one, three);
        if (workers == 1) inertia = figure(&t.report, "inertia");
        assert_near(figure(&t.report, "inertia"), inertia, 1e-9 * inertia);
    }
    plait_data_destroy(&data);
}

/* From any seed, the result is near the best of all. */
static void test_first_centres_are_good(void **state) {
    plait_data *data = make_data(false);
    double      least = INFINITY, most = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        training t = kmeans_of(data, five, 1);
        t.opts.seed = seed;
        must_train(&t, 2);
        least = fmin(least, figure(&t.report, "inertia"));
        most = fmax(most, figure(&t.report, "inertia"));
        assert_true(t.report.converged == 1);
        plait_model_destroy(&t.model);
    }
    assert_true(most <= 1.01 * least);
    plait_data_destroy(&data);
}

static void test_begins_from_a_model(void **state) {
    plait_data *data = make_data(false);
    char        path[] = "/tmp/plait-kmeans-XXXXXX";
    (void)state;
    assert_true(close(mkstemp(path)) == 0);
    training t = kmeans_of(data, five, 1);
    must_train(&t, 1);
    const double inertia = figure(&t.report, "inertia");
    assert_int_equal(plait_model_save(t.model, path, NULL), PLAIT_OK);
    plait_model_destroy(&t.model);
    t.opts.init_model = path;
    t.opts.epochs = 1;
    must_train(&t, 2);
    assert_true(figure(&t.report, "inertia") <= inertia * (1 + 1e-9));
    plait_model_destroy(&t.model);
    t.opts.settings = NULL;
    t.opts.n_settings = 0;
    assert_int_equal(train(&t, 2, 1), PLAIT_EMISMATCH);
    unlink(path);
    plait_data_destroy(&data);
}

/* --- empty clusters ----------------------------------------------------------------------------------------------- */

/* A centre without rows begins anew, at the same place with any number of workers. */
static void test_empty_clusters_are_refilled(void **state) {
    plait_data *data = make_data(false);
    char        hex[65], first[65] = "";
    double      centre[K][COLS];
    (void)state;
    for (int64_t i = 0; i < K * COLS; i++) centre[i / COLS][i % COLS] = i < 2 * COLS ? (double)x[i] : 1e6;
    write_centres(centre[0], K);
    const plait_learner_setting from[] = { { "clusters", "5" }, { "centres", centres_file } };
    for (int32_t workers = 1; workers <= 4; workers++) {
        training t = kmeans_of(data, from, 2);
        t.opts.exact = 1;
        hash_of(&t, workers, 2, hex);
        if (workers == 1) memcpy(first, hex, sizeof first);
        assert_string_equal(hex, first);
        assert_near(figure(&t.report, "empty"), 0, 0);
    }
    unlink(centres_file);
    plait_data_destroy(&data);
}

/* With fewer distinct rows than clusters the run ends, and says that some clusters are empty. */
static void test_fewer_places_than_clusters(void **state) {
    float       few[12] = { 1, 2, 1, 2, 1, 2, 7, 8, 7, 8, 1, 2 };
    plait_data *data = NULL;
    (void)state;
    assert_int_equal(plait_data_from_dense(6, 2, few, NULL, NULL, &data, NULL), PLAIT_OK);
    const plait_learner_setting four[] = { { "clusters", "4" } }, seven[] = { { "clusters", "7" } };
    training                    t = kmeans_of(data, four, 1);
    must_train(&t, 2);
    assert_near(figure(&t.report, "inertia"), 0, 0);
    assert_near(figure(&t.report, "empty"), 2, 0);
    plait_model_destroy(&t.model);
    t = kmeans_of(data, seven, 1);
    assert_int_equal(train(&t, 1, 1), PLAIT_EINVAL);
    plait_data_destroy(&data);
}

/* --- mini-batches ------------------------------------------------------------------------------------------------- */

static void test_mini_batches_go_under_every_policy(void **state) {
    static const char *const pairs[][2] = {
        { "local", "bsp" },         { "local", "async" },     { "local", "ssp:2" },          { "allreduce", "bsp" },
        { "ps", "bsp" },            { "ps", "ssp:2" },        { "ps", "essp:1" },            { "ps", "asp:4:20" },
        { "ps", "async" },          { "ps", "sequential" },   { "allreduce", "bounded-delay:2" },
        { "ps", "bounded-delay:1" }, { "ps", "downpour:3:2" }, { "hybrid", "bsp" },          { "ps", "vap:1e9" },
        { "gossip:ring", "bsp" },   { "gossip:exp", "async" },
    };
    plait_data *data = make_data(false);
    (void)state;
    training t = kmeans_of(data, five, 1);
    must_train(&t, 1);
    const double best = figure(&t.report, "inertia");
    plait_model_destroy(&t.model);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        t = kmeans_of(data, five, 1);
        t.opts.batch = 90;
        t.opts.epochs = 5;
        t.opts.topology = pairs[i][0];
        t.opts.consistency = pairs[i][1];
        if (train(&t, 3, 1) != PLAIT_OK) fail_msg("%s x %s: %s", pairs[i][0], pairs[i][1], t.error.text);
        if (!(figure(&t.report, "inertia") <= 1.1 * best))
            fail_msg("%s x %s: inertia %g, %g by passes", pairs[i][0], pairs[i][1], figure(&t.report, "inertia"), best);
        plait_model_destroy(&t.model);
    }
    plait_data_destroy(&data);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void test_answers(void **state) {
    static double label[ROWS], distance[ROWS * K];
    char          path[] = "/tmp/plait-kmeans-XXXXXX", saved[65], loaded[65];
    plait_data   *data = make_data(false);
    plait_model  *model = NULL;
    plait_report  report;
    (void)state;
    assert_true(close(mkstemp(path)) == 0);
    training t = kmeans_of(data, five, 1);
    must_train(&t, 1);
    assert_int_equal(plait_model_save(t.model, path, NULL), PLAIT_OK);
    assert_int_equal(plait_model_load(path, &model, NULL), PLAIT_OK);
    plait_model_hash(t.model, saved);
    plait_model_hash(model, loaded);
    assert_string_equal(saved, loaded);
    assert_int_equal(plait_model_width(model, PLAIT_ANSWER_PROBABILITIES), 0);
    assert_int_equal(plait_model_predict(model, data, 0, label, NULL), PLAIT_OK);
    assert_int_equal(plait_model_transform(model, data, distance, NULL), PLAIT_OK);
    assert_int_equal(plait_model_eval(model, data, &report, NULL), PLAIT_OK);
    const float *centres = centres_of(model, K);
    double       inertia = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        const int64_t nearest = (int64_t)label[i];
        for (int64_t j = 0; j < K; j++) {
            double centre[COLS];
            for (int64_t l = 0; l < COLS; l++) centre[l] = (double)centres[j * COLS + l];
            assert_near(distance[i * K + j], sqrt(distance_to(centre, i)), 1e-5);
            assert_true(distance[i * K + nearest] <= distance[i * K + j] + 1e-6);
        }
        inertia += distance[i * K + nearest] * distance[i * K + nearest];
    }
    assert_near(figure(&report, "inertia"), inertia, 1e-9 * inertia);
    assert_near(report.test_loss, inertia / ROWS, 1e-9 * inertia);
    plait_model_destroy(&model);
    plait_model_destroy(&t.model);
    unlink(path);
    plait_data_destroy(&data);
}

/* Predictions leave out a feature that the model does not know. */
static void test_unknown_features_are_left_out(void **state) {
    float        wide[2 * (COLS + 3)] = { 0 };
    double       with[2], without[2];
    plait_data  *data = make_data(false), *more = NULL, *plain = NULL;
    (void)state;
    for (int64_t i = 0; i < 2; i++)
        for (int64_t l = 0; l < COLS + 3; l++) wide[i * (COLS + 3) + l] = l < COLS ? x[i * COLS + l] : 1e6F;
    assert_int_equal(plait_data_from_dense(2, COLS + 3, wide, NULL, NULL, &more, NULL), PLAIT_OK);
    assert_int_equal(plait_data_from_dense(2, COLS, x, NULL, NULL, &plain, NULL), PLAIT_OK);
    training t = kmeans_of(data, five, 1);
    must_train(&t, 1);
    assert_int_equal(plait_model_predict(t.model, more, 0, with, NULL), PLAIT_OK);
    assert_int_equal(plait_model_predict(t.model, plain, 0, without, NULL), PLAIT_OK);
    assert_true(with[0] == without[0] && with[1] == without[1]);
    plait_model_destroy(&t.model);
    plait_data_destroy(&more);
    plait_data_destroy(&plain);
    plait_data_destroy(&data);
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

/* The run that is resumed ended early, as if it was killed. */
static void test_goes_on_from_a_checkpoint(void **state) {
    plait_data *data = make_data(false);
    double      first[20 * COLS];
    (void)state;
    for (int64_t i = 0; i < 20 * COLS; i++) first[i] = (double)x[i];
    write_centres(first, 20);
    const plait_learner_setting slow[] = { { "clusters", "20" }, { "centres", centres_file } };
    for (int64_t batch = 0; batch <= 200; batch += 200) {
        char dir[] = "/tmp/plait-kmeans-XXXXXX", whole[65], resumed[65], command[64];
        assert_non_null(mkdtemp(dir));
        training t = kmeans_of(data, slow, 2);
        t.opts.exact = 1;
        t.opts.tolerance = 0;
        t.opts.batch = batch;
        hash_of(&t, 2, 1, whole);
        const int64_t clocks = t.report.clocks;
        t.opts.checkpoint = dir;
        t.opts.checkpoint_clocks = 1;
        t.opts.epochs = 3;
        must_train(&t, 3);
        assert_true(t.report.clocks < clocks);
        plait_model_destroy(&t.model);
        training again = kmeans_of(data, slow, 2);
        again.opts.tolerance = 0;
        again.opts.exact = 1;
        again.opts.batch = batch;
        again.opts.resume = dir;
        hash_of(&again, 4, 1, resumed);
        assert_int_equal(again.report.clocks, clocks);
        assert_string_equal(resumed, whole);
        snprintf(command, sizeof command, "rm -rf %s", dir);
        assert_int_equal(system(command), 0);
    }
    unlink(centres_file);
    plait_data_destroy(&data);
}

/* --- refused ------------------------------------------------------------------------------------------------------ */

static void refuses(const training *as, plait_status status, const char *text) {
    training t = *as;
    assert_int_equal(train(&t, 2, 1), status);
    if (strstr(t.error.text, text) == NULL) fail_msg("'%s' says nothing of '%s'", t.error.text, text);
}

static void test_refusals(void **state) {
    static const plait_learner_setting none[] = { { "clusters", "0" } }, no_file[] = { { "centres", "/tmp/none" } };
    plait_data *data = make_data(false);
    (void)state;
    training t = kmeans_of(data, none, 1);
    refuses(&t, PLAIT_EINVAL, "expected an integer from 1");
    t = kmeans_of(data, no_file, 1);
    refuses(&t, PLAIT_EIO, "/tmp/none");
    t = kmeans_of(data, five, 1);
    t.opts.topology = "ps";
    t.opts.consistency = "ssp:2";
    refuses(&t, PLAIT_EREFUSED, "bsp");
    t = kmeans_of(data, five, 1);
    t.opts.topology = "gossip:ring";
    refuses(&t, PLAIT_EREFUSED, "kmeans");
    t = kmeans_of(data, five, 1);
    t.opts.topology = "ps";
    t.opts.backup = 1;
    refuses(&t, PLAIT_EREFUSED, "backup");
    write_centres((double[COLS]){ 1, 2, 3, 4, 5, 6 }, 1);
    const plait_learner_setting one_row[] = { { "clusters", "5" }, { "centres", centres_file } };
    t = kmeans_of(data, one_row, 2);
    refuses(&t, PLAIT_EINVAL, "one is needed for each of 5 clusters");
    unlink(centres_file);
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes_are_those_of_a_plain_loop),
        cmocka_unit_test(test_exact_sums_have_the_same_bits),
        cmocka_unit_test(test_plain_sums_have_the_same_bits_by_any_threads),
        cmocka_unit_test(test_first_centres_are_good),
        cmocka_unit_test(test_begins_from_a_model),
        cmocka_unit_test(test_empty_clusters_are_refilled),
        cmocka_unit_test(test_fewer_places_than_clusters),
        cmocka_unit_test(test_mini_batches_go_under_every_policy),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_unknown_features_are_left_out),
        cmocka_unit_test(test_goes_on_from_a_checkpoint),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
