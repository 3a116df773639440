/* Takes a run's checkpoints, step by step: asks, commits, deaths. See keep.h. The cut itself is keep_cut.c's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/keep/keep_state.h"

enum { ASK_EVERY_MOST = 64 };
#define ASK_NS     100000000.0 /* between two asks, as far as clocks allow                                     */
#define PUMP_SHARE 0.1         /* of a clock's time that may go into handing over pieces ...                   */
#define PUMP_LEAST 500000.0    /* ... but at least so many nanoseconds, and at most so many: the worker stands */
#define PUMP_MOST  30000000.0  /* still meanwhile                                                              */

/* The votes of an ask; of each, all workers hear the largest. */
enum { STOP, DUE, FAILED, TORN, FOLDER, PARTS, MANIFEST, CLOCK_NS, VOTES };
_Static_assert((int)VOTES == (int)PLI_KEEP_VOTES, "the votes of an ask");

/* --- options ------------------------------------------------------------------------------------------------------ */

plait_status pli_keep_check(const pli_run *run) {
    const plait_train_opts *o = run->opts;
    if (o->checkpoint == NULL && o->resume == NULL) return PLAIT_OK;
    if (o->checkpoint_clocks >= 0 && o->checkpoint_seconds >= 0 && o->checkpoint_keep >= 1) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EINVAL,
                    "checkpoints every %lld clocks or %g seconds, %d kept: expected numbers above 0",
                    (long long)o->checkpoint_clocks, o->checkpoint_seconds, (int)o->checkpoint_keep);
}

/* --- all parts ---------------------------------------------------------------------------------------------------- */

/* All workers drop the checkpoint, as if it had never begun. If its folder is known only to the dead, the next commit
 * removes it. Collective. */
static plait_status give_up(pli_keep *k) {
    const pli_run *run = k->run;
    pli_writer_drop(k->writer);
    if (k->phase == PLI_KEEP_CUT && pli_keep_leads(k))
        snprintf(k->folder, sizeof k->folder, "%s", pli_writer_folder(k->writer));
    pli_cuts_end(&k->cuts);
    pli_part_plan_free(&k->plan);
    k->phase = PLI_KEEP_IDLE;
    PLI_TRY(plait_comm_barrier(run->comm)); /* nobody writes there any more */
    if (pli_comm_leads(run->comm) && k->folder[0] != '\0')
        (void)pli_checkpoint_discard(run->opts->checkpoint, k->folder, NULL);
    return PLAIT_OK;
}

/* This rank could not write: it says why, and the run goes on without this checkpoint. Collective. */
static plait_status fail_all(pli_keep *k, int32_t rank) {
    pli_run    *run = k->run;
    plait_error own = { 0 };
    const bool  again = k->failed.code < 0; /* the rank has said so before */
    if (pli_writer_status(k->writer, &own) < 0) k->failed = own;
    else pli_fail(&k->failed, PLAIT_EIO, "rank %d failed to write to %s", (int)rank, run->opts->checkpoint);
    pli_fail_at(&k->failed, "the checkpoint of clock %lld could not be written", (long long)k->clock);
    if (rank == plait_comm_rank(run->comm) && !again)
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "learn",
                "%s; the run goes on, and tries the next checkpoint when it is due", k->failed.text);
    return give_up(k);
}

static void tell(pli_keep *k) {
    pli_run *run = k->run;
    k->phase = PLI_KEEP_IDLE;
    k->last = k->clock;
    k->failed = (plait_error){ .rank = -1 };
    if (run->opts->checkpointed == NULL || !pli_comm_leads(run->comm)) return;
    const plait_checkpointed done = { .dir = run->opts->checkpoint,
                                      .folder = k->folder,
                                      .clock = k->clock,
                                      .bytes = pli_checkpoint_bytes(run->opts->checkpoint, k->folder),
                                      .seconds = (double)(pli_comm_now(run->comm) - k->begun_ns) * 1e-9,
                                      .stall_seconds = (double)k->stall_ns * 1e-9 };
    run->opts->checkpointed(run->opts->user, &done);
}

