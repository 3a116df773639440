/* Passes a worker's messages through its tables' filters: pulls and pushes on their way out, answers when they come.
 * The rest of the client knows nothing of filters: it sees messages only as they are without them. */
#include <string.h>

#include "table/client/client.h"
#include "table/state/updates.h"
#include "table/state/values.h"

/* --- life ----------------------------------------------------------------------------------------------------- */

plait_status pli_client_filters_open(pli_client_table *table, const pli_layout *layout, plait_error *err) {
    const pli_filter_scope scope = pli_layout_filters(layout);
    const pli_spec        *spec = &table->spec;
    PLI_TRY(pli_filters_read(spec->filter, &scope, &table->filters, err));
    if (table->filters.n == 0) return PLAIT_OK;
    table->chain = pli_calloc((size_t)spec->placement.shards, sizeof *table->chain);
    if (table->chain == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the filters of table %s", spec->name);
    for (int32_t i = 0; i < spec->placement.shards; i++) {
        int64_t first = 0, rows = 0;
        if (spec->rows > 0) pli_placement_range(&spec->placement, i, &first, &rows);
        const plait_filter_table described = pli_filters_describe(spec, layout, first, rows);
        PLI_TRY(pli_chain_open(&table->chain[i], &table->filters, &described, err));
    }
    return PLAIT_OK;
}

void pli_client_filters_close(pli_client_table *table) {
    for (int32_t i = 0; table->chain != NULL && i < table->spec.placement.shards; i++)
        pli_chain_close(&table->chain[i]);
    pli_free(table->chain);
    pli_free(table->penalty);
    table->chain = NULL;
    table->penalty = NULL;
}

plait_status pli_client_filters_penalty(pli_client_table *table, const void *penalty, plait_error *err) {
    size_t bytes = (size_t)(table->spec.rows * pli_row_bytes(&table->spec));
    if (table->chain == NULL || penalty == NULL) return PLAIT_OK;
    table->penalty = pli_malloc(bytes);
    if (table->penalty == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for the filters of table %s", table->spec.name);
    memcpy(table->penalty, penalty, bytes);
    return PLAIT_OK;
}

static plait_part part_of(const pli_client *client, const pli_client_table *table, int32_t server, plait_way way) {
    const pli_spec *spec = &table->spec;
    return (plait_part){ .way = way, .table = spec->id, .worker = client->rank, .server = server,
                         .seed = client->layout.seed, .clock = client->clock, .type = spec->type, .cols = spec->cols,
                         .l1 = spec->ruled ? spec->rule.l1 : 0, .penalty = table->penalty };
}

static pli_chain *chain_of(const pli_client *client, const pli_client_table *table, int32_t server) {
    int32_t shard = pli_placement_shard_at(&table->spec.placement, client->layout.first_server + server);
    return shard < 0 || table->chain == NULL ? NULL : &table->chain[shard];
}

/* Makes a message with the same head and another body. NULL: out of memory. */
static pli_msg *message_of(const pli_msg *like, const pli_bytes *body) {
    pli_msg *msg = pli_msg_new((size_t)body->n);
    if (msg == NULL) return NULL;
    uint64_t bytes = msg->head.body_bytes;
    msg->head = like->head;
    msg->head.body_bytes = bytes;
    msg->head.flags |= PLI_FLAG_FILTERED;
    if (body->n > 0) memcpy(pli_msg_body(msg), body->data, (size_t)body->n);
    return msg;
}

static plait_status no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for a filtered message");
}

/* --- out ------------------------------------------------------------------------------------------------------- */

/* body stays empty if the message travels as it is. */
static plait_status filter_pull(pli_client *client, int32_t server, const pli_msg *msg, pli_bytes *body,
                                plait_error *err) {
    pli_wire_pull pull;
    memcpy(&pull, pli_msg_body(msg), sizeof pull);
    const pli_client_table *table = pli_client_table_of(client, pull.table);
    if (table == NULL || !(pull.flags & PLI_PULL_KEYS) || pull.n == 0) return PLAIT_OK;
    pli_chain *chain = chain_of(client, table, server);
    if (chain == NULL || !pli_filters_touch(&table->filters, PLAIT_PULLED, true)) return PLAIT_OK;
    plait_part part = part_of(client, table, server, PLAIT_PULLED);
    int64_t    n;
    part.n = pull.n;
    part.keys = pli_at_const(pli_msg_body(msg), sizeof pull);
    if (!pli_bytes_add(body, &pull, sizeof pull)) return no_memory(err);
    return pli_chain_encode(chain, &part, NULL, false, body, &n, err);
}

static plait_status copy_part(const pli_client_table *table, const pli_msg *msg, pli_wire_part *wire, pli_bytes *body,
                              plait_error *err) {
    const void *from = pli_at_const(pli_msg_body(msg), (int64_t)wire->keys_at);
    int64_t     keys = table->spec.keyed ? wire->n * 8 : 0, at = body->n;
    if (!pli_bytes_add(body, from, keys) ||
        !pli_bytes_add(body, pli_at_const(pli_msg_body(msg), (int64_t)wire->values_at),
                       wire->n * pli_sum_row_bytes(&table->spec)))
        return no_memory(err);
    wire->keys_at = (uint64_t)at;
    wire->values_at = (uint64_t)(at + keys);
    return PLAIT_OK;
}

static plait_status filter_part(pli_client *client, const pli_client_table *table, int32_t server, const pli_msg *msg,
                                pli_wire_part *wire, pli_bytes *body, plait_error *err) {
    plait_part part = part_of(client, table, server, PLAIT_PUSHED);
    int64_t    at = body->n;
    pli_part_of_sums(&table->spec, &part);
    part.examples = wire->examples;
    part.n = wire->n;
    part.first = wire->first;
    part.clock = msg->head.clock;
    if (wire->flags & PLI_PART_KEYED) part.keys = pli_at_const(pli_msg_body(msg), (int64_t)wire->keys_at);
    PLI_TRY(pli_chain_encode(chain_of(client, table, server), &part,
                             pli_at_const(pli_msg_body(msg), (int64_t)wire->values_at), client->lossless, body,
                             &wire->n, err));
    wire->flags |= PLI_PART_FILTERED;
    wire->keys_at = (uint64_t)at;
    wire->values_at = (uint64_t)(body->n - at);
    return PLAIT_OK;
}

static bool is_filtered(const pli_client_table *table) {
    return table->chain != NULL && pli_filters_touch(&table->filters, PLAIT_PUSHED, table->spec.keyed);
}

static bool has_filtered_part(const pli_client *client, const pli_msg *msg) {
    pli_wire_part wire;
    for (uint32_t i = 0; i < msg->head.arg32; i++) {
        memcpy(&wire, pli_at_const(pli_msg_body(msg), (int64_t)(i * sizeof wire)), sizeof wire);
        if (is_filtered(pli_client_table_of(client, wire.table))) return true;
    }
    return false;
}

static plait_status filter_push(pli_client *client, int32_t server, const pli_msg *msg, pli_bytes *body,
                                plait_error *err) {
    pli_wire_part wire;
    if (!has_filtered_part(client, msg)) return PLAIT_OK;
    if (!pli_bytes_add(body, pli_msg_body(msg), (int64_t)(msg->head.arg32 * sizeof wire))) return no_memory(err);
    for (uint32_t i = 0; i < msg->head.arg32; i++) {
        memcpy(&wire, body->data + i * sizeof wire, sizeof wire);
        const pli_client_table *table = pli_client_table_of(client, wire.table);
        PLI_TRY(is_filtered(table) ? filter_part(client, table, server, msg, &wire, body, err)
                                   : copy_part(table, msg, &wire, body, err));
        if (!pli_bytes_pad8(body)) return no_memory(err);
        memcpy(body->data + i * sizeof wire, &wire, sizeof wire);
    }
    return PLAIT_OK;
}

/* What is pushed in a dead one's stead travels as it is. A server that had all of the dead one's updates ignores it; if
 * it took along what is kept of this worker's own rounding errors, these would be lost there. */
plait_status pli_client_filter(pli_client *client, int32_t server, pli_kind kind, pli_msg **msg, plait_error *err) {
    pli_bytes    body = { 0 };
    plait_status status = PLAIT_OK;
    if (kind == PLI_PULL) status = filter_pull(client, server, *msg, &body, err);
    else if ((kind == PLI_PUSH || kind == PLI_CLOCK) && !((*msg)->head.flags & PLI_FLAG_REDO))
        status = filter_push(client, server, *msg, &body, err);
    if (status >= 0 && body.n > 0) {
        pli_msg *filtered = message_of(*msg, &body);
        if (filtered == NULL) status = no_memory(err);
        pli_msg_free(msg);
        *msg = filtered;
    }
    if (status < 0) pli_msg_free(msg);
    pli_bytes_free(&body);
    return status;
}

/* --- in -------------------------------------------------------------------------------------------------------- */

/* Finds the rows that an answer brings. false: none was asked of this server. */
static bool rows_asked(const pli_ask *ask, int32_t shard, plait_part *part) {
    if (shard < 0) return false;
    if (ask->by_key) {
        if (ask->start == NULL) return false;
        part->n = ask->start[shard + 1] - ask->start[shard];
        part->keys = ask->fetch + ask->start[shard];
    } else {
        if (ask->piece == NULL || ask->piece[shard].msg != NULL) return false;
        part->n = ask->piece[shard].n;
        part->first = ask->piece[shard].first;
    }
    return part->n > 0;
}

static void take_body(pli_msg *msg, pli_msg *with) {
    pli_slab_unref(&msg->body);
    msg->body = with->body;
    msg->offset = with->offset;
    msg->head.body_bytes = with->head.body_bytes;
    msg->head.flags &= (uint16_t)~PLI_FLAG_FILTERED;
    with->body = NULL;
    pli_msg_free(&with);
}

plait_status pli_client_unfilter(pli_client *client, const pli_ask *ask, pli_msg *msg, plait_error *err) {
    const pli_client_table *table = ask->table;
    int32_t                 server = msg->head.src - client->layout.first_server;
    pli_chain              *chain = chain_of(client, table, server);
    plait_part              part = part_of(client, table, server, PLAIT_ANSWERED);
    bool                    filtered = (msg->head.flags & PLI_FLAG_FILTERED) != 0;
    pli_decoded             decoded = { 0 };
    if (chain == NULL && !filtered) return PLAIT_OK;
    if (chain == NULL || !rows_asked(ask, pli_placement_shard_at(&table->spec.placement, msg->head.src), &part))
        return filtered ? pli_fail(err, PLAIT_EFORMAT, "table %s: rank %d answered a request that was not made",
                                   table->spec.name, msg->head.src)
                        : PLAIT_OK;
    uint64_t bytes = (uint64_t)(part.n * pli_row_bytes(&table->spec));
    if (!filtered && msg->head.body_bytes != bytes) return PLAIT_OK; /* whoever looks at the answer refuses it */
    if (filtered) {
        PLI_TRY(pli_chain_decode(chain, &part, false, pli_msg_body(msg), (int64_t)msg->head.body_bytes, &decoded, err));
        pli_msg *plain = pli_msg_new(bytes);
        if (plain != NULL) memcpy(pli_msg_body(plain), decoded.values, bytes);
        pli_decoded_free(&decoded);
        if (plain == NULL) return no_memory(err);
        take_body(msg, plain);
    }
    return pli_chain_seen(chain, &part, pli_msg_body(msg), err);
}

/* --- lists, and what stays behind -------------------------------------------------------------------------------- */

void pli_client_send_list(pli_client *client, uint64_t now_ns, int32_t server, const pli_msg *msg, pli_out *out) {
    const pli_client_table *table = pli_client_table_of(client, msg->head.arg32);
    pli_chain              *chain = table == NULL ? NULL : chain_of(client, table, server);
    pli_wire_keys           wire = { .table = msg->head.arg32, .place = (uint32_t)client->link[server].place };
    pli_bytes               body = { 0 };
    plait_error             why = { .code = PLAIT_EFORMAT,
                                    .text = "a list of keys was requested for a table without filters" };
    plait_status            status = PLAIT_EFORMAT;
    if (chain != NULL && msg->head.body_bytes == PLAIT_TOKEN_BYTES) {
        status = pli_bytes_add(&body, &wire, sizeof wire)
                     ? pli_chain_encode_list(chain, pli_msg_body(msg), &body, &wire.n, &why)
                     : no_memory(&why);
    }
    pli_msg *list = status >= 0 ? pli_msg_new((size_t)body.n) : NULL;
    if (status >= 0 && list != NULL) {
        memcpy(body.data, &wire, sizeof wire);
        memcpy(pli_msg_body(list), body.data, (size_t)body.n);
    }
    if (status >= 0) status = pli_client_send(client, now_ns, server, PLI_KEYS, list, NULL, out, &why);
    if (status < 0) pli_out_fail(out, status, "rank %d: %s", msg->head.src, why.text);
    pli_bytes_free(&body);
}

plait_status pli_client_take_back(pli_client_table *table, plait_error *err) {
    const pli_spec *spec = &table->spec;
    for (int32_t i = 0; table->chain != NULL && i < spec->placement.shards; i++) {
        pli_residual *rest = &table->chain[i].residual;
        if (rest->values == NULL || (rest->keyed && rest->set.n == 0)) continue;
        PLI_TRY(rest->keyed ? pli_pending_add(&table->pending, rest->set.n, rest->set.keys, rest->values, 0, err)
                            : pli_pending_add_range(&table->pending, rest->first, rest->rows, rest->values, 0, err));
        pli_residual_clear(rest);
        if (table->chain[i].examples > table->pending.examples) table->pending.examples = table->chain[i].examples;
    }
    return PLAIT_OK;
}

void pli_client_forget_rest(pli_client_table *table) {
    for (int32_t i = 0; table->chain != NULL && i < table->spec.placement.shards; i++)
        pli_residual_clear(&table->chain[i].residual);
}
