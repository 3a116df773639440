/* Tests text by characters: an lstm predicts it, with the same bits whoever computes it; each character of a test set
 * is judged once; other models take windows of text, and an lstm takes other rows. */
#include <unistd.h>

#include "learn/train.h"

enum { TEXT = 6000, TEST = 1501, SYMBOLS = 10 };

static const char *const files[] = { "text_train.txt", "text_test.txt", "text_other.txt", "text_short.txt" };

/* Three words in a random order: once a word has begun, the rest of it is known. */
static size_t make_text(char *text, size_t bytes, uint64_t seed) {
    static const char *const words[] = { "abcde", "badcef", "ccgg" };
    pli_random               random = pli_random_at(seed, PLI_RANDOM_DATA, 0, 0);
    size_t                   n = 0;
    while (n < bytes) {
        const char *word = words[pli_random_below(&random, 3)];
        for (; *word != '\0' && n < bytes; word++) text[n++] = *word;
        if (n < bytes) text[n++] = pli_random_below(&random, 8) == 0 ? '\n' : ' ';
    }
    return n;
}

static void write_file(const char *name, const char *text, size_t bytes) {
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    fclose(file);
}

static int write_files(void **state) {
    static char text[TEXT];
    (void)state;
    write_file(files[0], text, make_text(text, TEXT, 1));
    write_file(files[1], text, make_text(text, TEST, 2));
    write_file(files[2], "abc?de\n", 7);
    write_file(files[3], "abcde ccgg", 10);
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(files[i]);
    return 0;
}

static plait_data_opts reads(int i) {
    plait_data_opts opts;
    plait_data_opts_init(&opts);
    opts.paths = &files[i];
    opts.n_paths = 1;
    opts.format = "text";
    opts.window = 20;
    return opts;
}

static plait_data_opts train_file, test_file;

static training text_of(const char *model) {
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    train_file = reads(0);
    test_file = reads(1);
    t.opts.data = &train_file;
    t.opts.test = &test_file;
    t.opts.model = model;
    t.opts.epochs = 2;
    t.opts.batch = 24;
    return t;
}

/* The mean of -log p over the characters of the test, where p is the model's probability of each. The symbols are the
 * labels, in order. */
