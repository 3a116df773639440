/* bench/replicas.c - measures the cost of a second replica of each shard, and of a third: bytes and time of a clock
 * with replicas 3, 2 and 1, in turns, on a table as large as a9a's weights, on a table that is pushed by key, and on
 * one of 100 MB.
 *
 *     build/release/bench/replicas [PAIRS]            4 workers that hold shards, threads; 5 pairs
 *     .venv/bin/mpirun -n 4 build/release/bench/replicas    the same by processes
 *
 * In each clock each worker reads the whole table and pushes to all of it (by key: to 4,000 rows of it). The limit:
 * with W workers on W ranks, each clock moves 2 (W - 1) values for each value of the table, and one more for the second
 * replica, and for the third. The goal for two: at most 1.6 x the bytes and 1.3 x the time. Exit code 1: it was
 * missed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plait/table.h>

#include "table/table.h"

enum { WORKERS = 4, PAIRS_MAX = 31, KEYS = 4000, MOST = 3 /* replicas */ };

typedef struct task {
    const char *name;
    int64_t     rows, clocks;
    int         keyed, replicas;
    double      seconds, bytes; /* for a clock */
} task;

static plait_status work(plait_comm *comm, plait_job *job, task *t) {
    plait_table     *table;
    plait_table_opts o;
    plait_table_opts_init(&o);
    o.name = "w";
    o.rows = t->rows;
    o.keyed = t->keyed;
    o.rule.name = "sgd";
    o.rule.learning_rate = 0.1;
    PLI_TRY(plait_table_create(job, &o, &table));
    const int64_t n = t->keyed ? KEYS : t->rows;
    float        *delta = calloc((size_t)n, sizeof *delta);
    uint64_t     *keys = calloc((size_t)n, sizeof *keys);
    float        *got = calloc((size_t)n, sizeof *got);
    plait_status  status = delta == NULL || keys == NULL || got == NULL ? PLAIT_ENOMEM : PLAIT_OK;
    for (int64_t i = 0; status == PLAIT_OK && i < n; i++) {
        delta[i] = 1;
        keys[i] = (uint64_t)(i * (t->rows / n));
    }
    if (status == PLAIT_OK) status = plait_job_barrier(job);
    uint64_t begun = pli_comm_now(comm), before = plait_comm_bytes_sent(comm);
    for (int64_t clock = 0; status == PLAIT_OK && clock < t->clocks; clock++) {
        const void *values;
        status = t->keyed ? plait_table_get(table, n, keys, got) : plait_table_read(table, 0, t->rows, &values);
        if (status == PLAIT_OK)
            status =
                t->keyed ? plait_table_inc(table, n, keys, delta, 1) : plait_table_inc_range(table, 0, n, delta, 1);
        if (status == PLAIT_OK) status = plait_job_clock(job);
    }
    if (status == PLAIT_OK) status = plait_job_barrier(job);
    double seconds = (double)(pli_comm_now(comm) - begun) * 1e-9;
    double bytes = (double)(plait_comm_bytes_sent(comm) - before);
    if (status == PLAIT_OK) status = plait_comm_allreduce(comm, &bytes, 1, PLAIT_F64, PLAIT_SUM);
    if (pli_comm_leads(comm)) {
        t->seconds = seconds / (double)t->clocks;
        t->bytes = bytes / (double)t->clocks;
    }
    free(delta);
    free(keys);
    free(got);
    return status;
}

static plait_status run_one(plait_comm *comm, task *t) {
    plait_job     *job = NULL;
    plait_job_opts o;
    plait_job_opts_init(&o);
    o.topology = "ps";
    o.replicas = t->replicas;
    PLI_TRY(plait_job_create(comm, &o, &job));
    plait_status status = work(comm, job, t);
    if (status < 0) {
        pli_job_abandon(&job);
        return status;
    }
    return plait_job_destroy(&job);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(int n, double *values) {
    qsort(values, (size_t)n, sizeof *values, by_size);
    return values[n / 2];
}

typedef struct bench {
    int  pairs;
    bool missed;
} bench;

static plait_status body(plait_comm *comm, void *user) {
    bench            *b = user;
    static const task tasks[] = { { .name = "dense, 123 rows (a9a)", .rows = 123, .clocks = 2000 },
                                  { .name = "dense, 4 MB", .rows = 1 << 20, .clocks = 20 },
                                  { .name = "by key, 100 MB, 4,000 rows", .rows = 25000000, .clocks = 300, .keyed = 1 },
                                  { .name = "dense, 100 MB", .rows = 25000000, .clocks = 3 } };
    if (pli_comm_leads(comm))
        printf("%-28s %9s %9s %9s %7s %7s %12s %7s %7s\n", "table", "1: ms", "2: ms", "3: ms", "2/1", "3/1", "1: bytes",
               "2/1", "3/1");
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        double seconds[MOST][PAIRS_MAX], bytes[MOST] = { 0 }, ratio[MOST][PAIRS_MAX];
        for (int p = 0; p < b->pairs; p++) {
            for (int k = 0; k < MOST; k++) {
                task t = tasks[i];
                t.replicas = k + 1;
                PLI_TRY(run_one(comm, &t));
                seconds[k][p] = t.seconds;
                bytes[k] = t.bytes;
            }
            for (int k = 1; k < MOST; k++) ratio[k][p] = seconds[k][p] / seconds[0][p];
        }
        if (!pli_comm_leads(comm)) continue;
        double times = median(b->pairs, ratio[1]), more = bytes[1] / bytes[0];
        printf("%-28s %9.3f %9.3f %9.3f %7.2f %7.2f %12.0f %7.2f %7.2f%s\n", tasks[i].name,
               median(b->pairs, seconds[0]) * 1e3, median(b->pairs, seconds[1]) * 1e3,
               median(b->pairs, seconds[2]) * 1e3, times, median(b->pairs, ratio[2]), bytes[0], more,
               bytes[2] / bytes[0], times > 1.3 || more > 1.6 ? "  missed" : "");
        fflush(stdout);
        b->missed = b->missed || times > 1.3 || more > 1.6;
    }
    return PLAIT_OK;
}

int main(int argc, char **argv) {
    bench           b = { .pairs = argc > 1 ? atoi(argv[1]) : 5 };
    plait_comm_opts opts;
    plait_error     err = { 0 };
    plait_comm_opts_init(&opts);
    if (b.pairs < 1 || b.pairs > PAIRS_MAX) return 2;
    if (getenv("OMPI_COMM_WORLD_SIZE") == NULL) opts.workers = WORKERS;
    else opts.transport = "mpi";
    if (plait_comm_run(&opts, body, &b, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    return b.missed;
}
