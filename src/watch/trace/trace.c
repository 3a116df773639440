/* The sink of a trace: each (rank, thread) writes to its own chunks, and only the budget is shared. See trace.h. */
#include "watch/trace/trace.h"

#include <stdatomic.h>
#include <string.h>

#include "watch/eventcode.h"

enum { CHUNK_MIN = 1 << 12, CHUNK_MAX = 1 << 16 };

typedef struct chunk {
    struct chunk *next;
    size_t        used, capacity;
    unsigned char bytes[];
} chunk;

typedef struct track {
    _Alignas(64) chunk *first, *last; /* written only by the caller that reports the thread's spans */
    uint64_t dropped, end_ns;         /* end_ns: of the last span */
    size_t   bytes;
} track;

struct pli_trace {
    pli_span_sink  sink;
    int32_t        ranks, threads;
    track         *track; /* [ranks, threads] */
    _Atomic size_t left;  /* bytes left of the budget; relaxed: it publishes nothing */
};

static bool take_from_budget(pli_trace *trace, size_t bytes) {
    size_t left = atomic_load_explicit(&trace->left, memory_order_relaxed);
    while (left >= bytes)
        if (atomic_compare_exchange_weak_explicit(&trace->left, &left, left - bytes, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

/* Makes room for so many bytes at the track's end; NULL: the budget is spent. */
static chunk *reserve(pli_trace *trace, track *t, size_t bytes) {
    chunk *last = t->last;
    if (last != NULL && last->capacity - last->used >= bytes) return last;
    size_t capacity = last == NULL ? CHUNK_MIN : last->capacity < CHUNK_MAX ? 2 * last->capacity : CHUNK_MAX;
    if (!take_from_budget(trace, capacity + sizeof *last)) return NULL;
    chunk *more = pli_malloc(sizeof *more + capacity);
    if (more == NULL) return NULL;
    *more = (chunk){ .capacity = capacity };
    if (last != NULL) last->next = more;
    else t->first = more;
    return t->last = more;
}

static unsigned char *put_text(unsigned char *at, const char *text, size_t length) {
    memcpy(at, text, length);
    return at + length;
}

static void take(void *user, const pli_span *span) {
    pli_trace *trace = user;
    if (span->rank < 0 || span->rank >= trace->ranks || span->thread < 0 || span->thread >= trace->threads) return;
    track       *t = &trace->track[(int64_t)span->rank * trace->threads + span->thread];
    const size_t name = strnlen(span->name, PLI_TRACE_NAME_MAX);
    const size_t detail = span->detail == NULL ? 0 : strnlen(span->detail, PLI_TRACE_DETAIL_MAX);
    /* after the first dropped span all are dropped, so a track has its whole beginning, and no holes */
    chunk *to = t->dropped > 0 ? NULL : reserve(trace, t, 48 + name + detail);
    if (to == NULL) {
        t->dropped++;
        return;
    }
    unsigned char *begin = to->bytes + to->used, *at = begin;
    *at++ = (unsigned char)span->kind;
    at = pli_put_varint(at, pli_zigzag((int64_t)(span->begin_ns - t->end_ns)));
    at = pli_put_varint(at, span->end_ns - span->begin_ns);
    at = pli_put_varint(at, (uint64_t)(span->number + 1));
    *at++ = (unsigned char)name;
    at = put_text(at, span->name, name);
    at = pli_put_varint(at, detail);
    if (detail > 0) at = put_text(at, span->detail, detail);
    to->used += (size_t)(at - begin);
    t->bytes += (size_t)(at - begin);
    t->end_ns = span->end_ns;
}

plait_status pli_trace_create(int32_t ranks, int32_t threads, size_t budget_bytes, pli_trace **trace_out,
                              plait_error *err) {
    pli_trace   *trace = pli_calloc(1, sizeof *trace);
    const size_t bytes = (size_t)ranks * (size_t)threads * sizeof(track);
    if (trace != NULL) trace->track = pli_aligned(bytes);
    if (trace == NULL || trace->track == NULL) {
        pli_free(trace);
        return pli_fail(err, PLAIT_ENOMEM, "trace: no memory for %d ranks of %d threads", ranks, threads);
    }
    memset(trace->track, 0, bytes);
    trace->sink = (pli_span_sink){ .take = take, .user = trace };
    trace->ranks = ranks;
    trace->threads = threads;
    atomic_init(&trace->left, budget_bytes);
    *trace_out = trace;
    return PLAIT_OK;
}

void pli_trace_destroy(pli_trace **trace_ptr) {
    pli_trace *trace = *trace_ptr;
    *trace_ptr = NULL;
    if (trace == NULL) return;
    for (int64_t i = 0; i < (int64_t)trace->ranks * trace->threads; i++)
        for (chunk *c = trace->track[i].first, *next; c != NULL; c = next) {
            next = c->next;
            pli_free(c);
        }
    pli_free(trace->track);
    pli_free(trace);
}

const pli_span_sink *pli_trace_sink(const pli_trace *trace) { return &trace->sink; }

void pli_trace_pack_rank(const pli_trace_rank *rank, pli_text *packed) {
    unsigned char head[32 + sizeof rank->host], *at = head;
    const size_t  length = strnlen(rank->host, sizeof rank->host - 1);
    at = pli_put_varint(at, PLI_TRACE_VERSION);
    at = pli_put_varint(at, (uint64_t)rank->pid);
    at = pli_put_varint(at, pli_zigzag(rank->shift_ns));
    *at++ = rank->server;
    *at++ = (unsigned char)length;
    at = put_text(at, rank->host, length);
    pli_text_add_bytes(packed, head, (size_t)(at - head));
}

void pli_trace_pack(const pli_trace *trace, int32_t rank, pli_text *packed) {
    for (int32_t thread = 0; thread < trace->threads; thread++) {
        const track  *t = &trace->track[(int64_t)rank * trace->threads + thread];
        unsigned char head[30], *at = head;
        if (t->bytes == 0 && t->dropped == 0) continue;
        at = pli_put_varint(at, (uint64_t)thread);
        at = pli_put_varint(at, t->dropped);
        at = pli_put_varint(at, t->bytes);
        pli_text_add_bytes(packed, head, (size_t)(at - head));
        for (const chunk *c = t->first; c != NULL; c = c->next) pli_text_add_bytes(packed, c->bytes, c->used);
    }
}
