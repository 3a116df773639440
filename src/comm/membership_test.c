/* Single moments of the membership machine that random schedules (tests/comm/) hardly ever hit, made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "comm/membership.h"

enum { FOUR = 4 };
#define RETRY    UINT64_C(1000)
#define DEADLINE UINT64_C(1000000)

typedef struct ranks {
    pli_membership m[FOUR];
    pli_out        out; /* what the last event has brought */
    uint64_t       now_ns;
} ranks;

static void make(ranks *all) {
    memset(all, 0, sizeof *all);
    pli_out_init(&all->out);
    for (int32_t r = 0; r < FOUR; r++) assert_true(pli_membership_init(&all->m[r], FOUR, r, 1, RETRY, DEADLINE, false));
}

static void destroy(ranks *all) {
    pli_out_drop(&all->out);
    for (int32_t r = 0; r < FOUR; r++) pli_membership_destroy(&all->m[r]);
}

/* Brings the message of this kind that the last event has sent to `to`; the answer is the last event's then. false:
 * there is none. */
static bool bring(ranks *all, uint16_t kind, int32_t to) {
    pli_msg *msg = all->out.first;
    while (msg != NULL && (msg->head.kind != kind || msg->head.dst != to)) msg = msg->next;
    if (msg == NULL) return false;
    pli_msg *copy = pli_msg_copy(msg);
    assert_non_null(copy);
    pli_out_drop(&all->out);
    pli_membership_take(&all->m[to], all->now_ns, copy, &all->out);
    pli_msg_free(&copy);
    return true;
}

static void suspect(ranks *all, int32_t by, int32_t whom) {
    pli_out_drop(&all->out);
    pli_membership_suspect(&all->m[by], all->now_ns, whom, &all->out);
}

static void attest(ranks *all, int32_t by, int32_t whom) {
    pli_out_drop(&all->out);
    pli_membership_attest(&all->m[by], all->now_ns, whom, &all->out);
}

/* Lets the rank's turn to propose come. */
static void propose(ranks *all, int32_t by) {
    pli_out_drop(&all->out);
    for (int i = 0; i < 40 && all->m[by].ballot == 0; i++) {
        pli_out_drop(&all->out);
        all->now_ns += RETRY;
        pli_membership_wake(&all->m[by], all->now_ns, &all->out);
    }
    assert_true(all->m[by].ballot != 0);
}

/* 0 suspects 2, and proposes; 1 and 3 promise. Then 2 is found to be dead: 0's own vote and 3's are half of the voters,
 * but that death came after the ballot began. So they decide nothing, and 0 needs another ballot. */
static void test_a_death_behind_the_ballot_does_not_count(void **state) {
    (void)state;
    ranks all;
    make(&all);
    suspect(&all, 0, 2);
    propose(&all, 0);
    const uint64_t ballot = all.m[0].ballot;
    pli_msg       *prepare = NULL;
    for (pli_msg *msg = all.out.first; msg != NULL; msg = msg->next)
        if (msg->head.dst == 1 && msg->head.kind == PLI_MEMBERSHIP_PREPARE) prepare = pli_msg_copy(msg);
    assert_non_null(prepare);
    assert_true(bring(&all, PLI_MEMBERSHIP_PREPARE, 3));
    assert_true(bring(&all, PLI_MEMBERSHIP_PROMISE, 0)); /* two of four */
    assert_false(all.m[0].accepting);
    all.m[0].wait = 0;                                   /* it does not begin another ballot at once */
    all.m[0].attested[0] |= UINT64_C(1) << 2;            /* as if the news came now, between two events */
    pli_out_drop(&all.out);
    pli_membership_take(&all.m[1], all.now_ns, prepare, &all.out);
    assert_true(bring(&all, PLI_MEMBERSHIP_PROMISE, 0)); /* three of four */
    assert_true(all.m[0].accepting && all.m[0].ballot == ballot);
    assert_true(bring(&all, PLI_MEMBERSHIP_ACCEPT, 3));
    assert_true(bring(&all, PLI_MEMBERSHIP_ACCEPTED, 0)); /* two of four, and a death too late */
    assert_int_equal(all.m[0].view, 1);
    pli_msg_free(&prepare);
    destroy(&all);
}

