/* learn/trees/tree.h - what a tree is, what it splits by, how trees score rows, and how they are kept in files. trees.h
 * has the whole picture. */
#ifndef PLI_LEARN_TREES_TREE_H
#define PLI_LEARN_TREES_TREE_H

#include "learn/supervised/fitted.h"

/* --- fields (fields.c) -------------------------------------------------------------------------------------------- */

/* The data have one feature (a key) for each text of a column. Trees take the column as one feature, whose value is the
 * number of the text, its code. In a row that is laid out for trees it is code + 1; 0 stands for no text that is
 * known. */
typedef struct pli_fields {
    int64_t  keys;   /* features of the data */
    int64_t *first;  /* [features + 1] first key of each; NULL: feature f is key f, and all are numbers */
    int32_t *codes;  /* [features] how many texts it has; 0: it is a number */
    int32_t *of_key; /* [keys] which feature it belongs to */
    int64_t *column; /* [features] of the schema */
} pli_fields;

/** Groups the features of the data by columns if any column has texts; *features_out: how many trees see.
 *  Errors: EFORMAT: the columns have not `keys` features, or too many; ENOMEM. */
plait_status pli_fields_make(const pli_schema *schema, int64_t keys, pli_fields *fields, int64_t *features_out,
                             plait_error *err);
void         pli_fields_free(pli_fields *fields);
/** Adds the name of a feature of trees, or the text of a code. */
void         pli_fields_name(const pli_fields *fields, const pli_schema *schema, int64_t feature, pli_text *text);
void         pli_fields_code(const pli_fields *fields, const pli_schema *schema, int64_t feature, int32_t code,
                             pli_text *text);

/** The feature that a key belongs to; -1: none. */
static inline int64_t pli_field_of(const pli_fields *fields, uint64_t key) {
    if (key >= (uint64_t)fields->keys) return -1;
    return fields->first != NULL ? fields->of_key[key] : (int64_t)key;
}
static inline bool pli_field_is_text(const pli_fields *fields, int64_t feature) {
    return fields->first != NULL && fields->codes[feature] > 0;
}
/** Its value in a row that has this value at the key. */
static inline float pli_field_value(const pli_fields *fields, int64_t feature, uint64_t key, float value) {
    if (!pli_field_is_text(fields, feature)) return value;
    return value > 0 ? (float)(key - (uint64_t)fields->first[feature] + 1) : 0;
}

/* --- trees (model.c) ---------------------------------------------------------------------------------------------- */

typedef struct pli_tree_node {
    int32_t feature;      /* of the data; -1: a leaf                                         */
    int32_t left, right;  /* nodes of the tree, counted from its first                       */
    int32_t bin;          /* in training: values of this bin and of lower ones go left       */
    bool    missing_left; /* a missing value goes left                                       */
    int32_t codes;        /* of a split by texts: how many go left; 0: of any other node */
    int64_t code;         /* where they begin in the trees' codes; they increase         */
    int64_t rows;         /* training rows that reached the node                             */
    double  cut;          /* x <= cut goes left                                              */
    double  value;        /* of a leaf, with the learning rate                               */
    double  gain;         /* of the split                                                    */
    double  cover;        /* sum of h over the node's rows                                   */
} pli_tree_node;

/* Shares of votes stay this far from 0 and 1: else one row without a vote would make the log loss infinite. */
#define PLI_LEAST_SHARE 1e-6

/* Trees in the order in which they were made: tree t belongs to score t % columns. */
typedef struct pli_trees {
    int64_t        features, columns, n; /* n: trees; features: fields.first groups them */
    pli_fields     fields;
    double        *base;                 /* [columns] score of no tree at all   */
    int64_t       *start;                /* [n + 1] first node of each tree     */
    pli_tree_node *node;                 /* [start[n]]                          */
    bool           shares;               /* sums are shares of votes for classes (bag.c), and scores their logarithms */
    int32_t       *code;                 /* [codes] of splits by texts          */
    int64_t        codes;
    int64_t        start_capacity, node_capacity, code_capacity;
} pli_trees;

