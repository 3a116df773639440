/* How a worker deals with replicas of servers' shards: what it keeps until it is safe, where it sends when the serving
 * replica has died, and how it stands in for a worker that died. replicas.h has the idea. */
#include <stdatomic.h>
#include <string.h>

#include "table/client/client.h"
#include "table/copies/replicas.h"
#include "table/events.h"

enum { ABSENT_DIED = 1, ABSENT_LEFT };

/* This rank has died before: it is away, and the shards that it had are not here any more. */
static void begin_anew(pli_client *client) {
    const pli_layout *layout = &client->layout;
    const uint64_t    before = pli_seq_before(client->incarnation);
    client->heard[client->rank] = PLI_LOG_AWAY;
    client->away[client->rank] = client->replaced[client->rank] = client->next[client->rank] = 1;
    client->absent[client->rank] = ABSENT_DIED;
    for (int32_t s = 0; s < layout->servers; s++) {
        pli_client_link *link = &client->link[s];
        while (link->place < pli_replica_places(layout) &&
               client->absent[pli_replica_rank(layout, s, link->place)] == ABSENT_DIED)
            link->place++;
        link->tx.next = before + 1;
        link->tx.acked = before;
        link->rx.expected = before + 1;
        atomic_store_explicit(&link->safe, before, memory_order_relaxed);
    }
}

