/* A get that is under way: which shards are asked for what, and how their answers come together. See client.h. */
#include <stdatomic.h>
#include <string.h>

#include "table/events.h"
#include "table/state/values.h"

static plait_status no_memory(const pli_client_table *table, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a get", table->spec.name);
}

static plait_status send_pull(pli_client *client, uint64_t now_ns, pli_ask *ask, int32_t shard,
                              const pli_wire_pull *pull, const uint64_t *keys, pli_out *out, plait_error *err) {
    const pli_placement *placement = &ask->table->spec.placement;
    size_t               key_bytes = keys == NULL ? 0 : (size_t)pull->n * 8;
    pli_msg             *msg = pli_msg_new(sizeof *pull + key_bytes);
    if (msg != NULL) {
        unsigned char *body = pli_msg_body(msg);
        pli_wire_pull  wire = *pull;
        wire.flags |= (client->met ? PLI_PULL_MET : 0) | (client->leaps ? PLI_PULL_LEAPS : 0);
        memcpy(body, &wire, sizeof wire);
        if (key_bytes > 0) memcpy(body + sizeof *pull, keys, key_bytes);
        msg->head.clock = client->clock;
    }
    int32_t server = pli_placement_rank(placement, shard) - placement->first_rank;
    return pli_client_send(client, now_ns, server, PLI_PULL, msg, &ask->ticket, out, err);
}

/* --- by range -------------------------------------------------------------------------------------------------- */

static bool covers(const pli_held *held, const pli_held *piece) {
    return held->msg != NULL && held->first <= piece->first && held->first + held->n >= piece->first + piece->n;
}

/* Takes one shard's piece from the copy held, or asks the server for it. */
static plait_status begin_piece(pli_client *client, uint64_t now_ns, pli_ask *ask, int32_t shard, pli_out *out,
                                plait_error *err) {
    const pli_client_table *table = ask->table;
    pli_held               *held = &table->held[shard];
    pli_held               *piece = &ask->piece[shard];
    int64_t                 first, n;
    pli_placement_range(&table->spec.placement, shard, &first, &n);
    int64_t low = ask->first > first ? ask->first : first;
    int64_t high = ask->first + ask->n < first + n ? ask->first + ask->n : first + n;
    *piece = (pli_held){ .first = low, .n = low < high ? high - low : 0 };
    if (piece->n == 0) return PLAIT_OK;
    if (covers(held, piece) && pli_cache_serves(client, table, &held->age, client->clock)) {
        held->read = held->read || (piece->first == held->first && piece->n == held->n);
        piece->msg = pli_msg_copy(held->msg);
        piece->first = held->first;
        piece->n = held->n;
        piece->age = held->age;
        piece->state = held->state;
        piece->from = held->from;
        piece->to = held->to;
        return piece->msg == NULL ? no_memory(table, err) : PLAIT_OK;
    }
    pli_wire_pull pull = { .table = (uint32_t)table->spec.id, .first = piece->first, .n = piece->n };
    return send_pull(client, now_ns, ask, shard, &pull, NULL, out, err);
}

plait_status pli_ask_range(pli_client *client, uint64_t now_ns, pli_client_table *table, int64_t first, int64_t n,
                           void *values, pli_ask *ask, pli_out *out, plait_error *err) {
    *ask = (pli_ask){ .table = table, .met = client->met, .first = first, .n = n, .values = values,
                      .asked_ns = now_ns };
    pli_ticket_open(client, &ask->ticket);
    ask->ticket.ask = ask;
    pli_cache_take_fresh(client, table);
    ask->piece = pli_calloc((size_t)table->spec.placement.shards, sizeof *ask->piece);
    if (ask->piece == NULL) return no_memory(table, err);
    for (int32_t shard = 0; shard < table->spec.placement.shards; shard++)
        PLI_TRY(begin_piece(client, now_ns, ask, shard, out, err));
    return PLAIT_OK;
}

static plait_status bad_answer(const pli_ask *ask, const pli_msg *reply, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "table %s: rank %d answered a get with %llu bytes", ask->table->spec.name,
                    reply->head.src, (unsigned long long)reply->head.body_bytes);
}

