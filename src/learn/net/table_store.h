/* learn/net/table_store.h - the store of plait/table_store.h, bound to tables that are there already. It keeps the
 * values that were got for a whole clock, in which the session may run several times. */
#ifndef PLI_LEARN_TABLE_STORE_H
#define PLI_LEARN_TABLE_STORE_H

#include <stdbool.h>

#include <plait/table_store.h>

/* A variable of the graph. */
typedef struct pli_stored {
    plait_table *table;  /* NULL: another part of a cut graph has it, and no run of this store uses it */
    void        *values; /* [rows, cols] the caller's memory, to which values are got */
    bool         stays;  /* it keeps its first values: nothing is added to it          */
    bool         by_row; /* runs get single rows from the table each time, never all of it */
} pli_stored;

/** Makes a store of variables [n], whose tables and values are borrowed for the store's life.
 *  plait_table_store_destroy destroys it. Errors: ENOMEM. */
plait_status pli_table_store_bind(plait_comm *comm, int32_t n, const pli_stored *variables,
                                  plait_table_store **store_out);
/** A clock begins: asks anew for all that the last run got, in that run's order. */
plait_status pli_table_store_clock(plait_table_store *store);
/** Gets the values of all variables; of a variable with by_row only the first row, unless all_rows. */
plait_status pli_table_store_read(plait_table_store *store, bool all_rows);
/** Sets plait_table_store_opts.flushes for the runs from now on. */
void pli_table_store_flushes(plait_table_store *store, bool flushes);

#endif
