/* The rule's state in slices, one a worker. See sharded.h. */
#include "table/topology/sharded.h"

#include <stdio.h>
#include <string.h>

#include "comm/collective.h"
#include "table/copies/mirror.h"
#include "table/state/values.h"
#include "table/topology/agreed_slices.h"
#include "table/topology/buckets.h"
#include "table/topology/coded_sums.h"

enum { WHAT_BYTES = 128 };

/* --- slices ------------------------------------------------------------------------------------------------------- */

typedef struct slice {
    int64_t part, n;    /* the part's values (of a sum)                            */
    int64_t first, own; /* the worker's slice: values of the table                 */
    int64_t state;      /* the number of its first state, behind those of parts before */
} slice;

/* Is the sum made of filtered parts? Then there is one part, and its slices are the stripes of copies/coded.h. */
static bool is_coded(const plait_table *table) {
    return table->spec.filter[0] != '\0' && table->job->layout.workers > 1;
}

static slice stripe_of(const plait_table *table) {
    const int64_t values = table->spec.rows * table->spec.cols;
    const int32_t me = pli_job_me(table->job), workers = table->job->layout.workers;
    const int64_t first = pli_slice_first(values, me, workers);
    return (slice){ .n = values, .first = first, .own = pli_slice_first(values, me + 1, workers) - first };
}

static slice slice_of(const plait_table *table, int64_t i) {
    if (is_coded(table)) return stripe_of(table);
    const plait_job *job = table->job;
    const int32_t  me = pli_job_me(job);
    const int64_t  values = table->spec.rows * table->spec.cols, cut = values + PLI_SUM_EXTRA;
    const int64_t  part = pli_bucket_first(table, cut, i), n = pli_bucket_first(table, cut, i + 1) - part;
    int64_t        first, own, own_before;
    pli_job_slice(job, n, me, &first, &own);
    first += part;
    if (first > values) first = values;
    if (own > values - first) own = values - first;
    pli_job_slice(job, pli_bucket_first(table, cut, 1), me, &(int64_t){ 0 }, &own_before);
    return (slice){ .part = part, .n = n, .first = first, .own = own, .state = i * own_before };
}

static int64_t parts_of(const plait_table *table) {
    return is_coded(table) ? 1 : pli_buckets_of(table, table->spec.rows * table->spec.cols + PLI_SUM_EXTRA);
}

plait_status pli_sharded_open(const plait_table *table, plait_error *err) {
    if (table->job->agreed != NULL) return pli_agreed_slices_open(table, err);
    const slice last = slice_of(table, parts_of(table) - 1);
    return pli_store_open_state(&pli_mirror_of(table)->shard.store, last.state + last.own, err);
}

/* Each worker gets its slice of the sum, applies the rule there, and all gather the values. */
static plait_status scatter(const plait_table *table, void *values, int64_t n) {
    plait_comm     *comm = table->job->comm;
    plait_group    *group = table->job->group;
    const pli_spec *spec = &table->spec;
    if (spec->exact) return pli_comm_scatter_cells(comm, group, spec->type == PLAIT_F64, n, values);
    if (!pli_comm_scatters_alike(comm, group, n, spec->type)) /* all of it, so that all hold the same bits */
        return pli_job_allreduce(table->job, values, n, spec->type);
    if (group != NULL) return plait_group_reduce_scatter(group, values, n, spec->type, PLAIT_SUM);
    return plait_comm_reduce_scatter(comm, values, n, spec->type, PLAIT_SUM);
}

/* The slice of the sum is there. */
static plait_status apply_part(const plait_table *table, const slice *s, int64_t examples, plait_error *err) {
    const pli_spec *spec = &table->spec;
    pli_store      *store = &pli_mirror_of(table)->shard.store;
    const int64_t   rest = spec->rows * spec->cols - s->part, n = s->n < rest ? s->n : rest;
    if (store->snap != NULL && n > 0)
        pli_snap_range_changes(store->snap, s->part / spec->cols,
                               (s->part + n - 1) / spec->cols - s->part / spec->cols + 1);
    PLI_TRY(pli_mirror_apply_slice(table->state, examples, s->first, s->own, s->state, err));
    pli_comm_work(table->job->comm, PLI_WORK_VALUES, (uint64_t)s->own);
    return pli_comm_gather_slices(table->job->comm, table->job->group,
                                  pli_at(store->slab->memory, s->part * spec->width), n, s->n, (size_t)spec->width);
}

