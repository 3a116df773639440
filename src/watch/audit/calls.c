/* Server functions that update tables (plait_table_call): all workers make a call together, and number their calls.
 *
 *     a shard       runs each call once, in the order of their numbers, behind all updates of earlier clocks and before
 *                   any of its own: a version of its own, which two replicas have as the same one
 *     a worker      makes the call that all others make, and is answered what the shards have come to
 *     a get         is of no version from before the worker's last call, and of none from behind its next
 *     a mirror      has applied the sums of all earlier clocks, and comes to what all others come to
 *
 * What a function has answered, and what it has left in the rows, is known by digests: a replica that has run it over
 * other values shows.
 *
 * Paper: Schneider, "Implementing fault-tolerant services using the state machine approach", Computing Surveys
 * 1990. */
#include <stdlib.h>
#include <string.h>

#include "watch/audit/reads.h"

/* --- first pass --------------------------------------------------------------------------------------------------- */

static pli_audit_violation violation_of(int32_t worker, const audit_call *call) {
    return (pli_audit_violation){ .rule = "calls", .rank = worker, .clock = call->clock, .time_ns = call->time_ns };
}

/* A mirror runs the function itself, and must have the sums of all earlier clocks then. */
static void check_mirror(pli_audit *audit, audit_table *table, int32_t worker, const audit_call *call) {
    const audit_mirror *mirror = &table->mirror[worker];
    const int64_t       summed = mirror->n == 0 ? audit->first_clock : mirror->sum[mirror->n - 1].clock + 1;
    if (summed == call->clock || table->promise.rounds > 1) return;
    const pli_audit_violation v = violation_of(worker, call);
    audit_violation(audit, table, &v,
                    "rank %d ran call %llu (%s) on its mirror of table %s in clock %lld, at %.6f s, when it had "
                    "applied the sums of %lld clocks",
                    audit_rank(audit, worker), (unsigned long long)call->number, call->function, table->name,
                    (long long)call->clock, audit_seconds(audit, call->time_ns), (long long)summed);
}

static plait_status add_to_table(audit_table *table, int32_t worker, uint64_t number, plait_error *err) {
    audit_pusher *pusher = &table->pusher[worker];
    if (!pli_grow((void **)&pusher->call, &pusher->calls_capacity, pusher->calls + 1, sizeof *pusher->call))
        return audit_no_memory(err);
    pusher->call[pusher->calls++] = number;
    return PLAIT_OK;
}

plait_status audit_add_call(pli_audit *audit, const pli_event *event, plait_error *err) {
    audit_worker         *worker = &audit->worker[event->rank];
    const pli_event_call *of = event->info.call;
    if (!pli_grow((void **)&worker->call, &worker->calls_capacity, worker->calls + 1, sizeof *worker->call) ||
        !pli_grow((void **)&worker->ran, &worker->ran_capacity, worker->n_ran + event->n, sizeof *worker->ran) ||
        !pli_grow((void **)&worker->called, &worker->called_capacity, worker->n_called + of->tables,
                  sizeof *worker->called))
        return audit_no_memory(err);
    audit_call *call = &worker->call[worker->calls++];
    *call = (audit_call){ .number = event->seq, .time_ns = event->time_ns, .clock = event->clock, .asked = of->asked,
                          .left = worker->left, .first_ran = worker->n_ran, .n_ran = event->n,
                          .first_table = worker->n_called, .tables = of->tables };
    snprintf(call->function, sizeof call->function, "%s", of->function);
    for (int64_t i = 0; i < event->n; i++) worker->ran[worker->n_ran++] = of->ran[i];
    for (int32_t t = 0; t < of->tables; t++) {
        audit_table *table = &audit->table[worker->called[worker->n_called++] = of->table[t]];
        PLI_TRY(add_to_table(table, event->rank, event->seq, err));
        if (table->way == PLI_WAY_SUMMED && event->n > 0) check_mirror(audit, table, event->rank, call);
    }
    return PLAIT_OK;
}

/* --- second pass -------------------------------------------------------------------------------------------------- */

