/* Errors and log lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"

static void test_fail_fills_and_returns(void **state) {
    (void)state;
    plait_error err = { .rank = 5 };
    assert_int_equal(pli_fail(&err, PLAIT_EINVAL, "row %d\nof %s", 3, "t"), PLAIT_EINVAL);
    assert_int_equal(err.code, PLAIT_EINVAL);
    assert_int_equal(err.rank, -1);
    assert_string_equal(err.text, "row 3 of t"); /* one line */
    assert_int_equal(pli_fail(NULL, PLAIT_EPEER, "x"), PLAIT_EPEER);
}

static void test_errno_chooses_the_code(void **state) {
    (void)state;
    plait_error err;
    assert_int_equal(pli_fail_errno(&err, ENOSPC, "f"), PLAIT_ENOSPACE);
    assert_string_equal(err.text, "f: No space left on device");
    assert_int_equal(pli_fail_errno(&err, EDQUOT, "f"), PLAIT_ENOSPACE);
    assert_int_equal(pli_fail_errno(&err, ENOMEM, "f"), PLAIT_ENOMEM);
    assert_int_equal(pli_fail_errno(&err, EACCES, "f"), PLAIT_EIO);
    assert_int_equal(pli_fail_errno(NULL, ENOSPC, "f"), PLAIT_ENOSPACE);
}

static void test_prefix_and_own_text_as_argument(void **state) {
    (void)state;
    plait_error err;
    pli_fail(&err, PLAIT_EFORMAT, "bad byte");
    assert_int_equal(pli_fail_at(&err, "%s:%d", "a.txt", 7), PLAIT_EFORMAT);
    assert_string_equal(err.text, "a.txt:7: bad byte");
    pli_fail(&err, PLAIT_EIO, "again: %s", err.text);
    assert_string_equal(err.text, "again: a.txt:7: bad byte");
}

static void test_long_texts_are_cut(void **state) {
    (void)state;
    plait_error err;
    char       *letters = malloc(3000);
    memset(letters, 'x', 2999);
    letters[2999] = '\0';
    pli_fail(&err, PLAIT_EIO, "%s", letters);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    pli_fail_at(&err, "%s", letters);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    free(letters);
}

static void test_status_texts(void **state) {
    (void)state;
    assert_string_equal(plait_status_text(PLAIT_OK), "success");
    assert_string_equal(plait_status_text(PLAIT_EDIVERGED), "the computation left the finite numbers");
    assert_string_equal(plait_status_text((plait_status)-999), "unknown status");
    assert_non_null(plait_version());
}

static void test_unknown_names(void **state) {
    (void)state;
    const char *const names[] = { "local", "allreduce", "ps" };
    plait_error       err;
    assert_int_equal(pli_fail_unknown(&err, "topology", "alreduce", names, 3), PLAIT_ENAME);
    assert_string_equal(err.text, "unknown topology 'alreduce'; did you mean 'allreduce'? known: local, allreduce, ps");
    assert_int_equal(pli_fail_unknown(&err, "topology", "star", names, 3), PLAIT_ENAME);
    assert_string_equal(err.text, "unknown topology 'star'; known: local, allreduce, ps");
    assert_int_equal(pli_fail_unknown(NULL, "topology", "star", names, 0), PLAIT_ENAME);
    const char *const kinds[] = { "zstd", "topk:F" };
    assert_int_equal(pli_fail_unknown(&err, "filter", "tpk", kinds, 2), PLAIT_ENAME);
    assert_string_equal(err.text, "unknown filter 'tpk'; did you mean 'topk:F'? known: zstd, topk:F");
    assert_int_equal(pli_fail_unknown(&err, "filter", "tpk:0.125", kinds, 2), PLAIT_ENAME);
    assert_string_equal(err.text, "unknown filter 'tpk:0.125'; did you mean 'topk:F'? known: zstd, topk:F");
    const char *many[40];
    for (int i = 0; i < 40; i++) many[i] = "a-name-of-some-length-that-is-cut-in-the-list";
    assert_int_equal(pli_fail_unknown(&err, "name", "x", many, 40), PLAIT_ENAME);
    assert_true(strlen(err.text) < sizeof err.text - 1);
}

struct heard {
    int  lines;
    char text[2000];
};

static void hear(void *user, plait_log_level level, int32_t rank, const char *room, const char *text) {
    struct heard *heard = user;
    heard->lines++;
    snprintf(heard->text, sizeof heard->text, "%d %d %s %s", (int)level, rank, room, text);
}

static void test_log_levels(void **state) {
    (void)state;
    struct heard heard = { 0 };
    plait_log    log = { .fn = hear, .user = &heard, .max_level = PLAIT_LOG_INFO };
    pli_log(NULL, PLAIT_LOG_ERROR, 0, "base", "to nobody");
    pli_log(&log, PLAIT_LOG_DEBUG, 0, "base", "too loud");
    assert_int_equal(heard.lines, 0);
    pli_log(&log, PLAIT_LOG_INFO, 3, "comm", "peer %d joined", 4);
    assert_int_equal(heard.lines, 1);
    assert_string_equal(heard.text, "3 3 comm peer 4 joined");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_fills_and_returns),
        cmocka_unit_test(test_errno_chooses_the_code),
        cmocka_unit_test(test_prefix_and_own_text_as_argument),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_status_texts),
        cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_log_levels),
    };
    return cmocka_run_group_tests_name("base.error", tests, NULL, NULL);
}
