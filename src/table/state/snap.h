/* table/state/snap.h - the rows of a store as they were at one moment, fetched piece by piece while the store goes on
 * changing.
 *
 * Begun between two events, a snapshot costs nothing at first: the rows lie in the store, and are copied from there
 * when they are asked for. The store announces a change of rows before it makes it (pli_snap_rows_change and the like);
 * the old state of those that nobody has taken yet is then set aside. So a snapshot is a cut through all rows at one
 * moment, its memory is what is changed before it is taken, and the pause is that of a few pieces, never of the whole
 * table.
 *
 * What is taken are *arrays*: the values, each of the rule's arrays, up to where rows have paid, and of a sparse store
 * the keys. An array goes in pieces of a fixed number of rows, so that a reader who wants one array after the other
 * reads each from its first to its last row. Keys never change for a row, and are never set aside.
 *
 * A store that has the state of some values only (spec->sharded) cannot be asked for the rule's arrays by row. Its
 * snapshot has memory for these of its rows from the beginning on, and whoever begins it fills that (keep_values).
 *
 * No thread, lock or message: whoever owns the store owns its snapshot.
 *
 * Paper: Chandy, Lamport, "Distributed Snapshots", TOCS 1985, for what a cut is; copy on write by pieces as in Redis'
 * and databases' fuzzy checkpoints (Salem, Garcia-Molina, "Checkpointing Memory-Resident Databases", ICDE 1989). */
#ifndef PLI_TABLE_SNAP_H
#define PLI_TABLE_SNAP_H

#include "table/state/store.h"

/* The arrays of a table's state. PLI_STATE_UNITS is not an array of rows but one number, where lazy penalties stand. */
enum {
    PLI_STATE_VALUES = 0,
    PLI_STATE_SLOT = 1, /* .. PLI_STATE_SLOT + slots - 1 */
    PLI_STATE_PAID = PLI_STATE_SLOT + PLI_RULE_SLOTS_MAX,
    PLI_STATE_KEYS,
    PLI_STATE_ARRAYS,
    PLI_STATE_UNITS = PLI_STATE_ARRAYS,
    PLI_STATE_ZERO, /* nor is this: all of them as new, without initial values */
    PLI_STATE_DROP  /* nor this: the table is dropped                          */
};

/** Bytes of one row in an array of a table; 0: the table has no such array. */
int64_t pli_state_row_bytes(const pli_spec *spec, int32_t array);
/** Rows of a piece: the same on both sides of a message. */
int64_t pli_snap_piece_rows(const pli_spec *spec);

typedef struct pli_snap_piece pli_snap_piece;

typedef struct pli_snap {
    pli_store      *store;       /* borrowed                                                    */
    int64_t         first, rows; /* the snapshot's rows, by the store's own numbers             */
    int64_t         units;       /* the store's, at that moment                                 */
    int64_t         piece_rows, pieces;
    pli_snap_piece *piece;   /* [pieces]                                                        */
    uint64_t       *keys;    /* [first + rows] of a sparse store, until they are taken           */
    int64_t         left;    /* how many pieces of arrays are not yet taken                     */
    bool            starved; /* there was no memory to set something aside: the snapshot cannot be taken */
} pli_snap;

/** Begins a snapshot of the rows first .. first + rows - 1, and attaches it to the store, which has one at most.
 *  Errors: ENOMEM. */
plait_status pli_snap_begin(pli_store *store, int64_t first, int64_t rows, pli_snap **snap_out, plait_error *err);
void         pli_snap_end(pli_snap **snap);
/** Of a sharded store: sets aside what an array of the rule has in the values first .. first + n - 1 of the store, as
 *  far as they are the snapshot's. */
void         pli_snap_keep_values(pli_snap *snap, int32_t array, int64_t first, int64_t n, const void *values);
/** As if all of it had been taken: keeps nothing and sets nothing aside any more. */
void pli_snap_release(pli_snap *snap);

/** Takes the rows first .. first + n - 1 (the store's own numbers) of an array as a message's body. They must be one
 *  of its pieces, and can be taken once. Errors: EINVAL no such piece, or it was taken; ENOMEM. */
plait_status pli_snap_take(pli_snap *snap, int32_t array, int64_t first, int64_t n, pli_msg **msg_out,
                           plait_error *err);

/* Called before rows change, by the store's own numbers. */
void pli_snap_rows_change(pli_snap *snap, int64_t n, const int64_t *rows);
void pli_snap_range_changes(pli_snap *snap, int64_t first, int64_t n);
/** Called before all rows go, with their keys. false: out of memory for the keys. */
bool pli_snap_keep_all(pli_snap *snap);

/** Copies an array's rows first .. first + n - 1 as they are now, by the store's own numbers; not for keys. */
void pli_snap_copy(const pli_store *store, int32_t array, int64_t first, int64_t n, void *to);

/** Puts back array's rows [n] with these numbers (the store's own, in range; NULL: first .. first + n - 1), but for
 *  those that are not here yet (-1). A dense store must own its slab. */
void pli_snap_put(pli_store *store, int32_t array, int64_t first, int64_t n, const int64_t *rows, const void *data);

#ifdef PLI_TESTING /* tests have small tables and want many pieces */
extern _Atomic int64_t pli_snap_piece_bytes;
#endif

#endif
