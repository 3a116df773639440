/* The lease book over random schedules: every share of every block is computed once, by one worker; shares follow
 * speed; noise moves nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table/server/leases.h"

enum { WORKERS = 8, BLOCKS = 70, CLOCKS = 200 };

/* Workers take clocks in a random order, each by the leases that it was last told. */
typedef struct play {
    int32_t         workers;
    pli_lease_terms terms;
    pli_book       *book;
    int64_t         clock[WORKERS], n[WORKERS];
    pli_lease       lease[WORKERS][BLOCKS];
    pli_pace        pace[WORKERS];
    double          speed[WORKERS];           /* rows a second */
    uint8_t         taken[BLOCKS][CLOCKS];    /* how many times */
    int64_t         moves, begun;
} play;

static int64_t rows_of(int64_t block) { return block % 11 == 5 ? 0 : 90 + block % 7 * 5; }

/* A run whose first clock is `clock`. */
static void begin_at(play *p, int32_t workers, int64_t blocks, int64_t clocks, int64_t clock) {
    memset(p, 0, sizeof *p);
    p->workers = workers;
    p->begun = clock;
    p->terms = (pli_lease_terms){ .blocks = blocks, .clocks = clocks, .tenants = workers,
                                  .first = pli_lease_first(clock, clocks) };
    assert_int_equal(pli_book_open(workers, &p->terms, &p->book, NULL), PLAIT_OK);
    for (int32_t w = 0; w < workers; w++) {
        p->speed[w] = 1000;
        p->clock[w] = clock;
        for (int64_t b = blocks * w / workers; b < blocks * (w + 1) / workers; b++)
            p->lease[w][p->n[w]++] = (pli_lease){ .block = b, .rows = rows_of(b), .until = PLI_LEASE_OPEN };
    }
}

static void begin(play *p, int32_t workers, int64_t blocks, int64_t clocks) {
    begin_at(p, workers, blocks, clocks, 0);
}

static void ask(play *p, int32_t w) {
    pli_lease before[BLOCKS];
    int64_t   n_before = p->n[w];
    memcpy(before, p->lease[w], sizeof before);
    if (p->clock[w] == p->terms.first)
        assert_int_equal(pli_book_bring(p->book, w, p->lease[w], p->n[w], NULL), PLAIT_OK);
    assert_int_equal(pli_book_ask(p->book, w, p->clock[w], &p->pace[w], NULL), PLAIT_OK);
    p->n[w] = pli_book_leases(p->book, w, p->lease[w]);
    p->pace[w] = (pli_pace){ 0, 0 };
    for (int64_t i = 0; i < p->n[w]; i++) {
        bool had = false;
        for (int64_t k = 0; k < n_before; k++) had = had || before[k].block == p->lease[w][i].block;
        p->moves += !had;
    }
}

static void take_clock(play *p, int32_t w) {
    int64_t clock = p->clock[w], epoch_clock = clock % p->terms.clocks;
    if (epoch_clock % PLI_LEASE_EVERY == 0) ask(p, w);
    double rows = 0;
    for (int64_t i = 0; i < p->n[w]; i++) {
        const pli_lease *l = &p->lease[w][i];
        assert_int_equal(l->rows, rows_of(l->block));
        if (clock < l->from || clock >= l->until) continue;
        p->taken[l->block][clock]++;
        rows += (double)l->rows / (double)p->terms.clocks;
    }
    p->pace[w].rows += rows;
    p->pace[w].seconds += rows / p->speed[w];
    p->clock[w]++;
}

static void check_taken(const play *p, uint64_t seed) {
    for (int64_t b = 0; b < p->terms.blocks; b++)
        for (int64_t c = 0; c < CLOCKS; c++)
            if (p->taken[b][c] != (c >= p->begun))
                fail_msg("PLAIT_SEED=%llu: block %d was computed %d times in clock %d", (unsigned long long)seed,
                         (int)b, p->taken[b][c], (int)c);
}

static double load_of(const play *p, int32_t w) {
    double rows = 0;
    for (int64_t i = 0; i < p->n[w]; i++)
        rows += p->lease[w][i].until == PLI_LEASE_OPEN ? (double)p->lease[w][i].rows : 0;
    return rows;
}

