/* Products by BLAS against plain loops, over lengths near the edges of tiles, transposed operands, and batches. */
#include "tensor/gemm/gemm.h"
#include "op_gradient.h"

static const double tolerance[PLAIT_TYPES] = { [PLAIT_F32] = 1e-4, [PLAIT_F64] = 1e-12, [PLAIT_BF16] = 0.02 };

static void check(plait_type type, plait_shape a, plait_shape b, int ta, int tb) {
    op_case c = op_case_of(&pli_op_matmul);
    op_case_input(&c, type, a, 0);
    op_case_input(&c, type, b, 0);
    op_case_attr(&c, "ta")->u.i = ta;
    op_case_attr(&c, "tb")->u.i = tb;
    assert_int_equal(op_case_agree(&c, tolerance[type]), 1);
    op_case_end(&c);
}

static void test_blas_agrees(void **state) {
    (void)state;
    static const int64_t    mnk[][3] = { { 1, 1, 1 },    { 3, 5, 7 }, { 32, 10, 64 }, { 17, 1, 33 },
                                         { 1, 130, 20 }, { 2, 3, 0 }, { 0, 3, 2 },    { 3, 0, 2 } };
    static const plait_type types[] = { PLAIT_F32, PLAIT_F64, PLAIT_BF16 };
    for (size_t i = 0; i < sizeof mnk / sizeof *mnk; i++) {
        const int64_t m = mnk[i][0], n = mnk[i][1], k = mnk[i][2];
        for (int t = 0; t < 3; t++)
            for (int side = 0; side < 4; side++)
                check(types[t], side & 1 ? plait_shape_2(k, m) : plait_shape_2(m, k),
                      side & 2 ? plait_shape_2(n, k) : plait_shape_2(k, n), side & 1, side >> 1);
    }
}

static void test_batches_broadcast(void **state) {
    (void)state;
    for (int side = 0; side < 4; side++) {
        const int64_t m = 5, n = 4, k = 3;
        const int64_t ar = side & 1 ? k : m, ac = side & 1 ? m : k, br = side & 2 ? n : k, bc = side & 2 ? k : n;
        check(PLAIT_F32, shape3(6, ar, ac), shape3(6, br, bc), side & 1, side >> 1);
        check(PLAIT_F32, shape3(6, ar, ac), plait_shape_2(br, bc), side & 1, side >> 1); /* perhaps one tall matrix */
        check(PLAIT_F32, plait_shape_2(ar, ac), shape3(6, br, bc), side & 1, side >> 1);
        check(PLAIT_F32, plait_shape_4(2, 1, ar, ac), plait_shape_4(1, 3, br, bc), side & 1, side >> 1);
        check(PLAIT_F64, shape3(0, ar, ac), plait_shape_2(br, bc), side & 1, side >> 1);
    }
}

/* Several tiles in each direction; the last is smaller. */
static void test_tiles_cover_the_whole(void **state) {
    (void)state;
    static const int64_t mnk[][3] = {
        { 784, 512, 256 }, { 70000, 3, 300 }, { 1, 1, 1 << 24 }, { 65, 129, 4000 }, { 0, 5, 5 }
    };
    for (size_t i = 0; i < sizeof mnk / sizeof *mnk; i++) {
        const int64_t      m = mnk[i][0], n = mnk[i][1];
        const pli_gemm_cut cut = pli_gemm_cut_of(m, n, mnk[i][2]);
        assert_true((cut.row_tiles - 1) * cut.rows < m || m == 0);
        assert_true(cut.row_tiles * cut.rows >= m && cut.col_tiles * cut.cols >= n);
    }
    const pli_gemm_cut cut = pli_gemm_cut_of(784, 512, 256);
    assert_true(cut.row_tiles > 1 && cut.col_tiles > 1);
    for (int side = 1; side < 3; side++)
        check(PLAIT_F32, side & 1 ? plait_shape_2(401, 133) : plait_shape_2(133, 401),
              side & 2 ? plait_shape_2(330, 401) : plait_shape_2(401, 330), side & 1, side >> 1);
}

static void test_gradients(void **state) {
    (void)state;
    for (int side = 0; side < 4; side++)
        for (int batch = 0; batch < 3; batch++) {
            const int64_t ar = side & 1 ? 3 : 2, ac = side & 1 ? 2 : 3, br = side & 2 ? 4 : 3, bc = side & 2 ? 3 : 4;
            op_case       c = op_case_of(&pli_op_matmul);
            op_case_input(&c, PLAIT_F64, batch > 0 ? shape3(2, ar, ac) : plait_shape_2(ar, ac), 0);
            op_case_input(&c, PLAIT_F64, batch > 1 ? shape3(2, br, bc) : plait_shape_2(br, bc), 0);
            op_case_attr(&c, "ta")->u.i = side & 1;
            op_case_attr(&c, "tb")->u.i = side >> 1;
            op_case_gradients(&c, 2, 1e-6);
        }
}

static void test_refuses(void **state) {
    (void)state;
    op_case c = op_case_of(&pli_op_matmul);
    op_case_input(&c, PLAIT_F32, plait_shape_2(2, 3), 0);
    op_case_input(&c, PLAIT_F64, plait_shape_2(3, 2), 0);
    op_case_refused(&c, PLAIT_ESHAPE, "floats of one type");
    op_case_input(&c, PLAIT_F32, plait_shape_2(2, 3), 0);
    op_case_input(&c, PLAIT_F32, plait_shape_1(3), 0);
    op_case_refused(&c, PLAIT_ESHAPE, "needs matrices");
    op_case_input(&c, PLAIT_F32, shape3(2, 2, 3), 0);
    op_case_input(&c, PLAIT_F32, shape3(3, 3, 2), 0);
    op_case_refused(&c, PLAIT_ESHAPE, "batches do not go together");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blas_agrees),
        cmocka_unit_test(test_batches_broadcast),
        cmocka_unit_test(test_tiles_cover_the_whole),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
