/* spawn.h - runs processes one after the other, with their output in files, and ends them cleanly when the user
 * asks. */
#ifndef PLI_CLI_SPAWN_H
#define PLI_CLI_SPAWN_H

#include "cli/cli.h"

/** From begin to end, SIGINT, SIGTERM and SIGHUP are passed on to the child; the first one is remembered. Only one use
 *  at a time in a process. */
void pli_spawn_begin(void);
void pli_spawn_end(void);
/** The first signal that asked to stop; 0: none. */
int pli_spawn_stopped(void);

/** Runs argv (NULL ends it; argv[0] is a path) with the environment env until it has ended, in its own process group.
 *  out_path and err_path receive its output. *exit_out: its exit code, or 128 + n if signal n ended it. Errors: EIO. */
plait_status pli_spawn(char *const *argv, char *const *env, const char *out_path, const char *err_path,
                       int32_t *exit_out, plait_error *err);

/** Runs body in a child that has a copy of this process, of whose threads it has only the calling one, and gets what it
 *  writes to result [bytes, at most 64 KiB]. *exit_out as above; result is filled if it is PLI_EXIT_DONE. The child
 *  runs no handlers of exit. Errors: EIO. */
plait_status pli_fork(plait_status (*body)(void *user, void *result), void *user, void *result, size_t bytes,
                      int32_t *exit_out, plait_error *err);

#endif
