/* Tables of groups. Four workers; two disjoint groups (even, odd), one that overlaps both (back: 1, 2, 3), and a table
 * of all workers beside them. Each table sums its members' updates, no more and no fewer, under every pair of topology
 * and consistency that trains for all workers; a pair that is refused for all is refused for a group. Members alone
 * count: the odd ones end ten clocks under bsp while the even ones stand in theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "table/state/state.h"
#include "table/table.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return pli_fail(pli_comm_error(comm), PLAIT_EDIVERGED, "line %d: %s: %.300s", __LINE__, #condition,        \
                            plait_comm_error(comm)->text);                                                             \
    } while (0)

enum { WORKERS = 4, GROUPS = 3, ALL = GROUPS, TABLES = GROUPS + 1, ROWS = 700, KEYS = 9, CLOCKS = 6 };

static const char *const group_names[TABLES] = { "even", "odd", "back", "all" };
static const int32_t     sizes[TABLES] = { 2, 2, 3, WORKERS };
static const int32_t     members[TABLES][WORKERS] = { { 0, 2 }, { 3, 1 }, { 1, 2, 3 }, { 0, 1, 2, 3 } };

static bool has(int g, int32_t rank) {
    for (int32_t i = 0; i < sizes[g]; i++)
        if (members[g][i] == rank) return true;
    return false;
}

typedef struct setting {
    const char *transport, *topology, *consistency;
    bool        exact, begun;
    uint64_t    seed;
    bool        refused; /* set by the workers: the pair is */
} setting;

/* What a worker adds in a clock: whole numbers, so that every order has the same sum. */
static double term(const setting *s, int g, int32_t rank, int64_t clock, int64_t row) {
    return (double)(pli_hash_u64(s->seed ^ (uint64_t)(((g * 16 + rank) * 64 + clock) * 1024 + row)) % 1000);
}

static double sum_of(const setting *s, int g, int64_t row) {
    double sum = 0;
    for (int32_t r = 0; r < WORKERS; r++)
        for (int64_t clock = 0; has(g, r) && clock < CLOCKS; clock++) sum += term(s, g, r, clock, row);
    return sum;
}

static plait_status make_groups(plait_comm *comm, plait_group **group) {
    for (int g = 0; g < GROUPS; g++)
        CHECK(plait_group_create(comm, group_names[g], sizes[g], members[g], &group[g]) == PLAIT_OK);
    group[ALL] = NULL;
    return PLAIT_OK;
}

static plait_status make(plait_job *job, const setting *s, plait_group *group, int g, const char *what, int64_t rows,
                         plait_table **out) {
    char             name[64];
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    snprintf(name, sizeof name, "%s of %s", what, group_names[g]);
    opts.name = name;
    opts.type = PLAIT_F64;
    opts.rows = rows;
    opts.exact = s->exact;
    opts.topology = s->topology;
    opts.consistency = s->consistency;
    opts.group = group;
    return plait_table_create(job, &opts, out);
}

/* Behind a barrier each worker reads the average of all copies, which moves by what is added: up to rounding. */
static bool averages(const setting *s) { return strncmp(s->topology, "gossip", 6) == 0; }

static plait_status end_clock(plait_job *job, bool begun) {
    plait_request *request;
    if (!begun) return plait_job_clock(job);
    PLI_TRY(plait_job_clock_begin(job, &request));
    return plait_request_wait(&request);
}

static plait_status add(plait_comm *comm, const setting *s, int g, int64_t clock, plait_table *dense,
                        plait_table *sparse) {
    double   delta[ROWS];
    uint64_t keys[KEYS];
    int32_t  me = plait_comm_rank(comm);
    for (int64_t i = 0; i < ROWS; i++) delta[i] = term(s, g, me, clock, i);
    CHECK(plait_table_inc_range(dense, 0, ROWS, delta, 0) == PLAIT_OK);
    for (int64_t i = 0; i < KEYS; i++) keys[i] = (uint64_t)(i * 37);
    if (sparse != NULL) CHECK(plait_table_inc(sparse, KEYS, keys, delta, 0) == PLAIT_OK);
    return PLAIT_OK;
}

