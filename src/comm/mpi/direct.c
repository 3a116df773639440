/* Collectives that are waited for at once, straight through MPI; mpi.h has the idea.
 *
 * The steps are those of the message form. A step's message begins with a stamp of its call, as in the collective
 * machine; the data come behind that. Messages of one sender come in order, and no worker sends two messages to the
 * same worker in a step, so the next message of a peer is for the next step that receives from it. All memory that
 * MPI sees belongs to the transport, except in an MPI_Allreduce, which is sure to end, since every worker has come
 * to it. */
#include <sched.h>
#include <string.h>

#include "comm/mpi/mpi.h"

enum { SPIN_NS = 5000, CANCEL_TRIES = 1000 };

bool pli_mpi_goes_directly(const pli_transport *t, const pli_coll *coll) {
    switch (coll->kind) {
    case PLI_COLL_BARRIER: return true;
    case PLI_ALLREDUCE:
        return coll->op == PLAIT_SUM_EXACT ? pli_coll_buffer_bytes(coll) > DIRECT_BYTES && coll->n <= CHUNK_BYTES
                                           : pli_coll_buffer_bytes(coll) <= DIRECT_BYTES || pli_mpi_can_sum(t, coll);
    case PLI_BROADCAST: return pli_coll_buffer_bytes(coll) <= DIRECT_BYTES;
    case PLI_ALLGATHER:
        return pli_coll_buffer_bytes(coll) * (coll->starts != NULL ? 1 : (size_t)t->workers) <= DIRECT_BYTES;
    case PLI_PIECES:
    case PLI_EXCHANGE:
    case PLI_REDUCE_SCATTER: break;
    }
    return false;
}

pli_mpi_stamp pli_mpi_stamp_of(const pli_call *call) {
    const pli_coll *c = &call->coll;
    return (pli_mpi_stamp){ .number = call->number,
                            .n = c->n,
                            .root = c->root,
                            .kind = (uint8_t)c->kind,
                            .type = (uint8_t)c->type,
                            .op = (uint8_t)c->op,
                            .unequal = c->starts != NULL };
}

pli_coll pli_mpi_stamped(const pli_mpi_stamp *stamp) {
    return (pli_coll){ .kind = (pli_coll_kind)stamp->kind,
                       .type = (plait_type)stamp->type,
                       .op = (plait_reduce)stamp->op,
                       .root = stamp->root,
                       .n = stamp->n };
}

/* --- steps: all under lock ---------------------------------------------------------------------------------------- */

static bool fail(direct *d, plait_status code, const char *text) {
    pli_fail(&d->error, code, "%s", text);
    atomic_store_explicit(&d->over, true, memory_order_release);
    return false;
}

/* If the code means a death, the call stays open until its caller hears of the death. */
static bool fail_in_mpi(pli_transport *t, int code, const char *text) {
    if (pli_mpi_is_death(t, code)) {
        t->direct.broken = true;
        return false;
    }
    pli_mpi_fail(t, PLAIT_ECOMM, code, text);
    return fail(&t->direct, PLAIT_ECOMM, text);
}

static bool post(pli_transport *t) {
    direct         *d = &t->direct;
    const pli_mpi_stamp head = pli_mpi_stamp_of(d->call);
    const pli_coll_move *m = &d->move;
    if (m->from >= 0 && d->receive == MPI_REQUEST_NULL) {
        int code = MPI_Irecv(d->in, sizeof d->in, MPI_BYTE, m->from, TAG_STEP, t->direct_comm, &d->receive);
        if (code != MPI_SUCCESS) return fail_in_mpi(t, code, "MPI cannot receive");
    }
    if (m->to >= 0) {
        const int which = (int)(d->sent % 2);
        int       gone = 1;
        if (d->send[which] != MPI_REQUEST_NULL) MPI_Test(&d->send[which], &gone, MPI_STATUS_IGNORE);
        if (!gone) return false;
        memcpy(d->out[which], &head, sizeof head);
        if (m->send_bytes > 0)
            memcpy(d->out[which] + sizeof head, (const unsigned char *)d->coll.buf + m->send_at, m->send_bytes);
        int code = MPI_Isend(d->out[which], (int)(sizeof head + m->send_bytes), MPI_BYTE, m->to, TAG_STEP,
                             t->direct_comm, &d->send[which]);
        if (code != MPI_SUCCESS) return fail_in_mpi(t, code, "MPI cannot send");
        d->sent++;
    }
    atomic_store_explicit(&d->call->run.waits_for, m->from, memory_order_relaxed);
    d->posted = true;
    return true;
}