/* What an application of that call is told from: see audit_apply. */
static int64_t part_of(const audit_ran *ran) {
    const uint64_t what[] = { ran->number, ran->asked, ran->answer, ran->wrote };
    return AUDIT_CALLED - (int64_t)(pli_hash_bytes(what, sizeof what, 0) >> 2);
}

static plait_status add_ran(audit_holder *shard, const pli_event *event, plait_error *err) {
    const pli_event_call *call = event->info.call;
    if (!pli_grow((void **)&shard->apply, &shard->capacity, shard->n + 1, sizeof *shard->apply) ||
        !pli_grow((void **)&shard->call, &shard->calls_capacity, shard->calls + 1, sizeof *shard->call))
        return audit_no_memory(err);
    audit_ran *ran = &shard->call[shard->calls++];
    *ran = (audit_ran){ .number = event->seq, .at = shard->n + 1, .clock = event->clock, .time_ns = event->time_ns,
                        .asked = call->asked, .answer = call->ran[0].answer, .wrote = call->ran[0].wrote };
    shard->apply[shard->n++] = (audit_apply){ .worker = -1, .part = part_of(ran), .time_ns = event->time_ns };
    shard->of->used = true;
    return PLAIT_OK;
}

plait_status audit_run_call(pli_audit *audit, const pli_event *event, plait_error *err) {
    const pli_event_call *call = event->info.call;
    for (int32_t t = 0; t < call->tables; t++) {
        audit_holder *shard = audit_holder_of(audit, &audit->table[call->table[t]], call->ran[0].shard, event->place);
        PLI_TRY(add_ran(shard, event, err));
    }
    return PLAIT_OK;
}

bool audit_inherit_calls(const audit_holder *from, audit_holder *to) {
    if (!pli_grow((void **)&to->call, &to->calls_capacity, from->calls, sizeof *to->call)) return false;
    if (from->calls > 0) memcpy(to->call, from->call, (size_t)from->calls * sizeof *to->call);
    to->calls = from->calls;
    return true;
}

const audit_ran *audit_ran_as(const audit_holder *shard, int64_t version) {
    for (int64_t i = 0; i < shard->calls; i++)
        if (shard->call[i].at == version) return &shard->call[i];
    return NULL;
}

/* --- what all workers have called --------------------------------------------------------------------------------- */

/* A call, as the first worker has it that was answered, or else the first of all. */
typedef struct made {
    uint64_t number;
    int32_t  worker;
    int64_t  index; /* of its calls */
} made;

typedef struct all_calls {
    made   *made; /* [n] by number */
    int64_t n;
} all_calls;

static const audit_call *call_of(const pli_audit *audit, const made *of) {
    return &audit->worker[of->worker].call[of->index];
}

