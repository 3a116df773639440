/* Logs made by hand: good ones are proven, and one for every way to break a promise is refuted for that reason; logs
 * that are cut, garbled, empty, of a newer version or of another run are told as such. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch/audit/audit.h"
#include "watch/audit/promise.h"

enum { WORKERS = 3, SHARDS = 2, SERVER = WORKERS /* rank of the first */, RANKS = WORKERS + SHARDS, RUN_BYTES = 17 };

/* A log under construction. Every event takes a millisecond. */
typedef struct maker {
    char          path[64];
    pli_eventlog *log;
    uint64_t      now_ns;
    uint64_t      seq[WORKERS][SHARDS];
    bool          replicas;
} maker;

static uint64_t now_of(void *user) { return ((maker *)user)->now_ns; }

static void raise_event(maker *m, pli_event event) {
    m->now_ns += 1000000;
    event.server = event.rank >= SERVER;
    const pli_event_sink *sink = pli_eventlog_sink(m->log);
    sink->raise(sink->user, &event);
}

static void begin_table(maker *m, const pli_event_table *table, int32_t backup) {
    const pli_event_job job = { .workers = WORKERS, .servers = SHARDS, .first_server = SERVER, .backup = backup };
    const bool          replicas = table->way == PLI_WAY_SUMMED;
    *m = (maker){ .replicas = replicas };
    snprintf(m->path, sizeof m->path, "audit_test.%d.events", (int)getpid());
    assert_int_equal(pli_eventlog_open(m->path, RANKS, "0123456789abcdef", now_of, m, &m->log, NULL), PLAIT_OK);
    for (int32_t rank = 0; rank < RANKS; rank++) {
        raise_event(m, (pli_event){ .kind = PLI_EVENT_JOB, .rank = rank, .info.job = &job });
        if (rank < SERVER || !replicas)
            raise_event(m, (pli_event){ .kind = PLI_EVENT_TABLE, .rank = rank, .info.table = table });
    }
}

static void begin_with(maker *m, const char *consistency, bool ruled, bool replicas, int32_t backup) {
    const pli_event_table table = { .name = "w", .topology = replicas ? "allreduce" : "ps", .consistency = consistency,
                                    .rows = 100, .cols = 2, .way = replicas ? PLI_WAY_SUMMED : PLI_WAY_SERVED,
                                    .shards = replicas ? 0 : SHARDS, .ruled = ruled };
    begin_table(m, &table, backup);
}

static void begin(maker *m, const char *consistency, bool ruled, bool replicas) {
    begin_with(m, consistency, ruled, replicas, 0);
}

static void inc_norm(maker *m, int32_t rank, double norm) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_INC, .rank = rank, .rows = 1, .row = 7, .norm = norm });
}
static void inc(maker *m, int32_t rank) { inc_norm(m, rank, 1); }

/* One push: a message to each shard. Returns nothing; the messages' numbers are m->seq. */
static void push(maker *m, int32_t rank, int64_t clock) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_PUSH, .rank = rank, .clock = clock });
    for (int32_t s = 0; s < SHARDS && !m->replicas; s++) {
        const pli_event_part part = { .table = 0, .shard = s };
        raise_event(m, (pli_event){ .kind = PLI_EVENT_SEND, .rank = rank, .peer = s, .table = -1, .clock = clock,
                                    .seq = ++m->seq[rank][s], .n = 1, .info.part = &part });
    }
}

static void part(maker *m, pli_event_kind kind, int32_t shard, int32_t rank, uint64_t seq, int64_t clock) {
    raise_event(m, (pli_event){ .kind = kind, .rank = SERVER + shard, .peer = rank, .seq = seq, .clock = clock,
                                .shard = shard });
}
static void apply(maker *m, int32_t shard, int32_t rank, uint64_t seq, int64_t clock) {
    part(m, PLI_EVENT_APPLY, shard, rank, seq, clock);
}
static void apply_all(maker *m, int32_t rank, int64_t clock) {
    for (int32_t s = 0; s < SHARDS; s++) apply(m, s, rank, m->seq[rank][s], clock);
}

static void plain(maker *m, int32_t rank, pli_event_kind kind) {
    raise_event(m, (pli_event){ .kind = kind, .rank = rank, .table = -1 });
}
static void end_clock(maker *m, int32_t rank, int64_t clock) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_CLOCK, .rank = rank, .table = -1, .clock = clock });
}
static void tick(maker *m, int32_t shard, int32_t rank, int64_t clock) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_TICK, .rank = SERVER + shard, .table = -1, .peer = rank,
                                .seq = 1000 + (uint64_t)clock, .clock = clock });
}
static void sum(maker *m, int32_t rank, int64_t clock) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_SUM, .rank = rank, .clock = clock });
}

/* A clock of one worker, from its inc to where both shards know that it has ended. */
static void whole_clock(maker *m, int32_t rank, int64_t clock) {
    inc(m, rank);
    push(m, rank, clock);
    end_clock(m, rank, clock);
    apply_all(m, rank, clock);
    for (int32_t s = 0; s < SHARDS; s++) tick(m, s, rank, clock);
}

