/* cli/events.h - the event log of a run: one file if ranks are threads, FILE.RANK for each rank if they are
 * processes. */
#ifndef PLI_CLI_EVENTS_H
#define PLI_CLI_EVENTS_H

#include <pthread.h>

#include <plait/comm.h>

#include "watch/eventlog.h"

typedef struct pli_run_events {
    pthread_mutex_t lock; /* guards log, which the first rank opens */
    pli_eventlog   *log;
} pli_run_events;

#define PLI_RUN_EVENTS_INIT { .lock = PTHREAD_MUTEX_INITIALIZER }

/** Makes the rank's jobs write their events to the log at path. id: the run's, taken from the leading worker.
 *  Collective over all ranks. */
plait_status pli_run_events_open(pli_run_events *events, plait_comm *comm, const char *path, const char id[17],
                                 plait_error *err);
/** Closes the log after the run. */
plait_status pli_run_events_close(pli_run_events *events, plait_error *err);

#endif
