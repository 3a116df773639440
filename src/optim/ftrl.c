/* ftrl - FTRL-proximal: the leader of all gradients so far, kept near the former models:
 *     sigma = (sqrt(n + g^2) - sqrt(n)) / alpha,   z <- z + g - sigma w,   n <- n + g^2,
 *     w = 0 where |z| <= t l1, else -(z - sign(z) t l1) / ((beta + sqrt(n)) / alpha + t l2)
 * (McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013). In that paper the penalty counts once in
 * all; here it belongs to the objective, so each of the t = clock + 1 applications adds its own (the composite form:
 * McMahan, "Follow-the-Regularized-Leader and Mirror Descent", AISTATS 2011). A push that is a fraction of a clock
 * weighs its gradient and its square by the fraction, so alpha stays one number. The rate falls by itself, so schedules
 * are refused.
 *
 * A value that no gradient has reached (n = 0) stays as it is; if it starts from w != 0, beta holds it there. */
#include "optim/prox.h"
#include "optim/rules.h"

typedef struct numbers_f32 {
    float scale, fraction, alpha, beta, l1, l2; /* l1 and l2: of all t applications */
} numbers_f32;

typedef struct numbers_f64 {
    double scale, fraction, alpha, beta, l1, l2;
} numbers_f64;

static numbers_f64 numbers(const plait_rule_numbers *rule, const plait_step *step, int64_t t) {
    return (numbers_f64){ step->gradient_scale, step->fraction, rule->learning_rate, rule->ftrl_beta,
                          rule->l1 * (double)t, rule->l2 * (double)t };
}

static numbers_f32 narrow(numbers_f64 of) {
    return (numbers_f32){ (float)of.scale, (float)of.fraction, (float)of.alpha,
                          (float)of.beta,  (float)of.l1,       (float)of.l2 };
}

static inline float leader_f32(numbers_f32 of, float z, float root, float penalty) {
    const float size = fabsf(z) - of.l1 * penalty;
    return -copysignf((size < 0.0F ? 0.0F : size) / ((of.beta + root) / of.alpha + of.l2 * penalty), z);
}

static inline double leader_f64(numbers_f64 of, double z, double root, double penalty) {
    const double size = fabs(z) - of.l1 * penalty;
    return -copysign((size < 0.0 ? 0.0 : size) / ((of.beta + root) / of.alpha + of.l2 * penalty), z);
}

typedef struct value_f32 {
    float w, z, n;
} value_f32;

static inline value_f32 one_f32(numbers_f32 of, value_f32 at, float g, float penalty) {
    const float mean = of.scale * g, gradient = of.fraction * mean, sum = at.n + gradient * mean;
    const float before = sqrtf(at.n), root = sqrtf(sum);
    const float start = at.n > 0.0F ? at.z : -(at.w * (of.beta / of.alpha));
    const float z = start + (gradient - (root - before) / of.alpha * at.w);
    const float w = leader_f32(of, z, root, penalty);
    return (value_f32){ sum == 0.0F ? at.w : w, sum == 0.0F ? at.z : z, sum };
}

typedef struct value_f64 {
    double w, z, n;
} value_f64;

static inline value_f64 one_f64(numbers_f64 of, value_f64 at, double g, double penalty) {
    const double mean = of.scale * g, gradient = of.fraction * mean, sum = at.n + gradient * mean;
    const double before = sqrt(at.n), root = sqrt(sum);
    const double start = at.n > 0.0 ? at.z : -(at.w * (of.beta / of.alpha));
    const double z = start + (gradient - (root - before) / of.alpha * at.w);
    const double w = leader_f64(of, z, root, penalty);
    return (value_f64){ sum == 0.0 ? at.w : w, sum == 0.0 ? at.z : z, sum };
}

static void apply_f32(const plait_rule_numbers *rule, const plait_step *step, int64_t count, float *restrict w,
                      float *const *slot, const float *restrict g, const float *restrict penalty) {
    const numbers_f32 of = narrow(numbers(rule, step, step->clock + 1));
    float *restrict z = slot[0], *restrict n = slot[1];
    if (penalty == NULL) {
        for (int64_t i = 0; i < count; i++) {
            const value_f32 next = one_f32(of, (value_f32){ w[i], z[i], n[i] }, g[i], 1.0F);
            w[i] = next.w, z[i] = next.z, n[i] = next.n;
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            const value_f32 next = one_f32(of, (value_f32){ w[i], z[i], n[i] }, g[i], penalty[i]);
            w[i] = next.w, z[i] = next.z, n[i] = next.n;
        }
    }
}

static void apply_f64(const plait_rule_numbers *rule, const plait_step *step, int64_t count, double *restrict w,
                      double *const *slot, const double *restrict g, const double *restrict penalty) {
    const numbers_f64 of = numbers(rule, step, step->clock + 1);
    double *restrict z = slot[0], *restrict n = slot[1];
    if (penalty == NULL) {
        for (int64_t i = 0; i < count; i++) {
            const value_f64 next = one_f64(of, (value_f64){ w[i], z[i], n[i] }, g[i], 1.0);
            w[i] = next.w, z[i] = next.z, n[i] = next.n;
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            const value_f64 next = one_f64(of, (value_f64){ w[i], z[i], n[i] }, g[i], penalty[i]);
            w[i] = next.w, z[i] = next.z, n[i] = next.n;
        }
    }
}

/* The leader with the penalty of all clocks before step->clock; it does not matter how many of them were missed. */
static void catch_up_f32(const plait_rule_numbers *rule, const plait_step *step, int64_t clocks, int64_t n, float *w,
                         float *const *slot, const float *penalty) {
    if (clocks <= 0 || !pli_rule_penalises(rule)) return;
    const numbers_f32 of = narrow(numbers(rule, step, step->clock));
    for (int64_t i = 0; i < n; i++) {
        const float p = penalty == NULL ? 1.0F : penalty[i];
        if (slot[1][i] > 0.0F) w[i] = leader_f32(of, slot[0][i], sqrtf(slot[1][i]), p);
    }
}

static void catch_up_f64(const plait_rule_numbers *rule, const plait_step *step, int64_t clocks, int64_t n, double *w,
                         double *const *slot, const double *penalty) {
    if (clocks <= 0 || !pli_rule_penalises(rule)) return;
    const numbers_f64 of = numbers(rule, step, step->clock);
    for (int64_t i = 0; i < n; i++) {
        const double p = penalty == NULL ? 1.0 : penalty[i];
        if (slot[1][i] > 0.0) w[i] = leader_f64(of, slot[0][i], sqrt(slot[1][i]), p);
    }
}

const plait_rule pli_rule_ftrl = {
    .name = "ftrl",
    .derives = true,
    .slots = 2,
    .learning_rate = 0.3,
    .slot_name = { "z", "n" },
    .apply_f32 = apply_f32,
    .apply_f64 = apply_f64,
    .catch_up_f32 = catch_up_f32,
    .catch_up_f64 = catch_up_f64,
};
