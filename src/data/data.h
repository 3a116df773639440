/* data - sources, formats, blocks, batches, cache; safetensors files. All of it is local to a process: there are no
 * ranks here, only "worker w of W"; learn lets the workers agree on the schema.
 *
 *     paths -> sources (file, directory, pattern, -, gzip, zstd) -> blocks (cut at newlines, P >= 64) ->
 *     parser (libsvm, csv, tsv, idx, npy, ...) -> CSR for each block -> batches (clock k takes a share of each) */
#ifndef PLI_DATA_DATA_H
#define PLI_DATA_DATA_H

#include <plait/data.h>

#include "base/base.h"

/* --- schema: what the columns and labels mean ------------------------------------------------------ */

typedef struct pli_schema pli_schema; /* opaque; see schema.h */

/** A schema as UTF-8 JSON for the other workers, and back. */
plait_status pli_schema_write(const pli_schema *schema, pli_text *text, plait_error *err);
/** The same for the model file: without the parts that only the agreement of workers needs. schema must be joined. */
plait_status pli_schema_write_model(const pli_schema *schema, pli_text *text, plait_error *err);
plait_status pli_schema_read(const char *text, size_t bytes, pli_schema **schema_out, plait_error *err);
/** Joins what several workers found, in the order of workers; the result does not depend on how the data was cut.
 *  Join only once and all parts together, even if there is one part. Errors: EMISMATCH columns differ. */
plait_status pli_schema_merge(const pli_schema *const *parts, int64_t n, pli_schema **schema_out, plait_error *err);
void         pli_schema_destroy(pli_schema **schema);
int64_t      pli_schema_features(const pli_schema *schema); /* 1 + highest key; keys may be sparse        */
int64_t      pli_schema_rows(const pli_schema *schema);     /* of the whole data set                      */
/** If a row's features are an array (an image): the number and lengths of its axes. Else 1, and the number of
 *  features. */
int32_t      pli_schema_row_shape(const pli_schema *schema, int64_t length_out[4]);
/** For text by characters: how many different characters there are, without the extra one for a text's beginning and
 *  for unknown characters. A row is then a sequence of row_shape[0] of them: entry e is the symbol col[e] % (symbols
 *  + 1) at place col[e] / (symbols + 1), and label k is symbol k. 0: it is no text. */
int32_t      pli_schema_symbols(const pli_schema *schema);
/** How many labels a row has in training: 1, except for text windows that lie apart. */
int64_t      pli_schema_row_labels(const pli_schema *schema);
/** Do its rows have labels? false: they are read as by --label none (or by the schema of such a model), and each
 *  label is NaN. If a model's schema allows it, a row of a labelled data set may still lack a label (NaN). */
bool         pli_schema_has_labels(const pli_schema *schema);
/** Are numbers of its rows missing (NaN)? */
bool         pli_schema_keeps_missing(const pli_schema *schema);
/** Is this option's value `none`, for rows without labels? */
bool         pli_label_is_none(const char *label);
enum { PLI_LABELS_DECLARED = 1 << 20 }; /* the most classes that may be declared */
/** Distinct labels seen, at most 65,536, or declared; -1: more, or not integers (regression). */
int64_t      pli_schema_labels(const pli_schema *schema);
/** Says that the labels are 0 .. n - 1, whether rows have all of them or not. Errors: EFORMAT they are texts, or a row
 *  has another one; ENOMEM. */
plait_status pli_schema_declare_labels(pli_schema *schema, int64_t n, plait_error *err);
bool         pli_schema_label_is_text(const pli_schema *schema); /* the labels are cells of a table, numbered in
                                                                  * their order */
/** A label as written, such as "347,200", if the labels are texts of which at least half look like numbers (with
 *  something between thousands, a decimal comma or a unit) and the user has not asked for texts. Borrowed; NULL:
 *  otherwise. */
double       pli_schema_least_label(const pli_schema *schema); /* the least number below 0 among labels; 0: none is */
const char  *pli_schema_odd_label(const pli_schema *schema);
/** The name of a table's label column; NULL: the labels are in no column. */
const char  *pli_schema_label_name(const pli_schema *schema);
double       pli_schema_label_value(const pli_schema *schema, int64_t k); /* increasing with k; text labels: k */
/** Label k as written; "+1" and "1" both give "1". Into text. */
void         pli_schema_label_text(const pli_schema *schema, int64_t k, pli_text *text);
/** The name of a feature: column name, "column=value", or the index as the file writes it. Into text. */
void         pli_schema_feature_name(const pli_schema *schema, uint64_t key, pli_text *text);

