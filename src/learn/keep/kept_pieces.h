/* learn/keep/kept_pieces.h - tables that are pieces of larger ones, as those of a net in columns.
 *
 * A checkpoint keeps each piece under a name of its own, "w1[0,24]": the piece of w1 whose first value lies in row 0,
 * column 24. A table is put back out of all pieces that overlap it, or out of the whole; so a run in N columns goes on
 * in M columns, or uncut, and the other way round. */
#ifndef PLI_LEARN_KEPT_PIECES_H
#define PLI_LEARN_KEPT_PIECES_H

#include "data/checkpoint/checkpoint.h"
#include "table/state/state.h"
#include "table/table.h"

enum { PLI_KEPT_NAME = PLI_TABLE_NAME_MAX + 48 };

/** The name under which a table is kept. */
void pli_kept_name(const plait_table *table, char name[PLI_KEPT_NAME]);

/* A table as it was kept: whole, or a piece. */
typedef struct pli_kept_piece {
    char    name[PLI_KEPT_NAME];
    int64_t row0, col0, rows, cols;
} pli_kept_piece;

typedef struct pli_kept_pieces {
    pli_checkpoint *from;
    const char     *where; /* the directory, for errors */
    pli_kept_piece *piece; /* [n] */
    int64_t         n, capacity;
} pli_kept_pieces;

/** All that was kept of the dense table of this name; n is 0 if there is nothing. The caller frees. Errors: ENOMEM. */
plait_status pli_kept_pieces_find(pli_checkpoint *from, const char *where, const char *name, pli_kept_pieces *out,
                                  plait_error *err);
void         pli_kept_pieces_free(pli_kept_pieces *pieces);

/** Reads rows first .. first + n - 1 of an array of a table, called `what` in a checkpoint and of `type`, into out; row
 *  0 is the table's own first row. Errors: EMISMATCH the pieces do not have all of them, or differ in what
 *  they say of a whole row; ECHECKSUM, EIO, ENOMEM. */
plait_status pli_kept_pieces_read(const pli_kept_pieces *pieces, const plait_table *table, const char *what,
                                  const char *type, int64_t first, int64_t n, void *out, plait_error *err);

#endif
