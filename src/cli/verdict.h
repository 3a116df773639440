/* cli/verdict.h - how the processes of a job tell `plait launch` their exit codes; what ranks tell it of themselves is
 * in comm/tell_launch.h. */
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
    int       code;        /* of the first process that did not end with 0, of those that did not end for another's
                              sake where there is one; 0: none said so */
    int32_t   begun, ended; /* have met the others; of these, have ended by themselves or were killed */
    bool      failed, died; /* one has ended with another code than 0; one was killed */
    bool      survived;     /* the work is done all the same: its leader said so, or all have ended well but the dead
                               without whom it went on */
    pli_cause cause;
} pli_verdicts;

/* Where they tell it. */
typedef struct pli_verdict_file {
    char *path; /* NULL: there is no place for it, and the launcher's code must do */
    int   fd;   /* holds the lock by which other launches know that this one lives */
} pli_verdict_file;

/** Launch: makes the file and names it to the processes to come; removes those of launches that were killed. */
void pli_verdicts_open(pli_verdict_file *file);
/** path NULL: nothing. */
void pli_verdicts_read(const char *path, pli_verdicts *verdicts_out);
/** Removes the file; frees and NULLs the path. */
void pli_verdicts_close(pli_verdict_file *file);
/** Why a process of the program is about to end with another code than 0. */
void pli_verdict_why(int32_t rank, const char *text);
/** A process was asked to end. */
void pli_verdict_asked(void);
/** The job's work is done although a rank was lost. */
void pli_verdict_survived(void);
/** A process of the program ends with this code. Nothing happens where no launch asks for it. */
void pli_verdict_give(int code);
/** The process `pid`, of a program that need not know of launch, has ended with this code; by its keeper. The code that
 *  the process should end with to its launcher: 0 for one that the others took for lost, else the same. */
int pli_verdict_keep(int32_t rank, int32_t pid, int code);

/** Has another process of the job said this line before ranks could speak to each other? Without a file: no. */
bool pli_verdict_was_said(const char *line);

#endif
