/* See buckets.h. */
#include "table/topology/buckets.h"

#include <string.h>

#include "comm/reduce.h"
#include "table/values.h"

typedef struct part { /* of a sum */
    plait_table *table;
    pli_sum     *sum;
    int64_t      first, n; /* values of the sum */
} part;

struct pli_bucket {
    pli_bucket    *next;
    part          *part; /* [parts] */
    int64_t        parts, parts_capacity;
    int64_t        n;      /* values in all      */
    void          *values; /* [n], once begun: a sum's own, or joint */
    void          *joint;  /* where there are several parts          */
    bool           begun;
    plait_request *request; /* NULL: not begun, or summed, or failed */
    bool           summed;
};

static const pli_spec *spec_of(const pli_bucket *bucket) { return &bucket->part->table->spec; }

static bool flies(const pli_bucket *bucket) { return bucket->part->sum->flies; }

/* --- cutting ----------------------------------------------------------------------------------------------------- */

static int64_t values_of_bucket(const pli_spec *spec) { return PLI_BUCKET_BYTES / spec->sum_width; }

static plait_type type_of(const pli_spec *spec) {
    return spec->exact ? pli_cells_of(spec->type) : spec->type;
}

bool pli_buckets_go_by_messages(const plait_table *table, int64_t n) {
    return pli_comm_sums_by_messages(table->job->comm, n, type_of(&table->spec));
}

/* What is behind the last whole bucket is one of its own, unless it is less than what stands behind the values. */
int64_t pli_buckets_of(const plait_table *table, int64_t n) {
    const pli_spec *spec = &table->spec;
    int64_t         most = values_of_bucket(spec), buckets = (n - PLI_SUM_EXTRA + most - 1) / most;
    return buckets > 1 && pli_buckets_go_by_messages(table, n) ? buckets : 1;
}

int64_t pli_bucket_first(const plait_table *table, int64_t n, int64_t i) {
    return i == pli_buckets_of(table, n) ? n : i * values_of_bucket(&table->spec);
}

/* --- filling ------------------------------------------------------------------------------------------------------ */

static plait_status no_memory(const plait_table *table, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory to sum a clock", table->spec.name);
}

static plait_status put(pli_bucket *bucket, plait_table *table, pli_sum *sum, int64_t first, int64_t n,
                        plait_error *err) {
    if (!pli_grow((void **)&bucket->part, &bucket->parts_capacity, bucket->parts + 1, sizeof *bucket->part))
        return no_memory(table, err);
    bucket->part[bucket->parts++] = (part){ .table = table, .sum = sum, .first = first, .n = n };
    bucket->n += n;
    return PLAIT_OK;
}

static plait_status put_alone(plait_table *table, pli_sum *sum, int64_t first, int64_t n, plait_error *err) {
    plait_job  *job = table->job;
    pli_bucket *bucket = pli_calloc(1, sizeof *bucket), **last = &job->bucket;
    if (bucket == NULL) return no_memory(table, err);
    plait_status status = put(bucket, table, sum, first, n, err);
    if (status < 0) {
        pli_free(bucket);
        return status;
    }
    while (*last != NULL) last = &(*last)->next;
    *last = bucket;
    return PLAIT_OK;
}

static bool is_small(const pli_spec *spec, int64_t n) { return n * spec->sum_width <= PLI_JOIN_BYTES; }

/* A bucket of this clock to which the small sum may be joined, or NULL. */
static pli_bucket *companion(const plait_table *table, const pli_sum *sum) {
    const pli_spec *spec = &table->spec;
    if (!is_small(spec, sum->n) || table->job->layout.workers == 1) return NULL;
    for (pli_bucket *bucket = table->job->bucket; bucket != NULL; bucket = bucket->next) {
        const pli_spec *other = spec_of(bucket);
        if (!bucket->begun && flies(bucket) == sum->flies && type_of(other) == type_of(spec) &&
            is_small(other, bucket->part->n) && bucket->n + sum->n <= values_of_bucket(spec))
            return bucket;
    }
    return NULL;
}

plait_status pli_buckets_add(plait_table *table, pli_sum *sum, plait_error *err) {
    pli_bucket *other = companion(table, sum);
    if (other != NULL) return put(other, table, sum, 0, sum->n, err);
    for (int64_t i = pli_buckets_of(table, sum->n); i-- > 0;) {
        int64_t first = pli_bucket_first(table, sum->n, i);
        PLI_TRY(put_alone(table, sum, first, pli_bucket_first(table, sum->n, i + 1) - first, err));
    }
    return PLAIT_OK;
}

/* --- going -------------------------------------------------------------------------------------------------------- */

static void *values_of_part(const part *p) { return pli_at(p->sum->values, p->first * p->table->spec.sum_width); }

static void copy_parts(const pli_bucket *bucket, bool in) {
    unsigned char *at = bucket->joint;
    for (int64_t i = 0; at != NULL && i < bucket->parts; i++) {
        const part *p = &bucket->part[i];
        size_t      bytes = (size_t)(p->n * spec_of(bucket)->sum_width);
        if (in) memcpy(at, values_of_part(p), bytes);
        else memcpy(values_of_part(p), at, bytes);
        at += bytes;
    }
}

