/* Tests of squared and logistic losses by coordinates (--optimizer cd, --path): the weights hold the conditions of the
 * optimum, which are computed here from the rows; the gap is certain; a path is that of its penalties one by one. */
#include "learn/train.h"

enum { ROWS = 240, FEATURES = 30 };

typedef struct problem {
    float       x[ROWS * FEATURES];
    double      label[ROWS], weight[ROWS];
    plait_data *data;
    int         n; /* penalties told */
    plait_penalty told[64];
} problem;

/* Columns in units from 1 to 30, some alike, some far from 0, a quarter of the values 0; labels by a few of them. */
static problem *problem_of(int classes) {
    problem *p = pli_calloc(1, sizeof *p);
    for (int i = 0; i < ROWS; i++) {
        pli_random r = pli_random_at(5, PLI_RANDOM_DATA, 0, (uint64_t)i);
        const double common = pli_random_normal(&r);
        double       score = 0.5 * pli_random_normal(&r);
        for (int j = 0; j < FEATURES; j++) {
            const double z = pli_random_normal(&r) + (j % 3 == 0 ? 3 * common : 0) + (j % 5 == 0 ? 4 : 0);
            const double keep = (double)pli_random_below(&r, 4);
            p->x[i * FEATURES + j] = keep > 0 ? (float)(z * (1 + j)) : 0;
            if (j < 6) score += (j % 2 == 0 ? 0.4 : -0.6) * (double)p->x[i * FEATURES + j] / (1 + j);
        }
        p->label[i] = classes > 0 ? (double)(score > 0.5) : score + 7;
        p->weight[i] = i % 4 == 0 ? 2 : 0.5;
    }
    assert_int_equal(plait_data_from_dense(ROWS, FEATURES, p->x, p->label, p->weight, &p->data, NULL), PLAIT_OK);
    return p;
}

static void free_problem(problem *p) {
    plait_data_destroy(&p->data);
    pli_free(p);
}

static void note(void *user, const plait_penalty *penalty) {
    problem *p = user;
    assert_true(p->n < 64);
    p->told[p->n++] = *penalty;
}

static training by_weight(problem *p, const char *model) {
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = p->data;
    t.opts.model = model;
    t.opts.optimizer = "cd";
    t.opts.l2 = 0;
    t.opts.tolerance = 1e-9;
    t.opts.user = p;
    t.opts.penalty = note;
    return t;
}

/* By how much the model misses the conditions of the optimum, as a share of l1: slope_j = l2 w_j + l1 sign(w_j) where
 * w_j is not 0, |slope_j| <= l1 elsewhere, and the intercept's slope is 0. */
static double missed(const problem *p, const training *t, double l1) {
    const bool logistic = strcmp(t->opts.model, "logistic") == 0;
    double     slope[FEATURES + 1] = { 0 }, most;
    for (int i = 0; i < ROWS; i++) {
        double score = plait_model_intercept(t->model, 0), r;
        for (int j = 0; j < FEATURES; j++) score += plait_model_weight(t->model, j, 0) * (double)p->x[i * FEATURES + j];
        if (logistic) r = p->label[i] - 1 / (1 + exp(-score));
        else r = p->label[i] - score;
        for (int j = 0; j < FEATURES; j++) slope[j] += p->weight[i] * r * (double)p->x[i * FEATURES + j] / ROWS;
        slope[FEATURES] += p->weight[i] * r / ROWS;
    }
    most = t->opts.no_intercept ? 0 : fabs(slope[FEATURES]);
    for (int j = 0; j < FEATURES; j++) {
        const double w = plait_model_weight(t->model, j, 0);
        const double off = w != 0 ? fabs(slope[j] - t->opts.l2 * w - copysign(l1, w)) : fmax(fabs(slope[j]) - l1, 0);
        most = fmax(most, off);
    }
    return most / l1;
}

static const char *const models[] = { "squared", "logistic" };

static void test_conditions(void **state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        problem *p = problem_of(m);
        for (int plain = 0; plain < 2; plain++)
            for (int elastic = 0; elastic < 2; elastic++)
                for (double l1 = 0.5; l1 > 0.001; l1 /= 8) {
                    training t = by_weight(p, models[m]);
                    t.opts.l1 = l1;
                    t.opts.l2 = elastic ? 0.01 : 0;
                    t.opts.no_intercept = plain;
                    must_train(&t, 1);
                    assert_int_equal(t.report.converged, 1);
                    assert_true(t.report.gap <= 1e-9);
                    assert_true(missed(p, &t, l1) < 1e-2);
                    plait_model_destroy(&t.model);
                }
        free_problem(p);
    }
}

