/* signals.h - SIGINT and SIGTERM end a run after its clock, SIGUSR1 prints who waits for what, `plait doctor` asks for it.
 *
 * The handler writes the signal's number to a pipe, and a thread of its own reads it there and acts. (Not sigwait: a
 * library may have started threads before main, which do not block what we block.) The first SIGINT or SIGTERM (or
 * SIGUSR2, as which plait launch hands these on) sets `stop`, which train looks at; the second ends the process at
 * once, by that signal. One at a time in a process. */
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
    pthread_mutex_t mutex;
    plait_comm    **comm; /* [n] under mutex: ranks of this process that run */
    int64_t         n, capacity;
} pli_signals;

/** Blocks the signals in the caller, and so in all threads that it starts later, so that none of their calls is
 *  interrupted; sets the handler and starts the thread. close undoes it. */
plait_status pli_signals_open(pli_signals *signals, pli_talk *talk, plait_error *err);
void         pli_signals_close(pli_signals *signals);

/** A rank of this process begins and ends; between the two it is asked who waits for what. Any thread. */
void pli_signals_enter(pli_signals *signals, plait_comm *comm);
void pli_signals_leave(pli_signals *signals, plait_comm *comm);

#endif
