/* The link between ranks and launch: lines arrive whole and in order, and an end without a bye is a death. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/dashboard/host.h"
#include "cli/dashboard/link.h"

/* Waits until the count has reached n; the hub's thread changes it. */
static void await(pli_dash *d, const int64_t *count, int64_t n) {
    for (int64_t now = -1; now < n;) {
        pthread_mutex_lock(&d->mutex);
        now = *count;
        pthread_mutex_unlock(&d->mutex);
        usleep(100);
    }
    assert_true(*count == n);
}

static int join(int32_t rank) {
    char      line[160];
    const int fd = pli_dash_link_open();
    assert_true(fd >= 0);
    snprintf(line, sizeof line,
             "{\"event\": \"start\", \"rank\": %d, \"host\": \"h\", \"pid\": %d, \"role\": \"worker\"}", rank,
             (int)pli_pid());
    pli_dash_link_send(fd, line, strlen(line));
    return fd;
}

static void test_ranks_come_and_go(void **state) {
    static const char bye[] = "{\"event\": \"bye\", \"rank\": 1}";
    static const char point[] = "{\"event\": \"checkpoint\", \"clock\": 5, \"folder\": \"f\", \"bytes\": 1, "
                                "\"seconds\": 1}";
    pli_dash          d;
    pli_dash_hub     *hub = NULL;
    plait_error       err;
    (void)state;
    assert_int_equal(pli_dash_link_open(), -1); /* no launch has a dashboard */
    pli_dash_link_send(-1, "x", 1);
    pli_dash_init(&d);
    assert_int_equal(pli_dash_hub_open(&d, &hub, &err), PLAIT_OK);
    const int first = join(0), second = join(1);
    await(&d, &d.joins, 2);
    for (int i = 0; i < 50; i++) pli_dash_link_send(first, point, strlen(point));
    await(&d, &d.checkpoints, 50);
    assert_null(pli_dash_hub_ask(hub)); /* this process is no train */
    pli_dash_link_send(second, bye, strlen(bye));
    close(second);
    close(first);
    await(&d, &d.deaths, 1);
    assert_true(!d.member[0].up && !d.member[1].up);
    const int third = join(0); /* another life */
    await(&d, &d.joins, 3);
    pli_dash_hub_close(&hub);
    close(third);
    assert_int_equal(pli_dash_link_open(), -1);
    assert_true(d.deaths == 1);
    pli_dash_free(&d);
}

/* A name that is too long, or of nobody, is no link. */
static void test_no_link(void **state) {
    char name[200];
    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    setenv(pli_dash_variable, name, 1);
    assert_int_equal(pli_dash_link_open(), -1);
    setenv(pli_dash_variable, "plait-dashboard-of-nobody", 1);
    assert_int_equal(pli_dash_link_open(), -1);
    unsetenv(pli_dash_variable);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_ranks_come_and_go), cmocka_unit_test(test_no_link) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
