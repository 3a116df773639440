/* Stopping and going on: what a checkpoint of a vertex program needs beside its values.
 *
 * Between two supersteps all that a run knows lies in its value table, save the frontier: which vertices are signaled
 * or wait in a queue, and with what weight. For a checkpoint that goes into a second table, NAME.frontier:
 *
 *     column 0   above 0: the vertex takes part next; async: its weight in the queue, plus 1
 *     column 1   async: changes that were too small to tell
 *
 * A program that folds needs none: all vertices tell once more, and min and max do not mind. Whoever calls the run
 * saves and restores tables, since checkpoints belong to a room above. */

#include "comm/comm.h"
#include "table/table.h"
#include "vertex/beside.h"
#include "vertex/heirs.h"
#include "vertex/vertex.h"

plait_status pli_vertex_make_row(pli_vertex_run *part) {
    if (part->row == NULL) part->row = pli_calloc((size_t)part->part.owned, 2 * sizeof *part->row);
    return part->row != NULL ? PLAIT_OK
                             : pli_fail(part->err, PLAIT_ENOMEM, "%s: no memory for a frontier", part->program.name);
}

static plait_status make_frontier(pli_vertex_run *run) {
    const pli_beside frontier = { .program = run->program.name,
                                  .what = "frontier",
                                  .type = PLAIT_F64,
                                  .combine = run->heirs == NULL ? "last" : "add", /* two replicas need one that adds */
                                  .rows = run->edges->n,
                                  .cols = 2 };
    PLI_TRY(pli_vertex_make_row(run));
    return pli_beside_make(run->job, &frontier, &run->frontier);
}

static int32_t tables_of(const pli_vertex_run *run, plait_table *tables[2]) {
    tables[0] = run->value;
    tables[1] = run->frontier;
    return run->frontier != NULL ? 2 : 1;
}

plait_status pli_vertex_begin(pli_vertex_run *run) {
    const bool   stops = run->opts.begin != NULL || run->opts.pause != NULL;
    plait_table *tables[2];
    int          restored = 0;
    if (!stops) return PLAIT_OK;
    if (run->rounds != NULL)
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: checkpoints of engine async with replicas 2 are refused, since "
                        "its values lie in one of two tables; nearest are replicas 1, and engine sync",
                        run->program.name);
    if (run->program.edge_values > 0)
        return pli_fail(run->err, PLAIT_EREFUSED, "%s: edges with numbers of their own cannot be saved: they are in no "
                        "table", run->program.name);
    if (run->async || run->program.scatter != NULL) PLI_TRY(make_frontier(run));
    if (run->opts.begin == NULL) return PLAIT_OK;
    const int32_t n = tables_of(run, tables);
    PLI_TRY(run->opts.begin(run->opts.user, run->job, tables, n, &restored));
    run->restored = restored != 0;
    if (!run->restored || run->frontier == NULL || run->part.owned == 0) return PLAIT_OK;
    return plait_table_get_range(run->frontier, run->cut->first[run->rank], run->part.owned, run->row);
}

bool pli_vertex_is_interrupted(const pli_vertex_run *run) {
    return run->opts.interrupted != NULL && run->opts.interrupted(run->opts.user) != 0;
}

bool pli_vertex_is_due(const pli_vertex_run *run) {
    const bool periodic = run->opts.every > 0 && run->report.supersteps % run->opts.every == 0;
    return run->opts.pause != NULL && (periodic || run->report.interrupted);
}

/* Differences are exact, since the numbers are whole. */
static plait_status subtract_old(pli_vertex_run *part, int64_t first) {
    const int64_t n = part->part.owned;
    double       *old = pli_array((size_t)n, 2 * sizeof *old);
    if (old == NULL) return pli_fail(part->err, PLAIT_ENOMEM, "%s: no memory for a frontier", part->program.name);
    const plait_status status = plait_table_get_range(part->frontier, first, n, old);
    for (int64_t i = 0; status == PLAIT_OK && i < 2 * n; i++) part->row[i] -= old[i];
    pli_free(old);
    return status;
}

static plait_status push_frontier(pli_vertex_run *part) {
    const int64_t first = part->cut->first[part->rank], n = part->part.owned;
    if (n == 0) return PLAIT_OK;
    if (part->heirs != NULL) PLI_TRY(subtract_old(part, first));
    return plait_table_inc_range(part->frontier, first, n, part->row, 0);
}

plait_status pli_vertex_pause(pli_vertex_run *run, pli_part_fn *find) {
    plait_table *tables[2];
    if (run->frontier != NULL) {
        if (find != NULL) PLI_TRY(pli_heirs_each(run, find));
        PLI_TRY(pli_heirs_each(run, push_frontier));
        PLI_TRY(pli_heirs_clock(run, find, push_frontier));
    }
    const int32_t n = tables_of(run, tables);
    return run->opts.pause(run->opts.user, run->job, tables, n);
}
