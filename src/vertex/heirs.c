/* The parts of workers that have died, and what supersteps came to. See heirs.h. */
#include "vertex/heirs.h"

#include <string.h>

#include "comm/comm.h"
#include "table/table.h"
#include "vertex/inherit.h"

enum { FIGURES = 3 }; /* most by its bits, applied, interrupted */

typedef struct pli_heirs {
    pli_inherit *parts;
    int64_t     *read_at; /* [workers] the clock in which values were read for a sum of all, plus 1; 0: never */
    int32_t      me;
} pli_heirs;

/* --- parts -------------------------------------------------------------------------------------------------------- */

static void release(void *user) {
    pli_vertex_run *part = user;
    pli_vertex_leave_part(part);
    pli_free(part->row);
    pli_free(part);
}

/* The graph and the cut are there; the dead worker's part is taken out of them once more. */
static plait_status make_part(void *own, int32_t home, void **part_out) {
    pli_vertex_run *run = own, *part = pli_calloc(1, sizeof *part);
    if (part == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for a dead worker's part", run->program.name);
    *part = *run;
    part->rank = home;
    part->part = (pli_part){ 0 };
    part->read = part->tells = part->data = part->engine = NULL;
    part->values = part->told = NULL;
    part->total = part->row = NULL;
    const plait_status status = pli_vertex_take_part(part);
    if (status < 0) release(part);
    else *part_out = part;
    return status;
}

plait_status pli_heirs_make(pli_vertex_run *run) {
    const pli_inherit_opts opts = { .job = run->job, .err = run->err, .name = run->program.name, .own = run,
                                    .figures = FIGURES, .make = make_part, .release = release };
    pli_heirs             *h = pli_calloc(1, sizeof *h);
    if (h == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for heirs", run->program.name);
    run->heirs = h;
    h->me = run->rank;
    h->read_at = pli_calloc((size_t)run->workers, sizeof *h->read_at);
    if (h->read_at == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for heirs", run->program.name);
    return pli_inherit_create(&opts, &h->parts);
}

void pli_heirs_free(pli_vertex_run *run) {
    pli_heirs *h = run->heirs;
    if (h == NULL) return;
    pli_inherit_destroy(&h->parts);
    pli_free(h->read_at);
    pli_free(h);
    run->heirs = NULL;
}

bool pli_heirs_is_inherited(const pli_vertex_run *part) {
    return part->heirs != NULL && part->rank != part->heirs->me;
}

/* What is called for a part. */
typedef struct calling {
    pli_part_fn *read, *push;
} calling;

static plait_status call_read(void *user, void *part) { return ((const calling *)user)->read(part); }
static plait_status call_push(void *user, void *part) { return ((const calling *)user)->push(part); }

plait_status pli_heirs_each(pli_vertex_run *run, pli_part_fn *fn) {
    if (run->heirs == NULL) return fn(run);
    return pli_inherit_each(run->heirs->parts, call_push, &(calling){ NULL, fn });
}

void pli_heirs_each_made(pli_vertex_run *run, void (*fn)(pli_vertex_run *part)) {
    for (int32_t w = 0; run->heirs != NULL && run->heirs->parts != NULL && w < run->workers; w++) {
        pli_vertex_run *part = pli_inherit_made(run->heirs->parts, w);
        if (part != NULL && part != run) fn(part);
    }
    fn(run);
}

plait_status pli_heirs_clock(pli_vertex_run *run, pli_part_fn *read, pli_part_fn *push) {
    if (run->heirs == NULL) return plait_job_clock(run->job);
    return pli_inherit_clock(run->heirs->parts, call_read, call_push, &(calling){ read, push });
}

plait_status pli_heirs_living(pli_vertex_run *run, int32_t home, pli_vertex_run **part_out) {
    pli_heirs     *h = run->heirs;
    const int64_t  now = plait_job_clock_now(run->job) + 1;
    void          *part;
    const uint8_t *absent = pli_comm_absentees(plait_job_comm(run->job));
    const bool     held = home == h->me || plait_job_holder(run->job, home, 0) == h->me; /* and was read with the own */
    *part_out = NULL;
    if (pli_heir_of(absent, run->workers, run->job->layout.spares, home, 0) != h->me) return PLAIT_OK;
    PLI_TRY(pli_inherit_part(h->parts, home, &part));
    *part_out = part;
    if (held || h->read_at[home] == now) return PLAIT_OK;
    PLI_TRY(pli_vertex_read(*part_out));
    pli_vertex_tell(*part_out);
    h->read_at[home] = now;
    return PLAIT_OK;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

plait_status pli_heirs_tell(pli_vertex_run *part, double most, int64_t applied) {
    const pli_heirs *h = part->heirs;
    const bool       own = part->rank == h->me;
    int64_t          now[FIGURES] = { 0, applied, own && pli_vertex_is_interrupted(part) };
    memcpy(&now[0], &most, sizeof most);
    return pli_inherit_tell(h->parts, part->rank, now);
}

plait_status pli_heirs_hear(pli_vertex_run *run, pli_outcome *o) {
    const int64_t *figure;
    *o = (pli_outcome){ 0 };
    PLI_TRY(pli_inherit_hear(run->heirs->parts, &figure));
    for (int32_t w = 0; w < run->workers; w++, figure += FIGURES) {
        double most;
        memcpy(&most, &figure[0], sizeof most);
        if (most > o->most) o->most = most;
        o->applied += figure[1];
        o->interrupted = o->interrupted || figure[2] != 0;
    }
    return PLAIT_OK;
}
