/* by_class.h - what eval says of each class: precision, recall, and which class is taken for which. */
#ifndef PLI_CLI_BY_CLASS_H
#define PLI_CLI_BY_CLASS_H

#include <plait/model.h>

#include "base/base.h"

enum { PLI_CLASSES_SHOWN = 20, PLI_CLASSES_COUNTED = 2000 };

typedef struct pli_by_class {
    int64_t classes;
    char  **label;     /* [classes] */
    double *confusion; /* [classes, classes] as plait_model_confusion fills it; NULL: the model has no classes, or more
                        * than PLI_CLASSES_COUNTED */
} pli_by_class;

/** Counts; a model without classes leaves out->confusion NULL. Errors: as plait_model_confusion. */
plait_status pli_by_class_count(const plait_model *model, const plait_data *data, pli_by_class *out, plait_error *err);
/** Adds the counts of other rows, or sets them if there are none so far. Errors: ENOMEM. */
plait_status pli_by_class_add(pli_by_class *to, const pli_by_class *more, plait_error *err);
void         pli_by_class_free(pli_by_class *by_class);
/** Adds a table with a line for each class, and the confusion matrix if it has at most PLI_CLASSES_SHOWN classes. */
void pli_by_class_text(const pli_by_class *by_class, pli_text *text);
/** Adds keys to an object of JSON: labels, precision, recall, f1, confusion (lists; NaN is null). */
void pli_by_class_json(const pli_by_class *by_class, pli_text *text);

#endif
