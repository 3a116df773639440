/* Filtered sums over bare machines, by seed: every worker ends with the same bits, and what was applied plus all that
 * is kept is what was pushed. Mistakes that are planted here must be seen by these two checks.
 *
 * In some runs workers die: in the midst of a clock, which the others then make again without them. What the dead kept
 * is lost, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "table/copies/coded.h"
#include "table/state/updates.h"

#include <math.h>
#include <string.h>

enum { WORKERS_MAX = 6, ROWS_MAX = 40, COLS_MAX = 3, CLOCKS = 12, VALUES_MAX = ROWS_MAX * COLS_MAX };

/* What goes wrong, at worker 1, behind the fifth clock or from then on. */
typedef enum mistake {
    NONE,
    DROPPED,    /* its residual is gone                                     */
    TWICE,      /* its residual is added twice                              */
    ELSEWHERE,  /* its residual is kept at another worker, too              */
    OWN_EXACT,  /* it takes its own part, or its stripe's sum, as it was    */
    OWNER_LOSES, /* the owner of a stripe keeps nothing of what its sum lost */
    AS_IT_IS,    /* a sum is put back, but its residual stays as it has become    */
    TOO_LATE,    /* it is put back, though the clock has ended                    */
    ANEW         /* its residual does not survive a new cut                       */
} mistake;

typedef struct setting {
    const char *filter;
    bool        rounds; /* the encoding is not exact, nor is the ledger */
    bool        keyed;
} setting;

static const setting settings[] = {
    { "topk:0.1", false, false },    { "topk:0.01", false, true },     { "randk:0.2", false, false },
    { "randk:0.3", false, true },    { "significant:3", false, false }, { "fp16", true, false },
    { "bf16", true, true },          { "fixed8", true, false },        { "fixed16", true, true },
    { "onebit", true, false },       { "onebit", true, true },         { "zstd", false, false },
    { "topk:0.3,onebit", true, false }, { "key-cache,key-delta,topk:0.2,fixed8,zstd", true, true },
    { "randk:0.5,fp16,zstd", true, false }
};

typedef struct world {
    const setting *s;
    mistake        mistake;
    pli_spec       spec;
    int32_t        workers;
    bool           whole, mortal;
    uint8_t        dead[WORKERS_MAX];
    int64_t        values;
    pli_random     random;
    pli_coded     *coded[WORKERS_MAX];
    pli_pending    own[WORKERS_MAX];
    double         pushed[VALUES_MAX], applied[VALUES_MAX], size; /* size: the largest that was ever pushed */
    unsigned char  result[WORKERS_MAX][VALUES_MAX * sizeof(double)];
} world;

static world the;

#define SURE(condition)                                                                                              \
    do                                                                                                               \
        if (!(condition)) fail_msg("%s, %d workers: %s", the.s->filter, (int)the.workers, #condition);              \
    while (0)

static bool lives(int32_t w) { return !the.dead[w]; }

static uint64_t pick(uint64_t n) { return pli_random_below(&the.random, n); }

static void open_world(const setting *s, uint64_t seed, mistake m) {
    plait_table_opts opts;
    memset(&the, 0, sizeof the);
    the.s = s;
    the.mistake = m;
    the.random = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 77, 0);
    the.workers = 2 + (int32_t)pick(WORKERS_MAX - 1);
    the.whole = pick(4) == 0;
    the.mortal = m >= AS_IT_IS || (m == NONE && pick(2) == 0);
    plait_table_opts_init(&opts);
    opts.name = "t";
    opts.type = pick(2) == 0 ? PLAIT_F32 : PLAIT_F64;
    opts.rows = m == NONE ? 1 + (int64_t)pick(ROWS_MAX) : ROWS_MAX;
    opts.cols = 1 + (int64_t)pick(COLS_MAX);
    opts.keyed = s->keyed;
    opts.rule.name = "sgd";
    SURE(pli_spec_make(3, &opts, "allreduce", "bsp", 1, NULL, &the.spec, NULL) == PLAIT_OK);
    strcpy(the.spec.filter, s->filter);
    the.values = the.spec.rows * the.spec.cols;
    for (int32_t w = 0; w < the.workers; w++) {
        const pli_coded_place place = { .seed = seed, .rank = w, .workers = the.workers, .whole = the.whole,
                                        .holds = the.mortal };
        SURE(pli_coded_open(&the.spec, &place, &the.coded[w], NULL) == PLAIT_OK);
        pli_pending_init(&the.own[w], &the.spec, 0);
    }
}

