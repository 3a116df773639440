/* consistency local-sgd:H - each worker updates its own copy of the values by the table's rule for H clocks, a *round*;
 * then all workers' values are averaged. The first clock of a round starts when every worker's part of the round before
 * is there; the other clocks start at once. The table's topology carries the averages (topology/local_sgd.c,
 * topology/gossip.c); with H = 1 and a rule that keeps no state the model is bsp's.
 *
 * Papers: McDonald, Hall, Mann, "Distributed Training Strategies for the Structured Perceptron", NAACL 2010 (iterative
 * parameter mixing); Stich, "Local SGD Converges Fast and Communicates Little", ICLR 2019. */
#include "table/consistency/policies.h"

struct local_state {
    int64_t clocks; /* clocks of one round */
};

static plait_status local_parse(void *state, const char *parameters, const plait_setting *setting, plait_error *err) {
    struct local_state *local = state;
    (void)setting;
    if (pli_policy_counts(parameters, 1, &local->clocks) && local->clocks > 0) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL,
                    "consistency local-sgd:H needs a number of clocks H >= 1, such as local-sgd:8, not '%s'",
                    parameters == NULL ? "" : parameters);
}

static plait_apply local_applies(const void *state) {
    (void)state;
    return PLAIT_APPLY_AT_CLOCK;
}

static plait_properties local_promises(const void *state) {
    (void)state;
    return PLAIT_BOUNDED_READS | PLAIT_OWN_WRITES | PLAIT_BY_SUMS | PLAIT_REPLAYABLE;
}

static plait_read local_on_get(void *state, const plait_view *view) {
    (void)state;
    return view->fetched == view->clock ? PLAIT_SERVE : PLAIT_FETCH;
}

static plait_read local_on_pull(void *state, const plait_view *view) {
    const struct local_state *local = state;
    return view->applied >= view->clock - view->clock % local->clocks ? PLAIT_SERVE : PLAIT_WAIT;
}

const plait_consistency pli_local_sgd_policy = {
    .name = "local-sgd",
    .parameters = ":H",
    .summary = "each worker updates its own mirror for H clocks, then the mirrors of all workers are averaged",
    .state_bytes = sizeof(struct local_state),
    .waits_for_slowest = 1,
    .averages = 1,
    .parse = local_parse,
    .promises = local_promises,
    .applies = local_applies,
    .worker.on_get = local_on_get,
    .server.on_pull = local_on_pull,
};
