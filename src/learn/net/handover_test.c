/* Tests tables that go from group to group while a run lasts. Two tables of one group learn the same for some clocks.
 * Then one goes to another group, and both learn on from the same gradients, each in its own group: they must end with
 * the same bits, whatever the topology, and whatever memory the rule has. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <plait/group.h>

#include "learn/net/handover.h"

enum { MEMBERS = 2, ROWS = 411, COLS = 5, BEFORE = 3, AFTER = 4, VALUES = ROWS * COLS };

typedef struct setting {
    const char *topology, *consistency, *rule;
    double      l1, l2;
    int         keyed, wrong; /* wrong: the takers know the table by another number */
    float       stayed[VALUES], gone[VALUES];
    plait_status outcome;
    char         text[256];
} setting;

static plait_status make(plait_job *job, const setting *s, plait_group *group, const char *name, const float *first,
                         plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.rows = ROWS;
    opts.cols = COLS;
    opts.keyed = s->keyed;
    opts.rule.name = s->rule;
    opts.rule.learning_rate = 0.05;
    opts.rule.l1 = s->l1;
    opts.rule.l2 = s->l2;
    opts.initial = first;
    opts.group = group;
    return plait_table_create(job, &opts, table_out);
}

/* A clock's gradient of a member. Keyed tables get some of the rows, so that the others pay their penalties later. */
static plait_status learn(plait_table *table, const setting *s, int clock, int member) {
    float gradient[VALUES];
    for (int i = 0; i < VALUES; i++) gradient[i] = (float)sin(i * 7 + clock * 31 + member * 13);
    if (!s->keyed) return plait_table_inc_range(table, 0, ROWS, gradient, 3);
    uint64_t keys[ROWS];
    int64_t  n = 0;
    for (int r = (clock + member) % 3; r < ROWS; r += 3) keys[n++] = (uint64_t)r;
    return plait_table_inc(table, n, keys, gradient, 3);
}

static plait_status clocks(plait_job *job, const setting *s, int first, int n, int member, plait_table *a,
                           plait_table *b) {
    plait_status status = PLAIT_OK;
    for (int clock = first; status >= 0 && clock < first + n; clock++) {
        if (a != NULL) status = learn(a, s, clock, member);
        if (status >= 0 && b != NULL) status = learn(b, s, clock, member);
        if (status >= 0) status = plait_job_clock(job);
    }
    return status;
}

static plait_status read(plait_job *job, plait_table *stays, plait_table *goes, setting *s, int member) {
    plait_status status = plait_job_barrier(job);
    if (status >= 0 && stays != NULL && member == 0) status = plait_table_get_range(stays, 0, ROWS, s->stayed);
    if (status >= 0 && goes != NULL && member == MEMBERS - 1) status = plait_table_get_range(goes, 0, ROWS, s->gone);
    return status;
}

/* On the group that has both at first. */
static plait_status give(plait_job *job, plait_group *group, setting *s, int member) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *stays = NULL, *goes = NULL;
    plait_error  err;
    float        first[VALUES];
    for (int i = 0; i < VALUES; i++) first[i] = (float)cos(i);
    plait_status status = make(job, s, group, "stays", first, &stays);
    if (status >= 0) status = make(job, s, group, "goes", first, &goes);
    if (status >= 0) status = clocks(job, s, 0, BEFORE, member, stays, goes);
    const pli_handed handed = { .table = goes, .number = 7, .first = MEMBERS };
    if (status >= 0) status = pli_handover_give(comm, &handed, 1, MEMBERS, member, &err);
    if (status >= 0) status = plait_table_drop(&goes);
    if (s->wrong) return status;
    if (status >= 0) status = plait_job_barrier(job);
    if (status >= 0) status = clocks(job, s, BEFORE, AFTER, member, stays, NULL);
    return status < 0 ? status : read(job, stays, NULL, s, member);
}

/* On the group that gets one. */
static plait_status take(plait_job *job, plait_group *group, setting *s, int member) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *goes = NULL;
    plait_error  err = { .code = PLAIT_OK };
    plait_status status = clocks(job, s, 0, BEFORE, member, NULL, NULL);
    if (status >= 0) status = make(job, s, group, "goes", NULL, &goes);
    const pli_handed handed = { .table = goes, .number = s->wrong ? 8 : 7, .first = 0 };
    if (status >= 0) status = pli_handover_take(comm, &handed, 1, MEMBERS, &err);
    if (s->wrong && member == 0) {
        s->outcome = status;
        snprintf(s->text, sizeof s->text, "%s", err.text);
    }
    if (s->wrong) return PLAIT_OK;
    if (status >= 0) status = plait_job_barrier(job);
    if (status >= 0) status = clocks(job, s, BEFORE, AFTER, member, goes, NULL);
    return status < 0 ? status : read(job, NULL, goes, s, member);
}

static plait_status work(plait_job *job, void *user) {
    plait_comm   *comm = plait_job_comm(job);
    const int32_t rank = plait_comm_rank(comm), ranks[] = { 0, 1, 2, 3 };
    plait_group  *givers = NULL, *takers = NULL;
    plait_status  status = plait_group_create(comm, "givers", MEMBERS, ranks, &givers);
    if (status >= 0) status = plait_group_create(comm, "takers", MEMBERS, ranks + MEMBERS, &takers);
    if (status < 0) return status;
    return rank < MEMBERS ? give(job, givers, user, rank) : take(job, takers, user, rank - MEMBERS);
}

static void run(setting *s) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     err = { .code = PLAIT_OK };
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    comm.transport = "threads";
    comm.workers = 2 * MEMBERS;
    job.topology = s->topology;
    job.consistency = s->consistency;
    job.batch = 6;
    if (plait_run(&comm, &job, work, s, &err) < 0)
        fail_msg("%s %s %s: %s", s->topology, s->consistency, s->rule, err.text);
}

static void test_goes_on_with_the_same_bits(void **state) {
    (void)state;
    static const struct {
        const char *topology, *consistency, *rule;
        double      l1, l2;
        int         keyed;
    } cases[] = {
        { "ps", "bsp", "adam", 0, 0, 0 },         { "ps", "bsp", "ftrl", 0.01, 0.1, 1 },
        { "ps", "bsp", "adagrad", 0.01, 0.1, 1 }, { "ps", "bsp", "momentum", 0, 0.1, 0 },
        { "allreduce", "bsp", "adam", 0, 0.1, 0 }, { "allreduce", "bsp", "adagrad", 0.01, 0.1, 1 },
        { "local", "bsp", "adam", 0, 0.1, 0 },    { "local", "bsp", "ftrl", 0.01, 0, 1 },
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        setting s = { .topology = cases[k].topology, .consistency = cases[k].consistency, .rule = cases[k].rule,
                      .l1 = cases[k].l1, .l2 = cases[k].l2, .keyed = cases[k].keyed };
        run(&s);
        if (memcmp(s.stayed, s.gone, sizeof s.gone) != 0)
            fail_msg("%s x %s, %s: the table that has gone has other values", s.topology, s.consistency, s.rule);
        assert_true(fabs((double)s.gone[1] - cos(1)) > 1e-3); /* it has learned */
    }
}

static void test_a_table_that_nobody_takes_is_named(void **state) {
    (void)state;
    setting s = { .topology = "ps", .consistency = "bsp", .rule = "sgd", .wrong = 1 };
    run(&s);
    assert_int_equal(s.outcome, PLAIT_EFORMAT);
    assert_string_equal(s.text, "rank 0 hands a table over that this rank does not take");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_goes_on_with_the_same_bits),
                                        cmocka_unit_test(test_a_table_that_nobody_takes_is_named) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
