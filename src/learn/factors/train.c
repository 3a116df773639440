/* Training: tables, epochs, checkpoints. An epoch is a pass over all ratings; its clocks are the steps of the rotation,
 * or the two sides. Checkpoints are cut between epochs, when the tables hold everything, so a run resumes with any
 * number of workers. */
#include <math.h>
#include <string.h>

#include "learn/factors/factors.h"
#include "learn/keep/keep.h"
#include "learn/solve/progress.h"
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

static plait_status run_epoch(pli_run *run, pli_meter *meter, int64_t epoch, bool *end_out) {
    pli_mf  *m = pli_mf_of(run);
    uint64_t at = pli_comm_span_begin(run->comm);
    m->sums = (pli_sums){ 0 };
    m->epoch = epoch;
    PLI_TRY(m->als ? pli_als_epoch(run) : pli_rotate_epoch(run));
    if (!m->als && m->loss == PLI_FACTORS_SQUARED) m->sums.loss /= 2;
    PLI_TRY(check_finite(run, m->sums.loss, epoch));
    if (epoch == 0) {
        run->first = m->sums;
        pli_total_add(&run->progressive, &m->sums);
    }
    run->epochs_done = epoch + 1;
    pli_run_phase(run, "epoch", epoch, &at);
    pli_meter_tell(meter, &m->sums, epoch, 0, true);
    PLI_TRY(pli_recut(run));
    if (epoch + 1 == run->epochs) return PLAIT_OK;
    PLI_TRY(pli_keep_epoch(run, epoch, end_out));
    run->interrupted = *end_out;
    return PLAIT_OK;
}

static plait_status all_epochs(pli_run *run) {
    pli_meter meter;
    bool      end = false;
    PLI_TRY(begin(run));
    pli_meter_start(&meter, run);
    for (int64_t epoch = run->epochs_done; epoch < run->epochs && !end; epoch++)
        PLI_TRY(run_epoch(run, &meter, epoch, &end));
    PLI_TRY(pli_keep_settle(run));
    return plait_job_barrier(run->job);
}

plait_status pli_mf_train(pli_run *run) {
    const plait_status status = all_epochs(run);
    run->kept = pli_keep_last(run, &run->unkept);
    pli_keep_end(run);
    return status;
}
