/* Streams: exactly once and in order, whatever a seeded link loses, doubles and reorders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "comm/stream.h"

static pli_msg *make(uint64_t value, uint32_t incarnation) {
    pli_msg *msg = pli_msg_new(0);
    assert_non_null(msg);
    msg->head.arg64 = value;
    msg->head.incarnation = incarnation;
    return msg;
}

static void test_slabs_are_shared_and_counted(void **state) {
    (void)state;
    int64_t  live = pli_alloc_live();
    pli_msg *a = pli_msg_new(100);
    assert_true((uintptr_t)pli_msg_body(a) % 64 == 0);
    assert_true(pli_slab_is_mine(a->body));
    pli_msg *b = pli_msg_copy(a), *c = pli_msg_of_slab(a->body, 60, 40);
    assert_false(pli_slab_is_mine(a->body));
    assert_ptr_equal((char *)pli_msg_body(b) + 60, pli_msg_body(c));
    pli_msg_free(&a);
    pli_msg_free(&b);
    assert_true(pli_slab_is_mine(c->body));
    pli_msg_free(&c);
    pli_msg_free(&c);
    assert_int_equal(pli_alloc_live(), live);
}

static void test_messages_survive_every_failed_allocation(void **state) {
    (void)state;
    int64_t live = pli_alloc_live();
    for (int64_t k = 0; k < 3; k++) {
        pli_alloc_fail_after(k);
        pli_msg *a = pli_msg_new(10), *b = a != NULL ? pli_msg_copy(a) : NULL;
        pli_alloc_fail_after(-1);
        assert_true((a != NULL) == (k >= 2));
        pli_msg_free(&a);
        pli_msg_free(&b);
        assert_int_equal(pli_alloc_live(), live);
    }
}

static void test_an_older_life_is_dropped_and_a_newer_begins_anew(void **state) {
    (void)state;
    pli_rx rx;
    pli_rx_init(&rx);
    static const struct { uint64_t seq; uint32_t life; pli_rx_verdict verdict; } rows[] = {
        { 1, 1, PLI_RX_TAKE },      { 1, 1, PLI_RX_DUPLICATE }, { 3, 1, PLI_RX_EARLY }, { 3, 1, PLI_RX_EARLY },
        { 1, 2, PLI_RX_TAKE },      { 2, 1, PLI_RX_OLD },       { 0, 2, PLI_RX_TAKE },  { 3, 2, PLI_RX_EARLY },
        { 2, 2, PLI_RX_TAKE },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pli_msg *msg = make(i, rows[i].life);
        msg->head.seq = rows[i].seq;
        assert_int_equal(pli_rx_take(&rx, &msg), rows[i].verdict);
        assert_true((msg == NULL) == (rows[i].verdict == PLI_RX_EARLY));
        pli_msg_free(&msg);
    }
    pli_msg *msg = pli_rx_next(&rx);
    assert_non_null(msg);
    assert_int_equal(msg->head.seq, 3);
    pli_msg_free(&msg);
    assert_null(pli_rx_next(&rx));
    pli_rx_destroy(&rx);
}

/* A sender may end when it owes nothing. So nothing may be kept for a receiver that has ended, whenever the message
 * was sent. */
static void test_nothing_is_kept_for_a_receiver_that_has_ended(void **state) {
    (void)state;
    int64_t live = pli_alloc_live();
    pli_tx  tx;
    pli_out out;
    pli_tx_init(&tx, 100);
    pli_out_init(&out);
    assert_true(pli_tx_send(&tx, 0, make(1, 1), &out));
    assert_non_null(tx.kept);
    pli_tx_end(&tx);
    assert_true(pli_tx_send(&tx, 10, make(2, 1), &out));
    assert_int_equal(out.first->next->head.seq, 2);
    pli_out_drop(&out);
    pli_tx_wakeup(&tx, 1000, &out);
    assert_null(tx.kept);
    assert_null(out.first);
    assert_false(out.keeps);
    pli_tx_destroy(&tx);
    assert_int_equal(pli_alloc_live(), live);
}

enum { BAG = 256 };
struct bag { pli_msg *msg[BAG]; int n; };

