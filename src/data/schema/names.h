/* data/schema/names.h - the names behind hashed keys, found by a pass over the first rows once training has ended.
 *
 * A caller first says which keys it wants, those with a weight. A parser then offers names as they come; the first name
 * of a key stays, in the order of the data, so names depend on the data alone. What is kept is bounded: PLI_NAMES_MAX
 * names of PLI_NAMES_TEXT bytes together; and so is the text that is looked through (--names). */
#ifndef PLI_DATA_NAMES_H
#define PLI_DATA_NAMES_H

#include "data/data.h"

enum { PLI_NAMES_MAX = 1 << 20, PLI_NAMES_TEXT = 16 << 20 };

typedef struct pli_names {
    uint64_t *wanted; /* [2^bits / 64] a bit for each key */
    int32_t   bits;
    int64_t   left;   /* keys wanted without a name */
    uint64_t *key;    /* [n] */
    char    **name;   /* [n] */
    int64_t   n, key_capacity, name_capacity, text_bytes;
} pli_names;

plait_status pli_names_init(pli_names *names, int32_t bits, plait_error *err);
void         pli_names_free(pli_names *names);
void         pli_names_want(pli_names *names, uint64_t key);
/** Gives the key's name. A name that is no UTF-8, or beyond the bounds, is not kept. false: out of memory. */
bool pli_names_give(pli_names *names, uint64_t key, const char *name, size_t bytes);

static inline bool pli_names_wants(const pli_names *names, uint64_t key) {
    return (names->wanted[key >> 6] >> (key & 63) & 1) != 0;
}

#endif
