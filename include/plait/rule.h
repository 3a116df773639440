/* plait/rule.h - update rules: how a gradient moves a parameter.
 *
 * A table's owner applies its rule to pushed gradients. The owner is a server's shard, a copy that sums by collectives,
 * the shared memory of `local`, or the part of a copy whose state is sharded; all of them use the same rule object. A
 * rule sees values, the state that it keeps for them, and gradients; it knows no table, topology or message. Every rule
 * that Plait brings is written against this header (docs/optimizers.md). A program registers its own by
 * plait_job_opts.rules, under a new name, on every rank:
 *
 *     static const plait_rule rmsprop = { .name = "rmsprop", .slots = 1, .learning_rate = 0.01, .apply_f32 = ... };
 *     job_opts.rules = &rmsprop; job_opts.n_rules = 1; ... table_opts.rule.name = "rmsprop";
 *
 * A rule works on n consecutive values at once, as a structure of arrays: w [n] and its `slots` arrays of state,
 * slot[k] [n], which are zero at first. It allocates nothing, calls nothing of Plait, and keeps nothing between calls
 * but what lies in its slots. An element's new bits are a function of the element's own numbers and of the step, never
 * of n or of the place in the array: how values are divided among calls depends on topology and workers, so only such a
 * rule gives the same model under all of them. Calls for different values may run at the same time, on any thread.
 */
#ifndef PLAIT_RULE_H
#define PLAIT_RULE_H

#include <stdint.h>

#include <plait/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PLAIT_RULE_SLOTS = 4 };

/* One application of a rule: a push of `examples` rows, in the pusher's clock, in a job with batch b. Under bsp the
 * owner first sums all pushes of a clock, and fraction is 1. Under a stale policy each push is applied by itself, with
 * fraction = examples / b, so that the pushes of one clock move the values about as far as one bsp step. */
typedef struct plait_step {
    int64_t clock;          /* the pusher's clock; t - 1 in the schedule and in Adam      */
    double  gradient_scale; /* 1 / examples: g is a sum, gradient_scale x g is the mean   */
    double  fraction;       /* the fraction of the clock's batch that this push covers    */
    double  rate;           /* learning rate x schedule(clock) x fraction                 */
} plait_step;

typedef struct plait_rule plait_rule;

/* A rule with a table's numbers, from plait_rule_opts; a rule reads those that it needs. */
typedef struct plait_rule_numbers {
    const plait_rule *ops;
    double            learning_rate, momentum, beta1, beta2, epsilon, ftrl_beta, l1, l2;
    int               schedule; /* step->rate has it already */
    int64_t           schedule_clocks;
} plait_rule_numbers;

struct plait_rule {
    const char *name;          /* "rmsprop": 1 to 15 bytes without colon, comma or space             */
    const char *summary;       /* one line; may be NULL                                              */
    int32_t     slots;         /* arrays of state, each with one number a value: 0 .. PLAIT_RULE_SLOTS */
    double      learning_rate; /* the default, where plait_rule_opts.learning_rate is 0; > 0         */
    int         derives; /* 1: the next step computes values from the state alone, so a value that was set is lost.
                                  Topologies that average copies (gossip, local-sgd) refuse such a rule */
    const char *slot_name[PLAIT_RULE_SLOTS]; /* for checkpoints: "m", "v"; may be NULL               */
    /** Applies g [n] to w [n]. g is not scaled yet (step->gradient_scale). The rule itself applies L1 and L2; penalty
     *  [n] has factors on them, NULL: all 1. If apply_f64 is NULL, tables of float64 are refused. */
    void (*apply_f32)(const plait_rule_numbers *rule, const plait_step *step, int64_t n, float *w, float *const *slot,
                      const float *g, const float *penalty);
    void (*apply_f64)(const plait_rule_numbers *rule, const plait_step *step, int64_t n, double *w, double *const *slot,
                      const double *g, const double *penalty);
    /** Brings values that sparse pushes have not touched up to date, before they are next read or updated: applies the
     *  penalty of the last `clocks` clocks before step->clock, in which the gradient was zero, each with step's numbers
     *  (fraction 1). A rule with apply_f64 has both catch_up functions or neither. NULL: the penalty is applied to a
     *  value only when a push touches it. */
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
