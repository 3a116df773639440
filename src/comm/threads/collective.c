/* Collectives in shared memory. Each worker writes its call into its slot and arrives; the last to arrive rings all
 * others.
 *
 * Small data lies in the slots, and every worker takes what it needs: one meeting. Large data stays where it is: after
 * the first meeting worker r reduces slice r of all buffers and writes it into all of them (or copies what it needs),
 * and a second meeting ends the call. Both add in the order of ranks, so the bits do not depend on size, and are the
 * same for all; exact sums take all workers' terms at once. Calls that are begun and waited for later go by messages
 * instead, which their sender's thread takes in: in shared memory a worker that computes would hold up all others until
 * it waits itself.
 *
 * Invariants:
 *   1. Slots of call g are read only after all have arrived at g. They are written next at call g + 2, that is after
 *   all have arrived at g + 1 and so are done with g.
 *   2. `in` counts arrivals until a worker that gives up breaks it, once; from then on it stands still. So in >= g *
 *   workers says that call g is complete, and stays true.
 *   3. Others touch a worker's buffer only while their own seat says WORKING. A worker that gives up in the second
 *   meeting first turns away all that have not begun to work and waits for those that work. */
#include <stdio.h>
#include <string.h>

#include "comm/threads/threads.h"
#include "tensor/exact.h"

#define BROKEN (UINT64_C(1) << 63)
enum { ARRIVED = 0, WORKING = 1, DONE = 2, TURNED_AWAY = 3 };
enum { BLOCK_BYTES = 16 << 10, LINE_BYTES = 64 };

/* Does the call's data travel in slots? All workers give the same answer for equal calls. */
static bool is_small(const pli_coll *call) {
    return call->kind == PLI_COLL_BARRIER || (call->starts == NULL && pli_coll_buffer_bytes(call) <= PLI_SLOT_BYTES);
}

bool pli_threads_takes(const pli_transport *t, const pli_coll *coll) {
    (void)t;
    return !coll->begun;
}

static void ring_others(const pli_transport *t, const plait_comm *comm) {
    uint64_t now_ns = pli_now_ns();
    for (int32_t r = 0; r < t->workers; r++)
        if (r != comm->rank) pli_comm_ring_since(&t->world->local[r], now_ns);
}

static void lay_out(pli_seat *seat, const plait_comm *comm, const pli_coll *call) {
    pli_slot *slot = &seat->slot[seat->started & 1];
    slot->call = *call;
    if (!is_small(call) || pli_coll_buffer_bytes(call) == 0) return;
    const unsigned char *data = call->buf;
    if (call->kind == PLI_ALLGATHER) data += (size_t)comm->rank * pli_coll_buffer_bytes(call);
    if (call->kind != PLI_BROADCAST || call->root == comm->rank) memcpy(slot->data, data, pli_coll_buffer_bytes(call));
}

plait_status pli_threads_begin(pli_transport *t, pli_call *call, plait_error *err) {
    plait_comm *comm = call->comm;
    pli_seat   *seat = &t->seat[comm->rank];
    if (call->coll.op == PLAIT_SUM_EXACT && seat->term == NULL) {
        seat->term = pli_array((size_t)t->workers, sizeof *seat->term);
        if (seat->term == NULL)
            return pli_fail(err, PLAIT_ENOMEM, "no memory for an exact sum of %d workers", t->workers);
    }
    uint64_t    g = ++seat->started, in = atomic_load(&t->in);
    lay_out(seat, comm, &call->coll);
    atomic_store(&seat->work, 4 * g + ARRIVED);
    atomic_store_explicit(&seat->arrived, g, memory_order_release);
    do
        if (in & BROKEN) return PLAIT_OK; /* the wait will fail */
    while (!atomic_compare_exchange_weak(&t->in, &in, in + 1));
    if (in + 1 == g * (uint64_t)t->workers && atomic_load(&t->resting) > 0) ring_others(t, comm);
    return PLAIT_OK;
}

/* --- meeting ------------------------------------------------------------------------------------------ */

struct meeting {
    pli_transport  *t;
    plait_comm     *comm;
    const pli_call *call;
    uint64_t        g;
};

static bool is_complete(const struct meeting *m) {
    return (atomic_load(&m->t->in) & ~BROKEN) >= m->g * (uint64_t)m->t->workers;
}

/* A worker that has ended before it came to this call, or -1. */
static int32_t who_is_gone(const struct meeting *m) {
    if (atomic_load(&m->t->world->members->n_events) == 0) return -1;
    for (int32_t r = 0; r < m->t->workers; r++)
        if (pli_world_has_ended(m->t->world, r) &&
            atomic_load_explicit(&m->t->seat[r].arrived, memory_order_acquire) < m->g)
            return r;
    return -1;
}

