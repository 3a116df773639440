/* Searches the settings that nobody listed. CherryPick (Alipourfard et al., NSDI 2017) and Ernest (Venkataraman et al.,
 * NSDI 2016) run a job on real machines, so each look is dear: the one fits a Gaussian process, the other a model of
 * time by the number of machines. A look here is a simulation, so the search is plain: from the shortest of the listed
 * settings it takes one step at a time, in the number of workers, servers, a filter or the collective, and stays where
 * the job got shorter, until no step helps. So a filter that costs more time than it saves is never kept. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/plan.h"
#include "comm/forms/forms.h"
#include "table/topology/topology.h"

/* They change nothing of what is learnt. Other filters may need more clocks, which a plan does not see. */
static const char *const filters[] = { "key-cache", "key-cache,key-delta", NULL };

static bool ran(const pli_plan_setting *s) { return s->done && s->typical.status >= 0; }

static pli_plan_setting *shortest(pli_plan *plan) {
    pli_plan_setting *best = NULL;
    for (int32_t i = 0; i < plan->n; i++) {
        pli_plan_setting *s = &plan->setting[i];
        if (ran(s) && (best == NULL || s->seconds < best->seconds)) best = s;
    }
    return best;
}

static bool same(const pli_plan_setting *a, const pli_plan_setting *b) {
    return a->workers == b->workers && a->servers == b->servers && strcmp(a->filter, b->filter) == 0 &&
           strcmp(a->collective, b->collective) == 0 && strcmp(a->pair.topology, b->pair.topology) == 0 &&
           strcmp(a->pair.consistency, b->pair.consistency) == 0;
}

/* Simulates a setting that has not been yet. */
static plait_status look_at(pli_plan *plan, pli_plan_setting next, plait_error *err) {
    next.done = false;
    next.searched = true;
    for (int32_t i = 0; i < plan->n; i++)
        if (same(&plan->setting[i], &next)) return PLAIT_OK;
    if (plan->n == PLI_PLAN_SETTINGS) return PLAIT_OK;
    pli_plan_setting *s = &plan->setting[plan->n++];
    *s = next;
    return pli_plan_simulate(plan, s, err);
}

static bool has_servers(const pli_topology_kind *kind) {
    return kind->on_servers || (kind->sparse != NULL && kind->sparse->on_servers);
}

static bool has_sums(const pli_topology_kind *kind) {
    const pli_topology_kind *dense = kind->dense != NULL ? kind->dense : kind;
    return !dense->on_servers && !dense->averages && !dense->one_process;
}

static plait_status step_workers(pli_plan *plan, pli_plan_setting at, plait_error *err) {
    const int32_t now = at.workers;
    if (!plan->free_workers) return PLAIT_OK;
    at.workers = 2 * now;
    if (at.workers <= 4096) PLI_TRY(look_at(plan, at, err));
    at.workers = now / 2;
    return at.workers > 0 ? look_at(plan, at, err) : PLAIT_OK;
}

static plait_status step_servers(pli_plan *plan, pli_plan_setting at, plait_error *err) {
    const int32_t now = at.servers;
    if (!plan->free_servers || !has_servers(pli_topology_find(at.pair.topology))) return PLAIT_OK;
    at.servers = now > 0 ? 2 * now : 1;
    if (at.servers <= at.workers) PLI_TRY(look_at(plan, at, err));
    at.servers = now / 2;
    return now > 0 ? look_at(plan, at, err) : PLAIT_OK;
}

static plait_status step_filter(pli_plan *plan, pli_plan_setting at, plait_error *err) {
    if (!plan->free_filter || !has_servers(pli_topology_find(at.pair.topology))) return PLAIT_OK;
    for (const char *const *name = filters; *name != NULL; name++) {
        snprintf(at.filter, sizeof at.filter, "%s", *name);
        PLI_TRY(look_at(plan, at, err));
    }
    return PLAIT_OK;
}

static plait_status step_collective(pli_plan *plan, pli_plan_setting at, plait_error *err) {
    if (!plan->free_collective || at.workers < 2 || !has_sums(pli_topology_find(at.pair.topology))) return PLAIT_OK;
    for (int i = 0; i < PLI_FORMS; i++) {
        snprintf(at.collective, sizeof at.collective, "%s", pli_forms[i]->name);
        PLI_TRY(look_at(plan, at, err));
    }
    return PLAIT_OK;
}

static plait_status step(pli_plan *plan, const pli_plan_setting *from, plait_error *err) {
    PLI_TRY(step_workers(plan, *from, err));
    PLI_TRY(step_servers(plan, *from, err));
    PLI_TRY(step_filter(plan, *from, err));
    return step_collective(plan, *from, err);
}

plait_status pli_plan_search(pli_plan *plan, plait_error *err) {
    const pli_plan_setting *before = NULL;
    for (pli_plan_setting *best = shortest(plan); best != NULL && best != before; best = shortest(plan)) {
        before = best;
        PLI_TRY(step(plan, best, err));
    }
    return PLAIT_OK;
}
