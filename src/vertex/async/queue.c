/* Which vertex comes next. See queue.h. */
#include "vertex/async/queue.h"

#include "base/base.h"

plait_status pli_queue_find(const char *name, pli_queue_order *order_out, plait_error *err) {
    static const char *const names[] = { "fifo", "priority", "sweep" };
    *order_out = PLI_QUEUE_FIFO;
    if (name == NULL) return PLAIT_OK;
    for (int i = 0; i < 3; i++) {
        if (!pli_is(name, names[i])) continue;
        *order_out = (pli_queue_order)i;
        return PLAIT_OK;
    }
    return pli_fail_unknown(err, "order of vertices", name, names, 3);
}

bool pli_queue_init(pli_queue *q, pli_queue_order order, int64_t n) {
    *q = (pli_queue){ .order = order, .n = n };
    q->waits = pli_calloc((size_t)(n + 63) / 64 + 1, sizeof *q->waits);
    if (order != PLI_QUEUE_SWEEP) q->item = pli_array((size_t)n, sizeof *q->item);
    if (order == PLI_QUEUE_PRIORITY) {
        q->at = pli_array((size_t)n, sizeof *q->at);
        q->weight = pli_calloc((size_t)n, sizeof *q->weight);
    }
    const bool listed = order == PLI_QUEUE_SWEEP || q->item != NULL,
               weighed = order != PLI_QUEUE_PRIORITY || (q->at != NULL && q->weight != NULL);
    if (q->waits != NULL && listed && weighed) return true;
    pli_queue_destroy(q);
    return false;
}

void pli_queue_destroy(pli_queue *q) {
    pli_free(q->item);
    pli_free(q->at);
    pli_free(q->weight);
    pli_free(q->waits);
    *q = (pli_queue){ 0 };
}

/* --- the heap ----------------------------------------------------------------------------------------------------- */

/* The lower number of equal weights comes first, so that a run does not depend on the heap's history. */
static bool before(const pli_queue *q, int64_t a, int64_t b) {
    return q->weight[a] > q->weight[b] || (q->weight[a] == q->weight[b] && a < b);
}

static void put(pli_queue *q, int64_t place, int64_t v) {
    q->item[place] = v;
    q->at[v] = place;
}

static void rise(pli_queue *q, int64_t v) {
    int64_t place = q->at[v];
    while (place > 0 && before(q, v, q->item[(place - 1) / 2])) {
        put(q, place, q->item[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(q, place, v);
}

static void sink(pli_queue *q, int64_t v) {
    int64_t place = q->at[v];
    for (int64_t child; (child = 2 * place + 1) < q->size; place = child) {
        if (child + 1 < q->size && before(q, q->item[child + 1], q->item[child])) child++;
        if (!before(q, q->item[child], v)) break;
        put(q, place, q->item[child]);
    }
    put(q, place, v);
}

/* --- all orders --------------------------------------------------------------------------------------------------- */

void pli_queue_push(pli_queue *q, int64_t v, double weight) {
    const bool waited = pli_queue_has(q, v);
    q->waits[v / 64] |= UINT64_C(1) << (v % 64);
    if (q->order == PLI_QUEUE_PRIORITY) {
        q->weight[v] += weight;
        if (!waited) put(q, q->size, v);
    } else if (q->order == PLI_QUEUE_FIFO && !waited) {
        q->item[(q->head + q->size) % q->n] = v;
    }
    q->size += !waited;
    if (q->order == PLI_QUEUE_PRIORITY) rise(q, v);
}

static int64_t next_waiting(pli_queue *q) {
    const int64_t words = (q->n + 63) / 64;
    int64_t       word = q->head / 64;
    uint64_t      bits = q->waits[word] & (~UINT64_C(0) << (q->head % 64));
    for (int64_t looked = 0; bits == 0 && looked <= words; looked++) {
        word = (word + 1) % words;
        bits = q->waits[word];
    }
    return 64 * word + __builtin_ctzll(bits);
}

static int64_t pop_heap(pli_queue *q) {
    const int64_t v = q->item[0], last = q->item[q->size - 1];
    q->at[v] = -1;
    q->weight[v] = 0;
    q->size--;
    if (q->size > 0) {
        put(q, 0, last);
        sink(q, last);
    }
    return v;
}

int64_t pli_queue_pop(pli_queue *q) {
    int64_t v;
    if (q->size == 0) return -1;
    if (q->order == PLI_QUEUE_PRIORITY) {
        v = pop_heap(q);
    } else {
        v = q->order == PLI_QUEUE_FIFO ? q->item[q->head] : next_waiting(q);
        q->head = (q->order == PLI_QUEUE_FIFO ? q->head + 1 : v + 1) % q->n;
        q->size--;
    }
    q->waits[v / 64] &= ~(UINT64_C(1) << (v % 64));
    return v;
}
