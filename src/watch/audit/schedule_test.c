/* Logs of scheduled steps, made by hand: a right one is proven, and a mistake in one place is refuted, by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "watch/audit/schedule.h"

enum { W = 3, P = 8, STEPS = 17, APART = P / W };

/* A way to rotate P blocks over W workers. Block b is key b of space 0, and each reads its own key of space 1. */
typedef struct plan {
    const char *name, *rule; /* rule NULL: it is right */
    const char *consistency;
    int64_t (*block)(int32_t worker, int64_t step);
    int64_t (*step)(int32_t worker, int64_t step);  /* the number that is logged; NULL: the step's */
    int64_t (*clock)(int32_t worker, int64_t step); /* NULL: the step's */
    bool (*takes)(int32_t worker, int64_t step);    /* NULL: always */
    int64_t twice;                                  /* the block beside it that worker 1 takes in step 4; 0: none */
} plan;

static int64_t ring(int32_t w, int64_t t) { return (w * APART + t) % P; }
static int64_t late_by_one(int32_t w, int64_t t) { return (w * APART + t - (w == 1 && t >= 5)) % P; }
static int64_t stays(int32_t w, int64_t t) { return w == 2 && t == 6 ? ring(w, t - 1) : ring(w, t); }
static int64_t stays_with_its_neighbour(int32_t w, int64_t t) { return t == 6 && w == 1 ? ring(2, t) : ring(w, t); }
static int64_t two_steps_at_once(int32_t w, int64_t t) { return (w * APART + (w == 0 ? 2 * t : t)) % P; }
static int64_t other_way(int32_t w, int64_t t) { return (w * APART + (w == 0 ? P * STEPS - t : t)) % P; }
static int64_t too_near(int32_t w, int64_t t) { return (w + t) % P; }
static int64_t modulo_workers(int32_t w, int64_t t) { return (w * APART + t) % (P - 3); }
static int64_t same_start(int32_t w, int64_t t) { return (w / 2 * APART + t) % P; }
static int64_t by_rank_alone(int32_t w, int64_t t) { return t < 9 ? ring(w, t) : (t - 9) % P * (w >= 0); }
static int64_t swapped(int32_t w, int64_t t) { return t == 7 ? ring((w + 1) % W, t) : ring(w, t); }
static int64_t ahead(int32_t w, int64_t t) { return t + (w == 2 && t >= 8); }
static int64_t ahead_from_one(int32_t w, int64_t t) { return t + (w == 2 && t >= 1); }
static bool    misses_one(int32_t w, int64_t t) { return !(w == 1 && t == 3); }
static bool    ends_early(int32_t w, int64_t t) { return !(w == 2 && t == STEPS - 1); }
static int64_t clock_twice(int32_t w, int64_t t) { return w == 1 && t == 5 ? 4 : t; }

static const plan plans[] = {
    { "right, bsp", NULL, "bsp", .block = ring },
    { "right, ssp:1: P >= W (S + 1)", NULL, "ssp:1", .block = ring },
    { "right, async: of one clock", NULL, "async", .block = ring },
    { "another order, still one owner", NULL, "bsp", .block = swapped },
    { "a bound that is wider than the ring", "conflict", "ssp:2", .block = ring },
    { "a worker moves on a step late", "conflict", "ssp:1", .block = late_by_one },
    { "a worker keeps its block", "conflict", "ssp:1", .block = stays },
    { "a worker takes its neighbour's", "owner", "bsp", .block = stays_with_its_neighbour },
    { "a worker moves by two", "owner", "bsp", .block = two_steps_at_once },
    { "a worker moves the other way", "owner", "bsp", .block = other_way },
    { "workers stand side by side under ssp", "conflict", "ssp:1", .block = too_near },
    { "the ring is too short", "conflict", "ssp:1", .block = modulo_workers },
    { "two workers begin at one place", "owner", "bsp", .block = same_start },
    { "all take the same from a step on", "owner", "async", .block = by_rank_alone },
    { "two swap, and each block still rests for a step", NULL, "ssp:1", .block = swapped },
    { "a worker is a step ahead", "steps", "bsp", .block = ring, .step = ahead },
    { "a worker is a clock ahead", "steps", "bsp", .block = ring, .clock = ahead_from_one },
    { "a worker misses a step", "steps", "bsp", .block = ring, .takes = misses_one },
    { "a worker ends a step early", "steps", "bsp", .block = ring, .takes = ends_early },
    { "two steps in one clock", "steps", "bsp", .block = ring, .clock = clock_twice },
    { "a worker takes a second block", "owner", "bsp", .block = ring, .twice = 1 + (APART * 2 + 4) % P },
    { "a second block that a neighbour has next", "conflict", "ssp:1", .block = ring,
      .twice = 1 + (APART * 2 + 5) % P },
};

