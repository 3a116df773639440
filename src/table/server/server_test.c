/* The server by itself: what it refuses by name, what it drops, and whom it names when asked who holds a worker up. */
#include "table/server_by_hand.h"

static void test_creation_is_idempotent_and_compared(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "bsp");
    assert_int_equal(deliver(&f, create_message(&f, 77, 1)), 1);
    assert_int_equal(f.out.first->head.flags & PLI_FLAG_FAILED, 0);
    assert_int_equal(deliver(&f, create_message(&f, 77, 2)), 1);
    expect_failure(&f, PLAIT_EMISMATCH, "table w");
    assert_int_equal(deliver(&f, create_message(&f, 78, 1)), 1);
    expect_failure(&f, PLAIT_EMISMATCH, "rank 0");
    close_server(&f);
}

static void test_pulls_outside_fail_by_name(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "bsp");
    assert_int_equal(deliver(&f, pull_message(&f, 0, 0, 0, 0, ROWS)), 1);
    assert_int_equal(f.out.first->head.body_bytes, ROWS * 4);
    assert_int_equal(deliver(&f, pull_message(&f, 0, 0, 0, 1, ROWS)), 1);
    expect_failure(&f, PLAIT_EFORMAT, "table w");
    assert_int_equal(deliver(&f, pull_message(&f, 0, 0, 9, 0, 1)), 1);
    expect_failure(&f, PLAIT_EFORMAT, "table number 9");
    assert_int_equal(deliver(&f, pull_message(&f, 0, 0, 0, -1, INT64_MAX)), 1);
    expect_failure(&f, PLAIT_EFORMAT, "outside");
    close_server(&f);
}

static void test_malformed_pushes_fail_the_job(void **state) {
    (void)state;
    static const struct { int64_t first, n; uint32_t table, flags; uint64_t at; int64_t examples; } bad[] = {
        { 1, ROWS, 0, 0, 48, 0 }, { -1, 1, 0, 0, 48, 0 }, { 0, -1, 0, 0, 48, 0 },  { 0, INT64_MAX, 0, 0, 48, 0 },
        { 0, 1, 3, 0, 48, 0 },    { 0, 1, 0, 1, 48, 0 },  { 0, ROWS, 0, 0, 56, 0 }, { 0, 1, 0, 0, UINT64_MAX - 7, 0 },
        { 0, 1, 0, 0, 44, 0 },    { 0, 1, 0, 0, 48, -1 }, { 0, 1, 0, 0, 48, INT64_MAX },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fixture f;
        open_server(&f, "bsp");
        pli_msg       *msg = clock_message(&f, 0, 0, bad[i].first, bad[i].n, 1);
        pli_wire_part *part = pli_msg_body(msg);
        part->table = bad[i].table;
        part->flags = bad[i].flags;
        part->values_at = bad[i].at;
        part->examples = bad[i].examples;
        deliver(&f, msg);
        assert_int_equal(f.out.error.code, PLAIT_EFORMAT);
        assert_int_equal(f.server.clocks[0], 0);
        close_server(&f);
    }
    fixture f;
    open_server(&f, "bsp");
    deliver(&f, clock_message(&f, 0, 1, 0, 1, 1)); /* clock 0 is due */
    assert_int_equal(f.out.error.code, PLAIT_EFORMAT);
    close_server(&f);
}

static void test_doubles_and_the_dead_are_dropped(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "async");
    pli_msg *msg = clock_message(&f, 0, 0, 0, ROWS, 1), *again = pli_msg_copy(msg);
    assert_int_equal(deliver(&f, msg), 0);
    assert_int_equal(deliver(&f, again), 1); /* acknowledged again, not applied */
    assert_int_equal(f.out.first->head.kind, PLI_ACK);
    assert_true(served(&f, 1) == 1);
    pli_msg *late = clock_message(&f, 1, 0, 0, ROWS, 8);
    pli_member_event death = { .kind = PLI_MEMBER_DIED, .rank = 1, .epoch = 1 };
    pli_server_ops.on_member(&f.server, 1, &death, &f.out);
    assert_int_equal(deliver(&f, late), 0);
    assert_true(served(&f, 1) == 1 && f.server.clocks[1] == INT64_MAX && f.server.peer[1].gone);
    pli_msg *stranger = message(&f, 0, PLI_CLOCK, 0, 0);
    stranger->head.src = 9;
    assert_int_equal(deliver(&f, stranger), 0);
    close_server(&f);
}

