/* What a program's own functions see of a vertex's edges: gather, update and scatter. See plait/vertex.h.
 *
 * An edge's numbers lie in the order of the part's rows, so the worker that gathers along an edge has them, and threads
 * that work on different rows never share one. */
#include <math.h>

#include "vertex/vertex.h"

void pli_scope_edge(const pli_vertex_run *run, int64_t k, const plait_vertex *at, const void *value,
                    plait_vertex *other, plait_vertex_edge *edge) {
    const pli_neighbors *rows = &run->part.rows;
    const int64_t        u = rows->near[k];
    *other = pli_vertex_of(run->edges, pli_part_vertex(&run->part, u));
    *edge = (plait_vertex_edge){ .at = at, .other = other, .value = value,
                                 .weight = rows->weight != NULL ? rows->weight[k] : 1,
                                 .told = run->told != NULL ? (char *)run->told + run->tell_bytes * (size_t)u : NULL };
    if (run->data == NULL) return;
    const size_t bytes = (run->program.type == PLAIT_F32 ? 4 : 8) * (size_t)run->program.edge_values;
    edge->data = (char *)run->data + bytes * (size_t)k;
}

static void init_rows(void *user, int64_t first, int64_t last, int32_t thread) {
    const pli_vertex_run *run = user;
    const int64_t        *start = run->part.rows.start;
    (void)thread;
    for (int64_t v = first; v < last; v++) {
        const plait_vertex at = pli_vertex_of(run->edges, pli_part_vertex(&run->part, v));
        for (int64_t k = start[v]; k < start[v + 1]; k++) {
            plait_vertex      other;
            plait_vertex_edge edge;
            pli_scope_edge(run, k, &at, NULL, &other, &edge);
            run->program.edge_init(run->program.user, &edge);
        }
    }
}

plait_status pli_scope_data(pli_vertex_run *run) {
    const plait_vertex_program *p = &run->program;
    const int64_t               edges = run->part.rows.start[run->part.rows.n];
    if (p->edge_values == 0) return PLAIT_OK;
    run->data = pli_calloc((size_t)edges * (size_t)p->edge_values, p->type == PLAIT_F32 ? 4 : 8);
    if (run->data == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for the numbers of %lld edges", p->name,
                        (long long)edges);
    pli_vertex_rows(run, init_rows, run);
    return PLAIT_OK;
}

/* --- gather, update ----------------------------------------------------------------------------------------------- */

void pli_scope_begin(const pli_vertex_run *run, void *sum) {
    const plait_vertex_program *p = &run->program;
    const float infinite = run->gather.fold == PLI_FOLD_MIN ? INFINITY : -INFINITY;
    if (run->gather.fold == PLI_FOLD_ADD) memset(sum, 0, run->gather_bytes);
    for (int32_t i = 0; i < p->gathers && run->gather.fold != PLI_FOLD_ADD; i++) {
        if (p->type == PLAIT_F32) ((float *)sum)[i] = infinite;
        else pli_gather_begin(&run->gather, (int64_t *)sum + i);
    }
}

void pli_scope_gather(const pli_vertex_run *run, int64_t v, const void *value, void *sum) {
    const int64_t     *start = run->part.rows.start;
    const plait_vertex at = pli_vertex_of(run->edges, pli_part_vertex(&run->part, v));
    pli_scope_begin(run, sum);
    for (int64_t k = start[v]; k < start[v + 1]; k++) {
        plait_vertex      other;
        plait_vertex_edge edge;
        pli_scope_edge(run, k, &at, value, &other, &edge);
        run->program.gather(run->program.user, &edge, sum);
    }
}

double pli_scope_update(const pli_vertex_run *run, int64_t v, const void *value, pli_scope_room *room,
                        void *new_value) {
    const int64_t     *start = run->part.rows.start, n = start[v + 1] - start[v];
    const plait_vertex at = pli_vertex_of(run->edges, pli_part_vertex(&run->part, v));
    for (int64_t i = 0; i < n; i++)
        pli_scope_edge(run, start[v] + i, &at, value, &room->other[i], &room->edge[i]);
    return run->program.update(run->program.user, &at, n, room->edge, new_value);
}

bool pli_scope_room_make(const pli_vertex_run *run, pli_scope_room *room) {
    const int64_t *start = run->part.rows.start;
    int64_t        most = 0;
    for (int64_t v = 0; v < run->part.rows.n; v++)
        if (start[v + 1] - start[v] > most) most = start[v + 1] - start[v];
    *room = (pli_scope_room){ pli_array((size_t)most, sizeof *room->other),
                              pli_array((size_t)most, sizeof *room->edge) };
    return room->other != NULL && room->edge != NULL;
}

void pli_scope_room_free(pli_scope_room *room) {
    pli_free(room->other);
    pli_free(room->edge);
    *room = (pli_scope_room){ 0 };
}
