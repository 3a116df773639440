/* Cluster files: what is refused, where and how; and what events mean at a given time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "comm/cluster.h"

static pli_cluster read_good(const char *text) {
    pli_cluster  cluster;
    plait_error  err = { 0 };
    plait_status status = pli_cluster_parse("c.yaml", text, strlen(text), &cluster, &err);
    if (status < 0) print_message("%s\n", err.text);
    assert_int_equal(status, PLAIT_OK);
    return cluster;
}

static void refuses_with_line(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        { "", "c.yaml:1: the file describes nothing" },
        { "hosts: [{count: 1}]\n", "c.yaml:1: version is missing" },
        { "version: 2\n", "c.yaml:1: version: '2'" },
        { "version: 1\n", "hosts are missing" },
        { "version: 1\nhost: []\n", "c.yaml:2: unknown key 'host'; did you mean 'hosts'" },
        { "version: 1\nhosts:\n  - {count: 1, sped: 2}\n",
          "c.yaml:3: unknown key in hosts 'sped'; did you mean 'speed'" },
        { "version: 1\nhosts:\n  - {count: 0}\n", "c.yaml:3: count: '0': expected a whole number from 1" },
        { "version: 1\nhosts:\n  - {count: 1.5}\n", "c.yaml:3: count" },
        { "version: 1\nhosts:\n  - {count: 1, count: 2}\n", "count is given twice" },
        { "version: 1\nhosts:\n  - {bandwidth: 10}\n", "c.yaml:3: bandwidth: '10': expected a rate such as" },
        { "version: 1\nhosts:\n  - {memory: 4 Gb}\n", "c.yaml:3: memory: '4 Gb': expected a size such as" },
        { "version: 1\nhosts:\n  - {latency: 10 parsec}\n", "latency: '10 parsec': expected a time such as" },
        { "version: 1\nhosts:\n  - {rack: a}\n", "c.yaml:3: rack 'a' is not described" },
        { "version: 1\nracks: [{name: aa}]\nhosts:\n  - {rack: ab}\n", "did you mean 'aa'" },
        { "version: 1\nracks: [{name: a}, {name: a}]\nhosts: [{count: 1}]\n", "two are called a" },
        { "version: 1\nhosts: [{count: 1}]\nmachine: {}\n", "c.yaml:3: machine: cores is missing" },
        { "version: 1\nhosts: [{count: 1}]\nmachine: {cores: 0}\n", "c.yaml:3: cores: '0': expected" },
        { "version: 1\nhosts: [{count: 1}]\nevents:\n  - slo: {factor: 2}\n",
          "c.yaml:4: unknown event 'slo'; did you mean 'slow'" },
        { "version: 1\nhosts: [{count: 1}]\nevents:\n  - slow: {ranks: 1}\n", "c.yaml:4: slow: factor is missing" },
        { "version: 1\nhosts: [{count: 1}]\nevents:\n  - slow: {ranks: 5-2, factor: 2}\n", "ranks: '5-2'" },
        { "version: 1\nhosts: [{count: 1}]\nevents:\n  - slow: {factor: 2, from: 2 s, until: 1 s}\n",
          "until: expected" },
        { "version: 1\nhosts: [{count: 1}]\nevents:\n  - messages: {delay: 1 s}\n", "go together" },
        { "version: 1\nhosts: [{count: 1}]\nevents:\n  - partition: {from: 1 s}\n",
          "c.yaml:4: partition: sides is missing" },
        { "version: 1\nhosts: [{count: 1}]\nevents:\n  - partition: {sides: 0-1}\n",
          "c.yaml:4: sides: expected lists of ranks, such as [[0, 2], [1, 3-5]]" },
        { "version: 1\nhosts: [{count: 1}]\nevents:\n  - partition: {sides: [[0, 1], [1-2]]}\n",
          "c.yaml:4: sides: rank 1 is named twice" },
        { "version: 1\nhosts: [{count: 1}]\nevents:\n  - partition: {sides: [all]}\n", "sides: 'all' is no side" },
        { "version: 1\nhosts: [{count: 1}]\nevents:\n  - partition: {sides: [[[0], 1]]}\n",
          "sides: expected ranks in each list" },
        { "version: 1\nhosts: [{count: 1}]\nevents:\n  - partition: {sides: [[]]}\n",
          "sides: expected lists of ranks" },
        { "version: 1\nhosts: [{count: 1}]\nevents:\n  - join: {ranks: 1}\n", "c.yaml:4: join: at is missing" },
        { "version: 1\nhosts: [{count: 1}]\nevents:\n  - leave: {at: 1 s}\n", "c.yaml:4: leave: ranks is missing" },
        { "version: 1\nhosts: [{count: 1}\n", "c.yaml:" },
        { "version: 1\nhosts: 3\n", "c.yaml:2: hosts: expected a list" },
        { "version: 1\nhosts:\n\t- {count: 1}\n",
          "c.yaml:3: found character that cannot start any token: indent with spaces, not tabs" },
        { "version: 1\nhosts:\n  - {count: 1}\n  \t- {count: 1}\n", "indent with spaces, not tabs" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pli_cluster cluster;
        plait_error err = { 0 };
        int         status = pli_cluster_parse("c.yaml", bad[i].text, strlen(bad[i].text), &cluster, &err);
        if (status != PLAIT_EFORMAT || strstr(err.text, bad[i].says) == NULL)
            print_message("%s\n gives %d '%s', not '%s'\n", bad[i].text, status, err.text, bad[i].says);
        assert_int_equal(status, PLAIT_EFORMAT);
        assert_non_null(strstr(err.text, bad[i].says));
    }
}

static void ranks_must_be_there(void **state) {
    (void)state;
    plait_error err;
    pli_cluster c =
        read_good("version: 1\nhosts: [{count: 2, cores: 2}, {count: 1}]\nevents:\n  - kill: {ranks: 4, at: 1 s}\n");
    assert_int_equal(pli_cluster_check(&c, 5, &err), PLAIT_OK);
    assert_int_equal(pli_cluster_check(&c, 6, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "5 cores, but there are 6 ranks"));
    assert_int_equal(pli_cluster_check(&c, 4, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "c.yaml:4: there is no rank 4"));
    for (int32_t rank = 0; rank < 5; rank++) assert_int_equal(pli_cluster_host(&c, rank), rank / 2);
    assert_true(pli_script_death(&c, 4) == 1 && isinf(pli_script_death(&c, 3)));
    pli_cluster_free(&c);
}

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static void latency_is_the_way(void **state) {
    (void)state;
    pli_cluster c = read_good("version: 1\nsites: [{name: x, latency: 10 ms}, {name: y, latency: 20 ms}]\n"
                              "racks: [{name: a, site: x, latency: 1 ms}, {name: b, site: x, latency: 2 ms}, {name: c, "
                              "site: y, latency: 3 ms}]\n"
                              "hosts:\n  - {count: 2, rack: a, latency: 100 us}\n  - {rack: b, latency: 200 us}\n"
                              "  - {rack: c, latency: 300 us}\ncost: {local: 500 ns}\n");
    NEAR(pli_cluster_latency(&c, 0, 0), 500e-9);
    NEAR(pli_cluster_latency(&c, 0, 1), 200e-6);
    NEAR(pli_cluster_latency(&c, 0, 2), 3.3e-3);
    NEAR(pli_cluster_latency(&c, 3, 2), 35.5e-3);
    pli_cluster_free(&c);
}

/* Ranks of a host share its memory alike. */
static void memory_is_shared(void **state) {
    (void)state;
    pli_cluster c = read_good("version: 1\nhosts: [{count: 1, cores: 4, memory: 16 GB}, {count: 1}]\n");
    NEAR(pli_cluster_memory(&c, 0), 4e9);
    NEAR(pli_cluster_memory(&c, 3), 4e9);
    assert_true(isinf(pli_cluster_memory(&c, 4)));
    pli_cluster_free(&c);
}

