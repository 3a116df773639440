/* See rowset.h. */
#include "table/rowset.h"

#include <string.h>

enum { ARRAY_MAX = INT32_MAX, AHEAD = 16 };

void pli_rowset_init(pli_rowset *set, uint64_t first, uint64_t range) {
    *set = (pli_rowset){ .first = first, .range = range };
    pli_keymap_init(&set->map);
}

void pli_rowset_destroy(pli_rowset *set) {
    pli_free(set->keys);
    pli_free(set->number_plus_1);
    pli_keymap_destroy(&set->map);
    pli_rowset_init(set, set->first, set->range);
}

static bool uses_array(const pli_rowset *set) { return set->range > 0 && set->range <= ARRAY_MAX; }

void pli_rowset_clear(pli_rowset *set) {
    if (uses_array(set)) {
        for (int64_t i = 0; i < set->n; i++) set->number_plus_1[set->keys[i] - set->first] = 0;
    } else if (set->map.slot != NULL && (int64_t)set->map.mask / 64 > set->n) {
        pli_keymap_destroy(&set->map); /* far too large for what it holds */
        pli_keymap_init(&set->map);
    } else if (set->map.slot != NULL) {
        memset(set->map.slot, 0, (set->map.mask + 1) * sizeof *set->map.slot);
        set->map.n = 0;
    }
    set->n = 0;
}

static bool add_to_array(pli_rowset *set, int64_t n, const uint64_t *keys, int64_t *at) {
    if (set->number_plus_1 == NULL) set->number_plus_1 = pli_calloc(set->range, sizeof *set->number_plus_1);
    if (set->number_plus_1 == NULL) return false;
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) __builtin_prefetch(&set->number_plus_1[keys[i + AHEAD] - set->first], 1);
        uint32_t *number = &set->number_plus_1[keys[i] - set->first];
        if (*number == 0) {
            set->keys[set->n++] = keys[i];
            *number = (uint32_t)set->n;
        }
        at[i] = (int64_t)*number - 1;
    }
    return true;
}

static bool add_to_map(pli_rowset *set, int64_t n, const uint64_t *keys, int64_t *at) {
    bool added = pli_keymap_add_all(&set->map, n, keys, at);
    if (!added) {
        pli_keymap_keys(&set->map, set->keys);
        set->n = set->map.n;
        return false;
    }
    for (int64_t i = 0; i < n; i++)
        if (at[i] == set->n) set->keys[set->n++] = keys[i];
    return true;
}

bool pli_rowset_add(pli_rowset *set, int64_t n, const uint64_t *keys, int64_t *at) {
    if (!pli_grow((void **)&set->keys, &set->capacity, set->n + n, sizeof *set->keys)) return false;
    return uses_array(set) ? add_to_array(set, n, keys, at) : add_to_map(set, n, keys, at);
}

void pli_rowset_find(const pli_rowset *set, int64_t n, const uint64_t *keys, int64_t *at) {
    if (set->n == 0) {
        for (int64_t i = 0; i < n; i++) at[i] = -1;
    } else if (!uses_array(set)) {
        pli_keymap_find_all(&set->map, n, keys, at);
    } else {
        for (int64_t i = 0; i < n; i++) {
            if (i + AHEAD < n) __builtin_prefetch(&set->number_plus_1[keys[i + AHEAD] - set->first]);
            at[i] = (int64_t)set->number_plus_1[keys[i] - set->first] - 1;
        }
    }
}