static double loss_by_hand(const plait_model *model, double *hits) {
    static double   proba[TEST * SYMBOLS];
    static char     text[TEST];
    plait_data_opts opts = reads(1);
    plait_data     *data = NULL;
    plait_error     err;
    double          loss = 0;
    opts.window = 0;
    if (plait_model_read(model, &opts, &data, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(plait_data_labels(data), TEST);
    assert_int_equal(plait_model_classes(model), SYMBOLS - 1);
    if (plait_model_predict(model, data, 1, proba, &err) < 0) fail_msg("%s", err.text);
    make_text(text, TEST, 2);
    *hits = 0;
    for (int64_t i = 0; i < TEST; i++) {
        const char   *symbols = "\n abcdefg";
        const double *p = proba + i * (SYMBOLS - 1), own = p[strchr(symbols, text[i]) - symbols];
        bool          best = true;
        for (int k = 0; k < SYMBOLS - 1; k++) best = best && p[k] <= own;
        loss -= log(own);
        *hits += best;
    }
    plait_data_destroy(&data);
    *hits /= TEST;
    return loss / TEST;
}

static void test_foretells_a_text(void **state) {
    (void)state;
    training     t = text_of("lstm");
    double       hits;
    plait_model *again = NULL;
    plait_error  err;
    t.opts.layers = "24";
    t.opts.epochs = 16;
    t.opts.learning_rate = 0.02;
    must_train(&t, 1);
    assert_true(t.report.test_loss <
                0.40); /* the best is log 3 every 6.2 characters with a line's end, 0.26; frequencies alone give 2.0 */
    assert_true(t.report.test_accuracy > 0.8);
    assert_near(loss_by_hand(t.model, &hits), t.report.test_loss, 1e-6);
    assert_near(hits, t.report.test_accuracy, 1e-9);
    assert_string_equal(plait_model_label(t.model, 0), "\\n");
    assert_int_equal(plait_model_save(t.model, "text.safetensors", &err), PLAIT_OK);
    assert_int_equal(plait_model_load("text.safetensors", &again, &err), PLAIT_OK);
    assert_near(loss_by_hand(again, &hits), t.report.test_loss, 1e-6);
    plait_model_destroy(&again);

    training on = text_of("lstm"); /* starts from the model; windows of training lie apart again */
    on.opts.layers = "24";
    on.opts.init_model = "text.safetensors";
    on.opts.learning_rate = 1e-9;
    must_train(&on, 2);
    assert_near(on.report.test_loss, t.report.test_loss, 1e-4);
    assert_int_equal(on.report.rows, t.report.rows);
    plait_model_destroy(&on.model);
    plait_model_destroy(&t.model);
    unlink("text.safetensors");
}

/* Exact sums give the same bits, others the same but for rounding; stale policies learn, too. */
static void test_whoever_computes_it(void **state) {
    (void)state;
    static const struct {
        const char *topology;
        int32_t     workers;
    } runs[] = { { "local", 3 }, { "allreduce", 2 }, { "ps", 3 } };
    training exact = text_of("lstm"), plain = text_of("lstm");
    exact.opts.layers = plain.opts.layers = "8,8";
    exact.opts.exact = 1;
    must_train(&exact, 1);
    must_train(&plain, 1);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        training t = text_of("lstm");
        t.opts.layers = "8,8";
        t.opts.topology = runs[i].topology;
        must_train(&t, runs[i].workers);
        const double off = distance(t.model, plain.model);
        if (!(off <= 1e-4)) fail_msg("%s: off by %g", runs[i].topology, off);
        plait_model_destroy(&t.model);
        t.opts.exact = 1;
        must_train(&t, runs[i].workers);
        assert_string_equal(t.report.model_hash, exact.report.model_hash);
        assert_true(t.report.test_loss == exact.report.test_loss);
        plait_model_destroy(&t.model);
    }
    training stale = text_of("lstm");
    stale.opts.layers = "24";
    stale.opts.epochs = 16;
    stale.opts.learning_rate = 0.02;
    stale.opts.topology = "ps";
    stale.opts.consistency = "ssp:2";
    must_train(&stale, 3);
    assert_true(stale.report.test_loss < 0.5);
    assert_int_equal(stale.report.n_tables, 5); /* w1 b1 r1 w2 b2 */
    assert_string_equal(stale.report.tables[2].name, "r1");
    plait_model_destroy(&stale.model);
    plait_model_destroy(&plain.model);
    plait_model_destroy(&exact.model);
}

/* Models without sequences take a row for each character, one-hot by place: a linear model, a perceptron, and a cnn,
 * for which a row is an image of places and symbols. */
static void test_other_models_take_windows(void **state) {
    (void)state;
    static const struct {
        const char *model, *layers;
        double      loss;
    } models[] = { { "logistic", NULL, 0.8 }, { "mlp", "16", 0.6 }, { "cnn", "4,16", 0.7 } };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        training t = text_of(models[i].model);
        double   hits;
        t.opts.layers = models[i].layers;
        train_file.window = test_file.window = 8;
        if (i > 0) t.opts.learning_rate = 0.01;
        must_train(&t, 2);
        assert_int_equal(t.report.rows, TEXT);
        assert_int_equal(t.report.features, 8 * SYMBOLS);
        if (!(t.report.test_loss < models[i].loss)) fail_msg("%s: %g", models[i].model, t.report.test_loss);
        assert_near(loss_by_hand(t.model, &hits), t.report.test_loss, 1e-6);
        plait_model_destroy(&t.model);
    }
}

/* Two features, the second in a large unit and far from 0; the label is which is larger, each in its own unit. */
static void test_features_are_a_sequence(void **state) {
    (void)state;
    enum { ROWS = 600 };
    float      x[ROWS * 2];
    double     label[ROWS];
    pli_random random = pli_random_at(7, PLI_RANDOM_DATA, 0, 0);
    for (int64_t i = 0; i < ROWS; i++) {
        const double a = 2 * pli_random_f64(&random) - 1, b = 2 * pli_random_f64(&random) - 1;
        x[2 * i] = (float)a;
        x[2 * i + 1] = (float)(5000 + 1000 * b);
        label[i] = a * b > 0;
    }
    plait_data *data = NULL;
    plait_error err;
    assert_int_equal(plait_data_from_dense(ROWS, 2, x, label, NULL, &data, &err), PLAIT_OK);
    training t = text_of("lstm");
    t.opts.data = t.opts.test = NULL;
    t.opts.memory = t.opts.test_memory = data;
    t.opts.layers = "12";
    t.opts.epochs = 60;
    t.opts.learning_rate = 0.02;
    must_train(&t, 1);
    assert_true(t.report.test_accuracy > 0.95);
    assert_int_equal(plait_model_save(t.model, "text.safetensors", &err), PLAIT_OK);
    training on = t; /* into training's units and back */
    on.opts.init_model = "text.safetensors";
    on.opts.learning_rate = 1e-9;
    on.opts.epochs = 1;
    must_train(&on, 1);
    assert_true(distance(on.model, t.model) < 1e-5);
    assert_near(on.report.test_loss, t.report.test_loss, 1e-3);
    unlink("text.safetensors");
    plait_model_destroy(&on.model);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
}

