/* Driving MPI: sends, receives, the service thread. mpi.h has the ideas. */
#include <sched.h>
#include <string.h>

#include "comm/mpi/mpi.h"
#include "comm/membership.h"
#include "comm/rounds.h"

enum { SPIN_NS = 5000, YIELDS = 4, NAP_MIN_NS = 10000, NAP_MAX_NS = 200000 };

void pli_mpi_fail(pli_transport *t, plait_status code, int mpi_code, const char *what) {
    if (t->failed) return;
    t->failed = true;
    char text[MPI_MAX_ERROR_STRING] = "";
    int  length = 0;
    if (mpi_code != MPI_SUCCESS) MPI_Error_string(mpi_code, text, &length);
    plait_error why;
    pli_fail(&why, code, "%s%s%.300s", what, text[0] != '\0' ? ": " : "", text);
    why.rank = t->rank;
    pli_world_fail(t->world, &why);
}

/* --- out --------------------------------------------------------------------------------------------------- */

void pli_mpi_send(pli_transport *t, pli_msg *msg) {
    pli_msg *old = atomic_load_explicit(&t->out, memory_order_relaxed);
    do msg->next = old;
    while (!atomic_compare_exchange_weak(&t->out, &old, msg));
}

static bool has_room(pli_transport *t, int64_t parts) {
    return pli_grow((void **)&t->request, &t->capacity, t->n + parts, sizeof *t->request) &&
           pli_grow((void **)&t->owner, &t->owners, t->n + parts, sizeof *t->owner) &&
           pli_grow((void **)&t->done, &t->dones, t->n + parts, sizeof *t->done) &&
           pli_grow((void **)&t->status, &t->statuses, t->n + parts, sizeof *t->status);
}

static void add_part(pli_transport *t, flight *f, MPI_Request request) {
    t->request[t->n] = request;
    t->owner[t->n++] = f;
    f->parts++;
}

/* How many bytes of a body go as one MPI message: as many as an int can count, but over TCP only as many as MPI sends
 * without asking. For more it first asks the receiver whether there is room. Question and answer would wait behind all
 * that is under way on the link, and the link's queue would drain meanwhile. */
static size_t part_bytes(const pli_transport *t, int32_t peer) {
    const int32_t *host_of = t->world->place.host_of;
    return t->by_tcp && host_of[peer] != host_of[t->rank] ? TCP_BYTES : CHUNK_BYTES;
}

static int64_t parts_of(const pli_transport *t, int32_t peer, size_t bytes) {
    size_t part = part_bytes(t, peer);
    return (int64_t)((bytes + part - 1) / part);
}

static void move_body(pli_transport *t, flight *f, int32_t peer) {
    unsigned char *body = pli_msg_body(f->msg);
    size_t         part = part_bytes(t, peer);
    for (size_t at = 0, bytes = f->msg->head.body_bytes; at < bytes; at += part) {
        int         n = (int)(bytes - at < part ? bytes - at : part);
        MPI_Request request;
        int code = f->incoming ? MPI_Irecv(body + at, n, MPI_BYTE, peer, TAG_BODY, t->comm, &request)
                               : MPI_Isend(body + at, n, MPI_BYTE, peer, TAG_BODY, t->comm, &request);
        if (code != MPI_SUCCESS) {
            if (!pli_mpi_is_death(t, code)) pli_mpi_fail(t, PLAIT_ECOMM, code, "MPI cannot move a message");
            return;
        }
        add_part(t, f, request);
    }
}

/* Is it the news that the rank has left? That also says which collective it has ended last. */
static bool tells_of_leaving(const pli_msg *msg) { return msg->head.port == 0 && msg->head.kind == PLI_MEMBER_LEFT; }

/* Is it the news that a rank counts as dead, perhaps this one? It must not wait behind a large body, which may never
 * come if this process was frozen and its sender has ended. */
static bool tells_of_death(const pli_msg *msg) {
    return msg->head.port == 0 && (msg->head.kind == PLI_CONTROL_DEAD || msg->head.kind == PLI_MEMBERSHIP_STATE);
}