static pli_eventlog *log_of;
static char          path[64];

static void begin(const char *consistency) {
    const pli_event_job   job = { .workers = W, .replicas = 1 };
    const pli_event_table table = { .name = "w", .topology = "allreduce", .consistency = consistency, .rows = 9,
                                    .cols = 1, .way = PLI_WAY_SUMMED, .combine = "add" };
    snprintf(path, sizeof path, "schedule_by_hand.%d.events", (int)getpid());
    assert_int_equal(pli_eventlog_open(path, W, "0123456789abcdef", NULL, NULL, &log_of, NULL), PLAIT_OK);
    const pli_event_sink *sink = pli_eventlog_sink(log_of);
    for (int32_t w = 0; w < W; w++) {
        sink->raise(sink->user, &(pli_event){ .kind = PLI_EVENT_JOB, .rank = w, .info.job = &job });
        sink->raise(sink->user, &(pli_event){ .kind = PLI_EVENT_TABLE, .rank = w, .info.table = &table });
    }
}

static void take(int32_t w, int64_t step, int64_t clock, bool together, int64_t n, const pli_event_touch *touch) {
    const pli_event_sink *sink = pli_eventlog_sink(log_of);
    sink->raise(sink->user, &(pli_event){ .kind = PLI_EVENT_TURN, .rank = w, .table = -1, .clock = clock,
                                          .seq = (uint64_t)step, .row = together, .n = n, .info.touch = touch });
}

static pli_schedule_proof prove(const char *as) {
    pli_logfile       *file = NULL;
    pli_schedule_proof proof;
    const char        *name = path;
    if (log_of != NULL) assert_int_equal(pli_eventlog_close(&log_of, NULL), PLAIT_OK);
    assert_int_equal(pli_logfile_open(&name, 1, &file, NULL), PLAIT_OK);
    assert_int_equal(pli_schedule_prove(file, as, &proof, NULL), PLAIT_OK);
    pli_logfile_close(&file);
    return proof;
}

static void rotate(const plan *p) {
    begin(p->consistency);
    for (int32_t w = 0; w < W; w++)
        for (int64_t t = 0; t < STEPS; t++) {
            const int64_t         block = p->block(w, t), clock = p->clock != NULL ? p->clock(w, t) : t;
            const pli_event_touch touch[] = { { .variable = block, .writes = true, .key = (uint64_t)block },
                                              { .variable = block, .space = 1, .key = (uint64_t)w },
                                              { .variable = p->twice - 1, .writes = true,
                                                .key = (uint64_t)p->twice - 1 } };
            if (p->takes != NULL && !p->takes(w, t)) continue;
            take(w, p->step != NULL ? p->step(w, t) : t, clock, false, 2 + (p->twice > 0 && w == 1 && t == 4), touch);
        }
}

static void test_mistakes_in_rotation(void **state) {
    int mistakes = 0;
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const plan *p = &plans[i];
        rotate(p);
        const pli_schedule_proof proof = prove(NULL);
        const bool               right = proof.verdict == PLI_AUDIT_PROVEN;
        if (right != (p->rule == NULL) || (!right && strcmp(proof.first.rule, p->rule) != 0))
            fail_msg("%s: %s %s", p->name, right ? "proven" : proof.first.rule, right ? "" : proof.first.text);
        mistakes += !right;
    }
    assert_true(mistakes >= 10);
    unlink(path);
}

/* What is named: the key, both variables, both workers, both clocks. */
static void test_the_two_are_named(void **state) {
    (void)state;
    rotate(&plans[4]);
    const pli_schedule_proof proof = prove(NULL);
    assert_int_equal(proof.apart, 2);
    assert_int_equal(proof.first.clock, 2);
    assert_string_equal(proof.first.text,
                        "key 2 of space 0 is touched by variable 2 (rank 1, step 0, clock 0, written) and by variable "
                        "2 (rank 0, step 2, clock 2, written), which may have missed each other");
    const pli_schedule_proof as = prove("bsp");
    assert_int_equal(as.verdict, PLI_AUDIT_PROVEN);
    assert_int_equal(as.steps, STEPS);
    assert_int_equal(as.keys, 2 * W * STEPS);
    unlink(path);
}

