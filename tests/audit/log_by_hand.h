/* log_by_hand.h - event logs that a test makes event by event and has audited. A test changes a good log in one
 * place. */
#ifndef PLI_TESTS_AUDIT_LOG_BY_HAND_H
#define PLI_TESTS_AUDIT_LOG_BY_HAND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch/audit/audit.h"

enum { WORKERS = 3, SHARDS = 2, SERVER = WORKERS /* rank of the first */, RANKS = WORKERS + SHARDS };

/* A log under construction. Every event takes a millisecond. */
typedef struct maker {
    char          path[64];
    pli_eventlog *log;
    uint64_t      now_ns;
    uint64_t      seq[WORKERS][SHARDS];
    bool          replicas;
    int32_t       spares; /* how many of the workers are spares, if there are replicas */
    const char   *consistency;
    const pli_event_group *group; /* whose tables these are; NULL: all workers' */
    char          cut_path[64]; /* of a rank whose log lies apart, and has no end */
    pli_eventlog *cut_log;      /* NULL: there is none */
    int32_t       cut_rank;
} maker;

static inline uint64_t now_of(void *user) { return ((maker *)user)->now_ns; }

static inline void raise_event(maker *m, pli_event event) {
    m->now_ns += 1000000;
    event.server = event.server || event.rank >= SERVER;
    event.group = m->group;
    const bool            apart = m->cut_log != NULL && event.rank == m->cut_rank;
    const pli_event_sink *sink = pli_eventlog_sink(apart ? m->cut_log : m->log);
    sink->raise(sink->user, &event);
}

/* From the beginning on: the rank died. */
static inline void cut_short(maker *m, int32_t rank) {
    m->cut_rank = rank;
    snprintf(m->cut_path, sizeof m->cut_path, "log_by_hand.%d.cut", (int)getpid());
    assert_int_equal(pli_eventlog_open(m->cut_path, RANKS, "0123456789abcdef", now_of, m, &m->cut_log, NULL), PLAIT_OK);
}

static inline void begin_group(maker *m, const pli_event_table *table, int32_t backup, const pli_event_group *group) {
    const pli_event_job job = { .workers = WORKERS, .servers = SHARDS, .first_server = SERVER, .backup = backup };
    const bool          replicas = table->way == PLI_WAY_SUMMED;
    *m = (maker){ .replicas = replicas, .group = group };
    snprintf(m->path, sizeof m->path, "log_by_hand.%d.events", (int)getpid());
    assert_int_equal(pli_eventlog_open(m->path, RANKS, "0123456789abcdef", now_of, m, &m->log, NULL), PLAIT_OK);
    for (int32_t rank = 0; rank < RANKS; rank++) {
        raise_event(m, (pli_event){ .kind = PLI_EVENT_JOB, .rank = rank, .info.job = &job });
        if (rank < SERVER || !replicas)
            raise_event(m, (pli_event){ .kind = PLI_EVENT_TABLE, .rank = rank, .info.table = table });
    }
}

static inline void begin_table(maker *m, const pli_event_table *table, int32_t backup) {
    begin_group(m, table, backup, NULL);
}

static inline void begin_with(maker *m, const char *consistency, bool ruled, bool replicas, int32_t backup) {
    const pli_event_table table = { .name = "w", .topology = replicas ? "allreduce" : "ps", .consistency = consistency,
                                    .rows = 100, .cols = 2, .way = replicas ? PLI_WAY_SUMMED : PLI_WAY_SERVED,
                                    .shards = replicas ? 0 : SHARDS, .ruled = ruled };
    begin_table(m, &table, backup);
}

static inline void begin(maker *m, const char *consistency, bool ruled, bool replicas) {
    begin_with(m, consistency, ruled, replicas, 0);
}

static inline void inc_norm(maker *m, int32_t rank, double norm) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_INC, .rank = rank, .rows = 1, .row = 7, .norm = norm });
}
static inline void inc(maker *m, int32_t rank) { inc_norm(m, rank, 1); }

/* One push: a message to each shard. Returns nothing; the messages' numbers are m->seq. */
static inline void push(maker *m, int32_t rank, int64_t clock) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_PUSH, .rank = rank, .clock = clock });
    for (int32_t s = 0; s < SHARDS && !m->replicas; s++) {
        const pli_event_part part = { .table = 0, .shard = s };
        raise_event(m, (pli_event){ .kind = PLI_EVENT_SEND, .rank = rank, .peer = s, .table = -1, .clock = clock,
                                    .seq = ++m->seq[rank][s], .n = 1, .info.part = &part });
    }
}

static inline void part(maker *m, pli_event_kind kind, int32_t shard, int32_t rank, uint64_t seq, int64_t clock) {
    raise_event(m, (pli_event){ .kind = kind, .rank = SERVER + shard, .peer = rank, .seq = seq, .clock = clock,
                                .shard = shard });
}
static inline void apply(maker *m, int32_t shard, int32_t rank, uint64_t seq, int64_t clock) {
    part(m, PLI_EVENT_APPLY, shard, rank, seq, clock);
}
static inline void apply_all(maker *m, int32_t rank, int64_t clock) {
    for (int32_t s = 0; s < SHARDS; s++) apply(m, s, rank, m->seq[rank][s], clock);
}

