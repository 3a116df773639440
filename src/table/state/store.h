/* table/state/store.h - the rows of one shard: values, the rule's state, and how far the penalty has come.
 *
 * The layout is a structure of arrays: a chunk holds the values of its rows, then each of the rule's state arrays
 * apart, so that a rule runs over consecutive values. A dense store is one chunk whose values are a slab, which may be
 * handed out as the body of a message; a sparse one grows by chunks of a power of two of rows and finds a key's row in
 * a keymap. Everything but the way from key to row is the same for both.
 *
 * Nobody writes a slab that was handed out: if somebody still holds it, pli_store_own gives the dense store a copy of
 * its own first.
 *
 * A store may be opened without its rows, which then come slice by slice (slice.h), from the first on. What changes a
 * row that is not here yet leaves it out: the slice will have the change in it. So a sparse store has no new key until
 * its last slice is here, and its rows are numbered as where they come from.
 *
 * Rows that are replaced (combine last) have a stamp each, in memory that comes with the first push that is applied by
 * itself: who pushed the row last, and when.
 *
 * Lazy penalties: where updates come by key, a row that a push does not touch still owes the penalty's steps. A row
 * remembers up to where it has paid (in `units`, of which `per_clock` make a clock's step) and pays before its next
 * update; a read gets the paid values without writing them, so what is stored depends on the updates alone. */
#ifndef PLI_TABLE_STORE_H
#define PLI_TABLE_STORE_H

#include "comm/msg.h"
#include "table/state/spec.h"

typedef struct pli_chunk {
    void    *values, *slot[PLI_RULE_SLOTS_MAX];
    int64_t *paid; /* lazy: units up to which each row has paid; else NULL */
    int64_t *stamp; /* of each row's last push, pli_stamp; NULL: no push came by itself */
} pli_chunk;

typedef struct pli_store {
    const pli_spec *spec; /* borrowed */
    int64_t         rows; /* how many it holds */
    int             shift;
    int64_t         mask; /* row r is row r & mask of chunk r >> shift */
    pli_chunk      *chunk;
    int64_t         chunks, chunks_capacity;
    int64_t         here; /* rows from here on have not come yet; PLI_ALL_HERE; sparse: the next slice's first */
    int64_t         units, per_clock; /* lazy: see above */
    /* dense */
    int64_t   first; /* number of the first row    */
    pli_slab *slab;  /* values of the one chunk    */
    void     *penalty; /* [rows, cols], or NULL: 1 */
    int64_t   states; /* how many values have a state here: all, unless spec->sharded */
    struct pli_snap *snap; /* snap.h: told before rows change; NULL: there is none */
    /* sparse */
    pli_keymap map;
} pli_store;

#define PLI_ALL_HERE INT64_MAX
static inline bool pli_store_lacks_rows(const pli_store *store) { return store->here != PLI_ALL_HERE; }

enum { PLI_BLOCK = 1024 }; /* keys that are handled at a time: their rows' numbers fit into the first-level cache */

/* store_dense.c */
plait_status pli_store_open_dense(pli_store *store, const pli_spec *spec, int64_t first, int64_t rows,
                                  const void *initial, const void *penalty, plait_error *err);
/** The same without rows: their memory is not touched yet. */
plait_status pli_store_open_dense_empty(pli_store *store, const pli_spec *spec, int64_t first, int64_t rows,
                                        plait_error *err);
bool         pli_store_own(pli_store *store); /* false: out of memory */
/** For spec->sharded: makes the state of n values; the caller that updates them says which. */
plait_status pli_store_open_state(pli_store *store, int64_t n, plait_error *err);
/** Adds delta [n] to these values (additive), or applies the rule; their states begin with number `state`. The store
 *  must own its slab. */
void         pli_store_update_values(pli_store *store, int64_t first, int64_t n, int64_t state, const plait_step *step,
                                     const void *delta);
void         pli_store_swap(pli_store *store, pli_slab *values); /* replaces the values by these (taken), of the same
                                                                  * size */

/** Zeroes values and the rule's state, without bringing initial values back; rows owe nothing. false: out of memory,
 *  and nothing has changed. */