plait_status pli_client_replicas_open(pli_client *client, plait_error *err) {
    const pli_layout *layout = &client->layout;
    const int32_t     past = layout->first_server + layout->servers;
    client->dead = pli_calloc((size_t)layout->workers, 8);
    client->absent = pli_calloc((size_t)(past > layout->workers ? past : layout->workers), sizeof *client->absent);
    if (client->dead == NULL || client->absent == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a client of %d servers", client->layout.servers);
    client->replaced = client->dead + client->layout.workers;
    client->next = client->replaced + client->layout.workers;
    client->away = client->next + client->layout.workers;
    client->heard = client->away + client->layout.workers;
    client->heard_life = client->heard + client->layout.workers;
    client->life = client->heard_life + client->layout.workers;
    client->died = client->life + client->layout.workers;
    memset(client->heard_life, 1, (size_t)layout->workers * 2);
    for (int32_t w = layout->workers - layout->slots; w < layout->workers; w++) {
        client->heard[w] = PLI_LOG_AWAY;
        client->away[w] = client->replaced[w] = client->next[w] = 1;
    }
    if (client->incarnation > 1) begin_anew(client);
    client->left = client->away[client->rank] != 0;
    for (int32_t s = 0; s < layout->servers && pli_moves_are_on(layout); s++) {
        client->link[s].places = pli_moves_first(layout, s);
        client->link[s].place = client->link[s].places.at[0];
    }
    return PLAIT_OK;
}

void pli_client_replicas_close(pli_client *client) {
    pli_free(client->dead);
    pli_free(client->absent);
    client->absent = NULL;
    client->dead = client->replaced = client->next = client->away = client->heard = NULL;
}

/* Does the other replica say what is safe? It lies at a place behind that of who serves, who has it too: so it is true
 * even if the other has died since. */
static bool is_told_by_other(const pli_client *client, int32_t server, const pli_msg *msg) {
    return msg->head.kind == PLI_SAFE && msg->head.seq == 0 &&
           pli_replica_place(&client->layout, server, msg->head.src) > client->link[server].place;
}

/* Where shards move: does it count, whichever replica has said it? What is safe stays so; where replicas are nobody
 * hears from a rank that is taken for dead. */
static bool is_beside(const pli_client *client, const pli_msg *msg) {
    const int32_t src = msg->head.src;
    if (msg->head.seq != 0) return false;
    if (msg->head.kind != PLI_PLACES && msg->head.kind != PLI_NONE) return msg->head.kind == PLI_SAFE;
    return src >= 0 && src < client->layout.workers && client->absent[src] != ABSENT_DIED;
}

int32_t pli_client_server_of(const pli_client *client, const pli_msg *msg) {
    const pli_layout *layout = &client->layout;
    const int32_t server = pli_client_has_replicas(client) ? msg->head.server : msg->head.src - layout->first_server;
    if (server < 0 || server >= layout->servers) return -1;
    if (pli_moves_are_on(layout) && is_beside(client, msg)) return server;
    if (pli_client_has_replicas(client) && !pli_moves_are_on(layout) && is_told_by_other(client, server, msg))
        return server;
    const int32_t from = pli_replica_rank(layout, server, client->link[server].place);
    return from == msg->head.src ? server : -1; /* else sent before another replica took over */
}

/* --- what is kept ------------------------------------------------------------------------------------------------- */

static bool is_request(const pli_msg *msg) {
    switch (msg->head.kind) {
    case PLI_CREATE:
    case PLI_PULL:
    case PLI_CALL:
    case PLI_BARRIER:
    case PLI_GATHER:
    case PLI_SNAP:
    case PLI_PIECE:
    case PLI_RESTORE:
    case PLI_JOIN:
    case PLI_BYE: return true;
    default: return false;
    }
}

/* Does anybody still wait for this server's answer? */
static bool is_open(const pli_client *client, int32_t server, const pli_msg *msg) {
    const pli_ticket *ticket = client->tickets;
    while (ticket != NULL && ticket->id != msg->head.arg32) ticket = ticket->next;
    if (ticket == NULL) return false;
    for (const pli_msg *reply = ticket->replies; reply != NULL; reply = reply->next)
        if (reply->head.src == client->layout.first_server + server) return false;
    return true;
}

/* Messages whose answer is still awaited stay, to be asked again. */
void pli_client_safe(pli_client *client, int32_t server, const pli_msg *msg, pli_out *out) {
    pli_client_link *link = &client->link[server];
    uint64_t         seq = (uint64_t)msg->head.clock;
    if (seq < atomic_load_explicit(&link->safe, memory_order_relaxed) || seq >= link->tx.next) return;
    atomic_store_explicit(&link->safe, seq, memory_order_release);
    for (const pli_msg *kept = link->tx.kept; kept != NULL && kept->head.seq <= seq; kept = kept->next)
        if (is_request(kept) && is_open(client, server, kept)) seq = kept->head.seq - 1;
    pli_tx_acked(&link->tx, seq);
    pli_out_ring(out);
}

/* Once BYE is answered all workers have said it, so nobody needs what is kept, whoever dies from now on. */
void pli_client_answered(pli_client *client, const pli_msg *reply) {
    pli_client_link *link = &client->link[reply->head.src - client->layout.first_server];
    for (const pli_msg *kept = link->tx.kept; kept != NULL; kept = kept->next) {
        if (kept->head.kind != PLI_BYE || kept->head.arg32 != reply->head.arg32) continue;
        pli_tx_acked(&link->tx, link->tx.next - 1);
        return;
    }
}

/* --- deaths ------------------------------------------------------------------------------------------------------- */

/* May the request be repeated: was it answered, perhaps before the other replica had it, and does a second answer do no
 * harm? */
static bool may_repeat(const pli_msg *msg) {
    return msg->head.kind == PLI_CREATE || msg->head.kind == PLI_SNAP || msg->head.kind == PLI_RESTORE;
}

/* Sends all that is kept to the replica that serves now, in the same order under the same numbers. Of requests that
 * were answered only the number is sent. */
static void send_again(pli_client *client, int32_t server, pli_out *out) {
    pli_client_link *link = &client->link[server];
    for (pli_msg *kept = link->tx.kept; kept != NULL; kept = kept->next) {
        kept->head.dst = pli_replica_rank(&client->layout, server, link->place);
        kept->head.port = pli_replica_port(&client->layout, link->place);
        kept->head.epoch = client->epoch;
        kept->head.arg64 = 0; /* what the dead replica had sent is not acknowledged to this one */
        if (is_request(kept) && !may_repeat(kept) && !is_open(client, server, kept)) {
            kept->head.kind = PLI_VOID;
            kept->head.flags &= (uint16_t)~PLI_FLAG_FILTERED;
            kept->head.body_bytes = 0;
            pli_slab_unref(&kept->body);
        }
        pli_msg *again = pli_msg_copy(kept);
        if (again != NULL) pli_out_send(out, again);
        else pli_out_fail(out, PLAIT_ENOMEM, "no memory to send again the messages that rank %d has not received",
                          kept->head.dst);
    }
}

/* Is the answer to BYE all that is still asked of the server? Then the worker is let go, and the answer, which may yet
 * come, counts no more. */
static bool lets_go(pli_client *client, int32_t server, pli_out *out) {
    pli_client_link *link = &client->link[server];
    pli_ticket      *bye = NULL;
    for (const pli_msg *kept = link->tx.kept; kept != NULL; kept = kept->next) {
        if (!is_request(kept) || !is_open(client, server, kept)) continue;
        if (kept->head.kind != PLI_BYE) return false;
        bye = client->tickets;
        while (bye->id != kept->head.arg32) bye = bye->next;
    }
    if (bye == NULL) return true;
    link->lost = true;
    pli_ticket_answered(client, bye);
    pli_out_ring(out);
    return true;
}

/* Has a rank that may have had a replica ended in good order? A rank does so when all workers have let it go. */
static bool has_ended(const pli_client *client, int32_t server) {
    const int32_t   places = pli_replica_places(&client->layout);
    const pli_list *list = &client->link[server].places;
    for (int32_t i = 0; i < list->n; i++)
        if (client->absent[pli_replica_rank(&client->layout, server, list->at[i])] == ABSENT_LEFT) return true;
    if (pli_moves_are_on(&client->layout)) return false;
    for (int32_t place = 0; place < places; place++)
        if (client->absent[pli_replica_rank(&client->layout, server, place)] == ABSENT_LEFT) return true;
    return false;
}

/* No rank has the server's shards any more. */
static void lose(pli_client *client, int32_t server, int32_t rank, const char *why, pli_out *out) {
    pli_client_link *link = &client->link[server];
    bool             gone = (has_ended(client, server) || !link->used) && lets_go(client, server, out);
    pli_tx_end(&link->tx);
    link->lost = true;
    if (!gone) pli_client_lose(client, rank, "held the last replica of shards", why, true, out);
}

void pli_client_none(pli_client *client, int32_t server, const pli_msg *msg, pli_out *out) {
    if (pli_moves_are_on(&client->layout) && (uint64_t)msg->head.clock < client->link[server].places_key) return;
    const int32_t rank = pli_moves_are_on(&client->layout)
                             ? pli_replica_rank(&client->layout, server, client->link[server].place)
                             : client->layout.first_server + server;
    lose(client, server, rank, "all other ranks with a replica are lost too, and no "
                                                               "other replica was whole", out);
}

bool pli_client_has_clocks(const pli_client *client) {
    for (int64_t i = 0; i < client->tables; i++)
        if (client->table[i]->at_clock) return true;
    return false;
}

/* Makes a VIEW of these workers, without those that are known. NULL: out of memory. */
static pli_msg *view_of(const pli_client *client, const uint8_t *whom, const uint8_t *known, int64_t clock) {
    const int32_t workers = client->layout.workers;
    size_t        n = 0;
    for (int32_t w = 0; w < workers; w++) n += whom[w] && (known == NULL || !known[w]);
    pli_msg *msg = pli_msg_new(n * sizeof(uint32_t));
    if (msg == NULL) return NULL;
    uint32_t *at = pli_msg_body(msg);
    for (int32_t w = 0; w < workers; w++)
        if (whom[w] && (known == NULL || !known[w])) *at++ = (uint32_t)w;
    msg->head.clock = clock;
    return msg;
}

/* Tells again for whom the worker has stood in, in clocks that have ended: a log tells of it only by its next SUM. */
static void view_again(pli_client *client, uint64_t now_ns, int32_t server, pli_out *out) {
    plait_error why = { 0 };
    if (!client->link[server].used || !pli_client_has_clocks(client)) return;
    if (memchr(client->replaced, 1, (size_t)client->layout.workers) == NULL) return;
    pli_msg *msg = view_of(client, client->replaced, client->away, client->clock - 1);
    if (pli_client_send(client, now_ns, server, PLI_VIEW, msg, NULL, out, &why) < 0)
        pli_out_fail(out, why.code, "%s", why.text);
}

/* The replica at that place serves now. */
static void go_on_with(pli_client *client, uint64_t now_ns, int32_t server, int32_t place, pli_out *out) {
    pli_client_link *link = &client->link[server];
    link->place = place;
    pli_rx_destroy(&link->rx);
    pli_rx_init(&link->rx); /* the other replica numbers its messages anew */
    link->rx.expected = pli_seq_before(client->incarnation) + 1;
    link->state = 0;
    link->tx.arrived = 0;
    send_again(client, server, out);
    view_again(client, now_ns, server, out);
}

void pli_client_hear_places(pli_client *client, uint64_t now_ns, int32_t server, const pli_msg *msg, pli_out *out) {
    pli_client_link *link = &client->link[server];
    const int64_t    place = msg->head.clock;
    pli_list         list;
    uint64_t         key;
    if (!pli_moves_are_on(&client->layout) || !pli_list_read(&client->layout, msg, &list, &key) || place < 0 ||
        place >= PLI_MOVED_MAX) {
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d sent a list of places that makes no sense", msg->head.src);
        return;
    }
    if (key > link->places_key) {
        link->places = list;
        link->places_key = key;
    }
    if (place > link->place) go_on_with(client, now_ns, server, (int32_t)place, out);
    pli_moves_answer(&client->layout, client->rank, msg, out);
}

/* The replica that takes over says so itself where shards move. */
static void await_successor(pli_client *client, int32_t server, const pli_member_event *event, pli_out *out) {
    const pli_list *list = &client->link[server].places;
    bool            lives = false;
    for (int32_t i = 0; i < list->n; i++)
        lives = lives || client->absent[pli_replica_rank(&client->layout, server, list->at[i])] == 0;
    if (!lives || has_ended(client, server)) lose(client, server, event->rank, event->why.text, out);
}

static void redirect(pli_client *client, uint64_t now_ns, int32_t server, const pli_member_event *event,
                     pli_out *out) {
    const pli_layout *layout = &client->layout;
    const int32_t     places = pli_replica_places(layout);
    pli_client_link  *link = &client->link[server];
    int32_t           place = link->place + 1;
    while (place < places && client->absent[pli_replica_rank(layout, server, place)] == ABSENT_DIED) place++;
    if (place >= places || client->absent[pli_replica_rank(layout, server, place)] == ABSENT_LEFT) {
        lose(client, server, event->rank, event->why.text, out);
        return;
    }
    go_on_with(client, now_ns, server, place, out);
}

/* A server ends when all workers that it knows have let it go. It may not know yet that this rank lives anew: then the
 * job is over. free: nothing is asked of it. */
static void come_too_late(pli_client *client, int32_t server, int32_t rank, bool free, pli_out *out) {
    client->link[server].lost = true;
    if (!free) pli_client_lose(client, rank, "holds shards", "the others have ended the job", true, out);
}

void pli_client_member(pli_client *client, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    const pli_layout *layout = &client->layout;
    bool              died = event->kind == PLI_MEMBER_DIED;
    if (event->kind == PLI_MEMBER_JOINED) return;
    if (event->rank >= 0 &&
        event->rank < (layout->first_server > 0 ? layout->first_server + layout->servers : layout->workers))
        client->absent[event->rank] = died || event->life > 1 ? ABSENT_DIED : ABSENT_LEFT;
    for (int32_t s = 0; s < layout->servers; s++) {
        pli_client_link *link = &client->link[s];
        if (link->lost) continue;
        if (pli_moves_are_on(layout) && client->absent[pli_replica_rank(layout, s, link->place)] == ABSENT_DIED) {
            await_successor(client, s, event, out);
            continue;
        }
        if (pli_replica_rank(layout, s, link->place) != event->rank) continue;
        if (died) {
            redirect(client, now_ns, s, event, out);
        } else {
            const bool free = lets_go(client, s, out);
            pli_tx_end(&link->tx); /* it needs no acknowledgement any more */
            if (client->incarnation > 1) come_too_late(client, s, event->rank, free, out);
        }
    }
    if (!died || event->rank < 0 || event->rank >= layout->workers) return;
    const uint32_t life = event->life > 0 ? event->life : 1;
    if (life > client->died[event->rank]) client->died[event->rank] = (uint8_t)life;
    if (client->dead[event->rank] || life < client->life[event->rank]) return;
    client->dead[event->rank] = 1;
    if (client->replaced[event->rank]) return; /* it was away, or all others have stood in before this one came */
    atomic_fetch_add_explicit(&client->deaths, 1, memory_order_release);
    pli_out_ring(out);
}

/* --- the end of a clock ------------------------------------------------------------------------------------------- */

bool pli_client_is_safe(const pli_client *client) {
    for (int32_t s = 0; s < client->layout.servers; s++) {
        const pli_client_link *link = &client->link[s];
        if (link->used && atomic_load_explicit(&link->safe, memory_order_acquire) < link->closing) return false;
    }
    return true;
}

bool pli_client_must_stand_in(const pli_client *client) {
    return pli_client_has_clocks(client) && atomic_load_explicit(&client->deaths, memory_order_acquire) > client->views;
}

void pli_client_mark_missing(const pli_client *client, int64_t *whom) {
    for (int32_t w = 0; w < client->layout.workers; w++)
        if (client->dead[w] && !client->replaced[w]) whom[w] = 1;
}

bool pli_client_knows_dead(const pli_client *client, const int64_t *whom) {
    for (int32_t w = 0; w < client->layout.workers; w++)
        if (whom[w] != 0 && !client->dead[w]) return false;
    return true;
}

void pli_client_begin_standing_in(pli_client *client, const int64_t *whom) {
    for (int32_t w = 0; w < client->layout.workers; w++)
        client->next[w] = client->replaced[w] || (whom == NULL ? client->dead[w] : whom[w] != 0);
    pli_raise(client->sink, client->rank, false, PLI_EVENT_STAND);
}

plait_status pli_client_send_view(pli_client *client, uint64_t now_ns, pli_out *out, plait_error *err) {
    const int32_t workers = client->layout.workers;
    int32_t       n = 0;
    PLI_TRY(pli_client_send_push(client, now_ns, PLI_PUSH, out, err));
    for (int32_t w = 0; w < workers; w++) n += client->next[w] && !client->replaced[w];
    for (int32_t s = 0; s < client->layout.servers; s++) {
        if (!client->link[s].used) continue;
        pli_msg *msg = view_of(client, client->next, client->replaced, client->clock);
        for (int32_t w = 0; msg != NULL && w < workers; w++)
            if (client->next[w] && !client->replaced[w]) pli_raise_view(client, s, w);
        PLI_TRY(pli_client_send(client, now_ns, s, PLI_VIEW, msg, NULL, out, err));
    }
    pli_client_keep_events(client);
    memcpy(client->replaced, client->next, (size_t)workers);
    client->views += n;
    return PLAIT_OK;
}

void pli_client_end_clock(pli_client *client) {
    const bool alone = !pli_client_has_clocks(client);
    pli_raise_clock(client->sink, client->rank, client->clock);
    pli_client_keep_events(client);
    client->ending = false;
    client->clock++;
    for (int64_t i = 0; i < client->tables; i++) pli_cache_take_ahead(client, client->table[i]);
    for (int32_t w = 0; alone && w < client->layout.workers; w++) {
        client->views += client->dead[w] && !client->replaced[w];
        client->replaced[w] = client->next[w] = client->dead[w] || client->away[w];
    }
}

int32_t pli_client_holder(const pli_client *client, int32_t home, uint64_t item, bool next) {
    const pli_layout *layout = &client->layout;
    return pli_heir_of(next ? client->next : client->replaced, layout->workers, layout->spares, home, item);
}

/* The living worker among first .. end - 1 whose draw for the item is the highest; -1: none lives. */
static int32_t highest(const uint8_t *dead, int32_t first, int32_t end, uint64_t seed) {
    int32_t  best = -1;
    uint64_t most = 0;
    for (int32_t w = first; w < end; w++) {
        const uint64_t draw = pli_hash_u64(seed + (uint64_t)w) | 1;
        if (dead[w] || draw <= most) continue;
        most = draw;
        best = w;
    }
    return best;
}

int32_t pli_heir_of(const uint8_t *dead, int32_t workers, int32_t spares, int32_t home, uint64_t item) {
    const uint64_t seed = pli_hash_u64(item ^ pli_hash_u64((uint64_t)home + 1));
    if (dead == NULL || home < 0 || home >= workers || !dead[home]) return home;
    int32_t heir = highest(dead, workers - spares, workers, seed);
    if (heir < 0) heir = highest(dead, 0, workers - spares, seed);
    return heir < 0 ? home : heir;
}
