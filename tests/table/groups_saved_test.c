/* Checkpoints of a job with groups' tables (plait/checkpoint.h). A saved job goes on in the same groups with the same
 * bits; a group's table is restored into other groups, into a table of all workers, and back. A run that is killed
 * while it saves leaves the checkpoint before whole. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <plait/checkpoint.h>

#include "check.h"
#include "table/table.h"

enum { WORKERS = 4, ROWS = 500, KEYS = 40, CUT = 4, END = 9, TABLES = 3 };

static const char *const names[TABLES] = { "even", "odd", "all" };
static const char *const topologies[TABLES] = { "ps", "allreduce", "ps" };

/* How a job divides its workers: those below `split` are in group 0, or (0) those of even rank. The last table is of
 * all. swapped: table even is of all workers, and all of the first group. */
typedef struct layout {
    const char *transport;
    int32_t     workers, split;
    bool        swapped;
} layout;

typedef struct story {
    layout      as;
    char        dir[64];
    const char *folder;       /* restored from; NULL: begins anew */
    int64_t     from, to;     /* clocks */
    int64_t     save_at;      /* -1: never */
    int         tells;        /* where it tells that the first checkpoint is there */
    float       end[TABLES][ROWS + KEYS]; /* the values behind the last clock */
} story;

static int group_of(const layout *as, int32_t rank) {
    return as->split == 0 ? rank % 2 : rank >= as->split;
}

static plait_status make_groups(plait_comm *comm, const layout *as, plait_group *group[2]) {
    for (int g = 0; g < 2; g++) {
        int32_t member[WORKERS], n = 0;
        for (int32_t r = 0; r < as->workers; r++)
            if (group_of(as, r) == g) member[n++] = r;
        CHECK(plait_group_create(comm, g == 0 ? "first" : "second", n, member, &group[g]) == PLAIT_OK);
    }
    return PLAIT_OK;
}

/* The group that has table t, 0 or 1; -1: all workers have it. */
static int owner_of(const layout *as, int t) {
    if (as->swapped && t != 1) return t == 0 ? -1 : 0;
    return t == 2 ? -1 : t;
}

static bool has(const layout *as, int t, int32_t rank) {
    const int owner = owner_of(as, t);
    return owner < 0 || group_of(as, rank) == owner;
}

/* Table t, and beside it a sparse one. */
typedef struct pair {
    plait_table *dense, *sparse;
} pair;

static plait_status make_tables(plait_job *job, const layout *as, plait_group *const group[2], pair table[TABLES]) {
    plait_comm   *comm = plait_job_comm(job);
    const int32_t me = plait_comm_rank(comm);
    for (int t = 0; t < TABLES; t++) {
        char             name[32];
        plait_table_opts opts;
        table[t] = (pair){ NULL, NULL };
        if (!has(as, t, me)) continue;
        plait_table_opts_init(&opts);
        opts.name = names[t];
        opts.rows = ROWS;
        opts.topology = topologies[t];
        opts.consistency = "bsp";
        opts.rule.name = "adam";
        opts.group = owner_of(as, t) < 0 ? NULL : group[owner_of(as, t)];
        CHECK(plait_table_create(job, &opts, &table[t].dense) == PLAIT_OK);
        snprintf(name, sizeof name, "%s keys", names[t]);
        opts.name = name;
        opts.rows = 0;
        CHECK(plait_table_create(job, &opts, &table[t].sparse) == PLAIT_OK);
    }
    return PLAIT_OK;
}

/* What the workers of a table push in a clock does not depend on how many they are: one of them pushes all. */
static plait_status push(plait_comm *comm, int t, int64_t clock, const pair *table, bool pushes) {
    float    delta[ROWS];
    uint64_t keys[KEYS];
    if (!pushes) return PLAIT_OK;
    for (int64_t i = 0; i < ROWS; i++)
        delta[i] = (float)(pli_hash_u64((uint64_t)((t * 64 + clock) * 1024 + i)) % 97) - 40;
    for (uint64_t i = 0; i < KEYS; i++) keys[i] = i * 1000003 % (1000 + (uint64_t)clock * 7);
    CHECK(plait_table_inc_range(table->dense, 0, ROWS, delta, 1) == PLAIT_OK);
    CHECK(plait_table_inc(table->sparse, KEYS, keys, delta, 1) == PLAIT_OK);
    return PLAIT_OK;
}

static int32_t first_of(const layout *as, int t) {
    int32_t rank = 0;
    while (!has(as, t, rank)) rank++;
    return rank;
}

