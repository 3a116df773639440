/* Healthy runs, drawn by chance, in which the doctor must find nothing: messages, collectives and tables in any order,
 * ranks that sleep and compute between them. It is hastened to look a thousand times as often as it does, so that it
 * looks in the midst of everything; the test tells how often it looked, and how often something seemed stuck to it
 * until it looked again.
 *
 *     healthy [--transport NAME] [--workers N] [--runs N] [--first SEED]     under a launcher: its processes */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <plait/table.h>

#include "comm/rounds.h"
#include "comm/world.h"

enum { STEPS = 24, LARGE = 6000, ROWS = 96, KINDS = 11 };

/* What all ranks draw alike, and what each draws for itself. */
typedef struct dice {
    uint64_t all, mine;
} dice;

static uint64_t draw(uint64_t *state, uint64_t below) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return pli_hash_u64(*state) % below;
}

/* Mostly not at all, sometimes for some milliseconds. */
static void dawdle(plait_comm *comm, dice *d) {
    uint64_t how = draw(&d->mine, 16);
    if (how < 8) return;
    uint64_t us = how == 15 ? draw(&d->mine, 20000) : draw(&d->mine, 2000);
    pli_comm_work(comm, PLI_WORK_ENTRIES, us * 100);
    if (!pli_comm_charges(comm)) nanosleep(&(struct timespec){ .tv_nsec = (long)us * 1000 }, NULL);
}

static plait_status sum(plait_comm *comm, dice *d, int64_t n) {
    static _Thread_local double buf[LARGE];
    plait_request *request = NULL;
    for (int64_t i = 0; i < n; i++) buf[i] = 1;
    if (draw(&d->all, 2) == 0) return plait_comm_allreduce(comm, buf, n, PLAIT_F64, PLAIT_SUM);
    if (draw(&d->all, 3) == 0) return plait_comm_reduce_scatter(comm, buf, n, PLAIT_F64, PLAIT_SUM);
    PLI_TRY(plait_comm_allreduce_begin(comm, buf, n, PLAIT_F64, PLAIT_SUM, &request));
    dawdle(comm, d);
    return plait_request_wait(&request);
}

static plait_status shift(plait_comm *comm, dice *d) {
    int32_t me = plait_comm_rank(comm), w = plait_comm_workers(comm), far = (int32_t)draw(&d->all, (uint64_t)w);
    size_t  bytes = draw(&d->all, 2) == 0 ? 8 : 50000;
    char   *buf = calloc(bytes, 1);
    if (buf == NULL) return PLAIT_ENOMEM;
    plait_status status = plait_comm_send(comm, (me + far) % w, 3, buf, bytes);
    dawdle(comm, d);
    if (status >= 0) status = plait_comm_recv(comm, (me - far + w) % w, 3, buf, bytes, NULL, NULL);
    free(buf);
    return status;
}

/* A token goes round: all but one wait, in a circle but for him. */
static plait_status token(plait_comm *comm, dice *d) {
    int32_t me = plait_comm_rank(comm), w = plait_comm_workers(comm), first = (int32_t)draw(&d->all, (uint64_t)w);
    char    byte = 0;
    if (me == first) {
        dawdle(comm, d);
        PLI_TRY(plait_comm_send(comm, (me + 1) % w, 4, &byte, 1));
        return plait_comm_recv(comm, (me - 1 + w) % w, 4, &byte, 1, NULL, NULL);
    }
    PLI_TRY(plait_comm_recv(comm, (me - 1 + w) % w, 4, &byte, 1, NULL, NULL));
    dawdle(comm, d);
    return plait_comm_send(comm, (me + 1) % w, 4, &byte, 1);
}

static plait_status collect(plait_comm *comm, dice *d) {
    int32_t me = plait_comm_rank(comm), w = plait_comm_workers(comm), to = (int32_t)draw(&d->all, (uint64_t)w);
    char    byte = 0;
    dawdle(comm, d);
    if (me != to) {
        PLI_TRY(plait_comm_send(comm, to, 5, &byte, 1));
        return plait_comm_recv(comm, to, 6, &byte, 1, NULL, NULL);
    }
    for (int32_t i = 1; i < w; i++) PLI_TRY(plait_comm_recv(comm, -1, 5, &byte, 1, NULL, NULL));
    for (int32_t r = 0; r < w; r++)
        if (r != me) PLI_TRY(plait_comm_send(comm, r, 6, &byte, 1));
    return PLAIT_OK;
}

static plait_status broadcast(plait_comm *comm, dice *d) {
    char buf[3000] = { 0 };
    return plait_comm_broadcast(comm, buf, draw(&d->all, 2) == 0 ? 10 : sizeof buf,
                                (int32_t)draw(&d->all, (uint64_t)plait_comm_workers(comm)));
}

static plait_status gather(plait_comm *comm) {
    int32_t mine = plait_comm_rank(comm), all[64];
    return plait_comm_allgather(comm, &mine, sizeof mine, all);
}

