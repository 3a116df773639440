/* What an heir could not make anew is refused by name, in jobs with two replicas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "named.h"
#include "vertex/vertex.h"

typedef struct refusal {
    const char *says, *engine, *consistency;
    bool        numbers, stops;
} refusal;

typedef struct refusing {
    const refusal *r;
    plait_edges   *edges;
} refusing;

static void nothing(void *user, const plait_vertex_edge *edge) {
    (void)user;
    (void)edge;
}

static plait_status save_nothing(void *user, plait_job *job, plait_table *const *tables, int32_t n) {
    (void)user;
    (void)job;
    (void)tables;
    (void)n;
    return PLAIT_OK;
}

static plait_status be_refused(plait_job *job, void *user) {
    const refusing      *f = user;
    pli_vertex_choice    choice = { f->edges, -1, 0.85, 1e-6, 0, NULL };
    plait_vertex_program p;
    plait_vertex_opts    opts;
    plait_vertex_cut    *cut = NULL;
    plait_vertex_opts_init(&opts);
    make("pagerank", &choice, &p);
    opts.engine = f->r->engine;
    if (f->r->stops) opts.pause = save_nothing;
    if (f->r->numbers) {
        p.edge_values = 1;
        p.edge_init = nothing;
    }
    PLI_TRY(plait_vertex_cut_create(f->edges, p.near, NULL, 2, &cut, NULL));
    const plait_status status = plait_vertex_run_with(job, f->edges, cut, &p, &opts, NULL, NULL);
    plait_vertex_cut_destroy(&cut);
    return status;
}

static void test_what_nobody_could_make_anew_is_refused(void **state) {
    static const refusal refusals[] = {
        { .says = "nearest is consistency bsp", .consistency = "ssp:2" },
        { .says = "checkpoints of engine async with replicas 2 are refused", .engine = "async", .stops = true },
        { .says = "these numbers are in no table, and die with their worker", .numbers = true },
    };
    static const uint64_t from[] = { 1, 2, 3 }, to[] = { 2, 3, 1 };
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        refusing        f = { .r = &refusals[i] };
        plait_error     err;
        plait_comm_opts comm;
        plait_job_opts  job;
        plait_comm_opts_init(&comm);
        plait_job_opts_init(&job);
        comm.workers = 2;
        job.topology = "ps";
        job.replicas = 2;
        job.consistency = refusals[i].consistency;
        assert_int_equal(plait_edges_from_memory(3, from, to, NULL, NULL, &f.edges, &err), PLAIT_OK);
        assert_int_equal(plait_run(&comm, &job, be_refused, &f, &err), PLAIT_EREFUSED);
        if (strstr(err.text, refusals[i].says) == NULL) fail_msg("%s", err.text);
        plait_edges_destroy(&f.edges);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_nobody_could_make_anew_is_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
