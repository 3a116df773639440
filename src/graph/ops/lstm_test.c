/* lstm: cells and BLAS against plain loops, forward and back; gradients against differences; a second gradient is
 * refused by name. */
#include "op_gradient.h"

static const int64_t lengths[][3] = {
    { 5, 3, 4 }, { 1, 1, 1 }, { 3, 21, 13 }, { 0, 2, 3 }, { 2, 0, 3 }, { 2, 8, 40 }
}; /* steps, batch, units */

static op_case forward(const int64_t *l, plait_type type) {
    op_case c = op_case_of(&pli_op_lstm);
    op_case_input(&c, type, shape3(l[0], l[1], 4 * l[2]), 0);
    op_case_input(&c, type, plait_shape_2(l[2], 4 * l[2]), 0);
    for (int i = 0; i < 2; i++) op_case_input(&c, type, plait_shape_2(l[1], l[2]), 0);
    return c;
}

static void test_cells_agree(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const int64_t *l = lengths[i];
        op_case        c = forward(l, PLAIT_F32);
        assert_int_equal(op_case_agree(&c, 2e-5), 1);
        op_case_end(&c);
        for (int with_dc = 0; with_dc < 2; with_dc++) {
            c = op_case_of(&pli_op_lstm_gradient);
            op_case_input(&c, PLAIT_F32, plait_shape_2(l[2], 4 * l[2]), 0);
            op_case_input(&c, PLAIT_F32, plait_shape_2(l[1], l[2]), 0);
            op_case_input(&c, PLAIT_F32, shape3(l[0], l[1], l[2]), 0);
            plait_tensor *gates = op_case_input(&c, PLAIT_F32, shape3(l[0], l[1], 4 * l[2]), 0);
            for (int64_t k = 0; k < plait_shape_elements(&gates->shape); k++)
                ((float *)gates->data)[k] = 0.5f + 0.4f * tanhf(((float *)gates->data)[k]);
            for (int k = 0; k < 1 + with_dc; k++) op_case_input(&c, PLAIT_F32, shape3(l[0], l[1], l[2]), 0);
            assert_int_equal(op_case_agree(&c, 1e-4), 1);
            op_case_end(&c);
        }
        c = op_case_of(&pli_op_recurrent_product);
        op_case_input(&c, PLAIT_F32, plait_shape_2(l[1], l[2]), 0);
        op_case_input(&c, PLAIT_F32, shape3(l[0], l[1], l[2]), 0);
        op_case_input(&c, PLAIT_F32, shape3(l[0], l[1], 5), 0);
        assert_int_equal(op_case_agree(&c, 1e-4), 1);
        op_case_end(&c);
    }
}

static void test_gates_saturate(void **state) {
    (void)state;
    op_case c = forward(lengths[1], PLAIT_F32);
    memcpy(c.in[0].data, (const float[]){ 1e9f, -1e9f, -200, 90 }, 4 * sizeof(float));
    assert_int_equal(op_case_agree(&c, 1e-6), 1);
    assert_true(((float *)c.out[1].data)[0] == -1);
    op_case_end(&c);
}

static void test_gradients(void **state) {
    (void)state;
    op_case c = forward(lengths[0], PLAIT_F64);
    c.apart = 4;
    op_case_gradients(&c, 1, 1e-6);
    c = forward(lengths[0], PLAIT_F64);
    c.apart = 6; /* c has no derivative */
    op_case_gradients(&c, 1, 1e-6);
    c = forward(lengths[1], PLAIT_F64);
    c.apart = 5; /* h has no derivative */
    op_case_gradients(&c, 1, 1e-6);
}

static void test_a_second_gradient_is_refused(void **state) {
    (void)state;
    plait_graph *g = NULL;
    plait_error  err;
    assert_int_equal(plait_graph_create(NULL, 0, &g, NULL), PLAIT_OK);
    const plait_value in[] = { plait_graph_placeholder(g, "z", PLAIT_F32, shape3(PLAIT_ANY, 2, 12)),
                               plait_graph_placeholder(g, "r", PLAIT_F32, plait_shape_2(3, 12)),
                               plait_graph_placeholder(g, "h0", PLAIT_F32, plait_shape_2(2, 3)),
                               plait_graph_placeholder(g, "c0", PLAIT_F32, plait_shape_2(2, 3)) };
    const plait_value h = plait_graph_op(g, "lstm", in, 4, NULL, 0);
    plait_value       dr, ddr;
    assert_int_equal(plait_graph_gradients(g, h, 1, &in[1], &dr), PLAIT_OK);
    assert_int_equal(plait_graph_gradients(g, dr, 1, &in[1], &ddr), PLAIT_EINVAL);
    plait_graph_check(g, &err);
    assert_non_null(strstr(err.text, "no rule to differentiate recurrent_product"));
    plait_graph_destroy(&g);
}

static void test_refuses(void **state) {
    (void)state;
    op_case c = forward(lengths[0], PLAIT_F32);
    c.in[0].shape.dim[2] = 12;
    op_case_refused(&c, PLAIT_ESHAPE, "four columns a unit, of 4 units");
    c = forward(lengths[0], PLAIT_F32);
    c.in[3].shape.dim[0] = 2;
    op_case_refused(&c, PLAIT_ESHAPE, "[batch, units]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells_agree), cmocka_unit_test(test_gates_saturate),
        cmocka_unit_test(test_gradients),   cmocka_unit_test(test_a_second_gradient_is_refused),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