/** Column i of a table, of those that are not left out: its name, how many features it has (a column of texts one a
 *  text, a label or weight none), and whether they are texts. NULL: there is no such column, the data are no table, or
 *  its features are hashed. */
const char *pli_schema_column(const pli_schema *schema, int64_t i, int64_t *features_out, bool *texts_out);

/* The keys of a table of pairs (plait_data_opts.pairs): a row has its user's key and its item's, or one of the two if
 * the schema does not know the other. */
typedef struct pli_schema_pair {
    uint64_t first_user, first_item;
    int64_t  users, items;
} pli_schema_pair;
/** false: the rows are no pairs. */
bool pli_schema_pairs(const pli_schema *schema, pli_schema_pair *pair_out);
/** The name of a user (0 .. users - 1) or an item, borrowed; and the user of this name, -1: it is unknown. */
const char *pli_schema_user(const pli_schema *schema, int64_t user);
const char *pli_schema_item(const pli_schema *schema, int64_t item);
int64_t     pli_schema_find_user(const pli_schema *schema, const char *name);

/** How many columns are read less a number of their own (schema/origins.h). */
int64_t pli_schema_origins(const pli_schema *schema);
/** The number that is taken from this feature's values as they are read; 0: none is. */
double pli_schema_origin(const pli_schema *schema, uint64_t key);
bool   pli_schema_same_origins(const pli_schema *a, const pli_schema *b);

/** Are its features hashed, so that a key is no name? */
bool pli_schema_is_hashed(const pli_schema *schema);
/** Are its features known by their numbers alone? name_all: gives them names [n]; the schema then owns the texts, not
 *  the array. false: no memory, or they have names. */
bool pli_schema_has_numbers(const pli_schema *schema);
bool pli_schema_name_all(pli_schema *schema, int64_t n, char *const *name);

/* --- blocks ------------------------------------------------------------------------------------------ */

/* P, the number of blocks, follows from the data: PLI_MIN_BLOCKS, doubled until a block has at most PLI_BLOCK_BYTES, or
 * there are PLI_OWN_BLOCKS. It never depends on the workers, of which some may have no block. */
enum { PLI_MIN_BLOCKS = 64, PLI_OWN_BLOCKS = 4096, PLI_MAX_BLOCKS = 65536, PLI_BLOCK_BYTES = 8 << 20 };

/* Parsed rows in CSR form. Keys are 0-based. col is used if every key is below 2^32, else key. */
typedef struct pli_block {
    int64_t   number;    /* the block's number in the data set, part of the key of its permutation */
    int64_t   first_row; /* number in the data set of its first row; its rows are neighbours there   */
    int64_t   rows, entries;
    int64_t  *row_start; /* [rows + 1]                                                               */
    uint32_t *col;       /* [entries] or NULL                                                        */
    uint64_t *key;       /* [entries] or NULL                                                        */
    unsigned char *packed; /* replaces both: columns in three bytes (pli_packed_at), see pli_dataset_pack */
    float    *value;     /* [entries]; NULL: all ones                                                */
    double   *label;     /* [rows]: the number as written; text labels: place in the dictionary; NaN: none given */
    float    *weight;    /* [rows]; NULL: all 1                                                      */
    uint64_t *query;     /* [rows] whose answers are ranked together: 0: the row names none; else pli_query_id and the
                          * file's number. A query never lies in two blocks. NULL: no row names any */
    int32_t   earlier;   /* text: how many labels a row has besides `label`: the symbols before it (pli_block_labels) */
} pli_block;

enum { PLI_QUERY_BITS = 33 };
/** The number behind qid:, of a row that names a query. */
static inline uint64_t pli_query_id(uint64_t query) { return (query & ((UINT64_C(1) << PLI_QUERY_BITS) - 1)) - 1; }

/** How many labels a row has: 1, except in text windows; there each of its last places has one, the symbol that
 *  follows. */
static inline int64_t pli_block_labels(const pli_block *block, int64_t row) {
    const int64_t places = block->row_start[row + 1] - block->row_start[row], most = (int64_t)block->earlier + 1;
    return most == 1 || places >= most ? most : places;
}

/* The opened sources of one data set for worker w of W, which owns a run of blocks; a worker behind them (w >= W)
 * owns none. */
