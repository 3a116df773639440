/* A trial's values: no setting is drawn twice, the same seed draws the same, and a grid has each value once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "cli/settings.h"
#include "cli/tune.h"
#include "learn/learn.h"

static void add(pli_space *space, const char *text, bool whole) {
    assert_true(pli_range_parse(text, whole, &space->range[space->n++]));
}

static void words_of(const pli_space *space, int64_t trial, char words[2 * PLI_TUNE_WORD]) {
    char word[PLI_TUNE_WORD];
    words[0] = '\0';
    for (int32_t i = 0; i < space->n; i++) {
        pli_space_value(space, 7, trial, i, word);
        strcat(strcat(words, " "), word);
    }
}

static void test_no_setting_is_drawn_twice(void **state) {
    pli_space space = { 0 };
    char      words[12][2 * PLI_TUNE_WORD];
    (void)state;
    add(&space, "leaves=2..5", true);
    add(&space, "loss=a,b,c", false);
    assert_int_equal(pli_space_draw(&space, 7, 40), 12);
    for (int64_t t = 0; t < 12; t++) {
        words_of(&space, t, words[t]);
        for (int64_t before = 0; before < t; before++) assert_string_not_equal(words[before], words[t]);
    }
    pli_space_free(&space);
}

/* A search of more trials begins as one of fewer does. */
static void test_more_trials_begin_alike(void **state) {
    pli_space few = { 0 }, many = { 0 };
    char      a[2 * PLI_TUNE_WORD], b[2 * PLI_TUNE_WORD];
    (void)state;
    add(&few, "leaves=2..9", true);
    add(&many, "leaves=2..9", true);
    assert_int_equal(pli_space_draw(&few, 7, 4), 4);
    assert_int_equal(pli_space_draw(&many, 7, 8), 8);
    for (int64_t t = 0; t < 4; t++) {
        words_of(&few, t, a);
        words_of(&many, t, b);
        assert_string_equal(a, b);
    }
    pli_space_free(&few);
    pli_space_free(&many);
}

static void test_a_grid_of_few_whole_numbers(void **state) {
    static const char *const ranges[] = { "leaves=1..4", "leaves=1..60", "leaves=0..3", "leaves=5..6" };
    (void)state;
    for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
        pli_space space = { 0 };
        double    last = -1;
        add(&space, ranges[k], true);
        const int64_t n = pli_space_grid(&space, 6);
        assert_true(n == 6 || n == space.range[0].high - space.range[0].low + 1);
        for (int64_t t = 0; t < n; t++) {
            char word[PLI_TUNE_WORD];
            pli_space_value(&space, 7, t, 0, word);
            assert_true(strtod(word, NULL) > last && strtod(word, NULL) <= space.range[0].high);
            last = strtod(word, NULL);
        }
    }
}

static void test_a_list_has_each_value_once(void **state) {
    pli_range range;
    (void)state;
    assert_false(pli_range_parse("leaves=4,8,4", true, &range));
    assert_true(pli_range_parse("leaves=4,8,44", true, &range));
    assert_int_equal(range.n, 3);
}

static void test_no_memory(void **state) {
    (void)state;
    for (int64_t k = 0; k < 2; k++) {
        pli_space space = { 0 };
        add(&space, "leaves=2..5", true);
        pli_alloc_fail_after(k);
        assert_int_equal(pli_space_draw(&space, 7, 3), -1);
        pli_alloc_fail_after(-1);
        pli_space_free(&space);
    }
}

/* Each default range is one of an option that the model has, and within the option's bounds. */
static void test_default_ranges(void **state) {
    pli_opt *rows = pli_command_rows(&pli_command_train);
    int      seen = 0;
    (void)state;
    assert_non_null(rows);
    for (const pli_opt_range *r = pli_train_ranges; r->option != NULL; r++, seen++) {
        char           text[256];
        pli_range      range;
        const pli_opt *row = rows;
        while (row->name != NULL && strcmp(row->name, r->option) != 0) row++;
        assert_non_null(row->name);
        strcat(strcat(strcpy(text, r->option), "="), r->tried);
        assert_true(pli_range_parse(text, row->kind == PLI_OPT_I64, &range));
        if (range.n == 0) assert_true(range.low >= row->min && range.high <= row->max);
        for (const plait_learner *const *l = pli_learners(); *l != NULL; l++)
            if (pli_opt_range_is_of(r, (*l)->name) && pli_row_is_own(row))
                assert_non_null(pli_own_option_find((*l)->name, r->option));
    }
    assert_true(seen > 10);
    assert_true(pli_opt_range_is_of(&(pli_opt_range){ "x", "mlp cnn", "1..2" }, "cnn"));
    assert_false(pli_opt_range_is_of(&(pli_opt_range){ "x", "mlp cnn", "1..2" }, "lp"));
    pli_free(rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_setting_is_drawn_twice),   cmocka_unit_test(test_more_trials_begin_alike),
        cmocka_unit_test(test_a_grid_of_few_whole_numbers), cmocka_unit_test(test_a_list_has_each_value_once),
        cmocka_unit_test(test_no_memory),                   cmocka_unit_test(test_default_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
