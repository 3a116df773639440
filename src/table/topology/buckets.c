/* See buckets.h. */
#include "table/topology/buckets.h"

#include <string.h>

#include "comm/reduce.h"
#include "table/state/values.h"

typedef struct part { /* of a sum */
    plait_table *table;
    pli_sum     *sum;      /* NULL: not taken yet */
    int64_t      first, n; /* values of the sum   */
} part;

struct pli_bucket {
    pli_bucket    *next;
    part          *part; /* [parts] */
    int64_t        parts, parts_capacity;
    int64_t        n;       /* values in all; of lists 0                                              */
    int64_t        missing; /* parts whose sums are not taken yet                                     */
    bool           flies;   /* a later clock waits for it */
    bool           lists;   /* workers' lists of rows or filtered parts, which are gathered; else values to be summed */
    void          *values;  /* [n], once begun: a sum's own, or joint */
    void          *joint;   /* where there are several parts          */
    bool           begun;
    plait_request *request; /* NULL: not begun, or summed, or failed */
    bool           summed;
};

static const pli_spec *spec_of(const pli_bucket *bucket) { return &bucket->part->table->spec; }

/* Does the end of the clock wait for its values? Such buckets go one after the other. */
static bool is_waited_for(const pli_bucket *bucket) { return !bucket->flies && !bucket->lists; }

/* --- cutting ----------------------------------------------------------------------------------------------------- */

#ifdef PLI_TESTING
_Atomic int64_t pli_bucket_bytes = PLI_BUCKET_BYTES;
static int64_t  bucket_bytes(void) { return pli_bucket_bytes; }
#else
static int64_t bucket_bytes(void) { return PLI_BUCKET_BYTES; }
#endif

static int64_t values_of_bucket(const pli_spec *spec) { return bucket_bytes() / spec->sum_width; }

static plait_type type_of(const pli_spec *spec) {
    return spec->exact ? pli_cells_of(spec->type) : spec->type;
}

static bool go_together(const plait_table *a, const plait_table *b) {
    return type_of(&a->spec) == type_of(&b->spec) && a->spec.combine->reduce == b->spec.combine->reduce &&
           a->spares_bytes == b->spares_bytes;
}

bool pli_buckets_go_by_messages(const plait_table *table, int64_t n) {
    return pli_comm_sums_by_messages(table->job->comm, table->job->group, n, type_of(&table->spec));
}

/* The rest behind the last whole bucket is a bucket of its own, unless it is smaller than what stands behind the
 * values. */
int64_t pli_buckets_of(const plait_table *table, int64_t n) {
    const pli_spec *spec = &table->spec;
    int64_t         most = values_of_bucket(spec), buckets = (n - PLI_SUM_EXTRA + most - 1) / most;
    return buckets > 1 && pli_buckets_go_by_messages(table, n) ? buckets : 1;
}

int64_t pli_bucket_first(const plait_table *table, int64_t n, int64_t i) {
    return i == pli_buckets_of(table, n) ? n : i * values_of_bucket(&table->spec);
}

/* --- laying out --------------------------------------------------------------------------------------------------- */

static plait_status no_memory(const plait_table *table, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory to sum a clock", table->spec.name);
}

static plait_status put(pli_bucket *bucket, plait_table *table, int64_t first, int64_t n, plait_error *err) {
    if (!pli_grow((void **)&bucket->part, &bucket->parts_capacity, bucket->parts + 1, sizeof *bucket->part))
        return no_memory(table, err);
    bucket->part[bucket->parts++] = (part){ .table = table, .first = first, .n = n };
    bucket->n += n;
    bucket->missing++;
    return PLAIT_OK;
}

static void append(pli_bucket **list, pli_bucket *bucket) {
    while (*list != NULL) list = &(*list)->next;
    *list = bucket;
}

