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

static plait_status open_copy(pli_hosted *b, int32_t number, int32_t place, uint64_t now_ns, pli_out *out,
                              plait_error *err) {
    pli_server *replica = b->replica[number] != NULL ? b->replica[number] : pli_calloc(1, sizeof *replica);
    if (replica == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a replica of a server's shards");
    plait_status status = pli_server_open_replica(replica, &b->layout, number, place, b->epoch, b->incarnation, err);
    if (status < 0) {
        if (b->replica[number] == NULL) pli_free(replica);
        return status;
    }
    replica->sink = b->sink;
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
    pli_server_close(replica);
    plait_status status = open_copy(b, number, place, now_ns, out, err);
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
    const int32_t place = pli_replica_place(&b->layout, number, b->rank);
    return place > 0 && place < b->layout.replicas ? open_copy(b, number, place, 0, NULL, err) : PLAIT_OK;
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

static void on_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_hosted  *b = state;
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
    if (b->replica[number] == NULL) status = open_copy(b, number, place, now_ns, out, &why);
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
