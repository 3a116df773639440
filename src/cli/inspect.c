/* inspect - prints what a model file holds: description, labels, feature names; or the weights. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/settings.h"
#include "learn/model/model.h"

typedef struct inspect_settings {
    bool    weights;
    int64_t trees;
} inspect_settings;

static const pli_opt rows[] = {
    { "weights", PLI_OPT_FLAG, offsetof(inspect_settings, weights), NULL, NULL,
      "print the name and the weights of each feature that has any, separated by tabs", 0, 0, "output" },
    { "trees", PLI_OPT_I64, offsetof(inspect_settings, trees), "0", "N",
      "print the first N trees of a model of trees, a line for each node", 0, 1e15, "output" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* Are the names of the features consecutive numbers, so that the first and last suffice? */
static bool numbered(const plait_model *model, int64_t n) {
    int64_t first = 0, number = 0;
    for (int64_t j = 0; j < n; j++) {
        if (!pli_parse_i64(plait_model_feature(model, j), &number)) return false;
        if (j == 0) first = number;
        if (number != first + j) return false;
    }
    return n > 1;
}

static void put_line(const char *word, const char *value) {
    printf("%s\t", word);
    pli_cli_put(value);
    printf("\n");
}

/* Prints "centres F32 [8, 64]". */
static void put_array(const plait_model_array *a) {
    printf("value\t");
    pli_cli_put(a->name);
    printf(" %s [", a->type == PLAIT_F32 ? "F32" : a->type == PLAIT_F64 ? "F64" : "I64");
    for (int32_t i = 0; i < a->rank; i++) printf("%s%" PRId64, i > 0 ? ", " : "", a->shape[i]);
    printf("]\n");
}

/* Describes a model of named arrays: its learner's options, and the arrays. false: it has none. */
static bool describe_arrays(const plait_model *model) {
    plait_option_value option[PLAIT_OPTION_VALUES];
    plait_model_array  array;
    const int32_t      n = plait_model_options(model, option);
    for (int32_t i = 0; i < n; i++) {
        const plait_learner_option *as = pli_own_option_find(plait_model_name(model), option[i].name);
        if (option[i].value[0] == '\0' || (as != NULL && pli_own_option_leaves(as, option[i].value))) continue;
        printf("option\t");
        pli_cli_put(option[i].name);
        printf(" ");
        pli_cli_put(option[i].value);
        printf("\n");
    }
    if (plait_model_array_at(model, 0, &array) != PLAIT_OK) return false;
    for (int32_t i = 0; plait_model_array_at(model, i, &array) == PLAIT_OK; i++) put_array(&array);
    return true;
}

/* Lists the names of n features; only two if they are consecutive numbers. */
static void list_features(const plait_model *model, int64_t n) {
    if (numbered(model, n)) {
        printf("feature\t");
        pli_cli_put(plait_model_feature(model, 0));
        printf(" .. ");
        pli_cli_put(plait_model_feature(model, n - 1));
        printf("\n");
        return;
    }
    for (int64_t j = 0; j < n && !ferror(stdout); j++) put_line("feature", plait_model_feature(model, j));
}

static plait_status describe_own(const plait_model *model, plait_error *err) {
    pli_text     text = { 0 };
    plait_status status = pli_model_inspect(model, &text, err);
    if (status >= 0 && text.data != NULL) fputs(text.data, stdout);
    pli_text_free(&text);
    return status;
}

static plait_status describe(const plait_model *model, plait_error *err) {
    const int64_t n = plait_model_rows(model); /* the features that have weights */
    char          hash[65];
    plait_model_hash(model, hash);
    put_line("model", plait_model_name(model));
    put_line("hash", hash);
    printf("features\t%" PRId64 "\n", plait_model_features(model));
    put_line("description", plait_model_description(model));
    printf("classes\t%" PRId64 "\n", plait_model_classes(model));
    for (int64_t k = 0; k < plait_model_classes(model); k++) put_line("label", plait_model_label(model, k));
    if (describe_arrays(model)) {
        PLI_TRY(describe_own(model, err));
        list_features(model, plait_model_features(model));
        return PLAIT_OK;
    }
    if (isnan(plait_model_intercept(model, 0))) { /* a net has values, not features */
        printf("values\t%" PRId64 "\n", n);
        return PLAIT_OK;
    }
    list_features(model, n);
    return PLAIT_OK;
}

static void put_number(double value) {
    char text[32];
    pli_format_f64(value, text);
    printf("\t%s", text);
}

static double value_at(const plait_model_array *a, int64_t i) {
    if (a->type == PLAIT_F32) return (double)((const float *)a->data)[i];
    return a->type == PLAIT_F64 ? ((const double *)a->data)[i] : (double)((const int64_t *)a->data)[i];
}

