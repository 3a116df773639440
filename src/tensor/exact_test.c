/* Exact sums against every order and grouping of the same terms, to the bit, and against sums in wider arithmetic;
 * the processor's loops against the reference's; tops, special elements, subnormals, the largest numbers,
 * cancellation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tensor/exact.h"
#include "tensor/exact_cells.h"
#include "tensor/tensor.h"

enum { N = 61, TERMS = 37 };

/* How the terms of a case are drawn: sizes that differ by few or by many powers of two. */
static const int spreads[] = { 0, 3, 20, 60, 120 };
enum { N_SPREADS = sizeof spreads / sizeof *spreads };

typedef struct terms {
    float  f32[TERMS][N];
    double f64[TERMS][N];
} terms;

static void draw(terms *t, uint64_t seed, int spread) {
    pli_random r = pli_random_at(seed, PLI_RANDOM_DATA, 1, 0);
    for (int k = 0; k < TERMS; k++)
        for (int i = 0; i < N; i++) {
            double x = pli_random_normal(&r);
            int    by = (int)pli_random_below(&r, 2 * (uint64_t)spread + 1) - spread;
            t->f32[k][i] = (float)ldexp(x, by);
            t->f64[k][i] = ldexp(x, 8 * by);
            if (pli_random_below(&r, 9) == 0) t->f32[k][i] = 0, t->f64[k][i] = -0.0;
        }
}

static void *memory_of(bool wide, pli_exact *sum) {
    void *memory = test_malloc((size_t)pli_exact_bytes(wide, N));
    *sum = pli_exact_at(wide, N, memory);
    pli_exact_clear(sum, 0, N);
    return memory;
}

static void add(const pli_exact *sum, const terms *t, int k) {
    if (sum->wide)
        pli_exact_add_f64(sum, 0, N, t->f64[k]);
    else
        pli_exact_add_f32(sum, 0, N, t->f32[k]);
}

/* The rounded sums; floats are widened. */
static void result(const pli_exact *sum, double *out) {
    float narrow[N];
    if (sum->wide)
        pli_exact_round_f64(sum, 0, N, out);
    else {
        pli_exact_round_f32(sum, 0, N, narrow);
        for (int i = 0; i < N; i++) out[i] = (double)narrow[i];
    }
}

static void assert_same(const double *a, const double *b) { assert_memory_equal(a, b, N * sizeof *a); }

static void in_order(bool wide, const terms *t, double *out) {
    pli_exact sum;
    void     *memory = memory_of(wide, &sum);
    for (int k = 0; k < TERMS; k++) add(&sum, t, k);
    result(&sum, out);
    test_free(memory);
}

static void permuted(bool wide, const terms *t, uint64_t seed, double *out) {
    uint32_t   order[TERMS];
    pli_exact  sum;
    void      *memory = memory_of(wide, &sum);
    pli_random r = pli_random_at(seed, PLI_RANDOM_DATA, 2, 0);
    pli_random_permutation(&r, TERMS, order);
    for (int k = 0; k < TERMS; k++) add(&sum, t, (int)order[k]);
    result(&sum, out);
    test_free(memory);
}

/* The terms are split into groups, each summed by itself, and then merged. */
static void grouped(bool wide, const terms *t, int groups, double *out) {
    pli_exact sum[TERMS];
    void     *memory[TERMS];
    for (int g = 0; g < groups; g++) memory[g] = memory_of(wide, &sum[g]);
    for (int k = 0; k < TERMS; k++) add(&sum[k * 7 % groups], t, k);
    for (int g = groups - 1; g > 0; g--) pli_exact_merge(&sum[0], 0, N, &sum[g], 0);
    result(&sum[0], out);
    for (int g = 0; g < groups; g++) test_free(memory[g]);
}

