/* bench/collectives.c - times calls of a collective, one after the other, among the ranks of one job.
 *
 *   [plait launch -n N --] collectives WHAT [--transport NAME] [--workers N] [--servers N] [--bytes N] [--calls N]
 *                                      [--rounds N] [--collective FORM]
 *
 *   allreduce   plait_comm_allreduce of so many bytes of float32 (PLAIT_SUM)
 *   exact       the same by PLAIT_SUM_EXACT
 *   dense       a clock of an allreduce table of 10 M floats, which are all pushed
 *   sparse      a clock of a keyed table, where each worker pushes 1 % of the keys
 *   push        pushes so many bytes to a table at servers, until a row of it has been read back
 *   pull        pulls so many bytes from it
 *
 * A round is a barrier and `calls` calls; before the first round the result is checked. Prints one JSON object: the
 * median over the rounds of the seconds a call, on rank 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plait/comm.h>
#include <plait/table.h>

#include "base/base.h"

enum { ROWS = 10000000, SHARE = 100, ROUNDS_MAX = 100 };

typedef struct run {
    const char *what;
    int64_t     bytes, calls, rounds;
    double      seconds[ROUNDS_MAX];
} run;

typedef plait_status call_fn(void *state);

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static plait_status time_calls(plait_comm *comm, run *r, call_fn *call, void *state) {
    for (int64_t round = 0; round < r->rounds; round++) {
        PLI_TRY(plait_comm_barrier(comm));
        const uint64_t start = pli_now_ns();
        for (int64_t i = 0; i < r->calls; i++) PLI_TRY(call(state));
        if (plait_comm_rank(comm) == 0) r->seconds[round] = (double)(pli_now_ns() - start) * 1e-9 / (double)r->calls;
    }
    if (plait_comm_rank(comm) != 0) return PLAIT_OK;
    qsort(r->seconds, (size_t)r->rounds, sizeof *r->seconds, by_size);
    printf("{\"seconds\":%.9f}\n", r->seconds[r->rounds / 2]);
    return PLAIT_OK;
}

/* --- buffers ------------------------------------------------------------------------------------------------------ */

typedef struct sum {
    plait_comm *comm;
    plait_reduce op;
    float      *values;
    int64_t     n;
} sum;

static plait_status sum_once(void *state) {
    const sum *s = state;
    return plait_comm_allreduce(s->comm, s->values, s->n, PLAIT_F32, s->op);
}

static plait_status check_sum(const sum *s) {
    const int32_t workers = plait_comm_workers(s->comm), rank = plait_comm_rank(s->comm);
    for (int64_t i = 0; i < s->n; i++) s->values[i] = (float)(rank + i % 7);
    PLI_TRY(sum_once((void *)s));
    for (int64_t i = 0; i < s->n; i++)
        if (s->values[i] != (float)(workers * (workers - 1) / 2 + (i % 7) * workers)) return PLAIT_EINVAL;
    memset(s->values, 0, (size_t)s->n * sizeof *s->values);
    return PLAIT_OK;
}

