/* The registry of topologies. A new one is a file with its pli_topology_ops, a line here, and its pairs in pairs.c. */
#include <string.h>

#include "table/table.h"

static const pli_topology local = {
    .name = "local", .one_process = true, .on_servers = true, .ops = &pli_served_ops, .unlocked = &pli_hogwild_ops
};
static const pli_topology allreduce = { .name = "allreduce", .needs_all = true, .ops = &pli_replica_ops };
static const pli_topology ps = { .name = "ps", .on_servers = true, .ops = &pli_served_ops };

static const pli_topology *const topologies[] = { &local, &allreduce, &ps, NULL };

const pli_topology *const *pli_topologies(void) { return topologies; }

const pli_topology *pli_topology_find(const char *name) {
    for (size_t i = 0; topologies[i] != NULL; i++)
        if (strcmp(topologies[i]->name, name) == 0) return topologies[i];
    return NULL;
}

const pli_topology *pli_topology_default(bool one_process) { return one_process ? &local : &ps; }

bool pli_pair_is_unlocked(const pli_topology *topology, const char *consistency, const pli_scope *scope) {
    const plait_consistency *policy = pli_consistency_find(consistency, scope);
    return topology->unlocked != NULL && policy != NULL && policy->shares_memory;
}
