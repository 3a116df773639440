/* The rows of L-BFGS: which of them a worker passes over, and what becomes of a dead worker's.
 *
 * A clock adds something of each row to the tables: a gradient, a metric. If a worker dies in it, its heirs add that of
 * its rows, in the same clock (inherit.h). So what the tables have is of all rows, each counted once, and with exact
 * sums has the bits of a run in which nobody died. No iteration is done again.
 *
 * The losses are a sum beside the tables. A worker that has died since it ended its clock is missing there, though its
 * gradient counts. And who stands in for a worker that had ended its clock after all must not count its losses twice.
 * So the sum is of the rows as they lie by the list of the collectives, which is the same on all workers. Where a
 * worker's rows in the clock were others, it looks at the losses once more, without pushing anything; so do all if the
 * sum finds that another worker is missing. */
#include "learn/solve/lbfgs_run.h"

#include "learn/solve/settled.h"
#include "table/table.h"

/* --- whose rows --------------------------------------------------------------------------------------------------- */

plait_status pli_lbfgs_rows_begin(pli_lbfgs *l) {
    pli_run *run = l->run;
    PLI_TRY(pli_batches_create(run->data, run->opts->seed, 1, false, run->fraction > 0 ? pli_run_holds_back : NULL, run,
                               &l->batches, run->err));
    PLI_TRY(pli_settled_begin(run, l->batches));
    if (run->opts->replicas < 2 && run->settled == NULL) return pli_batches_get(l->batches, 0, 0, &l->batch, run->err);
    l->held = pli_array((size_t)pli_dataset_blocks(run->data) + 1, sizeof *l->held);
    if (l->held == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of blocks");
    PLI_TRY(pli_heir_begin(&l->heir, run, l->batches));
    l->heir.home = run->homes;
    return PLAIT_OK;
}

void pli_lbfgs_rows_end(pli_lbfgs *l) {
    pli_heir_end(&l->heir);
    pli_settled_end(l->run);
    pli_free(l->held);
    l->held = NULL;
    pli_batches_destroy(&l->batches);
}

/* The rows of the clock that begins. */
static plait_status take_rows(pli_lbfgs *l) {
    if (l->heir.part == NULL) return PLAIT_OK;
    PLI_TRY(pli_heir_batch(&l->heir, 0, 0, false, &l->batch));
    for (l->n_held = 0; l->n_held < l->batch.parts; l->n_held++)
        l->held[l->n_held] = l->batch.part[l->n_held].block->number;
    return PLAIT_OK;
}

/* --- a clock ------------------------------------------------------------------------------------------------------ */

plait_status pli_lbfgs_clock(pli_lbfgs *l, pli_lbfgs_add *add, void *arg) {
    plait_status status;
    PLI_TRY(take_rows(l));
    PLI_TRY(add(l, arg));
    while ((status = plait_job_clock(l->run->job)) == PLAIT_STAND_IN) {
        PLI_TRY(pli_heir_batch(&l->heir, 0, 0, true, &l->batch));
        PLI_TRY(add(l, arg));
    }
    if (status == PLAIT_OK) pli_run_tell_lost(l->run);
    return status;
}

/* --- losses ------------------------------------------------------------------------------------------------------- */

typedef struct pass {
    const void *values; /* NULL: those of table w, which no clock changes */
    pli_total   total;
    bool        again; /* these are rows of a dead worker */
} pass;

static plait_status compute(pli_lbfgs *l, const pass *p, pli_total *total) {
    const void *values = p->values;
    if (values == NULL) PLI_TRY(plait_table_read(l->w, 0, l->rows, &values));
    pli_settled_begin_work(l->run);
    PLI_TRY(l->pass->compute(l, values, total));
    pli_settled_end_work(l->run, l->batch.rows);
    return PLAIT_OK;
}

static plait_status add_gradient(pli_lbfgs *l, void *arg) {
    pass     *p = arg;
    pli_total beside = { 0 };
    PLI_TRY(compute(l, p, p->again ? &beside : &p->total));
    p->again = true;
    return PLAIT_OK;
}

/* Has it gone over the rows that are its own by the list of the collectives? */
static bool has_own_rows(const pli_lbfgs *l) {
    const pli_run *run = l->run;
    int32_t        n = 0;
    for (int32_t b = 0; b < pli_dataset_blocks(run->data); b++) {
        if (!pli_living_is_mine(run, run->data, b)) continue;
        if (n == l->n_held || l->held[n] != b) return false;
        n++;
    }
    return n == l->n_held;
}

/* Adds up the losses of these rows alone. */
static plait_status look(pli_lbfgs *l, pass *p) {
    const pli_run *run = l->run;
    l->batch = (pli_batch){ .part = l->heir.part };
    for (int32_t b = 0; b < pli_dataset_blocks(run->data); b++) {
        if (!pli_living_is_mine(run, run->data, b)) continue;
        pli_part *part = &l->batch.part[l->batch.parts++];
        PLI_TRY(pli_batches_part(l->batches, b, 0, 0, part, run->err));
        l->batch.rows += part->rows;
    }
    p->total = (pli_total){ 0 };
    l->looks = true;
    const plait_status status = compute(l, p, &p->total);
    l->looks = false;
    return status;
}

/* Adds up what all have, and who wishes to stop: hits are not counted, so their field carries that. */
static plait_status agree(pli_lbfgs *l, pass *p, pli_sums *own_out, pli_sums *all_out) {
    *own_out = pli_total_sums(&p->total);
    pli_total_add(&p->total, &(pli_sums){ .right = pli_run_stops_here(l->run) });
    return pli_total_agree(l->run->comm, &p->total, all_out);
}

plait_status pli_lbfgs_evaluate(pli_lbfgs *l, const void *values, pli_sums *own_out) {
    pli_run *run = l->run;
    pass     p = { .values = values };
    pli_sums all;
    int32_t  absent;
    bool     moved; /* the next clock takes the rows as they lie then */
    PLI_TRY(pli_lbfgs_clock(l, add_gradient, &p));
    run->clocks_done++;
    absent = pli_comm_absent(run->comm);
    if (l->heir.part != NULL && !has_own_rows(l)) PLI_TRY(look(l, &p));
    PLI_TRY(agree(l, &p, own_out, &all));
    while (l->heir.part != NULL && pli_run_again(run, &absent)) {
        PLI_TRY(look(l, &p));
        PLI_TRY(agree(l, &p, own_out, &all));
    }
    l->loss = all.loss / (double)run->train_rows;
    l->excess = l->is_soft ? all.absolute / (double)run->train_rows : 0;
    l->stop = all.right > 0;
    return pli_settled_meet(run, &moved);
}
