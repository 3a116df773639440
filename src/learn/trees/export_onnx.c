/* Trees as ONNX: one node TreeEnsembleRegressor (ai.onnx.ml 3), which adds up the scores in double, as predict does.
 * The answers are made from the scores as for all models (supervised/export.c). */
#include <string.h>

#include "graph/form/export.h"
#include "learn/trees/trees.h"

/* The node's attributes as arrays: those of all nodes, and those of the leaves. */
typedef struct arrays {
    int64_t      n, leaves;
    int64_t     *whole; /* [FIELDS, n] */
    int64_t     *leaf;  /* [LEAF_FIELDS, leaves] */
    double      *real;  /* [n + leaves]: cuts, then values */
    const char **mode;  /* [n] */
} arrays;

enum { TREE, NODE, FEATURE, YES, NO, MISSING, FIELDS };
enum { OF_TREE, OF_NODE, OF_SCORE, LEAF_FIELDS };

static void free_arrays(arrays *a) {
    pli_free(a->whole);
    pli_free(a->leaf);
    pli_free(a->real);
    pli_free(a->mode);
}

static bool make_arrays(const pli_trees *trees, arrays *a) {
    const size_t n = (size_t)trees->start[trees->n];
    *a = (arrays){ .n = (int64_t)n };
    for (size_t i = 0; i < n; i++) a->leaves += trees->node[i].feature < 0;
    a->whole = pli_calloc(n, FIELDS * sizeof *a->whole);
    a->leaf = pli_calloc((size_t)a->leaves, LEAF_FIELDS * sizeof *a->leaf);
    a->real = pli_calloc(n + (size_t)a->leaves, sizeof *a->real);
    a->mode = pli_array(n, sizeof *a->mode);
    return a->whole != NULL && a->leaf != NULL && a->real != NULL && a->mode != NULL;
}

static void fill(const pli_trees *trees, arrays *a) {
    int64_t *w = a->whole, l = 0;
    for (int64_t t = 0; t < trees->n; t++)
        for (int64_t i = trees->start[t]; i < trees->start[t + 1]; i++) {
            const pli_tree_node *node = &trees->node[i];
            const bool           leaf = node->feature < 0;
            w[TREE * a->n + i] = t;
            w[NODE * a->n + i] = i - trees->start[t];
            a->mode[i] = leaf ? "LEAF" : "BRANCH_LEQ";
            if (leaf) {
                a->leaf[OF_TREE * a->leaves + l] = t;
                a->leaf[OF_NODE * a->leaves + l] = i - trees->start[t];
                a->leaf[OF_SCORE * a->leaves + l] = t % trees->columns;
                a->real[a->n + l++] = node->value;
                continue;
            }
            w[FEATURE * a->n + i] = node->feature;
            w[YES * a->n + i] = node->left;
            w[NO * a->n + i] = node->right;
            w[MISSING * a->n + i] = node->missing_left;
            a->real[i] = node->cut;
        }
}

static pli_onnx_attr list(const char *name, int64_t n, const int64_t *ints) {
    return pli_export_list(name, (int32_t)n, ints);
}

static pli_onnx_attr numbers(const char *name, const pli_onnx_tensor *tensor) {
    return (pli_onnx_attr){ .name = name, .kind = PLI_ONNX_TENSOR, .tensor = tensor };
}

static pli_onnx_tensor tensor(int64_t n, const double *values) {
    return (pli_onnx_tensor){ .name = "", .tensor = plait_tensor_of(PLAIT_F64, plait_shape_1(n), values) };
}

/* Adds the node; returns the name of the scores [rows, columns]. */
static const char *scores(const plait_model *model, const pli_trees *trees, const arrays *a, pli_export *to) {
    const pli_onnx_tensor base = tensor(trees->columns, trees->base), cut = tensor(a->n, a->real),
                          value = tensor(a->leaves, a->real + a->n);
    const int64_t        *w = a->whole, *l = a->leaf, n = a->n;
    const pli_onnx_attr   modes = { .name = "nodes_modes", .kind = PLI_ONNX_TEXTS, .n = (int32_t)n, .texts = a->mode };
    const pli_onnx_attr   attrs[] = {
        pli_export_int("n_targets", trees->columns),
        pli_export_text("aggregate_function", "SUM"),
        pli_export_text("post_transform", "NONE"),
        numbers("base_values_as_tensor", &base),
        list("nodes_treeids", n, w + TREE * n),
        list("nodes_nodeids", n, w + NODE * n),
        list("nodes_featureids", n, w + FEATURE * n),
        list("nodes_truenodeids", n, w + YES * n),
        list("nodes_falsenodeids", n, w + NO * n),
        list("nodes_missing_value_tracks_true", n, w + MISSING * n),
        modes,
        numbers("nodes_values_as_tensor", &cut),
        list("target_treeids", a->leaves, l + OF_TREE * a->leaves),
        list("target_nodeids", a->leaves, l + OF_NODE * a->leaves),
        list("target_ids", a->leaves, l + OF_SCORE * a->leaves),
        numbers("target_weights_as_tensor", &value),
    };
    const char       *x = pli_fitted_export_rows(model, to, trees->features);
    const char *const in[] = { pli_export_cast(to, x, PLAIT_F64), NULL };
    return pli_export_ml_node(to, "TreeEnsembleRegressor", in, attrs, (int32_t)(sizeof attrs / sizeof *attrs));
}

/* Shares of votes become scores, as pli_bag_scores makes them. */
static const char *of_shares(const pli_trees *trees, pli_export *to, const char *shares) {
    const char *const bounded[] = { shares, pli_export_number(to, PLAIT_F32, PLI_LEAST_SHARE),
                                    pli_export_number(to, PLAIT_F32, 1 - PLI_LEAST_SHARE), NULL };
    const char       *share = pli_export_node(to, "Clip", bounded, NULL, 0);
    if (trees->columns > 1) return pli_export_1(to, "Log", share);
    const char *rest = pli_export_2(to, "Sub", pli_export_number(to, PLAIT_F32, 1), share);
    return pli_export_1(to, "Log", pli_export_2(to, "Div", share, rest));
}

plait_status pli_gbdt_export(const plait_model *model, pli_export *to, plait_error *err) {
    const pli_trees *trees = &((const pli_gbdt_model *)model->own)->trees;
    arrays           a;
    if (trees->start[trees->n] == 0 || trees->start[trees->n] > INT32_MAX)
        return pli_fail(err, PLAIT_EREFUSED, "a model of %lld nodes is refused: ONNX holds 1 to %d",
                        (long long)trees->start[trees->n], INT32_MAX);
    const bool ok = make_arrays(trees, &a);
    if (ok) {
        fill(trees, &a);
        const char *sums = scores(model, trees, &a, to);
        pli_fitted_export(model, to, PLAIT_F32, trees->shares ? of_shares(trees, to, sums) : sums);
    }
    free_arrays(&a);
    return ok ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory to export %lld trees", (long long)trees->n);
}
