/* See hogwild_rows.h. */
#include "table/topology/hogwild_rows.h"

#include <stdatomic.h>
#include <string.h>

typedef struct slot {
    _Atomic uint64_t key;
    _Atomic int64_t  row_plus_1; /* 0: free; release, pairs with the acquire in look */
} slot;

struct pli_hogwild_index {
    struct pli_hogwild_index *older;
    uint64_t                  mask;
    slot                      slot[];
};

enum { AHEAD = 16, SMALLEST = 1024 };

static struct pli_hogwild_index *make_index(uint64_t capacity) {
    struct pli_hogwild_index *index = pli_calloc(1, sizeof *index + capacity * sizeof(slot));
    if (index != NULL) index->mask = capacity - 1;
    return index;
}

bool pli_hogwild_rows_open(pli_hogwild_rows *rows, const pli_spec *spec) {
    memset(rows, 0, sizeof *rows);
    rows->spec = spec;
    struct pli_hogwild_index *index = make_index(SMALLEST);
    if (index == NULL) return false;
    atomic_store_explicit(&rows->index, index, memory_order_release);
    pthread_mutex_init(&rows->lock, NULL);
    return true;
}

void pli_hogwild_rows_close(pli_hogwild_rows *rows) {
    struct pli_hogwild_index *index = atomic_load_explicit(&rows->index, memory_order_acquire);
    if (index == NULL) return;
    pthread_mutex_destroy(&rows->lock);
    while (index != NULL) {
        struct pli_hogwild_index *older = index->older;
        pli_free(index);
        index = older;
    }
    for (int c = 0; c < PLI_HOGWILD_CHUNKS; c++) {
        pli_free(rows->chunk[c].values);
        for (int32_t k = 0; k < PLI_RULE_SLOTS_MAX; k++) pli_free(rows->chunk[c].slot[k]);
        pli_free(rows->chunk[c].paid);
    }
    memset(rows, 0, sizeof *rows);
}

static int64_t look(const struct pli_hogwild_index *index, uint64_t key) {
    for (uint64_t at = pli_hash_u64(key) & index->mask;; at = (at + 1) & index->mask) {
        int64_t row = atomic_load_explicit(&index->slot[at].row_plus_1, memory_order_acquire) - 1;
        if (row < 0 || atomic_load_explicit(&index->slot[at].key, memory_order_relaxed) == key) return row;
    }
}

void pli_hogwild_rows_ahead(const pli_hogwild_rows *rows, int64_t n, const uint64_t *keys) {
    const struct pli_hogwild_index *index = atomic_load_explicit(&rows->index, memory_order_acquire);
    for (int64_t i = 0; i < n; i++) __builtin_prefetch(&index->slot[pli_hash_u64(keys[i]) & index->mask]);
}

void pli_hogwild_rows_find(const pli_hogwild_rows *rows, int64_t n, const uint64_t *keys, int64_t *at) {
    const struct pli_hogwild_index *index = atomic_load_explicit(&rows->index, memory_order_acquire);
    for (int64_t i = 0; i < n && i < AHEAD; i++) __builtin_prefetch(&index->slot[pli_hash_u64(keys[i]) & index->mask]);
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) __builtin_prefetch(&index->slot[pli_hash_u64(keys[i + AHEAD]) & index->mask]);
        at[i] = look(index, keys[i]);
    }
}

/* --- inserting, under the lock ------------------------------------------------------------------------------ */

static void put(struct pli_hogwild_index *index, uint64_t key, int64_t row) {
    uint64_t at = pli_hash_u64(key) & index->mask;
    while (atomic_load_explicit(&index->slot[at].row_plus_1, memory_order_relaxed) != 0) at = (at + 1) & index->mask;
    atomic_store_explicit(&index->slot[at].key, key, memory_order_relaxed);
    atomic_store_explicit(&index->slot[at].row_plus_1, row + 1, memory_order_release);
}

