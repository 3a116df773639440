/* One step: plan, push, clock, pull. */
#include "sched/sched.h"

#include <math.h>
#include <string.h>

#include "comm/comm.h"
#include "table/table.h"

/* --- the log ------------------------------------------------------------------------------------------------------ */

/* The keys of one variable, in s->touched; its id, written, if the program tells none. */
static plait_status touches_of(plait_schedule *s, int64_t variable, int64_t *n_out) {
    const plait_touch own = { .writes = 1, .key = (uint64_t)variable };
    int64_t           n = 1;
    for (int tries = 0; tries < 2; tries++) {
        if (s->opts.touches != NULL) n = s->opts.touches(s->opts.user, variable, s->touched_capacity, s->touched);
        if (n >= 0 && n <= s->touched_capacity) break;
        if (n < 0 || n > INT64_C(1) << 32 || tries > 0)
            return pli_fail(s->err, PLAIT_EINVAL, "%s: variable %lld touches %lld keys", s->name, (long long)variable,
                            (long long)n);
        if (!pli_grow((void **)&s->touched, &s->touched_capacity, n, sizeof *s->touched))
            return pli_fail(s->err, PLAIT_ENOMEM, "%s: no memory for %lld keys", s->name, (long long)n);
    }
    if (s->opts.touches == NULL) s->touched[0] = own;
    *n_out = n;
    return PLAIT_OK;
}

/* Adds the keys of a variable to s->touch. */
static plait_status add_touches(plait_schedule *s, int64_t variable, int64_t *at) {
    int64_t n = 0;
    PLI_TRY(touches_of(s, variable, &n));
    if (!pli_grow((void **)&s->touch, &s->touch_capacity, *at + n + 1, sizeof *s->touch))
        return pli_fail(s->err, PLAIT_ENOMEM, "%s: no memory for keys", s->name);
    if (n == 0) s->touch[(*at)++] = (pli_event_touch){ .variable = variable, .space = -1 };
    for (int64_t i = 0; i < n; i++) {
        const plait_touch *t = &s->touched[i];
        if (t->space < 0 || t->space > 255)
            return pli_fail(s->err, PLAIT_EINVAL, "%s: variable %lld touches a key of space %d, expected 0 to 255",
                            s->name, (long long)variable, (int)t->space);
        s->touch[(*at)++] = (pli_event_touch){ .variable = variable, .space = t->space, .writes = t->writes != 0,
                                               .key = t->key };
    }
    return PLAIT_OK;
}

