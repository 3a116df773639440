/* Supersteps of a frontier: values fold in what arrives by min or max, and only vertices that have changed tell.
 *
 * A worker looks for vertices whose value differs from what it saw of them last: they are its frontier. While their
 * edges are less than a 16th of its edges it pushes along these; else each of its rows pulls from all. What got better
 * is pushed to the table, whose combine keeps the best of all workers'. Nothing is lost when a read is stale: the
 * vertex is in the frontier later. The run is still when no worker has made anything better, and behind a barrier, when
 * all updates have arrived, none sees anything new.
 *
 * With two replicas a worker may also have parts of dead ones (heirs.h). An heir does not know what the dead worker had
 * seen, and need not: an edge whose end has not changed makes nothing better. So a pull along all edges finds exactly
 * what the frontier finds.
 *
 * Paper: Beamer, Asanovic and Patterson, "Direction-Optimizing Breadth-First Search", SC 2012. */
#include "base/sort.h"
#include "comm/comm.h"
#include "table/table.h"
#include "vertex/heirs.h"
#include "vertex/vertex.h"

enum { PUSH_SHARE = 16, LOOK = 8 }; /* LOOK: supersteps between two looks at all workers, where none waits for others */

/* What the engine keeps of a part. */
typedef struct folding {
    pli_vertex_run *run;
    int64_t        *seen;     /* [n] values that have been told         */
    int64_t        *best;     /* [n] values with what arrived           */
    int64_t        *sum;      /* [n] scratch of a pull                  */
    uint64_t       *hit;      /* [n] those that got better: local numbers, then keys */
    int64_t        *frontier; /* [n] */
    int64_t         hits, fronts;
} folding;

static bool make_room(folding *f) {
    const size_t n = (size_t)f->run->part.n;
    f->seen = pli_array(n, 8);
    f->best = pli_array(n, 8);
    f->sum = pli_array(n, 8);
    f->hit = pli_array(n, 8);
    f->frontier = pli_array(n, 8);
    if (f->seen == NULL || f->best == NULL || f->sum == NULL || f->hit == NULL || f->frontier == NULL) return false;
    for (size_t v = 0; v < n; v++) pli_gather_begin(&f->run->gather, &f->seen[v]);
    return true;
}

/* Finds the frontier, and says how many edges leave it. */
static int64_t look(folding *f) {
    const int64_t       *values = f->run->values;
    const pli_neighbors *back = &f->run->part.back;
    int64_t              edges = 0;
    f->fronts = 0;
    for (int64_t v = 0; v < f->run->part.n; v++) {
        if (values[v] == f->seen[v]) continue;
        f->seen[v] = values[v];
        f->frontier[f->fronts++] = v;
        edges += back->start[v + 1] - back->start[v];
    }
    return edges;
}

static void push(folding *f) {
    pli_vertex_run *run = f->run;
    run->told = run->program.tell != NULL ? run->tells : run->values;
    for (int64_t i = 0; i < f->fronts; i++) {
        const int64_t v = f->frontier[i];
        if (run->program.tell != NULL) {
            const plait_vertex vertex = pli_vertex_of(run->edges, pli_part_vertex(&run->part, v));
            run->program.tell(run->program.user, &vertex, (const int64_t *)run->values + v, (int64_t *)run->tells + v);
        }
        pli_gather_push(&run->gather, &run->part.back, v, run->told, run->values, f->best, f->hit, &f->hits);
    }
    run->report.pushed++;
}

static void pull_rows(void *user, int64_t first, int64_t last, int32_t thread) {
    folding *f = user;
    (void)thread;
    pli_gather_rows(&f->run->gather, &f->run->part.rows, f->run->told, first, last, f->sum);
    for (int64_t v = first; v < last; v++)
        if (pli_gather_is_better(&f->run->gather, &f->sum[v], &f->best[v])) f->best[v] = f->sum[v];
}

static void pull(folding *f) {
    pli_vertex_run *run = f->run;
    pli_vertex_tell(run);
    pli_vertex_rows(run, pull_rows, f);
    for (int64_t v = 0; v < run->part.n; v++)
        if (f->best[v] != ((const int64_t *)run->values)[v]) f->hit[f->hits++] = (uint64_t)v;
    run->report.pulled++;
}

/* Pushes what got better to the table, by increasing keys. */
static plait_status send(folding *f) {
    pli_vertex_run *run = f->run;
    if (f->hits == 0) return PLAIT_OK;
    if (!pli_sort_u64(f->hits, f->hit, NULL))
        return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory to sort keys", run->program.name);
    for (int64_t i = 0; i < f->hits; i++) {
        const int64_t v = (int64_t)f->hit[i];
        f->sum[i] = f->best[v];
        f->hit[i] = (uint64_t)pli_part_vertex(&run->part, v);
    }
    return plait_table_inc(run->value, f->hits, f->hit, f->sum, 0);
}