static void close_world(void) {
    for (int32_t w = 0; w < the.workers; w++) {
        pli_coded_close(&the.coded[w]);
        pli_pending_destroy(&the.own[w]);
    }
}

/* Whole numbers, so that a ledger of exact encodings is exact. */
static void push(int32_t w) {
    double   x[VALUES_MAX];
    float    f[VALUES_MAX];
    uint64_t keys[ROWS_MAX];
    int64_t  n = 0, cols = the.spec.cols;
    if (pick(6) == 0) return; /* nothing in this clock */
    for (int64_t row = 0; row < the.spec.rows; row++) {
        if (the.s->keyed && pick(2) == 0) continue;
        for (int64_t c = 0; c < cols; c++) {
            x[n * cols + c] = (double)pick(41) - 20;
            f[n * cols + c] = (float)x[n * cols + c];
            the.pushed[row * cols + c] += x[n * cols + c];
        }
        keys[n++] = (uint64_t)row;
    }
    the.size = 20 * (double)the.workers * CLOCKS;
    const void *delta = the.spec.type == PLAIT_F32 ? (const void *)f : (const void *)x;
    SURE(pli_pending_add_rows(&the.own[w], n, the.s->keyed ? keys : NULL, 0, delta, 1 + w, NULL) == PLAIT_OK);
}

static double at(const void *values, int64_t i) { return pli_updates_at(&the.spec, values, i); }

/* --- what is kept ------------------------------------------------------------------------------------------------- */

/* Adds what worker w keeps, times sign, to values. */
static void add_kept_of(int32_t w, double sign, double *to) {
    unsigned char kept[VALUES_MAX * sizeof(double)];
    for (int of_sums = 0; of_sums < 2 && !the.s->keyed; of_sums++) {
        pli_coded_kept(the.coded[w], of_sums != 0, kept);
        for (int64_t i = 0; i < the.values; i++) to[i] += sign * at(kept, i);
    }
    const pli_residual *r = &the.coded[w]->up[0].residual;
    for (int64_t i = 0; the.s->keyed && i < r->set.n * the.spec.cols; i++)
        to[(int64_t)r->set.keys[i / the.spec.cols] * the.spec.cols + i % the.spec.cols] += sign * at(r->values, i);
}

static void add_kept(double *to) {
    for (int32_t w = 0; w < the.workers; w++)
        if (lives(w)) add_kept_of(w, 1, to);
}

static void go_wrong(void) {
    unsigned char kept[VALUES_MAX * sizeof(double)];
    pli_coded    *one = the.coded[1];
    if (the.mistake == NONE || the.mistake == OWN_EXACT || the.mistake >= AS_IT_IS) return;
    pli_coded_kept(one, false, kept);
    if (the.mistake == DROPPED) pli_coded_forget(one);
    if (the.mistake == TWICE) SURE(pli_coded_keep(one, false, kept, NULL) == PLAIT_OK);
    if (the.mistake == ELSEWHERE) SURE(pli_coded_keep(the.coded[0], false, kept, NULL) == PLAIT_OK);
    if (the.mistake == OWNER_LOSES && one->in_stripes) pli_residual_clear(&one->down.residual);
}

/* --- a clock ------------------------------------------------------------------------------------------------------ */

typedef struct mail {
    pli_bytes body[WORKERS_MAX][WORKERS_MAX]; /* from, to */
} mail;

static mail post;

static int32_t first_living(void) {
    int32_t w = 0;
    while (!lives(w)) w++;
    return w;
}

static void add_all(int32_t w, int64_t clock, void *sum, pli_coded_push *push) {
    const pli_coded *c = the.coded[w];
    for (int32_t i = 0; i < c->n_living; i++) {
        const int32_t from = c->living[i];
        if (c->in_stripes && from == w) continue;
        const pli_bytes     *body = &post.body[from][c->mine];
        const unsigned char *data = body->data, *end = data + body->n;
        SURE(pli_coded_add(the.coded[w], from, clock, &data, end, sum, push, NULL) == PLAIT_OK && data == end);
    }
}

