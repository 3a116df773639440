/* Membership: which ranks have ended, and what that means for the others. The death of a rank loses the job, unless it
 * goes on without its dead (pli_comm_survive); a rank that leaves in good order ends only the waits that need it.
 *
 * There are three ways to learn of a death: the rank tells it itself, when its body fails; the transport sees that a
 * process is gone; or the heartbeat finds a process silent. The third is a suspicion, and so is the second where a cut
 * link may look the same. In a job that goes on without its dead, nothing follows from that but a vote: the next view
 * says who has died (views.h). In any other job the first news ends it. A process that finds another silent tells all
 * others how, so that they need not find it themselves. */
#include <stdio.h>
#include <string.h>

#include "comm/membership.h"
#include "comm/rounds.h"
#include "comm/views.h"
#include "comm/world.h"

static void lose(pli_members *members, const plait_error *why) { /* under world->lock */
    if (atomic_load_explicit(&members->lost, memory_order_relaxed)) return;
    members->lost_why = *why;
    atomic_store_explicit(&members->lost, true, memory_order_release);
}

void pli_member_reason(plait_error *why, int32_t rank, const char *text) {
    pli_fail(why, PLAIT_EPEER, "rank %d has failed: %.440s", rank, text[0] != '\0' ? text : "it gave no reason");
    why->rank = rank;
}

/* A death that is also the end of this rank if it dies with the dead. Under world->lock, before others can see it. */
static void die_with(plait_comm *comm, const plait_error *how) {
    plait_error why;
    int32_t     i = 0;
    while (i < comm->n_fellows && comm->fellows[i] != how->rank) i++;
    if (i == comm->n_fellows || atomic_load(&comm->failed)) return;
    pli_fail(&why, PLAIT_EPEER, "%.400s; rank %d ends with it", how->text, comm->rank);
    why.rank = comm->rank;
    atomic_store(&comm->killed, true);
    pli_comm_fail(comm, &why);
}

/* mute: why is the whole text, written by others. */
bool pli_members_append(pli_members *members, pli_member_kind kind, int32_t rank, const plait_error *why, bool mute,
                        uint32_t view) {
    pli_world *world = members->world;
    pthread_mutex_lock(&world->lock);
    const uint8_t ended = atomic_load_explicit(&members->ended[rank], memory_order_relaxed);
    const bool    joins = kind == PLI_MEMBER_JOINED;
    if (ended != (joins ? PLI_MEMBER_DIED + 1 : 0)) {
        pthread_mutex_unlock(&world->lock);
        return false;
    }
    members->life[rank] += joins;
    int32_t           n = atomic_load_explicit(&members->n_events, memory_order_relaxed);
    pli_member_event *event = &members->events[n];
    const uint32_t    now = atomic_load_explicit(&members->view, memory_order_relaxed);
    *event = (pli_member_event){
        .kind = kind, .rank = rank, .epoch = view > 0 ? view : kind == PLI_MEMBER_DIED ? now + 1 : now,
        .why = { .rank = rank }, .life = members->life[rank], .mute = mute
    };
    atomic_store_explicit(&members->view, event->epoch, memory_order_relaxed);
    if (kind == PLI_MEMBER_DIED) {
        if (mute) event->why = *why;
        else pli_member_reason(&event->why, rank, why != NULL ? why->text : "");
        if (!atomic_load(&world->survives)) lose(members, &event->why);
        for (int32_t i = 0; i < world->place.count; i++)
            if (world->local[i].members == members) die_with(&world->local[i], &event->why);
    }
    atomic_store_explicit(&members->ended[rank], joins ? 0 : (uint8_t)(kind + 1), memory_order_release);
    atomic_store(&members->n_events, n + 1);
    pthread_mutex_unlock(&world->lock);
    pli_log(world->log, PLAIT_LOG_DEBUG, rank, "comm", "%s",
            kind == PLI_MEMBER_DIED ? event->why.text : joins ? "lives anew" : "has left");
    return true;
}

static void add_event(pli_world *world, pli_member_kind kind, int32_t rank, const plait_error *why, bool mute) {
    if (pli_members_append(world->members, kind, rank, why, mute, 0)) pli_members_announce(world->members);
}

