/* plait/fit.h - fits a model in one call, for programs that have no loop of their own around it, such as bindings.
 *
 *     plait_fit(NULL, &opts, &report, &model, &error)     then plait/model.h
 *
 * A binding calls it on a thread of its own language, gives data in memory (plait/data.h), and stops it by *opts.stop.
 * What it may not do is said there: plait/train.h tells on which thread callbacks come, plait/log.h that log lines may
 * come on any.
 */
#ifndef PLAIT_FIT_H
#define PLAIT_FIT_H

#include <plait/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Fits a model in one call: opens a communicator, trains, and closes it. One rank in this process (the default of
 *  comm_opts, which may be NULL, and always on mpi) works on the calling thread, which needs 8 MiB of stack; with more
 *  workers on `threads`, or on `sim`, ranks have threads of their own. Errors: those of plait_comm_open and plait_train,
 *  whose text is in error_out; EINTERRUPTED *opts->stop has ended it: then *model_out is the model so far, and
 *  report_out is filled. Collective over the job's processes. */
PLAIT_API plait_status plait_fit(const plait_comm_opts *comm_opts, const plait_train_opts *opts,
                                 plait_report *report_out, plait_model **model_out, plait_error *error_out);

#ifdef __cplusplus
}
#endif
#endif
