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

/* What is started, and how it ended. */
typedef struct pli_launch_job {
    int32_t      processes;
    char *const *argv;       /* ended by NULL */
    char *const *keeper;     /* words that stand before argv: a program that runs it; may be NULL */
    const char  *hosts;      /* "a,b:4": machines, with their number of places; NULL: see hostfile       */
    const char  *hostfile;   /* a file that names them, a line each ("b slots=4"); both NULL: this machine */
    bool       (*is_over)(void *user); /* asked a few times a second: true ends all that still runs; may be NULL */
    void        *user;
    int32_t      code;       /* out: the launcher's exit code, 128 + n where a signal ended it */
    bool         was_asked;  /* out: a signal asked to stop                                    */
    bool         was_ended;  /* out: is_over said so                                           */
    bool         unreached;  /* out: one of the hosts could not be reached, so no process was started */
    char         why[PLI_LAUNCH_WHY]; /* out: what was said of that, one line */
} pli_launch_job;

/** Starts the processes under mpirun, also as root, with fewer cores than processes and on shared cores, and so that
 *  the death of one is told to the others where the MPI can do that; hands signals on to it; returns when all have
 *  ended. Whatever mpirun leaves behind when it is killed is ended, too; and should this process be killed, mpirun ends
 *  its own. The first SIGINT or SIGTERM reaches the ranks as SIGUSR2 (finish, save, end: a rank's program treats it as
 *  SIGTERM), one that comes a second later as it is; SIGHUP, SIGUSR1, SIGUSR2 do. The caller's handlers are put back;
 *  children that it had before are ended with the rest. On other machines the programs must lie where they lie here;
 *  mpirun reaches them by ssh, and gives them the variables PLAIT_*. Errors: EINVAL, also for hosts and hostfile both;
 *  EMODULE no mpirun; EIO it cannot be started. One at a time in a process. */
plait_status pli_launch(pli_launch_job *job, plait_error *err);

#endif