static plait_status look(plait_comm *comm, const setting *s, int g, plait_table *dense, plait_table *sparse) {
    double   value[ROWS];
    uint64_t keys[KEYS];
    double   close = averages(s) ? 1e-6 : 0;
    CHECK(plait_table_get_range(dense, 0, ROWS, value) == PLAIT_OK);
    for (int64_t i = 0; i < ROWS; i++) {
        const double off = value[i] - sum_of(s, g, i);
        CHECK(off <= close && off >= -close);
    }
    for (int64_t i = 0; i < KEYS; i++) keys[i] = (uint64_t)(i * 37);
    if (sparse == NULL) return PLAIT_OK;
    CHECK(plait_table_get(sparse, KEYS, keys, value) == PLAIT_OK);
    for (int64_t i = 0; i < KEYS; i++) CHECK(value[i] == sum_of(s, g, i));
    return PLAIT_OK;
}

static plait_status count(plait_job *job, void *user) {
    setting     *s = user;
    plait_comm  *comm = plait_job_comm(job);
    int32_t      me = plait_comm_rank(comm);
    plait_group *group[TABLES];
    plait_table *dense[TABLES] = { NULL }, *sparse[TABLES] = { NULL };
    bool         served = strcmp(s->topology, "local") == 0 || strcmp(s->topology, "ps") == 0;
    PLI_TRY(make_groups(comm, group));
    plait_status whole = make(job, s, NULL, ALL, "dense", ROWS, &dense[ALL]);
    char         why[512];
    snprintf(why, sizeof why, "%s", plait_comm_error(comm)->text);
    if (whole < 0) s->refused = true;
    for (int g = 0; g < GROUPS; g++) {
        if (!has(g, me)) {
            CHECK(make(job, s, group[g], g, "dense", ROWS, &dense[g]) == PLAIT_EREFUSED && dense[g] == NULL);
            CHECK(strstr(plait_comm_error(comm)->text, "no member") != NULL);
            continue;
        }
        CHECK(make(job, s, group[g], g, "dense", ROWS, &dense[g]) == whole);
        if (served && whole == PLAIT_OK) CHECK(make(job, s, group[g], g, "sparse", 0, &sparse[g]) == PLAIT_OK);
        if (whole == PLAIT_OK) CHECK(make(job, s, group[g], g, "dense", ROWS, &dense[g]) == PLAIT_EINVAL); /* twice */
    }
    if (whole < 0) return whole == PLAIT_EREFUSED ? PLAIT_OK : whole;
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        for (int g = 0; g < TABLES; g++) {
            if (!has(g, me)) continue;
            double value;
            CHECK(plait_table_get_range(dense[g], (clock * 13 + me) % ROWS, 1, &value) == PLAIT_OK);
            PLI_TRY(add(comm, s, g, clock, dense[g], sparse[g]));
        }
        CHECK(end_clock(job, s->begun) == PLAIT_OK);
    }
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    for (int g = 0; g < TABLES; g++)
        if (has(g, me)) PLI_TRY(look(comm, s, g, dense[g], sparse[g]));
    return PLAIT_OK;
}

static plait_comm_opts opts_of(const char *transport, uint64_t seed) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.transport = transport;
    opts.workers = WORKERS;
    opts.seed = seed;
    opts.timeout_ns = UINT64_C(60) * 1000000000;
    return opts;
}

static const char *const topologies[] = { "local", "ps", "allreduce", "hybrid", "gossip:ring", "gossip:exp" };
static const char *const consistencies[] = { "bsp", "ssp:1", "essp:1", "asp:2:3", "bounded-delay:1", "sequential",
                                             "async", "vap:1000000", "downpour:1:1", "local-sgd:1" };

static void test_each_pair_counts_members_alone(void **state) {
    int32_t ran = 0, refused = 0;
    (void)state;
    for (size_t t = 0; t < sizeof topologies / sizeof *topologies; t++)
        for (size_t c = 0; c < sizeof consistencies / sizeof *consistencies; c++)
            for (int how = 0; how < 3; how++) {
                setting s = { .transport = "threads", .topology = topologies[t], .consistency = consistencies[c],
                              .exact = how == 1, .begun = how == 2, .seed = (uint64_t)how };
                plait_comm_opts opts = opts_of(s.transport, 0);
                plait_error     err;
                int64_t         live = pli_alloc_live();
                if (plait_run(&opts, NULL, count, &s, &err) < 0)
                    fail_msg("%s x %s%s%s: rank %d: %s", s.topology, s.consistency, s.exact ? ", exact" : "",
                             s.begun ? ", begun" : "", err.rank, err.text);
                assert_int_equal(pli_alloc_live(), live);
                if (s.refused) refused++;
                else ran++;
            }
    print_message("%d settings counted exactly, %d refused for groups as for all\n", ran, refused);
    assert_true(ran >= 60);
}

