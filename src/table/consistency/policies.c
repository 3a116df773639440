/* The registry of consistency policies: "ssp:2" -> policy object. */
#include <string.h>

#include "table/consistency/policies.h"

static const pli_consistency_ops *const policies[] = { &pli_bsp_ops, &pli_ssp_ops, &pli_async_ops, NULL };

const pli_consistency_ops *const *pli_consistencies(void) { return policies; }

plait_status pli_policy_takes_none(const char *name, const char *parameters, plait_error *err) {
    if (parameters == NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "consistency %s takes no parameters, not ':%s'", name, parameters);
}

static plait_status unknown_name(const char *name, plait_error *err) {
    const char *names[16];
    size_t      n = 0;
    for (; policies[n] != NULL && n < 16; n++) names[n] = policies[n]->name;
    const char *nearest = pli_nearest(name, names, n);
    return pli_fail(err, PLAIT_ENAME, "unknown consistency '%s'%s%s%s; known are bsp, ssp:S, async", name,
                    nearest == NULL ? "" : ", did you mean '", nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?");
}

static const pli_consistency_ops *find(const char *spec, size_t length) {
    for (size_t i = 0; policies[i] != NULL; i++)
        if (strlen(policies[i]->name) == length && memcmp(policies[i]->name, spec, length) == 0) return policies[i];
    return NULL;
}

plait_status pli_policy_make(const char *spec, pli_policy *policy_out, plait_error *err) {
    const char *colon = strchr(spec, ':');
    size_t      length = colon == NULL ? strlen(spec) : (size_t)(colon - spec);
    pli_policy  policy = { .ops = find(spec, length) };
    if (policy.ops == NULL) return unknown_name(spec, err);
    if (strlen(spec) >= sizeof policy.spec)
        return pli_fail(err, PLAIT_EINVAL, "consistency '%.20s...' is too long", spec);
    strcpy(policy.spec, spec);
    policy.state = pli_calloc(1, policy.ops->state_bytes);
    if (policy.state == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for consistency %s", spec);
    plait_status status = policy.ops->parse(policy.state, colon == NULL ? NULL : colon + 1, err);
    if (status < 0) {
        pli_free(policy.state);
        return status;
    }
    *policy_out = policy;
    return PLAIT_OK;
}

void pli_policy_destroy(pli_policy *policy) {
    pli_free(policy->state);
    policy->state = NULL;
    policy->ops = NULL;
}
