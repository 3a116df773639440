/* Tests plait_job_describe: what it says of every table, on every rank, is what the tables hold. The truth comes from
 * the tables themselves (gets and dumps) and from what each worker knows that it did. Every topology, servers apart,
 * tables of groups, sparse tables and those with a rule's state; on threads, and on processes ("mpi"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>
#include <stdatomic.h>

#include <cmocka.h>

#include <plait/group.h>
#include <plait/table.h>

#include "table/table.h"

enum { ROWS = 3001, COLS = 2, CLOCKS = 7 };
#define PATIENCE UINT64_C(60000000000)

static const char *transport = "threads";

typedef struct story {
    const char *topology, *consistency;
    int32_t     workers, servers, replicas;
    bool        groups, sparse, ruled, shared;
} story;

#define SURE(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            print_error("line %d: %s, rank %d: %s\n", __LINE__, s->topology, (int)plait_comm_rank(comm), #condition);  \
            return PLAIT_EDIVERGED;                                                                                    \
        }                                                                                                              \
    } while (0)

/* In which clocks worker w pushes and gets. */
static bool    pushes(int32_t w, int64_t clock) { return clock % (w + 1) == 0; }
static bool    gets(int32_t w, int64_t clock) { return clock % (w + 2) == 1; }
static int64_t last_of(bool (*does)(int32_t, int64_t), int32_t w) {
    int64_t clock = CLOCKS - 1;
    while (clock >= 0 && !does(w, clock)) clock--;
    return clock;
}

/* Are the parts of this table what it holds? members [n]: ranks. keys: of a sparse table, how many it has. */
/* The second replica of a member's shard has its rows, at the same version, on the next member's rank. */
static plait_status check_replica(plait_comm *comm, const story *s, const plait_table_part *part, int64_t n,
                                  const plait_table_part *replica, const int32_t *members, int32_t n_members) {
    int32_t first = s->servers > 0 ? s->workers : 0, m = 0, found = 0;
    if (s->servers > 0) SURE(replica->rank == first + (replica->replica_of - first + 1) % s->servers);
    while (s->servers == 0 && m < n_members && members[m] != replica->replica_of) m++;
    if (s->servers == 0) SURE(replica->rank == members[(m + 1) % n_members]);
    for (int64_t i = 0; i < n; i++) {
        const plait_table_part *own = &part[i];
        if (own->rank != replica->replica_of || own->replica_of >= 0 || strcmp(own->name, replica->name) != 0 ||
            strcmp(own->group, replica->group) != 0)
            continue;
        SURE(own->held == replica->held && own->first == replica->first && own->bytes == replica->bytes);
        SURE(own->version == replica->version);
        found++;
    }
    SURE(found == 1 && !replica->serves && !replica->copy);
    SURE(replica->clock == -1 && replica->last_get == -1 && replica->last_push == -1);
    return PLAIT_OK;
}

static plait_status check(plait_comm *comm, const story *s, const plait_table_part *part, int64_t n, const char *name,
                          const char *group, const int32_t *members, int32_t n_members, int64_t keys,
                          int64_t row_bytes) {
    int64_t found = 0, held = 0, next = 0;
    bool    copies = false;
    int64_t replicas = 0;
    for (int64_t i = 0; i < n; i++) {
        const plait_table_part *p = &part[i];
        int32_t                 m = 0;
        SURE(p->name[0] != '\0'); /* every rank has answered */
        if (strcmp(p->name, name) != 0 || strcmp(p->group, group) != 0) continue;
        while (m < n_members && members[m] != p->rank) m++;
        SURE(p->members == n_members);
        if (p->replica_of >= 0) {
            PLI_TRY(check_replica(comm, s, part, n, p, members, n_members));
            replicas += p->held;
            continue;
        }
        SURE(keys < 0 ? p->rows == ROWS : p->rows == 0);
        SURE(p->cols == COLS && p->type == PLAIT_F32);
        const bool hybrid = strcmp(s->topology, "hybrid") == 0; /* of which each table takes a side */
        SURE(strcmp(p->topology, !hybrid ? s->topology : keys < 0 ? "allreduce" : "ps") == 0);
        SURE(strcmp(p->consistency, s->consistency) == 0);
        SURE(p->bytes == p->held * row_bytes);
        if (p->clock >= 0) {
            SURE(m < n_members && p->clock == CLOCKS);
            SURE(p->last_push == last_of(pushes, p->rank) && p->last_get == last_of(gets, p->rank));
            found++;
        } else {
            SURE(p->rank >= plait_comm_workers(comm)); /* it only serves */
        }
        copies = copies || p->copy;
        if (p->copy) SURE(p->first == 0 && p->held == (keys < 0 ? ROWS : keys));
        if (!p->copy && p->held > 0 && keys < 0) {
            SURE(p->first == next); /* in order of ranks, without a gap */
            next += p->held;
        }
        if (p->held > 0) SURE(p->version == (s->shared ? -1 : CLOCKS)); /* all clocks are in it */
        if (!p->copy) held += p->held;
    }
    SURE(found == n_members);
    SURE(replicas == (s->replicas > 1 ? held : 0)); /* each row once more */
    if (!copies) SURE(held == (keys < 0 ? ROWS : keys));
    return PLAIT_OK;
}