/** schema: groups features by columns of texts; NULL: trees split by the features of the data. */
plait_status pli_trees_make(pli_trees *trees, const pli_schema *schema, int64_t features, int64_t columns,
                            plait_error *err);
void         pli_trees_free(pli_trees *trees);
/** Adds a tree of these nodes. code: the codes into which node.code points. Errors: ENOMEM, and then there is no new
 *  tree. */
plait_status pli_trees_add(pli_trees *trees, int64_t nodes, const pli_tree_node *node, const int32_t *code,
                           plait_error *err);
/** Keeps the first n trees. */
void pli_trees_cut(pli_trees *trees, int64_t n);
/** Are the nodes trees, whose features are below features? false: not a model, or no memory to look. */
bool pli_trees_are_sound(const pli_trees *trees);

/** Does a split by texts send this code left? */
static inline bool pli_tree_has_code(const int32_t *code, const pli_tree_node *node, int64_t wanted) {
    const int32_t *at = code + node->code;
    for (int32_t n = node->codes; n > 0;) { /* by halves */
        const int32_t half = n / 2;
        if (at[half] == wanted) return true;
        if (at[half] < wanted) at += half + 1, n -= half + 1;
        else n = half;
    }
    return false;
}
/** Which way a value goes at a split. */
static inline bool pli_tree_goes_left(const int32_t *code, const pli_tree_node *node, float value) {
    if (node->codes > 0) return pli_tree_has_code(code, node, (int64_t)value - 1);
    return value != value ? node->missing_left : (double)value <= node->cut;
}
/** Lays a row out in full, x [features] being zeros before; or, with zero, takes it away again. */
void pli_trees_spread(const pli_trees *trees, const pli_block *block, int64_t row, bool zero, float *x);

/* How trees score rows; the form is the pli_trees. */
extern const pli_scoring_ops pli_trees_scoring;

/* Trees as arrays, for files and checkpoints: whole [nodes, 5] is feature, left, right, missing_left, rows; real
 * [nodes, 4] is cut, value, gain, cover. sets [length]: for each split by texts its node, how many codes go left, and
 * these; none: there are no such splits. */
enum { PLI_TREES_WHOLE = 5, PLI_TREES_REAL = 4 };
typedef struct pli_trees_arrays {
    int64_t        n, nodes, length;
    const int64_t *start, *whole, *sets;
    const double  *real;
} pli_trees_arrays;
void    pli_trees_lay_out(const pli_trees *trees, int64_t *whole, double *real);
/** Returns how long it is; sets NULL: only that. */
int64_t pli_trees_lay_out_sets(const pli_trees *trees, int64_t *sets);
/** Makes trees out of these arrays; base is left alone. Errors: ENOMEM, EFORMAT. */
plait_status pli_trees_take(pli_trees *trees, const pli_trees_arrays *from, plait_error *err);

/* A model. */
typedef struct pli_gbdt_model {
    pli_fitted fitted;
    pli_trees  trees;
} pli_gbdt_model;

extern const pli_fit_ops   pli_gbdt_fit_ops;
extern const pli_model_ops pli_gbdt_model_ops;
/** The trees are there: how they score. */
void pli_gbdt_open_model(plait_model *model);
void pli_gbdt_close(plait_model *model);
/** Writes the model for other programs: plait_learner.export_onnx, pli_model_ops.xgboost. */
struct pli_export;
plait_status pli_gbdt_export(const plait_model *model, struct pli_export *to, plait_error *err);
plait_status pli_gbdt_xgboost(const plait_model *model, pli_text *json, plait_error *err);
/** What each feature adds to the scores: pli_model_ops.contributions. */
int64_t      pli_gbdt_contributions_width(const plait_model *model);
plait_status pli_gbdt_contributions(const plait_model *model, const pli_dataset *data, double *out, plait_error *err);

#endif
