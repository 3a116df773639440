/* Schedules of jobs with two replicas: any worker may die at any instant, and living ones take over its variables. Each
 * step's variables count once: every value is that of the run in which nobody died, and the audit proves the steps from
 * the log, as it proves the tables.
 *
 * As `test_sched_deaths processes SEED EVENTS` it is one rank of such a job, and the victim is killed by SIGKILL at an
 * instant of its own (killed.sh). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <plait/schedule.h>

#include "comm/comm.h"
#include "sched/sched.h"
#include "table/table.h"
#include "table/mortal.h"
#include "table/witness.h"
#include "watch/audit/schedule.h"

enum { VARIABLES = 24, STEPS = 20, RANKS_MAX = 6, RUNS = 20, RUNS_FULL = 600, SIM_RUNS = 20, SIM_RUNS_FULL = 1000 };
enum { BEFORE_PUSH, IN_PUSH, AFTER_PUSH, AFTER_STEP, PLACES };

typedef struct story {
    uint64_t            seed;
    const char         *transport, *order, *cluster;
    int32_t             workers, spares, victim, killer;
    int64_t             at, steps; /* at: the killer's step */
    int                 where, near, leases;
    const pli_event_sink *sink;
    plait_comm *_Atomic comm[RANKS_MAX];
    atomic_int          ended, stood_in;
    double              value[VARIABLES]; /* at the end, of a worker that lives */
    int                 quiet;            /* nobody dies by the program */
    long                pause_ns;         /* before each push */
} story;

typedef struct part {
    story       *of;
    plait_job   *job;
    plait_table *table;
    int64_t      step;
} part;

static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;

static void strike(const part *p, int where) {
    story        *s = p->of;
    const int32_t me = plait_comm_rank(plait_job_comm(p->job));
    plait_error   why = { .code = PLAIT_EPEER, .rank = s->victim, .text = "killed by the test" };
    if (s->quiet || me != s->killer || p->step != s->at || where != s->where) return;
    plait_comm *victim = atomic_load_explicit(&s->comm[s->victim], memory_order_acquire);
    if (victim != NULL) pli_comm_kill(victim, &why);
}

/* Neighbours conflict: the update of a variable reads both. */
static plait_status conflict(void *user, int64_t n, const plait_variables *pairs, double *out) {
    const part *p = user;
    for (int64_t i = 0; i < n; i++) out[i] = pairs[i].b - pairs[i].a <= p->of->near;
    return PLAIT_OK;
}

static int64_t touches(void *user, int64_t variable, int64_t room, plait_touch *touch) {
    const part *p = user;
    int64_t     n = 0;
    for (int64_t v = variable - (p->of->near > 0); v <= variable + (p->of->near > 0); v++, n++)
        if (n < room) touch[n] = (plait_touch){ .writes = v == variable, .key = (uint64_t)(v + 1) };
    return n;
}

static plait_status push(void *user, const plait_turn *turn) {
    part *p = user;
    atomic_fetch_add(&p->of->stood_in, turn->stands_in);
    p->step = turn->step;
    strike(p, BEFORE_PUSH);
    if (p->of->pause_ns > 0) nanosleep(&(struct timespec){ .tv_nsec = p->of->pause_ns }, NULL);
    for (int64_t i = 0; i < turn->n; i++) {
        const int64_t v = turn->variable[i], first = v > 0 ? v - 1 : 0, last = v + 1 < VARIABLES ? v + 1 : v;
        const uint64_t key = (uint64_t)v;
        double         held[3];
        PLI_TRY(plait_table_get_range(p->table, first, last - first + 1, held));
        double more = (double)(turn->step + 1) * 0.01 - 0.3 * held[v - first];
        if (p->of->near > 0) more += 0.2 * (held[0] + held[last - first]);
        PLI_TRY(plait_table_inc(p->table, 1, &key, &more, 0));
        if (i == turn->n / 2) strike(p, IN_PUSH);
        if (p->of->cluster != NULL) pli_comm_work(plait_job_comm(p->job), PLI_WORK_ENTRIES, 300);
    }
    if (turn->n == 0) strike(p, IN_PUSH);
    strike(p, AFTER_PUSH);
    return PLAIT_OK;
}

static plait_status pull(void *user, const plait_turn *turn, double *change) {
    (void)user;
    for (int64_t i = 0; i < turn->n; i++) change[i] = 1.0 / (double)(1 + turn->variable[i]);
    return PLAIT_OK;
}