static inline void plain(maker *m, int32_t rank, pli_event_kind kind) {
    raise_event(m, (pli_event){ .kind = kind, .rank = rank, .table = -1 });
}
static inline void end_clock(maker *m, int32_t rank, int64_t clock) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_CLOCK, .rank = rank, .table = -1, .clock = clock });
}
static inline void tick(maker *m, int32_t shard, int32_t rank, int64_t clock) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_TICK, .rank = SERVER + shard, .table = -1, .peer = rank,
                                .seq = 1000 + (uint64_t)clock, .clock = clock });
}
static inline void sum(maker *m, int32_t rank, int64_t clock) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_SUM, .rank = rank, .clock = clock });
}

/* One clock of one worker, from its inc until both shards know that it has ended. */
static inline void whole_clock(maker *m, int32_t rank, int64_t clock) {
    inc(m, rank);
    push(m, rank, clock);
    end_clock(m, rank, clock);
    apply_all(m, rank, clock);
    for (int32_t s = 0; s < SHARDS; s++) tick(m, s, rank, clock);
}

static inline void get_full(maker *m, int32_t rank, int64_t clock, pli_event_piece piece, uint64_t incs,
                            uint64_t asked_ns) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_GET, .rank = rank, .clock = clock, .incs = incs, .n = 1,
                                .info.piece = &piece, .asked_ns = asked_ns });
}
/* A get of rows 0 .. 9 of shard 0, just fetched, with all own pushes in it. */
static inline void get(maker *m, int32_t rank, int64_t clock, uint64_t version, uint64_t incs) {
    get_full(m, rank, clock, (pli_event_piece){ .shard = m->replicas ? -1 : 0, .version = version,
                                                .rows = 10 }, incs, 0);
}

/* but: who has died; -1: nobody. */
static inline void end_but(maker *m, int32_t but) {
    for (int32_t rank = 0; rank < RANKS; rank++)
        if (rank != but) plain(m, rank, PLI_EVENT_DONE);
}
static inline void end(maker *m) { end_but(m, -1); }

/* --- judging ------------------------------------------------------------------------------------------------------ */

/* Closes the log and audits it. */
static inline plait_status audit_made(maker *m, const char *as, pli_logfile **file_out, pli_audit **audit_out,
                                      plait_error *err) {
    const char *path[] = { m->path, m->cut_path };
    const int   paths = m->cut_log != NULL ? 2 : 1;
    struct stat whole;
    assert_int_equal(pli_eventlog_close(&m->log, err), PLAIT_OK);
    if (paths == 2) {
        assert_int_equal(pli_eventlog_close(&m->cut_log, err), PLAIT_OK);
        assert_int_equal(stat(m->cut_path, &whole), 0);
        assert_int_equal(truncate(m->cut_path, whole.st_size - 1), 0);
    }
    const plait_status opened = pli_logfile_open(path, paths, file_out, err); /* they are mapped then */
    unlink(m->path);
    if (paths == 2) unlink(m->cut_path);
    return opened < 0 ? opened : pli_audit_run(*file_out, as, audit_out, err);
}

static inline void judge(maker *m, const char *as, pli_audit_verdict verdict, const char *rule, const char *words) {
    pli_logfile *file = NULL;
    pli_audit   *audit = NULL;
    plait_error  err = { 0 };
    if (audit_made(m, as, &file, &audit, &err) < 0) fail_msg("%s", err.text);
    const pli_audit_violation *first = pli_audit_first(audit);
    if (pli_audit_result(audit) != verdict)
        fail_msg("verdict %d: %s", (int)pli_audit_result(audit), first != NULL ? first->text : "");
    if (rule != NULL) {
        assert_string_equal(first->rule, rule);
        if (words != NULL && strstr(first->text, words) == NULL) fail_msg("'%s' is not in: %s", words, first->text);
    }
    pli_text text = { 0 };
    pli_audit_text(audit, &text);
    pli_audit_json(audit, &text);
    assert_false(text.failed);
    pli_text_free(&text);
    pli_audit_free(&audit);
    pli_logfile_close(&file);
}

/* The log contradicts itself. */
static inline void malformed(maker *m, const char *words) {
    pli_logfile *file = NULL;
    pli_audit   *audit = NULL;
    plait_error  err = { 0 };
    assert_int_equal(audit_made(m, NULL, &file, &audit, &err), PLAIT_EFORMAT);
    if (strstr(err.text, words) == NULL) fail_msg("'%s' is not in: %s", words, err.text);
    assert_null(audit);
    pli_logfile_close(&file);
}

static inline void proven(maker *m) {
    end(m);
    judge(m, NULL, PLI_AUDIT_PROVEN, NULL, NULL);
}
static inline void refuted(maker *m, const char *rule, const char *words) {
    end(m);
    judge(m, NULL, PLI_AUDIT_REFUTED, rule, words);
}

/* All workers go through some clocks in step, and read at the begin of each. */
static inline void in_step(maker *m, int64_t clocks) {
    for (int64_t c = 0; c < clocks; c++) {
        for (int32_t w = 0; w < WORKERS; w++) get(m, w, c, (uint64_t)(c * WORKERS), 0);
        for (int32_t w = 0; w < WORKERS; w++) whole_clock(m, w, c);
    }
}

#endif
