/* learn/solve/lbfgs_blocks.h - a run by blocks of the Hessian on one worker; for lbfgs_blocks.c, which has the method,
 * lbfgs_blocks_factor.c and lbfgs_blocks_kept.c. */
#ifndef PLI_LEARN_LBFGS_BLOCKS_H
#define PLI_LEARN_LBFGS_BLOCKS_H

#include "learn/solve/lbfgs_run.h"

enum { PLI_LBFGS_BLOCKS_MEMORY = 16 };

typedef struct pli_lbfgs_blocks {
    pli_lbfgs   *l;
    int64_t      n, m, k; /* n = m k weights */
    plait_table *g, *h;
    double      *values;    /* all vectors, one behind the other */
    double      *w, *slope; /* weights, and the gradient there, with penalty */
    double      *next, *next_slope;
    double      *direction, *scratch;
    double      *penalty; /* [n] l2 times the factor of each weight */
    double      *seen;    /* [n] what table g held before */
    double      *s[PLI_LBFGS_BLOCKS_MEMORY], *y[PLI_LBFGS_BLOCKS_MEMORY];
    double       sy[PLI_LBFGS_BLOCKS_MEMORY];
    int64_t      pairs, newest;        /* pairs that there are; the slot of the newest */
    double      *metric, *metric_seen; /* [k, m, m] factors of the blocks; what table h held before */
    int64_t      blocks, renewal;      /* blocks of the metric; the iteration that takes the next one */
    bool         fresh; /* is the metric of this point? */
    double       gamma;
    double      *kept_point; /* [2, n] weights and gradient of the last checkpoint */
} pli_lbfgs_blocks;

/** lbfgs_blocks_factor.c: turns a block of the metric [m, m], of which the part on and right of the diagonal is read,
 *  into a factor of it for pli_cholesky_solve. Errors: ENOMEM; EDIVERGED the block is not finite. */
plait_status     pli_lbfgs_factor(int64_t m, double *block, plait_error *err);

/** lbfgs_blocks_kept.c: what checkpoints hold beside the tables. */
pli_solver_keeps pli_lbfgs_blocks_keeps(pli_lbfgs_blocks *o);

#endif
