/* Gram matrices by all kernels and forms of rows: they give the same bits, and agree with plain sums; the covariance
 * made from them; eigenvectors and orthonormal bases against their definitions; Cholesky's
 * factors solve what they came from. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tensor/kernels.h"
#include "tensor/spectral/cholesky.h"
#include "tensor/spectral/eigen.h"
#include "tensor/spectral/gram.h"

#include <cmocka.h>

enum { ROWS = 300, D_MAX = 70 };

static void *room(size_t bytes) {
    void *p = calloc(1, bytes + 1);
    assert_non_null(p);
    return p;
}

typedef struct data {
    int64_t       d, start[ROWS + 1];
    float         x[ROWS * D_MAX], value[ROWS * D_MAX], weight[ROWS];
    uint32_t      col[ROWS * D_MAX], order[ROWS];
    unsigned char packed[3 * ROWS * D_MAX + 1];
    double        shift[D_MAX];
} data;

static data *fill(int64_t d, double density, bool ones) {
    pli_random r = pli_random_at(4, PLI_RANDOM_DATA, (uint64_t)d, 0);
    data      *f = room(sizeof *f);
    f->d = d;
    for (int64_t i = 0, n = 0; i < ROWS; i++) {
        f->weight[i] = (float)(pli_random_below(&r, 9)) / 4;
        for (int64_t l = 0; l < d; l++) {
            if (pli_random_f64(&r) >= density) continue;
            const float v = ones ? 1 : (float)(3 + pli_random_normal(&r));
            f->x[i * d + l] = f->value[n] = v;
            for (int b = 0; b < 3; b++) f->packed[3 * n + b] = (unsigned char)(l >> 8 * b);
            f->col[n++] = (uint32_t)l;
        }
        f->start[i + 1] = n;
    }
    for (int64_t l = 0; l < d; l++) f->shift[l] = 2 + pli_random_normal(&r);
    pli_random_permutation(&r, ROWS, f->order);
    return f;
}

typedef struct answer {
    double gram[D_MAX * D_MAX], sum[D_MAX], mass;
} answer;

typedef struct how {
    int                     form; /* 0: dense; 1: CSR; 2: CSR with columns in three bytes */
    bool                    ones, weighted, shifted, narrow;
    const pli_tiles        *tiles;
    const pli_gram_kernels *kernels;
    pli_pool               *pool;
} how;

/* Rows come in two calls: sums go on where they were. The blocks left of the diagonal are not touched. */
static answer *run(const data *f, how h) {
    answer       *a = room(sizeof *a);
    pli_gram      to = { .d = f->d, .gram = a->gram, .sum = a->sum, .kernels = h.kernels,
                         .narrow = h.narrow, .tiles = h.tiles,
                         .shift = h.shifted ? f->shift : NULL, .scratch = room(pli_gram_scratch_bytes(f->d)) };
    const pli_csr x = { ROWS, f->start, h.form == 1 ? f->col : NULL, h.ones ? NULL : f->value,
                        h.form == 2 ? f->packed : NULL };
    for (int64_t first = 0, n; first < ROWS; first += n) {
        const float *weight = h.weighted ? f->weight : NULL;
        n = first == 0 ? 170 : ROWS - first;
        if (h.form > 0) pli_gram_csr(h.pool, &to, &x, (pli_rows){ NULL, first, n }, weight);
        else pli_gram_dense(h.pool, &to, n, f->x + first * f->d, f->d, weight != NULL ? weight + first : NULL);
    }
    a->mass = to.mass;
    free(to.scratch);
    for (int64_t i = 0; i < f->d; i++)
        for (int64_t j = 0; j < i; j++) a->gram[i * f->d + j] = 0;
    return a;
}

static void check(const data *f, const answer *a, how h) {
    const double near = h.narrow ? 2e-6 : 1e-13;
    double       mass = 0;
    for (int64_t r = 0; r < ROWS; r++) mass += h.weighted ? (double)f->weight[r] : 1;
    assert_true(a->mass == mass);
    for (int64_t i = 0; i < f->d; i++) {
        const double at = h.shifted ? f->shift[i] : 0;
        double       sum = 0;
        for (int64_t r = 0; r < ROWS; r++)
            sum += (h.weighted ? (double)f->weight[r] : 1) * ((double)f->x[r * f->d + i] - at);
        assert_true(fabs(a->sum[i] - sum) <= near * 2 * ROWS);
        for (int64_t j = i; j < f->d; j++) {
            double product = 0;
            for (int64_t r = 0; r < ROWS; r++)
                product += (h.weighted ? (double)f->weight[r] : 1) * ((double)f->x[r * f->d + i] - at) *
                           ((double)f->x[r * f->d + j] - (h.shifted ? f->shift[j] : 0));
            assert_true(fabs(a->gram[i * f->d + j] - product) <= near * 20 * ROWS);
        }
    }
}

static int64_t all_kernels(const pli_gram_kernels **out) {
    int64_t n = 0;
    out[n++] = pli_gram_kernels_ref();
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out[n++] = pli_gram_kernels_avx2();
    if (pli_gram_kernels_get() != out[n - 1]) out[n++] = pli_gram_kernels_get();
#endif
    return n;
}

