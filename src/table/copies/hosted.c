/* See hosted.h. */
#include "table/copies/hosted.h"
#include "table/events.h"
#include "table/shown.h"

#include <stdatomic.h>

static void show(const pli_hosted *b, pli_server *replica) {
    replica->sheet = b->sheet;
    replica->group = b->group;
    replica->ranks = b->ranks;
}

/* What a replica that is opened for a move knows from the first (moves.h). */
typedef struct listed {
    pli_list list;
    uint64_t key;
    int32_t  maker;
} listed;

/* known: NULL: the first list. */
static plait_status open_copy(pli_hosted *b, int32_t number, int32_t place, const listed *known, uint64_t now_ns,
                              pli_out *out, plait_error *err) {
    pli_server *replica = b->replica[number] != NULL ? b->replica[number] : pli_calloc(1, sizeof *replica);
    if (replica == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a replica of a server's shards");
    plait_status status = pli_server_open_replica(replica, &b->layout, number, place, b->epoch, b->incarnation, err);
    if (status < 0) {
        if (b->replica[number] == NULL) pli_free(replica);
        return status;
    }
    replica->sink = b->sink;
    if (pli_moves_are_on(&b->layout)) replica->replicas->moves.moved = &b->moved;
    if (known != NULL) pli_replicas_hear_list(replica, &known->list, known->key, known->maker);
    show(b, replica);
    pli_raise_server_job(replica);
    if (b->replica[number] == NULL) b->opened[b->n_opened++] = number;
    b->replica[number] = replica;
    for (int64_t i = 0; i < b->n_events; i++) pli_server_ops.on_member(replica, now_ns, &b->events[i], out);
    return PLAIT_OK;
}

/* Forgets the part of a state that came from a replica that has died since. What workers have said stays. */
static plait_status open_again(pli_hosted *b, int32_t number, int32_t place, uint64_t now_ns, pli_out *out,
                               plait_error *err) {
    pli_server *replica = b->replica[number];
    pli_msg    *early = pli_replicas_give_early(replica);
    const pli_moves *m = &replica->replicas->moves;
    const listed     known = { .list = m->list, .key = m->key, .maker = replica->replicas->maker };
    pli_server_close(replica);
    plait_status status =
        open_copy(b, number, place, pli_moves_are_on(&b->layout) ? &known : NULL, now_ns, out, err);
    while (early != NULL) {
        pli_msg *msg = early;
        early = msg->next;
        if (status < 0) pli_msg_free(&msg);
        else pli_server_ops.on_message(replica, now_ns, msg, out);
    }
    return status;
}

/* Opens the replica of the server's shards, if they have one here from the first. */
static plait_status open_first(pli_hosted *b, int32_t number, plait_error *err) {
    if (pli_moves_are_on(&b->layout)) {
        const pli_list list = pli_moves_first(&b->layout, number);
        const int32_t  place = pli_list_on(&b->layout, &list, b->rank);
        return place >= 0 ? open_copy(b, number, place, NULL, 0, NULL, err) : PLAIT_OK;
    }
    const int32_t place = pli_replica_place(&b->layout, number, b->rank);
    return place > 0 && place < b->layout.replicas ? open_copy(b, number, place, NULL, 0, NULL, err) : PLAIT_OK;
}

plait_status pli_hosted_open(pli_hosted *hosted, const pli_layout *layout, int32_t rank, uint32_t epoch,
                              uint32_t incarnation, const pli_event_sink *sink, plait_error *err) {
    const size_t servers = (size_t)layout->servers;
    *hosted =
        (pli_hosted){ .layout = *layout, .rank = rank, .epoch = epoch, .incarnation = incarnation, .sink = sink };
    hosted->replica = pli_calloc(servers, sizeof *hosted->replica);
    hosted->opened = pli_calloc(servers, sizeof *hosted->opened);
    atomic_init(&hosted->all_gone, false);
    plait_status status = hosted->replica != NULL && hosted->opened != NULL
                              ? PLAIT_OK
                              : pli_fail(err, PLAIT_ENOMEM, "no memory for replicas of servers' shards");
    for (int32_t s = 0; status >= 0 && s < layout->servers; s++)
        status = open_first(hosted, s, err);
    if (status < 0) pli_hosted_close(hosted);
    return status;
}

void pli_hosted_show(pli_hosted *hosted, pli_sheet *sheet, const char *group, const int32_t *ranks) {
    hosted->sheet = sheet;
    hosted->group = group;
    hosted->ranks = ranks;
    for (int32_t i = 0; i < hosted->n_opened; i++) show(hosted, hosted->replica[hosted->opened[i]]);
}

void pli_hosted_hide(pli_hosted *hosted) {
    for (int32_t i = 0; i < hosted->n_opened; i++) pli_shown_server_hide(hosted->replica[hosted->opened[i]]);
}

void pli_hosted_close(pli_hosted *hosted) {
    for (int32_t i = 0; i < hosted->n_opened; i++) {
        pli_server_close(hosted->replica[hosted->opened[i]]);
        pli_free(hosted->replica[hosted->opened[i]]);
    }
    pli_free(hosted->replica);
    pli_free(hosted->opened);
    pli_free(hosted->events);
    *hosted = (pli_hosted){ 0 };
}

static void look_at_ends(pli_hosted *b) {
    bool all = true;
    for (int32_t i = 0; i < b->n_opened; i++)
        all = all && atomic_load_explicit(&b->replica[b->opened[i]]->all_gone, memory_order_relaxed);
    atomic_store_explicit(&b->all_gone, all, memory_order_release);
}

/* Opens a replica at the last place of the list, in place of one of an earlier place that is out, or never began. */
static plait_status open_listed(pli_hosted *b, const pli_msg *places, uint64_t now_ns, pli_out *out, plait_error *err) {
    const int32_t number = places->head.server & (PLI_LOGICAL_MAX - 1);
    const int64_t maker = places->head.clock;
    listed        known = { .maker = (int32_t)maker };
    if (number >= b->layout.servers || maker < 0 || maker >= PLI_MOVED_MAX ||
        !pli_list_read(&b->layout, places, &known.list, &known.key))
        return pli_fail(err, PLAIT_EFORMAT, "rank %d sent a list of places that makes no sense", places->head.src);
    const int32_t place = known.list.at[known.list.n - 1];
    if (place % b->layout.workers != b->rank) return PLAIT_OK;
    pli_server         *replica = b->replica[number];
    const pli_replicas *c = replica == NULL ? NULL : replica->replicas;
    if (c != NULL && c->place > place) return PLAIT_OK;
    if (c == NULL || c->place < place || (!c->begun && known.key > c->moves.key)) {
        if (c != NULL) pli_server_close(replica);
        PLI_TRY(open_copy(b, number, place, &known, now_ns, out, err));
    }
    pli_moves_answer(&b->layout, b->rank, places, out);
    return PLAIT_OK;
}

/* Where shards move: the replica that the message is for; NULL: none, or it is late. */
static pli_server *receiver(const pli_hosted *b, pli_msg *msg) {
    const uint16_t life = msg->head.server & (uint16_t) ~(PLI_LOGICAL_MAX - 1);
    const int32_t  number = msg->head.server & (PLI_LOGICAL_MAX - 1);
    pli_server    *replica = number < b->layout.servers ? b->replica[number] : NULL;
    if (replica == NULL) return NULL;
    const bool log = (msg->head.flags & PLI_FLAG_LOG) != 0;
    if (log && pli_moves_life(&b->layout, replica->replicas->place) != life) return NULL;
    msg->head.server = (uint16_t)number;
    return replica;
}

static void take_moving(pli_hosted *b, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    plait_error  why = { 0 };
    plait_status status = PLAIT_OK;
    const bool   places = msg->head.kind == PLI_PLACES && (msg->head.flags & PLI_FLAG_LOG) != 0;
    pli_server  *replica = places ? NULL : receiver(b, msg);
    if (places) status = open_listed(b, msg, now_ns, out, &why);
    else if (replica != NULL && pli_relay_starts_over(replica, msg))
        status = open_again(b, replica->number, replica->replicas->place, now_ns, out, &why);
    if (status < 0) pli_out_fail(out, why.code, "%s", why.text);
    if (status < 0 || replica == NULL) pli_msg_free(&msg);
    else pli_server_ops.on_message(replica, now_ns, msg, out);
    look_at_ends(b);
}

static void on_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_hosted  *b = state;
    if (pli_moves_are_on(&b->layout)) {
        take_moving(b, now_ns, msg, out);
        return;
    }
    const int32_t number = msg->head.server;
    const int32_t place = number < b->layout.servers ? pli_replica_place(&b->layout, number, b->rank) : -1;
    plait_error   why = { 0 };
    if (place <= 0) {
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d sent rank %d a message for shards of which it has no replica",
                     msg->head.src, b->rank);
        pli_msg_free(&msg);
        return;
    }
    plait_status status = PLAIT_OK;
    if (b->replica[number] == NULL) status = open_copy(b, number, place, NULL, now_ns, out, &why);
    else if (pli_relay_starts_over(b->replica[number], msg)) status = open_again(b, number, place, now_ns, out, &why);
    if (status < 0) {
        pli_out_fail(out, why.code, "%s", why.text);
        pli_msg_free(&msg);
        return;
    }
    pli_server_ops.on_message(b->replica[number], now_ns, msg, out);
    look_at_ends(b);
}

static void on_wakeup(void *state, uint64_t now_ns, pli_out *out) {
    pli_hosted *b = state;
    for (int32_t i = 0; i < b->n_opened; i++) pli_server_ops.on_wakeup(b->replica[b->opened[i]], now_ns, out);
}

static void on_member(void *state, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    pli_hosted *b = state;
    b->epoch = event->epoch;
    if (!pli_grow((void **)&b->events, &b->events_capacity, b->n_events + 1, sizeof *b->events)) {
        pli_out_fail(out, PLAIT_ENOMEM, "no memory to record which ranks are gone");
        return;
    }
    b->events[b->n_events++] = *event;
    for (int32_t i = 0; i < b->n_opened; i++) pli_server_ops.on_member(b->replica[b->opened[i]], now_ns, event, out);
    look_at_ends(b);
}

static pli_msg *late(const pli_msg *msg) { return pli_wire_late(msg, PLI_PORT_CLIENT); }

const pli_machine_ops pli_hosted_ops = {
    .name = "hosted", .on_message = on_message, .on_wakeup = on_wakeup, .on_member = on_member, .late = late
};