/* Schedules by seed in simulated time: messages of the same instant come in another order each time. */
static void test_seeded_schedules(void **state) {
    const int seeds = getenv("PLAIT_TEST_FULL") != NULL ? 2000 : 60;
    int32_t   ran = 0;
    (void)state;
    for (int seed = 0; seed < seeds; seed++) {
        setting s = { .transport = "sim", .topology = seed % 4 == 3 ? "allreduce" : "ps",
                      .consistency = seed % 4 == 3 ? (seed % 8 == 3 ? "bsp" : "bounded-delay:1")
                                                   : consistencies[seed % 9],
                      .exact = false, .begun = seed % 2 != 0, .seed = (uint64_t)seed };
        pid_t child = fork(); /* a process can simulate once */
        if (child == 0) {
            plait_comm_opts opts = opts_of(s.transport, (uint64_t)seed);
            plait_error     err;
            plait_status    status = plait_run(&opts, NULL, count, &s, &err);
            if (status < 0 && status != PLAIT_EMODULE)
                fprintf(stderr, "seed %d, %s x %s: rank %d: %s\n", seed, s.topology, s.consistency, err.rank, err.text);
            _exit(status == PLAIT_EMODULE ? 77 : status < 0 || s.refused);
        }
        int how;
        assert_true(waitpid(child, &how, 0) == child && WIFEXITED(how));
        if (WEXITSTATUS(how) == 77) {
            print_message("skipped: no SimGrid\n");
            return;
        }
        if (WEXITSTATUS(how) != 0) fail_msg("seed %d", seed);
        ran++;
    }
    print_message("%d schedules\n", ran);
}

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

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

static plait_status capture(plait_job *job, void *user) {
    setting      s = { .topology = "ps", .consistency = "bsp" };
    plait_comm  *comm = plait_job_comm(job);
    plait_group *group[TABLES];
    plait_table *table;
    (void)user;
    PLI_TRY(make_groups(comm, group));
    if (!has(0, plait_comm_rank(comm))) return PLAIT_OK;
    CHECK(make(job, &s, group[0], 0, "dense", ROWS, &table) == PLAIT_OK);
    CHECK(pli_state_check(table, pli_comm_error(comm)) == PLAIT_EREFUSED);
    CHECK(strstr(plait_comm_error(comm)->text, "group even") != NULL);
    return PLAIT_OK;
}

static void test_checkpoints_refuse_a_table_of_a_group(void **state) {
    (void)state;
    run_story(NULL, capture, NULL);
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
    const char *aggregate, *word;
} refusal;

static plait_status be_refused(plait_job *job, void *user) {
    const refusal *r = user;
    setting        s = { .topology = "ps", .consistency = "bsp" };
    plait_comm    *comm = plait_job_comm(job);
    plait_group   *group = NULL;
    plait_table   *table = NULL;
    if (r->replicas > 1) {
        CHECK(plait_group_create(comm, "even", 2, members[0], &group) == PLAIT_EREFUSED);
        return PLAIT_OK;
    }
    CHECK(plait_group_create(comm, "even", 2, members[0], &group) == PLAIT_OK);
    if (!has(0, plait_comm_rank(comm))) return PLAIT_OK;
    CHECK(make(job, &s, group, 0, "dense", ROWS, &table) == PLAIT_EREFUSED && table == NULL);
    CHECK(strstr(plait_comm_error(comm)->text, "group even") != NULL);
    CHECK(strstr(plait_comm_error(comm)->text, r->word) != NULL);
    return PLAIT_OK;
}

static void test_what_is_not_there_is_refused_by_name(void **state) {
    static const refusal all[] = { { .servers = 2, .word = "--servers 2" },
                                   { .backup = 1, .word = "backup workers" },
                                   { .aggregate = "host", .word = "--aggregate host" },
                                   { .replicas = 2, .word = "replicas" } };
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
        job.aggregate = all[i].aggregate;
        if (plait_run(&opts, &job, be_refused, (void *)&all[i], &err) < 0)
            fail_msg("%s: rank %d: %s", all[i].word, err.rank, err.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_pair_counts_members_alone),
        cmocka_unit_test(test_seeded_schedules),
        cmocka_unit_test(test_groups_end_clocks_of_their_own),
        cmocka_unit_test(test_members_in_different_clocks_are_named),
        cmocka_unit_test(test_checkpoints_refuse_a_table_of_a_group),
        cmocka_unit_test(test_functions_run_on_the_members_shards),
        cmocka_unit_test(test_a_group_ends_behind_its_job),
        cmocka_unit_test(test_the_doctor_names_the_group_and_the_member),
        cmocka_unit_test(test_what_is_not_there_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
