/* Supersteps in which vertices gather and apply: Jacobi's iteration, of which PageRank is one.
 *
 *     rows whole (one worker has all edges of a row)   read values, tell, gather, apply, inc the change of own values,
 *                                                      clock
 *     rows shared (vertex cuts)                        read, tell, gather, inc the part of the sum, clock; owners read
 *                                                      sums, apply, inc the change of values, and take each sum back,
 *                                                      so that the table is 0 again, clock
 *
 * An owner alone changes its values. Where a read may lack the worker's own updates (async), it keeps what it has made
 * of them, and changes that.
 *
 * Which vertices take part: all, or with scatter those that are signaled (active.c).
 *
 * Where a read may lack what others have pushed, a superstep in which nothing changes may only have seen too little:
 * all meet at a barrier, and the run is still if nothing changes in the superstep behind it, either.
 *
 * A worker may also have parts of dead ones (heirs.h). It reads for all parts before it pushes for any, and what makes
 * a part's pushes is a function of what the part reads.
 *
 * Values change by additions: what a table holds after old + (new - old) may differ from `new` in the last bit, the
 * same on every worker, and the next superstep begins with what it holds. */
#include <math.h>

#include "comm/comm.h"
#include "vertex/active.h"
#include "vertex/heirs.h"
#include "vertex/pagerank.h"
#include "vertex/signals.h"
#include "vertex/vertex.h"

enum { LINE = 8 /* doubles apart, so that threads do not share a cache line */, NARROW = 64 /* bytes */ };

/* What the engine keeps of a part. */
typedef struct applying {
    pli_vertex_run *run;
    pli_active      active;
    char           *sum;    /* [n of part] what arrived               */
    char           *change; /* [owned] new values less old ones       */
    bool            shares; /* change lies in sum: a vertex's change takes the place of its sum, once that is applied */
    char           *kept;   /* [owned] values as their owner knows them; NULL: reads show them */
    double         *most;   /* [threads * LINE] the largest change, and how many have applied */
    pli_scope_room *room;   /* [threads] of update; NULL: none        */
    int32_t         threads;
    double          largest; /* of all threads                    */
    bool            gathers; /* sums are not there yet: rows are whole */
} applying;

static bool make_room(pli_vertex_run *run, applying *a) {
    a->run = run;
    a->threads = pli_pool_threads(run->pool);
    a->sum = pli_array((size_t)run->part.n, run->gather_bytes);
    a->shares = run->part.whole && run->program.scatter == NULL && run->program.update == NULL &&
                run->value_bytes == run->gather_bytes && run->value_bytes <= NARROW;
    a->change = a->shares ? a->sum : pli_array((size_t)run->part.owned, run->value_bytes);
    a->most = pli_calloc((size_t)a->threads * LINE, sizeof *a->most);
    if (!run->owns_are_read) a->kept = pli_array((size_t)run->part.owned, run->value_bytes);
    if (a->sum == NULL || a->change == NULL || a->most == NULL || (!run->owns_are_read && a->kept == NULL))
        return false;
    if (a->shares) a->change += run->gather_bytes * (size_t)run->part.own;
    if (!pli_active_make(run, &a->active)) return false;
    a->active.sum = a->sum;
    if (run->program.update == NULL) return true;
    a->room = pli_calloc((size_t)a->threads, sizeof *a->room);
    for (int32_t t = 0; a->room != NULL && t < a->threads; t++)
        if (!pli_scope_room_make(run, &a->room[t])) return false;
    return a->room != NULL;
}

static void free_room(pli_vertex_run *run) {
    applying *a = run->engine;
    if (a == NULL) return;
    for (int32_t t = 0; a->room != NULL && t < a->threads; t++) pli_scope_room_free(&a->room[t]);
    pli_active_free(&a->active);
    pli_free(a->room);
    pli_free(a->sum);
    if (!a->shares) pli_free(a->change);
    pli_free(a->kept);
    pli_free(a->most);
    pli_free(a);
    run->engine = NULL;
}

/* out = a - b, or a + b, of numbers of the program's type; whole ones wrap around, as in tables. */
static void subtract(const pli_vertex_run *run, int64_t n, const void *a, const void *b, void *out) {
    switch (run->program.type) {
    case PLAIT_F32:
        for (int64_t i = 0; i < n; i++) ((float *)out)[i] = ((const float *)a)[i] - ((const float *)b)[i];
        break;
    case PLAIT_F64:
        for (int64_t i = 0; i < n; i++) ((double *)out)[i] = ((const double *)a)[i] - ((const double *)b)[i];
        break;
    default:
        for (int64_t i = 0; i < n; i++) ((uint64_t *)out)[i] = ((const uint64_t *)a)[i] - ((const uint64_t *)b)[i];
    }
}

