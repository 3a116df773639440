/* Every rule against its formula in plain double arithmetic; the proximal step against a search for the minimum;
 * catch-up against single steps; an element's bits do not depend on its place; names and numbers that are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "optim/prox.h"
#include "optim/rules.h"

enum { N = 67, CLOCKS = 40, BATCH = 8 };

typedef struct model {
    double w[N], a[N], b[N]; /* weights and two slots */
} model;

static plait_rule_opts opts_of(const char *name) {
    plait_rule_opts opts;
    plait_rule_opts_init(&opts);
    opts.name = name;
    return opts;
}

static plait_rule_numbers rule_of(const char *name, double l1, double l2) {
    plait_rule_opts opts = opts_of(name);
    plait_rule_numbers rule;
    plait_error err;
    opts.l1 = l1;
    opts.l2 = l2;
    assert_int_equal(pli_rule_make(&opts, NULL, &rule, &err), PLAIT_OK);
    return rule;
}

/* Gradients summed over BATCH rows; every fifth value always has gradient 0. */
static void gradient(int64_t clock, double *g) {
    pli_random r = pli_random_at(7, PLI_RANDOM_DATA, (uint64_t)clock, 0);
    for (int i = 0; i < N; i++) g[i] = i % 5 == 4 ? 0.0 * pli_random_normal(&r) : (double)(float)pli_random_normal(&r);
}

static void penalties(double *p) {
    for (int i = 0; i < N; i++) p[i] = i % 7 == 0 ? 0.0 : 0.25 * (double)(i % 4 + 1);
}

static void start(model *m) {
    memset(m, 0, sizeof *m);
    for (int i = 0; i < N; i++) m->w[i] = (double)(i % 3 - 1);
}

/* --- the formulas, as docs/optimizers.md has them ------------------------------------------------ */

static double sign(double x) {
    return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0;
}

static double prox(double w, double s, double l1, double l2) {
    return sign(w) * fmax(0.0, fabs(w) - s * l1) / (1.0 + s * l2);
}

static void plain(const plait_rule_numbers *rule, double t, double rate, double f, model *m, int i, double g, double l1,
                  double l2) {
    double *w = &m->w[i], *a = &m->a[i], *b = &m->b[i];
    const char *name = rule->ops->name;
    if (strcmp(name, "sgd") == 0) {
        *w = prox(*w - rate * g, rate, l1, l2);
    } else if (strcmp(name, "momentum") == 0) {
        *a = rule->momentum * *a + g;
        *w = prox(*w - rate * *a, rate / (1 - rule->momentum), l1, l2);
    } else if (strcmp(name, "adagrad") == 0) {
        *a += f * g * g;
        const double s = *a > 0 ? rate / (sqrt(*a) + rule->epsilon) : 0;
        *w = prox(*w - s * g, s, l1, l2);
    } else if (strcmp(name, "adam") == 0) {
        const double beta1 = pow(rule->beta1, f), beta2 = pow(rule->beta2, f);
        *a = beta1 * *a + (1 - beta1) * g;
        *b = beta2 * *b + (1 - beta2) * g * g;
        const double mean = *a / (1 - pow(rule->beta1, t)), square = *b / (1 - pow(rule->beta2, t));
        const double s = square > 0 ? rate / (sqrt(square) + rule->epsilon) : 0;
        *w = prox(*w - s * mean, s, l1, l2);
    } else {
        const double alpha = rule->learning_rate, beta = rule->ftrl_beta;
        const double square = f * g * g;
        g *= f;
        if (*b == 0 && g == 0) return;
        if (*b == 0) *a = -*w * beta / alpha;
        const double sigma = (sqrt(*b + square) - sqrt(*b)) / alpha;
        *a += g - sigma * *w;
        *b += square;
        *w = fabs(*a) <= t * l1 ? 0 : -(*a - sign(*a) * t * l1) / ((beta + sqrt(*b)) / alpha + t * l2);
    }
}

