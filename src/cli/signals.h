/* signals.h - SIGINT and SIGTERM end a run after its clock; SIGUSR1 prints who waits for what, and `plait doctor` asks
 * for the same.
 *
 * The handler writes the signal's number to a pipe, which a thread reads. (sigwait would not do: a library may have
 * started threads before main, which do not block the signals.) The first SIGINT or SIGTERM (or SIGUSR2, by which plait
 * launch passes these on) sets `stop`, which train checks. A second one ends the process at once, by that signal, if it
 * comes a second later or more; earlier ones count as the first, because `timeout` signals both a process and its
 * group. Before pli_signals_begun nothing has been learnt, and the data may never come, so the first signal ends the
 * process. Behind pli_signals_ended the run's result is being told, and the first signal changes nothing. Only one
 * pli_signals may be open in a process. */
#ifndef PLI_CLI_SIGNALS_H
#define PLI_CLI_SIGNALS_H

#include <pthread.h>

#include "cli/talk.h"

typedef struct pli_signals {
    pthread_t       thread;
    int             pipe[2];
    int             asked; /* socket for plait doctor; -1: none */
    pli_talk       *talk;
    int             stop; /* written by the signals' thread (atomic), read by ranks */
    uint64_t        first_ns; /* time of the first signal; for the signals' thread  */
    void (*unbegun)(void *user, const char *what); /* called before the process ends with 75 */
    void           *user;
    pthread_mutex_t mutex;
    bool            begun, ended; /* under mutex */
    plait_comm    **comm; /* [n] under mutex: the running ranks of this process */
    int64_t         n, capacity;
} pli_signals;

/** Blocks the signals in the caller, and so in all threads that it starts later, so that none of their calls is
 *  interrupted. Sets the handler and starts the thread. If a signal ("SIGINT") comes before pli_signals_begun, the
 *  thread calls unbegun, and the process ends. pli_signals_close undoes it all. */
plait_status pli_signals_open(pli_signals *signals, pli_talk *talk, void (*unbegun)(void *user, const char *what),
                              void *user, plait_error *err);
void         pli_signals_close(pli_signals *signals);
/** Says that the data are read: from now on a signal ends the run after its clock. Any thread; may be called again. */
void         pli_signals_begun(pli_signals *signals);
/** Says that the run has ended: a signal that comes now only counts as the first of two. */
void         pli_signals_ended(pli_signals *signals);

/** A sample of the job's ranks for a dashboard (pli_sample_tell); the caller frees it. NULL: no rank runs here. Any
 *  thread. */
char        *pli_signals_sample(pli_signals *signals);

/** Called when a rank of this process begins and ends; in between it can be asked what it waits for. Any thread. */
void pli_signals_enter(pli_signals *signals, plait_comm *comm);
void pli_signals_leave(pli_signals *signals, plait_comm *comm);

#endif
