/* signal_pipe.h - signals as numbers in a pipe, which a thread reads when it likes: a handler may do little more than
 * write a byte. */
#ifndef PLI_CLI_SIGNAL_PIPE_H
#define PLI_CLI_SIGNAL_PIPE_H

#include "base/base.h"

/** Opens the pipe; its writing end drops what does not fit. Errors: EIO. */
plait_status pli_signal_pipe_open(int pipe_out[2], plait_error *err);
/** From now on each of these signals [n] writes its number, a byte, to fd, also if a shell has set it to be ignored, as
 *  for processes in its background. While a handler runs, all of them are blocked. Only one fd at a time. */
void pli_signal_pipe_take(int fd, const int *numbers, size_t n);
/** Signals write to no pipe any more. */
void pli_signal_pipe_leave(void);

#endif
