/* The judgement on made-up runs: noise, ties, settings that miss the target, and its words. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "watch/compare/compare.h"

enum { PAIRS = 3 };

static void near(double found, double expected, double within) { assert_true(fabs(found - expected) <= within); }

static void start(pli_comparison *c, int32_t pairs, int32_t repeats) {
    static const char *const names[PAIRS] = { "bsp", "ssp:2", "async" };
    *c = (pli_comparison){ .pairs = pairs, .repeats = repeats, .target_given = NAN };
    c->pair = pli_calloc((size_t)pairs, sizeof *c->pair);
    assert_non_null(c->pair);
    for (int32_t i = 0; i < pairs; i++) {
        strcpy(c->pair[i].topology, "ps");
        strcpy(c->pair[i].consistency, names[i]);
    }
}

/* Adds a run whose loss falls in a straight line from 1 at time 0 to `end` at `seconds`, and that sends one byte a
 * second. */
static void add_run(pli_comparison *c, int32_t pair, double seconds, double end) {
    pli_compared_run *run = pli_compare_add(c);
    assert_non_null(run);
    run->pair = pair;
    run->loss = end;
    run->seconds = seconds;
    run->point = pli_calloc(2, sizeof *run->point);
    assert_non_null(run->point);
    run->points = 2;
    run->point[0] = (pli_curve_point){ .loss = 1 };
    run->point[1] = (pli_curve_point){ .clock = 10, .seconds = seconds, .bytes = seconds, .loss = end };
}

static void refuse(pli_comparison *c, int32_t pair, pli_outcome outcome) {
    pli_compared_run *run = pli_compare_add(c);
    assert_non_null(run);
    run->pair = pair;
    run->outcome = outcome;
    run->reason = pli_strdup("for a reason");
}

static void judge(pli_comparison *c, const char *says) {
    plait_error err;
    assert_int_equal(pli_compare_judge(c, &err), PLAIT_OK);
    if (strstr(c->sentence.data, says) == NULL) fail_msg("'%s' does not say '%s'", c->sentence.data, says);
}

static void test_the_rank_test_counts_orders(void **state) {
    (void)state;
    const double low[] = { 1, 2, 3 }, high[] = { 4, 5, 6 }, mixed[] = { 0, 2.5, 7 },
                 never[] = { INFINITY, INFINITY, INFINITY };
    near(pli_rank_chance(low, 3, high, 3), 1.0 / 20, 1e-12);
    near(pli_rank_chance(high, 3, low, 3), 1, 1e-12);
    near(pli_rank_chance(low, 2, high, 2), 1.0 / 6, 1e-12);
    near(pli_rank_chance(low, 1, high, 3), 1.0 / 4, 1e-12);
    /* three come after 0, one after 2.5: U is 4, and 1 + 1 + 2 + 3 + 3 orders have no larger U */
    near(pli_rank_chance(low, 3, mixed, 3), 10.0 / 20, 1e-12);
    near(pli_rank_chance(low, 3, never, 3), 1.0 / 20, 1e-12);
    assert_true(pli_rank_chance(low, 3, low, 3) > 0.5);
    near(pli_rank_chance(low, 0, high, 3), 1, 0);
}

static void test_the_rank_test_of_many_is_near_that_of_few(void **state) {
    (void)state;
    double a[21], b[21];
    for (int i = 0; i < 21; i++) {
        a[i] = i;
        b[i] = i + 4.5;
    }
    double exact = pli_rank_chance(a, 20, b, 20), normal = pli_rank_chance(a, 21, b, 21);
    assert_true(exact > 0.001 && exact < 0.1 && fabs(normal / exact - 1) < 0.3);
}

static void test_a_curve_crosses_where_its_least_does(void **state) {
    (void)state;
    const size_t          seconds = offsetof(pli_curve_point, seconds);
    const pli_curve_point p[] = { { .seconds = 0, .loss = 4 },
                                  { .seconds = 1, .loss = 2 },
                                  { .seconds = 2, .loss = 9 },
                                  { .seconds = 3, .loss = 1 } };
    near(pli_compare_crossing(p, 4, 3, seconds), 0.5, 1e-12);
    near(pli_compare_crossing(p, 4, 1.5, seconds), 2.5, 1e-12);
    near(pli_compare_crossing(p, 4, 1, seconds), 3, 1e-12);
    near(pli_compare_crossing(p, 4, 5, seconds), 0, 0);
    assert_true(isinf(pli_compare_crossing(p, 4, 0.5, seconds)));
    assert_true(isinf(pli_compare_crossing(p, 0, 5, seconds)));
}