/* Which answers may be kept as a copy: not one that the worker looks at after a later one, else reads would not be
 * monotone; nor one that was given without a turn, once the worker takes turns again. */
static bool is_to_keep(const pli_client *client, const pli_ask *ask, int32_t shard, const pli_msg *reply) {
    return reply->head.seq >= ask->table->shard[shard].taken && (client->met || !ask->met);
}

/* An answer becomes the copy that is held; the ask has a reference of its own. */
static plait_status take_piece(const pli_client *client, pli_ask *ask, pli_msg *reply, plait_error *err) {
    pli_client_table *table = ask->table;
    int32_t   shard = pli_placement_shard_at(&table->spec.placement, reply->head.src);
    pli_held *piece = shard < 0 ? NULL : &ask->piece[shard];
    if (piece == NULL || reply->head.body_bytes != (uint64_t)(piece->n * pli_row_bytes(&table->spec)))
        return bad_answer(ask, reply, err);
    piece->age = (pli_age){ .version = reply->head.clock, .fetched = client->clock };
    piece->state = reply->note;
    piece->from = piece->to = table->pushes;
    piece->read = true;
    piece->msg = pli_msg_copy(reply);
    if (piece->msg == NULL) return no_memory(table, err);
    if (!is_to_keep(client, ask, shard, reply)) return PLAIT_OK;
    pli_rowset_clear(&table->rows); /* the copies held are older */
    pli_msg_free(&table->held[shard].msg);
    table->held[shard] = *piece;
    table->held[shard].msg = pli_msg_copy(reply);
    return PLAIT_OK; /* a copy that could not be held is fetched anew next time */
}

static plait_status finish_range(const pli_client *client, pli_ask *ask, plait_error *err) {
    pli_client_table *table = ask->table;
    int64_t           row_bytes = pli_row_bytes(&table->spec);
    for (pli_msg *reply = ask->ticket.replies; reply != NULL; reply = reply->next)
        PLI_TRY(take_piece(client, ask, reply, err));
    for (int32_t shard = 0; ask->values != NULL && shard < table->spec.placement.shards; shard++) {
        const pli_held *piece = &ask->piece[shard];
        if (piece->msg == NULL) continue;
        int64_t low = piece->first > ask->first ? piece->first : ask->first;
        int64_t high = piece->first + piece->n < ask->first + ask->n ? piece->first + piece->n : ask->first + ask->n;
        memcpy(pli_at(ask->values, (low - ask->first) * row_bytes),
               pli_at_const(pli_msg_body(piece->msg), (low - piece->first) * row_bytes),
               (size_t)((high - low) * row_bytes));
    }
    double scale = pli_client_own_scale(client, table);
    if (ask->values != NULL && scale != 0) {
        pli_pending_overlay_range(&table->pending, scale, ask->first, ask->n, ask->values);
        ask->incs = table->incs;
    }
    return PLAIT_OK;
}

/* --- by key ------------------------------------------------------------------------------------------------------ */

/* Finds the keys to fetch: place [n] receives the places of the m keys that no copy serves; it stays NULL if all must
 * be fetched. */
static plait_status look_into_cache(pli_client *client, pli_ask *ask, int64_t *m_out, plait_error *err) {
    pli_client_table *table = ask->table;
    *m_out = ask->n;
    if (!table->reuses || table->rows.n == 0) return PLAIT_OK;
    ask->place = pli_array((size_t)ask->n, sizeof *ask->place);
    if (ask->place == NULL) return no_memory(table, err);
    *m_out = pli_cache_get(client, table, ask->n, ask->keys, ask->values, ask->place);
    pli_note_taken(client, ask, ask->place, *m_out);
    return PLAIT_OK;
}

/* Finds the shard of each of the m keys to fetch. */
static void find_shards(const pli_ask *ask, int64_t m, uint16_t *shard_of) {
    const pli_placement *placement = &ask->table->spec.placement;
    uint64_t             keys[PLI_BLOCK];
    if (ask->place == NULL) {
        pli_placement_shards(placement, m, ask->keys, shard_of);
        return;
    }
    for (int64_t from = 0; from < m; from += PLI_BLOCK) {
        int64_t n = m - from < PLI_BLOCK ? m - from : PLI_BLOCK;
        for (int64_t i = 0; i < n; i++) keys[i] = ask->keys[ask->place[from + i]];
        pli_placement_shards(placement, n, keys, shard_of + from);
    }
}

