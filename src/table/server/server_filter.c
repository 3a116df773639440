/* Passes a server's messages through its tables' filters: pushes and pulls of workers when they come, answers on their
 * way out.
 *
 * A worker's messages are acted upon in order. A message that names a list of keys which is not known here waits for
 * the list, and the messages that follow wait behind it. The list itself (KEYS) does not wait.
 *
 * With replicas (copies/replicas.h) only the one that serves decodes: what it acts upon, and so its log, is without
 * filters. A stand-in knows no lists, and asks for them again. It needs nothing else from the dead one: decoding takes
 * a message, the table's filters and lists, and what was kept back is kept by workers. */
#include <string.h>

#include "table/copies/replicas.h"
#include "table/state/updates.h"
#include "table/state/values.h"

/* --- life ----------------------------------------------------------------------------------------------------- */

plait_filter_table pli_filters_describe(const pli_spec *spec, const pli_layout *layout, int64_t first, int64_t rows) {
    return (plait_filter_table){ .name = spec->name, .type = spec->type, .rows = spec->rows, .cols = spec->cols,
                                 .keyed = spec->keyed, .rule = spec->ruled ? spec->rule.ops->name : NULL,
                                 .l1 = spec->ruled ? spec->rule.l1 : 0, .workers = layout->workers,
                                 .servers = layout->servers, .first = first, .count = rows };
}

plait_status pli_server_filters_open(const pli_server *server, pli_server_table *table, const char *names,
                                     plait_error *err) {
    const pli_filter_scope   scope = pli_layout_filters(&server->layout);
    const pli_spec          *spec = &table->shard.spec;
    const plait_filter_table described =
        pli_filters_describe(spec, &server->layout, table->shard.first, table->shard.rows);
    plait_status status = pli_filters_read(names, &scope, &table->filters, err);
    if (status < 0 || table->filters.n == 0) return status;
    table->chain = pli_calloc((size_t)server->layout.workers, sizeof *table->chain);
    if (table->chain == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the filters of table %s", spec->name);
    table->chains = server->layout.workers;
    for (int32_t w = 0; status >= 0 && w < table->chains; w++)
        status = pli_chain_open(&table->chain[w], &table->filters, &described, err);
    if (status < 0) pli_server_filters_close(table);
    return status;
}

void pli_server_filters_close(pli_server_table *table) {
    for (int32_t w = 0; w < table->chains; w++) pli_chain_close(&table->chain[w]);
    pli_free(table->chain);
    table->chain = NULL;
    table->chains = 0;
}

static plait_part part_of(const pli_server *server, const pli_server_table *table, const pli_msg *msg, plait_way way) {
    const pli_spec *spec = &table->shard.spec;
    return (plait_part){ .way = way, .table = spec->id, .worker = msg->head.src,
                         .server = server->home - server->layout.first_server, .seed = server->layout.seed,
                         .clock = msg->head.clock, .type = spec->type, .cols = spec->cols,
                         .l1 = spec->ruled ? spec->rule.l1 : 0 };
}

static pli_chain *chain_of(const pli_server_table *table, int32_t worker) {
    return table == NULL || table->chain == NULL ? NULL : &table->chain[worker];
}

/* --- in -------------------------------------------------------------------------------------------------------- */

/* A message without filters, while it is built. */
typedef struct plain {
    pli_bytes     body;
    bool          missing; /* a list of keys for this table is missing */
    uint32_t      table;
    unsigned char token[PLAIT_TOKEN_BYTES];
} plain;

static plait_status no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for a filtered message");
}

static plait_status cut_short(plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "a filtered message is cut short");
}

static void note_missing(plain *p, uint32_t table, const pli_decoded *decoded) {
    p->missing = true;
    p->table = table;
    memcpy(p->token, decoded->token, sizeof p->token);
}

