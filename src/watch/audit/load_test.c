/* Log files that are cut, garbled, of a newer version, of another run, or one of several for one rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "audit/log_by_hand.h"

static size_t read_file(const char *path, unsigned char **bytes_out) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    unsigned char *bytes = malloc(1 << 20);
    size_t         n = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    *bytes_out = bytes;
    return n;
}

static void write_file(const char *path, const unsigned char *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static plait_status audit_file(const char *path, pli_audit_verdict *verdict_out, plait_error *err) {
    pli_logfile *file = NULL;
    pli_audit   *audit = NULL;
    plait_status status = pli_logfile_open(&path, 1, &file, err);
    if (status >= 0) status = pli_audit_run(file, NULL, &audit, err);
    if (status >= 0) *verdict_out = pli_audit_result(audit);
    pli_audit_free(&audit);
    pli_logfile_close(&file);
    return status;
}

/* Tests a log that was never closed: of a run that was killed, whose servers were too quiet to fill a buffer. */
static void test_cut_tells_how_far(void **state) {
    (void)state;
    maker             m;
    unsigned char    *bytes;
    pli_logfile      *file = NULL;
    pli_audit        *audit = NULL;
    pli_text          text = { 0 };
    char              other[80];
    const char       *path = other;
    begin(&m, "bsp", false, false);
    for (int32_t clock = 0; clock < 4000; clock++) /* workers fill theirs */
        for (int32_t rank = 0; rank < WORKERS; rank++) {
            inc(&m, rank);
            push(&m, rank, clock);
            end_clock(&m, rank, clock);
        }
    size_t n = read_file(m.path, &bytes);
    snprintf(other, sizeof other, "%s.cut", m.path);
    write_file(other, bytes, n);
    assert_int_equal(pli_logfile_open(&path, 1, &file, NULL), PLAIT_OK);
    assert_int_equal(pli_logfile_streams(file), RANKS);
    assert_int_equal(pli_audit_run(file, NULL, &audit, NULL), PLAIT_OK);
    assert_int_equal(pli_audit_result(audit), PLI_AUDIT_CUT);
    pli_audit_text(audit, &text);
    assert_non_null(strstr(text.data, "events of 3 workers and 2 servers"));
    assert_non_null(strstr(text.data, "all workers had ended 3"));
    pli_text_free(&text);
    pli_audit_free(&audit);
    pli_logfile_close(&file);
    assert_int_equal(pli_eventlog_close(&m.log, NULL), PLAIT_OK);
    free(bytes);
    unlink(other);
    unlink(m.path);
}

static void test_two_consistencies_of_a_table(void **state) {
    const pli_event_table other = { .name = "w", .topology = "ps", .consistency = "ssp:3", .rows = 100, .cols = 2,
                                    .shards = SHARDS };
    (void)state;
    maker             m;
    plait_error       err = { 0 };
    pli_audit_verdict verdict;
    begin(&m, "ssp:2", false, false);
    raise_event(&m, (pli_event){ .kind = PLI_EVENT_TABLE, .rank = 1, .info.table = &other });
    end(&m);
    assert_int_equal(pli_eventlog_close(&m.log, NULL), PLAIT_OK);
    assert_int_equal(audit_file(m.path, &verdict, &err), PLAIT_EFORMAT);
    assert_non_null(strstr(err.text, "another consistency"));
    unlink(m.path);
}

