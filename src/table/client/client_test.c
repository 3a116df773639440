/* The client without a job around it: answers that come twice, servers that are lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table/client/client.h"

enum { SERVERS = 2, FIRST = 3 };

static const pli_layout layout = { .workers = 3, .servers = SERVERS, .first_server = FIRST };

static pli_msg *reply(int32_t server, uint64_t seq, uint32_t ticket) {
    pli_msg *msg = pli_msg_new(0);
    msg->head.kind = PLI_REPLY;
    msg->head.src = FIRST + server;
    msg->head.incarnation = 1;
    msg->head.seq = seq;
    msg->head.arg32 = ticket;
    return msg;
}

static void open_client(pli_client *client, pli_ticket *ticket, pli_out *out) {
    assert_int_equal(pli_client_open(client, &layout, 0, 0, 1, NULL), PLAIT_OK);
    for (int32_t s = 0; s < SERVERS; s++) client->link[s].used = true;
    pli_out_init(out);
    pli_ticket_open(client, ticket);
    assert_int_equal(pli_client_send_all(client, 1, PLI_BARRIER, ticket, out, NULL), PLAIT_OK);
    pli_out_drop(out);
    pli_out_init(out);
}

static void test_a_second_answer_of_a_server_does_not_count(void **state) {
    (void)state;
    pli_client client;
    pli_ticket ticket;
    pli_out    out;
    open_client(&client, &ticket, &out);
    pli_client_ops.on_message(&client, 1, reply(0, 1, ticket.id), &out);
    pli_client_ops.on_message(&client, 1, reply(0, 2, ticket.id), &out);
    assert_false(pli_ticket_done(&ticket)); /* the other server has not answered */
    pli_client_ops.on_message(&client, 1, reply(1, 1, ticket.id + 1), &out); /* for a ticket that nobody has */
    assert_false(pli_ticket_done(&ticket));
    pli_client_ops.on_message(&client, 1, reply(1, 2, ticket.id), &out);
    assert_true(pli_ticket_done(&ticket) && out.ring);
    pli_ticket_unlink(&client, &ticket);
    pli_ticket_free(&ticket);
    pli_client_close(&client);
}

static void test_a_lost_server_fails_the_rank(void **state) {
    (void)state;
    pli_client       client;
    pli_ticket       ticket;
    pli_out          out;
    plait_error      err;
    pli_member_event death = { .kind = PLI_MEMBER_DIED, .rank = FIRST + 1, .epoch = 2, .why = { .text = "unplugged" } };
    open_client(&client, &ticket, &out);
    pli_client_ops.on_member(&client, 1, &death, &out);
    assert_int_equal(out.error.code, PLAIT_EPEER);
    assert_non_null(strstr(out.error.text, "unplugged"));
    assert_int_equal(pli_client_send(&client, 1, 1, PLI_PULL, pli_msg_new(0), &ticket, &out, &err), PLAIT_EPEER);
    assert_non_null(strstr(err.text, "rank 4"));
    assert_non_null(strstr(err.text, "unplugged")); /* who asks later hears the reason as well */
    assert_int_equal(pli_client_send(&client, 1, 0, PLI_PULL, pli_msg_new(0), &ticket, &out, &err), PLAIT_OK);
    pli_client_ops.on_message(&client, 1, reply(1, 1, ticket.id), &out); /* from before the server was lost */
    assert_null(ticket.replies);
    pli_out_drop(&out);
    pli_client_close(&client);
}

/* --- copies that come unasked ------------------------------------------------------------------------------------- */

typedef struct reader {
    pli_client        client;
    pli_client_table *table;
    pli_spec          spec;
    pli_out           out;
    float             values[8];
} reader;

enum { ROWS = 8 };

static void open_reader(reader *r, const char *rule, int64_t rows) {
    static const pli_layout one = { .workers = 2, .servers = 1, .first_server = FIRST };
    plait_table_opts        opts;
    memset(r, 0, sizeof *r);
    plait_table_opts_init(&opts);
    opts.name = "w";
    opts.rows = rows;
    opts.rule.name = rule;
    assert_int_equal(pli_spec_make(0, &opts, "ps", "essp:3", 1, NULL, &r->spec, NULL), PLAIT_OK);
    r->spec.placement = pli_placement_make(rows, 4, 0, 1, FIRST);
    assert_int_equal(pli_client_open(&r->client, &one, 0, 0, 1, NULL), PLAIT_OK);
    assert_int_equal(pli_client_table_open(&r->spec, &one, &r->table, NULL), PLAIT_OK);
    assert_int_equal(pli_client_add_table(&r->client, r->table, NULL), PLAIT_OK);
    pli_out_init(&r->out);
}