static void test_a_clear_winner_is_named_with_its_lead(void **state) {
    (void)state;
    pli_comparison c;
    start(&c, 3, 3);
    for (int i = 0; i < 3; i++) {
        add_run(&c, 0, 4 + 0.1 * i, 0.1);
        add_run(&c, 1, 2 + 0.1 * i, 0.1);
    }
    refuse(&c, 2, PLI_RUN_REFUSED);
    judge(&c, "ps x ssp:2 suits this job: it reaches an objective of 0.101 (1 % above the lowest reached, 0.1) in ");
    judge(&c, "1.95 times (1.82 to 2.1 over the repeats) as fast as the next, ps x bsp, beyond the noise.");
    assert_int_equal(c.best, 1);
    assert_int_equal(c.next, 0);
    assert_false(c.as_good[0] || c.as_good[2]);
    assert_int_equal(c.pair[2].outcome, PLI_RUN_REFUSED);
    assert_string_equal(c.pair[2].reason, "for a reason");
    near(c.pair[1].seconds, 2.1 * (1 - 0.101) / 0.9, 1e-9);
    assert_int_equal(c.run[c.pair[1].typical].pair, 1);
    near(c.run[c.pair[1].typical].seconds, 2.1, 1e-9);
    pli_compare_free(&c);
}

/* Adds a run that comes down to 0.1 at half its time, and ends at `end`. */
static void add_straying(pli_comparison *c, int32_t pair, double seconds, double end) {
    add_run(c, pair, seconds / 2, 0.1);
    pli_compared_run *run = &c->run[c->runs - 1];
    pli_curve_point  *more = pli_realloc(run->point, 3, sizeof *more);
    assert_non_null(more);
    run->point = more;
    run->point[run->points++] = (pli_curve_point){ .clock = 20, .seconds = seconds, .bytes = seconds, .loss = end };
    run->seconds = seconds;
    run->loss = end;
}

static void test_a_setting_that_does_not_stay_is_marked(void **state) {
    (void)state;
    pli_comparison c;
    pli_text       table = { 0 }, json = { 0 };
    start(&c, 3, 3);
    for (int i = 0; i < 3; i++) {
        add_straying(&c, 0, 2 + 0.1 * i, i == 1 ? 0.1005 : 0.12); /* one of its runs ends within the target */
        add_run(&c, 1, 4 + 0.1 * i, 0.1);
        add_run(&c, 2, 5 + 0.1 * i, 0.5); /* never comes there, so it leaves nothing */
    }
    judge(&c, "ps x bsp suits this job: ");
    judge(&c, "beyond the noise. But ps x bsp did not stay there: it ended above in 2 of 3 runs (0.12).");
    assert_int_equal(c.pair[0].left, 2);
    assert_int_equal(c.pair[1].left, 0);
    assert_int_equal(c.pair[2].left, 0);
    pli_compare_table(&c, 100, &table);
    assert_non_null(strstr(table.data, "*!ps x bsp"));
    assert_non_null(strstr(table.data, "\n  ps x ssp:2"));
    assert_non_null(strstr(table.data, "!: it reached the target and did not stay there"));
    pli_compare_json(&c, &json);
    assert_non_null(strstr(json.data, "\"stayed\": false, \"runs_that_left\": 2"));
    assert_non_null(strstr(json.data, "\"stayed\": true, \"runs_that_left\": 0"));
    assert_non_null(strstr(json.data, "\"stayed\": null, \"runs_that_left\": 0"));
    pli_text_free(&table);
    pli_text_free(&json);
    pli_compare_free(&c);
}

static void test_what_lies_within_the_noise_is_not_told_apart(void **state) {
    (void)state;
    pli_comparison c;
    const double   one[] = { 1, 1.2, 1.1 }, other[] = { 1.15, 1.25, 1.3 };
    start(&c, 3, 3);
    for (int i = 0; i < 3; i++) {
        add_run(&c, 0, one[i], 0.1);
        add_run(&c, 1, other[i], 0.1);
        add_run(&c, 2, 3 + one[i], 0.1);
    }
    judge(&c,
          "There is no difference beyond the noise of 3 runs each between ps x bsp (1.1 s) and ps x ssp:2 (1.25 s)");
    judge(&c,
          "ps x bsp is 3.73 times (3.33 to 4.2 over the repeats) as fast as the next, ps x async, beyond the noise.");
    assert_true(c.as_good[0] && c.as_good[1] && !c.as_good[2]);
    pli_compare_free(&c);
}

