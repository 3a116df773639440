/* talk.h - train's messages on stderr: notes, and a progress bar on a terminal, or else lines at growing intervals. Any
 * thread may call these functions. */
#ifndef PLI_CLI_TALK_H
#define PLI_CLI_TALK_H

#include <pthread.h>

#include "cli/cli.h"

typedef struct pli_talk {
    pthread_mutex_t mutex; /* guards the fields below, and keeps lines whole */
    bool            quiet, terminal, color;
    bool            simulated; /* times in progress reports are simulated   */
    pli_text        errors;    /* error lines that the library has logged   */
    bool            bar;      /* the terminal's last line is a bar          */
    uint64_t        drawn_ns; /* when it was drawn                          */
    int64_t         next;     /* clock from which the next plain line is due */
    plait_log       log;      /* the sink for the library's options         */
} pli_talk;

void pli_talk_open(pli_talk *talk, bool quiet);
void pli_talk_clear(pli_talk *talk); /* removes the bar */
void pli_talk_close(pli_talk *talk);

/** Prints one line "plait: ...", unless talk is quiet. */
void pli_talk_say(pli_talk *talk, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Prints one line that the user has asked for (SIGUSR1), even if talk is quiet. */
void pli_talk_tell(pli_talk *talk, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** As pli_talk_tell, unless another process of the job has printed the same (cli/verdict.h). */
void pli_talk_tell_once(pli_talk *talk, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Has the library logged this error already, during the run? */
bool pli_talk_has_heard(pli_talk *talk, const char *text);
void pli_talk_progress(pli_talk *talk, const plait_progress *progress);

/** Adds the bar for a terminal with so many columns, without color, and always narrower. If it does not fit, the least
 *  important pieces are left out. */
void pli_talk_bar(const plait_progress *progress, bool simulated, int columns, pli_text *text);
/** Formats 61.4 as "1:01". */
void pli_talk_time(double seconds, char text[32]);
/** Formats 1234567 as "1.2M". */
void pli_talk_count(double count, char text[32]);

#endif
