/* consistency async - no bound: every get fetches what the owner has at that moment, and nobody waits for anybody.
 * Over shared memory the workers write the values in place, without locks (Hogwild).
 *
 * Papers: Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012; Niu et al., "Hogwild!", NIPS 2011. */
#include "table/consistency/policies.h"

static plait_status async_parse(void *state, const char *parameters, const plait_setting *setting, plait_error *err) {
    (void)state, (void)setting;
    return pli_policy_takes_none("async", parameters, err);
}

static plait_properties async_promises(const void *state) {
    (void)state;
    return PLAIT_REPLAYABLE | PLAIT_ANY_READ;
}

static plait_read async_on_get(void *state, const plait_view *view) {
    (void)state, (void)view;
    return PLAIT_FETCH;
}

static plait_read async_on_pull(void *state, const plait_view *view) {
    (void)state, (void)view;
    return PLAIT_SERVE;
}

const plait_consistency pli_async_policy = {
    .name = "async",
    .parameters = "",
    .summary = "no bound; over local memory workers write in place (Hogwild)",
    .waits_for_slowest = 1,
    .parse = async_parse,
    .promises = async_promises,
    .shares_memory = 1,
    .worker.on_get = async_on_get,
    .server.on_pull = async_on_pull,
};
