/* Trees as ONNX: one node TreeEnsembleRegressor (ai.onnx.ml 3), which adds up the scores in double, as predict does.
 * The answers are made from the scores as for all models (supervised/export.c). */
#include <string.h>

#include "graph/form/export.h"
#include "learn/trees/tree.h"

/* The node's attributes as arrays: those of all nodes, and those of the leaves. */
typedef struct arrays {
    int64_t      n, leaves;
    int64_t     *whole; /* [FIELDS, n] */
    int64_t     *leaf;  /* [LEAF_FIELDS, leaves] */
    double      *real;  /* [n + leaves]: cuts, then values */
    const char **mode;  /* [n] */
    int64_t     *place; /* [nodes of the largest tree] the first of the node's numbers */
} arrays;

enum { TREE, NODE, FEATURE, YES, NO, MISSING, FIELDS };
enum { OF_TREE, OF_NODE, OF_SCORE, LEAF_FIELDS };

static void free_arrays(arrays *a) {
    pli_free(a->whole);
    pli_free(a->leaf);
    pli_free(a->real);
    pli_free(a->mode);
    pli_free(a->place);
}

/* A split by texts is a chain of nodes, one for each text that goes left. The rows have a feature for each text, 1 or
 * 0. All nodes of a chain have the same child for yes. */
static int64_t nodes_for(const pli_tree_node *node) { return node->codes > 0 ? node->codes : 1; }

static bool make_arrays(const pli_trees *trees, arrays *a) {
    const int64_t nodes = trees->start[trees->n];
    *a = (arrays){ .n = 0 };
    for (int64_t i = 0; i < nodes; i++) {
        a->n += nodes_for(&trees->node[i]);
        a->leaves += trees->node[i].feature < 0;
    }
    a->whole = pli_calloc((size_t)a->n, FIELDS * sizeof *a->whole);
    a->leaf = pli_calloc((size_t)a->leaves, LEAF_FIELDS * sizeof *a->leaf);
    a->real = pli_calloc((size_t)(a->n + a->leaves), sizeof *a->real);
    a->mode = pli_array((size_t)a->n, sizeof *a->mode);
    a->place = pli_array((size_t)nodes, sizeof *a->place);
    return a->whole != NULL && a->leaf != NULL && a->real != NULL && a->mode != NULL && a->place != NULL;
}

static void add_leaf(const pli_trees *trees, int64_t t, int64_t id, const pli_tree_node *node, int64_t l, arrays *a) {
    a->leaf[OF_TREE * a->leaves + l] = t;
    a->leaf[OF_NODE * a->leaves + l] = id;
    a->leaf[OF_SCORE * a->leaves + l] = t % trees->columns;
    a->real[a->n + l] = node->value;
}

/* Node `at` of the arrays, which is node `id` of its tree: part c of a split. */
static void add_split(const pli_trees *trees, const pli_tree_node *node, const int64_t *place, int64_t at, int64_t id,
                      int32_t c, arrays *a) {
    int64_t       *w = a->whole;
    const int64_t *first = trees->fields.first, key = first != NULL ? first[node->feature] : node->feature;
    const bool     by_texts = node->codes > 0, last = c + 1 >= node->codes;
    a->mode[at] = by_texts ? "BRANCH_GT" : "BRANCH_LEQ";
    w[FEATURE * a->n + at] = by_texts ? key + trees->code[node->code + c] : key;
    w[YES * a->n + at] = place[node->left];
    w[NO * a->n + at] = last ? place[node->right] : id + 1;
    w[MISSING * a->n + at] = node->missing_left;
    a->real[at] = by_texts ? 0.5 : node->cut;
}

static void fill(const pli_trees *trees, arrays *a) {
    int64_t l = 0, at = 0;
    for (int64_t t = 0; t < trees->n; t++) {
        const pli_tree_node *tree = trees->node + trees->start[t];
        const int64_t        nodes = trees->start[t + 1] - trees->start[t];
        for (int64_t i = 0, id = 0; i < nodes; id += nodes_for(&tree[i++])) a->place[i] = id;
        for (int64_t i = 0; i < nodes; i++)
            for (int32_t c = 0; c < nodes_for(&tree[i]); c++, at++) {
                const int64_t id = a->place[i] + c;
                a->whole[TREE * a->n + at] = t;
                a->whole[NODE * a->n + at] = id;
                a->mode[at] = "LEAF";
                if (tree[i].feature < 0) add_leaf(trees, t, id, &tree[i], l++, a);
                else add_split(trees, &tree[i], a->place, at, id, c, a);
            }
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
    const char       *x = pli_fitted_export_rows(model, to, trees->fields.keys);
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
    const bool ok = make_arrays(trees, &a);
    if (ok && (a.n == 0 || a.n > INT32_MAX)) {
        free_arrays(&a);
        return pli_fail(err, PLAIT_EREFUSED, "a model of %lld nodes is refused: ONNX holds 1 to %d", (long long)a.n,
                        INT32_MAX);
    }
    if (ok) {
        fill(trees, &a);
        const char *sums = scores(model, trees, &a, to);
        pli_fitted_export(model, to, PLAIT_F32, trees->shares ? of_shares(trees, to, sums) : sums);
    }
    free_arrays(&a);
    return ok ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory to export %lld trees", (long long)trees->n);
}
