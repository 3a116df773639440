/* The thread pool: every item once, scratch numbers never shared, several callers, nested calls, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/os.h"
#include "base/pool.h"

enum { ITEMS = 1000, MOST = 8 };

struct work {
    int64_t      count[ITEMS];  /* one writer for each item: a lost or doubled item, or a lost join, shows here */
    int64_t      scratch[MOST]; /* one writer for each thread: TSan sees two items with the same number at once */
    pli_pool    *pool;
    _Atomic int  others; /* items that the caller did not run */
    _Atomic int  astray; /* nested loops that left their thread */
    struct work *inner;
};

static void count_item(void *user, int64_t i, int32_t thread) {
    struct work *work = user;
    work->count[i]++;
    work->scratch[thread]++;
    if (thread != 0) atomic_fetch_add_explicit(&work->others, 1, memory_order_relaxed);
}

static void check_work(const struct work *work, int64_t n, int64_t rounds) {
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) assert_int_equal(work->count[i], rounds);
    for (int t = 0; t < MOST; t++) total += work->scratch[t];
    assert_int_equal(total, n * rounds);
}

static void test_every_item_once(void **state) {
    (void)state;
    static const int64_t sizes[] = { 0, 1, 2, 3, 7, 64, ITEMS };
    for (int32_t threads = 1; threads <= MOST; threads++) {
        pli_pool *pool = NULL;
        assert_int_equal(pli_pool_create(threads, &pool, NULL), PLAIT_OK);
        assert_int_equal(pli_pool_threads(pool), threads);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            struct work work = { .pool = pool };
            for (int round = 0; round < 100; round++) pli_pool_for(pool, sizes[s], count_item, &work);
            check_work(&work, sizes[s], 100);
        }
        pli_pool_destroy(&pool);
        assert_null(pool);
        pli_pool_destroy(&pool);
    }
}

static void test_no_pool_is_serial(void **state) {
    (void)state;
    struct work work = { 0 };
    assert_int_equal(pli_pool_threads(NULL), 1);
    pli_pool_for(NULL, ITEMS, count_item, &work);
    check_work(&work, ITEMS, 1);
    assert_int_equal(work.others, 0);
}

/* The first item waits until another thread has come in. One must come, also after all have gone to sleep. */
static void wait_for_others(void *user, int64_t i, int32_t thread) {
    struct work *work = user;
    count_item(user, i, thread);
    if (thread != 0) return;
    uint64_t until = pli_now_ns() + UINT64_C(20000000000);
    while (atomic_load_explicit(&work->others, memory_order_relaxed) == 0 && pli_now_ns() < until) {}
}

static void test_sleepers_are_woken(void **state) {
    (void)state;
    pli_pool *pool = NULL;
    assert_int_equal(pli_pool_create(2, &pool, NULL), PLAIT_OK);
    for (int round = 0; round < 50; round++) {
        struct work work = { .pool = pool };
        uint64_t    idle = pli_now_ns() + (round % 5 == 0 ? 1000000 : 4500);
        while (pli_now_ns() < idle) {}
        pli_pool_for(pool, 2, wait_for_others, &work);
        assert_in_range(work.others, 1, 2); /* 2: the other thread was awake and faster than the caller */
        check_work(&work, 2, 1);
    }
    pli_pool_destroy(&pool);
}

static void nest(void *user, int64_t i, int32_t thread) {
    struct work *work = user;
    struct work *inner = &work->inner[i];
    wait_for_others(work, i, thread); /* so that the nested call is also seen on a thread whose number is not 0 */
    pli_pool_for(work->pool, ITEMS, count_item, inner);
    if (inner->scratch[thread] != ITEMS) atomic_fetch_add(&work->astray, 1);
}

static void test_nested_calls_are_serial(void **state) {
    (void)state;
    enum { OUTER = 16 };
    struct work *work = calloc(OUTER + 1, sizeof *work);
    work->inner = work + 1;
    assert_int_equal(pli_pool_create(4, &work->pool, NULL), PLAIT_OK);
    pli_pool_for(work->pool, OUTER, nest, work);
    check_work(work, OUTER, 1);
    assert_int_equal(work->astray, 0); /* nested loops ran serially and kept the thread's number */
    assert_true(work->others > 0);
    for (int i = 0; i < OUTER; i++) check_work(&work->inner[i], ITEMS, 1);
    pli_pool_for(work->pool, ITEMS, count_item, &work->inner[0]); /* and afterwards parallel again */
    check_work(&work->inner[0], ITEMS, 2);
    pli_pool_destroy(&work->pool);
    free(work);
}

static void *call_often(void *user) {
    struct work *work = user;
    for (int round = 0; round < 200; round++) pli_pool_for(work->pool, ITEMS / 10, count_item, work);
    return NULL;
}

/* More callers than slots: all loops give the right result, and no caller waits for another. */
static void test_many_callers(void **state) {
    (void)state;
    enum { CALLERS = 20 };
    pli_pool    *pool = NULL;
    pthread_t    thread[CALLERS];
    struct work *work = calloc(CALLERS, sizeof *work);
    assert_int_equal(pli_pool_create(3, &pool, NULL), PLAIT_OK);
    for (int c = 0; c < CALLERS; c++) {
        work[c].pool = pool;
        assert_int_equal(pthread_create(&thread[c], NULL, call_often, &work[c]), 0);
    }
    for (int c = 0; c < CALLERS; c++) pthread_join(thread[c], NULL);
    for (int c = 0; c < CALLERS; c++) check_work(&work[c], ITEMS / 10, 200);
    pli_pool_destroy(&pool);
    free(work);
}

static void test_refused_and_out_of_memory(void **state) {
    (void)state;
    pli_pool   *pool = NULL;
    plait_error err;
    int64_t     before = pli_alloc_live();
    assert_int_equal(pli_pool_create(0, &pool, &err), PLAIT_EINVAL);
    for (int64_t k = 0;; k++) {
        pli_alloc_fail_after(k);
        plait_status status = pli_pool_create(3, &pool, &err);
        pli_alloc_fail_after(-1);
        if (status == PLAIT_OK) break;
        assert_int_equal(status, PLAIT_ENOMEM);
        assert_true(pool == NULL && pli_alloc_live() == before);
    }
    pli_pool_destroy(&pool);
    assert_int_equal(pli_alloc_live(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_item_once),    cmocka_unit_test(test_no_pool_is_serial),
        cmocka_unit_test(test_sleepers_are_woken), cmocka_unit_test(test_nested_calls_are_serial),
        cmocka_unit_test(test_many_callers),       cmocka_unit_test(test_refused_and_out_of_memory),
    };
    return cmocka_run_group_tests_name("base.pool", tests, NULL, NULL);
}
