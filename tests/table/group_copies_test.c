/* Two replicas of the shards of groups' tables, by the public calls, on ranks that are threads: any rank dies at some
 * moment of another's, and the others end with what a run in which nobody died ends with. The same machines serve
 * tables of all workers (survive_test.c); here are groups beside and across each other, whose clocks end one after the
 * other, so that a death may find one table's clock ended and the next one's open.
 *
 * In the table of group g worker v's item h adds 2^c to column v of row h in clock c, whoever holds it. Some clocks
 * later a second rank dies. Each job is judged a second time, from its event log alone, by the audit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <plait/table.h>

#include "check.h"
#include "mortal.h"
#include "table/table.h"
#include "witness.h"

enum { RANKS = 5, GROUPS = 3, TABLES = GROUPS + 1, ROWS = 600, ITEMS = 7, CLOCKS = 12, RUNS = 60, RUNS_FULL = 600 };

/* Two that share rank 2, and one across both; the last table is of all workers. */
static const int32_t     members[TABLES][RANKS] = { { 0, 1, 2 }, { 2, 3, 4 }, { 1, 4, 0, 3 }, { 0, 1, 2, 3, 4 } };
static const int32_t     sizes[TABLES] = { 3, 3, 4, RANKS };
static const char *const names[TABLES] = { "low", "high", "across", "all" };

typedef struct story {
    uint64_t            seed;
    const char         *consistency;
    int32_t             victim, second, killer;
    int64_t             at, second_at; /* in clocks of the killer; second_at -1: there is none */
    int                 where;         /* in it */
    bool                keyed, sparse, ruled, exact, all;
    plait_comm *_Atomic comm[RANKS]; /* release, pairs with the killer's acquire */
    atomic_int          ended;
    const pli_event_sink *sink;
    plait_status (*work)(struct story *s, plait_job *job);
} story;

typedef struct tables {
    plait_group *group[GROUPS];
    plait_table *table[TABLES]; /* NULL: the rank is no member */
} tables;

static bool has(int g, int32_t rank) {
    for (int32_t i = 0; i < sizes[g]; i++)
        if (members[g][i] == rank) return true;
    return false;
}

static uint64_t key_of(int item) { return (uint64_t)(item * (ROWS / ITEMS)); }

static void kill_rank(story *s, int32_t rank) {
    plait_comm       *victim = atomic_load_explicit(&s->comm[rank], memory_order_acquire);
    const plait_error why = { .code = PLAIT_EPEER, .rank = rank, .text = "killed by the test" };
    if (victim != NULL) pli_comm_kill(victim, &why);
}

static void strike(story *s, int32_t me, int64_t clock, int where) {
    if (me == s->killer && clock == s->at && where == s->where) kill_rank(s, s->victim);
}

/* Behind two clocks and a barrier since the first death all logs have gone on. */
static plait_status strike_again(story *s, plait_job *job, int32_t me, int64_t clock) {
    if (s->second_at != clock) return PLAIT_OK;
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(plait_comm_barrier(plait_job_comm(job)));
    if (me == s->killer) kill_rank(s, s->second);
    return PLAIT_OK;
}

static plait_status make_one(const story *s, plait_job *job, plait_group *group, int g, plait_table **table_out) {
    plait_table_opts o;
    plait_table_opts_init(&o);
    o.name = names[g];
    o.type = PLAIT_F64;
    o.rows = s->sparse ? 0 : ROWS;
    o.keyed = s->keyed;
    o.cols = RANKS;
    o.group = group;
    o.exact = s->exact;
    if (s->ruled) {
        o.rule.name = "sgd";
        o.rule.learning_rate = 1;
    }
    return plait_table_create(job, &o, table_out);
}

static plait_status make(const story *s, plait_job *job, int32_t me, tables *t) {
    *t = (tables){ 0 };
    for (int g = 0; g < GROUPS; g++)
        PLI_TRY(plait_group_create(plait_job_comm(job), names[g], sizes[g], members[g], &t->group[g]));
    for (int g = 0; g < GROUPS; g++)
        if (has(g, me)) PLI_TRY(make_one(s, job, t->group[g], g, &t->table[g]));
    return s->all ? make_one(s, job, NULL, GROUPS, &t->table[GROUPS]) : PLAIT_OK;
}

static uint64_t below(int64_t clock) { return (UINT64_C(1) << clock) - 1; }

/* An ended table may be read a clock ahead, while another's clock is still open. */
static plait_status check(const story *s, plait_table *table, int g, int64_t clock, bool last) {
    double   values[ITEMS * RANKS];
    uint64_t keys[ITEMS];
    for (int i = 0; i < ITEMS; i++) keys[i] = key_of(i);
    PLI_TRY(plait_table_get(table, ITEMS, keys, values));
    for (int i = 0; i < ITEMS; i++)
        for (int32_t v = 0; v < RANKS; v++) {
            const double   value = values[i * RANKS + v];
            const uint64_t seen = (uint64_t)(s->ruled ? -value : value), due = has(g, v) ? below(clock) : 0;
            const bool     bsp = strcmp(s->consistency, "bsp") == 0, next = !last && seen == below(clock + 1);
            const bool     wrong = bsp ? seen != due && !(next && has(g, v))
                                       : last && v != s->victim && v != s->second && seen != due;
            if (!wrong) continue;
            print_message("seed %llu: table %s, item %d of worker %d in clock %lld: %llx\n",
                          (unsigned long long)s->seed, names[g], i, v, (long long)clock, (unsigned long long)seen);
            return PLAIT_EMISMATCH;
        }
    return PLAIT_OK;
}

