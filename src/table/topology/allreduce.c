/* topology allreduce - each rank holds a copy of the table. At a clock the workers' pushes are summed by collectives,
 * and every rank applies the rule to the sum: the same numbers in the same order, so the copies stay equal.
 *
 * Dense pushes are one sum in place; how many rows of data they stand for rides at its end. Keyed ones are gathered as
 * lists and merged in the order of workers; where they would fill more than a quarter of a dense table, they travel as
 * a dense sum too, with a mark for each row that was touched, so that the result is the same either way.
 *
 * Papers: Agarwal et al., "A Reliable Effective Terascale Linear Learning System", JMLR 2014; Renggli et al., "SparCML",
 * SC 2019 (sums that turn dense). */
#include <stdio.h>
#include <string.h>

#include "table/events.h"
#include "table/functions.h"
#include "table/table.h"
#include "table/values.h"

enum { EXTRA = 3 /* touched, examples mod 4096, examples / 4096: exact in float32 as well */, LOW = 4096, WHAT_BYTES = 128 };

struct pli_replica {
    pli_shard   shard;
    pli_pending pending;
    uint64_t    incs, sums; /* for the event log: of what is pending; applied */
};

static plait_status replica_open(plait_table *table, const void *initial, const void *penalty, plait_error *err) {
    plait_status status = PLAIT_OK;
    char         what[WHAT_BYTES];
    snprintf(what, sizeof what, "table %s", table->spec.name);
    struct pli_replica *replica = table->replica = pli_calloc(1, sizeof *replica);
    if (replica == NULL) {
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for table %s", table->spec.name);
    } else {
        pli_pending_init(&replica->pending, &table->spec, EXTRA);
        status = pli_shard_open(&replica->shard, &table->spec, 0, true, initial, penalty, err);
    }
    pli_raise_table(pli_comm_events(table->job->comm), plait_comm_rank(table->job->comm), false, &table->spec, 0, false);
    return pli_job_agree(table->job, what, 0, status, err);
}

