/* The cut of a checkpoint, and how its pieces go to the writer while the run trains on. */
#include <stdio.h>
#include <string.h>

#include "learn/keep/keep_state.h"
#include "learn/keep/row_values.h"

enum { PUMP_BYTES = 1 << 20, BEHIND_MOST = 64 << 20 };

/* --- the cut ------------------------------------------------------------------------------------------------------ */

/* The arrays beside the tables that are the same on every worker: the lead writes them. */
static int32_t kept_of(const pli_run *run, pli_kept kept[PLI_KEPT]) {
    const pli_learner_more *more = run->learner->more;
    const pli_solver_keeps *solver = &run->solver_keeps;
    if (!pli_keep_leads(run->keep)) return 0;
    if (solver->kept != NULL) return solver->kept(solver->state, kept);
    return more != NULL && more->kept != NULL ? more->kept(run, kept) : 0;
}

/* Those of which each worker has one. */
static int32_t own_of(const pli_run *run, pli_kept kept[PLI_KEPT]) {
    const pli_solver_keeps *solver = &run->solver_keeps;
    return solver->own != NULL ? solver->own(solver->state, kept) : 0;
}

static void plan_kept(const pli_run *run, pli_part_plan *plan) {
    pli_kept      kept[2 * PLI_KEPT];
    const int32_t n = kept_of(run, kept), own = own_of(run, kept + n);
    for (int32_t i = 0; i < n + own; i++) {
        char name[PLI_CHECKPOINT_NAME];
        snprintf(name, sizeof name, "%s", kept[i].name);
        if (i >= n) pli_kept_own_name(kept[i].name, plait_comm_rank(run->comm), name);
        pli_part_plan_add(plan, name, "", kept[i].type, 0, kept[i].rows, kept[i].cols, kept[i].rows);
    }
}

static bool put_bytes(void *user, const void *data, int64_t bytes) {
    pli_keep *k = user;
    pli_msg *msg = pli_msg_new((size_t)bytes);
    if (msg == NULL) return false;
    if (bytes > 0) memcpy(pli_msg_body(msg), data, (size_t)bytes);
    k->bytes += bytes;
    pli_writer_put(k->writer, msg);
    return true;
}

static bool put_kept(const pli_run *run) {
    pli_kept      kept[2 * PLI_KEPT];
    const int32_t same = kept_of(run, kept), n = same + own_of(run, kept + same);
    bool          done = true;
    for (int32_t i = 0; done && i < n; i++)
        done = kept[i].data != NULL &&
               put_bytes(run->keep, kept[i].data,
                         kept[i].rows * (kept[i].cols > 0 ? kept[i].cols : 1) * (kept[i].type[1] == '3' ? 4 : 8));
    return done;
}

static void note_stall(pli_keep *k, uint64_t since_ns) {
    uint64_t stall_ns = pli_comm_now(k->run->comm) - since_ns;
    if (stall_ns > k->stall_ns) k->stall_ns = stall_ns;
}

plait_status pli_keep_cut(pli_run *run, int64_t epoch, int64_t clock) {
    pli_keep *k = run->keep;
    pli_total progressive = run->progressive;
    pli_text  meta = { 0 };
    uint64_t  now_ns = pli_comm_now(run->comm);
    k->lead = pli_comm_lead(run->comm);
    k->absent = pli_comm_absent(run->comm);
    k->redo = false;
    k->folder[0] = '\0';
    PLI_TRY(pli_cuts_begin(run->job, k->tables, k->table, &k->cuts, run->err));
    pli_job_resume(run->job);
    PLI_TRY(pli_comm_sum_cells(run->comm, true, PLI_SUMS, progressive.cell));
    pli_writer_start(k->writer);
    if (pli_keep_leads(k)) pli_writer_make_folder(k->writer, run->clocks_done);
    k->clock = run->clocks_done;
    k->bytes = 0;
    k->stall_ns = 0;
    k->begun_ns = now_ns;
    k->finishing = false;
    plan_kept(run, &k->plan);
    pli_row_values_plan(run, &k->plan);
    pli_cuts_plan(k->cuts, &k->plan);
    if (!put_kept(run) || !pli_row_values_put(run, put_bytes, k))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the parts of a checkpoint that are not tables");
    if (pli_keep_leads(k)) PLI_TRY(pli_keep_describe(run, epoch, clock, &progressive, &meta));
    pli_free(k->meta);
    k->meta = meta.data;
    k->phase = PLI_KEEP_CUT;
    k->due_ns = now_ns + (uint64_t)(run->opts->checkpoint_seconds * 1e9);
    note_stall(k, now_ns);
    return PLAIT_OK;
}

/* --- pieces ------------------------------------------------------------------------------------------------------- */

static void take(void *user, pli_msg *rows) {
    pli_keep *k = user;
    k->bytes += (int64_t)rows->head.body_bytes;
    pli_writer_put(k->writer, rows);
}

plait_status pli_keep_pump(pli_keep *k, double budget_ns) {
    const uint64_t since_ns = pli_comm_now(k->run->comm);
    bool           done = false;
    int64_t        before = -1;
    if ((k->phase != PLI_KEEP_CUT && k->phase != PLI_KEEP_TAKEN) || k->finishing) return PLAIT_OK;
    while (!done && !pli_cuts_are_torn(k->cuts) &&
           (budget_ns == 0 || (before != k->bytes && pli_writer_behind(k->writer) < BEHIND_MOST &&
                               (double)(pli_comm_now(k->run->comm) - since_ns) < budget_ns))) {
        before = k->bytes;
        PLI_TRY(pli_cuts_pump(k->cuts, PUMP_BYTES, budget_ns == 0, take, k, &done, k->run->err));
    }
    note_stall(k, since_ns);
    if (!done) return PLAIT_OK;
    pli_cuts_end(&k->cuts);
    pli_writer_finish(k->writer);
    k->finishing = true;
    return PLAIT_OK;
}
