#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "cli/record.h"
#include "cli/talk.h"
#include "watch/watch.h"

static plait_progress half_way(void) {
    return (plait_progress){ .epoch = 5,
                             .epochs = 10,
                             .clock = 500,
                             .clocks = 1000,
                             .loss = 0.324512345,
                             .validation_loss = NAN,
                             .rows_per_second = 1.25e6,
                             .seconds = 61,
                             .seconds_left = 61.4 };
}

static void bar_fits_any_terminal(void **state) {
    (void)state;
    for (int columns = 1; columns <= 300; columns++) {
        plait_progress p = half_way();
        pli_text       text = { 0 };
        pli_talk_bar(&p, false, columns, &text);
        assert_false(text.failed);
        assert_true((int)text.length < columns);
        if (columns >= 41) assert_non_null(strstr(text.data, "loss 0.32451"));
        if (columns >= 41) assert_non_null(strstr(text.data, "1:01 left"));
        if (columns >= 60) assert_non_null(strstr(text.data, "[##"));
        if (columns >= 80) assert_non_null(strstr(text.data, "1.2M rows/s"));
        pli_text_free(&text);
    }
}

static void bar_tells_simulated_time(void **state) {
    (void)state;
    for (int columns = 1; columns <= 300; columns++) {
        plait_progress p = half_way();
        pli_text       text = { 0 };
        pli_talk_bar(&p, true, columns, &text);
        assert_true((int)text.length < columns);
        if (columns >= 60) assert_non_null(strstr(text.data, "1:01 simulated left"));
        if (columns >= 100) assert_non_null(strstr(text.data, "1.2M rows/s simulated"));
        pli_text_free(&text);
    }
}

static void bar_is_as_full_as_the_run(void **state) {
    (void)state;
    for (int64_t clock = 0; clock <= 1000; clock += 50) {
        plait_progress p = half_way();
        pli_text       text = { 0 };
        int            full = 0, all = 0;
        p.clock = clock;
        pli_talk_bar(&p, false, 120, &text);
        for (const char *c = strchr(text.data, '[') + 1; *c != ']'; c++, all++) full += *c == '#';
        assert_int_equal(full, (int)((double)clock / 1000 * all + 0.5));
        pli_text_free(&text);
    }
}

static void bar_of_a_stream_counts_epochs(void **state) {
    (void)state;
    plait_progress p = half_way();
    pli_text       text = { 0 };
    p.clocks = 0;
    p.seconds_left = NAN;
    pli_talk_bar(&p, false, 100, &text);
    assert_non_null(strstr(text.data, "? left"));
    assert_non_null(strstr(text.data, "#."));
    pli_text_free(&text);
}

static void figures_are_short(void **state) {
    (void)state;
    static const struct {
        double      value;
        const char *text;
    } times[] = { { 0, "0:00" },         { 59.9, "0:59" }, { 61.4, "1:01" }, { 3600, "1:00:00" },
                  { 86399, "23:59:59" }, { NAN, "?" },     { -1, "?" },      { INFINITY, "?" } },
      counts[] = { { 0, "0" },         { 7, "7" },         { 999, "999" },    { 1000, "1.0k" }, { 12345, "12k" },
                   { 999999, "1.0M" }, { 1.25e6, "1.2M" }, { 5e18, "5000P" }, { NAN, "0" } };
    char text[32];
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        pli_talk_time(times[i].value, text);
        assert_string_equal(text, times[i].text);
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        pli_talk_count(counts[i].value, text);
        assert_string_equal(text, counts[i].text);
    }
}

static void json_knows_no_nan_and_escapes(void **state) {
    (void)state;
    pli_text text = { 0 };
    pli_json_begin(&text);
    pli_json_text(&text, "text", "a \"b\" \\ \n\x01 \xc3\xa4");
    pli_json_f64(&text, "nan", NAN);
    pli_json_f64(&text, "inf", INFINITY);
    pli_json_f64(&text, "tenth", 0.1);
    pli_json_i64(&text, "least", INT64_MIN);
    pli_json_text(&text, "none", NULL);
    pli_json_bool(&text, "yes", true);
    pli_json_end(&text);
    assert_string_equal(text.data,
                        "{\"text\": \"a \\\"b\\\" \\\\ \\u000a\\u0001 \xc3\xa4\", \"nan\": null, \"inf\": null, "
                        "\"tenth\": 0.10000000000000001, \"least\": -9223372036854775808, \"none\": null, "
                        "\"yes\": true}");
    pli_text_free(&text);
}

static void record_of_nothing_is_all_null(void **state) {
    (void)state;
    plait_report report;
    pli_text     text = { 0 };
    int          nulls = 0;
    pli_record_init(&report);
    pli_record_json(&report, NULL, NULL, NULL, &text);
    for (const char *at = text.data; (at = strstr(at, ": null")) != NULL; at++) nulls++;
    assert_int_equal(nulls, 48); /* all keys but tables and ranks_lost, which are empty */
    pli_text_free(&text);
}

static void every_status_has_an_exit_code(void **state) {
    (void)state;
#define X(name, code, text) assert_true(pli_cli_exit_code(PLAIT_##name) >= 0 && pli_cli_exit_code(PLAIT_##name) <= 75);
    PLAIT_STATUS_MAP(X)
#undef X
    assert_int_equal(pli_cli_exit_code(PLAIT_EREFUSED), 2);
    assert_int_equal(pli_cli_exit_code(PLAIT_EPEER), 3);
    assert_int_equal(pli_cli_exit_code(PLAIT_EDIVERGED), 1);
    assert_int_equal(pli_cli_exit_code(PLAIT_EINTERRUPTED), 75);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bar_fits_any_terminal),
        cmocka_unit_test(bar_tells_simulated_time),
        cmocka_unit_test(bar_is_as_full_as_the_run),
        cmocka_unit_test(bar_of_a_stream_counts_epochs),
        cmocka_unit_test(figures_are_short),
        cmocka_unit_test(json_knows_no_nan_and_escapes),
        cmocka_unit_test(record_of_nothing_is_all_null),
        cmocka_unit_test(every_status_has_an_exit_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
