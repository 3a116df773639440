/* Takes a run's checkpoints. See keep.h. */
#include "learn/keep/keep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/keep/kept_tables.h"
#include "learn/keep/row_values.h"
#include "table/table.h"

enum { ASK_EVERY_MOST = 64, PUMP_BYTES = 1 << 20, BEHIND_MOST = 64 << 20 };
#define ASK_NS     100000000.0 /* between two asks, as far as clocks allow                                     */
#define PUMP_SHARE 0.1         /* of a clock's time that may go into handing over pieces ...                   */
#define PUMP_LEAST 500000.0    /* ... but at least so many nanoseconds, and at most so many: the worker stands */
#define PUMP_MOST  30000000.0  /* still meanwhile                                                              */

/* How far the checkpoint at hand is. */
typedef enum phase {
    IDLE,
    CUT,       /* pieces go to the writer; the lead makes the folder             */
    TAKEN,     /* the folder is there                                            */
    WRITTEN,   /* this worker's part is complete                                 */
    COMMITTING /* all parts are; the lead writes the manifest                    */
} phase;

/* The votes of an ask; of each, all workers hear the largest. */
enum { STOP, DUE, FAILED, TORN, FOLDER, PARTS, MANIFEST, CLOCK_NS, VOTES };

struct pli_keep {
    pli_run      *run;
    plait_table  *table[PLI_TABLES];
    int32_t       tables;
    pli_writer   *writer;
    pli_capture  *capture;
    phase         phase;
    bool          finishing; /* the writer was told that no more comes */
    int32_t       lead, absent;                  /* who led at the cut, and how many were missing (see_deaths) */
    bool          redo;                          /* a checkpoint was dropped: the next is due now */
    plait_error   failed;                        /* why the last one that was due failed; code 0: it did not */
    char          folder[PLI_CHECKPOINT_FOLDER]; /* from TAKEN on */
    char         *meta;               /* the lead's, from the cut to the commit */
    pli_part_plan plan;               /* from the cut until there is a folder   */
    int64_t       clock, bytes, last; /* of the checkpoint at hand; last: the last complete one's clock, -1: none */
    uint64_t      begun_ns, due_ns, stall_ns;
    /* asks */
    double         vote[VOTES]; /* lent to the ask while asked is not NULL */
    plait_request *asked;
    int32_t        asked_lead; /* who led then: a new lead has not voted as the lead */
    int64_t        next_ask, asked_clock;
    uint64_t       asked_ns;
    double         clock_ns; /* a clock of the slowest worker, as last heard */
};

/* --- options ------------------------------------------------------------------------------------------------------ */

plait_status pli_keep_check(const pli_run *run) {
    const plait_train_opts *o = run->opts;
    if (o->checkpoint == NULL && o->resume == NULL) return PLAIT_OK;
    if (o->checkpoint_clocks >= 0 && o->checkpoint_seconds >= 0 && o->checkpoint_keep >= 1) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EINVAL,
                    "checkpoints every %lld clocks or %g seconds, %d kept: expected numbers above 0",
                    (long long)o->checkpoint_clocks, o->checkpoint_seconds, (int)o->checkpoint_keep);
}

/* --- what a checkpoint says of its run --------------------------------------------------------------------------- */

