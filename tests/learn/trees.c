/* Tests boosted trees: a planted tree is found; the bits are the same for each number of workers, topology and number
 * of threads, for dense and sparse rows; a missing value takes the better side; early ends; checkpoints; refusals. */
#include "learn/train.h"

#include <unistd.h>

enum { ROWS = 1200, COLS = 5 };

static float  x[ROWS * COLS];
static double label[ROWS];

/* x0 <= 0.5 ? (x1 <= 0.25 ? 1 : 5) : (x2 <= 0.75 ? -2 : -9), by equal steps; other columns say nothing. */
static double planted(const float *row) {
    return row[0] <= 0.5f ? (row[1] <= 0.25f ? 1 : 5) : row[2] <= 0.75f ? -2 : -9;
}

/* kind 0: the planted tree; 1: two classes, with noise; 2: four classes, mostly zeros. */
static plait_data *make_data(int kind) {
    plait_data *data = NULL;
    for (int64_t i = 0; i < ROWS; i++) {
        pli_random r = pli_random_at(5, PLI_RANDOM_DATA, (uint64_t)kind, (uint64_t)i);
        for (int64_t j = 0; j < COLS; j++) {
            const double u = pli_random_f64(&r);
            x[i * COLS + j] = kind == 2 && u < 0.9 ? 0 : (float)(floor(u * 64) / 64);
        }
        const float *row = x + i * COLS;
        label[i] = planted(row);
        if (kind == 1) label[i] = label[i] + 4 * pli_random_normal(&r) > 0;
        if (kind == 2) label[i] = (row[0] > 0) + 2 * (row[1] > 0 || pli_random_f64(&r) < 0.2);
    }
    assert_int_equal(plait_data_from_dense(ROWS, COLS, x, label, NULL, &data, NULL), PLAIT_OK);
    return data;
}

static training trees_of(const plait_data *data, const plait_learner_setting *settings, int32_t n) {
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = t.opts.test_memory = data;
    t.opts.model = "gbdt";
    t.opts.epochs = 8;
    t.opts.settings = settings;
    t.opts.n_settings = n;
    return t;
}

/* --- a planted tree ----------------------------------------------------------------------------------------------- */

static void a_planted_tree_is_found(void **state) {
    static const plait_learner_setting grown[][2] = { { { "leaves", "4" }, { "grow", "leaf" } },
                                                      { { "depth", "2" }, { "grow", "depth" } } };
    plait_data *data = make_data(0);
    (void)state;
    for (int i = 0; i < 2; i++) {
        training t = trees_of(data, grown[i], 2);
        t.opts.loss = "squared";
        t.opts.learning_rate = 1;
        t.opts.l2 = 0;
        t.opts.epochs = 1;
        must_train(&t, 1);
        assert_true(t.report.train_loss < 1e-12);
        assert_true(t.report.test_loss < 1e-12);
        assert_true(t.report.clocks == (i == 0 ? 3 : 2));
        for (int64_t j = 0; j < COLS; j++) assert_near(plait_model_weight(t.model, j, 1), j < 3 ? 1 : 0, 0);
        assert_true(plait_model_weight(t.model, 0, 0) > plait_model_weight(t.model, 1, 0));
        plait_model_destroy(&t.model);
    }
    plait_data_destroy(&data);
}

/* --- the same bits ------------------------------------------------------------------------------------------------ */

static void same(training *t, int32_t workers, int32_t threads, char hash[65]) {
    if (train(t, workers, threads) != PLAIT_OK) fail_msg("%s", t->error.text);
    if (hash[0] == '\0') memcpy(hash, t->report.model_hash, 65);
    assert_string_equal(t->report.model_hash, hash);
    plait_model_destroy(&t->model);
}