static plait_status put_alone(pli_bucket **list, plait_table *table, const pli_bucket *like, int64_t first, int64_t n,
                              plait_error *err) {
    pli_bucket *bucket = pli_calloc(1, sizeof *bucket);
    if (bucket == NULL) return no_memory(table, err);
    bucket->flies = like->flies;
    bucket->lists = like->lists;
    plait_status status = put(bucket, table, first, n, err);
    if (status < 0) pli_free(bucket);
    else append(list, bucket);
    return status;
}

static bool is_small(const pli_spec *spec, int64_t n) { return n * spec->sum_width <= PLI_JOIN_BYTES; }

/* Puts a small sum into an open bucket of its kind, or into a new one. A bucket that is no longer small is closed, and
 * gets its place. */
static plait_status put_small(pli_bucket **list, pli_bucket **open, plait_table *table, const pli_bucket *like,
                              int64_t n, plait_error *err) {
    const pli_spec *spec = &table->spec;
    pli_bucket    **at = open;
    while (*at != NULL && ((*at)->flies != like->flies || !go_together((*at)->part->table, table))) at = &(*at)->next;
    PLI_TRY(*at == NULL ? put_alone(at, table, like, 0, n, err) : put(*at, table, 0, n, err));
    pli_bucket *bucket = *at;
    if (is_small(spec, bucket->n)) return PLAIT_OK;
    *at = bucket->next;
    bucket->next = NULL;
    append(list, bucket);
    return PLAIT_OK;
}

/* list: the clock's buckets so far; open: those of small sums that have room. */
static plait_status lay(pli_bucket **list, pli_bucket **open, plait_table *table, plait_error *err) {
    pli_mirror       *mirror = pli_mirror_of(table);
    plait_job         *job = table->job;
    const int64_t      clock = job->clock;
    const bool         flies = pli_mirror_may_start(mirror, clock + 1, clock);
    const pli_sum_form form = mirror->form = pli_mirror_form(mirror, flies);
    const pli_bucket   like = { .flies = flies, .lists = pli_sum_is_gathered(form) };
    const int64_t      n = pli_mirror_sum_values(mirror, form);
    if (like.lists) return put_alone(list, table, &like, 0, 0, err);
    if (is_small(&table->spec, n) && job->layout.workers > 1) return put_small(list, open, table, &like, n, err);
    for (int64_t i = pli_buckets_of(table, n); i-- > 0;) {
        int64_t first = pli_bucket_first(table, n, i);
        PLI_TRY(put_alone(list, table, &like, first, pli_bucket_first(table, n, i + 1) - first, err));
    }
    return PLAIT_OK;
}

static void free_bucket(pli_bucket *bucket) {
    pli_comm_drop(&bucket->request);
    pli_free(bucket->joint);
    pli_free(bucket->part);
    pli_free(bucket);
}

static void free_list(pli_bucket *list) {
    for (pli_bucket *next; list != NULL; list = next) {
        next = list->next;
        free_bucket(list);
    }
}

/* The job gets all of them or none: without one of them, sums would lack parts. */
static plait_status put_in_job(plait_job *job, pli_bucket *list, pli_bucket *open, plait_status status) {
    append(&list, open);
    if (status < 0) free_list(list);
    else append(&job->bucket, list);
    return status;
}

plait_status pli_buckets_lay_table(plait_table *table, plait_error *err) {
    pli_bucket  *list = NULL, *open = NULL;
    plait_status status = lay(&list, &open, table, err);
    return put_in_job(table->job, list, open, status);
}

plait_status pli_buckets_lay(plait_job *job, plait_error *err) {
    pli_bucket  *list = NULL, *open = NULL;
    plait_status status = PLAIT_OK;
    if (job->laid) return PLAIT_OK;
    for (int64_t t = job->tables; t-- > 0 && status >= 0;) {
        const pli_topology_ops *ops = job->table[t]->ops;
        plait_table            *summed = ops->summed != NULL ? ops->summed(job->table[t]) : NULL;
        if (summed != NULL) status = lay(&list, &open, summed, err);
    }
    job->laid = status >= 0;
    return put_in_job(job, list, open, status);
}

