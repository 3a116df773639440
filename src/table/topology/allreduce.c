/* topology allreduce - each rank holds a copy of the table. At a clock the workers' pushes are summed by collectives,
 * and every rank applies the rule to the sum: the same numbers in the same order, so the copies stay equal (mirror.h).
 * If the next clock needs a sum, the end of the clock waits for it. If the next clock may do without it, the sum flies,
 * and a later clock, which cannot start without it, waits for it. buckets.h says which sums travel together, and in
 * which order: it does not depend on who has flushed what. A table of which each rank holds the rule's state of a slice
 * goes another way: sharded.h. */
#include <stdio.h>

#include "table/copies/mirror.h"
#include "table/events.h"
#include "table/server/functions.h"
#include "table/state/rest.h"
#include "table/state/values.h"
#include "table/topology/agreed_clock.h"
#include "table/topology/buckets.h"
#include "table/topology/coded_sums.h"
#include "table/topology/sharded.h"

enum { WHAT_BYTES = 128 };

/* --- opening, reading, adding ------------------------------------------------------------------------------------- */

static plait_status mirror_open(plait_table *table, const void *initial, const void *penalty, plait_error *err) {
    plait_job      *job = table->job;
    const pli_scope scope = pli_layout_scope(&job->layout);
    int32_t         rank = pli_job_me(job);
    char            what[WHAT_BYTES];
    snprintf(what, sizeof what, "table %s", table->spec.name);
    pli_mirror *mirror = NULL;
    plait_status status =
        pli_mirror_open(&table->spec, &scope, rank, pli_job_events(job), initial, penalty, &mirror, err);
    table->state = mirror;
    if (status >= 0 && job->layout.replicas > 1) {
        mirror->holds = true;
        status = pli_agreed_clock_open(job, true, err);
    }
    if (status >= 0 && table->spec.sharded) status = pli_sharded_open(table, err);
    if (status >= 0 && table->spec.filter[0] != '\0' && job->layout.workers > 1) {
        const pli_filter_scope filters = pli_layout_filters(&job->layout);
        status = pli_mirror_filter(mirror, &filters, job->layout.seed, err);
    }
    pli_raise_table(pli_job_events(job), rank, &table->spec, PLI_WAY_SUMMED);
    for (int64_t clock = job->layout.first_clock; status >= 0 && clock < plait_job_clock_now(job); clock++)
        pli_mirror_skip(mirror, clock);
    status = pli_job_agree(job, what, 0, status, err);
    job->agreed_carries = status >= 0 && job->agreed != NULL; /* from here on the same on all workers */
    return status;
}

static void mirror_close(plait_table *table) {
    pli_table_unpin(table);
    pli_buckets_drop(table);
    pli_mirror *mirror = table->state;
    table->state = NULL;
    pli_mirror_close(&mirror);
}

static plait_status mirror_get(plait_table *table, const pli_rows *rows, void *values, plait_error *err) {
    (void)err;
    pli_mirror_get(table->state, table->job->clock, rows->n, rows->keys, rows->first, values);
    return PLAIT_OK;
}

static plait_status mirror_read(plait_table *table, int64_t first, int64_t n, const void **values_out,
                                 plait_error *err) {
    *values_out = pli_mirror_read(table->state, table->job->clock, first, n);
    if (*values_out != NULL) return PLAIT_OK;
    return pli_table_read_copy(table, first, n, values_out, err);
}

static plait_status mirror_inc(plait_table *table, const pli_rows *rows, const void *delta, int64_t examples,
                                plait_error *err) {
    return pli_mirror_inc(table->state, rows->n, rows->keys, rows->first, delta, examples, err);
}

/* --- clocks ------------------------------------------------------------------------------------------------------- */

/* Was the sum made of filtered parts (coded_sums.h), so that it was in no bucket? */
static bool was_coded(const plait_table *table, const pli_sum *sum) {
    return sum->form == PLI_SUM_DENSE && pli_mirror_is_coded(pli_mirror_of(table));
}

