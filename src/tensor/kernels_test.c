/* Every kernel of this processor against the reference, to the bit; the reference against plain loops and libm,
 * within the stated bounds; bits do not depend on place and alignment; the edges of the elementary functions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tensor/kernels.h"

enum { N = 531, TABLE = 97 };

typedef struct vectors {
    float x32[N], y32[N];
    double x64[N], y64[N];
    uint32_t index[N];
} vectors;

static void fill(vectors *v, uint64_t seed) {
    pli_random r = pli_random_at(seed, PLI_RANDOM_DATA, 0, 0);
    for (int i = 0; i < N; i++) {
        v->x64[i] = pli_random_normal(&r) * 3.0;
        v->y64[i] = pli_random_normal(&r);
        v->x32[i] = (float)v->x64[i];
        v->y32[i] = (float)v->y64[i];
        v->index[i] = (uint32_t)pli_random_below(&r, TABLE);
    }
}

/* --- vectors --------------------------------------------------------------------------------------- */

static const int64_t lengths[] = { 0, 1, 3, 15, 16, 17, 63, 100, 511 };
enum { N_LENGTHS = sizeof lengths / sizeof *lengths };

static void test_sums_and_sizes(void **state) {
    (void)state;
    const pli_kernels *ref = pli_kernels_ref(), *best = pli_kernels_get();
    vectors v;
    fill(&v, 1);
    for (size_t l = 0; l < N_LENGTHS; l++) {
        for (int at = 0; at < 9; at++) {
            const int64_t n = lengths[l];
            double dot32 = 0, dot64 = 0, gaps = 0, most = 0;
            for (int64_t i = at; i < at + n; i++) {
                dot32 += (double)v.x32[i] * (double)v.y32[i];
                dot64 += v.x64[i] * v.y64[i];
                gaps += ((double)v.x32[i] - (double)v.y32[i]) * ((double)v.x32[i] - (double)v.y32[i]);
                most = fmax(most, fabs(v.x64[i]));
            }
            assert_true(fabs(ref->dot_f32(n, v.x32 + at, v.y32 + at) - dot32) <= 1e-12 * (1.0 + (double)n));
            assert_true(fabs(ref->dot_f64(n, v.x64 + at, v.y64 + at) - dot64) <= 1e-12 * (1.0 + (double)n));
            assert_true(fabs(ref->distance_f32(n, v.x32 + at, v.y32 + at) - gaps) <= 1e-11 * (1.0 + (double)n));
            assert_true(best->distance_f32(n, v.x32 + at, v.y32 + at) ==
                        ref->distance_f32(n, v.x32 + at, v.y32 + at));
            assert_true(ref->max_abs_f64(n, v.x64 + at) == most);
            assert_true(ref->max_abs_f32(n, v.x32 + at) == (float)most);
            assert_true(best->dot_f32(n, v.x32 + at, v.y32 + at) == ref->dot_f32(n, v.x32 + at, v.y32 + at));
            assert_true(best->dot_f64(n, v.x64 + at, v.y64 + at) == ref->dot_f64(n, v.x64 + at, v.y64 + at));
            assert_true(best->max_abs_f32(n, v.x32 + at) == ref->max_abs_f32(n, v.x32 + at));
            assert_true(best->max_abs_f64(n, v.x64 + at) == ref->max_abs_f64(n, v.x64 + at));
        }
    }
    v.x32[200] = v.y32[200] = NAN;
    v.x64[200] = NAN;
    assert_true(isnan(best->max_abs_f32(N, v.x32)) && isnan(best->max_abs_f64(N, v.x64)));
}

static void check_place_of_sums(const pli_kernels *k) {
    vectors v, moved;
    fill(&v, 2);
    for (int at = 1; at < 8; at++) {
        memmove(moved.x32 + at, v.x32, 400 * sizeof(float));
        memmove(moved.y32 + 3, v.y32, 400 * sizeof(float));
        memmove(moved.x64 + at, v.x64, 400 * sizeof(double));
        memmove(moved.y64 + 3, v.y64, 400 * sizeof(double));
        assert_true(k->dot_f32(400, v.x32, v.y32) == k->dot_f32(400, moved.x32 + at, moved.y32 + 3));
        assert_true(k->dot_f64(400, v.x64, v.y64) == k->dot_f64(400, moved.x64 + at, moved.y64 + 3));
    }
}

