/* gru: cells and BLAS against plain loops, forward and back; gradients against differences; refusals. */
#include "op_gradient.h"

/* steps, batch, units */
static const int64_t lengths[][3] = { { 4, 3, 4 }, { 1, 1, 1 }, { 3, 21, 13 }, { 0, 2, 3 }, { 2, 0, 3 }, { 2, 8, 40 } };

static op_case forward(const int64_t *l, plait_type type) {
    op_case c = op_case_of(&pli_op_gru);
    op_case_input(&c, type, shape3(l[0], l[1], 3 * l[2]), 0);
    op_case_input(&c, type, plait_shape_2(l[2], 3 * l[2]), 0);
    op_case_input(&c, type, plait_shape_1(l[2]), 0);
    op_case_input(&c, type, plait_shape_2(l[1], l[2]), 0);
    return c;
}

static void test_cells_agree(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const int64_t *l = lengths[i];
        op_case        c = forward(l, PLAIT_F32);
        assert_int_equal(op_case_agree(&c, 2e-5), 1);
        op_case_end(&c);
        c = op_case_of(&pli_op_gru_gradient);
        op_case_input(&c, PLAIT_F32, plait_shape_2(l[2], 3 * l[2]), 0);
        op_case_input(&c, PLAIT_F32, plait_shape_2(l[1], l[2]), 0);
        op_case_input(&c, PLAIT_F32, shape3(l[0], l[1], l[2]), 0);
        plait_tensor *gates = op_case_input(&c, PLAIT_F32, shape3(l[0], l[1], 4 * l[2]), 0);
        for (int64_t k = 0; k < plait_shape_elements(&gates->shape); k++)
            ((float *)gates->data)[k] = 0.5f + 0.4f * tanhf(((float *)gates->data)[k]);
        op_case_input(&c, PLAIT_F32, shape3(l[0], l[1], l[2]), 0);
        assert_int_equal(op_case_agree(&c, 1e-4), 1);
        op_case_end(&c);
    }
}

static void test_gradients(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        op_case c = forward(lengths[i], PLAIT_F64);
        c.apart = 2;
        op_case_gradients(&c, 1, 1e-6);
    }
}

static void test_refuses(void **state) {
    (void)state;
    op_case c = forward(lengths[0], PLAIT_F32);
    c.in[0].shape.dim[2] = 16;
    op_case_refused(&c, PLAIT_ESHAPE, "three columns a unit, of 4 units");
    c = forward(lengths[0], PLAIT_F32);
    c.in[2].shape.dim[0] = 3;
    op_case_refused(&c, PLAIT_ESHAPE, "b [units]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells_agree),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
