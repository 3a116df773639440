/* signal_pipe.h - signals in a pipe, which a thread reads when it likes: a handler may do little more than write a few
 * bytes. Each has the time at which it came, since the thread may come to it much later: it was printing, or the
 * machine has much else to do. */
#ifndef PLI_CLI_SIGNAL_PIPE_H
#define PLI_CLI_SIGNAL_PIPE_H

#include "base/base.h"

typedef struct pli_signal {
    uint64_t came_ns; /* by pli_now_ns */
    int32_t  number;  /* 0: nobody sends any more */
} pli_signal;

/** Opens the pipe; its writing end drops what does not fit. Errors: EIO. */
plait_status pli_signal_pipe_open(int pipe_out[2], plait_error *err);
/** From now on each of these signals [n] is written to fd, also if a shell has set it to be ignored, as for processes
 *  in its background. While a handler runs, all of them are blocked. Only one fd at a time. */
void pli_signal_pipe_take(int fd, const int *numbers, size_t n);
/** The next signal; waits for it. false: none came; errno is EINTR if a signal's handler has cut the wait short. */
bool pli_signal_pipe_next(int fd, pli_signal *signal_out);
/** Signals write to no pipe any more; fd: whoever waits at its reading end is told number 0. */
void pli_signal_pipe_leave(int fd);

#endif
