/* Tables of groups (groups.h): clocks of their own, server functions, what is refused, and what the doctor says.
 * Members alone count: the odd ones end ten clocks under bsp while the even ones stand in theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "table/groups.h"
#include "table/table.h"

/* --- clocks of their own ------------------------------------------------------------------------------------------ */

/* No table of all workers: the odd ones end ten clocks under bsp, with a read in each, before rank 0 ends its first. */
static plait_status run_ahead(plait_job *job, void *user) {
    setting      s = { .topology = user, .consistency = "bsp" };
    plait_comm  *comm = plait_job_comm(job);
    int32_t      me = plait_comm_rank(comm);
    plait_group *group[TABLES];
    plait_table *table = NULL;
    double       one = 1, value;
    int32_t      go = 0;
    PLI_TRY(make_groups(comm, group));
    const int     g = me % 2;
    const int64_t clocks = g == 1 ? 10 : 3;
    CHECK(make(job, &s, group[g], g, "dense", ROWS, &table) == PLAIT_OK);
    if (g == 0) CHECK(plait_comm_recv(comm, me + 1, 5, &go, sizeof go, NULL, NULL) == PLAIT_OK);
    for (int64_t clock = 0; clock < clocks; clock++) {
        CHECK(plait_table_get_range(table, 5, 1, &value) == PLAIT_OK && value == 2.0 * (double)clock);
        CHECK(plait_table_inc_range(table, 5, 1, &one, 0) == PLAIT_OK && plait_job_clock(job) == PLAIT_OK);
    }
    CHECK(plait_table_get_range(table, 5, 1, &value) == PLAIT_OK && value == 2.0 * (double)clocks);
    CHECK(plait_job_clock_now(job) == clocks);
    if (g == 1) CHECK(plait_comm_send(comm, me - 1, 5, &go, sizeof go) == PLAIT_OK);
    CHECK(plait_table_zero(table) == PLAIT_OK && plait_table_get_range(table, 5, 1, &value) == PLAIT_OK && value == 0);
    plait_table *second = NULL; /* behind the first clock */
    CHECK(make(job, &s, group[g], g, "second", ROWS, &second) == PLAIT_OK);
    CHECK(plait_table_inc_range(second, 0, 1, &one, 0) == PLAIT_OK && plait_job_clock(job) == PLAIT_OK);
    CHECK(plait_table_get_range(second, 0, 1, &value) == PLAIT_OK && value == 2);
    CHECK(plait_table_drop(&table) == PLAIT_OK && table == NULL);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    return PLAIT_OK;
}

static void test_groups_end_clocks_of_their_own(void **state) {
    static const char *const by[] = { "local", "ps", "allreduce" };
    (void)state;
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        plait_comm_opts opts = opts_of("threads", 0);
        plait_error     err;
        if (plait_run(&opts, NULL, run_ahead, (void *)by[i], &err) < 0)
            fail_msg("%s: rank %d: %s", by[i], err.rank, err.text);
    }
}

static void run_story(const plait_job_opts *job, plait_work_fn *story, const void *user) {
    plait_comm_opts opts = opts_of("threads", 0);
    plait_error     err;
    if (plait_run(&opts, job, story, (void *)(uintptr_t)user, &err) < 0) fail_msg("rank %d: %s", err.rank, err.text);
}

/* A group's first table in different clocks of its members. */
static plait_status out_of_step(plait_job *job, void *user) {
    setting      s = { .topology = "ps", .consistency = "bsp" };
    plait_comm  *comm = plait_job_comm(job);
    plait_group *group[TABLES];
    plait_table *table;
    (void)user;
    PLI_TRY(make_groups(comm, group));
    if (!has(2, plait_comm_rank(comm))) return PLAIT_OK;
    if (plait_comm_rank(comm) == 3) CHECK(plait_job_clock(job) == PLAIT_OK);
    CHECK(make(job, &s, group[2], 2, "dense", ROWS, &table) == PLAIT_EMISMATCH);
    CHECK(plait_comm_rank(comm) == 3 || strstr(plait_comm_error(comm)->text, "rank 3") != NULL);
    return PLAIT_OK;
}

static void test_members_in_different_clocks_are_named(void **state) {
    (void)state;
    run_story(NULL, out_of_step, NULL);
}

/* --- server functions --------------------------------------------------------------------------------------------- */

static plait_status add_up(void *user, const plait_slice *slices, int32_t n, const void *args, size_t args_bytes,
                           void *answer, size_t answer_bytes) {
    const double *values = slices[0].values;
    double        total = 0;
    (void)user, (void)n, (void)args, (void)args_bytes, (void)answer_bytes;
    for (int64_t i = 0; i < slices[0].rows * slices[0].cols; i++) total += values[i];
    memcpy(answer, &total, sizeof total);
    return PLAIT_OK;
}

/* The members' shards alone answer. */
static plait_status call_functions(plait_job *job, void *user) {
    setting      s = { .topology = "ps", .consistency = "bsp" };
    plait_comm  *comm = plait_job_comm(job);
    plait_group *group[TABLES];
    plait_table *table;
    double       one = 1, answer = 0;
    (void)user;
    PLI_TRY(make_groups(comm, group));
    if (!has(2, plait_comm_rank(comm))) return PLAIT_OK;
    CHECK(make(job, &s, group[2], 2, "dense", ROWS, &table) == PLAIT_OK);
    CHECK(plait_table_inc_range(table, plait_comm_rank(comm) * 100, 1, &one, 0) == PLAIT_OK);
    CHECK(plait_job_clock(job) == PLAIT_OK);
    CHECK(plait_table_call(&table, 1, "add up", NULL, 0, &answer, sizeof answer) == PLAIT_OK && answer == 3);
    CHECK(plait_table_call(&table, 1, "add op", NULL, 0, &answer, sizeof answer) == PLAIT_ENAME);
    CHECK(strstr(plait_comm_error(comm)->text, "add up") != NULL);
    return PLAIT_OK;
}

