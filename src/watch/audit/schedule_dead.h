/* watch/audit/schedule_dead.h - which workers of a run died, and in which clock: for the audits of schedules and of
 * scopes. */
#ifndef PLI_WATCH_SCHEDULE_DEAD_H
#define PLI_WATCH_SCHEDULE_DEAD_H

#include "watch/audit/audit.h"

typedef struct pli_schedule_dead {
    int32_t  workers;
    bool    *gone;    /* [workers] a server has learned that it is dead, and its log has no end */
    int64_t *ended;   /* [workers] the worker has ended all clocks below this one */
    int64_t *counted; /* [workers] a server knows that it has ended those below this one */
} pli_schedule_dead;

/** Reads all streams. Errors: EFORMAT, ENOMEM. */
plait_status pli_schedule_dead_read(pli_schedule_dead *dead, const pli_logfile *file, plait_error *err);
void         pli_schedule_dead_free(pli_schedule_dead *dead);
/** Did the worker die in the clock? Then it took part in it, and never heard of its end. */
bool pli_schedule_died_in(const pli_schedule_dead *dead, int32_t worker, int64_t clock);
/** Has a server counted the worker as one that has ended the clock? */
bool pli_schedule_counted(const pli_schedule_dead *dead, int32_t worker, int64_t clock);
/** How many workers died in this clock or before. */
int32_t pli_schedule_dead_by(const pli_schedule_dead *dead, int64_t clock);
/** Does the log lack anything but what a dead rank may not have written? */
bool pli_schedule_lacks(const pli_schedule_dead *dead, const pli_logfile *file);

#endif
