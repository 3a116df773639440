/* Updates that one worker hands over are added by another: all of them, to the right rows. A message that does not fit
 * is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "table/client/aggregate.h"

enum { ROWS = 6 };

static const pli_layout layout = { .workers = 2, .servers = 1, .first_server = 2 };

typedef struct worker {
    pli_client        client;
    pli_client_table *table[3]; /* dense, dense by key, sparse */
} worker;

static void open_worker(worker *w, int32_t rank) {
    assert_int_equal(pli_client_open(&w->client, &layout, rank, 0, 1, NULL), PLAIT_OK);
    for (int32_t t = 0; t < 3; t++) {
        static const char *const names[] = { "dense", "keyed", "sparse" };
        plait_table_opts         opts;
        pli_spec                 spec;
        plait_table_opts_init(&opts);
        opts.name = names[t];
        opts.type = PLAIT_F64;
        opts.rows = t == 2 ? 0 : ROWS;
        opts.keyed = t == 1;
        assert_int_equal(pli_spec_make(t, &opts, "ps", "bsp", 1, NULL, &spec, NULL), PLAIT_OK);
        spec.placement = pli_placement_make(spec.rows, pli_row_bytes(&spec), 0, 1, 2);
        assert_int_equal(pli_client_table_open(&spec, &layout, &w->table[t], NULL), PLAIT_OK);
        assert_int_equal(pli_client_add_table(&w->client, w->table[t], NULL), PLAIT_OK);
    }
}

static void close_worker(worker *w) {
    for (int32_t t = 0; t < 3; t++) pli_client_table_close(&w->table[t]);
    pli_client_close(&w->client);
}

static void add(worker *w, int32_t t, uint64_t key, double x, int64_t examples) {
    assert_int_equal(pli_pending_add(&w->table[t]->pending, 1, &key, &x, examples, NULL), PLAIT_OK);
}

static double held(const worker *w, int32_t t, uint64_t key) {
    double x = 0;
    pli_pending_overlay(&w->table[t]->pending, 1, 1, &key, &x);
    return x;
}

static void fill(worker *member, worker *lead) {
    add(member, 0, 1, 2, 3);
    add(member, 0, 4, 5, 0);
    add(member, 2, UINT64_C(1) << 40, 7, 1);
    add(lead, 0, 4, 1, 2);
    add(lead, 1, 5, 9, 1);
    add(lead, 2, 3, 1, 1);
}

static void test_what_is_handed_over_is_added(void **state) {
    (void)state;
    worker member, lead;
    open_worker(&member, 1);
    open_worker(&lead, 0);
    fill(&member, &lead);
    pli_msg *msg = pli_aggregate_hand(&member.client);
    assert_non_null(msg);
    for (int32_t t = 0; t < 3; t++) assert_false(member.table[t]->pending.touched);
    assert_true(held(&member, 0, 4) == 0 && held(&member, 2, UINT64_C(1) << 40) == 0);
    assert_int_equal(pli_aggregate_add(&lead.client, msg, NULL), PLAIT_OK);
    assert_true(held(&lead, 0, 1) == 2 && held(&lead, 0, 4) == 6 && held(&lead, 0, 0) == 0 && held(&lead, 1, 5) == 9);
    assert_true(held(&lead, 2, UINT64_C(1) << 40) == 7 && held(&lead, 2, 3) == 1);
    assert_int_equal(lead.table[0]->pending.examples, 5);
    assert_int_equal(lead.table[0]->pending.low, 1);
    assert_int_equal(lead.table[0]->pending.high, 5);
    pli_msg_free(&msg);
    msg = pli_aggregate_hand(&member.client); /* nothing is pending */
    assert_int_equal(msg->head.body_bytes, 0);
    assert_int_equal(pli_aggregate_add(&lead.client, msg, NULL), PLAIT_OK);
    pli_msg_free(&msg);
    close_worker(&member);
    close_worker(&lead);
}

/* A message that is cut anywhere, or has any one byte changed, is refused or is added to rows that the table has. */
static void test_what_does_not_fit_is_refused(void **state) {
    (void)state;
    worker member, lead;
    open_worker(&member, 1);
    open_worker(&lead, 0);
    fill(&member, &lead);
    add(&member, 1, 2, 2, 1);
    pli_msg *whole = pli_aggregate_hand(&member.client);
    size_t   bytes = whole->head.body_bytes;
    for (size_t n = 1; n < bytes; n++) {
        pli_msg *cut = pli_msg_new(n);
        memcpy(pli_msg_body(cut), pli_msg_body(whole), n);
        plait_status status = pli_aggregate_add(&lead.client, cut, NULL);
        assert_true(status == PLAIT_EFORMAT || status == PLAIT_OK); /* cut between two parts, the message is well
                                                                     * formed */
        pli_msg_free(&cut);
    }
    int32_t refused = 0;
    for (size_t at = 0; at < bytes; at++)
        for (int32_t x = 1; x < 256; x += 85) {
            pli_msg *bad = pli_msg_new(bytes);
            memcpy(pli_msg_body(bad), pli_msg_body(whole), bytes);
            ((unsigned char *)pli_msg_body(bad))[at] ^= (unsigned char)x;
            plait_status status = pli_aggregate_add(&lead.client, bad, NULL);
            assert_true(status == PLAIT_EFORMAT || status == PLAIT_OK);
            refused += status == PLAIT_EFORMAT;
            pli_msg_free(&bad);
        }
    assert_true(refused > 50);
    pli_msg_free(&whole);
    close_worker(&member);
    close_worker(&lead);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_handed_over_is_added),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
