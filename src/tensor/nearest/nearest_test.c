/* The nearest centre by all kernels and forms of rows: they give the same bits, and agree with plain sums in double;
 * of equals the lowest wins; also distances, sums and masses. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tensor/nearest/nearest.h"

#include <cmocka.h>

enum { ROWS = 333 };

typedef struct data {
    int64_t        d, k;
    float         *x, *centre, *value, weight[ROWS]; /* x [ROWS, d], centre [k, d] */
    int64_t        start[ROWS + 1];
    uint32_t      *col, order[ROWS];
    unsigned char *packed;
} data;

static void *room(size_t bytes) {
    void *p = calloc(1, bytes + 1);
    assert_non_null(p);
    return p;
}

/* Entries exist with the probability `density`, each `far` from the origin; ones: all values are 1. */
static void fill(data *f, int64_t d, int64_t k, double density, double far, bool ones) {
    pli_random r = pli_random_at(3, PLI_RANDOM_DATA, (uint64_t)(d * 1000 + k), 0);
    *f = (data){ .d = d, .k = k };
    f->x = room((size_t)(ROWS * d) * sizeof(float));
    f->value = room((size_t)(ROWS * d) * sizeof(float));
    f->col = room((size_t)(ROWS * d) * sizeof(uint32_t));
    f->packed = room((size_t)(ROWS * d) * 3 + 1);
    f->centre = room((size_t)(k * d) * sizeof(float));
    for (int64_t i = 0, n = 0; i < ROWS; i++) {
        f->weight[i] = (float)pli_random_f64(&r);
        for (int64_t l = 0; l < d; l++) {
            if (pli_random_f64(&r) >= density) continue;
            const float v = ones ? 1.0F : (float)(far + pli_random_normal(&r));
            f->x[i * d + l] = f->value[n] = v;
            for (int b = 0; b < 3; b++) f->packed[3 * n + b] = (unsigned char)(l >> 8 * b);
            f->col[n++] = (uint32_t)l;
        }
        f->start[i + 1] = n;
    }
    for (int64_t i = 0; i < k * d; i++) f->centre[i] = (float)(density * far + pli_random_normal(&r));
    pli_random_permutation(&r, ROWS, f->order);
}

static void drop(data *f) {
    free(f->x);
    free(f->value);
    free(f->col);
    free(f->packed);
    free(f->centre);
}

typedef struct answer {
    uint32_t nearest[ROWS];
    double   distance[ROWS], *sum, *mass;
    float    score[ROWS];
} answer;

static void begin(answer *a, const data *f) {
    a->sum = room((size_t)(f->k * f->d) * sizeof(double));
    a->mass = room((size_t)f->k * sizeof(double));
}

static void end(answer *a) {
    free(a->sum);
    free(a->mass);
}

static pli_assigned wish(answer *a, const data *f) {
    return (pli_assigned){ .nearest = a->nearest, .distance = a->distance, .score = a->score, .weight = f->weight,
                           .sum = a->sum, .mass = a->mass };
}

/* form 0: dense; 1: CSR; 2: CSR with columns in three bytes. */
static void run(const data *f, int form, bool tiles, bool ones, const pli_nearest_kernels *kernels, answer *a) {
    void        *memory = room(pli_centres_bytes(f->k, f->d)), *scratch = room(pli_nearest_scratch_bytes(f->k, f->d));
    pli_centres  c;
    pli_assigned out = wish(a, f);
    pli_centres_prepare(&c, f->k, f->d, f->centre, tiles, memory);
    c.kernels = kernels;
    const pli_csr x = { ROWS, f->start, form == 1 ? f->col : NULL, ones ? NULL : f->value,
                        form == 2 ? f->packed : NULL };
    if (form == 0) pli_nearest_dense(&c, ROWS, f->x, f->d, scratch, &out);
    else pli_nearest_csr(&c, &x, (pli_rows){ NULL, 0, ROWS }, scratch, &out);
    free(memory);
    free(scratch);
}

static double distance(const data *f, int64_t row, int64_t centre) {
    double sum = 0;
    for (int64_t l = 0; l < f->d; l++) {
        const double gap = (double)f->x[row * f->d + l] - (double)f->centre[centre * f->d + l];
        sum += gap * gap;
    }
    return sum;
}

