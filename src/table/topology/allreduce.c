/* topology allreduce - each rank holds a copy of the table. At a clock the workers' pushes are summed by collectives,
 * and every rank applies the rule to the sum: the same numbers in the same order, so the copies stay equal (replica.h). A
 * sum that the next clock must have is made at once; one that it may do without is begun, and waited for when a later clock
 * cannot start without it.
 *
 * Where a table is sharded, a rank holds the rule's state of one slice only: the sum is a reduce-scatter, the rule is applied
 * to the slice, and the values are gathered (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion
 * Parameter Models", SC 2020, stage 1): as many bytes as an allreduce, the same values bit for bit. */
#include <stdio.h>

#include "table/events.h"
#include "table/functions.h"
#include "table/replica.h"
#include "table/table.h"

enum { WHAT_BYTES = 128 };

static plait_status replica_open(plait_table *table, const void *initial, const void *penalty, plait_error *err) {
    plait_job      *job = table->job;
    const pli_scope scope = pli_layout_scope(&job->layout);
    int32_t         rank = plait_comm_rank(job->comm);
    char            what[WHAT_BYTES];
    snprintf(what, sizeof what, "table %s", table->spec.name);
    plait_status status = pli_replica_open(&table->spec, &scope, rank, pli_comm_events(job->comm), initial, penalty, &table->replica, err);
    pli_raise_table(pli_comm_events(job->comm), rank, false, &table->spec, PLI_WAY_SUMMED);
    return pli_job_agree(job, what, 0, status, err);
}

static void replica_close(plait_table *table) {
    pli_table_unpin(table);
    for (pli_sum *sum = table->replica == NULL ? NULL : table->replica->first; sum != NULL; sum = sum->next)
        pli_comm_drop(&sum->request);
    pli_replica_close(&table->replica);
}

static plait_status replica_get(plait_table *table, const pli_rows *rows, void *values, plait_error *err) {
    (void)err;
    pli_replica_get(table->replica, table->job->clock, rows->n, rows->keys, rows->first, values);
    return PLAIT_OK;
}

static plait_status replica_read(plait_table *table, int64_t first, int64_t n, const void **values_out, plait_error *err) {
    *values_out = pli_replica_read(table->replica, table->job->clock, first, n);
    if (*values_out != NULL) return PLAIT_OK;
    return pli_table_read_copy(table, first, n, values_out, err);
}

static plait_status replica_inc(plait_table *table, const pli_rows *rows, const void *delta, int64_t examples, plait_error *err) {
    return pli_replica_inc(table->replica, rows->n, rows->keys, rows->first, delta, examples, err);
}

/* --- clocks --------------------------------------------------------------------------------------------------------- */

static plait_status begin_sum(const plait_table *table, pli_sum *sum) {
    plait_comm *comm = table->job->comm;
    if (table->spec.exact && sum->form != PLI_SUM_LISTS)
        return pli_comm_sum_cells_begin(comm, table->spec.type == PLAIT_F64, sum->n, sum->values, &sum->request);
    if (sum->form != PLI_SUM_LISTS) return plait_comm_allreduce_begin(comm, sum->values, sum->n, table->spec.type, PLAIT_SUM, &sum->request);
    pli_msg *list = sum->list;
    sum->list = NULL;
    return pli_comm_pieces_begin(comm, list, sum->piece, &sum->request);
}

static plait_status sum_now(const plait_table *table, pli_sum *sum) {
    plait_comm     *comm = table->job->comm;
    const pli_spec *spec = &table->spec;
    if (sum->form == PLI_SUM_LISTS) {
        PLI_TRY(begin_sum(table, sum));
        return plait_request_wait(&sum->request);
    }
    if (spec->exact) return pli_comm_sum_cells(comm, spec->type == PLAIT_F64, sum->n, sum->values);
    return plait_comm_allreduce(comm, sum->values, sum->n, spec->type, PLAIT_SUM);
}

/* The oldest sum under way. */
static plait_status land_sum(plait_table *table, plait_error *err) {
    pli_sum *sum = table->replica->first;
    if (sum->request == NULL) /* its collective has failed, and whoever ends the job comes here again */
        return err->code < 0 ? err->code : pli_fail(err, PLAIT_ECOMM, "table %s: the sum of clock %lld was not made",
                                                    table->spec.name, (long long)sum->clock);
    PLI_TRY(plait_request_wait(&sum->request));
    return pli_replica_apply(table->replica, err);
}