/* The call that this worker made when the other made theirs: a message that is left over from an earlier call should
 * have been taken in that call. */
static const pli_coll *counterpart(const direct *d, const pli_mpi_stamp *theirs) {
    const recent_call *earlier = &d->recent[theirs->number % PLI_COLL_RECENT];
    return earlier->number == theirs->number ? &earlier->coll : &d->call->coll;
}

static bool check(pli_transport *t, size_t bytes) {
    direct     *d = &t->direct;
    const pli_mpi_stamp mine = pli_mpi_stamp_of(d->call);
    pli_mpi_stamp theirs = { 0 };
    if (bytes >= sizeof theirs) memcpy(&theirs, d->in, sizeof theirs);
    if (memcmp(&mine, &theirs, sizeof mine) == 0 && bytes == sizeof theirs + d->move.recv_bytes) return true;
    const pli_coll *own = counterpart(d, &theirs);
    pli_coll        other = pli_mpi_stamped(&theirs);
    char a[96], b[96];
    pli_coll_tell(&other, a, sizeof a);
    pli_coll_tell(own, b, sizeof b);
    pli_fail(&d->error, PLAIT_EMISMATCH, "collective %llu: rank %d called %s where rank %d called %s",
             (unsigned long long)(own == &d->call->coll ? d->call->number : theirs.number), d->move.from, a, t->rank,
             b);
    atomic_store_explicit(&d->over, true, memory_order_release);
    return false;
}

static void use(pli_transport *t) {
    direct              *d = &t->direct;
    const pli_coll_move *m = &d->move;
    unsigned char       *mine = (unsigned char *)d->coll.buf + m->recv_at, *theirs = d->in + sizeof(pli_mpi_stamp);
    if (m->recv_bytes == 0) return;
    if (!m->reduce) {
        memcpy(mine, theirs, m->recv_bytes);
        return;
    }
    bool lower = m->from < t->rank;
    pli_reduce(mine, lower ? theirs : mine, lower ? mine : theirs,
               (int64_t)(m->recv_bytes / pli_type_bytes(d->coll.type)), d->coll.type, d->coll.op);
}

/* The last step is done. A large sum is now left to MPI. */
static void end(pli_transport *t) {
    direct         *d = &t->direct;
    const pli_coll *c = &d->call->coll;
    if (d->coll.meet && c->kind == PLI_ALLREDUCE) {
        pli_mpi_send_all(t);
        int code = c->op == PLAIT_SUM_EXACT ? pli_mpi_sum_exactly(t, c, d->terms) : pli_mpi_sum(t, c);
        if (code != MPI_SUCCESS && !fail_in_mpi(t, code, "MPI cannot sum") && d->broken) return;
    }
    if (d->error.code >= 0) d->done = d->call->number;
    d->call = NULL;
    atomic_store_explicit(&d->over, true, memory_order_release);
}

/* Takes a step, or as much of it as can be done now. */
static bool take_step(pli_transport *t) {
    direct *d = &t->direct;
    if (!d->posted) {
        if (!pli_coll_step(&d->coll, t->rank, t->workers, d->step, &d->move)) {
            end(t);
            return false;
        }
        if (!post(t)) return false;
    }
    if (d->move.from >= 0) {
        int        came = 0, bytes = 0;
        MPI_Status status;
        int        code = MPI_Test(&d->receive, &came, &status);
        if (code != MPI_SUCCESS) return fail_in_mpi(t, code, "MPI cannot receive");
        if (!came) return false;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        if (!check(t, (size_t)bytes)) return false;
        use(t);
    }
    d->step++;
    d->posted = false;
    return true;
}

static bool is_under_way(const direct *d) {
    return d->call != NULL && !d->broken && !atomic_load_explicit(&d->over, memory_order_relaxed);
}

static bool advance(pli_transport *t) {
    bool any = false;
    while (is_under_way(&t->direct) && take_step(t)) any = true;
    return any;
}

