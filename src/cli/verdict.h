/* cli/verdict.h - how the processes of a job tell `plait launch` their exit codes. */
#ifndef PLI_CLI_VERDICT_H
#define PLI_CLI_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/* What came first in a job that did not end well. */
typedef struct pli_cause {
    int32_t rank;      /* -1: not known                              */
    int     signal;    /* that killed it; 0: none, or not known      */
    char    host[64];
    char    text[300]; /* what it said last, or why it ended; or empty */
} pli_cause;

/* What a job's processes have said so far. */
typedef struct pli_verdicts {
    int       code;        /* of the first process that did not end with 0, of those that did not end for another's sake where
                              there is one; 0: none said so */
    int32_t   begun, ended; /* have their rank; of these, have ended by themselves or were killed */
    bool      failed, died; /* one has ended with another code than 0; one was killed */
    bool      survived;     /* the work is done all the same */
    pli_cause cause;
} pli_verdicts;

/** Launch: makes the file and names it to the processes to come. NULL: there is no place for it, and the launcher's
 *  code must do. */
char *pli_verdicts_open(void);
/** path NULL: nothing. */
void pli_verdicts_read(const char *path, pli_verdicts *verdicts_out);
/** Removes the file; frees and NULLs the path. */
void pli_verdicts_close(char **path);
/** A rank (-1: not known) was killed by a signal; by its keeper. What it had said last may be empty. */
void pli_verdict_lost(int32_t rank, int32_t pid, int signal, const char *said);
/** Why a process of the program is about to end with another code than 0. */
void pli_verdict_why(int32_t rank, const char *text);
/** A process has its rank now; and: it was asked to end. */
void pli_verdict_begun(int32_t rank);
void pli_verdict_asked(void);
/** The job's work is done although a rank was lost. */
void pli_verdict_survived(void);
/** A process of the program ends with this code. Nothing happens where no launch asks for it. */
void pli_verdict_give(int code);

/** Has another process of the job said this line before ranks could speak to each other? Without a file: no. */
bool pli_verdict_was_said(const char *line);

#endif
