/* The graph of waits: cases by hand, and random ones against a search that goes through every order of events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "comm/doctor.h"

enum { SIZE = 6 };

static pli_look runs(uint64_t begun) {
    return (pli_look){ .state = PLI_LOOK_RUNS, .settled = 1, .begun = begun, .joined = begun, .on.peer = -1 };
}
static pli_look ended(void) { return (pli_look){ .state = PLI_LOOK_ENDED, .begun = UINT64_MAX, .joined = UINT64_MAX }; }
static pli_look waits(pli_wait_kind kind, int32_t peer, uint64_t begun) {
    pli_look look = { .state = PLI_LOOK_WAITS, .settled = 1, .wait = 1, .begun = begun, .joined = begun, .ordinal = 3,
                      .line = 7, .on = { .kind = (uint8_t)kind, .peer = peer, .number = begun }, .call = "plait_comm_x",
                      .file = "x.c" };
    snprintf(look.what, sizeof look.what, "kind %d of rank %d", (int)kind, peer);
    return look;
}

static int32_t judge(const pli_look *looks, int32_t size, int32_t workers, bool *stuck) {
    return pli_doctor_stuck(&(pli_ward){ .look = looks, .size = size, .workers = workers }, stuck);
}

static void test_cycles_are_found(void **state) {
    (void)state;
    bool stuck[SIZE];
    for (int32_t n = 1; n <= SIZE; n++) {
        pli_look look[SIZE];
        for (int32_t r = 0; r < SIZE; r++) look[r] = r < n ? waits(PLI_WAIT_RECV, (r + 1) % n, 0) : runs(0);
        assert_int_equal(judge(look, SIZE, SIZE, stuck), n);
        for (int32_t r = 0; r < SIZE; r++) assert_int_equal(stuck[r], r < n);
        look[n - 1] = runs(0); /* a rank that computes may go on, then the rank that waits for it, and so all */
        assert_int_equal(judge(look, SIZE, SIZE, stuck), 0);
        look[n - 1] = waits(PLI_WAIT_OTHER, -1, 0); /* so may a rank whose wait is of an unknown kind */
        assert_int_equal(judge(look, SIZE, SIZE, stuck), 0);
        look[n - 1] = (pli_look){ .state = PLI_LOOK_NONE }; /* and a rank that has not answered */
        assert_int_equal(judge(look, SIZE, SIZE, stuck), 0);
    }
}

static void test_any_needs_one_and_a_collective_all(void **state) {
    (void)state;
    bool     stuck[3];
    pli_look any[] = { waits(PLI_WAIT_RECV, -1, 0), waits(PLI_WAIT_RECV, 0, 0), runs(0) };
    assert_int_equal(judge(any, 3, 3, stuck), 0);
    any[2] = ended();
    assert_int_equal(judge(any, 3, 3, stuck), 2);
    pli_look all[] = { waits(PLI_WAIT_COLLECTIVE, -1, 4), waits(PLI_WAIT_RECV, 0, 3), runs(3) };
    assert_int_equal(judge(all, 3, 3, stuck), 2); /* rank 2 may come, rank 1 cannot */
    assert_int_equal(judge(all, 3, 1, stuck), 0); /* servers take no part */
    all[1].begun = 4; /* it has come, and works on the next call */
    assert_int_equal(judge(all, 3, 3, stuck), 0);
    all[0].on.joins = 1; /* but rank 0 also needs it to wait for the call */
    assert_int_equal(judge(all, 3, 3, stuck), 2);
}

static void test_tables_and_ends(void **state) {
    (void)state;
    bool     stuck[3];
    pli_look look[] = { waits(PLI_WAIT_TABLE, 1, 0), waits(PLI_WAIT_RECV, 0, 0), waits(PLI_WAIT_WORKERS, -1, 0) };
    assert_int_equal(judge(look, 3, 2, stuck), 3);
    look[0].on.peer = -1; /* nobody has said which rank holds it up */
    assert_int_equal(judge(look, 3, 2, stuck), 0);
    look[0].on.peer = 1;
    look[1] = ended();
    assert_int_equal(judge(look, 3, 2, stuck), 2);
    look[0] = ended();
    assert_int_equal(judge(look, 3, 2, stuck), 0); /* all workers have ended: the server will hear of it */
}

/* Follows what can happen next, rank by rank, until nothing can: the meaning of the graph, by brute force. */
static void follow_events(const pli_look *looks, int32_t size, bool *stuck) {
    bool more = true, free[SIZE];
    for (int32_t r = 0; r < size; r++) free[r] = looks[r].state == PLI_LOOK_RUNS;
    while (more) {
        more = false;
        for (int32_t r = 0; r < size; r++) {
            const pli_wait *on = &looks[r].on;
            if (free[r] || looks[r].state != PLI_LOOK_WAITS) continue;
            int32_t needed = 0, there = 0;
            for (int32_t o = 0; o < size; o++) {
                bool points = on->kind == PLI_WAIT_RECV ? o == on->peer || (on->peer < 0 && o != r)
                                                        : o != r && looks[o].begun < on->number;
                needed += points;
                there += points && free[o];
            }
            free[r] = on->kind == PLI_WAIT_RECV && on->peer < 0 ? there > 0 : there == needed;
            more |= free[r];
        }
    }
    for (int32_t r = 0; r < size; r++) stuck[r] = !free[r] && looks[r].state == PLI_LOOK_WAITS;
}

