/* learn/model/model.h - a trained model: named values, and what its columns and labels mean. Plait's own learners may
 * keep a form of their own instead of named values (pli_model_ops). */
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
    char                *label_texts; /* of all, which label_text points into */
    char               **label_text;  /* [classes]                                       */
    pli_text             feature;     /* the name that plait_model_feature returned last */
    int32_t              n_values;
    pli_model_value      value[PLAIT_MODEL_VALUES];
    pli_text             settings;    /* own options, "clusters=8" lines                 */
    void                *own;         /* [learner->model_bytes]                          */
    bool                 bare;        /* its values stay in the file (pli_model_load_bare) */
    const int           *stop;        /* of the run that judges it; NULL: nobody stops it  */
};

/* The tensors of a model's file. scratch: memory that was made for them; the caller frees it. */
typedef struct pli_model_tensors {
    pli_tensor tensor[PLAIT_MODEL_VALUES];
    int32_t    n;
    void      *scratch;
} pli_model_tensors;

enum { PLI_MODEL_META = 16 };
/* Metadata of a model's file. Keys and values are borrowed, from the model or from text. */
typedef struct pli_model_meta {
    const char *pair[2 * PLI_MODEL_META + 1]; /* key, value, ..., NULL */
    int32_t     n;
    char        text[4][40];                  /* for numbers */
    bool        newer; /* it holds what programs of model format 1 do not know */
} pli_model_meta;
static inline void pli_model_meta_add(pli_model_meta *meta, const char *key, const char *value) {
    meta->pair[2 * meta->n] = key;
    meta->pair[2 * meta->n++ + 1] = value;
}

/* How the models of one of Plait's own learners are used and saved, if they are not named values. */
typedef struct pli_model_ops {
    plait_status (*tensors)(const plait_model *model, pli_model_tensors *out, plait_error *err);
    void (*metadata)(const plait_model *model, pli_model_meta *out);
    /** Reads the rest of a model that has name, schema, features and labels. Errors: EFORMAT, by pli_not_a_model. */
    plait_status (*load)(const pli_safetensors *file, const char *path, plait_model *model, plait_error *err);
    /** As plait_model_predict and plait_model_eval. */
    plait_status (*predict)(const plait_model *model, const pli_dataset *data, bool proba, double *scores,
                            plait_error *err);
    plait_status (*eval)(const plait_model *model, const pli_dataset *data, plait_report *report, plait_error *err);
    /* Weights, as plait/model.h describes them. */
    int64_t (*rows)(const plait_model *model);
    int64_t (*columns)(const plait_model *model);
    uint64_t (*key)(const plait_model *model, int64_t row);
    double (*weight)(const plait_model *model, int64_t row, int64_t column);
    double (*intercept)(const plait_model *model, int64_t column);
    void (*feature)(const plait_model *model, int64_t row, pli_text *text);
    /** As pli_model_tree; NULL: the model has no trees. */
    plait_status (*tree)(const plait_model *model, int64_t t, pli_text *text, plait_error *err);
    /** Writes the model as XGBoost has it, in JSON; NULL: it is no model of trees. Errors: ENOMEM. */
    plait_status (*xgboost)(const plait_model *model, pli_text *json, plait_error *err);
    /** As plait_model_contributions, and how many numbers a row has; NULL: the model has none. */
    int64_t (*contributions_width)(const plait_model *model);
    plait_status (*contributions)(const plait_model *model, const pli_dataset *data, double *out, plait_error *err);
} pli_model_ops;

/** The ops of the model's learner; NULL: the model is its named values. */
static inline const pli_model_ops *pli_model_ops_of(const plait_model *model) {
    return model->learner->more != NULL ? model->learner->more->model : NULL;
}

/** Makes a model without values; takes the schema (also when it fails). classes: 0, or those of the schema. */
plait_status pli_model_create(const plait_learner *learner, pli_schema *schema, int64_t classes,
                              const char *description, plait_model **model_out, plait_error *err);
