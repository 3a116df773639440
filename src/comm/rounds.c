/* The doctor's rounds. In a first round ranks are looked at along the graph, from those here that wait. If some of them
 * seem to be stuck, rounds with counts follow until the two looks in turn prove it (doctor.h), or something moves.
 *
 * Costs: nothing while nobody waits for longer than LOOK_AFTER_NS; then a look at the ranks of the process each
 * LOOK_EVERY_NS, and one short message each way for every rank elsewhere that is waited for. Such a message is answered
 * by whoever drives the transport there, so also for a rank that computes: silence means that its process, or the way
 * to it, is gone. (Under mpi every process has a thread for that. What it cannot do is answer while all workers are
 * within one large MPI_Allreduce; but then they do not ask either.) Silence is told, and ends nothing: a process that
 * was frozen may come back, and else the wait has a deadline.
 *
 * Fields are the round's (under `lock`, which nobody waits for), or the mail's (under `mail_lock`: answers as they
 * come). */
#include "comm/rounds.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "comm/world.h"

#define LOOK_AFTER_NS  UINT64_C(250000000)
#define LOOK_EVERY_NS  UINT64_C(250000000)
#define PROOF_EVERY_NS UINT64_C(100000000)
#define SERVES_EVERY_NS UINT64_C(2000000000) /* while all that waits here are servers, for the end */
#define PATIENCE_NS    UINT64_C(400000000)   /* for answers within a round                         */
#define POLL_NS        UINT64_C(5000000)
#define SILENT_NS      UINT64_C(8000000000)
enum { ASK_ALL_MAX = 64 };

#ifdef PLI_TESTING /* tests hasten it, so that healthy runs are looked at often, in the midst of everything */
_Atomic uint64_t pli_doctor_haste = 1, pli_doctor_rounds, pli_doctor_doubts;
#define HASTE (pli_doctor_haste)
#define COUNT(counter) ((void)(counter)++)
#else
#define HASTE UINT64_C(1)
#define COUNT(counter) ((void)0)
#endif

typedef struct mail {
    pli_look look;
    uint64_t round, counted_round; /* of the look, and of the last one with counts */
    uint64_t heard_ns;
    uint64_t *moved; /* sent [size], received [size], of counted_round */
} mail;

struct pli_doctor {
    _Atomic uint64_t next_ns; /* nobody needs a turn earlier */
    pthread_mutex_t  lock;
    uint64_t         number;  /* of the round                                  */
    bool             asking;  /* answers are still to come                     */
    bool             proving; /* `before` holds looks at which some seemed stuck */
    uint64_t         until_ns;
    pli_look        *now, *before; /* [size] */
    bool            *stuck, *wanted, *asked; /* [size] */
    uint64_t        *asked_since_ns; /* [size] without an answer; 0: not asked */
    _Atomic bool    *silent; /* [size] and that was told; answers end it at once */

    pthread_mutex_t mail_lock;
    mail           *mail;   /* [size]; NULL in one process */
    bool            muted;  /* the rank here has ended: see ask */
    uint64_t        rounds, asked_first; /* the last number handed out; from where on */
    _Atomic uint32_t came;  /* counts answers; a report sleeps on it */
    _Atomic uint64_t *sent, *received; /* [size] messages to and from ranks of other processes       */
    _Atomic int32_t  *flying; /* [size, size] on their way between two ranks here, where they are carried */
};

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
    d->rounds = pli_now_ns(); /* an answer to a question of an earlier run of this process has a lower number */
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
    for (int32_t r = 0; d->mail != NULL && r < world->size; r++) pli_free(d->mail[r].moved);
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

