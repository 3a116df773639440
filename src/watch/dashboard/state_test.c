/* What a dashboard makes of lines and samples, and how it shows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "watch/dashboard/dashboard.h"

static void tell(pli_dash *d, const char *line) { pli_dash_line(d, line, strlen(line)); }

static json_t *shown(pli_dash *d) {
    pli_text text = { 0 };
    pli_dash_json(d, &text);
    json_t *value = pli_json_read(text.data, text.length, NULL);
    assert_true(json_is_object(value));
    pli_text_free(&text);
    return value;
}

static int64_t number(const json_t *object, const char *key) {
    assert_true(json_is_integer(json_object_get(object, key)));
    return json_integer_value(json_object_get(object, key));
}

static void progress(pli_dash *d, const char *event, int64_t epoch, int64_t clock, double loss) {
    char line[200];
    snprintf(line, sizeof line,
             "{\"event\": \"%s\", \"epoch\": %lld, \"clock\": %lld, \"loss\": %.17g, \"validation_loss\": null, "
             "\"rows_per_second\": 10, \"seconds\": 1}\n",
             event, (long long)epoch, (long long)clock, loss);
    tell(d, line);
}

/* Points are thinned out evenly; the first and the last stay; a restart takes back the clocks that it does again. */
static void test_curves(void **state) {
    enum { EPOCHS = 3 * PLI_DASH_POINTS };
    pli_dash d;
    (void)state;
    pli_dash_init(&d);
    for (int64_t e = 1; e <= EPOCHS; e++) progress(&d, "epoch", e, 10 * e, 1.0 / (double)e);
    json_t       *all = shown(&d);
    const json_t *points = json_object_get(all, "epochs");
    const size_t  n = json_array_size(points);
    assert_in_range(n, PLI_DASH_POINTS / 2, PLI_DASH_POINTS + 1);
    assert_int_equal(json_integer_value(json_array_get(json_array_get(points, 0), 0)), 1);
    assert_int_equal(json_integer_value(json_array_get(json_array_get(points, n - 1), 0)), EPOCHS);
    for (size_t i = 1; i < n; i++)
        assert_true(json_integer_value(json_array_get(json_array_get(points, i), 1)) >
                    json_integer_value(json_array_get(json_array_get(points, i - 1), 1)));
    json_decref(all);
    progress(&d, "epoch", 5, 50, 0.5);
    all = shown(&d);
    points = json_object_get(all, "epochs");
    assert_int_equal(json_integer_value(json_array_get(json_array_get(points, json_array_size(points) - 1), 0)), 5);
    json_decref(all);
    pli_dash_free(&d);
}

/* An epoch's loss is the mean over the rows of its reports. */
static void test_epoch_loss(void **state) {
    static const struct {
        const char *event;
        double      loss, rows_per_second, seconds;
    } told[] = { { "clock", 4, 30, 1 },
                 { "clock", 1, 10, 2 },
                 { "epoch", 1, 10, 2 },
                 { "clock", 7, 1, 3 },
                 { "epoch", 7, 1, 3 } };
    pli_dash d;
    (void)state;
    pli_dash_init(&d);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        char line[200];
        snprintf(line, sizeof line,
                 "{\"event\": \"%s\", \"epoch\": %d, \"clock\": %d, \"loss\": %g, \"rows_per_second\": %g, "
                 "\"seconds\": %g}",
                 told[i].event, i < 3 ? 1 : 2, (int)i + 1, told[i].loss, told[i].rows_per_second, told[i].seconds);
        tell(&d, line);
        if (strcmp(told[i].event, "epoch") == 0) assert_true(d.epochs.last.loss == (i < 3 ? 3.25 : 7));
    }
    pli_dash_free(&d);
}