static plait_status add(plait_table *table, int g, int32_t me, int64_t clock, bool inherited) {
    double   delta[ITEMS * RANKS] = { 0 };
    uint64_t keys[ITEMS];
    int64_t  n = 0;
    for (int i = 0; i < ITEMS; i++) {
        bool some = false;
        for (int32_t v = 0; v < RANKS; v++) {
            const uint64_t item = (uint64_t)i;
            const bool     mine = has(g, v) && (inherited ? plait_table_inherits(table, v, item) != 0
                                                          : plait_table_holder(table, v, item) == me);
            if (mine) delta[n * RANKS + v] = (double)(UINT64_C(1) << clock);
            some = some || mine;
        }
        if (some) keys[n++] = key_of(i);
    }
    return n == 0 ? PLAIT_OK : plait_table_inc(table, n, keys, delta, 0);
}

static plait_status each_clock(story *s, plait_job *job, tables *t, int32_t me, int64_t clock) {
    plait_status status;
    bool         again = false;
    do {
        for (int g = 0; g < TABLES; g++) {
            if (t->table[g] == NULL) continue;
            PLI_TRY(check(s, t->table[g], g, clock, false));
            PLI_TRY(add(t->table[g], g, me, clock, again));
            if (g == 1 || g == 2) strike(s, me, clock, g);
        }
        again = true;
    } while ((status = plait_job_clock(job)) == PLAIT_STAND_IN);
    return status;
}

static plait_status work(story *s, plait_job *job) {
    const int32_t me = plait_comm_rank(plait_job_comm(job));
    tables        t;
    strike(s, me, -1, 0);
    PLI_TRY(make(s, job, me, &t));
    strike(s, me, -1, 1);
    PLI_TRY(plait_job_barrier(job));
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        PLI_TRY(strike_again(s, job, me, clock));
        strike(s, me, clock, 0);
        PLI_TRY(each_clock(s, job, &t, me, clock));
        strike(s, me, clock, 3);
        if (clock == 5) PLI_TRY(plait_job_barrier(job));
    }
    strike(s, me, CLOCKS, 0);
    PLI_TRY(plait_job_barrier(job));
    strike(s, me, CLOCKS, 1);
    for (int g = 0; g < TABLES; g++)
        if (t.table[g] != NULL) PLI_TRY(check(s, t.table[g], g, CLOCKS, true));
    atomic_fetch_add(&s->ended, 1);
    return PLAIT_OK;
}

static plait_status work_of(void *user, plait_job *job) {
    story *s = user;
    return s->work(s, job);
}

static plait_status body(plait_comm *comm, void *user) {
    story         *s = user;
    plait_job_opts o;
    plait_job_opts_init(&o);
    o.consistency = s->consistency;
    return run_mortal(comm, &o, s->sink, &s->comm[plait_comm_rank(comm)], work_of, s);
}

static void run(story *s) {
    plait_error     err = { 0 };
    witness         heard;
    char            why[640];
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.workers = RANKS;
    opts.transport = "threads";
    opts.timeout_ns = UINT64_C(60000000000);
    assert_true(witness_open(&heard, RANKS, NULL, NULL));
    s->sink = witness_sink(&heard);
    const plait_status status = plait_comm_run(&opts, body, s, &err);
    const int          ended = atomic_load(&s->ended);
    if (status < 0 || ended < RANKS - 1 - (s->second >= 0))
        fail_msg("seed %llu (%s, rank %d at %lld.%d, rank %d at %lld by %d): %d ended: %s",
                 (unsigned long long)s->seed, s->consistency, s->victim, (long long)s->at, s->where, s->second,
                 (long long)s->second_at, s->killer, ended, err.text);
    if (!witness_close(&heard, true, why, sizeof why))
        fail_msg("seed %llu (%s): the audit: %s", (unsigned long long)s->seed, s->consistency, why);
}