static bool have_met(void *arg) {
    const struct meeting *m = arg;
    return is_complete(m) || (atomic_load(&m->t->in) & BROKEN) || who_is_gone(m) >= 0;
}

static void tell_meeting(const void *arg, char *text, size_t bytes) {
    const struct meeting *m = arg;
    char                  what[96];
    pli_coll_tell(&m->call->coll, what, sizeof what);
    int32_t late = 0;
    while (late < m->t->workers && atomic_load_explicit(&m->t->seat[late].arrived, memory_order_acquire) >= m->g)
        late++;
    if (late == m->t->workers) {
        snprintf(text, bytes, "%s, which other workers have not ended yet", what);
    } else {
        snprintf(text, bytes, "%s, held up by rank %d", what, late);
    }
}

static void show_meeting(const void *arg, pli_wait *wait) {
    const struct meeting *m = arg;
    pli_comm_show_call(m->call, wait);
    wait->peer = -1;
    wait->joins = is_complete(m);
}

/* What the doctor has found holds for every worker: a worker whose call ends because another gave up reports it,
 * too. */
static void note_finding(pli_transport *t, plait_status status, const plait_error *err) {
    if (err == NULL || (status != PLAIT_EDEADLOCK && status != PLAIT_EMISMATCH)) return;
    pthread_mutex_lock(&t->finding_lock);
    if (t->finding.code == 0) t->finding = *err;
    pthread_mutex_unlock(&t->finding_lock);
}

static plait_status finding(pli_transport *t, plait_error *err) {
    pthread_mutex_lock(&t->finding_lock);
    plait_status status = t->finding.code;
    if (status < 0 && err != NULL) *err = t->finding;
    pthread_mutex_unlock(&t->finding_lock);
    return status;
}

/* This worker takes part in no further call, and so no other can complete one. false: too late, the call is
 * complete. */
static bool give_up(const struct meeting *m) {
    uint64_t in = atomic_load(&m->t->in);
    do {
        if ((in & ~BROKEN) >= m->g * (uint64_t)m->t->workers) return false;
        if (in & BROKEN) return true;
    } while (!atomic_compare_exchange_weak(&m->t->in, &in, in | BROKEN));
    ring_others(m->t, m->comm);
    return true;
}

static plait_status broken(const struct meeting *m, plait_error *err) {
    plait_status status = pli_comm_is_lost(m->comm, NULL, err);
    if (status >= 0) status = finding(m->t, err);
    if (status < 0) return status;
    return pli_fail(err, PLAIT_ECOMM, "a worker has given up waiting in an earlier collective, so no further one can "
                                      "run");
}

static plait_status meet(const struct meeting *m, const pli_reason *reason, plait_error *err) {
    plait_status status = pli_comm_watch(m->comm, &m->t->resting, have_met, (void *)m, reason, err);
    note_finding(m->t, status, err);
    if (status < 0) return give_up(m) ? status : PLAIT_OK;
    if (is_complete(m)) return PLAIT_OK;
    int32_t gone = who_is_gone(m);
    if (!give_up(m)) return PLAIT_OK;
    if (gone < 0) return broken(m, err);
    return pli_world_missed(m->comm->world, &m->call->coll, gone, err);
}

/* --- the data ------------------------------------------------------------------------------------------- */

static const pli_slot *slot_of(const struct meeting *m, int32_t worker) { return &m->t->seat[worker].slot[m->g & 1]; }

static plait_status check_calls(const struct meeting *m, plait_error *err) {
    const pli_coll *first = &slot_of(m, 0)->call;
    for (int32_t r = 1; r < m->t->workers; r++) {
        const pli_coll *c = &slot_of(m, r)->call;
        if (c->kind == first->kind && c->type == first->type && c->op == first->op && c->root == first->root &&
            c->n == first->n && (c->starts == NULL) == (first->starts == NULL))
            continue;
        char a[96], b[96];
        pli_coll_tell(c, a, sizeof a);
        pli_coll_tell(first, b, sizeof b);
        plait_status status =
            pli_fail(err, PLAIT_EMISMATCH, "collective %llu: rank %d called %s where rank 0 called %s",
                     (unsigned long long)m->g, r, a, b);
        if (err != NULL) err->rank = r;
        return status;
    }
    return PLAIT_OK;
}

/* out [n] = the exact sum of all workers' terms, each [n]. */
static void sum_exactly(const struct meeting *m, const pli_coll *call, const void *const *term, int64_t n, void *out) {
    if (call->type == PLAIT_F64) pli_exact_sum_f64(m->t->workers, (const double *const *)term, n, out);
    else pli_exact_sum_f32(m->t->workers, (const float *const *)term, n, out);
}