static plait_status time_buffers(plait_comm *comm, void *user) {
    run *r = user;
    sum  s = { .comm = comm, .n = r->bytes / (int64_t)sizeof(float) };
    s.op = strcmp(r->what, "exact") == 0 ? PLAIT_SUM_EXACT : PLAIT_SUM;
    s.values = pli_aligned((size_t)r->bytes);
    if (s.values == NULL) return PLAIT_ENOMEM;
    plait_status status = check_sum(&s);
    if (status >= 0) status = time_calls(comm, r, sum_once, &s);
    pli_free(s.values);
    return status;
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

typedef struct updates {
    plait_job   *job;
    plait_table *table;
    uint64_t    *keys; /* [n]; NULL: all rows */
    float       *values;
    int64_t      n;
} updates;

static plait_status clock_once(void *state) {
    const updates *u = state;
    PLI_TRY(u->keys != NULL ? plait_table_inc(u->table, u->n, u->keys, u->values, 0)
                            : plait_table_inc_range(u->table, 0, u->n, u->values, 0));
    return plait_job_clock(u->job);
}

static bool draw_keys(updates *u, int32_t rank) {
    pli_random random = pli_random_at(7, PLI_RANDOM_DATA, (uint64_t)rank, 0);
    u->keys = pli_array(ROWS / SHARE, sizeof *u->keys);
    if (u->keys == NULL) return false;
    for (u->n = 0; u->n < ROWS / SHARE; u->n++) u->keys[u->n] = pli_random_below(&random, ROWS);
    if (!pli_sort_u64(u->n, u->keys, NULL)) return false;
    u->n = pli_unique_u64(u->n, u->keys);
    return true;
}

static plait_status check_clock(const updates *u, int32_t workers) {
    float value = 0;
    for (int64_t i = 0; i < u->n; i++) u->values[i] = 1;
    PLI_TRY(clock_once((void *)u));
    PLI_TRY(plait_table_get(u->table, 1, u->keys != NULL ? u->keys : &(uint64_t){ 17 }, &value));
    return u->keys != NULL ? value >= 1 : value == (float)workers ? PLAIT_OK : PLAIT_EINVAL;
}

static plait_status time_tables(plait_job *job, void *user) {
    run             *r = user;
    updates          u = { .job = job, .n = ROWS };
    plait_comm      *comm = plait_job_comm(job);
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = r->what;
    opts.topology = "allreduce";
    opts.consistency = "bsp";
    opts.rows = ROWS;
    opts.keyed = strcmp(r->what, "sparse") == 0;
    PLI_TRY(plait_table_create(job, &opts, &u.table));
    bool enough = (!opts.keyed || draw_keys(&u, plait_comm_rank(comm))) &&
                  (u.values = pli_array((size_t)u.n, sizeof *u.values)) != NULL;
    plait_status status = enough ? check_clock(&u, plait_comm_workers(comm)) : PLAIT_ENOMEM;
    if (status >= 0) status = time_calls(comm, r, clock_once, &u);
    pli_free(u.values);
    pli_free(u.keys);
    return status;
}

/* --- servers ------------------------------------------------------------------------------------------------------ */

static plait_status push_once(void *state) {
    const updates *u = state;
    plait_request *request = NULL;
    PLI_TRY(plait_table_inc_range_begin(u->table, 0, u->n, u->values, 0, &request));
    PLI_TRY(plait_request_wait(&request));
    return plait_table_get_range(u->table, 0, 1, u->values);
}

static plait_status pull_once(void *state) {
    const updates *u = state;
    return plait_table_get_range(u->table, 0, u->n, u->values);
}

static plait_status time_servers(plait_job *job, void *user) {
    run             *r = user;
    updates          u = { .job = job, .n = r->bytes / (int64_t)sizeof(float) };
    bool             push = strcmp(r->what, "push") == 0;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = r->what;
    opts.topology = "ps";
    opts.consistency = "async";
    opts.rows = u.n;
    PLI_TRY(plait_table_create(job, &opts, &u.table));
    u.values = pli_calloc((size_t)u.n, sizeof *u.values);
    if (u.values == NULL) return PLAIT_ENOMEM;
    plait_status status = push ? push_once(&u) : pull_once(&u);
    if (status >= 0) status = time_calls(plait_job_comm(job), r, push ? push_once : pull_once, &u);
    pli_free(u.values);
    return status;
}

int main(int argc, char **argv) {
    run             r = { .what = argc > 1 ? argv[1] : "", .bytes = 8, .calls = 1, .rounds = 5 };
    plait_error     err = { 0 };
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    int64_t workers = 0, servers = 0;
    bool    good = argc % 2 == 0;
    for (int i = 2; good && i + 1 < argc; i += 2) {
        int64_t *number = strcmp(argv[i], "--bytes") == 0     ? &r.bytes
                          : strcmp(argv[i], "--calls") == 0   ? &r.calls
                          : strcmp(argv[i], "--rounds") == 0  ? &r.rounds
                          : strcmp(argv[i], "--workers") == 0 ? &workers
                          : strcmp(argv[i], "--servers") == 0 ? &servers
                                                              : NULL;
        if (strcmp(argv[i], "--transport") == 0) opts.transport = argv[i + 1];
        else if (strcmp(argv[i], "--collective") == 0) opts.collective = argv[i + 1];
        else good = number != NULL && pli_parse_i64(argv[i + 1], number) && *number >= 1;
    }
    bool buffers = strcmp(r.what, "allreduce") == 0 || strcmp(r.what, "exact") == 0,
         tables = strcmp(r.what, "dense") == 0 || strcmp(r.what, "sparse") == 0;
    bool served = strcmp(r.what, "push") == 0 || strcmp(r.what, "pull") == 0;
    if (!good || (!buffers && !tables && !served) || r.rounds > ROUNDS_MAX) {
        fputs("collectives allreduce|exact|dense|sparse|push|pull [--transport NAME] [--workers N] [--servers N] "
              "[--bytes N] [--calls N] [--rounds N] [--collective FORM]\n",
              stderr);
        return 2;
    }
    opts.workers = (int32_t)workers;
    opts.servers = (int32_t)servers;
    plait_status status = buffers ? plait_comm_run(&opts, time_buffers, &r, &err)
                                  : plait_run(&opts, NULL, tables ? time_tables : time_servers, &r, &err);
    if (status < 0) fprintf(stderr, "collectives: %s: %s\n", plait_status_text(status), err.text);
    return status < 0 ? 1 : 0;
}
