/* The loop over batches. See loop.h. */
#include "learn/solve/loop.h"

#include <math.h>
#include <string.h>

#include "learn/keep/keep.h"
#include "learn/solve/settled.h"
#include "learn/solve/turnover.h"
#include "table/table.h"

/* Does the step itself parse the rows of a stream? With replicas it may get the rest of a dead worker's blocks, too. */
static bool step_parses(const pli_loop *loop) {
    return loop->steps->parses && loop->run->stream && loop->heir.part == NULL;
}

/* --- spares in step ------------------------------------------------------------------------------------------ */

/* A spare computes nothing, so it would end all its clocks at once, and have none left in which to take over, unless
 * some read waits for the others. Under a policy that bounds no read (async, vap, downpour) this one does: of a table
 * that nobody writes, under a policy that bounds reads. Only spares without rows read it, so nobody else waits. */
static plait_status make_pace(pli_loop *loop) {
    const pli_run   *run = loop->run;
    const pli_scope  scope = pli_layout_scope(&run->job->layout);
    bool             bounded = true;
    plait_table_opts t;
    for (int32_t i = 0; i < run->n_made; i++)
        bounded = bounded && (pli_promises_of(run->made[i]->spec.consistency, &scope) & PLAIT_BOUNDED_READS) != 0;
    if (run->opts->spares == 0 || bounded) return PLAIT_OK;
    plait_table_opts_init(&t);
    t.name = "pace";
    t.rows = 1;
    t.topology = "ps";
    t.consistency = "ssp:1";
    t.filter = "";
    return plait_table_create(run->job, &t, &loop->pace);
}

static plait_status keep_pace(const pli_loop *loop) {
    const void *ignored;
    if (loop->pace == NULL || !pli_run_is_spare(loop->run) || !pli_run_takes_rows(loop->run)) return PLAIT_OK;
    return plait_table_read(loop->pace, 0, 1, &ignored);
}

/* --- a clock ------------------------------------------------------------------------------------------------- */

/* Prepares the batch of a clock, before the clock begins; inherited: the batch of the workers that died in it. */
static plait_status fetch(pli_loop *loop, int64_t epoch, int64_t clock, bool inherited) {
    pli_run   *run = loop->run;
    pli_batch *batch = &loop->batch;
    uint64_t   at = pli_comm_span_begin(run->comm);
    if (loop->leases) PLI_TRY(pli_balance_batch(&loop->balance, epoch, clock, inherited, batch));
    else if (loop->heir.part != NULL) PLI_TRY(pli_heir_batch(&loop->heir, epoch, clock, inherited, batch));
    else PLI_TRY(pli_batches_get(loop->batches, epoch, clock, batch, run->err));
    if (run->stream) pli_run_charge_parsed(run, batch);
    if (batch->rows > 0 && loop->steps->fetched != NULL) PLI_TRY(loop->steps->fetched(run, batch));
    pli_run_step(run, "fetch", &at);
    loop->fetched = true;
    return PLAIT_OK;
}

static plait_status step(pli_loop *loop, int64_t epoch, int64_t clock, pli_sums *sums_out) {
    pli_run         *run = loop->run;
    const pli_steps *steps = loop->steps;
    const pli_batch *batch = &loop->batch;
    *sums_out = (pli_sums){ 0 };
    loop->total = (pli_total){ 0 };
    if (step_parses(loop)) return steps->step(run, NULL, clock, sums_out);
    if (!loop->fetched) PLI_TRY(fetch(loop, epoch, clock, false));
    loop->fetched = false;
    if (batch->rows == 0) PLI_TRY(keep_pace(loop));
    if (batch->rows == 0 && pli_run_stages(run) == 1 && !run->rotates)
        return steps->idle != NULL && run->paced && pli_run_is_spare(run) ? steps->idle(run) : PLAIT_OK;
    if (!plait_job_is_late(run->job)) PLI_TRY(steps->step(run, batch, clock, sums_out));
    if (run->exact) *sums_out = pli_total_sums(&loop->total);
    if (!plait_job_is_late(run->job)) return PLAIT_OK;
    run->clocks_skipped++; /* the step was not called, or its get told it: nothing was computed */
    *sums_out = (pli_sums){ 0 };
    return PLAIT_OK;
}

/* --- may it go on? ------------------------------------------------------------------------------------------- */

