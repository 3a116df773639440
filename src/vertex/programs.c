/* The built-in vertex programs. Most are a few lines: what a vertex begins with, what it tells, what it makes of what
 * arrives; the others are a file each. See plait/vertex.h. */
#include <math.h>

#include "vertex/als.h"
#include "vertex/beliefs.h"
#include "vertex/by_engine.h"
#include "vertex/direct.h"
#include "vertex/gcn.h"
#include "vertex/pagerank.h"

/* --- components --------------------------------------------------------------------------------------------------- */

/* Weakly connected, vertex by vertex: each takes the least number among its neighbors and itself. pli_run_components is
 * faster where all vertices move together. */
static void own_number(void *user, const plait_vertex *v, void *value) {
    (void)user;
    *(int64_t *)value = v->index;
}

static plait_status components(const pli_vertex_choice *c, plait_vertex_program *p, plait_error *err) {
    (void)c;
    (void)err;
    p->type = PLAIT_I64;
    p->combine = "min";
    p->near = PLAIT_NEAR_BOTH;
    p->init = own_number;
    return PLAIT_OK;
}

/* --- distances ---------------------------------------------------------------------------------------------------- */

static void hops_init(void *user, const plait_vertex *v, void *value) {
    *(int64_t *)value = v->index == ((const pli_vertex_choice *)user)->source ? 0 : INT64_MAX;
}

static void hops_tell(void *user, const plait_vertex *v, const void *value, void *told) {
    const int64_t hops = *(const int64_t *)value;
    (void)user;
    (void)v;
    *(int64_t *)told = hops < INT64_MAX ? hops + 1 : hops;
}

static plait_status bfs(const pli_vertex_choice *c, plait_vertex_program *p, plait_error *err) {
    (void)c;
    (void)err;
    p->type = PLAIT_I64;
    p->combine = "min";
    p->init = hops_init;
    p->tell = hops_tell;
    return PLAIT_OK;
}

static void way_init(void *user, const plait_vertex *v, void *value) {
    *(double *)value = v->index == ((const pli_vertex_choice *)user)->source ? 0 : (double)INFINITY;
}