/* What is said to be left is never less than what is. */
static void test_gap_is_certain(void **state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        problem *p = problem_of(m);
        training tight = by_weight(p, models[m]);
        tight.opts.l1 = 0.02;
        tight.opts.tolerance = 1e-11;
        must_train(&tight, 1);
        plait_model_destroy(&tight.model);
        for (int64_t epochs = 2; epochs < 6; epochs++) {
            training t = by_weight(p, models[m]);
            t.opts.l1 = 0.02;
            t.opts.epochs = epochs;
            must_train(&t, 1);
            plait_model_destroy(&t.model);
            assert_true(t.report.objective * (1 - t.report.gap) <= tight.report.objective * (1 + 1e-9));
        }
        free_problem(p);
    }
}

/* newton with --l1 is another method for the same optimum. */
static void test_newton_agrees(void **state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        problem *p = problem_of(m);
        training a = by_weight(p, models[m]), b = by_weight(p, models[m]);
        a.opts.l1 = b.opts.l1 = 0.03;
        b.opts.optimizer = "newton";
        b.opts.epochs = 5000;
        must_train(&a, 1);
        must_train(&b, 1);
        assert_near(a.report.objective, b.report.objective, 1e-6 * b.report.objective);
        plait_model_destroy(&a.model);
        plait_model_destroy(&b.model);
        free_problem(p);
    }
}

static void test_path(void **state) {
    enum { N = 12 };
    (void)state;
    for (int m = 0; m < 2; m++) {
        problem *p = problem_of(m);
        training t = by_weight(p, models[m]);
        t.opts.path = N;
        must_train(&t, 1);
        assert_int_equal(p->n, N);
        assert_int_equal(p->told[0].nonzeros, 0);
        assert_near(p->told[N - 1].l1, 1e-3 * p->told[0].l1, 1e-9 * p->told[0].l1);
        for (int i = 1; i < N; i++) {
            assert_true(p->told[i].l1 < p->told[i - 1].l1);
            assert_true(p->told[i].objective <= p->told[i - 1].objective);
            assert_true(p->told[i].gap <= 1e-9);
        }
        assert_true(missed(p, &t, p->told[N - 1].l1) < 1e-2);
        plait_model_destroy(&t.model);
        for (int i = 0; i < N; i += 5) { /* a penalty of its own ends where the path was */
            training one = by_weight(p, models[m]);
            one.opts.l1 = p->told[i].l1;
            must_train(&one, 1);
            plait_model_destroy(&one.model);
            assert_near(one.report.objective, p->told[i].objective, 1e-8 * p->told[i].objective);
        }
        free_problem(p);
    }
}

/* With validation rows the model is that of the least validation loss. */
static void test_best_of_path(void **state) {
    problem *p = problem_of(1);
    training t = by_weight(p, "logistic");
    int      best = 0;
    (void)state;
    t.opts.path = 20;
    t.opts.validation = "0.3";
    must_train(&t, 1);
    for (int i = 1; i < p->n; i++)
        if (p->told[i].validation_loss < p->told[best].validation_loss) best = i;
    assert_true(best > 0 && best < 19);
    assert_near(t.report.objective, p->told[best].objective, 1e-9);
    assert_near(t.report.validation_loss, p->told[best].validation_loss, 1e-12);
    plait_model_destroy(&t.model);
    free_problem(p);
}

/* --- steps of several weights ------------------------------------------------------------------------------------- */

static void test_workers(void **state) {
    static const struct {
        const char *topology, *consistency;
        int32_t     workers;
    } runs[] = { { "local", "bsp", 1 },     { "local", "bsp", 2 }, { "ps", "bsp", 3 },
                 { "allreduce", "bsp", 4 }, { "hybrid", "bsp", 2 }, { "ps", "bounded-delay:0", 2 } };
    (void)state;
    for (int m = 0; m < 2; m++) {
        problem *p = problem_of(m);
        training alone = by_weight(p, models[m]);
        alone.opts.l1 = 0.05;
        must_train(&alone, 1);
        plait_model_destroy(&alone.model);
        for (size_t i = 0; i < 2 * sizeof runs / sizeof *runs; i++) { /* products or passes where they go; steps */
            training t = by_weight(p, models[m]);
            t.opts.topology = runs[i / 2].topology;
            t.opts.consistency = runs[i / 2].consistency;
            t.opts.l1 = 0.05;
            t.opts.tolerance = 1e-7;
            t.opts.together = i % 2 == 0 ? 0 : 6;
            t.opts.l2 = i % 3 == 0 ? 0 : 0.001;
            must_train(&t, runs[i / 2].workers);
            assert_int_equal(t.report.converged, 1);
            assert_true(missed(p, &t, 0.05) < 2e-2);
            if (i % 3 == 0) assert_near(t.report.objective, alone.report.objective, 2e-7 * alone.report.objective);
            plait_model_destroy(&t.model);
        }
        free_problem(p);
    }
}

