/* optim - update rules: how a gradient moves a parameter. The same object serves a server's shard, a mirror that sums
 * by collectives, and a local run. Each rule is one file, listed once in rules.c.
 *
 * plait/rule.h says what a rule is; Plait's own rules are written against it, just like a program's. plait_rule is what
 * all tables with a rule share; plait_rule_numbers is what one table has. It is a plain value; its ops points to a
 * static rule, or to the job's copy of the program's own.
 *
 * L1 and L2 belong to the rule, not to the gradient: after the gradient's step of size s_j for value j comes the
 * proximal step of the penalty in the same metric,
 *     w_j <- sign(w_j) max(0, |w_j| - s_j p_j l1) / (1 + s_j p_j l2),    p_j: penalty factor, 1 by default
 * (Duchi and Singer, "Efficient Online and Batch Learning using Forward Backward Splitting", JMLR 2009; for Adagrad:
 * Duchi, Hazan, Singer, JMLR 2011). FTRL-proximal has its own closed form (McMahan et al., KDD 2013). A value that
 * no gradient has ever reached has no metric under Adagrad, Adam and FTRL, and stays as it is. Values that a sparse
 * push does not touch miss proximal steps, which are made up later (catch_up), before the value is next read or
 * updated. */
#ifndef PLI_OPTIM_OPTIM_H
#define PLI_OPTIM_OPTIM_H

#include <plait/table.h>

#include "base/base.h"

enum { PLI_RULE_SLOTS_MAX = PLAIT_RULE_SLOTS, PLI_RULE_NAME = 16 /* bytes, with its end */ };

/* Rules that a program has registered, beside Plait's own; zeroed: none. */
typedef struct pli_rule_scope {
    const plait_rule *own; /* [n_own], borrowed: registered by the program */
    int32_t           n_own;
} pli_rule_scope;

typedef enum pli_schedule { PLI_CONSTANT, PLI_INVSQRT, PLI_COSINE } pli_schedule;

/** Resolves names and defaults and checks ranges. scope may be NULL. Errors: ENAME (nearest named), EINVAL, EREFUSED (a
 *  schedule with ftrl, which lowers its rate by itself). */
plait_status pli_rule_make(const plait_rule_opts *opts, const pli_rule_scope *scope, plait_rule_numbers *rule_out,
                           plait_error *err);

/** The rule of this name; NULL: none. scope may be NULL. */
const plait_rule *pli_rule_find(const char *name, const pli_rule_scope *scope);

/** May a program register the rules own [n]? EINVAL: a name is missing, taken or malformed, or a slot that must be
 *  filled is not. */
plait_status pli_rules_check_own(const plait_rule *own, int32_t n, plait_error *err);

/** All rules, NULL-terminated. */
const plait_rule *const *pli_rules(void);

/** schedule(clock) in (0, 1]: constant 1; invsqrt 1/sqrt(1 + clock/schedule_clocks * 3) (halves at
 *  schedule_clocks); cosine (1 + cos(pi min(1, clock/schedule_clocks)))/2. */
double pli_schedule_factor(const plait_rule_numbers *rule, int64_t clock);

/** The step for a push. batch: the job's b; whole: 1 for a summed bsp clock (fraction 1), else 0. */
plait_step pli_rule_step(const plait_rule_numbers *rule, int64_t clock, int64_t examples, int64_t batch, int whole);

#endif
