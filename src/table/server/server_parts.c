/* The parts of a push: they are decoded once, when the message comes, and kept with it until their clock's end. */
#include <string.h>

#include "table/server/server.h"

plait_status pli_server_part(const pli_server *server, const pli_msg *msg, uint32_t i, pli_decoded_part *part_out,
                             plait_error *err) {
    const unsigned char *body = pli_msg_body(msg);
    uint64_t             bytes = msg->head.body_bytes;
    pli_wire_part        wire;
    memcpy(&wire, body + i * sizeof wire, sizeof wire);
    pli_server_table *table = pli_server_table_of(server, wire.table);
    if (table == NULL) return pli_fail(err, PLAIT_EFORMAT, "a push to table number %u, which is not here", wire.table);
    bool     keyed = (wire.flags & PLI_PART_KEYED) != 0;
    uint64_t row_bytes = (uint64_t)pli_sum_row_bytes(&table->shard.spec), n = (uint64_t)wire.n;
    if (wire.n < 0 || n > bytes / row_bytes || wire.values_at % 8 != 0 || wire.values_at > bytes ||
        n * row_bytes > bytes - wire.values_at)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: a push is cut short", table->shard.spec.name);
    if (keyed && (n > bytes / 8 || wire.keys_at % 8 != 0 || wire.keys_at > bytes || n * 8 > bytes - wire.keys_at))
        return pli_fail(err, PLAIT_EFORMAT, "table %s: a push's keys are cut short", table->shard.spec.name);
    part_out->table = table;
    part_out->part = (pli_push_part){ .touched = true, .keyed = keyed, .examples = wire.examples,
                                      .first = wire.first, .n = wire.n,
                                      .keys = keyed ? (const uint64_t *)(body + wire.keys_at) : NULL,
                                      .values = body + wire.values_at };
    return PLAIT_OK;
}

/* --- pushes that wait ------------------------------------------------------------------------------------------ */

pli_waiting_push *pli_waiting_new(pli_msg *msg, int64_t n, const pli_decoded_part *parts) {
    pli_waiting_push *push = pli_malloc(sizeof *push + (size_t)n * sizeof *parts);
    if (push == NULL) return NULL;
    *push = (pli_waiting_push){ .msg = msg, .n = (int32_t)n };
    if (n > 0) memcpy(push->part, parts, (size_t)n * sizeof *parts);
    return push;
}

static void free_first(pli_waiting_push **list) {
    pli_waiting_push *push = *list;
    *list = push->next;
    pli_msg_free(&push->msg);
    pli_free(push);
}

void pli_waiting_free_list(pli_waiting_push **list) {
    while (*list != NULL) free_first(list);
}

/* Workers send their parts in the order of tables, and tables are looked up in that order, so the search begins behind
 * the last one found. */
const pli_push_part *pli_waiting_part(pli_waiting_push *push, const pli_server_table *table) {
    for (int32_t k = 0, i = push->at; k < push->n; k++, i = i + 1 < push->n ? i + 1 : 0)
        if (i < push->n && push->part[i].table == table) {
            push->at = i + 1 < push->n ? i + 1 : 0;
            return &push->part[i].part;
        }
    return NULL;
}

void pli_server_enqueue(pli_peer *peer, pli_waiting_push *push) {
    *peer->queue_last = push;
    peer->queue_last = &push->next;
}

void pli_server_forget_clock(pli_server *server, int64_t clock) {
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_peer *peer = &server->peer[w];
        while (peer->queue != NULL && peer->queue->msg->head.clock == clock) free_first(&peer->queue);
        if (peer->queue == NULL) peer->queue_last = &peer->queue;
    }
}

void pli_server_forget_from(pli_peer *peer, int64_t clock) {
    pli_waiting_push **at = &peer->queue;
    while (*at != NULL && (*at)->msg->head.clock < clock) at = &(*at)->next;
    pli_waiting_free_list(at);
    peer->queue_last = at;
}
