/* waiting.h - prints a line while a command waits for data from a pipe, which would otherwise look like a hang. */
#ifndef PLI_CLI_WAITING_H
#define PLI_CLI_WAITING_H

#include <pthread.h>

#include "cli/talk.h"

typedef struct pli_waiting {
    pli_talk       *talk;
    char           *names; /* list of the pipes; NULL: there is none, and no thread */
    pthread_t       thread;
    pthread_mutex_t mutex;
    pthread_cond_t  changed;
    bool            over; /* under mutex */
} pli_waiting;

/** Says that the command now reads paths [n] (NULL ones are skipped). If some are pipes, "-" among them, and they are
 *  not read to their end a second later, a line names them, unless talk is quiet. */
void pli_waiting_begin(pli_waiting *waiting, pli_talk *talk, const char *const *paths, int64_t n);
/** Says that all paths are read. Any thread; may be called again. */
void pli_waiting_is_over(pli_waiting *waiting);
/** Undoes begin. */
void pli_waiting_end(pli_waiting *waiting);

#endif
