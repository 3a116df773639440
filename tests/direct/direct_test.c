/* The direct driver, and comm's own machines under it: collectives and tagged messages over a network that loses,
 * doubles, delays and reorders; the steps of every collective against plain sums; determinism. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "comm/collective.h"
#include "comm/user.h"
#include "direct/direct.h"

enum { RANKS_MAX = 11, N_MAX = 6000, GATHER_MAX = N_MAX * 8 / RANKS_MAX };

static const direct_opts networks[] = {
    { .reorder = 0 },
    { .delay = 0.3 },
    { .reorder = 0.5, .delay = 0.2 },
    { .reorder = 0.3, .twice = 0.3, .drop = 0.2, .delay = 0.2, .early_wake = 0.05 },
};
enum { NETWORKS = sizeof networks / sizeof networks[0] };
static uint64_t patience(int network) { return networks[network].drop > 0 || networks[network].reorder > 0 ? 20000 : 0; }

struct team {
    int32_t        workers;
    pli_collective c[RANKS_MAX];
    double         buf[RANKS_MAX][N_MAX];
    int            calls_left[RANKS_MAX];
};

static double input(int32_t rank, int64_t i, int call) { return (double)((rank + 1) * 13 + i % 97 + call) / 3.0; }

static pli_coll call_of(struct team *team, int32_t r, int call, uint64_t seed) {
    static const int64_t lengths[] = { 3, 100, 0, N_MAX };
    pli_coll             c = { .type = PLAIT_F64, .buf = team->buf[r] };
    c.kind = (pli_coll_kind)(1 + ((uint64_t)call + seed) % 4);
    c.n = lengths[((uint64_t)call + seed / 4) % 4];
    if (c.kind != PLI_ALLREDUCE) c.type = PLAIT_U8;
    if (c.kind == PLI_BROADCAST) c.root = call % team->workers;
    if (c.kind == PLI_ALLGATHER && c.n > GATHER_MAX) c.n = GATHER_MAX;
    if (c.kind == PLI_BARRIER) c.n = 0;
    return c;
}

static void fill(struct team *team, int32_t r, const pli_coll *c, int call) {
    unsigned char *bytes = (unsigned char *)team->buf[r];
    if (c->kind == PLI_ALLREDUCE) {
        for (int64_t i = 0; i < c->n; i++) team->buf[r][i] = input(r, i, call);
    } else if (c->kind == PLI_BROADCAST) {
        memset(bytes, r == c->root ? 100 + call : 0, (size_t)c->n);
    } else if (c->kind == PLI_ALLGATHER) {
        memset(bytes, 0xff, (size_t)(c->n * team->workers));
        memset(bytes + c->n * r, r + call, (size_t)c->n);
    }
}

static void check(const struct team *team, int32_t r, const pli_coll *c, int call) {
    const unsigned char *bytes = (const unsigned char *)team->buf[r];
    for (int64_t i = 0; c->kind == PLI_ALLREDUCE && i < c->n; i++) {
        double want = 0;
        for (int32_t k = 0; k < team->workers; k++) want += input(k, i, call);
        assert_true(want - team->buf[r][i] < 1e-9 && team->buf[r][i] - want < 1e-9);
    }
    for (int64_t i = 0; c->kind == PLI_BROADCAST && i < c->n; i++) assert_int_equal(bytes[i], 100 + call);
    for (int64_t i = 0; c->kind == PLI_ALLGATHER && i < c->n * team->workers; i++)
        assert_int_equal(bytes[i], i / c->n + call);
}

/* Each worker begins its next call as soon as its last has finished, so some are calls ahead of others. */
static uint64_t run_team(uint64_t seed, int32_t workers, int network, int calls) {
    static struct team team;
    direct            *d = direct_new(seed, workers, &networks[network]);
    uint64_t           charged[RANKS_MAX] = { 0 };
    team.workers = workers;
    for (int32_t r = 0; r < workers; r++) {
        assert_true(pli_collective_init(&team.c[r], r, workers, patience(network)));
        direct_add(d, r, PLI_PORT_COLLECTIVE, &pli_collective_ops, &team.c[r]);
        team.calls_left[r] = calls + 1;
    }
    int32_t busy = workers;
    for (int64_t events = 0; busy > 0; events++) {
        assert_true(events < 1000000);
        int32_t         r = (int32_t)direct_pick(d, (uint64_t)workers);
        pli_collective *c = &team.c[r];
        if (team.calls_left[r] > 0 && c->finished == c->started && direct_pick(d, 2) == 0) {
            int      call = calls - team.calls_left[r];
            uint64_t now;
            assert_int_equal(c->error.code, 0);
            if (call >= 0) {
                pli_coll done = call_of(&team, r, call, seed);
                check(&team, r, &done, call);
            }
            if (--team.calls_left[r] == 0) {
                busy--;
            } else {
                pli_coll next = call_of(&team, r, ++call, seed);
                fill(&team, r, &next, call);
                charged[r] += pli_coll_bytes(&next, r, workers);
                pli_out *out = direct_enter(d, r, PLI_PORT_COLLECTIVE, &now);
                pli_collective_begin(c, now, &next, out);
                direct_leave(d, r, PLI_PORT_COLLECTIVE);
            }
        }
        direct_step(d);
    }
    assert_true(direct_run(d, 100000));
    uint64_t hash = direct_hash(d);
    for (int32_t r = 0; r < workers; r++) {
        if (patience(network) == 0) assert_int_equal(direct_bytes(d, r), charged[r]);
        assert_int_equal(direct_error(d, r)->code, 0);
        pli_collective_destroy(&team.c[r]);
    }
    direct_free(&d);
    return hash;
}