static void close_reader(reader *r) {
    pli_out_drop(&r->out);
    pli_client_table_close(&r->table);
    pli_client_close(&r->client);
}

/* Sends fresh rows that all hold `value`; rows 0 .. ROWS - 1 by key if the table is sparse. */
static void push_fresh(reader *r, uint64_t seq, uint64_t acknowledged, int64_t version, float value) {
    size_t   keys = r->spec.rows == 0 ? ROWS * 8 : 0;
    pli_msg *msg = pli_msg_new(keys + ROWS * 4);
    msg->head.kind = keys > 0 ? PLI_FRESH_KEYS : PLI_FRESH;
    msg->head.src = FIRST;
    msg->head.incarnation = 1;
    msg->head.seq = seq;
    msg->head.arg64 = acknowledged;
    msg->head.clock = version;
    unsigned char *body = pli_msg_body(msg);
    for (uint64_t i = 0; i < ROWS; i++) {
        if (keys > 0) memcpy(body + i * 8, &i, 8);
        memcpy(body + keys + i * 4, &value, 4);
    }
    pli_client_ops.on_message(&r->client, 1, msg, &r->out);
    assert_true(r->out.error.code >= 0);
}

/* A get of row 3: its value, or -1 if the server must be asked. */
static float row_3(reader *r) {
    static const uint64_t key = 3;
    pli_ask               ask;
    float                 value = -1;
    plait_status          status = r->spec.rows == 0
                                       ? pli_ask_keys(&r->client, 1, r->table, 1, &key, &value, &ask, &r->out, NULL)
                                       : pli_ask_range(&r->client, 1, r->table, 3, 1, &value, &ask, &r->out, NULL);
    assert_int_equal(status, PLAIT_OK);
    pli_ticket_unlink(&r->client, &ask.ticket);
    if (pli_ticket_done(&ask.ticket)) assert_int_equal(pli_ask_finish(&r->client, &ask, NULL), PLAIT_OK);
    else value = -1;
    pli_ask_abandon(&ask);
    pli_out_drop(&r->out);
    pli_out_init(&r->out);
    return value;
}