/* Variables that all workers update together: keys that only they read do not matter, one that is written does. */
static pli_schedule_proof together(bool second_writes, int64_t other_variable, int64_t others) {
    begin("bsp");
    for (int32_t w = 0; w < W; w++) {
        const pli_event_touch touch[] = { { .variable = 4, .writes = true, .key = 40 },
                                          { .variable = 4, .key = 7 },
                                          { .variable = w == 2 ? other_variable : 5, .writes = true, .key = 50 },
                                          { .variable = w == 2 ? other_variable : 5, .writes = second_writes,
                                            .key = 7 } };
        take(w, 0, 0, true, w == 2 ? others : 4, touch);
    }
    const pli_schedule_proof proof = prove(NULL);
    unlink(path);
    return proof;
}

static void test_steps_that_all_take(void **state) {
    (void)state;
    assert_int_equal(together(false, 5, 4).verdict, PLI_AUDIT_PROVEN);
    const pli_schedule_proof written = together(true, 5, 4), other = together(false, 6, 4);
    const pli_schedule_proof less = together(false, 5, 2);
    assert_int_equal(written.verdict, PLI_AUDIT_REFUTED);
    assert_string_equal(written.first.rule, "conflict");
    assert_string_equal(other.first.rule, "same");
    assert_string_equal(less.first.rule, "same");
}

/* Two of three workers take a step; the third says that it was away, or another variable, or nothing. */
static pli_schedule_proof without_one(bool away, bool other) {
    const pli_event_touch touch = { .variable = 4, .writes = true, .key = 40 };
    begin("bsp");
    take(1, 0, 0, true, 1, &touch);
    take(2, 0, 0, true, 1, &touch);
    const pli_event_sink *sink = pli_eventlog_sink(log_of);
    const pli_event_touch none = { .variable = 5, .writes = true, .key = 50 };
    if (away)
        pli_event_raise(sink, &(pli_event){ .kind = PLI_EVENT_TURN, .rank = 0, .table = -1, .row = 3,
                                            .info.touch = &none });
    if (other) take(0, 0, 0, true, 1, &none);
    const pli_schedule_proof proof = prove(NULL);
    unlink(path);
    return proof;
}

static void test_steps_that_all_take_save_who_is_away(void **state) {
    (void)state;
    assert_int_equal(without_one(true, false).verdict, PLI_AUDIT_PROVEN);
    assert_string_equal(without_one(false, true).first.rule, "same");
    assert_string_equal(without_one(false, false).first.rule, "steps");
}

/* Steps that all take alike, one in each clock. same_key: the second step's variable writes the key of the first's. */
static pli_schedule_proof one_after_another(const char *consistency, bool same_key) {
    begin(consistency);
    for (int32_t w = 0; w < W; w++)
        for (int64_t t = 0; t < 2; t++) {
            const pli_event_touch touch = { .variable = t, .writes = true, .key = same_key ? 40 : 40 + (uint64_t)t };
            take(w, t, t, true, 1, &touch);
        }
    const pli_schedule_proof proof = prove(NULL);
    unlink(path);
    return proof;
}

/* Under a bound of S one worker's step may miss what another has pushed in the step before. */
static void test_steps_that_all_take_under_stale_reads(void **state) {
    (void)state;
    assert_int_equal(one_after_another("bsp", true).verdict, PLI_AUDIT_PROVEN);
    assert_int_equal(one_after_another("ssp:1", false).verdict, PLI_AUDIT_PROVEN);
    const pli_schedule_proof stale = one_after_another("ssp:1", true);
    assert_int_equal(stale.verdict, PLI_AUDIT_REFUTED);
    assert_string_equal(stale.first.rule, "conflict");
    assert_int_equal(stale.first.clock, 1);
}

static void test_nothing_is_proven_of_nothing(void **state) {
    (void)state;
    begin("bsp");
    assert_int_equal(prove(NULL).verdict, PLI_AUDIT_EMPTY);
    unlink(path);
}

/* A log without its end is cut, unless what it has is enough to refute. */
static void test_a_cut_log(void **state) {
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        rotate(&plans[bad ? 12 : 0]);
        assert_int_equal(pli_eventlog_close(&log_of, NULL), PLAIT_OK);
        FILE *file = fopen(path, "r+");
        assert_non_null(file);
        fseek(file, 0, SEEK_END);
        assert_int_equal(ftruncate(fileno(file), ftell(file) - 3), 0);
        fclose(file);
        assert_int_equal(prove(NULL).verdict, bad ? PLI_AUDIT_REFUTED : PLI_AUDIT_CUT);
        unlink(path);
    }
}