enum { STOP_EVERY = 16 };

static plait_status hear_others(pli_loop *loop, bool *stop_out) {
    if (loop->asked == NULL) return PLAIT_OK;
    PLI_TRY(plait_request_wait(&loop->asked));
    *stop_out = loop->stopped > 0;
    return PLAIT_OK;
}

/* Was anybody asked to stop? A worker may leave by itself: the others notice that it no longer comes. But if sums need
 * all workers, they ask each other now and then. Workers that are not in step go on meanwhile, and hear the answer when
 * they ask again. */
static plait_status should_stop(pli_loop *loop, int64_t epoch, int64_t clock, bool *stop_out) {
    pli_run *run = loop->run;
    if (run->keep != NULL) return pli_keep_clock(run, epoch, clock, stop_out);
    *stop_out = false;
    if (loop->steps->asks) return PLAIT_OK;
    *stop_out = pli_run_stopped(run);
    if (run->opts->stop == NULL || !loop->sums_need_all) return PLAIT_OK;
    double stopped = *stop_out;
    *stop_out = false;
    if ((clock + 1) % STOP_EVERY != 0 && clock + 1 < run->clocks) return PLAIT_OK;
    PLI_TRY(hear_others(loop, stop_out));
    if (*stop_out) return PLAIT_OK;
    loop->stopped = stopped;
    PLI_TRY(plait_comm_allreduce_begin(run->comm, &loop->stopped, 1, PLAIT_F64, PLAIT_MAX, &loop->asked));
    return run->paced ? PLAIT_OK : hear_others(loop, stop_out);
}

/* Checks and counts the losses of a step. */
static plait_status count(pli_loop *loop, int64_t epoch, const pli_sums *sums) {
    pli_run *run = loop->run;
    if (loop->steps->finite != NULL) PLI_TRY(loop->steps->finite(run, sums->loss, run->clocks_done));
    if (!run->exact) pli_total_add(&loop->total, sums);
    if (run->first.rows == 0) run->first = *sums;
    if (epoch == 0) pli_total_merge(&run->progressive, &loop->total);
    return PLAIT_OK;
}

/* Ends the clock. If others have died in it, the worker computes their batch, too. */
static plait_status end_together(pli_loop *loop, int64_t epoch, int64_t clock) {
    plait_status status;
    loop->away = pli_turnover_leaves(loop);
    if (loop->away) pli_keep_leave(loop->run);
    while ((status = (loop->away ? plait_job_leave : plait_job_clock)(loop->run->job)) == PLAIT_STAND_IN) {
        pli_sums sums;
        PLI_TRY(fetch(loop, epoch, clock, true));
        PLI_TRY(step(loop, epoch, clock, &sums));
        PLI_TRY(count(loop, epoch, &sums));
    }
    return status >= 0 && loop->away ? pli_turnover_give(loop) : status;
}

/* Ends the clock. If its sums travel in the background, fetches the next batch of the epoch meanwhile. */
static plait_status end_clock(pli_loop *loop, int64_t epoch, int64_t clock) {
    pli_run       *run = loop->run;
    plait_request *ended;
    if (!loop->overlaps) return end_together(loop, epoch, clock);
    PLI_TRY(plait_job_clock_begin(run->job, &ended));
    plait_status fetched = clock + 1 < run->clocks ? fetch(loop, epoch, clock + 1, false) : PLAIT_OK;
    plait_error  why = *run->err;
    plait_status status = plait_request_wait(&ended);
    if (fetched < 0) *run->err = why;
    return fetched < 0 ? fetched : status;
}

/* A clock of a live pipe has passed: it was the last one if the pipe has ended. Before it waits for more rows, it tells
 * of those that have come. */
static void look_on(pli_loop *loop, int64_t clock) {
    pli_run *run = loop->run;
    if (!run->live) return;
    run->rows = run->train_rows = run->train_labels = pli_stream_rows(loop->batches);
    run->features = (int64_t)pli_stream_features(loop->batches);
    if (pli_stream_has_ended(loop->batches)) run->clocks = clock + 1;
    else loop->meter.waits = pli_stream_waits(loop->batches, pli_meter_rest_ms(&loop->meter));
}

