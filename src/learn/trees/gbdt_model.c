/* A fitted model of trees: its file, and what each feature is worth.
 *
 *     base [K]          the score of no tree
 *     start [trees + 1] the first node of each tree; tree t belongs to score t % K
 *     whole [nodes, 5]  feature (-1: a leaf), left and right (nodes of the tree), missing_left, rows
 *     real [nodes, 4]   cut, value, gain, cover
 *     sets [length]     of each split by texts: its node, how many texts go left, and their codes (model.c); not there
 *                       if no split is of this kind */
#include <math.h>
#include <string.h>

#include "learn/trees/tree.h"

static pli_gbdt_model *model_of(const plait_model *model) { return model->own; }

void pli_gbdt_open_model(plait_model *model) {
    pli_gbdt_model *own = model_of(model);
    own->fitted.scoring = &pli_trees_scoring;
    own->fitted.form = &own->trees;
    own->fitted.row_labels = 1;
}

void pli_gbdt_close(plait_model *model) {
    pli_trees_free(&model_of(model)->trees);
    pli_fitted_close(model);
}

/* --- its file ----------------------------------------------------------------------------------------------------- */

static pli_tensor tensor(const char *name, const char *type, int64_t rows, int64_t columns, const void *data) {
    return (pli_tensor){ .name = name, .type = type, .dims = columns > 0 ? 2 : 1, .shape = { rows, columns },
                         .data = data, .bytes = (size_t)(rows * (columns > 0 ? columns : 1)) * 8 };
}

