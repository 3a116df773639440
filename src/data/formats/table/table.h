/* data/formats/table/table.h - csv, tsv and their kin: a header or not, cells between delimiters, numbers and texts.
 *
 * What the columns are (names, roles, numbers or texts) is settled when the data set is opened, from its first line and
 * a sample of every block, so that all workers see the same. Texts become features by dictionaries, which are learnt
 * from the own blocks and joined over the workers. A missing number takes its column's mean; a missing text has no
 * feature. */
#ifndef PLI_DATA_TABLE_H
#define PLI_DATA_TABLE_H

#include "data/dataset/dataset.h"
#include "data/formats/table/cells.h"

/* A column of the file. */
typedef struct pli_table_cell {
    int32_t  column; /* of the schema; -1: ignored */
    pli_role role;
    bool     label_is_text;
    bool     asked;  /* for its cells as texts, by --text-columns */
    uint32_t hashed; /* key of a number with hashing */
    uint64_t seed;   /* hash of the name             */
} pli_table_cell;

typedef struct pli_table_rules {
    char              delimiter;
    bool              header, title; /* title: a first line "rows,columns,class,class,..." that is no header */
    pli_text          header_line;   /* of the first source */
    int64_t           cells;         /* in each row */
    pli_table_cell   *cell;          /* [cells] */
    const pli_schema *schema;        /* names, dictionaries, keys: the dataset's */
    bool              in_order;      /* the file's columns have increasing keys */
    bool              decimal_comma; /* 1,5 is a number, as 1.5 is                */
    bool              labels_optional, has_weights, has_text, fixed;
    char            **name; /* [cells] */
} pli_table_rules;

/* Sums of number columns over rows: for their means. Zero-initialised is empty. */
typedef struct pli_table_sums {
    pli_superacc *sum;     /* [columns] */
    int64_t   *missing; /* [columns] */
    int64_t    rows;
} pli_table_sums;

/* table.c */
/** Fails with ENOMEM. */
plait_status pli_table_no_memory(plait_error *err);

/* table_begin.c */
/** Finds delimiter and headers of all sources and sets where their rows begin. Makes d->table. */
plait_status pli_table_begin(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err);
/** Columns, their roles and kinds: from a sample of every block, or as `fixed` says. Makes d->schema's columns. */
plait_status pli_table_open(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err);
void         pli_table_close(pli_table_rules **table);

/* table_learn.c */
/** Dictionaries of text columns from the own blocks, where there are any to learn. */
plait_status pli_table_learn(pli_dataset *d, pli_pool *pool, plait_error *err);
bool pli_table_add_sums(const pli_dataset *d, pli_table_sums *sums, const pli_rows *rows); /* false: no memory */
plait_status pli_table_take_sums(pli_dataset *d, const pli_table_sums *sums, int64_t n, plait_error *err);
void         pli_table_free_sums(pli_table_sums *sums);
/** After parsing all: missing numbers of the loaded rows take their column's mean. */
plait_status pli_table_settle(pli_dataset *d, plait_error *err);
/** The same for rows of a stream. */
void pli_table_fill(const pli_dataset *d, pli_rows *rows);
/** Keys and labels of the loaded rows, and the rules, from d->schema's to the agreed schema's. */
plait_status pli_table_renumber(pli_dataset *d, const pli_schema *agreed, plait_error *err);

/* table_parse.c */
/* Of a column about 90 bytes are kept, beside what a model has for it. */
enum { PLI_MAX_COLUMNS = 1 << 22 };

/** The cell's text as dictionaries hold it: without doubled quotes, UTF-8 (other bytes are taken as Latin-1). Lies in
 * the cell or in buffer. Returns NULL if out of memory. */
const char *pli_cell_text(const pli_cell *cell, pli_text *buffer, size_t *length_out);
/** The number in a cell; with decimal_comma 1,5 is one, too. false: none. */
bool pli_cell_number(const pli_cell *cell, bool decimal_comma, double *out);
/** Is the cell a number, or one that is refused (inf)? */
bool pli_cell_is_number(const pli_cell *cell, bool decimal_comma);

/* What a cell that is no number with a point may be meant for. */
typedef enum pli_odd_number {
    PLI_ODD_NONE,    /* a text                                             */
    PLI_ODD_COMMA,   /* 1,5: the comma can only be a decimal one           */
    PLI_ODD_EITHER,  /* 1,234: a decimal comma, or one between thousands   */
    PLI_ODD_GROUPED, /* 1,234,567 or 1.234,56: thousands are parted        */
    PLI_ODD_UNIT     /* 5 %, $3: a number with a unit                      */
} pli_odd_number;
pli_odd_number pli_cell_odd_number(const pli_cell *cell);

#endif