static void clock_of(reader *r, bool update) {
    float one[ROWS] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    const uint64_t keys[ROWS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    if (update) assert_int_equal(pli_pending_add(&r->table->pending, ROWS, keys, one, 1, NULL), PLAIT_OK);
    assert_int_equal(pli_client_build_push(&r->client, NULL, PLI_CLOCK, NULL), PLAIT_OK);
    assert_int_equal(pli_client_send_push(&r->client, 1, PLI_CLOCK, &r->out, NULL), PLAIT_OK);
}

static void test_pushed_copies_are_taken_where_they_hold_own_updates(void **state) {
    (void)state;
    for (int sparse = 0; sparse < 2; sparse++)
        for (int ruled = 0; ruled < 2; ruled++) {
            reader r;
            open_reader(&r, ruled ? "sgd" : NULL, sparse ? 0 : ROWS);
            assert_true(row_3(&r) == -1); /* no copy is held: asked for by message 1 */
            push_fresh(&r, 1, 0, 0, 10);  /* nothing was pushed yet that it could miss */
            assert_true(row_3(&r) == 10);
            push_fresh(&r, 2, 1, 1, 11);
            push_fresh(&r, 3, 1, 2, 12); /* the later one counts */
            assert_true(row_3(&r) == 12);
            clock_of(&r, true); /* message 2 */
            assert_true(row_3(&r) == (ruled ? -1 : 13)); /* asked for by message 3, or known from the copy */
            push_fresh(&r, 4, 1, 3, 20);                 /* it lacks the update */
            assert_true(row_3(&r) == (ruled ? -1 : 13));
            push_fresh(&r, 5, 2, 3, 21);
            assert_true(row_3(&r) == 21);
            for (int clock = 1; clock < 6; clock++) clock_of(&r, false);
            assert_true(row_3(&r) == 21); /* clock 6, version 3 */
            clock_of(&r, false);
            assert_true(row_3(&r) == -1);
            close_reader(&r);
        }
}

static void answer_range(reader *r, const pli_ask *ask, uint64_t seq, float value) {
    pli_msg *answer = pli_msg_new(ROWS * 4);
    for (int i = 0; i < ROWS; i++) ((float *)pli_msg_body(answer))[i] = value;
    answer->head = (pli_head){ .kind = PLI_REPLY, .src = FIRST, .incarnation = 1, .seq = seq, .arg32 = ask->ticket.id,
                               .body_bytes = ROWS * 4 };
    pli_client_ops.on_message(&r->client, 1, answer, &r->out);
}

static void end_range(reader *r, pli_ask *ask) {
    pli_ticket_unlink(&r->client, &ask->ticket);
    assert_int_equal(pli_ask_finish(&r->client, ask, NULL), PLAIT_OK);
    pli_ask_abandon(ask);
}

static void test_pushed_copies_before_a_barrier_or_an_answer_are_old(void **state) {
    (void)state;
    reader r;
    open_reader(&r, NULL, ROWS);
    push_fresh(&r, 1, 0, 0, 10);
    pli_cache_drop_fresh(r.table); /* a barrier */
    assert_true(row_3(&r) == -1);
    pli_ask ask;
    assert_int_equal(pli_ask_range(&r.client, 1, r.table, 0, ROWS, r.values, &ask, &r.out, NULL), PLAIT_OK);
    push_fresh(&r, 2, 0, 0, 11);
    answer_range(&r, &ask, 3, 12);
    end_range(&r, &ask);
    assert_true(row_3(&r) == 12); /* not 11 again */
    close_reader(&r);
}

/* Two gets are under way and waited for in the other order: the copy that is held is the later answer. */
static void test_an_older_answer_is_not_held(void **state) {
    (void)state;
    reader  r;
    pli_ask first, second;
    open_reader(&r, NULL, ROWS);
    assert_int_equal(pli_ask_range(&r.client, 1, r.table, 0, ROWS, r.values, &first, &r.out, NULL), PLAIT_OK);
    assert_int_equal(pli_ask_range(&r.client, 1, r.table, 0, ROWS, r.values, &second, &r.out, NULL), PLAIT_OK);
    answer_range(&r, &first, 1, 10);
    answer_range(&r, &second, 2, 11);
    end_range(&r, &second);
    end_range(&r, &first);
    assert_true(row_3(&r) == 11);
    close_reader(&r);
}

static void test_malformed_pushed_copies_fail(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        reader r;
        open_reader(&r, NULL, i < 2 ? 0 : ROWS);
        pli_msg *msg = pli_msg_new(i == 0 ? 0 : i == 1 ? 20 : i == 2 ? 28 : i == 3 ? 32 : 12);
        if (msg->body != NULL) memset(pli_msg_body(msg), i == 4 ? 9 : 0, msg->head.body_bytes);
        msg->head.kind = i < 2 || i == 4 ? PLI_FRESH_KEYS : PLI_FRESH;
        msg->head.src = FIRST;
        msg->head.incarnation = 1;
        msg->head.seq = 1;
        msg->head.arg32 = i == 3; /* names a table that does not exist */
        pli_client_ops.on_message(&r.client, 1, msg, &r.out);
        assert_int_equal(r.out.error.code, PLAIT_EFORMAT);
        close_reader(&r);
    }
}

/* Checks that the dead one's items are spread over those that take them: each gets at least half its fair part, and at
 * most one and a half times it. */
static void expect_spread(const uint8_t *dead, int32_t workers, int32_t first, int32_t end, const int64_t *taken) {
    int64_t all = 0, takers = 0;
    for (int32_t w = 0; w < workers; w++) all += taken[w];
    for (int32_t w = first; w < end; w++) takers += !dead[w];
    for (int32_t w = 0; w < workers; w++) {
        if (w < first || w >= end || dead[w]) assert_int_equal(taken[w], 0);
        else assert_in_range(taken[w] * takers * 2, all, all * 3);
    }
}

/* Each item of a dead worker has one heir, a spare while one lives; a death moves only the items of the one who
 * died. */