static void add(const pli_vertex_run *run, int64_t n, const void *b, void *to) {
    switch (run->program.type) {
    case PLAIT_F32:
        for (int64_t i = 0; i < n; i++) ((float *)to)[i] += ((const float *)b)[i];
        break;
    case PLAIT_F64:
        for (int64_t i = 0; i < n; i++) ((double *)to)[i] += ((const double *)b)[i];
        break;
    default:
        for (int64_t i = 0; i < n; i++) ((uint64_t *)to)[i] += ((const uint64_t *)b)[i];
    }
}

static void gather(const pli_vertex_run *run, int64_t first, int64_t last, char *sum) {
    if (run->program.gather == NULL) {
        pli_gather_rows(&run->gather, &run->part.rows, run->told, first, last, sum);
        return;
    }
    for (int64_t v = first; v < last; v++)
        pli_scope_gather(run, v, pli_run_value(run, v), sum + run->gather_bytes * (size_t)v);
}

/* The value of a row that the worker owns, as it knows it. */
static const void *own_value(const applying *a, int64_t v) {
    if (a->kept == NULL) return pli_run_value(a->run, v);
    return a->kept + a->run->value_bytes * (size_t)(v - a->run->part.own);
}

static double apply_one(applying *a, int64_t v, const void *old, int32_t thread, void *value) {
    const pli_vertex_run *run = a->run;
    if (run->program.update != NULL) return pli_scope_update(run, v, old, &a->room[thread], value);
    char *sum = a->sum + run->gather_bytes * (size_t)v;
    if (a->gathers && run->program.gather != NULL) {
        if (!pli_active_takes_sum(&a->active, v)) pli_scope_gather(run, v, old, sum);
    } else if (a->gathers && a->active.now != NULL) gather(run, v, v + 1, a->sum);
    const plait_vertex vertex = pli_vertex_of(run->edges, pli_part_vertex(&run->part, v));
    return run->program.apply(run->program.user, &vertex, sum, value);
}

static void apply_rows(void *user, int64_t first, int64_t last, int32_t thread) {
    applying             *a = user;
    const pli_vertex_run *run = a->run;
    const pli_part       *part = &run->part;
    const bool by_rows = a->gathers && a->active.now == NULL && !pli_vertex_sees_edges(&run->program);
    if (by_rows) gather(run, first, last, a->sum);
    if (by_rows && run->loops != NULL && a->shares && a->kept == NULL) {
        const double most =
            run->loops->apply(run->program.user, run->edges, first, last, run->values, (double *)(void *)a->sum);
        if (most > a->most[thread * LINE]) a->most[thread * LINE] = most;
        a->most[thread * LINE + 1] += (double)(last - first);
        return;
    }
    for (int64_t v = first; v < last; v++) {
        _Alignas(8) char narrow[NARROW];
        char       *change = a->change + run->value_bytes * (size_t)(v - part->own);
        char       *value = a->shares ? narrow : change;
        const void *old = own_value(a, v);
        if (!pli_is_active(&a->active, v)) {
            memset(change, 0, run->value_bytes);
            continue;
        }
        memcpy(value, old, run->value_bytes);
        const double by = apply_one(a, v, old, thread, value);
        const double most = isnan(by) ? (double)INFINITY : by; /* a maximum takes infinity, and not NaN */
        if (most > a->most[thread * LINE]) a->most[thread * LINE] = most;
        a->most[thread * LINE + 1]++;
        pli_active_stays(&a->active, run, v, most);
        subtract(run, run->program.values, value, old, change);
    }
}

static void gather_rows(void *user, int64_t first, int64_t last, int32_t thread) {
    const applying *a = user;
    (void)thread;
    gather(a->run, first, last, a->sum);
}

/* After apply has used them: sums become what takes them back. */
static plait_status take_back_sums(applying *a) {
    const pli_vertex_run *run = a->run;
    const pli_part       *part = &run->part;
    char                 *own = a->sum + run->gather_bytes * (size_t)part->own;
    static const int64_t  zero[PLI_VERTEX_MOST];
    for (int64_t i = 0; i < part->owned; i++) {
        char *sum = own + run->gather_bytes * (size_t)i;
        subtract(run, run->program.gathers, zero, sum, sum);
    }
    return plait_table_inc_range(run->sum, (int64_t)part->key[part->own], part->owned, own, 0);
}

