/* train.h - a run of train, shared by the file that begins it (train.c) and the one that ends it (train_end.c). */
#ifndef PLI_CLI_TRAIN_H
#define PLI_CLI_TRAIN_H

#include "cli/chosen.h"
#include "cli/dashboard/feed.h"
#include "cli/lost.h"
#include "cli/record.h"
#include "cli/settings.h"
#include "cli/signals.h"
#include "cli/trace.h"
#include "cli/waiting.h"
#include "comm/comm.h"
#include "learn/learn.h"
#include "watch/board/board.h"
#include "watch/events.h"
#include "watch/watch.h"

typedef struct pli_train_run {
    const pli_train_settings *settings;
    const pli_opts           *opts;
    int                       argc; /* the words of the command */
    char *const              *argv;
    pli_train_plan            plan;
    pli_talk                  talk;
    pli_signals               signals;
    pli_waiting               waiting; /* for data that come from pipes */
    char                      id[17];
    _Atomic int32_t           size;  /* of the job; each rank writes the same number             */
    _Atomic int32_t           alone; /* the process's only rank; -1: there are several           */
    plait_events             *events;
    pli_run_trace             trace;
    /* Written by the leading rank's thread, read when all ranks are done. */
    bool         led; /* the leading rank lives in this process */
    pli_metrics *metrics; /* read by the signals' thread, too, once `prepared` */
    _Atomic bool prepared;
    pli_board   *board;
    pli_dash_feed dash;
    const char  *told_optimizer; /* that the dashboard knows; compared only */
    plait_comm  *comm; /* of the process's only rank, while it runs; NULL: there are several */
    plait_report report;
    plait_simulated simulated;
    plait_error     save_failed; /* why the model could not be saved before the job ended */
    bool         saved, noted;
    bool            outcast;  /* this process's rank was taken for dead */
    bool         survived; /* a rank has died, and the run went on; any rank may set it */
    plait_error     lead_failed; /* why a rank that came to lead could not continue an output */
    pli_path        path;        /* its penalties, so far */
    pli_train_settings *chosen_settings; /* where the chosen pair is noted: the same as settings */
    bool            asks;        /* rank 0 of another process may have chosen it */
    pli_chosen     *chosen;      /* the pair of --topology auto, --consistency auto; NULL: it was named */
    pli_lost        lost;        /* the lost ranks that the leading rank knows */
    int64_t      epochs; /* planned: as requested, then as last reported; 0: not known */
} pli_train_run;

/** The workers of the job, spares among them. */
static inline int32_t pli_train_workers(const pli_train_run *r) { return r->size - (int32_t)r->settings->servers; }

/** Prints the notes on options without effect, once, and only when the run has begun: an error in the options is
 *  printed without them. */
void pli_train_say_notes(pli_train_run *r);
/** Prints that a signal (`what`) came while the data were read, perhaps from a pipe that gives none. user: the run.
 *  Called on the signals' thread. */
void pli_train_say_unbegun(void *user, const char *what);
/** Called when the ranks have ended with this status: closes the run's outputs, prints how it ended, and prints the
 *  record. Returns the exit code. */
int pli_train_end(pli_train_run *r, plait_status status, plait_error *err);

#endif
