/* deaths.h - stories of scheduled jobs with two replicas in which a worker dies, on threads or in simulated time.
 * Living workers take over its variables. Each step's variables count once: all workers end with the same values, and
 * the audit proves the steps from the log, as it proves the tables. Where plans do not depend on who lives, the values
 * are those of the run in which nobody died. */
#ifndef PLI_TESTS_SCHED_DEATHS_H
#define PLI_TESTS_SCHED_DEATHS_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <plait/schedule.h>

#include "comm/comm.h"
#include "sched/sched.h"
#include "table/mortal.h"
#include "table/table.h"
#include "table/witness.h"
#include "watch/audit/schedule.h"

enum { VARIABLES = 24, STEPS = 20, RANKS_MAX = 6, RUNS = 20, RUNS_FULL = 600, SIM_RUNS = 20, SIM_RUNS_FULL = 1000 };
enum { BEFORE_PUSH, IN_PUSH, AFTER_PUSH, AFTER_STEP, PLACES };

typedef struct story {
    uint64_t              seed;
    const char           *transport, *order, *cluster;
    int32_t               workers, spares, victim, killer;
    int64_t               at, steps; /* at: the killer's step */
    int                   where, near, each, leases;
    const pli_event_sink *sink;
    plait_comm *_Atomic   comm[RANKS_MAX];
    atomic_int            ended, stood_in;
    double                value[VARIABLES]; /* at the end, of a worker that lives */
    int                   quiet;            /* nobody dies by the program */
    long                  pause_ns;         /* before each push */
    int                   repeatable;       /* the values at the end do not depend on the death */
    plait_status (*push)(void *part, const plait_turn *turn);
    plait_status (*pull)(void *part, const plait_turn *turn, double *change);
} story;

/* A worker's part. */
typedef struct part {
    story       *of;
    plait_job   *job;
    plait_table *table;
    int64_t      step;
} part;

/* Kills the victim, if this is the killer, in its step and at its place. */
static inline void strike(const part *p, int where) {
    story        *s = p->of;
    const int32_t me = plait_comm_rank(plait_job_comm(p->job));
    plait_error   why = { .code = PLAIT_EPEER, .rank = s->victim, .text = "killed by the test" };
    if (s->quiet || me != s->killer || p->step != s->at || where != s->where) return;
    plait_comm *victim = atomic_load_explicit(&s->comm[s->victim], memory_order_acquire);
    if (victim != NULL) pli_comm_kill(victim, &why);
}

/* Neighbours conflict: the update of a variable reads both. */
static inline plait_status conflict(void *user, int64_t n, const plait_variables *pairs, double *out) {
    const part *p = user;
    for (int64_t i = 0; i < n; i++) out[i] = pairs[i].b - pairs[i].a <= p->of->near;
    return PLAIT_OK;
}

static inline int64_t touches(void *user, int64_t variable, int64_t room, plait_touch *touch) {
    const part *p = user;
    int64_t     n = 0;
    for (int64_t v = variable - (p->of->near > 0); v <= variable + (p->of->near > 0); v++, n++)
        if (n < room) touch[n] = (plait_touch){ .writes = v == variable, .key = (uint64_t)(v + 1) };
    return n;
}

/* The variables v - 1 to v + 1, those that there are: *first_out is the first. Returns how many. */
static inline int64_t neighbours(int64_t v, int64_t *first_out) {
    *first_out = v > 0 ? v - 1 : 0;
    return (v + 1 < VARIABLES ? v + 1 : v) - *first_out + 1;
}

static inline plait_status make(part *p, plait_schedule **schedule) {
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
    o.each = s->each;
    o.leases = s->leases;
    o.conflict = s->near > 0 ? conflict : NULL;
    o.touches = touches;
    o.push = s->push;
    o.pull = s->pull;
    o.user = p;
    return plait_schedule_create(p->job, &o, schedule);
}

static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;

