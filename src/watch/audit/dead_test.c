/* Runs with two copies of each shard in which rank 0 dies, a worker: what was acknowledged is in the copy that counts,
 * once, others stand in for the rest, and the copies are the same. Rank 3 has server 0 and the second copy of server 1;
 * rank 4 the other way round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/log_by_hand.h"

static pli_event of_copy(pli_event_kind kind, int32_t server, int32_t place) {
    return (pli_event){
        .kind = kind, .rank = SERVER + (server + place) % SHARDS, .home = server, .place = place, .table = -1,
        .shard = server
    };
}

static void begin_copies_of(maker *m, const char *consistency, int32_t cut_rank) {
    const pli_event_job   job = { .workers = WORKERS, .servers = SHARDS, .first_server = SERVER, .replicas = 2 };
    const pli_event_table table = { .name = "w",
                                    .topology = "ps",
                                    .consistency = consistency,
                                    .rows = 100,
                                    .cols = 2,
                                    .way = PLI_WAY_SERVED,
                                    .shards = SHARDS };
    *m = (maker){ 0 };
    snprintf(m->path, sizeof m->path, "log_by_hand.%d.events", (int)getpid());
    assert_int_equal(pli_eventlog_open(m->path, RANKS, "0123456789abcdef", now_of, m, &m->log, NULL), PLAIT_OK);
    if (cut_rank >= 0) cut_short(m, cut_rank);
    for (int32_t i = 0; i < WORKERS + 2 * SHARDS; i++) {
        pli_event event = i < WORKERS ? (pli_event){ .rank = i } : of_copy(0, (i - WORKERS) / 2, (i - WORKERS) % 2);
        event.kind = PLI_EVENT_JOB;
        event.table = -1;
        event.info.job = &job;
        raise_event(m, event);
        event.kind = PLI_EVENT_TABLE;
        event.table = 0;
        event.info.table = &table;
        raise_event(m, event);
    }
}

static void begin_copies(maker *m, const char *consistency) { begin_copies_of(m, consistency, -1); }

static void applied(maker *m, int32_t server, int32_t place, int32_t worker, uint64_t seq, int64_t clock) {
    pli_event event = of_copy(PLI_EVENT_APPLY, server, place);
    event.peer = worker;
    event.table = 0;
    event.seq = seq;
    event.clock = clock;
    raise_event(m, event);
}

static void counted(maker *m, int32_t server, int32_t place, int32_t worker, uint64_t seq, int64_t clock) {
    pli_event event = of_copy(PLI_EVENT_TICK, server, place);
    event.peer = worker;
    event.seq = seq;
    event.clock = clock;
    raise_event(m, event);
}

/* Both copies of a server have taken the worker's last push, which ends the clock. */
static void taken(maker *m, int32_t server, int32_t worker, int64_t clock) {
    for (int32_t place = 0; place < 2; place++) {
        applied(m, server, place, worker, m->seq[worker][server], clock);
        counted(m, server, place, worker, m->seq[worker][server], clock);
    }
}

static void gone(maker *m, int32_t server, int32_t place) {
    pli_event event = of_copy(PLI_EVENT_GONE, server, place);
    event.peer = 0;
    raise_event(m, event);
}

static void pushes(maker *m, int32_t worker, int64_t clock) {
    inc(m, worker);
    push(m, worker, clock);
}

/* The worker says to the servers that it stands in for rank 0, behind its last push. */
static void stands_in(maker *m, int32_t worker, int64_t clock) {
    for (int32_t s = 0; s < SHARDS; s++)
        raise_event(m, (pli_event){ .kind = PLI_EVENT_VIEW,
                                    .rank = worker,
                                    .peer = s,
                                    .table = -1,
                                    .clock = clock,
                                    .seq = ++m->seq[worker][s],
                                    .whom = 0 });
}

static void end_of_living(maker *m) {
    for (int32_t rank = 1; rank < RANKS; rank++) plain(m, rank, PLI_EVENT_DONE);
}

static void first_clock(maker *m) {
    for (int32_t w = 0; w < WORKERS; w++) pushes(m, w, 0);
    for (int32_t w = 0; w < WORKERS; w++)
        for (int32_t s = 0; s < SHARDS; s++) taken(m, s, w, 0);
    for (int32_t w = 0; w < WORKERS; w++) end_clock(m, w, 0);
}

/* Clock 1: rank 0 dies when server 0 has its part and server 1 has not. */
enum { FINE, NOT_STOOD_IN, BOTH, LOST, ACKNOWLEDGED, UNDER_WAY };
static void second_clock(maker *m, int broken) {
    for (int32_t w = 0; w < WORKERS; w++) pushes(m, w, 1);
    for (int32_t w = 0; w < WORKERS; w++) taken(m, 0, w, 1);
    if (broken == ACKNOWLEDGED) end_clock(m, 0, 1);
    for (int32_t s = 0; s < SHARDS; s++) gone(m, s, 0);
    for (int32_t w = 1; w < WORKERS; w++) {
        const uint64_t own = m->seq[w][1];
        plain(m, w, PLI_EVENT_STAND);
        pushes(m, w, 1);
        const uint64_t redone = m->seq[w][1];
        if (broken != NOT_STOOD_IN || w == 1) stands_in(m, w, 1);
        for (int32_t place = 0; place < 2; place++) {
            applied(m, 1, place, w, own, 1);
            if (broken != LOST || w == 1) applied(m, 1, place, w, redone, 1);
        }
        for (int32_t place = 0; place < 2; place++) counted(m, 1, place, w, m->seq[w][1], 1);
        end_clock(m, w, 1);
    }
    for (int32_t place = 0; broken == BOTH && place < 2; place++) applied(m, 1, place, 0, m->seq[0][1], 1);
}

