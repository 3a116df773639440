/* table/copies/keepers.h - who holds which slice of a table's state, where a slice outlives its owner.
 *
 * The values of a table are cut into slices, one for each living worker. The owner of a slice applies the rule to it
 * (topology/sharded.h), and so do the copies - 1 workers behind it in the ring of those that live: the rule gives the
 * same bits for the same sum, so copies of the state stay equal, and none of it travels while nobody dies:
 *
 *     slice          0      1      2      3         (4 workers, 2 copies)
 *     owner          0      1      2      3
 *     holds it, too  1      2      3      0
 *
 * When a worker dies, the next holder of its slice that lives *speaks* for it. Then the table is cut anew, among those
 * that live: each of them takes what its new slices need from what it holds itself, or from who speaks for it. A slice
 * is lost only if all of its holders die before that.
 *
 * In a worker's memory the states of its own slice come first, then those of the slice before it in the ring, and so
 * on.
 *
 * Nothing but arithmetic, the same on all workers; topology/agreed_slices.c moves the bytes.
 *
 * Papers: Rajbhandari et al., "ZeRO", SC 2020 (keepers of the state); DeCandia et al., "Dynamo", SOSP 2007, section 4.3
 * (copies at the next ones of a ring). */
#ifndef PLI_TABLE_KEEPERS_H
#define PLI_TABLE_KEEPERS_H

#include "base/base.h"

typedef struct pli_keepers {
    int32_t  workers, copies;
    int64_t  values;
    uint8_t *dead;    /* [workers] 1: the table is not cut for this one                  */
    int32_t *living;  /* [n_living] the others, in order: slice s is owned by living[s]  */
    int32_t  n_living;
} pli_keepers;

typedef struct pli_stretch {
    int64_t first, n;
} pli_stretch;

/** What two stretches have in common; n is 0 if that is nothing. */
static inline pli_stretch pli_stretch_common(pli_stretch a, pli_stretch b) {
    const int64_t first = a.first > b.first ? a.first : b.first, end = a.first + a.n, other = b.first + b.n;
    const int64_t last = end < other ? end : other;
    return (pli_stretch){ first, last > first ? last - first : 0 };
}

/** dead [workers]: not all of them. false: no memory. */
bool pli_keepers_init(pli_keepers *keepers, int32_t workers, int32_t copies, int64_t values, const uint8_t *dead);
void pli_keepers_free(pli_keepers *keepers); /* one that is zeroed, too */

/** The values of slice 0 <= slice < n_living. */
pli_stretch pli_keepers_range(const pli_keepers *keepers, int32_t slice);
/** How many slices each living worker holds. */
int32_t   pli_keepers_held(const pli_keepers *keepers);
/** The i-th slice that a living worker holds; its own one is the first. */
int32_t   pli_keepers_at(const pli_keepers *keepers, int32_t worker, int32_t i);
/** Where the states of that slice begin in the worker's memory; of i = pli_keepers_held: how many there are. */
int64_t   pli_keepers_state(const pli_keepers *keepers, int32_t worker, int32_t i);
/** Which of its slices this is; -1: the worker does not hold it. */
int32_t   pli_keepers_place(const pli_keepers *keepers, int32_t worker, int32_t slice);
/** The first holder of the slice that is not among the dead [workers]; -1: the slice is lost. */
int32_t   pli_keepers_speaker(const pli_keepers *keepers, int32_t slice, const uint8_t *dead);
/** The first slice that is lost, if these are dead; -1: none is. */
int32_t   pli_keepers_lost(const pli_keepers *keepers, const uint8_t *dead);

/* States that a worker needs when a table is cut anew: n of them, from number `state` of the worker `from`, which may
 * be itself, as number `to` of its own. */
typedef struct pli_keepers_moved {
    int32_t from;
    int64_t state, to, n;
} pli_keepers_moved;

typedef void pli_keepers_fn(const pli_keepers_moved *moved, void *user);

/** Calls fn for all that a living worker needs to go from one cut to another, of which no slice is lost: in the same
 *  order, whoever asks. */
void pli_keepers_move(const pli_keepers *from, const pli_keepers *to, int32_t worker, pli_keepers_fn *fn, void *user);

#endif
