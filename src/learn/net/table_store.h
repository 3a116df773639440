/* learn/table_store.h - the store of plait/table_store.h, as learners have it: over tables that are there already, and
 * with what was got kept for a whole clock, in which several runs may see it. */
#ifndef PLI_LEARN_TABLE_STORE_H
#define PLI_LEARN_TABLE_STORE_H

#include <stdbool.h>

#include <plait/table_store.h>

/* A variable of the graph. */
typedef struct pli_stored {
    plait_table *table;
    void        *values; /* [rows, cols] as the table has them; the caller's: what is got comes here */
    bool         by_row; /* runs get rows of it, of the table each time: it is never asked for whole */
} pli_stored;

/** Of variables [n], whose tables and values are borrowed for the store's life. Destroyed by plait_table_store_destroy.
 *  Errors: ENOMEM. */
plait_status pli_table_store_bind(plait_comm *comm, int32_t n, const pli_stored *variables,
                                  plait_table_store **store_out);
/** A clock begins: what the last run got is asked for anew, in that run's order. */
plait_status pli_table_store_clock(plait_table_store *store);
/** Fills all values, whoever needs them; of a variable that is got by row the first row, or all of them. */
plait_status pli_table_store_read(plait_table_store *store, bool all_rows);
/** As plait_table_store_opts has it, for the runs from now on. */
void pli_table_store_flushes(plait_table_store *store, bool flushes);

#endif
