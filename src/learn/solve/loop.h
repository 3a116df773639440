/* learn/solve/loop.h - batch by batch: next batch, step, clock. The same loop serves every learner whose clocks are
 * steps, under every topology and consistency; it knows no model.
 *
 *     the loop               the learner, by pli_steps
 *     tables and memory      begin
 *     batches, checkpoints, what a resumed run remembers
 *     each clock:
 *       a batch              fetched: what of it can be prepared before the clock begins
 *                            step: get, compute, inc
 *       the clock ends; where a worker has died, fetch and step once more for its rows
 *     each epoch             epoch: validation, is it enough?
 *     the end                finish: what was learnt
 */
#ifndef PLI_LEARN_LOOP_H
#define PLI_LEARN_LOOP_H

#include "learn/solve/balance.h"
#include "learn/solve/inherit.h"
#include "learn/solve/progress.h"

/* A learner's side of the loop. Each may be NULL but begin and step. */
typedef struct pli_steps {
    bool parses; /* a stream's rows are parsed in the step, by pli_stream_part; its batch is then NULL */
    bool reads;  /* a step gives the curve what it reads; else curve does, before it */
    /** Tables and memory. end follows in any case. */
    plait_status (*begin)(pli_run *run);
    void (*end)(pli_run *run);
    plait_status (*fetched)(pli_run *run, const pli_batch *batch);
    /** Sums over the rows to *sums_out; under --reduce exact block by block to run->loop->total instead. Not called
     *  where the clock is complete without this worker; if it hears so by its get, it computes nothing. */
    plait_status (*step)(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out);
    /** A spare without rows reads nevertheless, where only that keeps it in step with the others. */
    plait_status (*idle)(pli_run *run);
    plait_status (*curve)(pli_run *run);
    /** EDIVERGED with the remedy, unless the loss is finite. */
    plait_status (*finite)(const pli_run *run, double loss, int64_t clock);
    /** Before the first clock, past a barrier. Collective. */
    plait_status (*told)(pli_run *run);
    /** After each epoch. *end_out: stop now. Collective: so all workers stop at once. */
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
    pli_balance      balance; /* of a run that is balanced */
    pli_heir         heir;    /* of one that goes on when a worker dies; part NULL: of another */
    pli_meter        meter;
    pli_total        total;         /* losses of the clock at hand, own rows */
    bool             sums_need_all; /* no worker may stop by itself */
    double           stopped; /* lent while asked is not NULL: has anybody been asked to stop? */
    plait_request   *asked;
};

/** Tables, loop, solution. The job is there. */
plait_status pli_loop_run(pli_run *run, const pli_steps *steps);

/** The steps of a learner that has plait_learner.step (steps.c). */
extern const pli_steps pli_learner_steps;

/** Around what computes over a batch's rows: a balanced run measures how long it takes. */
static inline void pli_loop_work_begin(pli_run *run) {
    if (run->balanced) pli_balance_begin_work(&run->loop->balance);
}
static inline void pli_loop_work_end(pli_run *run) {
    if (run->balanced) pli_balance_end_work(&run->loop->balance);
}

#endif