/* The parts of those that live; of all others' stripes, where the table is cut. */
static void put_parts(int64_t clock) {
    for (int32_t w = 0; w < the.workers; w++)
        for (int32_t s = 0; lives(w) && s < the.coded[w]->stripes; s++) {
            if (the.coded[w]->in_stripes && s == the.coded[w]->mine) continue;
            SURE(pli_coded_put(the.coded[w], s, clock, &the.own[w], &post.body[w][s], NULL) == PLAIT_OK);
        }
}

static void add_own_stripe(int32_t w, int64_t clock, pli_coded_push *push, pli_bytes *sum) {
    if (the.own[w].touched) memcpy(the.result[w], the.own[w].sum, (size_t)(the.values * the.spec.width));
    else pli_updates_clear(&the.spec, the.values, the.result[w]);
    *push = (pli_coded_push){ the.own[w].touched, the.own[w].touched ? the.own[w].examples : 0 };
    add_all(w, clock, the.result[w], push);
    SURE(pli_coded_put_sum(the.coded[w], clock, push, the.result[w], sum, NULL) == PLAIT_OK);
}

static void sum_in_stripes(int64_t clock, bool ends) {
    pli_coded_push pushes[WORKERS_MAX] = { { 0 } };
    pli_bytes      sums[WORKERS_MAX] = { { 0 } };
    const int32_t  one = first_living();
    put_parts(clock);
    for (int32_t w = 0; w < the.workers; w++) {
        if (!lives(w)) continue;
        add_own_stripe(w, clock, &pushes[w], &sums[w]);
        SURE(pushes[w].examples == pushes[one].examples && pushes[w].touched == pushes[one].touched);
    }
    for (int32_t w = 0; w < the.workers && ends; w++)
        for (int32_t s = 0; lives(w) && s < the.coded[w]->stripes; s++) {
            const pli_bytes     *sum = &sums[the.coded[w]->living[s]];
            const unsigned char *data = sum->data, *end = data + sum->n;
            if (the.mistake == OWN_EXACT && w == 1 && s == 1) continue;
            SURE(pli_coded_take_sum(the.coded[w], s, clock, &pushes[w], &data, end, the.result[w], NULL) == PLAIT_OK &&
                 data == end);
        }
    for (int32_t w = 0; w < the.workers; w++) pli_bytes_free(&sums[w]);
}

static void sum_whole(int64_t clock, bool ends) {
    put_parts(clock);
    for (int32_t w = 0; w < the.workers && ends; w++) {
        pli_coded_push push = { 0 };
        if (!lives(w)) continue;
        pli_updates_clear(&the.spec, the.values, the.result[w]);
        add_all(w, clock, the.result[w], &push);
        if (the.mistake == OWN_EXACT && w == 1 && the.own[1].touched)
            memcpy(the.result[w], the.own[1].sum, (size_t)(the.values * the.spec.width));
    }
}

static void take_list(int32_t w, int32_t from, int64_t clock) {
    const unsigned char *data = post.body[from][0].data, *end = data + post.body[from][0].n;
    pli_push_part        part;
    pli_decoded          decoded = { 0 };
    int64_t              row[ROWS_MAX];
    SURE(pli_coded_take_rows(the.coded[w], from, clock, &data, end, &part, &decoded, NULL) == PLAIT_OK);
    SURE(data == end && part.n <= the.spec.rows && part.touched == the.own[from].touched);
    for (int64_t i = 0; i < part.n; i++) row[i] = (int64_t)part.keys[i];
    pli_updates_merge_rows(&the.spec, part.n, row, part.values, the.result[w]);
    pli_decoded_free(&decoded);
}

static void sum_lists(int64_t clock, bool ends) {
    put_parts(clock);
    for (int32_t w = 0; w < the.workers && ends; w++) {
        if (!lives(w)) continue;
        pli_updates_clear(&the.spec, the.values, the.result[w]);
        for (int32_t from = 0; from < the.workers; from++)
            if (lives(from)) take_list(w, from, clock);
    }
}

static void free_mail(void) {
    for (int32_t w = 0; w < the.workers; w++)
        for (int32_t to = 0; to < the.workers; to++) pli_bytes_free(&post.body[w][to]);
}

/* ends: else a worker dies before all have it. */
static void make_sums(int64_t clock, bool ends) {
    if (the.s->keyed) sum_lists(clock, ends);
    else if (the.coded[first_living()]->in_stripes) sum_in_stripes(clock, ends);
    else sum_whole(clock, ends);
    free_mail();
}

