/* See placement.h. */
#include "table/state/placement.h"

#include <string.h>

static int32_t dense_shards(int64_t rows, int64_t row_bytes, int32_t servers) {
    int64_t rows_min = row_bytes >= PLI_SHARD_BYTES_MIN ? 1 : (PLI_SHARD_BYTES_MIN + row_bytes - 1) / row_bytes;
    int64_t shards = rows / rows_min;
    return shards < 1 ? 1 : shards > servers ? servers : (int32_t)shards;
}

pli_placement pli_placement_make(int64_t rows, int64_t row_bytes, int32_t most_shards, int32_t servers,
                                 int32_t first_rank) {
    pli_placement p = { .servers = servers, .first_rank = first_rank, .rows = rows };
    p.shards = most_shards == 1 ? 1 : rows == 0 ? servers : dense_shards(rows, row_bytes, servers);
    if (most_shards > 0 && p.shards > most_shards) p.shards = most_shards;
    uint64_t shape = pli_hash_u64((uint64_t)rows * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)row_bytes);
    p.first = p.shards == servers ? 0 : (int32_t)(shape % (uint64_t)servers);
    p.quotient = rows / p.shards;
    p.longer = rows % p.shards;
    return p;
}

void pli_placement_range(const pli_placement *p, int32_t shard, int64_t *first_out, int64_t *n_out) {
    int64_t before = shard < p->longer ? shard : p->longer;
    *first_out = shard * p->quotient + before;
    *n_out = p->quotient + (shard < p->longer ? 1 : 0);
}

static void shards_by_hash(uint64_t shards, int64_t n, const uint64_t *keys, uint16_t *out) {
    for (int64_t i = 0; i < n; i++) out[i] = (uint16_t)(((pli_hash_u64(keys[i]) >> 32) * shards) >> 32);
}

static void shards_by_range(const pli_placement *p, int64_t n, const uint64_t *keys, uint16_t *out) {
    const uint64_t q = (uint64_t)p->quotient, longer = (uint64_t)p->longer, border = longer * (q + 1);
    for (int64_t i = 0; i < n; i++)
        out[i] = (uint16_t)(keys[i] < border ? keys[i] / (q + 1) : longer + (keys[i] - border) / q);
}

void pli_placement_shards(const pli_placement *p, int64_t n, const uint64_t *keys, uint16_t *out) {
    if (p->shards == 1) memset(out, 0, (size_t)n * sizeof *out);
    else if (p->rows == 0) shards_by_hash((uint64_t)p->shards, n, keys, out);
    else shards_by_range(p, n, keys, out);
}
