/* plait_table_zero: all workers meet at a barrier, by which every update has arrived. Then each rank zeroes the copies
 * of the rows that it has, and nobody goes on before all have done so. A worker that was away meanwhile hears of it
 * when it comes (copies/roster.h). */
#include <string.h>

#include "table/events.h"
#include "table/table.h"

/* Workers that are away at first take part until the first clock. */
static bool has_left(const plait_job *job) {
    return job->left && (job->layout.slots == 0 || plait_job_clock_now(job) > job->layout.first_clock);
}

/* An update of the current clock would come before the zeroing for some workers, and behind it for others. */
static plait_status check(const plait_table *table, plait_error *err) {
    const plait_job *job = table->job;
    if (has_left(job))
        return pli_fail(err, PLAIT_EINVAL, "table %s: plait_table_zero after plait_job_leave", table->spec.name);
    if (table->updated <= plait_job_clock_now(job)) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL,
                    "table %s: plait_table_zero after an inc of clock %lld; call it before the clock's first inc",
                    table->spec.name, (long long)plait_job_clock_now(job));
}

static uint64_t hash_of(const plait_table *table) {
    const int64_t what[] = { table->spec.id, table->zeros, plait_job_clock_now(table->job) };
    return pli_hash_bytes(what, sizeof what, 11);
}

static plait_status agree(plait_table *table, plait_error *err) {
    PLI_TRY(pli_job_must_have_ended(table->job, "plait_table_zero", err)); /* alone: others may not have flushed */
    PLI_TRY(pli_job_finish_clock(table->job, err));
    return pli_job_agree(table->job, "a table's zeroing", hash_of(table), check(table, err), err);
}

static plait_status make_room(plait_table *table, int64_t n, plait_error *err) {
    if (pli_grow((void **)&table->zeroed, &table->zeroed_capacity, n, sizeof *table->zeroed)) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory to zero it once more", table->spec.name);
}

static plait_status zero(plait_table *table, plait_error *err) {
    plait_job   *job = table->job;
    plait_status status = make_room(table, table->zeros + 1, err);
    if (status >= 0) table->zeroed[table->zeros++] = plait_job_clock_now(job);
    if (status >= 0) status = table->ops->zero(table, table->zeros, err);
    PLI_TRY(pli_job_agree(job, "a table's zeroing", 0, status, err));
    pli_raise_zero(pli_job_events(job), pli_job_me(job), table->spec.id, plait_job_clock_now(job));
    return PLAIT_OK;
}

plait_status plait_table_zero(plait_table *table) {
    if (table == NULL) return PLAIT_EINVAL;
    plait_job *job = table->job;
    PLI_TRY(pli_job_usable(job, __func__));
    pli_comm_enter(job->comm, "plait_table_zero");
    PLI_TRY(pli_comm_leave(job->comm, agree(table, pli_job_error(job))));
    PLI_TRY(plait_job_barrier(job));
    pli_comm_enter(job->comm, "plait_table_zero");
    return pli_comm_leave(job->comm, zero(table, pli_job_error(job)));
}

/* --- who was away ------------------------------------------------------------------------------------------------- */

static plait_status take_zeros(plait_table *table, int64_t n, const int64_t *clocks, plait_error *err) {
    const plait_job *job = table->job;
    if (n < table->zeros)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: this worker has zeroed it %lld times, others %lld times",
                        table->spec.name, (long long)table->zeros, (long long)n);
    PLI_TRY(make_room(table, n, err));
    for (; table->zeros < n; table->zeros++) {
        table->zeroed[table->zeros] = clocks[table->zeros];
        pli_raise_zero(pli_job_events(job), pli_job_me(job), table->spec.id, clocks[table->zeros]);
    }
    return PLAIT_OK;
}

/* A worker's piece: whether it was in before, then of each table how often it was zeroed, and in which clocks. */
static plait_status lay_out(const plait_job *job, bool came, pli_text *out, plait_error *err) {
    const int64_t was_in = !came;
    pli_text_add_bytes(out, &was_in, sizeof was_in);
    for (int64_t i = 0; i < job->tables; i++) {
        const plait_table *table = job->table[i];
        pli_text_add_bytes(out, &table->zeros, sizeof table->zeros);
        if (table->zeros > 0)
            pli_text_add_bytes(out, table->zeroed, (size_t)table->zeros * sizeof *table->zeroed);
    }
    return out->failed ? pli_fail(err, PLAIT_ENOMEM, "no memory for what a worker that joins is told") : PLAIT_OK;
}

static plait_status take(const plait_job *job, const pli_carried *piece, plait_error *err) {
    const int64_t *at = piece->data, *end = at + piece->bytes / sizeof *at;
    at++;
    for (int64_t i = 0; i < job->tables; i++) {
        if (at == end || *at < 0 || *at > end - at - 1)
            return pli_fail(err, PLAIT_EFORMAT, "what a worker that joins is told is malformed");
        PLI_TRY(take_zeros(job->table[i], *at, at + 1, err));
        at += 1 + *at;
    }
    return PLAIT_OK;
}

/* The lowest of those who were in; NULL: they have all died. */
static const pli_carried *find_knower(const pli_carried *of, int32_t workers) {
    int64_t was_in;
    for (int32_t w = 0; w < workers; w++) {
        if (of[w].data == NULL || of[w].bytes < sizeof was_in) continue;
        memcpy(&was_in, of[w].data, sizeof was_in);
        if (was_in != 0) return &of[w];
    }
    return NULL;
}

plait_status pli_job_tell_zeros(plait_job *job, bool came, plait_error *err) {
    pli_text     mine = { 0 };
    pli_msg     *held = NULL;
    pli_carried *of = pli_calloc((size_t)job->layout.workers, sizeof *of);
    plait_status status = of == NULL ? pli_fail(err, PLAIT_ENOMEM, "no memory for a list of workers") : PLAIT_OK;
    if (status >= 0) status = lay_out(job, came, &mine, err);
    if (status >= 0) status = pli_job_gather(job, mine.data, mine.length, of, &held, err);
    const pli_carried *knower = status >= 0 && came ? find_knower(of, job->layout.workers) : NULL;
    if (knower != NULL) status = take(job, knower, err);
    pli_msg_free(&held);
    pli_text_free(&mine);
    pli_free(of);
    return status;
}
