/* cli/dashboard/host.h - a run's dashboard behind HTTP on loopback, carried by the module plait-http.so.
 *
 * Every request must bring the token, ?token=..., which only the address that was printed has: other users of the
 * machine can reach the port, and web pages in a browser can send it requests. */
#ifndef PLI_CLI_DASHBOARD_HOST_H
#define PLI_CLI_DASHBOARD_HOST_H

#include "watch/dashboard/dashboard.h"

enum { PLI_DASH_TOKEN = 33 };

typedef struct pli_dash_host pli_dash_host;

/** A sample of the run (pli_dash_sample), which the host frees by pli_free; NULL: there is none now. */
typedef char *pli_dash_ask_fn(void *user);

/** Fills token with 32 random hex digits. Errors: EIO. */
plait_status pli_dash_token(char token[PLI_DASH_TOKEN], plait_error *err);
/** Is the module there? Errors: EMODULE, with what installs it. */
plait_status pli_dash_check(plait_error *err);

/** Listens on 127.0.0.1; port 0: any free one. dash lives longer than the host. Whenever somebody looks, and the last
 *  sample is older than a moment, a thread of the host calls ask. Errors: EMODULE; EIO the port is taken; ENOMEM. */
plait_status pli_dash_host_open(int32_t port, const char token[PLI_DASH_TOKEN], pli_dash *dash, pli_dash_ask_fn *ask,
                                void *user, pli_dash_host **host_out, plait_error *err);
int32_t      pli_dash_host_port(const pli_dash_host *host);
/** Ends it. If somebody has just looked, it first waits a moment until he has seen the end. NULL is fine. */
void         pli_dash_host_close(pli_dash_host **host);

#endif