bool pli_mpi_step(pli_transport *t) {
    bool under_way = is_under_way(&t->direct), any = advance(t);
    if (under_way && !is_under_way(&t->direct)) pli_world_ring(t->world, t->rank);
    return any;
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* Has the worker that this one waits for left without ending this call? If it has ended the call, it has sent its
 * part, which may still be on its way. */
static bool comes_no_more(const pli_transport *t, const pli_call *call) {
    int32_t from = atomic_load_explicit(&call->run.waits_for, memory_order_relaxed);
    return from >= 0 && pli_world_has_ended(t->world, from) && t->left_after[from] < call->number;
}

static bool has_dead_worker(const pli_transport *t) {
    plait_error why;
    return pli_world_dead_below(t->world, t->workers, &why) >= 0;
}

/* A dead worker also ends the call: waiting for one of the others may be in vain. */
static bool is_over(void *arg) {
    const pli_call      *call = arg;
    const pli_transport *t = call->comm->world->transport;
    return has_dead_worker(t) || atomic_load_explicit(&t->direct.over, memory_order_acquire) || comes_no_more(t, call);
}

plait_status pli_mpi_begin_directly(pli_transport *t, pli_call *call, plait_error *err) {
    direct *d = &t->direct;
    if (d->error.code < 0) { /* messages that others have sent for that call would be taken for this one's */
        *err = d->error;
        return err->code;
    }
    if (call->coll.op == PLAIT_SUM_EXACT) {
        d->terms = pli_mpi_terms(t, &call->coll);
        if (d->terms == NULL)
            return pli_fail(err, PLAIT_ENOMEM, "no memory for an exact sum of %zu bytes",
                            pli_coll_buffer_bytes(&call->coll));
    }
    call->run.number = UINT64_MAX; /* no number: a failure here fails no call that was begun before */
    pli_mpi_lock(t);
    d->coll = call->coll;
    pli_coll_choose(&d->coll, NULL, t->workers, &t->world->hosts);
    d->coll.meet = call->coll.kind == PLI_ALLREDUCE && pli_coll_buffer_bytes(&call->coll) > DIRECT_BYTES;
    d->recent[call->number % PLI_COLL_RECENT] = (recent_call){ .number = call->number, .coll = call->coll };
    d->step = 0;
    d->posted = false;
    atomic_store_explicit(&d->over, false, memory_order_relaxed);
    d->call = call;
    (void)advance(t);
    pli_mpi_unlock(t);
    return PLAIT_OK;
}

/* The call cannot be ended. None of its messages may be taken for a later call's, so all later calls fail. */
static plait_status give_up(pli_transport *t, plait_status status, plait_error *err) {
    direct *d = &t->direct;
    if (d->error.code < 0) *err = d->error;
    else if (status >= 0) (void)pli_world_missed(t->world, &d->call->coll, d->move.from, err);
    d->error = *err;
    d->call = NULL;
    return err->code;
}

plait_status pli_mpi_wait_directly(pli_transport *t, pli_call *call, plait_error *err) {
    direct *d = &t->direct;
    for (uint64_t start_ns = 0; !atomic_load_explicit(&d->over, memory_order_acquire);) {
        if (pli_mpi_try_lock(t)) {
            (void)advance(t);
            pli_mpi_unlock(t);
        }
        uint64_t now_ns = pli_now_ns();
        if (start_ns == 0) start_ns = now_ns;
        if (now_ns - start_ns > SPIN_NS) break;
    }
    pli_reason   reason = { .tell = pli_comm_tell_call, .show = pli_comm_show_call, .arg = call };
    plait_status status = PLAIT_OK;
    for (bool again = true; again;) {
        status = pli_comm_wait(call->comm, is_over, call, &reason, err);
        pli_mpi_lock(t);
        (void)advance(t); /* a worker that has left may have sent before; then another is waited for now */
        again = status >= 0 && is_under_way(d) && !comes_no_more(t, call) && !has_dead_worker(t);
        if (again) pli_mpi_unlock(t);
    }
    if (d->call != NULL) status = give_up(t, status, err);
    else status = d->error.code < 0 ? (*err = d->error).code : PLAIT_OK;
    pli_free(d->terms);
    d->terms = NULL;
    pli_mpi_unlock(t);
    return status;
}

bool pli_mpi_end_steps(pli_transport *t) {
    direct *d = &t->direct;
    int     done = d->receive == MPI_REQUEST_NULL, sent[2] = { 1, 1 };
    if (!done) MPI_Cancel(&d->receive);
    for (int i = 0; i < CANCEL_TRIES && !(done && sent[0] && sent[1]); i++) {
        if (!done) MPI_Test(&d->receive, &done, MPI_STATUS_IGNORE);
        for (int k = 0; k < 2; k++)
            if (d->send[k] != MPI_REQUEST_NULL) MPI_Test(&d->send[k], &sent[k], MPI_STATUS_IGNORE);
        if (i > 0) sched_yield();
    }
    return done && sent[0] && sent[1];
}
