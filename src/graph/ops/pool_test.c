/* Pooling: kernels against references over windows, strides and paddings; first and second gradients; refusals. */
#include "op_gradient.h"

typedef struct pool {
    int64_t x[4], window[2], stride[2], padding[4];
    int32_t n_stride;
} pool;

static const pool pools[] = {
    { { 2, 3, 6, 8 }, { 2, 2 }, { 0, 0 }, { 0, 0, 0, 0 }, 0 },
    { { 1, 2, 7, 5 }, { 3, 2 }, { 2, 1 }, { 1, 0, 2, 1 }, 2 },
    { { 1, 1, 1, 1 }, { 1, 1 }, { 3, 3 }, { 0, 0, 0, 0 }, 2 },
    { { 0, 2, 4, 4 }, { 2, 2 }, { 0, 0 }, { 0, 0, 0, 0 }, 0 },
    { { 2, 2, 70, 130 }, { 3, 3 }, { 2, 2 }, { 1, 1, 1, 1 }, 2 },
};

static plait_shape image_of(const pool *p) { return plait_shape_4(p->x[0], p->x[1], p->x[2], p->x[3]); }

static op_case case_of(const plait_op *op, const pool *p, plait_type type) {
    op_case c = op_case_of(op);
    *op_case_attr(&c, "window") =
        (plait_attr){ .name = "window", .kind = PLAIT_ATTR_INTS, .n = 2, .u.ints = p->window };
    *op_case_attr(&c, "stride") =
        (plait_attr){ .name = "stride", .kind = PLAIT_ATTR_INTS, .n = p->n_stride, .u.ints = p->stride };
    op_case_attr(&c, "padding")->u.ints = p->padding;
    op_case_input(&c, type, image_of(p), 0);
    if (op != &pli_op_avg_pool2d_gradient) return c;
    plait_shape      y;
    const plait_call call = op_case_call(&c);
    plait_tensor     out;
    assert_int_equal(pli_op_avg_pool2d.infer(&(plait_call){
                         .in = c.in, .out = &out, .n_in = 1, .n_out = 1, .attr = call.attr, .error = call.error }),
                     PLAIT_OK);
    y = out.shape;
    op_case_input(&c, type, y, 0);
    return c;
}

static void test_kernels_agree(void **state) {
    (void)state;
    const plait_op *ops[] = { &pli_op_max_pool2d, &pli_op_avg_pool2d, &pli_op_avg_pool2d_gradient };
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++)
        for (int k = 0; k < 3; k++) {
            op_case c = case_of(ops[k], &pools[i], PLAIT_F32);
            assert_int_equal(op_case_agree(&c, k == 0 ? 0 : 1e-5), 1);
            op_case_end(&c);
        }
    op_case c = op_case_of(&pli_op_plane_scatter);
    op_case_input(&c, PLAIT_F32, plait_shape_4(2, 3, 4, 5), 0);
    op_case_input(&c, PLAIT_I32, plait_shape_4(2, 3, 8, 2), 20); /* some elements more than once */
    op_case_input(&c, PLAIT_F32, plait_shape_4(2, 3, 8, 2), 0);
    assert_int_equal(op_case_agree(&c, 1e-6), 1);
    op_case_end(&c);
}

/* In a window whose elements are all -infinity, the first is the largest. */
static void test_minus_infinity(void **state) {
    (void)state;
    op_case c = case_of(&pli_op_max_pool2d, &pools[1], PLAIT_F32);
    for (int64_t i = 0; i < plait_shape_elements(&c.in[0].shape); i++) ((float *)c.in[0].data)[i] = -INFINITY;
    assert_int_equal(op_case_agree(&c, 0), 1);
    op_case_end(&c);
}

static void test_a_nan_is_the_largest(void **state) {
    (void)state;
    op_case c = case_of(&pli_op_max_pool2d, &pools[0], PLAIT_F32);
    ((float *)c.in[0].data)[9] = NAN;
    assert_int_equal(op_case_infer(&c), PLAIT_OK);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(op_case_run(&c, c.op->kernels[k]), PLAIT_OK);
        assert_true(isnan(((float *)c.out[0].data)[0]));
        assert_int_equal(((int32_t *)c.out[1].data)[0], 9);
    }
    op_case_end(&c);
}

static void test_gradients(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        op_case c = case_of(&pli_op_max_pool2d, &pools[i], PLAIT_F64);
        op_case_gradients(&c, 2, 1e-6);
        c = case_of(&pli_op_avg_pool2d, &pools[i], PLAIT_F64);
        op_case_gradients(&c, 2, 1e-6);
        c = case_of(&pli_op_avg_pool2d_gradient, &pools[i], PLAIT_F64);
        op_case_gradients(&c, 2, 1e-6);
    }
    op_case c = op_case_of(&pli_op_plane_gather);
    op_case_input(&c, PLAIT_F64, plait_shape_4(2, 1, 2, 3), 0);
    op_case_input(&c, PLAIT_I32, plait_shape_4(2, 1, 4, 1), 6);
    op_case_gradients(&c, 2, 1e-6);
}

static void test_refuses(void **state) {
    (void)state;
    pool p = pools[0];
    p.padding[0] = 2;
    op_case c = case_of(&pli_op_max_pool2d, &p, PLAIT_F32);
    op_case_refused(&c, PLAIT_ESHAPE, "less than the window");
    p = pools[0];
    p.window[1] = 9;
    c = case_of(&pli_op_avg_pool2d, &p, PLAIT_F32);
    op_case_refused(&c, PLAIT_ESHAPE, "window is larger");
    c = op_case_of(&pli_op_plane_gather);
    op_case_input(&c, PLAIT_F32, plait_shape_4(1, 1, 2, 3), 0);
    op_case_input(&c, PLAIT_I32, plait_shape_4(1, 1, 1, 1), 1);
    *(int32_t *)c.in[1].data = 6;
    assert_int_equal(op_case_infer(&c), PLAIT_OK);
    assert_int_equal(op_case_run(&c, c.op->kernels[0]), PLAIT_EINVAL);
    assert_non_null(strstr(c.error.text, "index 6 in a plane of 6"));
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_agree),
        cmocka_unit_test(test_minus_infinity),
        cmocka_unit_test(test_a_nan_is_the_largest),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
