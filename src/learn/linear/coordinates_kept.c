/* What a checkpoint holds of a path of penalties: the point at hand, the weights chosen so far, how far the path has
 * come, and what was told of its penalties. Scores, slopes and the working set follow from the point, so a run resumes
 * with any number of workers: it takes up the penalty that it had reached, at the weights that it had, and comes to the
 * same optimum within the tolerance. */
#include <string.h>

#include "learn/keep/keep.h"
#include "learn/linear/coordinates.h"
#include "sched/sched.h"
#include "table/table.h"

#define POINT "cd.point"
#define CHOSEN "cd.chosen"
#define NUMBERS "cd.numbers"
#define TOLD "cd.told"
#define STEPS "cd.steps"

enum { AT, MOST, LEAST, N, BEFORE, LOSS, L1, GAP, DONE, UPDATES, OF_NUMBERS };
enum { NUMBER, PENALTY, OBJECTIVE, REST, NONZEROS, VALIDATION, OF_TOLD };

struct pli_coordinates_kept {
    double *point;              /* [features + 1] */
    double  numbers[OF_NUMBERS];
    double *told;               /* [1 + n_told, OF_TOLD]; the first row is empty, so that there is always one */
    int64_t n_told, told_capacity;
    int64_t *stepped;           /* [n_stepped] clocks of steps, for the event log of a run whose workers come and go */
    int64_t n_stepped, stepped_capacity;
};
typedef struct pli_coordinates_kept state;

plait_status pli_coordinates_kept_make(pli_coordinates *c) {
    state *k = c->kept = pli_calloc(1, sizeof *k);
    if (k != NULL) k->point = pli_calloc((size_t)c->columns.features + 1, sizeof *k->point);
    if (k == NULL || k->point == NULL || !pli_grow((void **)&k->told, &k->told_capacity, 1, OF_TOLD * sizeof *k->told))
        return pli_fail(c->run->err, PLAIT_ENOMEM, "no memory for a checkpoint's weights");
    memset(k->told, 0, OF_TOLD * sizeof *k->told);
    return PLAIT_OK;
}

void pli_coordinates_kept_free(pli_coordinates *c) {
    if (c->kept == NULL) return;
    pli_free(c->kept->point);
    pli_free(c->kept->told);
    pli_free(c->kept->stepped);
    pli_free(c->kept);
    c->kept = NULL;
}

plait_status pli_coordinates_note(pli_coordinates *c, const plait_penalty *penalty) {
    state *k = c->kept;
    if (!pli_grow((void **)&k->told, &k->told_capacity, k->n_told + 2, OF_TOLD * sizeof *k->told))
        return pli_fail(c->run->err, PLAIT_ENOMEM, "no memory for %lld penalties", (long long)k->n_told + 1);
    double *row = k->told + ++k->n_told * OF_TOLD;
    row[NUMBER] = (double)penalty->number;
    row[PENALTY] = penalty->l1;
    row[OBJECTIVE] = penalty->objective;
    row[REST] = penalty->gap;
    row[NONZEROS] = (double)penalty->nonzeros;
    row[VALIDATION] = penalty->validation_loss;
    return PLAIT_OK;
}

plait_status pli_coordinates_note_step(pli_coordinates *c) {
    state *k = c->kept;
    if (!c->doors.doors || pli_comm_events(c->run->comm) == NULL) return PLAIT_OK;
    if (!pli_grow((void **)&k->stepped, &k->stepped_capacity, k->n_stepped + 1, sizeof *k->stepped))
        return pli_fail(c->run->err, PLAIT_ENOMEM, "no memory for %lld steps", (long long)k->n_stepped + 1);
    k->stepped[k->n_stepped++] = plait_job_clock_now(c->run->job) - 1;
    return PLAIT_OK;
}

/* A newcomer tells the event log which steps it has missed. */
static plait_status tell_missed(pli_coordinates *c) {
    state        *k = c->kept;
    const int64_t known = k->n_stepped;
    int64_t       n = 0;
    if (!pli_resume_has(c->run, STEPS, &n) || n <= known) return PLAIT_OK;
    if (!pli_grow((void **)&k->stepped, &k->stepped_capacity, n, sizeof *k->stepped))
        return pli_fail(c->run->err, PLAIT_ENOMEM, "no memory for %lld steps", (long long)n);
    PLI_TRY(pli_resume_array(c->run, STEPS, n, sizeof *k->stepped, k->stepped));
    for (int64_t i = known; i < n; i++) pli_schedule_tell_missed(c->run->comm, k->stepped[i]);
    k->n_stepped = n;
    return PLAIT_OK;
}

