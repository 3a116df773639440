/* What a run says of the updates that a dead worker had not sent: by the run's own settings, and by those of single
 * tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cli/lost.h"

#define FILTERS "; what its filters kept back of its updates is lost"
#define GATHERED "; what it had gathered since its last push is lost"
#define MOVED "; what its mirror had moved since the last average is lost"

static void says(const plait_train_opts *train, const char *wanted) {
    pli_text text = { 0 };
    pli_lost_with(train, &text);
    assert_string_equal(text.data != NULL ? text.data : "", wanted);
    pli_text_free(&text);
}

static void test_the_settings_of_the_run(void **state) {
    plait_train_opts train;
    (void)state;
    plait_train_opts_init(&train);
    says(&train, "");
    train.filter = "key-cache,zstd", train.consistency = "ssp:2";
    says(&train, "");
    train.filter = "topk:0.1", train.consistency = "downpour:2:2";
    says(&train, FILTERS GATHERED);
}

static void test_the_settings_of_a_table(void **state) {
    const plait_table_setting tables[] = { { .name = "w" }, { .name = "v", .filter = "fixed8" },
                                           { .name = "u", .filter = "topk:0.1", .consistency = "local-sgd:4" } };
    plait_train_opts          train;
    (void)state;
    plait_train_opts_init(&train);
    train.tables = tables, train.n_tables = 1;
    says(&train, "");
    train.n_tables = 2;
    says(&train, FILTERS);
    train.n_tables = 3;
    says(&train, FILTERS MOVED);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_the_settings_of_the_run),
                                        cmocka_unit_test(test_the_settings_of_a_table) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
