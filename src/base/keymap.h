/* base/keymap.h - a hash map from 64-bit keys to row numbers 0, 1, 2, ... in order of insertion.
 *
 * Open addressing, power-of-two capacity, linear probing over slots of (key, row + 1), a load of at most 5/8. The batch
 * calls hash keys and prefetch their slots before they touch them: the limit is the machine's rate of random 64-byte
 * gathers, not the latency of one. Row numbers stay when the map grows. */
#ifndef PLI_BASE_KEYMAP_H
#define PLI_BASE_KEYMAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pli_keymap {
    struct pli_keyslot { uint64_t key; uint64_t row_plus_1; } *slot;
    uint64_t mask; /* capacity - 1                             */
    int64_t  n;    /* keys held = the next row number          */
} pli_keymap;

void    pli_keymap_init(pli_keymap *map); /* empty, holds no memory */
void    pli_keymap_destroy(pli_keymap *map);
bool    pli_keymap_reserve(pli_keymap *map, int64_t keys); /* false: out of memory */
int64_t pli_keymap_find(const pli_keymap *map, uint64_t key); /* row, or -1 */
int64_t pli_keymap_add(pli_keymap *map, uint64_t key);        /* row, new or old; -1: out of memory */

/** rows [n] receives the row of each key, or -1. */
void pli_keymap_find_all(const pli_keymap *map, int64_t n, const uint64_t *keys, int64_t *rows);
/** rows [n] receives the row of each key; new keys are added. false: out of memory (map unchanged or grown). */
bool pli_keymap_add_all(pli_keymap *map, int64_t n, const uint64_t *keys, int64_t *rows);
/** keys [map->n] receives the key of each row, in the order of rows. */
void pli_keymap_keys(const pli_keymap *map, uint64_t *keys);
/** The same for rows first .. first + n - 1 alone (keys [n]), as far as they lie in `slots` slots from *at on, which
 *  moves behind them. false: slots are left. A map that has grown (mask) in between is looked through anew. */
bool pli_keymap_keys_within(const pli_keymap *map, uint64_t *at, uint64_t slots, int64_t first, int64_t n,
                            uint64_t *keys);

#endif
