/* consistency essp:S - eager stale synchronous parallel: the same bound as ssp:S, a get in clock c contains every
 * update of clocks <= c-1-S, but the shards do not wait to be asked. Whenever the lowest clock advances, they push to
 * each worker the rows that it has read before. So most gets find a fresh copy, and copies are rarely as old as they
 * may be. A worker does not take a copy that lacks its own pushes; it pulls instead.
 *
 * Paper: Dai et al., "High-Performance Distributed ML at Scale through Parameter Server Consistency Models", AAAI
 * 2015. */
#include "table/consistency/policies.h"

struct essp_state {
    int64_t bound;
    int64_t pushed; /* server: the lowest clock when rows were last pushed */
};

static plait_status essp_parse(void *state, const char *parameters, const plait_setting *setting, plait_error *err) {
    struct essp_state *essp = state;
    (void)setting;
    if (pli_policy_counts(parameters, 1, &essp->bound)) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "consistency essp:S needs a staleness bound S >= 0, such as essp:2, not '%s'",
                    parameters == NULL ? "" : parameters);
}

static int essp_reuses(const void *state) {
    (void)state;
    return 1;
}

static plait_properties essp_promises(const void *state) {
    (void)state;
    return PLAIT_BOUNDED_READS | PLAIT_OWN_WRITES | PLAIT_REPLAYABLE;
}

static plait_read essp_on_get(void *state, const plait_view *view) {
    const struct essp_state *essp = state;
    return view->held >= view->clock - essp->bound ? PLAIT_SERVE : PLAIT_FETCH;
}

static plait_read essp_on_pull(void *state, const plait_view *view) {
    const struct essp_state *essp = state;
    return view->slowest >= view->clock - essp->bound ? PLAIT_SERVE : PLAIT_WAIT;
}

static int essp_on_clock(void *state, const plait_view *view) {
    struct essp_state *essp = state;
    if (view->slowest <= essp->pushed || view->slowest == PLAIT_LEFT) return 0;
    essp->pushed = view->slowest;
    return PLAIT_REFRESH;
}

const plait_consistency pli_essp_policy = {
    .name = "essp",
    .parameters = ":S",
    .summary = "ssp:S, and shards send a worker the rows that it reads whenever the slowest worker advances",
    .state_bytes = sizeof(struct essp_state),
    .refreshes = 1,
    .waits_for_slowest = 1,
    .parse = essp_parse,
    .promises = essp_promises,
    .reuses = essp_reuses,
    .worker.on_get = essp_on_get,
    .server.on_pull = essp_on_pull,
    .server.on_clock = essp_on_clock,
};
