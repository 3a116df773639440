/* The parts of workers that have died, and what supersteps came to. See heirs.h. */
#include "vertex/heirs.h"

#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "table/table.h"

enum { FIGURES = 3 }; /* most by its bits, applied, interrupted */

typedef struct pli_heirs {
    pli_vertex_run **part;    /* [workers] of others, once this worker needs them */
    int64_t         *read_at; /* [workers] the clock in which values were read for a sum of all */
    int32_t          me;
    plait_table     *figures;
    int64_t         *figure; /* [workers, FIGURES] as they are before this superstep */
} pli_heirs;

plait_status pli_heirs_make(pli_vertex_run *run) {
    const size_t workers = (size_t)run->workers;
    pli_heirs   *h = pli_calloc(1, sizeof *h);
    if (h == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for heirs", run->program.name);
    run->heirs = h;
    h->me = run->rank;
    h->part = pli_calloc(workers, sizeof(pli_vertex_run *));
    h->read_at = pli_array(workers, sizeof *h->read_at);
    h->figure = pli_calloc(workers * FIGURES, sizeof *h->figure);
    if (h->part == NULL || h->read_at == NULL || h->figure == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for heirs", run->program.name);
    plait_table_opts t;
    char             name[64];
    plait_table_opts_init(&t);
    snprintf(name, sizeof name, "%s.figures", run->program.name);
    t.name = name;
    t.type = PLAIT_I64;
    t.rows = run->workers;
    t.cols = FIGURES;
    t.keyed = 1;
    return plait_table_create(run->job, &t, &h->figures);
}

void pli_heirs_free(pli_vertex_run *run) {
    pli_heirs *h = run->heirs;
    if (h == NULL) return;
    for (int32_t w = 0; h->part != NULL && w < run->workers; w++) {
        if (h->part[w] == NULL) continue;
        pli_vertex_leave_part(h->part[w]);
        pli_free(h->part[w]->row);
        pli_free(h->part[w]);
    }
    pli_free(h->part);
    pli_free(h->read_at);
    pli_free(h->figure);
    pli_free(h);
    run->heirs = NULL;
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

/* The part of a worker that has died. The graph and the cut are there; it is taken out of them once more. */
static plait_status part_of(pli_vertex_run *run, int32_t home, pli_vertex_run **part_out) {
    pli_heirs *h = run->heirs;
    *part_out = home == h->me ? run : h->part[home];
    if (*part_out != NULL) return PLAIT_OK;
    pli_vertex_run *part = pli_calloc(1, sizeof *part);
    if (part == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for a dead worker's part", run->program.name);
    *part = *run;
    part->rank = home;
    part->part = (pli_part){ 0 };
    part->read = part->tells = part->data = part->engine = NULL;
    part->values = part->told = NULL;
    part->total = part->row = NULL;
    const plait_status status = pli_vertex_take_part(part);
    if (status < 0) {
        pli_vertex_leave_part(part);
        pli_free(part);
        return status;
    }
    h->read_at[home] = -1;
    *part_out = h->part[home] = part;
    return PLAIT_OK;
}

bool pli_heirs_is_inherited(const pli_vertex_run *part) {
    return part->heirs != NULL && part->rank != part->heirs->me;
}

plait_status pli_heirs_each(pli_vertex_run *run, pli_part_fn *fn) {
    PLI_TRY(fn(run));
    for (int32_t w = 0; run->heirs != NULL && w < run->workers; w++) {
        pli_vertex_run *part;
        if (w == run->heirs->me || plait_job_holder(run->job, w, 0) != run->heirs->me) continue;
        PLI_TRY(part_of(run, w, &part));
        PLI_TRY(fn(part));
    }
    return PLAIT_OK;
}

void pli_heirs_each_made(pli_vertex_run *run, void (*fn)(pli_vertex_run *part)) {
    fn(run);
    for (int32_t w = 0; run->heirs != NULL && run->heirs->part != NULL && w < run->workers; w++)
        if (run->heirs->part[w] != NULL) fn(run->heirs->part[w]);
}

static plait_status each_inherited(pli_vertex_run *run, pli_part_fn *fn) {
    for (int32_t w = 0; w < run->workers; w++) {
        pli_vertex_run *part;
        if (!plait_job_inherits(run->job, w, 0)) continue;
        PLI_TRY(part_of(run, w, &part));
        PLI_TRY(fn(part));
    }
    return PLAIT_OK;
}

plait_status pli_heirs_clock(pli_vertex_run *run, pli_part_fn *read, pli_part_fn *push) {
    plait_status status;
    while ((status = plait_job_clock(run->job)) == PLAIT_STAND_IN) {
        PLI_TRY(each_inherited(run, read));
        PLI_TRY(each_inherited(run, push));
    }
    return status;
}

plait_status pli_heirs_living(pli_vertex_run *run, int32_t home, pli_vertex_run **part_out) {
    pli_heirs     *h = run->heirs;
    const int64_t  now = plait_job_clock_now(run->job);
    const uint8_t *absent = pli_comm_absentees(plait_job_comm(run->job));
    const bool     held = home == h->me || plait_job_holder(run->job, home, 0) == h->me; /* and was read with the own */
    *part_out = NULL;
    if (pli_heir_of(absent, run->workers, run->job->layout.spares, home, 0) != h->me) return PLAIT_OK;
    PLI_TRY(part_of(run, home, part_out));
    if (held || h->read_at[home] == now) return PLAIT_OK;
    PLI_TRY(pli_vertex_read(*part_out));
    pli_vertex_tell(*part_out);
    h->read_at[home] = now;
    return PLAIT_OK;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

plait_status pli_heirs_tell(pli_vertex_run *part, double most, int64_t applied) {
    const pli_heirs *h = part->heirs;
    const uint64_t   key = (uint64_t)part->rank;
    const int64_t   *old = h->figure + FIGURES * part->rank;
    const bool       own = part->rank == h->me;
    int64_t          now[FIGURES] = { 0, applied, own && pli_vertex_is_interrupted(part) };
    memcpy(&now[0], &most, sizeof most);
    for (int i = 0; i < FIGURES; i++) now[i] = (int64_t)((uint64_t)now[i] - (uint64_t)old[i]);
    return plait_table_inc(h->figures, 1, &key, now, 0);
}

plait_status pli_heirs_hear(pli_vertex_run *run, pli_outcome *o) {
    pli_heirs *h = run->heirs;
    *o = (pli_outcome){ 0 };
    PLI_TRY(plait_table_get_range(h->figures, 0, run->workers, h->figure));
    for (int32_t w = 0; w < run->workers; w++) {
        const int64_t *figure = h->figure + FIGURES * w;
        double         most;
        memcpy(&most, &figure[0], sizeof most);
        if (most > o->most) o->most = most;
        o->applied += figure[1];
        o->interrupted = o->interrupted || figure[2] != 0;
    }
    return PLAIT_OK;
}
