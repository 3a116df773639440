/* plait/rule.h - update rules: how a gradient moves a parameter.
 *
 * A rule is an object that a table's owner applies to pushed gradients: a server's shard, each copy that sums by
 * collectives, the shared memory of `local`, the part of a copy whose state is sharded; the same object in all of them.
 * It sees values, its own state of them, and gradients, and knows no table, topology or message. Every rule that Plait
 * brings is written against this header (docs/optimizers.md), and a program registers its own by plait_job_opts.rules,
 * under a name of its own, on every rank:
 *
 *     static const plait_rule rmsprop = { .name = "rmsprop", .slots = 1, .learning_rate = 0.01, .apply_f32 = ... };
 *     job_opts.rules = &rmsprop; job_opts.n_rules = 1; ... table_opts.rule.name = "rmsprop";
 *
 * A rule works on n consecutive values at once, structure of arrays: w [n] and its `slots` arrays of state, slot[k]
 * [n], which are zero at first. It allocates nothing, calls nothing of Plait, keeps nothing between calls but what lies
 * in its slots, and an element's new bits are a function of the element's own numbers and of the step: never of n or of
 * the place in the array. How values are cut among calls depends on topology and workers, so only such a rule gives one
 * model under all of them. Calls for different values may come at once, from any thread.
 */
#ifndef PLAIT_RULE_H
#define PLAIT_RULE_H

#include <stdint.h>

#include <plait/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PLAIT_RULE_SLOTS = 4 };

/* One application: a push of `examples` rows in the pusher's clock, of a job with batch b. Under bsp the owner sums a
 * clock's pushes first, and fraction is 1; under a stale policy each push is applied by itself, with fraction =
 * examples / b, so that the pushes of one clock move about as far as one bsp step. */
typedef struct plait_step {
    int64_t clock;          /* the pusher's; the schedule's and Adam's t - 1              */
    double  gradient_scale; /* 1 / examples: g is a sum, and this times it the mean       */
    double  fraction;       /* of the clock's batch that the push stands for              */
    double  rate;           /* learning rate x schedule(clock) x fraction                 */
} plait_step;

typedef struct plait_rule plait_rule;

/* A rule with a table's numbers, from plait_rule_opts; rules read of them what they need. */
typedef struct plait_rule_numbers {
    const plait_rule *ops;
    double            learning_rate, momentum, beta1, beta2, epsilon, ftrl_beta, l1, l2;
    int               schedule; /* in step->rate already */
    int64_t           schedule_clocks;
} plait_rule_numbers;

struct plait_rule {
    const char *name;          /* "rmsprop": 1 to 15 bytes without colon, comma or space             */
    const char *summary;       /* one line; may be NULL                                              */
    int32_t     slots;         /* arrays of state, of one value each: 0 .. PLAIT_RULE_SLOTS          */
    double      learning_rate; /* where plait_rule_opts say 0; > 0                                   */
    int         derives; /* 1: values follow from the state, so that one that is set is lost at the next step: averages
                                  of copies are refused (gossip, local-sgd)                          */
    const char *slot_name[PLAIT_RULE_SLOTS]; /* for checkpoints: "m", "v"; may be NULL               */
    /** g is not scaled yet (step->gradient_scale). L1 and L2 are the rule's own affair: penalty [n] are factors on
     *  them, NULL: all 1. apply_f64 NULL: tables of float64 are refused. */
    void (*apply_f32)(const plait_rule_numbers *rule, const plait_step *step, int64_t n, float *w, float *const *slot,
                      const float *g, const float *penalty);
    void (*apply_f64)(const plait_rule_numbers *rule, const plait_step *step, int64_t n, double *w, double *const *slot,
                      const double *g, const double *penalty);
    /** For values that sparse pushes have not touched, called before they are next read or updated: makes up the
     *  penalty's part of the `clocks` applications just before step->clock with zero gradient, each with step's numbers
     *  (fraction 1). Both or (with apply_f32 alone) this one; NULL: the penalty reaches such values only when they are
     *  touched. */
    void (*catch_up_f32)(const plait_rule_numbers *rule, const plait_step *step, int64_t clocks, int64_t n, float *w,
                         float *const *slot, const float *penalty);
    void (*catch_up_f64)(const plait_rule_numbers *rule, const plait_step *step, int64_t clocks, int64_t n, double *w,
                         double *const *slot, const double *penalty);
    void *user; /* rule->ops->user; borrowed while the job lives, and shared by all threads */
};

#ifdef __cplusplus
}
#endif
#endif
