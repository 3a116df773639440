/* Which topology goes with which consistency: each topology says which promises of a policy it needs. Every other pair
 * is refused by name, with the reason and the nearest pair that trains; it is never silently replaced. */
#include <string.h>

#include "table/pairs/facts.h"

/* How many of a refused policy's parameters its nearest one takes over. */
typedef enum carry { NOTHING, FIRST, ALL } carry;

typedef struct refusal {
    const char *why;     /* NULL: the pair trains          */
    const char *nearest; /* policy under the same topology */
    carry       carries;
} refusal;

static const char no_copy[] = "its workers share the table's memory, so no worker has its own copy";
static const char in_flight[] = "its sums arrive a fixed number of clocks late, so the bound cannot hold";
static const char unbounded[] =
    "a worker receives only its neighbours' mirrors, so nothing bounds which updates of the others it misses";

static bool promises(const pli_facts *f, plait_properties wanted) { return (f->promises & wanted) != 0; }

/* Refusals if workers share the table's memory. */
static refusal of_shared(const pli_facts *f) {
    const plait_consistency *policy = f->policy.ops;
    if (policy->refreshes)
        return (refusal){ "its workers share the table's memory, so there are no copies to push", "ssp", ALL };
    if (policy->sees_own || policy->averages) return (refusal){ no_copy, "async", NOTHING };
    return (refusal){ 0 };
}

/* Refusals if all workers' updates are summed. */
static refusal of_sums(const pli_facts *f) {
    if (promises(f, PLAIT_BY_SUMS)) return (refusal){ 0 };
    if (promises(f, PLAIT_BOUNDED_READS) && !promises(f, PLAIT_VALUES))
        return (refusal){ in_flight, "bounded-delay", FIRST };
    return (refusal){ "a sum needs every worker's part", "bsp", NOTHING };
}

/* Refusals if copies are averaged with neighbours. Allowed are rounds of whole clocks, mixing whatever comes, or the
 * policy's own averages. */
static refusal of_averages(const pli_facts *f) {
    if (promises(f, PLAIT_ROUNDS | PLAIT_ANY_READ) || f->policy.ops->averages) return (refusal){ 0 };
    return (refusal){ unbounded, f->policy.ops->sees_own ? "async" : "bsp", NOTHING };
}

static refusal look_up(const pli_facts *f) {
    if (f->kind->averages) return of_averages(f);
    if (!f->kind->on_servers) return of_sums(f);
    return f->kind->one_process ? of_shared(f) : (refusal){ 0 };
}

plait_status pli_matrix_check(const pli_facts *f, plait_error *err) {
    const pli_pair *pair = f->pair;
    const char     *consistency = pair->consistency, *parameters = consistency + strcspn(consistency, ":");
    if (f->kind->one_process && !pair->one_process)
        return pli_fail(err, PLAIT_EREFUSED,
                        "topology %s x %s is refused across processes: its workers share one process's memory; "
                        "nearest is ps x %s", pair->topology, consistency, consistency);
    refusal r = look_up(f);
    if (r.why == NULL) return PLAIT_OK;
    const size_t first = parameters[0] == ':' ? 1 + strcspn(parameters + 1, ":") : 0;
    if (r.carries == FIRST && first == 0) r = (refusal){ r.why, "bsp", NOTHING };
    const size_t carried = r.carries == ALL ? strlen(parameters) : r.carries == FIRST ? first : 0;
    return pli_fail(err, PLAIT_EREFUSED, "topology %s x %s is refused: %s; nearest is %s x %s%.*s, or ps x %s",
                    pair->topology, consistency, r.why, pair->topology, r.nearest, (int)carried, parameters,
                    consistency);
}