plait_status pli_keep_options(const pli_run *run, pli_text *text) {
    const plait_train_opts *o = run->opts;
    const char             *schedule = run->schedule != NULL ? run->schedule : "constant";
    pli_text_add(text,
                 "data of %" PRId64 " rows in %d blocks\ndata of %" PRId64 " features, %" PRId64
                 " of them given, %" PRId64 " classes\n",
                 run->rows, (int)pli_dataset_blocks(run->data), run->features, run->entries,
                 run->classes);
    if (run->stream) pli_text_add(text, "data streamed\n");
    pli_text_add(text, "--model %s\n--optimizer %s\n--reduce %s\n--consistency %s\n", o->model, run->optimizer,
                 run->exact ? "exact" : "plain", run->consistency);
    for (int32_t i = 0; i < run->n_tables; i++)
        if (strcmp(run->table[i].consistency, run->consistency) != 0)
            pli_text_add(text, "--table %s:consistency=%s\n", run->table[i].name, run->table[i].consistency);
    pli_text_add(text, "--tolerance %.17g\n", o->tolerance);
    pli_text_add(text, "--batch %" PRId64 "\n--learning-rate %.17g\n--schedule %s\n--momentum %.17g\n", run->batch,
                 run->rate, schedule, o->momentum);
    if (strcmp(schedule, "cosine") == 0) pli_text_add(text, "--epochs %" PRId64 "\n", run->epochs);
    pli_text_add(text, "--l1 %.17g\n--l2 %.17g\n--no-intercept %d\n--huber-delta %.17g\n--quantile %.17g\n", run->l1,
                 run->l2, o->no_intercept != 0, o->huber_delta, o->quantile);
    pli_text_add(text, "--class-weight %s\n", o->class_weight != NULL ? o->class_weight : "none");
    pli_text_add(text, "--normalize %s\n--seed %" PRIu64 "\n--validation %s\n--backup %d\n--staleness-aware %d\n",
                 o->normalize != NULL ? o->normalize : "auto", o->seed, o->validation != NULL ? o->validation : "none",
                 (int)o->backup, o->staleness_aware != 0);
    if (o->filter != NULL) pli_text_add(text, "--filter %s\n", o->filter);
    if (run->learner->more != NULL && run->learner->more->options != NULL) run->learner->more->options(run, text);
    pli_run_add_settings(run, text);
    return text->failed ? pli_fail(run->err, PLAIT_ENOMEM, "no memory to describe a run") : PLAIT_OK;
}

/* Sums are written as cells: their bits do not depend on who had which rows, and the resumed run adds to them exactly.
 */
static plait_status describe(const pli_run *run, int64_t epoch, int64_t clock, const pli_total *progressive,
                             pli_text *text) {
    const pli_keep   *k = run->keep;
    pli_text          options = { 0 };
    plait_status      status = pli_keep_options(run, &options);
    const plait_comm *comm = run->comm;
    char              words[PLI_SUMS * 4 * 16 + 1] = "";
    for (int32_t i = 0; i < PLI_SUMS * 4; i++)
        snprintf(words + 16 * i, 17, "%016" PRIx64, progressive->cell[i / 4][i % 4]);
    pli_json_begin(text);
    pli_json_text(text, "kind", "train");
    pli_json_i64(text, "version", 1);
    pli_json_i64(text, "clock", run->clocks_done);
    pli_json_i64(text, "epoch", epoch);
    pli_json_i64(text, "epoch_clock", clock + 1);
    pli_json_i64(text, "epochs_done", run->epochs_done);
    pli_json_i64(text, "workers", plait_comm_workers(comm));
    pli_json_text(text, "topology", run->topology);
    pli_json_text(text, "transport", plait_comm_transport(comm));
    pli_json_i64(text, "layout", run->layout);
    pli_json_f64(text, "best_loss", run->best_loss);
    pli_json_f64(text, "validation_loss", run->validation_loss);
    pli_json_f64(text, "validation_accuracy", run->validation_accuracy);
    pli_json_i64(text, "best_epoch", run->best_epoch);
    pli_kept_units(k->capture, k->table, k->tables, text);
    pli_json_text(text, "progressive", words);
    pli_json_text(text, "options", status == PLAIT_OK ? options.data : NULL);
    pli_json_end(text);
    pli_text_free(&options);
    if (status == PLAIT_OK && text->failed) status = pli_fail(run->err, PLAIT_ENOMEM, "no memory to describe a run");
    return status;
}

/* --- the cut ------------------------------------------------------------------------------------------------------ */

