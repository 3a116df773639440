/* The policies by themselves: their parameters, and their answers to a run of events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "table/consistency/consistency.h"

enum { WORKERS = 4 };

static const pli_scope four = { .setting = { .workers = WORKERS } };

static pli_policy make(const char *spec) {
    pli_policy  policy;
    plait_error err;
    if (pli_policy_make(spec, &four, &policy, &err) < 0) fail_msg("%s: %s", spec, err.text);
    return policy;
}

static void test_parameters(void **state) {
    (void)state;
    static const char *const good[] = { "bsp",     "ssp:0",         "ssp:1073741824",  "essp:2",
                                        "asp:0:1", "asp:8:100",     "bounded-delay:3", "sequential",
                                        "vap:0.5", "vap:1e-3:weak", "downpour:5:1",    "async" };
    static const char *const bad[] = {
        "bsp:1",      "ssp",          "ssp:",         "ssp:-1",    "ssp:x",   "ssp:1:2",       "ssp:1073741825",
        "essp:1.5",   "asp:8",        "asp:8:0",      "asp:8:1:1", "asp::1",  "bounded-delay", "sequential:1",
        "vap",        "vap:0",        "vap:-1",       "vap:inf",   "vap:nan", "vap:1:strong",  "vap:1:weak:",
        "downpour:5", "downpour:0:5", "downpour:5:0", "async:1"
    };
    pli_policy  policy;
    plait_error err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        policy = make(good[i]);
        assert_string_equal(policy.spec, good[i]);
        pli_policy_destroy(&policy);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(pli_policy_make(bad[i], &four, &policy, &err), PLAIT_EINVAL);
        assert_memory_equal(strstr(err.text, "consistency ") + 12, bad[i], strcspn(bad[i], ":")); /* says which */
    }
    assert_int_equal(pli_policy_make("sspp:2", NULL, &policy, &err), PLAIT_ENAME);
    assert_non_null(strstr(err.text, "ssp:S"));
}

static void test_when_pushes_are_applied(void **state) {
    (void)state;
    static const struct { const char *spec; bool at_clock;
    } when[] = {
        { "bsp", true },    { "bounded-delay:0", true }, { "bounded-delay:1", false },
        { "ssp:0", false }, { "sequential", false },
    };
    for (size_t i = 0; i < sizeof when / sizeof *when; i++) {
        pli_policy policy = make(when[i].spec);
        assert_int_equal(pli_policy_at_clock(&policy), when[i].at_clock);
        pli_policy_destroy(&policy);
    }
}

/* --- value bounds ------------------------------------------------------------------------------------------------ */

static int inc(const pli_policy *policy, double norm) {
    return policy->ops->worker.on_inc(policy->state, &(plait_view){ .workers = WORKERS, .norm = norm });
}

static void test_value_bounds(void **state) {
    (void)state;
    pli_policy strong = make("vap:3"), weak = make("vap:3:weak"); /* budgets of 1 and 3 for each of 4 workers */
    assert_int_equal(inc(&strong, 0.5), 0);
    assert_int_equal(inc(&strong, 0.25), 0);
    assert_int_equal(inc(&strong, 0.25), PLAIT_SETTLE_FIRST); /* 1 is not below 1 */
    assert_int_equal(inc(&strong, 0.5), 0);                   /* the last one counts on */
    assert_int_equal(inc(&strong, 0.5), PLAIT_SETTLE_FIRST);
    assert_int_equal(inc(&strong, 1), PLAIT_SETTLE_FIRST | PLAIT_SETTLE);
    assert_int_equal(inc(&strong, 0.75), 0); /* nothing was left of it */
    assert_int_equal(inc(&strong, 0.0 / 0.0), PLAIT_SETTLE_FIRST | PLAIT_SETTLE);
    assert_int_equal(inc(&weak, 2), 0);
    assert_int_equal(inc(&weak, 0.5), 0);
    assert_int_equal(inc(&weak, 1), PLAIT_SETTLE_FIRST);
    assert_int_equal(inc(&weak, 3), PLAIT_SETTLE_FIRST | PLAIT_SETTLE);
    pli_policy_destroy(&strong);
    pli_policy_destroy(&weak);
}

/* --- how often --------------------------------------------------------------------------------------------------- */

static void test_downpour_counts_clocks(void **state) {
    (void)state;
    pli_policy policy = make("downpour:3:2");
    int        fetches = 0, pushes = 0;
    int64_t    fetched = PLAIT_NO_VERSION;
    for (int64_t clock = 0; clock < 12; clock++) {
        plait_view view = { .clock = clock, .held = 0, .fetched = fetched };
        if (fetched == PLAIT_NO_VERSION || policy.ops->worker.on_get(policy.state, &view) == PLAIT_FETCH) {
            fetched = clock;
            fetches++;
        }
        pushes += policy.ops->worker.on_clock(policy.state, &view) == PLAIT_END_SEND;
    }
    assert_int_equal(fetches, 4);
    assert_int_equal(pushes, 6);
    pli_policy_destroy(&policy);
}

