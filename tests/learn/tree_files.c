/* Tests what becomes of trees outside: the files for XGBoost and for ONNX are read here and scored by the rules of
 * their own formats, on rows with missing values; the scores are those of predict. bench/trees and graph.onnx.export
 * compare with the programs themselves. Contributions are compared with Shapley values by their definition. */
#include "learn/train.h"

#include <unistd.h>

#include "base/json.h"
#include "data/data.h"
#include "graph/form/onnx.h"

enum { ROWS = 600, COLS = 4, CLASSES = 3 };

static float  x[ROWS][COLS];
static double label[ROWS];
static char   folder[] = "/tmp/plait_trees_XXXXXX";

static const char *at(const char *name, char path[96]) {
    snprintf(path, 96, "%s/%s", folder, name);
    return path;
}

/* kind 0: two classes; 1: three; 2: counts; 3: numbers far from 0. Column 3 says something by its absence alone. */
static void write_rows(int kind, const char *path) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "y,a,b,c,d\n");
    for (int64_t i = 0; i < ROWS; i++) {
        pli_random r = pli_random_at(11, PLI_RANDOM_DATA, (uint64_t)kind, (uint64_t)i);
        double     z = pli_random_normal(&r) / 4;
        for (int j = 0; j < COLS; j++) {
            const bool there = pli_random_f64(&r) < 0.8;
            x[i][j] = !there ? NAN : j == 3 ? 1 : (float)(floor(pli_random_f64(&r) * 40) / 3 - 5);
            z += j == 3 ? there : there ? (double)x[i][j] * (j == 1 ? -0.4 : 0.3) : j;
        }
        label[i] = kind == 0 ? z > 1 : kind == 1 ? (z > 1) + (z > 2) : kind == 2 ? floor(fabs(z)) : 500 + z;
        fprintf(f, "%.9g", label[i]);
        for (int j = 0; j < COLS; j++) fprintf(f, isnan(x[i][j]) ? "," : ",%.9g", (double)x[i][j]);
        fprintf(f, "\n");
    }
    fclose(f);
}

static plait_model *trained(int kind, plait_data **rows_out) {
    static const char *const losses[] = { NULL, NULL, "poisson", "squared" };
    char            path[96];
    plait_data_opts files;
    training        t = { .model = NULL };
    plait_data_opts_init(&files);
    plait_train_opts_init(&t.opts);
    write_rows(kind, at("rows.csv", path));
    const char *paths[] = { path };
    files.paths = paths;
    files.n_paths = 1;
    files.label = "y";
    t.opts.data = &files;
    t.opts.model = "gbdt";
    t.opts.epochs = 12;
    t.opts.loss = losses[kind];
    must_train(&t, 2);
    assert_int_equal(plait_model_read(t.model, &files, rows_out, NULL), PLAIT_OK);
    return t.model;
}

static int64_t columns_of(int kind) { return kind == 1 ? CLASSES : 1; }

/* What predict makes of scores. */
static void answer(int kind, const double *score, double *out) {
    double sum = 0;
    if (kind == 0) out[1] = 1 / (1 + exp(-score[0])), out[0] = 1 - out[1];
    else if (kind == 1)
        for (int k = 0; k < CLASSES; k++) sum += out[k] = exp(score[k]);
    else out[0] = kind == 2 ? exp(score[0]) : score[0];
    for (int k = 0; kind == 1 && k < CLASSES; k++) out[k] /= sum;
}

typedef void score_row(const void *model, const float *row, double *score);

static void compare(int kind, const plait_model *model, const plait_data *rows, const void *file, score_row *fn) {
    const int64_t width = plait_model_width(model, PLAIT_ANSWER_PROBABILITIES) > 0 ? plait_model_classes(model) : 1;
    static double want[ROWS * CLASSES];
    assert_int_equal(plait_model_predict(model, rows, 1, want, NULL), PLAIT_OK);
    for (int64_t i = 0; i < ROWS; i++) {
        double score[CLASSES] = { 0 }, got[CLASSES];
        fn(file, x[i], score);
        answer(kind, score, got);
        for (int64_t k = 0; k < width; k++)
            assert_near(got[k], want[i * width + k], 1e-5 * fmax(1, fabs(want[i * width + k])));
    }
}

