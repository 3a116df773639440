/* Sums over all vertices and edges, superstep by superstep: PowerGraph's aggregators, and what ends a run by them. A
 * worker adds up its own vertices, and the edges that it has, in order; a collective adds up the workers. */
#include "comm/comm.h"
#include "table/table.h"
#include "vertex/heirs.h"
#include "vertex/vertex.h"

static void add_edges(const pli_vertex_run *run, double *sum) {
    const int64_t *start = run->part.rows.start;
    for (int64_t v = 0; v < run->part.rows.n; v++) {
        const plait_vertex at = pli_vertex_of(run->edges, pli_part_vertex(&run->part, v));
        for (int64_t k = start[v]; k < start[v + 1]; k++) {
            plait_vertex      other;
            plait_vertex_edge edge;
            pli_scope_edge(run, k, &at, pli_run_value(run, v), &other, &edge);
            run->program.total_edge(run->program.user, &edge, sum);
        }
    }
}

/* A part's sums. */
static void add_part(const pli_vertex_run *run, double *sum) {
    const plait_vertex_program *p = &run->program;
    const pli_part             *part = &run->part;
    for (int32_t i = 0; i < p->totals; i++) sum[i] = 0;
    for (int64_t v = part->own; p->total != NULL && v < part->own + part->owned; v++) {
        const plait_vertex vertex = pli_vertex_of(run->edges, pli_part_vertex(part, v));
        p->total(p->user, &vertex, pli_run_value(run, v), sum);
    }
    if (p->total_edge != NULL) add_edges(run, sum);
}

/* Where a worker may die, parts stand beside each other, and are added up in their order: the bits are the same,
 * whoever has made a part. What a worker has not brought, since it died, is made again by another. */
static plait_status add_living(pli_vertex_run *run) {
    plait_comm   *comm = plait_job_comm(run->job);
    const int32_t n = run->program.totals;
    int32_t       absent;
    do {
        absent = pli_comm_absent(comm);
        memset(run->total, 0, (size_t)run->workers * (size_t)n * sizeof *run->total);
        for (int32_t w = 0; w < run->workers; w++) {
            pli_vertex_run *part = NULL;
            PLI_TRY(pli_heirs_living(run, w, &part));
            if (part != NULL) add_part(part, run->total + (int64_t)n * w);
        }
        PLI_TRY(plait_comm_allreduce(comm, run->total, (int64_t)n * run->workers, PLAIT_F64, PLAIT_SUM));
    } while (pli_comm_absent(comm) != absent);
    for (int32_t w = 1; w < run->workers; w++)
        for (int32_t i = 0; i < n; i++) run->total[i] += run->total[(int64_t)n * w + i];
    return PLAIT_OK;
}

plait_status pli_vertex_total(pli_vertex_run *run, bool *stop_out) {
    const plait_vertex_program *p = &run->program;
    *stop_out = false;
    if (p->totals == 0) return PLAIT_OK;
    if (run->heirs != NULL) {
        PLI_TRY(add_living(run));
    } else {
        add_part(run, run->total);
        PLI_TRY(plait_comm_allreduce(plait_job_comm(run->job), run->total, p->totals, PLAIT_F64,
                                     run->job->exact ? PLAIT_SUM_EXACT : PLAIT_SUM));
    }
    *stop_out = p->stop(p->user, run->report.supersteps, run->total) != 0;
    return PLAIT_OK;
}
