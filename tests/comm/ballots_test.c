/* Bare membership machines without any sense of time: in each step a seed picks what happens next. A message arrives,
 * whichever it is of all that are under way, perhaps once more, or is lost; a rank looks at its clock, which may have
 * jumped; it suspects another, or hears it; a rank dies, leaves or is started anew; news of a death reaches somebody.
 * So ballots of several ranks meet in every order, which hardly happens on a network with plausible times
 * (views_test.c).
 *
 *   V1  No two ranks ever have views of the same number and other content, and each view is a part of the one before.
 *
 * A failing seed is replayed by PLAIT_SEED=seed; PLAIT_SCHEDULES=n runs n of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "comm/membership.h"

enum { RANKS = 5, VIEWS_MAX = 16, STEPS = 700, FLYING_MAX = 4096, SCHEDULES = 8000, SCHEDULES_FULL = 200000 };
#define RETRY UINT64_C(1000)

typedef enum life { LIVES, DEAD, LEFT } life;

typedef struct world {
    uint64_t       seed, now_ns;
    pli_random     random;
    int32_t        size, n;
    pli_membership m[RANKS];
    life           life[RANKS];
    bool           again[RANKS]; /* it was started anew, and does not know */
    pli_msg       *flying[FLYING_MAX];
    uint64_t       view[VIEWS_MAX]; /* members; 0: not seen yet */
    int64_t        views;
} world;

static int64_t views_seen, ballots_met;

static uint64_t below(world *w, uint64_t n) { return pli_random_below(&w->random, n); }
static int32_t  any(world *w) { return (int32_t)below(w, (uint64_t)w->size); }

static void refute(const world *w, int32_t r) {
    const pli_membership *m = &w->m[r];
    fail_msg("view %llu has ranks %llx, and at rank %d %llx\nreplay: PLAIT_SEED=%llu %s", (unsigned long long)m->view,
             (unsigned long long)w->view[m->view], r, (unsigned long long)m->members[0], (unsigned long long)w->seed,
             program_invocation_name);
}

static void note_view(world *w, int32_t r) { /* V1 */
    const pli_membership *m = &w->m[r];
    if (w->again[r] || w->life[r] != LIVES) return;
    assert_true(m->view < VIEWS_MAX);
    if (w->view[m->view] == 0) {
        w->view[m->view] = m->members[0];
        views_seen++;
    }
    const bool within = m->view == 1 || w->view[m->view - 1] == 0 || (m->members[0] & ~w->view[m->view - 1]) == 0;
    if (w->view[m->view] != m->members[0] || !within) refute(w, r);
}

static void fly(world *w, pli_msg *msg) {
    if (w->n < FLYING_MAX) w->flying[w->n++] = msg;
    else pli_msg_free(&msg);
}

static void settle(world *w, int32_t r, pli_out *out) {
    for (pli_msg *msg = out->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        msg->next = NULL;
        fly(w, msg);
    }
    note_view(w, r);
}

/* A last word is of a kind of its own here: head.arg32 is 1. */
static void arrive(world *w, pli_msg *msg, pli_out *out) {
    const int32_t to = msg->head.dst;
    if (w->life[to] != LIVES) return;
    if (msg->head.kind == PLI_MEMBERSHIP_REFUSED) ballots_met++;
    if (msg->head.arg32 != 1) pli_membership_take(&w->m[to], w->now_ns, msg, out);
    else pli_membership_take_leave(&w->m[to], w->now_ns, msg->head.src, pli_msg_body(msg), msg->head.body_bytes, out);
    settle(w, to, out);
}

static void deliver(world *w, pli_out *out) {
    if (w->n == 0) return;
    int32_t at = (int32_t)below(w, (uint64_t)w->n);
    if (w->flying[at]->head.kind == PLI_MEMBERSHIP_STATE) at = (int32_t)below(w, (uint64_t)w->n); /* rather votes */
    pli_msg      *msg = w->flying[at];
    const bool    sure = msg->head.arg32 == 1;
    if (below(w, 6) == 0) { /* once now, and once later */
        arrive(w, msg, out);
        return;
    }
    w->flying[at] = w->flying[--w->n];
    if (sure || below(w, 12) != 0) arrive(w, msg, out);
    pli_msg_free(&msg);
}

