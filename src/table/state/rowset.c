/* See rowset.h. */
#include "table/state/rowset.h"

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
        for (int64_t i = 0; set->mapped && i < set->n; i++) set->number_plus_1[set->keys[i] - set->first] = 0;
    } else if (!set->mapped || set->map.slot == NULL) { /* mapped without slots: out of memory */
        set->n = 0;
    } else if ((int64_t)set->map.mask / 64 > set->n) {
        pli_keymap_destroy(&set->map); /* far too large for what it holds */
        pli_keymap_init(&set->map);
    } else {
        memset(set->map.slot, 0, (set->map.mask + 1) * sizeof *set->map.slot);
        set->map.n = 0;
    }
    set->n = 0;
    set->mapped = false;
}

static bool make_array(pli_rowset *set) {
    if (set->number_plus_1 == NULL) set->number_plus_1 = pli_calloc(set->range, sizeof *set->number_plus_1);
    if (set->number_plus_1 == NULL) return false;
    for (int64_t i = 0; i < set->n; i++) set->number_plus_1[set->keys[i] - set->first] = (uint32_t)i + 1;
    return set->mapped = true;
}

static bool add_to_array(pli_rowset *set, int64_t n, const uint64_t *keys, int64_t *at) {
    if (!set->mapped && !make_array(set)) return false;
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

/* Do the keys go on increasing, so that neither array nor map is needed? */
static bool goes_on(const pli_rowset *set, int64_t n, const uint64_t *keys) {
    return !set->mapped && n > 0 && (set->n == 0 || set->keys[set->n - 1] < keys[0]) && pli_is_increasing_u64(n, keys);
}

static bool append(pli_rowset *set, int64_t n, const uint64_t *keys, int64_t *at) {
    memcpy(set->keys + set->n, keys, (size_t)n * sizeof *keys);
    for (int64_t i = 0; i < n; i++) at[i] = set->n + i;
    set->n += n;
    return true;
}

static bool make_map(pli_rowset *set) {
    int64_t at[1024];
    for (int64_t from = 0; from < set->n; from += 1024) {
        int64_t n = set->n - from < 1024 ? set->n - from : 1024;
        if (!pli_keymap_add_all(&set->map, n, set->keys + from, at)) {
            pli_keymap_destroy(&set->map);
            return false;
        }
    }
    return set->mapped = true;
}

static bool add_to_map(pli_rowset *set, int64_t n, const uint64_t *keys, int64_t *at) {
    if (!set->mapped && !make_map(set)) return false;
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

bool pli_rowset_reserve(pli_rowset *set, int64_t n) {
    return n == 0 || pli_grow((void **)&set->keys, &set->capacity, set->n + n, sizeof *set->keys);
}

bool pli_rowset_add(pli_rowset *set, int64_t n, const uint64_t *keys, int64_t *at) {
    if (n == 0) return true;
    if (!pli_rowset_reserve(set, n)) return false;
    if (goes_on(set, n, keys)) return append(set, n, keys, at);
    return uses_array(set) ? add_to_array(set, n, keys, at) : add_to_map(set, n, keys, at);
}

/* Searches among increasing keys: from where the last one was found, or by bisection. */
static void search(const pli_rowset *set, int64_t n, const uint64_t *keys, int64_t *at) {
    int64_t next = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t low = 0, high = set->n;
        if (next < set->n && set->keys[next] == keys[i]) low = high = next;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (set->keys[middle] < keys[i]) low = middle + 1;
            else high = middle;
        }
        at[i] = low < set->n && set->keys[low] == keys[i] ? low : -1;
        if (at[i] >= 0) next = low + 1;
    }
}

void pli_rowset_find(const pli_rowset *set, int64_t n, const uint64_t *keys, int64_t *at) {
    if (set->n == 0) {
        for (int64_t i = 0; i < n; i++) at[i] = -1;
    } else if (!set->mapped) {
        search(set, n, keys, at);
    } else if (!uses_array(set)) {
        pli_keymap_find_all(&set->map, n, keys, at);
    } else {
        for (int64_t i = 0; i < n; i++) {
            if (i + AHEAD < n) __builtin_prefetch(&set->number_plus_1[keys[i + AHEAD] - set->first]);
            at[i] = (int64_t)set->number_plus_1[keys[i] - set->first] - 1;
        }
    }
}