static void get_full(maker *m, int32_t rank, int64_t clock, pli_event_piece piece, uint64_t incs, uint64_t asked_ns) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_GET, .rank = rank, .clock = clock, .incs = incs, .n = 1,
                                .info.piece = &piece, .asked_ns = asked_ns });
}
/* Rows 0 .. 9 of shard 0, just fetched, with all own pushes in it. */
static void get(maker *m, int32_t rank, int64_t clock, uint64_t version, uint64_t incs) {
    get_full(m, rank, clock, (pli_event_piece){ .shard = m->replicas ? -1 : 0, .version = version,
                                                .rows = 10 }, incs, 0);
}

static void end(maker *m) {
    for (int32_t rank = 0; rank < RANKS; rank++) plain(m, rank, PLI_EVENT_DONE);
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

static void judge(maker *m, const char *as, pli_audit_verdict verdict, const char *rule, const char *words) {
    pli_logfile *file = NULL;
    pli_audit   *audit = NULL;
    plait_error  err = { 0 };
    const char  *path = m->path;
    assert_int_equal(pli_eventlog_close(&m->log, &err), PLAIT_OK);
    if (pli_logfile_open(&path, 1, &file, &err) < 0 || pli_audit_run(file, as, &audit, &err) < 0)
        fail_msg("%s", err.text);
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
    unlink(m->path);
}

static void proven(maker *m) {
    end(m);
    judge(m, NULL, PLI_AUDIT_PROVEN, NULL, NULL);
}
static void refuted(maker *m, const char *rule, const char *words) {
    end(m);
    judge(m, NULL, PLI_AUDIT_REFUTED, rule, words);
}

/* --- what holds --------------------------------------------------------------------------------------------------- */

/* All workers in step for some clocks, reading at each begin. */
static void in_step(maker *m, int64_t clocks) {
    for (int64_t c = 0; c < clocks; c++) {
        for (int32_t w = 0; w < WORKERS; w++) get(m, w, c, (uint64_t)(c * WORKERS), 0);
        for (int32_t w = 0; w < WORKERS; w++) whole_clock(m, w, c);
    }
}

static void test_lockstep_keeps_every_promise(void **state) {
    static const char *const all[] = { "bsp",     "ssp:0",       "ssp:3",           "essp:2",
                                       "asp:2:3", "async",       "bounded-delay:0", "bounded-delay:2",
                                       "vap:100", "vap:50:weak", "downpour:1:1",    "my-own:4" };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int ruled = 0; ruled < 2; ruled++) {
            maker m;
            begin(&m, all[i], ruled, false);
            in_step(&m, 6);
            proven(&m);
        }
}

static void test_turns(void **state) {
    (void)state;
    maker m;
    for (int late = 0; late < 3; late++) {
        begin(&m, "sequential", false, false);
        for (int32_t turn = 0; turn < 3 * WORKERS; turn++) {
            int64_t version = turn - (late == 1 && turn == 5) + (late == 2 && turn == 5);
            get(&m, turn % WORKERS, turn / WORKERS, (uint64_t)version, 0);
            whole_clock(&m, turn % WORKERS, turn / WORKERS);
        }
        if (late == 0) proven(&m);
        else if (late == 1) refuted(&m, "turns", "rank 2 in clock 1");
        else refuted(&m, "versions", "before it was made");
    }
    begin(&m, "sequential", false, false);
    get(&m, 0, 0, 0, 0);
    whole_clock(&m, 0, 0);
    whole_clock(&m, 1, 0);
    whole_clock(&m, 2, 0);
    get(&m, 0, 1, 3, 0);
    whole_clock(&m, 1, 1);
    get(&m, 0, 1, 4, 0);
    refuted(&m, "turns", "holds push 2 of rank 1");
}

/* After a barrier a get may go without a turn, and says so; one that says nothing has waited for it. */
static void test_turns_after_a_barrier(void **state) {
    (void)state;
    for (int met = 1; met >= 0; met--) {
        maker                 m;
        const pli_event_piece piece = { .shard = 0, .rows = 10 };
        begin(&m, "sequential", false, false);
        for (int32_t w = 0; w < WORKERS; w++) plain(&m, w, PLI_EVENT_BARRIER);
        raise_event(&m, (pli_event){ .kind = PLI_EVENT_GET, .rank = 1, .met = met, .n = 1, .info.piece = &piece });
        for (int32_t w = 0; w < WORKERS; w++) whole_clock(&m, w, 0);
        if (met) proven(&m);
        else refuted(&m, "turns", "rank 1 in clock 0");
    }
}

static void test_a_fast_worker_under_ssp(void **state) {
    (void)state;
    for (int64_t lead = 2; lead <= 3; lead++) { /* ssp:2: it may be two clocks ahead, not three */
        maker m;
        begin(&m, "ssp:2", false, false);
        for (int64_t c = 0; c < lead; c++) {
            get(&m, 0, c, (uint64_t)c, 0);
            whole_clock(&m, 0, c);
        }
        get(&m, 0, lead, (uint64_t)lead, 0);
        for (int64_t c = 0; c < lead; c++)
            for (int32_t w = 1; w < WORKERS; w++) whole_clock(&m, w, c);
        if (lead == 2) proven(&m);
        else refuted(&m, "staleness", "row 0 of table w");
    }
}

