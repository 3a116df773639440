/* Bare machines of agreed sums, under schedules drawn by seed, over reliable and bad networks: ranks die at any event,
 * others hear of it at any later one, and a worker comes back to its machine whenever it likes. Ranks are cut off, too:
 * the others take them for dead, but they go on, and what is on its way to them and from them arrives.
 *
 * Rank h has an item; to each step it gives a vector in which the item is 1, and the same as a list, and as a message
 * to each other. When a step ends, each item must be 1 in the sum, in the lists together, and in what the others had
 * for the rank together with its own: it is in no part twice, and in none that counts is it missing, on ranks that are
 * cut off as well. What comes in a message was meant for who gets it. All other living ranks end all steps. A failing
 * seed is replayed by PLAIT_SEED=seed; PLAIT_SCHEDULES=n runs n. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "comm/agreed_sums.h"
#include "direct/direct.h"

enum { RANKS = 6, STEPS = 4, SCHEDULES = 3000, SCHEDULES_FULL = 40000, EVENTS = 200000, PARTS = 3 };

typedef struct worker {
    pli_agreed_sums sums;
    bool            lives, gave; /* gave: it is at the end of a step */
    bool            cut_off;
    int64_t         count[RANKS], sum[RANKS];
    pli_msg        *piece[RANKS], *gives[RANKS], *came[RANKS];
    pli_agreed_part part[PARTS];
} worker;

typedef struct world {
    direct *d;
    uint64_t seed;
    int32_t ranks, losses, cuts; /* how many are to be lost yet; how many of them may be cut off */
    worker  w[RANKS];
} world;

/* The next living rank has the items of a dead one. */
static int32_t holder(const world *all, const uint8_t *dead, int32_t item) {
    while (dead[item]) item = (item + 1) % all->ranks;
    return item;
}

static void begin_step(world *all, int32_t r) {
    worker *me = &all->w[r];
    for (int32_t i = 0; i < all->ranks; i++) me->count[i] = holder(all, me->sums.stood, i) == r;
}

static void make(world *all, uint64_t seed) {
    static const direct_opts good = { 0 };
    static const direct_opts bad = { .reorder = 0.3, .drop = 0.1, .twice = 0.1, .delay = 0.2, .early_wake = 0.05 };
    const bool               loses = seed % 2 == 1;
    memset(all, 0, sizeof *all);
    all->seed = seed;
    all->d = direct_new(seed, RANKS, loses ? &bad : &good);
    assert_non_null(all->d);
    all->ranks = 2 + (int32_t)direct_pick(all->d, RANKS - 1);
    all->losses = 1 + (int32_t)direct_pick(all->d, (uint64_t)all->ranks - 1);
    all->cuts = seed % 4 < 2 ? 0 : all->losses;
    for (int32_t r = 0; r < all->ranks; r++) {
        const int32_t host_of[RANKS] = { 0, 0, 1, 1, 2, 2 };
        assert_true(pli_agreed_sums_init(&all->w[r].sums, r, all->ranks, NULL, host_of, NULL, loses ? 20000 : 0));
        direct_add(all->d, r, PLI_PORT_AGREED, &pli_agreed_sums_ops, &all->w[r].sums);
        all->w[r].lives = true;
        begin_step(all, r);
    }
}

static void destroy(world *all) {
    for (int32_t r = 0; r < all->ranks; r++) {
        for (int32_t v = 0; v < RANKS; v++) {
            pli_msg_free(&all->w[r].piece[v]);
            pli_msg_free(&all->w[r].gives[v]);
            pli_msg_free(&all->w[r].came[v]);
        }
        pli_msg_free(&all->w[r].part[1].list);
        pli_agreed_sums_destroy(&all->w[r].sums);
    }
    direct_free(&all->d);
}

/* What rank r has for rank `to`: its items, and for whom they are. */
static void make_message(const world *all, worker *me, int32_t to) {
    const size_t bytes = (size_t)all->ranks * sizeof *me->count;
    pli_msg_free(&me->gives[to]);
    me->gives[to] = pli_msg_new(bytes + sizeof(int64_t));
    assert_non_null(me->gives[to]);
    memcpy(pli_msg_body(me->gives[to]), me->count, bytes);
    ((int64_t *)pli_msg_body(me->gives[to]))[all->ranks] = to;
}

static void give(world *all, int32_t r) {
    worker      *me = &all->w[r];
    const size_t bytes = (size_t)all->ranks * sizeof *me->count;
    plait_error  err = { 0 };
    uint64_t     now_ns;
    pli_msg_free(&me->part[1].list);
    me->part[0] = (pli_agreed_part){ .type = PLAIT_I64, .op = PLAIT_SUM, .n = all->ranks, .given = me->count,
                                     .values = me->sum };
    me->part[1] = (pli_agreed_part){ .list = pli_msg_new(bytes), .piece = me->piece };
    assert_non_null(me->part[1].list);
    memcpy(pli_msg_body(me->part[1].list), me->count, bytes);
    for (int32_t v = 0; v < all->ranks; v++)
        if (v != r) make_message(all, me, v);
    me->part[2] = (pli_agreed_part){ .gives = me->gives, .piece = me->came };
    (void)direct_enter(all->d, r, PLI_PORT_AGREED, &now_ns);
    assert_int_equal(pli_agreed_sums_give(&me->sums, PARTS, me->part, &err), PLAIT_OK);
    direct_leave(all->d, r, PLI_PORT_AGREED);
    me->gave = true;
}

