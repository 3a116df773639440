/* bench/new_replica.c - measures how long the clocks of the living take while a new replica of a large shard is made.
 *
 *     .venv/bin/mpirun --with-ft ulfm -n 4 build/release/bench/new_replica [MB [KILLED [CONSISTENCY [sparse]]]]
 *
 * Rank 0 holds a table of MB (1024) in one shard, rank 1 its second replica, and the others are spares. At first
 * worker 0 adds to all rows, so that none of the memory is the system's page of zeros. Then, in each clock, each
 * worker gets 64 rows and adds to others. After some clocks rank KILLED ends itself by SIGKILL: 0 (the default)
 * serves the shard, 1 follows, and in their place a new replica is made on a spare; 2 holds nothing. The others go
 * on until it is whole, and for some more clocks. So the longest clock of the living is what that costs them; with a
 * table of 1 MB it is the price of the death alone. The goal: no clock takes over 100 ms more than the usual one,
 * the median of those before the death. Exit code 1: it was missed. Memory: up to 3 times the table. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plait/table.h>

#include "table/table.h"

enum { BEFORE = 400, ROUND = 200 /* clocks, after which all agree whether to go on */ };
enum { CLOCKS_MAX = BEFORE + 500 * ROUND, KEYS = 64, ITEMS = 8, COLS = 64, FILLED = 1 << 15, MB_MAX = 1 << 16,
       LIMIT_MS = 100 };

typedef struct bench {
    int64_t     mb;
    int32_t     killed;
    const char *consistency;
    bool        sparse;
    double     *ms; /* [clocks] what they took */
    int64_t     clocks;
    uint64_t    died_ns; /* 0: nobody yet */
    double      seconds; /* from the death on, until the new replica was whole; as the rank that makes it sees it */
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

/* Prints, from the last rank, what the clocks of all living workers took. Sorts them. */
static plait_status report(plait_comm *comm, bench *b) {
    const int32_t living = plait_comm_workers(comm) - 1;
    const int64_t after = b->clocks - BEFORE;
    double       *ms = b->ms, figures[5], over = 0;
    qsort(ms, BEFORE, sizeof *ms, by_size);
    qsort(ms + BEFORE, (size_t)after, sizeof *ms, by_size);
    figures[0] = ms[BEFORE / 2];
    figures[1] = ms[BEFORE + after / 2];
    figures[2] = ms[BEFORE + after * 99 / 100];
    figures[3] = ms[b->clocks - 1];
    figures[4] = b->seconds;
    for (int64_t i = BEFORE; i < b->clocks; i++) over += ms[i] > figures[0] + LIMIT_MS;
    PLI_TRY(plait_comm_allreduce(comm, figures, 5, PLAIT_F64, PLAIT_MAX));
    PLI_TRY(plait_comm_allreduce(comm, &over, 1, PLAIT_F64, PLAIT_SUM));
    b->missed = over > 0;
    if (plait_comm_rank(comm) != living) return PLAIT_OK;
    printf("%lld MB%s, %s, rank %d killed: usual clock %.2f ms; then, in %lld clocks, median %.2f ms, p99 %.2f ms, "
           "longest %.1f ms; of %d workers' clocks %.0f took over %d ms longer than the usual one; whole after "
           "%.2f s%s\n",
           (long long)b->mb, b->sparse ? ", sparse" : "", b->consistency, b->killed, figures[0], (long long)after,
           figures[1], figures[2], figures[3], living, over, LIMIT_MS, figures[4], b->missed ? ": missed" : "");
    fflush(stdout); /* mpirun ends all once one of them exits with 1 */
    return PLAIT_OK;
}

/* Does this rank make a new replica of the shard, or has not heard yet that it must? */
static bool is_making(plait_job *job, const bench *b) {
    const pli_server *server = job->client.rank == 0 ? &job->server : job->hosted.replica[0];
    pli_port         *port = job->client.rank == 0 ? job->server_port : job->replica_port;
    const bool        maker = b->died_ns > 0 && b->killed < 2 && job->client.rank == 1 - b->killed;
    uint64_t          now_ns;
    pli_out           out;
    if (!maker) return false;
    pli_port_enter(port, &now_ns, &out);
    const bool making = server->replicas->making || server->replicas->to_place < 2;
    pli_port_leave(port, &out);
    return making;
}

static plait_status take_clocks(plait_job *job, plait_table *table, int64_t rows, int64_t n, bench *b) {
    uint64_t begun = pli_comm_now(job->comm);
    for (int64_t i = 0; i < n; i++) {
        PLI_TRY(take_clock(job, table, rows));
        const uint64_t now = pli_comm_now(job->comm);
        b->ms[b->clocks++] = (double)(now - begun) * 1e-6;
        begun = now;
        if (is_making(job, b)) b->seconds = (double)(now - b->died_ns) * 1e-9;
    }
    return PLAIT_OK;
}

/* The death, and clocks until the new replica is whole. */
static plait_status outlive(plait_job *job, plait_table *table, int64_t rows, bench *b) {
    int64_t goes_on = 1, more = 1;
    b->died_ns = pli_comm_now(job->comm);
    if (job->client.rank == b->killed) raise(SIGKILL);
    while ((goes_on > 0 || more-- > 0) && b->clocks <= CLOCKS_MAX - ROUND) {
        PLI_TRY(take_clocks(job, table, rows, ROUND, b));
        goes_on = is_making(job, b);
        PLI_TRY(plait_comm_allreduce(job->comm, &goes_on, 1, PLAIT_I64, PLAIT_MAX));
    }
    return PLAIT_OK;
}

static plait_status work(plait_comm *comm, plait_job *job, bench *b) {
    plait_table     *table;
    plait_table_opts o;
    plait_table_opts_init(&o);
    o.name = "w";
    const int64_t rows = b->mb * (1 << 20) / (COLS * (int64_t)sizeof(float));
    o.rows = b->sparse ? 0 : rows;
    o.cols = COLS;
    o.keyed = 1;
    o.rule.name = "sgd";
    PLI_TRY(plait_table_create(job, &o, &table));
    PLI_TRY(fill(job, table, rows));
    PLI_TRY(plait_job_barrier(job));
    b->ms = malloc(CLOCKS_MAX * sizeof *b->ms);
    plait_status status = b->ms == NULL ? PLAIT_ENOMEM : take_clocks(job, table, rows, BEFORE, b);
    if (status >= 0) status = outlive(job, table, rows, b);
    if (status >= 0) status = report(comm, b);
    free(b->ms);
    return status;
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
                          .consistency = argc > 3 ? argv[3] : "bsp",
                          .sparse = argc > 4 && strcmp(argv[4], "sparse") == 0 };
    const char     *size = getenv("OMPI_COMM_WORLD_SIZE");
    plait_comm_opts opts;
    plait_error     err = { 0 };
    plait_comm_opts_init(&opts);
    opts.transport = "mpi";
    if (size == NULL || atoi(size) < 4 || b.mb < 1 || b.mb > MB_MAX || b.killed < 0 || b.killed > 2) {
        fprintf(stderr, "usage: mpirun --with-ft ulfm -n 4 new_replica [MB [0|1|2 [CONSISTENCY [sparse]]]]\n");
        return 2;
    }
    if (plait_comm_run(&opts, body, &b, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    return b.missed;
}
