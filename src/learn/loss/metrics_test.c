/* Tests the area under the ROC curve against a count of all pairs. */
#include "learn/loss/metrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"

/* cmocka would compare as float. */
#define assert_near(a, b, by) assert_true(fabs((a) - (b)) <= (by))

enum { N = 300 };

static double all_pairs(const double *score, const uint8_t *positive, const float *weight, int n) {
    double right = 0, all = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            if (!positive[i] || positive[j]) continue;
            double w = (double)weight[i] * (double)weight[j];
            all += w;
            right += score[i] > score[j] ? w : score[i] == score[j] ? w / 2 : 0;
        }
    return right / all;
}

static void test_auc_is_share_of_pairs(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        pli_random r = pli_random_at(seed, PLI_RANDOM_DATA, 0, 0);
        double     score[N], auc;
        uint8_t    positive[N];
        float      weight[N];
        for (int i = 0; i < N; i++) {
            positive[i] = pli_random_below(&r, 3) == 0;
            score[i] = seed % 2 ? pli_random_normal(&r) + positive[i]
                                : (double)pli_random_below(&r, 7) - 3 + positive[i]; /* ties */
            weight[i] = seed % 3 ? 1.0F : (float)pli_random_f64(&r);
        }
        if (seed == 4) score[0] = -0.0, score[1] = 0.0;
        assert_int_equal(pli_auc(N, score, positive, weight, &auc, NULL), PLAIT_OK);
        assert_near(auc, all_pairs(score, positive, weight, N), 1e-12);
    }
}

static void test_auc_of_one_side_is_nan(void **state) {
    (void)state;
    double auc = 0;
    assert_int_equal(pli_auc(2, (double[]){ 1, 2 }, (uint8_t[]){ 1, 1 }, NULL, &auc, NULL), PLAIT_OK);
    assert_true(isnan(auc));
    assert_int_equal(pli_auc(0, NULL, NULL, NULL, &auc, NULL), PLAIT_OK);
    assert_true(isnan(auc));
}

static void test_auc_without_memory(void **state) {
    (void)state;
    double score[3] = { 1, 2, 3 }, auc;
    for (int64_t k = 0;; k++) {
        int64_t live = pli_alloc_live();
        pli_alloc_fail_after(k);
        plait_status status = pli_auc(3, score, (uint8_t[]){ 0, 1, 0 }, NULL, &auc, NULL);
        pli_alloc_fail_after(-1);
        assert_int_equal(pli_alloc_live(), live);
        if (status == PLAIT_OK) break;
        assert_int_equal(status, PLAIT_ENOMEM);
    }
    assert_near(auc, 0.5, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_auc_is_share_of_pairs),
                                        cmocka_unit_test(test_auc_of_one_side_is_nan),
                                        cmocka_unit_test(test_auc_without_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
