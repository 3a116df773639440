/* cli/dashboard/link.h - how the processes of a job tell `plait launch --dashboard` what goes on, over a Unix socket in
 * Linux's abstract namespace, which launch names in the environment.
 *
 * Each process connects, and tells of itself in a line "start"; the leading one sends the run's lines. A process that
 * dies loses its connection. Lines are messages of their own, and a sender never waits: if launch is slow a line is
 * lost, and training goes on. A process on another machine cannot connect, and tells nothing; ranks there still show in
 * samples, which a process here takes. */
#ifndef PLI_CLI_DASHBOARD_LINK_H
#define PLI_CLI_DASHBOARD_LINK_H

#include "watch/dashboard/dashboard.h"

extern const char pli_dash_variable[]; /* the variable that names the socket */

/* --- a rank's end ------------------------------------------------------------------------------------------------- */

/** Connects to launch; -1: no launch has a dashboard, or it is not on this machine. */
int  pli_dash_link_open(void);
/** Sends a line, or drops it. fd -1: nothing. */
void pli_dash_link_send(int fd, const char *line, size_t bytes);

/* --- launch's end ------------------------------------------------------------------------------------------------- */

typedef struct pli_dash_hub pli_dash_hub;

/** Listens, names the socket in the environment, and starts the thread that hands lines to dash. Errors: EIO,
 *  ENOMEM. */
plait_status pli_dash_hub_open(pli_dash *dash, pli_dash_hub **hub_out, plait_error *err);
/** Asks a connected process for a sample; the caller frees it. NULL: none answers. user: the hub. One thread. */
char *pli_dash_hub_ask(void *user);
void  pli_dash_hub_close(pli_dash_hub **hub);

#endif
