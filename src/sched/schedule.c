/* The schedule as an object: its options, memory and table. See sched.h. */
#include "sched/sched.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table/table.h"

enum { CACHE = 1 << 16 };

void (plait_schedule_opts_init)(plait_schedule_opts *opts) {
    if (opts == NULL) return;
    *opts = (plait_schedule_opts){ .size = sizeof *opts, .floor = 1e-6, .cache = CACHE };
}

void plait_schedule_opts_init_sized(plait_schedule_opts *opts, size_t size) {
    plait_schedule_opts all;
    (plait_schedule_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

/* --- may it be? --------------------------------------------------------------------------------------------------- */

static plait_status check_numbers(const plait_schedule *s) {
    const plait_schedule_opts *o = &s->opts;
    if (o->variables < 1 || o->variables > INT64_C(1) << 40)
        return pli_fail(s->err, PLAIT_EINVAL, "%s: variables is %lld: expected 1 to 2^40", s->name,
                        (long long)o->variables);
    const bool counts = o->take >= 0 && o->candidates >= 0 && o->cache >= 0;
    if (!counts || !(o->allowed >= 0) || !(o->floor > 0) || !isfinite(o->floor))
        return pli_fail(s->err, PLAIT_EINVAL, "%s: take %lld, candidates %lld, cache %lld and allowed %g must be 0 or "
                                              "more, floor %g above 0", s->name, (long long)o->take,
                        (long long)o->candidates, (long long)o->cache, o->allowed, o->floor);
    if (o->leases && (o->each || (s->order == PLI_ROTATE && o->schedule == NULL)))
        return pli_fail(s->err, PLAIT_EREFUSED, "%s: leases with %s are refused: %s", s->name,
                        o->each ? "`each`" : "order rotate",
                        o->each ? "all workers push for each variable; cut their data by speed instead"
                                : "each worker meets every block; cut what stays with a worker by speed instead, as "
                                  "model mf does with its users");
    if (s->order != PLI_ROTATE || o->schedule != NULL) return PLAIT_OK;
    if (o->each)
        return pli_fail(s->err, PLAIT_EINVAL, "%s: rotate gives each block to one worker, so `each` does not go with "
                                              "it",
                        s->name);
    if (o->variables >= s->homes) return PLAIT_OK;
    return pli_fail(s->err, PLAIT_EINVAL, "%s: %lld blocks cannot rotate over %d workers: make at least one for each",
                    s->name, (long long)o->variables, (int)s->homes);
}

static plait_status check_job(const plait_schedule *s) {
    const plait_job *job = s->job;
    const pli_scope  scope = pli_layout_scope(&job->layout);
    if (job->layout.backup > 0)
        return pli_fail(s->err, PLAIT_EREFUSED, "%s: a schedule is refused with backup workers, since a step may then "
                                                "lack the part of a worker; nearest is two replicas", s->name);
    const plait_properties has = pli_pair_properties(pli_topology_find(job->topology), job->consistency, &scope);
    const bool shared = s->opts.each || s->opts.leases || s->order == PLI_PRIORITY || s->copied;
    if (!shared || (has & PLAIT_WHOLE_CLOCKS) != 0) return PLAIT_OK;
    return pli_fail(s->err, PLAIT_EREFUSED, "%s: %s needs the same values on all workers in a clock, which %s over %s "
                                            "does not promise; nearest is bsp", s->name,
                    s->opts.each     ? "`each`"
                    : s->opts.leases ? "a lease by speed"
                    : s->copied      ? "a schedule with two replicas"
                                     : "order priority",
                    job->consistency,
                    job->topology);
}

/* A schedule relies on what its job promises, and cannot know which tables its program reads: so none of the job's may
 * promise less. Called again when tables have come. */
plait_status pli_schedule_check_tables(plait_schedule *s) {
    const plait_job       *job = s->job;
    const pli_scope        scope = pli_layout_scope(&job->layout);
    const plait_properties has = pli_pair_properties(pli_topology_find(job->topology), job->consistency, &scope);
    const int64_t          most = pli_pair_staleness(has, job->consistency);
    for (; s->checked < job->tables; s->checked++) {
        const plait_table *t = job->table[s->checked];
        if (t == NULL || most < 0) continue;
        const int64_t apart = pli_pair_staleness(t->has, t->spec.consistency);
        if (apart >= 0 && apart <= most) continue;
        return pli_fail(s->err, PLAIT_EREFUSED,
                        "%s: a schedule over table %s is refused: its reads may miss more under %s than the job's %s "
                        "promises, so steps that the schedule takes one after another could interfere; nearest is "
                        "consistency %s for the table", s->name, t->spec.name, t->spec.consistency, job->consistency,
                        job->consistency);
    }
    return PLAIT_OK;
}

/* Are the options the same on all workers? Functions are not compared. */
static plait_status agree(const plait_schedule *s) {
    const plait_schedule_opts *o = &s->opts;
    const double numbers[] = { (double)o->variables, (double)s->order, (double)s->take, (double)s->room,
                               (double)o->each, (double)o->seed, o->floor, o->allowed, (double)o->cache,
                               o->conflict != NULL, o->schedule != NULL, o->pull != NULL, (double)o->leases };
    int64_t hash[2];
    hash[0] = (int64_t)(pli_hash_bytes(numbers, sizeof numbers, o->seed) >> 1);
    hash[1] = -hash[0];
    PLI_TRY(plait_comm_allreduce(s->job->comm, hash, 2, PLAIT_I64, PLAIT_MAX));
    if (hash[0] == -hash[1]) return PLAIT_OK;
    return pli_fail(s->err, PLAIT_EMISMATCH, "%s: the workers' options of the schedule differ", s->name);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static bool make_memory(plait_schedule *s) {
    const size_t room = (size_t)(s->room > s->workers ? s->room : s->workers), v = (size_t)s->opts.variables;
    s->stamp = pli_calloc(v, sizeof *s->stamp);
    s->waiting = pli_array(room, sizeof *s->waiting);
    s->candidate = pli_array(room, sizeof *s->candidate);
    s->held = pli_array(room, sizeof *s->held);
    s->sum = pli_array(room, sizeof *s->sum);
    s->count = pli_calloc((size_t)s->workers, sizeof *s->count);
    s->own = pli_array(room, sizeof *s->own);
    s->own_at = pli_array(room, sizeof *s->own_at);
    s->change = pli_array(room, sizeof *s->change);
    s->told = pli_array(room, sizeof *s->told);
    s->told_at = pli_array(room, sizeof *s->told_at);
    s->told_change = pli_array(room, sizeof *s->told_change);
    s->key = pli_array(room, sizeof *s->key);
    s->value = pli_array(2 * room, sizeof *s->value);
    return s->stamp != NULL && s->waiting != NULL && s->candidate != NULL && s->held != NULL && s->sum != NULL &&
           s->count != NULL && s->own != NULL && s->own_at != NULL && s->change != NULL && s->told != NULL &&
           s->told_at != NULL && s->told_change != NULL &&
           s->key != NULL && s->value != NULL && pli_pairs_init(&s->pairs, s->opts.cache);
}

/* The changes of owned variables, which other workers must hear of. Before its first change a variable counts as 1. */
static plait_status make_table(plait_schedule *s) {
    plait_table_opts t;
    char             name[64];
    if (s->order != PLI_PRIORITY) return PLAIT_OK;
    if (!pli_fenwick_init(&s->weights, s->opts.variables, s->opts.floor + 1))
        return pli_fail(s->err, PLAIT_ENOMEM, "%s: no memory for weights", s->name);
    if (s->opts.each || s->opts.pull == NULL || s->copied) return PLAIT_OK;
    s->known = pli_array((size_t)s->opts.variables, sizeof *s->known);
    if (s->known == NULL) return pli_fail(s->err, PLAIT_ENOMEM, "%s: no memory for changes", s->name);
    for (int64_t i = 0; i < s->opts.variables; i++) s->known[i] = 1;
    plait_table_opts_init(&t);
    snprintf(name, sizeof name, "%s.change", s->name);
    t.name = name;
    t.type = PLAIT_F64;
    t.rows = s->opts.variables;
    t.keyed = 1;
    t.filter = "";
    t.initial = s->known;
    return plait_table_create(s->job, &t, &s->table);
}

static plait_status make(plait_schedule *s, const char *order) {
    const plait_schedule_opts *o = &s->opts;
    PLI_TRY(pli_order_find(order, &s->order, s->err));
    PLI_TRY(check_numbers(s));
    PLI_TRY(check_job(s));
    PLI_TRY(pli_schedule_check_tables(s));
    if (o->push == NULL) return pli_fail_null(s->err, "plait_schedule_create", "opts->push");
    s->take = o->take > 0 ? o->take : s->homes;
    if (s->order == PLI_ROTATE && o->schedule == NULL) s->take = s->homes;
    if (s->take > o->variables) s->take = o->variables;
    s->room = o->candidates > s->take ? o->candidates : s->take;
    if (o->candidates == 0 && o->conflict != NULL) s->room = s->take > INT64_MAX / 4 ? s->take : 4 * s->take;
    PLI_TRY(agree(s));
    if (!make_memory(s))
        return pli_fail(s->err, PLAIT_ENOMEM, "%s: no memory for %lld variables", s->name, (long long)o->variables);
    PLI_TRY(pli_paces_make(s));
    return make_table(s);
}

plait_status plait_schedule_create(plait_job *job, const plait_schedule_opts *opts, plait_schedule **schedule_out) {
    if (job == NULL) return PLAIT_EINVAL;
    plait_error *err = pli_comm_error(job->comm);
    PLI_TRY(PLI_GIVEN(err, opts));
    PLI_TRY(PLI_GIVEN(err, schedule_out));
    plait_schedule *s = pli_calloc(1, sizeof *s);
    if (s == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a schedule");
    plait_schedule_opts_init(&s->opts);
    plait_status status = pli_sized_take(&s->opts, sizeof s->opts, PLI_SIZED_END(plait_schedule_opts, user), opts,
                                         "plait_schedule_opts", err);
    s->job = job;
    s->err = err;
    s->workers = plait_comm_workers(job->comm);
    s->homes = s->workers - job->layout.spares;
    s->copied = job->layout.replicas > 1;
    s->rank = plait_comm_rank(job->comm);
    snprintf(s->name, sizeof s->name, "%s", s->opts.name != NULL ? s->opts.name : "schedule");
    s->opts.name = NULL;
    if (status >= 0) status = make(s, s->opts.order);
    s->opts.order = NULL;
    if (status < 0) plait_schedule_destroy(&s);
    else *schedule_out = s;
    return status;
}

static void free_plan(pli_plan *plan) {
    pli_free(plan->variable);
    pli_free(plan->owner);
}

void plait_schedule_destroy(plait_schedule **schedule) {
    if (schedule == NULL || *schedule == NULL) return;
    plait_schedule *s = *schedule;
    *schedule = NULL;
    void *memory[] = { s->stamp, s->waiting, s->candidate, s->held, s->sum, s->count, s->own, s->own_at, s->change,
                       s->told, s->told_at, s->told_change, s->key, s->value, s->known, s->pace.known, s->touch,
                       s->touched };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) pli_free(memory[i]);
    pli_pairs_destroy(&s->pairs);
    pli_fenwick_destroy(&s->weights);
    free_plan(&s->plan);
    free_plan(&s->was);
    free_plan(&s->before);
    pli_free(s);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

int64_t plait_schedule_steps(const plait_schedule *schedule) { return schedule != NULL ? schedule->step : 0; }
int64_t plait_schedule_updates(const plait_schedule *schedule) { return schedule != NULL ? schedule->updates : 0; }
int64_t plait_schedule_asked(const plait_schedule *schedule) { return schedule != NULL ? schedule->pairs.asked : 0; }

plait_status plait_schedule_set(plait_schedule *schedule, int64_t variable, double change) {
    if (schedule == NULL) return PLAIT_EINVAL;
    if (variable < 0 || variable >= schedule->opts.variables || !(change >= 0) || !isfinite(change))
        return pli_fail(schedule->err, PLAIT_EINVAL, "%s: no change of %g for variable %lld", schedule->name, change,
                        (long long)variable);
    pli_schedule_weigh(schedule, variable, change);
    return PLAIT_OK;
}

void plait_schedule_forget(plait_schedule *schedule) {
    if (schedule != NULL) pli_pairs_forget(&schedule->pairs);
}

plait_status plait_schedule_agree(plait_schedule *schedule) {
    if (schedule == NULL) return PLAIT_EINVAL;
    plait_schedule *s = schedule;
    uint64_t       *all = pli_array((size_t)s->workers, sizeof *all);
    if (all == NULL) return pli_fail(s->err, PLAIT_ENOMEM, "%s: no memory to compare plans", s->name);
    plait_status status = plait_comm_allgather(s->job->comm, &s->hash, sizeof s->hash, all);
    int32_t first = 0;
    while (first + 1 < s->workers && pli_comm_is_absent(s->job->comm, first)) first++;
    for (int32_t w = first + 1; status >= 0 && w < s->workers; w++)
        if (all[w] != all[first] && !pli_comm_is_absent(s->job->comm, w))
            status = pli_fail(s->err, PLAIT_EMISMATCH,
                              "%s: in %lld steps worker %d has made other plans than worker %d: they were told "
                              "different changes, or their functions differ",
                              s->name, (long long)s->step, (int)w, (int)first);
    pli_free(all);
    return status;
}
