/* Sparse rows: a keymap from key to row number, rows in chunks that stay where they are. See store.h. */
#include <string.h>

#include "table/state/snap.h"
#include "table/state/store.h"
#include "table/state/values.h"

/* Rows in a chunk: about 256 KiB of values, at least 16 rows. */
static int shift_for(int64_t row_bytes) {
    int shift = 16;
    while (shift > 4 && (row_bytes << shift) > 256 << 10) shift--;
    return shift;
}

plait_status pli_store_open_sparse(pli_store *store, const pli_spec *spec, plait_error *err) {
    (void)err;
    *store = (pli_store){ .spec = spec, .shift = shift_for(pli_row_bytes(spec)),
                          .here = PLI_ALL_HERE, .per_clock = 1, .first = -1 };
    store->mask = (INT64_C(1) << store->shift) - 1;
    pli_keymap_init(&store->map);
    return PLAIT_OK;
}

static void chunk_free(pli_chunk *chunk) {
    pli_free(chunk->values);
    for (int32_t k = 0; k < PLI_RULE_SLOTS_MAX; k++) pli_free(chunk->slot[k]);
    pli_free(chunk->paid);
    pli_free(chunk->stamp);
}

static void *zeroed(size_t bytes) {
    void *memory = pli_aligned(bytes);
    return memory == NULL ? NULL : memset(memory, 0, bytes);
}

static bool chunk_make(const pli_store *store, pli_chunk *chunk) {
    const pli_spec *spec = store->spec;
    int64_t         rows = store->mask + 1;
    size_t          bytes = (size_t)(rows * pli_row_bytes(spec));
    *chunk = (pli_chunk){ .values = pli_aligned(bytes) };
    bool made = chunk->values != NULL;
    if (made) pli_merge_clear(spec->merge, rows * spec->cols, chunk->values);
    for (int32_t k = 0; spec->ruled && k < spec->rule.ops->slots; k++)
        made = (chunk->slot[k] = zeroed(bytes)) != NULL && made;
    if (spec->lazy) made = (chunk->paid = pli_calloc((size_t)rows, sizeof *chunk->paid)) != NULL && made;
    if (!made) chunk_free(chunk);
    return made;
}

static bool grow(pli_store *store, int64_t rows) {
    int64_t chunks = (rows + store->mask) >> store->shift;
    if (!pli_grow((void **)&store->chunk, &store->chunks_capacity, chunks, sizeof *store->chunk)) return false;
    for (; store->chunks < chunks; store->chunks++)
        if (!chunk_make(store, &store->chunk[store->chunks])) return false;
    return true;
}

/* A new row owes nothing for the time before it, when it was zero. */
static void start_paid(pli_store *store, int64_t from, int64_t to) {
    for (int64_t row = from; row < to; row++)
        store->chunk[row >> store->shift].paid[row & store->mask] = store->units;
}

bool pli_store_take_rows(pli_store *store, int64_t n, const uint64_t *keys, int64_t *rows) {
    if (!grow(store, store->map.n + n)) return false; /* first, so that every row in the map has its chunk */
    bool added = pli_keymap_add_all(&store->map, n, keys, rows);
    if (store->spec->lazy) start_paid(store, store->rows, store->map.n);
    store->rows = store->map.n;
    return added;
}

bool pli_store_add_rows(pli_store *store, int64_t n, const uint64_t *keys, int64_t *rows) {
    if (!pli_store_lacks_rows(store)) return pli_store_take_rows(store, n, keys, rows);
    pli_keymap_find_all(&store->map, n, keys, rows);
    return true;
}

bool pli_store_zero_sparse(pli_store *store) {
    if (store->snap != NULL && !pli_snap_keep_all(store->snap)) return false;
    pli_store_sparse_close(store);
    pli_keymap_init(&store->map);
    store->rows = store->chunks = 0;
    if (pli_store_lacks_rows(store)) store->here = 0;
    return true;
}

void pli_store_sparse_close(pli_store *store) {
    for (int64_t i = 0; i < store->chunks; i++) chunk_free(&store->chunk[i]);
    pli_keymap_destroy(&store->map);
}
