/* plait_fit: a communicator, a training, and its end in one call. */
#include <plait/fit.h>

#include "learn/run/run.h"

/* What the ranks of this process share; one of them, the leading worker, writes to it. */
typedef struct fit {
    const plait_train_opts *opts;
    plait_report            report;
    plait_model            *model;
} fit;

static plait_status train(plait_comm *comm, void *user) {
    fit         *f = user;
    plait_model *model = NULL;
    plait_report report;
    plait_status status = plait_train(comm, f->opts, &report, &model);
    if (!pli_comm_is_worker(comm)) return status;
    if (pli_comm_shares_process(comm) && !pli_comm_leads(comm)) {
        plait_model_destroy(&model);
        return status;
    }
    f->model = model;
    if (status >= 0) f->report = report;
    return status;
}

/* One rank takes the caller's thread; several get threads of their own. */
static plait_status run(const plait_comm_opts *opts, fit *f, plait_error *err) {
    plait_comm  *comm = NULL;
    plait_status status = plait_comm_open(opts, &comm, err);
    if (status == PLAIT_EREFUSED) return plait_comm_run(opts, train, f, err);
    if (status < 0) return status;
    return plait_comm_close(&comm, train(comm, f), err);
}

plait_status plait_fit(const plait_comm_opts *comm_opts, const plait_train_opts *opts, plait_report *report_out,
                       plait_model **model_out, plait_error *error_out) {
    plait_error own, *err = error_out != NULL ? error_out : &own;
    fit         f = { .opts = opts };
    PLI_TRY(PLI_GIVEN(err, opts));
    PLI_TRY(PLI_GIVEN(err, model_out));
    *model_out = NULL;
    plait_status status = run(comm_opts, &f, err);
    *model_out = f.model;
    if (status < 0) return status;
    if (report_out != NULL) *report_out = f.report;
    if (f.report.interrupted == 0) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINTERRUPTED,
                    "the fit was stopped after clock %lld; the model is that of this clock, and was not evaluated",
                    (long long)f.report.clocks);
}
