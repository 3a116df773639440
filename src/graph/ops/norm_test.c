/* layer_norm and batch_norm: kernels against references, outputs with mean 0 and deviation 1, gradients, refusals. */
#include "op_gradient.h"

static const plait_shape shapes[] = { { 2, { 5, 7 } }, { 4, { 3, 2, 4, 5 } }, { 3, { 2, 3, 40 } },
                                      { 2, { 1, 1 } }, { 2, { 0, 3 } },       { 3, { 300, 2, 90 } } };

static void test_kernels_agree(void **state) {
    (void)state;
    const plait_op *ops[] = { &pli_op_layer_norm, &pli_op_batch_norm },
                   *back[] = { &pli_op_layer_norm_gradient, &pli_op_batch_norm_gradient };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int k = 0; k < 2; k++) {
            op_case c = op_case_of(ops[k]);
            op_case_input(&c, PLAIT_F32, shapes[i], 0);
            if (plait_shape_elements(&shapes[i]) == 0 &&
                k == 1) { /* no images: the output has no meaning, but is not refused */
                assert_int_equal(op_case_infer(&c), PLAIT_OK);
                assert_int_equal(op_case_run(&c, c.op->kernels[0]), PLAIT_OK);
                op_case_end(&c);
                continue;
            }
            assert_int_equal(op_case_agree(&c, 1e-5), 1);
            op_case d = op_case_of(back[k]);
            op_case_input(&d, PLAIT_F32, shapes[i], 0);
            op_case_input(&d, PLAIT_F32, c.out[2].shape, 0);
            for (int64_t j = 0; j < plait_shape_elements(&c.out[2].shape); j++)
                ((float *)d.in[1].data)[j] *= ((float *)d.in[1].data)[j];
            op_case_input(&d, PLAIT_F32, shapes[i], 0);
            assert_int_equal(op_case_agree(&d, 1e-4), 1);
            op_case_end(&c);
            op_case_end(&d);
        }
}

/* Values far from zero, whose sum of squares in float would lose all digits of the variance. */
static void test_mean_and_deviation(void **state) {
    (void)state;
    op_case c = op_case_of(&pli_op_batch_norm);
    op_case_input(&c, PLAIT_F32, shape3(50, 2, 6), 0);
    for (int i = 0; i < 600; i++) ((float *)c.in[0].data)[i] += i / 6 % 2 == 0 ? 5000.0f : 0;
    assert_int_equal(op_case_infer(&c), PLAIT_OK);
    assert_int_equal(op_case_run(&c, c.op->kernels[0]), PLAIT_OK);
    for (int channel = 0; channel < 2; channel++) {
        double sum = 0, square = 0;
        for (int i = 0; i < 300; i++) {
            const double y = (double)((float *)c.out[0].data)[i / 6 * 12 + channel * 6 + i % 6];
            sum += y / 300;
            square += y * y / 300;
        }
        assert_true(fabs(sum) < 1e-3 && fabs(square - 1) < 1e-3);
    }
    assert_true(fabsf(((float *)c.out[1].data)[0] - 5000) < 0.5f && fabsf(((float *)c.out[2].data)[1] - 1) < 0.3f);
    op_case_end(&c);
}

/* Values so far from zero that the mean's rounding, times the mean, is larger than the variance. */
static void test_variance_far_from_zero(void **state) {
    static const float x[] = { 16777213, 16777214, 16777214, 16777215, 16777213, 16777214, 16777213 };
    enum { N = sizeof x / sizeof *x };
    double mean = 0, variance = 0;
    (void)state;
    for (int i = 0; i < N; i++) mean += ((double)x[i] - 16777214) / N;
    for (int i = 0; i < N; i++) variance += pow((double)x[i] - 16777214 - mean, 2) / N;
    for (int groups = 1; groups <= 2; groups++) {
        op_case c = op_case_of(&pli_op_layer_norm);
        op_case_input(&c, PLAIT_F32, plait_shape_2(groups, N), 0);
        for (int i = 0; i < groups * N; i++) ((float *)c.in[0].data)[i] = x[i % N] * (i < N ? 1 : -1);
        assert_int_equal(op_case_infer(&c), PLAIT_OK);
        assert_int_equal(op_case_run(&c, c.op->kernels[0]), PLAIT_OK);
        for (int k = 0; k < groups; k++)
            assert_true(fabs((double)((float *)c.out[2].data)[k] - variance) <= 1e-6 * variance);
        op_case_end(&c);
    }
}

static void test_gradients(void **state) {
    (void)state;
    for (int64_t axis = -2; axis < 1; axis++) {
        op_case c = op_case_of(&pli_op_layer_norm);
        op_case_input(&c, PLAIT_F64, shape3(2, 3, 4), 0);
        op_case_attr(&c, "axis")->u.i = axis;
        c.apart = 6;
        op_case_gradients(&c, 1, 1e-6);
    }
    for (int rank = 2; rank < 5; rank++) {
        op_case c = op_case_of(&pli_op_batch_norm);
        op_case_input(&c, PLAIT_F64, (plait_shape){ rank, { 4, 3, 2, 2 } }, 0);
        c.apart = 6;
        op_case_gradients(&c, 1, 1e-6);
    }
}

static void test_what_has_no_rule_is_refused(void **state) {
    (void)state;
    plait_error err;
    for (int k = 0; k < 2; k++) {
        plait_graph *g = NULL;
        plait_value  d, dd;
        assert_int_equal(plait_graph_create(NULL, 0, &g, NULL), PLAIT_OK);
        const plait_value x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, 3));
        const plait_value y = plait_graph_op(g, "batch_norm", &x, 1, NULL, 0);
        if (k == 0) {
            assert_int_equal(plait_graph_gradients(g, plait_graph_output(g, y, 1), 1, &x, &d), PLAIT_EINVAL);
        } else {
            assert_int_equal(plait_graph_gradients(g, y, 1, &x, &d), PLAIT_OK);
            assert_int_equal(plait_graph_gradients(g, d, 1, &x, &dd), PLAIT_EINVAL);
        }
        plait_graph_check(g, &err);
        assert_non_null(
            strstr(err.text, k == 0 ? "batch_norm's statistics" : "no rule to differentiate batch_norm_gradient"));
        plait_graph_destroy(&g);
    }
    op_case c = op_case_of(&pli_op_layer_norm);
    op_case_input(&c, PLAIT_F32, plait_shape_2(2, 3), 0);
    op_case_attr(&c, "epsilon")->u.f = 0;
    op_case_refused(&c, PLAIT_EINVAL, "epsilon is to be above 0");
    c = op_case_of(&pli_op_batch_norm);
    op_case_input(&c, PLAIT_F32, plait_shape_1(3), 0);
    op_case_refused(&c, PLAIT_ESHAPE, "[n, channels, ...]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_agree),
        cmocka_unit_test(test_mean_and_deviation),
        cmocka_unit_test(test_variance_far_from_zero),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_what_has_no_rule_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