static void test_copies_with_own_updates(void **state) {
    (void)state;
    maker m;
    begin(&m, "ssp:3", false, false);
    get(&m, 1, 0, 0, 0);
    inc(&m, 1);
    get_full(&m, 1, 0, (pli_event_piece){ .shard = 0, .rows = 10 }, 1, 0); /* not yet pushed: laid over */
    push(&m, 1, 0);
    end_clock(&m, 1, 0);
    /* pushed: laid over the copy */
    get_full(&m, 1, 1, (pli_event_piece){ .shard = 0, .rows = 10, .to = 1, .age = 1 }, 0, 0);
    apply_all(&m, 1, 0);
    /* in what was fetched */
    get_full(&m, 1, 1, (pli_event_piece){ .shard = 0, .version = 1, .rows = 10, .from = 1, .to = 1 }, 0, 0);
    for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 1, 0);
    proven(&m);
}

static void test_dropped_died_and_left(void **state) {
    (void)state;
    for (int32_t backup = 0; backup < 2; backup++) {
        maker m;
        begin_with(&m, "bsp", false, false, backup);
        whole_clock(&m, 0, 0);
        whole_clock(&m, 1, 0);
        inc(&m, 2);
        push(&m, 2, 0);
        end_clock(&m, 2, 0);
        get(&m, 0, 1, 2, 0);
        for (int32_t s = 0; s < SHARDS; s++) part(&m, PLI_EVENT_DROP, s, 2, 1, 0); /* a backup rule: late */
        for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 2, 0);
        inc(&m, 1);
        plain(&m, 1, PLI_EVENT_LEAVE); /* what was not pushed is dropped */
        get(&m, 1, 1, 2, 0);
        if (backup > 0) proven(&m);
        else refuted(&m, "exactly once", "which no rule of this job allows");
    }

    maker m;
    begin(&m, "bsp", false, false);
    whole_clock(&m, 0, 0);
    whole_clock(&m, 1, 0);
    inc(&m, 2);
    push(&m, 2, 0); /* and dies */
    for (int32_t s = 0; s < SHARDS; s++)
        raise_event(&m, (pli_event){ .kind = PLI_EVENT_GONE, .rank = SERVER + s, .table = -1, .peer = 2 });
    get(&m, 0, 1, 2, 0);
    for (int32_t rank = 0; rank < RANKS; rank++)
        if (rank != 2) plain(&m, rank, PLI_EVENT_DONE);
    judge(&m, NULL, PLI_AUDIT_PROVEN, NULL, NULL);
}

/* A backup rule drops what comes when all but the backup workers, or all others that are there, have ended the
 * clock. */
static void test_dropped_too_soon(void **state) {
    enum { LATE = 2 };
    (void)state;
    for (int32_t ended = 0; ended < WORKERS; ended++) /* how many others have */
        for (int left = 0; left < 2; left++) {        /* has one of them, and left then? */
            maker m;
            begin_with(&m, "bsp", true, false, 1);
            for (int32_t w = 0; w < ended; w++) whole_clock(&m, w, 0);
            if (left) plain(&m, 0, PLI_EVENT_LEAVE);
            inc(&m, LATE);
            push(&m, LATE, 0);
            for (int32_t s = 0; s < SHARDS; s++) part(&m, PLI_EVENT_DROP, s, LATE, 1, 0);
            end_clock(&m, LATE, 0);
            for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, LATE, 0);
            if (ended == WORKERS - 1) proven(&m);
            else refuted(&m, "exactly once", "when the clock was not complete without it");
        }
}

/* A run that broke off before a late push came: with backup workers it would have been dropped, without it was due. */
static void test_broken_off_before_a_late_push(void **state) {
    (void)state;
    for (int32_t backup = 0; backup < 2; backup++) {
        maker m;
        begin_with(&m, "bsp", false, false, backup);
        whole_clock(&m, 0, 0);
        whole_clock(&m, 1, 0);
        get(&m, 0, 1, 2, 0);
        inc(&m, 2);
        push(&m, 2, 0); /* and the servers are gone */
        if (backup > 0) judge(&m, NULL, PLI_AUDIT_CUT, NULL, NULL);
        else judge(&m, NULL, PLI_AUDIT_REFUTED, "staleness", "never applied");
    }
}

static void test_replicas(void **state) {
    static const char *const rules[] = { NULL, "own updates", "versions", "exactly once", "exactly once" };
    (void)state;
    for (int broken = 0; broken < 5; broken++) {
        maker m;
        begin(&m, "bsp", true, true);
        for (int64_t c = 0; c < 4; c++) {
            for (int32_t w = 0; w < WORKERS; w++) {
                bool here = w == 1 && c == 2;
                get(&m, w, c, (uint64_t)(c - (here && broken == 1) + (here && broken == 2)), 0);
                inc(&m, w);
                push(&m, w, c);
                end_clock(&m, w, c);
                if (broken == 3 && w == 1 && c == 3) continue;
                sum(&m, w, broken == 4 && here ? 3 : c);
            }
        }
        if (rules[broken] == NULL) proven(&m);
        else refuted(&m, rules[broken], "rank 1");
    }
}

/* --- what does not ------------------------------------------------------------------------------------------------ */

/* Rounds of two clocks over servers: what copies have moved leaves at the round's end, from what the round began
 * with. */
