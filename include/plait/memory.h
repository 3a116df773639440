/* plait/memory.h - data sets of rows that the program has in memory, in the layouts in which other libraries keep them:
 * compressed sparse rows with 32- or 64-bit indices, and dense arrays in row or column order, of float or double.
 *
 * Plait keeps rows as CSR of float with 32-bit columns. So float CSR with 32-bit columns, signed or not, can be lent:
 * with `lend` columns and values are used where they lie, and must stay as they are until plait_data_destroy. Row
 * starts (of either width), labels and weights are always copied, up to 20 bytes a row; so are all other layouts: 8
 * bytes for each entry that is not zero.
 * plait_data_from_csr and plait_data_from_dense (plait/data.h) are short forms; plait_data_row reads the rows back.
 */
#ifndef PLAIT_MEMORY_H
#define PLAIT_MEMORY_H

#include <plait/data.h>
#include <plait/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum plait_layout {
    PLAIT_CSR,          /* entries row by row, their columns increasing within a row; zeros may be among them */
    PLAIT_DENSE_ROWS,   /* values [rows][features] */
    PLAIT_DENSE_COLUMNS /* values [features][rows] */
} plait_layout;

/* What features are, as in a table: a column of numbers is one feature, a column of texts has one for each of them. A
 * model keeps them, so that it reads files with such columns (plait_model_read), trees split by a column of texts as
 * one, and two columns of texts alone are users and items (model mf). */
typedef struct plait_memory_column {
    const char        *name;
    const char *const *texts; /* [n_texts] increasing by bytes (strcmp); NULL: numbers */
    int64_t            n_texts;
} plait_memory_column;

typedef struct plait_memory_opts {
    size_t        size;   /* set by plait_memory_opts_init                                                  */
    plait_layout  layout;
    int64_t       rows, features;
    plait_type    type;   /* of values: PLAIT_F32 (default) or PLAIT_F64; doubles are rounded to float      */
    const void   *values; /* csr: [row_start[rows]], NULL: all ones                                         */
    int64_t       stride; /* dense: elements from a row (column) to the next; 0: they lie without gaps      */
    const void   *row_start;       /* csr: [rows + 1], begins with 0, never falls                           */
    int32_t       row_start_bytes; /* of each: 8 (default) or 4                                             */
    const void   *column;          /* csr: [row_start[rows]], 0 .. features - 1                             */
    int32_t       column_bytes;    /* of each: 4 (default) or 8                                             */
    const double *label;  /* [rows]; NULL: rows have no label                                               */
    const double *weight; /* [rows]; NULL: all 1                                                            */
    int           keep_missing; /* a value that is NaN is missing. 1: it stays so, for models that can learn from that
                                   (gbdt, forest), as plait_data_opts.keep_missing says; 0: refused, with its place */
    int           lend;   /* 1: column and values stay the caller's, if the layout allows it (above)        */
    const plait_memory_column *columns; /* [n_columns], which have `features` features together, in this order; NULL:
                                           features have numbers, and no names. Copied                      */
    int64_t       n_columns;
    int32_t       blocks; /* as plait_data_opts.blocks: 64 to 65536; 0: by the bytes that the rows take     */
} plait_memory_opts;

PLAIT_API void plait_memory_opts_init(plait_memory_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_memory_opts_init_sized(plait_memory_opts *opts, size_t size);
#define plait_memory_opts_init(opts) plait_memory_opts_init_sized(opts, sizeof(plait_memory_opts))

/** Makes a data set. All rows are checked first, so that no index of the caller's is followed outside of its arrays.
 *  Errors: EINVAL counts out of range; row starts that do not begin with 0, or fall; columns that are out of range or
 *  do not increase; a value, label or weight that is not finite (a missing value: without keep_missing); columns
 *  without a name, whose texts do not increase, or that have another number of features. The text has the row
 *  or the column. ENOMEM. Not collective; any thread. */
PLAIT_API plait_status plait_data_from_memory(const plait_memory_opts *opts, plait_data **data_out,
                                              plait_error *error_out);

/** 1 if the data set uses the caller's columns and values, which must outlive it. Not collective; any thread. */
PLAIT_API int plait_data_is_lent(const plait_data *data);

#ifdef __cplusplus
}
#endif
#endif
