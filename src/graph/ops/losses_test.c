/* The elementwise losses, and dropout: values, extremes, first and second gradients, refusals. */
#include "op_gradient.h"

static const plait_op *const losses[] = { &pli_op_sigmoid_cross_entropy, &pli_op_squared_loss, &pli_op_hinge_loss };

static double value(const plait_op *op, int type, double x, double t) {
    const float xf = (float)x, tf = (float)t;
    const void *in32[] = { &xf, &tf }, *in64[] = { &x, &t };
    float       y32;
    double      y64;
    if (type == PLAIT_F32)
        op->map[PLAIT_F32](1, in32, &y32, NULL);
    else
        op->map[PLAIT_F64](1, in64, &y64, NULL);
    return type == PLAIT_F32 ? (double)y32 : y64;
}

static void test_values(void **state) {
    (void)state;
    for (int type = PLAIT_F32; type <= PLAIT_F64; type++) {
        const double tolerance = type == PLAIT_F32 ? 1e-6 : 1e-14;
        assert_true(fabs(value(losses[0], type, 0.5, 0.25) - (log(1 + exp(0.5)) - 0.125)) < tolerance);
        assert_true(value(losses[0], type, 1000, 1) == 0 && value(losses[0], type, -1000, 1) == 1000);
        assert_true(value(losses[1], type, 3, 1) == 2);
        assert_true(value(losses[2], type, 0.5, 1) == 0.5 && value(losses[2], type, 0.5, -1) == 1.5 &&
                    value(losses[2], type, 2, 1) == 0);
        assert_true(isnan(value(losses[2], type, NAN, 1)));
    }
}

static void test_long_rows_in_place(void **state) {
    (void)state;
    float x[1000], t[1000], want[1000];
    for (int i = 0; i < 1000; i++) {
        x[i] = (float)(i - 500) / 50;
        t[i] = (float)(i % 2);
        want[i] = (float)value(losses[0], PLAIT_F32, (double)x[i], (double)t[i]);
    }
    const void *in[] = { x, t };
    losses[0]->map[PLAIT_F32](1000, in, x, NULL);
    assert_memory_equal(x, want, sizeof x);
}

static void test_gradients(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++)
        for (int broadcast = 0; broadcast < 2; broadcast++) {
            op_case c = op_case_of(losses[k]);
            op_case_input(&c, PLAIT_F64, plait_shape_2(3, 4), 0);
            op_case_input(&c, PLAIT_F64, plait_shape_2(broadcast ? 1 : 3, 4), 0);
            op_case_gradients(&c, 2, 1e-6);
        }
    op_case c = op_case_of(&pli_op_dropout);
    op_case_input(&c, PLAIT_F64, plait_shape_2(3, 4), 0);
    c.apart = 2;
    op_case_gradients(&c, 2, 1e-6);
}

static void test_dropout(void **state) {
    (void)state;
    op_case c = op_case_of(&pli_op_dropout);
    op_case_attr(&c, "rate")->u.f = 0.2;
    op_case_input(&c, PLAIT_F32, plait_shape_2(300, 100), 0);
    assert_int_equal(op_case_agree(&c, 0), 1);
    int64_t      dropped = 0;
    const float *x = c.in[0].data, *y = c.out[0].data, *mask = c.out[1].data;
    for (int i = 0; i < 30000; i++) {
        assert_true(mask[i] == 0 || mask[i] == 1.25f);
        assert_true(y[i] == x[i] * mask[i]);
        dropped += mask[i] == 0;
    }
    assert_true(dropped > 5700 && dropped < 6300);
    op_case_attr(&c, "rate")->u.f = 0;
    assert_int_equal(op_case_agree(&c, 0), 1);
    assert_memory_equal(c.in[0].data, c.out[0].data, 30000 * sizeof(float));
    op_case_attr(&c, "rate")->u.f = 1;
    op_case_refused(&c, PLAIT_EINVAL, "a rate of 1;");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_long_rows_in_place),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_dropout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