static void run_plain(const plait_rule_numbers *rule, model *m, const double *p, int64_t pushes) {
    double g[N];
    start(m);
    for (int64_t k = 0; k < CLOCKS * pushes; k++) {
        const double f = 1.0 / (double)pushes, t = (double)(k / pushes + 1);
        const double rate = rule->learning_rate * pli_schedule_factor(rule, k / pushes) * f;
        gradient(k, g);
        for (int i = 0; i < N; i++) {
            plain(rule, t, rate, f, m, i, g[i] / (BATCH / (double)pushes), rule->l1 * p[i], rule->l2 * p[i]);
        }
    }
}

static void run_f64(const plait_rule_numbers *rule, model *m, const double *p, int64_t pushes) {
    double g[N];
    double *slot[] = { m->a, m->b };
    start(m);
    for (int64_t k = 0; k < CLOCKS * pushes; k++) {
        const plait_step step = pli_rule_step(rule, k / pushes, BATCH / pushes, BATCH, pushes == 1);
        gradient(k, g);
        rule->ops->apply_f64(rule, &step, N, m->w, slot, g, p);
    }
}

typedef struct model_f32 {
    float w[N], a[N], b[N];
} model_f32;

static void start_f32(model_f32 *m) {
    memset(m, 0, sizeof *m);
    for (int i = 0; i < N; i++) m->w[i] = (float)(i % 3 - 1);
}

static void narrow(const double *from, float *to) {
    for (int i = 0; i < N; i++) to[i] = (float)from[i];
}

static void run_f32(const plait_rule_numbers *rule, model_f32 *m, const float *p, int64_t pushes) {
    double wide[N];
    float g[N], *slot[] = { m->a, m->b };
    start_f32(m);
    for (int64_t k = 0; k < CLOCKS * pushes; k++) {
        const plait_step step = pli_rule_step(rule, k / pushes, BATCH / pushes, BATCH, pushes == 1);
        gradient(k, wide);
        narrow(wide, g);
        rule->ops->apply_f32(rule, &step, N, m->w, slot, g, p);
    }
}

static void test_rules_follow_their_formulas(void **state) {
    (void)state;
    double p[N];
    float p32[N];
    penalties(p);
    narrow(p, p32);
    for (const plait_rule *const *ops = pli_rules(); *ops != NULL; ops++) {
        for (int64_t pushes = 1; pushes <= 4; pushes *= 4) {
            const plait_rule_numbers rule = rule_of((*ops)->name, 0.002, 0.01);
            model want, have;
            model_f32 have32;
            run_plain(&rule, &want, p, pushes);
            run_f64(&rule, &have, p, pushes);
            run_f32(&rule, &have32, p32, pushes);
            for (int i = 0; i < N; i++) {
                assert_true(fabs(have.w[i] - want.w[i]) <= 1e-12);
                assert_true(fabs((double)have32.w[i] - want.w[i]) <= 2e-5);
            }
        }
    }
}

static void test_untouched_values_stay(void **state) {
    (void)state;
    static const char *const metric[] = { "adagrad", "adam", "ftrl" };
    for (size_t r = 0; r < 3; r++) {
        const plait_rule_numbers rule = rule_of(metric[r], 0.01, 0.01);
        model m;
        run_f64(&rule, &m, NULL, 1);
        for (int i = 4; i < N; i += 5) assert_true(m.w[i] == (double)(i % 3 - 1));
    }
}

/* --- the proximal step ---------------------------------------------------------------------------- */

static double prox_objective(double x, double w, double threshold, double shrink) {
    return 0.5 * (x - w) * (x - w) + threshold * fabs(x) + 0.5 * shrink * x * x;
}

static void test_prox_minimises(void **state) {
    (void)state;
    const double ws[] = { -3, -0.5, -0.1, 0, 0.05, 0.7, 2 }, thresholds[] = { 0, 0.1, 1 }, shrinks[] = { 0, 0.01, 2 };
    for (size_t c = 0; c < 7 * 3 * 3; c++) {
        const double w = ws[c / 9], threshold = thresholds[c / 3 % 3], shrink = shrinks[c % 3];
        const double have = pli_prox_f64(w, threshold, shrink);
        const double least = prox_objective(have, w, threshold, shrink);
        for (int x = -4000; x <= 4000; x++)
            assert_true(least <= prox_objective(x / 1000.0, w, threshold, shrink) + 1e-15);
        assert_true(fabs((double)pli_prox_f32((float)w, (float)threshold, (float)shrink) - have) < 1e-6);
    }
    assert_true(isnan(pli_prox_f64(NAN, 0.1, 0.1)) && isnan(pli_prox_f32(NAN, 0.1F, 0.1F)));
}