/* --- deaths ------------------------------------------------------------------------------------------------------- */

/* A worker has died, and its part is missing: another checkpoint begins at once. Collective. */
static plait_status drop(pli_keep *k) {
    const pli_run *run = k->run;
    k->redo = true;
    PLI_TRY(give_up(k));
    if (pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn",
                "the checkpoint of clock %lld is given up, since ranks have died, come or gone meanwhile; another "
                "follows",
                (long long)k->clock);
    return PLAIT_OK;
}

static bool is_complete(const char *dir, const char *folder) {
    pli_checkpoint_list list = { 0 };
    bool                complete = false;
    if (pli_checkpoint_list_read(dir, &list, NULL) < 0) return false;
    for (int64_t i = 0; i < list.n; i++)
        complete =
            complete || (list.entry[i].state == PLI_CHECKPOINT_COMPLETE && strcmp(list.entry[i].folder, folder) == 0);
    pli_checkpoint_list_free(&list);
    return complete && pli_sync_directory(dir, NULL) >= 0;
}

/* The lead has died while it wrote the manifest. The new lead looks whether it is there. Collective. */
static plait_status look_for_manifest(pli_keep *k, bool *there_out) {
    pli_run *run = k->run;
    int32_t  absent = pli_comm_absent(run->comm);
    do {
        *there_out = pli_comm_leads(run->comm) && is_complete(run->opts->checkpoint, k->folder);
        PLI_TRY(plait_comm_broadcast(run->comm, there_out, sizeof *there_out, pli_comm_lead(run->comm)));
    } while (pli_run_again(run, &absent));
    return PLAIT_OK;
}

/* If a worker has died since the cut (all have heard of it by the last collective), its part is missing, and the whole
 * checkpoint is dropped. Once all parts are there, only the death of the lead counts: then the checkpoint is complete
 * if its manifest is there. Afterwards the phase may be PLI_KEEP_IDLE. Collective. */
static plait_status see_deaths(pli_keep *k) {
    const pli_run *run = k->run;
    bool           there = false;
    if (k->phase == PLI_KEEP_IDLE || pli_comm_absent(run->comm) == k->absent) return PLAIT_OK;
    if (k->phase != PLI_KEEP_COMMITTING) return drop(k);
    if (k->lead == pli_comm_lead(run->comm)) return PLAIT_OK;
    PLI_TRY(look_for_manifest(k, &there));
    if (!there) return drop(k);
    tell(k);
    return PLAIT_OK;
}

/* --- steps: collective; each may find that somebody has died ----------------------------------------------------- */

/* The lead has made the folder: it tells all its name, and they begin their parts there. */
static plait_status name_folder(pli_keep *k) {
    pli_run *run = k->run;
    int32_t  place, living;
    if (pli_keep_leads(k)) snprintf(k->folder, sizeof k->folder, "%s", pli_writer_folder(k->writer));
    PLI_TRY(plait_comm_broadcast(run->comm, k->folder, sizeof k->folder, k->lead));
    PLI_TRY(see_deaths(k));
    if (k->phase == PLI_KEEP_IDLE) return PLAIT_OK;
    pli_comm_living(run->comm, &place, &living);
    pli_writer_begin(k->writer, k->folder, place, living, &k->plan);
    k->phase = PLI_KEEP_TAKEN;
    return PLAIT_OK;
}

static plait_status commit(pli_keep *k) {
    const pli_run *run = k->run;
    bool           whole;
    PLI_TRY(pli_writer_commit(k->writer, run->comm, k->absent, &k->meta, run->opts->checkpoint_keep, &whole, run->err));
    if (!whole) return see_deaths(k);
    k->phase = PLI_KEEP_COMMITTING;
    return PLAIT_OK;
}

/* --- asks --------------------------------------------------------------------------------------------------------- */

