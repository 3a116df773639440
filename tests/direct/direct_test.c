/* Tests the direct driver, and comm's own machines under it: collectives and tagged messages over a network that
 * loses, doubles, delays and reorders; the steps of every collective against plain sums; that equal seeds give equal
 * runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "comm/forms/forms.h"
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
static uint64_t patience(int network) {
    return networks[network].drop > 0 || networks[network].reorder > 0 ? 20000 : 0;
}

enum { FLIGHTS = 4 };

/* One call of one worker; a worker may have several under way at a time. */
struct flight {
    int          call; /* -1: none */
    pli_coll     coll;
    pli_coll_run run;
    double       buf[N_MAX];
    pli_msg     *piece[RANKS_MAX];
};

struct team {
    int32_t        workers;
    pli_hosts      hosts;
    uint64_t       most; /* the most calls that were under way at one worker */
    pli_collective c[RANKS_MAX];
    struct flight  flight[RANKS_MAX][FLIGHTS];
    int            begun[RANKS_MAX], ended[RANKS_MAX];
};

static double input(int32_t rank, int64_t i, int call) { return (double)((rank + 1) * 13 + i % 97 + call) / 3.0; }
static size_t piece_bytes(int32_t rank, int call) { return (size_t)((rank * 31 + call * 7) % 5 * 50); }

static void describe(const struct team *team, struct flight *f, int call, uint64_t seed) {
    static const int64_t lengths[] = { 3, 100, 0, N_MAX };
    pli_coll             c = { .type = PLAIT_F64, .buf = f->buf };
    c.kind = (pli_coll_kind)(1 + ((uint64_t)call + seed) % 6);
    c.n = lengths[((uint64_t)call + seed / 4) % 4];
    c.begun = team->most > 1;
    if (!pli_coll_reduces(&c)) c.type = PLAIT_U8;
    if (c.kind == PLI_BROADCAST) c.root = call % team->workers;
    if (c.kind == PLI_ALLGATHER && c.n > GATHER_MAX) c.n = GATHER_MAX;
    if (c.kind == PLI_COLL_BARRIER || c.kind == PLI_PIECES) c.n = 0;
    if (c.kind == PLI_PIECES) c.piece = f->piece;
    pli_coll_choose(&c, seed % 3 == 0 ? NULL : pli_forms[seed / 3 % PLI_FORMS], team->workers, &team->hosts);
    f->call = call;
    f->coll = c;
}

static void fill(const struct team *team, int32_t r, struct flight *f) {
    const pli_coll *c = &f->coll;
    unsigned char  *bytes = (unsigned char *)f->buf;
    if (pli_coll_reduces(c)) {
        for (int64_t i = 0; i < c->n; i++) f->buf[i] = input(r, i, f->call);
    } else if (c->kind == PLI_BROADCAST) {
        memset(bytes, r == c->root ? 100 + f->call : 0, (size_t)c->n);
    } else if (c->kind == PLI_ALLGATHER) {
        memset(bytes, 0xff, (size_t)(c->n * team->workers));
        memset(bytes + c->n * r, r + f->call, (size_t)c->n);
    } else if (c->kind == PLI_PIECES) {
        f->piece[r] = pli_msg_new(piece_bytes(r, f->call));
        assert_non_null(f->piece[r]);
        if (f->piece[r]->body != NULL) memset(pli_msg_body(f->piece[r]), r + f->call, piece_bytes(r, f->call));
    }
}

static void check(const struct team *team, int32_t r, struct flight *f) {
    const unsigned char *bytes = (const unsigned char *)f->buf;
    const pli_coll      *c = &f->coll;
    assert_int_equal(f->run.error.code, 0);
    bool    scattered = c->kind == PLI_REDUCE_SCATTER;
    int64_t end = scattered ? pli_slice_first(c->n, r + 1, team->workers) : c->n;
    for (int64_t i = scattered ? pli_slice_first(c->n, r, team->workers) : 0; pli_coll_reduces(c) && i < end; i++) {
        double want = 0;
        for (int32_t k = 0; k < team->workers; k++) want += input(k, i, f->call);
        assert_true(want - f->buf[i] < 1e-9 && f->buf[i] - want < 1e-9);
    }
    for (int64_t i = 0; c->kind == PLI_BROADCAST && i < c->n; i++) assert_int_equal(bytes[i], 100 + f->call);
    for (int64_t i = 0; c->kind == PLI_ALLGATHER && i < c->n * team->workers; i++)
        assert_int_equal(bytes[i], i / c->n + f->call);
    for (int32_t k = 0; c->kind == PLI_PIECES && k < team->workers; k++) {
        const unsigned char *piece = pli_msg_body(f->piece[k]);
        assert_int_equal(f->piece[k]->head.body_bytes, piece_bytes(k, f->call));
        for (size_t i = 0; i < piece_bytes(k, f->call); i++) assert_int_equal(piece[i], k + f->call);
        pli_msg_free(&f->piece[k]);
    }
}