static plait_status tensors(const plait_model *model, pli_model_tensors *out, plait_error *err) {
    const pli_trees *t = &model_of(model)->trees;
    const int64_t    nodes = t->start[t->n], length = pli_trees_lay_out_sets(t, NULL);
    int64_t         *whole = pli_array((size_t)(nodes * (PLI_TREES_WHOLE + PLI_TREES_REAL) + length), sizeof *whole);
    double          *real = (double *)(void *)(whole + nodes * PLI_TREES_WHOLE);
    int64_t         *sets = (int64_t *)(void *)(real + nodes * PLI_TREES_REAL);
    if (whole == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to lay out %lld trees", (long long)t->n);
    pli_trees_lay_out(t, whole, real);
    (void)pli_trees_lay_out_sets(t, sets);
    out->scratch = whole;
    out->tensor[out->n++] = tensor("base", "F64", t->columns, 0, t->base);
    out->tensor[out->n++] = tensor("real", "F64", nodes, PLI_TREES_REAL, real);
    if (length > 0) out->tensor[out->n++] = tensor("sets", "I64", length, 0, sets);
    out->tensor[out->n++] = tensor("start", "I64", t->n + 1, 0, t->start);
    out->tensor[out->n++] = tensor("whole", "I64", nodes, PLI_TREES_WHOLE, whole);
    return PLAIT_OK;
}

static void metadata(const plait_model *model, pli_model_meta *meta) {
    pli_fitted_metadata(model, meta);
    pli_model_meta_add(meta, "plait.loss", pli_fitted_of(model)->goal.loss->model);
    meta->newer = model_of(model)->trees.fields.first != NULL;
    if (meta->newer) pli_model_meta_add(meta, "plait.categories", "sets");
    if (model_of(model)->trees.shares) pli_model_meta_add(meta, "plait.shares", "yes");
}

static const pli_tensor *find(const pli_safetensors *file, const char *name, const char *type, int64_t columns) {
    const pli_tensor *t = pli_safetensors_find(file, name);
    if (t == NULL || strcmp(t->type, type) != 0 || t->dims != (columns > 0 ? 2 : 1)) return NULL;
    return columns == 0 || t->shape[1] == columns ? t : NULL;
}

static plait_status load(const pli_safetensors *file, const char *path, plait_model *model, plait_error *err) {
    const pli_tensor *base = find(file, "base", "F64", 0), *start = find(file, "start", "I64", 0),
                     *whole = find(file, "whole", "I64", PLI_TREES_WHOLE),
                     *real = find(file, "real", "F64", PLI_TREES_REAL), *sets = find(file, "sets", "I64", 0);
    const char       *loss = pli_safetensors_metadata(file, "plait.loss");
    pli_trees        *trees = &model_of(model)->trees;
    if (loss == NULL || base == NULL || start == NULL || whole == NULL || real == NULL || start->shape[0] < 1 ||
        whole->shape[0] != real->shape[0])
        return pli_not_a_model(path, "its trees are incomplete", err);
    PLI_TRY(pli_fitted_read(file, path, model, loss, err));
    const int64_t columns = pli_fitted_of(model)->goal.columns;
    if (base->shape[0] != columns) return pli_not_a_model(path, "its trees do not match its labels", err);
    const bool grouped = pli_safetensors_metadata(file, "plait.categories") != NULL;
    if (model->features >= UINT32_MAX) return pli_not_a_model(path, "trees do not have so many features", err);
    plait_status status = pli_trees_make(trees, grouped ? model->schema : NULL, model->features, columns, err);
    if (status == PLAIT_EFORMAT) return pli_not_a_model(path, "its features do not match its columns", err);
    if (status != PLAIT_OK) return status;
    memcpy(trees->base, base->data, (size_t)columns * sizeof *trees->base);
    trees->shares = pli_safetensors_metadata(file, "plait.shares") != NULL;
    const pli_trees_arrays from = { .n = start->shape[0] - 1, .nodes = whole->shape[0],
                                    .length = sets != NULL ? sets->shape[0] : 0, .start = start->data,
                                    .whole = whole->data, .sets = sets != NULL ? sets->data : NULL,
                                    .real = real->data };
    status = pli_trees_take(trees, &from, err);
    if (status == PLAIT_EFORMAT) return pli_not_a_model(path, "its nodes are not trees", err);
    pli_gbdt_open_model(model);
    return status;
}

/* --- importances: what a feature's splits have gained together, and how many they are ----------------------------- */

static int64_t rows(const plait_model *model) { return model_of(model)->trees.features; }
static int64_t columns(const plait_model *model) {
    (void)model;
    return 2;
}
static uint64_t key(const plait_model *model, int64_t row) {
    const pli_fields *fields = &model_of(model)->trees.fields;
    return (uint64_t)(fields->first != NULL ? fields->first[row] : row);
}

static double weight(const plait_model *model, int64_t row, int64_t column) {
    const pli_trees *t = &model_of(model)->trees;
    double           sum = 0;
    for (int64_t i = 0; i < t->start[t->n]; i++)
        if (t->node[i].feature == row) sum += column == 0 ? t->node[i].gain : 1;
    return sum;
}

static double intercept(const plait_model *model, int64_t column) {
    (void)model, (void)column;
    return NAN;
}

static void feature(const plait_model *model, int64_t row, pli_text *text) {
    pli_fields_name(&model_of(model)->trees.fields, model->schema, row, text);
}

/* --- a tree as text ----------------------------------------------------------------------------------------------- */

/* "colour in {green, red}" */
static void add_set(const plait_model *model, const pli_tree_node *node, pli_text *text) {
    const pli_trees *trees = &model_of(model)->trees;
    pli_fields_name(&trees->fields, model->schema, node->feature, text);
    for (int32_t c = 0; c < node->codes; c++) {
        pli_text_add(text, c > 0 ? ", " : " in {");
        pli_fields_code(&trees->fields, model->schema, node->feature, trees->code[node->code + c], text);
    }
    pli_text_add(text, "}, gain %.6g, %lld rows\n", node->gain, (long long)node->rows);
}

static void add_node(const plait_model *model, const pli_tree_node *node, pli_text *text) {
    char number[32];
    if (node->feature < 0) {
        pli_format_f64(node->value + 0.0, number); /* no -0 */
        pli_text_add(text, "value %s, %lld rows\n", number, (long long)node->rows);
        return;
    }
    if (node->codes > 0) {
        add_set(model, node, text);
        return;
    }
    pli_fields_name(&model_of(model)->trees.fields, model->schema, node->feature, text);
    pli_format_f64(node->cut + pli_schema_origin(model->schema, key(model, node->feature)), number);
    pli_text_add(text, " <= %s, missing: %s, gain %.6g, %lld rows\n", number, node->missing_left ? "yes" : "no",
                 node->gain, (long long)node->rows);
}

/* A node that is still to be written. */
typedef struct pending {
    int32_t     node, depth;
    const char *side;
} pending;

static plait_status tree(const plait_model *model, int64_t t, pli_text *text, plait_error *err) {
    const pli_trees *trees = &model_of(model)->trees;
    if (t < 0 || t >= trees->n) return PLAIT_END;
    const pli_tree_node *node = trees->node + trees->start[t];
    pending             *stack = pli_array((size_t)(trees->start[t + 1] - trees->start[t]) + 1, sizeof *stack);
    int64_t              n = 0;
    if (stack == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to print a tree");
    pli_text_add(text, "tree %lld", (long long)t + 1);
    if (trees->columns > 1) pli_text_add(text, " of label %s", model->label_text[t % trees->columns]);
    pli_text_add(text, "\n");
    stack[n++] = (pending){ .node = 0, .side = "" };
    while (n > 0) { /* depth first, so the stack holds one node of each level, and its sibling */
        const pending p = stack[--n];
        pli_text_add(text, "%*s%s", 2 * p.depth, "", p.side);
        add_node(model, &node[p.node], text);
        if (node[p.node].feature < 0) continue;
        stack[n++] = (pending){ .node = node[p.node].right, .depth = p.depth + 1, .side = "no: " };
        stack[n++] = (pending){ .node = node[p.node].left, .depth = p.depth + 1, .side = "yes: " };
    }
    pli_free(stack);
    return text->failed ? pli_fail(err, PLAIT_ENOMEM, "no memory to print a tree") : PLAIT_OK;
}

const pli_model_ops pli_gbdt_model_ops = {
    .tensors = tensors, .metadata = metadata, .load = load, .predict = pli_fitted_predict, .eval = pli_fitted_eval,
    .rows = rows, .columns = columns, .key = key, .weight = weight, .intercept = intercept, .feature = feature,
    .tree = tree, .xgboost = pli_gbdt_xgboost, .contributions_width = pli_gbdt_contributions_width,
    .contributions = pli_gbdt_contributions
};
