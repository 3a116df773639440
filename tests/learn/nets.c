/* Tests nets: they learn what a line cannot, the model does not depend on who computes it, and files keep it. */
#include <unistd.h>

#include "learn/train.h"

enum { ROWS = 600 };

/* Two classes as on a chess board of 2 x 2, which no line separates; or numbers, the product of both coordinates. */
static plait_data *board(bool numbers) {
    float     *x = pli_array(ROWS * 2, sizeof *x);
    double    *label = pli_array(ROWS, sizeof *label);
    pli_random random = pli_random_at(7, PLI_RANDOM_DATA, 0, 0);
    for (int64_t i = 0; i < ROWS; i++) {
        const double a = 2 * pli_random_f64(&random) - 1, b = 2 * pli_random_f64(&random) - 1;
        x[2 * i] = (float)a;
        x[2 * i + 1] = (float)b;
        label[i] = numbers ? a * b : a * b > 0;
    }
    plait_data *data = NULL;
    plait_error err;
    assert_int_equal(plait_data_from_dense(ROWS, 2, x, label, NULL, &data, &err), PLAIT_OK);
    pli_free(x);
    pli_free(label);
    return data;
}

static training net(const plait_data *data) { return net_of(data, "16,8"); }

static void test_learns_what_no_line_can(void **state) {
    (void)state;
    plait_data *data = board(false);
    training    t = net(data), line = net(data);
    t.opts.epochs = 60;
    t.opts.learning_rate = 0.01;
    must_train(&t, 1);
    assert_true(t.report.test_accuracy > 0.95);
    line.opts.model = "logistic";
    line.opts.layers = NULL;
    must_train(&line, 1);
    assert_true(line.report.test_accuracy < 0.75);
    assert_near(t.report.test_loss, t.report.train_loss, 1e-6);
    plait_model_destroy(&t.model);
    plait_model_destroy(&line.model);
    plait_data_destroy(&data);

    data = board(true);
    t = net(data); /* labels are not classes, so the loss is squared */
    t.opts.epochs = 60;
    t.opts.learning_rate = 0.01;
    must_train(&t, 1);
    assert_true(t.report.test_rmse < 0.15); /* the mean label for all rows has 0.33 */
    assert_int_equal(plait_model_classes(t.model), 0);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
}

static void test_the_same_model_for_every_topology(void **state) {
    (void)state;
    static const char *const topologies[] = { "local", "allreduce", "ps", "hybrid" };
    plait_data *data = board(false);
    training    first = net(data);
    must_train(&first, 1);
    for (size_t i = 0; i < 4; i++) {
        training t = net(data);
        t.opts.topology = topologies[i];
        must_train(&t, 3);
        const double off = distance(t.model, first.model);
        if (!(off <= 1e-4)) fail_msg("%s: off by %g", topologies[i], off);
        plait_model_destroy(&t.model);
    }
    plait_model_destroy(&first.model);
    plait_data_destroy(&data);
}

/* Gradients that leave in the backward pass, or with the clock: the same bits. A flush that is counted, or left out,
 * stands before the library's. */
static bool            leaves_out;
static _Atomic int64_t flushes;
plait_status           __real_plait_table_flush(plait_table *table);
plait_status           __wrap_plait_table_flush(plait_table *table);
plait_status           __wrap_plait_table_flush(plait_table *table) {
    if (leaves_out) return PLAIT_OK;
    flushes++;
    return __real_plait_table_flush(table);
}

static void test_overlap_changes_no_bit(void **state) {
    (void)state;
    static const struct {
        const char *topology, *consistency, *collective;
        int         exact;
    } runs[] = { { "allreduce", "bsp", "ring", 0 }, { "allreduce", "bsp", "hierarchical", 0 },
                 { "allreduce", "bsp", "ring", 1 }, { "allreduce", "bounded-delay:2", "ring", 0 },
                 { "ps", "bsp", NULL, 0 },          { "ps", "bsp", NULL, 1 },
                 { "ps", "sequential", NULL, 0 },   { "local", "bsp", NULL, 0 },
                 { "ps", "local-sgd:2", NULL, 0 } };
    plait_data *data = board(false);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        char hash[65] = "";
        for (int without = 0; without < 2; without++) {
            training t = net(data);
            t.opts.topology = runs[i].topology;
            t.opts.consistency = runs[i].consistency;
            t.opts.exact = runs[i].exact;
            t.opts.batch = 17; /* some worker has no rows in the last clock */
            t.opts.epochs = 2;
            t.collective = runs[i].collective;
            leaves_out = without == 1;
            flushes = 0;
            must_train(&t, 3);
            assert_int_equal(flushes > 0, !without);
            if (without && strcmp(t.report.model_hash, hash) != 0)
                fail_msg("%s %s: other bits", runs[i].topology, runs[i].consistency);
            memcpy(hash, t.report.model_hash, sizeof hash);
            plait_model_destroy(&t.model);
        }
    }
    leaves_out = false;
    plait_data_destroy(&data);
}