typedef struct pli_dataset  pli_dataset;
typedef struct pli_borrowed pli_borrowed; /* a block of another worker */

/** Checks that there is at least one path, and none is NULL. EINVAL. */
plait_status pli_paths_check(const char *const *paths, int64_t n, plait_error *err);

/** Finds the sources, judges the format, cuts blocks, and reads what is needed of the beginning (header). fixed: the
 *  model's schema (predict, test, warm start); NULL: the schema is found while reading. Rows are not parsed yet. */
plait_status pli_dataset_open(const plait_data_opts *opts, const pli_schema *fixed, int32_t worker, int32_t workers,
                              pli_dataset **dataset_out, plait_error *err);
/** The same for data to train on: block b is not piece b of the files, but blocks are dealt over the files (deal.c), so
 *  that each run of blocks is spread evenly over them. Rows keep the numbers that they have in the files. */
plait_status pli_dataset_open_dealt(const plait_data_opts *opts, const pli_schema *fixed, int32_t worker,
                                    int32_t workers, pli_dataset **dataset_out, plait_error *err);
/** The same, of a pipe alone and for one worker: reading its front is enough, if rows of text follow without an end in
 *  sight (source/live.c). Then the data set is *live*: it is that front, until pli_batches_live reads on. */
plait_status pli_dataset_open_live(const plait_data_opts *opts, const pli_schema *fixed, pli_dataset **dataset_out,
                                   plait_error *err);
bool         pli_dataset_is_live(const pli_dataset *dataset);
/** Waits until the front of a live pipe is twice as long, or the pipe has ended. The data set is to be opened again,
 *  by pli_dataset_open_beside. Errors: EIO, EFORMAT, ENOSPACE. */
plait_status pli_dataset_wait_for_more(pli_dataset *dataset, plait_error *err);
/** The same for another worker of this process, dealt if `other` is: files that `other` has opened, unpacked or
 *  received are read only once. */
plait_status pli_dataset_open_beside(const pli_dataset *other, const plait_data_opts *opts, const pli_schema *fixed,
                                     int32_t worker, int32_t workers, pli_dataset **dataset_out, plait_error *err);
/** Parses all own blocks into memory with up to pool's threads (peak memory: the CSR, and little more). */
plait_status pli_dataset_load(pli_dataset *dataset, pli_pool *pool, plait_error *err);
/** The schema that was found in the own blocks. Valid after load or scan. */
const pli_schema *pli_dataset_schema(const pli_dataset *dataset);
/** Sets the schema that all workers agreed on; keys of text columns and labels are renumbered to it. */
plait_status pli_dataset_agree(pli_dataset *dataset, const pli_schema *schema, plait_error *err);

/** From now on, columns of loaded and agreed blocks take three bytes instead of four (packed instead of col), if all
 *  are below 2^24 and the blocks lie in memory of their own. For readers that know `packed`. */
void pli_dataset_pack(pli_dataset *dataset, pli_pool *pool);

int32_t pli_dataset_blocks(const pli_dataset *dataset);       /* P, of the whole data set        */
int32_t pli_dataset_first_block(const pli_dataset *dataset);  /* own blocks: first .. first + own - 1 */
int32_t pli_dataset_own_blocks(const pli_dataset *dataset);
const pli_block *pli_dataset_block(const pli_dataset *dataset, int32_t own); /* own = 0 .. own_blocks-1; loaded */
/** Where a row of an own block is written, as "file:line". Into text: nothing if it is not known. */
void    pli_dataset_place(const pli_dataset *dataset, int64_t row, pli_text *text);
int64_t pli_dataset_rows(const pli_dataset *dataset);         /* own rows                        */
int32_t pli_dataset_home(const pli_dataset *dataset, int32_t block); /* the worker that owns the block */
/** Any block of the whole data set, loaded and agreed; another worker's block is read once more. Any thread. Errors:
 *  EIO, EFORMAT, ENOMEM. */
plait_status pli_dataset_borrow(const pli_dataset *dataset, int32_t block, pli_borrowed **borrowed_out,
                                plait_error *err);