static void test_rounds_of_clocks(void **state) {
    static const char *const rules[] = { NULL, "rounds", "rounds", "staleness" };
    (void)state;
    for (int broken = 0; broken < 4; broken++) {
        maker m;
        begin(&m, "local-sgd:2", false, false);
        for (int64_t c = 0; c < 6; c++) {
            bool ends = c % 2 == 1;
            for (int32_t w = 0; w < WORKERS; w++) {
                bool here = w == 1 && c >= 2 && c < 4;
                bool late = broken == 3 && here;
                if (!ends && !(broken == 2 && here)) get(&m, w, c, (uint64_t)(c / 2 * WORKERS - late), 0);
                if (!ends && !(broken == 1 && here)) continue;
                inc(&m, w);
                push(&m, w, c);
            }
            for (int32_t w = 0; w < WORKERS; w++) end_clock(&m, w, c);
            for (int32_t w = 0; w < WORKERS; w++) {
                if (ends || (broken == 1 && w == 1 && c == 2)) apply_all(&m, w, c);
                for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, w, c);
            }
        }
        if (broken == 0) proven(&m);
        else refuted(&m, rules[broken], NULL);
    }
}

static void test_own_updates(void **state) {
    (void)state;
    maker m;
    begin(&m, "async", false, false);
    inc(&m, 1);
    inc(&m, 1);
    get(&m, 1, 0, 0, 1);
    push(&m, 1, 0);
    apply_all(&m, 1, 0);
    refuted(&m, "own updates", "1 of its own 2 updates not yet pushed");

    begin(&m, "async", false, false);
    inc(&m, 1);
    push(&m, 1, 0);
    get(&m, 1, 0, 0, 0);
    apply_all(&m, 1, 0);
    refuted(&m, "own updates", "its own push 1 (clock 0, sent at");

    begin(&m, "async", false, false);
    inc(&m, 1);
    push(&m, 1, 0);
    apply_all(&m, 1, 0);
    get_full(&m, 1, 0, (pli_event_piece){ .shard = 0, .version = 1, .rows = 10, .from = 0, .to = 1 }, 0, 0);
    refuted(&m, "own updates", "twice");

    begin(&m, "async", true, false);
    inc(&m, 1);
    push(&m, 1, 0);
    get(&m, 1, 0, 0, 0); /* ruled: the own gradient of this clock need not be seen */
    end_clock(&m, 1, 0);
    get(&m, 1, 1, 0, 0);
    apply_all(&m, 1, 0);
    for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 1, 0);
    refuted(&m, "own updates", "rank 1 in clock 1");
}

static void test_rows_that_go_back(void **state) {
    static const uint64_t keys[] = { 4, 5, 6 }, others[] = { 40, 41 };
    const pli_event_piece by_key = { .shard = 0, .first = -1, .rows = 3, .keys = keys, .n_keys = 3 };
    const pli_event_piece by_other = { .shard = 0, .first = -1, .rows = 2, .keys = others, .n_keys = 2 };
    const pli_event_piece by_range = { .shard = 0, .first = 3, .rows = 5 };
    const pli_event_piece pairs[5][2] = {
        { by_key, by_key }, { by_range, by_range }, { by_key, by_range }, { by_range, by_key }, { by_key, by_other }
    };
    (void)state;
    for (int i = 0; i < 5; i++) {
        maker m;
        begin(&m, "ssp:5", false, false);
        whole_clock(&m, 0, 0);
        whole_clock(&m, 2, 0);
        for (int k = 0; k < 2; k++) {
            pli_event_piece piece = pairs[i][k];
            piece.version = k == 0 ? 2 : 1;
            get_full(&m, 1, 0, piece, 0, 0);
        }
        if (i < 4) refuted(&m, "monotone reads", "after it had got the row from version 2");
        else proven(&m);
    }
}

/* Of two gets under way at once the later one may be newer, in whatever order they are looked at. */
static void test_of_gets_under_way_the_later_may_be_newer(void **state) {
    (void)state;
    for (int after = 0; after < 2; after++) {
        maker m;
        begin(&m, "ssp:5", false, false);
        uint64_t early = m.now_ns;
        whole_clock(&m, 0, 0);
        whole_clock(&m, 2, 0);
        get_full(&m, 1, 0, (pli_event_piece){ .shard = 0, .version = 2, .rows = 10 }, 0, m.now_ns);
        get_full(&m, 1, 0, (pli_event_piece){ .shard = 0, .version = 1, .rows = 10 }, 0, after ? m.now_ns : early);
        if (after) refuted(&m, "monotone reads", "after it had got the row from version 2");
        else proven(&m);
    }
}

static void test_exactly_once(void **state) {
    (void)state;
    for (int broken = 0; broken < 6; broken++) {
        maker m;
        begin_with(&m, "async", false, false, 1);
        for (int32_t w = 1; w < WORKERS; w++) whole_clock(&m, w, 0); /* rank 0 is late */
        inc(&m, 0);
        push(&m, 0, 0);
        inc(&m, 0);
        push(&m, 0, 0);
        apply(&m, 1, 0, 1, 0);
        apply(&m, 1, 0, 2, 0);
        if (broken == 0) apply(&m, 0, 0, 1, 0), apply(&m, 0, 0, 1, 0), apply(&m, 0, 0, 2, 0);
        if (broken == 1) apply(&m, 0, 0, 1, 0);
        if (broken == 2) apply(&m, 0, 0, 2, 0), apply(&m, 0, 0, 1, 0);
        if (broken == 3) apply(&m, 0, 0, 1, 0), apply(&m, 0, 0, 2, 0), apply(&m, 0, 0, 3, 0);
        if (broken == 4) part(&m, PLI_EVENT_DROP, 0, 0, 1, 0), apply(&m, 0, 0, 1, 0), apply(&m, 0, 0, 2, 0);
        if (broken == 5) apply(&m, 0, 0, 1, 0), part(&m, PLI_EVENT_DROP, 0, 0, 1, 0), apply(&m, 0, 0, 2, 0);
        static const char *const words[] = { "was applied twice",           "never applied",
                                             "before its earlier push",     "never sent",
                                             "was dropped and yet applied", "applied and yet reported as dropped" };
        if (broken == 2) refuted(&m, "exactly once", "was applied at");
        else refuted(&m, "exactly once", words[broken]);
    }
}