static void test_prox_power_is_many_steps(void **state) {
    (void)state;
    const int64_t counts[] = { 0, 1, 2, 3, 7, 64, 1000 };
    const double thresholds[] = { 0, 1e-4, 1e-2 }, shrinks[] = { 0, 1e-6, 1e-2, 0.5 };
    for (size_t c = 0; c < 7 * 3 * 4; c++) {
        const int64_t clocks = counts[c / 12];
        const double threshold = thresholds[c / 4 % 3], shrink = shrinks[c % 4];
        for (double w = -1.5; w <= 1.5; w += 0.3) {
            double step = w;
            for (int64_t k = 0; k < clocks; k++) step = pli_prox_f64(step, threshold, shrink);
            const double have = pli_prox_apply(pli_prox_power(threshold, shrink, clocks), w);
            assert_true(fabs(have - step) <= 1e-13);
        }
    }
}

/* Catching up on missed steps equals applying as many zero gradients. Momentum starts from m = 0 here; adam's
 * moments stay, so its steps use the last metric. */
static void test_catch_up_is_steps_without_gradient(void **state) {
    (void)state;
    double p[N];
    float p32[N];
    penalties(p);
    narrow(p, p32);
    for (const plait_rule *const *ops = pli_rules(); *ops != NULL; ops++) {
        const plait_rule_numbers rule = rule_of((*ops)->name, 0.002, 0.01);
        const int64_t missed = 23;
        const double zero[N] = { 0 };
        const plait_step         step = pli_rule_step(&rule, CLOCKS + missed, BATCH, BATCH, 1);
        model jump, walk;
        model_f32 jump32;
        double *jump_slot[] = { jump.a, jump.b }, *walk_slot[] = { walk.a, walk.b };
        float *slot32[] = { jump32.a, jump32.b };
        run_f64(&rule, &jump, p, 1);
        run_f32(&rule, &jump32, p32, 1);
        if (strcmp((*ops)->name, "momentum") == 0) memset(jump.a, 0, sizeof jump.a);
        walk = jump;
        (*ops)->catch_up_f64(&rule, &step, missed, N, jump.w, jump_slot, p);
        (*ops)->catch_up_f32(&rule, &step, missed, N, jump32.w, slot32, p32);
        for (int64_t k = 0; k < missed; k++) {
            plait_step one = step;
            one.clock = CLOCKS + k;
            if (strcmp((*ops)->name, "adam") == 0) { /* its moments stay, so the missed steps use the last metric */
                for (int i = 0; i < N; i++) {
                    const double square = walk.b[i] / (1 - pow(rule.beta2, (double)step.clock));
                    const double s = square > 0 ? step.rate / (sqrt(square) + rule.epsilon) : 0;
                    walk.w[i] = prox(walk.w[i], s, rule.l1 * p[i], rule.l2 * p[i]);
                }
                continue;
            }
            (*ops)->apply_f64(&rule, &one, N, walk.w, walk_slot, zero, p);
        }
        for (int i = 0; i < N; i++) {
            assert_true(fabs(jump.w[i] - walk.w[i]) <= 1e-12);
            assert_true(fabs((double)jump32.w[i] - walk.w[i]) <= 2e-5);
            if (strcmp((*ops)->name, "adam") != 0) assert_true(jump.a[i] == walk.a[i] && jump.b[i] == walk.b[i]);
        }
    }
}

static void test_catch_up_without_penalty_is_nothing(void **state) {
    (void)state;
    for (const plait_rule *const *ops = pli_rules(); *ops != NULL; ops++) {
        const plait_rule_numbers rule = rule_of((*ops)->name, 0, 0);
        const plait_step         step = pli_rule_step(&rule, 99, BATCH, BATCH, 1);
        model m, before;
        double *slot[] = { m.a, m.b };
        run_f64(&rule, &m, NULL, 1);
        before = m;
        (*ops)->catch_up_f64(&rule, &step, 50, N, m.w, slot, NULL);
        assert_memory_equal(&m, &before, sizeof m);
    }
}