static void test_exact_sums_give_the_same_bits(void **state) {
    (void)state;
    static const struct {
        const char *topology;
        int32_t     workers;
    } runs[] = { { "local", 2 }, { "allreduce", 3 }, { "ps", 1 }, { "ps", 4 } };
    plait_data *data = board(false);
    training    first = net(data);
    first.opts.exact = 1;
    must_train(&first, 1);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        training t = net(data);
        t.opts.exact = 1;
        t.opts.topology = runs[i].topology;
        must_train(&t, runs[i].workers);
        assert_string_equal(t.report.model_hash, first.report.model_hash);
        assert_true(t.report.train_loss == first.report.train_loss);
        plait_model_destroy(&t.model);
    }
    plait_model_destroy(&first.model);
    plait_data_destroy(&data);
}

/* Sandblaster L-BFGS: it ends lower than it began, and than adam in as many passes; the same for every topology; to the
 * bit where sums are exact, and as loss and gradient come in whole batches, in the same passes. */
static void test_lbfgs_goes_down_for_every_topology(void **state) {
    (void)state;
    static const struct {
        const char *topology;
        int32_t     workers;
        int         exact;
    } runs[] = { { "local", 1, 0 }, { "local", 3, 0 }, { "allreduce", 3, 0 }, { "ps", 3, 0 },
                 { "local", 1, 1 }, { "ps", 3, 1 },    { "allreduce", 2, 1 } };
    plait_data *data = board(false);
    training    adam = net(data), first = { .model = NULL };
    adam.opts.epochs = 30;
    adam.opts.batch = ROWS;
    must_train(&adam, 1);
    char   hash[65] = "";
    double exact_loss = 0;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        training t = net(data);
        t.opts.optimizer = "lbfgs";
        t.opts.batch = 0;
        t.opts.epochs = 30;
        t.opts.topology = runs[i].topology;
        t.opts.exact = runs[i].exact;
        must_train(&t, runs[i].workers);
        assert_true(t.report.train_loss < 0.2 && t.report.train_loss < 0.5 * adam.report.train_loss &&
                    t.report.test_accuracy > 0.95);
        assert_true(t.report.epochs <= 30 && t.report.clocks < 60);
        if (runs[i].exact && hash[0] != '\0') {
            assert_string_equal(t.report.model_hash, hash);
            assert_true(t.report.train_loss == exact_loss);
        } else if (runs[i].exact) {
            memcpy(hash, t.report.model_hash, sizeof hash);
            exact_loss = t.report.train_loss;
        } else if (first.model != NULL &&
                   !(fabs(t.report.objective - first.report.objective) < 0.2 * first.report.objective)) {
            fail_msg("%s, %d workers: %g, not %g", runs[i].topology, (int)runs[i].workers, t.report.objective,
                     first.report.objective);
        }
        if (first.model == NULL) first = t;
        else plait_model_destroy(&t.model);
    }
    plait_model_destroy(&first.model);
    plait_model_destroy(&adam.model);

    training kink = net(data); /* and what has no slope everywhere is refused */
    kink.opts.optimizer = "lbfgs";
    kink.opts.loss = "hinge";
    assert_int_equal(train(&kink, 1, 1), PLAIT_EREFUSED);
    assert_non_null(strstr(kink.error.text, "lbfgs with loss hinge is refused"));
    plait_data_destroy(&data);
}

/* Also where labels are numbers; and on from a model it goes down from there. */
static void test_lbfgs_begins_where_it_is_told(void **state) {
    (void)state;
    static const char path[] = "lbfgs.safetensors";
    plait_data       *data = board(true);
    training          t = net(data), on;
    plait_error       err;
    t.opts.optimizer = "lbfgs";
    t.opts.epochs = 25;
    must_train(&t, 2);
    assert_true(t.report.test_rmse < 0.1);
    assert_int_equal(plait_model_save(t.model, path, &err), PLAIT_OK);
    on = net(data);
    on.opts.optimizer = "lbfgs";
    on.opts.epochs = 1;
    on.opts.init_model = path;
    must_train(&on, 3);
    assert_true(on.report.objective <= t.report.objective * (1 + 1e-5));
    assert_true(distance(on.model, t.model) < 0.2);
    plait_model_destroy(&on.model);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
    unlink(path);
}

