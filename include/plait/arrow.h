/* plait/arrow.h - data sets of tables in Arrow's memory layout, through the Arrow C data interface: what polars,
 * pyarrow, DuckDB and others hand out (__arrow_c_stream__). The interface is an ABI of three structs: it needs no
 * library.
 *
 * The columns of the table are read where they lie, and become rows of Plait's own layout (plait/memory.h): 8 bytes for
 * each value that is not zero. A column of numbers or of truth values is one feature. A column of texts, also one that
 * is encoded by a dictionary, has one feature for each of its texts, as in plait_memory_opts.columns.
 */
#ifndef PLAIT_ARROW_H
#define PLAIT_ARROW_H

#include <plait/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As https://arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html have them. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
struct ArrowSchema {
    const char          *format, *name, *metadata;
    int64_t              flags, n_children;
    struct ArrowSchema **children;
    struct ArrowSchema  *dictionary;
    void (*release)(struct ArrowSchema *schema);
    void *private_data;
};
struct ArrowArray {
    int64_t             length, null_count, offset, n_buffers, n_children;
    const void        **buffers;
    struct ArrowArray **children;
    struct ArrowArray  *dictionary;
    void (*release)(struct ArrowArray *array);
    void *private_data;
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *stream, struct ArrowSchema *schema_out);
    int (*get_next)(struct ArrowArrayStream *stream, struct ArrowArray *array_out);
    const char *(*get_last_error)(struct ArrowArrayStream *stream);
    void (*release)(struct ArrowArrayStream *stream);
    void *private_data;
};
#endif

typedef struct plait_arrow_opts {
    size_t        size;    /* set by plait_arrow_opts_init                                             */
    const double *label;   /* [rows]; NULL: rows have no label                                         */
    const double *weight;  /* [rows]; NULL: all 1                                                      */
    int64_t       rows;    /* how many label and weight have; 0: neither is given                      */
    int           keep_missing; /* as plait_memory_opts.keep_missing. A missing text is none of the column's texts */
    const plait_memory_column *columns; /* [n_columns] of the data that a model was trained on, by which these are
                                           read: columns by name; texts that are not among them are none; NULL: the
                                           table's own */
    int64_t       n_columns;
} plait_arrow_opts;

PLAIT_API void plait_arrow_opts_init(plait_arrow_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_arrow_opts_init_sized(plait_arrow_opts *opts, size_t size);
#define plait_arrow_opts_init(opts) plait_arrow_opts_init_sized(opts, sizeof(plait_arrow_opts))

/** Makes a data set of all rows of a stream of record batches, which is released in any case. opts may be NULL. Counts,
 *  offsets and indices of the arrays are checked; the interface has no sizes of most buffers, so those are trusted.
 *  Errors: EINVAL arrays that contradict the schema or themselves, a type that is neither a number nor a text, a
 *  stream that was released before, opts->columns without a name or whose texts do not increase, a missing number
 *  without keep_missing, a number that is not finite, another number of rows than labels; ENAME the table lacks one of
 *  opts->columns; EIO the stream's own failure; ENOMEM. Not collective; any thread. */
PLAIT_API plait_status plait_data_from_arrow(struct ArrowArrayStream *stream, const plait_arrow_opts *opts,
                                             plait_data **data_out, plait_error *error_out);

/** Column i of a data set that has columns; its name and texts are borrowed from data. END: there are no more, or the
 *  data have none. Not collective; any thread. */
PLAIT_API plait_status plait_data_column(const plait_data *data, int64_t i, plait_memory_column *column_out,
                                         plait_error *error_out);

/** Fills out [rows, features] with the rows of data, zeros included. Errors: EINVAL features are hashed, or numbered
 *  beyond what an array can have. Not collective; any thread. */
PLAIT_API plait_status plait_data_dense(const plait_data *data, float *out, plait_error *error_out);

#ifdef __cplusplus
}
#endif
#endif