void pli_world_member(pli_world *world, pli_member_kind kind, int32_t rank, const plait_error *why) {
    if (world->apart != NULL) {
        pli_apart_end(world, kind, rank, why);
        return;
    }
    if (kind == PLI_MEMBER_DIED && pli_views_attest(world->members, rank, why, false)) return;
    add_event(world, kind, rank, why, false);
}

void pli_world_name(const pli_world *world, int32_t rank, char *text, size_t bytes) {
    if (world->apart != NULL) { /* the hosts are simulated, and have no names */
        snprintf(text, bytes, "rank %d", rank);
        return;
    }
    const char *host = world->place.host_name != NULL ? world->place.host_name[rank] : world->place.host;
    snprintf(text, bytes, "rank %d on host %s", rank, host);
}

static void tell_how(const pli_world *world, int32_t rank, const char *how, plait_error *why) {
    char name[128];
    pli_world_name(world, rank, name, sizeof name);
    pli_fail(why, PLAIT_EPEER, "%s %.300s", name, how);
    why->rank = rank;
}

/* Tells how this process has seen a rank die, or fall silent, to ranks that may not have seen it. */
static void tell_death(pli_world *world, int32_t dead, const char *how) {
    for (int32_t to = 0; to < world->size; to++)
        if (to == dead || (!pli_world_is_local(world, to) && !pli_world_has_ended(world, to)))
            pli_doctor_tell_control(world, to, PLI_CONTROL_DEAD, (uint32_t)dead, how, strlen(how));
}

void pli_world_died(pli_world *world, int32_t rank, const char *how) {
    plait_error why;
    tell_how(world, rank, how, &why);
    /* The words come before the view, which has none. In large runs a few tell them, one of whom decides as a rule. */
    const bool speaks = world->size <= PLI_HEARTBEAT_ALL || world->place.first < PLI_HEARTBEAT_WATCHED;
    if (speaks && pli_views_decide(world->members) && !pli_world_has_ended(world, rank)) tell_death(world, rank, how);
    if (!pli_views_attest(world->members, rank, &why, true)) add_event(world, PLI_MEMBER_DIED, rank, &why, true);
}

void pli_world_missed_rank(pli_world *world, int32_t rank, const char *how) {
    plait_error why;
    tell_how(world, rank, how, &why);
    if (!pli_views_suspect(world->members, rank, &why)) add_event(world, PLI_MEMBER_DIED, rank, &why, true);
}

int32_t pli_world_dead_below(pli_world *world, int32_t below, plait_error *why) {
    int32_t n = atomic_load(&world->members->n_events);
    for (int32_t i = 0; i < n; i++) { /* an event in the log does not change any more */
        const pli_member_event *event = &world->members->events[i];
        if (event->kind != PLI_MEMBER_DIED || event->rank >= below) continue;
        *why = event->why;
        return event->rank;
    }
    return -1;
}

bool pli_comm_next_death(const plait_comm *comm, int32_t *next, plait_error *why_out) {
    const pli_members *members = comm->members;
    while (*next < atomic_load(&members->n_events)) {
        const pli_member_event *event = &members->events[(*next)++]; /* an event in the log does not change any more */
        if (event->kind != PLI_MEMBER_DIED) continue;
        *why_out = event->why;
        return true;
    }
    return false;
}

plait_status pli_world_missed(pli_world *world, const pli_coll *coll, int32_t worker, plait_error *err) {
    plait_error why;
    if (pli_world_dead_below(world, world->place.workers, &why) < 0) return pli_coll_missed(coll, worker, err);
    if (err != NULL) *err = why;
    return why.code;
}

void pli_comm_survive(plait_comm *comm) { atomic_store(&comm->world->survives, true); }
void pli_comm_renews(plait_comm *comm) { atomic_store(&comm->world->renews, true); }

