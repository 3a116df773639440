/* learn/model.h - what training leaves: weights in the data's units, and what the columns and labels mean. */
#ifndef PLI_LEARN_MODEL_H
#define PLI_LEARN_MODEL_H

#include <plait/model.h>

#include "data/data.h"
#include "learn/linear/linear.h"
#include "learn/net/net.h"

/* Weights [rows, K], row j that of feature j, or of feature key[j] (increasing) where features are few of many. */
typedef struct pli_solution {
    int64_t   rows;
    uint64_t *key; /* NULL: row j is feature j */
    double   *weight, *bias;
    float    *net; /* of a net: its values [rows], and none of the others */
} pli_solution;

plait_status pli_solution_make(int64_t rows, int64_t columns, bool keyed, pli_solution *solution_out, plait_error *err);
void         pli_solution_free(pli_solution *solution);

struct plait_model {
    pli_linear   linear; /* label and class_weight: of label, and NULL */
    pli_net     *net;    /* linear.net, owned */
    pli_solution solution;
    pli_schema  *schema;
    double      *label;       /* [classes]                                       */
    char       **label_text;  /* [classes]                                       */
    pli_text     feature;     /* name told last, see plait_model_feature         */
    char        *description; /* JSON: how it was trained, no time, path or host */
    char         name[32];
};

/* What a model is, beside its values. */
typedef struct pli_model_form {
    const char *name, *loss; /* loss: name, but for a net */
    const char *layers;      /* of a net */
    double      parameter;
    bool        intercept;
    int64_t     features, classes;
} pli_model_form;

/** A model of this form around a schema's labels; takes solution and schema (also when it fails). Errors: EFORMAT the values are
 *  not those of the form. */
plait_status pli_model_make(const pli_model_form *form, pli_solution *solution, pli_schema *schema,
                            const char *description, plait_model **model_out, plait_error *err);

enum { PLI_LABEL_TEXT = 160 };
/** Which label a data set has and what it is, for the user: "price (first column), numbers" (classes 0). labels.c. */
/** Rows without labels (--label none) are refused by a model that learns from them. name: of the model. EINVAL. */
plait_status pli_label_need(const pli_schema *schema, const char *name, plait_error *err);
plait_status pli_label_describe(const pli_dataset *data, int64_t classes, char text[PLI_LABEL_TEXT], plait_error *err);

/* What cannot be judged, behind the number of its row. */
#define PLI_UNKNOWN_LABEL "row %lld has no label, or one that the model does not know"
#define PLI_UNKNOWN_CHARACTER                                                                                          \
    "row %lld has a character that the model does not know: it cannot be foretold; leave such out, or train on text "  \
    "that has it"

/** Sums over the own rows of data, block by block. want: NULL, or which rows to take. ranking: NULL, or
 *  receives the scores of two classes. Errors: EFORMAT a label that the model does not know. */
plait_status pli_model_judge(const pli_linear *linear, const pli_solution *solution, const pli_dataset *data,
                             pli_pool *pool, bool (*want)(void *user, int64_t row), void *user, pli_total *total_out,
                             pli_ranking *ranking, plait_error *err);

/** The same over these blocks [blocks] of data. */
plait_status pli_model_judge_blocks(const pli_linear *linear, const pli_solution *solution, const pli_dataset *data,
                                    int32_t blocks, const pli_block **block, pli_pool *pool,
                                    bool (*want)(void *user, int64_t row), void *user, pli_total *total_out,
                                    pli_ranking *ranking, plait_error *err);

/** Fills the test figures of a report from sums over all rows. */
void pli_report_test(plait_report *report, const pli_linear *linear, const pli_sums *sums, double auc);
void pli_report_init(plait_report *report);

#endif
