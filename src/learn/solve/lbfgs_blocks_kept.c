/* Checkpoints of a run by blocks of the Hessian. All vectors are the same on all workers, and none lies in a table: a
 * checkpoint holds them as arrays. The tables, which only add up what the workers push, go on from where they were. */
#include <string.h>

#include "learn/solve/lbfgs_blocks.h"

#define POINT "lbfgs.point"
#define PAIRS "lbfgs.pairs"
#define METRIC "lbfgs.metric"
#define NUMBERS "lbfgs.blocks"

enum { MEMORY = PLI_LBFGS_BLOCKS_MEMORY };

/* All are doubles, so that they are an array. */
typedef struct numbers {
    double sy[MEMORY], pairs, newest, blocks, renewal, fresh, gamma, objective, excess, stage, sharpened, iteration,
        gap;
} numbers;

enum { OF_NUMBERS = sizeof(numbers) / sizeof(double) };

static int32_t kept(void *state, pli_kept kept_out[PLI_KEPT]) {
    pli_lbfgs_blocks *o = state;
    pli_lbfgs        *l = o->l;
    numbers           now = { .pairs = (double)o->pairs, .newest = (double)o->newest, .blocks = (double)o->blocks,
                              .renewal = (double)o->renewal, .fresh = o->fresh, .gamma = o->gamma,
                              .objective = l->objective, .excess = l->excess, .stage = (double)l->stage,
                              .sharpened = (double)l->sharpened, .iteration = (double)l->iteration,
                              .gap = l->run->gap };
    int64_t all;
    memcpy(now.sy, o->sy, sizeof now.sy);
    if (o->kept_point == NULL) o->kept_point = pli_array((size_t)o->n, 2 * sizeof *o->kept_point);
    if (o->kept_point != NULL) {
        memcpy(o->kept_point, o->w, (size_t)o->n * sizeof *o->w);
        memcpy(o->kept_point + o->n, o->slope, (size_t)o->n * sizeof *o->slope);
    }
    kept_out[0] = (pli_kept){ POINT, "F64", 2, o->n, o->kept_point };
    kept_out[1] = (pli_kept){ PAIRS, "F64", 2 * MEMORY, o->n, o->s[0] }; /* s and y of each slot in turn */
    kept_out[2] = (pli_kept){ METRIC, "F64", o->blocks * o->m, o->m, o->metric };
    const double *data = pli_lbfgs_write_numbers(l, OF_NUMBERS, (const double *)&now, &all);
    kept_out[3] = (pli_kept){ NUMBERS, "F64", all, 0, data };
    return 4;
}

static plait_status restore(void *state) {
    pli_lbfgs_blocks *o = state;
    pli_lbfgs        *l = o->l;
    const pli_run    *run = l->run;
    const int64_t     row_bytes = o->n * (int64_t)sizeof(double);
    numbers           then;
    PLI_TRY(pli_lbfgs_read_numbers(l, NUMBERS, OF_NUMBERS, (double *)&then));
    o->blocks = then.blocks >= 1 && then.blocks <= (double)o->k ? (int64_t)then.blocks : o->k;
    PLI_TRY(pli_resume_rows(run, POINT, 0, 1, 2, row_bytes, o->w));
    PLI_TRY(pli_resume_rows(run, POINT, 1, 1, 2, row_bytes, o->slope));
    PLI_TRY(pli_resume_array(run, PAIRS, 2 * MEMORY, row_bytes, o->s[0]));
    PLI_TRY(pli_resume_array(run, METRIC, o->blocks * o->m, o->m * (int64_t)sizeof(double), o->metric));
    memcpy(o->sy, then.sy, sizeof o->sy);
    o->pairs = (int64_t)then.pairs;
    o->newest = (int64_t)then.newest;
    o->renewal = (int64_t)then.renewal;
    o->fresh = then.fresh > 0;
    o->gamma = then.gamma;
    l->objective = then.objective;
    l->excess = then.excess;
    l->stage = (int64_t)then.stage;
    l->iteration = (int64_t)then.iteration;
    l->run->gap = then.gap;
    while (l->sharpened < (int64_t)then.sharpened) (void)pli_lbfgs_sharpen(l);
    return PLAIT_OK;
}

pli_solver_keeps pli_lbfgs_blocks_keeps(pli_lbfgs_blocks *o) {
    return (pli_solver_keeps){ .state = o, .kept = kept, .restore = restore, .take = restore };
}