static void test_equal_times_are_no_difference(void **state) {
    (void)state;
    pli_comparison c;
    start(&c, 2, 3);
    for (int i = 0; i < 3; i++)
        for (int32_t pair = 0; pair < 2; pair++) add_run(&c, pair, 1, 0.1);
    judge(&c, "no difference beyond the noise");
    assert_true(c.as_good[0] && c.as_good[1]);
    assert_int_equal(c.next, -1);
    pli_compare_free(&c);
}

static void test_too_few_repeats_tell_nothing_and_say_so(void **state) {
    (void)state;
    pli_comparison c;
    start(&c, 2, 2);
    for (int i = 0; i < 2; i++) {
        add_run(&c, 0, 1, 0.1);
        add_run(&c, 1, 9, 0.1);
    }
    judge(&c, "take --repeats 3 or more");
    assert_true(c.as_good[1]);
    pli_compare_free(&c);
}

static void test_a_pair_that_never_comes_there_is_behind(void **state) {
    (void)state;
    pli_comparison c;
    start(&c, 2, 3);
    for (int i = 0; i < 3; i++) {
        add_run(&c, 0, 50, 0.1);
        add_run(&c, 1, 1, 0.2); /* fast, but it misses the target */
    }
    judge(&c, "ps x bsp suits this job");
    judge(&c, "; no other reaches it.");
    assert_true(isinf(c.pair[1].seconds) && !c.as_good[1]);
    assert_int_equal(c.best, 0);
    assert_true(c.pair[1].typical >= 0);
    pli_compare_free(&c);
}

static void test_a_target_may_be_out_of_reach(void **state) {
    (void)state;
    pli_comparison c;
    start(&c, 2, 3);
    c.target_given = 0.01;
    for (int i = 0; i < 3; i++) add_run(&c, 0, 1, 0.1);
    judge(&c, "No setting reached an objective of 0.01; the lowest was 0.1.");
    assert_int_equal(c.best, -1);
    c.target_given = 0.5;
    judge(&c, "ps x bsp suits this job: it reaches an objective of 0.5 in");
    assert_int_equal(c.best, 0);
    pli_compare_free(&c);
}

static void test_nothing_ran(void **state) {
    (void)state;
    pli_comparison c;
    start(&c, 2, 3);
    refuse(&c, 0, PLI_RUN_REFUSED);
    refuse(&c, 1, PLI_RUN_FAILED);
    judge(&c, "No setting ran.");
    assert_true(isnan(c.target) && c.best == -1 && c.lightest == -1);
    pli_text text = { 0 };
    pli_compare_json(&c, &text);
    pli_compare_table(&c, 50, &text);
    assert_false(text.failed);
    assert_non_null(strstr(text.data, "ps x ssp:2 failed: for a reason"));
    pli_text_free(&text);
    pli_compare_free(&c);
}

static void test_fewer_bytes_are_told(void **state) {
    (void)state;
    pli_comparison c;
    start(&c, 2, 3);
    for (int i = 0; i < 3; i++) {
        add_run(&c, 0, 1, 0.1);
        add_run(&c, 1, 2, 0.1);
        c.run[c.runs - 1].point[1].bytes = 0.5;
    }
    judge(&c, "Fewest bytes until then: ps x ssp:2, 0 B (ps x bsp: 1 B).");
    pli_compare_free(&c);
}

static void test_a_cut_comparison_says_so(void **state) {
    (void)state;
    pli_comparison c;
    start(&c, 2, 3);
    c.interrupted = true;
    add_run(&c, 0, 1, 0.1);
    judge(&c, "Interrupted; this is of the runs that were done. ps x bsp suits this job");
    pli_compare_free(&c);
    start(&c, 2, 9);
    c.interrupted = true;
    add_run(&c, 0, 1, 0.1);
    add_run(&c, 1, 1.1, 0.1);
    add_run(&c, 0, 1.2, 0.1);
    judge(&c, "There is no difference beyond the noise of 1 to 2 runs each between ");
    judge(&c, "Fewer than 3 repeats cannot tell");
    pli_compare_free(&c);
    start(&c, 1, 3);
    c.interrupted = true;
    refuse(&c, 0, PLI_RUN_STOPPED);
    judge(&c, "Interrupted; this is of the runs that were done. None tells anything.");
    pli_compare_free(&c);
}

