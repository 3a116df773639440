/* Trees, and scores of rows. See trees.h. */
#include <math.h>
#include <string.h>

#include "learn/solve/block.h"
#include "learn/trees/trees.h"

enum { ROWS = 64 /* that are scored at once: a tree stays in the cache for all of them */, TOGETHER = 8 };

/* --- life --------------------------------------------------------------------------------------------------------- */

plait_status pli_trees_make(pli_trees *trees, const pli_schema *schema, int64_t features, int64_t columns,
                            plait_error *err) {
    *trees = (pli_trees){ .features = features, .columns = columns, .fields.keys = features };
    if (schema != NULL) PLI_TRY(pli_fields_make(schema, features, &trees->fields, &trees->features, err));
    trees->base = pli_calloc((size_t)columns, sizeof *trees->base);
    void *start = NULL;
    if (trees->base == NULL || !pli_grow(&start, &trees->start_capacity, 1, sizeof *trees->start)) {
        pli_fields_free(&trees->fields);
        pli_free(trees->base);
        *trees = (pli_trees){ 0 };
        return pli_fail(err, PLAIT_ENOMEM, "no memory for trees");
    }
    trees->start = start;
    trees->start[0] = 0;
    return PLAIT_OK;
}

void pli_trees_free(pli_trees *trees) {
    pli_fields_free(&trees->fields);
    pli_free(trees->base);
    pli_free(trees->start);
    pli_free(trees->node);
    pli_free(trees->code);
    *trees = (pli_trees){ 0 };
}

/* Adds the codes of a node that is already there. */
static bool add_codes(pli_trees *trees, pli_tree_node *node, const int32_t *code) {
    void      *all = trees->code;
    const bool ok = pli_grow(&all, &trees->code_capacity, trees->codes + node->codes, sizeof *trees->code);
    trees->code = all;
    if (!ok) return false;
    memcpy(trees->code + trees->codes, code, (size_t)node->codes * sizeof *code);
    node->code = trees->codes;
    trees->codes += node->codes;
    return true;
}

