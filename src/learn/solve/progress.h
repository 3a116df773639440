/* learn/solve/progress.h - what a loop tells while it runs: progress, the curve of the objective, the workers' pace. */
#ifndef PLI_LEARN_PROGRESS_H
#define PLI_LEARN_PROGRESS_H

#include "learn/learner.h"

/* --- progress ----------------------------------------------------------------------------------------------------- */

typedef struct pli_meter {
    pli_run *run;
    uint64_t begun_ns, told_ns;
    double   rows, told_rows; /* of this worker */
    pli_sums lately;
    double   loss, rows_per_second; /* that were told last: of an epoch whose last clock was told just before its end */
    bool     waits; /* the run waits for rows, perhaps for long: what is not told yet is told now */
} pli_meter;
void pli_meter_start(pli_meter *meter, pli_run *run);
/** How long it will be, in milliseconds, until progress is told again. */
int  pli_meter_rest_ms(const pli_meter *meter);
/** Tells the caller of progress at most ten times a second, and at the end of an epoch. Only the lead does. */
void pli_meter_tell(pli_meter *meter, const pli_sums *sums, int64_t epoch, int64_t clock, bool epoch_ended);

/* --- the curve ---------------------------------------------------------------------------------------------------- */

/* Copies of the weights at some moments of a run, which are judged when it is over (curve.c). */
struct pli_curve {
    int64_t        points, next; /* points of the curve; how many are passed          */
    int64_t        values;       /* of one copy                                       */
    plait_type     type;
    int64_t       *mark, *clock; /* [points] a copy is due from clock mark on, and was taken at clock */
    double        *seconds, *bytes; /* [points], [points + 1]: the last one at the end */
    unsigned char *weights;      /* [points, values], on the reporting worker         */
    bool          *taken;        /* [points] is the copy there?                       */
    double         carried;      /* bytes sent that others have given to this worker, less those it gave */
    bool           due;          /* the copy of point next - 1 is still to be taken   */
};

/** Before the first clock: the weights are `values` numbers of this type, and about `clocks` clocks will come. */
plait_status pli_curve_begin(pli_run *run, int64_t values, plait_type type, int64_t clocks);
/** A clock begins. true: the reporting worker is to give the weights that it reads now to pli_curve_keep. */
bool         pli_curve_due(pli_run *run);
/** Is the curve still waiting for them? */
static inline bool pli_curve_waits(const pli_run *run) { return run->curve != NULL && run->curve->due; }
void         pli_curve_keep(pli_run *run, const void *weights);
/** A worker leaves: it gives the bytes that it has sent by each mark [pli_curve_marks], and by now, to one that stays.
 *  Both have passed the same marks. */
int64_t      pli_curve_marks(const pli_run *run);
void         pli_curve_give(pli_run *run, double *bytes);
void         pli_curve_get(pli_run *run, const double *bytes);
/** A worker has come: passes over the points that it has missed. */
void         pli_curve_skip(pli_run *run);
/** Training is over: notes the bytes sent. */
void         pli_curve_end(pli_run *run);
/** Judges the copies and tells the caller each point; the last point is the solution, from its report. Collective over
 *  the workers. */
plait_status pli_curve_measure(pli_run *run, const plait_report *report);
void         pli_curve_free(pli_run *run);

/* --- pace --------------------------------------------------------------------------------------------------------- */

/** Before the first clock, past a barrier: sets run->paced if workers may run apart. Collective over the workers. */
plait_status pli_pace_begin(pli_run *run);
/** clock: after each clock. end: when a worker has done its last clock. */
void         pli_pace_clock(pli_run *run);
void         pli_pace_end(pli_run *run);
/** When the rows have been judged: warns if one worker ended before another was far, and the loss on some worker's rows
 *  is well above the loss on all. own: sums over the own rows. Collective over the workers. */
plait_status pli_pace_judge(pli_run *run, const pli_sums *own);
/** The same if the model's gap is known, by which share its objective lies above the least: warns if it is large. */
plait_status pli_pace_tell(pli_run *run, double gap);

#endif