/* Incs the changes of own values: all of them, or where few vertices were active those. */
static plait_status push_changes(applying *a) {
    pli_vertex_run *run = a->run;
    const pli_part *part = &run->part;
    if (a->kept != NULL) add(run, part->owned * run->program.values, a->change, a->kept);
    if (part->owned == 0) return PLAIT_OK;
    if (run->sum != NULL) PLI_TRY(take_back_sums(a));
    if (!pli_active_is_sparse(&a->active, run))
        return plait_table_inc_range(run->value, pli_part_vertex(part, part->own), part->owned, a->change, 0);
    const int64_t n = pli_active_pack(&a->active, run, a->change);
    return n > 0 ? plait_table_inc(run->value, n, a->active.key, a->change, 0) : PLAIT_OK;
}

/* --- a superstep of one part -------------------------------------------------------------------------------------- */

/* Reads what the part's vertices have and tell. */
static plait_status look(pli_vertex_run *run) {
    applying *a = run->engine;
    if (a == NULL) {
        a = run->engine = pli_calloc(1, sizeof *a);
        if (a == NULL || !make_room(run, a))
            return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for what is gathered", run->program.name);
    }
    PLI_TRY(pli_vertex_read(run));
    pli_vertex_tell(run);
    return PLAIT_OK;
}

/* Simulated ranks pay for the edges of `of` of the part's `all` vertices: for an equal share of the part's edges. */
static void pay(const pli_vertex_run *run, int64_t of, int64_t all) {
    const pli_part *part = &run->part;
    const int64_t  *start = part->rows.start,
                  edges = part->whole ? start[part->own + part->owned] - start[part->own] : start[part->rows.n];
    const double share = all > 0 ? (double)of / (double)all : 0;
    pli_comm_work(plait_job_comm(run->job), PLI_WORK_ENTRIES, (uint64_t)((double)edges * share) + (uint64_t)of);
}

/* Rows are shared: adds the part's sums to the table. */
static plait_status push_sums(pli_vertex_run *run) {
    applying *a = run->engine;
    pli_vertex_rows(run, gather_rows, a);
    pay(run, run->part.n, run->part.n);
    return plait_table_inc(run->sum, run->part.n, run->part.key, a->sum, 0);
}

/* Rows are shared, and all have added theirs: gets the sums of own vertices. */
static plait_status look_at_sums(pli_vertex_run *run) {
    const pli_part *part = &run->part;
    PLI_TRY(look(run)); /* what was borrowed is not, behind a clock */
    if (part->owned == 0) return PLAIT_OK;
    const applying *a = run->engine;
    return plait_table_get_range(run->sum, (int64_t)part->key[part->own], part->owned,
                                 a->sum + run->gather_bytes * (size_t)part->own);
}

/* Applies, and pushes by what values change. */
static plait_status change(pli_vertex_run *run) {
    applying *a = run->engine;
    for (int32_t t = 0; t < a->threads; t++) a->most[t * LINE] = a->most[t * LINE + 1] = 0;
    a->gathers = run->sum == NULL;
    pli_vertex_own_rows(run, apply_rows, a);
    a->largest = a->active.applied = 0;
    for (int32_t t = 0; t < a->threads; t++) {
        if (a->most[t * LINE] > a->largest) a->largest = a->most[t * LINE];
        a->active.applied += (int64_t)a->most[t * LINE + 1];
    }
    if (a->gathers) pay(run, a->active.now != NULL ? a->active.applied : run->part.owned, run->part.owned);
    if (run->before != NULL) PLI_TRY(pli_signals_push(run, &a->active));
    PLI_TRY(push_changes(a));
    return run->heirs != NULL ? pli_heirs_tell(run, a->largest, a->active.applied) : PLAIT_OK;
}

/* Finds the vertices that take part, once what vertices tell is there. */
static plait_status find_active(pli_vertex_run *run) {
    applying *a = run->engine;
    if (a->active.now == NULL) return PLAIT_OK;
    if (a->active.ready) pli_active_reread(&a->active, run);
    else {
        if (pli_heirs_is_inherited(run)) PLI_TRY(pli_signals_recall(run, &a->active));
        pli_active_next(&a->active, run);
    }
    a->active.ready = false;
    return PLAIT_OK;
}

/* In place of a worker that has died in this clock. */
static plait_status look_for_active(pli_vertex_run *run) {
    PLI_TRY(look(run));
    return find_active(run);
}

/* --- supersteps --------------------------------------------------------------------------------------------------- */

/* What the superstep came to, over all workers. */
static plait_status hear(pli_vertex_run *run, pli_outcome *o) {
    const applying *a = run->engine;
    plait_comm     *comm = plait_job_comm(run->job);
    if (run->heirs != NULL) return pli_heirs_hear(run, o);
    double most[2] = { a->largest, pli_vertex_is_interrupted(run) };
    *o = (pli_outcome){ .applied = a->active.applied };
    PLI_TRY(plait_comm_allreduce(comm, most, 2, PLAIT_F64, PLAIT_MAX));
    if (a->active.now != NULL) PLI_TRY(plait_comm_allreduce(comm, &o->applied, 1, PLAIT_I64, PLAIT_SUM));
    else o->applied = run->edges->n;
    o->most = most[0];
    o->interrupted = most[1] > 0;
    return PLAIT_OK;
}