static void throw_in(struct bag *bag, pli_out *out, pli_random *r) {
    for (pli_msg *msg = out->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        msg->head.incarnation = 1;
        uint64_t dice = pli_random_below(r, 10);
        if (dice == 0 || bag->n >= BAG - 1) { /* lost */
            pli_msg_free(&msg);
            continue;
        }
        if (dice == 1) bag->msg[bag->n++] = pli_msg_copy(msg);
        bag->msg[bag->n++] = msg;
    }
    pli_out_init(out);
}

/* kind 0 carries a value, kind 1 is an acknowledgement in arg64. */
static void run_link(uint64_t seed, uint64_t messages) {
    pli_random r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 0, 0);
    struct bag bag = { .n = 0 };
    pli_tx     tx;
    pli_rx     rx;
    pli_tx_init(&tx, 100);
    pli_rx_init(&rx);
    uint64_t now = 0, sent = 0, got = 0;
    for (int64_t turn = 0; got < messages || tx.acked < messages; turn++) {
        assert_true(turn < 200000);
        pli_out out;
        pli_out_init(&out);
        if (sent < messages && pli_random_below(&r, 3) == 0) {
            assert_true(pli_tx_send(&tx, now, make(++sent, 1), &out));
        } else if (bag.n > 0 && pli_random_below(&r, 3) != 0) {
            int      i = (int)pli_random_below(&r, (uint64_t)bag.n);
            pli_msg *msg = bag.msg[i];
            bag.msg[i] = bag.msg[--bag.n];
            if (msg->head.kind == 1) {
                pli_tx_acked(&tx, msg->head.arg64);
            } else {
                pli_rx_verdict verdict = pli_rx_take(&rx, &msg);
                for (pli_msg *m = verdict == PLI_RX_TAKE ? msg : NULL; m != NULL; m = pli_rx_next(&rx)) {
                    assert_int_equal(m->head.arg64, ++got);
                    if (m != msg) pli_msg_free(&m);
                }
                pli_msg *ack = make(rx.expected - 1, 1);
                ack->head.kind = 1;
                pli_out_send(&out, ack);
            }
            pli_msg_free(&msg);
        } else {
            now += 50;
            pli_tx_wakeup(&tx, now, &out);
        }
        throw_in(&bag, &out, &r);
    }
    assert_int_equal(got, messages);
    assert_null(tx.kept);
    while (bag.n > 0) pli_msg_free(&bag.msg[--bag.n]);
    pli_tx_destroy(&tx);
    pli_rx_destroy(&rx);
}

static void test_any_link_delivers_once_and_in_order(void **state) {
    (void)state;
    int64_t live = pli_alloc_live();
    for (uint64_t seed = 0; seed < 300; seed++) run_link(seed, 1 + seed % 60);
    assert_int_equal(pli_alloc_live(), live);
}

static void test_out_keeps_order_earliest_wakeup_and_first_error(void **state) {
    (void)state;
    pli_out out;
    pli_out_init(&out);
    pli_out_send(&out, make(1, 1));
    pli_out_send(&out, make(2, 1));
    assert_int_equal(out.first->head.arg64, 1);
    assert_int_equal(out.first->next->head.arg64, 2);
    pli_out_wake(&out, 50);
    pli_out_wake(&out, 70);
    assert_int_equal(out.wake_at_ns, 50);
    pli_out_fail(&out, PLAIT_EPEER, "first %d", 1);
    pli_out_fail(&out, PLAIT_ECOMM, "second");
    assert_int_equal(out.error.code, PLAIT_EPEER);
    assert_string_equal(out.error.text, "first 1");
    pli_out_drop(&out);
    assert_null(out.first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slabs_are_shared_and_counted),
        cmocka_unit_test(test_messages_survive_every_failed_allocation),
        cmocka_unit_test(test_an_older_life_is_dropped_and_a_newer_begins_anew),
        cmocka_unit_test(test_nothing_is_kept_for_a_receiver_that_has_ended),
        cmocka_unit_test(test_any_link_delivers_once_and_in_order),
        cmocka_unit_test(test_out_keeps_order_earliest_wakeup_and_first_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