/* Groups of six columns with a correlation of 0.9. */
static plait_data *alike(void) {
    enum { N = 400, D = 96, GROUP = 6 };
    float      *x = pli_calloc(N * D, sizeof *x);
    double      label[N];
    plait_data *data = NULL;
    for (int i = 0; i < N; i++) {
        pli_random r = pli_random_at(8, PLI_RANDOM_DATA, 0, (uint64_t)i);
        label[i] = 0.3 * pli_random_normal(&r);
        for (int j = 0, g = 0; g < D / GROUP; g++) {
            const double common = sqrt(0.9) * pli_random_normal(&r);
            for (int k = 0; k < GROUP; k++, j++) {
                x[i * D + j] = (float)(common + sqrt(0.1) * pli_random_normal(&r));
                if (j % 4 == 0) label[i] += cos((double)j) * (double)x[i * D + j];
            }
        }
    }
    assert_int_equal(plait_data_from_dense(N, D, x, label, NULL, &data, NULL), PLAIT_OK);
    pli_free(x);
    return data;
}

static training on_alike(const plait_data *data, const char *order, int64_t together) {
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.model = "squared";
    t.opts.optimizer = "cd";
    t.opts.l1 = 0.01;
    t.opts.l2 = 0;
    t.opts.tolerance = 1e-6;
    t.opts.order = order;
    t.opts.together = together;
    return t;
}

static double updates_of(training *t) {
    must_train(t, 2);
    plait_model_destroy(&t->model);
    assert_int_equal(t->report.converged, 1);
    for (int32_t i = 0; i < t->report.n_figures; i++)
        if (strcmp(t->report.figures[i].name, "updates") == 0) return t->report.figures[i].value;
    fail_msg("the report has no updates");
    return NAN;
}

/* Weights that the schedule lets move together come to the optimum of one after another with hardly more moves. Without
 * it they drive each other up. */
static void test_together(void **state) {
    static const char *const orders[] = { "priority", "round-robin", "random" };
    plait_data *data = alike();
    (void)state;
    for (int i = 0; i < 3; i++) {
        training     one = on_alike(data, orders[i], 1), many = on_alike(data, orders[i], 8);
        const double serial = updates_of(&one), scheduled = updates_of(&many);
        assert_true(scheduled <= 1.3 * serial);
        assert_true(many.report.clocks < one.report.clocks / 2);
        assert_near(many.report.objective, one.report.objective, 2e-6 * one.report.objective);
    }
    training wild = on_alike(data, "random", 32);
    wild.opts.interference = 1000;
    assert_int_equal(train(&wild, 2, 1), PLAIT_EDIVERGED);
    assert_non_null(strstr(wild.error.text, "drive each other up"));
    plait_data_destroy(&data);
}

static void refused(problem *p, training t, const char *why) {
    (void)p;
    assert_int_equal(train(&t, 1, 1), PLAIT_EREFUSED);
    if (strstr(t.error.text, why) == NULL) fail_msg("'%s' is not in: %s", why, t.error.text);
}

static void test_refused(void **state) {
    problem *p = problem_of(0);
    training none = by_weight(p, "squared"), huber = by_weight(p, "huber"), other = by_weight(p, "squared");
    training trees = by_weight(p, "gbdt"), stale = by_weight(p, "squared");
    (void)state;
    refused(p, none, "--l1 above 0");
    huber.opts.l1 = 0.1;
    refused(p, huber, "it knows hinge");
    other.opts.path = 5;
    other.opts.optimizer = "lbfgs";
    refused(p, other, "--optimizer cd");
    trees.opts.optimizer = NULL;
    trees.opts.path = 5;
    assert_int_equal(train(&trees, 1, 1), PLAIT_EINVAL);
    assert_non_null(strstr(trees.error.text, "path with model gbdt"));
    stale.opts.l1 = 0.1;
    stale.opts.consistency = "ssp:2";
    refused(p, stale, "same coordinate");
    free_problem(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conditions),    cmocka_unit_test(test_gap_is_certain),
        cmocka_unit_test(test_newton_agrees), cmocka_unit_test(test_path),
        cmocka_unit_test(test_best_of_path),  cmocka_unit_test(test_workers),
        cmocka_unit_test(test_together),      cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
