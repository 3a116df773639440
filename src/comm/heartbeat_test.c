/* Heartbeats over simulated networks, each from its seed: processes that stop and go on, links that are cut,
 * messages that are slow, turns that come late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "comm/heartbeat.h"

#define MS       UINT64_C(1000000)
#define PERIOD   (1000 * MS)
#define PATIENCE (5000 * MS)
enum { SIZE_MAX_ = 100, FLIGHTS_MAX = 1 << 16 };

typedef struct flight {
    uint64_t at_ns;
    int32_t  from, to;
} flight;

typedef struct network {
    pli_heartbeat node[SIZE_MAX_];
    uint64_t      turn_ns[SIZE_MAX_]; /* when its next turn is */
    uint64_t      stops_ns, goes_on_ns; /* when node `stopped` stops and goes on */
    uint64_t      cut_ns; /* from then on nothing passes between ranks below `side` and the others */
    int32_t       size, stopped, side;
    uint64_t      found_ns[SIZE_MAX_][SIZE_MAX_]; /* [by][who] */
    flight       *flying;
    int64_t       n;
    pli_random    random;
} network;

static uint64_t draw(network *net, uint64_t below) { return pli_random_u64(&net->random) % below; }

static network *make(int32_t size, uint64_t seed) {
    network *net = calloc(1, sizeof *net);
    assert_non_null(net);
    net->flying = calloc(FLIGHTS_MAX, sizeof *net->flying);
    assert_non_null(net->flying);
    net->size = size;
    net->stopped = net->side = -1;
    net->stops_ns = net->cut_ns = UINT64_MAX;
    net->random = pli_random_at(seed, PLI_RANDOM_CLUSTER, 0, 0);
    for (int32_t r = 0; r < size; r++) {
        assert_true(pli_heartbeat_init(&net->node[r], size, r, PERIOD, PATIENCE, 0));
        net->turn_ns[r] = draw(net, 200 * MS);
    }
    return net;
}

static void destroy(network *net) {
    for (int32_t r = 0; r < net->size; r++) pli_heartbeat_destroy(&net->node[r]);
    free(net->flying);
    free(net);
}

static bool stands(const network *net, int32_t rank, uint64_t now_ns) {
    return rank == net->stopped && now_ns >= net->stops_ns && now_ns < net->goes_on_ns;
}

/* Messages that have come are heard before the turn, as a driver does it. */
static void hear(network *net, int32_t rank, uint64_t now_ns) {
    int64_t kept = 0;
    for (int64_t i = 0; i < net->n; i++) {
        flight f = net->flying[i];
        if (f.to == rank && f.at_ns <= now_ns) pli_heartbeat_hear(&net->node[rank], f.from);
        else net->flying[kept++] = f;
    }
    net->n = kept;
}

/* Runs until until_ns; messages take up to delay_ns, and turns come up to late_ns late. */
static void run(network *net, uint64_t until_ns, uint64_t delay_ns, uint64_t late_ns) {
    for (;;) {
        int32_t next = 0;
        for (int32_t r = 1; r < net->size; r++)
            if (net->turn_ns[r] < net->turn_ns[next]) next = r;
        uint64_t now_ns = net->turn_ns[next];
        if (now_ns >= until_ns) return;
        if (stands(net, next, now_ns)) {
            net->turn_ns[next] = net->goes_on_ns;
            continue;
        }
        int32_t           beat[SIZE_MAX_], silent[SIZE_MAX_];
        pli_heartbeat_out out = { .beat = beat, .silent = silent };
        hear(net, next, now_ns);
        net->turn_ns[next] = pli_heartbeat_turn(&net->node[next], now_ns, &out) + draw(net, late_ns);
        for (int32_t i = 0; i < out.beats; i++) {
            bool across = net->side >= 0 && (next < net->side) != (beat[i] < net->side) && now_ns >= net->cut_ns;
            assert_true(net->n < FLIGHTS_MAX && beat[i] != next);
            if (!across) net->flying[net->n++] = (flight){ now_ns + 1 + draw(net, delay_ns), next, beat[i] };
        }
        for (int32_t i = 0; i < out.silents; i++) {
            assert_true(net->found_ns[next][silent[i]] == 0); /* each is named once */
            net->found_ns[next][silent[i]] = now_ns;
        }
    }
}

static int32_t finders(const network *net, int32_t who) {
    int32_t n = 0;
    for (int32_t r = 0; r < net->size; r++) n += net->found_ns[r][who] != 0;
    return n;
}

/* A process that lives and can be heard is never named, though turns and messages are late. */
static void test_nobody_is_named_without_cause(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        network *net = make(2 + (int32_t)(seed % 12), seed);
        run(net, 120 * PERIOD, PATIENCE - 3 * PERIOD, 900 * MS);
        for (int32_t r = 0; r < net->size; r++) assert_int_equal(finders(net, r), 0);
        destroy(net);
    }
}

/* A process that stops for good is named by all others, not before the patience is over and soon afterwards; no
 * other process is named. */
