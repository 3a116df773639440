/* Which topology goes with which consistency: contract.md's matrix, restricted to what exists. Every other pair is
 * refused by name, with the reason and the nearest pair that trains; never silently replaced. A program's own policy
 * trains where rows lie on servers. */
#include <string.h>

#include "table/topology/topology.h"

/* Names that the contract knows and that come with later versions. */
static const char *const later_topologies[] = { "hybrid", "gossip", NULL };
static const char *const later_policies[] = { "local-sgd", NULL };

/* Policies that have no copies to work with where workers share the table's memory. */
static const char *const not_local[] = { "essp", "downpour", NULL };
/* Policies that sums over all workers can serve, and those whose bound they can keep by sums under way. */
static const char *const summed[] = { "bsp", "bounded-delay", NULL };
static const char *const stale_bounds[] = { "ssp", "essp", "asp", NULL };

static size_t head_length(const char *spec) { return strcspn(spec, ":"); }

static bool is_one_of(const char *const *names, const char *spec) {
    size_t length = head_length(spec);
    for (; *names != NULL; names++)
        if (strlen(*names) == length && memcmp(*names, spec, length) == 0) return true;
    return false;
}

static plait_status check_topology(const char *topology, plait_error *err) {
    const char *names[16];
    size_t      n = 0;
    if (pli_topology_find(topology) != NULL) return PLAIT_OK;
    if (is_one_of(later_topologies, topology))
        return pli_fail(err, PLAIT_EREFUSED, "topology %s comes later; nearest is ps", topology);
    for (; n < sizeof names / sizeof *names && pli_topologies()[n] != NULL; n++) names[n] = pli_topologies()[n]->name;
    return pli_fail_unknown(err, "topology", topology, names, n);
}

static plait_status check_consistency(const char *topology, const char *consistency, const pli_scope *scope, plait_error *err) {
    if (is_one_of(later_policies, consistency))
        return pli_fail(err, PLAIT_EREFUSED, "consistency %s comes later; nearest for topology %s is %s", consistency, topology,
                        strcmp(topology, "allreduce") == 0 ? "bsp"
                        : strcmp(topology, "local") == 0   ? "async, or ps x downpour:F:P"
                                                           : "downpour:F:P");
    pli_policy policy;
    PLI_TRY(pli_policy_make(consistency, scope, &policy, err));
    pli_policy_destroy(&policy);
    return PLAIT_OK;
}

static plait_status check_sums(const char *consistency, plait_error *err) {
    const char *bound = consistency + head_length(consistency) + 1; /* of those that have one */
    if (is_one_of(summed, consistency)) return PLAIT_OK;
    if (is_one_of(stale_bounds, consistency))
        return pli_fail(err, PLAIT_EREFUSED,
                        "topology allreduce x %s is refused: a copy changes by whole sums, which are under way for a number of "
                        "clocks; nearest is allreduce x bounded-delay:%.*s, or ps x %s", consistency,
                        (int)strcspn(bound, ":"), bound, consistency);
    return pli_fail(err, PLAIT_EREFUSED,
                    "topology allreduce x %s is refused: a sum needs every worker's part; nearest is allreduce x bsp, or "
                    "ps x %s", consistency, consistency);
}

static plait_status check_shared(const char *consistency, plait_error *err) {
    const char *rest = consistency + head_length(consistency);
    if (!is_one_of(not_local, consistency)) return PLAIT_OK;
    if (head_length(consistency) == 4) /* essp */
        return pli_fail(err, PLAIT_EREFUSED,
                        "topology local x %s is refused: its workers share the table's memory, so there are no copies to "
                        "push; nearest is local x ssp%s, or ps x %s", consistency, rest, consistency);
    return pli_fail(err, PLAIT_EREFUSED,
                    "topology local x %s is refused: its workers share the table's memory, so none has a copy of its own; "
                    "nearest is local x async, or ps x %s", consistency, consistency);
}

plait_status pli_pair_check(const char *topology, const char *consistency, const pli_scope *scope, bool one_process,
                            plait_error *err) {
    PLI_TRY(check_topology(topology, err));
    PLI_TRY(check_consistency(topology, consistency, scope, err));
    const pli_topology *found = pli_topology_find(topology);
    if (found->one_process && !one_process)
        return pli_fail(err, PLAIT_EREFUSED,
                        "topology %s x %s is refused across processes: its workers share one process's memory; "
                        "nearest is ps x %s", topology, consistency, consistency);
    if (!found->on_servers) return check_sums(consistency, err);
    return found->one_process ? check_shared(consistency, err) : PLAIT_OK;
}

plait_status pli_pair_check_options(const char *topology, const char *consistency, const pli_scope *scope,
                                    bool staleness_aware, plait_error *err) {
    const pli_topology *found = pli_topology_find(topology);
    pli_policy          policy;
    PLI_TRY(pli_policy_make(consistency, scope, &policy, err));
    bool one_by_one = found->on_servers && !pli_policy_at_clock(&policy) && !pli_pair_is_unlocked(found, consistency, scope);
    bool unasked = policy.ops->refreshes;
    pli_policy_destroy(&policy);
    if (staleness_aware && one_by_one && unasked)
        return pli_fail(err, PLAIT_EREFUSED,
                        "steps by staleness with %s x %s are refused: fresh values come unasked, so an owner does not know from which "
                        "a push was computed; nearest is ps x ssp:S", topology, consistency);
    if (staleness_aware && !one_by_one)
        return pli_fail(err, PLAIT_EREFUSED,
                        "steps by staleness with %s x %s are refused: no owner applies its pushes one by one; nearest is "
                        "ps x ssp:S", topology, consistency);
    if (scope == NULL || scope->setting.backup == 0) return PLAIT_OK;
    if (strcmp(consistency, "bsp") != 0)
        return pli_fail(err, PLAIT_EREFUSED,
                        "backup workers with consistency %s are refused: only under bsp does a clock wait for all; nearest is bsp",
                        consistency);
    if (!found->on_servers)
        return pli_fail(err, PLAIT_EREFUSED,
                        "backup workers with topology %s are refused: a sum needs every worker's part; nearest is ps", topology);
    return PLAIT_OK;
}
