/* The operating system: figures that make sense, sleeping and waking. Files and modules have tests of their own. */
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
#include <sys/resource.h>
#include <unistd.h>

#include "base/os.h"

static void test_clocks(void **state) {
    (void)state;
    uint64_t wall = pli_now_ns(), cpu = pli_cpu_ns();
    while (pli_cpu_ns() - cpu < 40000000) {}
    assert_true(pli_now_ns() - wall >= 20000000); /* one thread: CPU time passes no faster than the clock; half of it
                                                   * is allowed for rounding, by a few ms on some machines */
}

static void test_figures(void **state) {
    (void)state;
    char name[256] = "";
    pli_host_name(name);
    assert_true(name[0] != '\0');
    assert_int_equal(pli_pid(), getpid());
    assert_in_range(pli_cores(), 1, sysconf(_SC_NPROCESSORS_CONF));
    assert_true(pli_memory_bytes() > 1 << 20);
    assert_true(pli_peak_rss_bytes() > 1 << 16);
}

/* The peak is the process's own, not its parent's at the fork. */
static void test_peak_follows_use(void **state) {
    (void)state;
    static char big[32 << 20];
    int64_t     before = pli_peak_rss_bytes();
    memset(big, 1, sizeof big);
    assert_true(pli_peak_rss_bytes() >= before + (16 << 20));
}

static void test_futex_answers_at_once_or_after_timeout(void **state) {
    (void)state;
    _Atomic uint32_t word = 1;
    uint64_t         begin = pli_now_ns();
    pli_futex_wait(&word, 0, UINT64_MAX);                                     /* the word is not 0: no sleep */
    while (pli_now_ns() - begin < 2000000) pli_futex_wait(&word, 1, 1000000); /* may return early */
    pli_futex_wake(&word, INT32_MAX);
}

static void *ping(void *user) {
    _Atomic uint32_t *word = user;
    for (uint32_t turn = 0; turn < 1000; turn += 2) {
        /* Acquire and release pair with those of the other side. */
        while (atomic_load_explicit(word, memory_order_acquire) != turn + 1) pli_futex_wait(word, turn, UINT64_MAX);
        atomic_store_explicit(word, turn + 2, memory_order_release);
        pli_futex_wake(word, 1);
    }
    return NULL;
}

static void test_futex_ping_pong(void **state) {
    (void)state;
    _Atomic uint32_t word = 0;
    pthread_t        other;
    assert_int_equal(pthread_create(&other, NULL, ping, &word), 0);
    for (uint32_t turn = 0; turn < 1000; turn += 2) {
        atomic_store_explicit(&word, turn + 1, memory_order_release);
        pli_futex_wake(&word, 1);
        while (atomic_load_explicit(&word, memory_order_acquire) != turn + 2)
            pli_futex_wait(&word, turn + 1, UINT64_MAX);
    }
    pthread_join(other, NULL);
    assert_int_equal(word, 1000);
}

static void test_terminal(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_false(pli_is_terminal(ends[0]));
    unsetenv("COLUMNS");
    assert_int_equal(pli_terminal_columns(ends[0]), 80);
    setenv("COLUMNS", "61", 1);
    assert_int_equal(pli_terminal_columns(ends[0]), 61);
    setenv("COLUMNS", "none", 1);
    assert_int_equal(pli_terminal_columns(ends[0]), 80);
    unsetenv("COLUMNS");
    close(ends[0]);
    close(ends[1]);
}

static void test_a_stop_is_repeated_after_a_second(void **state) {
    (void)state;
    const uint64_t second = UINT64_C(1000000000), first = 5 * second;
    assert_false(pli_stop_is_repeated(first, first));
    assert_false(pli_stop_is_repeated(first, first + second - 1));
    assert_true(pli_stop_is_repeated(first, first + second));
    assert_false(pli_stop_is_repeated(first, first - 1)); /* a handler may have read the clock earlier */
}

static void test_address_space_left_is_below_its_limit(void **state) {
    (void)state;
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    if (before.rlim_cur != RLIM_INFINITY) skip();
    assert_true(pli_address_space_left() == INT64_MAX);
    limit = (struct rlimit){ .rlim_cur = (rlim_t)1 << 46, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    const int64_t left = pli_address_space_left();
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_true(left > 0 && left < (int64_t)1 << 46);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stop_is_repeated_after_a_second),
        cmocka_unit_test(test_address_space_left_is_below_its_limit),
        cmocka_unit_test(test_clocks),           cmocka_unit_test(test_figures),
        cmocka_unit_test(test_peak_follows_use), cmocka_unit_test(test_futex_answers_at_once_or_after_timeout),
        cmocka_unit_test(test_futex_ping_pong),  cmocka_unit_test(test_terminal),
    };
    return cmocka_run_group_tests_name("base.os", tests, NULL, NULL);
}
