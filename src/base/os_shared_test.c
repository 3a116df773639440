/* Memory that processes share: another process sees what is written, and a wrong ticket gets nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/os.h"

enum { BYTES = 1 << 16, TURNS = 200 };

/* The other process: it answers each turn. 0: all turns went well. */
static int answer(const pli_shared_ticket *ticket) {
    _Atomic uint32_t *word = pli_shared_join(ticket);
    if (word == NULL) return 1;
    for (uint32_t turn = 0; turn < TURNS; turn += 2) {
        /* Acquire and release pair with those of the other side. */
        while (atomic_load_explicit(word, memory_order_acquire) != turn + 1)
            pli_futex_wait_shared(word, turn, UINT64_MAX);
        atomic_store_explicit(word, turn + 2, memory_order_release);
        pli_futex_wake_shared(word, 1);
    }
    pli_shared_leave(word, ticket->bytes);
    return 0;
}

static void test_two_processes(void **state) {
    (void)state;
    pli_shared_ticket ticket;
    _Atomic uint32_t *word = pli_shared_make(BYTES, &ticket);
    assert_non_null(word);
    for (size_t i = 0; i < BYTES / sizeof *word; i++) assert_int_equal(word[i], 0);
    const pid_t child = fork();
    if (child == 0) _exit(answer(&ticket));
    for (uint32_t turn = 0; turn < TURNS; turn += 2) {
        atomic_store_explicit(word, turn + 1, memory_order_release);
        pli_futex_wake_shared(word, 1);
        while (atomic_load_explicit(word, memory_order_acquire) != turn + 2)
            pli_futex_wait_shared(word, turn + 1, UINT64_MAX);
    }
    assert_int_equal(pli_child_reap((int32_t)child), 0);
    pli_shared_settle(&ticket);
    assert_null(pli_shared_join(&ticket)); /* nobody can join any more, and the memory stays */
    assert_int_equal(word[0], TURNS);
    pli_shared_leave(word, BYTES);
}

static void test_wrong_tickets(void **state) {
    (void)state;
    pli_shared_ticket ticket, wrong;
    void             *memory = pli_shared_make(BYTES, &ticket);
    assert_non_null(memory);
    wrong = ticket;
    wrong.inode++;
    assert_null(pli_shared_join(&wrong));
    wrong = ticket;
    wrong.bytes++;
    assert_null(pli_shared_join(&wrong));
    wrong = ticket;
    wrong.fd = STDIN_FILENO;
    assert_null(pli_shared_join(&wrong));
    pli_shared_settle(&ticket);
    pli_shared_leave(memory, BYTES);
    pli_shared_leave(NULL, BYTES);
}

static void test_no_memory_to_share(void **state) {
    (void)state;
    struct rlimit     before, none;
    pli_shared_ticket ticket;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){ .rlim_cur = 4096, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    void *memory = pli_shared_make(BYTES, &ticket);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_null(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_processes),
        cmocka_unit_test(test_wrong_tickets),
        cmocka_unit_test(test_no_memory_to_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
