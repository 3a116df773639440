/* What a process makes of news of deaths while it has no right to go on: rank 0 of four, on a transport that carries
 * nothing, at a time that stands still unless the test moves it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "comm/membership.h"
#include "comm/rounds.h"
#include "comm/views.h"
#include "comm/world.h"

enum { RANKS = 4 };
#define PATIENCE UINT64_C(1000000000)

static uint64_t time_ns = 1;

static uint64_t tell_time(const pli_transport *transport) {
    (void)transport;
    return time_ns;
}

static void lose_message(pli_transport *transport, pli_msg *msg) {
    (void)transport;
    pli_msg_free(&msg);
}

static void ring(pli_transport *transport, int32_t rank) {
    (void)transport;
    (void)rank;
}

static const pli_transport_ops ops = { .name = "nowhere", .send = lose_message, .now = tell_time, .ring = ring };

static pli_world *begin(void) {
    pli_world *world = pli_calloc(1, sizeof *world);
    assert_non_null(world);
    world->ops = &ops;
    world->size = RANKS;
    world->place = (pli_place){ .workers = RANKS, .first = 0, .count = 1, .ranks_on_host = 1, .host = "here" };
    pthread_mutex_init(&world->lock, NULL);
    world->n_members = 1;
    world->members = pli_calloc(1, sizeof *world->members);
    assert_non_null(world->members);
    world->members->world = world;
    atomic_store(&world->members->view, 1);
    world->members->events = pli_calloc(RANKS, sizeof *world->members->events);
    world->members->ended = pli_calloc(RANKS, sizeof *world->members->ended);
    world->local = pli_aligned(sizeof *world->local);
    world->members->life = pli_calloc(RANKS, sizeof *world->members->life);
    assert_true(world->members->events != NULL && world->members->ended != NULL && world->local != NULL);
    assert_non_null(world->members->life);
    for (int r = 0; r < RANKS; r++) world->members->life[r] = 1;
    plait_comm *comm = world->local;
    memset(comm, 0, sizeof *comm);
    comm->life = 1;
    comm->world = world;
    comm->members = world->members;
    pli_sheet_init(&comm->sheet);
    pthread_mutex_init(&comm->reason_lock, NULL);
    pthread_mutex_init(&comm->failed_lock, NULL);
    for (uint32_t p = 0; p < PLI_PORT_MAX; p++) pli_port_init(&comm->ports[p], comm, p);
    assert_true(pli_doctor_open(world) && pli_views_open(world->members, PATIENCE));
    pli_comm_survive(comm);
    return world;
}

/* It hears rank 1 alone, which is no majority, until it stops. */
static pli_world *begin_and_stop(void) {
    pli_world *world = begin();
    pli_world_missed_rank(world, 2, "is silent");
    pli_world_missed_rank(world, 3, "is silent");
    for (int i = 0; i < 1000 && !atomic_load(&world->members->lost); i++) {
        time_ns += PATIENCE / 50;
        (void)pli_views_turn(world->members, time_ns);
    }
    assert_true(atomic_load(&world->members->lost));
    assert_int_equal(atomic_load(&world->members->n_events), 0);
    return world;
}

static void tell_dead(pli_world *world, int32_t from, int32_t dead) {
    pli_msg *msg = pli_msg_new(0);
    assert_non_null(msg);
    msg->head.kind = PLI_CONTROL_DEAD;
    msg->head.src = from;
    msg->head.arg32 = (uint32_t)dead;
    pli_world_control(world, msg);
}

/* Were its machines told of deaths, a server among them would make safe what only this side has, and say so to rank 1,
 * which may not have noticed the cut yet: an update would be acknowledged and lost. */
static void test_who_has_stopped_counts_no_deaths(void **state) {
    (void)state;
    plait_error why = { 0 };
    pli_world  *world = begin_and_stop();
    tell_dead(world, 1, 3);
    assert_int_equal(atomic_load(&world->members->n_events), 0);
    pli_world_missed_rank(world, 2, "is silent still");
    assert_int_equal(atomic_load(&world->members->n_events), 0);
    pli_world_died(world, 3, "is gone");
    pli_fail(&why, PLAIT_EPEER, "it has stopped, too");
    pli_world_member(world, PLI_MEMBER_DIED, 1, &why);
    assert_int_equal(atomic_load(&world->members->n_events), 0);
    pli_world_end_rank(world, 0, PLAIT_EPEER, &why); /* its own end counts, and news that is even later does not */
    tell_dead(world, 1, 2);
    assert_int_equal(atomic_load(&world->members->n_events), 1);
    assert_int_equal(world->members->events[0].rank, 0);
    for (int32_t r = 1; r < RANKS; r++) /* it waits for nobody's end */
        assert_true(pli_views_is_unheard(world->members, r));
    pli_world_free(&world);
}

/* Nothing is acknowledged to a rank that has left: its own news counts at once, so that it can end. */
static void test_who_has_left_counts_deaths_at_once(void **state) {
    (void)state;
    plait_error why = { 0 };
    pli_world  *world = begin();
    pli_world_end_rank(world, 0, PLAIT_OK, &why);
    assert_int_equal(atomic_load(&world->members->n_events), 1);
    pli_world_missed_rank(world, 2, "is silent");
    assert_int_equal(atomic_load(&world->members->n_events), 2);
    assert_int_equal(world->members->events[1].rank, 2);
    pli_world_free(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_has_stopped_counts_no_deaths),
        cmocka_unit_test(test_who_has_left_counts_deaths_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
