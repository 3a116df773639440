/* plait/model.h - a model: save it, load it, predict with it, evaluate it. plait/train.h makes one.
 *
 * Weights are in the data's own units (scaling inside the learner is undone). Every *_loss is a weighted mean without
 * penalty.
 */
#ifndef PLAIT_MODEL_H
#define PLAIT_MODEL_H

#include <plait/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Writes a safetensors file: temporary name, sync, rename. Not collective. */
PLAIT_API plait_status plait_model_save(const plait_model *model, const char *path, plait_error *error_out);

/** Writes the model for other programs. format: "onnx" (docs/onnx.md has its inputs and outputs; it needs the module
 *  plait-onnx.so); "xgboost-json": a model of trees, as XGBoost reads it (docs/trees.md). Errors: ENAME another format;
 *  EMODULE; EREFUSED a model whose weights are stored by key, a graph with an op that ONNX lacks (named), a model that
 *  has no such form; EIO; ENOMEM. Not collective. */
PLAIT_API plait_status plait_model_export(const plait_model *model, const char *format, const char *path,
                                          plait_error *error_out);

/** Errors: EIO, EFORMAT not a model, ECHECKSUM cut short or altered, EVERSION written by a newer version. */
PLAIT_API plait_status plait_model_load(const char *path, plait_model **model_out, plait_error *error_out);
/** Loads a model that a learner of the program, one of learners [n_learners], may have made (plait/learner.h). Errors:
 *  also ENAME neither they nor Plait's learners made it. */
PLAIT_API plait_status plait_model_load_with(const char *path, const struct plait_learner *learners, int32_t n_learners,
                                             plait_model **model_out, plait_error *error_out);
PLAIT_API void         plait_model_destroy(plait_model **model);

PLAIT_API const char *plait_model_name(const plait_model *model);
PLAIT_API const char *plait_model_description(const plait_model *model); /* JSON: the options that made it */
PLAIT_API int64_t     plait_model_features(const plait_model *model);
PLAIT_API int64_t     plait_model_classes(const plait_model *model);           /* 0: regression */
PLAIT_API const char *plait_model_label(const plait_model *model, int64_t k);  /* as the data wrote it */
PLAIT_API const char *plait_model_feature(const plait_model *model, int64_t j); /* of row j: "age", "city=Rome", "17";
                                                                                   valid until the next call */
/** Rows of weights: one for each feature, or, if weights are stored by key, one for each feature that was met (j is
 *  then the row's number). A net has all its values in one column, without intercept; plait_model_feature names them
 *  "w1 0,3" (a place in layer 1's weights). A model of named arrays has no rows; plait_model_feature names its
 *  features, 0 to features - 1. */
PLAIT_API int64_t     plait_model_rows(const plait_model *model);
PLAIT_API uint64_t    plait_model_key(const plait_model *model, int64_t j);     /* feature of row j */
PLAIT_API double      plait_model_weight(const plait_model *model, int64_t j, int64_t k); /* column k of row j */
PLAIT_API int64_t     plait_model_columns(const plait_model *model);            /* columns of the weights: 1 or
                                                                                   classes */
PLAIT_API double      plait_model_intercept(const plait_model *model, int64_t k); /* NaN: a net, or no such column */
/** Fills options_out [PLAIT_OPTION_VALUES] with the learner's own options that made the model; returns how many. */
PLAIT_API int32_t plait_model_options(const plait_model *model, plait_option_value *options_out);

/* A named array of a model whose learner keeps its values by plait_model_put: "centres", F32 [8, 64]. */
typedef struct plait_model_array {
    const char *name; /* name and data are borrowed from the model */
    plait_type  type;
    int32_t     rank;
    int64_t     shape[4]; /* [rank] */
    const void *data;
} plait_model_array;
/** The i-th array; END: there are no more. Linear models and nets have none: plait_model_weight has their values. */
PLAIT_API plait_status plait_model_array_at(const plait_model *model, int32_t i, plait_model_array *array_out);

PLAIT_API void        plait_model_hash(const plait_model *model, char hex[65]);

/** Predicts all rows of data, which was read with the model's schema by plait_model_read. If proba is not 0, scores
 *  [rows, classes] are probabilities (regression: [rows, 1] values); if it is 0, scores [rows] are class numbers, or
 *  values. A model of text predicts each character: plait_data_labels of them, where each row is a window of text. */
PLAIT_API plait_status plait_model_predict(const plait_model *model, const plait_data *data, int proba, double *scores,
                                           plait_error *error_out);

/** The values of a named array, "centres"; NULL: the model has no array of this name, type and rank.
 *  shape_out [rank]. */
PLAIT_API const void *plait_model_value(const plait_model *model, const char *name, plait_type type,
                                        int32_t rank, int64_t *shape_out);

/* What a model can compute for each row. */
typedef enum plait_answer {
    PLAIT_ANSWER_LABEL,         /* [rows, 1]: the number of the class or cluster, or the value */
    PLAIT_ANSWER_PROBABILITIES, /* [rows, classes]                                             */
    PLAIT_ANSWER_TRANSFORM,     /* [rows, width]: the row in the model's own space             */
    PLAIT_ANSWER_CONTRIBUTIONS  /* [rows, K, features + 1]: what each feature adds to a score  */
} plait_answer;

/** Columns of an answer; 0: the model cannot give this one. */
PLAIT_API int64_t plait_model_width(const plait_model *model, plait_answer answer);
/** Fills out [rows, plait_model_width] with all rows of data in the model's own space: distances to clusters, a
 *  projection. Errors: EREFUSED the model has no such space. */
PLAIT_API plait_status plait_model_transform(const plait_model *model, const plait_data *data, double *out,
                                             plait_error *error_out);

/** Fills out [rows, K, features + 1] with what each feature adds to each of the K scores of a row (K: 1, or the classes
 *  if there are more than two), by TreeSHAP. The last number is the mean score; together they are the score: log odds,
 *  a value, or the logarithm of a count. Errors: EREFUSED the model is no sum of trees, or a tree has more than 1,000
 *  levels; ENOMEM. Not collective; any thread. Paper: Lundberg, Erion and Lee, "Consistent Individualized Feature
 *  Attribution for Tree Ensembles", 2018. */
PLAIT_API plait_status plait_model_contributions(const plait_model *model, const plait_data *data, double *out,
                                                 plait_error *error_out);

/** Reads data as the model's schema says: columns by name, the same dictionaries, index base and hashing. Features
 *  that the model does not know are ignored, and opts->log gets a line about them. */
PLAIT_API plait_status plait_model_read(const plait_model *model, const plait_data_opts *opts, plait_data **data_out,
                                        plait_error *error_out);

/** Fills test_loss, test_accuracy, test_auc, test_rmse, test_mae and rows of report_out, NaN where they do
 *  not apply. */
PLAIT_API plait_status plait_model_eval(const plait_model *model, const plait_data *data, plait_report *report_out,
                                        plait_error *error_out);

/** Fills weights_out [classes, classes]: at [i, j] is the total weight of the rows of class i that the model takes for
 *  class j, classes being in the order of plait_model_label. Rows without weights count 1. Errors: EREFUSED
 *  the model has no classes, or predicts characters of a text; EFORMAT a row's label is of no class of the model
 *  (the row named); EINVAL rows have no labels; ENOMEM. Not collective; any thread. */
PLAIT_API plait_status plait_model_confusion(const plait_model *model, const plait_data *data, double *weights_out,
                                             plait_error *error_out);

#ifdef __cplusplus
}
#endif
#endif