/* Downpour SGD (Dean et al., NIPS 2012): replicas that fetch and push every few clocks, adagrad at the servers. */
static void test_downpour_learns(void **state) {
    (void)state;
    static const char *const policies[] = { "downpour:1:1", "downpour:4:2", "downpour:5:5" };
    plait_data *data = board(false);
    for (size_t i = 0; i < 3; i++) {
        training t = net(data);
        t.opts.topology = "ps";
        t.opts.consistency = policies[i];
        t.opts.optimizer = "adagrad";
        t.opts.learning_rate = 0.05;
        t.opts.epochs = 60;
        must_train(&t, 4);
        if (!(t.report.test_accuracy > 0.93)) fail_msg("%s: %g right", policies[i], t.report.test_accuracy);
        plait_model_destroy(&t.model);
    }
    plait_data_destroy(&data);
}

/* Of each table by itself; stale ones train, too. */
static void test_tables_travel_apart(void **state) {
    (void)state;
    static const plait_table_setting settings[] = { { .name = "w1", .topology = "ps", .consistency = "ssp:1" },
                                                    { .name = "b3", .topology = "allreduce" } };
    plait_data *data = board(false);
    training    t = net(data);
    t.opts.topology = "ps";
    t.opts.tables = settings;
    t.opts.n_tables = 2;
    t.opts.epochs = 40;
    t.opts.learning_rate = 0.01;
    must_train(&t, 2);
    assert_true(t.report.test_accuracy > 0.9);
    assert_int_equal(t.report.n_tables, 6);
    assert_string_equal(t.report.tables[0].consistency, "ssp:1");
    assert_string_equal(t.report.tables[5].topology, "allreduce");
    plait_model_destroy(&t.model);
    const plait_table_setting unknown = { .name = "w4", .topology = "ps" };
    t.opts.tables = &unknown;
    t.opts.n_tables = 1;
    assert_int_equal(train(&t, 1, 1), PLAIT_ENAME);
    assert_non_null(strstr(t.error.text, "unknown table 'w4'"));
    plait_data_destroy(&data);
}

static void test_files(void **state) {
    (void)state;
    static const char path[] = "nets.safetensors";
    static double     before[ROWS * 2], after[ROWS * 2];
    plait_data       *data = board(false);
    training          t = net(data);
    plait_model      *again = NULL;
    plait_error       err;
    must_train(&t, 1);
    assert_int_equal(plait_model_save(t.model, path, &err), PLAIT_OK);
    assert_int_equal(plait_model_load(path, &again, &err), PLAIT_OK);
    assert_int_equal(plait_model_predict(t.model, data, 1, before, &err), PLAIT_OK);
    assert_int_equal(plait_model_predict(again, data, 1, after, &err), PLAIT_OK);
    assert_memory_equal(before, after, sizeof before);
    assert_string_equal(plait_model_feature(again, 16 + 3), "w1 1,3");
    assert_string_equal(plait_model_feature(again, 32 + 3), "b1 3");
    assert_true(isnan(plait_model_intercept(again, 0)));

    training on = net(data); /* goes on where it was */
    on.opts.init_model = path;
    on.opts.learning_rate = 1e-9;
    must_train(&on, 2);
    assert_true(distance(on.model, again) < 1e-5);
    plait_model_destroy(&on.model);
    on.opts.layers = "16,9";
    assert_int_equal(train(&on, 1, 1), PLAIT_EMISMATCH);
    assert_non_null(strstr(on.error.text, "has layers 16,8, not 16,9"));
    plait_model_destroy(&again);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
    unlink(path);
}

/* --- images ------------------------------------------------------------------------------------------------------ */

enum { IMAGES = 200, SIDE = 8 };

static void put_header(FILE *to, int axes, const uint32_t *length) {
    fprintf(to, "%c%c%c%c", 0, 0, 8, axes);
    for (int i = 0; i < axes; i++)
        for (int shift = 24; shift >= 0; shift -= 8) fputc((int)(length[i] >> shift & 255), to);
}

/* A line across or down, anywhere, in a noise of a third of its brightness. */
static void write_images(void) {
    static const uint32_t shape[] = { IMAGES, SIDE, SIDE };
    FILE *images = fopen("lines-images-idx3-ubyte", "wb"), *labels = fopen("lines-labels-idx1-ubyte", "wb");
    assert_true(images != NULL && labels != NULL);
    put_header(images, 3, shape);
    put_header(labels, 1, shape);
    for (uint64_t i = 0; i < IMAGES; i++) {
        pli_random random = pli_random_at(3, PLI_RANDOM_DATA, 0, i);
        const int  down = (int)pli_random_below(&random, 2), at = (int)pli_random_below(&random, SIDE);
        for (int p = 0; p < SIDE * SIDE; p++)
            fputc((down ? p % SIDE == at : p / SIDE == at) ? 240 : (int)pli_random_below(&random, 80), images);
        fputc(down, labels);
    }
    fclose(images);
    fclose(labels);
}

