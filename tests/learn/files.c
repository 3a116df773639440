/* Tests the model's file: a model loads as it was saved, and no damage stays unnoticed. */
#include <unistd.h>

#include "learn/train.h"

static const char path[] = "learn_files.safetensors", damaged[] = "learn_damaged.safetensors";

static plait_model *small_model(const char *name, int64_t classes) {
    plait_data *data = points(300, 3, classes, 5);
    training    t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.model = name;
    t.opts.memory = data;
    t.opts.epochs = 3;
    assert_int_equal(train(&t, 1, 1), PLAIT_OK);
    plait_data_destroy(&data);
    return t.model;
}

static void assert_same(const plait_model *a, const plait_model *b) {
    char hash_a[65], hash_b[65];
    plait_model_hash(a, hash_a);
    plait_model_hash(b, hash_b);
    assert_string_equal(hash_a, hash_b);
    assert_int_equal(strlen(hash_a), 64);
    assert_string_equal(plait_model_name(a), plait_model_name(b));
    assert_int_equal(plait_model_features(a), plait_model_features(b));
    assert_int_equal(plait_model_classes(a), plait_model_classes(b));
    for (int64_t k = 0; k < plait_model_classes(a); k++)
        assert_string_equal(plait_model_label(a, k), plait_model_label(b, k));
    for (int64_t k = 0; k < plait_model_columns(a); k++) {
        assert_true(plait_model_intercept(a, k) == plait_model_intercept(b, k));
        for (int64_t j = 0; j < plait_model_rows(a); j++)
            assert_true(plait_model_weight(a, j, k) == plait_model_weight(b, j, k));
    }
    for (int64_t j = 0; j < plait_model_rows(a); j++) {
        char name[64];
        snprintf(name, sizeof name, "%s", plait_model_feature(a, j));
        assert_string_equal(name, plait_model_feature(b, j));
    }
    assert_string_equal(plait_model_description(a), plait_model_description(b));
}

static void test_round_trip(void **state) {
    (void)state;
    static const struct kind { const char *name; int64_t classes; } kinds[] = {
        { "logistic", 2 }, { "logistic", 4 }, { "hinge", 2 }, { "hinge", 3 }, { "squared", 0 }, { "huber", 0 },
        { "quantile", 0 },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        plait_error  error;
        plait_model *model = small_model(kinds[i].name, kinds[i].classes), *back = NULL;
        if (plait_model_save(model, path, &error) != PLAIT_OK) fail_msg("%s", error.text);
        if (plait_model_load(path, &back, &error) != PLAIT_OK) fail_msg("%s", error.text);
        assert_same(model, back);
        plait_data *data = points(100, 3, kinds[i].classes, 6);
        double      one[100], other[100];
        assert_int_equal(plait_model_predict(model, data, 0, one, &error), PLAIT_OK);
        assert_int_equal(plait_model_predict(back, data, 0, other, &error), PLAIT_OK);
        assert_memory_equal(one, other, sizeof one);
        plait_data_destroy(&data);
        plait_model_destroy(&model);
        plait_model_destroy(&back);
    }
    unlink(path);
}

static size_t read_bytes(unsigned char *bytes, size_t most) {
    FILE  *file = fopen(path, "rb");
    size_t n = fread(bytes, 1, most, file);
    fclose(file);
    return n;
}

static plait_status load_bytes(const unsigned char *bytes, size_t n) {
    FILE        *file = fopen(damaged, "wb");
    plait_model *model = NULL;
    plait_error  error;
    fwrite(bytes, 1, n, file);
    fclose(file);
    plait_status status = plait_model_load(damaged, &model, &error);
    assert_true((status == PLAIT_OK) == (model != NULL));
    plait_model_destroy(&model);
    return status;
}

static void test_damage(void **state) {
    (void)state;
    static unsigned char bytes[1 << 16];
    plait_model         *model = small_model("logistic", 2);
    assert_int_equal(plait_model_save(model, path, NULL), PLAIT_OK);
    plait_model_destroy(&model);
    size_t n = read_bytes(bytes, sizeof bytes);
    assert_true(n > 100 && n < sizeof bytes);
    assert_int_equal(load_bytes(bytes, n), PLAIT_OK);
    for (size_t i = 0; i < n * 8; i++) {
        bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        if (load_bytes(bytes, n) == PLAIT_OK) fail_msg("bit %zu of byte %zu flipped unnoticed", i % 8, i / 8);
        bytes[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    for (size_t cut = 0; cut < n; cut++)
        if (load_bytes(bytes, cut) == PLAIT_OK) fail_msg("cut to %zu bytes unnoticed", cut);
    unlink(path);
    unlink(damaged);
}

static void test_missing(void **state) {
    (void)state;
    plait_model *model = NULL;
    plait_error  error;
    assert_int_equal(plait_model_load("no_such_model", &model, &error), PLAIT_EIO);
    assert_non_null(strstr(error.text, "no_such_model"));
    assert_null(model);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damage),
                                        cmocka_unit_test(test_missing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