static void slowness_is_integrated(void **state) {
    (void)state;
    pli_cluster c = read_good(
        "version: 1\nhosts: [{count: 1, speed: 2}, {count: 3}]\nevents:\n"
        "  - slow: {ranks: 1, factor: 4, from: 1 s, until: 2 s}\n  - freeze: {ranks: 2, from: 1 s, until: 3 s}\n"
        "  - freeze: {ranks: 3, from: 5 s}\n");
    NEAR(pli_script_finish(&c, 1, 0, -1, 0, 1), 0.5);
    NEAR(pli_script_finish(&c, 1, 1, -1, 0.5, 1), 2.25); /* half of it before, a quarter within, a quarter behind the
                                                          * slow time */
    NEAR(pli_script_finish(&c, 1, 2, -1, 0.5, 1), 3.5);
    assert_true(isinf(pli_script_finish(&c, 1, 3, -1, 4.5, 1)));
    NEAR(pli_script_thaw(&c, 2, 1.5), 3);
    NEAR(pli_script_freeze(&c, 2, 0), 1);
    pli_cluster_free(&c);
}

/* Bursts do not wake a frozen rank: a search for the period in which it goes on would never end. */
static void frozen_for_good_through_bursts(void **state) {
    (void)state;
    pli_cluster c = read_good(
        "version: 1\nhosts: [{count: 2}]\nevents:\n  - burst: {factor: 4, every: 5 ms, length: 1 ms, hosts: all}\n"
        "  - freeze: {ranks: 1, from: 12 ms}\n");
    assert_true(isinf(pli_script_finish(&c, 1, 1, -1, 0, 1)));
    assert_true(isfinite(pli_script_finish(&c, 1, 0, -1, 0, 1)));
    pli_cluster_free(&c);
}

