/* train.h - a run of train, between the files that begin it (train.c) and end it (train_end.c). */
#ifndef PLI_CLI_TRAIN_H
#define PLI_CLI_TRAIN_H

#include "cli/events.h"
#include "cli/lost.h"
#include "cli/settings.h"
#include "cli/signals.h"
#include "cli/trace.h"
#include "cli/waiting.h"
#include "comm/comm.h"
#include "learn/learn.h"
#include "watch/board/board.h"
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
    _Atomic int32_t           size;  /* of the job; each rank writes the same                    */
    _Atomic int32_t           alone; /* the rank, where it has the process for itself; else -1   */
    pli_run_events            events;
    pli_run_trace             trace;
    /* Written by the leading rank's thread, read when all ranks are done. */
    bool         led; /* the leading rank lives in this process */
    pli_metrics *metrics; /* read by the signals' thread, too, once `prepared` */
    _Atomic bool prepared;
    pli_board   *board;
    plait_report report;
    plait_simulated simulated;
    plait_error     save_failed; /* what kept the model from being saved before the job ended */
    bool         saved, noted;
    bool            outcast;  /* this process's rank was taken for dead */
    bool         survived; /* a rank has died, and the run went on; any rank's */
    plait_error     lead_failed; /* what a rank that came to lead could not go on writing */
    pli_lost        lost;        /* the leading rank's */
    int64_t      epochs; /* planned: as asked for, then as last told; 0: not known */
} pli_train_run;

/** The workers of the job, spares among them. */
static inline int32_t pli_train_workers(const pli_train_run *r) { return r->size - (int32_t)r->settings->servers; }

/** Notes on options without effect: once, and only when what has been asked for is under way, since a mistake is told
 *  without them. */
void pli_train_say_notes(pli_train_run *r);
/** A signal (`what`) has come while the data were read, maybe from a pipe that gives none. user: the run. On the
 *  signals' thread. */
void pli_train_say_unbegun(void *user, const char *what);
/** The ranks have ended, with this status: closes what the run has written, talks of its end, prints the record.
 *  Returns the exit code. */
int pli_train_end(pli_train_run *r, plait_status status, plait_error *err);

#endif
