/* Who is in, at a worker: it hears the roster with the word that its clock is safe, and comes and goes itself. roster.h
 * has the idea. */
#include <stdatomic.h>
#include <string.h>

#include "table/copies/replicas.h"
#include "table/copies/roster.h"
#include "table/events.h"
#include "table/state/values.h"

/* Counts anew which deaths this worker has answered: by standing in, or since nobody misses those who were away. */
static void recount(pli_client *client) {
    int32_t deaths = 0;
    client->views = 0;
    for (int32_t w = 0; w < client->layout.workers; w++) {
        deaths += client->dead[w];
        client->views += client->dead[w] && client->replaced[w];
    }
    atomic_store_explicit(&client->deaths, deaths, memory_order_release);
}

/* --- what is heard ------------------------------------------------------------------------------------------------ */

uint64_t pli_roster_bytes(const pli_client *client, const pli_msg *safe) {
    const uint64_t bytes = pli_roster_size(&client->layout);
    return safe->head.arg32 == bytes && safe->head.body_bytes >= bytes ? bytes : 0;
}

void pli_client_hear_roster(pli_client *client, int32_t server, const pli_msg *safe) {
    const uint64_t bytes = pli_roster_bytes(client, safe);
    if (client->n_used == 0 || server != client->used[0] || !client->ending ||
        (uint64_t)safe->head.clock < client->link[server].closing)
        return;
    memset(client->heard, PLI_LOG_HERE, (size_t)client->layout.workers);
    if (bytes > 0) memcpy(client->heard, pli_msg_body(safe), (size_t)client->layout.workers * 2);
}

static uint8_t state_of(const pli_client *client, int32_t worker) {
    return client->away[worker] ? PLI_LOG_AWAY : client->replaced[worker] ? PLI_LOG_DEAD : PLI_LOG_HERE;
}

/* Tells each server who is in. joins: this worker has just come. */
static plait_status tell_servers(pli_client *client, uint64_t now_ns, bool joins, pli_out *out, plait_error *err) {
    const size_t workers = (size_t)client->layout.workers;
    for (int64_t i = 0; i < client->n_used; i++) {
        const int32_t s = client->used[i];
        pli_msg      *msg = pli_msg_new((size_t)pli_roster_size(&client->layout));
        if (msg != NULL) {
            memset(pli_msg_body(msg), PLI_LOG_HERE, (size_t)pli_roster_size(&client->layout));
            memcpy((uint8_t *)pli_msg_body(msg) + workers, client->life, workers);
            for (size_t w = 0; w < workers; w++) ((uint8_t *)pli_msg_body(msg))[w] = state_of(client, (int32_t)w);
            msg->head.clock = client->clock;
            msg->head.arg32 = joins;
        }
        for (int32_t w = 0; joins && w < client->layout.workers; w++)
            if (state_of(client, w) == PLI_LOG_DEAD) pli_raise_view(client, s, w);
        PLI_TRY(pli_client_send(client, now_ns, s, PLI_ROSTER, msg, NULL, out, err));
    }
    pli_client_keep_events(client);
    return PLAIT_OK;
}

/* The roster speaks of this life of the worker's rank, which may have died since. */
static void take_life(pli_client *client, int32_t w) {
    client->life[w] = client->heard_life[w];
    client->dead[w] = client->died[w] >= client->life[w];
}

plait_status pli_client_follow_roster(pli_client *client, uint64_t now_ns, pli_out *out, plait_error *err) {
    bool come = false, changed = false;
    for (int32_t w = 0; w < client->layout.workers; w++) {
        const bool away = client->heard[w] == PLI_LOG_AWAY;
        if (away == (client->away[w] != 0)) continue;
        changed = true;
        come = come || !away;
        client->away[w] = client->replaced[w] = client->next[w] = away;
        take_life(client, w);
    }
    client->changed = changed;
    client->joined = come;
    if (!changed) return PLAIT_OK;
    recount(client);
    client->left = client->away[client->rank] != 0;
    return come && !client->left ? tell_servers(client, now_ns, false, out, err) : PLAIT_OK;
}

