/* The client's machine: streams and tickets. See client.h. */
#include "table/client/client.h"
#include "table/copies/replicas.h"
#include "table/copies/roster.h"

#include <stdatomic.h>
#include <string.h>

#ifdef PLI_TESTING /* tests make the questions come sooner */
static uint64_t wonder_ns(void) { return PLI_WONDER_NS / pli_doctor_haste; }
#else
static uint64_t wonder_ns(void) { return PLI_WONDER_NS; }
#endif

plait_status pli_client_open(pli_client *client, const pli_layout *layout, int32_t rank, uint32_t epoch,
                             uint32_t incarnation, plait_error *err) {
    *client = (pli_client){ .layout = *layout, .rank = rank, .epoch = epoch, .incarnation = incarnation };
    client->clock = client->complete = layout->first_clock;
    client->flags = PLI_MSG_UNCOUNTED;
    client->link = pli_calloc((size_t)layout->servers, sizeof *client->link);
    if (client->link == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a client of %d servers", layout->servers);
    for (int32_t s = 0; s < layout->servers; s++) {
        pli_rx_init(&client->link[s].rx);
        pli_tx_init(&client->link[s].tx, layout->resend_after_ns);
        client->link[s].tx.keeps = pli_client_has_replicas(client);
    }
    return pli_client_has_replicas(client) ? pli_client_replicas_open(client, err) : PLAIT_OK;
}

void pli_client_close(pli_client *client) {
    for (int32_t s = 0; client->link != NULL && s < client->layout.servers; s++) {
        pli_rx_destroy(&client->link[s].rx);
        pli_tx_destroy(&client->link[s].tx);
        pli_msg_free(&client->link[s].push);
    }
    pli_client_replicas_close(client);
    pli_free(client->link);
    pli_free(client->used);
    pli_free(client->table);
    *client = (pli_client){ 0 };
}

/* --- tickets ------------------------------------------------------------------------------------------------- */

void pli_ticket_open(pli_client *client, pli_ticket *ticket) {
    memset(ticket, 0, sizeof *ticket);
    ticket->id = ++client->next_ticket;
    ticket->replies_last = &ticket->replies;
    ticket->why_at_ns = PLI_NEVER;
    atomic_store_explicit(&ticket->held_rank, -1, memory_order_relaxed);
    ticket->next = client->tickets;
    client->tickets = ticket;
}

void pli_ticket_unlink(pli_client *client, pli_ticket *ticket) {
    pli_ticket **at = &client->tickets;
    while (*at != NULL && *at != ticket) at = &(*at)->next;
    if (*at != NULL) *at = ticket->next;
    ticket->next = NULL;
}

void pli_ticket_free(pli_ticket *ticket) {
    while (ticket->replies != NULL) {
        pli_msg *msg = ticket->replies;
        ticket->replies = msg->next;
        pli_msg_free(&msg);
    }
    ticket->replies_last = &ticket->replies;
}

void pli_ticket_answered(pli_client *client, pli_ticket *ticket) {
    if (atomic_load_explicit(&ticket->pending, memory_order_relaxed) == 1) pli_ticket_unlink(client, ticket);
    atomic_fetch_sub_explicit(&ticket->pending, 1, memory_order_release);
}

void pli_ticket_wonder(pli_client *client, uint64_t now_ns, pli_ticket *ticket, pli_out *out) {
    (void)client;
    ticket->wonders = true;
    ticket->why_at_ns = now_ns + wonder_ns();
    pli_out_wake(out, ticket->why_at_ns);
}

static pli_ticket *ticket_of(const pli_client *client, uint32_t id) {
    pli_ticket *ticket = client->tickets;
    while (ticket != NULL && ticket->id != id) ticket = ticket->next;
    return ticket;
}

/* --- sending --------------------------------------------------------------------------------------------------- */

static void address(const pli_client *client, int32_t server, pli_kind kind, pli_msg *msg) {
    pli_head *head = &msg->head;
    head->kind = (uint16_t)kind;
    head->flags = client->flags |
                  (head->flags & (PLI_FLAG_FILTERED | PLI_FLAG_REDO | PLI_FLAG_AHEAD | PLI_FLAG_LEAVES |
                                  PLI_FLAG_SHUT));
    head->src = client->rank;
    head->dst = pli_replica_rank(&client->layout, server, client->link[server].place);
    head->port = pli_replica_port(&client->layout, client->link[server].place);
    head->server = (uint16_t)server;
    head->epoch = client->epoch;
    head->incarnation = client->incarnation;
    head->arg64 = client->link[server].rx.expected - 1;
}

void pli_client_lose(pli_client *client, int32_t rank, const char *what, const char *why, bool fails, pli_out *out) {
    plait_error lost;
    pli_fail(&lost, PLAIT_EPEER, "rank %d, which %s, is lost: %.400s", rank, what, why);
    lost.rank = rank;
    if (client->lost.code >= 0) client->lost = lost;
    if (fails) pli_out_lost(out, rank, "%s", lost.text);
}

/* The server was let go in good order, and is asked again all the same: there is no reason to quote. */
static plait_status fail_lost(const pli_client *client, int32_t server, plait_error *err) {
    const int32_t rank = pli_moves_are_on(&client->layout)
                             ? pli_replica_rank(&client->layout, server, client->link[server].place)
                             : client->layout.first_server + server;
    if (client->lost.code >= 0) pli_fail(err, PLAIT_EPEER, "rank %d, which holds shards, has left", rank);
    if (err != NULL && client->lost.code < 0) *err = client->lost;
    else if (err != NULL) err->rank = rank;
    return PLAIT_EPEER;
}

plait_status pli_client_send(pli_client *client, uint64_t now_ns, int32_t server, pli_kind kind, pli_msg *msg,
                             pli_ticket *ticket, pli_out *out, plait_error *err) {
    pli_client_link *link = &client->link[server];
    if (msg == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a message");
    if (link->lost) {
        pli_msg_free(&msg);
        return fail_lost(client, server, err);
    }
    plait_status filtered = client->filtered ? pli_client_filter(client, server, kind, &msg, err) : PLAIT_OK;
    if (filtered < 0) return filtered;
    address(client, server, kind, msg);
    if (ticket != NULL) {
        msg->head.arg32 = ticket->id;
        atomic_fetch_add_explicit(&ticket->pending, 1, memory_order_relaxed);
    }
    if (pli_tx_send(&link->tx, now_ns, msg, out)) return PLAIT_OK;
    if (ticket != NULL) atomic_fetch_sub_explicit(&ticket->pending, 1, memory_order_relaxed);
    pli_msg_free(&msg);
    return pli_fail(err, PLAIT_ENOMEM, "no memory for a message");
}

/* A server answers BYE when all workers have said it, so all workers send BYE to the same servers. */
static bool hears(const pli_client *client, int32_t server, pli_kind kind) {
    const pli_client_link *link = &client->link[server];
    const bool             ends = kind == PLI_BYE || kind == PLI_LEAVE;
    if (link->used || link->lost || !ends) return link->used;
    return client->layout.first_server > 0 || pli_client_has_replicas(client) ||
           (kind == PLI_LEAVE && server == pli_lease_keeper(&client->layout));
}

bool pli_client_says_bye(const pli_client *client) {
    return client->n_used > 0 || client->layout.first_server > 0 || pli_client_has_replicas(client);
}

plait_status pli_client_send_all(pli_client *client, uint64_t now_ns, pli_kind kind, pli_ticket *ticket, pli_out *out,
                                 plait_error *err) {
    client->barriers += kind == PLI_BARRIER;
    client->passed += kind == PLI_BARRIER;
    for (int32_t s = 0; s < client->layout.servers; s++) {
        if (!hears(client, s, kind)) continue;
        const bool numbered = kind == PLI_BARRIER && pli_client_has_replicas(client);
        pli_msg   *msg = pli_msg_new(numbered ? sizeof client->barriers : 0);
        if (msg != NULL) msg->head.clock = client->clock;
        if (msg != NULL && numbered) memcpy(pli_msg_body(msg), &client->barriers, sizeof client->barriers);
        PLI_TRY(pli_client_send(client, now_ns, s, kind, msg, ticket, out, err));
    }
    return PLAIT_OK;
}

/* The first server carries what workers tell each other. */
plait_status pli_client_send_gather(pli_client *client, uint64_t now_ns, const void *mine, size_t bytes,
                                    pli_ticket *ticket, pli_out *out, plait_error *err) {
    const size_t head = sizeof client->barriers;
    pli_msg     *msg = bytes <= SIZE_MAX - head ? pli_msg_new(head + bytes) : NULL;
    client->barriers++;
    if (msg != NULL) {
        msg->head.clock = client->clock;
        memcpy(pli_msg_body(msg), &client->barriers, head);
        if (bytes > 0) memcpy((unsigned char *)pli_msg_body(msg) + head, mine, bytes);
    }
    return pli_client_send(client, now_ns, 0, PLI_GATHER, msg, ticket, out, err);
}

static void acknowledge(const pli_client *client, int32_t server, pli_out *out) {
    pli_msg *ack = pli_msg_new(0);
    if (ack == NULL) return; /* out of memory: the other side sends again */
    address(client, server, PLI_ACK, ack);
    pli_out_send(out, ack);
}

/* --- receiving --------------------------------------------------------------------------------------------------- */

static void note_failure(pli_ticket *ticket, const pli_msg *msg) {
    pli_wire_failure failure = { .code = PLAIT_EFORMAT, .rank = msg->head.src, .text = "a malformed failure" };
    if (msg->head.body_bytes == sizeof failure) memcpy(&failure, pli_msg_body(msg), sizeof failure);
    if (ticket->failure.code != 0) return;
    ticket->failure.code = failure.code < 0 ? (plait_status)failure.code : PLAIT_EFORMAT;
    ticket->failure.rank = failure.rank;
    failure.text[sizeof failure.text - 1] = '\0';
    strcpy(ticket->failure.text, failure.text);
}

/* Is this the sender's first reply to the ticket? A server answers once; a second answer would be counted twice. */
static bool is_first(const pli_ticket *ticket, const pli_msg *msg) {
    for (const pli_msg *reply = ticket->replies; reply != NULL; reply = reply->next)
        if (reply->head.src == msg->head.src) return false;
    return atomic_load_explicit(&ticket->pending, memory_order_relaxed) > 0;
}

static void unfilter(pli_client *client, pli_ticket *ticket, pli_msg *msg) {
    plait_error why = { .code = PLAIT_EFORMAT, .rank = msg->head.src,
                        .text = "a filtered answer to a request for no values" };
    if (ticket->ask == NULL && !(msg->head.flags & PLI_FLAG_FILTERED)) return;
    if (ticket->ask != NULL && pli_client_unfilter(client, ticket->ask, msg, &why) >= 0) return;
    if (ticket->failure.code == 0) ticket->failure = why;
}

static void on_reply(pli_client *client, pli_msg *msg, pli_out *out) {
    pli_ticket *ticket = ticket_of(client, msg->head.arg32);
    if (ticket == NULL || !is_first(ticket, msg)) {
        pli_msg_free(&msg); /* its ticket was dropped */
        return;
    }
    if (msg->head.flags & PLI_FLAG_FAILED) note_failure(ticket, msg);
    else if (client->filtered || (msg->head.flags & PLI_FLAG_FILTERED)) unfilter(client, ticket, msg);
    if (pli_client_has_replicas(client)) pli_client_answered(client, msg);
    msg->next = NULL;
    *ticket->replies_last = msg;
    ticket->replies_last = &msg->next;
    pli_ticket_answered(client, ticket);
    pli_out_ring(out);
}

static void on_held(pli_client *client, const pli_msg *msg) {
    pli_ticket *ticket = ticket_of(client, msg->head.arg32);
    pli_wire_held held;
    if (ticket == NULL || msg->head.body_bytes != sizeof held) return;
    memcpy(&held, pli_msg_body(msg), sizeof held);
    atomic_store_explicit(&ticket->held_any, held.any != 0, memory_order_relaxed);
    atomic_store_explicit(&ticket->held_clock, msg->head.clock, memory_order_relaxed);
    atomic_store_explicit(&ticket->held_rank, held.rank, memory_order_release);
    atomic_store_explicit(&ticket->answered, held.asked, memory_order_release);
}

pli_client_table *pli_client_table_of(const pli_client *client, uint32_t id) {
    for (int64_t i = 0; i < client->tables; i++)
        if ((uint32_t)client->table[i]->spec.id == id) return client->table[i];
    return NULL;
}

bool pli_client_is_fresh(const pli_client_table *table, int32_t shard, const pli_msg *msg) {
    uint64_t row_bytes = (uint64_t)pli_row_bytes(&table->spec), bytes = msg->head.body_bytes;
    int64_t  first = 0, rows = 0;
    if (table->spec.rows > 0) pli_placement_range(&table->spec.placement, shard, &first, &rows);
    if (msg->head.kind == PLI_FRESH) return rows > 0 && bytes == (uint64_t)rows * row_bytes;
    if (bytes == 0 || bytes % (8 + row_bytes) != 0 || msg->offset % 8 != 0) return false;
    const uint64_t *keys = pli_msg_body(msg);
    uint64_t        outside = 0;
    for (uint64_t i = 0; table->spec.rows > 0 && i < bytes / (8 + row_bytes); i++)
        outside |= (uint64_t)(keys[i] - (uint64_t)first >= (uint64_t)rows);
    return outside == 0;
}

/* Keeps the newest fresh copy until the worker looks for it. */
static void on_fresh(pli_client *client, pli_msg *msg, pli_out *out) {
    pli_client_table *table = pli_client_table_of(client, msg->head.arg32);
    int32_t           shard = table == NULL ? -1 : pli_placement_shard_at(&table->spec.placement, msg->head.src);
    if (shard < 0 || !pli_client_is_fresh(table, shard, msg)) {
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d pushed malformed rows of table number %u", msg->head.src,
                     (unsigned)msg->head.arg32);
        pli_msg_free(&msg);
        return;
    }
    pli_msg **place = &table->shard[shard].fresh[msg->head.kind == PLI_FRESH_KEYS];
    pli_msg_free(place);
    *place = msg;
}

static void handle(pli_client *client, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_client_link *link = &client->link[msg->head.src - client->layout.first_server];
    msg->next = NULL;
    msg->head.seq |= (uint64_t)link->place << PLI_PLACE_AT_BIT; /* so it is later than all that the former replica has
                                                                 * said */
    if (msg->head.kind == PLI_LEAP) {
        if (msg->head.clock > atomic_load_explicit(&client->leap, memory_order_relaxed))
            atomic_store_explicit(&client->leap, msg->head.clock, memory_order_relaxed);
        pli_msg_free(&msg);
        return;
    }
    if (msg->head.kind == PLI_STATE) {
        link->state = (uint64_t)msg->head.clock;
        pli_msg_free(&msg);
        return;
    }
    msg->note = link->state | (uint64_t)link->place << PLI_PLACE_AT_BIT;
    if (msg->head.kind == PLI_REPLY) {
        on_reply(client, msg, out);
        return;
    }
    if (msg->head.kind == PLI_FRESH || msg->head.kind == PLI_FRESH_KEYS) {
        on_fresh(client, msg, out);
        return;
    }
    if (msg->head.kind == PLI_MISSING) {
        pli_client_send_list(client, now_ns, msg->head.src - client->layout.first_server, msg, out);
        pli_msg_free(&msg);
        return;
    }
    pli_out_fail(out, PLAIT_EFORMAT, "rank %d sent a message of unknown kind %u to a client", msg->head.src,
                 (unsigned)msg->head.kind);
    pli_msg_free(&msg);
}

static void on_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_client *client = state;
    int32_t     server = pli_client_server_of(client, msg);
    if (server < 0 || client->link[server].lost) {
        pli_msg_free(&msg);
        return;
    }
    pli_client_link *link = &client->link[server];
    const bool serves = !pli_moves_are_on(&client->layout) ||
                        msg->head.src == pli_replica_rank(&client->layout, server, link->place);
    msg->head.src = client->layout.first_server + server; /* the server's number, whichever replica has sent it */
    if (serves && pli_client_has_replicas(client)) pli_tx_arrived(&link->tx, msg->head.arg64);
    else if (serves) pli_tx_acked(&link->tx, msg->head.arg64);
    if (msg->head.seq == 0) {
        if (msg->head.kind == PLI_HELD) on_held(client, msg);
        if (msg->head.kind == PLI_SAFE && msg->head.body_bytes > 0) pli_client_take_ahead(client, server, msg, out);
        if (msg->head.kind == PLI_SAFE && pli_client_has_replicas(client)) pli_client_hear_roster(client, server, msg);
        if (msg->head.kind == PLI_SAFE) pli_client_safe(client, server, msg, out);
        if (msg->head.kind == PLI_NONE && pli_client_has_replicas(client)) pli_client_none(client, server, msg, out);
        if (msg->head.kind == PLI_PLACES) pli_client_hear_places(client, now_ns, server, msg, out);
        pli_msg_free(&msg);
        return;
    }
    switch (pli_rx_take(&link->rx, &msg)) {
    case PLI_RX_TAKE:
        for (; msg != NULL; msg = pli_rx_next(&link->rx)) handle(client, now_ns, msg, out);
        if (client->layout.resend_after_ns > 0) acknowledge(client, server, out);
        break;
    case PLI_RX_DUPLICATE:
        pli_msg_free(&msg);
        acknowledge(client, server, out);
        break;
    case PLI_RX_OLD: pli_msg_free(&msg); break;
    case PLI_RX_EARLY: break;
    }
}