static bool leads(const pli_keep *k) { return plait_comm_rank(k->run->comm) == k->lead; }

/* The arrays that the learner keeps beside its tables are the same on every worker, so the lead writes them. */
static int32_t kept_of(const pli_run *run, pli_kept kept[PLI_KEPT]) {
    const pli_learner_more *more = run->learner->more;
    return leads(run->keep) && more != NULL && more->kept != NULL ? more->kept(run, kept) : 0;
}

static void plan_kept(const pli_run *run, pli_part_plan *plan) {
    pli_kept      kept[PLI_KEPT];
    const int32_t n = kept_of(run, kept);
    for (int32_t i = 0; i < n; i++)
        pli_part_plan_add(plan, kept[i].name, "", kept[i].type, 0, kept[i].rows, kept[i].cols, kept[i].rows);
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
    pli_kept      kept[PLI_KEPT];
    const int32_t n = kept_of(run, kept);
    bool          done = true;
    for (int32_t i = 0; done && i < n; i++)
        done = put_bytes(run->keep, kept[i].data,
                         kept[i].rows * (kept[i].cols > 0 ? kept[i].cols : 1) * (kept[i].type[1] == '3' ? 4 : 8));
    return done;
}

static void note_stall(pli_keep *k, uint64_t since_ns) {
    uint64_t stall_ns = pli_comm_now(k->run->comm) - since_ns;
    if (stall_ns > k->stall_ns) k->stall_ns = stall_ns;
}

