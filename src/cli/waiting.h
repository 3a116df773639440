/* waiting.h - a line of talk where a command waits for data that a pipe does not give: else it stands still without a
 * word. */
#ifndef PLI_CLI_WAITING_H
#define PLI_CLI_WAITING_H

#include <pthread.h>

#include "cli/talk.h"

typedef struct pli_waiting {
    pli_talk       *talk;
    char           *names; /* of the pipes, as a list; NULL: there is none, and nobody waits */
    pthread_t       thread;
    pthread_mutex_t mutex;
    pthread_cond_t  changed;
    bool            over; /* under mutex */
} pli_waiting;

/** From now on data are read from those of paths [n, NULL ones count for nothing] that are pipes, "-" among them. Where
 *  they have not been read to their end a second later, a line names them, unless talk is quiet. */
void pli_waiting_begin(pli_waiting *waiting, pli_talk *talk, const char *const *paths, int64_t n);
/** They are read. Any thread; more than once is as good. */
void pli_waiting_is_over(pli_waiting *waiting);
/** Undoes begin. */
void pli_waiting_end(pli_waiting *waiting);

#endif