plait_status pli_trees_add(pli_trees *trees, int64_t nodes, const pli_tree_node *node, const int32_t *code,
                           plait_error *err) {
    void         *start = trees->start, *all = trees->node;
    const int64_t first = trees->start[trees->n];
    bool          ok = pli_grow(&start, &trees->start_capacity, trees->n + 2, sizeof *trees->start);
    trees->start = start;
    ok = ok && pli_grow(&all, &trees->node_capacity, first + nodes, sizeof *trees->node);
    trees->node = all;
    if (ok) memcpy(trees->node + first, node, (size_t)nodes * sizeof *node);
    for (int64_t i = 0; ok && i < nodes; i++)
        if (node[i].codes > 0) ok = add_codes(trees, &trees->node[first + i], code + node[i].code);
    if (!ok) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld trees", (long long)trees->n + 1);
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

int64_t pli_trees_lay_out_sets(const pli_trees *trees, int64_t *sets) {
    int64_t n = 0;
    for (int64_t i = 0; i < trees->start[trees->n]; i++) {
        const pli_tree_node *node = &trees->node[i];
        if (node->codes == 0) continue;
        if (sets != NULL) {
            sets[n] = i;
            sets[n + 1] = node->codes;
            for (int32_t c = 0; c < node->codes; c++) sets[n + 2 + c] = trees->code[node->code + c];
        }
        n += 2 + node->codes;
    }
    return n;
}

/* A split is by a set of codes, increasing, if and only if the feature is a column of texts. */
static bool has_sound_codes(const pli_trees *trees, const pli_tree_node *node) {
    const int32_t most = trees->fields.first != NULL ? trees->fields.codes[node->feature] : 0;
    int32_t       before = -1;
    if ((most > 0) != (node->codes > 0)) return false;
    for (int32_t c = 0; c < node->codes; c++) {
        const int32_t code = trees->code[node->code + c];
        if (code <= before || code >= most) return false;
        before = code;
    }
    return true;
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
        if (!has_sound_codes(trees, &node[i])) return false;
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

/* Gives its codes to each split that sets names. false: they are damaged, or there is no memory. */
static bool take_sets(pli_trees *trees, const pli_trees_arrays *from) {
    int32_t room[PLI_BINS_MOST];
    for (int64_t at = 0; at < from->length;) {
        const int64_t node = from->sets[at], n = at + 1 < from->length ? from->sets[at + 1] : 0;
        if (node < 0 || node >= from->nodes || trees->node[node].codes > 0) return false;
        if (n < 1 || n > PLI_BINS_MOST || at + 2 + n > from->length) return false;
        for (int64_t c = 0; c < n; c++) {
            if (!fits(from->sets[at + 2 + c])) return false;
            room[c] = (int32_t)from->sets[at + 2 + c];
        }
        trees->node[node].codes = (int32_t)n;
        if (!add_codes(trees, &trees->node[node], room)) return false;
        at += 2 + n;
    }
    return true;
}

plait_status pli_trees_take(pli_trees *trees, const pli_trees_arrays *from, plait_error *err) {
    void         *start = trees->start, *all = trees->node;
    const int64_t n = from->n, nodes = from->nodes;
    if (n < 0 || nodes < 0 || from->start[0] != 0 || from->start[n] != nodes) return refuse(err);
    for (int64_t t = 0; t < n; t++)
        if (from->start[t + 1] <= from->start[t]) return refuse(err);
    bool ok = pli_grow(&start, &trees->start_capacity, n + 1, sizeof *trees->start);
    trees->start = start;
    ok = ok && pli_grow(&all, &trees->node_capacity, nodes > 0 ? nodes : 1, sizeof *trees->node);
    trees->node = all;
    if (!ok) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld trees", (long long)n);
    trees->n = n;
    trees->codes = 0;
    memcpy(trees->start, from->start, (size_t)(n + 1) * sizeof *from->start);
    for (int64_t i = 0; i < nodes; i++) {
        const int64_t *w = from->whole + i * PLI_TREES_WHOLE;
        const double  *r = from->real + i * PLI_TREES_REAL;
        if (!fits(w[0]) || !fits(w[1]) || !fits(w[2])) return refuse(err);
        trees->node[i] = (pli_tree_node){ .feature = (int32_t)w[0], .left = (int32_t)w[1], .right = (int32_t)w[2],
                                          .missing_left = w[3] != 0, .rows = w[4], .cut = r[0], .value = r[1],
                                          .gain = r[2], .cover = r[3] };
    }
    return take_sets(trees, from) && pli_trees_are_sound(trees) ? PLAIT_OK : refuse(err);
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

static plait_status open(const void *form, const pli_solution *solution, void **scorer_out, plait_error *err) {
    (void)form, (void)solution, (void)err;
    *scorer_out = NULL;
    return PLAIT_OK;
}

static void close(void *scorer) { (void)scorer; }

void pli_trees_spread(const pli_trees *trees, const pli_block *block, int64_t row, bool zero, float *x) {
    const pli_fields *fields = &trees->fields;
    for (int64_t e = block->row_start[row]; e < block->row_start[row + 1]; e++) {
        const uint64_t key = pli_block_column(block, e);
        const int64_t  f = pli_field_of(fields, key);
        const float    value = block->value != NULL ? block->value[e] : 1;
        if (f >= 0) x[f] = zero ? 0 : pli_field_value(fields, f, key, value);
    }
}

static double leaf_of(const pli_tree_node *tree, const int32_t *code, const float *x) {
    const pli_tree_node *node = tree;
    while (node->feature >= 0)
        node = tree + (pli_tree_goes_left(code, node, x[node->feature]) ? node->left : node->right);
    return node->value;
}

/* Adds the values of the leaves that some rows reach. No processor can guess which way a row goes, so each step is
 * taken without a branch; and the rows walk down together, so that a step of one need not wait for that of another. The
 * tree has no splits by texts. */
static void add_leaves(const pli_tree_node *tree, int64_t d, const float *x, int64_t k, double *score) {
    int32_t at[TOGETHER] = { 0 }, walking = -1;
    while (walking != 0) {
        walking = 0;
        for (int r = 0; r < TOGETHER; r++) {
            const pli_tree_node *node = tree + at[r];
            const int32_t        splits = -(int32_t)(node->feature >= 0);
            const float          value = x[r * d + (node->feature & splits)];
            const bool           left = ((double)value <= node->cut) | ((value != value) & node->missing_left);
            const int32_t        next = node->right ^ ((node->left ^ node->right) & -(int32_t)left);
            at[r] ^= (at[r] ^ next) & splits;
            walking |= splits;
        }
    }
    for (int r = 0; r < TOGETHER; r++) score[r * k] += tree[at[r]].value;
}

/* Adds tree t's values to the scores [k] of n rows x [d]. */
static void add_tree(const pli_trees *trees, int64_t t, int64_t n, const float *x, double *score) {
    const pli_tree_node *tree = trees->node + trees->start[t];
    const int64_t        k = trees->columns, d = trees->features;
    int64_t              i = 0;
    score += t % k;
    for (; trees->codes == 0 && i + TOGETHER <= n; i += TOGETHER) add_leaves(tree, d, x + i * d, k, score + i * k);
    for (; i < n; i++) score[i * k] += leaf_of(tree, trees->code, x + i * d);
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
    float           *x = pli_calloc((size_t)most * ((size_t)d + 1), sizeof *x);
    double          *score = pli_array((size_t)(most + 2) * (size_t)k, sizeof *score);
    bool             more = x != NULL && score != NULL;
    plait_status     status = more ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for scores");
    (void)solution, (void)scorer;
    for (int64_t first = 0, n; more && first < block->rows; first += n) {
        n = block->rows - first < most ? block->rows - first : most;
        for (int64_t i = 0; i < n; i++) {
            pli_trees_spread(trees, block, first + i, false, x + i * d);
            memcpy(score + i * k, trees->base, (size_t)k * sizeof *score);
        }
        for (int64_t t = 0; t < trees->n; t++) add_tree(trees, t, n, x, score);
        for (int64_t i = 0; i < n; i++) {
            pli_trees_spread(trees, block, first + i, true, x + i * d);
            if (trees->shares) pli_bag_scores(trees, 1, score + i * k);
            more = more && each(user, block, first + i, block->label[first + i], score + i * k, score + most * k);
        }
    }
    pli_free(x);
    pli_free(score);
    return status;
}

const pli_scoring_ops pli_trees_scoring = { .open = open, .close = close, .block = score_block };
