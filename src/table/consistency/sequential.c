/* consistency sequential - workers take turns in rank order: in each clock worker 0 first, then 1, and so on, and each
 * get sees every push of an earlier turn. A turn begins with the worker's first get or inc of the clock and ends with
 * the clock, so a run is one long chain of single steps: what a sequential program would compute, for comparison.
 *
 * Paper: Lamport, "How to Make a Multiprocessor Computer That Correctly Executes Multiprocess Programs", 1979. */
#include "table/consistency/policies.h"

static plait_status sequential_parse(void *state, const char *parameters, const plait_setting *setting,
                                     plait_error *err) {
    (void)state, (void)setting;
    return pli_policy_takes_none("sequential", parameters, err);
}

static plait_properties sequential_promises(const void *state) {
    (void)state;
    return PLAIT_BOUNDED_READS | PLAIT_OWN_WRITES | PLAIT_VALUES | PLAIT_REPLAYABLE;
}

static plait_read sequential_on_get(void *state, const plait_view *view) {
    (void)state;
    return view->fetched == view->clock ? PLAIT_SERVE : PLAIT_FETCH;
}

static int sequential_on_inc(void *state, const plait_view *view) {
    (void)state, (void)view;
    return PLAIT_TURN;
}

/* A worker's turn has come when those before it have ended this clock, and those behind it have ended all earlier
 * ones. */
static plait_read sequential_on_pull(void *state, const plait_view *view) {
    (void)state;
    for (int32_t w = 0; w < view->workers; w++)
        if (view->clocks[w] < view->clock + (w < view->worker)) return PLAIT_WAIT;
    return PLAIT_SERVE;
}

const plait_consistency pli_sequential_policy = {
    .name = "sequential",
    .parameters = "",
    .summary = "workers take turns in rank order; each get sees every earlier push",
    .parse = sequential_parse,
    .promises = sequential_promises,
    .worker.on_get = sequential_on_get,
    .worker.on_inc = sequential_on_inc,
    .server.on_pull = sequential_on_pull,
};