static void test_clocks(void **state) {
    (void)state;
    maker m;
    begin(&m, "async", false, false);
    whole_clock(&m, 0, 0);
    end_clock(&m, 0, 2);
    refuted(&m, "clocks", "ended clock 2 after clock 0");

    begin(&m, "async", false, false);
    whole_clock(&m, 0, 0);
    end_clock(&m, 0, 1);
    tick(&m, 0, 0, 1);
    refuted(&m, "clocks", "ended 2 clocks, of which the server of rank 4 knows 1");

    begin(&m, "async", false, false);
    whole_clock(&m, 0, 0);
    tick(&m, 0, 0, 0);
    refuted(&m, "clocks", "when clock 1 was due");

    begin(&m, "async", false, false);
    inc(&m, 0);
    push(&m, 0, 0);
    apply(&m, 0, 0, 1, 0);
    apply(&m, 1, 0, 1, 5);
    refuted(&m, "clocks", "as one of clock 5");
}

static void test_the_future(void **state) {
    (void)state;
    maker m;
    begin(&m, "bsp", false, false);
    whole_clock(&m, 0, 0);
    get(&m, 1, 0, 1, 0);
    refuted(&m, "future", "holds push 1 of rank 0 (clock 0");
}

static void test_fetches_and_pushes(void **state) {
    (void)state;
    maker m;
    for (int64_t age = 1; age < 3; age++) {
        begin(&m, "downpour:2:9", true, false);
        get_full(&m, 0, 0, (pli_event_piece){ .shard = 0, .rows = 4, .age = age }, 0, 0);
        if (age == 1) proven(&m);
        else refuted(&m, "fetches", "asked for 2 clocks before");
    }
    begin(&m, "bounded-delay:3", true, false);
    get_full(&m, 0, 0, (pli_event_piece){ .shard = 0, .rows = 4, .age = 1 }, 0, 0);
    refuted(&m, "fetches", NULL);

    for (int late = 0; late < 2; late++) {
        begin(&m, "downpour:1:2", true, false);
        inc(&m, 0);
        end_clock(&m, 0, 0);
        if (late) end_clock(&m, 0, 1);
        push(&m, 0, 1 + late);
        if (!late) end_clock(&m, 0, 1);
        apply_all(&m, 0, 1 + late);
        for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 0, 0), tick(&m, s, 0, 1);
        if (late) refuted(&m, "pushes", "ended clock 1");
        else proven(&m);
    }
}

/* An inc that never leaves is missed by nobody's reads alone: where a worker reads ruled tables, or not at all. */
static void test_an_update_that_is_never_pushed(void **state) {
    static const char *const all[] = { "bsp", "ssp:3", "async", "downpour:1:1" };
    (void)state;
    maker m;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int replicas = 0; replicas < 1 + (i == 0); replicas++) {
            begin(&m, all[i], true, replicas);
            inc(&m, 2);
            for (int64_t c = 0; c < 2; c++) {
                end_clock(&m, 2, c);
                for (int32_t s = 0; s < SHARDS && !replicas; s++) tick(&m, s, 2, c);
                for (int32_t w = 0; w < WORKERS && replicas; w++) sum(&m, w, c);
                for (int32_t w = 0; w < 2 && replicas; w++) end_clock(&m, w, c);
            }
            refuted(&m, "pushes", "with an update of clock 0 of table w not yet pushed");
        }
    /* what downpour keeps back leaves before a barrier, and before the worker does */
    static const pli_event_kind ends[] = { PLI_EVENT_BARRIER, PLI_EVENT_LEAVE, PLI_EVENT_DONE };
    for (int i = 0; i < 3; i++) {
        begin(&m, i == 0 ? "my-own:4" : "downpour:1:9", true, false);
        inc(&m, 2);
        end_clock(&m, 2, 0);
        for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 2, 0);
        if (ends[i] != PLI_EVENT_DONE) plain(&m, 2, ends[i]);
        refuted(&m, "pushes", i == 0 ? "passed a barrier in clock 1" : "ended its part in clock 1");
    }
    begin(&m, "downpour:1:9", true, false); /* of a clock that has not ended it may be dropped */
    inc(&m, 2);
    plain(&m, 2, PLI_EVENT_LEAVE);
    proven(&m);
}

static void test_a_push_goes_to_every_shard(void **state) {
    (void)state;
    maker m;
    for (int32_t sent = 0; sent < SHARDS; sent++) { /* to shard 1 only, or nowhere */
        const pli_event_part p = { .table = 0, .shard = 1 };
        begin(&m, "async", true, false);
        inc(&m, 2);
        raise_event(&m, (pli_event){ .kind = PLI_EVENT_PUSH, .rank = 2 });
        if (sent > 0)
            raise_event(&m, (pli_event){ .kind = PLI_EVENT_SEND, .rank = 2, .peer = 1, .table = -1, .seq = 1, .n = 1,
                                         .info.part = &p });
        if (sent > 0) apply(&m, 1, 2, 1, 0);
        end_clock(&m, 2, 0);
        for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 2, 0);
        refuted(&m, "exactly once", "was not sent to shard 0 once");
    }
}