/* --- XGBoost ------------------------------------------------------------------------------------------------------ */

static json_t *in(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    if (value == NULL) fail_msg("no '%s'", key);
    return value;
}
static double real_at(const json_t *list, size_t i) {
    assert_true(json_is_real(json_array_get(list, i))); /* XGBoost refuses integers here */
    return json_real_value(json_array_get(list, i));
}
static int64_t whole_at(const json_t *list, size_t i) {
    assert_true(json_is_integer(json_array_get(list, i)));
    return json_integer_value(json_array_get(list, i));
}

static void score_xgboost(const void *file, const float *row, double *score) {
    const json_t *learner = in(file, "learner"), *booster = in(in(learner, "gradient_booster"), "model");
    const json_t *trees = in(booster, "trees"), *info = in(booster, "tree_info");
    const double  base = strtod(json_string_value(in(in(learner, "learner_model_param"), "base_score")), NULL);
    const char   *name = json_string_value(in(in(learner, "objective"), "name"));
    for (int k = 0; k < CLASSES; k++)
        score[k] = strcmp(name, "binary:logistic") == 0 ? log(base / (1 - base))
                   : strcmp(name, "count:poisson") == 0 ? log(base) : base;
    for (size_t t = 0; t < json_array_size(trees); t++) {
        const json_t *tree = json_array_get(trees, t), *left = in(tree, "left_children");
        size_t        i = 0;
        while (whole_at(left, i) >= 0) {
            const float cut = (float)real_at(in(tree, "split_conditions"), i);
            const float value = row[whole_at(in(tree, "split_indices"), i)];
            const bool  yes = isnan(value) ? whole_at(in(tree, "default_left"), i) != 0 : value < cut;
            const size_t next = (size_t)whole_at(yes ? left : in(tree, "right_children"), i);
            assert_int_equal(whole_at(in(tree, "parents"), next), i);
            i = next;
        }
        score[whole_at(info, t)] += (double)(float)real_at(in(tree, "split_conditions"), i);
    }
}

static void xgboost_has_the_same_scores(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        char         path[96];
        plait_data  *rows = NULL;
        plait_model *model = trained(kind, &rows);
        plait_error  err;
        if (plait_model_export(model, "xgboost-json", at("model.json", path), &err) < 0) fail_msg("%s", err.text);
        json_t *file = json_load_file(path, 0, NULL);
        assert_non_null(file);
        const json_t *booster = in(in(in(file, "learner"), "gradient_booster"), "model");
        assert_int_equal(json_array_size(in(booster, "trees")), 13 * columns_of(kind));
        assert_int_equal(json_array_size(in(booster, "iteration_indptr")), 14);
        compare(kind, model, rows, file, score_xgboost);
        json_decref(file);
        plait_data_destroy(&rows);
        plait_model_destroy(&model);
    }
}

/* --- ONNX --------------------------------------------------------------------------------------------------------- */

static const pli_onnx_attr *attr_of(const pli_onnx_node *node, const char *name) {
    for (int32_t i = 0; i < node->n_attrs; i++)
        if (strcmp(node->attr[i].name, name) == 0) return &node->attr[i];
    fail_msg("no attribute '%s'", name);
    return NULL;
}
static int64_t int_of(const pli_onnx_node *node, const char *name, int32_t i) { return attr_of(node, name)->ints[i]; }
static double number_of(const pli_onnx_node *node, const char *name, int32_t i) {
    return ((const double *)attr_of(node, name)->tensor->tensor.data)[i];
}

/* The nodes of a tree follow each other, and so do its leaves; targets are looked up. */
static double target_of(const pli_onnx_node *node, int64_t tree, int64_t id, int64_t *score_out) {
    const int32_t n = attr_of(node, "target_ids")->n;
    for (int32_t i = 0; i < n; i++)
        if (int_of(node, "target_treeids", i) == tree && int_of(node, "target_nodeids", i) == id) {
            *score_out = int_of(node, "target_ids", i);
            return number_of(node, "target_weights_as_tensor", i);
        }
    fail_msg("leaf %d of tree %d has no value", (int)id, (int)tree);
    return 0;
}

