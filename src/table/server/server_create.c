/* How a server learns of a table: by a CREATE message, which may come again, but only with the same options. */
#include <string.h>

#include "table/copies/moves.h"
#include "table/copies/replicas.h"
#include "table/events.h"
#include "table/shown.h"
#include "table/state/values.h"

static bool right_size(uint64_t bytes, int64_t want) { return bytes == 0 || bytes == (uint64_t)want; }

/* Reads what follows a shard's rows: nothing, or the names of filters. */
static bool take_filters(const pli_msg *msg, uint64_t rows_bytes, pli_spec *spec) {
    uint64_t at = sizeof(pli_wire_create) + rows_bytes, bytes = msg->head.body_bytes - at;
    if (bytes == 0) return true;
    const char *text = pli_at(pli_msg_body(msg), (int64_t)at);
    if (bytes % 8 != 0 || bytes > pli_pad8(sizeof spec->filter) || memchr(text, '\0', bytes) == NULL ||
        text[0] == '\0' || strlen(text) >= sizeof spec->filter)
        return false;
    strcpy(spec->filter, text);
    return true;
}

static plait_status decode_create(const pli_server *server, const pli_msg *msg, pli_spec *spec, int32_t *shard_out,
                                  plait_error *err) {
    const pli_layout *layout = &server->layout;
    pli_wire_create   create;
    if (msg->head.body_bytes < sizeof create) return pli_fail(err, PLAIT_EFORMAT, "a CREATE message is too short");
    memcpy(&create, pli_msg_body(msg), sizeof create);
    if (msg->head.clock < 0 || create.job_hash != layout->job_hash)
        return pli_fail(err, PLAIT_EMISMATCH, "rank %d was started with other job options than rank %d", server->rank,
                        msg->head.src);
    const pli_rule_scope rules = pli_layout_rules(layout);
    PLI_TRY(pli_spec_decode(&create.spec, &rules, layout->servers, layout->first_server, spec, err));
    if (pli_moves_are_on(layout)) spec->placement = pli_moves_placement(layout, spec);
    int64_t first, rows = 0;
    *shard_out = pli_placement_shard_at(&spec->placement, server->home);
    if (*shard_out >= 0 && spec->rows > 0) pli_placement_range(&spec->placement, *shard_out, &first, &rows);
    int64_t bytes = rows * pli_row_bytes(spec);
    if (*shard_out < 0 || spec->id >= 1 << 16 || !spec->topology.kind->on_servers ||
        !right_size(create.initial_bytes, bytes) || !right_size(create.penalty_bytes, bytes) ||
        msg->head.body_bytes - sizeof create < pli_pad8(create.initial_bytes) + pli_pad8(create.penalty_bytes) ||
        !take_filters(msg, pli_pad8(create.initial_bytes) + pli_pad8(create.penalty_bytes), spec))
        return pli_fail(err, PLAIT_EFORMAT, "table %s: a CREATE message is malformed", spec->name);
    return PLAIT_OK;
}

plait_status pli_server_create(pli_server *server, const pli_msg *msg, plait_error *err) {
    pli_spec               spec;
    int32_t                shard;
    const pli_wire_create *wire = pli_msg_body(msg);
    PLI_TRY(decode_create(server, msg, &spec, &shard, err));
    pli_server_table *table = pli_server_table_of(server, (uint64_t)spec.id);
    if (table != NULL && table->hash == wire->spec_hash) return PLAIT_OK;
    if (table != NULL) return pli_fail(err, PLAIT_EMISMATCH, "table %s exists with other options", spec.name);
    if (!pli_server_begin_at(server, msg->head.clock))
        return pli_fail(err, PLAIT_EMISMATCH, "table %s begins at clock %lld, the job's others at %lld", spec.name,
                        (long long)msg->head.clock, (long long)server->first_clock);
    int64_t before = server->tables_capacity;
    if (!pli_grow((void **)&server->table, &server->tables_capacity, spec.id + 1, sizeof(void *)))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for table %s", spec.name);
    for (; before < server->tables_capacity; before++) server->table[before] = NULL;
    table = pli_calloc(1, sizeof *table);
    if (table == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for table %s", spec.name);
    const pli_scope scope = pli_layout_scope(&server->layout);
    plait_status    status = pli_policy_make(spec.consistency, &scope, &table->policy, err);
    if (status < 0) goto free_table;
    table->at_clock = pli_policy_at_clock(&table->policy);
    if (spec.exact && !table->at_clock) {
        status = pli_fail(err, PLAIT_EFORMAT, "table %s: exact sums of pushes that are applied one by one", spec.name);
        goto free_policy;
    }
    const unsigned char *data = (const unsigned char *)(wire + 1);
    status = pli_replicas_begins(server)
                 ? pli_shard_open_empty(&table->shard, &spec, shard, table->at_clock, err)
                 : pli_shard_open(&table->shard, &spec, shard, table->at_clock, wire->initial_bytes ? data : NULL,
                                  wire->penalty_bytes ? data + pli_pad8(wire->initial_bytes) : NULL, err);
    if (status < 0) goto free_policy;
    status = pli_server_readers_open(table, server->layout.workers, err);
    if (status >= 0) status = pli_server_progress_open(table, server->layout.workers, err);
    if (status >= 0) status = pli_server_filters_open(server, table, spec.filter, err);
    if (status < 0) goto close_readers;
    table->hash = wire->spec_hash;
    server->table[spec.id] = table;
    server->restless = server->restless || !table->policy.ops->waits_for_slowest;
    if (spec.id >= server->tables) server->tables = spec.id + 1;
    pli_raise_server_table(server, &spec);
    pli_shown_shard(server, table);
    return PLAIT_OK;
close_readers:
    pli_free(table->progress);
    pli_server_readers_close(table);
    pli_shard_close(&table->shard);
free_policy:
    pli_policy_destroy(&table->policy);
free_table:
    pli_free(table);
    return status;
}
