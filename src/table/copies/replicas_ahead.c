/* The next clock's values come with the word that the last one is safe: what the replica that takes a SUM works out
 * before it applies it, and what a worker makes of that. replicas.h has the idea. */
#include <string.h>

#include "table/client/client.h"
#include "table/copies/replicas.h"
#include "table/events.h"
#include "table/state/values.h"

enum { AHEAD_BYTES_MAX = 16 << 10 }; /* of a shard: above that, working out its values twice costs more than a pull */

/* Does a shard of so many rows travel ahead? Workers and servers come to the same answer. */
static bool travels(const pli_spec *spec, const pli_policy *policy, int64_t rows) {
    return spec->rows > 0 && !spec->keyed && !spec->lazy && !spec->sharded && spec->filter[0] == '\0' &&
           pli_policy_at_clock(policy) && (pli_policy_promises(policy) & PLAIT_WHOLE_CLOCKS) != 0 &&
           !policy->ops->refreshes && rows * pli_row_bytes(spec) <= AHEAD_BYTES_MAX;
}

/* --- who takes a SUM ---------------------------------------------------------------------------------------------- */

static uint64_t bytes_of(const pli_shard *shard) { return (uint64_t)(shard->rows * pli_row_bytes(&shard->spec)); }

static bool is_ahead(const pli_server_table *table) {
    return table != NULL && table->shard.store.snap == NULL &&
           travels(&table->shard.spec, &table->policy, table->shard.rows);
}

/* The SUM's part for the table; -1: it has none. */
static int64_t part_for(const pli_server *server, const pli_msg *sum, const pli_server_table *table,
                        pli_decoded_part *part) {
    plait_error why;
    for (uint32_t i = 0; i < sum->head.arg32; i++)
        if (pli_server_part(server, sum, i, part, &why) >= 0 && part->table == table) return i;
    return -1;
}

/* Works out the values, behind their head. false: they are not known. */
static bool foretell(pli_server *server, const pli_msg *sum, pli_server_table *table, unsigned char *at,
                     pli_out *out) {
    const pli_summed s = pli_replicas_summed(server, sum);
    pli_shard       *shard = &table->shard;
    pli_decoded_part d;
    plait_error      why;
    const int64_t    i = part_for(server, sum, table, &d);
    pli_wire_ahead   head = { .table = (uint32_t)shard->spec.id, .clock = sum->head.clock + 1,
                              .state = i < 0 ? table->state : s.version[i], .bytes = bytes_of(shard) };
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    pli_out_work(out, PLI_WORK_VALUES, (uint64_t)(shard->rows * shard->spec.cols));
    if (i >= 0) return pli_shard_foretell(shard, sum->head.clock, &d.part, at, &why) >= 0;
    pli_store_get_rows(&shard->store, 0, shard->rows, at);
    return true;
}

/* The values of all small tables in the clock behind the SUM's. NULL: there is none, or they are not known. */
static pli_msg *values_ahead(pli_server *server, const pli_msg *sum, pli_out *out) {
    uint64_t bytes = 0, at = 0;
    for (int64_t i = 0; i < server->tables; i++)
        if (is_ahead(server->table[i])) bytes += sizeof(pli_wire_ahead) + pli_pad8(bytes_of(&server->table[i]->shard));
    pli_msg *msg = bytes == 0 ? NULL : pli_msg_new(bytes);
    if (msg == NULL) return NULL;
    memset(pli_msg_body(msg), 0, bytes);
    for (int64_t i = 0; msg != NULL && i < server->tables; i++) {
        pli_server_table *table = server->table[i];
        if (!is_ahead(table)) continue;
        if (!foretell(server, sum, table, (unsigned char *)pli_msg_body(msg) + at, out)) pli_msg_free(&msg);
        at += sizeof(pli_wire_ahead) + pli_pad8(bytes_of(&table->shard));
    }
    return msg;
}

