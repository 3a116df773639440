/* The trace: the file has all reported spans, to the nanosecond; spans beyond the budget are dropped at a track's end
 * and counted; bytes that are no spans, or of another version, are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch/trace/trace.h"
#include "base/json.h"

enum { SPANS = 3000 };

static void tell(const pli_trace *trace, int32_t rank, int32_t thread, int64_t i) {
    char           name[32];
    const uint64_t begin = 1000007u * (uint64_t)(i + 1);
    snprintf(name, sizeof name, "matmul#%d", (int)(i % 10));
    const pli_span_sink *sink = pli_trace_sink(trace);
    sink->take(sink->user, &(pli_span){ .kind = i % 2 == 0 ? PLI_SPAN_OP : PLI_SPAN_WAIT,
                                        .rank = rank,
                                        .thread = thread,
                                        .name = i % 2 == 0 ? name : "wait",
                                        .detail = i % 2 == 0 ? NULL : "clock \"7\"\n",
                                        .number = i - 1,
                                        .begin_ns = begin,
                                        .end_ns = begin + (uint64_t)i });
}

static json_t *write_and_read(const pli_trace *trace, int32_t ranks, uint64_t *dropped_out) {
    char            path[64];
    pli_trace_file *file = NULL;
    plait_error     err = { 0 };
    snprintf(path, sizeof path, "trace-test.%d", (int)getpid());
    assert_int_equal(pli_trace_file_open(path, "threads", false, 7, &file, &err), PLAIT_OK);
    for (int32_t r = 0; r < ranks; r++) {
        pli_text             packed = { 0 };
        const pli_trace_rank rank = { .rank = r, .pid = 12, .host = "here", .shift_ns = r };
        pli_trace_pack(trace, r, &packed);
        assert_int_equal(pli_trace_file_add(file, &rank, packed.data, packed.length, &err), PLAIT_OK);
        /* bytes that are cut within a track are refused */
        pli_trace_file *other = NULL;
        assert_int_equal(pli_trace_file_open("trace-test.cut", "threads", false, 7, &other, &err), PLAIT_OK);
        if (packed.length > 0)
            assert_int_equal(pli_trace_file_add(other, &rank, packed.data, packed.length - 1, &err), PLAIT_EFORMAT);
        pli_trace_file_abandon(&other);
        assert_int_not_equal(access("trace-test.cut", F_OK), 0);
        pli_text_free(&packed);
    }
    *dropped_out = pli_trace_file_dropped(file);
    assert_int_equal(pli_trace_file_close(&file, &err), PLAIT_OK);
    json_error_t why;
    json_t      *root = json_load_file(path, 0, &why);
    if (root == NULL) fail_msg("%s, line %d", why.text, why.line);
    unlink(path);
    return root;
}

/* Checks that a rank's events "X" are the spans 0, 1, ... of tell, in the order of the file; returns how many. */
static int64_t check_track(const json_t *root, int32_t rank, int32_t thread) {
    size_t  at;
    json_t *event;
    int64_t i = 0;
    json_array_foreach(json_object_get(root, "traceEvents"), at, event) {
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0) continue;
        if (json_integer_value(json_object_get(event, "pid")) != rank ||
            json_integer_value(json_object_get(event, "tid")) != thread)
            continue;
        const json_t *args = json_object_get(event, "args");
        const double  begin = 1000007.0 * (double)(i + 1) - 7 + rank;
        char          node[32];
        snprintf(node, sizeof node, "matmul#%d", (int)(i % 10));
        assert_string_equal(json_string_value(json_object_get(event, "name")), i % 2 == 0 ? "matmul" : "wait");
        assert_string_equal(json_string_value(json_object_get(event, "cat")), i % 2 == 0 ? "op" : "wait");
        assert_true(fabs(json_real_value(json_object_get(event, "ts")) * 1000 - begin) < 0.01);
        assert_true(fabs(json_real_value(json_object_get(event, "dur")) * 1000 - (double)i) < 0.01);
        if (i > 0) assert_int_equal(json_integer_value(json_object_get(args, "clock")), i - 1);
        else assert_null(json_object_get(args, "clock"));
        if (i % 2 == 0) assert_string_equal(json_string_value(json_object_get(args, "node")), node);
        else assert_string_equal(json_string_value(json_object_get(args, "for")), "clock \"7\"\n");
        i++;
    }
    return i;
}