/* Sends WHY to every server that was asked anything: it may hold the ticket; those that do not hold it say nothing. WHY
 * is repeated, so it need not arrive. It is not in the stream, where a server whose job has ended would miss a
 * message. */
static void ask_why(const pli_client *client, pli_ticket *ticket, pli_out *out) {
    atomic_fetch_add_explicit(&ticket->asked, 1, memory_order_release);
    for (int32_t s = 0; s < client->layout.servers; s++) {
        if (client->link[s].lost || client->link[s].tx.next == 1) continue; /* 1: it has been sent nothing */
        pli_msg *msg = pli_msg_new(0);
        if (msg == NULL) return;
        address(client, s, PLI_WHY, msg);
        msg->head.arg32 = ticket->id;
        msg->head.clock = atomic_load_explicit(&ticket->asked, memory_order_relaxed);
        pli_out_send(out, msg);
    }
}

static void on_wakeup(void *state, uint64_t now_ns, pli_out *out) {
    pli_client *client = state;
    if (client->joining != 0) pli_client_come_sooner(client, now_ns, out);
    for (pli_ticket *ticket = client->tickets; ticket != NULL; ticket = ticket->next) {
        if (ticket->why_at_ns == PLI_NEVER) continue;
        if (now_ns >= ticket->why_at_ns) {
            ask_why(client, ticket, out);
            ticket->why_at_ns = now_ns + wonder_ns();
        }
        pli_out_wake(out, ticket->why_at_ns);
    }
    if (client->layout.resend_after_ns == 0) return; /* nothing is ever sent again */
    for (int32_t s = 0; s < client->layout.servers; s++) pli_tx_wakeup(&client->link[s].tx, now_ns, out);
}

static void on_member(void *state, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    pli_client *client = state;
    int64_t     server = (int64_t)event->rank - client->layout.first_server;
    client->epoch = event->epoch;
    if (pli_client_has_replicas(client)) {
        pli_client_member(client, now_ns, event, out);
        return;
    }
    if (event->kind == PLI_MEMBER_JOINED || server < 0 || server >= client->layout.servers) return;
    pli_tx_end(&client->link[server].tx); /* it needs no acknowledgement any more */
    if (event->kind != PLI_MEMBER_DIED) return;
    client->link[server].lost = true;
    pli_client_lose(client, event->rank, "holds shards", event->why.text, client->link[server].used, out);
}

static pli_msg *late(const pli_msg *msg) { return pli_wire_late(msg, PLI_PORT_SERVER); }

const pli_machine_ops pli_client_ops = {
    .name = "client", .on_message = on_message, .on_wakeup = on_wakeup, .on_member = on_member, .late = late
};
