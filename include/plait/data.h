/* plait/data.h - data sets: from files, from a stream, from memory.
 *
 * A data set is rows of features with a label and a weight. Whatever it comes from, it is cut into P >= 64
 * *blocks*, a property of the data alone; a worker owns a run of blocks. What text columns and labels mean
 * (the *schema*: index base, column names, dictionaries, labels) is found while reading and goes into the
 * model, so that predict matches columns by name.
 *
 * Threads: a plait_data may be shared, read-only, by all ranks of a process once it is complete.
 */
#ifndef PLAIT_DATA_H
#define PLAIT_DATA_H

#include <stddef.h>
#include <stdint.h>

#include <plait/log.h>
#include <plait/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_data plait_data;

typedef struct plait_data_opts {
    size_t             size;          /* set by plait_data_opts_init                                      */
    const char *const *paths;         /* [n_paths] files, "-", directories, shell patterns                */
    int64_t            n_paths;
    const char        *format;        /* "auto" | "libsvm" | "csv" | "tsv" | "idx" | "text"               */
    const char        *index_base;    /* libsvm: "auto" | "0" | "1"                                       */
    const char        *header;        /* csv, tsv: "auto" | "yes" | "no"                                  */
    const char        *label; /* csv, tsv: column by name or number (from 1; negative: from the end); NULL: first column
                                         if no header names "label", "target", "class" or "y";
                                         idx: the file of the labels; NULL: the one beside the images, by its name;
                                         "none", of every format: rows have no label (see plait_data_has_labels) */
    const char        *weight_column; /* csv, tsv: name or number; NULL: none (libsvm: FILE.weight)        */
    int32_t            hash_bits;     /* > 0: features are hashed to 2^bits                               */
    int                cache;         /* 1: read and write a binary cache beside the file                 */
    int32_t            threads;       /* that parse; default 1                                            */
    uint64_t           seed;
    const plait_log   *log;
    const char *text_columns; /* csv, tsv: names or numbers, "zip,3": their cells are texts, numbers too; NULL: none */
    int32_t            window;        /* text: characters that a row sees, at most 1024; 0: 16, apart 128 */
    int                apart;         /* text: 0: a row for each character, its label; 1: a row for each window of them,
                                         which has a label at each place: the character that follows there, as models of
                                         sequences take it */
    const char *delimiter; /* csv: what parts the cells: one character, or "tab" | "space" | "comma" | "semicolon" |
                              "pipe"; NULL: what cuts the first lines into equally many cells */
    int64_t spill_limit;   /* bytes that temporary files of unpacked or received data may take; 0: half of what is
                              free there */
} plait_data_opts;

PLAIT_API void plait_data_opts_init(plait_data_opts *opts);

/** Reads a data set into memory. Errors: EIO no such file (path named); EFORMAT a malformed line ("file:line:
 *  what was expected"), NaN or infinity, an empty or truncated input; EINVAL; ENAME no such column (nearest
 *  named); ENOMEM; ENOSPACE beyond spill_limit. error_out may be NULL. Not collective: the whole data set is read by
 *  the caller. Plain files are mapped while they are read. One that is written to meanwhile is an error at the end; one
 *  that is cut short raises SIGBUS in the caller, since the library sets no handler of signals. */
PLAIT_API plait_status plait_data_read(const plait_data_opts *opts, plait_data **data_out, plait_error *error_out);

/** A data set of rows in compressed sparse row form, copied. row_start [rows + 1], column [row_start[rows]]
 *  increasing within a row, value NULL: all ones; label [rows] or NULL: rows have no label; weight [rows] or NULL: all
 *  1. features: columns are 0 .. features-1. Errors: EINVAL not increasing, out of range, not finite. */
PLAIT_API plait_status plait_data_from_csr(int64_t rows, int64_t features, const int64_t *row_start,
                                           const uint32_t *column, const float *value, const double *label,
                                           const double *weight, plait_data **data_out, plait_error *error_out);

/** A dense matrix x [rows, features], row-major, copied. */
PLAIT_API plait_status plait_data_from_dense(int64_t rows, int64_t features, const float *x, const double *label,
                                             const double *weight, plait_data **data_out, plait_error *error_out);

PLAIT_API int64_t plait_data_rows(const plait_data *data);
/** Have its rows labels? 0: they were read with the label "none" (libsvm rows with one and without are taken, columns
 *  of csv and tsv are all features, no file of labels is looked for, text keeps its windows alone) or given without.
 *  Each row's label is then NaN, never a number that could be taken for one, and models that learn from labels refuse
 *  them. */
PLAIT_API int     plait_data_has_labels(const plait_data *data);
PLAIT_API int64_t plait_data_labels(const plait_data *data);   /* answers to predict: one a row, also of rows without
                                                                  label; one a character of text that lies apart */
PLAIT_API int64_t plait_data_features(const plait_data *data); /* 1 + the highest column */
PLAIT_API void    plait_data_destroy(plait_data **data);

/* --- its rows ------------------------------------------------------------------------------------ */

/* A row as it is held: its features that are not zero, also of dense data, in order of their numbers. The arrays are
 * borrowed from the data set, only to be read, and good until plait_data_destroy. */
typedef struct plait_row {
    int64_t         n;      /* features that are not zero                                              */
    const uint32_t *column; /* [n] their numbers, from 0, increasing; NULL: key has them               */
    const uint64_t *key;    /* [n] instead, where some number of the block does not fit into 32 bits   */
    const float    *value;  /* [n]; NULL: all 1                                                        */
    double          label;  /* as written; of texts, the text's number in the dictionary; NaN: none    */
    double          weight; /* 1 where the data have none                                              */
} plait_row;

/** The blocks, 0 .. blocks - 1, and the rows of one of them, 0 .. rows - 1, in the order of the data; some may be
 *  empty. Rows of a block that is not there: 0. Any thread, as the next. */
PLAIT_API int32_t plait_data_blocks(const plait_data *data);
PLAIT_API int64_t plait_data_block_rows(const plait_data *data, int32_t block);

/** Row `row` of a block. A plait_data holds all its rows, those of "-" and of pipes too; what plait_train streams
 *  itself (one epoch over files) is never one. In text that lies apart a feature is a character at its place, and the
 *  label is that of the last place. Errors: EINVAL there is no such row. */
PLAIT_API plait_status plait_data_row(const plait_data *data, int32_t block, int64_t row, plait_row *row_out,
                                      plait_error *error_out);

#ifdef __cplusplus
}
#endif
#endif