const pli_block *pli_borrowed_block(const pli_borrowed *borrowed);
void             pli_borrowed_free(pli_borrowed **borrowed);
/** Where its labels are, for the user: "price (first column)", "first number of each line", ... Into text. */
void pli_dataset_label(const pli_dataset *dataset, pli_text *text);
/** Are its labels in a file of their own (images in idx format, arrays in npy format)? */
bool pli_dataset_has_label_file(const pli_dataset *dataset);
/** Has one of its files a FILE.weight? Its rows then have their weights when all workers have agreed on it. */
bool pli_dataset_has_weight_file(const pli_dataset *dataset);
/** Sets the schema's names of hashed features, for the keys in `wanted` [n]: each key takes the first name that the
 *  data's first `bytes` (rounded up to a MiB) have for it, at most 2^20 names of 16 MiB together. Features that are not
 *  hashed need none; those hashed to more than 2^26 keys remain without. If the data cannot be read again, names are
 *  left out. It reads the front of the whole data set: for one worker, when rows are no longer read. */
void pli_dataset_name(const pli_dataset *dataset, int64_t bytes, int64_t n, const uint64_t *wanted,
                      pli_schema *schema);
/** Does it hold text to be read again? Not with a cache, or of rows in memory. */
bool pli_dataset_has_text(const pli_dataset *dataset);
/** A number that is the same if and only if all files have the same names and lengths, and the same bytes at sampled
 *  places. */
uint64_t pli_dataset_fingerprint(const pli_dataset *dataset);
const char *pli_dataset_notes(const pli_dataset *dataset);    /* remarks for the user, one a line; or "" */
void    pli_dataset_destroy(pli_dataset **dataset);
/** The options as this library knows them: the caller may be older or newer (base/sized.h). given NULL: defaults. */
plait_status pli_data_opts_take(const plait_data_opts *given, plait_data_opts *own, plait_error *err);
/** plait_data_read with the columns, labels and dictionaries of a model's schema (NULL: they are found). */
plait_status pli_data_read(const plait_data_opts *opts, const pli_schema *fixed, plait_data **data_out,
                           plait_error *err);
/** The same for rows as text in memory, [bytes]; name: for errors ("body:3: ..."). The text must
 *  stay until plait_data_destroy. */
plait_status pli_data_read_bytes(const plait_data_opts *opts, const pli_schema *fixed, const char *name,
                                 const char *text, size_t bytes, plait_data **data_out, plait_error *err);
/* The rows of a data set as its files wrote them (dataset/written.c). */
typedef struct pli_written {
    const pli_dataset *dataset;
    int64_t            segment; /* the next row is at or behind `at` of its file; 0: at its beginning */
    size_t             at;
} pli_written;
/** Begins with the first row; data must stay. Errors: EREFUSED they have no lines of text, or are in memory. */
plait_status pli_written_begin(const plait_data *data, pli_written *rows, plait_error *err);
/** The next row in the files' order, [*bytes_out] without its newline, borrowed. false: there are no more. */
bool         pli_written_next(pli_written *rows, const char **text_out, size_t *bytes_out);
/** What separates the cells of a table; 0: it is no table. */
char         pli_written_delimiter(const pli_written *rows);
/** The line of column names, [*bytes_out], borrowed; NULL: there is none. */
const char  *pli_written_header(const pli_written *rows, size_t *bytes_out);
/** Has a table a column of this name (c1, c2, ... if it has no header)? */
bool         pli_written_has_column(const pli_written *rows, const char *name);
/** A plait_data in memory as the data set of worker w of W. Borrows it; its schema is already that of the whole, so
 *  there is nothing to join. */
plait_status pli_dataset_of_memory(const plait_data *data, int32_t worker, int32_t workers, pli_dataset **dataset_out,
                                   plait_error *err);
/** The same for data to train on: blocks are dealt over the rows as pli_dataset_open_dealt deals those of files. */
plait_status pli_dataset_of_memory_dealt(const plait_data *data, int32_t worker, int32_t workers,
                                         pli_dataset **dataset_out, plait_error *err);

/* --- batches: which rows form a clock ---------------------------------------------------------------- */

/* Clock k of an epoch's C clocks takes rows floor((k n_b + f_b) / C) up to floor(((k+1) n_b + f_b) / C) of block b's
 * permutation, Philox(seed, PERMUTE, block, epoch). n_b is the number of the block's rows, f_b its phase. So the
 * choice does not depend on workers, ranks or threads. */
/** A row of a block as a learner sees it (plait/data.h). */
void pli_block_row(const pli_block *block, int64_t row, plait_row *row_out);