static void test_axpy_and_scale(void **state) {
    (void)state;
    const pli_kernels *ref = pli_kernels_ref(), *best = pli_kernels_get();
    check_place_of_sums(ref);
    check_place_of_sums(best);
    for (int at = 0; at < 9; at++) {
        vectors v, whole, apart;
        fill(&v, 3);
        whole = apart = v;
        ref->axpy_f32(N, 0.7F, v.x32, whole.y32);
        ref->axpy_f64(N, 0.7, v.x64, whole.y64);
        ref->scale_f32(N, 0.3F, whole.x32);
        ref->scale_f64(N, 0.3, whole.x64);
        ref->axpy_f32_f64(N, 1.1, v.x32, whole.y64);
        for (int part = 0; part < 2; part++) {
            const int from = part == 0 ? 0 : at, n = part == 0 ? at : N - at;
            best->axpy_f32(n, 0.7F, v.x32 + from, apart.y32 + from);
            best->axpy_f64(n, 0.7, v.x64 + from, apart.y64 + from);
            best->scale_f32(n, 0.3F, apart.x32 + from);
            best->scale_f64(n, 0.3, apart.x64 + from);
            best->axpy_f32_f64(n, 1.1, v.x32 + from, apart.y64 + from);
        }
        assert_memory_equal(&whole, &apart, sizeof whole);
        for (int i = 0; i < N; i++)
            assert_true(whole.y32[i] == v.y32[i] + 0.7F * v.x32[i] && whole.x64[i] == v.x64[i] * 0.3 &&
                        whole.y64[i] == v.y64[i] + 0.7 * v.x64[i] + 1.1 * (double)v.x32[i]);
    }
}

static void test_gather_and_scatter(void **state) {
    (void)state;
    const pli_kernels *k = pli_kernels_get();
    vectors v;
    float out32[N], sum32[TABLE] = { 0 }, want32[TABLE] = { 0 };
    double out64[N], sum64[TABLE] = { 0 }, want64[TABLE] = { 0 };
    fill(&v, 4);
    k->gather_f32(N, v.index, v.x32, out32);
    k->gather_f64(N, v.index, v.x64, out64);
    k->scatter_add_f32(N, v.index, v.x32, sum32);
    k->scatter_add_f64(N, v.index, v.x64, sum64);
    for (int i = 0; i < N; i++) {
        assert_true(out32[i] == v.x32[v.index[i]] && out64[i] == v.x64[v.index[i]]);
        want32[v.index[i]] += v.x32[i];
        want64[v.index[i]] += v.x64[i];
    }
    assert_memory_equal(sum32, want32, sizeof sum32);
    assert_memory_equal(sum64, want64, sizeof sum64);
}

/* --- sparse rows ------------------------------------------------------------------------------------ */

enum { ROWS = 40, COLS_MAX = 29 };

typedef struct sparse_case {
    int64_t start[ROWS + 1];
    uint32_t order[ROWS];
    double w64[TABLE * COLS_MAX], r64[ROWS * COLS_MAX];
    float w32[TABLE * COLS_MAX], r32[ROWS * COLS_MAX];
    unsigned char packed[3 * N + 1];
    vectors v;
} sparse_case;

static void fill_sparse(sparse_case *c) {
    pli_random r = pli_random_at(5, PLI_RANDOM_DATA, 0, 0);
    fill(&c->v, 5);
    for (int i = 0; i < N; i++)
        for (int byte = 0; byte < 3; byte++) c->packed[3 * i + byte] = (unsigned char)(c->v.index[i] >> 8 * byte);
    for (int i = 0; i < ROWS; i++) {
        c->start[i + 1] = c->start[i] + (int64_t)pli_random_below(&r, 26);
        if (c->start[i + 1] > N) c->start[i + 1] = N;
    }
    pli_random_permutation(&r, ROWS, c->order);
    for (int i = 0; i < TABLE * COLS_MAX; i++) {
        c->w64[i] = pli_random_normal(&r);
        c->w32[i] = (float)c->w64[i];
    }
    for (int i = 0; i < ROWS * COLS_MAX; i++) {
        c->r64[i] = pli_random_normal(&r);
        c->r32[i] = (float)c->r64[i];
    }
}

static double value_at(const pli_csr *x, int64_t e) {
    return x->value == NULL ? 1.0 : (double)x->value[e];
}

