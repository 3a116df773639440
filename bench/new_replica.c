/* bench/new_replica.c - measures how long the clocks of the others take while a new replica of a large shard is made.
 *
 *     .venv/bin/mpirun --with-ft ulfm -n 4 build/release/bench/new_replica [MB [KILLED [CONSISTENCY]]]
 *
 * One rank holds a table of MB (1024) in one shard, the next its second replica, and the others are spares. In each
 * clock each worker gets 64 rows and adds to others. In the middle rank KILLED (0, which serves; 1 is the one that
 * follows) kills itself by SIGKILL. So the rank that is left makes a new replica on a spare, and the clocks of all
 * wait for it or do not. The figures are of the living: the median clock before the death, the longest one, and how
 * many took longer than the limit. With a table of 1 MB the longest clock is the price of the death alone. Memory: 4 times the table. Exit
 * code 1: a clock took longer than the limit, 100 ms beside the usual clock. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plait/table.h>

#include "table/table.h"

enum { BEFORE = 400, CLOCKS = 800, KEYS = 64, ITEMS = 8, COLS = 64, MB_MAX = 1 << 16, LIMIT_MS = 100 };

typedef struct bench {
    int64_t     mb;
    int32_t     killed;
    const char *consistency;
    double      longest_ms;
    int         over; /* clocks of any worker that took longer than the limit */
} bench;

/* Item i of worker 0, the only one that has items at first: the same rows in each clock, whoever adds to them. */
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

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static plait_status work(plait_comm *comm, plait_job *job, bench *b) {
    plait_table     *table;
    plait_table_opts o;
    plait_table_opts_init(&o);
    o.name = "w";
    o.rows = b->mb * (1 << 20) / (COLS * (int64_t)sizeof(float));
    o.cols = COLS;
    o.keyed = 1;
    o.rule.name = "sgd";
    PLI_TRY(plait_table_create(job, &o, &table));
    double        ms[CLOCKS], figures[3] = { 0 }; /* the usual clock, the longest, that of the others */
    const int32_t me = plait_comm_rank(comm);
    PLI_TRY(plait_job_barrier(job));
    for (int clock = 0; clock < CLOCKS; clock++) {
        if (clock == BEFORE && me == b->killed) raise(SIGKILL);
        const uint64_t begun = pli_comm_now(comm);
        PLI_TRY(take_clock(job, table, o.rows));
        ms[clock] = (double)(pli_comm_now(comm) - begun) * 1e-6;
    }
    double  over = 0;
    double *after = ms + BEFORE;
    qsort(ms, BEFORE, sizeof *ms, by_size);
    figures[0] = ms[BEFORE / 2];
    figures[1] = ms[BEFORE - 1];
    for (int i = 0; i < CLOCKS - BEFORE; i++) {
        if (after[i] > figures[2]) figures[2] = after[i];
        over += after[i] > figures[0] + LIMIT_MS;
    }
    PLI_TRY(plait_comm_allreduce(comm, figures, 3, PLAIT_F64, PLAIT_MAX));
    PLI_TRY(plait_comm_allreduce(comm, &over, 1, PLAIT_F64, PLAIT_SUM));
    b->over = (int)over;
    if (me == plait_comm_size(comm) - 1)
        printf("%lld MB, %s, rank %d killed: usual clock %.3f ms, longest before %.3f ms; longest stall after %.1f ms, "
               "%d clocks of 3 workers took over %d ms longer%s\n",
               (long long)b->mb, b->consistency, b->killed, figures[0], figures[1], figures[2], b->over, LIMIT_MS,
               b->over > 0 ? "  missed" : "");
    return PLAIT_OK;
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
    bench b = { .mb = argc > 1 ? atoi(argv[1]) : 1024,
                .killed = argc > 2 ? atoi(argv[2]) : 0,
                .consistency = argc > 3 ? argv[3] : "bsp" };
    plait_comm_opts opts;
    plait_error     err = { 0 };
    plait_comm_opts_init(&opts);
    opts.transport = "mpi";
    if (getenv("OMPI_COMM_WORLD_SIZE") == NULL || b.mb < 1 || b.mb > MB_MAX || b.killed < 0 || b.killed > 2) {
        fprintf(stderr, "usage: mpirun --with-ft ulfm -n 4 new_replica [MB [KILLED 0..2 [CONSISTENCY]]]\n");
        return 2;
    }
    if (plait_comm_run(&opts, body, &b, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    return b.over > 0;
}
