/* The bare client: answers that come twice, servers that are lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table/client.h"

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
    assert_int_equal(pli_client_send_all(client, 1, true, PLI_BARRIER, ticket, out, NULL), PLAIT_OK);
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
    pli_client_ops.on_message(&client, 1, reply(1, 1, ticket.id + 1), &out); /* nobody asked */
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
    assert_int_equal(pli_client_send(&client, 1, 0, PLI_PULL, pli_msg_new(0), &ticket, &out, &err), PLAIT_OK);
    pli_client_ops.on_message(&client, 1, reply(1, 1, ticket.id), &out); /* of a life that is over */
    assert_null(ticket.replies);
    pli_out_drop(&out);
    pli_client_close(&client);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_second_answer_of_a_server_does_not_count),
        cmocka_unit_test(test_a_lost_server_fails_the_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
