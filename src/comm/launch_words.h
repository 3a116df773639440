/* comm/launch_words.h - what mpirun itself says while it reaches other machines, kept apart from what ranks say. */
#ifndef PLI_COMM_LAUNCH_WORDS_H
#define PLI_COMM_LAUNCH_WORDS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/text.h"
#include "comm/launch.h"

typedef struct pli_launch_words {
    struct pli_launch_stream {
        int      pipe[2]; /* mpirun writes into the second end */
        int      to;      /* our own stream                    */
        pli_text held;    /* mpirun's own words, so far        */
        bool     open, through; /* through: somebody else has spoken, and all passes */
    } stream[2];
    pthread_t   thread;
    _Atomic int over;
} pli_launch_words;

/** Begins to listen to an mpirun that is still to be started. false: it cannot; then mpirun speaks for itself. */
bool pli_launch_words_open(pli_launch_words *words);
/** In mpirun's process, between fork and exec: its output goes to the listener. */
void pli_launch_words_become(const pli_launch_words *words);
/** mpirun has been started, or could not be: this process writes nothing there. */
void pli_launch_words_begin(pli_launch_words *words);
/** mpirun has ended, with this code. true: it did not reach all machines, and why [one line] says what it had to say of
 *  that. false: what was held is told now. */
bool pli_launch_words_close(pli_launch_words *words, int code, char why[PLI_LAUNCH_WHY]);

#endif