/* Orders the keys to fetch by shard: one pass counts, one moves. */
static plait_status split(pli_ask *ask, int64_t m, plait_error *err) {
    const uint32_t *from = ask->place;
    int64_t         shards = ask->table->spec.placement.shards;
    ask->start = pli_calloc((size_t)shards + 2, sizeof *ask->start);
    if (ask->start == NULL) return no_memory(ask->table, err);
    if (shards == 1 && from == NULL) {
        ask->fetch = (uint64_t *)ask->keys;
        ask->start[1] = m;
        return PLAIT_OK;
    }
    uint16_t *shard_of = pli_array((size_t)m, sizeof *shard_of);
    uint32_t *place = pli_array((size_t)m, sizeof *place);
    ask->fetch = pli_array((size_t)m, sizeof *ask->fetch);
    if (shard_of == NULL || place == NULL || ask->fetch == NULL) {
        pli_free(shard_of);
        pli_free(place);
        return no_memory(ask->table, err);
    }
    find_shards(ask, m, shard_of);
    for (int64_t i = 0; i < m; i++) ask->start[shard_of[i] + 2]++;
    for (int64_t s = 2; s < shards + 2; s++) ask->start[s] += ask->start[s - 1];
    for (int64_t i = 0; i < m; i++) { /* start[s + 1] moves from the beginning of shard s to its end, which is the
                                       * beginning of s + 1 */
        int64_t to = ask->start[shard_of[i] + 1]++;
        place[to] = from == NULL ? (uint32_t)i : from[i];
        ask->fetch[to] = ask->keys[place[to]];
    }
    pli_free(shard_of);
    pli_free(ask->place);
    ask->place = place;
    return PLAIT_OK;
}

plait_status pli_ask_keys(pli_client *client, uint64_t now_ns, pli_client_table *table, int64_t n, const uint64_t *keys,
                          void *values, pli_ask *ask, pli_out *out, plait_error *err) {
    int64_t m;
    *ask = (pli_ask){ .table = table, .by_key = true, .met = client->met, .n = n, .keys = keys, .values = values,
                      .asked_ns = now_ns };
    pli_ticket_open(client, &ask->ticket);
    ask->ticket.ask = ask;
    pli_cache_take_fresh(client, table);
    PLI_TRY(look_into_cache(client, ask, &m, err));
    if (m == 0) return PLAIT_OK;
    PLI_TRY(split(ask, m, err));
    for (int32_t shard = 0; shard < table->spec.placement.shards; shard++) {
        int64_t       begin = ask->start[shard], count = ask->start[shard + 1] - begin;
        pli_wire_pull pull = { .table = (uint32_t)table->spec.id, .flags = PLI_PULL_KEYS, .first = -1, .n = count };
        if (count > 0) PLI_TRY(send_pull(client, now_ns, ask, shard, &pull, ask->fetch + begin, out, err));
    }
    return PLAIT_OK;
}

static plait_status take_rows(const pli_client *client, pli_ask *ask, const pli_msg *reply, plait_error *err) {
    const pli_age     age = { .version = reply->head.clock, .fetched = client->clock };
    pli_client_table *table = ask->table;
    int64_t           row_bytes = pli_row_bytes(&table->spec);
    int32_t           shard = pli_placement_shard_at(&table->spec.placement, reply->head.src);
    if (shard < 0 || ask->start == NULL) return bad_answer(ask, reply, err);
    int64_t begin = ask->start[shard], count = ask->start[shard + 1] - begin;
    if (reply->head.body_bytes != (uint64_t)(count * row_bytes)) return bad_answer(ask, reply, err);
    const void *rows = pli_msg_body(reply);
    if (ask->place == NULL) memcpy(ask->values, rows, (size_t)(count * row_bytes));
    else pli_rows_scatter(count, row_bytes, ask->place + begin, rows, ask->values);
    if (!is_to_keep(client, ask, shard, reply)) return PLAIT_OK;
    pli_msg_free(&table->held[shard].msg); /* it is older */
    if (table->reuses) pli_cache_put(table, count, ask->fetch + begin, rows, &age);
    if (table->reuses) pli_note_rows(client, table, reply, count, ask->fetch + begin);
    return PLAIT_OK;
}