/* A worker dies in the clock, before or behind the exchange of parts: what it kept when the clock began is lost, and so
 * is what it has pushed, for which nobody stands in here. */
static void die_within(int64_t clock) {
    const int32_t who = (int32_t)pick((uint64_t)the.workers);
    if (the.coded[first_living()]->n_living == 1 || !lives(who) || (the.mistake != NONE && who == 1)) return;
    add_kept_of(who, -1, the.pushed);
    for (int64_t i = 0; i < the.own[who].set.n * the.spec.cols && the.s->keyed; i++)
        the.pushed[(int64_t)the.own[who].set.keys[i / the.spec.cols] * the.spec.cols + i % the.spec.cols] -=
            at(the.own[who].sum, i);
    for (int64_t i = 0; i < the.values && !the.s->keyed && the.own[who].touched; i++)
        the.pushed[i] -= at(the.own[who].sum, i);
    if (pick(3) > 0 || the.mistake != NONE) make_sums(clock, false);
    the.dead[who] = 1;
    for (int32_t w = 0; w < the.workers; w++) {
        if (!lives(w)) continue;
        if (the.mistake == AS_IT_IS && w == 1) pli_coded_settle(the.coded[w]);
        SURE(pli_coded_put_back(the.coded[w], &the.own[w], NULL) == PLAIT_OK);
        if (the.mistake == ANEW && w == 1) pli_coded_forget(the.coded[w]);
        SURE(pli_coded_recut(the.coded[w], the.dead, NULL) == PLAIT_OK);
    }
}

static void end_clock(int32_t w) {
    if (the.mistake == TOO_LATE && w == 1) SURE(pli_coded_put_back(the.coded[w], &the.own[w], NULL) == PLAIT_OK);
    pli_coded_settle(the.coded[w]);
    pli_pending_clear(&the.own[w]);
}

static void run_clock(int64_t clock) {
    for (int32_t w = 0; w < the.workers; w++)
        if (lives(w)) push(w);
    while (the.mortal && pick(8) == 0) die_within(clock);
    make_sums(clock, true);
    for (int64_t i = 0; i < the.values; i++) the.applied[i] += at(the.result[first_living()], i);
    for (int32_t w = 0; w < the.workers; w++) end_clock(w);
}

static bool all_have_the_same_bits(void) {
    const int32_t one = first_living();
    const size_t  bytes = (size_t)(the.values * the.spec.width);
    for (int32_t w = 0; w < the.workers; w++)
        if (lives(w) && memcmp(the.result[w], the.result[one], bytes) != 0) return false;
    return true;
}

static bool the_ledger_closes(void) {
    double have[VALUES_MAX];
    memcpy(have, the.applied, sizeof have);
    add_kept(have);
    for (int64_t i = 0; i < the.values; i++) {
        const double most = !the.s->rounds ? 0 : the.size * (the.spec.type == PLAIT_F32 ? 1e-5 : 1e-12);
        if (!(fabs(have[i] - the.pushed[i]) <= most)) return false;
    }
    return true;
}

/* Does a run end with both checks passed? */
static bool run(const setting *s, uint64_t seed, mistake m) {
    bool good = true;
    open_world(s, seed, m);
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        run_clock(clock);
        if (clock == 4 || m == OWNER_LOSES) go_wrong();
        good = good && all_have_the_same_bits() && the_ledger_closes();
    }
    close_world();
    return good;
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

static void test_sums_lose_nothing_and_are_the_same_everywhere(void **unused) {
    const uint64_t seeds = getenv("PLAIT_TEST_FULL") != NULL ? 2000 : 40;
    (void)unused;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (uint64_t seed = 0; seed < seeds; seed++)
            if (!run(&settings[i], seed, NONE))
                fail_msg("%s%s, seed %d", settings[i].filter, settings[i].keyed ? ", keyed" : "", (int)seed);
}

static void test_mistakes_are_seen(void **unused) {
    static const setting of[] = { { "topk:0.1", false, false }, { "onebit", true, false } };
    (void)unused;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int m = DROPPED; m <= ANEW; m++) {
            int seen = 0;
            for (uint64_t seed = 0; seed < 12; seed++) seen += !run(&of[i], seed, (mistake)m);
            if (seen < 4) fail_msg("%s: mistake %d was seen in %d of 12 runs", of[i].filter, m, seen);
        }
}

