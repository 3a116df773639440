/* cli/verdict.h - how the processes of a job report their exit codes to `plait launch`. comm/tell_launch.h has the
 * other reports of ranks. */
#ifndef PLI_CLI_VERDICT_H
#define PLI_CLI_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/* The first cause in a job that failed. */
typedef struct pli_cause {
    int32_t rank;      /* -1: not known                              */
    int     signal;    /* the signal that killed it; 0: none, or not known */
    char    host[64];
    char    text[300]; /* its last output, or why it ended; may be empty */
} pli_cause;

/* The reports of a job's processes so far. */
typedef struct pli_verdicts {
    int       code;        /* of the first process that ended with another code than 0, by its own fault if there is
                              such a process; 0: there is none */
    int32_t   begun, ended; /* ranks that have met the others; those of them that have ended or were killed */
    bool      failed, died; /* a rank has ended with another code than 0; a rank was killed */
    bool      survived;     /* the work is done nevertheless: the leading rank reported it, or all have succeeded except
                               dead ranks without which the run went on */
    bool      stopped;      /* a run that had gone on without a dead rank has stopped on request */
    pli_cause cause;
} pli_verdicts;

/* The file for the reports. */
typedef struct pli_verdict_file {
    char *path; /* NULL: it could not be made, so only the launcher's code counts */
    int   fd;   /* holds the lock that tells other launches that this one lives */
} pli_verdict_file;

/** For launch: makes the file, and names it in the environment of later processes; removes files of launches that were
 *  killed. */
void pli_verdicts_open(pli_verdict_file *file);
/** Reads the reports; path NULL: there are none. */
void pli_verdicts_read(const char *path, pli_verdicts *verdicts_out);
/** Removes the file; frees and NULLs the path. */
void pli_verdicts_close(pli_verdict_file *file);
/** Reports why this process is about to end with another code than 0. */
void pli_verdict_why(int32_t rank, const char *text);
/** Reports that this process was asked to end. */
void pli_verdict_asked(void);
/** Reports that the job's work is done although a rank was lost. */
void pli_verdict_survived(void);
/** Reports that this process ends with this code. Without a launch it does nothing. */
void pli_verdict_give(int code);
/** For the keeper: reports that process `pid`, of any program, has ended with this code. Returns the code for the
 *  launcher: 0 if the others took the rank for lost, else the same. */
int pli_verdict_keep(int32_t rank, int32_t pid, int code);

/** Has another process of the job already printed this line, before the ranks could talk to each other? Without a file:
 *  no. */
bool pli_verdict_was_said(const char *line);

#endif