static inline plait_status work(void *user, plait_job *job) {
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

static inline plait_status body(plait_comm *comm, void *user) {
    story         *s = user;
    plait_job_opts o;
    plait_job_opts_init(&o);
    o.spares = s->spares;
    return run_mortal(comm, &o, s->sink, &s->comm[plait_comm_rank(comm)], work, s);
}

/* Runs the story; its log is judged by both audits. why [640]: what is wrong, or "". */
static inline void run(story *s, char *why, pli_schedule_proof *proof) {
    witness         heard;
    plait_comm_opts c;
    plait_error     err = { 0 };
    pli_logfile    *file = NULL;
    const char     *path = heard.path;
    plait_comm_opts_init(&c);
    c.transport = s->transport;
    c.workers = s->workers;
    c.cluster = s->cluster;
    c.timeout_ns = UINT64_C(60000000000);
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

/* Draws who is there, who dies, and when. */
static inline void draw_death(story *s, pli_random *r) {
    s->workers = 2 + (int32_t)pli_random_below(r, 4);
    s->spares = s->workers > 3 ? (int32_t)pli_random_below(r, 2) : 0;
    s->victim = (int32_t)pli_random_below(r, (uint64_t)s->workers);
    do s->killer = (int32_t)pli_random_below(r, (uint64_t)s->workers);
    while (s->killer == s->victim);
    s->at = (int64_t)pli_random_below(r, STEPS - 1);
    s->where = (int)pli_random_below(r, PLACES);
}

/* --- many stories ------------------------------------------------------------------------------------------------- */

typedef void draw_fn(story *s, uint64_t seed);

/* If it is repeatable: does a run without the death end with the same values? */
static inline void compare_with_quiet(const story *s, draw_fn *draw, char *why) {
    story              quiet;
    pli_schedule_proof proof = { 0 };
    if (!s->repeatable) return;
    draw(&quiet, s->seed);
    quiet.quiet = 1;
    run(&quiet, why, &proof);
    if (why[0] == '\0' && memcmp(quiet.value, s->value, sizeof s->value) != 0) snprintf(why, 640, "other values");
}

static inline void tell_story(const story *s, char *text, size_t bytes) {
    snprintf(text, bytes, "%s, near %d, each %d, leases %d, %d workers, %d spares, rank %d dies", s->order, s->near,
             s->each, s->leases, s->workers, s->spares, s->victim);
}

/* Tries the story of each seed on threads: another worker kills the victim. */
static inline void try_deaths(draw_fn *draw) {
    const char   *given = getenv("PLAIT_SEED");
    const int64_t runs = given != NULL ? 1 : getenv("PLAIT_TEST_FULL") != NULL ? RUNS_FULL : RUNS;
    int           stood_in = 0;
    for (int64_t i = 0; i < runs; i++) {
        story              s;
        char               why[640], text[160];
        pli_schedule_proof proof = { 0 };
        draw(&s, given != NULL ? strtoull(given, NULL, 10) : (uint64_t)i + 1);
        run(&s, why, &proof);
        if (why[0] == '\0' && proof.steps != STEPS) snprintf(why, sizeof why, "%lld steps", (long long)proof.steps);
        if (why[0] == '\0' && atomic_load(&s.ended) == s.workers) snprintf(why, sizeof why, "nobody died");
        if (why[0] == '\0') compare_with_quiet(&s, draw, why);
        tell_story(&s, text, sizeof text);
        if (why[0] != '\0')
            fail_msg("PLAIT_SEED=%llu (%s in %lld.%d, %d): %s", (unsigned long long)s.seed, text, (long long)s.at,
                     s.where, s.killer, why);
        stood_in += atomic_load(&s.stood_in);
    }
    assert_true(given != NULL || stood_in > 0);
}

/* SimGrid takes one platform a process. */
static inline void sim_child(draw_fn *draw, uint64_t seed) {
    char               path[] = "/tmp/plait-deaths-XXXXXX", why[640], text[160];
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
    if (why[0] == '\0') compare_with_quiet(&s, draw, why);
    tell_story(&s, text, sizeof text);
    if (why[0] != '\0' && !early) fprintf(stderr, "PLAIT_SEED=%llu (%s): %s\n", (unsigned long long)seed, text, why);
    fflush(stderr);
    _exit(why[0] == '\0' ? (proof.dead > 0 ? 0 : 2) : early ? 3 : 1);
}

/* Tries the story of each seed in simulated time: the victim dies at an instant of its own. */
static inline void try_deaths_in_simulated_time(draw_fn *draw) {
    const char   *given = getenv("PLAIT_SEED");
    const int64_t runs = given != NULL ? 1 : getenv("PLAIT_TEST_FULL") != NULL ? SIM_RUNS_FULL : SIM_RUNS;
    int64_t       died = 0;
#ifndef PLAIT_WITH_SIM
    skip();
#endif
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)i + 1;
        const pid_t    pid = fork();
        int            status = -1;
        assert_true(pid >= 0);
        if (pid == 0) sim_child(draw, seed);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) == 1) fail_msg("PLAIT_SEED=%llu", (unsigned long long)seed);
        died += WEXITSTATUS(status) == 0;
    }
    print_message("%lld of %lld runs lost a worker in a step\n", (long long)died, (long long)runs);
    assert_true(given != NULL || 2 * died > runs);
}

#endif