/* Each period hits one host, not always the same; the same seed hits the same hosts. */
static void bursts_are_drawn(void **state) {
    (void)state;
    pli_cluster c =
        read_good("version: 1\nhosts: [{count: 8}]\nevents:\n  - burst: {factor: 4, every: 5 s, length: 1 s}\n");
    int32_t     hit[8] = { 0 };
    for (int32_t k = 0; k < 64; k++) {
        int32_t slow = 0;
        for (int32_t rank = 0; rank < 8; rank++) {
            NEAR(pli_script_finish(&c, 3, rank, -1, 5 * k + 1, 0.1), 5 * k + 1.1);
            double took = pli_script_finish(&c, 3, rank, -1, 5 * k + 4.2, 0.1) - (5 * k + 4.2);
            if (took > 0.3) {
                slow++;
                hit[rank]++;
            }
        }
        assert_int_equal(slow, 1);
    }
    for (int32_t rank = 0; rank < 8; rank++) assert_true(hit[rank] > 0);
    pli_cluster_free(&c);
}

static void jitter_is_lognormal(void **state) {
    (void)state;
    pli_cluster c = read_good("version: 1\nhosts: [{count: 2}]\nevents:\n  - jitter: {ranks: 0, sigma: 0.5}\n");
    double      sum = 0, square = 0;
    for (int64_t clock = 0; clock < 4000; clock++) {
        double x = log(pli_script_finish(&c, 9, 0, clock, 0, 1));
        sum += x;
        square += x * x;
        NEAR(pli_script_finish(&c, 9, 1, clock, 0, 1), 1);
    }
    assert_true(fabs(sum / 4000) < 0.03 && fabs(sqrt(square / 4000) - 0.5) < 0.03);
    pli_cluster_free(&c);
}

static void messages_meet_their_fate(void **state) {
    (void)state;
    pli_cluster c = read_good("version: 1\nhosts: [{count: 3}]\nevents:\n"
                              "  - messages: {ranks: 0-1, delay: 5 ms, delayed: 0.2, doubled: 0.1, dropped: 0.05}\n"
                              "  - link: {ranks: 2, factor: 0, from: 10 s, until: 12 s}\n");
    int32_t     lost = 0, twice = 0, late = 0;
    for (uint64_t n = 0; n < 10000; n++) {
        pli_fate fate = pli_script_fate(&c, 5, 0, 1, n, 1);
        lost += fate.copies == 0;
        twice += fate.copies == 2;
        late += fate.copies > 0 && fate.delay[0] > 0;
    }
    assert_true(lost > 400 && lost < 600 && twice > 800 && twice < 1100 && late > 1700 && late < 2100);
    assert_true(pli_cluster_is_lossy(&c));
    pli_fate held = pli_script_fate(&c, 5, 2, 2, 1, 11); /* a message to itself uses no link */
    assert_true(held.copies == 1 && held.delay[0] == 0);
    pli_cluster_free(&c);
    c = read_good("version: 1\nhosts: [{count: 3}]\nevents:\n  - link: {ranks: 2, factor: 0, from: 10 s, until: 12 s}\n"
                  "  - link: {ranks: 0, factor: 0.5, from: 1 s, until: 2 s}\n");
    held = pli_script_fate(&c, 5, 0, 2, 1, 11);
    assert_true(held.copies == 1);
    NEAR(held.delay[0], 1);
    assert_false(pli_cluster_is_lossy(&c));
    NEAR(pli_script_width(&c, 0, -1, -1, 1.5), 0.5);
    NEAR(pli_script_width(&c, 1, -1, -1, 1.5), 1);
    NEAR(pli_script_next_width(&c, 0), 1);
    NEAR(pli_script_next_width(&c, 1), 2);
    assert_true(isinf(pli_script_next_width(&c, 2)));
    pli_cluster_free(&c);
}

