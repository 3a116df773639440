/* SHAP values: what each feature of a row adds to its score. They are the Shapley values of a game between features:
 * the worth of a set of features is the tree's mean value for a row of which only these are known. At a split by
 * another feature both branches count, each by its share of the training rows (of their h). The values of a row and
 * the mean of all trees add up to its score.
 *
 * A path to a leaf has parts, one for each feature that it splits by: `one` is 1 if the row takes the path at the
 * feature's splits, else 0; `zero` is the share of the rows that do. weight[i] is the sum over all sets of i features
 * of the path, of the product of their ones and the others' zeros, times the share that sets of that size have in a
 * Shapley value. extend adds a feature to a path, unwind takes it away; so one walk visits all leaves in
 * O(leaves depth^2).
 *
 * Paper: Lundberg, Erion and Lee, "Consistent Individualized Feature Attribution for Tree Ensembles", 2018, algorithm
 * 2. */
#include <math.h>
#include <string.h>

#include "learn/trees/tree.h"

/* Paths take memory by the square of the depth, and the walk calls itself. */
enum { DEPTH_MOST = 1000 };

typedef struct part {
    int32_t feature; /* -1: the root, which is no feature */
    double  zero, one, weight;
} part;

typedef struct walker {
    const pli_tree_node *tree;
    const int32_t       *code;
    const float         *x;
    double              *out; /* [features] */
} walker;

/* Which share of a node's rows goes to a child. */
static double share(const pli_tree_node *tree, int32_t node, int32_t child) {
    const double left = tree[tree[node].left].cover, right = tree[tree[node].right].cover;
    return left + right > 0 ? tree[child].cover / (left + right) : 0.5;
}

/* --- a path ------------------------------------------------------------------------------------------------------- */

/* Parts 0 to n - 1 are there; the new one is part n. */
static void extend(part *path, int32_t n, part added) {
    path[n] = added;
    path[n].weight = n == 0 ? 1 : 0;
    for (int32_t i = n - 1; i >= 0; i--) {
        path[i + 1].weight += added.one * path[i].weight * (i + 1) / (n + 1);
        path[i].weight = added.zero * path[i].weight * (n - i) / (n + 1);
    }
}

/* Takes part k away from parts 0 to n. */
static void unwind(part *path, int32_t n, int32_t k) {
    const double one = path[k].one, zero = path[k].zero;
    double       next = path[n].weight;
    for (int32_t i = n - 1; i >= 0; i--) {
        const double weight = path[i].weight;
        if (one != 0) {
            path[i].weight = next * (n + 1) / ((i + 1) * one);
            next = weight - path[i].weight * zero * (n - i) / (n + 1);
        } else {
            path[i].weight = weight * (n + 1) / (zero * (n - i));
        }
    }
    for (int32_t i = k; i < n; i++) {
        path[i].feature = path[i + 1].feature;
        path[i].zero = path[i + 1].zero;
        path[i].one = path[i + 1].one;
    }
}

/* The sum of the weights if part k were taken away. */
static double sum_without(const part *path, int32_t n, int32_t k) {
    const double one = path[k].one, zero = path[k].zero;
    double       next = path[n].weight, sum = 0;
    for (int32_t i = n - 1; i >= 0; i--) {
        if (one != 0) {
            const double weight = next * (n + 1) / ((i + 1) * one);
            sum += weight;
            next = path[i].weight - weight * zero * (n - i) / (n + 1);
        } else {
            sum += path[i].weight * (n + 1) / (zero * (n - i));
        }
    }
    return sum;
}

/* --- a tree ------------------------------------------------------------------------------------------------------- */

static void walk(const walker *w, int32_t at, const part *before, int32_t n, part added);

static void walk_split(const walker *w, int32_t at, part *path, int32_t n) {
    const pli_tree_node *node = &w->tree[at];
    const bool           left = pli_tree_goes_left(w->code, node, w->x[node->feature]);
    const int32_t        hot = left ? node->left : node->right, cold = left ? node->right : node->left;
    part                 here = { .feature = node->feature, .zero = 1, .one = 1 };
    int32_t              k = 1;
    while (k <= n && path[k].feature != node->feature) k++;
    if (k <= n) { /* the path has split by this feature before: both splits are one part */
        here.zero = path[k].zero;
        here.one = path[k].one;
        unwind(path, n--, k);
    }
    const double zero = here.zero;
    here.zero = zero * share(w->tree, at, hot);
    walk(w, hot, path, n + 1, here);
    here.zero = zero * share(w->tree, at, cold);
    here.one = 0;
    walk(w, cold, path, n + 1, here);
}

/* before [n]: the path to the parent; the path to this node follows it in memory. */
static void walk(const walker *w, int32_t at, const part *before, int32_t n, part added) {
    part *path = (part *)(uintptr_t)before + n;
    if (!(added.one > 0) && !(added.zero > 0)) return; /* nobody comes here, whichever features are known */
    memcpy(path, before, (size_t)n * sizeof *path);
    extend(path, n, added);
    if (w->tree[at].feature >= 0) {
        walk_split(w, at, path, n);
        return;
    }
    for (int32_t k = 1; k <= n; k++)
        w->out[path[k].feature] += sum_without(path, n, k) * (path[k].one - path[k].zero) * w->tree[at].value;
}