static void test_what_was_told_is_there(void **state) {
    (void)state;
    pli_trace *trace = NULL;
    uint64_t   dropped;
    assert_int_equal(pli_trace_create(3, 2, 1 << 24, &trace, NULL), PLAIT_OK);
    for (int64_t i = 0; i < SPANS; i++) {
        tell(trace, 0, 0, i);
        tell(trace, 2, 1, i);
        tell(trace, 3, 0, i); /* no such rank */
        tell(trace, 0, 2, i);
    }
    json_t *root = write_and_read(trace, 3, &dropped);
    assert_int_equal(dropped, 0);
    assert_int_equal(check_track(root, 0, 0), SPANS);
    assert_int_equal(check_track(root, 2, 1), SPANS);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "otherData"), "spans")), 2 * SPANS);
    json_decref(root);
    pli_trace_destroy(&trace);
}

static void test_a_spent_budget_cuts_tracks_and_is_told(void **state) {
    (void)state;
    pli_trace *trace = NULL;
    uint64_t   dropped;
    assert_int_equal(pli_trace_create(2, 1, 20000, &trace, NULL), PLAIT_OK);
    for (int64_t i = 0; i < SPANS; i++)
        for (int32_t r = 0; r < 2; r++) tell(trace, r, 0, i);
    json_t *root = write_and_read(trace, 2, &dropped);
    int64_t there = check_track(root, 0, 0) + check_track(root, 1, 0);
    assert_in_range(there, 400, 2 * SPANS - 1);
    assert_int_equal(dropped, 2 * SPANS - there);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "otherData"), "dropped")), dropped);
    json_decref(root);
    pli_trace_destroy(&trace);
}

static plait_status add_sent(const char *sent, size_t bytes, plait_error *err) {
    pli_trace_file *file = NULL;
    assert_int_equal(pli_trace_file_open("trace-test.sent", "mpi", false, 7, &file, err), PLAIT_OK);
    const plait_status status = pli_trace_file_add_sent(file, 1, sent, bytes, err);
    pli_trace_file_abandon(&file);
    return status;
}

static void test_who_it_is_travels_too(void **state) {
    (void)state;
    const pli_trace_rank who = { .rank = 1, .pid = 4711, .server = true, .host = "elsewhere", .shift_ns = -5000 };
    pli_trace           *trace = NULL;
    pli_trace_file      *file = NULL;
    pli_text             sent = { 0 };
    plait_error          err = { 0 };
    json_error_t         why;
    assert_int_equal(pli_trace_create(2, 1, 1 << 20, &trace, NULL), PLAIT_OK);
    tell(trace, 1, 0, 0);
    pli_trace_pack_rank(&who, &sent);
    const size_t head = sent.length;
    pli_trace_pack(trace, 1, &sent);
    assert_int_equal(pli_trace_file_open("trace-test.sent", "mpi", false, 7, &file, &err), PLAIT_OK);
    assert_int_equal(pli_trace_file_add_sent(file, 1, sent.data, sent.length, &err), PLAIT_OK);
    assert_int_equal(pli_trace_file_close(&file, &err), PLAIT_OK);
    json_t *root = json_load_file("trace-test.sent", 0, &why), *event;
    size_t  at, named = 0, spans = 0;
    json_array_foreach(json_object_get(root, "traceEvents"), at, event) {
        const char *name = json_string_value(json_object_get(json_object_get(event, "args"), "name"));
        if (name != NULL && strcmp(name, "server 1 (elsewhere, process 4711)") == 0) named++;
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0) continue;
        assert_true(fabs(json_real_value(json_object_get(event, "ts")) * 1000 - (1000007.0 - 7 - 5000)) < 0.01);
        spans++;
    }
    assert_true(named == 1 && spans == 1);
    json_decref(root);
    unlink("trace-test.sent");
    for (size_t n = 0; n < head; n++) assert_int_equal(add_sent(sent.data, n, &err), PLAIT_EFORMAT);
    sent.data[0]++; /* the version */
    assert_int_equal(add_sent(sent.data, sent.length, &err), PLAIT_EVERSION);
    assert_non_null(strstr(err.text, "rank 1 sends spans of version 2, expected 1"));
    pli_text_free(&sent);
    pli_trace_destroy(&trace);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_told_is_there),
        cmocka_unit_test(test_a_spent_budget_cuts_tracks_and_is_told),
        cmocka_unit_test(test_who_it_is_travels_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
