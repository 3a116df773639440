/* Trees in the JSON form of XGBoost models (Booster.load_model), version 2: XGBoost reads it as its own model.
 *
 * XGBoost sends a row left if x < cut, with float32 cuts; here it is x <= cut, with a double. For a float32 x both say
 * the same if XGBoost's cut is the next float32 above the largest one that is not above ours. Its base is one number
 * for all classes, and is given as a probability or a mean for some losses; so the base is written as trees of one
 * leaf, one a score, before the others.
 *
 * A column of texts is one categorical feature, whose value is the number of the text in the order of bytes, from 0. At
 * such a split XGBoost names the categories that go right, and sends all others left, as it does a missing value by
 * default_left. So the children of ours, which names those that go left, change places. XGBoost takes the right child
 * to follow the left one, so it is the children themselves that move, and not their parent's numbers. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/trees/tree.h"

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static float cut_above(double cut) {
    if (cut >= (double)FLT_MAX) return FLT_MAX; /* every finite number but this one goes left */
    if (cut < -(double)FLT_MAX) return -FLT_MAX;
    float below = (float)cut;
    if ((double)below > cut) below = nextafterf(below, -INFINITY);
    return fminf(nextafterf(below, INFINITY), FLT_MAX);
}

/* XGBoost takes a number without point and exponent for an integer, and refuses it. */
static void add_number(pli_text *json, double value) {
    const double most = (double)FLT_MAX;
    char         number[40];
    pli_format_json_f64((double)(float)fmax(fmin(value, most), -most), number);
    if (strpbrk(number, ".e") == NULL) strcat(number, "e0");
    pli_json_raw(json, NULL, number);
}

/* --- a tree ------------------------------------------------------------------------------------------------------- */

typedef struct tree_view {
    int64_t              n;
    const pli_tree_node *node;
    const int32_t       *code;
    const int32_t       *parent; /* [n] by place */
    const int32_t       *at;     /* [n] which node has this place, and the place of this node */
} tree_view;

static const pli_tree_node *node_of(const tree_view *t, int64_t i) { return &t->node[t->at[i]]; }
static int64_t left_of(const tree_view *t, int64_t i) { return node_of(t, i)->feature < 0 ? -1 : node_of(t, i)->left; }
static int64_t right_of(const tree_view *t, int64_t i) {
    return node_of(t, i)->feature < 0 ? -1 : node_of(t, i)->right;
}
static int64_t parent_of(const tree_view *t, int64_t i) { return i == 0 ? INT32_MAX : t->parent[i]; }
static int64_t feature_of(const tree_view *t, int64_t i) {
    return node_of(t, i)->feature < 0 ? 0 : node_of(t, i)->feature;
}
static int64_t default_of(const tree_view *t, int64_t i) {
    return node_of(t, i)->feature >= 0 && (node_of(t, i)->missing_left || node_of(t, i)->codes > 0);
}
static int64_t type_of(const tree_view *t, int64_t i) { return node_of(t, i)->codes > 0; }
static double cut_of(const tree_view *t, int64_t i) {
    if (node_of(t, i)->codes > 0) return 0; /* not read */
    return node_of(t, i)->feature < 0 ? node_of(t, i)->value : (double)cut_above(node_of(t, i)->cut);
}
static double value_of(const tree_view *t, int64_t i) { return node_of(t, i)->feature < 0 ? node_of(t, i)->value : 0; }
static double gain_of(const tree_view *t, int64_t i) { return node_of(t, i)->feature < 0 ? 0 : node_of(t, i)->gain; }
static double cover_of(const tree_view *t, int64_t i) { return node_of(t, i)->cover; }

/* Lists of the splits by texts: their codes one after the other; and for each split its node, where its codes begin,
 * and how many they are. */
static void add_codes(const tree_view *t, pli_text *json) {
    for (int64_t i = 0; i < t->n; i++)
        for (int32_t c = 0; c < node_of(t, i)->codes; c++) pli_json_i64(json, NULL, t->code[node_of(t, i)->code + c]);
}
static void add_nodes(const tree_view *t, pli_text *json) {
    for (int64_t i = 0; i < t->n; i++)
        if (node_of(t, i)->codes > 0) pli_json_i64(json, NULL, i);
}
static void add_segments(const tree_view *t, pli_text *json) {
    for (int64_t i = 0, begin = 0; i < t->n; begin += node_of(t, i++)->codes)
        if (node_of(t, i)->codes > 0) pli_json_i64(json, NULL, begin);
}
static void add_sizes(const tree_view *t, pli_text *json) {
    for (int64_t i = 0; i < t->n; i++)
        if (node_of(t, i)->codes > 0) pli_json_i64(json, NULL, node_of(t, i)->codes);
}