/* Computes the clock, and ends it. */
static plait_status clock_run(pli_loop *loop, int64_t epoch, int64_t clock, pli_sums *sums) {
    pli_run *run = loop->run;
    if (pli_curve_due(run) && !loop->steps->reads && loop->steps->curve != NULL) PLI_TRY(loop->steps->curve(run));
    PLI_TRY(step(loop, epoch, clock, sums));
    PLI_TRY(count(loop, epoch, sums));
    look_on(loop, clock);
    if (run->lanes > 0 && loop->steps->behind != NULL && clock + (run->tail > 0 ? run->tail : 1) >= run->clocks)
        PLI_TRY(loop->steps->behind(run, clock));
    return end_clock(loop, epoch, clock);
}

/* Runs one epoch from clock `first` on; PLAIT_END: the caller has asked to stop, or the worker has left (away). A
 * worker that comes learns which epoch it is in. */
static plait_status epoch_run(pli_loop *loop, int64_t *at_epoch, int64_t first) {
    pli_run *run = loop->run;
    int64_t  epoch = *at_epoch;
    for (int64_t clock = first; clock < run->clocks; clock++) {
        pli_sums sums = { 0 };
        uint64_t at = pli_comm_span_begin(run->comm);
        const bool came = loop->comes;
        loop->comes = false;
        if (!came) pli_turnover_before(loop);
        if (!came) PLI_TRY(clock_run(loop, epoch, clock, &sums));
        pli_run_phase(run, "clock", run->clocks_done, &at);
        run->clocks_done++;
        if (loop->away && loop->steps->left != NULL) loop->steps->left(run);
        if (loop->away) return PLAIT_END;
        PLI_TRY(pli_turnover_after(loop, came));
        if (came) epoch = *at_epoch = run->epochs_done;
        pli_run_tell_lost(run);
        pli_pace_clock(run);
        pli_meter_tell(&loop->meter, &sums, epoch, clock, false);
        bool stop;
        PLI_TRY(should_stop(loop, epoch, clock, &stop));
        if (stop) {
            run->interrupted = true;
            return PLAIT_END;
        }
    }
    return PLAIT_OK;
}

static void end_live(const pli_loop *loop) {
    const pli_run *run = loop->run;
    const int64_t  unknown = pli_stream_unknown_texts(loop->batches);
    pli_stream_describe(loop->batches, run->schema);
    if (unknown > 0)
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "learn",
                "%lld cell%s held texts that no row had when training began; they count as missing: --hash-bits 20 "
                "takes texts as they come", (long long)unknown, pli_plural(unknown));
}

/* Workers that each stop by themselves, the last of them behind its last clock: others had ended theirs before the stop
 * came. What follows is collective, so all count as stopped, or none. */
static plait_status agree_stopped(const pli_loop *loop) {
    pli_run *run = loop->run;
    double   stopped = run->interrupted;
    if (run->opts->stop == NULL || loop->sums_need_all || run->keep != NULL || loop->steps->asks) return PLAIT_OK;
    PLI_TRY(plait_comm_allreduce(run->comm, &stopped, 1, PLAIT_F64, PLAIT_MAX));
    run->interrupted = stopped > 0;
    return PLAIT_OK;
}

static plait_status all_epochs(pli_loop *loop) {
    pli_run *run = loop->run;
    bool     end = false;
    /* nobody begins before all are there: under async some would run ahead */
    PLI_TRY(run->resume != NULL ? pli_job_pass(run->job) : plait_job_barrier(run->job));
    if (loop->steps->told != NULL) PLI_TRY(loop->steps->told(run));
    PLI_TRY(pli_pace_begin(run));
    pli_job_resume(run->job);
    const int64_t begin = run->resume != NULL ? run->resume->epoch : 0;
    loop->away = pli_job_is_away(run->job, plait_comm_rank(run->comm));
    PLI_TRY(pli_turnover_begin(loop));
    for (int64_t epoch = begin; epoch < run->epochs && !end; epoch++) {
        if (epoch > 0) run->lanes = 0; /* only the first one can be in the files' order */
        uint64_t     at = pli_comm_span_begin(run->comm);
        int64_t      first = run->resume != NULL && epoch == begin ? run->resume->epoch_clock : 0;
        plait_status status;
        do {
            if (loop->away && (status = pli_turnover_come(loop, &epoch, &first)) != PLAIT_OK) return status;
            status = epoch_run(loop, &epoch, first);
            if (status < 0) return status;
        } while (loop->away);
        pli_run_phase(run, "epoch", epoch, &at);
        end = status == PLAIT_END;
        run->epochs_done += !end;
        if (end && !loop->sums_need_all && run->keep == NULL) PLI_TRY(plait_job_leave(run->job));
        if (loop->steps->epoch != NULL) PLI_TRY(loop->steps->epoch(run, epoch, &end));
        pli_job_resume(run->job);
        if (status != PLAIT_END) pli_meter_tell(&loop->meter, &(pli_sums){ 0 }, epoch, run->clocks - 1, true);
    }
    if (run->live) end_live(loop);
    pli_stream_take_means(loop->batches, run->schema);
    PLI_TRY(hear_others(loop, &end)); /* the answer comes too late to matter: all is done */
    PLI_TRY(pli_keep_settle(run));
    pli_pace_end(run); /* before all meet, or all would end at once */
    return agree_stopped(loop);
}