/* The vote of a worker whose writer has failed: its rank + 1; else 0. */
static double failed_rank(pli_keep *k) {
    return k->phase != PLI_KEEP_IDLE && pli_writer_status(k->writer, NULL) < 0 ? 1 + plait_comm_rank(k->run->comm) : 0;
}

/* Can this worker no longer take its part? Then all drop the checkpoint, as after a death. */
static double is_torn(const pli_keep *k) { return k->cuts != NULL && pli_cuts_are_torn(k->cuts); }

static void see_written(pli_keep *k) {
    if (k->phase == PLI_KEEP_TAKEN && k->finishing && pli_writer_is_done(k->writer, false)) k->phase = PLI_KEEP_WRITTEN;
}

static plait_status ask(pli_keep *k) {
    pli_run     *run = k->run;
    const bool   leading = pli_comm_leads(run->comm), by_time = run->opts->checkpoint_clocks == 0;
    uint64_t     now_ns = pli_comm_now(run->comm);
    const double clocks = (double)(run->clocks_done - k->asked_clock);
    see_written(k);
    k->asked_lead = pli_comm_lead(run->comm);
    k->vote[STOP] = pli_run_stopped(run);
    k->vote[DUE] = by_time && k->phase == PLI_KEEP_IDLE && now_ns >= k->due_ns;
    k->vote[FAILED] = failed_rank(k);
    k->vote[TORN] = is_torn(k);
    k->vote[FOLDER] = leading && !(k->phase == PLI_KEEP_CUT && pli_writer_folder_is_made(k->writer));
    k->vote[PARTS] = k->phase != PLI_KEEP_WRITTEN;
    k->vote[MANIFEST] = leading && !(k->phase == PLI_KEEP_COMMITTING && pli_writer_is_done(k->writer, false));
    k->vote[CLOCK_NS] = clocks > 0 ? (double)(now_ns - k->asked_ns) / clocks : 0;
    k->asked_ns = now_ns;
    k->asked_clock = run->clocks_done;
    return plait_comm_allreduce_begin(run->comm, k->vote, VOTES, PLAIT_F64, PLAIT_MAX, &k->asked);
}

/* Hears what all have voted: the same on each worker, at the same clock. */
static plait_status hear(pli_keep *k, bool *stop_out, bool *due_out) {
    if (k->asked == NULL) return PLAIT_OK;
    PLI_TRY(plait_request_wait(&k->asked));
    k->clock_ns = k->vote[CLOCK_NS];
    *stop_out = k->vote[STOP] > 0;
    if (k->vote[FAILED] > 0) return fail_all(k, (int32_t)k->vote[FAILED] - 1);
    const bool   due = k->vote[DUE] > 0 && k->phase == PLI_KEEP_IDLE;
    const bool   led = k->asked_lead == pli_comm_lead(k->run->comm);
    plait_status status = k->vote[TORN] > 0 ? drop(k) : see_deaths(k);
    if (status >= 0 && k->phase == PLI_KEEP_COMMITTING && k->vote[MANIFEST] == 0 && led)
        tell(k);
    else if (status >= 0 && k->phase == PLI_KEEP_WRITTEN && k->vote[PARTS] == 0)
        status = commit(k);
    else if (status >= 0 && k->phase == PLI_KEEP_CUT && k->vote[FOLDER] == 0 && led)
        status = name_folder(k);
    *due_out = due || k->redo;
    return status;
}

/* In how many clocks the next ask comes: the same on all, since all have heard of the same slowest worker. */
static int64_t until_next(const pli_keep *k) {
    const double clocks = k->clock_ns > 0 ? ASK_NS / k->clock_ns : 1;
    return clocks > ASK_EVERY_MOST ? ASK_EVERY_MOST : clocks > 1 ? (int64_t)clocks : 1;
}

