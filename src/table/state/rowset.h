/* table/state/rowset.h - a set of keys, numbered 0, 1, 2, ... in order of insertion: what a worker has touched in a
 * clock, or what a server sums in one. Over a small range of keys it is an array, else a keymap; while keys come in
 * increasing order it is only their list. It is emptied each clock, so emptying costs what was in it, not what it could
 * hold. */
#ifndef PLI_TABLE_ROWSET_H
#define PLI_TABLE_ROWSET_H

#include "base/base.h"

typedef struct pli_rowset {
    int64_t    n;
    uint64_t  *keys; /* [n], in order of insertion                                 */
    int64_t    capacity;
    uint64_t   first, range; /* keys are first .. first + range - 1; range 0: any key */
    uint32_t  *number_plus_1; /* [range], zeros but for keys while mapped; or NULL: not needed so far, or the map is
                                 used */
    pli_keymap map;
    bool       mapped; /* the array or map holds the keys; else they are increasing */
} pli_rowset;

/** range 0: any key. The array form is used for ranges up to 2^31 when first needed. */
void pli_rowset_init(pli_rowset *set, uint64_t first, uint64_t range);
void pli_rowset_destroy(pli_rowset *set);
void pli_rowset_clear(pli_rowset *set);
/** Makes room for n more keys at once. false: out of memory. */
bool pli_rowset_reserve(pli_rowset *set, int64_t n);
/** at [n] receives each key's number, added where new. false: out of memory (some may be added). */
bool pli_rowset_add(pli_rowset *set, int64_t n, const uint64_t *keys, int64_t *at);
/** Are the keys known to have come in increasing order? */
static inline bool pli_rowset_is_increasing(const pli_rowset *set) { return !set->mapped; }
/** at [n] receives each key's number, or -1. */
void pli_rowset_find(const pli_rowset *set, int64_t n, const uint64_t *keys, int64_t *at);

#endif
