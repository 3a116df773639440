/* plait/events.h - event logs of a program's own jobs, for `plait audit`.
 *
 * An event log has every read, update and clock of every rank, the server functions that update tables, and the steps
 * of schedules. `plait audit FILE...` proves or refutes from it what the consistency promises (docs/audit.md); with
 * --schedule it proves that no two steps of a schedule that may run at the same time touch the same key
 * (plait/schedule.h).
 *
 *     plait_events *events;
 *     plait_events_create("run.events", &events, &error);
 *     job_opts.events = events;
 *     plait_run(&comm_opts, &job_opts, work, user, &error);
 *     plait_events_close(&events, &error);                      then: plait audit run.events
 *
 * Ranks of one process (threads, sim) share one file. Ranks that are processes write one each,
 * with its rank behind the path, and `plait audit run.events.*` takes them all.
 *
 * A log is written in place, so that a run that crashes leaves one that can be read as far as it was written. */
#ifndef PLAIT_EVENTS_H
#define PLAIT_EVENTS_H

#include <plait/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_events plait_events;

/** Makes an event log for one run at path; the file is opened when the first job begins. error_out may be NULL.
 *  Errors: EINVAL no path; ENOMEM. Not collective; any thread, before the run. */
PLAIT_API plait_status plait_events_create(const char *path, plait_events **events_out, plait_error *error_out);

/** Makes the caller's later jobs write to the log. plait_job_opts.events does this; call it where the job is not the
 *  program's own, before plait_train(). Errors: EINVAL, also if the log is of an earlier run, or the run has another
 *  log; EIO the file cannot be made; ENOMEM; those of a broadcast. The
 *  text is in plait_comm_error(). Collective over all ranks. */
PLAIT_API plait_status plait_events_record(plait_comm *comm, plait_events *events);

/** Ends the file and frees the log; *events may be NULL, and is NULL afterwards. Call it when the run has returned.
 *  Errors: EIO a write failed, now or earlier: the log is not whole. */
PLAIT_API plait_status plait_events_close(plait_events **events, plait_error *error_out);

#ifdef __cplusplus
}
#endif
#endif