plait_status pli_comm_die_with(plait_comm *comm, int32_t n, const int32_t *ranks, plait_error *err) {
    pli_world *world = comm->world;
    int32_t   *own = n > 0 ? pli_array((size_t)n, sizeof *own) : NULL;
    if (n > 0 && own == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a list of %d ranks", n);
    for (int32_t i = 0; i < n; i++) own[i] = ranks[i];
    pthread_mutex_lock(&world->lock);
    pli_free(comm->fellows);
    comm->fellows = own;
    comm->n_fellows = n;
    for (int32_t i = 0; i < atomic_load(&comm->members->n_events); i++)
        if (comm->members->events[i].kind == PLI_MEMBER_DIED) die_with(comm, &comm->members->events[i].why);
    pthread_mutex_unlock(&world->lock);
    return PLAIT_OK;
}

void pli_comm_kill(plait_comm *comm, const plait_error *why) {
    pli_world *world = comm->world;
    comm->died_in = comm->in_job ? comm->jobs : 0;
    atomic_store(&comm->killed, true);
    pli_comm_fail(comm, why);
    if (world->ops->drain != NULL) return; /* the transport wakes the rank itself, and tells the others after a while */
    pli_comm_ring(comm);
    pli_world_member(world, PLI_MEMBER_DIED, comm->rank, why);
}

void pli_world_fail(pli_world *world, const plait_error *why) {
    pthread_mutex_lock(&world->lock);
    for (int32_t i = 0; i < world->n_members; i++) lose(&world->members[i], why);
    pthread_mutex_unlock(&world->lock);
    pli_log(world->log, PLAIT_LOG_ERROR, why->rank, "comm", "%s", why->text);
    for (int32_t i = 0; i < world->place.count; i++) pli_comm_ring(&world->local[i]);
}

bool pli_world_has_ended(const pli_world *world, int32_t rank) {
    return pli_members_have_end(pli_world_members(world, rank), rank);
}

bool pli_world_is_gone(const pli_world *world, int32_t rank) {
    int32_t n = atomic_load(&world->members->n_events);
    for (int32_t i = 0; i < n; i++)
        if (world->members->events[i].mute && (rank < 0 || world->members->events[i].rank == rank)) return true;
    for (int32_t r = rank < 0 ? 0 : rank; r < (rank < 0 ? world->size : rank + 1); r++)
        if (pli_views_is_unheard(world->members, r)) return true;
    return false;
}

/* Port 0 of every rank belongs to the world: kind is a pli_member_kind. The body is the reason's text, or the last word
 * of a rank that leaves. */
static void tell_others(pli_world *world, int32_t rank, pli_member_kind kind, const char *text, const pli_msg *word) {
    const void *body = kind == PLI_MEMBER_DIED ? text : word != NULL ? pli_msg_body(word) : NULL;
    size_t      bytes = kind == PLI_MEMBER_DIED ? strlen(text) : word != NULL ? word->head.body_bytes : 0;
    for (int32_t to = 0; to < world->size; to++) {
        if (pli_world_is_local(world, to)) continue;
        pli_msg *msg = pli_msg_new(bytes);
        if (msg == NULL && bytes > 0) msg = pli_msg_new(bytes = 0);
        if (msg == NULL) continue; /* they will see the lost connection when the transport closes */
        if (bytes > 0) memcpy(pli_msg_body(msg), body, bytes);
        msg->head.kind = (uint16_t)kind;
        msg->head.src = rank;
        msg->head.dst = to;
        msg->head.incarnation = 1;
        msg->head.epoch = pli_world_view(world);
        world->ops->send(world->transport, msg);
    }
}

/* --- heartbeats --------------------------------------------------------------------------------------------------- */

uint64_t pli_world_beat(pli_world *world, uint64_t now_ns) {
    pli_heartbeat *h = &world->heart;
    for (int32_t r = 0; world->heard != NULL && r < world->size; r++) {
        const uint32_t view = atomic_exchange_explicit(&world->heard[r], 0, memory_order_relaxed);
        if (h->size > 0 && pli_world_has_ended(world, r)) pli_heartbeat_forget(h, r);
        if (view == 0) continue;
        if (h->size > 0) pli_heartbeat_hear(h, r);
        pli_views_hear(world->members, r, view);
    }
    const uint64_t turn_ns = pli_views_turn(world->members, now_ns);
    if (h->size == 0) return turn_ns;
    pli_heartbeat_out out = { .beat = world->beats, .silent = world->beats + world->size };
    uint64_t          next_ns = pli_heartbeat_turn(h, now_ns, &out);
    for (int32_t i = 0; i < out.beats; i++)
        pli_doctor_tell_control(world, out.beat[i], PLI_CONTROL_BEAT, 0, NULL, 0);
    for (int32_t i = 0; i < out.silents; i++) {
        char how[96];
        snprintf(how, sizeof how, "has not been heard for %.3g s: it is frozen, or its link is cut",
                 (double)h->patience_ns * 1e-9);
        tell_death(world, out.silent[i], how);
        pli_world_missed_rank(world, out.silent[i], how);
    }
    return turn_ns < next_ns ? turn_ns : next_ns;
}

/* Another process has found a rank silent, perhaps this one. */
static void take_death(pli_world *world, const pli_msg *msg) {
    int32_t rank = (int32_t)msg->head.arg32;
    char    how[256], name[128];
    size_t  bytes = msg->head.body_bytes < sizeof how ? msg->head.body_bytes : sizeof how - 1;
    if (bytes > 0) memcpy(how, pli_msg_body(msg), bytes);
    for (size_t i = 0; i < bytes; i++)
        if (how[i] < ' ' || how[i] > '~') how[i] = '?';
    how[bytes] = '\0';
    if (rank < 0 || rank >= world->size) return;
    plait_error why;
    tell_how(world, rank, how, &why);
    if (pli_views_note(world->members, rank, &why)) return; /* a view decides, also on this rank */
    if (!pli_world_is_local(world, rank)) {
        add_event(world, PLI_MEMBER_DIED, rank, &why, true);
        return;
    }
    pli_world_name(world, msg->head.src, name, sizeof name);
    pli_fail(&why, PLAIT_EPEER, "%s took this rank for lost, and the others go on or have ended without it",
             name);
    why.rank = rank;
    pli_world_fail(world, &why);
}

void pli_world_control(pli_world *world, pli_msg *msg) {
    plait_error why = { .rank = msg->head.src };
    pli_doctor_control(world, msg);
    if (msg->head.kind == PLI_CONTROL_DEAD) take_death(world, msg);
    if (msg->head.kind >= PLI_MEMBERSHIP_STATE && msg->head.kind < PLI_MEMBERSHIP_KINDS)
        pli_views_take(world->members, msg);
    if (msg->head.kind == PLI_MEMBER_LEFT) pli_views_left(world->members, msg);
    if (msg->head.kind == PLI_MEMBER_LEFT || msg->head.kind == PLI_MEMBER_DIED) {
        size_t bytes = msg->head.body_bytes < sizeof why.text ? msg->head.body_bytes : sizeof why.text - 1;
        if (bytes > 0 && msg->head.kind == PLI_MEMBER_DIED) memcpy(why.text, pli_msg_body(msg), bytes);
        pli_world_member(world, (pli_member_kind)msg->head.kind, msg->head.src, &why);
    }
    pli_msg_free(&msg);
}

/* A rank that fails because another has died without a word is not the cause: the others must hear of that death
 * first. */
static void tell_first_cause(pli_world *world) {
    char name[128];
    if (atomic_load(&world->members->n_events) == 0 || !world->members->events[0].mute) return;
    int32_t rank = world->members->events[0].rank;
    pli_world_name(world, rank, name, sizeof name);
    tell_death(world, rank, world->members->events[0].why.text + strlen(name) + 1);
}

void pli_world_end_rank(pli_world *world, int32_t rank, plait_status status, const plait_error *why) {
    pli_member_kind kind = status < 0 ? PLI_MEMBER_DIED : PLI_MEMBER_LEFT;
    if (world->place.count < world->size) {
        pli_msg *word = pli_views_leave(world->members);
        if (kind == PLI_MEMBER_DIED) tell_first_cause(world);
        pli_doctor_mute(world);
        tell_others(world, rank, kind, why->text, word);
        pli_msg_free(&word);
    }
    if (world->ops->drain != NULL) world->ops->drain(world->transport, rank, kind == PLI_MEMBER_LEFT);
    pli_world_member(world, kind, rank, why);
}