/* The turn of the own variables from `first` on. */
static plait_status tell_log(plait_schedule *s, int64_t first, bool stands_in) {
    const pli_event_sink *sink = pli_comm_events(s->job->comm);
    int64_t               n = 0;
    if (sink == NULL) return PLAIT_OK;
    for (int64_t i = first; i < s->n_own; i++) PLI_TRY(add_touches(s, s->own[i], &n));
    /* A step ends a clock, so the clock is its number among the steps of all of the job's schedules. */
    const int64_t clock = plait_job_clock_now(s->job);
    const uint64_t flags = (s->opts.each != 0 ? 1u : 0u) | (stands_in ? 2u : 0u);
    pli_event_raise(sink, &(pli_event){ .kind = PLI_EVENT_TURN, .rank = s->rank, .table = -1, .row = flags,
                                        .rows = s->plan.n, .clock = clock, .seq = (uint64_t)clock, .n = n,
                                        .info.touch = s->touch });
    return PLAIT_OK;
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

/* Is the variable this worker's in the step? With two replicas a dead home's variables are those of living workers;
 * inherited: it has become the worker's in the clock that is ending. */
static bool is_own(const plait_schedule *s, int32_t home, int64_t variable, bool inherited) {
    /* Variables of one home may interfere, so they stay together; without a conflict function none do. */
    const uint64_t item = s->opts.conflict != NULL ? 0 : (uint64_t)variable;
    if (s->opts.each) return !inherited;
    if (!s->copied) return home == s->rank || home < 0;
    return inherited ? plait_job_inherits(s->job, home, item) != 0 : plait_job_holder(s->job, home, item) == s->rank;
}

/* Adds own variables of the plan to those that are there. */
static void list_own(plait_schedule *s, bool inherited) {
    for (int64_t i = 0; i < s->plan.n; i++) {
        if (!is_own(s, s->plan.owner[i], s->plan.variable[i], inherited)) continue;
        s->own_at[s->n_own] = i;
        s->own[s->n_own++] = s->plan.variable[i];
    }
}

static plait_status pull(plait_schedule *s) {
    const plait_turn turn = { .step = s->step, .n = s->n_own, .variable = s->own };
    if (s->opts.pull == NULL) return PLAIT_OK;
    memset(s->change, 0, (size_t)s->n_own * sizeof *s->change);
    PLI_TRY(s->opts.pull(s->opts.user, &turn, s->change));
    for (int64_t i = 0; i < s->n_own; i++)
        if (!(s->change[i] >= 0) || !isfinite(s->change[i]))
            return pli_fail(s->err, PLAIT_EINVAL, "%s: pull says that variable %lld has changed by %g", s->name,
                            (long long)s->own[i], s->change[i]);
    pli_changes_take(s);
    return PLAIT_OK;
}

/* The plan of this step becomes that of the last. */
static void turn_page(plait_schedule *s) {
    const pli_plan oldest = s->before;
    s->before = s->was;
    s->was = s->plan;
    s->plan = oldest;
    s->plan.n = 0;
    s->step++;
}

/* The log shows it as an empty turn with both flags. */
void pli_schedule_tell_missed(plait_comm *comm, int64_t clock) {
    const pli_event_sink *sink = pli_comm_events(comm);
    pli_event_touch       none;
    if (sink != NULL)
        pli_event_raise(sink, &(pli_event){ .kind = PLI_EVENT_TURN, .rank = plait_comm_rank(comm), .table = -1,
                                            .row = 3, .clock = clock, .seq = (uint64_t)clock, .info.touch = &none });
}

void pli_schedule_skip_to(plait_schedule *s, int64_t step) {
    const int64_t clock = plait_job_clock_now(s->job);
    s->plan.n = s->was.n = s->before.n = 0;
    for (; s->step < step; s->step++) pli_schedule_tell_missed(s->job->comm, clock - (step - s->step));
}

/* Makes the plan, the same on all workers. */
static plait_status make_plan(plait_schedule *s) {
    PLI_TRY(pli_changes_hear(s));
    PLI_TRY(pli_paces_hear(s));
    PLI_TRY(pli_choose(s));
    s->hash = pli_hash_bytes(s->plan.variable, (size_t)s->plan.n * sizeof *s->plan.variable, s->hash + 1);
    s->updates += s->plan.n;
    s->n_own = 0;
    return PLAIT_OK;
}

/* Pushes for the own variables from `first` on. home: of whose data, with `each`. */
static plait_status push(plait_schedule *s, int64_t first, bool stands_in, int32_t home) {
    const plait_turn turn = { .step = s->step, .n = s->n_own - first, .variable = s->own + first,
                              .stands_in = stands_in, .home = home };
    if (!s->opts.each || !stands_in) PLI_TRY(tell_log(s, first, stands_in)); /* the same keys once more are no news */
    if (!stands_in) {
        PLI_TRY(pli_changes_tell(s));
        PLI_TRY(pli_paces_tell(s));
    }
    pli_paces_begin(s);
    PLI_TRY(s->opts.push(s->opts.user, &turn));
    pli_paces_end(s, turn.n);
    return PLAIT_OK;
}

/* The worker's part of the turns of those that have died in the clock. */
plait_status pli_schedule_stand_in(plait_schedule *s) {
    const int64_t first = s->n_own;
    for (int32_t w = 0; s->opts.each && w < s->workers; w++)
        if (plait_job_inherits(s->job, w, 0) != 0) PLI_TRY(push(s, 0, true, w));
    list_own(s, true);
    return s->n_own > first ? push(s, first, true, s->rank) : PLAIT_OK;
}

static plait_status end_clock(plait_schedule *s) {
    plait_status status;
    while ((status = plait_job_clock(s->job)) == PLAIT_STAND_IN) PLI_TRY(pli_schedule_stand_in(s));
    return status;
}

plait_status pli_schedule_begin_step(plait_schedule *s) {
    PLI_TRY(pli_schedule_check_tables(s));
    PLI_TRY(make_plan(s));
    list_own(s, false);
    return push(s, 0, false, s->rank);
}

plait_status pli_schedule_end_step(plait_schedule *s) {
    PLI_TRY(pull(s));
    turn_page(s);
    return PLAIT_OK;
}

plait_status plait_schedule_step(plait_schedule *schedule) {
    if (schedule == NULL) return PLAIT_EINVAL;
    PLI_TRY(pli_schedule_begin_step(schedule));
    PLI_TRY(end_clock(schedule));
    return pli_schedule_end_step(schedule);
}