static void test_functions_run_on_the_members_shards(void **state) {
    const plait_function function = { .name = "add up", .run = add_up };
    plait_job_opts       job;
    (void)state;
    plait_job_opts_init(&job);
    job.functions = &function;
    job.n_functions = 1;
    run_story(&job, call_functions, NULL);
}

/* --- the end of a group ------------------------------------------------------------------------------------------- */

/* A group may go when the job has ended in which it had tables, and not before. */
static plait_status outlive_the_job(plait_comm *comm, void *user) {
    setting      s = { .topology = "ps", .consistency = "bsp" };
    plait_job   *job = NULL;
    plait_group *group = NULL;
    plait_table *table;
    (void)user;
    CHECK(plait_group_create(comm, "even", 2, members[0], &group) == PLAIT_OK);
    CHECK(plait_job_create(comm, NULL, &job) == PLAIT_OK);
    if (has(0, plait_comm_rank(comm))) {
        CHECK(make(job, &s, group, 0, "dense", ROWS, &table) == PLAIT_OK);
        CHECK(plait_table_drop(&table) == PLAIT_OK);
        CHECK(plait_group_destroy(&group) == PLAIT_EINVAL && group != NULL);
    }
    CHECK(plait_job_destroy(&job) == PLAIT_OK);
    CHECK(plait_group_destroy(&group) == PLAIT_OK && group == NULL);
    return PLAIT_OK;
}

static void test_a_group_ends_behind_its_job(void **state) {
    plait_comm_opts opts = opts_of("threads", 0);
    plait_error     err;
    (void)state;
    if (plait_comm_run(&opts, outlive_the_job, NULL, &err) < 0) fail_msg("rank %d: %s", err.rank, err.text);
}

/* --- the doctor, and what is refused ------------------------------------------------------------------------------ */

/* Rank 3 never ends its clock, and waits for rank 1, which waits for it in a table of odd. */
static plait_status wait_for_each_other(plait_job *job, void *user) {
    setting      s = { .topology = user, .consistency = "bsp" };
    plait_comm  *comm = plait_job_comm(job);
    plait_group *group[TABLES];
    plait_table *table;
    int32_t      never;
    double       value;
    PLI_TRY(make_groups(comm, group));
    if (!has(1, plait_comm_rank(comm))) return PLAIT_OK;
    CHECK(make(job, &s, group[1], 1, "dense", ROWS, &table) == PLAIT_OK);
    if (plait_comm_rank(comm) == 3) return plait_comm_recv(comm, 1, 9, &never, sizeof never, NULL, NULL);
    PLI_TRY(plait_job_clock(job));
    return plait_table_get_range(table, 0, 1, &value);
}

static void test_the_doctor_names_the_group_and_the_member(void **state) {
    plait_comm_opts opts = opts_of("threads", 0);
    plait_error     err;
    (void)state;
    assert_int_equal(plait_run(&opts, NULL, wait_for_each_other, (void *)"ps", &err), PLAIT_EDEADLOCK);
    if (strstr(err.text, "group odd") == NULL || strstr(err.text, "rank 3") == NULL ||
        strstr(err.text, "rank 1 waits for clock 1 of table dense of odd") == NULL)
        fail_msg("%s", err.text);
}

typedef struct refusal {
    int32_t     servers, backup, replicas;
    const char *word;
} refusal;

static plait_status be_refused(plait_job *job, void *user) {
    const refusal *r = user;
    setting        s = { .topology = "ps", .consistency = "bsp" };
    plait_comm    *comm = plait_job_comm(job);
    plait_group   *group = NULL;
    plait_table   *table = NULL;
    const int32_t n = r->replicas > 1 ? 1 : 2; /* one rank would hold the only copy */
    CHECK(plait_group_create(comm, "even", n, members[0], &group) == PLAIT_OK);
    if (plait_group_rank(group) < 0) return PLAIT_OK;
    CHECK(make(job, &s, group, 0, "dense", ROWS, &table) == PLAIT_EREFUSED && table == NULL);
    CHECK(strstr(plait_comm_error(comm)->text, "group even") != NULL);
    CHECK(strstr(plait_comm_error(comm)->text, r->word) != NULL);
    return PLAIT_OK;
}

static void test_what_is_not_there_is_refused_by_name(void **state) {
    static const refusal all[] = { { .servers = 2, .word = "--servers 2" },
                                   { .backup = 1, .word = "backup workers" },
                                   { .replicas = 2, .word = "the only copy of the rows" } };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        plait_comm_opts opts = opts_of("threads", 0);
        plait_job_opts  job;
        plait_error     err;
        opts.servers = all[i].servers;
        plait_job_opts_init(&job);
        job.topology = "ps";
        job.backup = all[i].backup;
        job.replicas = all[i].replicas;
        if (plait_run(&opts, &job, be_refused, (void *)&all[i], &err) < 0)
            fail_msg("%s: rank %d: %s", all[i].word, err.rank, err.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_end_clocks_of_their_own),
        cmocka_unit_test(test_members_in_different_clocks_are_named),
        cmocka_unit_test(test_functions_run_on_the_members_shards),
        cmocka_unit_test(test_a_group_ends_behind_its_job),
        cmocka_unit_test(test_the_doctor_names_the_group_and_the_member),
        cmocka_unit_test(test_what_is_not_there_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
