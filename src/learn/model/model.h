/* learn/model/model.h - what training leaves: values by name and what the columns and labels mean; or, of learners of
 * Plait's own, something of theirs (pli_model_ops). */
#ifndef PLI_LEARN_MODEL_H
#define PLI_LEARN_MODEL_H

#include "learn/learner.h"

/* A named array, owned by the model. */
typedef struct pli_model_value {
    char       name[64];
    plait_type type;
    int32_t    rank;
    int64_t    shape[4];
    size_t     bytes;
    void      *data;
} pli_model_value;

struct plait_model {
    const plait_learner *learner;
    char                 name[32];
    pli_schema          *schema;
    char                *description; /* JSON: how it was trained, no time, path or host */
    int64_t              features, classes;
    double              *label;       /* [classes]                                       */
    char               **label_text;  /* [classes]                                       */
    pli_text             feature;     /* name told last, see plait_model_feature         */
    int32_t              n_values;
    pli_model_value      value[PLAIT_MODEL_VALUES];
    pli_text             settings;    /* own options, "clusters=8" lines                 */
    void                *own;         /* [learner->model_bytes]                          */
};

/* The tensors of a model's file. scratch: memory of what was made for them, to be freed. */
typedef struct pli_model_tensors {
    pli_tensor tensor[PLAIT_MODEL_VALUES];
    int32_t    n;
    void      *scratch;
} pli_model_tensors;

enum { PLI_MODEL_META = 16 };
/* Metadata of a file, besides that of every model: borrowed keys and values, as long as the model and this lie. */
typedef struct pli_model_meta {
    const char *pair[2 * PLI_MODEL_META + 1]; /* key, value, ..., NULL */
    int32_t     n;
    char        text[4][40];                  /* for numbers */
} pli_model_meta;
static inline void pli_model_meta_add(pli_model_meta *meta, const char *key, const char *value) {
    meta->pair[2 * meta->n] = key;
    meta->pair[2 * meta->n++ + 1] = value;
}

/* How models of a learner of Plait's own are used and saved, where they are not named values. */
typedef struct pli_model_ops {
    plait_status (*tensors)(const plait_model *model, pli_model_tensors *out, plait_error *err);
    void (*metadata)(const plait_model *model, pli_model_meta *out);
    /** Name, schema, features and labels are there: the rest. Errors: EFORMAT, by pli_not_a_model. */
    plait_status (*load)(const pli_safetensors *file, const char *path, plait_model *model, plait_error *err);
    /** As plait_model_predict and plait_model_eval have it. */
    plait_status (*predict)(const plait_model *model, const pli_dataset *data, bool proba, double *scores,
                            plait_error *err);
    plait_status (*eval)(const plait_model *model, const pli_dataset *data, plait_report *report, plait_error *err);
    /* Weights, as plait/model.h tells them. */
    int64_t (*rows)(const plait_model *model);
    int64_t (*columns)(const plait_model *model);
    uint64_t (*key)(const plait_model *model, int64_t row);
    double (*weight)(const plait_model *model, int64_t row, int64_t column);
    double (*intercept)(const plait_model *model, int64_t column);
    void (*feature)(const plait_model *model, int64_t row, pli_text *text);
} pli_model_ops;

/** Those of its learner; NULL: its values are all. */
static inline const pli_model_ops *pli_model_ops_of(const plait_model *model) {
    return model->learner->more != NULL ? model->learner->more->model : NULL;
}

/** A model without values; takes the schema (also when it fails). classes: 0, or those of the schema. name: what it is
 *  called, NULL: as its learner. */
plait_status pli_model_create(const plait_learner *learner, pli_schema *schema, int64_t classes,
                              const char *description, plait_model **model_out, plait_error *err);
/** Its values are there: opens it. */
plait_status pli_model_open(plait_model *model, plait_error *err);

/** EFORMAT: path is not a model of plait, and why. */
plait_status pli_not_a_model(const char *path, const char *why, plait_error *err);
/** A count in a file's metadata, 0 .. most. false: none. */
bool pli_model_count(const pli_safetensors *file, const char *key, int64_t most, int64_t *out);

/* The sums of learner->measure over blocks, each exact, whoever has which block. */
typedef struct pli_measured {
    int64_t  n;
    uint64_t (*cell)[4]; /* [n] tensor/exact_cells.h */
    double   *sum;       /* [n] what they come to    */
} pli_measured;
/** Sums of nothing; end follows in any case. */
plait_status pli_measured_begin(const plait_model *model, pli_measured *sums, plait_error *err);
void         pli_measured_end(pli_measured *sums);
/** Takes in blocks; and sets sums->sum when all are in. */
plait_status pli_model_measure(const plait_model *model, int32_t blocks, const pli_block *const *block, pli_pool *pool,
                               pli_measured *sums, plait_error *err);
void         pli_measured_round(pli_measured *sums);

/** An untouched report: NaN and -1. */
void pli_report_init(plait_report *report);
/** Puts a figure, of a test set or of the rows trained on, where every report has it. false: no report has it. */
bool pli_report_take(plait_report *report, const plait_figure *figure, bool test);

#endif
