/* A table whose workers take turns (sequential) beside a table of any other kind, which is created before it or behind
 * it. A worker that waits for a sum has ended its turn, so each reads what the workers before it have left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "table/table.h"

enum { WORKERS = 3, CLOCKS = 7, ROWS = 40 };

typedef struct beside {
    const char *turns, *topology, *consistency;
    bool        turns_last, halves; /* clocks end in two halves */
} beside;

static plait_status make(plait_job *job, const char *name, const char *topology, const char *consistency,
                         plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.rows = ROWS;
    opts.type = PLAIT_F64;
    opts.topology = topology;
    opts.consistency = consistency;
    return plait_table_create(job, &opts, table_out);
}

static plait_status end_clock(plait_job *job, bool halves) {
    plait_request *ended;
    if (!halves) return plait_job_clock(job);
    PLI_TRY(plait_job_clock_begin(job, &ended));
    return plait_request_wait(&ended);
}

/* Each worker reads both tables and adds to both. Under turns it reads what the workers before it have left. */
static plait_status train(plait_job *job, void *user) {
    const beside *b = user;
    const int32_t me = plait_comm_rank(plait_job_comm(job));
    plait_table  *turns, *other;
    if (!b->turns_last) PLI_TRY(make(job, "turns", b->turns, "sequential", &turns));
    PLI_TRY(make(job, "other", b->topology, b->consistency, &other));
    if (b->turns_last) PLI_TRY(make(job, "turns", b->turns, "sequential", &turns));
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        const double one = 1;
        double       value;
        PLI_TRY(plait_table_get_range(other, 0, 1, &value));
        PLI_TRY(plait_table_inc_range(other, 0, 1, &one, 0));
        PLI_TRY(plait_table_get_range(turns, 0, 1, &value));
        if (value != (double)(clock * WORKERS + me))
            return pli_fail(pli_job_error(job), PLAIT_EDIVERGED, "%g in clock %lld of worker %d", value,
                            (long long)clock, (int)me);
        PLI_TRY(plait_table_inc_range(turns, 0, 1, &one, 0));
        PLI_TRY(end_clock(job, b->halves));
    }
    return PLAIT_OK;
}

static void test_beside_any_table(void **state) {
    static const char *const all[][3] = {
        { "ps", "ps", "bsp" }, { "ps", "ps", "ssp:1" }, { "ps", "ps", "essp:1" }, { "ps", "ps", "asp:2:3" },
        { "ps", "ps", "bounded-delay:0" }, { "ps", "ps", "bounded-delay:1" }, { "ps", "ps", "sequential" },
        { "ps", "ps", "async" }, { "ps", "ps", "vap:4" }, { "ps", "ps", "downpour:2:3" }, { "ps", "local", "bsp" },
        { "ps", "local", "async" }, { "local", "ps", "bsp" }, { "local", "local", "bsp" }, { "ps", "allreduce", "bsp" },
        { "ps", "hybrid", "bsp" }, { "ps", "allreduce", "bounded-delay:0" }, { "ps", "allreduce", "bounded-delay:1" },
        { "ps", "allreduce", "bounded-delay:3" }, { "ps", "allreduce", "local-sgd:1" },
        { "ps", "allreduce", "local-sgd:3" }, { "ps", "ps", "local-sgd:1" }, { "ps", "ps", "local-sgd:3" },
        { "ps", "gossip:ring", "bsp" }, { "ps", "gossip:ring", "async" }, { "ps", "gossip:ring", "local-sgd:2" },
        { "local", "allreduce", "bsp" },
    };
    (void)state;
    for (size_t i = 0; i < 4 * sizeof all / sizeof *all; i++) {
        beside b = { .turns = all[i / 4][0], .topology = all[i / 4][1], .consistency = all[i / 4][2],
                     .turns_last = i % 2 != 0, .halves = i % 4 > 1 };
        plait_error     err = { 0 };
        plait_comm_opts comm;
        plait_job_opts  job;
        plait_comm_opts_init(&comm);
        plait_job_opts_init(&job);
        comm.transport = "threads";
        comm.workers = WORKERS;
        comm.timeout_ns = UINT64_C(60) * 1000000000;
        if (plait_run(&comm, &job, train, &b, &err) < 0)
            fail_msg("%s x sequential beside %s x %s: %s", b.turns, b.topology, b.consistency, err.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_beside_any_table) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
