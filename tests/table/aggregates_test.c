/* Hosts that add up before anything leaves them, through the public calls. Servers hold what all workers have added,
 * even if some have nothing to add, or one ends its job in an earlier clock than others and another job follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <plait/table.h>

#define CHECK(is)                                                                                   \
    do {                                                                                            \
        if (!(is)) {                                                                                \
            fprintf(stderr, "rank %d, line %d: %s\n",                                               \
                    plait_comm_rank(comm), __LINE__, #is);                                          \
            return PLAIT_EINVAL;                                                                    \
        }                                                                                           \
    } while (0)

enum { ROWS = 2000, KINDS = 3, CLOCKS = 5 };

typedef struct setting {
    const char *topology, *consistency;
    int         exact;
} setting;

static plait_status create(plait_job *job, int32_t kind, plait_table **table_out) {
    static const char *const names[KINDS] = { "dense", "keyed", "sparse" };
    plait_table_opts         opts;
    plait_table_opts_init(&opts);
    opts.name = names[kind];
    opts.type = PLAIT_F64;
    opts.rows = kind == 2 ? 0 : ROWS;
    opts.keyed = kind == 1;
    return plait_table_create(job, &opts, table_out);
}

/* In clock c every worker but worker c mod W adds rank + 1 to row 7 and to one row of its own. */
static plait_status add(plait_comm *comm, plait_table **table, int64_t clock) {
    int32_t  me = plait_comm_rank(comm);
    uint64_t keys[2] = { 7, 100 * ((uint64_t)me + 1) };
    double   delta[2] = { me + 1, me + 1 };
    for (int32_t k = 0; clock % plait_comm_workers(comm) != me && k < KINDS; k++)
        CHECK(plait_table_inc(table[k], 2, keys, delta, 1) == PLAIT_OK);
    return PLAIT_OK;
}

/* What the workers have added to row 7 in clocks below `clocks`, and what worker w has added of it. */
static double sum_of(int32_t workers, int64_t clocks, int32_t w) {
    double sum = 0;
    for (int64_t c = 0; c < clocks; c++) sum += c % workers != w ? w + 1 : 0;
    return sum;
}

static plait_status look(plait_comm *comm, plait_table **table, int64_t clocks) {
    int32_t workers = plait_comm_workers(comm);
    double  whole = 0;
    for (int32_t w = 0; w < workers; w++) whole += sum_of(workers, clocks, w);
    for (int32_t k = 0; k < KINDS; k++)
        for (int32_t w = 0; w < workers; w++) {
            uint64_t keys[2] = { 7, 100 * ((uint64_t)w + 1) };
            double   values[2];
            CHECK(plait_table_get(table[k], 2, keys, values) == PLAIT_OK);
            CHECK(values[0] == whole && values[1] == sum_of(workers, clocks, w));
        }
    return PLAIT_OK;
}

/* early: all workers but the last end the job a clock earlier. */
static plait_status run_job(plait_comm *comm, const setting *s, bool early) {
    plait_job_opts opts;
    plait_job     *job;
    plait_table   *table[KINDS] = { 0 };
    int32_t        me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    plait_job_opts_init(&opts);
    opts.topology = s->topology;
    opts.consistency = s->consistency;
    opts.exact = s->exact;
    opts.aggregate = "host";
    CHECK(plait_job_create(comm, &opts, &job) == PLAIT_OK);
    if (me >= workers) return plait_job_destroy(&job);
    for (int32_t k = 0; k < KINDS; k++) CHECK(create(job, k, &table[k]) == PLAIT_OK);
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        if (add(comm, table, clock) < 0) return PLAIT_EINVAL;
        if (clock == 2) CHECK(plait_job_barrier(job) == PLAIT_OK); /* between an inc and its clock */
        CHECK(plait_job_clock(job) == PLAIT_OK);
        if (look(comm, table, clock + 1) < 0) return PLAIT_EINVAL;
    }
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    if (look(comm, table, CLOCKS) < 0) return PLAIT_EINVAL;
    if (early && me == workers - 1) {
        if (add(comm, table, CLOCKS) < 0) return PLAIT_EINVAL;
        CHECK(plait_job_clock(job) == PLAIT_OK);
    }
    CHECK(plait_job_destroy(&job) == PLAIT_OK);
    return PLAIT_OK;
}

static plait_status body(plait_comm *comm, void *user) {
    const setting *s = user;
    if (run_job(comm, s, strcmp(s->topology, "ps") == 0) < 0) return PLAIT_EINVAL;
    return run_job(comm, s, false);
}

static void test_sums_of_hosts(void **state) {
    (void)state;
    static const setting settings[] = {
        { "ps", "bsp", 0 }, { "ps", "bounded-delay:0", 0 }, { "ps", "bsp", 1 }, { "hybrid", "bsp", 0 }
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (int32_t workers = 1; workers <= 5; workers += 2)
            for (int32_t servers = 0; servers < 3; servers += 2) {
                setting         s = settings[i];
                plait_error     err = { 0 };
                plait_comm_opts opts;
                plait_comm_opts_init(&opts);
                opts.workers = workers;
                opts.servers = servers;
                opts.timeout_ns = UINT64_C(60) * 1000000000;
                if (plait_comm_run(&opts, body, &s, &err) < 0)
                    fail_msg("%s x %s%s, %d workers, %d servers: %s", s.topology, s.consistency,
                             s.exact ? ", exact" : "", workers, servers, err.text);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sums_of_hosts) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