/* Is the message for a dead rank? A rank that is only silent is still told that it counts as dead. */
static bool is_for_the_dead(const pli_transport *t, const pli_msg *msg) {
    int32_t to = msg->head.dst;
    if (tells_of_death(msg)) return t->dead[to];
    return t->dead[to] || pli_world_is_gone(t->world, to);
}

static void send_one(pli_transport *t, pli_msg *msg) {
    if (is_for_the_dead(t, msg)) {
        pli_msg_free(&msg);
        return;
    }
    size_t  bytes = msg->head.body_bytes, small = bytes <= INLINE_BYTES ? bytes : 0;
    flight *f = pli_malloc(sizeof *f + sizeof(pli_head) + small);
    if (f == NULL || !has_room(t, 1 + parts_of(t, msg->head.dst, bytes))) {
        pli_free(f);
        pli_msg_free(&msg);
        pli_mpi_fail(t, PLAIT_ENOMEM, MPI_SUCCESS, "no memory to send a message");
        return;
    }
    *f = (flight){ .msg = msg, .peer = msg->head.dst };
    if (tells_of_leaving(msg)) msg->head.arg64 = t->direct.done;
    memcpy(f->staged, &msg->head, sizeof(pli_head));
    if (small > 0) memcpy(f->staged + sizeof(pli_head), pli_msg_body(msg), small);
    MPI_Request request;
    int         dst = msg->head.dst;
    int code = MPI_Isend(f->staged, (int)(sizeof(pli_head) + small), MPI_BYTE, dst, TAG_HEAD, t->comm, &request);
    if (code != MPI_SUCCESS) {
        pli_free(f);
        pli_msg_free(&msg);
        if (!pli_mpi_is_death(t, code)) pli_mpi_fail(t, PLAIT_ECOMM, code, "MPI cannot send");
        return;
    }
    if (bytes == small) {
        pli_msg_free(&f->msg);
        int done = 0;
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done || request == MPI_REQUEST_NULL) {
            pli_free(f);
            return;
        }
    }
    add_part(t, f, request);
    if (bytes != small) move_body(t, f, dst);
}

bool pli_mpi_send_all(pli_transport *t) {
    pli_msg *list = NULL;
    for (pli_msg *msg = atomic_exchange(&t->out, NULL), *next; msg != NULL; msg = next) {
        next = msg->next;
        msg->next = list;
        list = msg;
    }
    bool any = list != NULL;
    for (pli_msg *next; list != NULL; list = next) {
        next = list->next;
        list->next = NULL;
        send_one(t, list);
    }
    return any;
}

/* --- in ------------------------------------------------------------------------------------------------------- */

static plait_status post_receive(pli_transport *t, int32_t slot) {
    return MPI_Irecv(t->buffer[slot], HEAD_BYTES, MPI_BYTE, MPI_ANY_SOURCE, TAG_HEAD, t->comm, &t->ring[slot]) ==
                   MPI_SUCCESS
               ? PLAIT_OK
               : PLAIT_ECOMM;
}

plait_status pli_mpi_begin_receiving(pli_transport *t, plait_error *err) {
    for (int32_t i = 0; i < RING; i++)
        if (post_receive(t, i) < 0) return pli_fail(err, PLAIT_ECOMM, "MPI cannot receive");
    return PLAIT_OK;
}

void pli_mpi_end_receiving(pli_transport *t) {
    for (int32_t i = 0; i < RING; i++) {
        if (t->ring[i] == MPI_REQUEST_NULL) continue;
        MPI_Cancel(&t->ring[i]);
        MPI_Wait(&t->ring[i], MPI_STATUS_IGNORE);
    }
    for (int64_t i = 0; i < t->n;
         i++) { /* only after a failure: MPI may still read the slabs, so they are leaked */
        flight *f = t->owner[i];
        if (--f->parts == 0) f->msg = NULL;
    }
    t->n = 0;
}