static plait_status make(plait_job *job, const story *s, const char *name, int64_t rows, const char *rule,
                         plait_group *group, plait_table **table_out) {
    plait_table_opts opts;
    (void)s;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.rows = rows;
    opts.cols = COLS;
    opts.rule.name = rule;
    opts.group = group;
    return plait_table_create(job, &opts, table_out);
}

/* A clock of one worker. Each push adds 1 to every row; of a sparse table, to a key of the worker's own. */
static plait_status play(plait_comm *comm, const story *s, plait_table *const *table, int32_t n, float *ones,
                         float *got, int64_t clock) {
    const int32_t  me = plait_comm_rank(comm);
    const uint64_t key = (uint64_t)(me + 1) * 1000003;
    for (int32_t t = 0; t < n; t++) {
        const bool sparse = plait_table_rows(table[t]) == 0;
        if (gets(me, clock))
            SURE((sparse ? plait_table_get(table[t], 1, &key, got)
                         : plait_table_get_range(table[t], 0, ROWS, got)) >= 0);
        if (pushes(me, clock))
            SURE((sparse ? plait_table_inc(table[t], 1, &key, ones, 0)
                         : plait_table_inc_range(table[t], 0, ROWS, ones, table[t]->spec.ruled ? 1 : 0)) >= 0);
    }
    return PLAIT_OK;
}

/* How often the members have pushed, as every value of the additive table says. */
static plait_status check_values(plait_comm *comm, const story *s, plait_table *table, const int32_t *members,
                                 int32_t n, float *got) {
    int64_t pushed = 0;
    if (strncmp(s->topology, "gossip", 6) == 0 || s->shared) return PLAIT_OK; /* averages; writes that overlap */
    for (int32_t m = 0; m < n; m++)
        for (int64_t clock = 0; clock < CLOCKS; clock++) pushed += pushes(members[m], clock);
    SURE(plait_table_get_range(table, 0, ROWS, got) == PLAIT_OK);
    for (int64_t i = 0; i < ROWS * COLS; i++) SURE(got[i] == (float)pushed);
    return PLAIT_OK;
}

static plait_status work(plait_job *job, void *user) {
    const story      *s = user;
    plait_comm       *comm = plait_job_comm(job);
    const int32_t     me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    int32_t           all[16], side[2][16], n_side[2] = { 0, 0 }, tables = 0;
    plait_group      *group[2] = { NULL, NULL };
    plait_table      *table[4];
    plait_table_part *part = NULL;
    float            *ones = malloc(ROWS * COLS * sizeof *ones), *got = malloc(ROWS * COLS * sizeof *got);
    plait_error       err;
    int64_t           n = 0;
    for (int32_t i = 0; i < ROWS * COLS; i++) ones[i] = 1;
    for (int32_t w = 0; w < workers; w++) {
        all[w] = w;
        side[w % 2][n_side[w % 2]++] = w;
    }
    SURE(make(job, s, "d", ROWS, NULL, NULL, &table[tables++]) == PLAIT_OK);
    if (s->ruled) SURE(make(job, s, "r", ROWS, "adagrad", NULL, &table[tables++]) == PLAIT_OK);
    if (s->sparse) SURE(make(job, s, "s", 0, NULL, NULL, &table[tables++]) == PLAIT_OK);
    for (int k = 0; s->groups && k < 2; k++)
        SURE(plait_group_create(comm, k == 0 ? "even" : "odd", n_side[k], side[k], &group[k]) == PLAIT_OK);
    if (s->groups) SURE(make(job, s, "g", ROWS, NULL, group[me % 2], &table[tables++]) == PLAIT_OK);
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        SURE(play(comm, s, table, tables, ones, got, clock) == PLAIT_OK);
        SURE(plait_job_clock(job) == PLAIT_OK);
    }
    SURE(plait_job_barrier(job) == PLAIT_OK);
    for (int32_t asker = 0; asker < workers; asker++) { /* any rank may ask */
        if (asker == me) {
            const int64_t row = COLS * (int64_t)sizeof(float);
            SURE(plait_job_describe(comm, PATIENCE, &n, &part, &err) == PLAIT_OK);
            SURE(check(comm, s, part, n, "d", "", all, workers, -1, row) == PLAIT_OK);
            if (s->ruled) SURE(check(comm, s, part, n, "r", "", all, workers, -1, 2 * row) == PLAIT_OK);
            if (s->sparse) SURE(check(comm, s, part, n, "s", "", all, workers, workers, row + 8) == PLAIT_OK);
            for (int k = 0; s->groups && k < 2; k++)
                SURE(check(comm, s, part, n, "g", k == 0 ? "even" : "odd", side[k], n_side[k], -1, row) == PLAIT_OK);
            plait_comm_free(part);
        }
        SURE(plait_comm_barrier(comm) == PLAIT_OK);
    }
    SURE(check_values(comm, s, table[0], all, workers, got) == PLAIT_OK);
    if (s->groups) SURE(check_values(comm, s, table[tables - 1], side[me % 2], n_side[me % 2], got) == PLAIT_OK);
    if (s->sparse) {
        uint64_t *keys;
        void     *values;
        int64_t   held;
        SURE(plait_table_dump(table[1 + s->ruled], &held, &keys, &values) == PLAIT_OK);
        SURE(held == workers);
        plait_comm_free(keys);
        plait_comm_free(values);
    }
    free(ones);
    free(got);
    return PLAIT_OK;
}