static int by_number(const void *a, const void *b) {
    const made *x = a, *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    if (x->worker != y->worker) return x->worker < y->worker ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static plait_status gather(const pli_audit *audit, all_calls *all, plait_error *err) {
    int64_t most = 0;
    for (int32_t w = 0; w < audit->job.workers; w++) most += audit->worker[w].calls;
    all->made = pli_array((size_t)most, sizeof *all->made);
    if (all->made == NULL) return audit_no_memory(err);
    for (int32_t w = 0; w < audit->job.workers; w++)
        for (int64_t i = 0; i < audit->worker[w].calls; i++)
            all->made[all->n++] = (made){ .number = audit->worker[w].call[i].number, .worker = w, .index = i };
    qsort(all->made, (size_t)all->n, sizeof *all->made, by_number);
    int64_t n = 0;
    for (int64_t i = 0; i < all->n; i++) {
        made *last = n == 0 ? NULL : &all->made[n - 1];
        if (last == NULL || last->number != all->made[i].number) all->made[n++] = all->made[i];
        else if (call_of(audit, last)->n_ran == 0 && call_of(audit, &all->made[i])->n_ran > 0) *last = all->made[i];
    }
    all->n = n;
    return PLAIT_OK;
}

static int is_of_number(const void *number, const void *item) {
    const uint64_t x = *(const uint64_t *)number, y = ((const made *)item)->number;
    return x < y ? -1 : x > y;
}

static const made *find_made(const all_calls *all, uint64_t number) {
    return all->n == 0 ? NULL : bsearch(&number, all->made, (size_t)all->n, sizeof *all->made, is_of_number);
}

static bool same_tables(const pli_audit *audit, const made *of, int32_t worker, const audit_call *call) {
    const audit_call *other = call_of(audit, of);
    return other->tables == call->tables &&
           memcmp(audit->worker[of->worker].called + other->first_table,
                  audit->worker[worker].called + call->first_table, (size_t)call->tables * sizeof(int32_t)) == 0;
}

/* Mirrors have run the call themselves. */
static bool same_mirrors(const pli_audit *audit, const made *of, int32_t worker, const audit_call *call) {
    const audit_call    *other = call_of(audit, of);
    const pli_event_ran *theirs = &audit->worker[of->worker].ran[other->first_ran];
    const pli_event_ran *mine = &audit->worker[worker].ran[call->first_ran];
    return mine->shard >= 0 ||
           (theirs->shard < 0 && mine->answer == theirs->answer && mine->wrote == theirs->wrote);
}

/* Has the worker made the call as another has? */
static void check_alike(pli_audit *audit, const made *of, int32_t worker, const audit_call *call) {
    const audit_call *other = call_of(audit, of);
    const char       *what = NULL;
    if (call->n_ran == 0 || other->n_ran == 0) return; /* it failed */
    if (call->asked != other->asked || !same_tables(audit, of, worker, call)) what = "called something else";
    else if (call->clock != other->clock && !call->left && !other->left) what = "called it in another clock";
    else if (!same_mirrors(audit, of, worker, call)) what = "came to another result on its mirrors";
    if (what == NULL) return;
    const pli_audit_violation v = violation_of(worker, call);
    audit_violation(audit, NULL, &v,
                    "rank %d made call %llu (%s) in clock %lld, at %.6f s, and rank %d %s (%s, clock %lld)",
                    audit_rank(audit, worker), (unsigned long long)call->number, call->function, (long long)call->clock,
                    audit_seconds(audit, call->time_ns), audit_rank(audit, of->worker), what, other->function,
                    (long long)other->clock);
}

/* Each worker makes its calls one after the other, as all others make them. Who came late, or was away, lacks some. */
static void check_worker(pli_audit *audit, const all_calls *all, int32_t w) {
    const audit_worker *worker = &audit->worker[w];
    const uint64_t      last = worker->calls == 0 ? 0 : worker->call[worker->calls - 1].number;
    for (int64_t i = 0; i < worker->calls; i++) {
        const audit_call *call = &worker->call[i];
        if (i > 0 && call->number <= call[-1].number) {
            const pli_audit_violation v = violation_of(w, call);
            audit_violation(audit, NULL, &v, "rank %d made call %llu (%s), at %.6f s, behind call %llu",
                            audit_rank(audit, w), (unsigned long long)call->number, call->function,
                            audit_seconds(audit, call->time_ns), (unsigned long long)call[-1].number);
        }
        check_alike(audit, find_made(all, call->number), w, call);
    }
    if (!worker->done || worker->left || worker->dead || all->n == 0 || all->made[all->n - 1].number <= last) return;
    const made *of = all->made;
    while (of->number <= last) of++;
    if (call_of(audit, of)->n_ran == 0) return;
    const pli_audit_violation v = violation_of(of->worker, call_of(audit, of));
    audit_violation(audit, NULL, &v, "rank %d made call %llu (%s) in clock %lld, at %.6f s, which rank %d never made",
                    audit_rank(audit, of->worker), (unsigned long long)of->number, call_of(audit, of)->function,
                    (long long)v.clock, audit_seconds(audit, v.time_ns), audit_rank(audit, w));
}

/* --- what shards have run ----------------------------------------------------------------------------------------- */

/* "call 3, which shard 0 of table w, at rank 4 (place 1), ran at 0.1 s as its update 7," */
static void name_ran(const pli_audit *audit, const audit_table *table, const audit_holder *shard, const audit_ran *ran,
                     char text[256]) {
    char replica[48];
    snprintf(text, 256, "call %llu, which shard %d of table %s, at %s, ran at %.6f s as its update %lld",
             (unsigned long long)ran->number, shard->shard, table->name,
             audit_name_replica(audit, shard->of, replica), audit_seconds(audit, ran->time_ns), (long long)ran->at);
}

static void wrong_ran(pli_audit *audit, audit_table *table, const audit_holder *shard, const audit_ran *ran,
                      const char *what) {
    char                      name[256];
    const pli_audit_violation v = { .rule = "calls", .rank = shard->of->rank, .clock = ran->clock,
                                    .time_ns = ran->time_ns };
    name_ran(audit, table, shard, ran, name);
    audit_violation(audit, table, &v, "%s, %s", name, what);
}

static bool some_ended(const pli_audit *audit) {
    for (int32_t w = 0; w < audit->job.workers; w++)
        if (audit->worker[w].done) return true;
    return false;
}

/* A call is of the workers' clock: behind all updates of earlier ones, before those of its own. */
static void check_place(pli_audit *audit, audit_table *table, const audit_holder *shard, const audit_ran *ran,
                        int64_t clock) {
    const audit_state *before = &shard->state[ran->at - 1];
    if (!shard->counts || !table->whole) return;
    if (audit_clock_of(audit, before->missing) < clock)
        wrong_ran(audit, table, shard, ran, "lay before an update of an earlier clock than its own");
    if (before->newest >= 0 && audit_clock_of(audit, before->newest) >= clock)
        wrong_ran(audit, table, shard, ran, "lay behind an update of its own clock, or of a later one");
}

static void check_ran(pli_audit *audit, audit_table *table, const all_calls *all, const audit_holder *shard,
                      const audit_ran *ran) {
    const made *of = find_made(all, ran->number);
    if (of == NULL) {
        if (some_ended(audit)) wrong_ran(audit, table, shard, ran, "was made by no worker that lives");
        return;
    }
    const audit_call *call = call_of(audit, of);
    if (call->n_ran == 0) return; /* it failed */
    if (ran->asked != call->asked)
        wrong_ran(audit, table, shard, ran, "is not what the workers called under that number");
    if (call->left) return;
    if (ran->clock != call->clock) wrong_ran(audit, table, shard, ran, "was made in another clock");
    check_place(audit, table, shard, ran, call->clock);
}

static void check_shard(pli_audit *audit, audit_table *table, const all_calls *all, const audit_holder *shard) {
    for (int64_t i = 0; i < shard->calls; i++) {
        const audit_ran *ran = &shard->call[i];
        if (i > 0 && ran->number <= ran[-1].number)
            wrong_ran(audit, table, shard, ran,
                      ran->number == ran[-1].number ? "was run twice" : "was run behind a later call");
        check_ran(audit, table, all, shard, ran);
    }
}

static int ran_has_number(const void *number, const void *item) {
    const uint64_t x = *(const uint64_t *)number, y = ((const audit_ran *)item)->number;
    return x < y ? -1 : x > y;
}

/* They lie in order, or are refuted; then it may be anywhere. */
static const audit_ran *find_ran(const audit_holder *shard, uint64_t number) {
    if (shard->calls == 0) return NULL;
    const audit_ran *ran = bsearch(&number, shard->call, (size_t)shard->calls, sizeof *shard->call, ran_has_number);
    if (ran != NULL) return ran;
    for (int64_t i = 0; i < shard->calls; i++)
        if (shard->call[i].number == number) return &shard->call[i];
    return NULL;
}

/* Has no rank died, and no replica been made anew? Then both replicas hold all that was answered. */
static bool as_at_first(const pli_audit *audit) {
    bool first = true;
    for (int32_t h = 0; h < audit->job.servers; h++)
        for (int64_t i = 0; i < audit->home[h].n; i++)
            first = first && !audit->home[h].replica[i].served && audit->home[h].replica[i].copied == 0;
    for (int32_t w = 0; w < audit->job.workers; w++) first = first && !audit->worker[w].dead;
    return first;
}

/* Was the worker answered so by the shard? It lists the shards in order. */
static bool was_answered(const pli_audit *audit, int32_t worker, const audit_call *call, int32_t shard,
                         uint32_t answer) {
    const pli_event_ran *ran = audit->worker[worker].ran + call->first_ran;
    return shard < call->n_ran && ran[shard].shard == shard && ran[shard].answer == answer;
}

/* What a worker was answered has run at each shard of each table, and came to that. */
static void check_has_run(pli_audit *audit, audit_table *table, const audit_holder *shard, int32_t worker,
                          const audit_call *call, bool answers) {
    const audit_ran *ran = find_ran(shard, call->number);
    char             replica[48] = "any rank";
    if (ran != NULL && (!answers || was_answered(audit, worker, call, shard->shard, ran->answer))) return;
    const pli_audit_violation v = violation_of(worker, call);
    if (shard->of != NULL) (void)audit_name_replica(audit, shard->of, replica);
    audit_violation(audit, table, &v,
                    "rank %d made call %llu (%s) in clock %lld, and was answered at %.6f s; shard %d of table %s, at "
                    "%s, %s",
                    audit_rank(audit, worker), (unsigned long long)call->number, call->function, (long long)call->clock,
                    audit_seconds(audit, call->time_ns), shard->shard, table->name, replica,
                    ran == NULL ? "never ran it" : "came to another answer");
}

static void check_answers(pli_audit *audit, int32_t worker, const audit_call *call, bool first) {
    for (int64_t t = 0; t < call->tables; t++) {
        audit_table *table = &audit->table[audit->worker[worker].called[call->first_table + t]];
        for (int32_t s = 0; s < table->shards; s++)
            for (int32_t i = 0; i < table->shard[s].replicas; i++) {
                const audit_holder *shard = &table->shard[s].replica[i];
                const bool          must = first && (shard->of == NULL || !shard->of->cut);
                if (shard->counts || must) check_has_run(audit, table, shard, worker, call, t == 0);
            }
    }
}

static void count_calls(pli_audit *audit, const all_calls *all) {
    for (int64_t i = 0; i < all->n; i++) {
        const audit_call *call = call_of(audit, &all->made[i]);
        for (int64_t t = 0; call->n_ran > 0 && t < call->tables; t++)
            audit->table[audit->worker[all->made[i].worker].called[call->first_table + t]].figures.calls++;
    }
}

static void check_all(pli_audit *audit, const all_calls *all) {
    const bool first = as_at_first(audit);
    count_calls(audit, all);
    for (int32_t w = 0; w < audit->job.workers; w++) {
        check_worker(audit, all, w);
        for (int64_t i = 0; i < audit->worker[w].calls; i++)
            if (audit->worker[w].call[i].n_ran > 0 && !audit->worker[w].dead)
                check_answers(audit, w, &audit->worker[w].call[i], first);
    }
    for (int64_t t = 0; t < audit->tables; t++)
        for (int32_t s = 0; audit->table[t].known && s < audit->table[t].shards; s++)
            for (int32_t i = 0; i < audit->table[t].shard[s].replicas; i++)
                check_shard(audit, &audit->table[t], all, &audit->table[t].shard[s].replica[i]);
}

plait_status audit_check_calls(pli_audit *audit, plait_error *err) {
    all_calls all = { 0 };
    PLI_TRY(gather(audit, &all, err));
    check_all(audit, &all);
    pli_free(all.made);
    return PLAIT_OK;
}

/* --- gets --------------------------------------------------------------------------------------------------------- */

void audit_check_called(pli_audit *audit, const reader *r, const view *v) {
    const audit_pusher *pusher = &v->table->pusher[r->rank];
    const int64_t       k = v->reads->calls;
    if (v->piece->shard < 0 || v->shard->of == NULL) return;
    const audit_ran *last = k > 0 ? find_ran(v->shard, pusher->call[k - 1]) : NULL;
    const audit_ran *next = k < pusher->calls ? find_ran(v->shard, pusher->call[k]) : NULL;
    if (last != NULL && v->version < last->at)
        audit_wrong(audit, r, v, "calls", "which is from before the worker's call %llu: that is version %lld",
                    (unsigned long long)last->number, (long long)last->at);
    if (next != NULL && v->version >= next->at)
        audit_wrong(audit, r, v, "calls", "in which call %llu has run as version %lld, before the worker made it",
                    (unsigned long long)next->number, (long long)next->at);
}