/* What was on its way when its worker died may be lost, but not what came before something that arrived. */
static void test_what_is_lost_with_a_dead_worker(void **state) {
    (void)state;
    for (int64_t lost = 1; lost < 3; lost++) {
        maker m;
        begin(&m, "ssp:0", false, false);
        for (int64_t c = 0; c < 3; c++) {
            if (c != lost) whole_clock(&m, 2, c);
            else inc(&m, 2), push(&m, 2, c), end_clock(&m, 2, c), tick(&m, 0, 2, c), tick(&m, 1, 2, c);
        }
        for (int32_t s = 0; s < SHARDS; s++)
            raise_event(&m, (pli_event){ .kind = PLI_EVENT_GONE, .rank = SERVER + s, .table = -1, .peer = 2 });
        for (int32_t rank = 0; rank < RANKS; rank++)
            if (rank != 2) plain(&m, rank, PLI_EVENT_DONE);
        if (lost == 2) judge(&m, NULL, PLI_AUDIT_PROVEN, NULL, NULL);
        else judge(&m, NULL, PLI_AUDIT_REFUTED, "exactly once", "was never applied");
    }
}

static void test_a_server_that_hears_of_no_clock(void **state) {
    (void)state;
    maker m;
    begin(&m, "ssp:0", false, false);
    for (int32_t w = 0; w < WORKERS; w++) inc(&m, w), push(&m, w, 0), end_clock(&m, w, 0), apply_all(&m, w, 0);
    refuted(&m, "clocks", "knows 0");
}

static void test_a_push_is_of_its_workers_clock(void **state) {
    (void)state;
    maker m;
    begin(&m, "ssp:0", false, false);
    inc(&m, 1);
    push(&m, 1, 1);
    end_clock(&m, 1, 0);
    apply_all(&m, 1, 1);
    for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 1, 0);
    refuted(&m, "clocks", "as of clock 1, when it was in clock 0");
}

static void test_bounded_delay_0_sees_no_more_than_bsp(void **state) {
    (void)state;
    for (int delay = 0; delay < 2; delay++) {
        maker m;
        begin(&m, delay ? "bounded-delay:1" : "bounded-delay:0", true, false);
        for (int32_t w = 0; w < WORKERS; w++) whole_clock(&m, w, 0);
        whole_clock(&m, 1, 1);
        get(&m, 0, 1, WORKERS + 1, 0);
        if (delay) proven(&m);
        else refuted(&m, "future", NULL);
    }
}

static void test_shared_memory_is_judged_by_no_promise(void **state) {
    const pli_event_table table = { .name = "w", .topology = "local", .consistency = "async", .rows = 100, .cols = 2,
                                    .way = PLI_WAY_SHARED };
    (void)state;
    for (int as = 0; as < 2; as++) {
        maker m;
        begin_table(&m, &table, 0);
        for (int32_t w = 0; w < WORKERS; w++) end_clock(&m, w, 0);
        end(&m);
        judge(&m, as ? "bsp" : NULL, as ? PLI_AUDIT_EMPTY : PLI_AUDIT_PROVEN, NULL, NULL);
    }
}

static void test_barriers(void **state) {
    (void)state;
    for (int early = 0; early < 2; early++) {
        maker m;
        begin(&m, "async", true, false);
        inc(&m, 2);
        push(&m, 2, 0);
        apply(&m, 1, 2, 1, 0);
        for (int32_t w = 0; w < WORKERS; w++) plain(&m, w, PLI_EVENT_BARRIER);
        if (!early) apply(&m, 0, 2, 1, 0);
        get(&m, 0, 0, early ? 0 : 1, 0);
        if (early) apply(&m, 0, 2, 1, 0);
        if (early) refuted(&m, "barriers", "before which rank 2");
        else proven(&m);
    }
}

/* asp:3:4: worker 0, three clocks ahead, waits for all at clock 4. */
static void test_barriers_of_asp(void **state) {
    (void)state;
    for (int64_t lead = 3; lead <= 4; lead++) {
        maker m;
        begin(&m, "asp:3:4", false, false);
        for (int32_t w = 0; w < WORKERS; w++) whole_clock(&m, w, 0);
        for (int64_t c = 1; c < lead; c++) {
            get(&m, 0, c, (uint64_t)(WORKERS + c - 1), 0);
            whole_clock(&m, 0, c);
        }
        get(&m, 0, lead, (uint64_t)(WORKERS + lead - 1), 0);
        for (int64_t c = 1; c < lead; c++)
            for (int32_t w = 1; w < WORKERS; w++) whole_clock(&m, w, c);
        if (lead == 3) proven(&m);
        else refuted(&m, "barriers", "misses push 2 of rank 1 (clock 1");
    }
}

