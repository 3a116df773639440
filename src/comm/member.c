/* Membership: who has ended, and what that means for the others. In this version the death of a rank loses the job; a
 * rank that leaves in good order loses only the waits that need it. */
#include <string.h>

#include "comm/rounds.h"
#include "comm/world.h"

static void lose(pli_world *world, const plait_error *why) { /* under world->lock */
    if (atomic_load_explicit(&world->lost, memory_order_relaxed)) return;
    world->lost_why = *why;
    atomic_store_explicit(&world->lost, true, memory_order_release);
}

void pli_member_reason(plait_error *why, int32_t rank, const char *text) {
    pli_fail(why, PLAIT_EPEER, "rank %d has failed: %.440s", rank, text[0] != '\0' ? text : "it gave no reason");
    why->rank = rank;
}

void pli_world_member(pli_world *world, pli_member_kind kind, int32_t rank, const plait_error *why) {
    pthread_mutex_lock(&world->lock);
    if (atomic_load_explicit(&world->ended[rank], memory_order_relaxed) != 0) {
        pthread_mutex_unlock(&world->lock);
        return;
    }
    int32_t           n = atomic_load_explicit(&world->n_events, memory_order_relaxed);
    pli_member_event *event = &world->events[n];
    *event = (pli_member_event){ .kind = kind, .rank = rank, .epoch = (uint32_t)n + 2, .why = { .rank = rank } };
    if (kind == PLI_MEMBER_DIED) {
        pli_member_reason(&event->why, rank, why != NULL ? why->text : "");
        lose(world, &event->why);
    }
    atomic_store_explicit(&world->ended[rank], (uint8_t)(kind + 1), memory_order_release);
    atomic_store(&world->n_events, n + 1);
    pthread_mutex_unlock(&world->lock);
    pli_log(world->log, PLAIT_LOG_DEBUG, rank, "comm", kind == PLI_MEMBER_DIED ? "%s" : "has left", event->why.text);
    pli_world_tell(world);
}

void pli_world_fail(pli_world *world, const plait_error *why) {
    pthread_mutex_lock(&world->lock);
    lose(world, why);
    pthread_mutex_unlock(&world->lock);
    pli_log(world->log, PLAIT_LOG_ERROR, why->rank, "comm", "%s", why->text);
    for (int32_t i = 0; i < world->place.count; i++) pli_comm_ring(&world->local[i]);
}

bool pli_world_has_ended(const pli_world *world, int32_t rank) {
    return atomic_load_explicit(&world->ended[rank], memory_order_acquire) != 0;
}

/* Port 0 of every rank is the world's own: kind is a pli_member_kind, the body the reason's text. */
static void tell_others(pli_world *world, int32_t rank, pli_member_kind kind, const char *text) {
    size_t bytes = kind == PLI_MEMBER_DIED ? strlen(text) : 0;
    for (int32_t to = 0; to < world->size; to++) {
        if (pli_world_is_local(world, to)) continue;
        pli_msg *msg = pli_msg_new(bytes);
        if (msg == NULL && bytes > 0) msg = pli_msg_new(bytes = 0);
        if (msg == NULL) continue; /* the transport's close tells them by the lost connection */
        if (bytes > 0) memcpy(pli_msg_body(msg), text, bytes);
        msg->head.kind = (uint16_t)kind;
        msg->head.src = rank;
        msg->head.dst = to;
        msg->head.incarnation = 1;
        msg->head.epoch = (uint32_t)atomic_load(&world->n_events) + 1;
        world->ops->send(world->transport, msg);
    }
}

void pli_world_control(pli_world *world, pli_msg *msg) {
    plait_error why = { .rank = msg->head.src };
    pli_doctor_control(world, msg);
    if (msg->head.kind == PLI_MEMBER_LEFT || msg->head.kind == PLI_MEMBER_DIED) {
        size_t bytes = msg->head.body_bytes < sizeof why.text ? msg->head.body_bytes : sizeof why.text - 1;
        if (bytes > 0) memcpy(why.text, pli_msg_body(msg), bytes);
        pli_world_member(world, (pli_member_kind)msg->head.kind, msg->head.src, &why);
    }
    pli_msg_free(&msg);
}

void pli_world_end_rank(pli_world *world, int32_t rank, plait_status status, const plait_error *why) {
    pli_member_kind kind = status < 0 ? PLI_MEMBER_DIED : PLI_MEMBER_LEFT;
    if (world->place.count < world->size) {
        pli_doctor_mute(world);
        tell_others(world, rank, kind, why->text);
    }
    if (world->ops->drain != NULL) world->ops->drain(world->transport, rank, kind == PLI_MEMBER_LEFT);
    pli_world_member(world, kind, rank, why);
}
