/* The steps of each collective, as a pure function; the head of collective.h names the papers. A reduction's steps
 * are in its form. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "comm/forms/forms.h"
#include "comm/group.h"

static const char *of_tables(const pli_coll *call) { return call->root == PLI_COLL_OF_TABLES ? ", of tables" : ""; }

static void tell_kind(const pli_coll *call, char *text, size_t bytes) {
    switch (call->kind) {
    case PLI_COLL_BARRIER: snprintf(text, bytes, "barrier"); return;
    case PLI_ALLREDUCE:
    case PLI_REDUCE_SCATTER:
        snprintf(text, bytes, "%s of %lld %s (%s)%s%s%s%s",
                 call->kind == PLI_ALLREDUCE ? "allreduce" : "reduce-scatter", (long long)call->n,
                 pli_type_name(call->type), pli_op_name(call->type, call->op), call->form != NULL ? " by " : "",
                 call->form != NULL ? call->form->name : "", call->begun ? ", begun" : "", of_tables(call));
        return;
    case PLI_BROADCAST:
        snprintf(text, bytes, "broadcast of %lld bytes from rank %d", (long long)call->n,
                 pli_numbers_rank(pli_group_numbers(call->group), call->root));
        return;
    case PLI_ALLGATHER: snprintf(text, bytes, "allgather of %lld bytes", (long long)call->n); return;
    case PLI_PIECES: snprintf(text, bytes, "allgather of pieces, begun%s", of_tables(call)); return;
    case PLI_EXCHANGE: snprintf(text, bytes, "exchange of pieces, begun%s", of_tables(call)); return;
    }
    snprintf(text, bytes, "unknown collective %d", (int)call->kind);
}

void pli_coll_tell(const pli_coll *call, char *text, size_t bytes) {
    tell_kind(call, text, bytes);
    size_t at = strlen(text);
    if (call->group != NULL) snprintf(text + at, bytes - at, " of group %s", plait_group_name(call->group));
}

plait_status pli_coll_missed(const pli_coll *call, int32_t rank, plait_error *err) {
    char what[PLI_COLL_TEXT];
    pli_coll_tell(call, what, sizeof what);
    plait_status status = pli_fail(err, PLAIT_EPEER, "%s: rank %d has left without taking part", what, rank);
    if (err != NULL) err->rank = rank;
    return status;
}

/* In round i each worker tells the worker 2^i further on: after ceil(log2 W) rounds each has heard of all. */
static bool barrier_step(int32_t me, int32_t workers, int64_t i, pli_coll_move *s) {
    if (i > 30 || ((int64_t)1 << i) >= workers) return false;
    int64_t far = (int64_t)1 << i;
    s->to = (int32_t)((me + far) % workers);
    s->from = (int32_t)((me - far + workers) % workers);
    return true;
}

static uint32_t power_of_two_from(uint32_t n) { /* the smallest power >= n */
    uint32_t p = 1;
    while (p < n) p <<= 1;
    return p;
}

/* Counting from the root, v's parent is v without its lowest bit; its children are v plus each bit below that. */
static bool broadcast_step(const pli_coll *c, int32_t me, int32_t workers, int64_t i, pli_coll_move *s) {
    uint32_t v = (uint32_t)((me - c->root + workers) % workers);
    uint32_t bit = v == 0 ? power_of_two_from((uint32_t)workers) : v & -v; /* children are v plus lower bits only */
    if (v != 0) {
        if (i == 0) {
            s->from = (int32_t)(((v & (v - 1)) + (uint32_t)c->root) % (uint32_t)workers);
            s->recv_bytes = (size_t)c->n;
            return true;
        }
        i--;
    }
    bit = i < 32 ? bit >> (i + 1) : 0;
    if (bit == 0) return false;
    if (v + bit < (uint32_t)workers) {
        s->to = (int32_t)((v + bit + (uint32_t)c->root) % (uint32_t)workers);
        s->send_bytes = (size_t)c->n;
    }
    return true;
}

size_t pli_coll_slice_at(const pli_coll *c, int32_t slice, int32_t slices) {
    return (size_t)pli_slice_first(c->n, slice, slices) * pli_type_bytes(c->type);
}

static size_t piece_at(const pli_coll *c, int32_t piece) {
    return c->starts != NULL ? c->starts[piece] : (size_t)piece * (size_t)c->n;
}

