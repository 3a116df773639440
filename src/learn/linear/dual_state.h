/* learn/linear/dual_state.h - what a worker knows in the dual method (dual.h); for dual.c and dual_kept.c. */
#ifndef PLI_LEARN_LINEAR_DUAL_STATE_H
#define PLI_LEARN_LINEAR_DUAL_STATE_H

#include "learn/keep/keep.h"
#include "learn/linear/dual.h"
#include "learn/solve/own_rows.h"

enum { PLI_DUAL_NUMBERS = 4 };

struct pli_dual {
    plait_table   *table;
    pli_dual_rows *rows;   /* NULL: this worker has none */
    pli_dual_frame frame;
    pli_dual_point point;  /* as read; u, t and inner lie one behind the other */
    pli_own_rows       held;   /* own rows */
    bool           torn;   /* the table is not the sum of the rows' shares */
    int64_t        anew;   /* 1 + the clock in which all add these up anew (--workers MIN:MAX); else less */
    int64_t        values; /* of the table */
    double        *before; /* [values] the point before a pass; else scratch */
    double        *best;   /* [features + 1, columns] weights of the least objective that all have looked at */
    double        *flow, *factor; /* [classes, classes]; [classes] */
    double         least, bound; /* the least objective at any look; the largest bound from below that is certain */
    double         gain;           /* mean of weight a_y over all rows, at the last look */
    pli_dual_turns turns;
    int64_t        shuffled; /* the pass whose order the rows have */
    uint64_t      *keys;     /* [most + 2] features that a turn's rows touch; then t and inner */
    uint8_t       *mark;     /* [features] */
    int64_t        most;     /* of keys: beyond them a turn gets the whole table */
    bool           converged;
    double         numbers[PLI_DUAL_NUMBERS]; /* of the last checkpoint */
};

/** dual_kept.c: the turns are known: the run may write checkpoints. One that resumes begins at the pass that the run
 *  before was in, if its passes had another number of turns. Errors: ENOMEM, EMISMATCH. */
plait_status pli_dual_keeps(pli_run *run);

#endif