static void score_onnx(const void *file, const float *row, double *score) {
    const pli_onnx_node *node = file;
    const int32_t        n = attr_of(node, "nodes_treeids")->n;
    for (int64_t k = 0; k < attr_of(node, "n_targets")->i; k++)
        score[k] = number_of(node, "base_values_as_tensor", (int32_t)k);
    for (int32_t root = 0; root < n; root++) {
        if (int_of(node, "nodes_nodeids", root) != 0) continue;
        int32_t i = root;
        while (strcmp(attr_of(node, "nodes_modes")->texts[i], "BRANCH_LEQ") == 0) {
            const float value = row[int_of(node, "nodes_featureids", i)];
            const bool  yes = isnan(value) ? int_of(node, "nodes_missing_value_tracks_true", i) != 0
                                           : (double)value <= number_of(node, "nodes_values_as_tensor", i);
            i = root + (int32_t)int_of(node, yes ? "nodes_truenodeids" : "nodes_falsenodeids", i);
        }
        assert_string_equal(attr_of(node, "nodes_modes")->texts[i], "LEAF");
        int64_t      column = 0;
        const double value =
            target_of(node, int_of(node, "nodes_treeids", root), int_of(node, "nodes_nodeids", i), &column);
        score[column] += value;
    }
}

static const pli_onnx_node *ensemble_of(const pli_onnx_model *model) {
    for (int64_t i = 0; i < model->n_nodes; i++)
        if (strcmp(model->node[i].op, "TreeEnsembleRegressor") == 0) {
            assert_string_equal(model->node[i].domain, "ai.onnx.ml");
            return &model->node[i];
        }
    fail_msg("no trees");
    return NULL;
}

static void onnx_has_the_same_scores(void **state) {
    void                 *handle = NULL;
    const pli_onnx_codec *codec = NULL;
    plait_error           err;
    (void)state;
    if (pli_onnx_open(&handle, &codec, &err) < 0) {
        print_message("skipped: %s\n", err.text);
        skip();
    }
    for (int kind = 0; kind < 4; kind++) {
        static char  bytes[1 << 21];
        char         path[96];
        plait_data  *rows = NULL;
        plait_model *model = trained(kind, &rows);
        if (plait_model_export(model, "onnx", at("model.onnx", path), &err) < 0) fail_msg("%s", err.text);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        const size_t   n = fread(bytes, 1, sizeof bytes, f);
        pli_onnx_model file;
        assert_true(n > 0 && n < sizeof bytes);
        fclose(f);
        if (codec->decode(bytes, n, &file, &err) < 0) fail_msg("%s", err.text);
        compare(kind, model, rows, ensemble_of(&file), score_onnx);
        codec->free(&file);
        plait_data_destroy(&rows);
        plait_model_destroy(&model);
    }
    pli_module_close(&handle);
}

/* --- contributions ------------------------------------------------------------------------------------------------ */

/* The mean score of tree t, from node i on, for a row of which only the features of `known` count; out of the file
 * for XGBoost, which has each node's share of the rows. */
static double mean_of(const json_t *tree, size_t i, const float *row, unsigned known) {
    const int64_t left = whole_at(in(tree, "left_children"), i), right = whole_at(in(tree, "right_children"), i);
    if (left < 0) return real_at(in(tree, "split_conditions"), i);
    const int64_t feature = whole_at(in(tree, "split_indices"), i);
    const float   value = row[feature], cut = (float)real_at(in(tree, "split_conditions"), i);
    const bool    yes = isnan(value) ? whole_at(in(tree, "default_left"), i) != 0 : value < cut;
    if ((known >> feature & 1) != 0) return mean_of(tree, (size_t)(yes ? left : right), row, known);
    const json_t *cover = in(tree, "sum_hessian");
    const double  a = real_at(cover, (size_t)left), b = real_at(cover, (size_t)right);
    return (a * mean_of(tree, (size_t)left, row, known) + b * mean_of(tree, (size_t)right, row, known)) / (a + b);
}

