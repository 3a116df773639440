/* Launching with a stand-in for mpirun: a script that starts its processes itself. tests/mpi uses the real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <signal.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/base.h"
#include "comm/launch.h"
#include "comm/launcher.h"

static char script[64];

static int make_script(void **state) {
    (void)state;
    snprintf(script, sizeof script, "/tmp/plait-mpirun-%d", (int)getpid());
    FILE *file = fopen(script, "w");
    if (file == NULL) return -1;
    fputs("#!/bin/sh\n[ \"$1\" = -n ] || exit 90\nexport COUNT=$2\nshift 2\n"
          "case $1 in --host*) export WHERE=\"$1 $2\"; shift 2 ;; esac\n"
          "while [ \"$1\" = -x ]; do export GIVEN=\"$GIVEN $2\"; shift 2; done\nexec \"$@\"\n", file);
    fclose(file);
    setenv("PLAIT_MPIRUN", script, 1);
    return chmod(script, 0700);
}

static int remove_script(void **state) {
    (void)state;
    return unlink(script);
}

static int32_t launch(int32_t n, const char *command) {
    char       *argv[] = { "sh", "-c", (char *)command, NULL };
    plait_error err;
    pli_launch_job job = { .processes = n, .argv = argv };
    if (pli_launch(&job, &err) < 0) fail_msg("%s", err.text);
    return job.code;
}

static void test_command_and_environment(void **state) {
    (void)state;
    assert_int_equal(launch(3, "test $COUNT = 3 && test $OMPI_MCA_mpi_yield_when_idle = 1"), 0);
    assert_int_equal(launch(1, "exit 7"), 7);
    assert_int_equal(launch(1, "kill -9 $$"), 128 + 9);
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1); /* a value that the caller has set wins */
    assert_int_equal(launch(1, "test $OMPI_MCA_mpi_yield_when_idle = 0"), 0);
    unsetenv("OMPI_MCA_mpi_yield_when_idle");
}

