/* learn/keep/keep.h - a run's checkpoints: when they are taken, what they hold besides tables, and how a run goes on
 * from one.
 *
 * A checkpoint is a cut at a clock that all workers have ended and none has passed: they meet at a barrier, tables
 * begin a capture there (table/state/state.h), and train on. From then on each worker hands a few pieces to its writer
 * after each clock (writer.h), and when all parts are written the lead commits them (data/checkpoint.h). Nobody waits
 * for a disk, save where a checkpoint is due while the one before is not complete, and at the end.
 *
 * What all workers must do at the same clock they agree on at *asks*, which come so often that a tenth of a second
 * passes between two, at the same clocks on each: has somebody been asked to stop, is a checkpoint due, has everybody
 * written his part, has the lead committed, has anybody failed? Where clocks are in step the answer is waited for; else
 * the workers go on and hear it at the next ask, which bounds how far they may be apart by what lies between two asks.
 *
 * The cursor is the clock: which rows a batch has, and every random number, follows from seed, epoch and clock
 * (blocks.c, data), so nothing of them is kept.
 *
 * Where a run goes on when a worker dies (inherit.h) all hear of that from the same collective. A part of the
 * checkpoint at hand is then missing, so all drop it, and begin another at that very clock; parts are counted over
 * those who lived at the cut. From when all parts are there (COMMITTING) only the lead is needed: where it dies, who
 * leads now looks whether the manifest is there, which makes the checkpoint complete. So nobody waits for the dead, and
 * what one of them may still write is in a folder that the others have left.
 *
 * A checkpoint that cannot be written does not end the run: all drop it at the same ask, the one that failed says why,
 * and the next is due as always. Whether anything can be written there at all is looked at before the training
 * (keep_room.c). */
#ifndef PLI_LEARN_KEEP_H
#define PLI_LEARN_KEEP_H

#include "data/checkpoint/checkpoint.h"
#include "learn/learner.h"

/* --- going on (resume.c) ---------------------------------------------------------------------------------------- */

/* What a checkpoint says of its run. */
struct pli_resume {
    pli_checkpoint *checkpoint;
    char            folder[PLI_CHECKPOINT_FOLDER];
    int64_t         clock, epoch, epoch_clock, epochs_done; /* epoch_clock: clocks of the epoch that are done */
    int32_t         layout;
    pli_total       progressive;
    double          best_loss, validation_loss, validation_accuracy;
    int64_t         best_epoch;
    char           *options; /* a line each */
};

/** Before the data are read: finds the checkpoint, all of whose bytes the lead looks at. run->resume stays NULL where
 *  the run begins. Collective over the workers. */
plait_status pli_resume_open(pli_run *run);
/** When everything is decided: was the checkpoint made with the same options and data? */
plait_status pli_resume_check(const pli_run *run);
/** Puts back what it holds into the run's tables, which are new, and what the run and its learner remember. A barrier
 *  must follow. */
plait_status pli_resume_tables(pli_run *run);
/** For the learner: is there an array of this name beside the tables? *rows_out: how many
 *  rows it has; NULL: not asked. And all of it, whose rows have row_bytes each, to out. Errors: EMISMATCH. */
bool         pli_resume_has(const pli_run *run, const char *name, int64_t *rows_out);
plait_status pli_resume_array(const pli_run *run, const char *name, int64_t rows, int64_t row_bytes, void *out);
void         pli_resume_close(pli_run *run);

/** The options that a result depends on, a line each, as they are in the end. text is the caller's to free. */
plait_status pli_keep_options(const pli_run *run, pli_text *text);
/* --- taking (keep.c) ---------------------------------------------------------------------------------------------- */

/** Are the numbers that were asked for in range? EINVAL. What checkpoints do not go with: table/pairs/. */
plait_status pli_keep_check(const pli_run *run);
/** Before the data are read: can anything be written where checkpoints go? And when it is known how large they are: is
 *  there room for one? The lead looks, all hear the answer. Errors: EIO, ENOSPACE. Collective over the workers. */
plait_status pli_keep_probe(pli_run *run);
plait_status pli_keep_room(pli_run *run);
/** Nothing where the run keeps no checkpoints. */
plait_status pli_keep_begin(pli_run *run);
/** After clock `clock` of an epoch: what is due is done. *stop_out: all workers end now; a checkpoint of this clock is
 *  complete. Collective over the workers. */
plait_status pli_keep_clock(pli_run *run, int64_t epoch, int64_t clock, bool *stop_out);
/** Training is over: what is under way is completed. Collective over the workers. */
plait_status pli_keep_settle(pli_run *run);
/** Clock of the last complete one; -1: none. *failed_out: why the last that was due is not there; code 0: it is. */
int64_t pli_keep_last(const pli_run *run, plait_error *failed_out);
void    pli_keep_end(pli_run *run);

#endif