/* Does this clock's sum go so? It does if the next clock waits for it. */
static bool is_coded_now(const plait_table *table) {
    const pli_mirror *mirror = table->state;
    const int64_t     clock = table->job->clock;
    return pli_mirror_is_coded(mirror) && !pli_mirror_may_start(mirror, clock + 1, clock);
}

/* Waits for the oldest sum that is under way, and applies it. */
static plait_status land_sum(plait_table *table, plait_error *err) {
    pli_sum *sum = pli_mirror_of(table)->first;
    if (!was_coded(table, sum) && !sum->made) PLI_TRY(pli_buckets_land(table, sum, err));
    const bool    in_parts = pli_sum_in_parts(sum), dense = sum->form == PLI_SUM_DENSE || sum->form == PLI_SUM_CODED;
    const int64_t values = sum->form == PLI_SUM_CODED ? table->spec.rows * table->spec.cols : sum->n;
    PLI_TRY(pli_mirror_apply(table->state, err));
    if (!in_parts)
        pli_comm_work(table->job->comm, PLI_WORK_VALUES,
                      (uint64_t)(dense ? values : pli_mirror_of(table)->keys * table->spec.cols));
    return PLAIT_OK;
}

static plait_status mirror_settle(plait_table *table, plait_error *err) {
    while (pli_mirror_of(table)->first != NULL) PLI_TRY(land_sum(table, err));
    return PLAIT_OK;
}

/* The clock of a sharded table has no halves, nor has that of filtered sums: the worker itself takes part between its
 * steps, once no other collective is left to begin. */
static plait_status mirror_clock_end(plait_table *table, plait_error *err) {
    pli_mirror *mirror = table->state;
    int64_t      clock = table->job->clock;
    if (table->spec.sharded) {
        PLI_TRY(pli_buckets_begin_all(table->job, err));
        return pli_sharded_clock_end(table, err);
    }
    if (mirror->first != NULL && mirror->first->to_code) PLI_TRY(pli_coded_sums(table->job, err));
    while (mirror->first != NULL && !pli_mirror_may_start(mirror, clock + 1, mirror->first->clock))
        PLI_TRY(land_sum(table, err));
    return PLAIT_OK;
}

/* Takes the worker's part of the clock's sum, which then lies in its buckets. */
static plait_status take(plait_table *table, plait_error *err) {
    pli_mirror *mirror = table->state;
    int64_t      clock = table->job->clock;
    pli_sum     *sum;
    if (mirror->taken > clock) return PLAIT_OK;
    bool flies = pli_mirror_may_start(mirror, clock + 1, clock);
    if (!flies) PLI_TRY(mirror_settle(table, err));
    const bool         coded = is_coded_now(table);
    const pli_sum_form form = coded ? PLI_SUM_DENSE : mirror->form;
    PLI_TRY(pli_mirror_take(mirror, clock, form, flies, &sum, err));
    if (!table->spec.sharded && !coded) pli_buckets_add(table, sum);
    return PLAIT_OK;
}

static plait_status mirror_depart(plait_table *table, plait_error *err) {
    plait_job *job = table->job;
    if (table->spec.sharded || job->agreed != NULL || job->layout.aggregates || job->layout.workers == 1 ||
        is_coded_now(table))
        return PLAIT_OK;
    PLI_TRY(pli_buckets_lay(job, err));
    PLI_TRY(take(table, err));
    return pli_buckets_leave(job, err);
}

static plait_status mirror_clock_begin(plait_table *table, plait_error *err) {
    PLI_TRY(pli_buckets_lay(table->job, err));
    return take(table, err);
}

static plait_table *mirror_summed(plait_table *table) {
    return table->spec.sharded || is_coded_now(table) ? NULL : table;
}

static plait_table *mirror_coded(plait_table *table) {
    const pli_sum *sum = pli_mirror_of(table)->first;
    return sum != NULL && sum->to_code ? table : NULL;
}

static pli_mirror *mirror_held(plait_table *table) { return table->state; }