/* Bellman and Ford's. A weight below 0 could make a way that gets shorter each time that it goes round. */
static plait_status sssp(const pli_vertex_choice *c, plait_vertex_program *p, plait_error *err) {
    pli_edge edge;
    if (pli_edges_below(c->edges, &edge))
        return pli_fail(err, PLAIT_EREFUSED, "sssp: the edge from %llu to %llu has the weight %g: shortest ways need "
                        "weights of 0 or more", (unsigned long long)pli_edges_id(c->edges, edge.from),
                        (unsigned long long)pli_edges_id(c->edges, edge.to), (double)edge.weight);
    p->combine = "min";
    p->along = PLAIT_ALONG_PLUS;
    p->init = way_init;
    return PLAIT_OK;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static const pli_vertex_named programs[] = {
    { .name = "pagerank",
      .summary = "the vertex's rank; ranks add up to 1 (--damping, --tolerance; --source ID: personalised)",
      .personal = true, .ranks = true, .parts = true, .make = pli_pagerank_make, .finish = pli_pagerank_finish,
      .takes = { "damping", "tolerance" } },
    { .name = "components", .summary = "the least id of its weakly connected component", .ids = true,
      .parts = true,
      .make = components, .gathers = PLAIT_NEAR_BOTH, .run = pli_run_components, .figures = pli_figures_components },
    { .name = "strong", .summary = "the least id of its strongly connected component", .ids = true, .in_rounds = true,
      .parts = true,
      .run = pli_run_strong, .figures = pli_figures_components, .out = true },
    { .name = "bfs", .summary = "how many edges the shortest way from --source ID has; none: inf", .sourced = true,
      .parts = true, .make = bfs, .run = pli_run_bfs, .figures = pli_figures_bfs, .out = true, .needs = "--source ID" },
    { .name = "sssp", .summary = "the length of the shortest way from --source ID by the edges' weights; none: inf",
      .sourced = true, .parts = true, .make = sssp, .needs = "--source ID" },
    { .name = "triangles", .summary = "in how many triangles it is, edges having no direction",
      .run = pli_run_triangles, .parts = true, .near = PLI_NEAR_SIMPLE, .figures = pli_figures_triangles,
      .simple = true, .at_once = true, .whole = true },
    { .name = "clustering", .summary = "the share of the pairs of its neighbors that are neighbors themselves",
      .run = pli_run_clustering, .parts = true, .near = PLI_NEAR_SIMPLE, .is_real = true,
      .figures = pli_figures_clustering, .simple = true, .at_once = true, .whole = true },
    { .name = "kcore", .summary = "its core number: the largest k such that it is in a subgraph of k neighbors each",
      .make = pli_kcore_make, .gathers = PLI_NEAR_SIMPLE, .prepare = pli_simple_prepare, .release = pli_simple_release,
      .run = pli_run_kcore, .parts = true, .near = PLI_NEAR_SIMPLE, .figures = pli_figures_kcore, .simple = true },
    { .name = "coloring", .summary = "a color that no neighbor has: the greedy one, by falling degrees",
      .make = pli_coloring_make, .gathers = PLI_NEAR_SIMPLE, .prepare = pli_simple_prepare,
      .release = pli_simple_release, .run = pli_run_coloring, .parts = true, .near = PLI_NEAR_SIMPLE,
      .figures = pli_figures_coloring, .simple = true },
    { .name = "labels", .summary = "its community by label propagation (--supersteps, 10 by default): a vertex's id",
      .ids = true, .make = pli_labels_make, .gathers = PLAIT_NEAR_BOTH, .sync_only = true, .most = 10,
      .run = pli_run_labels, .near = PLAIT_NEAR_BOTH, .figures = pli_figures_labels, .out = true, .parts = true },
    { .name = "gcn", .summary = "the class that a graph convolution predicts, which learns from --features and --split",
      .run = pli_run_gcn, .figures = pli_figures_gcn, .simple = true, .learns = true, .whole = true, .draws = true,
      .prepare = pli_gcn_prepare, .release = pli_gcn_release, .needs = "--features ROWS --split WORDS" },
    { .name = "beliefs",
      .summary = "how probable each of its labels is, by belief propagation from --priors (--messages, --smoothing)",
      .make = pli_beliefs_make, .gathers = PLAIT_NEAR_BOTH, .figures = pli_figures_beliefs, .simple = true,
      .prepare = pli_beliefs_prepare, .release = pli_beliefs_release, .sign = pli_beliefs_sign,
      .shown = pli_beliefs_shown, .takes = { "priors", "messages", "smoothing", "tolerance" },
      .needs = "--priors FILE", .most = 1000 },
    { .name = "als",
      .summary = "its bias and factors, where edges are ratings from users to items (--components, --l2, --seed)",
      .make = pli_als_make, .gathers = PLAIT_NEAR_BOTH, .figures = pli_figures_als, .out = true, .draws = true,
      .prepare = pli_als_prepare, .release = pli_als_release, .sign = pli_als_sign,
      .takes = { "components", "l2", "tolerance" }, .most = 30 },
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

const pli_vertex_named *pli_vertex_all(int32_t *n_out) {
    *n_out = PROGRAMS;
    return programs;
}

const char *const *pli_vertex_names(void) {
    static const char *const names[] = { "pagerank",   "components", "strong",   "bfs",    "sssp", "triangles",
                                         "clustering", "kcore",      "coloring", "labels", "gcn",  "beliefs",
                                         "als",        NULL };
    _Static_assert(sizeof names / sizeof *names == PROGRAMS + 1, "a name for each program");
    return names;
}

const pli_vertex_named *pli_vertex_find(const char *name, plait_error *err) {
    for (int i = 0; i < PROGRAMS; i++)
        if (pli_is(name, programs[i].name)) return &programs[i];
    pli_fail_unknown(err, "vertex program", name, pli_vertex_names(), PROGRAMS);
    return NULL;
}

plait_status pli_run_made(const char *name, plait_job *job, const pli_vertex_choice *choice,
                          const plait_vertex_cut *cut, int64_t supersteps, void *values_out,
                          plait_vertex_report *report_out) {
    plait_vertex_program    program;
    plait_error            *err = pli_comm_error(plait_job_comm(job));
    const pli_vertex_named *named = pli_vertex_find(name, err);
    if (named == NULL) return err->code;
    plait_vertex_program_init(&program);
    program.name = named->name;
    program.user = (void *)(uintptr_t)choice;
    PLI_TRY(named->make(choice, &program, err));
    return plait_vertex_run(job, choice->edges, cut, &program, supersteps, values_out, report_out);
}
