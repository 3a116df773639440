/* The registry of consistency policies: "ssp:2" -> policy object. */
#include <stdio.h>
#include <string.h>

#include "table/consistency/policies.h"

static const pli_consistency_ops *const policies[] = { &pli_bsp_ops, &pli_ssp_ops, &pli_async_ops, NULL };

const pli_consistency_ops *const *pli_consistencies(void) { return policies; }

plait_status pli_policy_takes_none(const char *name, const char *parameters, plait_error *err) {
    if (parameters == NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "consistency %s takes no parameters, not ':%s'", name, parameters);
}

enum { POLICIES = sizeof policies / sizeof *policies - 1 };

static plait_status unknown(const char *spec, plait_error *err) {
    char        texts[POLICIES][24];
    const char *names[POLICIES];
    for (size_t i = 0; i < POLICIES; i++) {
        snprintf(texts[i], sizeof texts[i], "%s%s", policies[i]->name, policies[i]->parameters);
        names[i] = texts[i];
    }
    return pli_fail_unknown(err, "consistency", spec, names, POLICIES);
}

const pli_consistency_ops *pli_consistency_find(const char *spec) {
    size_t length = strcspn(spec, ":");
    for (size_t i = 0; policies[i] != NULL; i++)
        if (strlen(policies[i]->name) == length && memcmp(policies[i]->name, spec, length) == 0) return policies[i];
    return NULL;
}

plait_status pli_policy_make(const char *spec, pli_policy *policy_out, plait_error *err) {
    const char *colon = strchr(spec, ':');
    pli_policy  policy = { .ops = pli_consistency_find(spec) };
    if (policy.ops == NULL) return unknown(spec, err);
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
