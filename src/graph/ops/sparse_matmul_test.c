/* sparse_matmul: kernels agree with each other and with the dense product; refusals. gradcheck_test.c has its
 * gradient. */
#include "op_case.h"

static op_case sparse_case(plait_type type, int64_t rows, int64_t columns, int64_t entries, int64_t width) {
    op_case c = op_case_of(&pli_op_sparse_matmul);
    op_case_input(&c, PLAIT_I64, plait_shape_1(entries), rows);
    op_case_input(&c, PLAIT_I64, plait_shape_1(entries), columns);
    op_case_input(&c, type, plait_shape_1(entries), 0);
    op_case_input(&c, type, plait_shape_2(columns, width), 0);
    op_case_input(&c, PLAIT_F64, plait_shape_1(rows), 0);
    return c;
}

static void test_kernels_agree(void **state) {
    (void)state;
    static const int64_t sizes[][4] = {
        { 5, 7, 20, 3 }, { 1, 1, 1, 1 }, { 6, 100, 500, 33 }, { 3, 4, 0, 64 }, { 0, 4, 0, 2 }
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        op_case c = sparse_case(PLAIT_F32, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]);
        assert_int_equal(op_case_agree(&c, 1e-5), 1);
        op_case_end(&c);
    }
}

static void test_is_the_dense_product(void **state) {
    (void)state;
    enum { ROWS = 4, COLUMNS = 6, ENTRIES = 15, WIDTH = 70 };
    op_case c = sparse_case(PLAIT_F64, ROWS, COLUMNS, ENTRIES, WIDTH);
    double  matrix[ROWS][COLUMNS] = { { 0 } };
    for (int64_t e = 0; e < ENTRIES; e++)
        matrix[((int64_t *)c.in[0].data)[e]][((int64_t *)c.in[1].data)[e]] += ((double *)c.in[2].data)[e];
    assert_int_equal(op_case_infer(&c), PLAIT_OK);
    assert_int_equal(c.out[0].shape.rank, 2);
    assert_int_equal(c.out[0].shape.dim[0], ROWS);
    assert_int_equal(c.out[0].shape.dim[1], WIDTH);
    assert_int_equal(op_case_run(&c, op_case_ref(&c)), PLAIT_OK);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t k = 0; k < WIDTH; k++) {
            double want = 0;
            for (int64_t j = 0; j < COLUMNS; j++) want += matrix[r][j] * ((double *)c.in[3].data)[j * WIDTH + k];
            assert_true(fabs(((double *)c.out[0].data)[r * WIDTH + k] - want) < 1e-12);
        }
    op_case_end(&c);
}

static void test_entries_outside_end_the_run(void **state) {
    (void)state;
    for (int32_t input = 0; input < 2; input++)
        for (int32_t k = 0; pli_op_sparse_matmul.kernels[k] != NULL; k++) {
            op_case c = sparse_case(PLAIT_F32, 3, 4, 5, 2);
            ((int64_t *)c.in[input].data)[2] = input == 0 ? 3 : -1;
            assert_int_equal(op_case_infer(&c), PLAIT_OK);
            assert_int_equal(op_case_run(&c, pli_op_sparse_matmul.kernels[k]), PLAIT_EINVAL);
            assert_non_null(strstr(c.error.text, input == 0 ? "row 3 of 3" : "column -1 of 4"));
            op_case_end(&c);
        }
}

static void test_refuses(void **state) {
    (void)state;
    op_case c = sparse_case(PLAIT_F32, 3, 4, 5, 2);
    c.in[1].shape.dim[0] = 4;
    op_case_refused(&c, PLAIT_ESHAPE, "row and column");
    c = sparse_case(PLAIT_F32, 3, 4, 5, 2);
    c.in[3].shape = plait_shape_1(8);
    op_case_refused(&c, PLAIT_ESHAPE, "a dense matrix");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_agree),
        cmocka_unit_test(test_is_the_dense_product),
        cmocka_unit_test(test_entries_outside_end_the_run),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