static void test_values(void **state) {
    (void)state;
    for (int weak = 0; weak < 2; weak++) { /* two workers with 3 each: 6 in sum */
        maker m;
        begin(&m, weak ? "vap:4:weak" : "vap:4", true, false);
        inc_norm(&m, 1, 3);
        inc_norm(&m, 2, 3);
        for (int32_t w = 1; w < WORKERS; w++) get(&m, w, 0, 0, 0); /* so their incs have returned */
        get_full(&m, 0, 0, (pli_event_piece){ .shard = 0, .rows = 4 }, 0, m.now_ns + 1);
        push(&m, 1, 0);
        push(&m, 2, 0);
        apply_all(&m, 1, 0);
        apply_all(&m, 2, 0);
        if (weak) proven(&m);
        else refuted(&m, "values", "misses updates of norm 6");
    }
    maker m;
    begin(&m, "vap:4", true, false);
    get_full(&m, 0, 0, (pli_event_piece){ .shard = 0, .rows = 4 }, 0, 1);
    inc_norm(&m, 1, 3);
    push(&m, 1, 0);
    apply_all(&m, 1, 0);
    inc_norm(&m, 2, 3);
    get_full(&m, 0, 0, (pli_event_piece){ .shard = 0, .version = 1, .rows = 4 }, 0, 0); /* 3 is in it, 3 are not */
    push(&m, 2, 0);
    apply_all(&m, 2, 0);
    proven(&m);
}

/* What is accepted within a worker's share of the bound counts from then on, though its worker does nothing else for
 * long. */
static void test_incs_return_at_once(void **state) {
    (void)state;
    for (int small = 0; small < 2; small++) {
        maker m;
        begin(&m, "vap:4", true, false);
        for (int32_t w = 1; w < WORKERS; w++)
            for (int i = 0; i <= small; i++) inc_norm(&m, w, small ? 1.5 : 3); /* one of 3 may wait until it is
                                                                                  applied */
        get_full(&m, 0, 0, (pli_event_piece){ .shard = 0, .rows = 4 }, 0, m.now_ns + 1);
        for (int32_t w = 1; w < WORKERS; w++) push(&m, w, 0), apply_all(&m, w, 0);
        if (small) refuted(&m, "values", "misses updates of norm 6");
        else proven(&m);
    }
}

static void test_versions(void **state) {
    (void)state;
    maker m;
    begin(&m, "async", true, false);
    get(&m, 0, 0, 3, 0);
    refuted(&m, "versions", "which has applied 0 updates in all");
}

static void test_another_promise(void **state) {
    (void)state;
    maker m;
    begin(&m, "async", false, false);
    whole_clock(&m, 0, 0);
    get(&m, 0, 1, 1, 0);
    whole_clock(&m, 1, 0);
    whole_clock(&m, 2, 0);
    end(&m);
    judge(&m, "bsp", PLI_AUDIT_REFUTED, "staleness", "bsp promises it");

    begin(&m, "async", false, false);
    end(&m);
    judge(&m, NULL, PLI_AUDIT_EMPTY, NULL, NULL);

    begin(&m, "async", false, false);
    whole_clock(&m, 0, 0);
    judge(&m, NULL, PLI_AUDIT_CUT, NULL, NULL); /* a run that broke off */

    plait_error err = { 0 };
    pli_audit  *audit = NULL;
    assert_int_equal(pli_audit_run(NULL, "ssp", &audit, &err), PLAIT_EINVAL);
    assert_int_equal(pli_audit_run(NULL, "nonsense", &audit, &err), PLAIT_ENAME);
}

static void test_the_first_violation_is_named(void **state) {
    (void)state;
    maker m;
    begin(&m, "bsp", false, false);
    whole_clock(&m, 0, 0);
    get(&m, 1, 0, 1, 0); /* the second rank breaks it first */
    get(&m, 0, 1, 1, 0);
    whole_clock(&m, 1, 0);
    whole_clock(&m, 2, 0);
    refuted(&m, "future", "rank 1 in clock 0");
}

/* --- files -------------------------------------------------------------------------------------------------------- */

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

/* What is written before the log is closed: a run that was killed, whose servers were too quiet to fill a buffer. */
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
    for (size_t cut = 0; cut < n; cut++) { /* cut anywhere it is never proven */
        write_file(m.path, bytes, cut);
        plait_status status = audit_file(m.path, &verdict, &err);
        if (cut < 32) assert_int_equal(status, PLAIT_EFORMAT);
        else assert_true(status == PLAIT_OK && verdict == PLI_AUDIT_CUT);
    }
    for (size_t at = 0; at < n; at++) { /* nor with any byte changed */
        if (at >= 12 && at < 32) continue; /* reserved, and the run's name */
        bytes[at] ^= 0x5a;
        write_file(m.path, bytes, n);
        assert_true(audit_file(m.path, &verdict, &err) < 0 || verdict == PLI_AUDIT_CUT);
        bytes[at] ^= 0x5a;
    }
    bytes[8] = 9;
    write_file(m.path, bytes, n);
    assert_int_equal(audit_file(m.path, &verdict, &err), PLAIT_EFORMAT);
    assert_non_null(strstr(err.text, "of version 9; this plait reads version 2"));
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
    unlink(other);
    unlink(m.path);
    free(bytes);
}