void pli_buckets_add(plait_table *table, pli_sum *sum) {
    for (pli_bucket *bucket = table->job->bucket; bucket != NULL; bucket = bucket->next)
        for (int64_t i = 0; i < bucket->parts; i++) {
            if (bucket->part[i].table != table || bucket->part[i].sum != NULL) continue;
            bucket->part[i].sum = sum;
            bucket->missing--;
            sum->travels = true;
        }
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
    const plait_job *job = bucket->part->table->job;
    if (bucket->lists) {
        pli_sum *sum = bucket->part->sum;
        pli_msg *list = sum->list;
        sum->list = NULL;
        bucket->begun = true;
        return pli_comm_pieces_begin(job->comm, job->group, list, sum->piece, &bucket->request);
    }
    PLI_TRY(fill(bucket, err));
    return pli_comm_sum_tables(job->comm, job->group, type_of(spec_of(bucket)), spec_of(bucket)->combine->reduce,
                               bucket->n, bucket->values, bucket->part->table->spares_bytes, &bucket->request);
}

static plait_status sum_now(pli_bucket *bucket, plait_error *err) {
    const plait_job *job = bucket->part->table->job;
    PLI_TRY(fill(bucket, err));
    PLI_TRY(pli_comm_sum_tables(job->comm, job->group, type_of(spec_of(bucket)),
                                spec_of(bucket)->combine->reduce, bucket->n, bucket->values,
                                bucket->part->table->spares_bytes, NULL));
    bucket->summed = true;
    return PLAIT_OK;
}

/* Is it begun first and waited for later? Else the transport sums it at once. */
static bool travels(const pli_bucket *bucket) {
    const plait_job *job = bucket->part->table->job;
    return !is_waited_for(bucket) ||
           pli_comm_sums_by_messages(job->comm, job->group, bucket->n, type_of(spec_of(bucket)));
}

/* Begins buckets in order. Those that the end of the clock waits for are begun one at a time, unless `together`: side
 * by side they would end together, and nothing could be applied while others are under way. */
static plait_status begin_travelling(const plait_job *job, bool together, plait_error *err) {
    bool busy = false;
    for (pli_bucket *bucket = job->bucket; bucket != NULL; bucket = bucket->next) {
        if (!bucket->begun && travels(bucket)) {
            if (bucket->missing > 0 || (busy && !together && is_waited_for(bucket))) return PLAIT_OK;
            PLI_TRY(begin(bucket, err));
        }
        busy = busy || (bucket->request != NULL && is_waited_for(bucket));
    }
    return PLAIT_OK;
}

static bool is_next_to_sum(const pli_bucket *bucket) { return !bucket->begun && !travels(bucket); }

static bool has_travellers_left(const plait_job *job) {
    for (const pli_bucket *bucket = job->bucket; bucket != NULL; bucket = bucket->next)
        if (!bucket->begun && travels(bucket)) return true;
    return false;
}

/* One bucket has landed, or the clock ends. The next one flies while others are applied. When all fly, the sums that
 * the transport does by itself follow. */
static plait_status go_on(const plait_job *job, plait_error *err) {
    PLI_TRY(begin_travelling(job, false, err));
    if (job->laid || has_travellers_left(job)) return PLAIT_OK;
    for (pli_bucket *bucket = job->bucket; bucket != NULL; bucket = bucket->next)
        if (is_next_to_sum(bucket)) PLI_TRY(sum_now(bucket, err));
    return PLAIT_OK;
}

plait_status pli_buckets_leave(plait_job *job, plait_error *err) { return begin_travelling(job, true, err); }

