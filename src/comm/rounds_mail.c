/* The doctor's mail: looks at ranks of this process, and asking and answering between processes, by messages to port
 * 0. The thread that drives the transport answers a question, even while its rank computes. */
#include "comm/figures.h"
#include "comm/rounds_impl.h"

#include <stdio.h>
#include <string.h>

bool pli_doctor_open(pli_world *world) {
    size_t      size = (size_t)world->size;
    pli_doctor *d = world->doctor = pli_calloc(1, sizeof *d);
    if (d == NULL) return false;
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->mail_lock, NULL);
    d->now = pli_calloc(size, sizeof *d->now);
    d->before = pli_calloc(size, sizeof *d->before);
    d->stuck = pli_calloc(size, sizeof *d->stuck);
    d->wanted = pli_calloc(size, sizeof *d->wanted);
    d->asked = pli_calloc(size, sizeof *d->asked);
    d->asked_since_ns = pli_calloc(size, sizeof *d->asked_since_ns);
    d->silent = pli_calloc(size, sizeof *d->silent);
    bool fine = d->now != NULL && d->before != NULL && d->stuck != NULL && d->wanted != NULL && d->asked != NULL &&
                d->asked_since_ns != NULL && d->silent != NULL;
    if (world->ops->carries_local) d->flying = pli_calloc(size * size, sizeof *d->flying);
    if (world->place.count == world->size) return fine && (d->flying != NULL || !world->ops->carries_local);
    d->rounds = pli_now_ns(); /* so an answer to a question of an earlier run of this process has a lower number */
    d->asked_first = d->rounds;
    d->mail = pli_calloc(size, sizeof *d->mail);
    d->sent = pli_calloc(size, sizeof *d->sent);
    d->received = pli_calloc(size, sizeof *d->received);
    return fine && d->mail != NULL && d->sent != NULL && d->received != NULL;
}

void pli_doctor_close(pli_world *world) {
    pli_doctor *d = world->doctor;
    world->doctor = NULL;
    if (d == NULL) return;
    for (int32_t r = 0; d->mail != NULL && r < world->size; r++) {
        pli_free(d->mail[r].moved);
        pli_free(d->mail[r].sheet);
    }
    pli_free(d->now);
    pli_free(d->before);
    pli_free(d->stuck);
    pli_free(d->wanted);
    pli_free(d->asked);
    pli_free(d->asked_since_ns);
    pli_free((void *)d->silent);
    pli_free(d->mail);
    pli_free((void *)d->sent);
    pli_free((void *)d->received);
    pli_free((void *)d->flying);
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->mail_lock);
    pli_free(d);
}

void pli_doctor_sent(pli_world *world, int32_t from, int32_t to) {
    pli_doctor *d = world->doctor;
    if (d->flying != NULL)
        atomic_fetch_add_explicit(&d->flying[(size_t)from * (size_t)world->size + (size_t)to], 1, memory_order_relaxed);
    else if (d->sent != NULL) atomic_fetch_add_explicit(&d->sent[to], 1, memory_order_relaxed);
}

void pli_doctor_received(pli_world *world, int32_t from, int32_t to) {
    pli_doctor *d = world->doctor;
    if (d->flying != NULL)
        atomic_fetch_sub_explicit(&d->flying[(size_t)from * (size_t)world->size + (size_t)to], 1, memory_order_relaxed);
    else if (d->received != NULL) atomic_fetch_add_explicit(&d->received[from], 1, memory_order_relaxed);
}

/* --- a look at a rank of this process --------------------------------------------------------------------------- */

/* Is no message in its machines' inboxes, and is none of its machines running? */
static bool is_at_rest(plait_comm *comm) {
    uint32_t at = 1;
    for (pli_port *port; (port = pli_comm_next_port(comm, &at)) != NULL;) {
        if (atomic_load(&port->lock) != 0 || atomic_load(&port->queued) != 0) return false;
        if (atomic_load(&port->inbox) != NULL && atomic_load(&port->state) != PLI_PORT_NOT_YET) return false;
    }
    return true;
}

static void copy_text(char *to, size_t bytes, const char *from) {
    snprintf(to, bytes, "%s", from == NULL ? "" : from);
}

static void show_wait(const plait_comm *comm, uint64_t now_ns, pli_look *look) { /* under reason_lock */
    const pli_reason *reason = comm->reason;
    look->state = PLI_LOOK_WAITS;
    look->wait = comm->waits;
    look->waited_ns = now_ns > comm->waits_since_ns ? now_ns - comm->waits_since_ns : 0;
    pli_comm_tell(reason, look->what, sizeof look->what);
    if (reason->show != NULL) reason->show(reason->arg, &look->on);
    else look->on.peer = -1;
    copy_text(look->call, sizeof look->call, comm->waits_at.call);
    copy_text(look->file, sizeof look->file, comm->waits_at.file);
    look->line = comm->waits_at.line;
    look->ordinal = comm->waits_at.ordinal;
}

