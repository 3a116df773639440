/* rules - the registry of update rules, their numbers and their schedules. A new rule is one file and one line. */
#include "optim/rules.h"

#include <math.h>
#include <string.h>

static const plait_rule *const all_rules[] = {
    &pli_rule_sgd, &pli_rule_momentum, &pli_rule_adagrad, &pli_rule_adam, &pli_rule_ftrl, NULL,
};

static const char *const schedule_names[] = { "constant", "invsqrt", "cosine" };

enum {
    N_RULES = sizeof all_rules / sizeof *all_rules - 1,
    OWN_MAX = 16,
    N_SCHEDULES = sizeof schedule_names / sizeof *schedule_names
};

const plait_rule *const *pli_rules(void) { return all_rules; }

void plait_rule_opts_init(plait_rule_opts *opts) {
    if (opts == NULL) return;
    *opts = (plait_rule_opts){
        .size = sizeof *opts,
        .momentum = 0.9,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-8,
        .ftrl_beta = 1.0,
    };
}

const plait_rule *pli_rule_find(const char *name, const pli_rule_scope *scope) {
    for (size_t i = 0; i < N_RULES; i++)
        if (strcmp(all_rules[i]->name, name) == 0) return all_rules[i];
    for (int32_t i = 0; scope != NULL && i < scope->n_own; i++)
        if (strcmp(scope->own[i].name, name) == 0) return &scope->own[i];
    return NULL;
}

static plait_status find_rule(const char *name, const pli_rule_scope *scope, const plait_rule **ops_out,
                              plait_error *err) {
    const char *names[N_RULES + OWN_MAX];
    size_t      n = 0;
    *ops_out = pli_rule_find(name, scope);
    if (*ops_out != NULL) return PLAIT_OK;
    while (n < N_RULES) {
        names[n] = all_rules[n]->name;
        n++;
    }
    for (int32_t i = 0; scope != NULL && i < scope->n_own; i++) names[n++] = scope->own[i].name;
    return pli_fail_unknown(err, "optimizer", name, names, n);
}

static bool is_name(const char *name) {
    size_t length = name == NULL ? 0 : strlen(name);
    return length > 0 && length < PLI_RULE_NAME && strcspn(name, ":, \t\n") == length;
}

plait_status pli_rules_check_own(const plait_rule *own, int32_t n, plait_error *err) {
    if (n < 0 || n > OWN_MAX || (n > 0 && own == NULL))
        return pli_fail(err, PLAIT_EINVAL, "a job with %d update rules; at most %d are possible", n, OWN_MAX);
    for (int32_t i = 0; i < n; i++) {
        const pli_rule_scope before = { .own = own, .n_own = i };
        if (!is_name(own[i].name))
            return pli_fail(err, PLAIT_EINVAL,
                            "update rule %d needs a name of 1 to %d bytes without colon, comma or space", i,
                            PLI_RULE_NAME - 1);
        if (pli_rule_find(own[i].name, &before) != NULL || strcmp(own[i].name, "lbfgs") == 0)
            return pli_fail(err, PLAIT_EINVAL, "update rule %s exists already; give yours another name", own[i].name);
        if (own[i].apply_f32 == NULL || own[i].slots < 0 || own[i].slots > PLAIT_RULE_SLOTS ||
            !(own[i].learning_rate > 0) || !isfinite(own[i].learning_rate))
            return pli_fail(err, PLAIT_EINVAL,
                            "update rule %s needs apply_f32, a learning_rate above 0 and 0 to %d slots", own[i].name,
                            PLAIT_RULE_SLOTS);
        if (own[i].apply_f64 != NULL && (own[i].catch_up_f32 == NULL) != (own[i].catch_up_f64 == NULL))
            return pli_fail(err, PLAIT_EINVAL, "update rule %s needs both of catch_up_f32 and catch_up_f64, or neither",
                            own[i].name);
    }
    return PLAIT_OK;
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

/* Checks bounds: [low, high), or (low, high) if open. NaN is in neither. */
static plait_status in_range(const char *name, double value, double low, int open, double high, plait_error *err) {
    if ((open ? value > low : value >= low) && value < high) return PLAIT_OK;
    if (high == (double)INFINITY) {
        return pli_fail(err, PLAIT_EINVAL, "%s is %g; it must be finite and %s %g", name, value,
                        open ? ">" : ">=", low);
    }
    return pli_fail(err, PLAIT_EINVAL, "%s is %g; it must lie in %c%g, %g)", name, value, open ? '(' : '[', low, high);
}

static plait_status check(const plait_rule_numbers *rule, plait_error *err) {
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

plait_status pli_rule_make(const plait_rule_opts *opts, const pli_rule_scope *scope, plait_rule_numbers *rule_out,
                           plait_error *err) {
    if (opts->size != sizeof *opts) { /* it lies inside plait_table_opts, so its size never changes */
        return pli_fail(err, PLAIT_EINVAL, "rule options not filled by plait_rule_opts_init");
    }
    if (opts->name == NULL) return pli_fail(err, PLAIT_EINVAL, "an additive table has no update rule");
    plait_rule_numbers rule = {
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
    PLI_TRY(find_rule(opts->name, scope, &rule.ops, err));
    PLI_TRY(find_schedule(opts->schedule, &rule.schedule, err));
    if (rule.learning_rate == 0.0) rule.learning_rate = rule.ops->learning_rate;
    PLI_TRY(check(&rule, err));
    *rule_out = rule;
    return PLAIT_OK;
}

double pli_schedule_factor(const plait_rule_numbers *rule, int64_t clock) {
    if (rule->schedule == PLI_CONSTANT) return 1.0;
    const double part = (double)clock / (double)rule->schedule_clocks;
    if (rule->schedule == PLI_INVSQRT) return 1.0 / sqrt(1.0 + 3.0 * part);
    return 0.5 * (1.0 + cos(3.14159265358979323846 * fmin(1.0, part)));
}

plait_step pli_rule_step(const plait_rule_numbers *rule, int64_t clock, int64_t examples, int64_t batch, int whole) {
    const double fraction = whole ? 1.0 : (double)examples / (double)batch;
    return (plait_step){
        .clock = clock,
        .gradient_scale = examples > 0 ? 1.0 / (double)examples : 1.0,
        .fraction = fraction,
        .rate = rule->learning_rate * pli_schedule_factor(rule, clock) * fraction,
    };
}