static void check_dot(const pli_kernels *k, const sparse_case *c, const pli_csr *x, pli_rows rows, int64_t cols) {
    double y32[ROWS * COLS_MAX], y64[ROWS * COLS_MAX];
    k->csr_dot_f32(x, rows, cols, c->w32, y32);
    k->csr_dot_f64(x, rows, cols, c->w64, y64);
    for (int64_t i = 0; i < rows.n * cols; i++) {
        const int64_t row = pli_row_at(rows, i / cols);
        double want = 0;
        for (int64_t e = c->start[row]; e < c->start[row + 1]; e++) {
            want += value_at(x, e) * c->w64[x->col[e] * cols + i % cols];
        }
        assert_true(fabs(y64[i] - want) <= 1e-12);
        assert_true(fabs(y32[i] - want) <= 2e-5);
    }
    /* A row's bits do not depend on the other rows of the call. */
    for (int64_t i = 0; i < rows.n; i++) {
        double one32[COLS_MAX], one64[COLS_MAX];
        const pli_rows one = { NULL, pli_row_at(rows, i), 1 };
        k->csr_dot_f32(x, one, cols, c->w32, one32);
        k->csr_dot_f64(x, one, cols, c->w64, one64);
        assert_memory_equal(one32, y32 + i * cols, (size_t)cols * sizeof *one32);
        assert_memory_equal(one64, y64 + i * cols, (size_t)cols * sizeof *one64);
    }
}

static void check_same_dots(const sparse_case *c, const pli_csr *x, pli_rows rows, int64_t cols) {
    double want[ROWS * COLS_MAX], got[ROWS * COLS_MAX];
    pli_kernels_ref()->csr_dot_f32(x, rows, cols, c->w32, want);
    pli_kernels_get()->csr_dot_f32(x, rows, cols, c->w32, got);
    assert_memory_equal(want, got, (size_t)(rows.n * cols) * sizeof *want);
    pli_kernels_ref()->csr_dot_f64(x, rows, cols, c->w64, want);
    pli_kernels_get()->csr_dot_f64(x, rows, cols, c->w64, got);
    assert_memory_equal(want, got, (size_t)(rows.n * cols) * sizeof *want);
}

static void check_add(const pli_kernels *k, const sparse_case *c, const pli_csr *x, pli_rows rows, int64_t cols) {
    float g32[TABLE * COLS_MAX] = { 0 }, want32[TABLE * COLS_MAX] = { 0 };
    double g64[TABLE * COLS_MAX] = { 0 }, want64[TABLE * COLS_MAX] = { 0 };
    k->csr_t_axpy_f32(x, rows, cols, c->r32, g32);
    k->csr_t_axpy_f64(x, rows, cols, c->r64, g64);
    for (int64_t i = 0; i < rows.n; i++) {
        const int64_t row = pli_row_at(rows, i);
        for (int64_t e = c->start[row]; e < c->start[row + 1]; e++) {
            for (int64_t j = 0; j < cols; j++) {
                want32[x->col[e] * cols + j] += (float)value_at(x, e) * c->r32[i * cols + j];
                want64[x->col[e] * cols + j] += value_at(x, e) * c->r64[i * cols + j];
            }
        }
    }
    assert_memory_equal(g32, want32, sizeof g32);
    assert_memory_equal(g64, want64, sizeof g64);
}

static void test_sparse_rows(void **state) {
    (void)state;
    static const int64_t widths[] = { 1, 2, 8, 9, 10, 11, 12, 13, 14, 15, 16, 29 };
    sparse_case c = { 0 };
    fill_sparse(&c);
    for (int with = 0; with < 4; with++) {
        const pli_csr x = { ROWS, c.start, c.v.index, with & 1 ? c.v.x32 : NULL, with & 2 ? c.packed : NULL };
        const pli_rows chosen[] = {
            { NULL, 0, ROWS }, { NULL, 7, 12 }, { c.order, 0, ROWS }, { c.order, 3, 20 }, { NULL, 4, 0 }
        };
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            for (size_t r = 0; r < sizeof chosen / sizeof *chosen; r++) {
                check_dot(pli_kernels_ref(), &c, &x, chosen[r], widths[w]);
                check_dot(pli_kernels_get(), &c, &x, chosen[r], widths[w]);
                check_same_dots(&c, &x, chosen[r], widths[w]);
                check_add(pli_kernels_ref(), &c, &x, chosen[r], widths[w]);
                check_add(pli_kernels_get(), &c, &x, chosen[r], widths[w]);
            }
        }
    }
}

