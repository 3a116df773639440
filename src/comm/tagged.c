/* Tagged messages between two ranks, as the handle sends and receives them; the machine behind them is user.c. */
#include <stdio.h>
#include <string.h>

#include "comm/handle.h"

plait_status plait_comm_send(plait_comm *comm, int32_t to, int32_t tag, const void *data, size_t bytes) {
    PLI_TRY(pli_comm_usable(comm, __func__));
    PLI_TRY(pli_comm_given_memory(comm, __func__, "data", data, bytes > 0));
    PLI_TRY(pli_comm_at_most(comm, __func__, bytes, pli_comm_most_bytes(comm)));
    if (to >= 0 && to < comm->world->size && tag >= 0) return pli_comm_send(comm, to, tag, data, bytes);
    pli_fail(&comm->error, PLAIT_EINVAL, "send: rank %d of %d, tag %d", to, comm->world->size, tag);
    return pli_comm_failed(comm);
}

plait_status pli_comm_send(plait_comm *comm, int32_t to, int32_t tag, const void *data, size_t bytes) {
    pli_msg *msg = pli_msg_new(bytes);
    if (msg == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "send: no memory for a message of %zu bytes", bytes);
        return pli_comm_failed(comm);
    }
    if (bytes > 0) memcpy(pli_msg_body(msg), data, bytes);
    return pli_comm_send_msg(comm, to, tag, msg);
}

/* To the others' tagged messages its rank is dead. */
static plait_status refuse_anew(plait_comm *comm, const char *call) {
    if (comm->life < 2) return PLAIT_OK;
    pli_fail(&comm->error, PLAIT_EREFUSED, "%s by rank %d, which was started anew (plait_comm_life), is refused: its "
                                           "tables alone go on", call, comm->rank);
    return pli_comm_failed(comm);
}

plait_status pli_comm_send_msg(plait_comm *comm, int32_t to, int32_t tag, pli_msg *msg) {
    size_t             bytes = msg->head.body_bytes;
    const plait_status anew = refuse_anew(comm, "send");
    if (anew < 0) pli_msg_free(&msg);
    if (anew < 0) return anew;
    if (to != comm->rank && (pli_members_have_end(comm->members, to) || comm->members->life[to] > 1)) {
        pli_msg_free(&msg);
        if (pli_comm_is_lost(comm, NULL, &comm->error) == 0)
            pli_fail(&comm->error, PLAIT_EPEER, "send: rank %d has left", to);
        return pli_comm_failed(comm);
    }
    msg->head.dst = to;
    msg->head.arg32 = (uint32_t)tag;
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(comm->user_port, &now_ns, &out);
    bool sent = pli_links_send(&comm->user.links, now_ns, msg, &out);
    pli_port_leave(comm->user_port, &out);
    if (sent) return PLAIT_OK;
    pli_fail(&comm->error, PLAIT_ENOMEM, "send: no memory for a message of %zu bytes", bytes);
    return pli_comm_failed(comm);
}

struct receipt {
    plait_comm *comm;
    int32_t     from, tag;
    bool        found; /* else the wait is over without one */
};

static bool has_come(void *arg) {
    struct receipt *r = arg;
    uint64_t        now_ns;
    pli_out         out;
    pli_port_enter(r->comm->user_port, &now_ns, &out);
    r->found = pli_user_find(&r->comm->user, r->from, r->tag) != NULL;
    bool over = pli_user_is_over(&r->comm->user, r->from) && r->from != r->comm->rank;
    pli_port_leave(r->comm->user_port, &out);
    return r->found || over;
}

static void tell_receipt(const void *arg, char *text, size_t bytes) {
    const struct receipt *r = arg;
    if (r->tag < 0) {
        snprintf(text, bytes, "what rank %d tells it", r->from);
    } else if (r->from < 0) {
        snprintf(text, bytes, "a message with tag %d of any rank", r->tag);
    } else {
        snprintf(text, bytes, "a message with tag %d, held up by rank %d", r->tag, r->from);
    }
}

static void show_receipt(const void *arg, pli_wait *wait) {
    const struct receipt *r = arg;
    wait->kind = PLI_WAIT_RECV;
    wait->peer = r->from;
}

