/* spawn.h - one process after the other, its output into files, ended in good order when the user asks. */
#ifndef PLI_CLI_SPAWN_H
#define PLI_CLI_SPAWN_H

#include "cli/cli.h"

/** From here to the end SIGINT, SIGTERM and SIGHUP are handed on to the child; the first is kept in mind. One at a
 *  time in a process. */
void pli_spawn_begin(void);
void pli_spawn_end(void);
/** The first signal that asked to stop; 0: none. */
int pli_spawn_stopped(void);

/** Runs argv (ended by NULL; argv[0] is a path) with the environment env until it has ended, in a process group of
 *  its own; out_path and err_path get what it writes. *exit_out: its exit code, 128 + n where signal n ended it.
 *  Errors: EIO. */
plait_status pli_spawn(char *const *argv, char *const *env, const char *out_path, const char *err_path,
                       int32_t *exit_out, plait_error *err);

#endif
