/* The operations of each op, held against loops that count them one by one. */
#include "op_case.h"

#include "graph/flops.h"

static double flops_of(op_case *c) {
    assert_int_equal(op_case_infer(c), PLAIT_OK);
    const plait_call call = op_case_call(c);
    const double     flops = pli_flops_of(c->op, &call);
    op_case_end(c);
    return flops;
}

static void set_int(op_case *c, const char *name, int64_t i) { op_case_attr(c, name)->u.i = i; }

static void set_ints(op_case *c, const char *name, int32_t n, const int64_t *ints) {
    *op_case_attr(c, name) = (plait_attr){ .name = name, .kind = PLAIT_ATTR_INTS, .n = n, .u.ints = ints };
}

static void test_products(void **state) {
    (void)state;
    for (int transposed = 0; transposed < 2; transposed++) {
        op_case c = op_case_of(&pli_op_matmul);
        double  count = 0;
        for (int i = 0; i < 5; i++)
            for (int j = 0; j < 7; j++)
                for (int k = 0; k < 3; k++) count += 2; /* a product, and its addition */
        op_case_input(&c, PLAIT_F32, transposed ? plait_shape_2(3, 5) : plait_shape_2(5, 3), 1);
        op_case_input(&c, PLAIT_F32, plait_shape_2(3, 7), 1);
        set_int(&c, "ta", transposed);
        assert_float_equal(flops_of(&c), count, 0);
    }
}

/* Images [2, 3, 6, 5], filters [4, 3, 3, 2] with stride 1: outputs of [2, 4, 4, 4], each with 3 x 3 x 2 taps. */
static void test_convolution(void **state) {
    (void)state;
    double count = 0;
    for (int out = 0; out < 2 * 4 * 4 * 4; out++)
        for (int tap = 0; tap < 3 * 3 * 2; tap++) count += 2;
    op_case c = op_case_of(&pli_op_conv2d);
    op_case_input(&c, PLAIT_F32, (plait_shape){ 4, { 2, 3, 6, 5 } }, 1);
    op_case_input(&c, PLAIT_F32, (plait_shape){ 4, { 4, 3, 3, 2 } }, 1);
    assert_float_equal(flops_of(&c), count, 0);
}

/* Windows of 2 x 2 with stride 2 over [2, 3, 6, 4]: outputs of [2, 3, 3, 2]; the gradient adds to as many places. */
static void test_pooling(void **state) {
    (void)state;
    static const int64_t two[] = { 2, 2 };
    const plait_op      *ops[] = { &pli_op_max_pool2d, &pli_op_avg_pool2d, &pli_op_avg_pool2d_gradient };
    double               count = 0;
    for (int out = 0; out < 2 * 3 * 3 * 2; out++)
        for (int tap = 0; tap < 2 * 2; tap++) count += 1;
    for (int k = 0; k < 3; k++) {
        op_case c = op_case_of(ops[k]);
        op_case_input(&c, PLAIT_F32, (plait_shape){ 4, { 2, 3, 6, 4 } }, 1);
        if (k == 2) op_case_input(&c, PLAIT_F32, (plait_shape){ 4, { 2, 3, 3, 2 } }, 1);
        set_ints(&c, "window", 2, two);
        assert_float_equal(flops_of(&c), count, 0);
    }
}

/* Steps 3, rows 2, width 4: each step multiplies [2, 4] by [4, gates x 4], and applies some 20 operations to a gate. */
static void test_recurrent(void **state) {
    (void)state;
    for (int gates = 3; gates <= 4; gates++) {
        op_case c = op_case_of(gates == 4 ? &pli_op_lstm : &pli_op_gru);
        double  count = 0;
        for (int t = 0; t < 3; t++)
            for (int row = 0; row < 2; row++)
                for (int gate = 0; gate < gates * 4; gate++) {
                    for (int k = 0; k < 4; k++) count += 2;
                    count += 20;
                }
        op_case_input(&c, PLAIT_F32, shape3(3, 2, gates * 4), 1);
        op_case_input(&c, PLAIT_F32, plait_shape_2(4, gates * 4), 1);
        if (gates == 3) op_case_input(&c, PLAIT_F32, plait_shape_1(4), 1);
        op_case_input(&c, PLAIT_F32, plait_shape_2(2, 4), 1);
        if (gates == 4) op_case_input(&c, PLAIT_F32, plait_shape_2(2, 4), 1);
        assert_float_equal(flops_of(&c), count, 0);
    }
}

/* Ops with a fixed count for each element of an array [5, 6]. */
static void test_by_element(void **state) {
    (void)state;
    static const struct {
        const plait_op *op;
        int             inputs;
        double          each;
    } known[] = {
        { &pli_op_add, 2, 1 },         { &pli_op_relu, 1, 1 },    { &pli_op_exp, 1, 20 },
        { &pli_op_tanh, 1, 20 },       { &pli_op_softmax, 1, 20 }, { &pli_op_log_softmax, 1, 20 },
        { &pli_op_softmax_gradient, 2, 4 }, { &pli_op_layer_norm, 1, 8 }, { &pli_op_batch_norm, 1, 8 },
        { &pli_op_add_n, 4, 3 },       { &pli_op_sum, 1, 1 },     { &pli_op_mean, 1, 1 },
        { &pli_op_argmax, 1, 1 },      { &pli_op_row_dot, 2, 2 }, { &pli_op_identity, 1, 0 },
        { &pli_op_concat, 2, 0 },
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        op_case c = op_case_of(known[k].op);
        for (int i = 0; i < known[k].inputs; i++) op_case_input(&c, PLAIT_F32, plait_shape_2(5, 6), 1);
        const double flops = flops_of(&c);
        if (flops != known[k].each * 30)
            fail_msg("%s: %g operations, expected %g", known[k].op->name, flops, known[k].each * 30);
    }
}

/* Every op counts something that is not negative for the shapes that ops_test and gradcheck run it with; here: those
 * that take one or two equal arrays. */
static void test_none_is_negative(void **state) {
    (void)state;
    int counted = 0;
    for (const plait_op *const *op = pli_ops(); *op != NULL; op++) {
        if ((*op)->min_inputs < 1 || (*op)->min_inputs > 2 || ((*op)->flags & PLAIT_OP_STORE) != 0) continue;
        op_case c = op_case_of(*op);
        for (int i = 0; i < (*op)->min_inputs; i++) op_case_input(&c, PLAIT_F32, plait_shape_2(6, 6), 1);
        bool attrs = true;
        for (int i = 0; i < (*op)->n_attrs; i++) attrs = attrs && !(*op)->attrs[i].required;
        if (attrs && op_case_infer(&c) == PLAIT_OK) {
            const plait_call call = op_case_call(&c);
            const double     flops = pli_flops_of(*op, &call);
            if (!(flops >= 0 && flops < 1e6)) fail_msg("%s: %g operations", (*op)->name, flops);
            counted++;
        }
        op_case_end(&c);
    }
    assert_true(counted > 40);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),  cmocka_unit_test(test_convolution), cmocka_unit_test(test_pooling),
        cmocka_unit_test(test_recurrent), cmocka_unit_test(test_by_element),  cmocka_unit_test(test_none_is_negative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