static void test_cut_and_garbled(void **state) {
    (void)state;
    maker             m;
    unsigned char    *bytes;
    pli_audit_verdict verdict = PLI_AUDIT_PROVEN;
    plait_error       err = { 0 };
    begin(&m, "bsp", false, false);
    in_step(&m, 3);
    end(&m);
    assert_int_equal(pli_eventlog_close(&m.log, NULL), PLAIT_OK);
    size_t n = read_file(m.path, &bytes);
    for (size_t cut = 0; cut < n; cut++) { /* wherever it is cut, it is never proven */
        write_file(m.path, bytes, cut);
        plait_status status = audit_file(m.path, &verdict, &err);
        if (cut < 32) assert_int_equal(status, PLAIT_EFORMAT);
        else assert_true(status == PLAIT_OK && verdict == PLI_AUDIT_CUT);
    }
    for (size_t at = 0; at < n; at++) { /* nor is it with any byte changed */
        if (at >= 12 && at < 32) continue; /* reserved, and the run's name */
        bytes[at] ^= 0x5a;
        write_file(m.path, bytes, n);
        assert_true(audit_file(m.path, &verdict, &err) < 0 || verdict == PLI_AUDIT_CUT);
        bytes[at] ^= 0x5a;
    }
    bytes[8] = PLI_EVENTLOG_OLDEST; /* before groups: a log of all workers has the same bytes */
    write_file(m.path, bytes, n);
    assert_int_equal(audit_file(m.path, &verdict, &err), PLAIT_OK);
    assert_int_equal(verdict, PLI_AUDIT_PROVEN);
    bytes[8] = PLI_EVENTLOG_VERSION + 1;
    write_file(m.path, bytes, n);
    assert_int_equal(audit_file(m.path, &verdict, &err), PLAIT_EFORMAT);
    assert_non_null(strstr(err.text, "of version 14; this plait reads versions 5 to 13"));
    bytes[8] = PLI_EVENTLOG_VERSION;
    char other[80];
    snprintf(other, sizeof other, "%s.1", m.path);
    write_file(m.path, bytes, n);
    bytes[20] ^= 1;
    write_file(other, bytes, n);
    const char  *paths[] = { m.path, other };
    pli_logfile *file = NULL;
    assert_int_equal(pli_logfile_open(paths, 2, &file, &err), PLAIT_EFORMAT);
    assert_non_null(strstr(err.text, "of another run"));
    paths[1] = m.path;
    assert_int_equal(pli_logfile_open(paths, 2, &file, &err), PLAIT_EFORMAT);
    assert_non_null(strstr(err.text, "is the same log as a file before it"));
    unlink(other);
    unlink(m.path);
    free(bytes);
}

/* If ranks are processes, each writes a file; if one of them is missing, the audit concludes nothing. */
static void test_a_file_a_rank(void **state) {
    (void)state;
    const pli_event_job   job = { .workers = 2, .servers = 1, .first_server = 0 };
    const pli_event_table table = { .name = "w", .topology = "ps", .consistency = "async", .rows = 1, .cols = 1,
                                    .shards = 1 };
    char                  path[2][64];
    const char           *paths[2] = { path[0], path[1] };
    for (int32_t rank = 0; rank < 2; rank++) {
        pli_eventlog *log = NULL;
        snprintf(path[rank], sizeof path[rank], "load_test.%d.%d", (int)getpid(), (int)rank);
        assert_int_equal(pli_eventlog_open(path[rank], 2, "r", NULL, NULL, &log, NULL), PLAIT_OK);
        const pli_event_sink *sink = pli_eventlog_sink(log);
        for (int server = 0; server <= (rank == 0); server++) {
            sink->raise(sink->user, &(pli_event){ .kind = PLI_EVENT_JOB, .server = server, .rank = rank,
                                                  .info.job = &job });
            sink->raise(sink->user, &(pli_event){ .kind = PLI_EVENT_TABLE, .server = server, .rank = rank,
                                                  .info.table = &table });
            if (!server) sink->raise(sink->user, &(pli_event){ .kind = PLI_EVENT_CLOCK, .rank = rank, .table = -1 });
            if (server)
                for (int32_t w = 0; w < 2; w++)
                    sink->raise(sink->user, &(pli_event){ .kind = PLI_EVENT_TICK, .server = true, .rank = rank,
                                                          .table = -1, .peer = w });
            sink->raise(sink->user, &(pli_event){ .kind = PLI_EVENT_DONE, .server = server, .rank = rank,
                                                  .table = -1 });
        }
        assert_int_equal(pli_eventlog_close(&log, NULL), PLAIT_OK);
    }
    pli_logfile *file = NULL;
    pli_audit   *audit = NULL;
    plait_error  err = { 0 };
    assert_int_equal(pli_logfile_open(paths, 2, &file, &err), PLAIT_OK);
    assert_int_equal(pli_audit_run(file, NULL, &audit, &err), PLAIT_OK);
    assert_int_equal(pli_audit_result(audit), PLI_AUDIT_PROVEN);
    pli_audit_free(&audit);
    pli_logfile_close(&file);
    assert_int_equal(pli_logfile_open(paths, 1, &file, &err), PLAIT_OK);
    assert_int_equal(pli_audit_run(file, NULL, &audit, &err), PLAIT_EFORMAT);
    assert_non_null(strstr(err.text, "give the files of all ranks"));
    pli_logfile_close(&file);
    for (int32_t rank = 0; rank < 2; rank++) unlink(path[rank]);
}

/* A job of two workers that goes on at these clocks (-1: the worker does not say so) from these checkpoints, and ends
 * one clock, `clock`. */
