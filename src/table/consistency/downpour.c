/* consistency downpour:F:P - each worker computes on a copy of its own. It fetches the copy every F clocks, and pushes
 * its gathered updates every P clocks. In between it applies its own gradients to its copy, so it always sees its own
 * writes. Nobody waits for anybody. Barriers and departures push what is left.
 *
 * Paper: Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012 (Downpour SGD; its appendix has the
 * client). */
#include "table/consistency/policies.h"

struct downpour_state {
    int64_t every[2]; /* clocks from fetch to fetch, from push to push */
};

static plait_status downpour_parse(void *state, const char *parameters, const plait_setting *setting,
                                   plait_error *err) {
    struct downpour_state *downpour = state;
    (void)setting;
    if (pli_policy_counts(parameters, 2, downpour->every) && downpour->every[0] > 0 && downpour->every[1] > 0)
        return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL,
                    "consistency downpour:F:P needs the clocks between fetches and between pushes, both >= 1, such as "
                    "downpour:5:5, not '%s'",
                    parameters == NULL ? "" : parameters);
}

static int downpour_reuses(const void *state) { return ((const struct downpour_state *)state)->every[0] > 1; }

static plait_properties downpour_promises(const void *state) {
    (void)state;
    return PLAIT_OWN_WRITES | PLAIT_REPLAYABLE;
}

static plait_read downpour_on_get(void *state, const plait_view *view) {
    const struct downpour_state *downpour = state;
    return view->clock - view->fetched < downpour->every[0] ? PLAIT_SERVE : PLAIT_FETCH;
}

static plait_end downpour_on_clock(void *state, const plait_view *view) {
    const struct downpour_state *downpour = state;
    return (view->clock + 1) % downpour->every[1] == 0 ? PLAIT_END_SEND : PLAIT_END_KEEP;
}

static plait_read downpour_on_pull(void *state, const plait_view *view) {
    (void)state, (void)view;
    return PLAIT_SERVE;
}

const plait_consistency pli_downpour_policy = {
    .name = "downpour",
    .parameters = ":F:P",
    .summary = "each worker fetches every F clocks, pushes every P clocks, and computes on its own copy in between",
    .state_bytes = sizeof(struct downpour_state),
    .sees_own = 1,
    .waits_for_slowest = 1,
    .parse = downpour_parse,
    .promises = downpour_promises,
    .reuses = downpour_reuses,
    .worker.on_get = downpour_on_get,
    .worker.on_clock = downpour_on_clock,
    .server.on_pull = downpour_on_pull,
};
