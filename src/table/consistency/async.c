/* consistency async - no bound: every get fetches what the owner has at that moment, and nobody waits for anybody.
 * Over shared memory the workers write the values in place, without locks (Hogwild).
 *
 * Papers: Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012; Niu et al., "Hogwild!", NIPS 2011. */
#include "table/consistency/policies.h"

static plait_status async_parse(void *state, const char *parameters, plait_error *err) {
    (void)state;
    return pli_policy_takes_none("async", parameters, err);
}

static pli_read async_on_get(void *state, const pli_view *view) {
    (void)state;
    (void)view;
    return PLI_FETCH;
}

static pli_read async_on_pull(void *state, const pli_view *view) {
    (void)state;
    (void)view;
    return PLI_SERVE;
}

const pli_consistency_ops pli_async_ops = {
    .name = "async",
    .parameters = "",
    .summary = "no bound; over local memory workers write in place (Hogwild)",
    .apply = PLI_APPLY_NOW,
    .shares_memory = true,
    .parse = async_parse,
    .on_get = async_on_get,
    .on_pull = async_on_pull,
};