/* Ranks that are processes: one file each; without one of them nothing is concluded. */
static void test_a_file_a_rank(void **state) {
    (void)state;
    const pli_event_job   job = { .workers = 2, .servers = 1, .first_server = 0 };
    const pli_event_table table = { .name = "w", .topology = "ps", .consistency = "async", .rows = 1, .cols = 1,
                                    .shards = 1 };
    char                  path[2][64];
    const char           *paths[2] = { path[0], path[1] };
    for (int32_t rank = 0; rank < 2; rank++) {
        pli_eventlog *log = NULL;
        snprintf(path[rank], sizeof path[rank], "audit_test.%d.%d", (int)getpid(), (int)rank);
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

/* --- copies that are averaged ------------------------------------------------------------------------------------- */

static void begin_copies(maker *m, const char *consistency) {
    const pli_event_table table = { .name = "w", .topology = "gossip:ring", .consistency = consistency, .rows = 100,
                                    .cols = 2, .way = PLI_WAY_AVERAGED, .ruled = true };
    begin_table(m, &table, 0);
    m->replicas = true;
}

static void give(maker *m, int32_t rank, int32_t to, int64_t clock) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_GIVE, .rank = rank, .peer = to, .clock = clock });
}

static void mix(maker *m, int32_t rank, int32_t from, int64_t given, int64_t clock) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_MIX, .rank = rank, .peer = from, .clock = clock,
                                .seq = (uint64_t)given });
}

static void own_clock(maker *m, int32_t rank, int64_t clock) {
    inc(m, rank);
    end_clock(m, rank, clock);
    push(m, rank, clock);
}

/* All give to all and mix, but for what `wrong` leaves out, doubles or delays. */
static void rounds(maker *m, int64_t clocks, int wrong) {
    for (int64_t clock = 0; clock < clocks; clock++) {
        for (int32_t r = 0; r < WORKERS; r++) {
            get(m, r, clock, (uint64_t)clock - (wrong == 4 && clock == 1 && r == 2), 0);
            own_clock(m, r, clock);
            for (int32_t o = 0; o < WORKERS; o++)
                if (o != r && !(wrong == 5 && clock == 1 && r == 0)) give(m, r, o, clock);
        }
        for (int32_t r = 0; r < WORKERS; r++)
            for (int32_t o = 0; o < WORKERS; o++) {
                bool here = clock == 1 && r == 1 && o == 0;
                if (o == r || (wrong == 5 && clock == 1 && o == 0) || (wrong == 1 && here)) continue;
                mix(m, r, o, wrong == 3 && here ? clock - 1 : clock, clock);
                if (wrong == 2 && here) mix(m, r, o, clock, clock);
            }
    }
}

static void test_copies(void **state) {
    (void)state;
    static const struct { int wrong; const char *consistency, *rule, *words; } cases[] = {
        { 1, "bsp", "exactly once", "never mixed the copy of table w that rank 0 gave in clock 1" },
        { 1, "async", "exactly once", "never mixed" },
        { 2, "async", "exactly once", "mixed out of turn a copy of table w that rank 0 gave in clock 1" },
        { 3, "bsp", "exactly once", "never mixed" },
        { 4, "async", "own updates", NULL },
        { 5, "bsp", "rounds", "rank 0 gave 0 copies of table w in clock 1 and mixed 2" },
    };
    maker m;
    begin_copies(&m, "bsp");
    rounds(&m, 4, 0);
    end(&m);
    judge(&m, NULL, PLI_AUDIT_PROVEN, NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_copies(&m, cases[i].consistency);
        rounds(&m, 4, cases[i].wrong);
        end(&m);
        judge(&m, NULL, PLI_AUDIT_REFUTED, cases[i].rule, cases[i].words);
    }
    begin_copies(&m, "async"); /* one that nobody mixes */
    own_clock(&m, 0, 0);
    give(&m, 0, 1, 0);
    end(&m);
    judge(&m, NULL, PLI_AUDIT_REFUTED, "exactly once", "rank 1, at");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lockstep_keeps_every_promise),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_turns_after_a_barrier),
        cmocka_unit_test(test_an_update_that_is_never_pushed),
        cmocka_unit_test(test_a_push_goes_to_every_shard),
        cmocka_unit_test(test_what_is_lost_with_a_dead_worker),
        cmocka_unit_test(test_a_server_that_hears_of_no_clock),
        cmocka_unit_test(test_a_push_is_of_its_workers_clock),
        cmocka_unit_test(test_bounded_delay_0_sees_no_more_than_bsp),
        cmocka_unit_test(test_shared_memory_is_judged_by_no_promise),
        cmocka_unit_test(test_of_gets_under_way_the_later_may_be_newer),
        cmocka_unit_test(test_a_fast_worker_under_ssp),
        cmocka_unit_test(test_copies_with_own_updates),
        cmocka_unit_test(test_dropped_died_and_left),
        cmocka_unit_test(test_broken_off_before_a_late_push),
        cmocka_unit_test(test_dropped_too_soon),
        cmocka_unit_test(test_incs_return_at_once),
        cmocka_unit_test(test_two_consistencies_of_a_table),
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_rounds_of_clocks),
        cmocka_unit_test(test_own_updates),
        cmocka_unit_test(test_rows_that_go_back),
        cmocka_unit_test(test_exactly_once),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_the_future),
        cmocka_unit_test(test_fetches_and_pushes),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_barriers_of_asp),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_another_promise),
        cmocka_unit_test(test_the_first_violation_is_named),
        cmocka_unit_test(test_cut_and_garbled),
        cmocka_unit_test(test_cut_tells_how_far),
        cmocka_unit_test(test_a_file_a_rank),
        cmocka_unit_test(test_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