/* Delivers the messages whose turn has come. */
static void drain(pli_transport *t, int32_t src) {
    struct fifo *fifo = &t->fifo[src];
    for (flight *f; (f = fifo->first) != NULL && f->parts == 0;) {
        fifo->first = f->next;
        if (fifo->first == NULL) fifo->last = &fifo->first;
        if (t->dead[src]) pli_msg_free(&f->msg); /* it may be incomplete */
        else pli_world_deliver(t->world, f->msg);
        pli_free(f);
    }
}

static void take_in(pli_transport *t, int32_t src, pli_msg *msg, size_t rest) {
    struct fifo *fifo = &t->fifo[src];
    if (tells_of_leaving(msg)) t->left_after[src] = msg->head.arg64;
    if (rest == 0 && (fifo->first == NULL || tells_of_death(msg))) {
        pli_world_deliver(t->world, msg);
        return;
    }
    if (t->dead[src]) { /* no large body will come, and messages behind one are of no use */
        pli_msg_free(&msg);
        return;
    }
    flight *f = pli_malloc(sizeof *f);
    if (f == NULL || !has_room(t, parts_of(t, src, rest))) {
        pli_free(f);
        pli_msg_free(&msg);
        pli_mpi_fail(t, PLAIT_ENOMEM, MPI_SUCCESS, "no memory to receive a message");
        return;
    }
    *f = (flight){ .msg = msg, .peer = src, .incoming = true };
    *fifo->last = f;
    fifo->last = &f->next;
    if (rest > 0) move_body(t, f, src);
}

/* Takes headers, in the order in which their buffers were offered. */
static bool receive_all(pli_transport *t) {
    bool any = false;
    for (int32_t tries = 0; tries < RING && !t->failed; tries++) {
        int32_t    slot = t->at;
        int        done = 0, bytes = 0;
        MPI_Status status;
        int        code = MPI_Test(&t->ring[slot], &done, &status);
        if (code != MPI_SUCCESS && pli_mpi_is_death(t, code)) { /* the receive stays open, for living senders */
            any = true;
            if (t->ring[slot] != MPI_REQUEST_NULL) continue;
            if (post_receive(t, slot) < 0) pli_mpi_fail(t, PLAIT_ECOMM, MPI_SUCCESS, "MPI cannot receive");
            t->at = (slot + 1) % RING;
            continue;
        }
        if (code != MPI_SUCCESS) pli_mpi_fail(t, PLAIT_ECOMM, code, "MPI cannot receive");
        if (code != MPI_SUCCESS || !done) break;
        any = true;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        pli_msg     *msg = NULL;
        size_t       rest = 0;
        plait_error  err;
        plait_status bad =
            pli_msg_decode(t->buffer[slot], (size_t)bytes, status.MPI_SOURCE, t->size, t->rank, 1, &msg, &rest, &err);
        t->at = (slot + 1) % RING;
        if (post_receive(t, slot) < 0) pli_mpi_fail(t, PLAIT_ECOMM, MPI_SUCCESS, "MPI cannot receive");
        if (bad < 0) {
            pli_mpi_fail(t, bad, MPI_SUCCESS, err.text);
        } else {
            take_in(t, status.MPI_SOURCE, msg, rest);
        }
    }
    return any;
}

/* Is death the cause of all parts that ended badly? */
static bool was_death(pli_transport *t, int code, int n_done) {
    if (!t->tells || code != MPI_ERR_IN_STATUS) return pli_mpi_is_death(t, code);
    for (int i = 0; i < n_done; i++) {
        int one = t->status[i].MPI_ERROR;
        if (one != MPI_SUCCESS && one != MPI_ERR_PENDING && !pli_mpi_is_death(t, one)) return false;
    }
    return true;
}

