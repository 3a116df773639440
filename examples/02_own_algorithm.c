/* Your own algorithm: least squares by stochastic gradients. Topology, consistency and transport are words of the
 * command line (02_own_algorithm ps ssp:2 threads 4), and every pair that Plait has works. */
#include <math.h>
#include <plait/table.h>
#include <stdio.h>
#include <stdlib.h>
enum { D = 16, BATCH = 64, CLOCKS = 400 };
/* Makes row number `row` of endless data: x[j] in [-1, 1], y = sum of (j + 1) x[j]. */
static double example(uint64_t row, float x[D]) {
    double y = 0;
    for (int j = 0; j < D; y += (j + 1) * x[j], j++) {
        uint64_t h = (row * D + (uint64_t)j + 1) * 0x9e3779b97f4a7c15u;
        x[j] = (float)((double)(((h ^ (h >> 31)) * 0xbf58476d1ce4e5b9u) >> 11) * 0x1p-52 - 1);
    }
    return y;
}

static plait_status work(plait_job *job, void *user) {
    int              me = plait_comm_rank(plait_job_comm(job)), workers = plait_comm_workers(plait_job_comm(job));
    plait_table_opts opts;
    plait_table     *table = NULL;
    float            w[D], x[D];
    plait_table_opts_init(&opts);
    opts.name = "w";
    opts.rows = D;
    opts.rule.name = "sgd";
    opts.rule.learning_rate = 0.5;
    plait_status status = plait_table_create(job, &opts, &table);
    for (int clock = 0, rows = 0; clock < CLOCKS && status >= 0; clock++, rows = 0) {
        float gradient[D] = { 0 };
        if ((status = plait_table_get_range(table, 0, D, w)) < 0) break;
        for (int i = me; i < BATCH; i += workers, rows++) {
            double error = -example((uint64_t)clock * BATCH + (uint64_t)i, x);
            for (int j = 0; j < D; j++) error += (double)w[j] * x[j];
            for (int j = 0; j < D; j++) gradient[j] += (float)(error * x[j]);
        }
        if ((status = plait_table_inc_range(table, 0, D, gradient, rows)) >= 0) status = plait_job_clock(job);
    }
    /* After a barrier a get misses nothing, whatever the consistency. */
    if (status >= 0 && (status = plait_job_barrier(job)) >= 0) status = plait_table_get_range(table, 0, D, w);
    for (int j = 0; j < D && me == 0; j++) *(double *)user += fabs(w[j] - (j + 1)) / D;
    return status;
}

int main(int argc, char **argv) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     error;
    double          distance = 0; /* written by worker 0 */
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    job.batch = BATCH;
    job.topology = argc > 1 ? argv[1] : NULL;
    job.consistency = argc > 2 ? argv[2] : NULL;
    comm.transport = argc > 3 ? argv[3] : NULL;
    comm.workers = argc > 4 ? atoi(argv[4]) : 0;
    if (plait_run(&comm, &job, work, &distance, &error) < 0) return fprintf(stderr, "%s\n", error.text), 2;
    if (distance > 0) printf("mean distance of a weight from the truth: %.2g\n", distance);
    return distance < 1e-2 ? 0 : 1;
}
