/* vertex/async/queue.h - vertices that wait to be updated, each at most once, and which comes next.
 *
 *     fifo      the one that has waited longest
 *     priority  the one whose neighbors have changed most since its last update: a heap
 *     sweep     the next higher number, round and round: a bitmap
 *
 * Paper: Low et al., "GraphLab: A New Framework for Parallel Machine Learning", UAI 2010, section 3.4 (schedulers). */
#ifndef PLI_VERTEX_QUEUE_H
#define PLI_VERTEX_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <plait/status.h>

typedef enum pli_queue_order { PLI_QUEUE_FIFO, PLI_QUEUE_PRIORITY, PLI_QUEUE_SWEEP } pli_queue_order;

typedef struct pli_queue {
    pli_queue_order order;
    int64_t         n, size; /* vertices 0 .. n - 1; how many wait */
    int64_t         head;    /* fifo: of the ring; sweep: where to look next */
    int64_t        *item;    /* [n] fifo: a ring; priority: a heap */
    int64_t        *at;      /* [n] priority: place in the heap; -1: it does not wait */
    double         *weight;  /* [n] priority: added up while it waits */
    uint64_t       *waits;   /* [(n + 63) / 64] a bit a vertex */
} pli_queue;

/** NULL: fifo. Errors: ENAME. */
plait_status pli_queue_find(const char *name, pli_queue_order *order_out, plait_error *err);
bool         pli_queue_init(pli_queue *q, pli_queue_order order, int64_t n); /* false: no memory */
void         pli_queue_destroy(pli_queue *q);
/** v waits, if it does not yet; weight >= 0 is added to what it has. */
void         pli_queue_push(pli_queue *q, int64_t v, double weight);
int64_t      pli_queue_pop(pli_queue *q); /* -1: none waits */
static inline bool pli_queue_has(const pli_queue *q, int64_t v) { return q->waits[v / 64] >> (v % 64) & 1; }

#endif