static void test_who_stops_is_named(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        network *net = make(2 + (int32_t)(seed % 12), seed);
        net->stopped = (int32_t)draw(net, (uint64_t)net->size);
        net->stops_ns = 10 * PERIOD + draw(net, PERIOD);
        net->goes_on_ns = UINT64_MAX;
        run(net, 20 * PERIOD, 50 * MS, 100 * MS);
        for (int32_t by = 0; by < net->size; by++)
            for (int32_t who = 0; who < net->size; who++) {
                uint64_t found_ns = net->found_ns[by][who];
                if (who != net->stopped || by == who) assert_true(found_ns == 0);
                else assert_true(found_ns >= net->stops_ns + PATIENCE - PERIOD - 400 * MS &&
                                 found_ns <= net->stops_ns + PATIENCE + PERIOD);
            }
        destroy(net);
    }
}

/* A process that was itself stopped has not listened meanwhile, and names nobody when it goes on; a stop shorter
 * than the patience gives the others no cause. */
static void test_who_was_stopped_names_nobody(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        bool     lasts = seed % 2 == 0;
        network *net = make(3 + (int32_t)(seed % 6), seed);
        net->stopped = (int32_t)draw(net, (uint64_t)net->size);
        net->stops_ns = 10 * PERIOD;
        net->goes_on_ns = net->stops_ns + (lasts ? 60 * PERIOD : PATIENCE - 2 * PERIOD);
        run(net, 100 * PERIOD, 50 * MS, 100 * MS);
        assert_int_equal(finders(net, net->stopped), lasts ? net->size - 1 : 0);
        for (int32_t by = 0; by < net->size; by++)
            for (int32_t who = 0; who < net->size; who++)
                if (by != net->stopped && who != net->stopped) assert_true(net->found_ns[by][who] == 0);
        /* If it counts as dead when it goes on, the others send it no beats: it finds them silent one patience
         * later, not before. */
        for (int32_t who = 0; who < net->size; who++) {
            uint64_t found_ns = net->found_ns[net->stopped][who];
            assert_true(found_ns == 0 || (lasts && found_ns >= net->goes_on_ns + PATIENCE - PERIOD));
        }
        destroy(net);
    }
}

/* Each side of a cut link names all processes of the other side, and none of its own. */
static void test_a_cut_link_is_named_on_both_sides(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        network *net = make(2 + (int32_t)(seed % 9), seed);
        net->side = 1 + (int32_t)draw(net, (uint64_t)net->size - 1);
        net->cut_ns = 8 * PERIOD + draw(net, PERIOD);
        run(net, 18 * PERIOD, 50 * MS, 100 * MS);
        for (int32_t by = 0; by < net->size; by++)
            for (int32_t who = 0; who < net->size; who++)
                assert_true((net->found_ns[by][who] != 0) == ((by < net->side) != (who < net->side)));
        destroy(net);
    }
}

/* Beyond PLI_HEARTBEAT_ALL each rank is watched by a few; a rank that is forgotten hands its place on, so even a
 * whole run of neighbours that stops at once is found. */
static void test_a_ring_of_many(void **state) {
    (void)state;
    network *net = make(SIZE_MAX_, 7);
    net->stopped = 50;
    net->stops_ns = 10 * PERIOD;
    net->goes_on_ns = UINT64_MAX;
    run(net, 18 * PERIOD, 50 * MS, 100 * MS);
    for (int32_t r = 0; r < SIZE_MAX_; r++) assert_int_equal(finders(net, r), r == 50 ? PLI_HEARTBEAT_WATCHED : 0);
    for (int32_t by = 51; by <= 54; by++) assert_true(net->found_ns[by][50] != 0);
    destroy(net);

    net = make(SIZE_MAX_, 8);
    for (int32_t r = 0; r < SIZE_MAX_; r++)
        for (int32_t ended = 40; ended < 50; ended++) pli_heartbeat_forget(&net->node[r], ended);
    net->stopped = 39;
    net->stops_ns = 5 * PERIOD;
    net->goes_on_ns = UINT64_MAX;
    run(net, 14 * PERIOD, 50 * MS, 100 * MS);
    for (int32_t r = 0; r < SIZE_MAX_; r++) {
        bool watches = r >= 50 && r < 50 + PLI_HEARTBEAT_WATCHED;
        if (r < 40 || r >= 50) assert_true((net->found_ns[r][39] != 0) == watches);
    }
    destroy(net);
}

static void test_every_failed_allocation(void **state) {
    (void)state;
    bool made = false;
    for (int64_t k = 0; !made; k++) {
        pli_heartbeat h;
        int64_t       live = pli_alloc_live();
        pli_alloc_fail_after(k);
        made = pli_heartbeat_init(&h, 5, 1, PERIOD, PATIENCE, 0);
        pli_alloc_fail_after(-1);
        pli_heartbeat_destroy(&h);
        assert_int_equal(pli_alloc_live(), live);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_is_named_without_cause), cmocka_unit_test(test_who_stops_is_named),
        cmocka_unit_test(test_who_was_stopped_names_nobody),  cmocka_unit_test(test_a_cut_link_is_named_on_both_sides),
        cmocka_unit_test(test_a_ring_of_many),                cmocka_unit_test(test_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
