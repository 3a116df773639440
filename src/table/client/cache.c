/* The copies of values that a worker holds: whole pieces of dense shards, and single rows. See client.h. */
#include <string.h>

#include "table/events.h"
#include "table/state/updates.h"
#include "table/state/values.h"

plait_status pli_client_table_open(const pli_spec *spec, const pli_layout *layout, pli_client_table **table_out,
                                   plait_error *err) {
    const pli_scope   scope = pli_layout_scope(layout);
    pli_client_table *table = pli_calloc(1, sizeof *table);
    if (table == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for table %s", spec->name);
    table->spec = *spec;
    pli_pending_init(&table->pending, &table->spec, 0);
    pli_rowset_init(&table->rows, 0, (uint64_t)spec->rows);
    plait_status status = pli_policy_make(spec->consistency, &scope, &table->policy, err);
    if (status < 0) goto free_table;
    table->held = pli_calloc((size_t)spec->placement.shards, sizeof *table->held);
    table->shard = pli_calloc((size_t)spec->placement.shards, sizeof *table->shard);
    table->way = pli_calloc((size_t)spec->placement.shards, sizeof *table->way);
    if (table->held == NULL || table->shard == NULL || table->way == NULL) {
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for table %s", spec->name);
        goto free_table;
    }
    for (int32_t i = 0; i < spec->placement.shards; i++) table->shard[i].admitted = -1;
    status = pli_client_filters_open(table, layout, err);
    if (status < 0) goto free_table;
    table->at_clock = pli_policy_at_clock(&table->policy);
    table->reuses = pli_policy_reuses(&table->policy);
    *table_out = table;
    return PLAIT_OK;
free_table:
    pli_client_table_close(&table);
    return status;
}

void pli_client_table_close(pli_client_table **table_ptr) {
    pli_client_table *table = *table_ptr;
    *table_ptr = NULL;
    if (table == NULL) return;
    if (table->held != NULL) pli_cache_forget(table);
    if (table->shard != NULL) pli_cache_drop_fresh(table);
    pli_client_filters_close(table);
    pli_pending_destroy(&table->pending);
    pli_rowset_destroy(&table->rows);
    pli_policy_destroy(&table->policy);
    pli_free(table->row_values);
    pli_free(table->row_age);
    pli_free(table->row_seen);
    pli_free(table->shard);
    pli_free(table->held);
    pli_free(table->way);
    pli_free(table->shard_of);
    pli_free(table);
}

static void use(pli_client *client, int32_t server) {
    int64_t at = client->n_used;
    if (client->link[server].used) return;
    client->link[server].used = true;
    for (; at > 0 && client->used[at - 1] > server; at--) client->used[at] = client->used[at - 1];
    client->used[at] = server;
    client->n_used++;
}

plait_status pli_client_add_table(pli_client *client, pli_client_table *table, plait_error *err) {
    const pli_placement *placement = &table->spec.placement;
    if (!pli_grow((void **)&client->table, &client->tables_capacity, client->tables + 1, sizeof(void *)) ||
        !pli_grow((void **)&client->used, &client->used_capacity, client->n_used + placement->shards + 1,
                  sizeof *client->used))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for table %s", table->spec.name);
    client->table[client->tables++] = table;
    for (int32_t shard = 0; shard < placement->shards; shard++)
        use(client, pli_placement_rank(placement, shard) - placement->first_rank);
    if (client->layout.slots > 0) use(client, 0); /* it says who is in (roster.h) */
    pli_client_count_bytes(client, table);
    client->filtered = client->filtered || table->chain != NULL;
    return PLAIT_OK;
}

void pli_client_remove_table(pli_client *client, const pli_client_table *table) {
    int64_t left = 0;
    client->filtered = false;
    for (int64_t i = 0; i < client->tables; i++) {
        if (client->table[i] == table) continue;
        client->filtered = client->filtered || client->table[i]->chain != NULL;
        client->table[left++] = client->table[i];
    }
    client->tables = left;
}

void pli_client_count_bytes(pli_client *client, const pli_client_table *table) {
    if (!table->spec.topology.kind->one_process) client->flags &= (uint16_t)~PLI_MSG_UNCOUNTED;
}

/* --- what a copy is good for ---------------------------------------------------------------------------- */

bool pli_cache_serves(const pli_client *client, const pli_client_table *table, const pli_age *age, int64_t clock) {
    plait_view view = { .workers = client->layout.workers, .worker = client->rank, .clock = clock, .held = age->version,
                        .fetched = age->fetched };
    return age->version != PLAIT_NO_VERSION && !client->left &&
           table->policy.ops->worker.on_get(table->policy.state, &view) == PLAIT_SERVE;
}

double pli_client_own_scale(const pli_client *client, const pli_client_table *table) {
    const pli_spec *spec = &table->spec;
    if (!spec->ruled) return 1;
    if (!table->policy.ops->sees_own) return 0;
    return -pli_rule_step(&spec->rule, client->clock, spec->batch, spec->batch, 1).rate / (double)spec->batch;
}

void pli_cache_forget(pli_client_table *table) {
    for (int32_t i = 0; i < table->spec.placement.shards; i++) pli_msg_free(&table->held[i].msg);
    pli_rowset_clear(&table->rows);
}

void pli_client_resume(pli_client *client) {
    for (int64_t i = 0; client->met && i < client->tables; i++) pli_cache_forget(client->table[i]);
    client->met = false;
}

/* --- copies that come unasked -------------------------------------------------------------------------------- */

void pli_cache_drop_fresh(pli_client_table *table) {
    for (int32_t i = 0; i < table->spec.placement.shards; i++)
        for (int k = 0; k < 2; k++) pli_msg_free(&table->shard[i].fresh[k]);
}

static void take_whole(const pli_client *client, pli_client_table *table, int32_t shard, pli_msg **msg) {
    pli_held *held = &table->held[shard];
    pli_rowset_clear(&table->rows);
    pli_msg_free(&held->msg);
    pli_placement_range(&table->spec.placement, shard, &held->first, &held->n);
    held->age = (pli_age){ .version = (*msg)->head.clock, .fetched = client->clock };
    held->state = (*msg)->note;
    held->from = held->to = table->pushes;
    held->read = false;
    held->msg = *msg;
    *msg = NULL;
}

static void take_keys(const pli_client *client, pli_client_table *table, const pli_msg *msg) {
    const pli_age   age = { .version = msg->head.clock, .fetched = client->clock };
    const uint64_t *keys = pli_msg_body(msg);
    int64_t         n = (int64_t)(msg->head.body_bytes / (uint64_t)(8 + pli_row_bytes(&table->spec)));
    pli_cache_put(table, n, keys, keys + n, &age);
    pli_note_rows(client, table, msg, n, keys);
}

static bool is_good(const pli_client_shard *shard, const pli_msg *msg) {
    return msg != NULL && msg->head.arg64 >= shard->sent && msg->head.seq > shard->taken;
}

void pli_cache_take_fresh(const pli_client *client, pli_client_table *table) {
    if (!table->policy.ops->refreshes) return;
    for (int32_t i = 0; i < table->spec.placement.shards; i++) {
        pli_client_shard *shard = &table->shard[i];
        int64_t           whole = PLAIT_NO_VERSION;
        if (is_good(shard, shard->fresh[0])) {
            shard->taken = shard->fresh[0]->head.seq;
            whole = shard->fresh[0]->head.clock;
            take_whole(client, table, i, &shard->fresh[0]);
        }
        if (is_good(shard, shard->fresh[1])) {
            shard->taken = shard->fresh[1]->head.seq;
            /* otherwise both are of the same moment */
            if (shard->fresh[1]->head.clock != whole) pli_msg_free(&table->held[i].msg);
            take_keys(client, table, shard->fresh[1]);
        }
    }
    pli_cache_drop_fresh(table);
}

void pli_cache_take_ahead(const pli_client *client, pli_client_table *table) {
    for (int32_t i = 0; !table->policy.ops->refreshes && i < table->spec.placement.shards; i++) {
        const int32_t server = pli_placement_rank(&table->spec.placement, i) - table->spec.placement.first_rank;
        pli_msg     **ahead = &table->shard[i].fresh[0];
        if (*ahead != NULL && (*ahead)->head.clock == client->clock) {
            (*ahead)->note |= (uint64_t)client->link[server].place << PLI_PLACE_AT_BIT; /* of who serves by now */
            take_whole(client, table, i, ahead);
        }
        pli_msg_free(ahead);
    }
}

/* Adds the worker's own updates to a held copy, after making the copy the worker's own. Out of memory, the copy is
 * dropped: a cache may forget. */
static void write_through(pli_client_table *table, double scale, pli_held *held) {
    if (!pli_slab_is_mine(held->msg->body)) {
        pli_msg *copy = pli_msg_new(held->msg->head.body_bytes);
        if (copy != NULL) memcpy(pli_msg_body(copy), pli_msg_body(held->msg), held->msg->head.body_bytes);
        pli_msg_free(&held->msg);
        held->msg = copy;
    }
    if (held->msg == NULL || scale == 0) return;
    pli_pending_overlay_range(&table->pending, scale, held->first, held->n, pli_msg_body(held->msg));
    held->to = table->pushes;
}

static void write_rows_through(pli_client_table *table, double scale) {
    const pli_pending *pending = &table->pending;
    const pli_spec    *spec = &table->spec;
    int64_t            at[PLI_BLOCK], row_bytes = pli_row_bytes(spec);
    if (table->rows.n == 0 || scale == 0) return;
    table->rows_to = table->pushes;
    if (!spec->keyed) { /* a table that is updated by range has few rows held by key */
        for (int64_t i = 0; i < table->rows.n; i++)
            pli_pending_overlay(pending, scale, 1, &table->rows.keys[i], pli_at(table->row_values, i * row_bytes));
        return;
    }
    for (int64_t from = 0; from < pending->set.n; from += PLI_BLOCK) {
        int64_t m = pending->set.n - from < PLI_BLOCK ? pending->set.n - from : PLI_BLOCK;
        pli_rowset_find(&table->rows, m, pending->set.keys + from, at);
        for (int64_t i = 0; i < m; i++)
            if (at[i] >= 0)
                pli_updates_lay_over(spec, scale, spec->cols,
                                     pli_at_const(pending->sum, (from + i) * pli_sum_row_bytes(spec)),
                                     pli_at(table->row_values, at[i] * row_bytes));
    }
}

static void drop_pushed_rows(pli_client_table *table) {
    int64_t at[PLI_BLOCK];
    table->rows_to = table->pushes; /* the rows that stay are not touched by this push */
    if (table->rows.n == 0) return;
    if (!table->spec.keyed) {
        pli_rowset_clear(&table->rows);
        return;
    }
    for (int64_t from = 0; from < table->pending.set.n; from += PLI_BLOCK) {
        int64_t m = table->pending.set.n - from < PLI_BLOCK ? table->pending.set.n - from : PLI_BLOCK;
        pli_rowset_find(&table->rows, m, table->pending.set.keys + from, at);
        for (int64_t i = 0; i < m; i++)
            if (at[i] >= 0) table->row_age[at[i]].version = PLAIT_NO_VERSION;
    }
}

/* The factor by which a push is added to copies that are kept. If pushes replace rows as they come (last), a copy may
 * hold a row of a later clock than the worker's own, so it is fetched again. */
static double kept_scale(const pli_client *client, const pli_client_table *table) {
    return table->spec.combine->replaces && !table->at_clock ? 0 : pli_client_own_scale(client, table);
}

void pli_cache_pushed(const pli_client *client, pli_client_table *table, int64_t next_clock) {
    bool   pushed = table->pending.touched && !table->keeps;
    double scale = kept_scale(client, table);
    for (int32_t i = 0; i < table->spec.placement.shards; i++) {
        pli_held *held = &table->held[i];
        if (held->msg == NULL) continue;
        bool keep = pli_cache_serves(client, table, &held->age, next_clock) && !(pushed && scale == 0);
        if (!keep) pli_msg_free(&held->msg);
        else if (pushed) write_through(table, scale, held);
    }
    if (pushed && scale == 0) drop_pushed_rows(table);
    else if (pushed) write_rows_through(table, scale);
}

/* --- rows by key -------------------------------------------------------------------------------------------- */

static bool is_as_old(const pli_age *a, const pli_age *b) {
    return a->version == b->version && a->fetched == b->fetched;
}

int64_t pli_cache_get(const pli_client *client, pli_client_table *table, int64_t n, const uint64_t *keys, void *values,
                      uint32_t *missing) {
    int64_t at[PLI_BLOCK], row_bytes = pli_row_bytes(&table->spec), left = 0;
    const pli_age none = { .version = PLAIT_NO_VERSION };
    pli_age       good = none, bad = none; /* the policy's last answers: rows of one age come in runs */
    for (int64_t from = 0; from < n; from += PLI_BLOCK) {
        int64_t m = n - from < PLI_BLOCK ? n - from : PLI_BLOCK;
        pli_rowset_find(&table->rows, m, keys + from, at);
        for (int64_t i = 0; i < m; i++) {
            const pli_age *age = at[i] < 0 ? &none : &table->row_age[at[i]];
            if (is_as_old(age, &good) && age->version != PLAIT_NO_VERSION) {
            } else if (!is_as_old(age, &bad) && pli_cache_serves(client, table, age, client->clock)) {
                good = *age;
            } else {
                bad = *age;
                missing[left++] = (uint32_t)(from + i);
                continue;
            }
            memcpy(pli_at(values, (from + i) * row_bytes), pli_at_const(table->row_values, at[i] * row_bytes),
                   (size_t)row_bytes);
        }
    }
    return left;
}

static bool reserve_rows(pli_client_table *table, int64_t rows) {
    if (rows <= table->rows_capacity) return true;
    int64_t capacity = table->rows_capacity * 2 > rows ? table->rows_capacity * 2 : rows;
    void   *values = pli_realloc(table->row_values, (size_t)capacity, (size_t)pli_row_bytes(&table->spec));
    if (values != NULL) table->row_values = values;
    pli_age *age = pli_realloc(table->row_age, (size_t)capacity, sizeof *age);
    if (age != NULL) table->row_age = age;
    if (values == NULL || age == NULL) return false;
    table->rows_capacity = capacity;
    return true;
}

void pli_cache_put(pli_client_table *table, int64_t n, const uint64_t *keys, const void *values, const pli_age *age) {
    int64_t at[PLI_BLOCK], row_bytes = pli_row_bytes(&table->spec);
    for (int64_t from = 0; from < n; from += PLI_BLOCK) {
        int64_t m = n - from < PLI_BLOCK ? n - from : PLI_BLOCK;
        if (!reserve_rows(table, table->rows.n + m) || !pli_rowset_add(&table->rows, m, keys + from, at)) {
            pli_rowset_clear(&table->rows); /* out of memory */
            return;
        }
        for (int64_t i = 0; i < m; i++) {
            memcpy(pli_at(table->row_values, at[i] * row_bytes), pli_at_const(values, (from + i) * row_bytes),
                   (size_t)row_bytes);
            table->row_age[at[i]] = *age;
        }
    }
}
