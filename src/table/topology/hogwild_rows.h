/* topology/hogwild_rows.h - the rows of a sparse table that several threads use at once: from key to row without a
 * lock for what is there, with a small lock to insert.
 *
 * Open addressing; a slot's key is written before its row, so who sees the row (acquire) sees the key. When the index
 * grows, a larger one is filled and published; the old ones stay until the end, since somebody may still read them
 * (together they are no larger than the newest). Rows never move: chunk c holds FIRST << c of them. */
#ifndef PLI_TABLE_HOGWILD_ROWS_H
#define PLI_TABLE_HOGWILD_ROWS_H

#include <pthread.h>

#include "table/state/store.h"

enum { PLI_HOGWILD_FIRST_LOG2 = 12, PLI_HOGWILD_CHUNKS = 48 };

struct pli_hogwild_index;

typedef struct pli_hogwild_rows {
    const pli_spec *spec; /* borrowed */
    _Atomic(struct pli_hogwild_index *) index; /* release by who grows it, pairs with the acquire of who looks up */
    _Atomic int64_t n;                         /* rows in use; written under the lock                             */
    pli_chunk       chunk[PLI_HOGWILD_CHUNKS]; /* [c] is written once, before a row of it is published           */
    pthread_mutex_t lock;                      /* to insert                                                       */
} pli_hogwild_rows;

bool pli_hogwild_rows_open(pli_hogwild_rows *rows, const pli_spec *spec);
void pli_hogwild_rows_close(pli_hogwild_rows *rows);
/** Fetches the places in the index where keys [n] will be looked for. */
void pli_hogwild_rows_ahead(const pli_hogwild_rows *rows, int64_t n, const uint64_t *keys);
/** at [n] receives each key's row, or -1. Any thread. */
void pli_hogwild_rows_find(const pli_hogwild_rows *rows, int64_t n, const uint64_t *keys, int64_t *at);
/** The same, and adds keys that are new; a new row owes nothing before `units`. false: out of memory. Any thread. */
bool pli_hogwild_rows_add(pli_hogwild_rows *rows, int64_t n, const uint64_t *keys, int64_t units, int64_t *at);
/** keys [count] of the first rows. Nobody inserts meanwhile. */
void pli_hogwild_rows_keys(const pli_hogwild_rows *rows, int64_t count, uint64_t *keys);

static inline int pli_hogwild_chunk_of(int64_t row, int64_t *within_out) {
    uint64_t shifted = (uint64_t)row + (UINT64_C(1) << PLI_HOGWILD_FIRST_LOG2);
    int      c = 63 - __builtin_clzll(shifted) - PLI_HOGWILD_FIRST_LOG2;
    *within_out = (int64_t)(shifted - (UINT64_C(1) << (c + PLI_HOGWILD_FIRST_LOG2)));
    return c;
}

#endif