plait_status pli_buckets_begin(plait_job *job, bool at_once, plait_error *err) {
    job->laid = false;
    if (at_once) return go_on(job, err);
    PLI_TRY(begin_travelling(job, true, err));
    for (pli_bucket *bucket = job->bucket; bucket != NULL; bucket = bucket->next)
        if (is_next_to_sum(bucket)) PLI_TRY(begin(bucket, err));
    return PLAIT_OK;
}

/* --- landing ------------------------------------------------------------------------------------------------------ */

/* Its collective is complete: each sum that has a part in it gets that part. */
static plait_status hand_over(pli_bucket *bucket, plait_error *err) {
    plait_status status = PLAIT_OK;
    copy_parts(bucket, false);
    for (int64_t i = 0; !bucket->lists && status >= 0 && i < bucket->parts; i++) {
        const part *p = &bucket->part[i];
        status = pli_mirror_land(pli_mirror_of(p->table), p->sum, p->first, err);
        if (pli_sum_in_parts(p->sum)) pli_comm_work(p->table->job->comm, PLI_WORK_VALUES, (uint64_t)p->n);
    }
    free_bucket(bucket);
    return status;
}

/* Its collective has failed. Whoever ends the job comes here again. */
static plait_status was_not_made(const pli_bucket *bucket, plait_error *err) {
    return err->code < 0 ? err->code
                         : pli_fail(err, PLAIT_ECOMM, "table %s: the sum of clock %lld was not made",
                                    spec_of(bucket)->name, (long long)bucket->part->table->job->clock);
}

static plait_status land(plait_job *job, pli_bucket *bucket, plait_error *err) {
    pli_bucket **at = &job->bucket;
    if (bucket->request == NULL && !bucket->summed) return was_not_made(bucket, err);
    if (bucket->request != NULL) PLI_TRY(plait_request_wait(&bucket->request));
    bucket->summed = true;
    if (is_waited_for(bucket)) PLI_TRY(go_on(job, err));
    while (*at != bucket) at = &(*at)->next;
    *at = bucket->next;
    return hand_over(bucket, err);
}

static pli_bucket *first_waited_for(const plait_job *job) {
    pli_bucket *bucket = job->bucket;
    while (bucket != NULL && !(bucket->begun && is_waited_for(bucket))) bucket = bucket->next;
    return bucket;
}

plait_status pli_buckets_begin_all(plait_job *job, plait_error *err) {
    for (const pli_bucket *bucket = job->bucket; bucket != NULL;) {
        pli_bucket *first = first_waited_for(job);
        if (bucket->begun) {
            bucket = bucket->next;
            continue;
        }
        if (first == NULL) return was_not_made(bucket, err);
        PLI_TRY(land(job, first, err));
        bucket = job->bucket;
    }
    return PLAIT_OK;
}

static pli_bucket *bucket_with(const plait_job *job, const pli_sum *sum) {
    for (pli_bucket *at = job->bucket; at != NULL; at = at->next)
        for (int64_t i = 0; i < at->parts; i++)
            if (at->part[i].sum == sum) return at;
    return NULL;
}

/* Nobody was ever handed it: it lacks the parts of the others. */
static plait_status is_in_no_bucket(const plait_table *table, const pli_sum *sum, plait_error *err) {
    return pli_fail(err, PLAIT_ECOMM, "table %s: the sum of clock %lld is in no bucket, so it was not made",
                    table->spec.name, (long long)sum->clock);
}

/* Buckets that are waited for land in order, whichever is asked for: one that is not begun follows those before it. */
plait_status pli_buckets_land(plait_table *table, pli_sum *sum, plait_error *err) {
    plait_job *job = table->job;
    if (!sum->travels) return is_in_no_bucket(table, sum, err);
    for (pli_bucket *wanted; (wanted = bucket_with(job, sum)) != NULL;) {
        pli_bucket *next = wanted->begun && !is_waited_for(wanted) ? wanted : first_waited_for(job);
        if (next == NULL) return was_not_made(wanted, err);
        PLI_TRY(land(job, next, err));
    }
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