/* Clocks, of which each rank has its own pace. */
static plait_status clocks(plait_job *job, plait_table *table, dice *d) {
    float       values[ROWS];
    plait_comm *comm = plait_job_comm(job);
    for (uint64_t i = 0, n = 1 + draw(&d->all, 5); i < n; i++) {
        plait_request *request = NULL;
        PLI_TRY(plait_table_get_range_begin(table, 0, ROWS, values, &request));
        dawdle(comm, d);
        PLI_TRY(plait_request_wait(&request));
        for (int k = 0; k < ROWS; k++) values[k] = 1;
        PLI_TRY(plait_table_inc_range(table, 0, ROWS, values, 1));
        PLI_TRY(plait_job_clock(job));
    }
    return PLAIT_OK;
}

static plait_status step(plait_job *job, plait_table *table, dice *d) {
    plait_comm *comm = plait_job_comm(job);
    dawdle(comm, d);
    switch (draw(&d->all, KINDS)) {
    case 0: return plait_comm_barrier(comm);
    case 1: return sum(comm, d, 3);
    case 2: return sum(comm, d, LARGE);
    case 3: return broadcast(comm, d);
    case 4: return gather(comm);
    case 5: return shift(comm, d);
    case 6: return token(comm, d);
    case 7: return collect(comm, d);
    case 8: return plait_job_barrier(job);
    default: return clocks(job, table, d);
    }
}

static plait_status work(plait_job *job, void *user) {
    uint64_t         seed = *(const uint64_t *)user;
    plait_comm      *comm = plait_job_comm(job);
    dice             d = { .all = seed, .mine = pli_hash_u64(seed + (uint64_t)plait_comm_rank(comm) * 1000003) };
    plait_table     *table = NULL;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "w";
    opts.rows = ROWS;
    PLI_TRY(plait_table_create(job, &opts, &table));
    for (int i = 0; i < STEPS; i++) PLI_TRY(step(job, table, &d));
    return PLAIT_OK;
}

/* A wait that has expired, or a silence, says who waited for what. */
static void hear(void *user, plait_log_level level, int32_t rank, const char *room, const char *text) {
    (void)level;
    printf("seed %llu: rank %d: %s: %s\n", (unsigned long long)*(const uint64_t *)user, rank, room, text);
    fflush(stdout);
}

static bool run(const char *transport, int32_t workers, uint64_t seed) {
    static const char *const policies[] = { "bsp", "ssp:1", "ssp:3", "async" };
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     err;
    plait_log       log = { .fn = hear, .user = &seed, .max_level = PLAIT_LOG_WARN };
    plait_comm_opts_init(&comm);
    comm.log = &log;
    uint64_t x = seed;
    bool     mpi = strcmp(transport, "mpi") == 0;
    comm.transport = transport;
    comm.servers = workers > 2 && draw(&x, 3) == 0;
    comm.workers = mpi ? 0 : workers - comm.servers;
    comm.timeout_ns = UINT64_C(60) * 1000000000;
    comm.collective = pli_collectives[draw(&x, PLI_COLLECTIVES)];
    plait_job_opts_init(&job);
    job.topology = "ps";
    job.consistency = policies[draw(&x, 4)];
    plait_status status = plait_run(&comm, &job, work, &seed, &err);
    if (status < 0)
        printf("FAILED seed %llu: %s: %s\n", (unsigned long long)seed, plait_status_text(status), err.text);
    return status >= 0;
}

static bool run_apart(const char *transport, int32_t workers, uint64_t seed) {
    int   status = 0;
    pid_t child = fork();
    if (child == 0) {
        bool fine = run(transport, workers, seed);
        fflush(stdout);
        _exit(fine ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv) {
    const char *transport = "threads";
    int32_t     workers = 4;
    uint64_t    runs = 60, first = 1, failed = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--transport") == 0) transport = argv[i + 1];
        if (strcmp(argv[i], "--workers") == 0) workers = (int32_t)strtol(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--runs") == 0) runs = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--first") == 0) first = strtoull(argv[i + 1], NULL, 10);
    }
    bool simulated = strcmp(transport, "sim") == 0, mpi = strcmp(transport, "mpi") == 0;
    if (getenv("PLAIT_TEST_FULL") != NULL) runs *= 10;
    pli_doctor_haste = 1000;
    pli_comm_shaken = !mpi && !simulated;
    for (uint64_t seed = first; seed < first + runs; seed++)
        failed += simulated ? !run_apart(transport, workers, seed) : !run(transport, workers, seed);
    if (!mpi || failed > 0)
        printf("%llu healthy runs, %llu disturbed; %llu rounds, %llu of them in doubt\n", (unsigned long long)runs,
               (unsigned long long)failed, (unsigned long long)pli_doctor_rounds,
               (unsigned long long)pli_doctor_doubts);
    return failed > 0 || (!simulated && pli_doctor_rounds < runs);
}
