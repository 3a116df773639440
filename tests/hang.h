/* hang.h - a child process that is ended when it hangs. What computes without an end, as a simulated run does, is ended
 * by the processor time that it has had: on a busy machine it takes longer, and is no hang. What waits without an end
 * is ended by the wall clock, much later. */
#ifndef PLI_TESTS_HANG_H
#define PLI_TESTS_HANG_H

#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child; seconds of processor time. 0: it may take as long as it likes. */
static inline void end_hang(unsigned seconds) {
    const struct itimerval timer = { .it_value = { .tv_sec = (time_t)seconds } };
    setitimer(ITIMER_PROF, &timer, NULL);
    alarm(5 * seconds);
}

/* Did the child end so? status: as waitpid tells it. */
static inline bool hung(int status) {
    return WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM);
}

#endif