static plait_status make(part *p, plait_schedule **schedule) {
    const story        *s = p->of;
    plait_table_opts    t;
    plait_schedule_opts o;
    plait_table_opts_init(&t);
    t.name = "w";
    t.type = PLAIT_F64;
    t.rows = VARIABLES;
    t.keyed = 1;
    PLI_TRY(plait_table_create(p->job, &t, &p->table));
    plait_schedule_opts_init(&o);
    o.variables = VARIABLES;
    o.order = s->order;
    o.take = 8;
    o.seed = 3;
    o.leases = s->leases;
    o.conflict = s->near > 0 ? conflict : NULL;
    o.touches = touches;
    o.push = push;
    o.pull = pull;
    o.user = p;
    return plait_schedule_create(p->job, &o, schedule);
}

static plait_status work(void *user, plait_job *job) {
    story          *s = user;
    part            p = { .of = s, .job = job };
    plait_comm     *comm = plait_job_comm(job);
    plait_schedule *schedule = NULL;
    PLI_TRY(make(&p, &schedule));
    plait_status status = PLAIT_OK;
    for (int64_t i = 0; status >= 0 && i < s->steps; i++) {
        status = plait_schedule_step(schedule);
        strike(&p, AFTER_STEP);
    }
    if (status >= 0) status = plait_schedule_agree(schedule);
    if (status >= 0) status = plait_job_barrier(job);
    double value[VARIABLES] = { 0 };
    if (status >= 0) status = plait_table_get_range(p.table, 0, VARIABLES, value);
    pthread_mutex_lock(&ending); /* the first one's values are there before the next compares */
    if (status >= 0 && atomic_fetch_add(&s->ended, 1) == 0) memcpy(s->value, value, sizeof value);
    else if (status >= 0 && memcmp(s->value, value, sizeof value) != 0)
        status = pli_fail(pli_comm_error(comm), PLAIT_EDIVERGED, "two workers end with other values");
    pthread_mutex_unlock(&ending);
    plait_schedule_destroy(&schedule);
    return status;
}

static plait_status body(plait_comm *comm, void *user) {
    story         *s = user;
    plait_job_opts o;
    plait_job_opts_init(&o);
    o.spares = s->spares;
    return run_mortal(comm, &o, s->sink, &s->comm[plait_comm_rank(comm)], work, s);
}

/* Runs the story; its log is judged by both audits. why [640]: what is wrong, or "". */
static void run(story *s, char *why, pli_schedule_proof *proof) {
    witness         heard;
    plait_comm_opts c;
    plait_error     err = { 0 };
    pli_logfile    *file = NULL;
    const char     *path = heard.path;
    plait_comm_opts_init(&c);
    c.transport = s->transport;
    c.workers = s->workers;
    c.cluster = s->cluster;
    c.timeout_ns = UINT64_C(20000000000);
    why[0] = '\0';
    if (!witness_open(&heard, s->workers, NULL, NULL)) snprintf(why, 640, "no log");
    s->sink = witness_sink(&heard);
    plait_status status = plait_comm_run(&c, body, s, &err);
    const int    fd = dup(heard.fd);
    const bool   tables = witness_close(&heard, status >= 0, why, 640);
    snprintf(heard.path, sizeof heard.path, "/proc/self/fd/%d", fd);
    if (status < 0) snprintf(why, 640, "%s", err.text);
    else if (tables && pli_logfile_open(&path, 1, &file, &err) >= 0 && pli_schedule_prove(file, NULL, proof, &err) >= 0)
        snprintf(why, 640, "%s", proof->verdict == PLI_AUDIT_REFUTED ? proof->first.text : "");
    else if (tables) snprintf(why, 640, "%s", err.text);
    if (why[0] == '\0' && proof->verdict != PLI_AUDIT_PROVEN) snprintf(why, 640, "verdict %d", (int)proof->verdict);
    if (why[0] == '\0' && atomic_load(&s->ended) < s->workers - 1)
        snprintf(why, 640, "%d workers ended", atomic_load(&s->ended));
    pli_logfile_close(&file);
    close(fd);
}

static void draw(story *s, uint64_t seed) {
    static const char *const orders[] = { "rotate", "round-robin", "random", "priority" };
    pli_random               r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 21, 0);
    *s = (story){ .seed = seed, .transport = "threads", .steps = STEPS };
    s->order = orders[pli_random_below(&r, 4)];
    s->workers = 2 + (int32_t)pli_random_below(&r, 4);
    s->spares = s->workers > 3 ? (int32_t)pli_random_below(&r, 2) : 0;
    s->victim = (int32_t)pli_random_below(&r, (uint64_t)s->workers);
    do s->killer = (int32_t)pli_random_below(&r, (uint64_t)s->workers);
    while (s->killer == s->victim);
    s->at = (int64_t)pli_random_below(&r, STEPS - 1);
    s->where = (int)pli_random_below(&r, PLACES);
    const bool rotates = strcmp(s->order, "rotate") == 0;
    s->near = rotates ? 0 : (int)pli_random_below(&r, 2);
    s->leases = !rotates && pli_random_below(&r, 3) == 0;
}

