/* base/keymap.c - from 64-bit keys to row numbers, as fast as memory answers.
 *
 * A lookup in a table larger than the caches costs one cache miss, about 100 ns, and nothing else matters. The miss
 * cannot be made shorter, but the processor can wait for ten misses at once: the batch calls hash AHEAD keys in advance
 * and prefetch their slots, so that a batch runs at the rate of random gathers (Chen et al., "Improving Hash Join
 * Performance through Prefetching", ICDE 2004). Linear probing keeps a probe inside the cache line, or at worst goes on
 * to the next, which the hardware fetches by itself (Knuth, TAOCP 3, 6.4, algorithm L); a load of at most 5/8 keeps the
 * expected probe at 1.8 slots for a hit and 4 for a miss. Slots ask for huge pages (pli_calloc), since a walk of the
 * page table is a miss as well.
 *
 * The home of a key is the low bits of its hash. When the capacity doubles, one more bit joins, so the keys of old slot
 * i move to i or to i + capacity: growth reads one stream and writes two, without a random access.
 *
 * Invariants: 1. row_plus_1 == 0 marks a free slot (new memory is zeroed, so all slots are free). 2. Between a key's
 * home and its slot no slot is free. 3. There is always a free slot, so each probe ends. 4. Rows are 0 .. n-1, each
 * held once. */
#include "base/keymap.h"

#include "base/alloc.h"
#include "base/hash.h"

enum {
    AHEAD = 24,
    RING = 32,
    SMALLEST = 16
}; /* a distance of 16 to 32 measures alike; RING is a power of two above
                                                * AHEAD */

void pli_keymap_init(pli_keymap *map) { *map = (pli_keymap){ .slot = NULL, .mask = 0, .n = 0 }; }

void pli_keymap_destroy(pli_keymap *map) {
    pli_free(map->slot);
    pli_keymap_init(map);
}

static int64_t keys_that_fit(uint64_t capacity) { return (int64_t)(capacity / 8 * 5); }
static int64_t room_of(const pli_keymap *map) { return map->slot == NULL ? 0 : keys_that_fit(map->mask + 1); }

/* The slot that holds key, or the free slot where it belongs. */
static inline struct pli_keyslot *probe(const pli_keymap *map, uint64_t key, uint64_t hash) {
    uint64_t at = hash & map->mask;
    while (map->slot[at].row_plus_1 != 0 && map->slot[at].key != key) at = (at + 1) & map->mask;
    return &map->slot[at];
}

/* Puts the keys of old, which are all different, into the empty map. */
static void move_keys(const pli_keymap *old, pli_keymap *map) {
    for (uint64_t i = 0; old->slot != NULL && i <= old->mask; i++) {
        if (old->slot[i].row_plus_1 == 0) continue;
        uint64_t at = pli_hash_u64(old->slot[i].key) & map->mask;
        while (map->slot[at].row_plus_1 != 0) at = (at + 1) & map->mask;
        map->slot[at] = old->slot[i];
    }
}

static bool resize(pli_keymap *map, uint64_t capacity) {
    pli_keymap grown = { .slot = pli_calloc(capacity, sizeof *map->slot), .mask = capacity - 1, .n = map->n };
    if (grown.slot == NULL) return false;
    move_keys(map, &grown);
    pli_free(map->slot);
    *map = grown;
    return true;
}

bool pli_keymap_reserve(pli_keymap *map, int64_t keys) {
    if (keys <= room_of(map)) return true;
    uint64_t capacity = map->slot == NULL ? SMALLEST : map->mask + 1;
    while (keys_that_fit(capacity) < keys) {
        if (capacity > UINT64_MAX / 32) return false;
        capacity *= 2;
    }
    return resize(map, capacity);
}

int64_t pli_keymap_find(const pli_keymap *map, uint64_t key) {
    if (map->slot == NULL) return -1;
    return (int64_t)probe(map, key, pli_hash_u64(key))->row_plus_1 - 1;
}

/* The row of key, which is added if it is new; only then may the map grow. -1: out of memory. */
static inline int64_t add_hashed(pli_keymap *map, uint64_t key, uint64_t hash) {
    struct pli_keyslot *slot = map->slot != NULL ? probe(map, key, hash) : NULL;
    if (slot != NULL && slot->row_plus_1 != 0) return (int64_t)slot->row_plus_1 - 1;
    if (map->n >= room_of(map)) {
        if (!pli_keymap_reserve(map, map->n + 1)) return -1;
        slot = probe(map, key, hash);
    }
    *slot = (struct pli_keyslot){ .key = key, .row_plus_1 = (uint64_t)++map->n };
    return map->n - 1;
}

int64_t pli_keymap_add(pli_keymap *map, uint64_t key) { return add_hashed(map, key, pli_hash_u64(key)); }

/* --- batches: hash and prefetch the next AHEAD keys; their hashes wait in a ring ---------------------- */

void pli_keymap_find_all(const pli_keymap *map, int64_t n, const uint64_t *keys, int64_t *rows) {
    uint64_t ring[RING];
    if (map->slot == NULL) {
        for (int64_t i = 0; i < n; i++) rows[i] = -1;
        return;
    }
    for (int64_t i = -AHEAD; i < n; i++) {
        if (i >= 0) rows[i] = (int64_t)probe(map, keys[i], ring[i % RING])->row_plus_1 - 1;
        if (i + AHEAD < n) {
            uint64_t hash = pli_hash_u64(keys[i + AHEAD]);
            ring[(i + AHEAD) % RING] = hash;
            __builtin_prefetch(&map->slot[hash & map->mask], 0);
        }
    }
}

bool pli_keymap_add_all(pli_keymap *map, int64_t n, const uint64_t *keys, int64_t *rows) {
    uint64_t ring[RING];
    if (map->slot == NULL && !pli_keymap_reserve(map, 1)) return false; /* now there are slots to prefetch */
    for (int64_t i = -AHEAD; i < n; i++) {
        if (i >= 0 && (rows[i] = add_hashed(map, keys[i], ring[i % RING])) < 0) return false;
        if (i + AHEAD < n) {
            uint64_t hash = pli_hash_u64(keys[i + AHEAD]);
            ring[(i + AHEAD) % RING] = hash;
            __builtin_prefetch(&map->slot[hash & map->mask], 1);
        }
    }
    return true;
}

void pli_keymap_keys(const pli_keymap *map, uint64_t *keys) {
    for (uint64_t i = 0; map->slot != NULL && i <= map->mask; i++) {
        if (map->slot[i].row_plus_1 != 0) keys[map->slot[i].row_plus_1 - 1] = map->slot[i].key;
    }
}

bool pli_keymap_keys_within(const pli_keymap *map, uint64_t *at, uint64_t slots, int64_t first, int64_t n,
                            uint64_t *keys) {
    const uint64_t all = map->slot == NULL ? 0 : map->mask + 1, end = all - *at < slots ? all : *at + slots;
    for (; *at < end; ++*at) {
        const int64_t row = (int64_t)map->slot[*at].row_plus_1 - 1 - first;
        if (row >= 0 && row < n) keys[row] = map->slot[*at].key;
    }
    return *at == all;
}
