/* table/state/slice.h - some rows of a shard with all that is kept of them, as a message's body: what a new replica of
 * the shard is made from (copies/replicas.h).
 *
 * Rows go from the first to the last, by the shard's own numbers, so the two sides know by one number which of them are
 * there. All arrays of a row go together: a row is there with all that an update of it needs, or not at all. The body
 * is a pli_wire_slice; of a sparse table the keys [n]; where pushes that came by themselves have replaced rows, the
 * rows' stamps [n] (store.h); of each array that the table has (snap.h) the rows [n], padded to 8; the penalty factors
 * [n, cols], padded likewise.
 *
 * A sparse shard finds its keys by scanning its map, which takes too long for one slice. So it looks through a part of
 * the map at a time, and a slice without rows goes meanwhile. */
#ifndef PLI_TABLE_SLICE_H
#define PLI_TABLE_SLICE_H

#include "table/state/shard.h"

/* What has been sent of a shard. */
typedef struct pli_slices {
    bool      open; /* some is still to be sent */
    int64_t   sent; /* rows below have been */
    uint64_t *keys; /* of a sparse shard: those of rows found .. known - 1, once the map was looked through */
    int64_t   found, known;
    uint64_t  at, mask; /* how far, and how large the map was */
} pli_slices;

/** About so many bytes a slice has: more only where a row has more. */
int64_t pli_slice_size(void);
/** All of the shard is to be sent. */
void pli_slices_open(pli_slices *slices);
void pli_slices_close(pli_slices *slices);
/** A sparse shard has lost all of its rows (and may have new ones): they are sent from the first on. A dense one's were
 *  zeroed on both sides. */
void pli_slices_zeroed(pli_slices *slices, const pli_shard *shard);
/** The next slice. With the last one the slices are closed. NULL: out of memory. */
pli_msg *pli_slices_next(pli_slices *slices, const pli_shard *shard);

/** Takes the next slice of a shard that was opened empty. Errors: EFORMAT, ENOMEM. */
plait_status pli_slice_take(pli_shard *shard, const pli_msg *msg, plait_error *err);

#ifdef PLI_TESTING /* tests have small tables and want many slices */
extern _Atomic int64_t pli_slice_bytes;
#endif

#endif