/* Tiles other than the best, if the processor has any. */
static const pli_tiles *narrow_tiles(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return pli_tiles_avx2();
#endif
    return NULL;
}

static void check_all_forms(int64_t d, double density, bool ones, pli_pool *pool) {
    const pli_gram_kernels *kernels[4];
    const int64_t           n = all_kernels(kernels);
    data                   *f = fill(d, density, ones);
    for (int options = 0; options < 8; options++) {
        how     h = { .ones = ones, .weighted = options & 1, .shifted = options & 2, .narrow = options & 4,
                      .kernels = kernels[0] };
        answer *first = run(f, h);
        check(f, first, h);
        for (int64_t k = 0; k < n; k++)
            for (h.form = 0; h.form < 3; h.form++) {
                h.kernels = kernels[k];
                h.tiles = k == n - 1 ? NULL : narrow_tiles();
                h.pool = k == n - 1 ? pool : NULL;
                answer *a = run(f, h);
                assert_memory_equal(a, first, sizeof *a);
                free(a);
            }
        free(first);
    }
    free(f);
}

static void test_all_forms_agree(void **state) {
    static const int64_t d[] = { 1, 7, 16, 17, 32, 70 };
    pli_pool            *pool = NULL;
    plait_error          err;
    (void)state;
    assert_int_equal(pli_pool_create(3, &pool, &err), PLAIT_OK);
    for (size_t i = 0; i < sizeof d / sizeof *d; i++) {
        check_all_forms(d[i], 1, false, pool);
        check_all_forms(d[i], 0.3, false, pool);
    }
    check_all_forms(33, 0.5, true, pool);
    check_all_forms(9, 1, true, pool);
    pli_pool_destroy(&pool);
}

/* Rows in an order of their own give the same as these rows one after the other. */
static void test_chosen_rows(void **state) {
    (void)state;
    data         *f = fill(19, 0.7, false);
    answer       *a = room(sizeof *a), *b = room(sizeof *b);
    const pli_csr x = { ROWS, f->start, f->col, f->value, NULL };
    pli_gram      one = { .d = 19, .gram = a->gram, .sum = a->sum, .scratch = room(pli_gram_scratch_bytes(19)) };
    pli_gram      two = one;
    two.gram = b->gram;
    two.sum = b->sum;
    pli_gram_csr(NULL, &one, &x, (pli_rows){ f->order, 10, 200 }, f->weight);
    for (int64_t i = 10; i < 210; i++) pli_gram_csr(NULL, &two, &x, (pli_rows){ NULL, f->order[i], 1 }, f->weight);
    assert_true(one.mass == two.mass);
    assert_memory_equal(a, b, sizeof *a);
    free(one.scratch);
    free(a);
    free(b);
    free(f);
}

static double mean_of(const data *f, int64_t column) {
    double mean = 0;
    for (int64_t r = 0; r < ROWS; r++) mean += (double)f->x[r * f->d + column] / ROWS;
    return mean;
}

/* The covariance is the same for any shift, and symmetric. */
static void test_covariance(void **state) {
    (void)state;
    data         *f = fill(23, 1, false);
    const int64_t d = f->d;
    answer       *plain = run(f, (how){ 0 }), *shifted = run(f, (how){ .form = 1, .shifted = true });
    pli_gram_centre(d, plain->mass, plain->sum, plain->gram);
    pli_gram_centre(d, shifted->mass, shifted->sum, shifted->gram);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++) {
            const double mean_i = mean_of(f, i), mean_j = mean_of(f, j);
            double       product = 0;
            for (int64_t r = 0; r < ROWS; r++)
                product += ((double)f->x[r * d + i] - mean_i) * ((double)f->x[r * d + j] - mean_j);
            assert_true(fabs(plain->gram[i * d + j] - product) <= 1e-9);
            assert_true(fabs(shifted->gram[i * d + j] - product) <= 1e-9);
            assert_true(shifted->gram[i * d + j] == shifted->gram[j * d + i]);
        }
    free(plain);
    free(shifted);
    free(f);
}

/* --- eigenvectors and bases ------------------------------------------------------------------------------------- */

static double dot(int64_t n, const double *x, int64_t dx, const double *y, int64_t dy) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i * dx] * y[i * dy];
    return sum;
}