/* --- a worker dies ------------------------------------------------------------------------------------------------ */

/* Worker 1 dies in step DIES, after its turn. One way to go on; block 20 + w is worker w's in every step. */
enum { DIES = 5, LASTS = 9 };
typedef struct death {
    const char *name, *rule; /* rule NULL: it is right */
    bool        known;       /* a server has learned of it */
    int32_t     heir, second; /* who stands in for it in step DIES; -1: nobody */
    int32_t     next;        /* who has its block afterwards; -1: nobody */
    int64_t     key;         /* that the heir's turn writes; 0: that of the block */
    bool        counted;     /* a server has counted its turn */
    bool        too_late;    /* the heir stands in when it has ended the clock */
} death;

static const death deaths[] = {
    { "one stands in", NULL, true, 2, -1, 0, 0, false, false },
    { "the first worker does", NULL, true, 0, -1, 2, 0, false, false },
    { "its turn has counted", NULL, true, -1, -1, 2, 0, true, false },
    { "it has counted, and one stands in", NULL, true, 2, -1, 2, 0, true, false },
    { "nobody stands in", "lost", true, -1, -1, 2, 0, false, false },
    { "two stand in", "owner", true, 2, 0, 2, 0, false, false },
    { "nobody has died", "owner", false, 2, -1, 2, 0, false, false },
    { "nobody has its block afterwards", "lost", true, 2, -1, -1, 0, false, false },
    { "the heir writes another's key", "conflict", true, 2, -1, 2, 20, false, false },
    { "the heir has ended the clock", "steps", true, 2, -1, 2, 0, false, true },
};

static void raise_event(pli_event event) {
    const pli_event_sink *sink = pli_eventlog_sink(log_of);
    event.table = -1;
    sink->raise(sink->user, &event);
}

static void take_block(int32_t w, int64_t step, int64_t block, int64_t key, bool stands) {
    const pli_event_touch touch = { .variable = block, .writes = true, .key = (uint64_t)key };
    raise_event((pli_event){ .kind = PLI_EVENT_TURN, .rank = w, .clock = step, .seq = (uint64_t)step,
                             .row = stands ? 2 : 0, .rows = W, .n = 1, .info.touch = &touch });
}

static void live_on(const death *d, int32_t w) {
    for (int64_t step = 0; step < LASTS; step++) {
        pli_event ends = { .kind = PLI_EVENT_CLOCK, .rank = w, .clock = step };
        take_block(w, step, 20 + w, 20 + w, false);
        if (w == 1 && d->known && step == DIES) return;
        if (d->too_late && w == d->heir && step == DIES) raise_event(ends);
        if (step == DIES && (w == d->heir || w == d->second))
            take_block(w, step, 21, d->key > 0 ? d->key : 21, true);
        if (!(d->too_late && w == d->heir && step == DIES)) raise_event(ends);
    }
}

/* The block of the dead one is taken by `next` in the same turn as its own. */
static void live_on_with_two(const death *d, int32_t w) {
    for (int64_t step = 0; step < LASTS; step++) {
        const pli_event_touch touch[] = { { .variable = 20 + w, .writes = true, .key = 20 + (uint64_t)w },
                                          { .variable = 21, .writes = true, .key = 21 } };
        raise_event((pli_event){ .kind = PLI_EVENT_TURN, .rank = w, .clock = step, .seq = (uint64_t)step, .rows = W,
                                 .n = step > DIES ? 2 : 1, .info.touch = touch });
        if (step == DIES && (w == d->heir || w == d->second))
            take_block(w, step, 21, d->key > 0 ? d->key : 21, true);
        raise_event((pli_event){ .kind = PLI_EVENT_CLOCK, .rank = w, .clock = step });
    }
}

