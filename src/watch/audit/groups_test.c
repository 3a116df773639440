/* The audit of a group's tables: the members alone are held to the promise, by their own clocks; their ranks are named
 * as the run numbers them; and no other rank may take part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "audit/log_by_hand.h"
#include "watch/eventcode.h"

/* Members 1, 4 and 5 of a run; its servers, 6 and 7, have the shards. */
static const int32_t         ranks[RANKS] = { 1, 4, 5, 6, 7 };
static const pli_event_group group = { .id = 3, .name = "stage1", .n = RANKS, .rank = ranks };
static const pli_event_table table = { .name = "w", .topology = "ps", .consistency = "ssp:1", .rows = 100, .cols = 2,
                                       .way = PLI_WAY_SERVED, .shards = SHARDS };

static void begin_ours(maker *m, const pli_event_group *ours) { begin_group(m, &table, 0, ours); }

static void test_members_in_step(void **state) {
    (void)state;
    maker m;
    begin_ours(&m, &group);
    in_step(&m, 4);
    proven(&m);
}

static void test_the_report_names_group_and_ranks(void **state) {
    (void)state;
    maker        m;
    pli_logfile *file = NULL;
    pli_audit   *audit = NULL;
    pli_text     text = { 0 }, json = { 0 };
    begin_ours(&m, &group);
    in_step(&m, 2);
    end(&m);
    assert_int_equal(audit_made(&m, NULL, &file, &audit, NULL), PLAIT_OK);
    pli_audit_text(audit, &text);
    pli_audit_json(audit, &json);
    assert_non_null(strstr(text.data, "group stage1 (ranks 1, 4, 5): "));
    assert_non_null(strstr(text.data, "table w of group stage1: ps, additive, judged as ssp:1"));
    assert_non_null(strstr(json.data, "\"group\": \"stage1\", \"members\": [1, 4, 5]"));
    pli_text_free(&text);
    pli_text_free(&json);
    pli_audit_free(&audit);
    pli_logfile_close(&file);
}

static void test_a_member_reads_too_stale(void **state) {
    (void)state;
    for (int64_t clock = 1; clock < 3; clock++) {
        maker m;
        begin_ours(&m, &group);
        for (int64_t c = 0; c < clock; c++) whole_clock(&m, 1, c);
        get(&m, 1, clock, (uint64_t)clock, 0); /* the others have ended none */
        for (int32_t w = 0; w < WORKERS; w += 2)
            for (int64_t c = 0; c < clock; c++) whole_clock(&m, w, c);
        if (clock == 1) proven(&m);
        else refuted(&m, "staleness", "rank 4 in clock 2 got row 0 of table w");
    }
}

static void test_an_update_lost(void **state) {
    (void)state;
    maker m;
    begin_ours(&m, &group);
    in_step(&m, 2);
    inc(&m, 2);
    push(&m, 2, 2);
    end_clock(&m, 2, 2);
    apply(&m, 0, 2, m.seq[2][0], 2);
    for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 2, 2);
    refuted(&m, "exactly once", "of rank 5 to shard 1 of table w was never applied");
}

/* Its first table was made behind the job's first clock. */
static void test_a_group_that_begins_later(void **state) {
    const pli_event_group late = { .id = 3, .name = "stage1", .first_clock = 5, .n = RANKS, .rank = ranks };
    (void)state;
    for (int early = 0; early < 2; early++) {
        maker m;
        begin_ours(&m, &late);
        tick(&m, 0, 0, 2); /* a server enters the clocks that had ended before */
        for (int64_t c = 5; c < 8; c++) {
            for (int32_t w = 0; w < WORKERS && !early; w++) get(&m, w, c, (uint64_t)((c - 5) * WORKERS), 0);
            for (int32_t w = 0; w < WORKERS; w++) whole_clock(&m, w, early ? c - 5 : c);
        }
        if (early) refuted(&m, "clocks", "rank 1 pushed to table w");
        else proven(&m);
    }
}

/* --- a rank that is no member ------------------------------------------------------------------------------------ */

static void put_u32(unsigned char *at, uint32_t x) {
    for (int i = 0; i < 4; i++) at[i] = (unsigned char)(x >> 8 * i);
}

