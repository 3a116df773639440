/* data/formats/idx.h - IDX files: an array of numbers behind a header with its shape, like LeCun's MNIST. Images are in
 * one file, their labels in another.
 *
 *     0 0 TYPE AXES, AXES lengths (32 bits), then the elements in row-major order; all numbers big-endian
 *     TYPE  8 u8   9 i8   11 i16   12 i32   13 f32   14 f64
 *
 * The first axis counts the rows; the elements of the other axes are a row's features, numbered in order. Zeros are
 * no entries of the sparse rows. A row has a fixed number of bytes, so blocks are cut at rows and not at newlines. */
#ifndef PLI_DATA_IDX_H
#define PLI_DATA_IDX_H

#include "data/dataset/dataset.h"

typedef struct pli_idx_array {
    int     type; /* as in the file */
    int32_t axes;
    int64_t length[PLI_IDX_AXES];
    size_t  begin, row_bytes; /* where the elements begin; bytes of one row */
} pli_idx_array;

/** Do the bytes begin like an IDX file? */
bool pli_idx_is(const unsigned char *data, size_t bytes);
/** Reads a header and checks that the file fits it. Errors call the file `name`. Errors: EFORMAT. */
plait_status pli_idx_read(const char *name, const unsigned char *data, size_t bytes, pli_idx_array *array_out,
                          plait_error *err);
/** Element i of an array. */
double pli_idx_element(const pli_idx_array *array, const unsigned char *elements, int64_t i);

/** Finds the labels, and where rows begin; before the data set is cut. Errors: EFORMAT; EINVAL several files, or no
 *  labels; EMISMATCH the model has other shapes. */
plait_status pli_idx_open(pli_dataset *dataset, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err);
/** Describes it in the data set's schema; after the cut. */
void pli_idx_describe(pli_dataset *dataset);
/** The name of the labels' file, without its folder; NULL: there is none. Borrowed. */
const char *pli_idx_label_file(const struct pli_idx *idx);
void pli_idx_close(struct pli_idx **idx);

extern const pli_reader pli_idx_reader;

#endif
