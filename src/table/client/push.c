/* Sends a worker's updates: one message to each server, with a part for each table that has changed. */
#include <string.h>

#include "table/events.h"
#include "table/state/values.h"

static int32_t server_of(const pli_spec *spec, int32_t shard) {
    return pli_placement_rank(&spec->placement, shard) - spec->placement.first_rank;
}

static void overlap(const pli_client_table *table, int32_t shard, int64_t *first_out, int64_t *n_out) {
    int64_t first, n, low = table->pending.low, high = table->pending.high;
    pli_placement_range(&table->spec.placement, shard, &first, &n);
    low = low > first ? low : first;
    high = high < first + n ? high : first + n;
    *first_out = low < high ? low : first;
    *n_out = low < high ? high - low : 0;
}

static uint64_t data_bytes(const pli_client_table *table, int64_t n) {
    return (table->spec.keyed ? (uint64_t)n * 8 : 0) + pli_pad8((uint64_t)(n * pli_sum_row_bytes(&table->spec)));
}

/* Finds the shard of each row of a keyed table, and how many rows each shard gets: once, for both passes. false: out of
 * memory. */
static bool find_ways(pli_client_table *table) {
    const pli_placement *placement = &table->spec.placement;
    const pli_rowset    *set = &table->pending.set;
    for (int32_t shard = 0; shard < placement->shards; shard++) table->way[shard].rows = 0;
    if (placement->shards == 1) {
        table->way[0].rows = set->n;
        return true;
    }
    if (!pli_grow((void **)&table->shard_of, &table->shard_of_capacity, set->n, sizeof *table->shard_of)) return false;
    pli_placement_shards(placement, set->n, set->keys, table->shard_of);
    for (int64_t i = 0; i < set->n; i++) table->way[table->shard_of[i]].rows++;
    return true;
}

/* First pass: counts the parts and the bytes for each server. false: out of memory. */
static bool measure(pli_client *client, pli_client_table *table) {
    const pli_spec *spec = &table->spec;
    if (spec->keyed && !find_ways(table)) return false;
    for (int32_t shard = 0; shard < spec->placement.shards; shard++) {
        pli_client_link *link = &client->link[server_of(spec, shard)];
        int64_t          first, n = table->way[shard].rows;
        if (!spec->keyed) overlap(table, shard, &first, &n);
        link->parts++;
        link->bytes += sizeof(pli_wire_part) + data_bytes(table, n);
    }
    return true;
}

/* Begins the next part of a server's message: its header, and where its data go. */
static unsigned char *next_part(pli_client_link *link, const pli_client_table *table, int64_t first, int64_t n) {
    unsigned char *body = pli_msg_body(link->push);
    pli_wire_part  part = { .table = (uint32_t)table->spec.id, .flags = table->spec.keyed ? PLI_PART_KEYED : 0,
                            .examples = table->pending.examples, .first = first, .n = n, .keys_at = link->bytes };
    part.values_at = link->bytes + (table->spec.keyed ? (uint64_t)n * 8 : 0);
    memcpy(body + link->parts * sizeof part, &part, sizeof part);
    link->parts++;
    link->bytes += data_bytes(table, n);
    return body + part.keys_at;
}

static void fill_dense(pli_client *client, const pli_client_table *table) {
    const pli_spec *spec = &table->spec;
    int64_t         row_bytes = pli_sum_row_bytes(spec);
    for (int32_t shard = 0; shard < spec->placement.shards; shard++) {
        int64_t first, n;
        overlap(table, shard, &first, &n);
        unsigned char *data = next_part(&client->link[server_of(spec, shard)], table, first, n);
        if (n > 0) memcpy(data, pli_at_const(table->pending.sum, first * row_bytes), (size_t)(n * row_bytes));
    }
}