static void check(const world *all, int32_t r) {
    const worker *me = &all->w[r];
    for (int32_t i = 0; i < all->ranks; i++) {
        int64_t listed = 0, came = me->count[i];
        for (int32_t v = 0; v < all->ranks; v++) {
            if (me->piece[v]->head.body_bytes > 0) listed += ((const int64_t *)pli_msg_body(me->piece[v]))[i];
            if (me->came[v]->head.body_bytes == 0) continue;
            came += ((const int64_t *)pli_msg_body(me->came[v]))[i];
            if (((const int64_t *)pli_msg_body(me->came[v]))[all->ranks] != r)
                fail_msg("seed %llu: rank %d got what was another's", (unsigned long long)all->seed, r);
        }
        if (me->sum[i] != 1 || listed != 1 || came != 1)
            fail_msg("seed %llu, %d ranks: rank %d ended step %lld with item %d %lld times, %lld times in lists, "
                     "%lld in messages",
                     (unsigned long long)all->seed, all->ranks, r, (long long)me->sums.step - 1, i,
                     (long long)me->sum[i], (long long)listed, (long long)came);
    }
}

static void stand_in(world *all, int32_t r) {
    worker *me = &all->w[r];
    for (int32_t i = 0; i < all->ranks; i++)
        me->count[i] += holder(all, me->sums.next, i) == r && holder(all, me->sums.stood, i) != r;
}

/* The worker looks whether its step is over. */
static void ask(world *all, int32_t r) {
    worker      *me = &all->w[r];
    plait_error  err = { 0 };
    uint64_t     now_ns;
    pli_out     *out = direct_enter(all->d, r, PLI_PORT_AGREED, &now_ns);
    plait_status status = pli_agreed_sums_go_on(&me->sums, now_ns, out, &err);
    if (status != PLAIT_PENDING) status = pli_agreed_sums_end(&me->sums, status, &err);
    direct_leave(all->d, r, PLI_PORT_AGREED);
    if (status < 0) fail_msg("seed %llu: rank %d: %s", (unsigned long long)all->seed, r, err.text);
    if (status == PLAIT_PENDING) return;
    me->gave = false;
    if (status == PLAIT_STAND_IN) {
        stand_in(all, r);
        return;
    }
    check(all, r);
    begin_step(all, r);
}

static bool is_over(const world *all) {
    for (int32_t r = 0; r < all->ranks; r++)
        if (all->w[r].lives && !all->w[r].cut_off && all->w[r].sums.step < STEPS) return false;
    return true;
}

/* Somebody is lost: dies, or is cut off. One rank remains. */
static void lose_one(world *all) {
    const plait_error why = { .code = PLAIT_EPEER, .text = "lost by the test" };
    int32_t           left = 0, r = (int32_t)direct_pick(all->d, (uint64_t)all->ranks);
    for (int32_t v = 0; v < all->ranks; v++) left += all->w[v].lives && !all->w[v].cut_off;
    if (!all->w[r].lives || all->w[r].cut_off || left == 1) return;
    all->losses--;
    if (all->cuts > 0 && direct_pick(all->d, 2) == 0) {
        all->w[r].cut_off = true;
        all->cuts--;
        direct_suspect(all->d, r, &why);
        return;
    }
    all->w[r].lives = false;
    direct_member(all->d, PLI_MEMBER_DIED, r, &why);
}

static int64_t run(uint64_t seed) {
    static world all;
    int64_t      stood = 0;
    make(&all, seed);
    const uint64_t pace = 10 + direct_pick(all.d, 150), busy = 1 + direct_pick(all.d, 4);
    for (int64_t events = 0; !is_over(&all); events++) {
        if (events > EVENTS) fail_msg("seed %llu, %d ranks: a living rank waits for ever", (unsigned long long)seed,
                                      all.ranks);
        if (all.losses > 0 && direct_pick(all.d, pace) == 0) lose_one(&all);
        const int32_t r = (int32_t)direct_pick(all.d, (uint64_t)all.ranks);
        worker       *me = &all.w[r];
        if (me->lives && me->sums.step < STEPS && direct_pick(all.d, busy) == 0) {
            if (me->gave) ask(&all, r);
            else give(&all, r);
        }
        direct_step(all.d);
    }
    for (int32_t r = 0; r < all.ranks; r++) {
        if (all.w[r].lives && !all.w[r].cut_off) assert_int_equal(direct_error(all.d, r)->code, 0);
        for (int32_t v = 0; v < all.ranks; v++) stood += all.w[r].lives && all.w[r].sums.stood[v];
    }
    destroy(&all);
    return stood;
}

static void test_all_living_end_each_step_with_the_same(void **unused) {
    (void)unused;
    const char *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_SCHEDULES");
    int64_t     n = getenv("PLAIT_TEST_FULL") != NULL ? SCHEDULES_FULL : SCHEDULES, stood = 0;
    const int64_t live = pli_alloc_live();
    if (count != NULL) n = atoll(count);
    if (seed != NULL) n = 1;
    for (int64_t i = 0; i < n; i++) stood += run(seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)i);
    print_message("%lld schedules; workers stood in for %lld others\n", (long long)n, (long long)stood);
    assert_int_equal(pli_alloc_live(), live);
    if (n >= SCHEDULES) assert_true(stood > n / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_living_end_each_step_with_the_same) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