/* If the death is known first, half is enough. */
static void test_half_decides_after_a_death(void **state) {
    (void)state;
    ranks all;
    make(&all);
    suspect(&all, 0, 1);
    attest(&all, 0, 2); /* which begins a ballot at once */
    assert_true(bring(&all, PLI_MEMBERSHIP_PREPARE, 3));
    assert_true(bring(&all, PLI_MEMBERSHIP_PROMISE, 0));
    assert_true(bring(&all, PLI_MEMBERSHIP_ACCEPT, 3));
    assert_true(bring(&all, PLI_MEMBERSHIP_ACCEPTED, 0));
    assert_int_equal(all.m[0].view, 2);
    assert_int_equal(all.m[0].members[0], 9);
    assert_true(bring(&all, PLI_MEMBERSHIP_STATE, 1)); /* who is out is told */
    assert_int_equal(all.m[1].state, PLI_MEMBERSHIP_OUT);
    destroy(&all);
}

/* A ballot is above all that a leaver has promised: a leaver that promised a higher one would have refused it. */
static void test_a_ballot_is_above_a_leavers_promise(void **state) {
    (void)state;
    ranks all;
    make(&all);
    for (int i = 0; i < 3; i++) { /* rank 1 begins several ballots; only 3 hears the last */
        suspect(&all, 1, 0);
        all.m[1].ballot = 0;
        propose(&all, 1);
    }
    const uint64_t high = all.m[1].ballot;
    assert_true(bring(&all, PLI_MEMBERSHIP_PREPARE, 3));
    pli_msg *word = pli_membership_leave(&all.m[3]);
    assert_non_null(word);
    pli_out_drop(&all.out);
    pli_membership_take_leave(&all.m[0], all.now_ns, 3, pli_msg_body(word), word->head.body_bytes, &all.out);
    pli_msg_free(&word);
    attest(&all, 0, 2);
    propose(&all, 0);
    assert_true(all.m[0].ballot > high);
    destroy(&all);
}

/* Rank 2 is dead and out, and asks 0 alone to return. 1 accepts the view in which its next life is; then it proposes
 * that view itself. What it says of the view is that life, though nobody has asked 1. */
static void test_who_accepts_a_life_says_so(void **state) {
    (void)state;
    ranks all;
    make(&all);
    attest(&all, 0, 2);
    assert_true(bring(&all, PLI_MEMBERSHIP_PREPARE, 3));
    assert_true(bring(&all, PLI_MEMBERSHIP_PROMISE, 0));
    assert_true(bring(&all, PLI_MEMBERSHIP_ACCEPT, 3));
    assert_true(bring(&all, PLI_MEMBERSHIP_ACCEPTED, 0));
    assert_int_equal(all.m[0].view, 2);
    pli_membership_destroy(&all.m[2]);
    assert_true(pli_membership_init(&all.m[2], FOUR, 2, 2, RETRY, DEADLINE, false));
    pli_out_drop(&all.out);
    pli_membership_wake(&all.m[2], all.now_ns, &all.out);
    assert_true(bring(&all, PLI_MEMBERSHIP_RETURN, 0));
    propose(&all, 0);
    assert_true(bring(&all, PLI_MEMBERSHIP_PREPARE, 1));
    assert_true(bring(&all, PLI_MEMBERSHIP_PROMISE, 0));
    assert_true(bring(&all, PLI_MEMBERSHIP_ACCEPT, 1));
    assert_true(all.m[1].accepted > 0 && all.m[1].value_lives[2] == 2);
    propose(&all, 1);
    assert_true(bring(&all, PLI_MEMBERSHIP_PREPARE, 3));
    assert_true(bring(&all, PLI_MEMBERSHIP_PROMISE, 1));
    assert_true(bring(&all, PLI_MEMBERSHIP_ACCEPT, 3));
    assert_true(all.m[3].accepted > 0 && pli_ranks_has(all.m[3].value, 2));
    assert_int_equal(all.m[3].value_lives[2], 2);
    destroy(&all);
}

/* A rank that has left waits for the end of the others; should its process be killed meanwhile, nothing changes. */
static void test_a_leaver_may_die(void **state) {
    (void)state;
    ranks all;
    make(&all);
    pli_msg *word = pli_membership_leave(&all.m[3]);
    assert_non_null(word);
    for (int32_t r = 0; r < 3; r++) {
        pli_membership_take_leave(&all.m[r], all.now_ns, 3, pli_msg_body(word), word->head.body_bytes, &all.out);
        if (r > 0) pli_membership_attest(&all.m[r], all.now_ns, 3, &all.out);
    }
    pli_msg_free(&word);
    attest(&all, 0, 3);
    for (int i = 0; i < 100; i++) {
        pli_out_drop(&all.out);
        pli_membership_wake(&all.m[0], all.now_ns += RETRY, &all.out);
        assert_int_equal(all.m[0].ballot, 0);
        assert_null(all.out.first);
    }
    assert_int_equal(all.m[0].view, 1);
    destroy(&all);
}

