/* Kernels of factorisation: all give the same bits; a small step goes down the gradient of the objective, by finite
 * differences; sums of outer products are those of a plain loop. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tensor/factors/factors.h"

enum { USERS = 5, ITEMS = 6, WIDTH_MOST = 80, RATINGS = 40 };

typedef struct sides {
    float user[USERS * WIDTH_MOST], item[ITEMS * WIDTH_MOST], user_side[2 * USERS], item_side[2 * ITEMS];
} sides;

static const pli_factor_kernels *kernels_at(int i) {
    if (i == 0) return pli_factor_kernels_ref();
#if defined(__x86_64__)
    if (i == 1 && __builtin_cpu_supports("avx2")) return pli_factor_kernels_avx2();
    if (i == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        return pli_factor_kernels_avx512();
#endif
    return NULL;
}

static float draw(pli_random *random) { return (float)(pli_random_f64(random) - 0.5); }

static void fill(sides *s, int64_t width, int64_t rank) {
    pli_random random = pli_random_at(7, PLI_RANDOM_DATA, (uint64_t)rank, 0);
    memset(s, 0, sizeof *s);
    for (int64_t i = 0; i < USERS * width; i++) s->user[i] = i % width < rank ? draw(&random) : 0;
    for (int64_t i = 0; i < ITEMS * width; i++) s->item[i] = i % width < rank ? draw(&random) : 0;
    for (int64_t i = 0; i < 2 * USERS; i++) s->user_side[i] = i % 2 == 1 ? 1 : draw(&random);
    for (int64_t i = 0; i < 2 * ITEMS; i++) s->item_side[i] = i % 2 == 1 ? 1 : draw(&random);
}

static void draw_ratings(pli_rating *r, uint32_t *other) {
    pli_random random = pli_random_at(8, PLI_RANDOM_DATA, 0, 0);
    for (int i = 0; i < RATINGS; i++) {
        r[i] = (pli_rating){ .user = (uint32_t)pli_random_below(&random, USERS),
                             .item = (uint32_t)pli_random_below(&random, ITEMS - 1),
                             .value = 3 + draw(&random), .weight = 1 + draw(&random) };
        other[i] = ITEMS - 1;
    }
}

static pli_factor_step step_of(sides *s, int64_t width, int64_t rank, float rate) {
    return (pli_factor_step){ .user = { s->user, s->user_side }, .item = { s->item, s->item_side }, .width = width,
                              .rank = (int32_t)rank, .mean = 3, .rate = rate, .l2 = 0.1F };
}

static void all_kernels_give_the_same_bits(void **state) {
    static const int64_t ranks[] = { 1, 16, 17, 33, 64, 70 };
    pli_rating r[RATINGS];
    uint32_t   other[RATINGS];
    (void)state;
    draw_ratings(r, other);
    for (size_t k = 0; k < sizeof ranks / sizeof *ranks; k++) {
        const int64_t width = (ranks[k] + PLI_FACTOR_LANES - 1) / PLI_FACTOR_LANES * PLI_FACTOR_LANES;
        sides         wanted;
        double        loss[2] = { 0 };
        for (int i = 0; i < 3; i++) {
            const pli_factor_kernels *kernels = kernels_at(i);
            sides                     s;
            if (kernels == NULL) continue;
            fill(&s, width, ranks[k]);
            const pli_factor_step step = step_of(&s, width, ranks[k], 0.1F);
            const double squared = kernels->squared(&step, RATINGS, r), ranked = kernels->ranked(&step, RATINGS, r,
                                                                                                  other);
            assert_true(isfinite(squared) && isfinite(ranked) && squared > 0 && ranked > 0);
            if (i == 0) {
                wanted = s;
                loss[0] = squared;
                loss[1] = ranked;
            }
            assert_memory_equal(&s, &wanted, sizeof s);
            assert_true(loss[0] == squared && loss[1] == ranked);
            for (int64_t at = 0; at < USERS * width; at++) assert_true(at % width < ranks[k] || s.user[at] == 0);
        }
    }
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

enum { RANK = 3, WIDTH = 16 };

static double squares(const float *row, float bias) {
    double sum = (double)bias * (double)bias;
    for (int k = 0; k < RANK; k++) sum += (double)row[k] * (double)row[k];
    return sum;
}

/* The objective of one rating of user 0 and item 0, against item 1 if it is ranked. */
static double objective(const sides *s, const pli_rating *r, double l2, bool ranked) {
    double score = (double)s->item_side[0] - (ranked ? (double)s->item_side[2] : 0);
    double penalty = squares(s->user, ranked ? 0 : s->user_side[0]) + squares(s->item, s->item_side[0]);
    for (int k = 0; k < RANK; k++)
        score += (double)s->user[k] * ((double)s->item[k] - (ranked ? (double)s->item[WIDTH + k] : 0));
    if (ranked) penalty += squares(s->item + WIDTH, s->item_side[2]);
    const double off = (double)r->value - 3 - (double)s->user_side[0] - score;
    return (double)r->weight * ((ranked ? log1p(exp(-score)) : off * off / 2) + l2 / 2 * penalty);
}