/* The workers' clocks come in any order, and speeds change at any time. Every other run goes on behind some clock. */
static void test_every_share_once(void **state) {
    (void)state;
    static play p;
    int64_t     moves = 0;
    for (uint64_t seed = 0; seed < 600; seed++) {
        pli_random r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 0, 0);
        int32_t    workers = 1 + (int32_t)pli_random_below(&r, WORKERS);
        int64_t    lag = (int64_t)pli_random_below(&r, 60); /* 0: in step */
        int64_t    begun = seed % 2 == 0 ? 0 : (int64_t)pli_random_below(&r, CLOCKS / 2);
        begin_at(&p, workers, workers + (int64_t)pli_random_below(&r, (uint64_t)(BLOCKS - workers)) + 1,
                 1 + (int64_t)pli_random_below(&r, 70), begun);
        for (int64_t left = workers * (CLOCKS - begun); left > 0;) {
            int32_t w = (int32_t)pli_random_below(&r, (uint64_t)workers);
            int64_t slowest = CLOCKS;
            for (int32_t i = 0; i < workers; i++) slowest = p.clock[i] < slowest ? p.clock[i] : slowest;
            if (p.clock[w] == CLOCKS || p.clock[w] > slowest + lag) continue;
            if (pli_random_below(&r, 50) == 0) p.speed[w] = 100 * exp(3 * pli_random_f64(&r));
            take_clock(&p, w);
            left--;
        }
        check_taken(&p, seed);
        moves += p.moves;
        pli_book_close(&p.book);
    }
    assert_true(moves > 2000);
}

static void run(play *p, int64_t clocks) {
    for (int64_t c = 0; c < clocks; c++)
        for (int32_t w = 0; w < p->workers; w++) take_clock(p, w);
}

static void test_shares_follow_speed(void **state) {
    (void)state;
    static play p;
    begin(&p, 6, 66, 50);
    p.speed[2] = 250; /* of 5250 in all: a part of 21 */
    run(&p, 40);
    double all = 0;
    for (int32_t w = 0; w < 6; w++) all += load_of(&p, w);
    assert_true(load_of(&p, 2) > all / 21 * 0.6 && load_of(&p, 2) < all / 21 * 1.25);
    for (int32_t w = 0; w < 6; w++) assert_true(w == 2 || load_of(&p, w) > all * 4 / 21 * 0.85);
    p.speed[2] = 1000; /* fast again: none of the others has much too much, but it has far too little */
    run(&p, 60);
    for (int32_t w = 0; w < 6; w++) assert_true(load_of(&p, w) > all / 6 * 0.75 && load_of(&p, w) < all / 6 * 1.25);
    pli_book_close(&p.book);
}

/* A worker that is as good as dead keeps a block, so that it is noticed when it comes to life. */
static void test_the_last_block_stays(void **state) {
    (void)state;
    static play p;
    begin(&p, 2, 64, 50);
    p.speed[0] = 0.001;
    run(&p, 100);
    assert_true(load_of(&p, 0) > 0 && load_of(&p, 0) < 125); /* one block with rows; empty blocks never move */
    pli_book_close(&p.book);
}

static void test_noise_moves_nothing(void **state) {
    (void)state;
    static play p;
    begin(&p, 4, 64, 50);
    pli_random r = pli_random_at(5, PLI_RANDOM_DATA, 2, 0);
    for (int64_t c = 0; c < CLOCKS; c++)
        for (int32_t w = 0; w < 4; w++) {
            p.speed[w] = 1000 * (1 + 0.1 * (2 * pli_random_f64(&r) - 1));
            take_clock(&p, w);
        }
    assert_int_equal(p.moves, 0);
    pli_book_close(&p.book);
}

static void test_who_has_left_gets_nothing(void **state) {
    (void)state;
    static play p;
    begin(&p, 3, 63, 50);
    run(&p, 9);
    p.speed[0] = 100;
    pli_book_leave(p.book, 2);
    for (int64_t c = 9; c < 40; c++)
        for (int32_t w = 0; w < 2; w++) take_clock(&p, w);
    assert_true(p.moves > 0);
    assert_int_equal(pli_book_leases(p.book, 2, NULL), 21);
    pli_book_close(&p.book);
}

/* Workers in step, whose copies of the book are all like this one. Some die, at the beginning of any window; those who
 * live have all blocks from then on, and those of the dead by their speed. */