/* --- all trees ---------------------------------------------------------------------------------------------------- */

/* Children lie behind their parents: means come from the last node up, depths from the first one down. scratch [nodes
 * of the largest tree]. */
static double mean_of(const pli_tree_node *tree, int64_t nodes, double *scratch) {
    for (int64_t i = nodes - 1; i >= 0; i--) {
        const int32_t left = tree[i].left, right = tree[i].right, at = (int32_t)i;
        if (tree[i].feature < 0) scratch[i] = tree[i].value;
        else scratch[i] = share(tree, at, left) * scratch[left] + share(tree, at, right) * scratch[right];
    }
    return scratch[0];
}

static int32_t depth_of(const pli_tree_node *tree, int64_t nodes, double *scratch) {
    double most = 0;
    scratch[0] = 0;
    for (int64_t i = 0; i < nodes; i++) {
        most = fmax(most, scratch[i]);
        if (tree[i].feature >= 0) scratch[tree[i].left] = scratch[tree[i].right] = scratch[i] + 1;
    }
    return (int32_t)most;
}

static plait_status measure(const pli_trees *trees, double *scratch, double *mean, int32_t *depth, plait_error *err) {
    *depth = 0;
    memcpy(mean, trees->base, (size_t)trees->columns * sizeof *mean);
    for (int64_t t = 0; t < trees->n; t++) {
        const pli_tree_node *tree = trees->node + trees->start[t];
        const int64_t        nodes = trees->start[t + 1] - trees->start[t];
        const int32_t        deep = depth_of(tree, nodes, scratch);
        mean[t % trees->columns] += mean_of(tree, nodes, scratch);
        if (deep > *depth) *depth = deep;
    }
    if (*depth <= DEPTH_MOST) return PLAIT_OK;
    return pli_fail(err, PLAIT_EREFUSED, "contributions to trees of %d levels are refused: at most %d; train with "
                                         "--depth", (int)*depth, (int)DEPTH_MOST);
}

static void add_row(const pli_trees *trees, const float *x, const double *mean, part *room, double *out) {
    const int64_t d = trees->features, k = trees->columns;
    memset(out, 0, (size_t)(k * (d + 1)) * sizeof *out);
    for (int64_t c = 0; c < k; c++) out[c * (d + 1) + d] = mean[c];
    for (int64_t t = 0; t < trees->n; t++) {
        const walker w = { .tree = trees->node + trees->start[t], .code = trees->code, .x = x,
                           .out = out + t % k * (d + 1) };
        walk(&w, 0, room, 0, (part){ .feature = -1, .zero = 1, .one = 1 });
    }
}

int64_t pli_gbdt_contributions_width(const plait_model *model) {
    const pli_trees *trees = &((const pli_gbdt_model *)model->own)->trees;
    return trees->columns * (trees->features + 1);
}

plait_status pli_gbdt_contributions(const plait_model *model, const pli_dataset *data, double *out, plait_error *err) {
    const pli_trees *trees = &((const pli_gbdt_model *)model->own)->trees;
    const int64_t    width = pli_gbdt_contributions_width(model);
    int64_t          largest = 1;
    int32_t          depth = 0;
    for (int64_t t = 0; t < trees->n; t++)
        if (trees->start[t + 1] - trees->start[t] > largest) largest = trees->start[t + 1] - trees->start[t];
    double *scratch = pli_array((size_t)largest, sizeof *scratch);
    double *mean = pli_array((size_t)trees->columns, sizeof *mean);
    float  *x = pli_calloc((size_t)trees->features + 1, sizeof *x);
    part   *room = NULL;
    plait_status status = scratch != NULL && mean != NULL && x != NULL
                              ? measure(trees, scratch, mean, &depth, err)
                              : pli_fail(err, PLAIT_ENOMEM, "no memory for contributions");
    if (status >= 0) { /* the path to a node of level l has l + 1 parts, and follows those to its parents */
        room = pli_array((size_t)(depth + 2) * (size_t)(depth + 3) / 2, sizeof *room);
        if (room == NULL) status = pli_fail(err, PLAIT_ENOMEM, "no memory for contributions");
    }
    for (int32_t b = 0; status >= 0 && b < pli_dataset_own_blocks(data); b++) {
        const pli_block *block = pli_dataset_block(data, b);
        for (int64_t r = 0; r < block->rows; r++, out += width) {
            pli_trees_spread(trees, block, r, false, x);
            add_row(trees, x, mean, room, out);
            pli_trees_spread(trees, block, r, true, x);
        }
    }
    pli_free(scratch);
    pli_free(mean);
    pli_free(x);
    pli_free(room);
    return status;
}