/* With both deaths each group is left with a member, and no shard has lost both replicas at once. */
static void draw(story *s) {
    static const char *const policies[] = { "bsp", "bsp", "bsp", "ssp:2", "async", "essp:1" };
    pli_random               r = pli_random_at(s->seed, PLI_RANDOM_SCHEDULE, 31, 0);
    s->consistency = policies[pli_random_below(&r, 6)];
    s->victim = (int32_t)pli_random_below(&r, RANKS);
    do s->killer = (int32_t)pli_random_below(&r, RANKS);
    while (s->killer == s->victim);
    s->at = (int64_t)pli_random_below(&r, CLOCKS + 2) - 1;
    s->where = (int)pli_random_below(&r, s->at < 0 || s->at == CLOCKS ? 2 : 4);
    const uint64_t shape = pli_random_below(&r, 3);
    const bool     bsp = strcmp(s->consistency, "bsp") == 0;
    s->keyed = shape == 1;
    s->sparse = shape == 2;
    s->all = pli_random_below(&r, 2) == 0;
    s->ruled = bsp && pli_random_below(&r, 2) == 0;
    s->exact = bsp && pli_random_below(&r, 2) == 0;
    s->second = s->second_at = -1;
    if (s->at < 0 || s->at > CLOCKS - 4 || pli_random_below(&r, 2) == 0) return;
    s->second_at = s->at + 2;
    do s->second = (int32_t)pli_random_below(&r, RANKS);
    while (s->second == s->victim || s->second == s->killer);
}

static void test_any_member_may_die(void **unused) {
    const char *seed = getenv("PLAIT_SEED");
    int64_t     runs = seed != NULL ? 1 : getenv("PLAIT_TEST_FULL") != NULL ? RUNS_FULL : RUNS;
    (void)unused;
    for (int64_t i = 0; i < runs; i++) {
        story s = { .seed = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)i + 1, .work = work };
        draw(&s);
        if (getenv("PLAIT_TRACE") != NULL) print_message("seed %lld %s\n", (long long)s.seed, s.consistency);
        run(&s);
    }
}

/* --- what a death leaves of groups -------------------------------------------------------------------------------- */

/* Rank 1 is dead: rank 2 serves its shard of table low, and nobody else does so. */
static bool tells_who_serves(plait_comm *comm) {
    plait_table_part *part = NULL;
    int64_t           n = 0;
    int               serve = 0, there = 0;
    if (plait_job_describe(comm, UINT64_C(60000000000), &n, &part, NULL) < 0) return false;
    for (int64_t i = 0; i < n; i++) {
        if (strcmp(part[i].name, "low") != 0 || part[i].replica_of < 0 || !part[i].serves) continue;
        serve++;
        there += part[i].replica_of == 1 && part[i].rank == 2 && part[i].first == ROWS / 3 && part[i].held == ROWS / 3;
    }
    plait_comm_free(part);
    return serve == 1 && there == 1;
}

/* Rank 1 dies. A collective of a group with a table goes on without it; one of a group without a table cannot, and says
 * so; a group and its table may be made with a member that is gone. */
static plait_status go_on(story *s, plait_job *job) {
    plait_comm   *comm = plait_job_comm(job);
    const int32_t me = plait_comm_rank(comm);
    int64_t       sum = 1;
    tables        t = { 0 };
    plait_group  *bare = NULL, *late = NULL;
    plait_table  *table = NULL;
    CHECK(plait_group_create(comm, "bare", RANKS, members[GROUPS], &bare) == PLAIT_OK);
    CHECK(make(s, job, me, &t) == PLAIT_OK);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    if (me == 1) kill_rank(s, 1);
    CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    CHECK(plait_group_allreduce(bare, &sum, 1, PLAIT_I64, PLAIT_SUM) == PLAIT_EPEER);
    CHECK(strstr(plait_comm_error(comm)->text, "rank 1") != NULL);
    CHECK(me != 0 || tells_who_serves(comm));
    if (has(0, me)) {
        sum = me + 1;
        CHECK(plait_group_allreduce(t.group[0], &sum, 1, PLAIT_I64, PLAIT_SUM) == PLAIT_OK);
        CHECK(sum == 1 + 3);
    }
    CHECK(plait_group_create(comm, "late", 3, members[0], &late) == PLAIT_OK);
    if (has(0, me)) {
        plait_table_opts o;
        plait_table_opts_init(&o);
        o.name = "late";
        o.rows = ROWS;
        o.type = PLAIT_F64;
        o.group = late;
        const uint64_t key = 3;
        double         value = 1;
        CHECK(plait_table_create(job, &o, &table) == PLAIT_OK);
        CHECK(plait_table_inc(table, 1, &key, &value, 0) == PLAIT_OK);
    }
    plait_status status;
    while ((status = plait_job_clock(job)) == PLAIT_STAND_IN) {}
    CHECK(status == PLAIT_OK);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    if (has(0, me)) {
        const uint64_t key = 3;
        double         value = 0;
        CHECK(plait_table_get(table, 1, &key, &value) == PLAIT_OK);
        CHECK(value == 2);
    }
    return PLAIT_OK;
}

static void test_groups_go_on_without_a_dead_member(void **unused) {
    story           s = { .consistency = "bsp", .work = go_on };
    plait_error     err = { 0 };
    plait_comm_opts opts;
    (void)unused;
    plait_comm_opts_init(&opts);
    opts.workers = RANKS;
    opts.transport = "threads";
    opts.timeout_ns = UINT64_C(60000000000);
    if (plait_comm_run(&opts, body, &s, &err) < 0) fail_msg("%s", err.text);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_groups_go_on_without_a_dead_member),
                                        cmocka_unit_test(test_any_member_may_die) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