/* What is kept comes back bit for bit, also if the stripes have moved. */
static void test_what_is_kept_can_be_put_back(void **unused) {
    unsigned char kept[2][VALUES_MAX * sizeof(double)], again[VALUES_MAX * sizeof(double)];
    (void)unused;
    open_world(&settings[0], 5, NONE);
    for (int64_t clock = 0; clock < 4; clock++) run_clock(clock);
    for (int of_sums = 0; of_sums < 2; of_sums++) pli_coded_kept(the.coded[1], of_sums != 0, kept[of_sums]);
    pli_coded_forget(the.coded[1]);
    for (int of_sums = 0; of_sums < 2; of_sums++) {
        pli_coded_kept(the.coded[1], of_sums != 0, again);
        for (int64_t i = 0; i < the.values; i++) assert_true(at(again, i) == 0);
        assert_int_equal(pli_coded_keep(the.coded[1], of_sums != 0, kept[of_sums], NULL), PLAIT_OK);
        pli_coded_kept(the.coded[1], of_sums != 0, again);
        assert_memory_equal(again, kept[of_sums], (size_t)(the.values * the.spec.width));
        if (!the.coded[1]->in_stripes) break;
    }
    close_world();
}

/* A worker that is given what another has kept sends all of it: of its own stripe, with the stripe's sum. */
static void test_what_is_put_back_is_sent(void **unused) {
    static const setting all = { "topk:1", false, false };
    unsigned char        ones[VALUES_MAX * sizeof(double)];
    int                  striped = 0;
    (void)unused;
    for (uint64_t seed = 0; seed < 20; seed++) {
        open_world(&all, seed, NONE);
        for (int64_t i = 0; i < the.values; i++) pli_updates_set(&the.spec, ones, i, 1);
        assert_int_equal(pli_coded_keep(the.coded[1], false, ones, NULL), PLAIT_OK);
        for (int64_t i = 0; i < the.values; i++) the.pushed[i] = 1;
        for (int64_t clock = 0; clock < CLOCKS; clock++) run_clock(clock);
        for (int64_t i = 0; i < the.values; i++) assert_true(the.applied[i] == the.pushed[i]);
        striped += the.coded[0]->in_stripes;
        close_world();
    }
    assert_true(striped > 0);
}

/* What an owner keeps of its stripe is in the sum that it applies itself, once: if that sum is dropped, it is kept as
 * before. */
static void test_what_is_spent_is_kept_if_the_sum_is_dropped(void **unused) {
    static const setting all = { "topk:0.1", false, false };
    int                  striped = 0;
    (void)unused;
    for (uint64_t seed = 0; seed < 40; seed++) {
        unsigned char ones[VALUES_MAX * sizeof(double)], sum[VALUES_MAX * sizeof(double)];
        unsigned char before[VALUES_MAX * sizeof(double)], then[VALUES_MAX * sizeof(double)];
        open_world(&all, seed, NONE);
        pli_coded *owner = the.coded[1];
        for (int64_t i = 0; i < the.values; i++) pli_updates_set(&the.spec, ones, i, 1 + (double)i);
        assert_int_equal(pli_coded_keep(owner, true, ones, NULL), PLAIT_OK);
        pli_coded_kept(owner, true, before);
        pli_updates_clear(&the.spec, the.values, sum);
        assert_int_equal(pli_coded_spend(owner, sum, NULL), PLAIT_OK);
        pli_coded_kept(owner, true, then);
        for (int64_t i = 0; owner->in_stripes && i < the.values; i++) {
            assert_true(at(sum, i) == at(before, i));
            assert_true(at(then, i) == 0);
        }
        if (the.mortal) {
            assert_int_equal(pli_coded_put_back(owner, &the.own[1], NULL), PLAIT_OK);
            pli_coded_kept(owner, true, then);
            assert_memory_equal(then, before, (size_t)(the.values * the.spec.sum_width));
        }
        striped += the.mortal && owner->in_stripes;
        close_world();
    }
    assert_true(striped > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_lose_nothing_and_are_the_same_everywhere),
        cmocka_unit_test(test_mistakes_are_seen),
        cmocka_unit_test(test_what_is_kept_can_be_put_back),
        cmocka_unit_test(test_what_is_put_back_is_sent),
        cmocka_unit_test(test_what_is_spent_is_kept_if_the_sum_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