/* Each update is raised once: when it comes if it is applied at once, in the order of workers if a clock ends. */
static void test_events_tell_each_update_once(void **state) {
    (void)state;
    for (int at_once = 0; at_once < 2; at_once++) {
        fixture              f;
        heard                h = { 0 };
        const pli_event_sink sink = { .raise = hear, .user = &h };
        open_server(&f, at_once ? "async" : "bsp");
        f.server.sink = &sink;
        pli_msg *msg = clock_message(&f, 1, 0, 4, 3, 1), *again = pli_msg_copy(msg);
        deliver(&f, msg);
        deliver(&f, again);
        assert_int_equal(h.n[PLI_EVENT_TICK], 1);
        assert_int_equal(h.n[PLI_EVENT_APPLY], at_once);
        deliver(&f, clock_message(&f, 0, 0, 2, 5, 1));
        assert_int_equal(h.n[PLI_EVENT_TICK], 2);
        assert_int_equal(h.n[PLI_EVENT_APPLY], 2);
        if (!at_once) {
            assert_int_equal(h.last.kind, PLI_EVENT_APPLY);
            assert_true(h.last.peer == 1 && h.last.rank == RANK && h.last.version == 2);
            assert_true(h.last.clock == 0 && h.last.seq == 1 && h.last.table == 0 && h.last.shard == 0);
        }
        close_server(&f);
    }
}

static void test_values_handed_out_are_never_written(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "async");
    assert_int_equal(deliver(&f, pull_message(&f, 0, 0, 0, 0, ROWS)), 1);
    pli_slab *slab = pli_slab_ref(f.out.first->body);
    assert_ptr_equal(slab, f.server.table[0]->shard.store.slab); /* written in place: no copy */
    deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 1));
    assert_true(((const float *)slab->memory)[3] == 0 && served(&f, 1) == 1);
    pli_slab_unref(&slab);
    pli_out_drop(&f.out);
    pli_out_init(&f.out);
    slab = f.server.table[0]->shard.store.slab;
    deliver(&f, clock_message(&f, 0, 1, 0, ROWS, 1));
    assert_ptr_equal(slab, f.server.table[0]->shard.store.slab); /* nobody holds it: in place */
    close_server(&f);
}

static int32_t asked_why(fixture *f, int32_t src, int64_t *clock_out) {
    int32_t  holder;
    pli_msg *why = message(f, src, PLI_WHY, 0, 0);
    why->head.seq = 0;
    f->seq[src]--;
    if (deliver(f, why) == 0) return -1;
    assert_int_equal(f->out.first->head.kind, PLI_HELD);
    memcpy(&holder, pli_msg_body(f->out.first), sizeof holder);
    *clock_out = f->out.first->head.clock;
    return holder;
}

static void test_who_holds_up(void **state) {
    (void)state;
    fixture f;
    int64_t clock = -1;
    open_server(&f, "bsp");
    assert_int_equal(asked_why(&f, 0, &clock), -1); /* nothing waits */
    deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 1));
    assert_int_equal(deliver(&f, pull_message(&f, 0, 1, 0, 0, 1)), 0);
    assert_int_equal(asked_why(&f, 0, &clock), 1);
    assert_int_equal(clock, 0);
    assert_int_equal(deliver(&f, clock_message(&f, 1, 0, 0, ROWS, 1)), 1); /* served now */
    assert_int_equal(deliver(&f, message(&f, 1, PLI_BARRIER, 1, 0)), 0);
    assert_int_equal(asked_why(&f, 1, &clock), 0);
    assert_int_equal(clock, 1);
    assert_int_equal(deliver(&f, message(&f, 0, PLI_BARRIER, 1, 0)), 2);
    assert_int_equal(deliver(&f, message(&f, 0, PLI_BYE, 1, 0)), 0);
    assert_false(f.server.all_gone);
    assert_int_equal(deliver(&f, message(&f, 1, PLI_BYE, 1, 0)), 2);
    assert_true(f.server.all_gone);
    close_server(&f);
}

static pli_msg *push_message(fixture *f, int32_t src, int64_t clock, int64_t first, int64_t n, float value) {
    pli_msg *msg = clock_message(f, src, clock, first, n, value);
    msg->head.kind = PLI_PUSH;
    return msg;
}

static float value_at(fixture *f, int64_t row, int64_t clock) {
    assert_int_equal(deliver(f, pull_message(f, 0, clock, 0, row, 1)), 1);
    assert_int_equal(f->out.first->head.flags & PLI_FLAG_FAILED, 0);
    return *(const float *)pli_msg_body(f->out.first);
}

static pli_msg *empty_clock(fixture *f, int32_t src, int64_t clock) {
    pli_msg *msg = message(f, src, PLI_CLOCK, clock, 0);
    msg->head.arg32 = 0;
    return msg;
}

