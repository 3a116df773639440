/* Histograms of weights as far apart as doubles can be; two event files of the same second do not overwrite each
 * other. */
#include <dirent.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch/board/board.h"

static void check(const double *values, int64_t n, int64_t finite) {
    const plait_weights w = { .table = "w", .type = PLAIT_F64, .n = n, .values = values };
    double              limit[PLI_BOARD_BUCKETS], count[PLI_BOARD_BUCKETS], sum = 0;
    pli_board_histogram h;
    assert_true(pli_board_measure(&w, &h, limit, count));
    assert_int_equal(h.n, finite);
    for (int32_t b = 0; b < h.buckets; b++) {
        assert_true(isfinite(limit[b]) && (b == 0 || limit[b] > limit[b - 1]));
        sum += count[b];
    }
    assert_true(sum == (double)finite && limit[h.buckets - 1] == h.max);
}

static void test_histograms(void **state) {
    (void)state;
    const double far[] = { -DBL_MAX, 0, DBL_MAX, (double)NAN, (double)INFINITY, -DBL_MAX / 2 };
    const double near[] = { 0, 1, 2, 63, 64 }, same[] = { 3, 3 }, none[] = { (double)NAN, -(double)INFINITY };
    const plait_weights nothing = { .table = "w", .type = PLAIT_F64, .n = 2, .values = none };
    double              limit[PLI_BOARD_BUCKETS], count[PLI_BOARD_BUCKETS];
    pli_board_histogram h;
    check(far, 6, 4);
    check(near, 5, 5);
    check(same, 2, 2);
    assert_false(pli_board_measure(&nothing, &h, limit, count));
    assert_true(pli_board_measure(&(plait_weights){ .type = PLAIT_F64, .n = 6, .values = far }, &h, limit, count));
    assert_true(count[0] == 1 && count[16] == 1 && count[32] == 1 && count[63] == 1);
    assert_true(pli_board_measure(&(plait_weights){ .type = PLAIT_F64, .n = 5, .values = near }, &h, limit, count));
    assert_true(count[0] == 1 && count[2] == 1 && count[63] == 2);
}

static void test_files_of_one_second(void **state) {
    (void)state;
    char        dir[] = "board_test.XXXXXX", path[400];
    pli_board  *board[3] = { NULL };
    plait_error err = { 0 };
    int         files = 0;
    if (pli_board_check(&err) < 0) {
        print_message("skipped: %s\n", err.text);
        skip();
    }
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < 3; i++) assert_int_equal(pli_board_open(dir, &board[i], &err), PLAIT_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(pli_board_close(&board[i], &err), PLAIT_OK);
    DIR *open = opendir(dir);
    assert_non_null(open);
    for (const struct dirent *entry; (entry = readdir(open)) != NULL;) {
        struct stat info;
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        assert_int_equal(stat(path, &info), 0);
        assert_true(info.st_size > 0 && strstr(path, "tfevents") != NULL);
        unlink(path);
        files++;
    }
    closedir(open);
    rmdir(dir);
    assert_int_equal(files, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_histograms), cmocka_unit_test(test_files_of_one_second) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
