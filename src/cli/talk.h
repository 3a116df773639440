/* talk.h - what train says on stderr while it runs: notes, a progress bar on a terminal, else lines ever farther apart.
 * May be called from any thread. */
#ifndef PLI_CLI_TALK_H
#define PLI_CLI_TALK_H

#include <pthread.h>

#include "cli/cli.h"

typedef struct pli_talk {
    pthread_mutex_t mutex; /* guards what follows, and keeps lines whole */
    bool            quiet, terminal, color;
    bool            simulated; /* the figures of progress are of simulated time */
    pli_text        errors;    /* lines that were heard from the library    */
    bool            bar;      /* a bar stands on the terminal's last line   */
    uint64_t        drawn_ns; /* when it was drawn                          */
    int64_t         next;     /* clock from which the next plain line is due */
    plait_log       log;      /* the sink to hand to the library            */
} pli_talk;

void pli_talk_open(pli_talk *talk, bool quiet);
void pli_talk_clear(pli_talk *talk); /* removes the bar */
void pli_talk_close(pli_talk *talk);

/** One line "plait: ..."; silent if quiet. */
void pli_talk_say(pli_talk *talk, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** The same for what was asked for (SIGUSR1): never silent. */
void pli_talk_tell(pli_talk *talk, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** As pli_talk_tell, but silent where another process of the job has said the same (cli/verdict.h). */
void pli_talk_tell_once(pli_talk *talk, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Has the library said this error already, while the run went on? */
bool pli_talk_has_heard(pli_talk *talk, const char *text);
void pli_talk_progress(pli_talk *talk, const plait_progress *progress);

/** The bar for a terminal of so many columns, without color: never as wide. Cut from the least needed side. */
void pli_talk_bar(const plait_progress *progress, bool simulated, int columns, pli_text *text);
/** 61.4 -> "1:01". */
void pli_talk_time(double seconds, char text[32]);
/** 1234567 -> "1.2M". */
void pli_talk_count(double count, char text[32]);

#endif