static void replica_close(plait_table *table) {
    struct pli_replica *replica = table->replica;
    table->replica = NULL;
    if (replica == NULL) return;
    pli_table_unpin(table);
    pli_shard_close(&replica->shard);
    pli_pending_destroy(&replica->pending);
    pli_free(replica);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void raise_get(const plait_table *table, uint64_t incs, const pli_rows *rows) {
    pli_raise_replica_get(pli_comm_events(table->job->comm), plait_comm_rank(table->job->comm), &table->spec, table->job->clock,
                          table->replica->sums, incs, rows->n, rows->keys, rows->first);
}

static plait_status replica_get(plait_table *table, const pli_rows *rows, void *values, plait_error *err) {
    struct pli_replica *replica = table->replica;
    (void)err;
    if (rows->keys != NULL) {
        pli_store_get(&replica->shard.store, rows->n, rows->keys, values);
        pli_pending_overlay(&replica->pending, table->spec.ruled ? 0 : 1, rows->n, rows->keys, values);
    } else {
        pli_store_get_rows(&replica->shard.store, rows->first, rows->n, values);
        pli_pending_overlay_range(&replica->pending, table->spec.ruled ? 0 : 1, rows->first, rows->n, values);
    }
    raise_get(table, replica->incs, rows);
    return PLAIT_OK;
}

static plait_status replica_read(plait_table *table, int64_t first, int64_t n, const void **values_out, plait_error *err) {
    int64_t    row_bytes = pli_row_bytes(&table->spec);
    pli_store *store = &table->replica->shard.store;
    if (!table->spec.lazy && (table->spec.ruled || !table->replica->pending.touched)) {
        *values_out = pli_at_const(store->slab->memory, first * row_bytes);
        raise_get(table, 0, &(pli_rows){ .first = first, .n = n });
        return PLAIT_OK;
    }
    pli_msg *copy = pli_msg_new((size_t)(n * row_bytes));
    if (copy == NULL) return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a read", table->spec.name);
    *values_out = pli_msg_body(copy);
    pli_table_pin(table, copy);
    return n == 0 ? PLAIT_OK : replica_get(table, &(pli_rows){ .first = first, .n = n }, pli_msg_body(copy), err);
}

static plait_status replica_inc(plait_table *table, const pli_rows *rows, const void *delta, int64_t examples,
                                plait_error *err) {
    pli_pending *pending = &table->replica->pending;
    PLI_TRY(rows->keys != NULL ? pli_pending_add(pending, rows->n, rows->keys, delta, examples, err)
                               : pli_pending_add_range(pending, rows->first, rows->n, delta, examples, err));
    table->replica->incs++;
    pli_raise_inc(pli_comm_events(table->job->comm), plait_comm_rank(table->job->comm), &table->spec, rows->n, rows->keys,
                  rows->first, delta);
    return PLAIT_OK;
}

/* --- sums of dense pushes -------------------------------------------------------------------------------------------- */

static double value_at(const pli_spec *spec, const void *values, int64_t i) {
    return spec->type == PLAIT_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static void set_value(const pli_spec *spec, void *values, int64_t i, double x) {
    if (spec->type == PLAIT_F32) ((float *)values)[i] = (float)x;
    else ((double *)values)[i] = x;
}

static void put_extra(const pli_pending *pending, void *sum, int64_t at) {
    set_value(pending->spec, sum, at, pending->touched);
    set_value(pending->spec, sum, at + 1, (double)(pending->examples % LOW));
    set_value(pending->spec, sum, at + 2, (double)(pending->examples / LOW));
}

static void take_extra(const pli_spec *spec, const void *sum, int64_t at, pli_push_part *part) {
    part->touched = value_at(spec, sum, at) > 0;
    part->examples = (int64_t)value_at(spec, sum, at + 1) + (int64_t)value_at(spec, sum, at + 2) * LOW;
}

static plait_status sum_dense(plait_table *table, plait_error *err) {
    struct pli_replica *replica = table->replica;
    pli_pending        *pending = &replica->pending;
    const pli_spec     *spec = &table->spec;
    int64_t             values = spec->rows * spec->cols;
    PLI_TRY(pli_pending_reserve(pending, err));
    put_extra(pending, pending->sum, values);
    PLI_TRY(plait_comm_allreduce(table->job->comm, pending->sum, values + EXTRA, spec->type, PLAIT_SUM));
    pli_push_part part = { .n = spec->rows, .values = pending->sum };
    take_extra(spec, pending->sum, values, &part);
    plait_status status = pli_shard_apply_clock(&replica->shard, table->job->clock, 1, &part, err);
    pending->low = 0;
    pending->high = spec->rows;
    pli_pending_clear(pending);
    return status;
}

/* --- sums of keyed pushes --------------------------------------------------------------------------------------------- */

/* A worker's list: head, keys [n], values [n, cols], padded to 8. */
typedef struct list_head {
    int64_t touched, examples, n;
} list_head;

static size_t list_bytes(const pli_spec *spec, int64_t n) {
    return sizeof(list_head) + (size_t)n * 8 + (size_t)pli_pad8((uint64_t)(n * pli_row_bytes(spec)));
}

static unsigned char *make_list(const pli_pending *pending, size_t *bytes_out) {
    const pli_spec *spec = pending->spec;
    list_head       head = { .touched = pending->touched, .examples = pending->examples, .n = pending->set.n };
    size_t          bytes = list_bytes(spec, head.n);
    unsigned char  *list = pli_malloc(bytes);
    *bytes_out = bytes;
    if (list == NULL) return NULL;
    memset(list + bytes - 8, 0, 8);
    memcpy(list, &head, sizeof head);
    if (head.n == 0) return list;
    memcpy(list + sizeof head, pending->set.keys, (size_t)head.n * 8);
    memcpy(list + sizeof head + head.n * 8, pending->sum, (size_t)(head.n * pli_row_bytes(spec)));
    return list;
}

static plait_status read_list(const pli_shard *shard, const unsigned char *list, size_t bytes, int32_t worker,
                              pli_push_part *part, plait_error *err) {
    list_head head = { 0 };
    if (bytes >= sizeof head) memcpy(&head, list, sizeof head);
    if (bytes < sizeof head || head.n < 0 || (uint64_t)head.n > bytes / 8 || list_bytes(&shard->spec, head.n) != bytes)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: the push of rank %d is cut short", shard->spec.name, worker);
    *part = (pli_push_part){ .touched = head.touched != 0, .keyed = true, .examples = head.examples, .n = head.n,
                        .keys = (const uint64_t *)(list + sizeof head), .values = list + sizeof head + head.n * 8 };
    return pli_shard_check(shard, part, err);
}

static plait_status merge_lists(plait_table *table, const unsigned char *all, const size_t *bytes, pli_push_part *parts,
                                plait_error *err) {
    pli_shard *shard = &table->replica->shard;
    int32_t    workers = table->job->layout.workers;
    for (int32_t w = 0; w < workers; w++) {
        PLI_TRY(read_list(shard, all, bytes[w], w, &parts[w], err));
        all += bytes[w];
    }
    return pli_shard_apply_clock(shard, table->job->clock, workers, parts, err);
}

static plait_status sum_lists(plait_table *table, plait_error *err) {
    size_t         workers = (size_t)table->job->layout.workers, mine_bytes, *bytes = pli_array(workers, sizeof *bytes);
    pli_push_part      *parts = pli_array(workers, sizeof *parts);
    unsigned char *mine = make_list(&table->replica->pending, &mine_bytes);
    void          *all = NULL;
    plait_status   status = PLAIT_OK;
    if (bytes == NULL || parts == NULL || mine == NULL)
        status = pli_fail(err, PLAIT_ENOMEM, "table %s: no memory to sum a clock", table->spec.name);
    if (status >= 0) status = plait_comm_allgatherv(table->job->comm, mine, mine_bytes, bytes, &all);
    if (status >= 0) status = merge_lists(table, all, bytes, parts, err);
    plait_comm_free(all);
    pli_free(mine);
    pli_free(parts);
    pli_free(bytes);
    return status;
}

/* The sum as one array: values [rows, cols], a mark for each row that somebody touched, what put_extra says. */
static plait_status apply_marked(plait_table *table, void *sum, plait_error *err) {
    pli_shard      *shard = &table->replica->shard;
    const pli_spec *spec = &table->spec;
    int64_t         values = spec->rows * spec->cols, row_bytes = pli_row_bytes(spec), n = 0;
    uint64_t       *keys = pli_array((size_t)spec->rows, sizeof *keys);
    if (keys == NULL) return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory to sum a clock", spec->name);
    pli_push_part part = { .keyed = true, .keys = keys, .values = sum };
    take_extra(spec, sum, values + spec->rows, &part);
    for (int64_t row = 0; row < spec->rows; row++) {
        if (!(value_at(spec, sum, values + row) > 0)) continue;
        if (n < row) memcpy(pli_at(sum, n * row_bytes), pli_at_const(sum, row * row_bytes), (size_t)row_bytes);
        keys[n++] = (uint64_t)row;
    }
    part.n = n;
    plait_status status = pli_shard_apply_clock(shard, table->job->clock, 1, &part, err);
    pli_free(keys);
    return status;
}

static plait_status sum_marked(plait_table *table, plait_error *err) {
    const pli_spec    *spec = &table->spec;
    const pli_pending *pending = &table->replica->pending;
    int64_t            values = spec->rows * spec->cols, row_bytes = pli_row_bytes(spec), n = values + spec->rows + EXTRA;
    void              *sum = pli_calloc((size_t)n, (size_t)spec->width);
    if (sum == NULL) return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory to sum a clock", spec->name);
    for (int64_t i = 0; i < pending->set.n; i++) {
        int64_t row = (int64_t)pending->set.keys[i];
        memcpy(pli_at(sum, row * row_bytes), pli_at_const(pending->sum, i * row_bytes), (size_t)row_bytes);
        set_value(spec, sum, values + row, 1);
    }
    put_extra(pending, sum, values + spec->rows);
    plait_status status = plait_comm_allreduce(table->job->comm, sum, n, spec->type, PLAIT_SUM);
    if (status >= 0) status = apply_marked(table, sum, err);
    pli_free(sum);
    return status;
}

static plait_status sum_keyed(plait_table *table, plait_error *err) {
    const pli_spec *spec = &table->spec;
    int64_t         keys = table->replica->pending.set.n;
    if (spec->rows > 0 && table->job->layout.workers > 1)
        PLI_TRY(plait_comm_allreduce(table->job->comm, &keys, 1, PLAIT_I64, PLAIT_SUM));
    bool         dense = spec->rows > 0 && table->job->layout.workers > 1 && keys > spec->rows / 4;
    plait_status status = dense ? sum_marked(table, err) : sum_lists(table, err);
    pli_pending_clear(&table->replica->pending);
    return status;
}

static plait_status replica_clock(plait_table *table, plait_error *err) {
    const pli_event_sink *sink = pli_comm_events(table->job->comm);
    int32_t               rank = plait_comm_rank(table->job->comm);
    int64_t               clock = table->job->clock;
    if (table->replica->incs > 0) pli_raise_push(sink, rank, PLI_EVENT_PUSH, table->spec.id, clock);
    PLI_TRY(table->spec.keyed ? sum_keyed(table, err) : sum_dense(table, err));
    table->replica->incs = 0;
    table->replica->sums++;
    pli_raise_push(sink, rank, PLI_EVENT_SUM, table->spec.id, clock);
    return PLAIT_OK;
}

/* --- server functions: each replica runs its own, nothing is sent ------------------------------------------------------- */

static plait_status replica_call(plait_table *const *tables, int32_t n, int32_t function, const void *args,
                                 size_t args_bytes, void *answer, size_t answer_bytes, plait_error *err) {
    pli_shard *shards[PLI_CALL_TABLES_MAX];
    for (int32_t i = 0; i < n; i++) shards[i] = &tables[i]->replica->shard;
    return pli_function_run(&tables[0]->job->functions[function], shards, n, args, args_bytes, answer, answer_bytes, err);
}

static plait_status replica_dump(plait_table *table, int64_t *n_out, uint64_t **keys_out, void **values_out,
                                 plait_error *err) {
    const pli_store   *store = &table->replica->shard.store;
    const pli_pending *pending = &table->replica->pending;
    size_t             most = (size_t)(store->rows + pending->set.n);
    uint64_t          *keys = pli_array(most, sizeof *keys);
    void              *values = pli_array(most, (size_t)pli_row_bytes(&table->spec));
    if (keys == NULL || values == NULL) goto no_memory;
    pli_keymap_keys(&store->map, keys);
    pli_store_get_rows(store, 0, store->rows, values);
    if (!pli_pending_append(pending, table->spec.ruled ? 0 : 1, store->rows, keys, values, n_out)) goto no_memory;
    *keys_out = keys;
    *values_out = values;
    return PLAIT_OK;
no_memory:
    pli_free(keys);
    pli_free(values);
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a dump", table->spec.name);
}

const pli_topology_ops pli_replica_ops = {
    .open = replica_open, .close = replica_close, .get = replica_get, .read = replica_read, .inc = replica_inc,
    .clock = replica_clock, .call = replica_call, .dump = replica_dump,
};