/* The label is which line of an image is lit; images have two axes, or three with channels. */
static void test_images_are_sequences_of_lines(void **state) {
    (void)state;
    enum { IMAGES = 240, SIDE = 6 };
    static const unsigned char flat[] = { 0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, SIDE, 0, 0, 0, SIDE };
    static const unsigned char colored[] = {
        0, 0, 8, 4, 0, 0, 0, IMAGES, 0, 0, 0, 2, 0, 0, 0, SIDE, 0, 0, 0, SIDE / 2
    };
    static const unsigned char n[] = { 0, 0, 8, 1, 0, 0, 0, IMAGES };
    for (int axes = 2; axes <= 3; axes++) {
        FILE *images = fopen("lit-images-idx3-ubyte", "wb"), *labels = fopen("lit-labels-idx1-ubyte", "wb");
        assert_true(images != NULL && labels != NULL);
        fwrite(axes == 2 ? flat : colored, 1, axes == 2 ? sizeof flat : sizeof colored, images);
        fwrite(n, 1, sizeof n, labels);
        for (uint64_t i = 0; i < IMAGES; i++) {
            pli_random random = pli_random_at(3, PLI_RANDOM_DATA, 0, i);
            const int  at = (int)pli_random_below(&random, SIDE), height = SIDE, width = axes == 2 ? SIDE : SIDE / 2;
            for (int p = 0; p < SIDE * SIDE; p++)
                fputc((p / width % height == at ? 200 : 0) + (int)pli_random_below(&random, 50), images);
            fputc(at < SIDE / 2, labels);
        }
        fclose(images);
        fclose(labels);
        static const char *const path = "lit-images-idx3-ubyte";
        training                 t = text_of("lstm");
        plait_data_opts          file = reads(0);
        file.paths = &path;
        file.format = "auto";
        file.window = 0;
        t.opts.data = t.opts.test = &file;
        t.opts.layers = "10";
        t.opts.epochs = 25;
        t.opts.learning_rate = 0.02;
        must_train(&t, 2);
        if (!(t.report.test_accuracy > 0.95)) fail_msg("%d axes: %g", axes, t.report.test_accuracy);
        plait_model_destroy(&t.model);
    }
    unlink("lit-images-idx3-ubyte");
    unlink("lit-labels-idx1-ubyte");
}

/* A text of half a window: the places before it get no answers and do not count, in training and in the test. */
static void test_what_is_no_label_does_not_count(void **state) {
    (void)state;
    training t = text_of("lstm");
    train_file = test_file = reads(3);
    t.opts.layers = "4";
    t.opts.epochs = 1;
    t.opts.learning_rate = 1e-12;
    must_train(&t, 1);
    assert_near(t.report.progressive_loss, t.report.test_loss, 1e-5);
    assert_near(t.report.train_loss, t.report.test_loss, 1e-5);
    plait_model_destroy(&t.model);
}

static void refused(training t, const char *part) {
    assert_true(train(&t, 1, 1) < 0);
    if (strstr(t.error.text, part) == NULL) fail_msg("'%s' does not say '%s'", t.error.text, part);
}

static void test_refusals(void **state) {
    (void)state;
    training        t = text_of("lstm");
    plait_data_opts other = reads(2);
    t.opts.layers = "4";
    t.opts.epochs = 1;
    t.opts.test = &other;
    refused(t, "a character that the model does not know");
    t = text_of("lstm");
    t.opts.loss = "squared";
    refused(t, "it predicts symbols");
    t = text_of("lstm");
    t.opts.layers = "";
    refused(t, "an lstm needs at least one");
    plait_data     *data = NULL;
    plait_error     err;
    plait_data_opts apart = reads(0);
    apart.apart = 1;
    assert_int_equal(plait_data_read(&apart, &data, &err), PLAIT_OK);
    t = text_of("logistic");
    t.opts.data = t.opts.test = NULL;
    t.opts.memory = data;
    refused(t, "whose windows do not overlap");
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_foretells_a_text),
        cmocka_unit_test(test_whoever_computes_it),
        cmocka_unit_test(test_other_models_take_windows),
        cmocka_unit_test(test_features_are_a_sequence),
        cmocka_unit_test(test_images_are_sequences_of_lines),
        cmocka_unit_test(test_what_is_no_label_does_not_count),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, write_files, remove_files);
}
