/* Sums and counts of rows by group: they equal those of plain loops, to the bit, for rows of all forms; groups below
 * 0; values that are no counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tensor/groups.h"
#include "tensor/kernels.h"

#include <cmocka.h>

enum { ROWS = 60, D = 37, GROUPS = 5, ENTRIES = ROWS * D };

typedef struct data {
    int64_t       start[ROWS + 1];
    uint32_t      col[ENTRIES], order[ROWS];
    unsigned char packed[3 * ENTRIES + 1];
    float         value[ENTRIES], dense[ROWS * D], weight[ROWS];
    int32_t       group[ROWS];
} data;

/* Rows 0, 10, ... are full. ones: all values are 1; whole: values are whole numbers. */
static void fill(data *f, bool ones, bool whole) {
    pli_random r = pli_random_at(9, PLI_RANDOM_DATA, 0, 0);
    memset(f, 0, sizeof *f);
    for (int64_t i = 0, n = 0; i < ROWS; i++) {
        f->group[i] = (int32_t)pli_random_below(&r, GROUPS + 1) - 1;
        f->weight[i] = (float)pli_random_f64(&r);
        for (int64_t l = 0; l < D; l++) {
            if (i % 10 != 0 && pli_random_below(&r, 3) != 0) continue;
            const float v = ones ? 1 : whole ? (float)pli_random_below(&r, 9) : (float)pli_random_normal(&r);
            f->dense[i * D + l] = f->value[n] = v;
            for (int b = 0; b < 3; b++) f->packed[3 * n + b] = (unsigned char)(l >> 8 * b);
            f->col[n++] = (uint32_t)l;
        }
        f->start[i + 1] = n;
    }
    pli_random_permutation(&r, ROWS, f->order);
}

static pli_csr csr(const data *f, bool packed, bool ones) {
    return (pli_csr){ ROWS, f->start, packed ? NULL : f->col, ones ? NULL : f->value, packed ? f->packed : NULL };
}

typedef struct sums {
    double sum[GROUPS * D], square[GROUPS * D], mass[GROUPS];
} sums;

static void plain_sums(const data *f, pli_rows rows, bool weighted, sums *s) {
    memset(s, 0, sizeof *s);
    for (int64_t i = 0; i < rows.n; i++) {
        const int64_t r = pli_row_at(rows, i), g = f->group[i];
        const double  w = weighted ? (double)f->weight[r] : 1;
        if (g < 0) continue;
        s->mass[g] += w;
        for (int64_t l = 0; l < D; l++) {
            const double v = (double)f->dense[r * D + l];
            s->sum[g * D + l] += w * v;
            s->square[g * D + l] += w * (v * v);
        }
    }
}

static void check_sums(const data *f, bool ones) {
    const pli_rows chosen[] = { { NULL, 0, ROWS }, { NULL, 7, 30 }, { f->order, 0, ROWS }, { f->order, 5, 11 } };
    sums           want, got;
    for (int c = 0; c < 4; c++)
        for (int form = 0; form < 4; form++) {
            const pli_csr        x = csr(f, form & 1, ones);
            const pli_group_sums out = { got.sum, got.square, got.mass };
            plain_sums(f, chosen[c], form & 2, &want);
            memset(&got, 0, sizeof got);
            pli_group_sums_csr(&x, chosen[c], D, f->group, form & 2 ? f->weight : NULL, &out);
            assert_memory_equal(&want, &got, sizeof want);
        }
    const pli_group_sums dense = { got.sum, got.square, got.mass }, mass = { NULL, NULL, want.mass };
    plain_sums(f, chosen[0], true, &want);
    memset(&got, 0, sizeof got);
    pli_group_sums_dense(ROWS, D, f->dense, D, f->group, f->weight, &dense);
    assert_memory_equal(&want, &got, sizeof want);
    memset(want.mass, 0, sizeof want.mass);
    pli_group_sums_dense(ROWS, D, f->dense, D, f->group, f->weight, &mass);
    assert_memory_equal(want.mass, got.mass, sizeof got.mass);
}

static void test_sums(void **state) {
    (void)state;
    data f;
    fill(&f, false, false);
    check_sums(&f, false);
    fill(&f, true, false);
    check_sums(&f, true);
}

static void check_counts(const data *f, bool ones) {
    const pli_rows chosen[] = { { NULL, 0, ROWS }, { f->order, 5, 40 } };
    for (int c = 0; c < 2; c++)
        for (int packed = 0; packed < 2; packed++) {
            const pli_csr x = csr(f, packed, ones);
            int64_t       want[2][GROUPS * D] = { { 0 } }, got[2][GROUPS * D] = { { 0 } };
            for (int64_t i = 0; i < chosen[c].n; i++)
                for (int64_t l = 0, r = pli_row_at(chosen[c], i); f->group[i] >= 0 && l < D; l++) {
                    want[0][f->group[i] * D + l] += (int64_t)f->dense[r * D + l];
                    want[1][f->group[i] * D + l] += f->dense[r * D + l] != 0;
                }
            assert_int_equal(pli_group_counts(&x, chosen[c], D, f->group, got[0]), chosen[c].n);
            pli_group_presences(&x, chosen[c], D, f->group, got[1]);
            assert_memory_equal(want, got, sizeof want);
        }
}

static void test_counts(void **state) {
    (void)state;
    data f;
    fill(&f, false, true);
    check_counts(&f, false);
    fill(&f, true, true);
    check_counts(&f, true);
}

/* Beyond 2^24 a float would no longer count by ones. */
static void test_counts_are_exact(void **state) {
    (void)state;
    const int64_t  start[3] = { 0, 1, 2 };
    const uint32_t col[2] = { 0, 0 };
    const float    value[2] = { 16777216, 1 };
    const int32_t  group[2] = { 0, 0 };
    const pli_csr  x = { 2, start, col, value, NULL };
    int64_t        count = 0;
    assert_int_equal(pli_group_counts(&x, (pli_rows){ NULL, 0, 2 }, 1, group, &count), 2);
    assert_true(count == 16777217);
}

/* A row with such a value adds nothing, nor do the rows behind it. */
static void test_no_counts(void **state) {
    (void)state;
    static const float bad[] = { 0.5F, -1, 0x1p31F, 3e38F };
    const int64_t      start[4] = { 0, 1, 3, 4 };
    const uint32_t     col[4] = { 0, 0, 1, 0 };
    const int32_t      group[3] = { 0, 0, 0 }, none[3] = { 0, -1, 0 };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        const float   value[4] = { 2, 3, bad[k], 5 };
        const pli_csr x = { 3, start, col, value, NULL };
        int64_t       count[2] = { 0, 0 };
        assert_int_equal(pli_group_counts(&x, (pli_rows){ NULL, 0, 3 }, 2, group, count), 1);
        assert_true(count[0] == 2 && count[1] == 0);
        assert_int_equal(pli_group_counts(&x, (pli_rows){ NULL, 0, 3 }, 2, none, count), 3);
        assert_true(count[0] == 9 && count[1] == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_counts_are_exact),
        cmocka_unit_test(test_no_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