static plait_status open_pull(pli_server *server, const pli_msg *msg, plain *p, plait_error *err) {
    pli_wire_pull pull;
    pli_decoded   decoded;
    if (msg->head.body_bytes < sizeof pull) return cut_short(err);
    memcpy(&pull, pli_msg_body(msg), sizeof pull);
    pli_server_table *table = pli_server_table_of(server, pull.table);
    pli_chain        *chain = chain_of(table, msg->head.src);
    if (chain == NULL || !(pull.flags & PLI_PULL_KEYS)) return cut_short(err);
    plait_part part = part_of(server, table, msg, PLAIT_PULLED);
    part.n = pull.n;
    PLI_TRY(pli_chain_decode(chain, &part, true, pli_at_const(pli_msg_body(msg), sizeof pull),
                             (int64_t)(msg->head.body_bytes - sizeof pull), &decoded, err));
    if (decoded.missing) note_missing(p, pull.table, &decoded);
    bool done = decoded.missing ||
                (pli_bytes_add(&p->body, &pull, sizeof pull) && pli_bytes_add(&p->body, decoded.keys, decoded.n * 8));
    pli_decoded_free(&decoded);
    return done ? PLAIT_OK : no_memory(err);
}

static bool lies_in(uint64_t at, uint64_t size, uint64_t bytes) { return at <= bytes && size <= bytes - at; }

/* Decodes a filtered part's keys and values, or says why it cannot. */
static plait_status decode_part(pli_server *server, const pli_msg *msg, const pli_wire_part *wire, pli_decoded *decoded,
                                plait_error *err) {
    pli_server_table *table = pli_server_table_of(server, wire->table);
    pli_chain        *chain = chain_of(table, msg->head.src);
    bool              keyed = (wire->flags & PLI_PART_KEYED) != 0;
    if (chain == NULL || keyed != table->shard.spec.keyed ||
        !lies_in(wire->keys_at, wire->values_at, msg->head.body_bytes))
        return cut_short(err);
    plait_part part = part_of(server, table, msg, PLAIT_PUSHED);
    pli_part_of_sums(&table->shard.spec, &part);
    part.examples = wire->examples;
    part.n = wire->n;
    part.first = wire->first;
    const pli_push_part range = { .touched = true, .first = wire->first, .n = wire->n };
    if (!keyed) PLI_TRY(pli_shard_check(&table->shard, &range, err));
    return pli_chain_decode(chain, &part, keyed, pli_at_const(pli_msg_body(msg), (int64_t)wire->keys_at),
                            (int64_t)wire->values_at, decoded, err);
}

/* Copies a part that is not filtered; only what the copying needs is checked. */
static plait_status copy_part(const pli_server *server, const pli_msg *msg, pli_wire_part *wire, plain *p,
                              plait_error *err) {
    const pli_server_table *table = pli_server_table_of(server, wire->table);
    uint64_t                bytes = msg->head.body_bytes, n = (uint64_t)wire->n;
    if (table == NULL || wire->n < 0) return cut_short(err);
    uint64_t row_bytes = (uint64_t)pli_sum_row_bytes(&table->shard.spec),
             keys = wire->flags & PLI_PART_KEYED ? n * 8 : 0;
    if (n > bytes / row_bytes || n > bytes || !lies_in(wire->values_at, n * row_bytes, bytes) ||
        (keys > 0 && !lies_in(wire->keys_at, keys, bytes)))
        return cut_short(err);
    int64_t at = p->body.n;
    if ((keys > 0 &&
         !pli_bytes_add(&p->body, pli_at_const(pli_msg_body(msg), (int64_t)wire->keys_at), (int64_t)keys)) ||
        !pli_bytes_add(&p->body, pli_at_const(pli_msg_body(msg), (int64_t)wire->values_at), (int64_t)(n * row_bytes)))
        return no_memory(err);
    wire->keys_at = (uint64_t)at;
    wire->values_at = (uint64_t)at + keys;
    return PLAIT_OK;
}