static void finish_small(const struct meeting *m, const pli_coll *call) {
    size_t bytes = pli_coll_buffer_bytes(call);
    if (bytes == 0 || call->kind == PLI_COLL_BARRIER) return;
    if (call->kind == PLI_BROADCAST) {
        if (call->root != m->comm->rank) memcpy(call->buf, slot_of(m, call->root)->data, bytes);
    } else if (call->kind == PLI_ALLGATHER) {
        for (int32_t r = 0; r < m->t->workers; r++)
            memcpy((unsigned char *)call->buf + (size_t)r * bytes, slot_of(m, r)->data, bytes);
    } else {
        if (call->op == PLAIT_SUM_EXACT) {
            const void **term = m->t->seat[m->comm->rank].term;
            for (int32_t r = 0; r < m->t->workers; r++) term[r] = slot_of(m, r)->data;
            sum_exactly(m, call, term, call->n, call->buf);
            return;
        }
        memcpy(call->buf, slot_of(m, 0)->data, bytes);
        for (int32_t r = 1; r < m->t->workers; r++)
            pli_reduce(call->buf, call->buf, slot_of(m, r)->data, call->n, call->type, call->op);
    }
}

/* Slices are whole cache lines, so that two workers never write to the same line. */
static int64_t slice_from(const pli_coll *call, int32_t slice, int32_t workers) {
    int64_t line = LINE_BYTES / (int64_t)pli_type_bytes(call->type);
    int64_t lines = (call->n + line - 1) / line;
    int64_t from = lines / workers * slice + (slice < lines % workers ? slice : lines % workers);
    return from * line < call->n ? from * line : call->n;
}

static void reduce_slice(const struct meeting *m, const pli_coll *call) {
    size_t  size = pli_type_bytes(call->type);
    int64_t block = BLOCK_BYTES / (int64_t)size, to = slice_from(call, m->comm->rank + 1, m->t->workers);
    for (int64_t i = slice_from(call, m->comm->rank, m->t->workers); i < to; i += block) {
        int64_t        n = to - i < block ? to - i : block;
        unsigned char *sum = (unsigned char *)slot_of(m, 0)->call.buf + (size_t)i * size;
        for (int32_t r = 1; r < m->t->workers; r++)
            pli_reduce(sum, sum, (unsigned char *)slot_of(m, r)->call.buf + (size_t)i * size, n, call->type, call->op);
        for (int32_t r = 1; r < m->t->workers; r++)
            memcpy((unsigned char *)slot_of(m, r)->call.buf + (size_t)i * size, sum, (size_t)n * size);
    }
}

static void reduce_slice_exactly(const struct meeting *m, const pli_coll *call) {
    _Alignas(LINE_BYTES) unsigned char sum[BLOCK_BYTES];
    const void **term = m->t->seat[m->comm->rank].term;
    size_t       size = pli_type_bytes(call->type);
    int64_t      block = BLOCK_BYTES / (int64_t)size, to = slice_from(call, m->comm->rank + 1, m->t->workers);
    for (int64_t i = slice_from(call, m->comm->rank, m->t->workers); i < to; i += block) {
        int64_t n = to - i < block ? to - i : block;
        for (int32_t r = 0; r < m->t->workers; r++)
            term[r] = (unsigned char *)slot_of(m, r)->call.buf + (size_t)i * size;
        sum_exactly(m, call, term, n, sum);
        for (int32_t r = 0; r < m->t->workers; r++)
            memcpy((unsigned char *)slot_of(m, r)->call.buf + (size_t)i * size, sum, (size_t)n * size);
    }
}

/* A reduce-scatter: it adds in the same order and writes the worker's own slice into its own buffer, at a place that
 * no other worker reads. */
static void keep_slice(const struct meeting *m, const pli_coll *call) {
    _Alignas(LINE_BYTES) unsigned char sum[BLOCK_BYTES];
    int32_t      me = m->comm->rank, workers = m->t->workers;
    const void **term = m->t->seat[me].term;
    size_t       size = pli_type_bytes(call->type);
    int64_t      block = BLOCK_BYTES / (int64_t)size, to = pli_slice_first(call->n, me + 1, workers);
    for (int64_t i = pli_slice_first(call->n, me, workers); i < to; i += block) {
        int64_t n = to - i < block ? to - i : block;
        size_t  at = (size_t)i * size, bytes = (size_t)n * size;
        if (call->op == PLAIT_SUM_EXACT) {
            for (int32_t r = 0; r < workers; r++) term[r] = (unsigned char *)slot_of(m, r)->call.buf + at;
            sum_exactly(m, call, term, n, sum);
        } else {
            memcpy(sum, (unsigned char *)slot_of(m, 0)->call.buf + at, bytes);
            for (int32_t r = 1; r < workers; r++)
                pli_reduce(sum, sum, (unsigned char *)slot_of(m, r)->call.buf + at, n, call->type, call->op);
        }
        memcpy((unsigned char *)call->buf + at, sum, bytes);
    }
}