static void test_heirs(void **state) {
    enum { WORKERS = 6, ITEMS = 6000 };
    static const int32_t deaths[] = { 1, 4, 0, 5, 3 };
    (void)state;
    for (int32_t spares = 0; spares <= 2; spares++) {
        uint8_t dead[WORKERS] = { 0 };
        int32_t was[ITEMS], home[ITEMS];
        for (int64_t i = 0; i < ITEMS; i++) was[i] = home[i] = (int32_t)(i % (WORKERS - spares));
        for (size_t d = 0; d < sizeof deaths / sizeof *deaths; d++) {
            int64_t held[WORKERS] = { 0 }, taken[WORKERS] = { 0 }, moved = 0;
            bool    ready = false;
            dead[deaths[d]] = 1;
            for (int32_t w = WORKERS - spares; w < WORKERS; w++) ready = ready || !dead[w];
            for (int64_t i = 0; i < ITEMS; i++) {
                const int32_t now = pli_heir_of(dead, WORKERS, spares, home[i], (uint64_t)i);
                assert_false(dead[now]);
                if (was[i] != deaths[d]) assert_int_equal(now, was[i]);
                else taken[now]++;
                moved += now != was[i];
                held[now]++;
                was[i] = now;
            }
            for (int32_t w = 0; w < WORKERS && !ready; w++) assert_true(dead[w] || held[w] > 0);
            expect_spread(dead, WORKERS, ready ? WORKERS - spares : 0, ready ? WORKERS : WORKERS - spares, taken);
            assert_true(moved > 0 || deaths[d] >= WORKERS - spares);
        }
    }
    assert_int_equal(pli_heir_of(NULL, WORKERS, 2, 3, 7), 3);
}

static int32_t count(pli_out *out, pli_kind kind) {
    int32_t n = 0;
    for (const pli_msg *msg = out->first; msg != NULL; msg = msg->next) n += msg->head.kind == kind;
    pli_out_drop(out);
    pli_out_init(out);
    return n;
}

/* A thousand workers, one of which holds the only shard: nobody asks the others anything, neither in a wait nor at the
 * end. */
static void test_servers_without_shards_hear_nothing(void **state) {
    (void)state;
    static const pli_layout many = { .workers = 1000, .servers = 1000 };
    const int32_t           holder = (pli_lease_keeper(&many) + 1) % many.servers;
    pli_client              client;
    pli_ticket              ticket;
    pli_out                 out;
    pli_out_init(&out);
    assert_int_equal(pli_client_open(&client, &many, 0, 0, 1, NULL), PLAIT_OK);
    assert_false(pli_client_says_bye(&client)); /* it meets the others by a collective */
    client.link[holder].used = true;
    client.n_used = 1;
    assert_true(pli_client_says_bye(&client));
    pli_ticket_open(&client, &ticket);
    assert_int_equal(pli_client_send_all(&client, 1, PLI_BARRIER, &ticket, &out, NULL), PLAIT_OK);
    assert_int_equal(count(&out, PLI_BARRIER), 1);
    pli_ticket_wonder(&client, 1, &ticket, &out);
    pli_client_ops.on_wakeup(&client, ticket.why_at_ns, &out);
    assert_int_equal(count(&out, PLI_WHY), 1);
    assert_int_equal(pli_client_send_all(&client, 1, PLI_LEAVE, NULL, &out, NULL), PLAIT_OK);
    assert_int_equal(count(&out, PLI_LEAVE), 2); /* one of the two is the server that keeps the book of leases */
    assert_int_equal(pli_client_send_all(&client, 1, PLI_BYE, NULL, &out, NULL), PLAIT_OK);
    assert_int_equal(count(&out, PLI_BYE), 1);
    pli_ticket_unlink(&client, &ticket);
    client.n_used = 0;
    pli_client_close(&client);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_second_answer_of_a_server_does_not_count),
        cmocka_unit_test(test_a_lost_server_fails_the_rank),
        cmocka_unit_test(test_pushed_copies_are_taken_where_they_hold_own_updates),
        cmocka_unit_test(test_pushed_copies_before_a_barrier_or_an_answer_are_old),
        cmocka_unit_test(test_malformed_pushed_copies_fail),
        cmocka_unit_test(test_an_older_answer_is_not_held),
        cmocka_unit_test(test_heirs),
        cmocka_unit_test(test_servers_without_shards_hear_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
