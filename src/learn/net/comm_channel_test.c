/* Tests of the channel over ranks: a tensor comes as it was sent, grants bound what is on the way, and a wait that
 * cannot end says who, what and which micro-batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <plait/comm_channel.h>

#include "learn/net/parcel.h"

#include <cmocka.h>

static const int32_t both[] = { 0, 1 };

/* Ends a rank's body with a failure that says where. */
#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) return fprintf(stderr, "line %d: %s\n", __LINE__, err.text), PLAIT_EDIVERGED;                \
    } while (0)

static void run(plait_body_fn *body, const char *transport, plait_status want, const char *text) {
    plait_comm_opts opts;
    plait_error     err = { .code = PLAIT_OK };
    plait_comm_opts_init(&opts);
    opts.transport = transport;
    opts.workers = 2;
    opts.timeout_ns = 60000000000u;
    assert_int_equal(plait_comm_run(&opts, body, NULL, &err), want);
    if (strstr(err.text, text) == NULL) fail_msg("'%s' does not say '%s'", err.text, text);
}

enum { TENSORS = 50 };

static plait_status stream(plait_comm *comm, void *user) {
    plait_comm_channel *channel = NULL;
    plait_error         err = { .code = PLAIT_OK };
    int32_t             refused = 0;
    (void)user;
    MUST(plait_comm_channel_create(comm, 2, both, 2, &channel) == PLAIT_OK);
    const plait_channel *c = plait_comm_channel_calls(channel);
    for (int64_t m = 0; m < TENSORS; m++) {
        const plait_edge edge = { .value = 4, .from = 0, .to = 3, .micro_batch = m }; /* part 3 is on rank 1 */
        float            x[] = { (float)m, 7 };
        plait_tensor     t = plait_tensor_of(PLAIT_F32, plait_shape_1(2), x);
        if (plait_comm_rank(comm) == 0) {
            int taken = 0;
            while (taken == 0) {
                MUST(c->send(c->user, &edge, &t, &taken, &err) == PLAIT_OK);
                refused += taken == 0;
                if (taken == 0 && m == 2 && refused == 1) MUST(plait_comm_barrier(comm) == PLAIT_OK);
                if (taken == 0) MUST(c->wait(c->user, &edge, 1, &err) == PLAIT_OK);
            }
            x[0] = -1;                     /* it was lent for the call only */
            if (m == 2) MUST(refused > 0); /* the third is held back until rank 1 has received one */
        } else {
            const void *data = NULL;
            if (m == 0) MUST(plait_comm_barrier(comm) == PLAIT_OK);
            MUST(c->wait(c->user, &edge, 0, &err) == PLAIT_OK);
            plait_tensor other = t;
            other.shape = plait_shape_1(3);
            MUST(c->receive(c->user, &edge, &other, &data, &err) == PLAIT_ESHAPE && data == NULL);
            MUST(c->receive(c->user, &edge, &t, &data, &err) == PLAIT_OK && data != NULL);
            MUST(((const float *)data)[0] == (float)m && ((const float *)data)[1] == 7 && (uintptr_t)data % 64 == 0);
            if (m % 2 == 0) c->release(c->user, &edge, data); /* destroy frees the others */
        }
    }
    MUST(plait_comm_barrier(comm) == PLAIT_OK);
    plait_comm_channel_destroy(&channel);
    MUST(channel == NULL);
    return PLAIT_OK;
}

static void test_tensors_come_as_they_were_sent(void **state) {
    (void)state;
    run(stream, "threads", PLAIT_OK, "");
}

static plait_status leave(plait_comm *comm, void *user) {
    plait_comm_channel *channel = NULL;
    plait_error         err = { .code = PLAIT_OK };
    const plait_edge    edge = { .value = 9, .from = 0, .to = 1, .micro_batch = 12 };
    (void)user;
    MUST(plait_comm_channel_create(comm, 2, both, 0, &channel) == PLAIT_OK);
    const plait_channel *c = plait_comm_channel_calls(channel);
    if (plait_comm_rank(comm) == 1) {
        MUST(c->wait(c->user, &edge, 0, &err) == PLAIT_EPEER);
        MUST(strstr(err.text, "rank 0 has left; this rank waited for value 9 of part 0 on rank 0 for part 1, "
                              "micro-batch 12") != NULL);
    }
    plait_comm_channel_destroy(&channel);
    return PLAIT_OK;
}