/* A push that comes before its clock ends waits for the end, however many messages it is. A push of another clock fails
 * the job. What a leaver has not ended is dropped. */
static void test_pushes_that_come_early(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "bsp");
    assert_int_equal(deliver(&f, push_message(&f, 0, 0, 0, 5, 1)), 0);
    assert_int_equal(deliver(&f, push_message(&f, 1, 0, 0, ROWS, 2)), 0);
    assert_true(value_at(&f, 3, 0) == 0);
    (void)deliver(&f, empty_clock(&f, 0, 0));
    assert_int_equal(deliver(&f, push_message(&f, 0, 1, 0, ROWS, 4)), 0);
    assert_true(value_at(&f, 3, 0) == 0);
    (void)deliver(&f, empty_clock(&f, 1, 0));
    assert_true(value_at(&f, 3, 1) == 3 && value_at(&f, 7, 1) == 2);
    assert_int_equal(deliver(&f, push_message(&f, 1, 1, 0, ROWS, 16)), 0);
    (void)deliver(&f, message(&f, 1, PLI_LEAVE, 0, 0));
    (void)deliver(&f, empty_clock(&f, 0, 1));
    assert_true(value_at(&f, 3, 2) == 7); /* not the leaver's 16 */
    (void)deliver(&f, push_message(&f, 0, 3, 0, ROWS, 32));
    assert_int_equal(f.out.error.code, PLAIT_EFORMAT);
    assert_non_null(strstr(f.out.error.text, "rank 0 pushed in clock 3, it is in clock 2"));
    close_server(&f);
}

/* A second part for the same clock is refused, because one of the two would be lost. */
static void test_a_second_part_is_refused(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "bsp");
    (void)deliver(&f, empty_clock(&f, 1, 0));
    assert_int_equal(deliver(&f, push_message(&f, 1, 1, 0, ROWS, 2)), 0);
    assert_int_equal(deliver(&f, push_message(&f, 0, 0, 0, ROWS, 1)), 0);
    (void)deliver(&f, empty_clock(&f, 0, 0));
    assert_int_equal(deliver(&f, push_message(&f, 0, 1, 0, ROWS, 4)), 0); /* another clock, another worker */
    assert_int_equal(f.out.error.code, PLAIT_OK);
    (void)deliver(&f, clock_message(&f, 1, 1, 0, 5, 8));
    assert_int_equal(f.out.error.code, PLAIT_EFORMAT);
    assert_non_null(strstr(f.out.error.text, "table w: worker 1 pushes a second part of clock 1"));
    close_server(&f);
    open_server(&f, "bsp");
    pli_msg *twice = message(&f, 0, PLI_PUSH, 0, 2 * sizeof(pli_wire_part) + 4);
    for (int i = 0; i < 2; i++)
        ((pli_wire_part *)pli_msg_body(twice))[i] = (pli_wire_part){ .n = 1, .values_at = 2 * sizeof(pli_wire_part) };
    memset((pli_wire_part *)pli_msg_body(twice) + 2, 0, 4);
    twice->head.arg32 = 2;
    (void)deliver(&f, twice);
    assert_int_equal(f.out.error.code, PLAIT_EFORMAT);
    assert_non_null(strstr(f.out.error.text, "a second part of clock 0"));
    close_server(&f);
}

static void test_who_leaves_lets_others_go_on(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "bsp");
    deliver(&f, clock_message(&f, 0, 0, 0, ROWS, 1));
    assert_int_equal(deliver(&f, pull_message(&f, 0, 1, 0, 3, 1)), 0);
    assert_int_equal(deliver(&f, message(&f, 1, PLI_LEAVE, 0, 0)), 1); /* served now */
    assert_true(*(const float *)pli_msg_body(f.out.first) == 1);
    deliver(&f, clock_message(&f, 0, 1, 0, ROWS, 1));
    assert_true(served(&f, 2) == 2);
    close_server(&f);
}

/* All workers have left, the slower one last: clocks that only the faster one has ended are applied all the same. */
static void test_when_all_have_left_all_is_applied(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "bsp");
    for (int64_t clock = 0; clock < 3; clock++) deliver(&f, clock_message(&f, 0, clock, 0, ROWS, 1));
    deliver(&f, clock_message(&f, 1, 0, 0, ROWS, 10));
    deliver(&f, message(&f, 0, PLI_LEAVE, 3, 0));
    assert_int_equal(deliver(&f, pull_message(&f, 0, 3, 0, 3, 1)), 0);
    assert_int_equal(deliver(&f, message(&f, 1, PLI_LEAVE, 1, 0)), 1);
    assert_true(*(const float *)pli_msg_body(f.out.first) == 13 && f.out.first->head.clock == 3);
    close_server(&f);
}

