/* bench/hybrid.c - times a clock of a job with a dense table of 10 MB and a sparse table of 10 M keys, each with its
 * own topology.
 *
 *   hybrid --dense TOPOLOGY --sparse TOPOLOGY [--filter NAMES] [--draws N] [--clocks N] [--servers N] [--transport
 *   NAME]
 *          [--workers N]
 *
 * A worker draws keys for each clock by Zipf's law (exponent 1), so that all workers draw some keys, and most keys are
 * rare. It reads their values and the whole dense table, and pushes to all that it has read, like a model with
 * embeddings. Prints one JSON object: the distinct keys of a clock's draws, and the median seconds of a clock on rank
 * 0. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plait/comm.h>
#include <plait/table.h>

#include "base/base.h"

enum { DENSE_ROWS = 2500000, KEYS = 10000000, CLOCKS_MAX = 1000, WARM = 1 };

typedef struct run {
    const char *dense, *sparse, *filter;
    int64_t     draws, clocks, servers, workers;
    double      seconds[CLOCKS_MAX];
} run;

typedef struct batch {
    uint64_t *keys;
    float    *values, *weights; /* values of the keys; values of the dense table */
    int64_t   n;
} batch;

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Draws rank r of Zipf's law with weight 1 / r, by the inverse of the logarithmic sum, and maps each rank to a key. */
static bool draw(const run *r, batch *b, int32_t worker, int64_t clock) {
    pli_random random = pli_random_at(3, PLI_RANDOM_DATA, (uint64_t)worker, (uint64_t)clock);
    for (int64_t i = 0; i < r->draws; i++) {
        const double at = exp(pli_random_f64(&random) * log((double)KEYS));
        b->keys[i] = pli_hash_u64((uint64_t)at) % KEYS;
    }
    if (!pli_sort_u64(r->draws, b->keys, NULL)) return false;
    b->n = pli_unique_u64(r->draws, b->keys);
    return true;
}

static plait_status one_clock(plait_job *job, plait_table *dense, plait_table *sparse, const batch *b) {
    PLI_TRY(plait_table_get(sparse, b->n, b->keys, b->values));
    PLI_TRY(plait_table_get_range(dense, 0, DENSE_ROWS, b->weights));
    for (int64_t i = 0; i < b->n; i++) b->values[i] = 1e-3F;
    for (int64_t i = 0; i < DENSE_ROWS; i++) b->weights[i] = 1e-3F;
    PLI_TRY(plait_table_inc(sparse, b->n, b->keys, b->values, 0));
    PLI_TRY(plait_table_inc_range(dense, 0, DENSE_ROWS, b->weights, 0));
    return plait_job_clock(job);
}

static plait_status create(plait_job *job, const char *name, const char *topology, const char *filter, int64_t rows,
                           plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.topology = topology;
    opts.consistency = "bsp";
    opts.rows = rows;
    opts.filter = strcmp(topology, "ps") == 0 ? filter : NULL;
    return plait_table_create(job, &opts, table_out);
}

static plait_status time_clocks(plait_job *job, run *r, batch *b) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *dense = NULL, *sparse = NULL;
    PLI_TRY(create(job, "dense", r->dense, NULL, DENSE_ROWS, &dense));
    PLI_TRY(create(job, "sparse", r->sparse, r->filter, 0, &sparse));
    for (int64_t clock = 0; clock < WARM + r->clocks; clock++) {
        if (!draw(r, b, plait_comm_rank(comm), clock)) return PLAIT_ENOMEM;
        PLI_TRY(plait_comm_barrier(comm));
        const uint64_t start = pli_now_ns();
        PLI_TRY(one_clock(job, dense, sparse, b));
        PLI_TRY(plait_comm_barrier(comm));
        if (clock >= WARM) r->seconds[clock - WARM] = (double)(pli_now_ns() - start) * 1e-9;
    }
    if (plait_comm_rank(comm) != 0) return PLAIT_OK;
    qsort(r->seconds, (size_t)r->clocks, sizeof *r->seconds, by_size);
    printf("{\"seconds\":%.6f,\"keys\":%lld}\n", r->seconds[r->clocks / 2], (long long)b->n);
    return PLAIT_OK;
}

static plait_status work(plait_job *job, void *user) {
    const run *r = user;
    batch      b = { .keys = pli_array((size_t)r->draws, sizeof *b.keys),
                     .values = pli_array((size_t)r->draws, sizeof *b.values),
                     .weights = pli_array(DENSE_ROWS, sizeof *b.weights) };
    bool         enough = b.keys != NULL && b.values != NULL && b.weights != NULL;
    plait_status status = enough ? time_clocks(job, user, &b) : PLAIT_ENOMEM;
    pli_free(b.keys);
    pli_free(b.values);
    pli_free(b.weights);
    return status;
}

int main(int argc, char **argv) {
    run             r = { .dense = "allreduce", .sparse = "ps", .draws = 200000, .clocks = 5 };
    plait_error     err = { 0 };
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    bool good = argc % 2 == 1;
    for (int i = 1; good && i + 1 < argc; i += 2) {
        int64_t *number = strcmp(argv[i], "--draws") == 0     ? &r.draws
                          : strcmp(argv[i], "--clocks") == 0  ? &r.clocks
                          : strcmp(argv[i], "--servers") == 0 ? &r.servers
                          : strcmp(argv[i], "--workers") == 0 ? &r.workers
                                                              : NULL;
        const char **word = strcmp(argv[i], "--dense") == 0       ? &r.dense
                            : strcmp(argv[i], "--sparse") == 0    ? &r.sparse
                            : strcmp(argv[i], "--filter") == 0    ? &r.filter
                            : strcmp(argv[i], "--transport") == 0 ? &opts.transport
                                                                  : NULL;
        if (word != NULL) *word = argv[i + 1];
        else good = number != NULL && pli_parse_i64(argv[i + 1], number) && *number >= 0;
    }
    if (!good || r.draws < 1 || r.clocks < 1 || r.clocks > CLOCKS_MAX) {
        fputs("hybrid --dense TOPOLOGY --sparse TOPOLOGY [--filter NAMES] [--draws N] [--clocks N] [--servers N] "
              "[--transport NAME] [--workers N]\n",
              stderr);
        return 2;
    }
    opts.workers = (int32_t)r.workers;
    opts.servers = (int32_t)r.servers;
    plait_status status = plait_run(&opts, NULL, work, &r, &err);
    if (status < 0) fprintf(stderr, "hybrid: %s: %s\n", plait_status_text(status), err.text);
    return status < 0 ? 1 : 0;
}
