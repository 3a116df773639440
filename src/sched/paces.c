/* Leases by speed: in each step a worker gets as many variables as its speed allows, so that all are done at about the
 * same time (Kim et al., EuroSys 2016, section 3.3).
 *
 * A worker measures how long it computes on a variable, without its waits: these would make a fast worker look slow.
 * Every EVERY steps it tells its pace in a table, and all read the paces one step later, when they are whole. So all
 * know the same numbers in the same step, and make the same plan. A worker that had no variables for so long tells half
 * of its pace, until it is tried again: it may be slow no longer.
 *
 * With two replicas paces go by a collective, since nobody could stand in for what a dead worker knew of itself. A
 * worker that is dead for the collective gets no more variables, in all plans from the same step on. */
#include "sched/sched.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "table/table.h"

enum { EVERY = 4 };

plait_status pli_paces_make(plait_schedule *s) {
    plait_table_opts t;
    char             name[64];
    if (!s->opts.leases) return PLAIT_OK;
    s->pace.known = pli_array((size_t)s->workers, sizeof *s->pace.known);
    if (s->pace.known == NULL) return pli_fail(s->err, PLAIT_ENOMEM, "%s: no memory for paces", s->name);
    for (int32_t w = 0; w < s->workers; w++) s->pace.known[w] = 1;
    if (s->copied) return PLAIT_OK;
    plait_table_opts_init(&t);
    snprintf(name, sizeof name, "%s.pace", s->name);
    t.name = name;
    t.type = PLAIT_F64;
    t.rows = s->workers;
    t.keyed = 1;
    t.filter = "";
    t.initial = s->pace.known;
    return plait_table_create(s->job, &t, &s->pace.table);
}

void pli_paces_begin(plait_schedule *s) {
    if (s->opts.leases) s->pace.began_ns = pli_comm_own_ns(s->job->comm);
}

void pli_paces_end(plait_schedule *s, int64_t n) {
    if (!s->opts.leases) return;
    s->pace.seconds += (double)(pli_comm_own_ns(s->job->comm) - s->pace.began_ns) * 1e-9;
    s->pace.variables += n;
}

plait_status pli_paces_tell(plait_schedule *s) {
    pli_paces     *p = &s->pace;
    const uint64_t key = (uint64_t)s->rank;
    if (!s->opts.leases || s->step == 0 || s->step % EVERY != 0) return PLAIT_OK;
    const double lately = p->variables > 0 ? p->seconds / (double)p->variables : p->told / 2;
    if (!(lately > 0) || !isfinite(lately)) return PLAIT_OK; /* its clock has not moved */
    const double pace = p->told > 0 && p->variables > 0 ? (p->told + lately) / 2 : lately;
    const double more = pace - (p->told > 0 ? p->told : 1);
    p->told += p->told > 0 ? more : 1 + more;
    p->seconds = 0;
    p->variables = 0;
    return s->copied ? PLAIT_OK : plait_table_inc(p->table, 1, &key, &more, 0);
}

static plait_status ask_paces(plait_schedule *s) {
    pli_paces *p = &s->pace;
    if (!s->copied) return plait_table_get_range(p->table, 0, s->workers, p->known);
    PLI_TRY(plait_comm_allgather(s->job->comm, &p->told, sizeof p->told, p->known));
    for (int32_t w = 0; w < s->workers; w++)
        if (pli_comm_is_absent(s->job->comm, w)) p->known[w] = INFINITY;
    return PLAIT_OK;
}

/* Paces count once all workers have told one. They begin at 1, in no unit. */
plait_status pli_paces_hear(plait_schedule *s) {
    pli_paces *p = &s->pace;
    if (!s->opts.leases || s->step < EVERY || s->step % EVERY != 1) return PLAIT_OK;
    PLI_TRY(ask_paces(s));
    bool all = true;
    for (int32_t w = 0; w < s->homes; w++) all = all && p->known[w] > 0 && p->known[w] != 1;
    for (int32_t w = 0; w < s->homes && !all; w++)
        if (isfinite(p->known[w])) p->known[w] = 1;
    double speed = 0, least = INFINITY;
    for (int32_t w = 0; w < s->homes; w++) {
        speed += 1 / p->known[w];
        least = fmin(least, p->known[w]);
    }
    p->share = 1 / speed;
    p->least = least;
    return PLAIT_OK;
}

/* With speeds, a step of n variables takes n shares of time; nobody gets more than that and its quickest's variable. */
double pli_paces_most(const plait_schedule *s) {
    const pli_paces *p = &s->pace;
    if (!(p->share > 0)) return (double)s->take / s->homes + 1;
    return (double)s->take * p->share + p->least;
}
