/* drawn.h - what tests of a program's own functions share: a graph that is drawn by a seed, whose numbers are the ids,
 * and a run of a program on it. Needs cmocka.h before. */
#ifndef PLI_TESTS_VERTEX_DRAWN_H
#define PLI_TESTS_VERTEX_DRAWN_H

#include "base/random.h"
#include "named.h"
#include "vertex/vertex.h"

enum { N = 40, M = 120 };

typedef struct graph {
    uint64_t from[M], to[M];
    float    weight[M];
    int      n; /* vertices that have an edge: numbers are those of plait_edges */
    plait_edges *edges;
} graph;

static inline graph draw(uint64_t seed) {
    pli_random  random = pli_random_at(seed, PLI_RANDOM_DATA, 0, 0);
    graph       g = { .n = N };
    plait_error err;
    for (int k = 0; k < M; k++) {
        g.from[k] = k < N ? (uint64_t)k : (uint64_t)(pli_random_f64(&random) * N); /* each vertex has an edge */
        g.to[k] = (uint64_t)(pli_random_f64(&random) * N);
        g.weight[k] = (float)(1 + (int)(pli_random_f64(&random) * 5));
    }
    if (plait_edges_from_memory(M, g.from, g.to, g.weight, NULL, &g.edges, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(plait_edges_vertices(g.edges), N);
    return g;
}

typedef struct doing {
    const plait_edges          *edges;
    const plait_vertex_cut     *cut;
    const plait_vertex_program *program;
    int64_t                     limit;
    double                      value[4 * N]; /* any type's bits */
    plait_vertex_report         report;
} doing;

static inline plait_status run_worker(plait_job *job, void *user) {
    doing              *d = user;
    const bool          lowest = plait_comm_rank(plait_job_comm(job)) == 0;
    plait_vertex_report report;
    const plait_status  status =
        plait_vertex_run(job, d->edges, d->cut, d->program, d->limit, lowest ? d->value : NULL, &report);
    if (lowest) d->report = report;
    return status;
}

static inline plait_status run(const setting *s, const plait_edges *edges, const plait_vertex_program *program,
                               int64_t limit, doing *d, plait_error *err) {
    plait_comm_opts   comm;
    plait_job_opts    job;
    plait_vertex_cut *cut = NULL;
    options_of(s, &comm, &job);
    plait_status status = plait_vertex_cut_create(edges, program->near, s->cut, s->workers, &cut, err);
    *d = (doing){ .edges = edges, .cut = cut, .program = program, .limit = limit };
    if (status == PLAIT_OK) status = plait_run(&comm, &job, run_worker, d, err);
    plait_vertex_cut_destroy(&cut);
    return status;
}

static inline plait_vertex_program program_of(const char *name) {
    plait_vertex_program p;
    plait_vertex_program_init(&p);
    p.name = name;
    return p;
}

#endif