/* A new directory for mpirun's files, which is gone afterwards with all that a killed mpirun leaves there. */
static void test_a_directory_of_its_own(void **state) {
    (void)state;
    char path[4096] = "";
    setenv("NOTED", script, 1);
    assert_int_equal(launch(1, "mkdir $PRTE_MCA_prte_local_tmpdir_base/ompi.1 && "
                               ": >$PRTE_MCA_prte_local_tmpdir_base/ompi.1/pmix.vm.tool && "
                               "echo $PRTE_MCA_prte_local_tmpdir_base >$NOTED.place"), 0);
    unsetenv("NOTED");
    char *place = pli_format("%s.place", script);
    FILE *file = fopen(place, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%4095s", path), 1);
    fclose(file);
    unlink(place);
    pli_free(place);
    assert_non_null(strstr(path, "/mpirun-"));
    assert_int_equal(access(path, F_OK), -1);
    setenv("PRTE_MCA_prte_local_tmpdir_base", "/tmp", 1); /* the user's own */
    assert_int_equal(launch(1, "test $PRTE_MCA_prte_local_tmpdir_base = /tmp"), 0);
    unsetenv("PRTE_MCA_prte_local_tmpdir_base");
}

static int32_t launch_on(const char *hosts, const char *hostfile, const char *command) {
    char          *argv[] = { "sh", "-c", (char *)command, NULL };
    plait_error    err;
    pli_launch_job job = { .processes = 2, .argv = argv, .hosts = hosts, .hostfile = hostfile };
    plait_status   status = pli_launch(&job, &err);
    return status < 0 ? status : job.code;
}

/* Plait's own variables reach other machines, since each is named to mpirun. */
static void test_other_machines(void **state) {
    (void)state;
    assert_int_equal(launch_on(NULL, NULL, "test -z \"$WHERE$GIVEN\""), 0);
    assert_int_equal(launch_on("a,b:4", NULL, "test \"$WHERE\" = '--host a,b:4'"), 0);
    assert_int_equal(launch_on(NULL, "f", "test \"$WHERE\" = '--hostfile f'"), 0);
    setenv("PLAIT_QUIET", "yes", 1);
    assert_int_equal(launch_on("a", NULL, "case \"$GIVEN \" in *' PLAIT_QUIET '*) exit 0 ;; esac; exit 1"), 0);
    unsetenv("PLAIT_QUIET");
    assert_int_equal(launch_on("a", "f", "true"), PLAIT_EINVAL);
}

static void test_signals_are_handed_on(void **state) {
    (void)state;
    assert_int_equal(launch(1, "trap 'exit 75' USR2; kill -TERM $PPID; while :; do sleep 0.01; done"), 75);
    assert_int_equal(launch(1, "trap 'exit 3' USR1; kill -USR1 $PPID; while :; do sleep 0.01; done"), 3);
    /* A signal within a second of the first counts as the same request; a later one is handed on as it is. */
    assert_int_equal(launch(1, "trap first=yes USR2; trap 'exit 4' INT; kill -INT $PPID; "
                               "while :; do [ -z \"$first\" ] || kill -INT $PPID; sleep 0.05; done"),
                     4);
    struct sigaction now;
    sigaction(SIGTERM, NULL, &now);
    assert_true(now.sa_handler == SIG_DFL);
}

static bool ends_at_once(void *user) {
    ++*(int *)user;
    return true;
}

/* Processes that the launcher leaves behind, or that is_over ends, are gone when the launch returns. */
static void test_nothing_outlives_a_launch(void **state) {
    (void)state;
    char  path[80];
    FILE *file;
    long  pid = 0;
    int   asked = 0;
    snprintf(path, sizeof path, "/tmp/plait-orphan-%d", (int)getpid());
    setenv("ORPHAN", path, 1);
    char          *leaves[] = { "sh", "-c", "setsid sleep 1000 & echo $! >$ORPHAN; exit 5", NULL };
    char          *stays[] = { "sh", "-c", "setsid sleep 1000 & echo $! >$ORPHAN; sleep 1000", NULL };
    char          *before[] = { "env", "KEPT=yes", NULL };
    plait_error    err;
    pli_launch_job job = { .processes = 1, .argv = leaves, .keeper = before };
    for (int way = 0; way < 2; way++) {
        if (way == 1) job = (pli_launch_job){ .processes = 1, .argv = stays, .is_over = ends_at_once, .user = &asked };
        if (pli_launch(&job, &err) < 0) fail_msg("%s", err.text);
        assert_int_equal(job.code, way == 0 ? 5 : 128 + 9);
        assert_true(job.was_ended == (way == 1) && job.asked == 0);
        file = fopen(path, "r");
        if (way == 1 && file == NULL) continue; /* it was ended before it began */
        assert_non_null(file);
        if (fscanf(file, "%ld", &pid) == 1) assert_int_equal(kill((pid_t)pid, 0), -1);
        fclose(file);
        unlink(path);
    }
    assert_int_equal(asked, 1);
    unsetenv("ORPHAN");
}

static void test_errors(void **state) {
    (void)state;
    char       *argv[] = { "true", NULL }, *none[] = { NULL }, *path = NULL;
    plait_error err;
    assert_int_equal(pli_launch(&(pli_launch_job){ .processes = 0, .argv = argv }, &err), PLAIT_EINVAL);
    assert_int_equal(pli_launch(&(pli_launch_job){ .processes = 1, .argv = none }, &err), PLAIT_EINVAL);
    setenv("PLAIT_MPIRUN", "/nowhere/mpirun", 1);
    assert_int_equal(pli_launch(&(pli_launch_job){ .processes = 1, .argv = argv }, &err), PLAIT_EMODULE);
    unsetenv("PLAIT_MPIRUN");
    plait_status status = pli_launch_find(&path, &err); /* whether this machine has an mpirun or not */
    assert_true(status == PLAIT_OK ? access(path, X_OK) == 0 : strstr(err.text, "script/bootstrap --all") != NULL);
    pli_free(path);
    setenv("PLAIT_MPIRUN", script, 1);
}

static void test_every_failed_allocation(void **state) {
    (void)state;
    char        *argv[] = { "true", NULL };
    plait_status status = PLAIT_ENOMEM;
    for (int64_t k = 0; status != PLAIT_OK; k++) {
        int64_t live = pli_alloc_live();
        pli_alloc_fail_after(k);
        status = pli_launch(&(pli_launch_job){ .processes = 1, .argv = argv, .hosts = "a,b" }, NULL);
        pli_alloc_fail_after(-1);
        assert_true(status == PLAIT_OK || status == PLAIT_ENOMEM);
        assert_int_equal(pli_alloc_live(), live);
    }
}

static void test_a_launcher_is_seen_by_its_variables(void **state) {
    (void)state;
    static const struct { const char *size, *n, *rank, *me; int32_t sees, is; } rows[] = {
        { "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_RANK", "2", 4, 2 },
        { "PMI_SIZE", "2", "PMI_RANK", "0", 2, 0 },
        { "SLURM_STEP_NUM_TASKS", "3", "SLURM_PROCID", "1", 3, 1 },
        { "SLURM_STEP_NUM_TASKS", "1", "SLURM_PROCID", "0", 0, -1 }, /* a step of one task */
        { "SLURM_NTASKS", "4", "SLURM_PROCID", "0", 0, -1 },         /* a job's script, which srun has not started */
        { "SLURM_NTASKS", "4", "SLURM_NODEID", "0", 0, -1 },
        { "OMPI_COMM_WORLD_SIZE", "four", "OMPI_COMM_WORLD_RANK", "2", 0, -1 },
        { "PLAIT_NOTHING", "", "PMIX_RANK", "3", 0, 3 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        setenv(rows[i].size, rows[i].n, 1);
        setenv(rows[i].rank, rows[i].me, 1);
        pli_launcher launcher = pli_launcher_find();
        unsetenv(rows[i].size);
        unsetenv(rows[i].rank);
        assert_int_equal(launcher.size, rows[i].sees);
        assert_int_equal(launcher.rank, rows[i].is);
        assert_true((launcher.name != NULL) == (rows[i].is >= 0));
    }
    assert_null(pli_launcher_find().name);
}

static void test_a_launcher_without_an_mpi_is_seen(void **state) {
    (void)state;
    static const struct { const char *size, *n, *beside, *mark; bool refused; } rows[] = {
        { "WORLD_SIZE", "4", "RANK", "0", true },
        { "HOROVOD_SIZE", "2", "HOROVOD_RANK", "1", true },
        { "DMLC_NUM_WORKER", "3", "DMLC_ROLE", "worker", true },
        { "FLUX_JOB_SIZE", "2", "FLUX_TASK_RANK", "1", true },
        { "WORLD_SIZE", "1", "RANK", "0", false }, /* it is the only process */
        { "WORLD_SIZE", "4", "PLAIT_NOTHING", "0", false },
        { "WORLD_SIZE", "many", "RANK", "0", false },
        { "WORLD_SIZE", "4", "OMPI_COMM_WORLD_RANK", "2", false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plait_error err = { .rank = -1 };
        setenv(rows[i].size, rows[i].n, 1);
        setenv(rows[i].beside, rows[i].mark, 1);
        plait_status status = pli_launcher_check_alone(&err);
        unsetenv(rows[i].size);
        unsetenv(rows[i].beside);
        assert_int_equal(status, rows[i].refused ? PLAIT_EINVAL : PLAIT_OK);
        assert_true(!rows[i].refused ||
                    (strstr(err.text, rows[i].size) != NULL && strstr(err.text, "plait launch -n") != NULL));
    }
    setenv("WORLD_SIZE", "4", 1);
    setenv("RANK", "2", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1); /* both torchrun's variables and an MPI's: the MPI's count */
    setenv("OMPI_COMM_WORLD_RANK", "2", 1);
    assert_int_equal(pli_launcher_check_alone(NULL), PLAIT_OK);
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("WORLD_SIZE");
    unsetenv("RANK");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_and_environment),
        cmocka_unit_test(test_a_directory_of_its_own),
        cmocka_unit_test(test_other_machines),
        cmocka_unit_test(test_signals_are_handed_on),
        cmocka_unit_test(test_nothing_outlives_a_launch),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_every_failed_allocation),
        cmocka_unit_test(test_a_launcher_is_seen_by_its_variables),
        cmocka_unit_test(test_a_launcher_without_an_mpi_is_seen),
    };
    return cmocka_run_group_tests(tests, make_script, remove_script);
}
