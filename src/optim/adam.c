/* adam - first and second moments of the gradient, corrected for their start at zero: with t = clock + 1,
 *     m <- beta1 m + (1 - beta1) g,   v <- beta2 v + (1 - beta2) g^2,
 *     s = rate / (sqrt(v / (1 - beta2^t)) + epsilon),   w <- prox_s(w - s m / (1 - beta1^t))
 * (Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015). If a sparse push does not touch a value,
 * its moments stay (the lazy form). A value that no gradient has reached stays as it is (s = 0). A push that is a
 * fraction f of a clock keeps beta^f of the moments, so that all pushes of a clock together keep beta, as one bsp
 * step does. */
#include "optim/prox.h"
#include "optim/rules.h"

/* The corrections after `clocks` >= 1 applications. */
typedef struct correction {
    double first, second; /* 1 / (1 - beta^t) */
} correction;

static correction correct(const plait_rule_numbers *rule, int64_t clocks) {
    const double t = clocks < 1 ? 1.0 : (double)clocks;
    return (correction){ 1.0 / (1.0 - pow(rule->beta1, t)), 1.0 / (1.0 - pow(rule->beta2, t)) };
}

/* How much of the moments an application keeps. */
typedef struct decay {
    double first, second;
} decay;

static decay decay_of(const plait_rule_numbers *rule, const plait_step *step) {
    if (step->fraction == 1.0) return (decay){ rule->beta1, rule->beta2 };
    return (decay){ pow(rule->beta1, step->fraction), pow(rule->beta2, step->fraction) };
}

static inline float step_f32(float v, float rate, float second, float epsilon) {
    return v > 0.0F ? rate / (sqrtf(v * second) + epsilon) : 0.0F;
}

static inline double step_f64(double v, double rate, double second, double epsilon) {
    return v > 0.0 ? rate / (sqrt(v * second) + epsilon) : 0.0;
}

static void moments_f32(const plait_rule_numbers *rule, const plait_step *step, int64_t n, float *restrict m,
                        float *restrict v, const float *restrict g) {
    const float scale = (float)step->gradient_scale;
    const decay d = decay_of(rule, step);
    const float keep1 = (float)d.first, take1 = (float)(1.0 - d.first);
    const float keep2 = (float)d.second, take2 = (float)(1.0 - d.second);
    for (int64_t i = 0; i < n; i++) {
        const float gradient = scale * g[i];
        m[i] = keep1 * m[i] + take1 * gradient;
        v[i] = keep2 * v[i] + take2 * (gradient * gradient);
    }
}

static void moments_f64(const plait_rule_numbers *rule, const plait_step *step, int64_t n, double *restrict m,
                        double *restrict v, const double *restrict g) {
    const double scale = step->gradient_scale;
    const decay d = decay_of(rule, step);
    const double keep1 = d.first, take1 = 1.0 - d.first, keep2 = d.second, take2 = 1.0 - d.second;
    for (int64_t i = 0; i < n; i++) {
        const double gradient = scale * g[i];
        m[i] = keep1 * m[i] + take1 * gradient;
        v[i] = keep2 * v[i] + take2 * (gradient * gradient);
    }
}

static void apply_f32(const plait_rule_numbers *rule, const plait_step *step, int64_t n, float *restrict w,
                      float *const *slot, const float *restrict g, const float *restrict penalty) {
    const correction c = correct(rule, step->clock + 1);
    const float first = (float)c.first, second = (float)c.second;
    const float rate = (float)step->rate, epsilon = (float)rule->epsilon, l1 = (float)rule->l1, l2 = (float)rule->l2;
    const float *restrict m = slot[0], *restrict v = slot[1];
    moments_f32(rule, step, n, slot[0], slot[1], g);
    if (penalty == NULL) {
        for (int64_t i = 0; i < n; i++) {
            const float s = step_f32(v[i], rate, second, epsilon);
            w[i] = pli_prox_f32(w[i] - s * (m[i] * first), s * l1, s * l2);
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            const float s = step_f32(v[i], rate, second, epsilon);
            w[i] = pli_prox_f32(w[i] - s * (m[i] * first), s * l1 * penalty[i], s * l2 * penalty[i]);
        }
    }
}

static void apply_f64(const plait_rule_numbers *rule, const plait_step *step, int64_t n, double *restrict w,
                      double *const *slot, const double *restrict g, const double *restrict penalty) {
    const correction c = correct(rule, step->clock + 1);
    const double rate = step->rate, epsilon = rule->epsilon, l1 = rule->l1, l2 = rule->l2;
    const double *restrict m = slot[0], *restrict v = slot[1];
    moments_f64(rule, step, n, slot[0], slot[1], g);
    if (penalty == NULL) {
        for (int64_t i = 0; i < n; i++) {
            const double s = step_f64(v[i], rate, c.second, epsilon);
            w[i] = pli_prox_f64(w[i] - s * (m[i] * c.first), s * l1, s * l2);
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            const double s = step_f64(v[i], rate, c.second, epsilon);
            w[i] = pli_prox_f64(w[i] - s * (m[i] * c.first), s * l1 * penalty[i], s * l2 * penalty[i]);
        }
    }
}

static void catch_up_f32(const plait_rule_numbers *rule, const plait_step *step, int64_t clocks, int64_t n, float *w,
                         float *const *slot, const float *penalty) {
    if (clocks <= 0 || !pli_rule_penalises(rule)) return;
    const correction c = correct(rule, step->clock);
    for (int64_t i = 0; i < n; i++) {
        const double p = penalty == NULL ? 1.0 : (double)penalty[i];
        const double s = step_f64((double)slot[1][i], step->rate, c.second, rule->epsilon);
        w[i] = (float)pli_prox_apply(pli_prox_power(s * rule->l1 * p, s * rule->l2 * p, clocks), (double)w[i]);
    }
}

static void catch_up_f64(const plait_rule_numbers *rule, const plait_step *step, int64_t clocks, int64_t n, double *w,
                         double *const *slot, const double *penalty) {
    if (clocks <= 0 || !pli_rule_penalises(rule)) return;
    const correction c = correct(rule, step->clock);
    for (int64_t i = 0; i < n; i++) {
        const double p = penalty == NULL ? 1.0 : penalty[i];
        const double s = step_f64(slot[1][i], step->rate, c.second, rule->epsilon);
        w[i] = pli_prox_apply(pli_prox_power(s * rule->l1 * p, s * rule->l2 * p, clocks), w[i]);
    }
}

const plait_rule pli_rule_adam = {
    .name = "adam",
    .slots = 2,
    .learning_rate = 0.005,
    .slot_name = { "m", "v" },
    .apply_f32 = apply_f32,
    .apply_f64 = apply_f64,
    .catch_up_f32 = catch_up_f32,
    .catch_up_f64 = catch_up_f64,
};
