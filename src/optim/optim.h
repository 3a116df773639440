/* optim - update rules: how a gradient moves a parameter. The same object serves a server's shard, a
 * replica that sums by collectives, and a local run. One file a rule, listed once in rules.c.
 *
 * A rule works on n consecutive values at once, structure of arrays: w [n] and its `slots` state arrays
 * slot[k] [n]. It never allocates, and an element's bits do not depend on its place in the vector.
 *
 * L1 and L2 belong to the rule, not to the gradient: after the gradient's step of size s_j for value j comes
 * the proximal step of the penalty in the same metric,
 *     w_j <- sign(w_j) max(0, |w_j| - s_j p_j l1) / (1 + s_j p_j l2),    p_j: penalty factor, 1 by default
 * (Duchi and Singer, "Efficient Online and Batch Learning using Forward Backward Splitting", JMLR 2009; for
 * Adagrad: Duchi, Hazan, Singer, JMLR 2011). FTRL-proximal has its own closed form (McMahan et al., KDD 2013).
 * A value that no gradient has ever reached has no metric under Adagrad, Adam and FTRL, and stays as it is.
 * For values that a sparse push does not touch, the missed proximal steps are made up later (catch_up),
 * before the value is next read or updated.
 */
#ifndef PLI_OPTIM_OPTIM_H
#define PLI_OPTIM_OPTIM_H

#include <plait/table.h>

#include "base/base.h"

enum { PLI_RULE_SLOTS_MAX = 2 };

struct pli_rule;

/* One application: a push of `examples` rows in the pusher's clock, of a job with batch b. Under bsp the owner
 * sums a clock's pushes first, and fraction is 1; under a stale policy each push is applied by itself, with
 * fraction = examples / b, so that the pushes of one clock move about as far as one bsp step. */
typedef struct pli_step {
    int64_t clock;          /* the pusher's; the schedule's and Adam's t - 1 */
    double  gradient_scale; /* 1 / examples: the gradient is a mean          */
    double  fraction;       /* of the clock's batch that the push stands for */
    double  rate;           /* learning rate x schedule(clock) x fraction    */
} pli_step;

typedef struct pli_rule_ops {
    const char *name;
    int32_t     slots;         /* state arrays of one value each; 0 .. PLI_RULE_SLOTS_MAX */
    double      learning_rate; /* the rule's own default                                  */
    bool        derives;       /* values follow from the state: to set them is lost at the next step */
    const char *slot_name[PLI_RULE_SLOTS_MAX]; /* for checkpoints: "m", "v"               */
    /** w, slot[k], g, penalty: [n]; penalty may be NULL (all 1). g is not scaled yet. */
    void (*apply_f32)(const struct pli_rule *rule, const pli_step *step, int64_t n, float *w, float *const *slot,
                      const float *g, const float *penalty);
    void (*apply_f64)(const struct pli_rule *rule, const pli_step *step, int64_t n, double *w, double *const *slot,
                      const double *g, const double *penalty);
    /** Makes up the `clocks` applications just before step->clock with zero gradient, each with step's numbers
     *  (proximal steps only; moments stay: the lazy form). step: that of the application to come, fraction 1. */
    void (*catch_up_f32)(const struct pli_rule *rule, const pli_step *step, int64_t clocks, int64_t n, float *w,
                         float *const *slot, const float *penalty);
    void (*catch_up_f64)(const struct pli_rule *rule, const pli_step *step, int64_t clocks, int64_t n, double *w,
                         double *const *slot, const double *penalty);
} pli_rule_ops;

/* A rule with its numbers. A plain value; ops is static. */
typedef struct pli_rule {
    const pli_rule_ops *ops;
    double              learning_rate, momentum, beta1, beta2, epsilon, ftrl_beta, l1, l2;
    int                 schedule; /* enum pli_schedule */
    int64_t             schedule_clocks;
} pli_rule;

typedef enum pli_schedule { PLI_CONSTANT, PLI_INVSQRT, PLI_COSINE } pli_schedule;

/** Resolves names and defaults and checks ranges. Errors: ENAME (nearest named), EINVAL, EREFUSED (a schedule
 *  with ftrl, which lowers its rate by itself). */
plait_status pli_rule_make(const plait_rule_opts *opts, pli_rule *rule_out, plait_error *err);

/** All rules, NULL-terminated. */
const pli_rule_ops *const *pli_rules(void);

/** schedule(clock) in (0, 1]: constant 1; invsqrt 1/sqrt(1 + clock/schedule_clocks * 3) (halves at
 *  schedule_clocks); cosine (1 + cos(pi min(1, clock/schedule_clocks)))/2. */
double pli_schedule_factor(const pli_rule *rule, int64_t clock);

/** The step of a push. batch: the job's b; whole: 1 for a summed bsp clock (fraction 1), else 0. */
pli_step pli_rule_step(const pli_rule *rule, int64_t clock, int64_t examples, int64_t batch, int whole);

#endif
