/* adagrad - each value has a step of its own, which falls with the gradients it has seen: G <- G + g^2, s = rate /
 * (sqrt(G) + epsilon), w <- prox_s(w - s g) (Duchi, Hazan, Singer, "Adaptive Subgradient Methods for Online Learning
 * and Stochastic Optimization", JMLR 2011, with composite mirror descent for the penalty). A push that is a fraction
 * of a clock adds that fraction of its square. Otherwise the squares of a clock's W pushes would add up to W times
 * that of a bsp step and shorten all later steps by sqrt(W). A value that no gradient has reached has no metric yet
 * and stays as it is (s = 0). */
#include "optim/prox.h"
#include "optim/rules.h"

static inline float step_f32(float sum, float rate, float epsilon) {
    return sum > 0.0F ? rate / (sqrtf(sum) + epsilon) : 0.0F;
}

static inline double step_f64(double sum, double rate, double epsilon) {
    return sum > 0.0 ? rate / (sqrt(sum) + epsilon) : 0.0;
}

static void apply_f32(const plait_rule_numbers *rule, const plait_step *step, int64_t n, float *restrict w,
                      float *const *slot, const float *restrict g, const float *restrict penalty) {
    const float scale = (float)step->gradient_scale, rate = (float)step->rate, epsilon = (float)rule->epsilon;
    const float fraction = (float)step->fraction;
    const float l1 = (float)rule->l1, l2 = (float)rule->l2;
    float *restrict sum = slot[0];
    if (penalty == NULL) {
        for (int64_t i = 0; i < n; i++) {
            const float gradient = scale * g[i];
            sum[i] += fraction * (gradient * gradient);
            const float s = step_f32(sum[i], rate, epsilon);
            w[i] = pli_prox_f32(w[i] - s * gradient, s * l1, s * l2);
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            const float gradient = scale * g[i];
            sum[i] += fraction * (gradient * gradient);
            const float s = step_f32(sum[i], rate, epsilon);
            w[i] = pli_prox_f32(w[i] - s * gradient, s * l1 * penalty[i], s * l2 * penalty[i]);
        }
    }
}

static void apply_f64(const plait_rule_numbers *rule, const plait_step *step, int64_t n, double *restrict w,
                      double *const *slot, const double *restrict g, const double *restrict penalty) {
    const double scale = step->gradient_scale, rate = step->rate, epsilon = rule->epsilon, fraction = step->fraction;
    const double l1 = rule->l1, l2 = rule->l2;
    double *restrict sum = slot[0];
    if (penalty == NULL) {
        for (int64_t i = 0; i < n; i++) {
            const double gradient = scale * g[i];
            sum[i] += fraction * (gradient * gradient);
            const double s = step_f64(sum[i], rate, epsilon);
            w[i] = pli_prox_f64(w[i] - s * gradient, s * l1, s * l2);
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            const double gradient = scale * g[i];
            sum[i] += fraction * (gradient * gradient);
            const double s = step_f64(sum[i], rate, epsilon);
            w[i] = pli_prox_f64(w[i] - s * gradient, s * l1 * penalty[i], s * l2 * penalty[i]);
        }
    }
}

static void catch_up_f32(const plait_rule_numbers *rule, const plait_step *step, int64_t clocks, int64_t n, float *w,
                         float *const *slot, const float *penalty) {
    if (clocks <= 0 || !pli_rule_penalises(rule)) return;
    for (int64_t i = 0; i < n; i++) {
        const double p = penalty == NULL ? 1.0 : (double)penalty[i];
        const double s = step_f64((double)slot[0][i], step->rate, rule->epsilon);
        w[i] = (float)pli_prox_apply(pli_prox_power(s * rule->l1 * p, s * rule->l2 * p, clocks), (double)w[i]);
    }
}

static void catch_up_f64(const plait_rule_numbers *rule, const plait_step *step, int64_t clocks, int64_t n, double *w,
                         double *const *slot, const double *penalty) {
    if (clocks <= 0 || !pli_rule_penalises(rule)) return;
    for (int64_t i = 0; i < n; i++) {
        const double p = penalty == NULL ? 1.0 : penalty[i];
        const double s = step_f64(slot[0][i], step->rate, rule->epsilon);
        w[i] = pli_prox_apply(pli_prox_power(s * rule->l1 * p, s * rule->l2 * p, clocks), w[i]);
    }
}

const plait_rule pli_rule_adagrad = {
    .name = "adagrad",
    .slots = 1,
    .learning_rate = 0.1,
    .slot_name = { "sum" },
    .apply_f32 = apply_f32,
    .apply_f64 = apply_f64,
    .catch_up_f32 = catch_up_f32,
    .catch_up_f64 = catch_up_f64,
};
