/* Trees, and scores of rows. See trees.h. */
#include <math.h>
#include <string.h>

#include "learn/solve/block.h"
#include "learn/trees/trees.h"

enum { ROWS = 64 }; /* rows that are scored at once: a tree stays in the cache for all of them */

/* --- life --------------------------------------------------------------------------------------------------------- */

plait_status pli_trees_make(pli_trees *trees, int64_t features, int64_t columns, plait_error *err) {
    *trees = (pli_trees){ .features = features, .columns = columns };
    trees->base = pli_calloc((size_t)columns, sizeof *trees->base);
    void *start = NULL;
    if (trees->base == NULL || !pli_grow(&start, &trees->start_capacity, 1, sizeof *trees->start)) {
        pli_free(trees->base);
        *trees = (pli_trees){ 0 };
        return pli_fail(err, PLAIT_ENOMEM, "no memory for trees");
    }
    trees->start = start;
    trees->start[0] = 0;
    return PLAIT_OK;
}

void pli_trees_free(pli_trees *trees) {
    pli_free(trees->base);
    pli_free(trees->start);
    pli_free(trees->node);
    *trees = (pli_trees){ 0 };
}

plait_status pli_trees_add(pli_trees *trees, int64_t nodes, const pli_tree_node *node, plait_error *err) {
    void         *start = trees->start, *all = trees->node;
    const int64_t first = trees->start[trees->n];
    bool          ok = pli_grow(&start, &trees->start_capacity, trees->n + 2, sizeof *trees->start);
    trees->start = start;
    ok = ok && pli_grow(&all, &trees->node_capacity, first + nodes, sizeof *trees->node);
    trees->node = all;
    if (!ok) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld trees", (long long)trees->n + 1);
    memcpy(trees->node + first, node, (size_t)nodes * sizeof *node);
    trees->start[++trees->n] = first + nodes;
    return PLAIT_OK;
}

void pli_trees_cut(pli_trees *trees, int64_t n) {
    if (n < trees->n) trees->n = n;
}

/* --- arrays ------------------------------------------------------------------------------------------------------- */

void pli_trees_lay_out(const pli_trees *trees, int64_t *whole, double *real) {
    for (int64_t i = 0; i < trees->start[trees->n]; i++) {
        const pli_tree_node *node = &trees->node[i];
        int64_t             *w = whole + i * PLI_TREES_WHOLE;
        double              *r = real + i * PLI_TREES_REAL;
        w[0] = node->feature, w[1] = node->left, w[2] = node->right, w[3] = node->missing_left, w[4] = node->rows;
        r[0] = node->cut, r[1] = node->value, r[2] = node->gain, r[3] = node->cover;
    }
}

/* Children lie behind their parent, so a walk down the tree ends; and each node but the first has one parent. child
 * [nodes], zeros: notes who is a child. */
static bool is_sound(const pli_trees *trees, int64_t t, bool *child) {
    const int64_t        nodes = trees->start[t + 1] - trees->start[t];
    const pli_tree_node *node = trees->node + trees->start[t];
    int64_t              children = 0;
    for (int64_t i = 0; i < nodes; i++) {
        const int32_t left = node[i].left, right = node[i].right;
        if (node[i].feature < 0) {
            if (!isfinite(node[i].value)) return false;
            continue;
        }
        if (node[i].feature >= trees->features || isnan(node[i].cut)) return false;
        if (left <= i || left >= nodes || right <= i || right >= nodes || left == right) return false;
        if (child[left] || child[right]) return false;
        child[left] = child[right] = true;
        children += 2;
    }
    return children + 1 == nodes;
}

bool pli_trees_are_sound(const pli_trees *trees) {
    bool *child = pli_calloc((size_t)trees->start[trees->n], sizeof *child), sound = child != NULL;
    for (int64_t t = 0; sound && t < trees->n; t++) sound = is_sound(trees, t, child + trees->start[t]);
    pli_free(child);
    if (!sound) return false;
    for (int64_t k = 0; k < trees->columns; k++)
        if (!isfinite(trees->base[k])) return false;
    return trees->n % trees->columns == 0;
}

static bool fits(int64_t value) { return value >= -1 && value <= INT32_MAX; }

static plait_status refuse(plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "its nodes are not trees");
}

