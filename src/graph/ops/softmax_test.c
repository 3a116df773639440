/* The softmax family: kernels against references, gradients against differences, and extremes that must not
 * overflow. */
#include "op_gradient.h"

static const plait_shape shapes[] = { { 2, { 5, 10 } }, { 2, { 1, 1 } },    { 2, { 3000, 7 } },
                                      { 1, { 4 } },     { 3, { 2, 3, 5 } }, { 2, { 0, 3 } } };

static void input(op_case *c, plait_type type, plait_shape shape) { op_case_input(c, type, shape, 3); }

static plait_shape rows_of(plait_shape s) {
    s.rank--;
    return s;
}

static void test_kernels_agree(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const plait_shape s = shapes[i];
        const plait_op   *one[] = { &pli_op_softmax, &pli_op_log_softmax },
                       *two[] = { &pli_op_softmax_gradient, &pli_op_row_dot };
        for (int k = 0; k < 2; k++) {
            op_case c = op_case_of(one[k]);
            input(&c, PLAIT_F32, s);
            assert_int_equal(op_case_agree(&c, 1e-6), 1);
            op_case_end(&c);
            for (int64_t axis = -1; axis < s.rank; axis++) {
                c = op_case_of(two[k]);
                input(&c, PLAIT_F32, s);
                input(&c, PLAIT_F32, s);
                c.attr[0].u.i = axis;
                assert_int_equal(op_case_agree(&c, 1e-5), 1);
                op_case_end(&c);
            }
        }
        op_case c = op_case_of(&pli_op_row_scale);
        input(&c, PLAIT_F32, s);
        input(&c, PLAIT_F32, rows_of(s));
        assert_int_equal(op_case_agree(&c, 1e-6), 1);
        op_case_end(&c);
        if (s.dim[s.rank - 1] < 3) continue;
        c = op_case_of(&pli_op_softmax_cross_entropy);
        input(&c, PLAIT_F32, s);
        input(&c, PLAIT_I64, rows_of(s));
        assert_int_equal(op_case_agree(&c, 1e-6), 1);
        op_case_end(&c);
        c = op_case_of(&pli_op_softmax_cross_entropy_gradient);
        input(&c, PLAIT_F32, s);
        input(&c, PLAIT_I64, rows_of(s));
        input(&c, PLAIT_F32, rows_of(s));
        assert_int_equal(op_case_agree(&c, 1e-6), 1);
        op_case_end(&c);
    }
}

static void test_gradients(void **state) {
    (void)state;
    const plait_op *ops[] = { &pli_op_softmax, &pli_op_log_softmax, &pli_op_softmax_gradient, &pli_op_row_dot };
    for (int k = 0; k < 4; k++)
        for (int64_t axis = -1; axis < 3; axis++) {
            op_case c = op_case_of(ops[k]);
            input(&c, PLAIT_F64, shape3(2, 3, 4));
            if (ops[k]->min_inputs == 2) input(&c, PLAIT_F64, shape3(2, 3, 4));
            c.attr[0].u.i = axis;
            op_case_gradients(&c, 2, 1e-6);
        }
    op_case c = op_case_of(&pli_op_row_scale);
    input(&c, PLAIT_F64, shape3(2, 3, 4));
    input(&c, PLAIT_F64, plait_shape_2(2, 4));
    c.attr[0].u.i = 1;
    op_case_gradients(&c, 2, 1e-6);
    c = op_case_of(&pli_op_softmax_cross_entropy);
    input(&c, PLAIT_F64, plait_shape_2(3, 4));
    input(&c, PLAIT_I64, plait_shape_1(3));
    op_case_gradients(&c, 2, 1e-6);
    c = op_case_of(&pli_op_softmax_cross_entropy_gradient);
    input(&c, PLAIT_F64, plait_shape_2(3, 4));
    input(&c, PLAIT_I64, plait_shape_1(3));
    input(&c, PLAIT_F64, plait_shape_1(3));
    op_case_gradients(&c, 2, 1e-6);
}

/* Scores of a thousand, where the probable class is the label, and where it is not. */
static void test_extremes_stay_finite(void **state) {
    (void)state;
    op_case c = op_case_of(&pli_op_softmax_cross_entropy);
    input(&c, PLAIT_F32, plait_shape_2(2, 3));
    input(&c, PLAIT_I64, plait_shape_1(2));
    memcpy(c.in[0].data, (const float[]){ 1000, 0, -1000, 1000, 0, -1000 }, 6 * sizeof(float));
    memcpy(c.in[1].data, (const int64_t[]){ 0, 2 }, 2 * sizeof(int64_t));
    assert_int_equal(op_case_agree(&c, 1e-6), 1);
    const float *loss = c.out[0].data;
    assert_true(loss[0] == 0 && loss[1] == 2000);
    op_case_end(&c);
}

static void test_refuses(void **state) {
    (void)state;
    op_case c = op_case_of(&pli_op_softmax_cross_entropy);
    input(&c, PLAIT_F32, plait_shape_2(2, 3));
    input(&c, PLAIT_I64, plait_shape_1(3));
    op_case_refused(&c, PLAIT_ESHAPE, "one label of type i64");
    c = op_case_of(&pli_op_softmax);
    input(&c, PLAIT_F32, plait_shape_2(2, 3));
    c.attr[0].u.i = 2;
    op_case_refused(&c, PLAIT_ESHAPE, "axis 2 of an array of 2 axes");
    c = op_case_of(&pli_op_softmax_cross_entropy);
    input(&c, PLAIT_F32, plait_shape_2(2, 3));
    input(&c, PLAIT_I64, plait_shape_1(2));
    ((int64_t *)c.in[1].data)[1] = 3;
    assert_int_equal(op_case_infer(&c), PLAIT_OK);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(op_case_run(&c, c.op->kernels[k]), PLAIT_EINVAL);
        assert_non_null(strstr(c.error.text, "label 3 in row 1; there are 3 classes"));
    }
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_agree),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_extremes_stay_finite),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
