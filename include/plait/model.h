/* plait/model.h - a model: saved, loaded, asked, judged. plait/train.h makes one.
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

/** Writes the model for other runtimes. format: "onnx" (docs/onnx.md has its inputs and outputs; it needs the module
 *  plait-onnx.so). Errors: ENAME another format; EMODULE; EREFUSED a model whose weights lie by key, or a graph with an
 *  op that ONNX has not (named); EIO; ENOMEM. Not collective. */
PLAIT_API plait_status plait_model_export(const plait_model *model, const char *format, const char *path,
                                          plait_error *error_out);

/** Errors: EIO, EFORMAT not a model, ECHECKSUM cut short or altered, EVERSION written by a newer version. */
PLAIT_API plait_status plait_model_load(const char *path, plait_model **model_out, plait_error *error_out);
/** The same of a model that a learner of the program's own made, [n_learners] of them (plait/learner.h). Errors: also
 *  ENAME it is of none. */
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
/** The weights held: features where j counts them all, else those that were met (j is then a row's number). Of a net:
 *  all its values, which plait_model_feature names "w1 0,3" (a place in layer 1's weights), in one column and without
 *  intercept. */
PLAIT_API int64_t     plait_model_rows(const plait_model *model);
PLAIT_API uint64_t    plait_model_key(const plait_model *model, int64_t j);     /* feature of row j */
PLAIT_API double      plait_model_weight(const plait_model *model, int64_t j, int64_t k); /* column k of row j */
PLAIT_API int64_t     plait_model_columns(const plait_model *model);            /* columns of the weights: 1 or
                                                                                   classes */
PLAIT_API double      plait_model_intercept(const plait_model *model, int64_t k); /* NaN: of a net, or no such column */
/** Own options of its learner that it was made with, options_out [PLAIT_OPTION_VALUES]; answers how many. */
PLAIT_API int32_t plait_model_options(const plait_model *model, plait_option_value *options_out);

/* A named array of a model whose learner keeps its values so (plait_model_put): "centres", F32 [8, 64]. */
typedef struct plait_model_array {
    const char *name; /* this and data: of the model */
    plait_type  type;
    int32_t     rank;
    int64_t     shape[4]; /* [rank] */
    const void *data;
} plait_model_array;
/** The i-th of them; END: there are no more. Linear models and nets have none: plait_model_weight has theirs. */
PLAIT_API plait_status plait_model_array_at(const plait_model *model, int32_t i, plait_model_array *array_out);

PLAIT_API void        plait_model_hash(const plait_model *model, char hex[65]);

/** Scores of all rows of data, which is read with the model's schema by plait_model_read. proba: scores
 *  [rows, classes] probabilities (regression: [rows, 1] values); else labels: scores [rows] is the class
 *  number k, or the value. Of text, for each character: plait_data_labels of them where windows lie apart. */
PLAIT_API plait_status plait_model_predict(const plait_model *model, const plait_data *data, int proba, double *scores,
                                           plait_error *error_out);

/** A named array of a model that is made of such: "centres", "components"; NULL: there is none, or of another type or
 *  rank. shape_out [rank]. */
PLAIT_API const void *plait_model_value(const plait_model *model, const char *name, plait_type type,
                                        int32_t rank, int64_t *shape_out);

/* What a model is asked for. */
typedef enum plait_answer {
    PLAIT_ANSWER_LABEL,         /* [rows, 1] the number of the class or cluster, or the value */
    PLAIT_ANSWER_PROBABILITIES, /* [rows, classes]                                            */
    PLAIT_ANSWER_TRANSFORM      /* [rows, width]: the row in the model's own space            */
} plait_answer;

/** Columns of an answer; 0: the model has none of this kind. */
PLAIT_API int64_t plait_model_width(const plait_model *model, plait_answer answer);
/** All rows of data in the model's own space, [rows, plait_model_width]: distances to clusters, a projection. Errors:
 *  EREFUSED the model has none. */
PLAIT_API plait_status plait_model_transform(const plait_model *model, const plait_data *data, double *out,
                                             plait_error *error_out);

/** Reads data as the model's schema says: columns by name, same dictionaries, base and hashing; features that
 *  the model does not know are ignored with a note to opts->log. */
PLAIT_API plait_status plait_model_read(const plait_model *model, const plait_data_opts *opts, plait_data **data_out,
                                        plait_error *error_out);

/** Fills test_loss, test_accuracy, test_auc, test_rmse, test_mae and rows of report_out, NaN where they do
 *  not apply. */
PLAIT_API plait_status plait_model_eval(const plait_model *model, const plait_data *data, plait_report *report_out,
                                        plait_error *error_out);

#ifdef __cplusplus
}
#endif
#endif
