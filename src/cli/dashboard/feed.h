/* cli/dashboard/feed.h - what a train gives to a dashboard: its own (train --dashboard), or that of the launch that has
 * started it.
 *
 * A dashboard of its own lies in the process of the leading rank. If ranks are processes all of them know its port and
 * token: the rank that comes to lead when the leading one dies takes both up, and the page's address stays. */
#ifndef PLI_CLI_DASHBOARD_FEED_H
#define PLI_CLI_DASHBOARD_FEED_H

#include "cli/dashboard/host.h"
#include "cli/members.h"
#include "cli/signals.h"
#include "watch/watch.h"

typedef struct pli_dash_feed {
    bool           own, linked; /* --dashboard was given; a launch has a dashboard: then that one is fed */
    int32_t        port;
    char           token[PLI_DASH_TOKEN];
    int            link;  /* -1: none */
    pli_dash      *dash;  /* NULL: not in this process */
    pli_dash_host *host;
    pli_signals   *signals;
    pli_talk      *talk;
    pli_told_member *member; /* [members]: whom a rank that comes to lead shows; NULL: not known */
    int32_t        members;
} pli_dash_feed;

#define PLI_DASH_FEED_INIT { .link = -1 }

/** given: --dashboard PORT was given. Errors: EMODULE it needs a module that is missing. */
plait_status pli_dash_feed_init(pli_dash_feed *feed, bool given, int64_t port, pli_signals *signals, pli_talk *talk,
                                plait_error *err);
/** Is there a dashboard to feed? The same on all ranks. */
bool pli_dash_feed_is_on(const pli_dash_feed *feed);
/** The leading rank, which has opened the dashboard, tells the others its port and token. Collective over the
 *  workers. */
plait_status pli_dash_feed_share(pli_dash_feed *feed, plait_comm *comm, plait_error *err);
/** Tells of this process's rank, if it is alone here. */
void pli_dash_feed_rank(pli_dash_feed *feed, int32_t rank, const char *host, const char *role);
/** For the leading rank: opens the dashboard, if this job is to have its own, prints its address, and lets it listen to
 *  *metrics. run: the line "run". again: the rank has come to lead after a death. Errors: those of
 *  pli_dash_host_open. */
plait_status pli_dash_feed_lead(pli_dash_feed *feed, bool again, const pli_text *run, pli_metrics **metrics,
                                plait_error *err);
/** Tells the line "run" again: now more is known. */
void pli_dash_feed_run(pli_dash_feed *feed, const pli_text *run);
/** Ends it; rank >= 0: this process's rank says bye. Once a process, also if nothing was begun. */
void pli_dash_feed_close(pli_dash_feed *feed, int32_t rank);

#endif
