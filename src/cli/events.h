/* cli/events.h - the event log of a run, as its ranks open it: one file where they are threads, FILE.RANK where they
 * are processes. */
#ifndef PLI_CLI_EVENTS_H
#define PLI_CLI_EVENTS_H

#include <pthread.h>

#include <plait/comm.h>

#include "watch/eventlog.h"

typedef struct pli_run_events {
    pthread_mutex_t lock; /* of log, which the first rank opens */
    pli_eventlog   *log;
} pli_run_events;

#define PLI_RUN_EVENTS_INIT { .lock = PTHREAD_MUTEX_INITIALIZER }

/** From here on the rank's jobs raise their events into the log at path. id: of the run, as the leading worker has it.
 *  Collective over all ranks. */
plait_status pli_run_events_open(pli_run_events *events, plait_comm *comm, const char *path, const char id[17],
                                 plait_error *err);
/** After the run. */
plait_status pli_run_events_close(pli_run_events *events, plait_error *err);

#endif