static void test_collectives_on_any_network(void **state) {
    (void)state;
    int64_t live = pli_alloc_live();
    for (uint64_t seed = 0; seed < 240; seed++) run_team(seed, 1 + (int32_t)(seed / 4 % RANKS_MAX), (int)(seed % NETWORKS), 6);
    assert_int_equal(pli_alloc_live(), live);
}

static void test_a_schedule_repeats_by_its_seed(void **state) {
    (void)state;
    for (int network = 0; network < NETWORKS; network++) {
        uint64_t hash = run_team(7, 4, network, 5);
        assert_true(hash == run_team(7, 4, network, 5));
        assert_true(hash != run_team(8, 4, network, 5));
    }
}

static void test_a_collective_without_one_who_has_left_fails(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        pli_collective c[3];
        direct        *d = direct_new(seed, 3, NULL);
        for (int32_t r = 0; r < 3; r++) {
            assert_true(pli_collective_init(&c[r], r, 3, 0));
            direct_add(d, r, PLI_PORT_COLLECTIVE, &pli_collective_ops, &c[r]);
        }
        pli_coll barrier = { .kind = PLI_BARRIER, .type = PLAIT_U8 };
        uint64_t now;
        for (int32_t r = 0; r < 2; r++) {
            pli_out *out = direct_enter(d, r, PLI_PORT_COLLECTIVE, &now);
            pli_collective_begin(&c[r], now, &barrier, out);
            direct_leave(d, r, PLI_PORT_COLLECTIVE);
        }
        assert_true(seed % 2 == 0 || direct_run(d, 1000));
        direct_member(d, PLI_MEMBER_LEFT, 2, NULL);
        assert_true(direct_run(d, 1000));
        for (int32_t r = 0; r < 2; r++) {
            assert_true(c[r].finished == 1 && c[r].error.code == PLAIT_EPEER);
            assert_non_null(strstr(c[r].error.text, "rank 2"));
        }
        for (int32_t r = 0; r < 3; r++) pli_collective_destroy(&c[r]);
        direct_free(&d);
    }
}

static void test_tagged_messages_come_once_and_in_order(void **state) {
    (void)state;
    enum { RANKS = 4, MESSAGES = 30 };
    for (uint64_t seed = 0; seed < 100; seed++) {
        int      network = (int)(seed % NETWORKS);
        direct  *d = direct_new(seed, RANKS, &networks[network]);
        pli_user user[RANKS];
        for (int32_t r = 0; r < RANKS; r++) {
            assert_true(pli_user_init(&user[r], RANKS, patience(network)));
            if (r > 0) direct_add(d, r, PLI_PORT_USER, &pli_user_ops, &user[r]);
        }
        for (uint32_t i = 0; i < MESSAGES; i++)
            for (int32_t r = 1; r < RANKS; r++) {
                uint64_t now;
                pli_out *out = direct_enter(d, r, PLI_PORT_USER, &now);
                pli_msg *msg = pli_msg_new(4);
                memcpy(pli_msg_body(msg), &i, 4);
                msg->head.dst = (int32_t)direct_pick(d, 2) == 0 ? 0 : r;
                msg->head.arg32 = 5;
                assert_true(pli_links_send(&user[r].links, now, msg, out));
                direct_leave(d, r, PLI_PORT_USER);
                direct_step(d);
            }
        direct_add(d, 0, PLI_PORT_USER, &pli_user_ops, &user[0]); /* what came before it was there was kept */
        assert_true(direct_run(d, 100000));
        for (int32_t src = 1; src < RANKS; src++) {
            int64_t total = 0;
            for (int to = 0; to < 2; to++) {
                int32_t  last = -1, value, at = to == 0 ? 0 : src;
                pli_msg **found;
                while ((found = pli_user_find(&user[at], src, 5)) != NULL) {
                    pli_msg *msg = pli_user_take(&user[at], found);
                    memcpy(&value, pli_msg_body(msg), 4);
                    assert_true(value > last);
                    last = value;
                    total++;
                    pli_msg_free(&msg);
                }
            }
            if (total != MESSAGES) fail_msg("seed %d: %d of %d messages of rank %d", (int)seed, (int)total, MESSAGES, src);
        }
        for (int32_t r = 0; r < RANKS; r++) pli_user_destroy(&user[r]);
        direct_free(&d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collectives_on_any_network),
        cmocka_unit_test(test_a_schedule_repeats_by_its_seed),
        cmocka_unit_test(test_a_collective_without_one_who_has_left_fails),
        cmocka_unit_test(test_tagged_messages_come_once_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
