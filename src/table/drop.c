/* plait_table_drop: all workers meet at a barrier, by which every update has arrived and every get has been answered;
 * then whoever holds rows frees them, and nobody goes on before all have done so. So no message that comes later names
 * the table, and its number is never used again. */
#include "table/events.h"
#include "table/table.h"

static plait_status check(const plait_table *table, plait_error *err) {
    const plait_job *job = table->job;
    const char      *name = table->spec.name;
    if (job->left) return pli_fail(err, PLAIT_EINVAL, "table %s: plait_table_drop after plait_job_leave", name);
    if (job->captures > 0)
        return pli_fail(err, PLAIT_EINVAL, "table %s: plait_table_drop while a checkpoint is taken; end that first",
                        name);
    PLI_TRY(pli_table_check_late(table, err));
    if (table->updated <= plait_job_clock_now(job)) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL,
                    "table %s: plait_table_drop behind an inc of clock %lld; call it before the clock's first inc",
                    name, (long long)plait_job_clock_now(job));
}

static plait_status agree(plait_table *table, plait_error *err) {
    PLI_TRY(pli_job_must_have_ended(table->job, "plait_table_drop", err)); /* others may not have flushed: alone */
    PLI_TRY(pli_job_finish_clock(table->job, err));
    const int64_t what[] = { table->spec.id, plait_job_clock_now(table->job) };
    return pli_job_agree(table->job, "a table's end", pli_hash_bytes(what, sizeof what, 12), check(table, err), err);
}

static plait_status drop(plait_table *table, plait_error *err) {
    plait_job *job = table->job;
    int64_t    left = 0;
    if (table->ops->drop != NULL) PLI_TRY(table->ops->drop(table, err));
    pli_raise_drop(pli_job_events(job), pli_job_me(job), table->spec.id, plait_job_clock_now(job));
    for (int64_t i = 0; i < job->tables; i++)
        if (job->table[i] != table) job->table[left++] = job->table[i];
    job->tables = left;
    table->ops->close(table);
    pli_sheet_free(table->shown);
    pli_free(table->zeroed);
    pli_free(table);
    return PLAIT_OK;
}

plait_status plait_table_drop(plait_table **table_ptr) {
    plait_table *table = table_ptr == NULL ? NULL : *table_ptr;
    if (table == NULL) return PLAIT_OK;
    plait_job *job = table->job;
    PLI_TRY(pli_job_usable(job, __func__));
    pli_comm_enter(job->comm, "plait_table_drop");
    PLI_TRY(pli_comm_leave(job->comm, agree(table, pli_job_error(job))));
    PLI_TRY(plait_job_barrier(job));
    pli_comm_enter(job->comm, "plait_table_drop");
    plait_status status = pli_comm_leave(job->comm, drop(table, pli_job_error(job)));
    if (status >= 0) *table_ptr = NULL;
    return status;
}