/* --- coming and going --------------------------------------------------------------------------------------------- */

/* from is not the message's clock: none of that clock's messages may come yet. */
static pli_msg *join_from(int64_t from) {
    pli_msg *msg = pli_msg_new(sizeof from);
    if (msg != NULL) memcpy(pli_msg_body(msg), &from, sizeof from);
    return msg;
}

plait_status pli_client_ask_join(pli_client *client, uint64_t now_ns, int64_t from, uint64_t soon_ns,
                                 pli_ticket *ticket, pli_out *out, plait_error *err) {
    const plait_status status =
        pli_client_send(client, now_ns, client->used[0], PLI_JOIN, join_from(from), ticket, out, err);
    if (status < 0) return status;
    client->joining = ticket->id;
    client->soon_ns = soon_ns;
    if (soon_ns != PLI_NEVER) pli_out_wake(out, soon_ns);
    return PLAIT_OK;
}

/* The same ticket: whichever of the two is answered, it is once. Without memory it tries again a little later. */
void pli_client_come_sooner(pli_client *client, uint64_t now_ns, pli_out *out) {
    enum { AGAIN_NS = 1000000 };
    plait_error err;
    if (client->soon_ns == PLI_NEVER) return;
    if (now_ns >= client->soon_ns) {
        pli_msg *msg = join_from(0);
        if (msg != NULL) msg->head.arg32 = client->joining;
        const plait_status status =
            pli_client_send(client, now_ns, client->used[0], PLI_JOIN, msg, NULL, out, &err);
        client->soon_ns = status == PLAIT_ENOMEM ? now_ns + AGAIN_NS : PLI_NEVER;
    }
    if (client->soon_ns != PLI_NEVER) pli_out_wake(out, client->soon_ns);
}

plait_status pli_client_take_join(pli_client *client, uint64_t now_ns, const pli_msg *reply, bool *over_out,
                                  pli_out *out, plait_error *err) {
    const size_t workers = (size_t)client->layout.workers;
    uint64_t     met[2];
    client->soon_ns = PLI_NEVER;
    if (reply == NULL || reply->head.body_bytes != sizeof met + pli_roster_size(&client->layout) ||
        reply->head.clock < client->clock)
        return pli_fail(err, PLAIT_EFORMAT, "a malformed answer to a worker that joins");
    memcpy(met, pli_msg_body(reply), sizeof met);
    for (; client->passed < met[1]; client->passed++) pli_raise(client->sink, client->rank, false, PLI_EVENT_BARRIER);
    for (; client->clock < reply->head.clock; client->clock++)
        pli_raise_clock(client->sink, client->rank, client->clock);
    pli_client_keep_events(client);
    *over_out = met[0] == PLI_GONE;
    if (*over_out) pli_raise(client->sink, client->rank, false, PLI_EVENT_LEAVE);
    if (*over_out) return PLAIT_OK;
    client->barriers = met[0];
    client->left = false;
    client->changed = client->lost_count = true;
    memcpy(client->heard, pli_at_const(pli_msg_body(reply), sizeof met), workers * 2);
    for (int32_t w = 0; w < client->layout.workers; w++) take_life(client, w);
    for (size_t w = 0; w < workers; w++) {
        client->away[w] = client->heard[w] == PLI_LOG_AWAY;
        client->replaced[w] = client->next[w] = client->heard[w] != PLI_LOG_HERE;
    }
    recount(client);
    for (int64_t i = 0; i < client->tables; i++) {
        pli_cache_forget(client->table[i]);
        pli_cache_drop_fresh(client->table[i]);
    }
    return tell_servers(client, now_ns, true, out, err);
}

plait_status pli_client_say_leaves(pli_client *client, uint64_t now_ns, pli_out *out, plait_error *err) {
    if (client->link[0].used || client->link[0].lost) return PLAIT_OK;
    pli_msg *msg = pli_msg_new(0);
    if (msg != NULL) {
        msg->head.clock = client->clock;
        msg->head.flags = PLI_FLAG_LEAVES;
    }
    return pli_client_send(client, now_ns, 0, PLI_LEAVE, msg, NULL, out, err);
}
