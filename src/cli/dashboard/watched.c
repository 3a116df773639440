#include "cli/dashboard/watched.h"

#include <signal.h>

#include "cli/cli.h"
#include "cli/dashboard/host.h"
#include "cli/dashboard/link.h"

struct pli_watched {
    pli_dash       dash;
    pli_dash_hub  *hub;
    pli_dash_host *host;
};

static plait_status open_both(pli_watched *w, int32_t port, plait_error *err) {
    char token[PLI_DASH_TOKEN];
    PLI_TRY(pli_dash_token(token, err));
    PLI_TRY(pli_dash_hub_open(&w->dash, &w->hub, err));
    PLI_TRY(pli_dash_host_open(port, token, &w->dash, pli_dash_hub_ask, w->hub, &w->host, err));
    pli_cli_usage("launch: dashboard: http://127.0.0.1:%d/?token=%s", (int)pli_dash_host_port(w->host), token);
    return PLAIT_OK;
}

plait_status pli_watched_open(int32_t port, pli_watched **watched_out, plait_error *err) {
    pli_watched *w = pli_calloc(1, sizeof *w);
    sigset_t     all, before;
    if (w == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a dashboard");
    pli_dash_init(&w->dash);
    sigfillset(&all); /* signals are for launch's own thread */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const plait_status status = open_both(w, port, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status < 0) pli_watched_close(&w);
    *watched_out = w;
    return status;
}

void pli_watched_note(pli_watched *w, const char *kind, const char *text) {
    if (w != NULL && text != NULL) pli_dash_note(&w->dash, kind, text);
}

void pli_watched_close(pli_watched **watched) {
    pli_watched *w = *watched;
    if (w == NULL) return;
    *watched = NULL;
    pli_dash_host_close(&w->host); /* asks the hub until then */
    pli_dash_hub_close(&w->hub);
    pli_dash_free(&w->dash);
    pli_free(w);
}
