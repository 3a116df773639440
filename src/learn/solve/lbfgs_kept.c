/* Checkpoints of a run of L-BFGS. They are cut between two iterations: the vectors lie in tables then, and what a
 * worker knows beside them is the same on all workers: the matrix of dot products, which slots hold pairs, how the
 * objective fell, how sharp a smoothed loss is. So a run resumes with any number of workers; with as many as before it
 * goes on to the same bits. */
#include <string.h>

#include "learn/solve/lbfgs_run.h"
#include "table/table.h"

#define NUMBERS "lbfgs.numbers"

enum { M = PLI_LBFGS_MEMORY_MAX };

/* All are doubles, so that they are an array. */
typedef struct numbers {
    double         sy[M][M], yhy[M][M];
    pli_lbfgs_dots dots;
    double         age[M], used[M], pairs, objective, excess, length, first_stretch, stretch, stage, sharpened,
        iteration, gap;
} numbers;

enum { OF_NUMBERS = sizeof(numbers) / sizeof(double) };

/* --- a run that keeps --------------------------------------------------------------------------------------------- */

plait_status pli_lbfgs_keep_begin(pli_lbfgs *l, const pli_solver_keeps *keeps, bool *resumed_out) {
    pli_run *run = l->run;
    run->solver_keeps = *keeps;
    *resumed_out = run->resume != NULL;
    PLI_TRY(pli_keep_begin(run));
    PLI_TRY(pli_resume_tables(run));
    if (!*resumed_out) return PLAIT_OK;
    PLI_TRY(plait_job_barrier(run->job));
    pli_job_resume(run->job);
    return PLAIT_OK;
}

plait_status pli_lbfgs_keep(pli_lbfgs *l) {
    bool stop = false;
    if (l->run->keep == NULL) return PLAIT_OK; /* who is told to stop says so in a pass */
    PLI_TRY(pli_keep_epoch(l->run, l->iteration - 1, &stop));
    l->stop = l->stop || stop;
    return PLAIT_OK;
}

/* A newcomer takes what a checkpoint would hold (pli_solver_keeps.take). Rows are taken anew in each clock. */
plait_status pli_lbfgs_doors_begin(pli_lbfgs *l, bool *came_out) {
    static const pli_steps none;
    return pli_doors_begin(&l->doors, l->run, &none, came_out);
}

plait_status pli_lbfgs_door(pli_lbfgs *l, bool *came_out) {
    bool changed;
    *came_out = false;
    return l->stop ? PLAIT_OK : pli_doors_open(&l->doors, came_out, &changed);
}

plait_status pli_lbfgs_keep_end(pli_lbfgs *l, plait_status status) {
    pli_run *run = l->run;
    if (status == PLAIT_OK) status = pli_keep_settle(run);
    run->kept = pli_keep_last(run, &run->unkept);
    pli_keep_end(run);
    pli_doors_end(&l->doors);
    run->solver_keeps = (pli_solver_keeps){ .state = NULL };
    pli_free(l->kept);
    return status;
}

/* --- numbers, and objectives behind them -------------------------------------------------------------------------- */

const double *pli_lbfgs_write_numbers(pli_lbfgs *l, int64_t n, const double *own, int64_t *all_out) {
    const int64_t fallen = l->run->epochs_done + 1;
    *all_out = n + fallen;
    if (!pli_grow((void **)&l->kept, &l->kept_capacity, n + fallen, sizeof *l->kept)) return NULL;
    memcpy(l->kept, own, (size_t)n * sizeof *own);
    memcpy(l->kept + n, l->fallen, (size_t)fallen * sizeof *l->fallen);
    return l->kept;
}

plait_status pli_lbfgs_read_numbers(pli_lbfgs *l, const char *name, int64_t n, double *own) {
    const pli_run *run = l->run;
    int64_t        all = 0;
    if (!pli_resume_has(run, name, &all) || all < n)
        return pli_fail(run->err, PLAIT_EMISMATCH, "the checkpoint has no %s, so it is of another way to train", name);
    if (!pli_grow((void **)&l->fallen, &l->fallen_capacity, all - n + 1, sizeof *l->fallen))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the objectives of %lld iterations",
                        (long long)(all - n));
    PLI_TRY(pli_resume_rows(run, name, 0, n, all, 8, own));
    return pli_resume_rows(run, name, n, all - n, all, 8, l->fallen);
}

/* --- with vectors in tables --------------------------------------------------------------------------------------- */

static int32_t kept(void *state, pli_kept kept_out[PLI_KEPT]) {
    pli_lbfgs *l = state;
    numbers    now = { .dots = l->dots, .pairs = l->pairs, .objective = l->objective, .excess = l->excess,
                       .length = l->length, .first_stretch = l->first_stretch, .stretch = l->stretch,
                       .stage = (double)l->stage, .sharpened = (double)l->sharpened,
                       .iteration = (double)l->iteration, .gap = l->run->gap };
    int64_t all;
    memcpy(now.sy, l->sy, sizeof now.sy);
    memcpy(now.yhy, l->yhy, sizeof now.yhy);
    for (int32_t j = 0; j < M; j++) {
        now.age[j] = l->age[j];
        now.used[j] = l->args.used[j];
    }
    const double *data = pli_lbfgs_write_numbers(l, OF_NUMBERS, (const double *)&now, &all);
    kept_out[0] = (pli_kept){ NUMBERS, "F64", all, 0, data };
    return 1;
}

static plait_status restore(void *state) {
    pli_lbfgs *l = state;
    numbers    then;
    PLI_TRY(pli_lbfgs_read_numbers(l, NUMBERS, OF_NUMBERS, (double *)&then));
    memcpy(l->sy, then.sy, sizeof l->sy);
    memcpy(l->yhy, then.yhy, sizeof l->yhy);
    for (int32_t j = 0; j < M; j++) {
        l->age[j] = (int32_t)then.age[j];
        l->args.used[j] = (int32_t)then.used[j];
    }
    l->dots = then.dots;
    l->pairs = (int32_t)then.pairs;
    l->objective = then.objective;
    l->excess = then.excess;
    l->length = then.length;
    l->first_stretch = then.first_stretch;
    l->stretch = then.stretch;
    l->stage = (int64_t)then.stage;
    l->iteration = (int64_t)then.iteration;
    l->run->gap = then.gap;
    while (l->sharpened < (int64_t)then.sharpened) (void)pli_lbfgs_sharpen(l);
    return PLAIT_OK;
}

pli_solver_keeps pli_lbfgs_keeps(pli_lbfgs *l) {
    return (pli_solver_keeps){ .state = l, .kept = kept, .restore = restore, .take = restore };
}