/* *stop: the program's own sums have ended the run before it. */
static plait_status superstep(pli_vertex_run *run, pli_outcome *o, bool *stop) {
    PLI_TRY(pli_heirs_each(run, look));
    PLI_TRY(pli_vertex_total(run, stop));
    if (*stop) return PLAIT_OK;
    PLI_TRY(pli_heirs_each(run, find_active));
    if (run->sum != NULL) {
        PLI_TRY(pli_heirs_each(run, push_sums));
        PLI_TRY(pli_heirs_clock(run, look, push_sums));
        PLI_TRY(pli_heirs_each(run, look_at_sums));
    }
    PLI_TRY(pli_heirs_each(run, change));
    PLI_TRY(pli_heirs_clock(run, run->sum != NULL ? look_at_sums : look_for_active, change));
    run->report.supersteps++;
    PLI_TRY(hear(run, o));
    run->report.interrupted = o->interrupted;
    return PLAIT_OK;
}

/* The vertices that take part in the next superstep are found now, and go into a checkpoint. It has all that was
 * pushed, and a run that goes on from it has seen all of that from the first. So nobody may have seen less here, or
 * those whom the rest signals would not take part. */
static plait_status find_frontier(pli_vertex_run *run) {
    PLI_TRY(look_for_active(run));
    applying *a = run->engine;
    a->active.ready = !pli_heirs_is_inherited(run);
    PLI_TRY(pli_vertex_make_row(run));
    for (int64_t i = 0; i < run->part.owned; i++) run->row[2 * i] = a->active.now[run->part.own + i];
    return PLAIT_OK;
}

static plait_status pause_run(pli_vertex_run *run) {
    if (!pli_vertex_is_due(run)) return PLAIT_OK;
    if (run->frontier != NULL && !run->all_is_read) PLI_TRY(plait_job_barrier(run->job));
    return pli_vertex_pause(run, find_frontier);
}

/* Nothing has changed in a superstep. *met: it began behind a barrier, so it had read all; else the next one does. */
static plait_status is_still(pli_vertex_run *run, bool *met) {
    run->report.still = *met || run->all_is_read;
    *met = true;
    return run->report.still ? PLAIT_OK : plait_job_barrier(run->job);
}

/* A run goes on from a checkpoint: what is seen of others before their first push is what they told at the pause. */
static plait_status take_up(pli_vertex_run *run) {
    if (!run->restored || run->program.scatter == NULL) return PLAIT_OK;
    PLI_TRY(look(run));
    applying *a = run->engine;
    pli_active_next(&a->active, run);
    a->active.ready = true;
    return run->all_is_read ? PLAIT_OK : plait_job_barrier(run->job);
}

static plait_status loop(pli_vertex_run *run) {
    bool met = false, stop = false;
    PLI_TRY(take_up(run));
    while (!run->report.still && (run->limit == 0 || run->report.supersteps < run->limit)) {
        pli_outcome o = { 0 };
        PLI_TRY(superstep(run, &o, &stop));
        if (stop) {
            run->report.stopped = 1;
            return PLAIT_OK;
        }
        run->report.updates += o.applied;
        if (!isfinite(o.most))
            return pli_fail(run->err, PLAIT_EINVAL, "%s: in superstep %lld a value changed by what is no finite "
                            "number", run->program.name, (long long)run->report.supersteps);
        if (run->program.scatter != NULL ? o.applied > 0 : o.most > run->program.tolerance) met = false;
        else PLI_TRY(is_still(run, &met));
        if (run->report.still) run->report.interrupted = 0; /* it has ended by itself */
        else PLI_TRY(pause_run(run));
        if (run->report.interrupted) return PLAIT_OK;
    }
    return PLAIT_OK;
}

/* The owner begins with the values that are there. */
static plait_status keep(pli_vertex_run *run) {
    PLI_TRY(look(run));
    const applying *a = run->engine;
    if (a->kept != NULL) memcpy(a->kept, pli_run_value(run, run->part.own), (size_t)run->part.owned * run->value_bytes);
    return PLAIT_OK;
}

plait_status pli_vertex_apply(pli_vertex_run *run) {
    plait_status status = run->owns_are_read ? PLAIT_OK : keep(run);
    if (status == PLAIT_OK) status = loop(run);
    pli_heirs_each_made(run, free_room);
    return status;
}
