/* settings.h - what tests of either engine share: a run under one setting. Needs cmocka.h before. */
#ifndef PLI_TESTS_VERTEX_SETTINGS_H
#define PLI_TESTS_VERTEX_SETTINGS_H

#include <plait/job.h>
#include <string.h>

#include "vertex/vertex.h"

typedef struct engine_setting {
    const char *topology, *engine, *scope, *cut;
    int32_t     workers;
    const char *order; /* of the engine async */
} engine_setting;

typedef struct doing {
    const plait_edges          *edges;
    const plait_vertex_cut     *cut;
    const plait_vertex_program *program;
    plait_vertex_opts           opts;
    void                       *value;  /* of the lowest worker */
    plait_vertex_report         report;
} doing;

static inline plait_status run_body(plait_job *job, void *user) {
    doing              *d = user;
    const bool          lowest = plait_comm_rank(plait_job_comm(job)) == 0;
    plait_vertex_report report;
    const plait_status  status =
        plait_vertex_run_with(job, d->edges, d->cut, d->program, &d->opts, lowest ? d->value : NULL, &report);
    if (lowest) d->report = report;
    return status;
}

/** Runs it on threads; value [vertices, values]. limit: of supersteps, 0: none. */
static inline plait_status run_setting(const engine_setting *s, const plait_edges *edges,
                                       const plait_vertex_program *program, int64_t limit, void *value,
                                       plait_vertex_report *report_out, plait_error *err) {
    plait_comm_opts   comm;
    plait_job_opts    job;
    plait_vertex_cut *cut = NULL;
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    comm.workers = s->workers;
    comm.threads = 2;
    job.topology = s->topology;
    plait_status status = plait_vertex_cut_create(edges, program->near, s->cut, s->workers, &cut, err);
    doing        d = { .edges = edges, .cut = cut, .program = program, .value = value };
    plait_vertex_opts_init(&d.opts);
    d.opts.engine = s->engine;
    d.opts.scope = s->scope;
    d.opts.order = s->order;
    d.opts.supersteps = limit;
    if (status == PLAIT_OK) status = plait_run(&comm, &job, run_body, &d, err);
    plait_vertex_cut_destroy(&cut);
    *report_out = d.report;
    return status;
}

/** The program of this name with what it has prepared of `asked`; choice has the edges and the tolerance. */
static inline plait_status make_named(const char *name, const pli_vertex_asked *asked, pli_vertex_choice *choice,
                                      plait_vertex_program *program, plait_error *err) {
    const pli_vertex_named *named = pli_vertex_find(name, err);
    assert_non_null(named);
    plait_vertex_program_init(program);
    program->name = name;
    program->user = choice;
    PLI_TRY(named->prepare(asked, choice, err));
    return named->make(choice, program, err);
}

#endif
