/* Which topology goes with which consistency: contract.md's matrix, restricted to what exists. Every other pair is
 * refused by name, with the reason and the nearest pair that trains; never silently replaced. A program's own policy
 * trains where rows lie on servers. */
#include <string.h>

#include "optim/optim.h"
#include "table/state/updates.h"
#include "table/topology/topology.h"

/* What of a refused policy's parameters its nearest takes. */
typedef enum carry { NOTHING, FIRST, ALL } carry;

/* One policy under one kind of topology. */
typedef struct policy_rule {
    const char *policy;  /* by name; NULL: every other, also a program's own */
    const char *why;     /* it is refused; NULL: it trains                   */
    const char *nearest; /* policy under the same topology                   */
    carry       carries;
} policy_rule;

static const char no_copy[] = "its workers share the table's memory, so none has a copy of its own";
static const char in_flight[] = "a copy changes by whole sums, which are under way for a number of clocks";
static const char unbounded[] =
    "a worker hears of its neighbours' copies alone, each clock or when they come, so nothing "
    "bounds what it misses of the others";

/* Workers share the table's memory. */
static const policy_rule of_shared[] = {
    { "essp", "its workers share the table's memory, so there are no copies to push", "ssp", ALL },
    { "downpour", no_copy, "async", NOTHING },
    { "local-sgd", no_copy, "async", NOTHING },
    { 0 },
};
/* Sums over all workers. */
static const policy_rule of_sums[] = {
    { .policy = "bsp" },
    { .policy = "bounded-delay" },
    { .policy = "local-sgd" },
    { "ssp", in_flight, "bounded-delay", FIRST },
    { "essp", in_flight, "bounded-delay", FIRST },
    { "asp", in_flight, "bounded-delay", FIRST },
    { NULL, "a sum needs every worker's part", "bsp", NOTHING },
};
/* Averages of neighbours' copies. */
static const policy_rule of_averages[] = {
    { .policy = "bsp" },
    { .policy = "async" },
    { .policy = "local-sgd" },
    { "downpour", unbounded, "async", NOTHING },
    { NULL, unbounded, "bsp", NOTHING },
};
/* Servers that own the rows. */
static const policy_rule of_servers[] = { { 0 } };

static const policy_rule *rules_of(const pli_topology_kind *kind) {
    if (kind->averages) return of_averages;
    if (!kind->on_servers) return of_sums;
    return kind->one_process ? of_shared : of_servers;
}

static plait_status check_consistency(const pli_pair *pair, plait_error *err) {
    pli_policy policy;
    PLI_TRY(pli_policy_make(pair->consistency, pair->scope, &policy, err));
    pli_policy_destroy(&policy);
    return PLAIT_OK;
}

static plait_status check_matrix(const pli_topology_kind *kind, const pli_pair *pair, plait_error *err) {
    const char        *consistency = pair->consistency, *parameters = consistency + strcspn(consistency, ":");
    size_t             name = (size_t)(parameters - consistency);
    const policy_rule *r = rules_of(kind);
    if (kind->one_process && !pair->one_process)
        return pli_fail(err, PLAIT_EREFUSED,
                        "topology %s x %s is refused across processes: its workers share one process's memory; "
                        "nearest is ps x %s", pair->topology, consistency, consistency);
    while (r->policy != NULL && (strlen(r->policy) != name || memcmp(r->policy, consistency, name) != 0)) r++;
    if (r->why == NULL) return PLAIT_OK;
    size_t first = parameters[0] == ':' ? 1 + strcspn(parameters + 1, ":") : 0;
    size_t carried = r->carries == ALL ? strlen(parameters) : r->carries == FIRST ? first : 0;
    return pli_fail(err, PLAIT_EREFUSED, "topology %s x %s is refused: %s; nearest is %s x %s%.*s, or ps x %s",
                    pair->topology, consistency, r->why, pair->topology, r->nearest, (int)carried, parameters,
                    consistency);
}

