/* consistency ssp:S - stale synchronous parallel: a get in clock c contains every update of clocks <= c-1-S. A
 * worker may run S clocks ahead of the slowest; what it holds it may read again until it is S clocks old, so most
 * gets cost no message (where the worker's own updates can be laid over the copy).
 *
 * Paper: Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013. */
#include "table/consistency/policies.h"

struct ssp_state {
    int64_t bound;
};

static plait_status ssp_parse(void *state, const char *parameters, plait_error *err) {
    struct ssp_state *ssp = state;
    int64_t           bound;
    if (parameters == NULL || !pli_parse_i64(parameters, &bound) || bound < 0 || bound > PLI_CLOCKS_MAX)
        return pli_fail(err, PLAIT_EINVAL, "consistency ssp:S needs a staleness bound S >= 0, such as ssp:2, not '%s'",
                        parameters == NULL ? "" : parameters);
    ssp->bound = bound;
    return PLAIT_OK;
}

static bool ssp_reuses(const void *state) { return ((const struct ssp_state *)state)->bound > 0; }

static pli_read ssp_on_get(void *state, const pli_view *view) {
    const struct ssp_state *ssp = state;
    return view->held >= view->clock - ssp->bound ? PLI_SERVE : PLI_FETCH;
}

static pli_read ssp_on_pull(void *state, const pli_view *view) {
    const struct ssp_state *ssp = state;
    return view->slowest >= view->clock - ssp->bound ? PLI_SERVE : PLI_WAIT;
}

const pli_consistency_ops pli_ssp_ops = {
    .name = "ssp",
    .state_bytes = sizeof(struct ssp_state),
    .parameters = ":S",
    .summary = "a get in clock c contains all updates of clocks <= c-1-S",
    .apply = PLI_APPLY_NOW,
    .parse = ssp_parse,
    .reuses = ssp_reuses,
    .on_get = ssp_on_get,
    .on_pull = ssp_on_pull,
};