static void play_all(story s) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     err = { .code = PLAIT_OK };
    plait_comm_opts_init(&comm);
    comm.transport = transport;
    comm.workers = s.workers;
    comm.servers = s.servers;
    plait_job_opts_init(&job);
    job.topology = s.topology;
    job.consistency = s.consistency;
    job.replicas = s.replicas;
    if (plait_run(&comm, &job, work, &s, &err) != PLAIT_OK) fail_msg("%s: %s", s.topology, err.text);
}

static void test_ps(void **state) {
    (void)state;
    play_all((story){ "ps", "bsp", 4, 0, .groups = true, .sparse = true, .ruled = true });
}
static void test_replicas(void **state) {
    (void)state;
    play_all((story){ "ps", "bsp", 4, 0, .replicas = 2, .groups = true, .sparse = true, .ruled = true });
    play_all((story){ "ps", "bsp", strcmp(transport, "threads") == 0 ? 3 : 2, 2, .replicas = 2, .sparse = true });
}
static void test_allreduce(void **state) {
    (void)state;
    play_all((story){ "allreduce", "bsp", 4, 0, .groups = true, .ruled = true });
}
static void test_hybrid(void **state) {
    (void)state;
    play_all((story){ "hybrid", "bsp", 4, 0, .groups = true, .sparse = true });
}
static void test_gossip(void **state) {
    (void)state;
    play_all((story){ "gossip:ring", "bsp", 4, 0, .groups = true });
}
static void test_local(void **state) {
    (void)state;
    if (strcmp(transport, "threads") != 0) return; /* local is one process */
    play_all((story){ "local", "bsp", 3, 0, .groups = true, .sparse = true, .ruled = true });
    play_all((story){ "local", "async", 3, 0, .shared = true });
}
static void test_servers_apart(void **state) {
    (void)state;
    play_all((story){ "ps", "bsp", strcmp(transport, "threads") == 0 ? 3 : 2, 2, .sparse = true, .ruled = true });
}

/* A table that is dropped is not described any more; the one after it is. So is a job that has ended. */
static plait_status drop(plait_comm *comm, void *user) {
    const story       own = { .topology = "ps" }, *s = &own;
    plait_job_opts    opts;
    plait_job        *job;
    plait_table      *table;
    plait_table_part *part;
    int64_t           n;
    (void)user;
    plait_job_opts_init(&opts);
    opts.topology = "ps";
    for (int k = 0; k < 3; k++) {
        SURE(plait_job_create(comm, &opts, &job) == PLAIT_OK);
        SURE(make(job, s, "a", ROWS, NULL, NULL, &table) == PLAIT_OK);
        SURE(plait_table_drop(&table) == PLAIT_OK);
        SURE(make(job, s, "b", ROWS, NULL, NULL, &table) == PLAIT_OK);
        SURE(plait_comm_barrier(comm) == PLAIT_OK);
        if (plait_comm_rank(comm) == 1) {
            SURE(plait_job_describe(comm, PATIENCE, &n, &part, NULL) == PLAIT_OK);
            SURE(n == 2 && strcmp(part[0].name, "b") == 0 && strcmp(part[1].name, "b") == 0);
            SURE(part[0].held + part[1].held == ROWS);
            plait_comm_free(part);
        }
        SURE(plait_comm_barrier(comm) == PLAIT_OK);
        SURE(plait_job_destroy(&job) == PLAIT_OK);
        SURE(plait_comm_barrier(comm) == PLAIT_OK);
        SURE(plait_job_describe(comm, PATIENCE, &n, &part, NULL) == PLAIT_OK);
        SURE(n == 0);
        plait_comm_free(part);
        SURE(plait_comm_barrier(comm) == PLAIT_OK);
    }
    return PLAIT_OK;
}