/* Prints the place of element i: "centres 0,3". */
static void put_place(const plait_model_array *a, int64_t i) {
    int64_t at[4] = { 0 };
    for (int32_t axis = a->rank - 1; axis >= 0; axis--) {
        at[axis] = i % a->shape[axis];
        i /= a->shape[axis];
    }
    pli_cli_put(a->name);
    for (int32_t axis = 0; axis < a->rank; axis++) printf("%c%" PRId64, axis == 0 ? ' ' : ',', at[axis]);
}

static void list_arrays(const plait_model *model) {
    plait_model_array a;
    for (int32_t k = 0; plait_model_array_at(model, k, &a) == PLAIT_OK; k++) {
        int64_t n = 1;
        for (int32_t axis = 0; axis < a.rank; axis++) n *= a.shape[axis];
        for (int64_t i = 0; i < n && !ferror(stdout); i++) {
            put_place(&a, i);
            put_number(value_at(&a, i));
            putchar('\n');
        }
    }
}

static bool is_zero(const plait_model *model, int64_t j) {
    for (int64_t k = 0; k < plait_model_columns(model); k++)
        if (plait_model_weight(model, j, k) != 0) return false;
    return true;
}

static void list_weights(const plait_model *model) {
    list_arrays(model);
    int64_t columns = plait_model_columns(model);
    for (int64_t j = 0; j < plait_model_rows(model) && !ferror(stdout); j++) {
        if (is_zero(model, j)) continue;
        pli_cli_put(plait_model_feature(model, j));
        for (int64_t k = 0; k < columns; k++) put_number(plait_model_weight(model, j, k));
        putchar('\n');
    }
    if (isnan(plait_model_intercept(model, 0))) return; /* a net's biases are among its values */
    printf("(intercept)");
    for (int64_t k = 0; k < columns; k++) put_number(plait_model_intercept(model, k));
    putchar('\n');
}

static plait_status list_trees(const plait_model *model, int64_t n, plait_error *err) {
    plait_status status = PLAIT_OK;
    for (int64_t t = 0; t < n && status == PLAIT_OK && !ferror(stdout); t++) {
        pli_text text = { 0 };
        status = pli_model_tree(model, t, &text, err);
        if (status == PLAIT_OK && !text.failed) fputs(text.data, stdout);
        pli_text_free(&text);
    }
    return status == PLAIT_END ? PLAIT_OK : status;
}

static int inspect(int argc, char *const *argv) {
    inspect_settings set = { 0 };
    pli_opts        *opts = NULL;
    pli_text_list    files = { 0 };
    plait_model     *model = NULL;
    plait_error      err = { .rank = -1 };
    int              code = PLI_EXIT_USAGE;
    if (!pli_cli_read(&pli_command_inspect, argc, argv, &set, &files, &opts, &code)) return code;
    if (files.n != 1) {
        pli_cli_usage("inspect: %s; say 'plait inspect FILE'", files.n == 0 ? "no model" : "more than one model");
    } else if (plait_model_load(files.item[0], &model, &err) < 0) {
        code = pli_cli_fail(&err);
    } else {
        plait_status status = PLAIT_OK;
        if (set.trees > 0) status = list_trees(model, set.trees, &err);
        else if (set.weights) list_weights(model);
        else status = describe(model, &err);
        code = status < 0 ? pli_cli_fail(&err) : pli_cli_end(PLI_EXIT_DONE);
    }
    plait_model_destroy(&model);
    pli_opts_free(&opts);
    return code;
}

const pli_command pli_command_inspect = {
    .name = "inspect",
    .usage = "inspect FILE [--weights] [--trees N]",
    .summary = "show what a model holds",
    .details =
        "Each line holds a word, a tab and a value: the model's name and hash, its labels in the order of predict "
        "--proba, the names of its features. A model whose values are arrays (a clustering, a projection) shows its "
        "own options, and the name, type and shape of each array, before the features. A model of topics shows for "
        "each topic its share of the prior and its ten most frequent words.\n\n"
        "With --weights there is one line for each feature whose weights are not all zero: its name and its weights "
        "(one, or one for each class), separated by tabs; the intercept comes last. A hashed feature has the name that "
        "the data had for it, or hash:N. For arrays there is one line for each element. "
        "For trees the two numbers are what the feature's splits have gained, and how many they are.\n\n"
        "With --trees there is one line for each node of the first N trees. A row goes to the line 'yes' below if the "
        "condition holds; 'missing: yes' says where it goes without a value.",
    .rows = rows,
    .run = inspect,
};
