/* Runs a child process (spawn.h). A handler passes signals on, because a library's thread could receive signals that
 * this thread blocks. The child has its own process group, so it gets the terminal's Ctrl-C once, through the
 * handler. */
#include "cli/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const int handled[] = { SIGINT, SIGTERM, SIGHUP };
enum { HANDLED = sizeof handled / sizeof handled[0] };

static _Atomic int child;   /* the child while it runs; else 0 */
static _Atomic int stopped; /* the first signal that asked to stop */

static void hand_on(int number) {
    int kept = errno, pid = atomic_load(&child), none = 0;
    atomic_compare_exchange_strong(&stopped, &none, number);
    if (pid > 0) kill(pid, number);
    errno = kept;
}

static void handle_by(void (*handler)(int)) {
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < HANDLED; i++) sigaction(handled[i], &action, NULL);
}

void pli_spawn_begin(void) {
    atomic_store(&stopped, 0);
    handle_by(hand_on);
}

void pli_spawn_end(void) { handle_by(SIG_DFL); }
int  pli_spawn_stopped(void) { return atomic_load(&stopped); }

static int start(pid_t *pid, char *const *argv, char *const *env, const char *out_path, const char *err_path) {
    posix_spawnattr_t          attr;
    posix_spawn_file_actions_t files;
    sigset_t                   defaults;
    const int                  flags = O_WRONLY | O_CREAT | O_TRUNC;
    sigemptyset(&defaults);
    for (int i = 0; i < HANDLED; i++) sigaddset(&defaults, handled[i]);
    int bad = posix_spawnattr_init(&attr);
    if (bad != 0) return bad;
    bad = posix_spawn_file_actions_init(&files);
    if (bad == 0) {
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
        posix_spawnattr_setsigdefault(&attr, &defaults);
        posix_spawnattr_setpgroup(&attr, 0);
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out_path, flags, 0600);
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err_path, flags, 0600);
        bad = posix_spawn(pid, argv[0], &files, &attr, argv, env);
        posix_spawn_file_actions_destroy(&files);
    }
    posix_spawnattr_destroy(&attr);
    return bad;
}

/* Waits for the child, to which signals are passed on meanwhile. */
static void attend(pid_t pid, int32_t *exit_out) {
    atomic_store(&child, (int)pid);
    if (atomic_load(&stopped) != 0) kill(pid, atomic_load(&stopped)); /* it came before the child was known */
    (void)pli_child_attend(pid, UINT64_MAX);
    atomic_store(&child, 0);
    *exit_out = pli_child_reap(pid);
    if (*exit_out < 0) *exit_out = PLI_EXIT_FAILED;
}

plait_status pli_spawn(char *const *argv, char *const *env, const char *out_path, const char *err_path,
                       int32_t *exit_out, plait_error *err) {
    pid_t pid = 0;
    int   bad = start(&pid, argv, env, out_path, err_path);
    if (bad != 0) return pli_fail_errno(err, bad, "cannot start %s", argv[0]);
    attend(pid, exit_out);
    return PLAIT_OK;
}

/* In the child of a fork; it does not return. A pipe holds the whole result, so nobody need read it meanwhile. */
static void be_child(plait_status (*body)(void *user, void *result), void *user, void *result, size_t bytes, int to) {
    setpgid(0, 0);
    handle_by(SIG_DFL);
    const plait_status status = body(user, result);
    const bool         written = status >= 0 && write(to, result, bytes) == (ssize_t)bytes;
    _exit(written ? PLI_EXIT_DONE : PLI_EXIT_FAILED);
}

plait_status pli_fork(plait_status (*body)(void *user, void *result), void *user, void *result, size_t bytes,
                      int32_t *exit_out, plait_error *err) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return pli_fail_errno(err, errno, "no pipe to a child process");
    const pid_t pid = fork();
    if (pid == 0) be_child(body, user, result, bytes, ends[1]);
    const int bad = errno;
    close(ends[1]);
    if (pid > 0) {
        attend(pid, exit_out);
        if (*exit_out == PLI_EXIT_DONE && read(ends[0], result, bytes) != (ssize_t)bytes) *exit_out = PLI_EXIT_FAILED;
    }
    close(ends[0]);
    return pid > 0 ? PLAIT_OK : pli_fail_errno(err, bad, "cannot fork a child process");
}