static void test_what_is_gone_is_not_described(void **state) {
    plait_comm_opts opts;
    plait_error     err = { .code = PLAIT_OK };
    (void)state;
    if (strcmp(transport, "threads") != 0) return;
    plait_comm_opts_init(&opts);
    opts.transport = transport;
    opts.workers = 2;
    if (plait_comm_run(&opts, drop, NULL, &err) != PLAIT_OK) fail_msg("%s", err.text);
}

typedef struct looker {
    plait_comm *comm;
    atomic_bool ends;
    int64_t     looks, wrong;
} looker;

/* Describes again and again, whatever the workers do meanwhile. */
static void *look_on(void *user) {
    looker *l = user;
    do { /* once at least, however late it begins */
        plait_table_part *part = NULL;
        int64_t           n = 0;
        l->wrong += plait_job_describe(l->comm, PATIENCE, &n, &part, NULL) != PLAIT_OK;
        for (int64_t i = 0; i < n; i++) {
            const bool known = strcmp(part[i].name, "a") == 0 || strcmp(part[i].name, "b") == 0;
            l->wrong += !known || part[i].rows != ROWS || part[i].held < 0 || part[i].held > ROWS;
        }
        l->looks++;
        plait_comm_free(part);
    } while (!atomic_load(&l->ends));
    return NULL;
}

static plait_status come_and_go(plait_comm *comm, const story *s) {
    plait_job_opts opts;
    plait_job     *job;
    plait_table   *a, *b;
    float          values[COLS] = { 1, 2 };
    plait_job_opts_init(&opts);
    opts.topology = s->topology;
    SURE(plait_job_create(comm, &opts, &job) == PLAIT_OK);
    SURE(make(job, s, "a", ROWS, NULL, NULL, &a) == PLAIT_OK);
    SURE(make(job, s, "b", ROWS, NULL, NULL, &b) == PLAIT_OK);
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        SURE(plait_table_inc_range(a, clock, 1, values, 0) == PLAIT_OK);
        SURE(plait_table_get_range(b, clock, 1, values) == PLAIT_OK);
        SURE(plait_job_clock(job) == PLAIT_OK);
    }
    SURE(plait_table_drop(&a) == PLAIT_OK);
    SURE(make(job, s, "a", ROWS, NULL, NULL, &a) == PLAIT_OK);
    SURE(plait_job_clock(job) == PLAIT_OK);
    return plait_job_destroy(&job);
}

static plait_status watched(plait_comm *comm, void *user) {
    const story *s = user;
    looker       l = { .comm = comm };
    pthread_t    thread;
    const bool   looks = plait_comm_rank(comm) == 1;
    plait_status status = PLAIT_OK;
    if (looks) SURE(pthread_create(&thread, NULL, look_on, &l) == 0);
    for (int i = 0; status >= 0 && i < 10; i++) status = come_and_go(comm, s);
    atomic_store(&l.ends, true);
    if (looks) SURE(pthread_join(thread, NULL) == 0);
    if (status >= 0) status = plait_comm_barrier(comm); /* a rank that has ended would not answer */
    SURE(status < 0 || l.wrong == 0);
    SURE(!looks || l.looks > 0);
    return status;
}

/* A thread of one rank describes while the workers make tables, use and drop them, and end their jobs. */
static void test_meanwhile(void **state) {
    static const char *const topologies[] = { "ps", "allreduce", "local" };
    plait_comm_opts          opts;
    plait_error              err = { .code = PLAIT_OK };
    (void)state;
    const size_t processes = strcmp(transport, "threads") != 0; /* they have no memory in common */
    for (size_t i = 0; i < sizeof topologies / sizeof *topologies - processes; i++) {
        story s = { .topology = topologies[i] };
        plait_comm_opts_init(&opts);
        opts.transport = transport;
        opts.workers = 4;
        if (plait_comm_run(&opts, watched, &s, &err) != PLAIT_OK) fail_msg("%s: %s", topologies[i], err.text);
    }
}

/* mpi NAME: that test alone, over processes. */
int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ps),     cmocka_unit_test(test_allreduce), cmocka_unit_test(test_hybrid),
        cmocka_unit_test(test_gossip), cmocka_unit_test(test_local),     cmocka_unit_test(test_servers_apart),
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_what_is_gone_is_not_described),
        cmocka_unit_test(test_meanwhile),
    };
    if (argc > 2) {
        transport = argv[1];
        cmocka_set_test_filter(argv[2]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
