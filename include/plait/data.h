/* plait/data.h - data sets: from files, from a stream, from memory.
 *
 * A data set is rows of features with a label and a weight. It is divided into P >= 64 *blocks*, which depend on the
 * data alone: P is 64 up to 512 MiB, and doubles each time the data double. A worker owns consecutive blocks, or none;
 * plait_train numbers them so that they lie far apart in the data (docs/data.md). The *schema* says what text columns
 * and labels mean (index base, column names, dictionaries, labels). It is found while reading and goes into the model,
 * so that predict matches columns by name.
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
    const char        *format;        /* "auto", "libsvm", "csv", "tsv", "idx", "text", "vw", "ratings" or "npy" */
    const char        *index_base;    /* libsvm: "auto" | "0" | "1"                                       */
    const char        *header;        /* csv, tsv: "auto" | "yes" | "no"                                  */
    const char        *label; /* csv, tsv: the label's column, by name or number (from 1; negative: from the end); NULL:
                                         "label", "target", "class" or "y" if a header names one, else the first;
                                         idx: the file of the labels; NULL: the file beside the images, by its name;
                                         "none", any format: rows have no label (see plait_data_has_labels) */
    const char        *weight_column; /* csv, tsv: name or number; NULL: none (libsvm: FILE.weight)        */
    int32_t            hash_bits;     /* > 0: features are hashed to 2^bits; vw: 0 is 18                  */
    int                cache;         /* 1: read and write a binary cache beside the file                 */
    int32_t            threads;       /* how many parse; default 1                                        */
    uint64_t           seed;
    const plait_log   *log;
    const char *text_columns; /* csv, tsv: columns by name or number, "zip,3", whose cells are texts even if they look
                                 like numbers; NULL: none */
    int32_t            window;        /* text: characters of a row, at most 1024; 0: 16, or 128 with apart  */
    int                apart;         /* text: 0: one row for each character, which is the row's label; 1: one row for
                                         each window of characters, with a label at each place, the character that
                                         follows there: the form for models of sequences */
    const char *delimiter; /* csv: the character between cells: itself, or "tab" | "space" | "comma" | "semicolon" |
                              "pipe"; NULL: the one that gives the first lines equal numbers of cells */
    int64_t spill_limit;   /* the most bytes that temporary files of unpacked or received data may take; 0: half of the
                              free space there */
    const char *interactions; /* vw: products of namespaces by their first letters, "ab,bcd"; "::" all pairs; NULL:
                                 none */
    const char *ngram;        /* vw: n-grams of up to this length in all namespaces, "2", or by first letters, "a2,b3";
                                 NULL: none */
    int keep_missing; /* csv, tsv: 0: a missing number becomes its column's mean; 1: it stays NaN, for models that can
                         learn from that (gbdt). A model's schema remembers it. With hash_bits a missing
                         number is 0 in any case */
    int pairs; /* csv, tsv, ratings: 1: a row is a pair, a user and an item, and the label is the value that the user
                  gave; ratings are always so. The user's column is the one named user, user_id or userId, the item's
                  the one named item, item_id, itemId, movie, movie_id or movieId; else they are the first two columns
                  but label and weight. Their cells are texts; further columns are left out. The label's column: label,
                  a header's rating, value or score, else the third column */
    int origins; /* csv, tsv, libsvm: 1: a column whose values are far from 0 for their spread (by 256 times), such as
                    times or years since 0, is read less a round number of its own, which the model remembers; so its
                    32-bit values keep their digits. For models of which x - c says as much as x; plait_train sets it
                    for files. 0: columns are read as they are, and such a one is warned of */
    const char *group_column; /* csv, tsv: a column, by name or number, that is no feature: its cells say which rows
                                 belong together, and the caller finds that out for itself; NULL: none */
    int32_t     blocks;       /* P, from 64 to 65536; 0: by the size of the data. Not for pipes, which are one block */
} plait_data_opts;