static void check_eigen(int64_t n, int64_t q) {
    double     *a = room((size_t)(n * n) * 8), *copy = room((size_t)(n * n) * 8), *value = room((size_t)q * 8);
    double     *vector = room((size_t)(n * q) * 8), *again = room((size_t)(n * q) * 8);
    pli_random  r = pli_random_at(6, PLI_RANDOM_DATA, (uint64_t)n, 0);
    plait_error err;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++) a[i * n + j] = a[j * n + i] = pli_random_normal(&r);
    memcpy(copy, a, (size_t)(n * n) * 8);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) a[i * n + j] = NAN; /* is not read */
    assert_int_equal(pli_eigen_top(n, a, q, value, vector, &err), PLAIT_OK);
    for (int64_t i = 0; i < q; i++) {
        const double *v = vector + i * n;
        int64_t       most = 0;
        assert_true(i == 0 || value[i] <= value[i - 1]);
        for (int64_t j = 0; j <= i; j++) assert_true(fabs(dot(n, v, 1, vector + j * n, 1) - (i == j)) <= 1e-12);
        for (int64_t j = 0; j < n; j++) {
            assert_true(fabs(dot(n, copy + j * n, 1, v, 1) - value[i] * v[j]) <= 1e-11 * (double)n);
            most = fabs(v[j]) > fabs(v[most]) ? j : most;
        }
        assert_true(v[most] > 0);
    }
    assert_int_equal(pli_eigen_top(n, copy, q, value, again, &err), PLAIT_OK);
    assert_memory_equal(vector, again, (size_t)(n * q) * 8);
    free(a);
    free(copy);
    free(value);
    free(vector);
    free(again);
}

static void test_eigenvectors(void **state) {
    (void)state;
    check_eigen(1, 1);
    check_eigen(2, 2);
    check_eigen(40, 40);
    check_eigen(130, 7);
    double      a[4] = { 3, 0, 0, 5 }, value[2], vector[4];
    plait_error err;
    assert_int_equal(pli_eigen_top(2, a, 2, value, vector, &err), PLAIT_OK);
    assert_true(value[0] == 5 && value[1] == 3 && vector[1] == 1 && vector[2] == 1);
    double bad[4] = { 1, NAN, 0, 1 };
    assert_int_equal(pli_eigen_top(2, bad, 1, value, vector, &err), PLAIT_EDIVERGED);
    assert_int_equal(pli_eigen_top(2, a, 3, value, vector, &err), PLAIT_EINVAL);
    assert_int_equal(pli_eigen_top(0, a, 1, value, vector, &err), PLAIT_EINVAL);
}

static void check_basis(int64_t n, int64_t q, bool dependent) {
    double     *z = room((size_t)(n * q) * 8), *was = room((size_t)(n * q) * 8);
    pli_random  r = pli_random_at(7, PLI_RANDOM_DATA, (uint64_t)n, 0);
    plait_error err;
    for (int64_t i = 0; i < n * q; i++) z[i] = pli_random_normal(&r);
    for (int64_t i = 0; dependent && i < n; i++) z[i * q + q - 1] = 2 * z[i * q];
    memcpy(was, z, (size_t)(n * q) * 8);
    assert_int_equal(pli_orthonormalise(n, q, z, &err), PLAIT_OK);
    for (int64_t i = 0; i < q; i++) {
        double left = dot(n, was + i, q, was + i, q); /* the part of a column that the basis does not span */
        for (int64_t j = 0; j < q; j++) {
            const double along = dot(n, z + j, q, was + i, q);
            assert_true(fabs(dot(n, z + i, q, z + j, q) - (i == j)) <= 1e-12);
            assert_true(j <= i || fabs(along) <= 1e-10);
            left -= along * along;
        }
        assert_true(fabs(left) <= 1e-9 * (double)n);
        assert_true(dependent || dot(n, z + i, q, was + i, q) > 0);
    }
    free(z);
    free(was);
}

static void test_bases(void **state) {
    (void)state;
    check_basis(1, 1, false);
    check_basis(9, 9, false);
    check_basis(200, 11, false);
    check_basis(200, 5, true);
    double      z[2] = { INFINITY, 1 };
    plait_error err;
    assert_int_equal(pli_orthonormalise(2, 1, z, &err), PLAIT_EDIVERGED);
    assert_int_equal(pli_orthonormalise(1, 2, z, &err), PLAIT_EINVAL);
}

/* A = BBt + I is factored and solved; one that has a negative direction is refused. */
static void test_cholesky(void **state) {
    (void)state;
    enum { D = 37 };
    static double a[D * D], u[D * D], b[D], x[D];
    for (int64_t i = 0; i < D; i++) {
        b[i] = x[i] = sin((double)i);
        for (int64_t j = i; j < D; j++) {
            a[i * D + j] = i == j;
            for (int64_t l = 0; l < D; l++) a[i * D + j] += cos((double)(i * D + l)) * cos((double)(j * D + l));
            a[j * D + i] = a[i * D + j];
        }
    }
    memcpy(u, a, sizeof u);
    for (int64_t i = 0; i < D; i++) memset(u + i * D, 255, (size_t)i * sizeof *u); /* left of the diagonal: not read */
    assert_true(pli_cholesky(D, u));
    pli_cholesky_solve(D, u, x);
    for (int64_t i = 0; i < D; i++) {
        double sum = 0;
        for (int64_t j = 0; j < D; j++) sum += a[i * D + j] * x[j];
        assert_true(fabs(sum - b[i]) < 1e-11);
    }
    a[20 * D + 20] -= 1000;
    assert_false(pli_cholesky(D, a));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_forms_agree),
        cmocka_unit_test(test_chosen_rows),
        cmocka_unit_test(test_covariance),
        cmocka_unit_test(test_eigenvectors),
        cmocka_unit_test(test_bases),
        cmocka_unit_test(test_cholesky),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
