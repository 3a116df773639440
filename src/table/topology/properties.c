/* What a pair of topology and consistency keeps to: what its policy promises, as far as its topology keeps it, and what
 * the topology has by itself. Settings, filters and learners ask for these bits (plait/property.h), never for names. */
#include "table/topology/topology.h"

#include <string.h>

/* With averages the workers move copies of their own, which differ, and all of them are needed to make an average. */
enum { NOT_OF_AVERAGES = PLAIT_ONE_COPY | PLAIT_MOMENTS | PLAIT_LEAVING | PLAIT_FUNCTIONS };
/* Without locks there is no moment at which a row is whole, and nobody sees pushes. */
enum { NOT_UNLOCKED = PLAIT_MOMENTS | PLAIT_REPLAYABLE | PLAIT_OWNERS };

static bool averages(const pli_topology_kind *kind, const plait_consistency *policy) {
    return kind->averages || policy->averages;
}

static bool is_unlocked(const pli_topology_kind *kind, const plait_consistency *policy) {
    return kind->unlocked != NULL && policy->shares_memory;
}

plait_properties pli_policy_properties(const pli_topology_kind *kind, const pli_policy *policy) {
    plait_properties has = pli_policy_promises(policy);
    if (kind->dense != NULL)
        return pli_policy_properties(kind->dense, policy) & pli_policy_properties(kind->sparse, policy);
    if (pli_policy_at_clock(policy)) has |= PLAIT_CLOCK_SUMS;
    if (!policy->ops->refreshes) has |= PLAIT_ASKED;
    has = (has & kind->keeps) | kind->gives;
    if (averages(kind, policy->ops)) has &= ~(plait_properties)NOT_OF_AVERAGES;
    if (is_unlocked(kind, policy->ops)) has &= ~(plait_properties)NOT_UNLOCKED;
    /* a host adds up a clock's updates, but these owners want each update when it is made */
    if ((has & PLAIT_MESSAGES) != 0 && (has & PLAIT_CLOCK_SUMS) == 0) has &= ~(plait_properties)PLAIT_HOST_SUMS;
    return has;
}

plait_properties pli_pair_properties(const pli_topology_kind *kind, const char *consistency, const pli_scope *scope) {
    pli_policy policy;
    if (pli_policy_make(consistency, scope, &policy, NULL) < 0) return 0;
    const plait_properties has = pli_policy_properties(kind, &policy);
    pli_policy_destroy(&policy);
    return has;
}

int64_t pli_pair_staleness(plait_properties has, const char *consistency) {
    const char *bound = strchr(consistency, ':');
    int64_t     clocks = 0;
    if ((has & PLAIT_WHOLE_CLOCKS) != 0) return 0;
    if ((has & PLAIT_BOUNDED_READS) == 0) return -1;
    for (const char *at = bound != NULL ? bound + 1 : ""; *at >= '0' && *at <= '9' && clocks < INT32_MAX; at++)
        clocks = 10 * clocks + (*at - '0');
    return clocks;
}

bool pli_pair_averages(const pli_topology_kind *kind, const char *consistency, const pli_scope *scope) {
    const plait_consistency *policy = pli_consistency_find(consistency, scope);
    return kind->averages || (policy != NULL && policy->averages);
}

bool pli_pair_is_unlocked(const pli_topology_kind *kind, const char *consistency, const pli_scope *scope) {
    const plait_consistency *policy = pli_consistency_find(consistency, scope);
    return policy != NULL && is_unlocked(kind, policy);
}