static plait_status finish_keys(const pli_client *client, pli_ask *ask, plait_error *err) {
    for (const pli_msg *reply = ask->ticket.replies; reply != NULL; reply = reply->next)
        PLI_TRY(take_rows(client, ask, reply, err));
    double scale = pli_client_own_scale(client, ask->table);
    if (scale != 0) {
        pli_pending_overlay(&ask->table->pending, scale, ask->n, ask->keys, ask->values);
        ask->incs = ask->table->incs;
    }
    return PLAIT_OK;
}

/* --- no rows ------------------------------------------------------------------------------------------------------ */

plait_status pli_ask_turn(pli_client *client, uint64_t now_ns, pli_client_table *table, int what, pli_ask *ask,
                          pli_out *out, plait_error *err) {
    const pli_placement *placement = &table->spec.placement;
    pli_wire_pull        pull = { .table = (uint32_t)table->spec.id,
                                  .flags = table->spec.rows == 0 ? PLI_PULL_KEYS : 0 };
    *ask = (pli_ask){ .table = table, .met = client->met };
    pli_ticket_open(client, &ask->ticket);
    for (int32_t i = 0; i < placement->shards; i++) {
        const pli_client_shard *shard = &table->shard[i];
        int64_t                 rows;
        const pli_client_link  *link = &client->link[pli_placement_rank(placement, i) - placement->first_rank];
        bool late = what == PLAIT_TURN ? shard->admitted < client->clock : link->tx.acked < shard->sent;
        if (table->spec.rows > 0) pli_placement_range(placement, i, &pull.first, &rows);
        if (late) PLI_TRY(send_pull(client, now_ns, ask, i, &pull, NULL, out, err));
    }
    return PLAIT_OK;
}

/* A server that has answered has let the worker into its clock. A get behind a barrier asked for no turn, so it says
 * nothing of this. */
static void note_answers(pli_client *client, const pli_ask *ask) {
    for (const pli_msg *reply = ask->ticket.replies; reply != NULL; reply = reply->next) {
        int32_t i = pli_placement_shard_at(&ask->table->spec.placement, reply->head.src);
        if (i < 0) continue;
        pli_client_shard *shard = &ask->table->shard[i];
        if (ask->table->at_clock && reply->head.clock > client->complete) client->complete = reply->head.clock;
        if (!ask->met) shard->admitted = client->clock;
        if (ask->n > 0 && reply->head.seq > shard->taken) shard->taken = reply->head.seq;
    }
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

void pli_ask_abandon(pli_ask *ask) {
    pli_ticket_free(&ask->ticket);
    for (int32_t s = 0; ask->piece != NULL && s < ask->table->spec.placement.shards; s++)
        pli_msg_free(&ask->piece[s].msg);
    pli_free(ask->piece);
    pli_free(ask->start);
    pli_free(ask->place);
    pli_free(ask->taken);
    if (ask->fetch != ask->keys) pli_free(ask->fetch);
    ask->piece = NULL;
    ask->start = NULL;
    ask->place = NULL;
    ask->taken = NULL;
    ask->fetch = NULL;
}

plait_status pli_ask_finish(pli_client *client, pli_ask *ask, plait_error *err) {
    plait_status status;
    if (ask->ticket.failure.code < 0) {
        if (err != NULL) *err = ask->ticket.failure;
        status = ask->ticket.failure.code;
    } else {
        note_answers(client, ask);
        if (ask->n == 0) return PLAIT_OK;
        status = ask->by_key ? finish_keys(client, ask, err) : finish_range(client, ask, err);
    }
    if (status >= 0 && ask->values != NULL) pli_raise_get(client, ask);
    return status;
}