/* The same groups as cells; they are merged backwards, and one of them into itself. */
static void in_cells(bool wide, const terms *t, int groups, double *out) {
    int64_t bytes = N * pli_cell_bytes(wide);
    char   *cells = test_calloc((size_t)groups, (size_t)bytes);
    float   narrow[N];
    for (int k = 0; k < TERMS; k++)
        pli_cells_add(wide, N, wide ? (const void *)t->f64[k] : t->f32[k], cells + k * 7 % groups * bytes);
    for (int g = groups - 1; g > 0; g--) {
        char *into = cells + (g - 1) * bytes;
        pli_cells_merge(wide, N, g % 2 ? into : into + bytes, g % 2 ? into + bytes : into, into);
    }
    pli_cells_round(wide, N, cells, wide ? (void *)out : narrow);
    for (int i = 0; !wide && i < N; i++) out[i] = (double)narrow[i];
    pli_cells_round(wide, N, cells, cells); /* in place */
    assert_memory_equal(cells, wide ? (void *)out : narrow, N * (wide ? sizeof *out : sizeof *narrow));
    test_free(cells);
}

static void at_once(bool wide, const terms *t, double *out) {
    const float  *x32[TERMS];
    const double *x64[TERMS];
    float         narrow[N];
    for (int k = 0; k < TERMS; k++) {
        x32[k] = t->f32[TERMS - 1 - k];
        x64[k] = t->f64[TERMS - 1 - k];
    }
    if (wide) {
        pli_exact_sum_f64(TERMS, x64, N, out);
        return;
    }
    pli_exact_sum_f32(TERMS, x32, N, narrow);
    for (int i = 0; i < N; i++) out[i] = (double)narrow[i];
}

/* Each element alone: the result must not depend on its place in a vector or on its neighbours. */
static void alone(bool wide, const terms *t, double *out) {
    for (int i = 0; i < N; i++) {
        int64_t   memory[PLI_EXACT_BINS_MAX + 1];
        pli_exact sum = pli_exact_at(wide, 1, memory);
        float     narrow;
        pli_exact_clear(&sum, 0, 1);
        for (int k = 0; k < TERMS; k++) {
            if (wide)
                pli_exact_add_f64(&sum, 0, 1, &t->f64[k][i]);
            else
                pli_exact_add_f32(&sum, 0, 1, &t->f32[k][i]);
        }
        if (wide)
            pli_exact_round_f64(&sum, 0, 1, &out[i]);
        else
            pli_exact_round_f32(&sum, 0, 1, &narrow);
        if (!wide) out[i] = (double)narrow;
    }
}

static void test_no_order_shows(void **state) {
    (void)state;
    static terms t;
    double       want[N], got[N];
    for (int s = 0; s < N_SPREADS; s++) {
        for (uint64_t seed = 1; seed <= 6; seed++) {
            draw(&t, seed, spreads[s]);
            for (int wide = 0; wide < 2; wide++) {
                in_order(wide, &t, want);
                permuted(wide, &t, seed, got);
                assert_same(want, got);
                for (int groups = 1; groups <= 16; groups += groups < 4 ? 1 : 4) {
                    grouped(wide, &t, groups, got);
                    assert_same(want, got);
                    in_cells(wide, &t, groups, got);
                    assert_same(want, got);
                }
                at_once(wide, &t, got);
                assert_same(want, got);
                alone(wide, &t, got);
                assert_same(want, got);
            }
        }
    }
}

/* The plain sum in long double has an error of 2^-63 of the sum of sizes. The exact sum loses 2^-22 (floats) or
 * 2^-80 (doubles) of the largest term for each term, and its last rounding, or two roundings for doubles. */
static void test_how_much_is_lost(void **state) {
    (void)state;
    static terms t;
    double       narrow[N], wide[N];
    for (int s = 0; s < N_SPREADS; s++) {
        draw(&t, 77, spreads[s]);
        in_order(false, &t, narrow);
        in_order(true, &t, wide);
        for (int i = 0; i < N; i++) {
            long double sum32 = 0, sum64 = 0, most32 = 0, most64 = 0;
            for (int k = 0; k < TERMS; k++) {
                sum32 += (long double)t.f32[k][i];
                sum64 += (long double)t.f64[k][i];
                most32 = fmaxl(most32, fabsl((long double)t.f32[k][i]));
                most64 = fmaxl(most64, fabsl((long double)t.f64[k][i]));
            }
            assert_true(fabsl(sum32 - (long double)narrow[i]) <= fabsl(sum32) * 0x1p-24L + TERMS * most32 * 0x1p-22L);
            assert_true(fabsl(sum64 - (long double)wide[i]) <= fabsl(sum64) * 0x1p-52L + TERMS * most64 * 0x1p-62L);
        }
    }
}

