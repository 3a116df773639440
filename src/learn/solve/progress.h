/* learn/solve/progress.h - what a loop tells while it runs: progress, the curve, pace. */
#ifndef PLI_LEARN_PROGRESS_H
#define PLI_LEARN_PROGRESS_H

#include "learn/learner.h"

/* --- progress ----------------------------------------------------------------------------------------------------- */

typedef struct pli_meter {
    pli_run *run;
    uint64_t begun_ns, told_ns;
    double   rows, told_rows; /* of this worker */
    pli_sums lately;
} pli_meter;
void pli_meter_start(pli_meter *meter, pli_run *run);
/** Tells the caller at most some times a second, and at the end of an epoch. On one rank. */
void pli_meter_tell(pli_meter *meter, const pli_sums *sums, int64_t epoch, int64_t clock, bool epoch_ended);

/* --- the curve ---------------------------------------------------------------------------------------------------- */

/* The weights at some moments of a run, kept to be measured when it is over (curve.c). */
struct pli_curve {
    int64_t        points, next; /* asked for; passed so far                          */
    int64_t        values;       /* of one copy                                       */
    plait_type     type;
    int64_t       *mark, *clock; /* [points] clock from which it is due; its own      */
    double        *seconds, *bytes; /* [points], [points + 1]: the last at the end */
    unsigned char *weights;      /* [points, values], on the reporting worker         */
    bool          *taken;        /* [points]                                          */
    bool           due;          /* the weights of point next - 1 are still to be kept */
};

/** Before the first clock: weights are `values` numbers of this type, clocks about so many. */
plait_status pli_curve_begin(pli_run *run, int64_t values, plait_type type, int64_t clocks);
/** A clock begins. true: the reporting worker shall give the weights that it reads now to pli_curve_keep. */
bool         pli_curve_due(pli_run *run);
/** Is it still waiting for them? */
static inline bool pli_curve_waits(const pli_run *run) { return run->curve != NULL && run->curve->due; }
void         pli_curve_keep(pli_run *run, const void *weights);
/** Training is over. */
void         pli_curve_end(pli_run *run);
/** Measures what was kept and tells it, and last the solution, whose report is filled. Collective over the workers. */
plait_status pli_curve_measure(pli_run *run, const plait_report *report);
void         pli_curve_free(pli_run *run);

/* --- pace --------------------------------------------------------------------------------------------------------- */

/** Before the first clock, past a barrier: is there anything to watch? Collective over the workers. */
plait_status pli_pace_begin(pli_run *run);
/** After each clock, and when a worker takes no more. */
void         pli_pace_clock(pli_run *run);
void         pli_pace_end(pli_run *run);
/** When the rows have been judged: warns if one worker ended before another was far and the loss on some worker's rows
 *  is well above that of all. own: sums over the own rows. Collective over the workers. */
plait_status pli_pace_judge(pli_run *run, const pli_sums *own);

#endif
