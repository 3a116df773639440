/* cli/dashboard/watched.h - the dashboard of `plait launch`: in launch's own process, so that no rank's death ends
 * it. */
#ifndef PLI_CLI_DASHBOARD_WATCHED_H
#define PLI_CLI_DASHBOARD_WATCHED_H

#include "base/base.h"

typedef struct pli_watched pli_watched;

/** Opens it, names its socket in the environment of later processes, and prints its address. Errors: those of
 *  pli_dash_host_open and pli_dash_hub_open. */
plait_status pli_watched_open(int32_t port, pli_watched **watched_out, plait_error *err);
/** Adds an event. watched NULL: nothing; text NULL: there was no memory for it. */
void         pli_watched_note(pli_watched *watched, const char *kind, const char *text);
void         pli_watched_close(pli_watched **watched);

#endif