static pli_schedule_proof die(const death *d) {
    const pli_event_job job = { .workers = W, .servers = W, .replicas = 2 };
    begin("bsp");
    raise_event((pli_event){ .kind = PLI_EVENT_JOB, .server = true, .rank = 0, .info.job = &job });
    for (int32_t w = 0; w < W; w++) {
        if (w == d->next && d->known && !d->too_late) live_on_with_two(d, w);
        else live_on(d, w);
        if (w != 1 || !d->known) raise_event((pli_event){ .kind = PLI_EVENT_DONE, .rank = w });
    }
    if (d->counted)
        raise_event((pli_event){ .kind = PLI_EVENT_TICK, .server = true, .rank = 0, .peer = 1, .clock = DIES });
    if (d->known) raise_event((pli_event){ .kind = PLI_EVENT_GONE, .server = true, .rank = 0, .peer = 1 });
    const pli_schedule_proof proof = prove(NULL);
    unlink(path);
    return proof;
}

static void test_a_worker_that_dies(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        const death             *d = &deaths[i];
        const pli_schedule_proof proof = die(d);
        const bool               right = proof.verdict == PLI_AUDIT_PROVEN;
        if (right != (d->rule == NULL) || (!right && strcmp(proof.first.rule, d->rule) != 0))
            fail_msg("%s: %s %s", d->name, right ? "proven" : proof.first.rule, right ? "" : proof.first.text);
        assert_int_equal(proof.dead, d->known);
    }
}

/* All workers take the same variable in each step; worker 1 dies. strays: after that worker 2 takes another. */
static pli_schedule_proof die_side_by_side(bool known, bool strays) {
    const pli_event_job job = { .workers = W, .servers = W, .replicas = 2 };
    begin("bsp");
    raise_event((pli_event){ .kind = PLI_EVENT_JOB, .server = true, .rank = 0, .info.job = &job });
    for (int32_t w = 0; w < W; w++) {
        for (int64_t step = 0; step < LASTS; step++) {
            const int64_t         variable = 20 + (strays && w == 2 && step > DIES);
            const pli_event_touch touch = { .variable = variable, .writes = true, .key = (uint64_t)variable };
            take(w, step, step, true, 1, &touch);
            if (w == 1 && step == DIES) break;
            raise_event((pli_event){ .kind = PLI_EVENT_CLOCK, .rank = w, .clock = step });
        }
        if (w != 1) raise_event((pli_event){ .kind = PLI_EVENT_DONE, .rank = w });
    }
    if (known) raise_event((pli_event){ .kind = PLI_EVENT_GONE, .server = true, .rank = 0, .peer = 1 });
    const pli_schedule_proof proof = prove(NULL);
    unlink(path);
    return proof;
}

static void test_a_worker_that_dies_in_steps_that_all_take(void **state) {
    (void)state;
    const pli_schedule_proof right = die_side_by_side(true, false), strays = die_side_by_side(true, true),
                             unknown = die_side_by_side(false, false);
    if (right.verdict != PLI_AUDIT_PROVEN) fail_msg("%s", right.first.text);
    assert_int_equal(right.dead, 1);
    assert_int_equal(strays.verdict, PLI_AUDIT_REFUTED);
    assert_string_equal(strays.first.rule, "same");
    assert_non_null(strstr(strays.first.text, "only 1 of 2 workers have variable 20"));
    assert_int_equal(unknown.verdict, PLI_AUDIT_REFUTED);
    assert_string_equal(unknown.first.rule, "steps");
}

static void test_how_it_is_told(void **state) {
    pli_text text = { 0 };
    (void)state;
    rotate(&plans[1]);
    const pli_schedule_proof proof = prove(NULL);
    pli_schedule_text(&proof, &text);
    assert_non_null(strstr(text.data, "17 steps of 3 workers: 51 variables, 102 keys\n"));
    assert_non_null(strstr(text.data, "proven: "));
    pli_text_free(&text);
    text = (pli_text){ 0 };
    pli_schedule_json(&proof, &text);
    json_t *json = pli_json_read(text.data, text.length, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "verdict")), "proven");
    assert_int_equal(json_integer_value(json_object_get(json, "apart")), 1);
    json_decref(json);
    pli_text_free(&text);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes_in_rotation),     cmocka_unit_test(test_the_two_are_named),
        cmocka_unit_test(test_steps_that_all_take), cmocka_unit_test(test_steps_that_all_take_save_who_is_away),
        cmocka_unit_test(test_nothing_is_proven_of_nothing),
        cmocka_unit_test(test_a_worker_that_dies),       cmocka_unit_test(test_how_it_is_told),
        cmocka_unit_test(test_a_cut_log),
        cmocka_unit_test(test_a_worker_that_dies_in_steps_that_all_take),
        cmocka_unit_test(test_steps_that_all_take_under_stale_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