void pli_doctor_look_at(plait_comm *comm, uint64_t now_ns, pli_look *look) {
    memset(look, 0, sizeof *look);
    look->on.peer = -1;
    pthread_mutex_lock(&comm->reason_lock);
    look->state = PLI_LOOK_RUNS;
    if (comm->reason != NULL) show_wait(comm, now_ns, look);
    if (pli_world_has_ended(comm->world, comm->rank)) look->state = PLI_LOOK_ENDED; /* and waits for the others' end */
    look->settled = is_at_rest(comm) && atomic_load(&comm->bell) == atomic_load(&comm->looked);
    look->owes = pli_comm_owes(comm);
    look->begun = atomic_load_explicit(&comm->begun, memory_order_acquire);
    look->joined = atomic_load_explicit(&comm->joined, memory_order_acquire);
    pthread_mutex_unlock(&comm->reason_lock);
}

/* --- asking and answering ----------------------------------------------------------------------------------------- */

static pli_msg *control(const pli_world *world, uint16_t kind, int32_t to, uint64_t round, bool counted, size_t bytes) {
    pli_msg *msg = pli_msg_new(bytes);
    if (msg == NULL) return NULL;
    msg->head.kind = kind;
    msg->head.src = world->place.first;
    msg->head.dst = to;
    msg->head.epoch = pli_world_view(world);
    msg->head.incarnation = 1;
    msg->head.arg64 = round;
    msg->head.arg32 = counted;
    return msg;
}

void pli_doctor_ask(pli_world *world, int32_t rank, uint64_t round, bool counted) {
    if (world->doctor->muted) return;
    pli_msg *msg = control(world, PLI_CONTROL_ASK, rank, round, counted, 0);
    if (msg != NULL) world->ops->send(world->transport, msg); /* else it will be asked again */
}

void pli_doctor_mute(pli_world *world) {
    pli_doctor *d = world->doctor;
    pthread_mutex_lock(&d->mail_lock);
    d->muted = true;
    pthread_mutex_unlock(&d->mail_lock);
}

static void answer(pli_world *world, const pli_msg *question) {
    pli_doctor *d = world->doctor;
    bool        counted = question->head.arg32 == 1;
    size_t      size = (size_t)world->size, bytes = sizeof(pli_look) + (counted ? 2 * size * sizeof(uint64_t) : 0);
    pli_msg *msg = control(world, PLI_CONTROL_LOOK, question->head.src, question->head.arg64, counted, bytes);
    if (msg == NULL) return;
    msg->head.src = question->head.dst;
    unsigned char *body = pli_msg_body(msg);
    pli_look       look;
    uint64_t       count;
    pli_doctor_look_at(pli_world_comm(world, question->head.dst), pli_world_now(world), &look);
    memcpy(body, &look, sizeof look);
    body += sizeof look;
    for (size_t i = 0; counted && i < 2 * size; i++) {
        count = atomic_load_explicit(i < size ? &d->sent[i] : &d->received[i - size], memory_order_acquire);
        memcpy(body + i * sizeof count, &count, sizeof count);
    }
    pthread_mutex_lock(&d->mail_lock);
    if (!d->muted) {
        world->ops->send(world->transport, msg);
        msg = NULL;
    }
    pthread_mutex_unlock(&d->mail_lock);
    pli_msg_free(&msg);
}

void pli_doctor_tell_control(pli_world *world, int32_t to, uint16_t kind, uint32_t number, const void *body,
                             size_t bytes) {
    pli_doctor *d = world->doctor;
    pthread_mutex_lock(&d->mail_lock);
    pli_msg *msg = d->muted ? NULL : control(world, kind, to, 0, false, bytes);
    if (msg != NULL) {
        if (bytes > 0) memcpy(pli_msg_body(msg), body, bytes);
        msg->head.arg32 = number;
        world->ops->send(world->transport, msg);
    }
    pthread_mutex_unlock(&d->mail_lock);
}

void pli_doctor_send(pli_world *world, pli_msg *msg) {
    pli_doctor *d = world->doctor;
    pthread_mutex_lock(&d->mail_lock);
    if (d->muted || pli_world_is_local(world, msg->head.dst)) pli_msg_free(&msg);
    else world->ops->send(world->transport, msg);
    pthread_mutex_unlock(&d->mail_lock);
}

void pli_doctor_tell_life(pli_world *world, int32_t rank) {
    if (atomic_exchange(&world->doctor->silent[rank], false))
        pli_log(world->log, PLAIT_LOG_WARN, world->place.first, "comm", "rank %d gives signs of life again", rank);
}

