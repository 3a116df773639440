/* graph/recurrent.h - what ops over sequences [steps, batch, units] share. The sequences of a batch are independent, so
 * an item is a few of them. Each item packs the recurrent weights once, before the first step. */
#ifndef PLI_GRAPH_RECURRENT_H
#define PLI_GRAPH_RECURRENT_H

#include "tensor/gemm/gemm.h"
#include "graph/lines.h"
#include "graph/ops/ops.h"

/* Sequences of an item. Eight keep the processor's adders busy; for a large batch there are more, so that the weights,
 * which may not fit a cache, are read less often. */
static inline int64_t pli_sequences_each(int64_t batch) { return batch < 64 ? 8 : batch < 128 ? 16 : 32; }

typedef struct pli_sequences {
    int64_t steps, batch, units;
    int64_t first, rows; /* the item's sequences */
} pli_sequences;

static inline pli_sequences pli_sequences_of(const plait_shape *h, int64_t item) {
    const int64_t each = pli_sequences_each(h->dim[1]);
    pli_sequences s = { .steps = h->dim[0], .batch = h->dim[1], .units = h->dim[2], .first = item * each };
    s.rows = s.batch - s.first < each ? s.batch - s.first : each;
    return s;
}

/* Bytes of an item's scratch: the packed weights [k, n], followed by `beside` floats for each sequence. */
static inline size_t pli_sequences_scratch(int64_t batch, int64_t n, int64_t k, int64_t beside) {
    return sizeof(float) * (pli_gemm_packed_floats(n, k) + (size_t)(pli_sequences_each(batch) * beside));
}

static inline int64_t pli_sequences_items(int64_t batch) {
    return (batch + pli_sequences_each(batch) - 1) / pli_sequences_each(batch);
}

#endif
