/* Schedules with `each` in jobs with two replicas: every worker has part of the data of each variable, and adds that
 * part for all variables of a step. Any worker may die at any instant (deaths.h). Then its heir adds its part: in the
 * step of the death in a turn of its own, in later steps beside the heir's own part.
 *
 * A part is a whole number that depends on whose data it is from, on the step, and on what the table holds. So sums are
 * exact in any order. If a part is lost, counts twice, is taken from another worker's data or from later values, then
 * all later values differ; so do the plans of order priority, since changes are read off the table. So under every
 * order the run must end, to the bit, with the values of the run in which nobody dies. */
#include "sched/deaths.h"

/* What the data of a worker add to a variable of which the table holds so much. */
static double amount(int32_t home, int64_t variable, int64_t step, double held) {
    return (double)(((int64_t)held * (7 + home) + variable * 13 + step * (3 + 2 * home)) % 101);
}

/* held [n]: for each variable its value, with those of its neighbours if they conflict. */
static plait_status read_turn(part *p, const plait_turn *turn, double *held) {
    for (int64_t i = 0; i < turn->n; i++) {
        double        value[3];
        int64_t       first;
        const int64_t v = turn->variable[i], n = neighbours(v, &first);
        PLI_TRY(plait_table_get_range(p->table, first, n, value));
        held[i] = value[v - first];
        if (p->of->near > 0) held[i] += value[0] + value[n - 1];
        if (p->of->cluster != NULL) pli_comm_work(plait_job_comm(p->job), PLI_WORK_ENTRIES, 100);
    }
    return PLAIT_OK;
}

static plait_status add_part(part *p, const plait_turn *turn, int32_t home, const double *held) {
    uint64_t key[VARIABLES];
    double   more[VARIABLES];
    for (int64_t i = 0; i < turn->n; i++) {
        key[i] = (uint64_t)turn->variable[i];
        more[i] = amount(home, turn->variable[i], turn->step, held[i]);
    }
    return plait_table_inc(p->table, turn->n, key, more, 0);
}

/* Spares have no data. */
static plait_status push(void *user, const plait_turn *turn) {
    part         *p = user;
    const int32_t me = plait_comm_rank(plait_job_comm(p->job)), homes = p->of->workers - p->of->spares;
    double        held[VARIABLES];
    atomic_fetch_add(&p->of->stood_in, turn->stands_in);
    p->step = turn->step;
    strike(p, BEFORE_PUSH);
    PLI_TRY(read_turn(p, turn, held));
    for (int32_t home = 0; home < homes; home++) {
        const bool adds = turn->stands_in ? home == turn->home : plait_job_holder(p->job, home, 0) == me;
        if (home == homes / 2) strike(p, IN_PUSH);
        if (adds) PLI_TRY(add_part(p, turn, home, held));
    }
    strike(p, AFTER_PUSH);
    return PLAIT_OK;
}

/* The change of a variable is read off its sum, the same on all workers. */
static plait_status pull(void *user, const plait_turn *turn, double *change) {
    const part *p = user;
    for (int64_t i = 0; i < turn->n; i++) {
        const uint64_t key = (uint64_t)turn->variable[i];
        double         held;
        PLI_TRY(plait_table_get(p->table, 1, &key, &held));
        change[i] = (double)((int64_t)held % 17);
    }
    return PLAIT_OK;
}

static void draw(story *s, uint64_t seed) {
    static const char *const orders[] = { "round-robin", "random", "priority" };
    pli_random               r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 24, 0);
    *s = (story){ .seed = seed, .transport = "threads", .steps = STEPS, .each = 1, .repeatable = 1, .push = push,
                  .pull = pull };
    s->order = orders[pli_random_below(&r, 3)];
    draw_death(s, &r);
    s->near = (int)pli_random_below(&r, 2);
}

static void test_any_worker_may_die(void **unused) {
    (void)unused;
    try_deaths(draw);
}

static void test_any_worker_may_die_in_simulated_time(void **unused) {
    (void)unused;
    try_deaths_in_simulated_time(draw);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_worker_may_die),
        cmocka_unit_test(test_any_worker_may_die_in_simulated_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0; /* 1, however many fail: a mistake is refuted (mutants.sh) */
}