static void test_the_living_have_the_blocks_of_the_dead(void **state) {
    (void)state;
    static play p;
    for (uint64_t seed = 0; seed < 300; seed++) {
        pli_random    r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 3, 0);
        const int32_t workers = 2 + (int32_t)pli_random_below(&r, WORKERS - 1);
        const int32_t keeps = (int32_t)(seed % (uint64_t)workers); /* it lives to the end */
        bool          dead[WORKERS] = { false };
        double        all = 0, speed = 0, load[WORKERS] = { 0 };
        begin(&p, workers, BLOCKS, 40);
        for (int32_t w = 0; w < workers; w++) {
            p.speed[w] = 500 + 1500 * pli_random_f64(&r);
            assert_int_equal(pli_book_bring(p.book, w, p.lease[w], p.n[w], NULL), PLAIT_OK);
        }
        for (int64_t clock = 0; clock < CLOCKS; clock = pli_lease_next(clock, 40)) {
            const int32_t victim = (int32_t)pli_random_below(&r, 3 * WORKERS);
            if (victim < workers && victim != keeps && clock < CLOCKS / 2) dead[victim] = true;
            for (int32_t w = 0; w < workers; w++)
                if (dead[w]) pli_book_bury(p.book, w, clock);
            for (int32_t w = 0; w < workers; w++) {
                const pli_pace pace = { p.speed[w], 1 };
                if (!dead[w]) assert_int_equal(pli_book_ask(p.book, w, clock, &pace, NULL), PLAIT_OK);
            }
            for (int64_t b = 0; b < BLOCKS; b++) assert_false(dead[pli_book_holder(p.book, b, clock)]);
        }
        for (int64_t b = 0; b < BLOCKS; b++) {
            load[pli_book_holder(p.book, b, CLOCKS)] += (double)rows_of(b);
            all += (double)rows_of(b);
        }
        for (int32_t w = 0; w < workers; w++) speed += dead[w] ? 0 : p.speed[w];
        for (int32_t w = 0; w < workers; w++)
            if (!dead[w] && load[w] / all > 1.4 * p.speed[w] / speed + 130 / all)
                fail_msg("seed %d: worker %d has %g of %g rows at %g of %g speed", (int)seed, w, load[w], all,
                         p.speed[w], speed);
        pli_book_close(&p.book);
    }
}

static void test_what_is_refused(void **state) {
    (void)state;
    plait_error     err;
    pli_book       *book = NULL;
    pli_lease_terms terms = { .blocks = 4, .clocks = 10, .tenants = 2 };
    pli_pace        pace = { 1, 1 };
    int64_t         live = pli_alloc_live();
    assert_int_equal(pli_book_open(2, &(pli_lease_terms){ .blocks = 0, .clocks = 10, .tenants = 2 }, &book, &err),
                     PLAIT_EFORMAT);
    assert_int_equal(pli_book_open(2, &(pli_lease_terms){ .blocks = 4, .clocks = 10, .tenants = 3 }, &book, &err),
                     PLAIT_EFORMAT);
    assert_int_equal(pli_book_open(2, &(pli_lease_terms){ .blocks = 4, .clocks = 10, .tenants = 0 }, &book, &err),
                     PLAIT_EFORMAT);
    assert_int_equal(pli_book_open(3, &terms, &book, &err), PLAIT_OK);
    assert_false(pli_book_is_about(book, &(pli_lease_terms){ .blocks = 4, .clocks = 11, .tenants = 2 }));
    assert_int_equal(pli_book_bring(book, 0, &(pli_lease){ .block = 1, .rows = 5 }, 1, &err), PLAIT_OK);
    assert_int_equal(pli_book_bring(book, 1, &(pli_lease){ .block = 1, .rows = 5 }, 1, &err), PLAIT_EFORMAT);
    assert_int_equal(pli_book_bring(book, 1, &(pli_lease){ .block = 4, .rows = 5 }, 1, &err), PLAIT_EFORMAT);
    assert_int_equal(pli_book_bring(book, 1, &(pli_lease){ .block = 2, .rows = -5 }, 1, &err), PLAIT_EFORMAT);
    assert_int_equal(pli_book_bring(book, 2, NULL, 0, &err), PLAIT_EFORMAT); /* it is no tenant */
    pli_book_leave(book, 2);
    assert_int_equal(pli_book_ask(book, 0, 1, &pace, &err), PLAIT_EFORMAT);
    assert_int_equal(pli_book_ask(book, 0, 0, &pace, &err), PLAIT_OK);
    assert_int_equal(pli_book_ask(book, 0, 10, &pace, &err), PLAIT_EFORMAT); /* 8 was due */
    assert_int_equal(pli_book_ask(book, 0, 8, &pace, &err), PLAIT_OK);
    assert_int_equal(pli_book_ask(book, 0, 10, &pace, &err), PLAIT_OK); /* the next epoch */
    pli_book_close(&book);
    assert_int_equal(pli_alloc_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_share_once),     cmocka_unit_test(test_shares_follow_speed),
        cmocka_unit_test(test_the_last_block_stays), cmocka_unit_test(test_noise_moves_nothing),
        cmocka_unit_test(test_who_has_left_gets_nothing),
        cmocka_unit_test(test_the_living_have_the_blocks_of_the_dead), cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0; /* 1, however many fail: a mistake is refuted (mutants.sh) */
}