static plait_status sum_part(const plait_table *table, const pli_sum *sum, const slice *s, const int64_t push[2],
                             plait_error *err) {
    PLI_TRY(scatter(table, pli_at(sum->values, s->part * table->spec.sum_width), s->n));
    return push[0] == 0 ? PLAIT_OK : apply_part(table, s, push[1], err); /* else nobody has pushed */
}

/* The clock's first table makes the sums of all. */
static plait_status end_coded(plait_table *table, plait_error *err) {
    const pli_sum *sum = pli_mirror_of(table)->first;
    const slice    s = stripe_of(table);
    if (sum->to_code) PLI_TRY(pli_coded_sums(table->job, err));
    if (sum->touched) PLI_TRY(apply_part(table, &s, sum->examples, err));
    pli_mirror_end_slices(table->state);
    return PLAIT_OK;
}

plait_status pli_sharded_clock_end(plait_table *table, plait_error *err) {
    if (is_coded(table)) return end_coded(table, err);
    const pli_sum *sum = pli_mirror_of(table)->first;
    int64_t        push[2] = { sum->own.touched, sum->own.examples };
    PLI_TRY(pli_job_allreduce(table->job, push, 2, PLAIT_I64));
    for (int64_t i = parts_of(table); i-- > 0;) {
        const slice s = slice_of(table, i);
        PLI_TRY(sum_part(table, sum, &s, push, err));
    }
    pli_mirror_end_slices(table->state);
    return PLAIT_OK;
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

static pli_chunk *chunk_of(const plait_table *table) { return pli_mirror_of(table)->shard.store.chunk; }

/* Gathers a part of a slot: part [s->n] receives it. */
static plait_status gather(plait_table *table, const slice *s, int32_t slot, int64_t rest, void *part) {
    const int64_t width = table->spec.width;
    if (s->own > 0)
        memcpy(pli_at(part, (s->first - s->part) * width), pli_at_const(chunk_of(table)->slot[slot], s->state * width),
               (size_t)(s->own * width));
    return pli_comm_gather_slices(table->job->comm, table->job->group, part, s->n < rest ? s->n : rest, s->n,
                                  (size_t)width);
}

plait_status pli_sharded_keep(plait_table *table, pli_snap *snap, plait_error *err) {
    const pli_spec *spec = &table->spec;
    const int64_t   values = spec->rows * spec->cols;
    int64_t         most = 0;
    char            what[WHAT_BYTES];
    if (table->job->agreed != NULL) return pli_agreed_slices_keep(table, snap, err);
    snprintf(what, sizeof what, "a capture of table %s", spec->name);
    for (int64_t i = 0; i < parts_of(table); i++) {
        const slice s = slice_of(table, i);
        if (s.n > most) most = s.n;
    }
    void        *part = snap != NULL ? pli_array((size_t)most, (size_t)spec->width) : NULL;
    plait_status status =
        part != NULL ? PLAIT_OK
                     : pli_fail(err, PLAIT_ENOMEM, "no memory for a snapshot of the state of table %s", spec->name);
    status = pli_job_agree(table->job, what, 0, status, err);
    for (int32_t slot = 0; status >= 0 && slot < spec->rule.ops->slots; slot++)
        for (int64_t i = 0; status >= 0 && i < parts_of(table); i++) {
            const slice   s = slice_of(table, i);
            const int64_t rest = values - s.part;
            status = gather(table, &s, slot, rest, part);
            if (status >= 0) pli_snap_keep_values(snap, PLI_STATE_SLOT + slot, s.part, s.n < rest ? s.n : rest, part);
        }
    pli_free(part);
    return status;
}

void pli_sharded_put_back(plait_table *table, int32_t slot, int64_t first, int64_t n, const void *rows) {
    const pli_spec *spec = &table->spec;
    const int64_t   low = first * spec->cols, high = (first + n) * spec->cols;
    if (table->job->agreed != NULL) {
        pli_agreed_slices_put_back(table, slot, first, n, rows);
        return;
    }
    for (int64_t i = 0; i < parts_of(table); i++) {
        const slice   s = slice_of(table, i);
        const int64_t from = s.first > low ? s.first : low, to = s.first + s.own < high ? s.first + s.own : high;
        if (from >= to) continue;
        memcpy(pli_at(chunk_of(table)->slot[slot], (s.state + from - s.first) * spec->width),
               pli_at_const(rows, (from - low) * spec->width), (size_t)((to - from) * spec->width));
    }
}
