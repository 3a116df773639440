/* Simulates a setting with each seed, and foretells the whole job from it. */
#include "cli/plan.h"

#include <math.h>
#include <stdlib.h>

static int by_clock(const void *left, const void *right) {
    const pli_foretold *a = left, *b = right;
    const double        x = a->seconds / (double)a->clocks, y = b->seconds / (double)b->clocks;
    return (x > y) - (x < y);
}

/* Fills the setting from its runs, in order of time. */
static void foretell(const pli_plan *plan, pli_plan_setting *s, const pli_foretold *run, int64_t n) {
    const pli_foretold *middle = &run[n / 2], *last = &run[n - 1];
    const double        clocks = (double)middle->clocks;
    const double        all = middle->ended ? clocks : (double)middle->all_clocks;
    s->typical = *middle;
    s->clock_seconds = middle->seconds / clocks * plan->misses.middle;
    s->low = run[0].seconds / (double)run[0].clocks * plan->misses.least;
    s->high = last->seconds / (double)last->clocks * plan->misses.most;
    s->seconds = s->clock_seconds * all;
    s->bytes = middle->bytes / clocks * all;
    s->cost = s->seconds / 3600 * plan->set.price * (s->workers + s->servers);
}

plait_status pli_plan_simulate(pli_plan *plan, pli_plan_setting *setting, plait_error *err) {
    pli_foretold   run[PLI_PLAN_SEEDS];
    int64_t        n = 0;
    pli_train_plan own = plan->plan;
    pli_ahead      ahead = { .plan = &own, .data = plan->data, .pair = setting->pair, .workers = setting->workers,
                             .clocks = plan->set.clocks, .target = NAN };
    own.comm.servers = setting->servers;
    if (setting->filter[0] != '\0') own.train.filter = setting->filter;
    if (setting->collective[0] != '\0') own.comm.collective = setting->collective;
    for (; n < plan->set.seeds; n++) {
        ahead.seed = ahead.stragglers = (uint64_t)(plan->job.seed + n);
        PLI_TRY(pli_foretell(&ahead, &run[n], NULL, err));
        if (run[n].status >= 0) continue;
        setting->typical = run[n];
        setting->done = true;
        return PLAIT_OK;
    }
    qsort(run, (size_t)n, sizeof *run, by_clock);
    foretell(plan, setting, run, n);
    setting->done = true;
    return PLAIT_OK;
}