/* Ranks of different sides do not hear each other, until it heals; those that are not named are a side of their own. */
static void partitions_have_sides(void **state) {
    (void)state;
    pli_cluster c = read_good("version: 1\nhosts: [{count: 1, cores: 6}]\nevents:\n"
                              "  - partition: {sides: [[0, 2], 3-4], from: 1 s, until: 3 s}\n"
                              "  - partition: {sides: [1], from: 5 s}\n");
    static const char *sides = "abaccb";
    for (int32_t a = 0; a < 6; a++)
        for (int32_t b = 0; b < 6; b++) {
            const bool apart = sides[a] != sides[b];
            NEAR(apart ? pli_script_cut(&c, a, b, 2) : 1, 1);
            assert_true(apart || isinf(pli_script_cut(&c, a, b, 2)));
            assert_true(isinf(pli_script_cut(&c, a, b, 3)) && isinf(pli_script_cut(&c, a, b, 0.5)));
            assert_true(isinf(pli_script_silent(&c, a, b, 2)) == !apart);
            NEAR(pli_script_fate(&c, 1, a, b, 1, 2.5).delay[0], apart ? 0.5 : 0); /* what is sent waits for the end */
            assert_int_equal(pli_script_fate(&c, 1, a, b, 1, 6).copies, (a == 1) == (b == 1));
        }
    assert_true(isinf(pli_script_longest_cut(&c)));
    NEAR(pli_script_next_cut(&c, 0.25, 0), 1);
    NEAR(pli_script_next_cut(&c, 0.25, 1), 1.25);
    NEAR(pli_script_next_cut(&c, 0.25, 1.5), 3);
    plait_error err;
    assert_int_equal(pli_cluster_check(&c, 4, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "c.yaml:4: there is no rank 4"));
    pli_cluster_free(&c);
}

/* A rank can be revived only if it has died, and does not die again. */
static void the_dead_are_revived(void **state) {
    (void)state;
    static const struct {
        const char *events, *says;
    } bad[] = {
        { "revive: {ranks: 1, at: 2 s}", "c.yaml:4: revive: rank 1 lives at 2 s" },
        { "revive: {ranks: 1, at: 2 s}\n  - kill: {ranks: 1, at: 3 s}", "c.yaml:4: revive: rank 1 lives at 2 s" },
        { "revive: {ranks: 1-2, at: 2 s}\n  - kill: {ranks: 1, at: 1 s}", "c.yaml:4: revive: rank 2 lives at 2 s" },
        { "revive: {ranks: 1, at: 2 s}\n  - kill: {ranks: 1, at: 1 s}\n  - kill: {ranks: all, at: 3 s}",
          "c.yaml:4: revive: rank 1 dies again after 2 s" },
        { "kill: {ranks: 1, at: 1 s}\n  - revive: {ranks: 1, at: 2 s}\n  - revive: {ranks: 0-1, at: 3 s}",
          "c.yaml:5: revive: rank 1 is revived twice, once at 2 s" },
        { "revive: {ranks: 5, at: 2 s}", "c.yaml:4: there is no rank 5" },
    };
    plait_error err = { 0 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[240];
        (void)snprintf(text, sizeof text, "version: 1\nhosts: [{count: 3}]\nevents:\n  - %s\n", bad[i].events);
        pli_cluster c = read_good(text);
        assert_int_equal(pli_cluster_check(&c, 3, &err), PLAIT_EINVAL);
        if (strstr(err.text, bad[i].says) == NULL) fail_msg("'%s', not '%s'", err.text, bad[i].says);
        pli_cluster_free(&c);
    }
    pli_cluster c = read_good("version: 1\nhosts: [{count: 3}]\nevents:\n  - kill: {ranks: 1-2, at: 1 s}\n"
                              "  - revive: {ranks: 2, at: 3 s}\n");
    assert_int_equal(pli_cluster_check(&c, 3, &err), PLAIT_OK);
    NEAR(pli_script_revival(&c, 2), 3);
    assert_true(isinf(pli_script_revival(&c, 1)));
    NEAR(pli_script_next_revival(&c, 0), 3);
    assert_true(isinf(pli_script_next_revival(&c, 3)));
    pli_cluster_free(&c);
}

