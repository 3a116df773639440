/* learn/solve/loop.h - training batch by batch: next batch, step, clock. One loop serves every learner whose clocks are
 * steps, under every topology and consistency; it knows no model.
 *
 *     the loop                             the learner, by pli_steps
 *     begins                               begin: makes tables and memory
 *     makes batches and checkpoints, and
 *     puts back what a checkpoint holds
 *     each clock: takes a batch            fetched: prepares what it can before the clock begins
 *                                          step: get, compute, inc
 *                 ends the clock; if a worker has died, fetches and steps once more for its rows
 *     ends each epoch                      epoch: validates, decides whether it was the last
 *     ends                                 finish: takes what was learnt
 */
#ifndef PLI_LEARN_LOOP_H
#define PLI_LEARN_LOOP_H

#include "learn/solve/balance.h"
#include "learn/solve/inherit.h"
#include "learn/solve/progress.h"

/* A learner's side of the loop. All but begin and step may be NULL. */
typedef struct pli_steps {
    bool parses; /* the step parses a stream's rows itself, by pli_stream_part; its batch is then NULL. Not with
                  * replicas */
    bool asks;   /* epoch asks whether anybody was told to stop, since some epochs end with sums of all: nobody stops by
                  * itself elsewhere */
    bool leaves_out; /* a worker that is slow for long may leave out clocks, with their rows (consistency asp) */
    bool reads;  /* the step keeps what it reads for the curve; else curve does so, before the step */
    /** How many workers or threads learn side by side from rows in the files' order, if the learner wants the rows of a
     *  single pass so; and how many of run->clocks are to follow the last row. NULL: each clock takes rows from all
     *  over the files. */
    int32_t (*lanes)(const pli_run *run, int64_t *tail_out);
    /** Makes tables and memory. end follows in any case. */
    plait_status (*begin)(pli_run *run);
    void (*end)(pli_run *run);
    plait_status (*fetched)(pli_run *run, const pli_batch *batch);
    /** Writes sums over the rows to *sums_out; under --reduce exact it adds them, block by block, to run->loop->total
     *  instead. It is not called if the clock is complete without this worker; if its get tells it so, it computes
     *  nothing. Nor is it called for a batch without rows, unless the model is cut (pli_run_stages) or rotates. */
    plait_status (*step)(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out);
    /** Reads without computing: a spare, which has no rows, keeps in step with the others by it. */
    plait_status (*idle)(pli_run *run);
    plait_status (*curve)(pli_run *run);
    /** Called in each clock of the tail of a pass, before the clock ends; if it has no tail, in its last clock, past
     *  the step. Not collective; gets and incs belong to that clock. */
    plait_status (*behind)(pli_run *run, int64_t clock);
    /** In a pass in the files' order that goes on from a checkpoint: sees the own rows of each clock that the run
     *  before has trained on, before the first clock of this one. */
    plait_status (*skipped)(pli_run *run, const pli_batch *batch);
    /** EDIVERGED, with the remedy, unless the loss is finite. */
    plait_status (*finite)(const pli_run *run, double loss, int64_t clock);
    /** Called before the first clock, past a barrier. Collective. */
    plait_status (*told)(pli_run *run);
    /** Workers have come or gone with the last clock (solve/turnover.h), or some are away at the beginning: called by
     *  all who are in. came: this worker has just come. left: called by a worker that is away from now on, by itself.
     *  What it knows of its rows is of no use. turned: collective over those who are in. */
    plait_status (*turned)(pli_run *run, bool came);
    void (*left)(pli_run *run);
    /** Called after each epoch. *end_out: stop now. Collective, so all workers stop at once. */
    plait_status (*epoch)(pli_run *run, int64_t epoch, bool *end_out);
    plait_status (*finish)(pli_run *run);
} pli_steps;

struct pli_loop {
    pli_run         *run;
    const pli_steps *steps;
    pli_batches     *batches;
    pli_batch        batch;   /* of this clock, or of the next one if that is fetched */
    bool             fetched;
    bool             overlaps; /* the next batch is fetched while sums travel          */
    bool             leases;  /* blocks change hands from clock to clock */
    pli_balance      balance; /* leases */
    pli_heir         heir;    /* of a run that goes on when a worker dies; part NULL: of any other */
    pli_meter        meter;
    pli_total        total;         /* losses of the clock at hand, own rows */
    bool             sums_need_all; /* no worker may stop by itself */
    double           stopped; /* lent while asked is not NULL: was anybody asked to stop? */
    plait_request   *asked;
    plait_table     *pace;   /* what keeps spares in step where no read of a model's table waits; else NULL */
    uint8_t         *was_in; /* [workers] who is in in the clock at hand (turnover.h); NULL: nobody comes or goes */
    int64_t          clocks; /* of an epoch, where a learner has a loop of its own; 0: run->clocks */
    bool             doors;  /* they come and go only by doors (doors.h); how many clocks there will be is not known */
    bool             away, comes; /* it is away, and waits until it may join; it comes at the end of a clock */
};

/** Trains from begin to finish. run->job is there. */
plait_status pli_loop_run(pli_run *run, const pli_steps *steps);

/** The steps of a learner that has plait_learner.step (steps.c). */
extern const pli_steps pli_learner_steps;

/** Call these around the computation over a batch's rows: a balanced run measures how long it takes (balance.h). */
static inline void pli_loop_work_begin(pli_run *run) {
    if (run->loop->leases) pli_balance_begin_work(&run->loop->balance);
}
static inline void pli_loop_work_end(pli_run *run) {
    if (run->loop->leases) pli_balance_end_work(&run->loop->balance, 0);
}
/** The same; within_ns of that time it waited for the other ranks of its replica. */
static inline void pli_loop_work_end_within(pli_run *run, uint64_t within_ns) {
    if (run->loop->leases) pli_balance_end_work(&run->loop->balance, within_ns);
}

#endif