static plait_status open_part(pli_server *server, const pli_msg *msg, pli_wire_part *wire, plain *p, plait_error *err) {
    pli_decoded decoded;
    if (!(wire->flags & PLI_PART_FILTERED)) return copy_part(server, msg, wire, p, err);
    PLI_TRY(decode_part(server, msg, wire, &decoded, err));
    if (decoded.missing) {
        note_missing(p, wire->table, &decoded);
        return PLAIT_OK;
    }
    int64_t row_bytes = pli_sum_row_bytes(&server->table[wire->table]->shard.spec),
            keys = decoded.keys != NULL ? decoded.n * 8 : 0;
    wire->n = decoded.n;
    wire->flags &= ~(uint32_t)PLI_PART_FILTERED;
    wire->keys_at = (uint64_t)p->body.n;
    wire->values_at = (uint64_t)(p->body.n + keys);
    bool done =
        pli_bytes_add(&p->body, decoded.keys, keys) && pli_bytes_add(&p->body, decoded.values, decoded.n * row_bytes);
    pli_decoded_free(&decoded);
    return done ? PLAIT_OK : no_memory(err);
}

/* Opens a push. If a later part lacks a list, the server asks for it and opens the message anew when it has come:
 * decoding changes nothing but what is known of lists. */
static plait_status open_push(pli_server *server, const pli_msg *msg, plain *p, plait_error *err) {
    pli_wire_part wire;
    if (msg->head.arg32 > msg->head.body_bytes / sizeof wire) return cut_short(err);
    if (!pli_bytes_add(&p->body, pli_msg_body(msg), (int64_t)(msg->head.arg32 * sizeof wire))) return no_memory(err);
    for (uint32_t i = 0; i < msg->head.arg32 && !p->missing; i++) {
        memcpy(&wire, p->body.data + i * sizeof wire, sizeof wire);
        PLI_TRY(open_part(server, msg, &wire, p, err));
        if (!pli_bytes_pad8(&p->body)) return no_memory(err);
        memcpy(p->body.data + i * sizeof wire, &wire, sizeof wire);
    }
    return PLAIT_OK;
}

/* Replaces *msg by the message without filters, unless a list is missing. */
static plait_status open_message(pli_server *server, pli_msg **msg, plain *p, plait_error *err) {
    uint16_t kind = (*msg)->head.kind;
    if (kind != PLI_PULL && kind != PLI_PUSH && kind != PLI_CLOCK) return cut_short(err);
    PLI_TRY(kind == PLI_PULL ? open_pull(server, *msg, p, err) : open_push(server, *msg, p, err));
    if (p->missing) return PLAIT_OK;
    pli_msg *opened = pli_msg_new((size_t)p->body.n);
    if (opened == NULL) return no_memory(err);
    uint64_t bytes = opened->head.body_bytes;
    opened->head = (*msg)->head;
    opened->head.body_bytes = bytes;
    opened->head.flags &= (uint16_t)~PLI_FLAG_FILTERED;
    if (bytes > 0) memcpy(pli_msg_body(opened), p->body.data, bytes);
    pli_msg_free(msg);
    *msg = opened;
    return PLAIT_OK;
}

/* --- in order ---------------------------------------------------------------------------------------------------- */

/* *place_out: of the replica that has asked for the list. */
static void learn_list(pli_server *server, const pli_msg *msg, uint32_t *place_out, pli_out *out) {
    pli_wire_keys wire = { 0 };
    pli_decoded   decoded;
    plait_error   why = { 0 };
    plait_status  status = cut_short(&why);
    if (msg->head.body_bytes >= sizeof wire) {
        memcpy(&wire, pli_msg_body(msg), sizeof wire);
        pli_server_table *table = pli_server_table_of(server, wire.table);
        pli_chain        *chain = chain_of(table, msg->head.src);
        plait_part        part = chain == NULL ? (plait_part){ 0 } : part_of(server, table, msg, PLAIT_PULLED);
        part.n = wire.n;
        if (chain != NULL)
            status = pli_chain_decode(chain, &part, true, pli_at_const(pli_msg_body(msg), sizeof wire),
                                      (int64_t)(msg->head.body_bytes - sizeof wire), &decoded, &why);
        if (chain != NULL && status >= 0) pli_decoded_free(&decoded);
    }
    *place_out = wire.place;
    if (status < 0) pli_out_fail(out, status, "a list of keys of rank %d: %s", msg->head.src, why.text);
}

