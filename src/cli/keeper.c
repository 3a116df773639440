/* The keeper of a rank. Only the parent of a process learns which signal has killed it, and an MPI launcher does not
 * tell if the job goes on. So `plait launch` puts this small process between launcher and rank: as the rank's parent it
 * records the signal and the last line that the rank printed, and then dies of the same signal, so that the launcher
 * sees the death as before. The rank's output passes through it unchanged.
 *
 * The keeper also ensures that a rank never outlives its launcher: when mpirun is killed, the kernel kills the keeper,
 * and when the keeper dies, the kernel kills the rank, even a stopped one. */
#include "cli/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/verdict.h"
#include "comm/launcher.h"
#include "comm/tell_launch.h"

static const int handed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT };
enum { HANDED_ON = sizeof handed_on / sizeof handed_on[0], PIECE = 4096, LINE = 200 };

static _Atomic int child; /* the rank's process while it runs; else 0 */

static void hand_on(int number) {
    int kept = errno, pid = atomic_load(&child);
    if (pid > 0) kill(pid, number);
    errno = kept;
}

/* The last line that the rank has printed, as far as it fits. */
typedef struct last_words {
    char   line[LINE], next[LINE];
    size_t n;
} last_words;

static void listen_to(last_words *words, const char *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] == '\n') {
            words->next[words->n] = '\0';
            if (words->n > 0) memcpy(words->line, words->next, words->n + 1);
            words->n = 0;
        } else if (words->n + 1 < sizeof words->next) {
            words->next[words->n++] = data[i] >= ' ' && data[i] <= '~' ? data[i] : '?';
        }
    }
}

/* Runs between fork and exec. The rank gets its own process group, so that signals reach it once, through its
 * keeper. */
static void become(char *const *argv, const int pipe_fds[2], const sigset_t *mask, int32_t parent) {
    setpgid(0, 0);
    pli_child_dies_with_parent(parent, SIGKILL);
    for (int i = 0; i < HANDED_ON; i++) signal(handed_on[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    dup2(pipe_fds[1], STDERR_FILENO);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    execvp(argv[0], argv);
    _exit(127);
}

static pid_t start(char *const *argv, const int pipe_fds[2]) {
    sigset_t all, before;
    int32_t  parent = pli_pid();
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) become(argv, pipe_fds, &before, parent);
    struct sigaction action = { .sa_handler = hand_on, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < HANDED_ON; i++) sigaction(handed_on[i], &action, NULL);
    atomic_store(&child, pid > 0 ? (int)pid : 0);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

/* Passes on the rank's output until the rank has ended; later output of its children is not the rank's. */
static void attend(pid_t pid, int from, last_words *words) {
    char data[PIECE];
    bool ended = false;
    for (;;) {
        struct pollfd said = { .fd = from, .events = POLLIN };
        int           any = poll(&said, 1, ended ? 0 : 10);
        if (any > 0) {
            ssize_t n = read(from, data, sizeof data);
            if (n > 0) {
                listen_to(words, data, (size_t)n);
                for (ssize_t at = 0, put; at < n && (put = write(STDERR_FILENO, data + at, (size_t)(n - at))) > 0;)
                    at += put;
                continue;
            }
            if (n == 0) { /* all writers have closed it */
                (void)pli_child_attend((int32_t)pid, UINT64_MAX);
                return;
            }
        }
        if (any <= 0 && ended) return;
        ended = ended || pli_child_attend((int32_t)pid, 0);
    }
}

static void die_of(int number) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 }); /* no second core file: the rank may have left one */
    signal(number, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
}

int pli_keep(char *const *argv) {
    int        pipe_fds[2];
    last_words words = { 0 };
    pli_child_dies_with_parent((int32_t)getppid(), SIGKILL);
    if (pipe2(pipe_fds, O_CLOEXEC) != 0) return pli_cli_usage("launch: no pipe for a rank's output"), PLI_EXIT_FAILED;
    pid_t pid = start(argv, pipe_fds);
    close(pipe_fds[1]);
    if (pid < 0) return pli_cli_usage("launch: no process for a rank"), PLI_EXIT_FAILED;
    attend(pid, pipe_fds[0], &words);
    atomic_store(&child, 0);
    int code = pli_child_reap((int32_t)pid);
    if (code == 127) return pli_cli_usage("launch: %s cannot be run", argv[0]), code;
    const int32_t rank = pli_launcher_find().rank;
    if (code <= PLI_EXIT_SIGNAL) return pli_verdict_keep(rank, (int32_t)pid, code);
    pli_tell_launch_lost(rank, (int32_t)pid, code - PLI_EXIT_SIGNAL, words.line);
    die_of(code - PLI_EXIT_SIGNAL);
    return code;
}
