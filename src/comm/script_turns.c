/* When workers join and leave, as a cluster's file has it. A worker is as the last event says that names it; of two at
 * the same time the later one in the file counts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "comm/cluster.h"

static bool is_turn(const pli_mishap *m) { return m->kind == PLI_COMES || m->kind == PLI_GOES; }

static bool names(const pli_mishap *m, int32_t worker) {
    return m->last < 0 || (worker >= m->first && worker <= m->last);
}

bool pli_script_has_turns(const pli_cluster *c) {
    bool has = false;
    for (int64_t i = 0; i < c->mishaps; i++) has = has || is_turn(&c->mishap[i]);
    return has;
}

bool pli_script_wants(const pli_cluster *c, int32_t worker, bool first, double now) {
    double since = -1;
    bool   wants = first;
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        if (!is_turn(m) || !names(m, worker) || m->from > now || m->from < since) continue;
        since = m->from;
        wants = m->kind == PLI_COMES;
    }
    return wants;
}

double pli_script_next_join(const pli_cluster *c, int32_t worker, double now) {
    double next = INFINITY;
    for (int64_t i = 0; i < c->mishaps; i++) {
        const pli_mishap *m = &c->mishap[i];
        if (m->kind == PLI_COMES && names(m, worker) && m->from > now && m->from < next) next = m->from;
    }
    return next;
}

/* --- is it possible? ---------------------------------------------------------------------------------------------- */

typedef struct roster {
    const pli_cluster *cluster;
    int32_t            workers, slots, n_in; /* the dead are counted as they were when they died */
    uint8_t           *in;                   /* [workers]                                         */
    plait_error       *err;
} roster;

static plait_status refuse(const roster *r, const pli_mishap *m, int32_t worker, const char *why) {
    return pli_fail(r->err, PLAIT_EINVAL, "%.100s:%d: %s: rank %d %s at %.9g s", r->cluster->path, m->line,
                    m->kind == PLI_COMES ? "join" : "leave", worker, why, m->from);
}

static plait_status turn(roster *r, const pli_mishap *m, int32_t worker) {
    const bool comes = m->kind == PLI_COMES;
    if (pli_script_death(r->cluster, worker) <= m->from) return refuse(r, m, worker, "is dead, or only votes,");
    if (comes == (r->in[worker] != 0)) return refuse(r, m, worker, comes ? "is in" : "is away");
    r->in[worker] = comes;
    r->n_in += comes ? 1 : -1;
    if (r->n_in >= r->workers - r->slots) return PLAIT_OK;
    return pli_fail(r->err, PLAIT_EINVAL,
                    "%.100s:%d: leave: without rank %d only %d worker%s would be in at %.9g s; --workers %d:%d wants "
                    "%d at least",
                    r->cluster->path, m->line, worker, r->n_in, pli_plural(r->n_in), m->from,
                    r->workers - r->slots, r->workers,
                    r->workers - r->slots);
}

static plait_status turns(roster *r, const pli_mishap *m) {
    const int32_t last = m->last < 0 ? r->workers - 1 : m->last;
    if (last >= r->workers)
        return pli_fail(r->err, PLAIT_EINVAL, "%.100s:%d: %s: rank %d only serves; workers are ranks 0 to %d",
                        r->cluster->path, m->line, m->kind == PLI_COMES ? "join" : "leave", last, r->workers - 1);
    for (int32_t worker = m->first; worker <= last; worker++) PLI_TRY(turn(r, m, worker));
    return PLAIT_OK;
}

static int by_time(const void *a, const void *b) {
    const pli_mishap *x = *(const pli_mishap *const *)a, *y = *(const pli_mishap *const *)b;
    return x->from != y->from ? (x->from > y->from) - (x->from < y->from) : (x > y) - (x < y);
}

/* All turns [n], in the order in which they come. */
static plait_status play(roster *r, const pli_mishap **all) {
    int64_t n = 0;
    for (int64_t i = 0; i < r->cluster->mishaps; i++)
        if (is_turn(&r->cluster->mishap[i])) all[n++] = &r->cluster->mishap[i];
    qsort(all, (size_t)n, sizeof *all, by_time);
    memset(r->in, 1, (size_t)(r->workers - r->slots));
    for (int64_t i = 0; i < n; i++) PLI_TRY(turns(r, all[i]));
    return PLAIT_OK;
}

plait_status pli_script_check_turns(const pli_cluster *c, int32_t workers, int32_t slots, plait_error *err) {
    roster r = { .cluster = c, .workers = workers, .slots = slots, .n_in = workers - slots, .err = err };
    for (int64_t i = 0; slots == 0 && i < c->mishaps; i++)
        if (is_turn(&c->mishap[i]))
            return pli_fail(err, PLAIT_EINVAL,
                            "%.100s:%d: %s is refused: this job has a fixed number of workers; nearest is --workers "
                            "MIN:MAX (plait_job_opts.slots)",
                            c->path, c->mishap[i].line, c->mishap[i].kind == PLI_COMES ? "join" : "leave");
    if (!pli_script_has_turns(c)) return PLAIT_OK;
    const pli_mishap **all = pli_array((size_t)c->mishaps, sizeof *all);
    r.in = pli_calloc((size_t)workers, 1);
    const plait_status status =
        all != NULL && r.in != NULL ? play(&r, all) : pli_fail(err, PLAIT_ENOMEM, "no memory for a list of workers");
    pli_free(r.in);
    pli_free(all);
    return status;
}