/* Squared distance of a row to the mean of the centres. */
static double from_mean(const data *f, int64_t row) {
    double sum = 0;
    for (int64_t l = 0; l < f->d; l++) {
        double mean = 0;
        for (int64_t j = 0; j < f->k; j++) mean += (double)f->centre[j * f->d + l] / (double)f->k;
        sum += ((double)f->x[row * f->d + l] - mean) * ((double)f->x[row * f->d + l] - mean);
    }
    return sum;
}

/* The chosen centre is the nearest but for rounding of the scores, and the distance is that of the chosen centre. */
static void check(const data *f, const answer *a, double far) {
    double *sum = room((size_t)(f->k * f->d) * sizeof(double)), *mass = room((size_t)f->k * sizeof(double));
    for (int64_t i = 0; i < ROWS; i++) {
        double least = INFINITY;
        for (int64_t j = 0; j < f->k; j++) least = fmin(least, distance(f, i, j));
        const double chosen = distance(f, i, a->nearest[i]), size = (double)f->d * (1 + far * far);
        assert_true(a->nearest[i] < f->k && chosen <= least + 4e-6 * size);
        assert_true(fabs(a->distance[i] - chosen) <= 1e-12 * size);
        assert_true(fabs(from_mean(f, i) - 2 * (double)a->score[i] - chosen) <= 4e-6 * size);
        mass[a->nearest[i]] += (double)f->weight[i];
        for (int64_t l = 0; l < f->d; l++)
            sum[a->nearest[i] * f->d + l] += (double)f->weight[i] * (double)f->x[i * f->d + l];
    }
    assert_memory_equal(mass, a->mass, (size_t)f->k * sizeof *mass);
    assert_memory_equal(sum, a->sum, (size_t)(f->k * f->d) * sizeof *sum);
    free(sum);
    free(mass);
}

static void check_same(const data *f, const answer *a, const answer *b, bool distances) {
    assert_memory_equal(a->nearest, b->nearest, sizeof a->nearest);
    assert_memory_equal(a->score, b->score, sizeof a->score);
    if (distances) assert_memory_equal(a->distance, b->distance, sizeof a->distance);
    assert_memory_equal(a->sum, b->sum, (size_t)(f->k * f->d) * sizeof *a->sum);
    assert_memory_equal(a->mass, b->mass, (size_t)f->k * sizeof *a->mass);
}

static int64_t all_kernels(const pli_nearest_kernels **out) {
    int64_t n = 0;
    out[n++] = pli_nearest_kernels_ref();
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out[n++] = pli_nearest_kernels_avx2();
    if (pli_nearest_kernels_get() != out[n - 1]) out[n++] = pli_nearest_kernels_get();
#endif
    return n;
}

/* Dense rows that are not full differ from sparse ones only in the order of a distance's sum. */
static void check_all_forms(int64_t d, int64_t k, double density, double far, bool ones) {
    const pli_nearest_kernels *kernels[4];
    const int64_t              n = all_kernels(kernels);
    data                       f;
    answer                     first, sparse, a;
    fill(&f, d, k, density, far, ones);
    begin(&first, &f);
    run(&f, 0, true, ones, kernels[0], &first);
    check(&f, &first, far);
    begin(&sparse, &f);
    run(&f, 1, false, ones, kernels[0], &sparse);
    check(&f, &sparse, far);
    for (int64_t i = 0; i < n; i++)
        for (int form = 0; form < 3; form++)
            for (int tiles = 0; tiles < 2; tiles++) {
                begin(&a, &f);
                run(&f, form, tiles, ones, kernels[i], &a);
                check_same(&f, &a, &first, form == 0 || density >= 1);
                check_same(&f, &a, &sparse, form != 0 || density >= 1);
                end(&a);
            }
    end(&first);
    end(&sparse);
    drop(&f);
}

