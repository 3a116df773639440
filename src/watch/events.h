/* watch/events.h - the event log of a run: one file if ranks are threads, FILE.RANK for each rank if they are
 * processes. plait/events.h has the public part. */
#ifndef PLI_WATCH_EVENTS_H
#define PLI_WATCH_EVENTS_H

#include <plait/events.h>

#include "base/base.h"

/** As plait_events_create. id: the run's name in the log, 16 characters (pli_run_id). */
plait_status pli_events_create(const char *path, const char id[17], plait_events **events_out, plait_error *err);
/** 16 characters that no other run has: a hash of time, process and host. */
void pli_run_id(char id[17]);

#endif
