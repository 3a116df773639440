/* data/formats/npy_impl.h - what the files of the reader of npy share: npy.c reads rows, npy_label.c finds labels. */
#ifndef PLI_DATA_NPY_IMPL_H
#define PLI_DATA_NPY_IMPL_H

#include "data/formats/npy.h"
#include "data/formats/table/table.h"

struct pli_npy {
    pli_npy_array     *array;   /* [sources] */
    const pli_sources *sources; /* of the rows */
    pli_sources       *labels;  /* NULL: the label is a column, or there is none */
    pli_npy_array      label;
    int64_t            columns;
    int64_t            label_at, weight_at; /* columns; -1: there is none */
    bool               unlabelled; /* the label's column is not read */
    const pli_table_rules *table;
};

/** Finds a column by its number. what: for errors, "the label". Errors: ENAME. */
plait_status pli_npy_find_column(const struct pli_npy *npy, const char *what, const char *name, int64_t *out,
                                 plait_error *err);
/** Finds the label: in the file or the column that the user names, in the file beside, or where the model has it.
 *  Errors: EINVAL nothing says where it is; ENAME; EIO, EFORMAT, EMISMATCH the file of labels. */
plait_status pli_npy_find_label(pli_dataset *dataset, const plait_data_opts *opts, const pli_schema *fixed,
                                plait_error *err);

#endif