static void take_answer(pli_world *world, const pli_msg *msg) {
    pli_doctor *d = world->doctor;
    bool        counted = msg->head.arg32 == 1;
    size_t      counts = counted ? 2 * (size_t)world->size * sizeof(uint64_t) : 0;
    pli_look    look;
    plait_error why;
    if (msg->head.body_bytes < counts) return;
    if (pli_look_decode(pli_msg_body(msg), msg->head.body_bytes - counts, world->size, &look, &why) < 0) {
        pli_log(world->log, PLAIT_LOG_DEBUG, world->place.first, "comm", "rank %d: %s", msg->head.src, why.text);
        return;
    }
    pthread_mutex_lock(&d->mail_lock);
    pli_doctor_mail *m = &d->mail[msg->head.src];
    if (counted && m->moved == NULL) m->moved = pli_malloc(counts);
    if (msg->head.arg64 > d->asked_first && msg->head.arg64 <= d->rounds && msg->head.arg64 >= m->round &&
        (!counted || m->moved != NULL)) {
        m->look = look;
        m->round = msg->head.arg64;
        if (counted) {
            memcpy(m->moved, (const unsigned char *)pli_msg_body(msg) + sizeof look, counts);
            m->counted_round = m->round;
        }
    }
    m->heard_ns = pli_world_now(world);
    pthread_mutex_unlock(&d->mail_lock);
    pli_doctor_tell_life(world, msg->head.src);
    atomic_fetch_add(&d->came, 1);
    pli_futex_wake(&d->came, INT32_MAX);
}

/* --- sheets ------------------------------------------------------------------------------------------------------- */

uint64_t pli_doctor_ask_sheets(pli_world *world) {
    pli_doctor *d = world->doctor;
    pthread_mutex_lock(&d->mail_lock);
    const uint64_t number = ++d->rounds;
    for (int32_t r = 0; !d->muted && r < world->size; r++) {
        if (pli_world_is_local(world, r) || pli_world_has_ended(world, r)) continue;
        pli_msg *msg = control(world, PLI_CONTROL_ASK_SHEET, r, number, false, 0);
        if (msg != NULL) world->ops->send(world->transport, msg);
    }
    pthread_mutex_unlock(&d->mail_lock);
    return number;
}

static void answer_sheet(pli_world *world, const pli_msg *question) {
    pli_doctor *d = world->doctor;
    uint64_t   *rows;
    int64_t     n;
    pli_figures_show(pli_world_comm(world, question->head.dst));
    if (!pli_sheet_copy(&pli_world_comm(world, question->head.dst)->sheet, &rows, &n)) return;
    const size_t bytes = (size_t)n * PLI_SHEET_WORDS * sizeof *rows;
    pli_msg     *msg = control(world, PLI_CONTROL_SHEET, question->head.src, question->head.arg64, false, bytes);
    if (msg != NULL) msg->head.src = question->head.dst;
    if (msg != NULL && bytes > 0) memcpy(pli_msg_body(msg), rows, bytes);
    pli_free(rows);
    pthread_mutex_lock(&d->mail_lock);
    if (!d->muted && msg != NULL) {
        world->ops->send(world->transport, msg);
        msg = NULL;
    }
    pthread_mutex_unlock(&d->mail_lock);
    pli_msg_free(&msg);
}

static void take_sheet(pli_world *world, const pli_msg *msg) {
    pli_doctor      *d = world->doctor;
    pli_doctor_mail *m = &d->mail[msg->head.src];
    const size_t     bytes = msg->head.body_bytes, row_bytes = PLI_SHEET_WORDS * sizeof(uint64_t);
    uint64_t        *rows = bytes % row_bytes == 0 ? pli_malloc(bytes + 1) : NULL;
    if (rows == NULL) return;
    if (bytes > 0) memcpy(rows, pli_msg_body(msg), bytes);
    pthread_mutex_lock(&d->mail_lock);
    if (msg->head.arg64 > d->asked_first && msg->head.arg64 <= d->rounds && msg->head.arg64 > m->sheet_round) {
        pli_free(m->sheet);
        m->sheet = rows;
        m->sheet_rows = (int64_t)(bytes / row_bytes);
        m->sheet_round = msg->head.arg64;
        rows = NULL;
    }
    pthread_mutex_unlock(&d->mail_lock);
    pli_free(rows);
    atomic_fetch_add(&d->came, 1);
    pli_futex_wake(&d->came, INT32_MAX);
}

void pli_doctor_control(pli_world *world, const pli_msg *msg) {
    if (world->doctor->mail == NULL || pli_world_is_local(world, msg->head.src)) return;
    if (msg->head.kind == PLI_CONTROL_ASK) answer(world, msg);
    if (msg->head.kind == PLI_CONTROL_LOOK) take_answer(world, msg);
    if (msg->head.kind == PLI_CONTROL_ASK_SHEET) answer_sheet(world, msg);
    if (msg->head.kind == PLI_CONTROL_SHEET) take_sheet(world, msg);
}