plait_status pli_coordinates_keep(pli_coordinates *c, bool *stop_out) {
    const pli_penalties *p = c->penalties;
    state               *k = c->kept;
    memcpy(k->point, c->w, (size_t)c->columns.features * sizeof *c->w);
    k->point[c->columns.features] = pli_coordinates_intercept(c);
    const double numbers[OF_NUMBERS] = { [AT] = (double)p->at, [MOST] = p->most, [LEAST] = p->least,
                                         [N] = (double)p->n, [BEFORE] = p->before, [LOSS] = p->loss, [L1] = p->l1,
                                         [GAP] = p->gap, [DONE] = (double)p->done, [UPDATES] = (double)c->updates };
    memcpy(k->numbers, numbers, sizeof numbers);
    return pli_keep_epoch(c->run, c->run->epochs_done - 1, stop_out);
}

int32_t pli_coordinates_kept(const pli_coordinates *c, pli_kept kept_out[PLI_KEPT]) {
    const state  *k = c->kept;
    const int64_t rows = c->columns.features + 1;
    kept_out[0] = (pli_kept){ POINT, "F64", rows, 0, k->point };
    kept_out[1] = (pli_kept){ CHOSEN, "F64", rows, 0, c->penalties->values };
    kept_out[2] = (pli_kept){ NUMBERS, "F64", OF_NUMBERS, 0, k->numbers };
    kept_out[3] = (pli_kept){ TOLD, "F64", k->n_told + 1, OF_TOLD, k->told };
    if (k->n_stepped == 0) return 4;
    kept_out[4] = (pli_kept){ STEPS, "I64", k->n_stepped, 0, k->stepped };
    return 5;
}

plait_status pli_coordinates_restore(pli_coordinates *c) {
    pli_penalties *p = c->penalties;
    state         *k = c->kept;
    pli_run       *run = c->run;
    const int64_t  rows = c->columns.features + 1;
    int64_t        told = 0;
    if (!pli_resume_has(run, TOLD, &told) || told < 1 ||
        !pli_grow((void **)&k->told, &k->told_capacity, told, OF_TOLD * sizeof *k->told))
        return pli_fail(run->err, PLAIT_EMISMATCH, "the checkpoint has no penalties of optimizer cd");
    PLI_TRY(pli_resume_array(run, POINT, rows, 8, k->point));
    PLI_TRY(pli_resume_array(run, CHOSEN, rows, 8, p->values));
    PLI_TRY(pli_resume_array(run, NUMBERS, OF_NUMBERS, 8, k->numbers));
    PLI_TRY(pli_resume_array(run, TOLD, told, OF_TOLD * 8, k->told));
    k->n_told = told - 1;
    p->at = (int64_t)k->numbers[AT];
    p->most = k->numbers[MOST];
    p->least = k->numbers[LEAST];
    p->n = (int64_t)k->numbers[N];
    p->before = k->numbers[BEFORE];
    p->loss = k->numbers[LOSS];
    p->l1 = k->numbers[L1];
    p->gap = k->numbers[GAP];
    p->done = (int64_t)k->numbers[DONE];
    c->updates = (int64_t)k->numbers[UPDATES];
    c->resumed = true;
    return run->handed != NULL ? tell_missed(c) : PLAIT_OK;
}

const double *pli_coordinates_point(const pli_coordinates *c) { return c->kept->point; }

void pli_coordinates_tell_again(const pli_coordinates *c) {
    const pli_run *run = c->run;
    const bool     tells = run->opts->path > 0 && run->opts->penalty != NULL && pli_comm_leads(run->comm);
    for (int64_t i = 1; tells && i <= c->kept->n_told; i++) {
        const double       *row = c->kept->told + i * OF_TOLD;
        const plait_penalty told = { .number = (int64_t)row[NUMBER], .of = c->penalties->n, .l1 = row[PENALTY],
                                     .objective = row[OBJECTIVE], .gap = row[REST],
                                     .nonzeros = (int64_t)row[NONZEROS], .validation_loss = row[VALIDATION] };
        run->opts->penalty(run->opts->user, &told);
    }
}