static void bits_do_not_depend_on_the_workers(void **state) {
    static const plait_learner_setting drawn[] = { { "subsample", "0.7" }, { "colsample", "0.6" }, { "leaves", "7" } };
    static const plait_learner_setting level[] = { { "grow", "depth" }, { "depth", "7" }, { "min-rows", "2" } };
    static const char *const topologies[] = { "local", "allreduce", "ps" };
    static const int32_t     workers[] = { 1, 2, 3, 4, 8 };
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        plait_data *data = make_data(kind);
        for (int way = 0; way < 2; way++) {
            training t = trees_of(data, way == 0 ? drawn : level, 3);
            char     hash[65] = "";
            if (kind == 0) t.opts.loss = "huber";
            if (kind == 1) t.opts.validation = "0.2";
            for (int i = 0; i < 15; i++) {
                t.opts.topology = topologies[i / 5];
                t.opts.exact = i % 2;
                same(&t, workers[i % 5], 1, hash);
            }
            t.opts.topology = "local";
            same(&t, 1, 3, hash);
            t.opts.seed = 1;
            if (way == 1 && kind != 1) continue; /* nothing is drawn */
            if (train(&t, 1, 1) != PLAIT_OK) fail_msg("%s", t.error.text);
            assert_string_not_equal(t.report.model_hash, hash);
            plait_model_destroy(&t.model);
        }
        plait_data_destroy(&data);
    }
}

static void each_loss_falls(void **state) {
    static const char *const losses[] = { "squared", "huber", "quantile", "poisson" };
    plait_data              *data = make_data(0);
    (void)state;
    for (int64_t i = 0; i < ROWS; i++) label[i] = fabs(label[i]); /* poisson takes none below 0 */
    plait_data_destroy(&data);
    assert_int_equal(plait_data_from_dense(ROWS, COLS, x, label, NULL, &data, NULL), PLAIT_OK);
    for (int i = 0; i < 4; i++) {
        training t = trees_of(data, NULL, 0);
        t.opts.loss = losses[i];
        t.opts.epochs = 60;
        must_train(&t, 2);
        assert_true(t.report.train_loss < 0.1 * t.report.progressive_loss);
        plait_model_destroy(&t.model);
    }
    plait_data_destroy(&data);
}

/* --- validation --------------------------------------------------------------------------------------------------- */

static void patience_ends_at_the_best_round(void **state) {
    static const plait_learner_setting small[] = { { "min-rows", "1" } };
    plait_data *data = make_data(1);
    (void)state;
    training t = trees_of(data, small, 1);
    t.opts.validation = "0.3";
    t.opts.patience = 3;
    t.opts.epochs = 200;
    t.opts.learning_rate = 0.5;
    must_train(&t, 2);
    assert_true(t.report.stopped_early == 1);
    assert_true(t.report.epochs == t.report.best_epoch + 3);
    const double best = t.report.validation_loss;
    plait_model_destroy(&t.model);
    t.opts.patience = 0;
    t.opts.epochs = t.report.best_epoch;
    char hash[65];
    memcpy(hash, t.report.model_hash, sizeof hash);
    must_train(&t, 1); /* as many rounds without patience: the same trees */
    assert_string_equal(t.report.model_hash, hash);
    assert_near(t.report.validation_loss, best, 0);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
}

/* --- missing values ----------------------------------------------------------------------------------------------- */

/* A missing value is as good as 1 in column a, and as 0 in column b. The column's mean would be neither. */
static void write_missing(const char *path, int64_t rows) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "a,b,y\n");
    for (int64_t i = 0; i < rows; i++) {
        const int    a = (int)(i % 3), b = (int)(i / 3 % 3); /* 2: missing */
        const double y = (a == 0 ? 0 : 8) + (b == 1 ? 3 : 0);
        fprintf(f, a == 2 ? "NA," : "%d,", a);
        fprintf(f, b == 2 ? "," : "%d,", b);
        fprintf(f, "%g\n", y);
    }
    fclose(f);
}

