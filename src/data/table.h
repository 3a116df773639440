/* data/table.h - csv, tsv and their kin: a header or not, cells between delimiters, numbers and texts. */
#ifndef PLI_DATA_TABLE_H
#define PLI_DATA_TABLE_H

#include "data/dataset.h"

typedef struct pli_table_rules pli_table_rules;

/** Finds delimiter and headers of all sources and sets where their rows begin. Makes d->table. */
plait_status pli_table_begin(pli_dataset *d, const plait_data_opts *opts, plait_error *err);
/** Columns, their roles and kinds: from a sample of every block, or as `fixed` says. Makes d->schema's columns. */
plait_status pli_table_open(pli_dataset *d, const plait_data_opts *opts, const pli_schema *fixed, plait_error *err);
/** Dictionaries of text columns from the own blocks, where there are any to learn. */
plait_status pli_table_learn(pli_dataset *d, pli_pool *pool, plait_error *err);
/** After parsing: missing numbers take their column's mean. */
plait_status pli_table_settle(pli_dataset *d, plait_error *err);
/** The same for rows of a stream. */
plait_status pli_table_fill(const pli_dataset *d, pli_rows *rows, plait_error *err);
/** Keys and labels of the loaded rows, and the rules, from d->schema's to the agreed schema's. */
plait_status pli_table_renumber(pli_dataset *d, const pli_schema *agreed, plait_error *err);
void         pli_table_close(pli_table_rules **table);

#endif
