/* consistency bounded-delay:T - clock c starts only when all pushes of clocks <= c-1-T are applied, and then reads what
 * the owner has at that moment. With T = 0 the model is bsp's, clock by clock. With T > 0 pushes are applied as they
 * come, and a worker may be T clocks ahead of the slowest. Unlike under ssp, a copy is read in one clock only.
 *
 * Paper: Li et al., "Communication Efficient Distributed Machine Learning with the Parameter Server", NIPS 2014. */
#include "table/consistency/policies.h"

struct delay_state {
    int64_t delay;
    int32_t backup; /* with delay 0 only: with more no clock waits for all */
};

static plait_status delay_parse(void *state, const char *parameters, const plait_setting *setting, plait_error *err) {
    struct delay_state *delay = state;
    delay->backup = setting->backup;
    if (pli_policy_counts(parameters, 1, &delay->delay)) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL,
                    "consistency bounded-delay:T needs a delay T >= 0, such as bounded-delay:2, not '%s'",
                    parameters == NULL ? "" : parameters);
}

static plait_apply delay_applies(const void *state) {
    return ((const struct delay_state *)state)->delay == 0 ? PLAIT_APPLY_AT_CLOCK : PLAIT_APPLY_NOW;
}

static plait_properties delay_promises(const void *state) {
    const bool is_bsp = ((const struct delay_state *)state)->delay == 0;
    return is_bsp ? PLI_PROMISES_OF_BSP : PLAIT_BOUNDED_READS | PLAIT_OWN_WRITES | PLAIT_BY_SUMS | PLAIT_REPLAYABLE;
}

static plait_read delay_on_get(void *state, const plait_view *view) {
    (void)state;
    return view->fetched == view->clock ? PLAIT_SERVE : PLAIT_FETCH;
}

static plait_read delay_on_pull(void *state, const plait_view *view) {
    const struct delay_state *delay = state;
    int64_t                   whole = delay->delay == 0 ? view->applied : view->slowest;
    return whole >= view->clock - delay->delay ? PLAIT_SERVE : PLAIT_WAIT;
}

static int64_t delay_complete(const void *state, const plait_view *view) {
    const struct delay_state *delay = state;
    return delay->delay == 0 ? pli_policy_complete_without(delay->backup, view) : view->slowest;
}

const plait_consistency pli_bounded_delay_policy = {
    .name = "bounded-delay",
    .parameters = ":T",
    .summary = "clock c starts when all updates of clocks <= c-1-T are applied; a get reads the current values",
    .state_bytes = sizeof(struct delay_state),
    .waits_for_slowest = 1,
    .parse = delay_parse,
    .promises = delay_promises,
    .applies = delay_applies,
    .worker.on_get = delay_on_get,
    .server.on_pull = delay_on_pull,
    .server.complete = delay_complete,
};
