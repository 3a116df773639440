/* data/formats/table/table.h - csv, tsv and similar formats: with a header or not, cells between delimiters, numbers
 * and texts.
 *
 * What the columns are (names, roles, numbers or texts) is decided when the data set is opened, from its first line
 * and a sample of every block, so that all workers decide the same. Texts become features by dictionaries, which are
 * learnt from the own blocks and joined over the workers. A missing number takes its column's mean; a missing text
 * has no feature. */
#ifndef PLI_DATA_TABLE_H
#define PLI_DATA_TABLE_H

#include "data/dataset/dataset.h"
#include "data/formats/table/cells.h"

/* A column of the file. */
typedef struct pli_table_cell {
    int32_t  column; /* in the schema; -1: ignored */
    pli_role role;
    bool     label_is_text;
    bool     asked;  /* --text-columns asks for its cells as texts */
    uint32_t hashed; /* key of a number with hashing */
    uint64_t seed;   /* hash of the name             */
    pli_range range; /* of its numbers in the sample */
    double   origin; /* taken from its numbers       */
} pli_table_cell;

typedef struct pli_table_rules {
    char              delimiter;
    bool              header, title; /* title: the first line is "rows,columns,class,class,...", which is no header */
    pli_text          header_line;   /* of the first source */
    int64_t           cells;         /* in each row */
    pli_table_cell   *cell;          /* [cells] */
    const pli_schema *schema;        /* names, dictionaries, keys; the data set's */
    bool              in_order;      /* the file's columns have increasing keys */
    bool              decimal_comma; /* 1,5 is a number, like 1.5 */
    bool              labels_optional, has_weights, has_text, fixed;
    int64_t           label_cell; /* if rows are looked at */
    int32_t           user, item; /* of pairs: their columns in the schema; -1: rows are no pairs */
    int64_t           group; /* the column whose cells say which rows belong together; -1: none */
    char            **name;  /* [cells] */
} pli_table_rules;

/* Sums of number columns over rows, for their means. Zero-initialised is empty. */
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
/** Finds columns, their roles and kinds, from a sample of every block or from `fixed`. Makes d->schema's columns. */
plait_status pli_table_open(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err);
void         pli_table_close(pli_table_rules **table);

/* pairs.c */
/** Is each row a user, an item and a value (plait_data_opts.pairs)? */
bool    pli_table_of_pairs(const plait_data_opts *opts);
/** Is the text one that names a column of users, items or values? */
bool    pli_pairs_is_name(const unsigned char *text, size_t length);
/** The label's column if the user names none. */
int64_t pli_pairs_label(const pli_table_rules *t);
/** Makes the columns of users and items texts, and leaves out what is neither, nor label (-1: none) nor weight. Errors:
 *  EFORMAT there are no such columns, or the values are no numbers. */
plait_status pli_pairs_columns(pli_dataset *d, int64_t label, int64_t weight, plait_error *err);
/** May data of pairs lack this column of the model? Users alone have no items. */
bool    pli_pairs_may_lack(const pli_schema *fixed, int64_t column);
/** Sets rules->user and item. */
void    pli_pairs_rules(pli_table_rules *rules);
/** Are columns without names, c1, c2, ..., those of the model by their numbers, though there may be more or fewer? */
bool    pli_pairs_numbered(const pli_schema *fixed, int64_t cells);
/** The column of this name, -1: there is none (table.c). */
int64_t pli_table_name(const pli_table_rules *t, const char *name);

/* table_origins.c */
/** Finds the columns that are read less a number of their own, and adds these to the schema; not wanted: warns of
 *  them. Errors: ENOMEM. */
plait_status pli_table_origins(pli_dataset *d, bool wanted, plait_error *err);

/* table_learn.c */
/** Learns the dictionaries of text columns from the own blocks, if there are any. */
plait_status pli_table_learn(pli_dataset *d, pli_pool *pool, plait_error *err);
bool pli_table_add_sums(const pli_dataset *d, pli_table_sums *sums, const pli_rows *rows); /* false: no memory */
plait_status pli_table_take_sums(pli_dataset *d, const pli_table_sums *sums, int64_t n, plait_error *err);
void         pli_table_free_sums(pli_table_sums *sums);
/** After parsing all: gives missing numbers of the loaded rows their column's mean. */
plait_status pli_table_settle(pli_dataset *d, plait_error *err);
/** The same for rows of a stream. */
void pli_table_fill(const pli_dataset *d, pli_rows *rows);
/** Changes keys and labels of the loaded rows, and the rules, from those of d->schema to those of the agreed schema. */
plait_status pli_table_renumber(pli_dataset *d, const pli_schema *agreed, plait_error *err);

/* table_look.c */
/** Are rows of numbers expected, with a label, and nothing else? Then a pass before a stream can look at them. */
bool pli_table_may_look(pli_table_rules *rules);
/** Notes the label of the line [p, end); found->parses: it must be parsed, since a number may be missing, or the line
 *  is odd. false: out of memory. */
bool pli_table_look(const void *rules, const unsigned char *p, const unsigned char *end, pli_found *found);

/* table_parse.c */
/* A column needs about 90 bytes, besides what a model needs for it. */
enum { PLI_MAX_COLUMNS = 1 << 22 };

/** The cell's text as dictionaries hold it: without doubled quotes, in UTF-8 (other bytes are read as Latin-1). It
 *  lies in the cell or in buffer. NULL: out of memory. */
const char *pli_cell_text(const pli_cell *cell, pli_text *buffer, size_t *length_out);
/** Reads the number in a cell; with decimal_comma also 1,5. false: there is none. */
bool pli_cell_number(const pli_cell *cell, bool decimal_comma, double *out);
/** Is the cell a number, or one that is refused (inf)? */
bool pli_cell_is_number(const pli_cell *cell, bool decimal_comma);

/* What a cell may mean that is no number with a point. */
typedef enum pli_odd_number {
    PLI_ODD_NONE,    /* a text                                             */
    PLI_ODD_COMMA,   /* 1,5: the comma can only be decimal */
    PLI_ODD_EITHER,  /* 1,234: the comma is decimal, or separates thousands */
    PLI_ODD_GROUPED, /* 1,234,567 or 1.234,56: thousands are separated */
    PLI_ODD_UNIT     /* 5 %, $3: a number with a unit                      */
} pli_odd_number;
pli_odd_number pli_cell_odd_number(const pli_cell *cell);

#endif