/* --- a superstep of one part -------------------------------------------------------------------------------------- */

static plait_status read_values(pli_vertex_run *run) {
    folding *f = run->engine;
    if (f == NULL) {
        f = run->engine = pli_calloc(1, sizeof *f);
        if (f != NULL) f->run = run;
        if (f == NULL || !make_room(f))
            return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for a frontier", run->program.name);
    }
    return pli_vertex_read(run);
}

static plait_status finish(folding *f) {
    const int64_t hits = f->hits;
    PLI_TRY(send(f));
    return f->run->heirs != NULL ? pli_heirs_tell(f->run, hits > 0, hits) : PLAIT_OK;
}

static plait_status spread(pli_vertex_run *run) {
    folding             *f = run->engine;
    const pli_neighbors *back = &run->part.back;
    const int64_t        edges = look(f);
    memcpy(f->best, run->values, (size_t)run->part.n * 8);
    f->hits = 0;
    const bool pushes = edges < back->start[back->n] / PUSH_SHARE;
    if (pushes) push(f);
    else if (edges > 0) pull(f);
    pli_comm_work(plait_job_comm(run->job), PLI_WORK_ENTRIES,
                  (uint64_t)(pushes ? edges + f->fronts : edges > 0 ? back->start[back->n] + run->part.n : 0));
    return finish(f);
}

/* In place of a worker that has died in this clock. What it reads now does not count as seen: if the clock was safe
 * already, though this worker had not heard that, these are the next clock's values, and what it pushes counts nowhere.
 * So all tell once more in the next superstep. */
static plait_status stand_in(pli_vertex_run *run) {
    folding *f = run->engine;
    memcpy(f->best, run->values, (size_t)run->part.n * 8);
    f->hits = 0;
    pull(f);
    return finish(f);
}

/* --- supersteps --------------------------------------------------------------------------------------------------- */

static plait_status superstep(pli_vertex_run *run) {
    PLI_TRY(pli_heirs_each(run, read_values));
    PLI_TRY(pli_heirs_each(run, spread));
    return pli_heirs_clock(run, read_values, stand_in);
}

/* Is any worker's frontier not empty, when all updates have arrived? */
static plait_status is_still(pli_vertex_run *run, bool *still_out) {
    const folding  *f = run->engine;
    plait_comm     *comm = plait_job_comm(run->job);
    int64_t         news = f->hits, any[2] = { news, pli_vertex_is_interrupted(run) };
    PLI_TRY(plait_comm_allreduce(comm, any, 2, PLAIT_I64, PLAIT_MAX));
    *still_out = false;
    run->report.interrupted = any[1] > 0;
    if (any[0] > 0 || any[1] > 0) return PLAIT_OK;
    PLI_TRY(plait_job_barrier(run->job));
    PLI_TRY(pli_vertex_read(run));
    for (int64_t v = 0; news == 0 && v < run->part.n; v++) news = ((const int64_t *)run->values)[v] != f->seen[v];
    PLI_TRY(plait_comm_allreduce(comm, &news, 1, PLAIT_I64, PLAIT_MAX));
    *still_out = news == 0;
    return PLAIT_OK;
}

/* The same where a worker may die. Reads have whole clocks there: nobody sees anything new if nobody has made anything
 * better. */
static plait_status is_still_without(pli_vertex_run *run, bool *still_out) {
    pli_outcome o;
    PLI_TRY(pli_heirs_hear(run, &o));
    run->report.interrupted = o.interrupted;
    *still_out = o.applied == 0 && !o.interrupted;
    return PLAIT_OK;
}

static void free_room(pli_vertex_run *run) {
    folding *f = run->engine;
    if (f == NULL) return;
    void *const memory[] = { f->seen, f->best, f->sum, f->hit, f->frontier, f };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) pli_free(memory[i]);
    run->engine = NULL;
}

plait_status pli_vertex_fold(pli_vertex_run *run) {
    const pli_scope        scope = pli_layout_scope(&run->job->layout);
    const plait_properties has =
        pli_pair_properties(pli_topology_find(run->job->topology), run->job->consistency, &scope);
    const int64_t every = (has & PLAIT_WHOLE_CLOCKS) != 0 ? 1 : LOOK;
    bool          still = false;
    plait_status  status = PLAIT_OK;
    while (status == PLAIT_OK && !still && (run->limit == 0 || run->report.supersteps < run->limit)) {
        status = superstep(run);
        run->report.supersteps++;
        if (status == PLAIT_OK && run->report.supersteps % every == 0)
            status = run->heirs != NULL ? is_still_without(run, &still) : is_still(run, &still);
        if (status == PLAIT_OK && !still && pli_vertex_is_due(run)) status = pli_vertex_pause(run, NULL);
        if (run->report.interrupted) break;
    }
    run->report.still = still;
    pli_heirs_each_made(run, free_room);
    return status;
}
