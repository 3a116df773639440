/* All rows of a sparse table on shards, as a get of their keys would return them. The owners say which rows there are.
 * Rows of which the worker holds a copy that it may read come from that copy; otherwise a later get could return an
 * older value than the dump. */
#include <string.h>

#include "table/state/values.h"
#include "table/table.h"

static plait_status no_memory(const plait_table *table, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a dump", table->spec.name);
}

static plait_status pull_all(plait_table *table, pli_ticket *ticket, plait_error *err) {
    plait_job           *job = table->job;
    const pli_placement *placement = &table->spec.placement;
    pli_exchange         x;
    plait_status         status = PLAIT_OK;
    pli_exchange_begin(&x, job, ticket);
    pli_cache_take_fresh(&job->client, pli_served_of(table));
    for (int32_t shard = 0; status >= 0 && shard < placement->shards; shard++) {
        pli_wire_pull pull = { .table = (uint32_t)table->spec.id,
                               .flags = PLI_PULL_ALL | (job->client.met ? PLI_PULL_MET : 0) };
        pli_msg      *msg = pli_msg_new(sizeof pull);
        if (msg != NULL) memcpy(pli_msg_body(msg), &pull, sizeof pull), msg->head.clock = job->client.clock;
        status = pli_client_send(&job->client, x.now_ns, pli_placement_rank(placement, shard) - placement->first_rank,
                                 PLI_PULL, msg, ticket, &x.out, err);
    }
    return pli_exchange_wait(&x, status, "all rows of a sparse table", err);
}

static int64_t rows_in(const plait_table *table, const pli_msg *reply) {
    return (int64_t)(reply->head.body_bytes / (uint64_t)(8 + pli_row_bytes(&table->spec)));
}

/* Asks the owners for all rows; returns their number. Copies that came unasked before are too old from now on. */
static int64_t take_answers(const plait_table *table, const pli_ticket *ticket, uint64_t *keys, void *values) {
    int64_t row_bytes = pli_row_bytes(&table->spec), n = 0;
    for (const pli_msg *reply = ticket->replies; reply != NULL; reply = reply->next) {
        const int32_t i = pli_placement_shard_at(&table->spec.placement, reply->head.src);
        const int64_t m = rows_in(table, reply);
        pli_client_shard *shard = i < 0 ? NULL : &pli_served_of(table)->shard[i];
        if (shard != NULL && reply->head.seq > shard->taken) shard->taken = reply->head.seq;
        if (m == 0) continue;
        memcpy(keys + n, pli_msg_body(reply), (size_t)m * 8);
        memcpy(pli_at(values, n * row_bytes), pli_at(pli_msg_body(reply), m * 8), (size_t)(m * row_bytes));
        n += m;
    }
    return n;
}

/* Replaces the rows of which the worker holds a copy that it may read by that copy. */
static plait_status take_copies(const plait_table *table, int64_t n, const uint64_t *keys, void *values,
                                plait_error *err) {
    pli_client_table *served = table->state;
    if (!served->reuses || served->rows.n == 0 || n == 0) return PLAIT_OK;
    uint32_t *missing = pli_array((size_t)n, sizeof *missing);
    if (missing == NULL) return no_memory(table, err);
    (void)pli_cache_get(&table->job->client, served, n, keys, values, missing);
    pli_free(missing);
    return PLAIT_OK;
}

static plait_status gather_all(const plait_table *table, const pli_ticket *ticket, int64_t *n_out, uint64_t **keys_out,
                               void **values_out, plait_error *err) {
    const pli_pending *pending = &pli_served_of(table)->pending;
    const double       scale = pli_client_own_scale(&table->job->client, pli_served_of(table));
    int64_t            row_bytes = pli_row_bytes(&table->spec), most = pending->set.n;
    plait_status       status;
    for (const pli_msg *reply = ticket->replies; reply != NULL; reply = reply->next) most += rows_in(table, reply);
    uint64_t *keys = pli_array((size_t)most, sizeof *keys);
    void     *values = pli_array((size_t)most, (size_t)row_bytes);
    if (keys != NULL && values != NULL) {
        const int64_t n = take_answers(table, ticket, keys, values);
        status = take_copies(table, n, keys, values, err);
        if (status >= 0 && !pli_pending_append(pending, scale, n, keys, values, n_out)) status = no_memory(table, err);
    } else {
        status = no_memory(table, err);
    }
    if (status < 0) {
        pli_free(keys);
        pli_free(values);
        return status;
    }
    *keys_out = keys;
    *values_out = values;
    return PLAIT_OK;
}

plait_status pli_served_dump(plait_table *table, int64_t *n_out, uint64_t **keys_out, void **values_out,
                             plait_error *err) {
    pli_ticket   ticket;
    plait_status status = pull_all(table, &ticket, err);
    if (status >= 0) status = gather_all(table, &ticket, n_out, keys_out, values_out, err);
    pli_ticket_free(&ticket);
    return status;
}