/* Waits until the writers of all workers have done what they were asked for. Collective. */
static plait_status wait_for_writers(pli_keep *k) {
    (void)pli_writer_is_done(k->writer, true);
    double worst[2] = { failed_rank(k), is_torn(k) };
    PLI_TRY(plait_comm_allreduce(k->run->comm, worst, 2, PLAIT_F64, PLAIT_MAX));
    if (worst[0] > 0) return fail_all(k, (int32_t)worst[0] - 1);
    return worst[1] > 0 ? drop(k) : see_deaths(k);
}

/* Completes the checkpoint at hand, whatever it waits for, unless somebody dies. Collective, at the same clock. */
static plait_status settle(pli_keep *k) {
    bool stop = false, due = false;
    PLI_TRY(hear(k, &stop, &due));
    if (k->phase == PLI_KEEP_CUT) {
        PLI_TRY(wait_for_writers(k));
        if (k->phase == PLI_KEEP_CUT) PLI_TRY(name_folder(k));
    }
    if (k->phase == PLI_KEEP_TAKEN || k->phase == PLI_KEEP_WRITTEN) {
        PLI_TRY(pli_keep_pump(k, 0));
        PLI_TRY(wait_for_writers(k));
        if (k->phase != PLI_KEEP_IDLE) PLI_TRY(commit(k));
    }
    if (k->phase == PLI_KEEP_IDLE) return PLAIT_OK;
    PLI_TRY(wait_for_writers(k));
    if (k->phase != PLI_KEEP_IDLE) tell(k);
    return PLAIT_OK;
}

/* Takes and completes a checkpoint of this very clock, unless it cannot be written. */
static plait_status keep_now(pli_run *run, int64_t epoch, int64_t clock) {
    pli_keep *k = run->keep;
    PLI_TRY(settle(k));
    k->redo = k->last != run->clocks_done;
    while (k->redo) { /* again each time somebody has died */
        PLI_TRY(pli_keep_cut(run, epoch, clock));
        PLI_TRY(settle(k));
    }
    return PLAIT_OK;
}

plait_status pli_keep_clock(pli_run *run, int64_t epoch, int64_t clock, bool *stop_out) {
    pli_keep *k = run->keep;
    bool      stop = false, due = false;
    *stop_out = false;
    if (k->phase == PLI_KEEP_CUT || k->phase == PLI_KEEP_TAKEN) {
        const double share = PUMP_SHARE * k->clock_ns;
        PLI_TRY(pli_keep_pump(k, share < PUMP_LEAST ? PUMP_LEAST : share > PUMP_MOST ? PUMP_MOST : share));
    }
    const int64_t every = run->opts->checkpoint_clocks;
    const bool    counted = every > 0 && run->clocks_done / every > k->seen_clock / every;
    k->seen_clock = run->clocks_done;
    if (run->clocks_done >= k->next_ask) {
        PLI_TRY(hear(k, &stop, &due));
        if (!stop) PLI_TRY(ask(k));
        if (!stop && !run->paced) PLI_TRY(hear(k, &stop, &due));
        k->next_ask = run->clocks_done + until_next(k);
    }
    *stop_out = stop;
    if (stop) return keep_now(run, epoch, clock);
    if (counted) PLI_TRY(settle(k));
    return counted || due ? pli_keep_cut(run, epoch, clock) : PLAIT_OK;
}

plait_status pli_keep_epoch(pli_run *run, int64_t epoch, bool *stop_out) {
    return run->keep != NULL ? pli_keep_clock(run, epoch, 0, stop_out) : pli_run_hear(run, stop_out);
}

/* --- workers come and go ------------------------------------------------------------------------------------------ */

void pli_keep_tell(const pli_run *run, pli_keep_note *note_out) {
    const pli_keep *k = run->keep;
    if (k == NULL) return;
    *note_out = (pli_keep_note){ .phase = k->phase,
                                 .lead = k->lead,
                                 .absent = k->absent,
                                 .redo = k->redo,
                                 .next_ask = k->next_ask,
                                 .seen_clock = k->seen_clock,
                                 .clock = k->clock,
                                 .last = k->last,
                                 .due_in_ns = (int64_t)(k->due_ns - pli_comm_now(run->comm)),
                                 .clock_ns = k->clock_ns };
    snprintf(note_out->folder, sizeof note_out->folder, "%s", k->folder);
}