static float sum_of_f32(int n, const float *x) {
    const float *term[8];
    float        out, other;
    uint64_t     cell[PLI_CELL_BYTES_F32 / 8] = { 0 };
    for (int i = 0; i < n; i++) {
        term[i] = &x[i];
        pli_cells_add(false, 1, &x[i], cell);
    }
    pli_exact_sum_f32(n, term, 1, &out);
    pli_cells_round(false, 1, cell, &other);
    assert_memory_equal(&out, &other, sizeof out);
    return out;
}

static double sum_of_f64(int n, const double *x) {
    const double *term[8];
    double        out, other;
    uint64_t      cell[PLI_CELL_BYTES_F64 / 8] = { 0 };
    for (int i = 0; i < n; i++) {
        term[i] = &x[i];
        pli_cells_add(true, 1, &x[i], cell);
    }
    pli_exact_sum_f64(n, term, 1, &out);
    pli_cells_round(true, 1, cell, &other);
    assert_memory_equal(&out, &other, sizeof out);
    return out;
}

static void test_edges(void **state) {
    (void)state;
    const float  inf = INFINITY;
    const double big = 0x1.fffffffffffffp1023, tiny = 0x1p-1074;
    assert_true(sum_of_f32(3, (float[]){ 1e30F, 1, -1e30F }) == 0); /* 1 is below the lowest bin of 1e30 */
    assert_true(sum_of_f32(3, (float[]){ 0x1p20F, 0x1p-3F, -0x1p20F }) == 0x1p-3F);
    assert_true(sum_of_f32(2, (float[]){ 0x1p-149F, 0x1p-149F }) == 0x1p-148F);
    assert_true(sum_of_f32(2, (float[]){ 0x1.fffffep127F, 0x1.fffffep127F }) == inf);
    assert_true(sum_of_f32(3, (float[]){ 0x1.fffffep127F, 0x1.fffffep127F, -0x1.fffffep127F }) == 0x1.fffffep127F);
    assert_true(sum_of_f32(2, (float[]){ inf, -1 }) == inf);
    assert_true(sum_of_f32(2, (float[]){ 1, -inf }) == -inf);
    assert_true(isnan(sum_of_f32(3, (float[]){ inf, 0, -inf })));
    assert_true(isnan(sum_of_f32(2, (float[]){ 0, NAN })));
    assert_true(sum_of_f32(1, (float[]){ -0.0F }) == 0);
    assert_true(sum_of_f64(2, (double[]){ tiny, tiny }) == 2 * tiny);
    assert_true(sum_of_f64(3, (double[]){ big, big, -big }) == big);
    assert_true(isinf(sum_of_f64(2, (double[]){ -big, -big })));
    assert_true(sum_of_f64(4, (double[]){ 1e16, 1, 1, -1e16 }) == 2);
    assert_true(isnan(sum_of_f64(2, (double[]){ (double)inf, (double)NAN })));
    assert_true(sum_of_f64(1, (double[]){ 0.1 }) == 0.1);
}

/* Each exponent that a number can have: it fits its top and not the one below, and its value comes back unchanged. */
static void test_every_exponent(void **state) {
    (void)state;
    for (int e = -149; e <= 127; e++) {
        const float x = ldexpf(1, e);
        assert_true(sum_of_f32(1, &x) == x);
        assert_true(sum_of_f32(3, (float[]){ x, x, -x }) == x);
    }
    for (int e = -1074; e <= 1023; e++) {
        const double x = ldexp(1, e);
        assert_true(sum_of_f64(1, &x) == x);
        assert_true(sum_of_f64(3, (double[]){ -x, x, x }) == x);
    }
}