static void gather_pieces(const struct meeting *m, const pli_coll *call) {
    for (int32_t r = 0; r < m->t->workers; r++) {
        size_t at = call->starts != NULL ? call->starts[r] : (size_t)r * pli_coll_buffer_bytes(call);
        size_t bytes = call->starts != NULL ? call->starts[r + 1] - at : pli_coll_buffer_bytes(call);
        if (r != m->comm->rank && bytes > 0)
            memcpy((unsigned char *)call->buf + at, (unsigned char *)slot_of(m, r)->call.buf + at, bytes);
    }
}

static void work_on_large(const struct meeting *m, const pli_coll *call) {
    switch (call->kind) {
    case PLI_ALLREDUCE: (call->op == PLAIT_SUM_EXACT ? reduce_slice_exactly : reduce_slice)(m, call); return;
    case PLI_ALLGATHER: gather_pieces(m, call); return;
    case PLI_BROADCAST:
        if (call->root != m->comm->rank)
            memcpy(call->buf, slot_of(m, call->root)->call.buf, pli_coll_buffer_bytes(call));
        return;
    case PLI_REDUCE_SCATTER: keep_slice(m, call); return;
    case PLI_COLL_BARRIER:
    case PLI_PIECES:
    case PLI_EXCHANGE: return;
    }
}

/* --- the second meeting ----------------------------------------------------------------------------------- */

static bool all_are_out(void *arg) {
    const struct meeting *m = arg;
    uint64_t              large = m->t->seat[m->comm->rank].large;
    return atomic_load(&m->t->out) >= large * (uint64_t)m->t->workers;
}

static bool is_anyone_turned_away(const struct meeting *m) {
    for (int32_t r = 0; r < m->t->workers; r++)
        if (atomic_load(&m->t->seat[r].work) == 4 * m->g + TURNED_AWAY) return true;
    return false;
}

static bool is_over(void *arg) {
    return all_are_out(arg) || ((atomic_load(&((struct meeting *)arg)->t->in) & BROKEN) && is_anyone_turned_away(arg));
}

static bool nobody_works(void *arg) {
    const struct meeting *m = arg;
    for (int32_t r = 0; r < m->t->workers; r++)
        if (atomic_load(&m->t->seat[r].work) == 4 * m->g + WORKING) return false;
    return true;
}

static void turn_away(struct meeting *m) {
    for (int32_t r = 0; r < m->t->workers; r++) {
        uint64_t arrived = 4 * m->g + ARRIVED;
        atomic_compare_exchange_strong(&m->t->seat[r].work, &arrived, 4 * m->g + TURNED_AWAY);
    }
    atomic_fetch_or(&m->t->in, BROKEN);
    ring_others(m->t, m->comm);
    pli_comm_wait_sure(m->comm, nobody_works, m, NULL, PLI_NEVER);
}

static plait_status finish_large(struct meeting *m, const pli_coll *call, const pli_reason *reason, plait_error *err) {
    pli_seat *seat = &m->t->seat[m->comm->rank];
    uint64_t  arrived = 4 * m->g + ARRIVED;
    seat->large++;
    if (!atomic_compare_exchange_strong(&seat->work, &arrived, 4 * m->g + WORKING)) {
        pli_comm_wait_sure(m->comm, nobody_works, m, NULL, PLI_NEVER);
        return broken(m, err);
    }
    work_on_large(m, call);
    atomic_store(&seat->work, 4 * m->g + DONE);
    uint64_t out = atomic_fetch_add(&m->t->out, 1) + 1;
    bool      last = out == seat->large * (uint64_t)m->t->workers;
    if ((last && atomic_load(&m->t->resting) > 0) || (atomic_load(&m->t->in) & BROKEN)) ring_others(m->t, m->comm);
    plait_status status = pli_comm_watch(m->comm, &m->t->resting, is_over, m, reason, err);
    if (all_are_out(m)) return PLAIT_OK;
    note_finding(m->t, status, err);
    turn_away(m);
    if (all_are_out(m)) return PLAIT_OK;
    return status < 0 ? status : broken(m, err);
}

plait_status pli_threads_wait(pli_transport *t, pli_call *call, plait_error *err) {
    struct meeting m = { .t = t, .comm = call->comm, .call = call, .g = t->seat[call->comm->rank].started };
    pli_reason     reason = { .tell = tell_meeting, .show = show_meeting, .arg = &m };
    PLI_TRY(meet(&m, &reason, err));
    PLI_TRY(check_calls(&m, err));
    if (is_small(&call->coll)) {
        finish_small(&m, &call->coll);
        return PLAIT_OK;
    }
    return finish_large(&m, &call->coll, &reason, err);
}