/* Shapley values by their definition: over all orders of the features, how much each changes the mean when it becomes
 * known. out [columns, COLS + 1]. */
static void shapley(const json_t *booster, const float *row, int64_t columns, double *out) {
    static const double before[COLS] = { 1.0 / 4, 1.0 / 12, 1.0 / 12, 1.0 / 4 }; /* s! (COLS - 1 - s)! / COLS! */
    const json_t       *trees = in(booster, "trees");
    memset(out, 0, (size_t)(columns * (COLS + 1)) * sizeof *out);
    for (size_t t = 0; t < json_array_size(trees); t++) {
        double mean[1 << COLS], *to = out + (int64_t)t % columns * (COLS + 1);
        for (unsigned known = 0; known < 1 << COLS; known++)
            mean[known] = mean_of(json_array_get(trees, t), 0, row, known);
        to[COLS] += mean[0];
        for (unsigned known = 0; known < 1 << COLS; known++)
            for (int j = 0; j < COLS; j++)
                if ((known >> j & 1) == 0)
                    to[j] += before[__builtin_popcount(known)] * (mean[known | 1u << j] - mean[known]);
    }
}

static void contributions_are_shapley_values(void **state) {
    enum { WIDTH = CLASSES * (COLS + 1), LOOKED_AT = 12 };
    static double out[ROWS * WIDTH], want[ROWS * CLASSES];
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        char          path[96];
        plait_data   *rows = NULL;
        plait_model  *model = trained(kind, &rows);
        const int64_t k = columns_of(kind), width = k * (COLS + 1), classes = plait_model_classes(model);
        assert_int_equal(plait_model_width(model, PLAIT_ANSWER_CONTRIBUTIONS), width);
        assert_int_equal(plait_model_contributions(model, rows, out, NULL), PLAIT_OK);
        assert_int_equal(plait_model_predict(model, rows, 1, want, NULL), PLAIT_OK);
        for (int64_t i = 0; i < ROWS; i++) { /* they add up to the score */
            double score[CLASSES] = { 0 }, got[CLASSES];
            for (int64_t c = 0; c < width; c++) score[c / (COLS + 1)] += out[i * width + c];
            answer(kind, score, got);
            for (int64_t c = 0; c < (classes > 0 ? classes : 1); c++)
                assert_near(got[c], want[i * (classes > 0 ? classes : 1) + c], 1e-10 * fmax(1, fabs(got[c])));
        }
        assert_int_equal(plait_model_export(model, "xgboost-json", at("model.json", path), NULL), PLAIT_OK);
        json_t *file = json_load_file(path, 0, NULL);
        for (int64_t i = 0; i < LOOKED_AT; i++) {
            double exact[WIDTH];
            shapley(in(in(in(file, "learner"), "gradient_booster"), "model"), x[i], k, exact);
            for (int64_t c = 0; c < width; c++)
                assert_near(exact[c], out[i * width + c], 1e-5 * fmax(1, fabs(exact[c])));
        }
        json_decref(file);
        plait_data_destroy(&rows);
        plait_model_destroy(&model);
    }
}

/* --- a model's own file ------------------------------------------------------------------------------------------- */

/* Writes a model's file again, with another number of features. */
static void save_with(const char *from, const char *to, const char *features) {
    static const char *const keys[] = { "plait.format", "plait.model", "plait.features", "plait.classes",
                                        "plait.description", "plait.schema", "plait.options", "plait.loss",
                                        "plait.parameter", "plait.intercept", "plait.categories", "plait.shares" };
    enum { KEYS = sizeof keys / sizeof *keys };
    const char      *meta[2 * KEYS + 1] = { NULL };
    pli_safetensors *file = NULL;
    int              n = 0;
    assert_int_equal(pli_safetensors_open(from, &file, NULL), PLAIT_OK);
    for (int i = 0; i < KEYS; i++) {
        const char *value = pli_safetensors_metadata(file, keys[i]);
        if (value == NULL) continue;
        meta[n++] = keys[i];
        meta[n++] = strcmp(keys[i], "plait.features") == 0 ? features : value;
    }
    assert_int_equal(pli_safetensors_write(to, pli_safetensors_at(file, 0), pli_safetensors_count(file), meta, NULL),
                     PLAIT_OK);
    pli_safetensors_close(&file);
}