static void a_missing_value_takes_the_better_side(void **state) {
    char            folder[] = "/tmp/plait_trees_XXXXXX", path[64], model[64];
    plait_data_opts files;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/rows.csv", folder);
    snprintf(model, sizeof model, "%s/model", folder);
    write_missing(path, 900);
    plait_data_opts_init(&files);
    const char *paths[] = { path };
    files.paths = paths;
    files.n_paths = 1;
    training t = trees_of(NULL, NULL, 0);
    t.opts.memory = t.opts.test_memory = NULL;
    t.opts.data = t.opts.test = &files;
    t.opts.loss = "squared";
    t.opts.learning_rate = 1;
    t.opts.l2 = 0;
    t.opts.epochs = 1;
    for (int cached = 0; cached < 3; cached++) { /* read, written, and read from the cache */
        files.cache = cached > 0;
        must_train(&t, 2);
        assert_true(t.report.train_loss < 1e-12 && t.report.test_loss < 1e-12);
        assert_int_equal(plait_model_save(t.model, model, NULL), PLAIT_OK);
        plait_model_destroy(&t.model);
    }
    plait_model *loaded = NULL;
    plait_data  *rows = NULL;
    double       score[900];
    files.cache = 0;
    assert_int_equal(plait_model_load(model, &loaded, NULL), PLAIT_OK);
    assert_int_equal(plait_model_read(loaded, &files, &rows, NULL), PLAIT_OK);
    assert_int_equal(plait_model_predict(loaded, rows, 0, score, NULL), PLAIT_OK);
    assert_near(score[0], 0, 1e-6);     /* a 0, b 0       */
    assert_near(score[2], 8, 1e-6);     /* a missing, b 0 */
    assert_near(score[2 + 6], 8, 1e-6); /* both missing   */
    assert_near(score[2 + 3], 11, 1e-6);
    plait_data_destroy(&rows);
    plait_model_destroy(&loaded);
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* --- monotone ----------------------------------------------------------------------------------------------------- */

/* How often the value falls along column j, or rises (sign -1), over all rows with 64 values put there. */
static int64_t turns(const plait_model *model, int64_t j, int sign) {
    enum { PLACES = 64, LINES = 10 };
    float       grid[PLACES * COLS];
    double      score[PLACES];
    int64_t     wrong = 0;
    plait_data *line = NULL;
    for (int64_t i = 0; i < LINES; i++) {
        for (int64_t p = 0; p < PLACES; p++) {
            memcpy(grid + p * COLS, x + i * COLS, COLS * sizeof *grid);
            grid[p * COLS + j] = (float)p / PLACES;
        }
        assert_int_equal(plait_data_from_dense(PLACES, COLS, grid, NULL, NULL, &line, NULL), PLAIT_OK);
        assert_int_equal(plait_model_predict(model, line, 1, score, NULL), PLAIT_OK);
        for (int64_t p = 1; p < PLACES; p++) wrong += sign * (score[p] - score[p - 1]) < 0;
        plait_data_destroy(&line);
    }
    return wrong;
}

/* Column 0 lowers the planted values, against the noise; column 1 raises them if column 0 is small. */
static void scores_only_rise_or_fall(void **state) {
    static const plait_learner_setting both[] = { { "monotone", "-0,+1" }, { "min-rows", "2" }, { "grow", "leaf" } };
    static const plait_learner_setting level[] = { { "monotone", "-0,+1" }, { "min-rows", "2" }, { "grow", "depth" } };
    plait_data *data = make_data(0);
    (void)state;
    for (int64_t i = 0; i < ROWS; i++) {
        pli_random r = pli_random_at(6, PLI_RANDOM_DATA, 0, (uint64_t)i);
        label[i] += 6 * pli_random_normal(&r);
    }
    plait_data_destroy(&data);
    assert_int_equal(plait_data_from_dense(ROWS, COLS, x, label, NULL, &data, NULL), PLAIT_OK);
    for (int way = 0; way < 2; way++) {
        char     hash[65] = "";
        training t = trees_of(data, way == 0 ? both : level, 3);
        t.opts.loss = "squared";
        t.opts.epochs = 15;
        for (int32_t workers = 1; workers < 4; workers++) same(&t, workers, 1, hash);
        must_train(&t, 1);
        assert_int_equal(turns(t.model, 0, -1), 0);
        assert_int_equal(turns(t.model, 1, 1), 0);
        assert_true(turns(t.model, 2, 1) > 0 && turns(t.model, 2, -1) > 0);
        plait_model_destroy(&t.model);
        t.opts.settings++; /* without */
        t.opts.n_settings--;
        must_train(&t, 1);
        assert_true(turns(t.model, 0, -1) > 0 && turns(t.model, 1, 1) > 0);
        plait_model_destroy(&t.model);
    }
    plait_data_destroy(&data);
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

static void a_resumed_run_has_the_same_bits(void **state) {
    static const plait_learner_setting drawn[] = { { "subsample", "0.7" } };
    char folder[] = "/tmp/plait_trees_XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (int kind = 1; kind < 3; kind++) {
        plait_data *data = make_data(kind);
        char        hash[65] = "", at[64];
        training    t = trees_of(data, drawn, 1);
        t.opts.validation = kind == 1 ? "0.2" : NULL;
        same(&t, 1, 1, hash);
        snprintf(at, sizeof at, "%s/%d", folder, kind);
        t.opts.epochs = 5;
        t.opts.checkpoint = at;
        t.opts.checkpoint_clocks = 7;
        must_train(&t, 3);
        assert_string_not_equal(t.report.model_hash, hash);
        plait_model_destroy(&t.model);
        t.opts.epochs = 8;
        t.opts.checkpoint = NULL;
        t.opts.resume = at;
        t.opts.topology = "ps";
        const int64_t all = t.report.clocks;
        same(&t, 2, 1, hash);
        assert_true(t.report.clocks > all);
        plait_data_destroy(&data);
    }
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void refuse(training *t, int32_t workers, plait_status status, const char *text) {
    assert_int_equal(train(t, workers, 1), status);
    if (strstr(t->error.text, text) == NULL) fail_msg("'%s' does not say '%s'", t->error.text, text);
}

static void what_makes_no_sense_is_refused_by_name(void **state) {
    static const plait_learner_setting bad[] = { { "bins", "256" }, { "bins", "1" }, { "grow", "up" },
                                                 { "depth", "17" }, { "monotone", "+9" }, { "monotone", "1" },
                                                 { "monotone", "+1," }, { "monotone", "+1,-1" },
                                                 { "subsample", "0" }, { "colsample", "1.5" }, { "min-rows", "0" } };
    plait_data *data = make_data(1);
    training    t;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        t = trees_of(data, &bad[i], 1);
        assert_true(train(&t, 1, 1) < 0);
        assert_non_null(strstr(t.error.text, bad[i].name));
    }
    t = trees_of(data, &(plait_learner_setting){ "monotone", "+11" }, 1);
    refuse(&t, 1, PLAIT_ENAME, "monotone: unknown feature '11'; did you mean '1'?");
    t = trees_of(data, NULL, 0);
    t.opts.loss = "hinge";
    refuse(&t, 1, PLAIT_EREFUSED, "loss hinge with model gbdt");
    t = trees_of(data, NULL, 0);
    t.opts.consistency = "ssp:1";
    refuse(&t, 2, PLAIT_EREFUSED, "model gbdt with consistency ssp:1");
    t = trees_of(data, &(plait_learner_setting){ "trees-by", "features" }, 1);
    t.opts.balance = "dynamic";
    refuse(&t, 2, PLAIT_EREFUSED, "balance dynamic with --trees-by features");
    t = trees_of(data, NULL, 0);
    t.opts.batch = 10;
    refuse(&t, 1, PLAIT_EREFUSED, "batch with model gbdt");
    t = trees_of(data, NULL, 0);
    t.opts.schedule = "cosine";
    refuse(&t, 1, PLAIT_EREFUSED, "schedule with model gbdt");
    t = trees_of(data, NULL, 0);
    t.opts.filter = "fp16";
    t.opts.topology = "ps";
    refuse(&t, 2, PLAIT_EREFUSED, "fp16");
    plait_data *four = make_data(2);
    t = trees_of(four, &(plait_learner_setting){ "monotone", "+1" }, 1);
    refuse(&t, 1, PLAIT_EREFUSED, "monotone with 4 classes");
    plait_data_destroy(&four);
    for (int64_t i = 0; i < ROWS * COLS; i++) x[i] = 2;
    plait_data_destroy(&data);
    assert_int_equal(plait_data_from_dense(ROWS, COLS, x, label, NULL, &data, NULL), PLAIT_OK);
    t = trees_of(data, NULL, 0);
    refuse(&t, 2, PLAIT_EREFUSED, "nothing to split rows by");
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_planted_tree_is_found),
                                        cmocka_unit_test(bits_do_not_depend_on_the_workers),
                                        cmocka_unit_test(each_loss_falls),
                                        cmocka_unit_test(patience_ends_at_the_best_round),
                                        cmocka_unit_test(a_missing_value_takes_the_better_side),
                                        cmocka_unit_test(scores_only_rise_or_fall),
                                        cmocka_unit_test(a_resumed_run_has_the_same_bits),
                                        cmocka_unit_test(what_makes_no_sense_is_refused_by_name) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