static bool grow_index(pli_hogwild_rows *rows) {
    struct pli_hogwild_index *old = atomic_load_explicit(&rows->index, memory_order_relaxed);
    struct pli_hogwild_index *index = make_index((old->mask + 1) * 2);
    if (index == NULL) return false;
    index->older = old;
    for (uint64_t i = 0; i <= old->mask; i++) {
        int64_t row = atomic_load_explicit(&old->slot[i].row_plus_1, memory_order_relaxed) - 1;
        if (row >= 0) put(index, atomic_load_explicit(&old->slot[i].key, memory_order_relaxed), row);
    }
    atomic_store_explicit(&rows->index, index, memory_order_release);
    return true;
}

static void *zeroed(size_t bytes) {
    void *memory = pli_aligned(bytes);
    return memory == NULL ? NULL : memset(memory, 0, bytes);
}

/* Makes the chunk if it is missing. What has been made stays, so a later try goes on from there. */
static bool make_chunk(pli_hogwild_rows *rows, int c) {
    const pli_spec *spec = rows->spec;
    pli_chunk      *chunk = &rows->chunk[c];
    size_t          n = (size_t)1 << (c + PLI_HOGWILD_FIRST_LOG2), bytes = n * (size_t)pli_row_bytes(spec);
    if (chunk->values != NULL) return true;
    for (int32_t k = 0; spec->ruled && k < spec->rule.ops->slots; k++)
        if (chunk->slot[k] == NULL && (chunk->slot[k] = zeroed(bytes)) == NULL) return false;
    if (spec->lazy && chunk->paid == NULL && (chunk->paid = pli_calloc(n, sizeof *chunk->paid)) == NULL) return false;
    chunk->values = pli_aligned(bytes);
    if (chunk->values != NULL) pli_merge_clear(spec->merge, (int64_t)n * spec->cols, chunk->values);
    return chunk->values != NULL;
}

static int64_t insert(pli_hogwild_rows *rows, uint64_t key, int64_t units) {
    struct pli_hogwild_index *index = atomic_load_explicit(&rows->index, memory_order_relaxed);
    int64_t                   row = look(index, key), within; /* another thread may have inserted it meanwhile */
    if (row >= 0) return row;
    row = atomic_load_explicit(&rows->n, memory_order_relaxed);
    if ((uint64_t)row >= (index->mask + 1) / 8 * 5) {
        if (!grow_index(rows)) return -1;
        index = atomic_load_explicit(&rows->index, memory_order_relaxed);
    }
    int c = pli_hogwild_chunk_of(row, &within);
    if (c >= PLI_HOGWILD_CHUNKS || !make_chunk(rows, c)) return -1;
    if (rows->spec->lazy) rows->chunk[c].paid[within] = units;
    put(index, key, row);
    atomic_store_explicit(&rows->n, row + 1, memory_order_release);
    return row;
}

bool pli_hogwild_rows_add(pli_hogwild_rows *rows, int64_t n, const uint64_t *keys, int64_t units, int64_t *at) {
    pli_hogwild_rows_find(rows, n, keys, at);
    int64_t missing = 0;
    while (missing < n && at[missing] >= 0) missing++;
    if (missing == n) return true;
    pthread_mutex_lock(&rows->lock);
    for (; missing < n; missing++)
        if (at[missing] < 0 && (at[missing] = insert(rows, keys[missing], units)) < 0) break;
    pthread_mutex_unlock(&rows->lock);
    return missing == n;
}

void pli_hogwild_rows_keys(const pli_hogwild_rows *rows, int64_t count, uint64_t *keys) {
    const struct pli_hogwild_index *index = atomic_load_explicit(&rows->index, memory_order_acquire);
    for (uint64_t i = 0; i <= index->mask; i++) {
        int64_t row = atomic_load_explicit(&index->slot[i].row_plus_1, memory_order_acquire) - 1;
        if (row >= 0 && row < count) keys[row] = atomic_load_explicit(&index->slot[i].key, memory_order_relaxed);
    }
}