static plait_status audit_going_on(const int64_t begins[2], const char *const from[2], int64_t clock,
                                   pli_audit_verdict *verdict, char *text, size_t bytes, plait_error *err) {
    const pli_event_job   job = { .workers = 2, .servers = 1, .first_server = 0 };
    const pli_event_table table = { .name = "w", .topology = "ps", .consistency = "async", .rows = 1, .cols = 1,
                                    .shards = 1 };
    char                  path[64];
    const char           *paths[] = { path };
    pli_eventlog         *log = NULL;
    snprintf(path, sizeof path, "load_test.%d.on", (int)getpid());
    assert_int_equal(pli_eventlog_open(path, 2, "r", NULL, NULL, &log, NULL), PLAIT_OK);
    const pli_event_sink *sink = pli_eventlog_sink(log);
    for (int32_t rank = 0; rank < 2; rank++)
        for (int server = 0; server <= (rank == 0); server++) {
            pli_event e = { .server = server, .rank = rank, .table = -1 };
            e.kind = PLI_EVENT_JOB;
            e.info.job = &job;
            sink->raise(sink->user, &e);
            for (int known = 0; known < 2 && !server && begins[rank] >= 0; known++) {
                e.kind = PLI_EVENT_BEGIN;
                e.clock = begins[rank];
                e.info.from = known ? from[rank] : "";
                sink->raise(sink->user, &e);
            }
            e.kind = PLI_EVENT_TABLE;
            e.table = 0;
            e.info.table = &table;
            sink->raise(sink->user, &e);
            e.kind = server ? PLI_EVENT_TICK : PLI_EVENT_CLOCK;
            e.table = -1;
            e.clock = clock;
            for (int32_t w = 0; w < (server ? 2 : 1); w++) {
                e.peer = w;
                sink->raise(sink->user, &e);
            }
            e.kind = PLI_EVENT_DONE;
            sink->raise(sink->user, &e);
        }
    assert_int_equal(pli_eventlog_close(&log, NULL), PLAIT_OK);
    pli_logfile *file = NULL;
    pli_audit   *audit = NULL;
    pli_text     report = { 0 };
    assert_int_equal(pli_logfile_open(paths, 1, &file, err), PLAIT_OK);
    plait_status status = pli_audit_run(file, NULL, &audit, err);
    if (status == PLAIT_OK) {
        *verdict = pli_audit_result(audit);
        pli_audit_text(audit, &report);
        snprintf(text, bytes, "%s", report.data);
    }
    pli_text_free(&report);
    pli_audit_free(&audit);
    pli_logfile_close(&file);
    unlink(path);
    return status;
}

static void test_a_job_that_goes_on(void **state) {
    (void)state;
    const char *const same[2] = { "checkpoint-5", "checkpoint-5" };
    const char *const other[2] = { "checkpoint-5", "checkpoint-6" };
    pli_audit_verdict verdict;
    plait_error       err = { 0 };
    char              text[2000];
    assert_int_equal(audit_going_on((int64_t[]){ 5, 5 }, same, 5, &verdict, text, sizeof text, &err), PLAIT_OK);
    assert_int_equal(verdict, PLI_AUDIT_PROVEN);
    assert_non_null(strstr(text, ", from clock 5 on\n  it goes on from checkpoint-5\n"));
    assert_int_equal(audit_going_on((int64_t[]){ 5, 5 }, same, 4, &verdict, text, sizeof text, &err), PLAIT_OK);
    assert_int_equal(verdict, PLI_AUDIT_REFUTED);
    assert_int_equal(audit_going_on((int64_t[]){ 5, 5 }, same, 6, &verdict, text, sizeof text, &err), PLAIT_OK);
    assert_int_equal(verdict, PLI_AUDIT_REFUTED);
    assert_int_equal(audit_going_on((int64_t[]){ -1, -1 }, same, 5, &verdict, text, sizeof text, &err), PLAIT_OK);
    assert_int_equal(verdict, PLI_AUDIT_REFUTED);
    assert_int_equal(audit_going_on((int64_t[]){ 5, 6 }, same, 5, &verdict, text, sizeof text, &err), PLAIT_EFORMAT);
    assert_non_null(strstr(err.text, "begins in another clock than the others"));
    assert_int_equal(audit_going_on((int64_t[]){ -1, 6 }, same, 5, &verdict, text, sizeof text, &err), PLAIT_EFORMAT);
    assert_int_equal(audit_going_on((int64_t[]){ 5, 5 }, other, 5, &verdict, text, sizeof text, &err), PLAIT_EFORMAT);
    assert_non_null(strstr(err.text, "goes on from another checkpoint than the others"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_tells_how_far),
        cmocka_unit_test(test_two_consistencies_of_a_table),
        cmocka_unit_test(test_cut_and_garbled),
        cmocka_unit_test(test_a_file_a_rank),
        cmocka_unit_test(test_a_job_that_goes_on),
    };
    return cmocka_run_group_tests_name("watch.audit.load", tests, NULL, NULL);
}
