/* bench/new_replica.c - measures how long the clocks of the living take while a new replica of a large shard is made.
 *
 *     .venv/bin/mpirun --with-ft ulfm -n 4 build/release/bench/new_replica [MB [KILLED [CONSISTENCY]]]
 *
 * Rank 0 holds a table of MB (1024) in one shard, rank 1 its second replica, and the others are spares. At first worker
 * 0 adds to all rows, so that none of the memory is the system's page of zeros. Then, in each clock, each worker gets 64 rows and adds to others. After half of its clocks rank KILLED ends itself by SIGKILL: 0 (the
 * default) serves the shard, 1 follows, and in their place a new replica is made on a spare; 2 holds nothing. So the
 * longest clock of the living is what that costs them; with a table of 1 MB it is the price of the death alone. The
 * goal: no clock takes over 100 ms more than the usual one, their median. Exit code 1: it was missed. Memory: up to 4
 * times the table. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plait/table.h>

#include "table/table.h"

enum { CLOCKS = 800, KEYS = 64, ITEMS = 8, COLS = 64, FILLED = 1 << 15, MB_MAX = 1 << 16, LIMIT_MS = 100 };

typedef struct bench {
    int64_t     mb;
    int32_t     killed;
    const char *consistency;
    bool        missed;
} bench;

/* Adds to the rows of an item of worker 0, the only one that has items at first: the same, whoever does it. */
static plait_status add_item(plait_table *table, int64_t rows, int64_t item) {
    static const float delta[KEYS * COLS];
    uint64_t           keys[KEYS];
    for (int64_t k = 0; k < KEYS; k++) keys[k] = (uint64_t)(k * (rows / KEYS) + item);
    return plait_table_inc(table, KEYS, keys, delta, 1);
}

/* anew: the items that this worker does in the dead one's stead. */
static plait_status add_items(plait_job *job, plait_table *table, int64_t rows, bool anew) {
    const int32_t me = pli_job_rank_of(job, job->client.rank);
    for (int64_t i = 0; i < ITEMS; i++) {
        const uint64_t item = (uint64_t)i;
        const bool     mine = anew ? plait_job_inherits(job, 0, item) : plait_job_holder(job, 0, item) == me;
        if (mine) PLI_TRY(add_item(table, rows, i));
    }
    return PLAIT_OK;
}

static plait_status take_clock(plait_job *job, plait_table *table, int64_t rows) {
    static float got[KEYS * COLS];
    uint64_t     keys[KEYS];
    for (int64_t k = 0; k < KEYS; k++) keys[k] = (uint64_t)(k * (rows / KEYS));
    PLI_TRY(plait_table_get(table, KEYS, keys, got));
    PLI_TRY(add_items(job, table, rows, false));
    plait_status status;
    while ((status = plait_job_clock(job)) == PLAIT_STAND_IN) PLI_TRY(add_items(job, table, rows, true));
    return status;
}

/* Adds to all rows, some in each clock. */
static plait_status fill(plait_job *job, plait_table *table, int64_t rows) {
    static float    delta[FILLED * COLS];
    static uint64_t keys[FILLED];
    for (int64_t i = 0; i < FILLED * COLS; i++) delta[i] = (float)(1 + i % 100);
    for (int64_t first = 0; first < rows; first += FILLED) {
        const int64_t n = rows - first < FILLED ? rows - first : FILLED;
        for (int64_t k = 0; k < n; k++) keys[k] = (uint64_t)(first + k);
        if (job->client.rank == 0) PLI_TRY(plait_table_inc(table, n, keys, delta, 1));
        PLI_TRY(plait_job_clock(job));
    }
    return PLAIT_OK;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Prints, from the last rank, what the clocks of all living workers took. Sorts ms [CLOCKS]. */
static plait_status report(plait_comm *comm, bench *b, double *ms) {
    const int32_t living = plait_comm_workers(comm) - 1;
    double        figures[3], over = 0;
    qsort(ms, CLOCKS, sizeof *ms, by_size);
    figures[0] = ms[CLOCKS / 2];
    figures[1] = ms[CLOCKS * 99 / 100];
    figures[2] = ms[CLOCKS - 1];
    for (int i = 0; i < CLOCKS; i++) over += ms[i] > figures[0] + LIMIT_MS;
    PLI_TRY(plait_comm_allreduce(comm, figures, 3, PLAIT_F64, PLAIT_MAX));
    PLI_TRY(plait_comm_allreduce(comm, &over, 1, PLAIT_F64, PLAIT_SUM));
    b->missed = over > 0;
    if (plait_comm_rank(comm) != living) return PLAIT_OK;
    printf("%lld MB, %s, rank %d killed: usual clock %.2f ms, p99 %.2f ms, longest %.1f ms; of %d workers' clocks "
           "%.0f took over %d ms longer than the usual one%s\n",
           (long long)b->mb, b->consistency, b->killed, figures[0], figures[1], figures[2], living, over, LIMIT_MS,
           b->missed ? ": missed" : "");
    fflush(stdout); /* mpirun ends all once one of them exits with 1 */
    return PLAIT_OK;
}

static plait_status work(plait_comm *comm, plait_job *job, bench *b) {
    plait_table     *table;
    plait_table_opts o;
    double           ms[CLOCKS];
    plait_table_opts_init(&o);
    o.name = "w";
    o.rows = b->mb * (1 << 20) / (COLS * (int64_t)sizeof(float));
    o.cols = COLS;
    o.keyed = 1;
    o.rule.name = "sgd";
    PLI_TRY(plait_table_create(job, &o, &table));
    PLI_TRY(fill(job, table, o.rows));
    PLI_TRY(plait_job_barrier(job));
    for (int clock = 0; clock < CLOCKS; clock++) {
        if (clock == CLOCKS / 2 && plait_comm_rank(comm) == b->killed) raise(SIGKILL);
        const uint64_t begun = pli_comm_now(comm);
        PLI_TRY(take_clock(job, table, o.rows));
        ms[clock] = (double)(pli_comm_now(comm) - begun) * 1e-6;
    }
    return report(comm, b, ms);
}

static plait_status body(plait_comm *comm, void *user) {
    bench         *b = user;
    plait_job     *job = NULL;
    plait_job_opts o;
    plait_job_opts_init(&o);
    o.topology = "ps";
    o.consistency = b->consistency;
    o.replicas = 2;
    o.spares = plait_comm_workers(comm) - 1;
    PLI_TRY(plait_job_create(comm, &o, &job));
    plait_status status = work(comm, job, b);
    if (status < 0) {
        pli_job_abandon(&job);
        return status;
    }
    return plait_job_destroy(&job);
}

int main(int argc, char **argv) {
    bench           b = { .mb = argc > 1 ? atoi(argv[1]) : 1024,
                          .killed = argc > 2 ? atoi(argv[2]) : 0,
                          .consistency = argc > 3 ? argv[3] : "bsp" };
    const char     *size = getenv("OMPI_COMM_WORLD_SIZE");
    plait_comm_opts opts;
    plait_error     err = { 0 };
    plait_comm_opts_init(&opts);
    opts.transport = "mpi";
    if (size == NULL || atoi(size) < 4 || b.mb < 1 || b.mb > MB_MAX || b.killed < 0 || b.killed > 2) {
        fprintf(stderr, "usage: mpirun --with-ft ulfm -n 4 new_replica [MB [0|1|2 [CONSISTENCY]]]\n");
        return 2;
    }
    if (plait_comm_run(&opts, body, &b, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    return b.missed;
}
