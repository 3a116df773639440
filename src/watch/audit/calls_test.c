/* Server functions that update tables, by the log: a call that ran twice, not at all, in another order or place, at one
 * replica alone, or that came to something else, is named. */
#include "audit/log_by_hand.h"
#include "audit/replicas_by_hand.h"

/* A call as it is raised, and what is changed in it. */
typedef struct spoken {
    uint64_t number;
    int64_t  clock;
    uint32_t asked, answer, wrote;
} spoken;

static spoken of(uint64_t number, int64_t clock) {
    return (spoken){ .number = number, .clock = clock, .asked = 7, .answer = 10 + (uint32_t)number,
                     .wrote = 20 + (uint32_t)number };
}

static void raise_spoken(maker *m, pli_event event, spoken c, int32_t first, int64_t n) {
    pli_event_ran  ran[SHARDS];
    const int32_t  table = 0;
    pli_event_call call = { .function = "halve", .asked = c.asked, .tables = 1, .table = &table, .ran = ran };
    for (int64_t i = 0; i < n; i++)
        ran[i] = (pli_event_ran){ .shard = first + (int32_t)i, .answer = c.answer,
                                  .wrote = event.server || first < 0 ? c.wrote : 0 };
    event.kind = PLI_EVENT_CALL;
    event.table = -1;
    event.clock = c.clock;
    event.seq = c.number;
    event.n = n;
    event.info.call = &call;
    raise_event(m, event);
}

static void made(maker *m, int32_t worker, spoken c) { raise_spoken(m, (pli_event){ .rank = worker }, c, 0, SHARDS); }
static void all_made(maker *m, spoken c) {
    for (int32_t w = 0; w < WORKERS; w++) made(m, w, c);
}
static void ran_at(maker *m, int32_t shard, int32_t place, spoken c) {
    raise_spoken(m, of_copy(m, PLI_EVENT_CALL, shard, place), c, shard, 1);
}
static void ran(maker *m, int32_t shard, spoken c) {
    raise_spoken(m, (pli_event){ .rank = SERVER + shard, .server = true }, c, shard, 1);
}
static void all_ran(maker *m, spoken c) {
    for (int32_t s = 0; s < SHARDS; s++) ran(m, s, c);
}

/* --- one replica -------------------------------------------------------------------------------------------------- */

static void begin_called(maker *m, int64_t clocks) {
    begin(m, "bsp", false, false);
    in_step(m, clocks);
}

static void test_calls_in_order_are_proven(void **state) {
    (void)state;
    maker m;
    begin_called(&m, 2);
    for (uint64_t k = 1; k <= 2; k++) {
        all_ran(&m, of(k, 2));
        all_made(&m, of(k, 2));
    }
    for (int32_t w = 0; w < WORKERS; w++) get(&m, w, 2, 2 * WORKERS + 2, 0);
    for (int32_t w = 0; w < WORKERS; w++) whole_clock(&m, w, 2);
    all_ran(&m, of(3, 3));
    all_made(&m, of(3, 3));
    for (int32_t w = 0; w < WORKERS; w++) get(&m, w, 3, 3 * WORKERS + 3, 0);
    proven(&m);
}

static void test_a_call_that_ran_twice(void **state) {
    (void)state;
    maker m;
    begin_called(&m, 1);
    all_ran(&m, of(1, 1));
    ran(&m, 1, of(1, 1));
    all_made(&m, of(1, 1));
    refuted(&m, "calls", "was run twice");
}

static void test_a_call_that_was_left_out(void **state) {
    (void)state;
    maker m;
    begin_called(&m, 1);
    ran(&m, 0, of(1, 1));
    all_made(&m, of(1, 1));
    refuted(&m, "calls", "never ran it");
}

static void test_calls_in_another_order(void **state) {
    (void)state;
    maker m;
    begin_called(&m, 1);
    ran(&m, 0, of(1, 1));
    ran(&m, 1, of(2, 1));
    all_made(&m, of(1, 1));
    ran(&m, 0, of(2, 1));
    ran(&m, 1, of(1, 1));
    all_made(&m, of(2, 1));
    refuted(&m, "calls", "behind a later call");
}