static void test_convolutions_tell_lines(void **state) {
    (void)state;
    static const char *const paths[] = { "lines-images-idx3-ubyte" };
    plait_data_opts          files;
    plait_data              *data = board(false);
    char                     hash[65] = "";
    write_images();
    plait_data_opts_init(&files);
    files.paths = paths;
    files.n_paths = 1;
    for (int32_t workers = 1; workers <= 3; workers += 2) {
        training t = net(NULL);
        t.opts.data = t.opts.test = &files;
        t.opts.model = "cnn";
        t.opts.layers = "4,8";
        t.opts.epochs = 8;
        t.opts.batch = 20;
        t.opts.learning_rate = 0.01;
        t.opts.exact = 1;
        must_train(&t, workers);
        assert_true(t.report.test_accuracy > 0.95);
        if (workers > 1) assert_string_equal(t.report.model_hash, hash);
        memcpy(hash, t.report.model_hash, sizeof hash);
        plait_model_destroy(&t.model);
    }
    float  *x = pli_array(IMAGES * (SIDE * SIDE - 1), sizeof *x); /* as rows of features, the last pixel left out */
    double *label = pli_array(IMAGES, sizeof *label);
    FILE   *images = fopen("lines-images-idx3-ubyte", "rb"), *labels = fopen("lines-labels-idx1-ubyte", "rb");
    assert_true(x != NULL && label != NULL && images != NULL && labels != NULL);
    fseek(images, 16, SEEK_SET);
    fseek(labels, 8, SEEK_SET);
    for (int64_t i = 0, at = 0; i < IMAGES * SIDE * SIDE; i++) {
        const int pixel = fgetc(images);
        if ((i + 1) % (SIDE * SIDE) != 0) x[at++] = (float)pixel;
    }
    for (int64_t i = 0; i < IMAGES; i++) label[i] = fgetc(labels);
    fclose(images);
    fclose(labels);
    plait_data *rows = NULL;
    assert_int_equal(plait_data_from_dense(IMAGES, SIDE * SIDE - 1, x, label, NULL, &rows, NULL), PLAIT_OK);
    training square = net(rows);
    square.opts.model = "cnn";
    square.opts.layers = "4,8";
    square.opts.epochs = 8;
    square.opts.batch = 20;
    square.opts.learning_rate = 0.01;
    must_train(&square, 1);
    assert_true(square.report.test_accuracy > 0.95);
    plait_model_destroy(&square.model);
    plait_data_destroy(&rows);
    pli_free(x);
    pli_free(label);

    training flat = net(data); /* two features: a square of four, halved to one */
    flat.opts.model = "cnn";
    flat.opts.layers = "8,8,16";
    flat.opts.epochs = 60;
    flat.opts.learning_rate = 0.01;
    must_train(&flat, 1);
    assert_true(flat.report.test_accuracy > 0.95);
    plait_model_destroy(&flat.model);
    plait_data_destroy(&data);
    unlink("lines-images-idx3-ubyte");
    unlink("lines-labels-idx1-ubyte");
}

static void refused(const char *layers, const char *model, const char *loss, const char *part) {
    plait_data *data = board(false);
    training    t = net(data);
    t.opts.layers = layers;
    t.opts.model = model;
    t.opts.loss = loss;
    assert_true(train(&t, 1, 1) < 0);
    if (strstr(t.error.text, part) == NULL) fail_msg("'%s' does not say '%s'", t.error.text, part);
    plait_data_destroy(&data);
}

static void test_refusals(void **state) {
    (void)state;
    refused("16,x", "mlp", NULL, "expected sizes");
    refused("16,", "mlp", NULL, "ends in a comma");
    refused("0", "mlp", NULL, "expected sizes");
    refused("1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "mlp", NULL, "at most 15");
    refused("16", "logistic", NULL, "model logistic has no layers");
    refused(NULL, "logistic", "hinge", "--model hinge");
    refused(NULL, "mpl", NULL, "did you mean 'mlp'");
    refused(NULL, "mlp", "hing", "did you mean 'hinge'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns_what_no_line_can),     cmocka_unit_test(test_the_same_model_for_every_topology),
        cmocka_unit_test(test_overlap_changes_no_bit),
                                        cmocka_unit_test(test_lbfgs_goes_down_for_every_topology),
                                        cmocka_unit_test(test_lbfgs_begins_where_it_is_told),
                                        cmocka_unit_test(test_downpour_learns),
        cmocka_unit_test(test_exact_sums_give_the_same_bits), cmocka_unit_test(test_tables_travel_apart),
        cmocka_unit_test(test_convolutions_tell_lines),     cmocka_unit_test(test_files),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
