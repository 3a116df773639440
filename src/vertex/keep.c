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
#include <stdio.h>

#include "comm/comm.h"
#include "table/table.h"
#include "vertex/vertex.h"

static plait_status make_frontier(pli_vertex_run *run) {
    plait_table_opts t;
    char             name[64];
    plait_table_opts_init(&t);
    snprintf(name, sizeof name, "%s.frontier", run->program.name);
    t.name = name;
    t.type = PLAIT_F64;
    t.combine = "last";
    t.keyed = 1;
    t.rows = run->edges->n;
    t.cols = 2;
    run->row = pli_calloc((size_t)run->part.owned, 2 * sizeof *run->row);
    if (run->row == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for a frontier", run->program.name);
    return plait_table_create(run->job, &t, &run->frontier);
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

plait_status pli_vertex_pause(pli_vertex_run *run) {
    const int64_t first = run->cut->first[run->rank];
    plait_table  *tables[2];
    if (run->frontier != NULL) {
        if (run->part.owned > 0) PLI_TRY(plait_table_inc_range(run->frontier, first, run->part.owned, run->row, 0));
        PLI_TRY(plait_job_clock(run->job));
    }
    const int32_t n = tables_of(run, tables);
    return run->opts.pause(run->opts.user, run->job, tables, n);
}