static plait_status replica_settle(plait_table *table, plait_error *err) {
    while (table->replica->first != NULL) PLI_TRY(land_sum(table, err));
    return PLAIT_OK;
}

/* Where the sum is made at once, the workers tell each other how many keys they have. */
static plait_status choose_form(const plait_table *table, pli_sum_form *form_out) {
    const pli_spec *spec = &table->spec;
    int64_t         keys = table->replica->pending.set.n;
    *form_out = spec->keyed ? PLI_SUM_LISTS : PLI_SUM_DENSE;
    if (!spec->keyed || spec->rows == 0 || table->job->layout.workers == 1) return PLAIT_OK;
    PLI_TRY(plait_comm_allreduce(table->job->comm, &keys, 1, PLAIT_I64, PLAIT_SUM));
    if (keys > spec->rows / 4) *form_out = PLI_SUM_MARKED;
    return PLAIT_OK;
}

/* Each worker gets its slice of the sum, applies the rule there, and all gather the values. */
static plait_status scatter(const plait_table *table, pli_sum *sum) {
    plait_comm     *comm = table->job->comm;
    const pli_spec *spec = &table->spec;
    bool            wide = spec->type == PLAIT_F64;
    if (spec->exact) return pli_comm_scatter_cells(comm, wide, sum->n, sum->values);
    if (!pli_comm_scatters_alike(comm, sum->n, spec->type)) return sum_now(table, sum); /* all of it, to be true to the bits */
    return plait_comm_reduce_scatter(comm, sum->values, sum->n, spec->type, PLAIT_SUM);
}

static plait_status sum_in_parts(plait_table *table, pli_sum *sum, plait_error *err) {
    plait_comm     *comm = table->job->comm;
    const pli_spec *spec = &table->spec;
    int64_t         push[2] = { sum->own.touched, sum->own.examples }, cut = sum->n;
    void           *values;
    PLI_TRY(plait_comm_allreduce(comm, push, 2, PLAIT_I64, PLAIT_SUM));
    PLI_TRY(scatter(table, sum));
    PLI_TRY(pli_replica_apply_slice(table->replica, push[0], push[1], &values, err));
    return values == NULL ? PLAIT_OK : pli_comm_gather_slices(comm, values, spec->rows * spec->cols, cut, (size_t)spec->width);
}

static plait_status clock_at_once(plait_table *table, int64_t clock, plait_error *err) {
    pli_sum_form form;
    pli_sum     *sum;
    PLI_TRY(replica_settle(table, err));
    PLI_TRY(choose_form(table, &form));
    PLI_TRY(pli_replica_take(table->replica, clock, form, false, &sum, err));
    if (table->spec.sharded) return sum_in_parts(table, sum, err);
    PLI_TRY(sum_now(table, sum));
    return pli_replica_apply(table->replica, err);
}

/* A sharded table's clock is whole: between its parts the worker takes part itself. */
static plait_status replica_clock_begin(plait_table *table, plait_error *err) {
    pli_replica *replica = table->replica;
    int64_t      clock = table->job->clock;
    bool         flies = pli_replica_may_start(replica, clock + 1, clock);
    pli_sum     *sum;
    if (table->spec.sharded) return clock_at_once(table, clock, err);
    if (!flies) PLI_TRY(replica_settle(table, err));
    PLI_TRY(pli_replica_take(replica, clock, pli_replica_form(replica), flies, &sum, err));
    return begin_sum(table, sum);
}

static plait_status replica_clock_end(plait_table *table, plait_error *err) {
    pli_replica *replica = table->replica;
    int64_t      clock = table->job->clock;
    while (replica->first != NULL && !pli_replica_may_start(replica, clock + 1, replica->first->clock)) PLI_TRY(land_sum(table, err));
    return PLAIT_OK;
}

static plait_status replica_clock(plait_table *table, plait_error *err) {
    int64_t clock = table->job->clock;
    if (!pli_replica_may_start(table->replica, clock + 1, clock)) return clock_at_once(table, clock, err);
    PLI_TRY(replica_clock_begin(table, err));
    return replica_clock_end(table, err);
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
    return pli_replica_dump(table->replica, n_out, keys_out, values_out, err);
}

const pli_topology_ops pli_replica_ops = {
    .open = replica_open, .close = replica_close, .get = replica_get, .read = replica_read, .inc = replica_inc,
    .clock = replica_clock, .clock_begin = replica_clock_begin, .clock_end = replica_clock_end, .settle = replica_settle, .call = replica_call, .dump = replica_dump,
};