static void test_a_call_that_nobody_made(void **state) {
    (void)state;
    maker m;
    begin_called(&m, 1);
    all_ran(&m, of(1, 1));
    refuted(&m, "calls", "was made by no worker that lives");
}

static void test_a_call_that_one_never_made(void **state) {
    (void)state;
    maker m;
    begin_called(&m, 1);
    all_ran(&m, of(1, 1));
    for (int32_t w = 0; w < WORKERS - 1; w++) made(&m, w, of(1, 1));
    refuted(&m, "calls", "which rank 2 never made");
}

static void test_calls_that_differ(void **state) {
    (void)state;
    for (int how = 0; how < 3; how++) {
        maker  m;
        spoken other = of(1, 1);
        begin_called(&m, 1);
        all_ran(&m, of(1, 1));
        made(&m, 0, of(1, 1));
        if (how == 0) other.asked++;
        if (how == 1) other.clock++;
        if (how == 2) other.answer++;
        made(&m, 1, other);
        made(&m, 2, of(1, 1));
        refuted(&m, "calls", how == 0 ? "called something else" : how == 1 ? "in another clock" : "another answer");
    }
}

static void test_a_shard_that_ran_something_else(void **state) {
    (void)state;
    for (int how = 0; how < 2; how++) {
        maker  m;
        spoken other = of(1, 1);
        begin_called(&m, 1);
        if (how == 0) other.asked++;
        else other.clock++;
        ran(&m, 0, of(1, 1));
        ran(&m, 1, other);
        all_made(&m, of(1, 1));
        refuted(&m, "calls", how == 0 ? "not what the workers called" : "in another clock");
    }
}

/* late: it runs behind the updates of its own clock; else before those of the clock before. */
static void test_a_call_in_another_place(void **state) {
    (void)state;
    for (int late = 0; late < 2; late++) {
        maker m;
        begin(&m, "bsp", false, false);
        for (int32_t w = 0; w < WORKERS; w++) {
            inc(&m, w);
            push(&m, w, 0);
            end_clock(&m, w, 0);
        }
        if (!late) all_ran(&m, of(1, 1));
        for (int32_t w = 0; w < WORKERS; w++) apply_all(&m, w, 0);
        for (int32_t w = 0; w < WORKERS; w++)
            for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, w, 0);
        if (!late) {
            all_made(&m, of(1, 1));
            refuted(&m, "calls", "before an update of an earlier clock");
            continue;
        }
        all_made(&m, of(1, 1));
        for (int32_t w = 0; w < WORKERS; w++) whole_clock(&m, w, 1);
        all_ran(&m, of(1, 1));
        refuted(&m, "calls", "behind an update of its own clock");
    }
}

static void test_gets_that_do_not_see_calls(void **state) {
    (void)state;
    for (int early = 0; early < 2; early++) {
        maker m;
        begin_called(&m, 1);
        all_ran(&m, of(1, 1));
        if (early) get(&m, 0, 1, WORKERS + 1, 0);
        all_made(&m, of(1, 1));
        if (!early) get(&m, 0, 1, WORKERS, 0);
        refuted(&m, "calls", early ? "before the worker made it" : "from before the worker's call 1");
    }
}

/* A call that fails may have run at some shards, and nobody was answered. */
static void test_a_call_that_failed(void **state) {
    (void)state;
    maker m;
    begin_called(&m, 1);
    ran(&m, 1, of(1, 1));
    for (int32_t w = 0; w < WORKERS; w++) raise_spoken(&m, (pli_event){ .rank = w }, of(1, 1), 0, 0);
    proven(&m);
}

/* --- mirrors ------------------------------------------------------------------------------------------------------ */

static void mirrored(maker *m, int32_t worker, spoken c) {
    raise_spoken(m, (pli_event){ .rank = worker }, c, -1, 1);
}

static void test_mirrors(void **state) {
    (void)state;
    for (int how = 0; how < 4; how++) {
        maker m;
        begin(&m, "bsp", false, true);
        for (int32_t w = 0; w < WORKERS; w++) {
            inc(&m, w);
            end_clock(&m, w, 0);
            push(&m, w, 0);
        }
        for (int32_t w = 0; w < WORKERS; w++) {
            spoken c = of(1, 1);
            if (how == 1 && w == 1) c.answer++;
            if (how == 2 && w == 1) c.wrote++;
            if (how != 3 || w != 1) sum(&m, w, 0);
            mirrored(&m, w, c);
            if (how == 3 && w == 1) sum(&m, w, 0);
        }
        if (how == 0) proven(&m);
        else refuted(&m, "calls", how < 3 ? "another result on its mirrors" : "the sums of 0 clocks");
    }
}