/* One of two ranks may die, and neither may go on because of a suspicion. */
static void test_two_ranks(void **state) {
    (void)state;
    for (int dies = 0; dies < 2; dies++) {
        pli_membership m;
        pli_out        out;
        char           text[400];
        pli_out_init(&out);
        assert_true(pli_membership_init(&m, 2, 0, 1, RETRY, DEADLINE, false));
        if (dies) pli_membership_attest(&m, 0, 1, &out);
        else pli_membership_suspect(&m, 0, 1, &out);
        for (uint64_t now_ns = 0; now_ns < 2 * DEADLINE; now_ns += RETRY) pli_membership_wake(&m, now_ns, &out);
        assert_int_equal(m.state, dies ? PLI_MEMBERSHIP_GOES_ON : PLI_MEMBERSHIP_STOPPED);
        assert_int_equal(m.view, dies ? 2 : 1);
        pli_membership_tell(&m, text, sizeof text);
        if (!dies) assert_non_null(strstr(text, "of the 2 ranks of view 1 it hears nobody, and only a majority, 2"));
        pli_out_drop(&out);
        pli_membership_destroy(&m);
    }
}

/* A suspected rank that is heard again before the vote stays a member. */
static void test_a_suspicion_is_withdrawn(void **state) {
    (void)state;
    ranks all;
    make(&all);
    suspect(&all, 0, 2);
    pli_membership_hear(&all.m[0], all.now_ns, 2, 1, 1, &all.out);
    for (int i = 0; i < 100; i++) pli_membership_wake(&all.m[0], all.now_ns += RETRY, &all.out);
    assert_int_equal(all.m[0].ballot, 0);
    assert_int_equal(all.m[0].view, 1);
    destroy(&all);
}

/* 0 suspects 2, and tells 1. It hears 2 again, but a short cut loses the word of that to 1. So 1 would propose to leave
 * one of the two out, though both live and all hear each other: it asks 0 first, which says so once more. */
static void test_a_withdrawal_that_is_lost_comes_again(void **state) {
    (void)state;
    ranks all;
    make(&all);
    suspect(&all, 0, 2);
    all.m[0].ticks = 1; /* it tells the second of those that may propose, too */
    pli_out_drop(&all.out);
    pli_membership_wake(&all.m[0], all.now_ns += RETRY, &all.out);
    assert_true(bring(&all, PLI_MEMBERSHIP_STATE, 1));
    assert_int_equal(all.m[1].complaints[0][0], 4);
    pli_out_drop(&all.out);
    pli_membership_hear(&all.m[0], all.now_ns, 2, 1, 1, &all.out); /* all that this sends is lost */
    for (int i = 0; i < 100; i++) {
        pli_out_drop(&all.out);
        pli_membership_wake(&all.m[1], all.now_ns += RETRY, &all.out);
        assert_int_equal(all.m[1].ballot, 0);
        if (bring(&all, PLI_MEMBERSHIP_STATE, 0) && bring(&all, PLI_MEMBERSHIP_STATE, 1))
            assert_null(all.out.first); /* and that is all: no answer is answered */
    }
    assert_int_equal(all.m[1].complaints[0][0], 0);
    assert_false(all.m[1].unsettled);
    assert_int_equal(all.m[1].view, 1);
    destroy(&all);
}

static void test_every_failed_allocation(void **state) {
    (void)state;
    bool made = false;
    for (int64_t k = 0; !made; k++) {
        pli_membership m;
        int64_t        live = pli_alloc_live();
        pli_alloc_fail_after(k);
        made = pli_membership_init(&m, 100, 1, 1, RETRY, DEADLINE, false);
        pli_alloc_fail_after(-1);
        if (made) assert_int_equal(pli_ranks_count(m.members, m.words), 100);
        pli_membership_destroy(&m);
        assert_int_equal(pli_alloc_live(), live);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_death_behind_the_ballot_does_not_count),
        cmocka_unit_test(test_half_decides_after_a_death),
        cmocka_unit_test(test_a_ballot_is_above_a_leavers_promise),
        cmocka_unit_test(test_who_accepts_a_life_says_so),
        cmocka_unit_test(test_a_leaver_may_die),
        cmocka_unit_test(test_two_ranks),
        cmocka_unit_test(test_a_suspicion_is_withdrawn),
        cmocka_unit_test(test_a_withdrawal_that_is_lost_comes_again),
        cmocka_unit_test(test_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