/* Does nothing lie before its machines, or within one? */
static bool is_at_rest(plait_comm *comm) {
    for (uint32_t p = 1; p < PLI_PORT_MAX; p++) {
        pli_port *port = &comm->ports[p];
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

static void look_at(plait_comm *comm, uint64_t now_ns, pli_look *look) {
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
    msg->head.epoch = (uint32_t)atomic_load(&world->n_events) + 1;
    msg->head.incarnation = 1;
    msg->head.arg64 = round;
    msg->head.arg32 = counted;
    return msg;
}

/* Under mail_lock. Once this process has told that its rank has ended, it sends nothing any more: the others may close
 * as soon as they have heard that of all, and what comes after would be left over for whoever opens next. */
static void ask(pli_world *world, int32_t rank, uint64_t round, bool counted) {
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
    look_at(pli_world_comm(world, question->head.dst), pli_world_now(world), &look);
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

static void tell_life(pli_world *world, int32_t rank) {
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
    mail *m = &d->mail[msg->head.src];
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
    tell_life(world, msg->head.src);
    atomic_fetch_add(&d->came, 1);
    pli_futex_wake(&d->came, INT32_MAX);
}

void pli_doctor_control(pli_world *world, const pli_msg *msg) {
    if (world->doctor->mail == NULL || pli_world_is_local(world, msg->head.src)) return;
    if (msg->head.kind == PLI_CONTROL_ASK) answer(world, msg);
    if (msg->head.kind == PLI_CONTROL_LOOK) take_answer(world, msg);
}

/* --- a round ------------------------------------------------------------------------------------------------------ */

static void want(pli_world *world, int32_t rank) {
    if (rank >= 0 && rank < world->size) world->doctor->wanted[rank] = true;
}

static void want_those(pli_world *world, int32_t first, int32_t n) {
    for (int32_t i = 0; i < n; i++) want(world, first + i);
}

/* Whom a wait points to. Of the workers that a collective lacks a transport may know one only; where there are too many
 * to ask them all, that one is asked, and points on. */
static void want_targets(pli_world *world, const pli_wait *on) {
    int32_t workers = world->place.workers;
    want(world, on->peer);
    switch ((pli_wait_kind)on->kind) {
    case PLI_WAIT_RECV:
        if (on->peer < 0) want_those(world, 0, world->size);
        return;
    case PLI_WAIT_COLLECTIVE:
    case PLI_WAIT_WORKERS:
        if (workers <= ASK_ALL_MAX) want_those(world, 0, workers);
        return;
    case PLI_WAIT_TABLE:
        want_those(world, on->first_server, on->servers);
        if (on->any) want_those(world, 0, workers);
        return;
    case PLI_WAIT_OTHER:
    case PLI_WAIT_KINDS: return;
    }
}

/* Asks where nobody was asked yet in this round; takes the answers that are there. true: some are still to come. */
static bool gather(pli_world *world, uint64_t now_ns) {
    pli_doctor *d = world->doctor;
    bool        more = true, missing = false;
    pthread_mutex_lock(&d->mail_lock);
    while (more) {
        more = missing = false;
        for (int32_t r = 0; r < world->size; r++) {
            if (!d->wanted[r] || d->now[r].state != PLI_LOOK_NONE) continue;
            if (pli_world_has_ended(world, r)) {
                d->now[r] = (pli_look){ .state = PLI_LOOK_ENDED, .begun = UINT64_MAX, .joined = UINT64_MAX };
                continue; /* its machines know how far it went */
            }
            if (!d->asked[r]) {
                d->asked[r] = true;
                if (d->asked_since_ns[r] == 0) d->asked_since_ns[r] = now_ns;
                ask(world, r, d->number, d->proving);
            }
            const mail *m = &d->mail[r];
            if (m->round < d->number) {
                missing = true;
                continue;
            }
            d->now[r] = m->look;
            d->asked_since_ns[r] = 0;
            if (m->look.state == PLI_LOOK_WAITS) want_targets(world, &m->look.on);
            more = true;
        }
    }
    pthread_mutex_unlock(&d->mail_lock);
    return missing;
}

static void look_here(pli_world *world, uint64_t now_ns) {
    pli_doctor *d = world->doctor;
    for (int32_t i = 0; i < world->place.count; i++) {
        pli_look *look = &d->now[world->place.first + i];
        look_at(&world->local[i], now_ns, look);
        want_targets(world, &look->on);
    }
}

static void begin_round(pli_world *world, uint64_t now_ns) {
    pli_doctor *d = world->doctor;
    size_t      size = (size_t)world->size;
    memset(d->now, 0, size * sizeof *d->now);
    memset(d->wanted, 0, size * sizeof *d->wanted);
    memset(d->asked, 0, size * sizeof *d->asked);
    pthread_mutex_lock(&d->mail_lock);
    d->number = ++d->rounds;
    pthread_mutex_unlock(&d->mail_lock);
    d->until_ns = now_ns + PATIENCE_NS;
    d->asking = true;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

/* Is no message between the ranks in question, the stuck ones and (since they may carry on what these have sent) the
 * others that were asked? */
static bool nothing_on_its_way(const pli_world *world) {
    pli_doctor *d = world->doctor;
    bool        quiet = true;
    size_t      size = (size_t)world->size;
    if (world->place.resend_after_ns > 0) {
        for (size_t r = 0; quiet && r < size; r++) quiet = d->now[r].state == PLI_LOOK_NONE || !d->now[r].owes;
        return quiet;
    }
    for (size_t i = 0; d->flying != NULL && quiet && i < size * size; i++)
        quiet = (!d->stuck[i / size] && !d->stuck[i % size]) || atomic_load(&d->flying[i]) == 0;
    if (d->mail == NULL) return quiet;
    pthread_mutex_lock(&d->mail_lock);
    for (int32_t a = 0; quiet && a < world->size; a++) {
        if (d->now[a].state != PLI_LOOK_WAITS && d->now[a].state != PLI_LOOK_RUNS) continue;
        for (int32_t b = 0; quiet && b < world->size; b++) {
            bool here_a = pli_world_is_local(world, a), here_b = pli_world_is_local(world, b);
            if (a == b || (d->now[b].state != PLI_LOOK_WAITS && d->now[b].state != PLI_LOOK_RUNS)) continue;
            if ((!here_a && d->mail[a].counted_round < d->number) ||
                (!here_b && d->mail[b].counted_round < d->number)) {
                quiet = false;
                continue;
            }
            uint64_t sent = here_a ? atomic_load(&d->sent[b]) : d->mail[a].moved[b];
            uint64_t received = here_b ? atomic_load(&d->received[a]) : d->mail[b].moved[world->size + a];
            quiet = sent == received;
        }
    }
    pthread_mutex_unlock(&d->mail_lock);
    return quiet;
}

static bool is_proven(const pli_world *world, const pli_ward *ward) {
    const pli_doctor *d = world->doctor;
    for (int32_t r = 0; r < ward->size; r++)
        if (d->stuck[r] && !pli_doctor_confirms(&d->before[r], &d->now[r])) return false;
    return nothing_on_its_way(world);
}

static void doom(plait_comm *comm, uint64_t wait, const plait_error *why) {
    pthread_mutex_lock(&comm->failed_lock);
    if (atomic_load_explicit(&comm->doomed, memory_order_relaxed) != wait) { /* else the first cause stays */
        comm->doomed_why = *why;
        atomic_store_explicit(&comm->doomed, wait, memory_order_release);
    }
    pthread_mutex_unlock(&comm->failed_lock);
    pli_comm_ring(comm);
}

/* The first of them here says for all what they wait for, since an error's text may be too short for it. */
static void say_waits(const pli_world *world, const pli_ward *ward) {
    const pli_doctor *d = world->doctor;
    int32_t           first = 0;
    while (first < ward->size && !d->stuck[first]) first++;
    if (first == ward->size || !pli_world_is_local(world, first)) return;
    for (int32_t r = first; r < ward->size; r++) {
        char text[480];
        if (!d->stuck[r]) continue;
        pli_doctor_tell(&ward->look[r], r, text, sizeof text);
        pli_log(world->log, PLAIT_LOG_ERROR, r, "comm", "%s, which never comes", text);
    }
}

static void sentence(pli_world *world, const pli_ward *ward) {
    const pli_doctor *d = world->doctor;
    plait_error       why;
    say_waits(world, ward);
    for (int32_t i = 0; i < world->place.count; i++) {
        int32_t r = world->place.first + i;
        if (!d->stuck[r]) continue;
        pli_doctor_explain_stuck(ward, d->stuck, r, &why);
        doom(&world->local[i], ward->look[r].wait, &why);
    }
}

/* Different calls at the same place need no more proof than that both ranks still are in them. */
static bool find_mismatches(pli_world *world, const pli_ward *ward) {
    const pli_doctor *d = world->doctor;
    bool              any = false;
    for (int32_t i = 0; i < world->place.count; i++) {
        int32_t r = world->place.first + i, other = pli_doctor_mismatch(ward, r);
        if (other < 0) continue;
        any = true;
        if (!d->proving || d->before[r].state != PLI_LOOK_WAITS || d->before[other].state != PLI_LOOK_WAITS ||
            d->before[r].wait != d->now[r].wait || d->before[other].wait != d->now[other].wait)
            continue;
        plait_error why;
        pli_doctor_explain_mismatch(ward, r, other, &why);
        doom(&world->local[i], ward->look[r].wait, &why);
    }
    return any;
}

/* Do the looks that are kept still hold for all that seem stuck now? Then the proof goes on from them. */
static bool are_same(const pli_doctor *d, const pli_ward *ward) {
    for (int32_t r = 0; r < ward->size; r++)
        if (d->stuck[r] &&
            (!d->before[r].settled || d->before[r].state != PLI_LOOK_WAITS || d->before[r].wait != d->now[r].wait))
            return false;
    return true;
}

/* "15:04:05", or of a simulated time "second 12.5". */
static void tell_time(const pli_world *world, uint64_t now_ns, uint64_t at_ns, char *text, size_t bytes) {
    struct tm parts;
    time_t    at = time(NULL) - (time_t)((now_ns - at_ns) / 1000000000);
    if (world->ops->now != NULL || localtime_r(&at, &parts) == NULL || strftime(text, bytes, "%H:%M:%S", &parts) == 0)
        snprintf(text, bytes, "second %.1f", (double)at_ns * 1e-9);
}

/* Who tells that others are silent: the rank of this process; of those of a simulated cluster the first that waits,
 * moves, and hears most of the others, since a rank that is cut off hears nobody. -1: none. */
static int32_t observer(const pli_world *world) {
    const pli_doctor *d = world->doctor;
    if (d->mail != NULL) return world->place.first;
    for (int32_t r = 0; world->ops->silent_since != NULL && r < world->size; r++) {
        int32_t silent = 0;
        if (d->now[r].state != PLI_LOOK_WAITS || world->ops->silent_since(world->transport, r, r) != 0) continue;
        for (int32_t o = 0; o < world->size; o++) silent += world->ops->silent_since(world->transport, r, o) != 0;
        if (2 * silent <= world->size) return r;
    }
    return -1;
}

/* 0: it is heard, or nobody has asked. */
static uint64_t silent_since(const pli_world *world, int32_t me, int32_t rank) {
    const pli_doctor *d = world->doctor;
    if (d->mail != NULL) return d->asked_since_ns[rank];
    return d->wanted[rank] ? world->ops->silent_since(world->transport, me, rank) : 0;
}

static void tell_silence(pli_world *world, uint64_t now_ns) {
    pli_doctor *d = world->doctor;
    int32_t     me = observer(world);
    for (int32_t r = 0; me >= 0 && r < world->size; r++) {
        uint64_t since_ns = silent_since(world, me, r);
        if (since_ns == 0 && d->mail == NULL) tell_life(world, r);
        if (since_ns == 0 || now_ns - since_ns < SILENT_NS || pli_world_has_ended(world, r)) continue;
        if (atomic_exchange(&d->silent[r], true)) continue;
        char text[480], since[32];
        pli_doctor_tell(&d->now[me], me, text, sizeof text);
        tell_time(world, now_ns, since_ns, since, sizeof since);
        pli_log(world->log, PLAIT_LOG_ERROR, me, "comm", "rank %d: no sign of life since %s (%.1f s); %s", r, since,
                (double)(now_ns - since_ns) * 1e-9, text);
    }
}

static void judge(pli_world *world, uint64_t now_ns) {
    pli_doctor *d = world->doctor;
    pli_ward    ward = { .look = d->now, .size = world->size, .workers = world->place.workers };
    bool        any = false;
    int32_t     n = pli_doctor_stuck(&ward, d->stuck);
    COUNT(pli_doctor_rounds);
    for (int32_t i = 0; i < world->place.count; i++) any |= d->stuck[world->place.first + i];
    any |= find_mismatches(world, &ward);
    tell_silence(world, now_ns);
    if (any && d->proving && is_proven(world, &ward)) sentence(world, &ward);
    if (any && !(d->proving && n > 0 && are_same(d, &ward))) {
        pli_look *kept = d->before;
        d->before = d->now;
        d->now = kept;
    }
    if (any) COUNT(pli_doctor_doubts);
    d->proving = any;
}

static uint64_t pause_ns(const pli_world *world) {
    const pli_doctor *d = world->doctor;
    if (d->proving) return PROOF_EVERY_NS;
    for (int32_t i = 0; i < world->place.count; i++) {
        uint8_t kind = d->now[world->place.first + i].on.kind;
        if (kind != PLI_WAIT_WORKERS && kind != PLI_WAIT_OTHER) return LOOK_EVERY_NS;
    }
    return SERVES_EVERY_NS;
}

uint64_t pli_doctor_turn(plait_comm *comm, uint64_t start_ns, uint64_t now_ns) {
    pli_world  *world = comm->world;
    pli_doctor *d = world->doctor;
    uint64_t    next_ns = atomic_load_explicit(&d->next_ns, memory_order_relaxed);
    if (d->muted) return PLI_NEVER; /* the rank has ended, and nobody waits for it; its own thread has set it */
    if (now_ns < start_ns + LOOK_AFTER_NS / HASTE) return start_ns + LOOK_AFTER_NS / HASTE;
    if (now_ns < next_ns) return next_ns;
    if (pthread_mutex_trylock(&d->lock) != 0) return now_ns + POLL_NS / HASTE;
    if (!d->asking) begin_round(world, now_ns);
    look_here(world, now_ns);
    if (gather(world, now_ns) && now_ns < d->until_ns) {
        next_ns = now_ns + POLL_NS / HASTE;
    } else {
        d->asking = false;
        judge(world, now_ns);
        next_ns = now_ns + pause_ns(world) / HASTE;
    }
    atomic_store_explicit(&d->next_ns, next_ns, memory_order_relaxed);
    pthread_mutex_unlock(&d->lock);
    return next_ns;
}

/* --- reports ------------------------------------------------------------------------------------------------------ */

/* Looks at all ranks, of other processes as far as they answer within timeout_ns. Any thread, also while rounds go on:
 * the mail is for both. */
static void look_at_all(pli_world *world, uint64_t timeout_ns, pli_look *looks) {
    pli_doctor *d = world->doctor;
    uint64_t    number = 0, until_ns = pli_world_now(world) + timeout_ns;
    for (int32_t i = 0; i < world->place.count; i++)
        look_at(&world->local[i], pli_world_now(world), &looks[world->place.first + i]);
    if (d->mail == NULL) return;
    pthread_mutex_lock(&d->mail_lock);
    number = ++d->rounds;
    for (int32_t r = 0; r < world->size; r++)
        if (!pli_world_is_local(world, r) && !pli_world_has_ended(world, r)) ask(world, r, number, false);
    pthread_mutex_unlock(&d->mail_lock);
    for (bool missing = true; missing;) {
        uint32_t came = atomic_load(&d->came);
        missing = false;
        pthread_mutex_lock(&d->mail_lock);
        for (int32_t r = 0; r < world->size; r++) {
            if (pli_world_is_local(world, r)) continue;
            if (pli_world_has_ended(world, r)) looks[r] = (pli_look){ .state = PLI_LOOK_ENDED };
            else if (d->mail[r].round >= number) looks[r] = d->mail[r].look;
            else missing = true;
        }
        pthread_mutex_unlock(&d->mail_lock);
        uint64_t now_ns = pli_world_now(world);
        if (missing && now_ns >= until_ns) return;
        if (missing) pli_futex_wait(&d->came, came, until_ns - now_ns);
    }
}

static int32_t add_line(char *text, size_t bytes, size_t *at, const char *line) {
    int n = *at < bytes ? snprintf(text + *at, bytes - *at, "%s\n", line) : 0;
    *at += (size_t)n;
    return 1;
}

int32_t plait_comm_waits(const plait_comm *comm, char *text, size_t bytes) {
    if (comm == NULL || (text == NULL && bytes > 0)) return 0;
    pli_world *world = comm->world;
    int32_t    lines = 0;
    size_t     at = 0;
    if (bytes > 0) text[0] = '\0';
    for (int32_t i = 0; i < world->place.count; i++) {
        pli_look look;
        char     line[560];
        look_at(&world->local[i], pli_world_now(world), &look);
        if (look.what[0] == '\0') continue;
        pli_doctor_tell(&look, world->local[i].rank, line, sizeof line);
        lines += add_line(text, bytes, &at, line);
    }
    return lines;
}

int32_t plait_comm_doctor(const plait_comm *comm, uint64_t timeout_ns, char *text, size_t bytes) {
    if (comm == NULL || (text == NULL && bytes > 0)) return 0;
    pli_world *world = comm->world;
    pli_look  *looks = pli_calloc((size_t)world->size, sizeof *looks);
    int32_t    lines = 0;
    size_t     at = 0;
    if (bytes > 0) text[0] = '\0';
    if (looks == NULL) return 0;
    look_at_all(world, timeout_ns, looks);
    for (int32_t r = 0; r < world->size; r++) {
        char line[560];
        pli_doctor_tell(&looks[r], r, line, sizeof line);
        lines += add_line(text, bytes, &at, line);
    }
    pli_free(looks);
    return lines;
}
