/* signals.h - SIGINT and SIGTERM end a run after its clock, SIGUSR1 prints who waits for what, `plait doctor` asks for
 * it.
 *
 * The handler writes the signal's number to a pipe, and a thread of its own reads it there and acts. (Not sigwait: a
 * library may have started threads before main, which do not block what we block.) The first SIGINT or SIGTERM (or
 * SIGUSR2, as which plait launch hands these on) sets `stop`, which train looks at; one that comes a second later, or
 * more, ends the process at once, by that signal. What comes within that second counts as the first: `timeout` signals
 * a process and its group. Until pli_signals_begun nothing is learnt yet, and the data may never come: then the first
 * signal ends the process. One at a time in a process. */
#ifndef PLI_CLI_SIGNALS_H
#define PLI_CLI_SIGNALS_H

#include <pthread.h>

#include "cli/talk.h"

typedef struct pli_signals {
    pthread_t       thread;
    int             pipe[2];
    int             asked; /* listens for plait doctor; -1: not */
    pli_talk       *talk;
    int             stop; /* signal thread writes (atomic), ranks read      */
    uint64_t        first_ns; /* when that was; signal thread               */
    void (*unbegun)(void *user, const char *what); /* says what is to be said before the process ends with 75 */
    void           *user;
    pthread_mutex_t mutex;
    bool            begun; /* under mutex */
    plait_comm    **comm; /* [n] under mutex: ranks of this process that run */
    int64_t         n, capacity;
} pli_signals;

/** Blocks the signals in the caller, and so in all threads that it starts later, so that none of their calls is
 *  interrupted; sets the handler and starts the thread. unbegun is called on that thread, by a signal ("SIGINT") that
 *  comes before pli_signals_begun; behind it the process ends. close undoes it. */
plait_status pli_signals_open(pli_signals *signals, pli_talk *talk, void (*unbegun)(void *user, const char *what),
                              void *user, plait_error *err);
void         pli_signals_close(pli_signals *signals);
/** The data are read: from now on a signal ends the run after its clock. Any thread; more than once is as good. */
void         pli_signals_begun(pli_signals *signals);

/** A rank of this process begins and ends; between the two it is asked who waits for what. Any thread. */
void pli_signals_enter(pli_signals *signals, plait_comm *comm);
void pli_signals_leave(pli_signals *signals, plait_comm *comm);

#endif
