/* The end of a child: waiting for it and reaping it are two steps, so that whoever hands signals on to it can forget
 * its number in between, when it is still no other's. */
#include "base/os.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void pli_child_attend(int32_t pid) {
    siginfo_t     info = { 0 };
    struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
    /* where the system has no such descriptor: a look every 20 ms */
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
        poll(&end, 1, end.fd >= 0 ? -1 : 20);
    if (end.fd >= 0) close(end.fd);
}

int32_t pli_child_reap(int32_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
