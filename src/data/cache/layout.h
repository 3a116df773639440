/* data/cache/layout.h - the pieces of a cache's file, which cache.h draws; for this folder only. */
#ifndef PLI_DATA_CACHE_LAYOUT_H
#define PLI_DATA_CACHE_LAYOUT_H

#include "data/cache/cache.h"

enum { PLI_CACHE_VERSION = 2, PLI_CACHE_ALIGN = 64, PLI_CACHE_ARRAYS = 6, PLI_CACHE_MAGIC = 8 };

static const char pli_cache_magic[PLI_CACHE_MAGIC] = { 'P', 'L', 'A', 'I', 'T', 'B', 'L', 'K' };

typedef struct pli_cache_trailer {
    char     magic[PLI_CACHE_MAGIC];
    uint64_t version, stamp, fingerprint, index_at, index_bytes, index_hash, n_blocks;
} pli_cache_trailer;

_Static_assert(sizeof(pli_cache_trailer) == 64, "the trailer is 64 bytes");

/* Begins the index; the schema's text, the segments, their rows and the blocks follow, each at a multiple of 8. */
typedef struct pli_cache_index {
    uint64_t schema_bytes, segments, blocks;
} pli_cache_index;

typedef struct pli_cache_record {
    int64_t  number, first_row, rows, entries;
    uint64_t at[PLI_CACHE_ARRAYS]; /* row_start, col, key, value, label, weight; 0: none */
    uint64_t hash;
} pli_cache_record;

/* For each array: bytes of an item; items beyond the count; whether it has one item for each row, not for each
 * entry. */
static const struct {
    size_t bytes, more, by_row;
} pli_cache_fields[PLI_CACHE_ARRAYS] = { { 8, 1, 1 }, { 4, 0, 0 }, { 8, 0, 0 }, { 4, 0, 0 }, { 8, 0, 1 }, { 4, 0, 1 } };

static inline uint64_t pli_cache_count(const pli_cache_record *r, int k) {
    return (uint64_t)(pli_cache_fields[k].by_row ? r->rows : r->entries) + pli_cache_fields[k].more;
}

/** The hash of the index and of the trailer's other fields. */
static inline uint64_t pli_cache_index_hash(const pli_cache_trailer *t, const void *index) {
    pli_cache_trailer said = *t;
    said.index_hash = 0;
    return pli_hash_bytes(index, t->index_bytes, pli_hash_bytes(&said, sizeof said, 0));
}

#endif