static void fill_keyed(pli_client *client, pli_client_table *table) {
    const pli_spec   *spec = &table->spec;
    const pli_rowset *set = &table->pending.set;
    int64_t           row_bytes = pli_sum_row_bytes(spec);
    for (int32_t shard = 0; shard < spec->placement.shards; shard++) {
        pli_push_way *way = &table->way[shard];
        way->keys_to = (uint64_t *)next_part(&client->link[server_of(spec, shard)], table, -1, way->rows);
        way->values_to = (unsigned char *)(way->keys_to + way->rows);
    }
    if (set->n == 0) return;
    if (spec->placement.shards == 1) {
        memcpy(table->way[0].keys_to, set->keys, (size_t)set->n * 8);
        memcpy(table->way[0].values_to, table->pending.sum, (size_t)(set->n * row_bytes));
        return;
    }
    for (int64_t i = 0; i < set->n; i++) {
        pli_push_way *way = &table->way[table->shard_of[i]];
        *way->keys_to++ = set->keys[i];
        if (row_bytes == 4) memcpy(way->values_to, pli_at_const(table->pending.sum, i * 4), 4);
        else memcpy(way->values_to, pli_at_const(table->pending.sum, i * row_bytes), (size_t)row_bytes);
        way->values_to += row_bytes;
    }
}

static plait_view view_of(const pli_client *client) {
    return (plait_view){ .workers = client->layout.workers, .worker = client->rank, .clock = client->clock };
}

plait_status pli_client_on_inc(const pli_client *client, pli_client_table *table, int64_t n, const uint64_t *keys,
                               const void *delta, int *want_out, plait_error *err) {
    const plait_consistency *policy = table->policy.ops;
    plait_view               view = view_of(client);
    *want_out = 0;
    if (policy->worker.on_inc == NULL) return PLAIT_OK;
    if (policy->reads_norms) PLI_TRY(pli_update_norm(&table->spec, n, keys, delta, &view.norm, err));
    *want_out = policy->worker.on_inc(table->policy.state, &view);
    return PLAIT_OK;
}

/* Asks which tables keep their pending updates now that the clock ends (or, kind PUSH, now that something is sent
 * earlier). */
static void ask_what_stays(pli_client *client, pli_kind kind) {
    plait_view view = view_of(client);
    for (int64_t i = 0; i < client->tables; i++) {
        pli_client_table        *table = client->table[i];
        const plait_consistency *policy = table->policy.ops;
        table->keeps = kind == PLI_CLOCK && policy->worker.on_clock != NULL &&
                       policy->worker.on_clock(table->policy.state, &view) == PLAIT_END_KEEP;
    }
}

static bool is_meant(const pli_client *client, const pli_client_table *table, const pli_client_table *only,
                     pli_kind kind) {
    if (client->ending) return table->at_clock; /* where updates apply at once nobody stands in */
    return only != NULL ? only == table : kind == PLI_CLOCK || table->departs;
}

static bool takes_part(const pli_client *client, const pli_client_table *table, const pli_client_table *only,
                       pli_kind kind) {
    return is_meant(client, table, only, kind) && table->pending.touched && !table->keeps;
}

int64_t pli_client_departing_bytes(const pli_client *client) {
    int64_t bytes = 0;
    for (int64_t i = 0; i < client->tables; i++) {
        const pli_pending *pending = &client->table[i]->pending;
        const int64_t      rows = client->table[i]->spec.keyed ? pending->set.n : pending->high - pending->low;
        if (client->table[i]->departs && pending->touched) bytes += rows * pli_sum_row_bytes(&client->table[i]->spec);
    }
    return bytes;
}

static void drop_built(pli_client *client) {
    for (int64_t i = 0; i < client->n_used; i++) pli_msg_free(&client->link[client->used[i]].push);
}

