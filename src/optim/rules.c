/* rules - the registry of update rules, their numbers and their schedules. A new rule is one file and one line. */
#include "optim/rules.h"

#include <math.h>
#include <string.h>

static const pli_rule_ops *const all_rules[] = {
    &pli_rule_sgd, &pli_rule_momentum, &pli_rule_adagrad, &pli_rule_adam, &pli_rule_ftrl, NULL,
};

static const char *const schedule_names[] = { "constant", "invsqrt", "cosine" };

enum {
    N_RULES = sizeof all_rules / sizeof *all_rules - 1,
    N_SCHEDULES = sizeof schedule_names / sizeof *schedule_names
};

const pli_rule_ops *const *pli_rules(void) {
    return all_rules;
}

void plait_rule_opts_init(plait_rule_opts *opts) {
    *opts = (plait_rule_opts){
        .size = sizeof *opts,
        .momentum = 0.9,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-8,
        .ftrl_beta = 1.0,
    };
}

static plait_status find_rule(const char *name, const pli_rule_ops **ops_out, plait_error *err) {
    const char *names[N_RULES];
    for (size_t i = 0; i < N_RULES; i++) {
        names[i] = all_rules[i]->name;
        if (strcmp(names[i], name) == 0) {
            *ops_out = all_rules[i];
            return PLAIT_OK;
        }
    }
    return pli_fail_unknown(err, "optimizer", name, names, N_RULES);
}

static plait_status find_schedule(const char *name, int *schedule_out, plait_error *err) {
    for (size_t i = 0; i < N_SCHEDULES; i++) {
        if (name == NULL || strcmp(schedule_names[i], name) == 0) {
            *schedule_out = (int)i;
            return PLAIT_OK;
        }
    }
    return pli_fail_unknown(err, "schedule", name, schedule_names, N_SCHEDULES);
}

/* Bounds as [low, high), or (low, high) where open. NaN lies in none. */
static plait_status in_range(const char *name, double value, double low, int open, double high, plait_error *err) {
    if ((open ? value > low : value >= low) && value < high) return PLAIT_OK;
    if (high == (double)INFINITY) {
        return pli_fail(err, PLAIT_EINVAL, "%s is %g; it must be finite and %s %g", name, value,
                        open ? ">" : ">=", low);
    }
    return pli_fail(err, PLAIT_EINVAL, "%s is %g; it must lie in %c%g, %g)", name, value, open ? '(' : '[', low, high);
}

static plait_status check(const pli_rule *rule, plait_error *err) {
    const double none = (double)INFINITY;
    PLI_TRY(in_range("learning rate", rule->learning_rate, 0.0, 1, none, err));
    PLI_TRY(in_range("momentum", rule->momentum, 0.0, 0, 1.0, err));
    PLI_TRY(in_range("beta1", rule->beta1, 0.0, 0, 1.0, err));
    PLI_TRY(in_range("beta2", rule->beta2, 0.0, 0, 1.0, err));
    PLI_TRY(in_range("epsilon", rule->epsilon, 0.0, 0, none, err));
    PLI_TRY(in_range("ftrl beta", rule->ftrl_beta, 0.0, 0, none, err));
    PLI_TRY(in_range("l1", rule->l1, 0.0, 0, none, err));
    PLI_TRY(in_range("l2", rule->l2, 0.0, 0, none, err));
    if (rule->schedule != PLI_CONSTANT && rule->schedule_clocks <= 0) {
        return pli_fail(err, PLAIT_EINVAL, "the schedule %s needs its length in clocks (> 0)",
                        schedule_names[rule->schedule]);
    }
    if (rule->schedule != PLI_CONSTANT && rule->ops == &pli_rule_ftrl) {
        return pli_fail(err, PLAIT_EREFUSED,
                        "ftrl lowers its rate by itself; the schedule %s does not go with it "
                        "(take constant, or adagrad)",
                        schedule_names[rule->schedule]);
    }
    return PLAIT_OK;
}

plait_status pli_rule_make(const plait_rule_opts *opts, pli_rule *rule_out, plait_error *err) {
    if (opts->size != sizeof *opts) {
        return pli_fail(err, PLAIT_EINVAL, "rule options not filled by plait_rule_opts_init");
    }
    if (opts->name == NULL) return pli_fail(err, PLAIT_EINVAL, "an additive table has no update rule");
    pli_rule rule = {
        .learning_rate = opts->learning_rate,
        .momentum = opts->momentum,
        .beta1 = opts->beta1,
        .beta2 = opts->beta2,
        .epsilon = opts->epsilon,
        .ftrl_beta = opts->ftrl_beta,
        .l1 = opts->l1,
        .l2 = opts->l2,
        .schedule_clocks = opts->schedule_clocks,
    };
    PLI_TRY(find_rule(opts->name, &rule.ops, err));
    PLI_TRY(find_schedule(opts->schedule, &rule.schedule, err));
    if (rule.learning_rate == 0.0) rule.learning_rate = rule.ops->learning_rate;
    PLI_TRY(check(&rule, err));
    *rule_out = rule;
    return PLAIT_OK;
}

double pli_schedule_factor(const pli_rule *rule, int64_t clock) {
    if (rule->schedule == PLI_CONSTANT) return 1.0;
    const double part = (double)clock / (double)rule->schedule_clocks;
    if (rule->schedule == PLI_INVSQRT) return 1.0 / sqrt(1.0 + 3.0 * part);
    return 0.5 * (1.0 + cos(3.14159265358979323846 * fmin(1.0, part)));
}

pli_step pli_rule_step(const pli_rule *rule, int64_t clock, int64_t examples, int64_t batch, int whole) {
    const double fraction = whole ? 1.0 : (double)examples / (double)batch;
    return (pli_step){
        .clock = clock,
        .gradient_scale = examples > 0 ? 1.0 / (double)examples : 1.0,
        .fraction = fraction,
        .rate = rule->learning_rate * pli_schedule_factor(rule, clock) * fraction,
    };
}