/* A death is counted once, whoever tells it, and not that of a rank that has said bye; a new life is a join. */
static void test_lives(void **state) {
    pli_dash d;
    (void)state;
    pli_dash_init(&d);
    tell(&d, "{\"event\": \"start\", \"rank\": 0, \"host\": \"a\", \"pid\": 5, \"role\": \"worker\"}");
    tell(&d, "{\"event\": \"start\", \"rank\": 0, \"host\": \"a\", \"pid\": 5, \"role\": \"worker\"}");
    tell(&d, "{\"event\": \"start\", \"rank\": 1, \"host\": \"a\", \"pid\": 6, \"role\": \"spare\"}");
    pli_dash_gone(&d, 0);
    tell(&d, "{\"event\": \"rank_lost\", \"rank\": 0, \"why\": \"it was killed\", "
             "\"then\": \"rank 1 takes its place\"}");
    tell(&d, "{\"event\": \"bye\", \"rank\": 1}");
    pli_dash_gone(&d, 1);
    pli_dash_gone(&d, 9);
    pli_dash_note(&d, "restart", "again");
    tell(&d, "{\"event\": \"start\", \"rank\": 0, \"host\": \"b\", \"pid\": 7, \"role\": \"worker\"}");
    tell(&d, "{\"event\": \"checkpoint\", \"clock\": 12, \"folder\": \"c\", \"bytes\": 3, \"seconds\": 0.5}");
    tell(&d, "no JSON");
    tell(&d, "[1]");
    tell(&d, "{\"event\": \"start\", \"rank\": -1}");
    tell(&d, "{\"event\": \"start\", \"rank\": 1e9}");
    json_t *all = shown(&d);
    assert_int_equal(number(all, "deaths"), 1);
    size_t        at, listed = 0;
    const json_t *event;
    json_array_foreach(json_object_get(all, "events"), at, event) {
        if (strcmp(pli_json_text_of(event, "kind"), "death") != 0) continue;
        listed++;
        assert_string_equal(pli_json_text_of(event, "text"), "it was killed; rank 1 takes its place");
    }
    assert_int_equal(listed, 1);
    assert_int_equal(number(all, "joins"), 3);
    assert_int_equal(number(all, "restarts"), 1);
    assert_int_equal(number(all, "checkpoint_clock"), 12);
    const json_t *ranks = json_object_get(all, "ranks");
    assert_int_equal(json_array_size(ranks), 2);
    assert_true(json_is_true(json_object_get(json_array_get(ranks, 0), "up")));
    assert_true(json_is_false(json_object_get(json_array_get(ranks, 1), "up")));
    assert_string_equal(pli_json_text_of(json_array_get(ranks, 0), "host"), "b");
    json_decref(all);
    pli_dash_free(&d);
}

/* A run that stands still is seen by the age of its clock, until it ends. */
static void test_clock_age(void **state) {
    pli_dash d;
    (void)state;
    pli_dash_init(&d);
    json_t *all = shown(&d);
    assert_true(json_is_null(json_object_get(all, "clock_age")));
    json_decref(all);
    progress(&d, "clock", 1, 5, 0.5);
    d.clocked_ns -= UINT64_C(7000000000);
    progress(&d, "epoch", 1, 5, 0.5); /* the same clock */
    assert_true(pli_dash_clock_age(&d) >= 7);
    progress(&d, "clock", 2, 6, 0.5);
    assert_true(pli_dash_clock_age(&d) < 7);
    tell(&d, "{\"event\": \"end\", \"status\": \"done\"}");
    all = shown(&d);
    assert_true(json_is_null(json_object_get(all, "clock_age")));
    json_decref(all);
    pli_dash_free(&d);
}

static const char sample[] =
    "{\"ranks\": [{\"heard\": true, \"lived\": 9, \"compute\": 5, \"wait\": 3, \"network\": 1, \"clock\": 7, "
    "\"does\": \"rank 0 works, and waits for nothing\", \"sent\": {\"to servers\": 12345678901}}, "
    "{\"heard\": true, \"lived\": 9, \"compute\": 1, \"wait\": 8, \"network\": null, \"clock\": 4, "
    "\"does\": \"rank 1 waits for clock 4 of table w, held up by rank 0 (plait_table_read, call 2; 0.5 s)\", "
    "\"sent\": {}}, {\"heard\": false, \"clock\": -1, \"does\": \"rank 2 has ended\", \"sent\": {}}]}";