/* --- elementary functions ---------------------------------------------------------------------------- */

static long double exact_exp(double x) {
    return expl((long double)x);
}

static long double exact_sigmoid(double x) {
    return x < 0 ? expl((long double)x) / (1.0L + expl((long double)x)) : 1.0L / (1.0L + expl(-(long double)x));
}

static long double exact_softplus(double x) {
    return (x > 0 ? (long double)x : 0.0L) + log1pl(expl(-fabsl((long double)x)));
}

/* The distance in units in the last place of a number with so many digits at want (53: double, 24: float). */
static double ulps(double have, long double want, int digits) {
    int exponent;
    (void)frexpl(want, &exponent);
    const int least = digits == 53 ? -1074 : -149;
    exponent = exponent - digits < least ? least : exponent - digits;
    return (double)(fabsl((long double)have - want) / ldexpl(1.0L, exponent));
}

typedef void map_f32(int64_t n, const float *x, float *out);
typedef void map_f64(int64_t n, const double *x, double *out);
typedef long double exact(double x);

static void check_accuracy(map_f32 *f32, map_f64 *f64, exact *want, double bound, double from, double to) {
    enum { POINTS = 40000, AT_ONCE = 100 };
    double worst32 = 0, worst64 = 0, last64 = -1;
    float last32 = -1;
    for (int64_t i = 0; i < POINTS; i += AT_ONCE) {
        double x[AT_ONCE], y[AT_ONCE];
        float x32[AT_ONCE], y32[AT_ONCE];
        for (int64_t j = 0; j < AT_ONCE; j++) {
            x[j] = from + (to - from) * (double)(i + j) / POINTS;
            x32[j] = (float)x[j];
        }
        f64(AT_ONCE, x, y);
        f32(AT_ONCE, x32, y32);
        for (int j = 0; j < AT_ONCE; j++) {
            const long double right32 = want((double)x32[j]);
            worst64 = fmax(worst64, ulps(y[j], want(x[j]), 53));
            if (right32 < 3.4028235e38L) worst32 = fmax(worst32, ulps((double)y32[j], right32, 24));
            assert_true(y[j] >= last64 && y32[j] >= last32); /* these points are far apart, so the function must grow */
            last64 = y[j];
            last32 = y32[j];
        }
    }
    assert_true(worst64 <= bound);
    assert_true(worst32 <= 0.501);
}

static void test_elementary_functions_are_accurate(void **state) {
    (void)state;
    if (sizeof(long double) <= sizeof(double)) skip();
    const pli_kernels *tables[] = { pli_kernels_ref(), pli_kernels_get() };
    for (int t = 0; t < 2; t++) {
        const pli_kernels *k = tables[t];
        const double ranges[][2] = { { -1, 1 }, { -1e-3, 1e-3 }, { -40, 40 }, { -745, 709 }, { -1e-9, 1e-9 } };
        for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
            check_accuracy(k->exp_f32, k->exp_f64, exact_exp, 1.5, ranges[r][0], ranges[r][1]);
            check_accuracy(k->sigmoid_f32, k->sigmoid_f64, exact_sigmoid, 3.0, ranges[r][0], ranges[r][1]);
            check_accuracy(k->softplus_f32, k->softplus_f64, exact_softplus, 2.5, ranges[r][0], ranges[r][1]);
        }
    }
}

/* Over neighbouring floats the float functions never decrease. */
static void test_float_functions_are_monotone(void **state) {
    (void)state;
    const pli_kernels *k = pli_kernels_get();
    enum { RUN = 4096 };
    static float x[RUN], out[RUN];
    map_f32 *maps[] = { k->exp_f32, k->sigmoid_f32, k->softplus_f32, k->tanh_f32 };
    for (float start = -20.0F; start < 20.0F; start += 0.37F) {
        x[0] = start;
        for (int i = 1; i < RUN; i++) x[i] = nextafterf(x[i - 1], INFINITY);
        for (int m = 0; m < 4; m++) {
            maps[m](RUN, x, out);
            for (int i = 1; i < RUN; i++) assert_true(out[i] >= out[i - 1]);
        }
    }
}