static void check_step(bool ranked) {
    const float  rate = 1e-3F, tiny = 1e-2F;
    sides        s, moved;
    pli_rating   r = { 0, 0, 4.2F, 1.5F };
    const uint32_t other = 1;
    fill(&s, WIDTH, RANK);
    moved = s;
    const pli_factor_step step = step_of(&moved, WIDTH, RANK, rate);
    if (ranked) (void)pli_factor_kernels_get()->ranked(&step, 1, &r, &other);
    else (void)pli_factor_kernels_get()->squared(&step, 1, &r);
    float *at[] = { &s.user[0], &s.user[2], &s.item[1], &s.item_side[0], &s.user_side[0], &s.item[WIDTH + 1],
                    &s.item_side[2] };
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        const float before = *at[i], after = *(float *)(void *)((char *)&moved + ((char *)at[i] - (char *)&s));
        *at[i] = before + tiny;
        const double up = objective(&s, &r, (double)step.l2, ranked);
        *at[i] = before - tiny;
        const double down = objective(&s, &r, (double)step.l2, ranked), slope = (up - down) / (2 * (double)tiny);
        *at[i] = before;
        if (ranked && at[i] == &s.user_side[0]) assert_true(before == after); /* a user's bias ranks nothing */
        else assert_true(fabs(((double)before - (double)after) / (double)rate - slope) < 2e-3 * (1 + fabs(slope)));
    }
}

static void a_step_goes_down_the_gradient(void **state) {
    (void)state;
    check_step(false);
    check_step(true);
}

static void outer_products_add_up(void **state) {
    enum { D = 24, N = 11 };
    double     x[N * D], weight[N], value[N], a[D * D], b[D], first[D * D];
    pli_random random = pli_random_at(9, PLI_RANDOM_DATA, 0, 0);
    (void)state;
    for (int i = 0; i < N * D; i++) x[i] = pli_random_f64(&random) - 0.5;
    for (int i = 0; i < N; i++) weight[i] = pli_random_f64(&random), value[i] = pli_random_f64(&random);
    for (int k = 0; k < 3; k++) {
        if (kernels_at(k) == NULL) continue;
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        kernels_at(k)->outer(D, N, x, weight, value, a, b);
        for (int i = 0; i < D; i++) {
            double right = 0;
            for (int n = 0; n < N; n++) right += value[n] * x[n * D + i];
            assert_true(fabs(right - b[i]) < 1e-12);
            for (int j = i; j < D; j++) {
                double sum = 0;
                for (int n = 0; n < N; n++) sum += weight[n] * x[n * D + i] * x[n * D + j];
                assert_true(fabs(sum - a[i * D + j]) < 1e-12);
                assert_true(k == 0 || a[i * D + j] == first[i * D + j]);
            }
        }
        if (k == 0) memcpy(first, a, sizeof a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(all_kernels_give_the_same_bits),
                                        cmocka_unit_test(a_step_goes_down_the_gradient),
                                        cmocka_unit_test(outer_products_add_up) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
