/* graph/recurrent.h - what ops over sequences [steps, batch, units] share. Sequences of a batch know nothing of each
 * other, so items are runs of a few of them: a step of eight rows is a product small enough that BLAS takes b as it
 * lies. */
#ifndef PLI_GRAPH_RECURRENT_H
#define PLI_GRAPH_RECURRENT_H

#include "graph/gemm.h"
#include "graph/lines.h"
#include "graph/ops/ops.h"

enum { PLI_ROWS_AN_ITEM = 8 };

typedef struct pli_sequences {
    int64_t steps, batch, units;
    int64_t first, rows; /* of an item */
} pli_sequences;

static inline pli_sequences pli_sequences_of(const plait_shape *h, int64_t item) {
    pli_sequences s = { .steps = h->dim[0], .batch = h->dim[1], .units = h->dim[2], .first = item * PLI_ROWS_AN_ITEM };
    s.rows = s.batch - s.first < PLI_ROWS_AN_ITEM ? s.batch - s.first : PLI_ROWS_AN_ITEM;
    return s;
}

static inline int64_t pli_sequences_items(int64_t batch) { return (batch + PLI_ROWS_AN_ITEM - 1) / PLI_ROWS_AN_ITEM; }

#endif
