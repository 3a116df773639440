/* bench/keys.c - times pushes and pulls of random keys of one float, between a worker and a server in two processes.
 *
 *   plait launch -n 2 -- keys [--keys N] [--rounds N] [--universe N]
 *
 * Each round draws new distinct keys (so no list can be remembered), pushes 1 to each, and pulls them; if a pull misses
 * a push, the benchmark fails. A push is timed until one of its keys has been read back, so that the server has applied
 * it, and not only received it. Drawing is not timed. Prints one JSON object: median keys a second for pushes and
 * pulls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plait/comm.h>
#include <plait/table.h>

#include "base/base.h"

typedef struct run {
    int64_t   keys, rounds, universe;
    uint64_t *key;
    float    *value;
    double   *push, *pull; /* [rounds] seconds */
} run;

static int64_t draw_keys(run *r, int64_t round) {
    pli_random random = pli_random_at(11, PLI_RANDOM_DATA, (uint64_t)round, 2);
    for (int64_t i = 0; i < r->keys; i++) {
        r->key[i] = pli_hash_u64(pli_random_below(&random, (uint64_t)r->universe));
    }
    if (!pli_sort_u64(r->keys, r->key, NULL)) return -1;
    return pli_unique_u64(r->keys, r->key);
}

static plait_status one_round(plait_table *table, run *r, int64_t round) {
    plait_request *request = NULL;
    const int64_t  n = draw_keys(r, round);
    if (n < 0) return PLAIT_ENOMEM;
    for (int64_t i = 0; i < n; i++) r->value[i] = 1.0F;
    const uint64_t start = pli_now_ns();
    PLI_TRY(plait_table_inc_begin(table, n, r->key, r->value, 0, &request));
    PLI_TRY(plait_request_wait(&request));
    PLI_TRY(plait_table_get(table, 1, r->key + n - 1, r->value));
    const uint64_t pushed = pli_now_ns();
    PLI_TRY(plait_table_get(table, n, r->key, r->value));
    const uint64_t pulled = pli_now_ns();
    for (int64_t i = 0; i < n; i++) {
        if (!(r->value[i] >= 1.0F)) return PLAIT_EINVAL;
    }
    r->push[round] = (double)(pushed - start) * 1e-9 / (double)n;
    r->pull[round] = (double)(pulled - pushed) * 1e-9 / (double)n;
    return PLAIT_OK;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of the later half of the rounds, because the first rounds fill the table. */
static double median(double *seconds, int64_t n) {
    qsort(seconds + n / 2, (size_t)(n - n / 2), sizeof *seconds, by_size);
    return seconds[n / 2 + (n - n / 2) / 2];
}

static plait_status work(plait_job *job, void *user) {
    run             *r = user;
    plait_table     *table = NULL;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "keys";
    opts.topology = "ps";
    opts.consistency = "async";
    PLI_TRY(plait_table_create(job, &opts, &table));
    for (int64_t round = 0; round < r->rounds; round++) PLI_TRY(one_round(table, r, round));
    printf("{\"push_keys_s\":%.6g,\"pull_keys_s\":%.6g}\n", 1.0 / median(r->push, r->rounds),
           1.0 / median(r->pull, r->rounds));
    return PLAIT_OK;
}

static int go(run *r, const plait_comm_opts *opts) {
    plait_error err = { 0 };
    r->key = pli_array((size_t)r->keys, sizeof *r->key);
    r->value = pli_array((size_t)r->keys, sizeof *r->value);
    r->push = pli_array((size_t)r->rounds, sizeof *r->push);
    r->pull = pli_array((size_t)r->rounds, sizeof *r->pull);
    plait_status status = PLAIT_ENOMEM;
    if (r->key != NULL && r->value != NULL && r->push != NULL && r->pull != NULL) {
        status = plait_run(opts, NULL, work, r, &err);
    }
    if (status != PLAIT_OK) fprintf(stderr, "keys: %s: %s\n", plait_status_text(status), err.text);
    pli_free(r->pull);
    pli_free(r->push);
    pli_free(r->value);
    pli_free(r->key);
    return status == PLAIT_OK ? 0 : 1;
}

int main(int argc, char **argv) {
    run             r = { .keys = 1000000, .rounds = 16, .universe = 16000000 };
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.servers = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        int64_t *number = strcmp(argv[i], "--keys") == 0       ? &r.keys
                          : strcmp(argv[i], "--rounds") == 0   ? &r.rounds
                          : strcmp(argv[i], "--universe") == 0 ? &r.universe
                                                               : NULL;
        if (strcmp(argv[i], "--transport") == 0) {
            opts.transport = argv[i + 1];
            if (strcmp(opts.transport, "threads") == 0) opts.workers = 1;
        } else if (number == NULL || !pli_parse_i64(argv[i + 1], number) || *number < 1) {
            fputs("keys [--keys N] [--rounds N] [--universe N] [--transport NAME]\n", stderr);
            return 2;
        }
    }
    return go(&r, &opts);
}