/* The server of a second job is asked about a ticket of the first: the stream's messages still come through. */
static void test_a_question_of_the_last_job_harms_no_stream(void **state) {
    (void)state;
    fixture    f;
    pli_client old;
    pli_ticket ticket;
    pli_out    out;
    assert_int_equal(pli_client_open(&old, &layout, 0, 0, 1, NULL), PLAIT_OK);
    old.link[0].used = true;
    pli_out_init(&out);
    pli_ticket_open(&old, &ticket);
    assert_int_equal(pli_client_send_all(&old, 1, PLI_BYE, &ticket, &out, NULL), PLAIT_OK);
    pli_ticket_wonder(&old, 1, &ticket, &out);
    pli_out_drop(&out);
    pli_out_init(&out);
    pli_client_ops.on_wakeup(&old, UINT64_C(2000000000), &out);
    pli_msg *why = out.first;
    assert_int_equal(why->head.kind, PLI_WHY);
    open_server(&f, "bsp");
    assert_int_equal(deliver(&f, why), 0);
    for (int64_t clock = 0; clock < 3; clock++) deliver(&f, clock_message(&f, 0, clock, 0, ROWS, 1));
    assert_int_equal(f.server.clocks[0], 3);
    close_server(&f);
    pli_client_close(&old);
}

static pli_msg *lease_message(fixture *f, int32_t src, int64_t clock, int64_t blocks, int64_t n) {
    pli_msg        *msg = message(f, src, PLI_LEASE, clock, sizeof(pli_wire_lease) + (size_t)n * sizeof(pli_lease));
    pli_wire_lease *ask = pli_msg_body(msg);
    pli_lease      *lease = (pli_lease *)(ask + 1);
    *ask = (pli_wire_lease){ .terms = { .blocks = blocks, .clocks = 10, .tenants = 2 }, .pace = { 1, 1 }, .n = n };
    for (int64_t i = 0; i < n; i++) lease[i] = (pli_lease){ .block = src * 3 + i, .rows = 5 };
    return msg;
}

/* A worker brings its blocks and learns its leases, whatever others do; a message that does not add up is refused. */
static void test_leases(void **state) {
    (void)state;
    fixture f;
    open_server(&f, "bsp");
    assert_int_equal(deliver(&f, lease_message(&f, 0, 0, 6, 3)), 1);
    assert_int_equal(f.out.first->head.body_bytes, 3 * sizeof(pli_lease));
    assert_int_equal(((const pli_lease *)pli_msg_body(f.out.first))[2].block, 2);
    assert_int_equal(deliver(&f, lease_message(&f, 1, 0, 7, 3)), 1);
    expect_failure(&f, PLAIT_EMISMATCH, "other data");
    assert_int_equal(deliver(&f, lease_message(&f, 1, 0, 6, 3)), 1);
    assert_int_equal(f.out.first->head.body_bytes, 3 * sizeof(pli_lease));
    assert_int_equal(deliver(&f, lease_message(&f, 1, 5, 6, 0)), 1);
    expect_failure(&f, PLAIT_EFORMAT, "clock 8 was due");
    pli_msg *msg = lease_message(&f, 1, 8, 6, 1);
    ((pli_wire_lease *)pli_msg_body(msg))->n = 2;
    assert_int_equal(deliver(&f, msg), 1);
    expect_failure(&f, PLAIT_EFORMAT, "malformed");
    assert_int_equal(deliver(&f, lease_message(&f, 1, 8, INT64_MAX, 0)), 1);
    expect_failure(&f, PLAIT_EFORMAT, "malformed");
    assert_int_equal(deliver(&f, message(&f, 1, PLI_LEASE, 8, 8)), 1);
    expect_failure(&f, PLAIT_EFORMAT, "malformed");
    close_server(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leases),
        cmocka_unit_test(test_creation_is_idempotent_and_compared),
        cmocka_unit_test(test_pulls_outside_fail_by_name),
        cmocka_unit_test(test_malformed_pushes_fail_the_job),
        cmocka_unit_test(test_doubles_and_the_dead_are_dropped),
        cmocka_unit_test(test_values_handed_out_are_never_written),
        cmocka_unit_test(test_who_holds_up),
        cmocka_unit_test(test_pushes_that_come_early),
        cmocka_unit_test(test_a_second_part_is_refused),
        cmocka_unit_test(test_who_leaves_lets_others_go_on),
        cmocka_unit_test(test_when_all_have_left_all_is_applied),
        cmocka_unit_test(test_a_question_of_the_last_job_harms_no_stream),
        cmocka_unit_test(test_events_tell_each_update_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