/* --- bits ---------------------------------------------------------------------------------------- */

static void apply_apart_f32(const plait_rule_numbers *rule, const plait_step *step, model_f32 *m, const float *g,
                            const float *p) {
    static const int cuts[] = { 0, 1, 4, 9, 10, 26, 59, N };
    for (size_t c = 0; c + 1 < sizeof cuts / sizeof *cuts; c++) {
        const int at = cuts[c];
        float *slot[] = { m->a + at, m->b + at };
        rule->ops->apply_f32(rule, step, cuts[c + 1] - at, m->w + at, slot, g + at, p == NULL ? NULL : p + at);
        rule->ops->catch_up_f32(rule, step, 5, cuts[c + 1] - at, m->w + at, slot, p == NULL ? NULL : p + at);
    }
}

static void apply_apart_f64(const plait_rule_numbers *rule, const plait_step *step, model *m, const double *g,
                            const double *p) {
    static const int cuts[] = { 0, 3, 4, 11, 44, 45, N };
    for (size_t c = 0; c + 1 < sizeof cuts / sizeof *cuts; c++) {
        const int at = cuts[c];
        double *slot[] = { m->a + at, m->b + at };
        rule->ops->apply_f64(rule, step, cuts[c + 1] - at, m->w + at, slot, g + at, p == NULL ? NULL : p + at);
        rule->ops->catch_up_f64(rule, step, 5, cuts[c + 1] - at, m->w + at, slot, p == NULL ? NULL : p + at);
    }
}

static void test_bits_do_not_depend_on_place(void **state) {
    (void)state;
    double g[N], p[N];
    float g32[N], p32[N];
    gradient(1000, g);
    narrow(g, g32);
    penalties(p);
    narrow(p, p32);
    for (const plait_rule *const *ops = pli_rules(); *ops != NULL; ops++) {
        for (int with = 0; with < 2; with++) {
            const plait_rule_numbers rule = rule_of((*ops)->name, 0.002, 0.01);
            const plait_step         step = pli_rule_step(&rule, CLOCKS, BATCH, BATCH, 1);
            model whole, apart;
            model_f32 whole32, apart32;
            double *slot[] = { whole.a, whole.b };
            float *slot32[] = { whole32.a, whole32.b };
            run_f64(&rule, &whole, p, 1);
            run_f32(&rule, &whole32, p32, 1);
            apart = whole;
            apart32 = whole32;
            (*ops)->apply_f64(&rule, &step, N, whole.w, slot, g, with ? p : NULL);
            (*ops)->catch_up_f64(&rule, &step, 5, N, whole.w, slot, with ? p : NULL);
            (*ops)->apply_f32(&rule, &step, N, whole32.w, slot32, g32, with ? p32 : NULL);
            (*ops)->catch_up_f32(&rule, &step, 5, N, whole32.w, slot32, with ? p32 : NULL);
            apply_apart_f64(&rule, &step, &apart, g, with ? p : NULL);
            apply_apart_f32(&rule, &step, &apart32, g32, with ? p32 : NULL);
            assert_memory_equal(&whole, &apart, sizeof whole);
            assert_memory_equal(&whole32, &apart32, sizeof whole32);
        }
    }
}

static void test_no_penalty_factors_mean_ones(void **state) {
    (void)state;
    float p32[N];
    for (int i = 0; i < N; i++) p32[i] = 1.0F;
    for (const plait_rule *const *ops = pli_rules(); *ops != NULL; ops++) {
        const plait_rule_numbers rule = rule_of((*ops)->name, 0.002, 0.01);
        model_f32 with, without;
        run_f32(&rule, &with, p32, 1);
        run_f32(&rule, &without, NULL, 1);
        assert_memory_equal(&with, &without, sizeof with);
    }
}

