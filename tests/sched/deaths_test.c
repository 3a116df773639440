/* Schedules of jobs with two replicas whose variables have an owner each: any worker may die at any instant (deaths.h).
 *
 * As `test_sched_deaths processes SEED EVENTS` it is one rank of such a job, and the victim is killed by SIGKILL at an
 * instant of its own (killed.sh). */
#include "sched/deaths.h"

#include "life.h"

static long life_ns; /* of this process since its first step; 0: it dies otherwise */

static plait_status push(void *user, const plait_turn *turn) {
    part *p = user;
    if (life_ns > 0 && turn->step == 0) begin_life(&life_ns);
    atomic_fetch_add(&p->of->stood_in, turn->stands_in);
    p->step = turn->step;
    strike(p, BEFORE_PUSH);
    if (p->of->pause_ns > 0) nanosleep(&(struct timespec){ .tv_nsec = p->of->pause_ns }, NULL);
    for (int64_t i = 0; i < turn->n; i++) {
        int64_t        first;
        const int64_t  v = turn->variable[i], n = neighbours(v, &first);
        const uint64_t key = (uint64_t)v;
        double         held[3];
        PLI_TRY(plait_table_get_range(p->table, first, n, held));
        double more = (double)(turn->step + 1) * 0.01 - 0.3 * held[v - first];
        if (p->of->near > 0) more += 0.2 * (held[0] + held[n - 1]);
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

/* A run with leases plans by measured speeds; one by priority may lack the dead worker's last changes. */
static void draw(story *s, uint64_t seed) {
    static const char *const orders[] = { "rotate", "round-robin", "random", "priority" };
    pli_random               r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 21, 0);
    *s = (story){ .seed = seed, .transport = "threads", .steps = STEPS, .push = push, .pull = pull };
    s->order = orders[pli_random_below(&r, 4)];
    draw_death(s, &r);
    const bool rotates = strcmp(s->order, "rotate") == 0;
    s->near = rotates ? 0 : (int)pli_random_below(&r, 2);
    s->leases = !rotates && pli_random_below(&r, 3) == 0;
    s->repeatable = !s->leases && strcmp(s->order, "priority") != 0;
}

static void test_any_worker_may_die(void **unused) {
    (void)unused;
    try_deaths(draw);
}

static void test_any_worker_may_die_in_simulated_time(void **unused) {
    (void)unused;
    try_deaths_in_simulated_time(draw);
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

/* The owner of a variable has ended a step, has told how far the variable moved, and has died; its heir had not heard
 * of the step's end, has stood in, and tells the same. Here all workers tell it. */
static plait_status work_told_by_all(plait_job *job, void *user) {
    story           s = { .order = "priority", .quiet = 1, .push = push, .pull = pull };
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

/* In every fifth job the victim's life begins with the job itself, so that it may end before the schedule is there. */
static plait_status process_body(plait_comm *comm, void *user) {
    story      *s = user;
    pli_random  r = pli_random_at(s->seed, PLI_RANDOM_SCHEDULE, 23, 0);
    char        own[300];
    s->workers = plait_comm_workers(comm);
    s->victim = (int32_t)pli_random_below(&r, (uint64_t)s->workers);
    const int32_t me = plait_comm_rank(comm);
    if (me == s->victim) life_ns = 20000000 + (long)pli_random_below(&r, LIFE_US) * 1000;
    snprintf(own, sizeof own, "%s.%d", process_path, me);
    PLI_TRY(pli_eventlog_open(own, plait_comm_size(comm), "deaths", NULL, NULL, &process_log, NULL));
    s->sink = pli_eventlog_sink(process_log);
    if (me == s->victim && s->seed % 5 == 0) begin_life(&life_ns);
    return body(comm, s);
}

static int run_process(const char *seed) {
    static const char *const orders[] = { "rotate", "random", "priority" };
    static story    s;
    plait_comm_opts opts;
    plait_error     err = { 0 };
    s = (story){ .seed = strtoull(seed, NULL, 10), .steps = PROCESS_STEPS, .quiet = 1,
                 .pause_ns = PAUSE_NS, .push = push, .pull = pull };
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