static void test_others_stand_in(void **state) {
    (void)state;
    static const char *const words[] = { NULL, "nor did rank 2 stand in for it", "others have stood in for it",
                                         "though it counts in its clock", "though its clock was acknowledged" };
    for (int broken = FINE; broken < UNDER_WAY; broken++) {
        maker m;
        begin_copies(&m, "bsp");
        first_clock(&m);
        second_clock(&m, broken);
        end_of_living(&m);
        judge(&m, NULL, broken == FINE ? PLI_AUDIT_PROVEN : PLI_AUDIT_REFUTED, broken == FINE ? NULL : "exactly once",
              words[broken]);
    }
}

/* Server 0's rank, 3, dies, and worker 0 with it; its second copy had all but the last push of worker 1, which sends it
 * again. */
static void test_the_second_copy_goes_on(void **state) {
    (void)state;
    static const char *const words[] = { NULL, "though its clock was acknowledged", "was applied twice",
                                         "whose log it takes, has not as that" };
    for (int broken = 0; broken < 4; broken++) {
        maker m;
        begin_copies(&m, "async");
        if (broken != 3)
            first_clock(&m);
        else { /* the second copy took them in another order */
            for (int32_t w = 0; w < WORKERS; w++) pushes(&m, w, 0);
            for (int32_t w = 0; w < WORKERS; w++) taken(&m, 1, w, 0), applied(&m, 0, 0, w, m.seq[w][0], 0);
            for (int32_t w = WORKERS - 1; w >= 0; w--) applied(&m, 0, 1, w, m.seq[w][0], 0);
            for (int32_t w = 0; w < WORKERS; w++) counted(&m, 0, 1, w, m.seq[w][0], 0), end_clock(&m, w, 0);
        }
        pushes(&m, 0, 1);
        pushes(&m, 1, 1);
        taken(&m, 1, 1, 1);
        applied(&m, 0, 0, 1, m.seq[1][0], 1);
        raise_event(&m, of_copy(PLI_EVENT_SERVE, 0, 1));
        gone(&m, 0, 1);
        gone(&m, 1, 0);
        if (broken == 1) end_clock(&m, 0, 1); /* though nobody has it */
        applied(&m, 0, 1, 1, m.seq[1][0], 1);
        if (broken == 2) applied(&m, 0, 1, 1, m.seq[1][0], 1);
        counted(&m, 0, 1, 1, m.seq[1][0], 1);
        end_clock(&m, 1, 1);
        end_of_living(&m);
        judge(&m, NULL, broken == 0 ? PLI_AUDIT_PROVEN : PLI_AUDIT_REFUTED,
              broken == 0   ? NULL
              : broken == 3 ? "copies"
                            : "exactly once",
              words[broken]);
    }
}

/* Server 0's rank dies when its log has a clock's updates, and not yet that they count: of that the log says nothing. */
static void test_a_log_may_end_in_a_clock(void **state) {
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        maker m;
        begin_copies_of(&m, "bsp", ends ? -1 : SERVER);
        first_clock(&m);
        for (int32_t w = 0; w < WORKERS; w++) pushes(&m, w, 1);
        for (int32_t w = 0; w < WORKERS; w++) taken(&m, 1, w, 1), applied(&m, 0, 0, w, m.seq[w][0], 1);
        counted(&m, 0, 0, 0, m.seq[0][0], 1); /* of one it says so */
        raise_event(&m, of_copy(PLI_EVENT_SERVE, 0, 1));
        for (int32_t w = 0; w < WORKERS; w++) applied(&m, 0, 1, w, m.seq[w][0], 1);
        for (int32_t w = 0; w < WORKERS; w++) counted(&m, 0, 1, w, m.seq[w][0], 1), end_clock(&m, w, 1);
        for (int32_t rank = 0; rank < RANKS; rank++)
            if (rank != SERVER || ends) plain(&m, rank, PLI_EVENT_DONE);
        judge(&m, NULL, ends ? PLI_AUDIT_REFUTED : PLI_AUDIT_PROVEN, ends ? "exactly once" : NULL,
              ends ? "where it does not count in its clock" : NULL);
    }
}

/* A version is of one copy: after the second has taken over, the first answers nobody. */
static void test_versions_are_of_one_copy(void **state) {
    (void)state;
    for (int back = 0; back < 2; back++) {
        maker m;
        begin_copies(&m, "async");
        first_clock(&m);
        raise_event(&m, of_copy(PLI_EVENT_SERVE, 0, 1));
        gone(&m, 0, 1);
        gone(&m, 1, 0);
        for (int32_t place = 1; place >= 1 - back; place--)
            get_full(&m, 1, 1, (pli_event_piece){ .shard = 0, .place = place, .version = 3, .rows = 10 }, 0, 0);
        end_of_living(&m);
        judge(&m, NULL, back ? PLI_AUDIT_REFUTED : PLI_AUDIT_PROVEN, back ? "monotone reads" : NULL, NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_others_stand_in),
                                        cmocka_unit_test(test_the_second_copy_goes_on),
                                        cmocka_unit_test(test_a_log_may_end_in_a_clock),
                                        cmocka_unit_test(test_versions_are_of_one_copy) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
