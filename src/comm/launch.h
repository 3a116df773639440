/* comm/launch.h - starting the ranks of a job as processes of an MPI. */
#ifndef PLI_COMM_LAUNCH_H
#define PLI_COMM_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include <plait/status.h>

enum { PLI_LAUNCH_WHY = 256 };

/** Finds the mpirun that belongs to Plait: PLAIT_MPIRUN, .venv/bin/ in a directory above the program's own, then the
 *  path. path_out is freed with pli_free. Errors: EMODULE there is none (with the remedy). */
plait_status pli_launch_find(char **path_out, plait_error *err);

/* The processes to be started, and how they ended. */
typedef struct pli_launch_job {
    int32_t      processes;
    char *const *argv;       /* ended by NULL */
    char *const *keeper;     /* words before argv: a program that runs it; may be NULL */
    bool         hears;      /* the caller hears from the keeper how each process on this machine ends. Then mpirun does
                              * not end the job when one fails: it would drop what the others have just printed */
    const char  *hosts;      /* "a,b:4": machines, with how many processes each takes; NULL: see hostfile */
    const char  *hostfile;   /* a file with one machine on each line ("b slots=4"); both NULL: this machine */
    bool       (*is_over)(void *user); /* asked a few times a second: true ends all processes that still run; may be
                                        * NULL */
    void        *user;
    int32_t      code;       /* out: the launcher's exit code, or 128 + n if signal n ended it */
    int          asked;      /* out: the first signal that asked to stop; 0: none did          */
    bool         was_ended;  /* out: is_over has ended it */
    bool         unreached;  /* out: one of the hosts could not be reached, so no process was started */
    char         why[PLI_LAUNCH_WHY]; /* out: the message about that, one line */
} pli_launch_job;

/** Starts the processes under mpirun, and returns when all have ended. It works as root, with fewer cores than
 *  processes and on shared cores. If the MPI can, the other processes are told when one dies. Processes that a killed
 *  mpirun leaves behind are ended, too; if this process is killed, mpirun ends its own.
 *  Signals are handed on. The first SIGINT or SIGTERM reaches the ranks as SIGUSR2 (finish, save, end: a rank's program
 *  treats it as SIGTERM), one that comes a second later as it is; SIGHUP, SIGUSR1 and SIGUSR2 as they are. The caller's
 *  handlers are restored. Children that the caller had before are ended with the rest.
 *  On other machines the programs must have the same paths as here; mpirun reaches the machines by ssh, and gives
 *  them the variables PLAIT_*. Errors: EINVAL, also if hosts and hostfile are both given; EMODULE no mpirun; EIO it
 *  cannot be started. One at a time in a process. */
plait_status pli_launch(pli_launch_job *job, plait_error *err);

#endif
