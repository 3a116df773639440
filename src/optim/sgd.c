/* sgd - stochastic gradient descent: w <- prox(w - rate g), with steps of one size for all values (Robbins and
 * Monro, "A Stochastic Approximation Method", 1951). */
#include "optim/prox.h"
#include "optim/rules.h"

static void apply_f32(const plait_rule_numbers *rule, const plait_step *step, int64_t n, float *restrict w,
                      float *const *slot, const float *restrict g, const float *restrict penalty) {
    const float rate = (float)(step->rate * step->gradient_scale);
    const float l1 = (float)(step->rate * rule->l1), l2 = (float)(step->rate * rule->l2);
    (void)slot;
    if (penalty == NULL) {
        for (int64_t i = 0; i < n; i++) w[i] = pli_prox_f32(w[i] - rate * g[i], l1, l2);
    } else {
        for (int64_t i = 0; i < n; i++) w[i] = pli_prox_f32(w[i] - rate * g[i], l1 * penalty[i], l2 * penalty[i]);
    }
}

static void apply_f64(const plait_rule_numbers *rule, const plait_step *step, int64_t n, double *restrict w,
                      double *const *slot, const double *restrict g, const double *restrict penalty) {
    const double rate = step->rate * step->gradient_scale;
    const double l1 = step->rate * rule->l1, l2 = step->rate * rule->l2;
    (void)slot;
    if (penalty == NULL) {
        for (int64_t i = 0; i < n; i++) w[i] = pli_prox_f64(w[i] - rate * g[i], l1, l2);
    } else {
        for (int64_t i = 0; i < n; i++) w[i] = pli_prox_f64(w[i] - rate * g[i], l1 * penalty[i], l2 * penalty[i]);
    }
}

static void catch_up_f32(const plait_rule_numbers *rule, const plait_step *step, int64_t clocks, int64_t n, float *w,
                         float *const *slot, const float *penalty) {
    (void)slot;
    pli_prox_even_f32(rule, step->rate, clocks, n, w, penalty);
}

static void catch_up_f64(const plait_rule_numbers *rule, const plait_step *step, int64_t clocks, int64_t n, double *w,
                         double *const *slot, const double *penalty) {
    (void)slot;
    pli_prox_even_f64(rule, step->rate, clocks, n, w, penalty);
}

const plait_rule pli_rule_sgd = {
    .name = "sgd",
    .slots = 0,
    .learning_rate = 0.1,
    .apply_f32 = apply_f32,
    .apply_f64 = apply_f64,
    .catch_up_f32 = catch_up_f32,
    .catch_up_f64 = catch_up_f64,
};