void pli_keep_take(pli_run *run, const pli_keep_note *note) {
    pli_keep *k = run->keep;
    if (k == NULL) return;
    k->phase = (pli_keep_phase)note->phase;
    k->lead = (int32_t)note->lead;
    k->absent = (int32_t)note->absent;
    k->redo = note->redo != 0;
    k->next_ask = note->next_ask;
    k->seen_clock = note->seen_clock;
    k->clock = note->clock;
    k->last = note->last;
    k->clock_ns = note->clock_ns;
    k->asked_ns = pli_comm_now(run->comm);
    k->asked_clock = run->clocks_done;
    k->due_ns = k->asked_ns + (uint64_t)note->due_in_ns;
    snprintf(k->folder, sizeof k->folder, "%s", note->folder);
}

void pli_keep_leave(pli_run *run) {
    pli_keep *k = run->keep;
    if (k == NULL || k->phase == PLI_KEEP_IDLE) return;
    if (k->phase == PLI_KEEP_COMMITTING) (void)pli_writer_is_done(k->writer, true);
    pli_writer_drop(k->writer);
    pli_cuts_end(&k->cuts);
    pli_part_plan_free(&k->plan);
    k->phase = PLI_KEEP_IDLE;
}

/* The lead may have left, and another may lead now, so all hear whether the manifest is there. */
plait_status pli_keep_part(pli_run *run) {
    pli_keep *k = run->keep;
    bool      there = false;
    if (k == NULL || k->phase == PLI_KEEP_IDLE) return PLAIT_OK;
    if (k->phase != PLI_KEEP_COMMITTING) return drop(k);
    PLI_TRY(wait_for_writers(k));
    if (k->phase == PLI_KEEP_IDLE) return PLAIT_OK;
    PLI_TRY(look_for_manifest(k, &there));
    if (!there) return drop(k);
    tell(k);
    return PLAIT_OK;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

void pli_keep_tables(pli_run *run) {
    if (run->keep == NULL) return;
    run->keep->tables = run->n_made;
    memcpy(run->keep->table, run->made, sizeof run->keep->table);
}

plait_status pli_keep_begin(pli_run *run) {
    if (run->opts->checkpoint == NULL) return PLAIT_OK;
    pli_keep *k = run->keep = pli_calloc(1, sizeof *k);
    if (k == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for checkpoints");
    k->run = run;
    pli_keep_tables(run);
    k->last = run->resume != NULL && run->opts->resume != NULL && strcmp(run->opts->resume, run->opts->checkpoint) == 0
                  ? run->clocks_done
                  : -1;
    k->asked_ns = pli_comm_now(run->comm);
    k->asked_clock = k->seen_clock = run->clocks_done;
    k->due_ns = k->asked_ns + (uint64_t)(run->opts->checkpoint_seconds * 1e9);
    return pli_writer_open(run->opts->checkpoint, !pli_comm_charges(run->comm), &k->writer, run->err);
}

plait_status pli_keep_settle(pli_run *run) { return run->keep != NULL ? settle(run->keep) : PLAIT_OK; }

int64_t pli_keep_last(const pli_run *run, plait_error *failed_out) {
    *failed_out = run->keep != NULL ? run->keep->failed : (plait_error){ .rank = -1 };
    return run->keep != NULL ? run->keep->last : -1;
}

void pli_keep_end(pli_run *run) {
    pli_keep *k = run->keep;
    run->keep = NULL;
    if (k == NULL) return;
    pli_comm_drop(&k->asked);
    pli_cuts_end(&k->cuts);
    pli_writer_close(&k->writer);
    pli_part_plan_free(&k->plan);
    pli_free(k->meta);
    pli_free(k);
}