static void test_a_gradient_that_is_not_finite_shows(void **state) {
    (void)state;
    for (const plait_rule *const *ops = pli_rules(); *ops != NULL; ops++) {
        const plait_rule_numbers rule = rule_of((*ops)->name, 0.002, 0.01);
        const plait_step         step = pli_rule_step(&rule, 0, 1, 1, 1);
        double w = 1, a = 0, b = 0, g = NAN, *slot[] = { &a, &b };
        (*ops)->apply_f64(&rule, &step, 1, &w, slot, &g, NULL);
        assert_true(isnan(w));
    }
}

/* --- numbers and names ---------------------------------------------------------------------------- */

static void test_schedules(void **state) {
    (void)state;
    plait_rule_opts opts = opts_of("sgd");
    plait_rule_numbers rule;
    plait_error err;
    opts.schedule = "invsqrt";
    opts.schedule_clocks = 100;
    assert_int_equal(pli_rule_make(&opts, NULL, &rule, &err), PLAIT_OK);
    assert_true(pli_schedule_factor(&rule, 0) == 1.0 && pli_schedule_factor(&rule, 100) == 0.5);
    opts.schedule = "cosine";
    assert_int_equal(pli_rule_make(&opts, NULL, &rule, &err), PLAIT_OK);
    assert_true(pli_schedule_factor(&rule, 0) == 1.0 && fabs(pli_schedule_factor(&rule, 50) - 0.5) < 1e-15);
    assert_true(pli_schedule_factor(&rule, 100) == 0.0 && pli_schedule_factor(&rule, 1000) == 0.0);
}

static void test_steps(void **state) {
    (void)state;
    const plait_rule_numbers rule = rule_of("sgd", 0, 0);
    const plait_step         whole = pli_rule_step(&rule, 3, 8, 8, 1), part = pli_rule_step(&rule, 3, 2, 8, 0);
    const plait_step         empty = pli_rule_step(&rule, 3, 0, 8, 1);
    assert_true(whole.gradient_scale == 0.125 && whole.rate == rule.learning_rate && whole.fraction == 1.0);
    assert_true(part.gradient_scale == 0.5 && part.rate == rule.learning_rate / 4 && part.fraction == 0.25);
    assert_true(isfinite(empty.gradient_scale) && empty.rate == rule.learning_rate);
}

static void refused(plait_rule_opts opts, plait_status code, const char *word) {
    plait_rule_numbers rule;
    plait_error err;
    assert_int_equal(pli_rule_make(&opts, NULL, &rule, &err), code);
    assert_non_null(strstr(err.text, word));
}

static void test_refusals(void **state) {
    (void)state;
    plait_rule_opts opts = opts_of("adagard");
    refused(opts, PLAIT_ENAME, "did you mean 'adagrad'");
    opts = opts_of("adam");
    opts.schedule = "cosin";
    refused(opts, PLAIT_ENAME, "did you mean 'cosine'");
    opts.schedule = "cosine";
    refused(opts, PLAIT_EINVAL, "cosine");
    opts.schedule_clocks = 10;
    opts.learning_rate = -1;
    refused(opts, PLAIT_EINVAL, "learning rate");
    opts.learning_rate = NAN;
    refused(opts, PLAIT_EINVAL, "learning rate");
    opts = opts_of("ftrl");
    opts.schedule = "cosine";
    opts.schedule_clocks = 10;
    refused(opts, PLAIT_EREFUSED, "schedule");
    opts = opts_of("momentum");
    opts.momentum = 1;
    refused(opts, PLAIT_EINVAL, "momentum");
    opts = opts_of("sgd");
    opts.l2 = INFINITY;
    refused(opts, PLAIT_EINVAL, "l2");
    refused(opts_of(NULL), PLAIT_EINVAL, "additive");
    opts.size = 3;
    refused(opts, PLAIT_EINVAL, "plait_rule_opts_init");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_follow_their_formulas),
        cmocka_unit_test(test_untouched_values_stay),
        cmocka_unit_test(test_prox_minimises),
        cmocka_unit_test(test_prox_power_is_many_steps),
        cmocka_unit_test(test_catch_up_is_steps_without_gradient),
        cmocka_unit_test(test_catch_up_without_penalty_is_nothing),
        cmocka_unit_test(test_bits_do_not_depend_on_place),
        cmocka_unit_test(test_no_penalty_factors_mean_ones),
        cmocka_unit_test(test_a_gradient_that_is_not_finite_shows),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