static plait_status fill(pli_bucket *bucket, plait_error *err) {
    bucket->begun = true;
    bucket->values = values_of_part(bucket->part);
    if (bucket->parts == 1) return PLAIT_OK;
    bucket->values = bucket->joint = pli_aligned((size_t)(bucket->n * spec_of(bucket)->sum_width));
    if (bucket->joint == NULL) return no_memory(bucket->part->table, err);
    copy_parts(bucket, true);
    return PLAIT_OK;
}

static plait_status begin(pli_bucket *bucket, plait_error *err) {
    const pli_spec *spec = spec_of(bucket);
    plait_comm     *comm = bucket->part->table->job->comm;
    PLI_TRY(fill(bucket, err));
    if (spec->exact)
        return pli_comm_sum_cells_begin(comm, spec->type == PLAIT_F64, bucket->n, bucket->values, &bucket->request);
    return plait_comm_allreduce_begin(comm, bucket->values, bucket->n, spec->type, PLAIT_SUM, &bucket->request);
}

static plait_status sum_now(pli_bucket *bucket, plait_error *err) {
    const pli_spec *spec = spec_of(bucket);
    plait_comm     *comm = bucket->part->table->job->comm;
    PLI_TRY(fill(bucket, err));
    PLI_TRY(spec->exact ? pli_comm_sum_cells(comm, spec->type == PLAIT_F64, bucket->n, bucket->values)
                        : plait_comm_allreduce(comm, bucket->values, bucket->n, spec->type, PLAIT_SUM));
    bucket->summed = true;
    return PLAIT_OK;
}

/* Of those that are waited for next, one at a time: side by side they would end together, and nothing could be applied
 * while others are under way. */
static plait_status begin_next(const plait_job *job, plait_error *err) {
    pli_bucket *bucket = job->bucket;
    while (bucket != NULL && (flies(bucket) || bucket->summed)) bucket = bucket->next;
    return bucket == NULL || bucket->begun ? PLAIT_OK : begin(bucket, err);
}

plait_status pli_buckets_begin(plait_job *job, bool at_once, plait_error *err) {
    for (pli_bucket *bucket = job->bucket; bucket != NULL; bucket = bucket->next) {
        if (bucket->begun) continue;
        if (!at_once || flies(bucket)) PLI_TRY(begin(bucket, err));
        else if (!pli_comm_sums_by_messages(job->comm, bucket->n, type_of(spec_of(bucket))))
            PLI_TRY(sum_now(bucket, err));
    }
    return at_once ? begin_next(job, err) : PLAIT_OK;
}

static void free_bucket(pli_bucket *bucket) {
    pli_comm_drop(&bucket->request);
    pli_free(bucket->joint);
    pli_free(bucket->part);
    pli_free(bucket);
}

/* Its sum is complete: it is every sum's of which it has a part. */
static plait_status hand_over(pli_bucket *bucket, plait_error *err) {
    plait_status status = PLAIT_OK;
    copy_parts(bucket, false);
    for (int64_t i = 0; status >= 0 && i < bucket->parts; i++) {
        const part *p = &bucket->part[i];
        status = pli_replica_land(p->table->replica, p->sum, p->first, err);
        if (pli_sum_in_parts(p->sum)) pli_comm_work(p->table->job->comm, PLI_WORK_VALUES, (uint64_t)p->n);
    }
    free_bucket(bucket);
    return status;
}

static pli_bucket **bucket_with(plait_job *job, const pli_sum *sum) {
    for (pli_bucket **at = &job->bucket; *at != NULL; at = &(*at)->next)
        for (int64_t i = 0; i < (*at)->parts; i++)
            if ((*at)->part[i].sum == sum) return at;
    return NULL;
}

/* The first that has a part of the sum. */
static plait_status land_one(plait_table *table, const pli_sum *sum, plait_error *err) {
    pli_bucket **at = bucket_with(table->job, sum), *bucket = at == NULL ? NULL : *at;
    if (bucket != NULL && !flies(bucket)) PLI_TRY(begin_next(table->job, err));
    if (bucket == NULL || (bucket->request == NULL && !bucket->summed)) /* its collective has failed, and whoever ends
                                                                           the job comes here again */
        return err->code < 0 ? err->code : pli_fail(err, PLAIT_ECOMM, "table %s: the sum of clock %lld was not made",
                                                    table->spec.name, (long long)sum->clock);
    if (bucket->request != NULL) PLI_TRY(plait_request_wait(&bucket->request));
    *at = bucket->next;
    plait_status status = flies(bucket) ? PLAIT_OK : begin_next(table->job, err); /* flies while this one is applied */
    if (status >= 0) return hand_over(bucket, err);
    free_bucket(bucket);
    return status;
}

plait_status pli_buckets_land(plait_table *table, pli_sum *sum, plait_error *err) {
    while (sum->rest > 0) PLI_TRY(land_one(table, sum, err));
    return PLAIT_OK;
}

static bool is_of(const pli_bucket *bucket, const plait_table *table) {
    for (int64_t i = 0; i < bucket->parts; i++)
        if (bucket->part[i].table == table) return true;
    return false;
}

void pli_buckets_drop(const plait_table *table) {
    for (pli_bucket **at = &table->job->bucket; *at != NULL;) {
        pli_bucket *bucket = *at;
        if (!is_of(bucket, table)) {
            at = &bucket->next;
            continue;
        }
        *at = bucket->next;
        free_bucket(bucket);
    }
}