static plait_status restore(plait_job *job, const story *s, const pair table[TABLES]) {
    plait_comm       *comm = plait_job_comm(job);
    plait_checkpoint *checkpoint = NULL;
    PLI_TRY(plait_checkpoint_open(s->dir, s->folder[0] != '\0' ? s->folder : NULL, &checkpoint, pli_comm_error(comm)));
    plait_status status = PLAIT_OK;
    for (int t = 0; status >= 0 && t < TABLES; t++) {
        if (table[t].dense == NULL) continue;
        status = plait_checkpoint_restore(checkpoint, table[t].dense, NULL);
        if (status >= 0) status = plait_checkpoint_restore(checkpoint, table[t].sparse, NULL);
    }
    plait_checkpoint_close(&checkpoint);
    return status;
}

static plait_status save(plait_job *job, const story *s, const pair table[TABLES]) {
    plait_table          *mine[2 * TABLES];
    int32_t               n = 0;
    plait_checkpoint_opts opts;
    plait_checkpoint_opts_init(&opts);
    opts.dir = s->dir;
    for (int t = TABLES - 1; t >= 0; t--) /* in whatever order */
        if (table[t].dense != NULL) mine[n++] = table[t].dense, mine[n++] = table[t].sparse;
    return plait_checkpoint_save(job, mine, n, &opts);
}

static plait_status read_end(plait_comm *comm, story *s, const pair table[TABLES]) {
    uint64_t keys[KEYS];
    for (uint64_t i = 0; i < KEYS; i++) keys[i] = i * 25;
    for (int t = 0; t < TABLES; t++) {
        float value[ROWS + KEYS];
        if (table[t].dense == NULL) continue;
        CHECK(plait_table_get_range(table[t].dense, 0, ROWS, value) == PLAIT_OK);
        CHECK(plait_table_get(table[t].sparse, KEYS, keys, value + ROWS) == PLAIT_OK);
        if (plait_comm_rank(comm) == first_of(&s->as, t)) memcpy(s->end[t], value, sizeof value);
    }
    return PLAIT_OK;
}

static plait_status work(plait_job *job, void *user) {
    story        *s = user;
    plait_comm   *comm = plait_job_comm(job);
    const int32_t me = plait_comm_rank(comm);
    plait_group  *group[2];
    pair          table[TABLES];
    PLI_TRY(make_groups(comm, &s->as, group));
    PLI_TRY(make_tables(job, &s->as, group, table));
    if (s->folder != NULL) PLI_TRY(restore(job, s, table));
    for (int64_t clock = s->from; clock < s->to; clock++) {
        if (clock == s->save_at) CHECK(save(job, s, table) == PLAIT_OK);
        for (int t = 0; t < TABLES; t++)
            if (table[t].dense != NULL) PLI_TRY(push(comm, t, clock, &table[t], me == first_of(&s->as, t)));
        CHECK(plait_job_clock(job) == PLAIT_OK);
    }
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    return read_end(comm, s, table);
}

static void run_with(story *s, plait_work_fn *fn) {
    plait_comm_opts comm_opts;
    plait_job_opts  job_opts;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm_opts);
    plait_job_opts_init(&job_opts);
    comm_opts.transport = s->as.transport != NULL ? s->as.transport : "threads";
    comm_opts.workers = s->as.workers;
    comm_opts.timeout_ns = UINT64_C(60) * 1000000000;
    job_opts.first_clock = s->from;
    if (plait_run(&comm_opts, &job_opts, fn, s, &err) < 0) fail_msg("rank %d: %s", err.rank, err.text);
}

