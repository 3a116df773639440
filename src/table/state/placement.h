/* table/state/placement.h - which server owns which rows.
 *
 * Servers are the ranks that hold shards: the job's server ranks where it has some, else the workers' own. A dense
 * table is cut into contiguous ranges whose numbers of rows differ by at most one, of at least 4 KiB of values each,
 * and not in more than its options say. If it has fewer shards than there are servers, its shape chooses the first
 * server. So small tables spread, and tables of equal shape, which a server function may see side by side, have the
 * same servers. A sparse table has a shard on every server, and a key's shard comes from its hash's upper bits (the
 * lower ones choose the slot in the shard's own map; using them twice would crowd that map). A local table has one
 * shard. */
#ifndef PLI_TABLE_PLACEMENT_H
#define PLI_TABLE_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

enum { PLI_SHARD_BYTES_MIN = 4096 };

typedef struct pli_placement {
    int32_t servers, first_rank; /* server s is rank first_rank + s                     */
    int32_t shards, first;       /* shard i lies on server (first + i) mod servers      */
    int64_t rows;                /* dense; 0: sparse                                    */
    int64_t quotient, longer;    /* dense: the first `longer` shards have one row more  */
} pli_placement;

/** row_bytes: of a row's values. most_shards: 0: no bound. */
pli_placement pli_placement_make(int64_t rows, int64_t row_bytes, int32_t most_shards, int32_t servers,
                                 int32_t first_rank);

/** Dense: shard i has the rows [first, first + n). */
void pli_placement_range(const pli_placement *placement, int32_t shard, int64_t *first_out, int64_t *n_out);

static inline int32_t pli_placement_rank(const pli_placement *p, int32_t shard) {
    return p->first_rank + (p->first + shard) % p->servers;
}

/** The shard of `table` that lies on this rank, or -1. At most one shard of a table lies on a server. */
static inline int32_t pli_placement_shard_at(const pli_placement *p, int32_t rank) {
    int32_t server = rank - p->first_rank;
    if (server < 0 || server >= p->servers) return -1;
    int32_t shard = (server - p->first + p->servers) % p->servers;
    return shard < p->shards ? shard : -1;
}

/** The shards of keys [n]. */
void pli_placement_shards(const pli_placement *placement, int64_t n, const uint64_t *keys, uint16_t *shards_out);

static inline int32_t pli_placement_shard_of(const pli_placement *p, uint64_t key) {
    uint16_t shard;
    pli_placement_shards(p, 1, &key, &shard);
    return shard;
}

#endif