/* --- speeds ------------------------------------------------------------------------------------------------------- */

typedef struct cluster { /* workers that compute, pull and wait, and one server's policy */
    pli_policy policy;
    int64_t    clocks[WORKERS];
    double     ends[WORKERS]; /* when a worker's computation of its clock ends; infinity: it waits */
    double     took[WORKERS], now;
    int64_t    lead; /* the largest lead of the workers that were served */
    bool       leaps;
    int64_t    left_out[WORKERS]; /* clocks */
} cluster;

static plait_view view_of(const cluster *c, int32_t w) {
    int64_t slowest = c->clocks[0];
    for (int32_t k = 1; k < WORKERS; k++) slowest = c->clocks[k] < slowest ? c->clocks[k] : slowest;
    return (plait_view){ .workers = WORKERS, .worker = w, .clock = c->clocks[w], .now_ns = (uint64_t)(c->now * 1e9) + 1,
                         .slowest = slowest, .clocks = c->clocks };
}

static bool serves(cluster *c, int32_t w) {
    const plait_view view = view_of(c, w);
    return c->policy.ops->server.on_pull(c->policy.state, &view) == PLAIT_SERVE;
}

/* A worker that is told to goes on with a later clock, at once. */
static void leap(cluster *c, int32_t w) {
    plait_view    view = view_of(c, w);
    const int64_t to = c->policy.ops->server.leap(c->policy.state, &view);
    assert_true(to >= view.clock);
    while (c->clocks[w] < to) {
        c->clocks[w]++;
        c->left_out[w]++;
        view = view_of(c, w);
        c->policy.ops->server.on_clock(c->policy.state, &view);
    }
}

static void pull(cluster *c, int32_t w) {
    if (c->leaps && serves(c, w)) leap(c, w);
    plait_view view = view_of(c, w);
    if (serves(c, w)) {
        c->ends[w] = c->now + c->took[w];
        if (view.clock - view.slowest > c->lead) c->lead = view.clock - view.slowest;
    } else {
        assert_true(view.clock > view.slowest); /* the slowest never waits for the bound */
        c->ends[w] = 1e300;
    }
}

/* Runs until the slowest has done that many more clocks; returns the time it took. */
static double run(cluster *c, int64_t clocks) {
    int64_t until = view_of(c, 0).slowest + clocks;
    double  began = c->now;
    c->lead = 0;
    while (view_of(c, 0).slowest < until) {
        int32_t next = 0;
        for (int32_t w = 1; w < WORKERS; w++)
            if (c->ends[w] < c->ends[next]) next = w;
        c->now = c->ends[next];
        c->clocks[next]++;
        plait_view view = view_of(c, next);
        c->policy.ops->server.on_clock(c->policy.state, &view);
        for (int32_t w = 0; w < WORKERS; w++)
            if (c->ends[w] > 1e299 || w == next) pull(c, w);
    }
    return c->now - began;
}

static cluster open_cluster(const char *spec) {
    cluster c = { .policy = make(spec), .took = { 1, 1, 1, 1 } };
    for (int32_t w = 0; w < WORKERS; w++) pull(&c, w);
    return c;
}

static void test_asp_fits_its_bound_to_speeds(void **state) {
    (void)state;
    cluster c = open_cluster("asp:8:1000");
    c.took[3] = 1.5; /* slow from the start: all of the allowed lead is used */
    run(&c, 100);
    assert_int_equal(c.lead, 8);
    c.took[0] = c.took[1] = c.took[2] = 2; /* all are even again: the bound falls with the lead */
    run(&c, 40);
    c.took[3] = 2;
    run(&c, 100);
    c.took[3] = 4; /* slow again: a small lead at first, then a larger one */
    run(&c, 8);
    assert_true(c.lead < 8);
    run(&c, 100);
    assert_int_equal(c.lead, 8);
    pli_policy_destroy(&c.policy);
}

static void test_asp_sets_barriers(void **state) {
    (void)state;
    cluster c = open_cluster("asp:8:10");
    c.took[3] = 3;
    for (int64_t clock = 10; clock <= 100; clock += 10) {
        run(&c, 10);
        for (int32_t w = 0; w < WORKERS; w++) assert_int_equal(c.clocks[w], clock); /* all have met */
        assert_true(c.lead >= (clock > 10 ? 1 : 0) && c.lead < 10);
    }
    pli_policy_destroy(&c.policy);
    c = open_cluster("asp:0:1000"); /* a bound that cannot fall is kept */
    c.took[3] = 3;
    run(&c, 50);
    assert_int_equal(c.lead, 0);
    pli_policy_destroy(&c.policy);
}