static void test_special_among_others(void **state) {
    (void)state;
    static terms t;
    double       want[N], got[N];
    draw(&t, 5, 20);
    t.f32[3][17] = INFINITY;
    t.f32[30][17] = INFINITY;
    t.f32[9][18] = NAN;
    t.f64[36][0] = -(double)INFINITY;
    t.f64[0][60] = (double)INFINITY;
    t.f64[1][60] = -(double)INFINITY;
    for (int wide = 0; wide < 2; wide++) {
        in_order(wide, &t, want);
        permuted(wide, &t, 9, got);
        assert_same(want, got);
        grouped(wide, &t, 5, got);
        assert_same(want, got);
        in_cells(wide, &t, 5, got);
        assert_same(want, got);
        at_once(wide, &t, got);
        assert_same(want, got);
        assert_true(wide ? isinf(want[0]) && isnan(want[60]) : isinf(want[17]) && isnan(want[18]));
    }
}

/* The processor's loops give the same as the reference's. */
static void test_processor(void **state) {
    (void)state;
    static terms       t;
    const pli_kernels *ref = pli_kernels_ref(), *best = pli_kernels_get();
    const float       *x32[TERMS];
    const double      *x64[TERMS];
    float              a32[N] = { 0 }, b32[N] = { 0 };
    double             a64[N] = { 0 }, b64[N] = { 0 };
    for (int s = 0; s < N_SPREADS; s++) {
        draw(&t, 3, spreads[s]);
        for (int k = 0; k < TERMS; k++) x32[k] = t.f32[k], x64[k] = t.f64[k];
        for (int few = 1; few < 12; few++) {
            for (int64_t i = 0; i < N; i++) { /* from each element, as far as the loops get */
                if (ref->exact_sum_f32(few, x32, i, N - i, a32 + i) < 8) continue;
                assert_true(best->exact_sum_f32(few, x32, i, N - i, b32 + i) >= 8);
                assert_memory_equal(a32 + i, b32 + i, 8 * sizeof *a32);
            }
        }
        assert_int_equal(ref->exact_sum_f32(TERMS, x32, 1, N - 1, a32), best->exact_sum_f32(TERMS, x32, 1, N - 1, b32));
        assert_int_equal(ref->exact_sum_f64(TERMS, x64, 1, N - 1, a64), best->exact_sum_f64(TERMS, x64, 1, N - 1, b64));
        assert_memory_equal(a32, b32, sizeof a32);
        assert_memory_equal(a64, b64, sizeof a64);
    }
}

static void test_many_in_one_cell(void **state) {
    (void)state;
    enum { MANY = 777 };
    static double x[MANY];
    pli_random    r = pli_random_at(4, PLI_RANDOM_DATA, 4, 0);
    for (int k = 0; k < 60; k++) {
        uint64_t one[4] = { 0 }, all[4] = { 0 };
        int64_t  n = k < 50 ? (int64_t)pli_random_below(&r, MANY + 1) : MANY;
        for (int64_t i = 0; i < n; i++) x[i] = ldexp(pli_random_normal(&r), (int)pli_random_below(&r, 200) - 100);
        if (k > 55) x[k] = k % 2 ? (double)INFINITY : (double)NAN;
        pli_cell_add_all(n / 2, x, all);
        pli_cell_add_all(n - n / 2, x + n / 2, all);
        for (int64_t i = 0; i < n; i++) pli_cells_add(true, 1, &x[i], one);
        assert_memory_equal(one, all, sizeof one);
    }
}

/* Bits that no sum can have are still some sum. */
static void test_cells_of_any_bits(void **state) {
    (void)state;
    pli_random r = pli_random_at(8, PLI_RANDOM_DATA, 3, 0);
    for (int k = 0; k < 20000; k++) {
        uint64_t a[4], b[4];
        double   x = pli_random_normal(&r), out;
        for (int i = 0; i < 4; i++) {
            a[i] = pli_random_u64(&r) >> pli_random_below(&r, 64);
            b[i] = pli_random_u64(&r) << pli_random_below(&r, 64);
        }
        for (int wide = 0; wide < 2; wide++) {
            pli_cells_merge(wide, 1, a, b, a);
            pli_cells_add(wide, 1, &x, a);
            pli_cells_round(wide, 1, a, &out);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_order_shows),
        cmocka_unit_test(test_how_much_is_lost),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_every_exponent),
        cmocka_unit_test(test_special_among_others),
        cmocka_unit_test(test_processor),
        cmocka_unit_test(test_cells_of_any_bits),
        cmocka_unit_test(test_many_in_one_cell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