static bool has(const pli_text *text, const char *line) { return strstr(text->data, line) != NULL; }

static void test_figures(void **state) {
    pli_dash d;
    pli_text text = { 0 };
    (void)state;
    pli_dash_init(&d);
    tell(&d, "{\"event\": \"run\", \"model\": \"a \\\"b\\\\\\n\", \"workers\": 3}");
    pli_dash_sample(&d, sample);
    pli_dash_sample(&d, "{}"); /* the last sample stays */
    pli_dash_figures(&d, &text);
    assert_true(has(&text, "plait_run_info{model=\"a \\\"b\\\\\\n\"} 1\n"));
    assert_true(has(&text, "\nplait_rank_compute_seconds_total{rank=\"0\"} 5\n"));
    assert_true(has(&text, "\nplait_rank_wait_seconds_total{rank=\"1\"} 8\n"));
    assert_false(has(&text, "plait_rank_network_seconds_total{rank=\"1\"}"));
    assert_false(has(&text, "rank=\"2\""));
    assert_true(has(&text, "\nplait_rank_sent_bytes_total{rank=\"0\",kind=\"to servers\"} 12345678901\n"));
    assert_true(has(&text, "\nplait_rank_behind_clocks{rank=\"1\"} 3\n"));
    assert_true(has(&text, "\nplait_staleness_clocks 3\n"));
    assert_true(has(&text, "\nplait_rank_waiting_seconds{rank=\"1\",for_rank=\"0\"} 0.5\n"));
    assert_false(has(&text, "plait_rank_waiting_seconds{rank=\"0\""));
    pli_text_free(&text);
    pli_dash_free(&d);
}

/* Samples tell of progress only where no line does. */
static void test_sampled_progress(void **state) {
    static const char form[] = "{\"ranks\": [{\"heard\": true}, {\"heard\": true, \"progress\": {\"epoch\": 2, "
                               "\"clock\": %d, \"loss\": 0.5, \"seconds\": 1}}]}";
    char     line[200];
    pli_dash d;
    (void)state;
    pli_dash_init(&d);
    for (int clock = 7; clock <= 8; clock++) {
        for (int twice = 0; twice < 2; twice++) {
            snprintf(line, sizeof line, form, clock);
            pli_dash_sample(&d, line);
        }
        assert_true(d.has_progress && d.clocks.last.clock == clock && d.clocks.n == clock - 6);
    }
    progress(&d, "clock", 2, 9, 0.25);
    snprintf(line, sizeof line, form, 10);
    pli_dash_sample(&d, line);
    assert_true(d.clocks.last.clock == 9);
    pli_dash_free(&d);
}

/* A counter does not fall, unless its rank has begun anew. */
static void test_counters_grow(void **state) {
    static const char form[] = "{\"ranks\": [{\"heard\": true, \"lived\": %d, \"compute\": %d, \"wait\": 0}]}";
    static const int  told[][3] = { { 9, 5, 5 }, { 10, 4, 5 }, { 11, 6, 6 }, { 2, 1, 1 } }; /* lived, compute, shown */
    pli_dash          d;
    (void)state;
    pli_dash_init(&d);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        char          line[200];
        pli_dash_rank rank;
        snprintf(line, sizeof line, form, told[i][0], told[i][1]);
        pli_dash_sample(&d, line);
        assert_true(pli_dash_rank_of(&d, 0, &rank));
        assert_true(rank.compute == told[i][2]);
    }
    pli_dash_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_curves), cmocka_unit_test(test_epoch_loss),
                                        cmocka_unit_test(test_lives), cmocka_unit_test(test_clock_age),
                                        cmocka_unit_test(test_figures),
                                        cmocka_unit_test(test_sampled_progress),
                                        cmocka_unit_test(test_counters_grow) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
