/* Signals in a pipe. See signal_pipe.h. */
#include "cli/signal_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static _Atomic int signal_fd = -1; /* the pipe's end that the handler writes to */

static void handler(int number) {
    const int        kept = errno;
    const pli_signal came = { .came_ns = pli_now_ns(), .number = number };
    if (write(signal_fd, &came, sizeof came) < 0) { /* the pipe is full of signals: this one can be dropped */
    }
    errno = kept;
}

plait_status pli_signal_pipe_open(int pipe_out[2], plait_error *err) {
    if (pipe2(pipe_out, O_CLOEXEC) != 0) return pli_fail_errno(err, errno, "a pipe for signals cannot be opened");
    fcntl(pipe_out[1], F_SETFL, O_NONBLOCK);
    return PLAIT_OK;
}

void pli_signal_pipe_take(int fd, const int *numbers, size_t n) {
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    signal_fd = fd;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < n; i++) sigaddset(&action.sa_mask, numbers[i]);
    for (size_t i = 0; i < n; i++) sigaction(numbers[i], &action, NULL);
}

bool pli_signal_pipe_next(int fd, pli_signal *signal_out) {
    const ssize_t n = read(fd, signal_out, sizeof *signal_out); /* each is written whole, so read whole */
    if (n >= 0) errno = 0;
    return n == (ssize_t)sizeof *signal_out;
}

void pli_signal_pipe_leave(int fd) {
    const pli_signal end = { .number = 0 };
    signal_fd = -1;
    while (write(fd, &end, sizeof end) < 0 && errno == EINTR) {}
}
