/* A vertex program stops, is saved, and goes on in another job, under consistencies whose reads may be stale. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <plait/checkpoint.h>

#include "comm/comm.h"
#include "ways.h"

typedef struct pausing {
    const graph            *g;
    const plait_vertex_cut *cut;
    plait_vertex_program    program;
    const char             *engine;
    char                    dir[40];
    int64_t                 supersteps; /* until it pauses; 0: it has, and goes on to its end */
    int                     still;      /* it has come to its end */
    double                  way[N];
} pausing;

static plait_status save(void *user, plait_job *job, plait_table *const *tables, int32_t n) {
    plait_checkpoint_opts opts;
    plait_checkpoint_opts_init(&opts);
    opts.dir = ((const pausing *)user)->dir;
    return plait_checkpoint_save(job, tables, n, &opts);
}

static plait_status restore(void *user, plait_job *job, plait_table *const *tables, int32_t n, int *restored_out) {
    plait_checkpoint *checkpoint = NULL;
    plait_error      *err = pli_comm_error(plait_job_comm(job));
    plait_status status = plait_checkpoint_open(((const pausing *)user)->dir, NULL, &checkpoint, err);
    for (int32_t i = 0; status >= 0 && i < n; i++) status = plait_checkpoint_restore(checkpoint, tables[i], NULL);
    plait_checkpoint_close(&checkpoint);
    *restored_out = 1;
    return status;
}

static plait_status pausing_body(plait_job *job, void *user) {
    pausing            *p = user;
    const bool          lowest = plait_comm_rank(plait_job_comm(job)) == 0;
    plait_vertex_report report;
    plait_vertex_opts   opts;
    plait_vertex_opts_init(&opts);
    opts.supersteps = opts.every = p->supersteps;
    opts.user = p;
    opts.engine = p->engine;
    if (p->supersteps > 0) opts.pause = save;
    else opts.begin = restore;
    const plait_status status =
        plait_vertex_run_with(job, p->g->edges, p->cut, &p->program, &opts, lowest ? p->way : NULL, &report);
    if (lowest) p->still = report.still;
    return status;
}

static void run_pausing(pausing *p, const setting *s, int64_t supersteps) {
    plait_comm_opts   comm;
    plait_job_opts    job;
    plait_error       err;
    plait_vertex_cut *cut = NULL;
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    comm.workers = s->workers, job.topology = s->topology, job.consistency = s->consistency;
    assert_int_equal(plait_vertex_cut_create(p->g->edges, p->program.near, s->cut, s->workers, &cut, &err), PLAIT_OK);
    p->cut = cut;
    p->supersteps = supersteps;
    if (supersteps == 0) {
        plait_checkpoint *checkpoint = NULL;
        if (plait_checkpoint_open(p->dir, NULL, &checkpoint, &err) < 0) fail_msg("%s", err.text);
        job.first_clock = plait_checkpoint_clock(checkpoint);
        plait_checkpoint_close(&checkpoint);
    }
    if (plait_run(&comm, &job, pausing_body, p, &err) < 0) fail_msg("%s", err.text);
    plait_vertex_cut_destroy(&cut);
}

/* A run stops behind any superstep, is saved, and goes on. Where reads are stale, what others have pushed is in the
 * checkpoint, whether a worker has seen it or not: those whom it signals must take part in the run that goes on. */
static void test_signals_outlast_a_checkpoint(void **state) {
    static const setting settings[] = { { "ps", "bsp", "range", 3 },   { "ps", "ssp:2", "range", 4 },
                                        { "ps", "essp:3", "range", 3 }, { "ps", "async", "range", 3 },
                                        { "ps", "bsp", "range", 3 },    { "ps", "ssp:2", "range", 4 } };
    (void)state;
    for (int s = 0; s < 6; s++)
        for (int64_t supersteps = 1; supersteps < 9; supersteps++) {
            const graph g = draw(20);
            pausing     p = { .g = &g, .program = program_of("signals"), .engine = s < 4 ? "sync" : "async",
                              .dir = "/tmp/plait-paused-XXXXXX" };
            double      way[N];
            char        command[80];
            p.program.combine = "min", p.program.along = PLAIT_ALONG_PLUS, p.program.init = all_far;
            p.program.apply = source_or_less, p.program.scatter = gets_nearer, p.program.starts = is_first;
            assert_non_null(mkdtemp(p.dir));
            plain_ways(&g, way);
            run_pausing(&p, &settings[s], supersteps);
            if (!p.still) run_pausing(&p, &settings[s], 0);
            assert_true(p.still);
            for (int v = 0; v < N; v++)
                if (p.way[v] != way[v])
                    fail_msg("%s, paused behind superstep %d: vertex %d is %g away instead of %g",
                             settings[s].consistency, (int)supersteps, v, p.way[v], way[v]);
            snprintf(command, sizeof command, "rm -r %s", p.dir);
            assert_int_equal(system(command), 0);
            plait_edges_destroy((plait_edges **)&g.edges);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_signals_outlast_a_checkpoint) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
