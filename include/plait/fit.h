/* plait/fit.h - fits a model in one call, for programs that have no loop of their own around it, such as bindings.
 *
 *     plait_fit(NULL, &opts, &report, &model, &error)     then plait/model.h
 *
 * A binding calls it on a thread of its own language, gives data in memory (plait/data.h), and stops it by *opts.stop.
 *
 * Threads: all callbacks of plait_train_opts come while plait_train runs, on the thread of a rank that is in it: with
 * one rank in the process that is the caller's own thread, never another. With several ranks as threads, `loaded` comes
 * on each of them, also at once; the others come on one rank's thread, one at a time, and on another's only if that
 * rank dies. The exception is opts.data->log and the communicator's log (plait/log.h): any thread. A callback calls
 * nothing on the communicator. *stop may be set from anywhere: a signal handler, another thread, a callback.
 */
#ifndef PLAIT_FIT_H
#define PLAIT_FIT_H

#include <plait/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Fits a model in one call: opens a communicator, trains, and closes it. One rank in this process (the default of
 *  comm_opts, which may be NULL, and always on mpi) works on the calling thread, which needs 8 MiB of stack; with more
 *  workers on `threads`, or on `sim`, ranks have threads of their own. Errors: those of plait_comm_open and
 *  plait_train, whose text is in error_out; EINTERRUPTED *opts->stop has ended it: then *model_out is the model so far,
 *  and report_out is filled. Collective over the job's processes. */
PLAIT_API plait_status plait_fit(const plait_comm_opts *comm_opts, const plait_train_opts *opts,
                                 plait_report *report_out, plait_model **model_out, plait_error *error_out);

#ifdef __cplusplus
}
#endif
#endif