static plait_status check_steps(const pli_topology_kind *kind, const pli_pair *pair, plait_error *err) {
    pli_policy policy;
    if (!pair->staleness_aware) return PLAIT_OK;
    PLI_TRY(pli_policy_make(pair->consistency, pair->scope, &policy, err));
    bool one_by_one = kind->on_servers && !pli_policy_at_clock(&policy) &&
                      !pli_pair_is_unlocked(kind, pair->consistency, pair->scope);
    bool unasked = policy.ops->refreshes;
    pli_policy_destroy(&policy);
    if (one_by_one && unasked)
        return pli_fail(err, PLAIT_EREFUSED,
                        "steps by staleness with %s x %s are refused: fresh values come unasked, so an owner does not "
                        "know from which "
                        "a push was computed; nearest is ps x ssp:S",
                        pair->topology, pair->consistency);
    if (one_by_one) return PLAIT_OK;
    return pli_fail(err, PLAIT_EREFUSED,
                    "steps by staleness with %s x %s are refused: no owner applies its pushes one by one; nearest is "
                    "ps x ssp:S", pair->topology, pair->consistency);
}

static plait_status check_backup(const pli_topology_kind *kind, const pli_pair *pair, plait_error *err) {
    if (pair->scope == NULL || pair->scope->setting.backup == 0) return PLAIT_OK;
    if (strcmp(pair->consistency, "bsp") != 0)
        return pli_fail(
            err, PLAIT_EREFUSED,
            "backup workers with consistency %s are refused: only under bsp does a clock wait for all; nearest is bsp",
            pair->consistency);
    if (!kind->on_servers)
        return pli_fail(err, PLAIT_EREFUSED, "backup workers with topology %s are refused: %s; nearest is ps",
                        pair->topology,
                        kind->averages ? "a round waits for neighbours alone, not for all"
                                       : "a sum needs every worker's part");
    return PLAIT_OK;
}

/* A topology whose tables travel by one or the other of two: the pair of the one that is meant; where that is not
 * known, either will do. */
static plait_status check_mixed(const pli_topology_kind *kind, const pli_pair *pair, plait_error *err) {
    bool     dense = pair->fill == PLI_FILL_DENSE;
    pli_pair of = *pair;
    of.topology = kind->dense->name;
    if (pair->fill == PLI_FILL_ANY && pli_pair_check(&of, NULL) >= 0) return PLAIT_OK;
    if (!dense) of.topology = kind->sparse->name;
    if (pli_pair_check(&of, err) >= 0) return PLAIT_OK;
    return pair->fill == PLI_FILL_ANY ? err->code
                                      : pli_fail_at(err, "under %s a table with %s updates travels by %s", kind->name,
                                                    dense ? "dense" : "sparse", of.topology);
}

static plait_status check_aggregate(const pli_topology_kind *kind, const pli_pair *pair, plait_error *err) {
    if (!pair->aggregates) return PLAIT_OK;
    if (kind->one_process || kind->averages)
        return pli_fail(err, PLAIT_EREFUSED, "aggregation by host with topology %s is refused: %s; nearest is %s",
                        pair->topology,
                        kind->averages ? "its workers average copies with neighbours one by one"
                                       : "its workers share the table's memory already",
                        kind->averages ? "allreduce" : "ps");
    if (!kind->on_servers) {
        bool native = pair->one_process || pair->collective == NULL || strcmp(pair->collective, "hierarchical") == 0;
        return native ? PLAIT_OK
                      : pli_fail(err, PLAIT_EREFUSED,
                                 "aggregation by host with topology %s is refused with collective %s, which does not "
                                 "know of hosts; nearest is collective hierarchical",
                                 pair->topology, pair->collective);
    }
    pli_policy policy;
    PLI_TRY(pli_policy_make(pair->consistency, pair->scope, &policy, err));
    bool at_clock = pli_policy_at_clock(&policy);
    pli_policy_destroy(&policy);
    if (!at_clock)
        return pli_fail(err, PLAIT_EREFUSED,
                        "aggregation by host with %s x %s is refused: a host's updates are added up clock by clock, "
                        "and each is wanted when it is made; nearest is %s x bsp",
                        pair->topology, pair->consistency, pair->topology);
    if (pair->scope != NULL && pair->scope->setting.backup > 0)
        return pli_fail(err, PLAIT_EREFUSED,
                        "aggregation by host with backup workers is refused: what a host's slowest worker adds "
                        "cannot be dropped by itself; nearest is %s x bsp without backup workers",
                        pair->topology);
    if (pair->logged)
        return pli_fail(err, PLAIT_EREFUSED,
                        "an event log of %s with aggregation by host is refused: it would not tell whose updates "
                        "a host's sum holds; nearest is a log without aggregation",
                        pair->topology);
    return PLAIT_OK;
}

