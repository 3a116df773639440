/* comm/launch_words.h - keeps what mpirun itself says while it reaches other machines apart from what ranks say. */
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
        int      to;      /* our own stream, to which it is passed on */
        pli_text held;    /* text that may be mpirun's own, so far */
        bool     open, through; /* through: a rank has spoken, and all text is passed on */
    } stream[2];
    pthread_t   thread;
    _Atomic int over;
} pli_launch_words;

/** Prepares to listen to an mpirun that is not started yet. false: it cannot; then mpirun's text is not filtered. */
bool pli_launch_words_open(pli_launch_words *words);
/** Called in mpirun's process, between fork and exec: directs its output to the listener. */
void pli_launch_words_become(const pli_launch_words *words);
/** Called when mpirun has been started, or could not be: closes the ends that mpirun writes to. */
void pli_launch_words_begin(pli_launch_words *words);
/** Called when mpirun has ended, with its exit code. true: it did not reach all machines, and why [one line] has its
 *  message about that. false: text that was held back is printed now. */
bool pli_launch_words_close(pli_launch_words *words, int code, char why[PLI_LAUNCH_WHY]);

#endif