/* A worker begins up to `most` calls before it takes those that have ended, in any order. So some workers are calls
 * ahead of others. */
static uint64_t run_team(uint64_t seed, int32_t workers, int network, int calls, uint64_t most) {
    static struct team team;
    direct            *d = direct_new(seed, workers, &networks[network]);
    uint64_t           charged[RANKS_MAX] = { 0 }, now;
    int32_t            host_of[RANKS_MAX];
    memset(&team, 0, sizeof team);
    team.workers = workers;
    team.most = most;
    for (int32_t r = 0; r < workers; r++) host_of[r] = (int32_t)(seed % 7 == 0 ? 0 : ((uint64_t)r * (seed % 7)) % 4);
    assert_true(pli_hosts_make(host_of, workers, &team.hosts));
    for (int32_t r = 0; r < workers; r++) {
        assert_true(pli_collective_init(&team.c[r], r, workers, patience(network)));
        direct_add(d, r, PLI_PORT_COLLECTIVE, &pli_collective_ops, &team.c[r]);
        for (int k = 0; k < FLIGHTS; k++) team.flight[r][k].call = -1;
    }
    int32_t busy = workers;
    for (int64_t events = 0; busy > 0; events++) {
        assert_true(events < 1000000);
        int32_t        r = (int32_t)direct_pick(d, (uint64_t)workers);
        struct flight *f = &team.flight[r][direct_pick(d, most)];
        if (f->call >= 0 && pli_coll_is_done(&f->run)) {
            check(&team, r, f);
            f->call = -1;
            busy -= ++team.ended[r] == calls;
        } else if (f->call < 0 && team.begun[r] < calls) {
            describe(&team, f, team.begun[r]++, seed);
            fill(&team, r, f);
            if (f->coll.kind != PLI_PIECES) charged[r] += pli_coll_bytes(&f->coll, r, workers);
            for (int32_t i = 1; f->coll.kind == PLI_PIECES && i < workers; i++) /* W - 1 workers send each piece on */
                for (pli_coll_move s = { .to = -1 }; s.to < 0 && pli_coll_step(&f->coll, r, workers, i - 1, &s);)
                    charged[r] += sizeof(pli_head) + piece_bytes((int32_t)s.send_at, f->call);
            pli_out *out = direct_enter(d, r, PLI_PORT_COLLECTIVE, &now);
            pli_collective_begin(&team.c[r], now, &f->coll, &f->run, out);
            direct_leave(d, r, PLI_PORT_COLLECTIVE);
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
    pli_hosts_free(&team.hosts);
    direct_free(&d);
    return hash;
}

static void test_collectives_on_any_network(void **state) {
    (void)state;
    int64_t live = pli_alloc_live();
    for (uint64_t seed = 0; seed < 240; seed++)
        run_team(seed, 1 + (int32_t)(seed / 4 % RANKS_MAX), (int)(seed % NETWORKS), 6, 1 + seed / 20 % FLIGHTS);
    assert_int_equal(pli_alloc_live(), live);
}

static void test_a_schedule_repeats_by_its_seed(void **state) {
    (void)state;
    for (int network = 0; network < NETWORKS; network++) {
        uint64_t hash = run_team(7, 4, network, 5, FLIGHTS);
        assert_true(hash == run_team(7, 4, network, 5, FLIGHTS));
        assert_true(hash != run_team(8, 4, network, 5, FLIGHTS));
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
        pli_coll     barrier = { .kind = PLI_COLL_BARRIER, .type = PLAIT_U8 };
        pli_coll_run run[2];
        uint64_t     now;
        for (int32_t r = 0; r < 2; r++) {
            pli_out *out = direct_enter(d, r, PLI_PORT_COLLECTIVE, &now);
            pli_collective_begin(&c[r], now, &barrier, &run[r], out);
            direct_leave(d, r, PLI_PORT_COLLECTIVE);
        }
        assert_true(seed % 2 == 0 || direct_run(d, 1000));
        direct_member(d, PLI_MEMBER_LEFT, 2, NULL);
        assert_true(direct_run(d, 1000));
        for (int32_t r = 0; r < 2; r++) {
            assert_true(pli_coll_is_done(&run[r]) && run[r].error.code == PLAIT_EPEER);
            assert_non_null(strstr(run[r].error.text, "rank 2"));
        }
        for (int32_t r = 0; r < 3; r++) pli_collective_destroy(&c[r]);
        direct_free(&d);
    }
}

static void test_forms_that_differ_are_named(void **state) {
    (void)state;
    const pli_coll_form *const forms[2] = { &pli_form_ring, &pli_form_tree };
    pli_collective c[2];
    pli_coll_run   run[2];
    double         buf[2] = { 0 };
    uint64_t       now;
    direct        *d = direct_new(1, 2, NULL);
    for (int32_t r = 0; r < 2; r++) {
        pli_coll sum = { .kind = PLI_ALLREDUCE, .type = PLAIT_F64, .n = 1, .buf = &buf[r] };
        pli_coll_choose(&sum, forms[r], 2, NULL);
        assert_true(pli_collective_init(&c[r], r, 2, 0));
        direct_add(d, r, PLI_PORT_COLLECTIVE, &pli_collective_ops, &c[r]);
        pli_out *out = direct_enter(d, r, PLI_PORT_COLLECTIVE, &now);
        pli_collective_begin(&c[r], now, &sum, &run[r], out);
        direct_leave(d, r, PLI_PORT_COLLECTIVE);
    }
    assert_true(direct_run(d, 100));
    assert_int_equal(run[0].error.code, PLAIT_EMISMATCH);
    assert_string_equal(run[0].error.text, "collective 1: rank 1 called allreduce of 1 f64 (sum) by tree where rank 0 "
                                           "called allreduce of 1 f64 (sum) by ring");
    for (int32_t r = 0; r < 2; r++) pli_collective_destroy(&c[r]);
    direct_free(&d);
}

/* Rank 2 takes part in the first of two calls and leaves. Whatever comes when, the first call ends well and the second
 * does not. */
static void test_who_leaves_ends_only_the_calls_that_it_did_not_begin(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        pli_collective c[3];
        pli_coll_run   run[3][2];
        double         buf[3][2] = { { 1, 2 }, { 3, 4 }, { 5, 6 } };
        direct        *d = direct_new(seed, 3, NULL);
        uint64_t       now;
        for (int32_t r = 0; r < 3; r++) {
            assert_true(pli_collective_init(&c[r], r, 3, 0));
            direct_add(d, r, PLI_PORT_COLLECTIVE, &pli_collective_ops, &c[r]);
        }
        for (int k = 0; k < 2; k++)
            for (int32_t r = 0; r < 3 - k; r++) {
                pli_coll sum = { .kind = PLI_ALLREDUCE, .type = PLAIT_F64, .begun = true, .n = 1, .buf = &buf[r][k] };
                pli_coll_choose(&sum, NULL, 3, NULL);
                pli_out *out = direct_enter(d, r, PLI_PORT_COLLECTIVE, &now);
                pli_collective_begin(&c[r], now, &sum, &run[r][k], out);
                direct_leave(d, r, PLI_PORT_COLLECTIVE);
            }
        while (!pli_coll_is_done(&run[2][0])) direct_step(d);
        direct_member(d, PLI_MEMBER_LEFT, 2, NULL);
        assert_true(direct_run(d, 1000));
        for (int32_t r = 0; r < 2; r++)
            assert_true(pli_coll_is_done(&run[r][0]) && run[r][0].error.code == 0 && buf[r][0] == 9);
        assert_true(pli_coll_is_done(&run[0][1]) && run[0][1].error.code == PLAIT_EPEER); /* its partner in the steps */
        assert_true(!pli_coll_is_done(&run[1][1]));
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
            if (total != MESSAGES)
                fail_msg("seed %d: %d of %d messages of rank %d", (int)seed, (int)total, MESSAGES, src);
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
        cmocka_unit_test(test_forms_that_differ_are_named),
        cmocka_unit_test(test_who_leaves_ends_only_the_calls_that_it_did_not_begin),
        cmocka_unit_test(test_tagged_messages_come_once_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