static void clean(const char *dir) {
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

static const layout plain = { .workers = WORKERS };

/* Values behind the last clock of a run that saves in the middle. */
static void run_through(story *s) {
    *s = (story){ .as = plain, .from = 0, .to = END, .save_at = CUT };
    snprintf(s->dir, sizeof s->dir, "groups_saved.%d", (int)getpid());
    clean(s->dir);
    run_with(s, work);
}

static void test_the_rest_of_a_run_has_the_same_bits(void **state) {
    static const layout as[] = {
        { .workers = 4 },             /* the same groups */
        { .workers = 4, .split = 1 }, /* 1 and 3 members, who were 2 and 2 */
        { .workers = 2, .split = 1 }, /* fewer workers */
        { .workers = 3, .split = 2 },
        { .workers = 4, .swapped = true }, /* a group's table into one of all, and one of all into a group's */
        { .workers = 2, .split = 1, .swapped = true },
    };
    static story whole, rest;
    (void)state;
    run_through(&whole);
    for (size_t i = 0; i < sizeof as / sizeof *as; i++) {
        rest = (story){ .as = as[i], .folder = "", .from = CUT, .to = END, .save_at = -1 };
        memcpy(rest.dir, whole.dir, sizeof rest.dir);
        run_with(&rest, work);
        for (int t = 0; t < TABLES; t++)
            if (memcmp(rest.end[t], whole.end[t], sizeof whole.end[t]) != 0)
                fail_msg("layout %d: table %s differs", (int)i, names[t]);
    }
    clean(whole.dir);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static plait_status same_name(plait_job *job, void *user) {
    const story      *s = user;
    plait_comm       *comm = plait_job_comm(job);
    plait_group      *group[2];
    plait_table      *table = NULL;
    plait_table_opts  opts;
    plait_checkpoint_opts to;
    PLI_TRY(make_groups(comm, &s->as, group));
    plait_table_opts_init(&opts);
    plait_checkpoint_opts_init(&to);
    opts.name = "w";
    opts.rows = ROWS;
    opts.group = group[group_of(&s->as, plait_comm_rank(comm))];
    to.dir = s->dir;
    CHECK(plait_table_create(job, &opts, &table) == PLAIT_OK);
    CHECK(plait_checkpoint_save(job, &table, 1, &to) == PLAIT_EINVAL);
    CHECK(strstr(plait_comm_error(comm)->text, "two groups have a table named w") != NULL);
    CHECK(plait_checkpoint_save(job, NULL, 0, &to) == PLAIT_EINVAL);
    CHECK(strstr(plait_comm_error(comm)->text, "a checkpoint of no table") != NULL);
    table = group_of(&s->as, plait_comm_rank(comm)) == 0 ? table : NULL; /* the others have none */
    CHECK(plait_checkpoint_save(job, &table, table != NULL, &to) == PLAIT_OK);
    if (table != NULL) CHECK(plait_job_clock(job) == PLAIT_OK); /* the groups are in different clocks */
    CHECK(plait_checkpoint_save(job, &table, table != NULL, &to) == PLAIT_EMISMATCH);
    CHECK(strstr(plait_comm_error(comm)->text, "a checkpoint is of one clock") != NULL);
    return PLAIT_OK;
}

static void test_what_one_checkpoint_cannot_hold(void **state) {
    static story s;
    (void)state;
    s = (story){ .as = plain };
    snprintf(s.dir, sizeof s.dir, "groups_saved.%d", (int)getpid());
    clean(s.dir);
    run_with(&s, same_name);
    clean(s.dir);
}

/* --- a death while it saves --------------------------------------------------------------------------------------- */

static plait_status save_on_and_on(plait_job *job, void *user) {
    story       *s = user;
    plait_comm  *comm = plait_job_comm(job);
    plait_group *group[2];
    pair         table[TABLES];
    PLI_TRY(make_groups(comm, &s->as, group));
    PLI_TRY(make_tables(job, &s->as, group, table));
    for (int64_t clock = 0; clock < 100000; clock++) {
        for (int t = 0; t < TABLES; t++)
            if (table[t].dense != NULL)
                PLI_TRY(push(comm, t, clock, &table[t], plait_comm_rank(comm) == first_of(&s->as, t)));
        CHECK(plait_job_clock(job) == PLAIT_OK);
        CHECK(save(job, s, table) == PLAIT_OK);
        if (clock == 0 && plait_comm_rank(comm) == 0) CHECK(write(s->tells, "", 1) == 1);
    }
    return PLAIT_OK;
}

static void test_a_kill_leaves_the_last_one_whole(void **state) {
    const int    kills = getenv("PLAIT_TEST_FULL") != NULL ? 100 : 10;
    static story s, until, straight;
    int          later = 0;
    (void)state;
    for (int k = 0; k < kills; k++) {
        plait_checkpoint *last = NULL;
        s = (story){ .as = plain };
        snprintf(s.dir, sizeof s.dir, "groups_saved.%d", (int)getpid());
        clean(s.dir);
        int  tells[2];
        char told;
        assert_int_equal(pipe(tells), 0);
        pid_t child = fork();
        if (child == 0) {
            s.tells = tells[1];
            run_with(&s, save_on_and_on);
            _exit(0);
        }
        assert_int_equal(close(tells[1]), 0);
        assert_int_equal(read(tells[0], &told, 1), 1); /* the first one is there */
        assert_int_equal(close(tells[0]), 0);
        usleep((useconds_t)(pli_hash_u64((uint64_t)k) % 100000)); /* the moment of the kill */
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_int_equal(plait_checkpoint_open(s.dir, NULL, &last, NULL), PLAIT_OK);
        const int64_t clock = plait_checkpoint_clock(last);
        plait_checkpoint_close(&last);
        until = (story){ .as = plain, .folder = "", .from = clock, .to = clock, .save_at = -1 };
        straight = (story){ .as = plain, .from = 0, .to = clock, .save_at = -1 };
        memcpy(until.dir, s.dir, sizeof until.dir);
        run_with(&until, work);
        run_with(&straight, work);
        assert_memory_equal(until.end, straight.end, sizeof straight.end);
        later += clock > 1;
    }
    clean(s.dir);
    print_message("%d killed runs, each with a whole checkpoint, %d with a later one than the first\n", kills, later);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_rest_of_a_run_has_the_same_bits),
        cmocka_unit_test(test_what_one_checkpoint_cannot_hold),
        cmocka_unit_test(test_a_kill_leaves_the_last_one_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