/* Texts t0 .. t(texts - 1), and a number. */
static void write_texts(const char *path, int texts) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "y,colour,size\n");
    for (int i = 0; i < ROWS; i++) fprintf(f, "%d,t%d,%d\n", i % texts % 3 == 0, i % texts, i * 37 % 101);
    fclose(f);
}

/* A file whose checksum holds may say any number of features: arrays have room for those of its columns. */
static void features_that_no_column_has_are_refused(void **state) {
    static const struct {
        const char *categories, *features;
        bool        good;
    } cases[] = { { "sets", "41", true },         { "sets", "0", false },
                  { "sets", "1", false },         { "sets", "40", false },
                  { "sets", "42", false },        { "sets", "100000000", false },
                  { "sets", "4294967337", false }, { "sets", "9223372036854775807", false },
                  { "apart", "41", true },        { "apart", "4611686018427387903", false },
                  { "apart", "9223372036854775807", false } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char            rows[96], kept[96], altered[96];
        plait_data_opts files;
        training        t = { .model = NULL };
        plait_model    *back = NULL;
        plait_data_opts_init(&files);
        plait_train_opts_init(&t.opts);
        write_texts(at("texts.csv", rows), 40);
        const char *paths[] = { rows };
        files.paths = paths;
        files.n_paths = 1;
        files.label = "y";
        t.opts.data = &files;
        t.opts.model = i % 2 == 0 ? "gbdt" : "forest";
        const plait_learner_setting categories = { "categories", cases[i].categories };
        t.opts.settings = &categories;
        t.opts.n_settings = 1;
        t.opts.epochs = 2;
        must_train(&t, 1);
        assert_int_equal(plait_model_features(t.model), 41);
        assert_int_equal(plait_model_save(t.model, at("kept.plait", kept), NULL), PLAIT_OK);
        plait_model_destroy(&t.model);
        save_with(kept, at("altered.plait", altered), cases[i].features);
        const plait_status status = plait_model_load(altered, &back, &t.error);
        if (status != (cases[i].good ? PLAIT_OK : PLAIT_EFORMAT))
            fail_msg("%s, %s features: status %d", cases[i].categories, cases[i].features, (int)status);
        plait_model_destroy(&back);
    }
}

static void other_models_are_no_trees(void **state) {
    char        path[96];
    plait_data *data = points(100, 3, 2, 1);
    training    t = net_of(data, NULL);
    (void)state;
    t.opts.model = "logistic";
    must_train(&t, 1);
    assert_int_equal(plait_model_export(t.model, "xgboost-json", at("none", path), &t.error), PLAIT_EREFUSED);
    assert_non_null(strstr(t.error.text, "xgboost-json is a form of trees"));
    assert_true(access(path, F_OK) != 0);
    assert_int_equal(plait_model_export(t.model, "xgboost", path, &t.error), PLAIT_ENAME);
    assert_non_null(strstr(t.error.text, "xgboost-json"));
    double out[1];
    assert_int_equal(plait_model_contributions(t.model, data, out, &t.error), PLAIT_EREFUSED);
    assert_int_equal(plait_model_width(t.model, PLAIT_ANSWER_CONTRIBUTIONS), 0);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state) {
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(xgboost_has_the_same_scores),
                                        cmocka_unit_test(onnx_has_the_same_scores),
                                        cmocka_unit_test(contributions_are_shapley_values),
                                        cmocka_unit_test(features_that_no_column_has_are_refused),
                                        cmocka_unit_test(other_models_are_no_trees) };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