static int32_t wrapped(int64_t rank, int32_t workers) {
    int64_t r = rank % workers;
    return (int32_t)(r < 0 ? r + workers : r);
}

/* The `count` pieces that end with worker's own piece: the part up to the buffer's end or, with wrap, the part that
 * wraps around to it. */
static bool pieces_of(const pli_coll *c, int32_t worker, int32_t workers, int32_t count, bool wrap, size_t *at,
                      size_t *bytes) {
    int32_t first = worker - count + 1, from = wrap ? first + workers : first > 0 ? first : 0;
    if (wrap && first >= 0) return false;
    *at = piece_at(c, from);
    *bytes = piece_at(c, wrap ? workers : worker + 1) - *at;
    return true;
}

/* In round i each worker sends the last 2^i pieces, up to its own, to the worker 2^i further on, as far as that one
 * lacks them. There are ceil(log2 W) rounds of two steps, since pieces that wrap around the buffer's end are two
 * messages. */
static bool allgather_step(const pli_coll *c, int32_t me, int32_t workers, int64_t i, pli_coll_move *s) {
    if (i / 2 > 30 || (INT64_C(1) << i / 2) >= workers) return false;
    int32_t far = (int32_t)1 << i / 2, count = far < workers - far ? far : workers - far;
    int32_t to = wrapped((int64_t)me + far, workers), from = wrapped((int64_t)me - far, workers);
    if (pieces_of(c, me, workers, count, i % 2 != 0, &s->send_at, &s->send_bytes)) s->to = to;
    if (pieces_of(c, from, workers, count, i % 2 != 0, &s->recv_at, &s->recv_bytes)) s->from = from;
    return true;
}

/* Step i gets the piece of the worker i + 1 before, in the rounds of allgather_step: it comes from the worker 2^k
 * before, which has it by then. */
static bool pieces_step(int32_t me, int32_t workers, int64_t i, pli_coll_move *s) {
    if (i >= (int64_t)workers - 1) return false;
    int64_t far = 1;
    while (far * 2 <= i + 1) far *= 2;
    s->to = wrapped(me + far, workers);
    s->from = wrapped(me - far, workers);
    s->send_at = (size_t)wrapped(me - (i + 1 - far), workers);
    s->recv_at = (size_t)wrapped(me - (i + 1), workers);
    return true;
}

/* In step i each worker sends to the worker i + 1 further on, if that is a neighbour. */
static bool exchange_step(const pli_coll *c, int32_t me, int32_t workers, int64_t i, pli_coll_move *s) {
    if (i >= (int64_t)workers - 1) return false;
    s->to = wrapped(me + i + 1, workers);
    s->from = wrapped(me - i - 1, workers);
    s->send_at = (size_t)workers + (size_t)s->to;
    s->recv_at = (size_t)s->from;
    if (c->hears != NULL && c->piece[s->send_at] == NULL) s->to = -1;
    if (c->hears != NULL && !c->hears[s->from]) s->from = -1;
    return true;
}

bool pli_coll_step(const pli_coll *call, int32_t me, int32_t workers, int64_t i, pli_coll_move *s) {
    *s = (pli_coll_move){ .to = -1, .from = -1 };
    if (workers == 1) return false;
    if (call->meet) return barrier_step(me, workers, i, s);
    switch (call->kind) {
    case PLI_COLL_BARRIER: return barrier_step(me, workers, i, s);
    case PLI_BROADCAST: return broadcast_step(call, me, workers, i, s);
    case PLI_ALLGATHER: return allgather_step(call, me, workers, i, s);
    case PLI_PIECES: return pieces_step(me, workers, i, s);
    case PLI_EXCHANGE: return exchange_step(call, me, workers, i, s);
    case PLI_ALLREDUCE:
        if (i >= call->form->steps(call, workers)) return false;
        call->form->step(call, me, workers, i, s);
        return true;
    case PLI_REDUCE_SCATTER:
        if (i >= call->form->scatter_steps(workers)) return false;
        call->form->scatter_step(call, me, workers, i, s);
        return true;
    }
    return false;
}

uint64_t pli_coll_bytes(const pli_coll *call, int32_t me, int32_t workers) {
    uint64_t      bytes = 0;
    pli_coll_move s;
    for (int64_t i = 0; pli_coll_step(call, me, workers, i, &s); i++)
        if (s.to >= 0) bytes += sizeof(pli_head) + s.send_bytes;
    return bytes;
}