static const struct {
    const char *key;
    int64_t (*whole)(const tree_view *, int64_t i);
    double (*real)(const tree_view *, int64_t i);
    void (*list)(const tree_view *, pli_text *json); /* of splits by texts */
} columns[] = {
    { "base_weights", NULL, value_of, NULL },
    { "categories", NULL, NULL, add_codes },
    { "categories_nodes", NULL, NULL, add_nodes },
    { "categories_segments", NULL, NULL, add_segments },
    { "categories_sizes", NULL, NULL, add_sizes },
    { "default_left", default_of, NULL, NULL },
    { "left_children", left_of, NULL, NULL },
    { "loss_changes", NULL, gain_of, NULL },
    { "parents", parent_of, NULL, NULL },
    { "right_children", right_of, NULL, NULL },
    { "split_conditions", NULL, cut_of, NULL },
    { "split_indices", feature_of, NULL, NULL },
    { "split_type", type_of, NULL, NULL },
    { "sum_hessian", NULL, cover_of, NULL },
};

/* XGBoost wants many of its numbers as texts. */
static void add_count(pli_text *json, const char *key, int64_t n) {
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)n);
    pli_json_text(json, key, number);
}

static void add_tree(pli_text *json, int64_t id, int64_t features, const tree_view *t) {
    pli_json_object(json, NULL);
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        pli_json_list(json, columns[c].key);
        if (columns[c].list != NULL) columns[c].list(t, json);
        for (int64_t i = 0; columns[c].list == NULL && i < t->n; i++) {
            if (columns[c].whole != NULL) pli_json_i64(json, NULL, columns[c].whole(t, i));
            else add_number(json, columns[c].real(t, i));
        }
        pli_json_list_end(json);
    }
    pli_json_i64(json, "id", id);
    pli_json_object(json, "tree_param");
    add_count(json, "num_deleted", 0);
    add_count(json, "num_feature", features);
    add_count(json, "num_nodes", t->n);
    add_count(json, "size_leaf_vector", 1);
    pli_json_end(json);
    pli_json_end(json);
}

/* Children of splits by texts change places. */
static void place(const pli_tree_node *node, int64_t n, int32_t *at) {
    for (int64_t i = 0; i < n; i++) at[i] = (int32_t)i;
    for (int64_t i = 0; i < n; i++)
        if (node[i].codes > 0) at[node[i].left] = node[i].right, at[node[i].right] = node[i].left;
}

