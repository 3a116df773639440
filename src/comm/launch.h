/* comm/launch.h - starting the ranks of a job as processes of an MPI. */
#ifndef PLI_COMM_LAUNCH_H
#define PLI_COMM_LAUNCH_H

#include <stdint.h>

#include <plait/status.h>

/** Finds the mpirun that belongs to Plait: PLAIT_MPIRUN, .venv/bin/ in a directory above the program's own, then the
 *  path. path_out is freed with pli_free. Errors: EMODULE there is none (with the remedy). */
plait_status pli_launch_find(char **path_out, plait_error *err);

/** Starts `processes` copies of argv (ended by NULL) under mpirun, also as root, with fewer cores than processes and on
 *  shared cores; hands signals on to it; returns when all have ended. The first SIGINT or SIGTERM reaches the ranks as
 *  SIGUSR2 (finish, save, end: a rank's program treats it as SIGTERM), the second as it is; SIGHUP, SIGUSR1, SIGUSR2 do.
 *  *exit_out: the launcher's exit code, 128 + n where a signal ended it. The caller's handlers are put back.
 *  Errors: EINVAL; EMODULE no mpirun; EIO it cannot be started. One at a time in a process. */
plait_status pli_launch(int32_t processes, char *const *argv, int32_t *exit_out, plait_error *err);

#endif
