/* Your own filter: `counts` is for tables that count. Updates that are integers from -127 to 127 travel as one byte
 * instead of eight; others travel unchanged. So nothing is lost, and the filter works with any consistency. */
#include <plait/table.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { ROWS = 3000, CLOCKS = 20 };

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    (void)state;
    if (parameters == NULL && (table == NULL || table->type == PLAIT_F64)) return PLAIT_OK;
    snprintf(err->text, sizeof err->text, "filter counts takes no parameters, and tables of float64");
    return err->code = PLAIT_EINVAL;
}

/* The first byte says how values are encoded: 1: one byte each, 0: unchanged. */
static int64_t bound(const void *state, const plait_part *part, int64_t n) {
    (void)state, (void)part;
    return 1 + n * (int64_t)sizeof(double);
}

static int64_t encode(void *state, const plait_part *part, int64_t n, const uint64_t *row, const void *values,
                      void *bytes) {
    const double *x = values;
    signed char  *to = bytes;
    (void)state, (void)part, (void)row;
    to[0] = 1;
    for (int64_t i = 0; i < n && to[0]; i++) {
        if (x[i] >= -127 && x[i] <= 127 && x[i] == (double)(int)x[i]) to[1 + i] = (signed char)x[i];
        else to[0] = 0;
    }
    if (to[0]) return 1 + n;
    memcpy(to + 1, x, (size_t)n * sizeof *x);
    return 1 + n * (int64_t)sizeof *x;
}

static plait_status decode(void *state, const plait_part *part, int64_t n, const void *bytes, int64_t size,
                           void *values) {
    const signed char *from = bytes;
    double            *x = values;
    (void)state, (void)part;
    if (size < 1 || size != 1 + n * (from[0] ? 1 : (int64_t)sizeof *x)) return PLAIT_EFORMAT;
    if (!from[0]) memcpy(x, from + 1, (size_t)n * sizeof *x);
    for (int64_t i = 0; from[0] && i < n; i++) x[i] = from[1 + i];
    return PLAIT_OK;
}

static const plait_filter counts = {
    .name = "counts",
    .parameters = "",
    .summary = "small whole numbers as a byte each",
    .state_bytes = 1,
    .loss = PLAIT_EXACT,
    .answers = 1,
    .parse = parse,
    .values = { .bound = bound, .encode = encode, .decode = decode },
};

/* Every worker counts every third row, from its rank on. user: receives the bytes that rank 0 has sent. */
static plait_status work(plait_job *job, void *user) {
    plait_comm      *comm = plait_job_comm(job);
    int              me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    uint64_t         keys[ROWS / 3];
    double           ones[ROWS / 3], count;
    plait_table     *table = NULL;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "counts", opts.type = PLAIT_F64, opts.rows = ROWS, opts.keyed = 1;
    for (int i = 0; i < ROWS / 3; i++) keys[i] = (uint64_t)(3 * i + me % 3), ones[i] = 1;
    plait_status status = plait_table_create(job, &opts, &table);
    for (int clock = 0; clock < CLOCKS && status >= 0; clock++)
        if ((status = plait_table_inc(table, ROWS / 3, keys, ones, 0)) >= 0) status = plait_job_clock(job);
    if (status >= 0) status = plait_job_barrier(job);
    for (uint64_t key = 0; key < 3 && status >= 0; key++) {
        int all = 0;
        for (int w = 0; w < workers; w++) all += w % 3 == (int)key ? CLOCKS : 0;
        status = plait_table_get(table, 1, &key, &count);
        if (status >= 0 && count != all) return PLAIT_EDIVERGED;
    }
    if (me == 0 && status >= 0) *(uint64_t *)user = plait_comm_bytes_sent(comm);
    return status;
}

int main(int argc, char **argv) {
    uint64_t bytes[2] = { 0, 0 }; /* written by worker 0 */
    for (int filtered = 0; filtered < 2; filtered++) {
        plait_comm_opts comm;
        plait_job_opts  job;
        plait_error     error = { 0 };
        plait_comm_opts_init(&comm);
        plait_job_opts_init(&job);
        comm.transport = argc > 1 ? argv[1] : NULL;
        comm.workers = argc > 2 ? atoi(argv[2]) : argc > 1 ? 0 : 4;
        job.topology = "ps";
        job.filters = &counts;
        job.n_filters = 1;
        job.filter = filtered ? "key-cache,counts" : NULL;
        if (plait_run(&comm, &job, work, &bytes[filtered], &error) < 0) return fprintf(stderr, "%s\n", error.text), 2;
    }
    printf("%llu bytes without, %llu with key-cache,counts\n", (unsigned long long)bytes[0],
           (unsigned long long)bytes[1]);
    return bytes[1] * 5 <= bytes[0] ? 0 : 1;
}
