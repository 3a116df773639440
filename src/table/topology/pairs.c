/* Which topology goes with which consistency: contract.md's matrix, restricted to what exists. Every other pair is
 * refused by name, with the reason and the nearest pair that trains; never silently replaced. */
#include <string.h>

#include "table/topology/topology.h"

/* Names that the contract knows and that come with later versions. */
static const char *const later_topologies[] = { "hybrid", "gossip", NULL };
static const char *const later_policies[] = { "essp", "asp", "bounded-delay", "sequential", "vap", "downpour",
                                              "local-sgd", NULL };

static bool is_one_of(const char *const *names, const char *name, size_t length) {
    for (; *names != NULL; names++)
        if (strlen(*names) == length && memcmp(*names, name, length) == 0) return true;
    return false;
}

static size_t head_length(const char *spec) { return strcspn(spec, ":"); }

static bool head_is(const char *spec, const char *name) {
    return head_length(spec) == strlen(name) && strncmp(spec, name, strlen(name)) == 0;
}

static plait_status check_topology(const char *topology, plait_error *err) {
    const char *names[16];
    size_t      n = 0;
    if (pli_topology_find(topology) != NULL) return PLAIT_OK;
    if (is_one_of(later_topologies, topology, head_length(topology)))
        return pli_fail(err, PLAIT_EREFUSED, "topology %s comes later; nearest is ps", topology);
    for (; n < sizeof names / sizeof *names && pli_topologies()[n] != NULL; n++) names[n] = pli_topologies()[n]->name;
    return pli_fail_unknown(err, "topology", topology, names, n);
}

static plait_status check_consistency(const char *topology, const char *consistency, const pli_scope *scope, plait_error *err) {
    size_t length = head_length(consistency);
    if (is_one_of(later_policies, consistency, length)) {
        const char *nearest = strcmp(topology, "allreduce") == 0 ? "bsp"
                              : head_is(consistency, "sequential") ? "bsp" : "ssp:S";
        return pli_fail(err, PLAIT_EREFUSED, "consistency %s comes later; nearest for topology %s is %s", consistency,
                        topology, nearest);
    }
    pli_policy policy;
    PLI_TRY(pli_policy_make(consistency, scope, &policy, err));
    pli_policy_destroy(&policy);
    return PLAIT_OK;
}

plait_status pli_pair_check(const char *topology, const char *consistency, const pli_scope *scope, bool one_process,
                            plait_error *err) {
    PLI_TRY(check_topology(topology, err));
    PLI_TRY(check_consistency(topology, consistency, scope, err));
    size_t length = head_length(consistency);
    if (pli_topology_find(topology)->one_process && !one_process)
        return pli_fail(err, PLAIT_EREFUSED,
                        "topology %s x %s is refused across processes: its workers share one process's memory; "
                        "nearest is ps x %s", topology, consistency, consistency);
    if (strcmp(topology, "allreduce") != 0 || head_is(consistency, "bsp")) return PLAIT_OK;
    if (head_is(consistency, "ssp"))
        return pli_fail(err, PLAIT_EREFUSED,
                        "topology allreduce x %s is refused: a sum needs every worker's part, so none can be read stale; "
                        "nearest is allreduce x bounded-delay%s, which comes later; today allreduce x bsp, or ps x %s",
                        consistency, consistency + length, consistency);
    return pli_fail(err, PLAIT_EREFUSED,
                    "topology allreduce x %s is refused: a sum needs every worker's part; nearest is allreduce x bsp, or "
                    "ps x %s", consistency, consistency);
}