plait_status pli_trees_take(pli_trees *trees, int64_t n, const int64_t *start, int64_t nodes, const int64_t *whole,
                            const double *real, plait_error *err) {
    void *starts = trees->start, *all = trees->node;
    if (n < 0 || nodes < 0 || start[0] != 0 || start[n] != nodes) return refuse(err);
    for (int64_t t = 0; t < n; t++)
        if (start[t + 1] <= start[t]) return refuse(err);
    bool ok = pli_grow(&starts, &trees->start_capacity, n + 1, sizeof *trees->start);
    trees->start = starts;
    ok = ok && pli_grow(&all, &trees->node_capacity, nodes > 0 ? nodes : 1, sizeof *trees->node);
    trees->node = all;
    if (!ok) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld trees", (long long)n);
    trees->n = n;
    memcpy(trees->start, start, (size_t)(n + 1) * sizeof *start);
    for (int64_t i = 0; i < nodes; i++) {
        const int64_t *w = whole + i * PLI_TREES_WHOLE;
        const double  *r = real + i * PLI_TREES_REAL;
        if (!fits(w[0]) || !fits(w[1]) || !fits(w[2])) return refuse(err);
        trees->node[i] = (pli_tree_node){ .feature = (int32_t)w[0], .left = (int32_t)w[1], .right = (int32_t)w[2],
                                          .missing_left = w[3] != 0, .rows = w[4], .cut = r[0], .value = r[1],
                                          .gain = r[2], .cover = r[3] };
    }
    return pli_trees_are_sound(trees) ? PLAIT_OK : refuse(err);
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

static plait_status open(const void *form, const pli_solution *solution, void **scorer_out, plait_error *err) {
    (void)form, (void)solution, (void)err;
    *scorer_out = NULL;
    return PLAIT_OK;
}

static void close(void *scorer) { (void)scorer; }

void pli_trees_spread(const pli_block *block, int64_t row, int64_t features, bool zero, float *x) {
    for (int64_t e = block->row_start[row]; e < block->row_start[row + 1]; e++) {
        const uint64_t column = pli_block_column(block, e);
        if (column < (uint64_t)features) x[column] = zero ? 0 : block->value != NULL ? block->value[e] : 1;
    }
}

static double leaf_of(const pli_tree_node *tree, const float *x) {
    const pli_tree_node *node = tree;
    while (node->feature >= 0)
        node = tree + (pli_tree_goes_left(node, x[node->feature]) ? node->left : node->right);
    return node->value;
}

/* Memory for so many rows at once; fewer where rows are wide. */
static int64_t rows_at_once(const pli_trees *trees) {
    const int64_t n = ((int64_t)1 << 20) / (trees->features > 0 ? trees->features : 1);
    return n < 1 ? 1 : n > ROWS ? ROWS : n;
}

static plait_status score_block(const void *form, const pli_solution *solution, void *scorer, const pli_block *block,
                                pli_score_fn *each, void *user, plait_error *err) {
    const pli_trees *trees = form;
    const int64_t    k = trees->columns, d = trees->features, most = rows_at_once(trees);
    float           *x = pli_calloc((size_t)most, ((size_t)d + 1) * sizeof *x);
    double          *score = pli_array((size_t)(most + 2) * (size_t)k, sizeof *score);
    bool             more = x != NULL && score != NULL;
    plait_status     status = more ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for scores");
    (void)solution, (void)scorer;
    for (int64_t first = 0, n; more && first < block->rows; first += n) {
        n = block->rows - first < most ? block->rows - first : most;
        for (int64_t i = 0; i < n; i++) {
            pli_trees_spread(block, first + i, d, false, x + i * d);
            memcpy(score + i * k, trees->base, (size_t)k * sizeof *score);
        }
        for (int64_t t = 0; t < trees->n; t++)
            for (int64_t i = 0; i < n; i++)
                score[i * k + t % k] += leaf_of(trees->node + trees->start[t], x + i * d);
        for (int64_t i = 0; i < n; i++) {
            pli_trees_spread(block, first + i, d, true, x + i * d);
            if (trees->shares) pli_bag_scores(trees, 1, score + i * k);
            more = more && each(user, block, first + i, block->label[first + i], score + i * k, score + most * k);
        }
    }
    pli_free(x);
    pli_free(score);
    return status;
}

const pli_scoring_ops pli_trees_scoring = { .open = open, .close = close, .block = score_block };