void pli_replicas_tell_summed(pli_server *server, pli_out *out) {
    const pli_msg   *sum = server->replicas->sum;
    const pli_summed s = pli_replicas_summed(server, sum);
    const int32_t    workers = server->layout.workers;
    int32_t          asks = 0;
    for (int32_t w = 0; w < workers; w++) asks += s.ended[w] > 0 && (s.gone[w] & PLI_LOG_AHEAD) != 0;
    pli_msg *values = asks == 0 || !server->replicas->whole ? NULL : values_ahead(server, sum, out);
    if (values != NULL) pli_server_keep_events(server);
    for (int32_t w = 0; w < workers; w++) {
        const bool ahead = values != NULL && (s.gone[w] & PLI_LOG_AHEAD) != 0;
        if (s.ended[w] == 0) continue;
        pli_server_tell_with(server, w, PLI_SAFE, (int64_t)s.ended[w],
                             ahead ? pli_msg_of_slab(values->body, values->offset, values->head.body_bytes)
                                   : pli_msg_new(0), out);
    }
    pli_msg_free(&values);
}

/* --- the worker --------------------------------------------------------------------------------------------------- */

static int32_t shard_on(const pli_client *client, const pli_client_table *table, int32_t server) {
    return pli_placement_shard_at(&table->spec.placement, client->layout.first_server + server);
}

/* Has the worker read all small tables on this server, each as a whole, in this clock? */
static bool has_read(const pli_client *client, int32_t server) {
    int64_t n = 0;
    for (int64_t i = 0; i < client->tables; i++) {
        const pli_client_table *table = client->table[i];
        const int32_t           shard = table->spec.rows > 0 ? shard_on(client, table, server) : -1;
        int64_t                 first, rows;
        if (shard < 0) continue;
        pli_placement_range(&table->spec.placement, shard, &first, &rows);
        if (!travels(&table->spec, &table->policy, rows)) continue;
        const pli_held *held = &table->held[shard];
        if (held->msg == NULL || !held->read || held->first != first || held->n != rows ||
            held->age.version != client->clock)
            return false;
        n++;
    }
    return n > 0;
}

void pli_client_ask_ahead(pli_client *client) {
    if (client->layout.backup > 0) return; /* a pull tells how far the others are (plait_job_is_late) */
    for (int64_t i = 0; i < client->n_used; i++) {
        pli_msg *msg = client->link[client->used[i]].push;
        if (msg != NULL && has_read(client, client->used[i])) msg->head.flags |= PLI_FLAG_AHEAD;
    }
}

/* Keeps what came of a table until the clock has ended. false: it makes no sense. */
static bool keep(pli_client *client, int32_t server, const pli_msg *msg, uint64_t at, const pli_wire_ahead *head) {
    pli_client_table *table = pli_client_table_of(client, head->table);
    const int32_t     shard = table == NULL || table->spec.rows == 0 ? -1 : shard_on(client, table, server);
    if (table == NULL) return true; /* it was dropped */
    if (shard < 0 || table->policy.ops->refreshes) return false;
    pli_msg *values = pli_msg_of_slab(msg->body, msg->offset + at, head->bytes);
    if (values == NULL) return true; /* out of memory: the worker pulls */
    values->head.kind = PLI_FRESH;
    values->head.clock = head->clock;
    values->note = head->state;
    pli_msg **place = &table->shard[shard].fresh[0];
    if (!pli_client_is_fresh(table, shard, values)) return pli_msg_free(&values), false;
    pli_msg_free(place);
    *place = values;
    return true;
}

void pli_client_take_ahead(pli_client *client, int32_t server, const pli_msg *msg, pli_out *out) {
    const uint64_t bytes = msg->head.body_bytes;
    uint64_t       at = pli_roster_bytes(client, msg);
    pli_wire_ahead head;
    bool           sound = pli_client_has_replicas(client);
    while (sound && at < bytes) {
        sound = bytes - at >= sizeof head;
        if (!sound) break;
        memcpy(&head, pli_at_const(pli_msg_body(msg), (int64_t)at), sizeof head);
        at += sizeof head;
        sound = head.bytes <= bytes - at && pli_pad8(head.bytes) <= bytes - at && keep(client, server, msg, at, &head);
        at += pli_pad8(head.bytes);
    }
    if (!sound)
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d sent malformed values of the next clock",
                     client->layout.first_server + server);
}