static void workers_come_and_go(void **state) {
    (void)state;
    pli_cluster c = read_good("version: 1\nhosts: [{count: 5}]\nevents:\n"
                              "  - leave: {ranks: 3, at: 4 s}\n  - join: {ranks: 2-3, at: 2 s}\n"
                              "  - leave: {ranks: 0, at: 3 s}\n  - join: {ranks: 3, at: 6 s}\n");
    plait_error err = { 0 };
    assert_true(pli_script_has_turns(&c));
    assert_int_equal(pli_script_check_turns(&c, 4, 2, &err), PLAIT_OK);
    assert_true(pli_script_wants(&c, 0, true, 2.9) && !pli_script_wants(&c, 0, true, 3));
    assert_true(!pli_script_wants(&c, 3, false, 1.9) && pli_script_wants(&c, 3, false, 2));
    assert_true(!pli_script_wants(&c, 3, false, 5) && pli_script_wants(&c, 3, false, 7));
    assert_true(pli_script_wants(&c, 1, true, 9) && !pli_script_wants(&c, 4, false, 9));
    NEAR(pli_script_next_join(&c, 3, 0), 2);
    NEAR(pli_script_next_join(&c, 3, 2), 6);
    assert_true(isinf(pli_script_next_join(&c, 3, 6)));
    pli_cluster_free(&c);
    static const struct {
        const char *events, *says;
        int32_t     workers, slots;
    } bad[] = {
        { "join: {ranks: 1, at: 1 s}", "c.yaml:4: join: rank 1 is in at 1 s", 4, 2 },
        { "join: {ranks: all, at: 1 s}", "c.yaml:4: join: rank 0 is in at 1 s", 4, 2 },
        { "leave: {ranks: 3, at: 1 s}", "c.yaml:4: leave: rank 3 is away at 1 s", 4, 2 },
        { "leave: {ranks: 0, at: 1 s}", "without rank 0 only 1 worker would be in at 1 s; --workers 2:4 wants 2",
          4, 2 },
        { "leave: {ranks: 0, at: 1 s}", "without rank 0 only 0 workers would be in", 2, 1 },
        { "join: {ranks: 4, at: 1 s}", "c.yaml:4: join: rank 4 only serves; workers are ranks 0 to 3", 4, 2 },
        { "join: {ranks: 3, at: 1 s}\n  - kill: {ranks: 3, at: 1 s}",
          "c.yaml:4: join: rank 3 is dead, or only votes, at 1 s", 4, 2 },
        { "join: {ranks: 3, at: 1 s}", "c.yaml:4: join is refused: this job has a fixed number of workers", 4, 0 },
        { "leave: {ranks: 1, at: 1 s}", "leave is refused: this job has a fixed number of workers; nearest is", 2, 0 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[200];
        (void)snprintf(text, sizeof text, "version: 1\nhosts: [{count: 5}]\nevents:\n  - %s\n", bad[i].events);
        c = read_good(text);
        assert_int_equal(pli_script_check_turns(&c, bad[i].workers, bad[i].slots, &err), PLAIT_EINVAL);
        if (strstr(err.text, bad[i].says) == NULL) fail_msg("'%s', not '%s'", err.text, bad[i].says);
        pli_cluster_free(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_with_line),
        cmocka_unit_test(ranks_must_be_there),
        cmocka_unit_test(latency_is_the_way),
        cmocka_unit_test(memory_is_shared), cmocka_unit_test(slowness_is_integrated),
        cmocka_unit_test(frozen_for_good_through_bursts),
        cmocka_unit_test(bursts_are_drawn),
        cmocka_unit_test(jitter_is_lognormal),
        cmocka_unit_test(messages_meet_their_fate), cmocka_unit_test(partitions_have_sides),
        cmocka_unit_test(the_dead_are_revived), cmocka_unit_test(workers_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
