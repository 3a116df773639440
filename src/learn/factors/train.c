/* Training: tables, epochs, checkpoints. An epoch is a pass over all ratings; its clocks are the steps of the rotation,
 * or the two sides. Checkpoints are cut between epochs, when the tables hold everything, so a run resumes with any
 * number of workers. */
#include <math.h>
#include <string.h>

#include "learn/factors/factors.h"
#include "learn/keep/keep.h"
#include "learn/solve/progress.h"
#include "learn/solve/turnover.h"
#include "table/table.h"

/* --- tables ------------------------------------------------------------------------------------------------------- */

void pli_mf_draw_rows(const pli_mf *m, uint64_t seed, uint64_t table, int64_t rows, float *out) {
    for (int64_t i = 0; i < rows; i++) {
        float *row = out + i * m->cols;
        row[PLI_FACTOR_BIAS] = 0;
        row[PLI_FACTOR_SQUARE] = 1;
        pli_factor_draw(seed, table, (uint64_t)i, m->rank, row + PLI_FACTOR_FIRST);
    }
}

static plait_status make_table(pli_run *run, const char *name, uint64_t number, int64_t rows, bool keyed,
                               plait_table **out) {
    pli_mf          *m = pli_mf_of(run);
    plait_table_opts o;
    float           *initial = pli_array((size_t)rows, (size_t)m->cols * sizeof *initial);
    if (initial == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for factors of %lld rows", (long long)rows);
    pli_mf_draw_rows(m, m->seed, number, rows, initial);
    plait_table_opts_init(&o);
    o.name = name;
    o.rows = rows;
    o.cols = m->cols;
    o.keyed = keyed;
    o.initial = initial;
    const plait_status status = plait_training_table(run, &o, out);
    pli_free(initial);
    return status;
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static plait_status begin(pli_run *run) {
    pli_mf *m = pli_mf_of(run);
    PLI_TRY(make_table(run, "users", 0, m->pair.users, false, &m->users));
    PLI_TRY(make_table(run, "items", 1, m->pair.items, m->loss == PLI_FACTORS_BPR, &m->items));
    PLI_TRY(pli_keep_begin(run));
    PLI_TRY(pli_resume_tables(run));
    PLI_TRY(run->resume != NULL ? pli_job_pass(run->job) : plait_job_barrier(run->job));
    if (!m->als) PLI_TRY(pli_rotate_begin(run));
    pli_job_resume(run->job);
    return PLAIT_OK;
}

static plait_status check_finite(const pli_run *run, double loss, int64_t epoch) {
    if (isfinite(loss)) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EDIVERGED, "the loss of model mf is not finite in epoch %lld: give a smaller "
                                               "--learning-rate or a larger --l2, or look for huge values in the data",
                    (long long)epoch + 1);
}

/* The sums of the epoch, or of that part of it that ends as the worker leaves. */
static void settle_sums(pli_run *run) {
    pli_mf *m = pli_mf_of(run);
    if (!m->als && m->loss == PLI_FACTORS_SQUARED) m->sums.loss /= 2;
    if (m->epoch > 0) return;
    run->first = m->sums;
    pli_total_add(&run->progressive, &m->sums);
}

/* The worker has come: others know which clock of which epoch has ended last. */
static void find_place(pli_run *run) {
    pli_mf *m = pli_mf_of(run);
    m->epoch = run->epochs_done;
    m->done = (run->clocks_done - m->first_clock - 1) % m->turns.clocks + 1;
    m->sums = (pli_sums){ 0 };
}

plait_status pli_mf_clock(pli_run *run, plait_status (*stand_in)(pli_run *run), bool *came_out) {
    pli_mf *m = pli_mf_of(run);
    if (pli_turnover_leaves(&m->turns)) settle_sums(run);
    const plait_status status = pli_turnover_clock(&m->turns, stand_in, came_out);
    if (status != PLAIT_OK) return status;
    m->done++;
    if (*came_out) find_place(run);
    return PLAIT_OK;
}

static plait_status run_epoch(pli_run *run, pli_meter *meter, bool *end_out) {
    pli_mf  *m = pli_mf_of(run);
    uint64_t at = pli_comm_span_begin(run->comm);
    m->sums = (pli_sums){ 0 };
    const plait_status status = m->als ? pli_als_epoch(run) : pli_rotate_epoch(run);
    if (status != PLAIT_OK) return status;
    const int64_t epoch = m->epoch;
    settle_sums(run);
    PLI_TRY(check_finite(run, m->sums.loss, epoch));
    run->epochs_done = epoch + 1;
    pli_run_phase(run, "epoch", epoch, &at);
    pli_meter_tell(meter, &m->sums, epoch, 0, true);
    PLI_TRY(pli_recut(run));
    if (epoch + 1 == run->epochs) return PLAIT_OK;
    PLI_TRY(pli_keep_epoch(run, epoch, end_out));
    run->interrupted = *end_out;
    return PLAIT_OK;
}

/* Those who are away wait. PLAIT_END: the others have ended. */
static plait_status begin_turns(pli_run *run) {
    static const pli_steps none;
    pli_mf                *m = pli_mf_of(run);
    m->epoch = run->epochs_done;
    m->first_clock = run->clocks_done;
    m->turns = (pli_loop){ .run = run, .steps = &none, .clocks = m->als ? PLI_ALS_CLOCKS : m->blocks };
    m->turns.away = pli_job_is_away(run->job, plait_comm_rank(run->comm));
    PLI_TRY(pli_turnover_begin(&m->turns));
    if (!m->turns.away) return PLAIT_OK;
    const plait_status status = pli_turnover_wait(&m->turns);
    if (status == PLAIT_OK) find_place(run);
    return status;
}

static plait_status all_epochs(pli_run *run) {
    pli_meter    meter;
    plait_status status;
    bool         end = false;
    PLI_TRY(begin(run));
    pli_meter_start(&meter, run);
    PLI_TRY(status = begin_turns(run));
    for (pli_mf *m = pli_mf_of(run); status == PLAIT_OK && m->epoch < run->epochs && !end; m->epoch++) {
        status = run_epoch(run, &meter, &end);
        m->done = 0;
    }
    if (status != PLAIT_OK) return status;
    PLI_TRY(pli_keep_settle(run));
    return plait_job_barrier(run->job);
}

plait_status pli_mf_train(pli_run *run) {
    const plait_status status = all_epochs(run);
    pli_turnover_end(&pli_mf_of(run)->turns);
    run->kept = pli_keep_last(run, &run->unkept);
    pli_keep_end(run);
    return status;
}
