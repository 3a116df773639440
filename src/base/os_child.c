/* The end of a child: waiting for it and reaping it are two steps. In between its number still belongs to no other
 * process, so code that hands signals on to the child can forget the number in time. */
#include "base/os.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

bool pli_child_attend(int32_t pid, uint64_t timeout_ns) {
    siginfo_t     info = { 0 };
    struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
    uint64_t      start_ns = pli_now_ns();
    bool          ended;
    /* if the system has no such descriptor: look every 20 ms */
    for (;;) {
        ended = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
        uint64_t passed_ns = pli_now_ns() - start_ns;
        if (ended || passed_ns >= timeout_ns) break;
        int wait_ms = timeout_ns == UINT64_MAX ? -1 : (int)((timeout_ns - passed_ns) / 1000000 + 1);
        if (end.fd < 0 && (wait_ms < 0 || wait_ms > 20)) wait_ms = 20;
        poll(&end, 1, wait_ms);
    }
    if (end.fd >= 0) close(end.fd);
    return ended;
}

int32_t pli_child_reap(int32_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void pli_child_dies_with_parent(int32_t parent, int signal) {
    prctl(PR_SET_PDEATHSIG, signal);
    if (getppid() != parent) raise(signal);
}

void pli_child_adopt(bool on) { prctl(PR_SET_CHILD_SUBREAPER, on ? 1 : 0); }

/* Sends SIGKILL to each child; false: the system does not say which children there are. */
static bool kill_children(void) {
    char  path[64];
    long  pid;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *list = fopen(path, "r");
    if (list == NULL) return false;
    while (fscanf(list, "%ld", &pid) == 1) kill((pid_t)pid, SIGKILL);
    fclose(list);
    return true;
}

void pli_child_end_all(void) {
    while (kill_children()) /* a child that has just been adopted is killed in the next turn */
        while (waitpid(-1, NULL, 0) < 0)
            if (errno != EINTR) return;
}