/* The rule's state in parts: a clock's end leaves each worker its slice of the sum, and gathers the values. */
static plait_status check_sharded(const pli_topology_kind *kind, const pli_pair *pair, plait_error *err) {
    const char *why = kind->on_servers                   ? "its owners hold the state in parts already"
                      : kind->averages                   ? "each worker moves a copy of its own"
                      : pair->rule == NULL                   ? "a table without a rule has none"
                      : strcmp(pair->consistency, "bsp") ? "a clock would have to wait for the values of the one before"
                      : pair->fill == PLI_FILL_SPARSE    ? "updates by key go to every worker whole"
                                                         : NULL;
    if (!pair->sharded || why == NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_EREFUSED,
                    "an optimizer's state in parts with topology %s x %s%s is refused: %s; nearest is %s",
                    pair->topology, pair->consistency, pair->fill == PLI_FILL_SPARSE ? ", sparse updates," : "", why,
                    pair->rule == NULL || pair->fill == PLI_FILL_SPARSE ? "the whole state on each"
                                                                        : "allreduce x bsp");
}

/* A rule that makes its values from its state makes nothing of an average of values. */
static plait_status check_rule(const pli_topology_kind *kind, const pli_pair *pair, plait_error *err) {
    if (pair->rule == NULL || !pli_pair_averages(kind, pair->consistency, pair->scope)) return PLAIT_OK;
    const plait_rule *rule = pli_rule_find(pair->rule, pair->rules);
    if (rule == NULL || !rule->derives) return PLAIT_OK;
    return pli_fail(err, PLAIT_EREFUSED,
                    "%s with %s x %s is refused: it makes its values from sums of its own, so an average of values "
                    "would be lost at its next step; nearest is adagrad",
                    pair->rule, pair->topology, pair->consistency);
}

/* Whole numbers: what is made of them must be whole, too. */
static plait_status check_type(const pli_topology_kind *kind, const pli_pair *pair, plait_error *err) {
    if (pair->type != PLAIT_I64) return PLAIT_OK;
    if (pair->rule != NULL)
        return pli_fail(err, PLAIT_EREFUSED,
                        "update rule %s on a table of whole numbers is refused: its steps are no whole numbers; "
                        "nearest is a table of float64",
                        pair->rule);
    if (kind->averages)
        return pli_fail(err, PLAIT_EREFUSED,
                        "a table of whole numbers with topology %s is refused: an average of them is no whole number; "
                        "nearest is allreduce",
                        pair->topology);
    return PLAIT_OK;
}

plait_status pli_spares_check(int32_t spares, int32_t workers, plait_error *err) {
    if (spares >= 0 && (spares == 0 || spares < workers)) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "%d spares of %d workers; expected 0 or more, and one worker that is none",
                    spares, workers);
}

/* Who stands ready for the dead has something to do only where a job outlives them. */
static plait_status check_spares(const pli_pair *pair, plait_error *err) {
    if (pair->spares == 0 || pair->replicas > 1) return PLAIT_OK;
    return pli_fail(err, PLAIT_EREFUSED,
                    "spares (%d) with one copy of each shard are refused: a death ends the run, so they would be of no "
                    "use; nearest are 2 replicas", pair->spares);
}