static void test_random_graphs(void **state) {
    (void)state;
    int32_t both[2] = { 0, 0 };
    for (uint64_t seed = 0; seed < 20000; seed++) {
        pli_look look[SIZE];
        bool     stuck[SIZE], want[SIZE];
        uint64_t x = pli_hash_u64(seed);
        int32_t  size = 1 + (int32_t)(x % SIZE);
        for (int32_t r = 0; r < size; r++, x = pli_hash_u64(x)) {
            uint64_t begun = x / 64 % 3;
            int32_t  peer = (int32_t)(x / 512 % (uint64_t)(size + 1)) - 1;
            look[r] = x % 8 == 0   ? runs(begun)
                      : x % 8 == 1 ? ended()
                                   : waits(x % 8 < 5 ? PLI_WAIT_RECV : PLI_WAIT_COLLECTIVE, peer, begun);
        }
        int32_t n = judge(look, size, size, stuck);
        follow_events(look, size, want);
        both[n > 0]++;
        pli_ward ward = { .look = look, .size = size, .workers = size };
        for (int32_t r = 0; r < size; r++) {
            if (stuck[r] != want[r]) fail_msg("seed %llu: rank %d", (unsigned long long)seed, r);
            if (!stuck[r]) continue;
            plait_error err;
            int32_t     next = pli_doctor_next(&ward, stuck, r);
            pli_doctor_explain_stuck(&ward, stuck, r, &err);
            assert_true(err.code == PLAIT_EDEADLOCK && strncmp(err.text, "deadlock: rank ", 15) == 0);
            assert_true(next >= -1 && next < size);
            if (next >= 0) assert_true(stuck[next] || look[next].state == PLI_LOOK_ENDED);
        }
    }
    assert_true(both[0] > 1000 && both[1] > 1000);
}

static void test_mismatch(void **state) {
    (void)state;
    pli_look    look[] = { waits(PLI_WAIT_COLLECTIVE, -1, 4), waits(PLI_WAIT_COLLECTIVE, -1, 4),
                           waits(PLI_WAIT_COLLECTIVE, -1, 5) };
    pli_ward    ward = { .look = look, .size = 3, .workers = 3 };
    plait_error err;
    look[2].on.n = 9; /* shape of a later call */
    assert_int_equal(pli_doctor_mismatch(&ward, 0), -1);
    look[1].on.coll_op = 1;
    assert_int_equal(pli_doctor_mismatch(&ward, 0), 1);
    assert_int_equal(pli_doctor_mismatch(&ward, 1), 0);
    pli_doctor_explain_mismatch(&ward, 0, 1, &err);
    assert_string_equal(err.text,
                        "collective 4: rank 0 waits for kind 2 of rank -1 (plait_comm_x, call 3, x.c:7) where rank 1 "
                        "waits for kind 2 of rank -1 (plait_comm_x, call 3, x.c:7)");
}

static void test_two_looks(void **state) {
    (void)state;
    pli_look a = waits(PLI_WAIT_RECV, 1, 0), b = a;
    assert_true(pli_doctor_confirms(&a, &b));
    b.wait++;
    assert_false(pli_doctor_confirms(&a, &b)); /* it has moved in between */
    b.wait--;
    b.settled = 0;
    assert_false(pli_doctor_confirms(&a, &b)); /* a message has come that it has not seen */
    a = b = waits(PLI_WAIT_TABLE, 1, 0);
    a.on.asked = b.on.answered = 4;
    assert_false(pli_doctor_confirms(&a, &b)); /* the servers' answer may be from before the first look */
    b.on.answered = 5;
    assert_true(pli_doctor_confirms(&a, &b));
}

static void test_texts(void **state) {
    (void)state;
    char     text[480];
    pli_look look = waits(PLI_WAIT_RECV, 1, 0);
    look.waited_ns = 2500000000;
    pli_doctor_tell(&look, 4, text, sizeof text);
    assert_string_equal(text, "rank 4 waits for kind 1 of rank 1 (plait_comm_x, call 3, x.c:7; 2.5 s)");
    look.call[0] = '\0';
    pli_doctor_tell(&look, 4, text, sizeof text);
    assert_string_equal(text, "rank 4 waits for kind 1 of rank 1 (2.5 s)");
    look = runs(0);
    pli_doctor_tell(&look, 4, text, sizeof text);
    assert_string_equal(text, "rank 4 works, and waits for nothing");
    look = (pli_look){ 0 };
    pli_doctor_tell(&look, 4, text, sizeof text);
    assert_string_equal(text, "rank 4 does not answer");
}

static void test_looks_from_a_wire(void **state) {
    (void)state;
    plait_error err;
    pli_look    look = waits(PLI_WAIT_RECV, 1, 0), got;
    assert_int_equal(pli_look_decode(&look, sizeof look, 2, &got, &err), PLAIT_OK);
    assert_memory_equal(&look, &got, sizeof look);
    assert_int_equal(pli_look_decode(&look, sizeof look - 1, 2, &got, &err), PLAIT_EFORMAT);
    assert_int_equal(pli_look_decode(&look, sizeof look, 1, &got, &err), PLAIT_EFORMAT); /* a rank that does not
                                                                                          * exist */
    look.what[0] = '\n';
    assert_int_equal(pli_look_decode(&look, sizeof look, 2, &got, &err), PLAIT_OK);
    assert_int_equal(got.what[0], '?');
    memset(look.what, 'x', sizeof look.what);
    assert_int_equal(pli_look_decode(&look, sizeof look, 2, &got, &err), PLAIT_EFORMAT);
    look = waits(PLI_WAIT_KINDS, 1, 0);
    assert_int_equal(pli_look_decode(&look, sizeof look, 2, &got, &err), PLAIT_EFORMAT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cycles_are_found), cmocka_unit_test(test_any_needs_one_and_a_collective_all),
        cmocka_unit_test(test_tables_and_ends),  cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_mismatch),         cmocka_unit_test(test_two_looks),
        cmocka_unit_test(test_texts),            cmocka_unit_test(test_looks_from_a_wire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