/* Tells the caller how many rows each worker has computed in each epoch of a balanced run. Collective. */
static plait_status tell_shares(const pli_loop *loop) {
    const pli_run *run = loop->run;
    int32_t        workers = plait_comm_workers(run->comm), holders = pli_run_holders(run);
    int64_t        epochs = run->epochs, *all = pli_array((size_t)(epochs * workers), sizeof *all);
    int64_t       *rows = pli_array((size_t)holders, sizeof *rows);
    plait_status   status =
        all != NULL && rows != NULL
              ? plait_comm_allgather(run->comm, loop->balance.computed, (size_t)epochs * sizeof *all, all)
              : pli_fail(run->err, PLAIT_ENOMEM, "no memory for the workers' shares");
    bool tells = status == PLAIT_OK && run->opts->shares != NULL && pli_comm_leads(run->comm);
    for (int64_t epoch = 0; tells && epoch < run->epochs_done; epoch++) {
        for (int32_t w = 0; w < holders; w++) rows[w] = all[w * epochs + epoch];
        run->opts->shares(run->opts->user, &(plait_shares){ .epoch = epoch + 1, .workers = holders, .rows = rows });
    }
    pli_free(rows);
    pli_free(all);
    return status;
}

/* Does the run go on within its first epoch? */
static bool is_in_first_epoch(const pli_run *run) {
    return run->resume != NULL && run->resume->epoch == 0 && run->resume->epoch_clock > 0;
}

/* In the files' order, if the learner wants it. A balanced run moves blocks by how long a clock's rows of a block take,
 * so each clock needs rows of all. */
static plait_status order_batches(pli_loop *loop) {
    pli_run *run = loop->run;
    if (loop->steps->lanes == NULL) return PLAIT_OK;
    if (is_in_first_epoch(run)) {
        run->lanes = run->resume->lanes;
        run->tail = run->resume->tail;
    } else if (run->epochs == 1 && !loop->leases) {
        run->lanes = loop->steps->lanes(run, &run->tail);
    }
    if (run->lanes == 0 || run->live) return PLAIT_OK;
    return pli_batches_in_file_order(loop->batches, run->lanes, run->tail, run->err);
}

/* A single pass takes each block's rows in their own order; with more epochs each is shuffled. A run that resumes may
 * be to take more epochs, or fewer, than the run before: it ends the epoch as that was begun, so that each row is taken
 * once. */
static plait_status begin_batches(pli_loop *loop) {
    pli_run *run = loop->run;
    run->in_order = is_in_first_epoch(run) && run->resume->in_order >= 0 ? run->resume->in_order : run->epochs == 1;
    if (run->stream) {
        PLI_TRY(run->live ? pli_batches_live(run->data, run->opts->stop, run->pool, &loop->batches, run->err)
                          : pli_batches_stream(run->data, run->batch, run->pool, &loop->batches, run->err));
        run->clocks = pli_batches_clocks(loop->batches);
        if (run->opts->replicas > 1) PLI_TRY(pli_heir_begin(&loop->heir, run, loop->batches));
        return order_batches(loop);
    }
    const bool shuffles = (run->epochs > 1 || !run->in_order) && (run->ways & PLAIT_LEARNER_PASSES) == 0;
    PLI_TRY(pli_batches_create(run->data, run->opts->seed, run->clocks, shuffles,
                               run->fraction > 0 ? pli_run_holds_back : NULL, run, &loop->batches, run->err));
    if (run->in_order) pli_batches_begin_in_order(loop->batches);
    PLI_TRY(order_batches(loop));
    if (loop->leases) return pli_balance_begin(&loop->balance, run, loop->batches);
    const bool settles = pli_settles(run) && run->solver == NULL; /* solvers begin it themselves, later */
    if (settles) PLI_TRY(pli_settled_begin(run, loop->batches));
    if (run->opts->replicas > 1 || settles) PLI_TRY(pli_heir_begin(&loop->heir, run, loop->batches));
    loop->heir.home = settles ? run->homes : NULL;
    return PLAIT_OK;
}