static bool make_messages(pli_client *client, pli_kind kind) {
    for (int64_t i = 0; i < client->n_used; i++) {
        pli_client_link *link = &client->link[client->used[i]];
        if (kind == PLI_PUSH && link->parts == 0) continue;
        link->push = pli_msg_new(link->bytes);
        if (link->push == NULL) return false;
        link->push->head.arg32 = link->parts;
        link->push->head.clock = client->clock;
        link->bytes = link->parts * sizeof(pli_wire_part);
        link->parts = 0;
    }
    return true;
}

/* Notes the numbers of the messages that are built: they leave next, and only the worker sends, so the numbers are
 * known. */
static void note_sent(const pli_client *client, pli_client_table *table) {
    for (int32_t shard = 0; shard < table->spec.placement.shards; shard++)
        table->shard[shard].sent = client->link[server_of(&table->spec, shard)].tx.next;
}

plait_status pli_client_build_push(pli_client *client, pli_client_table *only, pli_kind kind, plait_error *err) {
    bool made = true;
    drop_built(client);
    ask_what_stays(client, kind);
    for (int64_t i = 0; i < client->n_used; i++) {
        pli_client_link *link = &client->link[client->used[i]];
        link->parts = 0;
        link->bytes = 0;
    }
    for (int64_t i = 0; made && i < client->tables; i++)
        if (takes_part(client, client->table[i], only, kind)) made = measure(client, client->table[i]);
    made = made && make_messages(client, kind);
    for (int64_t i = 0; made && i < client->tables; i++) {
        pli_client_table *table = client->table[i];
        if (!takes_part(client, table, only, kind)) continue;
        table->pushes++;
        pli_raise_push(client->sink, client->rank, PLI_EVENT_PUSH, table->spec.id, client->clock);
        if (table->spec.keyed) fill_keyed(client, table);
        else fill_dense(client, table);
    }
    if (!made) drop_built(client);
    if (!made) return pli_fail(err, PLAIT_ENOMEM, "no memory for a push");
    if (kind == PLI_CLOCK && pli_client_has_replicas(client)) pli_client_ask_ahead(client);
    for (int64_t i = 0; i < client->tables; i++) {
        pli_client_table *table = client->table[i];
        if (!is_meant(client, table, only, kind)) continue;
        if (kind == PLI_CLOCK) table->departs = false;
        pli_cache_pushed(client, table, client->clock + (kind == PLI_CLOCK));
        /* else the next clock would read copies that were fetched to stand in for others, perhaps in vain */
        if (client->ending) pli_cache_forget(table);
        table->kept = table->keeps && (table->kept || table->pending.touched);
        if (takes_part(client, table, only, kind)) note_sent(client, table);
        if (table->keeps) continue;
        pli_pending_clear(&table->pending);
        table->incs = 0;
    }
    return PLAIT_OK;
}

plait_status pli_client_send_push(pli_client *client, uint64_t now_ns, pli_kind kind, pli_out *out, plait_error *err) {
    for (int64_t i = 0; i < client->n_used; i++) {
        const int32_t s = client->used[i];
        pli_msg      *msg = client->link[s].push;
        client->link[s].push = NULL;
        if (msg == NULL) continue;
        pli_raise_send(client, s, msg);
        if (client->ending) msg->head.flags |= PLI_FLAG_REDO;
        if (kind == PLI_CLOCK) client->link[s].closing = client->link[s].tx.next;
        if (kind == PLI_CLOCK && client->leaving) msg->head.flags |= PLI_FLAG_LEAVES;
        if (kind == PLI_CLOCK && client->shut) msg->head.flags |= PLI_FLAG_SHUT;
        PLI_TRY(pli_client_send(client, now_ns, s, kind, msg, NULL, out, err));
    }
    pli_client_keep_events(client);
    if (kind != PLI_CLOCK) return PLAIT_OK;
    client->ending = pli_client_has_replicas(client); /* with replicas the clock has ended only when it is safe
                                                       * everywhere */
    if (client->ending) return PLAIT_OK;
    pli_raise_clock(client->sink, client->rank, client->clock);
    client->clock++;
    return PLAIT_OK;
}
