/* The learners' own options as rows: options of each kind, options that two learners share, values for a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/settings.h"

static const plait_learner_option first_options[] = {
    { "clusters", PLAIT_OPTION_COUNT, "8", "how many clusters", 1, 100, NULL },
    { "spread", PLAIT_OPTION_NUMBER, NULL, "how wide", 0.5, 0, NULL },
    { "way", PLAIT_OPTION_NAME, "fast", "how it goes", 0, 0, "fast slow" },
    { "whiten", PLAIT_OPTION_FLAG, "0", "whiten the columns", 0, 0, NULL },
    { NULL, PLAIT_OPTION_FLAG, NULL, NULL, 0, 0, NULL },
};
static const plait_learner_option second_options[] = {
    { "clusters", PLAIT_OPTION_COUNT, "2", "groups", 2, 0, NULL },
    { "way", PLAIT_OPTION_NAME, "slow", "how it walks", 0, 0, "slow steep" },
    { "spread", PLAIT_OPTION_NAME, "wide", "its form", 0, 0, "wide narrow" },
    { NULL, PLAIT_OPTION_FLAG, NULL, NULL, 0, 0, NULL },
};
static const plait_learner        first = { .name = "logistic", .options = first_options };
static const plait_learner        second = { .name = "two", .options = second_options };
static const plait_learner *const both[] = { &first, &second, NULL }, *const single[] = { &first, NULL };

static const pli_opt *row_of(const pli_opt *rows, const char *name) {
    while (rows->name != NULL && strcmp(rows->name, name) != 0) rows++;
    assert_non_null(rows->name);
    return rows;
}

static void an_option_becomes_a_row_of_its_kind(void **state) {
    pli_opt *rows = pli_rows_with_learners(pli_train_rows, single);
    (void)state;
    assert_non_null(rows);
    const pli_opt *clusters = row_of(rows, "clusters"), *spread = row_of(rows, "spread"), *way = row_of(rows, "way"),
                  *whiten = row_of(rows, "whiten");
    assert_int_equal(clusters->kind, PLI_OPT_I64);
    assert_true(clusters->min == 1 && clusters->max == 100);
    assert_string_equal(clusters->argument, "N");
    assert_string_equal(clusters->help, "for logistic: how many clusters, default 8");
    assert_int_equal(spread->kind, PLI_OPT_F64);
    assert_true(spread->min == 0.5 && isinf(spread->max));
    assert_string_equal(spread->help, "for logistic: how wide, must be given");
    assert_int_equal(way->kind, PLI_OPT_CHOICE);
    assert_string_equal(way->argument, "fast|slow");
    assert_int_equal(whiten->kind, PLI_OPT_FLAG);
    assert_null(whiten->argument);
    assert_string_equal(whiten->help, "for logistic: whiten the columns");
    assert_true(clusters->preset == NULL && way->preset == NULL); /* the learner's default is its own */
    assert_string_equal(row_of(rows, "model")->argument, "logistic");
    pli_free(rows);
}

static void two_learners_share_a_row(void **state) {
    pli_opt *rows = pli_rows_with_learners(pli_train_rows, both);
    int      named = 0;
    (void)state;
    assert_non_null(rows);
    for (const pli_opt *row = rows; row->name != NULL; row++) named += strcmp(row->name, "clusters") == 0;
    assert_int_equal(named, 1);
    const pli_opt *clusters = row_of(rows, "clusters");
    assert_true(clusters->min == 1 && isinf(clusters->max)); /* the bounds of both learners: the run checks again */
    assert_string_equal(clusters->help, "for logistic: how many clusters, default 8; for two: groups, default 2");
    assert_string_equal(row_of(rows, "way")->argument, "fast|slow|steep");
    assert_int_equal(row_of(rows, "spread")->kind, PLI_OPT_TEXT); /* a number here, a name there */
    assert_string_equal(row_of(rows, "spread")->argument, "X");
    assert_string_equal(row_of(rows, "model")->argument, "logistic|two");
    pli_free(rows);
}

/* Reads words into settings, and fills the plan with the options that were given. */
static pli_opts *read_words(int n, const char *const *words, pli_train_settings *settings, pli_train_plan *plan,
                            plait_error *err) {
    pli_opts *opts = NULL;
    pli_opt  *rows = pli_rows_with_learners(pli_train_rows, both);
    assert_non_null(rows);
    if (pli_opts_read(rows, n, (char *const *)words, settings, NULL, NULL, &opts, err) < 0) {
        pli_free(rows);
        return NULL;
    }
    pli_opts_own_rows(opts, rows);
    memset(plan, 0, sizeof *plan);
    pli_plan_own_options(settings, opts, plan);
    return opts;
}

static void values_become_settings(void **state) {
    static const char *const words[] = { "--clusters", "12", "--whiten", "--spread=0.25", "--way", "steep" };
    pli_train_settings       settings;
    pli_train_plan          *plan = calloc(1, sizeof *plan);
    plait_error              err = { 0 };
    (void)state;
    assert_non_null(plan);
    pli_opts *opts = read_words(6, words, &settings, plan, &err);
    assert_non_null(opts);
    assert_int_equal(plan->train.n_settings, 4);
    static const char *const expected[][2] = {
        { "clusters", "12" }, { "spread", "0.25" }, { "way", "steep" }, { "whiten", "1" }
    };
    for (int i = 0; i < 4; i++) {
        assert_string_equal(plan->own[i].name, expected[i][0]);
        assert_string_equal(plan->own[i].value, expected[i][1]);
    }
    pli_opts_free(&opts);
    free(plan);
}

static void what_is_not_given_is_the_learners_own(void **state) {
    static const char *const words[] = { "--whiten=false" };
    pli_train_settings       settings;
    pli_train_plan          *plan = calloc(1, sizeof *plan);
    plait_error              err = { 0 };
    (void)state;
    assert_non_null(plan);
    pli_opts *opts = read_words(1, words, &settings, plan, &err);
    assert_non_null(opts);
    assert_int_equal(plan->train.n_settings, 1);
    assert_string_equal(plan->own[0].value, "0");
    pli_opts_free(&opts);
    free(plan);
}

static void values_out_of_range_are_refused(void **state) {
    static const char *const low[] = { "--clusters", "0" }, *const other[] = { "--way", "elsewhere" };
    pli_train_settings       settings;
    pli_train_plan           plan;
    plait_error              err = { 0 };
    (void)state;
    assert_null(read_words(2, low, &settings, &plan, &err));
    assert_string_equal(err.text, "--clusters wants a whole number of at least 1, not '0'");
    assert_null(read_words(2, other, &settings, &plan, &err));
    assert_string_equal(err.text, "--way wants one of fast|slow|steep, not 'elsewhere'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_option_becomes_a_row_of_its_kind), cmocka_unit_test(two_learners_share_a_row),
        cmocka_unit_test(values_become_settings),              cmocka_unit_test(what_is_not_given_is_the_learners_own),
        cmocka_unit_test(values_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