static void test_all_forms_agree(void **state) {
    static const int64_t d[] = { 1, 3, 16, 33, 300 }, k[] = { 1, 2, 20, 33, 70, 300 };
    (void)state;
    for (size_t i = 0; i < sizeof d / sizeof *d; i++)
        for (size_t j = 0; j < sizeof k / sizeof *k; j++) {
            check_all_forms(d[i], k[j], 1, 0, false);
            check_all_forms(d[i], k[j], 0.3, 0, false);
        }
    check_all_forms(33, 20, 1, 50, false);
    check_all_forms(33, 20, 0.5, 0, true);
    check_all_forms(8, 20, 1, 0, true);
}

/* The lowest of equal centres wins, also across groups of centres, and for rows in another order. */
static void test_the_lowest_of_equals(void **state) {
    (void)state;
    data   f;
    answer a;
    fill(&f, 5, 600, 1, 0, false);
    for (int64_t j = 7; j < f.k; j++) memcpy(f.centre + j * f.d, f.centre + j % 7 * f.d, (size_t)f.d * sizeof(float));
    for (int tiles = 0; tiles < 2; tiles++) {
        begin(&a, &f);
        run(&f, 1, tiles, false, pli_nearest_kernels_get(), &a);
        for (int64_t i = 0; i < ROWS; i++) assert_true(a.nearest[i] < 7);
        end(&a);
    }
    drop(&f);
}

/* Rows in an order of their own, in two calls, get the same results as all at once. */
static void test_chosen_rows(void **state) {
    (void)state;
    data         f;
    answer       whole, part;
    pli_centres  c;
    fill(&f, 17, 40, 0.6, 0, false);
    begin(&whole, &f);
    begin(&part, &f);
    run(&f, 1, true, false, pli_nearest_kernels_get(), &whole);
    void         *memory = room(pli_centres_bytes(f.k, f.d)), *scratch = room(pli_nearest_scratch_bytes(f.k, f.d));
    const pli_csr x = { ROWS, f.start, f.col, f.value, NULL };
    for (int tiles = 0; tiles < 2; tiles++) {
        pli_centres_prepare(&c, f.k, f.d, f.centre, tiles, memory);
        for (int64_t first = 0; first < ROWS; first += 200) {
            const int64_t n = ROWS - first < 200 ? ROWS - first : 200;
            pli_assigned  out = { .nearest = part.nearest + first, .distance = part.distance + first, .mass = part.mass,
                                  .weight = f.weight };
            pli_nearest_csr(&c, &x, (pli_rows){ f.order, first, n }, scratch, &out);
        }
        for (int64_t i = 0; i < ROWS; i++) {
            assert_int_equal(part.nearest[i], whole.nearest[f.order[i]]);
            assert_true(part.distance[i] == whole.distance[f.order[i]]);
        }
    }
    double mass = 0, weight = 0;
    for (int64_t j = 0; j < f.k; j++) mass += part.mass[j];
    for (int64_t i = 0; i < ROWS; i++) weight += 2 * (double)f.weight[i];
    assert_true(fabs(mass - weight) < 1e-9);
    free(memory);
    free(scratch);
    end(&whole);
    end(&part);
    drop(&f);
}

/* Numbers so large that floats cannot tell them apart still get a place, and nothing else is written. */
static void test_numbers_at_the_end_of_floats(void **state) {
    (void)state;
    float        x[4] = { 3e38F, -3e38F, 1, 0 }, centre[6] = { 3e38F, 3e38F, -3e38F, -3e38F, 1, 0 };
    uint32_t     nearest[2] = { 9, 9 };
    void        *memory = room(pli_centres_bytes(3, 2)), *scratch = room(pli_nearest_scratch_bytes(3, 2));
    pli_centres  c;
    pli_assigned out = { .nearest = nearest };
    for (int tiles = 0; tiles < 2; tiles++) {
        pli_centres_prepare(&c, 3, 2, centre, tiles, memory);
        pli_nearest_dense(&c, 2, x, 2, scratch, &out);
        assert_true(nearest[0] < 3 && nearest[1] < 3);
    }
    free(memory);
    free(scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_forms_agree),
        cmocka_unit_test(test_the_lowest_of_equals),
        cmocka_unit_test(test_chosen_rows),
        cmocka_unit_test(test_numbers_at_the_end_of_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