/* Takes back the parts that MPI is done with. */
static bool complete(pli_transport *t) {
    int n_done = 0;
    if (t->n == 0) return false;
    int code = MPI_Testsome((int)t->n, t->request, &n_done, t->done, t->tells ? t->status : MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS && !was_death(t, code, n_done)) {
        pli_mpi_fail(t, PLAIT_ECOMM, code, "MPI has lost a message");
        return false;
    }
    if (n_done == MPI_UNDEFINED || n_done == 0) return false;
    for (int i = 0; i < n_done; i++) {
        flight *f = t->owner[t->done[i]];
        t->owner[t->done[i]] = NULL;
        if (--f->parts > 0 || f->incoming) continue;
        pli_msg_free(&f->msg);
        pli_free(f);
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (t->owner[i] == NULL) continue;
        t->request[kept] = t->request[i];
        t->owner[kept++] = t->owner[i];
    }
    t->n = kept;
    for (int32_t src = 0; src < t->size; src++)
        if (t->fifo[src].first != NULL) drain(t, src);
    return true;
}

/* --- driving ------------------------------------------------------------------------------------------------------ */

bool pli_mpi_try_lock(pli_transport *t) {
    uint32_t free = 0;
    return atomic_load_explicit(&t->lock, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong(&t->lock, &free, 1);
}

void pli_mpi_lock(pli_transport *t) {
    while (!pli_mpi_try_lock(t)) sched_yield(); /* the thread that drives now ends soon */
}

void pli_mpi_unlock(pli_transport *t) { atomic_store(&t->lock, 0); }

static bool drive(pli_transport *t, bool lends) {
    bool any = false, once;
    do {
        if (!pli_mpi_try_lock(t)) return any;
        if (lends) atomic_fetch_add_explicit(&t->lent, 1, memory_order_relaxed);
        once = false;
        if (!t->failed) {
            once |= pli_mpi_step(t);
            once |= pli_mpi_send_all(t);
            once |= receive_all(t);
            once |= complete(t);
            once |= pli_mpi_reduce(t);
            if (!once) once = pli_mpi_tell_deaths(t); /* messages that the dead have sent come first */
        }
        any |= once;
        pli_mpi_unlock(t);
    } while (once || (!t->failed && atomic_load(&t->out) != NULL));
    return any;
}

bool pli_mpi_progress(pli_transport *t) {
    return drive(t, true);
}

bool pli_mpi_is_idle(pli_transport *t) {
    pli_mpi_lock(t);
    bool idle = atomic_load(&t->out) == NULL;
    for (int64_t i = 0; idle && i < t->n; i++)
        idle = pli_world_is_gone(t->world, t->owner[i]->peer); /* a rank that is gone may never take it */
    pli_mpi_unlock(t);
    return idle || t->failed;
}

/* Drives when no other thread does, and beats. */
void *pli_mpi_service(void *transport) {
    pli_transport *t = transport;
    uint32_t       lent = 0;
    uint64_t       nap_ns = NAP_MIN_NS, busy_until_ns = 0, beat_ns = 0;
    int32_t        yields = 0;
    while (atomic_load(&t->stop) == 0) {
        uint32_t now_lent = atomic_load_explicit(&t->lent, memory_order_relaxed);
        bool     others = now_lent != lent;
        lent = now_lent;
        uint64_t now_ns = pli_now_ns();
        if (now_ns >= beat_ns) {
            drive(t, false); /* messages that have come are heard first */
            beat_ns = pli_world_beat(t->world, now_ns);
        }
        if (!others && drive(t, false)) {
            nap_ns = NAP_MIN_NS;
            yields = 0;
            busy_until_ns = pli_now_ns() + SPIN_NS;
            continue;
        }
        if (!others && now_ns < busy_until_ns) continue;
        if (!others && yields++ < YIELDS) {
            sched_yield();
            continue;
        }
        uint64_t next_ns = pli_world_wakeups(t->world, now_ns);
        if (others) nap_ns = NAP_MAX_NS;
        uint64_t sleep_ns = next_ns > now_ns && next_ns - now_ns < nap_ns ? next_ns - now_ns : nap_ns;
        pli_futex_wait(&t->stop, 0, sleep_ns);
        nap_ns = nap_ns * 2 < NAP_MAX_NS ? nap_ns * 2 : NAP_MAX_NS;
    }
    return NULL;
}