/* Writes the stream of a member's worker once more, as that of another rank. */
static void add_stranger(const char *path, int32_t member, int32_t stranger) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    unsigned char *bytes = malloc(1 << 20), *more = malloc(1 << 20);
    size_t         n = fread(bytes, 1, 1 << 20, file), at = PLI_LOG_HEAD_BYTES, added = 0;
    uint64_t       chunks = 0;
    while (bytes[at] == 'R') {
        unsigned char *chunk = bytes + at;
        const size_t   long_ = PLI_LOG_CHUNK_BYTES + (size_t)(chunk[8] | chunk[9] << 8 | chunk[10] << 16);
        at += long_;
        chunks++;
        if (chunk[1] != 0 || chunk[2] != group.id || chunk[4] != member) continue;
        memcpy(more + added, chunk, long_);
        chunk = more + added;
        put_u32(chunk + 4, (uint32_t)stranger);
        put_u32(chunk + 12, pli_log_checksum(chunk, chunk + PLI_LOG_CHUNK_BYTES, long_ - PLI_LOG_CHUNK_BYTES));
        added += long_;
        chunks++;
    }
    assert_true(added > 0 && n == at + PLI_LOG_CHUNK_BYTES + 8);
    unsigned char *end_chunk = more + added;
    memcpy(end_chunk, bytes + at, PLI_LOG_CHUNK_BYTES + 8);
    put_u32(end_chunk + PLI_LOG_CHUNK_BYTES, (uint32_t)chunks);
    put_u32(end_chunk + 12, pli_log_checksum(end_chunk, end_chunk + PLI_LOG_CHUNK_BYTES, 8));
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(more, 1, added + PLI_LOG_CHUNK_BYTES + 8, file), added + PLI_LOG_CHUNK_BYTES + 8);
    fclose(file);
    free(bytes);
    free(more);
}

static void test_a_non_member_is_refuted(void **state) {
    (void)state;
    maker        m;
    pli_logfile *file = NULL;
    pli_audit   *audit = NULL;
    begin_ours(&m, &group);
    in_step(&m, 2);
    end(&m);
    const char *path = m.path;
    assert_int_equal(pli_eventlog_close(&m.log, NULL), PLAIT_OK);
    add_stranger(path, 4, 2);
    assert_int_equal(pli_logfile_open(&path, 1, &file, NULL), PLAIT_OK);
    unlink(path);
    assert_int_equal(pli_audit_run(file, NULL, &audit, NULL), PLAIT_OK);
    assert_int_equal(pli_audit_result(audit), PLI_AUDIT_REFUTED);
    const pli_audit_violation *first = pli_audit_first(audit);
    assert_string_equal(first->rule, "members");
    assert_int_equal(first->rank, 2);
    assert_non_null(strstr(first->text, "rank 2, which is no member of group stage1, took part"));
    pli_audit_free(&audit);
    pli_logfile_close(&file);
}

/* A server that applies what a rank outside of the group has sent, under a member's name: it was never sent. */
static void test_an_update_of_nobody(void **state) {
    (void)state;
    maker m;
    begin_ours(&m, &group);
    in_step(&m, 1);
    apply(&m, 1, 0, 77, 0);
    refuted(&m, "exactly once", "message 77 of rank 1, an update that was never sent");
}

static void test_members_that_differ(void **state) {
    static const int32_t  others[RANKS] = { 0, 4, 5, 6, 7 };
    const pli_event_group other = { .id = 3, .name = "stage1", .n = RANKS, .rank = others };
    const pli_event_job   job = { .workers = WORKERS, .servers = SHARDS, .first_server = SERVER };
    (void)state;
    maker m;
    begin_ours(&m, &group);
    m.group = &other;
    raise_event(&m, (pli_event){ .kind = PLI_EVENT_JOB, .rank = 1, .info.job = &job });
    end(&m);
    malformed(&m, "was in another job");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_in_step),
        cmocka_unit_test(test_the_report_names_group_and_ranks),
        cmocka_unit_test(test_a_member_reads_too_stale),
        cmocka_unit_test(test_an_update_lost),
        cmocka_unit_test(test_a_group_that_begins_later),
        cmocka_unit_test(test_a_non_member_is_refuted),
        cmocka_unit_test(test_an_update_of_nobody),
        cmocka_unit_test(test_members_that_differ),
    };
    return cmocka_run_group_tests_name("watch.audit.groups", tests, NULL, NULL);
}