typedef struct pli_part {
    const pli_block *block;
    const uint32_t  *order; /* [rows] row numbers in block; NULL: first .. first + rows - 1 */
    int64_t          first, rows;
} pli_part;
typedef struct pli_batch {
    pli_part *part; /* [parts] one for each own block (also those without rows) */
    int32_t   parts;
    int64_t   rows;
} pli_batch;

typedef struct pli_batches pli_batches;
/** Batches over loaded blocks. skip (NULL: none): rows to leave out (a validation split), asked once for each row of
 *  the data set. clocks: of an epoch, ceil(n / b) with n rows in the whole data set. */
plait_status pli_batches_create(pli_dataset *dataset, uint64_t seed, int64_t clocks, bool shuffle,
                                bool (*skip)(void *user, int64_t row), void *user, pli_batches **batches_out,
                                plait_error *err);
/** Call it before a stream: one pass over the own blocks that keeps no rows and finds the schema: rows, labels,
 *  index base, columns and their dictionaries. With `features` it also finds the highest index for certain: libsvm
 *  rows are then parsed once. Otherwise the pass is as fast as a search for newlines, and takes each row's last
 *  index for its highest. Then join and agree as after load. */
plait_status pli_dataset_scan(pli_dataset *dataset, bool features, pli_pool *pool, plait_error *err);
/** Before a scan: the pass behind it takes each row once, and all rows are this worker's. So the pass can add up the
 *  means of a table's columns (pli_stream_take_means), and the scan need not parse rows that lack no number. */
void         pli_dataset_adds_means(pli_dataset *dataset);
/** Batches of a single pass over a scanned and agreed data set, in bounded memory and in the rows' own order; some
 *  clocks at a time are parsed by pool's threads. b: rows of all workers in a clock. A part's block holds only the
 *  rows at hand; its first_row is the number of the first of them in the data set. PLAIT_END after the last clock. */
plait_status pli_batches_stream(pli_dataset *dataset, int64_t b, pli_pool *pool, pli_batches **batches_out,
                                plait_error *err);
/** The first epoch takes the rows of each block in their own order, though the batches were made to shuffle. Before the
 *  first batch. */
void         pli_batches_begin_in_order(pli_batches *batches);
/** From now on a clock takes the next rows in the order of the files instead of a share of each block. For batches that
 *  were not asked for yet, without a shuffle; if only the first epoch is in order, for that one. Blocks are seen as
 *  `lanes` runs, each of which is read from its first piece to its last at the same time as the others (turns.c). The
 *  last `tail` clocks take no rows. Errors: ENOMEM, EINVAL. */
plait_status pli_batches_in_file_order(pli_batches *batches, int32_t lanes, int64_t tail, plait_error *err);
/** Replaces pli_batches_get on a stream: the calling thread parses part `part` (own block) of a clock into memory of
 *  `thread` (< pool's threads), valid until that thread's next call. Threads may call at the same time for different
 *  parts; the clocks of a part come in order. PLAIT_END beyond the last clock. */
plait_status pli_stream_part(pli_batches *stream, int64_t clock, int32_t part, int32_t thread, pli_part *part_out,
                             plait_error *err);
/** For several threads that parse one clock: cuts the rows of the clock into pieces, none of rows of two blocks, at
 *  most `most` and one a block together, in the order of blocks and rows. Clocks come in order; all pieces of the clock
 *  before have been parsed. One thread. PLAIT_END beyond the last clock; EFORMAT: a file has changed. */
plait_status pli_stream_cut(pli_batches *stream, int64_t clock, int32_t most, int32_t *pieces_out, plait_error *err);
/** Parses a piece of the clock that was cut last into the memory `slot`; the part is valid until the next call that
 *  names the same slot. Any thread, each piece once. Errors: as reading has them. */
plait_status pli_stream_piece(pli_batches *stream, int64_t clock, int32_t piece, int32_t slot, pli_part *part_out,
                              plait_error *err);
/** Batches of a live pipe: a clock has the rows that have come, and waits if there are none. pli_batches_get and
 *  pli_stream_cut give no rows once the pipe has ended or *stop (NULL: never) is not 0. Errors: as
 *  pli_batches_stream. */
plait_status pli_batches_live(pli_dataset *dataset, const int *stop, pli_pool *pool, pli_batches **batches_out,
                              plait_error *err);
/** Would the next clock of a live pipe wait for longer than `ms` milliseconds? Has the pipe ended, with all its rows
 *  taken? How many rows were taken; the number of features among them and those of the front. */