PLAIT_API void plait_data_opts_init(plait_data_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_data_opts_init_sized(plait_data_opts *opts, size_t size);
#define plait_data_opts_init(opts) plait_data_opts_init_sized(opts, sizeof(plait_data_opts))

/** Reads a data set into memory. Errors: EIO no such file (path named); EFORMAT a malformed line ("file:line:
 *  what was expected"), NaN or infinity, an empty or truncated input; EINVAL; ENAME no such column (nearest
 *  named); ENOMEM; ENOSPACE beyond spill_limit. error_out may be NULL. Not collective: the caller reads the whole data
 *  set. Plain files are mapped while they are read. If a file is written to meanwhile, the call fails at its end; if a
 *  file is cut short, the caller gets SIGBUS, since the library sets no signal handler. */
PLAIT_API plait_status plait_data_read(const plait_data_opts *opts, plait_data **data_out, plait_error *error_out);

/** Makes a data set of rows in compressed sparse row form, which are copied. row_start [rows + 1], column
 *  [row_start[rows]] increasing within a row, value NULL: all ones; label [rows] or NULL: rows have no label; weight
 *  [rows] or NULL: all 1. Columns are 0 .. features-1. Errors: EINVAL not increasing, out of range, not finite. */
PLAIT_API plait_status plait_data_from_csr(int64_t rows, int64_t features, const int64_t *row_start,
                                           const uint32_t *column, const float *value, const double *label,
                                           const double *weight, plait_data **data_out, plait_error *error_out);

/** Makes a data set of a dense matrix x [rows, features], row-major, which is copied. label and weight as above. */
PLAIT_API plait_status plait_data_from_dense(int64_t rows, int64_t features, const float *x, const double *label,
                                             const double *weight, plait_data **data_out, plait_error *error_out);

/** Makes a data set of rows [n] of data, by their numbers from 0, in the order given; the rows are copied. Columns,
 *  dictionaries and labels stay those of data, so a model that is trained on some rows knows the labels and cells of
 *  the others (and a missing number is the mean of its column over all rows of data). A query (qid:) should be taken
 *  whole, its rows one after another. Errors: EINVAL no rows, there is no such row; ENOMEM. Not collective; any
 *  thread. */
PLAIT_API plait_status plait_data_take(const plait_data *data, const int64_t *rows, int64_t n, plait_data **data_out,
                                       plait_error *error_out);

PLAIT_API int64_t plait_data_rows(const plait_data *data);
/** 1 if rows have labels. 0: they were given without, or read with the label "none" (libsvm rows may have one or not,
 *  all columns of csv and tsv are features, no file of labels is needed, text rows are windows alone). Then each row's
 *  label is NaN, and models that learn from labels refuse the data. */
PLAIT_API int     plait_data_has_labels(const plait_data *data);
PLAIT_API int64_t plait_data_labels(const plait_data *data);   /* how many labels there are to predict: one a row, also
                                                                  without labels; with apart, one a character */
PLAIT_API int64_t plait_data_features(const plait_data *data); /* 1 + the highest column */
PLAIT_API void    plait_data_destroy(plait_data **data);

/* --- rows ---------------------------------------------------------------------------------------- */

/* A row as a data set holds it: the features that are not zero, in order of their numbers, even of dense data. The
 * arrays are borrowed from the data set, read-only, and valid until plait_data_destroy. */
typedef struct plait_row {
    int64_t         n;      /* features that are not zero                                              */
    const uint32_t *column; /* [n] feature numbers, from 0, increasing; NULL: key has them             */
    const uint64_t *key;    /* [n] feature numbers, if one of the block does not fit into 32 bits      */
    const float    *value;  /* [n]; NULL: all 1                                                        */
    double          label;  /* as written; if labels are texts, the text's number in the dictionary; NaN: none */
    double          weight; /* 1 where the data have none                                              */
} plait_row;

/** The number of blocks, and the number of rows of one block, in the order of the data. A block may be empty; a block
 *  that does not exist has 0 rows. Any thread, as plait_data_row. */
PLAIT_API int32_t plait_data_blocks(const plait_data *data);
PLAIT_API int64_t plait_data_block_rows(const plait_data *data, int32_t block);

/** Row `row` of a block. A plait_data holds all its rows, also of "-" and of pipes; files that plait_train itself
 *  streams (one epoch) are never a plait_data. In text with apart 1, a feature is a character at its place, and the
 *  label is the label of the last place. Errors: EINVAL there is no such row. */
PLAIT_API plait_status plait_data_row(const plait_data *data, int32_t block, int64_t row, plait_row *row_out,
                                      plait_error *error_out);

#ifdef __cplusplus
}
#endif
#endif