bool         pli_store_zero_dense(pli_store *store);

/* store_sparse.c */
plait_status pli_store_open_sparse(pli_store *store, const pli_spec *spec, plait_error *err);
/** rows [n] receives the numbers of keys, which are added where new; while rows are still to come they are not, and
 *  their number is -1. false: out of memory. */
bool         pli_store_add_rows(pli_store *store, int64_t n, const uint64_t *keys, int64_t *rows);
/** Adds them even then. */
bool         pli_store_take_rows(pli_store *store, int64_t n, const uint64_t *keys, int64_t *rows);
void         pli_store_sparse_close(pli_store *store);
bool         pli_store_zero_sparse(pli_store *store); /* as above: no rows */

/* store.c */
plait_status pli_store_open(pli_store *store, const pli_spec *spec, int64_t first, int64_t rows, const void *initial,
                            const void *penalty, plait_error *err);
/** Opens a store whose rows come by slices. */
plait_status pli_store_open_empty(pli_store *store, const pli_spec *spec, int64_t first, int64_t rows,
                                  plait_error *err);
void         pli_store_close(pli_store *store);
/** Zeroes a store of either kind. */
static inline bool pli_store_zero(pli_store *store) {
    return store->first < 0 ? pli_store_zero_sparse(store) : pli_store_zero_dense(store);
}
/** out [n, cols] receives the rows of keys [n] (dense: in range), paid up; zeros for a key that is not held. */
void pli_store_get(const pli_store *store, int64_t n, const uint64_t *keys, void *out);
/** The same for the rows first .. first + n - 1 of this store (numbers of the store's own). */
void pli_store_get_rows(const pli_store *store, int64_t first, int64_t n, void *out);
/** Adds to the rows of keys [n], which do not repeat (additive), or applies the rule to them. own_units: what the step
 *  itself pays. Dense: the store must own its slab. false: out of memory. */
bool pli_store_update(pli_store *store, int64_t n, const uint64_t *keys, const plait_step *step, int64_t own_units,
                      const void *delta);
/** Replaces the rows of keys [n], which do not repeat, except rows with a later stamp. Dense: the store must own its
 *  slab. false: out of memory. */
bool pli_store_replace(pli_store *store, int64_t n, const uint64_t *keys, int64_t stamp, const void *rows);
/** Has any of the rows first .. first + n - 1 (the store's own numbers) a stamp? Copies theirs to stamps [n], 0 where
 *  there is none; puts such a copy back (false: out of memory). */
bool pli_store_has_stamps(const pli_store *store, int64_t first, int64_t n);
void pli_store_copy_stamps(const pli_store *store, int64_t first, int64_t n, int64_t *stamps);
bool pli_store_put_stamps(pli_store *store, int64_t first, int64_t n, const int64_t *stamps);
/** Adds to rows [n] (the store's own numbers) of an additive table's dense store, which must own its slab. */
void pli_store_scatter(pli_store *store, int64_t n, const int64_t *rows, const void *delta);
/** Adds, or applies the rule, to the rows first .. first + n - 1 of a dense store, which must own its slab. */
void pli_store_update_range(pli_store *store, int64_t first, int64_t n, const plait_step *step, const void *delta);
/** Makes every row pay what it owes. Dense: the store must own its slab. */
void pli_store_pay_all(pli_store *store);

/** A number > 0 that orders the pushes of a table: by clock, and within a clock by worker. */
static inline int64_t pli_stamp(int64_t clock, int32_t worker) { return (clock + 1) * (INT64_C(1) << 20) + worker; }

static inline void *pli_store_row(const pli_store *store, int64_t row, int64_t row_bytes) {
    return (unsigned char *)store->chunk[row >> store->shift].values + (row & store->mask) * row_bytes;
}

/* The steps that a row owes, in whole clocks. */
static inline int64_t pli_store_owed(const pli_store *store, int64_t row) {
    const int64_t *paid = store->chunk[row >> store->shift].paid;
    return paid == NULL ? 0 : (store->units - paid[row & store->mask]) / store->per_clock;
}

#endif
