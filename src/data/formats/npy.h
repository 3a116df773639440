/* data/formats/npy.h - NumPy's .npy files: an array of numbers behind a header that is a Python dictionary.
 *
 *     "\x93NUMPY" VERSION 0, the header's length (16 bits in version 1, 32 in 2 and 3; little-endian), the header:
 *     {'descr': '<f8', 'fortran_order': False, 'shape': (1000, 30), }      then the elements
 *
 * The array is a table without names: two axes, a row for each of the first. Rows of C order lie one behind the other.
 * Of an array in Fortran order the columns do; rows are cut as if they lay as in C order, and a row's number says where
 * its elements are. So blocks are cut at rows alike, and nothing is copied.
 *
 * Columns are numbers, with a table's rules (formats/table): NaN is a missing number, columns far from 0 have an
 * origin, the model's file is that of a table. The label is a column, or lies in an array of one axis in a file of its
 * own: the file that --label names, or y.npy beside X.npy. Format: numpy.lib.format (NEP 1). */
#ifndef PLI_DATA_NPY_H
#define PLI_DATA_NPY_H

#include "data/dataset/dataset.h"

typedef struct pli_npy_array {
    char    kind; /* 'f' float, 'i' signed, 'u' unsigned, 'b' bool */
    bool    swapped, fortran;
    int32_t axes;            /* 1 or 2 */
    size_t  item, begin;     /* bytes of an element; where the elements begin */
    int64_t rows, columns;   /* columns: 1 if there is one axis */
} pli_npy_array;

/** Do the bytes begin like an npy file? */
bool pli_npy_is(const unsigned char *data, size_t bytes);
/** Reads a header and checks that the file fits it. Errors call the file `name`, and say at which byte. Errors:
 *  EFORMAT: damaged; a type that is no number, other axes than one or two (with what makes the array readable). */
plait_status pli_npy_read(const char *name, const unsigned char *data, size_t bytes, pli_npy_array *array_out,
                          plait_error *err);
/** Where the element of a row and column is, from the file's beginning. */
static inline size_t pli_npy_at(const pli_npy_array *a, int64_t row, int64_t column) {
    return a->begin + a->item * (size_t)(a->fortran ? column * a->rows + row : row * a->columns + column);
}
/** The element there. */
double pli_npy_element(const pli_npy_array *array, const unsigned char *at);

/** Finds where rows begin, and labels in a file of their own; before the data set is cut. Errors: EFORMAT; EINVAL
 *  nothing says where the label is. */
plait_status pli_npy_open(pli_dataset *dataset, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err);
/** Finds the columns' roles, and describes them in the data set's schema; after the cut. Errors: ENAME no such column;
 *  ESHAPE, EMISMATCH not the model's columns; ENOMEM. */
plait_status pli_npy_describe(pli_dataset *dataset, const plait_data_opts *opts, const pli_schema *fixed,
                              plait_error *err);
/** The name of the labels' file, without its folder; NULL: there is none. Borrowed. */
const char *pli_npy_label_file(const struct pli_npy *npy);
void        pli_npy_close(struct pli_npy **npy);

extern const pli_reader pli_npy_reader;

#endif
