/* Sums over all vertices and edges, superstep by superstep: PowerGraph's aggregators, and what ends a run by them. A
 * worker adds up its own vertices, and the edges that it has, in order; a collective adds up the workers. */
#include "comm/comm.h"
#include "table/table.h"
#include "vertex/vertex.h"

static void add_edges(pli_vertex_run *run) {
    const int64_t *start = run->part.rows.start;
    for (int64_t v = 0; v < run->part.rows.n; v++) {
        const plait_vertex at = pli_vertex_of(run->edges, pli_part_vertex(&run->part, v));
        for (int64_t k = start[v]; k < start[v + 1]; k++) {
            plait_vertex      other;
            plait_vertex_edge edge;
            pli_scope_edge(run, k, &at, pli_run_value(run, v), &other, &edge);
            run->program.total_edge(run->program.user, &edge, run->total);
        }
    }
}

plait_status pli_vertex_total(pli_vertex_run *run, bool *stop_out) {
    const plait_vertex_program *p = &run->program;
    const pli_part             *part = &run->part;
    *stop_out = false;
    if (p->totals == 0) return PLAIT_OK;
    for (int32_t i = 0; i < p->totals; i++) run->total[i] = 0;
    for (int64_t v = part->own; p->total != NULL && v < part->own + part->owned; v++) {
        const plait_vertex vertex = pli_vertex_of(run->edges, pli_part_vertex(part, v));
        p->total(p->user, &vertex, pli_run_value(run, v), run->total);
    }
    if (p->total_edge != NULL) add_edges(run);
    PLI_TRY(plait_comm_allreduce(plait_job_comm(run->job), run->total, p->totals, PLAIT_F64,
                                 run->job->exact ? PLAIT_SUM_EXACT : PLAIT_SUM));
    *stop_out = p->stop(p->user, run->report.supersteps, run->total) != 0;
    return PLAIT_OK;
}
