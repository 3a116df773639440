/* table/consistency/consistency.h - policies by name, as tables hold them. plait/consistency.h says what a policy is.
 *
 * One file a policy, listed once in policies.c; a job's own come beside them. The table owns all that a policy does not
 * know: who has read what, clocks, messages, copies.
 */
#ifndef PLI_TABLE_CONSISTENCY_H
#define PLI_TABLE_CONSISTENCY_H

#include <stdbool.h>

#include <plait/consistency.h>

#include "base/base.h"

enum { PLI_CONSISTENCY_TEXT = 48 };
#define PLI_CONSISTENCY_DEFAULT "bsp" /* the policy of a job that names none */

/** All policies that come with plait, NULL-terminated. */
const plait_consistency *const *pli_consistencies(void);

/* What is needed to look a spec's name up: the job's own policies, and what a policy must know. */
typedef struct pli_scope {
    const plait_consistency *own; /* [n_own], borrowed: registered by the program */
    int32_t                  n_own;
    plait_setting            setting;
} pli_scope;

/** The policy that a spec names, whatever its parameters ("ssp:2"); NULL: none. scope may be NULL. */
const plait_consistency *pli_consistency_find(const char *spec, const pli_scope *scope);

/* A policy with its parameters, as a table holds it (one at each worker, one at each server). */
typedef struct pli_policy {
    const plait_consistency *ops;
    void                    *state;
    char                     spec[PLI_CONSISTENCY_TEXT]; /* "ssp:2" */
} pli_policy;

/** "ssp:2" -> policy. scope may be NULL. Errors: ENAME (nearest named), EINVAL. */
plait_status pli_policy_make(const char *spec, const pli_scope *scope, pli_policy *policy_out, plait_error *err);
void         pli_policy_destroy(pli_policy *policy);

/** What the policy of a spec promises (plait/property.h). 0: there is no such policy. scope may be NULL. */
plait_properties pli_promises_of(const char *spec, const pli_scope *scope);

/** May a program register these [n]? EINVAL: a name is missing, taken or malformed, or a slot that must be filled is
 *  not. */
plait_status pli_consistencies_check(const plait_consistency *own, int32_t n, plait_error *err);

/** May a worker begin its clock when all clocks below `applied` are done everywhere? Asked for tables without servers:
 *  those with sums or rounds. */
static inline bool pli_policy_may_start(const pli_policy *policy, int32_t workers, int32_t worker, int64_t clock,
                                        int64_t applied) {
    const plait_view view = { .workers = workers, .worker = worker, .clock = clock, .slowest = applied,
                              .applied = applied };
    return policy->ops->server.on_pull(policy->state, &view) == PLAIT_SERVE;
}

/* Slots that may be empty. */
static inline bool pli_policy_at_clock(const pli_policy *policy) {
    return policy->ops->applies != NULL && policy->ops->applies(policy->state) == PLAIT_APPLY_AT_CLOCK;
}
static inline plait_properties pli_policy_promises(const pli_policy *policy) {
    return policy->ops->promises != NULL ? policy->ops->promises(policy->state) : 0;
}
static inline bool pli_policy_reuses(const pli_policy *policy) {
    return policy->ops->reuses != NULL && policy->ops->reuses(policy->state) != 0;
}

#endif