static void leave(world *w, int32_t r) {
    pli_msg *word = w->m[r].state == PLI_MEMBERSHIP_GOES_ON && !w->again[r] ? pli_membership_leave(&w->m[r]) : NULL;
    if (word == NULL) return;
    for (int32_t to = 0; to < w->size; to++) {
        pli_msg *copy = pli_msg_copy(word);
        assert_non_null(copy);
        copy->head.dst = to;
        copy->head.arg32 = 1;
        fly(w, copy);
    }
    pli_msg_free(&word);
    w->life[r] = LEFT;
}

static void start(world *w, int32_t r, bool again) {
    if (again) pli_membership_destroy(&w->m[r]);
    assert_true(pli_membership_init(&w->m[r], w->size, r, 1, RETRY, UINT64_MAX / 16, false));
    w->m[r].incarnation = again ? 2 : 1;
    w->life[r] = LIVES;
    w->again[r] = again;
}

static void step(world *w) {
    const int32_t  a = any(w), b = any(w);
    const uint64_t kind = below(w, 100);
    pli_out        out;
    pli_out_init(&out);
    if (kind < 82) {
        deliver(w, &out);
    } else if (w->life[a] != LIVES) {
        if (kind > 96 && w->life[a] == DEAD) start(w, a, true);
    } else if (kind < 88) {
        w->now_ns += below(w, 8 * RETRY);
        pli_membership_wake(&w->m[a], w->now_ns, &out);
        settle(w, a, &out);
    } else if (kind < 92) {
        pli_membership_suspect(&w->m[a], w->now_ns, b, &out);
        settle(w, a, &out);
    } else if (kind < 94 && w->life[b] == LIVES && b != a) {
        pli_membership_hear(&w->m[a], w->now_ns, b, w->m[b].incarnation, w->m[b].view, &out);
        settle(w, a, &out);
    } else if (kind < 98 && (w->life[b] == DEAD || w->again[b])) {
        pli_membership_attest(&w->m[a], w->now_ns, b, &out);
        settle(w, a, &out);
    } else if (kind == 98 && below(w, 2) == 0) {
        w->life[a] = DEAD;
    } else if (kind == 99 && below(w, 2) == 0) {
        leave(w, a);
    }
}

static void run(int64_t number) {
    static world w;
    memset(&w, 0, sizeof w);
    w.seed = (uint64_t)number;
    w.random = pli_random_at(w.seed, PLI_RANDOM_SCHEDULE, 22, 0);
    w.size = 2 + (int32_t)below(&w, RANKS - 1);
    for (int32_t r = 0; r < w.size; r++) start(&w, r, false);
    for (int32_t i = 0; i < STEPS; i++) step(&w);
    while (w.n > 0) pli_msg_free(&w.flying[--w.n]);
    for (int32_t r = 0; r < w.size; r++) pli_membership_destroy(&w.m[r]);
}

static void test_ballots_in_any_order(void **state) {
    (void)state;
    const char *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_SCHEDULES");
    int64_t     n = getenv("PLAIT_TEST_FULL") != NULL ? SCHEDULES_FULL : SCHEDULES;
    if (count != NULL) n = atoll(count) * 4;
    for (int64_t i = seed != NULL ? atoll(seed) : 0; i < n; i++) {
        run(i);
        if (seed != NULL) return;
    }
    print_message("%lld schedules, %lld views, %lld ballots refused\n", (long long)n, (long long)views_seen,
                  (long long)ballots_met);
    assert_true(views_seen > n * 5 / 4 && ballots_met > n / 10);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_ballots_in_any_order) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