/* Does any table need all workers for its sums? Each may have a topology of its own. */
static bool some_sum_needs_all(const pli_run *run) {
    for (int32_t i = 0; i < run->n_made; i++)
        if (pli_table_needs_all(run->made[i])) return true;
    return false;
}

static void end(pli_loop *loop) {
    pli_run *run = loop->run;
    pli_comm_drop(&loop->asked);
    if (loop->steps->end != NULL) loop->steps->end(run);
    run->kept = pli_keep_last(run, &run->unkept);
    pli_keep_end(run);
    pli_turnover_end(loop);
    pli_balance_end(&loop->balance);
    pli_settled_end(run);
    pli_heir_end(&loop->heir);
    pli_batches_destroy(&loop->batches);
    run->loop = NULL;
}

/* Passes over the rows of a clock that the run before has trained on; shows: the learner sees them. */
static plait_status skip_clock(pli_loop *loop, int64_t clock, bool shows) {
    pli_run *run = loop->run;
    if (!step_parses(loop)) {
        PLI_TRY(pli_batches_get(loop->batches, 0, clock, &loop->batch, run->err));
        return shows ? loop->steps->skipped(run, &loop->batch) : PLAIT_OK;
    }
    for (int32_t p = 0; p < pli_dataset_own_blocks(run->data); p++) {
        pli_part part;
        PLI_TRY(pli_stream_part(loop->batches, clock, p, 0, &part, run->err));
        const pli_batch one = { .part = &part, .parts = 1, .rows = part.rows };
        if (shows) PLI_TRY(loop->steps->skipped(run, &one));
    }
    return PLAIT_OK;
}

/* A stream is read from its beginning, unless each block's part is asked for by itself. Loaded rows need no passing
 * over, unless the learner wants to see them. */
static plait_status skip(pli_loop *loop) {
    const pli_run *run = loop->run;
    const bool     shows = is_in_first_epoch(run) && run->lanes > 0 && loop->steps->skipped != NULL;
    if (run->resume == NULL || !((run->stream && loop->heir.part == NULL) || shows)) return PLAIT_OK;
    for (int64_t clock = 0; clock < run->resume->epoch_clock; clock++) PLI_TRY(skip_clock(loop, clock, shows));
    return PLAIT_OK;
}

static plait_status begin(pli_loop *loop) {
    pli_run *run = loop->run;
    PLI_TRY(loop->steps->begin(run));
    PLI_TRY(make_pace(loop));
    run->leaps = loop->steps->leaves_out && !run->exact && pli_run_stages(run) == 1 && run->opts->replicas <= 1 &&
                 pli_job_may_leap(run->job);
    loop->sums_need_all = run->opts->replicas > 1 || pli_run_stages(run) > 1 || some_sum_needs_all(run);
    PLI_TRY(begin_batches(loop));
    loop->overlaps = !loop->leases && !step_parses(loop) && pli_job_overlaps(run->job);
    PLI_TRY(pli_keep_begin(run));
    PLI_TRY(pli_resume_tables(run));
    PLI_TRY(skip(loop));
    PLI_TRY(pli_curve_begin(run, run->weights, PLAIT_F32, run->clocks * run->epochs));
    pli_meter_start(&loop->meter, run);
    return PLAIT_OK;
}

plait_status pli_loop_run(pli_run *run, const pli_steps *steps) {
    pli_loop loop = { .run = run, .steps = steps, .leases = run->balanced && !pli_settles(run) };
    run->loop = &loop;
    plait_status status = begin(&loop);
    if (status == PLAIT_OK) status = all_epochs(&loop);
    if (status == PLAIT_OK && loop.leases) status = tell_shares(&loop);
    if (status == PLAIT_OK && steps->finish != NULL) status = steps->finish(run);
    end(&loop);
    return status;
}
