/* Cases of plait/vertex.h: two vertices that point at each other. */
#include <stdio.h>

#include "api/nulls.h"

static const uint64_t from[2] = { 5, 9 }, to[2] = { 9, 5 };

static plait_edges *edges_of(fixture *f) {
    plait_edges *edges = NULL;
    plait_edges_from_memory(2, from, to, NULL, NULL, &edges, &f->err);
    return edges;
}
static plait_vertex_cut *cut_of(fixture *f, const plait_edges *edges) {
    plait_vertex_cut *cut = NULL;
    plait_vertex_cut_create(edges, PLAIT_NEAR_IN, NULL, 1, &cut, &f->err);
    return cut;
}

static int edges_opts(fixture *f, int arg) {
    plait_edges_opts opts;
    (void)f;
    (plait_edges_opts_init)(N(0, &opts));
    return NEUTRAL;
}
static int program_init(fixture *f, int arg) {
    plait_vertex_program program;
    (void)f;
    (plait_vertex_program_init)(N(0, &program));
    return NEUTRAL;
}
static int opts_init(fixture *f, int arg) {
    plait_vertex_opts opts;
    (void)f;
    (plait_vertex_opts_init)(N(0, &opts));
    return NEUTRAL;
}
static int edges_read(fixture *f, int arg) {
    plait_edges *edges = NULL;
    FILE        *file = fopen(f->out_path, "w");
    if (file != NULL) fputs("1 2\n", file), fclose(file);
    const int answer = plait_edges_read(N(0, f->out_path), N(1, NULL), N(2, &edges), N(3, &f->err));
    plait_edges_destroy(&edges);
    return answer;
}
static int from_memory(fixture *f, int arg) {
    plait_edges *edges = NULL;
    const int    answer = plait_edges_from_memory(2, N(1, from), N(2, to), NULL, NULL, N(5, &edges), N(6, &f->err));
    plait_edges_destroy(&edges);
    return answer;
}
static int edges_destroy(fixture *f, int arg) {
    plait_edges *edges = edges_of(f);
    plait_edges_destroy(N(0, &edges));
    plait_edges_destroy(&edges);
    return NEUTRAL;
}

enum { VERTICES, COUNT, LOOPS, DOUBLES, WEIGHTED, FIND, ID };

static int ask(fixture *f, int arg, int which) {
    plait_edges       *edges = edges_of(f);
    const plait_edges *e = N(0, edges);
    int                is = 0;
    switch (which) {
    case VERTICES: is = plait_edges_vertices(e) == 0; break;
    case COUNT: is = plait_edges_count(e) == 0; break;
    case LOOPS: is = plait_edges_loops(e) == 0; break;
    case DOUBLES: is = plait_edges_doubles(e) == 0; break;
    case WEIGHTED: is = plait_edges_weighted(e) == 0; break;
    case FIND: is = plait_edges_find(e, 9) == -1; break;
    default: is = plait_edges_id(e, 1) == 0;
    }
    plait_edges_destroy(&edges);
    return arg < 0 ? NEUTRAL : NEUTRAL_IF(is);
}
static int vertices(fixture *f, int arg) { return ask(f, arg, VERTICES); }
static int count(fixture *f, int arg) { return ask(f, arg, COUNT); }
static int loops(fixture *f, int arg) { return ask(f, arg, LOOPS); }
static int doubles(fixture *f, int arg) { return ask(f, arg, DOUBLES); }
static int weighted(fixture *f, int arg) { return ask(f, arg, WEIGHTED); }
static int find(fixture *f, int arg) { return ask(f, arg, FIND); }
static int id(fixture *f, int arg) { return ask(f, arg, ID); }

static int cut_create(fixture *f, int arg) {
    plait_edges      *edges = edges_of(f);
    plait_vertex_cut *cut = NULL;
    const int answer = plait_vertex_cut_create(N(0, edges), PLAIT_NEAR_IN, NULL, 1, N(4, &cut), N(5, &f->err));
    plait_vertex_cut_destroy(&cut);
    plait_edges_destroy(&edges);
    return answer;
}
static int cut_destroy(fixture *f, int arg) {
    plait_edges      *edges = edges_of(f);
    plait_vertex_cut *cut = cut_of(f, edges);
    plait_vertex_cut_destroy(N(0, &cut));
    plait_vertex_cut_destroy(&cut);
    plait_edges_destroy(&edges);
    return NEUTRAL;
}
static int measure(fixture *f, int arg, int balance) {
    plait_edges      *edges = edges_of(f);
    plait_vertex_cut *cut = cut_of(f, edges);
    const double      is = balance ? plait_vertex_cut_imbalance(N(0, cut)) : plait_vertex_cut_replication(N(0, cut));
    plait_vertex_cut_destroy(&cut);
    plait_edges_destroy(&edges);
    return arg < 0 ? NEUTRAL : NEUTRAL_IF(is == 0);
}
static int replication(fixture *f, int arg) { return measure(f, arg, 0); }
static int imbalance(fixture *f, int arg) { return measure(f, arg, 1); }

/* In a job of its own, since it ends clocks. */
typedef struct call {
    int               arg;
    plait_edges      *edges;
    plait_vertex_cut *cut;
    int               with; /* options */
} call;

static plait_status work(plait_job *job, void *user) {
    const call          *c = user;
    const int            arg = c->arg;
    plait_vertex_program program;
    plait_vertex_report  report;
    int64_t              value[2];
    plait_vertex_program_init(&program);
    program.name = "ring";
    program.combine = "max";
    if (c->with) {
        plait_vertex_opts opts;
        plait_vertex_opts_init(&opts);
        opts.engine = "async";
        return plait_vertex_run_with(N(0, job), N(1, c->edges), N(2, c->cut), N(3, &program), N(4, &opts), N(5, value),
                                     N(6, &report));
    }
    return plait_vertex_run(N(0, job), N(1, c->edges), N(2, c->cut), N(3, &program), 0, N(5, value), N(6, &report));
}
static int run_by(fixture *f, int arg, int with) {
    call              c = { arg, edges_of(f), NULL, with };
    plait_comm_opts   comm;
    plait_comm_opts_init(&comm);
    comm.transport = "threads";
    c.cut = cut_of(f, c.edges);
    const int answer = plait_run(&comm, NULL, work, &c, &f->err);
    plait_vertex_cut_destroy(&c.cut);
    plait_edges_destroy(&c.edges);
    return answer;
}
static int run(fixture *f, int arg) { return run_by(f, arg, 0); }
static int run_with(fixture *f, int arg) { return run_by(f, arg, 1); }

const null_case vertex_cases[] = {
    { "edges_opts_init", edges_opts, NULL },
    { "edges_read", edges_read, "opts" },
    { "edges_from_memory", from_memory, "weight opts" },
    { "edges_destroy", edges_destroy, "edges" },
    { "edges_vertices", vertices, NULL },
    { "edges_count", count, NULL },
    { "edges_loops", loops, NULL },
    { "edges_doubles", doubles, NULL },
    { "edges_weighted", weighted, NULL },
    { "edges_find", find, NULL },
    { "edges_id", id, NULL },
    { "vertex_program_init", program_init, NULL },
    { "vertex_cut_create", cut_create, "method" },
    { "vertex_cut_destroy", cut_destroy, "cut" },
    { "vertex_cut_replication", replication, NULL },
    { "vertex_cut_imbalance", imbalance, NULL },
    { "vertex_run", run, "values_out report_out" },
    { "vertex_opts_init", opts_init, NULL },
    { "vertex_run_with", run_with, "opts values_out report_out" },
    { NULL, NULL, NULL },
};
