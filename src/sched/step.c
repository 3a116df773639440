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

plait_status pli_schedule_log(plait_schedule *s) {
    const pli_event_sink *sink = pli_comm_events(s->job->comm);
    int64_t               n = 0;
    if (sink == NULL) return PLAIT_OK;
    for (int64_t i = 0; i < s->n_own; i++) PLI_TRY(add_touches(s, s->own[i], &n));
    /* A step ends a clock, so the clock is its number among the steps of all of the job's schedules. */
    const int64_t clock = plait_job_clock_now(s->job);
    pli_event_raise(sink, &(pli_event){ .kind = PLI_EVENT_TURN, .rank = s->rank, .table = -1, .row = s->opts.each != 0,
                                        .clock = clock, .seq = (uint64_t)clock, .n = n, .info.touch = s->touch });
    return PLAIT_OK;
}

/* --- changes of owned variables ----------------------------------------------------------------------------------- */

/* Learns what the owners of the step before the last have told. */
static plait_status hear(plait_schedule *s) {
    const int64_t n = s->before.n;
    if (s->table == NULL || n == 0) return PLAIT_OK;
    for (int64_t i = 0; i < n; i++) s->key[i] = (uint64_t)s->before.variable[i];
    PLI_TRY(plait_table_get(s->table, n, s->key, s->value));
    for (int64_t i = 0; i < n; i++) {
        const double change = fmax(s->value[i], 0);
        s->known[s->key[i]] = s->value[i];
        pli_schedule_weigh(s, (int64_t)s->key[i], change);
    }
    return PLAIT_OK;
}

/* Tells the changes of the last step, as differences from what the table holds. */
static plait_status tell(plait_schedule *s) {
    const int64_t n = s->n_told;
    s->n_told = 0;
    if (s->table == NULL || n == 0) return PLAIT_OK;
    for (int64_t i = 0; i < n; i++) {
        s->key[i] = (uint64_t)s->told[i];
        s->value[i] = s->told_change[i] - s->known[s->told[i]];
    }
    return plait_table_inc(s->table, n, s->key, s->value, 0);
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

static void list_own(plait_schedule *s) {
    s->n_own = 0;
    for (int64_t i = 0; i < s->plan.n; i++)
        if (s->plan.owner[i] == s->rank || s->plan.owner[i] < 0) s->own[s->n_own++] = s->plan.variable[i];
    s->hash = pli_hash_bytes(s->plan.variable, (size_t)s->plan.n * sizeof *s->plan.variable, s->hash + 1);
    s->updates += s->plan.n;
}

static plait_status pull(plait_schedule *s, const plait_turn *turn) {
    if (s->opts.pull == NULL) return PLAIT_OK;
    memset(s->change, 0, (size_t)s->n_own * sizeof *s->change);
    PLI_TRY(s->opts.pull(s->opts.user, turn, s->change));
    for (int64_t i = 0; i < s->n_own; i++) {
        if (!(s->change[i] >= 0) || !isfinite(s->change[i]))
            return pli_fail(s->err, PLAIT_EINVAL, "%s: pull says that variable %lld has changed by %g", s->name,
                            (long long)s->own[i], s->change[i]);
        if (s->table == NULL) pli_schedule_weigh(s, s->own[i], s->change[i]);
        else {
            s->told[i] = s->own[i];
            s->told_change[i] = s->change[i];
        }
    }
    if (s->table != NULL) s->n_told = s->n_own;
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

plait_status plait_schedule_step(plait_schedule *schedule) {
    plait_schedule *s = schedule;
    if (s == NULL) return PLAIT_EINVAL;
    PLI_TRY(pli_schedule_check_tables(s));
    PLI_TRY(hear(s));
    PLI_TRY(pli_paces_hear(s));
    PLI_TRY(pli_choose(s));
    list_own(s);
    PLI_TRY(pli_schedule_log(s));
    PLI_TRY(tell(s));
    PLI_TRY(pli_paces_tell(s));
    const plait_turn turn = { .step = s->step, .n = s->n_own, .variable = s->own };
    pli_paces_begin(s);
    PLI_TRY(s->opts.push(s->opts.user, &turn));
    pli_paces_end(s);
    PLI_TRY(plait_job_clock(s->job));
    PLI_TRY(pull(s, &turn));
    turn_page(s);
    return PLAIT_OK;
}