static void test_a_producer_that_leaves(void **state) {
    (void)state;
    run(leave, "threads", PLAIT_OK, "");
}

static plait_status circle(plait_comm *comm, void *user) {
    plait_comm_channel *channel = NULL;
    plait_error         err = { .code = PLAIT_OK };
    const int32_t       me = plait_comm_rank(comm);
    const plait_edge    edge = { .value = 5, .from = 1 - me, .to = me, .micro_batch = 3 };
    (void)user;
    MUST(plait_comm_channel_create(comm, 2, both, 0, &channel) == PLAIT_OK);
    const plait_channel *c = plait_comm_channel_calls(channel);
    const plait_status   status = c->wait(c->user, &edge, 0, &err);
    plait_comm_channel_destroy(&channel);
    if (status == PLAIT_EPEER) return PLAIT_OK; /* the other heard of it first, and has left */
    MUST(status == PLAIT_EDEADLOCK);
    MUST(strstr(err.text, "value 5 of part 1 on rank 1 for part 0, micro-batch 3") != NULL);
    MUST(strstr(err.text, "value 5 of part 0 on rank 0 for part 1, micro-batch 3") != NULL);
    return status;
}

static void test_a_circle(void **state) {
    (void)state;
    run(circle, "threads", PLAIT_EDEADLOCK, "");
}

static plait_status refused(plait_comm *comm, void *user) {
    static const int32_t twice[] = { 0, 0 }, none[] = { 0, 2 };
    plait_comm_channel  *channel = NULL, *second = NULL;
    plait_error          err = { .code = PLAIT_OK };
    (void)user;
    MUST(plait_comm_channel_create(comm, 2, twice, 0, &channel) == PLAIT_EINVAL);
    MUST(plait_comm_channel_create(comm, 2, none, 0, &channel) == PLAIT_EINVAL);
    MUST(plait_comm_channel_create(comm, 2, both, -1, &channel) == PLAIT_EINVAL);
    MUST(plait_comm_channel_create(comm, 2, both, 0, &channel) == PLAIT_OK);
    MUST(plait_comm_channel_create(comm, 2, both, 0, &second) == PLAIT_EINVAL && second == NULL);
    plait_comm_channel_destroy(&channel);
    return PLAIT_OK;
}

static void test_what_is_refused(void **state) {
    (void)state;
    run(refused, "threads", PLAIT_OK, "");
}

/* A decoder checks every size. */
static void test_bad_parcels(void **state) {
    (void)state;
    float              x[6] = { 1, 2, 3, 4, 5, 6 };
    const plait_tensor t = plait_tensor_of(PLAIT_F32, plait_shape_2(2, 3), x);
    const plait_edge   edge = { .value = 1, .from = 2, .to = 3, .replica = 4, .micro_batch = 5 };
    unsigned char      body[PLI_PARCEL_BYTES + sizeof x];
    plait_edge         got;
    plait_tensor       back;
    pli_parcel         p;
    assert_int_equal(pli_parcel_bytes(&t), sizeof body);
    pli_parcel_write(&edge, &t, body);
    assert_int_equal(pli_parcel_read(body, sizeof body, &got, &back, NULL), PLAIT_OK);
    assert_true(got.value == 1 && got.from == 2 && got.to == 3 && got.replica == 4 && got.micro_batch == 5);
    assert_memory_equal(back.data, x, sizeof x);
    for (size_t n = 0; n < sizeof body; n++)
        assert_int_equal(pli_parcel_read(body, n, &got, &back, NULL), PLAIT_EFORMAT);
    for (int bad = 0; bad < 5; bad++) {
        pli_parcel_write(&edge, &t, body);
        memcpy(&p, body, sizeof p);
        if (bad == 0) p.type = PLAIT_TYPES;
        if (bad == 1) p.rank = PLAIT_RANK_MAX + 1;
        if (bad == 2) p.dim[0] = -2;
        if (bad == 3) p.dim[0] = INT64_MAX;
        if (bad == 4) p.dim[1] = 4;
        memcpy(body, &p, sizeof p);
        assert_int_equal(pli_parcel_read(body, sizeof body, &got, &back, NULL), PLAIT_EFORMAT);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_tensors_come_as_they_were_sent),
                                        cmocka_unit_test(test_a_producer_that_leaves), cmocka_unit_test(test_a_circle),
                                        cmocka_unit_test(test_what_is_refused), cmocka_unit_test(test_bad_parcels) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
