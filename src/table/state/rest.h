/* table/state/rest.h - what filters that lose something have kept of this worker's updates (filter/residual.c), as a
 * checkpoint takes it and puts it back.
 *
 * A rest belongs to the worker whose updates it is left of, wherever these travel: to a server, or into a sum of all
 * workers. Under sums the owner of a stripe also keeps what is left of the stripe's sum (copies/coded.h); it counts as
 * the owner's own. The sum of what was applied and of all rests is what was pushed, so a checkpoint that holds each
 * worker's rest loses nothing, whichever worker gets it back. With as many workers as before each gets its own, and
 * goes on to the same bits. */
#ifndef PLI_TABLE_REST_H
#define PLI_TABLE_REST_H

#include <stdbool.h>

#include <plait/table.h>

#include "base/base.h"

/* Rows of a table, all of it where keys is NULL. */
typedef struct pli_rest {
    plait_type type; /* F32 or F64 */
    int64_t    n, cols;
    uint64_t  *keys;   /* [n], of a sparse table */
    void      *values; /* [n, cols]; NULL: nothing is kept */
} pli_rest;

/** Do the table's filters keep what does not travel? */
bool pli_rest_is_kept(const plait_table *table);
/** Copies what is kept. Called behind a barrier, before the worker updates anything. Errors: ENOMEM. Not collective. */
plait_status pli_rest_take(plait_table *table, pli_rest *rest_out, plait_error *err);
void         pli_rest_free(pli_rest *rest);
/** Adds rows to what is kept; values NULL: only looks whether such rows fit. A table whose filters keep nothing ignores
 *  them. keys are those of a sparse table. Errors: EMISMATCH they are not of such a table; ENOMEM. */
plait_status pli_rest_add(plait_table *table, const pli_rest *rest, plait_error *err);
/** Forgets what is kept. */
void pli_rest_forget(plait_table *table);

#endif