/* An error of the writer is heard at the next ask, since the other workers go on to it. */
static plait_status begin(pli_run *run, int64_t epoch, int64_t clock) {
    pli_keep *k = run->keep;
    pli_total progressive = run->progressive;
    pli_text  meta = { 0 };
    uint64_t  now_ns = pli_comm_now(run->comm);
    k->lead = pli_comm_lead(run->comm);
    k->absent = pli_comm_absent(run->comm);
    k->redo = false;
    k->folder[0] = '\0';
    PLI_TRY(pli_capture_begin(run->job, k->tables, k->table, &k->capture, run->err));
    pli_job_resume(run->job);
    PLI_TRY(pli_comm_sum_cells(run->comm, true, PLI_SUMS, progressive.cell));
    pli_writer_start(k->writer);
    if (leads(k)) pli_writer_make_folder(k->writer, run->clocks_done);
    k->clock = run->clocks_done;
    k->bytes = 0;
    k->stall_ns = 0;
    k->begun_ns = now_ns;
    k->finishing = false;
    plan_kept(run, &k->plan);
    pli_row_values_plan(run, &k->plan);
    pli_kept_plan(k->capture, k->table, &k->plan);
    if (!put_kept(run) || !pli_row_values_put(run, put_bytes, k))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the parts of a checkpoint that are not tables");
    if (leads(k)) PLI_TRY(describe(run, epoch, clock, &progressive, &meta));
    pli_free(k->meta);
    k->meta = meta.data;
    k->phase = CUT;
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

/* Hands pieces to the writer for at most budget_ns; budget_ns 0: until all are handed over. */
static plait_status pump(pli_keep *k, double budget_ns) {
    const uint64_t since_ns = pli_comm_now(k->run->comm);
    bool           done = false;
    int64_t        before = -1;
    if ((k->phase != CUT && k->phase != TAKEN) || k->finishing) return PLAIT_OK;
    while (!done && !pli_capture_is_torn(k->capture) &&
           (budget_ns == 0 || (before != k->bytes && pli_writer_behind(k->writer) < BEHIND_MOST &&
                               (double)(pli_comm_now(k->run->comm) - since_ns) < budget_ns))) {
        before = k->bytes;
        PLI_TRY(pli_capture_pump(k->capture, PUMP_BYTES, budget_ns == 0, take, k, &done, k->run->err));
    }
    note_stall(k, since_ns);
    if (!done) return PLAIT_OK;
    pli_capture_end(&k->capture);
    pli_writer_finish(k->writer);
    k->finishing = true;
    return PLAIT_OK;
}

/* --- all parts ---------------------------------------------------------------------------------------------------- */

/* All workers drop the checkpoint, as if it had never begun. If its folder is known only to the dead, the next commit
 * removes it. Collective. */
static plait_status give_up(pli_keep *k) {
    const pli_run *run = k->run;
    pli_writer_drop(k->writer);
    if (k->phase == CUT && leads(k)) snprintf(k->folder, sizeof k->folder, "%s", pli_writer_folder(k->writer));
    pli_capture_end(&k->capture);
    pli_part_plan_free(&k->plan);
    k->phase = IDLE;
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
    k->phase = IDLE;
    k->last = k->clock;
    k->failed = (plait_error){ .rank = -1 };
    if (run->opts->checkpointed == NULL || !pli_comm_leads(run->comm)) return;
    const plait_checkpointed done = { .dir = run->opts->checkpoint,
                                      .folder = k->folder,
                                      .clock = k->clock,
                                      .bytes = k->bytes,
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
                "the checkpoint of clock %lld is given up, since a rank has died meanwhile; another follows",
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
 * if its manifest is there. Afterwards the phase may be IDLE. Collective. */
static plait_status see_deaths(pli_keep *k) {
    const pli_run *run = k->run;
    bool           there = false;
    if (k->phase == IDLE || pli_comm_absent(run->comm) == k->absent) return PLAIT_OK;
    if (k->phase != COMMITTING) return drop(k);
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
    if (leads(k)) snprintf(k->folder, sizeof k->folder, "%s", pli_writer_folder(k->writer));
    PLI_TRY(plait_comm_broadcast(run->comm, k->folder, sizeof k->folder, k->lead));
    PLI_TRY(see_deaths(k));
    if (k->phase == IDLE) return PLAIT_OK;
    pli_comm_living(run->comm, &place, &living);
    pli_writer_begin(k->writer, k->folder, place, living, &k->plan);
    k->phase = TAKEN;
    return PLAIT_OK;
}

static plait_status commit(pli_keep *k) {
    const pli_run *run = k->run;
    bool           whole;
    PLI_TRY(pli_writer_commit(k->writer, run->comm, k->absent, &k->meta, run->opts->checkpoint_keep, &whole, run->err));
    if (!whole) return see_deaths(k);
    k->phase = COMMITTING;
    return PLAIT_OK;
}

/* --- asks --------------------------------------------------------------------------------------------------------- */

/* The vote of a worker whose writer has failed: its rank + 1; else 0. */
static double failed_rank(pli_keep *k) {
    return k->phase != IDLE && pli_writer_status(k->writer, NULL) < 0 ? 1 + plait_comm_rank(k->run->comm) : 0;
}

/* Can this worker no longer take its part? Then all drop the checkpoint, as after a death. */
static double is_torn(const pli_keep *k) { return k->capture != NULL && pli_capture_is_torn(k->capture); }

static void see_written(pli_keep *k) {
    if (k->phase == TAKEN && k->finishing && pli_writer_is_done(k->writer, false)) k->phase = WRITTEN;
}

static plait_status ask(pli_keep *k) {
    pli_run     *run = k->run;
    const bool   leading = pli_comm_leads(run->comm), by_time = run->opts->checkpoint_clocks == 0;
    uint64_t     now_ns = pli_comm_now(run->comm);
    const double clocks = (double)(run->clocks_done - k->asked_clock);
    see_written(k);
    k->asked_lead = pli_comm_lead(run->comm);
    k->vote[STOP] = pli_run_stopped(run);
    k->vote[DUE] = by_time && k->phase == IDLE && now_ns >= k->due_ns;
    k->vote[FAILED] = failed_rank(k);
    k->vote[TORN] = is_torn(k);
    k->vote[FOLDER] = leading && !(k->phase == CUT && pli_writer_folder_is_made(k->writer));
    k->vote[PARTS] = k->phase != WRITTEN;
    k->vote[MANIFEST] = leading && !(k->phase == COMMITTING && pli_writer_is_done(k->writer, false));
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
    const bool   due = k->vote[DUE] > 0 && k->phase == IDLE, led = k->asked_lead == pli_comm_lead(k->run->comm);
    plait_status status = k->vote[TORN] > 0 ? drop(k) : see_deaths(k);
    if (status >= 0 && k->phase == COMMITTING && k->vote[MANIFEST] == 0 && led)
        tell(k);
    else if (status >= 0 && k->phase == WRITTEN && k->vote[PARTS] == 0)
        status = commit(k);
    else if (status >= 0 && k->phase == CUT && k->vote[FOLDER] == 0 && led)
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
    if (k->phase == CUT) {
        PLI_TRY(wait_for_writers(k));
        if (k->phase == CUT) PLI_TRY(name_folder(k));
    }
    if (k->phase == TAKEN || k->phase == WRITTEN) {
        PLI_TRY(pump(k, 0));
        PLI_TRY(wait_for_writers(k));
        if (k->phase != IDLE) PLI_TRY(commit(k));
    }
    if (k->phase == IDLE) return PLAIT_OK;
    PLI_TRY(wait_for_writers(k));
    if (k->phase != IDLE) tell(k);
    return PLAIT_OK;
}

/* Takes and completes a checkpoint of this very clock, unless it cannot be written. */
static plait_status keep_now(pli_run *run, int64_t epoch, int64_t clock) {
    pli_keep *k = run->keep;
    PLI_TRY(settle(k));
    k->redo = k->last != run->clocks_done;
    while (k->redo) { /* again each time somebody has died */
        PLI_TRY(begin(run, epoch, clock));
        PLI_TRY(settle(k));
    }
    return PLAIT_OK;
}

plait_status pli_keep_clock(pli_run *run, int64_t epoch, int64_t clock, bool *stop_out) {
    pli_keep *k = run->keep;
    bool      stop = false, due = false;
    *stop_out = false;
    if (k->phase == CUT || k->phase == TAKEN) {
        const double share = PUMP_SHARE * k->clock_ns;
        PLI_TRY(pump(k, share < PUMP_LEAST ? PUMP_LEAST : share > PUMP_MOST ? PUMP_MOST : share));
    }
    const bool counted = run->opts->checkpoint_clocks > 0 && run->clocks_done % run->opts->checkpoint_clocks == 0;
    if (run->clocks_done >= k->next_ask) {
        PLI_TRY(hear(k, &stop, &due));
        if (!stop) PLI_TRY(ask(k));
        if (!stop && !run->paced) PLI_TRY(hear(k, &stop, &due));
        k->next_ask = run->clocks_done + until_next(k);
    }
    *stop_out = stop;
    if (stop) return keep_now(run, epoch, clock);
    if (counted) PLI_TRY(settle(k));
    return counted || due ? begin(run, epoch, clock) : PLAIT_OK;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

plait_status pli_keep_begin(pli_run *run) {
    if (run->opts->checkpoint == NULL) return PLAIT_OK;
    pli_keep *k = run->keep = pli_calloc(1, sizeof *k);
    if (k == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for checkpoints");
    k->run = run;
    k->tables = run->n_made;
    memcpy(k->table, run->made, sizeof k->table);
    k->last = run->resume != NULL && run->opts->resume != NULL && strcmp(run->opts->resume, run->opts->checkpoint) == 0
                  ? run->clocks_done
                  : -1;
    k->asked_ns = pli_comm_now(run->comm);
    k->asked_clock = run->clocks_done;
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
    pli_capture_end(&k->capture);
    pli_writer_close(&k->writer);
    pli_part_plan_free(&k->plan);
    pli_free(k->meta);
    pli_free(k);
}