/* Copies of what servers hold (table/copies/copies.h). */
static plait_status check_replicas(const pli_topology_kind *kind, const pli_pair *pair, plait_error *err) {
    static const char *const with[] = { "bsp", "ssp", "essp", "async" };
    const size_t             name = strcspn(pair->consistency, ":");
    bool                     known = false;
    if (pair->replicas <= 1) return PLAIT_OK;
    for (size_t i = 0; i < sizeof with / sizeof with[0]; i++)
        known = known || (strlen(with[i]) == name && memcmp(with[i], pair->consistency, name) == 0);
    const struct {
        bool        holds;
        const char *why, *nearest;
    } reasons[] = {
        { pair->replicas > 2, "there are two copies at most", "is 2 replicas" },
        { kind->one_process, "its workers share the one copy that there is", "is ps" },
        { !kind->on_servers, "each worker has a copy of its own already", "is ps" },
        { !known, "the other copy would not know whom the policy lets wait", "are bsp, ssp:S, essp:S and async" },
        { pair->servers == 1 && pair->spares == 0, "the other copy needs another rank", "are 2 servers, or a spare" },
        { pair->filter != NULL && pair->filter[0] != '\0', "the other copy would not have what filters keep",
          "is no filter" },
        { pair->aggregates, "a dead one's updates would be in its host's", "is no aggregation" },
        { pair->scope != NULL && pair->scope->setting.backup > 0, "who dies is stood in for, not done without",
          "are no backup workers" },
        { pair->staleness_aware && strncmp(pair->consistency, "bsp", 3) != 0,
          "the other copy would not know how stale a push is", "is a rule that does not ask" },
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].holds)
            return pli_fail(err, PLAIT_EREFUSED, "%d replicas with topology %s x %s are refused: %s; nearest %s",
                            pair->replicas, pair->topology, pair->consistency, reasons[i].why, reasons[i].nearest);
    return PLAIT_OK;
}

plait_status pli_pair_check(const pli_pair *pair, plait_error *err) {
    pli_topology topology;
    PLI_TRY(pli_topology_make(pair->topology, PLI_FILL_ANY, &topology, err));
    if (topology.kind->dense != NULL) return check_mixed(topology.kind, pair, err);
    PLI_TRY(check_consistency(pair, err));
    PLI_TRY(check_matrix(topology.kind, pair, err));
    PLI_TRY(check_steps(topology.kind, pair, err));
    PLI_TRY(check_backup(topology.kind, pair, err));
    PLI_TRY(check_spares(pair, err));
    PLI_TRY(check_replicas(topology.kind, pair, err));
    PLI_TRY(check_aggregate(topology.kind, pair, err));
    PLI_TRY(check_sharded(topology.kind, pair, err));
    PLI_TRY(check_rule(topology.kind, pair, err));
    PLI_TRY(check_type(topology.kind, pair, err));
    /* what travels */
    bool adds = pair->rule == NULL || pli_pair_averages(topology.kind, pair->consistency, pair->scope);
    int32_t backup = pair->scope == NULL ? 0 : pair->scope->setting.backup;
    if (pair->exact && topology.kind->averages)
        return pli_fail(err, PLAIT_EREFUSED,
                        "exact sums with topology %s are refused: its copies are averaged with neighbours, one after "
                        "the other; nearest is allreduce",
                        pair->topology);
    if (pair->exact) PLI_TRY(pli_exact_check(pair->consistency, backup, pair->filter, pair->filters, err));
    plait_status status =
        pli_filters_check_pair(pair->filter, pair->filters, topology.kind, pair->consistency, adds, err);
    bool averages = adds && pair->rule != NULL && topology.kind->on_servers;
    return status < 0 && averages ? pli_fail_at(err, "what %s sends is added to an average", pair->consistency)
                                  : status;
}