/** Opens a model whose values are there, by learner->open. */
plait_status pli_model_open(plait_model *model, plait_error *err);

/** Adds what the model's learner says about it, whole lines; nothing if it says nothing. Errors: ENOMEM. */
plait_status pli_model_inspect(const plait_model *model, pli_text *text, plait_error *err);
/** Adds tree t of a model of trees, a line for each node, to text; END: there are no more; EREFUSED: the model has
 *  none. Errors: ENOMEM. */
plait_status pli_model_tree(const plait_model *model, int64_t t, pli_text *text, plait_error *err);

/** As plait_model_read, of rows as text in memory [bytes]; name: for errors ("body:3: ..."). The text must
 *  stay until plait_data_destroy. Any thread. */
plait_status pli_model_read_bytes(const plait_model *model, const plait_data_opts *opts, const char *name,
                                  const char *text, size_t bytes, plait_data **data_out, plait_error *err);

/** EREFUSED: the model knows no users and items. */
plait_status pli_model_recommends(const plait_model *model, plait_error *err);
/** Tells the `top` best items of each user of the rows, in their order, without the items that a user's rows name;
 *  users
 *  NULL: of all users, and all items. The rows were read with the model's schema. Errors: EREFUSED, ENOMEM. */
plait_status pli_model_recommend(const plait_model *model, const plait_data *users, int64_t top, pli_pool *pool,
                                 pli_recommended *tell, void *to, plait_error *err);

/* Writes text by a model of text (sampler.c). */
typedef struct pli_sampler pli_sampler;
/** The model must stay. Errors: EREFUSED it was not trained on text by characters; ENOMEM. */
plait_status pli_sampler_open(const plait_model *model, pli_sampler **sampler_out, plait_error *err);
/** Adds a character to the text, as a prompt's; false: training never saw it. */
bool         pli_sampler_add(pli_sampler *sampler, unsigned char byte);
/** Adds and tells the next character. at: a random number in [0, 1). temperature 0: the likeliest. Errors: EREFUSED the
 *  model has no probabilities; ENOMEM. */
plait_status pli_sampler_next(pli_sampler *sampler, double temperature, double at, unsigned char *byte_out,
                              plait_error *err);
void         pli_sampler_close(pli_sampler **sampler);

/** As plait_model_load_with, for a training that starts from it and takes the values out of the file itself: a net is
 *  read without them. */
plait_status pli_model_load_bare(const char *path, const plait_learner *learners, int32_t n_learners,
                                 plait_model **model_out, plait_error *err);
/** Fails with EFORMAT: path is not a model of plait, with the reason. */
plait_status pli_not_a_model(const char *path, const char *why, plait_error *err);
/** Reads a count, 0 .. most, from a file's metadata. false: there is none. */
bool pli_model_count(const pli_safetensors *file, const char *key, int64_t most, int64_t *out);

/* The sums of learner->measure over blocks. They are exact, so they do not depend on who has which block. */
typedef struct pli_measured {
    int64_t  n;
    uint64_t (*cell)[4]; /* [n] tensor/exact_cells.h */
    double   *sum;       /* [n] the rounded sums     */
} pli_measured;
/** Makes sums of no rows; end follows in any case. */
plait_status pli_measured_begin(const plait_model *model, pli_measured *sums, plait_error *err);
void         pli_measured_end(pli_measured *sums);
/** measure adds blocks to the cells; when all are in, round sets sums->sum. */
plait_status pli_model_measure(const plait_model *model, int32_t blocks, const pli_block *const *block, pli_pool *pool,
                               pli_measured *sums, plait_error *err);
void         pli_measured_round(pli_measured *sums);

/** An untouched report: NaN and -1. */
void pli_report_init(plait_report *report);
/** Puts a figure into the report's key of that name; test: of the test set, else of the rows trained on. false: reports
 *  have no such key. */
bool pli_report_take(plait_report *report, const plait_figure *figure, bool test);

#endif