static void test_edges(void **state) {
    (void)state;
    const pli_kernels *k = pli_kernels_get();
    double x[] = { NAN, INFINITY, -INFINITY, 0.0, 1e300, -1e300, 709.78, -745.0, -1000.0, 1000.0 }, y[10];
    k->exp_f64(10, x, y);
    assert_true(isnan(y[0]) && y[1] == (double)INFINITY && y[2] == 0 && y[3] == 1 && y[4] == (double)INFINITY &&
                y[5] == 0);
    assert_true(isfinite(y[6]) && y[7] > 0 && y[8] == 0 && y[9] == (double)INFINITY);
    k->sigmoid_f64(10, x, y);
    assert_true(isnan(y[0]) && y[1] == 1 && y[2] == 0 && y[3] == 0.5 && y[4] == 1 && y[5] == 0 && y[7] > 0);
    k->softplus_f64(10, x, y);
    assert_true(isnan(y[0]) && y[1] == (double)INFINITY && y[2] == 0 && y[4] == 1e300 && y[5] == 0 && y[7] > 0 &&
                y[9] == 1000);
    float x32[] = { NAN, 88.7F, 89.0F, -103.0F, -104.0F }, y32[5];
    k->exp_f32(5, x32, y32);
    assert_true(isnan(y32[0]) && isfinite(y32[1]) && isinf(y32[2]) && y32[3] > 0 && y32[4] == 0);
}

static void test_elementary_functions_do_not_depend_on_place(void **state) {
    (void)state;
    const pli_kernels *ref = pli_kernels_ref(), *best = pli_kernels_get();
    map_f32 *whole32[] = { ref->exp_f32, ref->sigmoid_f32, ref->softplus_f32, ref->log_f32, ref->tanh_f32 };
    map_f32 *apart32[] = { best->exp_f32, best->sigmoid_f32, best->softplus_f32, best->log_f32, best->tanh_f32 };
    map_f64 *whole64[] = { ref->exp_f64, ref->sigmoid_f64, ref->softplus_f64, ref->log_f64, ref->tanh_f64 };
    map_f64 *apart64[] = { best->exp_f64, best->sigmoid_f64, best->softplus_f64, best->log_f64, best->tanh_f64 };
    for (int m = 0; m < 5; m++) {
        vectors v, whole, apart;
        fill(&v, 6);
        whole = apart = v;
        whole32[m](N, v.x32, whole.y32);
        whole64[m](N, v.x64, whole.y64);
        for (int64_t at = 0, n = 1; at < N; at += n, n = n % 13 + 1) {
            const int64_t take = at + n < N ? n : N - at;
            apart32[m](take, v.x32 + at, apart.y32 + at);
            memcpy(apart.y64 + at, v.x64 + at, (size_t)take * sizeof(double));
            apart64[m](take, apart.y64 + at, apart.y64 + at); /* in place */
        }
        assert_memory_equal(&whole, &apart, sizeof whole);
    }
}

static void test_softmax(void **state) {
    (void)state;
    const pli_kernels *tables[] = { pli_kernels_ref(), pli_kernels_get() };
    vectors v;
    fill(&v, 8);
    for (int t = 0; t < 2; t++) {
        for (int64_t n = 1; n < 40; n += 6) {
            double p64[40], sum = 0, most = (double)-INFINITY;
            float p32[40];
            for (int64_t i = 0; i < n; i++) most = fmax(most, v.x64[i]);
            for (int64_t i = 0; i < n; i++) sum += exp(v.x64[i] - most);
            assert_true(fabs(tables[t]->softmax_f64(n, v.x64, p64) - (most + log(sum))) <= 1e-14);
            assert_true(fabs(tables[t]->softmax_f32(n, v.x32, p32) - (most + log(sum))) <= 1e-6);
            for (int64_t i = 0; i < n; i++) {
                const double want = exp(v.x64[i] - most) / sum;
                assert_true(fabs(p64[i] - want) <= 1e-15 && fabs((double)p32[i] - want) <= 1e-6);
            }
        }
        double far[] = { 1e4, -1e4, 1e4 };
        assert_true(fabs(tables[t]->softmax_f64(3, far, far) - (1e4 + log(2.0))) <= 1e-11 && far[0] == 0.5 &&
                    far[1] == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_and_sizes),
        cmocka_unit_test(test_axpy_and_scale),
        cmocka_unit_test(test_gather_and_scatter),
        cmocka_unit_test(test_sparse_rows),
        cmocka_unit_test(test_elementary_functions_are_accurate),
        cmocka_unit_test(test_float_functions_are_monotone),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_elementary_functions_do_not_depend_on_place),
        cmocka_unit_test(test_softmax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