/* A run with leases plans by measured speeds; one by priority may lack the dead worker's last changes. */
static bool is_repeatable(const story *s) { return !s->leases && strcmp(s->order, "priority") != 0; }

static void test_any_worker_may_die(void **unused) {
    const char   *given = getenv("PLAIT_SEED");
    const int64_t runs = given != NULL ? 1 : getenv("PLAIT_TEST_FULL") != NULL ? RUNS_FULL : RUNS;
    int           stood_in = 0;
    (void)unused;
    for (int64_t i = 0; i < runs; i++) {
        story              s, quiet;
        char               why[640];
        pli_schedule_proof proof = { 0 };
        const uint64_t     seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)i + 1;
        draw(&s, seed);
        draw(&quiet, seed);
        quiet.quiet = 1;
        run(&s, why, &proof);
        if (why[0] == '\0' && proof.steps != STEPS) snprintf(why, sizeof why, "%lld steps", (long long)proof.steps);
        const int ended = atomic_load(&s.ended);
        if (why[0] == '\0' && ended == s.workers) snprintf(why, sizeof why, "nobody died");
        if (why[0] == '\0' && is_repeatable(&s)) {
            run(&quiet, why, &proof);
            if (memcmp(quiet.value, s.value, sizeof s.value) != 0) snprintf(why, sizeof why, "other values");
        }
        if (why[0] != '\0')
            fail_msg("PLAIT_SEED=%llu (%s, near %d, leases %d, %d workers, %d spares, rank %d dies in %lld.%d, %d): %s",
                     (unsigned long long)seed, s.order, s.near, s.leases, s.workers, s.spares, s.victim,
                     (long long)s.at, s.where, s.killer, why);
        stood_in += atomic_load(&s.stood_in);
    }
    assert_true(given != NULL || stood_in > 0);
}

/* --- simulated time ----------------------------------------------------------------------------------------------- */

/* SimGrid takes one platform a process. */
static void sim_child(uint64_t seed) {
    char               path[] = "/tmp/plait-deaths-XXXXXX", why[640];
    const int          fd = mkstemp(path);
    pli_schedule_proof proof = { 0 };
    story              s;
    pli_random         r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 22, 0);
    draw(&s, seed);
    s.transport = "sim";
    s.cluster = path;
    s.quiet = 1; /* the cluster file kills */
    FILE *file = fdopen(fd, "w");
    fprintf(file, "version: 1\nhosts: [{count: %d}, {count: 1, speed: 0.5}]\ncost: {clock: 1 ms, notice: 4 ms, entry: "
                  "1us}\nevents:\n  - kill: {ranks: %d, at: %.3f ms}\n  - jitter: {sigma: 0.3}\n", s.workers - 1,
            s.victim, 5 + pli_random_f64(&r) * 40);
    fclose(file);
    run(&s, why, &proof);
    unlink(path);
    /* Before the table is there, or after the last step, a death may end the run, or come too late. */
    const bool early = strstr(why, "has died") != NULL && proof.steps == 0;
    if (why[0] != '\0' && !early)
        fprintf(stderr, "seed %llu (%s, near %d, leases %d, %d workers, rank %d dies): %s\n", (unsigned long long)seed,
                s.order, s.near, s.leases, s.workers, s.victim, why);
    fflush(stderr);
    _exit(why[0] == '\0' ? (proof.dead > 0 ? 0 : 2) : early ? 3 : 1);
}

static void test_any_worker_may_die_in_simulated_time(void **unused) {
    const char   *given = getenv("PLAIT_SEED");
    const int64_t runs = given != NULL ? 1 : getenv("PLAIT_TEST_FULL") != NULL ? SIM_RUNS_FULL : SIM_RUNS;
    int64_t       died = 0;
    (void)unused;
#ifndef PLAIT_WITH_SIM
    skip();
#endif
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)i + 1;
        const pid_t    pid = fork();
        int            status = -1;
        assert_true(pid >= 0);
        if (pid == 0) sim_child(seed);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) == 1) fail_msg("PLAIT_SEED=%llu", (unsigned long long)seed);
        died += WEXITSTATUS(status) == 0;
    }
    print_message("%lld of %lld runs lost a worker in a step\n", (long long)died, (long long)runs);
    assert_true(given != NULL || 2 * died > runs);
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

/* The owner of a variable has ended a step, has told how far the variable moved, and has died; its heir had not heard
 * of the step's end, has stood in, and tells the same. Here all workers tell it. */
