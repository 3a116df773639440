/* comm/tell_launch.h - what a process tells the `plait launch` that has started it.
 *
 * launch names a file in the environment; a process that has something to tell adds a line. One short append is whole,
 * whichever processes write at the same time. A process that no launch has started, or one on another host, where there
 * is no such file, tells nothing. cli/verdict.c reads the lines.
 *
 *     begun PID RANK                  the rank has met the others
 *     without PID RANK                PID's run has ended well although RANK died in it
 *     lost PID RANK SIGNAL HOST TEXT  the rank is lost; signal 0: the others took it for lost, and it lives, or it
 *                                     has ended with one that has died */
#ifndef PLI_COMM_TELL_LAUNCH_H
#define PLI_COMM_TELL_LAUNCH_H

#include <stdint.h>

extern const char pli_launch_variable[]; /* the variable that names the file */

/** Adds the formatted line, which ends in a newline and has at most 500 bytes. */
__attribute__((format(printf, 1, 2))) void pli_tell_launch(const char *fmt, ...);
/** text is the last error message; it may be empty. */
void pli_tell_launch_lost(int32_t rank, int32_t pid, int signal, const char *text);

#endif
