/* Products of matrices: each processor's tiles against plain sums, for lengths around those of tiles, with both
 * sides as they are and transposed, and with c added or overwritten. All give the same bits, however the product is
 * cut. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/base.h"
#include "tensor/gemm/gemm.h"
#include "tensor/gemm/sgemm.h"

#include <cmocka.h>

enum { MOST = 70, PLACE = MOST * 600 };

typedef struct product {
    bool    ta, tb, load;
    int64_t m, n, k, lda, ldb, ldc;
} product;

static void fill(float *x, int64_t n, uint64_t key) {
    pli_random r = pli_random_at(7, PLI_RANDOM_DATA, key, 0);
    for (int64_t i = 0; i < n; i++) x[i] = (float)pli_random_normal(&r);
}

static float a[PLACE], b[PLACE], was[MOST * MOST * 2], c[MOST * MOST * 2];

/* The chain that sgemm.h promises, element by element. */
static float chain(const product *p, float sum, int64_t i, int64_t j) {
    for (int64_t l = 0; l < p->k; l++)
        sum = fmaf(p->ta ? a[l * p->lda + i] : a[i * p->lda + l], p->tb ? b[j * p->ldb + l] : b[l * p->ldb + j], sum);
    return sum;
}

/* b packed first gives the same bits. */
static void check_packed(const pli_tiles *tiles, const product *p) {
    static float  again[MOST * MOST * 2], packed[PLACE];
    const int64_t floats = (int64_t)pli_sgemm_packed_floats(tiles, p->n, p->k);
    assert_true(floats < PLACE);
    memcpy(again, was, sizeof again);
    packed[floats] = 42;
    pli_sgemm_pack(tiles, p->tb, p->n, p->k, b, p->ldb, packed);
    assert_true(packed[floats] == 42);
    pli_sgemm_packed(tiles, p->m, p->n, p->k, a, p->lda, packed, p->load, again, p->ldc);
    assert_memory_equal(again, c, sizeof c);
}

static void check(const pli_tiles *tiles, const product *p) {
    memcpy(c, was, sizeof c);
    pli_sgemm(tiles, p->ta, p->tb, p->m, p->n, p->k, a, p->lda, b, p->ldb, p->load, c, p->ldc);
    if (!p->ta) check_packed(tiles, p);
    for (int64_t i = 0; i < MOST; i++)
        for (int64_t j = 0; j < p->ldc; j++) {
            float want = was[i * p->ldc + j]; /* outside the product nothing is written */
            if (i < p->m && j < p->n) want = chain(p, p->load ? want : 0, i, j);
            assert_memory_equal(&want, &c[i * p->ldc + j], sizeof want);
        }
}

static void check_all(const pli_tiles *tiles) {
    static const int64_t lengths[][3] = { { 1, 1, 1 },     { 14, 32, 8 },  { 6, 16, 9 },   { 15, 33, 7 },
                                          { 13, 31, 17 },  { 64, 10, 33 }, { 29, 64, 64 }, { 5, 65, 300 },
                                          { 43, 17, 513 }, { 3, 40, 256 }, { 0, 3, 4 },    { 4, 0, 3 },
                                          { 7, 5, 0 } };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int way = 0; way < 8; way++) {
            product p = { .ta = way & 1,
                          .tb = way & 2,
                          .load = way & 4,
                          .m = lengths[i][0],
                          .n = lengths[i][1],
                          .k = lengths[i][2] };
            p.lda = (p.ta ? p.m : p.k) + way % 3;
            p.ldb = (p.tb ? p.k : p.n) + way % 3;
            p.ldc = p.n + way % 2;
            check(tiles, &p);
        }
}

static void test_tiles(void **state) {
    (void)state;
    const pli_tiles *best = pli_tiles_get();
    if (best == NULL) skip();
    fill(a, PLACE, 1);
    fill(b, PLACE, 2);
    fill(was, MOST * MOST * 2, 3);
    check_all(best);
#if defined(__x86_64__)
    if (best != pli_tiles_avx2()) check_all(pli_tiles_avx2()); /* the same chain: the same bits */
#endif
}

/* The tiles of pli_gemm_cut_of make up the whole, bit for bit, if the processor has tiles; BLAS may round otherwise. */
static void test_gemm_f32(void **state) {
    (void)state;
    enum { M = 40, N = 50, K = 90 };
    static float x[M * K], y[K * N], whole[M * N], parts[M * N];
    fill(x, M * K, 4);
    fill(y, K * N, 5);
    pli_gemm_open();
    pli_gemm_f32(false, false, M, N, K, x, K, y, N, 0, whole, N);
    for (int64_t i = 0; i < M; i += 17)
        for (int64_t j = 0; j < N; j += 23)
            pli_gemm_f32(false, false, M - i < 17 ? M - i : 17, N - j < 23 ? N - j : 23, K, x + i * K, K, y + j, N, 0,
                         parts + i * N + j, N);
    if (pli_tiles_get() != NULL) assert_memory_equal(whole, parts, sizeof whole);
    pli_gemm_f32(false, false, M, N, K, x, K, y, N, 2, parts, N); /* a factor for c: this goes to BLAS */
    for (int i = 0; i < M * N; i++) assert_true(fabsf(parts[i] - 3 * whole[i]) < 1e-3f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_gemm_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