/* Lists always go by messages. */
static bool mirror_overlaps(const plait_table *table) {
    const pli_spec *spec = &table->spec;
    if (table->job->agreed != NULL) return false;
    if (spec->rows == 0) return true;
    if (pli_mirror_is_coded(table->state)) return !is_coded_now(table);
    return !spec->sharded && pli_buckets_go_by_messages(table, spec->rows * (spec->cols + spec->keyed) + PLI_SUM_EXTRA);
}

/* For this table alone, which is not one of the job's. */
static plait_status mirror_clock(plait_table *table, plait_error *err) {
    PLI_TRY(pli_buckets_lay_table(table, err));
    PLI_TRY(take(table, err));
    PLI_TRY(pli_buckets_begin(table->job, true, err));
    return mirror_clock_end(table, err);
}

/* --- server functions: each mirror runs its own, nothing is sent ------------------------------------------------- */

static plait_status mirror_call(plait_table *const *tables, int32_t n, const pli_function_call *call, void *answer,
                                plait_error *err) {
    pli_shard *shards[PLI_CALL_TABLES_MAX];
    pli_function_call own = *call;
    pli_event_ran     ran = { .shard = -1 };
    plait_job        *job = tables[0]->job;
    for (int32_t i = 0; i < n; i++) shards[i] = &pli_mirror_of(tables[i])->shard;
    if (!call->fn->updates) return pli_function_run(call, shards, n, answer, err);
    if (pli_job_events(job) != NULL) own.wrote_out = &ran.wrote;
    job->client.calls++;
    const plait_status status = pli_function_run(&own, shards, n, answer, err);
    ran.answer = pli_function_answered(answer, call->answer_bytes);
    pli_table_raise_call(tables, n, call, status < 0 ? 0 : 1, &ran);
    return status;
}

static plait_status mirror_dump(plait_table *table, int64_t *n_out, uint64_t **keys_out, void **values_out,
                                 plait_error *err) {
    return pli_mirror_dump(table->state, table->job->clock, n_out, keys_out, values_out, err);
}

/* Behind the barrier every sum has been applied. What filters have kept goes with the values. */
static plait_status mirror_zero(plait_table *table, int64_t number, plait_error *err) {
    (void)number;
    pli_rest_forget(table);
    return pli_store_zero(&pli_mirror_of(table)->shard.store)
               ? PLAIT_OK
               : pli_fail(err, PLAIT_ENOMEM, "no memory to zero table %s", table->spec.name);
}

static plait_status mirror_rest_take(plait_table *table, pli_rest *rest_out) {
    const pli_coded *coded = pli_mirror_of(table)->coded;
    return coded != NULL ? pli_coded_rest(coded, rest_out) : PLAIT_OK;
}

static plait_status mirror_rest_add(plait_table *table, const pli_rest *rest) {
    pli_coded *coded = pli_mirror_of(table)->coded;
    return coded != NULL ? pli_coded_rest_add(coded, rest) : PLAIT_OK;
}

static void mirror_rest_forget(plait_table *table) {
    if (pli_mirror_of(table)->coded != NULL) pli_coded_forget(pli_mirror_of(table)->coded);
}

static pli_shard *mirror_copy(const plait_table *table) { return &pli_mirror_of(table)->shard; }

const pli_topology_ops pli_mirror_ops = {
    .open = mirror_open,
    .close = mirror_close,
    .get = mirror_get,
    .read = mirror_read,
    .inc = mirror_inc,
    .depart = mirror_depart,
    .clock = mirror_clock,
    .clock_begin = mirror_clock_begin,
    .clock_end = mirror_clock_end,
    .summed = mirror_summed,
    .coded = mirror_coded,
    .held = mirror_held,
    .settle = mirror_settle,
    .zero = mirror_zero,
    .call = mirror_call,
    .dump = mirror_dump,
    .overlaps = mirror_overlaps,
    .copy = mirror_copy,
    .keep_slices = pli_sharded_keep,
    .put_slices = pli_sharded_put_back,
    .rest_take = mirror_rest_take,
    .rest_add = mirror_rest_add,
    .rest_forget = mirror_rest_forget,
};