bool         pli_stream_waits(const pli_batches *stream, int ms);
bool         pli_stream_has_ended(const pli_batches *stream);
int64_t      pli_stream_rows(const pli_batches *stream);
uint64_t     pli_stream_features(const pli_batches *stream);
/** How many cells of a live pipe held texts that its front did not have: they count as missing. */
int64_t      pli_stream_unknown_texts(const pli_batches *stream);
/** Sets in a schema what a live pipe has had by now: rows, features. */
void         pli_stream_describe(const pli_batches *stream, pli_schema *schema);
/** Behind a pass that adds up means: sets them in the schema. Else it does nothing. */
void         pli_stream_take_means(const pli_batches *stream, pli_schema *schema);
/** Makes so many slots, instead of one a thread. Errors: ENOMEM. */
plait_status pli_stream_slots(pli_batches *stream, int32_t slots, plait_error *err);
/** The batch of (epoch, clock in epoch); valid until the next call. */
plait_status pli_batches_get(pli_batches *batches, int64_t epoch, int64_t clock, pli_batch *batch_out,
                             plait_error *err);
/** One clock's part of any block of the data set, own or not. Over loaded blocks another worker's block is fetched when
 *  it is first asked for, and kept until it is dropped (own blocks stay). The part is valid until then, and until
 *  another epoch of the block is asked for. Of a stream it is valid until another clock of the block is asked for;
 *  clocks of an own block come in order, though some may be left out; another worker's block is read from its beginning
 *  up to the clock, and on from there. Not of a live pipe. */
plait_status pli_batches_part(pli_batches *batches, int32_t block, int64_t epoch, int64_t clock, pli_part *part_out,
                              plait_error *err);
void         pli_batches_drop(pli_batches *batches, int32_t block);
int64_t      pli_batches_clocks(const pli_batches *batches); /* of an epoch */
void         pli_batches_destroy(pli_batches **batches);

/* --- safetensors ------------------------------------------------------------------------------------- */

typedef struct pli_tensor {
    const char *name, *type; /* "F32", "F64", "I64", "U64", "U8", ...                          */
    int32_t     dims;
    int64_t     shape[4];
    const void *data;
    size_t      bytes;
    bool        mapped; /* data is a mapped file: what was read of it need not stay in memory */
} pli_tensor;
typedef struct pli_safetensors pli_safetensors;
/** Writes a file that appears whole or not at all. metadata: pairs key, value, ..., NULL. An entry "plait.checksum"
 *  is added, with the XXH3 of all tensor bytes and of the rest of the header. Tensors are written in order of name. */
plait_status pli_safetensors_write(const char *path, const pli_tensor *tensors, int64_t n, const char *const *metadata,
                                   plait_error *err);
/** Errors: EIO; EFORMAT it is no such file; ECHECKSUM cut short, altered, or without our checksum. */
plait_status pli_safetensors_open(const char *path, pli_safetensors **file_out, plait_error *err);
/** The same for borrowed bytes; the checksum may be missing. */
plait_status pli_safetensors_parse(const void *bytes, size_t n, pli_safetensors **file_out, plait_error *err);
const pli_tensor *pli_safetensors_find(const pli_safetensors *file, const char *name);
/** All tensors, 0 .. count - 1, in order of name. */
int64_t           pli_safetensors_count(const pli_safetensors *file);
const pli_tensor *pli_safetensors_at(const pli_safetensors *file, int64_t i);
const char       *pli_safetensors_metadata(const pli_safetensors *file, const char *key);
void              pli_safetensors_close(pli_safetensors **file);
/** Bytes of an element of the type with this name; 0: there is no such type. */
size_t pli_safetensors_type_bytes(const char *type);
/** Adds the beginning of such a file, the length and the JSON header, for tensors that follow each other in this
 *  order. Only names, types, shapes and bytes are used. checksum: leave room for a "plait.checksum", filled with
 *  zeros. Padded so that the data begins at a multiple of 64. Errors: EINVAL, ENOMEM. */
plait_status pli_safetensors_begin(const pli_tensor *tensors, int64_t n, const char *const *metadata, bool checksum,
                                   pli_text *text, plait_error *err);
/** SHA-256 over names, types, shapes and bytes of all tensors, in order of name: the contract's model_hash. */
void pli_tensors_hash(const pli_tensor *tensors, int64_t n, char hex[65]);

#endif