static void test_the_table_keeps_to_its_width(void **state) {
    (void)state;
    pli_comparison c;
    start(&c, 3, 3);
    for (int i = 0; i < 3; i++) add_run(&c, 0, 1 + i, 0.1);
    refuse(&c, 2, PLI_RUN_REFUSED);
    judge(&c, "ps x bsp");
    for (int width = 40; width <= 120; width += 8) {
        pli_text text = { 0 };
        pli_compare_table(&c, width, &text);
        assert_false(text.failed);
        for (const char *line = text.data; *line != '\0'; line += strcspn(line, "\n") + 1)
            if ((int)strcspn(line, "\n") > width) fail_msg("wider than %d: %.130s", width, line);
        assert_non_null(strstr(text.data, "ps x async refused: for a"));
        assert_non_null(strstr(text.data, "ps x ssp:2 not run"));
        pli_text_free(&text);
    }
    pli_compare_free(&c);
}

static void test_no_allocation_that_fails_is_lost(void **state) {
    (void)state;
    for (int64_t k = 0;; k++) {
        pli_comparison c;
        plait_error    err;
        pli_text       page = { 0 };
        start(&c, 1, 3);
        for (int i = 0; i < 3; i++) add_run(&c, 0, 1 + i, 0.1);
        pli_alloc_fail_after(k);
        plait_status status = pli_compare_judge(&c, &err);
        if (status >= 0) pli_compare_json(&c, &page);
        pli_alloc_fail_after(-1);
        bool done = status >= 0 && !page.failed;
        assert_true(done || page.failed || status == PLAIT_ENOMEM);
        pli_text_free(&page);
        pli_compare_free(&c);
        if (done) break;
    }
}

static void test_a_figure_of_the_learners_own_has_a_column(void **state) {
    static const double figures[] = { 30, 10, 20 };
    pli_comparison      c;
    pli_text            text = { 0 };
    (void)state;
    start(&c, 1, 3);
    for (int i = 0; i < 3; i++) {
        add_run(&c, 0, 1 + i, 0.5);
        strcpy(c.run[i].figure_name, "inertia");
        c.run[i].figure = figures[i];
    }
    judge(&c, "suits this job");
    assert_string_equal(c.figure_name, "inertia");
    near(c.pair[0].figure, 20, 0);
    pli_compare_table(&c, 120, &text);
    assert_non_null(strstr(text.data, "loss   inertia     bytes"));
    assert_non_null(strstr(text.data, "0.5        20"));
    pli_text_free(&text);
    pli_compare_json(&c, &text);
    assert_non_null(strstr(text.data, "\"figure\": \"inertia\""));
    assert_non_null(strstr(text.data, "\"figure\": 20,"));
    pli_text_free(&text);
    pli_compare_free(&c);
}

static void test_a_model_without_a_loss_is_no_setting_that_did_not_run(void **state) {
    pli_comparison c;
    (void)state;
    start(&c, 2, 3);
    for (int32_t pair = 0; pair < 2; pair++) add_run(&c, pair, 1, (double)NAN);
    for (int i = 0; i < 2; i++) c.run[i].points = 0;
    judge(&c, "The model has no loss");
    pli_compare_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_rank_test_counts_orders),
        cmocka_unit_test(test_the_rank_test_of_many_is_near_that_of_few),
        cmocka_unit_test(test_a_curve_crosses_where_its_least_does),
        cmocka_unit_test(test_a_clear_winner_is_named_with_its_lead),
        cmocka_unit_test(test_a_setting_that_does_not_stay_is_marked),
        cmocka_unit_test(test_what_lies_within_the_noise_is_not_told_apart),
        cmocka_unit_test(test_equal_times_are_no_difference),
        cmocka_unit_test(test_too_few_repeats_tell_nothing_and_say_so),
        cmocka_unit_test(test_a_pair_that_never_comes_there_is_behind),
        cmocka_unit_test(test_a_target_may_be_out_of_reach),
        cmocka_unit_test(test_nothing_ran),
        cmocka_unit_test(test_fewer_bytes_are_told),
        cmocka_unit_test(test_a_cut_comparison_says_so),
        cmocka_unit_test(test_the_table_keeps_to_its_width),
        cmocka_unit_test(test_no_allocation_that_fails_is_lost),
        cmocka_unit_test(test_a_figure_of_the_learners_own_has_a_column),
        cmocka_unit_test(test_a_model_without_a_loss_is_no_setting_that_did_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