/* --- two replicas ------------------------------------------------------------------------------------------------- */

static void begin_two(maker *m) {
    begin_copies(m, "bsp");
    first_clock(m);
}

static void both_ran(maker *m, spoken c) {
    for (int32_t s = 0; s < SHARDS; s++)
        for (int32_t place = 0; place < 2; place++) ran_at(m, s, place, c);
}

static void test_two_replicas(void **state) {
    (void)state;
    maker m;
    begin_two(&m);
    both_ran(&m, of(1, 1));
    all_made(&m, of(1, 1));
    proven(&m);
}

static void test_a_replica_alone(void **state) {
    (void)state;
    for (int place = 0; place < 2; place++) {
        maker m;
        begin_two(&m);
        ran_at(&m, 0, 0, of(1, 1));
        ran_at(&m, 0, 1, of(1, 1));
        ran_at(&m, 1, place, of(1, 1));
        all_made(&m, of(1, 1));
        refuted(&m, place == 1 ? "replicas" : "calls", place == 1 ? "has not as that" : "never ran it");
    }
}

/* The other replica has run it over other values. */
static void test_a_replica_that_came_to_other_values(void **state) {
    (void)state;
    maker  m;
    spoken other = of(1, 1);
    begin_two(&m);
    other.wrote++;
    ran_at(&m, 0, 0, of(1, 1));
    ran_at(&m, 0, 1, other);
    for (int place = 0; place < 2; place++) ran_at(&m, 1, place, of(1, 1));
    all_made(&m, of(1, 1));
    refuted(&m, "replicas", "call 1, which the replica of rank 3, whose log it takes, has not as that, with that");
}

/* Rank 4 dies when both replicas have run call 1. Who serves its shard then runs it again, leaves out call 2, or
 * answers that from memory. */
static void die_behind_a_call(maker *m, int how) {
    begin_copies_of(m, "bsp", 0, 4);
    first_clock(m);
    both_ran(m, of(1, 1));
    all_made(m, of(1, 1));
    serves(m, 1, 1);
    if (how == 1) ran_at(m, 1, 1, of(1, 1));
    ran_at(m, 0, 0, of(2, 1));
    if (how != 2) ran_at(m, 1, 1, of(2, 1));
    spoken second = of(2, 1);
    if (how == 3) second.answer = of(1, 1).answer;
    all_made(m, second);
    end_but(m, 4);
}

static void test_a_death_behind_a_call(void **state) {
    (void)state;
    static const char *const words[] = { NULL, "was run twice", "never ran it", "another answer" };
    for (int how = 0; how < 4; how++) {
        maker m;
        die_behind_a_call(&m, how);
        judge(&m, NULL, how == 0 ? PLI_AUDIT_PROVEN : PLI_AUDIT_REFUTED, how == 0 ? NULL : "calls", words[how]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_in_order_are_proven),
        cmocka_unit_test(test_a_call_that_ran_twice),
        cmocka_unit_test(test_a_call_that_was_left_out),
        cmocka_unit_test(test_calls_in_another_order),
        cmocka_unit_test(test_a_call_that_nobody_made),
        cmocka_unit_test(test_a_call_that_one_never_made),
        cmocka_unit_test(test_calls_that_differ),
        cmocka_unit_test(test_a_shard_that_ran_something_else),
        cmocka_unit_test(test_a_call_in_another_place),
        cmocka_unit_test(test_gets_that_do_not_see_calls),
        cmocka_unit_test(test_a_call_that_failed),
        cmocka_unit_test(test_mirrors),
        cmocka_unit_test(test_two_replicas),
        cmocka_unit_test(test_a_replica_alone),
        cmocka_unit_test(test_a_replica_that_came_to_other_values),
        cmocka_unit_test(test_a_death_behind_a_call),
    };
    return cmocka_run_group_tests_name("watch.audit.calls", tests, NULL, NULL);
}