static plait_status work_told_by_all(plait_job *job, void *user) {
    story           s = { .order = "priority", .quiet = 1 };
    part            p = { .of = &s, .job = job };
    plait_schedule *schedule = NULL;
    PLI_TRY(make(&p, &schedule));
    plait_status  status = plait_schedule_step(schedule);
    const int64_t variable = schedule->was.variable[0];
    const double  change = 1.0 / (double)(1 + variable);
    schedule->n_told = 1;
    schedule->told_at[0] = 0;
    schedule->told_change[0] = change;
    if (status >= 0) status = plait_schedule_step(schedule);
    if (status >= 0 && schedule->weights.weight[variable] == schedule->opts.floor + change)
        atomic_fetch_add((atomic_int *)user, 1);
    plait_schedule_destroy(&schedule);
    return status;
}

static void test_a_change_told_twice_counts_once(void **unused) {
    plait_comm_opts c;
    plait_job_opts  o;
    plait_error     err = { 0 };
    atomic_int      right = 0;
    (void)unused;
    plait_comm_opts_init(&c);
    plait_job_opts_init(&o);
    c.workers = 2;
    o.topology = "ps";
    o.replicas = 2;
    if (plait_run(&c, &o, work_told_by_all, &right, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(atomic_load(&right), 2);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static plait_status refused_work(plait_job *job, void *user) {
    plait_schedule     *schedule = NULL;
    plait_schedule_opts o;
    plait_schedule_opts_init(&o);
    o.variables = 8;
    o.push = push;
    (void)user;
    return plait_schedule_create(job, &o, &schedule);
}

static void test_what_is_refused(void **unused) {
    plait_comm_opts c;
    plait_job_opts  o;
    plait_error     err = { 0 };
    (void)unused;
    plait_comm_opts_init(&c);
    plait_job_opts_init(&o);
    c.workers = 2;
    o.topology = "ps";
    o.replicas = 2;
    o.consistency = "ssp:1";
    assert_int_equal(plait_run(&c, &o, refused_work, NULL, &err), PLAIT_EREFUSED);
    if (strstr(err.text, "two replicas needs the same values") == NULL) fail_msg("%s", err.text);
}

/* --- a rank of a job of processes --------------------------------------------------------------------------------- */

enum { PROCESS_STEPS = 300, PAUSE_NS = 1000000, LIFE_US = 250000 };
static pli_eventlog *process_log;
static const char   *process_path;

static void *die_in_time(void *arg) {
    const struct timespec life = { .tv_nsec = *(const long *)arg };
    nanosleep(&life, NULL);
    kill(getpid(), SIGKILL);
    return NULL;
}

static plait_status process_body(plait_comm *comm, void *user) {
    story      *s = user;
    pli_random  r = pli_random_at(s->seed, PLI_RANDOM_SCHEDULE, 23, 0);
    static long life_ns;
    char        own[300];
    pthread_t   killer;
    s->workers = plait_comm_workers(comm);
    s->victim = (int32_t)pli_random_below(&r, (uint64_t)s->workers);
    life_ns = 20000000 + (long)pli_random_below(&r, LIFE_US) * 1000;
    snprintf(own, sizeof own, "%s.%d", process_path, plait_comm_rank(comm));
    PLI_TRY(pli_eventlog_open(own, plait_comm_size(comm), "deaths", NULL, NULL, &process_log, NULL));
    s->sink = pli_eventlog_sink(process_log);
    if (plait_comm_rank(comm) == s->victim && pthread_create(&killer, NULL, die_in_time, &life_ns) == 0)
        pthread_detach(killer);
    return body(comm, s);
}

static int run_process(const char *seed) {
    static const char *const orders[] = { "rotate", "random", "priority" };
    static story    s;
    plait_comm_opts opts;
    plait_error     err = { 0 };
    s = (story){ .seed = strtoull(seed, NULL, 10), .steps = PROCESS_STEPS, .quiet = 1,
                   .pause_ns = PAUSE_NS };
    s.order = orders[s.seed % 3];
    s.near = s.seed % 3 == 1;
    plait_comm_opts_init(&opts);
    opts.transport = "mpi";
    plait_status status = plait_comm_run(&opts, process_body, &s, &err);
    if (status >= 0) status = pli_eventlog_close(&process_log, &err);
    if (status < 0) fprintf(stderr, "seed %s: %s\n", seed, err.text);
    else printf("ended well\n");
    return status < 0;
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "processes") == 0) {
        process_path = argv[3];
        return run_process(argv[2]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_worker_may_die),
        cmocka_unit_test(test_any_worker_may_die_in_simulated_time),
        cmocka_unit_test(test_a_change_told_twice_counts_once),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
