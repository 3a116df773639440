/* The registry of consistency policies: "ssp:2" -> policy object. */
#include <stdio.h>
#include <string.h>

#include "table/consistency/policies.h"

static const plait_consistency *const policies[] = { &pli_bsp_policy,
                                                     &pli_ssp_policy,
                                                     &pli_essp_policy,
                                                     &pli_asp_policy,
                                                     &pli_bounded_delay_policy,
                                                     &pli_sequential_policy,
                                                     &pli_vap_policy,
                                                     &pli_downpour_policy,
                                                     &pli_async_policy,
                                                     &pli_local_sgd_policy,
                                                     NULL };

const plait_consistency *const *pli_consistencies(void) { return policies; }

plait_status pli_policy_takes_none(const char *name, const char *parameters, plait_error *err) {
    if (parameters == NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "consistency %s takes no parameters, not ':%s'", name, parameters);
}

bool pli_policy_counts(const char *parameters, int32_t n, int64_t *numbers) {
    for (int32_t i = 0; i < n; i++) {
        char   text[24] = "";
        size_t length = parameters == NULL ? 0 : strcspn(parameters, ":");
        if (length == 0 || length >= sizeof text || (parameters[length] == ':') != (i + 1 < n)) return false;
        memcpy(text, parameters, length);
        if (!pli_parse_i64(text, &numbers[i]) || numbers[i] < 0 || numbers[i] > PLI_CLOCKS_MAX) return false;
        parameters += length + 1;
    }
    return true;
}

int64_t pli_policy_complete_without(int32_t backup, const plait_view *view) {
    const int32_t needed = view->workers - backup;
    if (backup == 0) return view->slowest;
    for (int64_t clock = view->applied;; clock++) {
        int32_t ended = 0, there = 0;
        for (int32_t w = 0; w < view->workers; w++) {
            there += view->clocks[w] != PLAIT_LEFT;
            ended += view->clocks[w] != PLAIT_LEFT && view->clocks[w] > clock;
        }
        if (ended < (there < needed ? there : needed)) return clock;
    }
}

enum { POLICIES_MAX = 64, POLICY_NAME_MAX = 24 };

static plait_status unknown(const char *spec, const pli_scope *scope, plait_error *err) {
    char        texts[POLICIES_MAX][POLICY_NAME_MAX + 8];
    const char *names[POLICIES_MAX];
    size_t      n = 0;
    for (size_t i = 0; policies[i] != NULL && n < POLICIES_MAX; i++, n++)
        snprintf(texts[n], sizeof texts[n], "%s%s", policies[i]->name, policies[i]->parameters);
    for (int32_t i = 0; scope != NULL && i < scope->n_own && n < POLICIES_MAX; i++, n++)
        snprintf(texts[n], sizeof texts[n], "%s%s", scope->own[i].name, scope->own[i].parameters);
    for (size_t i = 0; i < n; i++) names[i] = texts[i];
    return pli_fail_unknown(err, "consistency", spec, names, n);
}

static bool is_named(const plait_consistency *policy, const char *spec) {
    size_t length = strcspn(spec, ":");
    return strlen(policy->name) == length && memcmp(policy->name, spec, length) == 0;
}

const plait_consistency *pli_consistency_find(const char *spec, const pli_scope *scope) {
    for (size_t i = 0; policies[i] != NULL; i++)
        if (is_named(policies[i], spec)) return policies[i];
    for (int32_t i = 0; scope != NULL && i < scope->n_own; i++)
        if (is_named(&scope->own[i], spec)) return &scope->own[i];
    return NULL;
}

plait_status pli_policy_make(const char *spec, const pli_scope *scope, pli_policy *policy_out, plait_error *err) {
    const plait_setting none = { 0 }, *setting = scope == NULL ? &none : &scope->setting;
    const char         *colon = strchr(spec, ':');
    pli_policy          policy = { .ops = pli_consistency_find(spec, scope) };
    if (policy.ops == NULL) return unknown(spec, scope, err);
    if (strlen(spec) >= sizeof policy.spec)
        return pli_fail(err, PLAIT_EINVAL, "consistency '%.20s...' is too long; at most %zu bytes are possible", spec,
                        sizeof policy.spec - 1);
    strcpy(policy.spec, spec);
    policy.state = pli_calloc(1, policy.ops->state_bytes + (size_t)setting->workers * policy.ops->worker_bytes);
    if (policy.state == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for consistency %s", spec);
    plait_status status = policy.ops->parse(policy.state, colon == NULL ? NULL : colon + 1, setting, err);
    if (status >= 0 && pli_policy_at_clock(&policy) && policy.ops->worker.on_clock != NULL)
        status = pli_fail(err, PLAIT_EINVAL,
                          "consistency %s applies pushes at clocks, so an update kept back over a clock would never be "
                          "applied; leave worker.on_clock empty, or apply pushes as they arrive",
                          spec);
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

plait_properties pli_promises_of(const char *spec, const pli_scope *scope) {
    pli_policy policy;
    if (pli_policy_make(spec, scope, &policy, NULL) < 0) return 0;
    const plait_properties promises = pli_policy_promises(&policy);
    pli_policy_destroy(&policy);
    return promises;
}

/* --- a program's own -------------------------------------------------------------------------------------- */

static bool is_name(const char *name) {
    size_t length = name == NULL ? 0 : strlen(name);
    return length > 0 && length <= POLICY_NAME_MAX && strcspn(name, ":, \t\n") == length;
}

plait_status pli_consistencies_check(const plait_consistency *own, int32_t n, plait_error *err) {
    if (n < 0 || (n > 0 && own == NULL)) return pli_fail(err, PLAIT_EINVAL, "a job with %d consistency policies", n);
    for (int32_t i = 0; i < n; i++) {
        const pli_scope before = { .own = own, .n_own = i };
        if (!is_name(own[i].name))
            return pli_fail(err, PLAIT_EINVAL,
                            "consistency policy %d needs a name of 1 to %d bytes without colon, comma or "
                            "space",
                            i, POLICY_NAME_MAX);
        if (pli_consistency_find(own[i].name, &before) != NULL)
            return pli_fail(err, PLAIT_EINVAL, "consistency %s exists already; give yours another name", own[i].name);
        if (own[i].parameters == NULL || own[i].summary == NULL || own[i].parse == NULL ||
            own[i].worker.on_get == NULL || own[i].server.on_pull == NULL)
            return pli_fail(err, PLAIT_EINVAL, "consistency %s needs parameters, summary, parse, worker.on_get and "
                            "server.on_pull", own[i].name);
    }
    return PLAIT_OK;
}
