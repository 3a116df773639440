/* momentum - the heavy ball: m <- mu m + g, w <- prox(w - rate m) (Polyak, "Some Methods of Speeding up the
 * Convergence of Iteration Methods", 1964). At rest m is g / (1 - mu), so the penalty takes steps of rate / (1 -
 * mu): only then is the resting point the minimum of the objective. */
#include "optim/prox.h"
#include "optim/rules.h"

static double penalty_step(const plait_rule_numbers *rule, const plait_step *step) {
    return step->rate / (1.0 - rule->momentum);
}

static void apply_f32(const plait_rule_numbers *rule, const plait_step *step, int64_t n, float *restrict w,
                      float *const *slot, const float *restrict g, const float *restrict penalty) {
    const float mu = (float)rule->momentum, scale = (float)step->gradient_scale, rate = (float)step->rate;
    const float l1 = (float)(penalty_step(rule, step) * rule->l1), l2 = (float)(penalty_step(rule, step) * rule->l2);
    float *restrict m = slot[0];
    for (int64_t i = 0; i < n; i++) m[i] = mu * m[i] + scale * g[i];
    if (penalty == NULL) {
        for (int64_t i = 0; i < n; i++) w[i] = pli_prox_f32(w[i] - rate * m[i], l1, l2);
    } else {
        for (int64_t i = 0; i < n; i++) w[i] = pli_prox_f32(w[i] - rate * m[i], l1 * penalty[i], l2 * penalty[i]);
    }
}

static void apply_f64(const plait_rule_numbers *rule, const plait_step *step, int64_t n, double *restrict w,
                      double *const *slot, const double *restrict g, const double *restrict penalty) {
    const double mu = rule->momentum, scale = step->gradient_scale, rate = step->rate;
    const double l1 = penalty_step(rule, step) * rule->l1, l2 = penalty_step(rule, step) * rule->l2;
    double *restrict m = slot[0];
    for (int64_t i = 0; i < n; i++) m[i] = mu * m[i] + scale * g[i];
    if (penalty == NULL) {
        for (int64_t i = 0; i < n; i++) w[i] = pli_prox_f64(w[i] - rate * m[i], l1, l2);
    } else {
        for (int64_t i = 0; i < n; i++) w[i] = pli_prox_f64(w[i] - rate * m[i], l1 * penalty[i], l2 * penalty[i]);
    }
}

static void catch_up_f32(const plait_rule_numbers *rule, const plait_step *step, int64_t clocks, int64_t n, float *w,
                         float *const *slot, const float *penalty) {
    (void)slot;
    pli_prox_even_f32(rule, penalty_step(rule, step), clocks, n, w, penalty);
}

static void catch_up_f64(const plait_rule_numbers *rule, const plait_step *step, int64_t clocks, int64_t n, double *w,
                         double *const *slot, const double *penalty) {
    (void)slot;
    pli_prox_even_f64(rule, penalty_step(rule, step), clocks, n, w, penalty);
}

const plait_rule pli_rule_momentum = {
    .name = "momentum",
    .slots = 1,
    .learning_rate = 0.02,
    .slot_name = { "m" },
    .apply_f32 = apply_f32,
    .apply_f64 = apply_f64,
    .catch_up_f32 = catch_up_f32,
    .catch_up_f64 = catch_up_f64,
};
