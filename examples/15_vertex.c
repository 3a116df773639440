/* A vertex program of one's own: heat. The first vertex of a ring is held at 1, the one across at 0; each other takes
 * the mean of its two neighbors, until nothing moves. Written once; which worker has which edge, how values travel and
 * what a read may miss are settings.  15_vertex [TOPOLOGY [CONSISTENCY [WORKERS [CUT]]]] */
#include <math.h>
#include <plait/vertex.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 32 };

typedef struct ring {
    plait_edges          *edges;
    plait_vertex_cut     *cut;
    plait_vertex_program  program;
    double                heat[N]; /* written by worker 0 */
    plait_vertex_report   report;
} ring;

static void begin(void *user, const plait_vertex *v, void *value) {
    (void)user;
    *(double *)value = v->index == 0;
}

static double take_mean(void *user, const plait_vertex *v, const void *gathered, void *value) {
    const double old = *(double *)value, mean = *(const double *)gathered / (double)v->in;
    (void)user;
    if (v->index != 0 && v->index != N / 2) *(double *)value = mean;
    return fabs(*(double *)value - old);
}

static plait_status work(plait_job *job, void *user) {
    ring *r = user;
    if (plait_comm_rank(plait_job_comm(job)) != 0)
        return plait_vertex_run(job, r->edges, r->cut, &r->program, 0, NULL, NULL);
    return plait_vertex_run(job, r->edges, r->cut, &r->program, 0, r->heat, &r->report);
}

int main(int argc, char **argv) {
    plait_comm_opts  comm;
    plait_job_opts   job;
    plait_edges_opts opts;
    plait_error      error;
    ring             r = { 0 };
    uint64_t         from[N], to[N];
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    plait_edges_opts_init(&opts);
    plait_vertex_program_init(&r.program);
    job.topology = argc > 1 ? argv[1] : NULL;
    job.consistency = argc > 2 ? argv[2] : NULL;
    comm.workers = argc > 3 ? atoi(argv[3]) : 2;
    for (uint64_t k = 0; k < N; k++) from[k] = k, to[k] = (k + 1) % N;
    opts.undirected = 1;
    r.program.name = "heat";
    r.program.init = begin;
    r.program.apply = take_mean;
    r.program.tolerance = 1e-9;
    if (plait_edges_from_memory(N, from, to, NULL, &opts, &r.edges, &error) < 0 ||
        plait_vertex_cut_create(r.edges, r.program.near, argc > 4 ? argv[4] : NULL, comm.workers, &r.cut, &error) < 0 ||
        plait_run(&comm, &job, work, &r, &error) < 0)
        return fprintf(stderr, "%s\n", error.text), 2;
    printf("after %lld supersteps the heat half way is %.6f\n", (long long)r.report.supersteps, r.heat[N / 4]);
    plait_vertex_cut_destroy(&r.cut);
    plait_edges_destroy(&r.edges);
    return fabs(r.heat[N / 4] - 0.5) < 1e-4 ? 0 : 1;
}
