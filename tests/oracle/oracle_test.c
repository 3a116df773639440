/* oracle_test.c - random programs of tables against the manual (oracle.h says how).
 *
 *     test_oracle_threads threads | sim | mpi      the seeds of that transport, one after the other
 *
 * Over threads and sim each seed is played in a process of its own (SimGrid takes one platform a process, and a
 * crash ends one seed only). Over mpi all processes play the same seeds. PLAIT_SEED=N plays that one;
 * PLAIT_PROGRAMS=N sets how many, PLAIT_SHOW=1 prints the calls of those that fail. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hang.h"
#include "oracle.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { THREADS = 40, SIM = 8, MPI = 3, HANG_S = 120 };
#else
enum { THREADS = 80, SIM = 50, MPI = 7, HANG_S = 60 };
#endif
enum { THREADS_FULL = 1300, SIM_FULL = 600, MPI_FULL = 35, FAILURES = 10 };

/* Shared by the processes of all seeds. */
typedef struct board {
    char    why[WHY_BYTES + 600];
    int64_t reads;
} board;

static board *shown;

static const char *cluster_of(const program *p) {
    static const char *const costs[] = {
        "", "events:\n  - jitter: {sigma: 0.7}\n",
        "events:\n  - jitter: {sigma: 0.3}\n  - slow: {ranks: 0, factor: 5}\n",
        "events:\n  - jitter: {sigma: 1}\n  - burst: {factor: 6, every: 9 ms, length: 4 ms}\n"
    };
    static char path[40];
    char        text[400];
    int         fd = memfd_create("cluster", 0);
    int         n = snprintf(text, sizeof text, "version: 1\nhosts: [{count: %d}]\ncost: {clock: 2 ms}\n%s",
                             p->workers + p->servers, costs[p->cost]);
    if (fd < 0 || write(fd, text, (size_t)n) != n) return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

void say_failed(const program *p, const diary *diaries, const plait_error *e, char *why, size_t bytes) {
    for (int32_t v = 0; v < p->workers; v++) {
        const diary *d = &diaries[v];
        if (d->failed == -1 || d->text[0] == '\0') continue;
        if (v != e->rank && e->rank >= 0 && e->rank < p->workers && diaries[e->rank].text[0] != '\0') continue;
        snprintf(why, bytes, "worker %d, call %d (%s) failed: %s", v, d->failed,
                 d->failed < 0 ? "table_create" : name_of(p->calls[v][d->failed].kind), d->text);
        return;
    }
    snprintf(why, bytes, "rank %d failed: %s: %s", e->rank, plait_status_text(e->code), e->text);
}

/* Plays and judges; true: all was kept. */
static bool play_here(const program *p, int64_t *reads, char *why, size_t bytes) {
    diary      *diaries = calloc(WORKERS, sizeof *diaries);
    plait_error e = { .rank = -1 };
    char        text[WHY_BYTES];
    if (diaries == NULL) return false;
    plait_status status = play(p, diaries, p->over == OVER_SIM ? cluster_of(p) : NULL, &e);
    bool         kept = false;
    if (status < 0) {
        say_failed(p, diaries, &e, why, bytes);
    } else {
        kept = judge(p, diaries, reads, text);
        if (!kept) snprintf(why, bytes, "%s", text);
    }
    for (int32_t v = 0; v < WORKERS; v++) free(diaries[v].words);
    free(diaries);
    return kept;
}

void tell(const program *p, const char *why, const char *how) {
    printf("%s\n", why);
    describe(p, stdout);
    if (getenv("PLAIT_SHOW") != NULL) describe_calls(p, stdout);
    printf("  replay: PLAIT_SEED=%" PRIu64 " %s\n", p->seed, how);
    fflush(stdout);
}

static bool play_apart(uint64_t seed, carrier over, const char *how) {
    program *p = draw_program(seed, over, 0);
    int      status = 0;
    shown->why[0] = '\0';
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        end_hang(HANG_S);
        _exit(play_here(p, &shown->reads, shown->why, sizeof shown->why) ? 0 : 1);
    }
    bool kept = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    if (!kept && WIFSIGNALED(status))
        snprintf(shown->why, sizeof shown->why, hung(status) ? "it hangs" : "it crashed by signal %d",
                 WTERMSIG(status));
    if (!kept) tell(p, shown->why, how);
    program_free(p);
    return kept;
}

int64_t number(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text != NULL ? atoll(text) : otherwise;
}

static int over_one_process(const char *program_name, carrier over) {
    char          how[512];
    const int64_t full = over == OVER_SIM ? SIM_FULL : THREADS_FULL, some = over == OVER_SIM ? SIM : THREADS;
    const int64_t from = number("PLAIT_SEED", 1);
    const int64_t n = number("PLAIT_PROGRAMS", getenv("PLAIT_SEED") != NULL        ? 1
                                               : getenv("PLAIT_TEST_FULL") != NULL ? full
                                                                                   : some);
    int64_t       failed = 0, ran = 0;
    snprintf(how, sizeof how, "%s %s", program_name, over == OVER_SIM ? "sim" : "threads");
    for (; ran < n && failed < number("PLAIT_FAILURES", FAILURES); ran++)
        failed += !play_apart((uint64_t)(from + ran), over, how);
    printf("%" PRId64 " programs over %s, %" PRId64 " values judged: %" PRId64 " broke a promise\n", ran,
           over == OVER_SIM ? "sim" : "threads", shown->reads, failed);
    return failed > 0;
}

int main(int argc, char **argv) {
    const char *over = argc > 1 ? argv[1] : "";
    shown = mmap(NULL, sizeof *shown, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shown == MAP_FAILED) return 1;
    if (strcmp(over, "threads") == 0) return over_one_process(argv[0], OVER_THREADS);
    if (strcmp(over, "sim") == 0) return over_one_process(argv[0], OVER_SIM);
    if (strcmp(over, "mpi") == 0) return over_processes(argv[0], getenv("PLAIT_TEST_FULL") != NULL ? MPI_FULL : MPI);
    fprintf(stderr, "usage: %s threads | sim | mpi\n", argv[0]);
    return 2;
}