static plait_status take_message(const struct receipt *r, void *data, size_t capacity, size_t *bytes_out,
                                 int32_t *from_out) {
    plait_comm *comm = r->comm;
    uint64_t    now_ns;
    pli_out     out;
    pli_port_enter(comm->user_port, &now_ns, &out);
    pli_msg **at = pli_user_find(&comm->user, r->from, r->tag);
    size_t    bytes = (*at)->head.body_bytes;
    if (bytes_out != NULL) *bytes_out = bytes;
    if (from_out != NULL) *from_out = (*at)->head.src;
    pli_msg *msg = bytes <= capacity ? pli_user_take(&comm->user, at) : NULL;
    pli_port_leave(comm->user_port, &out);
    if (msg == NULL) {
        pli_fail(&comm->error, PLAIT_ESHAPE, "recv: the message with tag %d has %zu bytes, but there is room for %zu",
                 r->tag, bytes, capacity);
        return pli_comm_failed(comm);
    }
    if (bytes > 0) memcpy(data, pli_msg_body(msg), bytes);
    pli_msg_free(&msg);
    return PLAIT_OK;
}

plait_status plait_comm_recv(plait_comm *comm, int32_t from, int32_t tag, void *data, size_t capacity,
                             size_t *bytes_out, int32_t *from_out) {
    PLI_TRY(pli_comm_usable(comm, __func__));
    PLI_TRY(pli_comm_given_memory(comm, __func__, "data", data, capacity > 0));
    if (from < -1 || from >= comm->world->size || tag < 0) {
        pli_fail(&comm->error, PLAIT_EINVAL, "recv: rank %d of %d, tag %d", from, comm->world->size, tag);
        return pli_comm_failed(comm);
    }
    PLI_TRY(refuse_anew(comm, "recv"));
    pli_comm_enter(comm, "plait_comm_recv");
    return pli_comm_leave(comm, pli_comm_recv(comm, from, tag, data, capacity, bytes_out, from_out));
}

static plait_status wait_for_message(struct receipt *receipt) {
    plait_comm *comm = receipt->comm;
    pli_reason  reason = { .tell = tell_receipt, .show = show_receipt, .arg = receipt };
    if (pli_comm_wait(comm, has_come, receipt, &reason, &comm->error) < 0) return pli_comm_failed(comm);
    if (receipt->found) return PLAIT_OK;
    if (receipt->from < 0) {
        pli_fail(&comm->error, PLAIT_EPEER, "recv: all other ranks have left, so no message with tag %d will come",
                 receipt->tag);
    } else {
        pli_fail(&comm->error, PLAIT_EPEER, "recv: rank %d has left, so no message with tag %d will come",
                 receipt->from, receipt->tag);
    }
    return pli_comm_failed(comm);
}

plait_status pli_comm_recv(plait_comm *comm, int32_t from, int32_t tag, void *data, size_t capacity, size_t *bytes_out,
                           int32_t *from_out) {
    struct receipt receipt = { .comm = comm, .from = from, .tag = tag };
    PLI_TRY(wait_for_message(&receipt));
    return take_message(&receipt, data, capacity, bytes_out, from_out);
}

plait_status pli_comm_take(plait_comm *comm, int32_t from, int32_t tag, pli_msg **msg_out) {
    struct receipt receipt = { .comm = comm, .from = from, .tag = tag };
    uint64_t       now_ns;
    pli_out        out;
    PLI_TRY(wait_for_message(&receipt));
    pli_port_enter(comm->user_port, &now_ns, &out);
    *msg_out = pli_user_take(&comm->user, pli_user_find(&comm->user, from, tag));
    pli_port_leave(comm->user_port, &out);
    return PLAIT_OK;
}

/* Collectives have workers only, so each worker adds the bytes that its share of the servers tells it. */
static plait_status add_up_bytes(plait_comm *comm, uint64_t *bytes_out) {
    enum { TAG_BYTES = -2 };
    int32_t  workers = plait_comm_workers(comm);
    uint64_t theirs = 0, mine = plait_comm_bytes_sent(comm);
    if (!pli_comm_is_worker(comm))
        return pli_comm_send(comm, (comm->rank - workers) % workers, TAG_BYTES, &mine, sizeof mine);
    for (int32_t s = comm->rank; s < plait_comm_servers(comm); s += workers) {
        PLI_TRY(pli_comm_recv(comm, workers + s, TAG_BYTES, &theirs, sizeof theirs, NULL, NULL));
        mine += theirs;
    }
    PLI_TRY(plait_comm_allreduce(comm, &mine, 1, PLAIT_I64, PLAIT_SUM));
    *bytes_out = mine;
    return PLAIT_OK;
}

plait_status pli_comm_bytes_of_all(plait_comm *comm, uint64_t *bytes_out) {
    *bytes_out = 0;
    pli_comm_enter(comm, "the sum of the bytes sent");
    return pli_comm_leave(comm, add_up_bytes(comm, bytes_out));
}
