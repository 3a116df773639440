/* learn/keep/keep.h - a run's checkpoints: when they are taken, what they hold besides tables, and how a run resumes
 * from one.
 *
 * A checkpoint is a cut at a clock that all workers have ended and none has passed: they meet at a barrier, tables
 * begin a capture there (table/state/state.h), and the workers train on. After each later clock, a worker hands a few
 * pieces to its writer (writer.h); when all parts are written, the lead commits them (data/checkpoint/checkpoint.h). A
 * worker waits for the disk in two cases only: a checkpoint is due before the last one is complete, or the run ends.
 *
 * The workers decide together at *asks*, about a tenth of a second apart and at the same clocks on each: was somebody
 * asked to stop, is a checkpoint due, has everybody written his part, has the lead committed, has anybody failed? If
 * the consistency keeps clocks in step, the workers wait for the answer. Else they go on and hear it at the next ask;
 * this bounds how far they may be apart by the clocks between two asks.
 *
 * The cursor is the clock: the rows of a batch, and every random number, follow from seed, epoch and clock
 * (data/dataset/batches.h), so a checkpoint holds nothing of them.
 *
 * When a worker dies in a run that goes on (solve/inherit.h), all hear of it from the same collective. Its part of the
 * checkpoint at hand is missing, so all drop this checkpoint and begin another at that very clock; parts are counted
 * over those who lived at the cut. Once all parts are there (COMMITTING), only the lead is needed: if it dies, the new
 * lead looks whether the manifest is there, which makes the checkpoint complete. So nobody waits for the dead, and what
 * one of them may still write is in a folder that the others have left.
 *
 * When workers have come or gone, a checkpoint that is under way is completed or dropped, and who comes is told where
 * the others stand (pli_keep_part).
 *
 * A checkpoint that cannot be written does not end the run: all drop it at the same ask, the worker that failed says
 * why, and the next checkpoint comes when it is due. Before the training, the run checks that checkpoints can be
 * written there at all (keep_room.c). */
#ifndef PLI_LEARN_KEEP_H
#define PLI_LEARN_KEEP_H

#include "data/checkpoint/checkpoint.h"
#include "learn/learner.h"

/* --- resuming (resume.c) ----------------------------------------------------------------------------------------- */

/* What a checkpoint says of its run. */
struct pli_resume {
    pli_checkpoint *checkpoint;
    char            folder[PLI_CHECKPOINT_FOLDER];
    int64_t         clock, epoch, epoch_clock, epochs_done, tail; /* epoch_clock: clocks of the epoch that are done */
    int64_t         workers; /* of the run before */
    int32_t         layout, lanes, blocks; /* blocks: that were asked for; 0: as many as suit the data */
    int64_t         in_order; /* does the first epoch take each block's rows in their own order? -1: it does not say */
    pli_total       progressive;
    double          best_loss, validation_loss, validation_accuracy;
    int64_t         best_epoch;
    char           *options; /* a line each */
};

/** Before the data are read: finds the checkpoint; the lead verifies all its bytes. run->resume stays NULL if the run
 *  is a new one. Collective over the workers. */
plait_status pli_resume_open(pli_run *run);
/** When everything is decided: was the checkpoint made with the same options and data? EREFUSED, EFORMAT. */
plait_status pli_resume_check(const pli_run *run);
/** Puts what the checkpoint holds back into the run's tables, which are new, into the run and into its learner. A
 *  barrier must follow. Collective over the workers. */
plait_status pli_resume_tables(pli_run *run);
/** For the learner. has: does the checkpoint hold an array of this name beside the tables? *rows_out (may be NULL): its
 *  rows. array: reads it all to out, rows of row_bytes each. Errors: EMISMATCH. */
bool         pli_resume_has(const pli_run *run, const char *name, int64_t *rows_out);
plait_status pli_resume_array(const pli_run *run, const char *name, int64_t rows, int64_t row_bytes, void *out);
/** Reads n rows from `first` on. */
plait_status pli_resume_rows(const pli_run *run, const char *name, int64_t first, int64_t n, int64_t rows,
                             int64_t row_bytes, void *out);
/** The name under which the checkpoint holds an array of a worker's own (pli_solver_keeps.own). */
void         pli_kept_own_name(const char *name, int32_t rank, char text[PLI_CHECKPOINT_NAME]);
/** Which blocks of rows this worker has, as a number; below 0: some workers are away, and others have theirs. */
double       pli_keep_place(const pli_run *run);
/** Has each worker the blocks of rows that the worker of its rank had in the run before? name: of an own array of that
 *  run, of n numbers or more, which begins with the place. Collective. */
plait_status pli_resume_is_same(const pli_run *run, const char *name, int64_t n, bool *same_out);
/** Reads this worker's own array. */
plait_status pli_resume_own(const pli_run *run, const char *name, int64_t rows, int64_t row_bytes, void *out);
void         pli_resume_close(pli_run *run);

/** Writes the options that a result depends on, with their final values, one line each. The caller frees text. */
plait_status pli_keep_options(const pli_run *run, pli_text *text);

/* --- taking (keep.c) ---------------------------------------------------------------------------------------------- */

/** Are the options of checkpoints in range? EINVAL. What checkpoints do not go with, table/pairs/ refuses. */
plait_status pli_keep_check(const pli_run *run);
/** probe: before the data are read, can anything be written where checkpoints go? room: when their size is known, is
 *  there room for one? The lead looks, and all hear the answer. Errors: EIO, ENOSPACE. Collective over the workers. */
plait_status pli_keep_probe(pli_run *run);
plait_status pli_keep_room(pli_run *run);
/** Does nothing if the run writes no checkpoints. */
plait_status pli_keep_begin(pli_run *run);
/** After clock `clock` of an epoch: does what is due. *stop_out: all workers end now, and a checkpoint of this clock is
 *  complete, unless it could not be written. Collective over the workers. */
plait_status pli_keep_clock(pli_run *run, int64_t epoch, int64_t clock, bool *stop_out);
/** The same after an epoch of a learner that has a loop of its own; without checkpoints *stop_out says whether anybody
 *  was told to stop. Collective over the workers. */
plait_status pli_keep_epoch(pli_run *run, int64_t epoch, bool *stop_out);
/** Training is over, or tables are to be dropped: completes the checkpoint under way. Collective over the workers. */
plait_status pli_keep_settle(pli_run *run);

/* Workers come and go (solve/turnover.h). */

/* Where checkpoints stand, as one worker tells it to one that comes. */
typedef struct pli_keep_note {
    int64_t phase, lead, absent, redo, next_ask, seen_clock, clock, last, due_in_ns;
    double  clock_ns;
    char    folder[PLI_CHECKPOINT_FOLDER];
} pli_keep_note;
void pli_keep_tell(const pli_run *run, pli_keep_note *note_out);
void pli_keep_take(pli_run *run, const pli_keep_note *note);
/** Before this worker leaves: of the checkpoint under way it writes nothing more. If all parts are there it does first
 *  what is left to do. */
void         pli_keep_leave(pli_run *run);
/** When some have left, or have come and have taken the note: completes the checkpoint under way if all its parts are
 *  there; else drops it, and another follows at once. Collective over those who are in. */
plait_status pli_keep_part(pli_run *run);
/** The run's tables are others now; no checkpoint is under way. */
void         pli_keep_tables(pli_run *run);
/** The clock of the last complete checkpoint; -1: none. *failed_out: why the last one that was due was not written;
 *  code 0: it was. */
int64_t pli_keep_last(const pli_run *run, plait_error *failed_out);
void    pli_keep_end(pli_run *run);

#endif
