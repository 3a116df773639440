/* tests/sim/apart.h - a drawn plan on a simulated cluster, run in a process of its own: one that hangs or crashes fails
 * alone, and the test goes on with the next. */
#ifndef PLAIT_TESTS_SIM_APART_H
#define PLAIT_TESTS_SIM_APART_H

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <plait/comm.h>

#include "hang.h"

enum { HANG_S = 120 }; /* of processor time */

/* Runs body on all ranks of a cluster file's text [bytes]. */
static inline plait_status simulate(const char *cluster, size_t bytes, int32_t workers, int32_t servers, uint64_t seed,
                                    plait_status (*body)(plait_comm *comm, void *user), plait_error *err) {
    plait_comm_opts opts;
    char            path[32];
    const int       fd = memfd_create("cluster", 0);
    if (fd < 0 || write(fd, cluster, bytes) != (ssize_t)bytes) {
        *err = (plait_error){ .code = PLAIT_EIO, .text = "the cluster file cannot be written" };
        return PLAIT_EIO;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    plait_comm_opts_init(&opts);
    opts.transport = "sim";
    opts.workers = workers;
    opts.servers = servers;
    opts.threads = 1;
    opts.seed = seed;
    opts.cluster = path;
    opts.timeout_ns = UINT64_C(60000000000);
    return plait_comm_run(&opts, body, NULL, err);
}

/* Runs run(plan) in another process, whose exit code it is. NULL: that is 0; "": it is not; else what became of it. */
static inline const char *run_in_process(int (*run)(const void *plan), const void *plan) {
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* not cmocka's handler, which would go on with the next test */
        end_hang(HANG_S);
        _exit(run(plan));
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return "no process";
    if (status == 0) return NULL;
    return !WIFSIGNALED(status) ? "" : hung(status) ? "hangs" : "crashed";
}

#endif
