/* data/schema/schema.h - what columns and labels mean; for this room only.
 *
 * A schema is found while reading (a *part*: what one worker's blocks held), joined over the workers, and kept in
 * the model. All that it says depends on the data set, not on how it was cut: sets are sorted, sums are exact, and
 * the base of libsvm indices depends on whether any index is 0. */
#ifndef PLI_DATA_SCHEMA_H
#define PLI_DATA_SCHEMA_H

#include "data/data.h"
#include "data/schema/names.h"
#include "data/schema/origins.h"
#include "data/schema/superacc.h"

typedef enum pli_data_format {
    PLI_FORMAT_NONE,
    PLI_FORMAT_LIBSVM,
    PLI_FORMAT_TABLE,
    PLI_FORMAT_IDX,
    PLI_FORMAT_CHARS,
    PLI_FORMAT_VW,
    PLI_FORMAT_NPY /* while it is opened; its schema is that of a table */
} pli_data_format;
enum { PLI_IDX_AXES = 4, PLI_WINDOW_MAX = 1024 /* so that its features may be made dense */ };
typedef enum pli_role { PLI_ROLE_NUMBER, PLI_ROLE_TEXT, PLI_ROLE_LABEL, PLI_ROLE_WEIGHT } pli_role;
typedef enum pli_label_kind { PLI_LABEL_NONE, PLI_LABEL_INTEGER, PLI_LABEL_REAL, PLI_LABEL_TEXT } pli_label_kind;

/* Distinct texts, sorted by bytes. */
typedef struct pli_dict {
    char  **text;
    int64_t n;
    struct pli_dict_slot *slot; /* [slots] by hash (dict.c); NULL: there is none */
    int64_t slots;
} pli_dict;

typedef struct pli_column {
    char      *name; /* from the header, or "c1", "c2", ... */
    pli_role   role;
    pli_dict   dict;      /* of a text column, or of text labels */
    uint64_t   first_key; /* numbers: the key; texts: the key of the first text */
    double     mean;      /* of the cells that exist; replaces missing numbers */
    int64_t    count;     /* cells that exist (numbers) */
    pli_superacc *sum;       /* their sum; NULL once joined */
} pli_column;

struct pli_schema {
    pli_data_format format;
    int32_t         index_base;   /* libsvm: subtracted from the indices */
    bool            base_is_sure; /* asked for, or from the model: zero_index does not change it */
    bool            zero_index;
    uint64_t        max_index; /* libsvm: the highest index as written */
    bool            any_index;
    int32_t         hash_bits;
    int64_t         features, rows;
    pli_label_kind  label_kind;
    double         *label; /* [labels] increasing; integers */
    double          least_label; /* the least number below 0; 0: none is */
    bool            unlabelled; /* rows are read without labels, even if the data have some */
    int64_t         labels;
    bool            whole;     /* joined: its means are those of the whole data set */
    bool            has_names; /* a header gave them */
    bool            keeps_missing; /* a missing number is NaN, and not its column's mean */
    bool            label_asked; /* --text-columns names the label: its cells are meant as texts */
    char            delimiter;
    bool            decimal_comma; /* numbers are written like 1,5 */
    pli_column     *column; /* table: all columns but ignored ones, in the file's order */
    int64_t         columns;
    int32_t         axes;      /* idx: a row's features are an array with axes of these lengths */
    int64_t         length[PLI_IDX_AXES];
    int64_t         window;    /* text: characters of a row; see chars.h */
    bool            apart;     /* text: a row has as many labels as characters */
    char           *interactions, *ngram; /* vw: as asked for; NULL: none */
    uint64_t        letters[4]; /* vw: a bit for the first letter of each namespace that was found */
    uint64_t       *name_key;   /* [names] increasing: hashed keys whose names are known */
    char          **name;       /* [names] */
    int64_t         names;
    pli_column_origin     *origin;     /* [origins] by `at` */
    int64_t         origins;
    int64_t        *segment_rows; /* [segments] rows in each segment of the data set; 0: another worker's */
    int64_t         segments;
};

pli_schema *pli_schema_create(void); /* NULL: out of memory */
pli_schema *pli_schema_copy(const pli_schema *schema);
/** Computes features, index_base and first_key from the rest. */
void              pli_schema_number(pli_schema *schema);
/** Sets the mean of a column of numbers by the sum of its `count` cells. */
void              pli_schema_set_mean(pli_column *column, const pli_superacc *sum, int64_t count);
/** The number of features without the bound of an int64: an index of 2^63 - 1, counted from 0, makes it 2^63. */
uint64_t          pli_schema_keys(const pli_schema *schema);
pli_column       *pli_schema_add_column(pli_schema *schema, const char *name, size_t length,
                                        pli_role role);                              /* NULL: no memory */
bool              pli_schema_merge_labels(pli_schema *into, const pli_schema *from); /* false: no memory */
const pli_column *pli_schema_label_column(const pli_schema *schema);

/** Takes what was named; false: out of memory, and the schema has no names. */
bool pli_schema_take_names(pli_schema *schema, pli_names *names);

/** dict.c. Place of text in dict, or -1. */
int64_t pli_dict_find(const pli_dict *dict, const char *text, size_t length);
/** Takes ownership of texts [n], which may be unsorted; frees repeats. false: out of memory. */
bool pli_dict_set(pli_dict *dict, char **texts, int64_t n);
bool pli_dict_merge(pli_dict *dict, const pli_dict *other);
/** After its texts were written by hand: makes questions fast. */
void pli_dict_index(pli_dict *dict);
void pli_dict_free(pli_dict *dict);

#endif
