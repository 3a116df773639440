/* consistency ssp:S - stale synchronous parallel: a get in clock c contains every update of clocks <= c-1-S. A worker
 * may run S clocks ahead of the slowest. It may read a copy again until the copy is S clocks old, so most gets cost no
 * message (if the worker's own updates can be added to the copy).
 *
 * Paper: Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013. */
#include "table/consistency/policies.h"

struct ssp_state {
    int64_t bound;
};

static plait_status ssp_parse(void *state, const char *parameters, const plait_setting *setting, plait_error *err) {
    struct ssp_state *ssp = state;
    (void)setting;
    if (pli_policy_counts(parameters, 1, &ssp->bound)) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "consistency ssp:S needs a staleness bound S >= 0, such as ssp:2, not '%s'",
                    parameters == NULL ? "" : parameters);
}

static int ssp_reuses(const void *state) { return ((const struct ssp_state *)state)->bound > 0; }

static plait_properties ssp_promises(const void *state) {
    (void)state;
    return PLAIT_BOUNDED_READS | PLAIT_OWN_WRITES | PLAIT_REPLAYABLE;
}

static plait_read ssp_on_get(void *state, const plait_view *view) {
    const struct ssp_state *ssp = state;
    return view->held >= view->clock - ssp->bound ? PLAIT_SERVE : PLAIT_FETCH;
}

static plait_read ssp_on_pull(void *state, const plait_view *view) {
    const struct ssp_state *ssp = state;
    return view->slowest >= view->clock - ssp->bound ? PLAIT_SERVE : PLAIT_WAIT;
}

const plait_consistency pli_ssp_policy = {
    .name = "ssp",
    .parameters = ":S",
    .summary = "a get in clock c contains all updates of clocks <= c-1-S",
    .state_bytes = sizeof(struct ssp_state),
    .waits_for_slowest = 1,
    .parse = ssp_parse,
    .promises = ssp_promises,
    .reuses = ssp_reuses,
    .worker.on_get = ssp_on_get,
    .server.on_pull = ssp_on_pull,
};