/* A worker that is slow for long leaves out clocks, so nobody waits for it. The others leave out none. */
static void test_asp_leaps(void **state) {
    (void)state;
    static const double slow[] = { 1, 1.05, 1.5, 4 };
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
        cluster c = open_cluster("asp:16:40");
        c.leaps = true;
        c.took[3] = slow[i];
        const double took = run(&c, 400); /* the slowest worker's clocks: those of all but for leads */
        for (int32_t w = 0; w < 3; w++) assert_int_equal(c.left_out[w], 0);
        assert_true((c.left_out[3] > 0) == (slow[i] > 1.1));
        assert_true(took < (i < 3 ? 422 : 480)); /* it would be 1600: a barrier still waits for the clock at hand */
        const double share = 1 - (double)c.left_out[3] / 400; /* of its clocks that it has computed */
        assert_true(fabs(share - 1 / slow[i]) < 0.07);
        c.took[3] = 1; /* as fast as the others again: it leaves out no more, once the server has seen it */
        run(&c, 80);
        const int64_t before = c.left_out[3];
        run(&c, 200);
        assert_int_equal(c.left_out[3], before);
        assert_true(c.lead <= 16);
        pli_policy_destroy(&c.policy);
    }
}

/* --- a program's own ---------------------------------------------------------------------------------------------- */

static plait_status own_parse(void *state, const char *parameters, const plait_setting *setting, plait_error *err) {
    (void)state, (void)parameters, (void)setting, (void)err;
    return PLAIT_OK;
}

static plait_read own_read(void *state, const plait_view *view) {
    (void)state, (void)view;
    return PLAIT_SERVE;
}

static void test_own_policies_are_checked(void **state) {
    (void)state;
    plait_error       err;
    plait_consistency own[2] = { { .name = "mine", .parameters = "", .summary = "own", .parse = own_parse,
                                   .worker.on_get = own_read, .server.on_pull = own_read } };
    own[1] = own[0];
    own[1].name = "other";
    assert_int_equal(pli_consistencies_check(own, 2, &err), PLAIT_OK);
    const pli_scope scope = { .own = own, .n_own = 2 };
    assert_ptr_equal(pli_consistency_find("other:3", &scope), &own[1]);
    assert_null(pli_consistency_find("other", NULL));
    own[1].name = "mine";
    assert_int_equal(pli_consistencies_check(own, 2, &err), PLAIT_EINVAL);
    own[1].name = "bsp";
    assert_int_equal(pli_consistencies_check(own, 2, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "exists already"));
    own[1].name = "a:b";
    assert_int_equal(pli_consistencies_check(own, 2, &err), PLAIT_EINVAL);
    own[1].name = "other";
    own[1].server.on_pull = NULL;
    assert_int_equal(pli_consistencies_check(own, 2, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "server.on_pull"));
    assert_int_equal(pli_consistencies_check(NULL, 1, &err), PLAIT_EINVAL);
}

static plait_apply at_clocks(const void *state) { return (void)state, PLAIT_APPLY_AT_CLOCK; }
static plait_end   keep_back(void *state, const plait_view *view) { return (void)state, (void)view, PLAIT_END_KEEP; }

static void test_what_is_applied_at_clocks_cannot_be_kept_over_one(void **state) {
    (void)state;
    plait_error       err;
    pli_policy        policy;
    plait_consistency own = { .name = "mine", .parameters = "", .summary = "own", .parse = own_parse,
                              .applies = at_clocks, .worker = { .on_get = own_read, .on_clock = keep_back },
                              .server.on_pull = own_read };
    const pli_scope   scope = { .own = &own, .n_own = 1 };
    assert_int_equal(pli_policy_make("mine", &scope, &policy, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "on_clock"));
    own.applies = NULL;
    assert_int_equal(pli_policy_make("mine", &scope, &policy, &err), PLAIT_OK);
    pli_policy_destroy(&policy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_when_pushes_are_applied),
        cmocka_unit_test(test_value_bounds),
        cmocka_unit_test(test_downpour_counts_clocks),
        cmocka_unit_test(test_asp_sets_barriers),
        cmocka_unit_test(test_asp_fits_its_bound_to_speeds),
        cmocka_unit_test(test_asp_leaps),
        cmocka_unit_test(test_own_policies_are_checked),
        cmocka_unit_test(test_what_is_applied_at_clocks_cannot_be_kept_over_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