/* scratch [2 x nodes of the largest tree] */
static void add_trees(pli_text *json, const pli_trees *trees, int64_t most, int32_t *scratch) {
    int32_t *parent = scratch, *at = scratch + most;
    const int64_t k = trees->columns;
    pli_json_list(json, "trees");
    for (int64_t c = 0; c < k; c++) {
        const pli_tree_node base = { .feature = -1, .value = trees->base[c], .cover = 1 };
        at[0] = 0;
        add_tree(json, c, trees->features, &(tree_view){ .n = 1, .node = &base, .at = at });
    }
    for (int64_t t = 0; t < trees->n; t++) {
        const tree_view view = { .n = trees->start[t + 1] - trees->start[t], .node = trees->node + trees->start[t],
                                 .code = trees->code, .parent = parent, .at = at };
        place(view.node, view.n, at);
        for (int64_t i = 0; i < view.n; i++)
            if (view.node[i].feature >= 0) parent[view.node[i].left] = parent[view.node[i].right] = at[i];
        add_tree(json, k + t, trees->features, &view);
    }
    pli_json_list_end(json);
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

static void add_booster(pli_text *json, const pli_trees *trees, int64_t most, int32_t *scratch) {
    const int64_t k = trees->columns, all = trees->n + k;
    pli_json_object(json, "gradient_booster");
    pli_json_text(json, "name", "gbtree");
    pli_json_object(json, "model");
    pli_json_object(json, "gbtree_model_param");
    add_count(json, "num_parallel_tree", 1);
    add_count(json, "num_trees", all);
    pli_json_end(json);
    pli_json_list(json, "iteration_indptr");
    for (int64_t t = 0; t <= all; t += k) pli_json_i64(json, NULL, t);
    pli_json_list_end(json);
    pli_json_list(json, "tree_info");
    for (int64_t t = 0; t < all; t++) pli_json_i64(json, NULL, t % k);
    pli_json_list_end(json);
    add_trees(json, trees, most, scratch);
    pli_json_end(json);
    pli_json_end(json);
}

/* Which of XGBoost's objectives makes the same answers of scores, its parameters, and the base that is the score 0. */
static void add_objective(pli_text *json, const pli_goal *goal, const char **zero_out) {
    const bool classes = goal->classes > 0, several = goal->columns > 1;
    *zero_out = "0E0";
    pli_json_object(json, "objective");
    if (several) {
        pli_json_text(json, "name", "multi:softprob");
        pli_json_object(json, "softmax_multiclass_param");
        add_count(json, "num_class", goal->columns);
    } else if (goal->loss->log_mean) {
        *zero_out = "1E0";
        pli_json_text(json, "name", "count:poisson");
        pli_json_object(json, "poisson_regression_param");
        pli_json_text(json, "max_delta_step", "0.7");
    } else {
        if (classes) *zero_out = "5E-1";
        pli_json_text(json, "name", classes ? "binary:logistic" : "reg:squarederror");
        pli_json_object(json, "reg_loss_param");
        pli_json_text(json, "scale_pos_weight", "1");
    }
    pli_json_end(json);
    pli_json_end(json);
}

static void add_param(pli_text *json, const pli_trees *trees, const char *zero) {
    pli_json_object(json, "learner_model_param");
    pli_json_text(json, "base_score", zero);
    pli_json_text(json, "boost_from_average", "1");
    add_count(json, "num_class", trees->columns > 1 ? trees->columns : 0);
    add_count(json, "num_feature", trees->features);
    add_count(json, "num_target", 1);
    pli_json_end(json);
}

/* What XGBoost keeps with a model and does not read: Booster.attributes(). */
static void add_attributes(pli_text *json, const plait_model *model, pli_text *labels) {
    pli_json_list(labels, NULL);
    for (int64_t k = 0; k < model->classes; k++) pli_json_text(labels, NULL, model->label_text[k]);
    pli_json_list_end(labels);
    pli_json_object(json, "attributes");
    pli_json_text(json, "plait.model", model->name);
    pli_json_text(json, "plait.loss", pli_fitted_of(model)->goal.loss->model);
    pli_json_text(json, "plait.labels", labels->data);
    pli_json_end(json);
}

/* With columns of texts the features have names and kinds, so that a table's columns are known. */
static void add_features(pli_text *json, const plait_model *model, const pli_trees *trees) {
    const bool grouped = trees->fields.first != NULL;
    pli_text   name = { 0 };
    pli_json_list(json, "feature_names");
    for (int64_t f = 0; grouped && f < trees->features; f++) {
        name.length = 0;
        pli_fields_name(&trees->fields, model->schema, f, &name);
        pli_json_text(json, NULL, name.failed ? "" : name.data);
        json->failed = json->failed || name.failed;
    }
    pli_json_list_end(json);
    pli_json_list(json, "feature_types");
    for (int64_t f = 0; grouped && f < trees->features; f++)
        pli_json_text(json, NULL, pli_field_is_text(&trees->fields, f) ? "c" : "float");
    pli_json_list_end(json);
    pli_text_free(&name);
}

plait_status pli_gbdt_xgboost(const plait_model *model, pli_text *json, plait_error *err) {
    const pli_trees *trees = &((const pli_gbdt_model *)model->own)->trees;
    pli_text         labels = { 0 };
    const char      *zero = NULL;
    int64_t          most = 1;
    if (trees->shares)
        return pli_fail(err, PLAIT_EREFUSED, "a forest of classes as xgboost-json is refused: XGBoost's trees add up "
                                             "scores, and these add up shares of votes; take --format onnx");
    if (pli_schema_origins(model->schema) > 0)
        return pli_fail(err, PLAIT_EREFUSED, "a model as xgboost-json is refused if columns lie so far from 0 that "
                                             "32-bit numbers, which XGBoost reads, lose their digits; take --format "
                                             "onnx, or subtract a constant from these columns before training");
    for (int64_t t = 0; t < trees->n; t++)
        most = trees->start[t + 1] - trees->start[t] > most ? trees->start[t + 1] - trees->start[t] : most;
    int32_t *scratch = pli_calloc((size_t)most, 2 * sizeof *scratch);
    if (scratch == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to export trees");
    pli_json_begin(json);
    pli_json_object(json, "learner");
    add_attributes(json, model, &labels);
    add_features(json, model, trees);
    add_booster(json, trees, most, scratch);
    add_objective(json, &pli_fitted_of(model)->goal, &zero);
    add_param(json, trees, zero);
    pli_json_end(json);
    pli_json_list(json, "version");
    pli_json_i64(json, NULL, 2);
    pli_json_i64(json, NULL, 1);
    pli_json_i64(json, NULL, 0);
    pli_json_list_end(json);
    pli_json_end(json);
    const bool failed = json->failed || labels.failed;
    pli_free(scratch);
    pli_text_free(&labels);
    return failed ? pli_fail(err, PLAIT_ENOMEM, "no memory to write %lld trees", (long long)trees->n) : PLAIT_OK;
}