/* Was it another replica that had asked? It died, and the worker sends its answer again to the one that serves now. */
static bool is_of_another(const pli_server *server, uint32_t place) {
    return server->replicas != NULL && place != (uint32_t)server->replicas->place;
}

void pli_server_take_filtered(pli_server *server, pli_msg *msg, pli_out *out) {
    pli_peer *peer = &server->peer[msg->head.src];
    msg->next = NULL;
    if (msg->head.kind == PLI_KEYS) {
        uint32_t place;
        learn_list(server, msg, &place, out);
        const bool others = is_of_another(server, place), asked = peer->asked;
        if (!others && !asked)
            pli_out_fail(out, PLAIT_EFORMAT, "rank %d sent a list of keys that was not requested", msg->head.src);
        pli_msg_free(&msg);
        if (others) return; /* the one that this replica has asked for is still to come */
        if (peer->behind != NULL) peer->behind->note = 1; /* its list has come: do not ask again */
        peer->asked = false;
        return;
    }
    msg->note = 0;
    *peer->behind_last = msg;
    peer->behind_last = &msg->next;
}

static pli_msg *pop(pli_peer *peer) {
    pli_msg *msg = peer->behind;
    peer->behind = msg->next;
    if (peer->behind == NULL) peer->behind_last = &peer->behind;
    msg->next = NULL;
    return msg;
}

/* note counts the lists that have come for the message: a push to several tables may lack one for each. */
static bool may_ask(const pli_msg *msg) {
    return msg->note == 0 || (msg->head.kind != PLI_PULL && msg->note <= msg->head.arg32);
}

pli_msg *pli_server_next_unfiltered(pli_server *server, uint64_t now_ns, int32_t worker, pli_out *out) {
    pli_peer   *peer = &server->peer[worker];
    plait_error why = { 0 };
    plain       p = { 0 };
    if (peer->behind == NULL || peer->asked || out->error.code < 0) return NULL;
    pli_msg *msg = pop(peer);
    if (!(msg->head.flags & PLI_FLAG_FILTERED)) return msg;
    plait_status status = open_message(server, &msg, &p, &why);
    pli_bytes_free(&p.body);
    if (status >= 0 && !p.missing) return msg;
    if (status >= 0 && may_ask(msg)) {
        msg->next = peer->behind;
        if (peer->behind == NULL) peer->behind_last = &msg->next;
        peer->behind = msg;
        peer->asked = true;
        pli_server_ask_list(server, now_ns, msg, p.table, p.token, out);
        return NULL;
    }
    if (status < 0) pli_out_fail(out, status, "message of rank %d: %s", worker, why.text);
    else pli_out_fail(out, PLAIT_ENOMEM, "no memory for a list of keys of rank %d", worker);
    pli_msg_free(&msg);
    return NULL;
}

/* --- out ------------------------------------------------------------------------------------------------------- */

pli_msg *pli_server_filter_answer(pli_server *server, pli_server_table *table, const pli_msg *request,
                                  const pli_wire_pull *pull, bool exact, pli_msg *answer, pli_out *out) {
    plait_part  part = part_of(server, table, request, PLAIT_ANSWERED);
    pli_bytes   body = { 0 };
    plait_error why = { 0 };
    pli_msg    *filtered = NULL;
    int64_t     n;
    if (!pli_filters_touch(&table->filters, PLAIT_ANSWERED, table->shard.spec.keyed)) return answer;
    part.n = pull->n;
    part.first = pull->first;
    if (pull->flags == PLI_PULL_KEYS) part.keys = pli_at_const(pli_msg_body(request), sizeof *pull);
    plait_status status =
        pli_chain_encode(&table->chain[request->head.src], &part, pli_msg_body(answer), exact, &body, &n, &why);
    if (status >= 0) filtered = pli_msg_new((size_t)body.n);
    if (filtered != NULL) {
        memcpy(pli_msg_body(filtered), body.data, (size_t)body.n);
        filtered->head.flags = PLI_FLAG_FILTERED;
    }
    if (status < 0) pli_out_fail(out, status, "answer to rank %d: %s", request->head.src, why.text);
    pli_bytes_free(&body);
    pli_msg_free(&answer);
    return filtered;
}
