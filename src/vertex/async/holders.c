/* Which workers have edges along which an own vertex is gathered: they hear of its changes. See async.h.
 *
 * The rows of a whole graph say it. Where a process has a part alone, each worker in turn tells all others which
 * vertices it reads, a bit for each vertex; who is asked then, and who comes last, is the same for both. */
#include "comm/comm.h"
#include "vertex/async/async.h"
#include "vertex/bits.h"

/* Calls note(user, i, p) for own vertex i (from 0) and worker p that gathers from it, with p increasing. */
typedef struct finding {
    pli_async *a;
    int32_t   *last;  /* [owned] the worker that came last; -1: none */
    int64_t   *count; /* [owned] */
    bool       fill;
} finding;

static void note(finding *f, int64_t i, int32_t p) {
    if (f->last[i] == p) return;
    f->last[i] = p;
    if (f->fill) f->a->holder[f->a->holder_start[i] + f->count[i]] = p;
    f->count[i]++;
}

/* Goes through the rows of a whole graph, by their owners. */
static void see_rows(finding *f) {
    const plait_vertex_cut *cut = f->a->run->cut;
    const pli_neighbors    *h = &cut->rows;
    const int64_t           first = cut->first[f->a->run->rank], owned = f->a->run->part.owned;
    for (int32_t p = 0; p < cut->parts; p++)
        for (int64_t k = h->start[cut->first[p]]; k < h->start[cut->first[p + 1]]; k++) {
            const int64_t i = (int64_t)h->near[k] - first;
            if (i >= 0 && i < owned) note(f, i, p);
        }
}

/* The vertices in own rows. */
static void set_read(const pli_part *part, uint64_t *bits) {
    for (int64_t v = part->own; v < part->own + part->owned; v++)
        for (int64_t k = part->rows.start[v]; k < part->rows.start[v + 1]; k++)
            pli_bit_set(bits, (size_t)pli_part_vertex(part, part->rows.near[k]));
}

static plait_status hear_workers(finding *f, uint64_t *bits) {
    const pli_vertex_run *run = f->a->run;
    plait_comm           *comm = plait_job_comm(run->job);
    const size_t          bytes = pli_bit_words(run->edges->n) * sizeof *bits;
    const int64_t         first = run->cut->first[run->rank];
    for (int32_t p = 0; p < run->workers; p++) {
        if (run->cut->first[p] == run->cut->first[p + 1]) continue; /* it has no row: of those that have died, too */
        memset(bits, 0, bytes);
        if (p == run->rank) set_read(&run->part, bits);
        PLI_TRY(plait_comm_broadcast(comm, bits, bytes, p));
        for (int64_t i = 0; i < run->part.owned; i++)
            if (pli_bit_is(bits, (size_t)(first + i))) note(f, i, p);
    }
    return PLAIT_OK;
}

/* Both passes: count, then fill. */
static plait_status pass(finding *f, uint64_t *bits, bool fill) {
    for (int64_t i = 0; i < f->a->run->part.owned; i++) {
        f->last[i] = -1;
        f->count[i] = 0;
    }
    f->fill = fill;
    if (bits != NULL) return hear_workers(f, bits);
    see_rows(f);
    return PLAIT_OK;
}

static plait_status find(finding *f, uint64_t *bits, size_t owned) {
    pli_async *a = f->a;
    PLI_TRY(pass(f, bits, false));
    for (size_t i = 0; i < owned; i++) a->holder_start[i + 1] = a->holder_start[i] + f->count[i];
    a->holder = pli_array((size_t)a->holder_start[owned], sizeof *a->holder);
    if (a->holder == NULL) return PLAIT_ENOMEM;
    return pass(f, bits, true);
}

plait_status pli_async_holders(pli_async *a) {
    const pli_vertex_run *run = a->run;
    const size_t          owned = (size_t)run->part.owned;
    const bool            parts = run->edges->again != NULL;
    finding      f = { .a = a, .last = pli_array(owned, sizeof *f.last), .count = pli_array(owned, sizeof *f.count) };
    uint64_t    *bits = parts ? pli_array(pli_bit_words(run->edges->n), sizeof *bits) : NULL;
    plait_status status = PLAIT_ENOMEM;
    a->holder_start = pli_calloc(owned + 1, sizeof *a->holder_start);
    if (f.last != NULL && f.count != NULL && a->holder_start != NULL && (!parts || bits != NULL))
        status = find(&f, bits, owned);
    pli_free(f.last);
    pli_free(f.count);
    pli_free(bits);
    return status;
}
